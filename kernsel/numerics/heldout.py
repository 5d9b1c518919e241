"""Held-out outputs of every fold from one fit: the Newton step and the Bouligand influence function (BIF).

Every update takes one fit (``f``, ``d1``, ``d2`` at ``lam``) and fills ``out (n,)`` with the output of each row
predicted without its fold, ``f^{-S}_S``, approximately for a curved loss. Curved rows are A, those of the fold C.

*Newton step*: one Newton step from the fit towards the fit without the fold; exact for the square loss.
*BIF of order r*: the Taylor series of the same step in the weight of the fold. It is geometric with the ratio ``rho``,
the spectral radius of ``L^-1 (Z_S' D_S Z_S - (N_S / N) Z' D Z) / (N - N_S)`` with ``N L = Z' D Z + mu I``; order
infinity is the Newton step (mathematics of BIF14, its Theorem 2 with the factor corrected).

In the coordinates of the Gram matrix nothing but K is needed, and all folds of one fit cost ``O(n^2 + |A|^3)``.
With scaled curved rows, ``D^1/2 K D^1/2``, both updates read off one inverse.
"""

from __future__ import annotations

import numpy as np
from numba.core import types

from kernsel.numerics.blas import (
    add_products,
    copy_lower,
    damped_cholesky,
    damped_solve,
    inner,
    inverse,
    mirror,
    ridged_cholesky,
    solve_rows,
    times,
)
from kernsel.numerics.jit import Compiled, f8, f8_1, f8_2, f8_3, i8, i8_1, inline, jit, one_blas_thread, pointer, share
from kernsel.numerics.newton import (
    CONVERGED,
    SINGULAR,
    add_rows,
    curved_rows,
    scaled_block,
)
from kernsel.numerics.radius import dominant_vector, tridiagonal_radius, uneven

UPDATE = types.FunctionType(i8(f8_2, f8_2, f8_1, f8_1, f8_1, f8_1, f8, f8, i8_1, f8_1, i8, f8_1, f8_1))
"""``(K or Z, V, a or w, f, d1, d2, N, lam, starts, left, order, out, rho) -> status``."""

LANCZOS_STEPS = 8  # with the whole system, once the power iteration with the fold's block has converged


@jit((i8, i8, UPDATE, f8_2, f8_2, f8_3, f8_3, f8_3, f8_3, f8, f8_1, i8_1, f8_1, i8, f8_3, f8_3, i8[:, ::1]))
def _updates(first, step, update, G, V, x, f, d1, d2, N, lams, starts, left, order, out, rho, status):
    q, L = status.shape
    for job in range(first, q * L, step):
        j, k = job // L, job % L
        status[j, k] = update(
            G, V, x[j, k], f[j, k], d1[j, k], d2[j, k], N, lams[k], starts, left, order, out[j, k], rho[j, k]
        )


def update_folds(
    update: Compiled,
    G: np.ndarray,
    V: np.ndarray,
    x: np.ndarray,
    f: np.ndarray,
    d1: np.ndarray,
    d2: np.ndarray,
    N: float,
    lams: np.ndarray,
    starts: np.ndarray,
    left: np.ndarray,
    order: int,
    out: np.ndarray,
    rho: np.ndarray,
) -> np.ndarray:
    """Apply ``update`` to the fits of ``q`` outputs and ``L`` values of ``lam``, side by side.

    Parameters
    ----------
    update : pointer
        ``newton_step_in_kernel`` or another function of the type ``UPDATE`` in this file.
    G, V : (n, n) or (n, r); (n, c)
        The Gram matrix or the features; the Nystrom factor where ``nystrom_influence`` wants it.
    x, f, d1, d2 : (q, L, .), (q, L, n)
        The fits: coefficients or weights, outputs, and the derivatives there.
    order : int
        Of the BIF; 0 asks for ``rho`` alone.
    out : (q, L, n); rho : (q, L, t)
        Overwritten: held-out outputs, and the ratio of the series a fold.

    Returns
    -------
    (q, L) int
        0, or a key of ``newton.REASONS``.
    """
    status = np.zeros(f.shape[:2], np.int64)
    loop = _updates.code  # compiled here, not by several threads at once
    job = (update.code, G, V, x, f, d1, d2, N, lams, starts, left, order, out, rho, status)
    with one_blas_thread():
        share(lambda first, step: loop(first, step, *job), status.size)
    return status


