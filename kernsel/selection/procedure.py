"""The error of the whole selection, and the candidates that can't be told apart, from held-out losses without a refit.

The error of a choice is too low: it is the best of many on the very rows that they were compared on. Here b = 1..B
times rows are drawn with replacement, c_b is what the rule of choice takes by the rows drawn, and its error is that of
the rows O_b that were not drawn,

    e_b = sum_{i in O_b} s_i l_i(c_b) / sum_{i in O_b} s_i,    error = (1/B) sum_b e_b

(BBC-CV: Tsamardinos, Greasidou & Borboudakis 2018). What belongs together is drawn together: groups, copies of a row,
and blocks of rows in the order of time. The limit of the rule has the standard errors of all rows. The interval is that
of the e_b: they are means over a third of the rows, and so wider than chance in all rows alone would have it, which
makes up for what another training sample would change.

A candidate is as good as the one with the lowest score if its score is not above that by more than chance has it: the
standardised difference ``T_c = (mean_i d_ic) / se_c`` of paired losses ``d_ic = v_i(c) - v_i(lowest)`` is at most the
quantile of the largest of all standardised differences where there are none, by the multiplier bootstrap (as in Lei
2020, "Cross-Validation with Confidence", but against the lowest candidate instead of each in turn). Large differences
are cut, which can hide no candidate that is as good.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernsel.criteria import HeldOutCriterion
from kernsel.data import Dataset
from kernsel.folds import Folds
from kernsel.folds.holdouts import keeps_copies
from kernsel.folds.partition import Partition
from kernsel.heldout.standard_error import standard_error
from kernsel.kernels import Kernel
from kernsel.search.board import Board, Losses
from kernsel.search.candidate import Candidate, Key
from kernsel.search.choice import MINIMUM, SAFEST, Rule
from kernsel.selection.unseen import Unseen

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

RESAMPLES = 300
"""How often rows are drawn. The error is then known to a twentieth of its own standard error."""

LEVEL = 0.9
"""Of the interval, and of the candidates that are as good as the lowest."""

BLOCKS = 20
"""Rows in the order of time are drawn in so many blocks, or as many as there are folds."""

DIGITS = 5
"""Means of losses in single precision that agree to so many digits are equal."""

CLIPPED = 5.0
"""Standard deviations of the losses of the lowest candidate; a loss that is higher by more counts as so much higher."""

UNKNOWN = "held-out losses of the choice are not known"

CHUNK = 2**22
"""Numbers in double precision that are held at a time."""


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
    pairs : mapping of key to Pair
        Of each candidate that was compared.
    """

    level: ClassVar[float] = LEVEL
    pairs: Mapping[Key, Pair] = field(repr=False)

    @property
    def equivalent(self) -> int:
        """How many candidates have a score that can't be told from the lowest."""
        return sum(bool(pair.equivalent) for pair in self.pairs.values())

    @property
    def compared(self) -> int:
        """How many candidates were compared."""
        return len(self.pairs)

    def pair(self, candidate: Candidate) -> Pair:
        """Return what is known of a candidate beside another one."""
        return self.pairs.get(candidate.key, Pair())


@dataclass(frozen=True, eq=False)
class Procedure(Comparison):
    """What held-out losses say of a whole selection.

    Parameters
    ----------
    pairs : mapping of key to Pair
        Of each candidate that was compared.
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
        return replace(
            self, error=max(self.error + by, 0.0), low=max(self.low + by, 0.0), high=max(self.high + by, 0.0)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON holds of the error."""
        return {"error": self.error, "low": self.low, "high": self.high, "level": LEVEL}


