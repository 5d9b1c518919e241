"""All rows in their parts, and how candidates are scored there: by sums, in two passes over the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernsel.data import Dataset
from kernsel.heldout.errors import Errors
from kernsel.journal import remember
from kernsel.kernels import Kernel
from kernsel.model.sufficient import SufficientStatistics
from kernsel.numerics.blocks import features as streaming
from kernsel.numerics.blocks.costs import SAMPLE
from kernsel.numerics.blocks.features import Features
from kernsel.numerics.blocks.sums import Sums, finish
from kernsel.representation.ranks import LowRank
from kernsel.search.candidate import Candidate
from kernsel.selection.drivers import Driver
from kernsel.selection.parts.work import Facts, HeldOutSums, hold_out_part, same, sum_part

Array = NDArray[np.float64]


class Scored(NamedTuple):
    """A candidate that is scored on all rows, with the sums and features of its fit.

    Parameters
    ----------
    candidate : Candidate
    kept : SufficientStatistics
    features : Features
    """

    candidate: Candidate
    kept: SufficientStatistics
    features: Features


class Passed(NamedTuple):
    """What passes over all rows leave of a kernel with L values of lambda.

    Parameters
    ----------
    whole : Sums
        Over all rows.
    held : HeldOutSums
    failed : (L,) array
        Which fits without a fold there are none of.
    """

    whole: Sums
    held: HeldOutSums
    failed: NDArray[np.bool_]


@dataclass(frozen=True)
class AllRows:
    """All rows in their parts, and what candidates are scored by there.

    Parameters
    ----------
    driver : Driver
    encoded : sequence
        Handles of the encoded parts.
    facts : Facts
    sample : Dataset
        Among whose rows the landmarks are.
    learner : Learner
        Of the square loss.
    rank : LowRank
    seed, folds : int
    limits : (2, k) array or None
        Within which outputs are kept.
    """

    driver: Driver
    encoded: Sequence[Any]
    facts: Facts
    sample: Dataset
    learner: Any
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
        given = kernel, points, T, lams, self.seed, self.folds, self.limits, self.facts, bias
        known = remember("scored on all rows", given, lambda: self._pass_twice(kernel, features, lams))
        w, status = streaming.solve(*known.whole.finish(bias), int(bias), known.whole.total * lams)
        norms = known.held.kappa * (w[..., : features.rank] ** 2).sum(axis=(0, 2))
        failed = known.failed | (status != 0)
        means, deviations = known.held.sums.loss.mean, known.held.sums.loss.deviation()
        scored = []
        for k, candidate in enumerate(self._candidates(kernel, lams, known.held, failed, norms)):
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
            scored.append(Scored(candidate, kept, features))
        return scored

    def _pass_twice(self, kernel: Kernel, features: Features, lams: Array) -> Passed:
        """Sum up the products of features, and from these the losses of the fits without each fold."""
        driver, bias, r = self.driver, bool(self.learner.bias), features.rank
        shared = driver.share(same, features)
        sums: Sums = driver.reduce(sum_part, self.encoded, Sums.merge, shared)
        finish(features, sums)
        whole = sums.of(np.ones(self.folds, np.bool_))
        w, failed = _without_folds(sums, whole, lams, bias)
        b = w[..., r] if w.shape[-1] > r else np.zeros(w.shape[:-1])
        given = driver.share(same, w[..., :r]), b, self.limits, Errors.of(self.sample), self.facts.counts
        held: HeldOutSums = driver.reduce(hold_out_part, self.encoded, HeldOutSums.merge, shared, kernel, *given)
        return Passed(whole, held, failed)

    def _candidates(
        self, kernel: Kernel, lams: Array, held: HeldOutSums, failed: NDArray[np.bool_], norms: Array
    ) -> list[Candidate]:
        """Return the values of lambda as candidates with exact scores."""
        mean, score_ses, errors, error_ses = held.sums.figures(Errors.of(self.sample), self.facts.counts)
        found = []
        for k, lam in enumerate(lams.tolist()):
            candidate = Candidate(kernel, lam, learner=self.learner, exact=True, failed="the ridge is below rounding")
            if not failed[k] and np.isfinite(mean[k]):
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


def _without_folds(sums: Sums, whole: Sums, lams: Array, bias: bool) -> tuple[Array, NDArray[np.bool_]]:
    """Return the weights (t, k, L, R) of the fits without each fold, and which lambda failed, (L,)."""
    found, failed = [], np.zeros(lams.size, np.bool_)
    for fold in range(len(sums.products)):
        kept = whole.without(sums.part(fold))
        w, status = streaming.solve(*kept.finish(bias), int(bias), kept.total * lams)
        found.append(w)
        failed |= status != 0
    return np.stack(found), failed
