"""Learn the relevances of one profile by the evidence, fast: what a search over profiles does for each of them.

The objective is the negative log evidence, with the prior of the relevances if there is one, divided by the number of
rows; its variables are ``log theta`` and the logarithm of the ridge. Most of its way a descent goes on a part of the
rows, where an evaluation costs a thirtieth; on all rows a few steps are left, and begin with the curvature found there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from kernsel.criteria.evidence import prior
from kernsel.errors import SelectionError
from kernsel.folds.partition import Partition
from kernsel.kernels.base import Learnable
from kernsel.learning.quasinewton import Descent, descend
from kernsel.learning.start import least_ridge, mean_diagonal
from kernsel.numerics.runtime.threads import one_blas_thread
from kernsel.numerics.square import gradients
from kernsel.protocols import Learner
from kernsel.protocols.kernels import blocks_of
from kernsel.types import Array

Priors: TypeAlias = tuple[float | None, ...]
"""Standard deviations of log relevances under their priors, one for each kernel; None for no prior."""

PART = 300
"""Rows of the first descents."""

WIDTHS, RIDGES = 8, (0.01, 0.1, 1.0)
"""How many widths for all features, and which ridges relative to the mean of k(x, x), descents may begin at."""

NEARBY = 2.0 ** np.arange(-1.5, 2.0)
"""Factors of the lengths that another profile has learnt: another profile wants a wider kernel or a narrower one."""

SPREAD = 3.0
"""A wider and a narrower start have lengths this many times more and less than the best."""

TOLERANCE = 1e-4
"""Of the objective: half a logarithm of a mean square, so that this is 0.01 % of a standard deviation."""

TRIAL, STEPS, POLISH = 6, 60, 8
"""At most so many steps from each start, then from where the best of them has led on a part of the rows, and on all."""

REACH = 12.0
"""Logarithm of the factor by which relevances may leave the start."""

LARGEST_RIDGE = 1e3


@dataclass(frozen=True, eq=False)
class LearntProfile:
    """Relevances that were learnt by the evidence.

    Parameters
    ----------
    kernel : Kernel
        With its relevances.
    value : float
        The negative log evidence on all rows, without the prior.
    objective : float
        With the prior.
    ridge : float
        ``N lambda``, N the sum of the weights.
    lam : float
        For these rows.
    sigma : float or None
        Of the prior.
    descent : Descent
        Where it ended, with the curvature; its evaluations are those of all rows and of parts together.
    """

    kernel: Any
    value: float
    objective: float
    ridge: float
    lam: float
    sigma: float | None
    descent: Descent

    @property
    def theta(self) -> tuple[float, ...]:
        """The relevances, (d,)."""
        found: tuple[float, ...] = self.kernel.theta
        return found

    @property
    def learnt_by(self) -> str:
        """The criterion that the relevances were learnt by, in words."""
        return "evidence" if self.sigma is None else f"evidence(sigma={self.sigma:g})"

    @property
    def priors(self) -> Priors:
        """The prior of its relevances, alone."""
        return (self.sigma,)

    def again(self, rows: Partition, learner: Learner, priors: Priors, seed: int = 0) -> LearntProfile:
        """Learn the relevances on other rows, with another prior; the descent begins at these."""
        (sigma,) = priors
        return learn_profile(rows, self.kernel, learner, sigma, seed=seed)

    def anew(self, rows: Partition, learner: Learner) -> Any:
        """Return the kernel with relevances that are learnt on other rows in the same way."""
        return self.again(rows, learner, self.priors).kernel


@dataclass(frozen=True, eq=False)
class Objective:
    """Negative log evidence and prior over the number of rows, as a function of ``(log theta, log ridge)``.

    Parameters
    ----------
    kernel : Relevances
        Its own relevances don't count.
    blocks : list of int
        Relevances of each part of the kernel.
    """

    rows: Partition
    kernel: Learnable
    bias: int
    sigma: float | None
    blocks: list[int]

    def __call__(self, x: Array) -> tuple[float, Array]:
        """Return the objective at x with its gradient."""
        rows, theta = self.rows, np.exp(x[:-1])
        kernel, lam = self.kernel.with_theta(theta), float(np.exp(x[-1])) / rows.total
        K = kernel(rows.X)
        value, W, slope = gradients.evidence(K, rows.Y, rows.s, self.bias, lam)
        added, slopes = prior(theta, self.sigma, self.blocks)
        by_theta = kernel.theta_vjp(rows.X, W, K) + slopes
        return (value + added) / rows.n, np.append(by_theta * theta, slope * lam) / rows.n

    def value(self, x: Array) -> float:
        """Return the objective at x; infinity where it has no value."""
        rows, theta = self.rows, np.exp(x[:-1])
        K = self.kernel.with_theta(theta)(rows.X)
        try:
            found = gradients.evidence_alone(K, rows.Y, rows.s, self.bias, float(np.exp(x[-1])) / rows.total)
        except np.linalg.LinAlgError:
            return np.inf
        return (found + prior(theta, self.sigma, self.blocks)[0]) / rows.n


@one_blas_thread()
def learn_profile(
    rows: Partition,
    kernel: Learnable,
    learner: Learner,
    sigma: float | None = None,
    starts: tuple[LearntProfile, ...] = (),
    part: int = PART,
    seed: int = 0,
    begun: Descent | None = None,
) -> LearntProfile:
    """Learn the relevances of a kernel, and the ridge, by the evidence of all rows given.

    Parameters
    ----------
    rows : Partition
        A thousand or two: an evaluation is O(n^3).
    kernel : Relevances
        Its own relevances don't count.
    learner : Learner
        Of the square loss.
    sigma : float or None
        Of the prior of relevances, see ``Evidence``.
    starts : tuple of LearntProfile
        What other profiles have learnt on these rows: their relevances are starts, too. Without any, the best width for
        all features, and a wider and a narrower one, are.
    part : int
        Rows of the first descents.
    seed : int
        Of the choice of these.
    begun : Descent, optional
        Where a descent on a part of these rows, with the same prior, has ended: it goes on from there.

    Raises
    ------
    SelectionError
        There is no evidence at any start.
    """
    few = rows if begun is not None or rows.n <= 1.5 * part else some(rows, part, seed)
    candidates = _candidates(kernel, rows.X, starts)
    template = candidates[0]
    objective = Objective(few, template, int(learner.bias), sigma, blocks_of(template))
    scale = mean_diagonal(template, rows)
    ridges = np.log([least_ridge(template) * scale, LARGEST_RIDGE * scale])

    def improved(on: Objective, start: Descent, steps: int) -> Descent:
        low = np.append(np.full(start.x.size - 1, start.x[:-1].max() - REACH), ridges[0])
        high = np.append(np.full(start.x.size - 1, start.x[:-1].max() + REACH), ridges[1])
        return descend(on, start, low, high, steps, TOLERANCE)

    best = begun
    if best is None:
        ends = [improved(objective, Descent(x), TRIAL) for x in _begun(objective, candidates, scale)]
        best = min(ends, key=lambda end: end.value)
        best = replace(best, evaluations=sum(end.evaluations for end in ends))
        best = improved(objective, best, STEPS)
    if begun is not None or few is not rows:
        objective = replace(objective, rows=rows)
        best = improved(objective, best, POLISH)
    theta, ridge = np.exp(best.x[:-1]), float(np.exp(best.x[-1]))
    total = best.value * rows.n
    return LearntProfile(
        kernel=template.with_theta(tuple(theta)),
        value=total - prior(theta, sigma, objective.blocks)[0],
        objective=total,
        ridge=ridge,
        lam=ridge / rows.total,
        sigma=sigma,
        descent=best,
    )


def some(rows: Partition, count: int, seed: int) -> Partition:
    """Return so many of the rows, drawn at random, each in a fold of its own."""
    chosen = np.sort(np.random.default_rng(seed).choice(rows.n, count, replace=False))
    return rows.taken(chosen, np.arange(count + 1))


def stages(rows: Partition, steps: int, seed: int) -> list[tuple[Partition, int]]:
    """Return the rows of each stage of a descent and its steps: most on a part of the rows, and a few on all."""
    return [(some(rows, PART, seed), steps), (rows, POLISH)] if rows.n > 1.5 * PART else [(rows, steps)]


def _power(kernel: Learnable) -> float:
    """Return p where relevances are lengths to the power -p."""
    return 1.0 if getattr(kernel, "statistic", "") == "l1" else 2.0


def _candidates(kernel: Learnable, X: Array, starts: tuple[LearntProfile, ...]) -> list[Any]:
    """Return kernels with relevances where a descent may begin."""
    if kernel.theta is not None:
        return [kernel]
    if not starts:
        equal = kernel.isotropic
        axes = equal.axes(X)
        places = np.linspace(0.0, 1.0, WIDTHS)
        points = [{name: float(axis[round(at * (axis.size - 1))]) for name, axis in axes.items()} for at in places]
        return [kernel.from_isotropic(equal.with_parameters(**point), X.shape[1]) for point in points]
    found = []
    for other in (start.kernel for start in starts):
        lengths = np.maximum(other.theta, np.finfo(float).tiny) ** (-1.0 / _power(other))
        found += [kernel.with_theta(tuple((lengths * factor) ** -_power(kernel))) for factor in NEARBY]
    return found


def _begun(objective: Objective, candidates: list[Any], scale: float) -> list[Array]:
    """Return the points where descents begin: the best candidate; if it has one width, a wider and a narrower one."""
    points = [
        np.append(np.log(np.maximum(candidate.theta, np.finfo(float).tiny)), np.log(ridge * scale))
        for candidate in candidates
        for ridge in RIDGES
    ]
    values = [objective.value(x) for x in points]
    best = points[int(np.argmin(values))]
    if not np.isfinite(min(values)):
        raise SelectionError("relevances can't be learnt: the evidence has no value for any width")
    if len(set(best[:-1])) > 1:
        return [best]
    shift = np.append(np.full(best.size - 1, _power(objective.kernel) * np.log(SPREAD)), 0.0)
    return [best, best - shift, best + shift]
