"""Intervals that contain the outputs of an exact fit, from its coefficients: see ``enclosure``."""

from __future__ import annotations

import numpy as np

from kernsel.numerics.runtime.blas import (
    fill,
    inner,
    inner_products,
    solve_half_rows,
    solve_rows,
    sum_of,
)
from kernsel.numerics.runtime.jit import inline, pointer
from kernsel.numerics.smooth.enclosure import (
    BETWEEN,
    ENCLOSE,
    EPS,
    FEW,
    HALF_EPS,
    OTHERS,
    UNSURE,
    give_up,
    guess_curvature,
    holds,
    intersect,
    join_ends,
    narrow,
    others_of,
    rounding_of,
)
from kernsel.numerics.smooth.enclosure_bias import add_bias_range, settle
from kernsel.numerics.smooth.objective import Objective
from kernsel.numerics.smooth.systems import add_rows, changed_rows, curved_rows, factorise


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
    f, c, Kc, lengths, error, off, d2 = room_for_fit(n)
    norm, slack, _, pull = approach(K, objective, loss, x, f, c, Kc, lengths, error, off, d2)
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
    D, v, spread, radius = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    rows = np.empty(n, np.int64)
    guess_curvature(bend, N, d2, D)
    for _ in range(rounds):
        reach, rounding, trace, root, S = ellipsoid(K, s, double, bias, lengths, D, c, Kc, off, pull, rows, v, spread)
        if not np.isfinite(reach):
            return
        rounded = (error, rounding, lengths)
        if holds(loss, objective, bend, N, (f,), reach, v, spread, rounded, D, radius):
            sharpen_left_out(K, s, rows, root, S, trace, double, reach, spread, radius)
            intersect(f, v, radius, low, high)
            return


@pointer(BETWEEN)
def enclose_between(K, objective, width, loss, bend, rounds, x, other, low, high):
    """Enclose how far the outputs of exact fits are from interpolated ones, from coefficients at two lambda.

    Parameters
    ----------
    K : (n, n) array
    objective : Objective
        Of the lower lambda. Rows with ``s_i = 0`` are left out.
    width : float
        By which the other lambda is higher.
    loss : pointer of type ``LOSS``
    bend : Bend
    rounds : int
        Guesses of the curvature at the most.
    x, other : (n + bias,) arrays
        Coefficients of fits at both, a bias last.
    low, high : (n,) arrays
        Overwritten by the ends of the intervals, which are infinite if no guess held.
    """
    y, s, lam, _, bias = objective
    n, N, double = y.size, sum_of(s), 2.0 * lam
    give_up(low, high)
    f, c, Kc, lengths, error, off, d2 = room_for_fit(n)
    g, _, _, _, there, off_there, d2_there = room_for_fit(n)
    norm, slack, moved, _ = approach(K, objective, loss, x, f, c, Kc, lengths, error, off, d2)
    higher = Objective(y, s, lam + width, objective.parameters, bias)
    norm_there, slack_there, moved_there, _ = approach(
        K, higher, loss, other, g, c, Kc, lengths, there, off_there, d2_there
    )
    residual = max(norm + slack, norm_there + slack_there) / np.sqrt(double)
    if not np.isfinite(residual):
        return
    join_ends(loss, objective, bend, N, f, g, error, there, off, off_there, d2, d2_there)
    rows, steps, size = np.empty(n, np.int64), np.empty(n), 0.0
    for i in range(n):
        c[i] = 0.5 * width * (x[i] - other[i])
        size += abs(c[i]) * lengths[i]
    fill(Kc, 0.0)
    add_rows(K, rows, changed_rows(c, rows, steps), steps, Kc)
    residual += depth_of(n) * size / np.sqrt(double)
    D, v, spread, radius = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    guess_curvature(bend, N, d2, D)
    for _ in range(rounds):
        reach, rounding, trace, root, S = ellipsoid(K, s, double, bias, lengths, D, c, Kc, off, 0.0, rows, v, spread)
        reach += residual
        if not np.isfinite(reach):
            return
        rounded = (error, rounding, lengths)
        if holds(loss, objective, bend, N, (f, g), reach, v, spread, rounded, D, radius):
            sharpen_left_out(K, s, rows, root, S, trace, double, reach, spread, radius)
            for j in range(n):
                low[j] = min(moved, moved_there) - v[j] - radius[j]
                high[j] = max(moved, moved_there) - v[j] + radius[j]
            return


