"""Quantiles of numbers that are in parts, exactly: digit by digit, from the weights of the numbers that begin alike.

As unsigned integers in the order of the numbers, 64 bits are four digits. A pass over the parts sums up the weight of
the numbers for each value of the next digit, and that tells which value the quantile has.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from kernsel.types import Array

Keys = npt.NDArray[np.uint64]

DIGIT = 16
"""Bits of a digit."""

Count = Callable[[int, int], Array]
"""From a number of digits and their value, the weights (2^16,) of the numbers that begin so, by their next digit."""


def count_next(values: Array, s: Array, digits: int, beginning: int) -> Array:
    """Return the weights (2^16,) of numbers (n,) of weights s (n,) by their next digit, of those that begin so."""
    keys = _keys(values)
    if digits:
        begins = keys >> np.uint64(64 - DIGIT * digits) == np.uint64(beginning)
        keys, s = keys[begins], s[begins]
    places = (keys >> np.uint64(64 - DIGIT * (digits + 1))) & np.uint64(2**DIGIT - 1)
    return np.asarray(np.bincount(places.astype(np.int64), s, minlength=2**DIGIT), np.float64)


def find_quantile(count: Count, share: float, more: bool) -> float:
    """Return the least number that this share of the weight is at or below, or ``more`` than that.

    Parameters
    ----------
    count : callable
        The sum over parts of ``count_next``.
    """
    before = goal = 0.0
    beginning = 0
    for digits in range(64 // DIGIT):
        sums = before + np.cumsum(count(digits, beginning))
        if not digits:
            goal = share * sums[-1]
        place = int(np.searchsorted(sums, goal, side="right" if more else "left"))
        place = min(place, int(np.searchsorted(sums, sums[-1])))
        before = float(sums[place - 1]) if place else before
        beginning = (beginning << DIGIT) | place
    return _number(beginning)


def _keys(values: Array) -> Keys:
    """Return integers in the order of the numbers: all bits of negative ones are turned, of others the sign's."""
    bits = np.ascontiguousarray(values + 0.0).view(np.uint64)  # one zero
    negative = bits >> np.uint64(63) == 1
    return np.where(negative, ~bits, bits | np.uint64(2**63))


def _number(key: int) -> float:
    bits = key ^ 2**63 if key >> 63 else key ^ (2**64 - 1)
    return float(np.array([bits], np.uint64).view(np.float64)[0])
