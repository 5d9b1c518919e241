"""Simple kriging in a neighbourhood: numbers predicted from those of the nearest points, by a Laplacian kernel.

A point x of which some coordinates O are known has, from the nearest m of the centres c_i with numbers t_i, where
``D(x, z) = sum_{k in O} |x_k - z_k|``, the prediction

    f(x) = k' (K + diag(v))^-1 t,    K_il = exp(-D(c_i, c_l) / w),    k_i = exp(-D(x, c_i) / w).

Of centres at one distance, to a ``SAME``-th of w, the first ones are the nearest. Each point has a system of its own,
O(N |O| + m^2 |O| + m^3) for N centres; the numbers are the same for any number of threads, and whatever the other
points are.

Source: Cressie, *Statistics for Spatial Data*, section 3.2.
"""

from __future__ import annotations

import numpy as np
from numba.core import types

from kernsel.numerics.runtime.jit import REORDER, b1, f8, f8_1, f8_2, i8, inline, jit
from kernsel.numerics.runtime.threads import share
from kernsel.types import Array, Mask

SAME = 1e-9
"""Distances that differ by less than this share of the width are one: rounding mustn't say which of them count where
values repeat, as those of rounded numbers do."""

_FEW = 64
"""So many points take a millisecond or two: as long as threads take to start."""


def krige(X: Array, known: Mask, C: Array, t: Array, v: Array, width: float, nearest: int) -> Array:
    """Predict numbers of points from those of the nearest centres, (n,).

    Parameters
    ----------
    X : (n, q) array
        What isn't known may be any finite number.
    known : (n, q) array of bool
    C : (N, q) array
        Centres, at least one.
    t, v : (N,) arrays
        Their numbers, and variances of these relative to that of f; greater than 0.
    width : float
        w.
    nearest : int
        m, at most N.
    """
    out = np.empty(len(X))
    X, known, columns = np.ascontiguousarray(X), np.ascontiguousarray(known), np.ascontiguousarray(C.T)

    def work(first: int, step: int) -> None:
        _krige(X, known, columns, t, v, width, nearest, first, step, out)

    share(work, len(X) if len(X) >= _FEW else 1)
    return out


@inline
def _take_nearest(D, near):
    """Write the places of the smallest D into ``near``, the first ones of those that are equal, ascending by D."""
    m, filled = near.size, 0
    for i in range(D.size):
        if filled == m and not D[i] < D[near[m - 1]]:
            continue
        at = filled if filled < m else m - 1
        while at > 0 and D[i] < D[near[at - 1]]:
            near[at] = near[at - 1]
            at -= 1
        near[at] = i
        filled = min(filled + 1, m)


@inline(fastmath=REORDER)
def _solve(K, b):
    """Overwrite b with ``K^-1 b``, and the lower triangle of K, which is read alone, with its factor."""
    m = b.size
    for i in range(m):
        row = K[i]
        for j in range(i + 1):
            other = K[j]
            total = row[j]
            for k in range(j):
                total -= row[k] * other[k]
            row[j] = np.sqrt(total) if i == j else total / other[j]
    for i in range(m):
        for k in range(i):
            b[i] -= K[i, k] * b[k]
        b[i] /= K[i, i]
    for i in range(m - 1, -1, -1):
        b[i] /= K[i, i]
        for k in range(i):
            b[k] -= K[i, k] * b[i]


@jit(
    types.void(f8_2, types.Array(b1, 2, "C"), f8_2, f8_1, f8_1, f8, i8, i8, i8, f8_1),
    fastmath=REORDER,
)
def _krige(X, known, columns, t, v, width, nearest, first, step, out):
    """Predict for every ``step``-th point; the centres are columns here, (q, N)."""
    N = columns.shape[1]
    D, steps, near = np.empty(N), np.empty(N), np.empty(nearest, np.int64)
    K, values, a = np.empty((nearest, nearest)), np.empty(nearest), np.empty(nearest)
    for row in range(first, X.shape[0], step):
        D[:] = 0.0
        for j in range(X.shape[1]):
            if known[row, j]:
                x, column = X[row, j], columns[j]
                for i in range(N):
                    D[i] += abs(x - column[i])
        for i in range(N):
            steps[i] = np.rint(D[i] / (SAME * width))
        _take_nearest(steps, near)
        K[:] = 0.0
        for j in range(X.shape[1]):
            if known[row, j]:
                for i in range(nearest):
                    values[i] = columns[j, near[i]]
                for i in range(nearest):
                    line, x = K[i], values[i]
                    for k in range(i):
                        line[k] += abs(x - values[k])
        for i in range(nearest):
            for k in range(i):
                K[i, k] = np.exp(-K[i, k] / width)
            K[i, i] = 1.0 + v[near[i]]
            a[i] = t[near[i]]
        _solve(K, a)
        total = 0.0
        for i in range(nearest):
            total += np.exp(-D[near[i]] / width) * a[i]
        out[row] = total
