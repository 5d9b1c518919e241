"""The error of the whole selection, and the candidates that can't be told apart, from held-out losses without a refit.

The error of a choice is too low: it is the best of many on the very rows that they were compared on. So rows are drawn
with replacement, and what the rule of choice takes by them is judged by the others: see `kernsel.selection.loss_table`.
What belongs together is drawn together: groups, copies of a row, and blocks of rows in the order of time.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernsel.criteria import HeldOutCriterion
from kernsel.data import Dataset
from kernsel.folds import Folds
from kernsel.folds.holdouts import keeps_copies
from kernsel.folds.partition import Partition
from kernsel.search.board import Board, Losses
from kernsel.search.candidate import Candidate, Key
from kernsel.search.choice import Rule
from kernsel.selection.heldout_choice import HeldOutChoice
from kernsel.selection.loss_table import (
    LEVEL,
    LossTable,
    difference_se,
    draws,
    indistinct,
    interval,
    resampled,
    skewness_of_mean,
)
from kernsel.selection.unseen import Unseen
from kernsel.types import Array, Indices, Mask

BLOCKS = 20
"""Rows in the order of time are drawn in so many blocks, or as many as there are folds."""

UNKNOWN = "held-out losses of the choice are not known"


class Pair(NamedTuple):
    """What is known of a candidate beside another one.

    Parameters
    ----------
    difference_se : float or None
        Standard error of the difference between its score and that of the choice, row by row.
    equivalent : bool or None
        Whether its score can't be told from the lowest.
    """

    difference_se: float | None = None
    equivalent: bool | None = None


@dataclass(frozen=True, eq=False)
class Comparison:
    """Candidates beside the one with the lowest score, by their paired held-out losses.

    Parameters
    ----------
    candidates : sequence of Candidate
        Those that were compared.
    differences : (C,) array
        Standard errors of the differences between their scores and that of the choice.
    equal : (C,) array of bool
        Whether their scores can't be told from the lowest.
    """

    level: ClassVar[float] = LEVEL
    candidates: Sequence[Candidate] = field(repr=False)
    differences: Array = field(repr=False)
    equal: Mask = field(repr=False)

    @cached_property
    def pairs(self) -> Mapping[Key, Pair]:
        """What is known of each candidate that was compared."""
        known = map(Pair, self.differences.tolist(), self.equal.tolist())
        return dict(zip([c.key for c in self.candidates], known, strict=True))

    @property
    def equivalent(self) -> int:
        """How many candidates have a score that can't be told from the lowest."""
        return int(self.equal.sum())

    @property
    def compared(self) -> int:
        """How many candidates were compared."""
        return len(self.candidates)

    def pair(self, candidate: Candidate) -> Pair:
        """Return what is known of a candidate beside another one."""
        return self.pairs.get(candidate.key, Pair())


