"""Polish a learnt metric by the gradient of the evidence.

Average gradients come near the best metric, and settle beside it. A few steps down the negative log evidence of the
square loss over the entries of L and the logarithm of the ridge go on from there; the derivatives by all entries of L
are two products of matrices (``Metric.metric_vjp``). Entries are few where few directions count; of many the evidence
would fit the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kernsel.folds.partition import Partition
from kernsel.kernels import Metric
from kernsel.learning.profile import LARGEST_RIDGE, TOLERANCE
from kernsel.learning.quasinewton import Descent, descend
from kernsel.learning.start import least_ridge
from kernsel.numerics.square import gradients
from kernsel.protocols import Learner
from kernsel.types import Array

STEPS = 8
"""The first five gain most."""

UNIT = 0.2
"""Share of the largest entry of L that a variable of 1 is; a descent begins with a step of half of that."""


@dataclass(frozen=True, eq=False)
class Objective:
    """Negative log evidence over the number of rows, as a function of ``(L / unit, log ridge)``.

    Parameters
    ----------
    kernel : Metric
        Its entries don't count, their number does.
    """

    rows: Partition
    kernel: Metric
    bias: int
    unit: float

    def at(self, x: Array) -> Metric:
        """Return the kernel of a point."""
        return Metric.of(self.unit * x[:-1].reshape(self.kernel.array.shape), self.kernel.profile)

    def __call__(self, x: Array) -> tuple[float, Array]:
        """Return the objective at x with its gradient."""
        rows, kernel, lam = self.rows, self.at(x), float(np.exp(x[-1])) / self.rows.total
        K = kernel(rows.X)
        value, W, slope = gradients.evidence(K, rows.Y, rows.s, self.bias, lam)
        by_entry = self.unit * kernel.metric_vjp(rows.X, W, K).ravel()
        return value / rows.n, np.append(by_entry, slope * lam) / rows.n


def polish(rows: Partition, kernel: Metric, learner: Learner, ridge: float) -> Metric:
    """Return a kernel whose metric has more evidence.

    Parameters
    ----------
    rows : Partition
        A thousand or two: a step is O(n^3).
    kernel : Metric
        To begin with.
    learner : Learner
        Of the square loss.
    ridge : float
        ``N lambda`` to begin with.

    Raises
    ------
    SelectionError
        There is no evidence at the beginning.
    """
    unit = UNIT * float(np.abs(kernel.array).max())
    objective = Objective(rows, kernel, int(learner.bias), unit)
    start = np.append(kernel.array.ravel() / unit, math.log(ridge))
    low, high = np.full(start.size, -np.inf), np.full(start.size, np.inf)
    low[-1], high[-1] = math.log(least_ridge(kernel)), math.log(LARGEST_RIDGE)
    return objective.at(descend(objective, Descent(start), low, high, STEPS, TOLERANCE).x)
