"""Derivatives by the relevances of features, all of them in O(n^2 d).

A kernel that depends on ``sum_r theta_r (x_r - z_r)^2``, or on ``sum_r theta_r x_r z_r``, has derivatives by each
theta_r that are a weight V_ij of the pair times the r-th term. Their sums over all pairs expand::

    sum_ij V_ij (x_ir - x_jr)^2 = sum_i (V 1)_i x_ir^2 + sum_j (V' 1)_j x_jr^2 - 2 sum_i x_ir (V X)_ir
    sum_ij V_ij x_ir x_jr       = sum_i x_ir (V X)_ir

so that d of them are two matrix products, and no array of n x n x d is ever made. Absolute differences don't expand:
compiled loops sum up ``V_ij |x_ir - z_jr|`` for one x after another, over tiles of z that stay in the cache. The second
points may be others. Either of the two may be sparse.
"""

from __future__ import annotations

import numpy as np
from numba.core import types

from kernsel.numerics.gram import share_elements
from kernsel.numerics.points import Points, as_points, is_sparse
from kernsel.numerics.runtime.jit import REORDER, f8_1, f8_2, given_2, i8, jit
from kernsel.numerics.sparse import ROWS, parts_of, sparse_rows

_TILE = 512
"""Second points at a time: 4 kB of a feature and of the weights stay in the first-level cache."""


def sums_of_squares(X: Points, V: np.ndarray, Z: Points | None = None) -> np.ndarray:
    """Return ``sum_ij V_ij (x_ir - z_jr)^2`` of each column r of X (n, d) and Z (m, d), for V (n, m): (d,).

    Without Z it is X.
    """
    if is_sparse(X) or is_sparse(Z):
        others = X if Z is None else Z
        squares = V.sum(axis=1) @ (X * X) + V.sum(axis=0) @ (others * others)
        return np.asarray(squares - 2.0 * sums_of_products(X, V, Z))
    centre = X.mean(axis=0)  # differences stay, and digits are kept where the mean is large
    X, Z = X - centre, (X if Z is None else Z) - centre
    return np.asarray(V.sum(axis=1) @ X**2 + V.sum(axis=0) @ Z**2 - 2.0 * sums_of_products(X, V, Z))


def sums_of_products(X: Points, V: np.ndarray, Z: Points | None = None) -> np.ndarray:
    """Return ``sum_ij V_ij x_ir z_jr`` of each column r of X (n, d) and Z (m, d), for V (n, m): (d,)."""
    product = np.asarray(V @ (X if Z is None else Z))
    if is_sparse(X):
        return np.asarray(X.multiply(product).sum(axis=0)).ravel()
    return np.asarray(np.einsum("ir,ir->r", X, product))


def sums_of_differences(X: Points, V: np.ndarray, Z: Points | None = None) -> np.ndarray:
    """Return ``sum_ij V_ij |x_ir - z_jr|`` of each column r of X (n, d) and Z (m, d), for V (n, m): (d,).

    The sums of each row, (n, d), are added up in their order: the same for any number of threads. Of sparse rows
    ``|x - z|`` is ``|x| + |z|`` and a rest, which only pairs have that share the feature: O(nnz) memory.
    """
    V = np.ascontiguousarray(V)
    if is_sparse(X) or is_sparse(Z):
        return _of_sparse(as_points(X), V, as_points(X if Z is None else Z))
    sums = np.empty(X.shape)
    Zt = np.ascontiguousarray((X if Z is None else Z).T)
    loop = _differences.code  # compiled here, not by several threads at once
    share_elements(lambda first, step: loop(X, Zt, V, first, step, sums), V.size)
    return np.asarray(sums.sum(axis=0))


@jit(types.void(given_2, f8_2, given_2, i8, i8, f8_2), fastmath=REORDER)
def _differences(X, Zt, V, first, step, sums):
    """Fill every ``step``-th row of ``sums (n, d)``."""
    d, m = Zt.shape
    for i in range(first, X.shape[0], step):
        for r in range(d):
            sums[i, r] = 0.0
        for low in range(0, m, _TILE):
            high = min(low + _TILE, m)
            for r in range(d):
                x, total = X[i, r], 0.0
                for j in range(low, high):
                    total += V[i, j] * abs(x - Zt[r, j])
                sums[i, r] += total


def _of_sparse(X: object, V: np.ndarray, Z: object) -> np.ndarray:
    x, z = sparse_rows(X), sparse_rows(Z)
    both = np.zeros(x.nnz)
    arguments = [parts_of(x), parts_of(z.T.tocsr()), V]
    loop = _shared.code
    share_elements(lambda first, step: loop(*arguments, first, step, both), V.size)
    rest = np.bincount(x.indices, both, minlength=x.shape[1])
    return np.asarray(V.sum(axis=1) @ abs(x) + V.sum(axis=0) @ abs(z) + rest)


@jit(types.void(ROWS, ROWS, given_2, i8, i8, f8_1), fastmath=REORDER)
def _shared(x_rows, z_transposed, V, first, step, both):
    """Fill ``both (nnz,)`` at the values of every ``step``-th row x."""
    (x, x_columns, x_starts), (t, t_rows, t_starts) = x_rows, z_transposed
    for i in range(first, V.shape[0], step):
        for p in range(x_starts[i], x_starts[i + 1]):
            v, k, total = x[p], x_columns[p], 0.0
            for q in range(t_starts[k], t_starts[k + 1]):
                total += V[i, t_rows[q]] * (abs(v - t[q]) - (abs(v) + abs(t[q])))
            both[p] = total
