"""Losses for the tests of the numerics: each compiled, with its twin.

The solver is made for any smooth convex loss, so there are more of them here than in the library.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

import twins.losses
from kernsel.numerics.runtime.jit import LOSS, pointer


@dataclass(frozen=True)
class Loss:
    """A compiled loss with its parameters, the twin of both, and the largest second derivative."""

    name: str
    compiled: Any
    parameters: np.ndarray
    twin: Any
    curvature: float

    def __str__(self):
        return self.name


@pointer(LOSS)
def _square(y, f, parameters):
    return (y - f) ** 2, 2.0 * (f - y), 2.0


@pointer(LOSS)
def _huber_hinge(y, f, parameters):
    h = parameters[0]
    u = y * f
    if u > 1.0 + h:
        return 0.0, 0.0, 0.0
    if u < 1.0 - h:
        return 1.0 - u, -y, 0.0
    return (1.0 + h - u) ** 2 / (4.0 * h), -y * (1.0 + h - u) / (2.0 * h), 0.5 / h


@pointer(LOSS)
def _logistic(y, f, parameters):
    u = y * f
    e = np.exp(-abs(u))
    p = (1.0 if u < 0.0 else e) / (1.0 + e)
    return max(-u, 0.0) + np.log1p(e), -y * p, e / (1.0 + e) ** 2


@pointer(LOSS)
def _squared_hinge(y, f, parameters):
    slack = max(1.0 - y * f, 0.0)
    return slack * slack, -2.0 * y * slack, 2.0 if slack > 0.0 else 0.0


def huber_hinge(h):
    return Loss(f"huber hinge {h}", _huber_hinge, np.array([h]), twins.losses.huber_hinge(h), 0.5 / h)


SQUARE = Loss("square", _square, np.zeros(0), twins.losses.square, 2.0)
HINGE = huber_hinge(0.05)
WIDE_HINGE = huber_hinge(0.5)
LOGISTIC = Loss("logistic", _logistic, np.zeros(0), twins.losses.logistic, 0.25)
SQUARED_HINGE = Loss("squared hinge", _squared_hinge, np.zeros(0), twins.losses.squared_hinge, 2.0)
QUADRATIC = [SQUARE, HINGE, WIDE_HINGE, SQUARED_HINGE]  # piecewise: the third derivative is 0 where it exists
ALL = [*QUADRATIC, LOGISTIC]
