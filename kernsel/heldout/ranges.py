"""Ranges of held-out losses, from ranges of held-out outputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernsel.folds.partition import Partition
from kernsel.protocols import Loss

Array = NDArray[np.float64]

ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
"""What one loss and its share in a sum may be off, relatively."""


@dataclass(frozen=True, eq=False)
class FoldRanges:
    """What each fold adds to a mean held-out loss: an interval that contains it, and an estimate.

    Parameters
    ----------
    low, high, expected : (t,) array
    refits : (t,) array of int
        Outputs that were refitted without the fold.
    """

    low: Array
    high: Array
    expected: Array
    refits: NDArray[np.int64]


def range_losses(loss: Loss, Y: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Return the least and largest loss, (k, L, n), over outputs from ``low`` to ``high (k, L, n)``.

    A loss that is convex in the output has its maximum over an interval at an end, and its minimum there or where it is
    least at all: at the target of a regression. The losses of classes fall or rise throughout.

    Parameters
    ----------
    loss : Loss
    Y : (k, n) array
        Targets.
    low, high : (k, L, n) array
    """
    at_low, at_high, at_nearest = (loss.values(Y, f) for f in (low, high, np.clip(Y[:, None, :], low, high)))
    return np.minimum(np.minimum(at_low, at_high), at_nearest), np.maximum(at_low, at_high)


def range_folds(rows: Partition, loss: Loss, low: Array, high: Array) -> tuple[Array, Array]:
    """Return the range (L, t) of what each fold adds to the mean held-out loss, rounding included.

    Parameters
    ----------
    rows : Partition
    loss : Loss
    low, high : (k, L, n) array
        Ranges of held-out outputs, which are clipped if the rows are.
    """
    least, largest = range_losses(loss, rows.Y, rows.clipped(low), rows.clipped(high))
    slack = ROUNDING * rows.n
    below, above = (add_by_fold(rows, each.mean(axis=0)) for each in (least, largest))
    return below - slack * np.abs(below), above + slack * np.abs(above)


def add_by_fold(rows: Partition, values: Array) -> Array:
    """Return what each fold adds to the weighted mean over held-out rows of ``values (..., n)``, (..., t)."""
    s, held = rows.s, rows.held
    return np.asarray(np.add.reduceat((values * s)[..., :held], rows.starts[:-1], axis=-1) / s[:held].sum())
