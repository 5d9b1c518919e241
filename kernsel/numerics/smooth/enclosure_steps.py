"""Intervals that contain the outputs of exact fits without each fold, from Newton steps and the inverse behind them.

In the coordinates of the Gram matrix, for losses that are curved everywhere and steepest at a known output. With the
curvatures D0 of the fit on all rows and a ridge mu0, let ``H0 = mu0 I_g + sum_T D0_i psi_i psi_i'`` on the rows T that
the fit without a fold keeps, where psi_i takes a fit to its output: the matrix of its Newton step. The inverse M of
``heldout_kernel.scaled_inverse`` gives ``H0^-1`` of all folds alike: see ``refits_kernel``.

Let x be any fit, x* the exact one and ``e = x - x*``, and ``c_i = s_i V'(f_i) + mu a_i`` the coefficients of the
gradient ``G = sum_T c_i psi_i`` of the fold's objective, times its weight, at x. With the slopes
``sigma_i = s_i (V'(f_i) - V'(f*_i)) / e_i``,

    G = H e,    H = mu I_g + sum_T sigma_i psi_i psi_i'.

*Where x* is.* Let ``H >= theta H0`` for the slopes from f_i to all outputs in a convex set R around x. With
``v = H0^-1 G`` and the norm of H0

    ||e - v / (2 theta)||  <=  ||v|| / (2 theta)

wherever that lies in R: it is the ellipsoid of ``enclosure`` for ``theta H0``. So theta is guessed, and verified by the
outputs that it gives.

*How far x - v is from x*.* Once x* is known to be in R, and ``H <= Theta H0`` there, ``e = H^-1 H0 v`` has

    ||e - v||  <=  max(1 / theta - 1, 1 - 1 / Theta) ||v||.

*Slopes.* ``theta <= mu / mu0``, and slopes of at least ``theta D0_i`` are enough; a row that has less, ``r_i D0_i``,
takes ``(theta - r_i) h_i`` off theta, where its leverage ``h_i = D0_i psi_i' H0^-1 psi_i`` is the norm of
``D0_i psi_i psi_i'`` in that of H0. Theta is found in the same way.

Outputs are as far apart as ``|e_j - v_j| <= (psi_j' H0^-1 psi_j)^1/2 ||e - v||``. Without the rows g of the fold, and
with ``A = M_gg^-1``,

    mu0 D0_j psi_j' H0^-1 psi_j  =  A_jj - mu0                       for a row of the fold,
    h_i  =  1 - mu0 (M_ii - M_ig A M_gi)                             for one that is kept.

``x - v`` is a step of Newton's with an old matrix: where the interval isn't narrow yet, x is put there. Two products of
matrices serve all folds, and nothing is factorised.

*Rounding.* v is any function ``sum_T p_i k_i + b``: what it leaves, ``G - H0 v = sum_T (c_i - mu0 p_i - D0_i v_i)
psi_i``, has at most the norm ``(sum_T (c_i - mu0 p_i - D0_i v_i)^2 / D0_i)^1/2`` in that of ``H0^-1``, which is added;
so is what c may be off. A is verified by its residual. Of M an inverse from a Cholesky factor is known to be off by at
most ``BACKWARD n EPS trace(H0) / mu0^2`` (Higham 2002, section 14.3).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernsel.numerics.runtime.blas import fill, inner, put_rows_times, rows_times
from kernsel.numerics.runtime.jit import REORDER, inline, pointer
from kernsel.numerics.smooth.convergence import ASTRAY, CONVERGED
from kernsel.numerics.smooth.enclosure import EPS, FEW
from kernsel.numerics.smooth.heldout import UPDATE
from kernsel.numerics.smooth.heldout_kernel import take_steps
from kernsel.numerics.smooth.refits_kernel import GROUP, drop_rows, fill_outputs, gather

BACKWARD = 8.0
"""An inverse from a Cholesky factor is off by so many times what one product with it may be."""

UNSURE = 0.5
"""Above such a share an inverse of a fold's block is worth nothing."""

STEPS = 6
"""Steps of a fit at the most."""

NARROW = 2e-3
"""An interval that adds less than this share to a fold's losses is as narrow as a proof of a percent can use."""

USEFUL, GENTLE = 0.02, 0.95
"""Where theta would be below the first even with the leverages of all rows, which are less, a fold isn't worth more;
above the second it goes without leverages, which take a product of matrices."""

SLOWER = 0.7
"""Steps end where one isn't shorter than this share of the last."""

