"""Intervals that contain the outputs of an exact fit, from its weights of features: see ``enclosure``."""

from __future__ import annotations

import numpy as np

from kernsel.numerics.runtime.blas import (
    add_products,
    inner,
    multiply,
    multiply_transposed,
    ridged_cholesky,
    solve_rows,
    sum_of,
)
from kernsel.numerics.runtime.jit import pointer
from kernsel.numerics.smooth.enclosure import (
    ENCLOSE,
    EPS,
    FEW,
    add_bias_range,
    give_up,
    guess_curvature,
    holds,
    intersect,
    narrow,
    settle,
)
from kernsel.numerics.smooth.systems import curved_rows


@pointer(ENCLOSE)
def enclose(Z, objective, loss, bend, rounds, x, low, high):
    """Enclose the outputs of the exact fit, from weights of features.

    With ``G = (1/N) sum_i s_i V'(f_i) z_i + 2 lam w`` and ``H = 2 lam I + sum_B D_i z_i z_i'``, where the column of
    ones of a bias has no ridge.

    Parameters
    ----------
    Z : (n, r) array
        Features, the column of a bias last.
    objective : Objective
        Rows with ``s_i = 0`` are left out.
    loss : pointer of type ``LOSS``
    bend : Bend
    rounds : int
        Guesses of the curvature at the most; with 0 there is the ball alone.
    x : (r,) array
        Weights of any fit.
    low, high : (n,) arrays
        Overwritten by the ends of the intervals.
    """
    _, s, lam, _, bias = objective
    (n, r), N, double = Z.shape, sum_of(s), 2.0 * lam
    ridged = r - bias
    f, G, lengths, error, off = np.empty(n), np.empty(r), np.empty(n), np.empty(n), np.zeros(n)
    d1, d2, middle, radius = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    size = np.sqrt(inner(x[:ridged], x))
    multiply(Z, x, f)
    for i in range(n):
        lengths[i] = np.sqrt(inner(Z[i, :ridged], Z[i]))
        error[i] = r * EPS * (lengths[i] * size + abs(f[i]))
    if not settle(loss, objective, N, f, error, off, d1, d2):
        give_up(low, high)
        return
    slack, total = 0.0, 0.0
    for i in range(n):
        d1[i] /= N
        slack += off[i] * lengths[i]
        total += abs(d1[i]) * lengths[i]
    multiply_transposed(Z, d1, G)
    for k in range(ridged):
        G[k] += double * x[k]
    if bias:
        G[ridged] = 0.0
    norm = np.sqrt(inner(G, G))
    rounding = n * EPS * total + FEW * EPS * double * size + r * EPS * norm
    if not np.isfinite(rounding + slack):
        give_up(low, high)
        return
    multiply(Z, G, middle)
    for j in range(n):
        middle[j] *= 0.5 / double
        radius[j] = lengths[j] * (0.5 * norm + slack + rounding) / double + error[j]
        low[j], high[j] = f[j] - middle[j] - radius[j], f[j] - middle[j] + radius[j]
    if bias:
        add_bias_range(loss, objective, low, high)
    if narrow(f, low, high):
        return
    D, spread, below, above = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    H, R, v, Hv, unit, rows = (
        np.empty((r, r)),
        np.empty((r, r)),
        np.empty(r),
        np.empty(r),
        np.empty(r),
        np.empty(n, np.int64),
    )
    guess_curvature(bend, N, d2, D)
    for _ in range(rounds):
        m = curved_rows(D, rows)
        if m == 0:
            return
        C = np.empty((m, r))
        for i in range(m):
            for k in range(r):
                C[i, k] = np.sqrt(D[rows[i]]) * Z[rows[i], k]
        for i in range(r):
            for k in range(r):
                H[i, k] = 0.0
        add_products(C, 1.0, H)
        trace = double * ridged
        for k in range(r):
            trace += H[k, k]
            v[k] = G[k]
            unit[k] = 0.0
        if ridged_cholesky(H, double, bias, R) != 0:
            return
        solve_rows(R, v)
        multiply(Z, v, middle)
        square = double * inner(v[:ridged], v)
        for i in range(n):
            d1[i] = D[i] * middle[i]
            square += d1[i] * middle[i]
        multiply_transposed(Z, d1, Hv)
        left = 0.0
        for k in range(ridged):
            left += (G[k] - Hv[k] - double * v[k]) ** 2
        left = (np.sqrt(left) + rounding + r * EPS * trace * np.sqrt(inner(v, v))) / np.sqrt(double)
        if bias:
            unit[ridged] = 1.0
            solve_rows(R, unit)
            left += (abs(Hv[ridged]) + r * EPS * trace * np.sqrt(inner(v, v))) * np.sqrt(max(unit[ridged], 0.0))
        Y = Z.copy()
        solve_rows(R, Y)
        unsure, others = 0.0, 0.0
        for j in range(n):
            spread[j] = inner(Z[j], Y[j]) + r * EPS * trace * inner(Y[j], Y[j])
            if D[j] > 0.0:
                spread[j] = min(spread[j], 1.0 / D[j])
                unsure += off[j] * off[j] / D[j]
            else:
                others += off[j] * np.sqrt(spread[j])
        reach = 0.5 * np.sqrt(square) + left + np.sqrt(unsure) + others
        if not np.isfinite(reach):
            return
        for j in range(n):
            middle[j] *= 0.5
            radius[j] = reach * np.sqrt(spread[j]) + error[j] + r * EPS * lengths[j] * np.sqrt(inner(v, v))
            below[j], above[j] = f[j] - middle[j] - radius[j], f[j] - middle[j] + radius[j]
        if holds(loss, objective, bend, N, f, below, above, D):
            intersect(f, middle, radius, low, high)
            return
