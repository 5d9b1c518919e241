"""Intervals that contain the outputs of exact fits without each fold, from Newton steps and from fits.

In the coordinates of the Gram matrix, for losses that are curved everywhere and steepest at a known output. Let x be
any fit on the rows T that are kept, x* the exact one, ``e = x - x*``, and ``c_i = s_i V'(f_i) + mu a_i`` the
coefficients of the gradient ``G = sum_T c_i psi_i`` of the fold's objective, times its weight, at x, where psi_i takes
a fit to its output. With the curvatures ``D_i = s_i V''(f_i)`` at x, and the slopes
``sigma_i = s_i (V'(f_i) - V'(f*_i)) / e_i``,

    G = A e,    A = mu I_g + sum_T sigma_i psi_i psi_i',    H = mu I_g + sum_T D_i psi_i psi_i'.

*Where x* is.* Let ``A >= theta H`` for the slopes from f_i to all outputs in a convex set R around x. With
``v = H^-1 G`` and the norm of H

    ||e - v / (2 theta)||  <=  ||v|| / (2 theta)

wherever that lies in R: it is the ellipsoid of ``enclosure`` for ``theta H``. So theta is guessed, and verified by the
outputs that it gives.

*How far x - v is from x*.* Once x* is known to be in R, and ``A <= Theta H`` there, ``e = A^-1 H v`` has

    ||e - v||  <=  max(1 / theta - 1, 1 - 1 / Theta) ||v||.

Outputs are as far apart as ``|e_j - v_j| <= (psi_j' H^-1 psi_j)^1/2 ||e - v||``.

``x - v`` is a step of Newton's: where an interval is still wide, x is put there, and where
the first step is too long for that, x is fitted before. Directions v are found as those of refits, by conjugate
gradients and the one inverse for all folds of ``refits_kernel``; how far they are from ``H^-1 G`` is measured, with
outputs from K itself. So that inverse may be in float32, and nothing is factorised.

What rounding adds is in ``enclosure_inverse``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernsel.numerics.runtime.jit import inline, pointer
from kernsel.numerics.smooth.convergence import ASTRAY, CONVERGED, REFITTED, UNFINISHED
from kernsel.numerics.smooth.enclosure import EPS, FEW, give_up
from kernsel.numerics.smooth.enclosure_inverse import Point, Step, length_of, size_of
from kernsel.numerics.smooth.enclosure_slopes import slopes_around
from kernsel.numerics.smooth.heldout import UPDATE, HeldOut
from kernsel.numerics.smooth.heldout_kernel import take_steps
from kernsel.numerics.smooth.objective import derivatives, inner_above
from kernsel.numerics.smooth.refits_kernel import (
    FINER,
    GROUP,
    Inverse,
    balance,
    fill_outputs,
    find_directions,
    gather,
    inverse_for_all,
    off_in_single,
    put_direction,
    refit_group,
    weights_of,
)
from kernsel.numerics.smooth.steps_kernel import BORNE, take_steps_together
from kernsel.types import Array

STEPS = 6
"""Steps from a fit at the most: each leaves a third of what there was, or its square, whichever is more."""

CLOSE = 1.0
"""A step is taken if its squared norm is below this share of the mean weight of a row: then Newton's are good."""

NARROW = 5e-3
"""An interval that adds less than this share to a fold's losses is as narrow as a proof of a percent can use."""

NEARLY = 1e-2
"""A fit ends with a step that promises less than the square of this share of J: from there steps do."""

LEAST = 1e-300
"""A row has at least this curvature: a share of none says nothing."""


class Around(NamedTuple):
    """The loss where it is steepest, the lengths of the rows, and which rows a group of g folds keeps.

    Parameters
    ----------
    bend : float
        The output at which V' is steepest.
    steep, lengths : (n,) array
        V'' there, and ``K_jj^1/2``.
    weights : (g, n) array
        0 for rows that are left out.
    """

    bend: float
    steep: Array
    lengths: Array
    weights: Array


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
    give_up(held.low, held.high)
    M, root, ridge = take_steps(K, objective, loss, fit, folds, order, trust, held)
    if ridge == 0.0 or root.size < fit.f.size:
        return
    inverse, stepped = Inverse(M, root, ridge, FINER * off_in_single(K, fit, ridge)), steps_of(folds, held)
    for first in range(0, stepped.size, GROUP):
        numbers = stepped[first : min(first + GROUP, stepped.size)]
        group, around = surround(K, inverse, V[0, 0], objective, loss, folds, numbers)
        enclose_ends(K, inverse, around, objective, loss, folds, group, numbers, np.ones(numbers.size, np.bool_), held)