GUESS, SHRINK, GUESSES = 0.8, 0.7, 5
"""The first guess of theta, the share of what slopes were found to be that is guessed next, and how many there are."""

SHARP = 0.8
"""A theta that was verified, and is below this, is sought again from what it gave."""

LEAST = 1e-3
"""With less than this theta says nothing."""

TRIED, STEP = 12, 0.85
"""So many values are tried for a bound of slopes that few rows may miss, each so many times the last."""

CHORD = 1e-3
"""Over at least such a distance the slope from one output to another is told by their difference."""


class Inverse(NamedTuple):
    """The inverse for all rows: that of ``refits_kernel`` in float64, as bounds of rounding errors need it.

    Parameters
    ----------
    M : (n + bias, n + bias) array
    root : (n,) array
        ``D0^1/2``.
    ridge : float
        mu0.
    """

    M: NDArray[np.float64]
    root: NDArray[np.float64]
    ridge: float


class Point(NamedTuple):
    """A fit without a fold.

    Parameters
    ----------
    a, f : (n,) array
        Coefficients, and outputs.
    error : float
        Outputs are off by so much, times the length of the row.
    weights : (n,) array
        0 for rows that are left out.
    slope, curvature : (n,) array
        V' and V'' at the outputs.
    c : (n,) array
        Of the gradient.
    """

    a: NDArray[np.float64]
    f: NDArray[np.float64]
    error: float
    weights: NDArray[np.float64]
    slope: NDArray[np.float64]
    curvature: NDArray[np.float64]
    c: NDArray[np.float64]


class Step(NamedTuple):
    """The function v of the module, as it was computed.

    Parameters
    ----------
    p, db : (n,) array, float
        Coefficients and bias.
    w : (n,) array
        Outputs.
    error : float
        As that of a ``Point``.
    """

    p: NDArray[np.float64]
    db: float
    w: NDArray[np.float64]
    error: float


@pointer(UPDATE)
def enclosed_step(K, V, objective, loss, fit, folds, order, trust, held):
    """Take the Newton steps of ``heldout_kernel.newton_step``, and enclose the outputs of exact fits.

    Parameters
    ----------
    K : (n, n) array
        Gram matrix.
    V : (1, 1) array
        The output at which V' is steepest, whatever the target; it bends once, there.
    objective : Objective
    loss : pointer of type ``LOSS``
    fit : Fit
        To all rows.
    folds : Folds
    order : int
        0, or 1 if ``rho`` is wanted.
    trust : float
        A Newton step that strays by more than this share of what it promises has the status ``ASTRAY``.
    held : HeldOut
        Overwritten; with room for solutions and intervals.
    """
    M, root, ridge = take_steps(K, objective, loss, fit, folds, order, trust, held)
    fill(held.low, -np.inf)
    fill(held.high, np.inf)
    n, t = fit.f.size, folds.left.size
    if ridge == 0.0 or root.size < n:
        return
    stepped, count = np.empty(t, np.int64), 0
    for fold in range(t):
        if held.status[fold] in (CONVERGED, ASTRAY):
            stepped[count] = fold
            count += 1
    inverse = Inverse(M, root, ridge)
    off = error_of(inverse, K, objective.bias)
    for first in range(0, count, GROUP):
        numbers = stepped[first : min(first + GROUP, count)]
        enclose_group(K, inverse, off, V[0, 0], objective, loss, fit, folds, numbers, held)


@inline
def error_of(inverse, K, bias):
    """Return a bound of how far the norm of M is off: see the module.

    The border of a bias, ``t u u'`` with ``u = B^-1 r`` and ``1 / t = r' u``, is at most ``1 / mu0``, and off by two
    errors of u and one of t, of relative size ``||r|| ||u|| t``.
    """
    M, root, ridge = inverse
    n, trace, border = root.size, 0.0, 0.0
    for i in range(n):
        trace += root[i] * root[i] * K[i, i] + ridge
    share = BACKWARD * n * EPS * trace / ridge
    if bias:
        border = 2.0 + np.sqrt(inner(root, root) * inner(M[n, :n], M[n, :n]))
    return share / ridge * (1.0 + border)


