"""The data set that a selection works on, from a table or from arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import numpy.typing as npt

from kernsel.data.columns import Floats, as_matrix, as_text, check_missing, check_values, numbers
from kernsel.data.encoding import Encoder
from kernsel.data.names import check_column, check_unique, listed
from kernsel.data.target import Target, as_vector, encode_target, mean_and_scale, plain_column, plain_vector
from kernsel.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

MAX_ENCODED_BYTES = 8 * 2**30
"""One-hot columns that would need more than this are refused."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Encoded rows, encoded targets and the way back.

    Parameters
    ----------
    X : (n, d) array, C-contiguous
        The encoded features.
    Y : (k, n) array, C-contiguous
        The encoded target, see `kernsel.data.target.Target`.
    task : str
        ``"regression"`` or ``"classification"``.
    labels : list or None
        The classes; with two of them the second is +1.
    target : str
        Name of the target.
    encoder : Encoder
        What made ``X``.
    output_shift, output_scale : (k,) arrays
        A prediction in the target's units is ``output * scale + shift``.
    notes : list of str
        What was inferred, changed or left out.
    source : str or None
        The file that it comes from.
    """

    X: Floats
    Y: Floats
    task: str
    labels: list[Any] | None
    target: str
    encoder: Encoder
    output_shift: Floats
    output_scale: Floats
    notes: list[str]
    source: str | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.X)

    @property
    def d(self) -> int:
        """Number of encoded features."""
        return len(self.encoder.features)

    @property
    def k(self) -> int:
        """Number of targets: classes if there are more than two, else 1."""
        return len(self.Y)


def prepare(
    frame: pd.DataFrame,
    target: str | None = None,
    task: str = "auto",
    standardize: bool = True,
    standardize_target: bool = True,
) -> Dataset:
    """Turn a table into a data set.

    Parameters
    ----------
    frame : DataFrame
        One column a feature, and the target.
    target : str, optional
        The last column by default.
    task : str
        ``"auto"``, ``"regression"`` or ``"classification"``. Automatic: text, truth values, two distinct values or
        at most 10 distinct whole numbers are classes.
    standardize : bool
        Centre numeric columns and divide them by their standard deviation. Constant columns are left out then, for
        they would be zero; without it they stay.
    standardize_target : bool
        The same for the target of a regression.

    Raises
    ------
    DataError
        The table can't be used; the message names the column.
    """
    names = [str(column) for column in frame.columns]
    if not names:
        raise DataError("the table has no columns")
    notes: list[str] = list(frame.attrs.get("notes", []))
    if target is None:
        target = names[-1]
        notes.append(f"target: the last column, {target!r} (name another one as the target if that is wrong)")
    source = frame.attrs.get("source")
    check_column(names, target, source or "the table")
    check_unique(names, source or "the table")
    place = names.index(target)
    features = frame.iloc[:, [j for j in range(len(names)) if j != place]]
    return _from_frame(features, frame.iloc[:, place], target, task, standardize, standardize_target, notes, source)


def from_arrays(
    X: pd.DataFrame | npt.ArrayLike,
    y: npt.ArrayLike,
    task: str = "auto",
    standardize: bool = False,
    standardize_target: bool = True,
) -> Dataset:
    """Turn features and target given apart into a data set.

    Parameters
    ----------
    X : (n, d) array or DataFrame
        The columns of an array are called ``x0, x1, ...``; a DataFrame may have text columns.
    y : (n,) array, list or Series
        Numbers, or labels of any kind.
    task : str
    standardize, standardize_target : bool
        As in `prepare`.

    Raises
    ------
    DataError
        They can't be used; the message names the column.
    """
    name = str(getattr(y, "name", None) or "y")
    if _is_frame(X):
        import pandas as pd

        values = y if isinstance(y, pd.Series) else pd.Series(as_vector(y), name=name)
        _check_lengths(len(X), len(values))
        return _from_frame(X, values, name, task, standardize, standardize_target, [], None)
    matrix, values = as_matrix(X), as_vector(y)
    _check_lengths(len(matrix), len(values))
    _check_rows(len(matrix))
    columns = tuple(f"x{j}" for j in range(matrix.shape[1]))
    notes: list[str] = []
    kept, mean, scale = _fit_numeric(matrix, columns, standardize, notes)
    encoder = Encoder(columns, tuple(columns[j] for j in kept), mean, scale, {}, name)
    values = plain_vector(values, name)
    floats = values.astype(np.float64) if values.dtype.kind in "iuf" else None
    encoded = encode_target(values, floats, name, task, standardize_target)
    return _assemble(encoder, np.ascontiguousarray((matrix[:, kept] - mean) / scale), encoded, notes, None)


def _from_frame(
    features: pd.DataFrame,
    target: pd.Series,
    name: str,
    task: str,
    standardize: bool,
    standardize_target: bool,
    notes: list[str],
    source: str | None,
) -> Dataset:
    columns = tuple(str(column) for column in features.columns)
    check_unique(columns, "the table")
    _check_rows(len(features))
    check_missing(target, name)
    floats = numbers(target.rename(name))
    encoded = encode_target(plain_column(target, floats), floats, name, task, standardize_target)

    numeric: dict[str, Floats] = {}
    categories: dict[str, tuple[str, ...]] = {}
    for j, column in enumerate(columns):
        values = numbers(features.iloc[:, j].rename(column))
        if values is not None:
            numeric[column] = values
            continue
        check_missing(features.iloc[:, j], column)
        kinds = sorted(set(as_text(features.iloc[:, j])))
        if len(kinds) == 1:
            notes.append(f"column {column!r} is constant and left out")
        elif len(kinds) == len(features) > 2:
            notes.append(f"column {column!r} is text with another value in every row and is left out")
        else:
            categories[column] = tuple(kinds)
            notes.append(f"column {column!r} is text: one 0/1 column for each of its {len(kinds)} values")
    matrix = np.column_stack([*numeric.values()]) if numeric else np.empty((len(features), 0))
    kept, mean, scale = _fit_numeric(matrix, tuple(numeric), standardize, notes)
    encoder = Encoder(columns, tuple(list(numeric)[j] for j in kept), mean, scale, categories, name)
    size = len(features) * len(encoder.features) * 8
    if size > MAX_ENCODED_BYTES:
        raise DataError(
            f"the text columns have too many values: {len(encoder.features)} 0/1 columns for {len(features)} rows take "
            f"{size / 2**30:.0f} GB; leave out the column with the most values, "
            f"{max(categories, key=lambda column: len(categories[column]))!r}"
        )
    return _assemble(encoder, encoder.transform(features), encoded, notes, source)


def _assemble(encoder: Encoder, X: Floats, target: Target, notes: list[str], source: str | None) -> Dataset:
    if not encoder.used:
        raise DataError("no column is left to learn from: all are constant or differ in every row; add features")
    return Dataset(
        X=X,
        Y=target.Y,
        task=target.task,
        labels=target.labels,
        target=encoder.target,
        encoder=encoder,
        output_shift=target.shift,
        output_scale=target.scale,
        notes=[*notes, target.note, *_shared(encoder)],
        source=source,
    )


def _shared(encoder: Encoder) -> list[str]:
    """Say what the folds share."""
    scaled = bool((encoder.scale != 1.0).any() or (encoder.mean != 0.0).any())
    what = " and ".join(["scaling"] * scaled + ["encoding"] * bool(encoder.categories))
    once = f"{what}: fitted once on the whole table, because all folds share one Gram matrix"
    return [once] if what else []


def _fit_numeric(
    matrix: Floats, names: Sequence[str], standardize: bool, notes: list[str]
) -> tuple[list[int], Floats, Floats]:
    """Check every column; return those to keep, their means and their scales."""
    kept, mean, scale, dropped = [], [], [], []
    for j, name in enumerate(names):
        column = matrix[:, j]
        check_values(column, name)
        constant = bool((column == column[0]).all())
        if constant and standardize:
            dropped.append(name)
            continue
        centre, spread = mean_and_scale(column) if standardize else (0.0, 1.0)
        kept.append(j)
        mean.append(centre)
        scale.append(spread)
    if dropped:
        one = len(dropped) == 1
        notes.append(f"column{'s' * (not one)} {listed(dropped)} {'is' if one else 'are'} constant and left out")
    return kept, np.array(mean), np.array(scale)


def _check_rows(n: int) -> None:
    if n < 2:
        raise DataError(f"the table has {n} row{'s' * (n != 1)}; a selection needs at least 2")


def _is_frame(table: Any) -> TypeGuard[pd.DataFrame]:
    return hasattr(table, "columns")


def _check_lengths(n: int, m: int) -> None:
    if n != m:
        raise DataError(f"X has {n} rows and y has {m}; they must have as many")
