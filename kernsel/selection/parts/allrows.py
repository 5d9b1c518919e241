"""All rows in their parts, and how candidates are scored there: by sums, in two passes over the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from kernsel.data import Dataset
from kernsel.heldout.errors import Errors
from kernsel.journal import remember
from kernsel.kernels import Kernel
from kernsel.model.sufficient import Expanded, SufficientStatistics
from kernsel.numerics.blocks import features as streaming
from kernsel.numerics.blocks.costs import SAMPLE
from kernsel.numerics.blocks.features import Features
from kernsel.numerics.blocks.passes import Descent, PassSums, Request
from kernsel.numerics.blocks.sums import Sums, finish
from kernsel.numerics.smooth.convergence import CONVERGED, NOT_FINITE, REASONS
from kernsel.protocols import Learner
from kernsel.representation.ranks import LowRank
from kernsel.search.candidate import Candidate
from kernsel.selection.drivers import Driver
from kernsel.selection.parts.work import Facts, HeldOutSums, hold_out_part, pass_part, same, sum_part
from kernsel.types import Array, Indices


class Scored(NamedTuple):
    """A candidate that is scored on all rows, with the sums and features of its fit.

    Parameters
    ----------
    kept : SufficientStatistics or None
        Of the square loss.
    null : float
        The loss of outputs that are 0.
    """

    candidate: Candidate
    kept: SufficientStatistics | None
    features: Features
    fit: Expanded
    null: float


class Passed(NamedTuple):
    """What passes over all rows leave of a kernel with L values of lambda.

    Parameters
    ----------
    whole : Sums or None
        Over all rows, of the square loss.
    w : (k, L, R) array
        Weights of the features, a bias last.
    status : (L,) array
        The worst of the fits to all rows and those without a fold.
    """

    whole: Sums | None
    w: Array
    held: HeldOutSums
    status: Indices


@dataclass(frozen=True)
class AllRows:
    """All rows in their parts, and what candidates are scored by there.

    Parameters
    ----------
    encoded : sequence
        Handles of the encoded parts.
    sample : Dataset
        Among whose rows the landmarks are.
    limits : (2, k) array or None
        Within which outputs are kept.
    """

    driver: Driver
    encoded: Sequence[Any]
    facts: Facts
    sample: Dataset
    learner: Learner
    rank: LowRank
    seed: int
    folds: int
    limits: Array | None

    def score(self, kernel: Kernel, lams: Array, weighted: bool) -> list[Scored]:
        """Score a kernel with values of lambda by exact refits without each fold, in two passes over the rows."""
        bias = bool(self.learner.bias)
        rows = self.sample.X[: SAMPLE * self.rank.largest]
        _, points, T, _ = self.rank.factor(kernel, rows, self.seed)
        features = Features(kernel, points, T, rows)
        given = kernel, points, T, lams, self.seed, self.folds, self.limits, self.facts, self.learner
        known = remember("scored on all rows", given, lambda: self._pass_over(kernel, features, lams))
        means, deviations = known.held.sums.loss.mean, known.held.sums.loss.deviation()
        null, scored = known.held.null / self.facts.weight, []
        for k, candidate in enumerate(self._candidates(kernel, lams, known, features.rank)):
            if known.whole is None:
                w = known.w[:, k]
                fit = Expanded(w[:, : len(T)] @ T.T, w[:, len(T)] if bias else np.zeros(len(w)))
                scored.append(Scored(candidate, None, features, fit, null))
                continue
            kept = SufficientStatistics(
                T=T,
                sums=known.whole,
                bias=bias,
                lam=candidate.lam,
                loss=float(means[k]),
                deviation=float(deviations[k]),
                held=self.facts.rows,
                weighted=weighted,
            )
            scored.append(Scored(candidate, kept, features, kept.expansion(), null))
        return scored

    def _pass_over(self, kernel: Kernel, features: Features, lams: Array) -> Passed:
        """Fit to all rows and without each fold, and sum up the losses of the folds."""
        driver, r = self.driver, features.rank
        shared, whole = driver.share(same, features), None
        if self.learner.loss.square:
            whole, w, without, status = self._by_sums(features, shared, lams)
        else:
            w, without, status = self._by_passes(features, shared, lams)
        b = without[..., r] if without.shape[-1] > r else np.zeros(without.shape[:-1])
        given = driver.share(same, without[..., :r]), b, self.limits, Errors.of(self.sample), self.facts.counts
        what = shared, kernel, self.learner
        held: HeldOutSums = driver.reduce(hold_out_part, self.encoded, HeldOutSums.merge, *what, *given)
        return Passed(whole, w, held, status)

    def _by_sums(self, features: Features, shared: object, lams: Array) -> tuple[Sums, Array, Array, Indices]:
        """Return the sums over all rows, and what is made of them: weights of the fits to all, and without folds."""
        bias = bool(self.learner.bias)
        sums: Sums = self.driver.reduce(sum_part, self.encoded, Sums.merge, shared)
        finish(features, sums)
        whole = sums.of(np.ones(self.folds, np.bool_))
        without, status = _without_folds(sums, whole, lams, bias)
        w, own = streaming.solve(*whole.finish(bias), int(bias), whole.total * lams)
        return whole, w, without, np.maximum(status, own)

    def _by_passes(self, features: Features, shared: object, lams: Array) -> tuple[Array, Array, Indices]:
        """Return the weights of the fits to all rows, and without folds, by Newton's method."""

        def add_up(request: Request) -> PassSums:
            asked = self.driver.share(same, request)
            found: PassSums = self.driver.reduce(pass_part, self.encoded, PassSums.merge, shared, self.learner, asked)
            return found

        descent = Descent(features, int(self.learner.bias), add_up)
        return descent.with_folds(lams, len(self.sample.Y), self.facts.weights)

    def _candidates(self, kernel: Kernel, lams: Array, known: Passed, r: int) -> list[Candidate]:
        """Return the values of lambda as candidates with exact scores."""
        held = known.held
        norms = held.kappa * (known.w[..., :r] ** 2).sum(axis=(0, 2))
        mean, score_ses, errors, error_ses = held.sums.figures(Errors.of(self.sample), self.facts.counts)
        found = []
        for k, lam in enumerate(lams.tolist()):
            status = int(known.status[k])
            reason = REASONS.get(status, REASONS[NOT_FINITE])
            if self.learner.loss.square:
                reason = "the ridge is below rounding"
            candidate = Candidate(kernel, lam, learner=self.learner, exact=True, failed=reason)
            if status == CONVERGED and np.isfinite(mean[k]):
                candidate = replace(
                    candidate,
                    failed=None,
                    score=float(mean[k]),
                    loss=float(mean[k]),
                    verified=float(mean[k]),
                    score_se=float(score_ses[k]),
                    error=float(errors[k]),
                    error_se=float(error_ses[k]),
                    norm=float(norms[k]),
                )
            found.append(candidate)
        return found


def _without_folds(sums: Sums, whole: Sums, lams: Array, bias: bool) -> tuple[Array, Indices]:
    """Return the weights (t, k, L, R) of the fits without each fold, and the worst status of each lambda, (L,)."""
    found, worst = [], np.zeros(lams.size, np.int64)
    for fold in range(len(sums.products)):
        kept = whole.without(sums.part(fold))
        w, status = streaming.solve(*kept.finish(bias), int(bias), kept.total * lams)
        found.append(w)
        worst = np.maximum(worst, status)
    return np.stack(found), worst