@inline
def enclose_group(K, inverse, off, bend, objective, loss, fit, folds, numbers, held):
    """Enclose fits without each of the folds with these numbers: see the module."""
    y, s, lam, parameters, bias = objective
    M, root, ridge = inverse
    n, g, group = y.size, numbers.size, gather(M, ridge, lam, folds, numbers)
    a, b, f, p, db, w = np.empty((g, n)), np.zeros(g), np.empty((g, n)), np.zeros((g, n)), np.zeros(g), np.empty((g, n))
    weights, spread, c, v = np.empty((g, n)), np.empty((g, n)), np.empty((g, n)), np.zeros((g, M.shape[0]))
    slope, curvature, error, before, running = (
        np.empty((g, n)),
        np.empty((g, n)),
        np.empty(g),
        np.full(g, np.inf),
        b == 0.0,
    )
    steep, lengths, room, more, sharp = np.empty(n), np.empty(n), np.empty((3, n)), np.empty(g), np.zeros(g, np.bool_)
    for i in range(n):
        _, _, steep[i] = loss(y[i], bend, parameters)
        lengths[i] = np.sqrt(max(K[i, i], 0.0))
    for k in range(g):
        for i in range(n):
            a[k, i], weights[k, i] = held.x[numbers[k], i], s[i]
        for i in group.gone[group.bounds[k] : group.bounds[k + 1]]:
            weights[k, i] = 0.0
        b[k] = held.x[numbers[k], n] if bias else 0.0
        error[k] = n * EPS * (size_of(a[k], lengths) + abs(b[k]))
        more[k] = spread_without(inverse, off, group, k, spread[k])
        running[k] = np.isfinite(more[k])
    products, smaller = np.empty((2, group.blocks.shape[1], n)), np.empty(n)
    for i in range(n):
        smaller[i] = np.sqrt(max(1.0 - ridge * M[i, i], 0.0)) / root[i]
    fill_outputs(K, a, b, running, f)
    for _ in range(STEPS):
        for k in range(g):
            if running[k]:
                mu = ridge * (1.0 + group.shorter[k])
                for i in range(n):
                    _, slope[k, i], curvature[k, i] = loss(y[i], f[k, i], parameters)
                    c[k, i] = weights[k, i] * slope[k, i] + mu * a[k, i]
        find_steps(inverse, group, c, running, v, p, db)
        if fill_outputs(K, p, db, running, w) == 0:
            return
        for k in range(g):
            if not running[k]:
                continue
            rows, ratio = (folds.starts[numbers[k]], folds.starts[numbers[k] + 1]), 1.0 + group.shorter[k]
            point = Point(a[k], f[k], error[k], weights[k], slope[k], curvature[k], c[k])
            step = Step(p[k], db[k], w[k], n * EPS * (size_of(p[k], lengths) + abs(db[k])))
            norm, left = length_of(inverse, ratio, steep, lengths, point, step)
            theta, most, hopeful, reach = 0.0, 0.0, 1.0, norm + left
            if not sharp[k]:
                hopeful, _ = slopes_around(
                    loss, objective, inverse, ratio, (bend, steep), lengths, point, step, reach, smaller, room
                )
                if USEFUL < hopeful < GENTLE:
                    sharpen(inverse, off, more[k], group, k, weights[k], spread[k], products)
                    sharp[k] = True
            if hopeful > USEFUL:
                theta, most = slopes_around(
                    loss, objective, inverse, ratio, (bend, steep), lengths, point, step, reach, spread[k], room
                )
            if theta > 0.0:
                away = max(1.0 / theta - 1.0, 1.0 - 1.0 / most) * norm + left
                for j in range(rows[0], rows[1]):
                    rounding = (error[k] + step.error) * lengths[j] + FEW * EPS * (abs(f[k, j]) + abs(w[k, j]))
                    cut(f[k, j] - w[k, j], away * spread[k, j] + rounding, j, held)
                    half = 0.5 / theta
                    cut(f[k, j] - half * w[k, j], half * reach * spread[k, j] + rounding, j, held)
            running[k] = norm < SLOWER * before[k] and not narrow(loss, objective, rows, held)
            before[k] = norm
            for i in range(n):
                f[k, i] -= w[k, i]
                a[k, i] -= p[k, i]
            b[k] -= db[k]
            error[k] += step.error + EPS * (size_of(a[k], lengths) + abs(b[k]))


@inline
def size_of(a, lengths):
    """Return a bound of the norm of ``sum_i a_i k_i``."""
    size = 0.0
    for i in range(a.size):
        size += abs(a[i]) * lengths[i]
    return size


