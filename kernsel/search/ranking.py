"""Verification: the leading candidates are scored again by exact refits, and the rule of choice takes one of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from kernsel.kernels import Kernel
from kernsel.protocols import Learner
from kernsel.search.board import Board
from kernsel.search.candidate import Candidate, Key
from kernsel.search.certificate import Proof
from kernsel.search.choice import MOST, Choice, choose
from kernsel.search.deadline import Deadline
from kernsel.search.faults import contained
from kernsel.search.walk import Walk


@dataclass(frozen=True)
class Ranking:
    """What verification found.

    Parameters
    ----------
    candidates : list of Candidate
        The choice, the other verified ones by their exact scores, the others by their scores, the failed last.
    overturned : Candidate or None
        The verified candidate that the criterion had put first, if another one has a lower exact score.
    verified : int
        How many candidates were verified.
    """

    candidates: list[Candidate]
    choice: Choice
    overturned: Candidate | None
    verified: int

    @property
    def best(self) -> Candidate:
        """The choice."""
        return self.choice.best


def rank(search: Walk, leaders: int, comparable: bool, until: Deadline, proof: Proof | None = None) -> Ranking:
    """Verify the leading candidates of a search, go on while that overturns their order, and choose.

    Parameters
    ----------
    search : Walk
        Run already; it goes on around the choice.
    leaders : int
        How many candidates are verified at a time; with 0 none is.
    comparable : bool
        Whether scores and exact scores are of one kind: means over held-out rows.
    until : Deadline
        When there is no time left to go on around the choice.
    proof : Proof, optional
        That no exact score is much below the lowest: what it finds is verified as well.
    """
    board, checked = search.board, dict[Key, Candidate]()

    def check(candidates: list[Candidate]) -> bool:
        """Verify those that are not; say whether none of them failed, so that no other moves up."""
        new = [c for c in candidates if c.key not in checked]
        groups: dict[tuple[Kernel, Learner], list[Candidate]] = {}
        for candidate in new:
            groups.setdefault((candidate.kernel, candidate.learner), []).append(candidate)
        verdicts = [c for group in groups.values() for c in _verified(board, group)]
        checked.update({c.key: c for c in verdicts})
        failed = {c.key: c for c in verdicts if c.failed is not None}
        board.found.update(failed)
        return not failed

    while True:
        first = _verify_leaders(search, check, checked, leaders)
        choice = _choose(search, check, checked, leaders, comparable)
        # The choice may have better neighbours, or lie on an edge, as well.
        if until.left and search.explore(choice.best):
            continue
        lowest = None if proof is None else proof.run()
        if lowest is None or not leaders or lowest.key in checked:
            break
        check([lowest])
    found = [checked.get(c.key, c) for c in board.candidates()]
    verified = sorted((c for c in found if c.key in checked), key=lambda c: c.order)
    others = [c for c in found if c.key not in checked]
    ordered = [choice.best, *(c for c in [*verified, *others] if c.key != choice.best.key)]
    leader = None if first is None else checked[first.key]
    overturned = leader if leader is not None and choice.lowest.key != leader.key else None
    return Ranking(sorted(ordered, key=lambda c: c.failed is not None), choice, overturned, len(checked))


def _verified(board: Board, candidates: list[Candidate]) -> list[Candidate]:
    """Verify candidates of one kernel and learner, together or else one by one: what can't be verified has failed."""

    def failed(reason: str) -> list[Candidate]:
        if len(candidates) > 1:
            return [c for each in candidates for c in _verified(board, [each])]
        return [replace(candidates[0], verified=math.inf, failed=f"not verified: {reason}")]

    first = candidates[0]
    parts = board.criterion, first.kernel, first.learner
    return contained(lambda: board.verified(candidates), failed, *parts, within=board.timeout)


def _verify_leaders(
    search: Walk, check: Callable[[list[Candidate]], bool], checked: dict[Key, Candidate], leaders: int
) -> Candidate | None:
    """Verify leading candidates, as many more each time that one of the last has the lowest exact score.

    Returns the first of them by the criterion.
    """
    count = leaders
    while True:
        leading = [c for c in search.board.candidates()[:count] if c.failed is None]
        if search.board.score_in_force(leading):  # the order is another one now
            continue
        if not check(leading):
            continue
        if not leading:
            return None
        lowest = min(leading, key=lambda c: checked[c.key].order)
        earlier = leading[: max(count - leaders, 1)]
        if any(c.key == lowest.key for c in earlier) or len(leading) < count or count >= MOST:
            return leading[0]
        count += leaders


def _choose(
    search: Walk,
    check: Callable[[list[Candidate]], bool],
    checked: dict[Key, Candidate],
    leaders: int,
    comparable: bool,
) -> Choice:
    """Apply the rule of choice to exact scores, and where scores are of their kind, to what else may be within it."""

    def exact(candidate: Candidate) -> Candidate:
        check([candidate])
        return checked[candidate.key]

    found = search.board.candidates()
    if checked and not comparable:
        found = [c for c in found if c.key in checked]
    if search.rule.metric is not None and checked:  # all that it compares: those of one kernel share its fits
        lowest = min(checked.values(), key=lambda c: c.order)
        unknown = [c for c in search.rule.tied(found, search.rule.limit(lowest)) if c.key not in checked]
        check(unknown[: MOST - len(checked)])
    return choose(search.rule, [checked.get(c.key, c) for c in found], exact, MOST - len(checked) if leaders else 0)
