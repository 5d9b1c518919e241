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
2020, "Cross-Validation with Confidence", but against the lowest candidate instead of each in turn).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernsel.data import Dataset
from kernsel.folds import Folds
from kernsel.folds.holdouts import keeps_copies
from kernsel.folds.partition import Partition
from kernsel.heldout.standard_error import standard_error
from kernsel.kernels import Kernel
from kernsel.search.board import KEPT_ROWS, Board, Losses
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
class Procedure:
    """What held-out losses say of a whole selection.

    Parameters
    ----------
    error : float
        Misclassification or RMSE, in the units of the candidates' errors, of what the rule of choice takes.
    low, high : float
        Interval of it.
    pairs : mapping of key to Pair
        Of each candidate that was compared.
    """

    error: float
    low: float
    high: float
    pairs: Mapping[Key, Pair] = field(repr=False)

    def moved(self, by: float) -> Procedure:
        """Return it for outputs whose error is another one: those of several classes are coupled after the choice."""
        return replace(
            self, error=max(self.error + by, 0.0), low=max(self.low + by, 0.0), high=max(self.high + by, 0.0)
        )

    @property
    def equivalent(self) -> int:
        """How many candidates have a score that can't be told from the lowest."""
        return sum(bool(pair.equivalent) for pair in self.pairs.values())

    def pair(self, candidate: Candidate) -> Pair:
        """Return what is known of a candidate beside another one."""
        return self.pairs.get(candidate.key, Pair())

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

    values: Losses
    errors: Losses
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
    if rows.held > KEPT_ROWS:
        return f"losses of all candidates are kept of {KEPT_ROWS} rows at most, and {rows.held} are held out"
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
    values, errors = (np.stack(each) for each in zip(*(_of_all_deals(board, c.key) for c in usable), strict=True))
    finite = np.isfinite(values).all(axis=1) & np.isfinite(errors).all(axis=1)
    if not finite.all():
        values, errors = values[finite], errors[finite]
        usable = [c for c, is_finite in zip(usable, finite, strict=True) if is_finite]
    keys = [c.key for c in usable]
    if candidates[0].key not in keys:
        return UNKNOWN
    best = keys.index(candidates[0].key)
    s = rows.s[: rows.held]
    means = values @ (s / s.sum())
    shift = np.zeros(len(keys))
    if fresh is not None:
        more = float(rows.mean(board.errors.by_row(rows, fresh))) - float(errors[best] @ s / s.sum())
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
    at = int((means + table.beyond).argmin())
    differences = difference_se(table, best, rows.starts)
    se = differences if at == best else difference_se(table, at, rows.starts)
    equal = indistinct(table, at, se, rows.seed)
    pairs = map(Pair, differences.tolist(), equal.tolist())
    return Procedure(error, low, high, dict(zip(keys, pairs, strict=True)))


def _learnt_on(unseen: Unseen | None, kernel: Kernel, n: int) -> int:
    """Return how much of a kernel was learnt on rows that are held out; 0 for nothing."""
    return unseen.freedom(kernel) if unseen is not None and unseen.has_seen(kernel, n) else 0


def _of_all_deals(board: Board, key: Key) -> tuple[Losses, Losses]:
    """Return the losses (held,) of a candidate in the order of the first deal, means over the deals."""
    deals = board.losses[key]
    if len(board.deals) == 1:
        return deals[0]
    place = np.argsort(board.deals[0].order)
    found = np.zeros((2, board.deals[0].held), np.float32)
    for number, parts in deals.items():
        for total, part in zip(found, parts, strict=True):
            total[place[board.deals[number].order]] += part / np.float32(len(deals))
    return found[0], found[1]


def units_of(folds: Folds, dataset: Dataset, rows: Partition) -> Indices:
    """Return the numbers (held,), from 0 without gaps, of what is drawn together."""
    order = rows.order[: rows.held]
    if dataset.groups is not None:
        numbers = dataset.groups[order]
    elif folds.in_time:  # neighbours are alike
        count = min(max(BLOCKS, rows.left.size), rows.held)
        time = order if dataset.sample.near is None else dataset.sample.near.time[order]
        numbers = np.argsort(np.argsort(time, kind="stable")) * count // rows.held
    elif folds.training is not None and not folds.dealt:  # compact regions
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


def difference_se(table: LossTable, at: int, starts: Indices) -> Array:
    """Return the standard errors (C,) of the differences of mean values to those of one candidate.

    The largest one of that between folds, of single rows, and of what is drawn together.
    """
    found = np.empty(len(table.values))
    for chunk, centred in _differences(table, at):
        between = standard_error(centred, starts, table.s)
        found[chunk] = np.fmax(between, np.linalg.norm(_sums(table, centred), axis=1) / table.s.sum())
    return found


def indistinct(table: LossTable, at: int, se: Array, seed: int) -> NDArray[np.bool_]:
    """Say which candidates (C,) have a score that can't be told from that of the lowest, at the level ``LEVEL``.

    With standard normal g_bu for each draw b and unit u, and the sums ``D_cu`` of centred differences of the rows of a
    unit, ``max_c sum_u g_bu D_cu / (sum_u D_cu^2)^(1/2)`` is as the largest standardised difference by chance.

    Parameters
    ----------
    table : LossTable
    at : int
        The candidate with the lowest score.
    se : (C,) array
        Standard errors of the differences to it.
    seed : int
    """
    scores = table.values @ (table.s / table.s.sum()) + table.beyond
    normal = np.random.default_rng((seed, 1)).standard_normal((int(table.units.max()) + 1, RESAMPLES))
    largest = np.zeros(RESAMPLES)
    for _, centred in _differences(table, at):
        sums = _sums(table, centred)
        sizes = np.linalg.norm(sums, axis=1)
        apart = sizes > 0
        if apart.any():
            largest = np.maximum(largest, ((sums[apart] / sizes[apart, None]) @ normal).max(axis=0))
    rounding = 10.0**-DIGITS * abs(scores[at])
    return np.asarray(scores - scores[at] <= float(np.quantile(largest, LEVEL)) * se + rounding)


def _differences(table: LossTable, at: int) -> Iterator[tuple[slice, Array]]:
    """Give the differences (c, n) of the values of some candidates to those of one, less their means."""
    step, share = max(1, CHUNK // table.s.size), table.s / table.s.sum()
    for start in range(0, len(table.values), step):
        chunk = slice(start, start + step)
        found = table.values[chunk].astype(np.float64) - table.values[at]
        yield chunk, found - (found @ share)[:, None]


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
