"""Intervals around interpolated fits for all lambda between two, by the inverse of ``enclosure_inverse``.

With coefficients a, slopes V' and gradients c of fits without a fold at two ridges ``mu_0 < mu_1``, the interpolated
fit has for the interpolated ridge, as in ``enclosure``, the gradient

    4 t (1 - t) sum_T q_i psi_i + sum_T r_i psi_i,    q = (mu_1 - mu_0) (a_0 - a_1) / 4,
    |r_i|  <=  max(|c_0i|, |c_1i|) + s_i |V'_t - (1 - t) V'_0 - t V'_1|.

Let ``h = 4 t (1 - t) <= 1``, ``v = H0^-1 sum_T q_i psi_i`` and ``H >= theta H0`` from wherever interpolated outputs are
to wherever exact ones may be. In the norm of H0, ``theta ||e||^2 <= <h v + H0^-1 r, e>`` puts e into a ball around
``h v / (2 theta)``, and all of these into one,

    ||e - v / (2 theta)||  <=  (||v|| + 2 ||r||) / (2 theta),    ||r||^2 <= sum_T r_i^2 / D0_i.
"""

from __future__ import annotations

import numpy as np

from kernsel.numerics.runtime.jit import inline, pointer
from kernsel.numerics.smooth.enclosure import EPS, FEW, NODES, Bend, bow, give_up
from kernsel.numerics.smooth.enclosure_inverse import (
    Point,
    Step,
    error_of,
    find_steps,
    length_of,
    sharpen,
    size_of,
    spread_without,
)
from kernsel.numerics.smooth.enclosure_slopes import GUESS, GUESSES, LEAST, SHARP, SHRINK, least_of, slope_between
from kernsel.numerics.smooth.heldout import UPDATE
from kernsel.numerics.smooth.refits_kernel import GROUP, fill_outputs, fine_inverse, gather


@pointer(UPDATE)
def enclose_between(K, V, objective, loss, fit, folds, order, trust, held):
    """Enclose how far the outputs of exact fits without each fold are from interpolated ones.

    Parameters
    ----------
    K : (n, n) array
        Gram matrix.
    V : (1, 2) array
        The higher lambda, and the output at which V' is steepest, whatever the target; it bends once, there.
    objective : Objective
        With the lower lambda.
    loss : pointer of type ``LOSS``
    fit : Fit
        To all rows, for the lower lambda.
    folds : Folds
    order, trust : int, float
        Of no use here.
    held : HeldOut
        ``x (t, 2 (n + bias))`` holds fits without each fold for the lower lambda, then for the higher one. Intervals
        are overwritten.
    """
    t = folds.left.size
    ridge = 2.0 * folds.left[0] * objective.lam
    inverse, failed = fine_inverse(K, objective, fit, ridge)
    give_up(held.low, held.high)
    if failed:
        return
    for first in range(0, t, GROUP):
        numbers = np.arange(first, min(first + GROUP, t))
        enclose_group_between(K, inverse, V[0, 0], V[0, 1], objective, loss, folds, numbers, held)


