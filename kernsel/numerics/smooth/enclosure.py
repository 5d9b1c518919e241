"""Intervals that contain the outputs of an exact fit, from any approximate one.

With ``J`` of ``objective``, an approximate fit ``(g, b)``, its outputs ``f = g + b`` and the exact fit ``(g*, b*)`` let
``e = f - f*``, and let G be the gradient of J at the approximate fit.

*Ball.* J is ``2 lam``-strongly convex in g. The bias b is moved first to where ``sum_i s_i V'(f_i) = 0``, so that G has
no component along it. Then ``<G, g - g*> >= 2 lam ||g - g*||^2`` whatever the bias, and

    (g - g*)_j  in  G_j / (4 lam)  +-  ||k_j|| ||G|| / (4 lam).

The sum ``sum_i s_i V'(g_i + b)`` ascends in b and in every ``g_i``: its roots at the lower and at the upper ends
of these intervals enclose ``b*``: an interval in one dimension, which takes no curvature along b.

*Ellipsoid.* Say that on a convex set R around the fit the slopes ``(V'(f_i) - V'(t)) / (f_i - t)`` of rows B are at
least ``N D_i / s_i``. With ``H = 2 lam I_g + sum_B D_i psi_i psi_i'``, where psi_i takes a fit to its output,

    |e_j - (H^-1 G)_j / 2|  <=  (psi_j' H^-1 psi_j  G' H^-1 G)^1/2 / 2        wherever that lies inside R.

Proof: the minimiser z of J on R has ``<grad J(z), fit - z> >= 0``, so that ``<G, fit - z> >= ||fit - z||_H^2``: z is in
the ellipsoid, inside R, and a minimum there is the minimum of the convex J. So D is guessed, and verified by the
intervals that it gives: R is the set of all fits with the outputs of B in those. Rows that leave their range lose
curvature until the guess holds. H has curvature along the bias as soon as B is not empty.

Mathematics of the ball: Shibagaki et al. 2015, Ndiaye et al. 2019. All rounding errors are bounded and added outward.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.core import types
from numpy.typing import NDArray

from kernsel.numerics.runtime.blas import (
    add_products,
    damped_cholesky,
    fill,
    inner,
    multiply,
    multiply_transposed,
    ridged_cholesky,
    solve_rows,
    sum_of,
)
from kernsel.numerics.runtime.jit import (
    LOSS,
    Compiled,
    f8_1,
    f8_2,
    i8,
    i8_1,
    inline,
    jit,
    one_blas_thread,
    pointer,
    record,
    share,
)
from kernsel.numerics.smooth.objective import OBJECTIVE, STACK, Objective, derivatives
from kernsel.numerics.smooth.systems import add_rows, changed_rows, curved_rows, scaled_block

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

EPS = 2.3e-16
"""Above twice the rounding error of one operation in double precision."""

HALF_EPS = 1.2e-16
"""Above the rounding error of one operation. A row of ``systems.add_rows`` is a sum of n / 4 sums of four, so that its
error is below ``(n / 4 + 4) HALF_EPS`` times the sum of sizes."""

FEW = 8.0
"""Operations in a row that a loss and its derivative take, about."""

SAME_SLOPE = 1e-12
"""Two slopes of one quadratic piece agree to this share of what they are made of."""

NARROW = 1e-4
"""Intervals narrower than this share of the largest output are narrow enough for any use: no ellipsoid is sought."""

ROUNDS = 8
"""Guesses of the curvature at the most."""

GUESS = 0.9
"""Where curvature varies the first guess is this share of that at the fit."""

SHRINK = 0.7
"""A row that leaves its range is guessed to have this share of the least slope over what it reached."""

ROOT_STEPS, WIDER_STEPS, WIDER = 200, 60, 16.0
"""Steps of a search for a root, every fourth of which halves its bracket, and steps to find a bracket, each so many
times as wide as the last."""

ROOT, NEAR_ROOT = 1e-13, 1e-8
"""Shares of the largest output: to which the bias of a fit is known, and which it may be expected to be off."""

END, NEAR_END = 1e-6, 1e-2
"""The same for the ends of the range of a bias, which are rounded outward."""


class Bend(NamedTuple):
    """What is known of the derivative V' of a loss.

    Parameters
    ----------
    once : int
        1 if V' is convex up to a point and concave from there on. Its slopes from one point to all others then rise to
        a maximum and fall: over an interval they are least at its ends.
    in_pieces : int
        1 if V' is linear in pieces, and between two points of one piece has no other.
    """

    once: int
    in_pieces: int


BEND = record(Bend, i8, i8)

ENCLOSE = types.FunctionType(types.void(f8_2, OBJECTIVE, LOSS, BEND, i8, f8_1, f8_1, f8_1))
"""``(K or Z, objective, loss, bend, rounds, a or w, low, high)``: see ``in_kernel`` and ``in_features``."""


@inline
def end_of_roots(loss, parameters, y, s, f, reach, width, side):
    """Return a shift beyond all roots of ``sum_i s_i V'(y_i, f_i + shift)``, to the left (side -1) or right (side 1).

    The sum ascends. The shift is within ``width`` of the nearest one where its sign is sure in spite of rounding, found
    by regula falsi in its Illinois form from a first bracket of ``reach``; infinite without any.
    """
    sure = FEW * y.size * EPS * sum_of(s)
    outer, inner_end, at_outer, at_inner = side * reach, -side * reach, -1.0, 1.0
    for _ in range(WIDER_STEPS):
        at_outer = side * pull_at(loss, parameters, y, s, f, outer) - sure
        if at_outer > 0.0:
            break
        inner_end, at_inner = outer, at_outer
        outer *= WIDER
    if not at_outer > 0.0:
        return side * np.inf
    if at_inner > 0.0:
        for _ in range(WIDER_STEPS):
            at_inner = side * pull_at(loss, parameters, y, s, f, inner_end) - sure
            if at_inner <= 0.0:
                break
            outer, at_outer = inner_end, at_inner
            inner_end *= WIDER
        if at_inner > 0.0:
            return side * np.inf
    moved = 0
    for k in range(ROOT_STEPS):
        if abs(outer - inner_end) <= width:
            break
        middle = outer + (inner_end - outer) * at_outer / (at_outer - at_inner)
        if k % 4 == 3 or middle in (outer, inner_end):
            middle = 0.5 * (outer + inner_end)
        here = side * pull_at(loss, parameters, y, s, f, middle) - sure
        if here > 0.0:
            outer, at_outer = middle, here
            at_inner *= 0.5 if moved == 1 else 1.0
            moved = 1
        else:
            inner_end, at_inner = middle, here
            at_outer *= 0.5 if moved == -1 else 1.0
            moved = -1
    return outer


@inline
def pull_at(loss, parameters, y, s, f, shift):
    """Return ``sum_i s_i V'(y_i, f_i + shift)``."""
    total = 0.0
    for i in range(y.size):
        if s[i] > 0.0:
            _, slope, _ = loss(y[i], f[i] + shift, parameters)
            total += s[i] * slope
    return total


