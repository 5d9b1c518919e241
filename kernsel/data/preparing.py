"""A data set is made from a table, or from arrays: rows are left out and weighed, target and features encoded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernsel.data.choices import HAMMING, Choices, make_choices
from kernsel.data.columns import is_text, missing_values, sign_of
from kernsel.data.copies import TOGETHER, check_copies
from kernsel.data.dataset import Dataset
from kernsel.data.encoding import Encoder
from kernsel.data.fitting import Fit, find, fit_frame, fit_matrix, fit_sparse, incomplete, names_in
from kernsel.data.gaps import share
from kernsel.data.kinds import Found, check_last
from kernsel.data.names import check_column, check_unique
from kernsel.data.near import read_near
from kernsel.data.remarks import check_any_feature, check_left, check_rows, describe_weights, some_rows, what_is_shared
from kernsel.data.sample import Sample, class_weights, read_sample
from kernsel.data.tables import (
    SparseTable,
    Table,
    array_names,
    as_pandas,
    as_table,
    column_of,
    is_frame,
    names_of,
    take,
    whole_numbers,
    without,
)
from kernsel.data.target import encode_targets, split_targets, target_gaps
from kernsel.errors import DataError, OptionError
from kernsel.numerics.points import Points, is_sparse
from kernsel.numerics.similarities import symmetric
from kernsel.types import Array

if TYPE_CHECKING:
    import pandas as pd


def prepare(
    frame: pd.DataFrame | SparseTable,
    target: str | Sequence[str] | None = None,
    task: str = "auto",
    standardize: bool = True,
    *,
    weights: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    class_weight: str | Mapping[Any, float] | None = None,
    copies: str = TOGETHER,
    near: Mapping[str, object] | None = None,
    choices: Choices | None = None,
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
    weights : (n,) array, optional
        How much each row counts: a row of weight 2 is one that is there twice, one of weight 0 is left out.
    groups : (n,) array, optional
        Labels of any kind: rows that belong together.
    class_weight : "balanced" or mapping of label to weight, optional
        Multiplied into the weights of the rows.
    copies : {"together", "apart"}
        Whether folds are dealt that keep rows of equal features together.
    near : mapping of str to object, optional
        What a fold's fit leaves out beside the fold: ``when``, ``purge``, ``embargo``, ``coordinates``, ``buffer``, as
        in `kernsel.select`.
    choices : Choices, optional
        What is said about columns and about missing values.

    Raises
    ------
    DataError
        The table can't be used; the message names the column.
    """
    frame = as_pandas(frame)
    names = names_of(frame)
    if not names:
        raise DataError("the table has no columns")
    notes: list[str] = list(frame.attrs.get("notes", []))
    asked = target
    if target is None:
        target = names[-1]
        notes.append(f"target: the last column, {target!r} (name another one as the target if that is wrong)")
    source = frame.attrs.get("source")
    targets = [target] if isinstance(target, str) else list(dict.fromkeys(target))
    for name in targets:
        check_column(names, name, source or "the table")
    if asked is None:
        check_last(column_of(frame, targets[0]))
    check_unique(names, source or "the table")
    features = as_table(without(frame, targets))
    columns = {name: column_of(frame, name) for name in targets}
    sample = read_sample(len(frame), weights, groups, read_near(near, frame, source or "the table"))
    aside = (*targets, *frame.attrs.get("aside", ()))
    choices = choices or Choices()
    if choices.named:
        choices = choices.resolved(names_in(features), aside, source or "the table")
    made = _dataset(features, columns, aside, task, standardize, sample, class_weight, choices, notes, source)
    return replace(made, copies=check_copies(copies))


