"""Kernels that were learnt on rows which folds hold out: the choice among them by kernels that haven't seen those."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, cast

from kernsel.criteria import HeldOutCriterion
from kernsel.errors import SelectionError
from kernsel.folds.partition import Partition
from kernsel.heldout.standard_error import standard_error
from kernsel.kernels import Kernel
from kernsel.representation.ranks import Rank
from kernsel.search.board import Board
from kernsel.search.candidate import Candidate
from kernsel.search.choice import MOST, Rule, choose
from kernsel.selection.heldout_choice import refit
from kernsel.types import Array

DOUBT = {1: 1.0}
"""By how many standard errors of the difference a candidate for which less was learnt has to be better, by how much was
learnt for the choice. Relevances have a prior that holds them to one width where rows say nothing; a metric has none.
With it the test error was lower on 4 of 27 tables of 145 to 200 rows and never higher, lower on 1 of 22 of 100 rows and
higher on 4, the same on the others; on mpg, 274 rows, eight draws, it was 6 % lower."""


class Unseen(Protocol):
    """Predicts held-out rows by kernels that haven't seen them."""

    def has_seen(self, kernel: Kernel, n: int) -> bool:
        """Tell whether a kernel was learnt on rows that are held out."""

    def freedom(self, kernel: Kernel) -> int:
        """Return how much was learnt for a kernel; 0 if nothing was."""

    def outputs(self, candidate: Candidate, rows: Partition, rank: Rank) -> Array:
        """Return held-out outputs (k, n) of a candidate whose kernel is learnt anew without each fold."""


@dataclass(frozen=True, eq=False)
class Reranked:
    """Candidates, the choice first, after those that have seen held-out rows were compared where they haven't.

    Parameters
    ----------
    outputs : (k, n) array or None
        Held-out outputs of a choice that has seen the rows, by kernels that were learnt without them.
    notes : list of str
    """

    candidates: list[Candidate]
    outputs: Array | None = None
    notes: Sequence[str] = ()


def rerank(unseen: Unseen | None, candidates: list[Candidate], board: Board, rule: Rule) -> Reranked:
    """Keep a choice whose kernel has seen the held-out rows only if it is the best where it hasn't, too.

    It is compared with the best candidate of each kind for which less was learnt, where these haven't seen them either.

    Parameters
    ----------
    unseen : Unseen or None
        None where nothing was learnt.
    candidates : list of Candidate
        The choice first.
    board : Board
        Of a criterion that is a mean over held-out rows.
    """
    best = candidates[0]
    if unseen is None or not unseen.has_seen(best.kernel, board.rows.n):
        return Reranked(candidates)
    kinds: dict[int, list[Candidate]] = {}
    for each in candidates:
        if each.failed is None:
            kinds.setdefault(unseen.freedom(each.kernel), []).append(each)
    most = unseen.freedom(best.kernel)
    first = found = _score_unseen(unseen, best, board, rule)
    for kind in sorted((kind for kind in kinds if kind < most), reverse=True):
        other = choose(rule, kinds[kind], lambda c: board.verified([c])[0], MOST).best
        if rule.value(other) < found.value:  # what has seen the rows has no less where it hasn't
            theirs = _score_unseen(unseen, other, board, rule)
            if theirs.value < found.value - _doubt(found, theirs, unseen.freedom(best.kernel), board):
                best, found = other, theirs
    outputs = found.outputs if unseen.freedom(best.kernel) else None
    if best.key == candidates[0].key:
        return Reranked(candidates, outputs)
    note = (
        f"kernel: {candidates[0].kernel.name} passed over, as its score by what is learnt without the rows held out is "
        f"{first.value:.4g}; that of {best.kernel.name} is {found.value:.4g}"
    )
    return Reranked([best, *(c for c in candidates if c.key != best.key)], outputs, [note])


class _Score(NamedTuple):
    """What decides of a candidate where its kernel hasn't seen the rows.

    Parameters
    ----------
    value : float
        Infinity if it can't be learnt there.
    losses : (n,) array or None
        Of the rows, if the value is their mean.
    outputs : (k, n) array or None
        Held-out outputs, none of them clipped.
    """

    value: float
    losses: Array | None = None
    outputs: Array | None = None


def _doubt(found: _Score, theirs: _Score, freedom: int, board: Board) -> float:
    """Return what a score has to be lower than another one by, to count."""
    if freedom not in DOUBT or found.losses is None or theirs.losses is None:
        return 0.0
    rows = board.rows
    return DOUBT[freedom] * float(standard_error(found.losses - theirs.losses, rows.starts, rows.s))


def _score_unseen(unseen: Unseen, candidate: Candidate, board: Board, rule: Rule) -> _Score:
    """Return what decides of a candidate where its kernel hasn't seen the rows."""
    path, criterion = refit(candidate, board.rows, board), cast(HeldOutCriterion, board.criterion)
    try:
        if unseen.freedom(candidate.kernel):
            outputs = unseen.outputs(candidate, board.rows, board.rank)
        else:
            outputs = path.exact([path.lams.size - 1]).f[:, 0]
        F = board.rows.clipped(outputs)
        if board.metrics is not None and rule.metric is not None:
            figures = board.metrics.evaluate(board.rows, F)
            return _Score(rule.value(replace(candidate, metrics=figures)), None, outputs)
        losses = criterion.values(path, F)
        return _Score(float(board.rows.mean(losses)), losses, outputs)
    except SelectionError:
        return _Score(math.inf)
