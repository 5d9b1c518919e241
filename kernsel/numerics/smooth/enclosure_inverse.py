"""What one inverse for all rows says of fits without each fold, and how far rounding errors may put that off.

With the curvatures D0 of the fit on all rows and a ridge mu0, let ``H0 = mu0 I_g + sum_T D0_i psi_i psi_i'`` on the
rows T that the fit without a fold keeps: the matrix of its Newton step. The inverse M of
``heldout_kernel.scaled_inverse`` gives ``H0^-1`` of all folds alike: see ``refits_kernel``. Without the rows g of the
fold, and with ``A = M_gg^-1``,

    mu0 D0_j psi_j' H0^-1 psi_j  =  A_jj - mu0                       for a row of the fold,
    h_i  =  1 - mu0 (M_ii - M_ig A M_gi)                             for one that is kept,

where the leverage ``h_i = D0_i psi_i' H0^-1 psi_i`` is the norm of ``D0_i psi_i psi_i'`` in that of H0. A is verified
by its residual. Of M an inverse from a Cholesky factor is known to be off by at most
``BACKWARD n EPS trace(H0) / mu0^2`` (Higham 2002, section 14.3).

Let ``G = sum_T c_i psi_i`` be a gradient, H the matrix H0 or another one of that form, with its own curvatures D and
ridge mu, and v any function ``sum_T p_i k_i + b`` in place of ``H^-1 G``. What v leaves,
``G - H v = sum_T (c_i - mu p_i - D_i v_i) psi_i``, has at most the norm
``(sum_T (c_i - mu p_i - D_i v_i)^2 / D_i)^1/2`` in that of ``H^-1``, which is added; so is what c may be off.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernsel.numerics.runtime.blas import inner, put_rows_times, rows_times
from kernsel.numerics.runtime.jit import inline
from kernsel.numerics.smooth.enclosure import EPS, FEW
from kernsel.numerics.smooth.refits_kernel import drop_rows
from kernsel.types import Array

BACKWARD = 8.0
"""An inverse from a Cholesky factor is off by so many times what one product with it may be."""

FAINT = 0.1
"""A row whose leverage is below the square of this has next to no curvature."""

UNSURE = 0.5
"""Above such a share an inverse of a fold's block is worth nothing."""


class Point(NamedTuple):
    """A fit without a fold.

    Parameters
    ----------
    a, f : (n,) array
        Coefficients, and outputs.
    error : float
        Outputs are off by so much, times the length of the row.
    weights : (n,) array
        0 for rows that are left out.
    slope, curvature : (n,) array
        V' and V'' at the outputs.
    c : (n,) array
        Of the gradient.
    """

    a: Array
    f: Array
    error: float
    weights: Array
    slope: Array
    curvature: Array
    c: Array


class Step(NamedTuple):
    """The function v of the module, as it was computed.

    Parameters
    ----------
    p, db : (n,) array, float
        Coefficients and bias.
    w : (n,) array
        Outputs.
    error : float
        As that of a ``Point``.
    """

    p: Array
    db: float
    w: Array
    error: float


@inline
def error_of(inverse, K, bias):
    """Return a bound of how far the norm of M is off: see the module.

    The border of a bias, ``t u u'`` with ``u = B^-1 r`` and ``1 / t = r' u``, is at most ``1 / mu0``, and off by two
    errors of u and one of t, of relative size ``||r|| ||u|| t``.
    """
    M, root, ridge, _ = inverse
    n, trace, border = root.size, 0.0, 0.0
    for i in range(n):
        trace += root[i] * root[i] * K[i, i] + ridge
    share = BACKWARD * n * EPS * trace / ridge
    if bias:
        border = 2.0 + np.sqrt(inner(root, root) * inner(M[n, :n], M[n, :n]))
    return share / ridge * (1.0 + border)


@inline
def find_steps(inverse, group, c, running, v, p, db):
    """Fill ``p (g, n)`` and ``db (g,)`` with coefficients of ``H0^-1 sum_T c_i psi_i``, for folds that are running.

    ``c (g, n)`` is 0 on rows that are left out; of ``v (g, n + bias)`` the last column is 0, the rest overwritten.
    """
    M, root = inverse.M, inverse.root
    n, count, row = root.size, 0, 0
    for k in range(running.size):
        if running[k]:
            for i in range(n):
                v[count, i] = c[k, i] / root[i]
            count += 1
    X = rows_times(v[:count], M)
    for k in range(running.size):
        if running[k]:
            drop_rows(M, group, k, X[row])
            for i in range(n):
                p[k, i] = root[i] * X[row, i]
            if M.shape[0] > n:
                db[k] = X[row, n]
            row += 1


