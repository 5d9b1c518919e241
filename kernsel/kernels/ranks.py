"""Ranks of features: a feature of heavy tails, or with gaps, says more by the share of rows below it than by its value.

The rank of a value is read off m quantiles of the rows that they are taken of, at equal steps of probability::

    u(x) = 2 sqrt(3) (F(x) - 1/2),  F through (q_j, j / (m - 1)), j = 0 ... m - 1, linear between

with about the mean 0 and the variance 1 on these rows, as an encoded feature has. Quantiles that are one value, of a
feature with ties, count as one, of their mean probability. Beyond the outer quantiles the rank stays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from kernsel.kernels.views import RANK, says_more
from kernsel.types import Array

QUANTILES = 16
"""Of each feature. With 8 to 100 the test errors of four tables hardly differed."""

DIGITS = 3
"""Quantiles are rounded, to be short in texts and files: to so many digits of the least difference of two of them."""

FEWEST = 3
"""A feature of fewer values has ranks that are a linear function of them."""


@dataclass(frozen=True, eq=False)
class Rank:
    """The rank of a feature, as a view of a column.

    Parameters
    ----------
    feature : int
    values, ranks : (m,) arrays
        The rank is linear between, and stays beyond.
    """

    ending: ClassVar[str] = RANK

    feature: int
    values: Array
    ranks: Array

    def __call__(self, x: Array) -> Array:
        """Return the ranks of values."""
        found: Array = np.interp(x, self.values, self.ranks)
        return found


def curve_of(quantiles: Array) -> tuple[Array, Array]:
    """Return the values, each once and ascending, and their ranks u, of the quantiles (m,) of a feature."""
    values, first, counts = np.unique(quantiles, return_index=True, return_counts=True)
    shares = (first + 0.5 * (counts - 1)) / max(quantiles.size - 1, 1)
    return values, 2.0 * math.sqrt(3.0) * (shares - 0.5)


def rounded(quantiles: Array) -> Array:
    """Return quantiles (m,) of ``DIGITS`` digits of their least difference, so that they stay apart."""
    gaps = np.diff(np.unique(quantiles))
    if not gaps.size:
        return quantiles
    found: Array = np.round(quantiles, int(np.clip(DIGITS - np.floor(np.log10(gaps.min())), -300, 17)))
    return found


def quantiles_of(X: ArrayLike, features: Sequence[int]) -> tuple[list[int], Array]:
    """Return which of some features have ranks that say something else than the values, and their quantiles (r, m)."""
    rows, steps = np.asarray(X, np.float64), np.linspace(0.0, 1.0, QUANTILES)
    found: list[int] = []
    quantiles: list[Array] = []
    for j in features:
        x = rows[:, j]
        q = rounded(np.quantile(x, steps))
        many = min(np.unique(x).size, np.unique(q).size) >= FEWEST
        if many and says_more(x, np.interp(x, *curve_of(q))):
            found.append(j)
            quantiles.append(q)
    return found, np.array(quantiles)
