"""The objective of a fit with a smooth convex loss, its derivatives, and the line search along a direction.

    J = (1/N) sum_i s_i V(y_i, f_i) + lam ||f - b||^2,    N = sum_i s_i,

where f are outputs with an unpenalised bias b, 0 without one.
"""

from __future__ import annotations

from typing import NamedTuple

from kernsel.numerics.runtime.jit import LOSS, f8, f8_1, f8_2, f8_3, i8, inline, jit, record
from kernsel.numerics.smooth.convergence import (
    BIAS_ALONE,
    CURVED,
    FLAT,
    NOTHING_TO_GAIN,
    OVERSHOT,
    ROUNDING_OF_J,
    SAME_PIECE,
    SEARCH_STEPS,
    SUFFICIENT_DECREASE,
)
from kernsel.types import Array


class Objective(NamedTuple):
    """What J is made of beside the loss; as arguments of many fits, stacks of it (see ``STACK``).

    Parameters
    ----------
    y : (n,) array
        Targets; (q, n) in a stack of q problems.
    s : (n,) array
        Weights of the rows, 0 for a row that is left out; (q, n) in a stack.
    lam : float
        Regularisation; (L,) in a stack.
    parameters : (p,) array
        Of the loss.
    bias : int
        1 with an unpenalised bias, else 0.
    """

    y: Array
    s: Array
    lam: float | Array
    parameters: Array
    bias: int


OBJECTIVE = record(Objective, f8_1, f8_1, f8, f8_1, i8)
STACK = record(Objective, f8_2, f8_2, f8_1, f8_1, i8)
"""``q`` targets and weights with ``L`` values of ``lam``: ``q L`` objectives, of one loss."""


@inline
def derivatives(loss, parameters, y, s, f, d1, d2):
    """Fill ``d1, d2 (n,)`` with ``s`` times the derivatives of the loss at ``f (n,)``; return ``sum s_i V(y_i, f_i)``.

    Rows of weight 0 get zeros, as do rows with less curvature than ``CURVED`` for ``d2``.
    """
    total = 0.0
    for i in range(y.size):
        if s[i] > 0.0:
            v, g, h = loss(y[i], f[i], parameters)
            total += s[i] * v
            d1[i] = s[i] * g
            d2[i] = s[i] * h if h > CURVED else 0.0
        else:
            d1[i] = 0.0
            d2[i] = 0.0
    return total


@inline
def along(loss, parameters, y, s, f, df, step):
    """Return ``sum_i s_i V(y_i, f_i + step df_i)`` and its derivative in ``step``."""
    total = 0.0
    slope = 0.0
    for i in range(y.size):
        if s[i] > 0.0:
            v, g, _ = loss(y[i], f[i] + step * df[i], parameters)
            total += s[i] * v
            slope += s[i] * g * df[i]
    return total, slope


class Direction(NamedTuple):
    """J along a direction ``df`` of the outputs, at the start of a line search.

    Parameters
    ----------
    loss : float
        ``sum_i s_i V(y_i, f_i)``.
    slope : float
        Derivative of J in the step.
    q1, q2 : float
        ``||f + step df||^2 = ||f||^2 + 2 step q1 + step^2 q2`` in the norm of the kernel.
    """

    loss: float
    J: float
    slope: float
    q1: float
    q2: float


