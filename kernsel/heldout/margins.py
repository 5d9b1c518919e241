"""How far predictions of a regression may leave the range of the training targets, by held-out rows that did.

A fit without a fold has seen targets from ``low`` to ``high``, and its outputs are kept in between. Where one of them
would go further, the target that was held out tells whether that is right. With a margin m outputs go up to
``high + m (high - low)``; the margin is the least of those whose mean held-out loss is least. Both ends of the range
have their own. On most tables it is 0: outputs beyond the range are wrong more often than right. Where the target is
nearly linear in a feature it is not.

New rows are more than those of a fold, and some lie further out: outputs of theirs may go ``FURTHER`` times as far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kernsel.folds.partition import Partition
from kernsel.protocols import Loss
from kernsel.types import Array

MARGINS = (0.0, 0.0625, 0.125, 0.25, 0.5, 1.0)
"""Those that are compared, in widths of the range."""

FURTHER = 2.0
"""Rows to predict are many, and some of them lie further out than those that are held out."""

WORTH = 0.005
"""A margin lowers the mean held-out loss by this share of it at least: else it rests on next to nothing."""


def margins_of(deals: Sequence[Partition], loss: Loss, outputs: Sequence[Array]) -> Array | None:
    """Return how far outputs may be below and above the range of the targets, in widths of the range.

    Parameters
    ----------
    outputs : sequence of (k, n) arrays
        Held-out outputs on each deal, or on the first ones, none of them clipped.

    Returns
    -------
    (2, k) array or None
        None for not at all.
    """
    if not deals[0].clip:
        return None

    def losses(margins: Array) -> Array:
        wider = [replace(rows, margins=margins) for rows in deals[: len(outputs)]]
        values = [loss.value(rows.Y, rows.clipped_apart(F)) for rows, F in zip(wider, outputs, strict=True)]
        return np.asarray(np.mean([rows.mean(each) for rows, each in zip(wider, values, strict=True)], axis=0))

    found = np.zeros((2, len(outputs[0])))
    for end, here in enumerate(np.eye(2)[:, :, None] * np.ones_like(found)):
        compared = [losses(margin * here) for margin in MARGINS]
        least = np.argmin(compared, axis=0)  # of equal ones the first: the least margin
        worth = np.min(compared, axis=0) <= (1.0 - WORTH) * compared[0]
        found[end] = np.where(worth, FURTHER * np.take(MARGINS, least), 0.0)
    return found if found.any() else None


def describe_margins(margins: Array) -> str:
    """Return margins (2, k) in words."""
    ends = zip(("below", "above"), 100 * margins.max(axis=1), strict=True)
    sides = " and ".join(f"{share:.3g} % of it {where}" for where, share in ends if share)
    by = f"{'up to ' * (margins.shape[1] > 1)}{sides}"
    return (
        f"predictions may leave the range of the training target by {by}, as held-out ones are nearer to the truth so"
    )
