"""When Newton's method, its line search and the updates of folds end: statuses, tolerances and their reasons."""

from __future__ import annotations

CONVERGED, UNFINISHED, NOT_FINITE, SINGULAR, ASTRAY = 0, 1, 2, 3, 4
"""Statuses, in the order of severity: up to ``UNFINISHED`` outputs may be used, and the worst of several counts."""

REFITTED = -1
"""The status of a fold whose fit took the place of its Newton step, and converged."""

REASONS = {
    UNFINISHED: "the fit did not converge",
    NOT_FINITE: "the fit met values that are not finite",
    SINGULAR: "the Newton system is singular to working precision",
    ASTRAY: "a Newton step of a fold ended where the loss is not as modelled",
}

MAX_STEPS = 200
"""Newton steps; a fit that follows its neighbour takes 2 to 10, one with a narrow kink some tens."""

DECREMENT = 1e-13
"""A fit ends with a full step that promises less than this share of J: the last step of a quadratically convergent
iteration squares what is left."""

SETTLED = 1e-22
"""A step that promises less than this share of J changes outputs by 1e-11 of their size, and is not taken."""

PULL = 1e-11
"""A bias rests where all rows pull at it by less than this share of N: where one class is left, the logistic loss pulls
for ever, less and less."""

CURVED = 1e-12
"""Less curvature than this counts as none (the gradient stays exact), so that ``D^-1`` is finite."""

SAME_PIECE = 1e-12
"""Two intercepts of quadratic pieces of the loss are equal up to this share of the terms that they are made of."""

NOTHING_TO_GAIN = 1e-16
"""A step that promises less than this share of J is taken whole: rounding errors of J are larger."""

SUFFICIENT_DECREASE = 1e-4
"""A full step is taken where J falls by this share of the slope (Armijo's rule; Nocedal & Wright 2006, equation 3.6a,
with their constant)."""

ROUNDING_OF_J = 4e-16
"""What a sum of losses may be off, relative to J: a full step may seem to raise J by so much."""

OVERSHOT = 0.5
"""A full step is not taken where the slope at its end has this share of the one at its start, with the other sign."""

FLAT = 0.1
"""The line search ends where this share of the slope at its start is left: a better minimum along one direction is
worth less than the next direction."""

SEARCH_STEPS = 60
"""Steps of the line search: every third one halves the interval, to ``2^-20`` of it in the end."""

BIAS_ALONE = 0.01
"""A bias that no curvature holds moves alone where the other coefficients have less than this share of its slope to
gain."""

GRADIENT_COST = 32.0
"""A Cholesky factor of m rows takes as long as ``m^3 / (GRADIENT_COST (n + m) m)`` steps of conjugate gradients with m
of n rows, each of which reads matrices from memory twice: measured with 200 to 900 rows."""

ROUGH = 1e-3
"""The square of a residual falls to this share at least: the first step of a fit doesn't know what it promises."""

EXACT = 1e-12
"""A system is never solved to less than this share of its residual: rounding errors would be larger."""

NEGLIGIBLE = 1e-6
"""A fold's step that strays by less than this share of J is believed, whatever it promises: scores don't show the
rest."""