@inline
def enclose_group_between(K, inverse, higher, bend, objective, loss, folds, numbers, held):
    """Enclose fits without each of the folds with these numbers: see the module."""
    y, s, lam, parameters, bias = objective
    n, g, group = y.size, numbers.size, gather(inverse.M, inverse.ridge, lam, folds, numbers)
    x, b, f = np.empty((2, g, n)), np.zeros((2, g)), np.empty((2, g, n))
    c, p, db, w, v = np.zeros((g, n)), np.zeros((g, n)), np.zeros(g), np.empty((g, n)), np.zeros((g, n + bias))
    spread, more, running = np.empty((g, n)), np.empty(g), b[0] == 0.0
    steep, lengths, rest, weights = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    off, nothing = error_of(inverse, K, bias), np.zeros(n)
    for i in range(n):
        _, _, steep[i] = loss(y[i], bend, parameters)
        lengths[i] = np.sqrt(max(K[i, i], 0.0))
    for k in range(g):
        more[k] = spread_without(inverse, off, group, k, spread[k])
        running[k] = np.isfinite(more[k])
        width = 2.0 * folds.left[numbers[k]] * (higher - lam)
        for end in range(2):
            start = end * (n + bias)
            for i in range(n):
                x[end, k, i] = held.x[numbers[k], start + i]
            if bias:
                b[end, k] = held.x[numbers[k], start + n]
        for i in range(n):
            c[k, i] = 0.25 * width * (x[0, k, i] - x[1, k, i])
        for i in group.gone[group.bounds[k] : group.bounds[k + 1]]:
            c[k, i] = 0.0
    for end in range(2):
        fill_outputs(K, x[end], b[end], running, f[end])
    find_steps(inverse, group, c, running, v, p, db)
    fill_outputs(K, p, db, running, w)
    products = np.empty((2, group.blocks.shape[1], n))
    for k in range(g):
        if not running[k]:
            continue
        for i in range(n):
            weights[i] = s[i]
        for i in group.gone[group.bounds[k] : group.bounds[k + 1]]:
            weights[i] = 0.0
        sharpen(inverse, off, more[k], group, k, weights, spread[k], products)
        ratio, left = 1.0 + group.shorter[k], folds.left[numbers[k]]
        error = 0.0
        for end in range(2):
            error = max(error, n * EPS * (size_of(x[end, k], lengths) + abs(b[end, k])))
        step = Step(p[k], db[k], w[k], n * EPS * (size_of(p[k], lengths) + abs(db[k])))
        point = Point(c[k], nothing, 0.0, weights, nothing, nothing, c[k])
        norm, short = length_of(inverse.root, inverse.ridge, ratio, spread[k], steep, lengths, point, step)
        ridges = (2.0 * left * lam, 2.0 * left * higher)
        residual = rest_of(loss, objective, inverse, steep, lengths, weights, ridges, x[:, k], f[:, k], error)
        reach = norm + short + 2.0 * residual
        ends = (f[0, k], f[1, k])
        theta = least_between(
            loss, objective, inverse, ratio, lengths, weights, ends, error, step, reach, spread[k], rest
        )
        if theta > 0.0:
            half = 0.5 / theta
            for j in range(folds.starts[numbers[k]], folds.starts[numbers[k] + 1]):
                size = max(abs(f[0, k, j]), abs(f[1, k, j])) + abs(w[k, j])
                radius = half * reach * spread[k, j] + (error + half * step.error) * lengths[j] + FEW * EPS * size
                held.low[j], held.high[j] = -half * w[k, j] - radius, -half * w[k, j] + radius


@inline
def rest_of(loss, objective, inverse, steep, lengths, weights, ridges, x, f, error):
    """Return a bound of the norm of what the gradient has beside ``q``: see the module."""
    y, _, _, parameters, _ = objective
    slopes, curvatures, total, bend = np.empty(NODES + 1), np.empty(NODES + 1), 0.0, Bend(1, 0, 0)
    for i in range(y.size):
        if not weights[i] > 0.0:
            continue
        rest = weights[i] * bow(loss, bend, parameters, y[i], f[0, i], f[1, i], slopes, curvatures)
        most = 0.0
        for end in range(2):
            pull, push = weights[i] * slopes[0 if end == 0 else NODES], ridges[end] * x[end, i]
            most = max(most, abs(pull + push) + FEW * EPS * (abs(pull) + abs(push)))
        unsure = error * lengths[i] + FEW * EPS * max(abs(f[0, i]), abs(f[1, i]))
        rest += most + 2.0 * weights[i] * steep[i] * unsure
        total += (rest / inverse.root[i]) ** 2
    return np.sqrt(total)


@inline
def least_between(loss, objective, inverse, ratio, lengths, weights, ends, error, step, reach, spread, room):
    """Return theta, or 0 where none was verified: slopes from and to an interval each are least between ends."""
    y, _, _, parameters, _ = objective
    root, (f, g) = inverse.root, ends
    lows, leverages = room, np.empty(room.size)
    theta, known = GUESS, 0.0
    for _ in range(GUESSES):
        half, count = 0.5 / theta, 0
        for i in range(y.size):
            if not weights[i] > 0.0:
                continue
            low, high = min(f[i], g[i]), max(f[i], g[i])
            radius = half * reach * spread[i] + (error + half * step.error) * lengths[i]
            radius += FEW * EPS * max(abs(low), abs(high))
            lower = np.inf
            for start in (f[i], g[i]):
                _, slope, curvature = loss(y[i], start, parameters)
                for end in (min(low, low - half * step.w[i] - radius), max(high, high - half * step.w[i] + radius)):
                    _, there, bent = loss(y[i], end, parameters)
                    lower = min(lower, slope_between(start, slope, curvature, end, there, bent))
            lows[count] = lower * weights[i] / (root[i] * root[i])
            leverages[count] = (root[i] * spread[i]) ** 2
            count += 1
        least = least_of(lows[:count], leverages, ratio)
        if not least > LEAST:
            return known
        if least < theta:
            if known > 0.0:
                return known
            theta = SHRINK * least
        else:
            known = least
            if least > min(SHARP, 1.1 * theta):
                return known
            theta = least
    return known