def from_arrays(
    X: pd.DataFrame | npt.ArrayLike | Table,
    y: npt.ArrayLike,
    task: str = "auto",
    standardize: bool = False,
    *,
    weights: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    class_weight: str | Mapping[Any, float] | None = None,
    copies: str = TOGETHER,
    near: Mapping[str, object] | None = None,
    gram: bool = False,
    **columns: Any,
) -> Dataset:
    """Turn features and target given apart into a data set.

    Parameters
    ----------
    X : (n, d) array, sparse matrix or DataFrame
        The columns of an array or matrix are called ``x0, x1, ...``; a DataFrame (of pandas, polars or pyarrow) may
        have text columns. A sparse matrix, and a DataFrame of sparse columns, stay sparse.
    y : (n,) or (n, k) array, list, Series or DataFrame
        Numbers, or labels of any kind; several columns are targets of one regression.
    weights, groups : (n,) array, optional
    class_weight : "balanced" or mapping of label to weight, optional
    copies : {"together", "apart"}
    near : mapping of str to object, optional
        As in `prepare`; the columns of an array may be numbers.
    gram : bool
        Whether X is a Gram matrix (n, n), for the kernel ``precomputed``: it is taken as it is.
    **columns : optional
        What is said about columns and about missing values: see `kernsel.data.choices.make_choices`.

    Raises
    ------
    DataError
        They can't be used; the message names the column.
    """
    X, y = as_pandas(X), as_pandas(y)
    choices = make_choices(**columns)
    if gram:
        X, standardize, choices = read_gram(X, choices), False, Choices(missing="refuse")
    table = as_table(X)
    if choices.named and not is_frame(table) and not isinstance(table, SparseTable):
        import pandas as pd

        table = pd.DataFrame(table, columns=list(array_names(table.shape[1])), copy=False)
    targets = split_targets(y)
    if is_frame(X):
        import pandas as pd

        targets = {name: pd.Series(each) for name, each in targets.items()}
    for column in targets.values():
        _check_lengths(len(table), len(column))
    sample = read_sample(len(table), weights, groups, read_near(near, table, "X"))
    if choices.named:
        choices = choices.resolved(names_in(table), (), "X")
    aside = tuple(targets)
    made = _dataset(table, targets, aside, task, standardize, sample, class_weight, choices, [], None)
    made = replace(made, copies=check_copies(copies))
    if not gram:
        return made
    X = np.column_stack([made.places, made.X])
    return replace(made, X=X, encoder=replace(made.encoder, similarities=True))


def read_gram(K: Any, choices: Choices) -> Array:
    """Return a Gram matrix (n, n) as it is worked on; an error if it can't be one, or columns of it are chosen."""
    if choices.named:
        raise OptionError("kernel 'precomputed': a Gram matrix has no columns to choose; leave drop, keep and such out")
    try:
        values = np.asarray(K.toarray() if is_sparse(K) else K, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"kernel 'precomputed': X must be numbers, a Gram matrix; {error}") from error
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        raise DataError(
            f"kernel 'precomputed': X must be a square Gram matrix, a row and a column for each row, not {values.shape}"
        )
    if not np.isfinite(values).all():
        raise DataError("kernel 'precomputed': X holds values that are not finite; compute them anew")
    return symmetric(values, "kernel 'precomputed': X")


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
    check_rows(len(table))
    found = find(table, Choices(), np.arange(len(table)))
    return _encoded(table, (), standardize, None, None, Choices(), found, [])[1]


