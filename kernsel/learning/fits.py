"""Fits with kernels that were learnt: held-out losses, outputs at other rows, and whether their losses are lower."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from kernsel.folds.partition import Partition
from kernsel.kernels import Kernel
from kernsel.numerics.points import Points
from kernsel.paths import Path, make_path
from kernsel.protocols import Learner
from kernsel.representation.problem import Problem
from kernsel.types import Array


def fit_ridges(rows: Partition, kernel: Kernel, learner: Learner, ridges: Sequence[float] | Array) -> Path:
    """Return fits of all rows."""
    return make_path(Problem(rows, kernel, None), learner, np.asarray(ridges) / rows.total)


def score_ridges(
    rows: Partition, kernel: Kernel, learner: Learner, ridges: Sequence[float] | Array
) -> tuple[Path, list[float]]:
    """Return fits, and their mean held-out losses, infinite where there are none."""
    path = fit_ridges(rows, kernel, learner, ridges)
    held = path.exact().clipped(rows)
    losses = rows.mean(learner.loss.values(rows.Y, held.f).mean(axis=0))
    return path, [math.inf if failed else float(loss) for loss, failed in zip(losses, held.failed, strict=True)]


def outputs_at(path: Path, k: int, X: Points) -> Array:
    """Return outputs (c, m) of a fit at other rows."""
    a, b = path.coefficients(k), path.intercepts(k)
    return np.asarray(a @ path.problem.kernel(path.rows.X, X) + np.asarray(b)[:, None])


def is_less(own: Array, theirs: Array, s: Array, errors: float = 1.0) -> bool:
    """Tell whether losses (m,) of rows of weights s have a lower mean than others, by so many of its standard errors.

    These are of the mean difference.
    """
    gain = theirs.astype(np.float64) - own
    mean = float(gain @ s / s.sum())
    return mean > errors * math.sqrt(float(s**2 @ (gain - mean) ** 2)) / float(s.sum())