@inline
def room_for_fit(n):
    """Return room for what ``approach`` finds."""
    return np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)


@inline
def depth_of(n):
    """Return a bound of the rounding error of a row of ``systems.add_rows``, relative to its sum of sizes."""
    return (0.25 * n + 4.0) * HALF_EPS


@inline
def approach(K, objective, loss, x, f, c, Kc, lengths, error, off, d2):
    """Find outputs and gradient of a fit with coefficients x; return a bound of the gradient's norm in two parts.

    The second part is of rounding errors. Both are infinite if the bias has no bounds. Returned as well are by how much
    it was moved, and a bound of what the errors of coefficients add up to. Overwritten are outputs ``f (n,)``,
    coefficients ``c`` of the gradient and their products ``K c``, lengths ``K_jj^1/2`` of the rows, how far outputs and
    coefficients may be ``off``, and the curvatures ``d2`` of the losses.
    """
    y, s, lam, _, bias = objective
    n, N, double = y.size, sum_of(s), 2.0 * lam
    depth = depth_of(n)
    rows, steps, d1 = np.empty(n, np.int64), np.empty(n), np.empty(n)
    size = 0.0
    for i in range(n):
        c[i] = x[i]
        off[i] = 0.0
        Kc[i] = 0.0
        lengths[i] = np.sqrt(max(K[i, i], 0.0))
        size += lengths[i] * abs(x[i])
        f[i] = x[n] if bias else 0.0
    add_rows(K, rows, changed_rows(c, rows, steps), steps, f)
    for i in range(n):
        error[i] = depth * lengths[i] * size + FEW * EPS * abs(f[i])
    moved = settle(loss, objective, N, f, error, off, d1, d2)
    if moved == np.inf:
        return np.inf, np.inf, moved, np.inf
    slack, total, pull, pulls = 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        c[i] = d1[i] / N + double * x[i]
        off[i] += FEW * EPS * double * abs(x[i])
        if abs(c[i]) <= off[i]:  # as good as 0, and faster
            off[i] += abs(c[i])
            c[i] = 0.0
        slack += off[i] * lengths[i]
        total += abs(c[i]) * lengths[i]
        pull += double * x[i] - c[i]  # those of an exact bias add up to the first of these
        pulls += double * abs(x[i]) + abs(c[i])
    add_rows(K, rows, changed_rows(c, rows, steps), steps, Kc)
    slack += depth * total
    return np.sqrt(max(inner(c, Kc), 0.0) + n * EPS * total * total), slack, moved, abs(pull) + n * EPS * pulls


