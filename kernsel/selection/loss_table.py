"""What held-out losses of many candidates at the same rows say: of a rule of choice, and of what can't be told apart.

Here b = 1..B times rows are drawn with replacement, c_b is what the rule of choice takes by the rows drawn, and its
error is that of the rows O_b that were not drawn,

    e_b = sum_{i in O_b} s_i l_i(c_b) / sum_{i in O_b} s_i,    error = (1/B) sum_b e_b

(BBC-CV: Tsamardinos, Greasidou & Borboudakis 2018). The limit of the rule has the standard errors of all rows. The
interval is that of the e_b: they are means over a third of the rows, and so wider than chance in all rows alone would
have it, which makes up for what another training sample would change.

A candidate is as good as the one with the lowest score if its score is not above that by more than chance has it: the
standardised difference ``T_c = (mean_i d_ic) / se_c`` of paired losses ``d_ic = v_i(c) - v_i(lowest)`` is at most the
quantile of the largest of all standardised differences where there are none, by the multiplier bootstrap (as in Lei
2020, "Cross-Validation with Confidence", but against the lowest candidate instead of each in turn). Large differences
are cut, which can hide no candidate that is as good.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernsel.heldout.standard_error import standard_error
from kernsel.search.board import Losses
from kernsel.search.choice import MINIMUM, SAFEST, Rule

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

RESAMPLES = 300
"""How often rows are drawn. The error is then known to a twentieth of its own standard error."""

LEVEL = 0.9
"""Of the interval, and of the candidates that are as good as the lowest."""

DIGITS = 5
"""Means of losses in single precision that agree to so many digits are equal."""

CLIPPED = 5.0
"""Standard deviations of the losses of the lowest candidate; a loss that is higher by more counts as so much higher."""

CHUNK = 2**22
"""Numbers in double precision that are held at a time."""


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
