"""Small tables in folds, and paths on them, for checks of learners and criteria."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kernsel.folds.partition import Partition
from kernsel.kernels import Gaussian, Statistics
from kernsel.paths import Path, make_path
from kernsel.protocols import Learner
from kernsel.representation.problem import Problem
from kernsel.representation.ranks import Rank
from kernsel.types import Indices


def make_rows(seed: int = 0, n: int = 30, sizes: Sequence[int] = (5, 9, 2, 14), real: bool = False) -> Partition:
    """Return rows in unequal folds, two rows of targets, out of order; targets are -1 and +1 unless ``real``."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    Y = np.stack([np.sin(2 * X[:, 0]) + X[:, 1], X[:, 0] * X[:, 1]]) + 0.3 * rng.normal(size=(2, n))
    Y = Y if real else np.where(Y > 0, 1.0, -1.0)
    return Partition(X, np.ascontiguousarray(Y), np.r_[0, np.cumsum(sizes)], rng.permutation(n), Statistics(X), seed)


def repeated(rows: Partition, times: Indices) -> Partition:
    """Return rows, each as many ``times`` (n,) as is said, without weights."""
    starts = np.r_[0, np.cumsum(times)[rows.starts[1:] - 1]]
    return replace(rows.taken(np.repeat(np.arange(rows.n), times), starts), weights=None)


def path_on(
    rows: Partition,
    learner: Learner,
    lams: Sequence[float] = (0.1, 0.01),
    tau: float = 1.0,
    rank: Rank | int | None = None,
) -> Path:
    """Return the path of a learner on a Gaussian kernel."""
    return make_path(Problem(rows, Gaussian(tau), rank), learner, lams)