@inline
def find_steps(inverse, group, c, running, v, p, db):
    """Fill ``p (g, n)`` and ``db (g,)`` with coefficients of ``H0^-1 sum_T c_i psi_i``, for folds that are running.

    ``c (g, n)`` is 0 on rows that are left out; of ``v (g, n + bias)`` the last column is 0, the rest overwritten.
    """
    M, root, _ = inverse
    n, count, row = root.size, 0, 0
    for k in range(running.size):
        if running[k]:
            for i in range(n):
                v[count, i] = c[k, i] / root[i]
            count += 1
    X = rows_times(v[:count], M)
    for k in range(running.size):
        if running[k]:
            drop_rows(M, group, k, X[row])
            for i in range(n):
                p[k, i] = root[i] * X[row, i]
            if M.shape[0] > n:
                db[k] = X[row, n]
            row += 1


@inline
def spread_without(inverse, off, group, k, spread):
    """Fill ``spread (n,)`` with bounds of ``(psi_i' H0^-1 psi_i)^1/2`` without a fold; return how far A may be off.

    It is infinite where there are none. Of kept rows it is ``D0_i^-1/2``: see ``sharpen``. With ``X M_gg = I + E`` and
    M off by ``off``, ``||A - X|| <= q / (1 - q) ||X||``, ``q = ||E|| + off ||X||``.
    """
    M, root, ridge = inverse
    lo, rows = group.bounds[k], group.gone[group.bounds[k] : group.bounds[k + 1]]
    m, size, block, residual = rows.size, 0.0, 0.0, 0.0
    X, G = np.empty((m, m)), np.empty((m, m))
    for i in range(m):
        for j in range(m):
            X[i, j], G[i, j] = group.blocks[lo + i, j], M[rows[i], rows[j]]
            size += X[i, j] * X[i, j]
            block += G[i, j] * G[i, j]
    E, size = rows_times(X, G), np.sqrt(size)
    for i in range(m):
        for j in range(m):
            residual += (E[i, j] - (1.0 if i == j else 0.0)) ** 2
    rounding = m * EPS * size
    share = np.sqrt(residual) + rounding * np.sqrt(block) + off * size
    if not share < UNSURE:
        return np.inf
    more = share / (1.0 - share) * size + rounding
    for i in range(root.size):
        spread[i] = 1.0 / root[i]
    for i in range(m):
        most = X[i, i] + more
        spread[rows[i]] = np.sqrt((max(most - ridge, 0.0) + EPS * most) / ridge) / root[rows[i]]
    return more


@inline
def sharpen(inverse, off, more, group, k, weights, spread, room):
    """Take the leverages of rows that are kept into their ``spread (n,)``: a matrix product for all of them.

    ``room (2, m, n)`` is overwritten.
    """
    M, root, ridge = inverse
    lo, rows, n = group.bounds[k], group.gone[group.bounds[k] : group.bounds[k + 1]], root.size
    X, W, Z = np.empty((rows.size, rows.size)), room[0, : rows.size], room[1, : rows.size]
    for i in range(rows.size):
        for j in range(rows.size):
            X[i, j] = group.blocks[lo + i, j]
        for j in range(n):
            W[i, j] = M[rows[i], j]
    put_rows_times(X, W, Z)
    taken, square = np.zeros(n), np.zeros(n)
    for j in range(rows.size):
        for i in range(n):
            taken[i] += W[j, i] * Z[j, i]
            square[i] += W[j, i] * W[j, i]
    for i in range(n):
        if weights[i] > 0.0:
            least = M[i, i] - taken[i] - off - more * square[i] - n * EPS * (abs(M[i, i]) + abs(taken[i]))
            spread[i] = np.sqrt(min(max(1.0 - ridge * least, 0.0) + EPS, 1.0)) / root[i]


@inline
def length_of(inverse, ratio, steep, lengths, point, step):
    """Return bounds of ``||H0^-1 G||``, and of how far the step is from ``H0^-1 G``, in the norm of H0."""
    _, root, ridge = inverse
    along, square, left, size = 0.0, 0.0, 0.0, size_of(step.p, lengths)
    for i in range(root.size):
        if point.weights[i] > 0.0:
            D, pull, push = root[i] * root[i], point.weights[i] * point.slope[i], ratio * ridge * point.a[i]
            rounding = step.error * lengths[i] + FEW * EPS * abs(step.w[i])
            along += step.p[i] * (step.w[i] - step.db)
            square += D * (abs(step.w[i]) + rounding) ** 2
            off = abs(point.c[i] - ridge * step.p[i] - D * step.w[i]) + D * rounding
            off += FEW * EPS * (abs(pull) + abs(push) + ridge * abs(step.p[i]))
            off += point.weights[i] * steep[i] * (point.error * lengths[i] + FEW * EPS * abs(point.f[i]))
            left += off * off / D
    left = np.sqrt(left)
    return np.sqrt(square + ridge * (max(along, 0.0) + 2.0 * step.error * size)) + left, left


