"""Paths of the square loss: from the spectrum of the representation, or from the products of low-rank features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kernsel.errors import IncompatibleError
from kernsel.numerics.runtime.jit import one_blas_thread, share_each
from kernsel.numerics.runtime.once import once
from kernsel.numerics.smooth import newton
from kernsel.numerics.square import factored, heldout, krylov, spectral
from kernsel.numerics.stability import Scan
from kernsel.paths.base import Fits, HeldOut, Path

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

FACTORED_ROWS = 300
"""Rows from which a few ridges are factorised; below, an eigendecomposition takes milliseconds."""

KRYLOV_ROWS, KRYLOV_SYSTEMS = 700, 100
"""Rows from which, and folds times outputs up to which, conjugate gradients beat an eigendecomposition."""


@dataclass(frozen=True, eq=False)
class LeftOver:
    """What fits of the square loss leave of the targets, in the coordinates of ``S^1/2``: see ``square.spectral``.

    The residual of direction j of the spectrum is ``ridge / (ev_j + ridge)`` times the targets' coordinate there, and
    the whole of it in the other directions; nothing is left of the direction of a bias, which is in neither.

    Parameters
    ----------
    share : (L, r) array
        ``ridge / (ev + ridge)``.
    squares : (k, r) array
        Of the targets' coordinates.
    beyond : (k,) array
        The targets' squared length in the other directions.
    outside : int
        The number of other directions.
    failed : list of L str or None
        Why a fit settles nothing.
    """

    share: Array
    squares: Array
    beyond: Array
    outside: int
    failed: list[str | None]

    @staticmethod
    def of(ev: Array, squares: Array, beyond: Array, n: int, ridges: Array) -> LeftOver:
        """Make it from how the targets of n rows spread over the spectrum: see ``spectral.energies``."""
        penalised, lost = np.isfinite(ev), ridges <= spectral.least_ridge(ev, n)
        share = spectral.shrinkage(ridges[:, None], ev[penalised])
        failed = [newton.REASONS[newton.SINGULAR] if each else None for each in lost]
        return LeftOver(share, squares[:, penalised], beyond, n - ev.size, failed)

    @property
    def directions(self) -> int:
        """The number of all directions."""
        return int(self.share.shape[1]) + self.outside


class SquarePath(Path):
    """The square loss: from the spectrum of the representation, or from the products of low-rank features."""

    @once
    def _by_products(self) -> bool:
        problem, r = self.problem, self.problem.width
        if problem.full:
            return False
        spectrum = 0.0 if problem.has_spectrum else 4.0 * self.rows.n * r**2 + 10.0 * r**3
        return heldout.products_are_cheaper(self.rows.starts, r, self.lams, spectrum)

    @property
    def _spectrum(self) -> tuple[Array, Array]:
        return self.problem.spectrum_with_bias if self.bias else self.problem.spectrum

    @once
    def _products(self) -> tuple[Array, Array]:
        """Weighted low-rank features, with the column of a bias, and their products."""
        if not self.bias:
            return self.problem.weighted, self.problem.products
        Z = np.column_stack([self.problem.weighted, np.sqrt(self.rows.s)])
        return Z, Z.T @ Z

    @property
    def _free(self) -> Array | None:
        """The direction of a bias."""
        return np.sqrt(self.rows.s) if self.bias else None

    @property
    def _root(self) -> Array | float:
        return 1.0 if self.rows.weights is None else np.sqrt(self.rows.s)

    def _by_krylov(self, lams: Array) -> bool:
        """Whether a large Gram matrix is only multiplied: with few folds, and no bias, for more than a few ridges."""
        problem, rows = self.problem, self.rows
        return (
            problem.full
            and not self.bias
            and rows.n >= KRYLOV_ROWS
            and rows.left.size * len(rows.Y) <= KRYLOV_SYSTEMS
            and not problem.has_spectrum
            and not factored.factors_are_cheaper(lams, rows.left)
        )

    def _by_factors(self, lams: Array) -> bool:
        """Whether so few ridges are wanted of so large a Gram matrix that each has a factorisation of its own."""
        problem, rows = self.problem, self.rows
        return (
            problem.full
            and rows.n >= FACTORED_ROWS
            and not problem.has_spectrum
            and factored.factors_are_cheaper(lams, rows.left)
        )

    @once
    def fits(self) -> Fits:
        f = spectral.outputs(*self._spectrum, self.rows.Y * self._root, self.rows.total * self.lams) / self._root
        # The one update of the square loss, in the coordinates of the Gram matrix, reads f, and a bias.
        x = self._coefficients(self.lams) if self.bias and self.problem.full else np.zeros((*f.shape[:2], 0))
        return Fits(x, f, np.zeros(f.shape[:2], np.int64))

    def exact(self, which: Sequence[int] | None = None) -> HeldOut:
        rows = self.rows
        lams = self.lams if which is None else self.lams[list(which)]
        if rows.training is not None:
            return self._trained(lams)
        Y = rows.Y * self._root
        if self._by_products:
            Z, G = self._products
            f, status = heldout.heldout_features(Z, G, int(self.bias), Y, lams, rows.starts, rows.total, rows.left)
        elif self._by_krylov(lams):
            f, _, done = self._krylov if which is None else self._krylov_of(lams)
            status = np.zeros(lams.size, np.int64)
            if not done.all():
                f = f.copy()
                f[:, ~done], status[~done] = self._without_folds(Y, lams[~done])
        else:
            f, status = self._without_folds(Y, lams)
        return HeldOut.of(f / self._root, status, exact=True)

    @once
    def _krylov(self) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Held-out outputs, norms, and which converged, for all lambda, by conjugate gradients."""
        return self._krylov_of(self.lams)

    def _krylov_of(self, lams: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        rows = self.rows
        Y = rows.Y * self._root
        return krylov.heldout_krylov(self.problem.weighted, Y, lams, rows.starts, rows.left, rows.total)

    def norms(self, which: Sequence[int]) -> Array:
        if self.rows.training is not None or not self._by_krylov(self.lams):
            return super().norms(which)
        _, found, done = self._krylov
        left = [k for k in which if not done[k]]
        found = found.copy()
        found[left] = super().norms(left)
        return found[list(which)]

    def _solutions(self, which: Sequence[int]) -> Array:
        return self._coefficients(self.lams[which]) if self.problem.full else super()._solutions(which)

    def left_over(self) -> LeftOver:
        """Return what the fits leave of the targets."""
        spread = spectral.energies(*self._spectrum, self.rows.Y * self._root)
        return LeftOver.of(*spread, self.rows.n, self.rows.total * self.lams)

    def _without_folds(self, Y: Array, lams: Array) -> tuple[Array, NDArray[np.int64]]:
        """Return held-out outputs and statuses by direct methods on the Gram matrix or the spectrum."""
        rows = self.rows
        if not self._by_factors(lams):
            return heldout.heldout_square(*self._spectrum, Y, lams, rows.starts, rows.total, rows.left)
        f, status = factored.heldout_factored(self.problem.weighted, self._free, Y, lams, rows.starts, rows.left)
        lost = status != 0  # a factor ends where the ridge is near rounding; the spectrum goes a little farther
        if lost.any():
            f[:, lost], status[lost] = heldout.heldout_square(
                *self._spectrum, Y, lams[lost], rows.starts, rows.total, rows.left
            )
        return f, status

    def _trained(self, lams: Array) -> HeldOut:
        """Held-out outputs of fits on rows of their own."""
        rows = self.rows
        f = np.zeros((len(rows.Y), lams.size, rows.n))
        matrix = self.problem.matrix(self.bias)
        for fold, (lo, hi) in enumerate(pairwise(rows.starts)):
            x = self._fit_on(rows.kept(fold), lams)
            f[:, :, lo:hi] = x[..., : matrix.shape[1]] @ matrix[lo:hi].T
            if self.bias and self.problem.full:
                f[:, :, lo:hi] += x[..., -1:]
        return HeldOut.of(f, np.zeros(f.shape[:2], np.int64), exact=True)

    def _fit_on(self, kept: NDArray[np.bool_], lams: Array) -> Array:
        """Return solutions (k, L, .) of fits on some rows."""
        rows = self.rows
        ridges = rows.s[kept].sum() * lams
        root = np.sqrt(rows.s[kept])
        Y = rows.Y[:, kept] * root
        if not self.problem.full:
            return spectral.weights(self.problem.matrix(self.bias)[kept] * root[:, None], int(self.bias), Y, ridges)
        if self._by_factors(lams):
            return self._solved(ridges, np.broadcast_to(kept, (lams.size, rows.n)).copy())
        spectrum = spectral.spectrum_of_gram(self.problem.weighted[np.ix_(kept, kept)], root if self.bias else None)
        return self._with_intercepts(spectral.coefficients(*spectrum, Y, ridges) * root, kept)

    def _coefficients(self, lams: Array) -> Array:
        """Return coefficients (k, L, n), and the bias last, of fits on all rows."""
        rows = self.rows
        if self._by_factors(lams):
            return self._solved(rows.total * lams, np.ones((lams.size, rows.n), np.bool_))
        a = spectral.coefficients(*self._spectrum, rows.Y * self._root, rows.total * lams)
        return self._with_intercepts(a * self._root, np.ones(rows.n, np.bool_))

    def _solved(self, ridges: Array, kept: NDArray[np.bool_]) -> Array:
        """Return solutions (k, q, .) of fits on rows of their own, ``kept (q, n)``, by a factorisation each."""
        Y = self.rows.Y * self._root
        a = factored.coefficients_factored(self.problem.weighted, self._free, Y, ridges, kept) * self._root
        fits = [self._with_intercepts(a[:, q : q + 1, each], each) for q, each in enumerate(kept)]
        return np.concatenate(fits, axis=1)

    def _with_intercepts(self, a: Array, kept: NDArray[np.bool_]) -> Array:
        """Spread coefficients of the ``kept`` rows over all, and put the bias behind them: residuals sum to 0."""
        rows = self.rows
        x = np.zeros((*a.shape[:2], rows.n + self.bias))
        x[:, :, np.flatnonzero(kept)] = a
        if self.bias:
            residuals = rows.Y[:, None, :] - x[:, :, :-1] @ self.problem.gram
            x[:, :, -1] = residuals[:, :, kept] @ rows.s[kept] / rows.s[kept].sum()
        return x

    def newton_step(self) -> HeldOut:
        return self.exact()

    def influence(self, order: int) -> HeldOut:
        f, rho = self._series(order)
        self.ratio = rho.max(axis=0)
        return HeldOut.of(f / self._root, np.zeros(f.shape[:2], np.int64), exact=False)

    def _ratio(self) -> Array:
        largest: Array = self._series(0)[1].max(axis=0)
        return largest

    def _series(self, order: int) -> tuple[Array, Array]:
        self._need_whole_folds()
        rows = self.rows
        return heldout.influence_square(
            *self._spectrum, rows.Y * self._root, self.lams, rows.starts, rows.total, rows.left, order
        )

    def _solution(self, k: int) -> Array:
        lams = self.lams[k : k + 1]
        if self.problem.full:
            return self._coefficients(lams)[:, 0]
        Z, G = self._products
        right = Z.T @ (self.rows.Y * self._root).T
        return spectral.solve_weights(G, right, int(self.bias), self.rows.total * lams)[:, 0]

    def _refitted(self, k: int) -> Array:
        folds = range(self.rows.left.size)
        if self._by_factors(self.lams[k : k + 1]):
            kept = np.stack([self.rows.kept(fold) for fold in folds])
            return self._solved(self.rows.left * self.lams[k], kept).swapaxes(0, 1)
        if self.rows.training is None:
            _ = self._spectrum if self.problem.full else self._products  # once, not by each thread
        with one_blas_thread():
            return np.stack(list(share_each(lambda fold: self._without(fold, self.lams[k]), folds)))

    def _without(self, fold: int, lam: float) -> Array:
        """Return the solution (k, .) without a fold."""
        rows = self.rows
        kept = rows.kept(fold)
        if rows.training is not None:
            return self._fit_on(kept, np.array([lam]))[:, 0]
        place = slice(rows.starts[fold], rows.starts[fold + 1])
        if not self.problem.full:
            Z, G = self._products
            Y, gone = rows.Y * self._root, Z[place]
            right = Z.T @ Y.T - gone.T @ Y[:, place].T
            ridges = np.array([rows.left[fold] * lam])
            return spectral.solve_weights(G - gone.T @ gone, right, int(self.bias), ridges)[:, 0]
        a = spectral.coefficients_without(*self._spectrum, rows.Y * self._root, rows.left[fold] * lam, place)
        return self._with_intercepts((a * self._root)[:, None, kept], kept)[:, 0]


class StreamedPath(Path):
    """The square loss from low-rank features that are never held together."""

    @property
    def _landmarks(self) -> tuple[Array, Array]:
        return self.problem.stream.features.points, self.problem.stream.features.T

    @property
    def lost(self) -> float:
        return self.problem.stream.sampled.lost

    @property
    def stability(self) -> Scan:
        return self.problem.stream.scan()

    def describe(self) -> str:
        return self.problem.stream.describe()

    @once
    def fits(self) -> Fits:
        f, status = self.problem.stream.fits(self.lams, self.bias)
        return Fits(np.zeros((*f.shape[:2], 0)), f, np.tile(status, (len(f), 1)))

    def exact(self, which: Sequence[int] | None = None) -> HeldOut:
        lams = self.lams if which is None else self.lams[list(which)]
        stream = self.problem.stream
        held = stream.heldout if self.rows is self.problem.rows else stream.one_by_one
        return HeldOut.of(*held(lams, self.bias), exact=True)

    def left_over(self) -> LeftOver:
        """Return what the fits leave of the targets."""
        spread = self.problem.stream.energies(self.bias)
        return LeftOver.of(*spread, self.rows.n, self.rows.total * self.lams)

    def newton_step(self) -> HeldOut:
        return self.exact()

    def influence(self, order: int) -> HeldOut:
        self._need_whole_folds()
        self._need_segments()
        f, rho = self.problem.stream.influence(self.lams, order, self.bias)
        self.ratio = rho.max(axis=0)
        return HeldOut.of(f, np.zeros(f.shape[:2], np.int64), exact=False)

    def _ratio(self) -> Array:
        _ = self.influence(1)
        return self.ratio

    def _need_segments(self) -> None:
        if self.rows is not self.problem.rows:
            raise IncompatibleError(
                "features that are computed block by block leave single rows out of the fits' outputs only: use the "
                "outputs of newton_step"
            )

    def _solution(self, k: int) -> Array:
        return self.problem.stream.solution(None, self.lams[k], self.bias)

    def _refitted(self, k: int) -> Array:
        self._need_segments()
        stream, folds = self.problem.stream, range(self.rows.left.size)
        return np.stack([stream.solution(fold, self.lams[k], self.bias) for fold in folds])