@inline
def part(rows, count, lo, hi):
    """Return where ``rows[:count]``, ascending, holds the rows from ``lo`` to below ``hi``."""
    first = 0
    while first < count and rows[first] < lo:
        first += 1
    last = first
    while last < count and rows[last] < hi:
        last += 1
    return first, last


@inline
def add_to_fold(K, rows, first, last, coefficients, lo, hi, out):
    """Add ``sum_i coefficients[i] K[rows[i], lo:hi]`` over ``first <= i < last`` to ``out[lo:hi]``."""
    for i in range(first, last):
        k, c = K[rows[i]], coefficients[i]
        for j in range(lo, hi):
            out[j] += c * k[j]


@inline
def scaled_inverse(K, rows, root, ridge):
    """Return a status and ``(D^1/2 K D^1/2 + ridge I)^-1`` on the curved rows."""
    B = scaled_block(K, rows, root, ridge)
    status = damped_cholesky(B)
    if status == 0:
        inverse(B)
    return status, B


@pointer(UPDATE)
def newton_step_in_kernel(K, V, a, f, d1, d2, N, lam, starts, left, order, out, rho):
    """One Newton step from the fit towards each fold's own fit, with ``mu' = 2 (N - N_S) lam``.

    Without the fold, straight rows get the coefficient ``-d1_i / mu'`` and the curved rows B = A without C
    ``(K_BB + mu' D^-1) a_B = f_B - d1_B / d2_B - (K a)_B`` of the straight ones. The system of B is read off the
    inverse M for all of A: ``a_B = u_B - M_BC M_CC^-1 u_C`` with ``u = M [right-hand side of B; 0]``.
    """
    n = f.size
    rows, straight, coefficients = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
    count = curved_rows(d2, rows)
    root = roots(d2, rows, count)
    m = 0
    for i in range(n):
        if not d2[i] > 0.0 and d1[i] != 0.0:
            straight[m] = i
            coefficients[m] = -d1[i]
            m += 1
    base, h, u, x = np.zeros(n), np.empty(n), np.empty(count), np.empty(count)
    add_rows(K, straight, m, coefficients, base)
    M, factorised_for = np.empty((0, 0)), -1.0
    for fold in range(left.size):
        lo, hi = starts[fold], starts[fold + 1]
        mu = 2.0 * left[fold] * lam
        if left[fold] != factorised_for:
            status, M = scaled_inverse(K, rows, root, mu)
            if status != 0:
                return SINGULAR
            factorised_for = left[fold]
        for i in range(n):
            h[i] = base[i]
        first, last = part(straight, m, lo, hi)
        for i in range(first, last):
            k, c = K[straight[i]], coefficients[i]
            for j in range(n):
                h[j] -= c * k[j]
        first, last = part(rows, count, lo, hi)
        for i in range(count):
            k = rows[i]
            u[i] = 0.0 if first <= i < last else root[i] * (f[k] - d1[k] / d2[k] - h[k] / mu)
        times(M, u, x)
        if last > first and without_rows(M, first, last, x) != 0:
            return SINGULAR
        for j in range(lo, hi):
            out[j] = h[j] / mu
        for i in range(count):
            x[i] *= root[i]
        add_to_fold(K, rows, 0, first, x, lo, hi, out)
        add_to_fold(K, rows, last, count, x, lo, hi, out)
    return CONVERGED


@inline
def roots(d2, rows, count):
    """Return the square roots of the curvature on the first ``rows``."""
    root = np.empty(count)
    for i in range(count):
        root[i] = np.sqrt(d2[rows[i]])
    return root


@inline
def without_rows(M, first, last, x):
    """Turn ``x = M b``, with ``b = 0`` from ``first`` to ``last``, into the solution without these rows of M^-1."""
    m = last - first
    MC, c = np.empty((m, m)), np.empty(m)
    for i in range(m):
        c[i] = x[first + i]
        for j in range(i + 1):
            MC[i, j] = M[first + i, first + j]
    if damped_solve(MC, c) != 0:
        return SINGULAR
    for i in range(x.size):
        for j in range(m):
            x[i] -= M[i, first + j] * c[j]
    return CONVERGED


