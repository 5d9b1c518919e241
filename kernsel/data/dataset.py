"""The data set that a selection works on, from a table or from arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernsel.data.columns import Floats, as_dense, as_text, check_missing, check_sparse_values, check_values, numbers
from kernsel.data.copies import TOGETHER, Copies, check_copies, find_copies
from kernsel.data.encoding import Encoder
from kernsel.data.names import check_column, check_unique, listed
from kernsel.data.sample import Indices, Sample, class_weights, read_sample
from kernsel.data.tables import SparseTable, Table, array_names, as_table, column_of, is_frame, names_of, without
from kernsel.data.target import as_vector, class_codes, encode_targets, mean_and_scale, median_and_spread, split_targets
from kernsel.errors import DataError
from kernsel.numerics.points import Points, deviations, is_sparse
from kernsel.once import once

if TYPE_CHECKING:
    import pandas as pd

MAX_ENCODED_BYTES = 8 * 2**30
"""One-hot columns that would need more than this are refused."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Encoded rows, encoded targets and the way back.

    Parameters
    ----------
    X : (n, d) points
        The encoded features, dense or sparse: see ``kernsel.numerics.points``.
    Y : (k, n) array, C-contiguous
        The encoded target, see `kernsel.data.target.Target`.
    task : str
        ``"regression"`` or ``"classification"``.
    labels : list or None
        The classes; with two of them the second is +1.
    target : str or list of str
        Name of the target, or of several.
    encoder : Encoder
        What made ``X``.
    output_shift, output_scale : (k,) arrays
        A prediction in the target's units is ``output * scale + shift``.
    notes : list of str
        What was inferred, changed or left out.
    sample : Sample
        Which rows of the table as given these are, their weights and their groups.
    source : str or None
        The file that it comes from.
    label_dtype : str or None
        NumPy's name of the type that labels are returned in.
    copies : str
        Whether rows of equal features are dealt to one fold, ``"together"``, or ``"apart"`` as any other rows.
    """

    X: Points
    Y: Floats
    task: str
    labels: list[Any] | None
    target: str | list[str]
    encoder: Encoder
    output_shift: Floats
    output_scale: Floats
    notes: list[str]
    sample: Sample
    source: str | None = None
    label_dtype: str | None = None
    copies: str = TOGETHER

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.Y.shape[1])

    @property
    def d(self) -> int:
        """Number of encoded features."""
        return len(self.encoder.features)

    @property
    def k(self) -> int:
        """Number of outputs: classes if there are more than two, else 1, or targets of a regression."""
        return len(self.Y)

    @property
    def codes(self) -> Indices | None:
        """Numbers (n,) of the classes, None for a regression."""
        return class_codes(self.Y) if self.labels is not None else None

    @property
    def weights(self) -> Floats | None:
        """Weights (n,) of the rows, None where every row counts 1."""
        return self.sample.weights

    @property
    def groups(self) -> Indices | None:
        """Group numbers (n,), None without groups."""
        return self.sample.groups

    @once
    def copied(self) -> Copies:
        """Which rows are copies of others in all features."""
        return find_copies(self.X, self.Y)

    @property
    def places(self) -> Indices:
        """Where the rows stood in the table as given, (n,)."""
        return self.sample.places

    def take(self, rows: Indices) -> Dataset:
        """Return the data set of some of its rows, encoded as they are."""
        return replace(self, X=self.X[rows], Y=np.ascontiguousarray(self.Y[:, rows]), sample=self.sample.take(rows))

    def in_robust_units(self, what: str) -> Dataset:
        """Return the data set with the target of a regression in units that outliers don't move, for ``what``.

        ``(y - median) / spread`` takes the place of ``(y - mean) / deviation``, see `median_and_spread`. Several
        targets stay in units of their standard deviations, in which their errors are added up.
        """
        if self.labels is not None or self.k > 1:
            return self
        median, spread, measure = median_and_spread(self.Y[0], self.weights)
        scale, shift = self.output_scale * spread, self.output_shift + self.output_scale * median
        note = f"{what} in units of the target's robust spread, {float(scale[0]):.4g}: {measure}"
        Y = np.ascontiguousarray((self.Y - median) / spread)
        return replace(self, Y=Y, output_shift=shift, output_scale=scale, notes=[*self.notes, note])

    def dense(self, what: str) -> Dataset:
        """Return the data set with dense rows, for ``what`` needs them; DataError if they are too large for that."""
        return replace(self, X=as_dense(self.X, what)) if is_sparse(self.X) else self

    @property
    def given(self) -> int:
        """Number of rows of the table as given, those of weight 0 among them."""
        return self.sample.given


def prepare(
    frame: pd.DataFrame | SparseTable,
    target: str | Sequence[str] | None = None,
    task: str = "auto",
    standardize: bool = True,
    standardize_target: bool = True,
    *,
    weights: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    class_weight: str | Mapping[Any, float] | None = None,
    copies: str = TOGETHER,
) -> Dataset:
    """Turn a table into a data set.

    Parameters
    ----------
    frame : DataFrame or SparseTable
        One column a feature, and the target. ``attrs["aside"]`` may name columns that were taken out of it and aren't
        features of a later table either.
    target : str or list of str, optional
        The last column by default. Several must be numbers.
    task : str
        ``"auto"``, ``"regression"`` or ``"classification"``. Automatic: text, truth values, two distinct values or
        at most 10 distinct whole numbers are classes; several targets are a regression.
    standardize : bool
        Centre numeric columns and divide them by their standard deviation. Constant columns are left out then, for
        they would be zero; without it they stay. Columns of a sparse table are divided, not centred, which would
        make them dense; distances, and all that follows from them, are the same.
    standardize_target : bool
        The same for the target of a regression.
    weights : (n,) array, optional
        How much each row counts: a row of weight 2 is one that is there twice, one of weight 0 is left out.
    groups : (n,) array, optional
        Labels of any kind: rows that belong together.
    class_weight : "balanced" or mapping of label to weight, optional
        Multiplied into the weights of the rows.
    copies : {"together", "apart"}
        Whether folds are dealt that keep rows of equal features together.

    Raises
    ------
    DataError
        The table can't be used; the message names the column.
    """
    names = names_of(frame)
    if not names:
        raise DataError("the table has no columns")
    notes: list[str] = list(frame.attrs.get("notes", []))
    if target is None:
        target = names[-1]
        notes.append(f"target: the last column, {target!r} (name another one as the target if that is wrong)")
    source = frame.attrs.get("source")
    targets = [target] if isinstance(target, str) else list(dict.fromkeys(target))
    for name in targets:
        check_column(names, name, source or "the table")
    check_unique(names, source or "the table")
    features = as_table(without(frame, targets))
    columns = {name: column_of(frame, name) for name in targets}
    sample = read_sample(len(frame), weights, groups)
    aside = (*targets, *frame.attrs.get("aside", ()))
    made = _dataset(
        features, columns, aside, task, standardize, standardize_target, sample, class_weight, notes, source
    )
    return replace(made, copies=check_copies(copies))


def from_arrays(
    X: pd.DataFrame | npt.ArrayLike | Table,
    y: npt.ArrayLike,
    task: str = "auto",
    standardize: bool = False,
    standardize_target: bool = True,
    *,
    weights: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    class_weight: str | Mapping[Any, float] | None = None,
    copies: str = TOGETHER,
) -> Dataset:
    """Turn features and target given apart into a data set.

    Parameters
    ----------
    X : (n, d) array, sparse matrix or DataFrame
        The columns of an array or matrix are called ``x0, x1, ...``; a DataFrame may have text columns. A sparse
        matrix, and a DataFrame of sparse columns, stay sparse.
    y : (n,) or (n, k) array, list, Series or DataFrame
        Numbers, or labels of any kind; several columns are targets of one regression.
    task : str
    standardize, standardize_target : bool
    weights, groups : (n,) array, optional
    class_weight : "balanced" or mapping of label to weight, optional
    copies : {"together", "apart"}
        As in `prepare`.

    Raises
    ------
    DataError
        They can't be used; the message names the column.
    """
    table = as_table(X)
    columns = {
        name: column if hasattr(column, "iloc") else as_vector(column) for name, column in split_targets(y).items()
    }
    if is_frame(X):
        import pandas as pd

        columns = {name: pd.Series(each) for name, each in columns.items()}
    for column in columns.values():
        _check_lengths(len(table), len(column))
    sample = read_sample(len(table), weights, groups)
    made = _dataset(
        table, columns, tuple(columns), task, standardize, standardize_target, sample, class_weight, [], None
    )
    return replace(made, copies=check_copies(copies))


def encode(X: pd.DataFrame | npt.ArrayLike | Table, standardize: bool = True) -> Points:
    """Encode features that have no target, (n, d), as those of a data set.

    Parameters
    ----------
    X : (n, d) array, sparse matrix or DataFrame
    standardize : bool
        As in `prepare`.

    Raises
    ------
    DataError
        They can't be used; the message names the column.
    """
    table = as_table(X)
    _check_rows(len(table))
    return _encoded(table, (), standardize, None, [])[1]


def _dataset(
    table: Table,
    columns: Mapping[str, Any],
    aside: tuple[str, ...],
    task: str,
    standardize: bool,
    standardize_target: bool,
    sample: Sample,
    class_weight: str | Mapping[Any, float] | None,
    notes: list[str],
    source: str | None,
) -> Dataset:
    """Leave out rows without weight, encode the target, weigh the classes, encode the features."""
    _check_rows(len(table))
    notes = [*notes, *sample.notes]
    table = sample.rows(table)
    columns = {name: sample.rows(column) for name, column in columns.items()}
    target = encode_targets(columns, task, standardize_target, sample.weights)
    if class_weight is not None:
        by_class = class_weights(class_weight, target, sample.weights)
        notes.append(f"class weights: {class_weight}")
        weights = by_class if sample.weights is None else by_class * sample.weights
        asked = class_weight if isinstance(class_weight, str) else {str(k): float(v) for k, v in class_weight.items()}
        sample = replace(sample, weights=weights, by_class=by_class, class_weight=asked)
    if sample.weights is not None:
        notes.append(
            f"weights: {sample.places.size} rows weigh {sample.weights.sum():.6g} together; every mean over rows is "
            "weighted, that of the errors too"
        )
    encoder, X = _encoded(table, aside, standardize, sample.weights, notes)
    return Dataset(
        X=X,
        Y=target.Y,
        task=target.task,
        labels=target.labels,
        label_dtype=target.label_dtype,
        target=next(iter(columns)) if len(columns) == 1 else list(columns),
        encoder=encoder,
        output_shift=target.shift,
        output_scale=target.scale,
        notes=[*notes, target.note, *_shared(encoder)],
        sample=sample,
        source=source,
    )


def _encoded(
    table: Table, aside: tuple[str, ...], standardize: bool, weights: Floats | None, notes: list[str]
) -> tuple[Encoder, Points]:
    """Encode features, and say in the notes what became of them."""
    fit = _fit_frame if is_frame(table) else _fit_sparse if isinstance(table, SparseTable) else _fit_matrix
    encoder, X = fit(table, aside, standardize, weights, notes)
    if not encoder.used:
        raise DataError("no column is left to learn from: all are constant or differ in every row; add features")
    return encoder, X


def _fit_matrix(
    matrix: Floats, aside: tuple[str, ...], standardize: bool, weights: Floats | None, notes: list[str]
) -> tuple[Encoder, Floats]:
    columns = array_names(matrix.shape[1])
    scaling = {
        name: _scaling(column, name, standardize, weights) for name, column in zip(columns, matrix.T, strict=True)
    }
    encoder = _numeric_encoder(columns, scaling, {}, aside, notes)
    if not standardize:
        return encoder, matrix
    X = np.ascontiguousarray(matrix[:, [scaling[name] is not None for name in columns]])  # a copy, for what follows
    X -= encoder.mean
    X /= encoder.scale
    return encoder, X


def _fit_sparse(
    table: SparseTable, aside: tuple[str, ...], standardize: bool, weights: Floats | None, notes: list[str]
) -> tuple[Encoder, Points]:
    check_unique(table.names, "the table")
    check_sparse_values(table.X, table.names)
    kept, scale = np.arange(len(table.names)), np.ones(len(table.names))
    if standardize:
        constant = table.X.max(axis=0).toarray() == table.X.min(axis=0).toarray()
        _say_dropped([table.names[j] for j in np.flatnonzero(constant)], notes)
        kept = np.flatnonzero(~constant)
        scale = deviations(table.X, np.ones(len(table)) if weights is None else weights)[kept]
        notes.append(
            "sparse columns are divided by their standard deviation but not centred, so that zeros stay zeros; "
            "distances are the same either way"
        )
    encoder = Encoder(table.names, tuple(table.names[j] for j in kept), np.zeros(kept.size), scale, {}, aside)
    return encoder, encoder.transform(table)


def _fit_frame(
    features: pd.DataFrame, aside: tuple[str, ...], standardize: bool, weights: Floats | None, notes: list[str]
) -> tuple[Encoder, Floats]:
    columns = tuple(str(column) for column in features.columns)
    check_unique(columns, "the table")
    scaling: dict[str, tuple[float, float] | None] = {}
    categories: dict[str, tuple[str, ...]] = {}
    for j, column in enumerate(columns):
        values = numbers(features.iloc[:, j].rename(column))
        if values is not None:
            scaling[column] = _scaling(values, column, standardize, weights)
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
    encoder = _numeric_encoder(columns, scaling, categories, aside, notes)
    size = len(features) * len(encoder.features) * 8
    if size > MAX_ENCODED_BYTES:
        raise DataError(
            f"the text columns have too many values: {len(encoder.features)} 0/1 columns for {len(features)} rows take "
            f"{size / 2**30:.0f} GB; leave out the column with the most values, "
            f"{max(categories, key=lambda column: len(categories[column]))!r}"
        )
    return encoder, encoder.transform(features)


def _shared(encoder: Encoder) -> list[str]:
    """Say what the folds share."""
    scaled = bool((encoder.scale != 1.0).any() or (encoder.mean != 0.0).any())
    what = " and ".join(["scaling"] * scaled + ["encoding"] * bool(encoder.categories))
    once = f"{what}: fitted once on the whole table, because all folds share one Gram matrix"
    return [once] if what else []


def _scaling(column: Floats, name: str, standardize: bool, weights: Floats | None) -> tuple[float, float] | None:
    """Check a column; return its mean and scale, None if it is constant and would be zero."""
    check_values(column, name)
    if not standardize:
        return 0.0, 1.0
    return None if (column == column[0]).all() else mean_and_scale(column, weights)


def _numeric_encoder(
    columns: tuple[str, ...],
    scaling: Mapping[str, tuple[float, float] | None],
    categories: Mapping[str, tuple[str, ...]],
    aside: tuple[str, ...],
    notes: list[str],
) -> Encoder:
    """Return the encoder of the numeric columns that have a scaling, and of categories."""
    kept = {name: each for name, each in scaling.items() if each is not None}
    _say_dropped([name for name in scaling if name not in kept], notes)
    mean, scale = np.array(list(kept.values()), dtype=np.float64).reshape(-1, 2).T.copy()
    return Encoder(columns, tuple(kept), mean, scale, categories, aside)


def _say_dropped(dropped: Sequence[str], notes: list[str]) -> None:
    if dropped:
        one = len(dropped) == 1
        notes.append(f"column{'s' * (not one)} {listed(dropped)} {'is' if one else 'are'} constant and left out")


def _check_rows(n: int) -> None:
    if n < 2:
        raise DataError(f"the table has {n} row{'s' * (n != 1)}; a selection needs at least 2")


def _check_lengths(n: int, m: int) -> None:
    if n != m:
        raise DataError(f"X has {n} rows and y has {m}; they must have as many")
