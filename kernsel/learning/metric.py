"""Learn a metric that turns axes, by the average outer product of the gradients of a fit.

A fit f with the metric M says by its gradients along which directions the target changes; their average outer product
is the next metric::

    M <- (sum_i s_i grad f(x_i) grad f(x_i)' / sum_i s_i)^p        p = 1 for the Gaussian, 1/2 for rougher profiles

and a few rounds settle on it (Radhakrishnan, Beaglehole, Pandit & Belkin 2024, recursive feature machines). Scale and
ridge of each round are those of the least exact leave-one-out loss, and so is the round that is kept. Scales are said
by the mean of r^2 over all pairs of rows, and ridges by ``N lambda``, so that the rounds can be gone through again on
other rows with what was found on these: a round then is one fit. That is how a metric is learnt on many rows from the
rounds of a few, and anew without rows that are held out. A metric of few directions is polished by the evidence then.

Leave-one-out over-rates a metric of so many numbers; :func:`turned` learns one on a part of the rows, and says by the
others whether it is any better than another kernel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from kernsel.data.target import chosen_classes, class_codes
from kernsel.errors import SelectionError
from kernsel.folds.partition import Partition
from kernsel.kernels import Kernel, Metric
from kernsel.learning.fits import fit_ridges, is_less, outputs_at, score_ridges
from kernsel.learning.polish import polish
from kernsel.numerics.runtime.threads import share_each
from kernsel.paths import Path
from kernsel.protocols import Learner
from kernsel.types import Array

ROUNDS = 5
"""Metrics that are learnt one after the other; on more rounds little changes."""

SPREADS = np.geomspace(0.02, 8.0, 6)
"""Means of r^2 that the first round tries: a rough kernel wants to be wide, a smooth one isn't far from 1."""

NEARBY = np.array([0.5, 1.0, 2.0])
"""Factors of the last scale that each further round tries."""

RIDGES = np.geomspace(1e-4, 100.0, 13)
"""Values of ``N lambda``; k(x, x) is 1."""

SHARE, LARGEST = 1e-3, 30
"""Directions of less than this share of the largest eigenvalue are left out, and so are those beyond so many."""

GAIN = 0.02
"""Of its loss, that the first three rounds, and each one after them, must gain, or there is no use in others."""

NEAR = 1.2
"""Times the loss of another kernel, that all rounds must come to for a polish."""

HOPE = 1.05
"""Times the same loss, that the first two rounds must come to: later ones lower it by some per cent at the most where
it isn't below that."""

CLEAR = 2.0
"""Standard errors by which a metric must be better than another kernel on rows that it wasn't learnt on."""

POLISHED = 0.2
"""A metric is polished if its entries are at most this many times the rows."""


class Round(NamedTuple):
    """A fit on the way to a metric.

    Parameters
    ----------
    spread : float
        Mean of r^2 over all pairs of rows.
    ridge : float
        ``N lambda``.
    """

    spread: float
    ridge: float


@dataclass(frozen=True, eq=False)
class LearntMetric:
    """A metric that was learnt by average gradients.

    Parameters
    ----------
    rounds : tuple of Round
        The fits that led to it, and last the one with it.
    loss : float
        Mean leave-one-out loss of the last one on the rows it was learnt on.
    polished : bool
        Whether the evidence has been made larger after the rounds.
    """

    kernel: Metric
    rounds: tuple[Round, ...]
    loss: float
    polished: bool = False

    @property
    def ridge(self) -> float:
        """``N lambda`` of the fit with the metric."""
        return self.rounds[-1].ridge

    @property
    def theta(self) -> tuple[float, ...]:
        """The relevance of each feature alone, (d,): the diagonal of ``L L'``."""
        return self.kernel.relevances

    @property
    def learnt_by(self) -> str:
        """The way that the metric was learnt, in words."""
        return "average gradients"

    def anew(self, rows: Partition, learner: Learner) -> Metric:
        """Return the metric that the same rounds, with their scales and ridges, learn on other rows."""
        L = np.eye(rows.X.shape[1])
        for at in self.rounds[:-1]:
            kernel = scale_to_spread(rows, L, at.spread, self.kernel.profile)
            L = average_gradients(fit_ridges(rows, kernel, learner, [at.ridge]), 0)
        kernel = scale_to_spread(rows, L, self.rounds[-1].spread, self.kernel.profile)
        return polish(rows, kernel, learner, self.ridge) if self.polished else kernel


def learn_metric(
    rows: Partition,
    learner: Learner,
    profile: str = "gaussian",
    rounds: int = ROUNDS,
    bound: float = math.inf,
    gain: float = GAIN,
) -> LearntMetric:
    """Learn a metric, beginning with that of the features as they are.

    Parameters
    ----------
    rows : Partition
        A few hundred, each in a fold of its own: a round has some spectra, O(n^3) each.
    learner : Learner
        Of the square loss.
    profile : str
        Of the kernel, see ``Metric``.
    rounds : int
        At the most.
    bound : float
        Loss that another kernel has: where two rounds don't come near there are no others.
    gain : float
        Share of its loss that each round from the third on must gain.

    Raises
    ------
    SelectionError
        There is no fit, or none with gradients.
    """
    L, spreads = np.eye(rows.X.shape[1]), SPREADS
    done: list[Round] = []
    found: list[LearntMetric] = []
    for number in range(rounds + 1):
        fits = []
        for spread in spreads:
            kernel = scale_to_spread(rows, L, spread, profile)
            path, losses = score_ridges(rows, kernel, learner, RIDGES)
            best = int(np.argmin(losses))
            fits.append((losses[best], float(spread), path, best))
        loss, spread, path, best = min(fits, key=lambda fit: fit[0])
        if not math.isfinite(loss):
            raise SelectionError("a metric can't be learnt: no fit has held-out outputs")
        done.append(Round(spread, float(path.lams[best] * rows.total)))
        found.append(LearntMetric(path.problem.kernel, tuple(done), loss))
        least = min(each.loss for each in found)
        before = found[0].loss if number == 3 else min((each.loss for each in found[:-1]), default=math.inf)
        if (number == 2 and least > HOPE * bound) or (number > 2 and least > (1 - gain) * before):
            break
        if number == rounds:
            break
        L, spreads = average_gradients(path, best), spread * NEARBY
    return min(found, key=lambda each: each.loss)