@inline
def gradient_of_fold(K, f, d1, lam, weight, lo, hi, rows, out):
    """Fill ``out = 2 N_S lam f + K_{:,S} d1_S``: by how much the fold's loss pulls at every row."""
    for i in range(f.size):
        out[i] = 2.0 * weight * lam * f[i]
    for i in range(hi - lo):
        rows[i] = lo + i
    add_rows(K, rows, hi - lo, d1[lo:hi], out)


@pointer(UPDATE)
def influence_in_kernel(K, V, a, f, d1, d2, N, lam, starts, left, order, out, rho):
    """BIF of the given order, and ``rho`` of each fold.

    With ``M = (D^1/2 K D^1/2 + mu I)^-1`` on A and ``c = (N 1_S - N_S) / (N - N_S)`` the scaled terms of the series,
    ``e_k = D^1/2 E_k``, follow ``e_1 = (mu / mu') M D^1/2 kappa_A`` and ``e_{k+1} = (I - mu M)(c e_k)``.
    """
    n = f.size
    mu = 2.0 * N * lam
    rows, fold_rows, kappa = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
    count = curved_rows(d2, rows)
    root = roots(d2, rows, count)
    status, M = scaled_inverse(K, rows, root, mu)
    if status != 0:
        return SINGULAR
    c, e, x, z = np.empty(count), np.empty(count), np.empty(count), np.empty(count)
    for fold in range(left.size):
        lo, hi = starts[fold], starts[fold + 1]
        gone, shorter = N - left[fold], 2.0 * left[fold] * lam
        first, last = part(rows, count, lo, hi)
        for i in range(count):
            c[i] = 1.0 if first <= i < last else -gone / left[fold]
        rho[fold] = ratio_in_kernel(M, mu, c, first, last)
        if order == 0:
            continue
        gradient_of_fold(K, f, d1, lam, gone, lo, hi, fold_rows, kappa)
        for i in range(count):
            e[i] = root[i] * kappa[rows[i]]
        times(M, e, z)
        for i in range(count):
            x[i] = -z[i] / shorter
            e[i] = z[i] * (mu / shorter)
        for _ in range(order - 1):
            for i in range(count):
                e[i] *= c[i]
            times(M, e, z)
            for i in range(count):
                x[i] += z[i]
                e[i] -= mu * z[i]
        for i in range(count):
            x[i] *= root[i]
        for j in range(lo, hi):
            out[j] = f[j] + kappa[j] / shorter
        add_to_fold(K, rows, 0, count, x, lo, hi, out)
    return CONVERGED


@inline
def ratio_in_kernel(M, mu, c, first, last):
    """Return the spectral radius of ``diag(c) H`` with ``H = I - mu M``, self-adjoint in the product of H.

    The largest eigenvalue of the fold's own block ``H_CC`` is above it by no more than ``N_S / (N - N_S)``. Power
    iteration on that small block gives the vector from which a few steps of Lanczos' with the whole of H are enough.
    """
    m = last - first
    B = np.empty((m, m))
    for i in range(m):
        for j in range(m):
            B[i, j] = -mu * M[first + i, first + j]
        B[i, i] += 1.0
    v = dominant_vector(B)
    x = np.empty(c.size)
    for i in range(c.size):
        x[i] = 0.3 * uneven(i) / np.sqrt(c.size)  # for where the other rows decide
    for i in range(m):
        x[first + i] += v[i]
    return lanczos_in_kernel(M, mu, c, x)


@inline
def lanczos_in_kernel(M, mu, c, x):
    """Return the spectral radius of ``diag(c) H`` on the Krylov space of ``x``, orthonormal in the product of H."""
    alpha, beta = np.zeros(LANCZOS_STEPS), np.zeros(LANCZOS_STEPS + 1)
    now, before, y = np.zeros(c.size), np.zeros(c.size), np.empty(c.size)
    k, least = 0, 1e-150
    while k < LANCZOS_STEPS:
        times(M, x, y)
        for i in range(c.size):
            y[i] = x[i] - mu * y[i]
        beta[k] = np.sqrt(max(inner(x, y), 0.0))
        if not beta[k] > least:
            break
        for i in range(c.size):
            before[i] = now[i]
            now[i] = x[i] / beta[k]
            x[i] = c[i] * y[i] / beta[k]
        alpha[k] = inner(x, y) / beta[k]
        for i in range(c.size):
            x[i] -= alpha[k] * now[i] + (beta[k] * before[i] if k else 0.0)
        least = 1e-12 * (abs(alpha[k]) + (beta[k] if k else 0.0))
        k += 1
    return tridiagonal_radius(alpha[:k], beta[1:k])