@inline
def move_bias(loss, objective, f):
    """Add to ``f (n,)`` a shift at which its losses don't pull along the bias; return how far off that may be.

    Infinity where there is no such shift, as where one class is left.
    """
    y, s, _, parameters, _ = objective
    size = size_of(f)
    low = end_of_roots(loss, parameters, y, s, f, NEAR_ROOT * size, ROOT * size, -1.0)
    high = end_of_roots(loss, parameters, y, s, f, NEAR_ROOT * size, ROOT * size, 1.0)
    if not (np.isfinite(low) and np.isfinite(high)):
        return np.inf
    shift = min(max(0.0, low), high)
    for i in range(f.size):
        f[i] += shift
    return max(shift - low, high - shift)


@inline
def add_bias_range(loss, objective, low, high):
    """Widen intervals of ``g_i`` by what the bias of an exact fit may be: see the module."""
    y, s, _, parameters, _ = objective
    size = max(size_of(low), size_of(high))
    left = end_of_roots(loss, parameters, y, s, high, NEAR_END * size, END * size, -1.0)
    right = end_of_roots(loss, parameters, y, s, low, NEAR_END * size, END * size, 1.0)
    for i in range(low.size):
        low[i] += left
        high[i] += right


@inline
def size_of(f):
    """Return the largest size of outputs, at least 1."""
    size = 1.0
    for i in range(f.size):
        size = max(size, abs(f[i]))
    return size


@inline
def add_uncertain_slopes(loss, objective, N, f, error, out):
    """Add to ``out (n,)`` how far ``s_i V'(f_i) / N`` may be off where ``f_i`` is by ``error_i``."""
    y, s, _, parameters, _ = objective
    for i in range(y.size):
        if s[i] > 0.0:
            _, below, _ = loss(y[i], f[i] - error[i], parameters)
            _, above, _ = loss(y[i], f[i] + error[i], parameters)
            out[i] += s[i] / N * (above - below + FEW * EPS * max(abs(above), abs(below)))


