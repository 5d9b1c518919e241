"""Gram matrices of sparse rows, made as those of dense ones are (see ``gram``), in O(nnz) memory beside the result.

All three statistics of a pair are sums over the features that both points have::

    inner   sum x_k z_k       sqdist   |x|^2 + |z|^2 - 2 sum x_k z_k
    l1      |x|_1 + |z|_1 + sum (|x_k - z_k| - (|x_k| + |z_k|))

For one x after another, each of its features adds a term for those points z that have it, which the transpose of Z
lists. The result is dense at once: most pairs share some feature, and a kernel is rarely 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.core import types
from numpy.typing import NDArray
from scipy.sparse import csr_array

from kernsel.numerics.gram import (
    AS_IT_IS,
    FORMULA,
    INNER,
    L1,
    NEAR,
    SQDIST,
    STATISTICS,
    Formula,
    finish,
    share_elements,
)
from kernsel.numerics.points import Points, is_sparse, squared_norms
from kernsel.numerics.runtime.jit import CONTRACT, f8, f8_1, f8_2, i8, inline, jit, record
from kernsel.types import Array, Indices

VALUES, COLUMNS, STARTS = (types.Array(kind, 1, "C", readonly=True) for kind in (f8, types.int32, i8))
"""Of rows as they were given, which may not be written to."""


@inline(fastmath=CONTRACT)
def _distance(x, x_columns, lo, hi, z, z_columns, low, high, statistic):
    """Sum up squared or absolute differences of the stored values ``lo:hi`` of one row and ``low:high`` of another."""
    total = 0.0
    while lo < hi or low < high:
        difference = 0.0
        left = lo < hi and (low >= high or x_columns[lo] <= z_columns[low])
        if low < high and (lo >= hi or z_columns[low] <= x_columns[lo]):
            difference = -z[low]
            low += 1
        if left:
            difference += x[lo]
            lo += 1
        total += abs(difference) if statistic == L1 else difference * difference
    return total


class Rows(NamedTuple):
    """Sparse rows: row i has the values ``values[p]`` in ``columns[p]`` for ``starts[i] <= p < starts[i + 1]``.

    Parameters
    ----------
    values : (nnz,) array of float64
    columns : (nnz,) array of int32
        Ascending in each row.
    starts : (n + 1,) array of int64
    """

    values: Array
    columns: NDArray[np.int32]
    starts: Indices


ROWS = record(Rows, VALUES, COLUMNS, STARTS)


@jit(types.void(ROWS, ROWS, ROWS, f8_1, f8_1, i8, FORMULA, i8, i8, f8_2), fastmath=CONTRACT)
def _rows(x_rows, z_rows, z_transposed, xx, zz, statistic, formula, first, step, K):
    """Compute every ``step``-th row of K; xx, zz are the norms that the statistic needs.

    Where little is left of the norms of two points, so are their digits: as for dense rows, the statistic is then
    computed anew from the differences, which are 0 exactly for equal points.
    """
    (x, x_columns, x_starts), (z, z_columns, z_starts), (t, t_rows, t_starts) = x_rows, z_rows, z_transposed
    for i in range(first, K.shape[0], step):
        row = K[i]
        for j in range(row.size):
            row[j] = 0.0
        for p in range(x_starts[i], x_starts[i + 1]):
            v, k = x[p], x_columns[p]
            if statistic == L1:
                for q in range(t_starts[k], t_starts[k + 1]):
                    row[t_rows[q]] += abs(v - t[q]) - (abs(v) + abs(t[q]))
            else:
                for q in range(t_starts[k], t_starts[k + 1]):
                    row[t_rows[q]] += v * t[q]
        if statistic != INNER:
            factor = -2.0 if statistic == SQDIST else 1.0
            for j in range(row.size):
                both = xx[i] + zz[j]
                row[j] = both + factor * row[j]
                if row[j] < NEAR * both:
                    row[j] = _distance(
                        x,
                        x_columns,
                        x_starts[i],
                        x_starts[i + 1],
                        z,
                        z_columns,
                        z_starts[j],
                        z_starts[j + 1],
                        statistic,
                    )
        finish(row, formula)


def gram(statistic: str, X: Points, Z: Points | None = None, formula: Formula = AS_IT_IS) -> Array:
    """Compute a statistic, or a formula of it, for all pairs of rows, where those of X or of Z are sparse.

    Parameters
    ----------
    statistic : {"inner", "sqdist", "l1"}
    X : (n, d) points
    Z : (m, d) points, or None for the symmetric matrix of X with itself
    formula : Formula
        The statistic itself unless given.

    Returns
    -------
    K : (n, m) array
        As from ``gram.gram``. It is exactly symmetric, for the terms of a pair come in the order of the features
        whichever of the two is x.
    """
    x = sparse_rows(X)
    z = x if Z is None else sparse_rows(Z)
    code = STATISTICS.index(statistic)
    arguments = [parts_of(x), parts_of(z), parts_of(z.T.tocsr()), _norms(x, code), _norms(z, code), code, formula]
    K = np.empty((x.shape[0], z.shape[0]))
    loop = _rows.code  # compiled here, not by several threads at once

    def task(first: int, step: int) -> None:
        loop(*arguments, first, step, K)

    share_elements(task, K.size)
    return K


def sparse_rows(X: Points) -> Points:
    """Return rows as sparse ones, whether they are or not."""
    return X if is_sparse(X) else csr_array(X)


def parts_of(X: Points) -> Rows:
    """Return the arrays of sparse rows, read-only; SciPy has columns and starts in 32 bits or both in 64."""
    parts = Rows(X.data.view(), X.indices.astype(np.int32, copy=False).view(), X.indptr.astype(np.int64))
    for each in parts:
        each.flags.writeable = False
    return parts


def _norms(X: Points, code: int) -> Array:
    """Return what the statistic needs of each row: ``|x|_1`` or ``|x|^2``."""
    return np.asarray(abs(X).sum(axis=1)) if code == L1 else squared_norms(X)
