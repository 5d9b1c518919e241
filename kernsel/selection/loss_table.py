"""What held-out losses of many candidates at the same rows say: of a rule of choice, and of what can't be told apart.

Here b = 1..B times rows are drawn with replacement, c_b is what the rule of choice takes by the rows drawn, and its
error is that of the rows O_b that were not drawn,

    e_b = sum_{i in O_b} s_i l_i(c_b) / sum_{i in O_b} s_i,    error = (1/B) sum_b e_b

(BBC-CV: Tsamardinos, Greasidou & Borboudakis 2018). The limit of the rule has the standard errors of all rows. The
interval goes by the standard deviation of the e_b: they are means over a third of the rows, and so wider than chance in
all rows alone would have it, which makes up for what another training sample would change. It is not symmetric where
losses are skew: see `interval`.

A candidate is as good as the one with the lowest score if its score is not above that by more than chance has it: the
standardised difference ``T_c = (mean_i d_ic) / se_c`` of paired losses ``d_ic = v_i(c) - v_i(lowest)`` is at most the
quantile of the largest of all standardised differences where there are none, by the same draws of rows (Chernozhukov,
Chetverikov & Kato 2017; as in Lei 2020, "Cross-Validation with Confidence", but against the lowest candidate instead of
each in turn). Large differences are cut, which can hide no candidate that is as good.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from kernsel.heldout.standard_error import CentredError
from kernsel.search.board import Losses
from kernsel.search.choice import MINIMUM, SAFEST, Rule
from kernsel.types import Array, Indices, Mask

RESAMPLES = 200
"""How often rows are drawn. The error is then known to a fourteenth of its own standard error, and that to a
twentieth."""

WIDER = math.sqrt(math.e - 1.0)
"""Standard deviation of the mean over rows that were not drawn, a share of 1/e, for that of the mean over all rows."""

LEVEL = 0.9
"""Of the interval, and of the candidates that are as good as the lowest."""

DIGITS = 5
"""Means of losses in single precision that agree to so many digits are equal."""

CLIPPED = 5.0
"""Standard deviations of the losses of the lowest candidate; a loss that is higher by more counts as so much higher."""

FEW = 1000
"""Draws of so many units at most are kept for the next selection; of more, they are a small part of its time."""

Z = NormalDist().inv_cdf((1.0 + LEVEL) / 2.0)
"""Quantile of the normal distribution at the ends of the interval."""

CHUNK = 2**15
"""Numbers in double precision that are held at a time: few enough for memory that is at hand, and few steps."""

TOGETHER = 32
"""Draws or candidates that are taken at a time, at least: each goes over all rows of the other ones."""


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
    starts : (t + 1,) array
        Of the folds.
    """

    values: Losses | Array
    errors: Losses | Array
    beyond: Array
    shift: Array
    se: Array
    s: Array
    units: Indices
    starts: Indices

    @cached_property
    def share(self) -> Array:
        """Weights of the rows that add up to 1, (n,)."""
        return np.asarray(self.s / self.s.sum())

    @cached_property
    def even(self) -> bool:
        """Whether every row counts 1."""
        return bool((self.s == 1.0).all())

    @cached_property
    def count(self) -> int:
        """How many units there are."""
        return int(self.units.max()) + 1

    @cached_property
    def standard_errors(self) -> CentredError:
        """Of means of values whose weighted means are 0."""
        return CentredError(self.starts, self.s)


def draws(units: Indices, seed: int, count: int = RESAMPLES) -> NDArray[np.float32]:
    """Return how often each row is in each of some draws with replacement of as many units as there are, (count, n).

    The array can't be written to.
    """
    total = int(units.max()) + 1
    drawn = _kept(total, seed, count) if total <= FEW else _drawn(total, seed, count)
    return drawn if (units == np.arange(units.size)).all() else drawn[:, units]


def _drawn(total: int, seed: int, count: int) -> NDArray[np.float32]:
    """Return how often each of the units is in each of some draws, (count, total)."""
    generator, one = np.random.default_rng((seed, 0)), np.float32(1.0)
    drawn = np.zeros((count, total), np.float32)
    for chunk in _chunks(count, total, 1):
        places = generator.integers(total, size=drawn[chunk].shape)
        places += total * np.arange(len(places))[:, None]  # numbers of unit and draw
        np.add.at(drawn[chunk].ravel(), places.ravel(), one)
    drawn.flags.writeable = False
    return drawn


_kept = lru_cache(maxsize=4)(_drawn)
"""Selections of one seed from as many rows, such as those of nested folds and of studies, draw the same once."""


