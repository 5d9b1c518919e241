"""Paths of the square loss, and those of them that one eigendecomposition serves."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from kernsel.numerics.runtime.once import once
from kernsel.numerics.runtime.threads import one_blas_thread, share_each
from kernsel.numerics.square import heldout, influence
from kernsel.numerics.square.spectral import Spectrum
from kernsel.paths.base import Path
from kernsel.paths.outputs import Enclosed, Fits, HeldOut, LeftOver
from kernsel.representation.base import Held
from kernsel.types import Array, Indices, Mask


class SquarePath(Path):
    """The square loss: a Newton step is exact."""

    def spectral(self, who: str) -> SquarePath:
        return self

    @abstractmethod
    def left_over(self) -> LeftOver:
        """Return what the fits leave of the targets."""

    def newton_step(self) -> HeldOut:
        return self.exact()

    @property
    def enclosed(self) -> Enclosed:
        f = self.exact().f
        return Enclosed(f, f, np.zeros((*f.shape[:2], self.rows.left.size), np.bool_))


class HeldSquarePath(SquarePath):
    """The square loss on a Gram matrix or features in memory, whose spectrum serves every lambda."""

    representation: Held

    @property
    def _spectrum(self) -> Spectrum:
        return self.representation.spectrum(self.bias)

    @property
    def _root(self) -> Array | float:
        return 1.0 if self.rows.weights is None else np.sqrt(self.rows.s)

    @property
    def _targets(self) -> Array:
        """Targets (k, n) in the coordinates of ``S^1/2``."""
        return np.asarray(self.rows.Y * self._root)

    @once
    def fits(self) -> Fits:
        f = self._spectrum.outputs(self._targets, self.rows.total * self.lams) / self._root
        return Fits(self._coordinates(f.shape[:2]), f, np.zeros(f.shape[:2], np.int64))

    @abstractmethod
    def _coordinates(self, shape: tuple[int, ...]) -> Array:
        """Return what updates of fits read of their solutions, (k, L, .)."""

    def left_over(self) -> LeftOver:
        return self._left_by(self.lams)

    def _left_by(self, lams: Array) -> LeftOver:
        spread = self._spectrum.energies(self._targets)
        return LeftOver.of(*spread, self.rows.n, self.rows.total * lams)

    def exact(self, which: Sequence[int] | None = None) -> HeldOut:
        if self.rows.updated:
            return self._without_folds(which)
        return self._trained(self.lams if which is None else self.lams[list(which)])

    @abstractmethod
    def _without_folds(self, which: Sequence[int] | None) -> HeldOut:
        """Return held-out outputs from what is known of all rows."""

    def _by_spectrum(self, lams: Array) -> tuple[Array, Array, Indices]:
        """Return weighted held-out outputs (k, l, n), norms (l,) and statuses (l,) from the spectrum."""
        rows = self.rows
        f, status = heldout.heldout_square(self._spectrum, self._targets, lams, rows.folds)
        return f, self._left_by(lams).norms, status

    def _trained(self, lams: Array) -> HeldOut:
        """Return held-out outputs of fits on rows of their own."""
        rows = self.rows
        f = np.zeros((len(rows.Y), lams.size, rows.n))
        for fold, (lo, hi) in enumerate(pairwise(rows.starts)):
            f[:, :, lo:hi] = self._outputs(self._fit_on(rows.kept(fold), lams), slice(lo, hi))
        return HeldOut.of(f, np.zeros(f.shape[:2], np.int64), exact=True)

    @abstractmethod
    def _fit_on(self, kept: Mask, lams: Array) -> Array:
        """Return solutions (k, l, .) of fits on some rows."""

    @abstractmethod
    def _outputs(self, x: Array, rows: slice) -> Array:
        """Return outputs (k, l, .) at some rows from solutions."""

    def _series(self, order: int) -> tuple[Array, Array, Indices]:
        self.need_whole_folds()
        f, rho = influence.influence_square(self._spectrum, self._targets, self.lams, self.rows.folds, order)
        return f / self._root, rho.max(axis=0), np.zeros(f.shape[:2], np.int64)

    def _refitted(self, k: int) -> Array:
        lam = float(self.lams[k])
        if self.rows.training is None:
            self._prepare_refits()  # once, not by each thread
            fit = self._without
        else:

            def fit(fold: int, lam: float) -> Array:
                return self._fit_on(self.rows.kept(fold), np.array([lam]))[:, 0]

        with one_blas_thread():
            return np.stack(list(share_each(lambda fold: fit(fold, lam), range(self.rows.left.size))))

    @abstractmethod
    def _prepare_refits(self) -> None:
        """Compute what all refits need."""

    @abstractmethod
    def _without(self, fold: int, lam: float) -> Array:
        """Return the solution (k, .) of the fit on all rows but those of a fold."""
