"""A candidate of a selection: what it is, what was found out about it, and how candidates are put in order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kernsel.heldout.errors import mean_over_deals
from kernsel.kernels import Kernel
from kernsel.protocols import Learner, SupportsConversions
from kernsel.types import Array

if TYPE_CHECKING:
    from kernsel.heldout.metrics import MetricValue

Key = tuple[Kernel, Learner, float]

TIE_DIGITS = 6  # scores that agree to so many digits are tied: what differs beyond is far below any standard error


@dataclass(frozen=True, eq=False)
class Candidate:
    """One kernel and one learner with their parameters, one lambda, and what was found out about them.

    Parameters
    ----------
    score : float
        By the criterion; infinite if it failed.
    loss : float
        Mean held-out loss of the learner, which breaks ties.
    error, error_se : float or None
        Held-out misclassification or RMSE, and its standard error over folds.
    reliability : float or None
        Ratio rho of the influence series, where the score is an approximation.
    scored_by : str or None
        The criterion that scored instead of an untrusted one.
    exact : bool
        Whether the score already is that of exact refits.
    failed : str or None
        The reason, if there is no score.
    verified : float or None
        The criterion's value from exact refits.
    score_se : float or None
        Standard error over folds of the score (of ``verified`` where there is one), if it is a mean over rows.
    metrics : mapping of str to MetricValue
        Further figures from exact held-out outputs, for verified candidates.
    refitted : int
        Folds that were refitted, as the criterion's approximation could not be trusted there.
    rank : int or None
        Of the representation that the score is from, if successive halving left the candidate at a lower one than that
        in force.
    terms : mapping of str to float
        What the score is the sum of, such as its ``fit`` and its ``penalty``, if it is a sum.
    norm : float or None
        ``kappa ||f||^2`` of the fit on all rows, summed over outputs; None at a rank below that in force.
    """

    kernel: Kernel
    lam: float
    learner: Learner = field(kw_only=True)
    score: float = math.inf
    loss: float = math.inf
    error: float | None = None
    error_se: float | None = None
    reliability: float | None = None
    scored_by: str | None = None
    exact: bool = False
    failed: str | None = None
    verified: float | None = None
    score_se: float | None = None
    metrics: Mapping[str, MetricValue] = field(default_factory=dict)
    refitted: int = 0
    rank: int | None = None
    terms: Mapping[str, float] = field(default_factory=dict)
    norm: float | None = None

    @property
    def in_force(self) -> bool:
        """Whether the score is from the representation in force."""
        return self.rank is None

    @property
    def compares(self) -> bool:
        """Whether there is a score, and it is from the representation in force: others say nothing beside it."""
        return self.failed is None and self.rank is None

    @property
    def value(self) -> float:
        """The score: the verified one, if there is one."""
        return self.score if self.verified is None else self.verified

    @property
    def width(self) -> float:
        """The kernel's width; 0 if it has none."""
        return float(self.kernel.parameters.get(self.kernel.width or "", 0.0))

    @property
    def tuned(self) -> dict[str, float]:
        """The parameters of the learner, if any of them were searched."""
        return parameters_of(self.learner) if getattr(self.learner, "comparable", False) else {}

    @property
    def key(self) -> Key:
        """What it is a candidate of."""
        return self.kernel, self.learner, self.lam

    def conversions(self, n: float) -> dict[str, float]:
        """Return its parameters in the terms of other libraries, for ``n`` rows (or their summed weights)."""
        learner = self.learner
        of_learner = learner.conversions(n, self.lam) if isinstance(learner, SupportsConversions) else {}
        return {**self.kernel.conversions(), **of_learner}

    @cached_property
    def order(self) -> tuple[float, ...]:
        """Sort key: failures last; then the rank, score, loss, larger lambda, wider kernel and tube."""
        tube = (-value for value in parameters_of(self.learner).values())
        score, rank = _rounded(self.value), math.inf if self.rank is None else self.rank
        return score == math.inf, -rank, score, _rounded(self.loss), -self.lam, -self.width, *tube


def _rounded(value: float) -> float:
    return float(f"{value:.{TIE_DIGITS}g}") if math.isfinite(value) else math.inf


def parameters_of(learner: Learner) -> dict[str, float]:
    """Return the searchable parameters of a learner that have a value; none of one that can't be searched."""
    return dict(getattr(learner, "parameters", {}))


def number_or_none(value: float) -> float | None:
    """Return a value, None for NaN."""
    return None if value != value else value


def averaged(deals: Sequence[Candidate], shares: Array) -> Candidate:
    """Return the mean of one candidate's figures over deals, by their shares; it has failed if it did in any.

    The standard error is averaged as well: more deals of the same rows don't make it smaller.
    """
    first = deals[0]
    if len(deals) == 1:
        return first
    failed = next((each.failed for each in deals if each.failed is not None), None)
    if failed is not None:
        return replace(first, failed=failed, score=math.inf, verified=None if first.verified is None else math.inf)
    means: dict[str, Any] = {
        name: number_or_none(mean_over_deals([getattr(each, name) for each in deals], shares))
        for name in ("score", "score_se", "loss", "error", "error_se", "verified")
        if getattr(first, name) is not None
    }
    metrics = {name: mean_metric([each.metrics[name] for each in deals], shares) for name in first.metrics}
    terms = {name: float(shares @ [each.terms[name] for each in deals]) for name in first.terms}
    ratios = [each.reliability for each in deals if each.reliability is not None]
    return replace(
        first,
        **means,
        reliability=max(ratios, default=None),
        refitted=sum(each.refitted for each in deals),
        scored_by=next((each.scored_by for each in deals if each.scored_by is not None), None),
        exact=all(each.exact for each in deals),
        metrics=metrics,
        terms=terms,
    )


def mean_metric(deals: Sequence[MetricValue], shares: Array) -> MetricValue:
    """Return the mean over deals of a metric and of its standard error; None where the first deal has none.

    That one holds out all rows that any other does.
    """
    value, se = (None if parts[0] is None else mean_over_deals(parts, shares) for parts in zip(*deals, strict=True))
    return type(deals[0])(value, se)