@inline
def slopes_around(loss, objective, inverse, ratio, steepest, lengths, point, step, reach, spread, room):
    """Return theta and Theta: see the module; theta is 0 where none was verified.

    Over outputs between which V'' has its maximum at one, where it is steepest, it is least at an end. From one output
    to others the slopes of V', too, are least at an end. ``room (3, n)`` is overwritten.
    """
    y, _, _, parameters, _ = objective
    _, root, _ = inverse
    bend, steep = steepest
    theta, known, known_most, (lows, highs, leverages) = GUESS, 0.0, 0.0, room
    for _ in range(GUESSES):
        half, count = 0.5 / theta, 0
        for i in range(root.size):
            if not point.weights[i] > 0.0:
                continue
            f, slope, curvature = point.f[i], point.slope[i], point.curvature[i]
            radius = half * reach * spread[i] + (point.error + step.error) * lengths[i] + FEW * EPS * abs(f)
            middle, lower, upper = f - half * step.w[i], curvature, curvature
            for side in range(2):
                end = middle + (2.0 * side - 1.0) * radius
                _, there, bent = loss(y[i], end, parameters)
                flattest = slope_between(f, slope, curvature, end, there, bent)
                lower, upper = min(lower, flattest), max(upper, bent)
            if min(f, middle - radius) < bend < max(f, middle + radius):
                upper = steep[i]
            D = root[i] * root[i] / point.weights[i]
            lows[count], highs[count], leverages[count] = lower / D, upper / D, (root[i] * spread[i]) ** 2
            count += 1
        least, most = least_of(lows[:count], leverages, ratio), most_of(highs[:count], leverages, ratio)
        if not least > LEAST:
            return known, known_most
        if least < theta:
            if known > 0.0:
                return known, known_most
            theta = SHRINK * least
        else:
            known, known_most = least, most
            if least > min(SHARP, 1.1 * theta):
                return known, known_most
            theta = least
    return known, known_most


@inline
def slope_between(f, slope, curvature, end, there, bent):
    """Return a bound of the slope of V' from one output to another, from V' and V'' at both: V'' has one maximum."""
    flattest, apart = min(curvature, bent), abs(end - f)
    if apart > CHORD:
        flattest = max(flattest, (abs(there - slope) - FEW * EPS * (abs(there) + abs(slope))) / apart)
    return flattest


@inline(fastmath=REORDER)
def least_of(lows, leverages, ratio):
    """Return theta with ``H >= theta H0``, where slopes are at least ``lows (m,) D0``, and mu is ``ratio mu0``.

    Rows with a lower slope than ``theta D0`` take off at most what they lack, times their leverage ``D0_i psi_i' H0^-1
    psi_i``, the norm of ``D0_i psi_i psi_i'`` in that of H0.
    """
    best, theta = 0.0, ratio
    for _ in range(TRIED):
        missing = 0.0
        for i in range(lows.size):
            missing += max(theta - lows[i], 0.0) * leverages[i]
        best = max(best, theta - missing)
        theta *= STEP
    return best - lows.size * EPS


@inline(fastmath=REORDER)
def most_of(highs, leverages, ratio):
    """Return Theta with ``H <= Theta H0`` in the same way."""
    best, most = np.inf, ratio
    for _ in range(TRIED):
        more = 0.0
        for i in range(highs.size):
            more += max(highs[i] - most, 0.0) * leverages[i]
        best = min(best, most + more)
        most /= STEP
    return best * (1.0 + highs.size * EPS)


@inline
def cut(middle, radius, j, held):
    """Cut the interval of row j to ``middle -+ radius``."""
    held.low[j] = max(held.low[j], middle - radius)
    held.high[j] = min(held.high[j], middle + radius)


@inline
def narrow(loss, objective, rows, held):
    """Say whether intervals of the rows of a fold add next to nothing to its losses."""
    y, s, _, parameters, _ = objective
    width, total = 0.0, 0.0
    for j in range(rows[0], rows[1]):
        if not (np.isfinite(held.low[j]) and np.isfinite(held.high[j])):
            return False
        at_low, _, _ = loss(y[j], held.low[j], parameters)
        at_high, _, _ = loss(y[j], held.high[j], parameters)
        width += s[j] * abs(at_high - at_low)
        total += s[j] * min(at_high, at_low)
    return width <= NARROW * total
