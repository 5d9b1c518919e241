"""The square loss with low-rank features that are never held together: see ``representation.stream``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kernsel.errors import IncompatibleError
from kernsel.numerics.blocks.sums import Sums
from kernsel.numerics.runtime.once import once
from kernsel.paths.outputs import Fits, HeldOut, LeftOver
from kernsel.paths.square import SquarePath
from kernsel.representation.blocks import Blocks
from kernsel.representation.stream import Stream

Array = NDArray[np.float64]


class BlocksSquarePath(SquarePath):
    """The square loss from products of features over segments of rows."""

    representation: Blocks

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

    def left_over(self) -> LeftOver:
        return LeftOver.of(*self._stream.energies(self.bias), self.rows.n, self.rows.total * self.lams)

    def influence(self, order: int) -> HeldOut:
        f, rho = self._series(order)
        self.ratio = rho.max(axis=0)  # no term of the series changes it
        return HeldOut.of(f, np.zeros(f.shape[:2], np.int64), exact=False)

    @once
    def ratio(self) -> Array:
        """The largest ratio rho of the influence series over folds and outputs, (L,)."""
        return np.asarray(self._series(1)[1].max(axis=0))

    def _series(self, order: int) -> tuple[Array, Array]:
        self.need_whole_folds()
        self._need_segments()
        return self._stream.influence(self.lams, order, self.bias)

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
