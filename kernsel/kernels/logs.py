"""Logarithms of features: a feature that spans powers of ten says more by its logarithm than by its value.

Of a feature that is nowhere negative in its own units, encoded as x, with the place z of its 0::

    u(x) = (log max(x - z + c, m) - a) / b

c is 0 where all values are positive, else half of the least positive one; m is the least argument, a and b the mean and
the standard deviation of the logarithms, of the rows that they are taken of. So no logarithm of a number of 0 or less
is asked for beyond these rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from kernsel.kernels.views import LOG, says_more
from kernsel.types import Array

FEWEST = 8
"""A feature of fewer values has no logarithm."""

ROUGHLY = 1e-9
"""Of the largest distance from the place of 0: less is 0, as scaling rounds."""

DIGITS = 3
"""The shift is rounded, to be short in texts and files: to so many digits of the least argument."""

NUMBERS = 4
"""Of each logarithm."""


@dataclass(frozen=True, eq=False)
class Log:
    """The logarithm of a feature, as a view of a column.

    Parameters
    ----------
    feature : int
    shift : float
        c - z.
    least : float
        The least argument.
    centre, spread : float
        The mean and the standard deviation of the logarithms.
    """

    ending: ClassVar[str] = LOG

    feature: int
    shift: float
    least: float
    centre: float
    spread: float

    def __call__(self, x: Array) -> Array:
        """Return the logarithms of values."""
        found: Array = (np.log(np.maximum(x + self.shift, self.least)) - self.centre) / self.spread
        return found


def logs_of(X: ArrayLike, zeros: ArrayLike, features: Sequence[int]) -> list[Log]:
    """Return the logarithms of some features that are nowhere negative, where they say something else than the values.

    Parameters
    ----------
    X : (n, d) array
    zeros : (d,) array
        Where 0 is, in the units of the encoded features; NaN where a feature has no units.
    features : sequence of int
    """
    rows, places = np.asarray(X, np.float64), np.asarray(zeros, np.float64)
    found = []
    for j in features:
        x, zero = rows[:, j], float(places[j])
        t = x - zero
        rough = ROUGHLY * float(np.abs(t).max(initial=0.0))
        if not math.isfinite(zero) or t.min() < -rough or np.unique(x).size < FEWEST:
            continue
        c = 0.0 if t.min() > rough else 0.5 * float(t[t > rough].min())
        least = max(float(t.min()), 0.0) + c
        shift = round(c - zero, int(np.clip(DIGITS - math.floor(math.log10(least)), -300, 17)))
        logs = np.log(np.maximum(x + shift, least))
        if says_more(x, logs):
            found.append(Log(j, shift, least, float(logs.mean()), float(logs.std())))
    return found
