"""One kernel on a partition of the data: what every learner and every lambda shares."""

from __future__ import annotations

from typing import Any

from kernsel.folds.partition import Partition
from kernsel.kernels import Kernel
from kernsel.numerics.runtime.once import once
from kernsel.protocols import Loss
from kernsel.representation.base import Representation
from kernsel.representation.blocks import Blocks, needed
from kernsel.representation.features import Features, Landmarks, SharedFeatures
from kernsel.representation.gram import Gram
from kernsel.representation.ranks import Full, LowRank, Rank, Whole
from kernsel.representation.tiles import Tiles
from kernsel.types import Array

KEPT_BYTES = 2**28
"""What the last low-rank problems hold is kept within this, so that the leaders of a search are not made again."""


class Problem:
    """A kernel on rows, with what stands for its Gram matrix.

    Parameters
    ----------
    kernel : Kernel
        Without free parameters.
    rank : Full, Whole, LowRank, int or None
        The Gram matrix itself, for which None stands as well; the whole kernel in tiles; or features of a low rank, or
        just their number of landmarks.
    landmarks : Landmarks, optional
        Take these, which saves choosing some for this kernel.
    gram : (n, n) array, optional
        The Gram matrix, if it is there already.
    """

    def __init__(
        self,
        rows: Partition,
        kernel: Any,
        rank: Rank | int | None = None,
        landmarks: Landmarks | None = None,
        gram: Array | None = None,
    ) -> None:
        self.rows = rows
        self.kernel = kernel
        self.rank: Rank = LowRank(rank) if isinstance(rank, int) else rank or Full()
        self.landmarks = landmarks
        self.held: Gram | Features | Tiles
        """What stands for the Gram matrix, unless that is features in blocks."""
        if not isinstance(self.rank, LowRank):
            self.held = Tiles(rows, kernel) if isinstance(self.rank, Whole) else Gram(rows, kernel, gram)
        elif landmarks is None:
            self.held = Features(rows, kernel, self.rank)
        else:
            self.held = SharedFeatures(rows, kernel, self.rank, landmarks)

    @once
    def blocks(self) -> Blocks:
        """Low-rank features that are never held together."""
        assert isinstance(self.rank, LowRank)
        return Blocks(self.rows, self.kernel, self.rank)

    def representation(self, loss: Loss) -> Representation:
        """Return what stands for the Gram matrix where a loss is fitted."""
        in_blocks = isinstance(self.rank, LowRank) and needed(self.rows, self.rank, bool(loss.square))
        return self.blocks if in_blocks else self.held

    @property
    def gram(self) -> Array:
        """Gram matrix, (n, n)."""
        return self.held.gram

    @property
    def width(self) -> int:
        """Columns of the Gram matrix, or at most of the features."""
        return self.rank.width(self.rows.n)

    @property
    def lower_rank(self) -> int | None:
        """The number of landmarks where it is lower than that in force; None at the representation in force."""
        return None if self.landmarks is None else self.width

    @property
    def nbytes(self) -> int:
        """What the arrays hold that were computed so far."""
        return sum(each.nbytes for each in list(vars(self).values()) if isinstance(each, Representation))


class Problems:
    """The last low-rank problems of a search with all that they know, as long as there is room.

    They belong to the search, not to the rows that they refer to: when it is done, they are gone. What a problem knows
    is the same whenever it is computed, so that results don't depend on what is kept.

    Parameters
    ----------
    room : int
        Bytes that their arrays may take together.
    """

    def __init__(self, room: int = KEPT_BYTES) -> None:
        self.room = room
        self.kept: dict[tuple[Partition, Kernel, Rank], Problem] = {}

    def on(self, rows: Partition, kernel: Kernel, rank: Rank) -> Problem:
        """Return the problem of a kernel: the one that is kept, if there is one."""
        if isinstance(rank, Full):  # a Gram matrix is large, and quickly made beside what follows from it
            return Problem(rows, kernel)
        problem = self.kept.pop((rows, kernel, rank), None) or Problem(rows, kernel, rank)
        self.kept[rows, kernel, rank] = problem
        others = list(self.kept)[:-1]
        while others and sum(each.nbytes for each in list(self.kept.values())) > self.room:
            self.kept.pop(others.pop(0), None)  # another thread may have done so
        return problem
