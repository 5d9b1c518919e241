"""Sums over rows that an encoder is made of: those of parts of the rows merge to those of all of them.

Of numbers x with weights s, W = sum s: the mean m and the standard deviation d (divisor W). Two parts with the shares p
and q of the weight merge to

    m = m_1 + q (m_2 - m_1),    d^2 = p d_1^2 + q d_2^2 + p q (m_2 - m_1)^2,

in which nothing cancels (Chan, Golub & LeVeque 1983, *Algorithms for computing the sample variance*, equations 1.5),
and, as d is a sum of squares under a root, nothing over- or underflows.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot, inf, sqrt
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from kernsel.data.columns import absent, check_values
from kernsel.data.target import mean_and_scale
from kernsel.types import Array, Indices, Mask


class Moments(NamedTuple):
    """Mean, standard deviation (divisor: the weight) and range of some numbers.

    Parameters
    ----------
    rest : float
        What the mean is more than the nearest number: of large numbers that differ little, parts' means differ by it.
    """

    rows: int
    weight: float
    mean: float
    deviation: float
    least: float
    greatest: float
    rest: float = 0.0

    @classmethod
    def of(cls, values: Array, weights: Array | None = None) -> Self:
        """Return the moments of finite numbers (n,), of none for an empty array."""
        if not values.size:
            return cls(0, 0.0, 0.0, 0.0, inf, -inf)
        weight = float(values.size if weights is None else weights.sum())
        least, greatest = float(values.min()), float(values.max())
        if least == greatest:
            return cls(values.size, weight, least, 0.0, least, greatest)
        mean, deviation = mean_and_scale(values, weights)
        rest = float(np.average(values - mean, weights=weights if weights is None else weights / weight))
        return cls(values.size, weight, mean, deviation, least, greatest, rest)

    def merge(self, other: Self) -> Self:
        """Return the moments of these numbers and others."""
        if not self.rows or not other.rows:
            return self if self.rows else other
        weight = self.weight + other.weight
        p, q, apart = self.weight / weight, other.weight / weight, other.mean - self.mean + (other.rest - self.rest)
        mean = self.mean + q * apart
        rest = self.mean - mean + q * apart + self.rest
        deviation = hypot(sqrt(p) * self.deviation, sqrt(q) * other.deviation, sqrt(p * q) * apart)
        least, greatest = min(self.least, other.least), max(self.greatest, other.greatest)
        return type(self)(self.rows + other.rows, weight, mean, deviation, least, greatest, rest)


class Totals(NamedTuple):
    """Weights of rows and moments of their targets.

    Parameters
    ----------
    weight, squared : float
        Sums of the weights and of their squares.
    """

    rows: int
    weight: float
    squared: float
    targets: tuple[Moments, ...]

    @classmethod
    def of(cls, n: int, weights: Array | None, Y: Array | None) -> Self:
        """Return them of n rows with targets Y (k, n), if these have any."""
        weight, squared = (float(n), float(n)) if weights is None else (float(weights.sum()), float(weights @ weights))
        return cls(n, weight, squared, () if Y is None else tuple(Moments.of(y, weights) for y in Y))

    def merge(self, other: Self) -> Self:
        """Return those of these rows and others."""
        return type(self)(
            self.rows + other.rows,
            self.weight + other.weight,
            self.squared + other.squared,
            _merged(self.targets, other.targets),
        )

    def tell(self, holes: Totals, errors: float) -> bool:
        """Say whether the target differs between some of the rows, ``holes``, and the rest by so many standard errors.

        With shares s of the weight and h, 1 in those rows, both centred, ``|Y (s h)|`` is compared with the deviation
        that it has where Y and h are independent. Without a target it may differ.
        """
        if not self.targets:
            return True
        p = holes.weight / self.weight
        for y, there in zip(self.targets, holes.targets, strict=True):
            across = p * (there.mean - y.mean)
            if across**2 > errors**2 * y.deviation**2 * p * (1.0 - p) * self.squared / self.weight**2:
                return True
        return False


class NumberSums(NamedTuple):
    """What is known of a column of numbers.

    Parameters
    ----------
    features : tuple of Moments
        Of each of the numbers that the column becomes, where there is one.
    holes : Totals
        Of the rows without one.
    """

    features: tuple[Moments, ...]
    holes: Totals

    @classmethod
    def of(cls, names: Sequence[str], values: Array, weights: Array | None, Y: Array | None) -> Self:
        """Return it of values (n, m), NaN where one is missing; DataError if they are too large."""
        holes = np.isnan(values[:, 0])
        some = bool(holes.any())
        s = weights if weights is None or not some else weights[~holes]
        found = []
        for name, column in zip(names, values.T, strict=True):
            there = column[~holes] if some else column
            check_values(there, name)
            found.append(Moments.of(there, s))
        return cls(tuple(found), _of_holes(holes, weights, Y))

    def merge(self, other: Self) -> Self:
        """Return that of these rows and others."""
        return type(self)(_merged(self.features, other.features), self.holes.merge(other.holes))


class LevelSums(NamedTuple):
    """What is known of a column of categories.

    Parameters
    ----------
    levels : (c,) array of str
        In their order.
    counts, weights : (c,) arrays
        Number and weight of the rows of each.
    holes : Totals
        Of the rows without one.
    """

    levels: npt.NDArray[np.object_]
    counts: Indices
    weights: Array
    holes: Totals

    @classmethod
    def of(cls, texts: npt.NDArray[np.object_], weights: Array | None, Y: Array | None) -> Self:
        """Return it of texts (n,), None where one is missing."""
        holes = absent(texts)
        levels, codes = np.unique(texts[~holes].astype(str), return_inverse=True)
        counts = np.bincount(codes, minlength=levels.size)
        heavy = counts if weights is None else np.bincount(codes, weights[~holes], minlength=levels.size)
        return cls(levels.astype(object), counts, heavy.astype(np.float64), _of_holes(holes, weights, Y))

    def merge(self, other: Self) -> Self:
        """Return that of these rows and others."""
        levels, codes = np.unique(np.concatenate([self.levels, other.levels]), return_inverse=True)
        counts, weights = np.zeros(levels.size, np.int64), np.zeros(levels.size)
        np.add.at(counts, codes, np.concatenate([self.counts, other.counts]))
        np.add.at(weights, codes, np.concatenate([self.weights, other.weights]))
        return type(self)(levels, counts, weights, self.holes.merge(other.holes))


def _of_holes(holes: Mask, weights: Array | None, Y: Array | None) -> Totals:
    count = int(holes.sum())
    return Totals.of(count, None if weights is None else weights[holes], None if Y is None else Y[:, holes])


def _merged(some: tuple[Moments, ...], others: tuple[Moments, ...]) -> tuple[Moments, ...]:
    return tuple(one.merge(other) for one, other in zip(some, others, strict=True))
