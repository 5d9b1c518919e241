"""Ranges of held-out losses, from ranges of held-out outputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernsel.folds.partition import Partition
from kernsel.protocols import Loss
from kernsel.types import Array, Indices, Mask

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
    sharp : (t,) array of bool
        Whether the interval is as narrow as the curvature of the losses makes it.
    """

    low: Array
    high: Array
    expected: Array
    refits: Indices
    sharp: Mask


def range_losses(loss: Loss, Y: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Return the least and largest loss, (k, L, n), over outputs from ``low`` to ``high (k, L, n)``.

    A loss that is convex in the output has its maximum over an interval at an end, and its minimum there or where it is
    least at all: at the target of a regression. The losses of classes fall or rise throughout.

    Parameters
    ----------
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


def least_between(rows: Partition, loss: Loss, f: Array, low: Array, high: Array) -> Array:
    """Return a lower bound (L - 1,) of the mean held-out loss for all lambda between each two, rounding included.

    Outputs are interpolated ones plus something in an interval. The loss of interpolated ones is convex: with the means
    a, m, b at both ends and half way it is at least ``min(m, 2 m - b)`` in the first half and ``min(m, 2 m - a)`` in
    the second one. What an interval takes off a convex loss is most at the ends. A row whose outputs may be clipped, or
    are unbounded, counts with its least loss.

    Parameters
    ----------
    f : (k, L, n) array
        Held-out outputs at each lambda.
    low, high : (k, L - 1, n) array
        The ends of intervals around interpolated outputs.
    """
    low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    first, second = f[:, :-1], f[:, 1:]
    lower, upper = np.minimum(first, second), np.maximum(first, second)
    whole = rows.clipped(lower + low), rows.clipped(upper + high)
    bounded = np.isfinite(low) & np.isfinite(high) & (whole[0] == lower + low) & (whole[1] == upper + high)
    least, _ = range_losses(loss, rows.Y, *whole)
    ends = ((lower, lower + high), (upper + low, upper))
    taken = [
        loss.values(rows.Y, of) - range_losses(loss, rows.Y, *(np.where(bounded, each, of) for each in end))[0]
        for of, end in zip((lower, upper), ends, strict=True)
    ]
    a, m, b = (
        rows.mean(np.where(bounded, loss.values(rows.Y, each) - np.maximum(*taken), least).mean(axis=0))
        for each in (first, 0.5 * (first + second), second)
    )
    slack = 4.0 * ROUNDING * rows.n * (np.abs(a) + np.abs(m) + np.abs(b))
    return np.asarray(np.minimum(m, 2.0 * m - np.maximum(a, b)) - slack)
