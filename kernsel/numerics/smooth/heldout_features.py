"""Updates of the folds' held-out outputs in the coordinates of low-rank features: see ``heldout``."""

from __future__ import annotations

import numpy as np

from kernsel.numerics.lanczos import add_unevenness, dominant_vector, radius_of, series_of, uneven
from kernsel.numerics.left_out import take_rows
from kernsel.numerics.runtime.blas import (
    add_products,
    copy_lower,
    damped_solve,
    inner,
    inner_products,
    mirror,
    multiply,
    multiply_transposed,
    ridged_cholesky,
    solve_rows,
)
from kernsel.numerics.runtime.jit import inline, pointer
from kernsel.numerics.smooth.convergence import ASTRAY, CONVERGED, SINGULAR
from kernsel.numerics.smooth.heldout import UPDATE, strays


@inline
def curved_features(Z, d2, rows):
    """Return ``D^1/2 Z`` on those of some rows that are curved."""
    r = Z.shape[1]
    m = 0
    for i in rows:
        m += d2[i] > 0.0
    C = np.empty((m, r))
    m = 0
    for i in rows:
        if d2[i] > 0.0:
            root = np.sqrt(d2[i])
            for j in range(r):
                C[m, j] = root * Z[i, j]
            m += 1
    return C


@pointer(UPDATE)
def newton_step(Z, V, objective, loss, fit, folds, order, trust, held):
    """``delta = [mu' I + Z' D Z - Z_S' D_S Z_S]^-1 (2 N_S lam w + Z_S' d1_S)``, ``f^{-S}_S = Z_S (w + delta)``.

    Where the fit leaves out more rows than are scored, all but the last ``Z_S`` are of those rows.
    A fold with few curved rows is taken away from the factor of the whole system by Woodbury's formula. If ``order`` is
    not 0, ``rho`` is filled, as by ``influence``.

    Its arguments are those of ``heldout.UPDATE``.
    """
    (w, _, d1, d2), (starts, gone, bounds, left, N), (out, rho, status, ends, _, _) = fit, folds, held
    lam, bias = objective.lam, objective.bias
    n, r = Z.shape
    H = np.zeros((r, r))
    curved = curved_features(Z, d2, np.arange(n))
    add_products(curved, 1.0, H)
    R, factorised_for, failed = np.empty((r, r)), -1.0, False
    norm = inner(w[: r - bias], w)
    whole, unknown = np.empty((r, r)), True
    if order > 0:
        unknown = (bias == 1 and curved.shape[0] == 0) or ridged_cholesky(H, 2.0 * N * lam, bias, whole) != 0
        mirror(H)
    delta, end, shorter, own = np.empty(r), np.empty(n), np.empty((r, r)), np.empty((r, r))
    for fold in range(left.size):
        lo, hi, away = starts[fold], starts[fold + 1], gone[bounds[fold] : bounds[fold + 1]]
        mu = 2.0 * left[fold] * lam
        pull_of_rows(Z, d1, away, w, 2.0 * (N - left[fold]) * lam, bias, delta)
        C = curved_features(Z, d2, away)
        m = C.shape[0]
        status[fold] = SINGULAR
        if not unknown:
            rho[fold] = ratio(H, whole, C, N / left[fold], (N - left[fold]) / left[fold])
        if bias and m == curved.shape[0]:
            continue  # no curved row is left to say where the bias should be
        if 4 * m > r:
            copy_lower(H, shorter)
            add_products(C, -1.0, shorter)
            if ridged_cholesky(shorter, mu, bias, own) != 0:
                continue
            solve_rows(own, delta)
        elif curved.shape[0] == 0:
            for j in range(r):
                delta[j] /= mu
        else:
            if left[fold] != factorised_for:
                failed = ridged_cholesky(H, mu, bias, R) != 0
                factorised_for = left[fold]
            if failed:
                continue
            solve_rows(R, delta)
            if m > 0 and add_woodbury(R, C, delta) != 0:
                continue
        for j in range(r):
            delta[j] += w[j]
            if ends.size > 0:
                ends[fold, j] = delta[j]
        multiply(Z, delta, end)
        climb = mu * (inner(w[: r - bias], delta) - norm)
        status[fold] = CONVERGED
        if strays(loss, objective, fit, end, away, climb, 0.5 * mu * norm, trust):
            status[fold] = ASTRAY
        for j in range(lo, hi):
            out[j] = end[j]


