"""New rows, encoded as those of the data set that a model was fitted on."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernsel.data.columns import as_text, check_values, missing_values, sign_of
from kernsel.data.encoding import Encoder
from kernsel.data.gaps import PADDED_WORDS
from kernsel.data.names import listed
from kernsel.data.sample import read_sample
from kernsel.data.tables import as_pandas, as_table, take
from kernsel.data.target import read_target, split_targets, target_gaps
from kernsel.errors import DataError
from kernsel.numerics.points import Points
from kernsel.types import Array, Indices, Mask


@dataclass(frozen=True, eq=False)
class MoreRows:
    """Rows with their targets and weights.

    Parameters
    ----------
    X : (m, d) points
    Y : (k, m) array
    weights : (m,) array or None
        None where every row counts 1.
    left_out : int
        Rows without a target, without weight, or without values that the model's own rows had to have.
    """

    X: Points
    Y: Array
    weights: Array | None
    left_out: int


def encode_more(
    table: Any,
    y: Any,
    encoder: Encoder,
    labels: Sequence[Any] | None,
    shift: Array,
    scale: Array,
    weights: npt.ArrayLike | None = None,
) -> MoreRows:
    """Encode new rows and their targets.

    Parameters
    ----------
    table : DataFrame, SparseTable, or (m, d) array or sparse matrix
    y : (m,) or (m, k) array, Series or DataFrame
    labels : list or None
        The classes; None for a regression.
    shift, scale : (k,) arrays
        Outputs of a regression are ``(y - shift) / scale``.
    weights : (m,) array, optional

    Raises
    ------
    DataError
        The rows can't be used; the message names the column.
    """
    table = as_table(table)
    columns = split_targets(as_pandas(y))
    n = len(table)
    for name, column in columns.items():
        if len(column) != n:
            raise DataError(f"the table has {n} rows and {name!r} has {len(column)}; they must have as many")
    k = len(shift) if labels is None else 1
    if len(columns) != k:
        raise DataError(f"the model has {k} target{'s' * (k != 1)}, and y has {len(columns)} columns")
    words = words_among(labels)
    kept = rows_that_count(n, columns, weights, encoder.missing, dict.fromkeys(columns, words))
    if encoder.missing == "drop" and encoder.fills and kept.rows.size:
        kept = kept.without(encoder.missing_rows(table))
    rows = kept.rows
    if not rows.size:
        raise DataError(f"none of the {n} rows is left: they lack targets, values or weights; give some that have them")
    columns = {name: take(column, rows) for name, column in columns.items()}
    for (name, column), known in zip(columns.items(), encoder.ignored, strict=False):  # the targets are first there
        if hasattr(column, "iloc") and (floats := read_target(column, name, words)[2]) is not None:
            encoder.check_sign(known, sign_of(column.rename(name)), floats, name)
    Y = encode_columns(columns, labels, shift, scale)
    X = encoder.transform(take(table, rows) if rows.size < n else table)
    return MoreRows(X, np.ascontiguousarray(Y), kept.weights, n - rows.size)


class Kept(NamedTuple):
    """The rows of a table that count.

    Parameters
    ----------
    rows : (m,) array
    weights : (m,) array or None
        None where every row counts 1.
    given, weighty : int
        Rows of the table, and those of them with a weight greater than 0.
    """

    rows: Indices
    weights: Array | None
    given: int
    weighty: int

    def without(self, lacking: Mask) -> Kept:
        """Return the rows that count, but those ``lacking`` (n,)."""
        kept = ~lacking[self.rows]
        return self._replace(rows=self.rows[kept], weights=None if self.weights is None else self.weights[kept])


def words_among(labels: Sequence[object] | None) -> tuple[str, ...]:
    """Return the words such as None that are classes; there are none where the target is numbers."""
    return tuple(label for label in labels or () if isinstance(label, str) and label in PADDED_WORDS)


def rows_that_count(
    n: int,
    columns: Mapping[str, object],
    weights: npt.ArrayLike | None,
    missing: str,
    words: Mapping[str, Container[str]],
) -> Kept:
    """Return the rows of a table with a weight greater than 0 and all targets, which may be ``"refuse"``d to lack.

    Parameters
    ----------
    columns : mapping of name to (n,) array or Series
    weights : (n,) array or None
    words : mapping of name to container of str
        The words such as None that are values of each target; they are gaps otherwise.
    """
    sample = read_sample(n, weights, None, least=0)
    kept = Kept(sample.places, sample.weights, n, sample.places.size)
    for name, column in columns.items():
        gaps = target_gaps(column, words[name])
        if gaps.any() and missing == "refuse":
            raise DataError(missing_values(gaps, name))
        kept = kept.without(gaps)
    return kept


def encode_columns(columns: Mapping[str, object], labels: Sequence[object] | None, shift: Array, scale: Array) -> Array:
    """Return targets without gaps, encoded, (k, n)."""
    return _targets(columns, shift, scale) if labels is None else _classes(columns, labels, len(shift))


def _targets(columns: Mapping[str, Any], shift: Array, scale: Array) -> Array:
    """Return the targets (k, m) of a regression in the units of its model."""
    Y = np.empty((len(columns), len(next(iter(columns.values())))))
    for row, (name, column) in zip(Y, columns.items(), strict=True):
        _, values, floats = read_target(column, name, ())
        if floats is None and values.dtype.kind not in "biuf":
            raise DataError(
                f"target {name!r} holds text (first: {str(values[0])[:40]!r}), but the model is a regression"
            )
        row[:] = values if floats is None else floats
        check_values(row, name)
    return (Y - shift[:, None]) / scale[:, None]


def _classes(columns: Mapping[str, object], labels: Sequence[object], k: int) -> Array:
    """Return the classes as -1 and +1, (k, m)."""
    ((name, column),) = columns.items()
    words = words_among(labels)
    given, values, floats = read_target(column, name, words)
    numbers = {label: number for number, label in enumerate(labels)}
    unknown: list[Any] = []
    texts = [as_text(column, words)] if hasattr(column, "iloc") else []  # as other parts have made all labels
    for form in (given, values, *([] if floats is None else [floats]), *texts):
        each, places = np.unique(form.astype(object) if form.dtype.kind == "O" else form, return_inverse=True)
        unknown = [label for label in each.tolist() if label not in numbers]
        if not unknown:
            codes = np.array([numbers[label] for label in each.tolist()])[places]
            return np.where(codes == np.arange(k)[:, None] + (k == 1), 1.0, -1.0)
    raise DataError(
        f"target {name!r} has classes that the model doesn't know ({listed(list(map(str, unknown)), 3)}; it has "
        f"{listed(list(map(str, labels)))}): select again on all rows"
    )
