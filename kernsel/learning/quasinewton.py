"""Descend on a smooth function in a box by a quasi-Newton method whose curvature can be handed on.

Broyden, Fletcher, Goldfarb & Shanno's approximation B of the inverse Hessian (Nocedal & Wright 2006, equation 6.17), in
the variables that no bound holds back::

    B+ = (I - s y' / y's) B (I - y s' / y's) + s s' / y's,   s = x+ - x,  y = g+ - g

SciPy's L-BFGS-B begins without curvature each time. Here what a descent on a part of the rows has found out serves the
one on all rows: functions in the same units, so that B needs no change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kernsel.errors import SelectionError
from kernsel.types import Array

Function = Callable[[Array], tuple[float, Array]]
"""``x -> (value, gradient)``; numpy.linalg.LinAlgError where there is none."""

ARMIJO = 1e-4
"""A step must gain this share of what the gradient promises (Nocedal & Wright 2006, Section 3.1)."""

HALVINGS = 12
"""A step that gains nothing at 1/4000 of its length is along rounding errors."""

LONGEST = 2.0
"""No variable moves further in a step: they are logarithms, and beyond a factor of 7 curvature says nothing."""

FIRST = 0.5
"""Length of the first step without curvature, in the variable that moves most."""

PROMISE, RECENT = 0.1, 3
"""A descent ends where a step promises less than this share of the tolerance, or so many steps together have gained
less than the tolerance: one step may be short for other reasons."""

CURVED = 1e-8
"""Least cosine of s and y with which B is brought up to date: it stays positive definite."""


@dataclass(frozen=True, eq=False)
class Descent:
    """Where a descent has come to.

    Parameters
    ----------
    x : (p,) array
    inverse : (p, p) array or None
        What is known of the inverse Hessian there; None before the first step.
    evaluations : int
        How often the function was asked for, all descents that led here together.
    """

    x: Array
    value: float = np.nan
    inverse: Array | None = None
    evaluations: int = 0


def descend(function: Function, start: Descent, low: Array, high: Array, steps: int, tolerance: float) -> Descent:
    """Minimise a function over the box ``low <= x <= high`` from a start, whose curvature is used if it has one.

    Parameters
    ----------
    start : Descent
        Moved into the box.
    low, high : (p,) array
    steps : int
        At most so many.
    tolerance : float
        The descent ends where the last three steps together have gained less, or the next one promises a tenth of it.

    Raises
    ------
    SelectionError
        The function has no value at the start.
    """
    x = np.clip(start.x, low, high)
    try:
        value, gradient = function(x)
    except np.linalg.LinAlgError as error:
        raise SelectionError(f"the relevances can't be learnt from where they begin: {error}") from error
    B, count, gains = start.inverse, start.evaluations + 1, list[float]()
    for _ in range(steps):
        free = ~(((x <= low) & (gradient > 0)) | ((x >= high) & (gradient < 0)))
        step = np.zeros(x.size)
        if B is None:
            step[free] = -gradient[free] * (FIRST / max(np.abs(gradient[free]).max(initial=0.0), tolerance))
        else:
            step[free] = -B[np.ix_(free, free)] @ gradient[free]
        if -0.5 * (step @ gradient) < PROMISE * tolerance:
            break
        step *= min(1.0, LONGEST / np.abs(step).max())
        found, tried = _search(function, x, value, gradient, step, low, high)
        count += tried
        if found is None:
            if B is None:
                break
            B = None  # its curvature is of somewhere else
            continue
        moved, lower, slope = found
        gains, s, y = [*gains[1 - RECENT :], value - lower], moved - x, slope - gradient
        x, value, gradient = moved, lower, slope
        B = _updated(B, s, y)
        if len(gains) == RECENT and sum(gains) < tolerance:
            break
    return Descent(x, value, B, count)


def _search(
    function: Function, x: Array, value: float, gradient: Array, step: Array, low: Array, high: Array
) -> tuple[tuple[Array, float, Array] | None, int]:
    """Return the point of a shortened step that gains enough, with value and gradient, or None; and the trials."""
    length = 1.0
    for tried in range(1, HALVINGS + 1):
        moved = np.clip(x + length * step, low, high)
        promised = float(gradient @ (moved - x))
        try:
            lower, slope = function(moved)
        except np.linalg.LinAlgError:
            length *= 0.25
            continue
        if lower <= value + ARMIJO * promised:
            return (moved, lower, slope), tried
        # The parabola through both values and the slope has its least here.
        curvature = 2.0 * (lower - value - promised)
        length *= min(max(-promised / curvature if curvature > 0 else 0.5, 0.1), 0.5)
    return None, HALVINGS


def _updated(B: Array | None, s: Array, y: Array) -> Array | None:
    """Return B with what a step s and the change y of the gradient say, if they say that the function curves up."""
    product = float(s @ y)
    if not product > CURVED * float(np.linalg.norm(s) * np.linalg.norm(y)):
        return B
    if B is None:
        B = np.eye(s.size) * (product / float(y @ y))
    u = B @ y
    along = s / product
    B = B - np.outer(along, u) - np.outer(u, along) + np.outer(along, along) * (product + float(y @ u))
    return np.asarray(0.5 * (B + B.T))
