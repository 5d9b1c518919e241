"""The bias of an exact fit: where the losses of outputs don't pull along it, and how far that may be.

The sum ``sum_i s_i V'(g_i + b)`` ascends in b and in every ``g_i``: its roots at the lower and at the upper ends of
intervals of the ``g_i`` enclose ``b*``: an interval in one dimension, which takes no curvature along b. What it is for
is in ``enclosure``.
"""

from __future__ import annotations

import numpy as np

from kernsel.numerics.runtime.blas import sum_of
from kernsel.numerics.runtime.jit import inline
from kernsel.numerics.smooth.enclosure import EPS, FEW, size_of
from kernsel.numerics.smooth.objective import derivatives

ROOT_STEPS, WIDER_STEPS, WIDER = 200, 60, 16.0
"""Steps of a search for a root, every fourth of which halves its bracket, and steps to find a bracket, each so many
times as wide as the last."""

QUICK = 6
"""Newton steps that are tried first: they find the root of a smooth slope, and of one in pieces if it is near."""

ROOT, NEAR_ROOT = 1e-13, 1e-8
"""Shares of the largest output: to which the bias of a fit is known, and which it may be expected to be off."""

END, NEAR_END = 1e-6, 1e-2
"""The same for the ends of the range of a bias, which are rounded outward."""


@inline
def end_of_roots(loss, parameters, y, s, f, start, reach, width, side):
    """Return a shift beyond all roots of ``sum_i s_i V'(y_i, f_i + shift)``, to the left (side -1) or right (side 1).

    The sum ascends. The shift is within about ``width`` of the nearest one where its sign is sure in spite of rounding:
    where Newton steps from ``start`` lead to, or by regula falsi in its Illinois form from a first bracket of
    ``reach``; infinite without any.
    """
    sure = FEW * y.size * EPS * sum_of(s)
    root = start
    for _ in range(QUICK):
        pull, curvature = pull_at(loss, parameters, y, s, f, root)
        if not curvature > 0.0:
            break
        step = -pull / curvature
        root += step
        off = max(0.25 * width, sure / curvature)
        if abs(step) <= off:
            end = root + 2.0 * side * off
            if side * pull_at(loss, parameters, y, s, f, end)[0] > sure:
                return end
            break
    outer, inner_end, at_outer, at_inner = side * reach, -side * reach, -1.0, 1.0
    for _ in range(WIDER_STEPS):
        at_outer = side * pull_at(loss, parameters, y, s, f, outer)[0] - sure
        if at_outer > 0.0:
            break
        inner_end, at_inner = outer, at_outer
        outer *= WIDER
    if not at_outer > 0.0:
        return side * np.inf
    if at_inner > 0.0:
        for _ in range(WIDER_STEPS):
            at_inner = side * pull_at(loss, parameters, y, s, f, inner_end)[0] - sure
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
        here = side * pull_at(loss, parameters, y, s, f, middle)[0] - sure
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
    """Return ``sum_i s_i V'(y_i, f_i + shift)``, and its derivative in the shift."""
    total, rise = 0.0, 0.0
    for i in range(y.size):
        if s[i] > 0.0:
            _, slope, curvature = loss(y[i], f[i] + shift, parameters)
            total += s[i] * slope
            rise += s[i] * curvature
    return total, rise


@inline
def move_bias(loss, objective, f):
    """Add to ``f (n,)`` a shift at which its losses don't pull along the bias; return it, and how far off it may be.

    That is infinity where there is no such shift, as where one class is left.
    """
    y, s, _, parameters, _ = objective
    size = size_of(f)
    low = end_of_roots(loss, parameters, y, s, f, 0.0, NEAR_ROOT * size, ROOT * size, -1.0)
    near = low if np.isfinite(low) else 0.0
    high = end_of_roots(loss, parameters, y, s, f, near, NEAR_ROOT * size, ROOT * size, 1.0)
    if not (np.isfinite(low) and np.isfinite(high)):
        return 0.0, np.inf
    shift = min(max(0.0, low), high)
    for i in range(f.size):
        f[i] += shift
    return shift, max(shift - low, high - shift)


@inline
def add_bias_range(loss, objective, low, high):
    """Widen intervals of ``g_i`` by what the bias of an exact fit may be: see the module."""
    y, s, _, parameters, _ = objective
    size = max(size_of(low), size_of(high))
    left = end_of_roots(loss, parameters, y, s, high, 0.0, NEAR_END * size, END * size, -1.0)
    right = end_of_roots(loss, parameters, y, s, low, 0.0, NEAR_END * size, END * size, 1.0)
    for i in range(low.size):
        low[i] += left
        high[i] += right


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
    """Move the bias of outputs to where their losses don't pull along it; return how far, infinity without bounds.

    To ``error (n,)`` is added how far outputs may be off then, to ``off (n,)`` how far their slopes may be; ``d1`` and
    ``d2 (n,)`` become the derivatives of the losses.
    """
    y, s, _, parameters, bias = objective
    moved, unsure = move_bias(loss, objective, f) if bias else (0.0, 0.0)
    if unsure == np.inf:
        return np.inf
    derivatives(loss, parameters, y, s, f, d1, d2)
    for i in range(f.size):
        error[i] += unsure
    add_uncertain_slopes(loss, objective, N, f, error, off)
    return moved