@pointer(UPDATE)
def nystrom_influence(K, V, a, f, d1, d2, N, lam, starts, left, order, out, rho):
    """Nystrom BIF of first order (FBIF18): the fit on K, and ``K ~ V V'`` in the inverse only.

    ``f^{-S} = f + (kappa - V (mu I + V' D V)^-1 V' D kappa) / mu'`` with the curved rows in D: for the hinge this is
    FBIF18's formula with its sign and its mask corrected, for the square loss its Section 4.2.
    """
    n, c = V.shape
    mu = 2.0 * N * lam
    rows, kappa, q = np.empty(n, np.int64), np.empty(n), np.empty(c)
    count = curved_rows(d2, rows)
    scaled = np.empty((count, c))
    for i in range(count):
        for j in range(c):
            scaled[i, j] = np.sqrt(d2[rows[i]]) * V[rows[i], j]
    B = np.zeros((c, c))
    add_products(scaled, 1.0, B)
    for j in range(c):
        B[j, j] += mu
    if damped_cholesky(B) != 0:
        return SINGULAR
    for fold in range(left.size):
        lo, hi = starts[fold], starts[fold + 1]
        gradient_of_fold(K, f, d1, lam, N - left[fold], lo, hi, rows, kappa)
        for k in range(c):
            q[k] = 0.0
        for i in range(n):
            if d2[i] > 0.0:
                for k in range(c):
                    q[k] += d2[i] * kappa[i] * V[i, k]
        solve_rows(B, q.reshape(1, c))
        shorter = 2.0 * left[fold] * lam
        for j in range(lo, hi):
            out[j] = f[j] + (kappa[j] - inner(V[j], q)) / shorter
    return CONVERGED


@inline
def curved_features(Z, d2, lo, hi):
    """Return ``D^1/2 Z`` on the curved rows from ``lo`` to below ``hi``."""
    r = Z.shape[1]
    m = 0
    for i in range(lo, hi):
        m += d2[i] > 0.0
    C = np.empty((m, r))
    m = 0
    for i in range(lo, hi):
        if d2[i] > 0.0:
            root = np.sqrt(d2[i])
            for j in range(r):
                C[m, j] = root * Z[i, j]
            m += 1
    return C


@pointer(UPDATE)
def newton_step_in_features(Z, V, w, f, d1, d2, N, lam, starts, left, order, out, rho):
    """``delta = [mu' I + Z' D Z - Z_S' D_S Z_S]^-1 (2 N_S lam w + Z_S' d1_S)``, ``f^{-S}_S = Z_S (w + delta)``.

    A fold with few curved rows is taken away from the factor of the whole system by Woodbury's formula.
    """
    n, r = Z.shape
    H = np.zeros((r, r))
    add_products(curved_features(Z, d2, 0, n), 1.0, H)
    R, factorised_for = np.empty((r, r)), -1.0
    for fold in range(left.size):
        lo, hi = starts[fold], starts[fold + 1]
        mu = 2.0 * left[fold] * lam
        ZS = Z[lo:hi]
        delta = np.dot(d1[lo:hi], ZS) + (2.0 * (N - left[fold]) * lam) * w
        C = curved_features(Z, d2, lo, hi)
        m = C.shape[0]
        if 4 * m > r:
            shorter = np.empty((r, r))
            copy_lower(H, shorter)
            add_products(C, -1.0, shorter)
            for j in range(r):
                shorter[j, j] += mu
            if damped_solve(shorter, delta) != 0:
                return SINGULAR
        else:
            if left[fold] != factorised_for:
                if ridged_cholesky(H, mu, R) != 0:
                    return SINGULAR
                factorised_for = left[fold]
            solve_rows(R, delta.reshape(1, r))
            if m:
                Y = C.copy()
                solve_rows(R, Y)
                small = np.eye(m) - np.dot(C, Y.T)
                v = np.dot(C, delta)
                if damped_solve(small, v) != 0:
                    return SINGULAR
                delta += np.dot(v, Y)
        delta += w
        predicted = np.dot(ZS, delta)
        for j in range(lo, hi):
            out[j] = predicted[j - lo]
    return CONVERGED


