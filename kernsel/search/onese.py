"""The one-standard-error rule (Breiman, Friedman, Olshen & Stone 1984): the simplest candidate about as good as any."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kernsel.search.candidate import Candidate


def simplest(
    candidates: Iterable[Candidate], best: Candidate, verify: Callable[[Candidate], Candidate]
) -> tuple[Candidate, float]:
    """Return the most regularised candidate within one standard error of the best, and the score that was the limit.

    That is the one with the largest lambda, and of these the widest kernel; its exact score must be within the limit.

    Parameters
    ----------
    candidates : iterable of Candidate
    best : Candidate
        Verified.
    verify : callable
        Returns a candidate with its exact score.
    """
    limit = best.value + (best.score_se or 0.0)
    within = [candidate for candidate in candidates if candidate.failed is None and candidate.value <= limit]
    for candidate in sorted(within, key=lambda candidate: (-candidate.lam, -candidate.width)):
        exact = verify(candidate)
        if exact.failed is None and exact.value <= limit:
            return exact, limit
    return best, limit
