"""Standard errors over folds, and folds in blocks where one fold at a time would be too slow."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

BLOCKS = 20
"""More folds than this (leave one out has n) are put together in so many blocks of like composition."""


def corrected_error(values: Array, held: float) -> float:
    """Return the standard error of a mean over random splits, whose training rows overlap.

    With R splits, their standard deviation s, and ``held`` rows to test on for each one to train on,
    ``se^2 = (1/R + held) s^2`` (Nadeau & Bengio 2003, Section 3.3): more splits of the same rows don't make it vanish.

    Parameters
    ----------
    values : (R,) array
    held : float

    Returns
    -------
    float
        NaN for fewer than two splits.
    """
    return math.sqrt(1 / values.size + held) * float(values.std(ddof=1)) if values.size > 1 else math.nan


def standard_error(values: Array, starts: Indices, s: Array) -> Array:
    """Return the standard error of weighted means, from how they differ between folds.

    With the means ``mu_j`` and weights ``W_j`` of t folds, ``W = sum_j W_j`` and the mean ``mu`` of all rows,

        se^2 = (1/t) sum_j (mu_j - mu)^2 / (W / W_j - 1),

    the jackknife that leaves out one fold at a time, for folds of unequal weight (Busing, Meijer & van der Leeden
    1999). For equal folds it is the standard deviation of the fold means over the root of t.

    Parameters
    ----------
    values : (..., n) array
        Sorted by fold.
    starts : (t + 1,) array
        Bounds of the folds; rows beyond the last are left out.
    s : (n,) array
        Weights of the rows.

    Returns
    -------
    (...) array
        NaN if there is one fold only.
    """
    held = int(starts[-1])
    weights = np.add.reduceat(s[:held], starts[:-1])
    if weights.size == 1:
        return np.full(values.shape[:-1], np.nan)
    with np.errstate(over="ignore", invalid="ignore"):  # the outputs of a fit that failed may be infinite
        sums = np.add.reduceat(values[..., :held] * s[:held], starts[:-1], axis=-1)
        mean = sums.sum(axis=-1, keepdims=True) / weights.sum()
        variance = ((sums / weights - mean) ** 2 / (weights.sum() / weights - 1)).mean(axis=-1)
        return np.asarray(np.sqrt(variance))


def blocks_of(starts: Indices) -> Indices:
    """Return the block of each row that is held out, (starts[-1],): its fold, or every 20th fold together.

    Folds are often dealt class by class; neighbours in one block would be of one class.
    """
    folds = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return folds % BLOCKS


def jackknife(statistic: Callable[[Indices], float], starts: Indices, s: Array) -> float | None:
    """Return the standard error of a statistic of the held-out rows by leaving out one block of folds at a time.

    With ``h_j = W / W_j`` and ``theta_(j)`` from all blocks but j, the pseudo-values are
    ``h_j theta - (h_j - 1) theta_(j)``, and of these `standard_error` has the variance. For a mean it is the same.

    Parameters
    ----------
    statistic : callable
        From the numbers of the rows to use.
    starts : (t + 1,) array
        Bounds of the folds.
    s : (n,) array
        Weights of the rows.

    Returns
    -------
    float or None
        None if the statistic isn't finite without some block, or if there is one fold only.
    """
    blocks, s = blocks_of(starts), s[: starts[-1]]
    if not blocks.any():
        return None
    h = s.sum() / np.bincount(blocks, s)
    without = np.array([statistic(np.flatnonzero(blocks != block)) for block in range(len(h))])
    pseudo = h * statistic(np.arange(len(blocks))) - (h - 1) * without
    if not np.isfinite(pseudo).all():
        return None
    centre = (pseudo / h).sum()
    return math.sqrt(((pseudo - centre) ** 2 / (h - 1)).mean())
