"""Rows of features, dense or sparse, and what is asked of them without knowing which.

Dense rows are an (n, d) float64 array, C-contiguous. Sparse rows are a ``scipy.sparse.csr_array`` of float64 in
canonical form: the columns of a row ascending, none twice, and no zero among the stored values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from kernsel.types import Array, Indices

Points: TypeAlias = Any
"""An (n, d) array or csr_array, or what can be made one of them; SciPy's sparse arrays have no types of their own."""

Kernel = Callable[[Points, Points], Array]
"""``k(x, z)`` of some rows and others."""

SHARED = 0.08
"""Rows are kept dense where more pairs of them than this share a feature, on average over the features: 28 % of
nonzeros, if all features have as many. What takes their sparse Gram matrix its time are these pairs, about 1.5 ns each,
and the dense one takes 0.065 ns a pair and feature: equal at 0.045, and dense is 1.5 times as fast at 0.08 (at 1000
landmarks, one thread). The dense rows take at most 8 times the memory."""


class Rearranged:
    """Dense rows in another order, gathered block by block as they are asked for: a second copy would be large.

    Whoever needs them all at once has NumPy make an array of it.

    Parameters
    ----------
    given : (n, d) array
    order : (n,) array
        Row i is ``given[order[i]]``.
    """

    def __init__(self, given: Array, order: Indices) -> None:
        self.given, self.order = given, order
        self.shape = len(order), given.shape[1]

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, rows: Any) -> Array:
        return np.asarray(self.given[self.order[rows]])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self.given[self.order], dtype=dtype)


def read_only(array: Array) -> Array:
    """Return an array that shares its numbers and can't be written to: for those whose code isn't ours."""
    view = array.view()
    view.flags.writeable = False
    return view


def is_sparse(X: object) -> bool:
    """Say whether X is a sparse matrix or array of SciPy."""
    return hasattr(X, "tocsr")


def as_points(X: Points) -> Points:
    """Return rows as they are worked on; X is never changed, and shared where it is in that form already."""
    if not is_sparse(X):
        return np.ascontiguousarray(X, dtype=np.float64)
    rows = csr_array(X.astype(np.float64, copy=False))  # before duplicates are summed, which small integers overflow
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    if not rows.data.all():
        rows = rows.copy()
        rows.eliminate_zeros()
    return rows


def dense(X: Points) -> Array:
    """Return rows as a dense array."""
    return np.ascontiguousarray(X.toarray()) if is_sparse(X) else X


def in_better_form(X: Points) -> Points:
    """Return rows in the form that is better for them: dense if too many of them share features, see ``SHARED``."""
    if not is_sparse(X):
        return X
    n, d = X.shape
    having = np.bincount(X.indices, minlength=d) / max(n, 1)
    return dense(X) if having @ having > SHARED * d else X


def squared_norms(X: Points) -> Array:
    """Return ``|x|^2`` of each row, (n,)."""
    return np.asarray((X * X).sum(axis=1)) if is_sparse(X) else np.einsum("ij,ij->i", X, X)


def columns(X: Points, which: Indices | list[int], factors: Array | None = None) -> Points:
    """Return some columns (X itself if it has no others), times ``factors`` (len(which),) if there are any."""
    some = X if np.array_equal(which, np.arange(X.shape[1])) else X[:, which]
    if factors is None:
        return as_points(some)
    return as_points(with_values(some, some.data * factors[some.indices]) if is_sparse(X) else some * factors)


def with_values(X: Points, data: Array) -> Points:
    """Return sparse rows with other values at the same places."""
    return csr_array((data, X.indices, X.indptr), shape=X.shape)


def deviations(X: Points, weights: Array) -> Array:
    """Return the standard deviation of each column, (d,), weighted; nothing over- or underflows.

    Of sparse rows ``sum_i s_i (x_i - m)^2`` is that over the stored values and ``m^2`` times the weight of the others.

    Parameters
    ----------
    X : (n, d) points
    weights : (n,) array
    """
    s = weights / weights.sum()
    mean = s @ X
    if not is_sparse(X):
        off = X - mean
        largest = np.abs(off).max(axis=0)
        squares = s @ (off / np.where(largest > 0, largest, 1.0)) ** 2
        return np.asarray(largest * np.sqrt(squares))
    n, d = X.shape
    of_values = np.repeat(s, np.diff(X.indptr))
    zeros = np.bincount(X.indices, minlength=d) < n
    off, largest = X.data - mean[X.indices], np.where(zeros, np.abs(mean), 0.0)
    np.maximum.at(largest, X.indices, np.abs(off))
    unit = np.where(largest > 0, largest, 1.0)
    squares = np.bincount(X.indices, of_values * (off / unit[X.indices]) ** 2, minlength=d)
    left = np.where(zeros, 1.0 - np.bincount(X.indices, of_values, minlength=d), 0.0)  # exactly 0, whatever rounding
    return np.asarray(largest * np.sqrt(squares + left * (mean / unit) ** 2))
