"""Kernels whose relevances or metric have been learnt, each with its leave-one-out loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from kernsel.data import Dataset
from kernsel.errors import SelectionError
from kernsel.folds.partition import Partition
from kernsel.journal import remember
from kernsel.kernels import Kernel, Statistics, short
from kernsel.kernels.base import Combined, names_of
from kernsel.learners import Krr, Lssvm
from kernsel.learning.metric import LearntMetric
from kernsel.learning.profile import LearntProfile, learn_profile
from kernsel.learning.quasinewton import Descent
from kernsel.learning.summed import LearntSum
from kernsel.numerics.runtime.once import once
from kernsel.numerics.runtime.threads import share_each
from kernsel.paths import make_path
from kernsel.protocols import Learner
from kernsel.protocols.kernels import SupportsViews
from kernsel.representation.problem import Problem

Job: TypeAlias = tuple[Any, float | None, Descent | None]
"""A kernel with relevances to be learnt, their prior, and where the descent begins, if it has begun."""


@dataclass(frozen=True, eq=False)
class Learnt:
    """A kernel with learnt relevances or a learnt metric, as a candidate.

    Parameters
    ----------
    factor : float
        Of all its relevances.
    loss : float
        Mean leave-one-out loss on the rows it was learnt on.
    rows : int or None
        How many it was learnt on, if those are others than the rest was learnt on.
    """

    profile: LearntProfile | LearntSum | LearntMetric
    factor: float
    loss: float
    rows: int | None = None

    @once
    def kernel(self) -> Kernel:
        """The kernel with its relevances times the factor."""
        found: Kernel = self.profile.kernel.times(self.factor)
        return found

    @property
    def theta(self) -> tuple[float, ...]:
        """Its relevances."""
        return tuple(self.factor * theta for theta in self.profile.theta)

    @property
    def is_sum(self) -> bool:
        """Whether it is a sum of kernels, whose relevances are said as shares."""
        return isinstance(self.profile, LearntSum)

    def relevances(self, features: Sequence[str]) -> dict[str, float]:
        """Return the relevances by their names, by the names of the features (d,).

        Of a sum of kernels, whose relevances have different units: shares of the largest one of each, averaged by
        weight.
        """
        if isinstance(self.profile, LearntSum):
            return self.profile.shares(features)
        names = features if isinstance(self.profile, LearntMetric) else names_of(self.kernel, features)
        return dict(zip(names, self.theta, strict=True))

    @property
    def freedom(self) -> int:
        """1 with relevances, 2 with a metric: what is learnt with more freedom is the more over-rated."""
        return 2 if isinstance(self.profile, LearntMetric) else 1


def square_loss(task: str) -> Lssvm | Krr:
    """Return the learner of the square loss that relevances are learnt with."""
    return Lssvm() if task == "classification" else Krr()


def alone(dataset: Dataset, seed: int) -> Partition:
    """Return the rows of a data set, each in a fold of its own."""
    X, n = dataset.X, dataset.n
    return Partition(X, dataset.Y, np.arange(n + 1), np.arange(n), Statistics(X), seed, dataset.weights)


def learn_each(
    few: Partition,
    rows: Partition,
    learner: Learner,
    what: Sequence[Job],
    seed: int,
) -> tuple[list[Learnt], list[str]]:
    """Learn relevances of kernels, each with a prior, on a few rows, and score them by leave-one-out on all.

    A descent may have begun on fewer rows yet. Returns kernels and what could not be learnt.
    """

    def one(job: Job) -> Learnt | str:
        kernel, sigma, begun = job
        try:
            profile = learn_profile(few, kernel, learner, sigma, seed=seed, begun=begun)
            return Learnt(profile, 1.0, left_out_loss(rows, profile, learner))
        except SelectionError as error:
            return f"kernel: relevances of {short(kernel)} can't be learnt ({error})"

    def kept(job: Job) -> Learnt | str:
        return remember("learnt", (few, rows, learner, seed, *job), lambda: one(job))

    found, failed = [], []
    for each in share_each(kept, what):
        if isinstance(each, Learnt):
            found.append(each)
        else:
            failed.append(each)
    return found, failed


def left_out_loss(rows: Partition, profile: LearntProfile, learner: Learner) -> float:
    """Return the mean leave-one-out loss with a profile; SelectionError without a fit."""
    path = make_path(Problem(rows, profile.kernel, None), learner, [profile.ridge / rows.total])
    held = path.exact()
    if held.failed[0] is not None:
        raise SelectionError(held.failed[0])
    return float(rows.mean(learner.loss.value(rows.Y, held.f[:, 0]).mean(axis=0)))


def best_of_each_profile(learnt: Sequence[Learnt]) -> list[Learnt]:
    """Return the best of each profile by its loss, whatever its prior and with ranks or without, the best one first."""
    best: dict[str, Learnt] = {}
    for each in sorted(learnt, key=lambda each: each.loss):
        best.setdefault(kind_of(each.kernel, views=False), each)
    return list(best.values())


def kind_of(kernel: Kernel, views: bool = True) -> str:
    """Return the name of a kernel with its profile, if it has one, and with ``views`` what it sees beside values.

    Those of a sum have "+" between.
    """
    if isinstance(kernel, Combined):
        return " + ".join(dict.fromkeys(kind_of(part, views) for part in kernel.parts))
    profile = kernel.parameters.get("profile")
    name = kernel.name if profile is None else f"{kernel.name}(profile={profile})"
    told = kernel.views_told if views and isinstance(kernel, SupportsViews) else ""
    return f"{name} with {told}" if told else name