def turned(
    rows: Partition,
    kernel: Kernel,
    learner: Learner,
    profiles: Sequence[str],
    part: int,
    seed: int = 0,
    classes: bool = False,
) -> LearntMetric | None:
    """Return a metric that was learnt on the rows; None where it isn't better than a kernel.

    It is learnt on a part of the rows first. The others, which have no part in it, are predicted by that fit and by one
    of the kernel on the same rows: the mean of their squared residuals must be less by more than two standard errors
    of the difference. The kernel's relevances may have seen all rows, which only makes it harder.

    Parameters
    ----------
    rows : Partition
        Each in a fold of its own.
    kernel : Kernel
        To be better than.
    learner : Learner
        Of the square loss.
    profiles : sequence of str
        Of those that are better, the one of the least leave-one-out loss on all rows is taken.
    part : int
        Rows that are learnt on at first; at most two thirds of them.
    seed : int
        Of the choice of these.
    classes : bool
        Of classes fewer must be wrong, too, by more than a standard error: a metric brings outputs nearer to -1 and 1
        than it moves them over to the right side.

    Raises
    ------
    SelectionError
        There is no fit on the part of the rows.
    """
    count = min(part, 2 * rows.n // 3)
    shuffled = np.random.default_rng(seed).permutation(rows.n)
    some, others = np.sort(shuffled[:count]), np.sort(shuffled[count:])
    few = rows.taken(some, np.arange(count + 1))
    path, losses = score_ridges(few, kernel, learner, RIDGES)
    bound, best = min(losses), int(np.argmin(losses))
    X, Y, s = rows.X[others], np.ascontiguousarray(rows.Y[:, others]), rows.s[others]

    def residuals_of(fit: Path, k: int) -> tuple[Array, Array]:
        """Return squared residuals (m,), and which rows are given a wrong class."""
        F = few.clipped(outputs_at(fit, k, X))
        return np.asarray(learner.loss.value(Y, F).mean(axis=0)), chosen_classes(F) != class_codes(Y)

    theirs = residuals_of(path, best)

    def learnt(profile: str) -> LearntMetric | None:
        found = learn_metric(few, learner, profile, bound=bound)
        if found.loss < NEAR * bound:
            found = polish_if_better(few, found, learner)
        if not found.loss < bound:
            return None
        fit, each = score_ridges(few, found.kernel, learner, RIDGES)
        own = residuals_of(fit, int(np.argmin(each)))
        if not is_less(own[0], theirs[0], s, CLEAR) or (classes and not is_less(own[1], theirs[1], s)):
            return None
        whole = replace(found, polished=False).anew(rows, learner)
        loss = min(score_ridges(rows, whole, learner, RIDGES)[1])
        return polish_if_better(rows, replace(found, kernel=whole, loss=loss, polished=False), learner)

    better = [found for found in share_each(learnt, profiles) if found is not None]
    return min(better, key=lambda each: each.loss, default=None)


def polish_if_better(rows: Partition, found: LearntMetric, learner: Learner, entries: float = POLISHED) -> LearntMetric:
    """Return a metric polished, if it has few entries for each row and leave-one-out has nothing against it."""
    if found.kernel.array.size > entries * rows.n:
        return found
    kernel = polish(rows, found.kernel, learner, found.ridge)
    loss = min(score_ridges(rows, kernel, learner, RIDGES)[1])
    return replace(found, kernel=kernel, loss=loss, polished=True) if loss < found.loss else found


def scale_to_spread(rows: Partition, L: Array, spread: float, profile: str) -> Metric:
    """Return the kernel of a multiple of a metric, with a mean of r^2 over the pairs of rows."""
    U = rows.X @ L
    mean = 2.0 * float(U.var(axis=0).sum())
    if not mean > 0:
        raise SelectionError("a metric can't be learnt: the fit doesn't depend on any feature")
    return Metric.of(L * math.sqrt(spread / mean), profile)


def average_gradients(path: Path, k: int, share: float = SHARE) -> Array:
    """Return L of the metric that the gradients of a fit give, to a factor, without directions of less than a share."""
    kernel, rows = path.problem.kernel, path.rows
    products = np.zeros((rows.X.shape[1],) * 2)
    for a in path.coefficients(k):
        G = kernel.function_gradients(rows.X, a, K=path.problem.gram)
        products += G.T @ (rows.s[:, None] * G)
    values, vectors = np.linalg.eigh(products)
    if not values[-1] > 0:
        raise SelectionError("a metric can't be learnt: the fit doesn't depend on any feature")
    values = np.maximum(values / values[-1], 0.0) ** (1.0 if kernel.profile == "gaussian" else 0.5)
    kept = np.flatnonzero(values > share)[-LARGEST:]
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))
