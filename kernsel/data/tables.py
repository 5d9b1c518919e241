"""Tables, be they DataFrames or sparse: what is asked of both, in one place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_array

from kernsel.data.columns import as_matrix
from kernsel.numerics.points import Points, as_points, is_sparse
from kernsel.types import Array, Indices

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class SparseTable:
    """A sparse matrix whose columns have names: a table of numbers, most of them 0.

    Parameters
    ----------
    X : (n, d) csr_array
    names : tuple of d str
    attrs : dict
        What is known besides, as a DataFrame has it.
    """

    X: Points
    names: tuple[str, ...]
    attrs: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @classmethod
    def of_frame(cls, frame: pd.DataFrame) -> SparseTable | None:
        """Return a DataFrame as a sparse table if all of its columns are sparse numbers, mostly 0; else None."""
        if not frame.shape[1] or not all(map(_is_sparse_number, frame.dtypes)):
            return None
        arrays = [frame.iloc[:, j].array for j in range(frame.shape[1])]
        rows = [array.sp_index.to_int_index().indices for array in arrays]
        values = [np.asarray(array.sp_values, dtype=np.float64) for array in arrays]
        starts = np.concatenate([[0], np.cumsum([len(each) for each in rows])])
        X = csc_array((np.concatenate(values), np.concatenate(rows), starts), shape=frame.shape)
        return cls(as_points(X), tuple(str(name) for name in frame.columns), dict(frame.attrs))


def _is_sparse_number(dtype: Any) -> bool:
    if not hasattr(dtype, "fill_value"):
        return False
    return dtype.subtype.kind in "biuf" and bool(dtype.fill_value == 0)


def as_pandas(table: object) -> Any:
    """Return a DataFrame or Series of polars, pyarrow or another library as one of pandas; what isn't one as it is."""
    module = type(table).__module__.partition(".")[0]
    if module in ("numpy", "pandas", "builtins", "scipy", "kernsel") or is_sparse(table):
        return table
    if module not in ("polars", "pyarrow", "modin", "cudf", "narwhals", "duckdb", "ibis", "dask"):
        return table
    import pandas as pd

    try:
        import narwhals.stable.v1 as nw
    except ImportError:
        return table.to_pandas() if hasattr(table, "to_pandas") else table
    frame = nw.from_native(table, allow_series=True)
    if hasattr(frame, "collect"):
        frame = frame.collect()
    if isinstance(frame, nw.Series):
        return pd.Series(frame.to_numpy(), name=frame.name)
    # Through NumPy column by column: polars itself needs pyarrow for this.
    return pd.DataFrame({name: frame[name].to_numpy() for name in frame.columns})


Table = Any
"""A DataFrame, a SparseTable, or an (n, d) array: what `as_table` returns."""


def is_frame(table: object) -> TypeGuard[pd.DataFrame]:
    """Say whether a table is a DataFrame."""
    return hasattr(table, "columns")


def as_table(X: object) -> Table:
    """Return features as a table, sparse ones as a SparseTable with the names ``x0, x1, ...``; DataError if they can't.

    Parameters
    ----------
    X : DataFrame, SparseTable, array or sparse matrix
    """
    if isinstance(X, SparseTable):
        return X
    X = as_pandas(X)
    if is_frame(X):
        return SparseTable.of_frame(X) or X
    matrix = as_matrix(X)
    return SparseTable(matrix, array_names(matrix.shape[1])) if is_sparse(matrix) else matrix


def array_names(d: int) -> tuple[str, ...]:
    """Return the names that the columns of an array have."""
    return tuple(f"x{j}" for j in range(d))


def names_of(table: pd.DataFrame | SparseTable) -> list[str]:
    """Return the names of the columns."""
    return list(table.names) if isinstance(table, SparseTable) else [str(name) for name in table.columns]


def column_of(table: pd.DataFrame | SparseTable, name: str) -> pd.Series:
    """Return a column by its name, the first one of that name."""
    place = names_of(table).index(name)
    if not isinstance(table, SparseTable):
        return table.iloc[:, place].rename(name)
    import pandas as pd

    values = table.X[:, [place]].toarray().ravel()
    return pd.Series(whole_numbers(values), name=name)


def whole_numbers(values: Array) -> npt.NDArray[Any]:
    """Return numbers as integers if all of them are whole: labels are to look like those of the file."""
    whole = np.array_equal(values, np.round(values)) and np.abs(values).max(initial=0) < 2**53
    return values.astype(np.int64) if whole else values


def without(table: pd.DataFrame | SparseTable, names: Iterable[str]) -> Any:
    """Return the table without the columns of these names."""
    left_out = set(names)
    kept = [j for j, name in enumerate(names_of(table)) if name not in left_out]
    if not isinstance(table, SparseTable):
        return table.iloc[:, kept]
    return replace(table, X=table.X[:, kept], names=tuple(table.names[j] for j in kept), attrs=dict(table.attrs))


def take(table: Any, rows: Indices) -> Any:
    """Return some rows of a table, column, array or list."""
    if isinstance(table, SparseTable):
        return replace(table, X=table.X[rows])
    table = as_pandas(table)
    if is_sparse(table):
        return table.tocsr()[rows]
    return table.iloc[rows] if hasattr(table, "iloc") else np.asarray(table)[rows]