@inline
def ellipsoid(K, s, double, bias, lengths, D, c, Kc, off, pull, rows, v, spread):
    """Find the ellipsoid of a gradient ``G = sum_i c_i k_i`` and curvatures D: see ``enclose``.

    Its centre ``(H^-1 G)_j / 2`` is written to ``v (n,)``, ``psi_j' H^-1 psi_j`` to ``spread (n,)``, and to ``rows``
    those with curvature. Returned are ``(G' H^-1 G)^1/2 / 2`` and what coefficients that are ``off`` add, infinite if
    there is no ellipsoid: ``sum_i off_i psi_i``, without its part along the bias, of which G has none, and which is at
    most ``pull``; the rounding error of the centre of a row of length 1; and for ``sharpen_left_out`` the trace
    of S, ``D^1/2`` of the rows, and the Cholesky factor of S.
    """
    n, m = s.size, curved_rows(D, rows)
    depth = depth_of(n)
    root, w, u = np.empty(m), np.empty(m), np.empty(m)
    for i in range(m):
        root[i] = np.sqrt(D[rows[i]])
        w[i] = root[i] * Kc[rows[i]]
        u[i] = root[i]
    S, trace = np.empty((m, m)), 0.0
    for i in range(m):
        trace += root[i] * root[i] * K[rows[i], rows[i]] + double
    if m == 0 or factorise(K, rows, root, double, S) != 0:
        return np.inf, np.inf, trace, root, S
    solve_rows(S, w)
    eb, t, through, p = 0.0, 1.0, np.zeros(n), np.empty(n)
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
    places, steps = np.empty(n, np.int64), np.empty(n)
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
    for i in range(n):
        if D[i] == 0.0:
            others += off[i] * np.sqrt(spread[i])
        v[i] *= 0.5
    reach = 0.5 * np.sqrt(square) + np.sqrt(left) + np.sqrt(unsure)
    if bias:
        reach += pull / np.sqrt(double * t)
    if others > OTHERS * reach:
        count, rest = others_of(D, off, spread, others, places)
        others = rest + together(K, double, bias * double * t, through, off, places[:count], rows, root, S, trace)
    return reach + others, depth * size, trace, root, S


@inline
def together(K, double, of_bias, through, off, others, rows, root, S, trace):
    """Return ``(off' |P| off)^1/2``, ``P_ij = psi_i' H^-1 psi_j``, over some rows without curvature.

    ``2 lam P_ij = K_ij - k_iB' D^1/2 S^-1 D^1/2 k_jB`` and the part of the bias, ``(1 - k_iB' D^1/2 u)`` of both rows
    over ``t``.
    """
    Y, unsure_by = halves_of(K, others, rows, root, S), rounding_of(root.size, trace, double)
    if not unsure_by < UNSURE:
        return np.inf
    products, total = inner_products(Y, Y), 0.0
    for i in range(others.size):
        for j in range(others.size):
            k, h = others[i], others[j]
            product = (K[k, h] - products[i, j]) / double
            if of_bias > 0.0:
                product += (1.0 - through[k]) * (1.0 - through[h]) / of_bias
            rounding = unsure_by * np.sqrt(products[i, i] * products[j, j]) + FEW * EPS * np.sqrt(K[k, k] * K[h, h])
            total += off[k] * off[h] * (abs(product) + rounding / double)
    return np.sqrt(total)


@inline
def halves_of(K, which, rows, root, S):
    """Return ``L^-1 D_B^1/2 k_iB`` of some rows i, where S holds the Cholesky factor L."""
    Y = np.empty((which.size, root.size))
    for j in range(which.size):
        for i in range(root.size):
            Y[j, i] = root[i] * K[which[j], rows[i]]
    solve_half_rows(S, Y)
    return Y


@inline
def sharpen_left_out(K, s, rows, root, S, trace, double, reach, spread, radius):
    """Replace, for rows that are left out, ``K_jj`` by ``K_jj - k_jB' D^1/2 S^-1 D^1/2 k_jB`` in their radius.

    S holds the Cholesky factor of a matrix with that trace, whose eigenvalues are at least ``double``.
    """
    left_out, count = np.empty(s.size, np.int64), 0
    for j in range(s.size):
        if s[j] == 0.0:
            left_out[count] = j
            count += 1
    Y = halves_of(K, left_out[:count], rows, root, S)
    for i in range(count):
        j = left_out[i]
        gain = inner(Y[i], Y[i]) * (1.0 - rounding_of(root.size, trace, double))
        less = max(spread[j] - gain / double, 0.0) if gain > 0.0 else spread[j]
        radius[j] -= reach * (np.sqrt(spread[j]) - np.sqrt(less))