def resampled(table: LossTable, rule: Rule, drawn: NDArray[np.float32]) -> Array:
    """Return the mean loss of the rows that were not drawn, of what a rule takes by those that were, of each draw."""
    s = table.s.astype(np.float32)
    found = [_resampled(table, rule, drawn[chunk], s) for chunk in _chunks(len(drawn), len(table.values), TOGETHER)]
    return np.concatenate(found)


def _resampled(table: LossTable, rule: Rule, drawn: NDArray[np.float32], s: NDArray[np.float32]) -> Array:
    """Return what `resampled` does for some of the draws, with the weights of the rows in single precision."""
    inside, outside = drawn if table.even else drawn * s, (drawn == 0) * s
    weight, left = inside.sum(axis=1), outside.sum(axis=1, dtype=np.float64)
    usable = (left > 0) & (weight > 0)
    if not usable.any():
        return np.zeros(0)
    if not usable.all():
        inside, outside, weight, left = inside[usable], outside[usable], weight[usable], left[usable]
    values = _rounded(_means(inside, table.values, weight) + table.beyond)  # sums of 0-1 errors are exact
    taken = choices(rule, values, lambda some: _rounded(_means(inside, table.errors[some], weight)), table.se)
    means = np.einsum("bn,bn->b", outside, table.errors[taken], dtype=np.float64) / left
    return np.asarray(means + table.shift[taken])


def _means(inside: NDArray[np.float32], losses: Losses | Array, weight: NDArray[np.float32]) -> Array:
    """Return means (B, c) of losses (c, n) by the weights (B, n) of the rows of each draw, whose sums are (B,)."""
    means = inside @ losses.T
    means /= weight[:, None]
    return np.asarray(means)


