"""The square loss with low-rank features that are never held together: see ``representation.stream``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from kernsel.errors import IncompatibleError
from kernsel.folds.partition import Partition
from kernsel.numerics.blocks.costs import HELD_BYTES, PIECE_BYTES
from kernsel.numerics.blocks.sums import Sums
from kernsel.numerics.runtime.once import once
from kernsel.paths.base import Path
from kernsel.paths.outputs import Fits, HeldOut, LeftOver
from kernsel.paths.square import SquarePath
from kernsel.representation.blocks import Blocks
from kernsel.representation.stream import Stream
from kernsel.types import Array, Indices


class BlocksSquarePath(SquarePath):
    """The square loss from products of features over segments of rows."""

    representation: Blocks
    held_bytes, piece_bytes = HELD_BYTES, PIECE_BYTES
    """Room for the held-out outputs of all rows, and of a piece of them: set before any are asked."""

    @property
    def _stream(self) -> Stream:
        return self.representation.stream

    @once
    def fits(self) -> Fits:
        f, status = self._stream.fits(self.lams, self.bias)
        return Fits(np.zeros((*f.shape[:2], 0)), f, np.tile(status, (len(f), 1)))

    def exact(self, which: Sequence[int] | None = None) -> HeldOut:
        lams = self.lams if which is None else self.lams[list(which)]
        held = self._stream.heldout if self.rows is self.problem.rows else self._stream.one_by_one
        return HeldOut.of(*held(lams, self.bias), exact=True)

    def pieces(self) -> Iterator[tuple[int, Path]]:
        rows, of_row = self.rows, 8 * len(self.rows.Y) * self.lams.size
        if rows is not self.problem.rows or rows.n * of_row <= self.held_bytes:
            return
        w, status = self._stream.without_folds(self.lams, self.bias)
        size = max(1, self.piece_bytes // of_row)
        for fold, (lo, hi) in enumerate(pairwise(rows.starts.tolist())):
            for start in range(lo, hi, size):
                piece = rows.piece(fold, slice(start, min(start + size, hi)))
                yield fold, _Piece(self, piece, w[fold : fold + 1], status)

    def left_over(self) -> LeftOver:
        return LeftOver.of(*self._stream.energies(self.bias), self.rows.n, self.rows.total * self.lams)

    def _series(self, order: int) -> tuple[Array, Array, Indices]:
        self.need_whole_folds()
        self._need_segments()
        f, rho = self._stream.influence(self.lams, max(order, 1), self.bias)
        return f, rho.max(axis=0), np.zeros(f.shape[:2], np.int64)

    def _need_segments(self) -> None:
        if self.rows is not self.problem.rows:
            raise IncompatibleError(
                "features that are computed block by block leave single rows out of the fits' outputs only: use the "
                "outputs of newton_step"
            )

    @property
    def sums(self) -> Sums:
        """The sums over all rows that fits are made of."""
        return self._stream.whole

    def _solution(self, k: int) -> Array:
        return self._stream.solution(None, self.lams[k], self.bias)

    def _refitted(self, k: int) -> Array:
        self._need_segments()
        folds = range(self.rows.left.size)
        return np.stack([self._stream.solution(fold, self.lams[k], self.bias) for fold in folds])


class _Piece(BlocksSquarePath):
    """Neighbouring rows of a fold of a path.

    Parameters
    ----------
    w : (1, k, L, .) array
        Weights of the fits without the fold, a bias last.
    status : (L,) array
        The worst one over all folds.
    """

    def __init__(self, path: BlocksSquarePath, rows: Partition, w: Array, status: Indices) -> None:
        super().__init__(path.problem, path.representation, path.learner, path.lams, rows)
        self._w, self._status = w, status

    def exact(self, which: Sequence[int] | None = None) -> HeldOut:
        taken = slice(None) if which is None else list(which)
        f = self._stream.outputs(self._w[:, :, taken], self.rows.X, self.rows.starts)
        return HeldOut.of(f, self._status[taken], exact=True)