@inline
def spread_without(inverse, off, group, k, spread):
    """Fill ``spread (n,)`` with bounds of ``(psi_i' H0^-1 psi_i)^1/2`` without a fold; return how far A may be off.

    It is infinite where there are none. Of kept rows it is ``D0_i^-1/2``: see ``sharpen``. With ``X M_gg = I + E`` and
    M off by ``off``, ``||A - X|| <= q / (1 - q) ||X||``, ``q = ||E|| + off ||X||``.
    """
    M, root, ridge, _ = inverse
    lo, rows = group.bounds[k], group.gone[group.bounds[k] : group.bounds[k + 1]]
    m, size, block, residual = rows.size, 0.0, 0.0, 0.0
    X, G = np.empty((m, m)), np.empty((m, m))
    for i in range(m):
        for j in range(m):
            X[i, j], G[i, j] = group.blocks[lo + i, j], M[rows[i], rows[j]]
            size += X[i, j] * X[i, j]
            block += G[i, j] * G[i, j]
    E, size = rows_times(X, G), np.sqrt(size)
    for i in range(m):
        for j in range(m):
            residual += (E[i, j] - (1.0 if i == j else 0.0)) ** 2
    rounding = m * EPS * size
    share = np.sqrt(residual) + rounding * np.sqrt(block) + off * size
    if not share < UNSURE:
        return np.inf
    more = share / (1.0 - share) * size + rounding
    for i in range(root.size):
        spread[i] = 1.0 / root[i]
    for i in range(m):
        most = X[i, i] + more
        spread[rows[i]] = np.sqrt((max(most - ridge, 0.0) + EPS * most) / ridge) / root[rows[i]]
    return more


@inline
def sharpen(inverse, off, more, group, k, weights, spread, room):
    """Take the leverages of rows that are kept into their ``spread (n,)``: a matrix product for all of them.

    ``room (2, m, n)`` is overwritten.
    """
    M, root, ridge, _ = inverse
    lo, rows, n = group.bounds[k], group.gone[group.bounds[k] : group.bounds[k + 1]], root.size
    X, W, Z = np.empty((rows.size, rows.size)), room[0, : rows.size], room[1, : rows.size]
    for i in range(rows.size):
        for j in range(rows.size):
            X[i, j] = group.blocks[lo + i, j]
        for j in range(n):
            W[i, j] = M[rows[i], j]
    put_rows_times(X, W, Z)
    taken, square = np.zeros(n), np.zeros(n)
    for j in range(rows.size):
        for i in range(n):
            taken[i] += W[j, i] * Z[j, i]
            square[i] += W[j, i] * W[j, i]
    for i in range(n):
        if weights[i] > 0.0:
            least = M[i, i] - taken[i] - off - more * square[i] - n * EPS * (abs(M[i, i]) + abs(taken[i]))
            spread[i] = np.sqrt(min(max(1.0 - ridge * least, 0.0) + EPS, 1.0)) / root[i]


@inline
def length_of(root, ridge, ratio, spread, steep, lengths, point, step):
    """Return bounds of ``||H^-1 G||``, and of how far the step is from ``H^-1 G``, in the norm of H.

    H has the curvatures ``root^2 (n,)`` and this ridge; the objective's ridge is ``ratio`` times as large. By
    ``spread (n,)``, bounds of ``(psi_j' H^-1 psi_j)^1/2``, a row of next to no curvature adds what is left there.
    """
    along, square, left, faint, size = 0.0, 0.0, 0.0, 0.0, size_of(step.p, lengths)
    for i in range(root.size):
        if point.weights[i] > 0.0:
            D, pull, push = root[i] * root[i], point.weights[i] * point.slope[i], ratio * ridge * point.a[i]
            rounding = step.error * lengths[i] + FEW * EPS * abs(step.w[i])
            along += step.p[i] * (step.w[i] - step.db)
            square += D * (abs(step.w[i]) + rounding) ** 2
            off = abs(point.c[i] - ridge * step.p[i] - D * step.w[i]) + D * rounding
            off += FEW * EPS * (abs(pull) + abs(push) + ridge * abs(step.p[i]))
            off += point.weights[i] * steep[i] * (point.error * lengths[i] + FEW * EPS * abs(point.f[i]))
            if root[i] * spread[i] < FAINT:
                faint += off * spread[i]
            else:
                left += off * off / D
    left = np.sqrt(left) + faint
    return np.sqrt(square + ridge * (max(along, 0.0) + 2.0 * step.error * size)) + left, left


@inline
def size_of(a, lengths):
    """Return a bound of the norm of ``sum_i a_i k_i``."""
    size = 0.0
    for i in range(a.size):
        size += abs(a[i]) * lengths[i]
    return size