@pointer(UPDATE)
def enclosed_steps(K, V, objective, loss, fit, folds, order, trust, held):
    """Do what ``enclosed_step`` does with steps side by side, and enclose by fits where these don't do.

    All folds stay ``UNFINISHED`` where float32 bears no such ridge, and one does of which conjugate gradients find no
    end. Held-out outputs are those of steps for all folds; of the solutions some are those of fits. Its arguments are
    those of ``enclosed_step``.
    """
    give_up(held.low, held.high)
    for fold in range(folds.left.size):
        held.status[fold] = UNFINISHED
    inverse, failed = inverse_for_all(K, objective, fit, 2.0 * folds.left[0] * objective.lam, BORNE)
    if failed:
        return
    take_steps_together(K, inverse, objective, loss, fit, folds, order, trust, held)
    stepped = steps_of(folds, held)
    for first in range(0, stepped.size, GROUP):
        numbers = stepped[first : min(first + GROUP, stepped.size)]
        group, around = surround(K, inverse, V[0, 0], objective, loss, folds, numbers)
        wide = np.ones(numbers.size, np.bool_)
        enclose_ends(K, inverse, around, objective, loss, folds, group, numbers, wide, held)
        if wide.any():
            fits = HeldOut(held.out.copy(), held.rho, held.status.copy(), held.x, held.low, held.high)
            refit_group(K, inverse, objective, loss, fit, folds, numbers[wide], NEARLY, fits)
            for k in range(numbers.size):
                wide[k] &= fits.status[numbers[k]] == REFITTED
            enclose_ends(K, inverse, around, objective, loss, folds, group, numbers, wide, held)


@inline
def steps_of(folds, held):
    """Return the numbers of the folds that a step was taken for."""
    stepped, count = np.empty(folds.left.size, np.int64), 0
    for fold in range(folds.left.size):
        if held.status[fold] in (CONVERGED, ASTRAY):
            stepped[count] = fold
            count += 1
    return stepped[:count]


@inline
def surround(K, inverse, bend, objective, loss, folds, numbers):
    """Return the ``Group`` of the folds with these numbers, and what is ``Around`` their fits."""
    y, s, n = objective.y, objective.s, K.shape[0]
    group = gather(inverse.M, inverse.ridge, objective.lam, folds, numbers)
    steep, lengths = np.empty(n), np.empty(n)
    for i in range(n):
        _, _, steep[i] = loss(y[i], bend, objective.parameters)
        lengths[i] = np.sqrt(max(K[i, i], 0.0))
    return group, Around(bend, steep, lengths, weights_of(s, group))


