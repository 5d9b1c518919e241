"""Probabilities of Venn and Abers (Vovk & Petej 2014): isotonic fits with the new row as 0 and as 1.

With ``p_0(f)`` and ``p_1(f)``, the values at f of the isotonic regressions of the held-out outputs and one more row of
output f and class 0 or 1, one of the two is calibrated whatever the distribution. The probability that is told is
``p = p_1 / (1 - p_0 + p_1)``, of the least loss in the worst case. It is the same for all f between two neighbours
among the held-out outputs, and never falls.

All of them cost about as much as two isotonic fits: in the fit to the rows below f, and in that to the rows above it,
runs of equal value are kept as lists that begin at f; the new row is merged with as many of them as are out of order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kernsel.heldout.counts import as_counts
from kernsel.types import Array


@dataclass(frozen=True)
class VennAbers:
    """A step function of the output.

    Parameters
    ----------
    f : tuple of u floats
        Held-out outputs, ascending.
    at, between : tuples of u and u + 1 floats
        Probabilities of these outputs, and of those below the first, between two, and above the last.
    """

    f: tuple[float, ...]
    at: tuple[float, ...]
    between: tuple[float, ...]

    def __call__(self, f: Array) -> Array:
        """Return the probabilities of outputs of any shape."""
        known, at, between = (np.asarray(each) for each in (self.f, self.at, self.between))
        place = np.searchsorted(known, f, "left")
        here = np.minimum(place, known.size - 1)
        return np.asarray(np.where(known[here] == f, at[here], between[place]))


class _Run(NamedTuple):
    """Rows of one value in an isotonic fit: their sum, their weight, and the place of the next run."""

    total: float
    weight: float
    next: int


def venn_abers(f: Array, y: Array, s: Array) -> VennAbers:
    """Return the probabilities of Venn and Abers.

    Parameters
    ----------
    f, y, s : (n,) arrays
        Held-out outputs, classes as -1 and +1, and weights: counts if all are whole numbers, else only their ratios
        count.
    """
    s = as_counts(s)
    known, place = np.unique(f, return_inverse=True)
    weights = np.bincount(place, s).tolist()
    totals = np.bincount(place, s * (y > 0)).tolist()
    u = known.size
    above = _runs(totals, weights, range(u - 1, -1, -1), 1, rising=True)
    below = _runs(totals, weights, range(u), -1, rising=False)

    def value(total: float, weight: float, left: int, right: int) -> float:
        while True:
            if right < u and total * above[right].weight >= above[right].total * weight:
                run = above[right]
                right = run.next
            elif left >= 0 and below[left].total * weight >= total * below[left].weight:
                run = below[left]
                left = run.next
            else:
                return total / weight
            total, weight = total + run.total, weight + run.weight

    def merged(total: float, weight: float, left: int, right: int) -> float:
        p0, p1 = (value(total + new, weight + 1.0, left, right) for new in (0.0, 1.0))
        return p1 / (1.0 - p0 + p1)

    at = tuple(merged(totals[j], weights[j], j - 1, j + 1) for j in range(u))
    between = tuple(merged(0.0, 0.0, j - 1, j) for j in range(u + 1))
    return VennAbers(tuple(known.tolist()), at, between)


def _runs(totals: Sequence[float], weights: Sequence[float], order: range, step: int, rising: bool) -> list[_Run]:
    """Return the first run of the isotonic fit to the rows from each one on, in a direction."""
    runs = [_Run(0.0, 0.0, 0)] * len(totals)
    for j in order:
        total, weight, after = totals[j], weights[j], j + step
        while 0 <= after < len(totals):
            run = runs[after]
            gap = total * run.weight - run.total * weight
            if (gap if rising else -gap) < 0:
                break
            total, weight, after = total + run.total, weight + run.weight, run.next
        runs[j] = _Run(total, weight, after)
    return runs
