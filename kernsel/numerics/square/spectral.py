"""The square loss through one eigendecomposition: every ridge, every fold, every order of the BIF.

``K = U diag(ev) U'`` with orthonormal ``U (n, r)``, from a Gram matrix or from low-rank features; eigenvalues that are
rounding are dropped, not clamped. Targets are rows: ``Y (k, n)``.

With sample weights s everything is in the coordinates of ``S^1/2``: ``S^1/2 K S^1/2`` and ``S^1/2 y``, and the ridge is
``lam`` times the sum of the weights that are kept; outputs are ``S^1/2 f``. An unpenalised bias is the direction
``S^1/2 1`` with an infinite eigenvalue, beside the spectrum of the matrix projected off it; among features it is a last
column without a ridge.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy.linalg
from numba.core import types

from kernsel.numerics.lanczos import LANCZOS_STEPS, dominant_vector, tridiagonal_radius, uneven
from kernsel.numerics.runtime.blas import (
    add_inner_products,
    add_products,
    cholesky,
    copy_lower,
    mirror,
    ridged_cholesky,
    solve_rows,
)
from kernsel.numerics.runtime.jit import f8, f8_1, f8_2, f8_3, i8, i8_1, inline, jit, one_blas_thread, pointer, share
from kernsel.numerics.smooth.newton import CONVERGED, SINGULAR


def spectrum_of_gram(K: np.ndarray, free: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return ``U (n, r)`` and the eigenvalues ``ev (r,)`` of a Gram matrix that are above rounding, largest last.

    With a direction ``free (n,)`` that isn't penalised, it comes first, with an infinite eigenvalue.
    """
    if free is None:
        return keep(*np.linalg.eigh(K)[::-1], K.shape[0])
    e = free / np.linalg.norm(free)
    Ke = K @ e
    centred = K - np.outer(e, Ke) - np.outer(Ke - e * (e @ Ke), e)
    # The direction gets the largest eigenvalue of all: beside its own one, 0, small ones would have tilted vectors.
    ev, U = np.linalg.eigh(centred + 2.0 * (np.trace(K) or 1.0) * np.outer(e, e))
    return _with_free(*keep(U[:, :-1], ev[:-1], K.shape[0]), e)


