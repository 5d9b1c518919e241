"""The smallest ball that encloses the rows in feature space.

Its centre is a mixture ``c = sum_i beta_i phi(x_i)`` with ``beta >= 0``, ``sum beta = 1``, its radius the maximum of

    R^2(beta) = sum_i beta_i K_ii - beta' K beta.

Steps that move weight from one row to another (Frank-Wolfe with pairwise steps, as sequential minimal optimisation
does) converge linearly. Every beta gives a lower bound, R^2(beta), and an upper one, the largest squared distance from
its centre; their difference is the mean over beta of ``v_far - v_i`` with ``v = diag K - 2 K beta``. The search ends
where that is small. A Gram matrix is worked on as a whole. With features each step would be a pass over all rows: there
the steps are taken on the products of some hundred rows at a time, those that promise most.
"""

from __future__ import annotations

import numpy as np
from numba.core import types

from kernsel.numerics.runtime.jit import f8, f8_1, f8_2, i8, jit
from kernsel.numerics.smooth.convergence import CONVERGED, UNFINISHED
from kernsel.types import Array, Indices

GAP, ROUNDING = 1e-4, 1e-14
"""The two bounds agree to this share of R^2, far below what distinguishes two kernels, or of ``K_ii``."""

STEPS, ROUNDS = 200, 1000
"""Steps a row at most, and choices of rows at most."""

WORKING = 512
"""Rows that are worked on at a time where features are given."""


@jit(types.void(f8_2, f8_1, f8_1, f8, i8))
def _exchange(K, v, beta, enough, steps):
    """Move weight between rows until the mean over ``beta`` of ``v_far - v_i`` is ``enough``; v, beta are updated."""
    n = beta.size
    for _ in range(steps):
        far = 0
        for i in range(n):
            if v[i] > v[far]:
                far = i
        gap, near, best, step = 0.0, far, 0.0, 0.0
        for i in range(n):
            slope = v[far] - v[i]
            gap += beta[i] * slope
            if beta[i] > 0.0 and slope > 0.0:
                apart = max(K[far, far] + K[i, i] - 2.0 * K[far, i], 1e-300)  # 0 between equal rows
                along = min(0.5 * slope / apart, beta[i])
                gain = along * (slope - along * apart)
                if gain > best:
                    near, best, step = i, gain, along
        if gap <= enough or near == far:
            return
        beta[far] += step
        beta[near] = 0.0 if step == beta[near] else beta[near] - step
        for j in range(n):
            v[j] -= 2.0 * step * (K[far, j] - K[near, j])


def squared_radius(G: Array, full: bool, ridge: Array, beta: Array, working: int = WORKING) -> tuple[float, int]:
    """Return R^2 of the smallest ball around the rows of ``K + diag(ridge)``, and 0 or a key of ``REASONS``.

    Parameters
    ----------
    G : (n, n) or (n, r) array
        The Gram matrix K if ``full``, else features with ``K = G G'``.
    ridge : (n,) array
        Every row has a coordinate of its own, of this squared length: the slack of the squared hinge.
    beta : (n,) array
        Weights to start from, overwritten by those of the centre.
    working : int
        Rows that are worked on at a time where features are given.
    """
    diag = (G.diagonal() if full else np.einsum("ij,ij->i", G, G)) + ridge
    for _ in range(ROUNDS):
        Kbeta = (G @ beta if full else G @ (beta @ G)) + ridge * beta
        v, square = diag - 2.0 * Kbeta, float(beta @ Kbeta)
        far = int(np.argmax(v))
        gap, upper = float(v[far] - beta @ v), float(v[far] + square)
        enough = GAP * upper + ROUNDING * diag[far]
        if gap <= enough:
            return upper - gap, CONVERGED
        W, mass = (np.arange(beta.size), 1.0) if full else _promising(v, beta, working)
        part, pushed = beta[W], v[W]
        K = G.copy() if full else G[W] @ G[W].T
        K[np.diag_indices(W.size)] += ridge[W]
        _exchange(K, pushed, part, 0.5 * enough * mass, STEPS * W.size)
        if not (part != beta[W]).any():
            break
        beta[W] = part
    return float("nan"), UNFINISHED


def _promising(v: Array, beta: Array, working: int) -> tuple[Indices, float]:
    """Return the rows farthest away and the nearest ones with weight, and the weight of the latter.

    The mean of ``v_far - v_i`` over these is no less than that over all: there is always something to gain.
    """
    far = np.argsort(-v, kind="stable")[: working // 2]
    held = np.flatnonzero(beta > 0)
    near = held[np.argsort(v[held], kind="stable")[: working // 2]]
    return np.unique(np.concatenate([far, near])), float(beta[near].sum())
