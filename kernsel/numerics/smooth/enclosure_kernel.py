"""Intervals that contain the outputs of an exact fit, from its coefficients: see ``enclosure``."""

from __future__ import annotations

import numpy as np

from kernsel.numerics.runtime.blas import (
    damped_cholesky,
    fill,
    inner,
    solve_rows,
    sum_of,
)
from kernsel.numerics.runtime.jit import inline, pointer
from kernsel.numerics.smooth.enclosure import (
    ENCLOSE,
    EPS,
    FEW,
    HALF_EPS,
    add_bias_range,
    give_up,
    guess_curvature,
    holds,
    intersect,
    narrow,
    settle,
)
from kernsel.numerics.smooth.systems import add_rows, changed_rows, curved_rows, scaled_block


@pointer(ENCLOSE)
def enclose(K, objective, loss, bend, rounds, x, low, high):
    """Enclose the outputs of the exact fit, from coefficients of the Gram matrix.

    With ``G = sum_i c_i k_i``, ``c_i = s_i V'(f_i) / N + 2 lam a_i``, the curved rows B and
    ``S = D^1/2 K_BB D^1/2 + 2 lam I``,

    ``H^-1 G = sum_i p_i k_i + eb``, ``2 lam p = c - D^1/2 w``, ``S w = D^1/2 ((K c)_B + 2 lam eb)``,
    ``2 lam psi_j' H^-1 psi_j = K_jj - k_jB' D^1/2 S^-1 D^1/2 k_jB + (1 - k_jB' D^1/2 u)^2 / t``,
    ``u = S^-1 D^1/2 1``, ``t = 1' D^1/2 u``,

    where eb, which is 0 without a bias, makes ``1' D^1/2 w = 0``, and the last term is that of a bias. For rows that
    aren't left out ``K_jj`` in place of the first two terms, and ``1 / D_j`` in place of all of it, are bounds as well.

    Parameters
    ----------
    K : (n, n) array
    objective : Objective
        Rows with ``s_i = 0`` are left out.
    loss : pointer of type ``LOSS``
    bend : Bend
    rounds : int
        Guesses of the curvature at the most; with 0 there is the ball alone.
    x : (n + bias,) array
        Coefficients of any fit, a bias last.
    low, high : (n,) arrays
        Overwritten by the ends of the intervals.
    """
    y, s, lam, _, bias = objective
    n, N, double = y.size, sum_of(s), 2.0 * lam
    depth = (0.25 * n + 4.0) * HALF_EPS
    f, c, Kc, lengths, error, off = np.empty(n), np.empty(n), np.zeros(n), np.empty(n), np.empty(n), np.zeros(n)
    rows, steps, d1, d2 = np.empty(n, np.int64), np.empty(n), np.empty(n), np.empty(n)
    size = 0.0
    for i in range(n):
        c[i] = x[i]
        lengths[i] = np.sqrt(max(K[i, i], 0.0))
        size += lengths[i] * abs(x[i])
        f[i] = x[n] if bias else 0.0
    add_rows(K, rows, changed_rows(c, rows, steps), steps, f)
    for i in range(n):
        error[i] = depth * lengths[i] * size + FEW * EPS * abs(f[i])
    if not settle(loss, objective, N, f, error, off, d1, d2):
        give_up(low, high)
        return
    slack, total = 0.0, 0.0
    for i in range(n):
        c[i] = d1[i] / N + double * x[i]
        off[i] += FEW * EPS * double * abs(x[i])
        if abs(c[i]) <= off[i]:  # as good as 0, and faster
            off[i] += abs(c[i])
            c[i] = 0.0
        slack += off[i] * lengths[i]
        total += abs(c[i]) * lengths[i]
    add_rows(K, rows, changed_rows(c, rows, steps), steps, Kc)
    slack += depth * total
    norm = np.sqrt(max(inner(c, Kc), 0.0) + n * EPS * total * total)
    if not np.isfinite(norm + slack):
        give_up(low, high)
        return
    for j in range(n):
        radius = lengths[j] * (0.5 * norm + slack) / double + error[j]
        low[j] = f[j] - 0.5 * Kc[j] / double - radius
        high[j] = f[j] - 0.5 * Kc[j] / double + radius
    if bias:
        add_bias_range(loss, objective, low, high)
    if narrow(f, low, high):
        return
    D, p, v, spread, radius = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    below, above, through = np.empty(n), np.empty(n), np.empty(n)
    guess_curvature(bend, N, d2, D)
    for _ in range(rounds):
        m = curved_rows(D, rows)
        if m == 0:
            return
        root, w, u = np.empty(m), np.empty(m), np.empty(m)
        for i in range(m):
            root[i] = np.sqrt(D[rows[i]])
            w[i] = root[i] * Kc[rows[i]]
            u[i] = root[i]
        S = scaled_block(K, rows, root, double)
        trace = 0.0
        for i in range(m):
            trace += S[i, i]
        if damped_cholesky(S) != 0:
            return
        solve_rows(S, w)
        eb, t = 0.0, 1.0
        fill(through, 0.0)
        if bias:
            solve_rows(S, u)
            t = inner(root, u)
            eb = -inner(root, w) / (double * t)
            for i in range(m):
                w[i] += double * eb * u[i]
                u[i] *= root[i]
            add_rows(K, rows, m, u, through)
        for i in range(n):
            p[i] = c[i] / double
        for i in range(m):
            w[i] *= root[i]
            p[rows[i]] -= w[i] / double
        fill(v, 0.0)
        places = np.empty(n, np.int64)
        add_rows(K, places, changed_rows(p, places, steps), steps, v)
        size = 0.0
        for i in range(n):
            size += abs(p[i]) * lengths[i]
        square = double * (max(inner(p, v), 0.0) + n * EPS * size * size)
        for j in range(n):
            v[j] += eb
            spread[j] = lengths[j] * lengths[j] / double
            if bias:
                spread[j] += (1.0 - through[j]) ** 2 / (double * t)
        left, unsure, others = 0.0, 0.0, 0.0
        for i in range(m):
            k = rows[i]
            square += D[k] * v[k] * v[k]
            rounding = depth * lengths[k] * size + FEW * EPS * abs(eb)
            left += (abs(w[i] - D[k] * v[k]) + D[k] * rounding) ** 2 / D[k]
            unsure += off[k] * off[k] / D[k]
            spread[k] = min(spread[k], 1.0 / D[k])
        for i in range(n):
            if D[i] == 0.0:
                others += off[i] * np.sqrt(spread[i])
        reach = 0.5 * np.sqrt(square) + np.sqrt(left) + np.sqrt(unsure) + others
        if not np.isfinite(reach):
            return
        for j in range(n):
            radius[j] = reach * np.sqrt(spread[j]) + error[j] + depth * lengths[j] * size
            below[j], above[j] = f[j] - 0.5 * v[j] - radius[j], f[j] - 0.5 * v[j] + radius[j]
        if holds(loss, objective, bend, N, f, below, above, D):
            for j in range(n):
                v[j] *= 0.5
            sharpen_left_out(K, s, rows, root, S, trace, double, reach, spread, radius)
            intersect(f, v, radius, low, high)
            return


@inline
def sharpen_left_out(K, s, rows, root, S, trace, double, reach, spread, radius):
    """Replace, for rows that are left out, ``K_jj`` by ``K_jj - k_jB' D^1/2 S^-1 D^1/2 k_jB`` in their radius.

    S holds the Cholesky factor of a matrix with that trace. Its backward error is below ``m EPS trace``.
    """
    m, count = root.size, 0
    for j in range(s.size):
        count += s[j] == 0.0
    W = np.empty((count, m))
    count = 0
    for j in range(s.size):
        if s[j] == 0.0:
            for i in range(m):
                W[count, i] = root[i] * K[j, rows[i]]
            count += 1
    Y = W.copy()
    solve_rows(S, Y)
    count = 0
    for j in range(s.size):
        if s[j] == 0.0:
            gain = inner(W[count], Y[count]) - m * EPS * trace * inner(Y[count], Y[count])
            less = max(spread[j] - gain / double, 0.0) if gain > 0.0 else spread[j]
            radius[j] -= reach * (np.sqrt(spread[j]) - np.sqrt(less))
            count += 1
