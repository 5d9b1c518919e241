"""Intervals that contain the outputs of an exact fit, from its weights of features: see ``enclosure``."""

from __future__ import annotations

import numpy as np

from kernsel.numerics.runtime.blas import (
    add_products,
    inner,
    inner_products,
    multiply,
    multiply_transposed,
    ridged_cholesky,
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
    n, N, double = Z.shape[0], sum_of(s), 2.0 * lam
    f, G, lengths, error, off, d2 = room_for_fit(Z)
    norm, rounding, slack, _, pull = approach(Z, objective, loss, x, f, G, lengths, error, off, d2)
    if not np.isfinite(norm + rounding + slack):
        give_up(low, high)
        return
    D, v, spread, radius = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    multiply(Z, G, v)
    for j in range(n):
        v[j] *= 0.5 / double
        radius[j] = lengths[j] * (0.5 * norm + slack + rounding) / double + error[j]
        low[j], high[j] = f[j] - v[j] - radius[j], f[j] - v[j] + radius[j]
    if bias:
        add_bias_range(loss, objective, low, high)
    if narrow(f, low, high):
        return
    guess_curvature(bend, N, d2, D)
    for _ in range(rounds):
        reach, deep = ellipsoid(Z, double, bias, D, G, rounding, off, pull, v, spread)
        if not np.isfinite(reach):
            return
        rounded = (error, deep, lengths)
        if holds(loss, objective, bend, N, (f,), reach, v, spread, rounded, D, radius):
            intersect(f, v, radius, low, high)
            return


@pointer(BETWEEN)
def enclose_between(Z, objective, width, loss, bend, rounds, x, other, low, high):
    """Enclose how far the outputs of exact fits are from interpolated ones, from weights of features at two lambda.

    Parameters
    ----------
    Z : (n, r) array
    objective : Objective
        Of the lower lambda. Rows with ``s_i = 0`` are left out.
    width : float
        By which the other lambda is higher.
    loss : pointer of type ``LOSS``
    bend : Bend
    rounds : int
        Guesses of the curvature at the most.
    x, other : (r,) arrays
        Weights of fits at both.
    low, high : (n,) arrays
        Overwritten by the ends of the intervals, which are infinite if no guess held.
    """
    y, s, lam, _, bias = objective
    (n, r), N, double = Z.shape, sum_of(s), 2.0 * lam
    give_up(low, high)
    f, G, lengths, error, off, d2 = room_for_fit(Z)
    g, _, _, there, off_there, d2_there = room_for_fit(Z)
    norm, rounding, slack, moved, _ = approach(Z, objective, loss, x, f, G, lengths, error, off, d2)
    residual = norm + rounding + slack
    higher = Objective(y, s, lam + width, objective.parameters, bias)
    norm, rounding, slack, moved_there, _ = approach(Z, higher, loss, other, g, G, lengths, there, off_there, d2_there)
    residual = max(residual, norm + rounding + slack) / np.sqrt(double)
    if not np.isfinite(residual):
        return
    join_ends(loss, objective, bend, N, f, g, error, there, off, off_there, d2, d2_there)
    for k in range(r):
        G[k] = 0.5 * width * (x[k] - other[k]) if k < r - bias else 0.0
    rounding = FEW * EPS * np.sqrt(inner(G, G))
    D, v, spread, radius = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    guess_curvature(bend, N, d2, D)
    for _ in range(rounds):
        reach, deep = ellipsoid(Z, double, bias, D, G, rounding, off, 0.0, v, spread)
        reach += residual
        if not np.isfinite(reach):
            return
        rounded = (error, deep, lengths)
        if holds(loss, objective, bend, N, (f, g), reach, v, spread, rounded, D, radius):
            for j in range(n):
                low[j] = min(moved, moved_there) - v[j] - radius[j]
                high[j] = max(moved, moved_there) - v[j] + radius[j]
            return


@inline
def room_for_fit(Z):
    """Return room for what ``approach`` finds."""
    n, r = Z.shape
    return np.empty(n), np.empty(r), np.empty(n), np.empty(n), np.empty(n), np.empty(n)


@inline
def approach(Z, objective, loss, x, f, G, lengths, error, off, d2):
    """Find outputs and gradient of a fit with weights x; return a bound of the gradient's norm in three parts.

    The second part is of rounding errors, the third of slopes that may be off. All are infinite if the bias has no
    bounds. Returned as well are by how much it was moved, and a bound of what errors of slopes add up to. Overwritten
    are outputs ``f (n,)``, the gradient ``G (r,)``, lengths of the rows without a bias, how far outputs and slopes may
    be ``off``, and the curvatures ``d2`` of the losses.
    """
    _, s, lam, _, bias = objective
    (n, r), N, double = Z.shape, sum_of(s), 2.0 * lam
    ridged, d1 = r - bias, np.empty(n)
    size = np.sqrt(inner(x[:ridged], x))
    multiply(Z, x, f)
    for i in range(n):
        off[i] = 0.0
        lengths[i] = np.sqrt(inner(Z[i, :ridged], Z[i]))
        error[i] = r * EPS * (lengths[i] * size + abs(f[i]))
    moved = settle(loss, objective, N, f, error, off, d1, d2)
    if moved == np.inf:
        return np.inf, np.inf, np.inf, moved, np.inf
    slack, total, pull, pulls = 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        d1[i] /= N
        pull += d1[i]  # of an exact bias they add up to 0
        pulls += abs(d1[i])
        slack += off[i] * lengths[i]
        total += abs(d1[i]) * lengths[i]
    multiply_transposed(Z, d1, G)
    for k in range(ridged):
        G[k] += double * x[k]
    if bias:
        G[ridged] = 0.0
    norm = np.sqrt(inner(G, G))
    rounding = n * EPS * total + FEW * EPS * double * size + r * EPS * norm
    return norm, rounding, slack, moved, abs(pull) + n * EPS * pulls


@inline
def ellipsoid(Z, double, bias, D, G, rounding, off, pull, v, spread):
    """Find the ellipsoid of a gradient ``G (r,)``, known up to ``rounding``, and curvatures D: see ``enclose``.

    Its centre ``(H^-1 G)_j / 2`` is written to ``v (n,)``, ``psi_j' H^-1 psi_j`` to ``spread (n,)``. Returned are
    ``(G' H^-1 G)^1/2 / 2`` and what slopes that are ``off`` add, infinite if there is no ellipsoid:
    ``sum_i off_i psi_i``, without its part along the bias, of which G has none, and which is at most ``pull``; and the
    rounding error of the centre of a row of length 1.
    """
    (n, r), rows = Z.shape, np.empty(D.size, np.int64)
    ridged, m = r - bias, curved_rows(D, rows)
    H, R, w, Hw, unit, bent = np.zeros((r, r)), np.empty((r, r)), np.empty(r), np.empty(r), np.zeros(r), np.empty(n)
    C = np.empty((m, r))
    for i in range(m):
        for k in range(r):
            C[i, k] = np.sqrt(D[rows[i]]) * Z[rows[i], k]
    add_products(C, 1.0, H)
    trace = double * ridged
    for k in range(r):
        trace += H[k, k]
        w[k] = G[k]
    if m == 0 or ridged_cholesky(H, double, bias, R) != 0:
        return np.inf, np.inf
    solve_rows(R, w)
    multiply(Z, w, v)
    square = double * inner(w[:ridged], w)
    for i in range(n):
        bent[i] = D[i] * v[i]
        square += bent[i] * v[i]
    multiply_transposed(Z, bent, Hw)
    left, length = 0.0, np.sqrt(inner(w, w))
    for k in range(ridged):
        left += (G[k] - Hw[k] - double * w[k]) ** 2
    left = (np.sqrt(left) + rounding + r * EPS * trace * length) / np.sqrt(double)
    largest = 1.0 / double  # eigenvalue of H^-1
    if bias:
        unit[ridged] = 1.0
        solve_rows(R, unit)
        left += (abs(Hw[ridged]) + r * EPS * trace * length + pull) * np.sqrt(max(unit[ridged], 0.0))
        largest += inner(unit, unit) / unit[ridged]
    unsure_by = rounding_of(r, trace, 1.0 / largest)
    if not 0.0 <= unsure_by < UNSURE:
        return np.inf, np.inf
    Y = Z.copy()
    solve_half_rows(R, Y)
    unsure, others = 0.0, 0.0
    for j in range(n):
        spread[j] = inner(Y[j], Y[j]) * (1.0 + unsure_by)
        if D[j] > 0.0:
            unsure += off[j] * off[j] / D[j]
        else:
            others += off[j] * np.sqrt(spread[j])
        v[j] *= 0.5
    reach = 0.5 * np.sqrt(square) + left + np.sqrt(unsure)
    if others > OTHERS * reach:
        count, others = others_of(D, off, spread, others, rows)
        some, total = np.empty((count, r)), 0.0
        for i in range(count):
            some[i] = Y[rows[i]]
        products = inner_products(some, some)
        for i in range(count):
            for j in range(count):
                rounding = unsure_by * np.sqrt(products[i, i] * products[j, j])
                total += off[rows[i]] * off[rows[j]] * (abs(products[i, j]) + rounding)
        others += np.sqrt(total)
    return reach + others, r * EPS * length