def choices(rule: Rule, values: Array, errors: Callable[[Indices], Array], se: Array) -> Indices:
    """Return the number of the candidate that a rule takes by each row of means (B, C).

    Parameters
    ----------
    values : (B, C) array
        Scores of candidates, which are in the order in which the rule takes equal ones.
    errors : callable
        Returns the errors (B, q) of those with some numbers (q,), for a rule that looks at these first.
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
    if not rule.errors:
        return np.asarray(tied.argmax(axis=1))
    some = np.flatnonzero(tied.any(axis=0))
    among = np.where(tied[:, some], errors(some), np.inf)
    return np.asarray(some[among.argmin(axis=1)])


def interval(losses: Array, skewness: float) -> tuple[float, float, float]:
    """Return the mean of the losses of all draws, and the interval of level ``LEVEL``, without a sign.

    Where few rows have large losses, a sample without these has a mean that is too low and a spread that is too small,
    both at once. Let the standard deviation of what the mean is off be c times that of chance in all rows, ``c =
    WIDER``; the rest, which makes up for other training samples, is independent. With the skewness k of the mean over
    all rows, the mean's error over its estimated standard deviation, T, has the mean ``-k / 2c`` and the third cumulant
    ``k (1 / c^3 - 3 / c)``, so that but for terms of second order

        g(T) = T + k (a T^2 + b) + (a k)^2 T^3 / 3,    a = (3 / c - 1 / c^3) / 6,    b = 1 / (6 c^3)

    is standard normal (Hall 1992, "On the removal of skewness by transformation", JRSS B 54, where c is 1). With its
    quantile z the ends of the interval are the mean less ``g^-1(+-z)`` standard deviations.

    Parameters
    ----------
    losses : (B,) array
        Of the draws.
    skewness : float
        That of the mean over all rows.
    """
    mean = float(losses.sum()) / losses.size
    spread = math.sqrt(float((losses - mean) @ (losses - mean)) / losses.size)
    low, high = (max(mean - spread * without_skewness(each, skewness), 0.0) for each in (Z, -Z))
    return mean, low, high


def without_skewness(z: float, k: float) -> float:
    """Return ``g^-1(z)``: see `interval`."""
    b = 1.0 / (6.0 * WIDER**3)
    a = 0.5 / WIDER - b
    root = math.cbrt(1.0 + 3.0 * a * k * (z - k * b))
    return 3.0 * (z - k * b) / (1.0 + root + root**2)


def skewness_of_mean(table: LossTable, at: int) -> float:
    """Return the skewness of the mean of one candidate's errors, ``sum_u D_u^3 / (sum_u D_u^2)^3/2``.

    The D_u are sums over what is drawn together of the weighted differences to the mean.
    """
    errors = table.errors[at].astype(np.float64)
    sums = _sums(table, ((errors - errors @ table.share) * table.s)[None])[0]
    squares = sums * sums
    square = float(squares.sum())
    return float(sums @ squares) / square**1.5 if square > 0.0 else 0.0


def difference_se(table: LossTable, at: int) -> Array:
    """Return the standard errors (C,) of the differences of mean values to those of one candidate.

    The largest one of that between folds, of single rows, and of what is drawn together.
    """
    found = np.empty(len(table.values))
    for chunk, _, centred, weighted in _differences(table, at, math.inf):
        found[chunk] = _standard_errors(table, centred, weighted)[0]
    return found


def _standard_errors(table: LossTable, centred: Array, weighted: Array) -> tuple[Array, Array]:
    """Return standard errors (c,) of mean values, from these (c, n) without and with weights; norms (c,) over units."""
    square, by_row = table.standard_errors.squares(centred, weighted)
    if table.even and table.count == table.units.size and table.standard_errors.known:  # units are rows
        return np.sqrt(square), np.sqrt(by_row)
    sums = _sums(table, weighted)
    together = np.einsum("cn,cn->c", sums, sums)
    return np.sqrt(np.fmax(square, together / table.s.sum() ** 2)), np.sqrt(together)


def largest_difference(table: LossTable, at: int) -> float:
    """Return the difference that larger ones count as: of standard deviations of a candidate's losses ``CLIPPED``.

    Infinity if these losses are all the same.
    """
    values = table.values[at].astype(np.float64)
    spread = math.sqrt(float(table.share @ (values - table.share @ values) ** 2))
    return CLIPPED * spread if spread > 0 else math.inf


def indistinct(table: LossTable, at: int, drawn: NDArray[np.float32]) -> Mask:
    """Say which candidates (C,) have a score that can't be told from that of the lowest, at the level ``LEVEL``.

    With N_bu for how often draw b has unit u, and the sums ``D_cu`` of centred differences of the rows of a unit,
    ``max_c sum_u N_bu D_cu / (sum_u D_cu^2)^(1/2)`` is as the largest standardised difference by chance.

    Differences are ``min(d_ic, m)``: where their mean is above 0, that of d is as well. So a few enormous losses, whose
    standard error is as large as their mean, don't hide that a candidate is worse.

    Parameters
    ----------
    at : int
        The candidate with the lowest score.
    drawn : (B, n) array
        Of `draws`.
    """
    most = largest_difference(table, at)
    largest, gaps, limits = np.zeros(len(drawn)), np.empty(len(table.values)), np.empty(len(table.values))
    for chunk, means, centred, weighted in _differences(table, at, most):
        gaps[chunk] = means
        limits[chunk], sizes = _standard_errors(table, centred, weighted)
        scaled = np.empty(weighted.shape, np.float32)
        np.divide(weighted, np.where(sizes > 0, sizes, np.inf)[:, None], out=scaled, casting="same_kind")
        largest = np.maximum(largest, (scaled @ drawn.T).max(axis=0))
    gaps += table.beyond - table.beyond[at]
    lowest = float(table.values[at] @ table.share + table.beyond[at])
    largest.sort()
    limits *= float(np.interp(LEVEL * (largest.size - 1), np.arange(largest.size), largest))  # the quantile
    return np.asarray(gaps <= limits + 10.0**-DIGITS * abs(lowest))


def _differences(table: LossTable, at: int, most: float) -> Iterator[tuple[slice, Array, Array, Array]]:
    """Give the means (c,) of the differences of some candidates' values to those of one, and the rest (c, n).

    The rest is given as it is, and times the weights of the rows.
    """
    for chunk in _chunks(len(table.values), table.s.size, TOGETHER):
        found = np.subtract(table.values[chunk], table.values[at], dtype=np.float64)
        if math.isfinite(most):
            np.minimum(found, most, out=found)
        means = found @ table.share
        found -= means[:, None]
        yield chunk, means, found, found if table.even else found * table.s


def _chunks(count: int, size: int, least: int) -> Iterator[slice]:
    """Give the parts of ``count`` rows that are taken at a time, each of ``CHUNK`` numbers or ``least`` rows."""
    step = max(least, CHUNK // size)
    return (slice(start, min(start + step, count)) for start in range(0, count, step))


def _sums(table: LossTable, weighted: Array) -> Array:
    """Return the sums (C, units) of weighted values (C, n) over what is drawn together."""
    if table.count == table.units.size:
        return weighted
    order = np.argsort(table.units, kind="stable")
    return np.add.reduceat(weighted[:, order], np.searchsorted(table.units[order], np.arange(table.count)), axis=1)


def _rounded(means: Array) -> Array:
    """Round means, in their place, to ``DIGITS`` digits of the least one of their row, so that equal ones are equal."""
    least = means.min(axis=1, keepdims=True)
    if least.min(initial=0.0) < 0:  # of losses there are none such
        least = np.abs(means).min(axis=1, keepdims=True)
    step = 10.0 ** (np.floor(np.log10(np.where(least > 0, least, 10.0**-DIGITS))) + (1 - DIGITS))
    means /= step
    np.round(means, out=means)
    means *= step
    return means
