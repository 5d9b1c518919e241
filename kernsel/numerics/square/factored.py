"""The square loss through one Cholesky factorisation a ridge: for a few ridges cheaper than an eigendecomposition.

In the coordinates of ``spectral``. With ``A = (K + ridge I)^-1``, less ``u u' / t`` for an unpenalised bias, where
``root = S^1/2 1``, ``u = (K + ridge I)^-1 root`` and ``t = root' u``, a fold S is held out by
``y_S - f_S = A_SS^-1 (A y)_S``, and where the fit leaves out more rows than are scored, by their block. With the factor
``K + ridge I = R R'`` the blocks are those of ``(R^-1)_{:,S}' (R^-1)_{:,S}``.

The fit on all rows has a larger ridge than that without a fold, ``ridge + d``. Its coefficients are the fixed point of
``a = A (y - d a)``, so that the same factor serves it: the eigenvalues of ``I + d A`` are between 1 and
``1 + d / ridge``, and with steps of ``2 / (2 + d / ridge)`` an error shrinks to ``d / (2 ridge + d)`` of itself, a
nineteenth with ten folds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.core import types

from kernsel.numerics.left_out import FOLDS, Folds
from kernsel.numerics.runtime.blas import add_products, cholesky, copy_lower, inner, invert_factor, multiply, solve_rows
from kernsel.numerics.runtime.jit import b1, f8, f8_1, f8_2, f8_3, i8, i8_1, jit, record
from kernsel.numerics.runtime.threads import one_blas_thread, share
from kernsel.numerics.smooth.convergence import SINGULAR
from kernsel.numerics.square.spectral import ROUNDING
from kernsel.types import Array

DECOMPOSITION = 10.0
"""Factorisations with the inverse of the factor, and the blocks, that cost what an eigendecomposition costs."""

STEP_ROWS = 24.0
"""A step of the fixed point, two products with half a matrix, counts as much as a factorisation of n rows does for this
many of them, by memory traffic: an estimate, not fitted to times."""


def factors_are_cheaper(lams: np.ndarray, left: np.ndarray) -> bool:
    """Say whether a factorisation for every ridge of every fold is cheaper than one eigendecomposition."""
    return bool(lams.size * np.unique(left).size <= DECOMPOSITION)


class System(NamedTuple):
    """The square loss on all rows.

    Parameters
    ----------
    K : (n, n) array
        The weighted Gram matrix.
    root : (n,) array
        ``S^1/2 1`` where there is a bias, else empty.
    Y : (k, n) array
        Weighted targets.
    least : float
        What the rounding errors of K may come to: no smaller ridge counts.
    """

    K: Array
    root: Array
    Y: Array
    least: float


SYSTEM = record(System, f8_2, f8_1, f8_2, f8)


@jit(types.void(i8, i8, SYSTEM, f8_1, FOLDS, f8_1, i8, f8_3, f8_1, i8[:, ::1]))
def _ridges(first, step, system, lams, folds, different, rounds, out, norms, status):
    """Fill ``out (k, L, n)`` and ``status (L, u)`` for every ``step``-th of the ridges ``different[j] lams[k]``.

    With ``rounds`` of the fixed point, add squared norms of the fits with ridge ``N lams[k]`` to ``norms (L,)``.
    """
    (K, root, Y, least), (starts, away, bounds, left, N) = system, folds
    n, weights = K.shape[0], different.size
    R, x, u = np.empty((n, n)), np.empty(Y.shape), np.empty(root.size)
    a, Aa = np.empty(n), np.empty(n)
    for job in range(first, lams.size * weights, step):
        k, weight = job // weights, different[job % weights]
        ridge, t = weight * lams[k], 1.0
        copy_lower(K, R)
        for i in range(n):
            R[i, i] += ridge
        if cholesky(R) != 0 or not ridge > least:
            status[k, job % weights] = SINGULAR
            continue
        for i in range(n):
            for c in range(Y.shape[0]):
                x[c, i] = Y[c, i]
        solve_rows(R, x)
        if root.size:
            for i in range(n):
                u[i] = root[i]
            solve_rows(R, u)
            t = inner(root, u)
            for c in range(Y.shape[0]):
                pull = inner(u, Y[c]) / t
                for i in range(n):
                    x[c, i] -= pull * u[i]
        if rounds and job % weights == weights - 1:  # the ridge that is nearest
            gap = (N - weight) * lams[k]
            size = 2.0 / (2.0 + gap / ridge)
            for c in range(Y.shape[0]):
                for i in range(n):
                    a[i] = x[c, i]
                for _ in range(rounds):
                    for i in range(n):
                        Aa[i] = a[i]
                    solve_rows(R, Aa)
                    pull = inner(u, a[: u.size]) / t
                    for i in range(u.size):
                        Aa[i] -= pull * u[i]
                    for i in range(n):
                        a[i] += size * (x[c, i] - a[i] - gap * Aa[i])
                multiply(K, a, Aa)
                norms[k] += inner(a, Aa)
        invert_factor(R)
        for fold in range(left.size):
            if left[fold] != weight:
                continue
            lo, hi, rows = starts[fold], starts[fold + 1], away[bounds[fold] : bounds[fold + 1]]
            m, top = rows.size, rows[0]
            B, Q, e = np.zeros((n - top, m)), np.zeros((m, m)), np.empty((Y.shape[0], m))
            for i in range(n - top):
                for j in range(m):
                    if rows[j] > top + i:  # above the diagonal
                        break
                    B[i, j] = R[top + i, rows[j]]
            add_products(B, 1.0, Q)
            if root.size:
                for i in range(m):
                    for j in range(i + 1):
                        Q[i, j] -= (u[rows[i]] / t) * u[rows[j]]  # u is tiny where the ridge is large
            for c in range(Y.shape[0]):
                for i in range(m):
                    e[c, i] = x[c, rows[i]]
            if cholesky(Q) != 0:
                status[k, job % weights] = SINGULAR
            solve_rows(Q, e)
            for c in range(Y.shape[0]):
                for i in range(m):
                    if lo <= rows[i] < hi:
                        out[c, k, rows[i]] = Y[c, rows[i]] - e[c, i]


def heldout_factored(
    K: np.ndarray, root: np.ndarray | None, Y: np.ndarray, lams: np.ndarray, folds: Folds, step_rows: float = STEP_ROWS
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the exact held-out outputs ``(k, L, n)`` of the square loss, squared norms and a status for every ``lam``.

    The norms are ``a' K a`` of the fits on all rows, summed over outputs; NaN where another factor takes less time.

    Parameters
    ----------
    K : (n, n)
        The Gram matrix.
    root : (n,) or None
        ``S^1/2 1`` where there is a bias.
    Y : (k, n)
    lams : (L,)
        The fit without fold S has the ridge ``left_S lam``; rows in no fold keep zeros.
    step_rows : float
        Rows that a step for the norms is worth, for each output.
    """
    different = np.unique(folds.left)
    rounds = _rounds((folds.N - different[-1]) / different[-1])
    if rounds * len(Y) * step_rows > len(K):
        rounds = 0
    out = np.zeros((Y.shape[0], lams.size, len(K)))
    norms, status = np.zeros(lams.size), np.zeros((lams.size, different.size), np.int64)
    least = len(K) * ROUNDING * float(np.abs(K).sum(axis=1).max(initial=0.0))  # rounding errors of K, at most
    loop = _ridges.code  # compiled here, not by several threads at once
    system = System(K, np.zeros(0) if root is None else root, Y, least)
    job = (system, lams, folds, different, rounds, out, norms, status)
    with one_blas_thread():
        share(lambda first, step: loop(first, step, *job), status.size)
    worst = status.max(axis=1)
    return out, np.where((worst == 0) & (rounds > 0), norms, np.nan), worst


