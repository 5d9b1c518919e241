"""Held-out rows are predicted by relevances that are learnt without them: see ``kernsel.selection.unseen``."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kernsel.errors import SelectionError
from kernsel.folds.partition import Partition
from kernsel.journal import remember
from kernsel.kernels import Kernel
from kernsel.numerics.runtime.threads import share_each
from kernsel.paths import make_path
from kernsel.protocols import Learner
from kernsel.representation.problem import Problem
from kernsel.representation.ranks import Rank
from kernsel.search.candidate import Candidate, Key
from kernsel.selection.auto import ROWS, Candidates
from kernsel.selection.learnt import Learnt, square_loss
from kernsel.types import Array, Indices

BLOCKS, ANEW = 5, 500
"""More folds than this are left out together in so many blocks, where relevances are learnt anew, on so many rows."""

OFTEN = 4
"""From so many times the rows that relevances are learnt on, what they have seen of the others is negligible."""


@dataclass(frozen=True, eq=False)
class Relearning:
    """Predicts held-out rows by relevances that are learnt without them.

    Parameters
    ----------
    square : Learner
        Of the square loss, that relevances are learnt with.
    effort : {"quick", "normal", "thorough"}
    """

    learnt: Candidates
    square: Learner
    effort: str

    @classmethod
    def of(cls, learnt: Candidates, task: str, effort: str) -> Relearning:
        """Make it for a task."""
        return cls(learnt, square_loss(task), effort)

    def has_seen(self, kernel: Kernel, n: int) -> bool:
        """Tell whether a kernel's relevances have seen a share of n rows that counts."""
        known = self.learnt.find(kernel)
        return known is not None and n <= OFTEN * (known.rows or ROWS[self.effort])

    def freedom(self, kernel: Kernel) -> int:
        """Return how much was learnt for a kernel: 0 nothing, 1 relevances, 2 a metric."""
        known = self.learnt.find(kernel)
        return 0 if known is None else known.freedom

    def outputs(self, candidate: Candidate, rows: Partition, rank: Rank) -> Array:
        """Return the held-out outputs (k, n) of a candidate that has seen them.

        Raises
        ------
        SelectionError
            Without some fold there is no fit.
        """
        known = self.learnt.find(candidate.kernel)
        assert known is not None
        fold = np.repeat(np.arange(rows.left.size), np.diff(rows.starts))
        blocks = fold % BLOCKS if rows.left.size > BLOCKS and rows.training is None else fold
        numbers = range(int(blocks.max()) + 1)

        def without(block: int) -> Array:
            held = np.flatnonzero(blocks == block)
            kept = rows.kept(int(fold[held[0]]))
            kept[held] = False
            given = known, candidate.key, rows, rank, held, np.flatnonzero(kept)
            return remember("unseen", (self.square, *given), lambda: self._predicted(*given))

        F = np.zeros((len(rows.Y), rows.n))
        for block, found in zip(numbers, share_each(without, numbers), strict=True):
            F[:, np.flatnonzero(blocks == block)] = found
        return F

    def _predicted(self, known: Learnt, key: Key, rows: Partition, rank: Rank, held: Indices, others: Indices) -> Array:
        """Return the outputs (k, m) of held-out rows by relevances, and a fit, of the others."""
        _, fitted, lam = key
        whole, profile = replace(rows, training=None), known.profile  # a fold's own rows are said by number here
        seen = np.sort(np.random.default_rng((rows.seed, held[0])).permutation(others)[:ANEW])
        some = whole.taken(seen, np.arange(seen.size + 1))
        kernel = profile.anew(some, self.square)
        together = whole.taken(np.append(held, others), np.array([0, held.size]))
        problem = Problem(together, kernel.times(known.factor), rank.within(together.n))
        path = make_path(problem, fitted, [lam])
        found = path.exact()
        if found.failed[0] is not None:
            raise SelectionError(found.failed[0])
        return found.f[:, 0, : held.size]
