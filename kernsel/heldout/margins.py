"""How far predictions of a regression may leave the range of the training targets, by held-out rows that did.

A fit without a fold has seen targets from ``low`` to ``high``, and its outputs are kept in between. Where one of them
would go further, the target that was held out tells whether that is right. With a margin m outputs go up to
``high + m (high - low)``; the margin is the least of those whose mean held-out loss is least. Both ends of the range
have their own. On most tables it is 0: outputs beyond the range are wrong more often than right. Where the target is
nearly linear in a feature it is not.

New rows are more than those of a fold, and some lie further out: outputs of theirs may go ``FURTHER`` times as far.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kernsel.folds.partition import Partition
from kernsel.protocols import Loss
from kernsel.types import Array

MARGINS = (0.0, 0.0625, 0.125, 0.25, 0.5, 1.0)
"""Those that are compared, in widths of the range."""

FURTHER = 2.0

WORTH = 0.005
"""A margin lowers the mean held-out loss by this share of it at least: else it rests on next to nothing."""


def margins_of(rows: Partition, loss: Loss, F: Array) -> Array | None:
    """Return how far outputs may be below and above the range of the targets, in widths of the range.

    Parameters
    ----------
    rows : Partition
    loss : Loss
    F : (k, n) array
        Held-out outputs, none of them clipped.

    Returns
    -------
    (2, k) array or None
        None for not at all.
    """
    if not rows.clip:
        return None
    found = np.zeros((2, len(F)))
    for end in range(2):
        losses = []
        for margin in MARGINS:
            margins = np.zeros_like(found)
            margins[end] = margin
            losses.append(rows.mean(loss.value(rows.Y, replace(rows, margins=margins).clipped_apart(F))))
        best = np.argmin(losses, axis=0)  # of equal ones the first, which is the least margin
        worth = np.min(losses, axis=0) <= (1.0 - WORTH) * losses[0]
        found[end] = np.where(worth, FURTHER * np.take(MARGINS, best), 0.0)
    return found if found.any() else None


def describe_margins(margins: Array) -> str:
    """Return margins (2, k) in words."""
    ends = zip(("below", "above"), 100 * margins.max(axis=1), strict=True)
    sides = " and ".join(f"{share:.3g} % of it {where}" for where, share in ends if share)
    by = f"{'up to ' * (margins.shape[1] > 1)}{sides}"
    return (
        f"predictions may leave the range of the training target by {by}, as held-out ones are nearer to the truth so"
    )
