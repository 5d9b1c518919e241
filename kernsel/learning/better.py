"""What else is learnt from a sum of kernels, such as relevances together: taken where it is better on unseen rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from kernsel.errors import SelectionError
from kernsel.folds.partition import Partition
from kernsel.learning.fits import fit_ridges, is_less, outputs_at, score_ridges
from kernsel.learning.summed import LearntSum
from kernsel.numerics.runtime.threads import share_each
from kernsel.protocols import Learner
from kernsel.types import Array, Indices

LOWER = 0.95
"""What else is learnt is tried on unseen rows where it lowers the leave-one-out loss to this share: with less to gain
the test error was seldom lower, and to find out takes time."""

SEEN = 500
"""At most so many of the rows that aren't held out are learnt on to find out."""


class Learning(Protocol):
    """Learns another sum on rows, from one that was learnt on them."""

    def __call__(self, rows: Partition, apart: LearntSum, learner: Learner, seed: int) -> LearntSum:
        """Return the other sum."""


def learn_if_better(
    rows: Partition, apart: LearntSum, learner: Learner, blocks: Sequence[Indices], learn: Learning, seed: int = 0
) -> LearntSum:
    """Return what else is learnt from a sum, such as relevances together, if it is better on unseen rows; else the sum.

    Both are learnt without a block of rows, which are then predicted: the mean loss of such rows must be lower by a
    standard error of the difference.

    Parameters
    ----------
    rows : Partition
        Each in a fold of its own.
    apart : LearntSum
    learner : Learner
        Of the square loss.
    blocks : sequence of arrays
        The rows of each block.
    learn : callable
        Learns the other sum.
    seed : int
        Of the rows that are learnt on.
    """
    try:
        found = learn(rows, apart, learner, seed)
        other, before = (score_ridges(rows, each.kernel, learner, [each.ridge])[1][0] for each in (found, apart))
        if not other < LOWER * before:
            return apart
        each = share_each(lambda block: _unseen(rows, apart, learner, np.sort(block), learn, seed), blocks)
        own, theirs, s = np.concatenate(list(each), axis=1)
    except SelectionError:
        return apart  # without a fit on some rows nothing is known against it
    return found if is_less(own, theirs, s) else apart


def _unseen(rows: Partition, apart: LearntSum, learner: Learner, held: Indices, learn: Learning, seed: int) -> Array:
    """Return losses of held-out rows (m,) with the other sum and the one before, learnt anew, and their weights."""
    others = np.random.default_rng((seed, held[0])).permutation(np.setdiff1d(np.arange(rows.n), held))[:SEEN]
    seen = rows.taken(np.sort(others), np.arange(others.size + 1))
    anew = apart.again(seen, learner, apart.priors, seed)
    X, Y = rows.X[held], np.ascontiguousarray(rows.Y[:, held])

    def losses_of(learnt: LearntSum) -> Array:
        F = seen.clipped(outputs_at(fit_ridges(seen, learnt.kernel, learner, [learnt.ridge]), 0, X))
        return np.asarray(learner.loss.value(Y, F).mean(axis=0))

    return np.array([losses_of(learn(seen, anew, learner, seed)), losses_of(anew), rows.s[held]])
