"""Updates of the folds' held-out outputs in the coordinates of low-rank features: see ``heldout``."""

from __future__ import annotations

import numpy as np

from kernsel.numerics.lanczos import LANCZOS_STEPS, dominant_vector, tridiagonal_radius, uneven
from kernsel.numerics.runtime.blas import (
    add_products,
    copy_lower,
    damped_solve,
    inner,
    mirror,
    ridged_cholesky,
    solve_rows,
)
from kernsel.numerics.runtime.jit import inline, pointer
from kernsel.numerics.smooth.heldout import UPDATE, astray
from kernsel.numerics.smooth.newton import ASTRAY, CONVERGED, SINGULAR


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
def newton_step(Z, bias, V, w, f, d1, d2, N, lam, starts, left, order, loss, parameters, y, s, trust, out, rho, status):
    """``delta = [mu' I + Z' D Z - Z_S' D_S Z_S]^-1 (2 N_S lam w + Z_S' d1_S)``, ``f^{-S}_S = Z_S (w + delta)``.

    A fold with few curved rows is taken away from the factor of the whole system by Woodbury's formula. If ``order`` is
    not 0, ``rho`` is filled, as by ``influence``.
    """
    n, r = Z.shape
    H = np.zeros((r, r))
    curved = curved_features(Z, d2, 0, n)
    add_products(curved, 1.0, H)
    R, factorised_for, failed = np.empty((r, r)), -1.0, False
    norm = inner(w[: r - bias], w)
    whole, unknown = np.empty((r, r)), True
    if order > 0:
        unknown = (bias == 1 and curved.shape[0] == 0) or ridged_cholesky(H, 2.0 * N * lam, bias, whole) != 0
    for fold in range(left.size):
        lo, hi = starts[fold], starts[fold + 1]
        mu = 2.0 * left[fold] * lam
        ZS = Z[lo:hi]
        delta = pull_of_fold(ZS, d1[lo:hi], w, 2.0 * (N - left[fold]) * lam, bias)
        C = curved_features(Z, d2, lo, hi)
        m = C.shape[0]
        status[fold] = SINGULAR
        if not unknown:
            rho[fold] = ratio(whole, 2.0 * N * lam, bias, C, N / left[fold], (N - left[fold]) / left[fold])
        if bias and curvature(d2, 0, lo) + curvature(d2, hi, n) == 0.0:
            continue  # no curved row is left to say where the bias should be
        if 4 * m > r:
            shorter, own = np.empty((r, r)), np.empty((r, r))
            copy_lower(H, shorter)
            add_products(C, -1.0, shorter)
            if ridged_cholesky(shorter, mu, bias, own) != 0:
                continue
            solve_rows(own, delta)
        elif curved.shape[0] == 0:
            delta /= mu
        else:
            if left[fold] != factorised_for:
                failed = ridged_cholesky(H, mu, bias, R) != 0
                factorised_for = left[fold]
            if failed:
                continue
            solve_rows(R, delta)
            if m:
                Y = C.copy()
                solve_rows(R, Y)
                small = np.eye(m) - np.dot(C, Y.T)
                v = np.dot(C, delta)
                if damped_solve(small, v) != 0:
                    continue
                delta += np.dot(v, Y)
        delta += w
        end = np.dot(Z, delta)
        climb = mu * (inner(w[: r - bias], delta) - norm)
        status[fold] = CONVERGED
        if astray(loss, parameters, y, s, f, d1, d2, end, lo, hi, climb, 0.5 * mu * norm, trust):
            status[fold] = ASTRAY
        for j in range(lo, hi):
            out[j] = end[j]


@inline
def pull_of_fold(ZS, d1, w, shrink, bias):
    """Return ``Z_S' d1_S + shrink w``, where the weight of a bias, the last one, isn't shrunk."""
    pull = np.dot(d1, ZS)
    for j in range(w.size - bias):
        pull[j] += shrink * w[j]
    return pull


@inline
def curvature(d2, lo, hi):
    """Return the sum of the curvature of some rows."""
    total = 0.0
    for i in range(lo, hi):
        total += d2[i]
    return total


@pointer(UPDATE)
def influence(Z, bias, V, w, f, d1, d2, N, lam, starts, left, order, loss, parameters, y, s, trust, out, rho, status):
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
    failed = (bias == 1 and curvature(d2, 0, n) == 0.0) or ridged_cholesky(H, mu, bias, R) != 0
    for fold in range(left.size):
        status[fold] = SINGULAR if failed else CONVERGED
        if failed:
            continue
        lo, hi = starts[fold], starts[fold + 1]
        C = curved_features(Z, d2, lo, hi)
        kept, gone = N / left[fold], (N - left[fold]) / left[fold]
        e = kept * pull_of_fold(Z[lo:hi], d1[lo:hi], w, 2.0 * (N - left[fold]) * lam, bias)
        solve_rows(R, e)
        rho[fold] = ratio(R, mu, bias, C, kept, gone)
        if order == 0:
            continue
        total = w + e
        for _ in range(order - 1):
            e = kept * np.dot(np.dot(C, e), C) - gone * np.dot(H, e)
            solve_rows(R, e)
            total += e
        for j in range(lo, hi):
            out[j] = inner(Z[j], total)


@inline
def ratio(R, mu, bias, C, kept, gone):
    """Return the spectral radius of ``L^-1 (kept C' C - gone (L - mu I))``, self-adjoint in the product of L.

    As ``heldout_kernel.ratio``: from the leading eigenvector of ``C L^-1 C'`` a few steps of Lanczos' lead to the end.
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
        solve_rows(R, x)
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
        Lx = kept * np.dot(np.dot(C, now), C) - gone * now_L
        for i in range(r - bias):
            Lx[i] += gone * mu * now[i]
        alpha[k] = np.dot(now, Lx)
        x = Lx.copy()
        solve_rows(R, x)
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
