"""The sum of kernels whose relevances were learnt, and of the linear one, with weights that the evidence learns: where
several kernels are as good their sum is better than each, and where one is right it gets nearly all of the weight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernsel.criteria.evidence import prior
from kernsel.folds.partition import Partition
from kernsel.kernels.base import Kernel, names_of
from kernsel.kernels.dot import Linear
from kernsel.learning.profile import LARGEST_RIDGE, REACH, STEPS, TOLERANCE, LearntProfile, Priors, stages
from kernsel.learning.quasinewton import Descent, descend
from kernsel.learning.start import mean_diagonal
from kernsel.numerics.runtime.threads import one_blas_thread
from kernsel.numerics.square import gradients
from kernsel.protocols import Learner
from kernsel.types import Array

SIGMA = 1.0
"""Standard deviation of log weights under their prior. The evidence alone gives one kernel all of the weight, and what
errors the others would average is lost; equal weights cost where one kernel is right."""

ALONE = 4.0
"""Descents also begin where a kernel has this logarithm of the others' weight, at its own ridge: from equal weights and
a mean ridge a kernel that is right, and wants next to no ridge, is not found."""

LEAST = 0.02
"""Kernels of a smaller share of the weight are left out: they only cost time."""


@dataclass(frozen=True, eq=False)
class LearntSum:
    """``k = w_0 <x, z>/m + w_1 k_1 + ... + w_p k_p``, weights of sum 1; relevances of each k_i learnt by itself.

    A fit with k is a sum of functions of each of the kernels, so that they share the target, and errors that only some
    of them make are averaged. Functions of kernels of distances fall back to the mean away from the rows, and follow a
    plane only by large coefficients: the linear kernel takes that part of the target over.

    Parameters
    ----------
    profiles : tuple of LearntProfile
        At least one.
    weights : (p,) tuple of float
        Of the profiles, greater than 0; with ``straight`` their sum is 1.
    ridge : float
        ``N lambda``, N the sum of the weights of rows, that was learnt with the weights.
    linear : Kernel or None
        The linear kernel over the mean m of ``<x, x>``; None if it has no weight.
    straight : float
        The weight of the linear kernel.
    """

    profiles: tuple[LearntProfile, ...]
    weights: tuple[float, ...]
    ridge: float
    linear: Kernel | None = None
    straight: float = 0.0

    @property
    def kernel(self) -> Any:
        """The sum of the kernels."""
        learnt = sum(weight * each.kernel for weight, each in zip(self.weights, self.profiles, strict=True))
        return learnt if self.linear is None else learnt + self.straight * self.linear

    @property
    def theta(self) -> tuple[float, ...]:
        """The relevances, those of one kernel after another."""
        return tuple(theta for each in self.profiles for theta in each.theta)

    def shares(self, features: Sequence[str]) -> dict[str, float]:
        """Return each relevance as a share of the largest one of its kernel, on weighted average, by names of features.

        Relevances of different kernels have different units.
        """
        found: dict[str, float] = {}
        for weight, each in zip(self.weights, self.profiles, strict=True):
            largest = max(each.theta)
            for name, theta in zip(names_of(each.kernel, features), each.theta, strict=True):
                found[name] = found.get(name, 0.0) + weight * theta / largest
        return found

    @property
    def learnt_by(self) -> str:
        """The criteria that the relevances were learnt by, in words."""
        return " and ".join(dict.fromkeys(each.learnt_by for each in self.profiles))

    @property
    def priors(self) -> Priors:
        """The prior of the relevances of each kernel."""
        return tuple(each.sigma for each in self.profiles)

    def again(self, rows: Partition, learner: Learner, priors: Priors, seed: int = 0) -> LearntSum:
        """Learn relevances and weights on other rows, with other priors; the descents begin at these."""
        pairs = zip(self.profiles, priors, strict=True)
        profiles = tuple(each.again(rows, learner, (sigma,), seed) for each, sigma in pairs)
        return learn_sum(rows, profiles, learner, self.linear, (*self.weights, self.straight), seed)

    def anew(self, rows: Partition, learner: Learner) -> Any:
        """Return the sum of the kernels with relevances and weights that are learnt on other rows in the same way."""
        return self.again(rows, learner, self.priors).kernel


@dataclass(frozen=True, eq=False)
class Objective:
    """Negative log evidence and prior of the weights over the number of rows, as a function of log weights, log ridge.

    Parameters
    ----------
    grams : list of (n, n) array
        Of the kernels.
    """

    rows: Partition
    grams: Sequence[Array]
    bias: int

    def __call__(self, x: Array) -> tuple[float, Array]:
        """Return the objective at x with its gradient."""
        value, slopes, _ = evidence_of_sum(self.rows, self.grams, self.bias, x)
        return value / self.rows.n, slopes / self.rows.n


def evidence_of_sum(rows: Partition, grams: Sequence[Array], bias: int, x: Array) -> tuple[float, Array, Array]:
    """Return the negative log evidence and prior of a sum at log weights and a log ridge x, and derivatives.

    With ``w = v / sum v`` of the exponentials v, ``dE/dlog v = w (g - w'g)``, g by w.

    Returns
    -------
    value : float
    slopes : (p + 1,) array
        By x.
    W : (n, n) array
        By the Gram matrix of the sum.
    """
    v, lam = np.exp(x[:-1]), float(np.exp(x[-1])) / rows.total
    w = v / v.sum()
    K = sum(weight * gram for weight, gram in zip(w, grams, strict=True))
    value, W, slope = gradients.evidence(K, rows.Y, rows.s, bias, lam)
    by_w = np.array([np.vdot(W, gram) for gram in grams])
    added, slopes = prior(v, SIGMA, [v.size])
    return value + added, np.append(w * (by_w - w @ by_w) + slopes * v, slope * lam), W


def linear_kernel(rows: Partition) -> Kernel | None:
    """Return ``<x, z>`` over the mean of ``<x, x>``, as large as kernels of distances are; None if all rows are 0."""
    mean = mean_diagonal(Linear(), rows)
    return Linear() * (1.0 / mean) if mean > 0 else None


@one_blas_thread()
def learn_sum(
    rows: Partition,
    profiles: Sequence[LearntProfile],
    learner: Learner,
    linear: Kernel | None = None,
    begun: Sequence[float] | None = None,
    seed: int = 0,
) -> LearntSum:
    """Learn the weights of kernels, and the ridge of their sum, by the evidence.

    Parameters
    ----------
    profiles : sequence of LearntProfile
        Their relevances stay.
    learner : Learner
        Of the square loss.
    linear : Kernel, optional
        See ``linear_kernel``.
    begun : (p + 1,) sequence of float, optional
        Weights at which the descent begins, that of the linear kernel last; equal by default.
    seed : int
        Of the part of the rows where most of the descent goes on.

    Returns
    -------
    LearntSum
        The heaviest profile first, without the others of next to no weight.

    Raises
    ------
    SelectionError
        There is no evidence at the start.
    """
    straight = [] if linear is None else [linear]
    kernels = [*(each.kernel for each in profiles), *straight]
    own = np.log([each.ridge for each in profiles])
    ridges = np.append(own, [own.max()] * len(straight))
    logs = np.zeros(ridges.size) if begun is None else np.log(begun[: ridges.size])
    low = np.append(np.full(logs.size, -REACH), ridges.min())
    high = np.append(np.full(logs.size, REACH), math.log(LARGEST_RIDGE))
    alone = [np.append(ALONE * row, ridge) for row, ridge in zip(np.eye(logs.size), ridges, strict=True)]
    ends = [Descent(x) for x in (np.append(logs, ridges.mean()), *alone)]
    for part, steps in stages(rows, STEPS, seed):
        objective = Objective(part, [kernel(part.X) for kernel in kernels], int(learner.bias))
        ends = [min((descend(objective, end, low, high, steps, TOLERANCE) for end in ends), key=lambda end: end.value)]
    shares = np.exp(ends[0].x[:-1] - ends[0].x[:-1].max())
    shares /= shares.sum()
    heaviest = np.argsort(-shares[: len(profiles)], kind="stable").tolist()
    kept = [i for place, i in enumerate(heaviest) if place == 0 or shares[i] >= LEAST]
    weight = float(shares[-1]) if straight and shares[-1] >= LEAST else 0.0
    total = float(shares[kept].sum()) + weight
    return LearntSum(
        profiles=tuple(profiles[i] for i in kept),
        weights=tuple(float(shares[i]) / total for i in kept),
        ridge=math.exp(ends[0].x[-1]),
        linear=linear if weight else None,
        straight=weight / total,
    )


def learn_wider(
    more: Sequence[LearntProfile], rows: Partition, apart: LearntSum, learner: Learner, seed: int
) -> LearntSum:
    """Learn the relevances of more kernels on rows, from those that they have, and the weights of all in one sum.

    The kernels of ``apart``, and with it the linear one, stay as they were learnt on these rows.
    """
    learnt = [each.again(rows, learner, each.priors, seed) for each in more]
    return learn_sum(rows, [*apart.profiles, *learnt], learner, linear_kernel(rows), seed=seed)
