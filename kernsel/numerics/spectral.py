"""The square loss through one eigendecomposition: every ridge, every fold, every order of the BIF.

``K = U diag(ev) U'`` with orthonormal ``U (n, r)``, from a Gram matrix or from low-rank features; eigenvalues that are
rounding are dropped, not clamped. Targets are rows: ``Y (k, n)``.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy.linalg
from numba.core import types

from kernsel.numerics.blas import (
    add_inner_products,
    add_products,
    cholesky,
    copy_lower,
    mirror,
    ridged_cholesky,
    solve_rows,
)
from kernsel.numerics.jit import f8_1, f8_2, f8_3, i8, i8_1, inline, jit, one_blas_thread, pointer, share
from kernsel.numerics.newton import CONVERGED, SINGULAR
from kernsel.numerics.radius import POWER_STEPS, POWER_TOLERANCE, dominant_vector, uneven


def spectrum_of_gram(K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ``U (n, r)`` and the eigenvalues ``ev (r,)`` of a Gram matrix that are above rounding, largest last."""
    ev, U = np.linalg.eigh(K)
    return _keep(U, ev, K.shape[0])


def spectrum_of_features(Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ``U (n, r')`` and the eigenvalues ``ev (r',)`` of ``Z Z'`` that are above rounding, largest last.

    The left singular vectors come from ``Z' Z``, at a small part of the cost of a singular value decomposition. That
    squares the condition; one step of Newton and Schulz makes the columns orthonormal again.
    """
    ev, Q = np.linalg.eigh(Z.T @ Z)
    Q, ev = _keep(Q, ev, Z.shape[0])
    U = (Z @ Q) / np.sqrt(ev)
    return U @ (1.5 * np.eye(ev.size) - 0.5 * (U.T @ U)), ev


def _keep(U: np.ndarray, ev: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    kept = ev > n * np.finfo(float).eps * max(ev[-1], 0.0)
    return np.ascontiguousarray(U[:, kept]), ev[kept]


def outputs(U: np.ndarray, ev: np.ndarray, Y: np.ndarray, lams: np.ndarray) -> np.ndarray:
    """Return the outputs of the fits, ``f = U diag(ev / (ev + n lam)) U' y``, as ``(k, L, n)``."""
    shrunk = (Y @ U)[:, None, :] * (ev / (ev + U.shape[0] * lams[:, None]))
    f: np.ndarray = shrunk @ U.T
    return f


def coefficients(U: np.ndarray, ev: np.ndarray, Y: np.ndarray, lam: float) -> np.ndarray:
    """Return ``a (k, n)`` with ``f = K a`` for one ``lam``: ``a = U diag(1 / (ev + n lam)) U' y``.

    What of y lies outside the spectrum is left out: K maps it to nothing.
    """
    a: np.ndarray = ((Y @ U) / (ev + U.shape[0] * lam)) @ U.T
    return a


def weights(Z: np.ndarray, G: np.ndarray, Y: np.ndarray, lam: float) -> np.ndarray:
    """Return ``w (k, r)`` with ``f = Z w`` for one ``lam``: ``(G + n lam I) w = Z' y`` with ``G = Z' Z``."""
    H = G.copy()
    H[np.diag_indices_from(H)] += Z.shape[0] * lam
    try:
        w: np.ndarray = scipy.linalg.solve(H, Z.T @ Y.T, assume_a="pos").T
    except np.linalg.LinAlgError:  # lam is below rounding: the minimum-norm solution
        w = np.linalg.lstsq(H, Z.T @ Y.T, rcond=None)[0].T
    return w


ROUNDING = 2.0**-52
DOMINATED = 1 / 32  # the trace of products, relative to a ridge that dominates them

FOLD = types.FunctionType(types.void(f8_2, f8_1, f8_2, f8_2, f8_2, f8_1, i8, i8, i8, f8_3, i8_1, f8_1))
"""One fold: ``(U or Z, ev, Y, YU or YZ, G, lams, lo, hi, order, out, status, rho)``."""


@jit((i8, i8, FOLD, f8_2, f8_1, f8_2, f8_2, f8_2, f8_1, i8_1, i8, f8_3, i8[:, ::1], f8_2))
def _folds(first, step, task, U, ev, Y, YU, G, lams, starts, order, out, status, rho):
    for fold in range(first, starts.size - 1, step):
        task(U, ev, Y, YU, G, lams, starts[fold], starts[fold + 1], order, out, status[fold], rho[fold])


def for_folds(task, U, ev, Y, YU, G, lams, starts, order, out, status, rho):
    """Run ``task`` for every fold, side by side.

    Parameters
    ----------
    task : pointer
        ``without_block`` or ``influence`` on the spectrum ``U, ev``; ``without_products`` on features in place of U.
    U, ev : (n, r), (r,)
        The spectrum.
    Y, YU : (k, n), (k, r)
        Targets, and their products with U.
    G : (r, r)
        The products ``Z' Z`` of the features.
    order : int
        Of the BIF; 0 asks for ``rho`` alone.
    out : (k, L, n); status : (t, L); rho : (t, L)
        Overwritten: held-out outputs, 0 or a key of ``newton.REASONS``, and the ratio of the BIF's series.
    """
    loop = _folds.code  # compiled here, not by several threads at once
    job = (task.code, U, ev, Y, YU, G, lams, starts, order, out, status, rho)
    with one_blas_thread():
        share(lambda first, step: loop(first, step, *job), len(status))


def products_are_cheaper(starts: np.ndarray, r: int, lams: np.ndarray) -> bool:
    """Say whether folds are left out with fewer operations by ``r x r`` products than by their own blocks."""
    m = float(np.diff(starts).max())
    return m * r**2 + lams.size * r**3 / 3 < lams.size * (m**2 * r + m**3 / 3)


def heldout_square(
    U: np.ndarray, ev: np.ndarray, Y: np.ndarray, lams: np.ndarray, starts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the exact held-out outputs ``(k, L, n)`` of the square loss, and a status for every ``lam``.

    Without fold S the ridge is ``(n - m) lam``, and with ``A = (K + ridge I)^-1``, ``y_S - f_S = A_SS^-1 (A y)_S``.
    """
    if products_are_cheaper(starts, ev.size, lams):
        return heldout_features(np.ascontiguousarray(U * np.sqrt(ev)), np.diag(ev), Y, lams, starts)
    out, status, _ = _run(without_block, U, ev, Y, lams, starts, 0)
    return out, status


def heldout_features(
    Z: np.ndarray, G: np.ndarray, Y: np.ndarray, lams: np.ndarray, starts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the same for ``K = Z Z'`` and ``G = Z' Z``, by leaving the fold out of the normal equations.

    Columns that overlap with no other one, as where the kernel is so narrow that it sees single points, need no system.
    """
    alone = columns_alone(Z, G)
    if not alone.any():
        out, status, _ = _run(without_products, Z, np.zeros(0), Y, lams, starts, 0, G)
        return out, status
    single = without_columns(Z[:, alone], Y, lams, starts)
    if alone.all():
        return single, np.zeros(lams.size, np.int64)
    out, status, _ = _run(
        without_products, np.ascontiguousarray(Z[:, ~alone]), np.zeros(0), Y, lams, starts, 0,
        np.ascontiguousarray(G[~alone][:, ~alone]),
    )  # fmt: skip
    return out + single, status


def columns_alone(Z: np.ndarray, G: np.ndarray) -> np.ndarray:
    """Say which columns overlap with no other one by more than rounding, in whatever rows: (r,) bool."""
    length = np.sqrt(np.diag(G))
    bound = ROUNDING * np.outer(length, length)
    alone: np.ndarray = (np.abs(G) > bound).sum(axis=0) <= 1
    if alone.any():  # what cancels over all rows need not without a fold
        alone[alone] = (np.abs(Z[:, alone]).T @ np.abs(Z) > bound[alone]).sum(axis=1) <= 1
    return alone


def without_columns(Z: np.ndarray, Y: np.ndarray, lams: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return the held-out outputs ``(k, L, n)`` of orthogonal columns: ``w = Z' y / (diag(Z' Z) + ridge)``."""
    folds = [slice(lo, hi) for lo, hi in pairwise(starts)]
    squares = np.stack([np.einsum("ij,ij->j", Z[fold], Z[fold]) for fold in folds])
    products = np.stack([Y[:, fold] @ Z[fold] for fold in folds])
    kept = 1.0 - np.eye(len(folds))  # sums over the other folds: the fold's own part would not cancel exactly
    squares, products = kept @ squares, np.einsum("st,tkj->skj", kept, products)
    out = np.empty((Y.shape[0], lams.size, Z.shape[0]))
    for j, fold in enumerate(folds):
        ridges = (Z.shape[0] - (fold.stop - fold.start)) * lams
        w = products[j][:, None, :] / (squares[j] + ridges[:, None])
        out[:, :, fold] = w @ Z[fold].T
    return out


def influence_square(
    U: np.ndarray, ev: np.ndarray, Y: np.ndarray, lams: np.ndarray, starts: np.ndarray, order: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the BIF of the given order for the square loss, ``(k, L, n)``, and its ratio, ``(t, L)``."""
    out, _, rho = _run(influence, U, ev, Y, lams, starts, order)
    return out, rho


def _run(task, U, ev, Y, lams, starts, order, G=None):
    out = np.empty((Y.shape[0], lams.size, U.shape[0]))
    status, rho = np.zeros((starts.size - 1, lams.size), np.int64), np.zeros((starts.size - 1, lams.size))
    if G is None:
        G = np.zeros((0, 0))
    for_folds(task, U, ev, Y, Y @ U, G, lams, starts, order, out, status, rho)
    return out, status.max(axis=0), rho


@inline
def scale_columns(A, factors, out):
    """Fill ``out = A diag(factors)``."""
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            out[i, j] = A[i, j] * factors[j]


@pointer(FOLD)
def without_block(U, ev, Y, YU, G, lams, lo, hi, order, out, status, rho):
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
        least = n * ROUNDING * ev[-1] if r else 0.0
        add_inner_products(US, -1.0, beyond)
        for i in range(m):
            beyond[i, i] += 1.0
        for c in range(Y.shape[0]):
            f = np.dot(US, YU[c])
            for i in range(m):
                rest[c, i] = Y[c, lo + i] - f[i]
    Q, W, e = np.empty((m, m)), np.empty((m, r)), np.empty((Y.shape[0], m))
    for k in range(lams.size):
        ridge = (n - m) * lams[k]
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
def without_products(Z, ev, Y, YZ, G, lams, lo, hi, order, out, status, rho):
    """Hold a fold out by ``(G - Z_S' Z_S + ridge I) w = Z' y - Z_S' y_S``.

    Where the ridge is far above the trace of the products, ``w <- (right - products w) / ridge`` is at its fixed point
    after a few rounds, which are cheaper than a factorisation.
    """
    n, r = Z.shape
    m = hi - lo
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
        ridge = (n - m) * lams[k]
        dominated = trace < DOMINATED * ridge
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
            status[k] = CONVERGED if ridged_cholesky(products, ridge, R) == 0 else SINGULAR
            solve_rows(R, w)
        for c in range(Y.shape[0]):
            f = np.dot(ZS, w[c])
            for i in range(m):
                out[c, k, lo + i] = f[i]


@pointer(FOLD)
def influence(U, ev, Y, YU, G, lams, lo, hi, order, out, status, rho):
    """BIF of the given order for the square loss, and its ratio.

    In the coordinates of U, with ``h = ev / (ev + n lam)`` and ``kappa = 2 m lam U' f + diag(ev) U_S' d1_S``, the terms
    are ``e_1 = n / (2 (n - m)) kappa / (ev + n lam)`` and ``e_{k+1} = h ((n U_S' U_S - m I) / (n - m)) e_k``.
    """
    n, r = U.shape
    m = hi - lo
    kept, gone = n / (n - m), m / (n - m)
    US = U[lo:hi]
    d1, g, e, total = np.empty(m), np.empty(r), np.empty(r), np.empty(r)
    for k in range(lams.size):
        h = ev / (ev + n * lams[k])
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
                e[j] = 0.5 * kept * (2.0 * m * lams[k] * g[j] + ev[j] * pull[j]) / (ev[j] + n * lams[k])
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
    """Return the spectral radius of ``diag(h)(kept U_S' U_S - gone I)``, made symmetric, by power iteration.

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
    value, length = 0.0, np.sqrt(np.dot(x, x))
    for step in range(POWER_STEPS):
        for j in range(r):
            x[j] /= length
        inside = np.dot(np.dot(W, x), W)
        for j in range(r):
            x[j] = kept * inside[j] - gone * h[j] * x[j]
        before = value
        value = length = np.sqrt(np.dot(x, x))
        if not length > 1e-150 or (step > 1 and abs(value - before) <= POWER_TOLERANCE * value):
            break
    return value