@dataclass(frozen=True, eq=False)
class Procedure(Comparison):
    """What held-out losses say of a whole selection.

    Parameters
    ----------
    candidates, differences, equal : sequence of Candidate, (C,) array and (C,) array of bool
        As of `Comparison`.
    error : float
        Misclassification or RMSE, in the units of the candidates' errors, of what the rule of choice takes.
    low, high : float
        Interval of it.
    """

    error: float
    low: float
    high: float

    def moved(self, by: float) -> Procedure:
        """Return it for outputs whose error is another one: those of several classes are coupled after the choice."""
        error, low, high = (min(max(each + by, 0.0), 1.0) for each in (self.error, self.low, self.high))
        return replace(self, error=error, low=low, high=high)

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON holds of the error."""
        return {"error": self.error, "low": self.low, "high": self.high, "level": LEVEL}


def whole_selection(
    board: Board,
    dataset: Dataset,
    candidates: Sequence[Candidate],
    rule: Rule,
    folds: Folds,
    chosen: HeldOutChoice,
    unseen: Unseen | None,
) -> Procedure | str:
    """Return the error of a selection and the candidates that can't be told apart, or why they are not known.

    Parameters
    ----------
    board : Board
        With the held-out losses of the candidates.
    candidates : sequence of Candidate
        The choice first.
    folds : Folds
        Of the first deal.
    chosen : HeldOutChoice
        The first candidate's outputs.
    unseen : Unseen or None
        Knows which kernels were learnt on rows that are held out.
    """
    rows = board.rows
    if rule.metric is not None:
        return f"{rule.metric} decides, which is known of verified candidates only"
    if rows.held > board.kept_rows:
        return f"losses of all candidates are kept of {board.kept_rows} rows at most, and {rows.held} are held out"
    if not board.losses:
        return f"scores of {board.criterion.name} are no means of losses at the rows that folds hold out"
    count, known = len(board.deals), board.losses.get
    usable = [(c, deals) for c in candidates if c.compares and len(deals := known(c.key, {})) == count]
    most, *learnt = _learnt_on(unseen, [candidates[0], *(c for c, _ in usable)], rows.n)
    if most and not chosen.unseen:
        return "the choice can't be learnt without some of the rows"
    fair = [(c, deals, freedom) for (c, deals), freedom in zip(usable, learnt, strict=True) if freedom <= most]
    if not fair:  # others, whose losses are too low, were passed over
        return UNKNOWN
    fair.sort(key=lambda each: rule.among_equals(each[0]))
    losses = [deals[0] if count == 1 else average_deals(board, deals) for _, deals, _ in fair]
    each_values, each_errors = zip(*losses, strict=True)
    values = errors = _table(each_values)
    s = rows.s[: rows.held] * often(board)
    share = s / s.sum()
    means = np.einsum("cn,n->c", values, share)  # without a copy in double precision
    finite = np.isfinite(means)
    if any(map(operator.is_not, each_values, each_errors)):
        errors = _table(each_errors)
        finite &= np.isfinite(np.einsum("cn,n->c", errors, share))
    if not finite.all():
        values, errors, means = values[finite], errors[finite], means[finite]
        fair = [each for each, is_finite in zip(fair, finite, strict=True) if is_finite]
    compared = [c for c, _, _ in fair]
    if candidates[0] not in compared:
        return UNKNOWN
    best = compared.index(candidates[0])
    scores = np.array([c.value for c in compared])
    reported, shift = _as_reported(board, chosen, errors, best, np.array([freedom > 0 for _, _, freedom in fair]))
    table = LossTable(
        values,
        reported,
        scores - means,
        shift,
        np.array([c.score_se or 0.0 for c in compared]),
        s,
        units_of(folds, dataset, rows),
        rows.starts,
    )
    drawn = draws(table.units, rows.seed)
    left_out = resampled(table, rule, drawn)
    if not left_out.size:
        return "no draw leaves rows out"
    error, low, high = interval(left_out, skewness_of_mean(table, best))
    if board.errors.classes:
        error, low, high = (min(each, 1.0) for each in (error, low, high))
    else:
        error, low, high = (board.errors.unit * math.sqrt(max(each, 0.0)) for each in (error, low, high))
    return Procedure(compared, *_beside(table, scores, best, drawn), error, low, high)


def _as_reported(
    board: Board, chosen: HeldOutChoice, errors: Losses | Array, best: int, learnt: Mask
) -> tuple[Losses | Array, Array]:
    """Return errors (C, n) where outputs of the choice, number ``best``, are others than those that it was scored by.

    What margins give back at a row is so for all candidates alike. What a kernel has seen is put on top of the mean of
    all that were ``learnt`` (C,): these means are the second value.
    """
    shift = np.zeros(len(errors))
    if chosen.anew:
        rows, deal, F = board.rows, chosen.deals[0], chosen.outputs[0]
        reported = board.errors.by_row(deal, F)
        if deal.margins is not None:
            errors = np.maximum(errors + (reported - board.errors.by_row(rows, F)), 0.0)
        if chosen.unseen:
            shift[learnt] = float(rows.mean(reported)) - float(rows.mean(errors[best]))
    return errors, shift


def compare_verified(
    board: Board, dataset: Dataset, candidates: Sequence[Candidate], folds: Folds
) -> Comparison | None:
    """Compare the verified candidates of a criterion that is no mean over held-out rows, by their exact losses.

    The rule of choice takes one of them alone. None where the choice is not verified, or the criterion is such a mean:
    then the losses of others are missing for a reason that holds for the verified ones as well.

    Parameters
    ----------
    board : Board
        With the held-out outputs of what was verified.
    candidates : sequence of Candidate
        The choice first.
    folds : Folds
        Of the first deal.
    """
    rows, held = board.rows, board.rows.held
    known = [c for c in candidates if c.failed is None and len(board.outputs.get(c.key, ())) == len(board.deals)]
    if isinstance(board.criterion, HeldOutCriterion) or not known or known[0].key != candidates[0].key:
        return None
    values = np.zeros((len(known), held))
    place = np.argsort(rows.order)
    for total, candidate in zip(values, known, strict=True):
        for deal, F in zip(board.deals, board.outputs[candidate.key], strict=True):
            losses = candidate.learner.loss.value(deal.Y, deal.clipped(F)).mean(axis=0)[: deal.held]
            total[place[deal.order[: deal.held]]] += losses
        total /= times_held(board)
    nothing, s = np.zeros(len(known)), rows.s[:held] * often(board)
    table = LossTable(values, values, nothing, nothing, nothing, s, units_of(folds, dataset, rows), rows.starts)
    return Comparison(known, *_beside(table, values @ table.share, 0, draws(table.units, rows.seed)))


def _beside(table: LossTable, scores: Array, best: int, drawn: NDArray[np.float32]) -> tuple[Array, Mask]:
    """Return what is known of the candidates of a table beside the choice, and beside the one with the lowest score."""
    return difference_se(table, best), indistinct(table, int(scores.argmin()), drawn)


def _learnt_on(unseen: Unseen | None, candidates: Sequence[Candidate], n: int) -> list[int]:
    """Return how much of each candidate's kernel was learnt on rows that are held out; 0 for nothing."""
    if unseen is None:
        return [0] * len(candidates)
    kernels = dict.fromkeys(c.kernel for c in candidates)
    learnt = {kernel: unseen.freedom(kernel) if unseen.has_seen(kernel, n) else 0 for kernel in kernels}
    return [learnt[c.kernel] for c in candidates]


