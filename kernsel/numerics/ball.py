"""The smallest ball that encloses the rows in feature space.

Its centre is a mixture ``c = sum_i beta_i phi(x_i)`` with ``beta >= 0``, ``sum beta = 1``, its radius the maximum of

    R^2(beta) = sum_i beta_i K_ii - beta' K beta.

Steps that move weight from one row to another (Frank-Wolfe with pairwise steps, as sequential minimal optimisation
does) converge linearly. Every beta gives a lower bound, R^2(beta), and an upper one, the largest squared distance from
its centre; the search ends where they agree.
"""

from __future__ import annotations

import numpy as np
from numba.core import types
from numpy.typing import NDArray

from kernsel.numerics.blas import inner
from kernsel.numerics.jit import b1, f8, f8_1, f8_2, i8, inline, jit
from kernsel.numerics.newton import CONVERGED, UNFINISHED

Array = NDArray[np.float64]

GAP, ROUNDING = 1e-5, 1e-14
"""The two bounds agree to this share of R^2, far below what distinguishes two kernels, or of ``K_ii``."""

STEPS = 200
"""Steps a row at most."""


@inline
def column(G, full, ridge, i, out):
    """Fill ``out`` with column i of K: of the Gram matrix ``G``, or of ``G G'``, with the ridge on its diagonal."""
    for j in range(out.size):
        out[j] = G[i, j] if full else inner(G[i], G[j])
    out[i] += ridge[i]


@jit(types.Tuple((f8, i8))(f8_2, b1, f8_1, f8_1, f8_1))
def _enclose(G, full, ridge, diag, beta):
    n = beta.size
    g, give, take = np.zeros(n), np.empty(n), np.empty(n)
    for i in range(n):
        if beta[i] > 0.0:
            column(G, full, ridge, i, give)
            for j in range(n):
                g[j] += beta[i] * give[j]
    lower = 0.0
    for _ in range(STEPS * n):
        far, square, mixed = 0, 0.0, 0.0
        for i in range(n):
            if diag[i] - 2.0 * g[i] > diag[far] - 2.0 * g[far]:
                far = i
            square += beta[i] * g[i]
            mixed += beta[i] * diag[i]
        lower = mixed - square
        upper = diag[far] - 2.0 * g[far] + square
        if upper - lower <= GAP * upper + ROUNDING * diag[far]:
            return lower, CONVERGED
        column(G, full, ridge, far, give)
        near, best, step = far, 0.0, 0.0
        for i in range(n):
            slope = (diag[far] - 2.0 * g[far]) - (diag[i] - 2.0 * g[i])
            if beta[i] > 0.0 and slope > 0.0:
                apart = max(diag[far] + diag[i] - 2.0 * give[i], 1e-300)  # 0 between equal rows
                along = min(0.5 * slope / apart, beta[i])
                gain = along * (slope - along * apart)
                if gain > best:
                    near, best, step = i, gain, along
        if near == far:
            return lower, UNFINISHED
        column(G, full, ridge, near, take)
        beta[far] += step
        beta[near] = 0.0 if step == beta[near] else beta[near] - step
        for j in range(n):
            g[j] += step * (give[j] - take[j])
    return lower, UNFINISHED


def squared_radius(G: Array, full: bool, ridge: Array, beta: Array) -> tuple[float, int]:
    """Return R^2 of the smallest ball around the rows of ``K + diag(ridge)``, and a key of ``newton.REASONS`` or 0.

    Parameters
    ----------
    G : (n, n) or (n, r) array
        The Gram matrix if ``full``, else features with ``K = G G'``.
    full : bool
    ridge : (n,) array
        Every row has a coordinate of its own, of this squared length: the squared hinge's slack.
    beta : (n,) array
        Weights to start from, overwritten by those of the centre.
    """
    diag = (G.diagonal() if full else np.einsum("ij,ij->i", G, G)) + ridge
    value, status = _enclose(np.ascontiguousarray(G), full, ridge, diag, beta)
    return float(value), int(status)
