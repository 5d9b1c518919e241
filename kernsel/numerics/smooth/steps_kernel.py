"""Newton steps of all folds side by side, from one inverse in float32, for losses that are curved everywhere.

In the coordinates of the Gram matrix: the steps of ``heldout_kernel.newton_step`` in half of its time. The step without
a fold ends at the minimum of its own objective with a quadratic model in place of the loss,

    d1_i + d2_i (f'_i - f_i) + mu a'_i  =  0    on the rows T that are kept.

The inverse M of ``refits_kernel`` finds it to what float32 rounds off. The left sides, made of coefficients and outputs
in float64, are then what is left of the gradient, and a Newton step of the model, by the conjugate gradients of
``refits_kernel``, squares that.
"""

from __future__ import annotations

import numpy as np

from kernsel.numerics.runtime.blas import inner, sum_of
from kernsel.numerics.runtime.jit import inline, pointer
from kernsel.numerics.smooth.convergence import ASTRAY, CONVERGED, SETTLED, SINGULAR, UNFINISHED
from kernsel.numerics.smooth.heldout import UPDATE, strays
from kernsel.numerics.smooth.heldout_kernel import fill_ratios
from kernsel.numerics.smooth.objective import inner_above
from kernsel.numerics.smooth.refits_kernel import (
    GROUP,
    MOST_GRADIENTS,
    fill_outputs,
    find_directions,
    first_step,
    gather,
    inverse_for_all,
    put_direction,
    weights_of,
)

MOST_ROUNDS = 6
"""Rounds of conjugate gradients; a fold takes one or two."""

BORNE = 0.3
"""Where the error of the inverse may be more than this, steps are taken one by one, with an inverse in float64."""


@pointer(UPDATE)
def newton_steps(K, V, objective, loss, fit, folds, order, trust, held):
    """Take the Newton steps of ``heldout_kernel.newton_step``.

    All folds stay ``UNFINISHED`` where float32 bears no such ridge, and one does of which conjugate gradients find no
    end. If ``order`` is not 0, ``rho`` is filled for folds whose ratio may be the largest, and 0 for others.

    Its arguments are those of ``heldout.UPDATE``.
    """
    for fold in range(folds.left.size):
        held.status[fold] = UNFINISHED
    inverse, failed = inverse_for_all(K, objective, fit, 2.0 * folds.left[0] * objective.lam, BORNE)
    if not failed:
        take_steps_together(K, inverse, objective, loss, fit, folds, order, trust, held)


@inline
def take_steps_together(K, inverse, objective, loss, fit, folds, order, trust, held):
    """Take the steps of all folds, which are ``UNFINISHED``, by an ``Inverse`` in float32."""
    t = folds.left.size
    for first in range(0, t, GROUP):
        step_group(K, inverse, objective, loss, fit, folds, np.arange(first, min(first + GROUP, t)), trust, held)
    if order > 0:
        fill_ratios(inverse.M, np.arange(fit.f.size), objective.lam, folds, 0, t, 0.0, held.rho)


@inline
def step_group(K, inverse, objective, loss, fit, folds, numbers, trust, held):
    """Take the steps without each of the folds with these numbers: see the module."""
    y, s, lam, _, bias = objective
    root, group = inverse.root, gather(inverse.M, inverse.ridge, lam, folds, numbers)
    n, g, old = y.size, numbers.size, fit.x[y.size] if bias else 0.0
    a, b, f, weights, scale = np.empty((g, n)), np.zeros(g), np.empty((g, n)), weights_of(s, group), np.empty(g)
    r, bend, t, p, change = np.empty((g, n)), np.empty((g, n)), np.empty((g, n)), np.empty((g, n)), np.empty(g)
    rounding, norm, total, running = np.empty(g), inner_above(fit.x, fit.f, old), 0.0, np.ones(g, np.bool_)
    for i in range(n):
        value, _, _ = loss(y[i], fit.f[i], objective.parameters)
        total += s[i] * value
    for k in range(g):
        scale[k] = total + folds.left[numbers[k]] * lam * norm
    first_step(inverse, fit, bias, group, weights, a, b)
    for _ in range(MOST_ROUNDS):
        if fill_outputs(K, a, b, running, f) == 0:
            break
        for k in range(g):
            mu = 2.0 * folds.left[numbers[k]] * lam
            for i in range(n):
                r[k, i] = -(fit.d1[i] + fit.d2[i] * (f[k, i] - fit.f[i]) + mu * a[k, i]) / root[i]
                bend[k, i] = fit.d2[i] / (root[i] * root[i]) - 1.0
            for i in group.gone[group.bounds[k] : group.bounds[k + 1]]:
                r[k, i] = bend[k, i] = 0.0
            rounding[k] = inverse.error * inverse.error * inner(r[k], r[k]) / scale[k]
        steps = find_directions(inverse, group, bend, scale, SETTLED, running, r, t, p, change)
        for k in range(g):
            if not running[k]:
                continue
            promise = 0.0
            put_direction(inverse, bias, weights[k], t[k], p[k])
            mu = 2.0 * folds.left[numbers[k]] * lam
            for i in range(n):
                if weights[k, i] > 0.0:
                    promise += fit.d2[i] * t[k, i] * t[k, i]
            promise = (promise + mu * inner(p[k], t[k])) / scale[k]
            for i in range(n):
                a[k, i] += p[k, i]
                f[k, i] += t[k, i]
            b[k] += change[k]
            running[k] = np.isfinite(promise + sum_of(f[k]))
            if running[k] and steps < MOST_GRADIENTS and max(promise * promise, rounding[k]) <= SETTLED:
                running[k] = False
                end_step(K, objective, loss, fit, folds, numbers[k], weights[k], a[k], b[k], f[k], norm, trust, held)


@inline
def end_step(K, objective, loss, fit, folds, fold, weights, a, b, f, norm, trust, held):
    """Write the end ``a (n,)``, ``b`` of a step without a fold, and what came of it.

    Its outputs ``f (n,)`` are filled for the rows that are left out, ``weights (n,)`` are those of the rows, and
    ``norm`` is that of the fit, squared.
    """
    n, mu = f.size, 2.0 * folds.left[fold] * objective.lam
    lo, hi, away = folds.starts[fold], folds.starts[fold + 1], folds.away[folds.bounds[fold] : folds.bounds[fold + 1]]
    for j in away:
        f[j] = inner(K[j], a) + b
    for j in range(lo, hi):
        held.out[j] = f[j]
    if held.x.size > 0:
        for i in range(n):
            held.x[fold, i] = a[i]
        if objective.bias:
            held.x[fold, n] = b
    climb = mu * (inner_above(fit.x, f, b) - norm)
    bent = False  # a bias is where no curved row is left to say where it should be
    for i in range(n):
        bent |= fit.d2[i] > 0.0 and weights[i] > 0.0
    held.status[fold] = CONVERGED if bent or not objective.bias else SINGULAR
    if held.status[fold] == CONVERGED and strays(loss, objective, fit, f, away, climb, 0.5 * mu * norm, trust):
        held.status[fold] = ASTRAY