@inline
def settle(loss, objective, N, f, error, off, d1, d2):
    """Move the bias of outputs to where their losses don't pull along it; return whether it has bounds.

    To ``error (n,)`` is added how far outputs may be off then, to ``off (n,)`` how far their slopes may be; ``d1`` and
    ``d2 (n,)`` become the derivatives of the losses.
    """
    y, s, _, parameters, bias = objective
    unsure = move_bias(loss, objective, f) if bias else 0.0
    if unsure == np.inf:
        return False
    derivatives(loss, parameters, y, s, f, d1, d2)
    for i in range(f.size):
        error[i] += unsure
    add_uncertain_slopes(loss, objective, N, f, error, off)
    return True


@inline
def give_up(low, high):
    """Make intervals contain everything."""
    fill(low, -np.inf)
    fill(high, np.inf)


@inline
def guess_curvature(bend, N, d2, D):
    """Guess least slopes ``D (n,)`` around a fit from the curvatures ``d2 (n,)`` there."""
    for i in range(D.size):
        D[i] = (1.0 if bend.in_pieces else GUESS) * d2[i] / N


@inline
def holds(loss, objective, bend, N, f, low, high, D):
    """Say whether all slopes within intervals are at least what was guessed; where they aren't, guess less."""
    y, s, _, parameters, _ = objective
    held = True
    for i in range(y.size):
        if D[i] == 0.0:
            continue
        _, here, curvature = loss(y[i], f[i], parameters)
        least = np.inf
        for k in range(2):
            end = high[i] if k else low[i]
            step = end - f[i]
            slope = 0.0
            if np.isfinite(step):
                _, there, bent = loss(y[i], end, parameters)
                change = there - here
                rounding = SAME_SLOPE * (abs(there) + abs(here)) + EPS * curvature * abs(f[i])
                if bend.in_pieces and bent == curvature and abs(change - curvature * step) <= rounding:
                    slope = curvature
                elif bend.once:
                    slope = change / step
            least = min(least, slope * s[i] / N)
        if D[i] > least * (1.0 + SAME_SLOPE):
            held = False
            D[i] = max(SHRINK * least, 0.0)
    return held


@inline
def narrow(f, low, high):
    """Say whether intervals are as good as the outputs."""
    widest = 0.0
    for i in range(f.size):
        widest = max(widest, high[i] - low[i])
    return widest <= NARROW * size_of(f)


@inline
def intersect(f, middle, radius, low, high):
    """Cut intervals to ``f - middle -+ radius``."""
    for i in range(f.size):
        low[i] = max(low[i], f[i] - middle[i] - radius[i])
        high[i] = min(high[i], f[i] - middle[i] + radius[i])


@pointer(ENCLOSE)
def in_kernel(K, objective, loss, bend, rounds, x, low, high):
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


@pointer(ENCLOSE)
def in_features(Z, objective, loss, bend, rounds, x, low, high):
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


@jit((i8, i8, ENCLOSE, f8_2, STACK, i8_1, LOSS, BEND, i8_1, f8_2, f8_2, f8_2))
def _enclose(first, step, enclose, G, stack, which, loss, bend, rounds, x, low, high):
    for j in range(first, x.shape[0], step):
        objective = Objective(stack.y[j], stack.s[j], stack.lam[which[j]], stack.parameters, stack.bias)
        enclose(G, objective, loss, bend, rounds[j], x[j], low[j], high[j])


def enclose_fits(
    enclose: Compiled,
    G: Array,
    objective: Objective,
    which: Indices,
    loss: Compiled,
    bend: Bend,
    rounds: Indices,
    x: Array,
) -> tuple[Array, Array]:
    """Return intervals ``low, high (q, n)`` that contain the outputs of q exact fits.

    Parameters
    ----------
    enclose : pointer
        ``in_kernel`` or ``in_features``.
    G : (n, n) or (n, r) array
        The Gram matrix; or features, a bias' column of ones last.
    objective : Objective
        Targets (q, n), weights (q, n) that are 0 for rows that are left out, and lambda (L,).
    which : (q,) array of int
        The number of the lambda of each fit.
    loss : pointer of type ``LOSS``
    bend : Bend
        Of the loss.
    rounds : (q,) array of int
        Guesses of the curvature that each may take at the most.
    x : (q, n + bias) or (q, r) array
        Approximate fits: coefficients and a bias last, or weights.
    """
    low, high = np.empty(objective.y.shape), np.empty(objective.y.shape)
    loop = _enclose.code  # compiled here, not by several threads at once
    job = (enclose.code, G, objective, which, loss.code, bend, rounds, x, low, high)
    with one_blas_thread():
        share(lambda first, step: loop(first, step, *job), x.shape[0])
    return low, high