@pointer(UPDATE)
def influence_in_features(Z, V, w, f, d1, d2, N, lam, starts, left, order, out, rho):
    """BIF of the given order, and ``rho`` of each fold: with ``N L = H + mu I`` and ``H = Z' D Z`` the terms are

    ``e_1 = N / (N - N_S) (N L)^-1 (2 N_S lam w + Z_S' d1_S)``, ``e_{k+1} = (N L)^-1 E e_k`` with
    ``E = (N Z_C' D_C Z_C - N_S H) / (N - N_S)``.
    """
    n, r = Z.shape
    mu = 2.0 * N * lam
    H = np.zeros((r, r))
    add_products(curved_features(Z, d2, 0, n), 1.0, H)
    mirror(H)
    R = np.empty((r, r))
    if ridged_cholesky(H, mu, R) != 0:
        return SINGULAR
    for fold in range(left.size):
        lo, hi = starts[fold], starts[fold + 1]
        ZS = Z[lo:hi]
        C = curved_features(Z, d2, lo, hi)
        kept, gone = N / left[fold], (N - left[fold]) / left[fold]
        e = kept * (np.dot(d1[lo:hi], ZS) + (2.0 * (N - left[fold]) * lam) * w)
        solve_rows(R, e.reshape(1, r))
        rho[fold] = ratio_in_features(R, mu, C, kept, gone)
        if order == 0:
            continue
        total = w + e
        for _ in range(order - 1):
            e = kept * np.dot(np.dot(C, e), C) - gone * np.dot(H, e)
            solve_rows(R, e.reshape(1, r))
            total += e
        predicted = np.dot(ZS, total)
        for j in range(lo, hi):
            out[j] = predicted[j - lo]
    return CONVERGED


@inline
def ratio_in_features(R, mu, C, kept, gone):
    """Return the spectral radius of ``L^-1 (kept C' C - gone (L - mu I))``, self-adjoint in the product of L.

    As in ``ratio_in_kernel``: from the leading eigenvector of ``C L^-1 C'`` a few steps of Lanczos' lead to the end.
    """
    m, r = C.shape
    v = np.empty(m)
    for i in range(m):
        v[i] = uneven(i)
    Y = C.copy()
    if m <= r:
        solve_rows(R, Y)
        v = dominant_vector(np.dot(C, Y.T))
    x = np.dot(v, Y)
    if m > r:
        solve_rows(R, x.reshape(1, r))
    size = np.sqrt(np.dot(x, x) / r)
    for i in range(r):
        x[i] += (0.1 * size if size > 0.0 else 1.0) * uneven(i)
    alpha, beta = np.zeros(LANCZOS_STEPS), np.zeros(LANCZOS_STEPS + 1)
    before, before_L = np.zeros(r), np.zeros(r)
    Lx = triangular_product(R, x)
    k, least = 0, 1e-150
    while k < LANCZOS_STEPS:
        beta[k] = np.sqrt(max(np.dot(x, Lx), 0.0))
        if not beta[k] > least:
            break
        now, now_L = x / beta[k], Lx / beta[k]
        Lx = kept * np.dot(np.dot(C, now), C) - gone * (now_L - mu * now)
        alpha[k] = np.dot(now, Lx)
        x = Lx.copy()
        solve_rows(R, x.reshape(1, r))
        x -= alpha[k] * now
        Lx -= alpha[k] * now_L
        if k:
            x -= beta[k] * before
            Lx -= beta[k] * before_L
        before, before_L = now, now_L
        least = 1e-12 * (abs(alpha[k]) + (beta[k] if k else 0.0))
        k += 1
    return tridiagonal_radius(alpha[:k], beta[1:k])


@inline
def triangular_product(R, x):
    """Return ``R R' x`` for the lower triangle R."""
    r = x.size
    y, z = np.zeros(r), np.zeros(r)
    for i in range(r):
        for j in range(i + 1):
            y[j] += R[i, j] * x[i]
    for i in range(r):
        for j in range(i + 1):
            z[i] += R[i, j] * y[j]
    return z
