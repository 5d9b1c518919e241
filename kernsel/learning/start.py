"""Where the learning of relevances begins: the rows, the kernel with one relevance for all, and the bounds."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernsel.criteria import CV
from kernsel.data import Dataset
from kernsel.errors import OptionError, SelectionError
from kernsel.folds import make_folds
from kernsel.folds.partition import Partition
from kernsel.heldout.errors import Errors
from kernsel.kernels.base import Kernel, Learnable
from kernsel.learning.descent import Box, DescentPoint
from kernsel.parts import read_search
from kernsel.protocols import Learner, require
from kernsel.protocols.kernels import has_relevances
from kernsel.search.axes import make_grids
from kernsel.search.board import Board
from kernsel.search.candidate import Candidate
from kernsel.search.choice import MINIMUM, Rule
from kernsel.search.walk import Search

RIDGES = (1e-8, 1e6)
"""Bounds of ``N lambda``, relative to the mean of k(x, x); below, rounding would be what regularises."""

LEAST_RIDGES = ((0.5, 0.01), (1.5, 3e-3), (math.inf, RIDGES[0]))
"""Least ridges of the evidence for kernels up to a smoothness; those of smooth kernels have a least of their own."""

RANGE = 1e4
"""Relevances are at most this many times those of the start."""


@dataclass(frozen=True, eq=False)
class Start:
    """The beginning of learning.

    Parameters
    ----------
    kernel : Relevances
        With the relevances to begin with.
    best : Candidate
        What ``kernel`` equals: the best kernel with one relevance for all features, or the kernel as it was given.
    theta : float
        The largest relevance.
    diagonal : float
        The mean of k(x, x).
    """

    kernel: Learnable
    best: Candidate
    theta: float
    diagonal: float

    def point(self, lam: float) -> DescentPoint:
        """Return the start as a point of a descent, with another lambda."""
        return DescentPoint(np.array(self.kernel.theta), lam)

    def box(self, rows: Partition, least: float, ridge: float = RIDGES[0]) -> Box:
        """Return the bounds of a descent on some rows.

        No relevance is below ``least`` times the largest one, and no ridge below ``ridge`` times the mean of k(x, x).
        """
        low, high = (bound * self.diagonal / rows.total for bound in (ridge, RIDGES[1]))
        return Box(least * self.theta, RANGE * self.theta, (low, high))


def mean_diagonal(kernel: Kernel | Learnable, rows: Partition) -> float:
    """Return the mean of k(x, x) over rows."""
    return float(rows.s @ kernel.diag(rows.X) / rows.total)


def least_ridge(kernel: object) -> float:
    """Return the least ridge, relative to the mean of k(x, x), with which the evidence learns relevances of a kernel.

    Without a bound the evidence drives the ridge of rough kernels to 0, where they interpolate.
    """
    own = float(getattr(kernel, "smoothness", math.inf))
    return next(ridge for smoothness, ridge in LEAST_RIDGES if own <= smoothness)


def check_learnable(kernel: object, learner: Learner) -> Learnable:
    """Return the kernel; IncompatibleError where relevances can't be learnt."""
    able: Learnable = require(
        kernel,
        has_relevances,
        f"kernel '{kernel}' has no relevances to learn: use ard, ard-laplacian, ard-polynomial or gaussian (which "
        "has one for all), or a sum or product with one of them",
    )
    require(
        learner,
        lambda learner: learner.loss.square,
        f"relevances are learnt for the square loss, and learner '{learner.name}' has another: use krr or lssvm; "
        "a selection with any learner can use the kernel that comes out",
    )
    return able


def subsample(dataset: Dataset, rows: int, seed: int) -> Dataset:
    """Return a random sample of the rows of a data set, from each class by its share; all rows if there are no more."""
    n = dataset.n
    if n <= rows:
        return dataset
    labels = np.zeros(n, np.int64) if dataset.codes is None else dataset.codes
    shuffled = np.random.default_rng(seed).permutation(n)
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    return dataset.take(np.sort(by_class[np.linspace(0, n - 1, rows).round().astype(np.int64)]))


def deal_rows(dataset: Dataset, folds: int | str, seed: int) -> Partition:
    """Return the rows of a data set, dealt to folds."""
    if isinstance(folds, bool) or not isinstance(folds, numbers.Integral | str):
        raise OptionError(f"folds must be a number of folds, 'loo' or 'logo' here, not {folds!r}")
    if dataset.sample.near is not None:  # the folds of the selection see to that
        dataset = replace(dataset, sample=replace(dataset.sample, near=None))
    made = make_folds(folds, dataset, seed)
    if made.training is not None:
        raise OptionError(f"relevances are learnt with fits on all rows but a fold, and {made.text} are others")
    return Partition.of(dataset, made, seed)


def choose_start(dataset: Dataset, rows: Partition, kernel: Learnable, learner: Learner) -> Start:
    """Choose the kernel with one relevance for all features, and lambda, by exact cross-validation over a grid.

    A kernel that has relevances is the start itself, and lambda alone is chosen.
    """
    isotropic: Any = kernel.isotropic if kernel.theta is None else kernel
    board = Board([rows], CV(), Errors.of(dataset))
    search: Search = read_search("auto", rows.n, len(rows.Y), board.rank, False, learner)
    grids = make_grids([isotropic], "auto", rows, learner)
    # Beyond that grid kernels are nearly flat, and rounding leaves little of a gradient.
    search.begin(board, grids, extend=False, rule=Rule(MINIMUM, 0.0)).run()
    best = board.candidates()[0]
    if best.failed is not None:
        raise SelectionError(f"no kernel with one relevance for all features could be scored: {best.failed}")
    if kernel.theta is None:
        kernel = kernel.from_isotropic(best.kernel, rows.X.shape[1])
    theta = kernel.theta or ()
    if not any(theta):
        raise OptionError(f"kernel '{kernel.name}': theta is 0 for all features, from where nothing can be learnt")
    return Start(kernel, best, max(theta), mean_diagonal(kernel, rows))