@inline
def add_woodbury(R, C, x):
    """Turn ``x = H^-1 b`` into ``(H - C' C)^-1 b = x + H^-1 C' (I - C H^-1 C')^-1 C x``; return a status.

    Parameters
    ----------
    R : (r, r)
        The Cholesky factor of H.
    C : (m, r)
    x : (r,)
    """
    m, r = C.shape
    Y, v, change = C.copy(), np.empty(m), np.empty(r)
    solve_rows(R, Y)
    small = inner_products(C, Y)
    for i in range(m):
        for j in range(m):
            small[i, j] = (1.0 if i == j else 0.0) - small[i, j]
    multiply(C, x, v)
    if damped_solve(small, v) != 0:
        return SINGULAR
    multiply_transposed(Y, v, change)
    for j in range(r):
        x[j] += change[j]
    return CONVERGED


@inline
def pull_of_rows(Z, d1, rows, w, shrink, bias, out):
    """Fill ``out (r,)`` with ``Z_S' d1_S + shrink w``, where the weight of a bias, the last one, isn't shrunk."""
    pull = np.empty(rows.size)
    for i in range(rows.size):
        pull[i] = d1[rows[i]]
    multiply_transposed(take_rows(Z, rows), pull, out)
    for j in range(w.size - bias):
        out[j] += shrink * w[j]


@pointer(UPDATE)
def influence(Z, V, objective, loss, fit, folds, order, trust, held):
    """BIF of the given order, and ``rho`` of each fold: with ``L = H + mu I`` and ``H = Z' D Z`` the terms are

    ``e_1 = N / (N - N_S) L^-1 (2 N_S lam w + Z_S' d1_S)``, ``e_{k+1} = L^-1 E e_k`` with
    ``E = (N Z_C' D_C Z_C - N_S H) / (N - N_S)``.

    Its arguments are those of ``heldout.UPDATE``.
    """
    (w, _, d1, d2), (starts, _, _, left, N), (out, rho, status, _, _, _) = fit, folds, held
    lam, bias = objective.lam, objective.bias
    n, r = Z.shape
    H, R, e, total = np.zeros((r, r)), np.empty((r, r)), np.empty(r), np.empty(r)
    curved = curved_features(Z, d2, np.arange(n))
    add_products(curved, 1.0, H)
    mirror(H)
    failed = (bias == 1 and curved.shape[0] == 0) or ridged_cholesky(H, 2.0 * N * lam, bias, R) != 0
    for fold in range(left.size):
        status[fold] = SINGULAR if failed else CONVERGED
        if failed:
            continue
        lo, hi = starts[fold], starts[fold + 1]
        rows = np.arange(lo, hi)
        C = curved_features(Z, d2, rows)
        kept, gone = N / left[fold], (N - left[fold]) / left[fold]
        rho[fold] = ratio(H, R, C, kept, gone)
        if order == 0:
            continue
        pull_of_rows(Z, d1, rows, w, 2.0 * (N - left[fold]) * lam, bias, e)
        for j in range(r):
            e[j] *= kept
        solve_rows(R, e)
        sum_series((H, R, C, kept, gone), e, order, total)
        for j in range(r):
            total[j] += w[j]
        for j in range(lo, hi):
            out[j] = inner(Z[j], total)


@inline
def apply(data, x, Ex, image):
    """Apply the operator of ``lanczos`` to weights of the features: ``E = kept C' C - gone H``, ``L = R R'``."""
    H, R, C, kept, gone = data
    c, inside = np.empty(C.shape[0]), np.empty(x.size)
    multiply(C, x, c)
    multiply_transposed(C, c, inside)
    multiply(H, x, Ex)
    for i in range(x.size):
        Ex[i] = kept * inside[i] - gone * Ex[i]
        image[i] = Ex[i]
    solve_rows(R, image)


spectral_radius, sum_series = radius_of(apply), series_of(apply)


@inline
def ratio(H, R, C, kept, gone):
    """Return the spectral radius of ``L^-1 E``: see ``apply`` for the operators, and ``lanczos`` for the method.

    It starts from the leading eigenvector v of ``C L^-1 C'``, the fold's own block, as ``L^-1 C' v``.
    """
    m, r = C.shape
    x, Lx = np.zeros(r), np.empty(r)
    v = np.empty(m)
    if m <= r:
        Y = C.copy()
        solve_rows(R, Y)
        v = dominant_vector(inner_products(C, Y))
        multiply_transposed(Y, v, x)
    else:
        for i in range(m):
            v[i] = uneven(i)
        multiply_transposed(C, v, x)
        solve_rows(R, x)
    add_unevenness(x)
    triangular_product(R, x, Lx)
    return spectral_radius((H, R, C, kept, gone), x, Lx)


@inline
def triangular_product(R, x, out):
    """Fill ``out (r,)`` with ``R R' x`` for the lower triangle R (r, r)."""
    r = x.size
    y = np.zeros(r)
    for i in range(r):
        for j in range(i + 1):
            y[j] += R[i, j] * x[i]
    for i in range(r):
        out[i] = 0.0
        for j in range(i + 1):
            out[i] += R[i, j] * y[j]