def _dataset(
    table: Table,
    columns: Mapping[str, Any],
    aside: tuple[str, ...],
    task: str,
    standardize: bool,
    sample: Sample,
    class_weight: str | Mapping[Any, float] | None,
    choices: Choices,
    notes: list[str],
    source: str | None,
) -> Dataset:
    """Leave out rows without weight or values, encode the target, weigh the classes, encode the features."""
    check_rows(len(table))
    notes = [*notes, *sample.notes]
    table = sample.rows(table)
    columns = {name: sample.rows(column) for name, column in columns.items()}
    read = {name: sign_of(column.rename(name)) for name, column in columns.items() if hasattr(column, "iloc")}
    signs = {name: sign for name, sign in read.items() if sign is not None}
    table, columns, sample = _with_targets(table, columns, sample, choices.missing, notes)
    found = find(table, choices, sample.places)
    if choices.missing == "drop" and not isinstance(table, SparseTable):
        rows = incomplete(table, found)
        if rows.any():
            gaps = [each for each in found or () if each.gaps and each.reason is None]
            shares = ", ".join(f"{each.name!r} {share(each.gaps, len(table))}" for each in gaps)
            notes.append(
                f"{some_rows(int(rows.sum()), len(rows))} with missing values left out"
                + (f" ({shares})" if shares else "")
            )
            kept = np.flatnonzero(~rows)
            check_left(kept.size, "missing values; give --missing impute, or --drop columns that lack many")
            table, sample = take(table, kept), sample.take(kept)
            columns = {name: take(column, kept) for name, column in columns.items()}
            found = find(table, choices, sample.places)
    target = encode_targets(columns, task, sample.weights)
    if class_weight is not None:
        by_class = class_weights(class_weight, target, sample.weights)
        notes.append(f"class weights: {class_weight}")
        weights = by_class if sample.weights is None else by_class * sample.weights
        asked = class_weight if isinstance(class_weight, str) else {str(k): float(v) for k, v in class_weight.items()}
        sample = replace(sample, weights=weights, by_class=by_class, class_weight=asked)
    if sample.weights is not None:
        notes.append(describe_weights(sample.places.size, float(sample.weights.sum())))
    encoder, X, document = _encoded(table, aside, standardize, sample.weights, target.Y, choices, found, notes)
    encoder = replace(encoder, signs={**signs, **(encoder.signs or {})})
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
        notes=[*notes, target.note, *what_is_shared(encoder)],
        sample=sample,
        source=source,
        columns=document,
    )


def _with_targets(
    table: Table, columns: Mapping[str, object], sample: Sample, policy: str, notes: list[str]
) -> tuple[Table, dict[str, Any], Sample]:
    """Leave out the rows that lack a target, or refuse them."""
    empty = np.zeros(len(table), dtype=bool)
    for name, column in columns.items():
        holes = target_gaps(column)
        if holes.any() and policy == "refuse":
            raise DataError(missing_values(holes, name))
        empty |= holes
    if not empty.any():
        return table, dict(columns), sample
    kept = np.flatnonzero(~empty)
    whose = f"the target {next(iter(columns))!r}" if len(columns) == 1 else "one of the targets"
    check_left(kept.size, f"no value of {whose}; choose another one")
    notes.append(f"{some_rows(int(empty.sum()), len(empty))} without {whose} left out")
    return take(table, kept), {name: _plain(take(each, kept)) for name, each in columns.items()}, sample.take(kept)


def _plain(column: Any) -> Any:
    """Return a column of whole numbers as integers: gaps made them floating-point numbers."""
    if not hasattr(column, "iloc") or is_text(column) or column.dtype.kind != "f":
        return column
    import pandas as pd

    return pd.Series(whole_numbers(column.to_numpy(dtype=np.float64)), name=column.name)


def _encoded(
    table: Table,
    aside: tuple[str, ...],
    standardize: bool,
    weights: Array | None,
    Y: Array | None,
    choices: Choices,
    found: list[Found] | None,
    notes: list[str],
) -> tuple[Encoder, Points, list[dict[str, Any]] | None]:
    """Encode features, and say in the notes what became of them."""
    document, left_out = None, {}
    if isinstance(table, SparseTable):
        encoder, X = fit_sparse(table, aside, standardize, weights, choices, notes)
    else:
        fit = Fit(names_in(table), choices, len(table), standardize, weights, Y)
        if found is not None:
            encoder, X = fit_frame(fit, table, found, aside)
            document = fit.document()
        else:
            encoder, X = fit_matrix(fit, table, aside)
        notes += fit.notes()
        left_out = fit.left_out()
    if choices.categories == HAMMING and not encoder.groups:
        notes.append("categories: no column has any, so that hamming changes nothing")
    check_any_feature(encoder, left_out)
    return encoder, X, document


def _check_lengths(n: int, m: int) -> None:
    if n != m:
        raise DataError(f"X has {n} rows and y has {m}; they must have as many")
