"""Gram matrices that come from elsewhere: whether one is symmetric, and the rows that stand for its rows."""

from __future__ import annotations

import numpy as np

from kernsel.errors import OptionError
from kernsel.types import Array

ASYMMETRIC = 1e-8
"""Of the largest value: what a matrix may differ from its transpose by rounding, for it is computed in any way."""

NEW_ROW = -1
"""What a row of kernel values has for its own number if it isn't one of the rows that a selection was given."""


def symmetric(K: Array, what: str) -> Array:
    """Return a matrix (n, n) that is symmetric but for rounding as the mean of itself and its transpose.

    Raises
    ------
    OptionError
        It is not symmetric.
    """
    off = np.abs(K - K.T).max(initial=0.0)
    if off > ASYMMETRIC * np.abs(K).max(initial=0.0):
        raise OptionError(f"{what} is not symmetric: values differ from those of the transpose by up to {off:.3g}")
    return 0.5 * (K + K.T)