def spectrum_of_features(Z: np.ndarray, free: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return ``U (n, r')`` and the eigenvalues ``ev (r',)`` of ``Z Z'`` that are above rounding, largest last.

    The left singular vectors come from ``Z' Z``, at a small part of the cost of a singular value decomposition. That
    squares the condition; one step of Newton and Schulz makes the columns orthonormal again. ``free`` is as above.
    """
    e = None if free is None else free / np.linalg.norm(free)
    if e is not None:
        Z = Z - np.outer(e, e @ Z)
    ev, Q = np.linalg.eigh(Z.T @ Z)
    Q, ev = keep(Q, ev, Z.shape[0])
    U = (Z @ Q) / np.sqrt(ev)
    U = U @ (1.5 * np.eye(ev.size) - 0.5 * (U.T @ U))
    return (U, ev) if e is None else _with_free(U, ev, e)


def above_rounding(ev: np.ndarray, n: int) -> np.ndarray:
    """Say which of ascending eigenvalues of a matrix of n rows are more than rounding, (r,) bool."""
    kept: np.ndarray = ev > n * np.finfo(float).eps * max(ev[-1:].max(initial=0.0), 0.0)
    return kept


def keep(U: np.ndarray, ev: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvalues, ascending, of n rows that are not rounding errors of zero, and their vectors."""
    kept = above_rounding(ev, n)
    return np.ascontiguousarray(U[:, kept]), ev[kept]


def least_ridge(ev: np.ndarray, n: int) -> float:
    """Return the ridge below which the directions that a spectrum of n rows doesn't span are lost in its rounding."""
    return n * ROUNDING * float(ev[np.isfinite(ev)].max(initial=0.0)) if ev.size < n else 0.0


def _with_free(U: np.ndarray, ev: np.ndarray, e: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Put ``e`` before the others, which are made orthogonal to it once more, to rounding."""
    U = U - np.outer(e, e @ U)
    return np.ascontiguousarray(np.column_stack([e, U])), np.append(np.inf, ev)


def shrinkage(ev: np.ndarray, ridge: np.ndarray | float) -> np.ndarray:
    """Return ``ev / (ev + ridge)``, which is 1 for an infinite ev."""
    with np.errstate(over="ignore"):  # then it is 0
        return 1.0 / (1.0 + ridge / ev)


def outputs(U: np.ndarray, ev: np.ndarray, Y: np.ndarray, ridges: np.ndarray) -> np.ndarray:
    """Return the outputs of the fits, ``f = U diag(ev / (ev + ridge)) U' y``, as ``(k, L, n)``."""
    f: np.ndarray = ((Y @ U)[:, None, :] * shrinkage(ev, ridges[:, None])) @ U.T
    return f


def energies(U: np.ndarray, ev: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return how targets spread: ``ev (r,)`` itself, the squares of their coordinates in it (k, r), and beyond it (k,).

    That is all that fits of every ridge know of the targets, as far as squared residuals go.
    """
    C = Y @ U
    return ev, C**2, ((Y - C @ U.T) ** 2).sum(axis=1)


def coefficients(U: np.ndarray, ev: np.ndarray, Y: np.ndarray, ridges: np.ndarray) -> np.ndarray:
    """Return ``a (k, L, n)`` with ``f = K a``, and the bias: ``a = U diag(1 / (ev + ridge)) U' y``.

    What of y lies outside the spectrum is left out: K maps it to nothing.
    """
    a: np.ndarray = ((Y @ U)[:, None, :] / (ev + ridges[:, None])) @ U.T
    return a


def coefficients_without(U: np.ndarray, ev: np.ndarray, Y: np.ndarray, ridge: float, fold: slice) -> np.ndarray:
    """Return the coefficients ``(k, n)`` of the fit without a fold, for its own ridge, with zeros in the fold.

    With ``A = (K + ridge I)^-1`` they are ``A y - A_{:,S} A_SS^-1 (A y)_S``. All is made of ``ridge A = U diag(ridge /
    (ev + ridge)) U' + (I - U U')``, which keeps its digits where the ridge is small.
    """
    n, r = U.shape
    shrunk, YU = U * (ridge / (ev + ridge)), Y @ U
    A, Ay = shrunk @ U[fold].T, YU @ shrunk.T
    if r < n:
        A -= U @ U[fold].T
        A[fold] += np.eye(A.shape[1])
        Ay += Y - YU @ U.T
    e = scipy.linalg.lstsq(A[fold], Ay[:, fold].T, lapack_driver="gelsy")[0]
    a: np.ndarray = (Ay - (A @ e).T) / ridge
    a[:, fold] = 0.0
    return a


def weights(Z: np.ndarray, bias: int, Y: np.ndarray, ridges: np.ndarray) -> np.ndarray:
    """Return ``w (k, L, r)`` with ``f = Z w``: ``(Z' Z + ridge I) w = Z' y``, without a ridge for a bias' column."""
    return solve_weights(Z.T @ Z, Z.T @ Y.T, bias, ridges)


def solve_weights(G: np.ndarray, right: np.ndarray, bias: int, ridges: np.ndarray) -> np.ndarray:
    """Return the same from the products ``G = Z' Z`` and ``right = Z' y (r, k)``."""
    penalty = np.ones(len(G))
    penalty[len(G) - bias :] = 0.0
    w = np.empty((right.shape[1], ridges.size, len(G)))
    for k, ridge in enumerate(ridges):
        H = G + np.diag(ridge * penalty)
        try:
            w[:, k] = scipy.linalg.solve(H, right, assume_a="pos").T
        except np.linalg.LinAlgError:  # the ridge is below rounding: the minimum-norm solution
            w[:, k] = np.linalg.lstsq(H, right, rcond=None)[0].T
    return w


ROUNDING = 2.0**-52
DOMINATED = 1 / 32  # the trace of products, relative to a ridge that dominates them

FOLD = types.FunctionType(types.void(f8_2, f8_1, i8, f8_2, f8_2, f8_2, f8_1, i8, i8, f8, f8, i8, f8_3, i8_1, f8_1))
"""One fold: ``(U or Z, ev, bias, Y, YU or YZ, G, lams, lo, hi, N, left, order, out, status, rho)``."""


@jit((i8, i8, FOLD, f8_2, f8_1, i8, f8_2, f8_2, f8_2, f8_1, i8_1, f8, f8_1, i8, f8_3, i8[:, ::1], f8_2))
def _folds(first, step, task, U, ev, bias, Y, YU, G, lams, starts, N, left, order, out, status, rho):
    for fold in range(first, starts.size - 1, step):
        task(
            U, ev, bias, Y, YU, G, lams, starts[fold], starts[fold + 1], N, left[fold], order, out, status[fold],
            rho[fold],
        )  # fmt: skip


def for_folds(task, U, ev, bias, Y, G, lams, starts, N, left, order):
    """Run ``task`` for every fold, side by side.

    Parameters
    ----------
    task : pointer
        ``without_block`` or ``influence`` on the spectrum ``U, ev``; ``without_products`` on features in place of U.
    U, ev : (n, r), (r,)
        The spectrum.
    bias : int
        1 where the last column of the features is that of a bias.
    Y : (k, n)
        Targets.
    G : (r, r)
        The products ``Z' Z`` of the features.
    starts, N, left : (t + 1,), float, (t,)
        The folds, the sum of all weights, and what the fit without each fold keeps of it.
    order : int
        Of the BIF; 0 asks for ``rho`` alone.

    Returns
    -------
    out : (k, L, n); status : (L,); rho : (t, L)
        Held-out outputs (those of rows in no fold are left as zeros), the worst status over folds, 0 or a key of
        ``newton.REASONS``, and the ratio of the BIF's series.
    """
    out = np.zeros((Y.shape[0], lams.size, U.shape[0]))
    status, rho = np.zeros((starts.size - 1, lams.size), np.int64), np.zeros((starts.size - 1, lams.size))
    loop = _folds.code  # compiled here, not by several threads at once
    job = (task.code, U, ev, bias, Y, Y @ U, G, lams, starts, N, left, order, out, status, rho)
    with one_blas_thread():
        share(lambda first, step: loop(first, step, *job), len(status))
    return out, status.max(axis=0), rho


def products_are_cheaper(starts: np.ndarray, r: int, lams: np.ndarray, spectrum: float = 0.0) -> bool:
    """Say whether folds are left out with fewer operations by ``r x r`` products than by their own blocks.

    For those a spectrum is needed, which takes ``spectrum`` operations if it isn't there yet.
    """
    m = float(np.diff(starts).max())
    blocks = lams.size * (m**2 * r + m**3 / 3) + spectrum / (len(starts) - 1)
    return m * r**2 + lams.size * r**3 / 3 < blocks


def heldout_square(
    U: np.ndarray, ev: np.ndarray, Y: np.ndarray, lams: np.ndarray, starts: np.ndarray, N: float, left: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the exact held-out outputs ``(k, L, n)`` of the square loss, and a status for every ``lam``.

    Without fold S the ridge is ``left_S lam``, and with ``A = (K + ridge I)^-1``, ``y_S - f_S = A_SS^-1 (A y)_S``.
    """
    if products_are_cheaper(starts, ev.size, lams):
        bias = int(ev.size > 0 and np.isinf(ev[0]))  # it comes first in a spectrum, and last among features
        scaled = np.roll(U * np.sqrt(np.where(np.isinf(ev), 1.0, ev)), -bias, axis=1)
        return heldout_features(np.ascontiguousarray(scaled), scaled.T @ scaled, bias, Y, lams, starts, N, left)
    out, status, _ = for_folds(without_block, U, ev, 0, Y, np.zeros((0, 0)), lams, starts, N, left, 0)
    return out, status


def heldout_features(
    Z: np.ndarray, G: np.ndarray, bias: int, Y: np.ndarray, lams: np.ndarray, starts: np.ndarray, N: float,
    left: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Return the same for ``K = Z Z'`` and ``G = Z' Z``, by leaving the fold out of the normal equations.

    Columns that overlap with no other one, as where the kernel is so narrow that it sees single points, need no system.
    (With a bias they all overlap with its column.)
    """
    alone = columns_alone(Z, G)
    out, status = np.zeros((len(Y), lams.size, len(Z))), np.zeros(lams.size, np.int64)
    if not alone.all():
        features, products = (np.ascontiguousarray(Z[:, ~alone]), G[np.ix_(~alone, ~alone)]) if alone.any() else (Z, G)
        out, status, _ = for_folds(
            without_products, features, np.zeros(0), bias, Y, products, lams, starts, N, left, 0
        )  # fmt: skip
    if alone.any():
        out += without_columns(Z[:, alone], Y, lams, starts, left)
    return out, status


def columns_alone(Z: np.ndarray, G: np.ndarray) -> np.ndarray:
    """Say which columns overlap with no other one by more than rounding, in whatever rows: (r,) bool."""
    length = np.sqrt(np.diag(G))
    bound = ROUNDING * np.outer(length, length)
    alone: np.ndarray = (np.abs(G) > bound).sum(axis=0) <= 1
    if alone.any():  # what cancels over all rows need not without a fold
        size = np.abs(Z)
        with_all = size.T @ size.sum(axis=1) - np.einsum("ij,ij->j", size, size)
        alone &= with_all <= ROUNDING * length * length.min(initial=np.inf)
    return alone


def without_columns(Z: np.ndarray, Y: np.ndarray, lams: np.ndarray, starts: np.ndarray, left: np.ndarray) -> np.ndarray:
    """Return the held-out outputs ``(k, L, n)`` of orthogonal columns: ``w = Z' y / (diag(Z' Z) + ridge)``."""
    folds = [slice(lo, hi) for lo, hi in pairwise([*starts, len(Z)])]  # what is never held out comes last
    squares = np.stack([np.einsum("ij,ij->j", Z[fold], Z[fold]) for fold in folds])
    products = np.stack([Y[:, fold] @ Z[fold] for fold in folds])
    kept = 1.0 - np.eye(len(folds))  # sums over the other folds: the fold's own part would not cancel exactly
    squares, products = kept @ squares, np.einsum("st,tkj->skj", kept, products)
    out = np.zeros((Y.shape[0], lams.size, Z.shape[0]))
    for j, fold in enumerate(folds[:-1]):
        w = products[j][:, None, :] / (squares[j] + left[j] * lams[:, None])
        out[:, :, fold] = w @ Z[fold].T
    return out


def influence_square(
    U: np.ndarray, ev: np.ndarray, Y: np.ndarray, lams: np.ndarray, starts: np.ndarray, N: float, left: np.ndarray,
    order: int,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Return the BIF of the given order for the square loss, ``(k, L, n)``, and its ratio, ``(t, L)``."""
    out, _, rho = for_folds(influence, U, ev, 0, Y, np.zeros((0, 0)), lams, starts, N, left, order)
    return out, rho


@inline
def scale_columns(A, factors, out):
    """Fill ``out = A diag(factors)``."""
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            out[i, j] = A[i, j] * factors[j]


@pointer(FOLD)
def without_block(U, ev, bias, Y, YU, G, lams, lo, hi, N, left, order, out, status, rho):
    """Hold a fold out through ``ridge A_SS = U_S diag(ridge / (ev + ridge)) U_S' + (I - U_S U_S')``.

    ``ridge A y`` is made in the same way: ``y - f`` would be 0 to rounding, and the outputs the targets themselves,
    where the ridge is small.
    """
    n, r = U.shape
    m = hi - lo
    US = U[lo:hi]
    # What the spectrum doesn't span is nothing where it is complete; else a ridge below rounding is lost in it.
    beyond, rest, least = np.zeros((m, m)), np.zeros((Y.shape[0], m)), 0.0
    if r < n:
        least = n * ROUNDING * ev[-1] if r and np.isfinite(ev[-1]) else 0.0
        add_inner_products(US, -1.0, beyond)
        for i in range(m):
            beyond[i, i] += 1.0
        for c in range(Y.shape[0]):
            f = np.dot(US, YU[c])
            for i in range(m):
                rest[c, i] = Y[c, lo + i] - f[i]
    Q, W, e = np.empty((m, m)), np.empty((m, r)), np.empty((Y.shape[0], m))
    for k in range(lams.size):
        ridge = left * lams[k]
        scale_columns(US, np.sqrt(ridge / (ev + ridge)), W)
        copy_lower(beyond, Q)
        add_inner_products(W, 1.0, Q)
        for c in range(Y.shape[0]):
            shrunk = np.dot(US, YU[c] * (ridge / (ev + ridge)))
            for i in range(m):
                e[c, i] = rest[c, i] + shrunk[i]
        status[k] = CONVERGED if cholesky(Q) == 0 and ridge > least else SINGULAR
        solve_rows(Q, e)
        for c in range(Y.shape[0]):
            for i in range(m):
                out[c, k, lo + i] = Y[c, lo + i] - e[c, i]


@pointer(FOLD)
def without_products(Z, ev, bias, Y, YZ, G, lams, lo, hi, N, left, order, out, status, rho):
    """Hold a fold out by ``(G - Z_S' Z_S + ridge I) w = Z' y - Z_S' y_S``.

    Where the ridge is far above the trace of the products, ``w <- (right - products w) / ridge`` is at its fixed point
    after a few rounds, which are cheaper than a factorisation.
    """
    r, m = Z.shape[1], hi - lo
    ZS = Z[lo:hi]
    products, right = np.empty((r, r)), np.empty((Y.shape[0], r))
    copy_lower(G, products)
    add_products(ZS, -1.0, products)
    mirror(products)
    trace = 0.0
    for j in range(r):
        trace += products[j, j]
    for c in range(Y.shape[0]):
        inside = np.dot(Y[c, lo:hi], ZS)
        for j in range(r):
            right[c, j] = YZ[c, j] - inside[j]
    R, w = np.empty((r, r)), np.empty((Y.shape[0], r))
    for k in range(lams.size):
        ridge = left * lams[k]
        dominated = trace < DOMINATED * ridge and bias == 0
        for c in range(Y.shape[0]):
            for j in range(r):
                w[c, j] = right[c, j] / ridge if dominated else right[c, j]
        if dominated:
            share = trace / ridge
            while share > 0.1 * ROUNDING:
                share *= trace / ridge
                for c in range(Y.shape[0]):
                    pulled = np.dot(products, w[c])
                    for j in range(r):
                        w[c, j] = (right[c, j] - pulled[j]) / ridge
        else:
            status[k] = CONVERGED if ridged_cholesky(products, ridge, bias, R) == 0 else SINGULAR
            solve_rows(R, w)
        for c in range(Y.shape[0]):
            f = np.dot(ZS, w[c])
            for i in range(m):
                out[c, k, lo + i] = f[i]


@pointer(FOLD)
def influence(U, ev, bias, Y, YU, G, lams, lo, hi, N, left, order, out, status, rho):
    """BIF of the given order for the square loss, and its ratio.

    In the coordinates of U, with ``h = ev / (ev + N lam)`` and ``q = U' f / (ev + N lam)``, 1 and 0 for a bias, the
    terms are ``e_1 = (N / (2 left)) (2 N_S lam q + h U_S' d1_S)`` and
    ``e_{k+1} = h ((N U_S' U_S - N_S I) / left) e_k``.
    """
    r = U.shape[1]
    m = hi - lo
    kept, gone = N / left, (N - left) / left
    US = U[lo:hi]
    d1, g, e, total = np.empty(m), np.empty(r), np.empty(r), np.empty(r)
    for k in range(lams.size):
        h = 1.0 / (1.0 + N * lams[k] / ev)
        rho[k] = ratio_square(US, h, kept, gone)
        if order == 0:
            continue
        for c in range(Y.shape[0]):
            for j in range(r):
                g[j] = YU[c, j] * h[j]
            f = np.dot(US, g)
            for i in range(m):
                d1[i] = 2.0 * (f[i] - Y[c, lo + i])
            pull = np.dot(d1, US)
            for j in range(r):
                shrunk = 2.0 * (N - left) * lams[k] * g[j] / (ev[j] + N * lams[k])
                e[j] = 0.5 * kept * (shrunk + h[j] * pull[j])
                total[j] = e[j]
            for _ in range(order - 1):
                inside = np.dot(np.dot(US, e), US)
                for j in range(r):
                    e[j] = h[j] * (kept * inside[j] - gone * e[j])
                    total[j] += e[j]
            change = np.dot(US, total)
            for i in range(m):
                out[c, k, lo + i] = f[i] + change[i]


@inline
def ratio_square(US, h, kept, gone):
    """Return the spectral radius of ``diag(h)(kept U_S' U_S - gone I)``, made symmetric, by a few steps of Lanczos'.

    It starts from the leading eigenvector of the fold's block ``U_S diag(h) U_S'``, which is nearly there.
    """
    m, r = US.shape
    root = np.sqrt(h)
    W, B = np.empty((m, r)), np.zeros((m, m))
    scale_columns(US, root, W)
    add_inner_products(W, 1.0, B)
    mirror(B)
    x = np.dot(dominant_vector(B), W)
    size = np.sqrt(np.dot(x, x) / r)
    for j in range(r):
        x[j] += (0.1 * size if size > 0.0 else 1.0) * uneven(j)
    alpha, beta = np.zeros(LANCZOS_STEPS), np.zeros(LANCZOS_STEPS + 1)
    before, k, least = np.zeros(r), 0, 1e-150
    while k < LANCZOS_STEPS:
        beta[k] = np.sqrt(np.dot(x, x))
        if not beta[k] > least:
            break
        now = x / beta[k]
        x = kept * np.dot(np.dot(W, now), W) - gone * h * now
        alpha[k] = np.dot(now, x)
        x -= alpha[k] * now
        if k:
            x -= beta[k] * before
        before = now
        least = 1e-12 * (abs(alpha[k]) + (beta[k] if k else 0.0))
        k += 1
    return tridiagonal_radius(alpha[:k], beta[1:k])