@inline
def enclose_ends(K, inverse, around, objective, loss, folds, group, numbers, wide, held):
    """Enclose fits without folds whose intervals are ``wide (g,)`` by ``held.x (t, .)``, and by steps from there.

    ``wide`` is set to False where an interval is narrow then.
    """
    (y, _, lam, parameters, bias), (lengths, weights) = objective, (around.lengths, around.weights)
    g, n = weights.shape
    a, b, f, error = np.zeros((g, n)), np.zeros(g), np.empty((g, n)), np.empty(g)
    t, p, db, w, r = np.empty((g, n)), np.zeros((g, n)), np.zeros(g), np.empty((g, n)), np.zeros((g, n))
    d1, d2, turned, scale, busy = np.empty((g, n)), np.empty((g, n)), np.zeros((g, n)), np.ones(g), wide.copy()
    spread, slope, curvature, c, room = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty((3, n))
    for k in range(g):
        for i in range(n):
            a[k, i] = held.x[numbers[k], i]
        if bias:
            b[k] = held.x[numbers[k], n]
            balance(a[k], weights[k])
        error[k] = n * EPS * (size_of(a[k], lengths) + abs(b[k]))
    fill_outputs(K, a, b, busy, f)
    for _ in range(STEPS):
        for k in range(g):
            if not busy[k]:
                continue
            left = folds.left[numbers[k]]
            total = derivatives(loss, parameters, y, weights[k], f[k], d1[k], d2[k])
            scale[k] = total + left * lam * inner_above(a[k], f[k], b[k])
            busy[k] = np.isfinite(scale[k])
            for i in range(n):
                kept = weights[k, i] > 0.0
                D0 = inverse.root[i] * inverse.root[i]
                r[k, i] = -(d1[k, i] + 2.0 * left * lam * a[k, i]) / inverse.root[i] if kept else 0.0
                turned[k, i] = d2[k, i] / D0 - 1.0 if kept else 0.0
        find_directions(inverse, group, turned, scale, NEARLY, busy, r, t, p, db)
        for k in range(g):
            if busy[k]:
                put_direction(inverse, bias, weights[k], t[k], p[k])
        if fill_outputs(K, p, db, busy, w) == 0:
            return
        for k in range(g):
            if not busy[k]:
                continue
            mu = 2.0 * folds.left[numbers[k]] * lam
            for i in range(n):
                _, slope[i], curvature[i] = loss(y[i], f[k, i], parameters)
                c[i] = weights[k, i] * slope[i] + mu * a[k, i]
                p[k, i], w[k, i] = -p[k, i], -w[k, i]
            db[k] = -db[k]
            root = spread_around(weights[k], curvature, lengths, mu, bias, spread)
            point = Point(a[k], f[k], error[k], weights[k], slope, curvature, c)
            step = Step(p[k], db[k], w[k], n * EPS * (size_of(p[k], lengths) + abs(db[k])))
            norm, short = length_of(root, mu, 1.0, spread, around.steep, lengths, point, step)
            steepest, reach = (around.bend, around.steep), norm + short
            theta, most = slopes_around(loss, objective, root, steepest, lengths, point, step, reach, spread, room)
            lo, hi = folds.starts[numbers[k]], folds.starts[numbers[k] + 1]
            if theta > 0.0:
                away, half = max(1.0 / theta - 1.0, 1.0 - 1.0 / most) * norm + short, 0.5 / theta
                far = max(half, 1.0)
                for j in range(lo, hi):
                    size = abs(f[k, j]) + far * abs(w[k, j])
                    rounding = (error[k] + far * step.error) * lengths[j] + FEW * EPS * size
                    cut(f[k, j] - w[k, j], away * spread[j] + rounding, j, held)
                    cut(f[k, j] - half * w[k, j], half * reach * spread[j] + rounding, j, held)
            wide[k] = not narrow(loss, objective, lo, hi, held)
            busy[k] = wide[k] and norm * norm * n < CLOSE * folds.left[numbers[k]]
            for i in range(n):
                a[k, i] -= p[k, i]
                f[k, i] -= w[k, i]
            b[k] -= db[k]
            error[k] += step.error + EPS * (size_of(a[k], lengths) + abs(b[k]))


@inline
def spread_around(weights, curvature, lengths, mu, bias, spread):
    """Fill ``spread (n,)`` with bounds of ``(psi_j' H^-1 psi_j)^1/2``; return ``D^1/2`` (n,).

    Without a bias ``||psi_j|| / mu^1/2`` is one, and ``D_j^-1/2`` is another one on rows that are kept. With a bias
    ``psi_j = (psi_j - m) + m`` and ``m = sum_T D_i psi_i / sum_T D_i``: the first has no part along the bias, and
    ``(sum_T D_i) m m' <= sum_T D_i psi_i psi_i' <= H``.
    """
    n, total, length = weights.size, 0.0, 0.0
    root, more = np.empty(n), 1.0 + n * EPS
    for i in range(n):
        D = max(weights[i] * curvature[i], LEAST) if weights[i] > 0.0 else 0.0
        root[i] = np.sqrt(D)
        total += D
        length += D * lengths[i]
    of_bias = (length / total / np.sqrt(mu) + 1.0 / np.sqrt(total)) if bias else 0.0
    for i in range(n):
        spread[i] = more * (lengths[i] / np.sqrt(mu) + of_bias)
        if root[i] * spread[i] > 1.0:
            spread[i] = 1.0 / root[i]
    return root


@inline
def cut(middle, radius, j, held):
    """Cut the interval of row j to ``middle -+ radius``."""
    held.low[j] = max(held.low[j], middle - radius)
    held.high[j] = min(held.high[j], middle + radius)


@inline
def narrow(loss, objective, lo, hi, held):
    """Say whether intervals of the rows from lo to below hi add next to nothing to their losses."""
    y, s, _, parameters, _ = objective
    width, total = 0.0, 0.0
    for j in range(lo, hi):
        if not (np.isfinite(held.low[j]) and np.isfinite(held.high[j])):
            return False
        at_low, _, _ = loss(y[j], held.low[j], parameters)
        at_high, _, _ = loss(y[j], held.high[j], parameters)
        width += s[j] * abs(at_high - at_low)
        total += s[j] * min(at_high, at_low)
    return width <= NARROW * total
