"""Weights of held-out rows as counts of rows, and targets of probabilities inside of 0 and 1 (Platt 1999)."""

from __future__ import annotations

import numpy as np

from kernsel.types import Array


def as_counts(s: Array) -> Array:
    """Return weights (n,) as counts of rows: whole ones as they are, others scaled to a mean of 1."""
    return s if (s == np.round(s)).all() else s / s.mean()


def platt_targets(Y: Array, s: Array) -> Array:
    """Return ``(N_+ + 1) / (N_+ + 2)`` for the rows of each class and ``1 / (N_- + 2)`` for the others, (k, n).

    They lie inside of 0 and 1, so that there is a minimum where classes are separated, too.

    Parameters
    ----------
    Y : (k, n) array
        Classes as -1 and +1.
    s : (n,) array
        Counts of the rows, whose sums are ``N_+`` and ``N_-``.
    """
    plus = ((Y > 0) @ s)[:, None]
    return np.asarray(np.where(Y > 0, (plus + 1) / (plus + 2), 1 / (s.sum() - plus + 2)))
