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

What rounding adds is in ``enclosure_inverse``.
"""

from __future__ import annotations

import numpy as np

from kernsel.numerics.runtime.blas import fill
from kernsel.numerics.runtime.jit import inline, pointer
from kernsel.numerics.smooth.convergence import ASTRAY, CONVERGED
from kernsel.numerics.smooth.enclosure import EPS, FEW
from kernsel.numerics.smooth.enclosure_inverse import (
    Inverse,
    Point,
    Step,
    error_of,
    find_steps,
    length_of,
    sharpen,
    size_of,
    spread_without,
)
from kernsel.numerics.smooth.enclosure_slopes import slopes_around
from kernsel.numerics.smooth.heldout import UPDATE
from kernsel.numerics.smooth.heldout_kernel import take_steps
from kernsel.numerics.smooth.refits_kernel import GROUP, fill_outputs, gather

STEPS = 6
"""Steps of a fit at the most."""

NARROW = 2e-3
"""An interval that adds less than this share to a fold's losses is as narrow as a proof of a percent can use."""

USEFUL, GENTLE = 0.02, 0.95
"""Where theta would be below the first even with the leverages of all rows, which are less, a fold isn't worth more;
above the second it goes without leverages, which take a product of matrices."""

SLOWER = 0.7
"""Steps end where one isn't shorter than this share of the last."""


@pointer(UPDATE)
def enclosed_step(K, V, objective, loss, fit, folds, order, trust, held):
    """Take the Newton steps of ``heldout_kernel.newton_step``, and enclose the outputs of exact fits.

    Its arguments are those of ``heldout.UPDATE``, but for three.

    Parameters
    ----------
    V : (1, 1) array
        The output at which V' is steepest, whatever the target; it bends once, there.
    order : int
        0, or 1 if ``rho`` is wanted.
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