def _rounds(more: float) -> int:
    """Return after how many steps nothing but rounding is left of a fixed point whose ridge is ``1 + more`` times."""
    return int(np.ceil(np.log(ROUNDING) / np.log(max(more, ROUNDING) / (2.0 + more))))


@jit(types.void(i8, i8, f8_2, b1[:, ::1], f8_1, f8_2, f8_3, i8_1))
def _solves(first, step, K, kept, ridges, right, out, status):
    n = K.shape[0]
    rows = np.empty(n, np.int64)
    for job in range(first, ridges.size, step):
        m = 0
        for i in range(n):
            if kept[job, i]:
                rows[m] = i
                m += 1
        A, B = np.empty((m, m)), np.empty((right.shape[0], m))
        for i in range(m):
            for j in range(i + 1):
                A[i, j] = K[rows[i], rows[j]]
            A[i, i] += ridges[job]
            for c in range(right.shape[0]):
                B[c, i] = right[c, rows[i]]
        if cholesky(A) != 0:
            status[job] = SINGULAR
            continue
        solve_rows(A, B)
        for c in range(right.shape[0]):
            for i in range(m):
                out[job, c, rows[i]] = B[c, i]


def coefficients_factored(
    K: np.ndarray, root: np.ndarray | None, Y: np.ndarray, ridges: np.ndarray, kept: np.ndarray
) -> np.ndarray:
    """Return ``a (k, q, n)`` of q fits on some of the rows, and zeros for the others.

    With ``f = K a`` and the bias, ``a = A y`` where K, y and the direction of the bias are those of the rows ``kept``.

    Parameters
    ----------
    K : (n, n)
        The weighted Gram matrix.
    root : (n,) or None
        ``S^1/2 1`` where there is a bias.
    Y : (k, n)
        Weighted targets.
    ridges, kept : (q,), (q, n) bool
        Of each fit.
    """
    right = Y if root is None else np.vstack([Y, root])
    x, status = np.zeros((ridges.size, *right.shape)), np.zeros(ridges.size, np.int64)
    loop = _solves.code
    with one_blas_thread():
        share(lambda first, step: loop(first, step, K, kept, ridges, right, x, status), ridges.size)
    for job in np.flatnonzero(status):  # the ridge is below rounding: the minimum-norm solution
        rows = kept[job]
        A = K[np.ix_(rows, rows)] + ridges[job] * np.eye(int(rows.sum()))
        x[job][:, rows] = np.linalg.lstsq(A, right[:, rows].T, rcond=None)[0].T
    if root is not None:
        u, x = x[:, -1], x[:, :-1]
        x = x - ((x @ root) / (u @ root)[:, None])[:, :, None] * u[:, None]
    return np.ascontiguousarray(x.transpose(1, 0, 2))


LOOPS = (_ridges, _solves)
"""What takes longest to compile."""
