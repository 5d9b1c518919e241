"""The rule of choice: which candidate to take among those whose scores can't be told apart.

The minimiser of cross-validation is the best of many noisy scores. Along a flat valley it often lies where ``||f||`` is
enormous, and there a row unlike the others gets an absurd output. With ``kappa = max_x k(x, x)`` every output obeys
``|f(x)| <= sqrt(kappa) ||f||``, so that among equals the candidate of least ``kappa ||f||^2`` is the safest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kernsel.criteria.base import Criterion
from kernsel.errors import OptionError
from kernsel.search.candidate import Candidate

SAFEST, MINIMUM, ONE_SE = RULES = ("safest", "minimum", "one-se")

WITHIN = {"regression": 0.2, "classification": 0.5}
"""Standard errors of the best score within which ``safest`` looks. Squared errors of one row are much the same for all
candidates, so that their differences are known far better than either; mistakes are few, and known much worse."""

BY_METRIC = 1.0
"""Standard errors of the best score within which a metric decides. On two tables of 300 rows more candidates than are
verified lay within half of one already, so that half, one and two chose the same."""

MOST = 30
"""Candidates that are verified for the rule at the most."""


@dataclass(frozen=True)
class Rule:
    """How to choose among candidates whose scores are within some standard errors of the lowest.

    Parameters
    ----------
    name : {"safest", "minimum", "one-se"}
        The least held-out error (of classes), then the least ``kappa ||f||^2``; the lowest score itself; or the largest
        lambda, then the widest kernel (Breiman, Friedman, Olshen & Stone 1984).
    within : float
        How many standard errors of the lowest score the others may be above it.
    errors : bool
        Whether ``safest`` looks at held-out errors first: of classes, unless the criterion has a measure of its own.
    null : float
        The score of outputs that are all 0. What can't be told apart by its standard error may still be told by what it
        gains on that: an outlier that no candidate predicts widens the standard error of all.
    metric : str or None
        A metric of exact held-out outputs that ``safest`` takes the highest of, before anything else.
    """

    name: str
    within: float
    errors: bool = False
    null: float = math.inf
    metric: str | None = None

    @classmethod
    def read(
        cls, choose: str | None, within: float | None, task: str, criterion: Criterion, metric: str | None = None
    ) -> Rule:
        """Return the rule of an option; OptionError if there is none such."""
        name = choose or SAFEST
        if name not in RULES:
            raise OptionError(f"choose {choose!r} is unknown: use {', '.join(RULES)}")
        if metric is not None and name != SAFEST:
            raise OptionError(f"choose {name!r} and select_by {metric!r}: each says what decides; give one of them")
        if name == MINIMUM:
            if within is not None:
                raise OptionError(f"within {within}: the minimum is the minimum; use it with choose safest or one-se")
            return cls(name, 0.0)
        if within is None:
            within = BY_METRIC if metric is not None else WITHIN[task] if name == SAFEST else 1.0
        if isinstance(within, bool) or not isinstance(within, int | float) or not 0 <= within < math.inf:
            raise OptionError(f"within is a number of standard errors, at least 0, not {within!r}")
        errors = task == "classification" and not hasattr(criterion, "measure")
        return cls(name, float(within), errors, metric=metric)

    def limit(self, lowest: Candidate) -> float:
        """Return the score up to which a candidate can't be told from the one with the lowest."""
        spread, gain = lowest.score_se or 0.0, self.null - lowest.value
        return lowest.value + self.within * (min(spread, gain) if gain > 0 and self.name == SAFEST else spread)

    def tied(self, candidates: Iterable[Candidate], limit: float) -> list[Candidate]:
        """Return the candidates at the representation in force within a limit, the one to take first."""
        among = [c for c in candidates if c.compares and c.value <= limit]
        return sorted(among, key=self._key)

    def first(self, candidates: list[Candidate]) -> Candidate:
        """Return the candidate to take by the scores alone, for a list that is sorted by these.

        Where none at all can be told from the best, the scores say nothing yet: that is the best itself.
        """
        tied = self.tied(candidates, self.limit(candidates[0]))
        usable = sum(c.compares for c in candidates)
        return tied[0] if 0 < len(tied) < usable else candidates[0]

    def among_equals(self, candidate: Candidate) -> tuple[float, ...]:
        """Return the sort key of a candidate among those of equal scores and errors."""
        if self.name == ONE_SE:
            return -candidate.lam, -candidate.width
        if self.name == MINIMUM:
            return candidate.order
        return math.inf if candidate.norm is None else candidate.norm, *candidate.order

    def value(self, candidate: Candidate) -> float:
        """Return what decides between verified candidates, the less the better: the score, or the metric's negative."""
        if self.metric is None:
            return candidate.value
        found = candidate.metrics[self.metric].value
        return math.inf if found is None else -found

    def _key(self, candidate: Candidate) -> tuple[float, ...]:
        if self.metric is not None:  # what isn't verified comes first, and is verified then
            known = self.metric in candidate.metrics
            return (self.value(candidate), *self.among_equals(candidate)) if known else (-math.inf, *candidate.order)
        error = candidate.error if self.name == SAFEST and self.errors and candidate.error is not None else 0.0
        return error, *self.among_equals(candidate)


@dataclass(frozen=True)
class Choice:
    """What a rule chose.

    Parameters
    ----------
    lowest : Candidate
        The one with the lowest exact score.
    limit : float
        The score up to which candidates were looked at.
    tied : int
        How many there were within it.
    """

    best: Candidate
    lowest: Candidate
    limit: float
    tied: int


def choose(rule: Rule, candidates: list[Candidate], verify: Callable[[Candidate], Candidate], most: int) -> Choice:
    """Choose by exact scores: those within the limit are verified in the order of the rule, until one stays first.

    Parameters
    ----------
    candidates : list of Candidate
        Sorted; with exact scores where these are known.
    verify : callable
        Returns a candidate with its exact score; one that can't be verified has failed.
    most : int
        How many may be verified here; after these the choice is among those whose exact score is known.
    """
    known = {c.key: c for c in candidates}
    exact = {c.key for c in candidates if c.verified is not None}
    while True:
        sure = [known[key] for key in exact if known[key].failed is None] or candidates
        lowest = min(sure, key=lambda c: c.order)
        limit = rule.limit(lowest)
        tied = rule.tied(sure if rule.name == MINIMUM or most <= 0 else known.values(), limit) or [lowest]
        first = tied[0].key
        if most <= 0 or rule.name == MINIMUM or first in exact:
            return Choice(tied[0], lowest, limit, len(tied))
        known[first] = verify(tied[0])
        exact.add(first)
        most -= 1