@dataclass(frozen=True, eq=False)
class LossTable:
    """Held-out losses of C candidates at n rows.

    Parameters
    ----------
    values : (C, n) array
        What the score is the mean of.
    errors : (C, n) array
        0-1 or squared errors.
    beyond : (C,) array
        What is added to the mean of the values: a penalty.
    shift : (C,) array
        What is added to the mean of the errors of rows that were not drawn.
    se : (C,) array
        Standard errors of the scores.
    s : (n,) array
        Weights of the rows.
    units : (n,) array
        Numbers, from 0 without gaps, of what is drawn together.
    """

    values: Losses | Array
    errors: Losses | Array
    beyond: Array
    shift: Array
    se: Array
    s: Array
    units: Indices


def whole_selection(
    board: Board,
    dataset: Dataset,
    candidates: Sequence[Candidate],
    rule: Rule,
    folds: Folds,
    fresh: Array | None,
    unseen: Unseen | None,
) -> Procedure | str:
    """Return the error of a selection and the candidates that can't be told apart, or why they are not known.

    Parameters
    ----------
    board : Board
        With the held-out losses of the candidates.
    dataset : Dataset
    candidates : sequence of Candidate
        The choice first.
    rule : Rule
    folds : Folds
        Of the first deal.
    fresh : (k, n) array or None
        Held-out outputs of the choice by a kernel that was learnt without the rows, if it was learnt on them.
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
    usable = [c for c in candidates if c.compares and len(board.losses.get(c.key, ())) == len(board.deals)]
    kernels = dict.fromkeys(c.kernel for c in [candidates[0], *usable])
    learnt = {kernel: _learnt_on(unseen, kernel, rows.n) for kernel in kernels}
    most = learnt[candidates[0].kernel]
    if most and fresh is None:
        return "the choice can't be learnt without some of the rows"
    usable = [c for c in usable if learnt[c.kernel] <= most]  # others, whose losses are too low, were passed over
    if not usable:
        return UNKNOWN
    usable.sort(key=rule.among_equals)
    values, errors = (np.stack(each) for each in zip(*(average_deals(board, c.key) for c in usable), strict=True))
    finite = np.isfinite(values).all(axis=1) & np.isfinite(errors).all(axis=1)
    if not finite.all():
        values, errors = values[finite], errors[finite]
        usable = [c for c, is_finite in zip(usable, finite, strict=True) if is_finite]
    keys = [c.key for c in usable]
    if candidates[0].key not in keys:
        return UNKNOWN
    best = keys.index(candidates[0].key)
    s = rows.s[: rows.held] * often(board)
    means = values @ (s / s.sum())
    shift = np.zeros(len(keys))
    if fresh is not None:
        more = float(rows.mean(board.errors.by_row(rows, fresh))) - float(rows.mean(errors[best]))
        shift[[learnt[c.kernel] > 0 for c in usable]] = more
    table = LossTable(
        values,
        errors,
        np.array([c.value for c in usable]) - means,
        shift,
        np.array([c.score_se or 0.0 for c in usable]),
        s,
        units_of(folds, dataset, rows),
    )
    losses = resampled(table, rule, draws(table.units, rows.seed))
    if not losses.size:
        return "no draw leaves rows out"
    error, low, high = interval(losses)
    if not board.errors.classes:
        error, low, high = (board.errors.unit * math.sqrt(max(each, 0.0)) for each in (error, low, high))
    return Procedure(_pairs(table, keys, best, rows), error, low, high)


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
    dataset : Dataset
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
            losses = candidate.learner.loss.value(deal.Y, F).mean(axis=0)[: deal.held]
            total[place[deal.order[: deal.held]]] += losses
        total /= times_held(board)
    nothing, s = np.zeros(len(known)), rows.s[:held] * often(board)
    table = LossTable(values, values, nothing, nothing, nothing, s, units_of(folds, dataset, rows))
    return Comparison(_pairs(table, [c.key for c in known], 0, rows))


def _pairs(table: LossTable, keys: Sequence[Key], best: int, rows: Partition) -> dict[Key, Pair]:
    """Return what is known of each candidate of a table beside the choice, and beside the one with the lowest score."""
    at = int((table.values @ (table.s / table.s.sum()) + table.beyond).argmin())
    differences = difference_se(table, best, rows.starts)
    equal = indistinct(table, at, rows.starts, rows.seed)
    return dict(zip(keys, map(Pair, differences.tolist(), equal.tolist()), strict=True))


def _learnt_on(unseen: Unseen | None, kernel: Kernel, n: int) -> int:
    """Return how much of a kernel was learnt on rows that are held out; 0 for nothing."""
    return unseen.freedom(kernel) if unseen is not None and unseen.has_seen(kernel, n) else 0


def average_deals(board: Board, key: Key) -> tuple[Losses, Losses]:
    """Return the losses (held,) of a candidate in the order of the first deal, means over the deals that have the row.

    The first deal holds out all rows that any other does.
    """
    deals = board.losses[key]
    if len(board.deals) == 1:
        return deals[0]
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


def draws(units: Indices, seed: int, count: int = RESAMPLES) -> NDArray[np.float32]:
    """Return how often each row is in each of some draws with replacement of as many units as there are, (count, n)."""
    total = int(units.max()) + 1
    places = np.random.default_rng((seed, 0)).integers(total, size=(count, total))
    drawn = np.stack([np.bincount(each, minlength=total).astype(np.float32) for each in places])
    return drawn if (units == np.arange(units.size)).all() else drawn[:, units]


def resampled(table: LossTable, rule: Rule, drawn: NDArray[np.float32]) -> Array:
    """Return the mean loss of the rows that were not drawn, of what a rule takes by those that were, of each draw."""
    s = table.s.astype(np.float32)
    inside, outside = drawn * s, (drawn == 0) * s
    usable = (outside.sum(axis=1) > 0) & (inside.sum(axis=1) > 0)
    inside, outside = inside[usable], outside[usable]
    weight = inside.sum(axis=1)[:, None]
    values = _rounded(inside @ table.values.T / weight + table.beyond)
    errors = _rounded(inside @ table.errors.T / weight) if rule.errors else None
    taken = choices(rule, values, errors, table.se)
    means = np.einsum("bn,bn->b", outside, table.errors[taken], dtype=np.float64) / outside.sum(
        axis=1, dtype=np.float64
    )
    return np.asarray(means + table.shift[taken])


def choices(rule: Rule, values: Array, errors: Array | None, se: Array) -> Indices:
    """Return the number of the candidate that a rule takes by each row of means (B, C).

    Parameters
    ----------
    rule : Rule
    values : (B, C) array
        Scores of candidates, which are in the order in which the rule takes equal ones.
    errors : (B, C) array or None
        Their errors, for a rule that looks at these first.
    se : (C,) array
        Standard errors of the scores.
    """
    lowest = values.argmin(axis=1)
    if rule.name == MINIMUM:
        return np.asarray(lowest)
    least, spread = values[np.arange(lowest.size), lowest], se[lowest]
    if rule.name == SAFEST:  # as in `Rule.limit`
        gain = rule.null - least
        spread = np.where(gain > 0, np.minimum(spread, gain), spread)
    tied = values <= (least + rule.within * spread)[:, None]
    if errors is not None:
        among = np.where(tied, errors, np.inf)
        tied = among <= among.min(axis=1, keepdims=True)
    return np.asarray(tied.argmax(axis=1))


def interval(losses: Array) -> tuple[float, float, float]:
    """Return the mean of the losses of all draws, and the quantiles that hold ``LEVEL`` of them."""
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(losses, [tail, 1 - tail])
    return float(losses.mean()), float(low), float(high)


def difference_se(table: LossTable, at: int, starts: Indices, most: float = math.inf) -> Array:
    """Return the standard errors (C,) of the differences of mean values to those of one candidate.

    The largest one of that between folds, of single rows, and of what is drawn together.

    Parameters
    ----------
    table : LossTable
    at : int
    starts : (t + 1,) array
        Of the folds.
    most : float
        The largest difference at a row that counts as it is.
    """
    found = np.empty(len(table.values))
    for chunk, _, centred in _differences(table, at, most):
        between = standard_error(centred, starts, table.s)
        found[chunk] = np.fmax(between, np.linalg.norm(_sums(table, centred), axis=1) / table.s.sum())
    return found


def largest_difference(table: LossTable, at: int) -> float:
    """Return the difference that larger ones count as: of standard deviations of a candidate's losses ``CLIPPED``.

    Infinity if these losses are all the same.
    """
    share, values = table.s / table.s.sum(), table.values[at].astype(np.float64)
    spread = math.sqrt(float(share @ (values - share @ values) ** 2))
    return CLIPPED * spread if spread > 0 else math.inf


def indistinct(table: LossTable, at: int, starts: Indices, seed: int) -> NDArray[np.bool_]:
    """Say which candidates (C,) have a score that can't be told from that of the lowest, at the level ``LEVEL``.

    With standard normal g_bu for each draw b and unit u, and the sums ``D_cu`` of centred differences of the rows of a
    unit, ``max_c sum_u g_bu D_cu / (sum_u D_cu^2)^(1/2)`` is as the largest standardised difference by chance.

    Differences are ``min(d_ic, m)``: where their mean is above 0, that of d is as well. So a few enormous losses, whose
    standard error is as large as their mean, don't hide that a candidate is worse.

    Parameters
    ----------
    table : LossTable
    at : int
        The candidate with the lowest score.
    starts : (t + 1,) array
        Of the folds.
    seed : int
    """
    most = largest_difference(table, at)
    normal = np.random.default_rng((seed, 1)).standard_normal((int(table.units.max()) + 1, RESAMPLES))
    largest, gaps = np.zeros(RESAMPLES), np.empty(len(table.values))
    for chunk, means, centred in _differences(table, at, most):
        gaps[chunk] = means
        sums = _sums(table, centred)
        sizes = np.linalg.norm(sums, axis=1)
        apart = sizes > 0
        if apart.any():
            largest = np.maximum(largest, ((sums[apart] / sizes[apart, None]) @ normal).max(axis=0))
    gaps += table.beyond - table.beyond[at]
    lowest = float(table.values[at] @ (table.s / table.s.sum()) + table.beyond[at])
    limits = float(np.quantile(largest, LEVEL)) * difference_se(table, at, starts, most)
    return np.asarray(gaps <= limits + 10.0**-DIGITS * abs(lowest))


def _differences(table: LossTable, at: int, most: float) -> Iterator[tuple[slice, Array, Array]]:
    """Give the means (c,) of the differences of some candidates' values to those of one, and the rest (c, n)."""
    step, share = max(1, CHUNK // table.s.size), table.s / table.s.sum()
    for start in range(0, len(table.values), step):
        chunk = slice(start, start + step)
        found = np.minimum(table.values[chunk].astype(np.float64) - table.values[at], most)
        means = found @ share
        yield chunk, means, found - means[:, None]


def _sums(table: LossTable, centred: Array) -> Array:
    """Return the weighted sums (C, units) of values (C, n) over what is drawn together."""
    weighted, count = centred * table.s, int(table.units.max()) + 1
    if count == table.units.size:
        return weighted
    order = np.argsort(table.units, kind="stable")
    return np.add.reduceat(weighted[:, order], np.searchsorted(table.units[order], np.arange(count)), axis=1)


def _rounded(means: Array) -> Array:
    """Return means rounded to ``DIGITS`` digits of the least one of their row, so that equal ones are equal."""
    least = np.abs(means).min(axis=1, keepdims=True)
    step = 10.0 ** (np.floor(np.log10(np.where(least > 0, least, 10.0**-DIGITS))) - DIGITS + 1)
    return np.asarray(np.round(means / step) * step)