def _table(losses: Sequence[Losses]) -> Losses:
    """Return the losses of candidates as the rows of one array."""
    return np.concatenate(losses).reshape(len(losses), -1)


def average_deals(board: Board, deals: Mapping[int, tuple[Losses, Losses]]) -> tuple[Losses, Losses]:
    """Return the losses (held,) of a candidate in the order of the first deal, means over the deals that have the row.

    The first deal holds out all rows that any other does.

    Parameters
    ----------
    deals : mapping of int to tuple of (held,) arrays
        Its losses by the number of the deal, as those of the board.
    """
    place = np.argsort(board.deals[0].order)
    found, times = np.zeros((2, board.deals[0].held), np.float32), times_held(board).astype(np.float32)
    for number, parts in deals.items():
        for total, part in zip(found, parts, strict=True):
            deal = board.deals[number]
            at = place[deal.order[: deal.held]]
            total[at] += part / times[at]
    return found[0], found[1]


def times_held(board: Board) -> Indices:
    """Return how many deals hold out each row that the first one does, (held,)."""
    if len(board.deals) == 1:
        return np.ones(board.rows.held, np.int64)
    place, times = np.argsort(board.rows.order), np.zeros(board.rows.held, np.int64)
    for deal in board.deals:
        times[place[deal.order[: deal.held]]] += 1
    return times


def often(board: Board) -> Array:
    """Return how often each row is held out, for what the most frequent ones are, (held,)."""
    times = times_held(board)
    return np.asarray(times / times.max())


def units_of(folds: Folds, dataset: Dataset, rows: Partition) -> Indices:
    """Return the numbers (held,), from 0 without gaps, of what is drawn together."""
    order = rows.order[: rows.held]
    if dataset.groups is not None:
        numbers = dataset.groups[order]
    elif folds.in_time:  # neighbours are alike
        count = min(max(BLOCKS, rows.left.size), rows.held)
        time = order if dataset.sample.near is None else dataset.sample.near.time[order]
        numbers = np.argsort(np.argsort(time, kind="stable")) * count // rows.held
    elif folds.training is not None and not folds.dealt and not folds.splits:  # compact regions
        numbers = np.repeat(np.arange(rows.left.size), np.diff(rows.starts))
    elif folds.dealt and keeps_copies(dataset, rows.left.size):
        numbers = dataset.copied.number[order]
    else:
        return np.arange(rows.held)
    return np.unique(numbers, return_inverse=True)[1].ravel().astype(np.int64)