@inline
def line_search(loss, objective, N, f, df, start):
    """Return a step along ``df`` that lowers ``J``: 1 where that is good enough, else near the minimum along it.

    A full step is good enough by Armijo's rule on J and a bound on the slope at its end. Otherwise the derivative of J,
    which is convex, changes sign in [0, 1], and is brought to ``FLAT`` of its start by regula falsi with bisections.

    Parameters
    ----------
    loss : pointer of type ``LOSS``
    objective : Objective
    N : float
        Sum of the weights.
    f, df : (n,)
        Outputs, and their direction.
    start : Direction
    """
    y, s, lam, parameters, _ = objective
    slope, q1, q2 = start.slope, start.q1, start.q2
    if -slope <= NOTHING_TO_GAIN * abs(start.J):
        return 1.0
    total, rise = along(loss, parameters, y, s, f, df, 1.0)
    change = (total - start.loss) / N + lam * (2.0 * q1 + q2)
    end = rise / N + 2.0 * lam * (q1 + q2)
    if change <= SUFFICIENT_DECREASE * slope + ROUNDING_OF_J * abs(start.J) and end <= -OVERSHOT * slope:
        return 1.0
    low, high, at_low, at_high = 0.0, 1.0, slope, end
    if at_high <= 0.0:
        return 1.0
    step = 1.0
    for k in range(SEARCH_STEPS):
        step = low + (high - low) * at_low / (at_low - at_high) if k % 3 else 0.5 * (low + high)
        _, rise = along(loss, parameters, y, s, f, df, step)
        here = rise / N + 2.0 * lam * (q1 + step * q2)
        if abs(here) <= -FLAT * slope:
            break
        if here > 0.0:
            high, at_high = step, here
        else:
            low, at_low = step, here
    return step


@inline
def lone_bias_step(pull, slope, y, f):
    """Return the step of a bias where no row has curvature, which would say how far to go: 0 as long as others move.

    First the other coefficients are brought to their minimum. Then the bias goes beyond every row, from where the line
    search finds its way back to a minimum.

    Parameters
    ----------
    pull : float
        Derivative of J by the bias.
    slope : float
        Of J along the step of the other coefficients.
    y, f : (n,)
        Targets and outputs.
    """
    if -slope > BIAS_ALONE * abs(pull):
        return 0.0
    reach = 1.0
    for i in range(f.size):
        reach = max(reach, abs(y[i]) + abs(f[i]))
    return -2.0 * reach if pull > 0.0 else 2.0 * reach if pull < 0.0 else 0.0


@inline
def inner_above(a, f, b):
    """Return ``sum_i a_i (f_i - b)`` over the rows of ``f (n,)``: ``a' K a`` for ``f = K a + b``; a may be longer."""
    total = 0.0
    for i in range(f.size):
        total += a[i] * (f[i] - b)
    return total


@inline
def same_pieces(y, s, f, d1, d2, old_d2, intercepts):
    """Say whether the loss of every row has the quadratic piece ``d1 = intercept + d2 f`` that it had before.

    Parameters
    ----------
    y, s, f, d1, d2 : (n,)
        Targets, weights, outputs and weighted derivatives.
    old_d2, intercepts : (n,)
        Those of the pieces before; overwritten by those now.
    """
    same = True
    for i in range(y.size):
        if s[i] > 0.0:
            intercept = d1[i] - d2[i] * f[i]
            same &= d2[i] == old_d2[i]
            same &= abs(intercept - intercepts[i]) <= SAME_PIECE * (abs(d1[i]) + d2[i] * abs(f[i]))
            intercepts[i] = intercept
        old_d2[i] = d2[i]
    return same


@jit((LOSS, f8_1, f8_2, f8_1, f8_3, f8_3, f8_3, f8_3))
def expand(loss, parameters, Y, s, f, v, d1, d2):
    """Fill the loss ``v (q, L, n)``, not weighted, and ``s`` times its derivatives ``d1, d2`` at ``f (q, L, n)``.

    Parameters
    ----------
    loss, parameters : pointer of type ``LOSS``, (p,)
    Y, s : (q, n), (n,)
        Targets and weights.
    f, v, d1, d2 : (q, L, n)
        Outputs; the others are overwritten.
    """
    for c in range(f.shape[0]):
        for k in range(f.shape[1]):
            for i in range(f.shape[2]):
                value, g, h = loss(Y[c, i], f[c, k, i], parameters)
                v[c, k, i] = value
                d1[c, k, i] = s[i] * g
                d2[c, k, i] = s[i] * h if h > CURVED else 0.0
