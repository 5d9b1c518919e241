"""The square loss with a Gram matrix: see ``paths.routes`` for the ways to held-out outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kernsel.numerics.runtime.once import once
from kernsel.numerics.square import factored, krylov
from kernsel.numerics.square.spectral import Spectrum
from kernsel.paths import routes
from kernsel.paths.outputs import HeldOut
from kernsel.paths.square import HeldSquarePath
from kernsel.paths.updates import nystrom_influence
from kernsel.representation.gram import Gram
from kernsel.types import Array, Indices, Mask


class GramSquarePath(HeldSquarePath):
    """The square loss in the coordinates of the Gram matrix."""

    representation: Gram

    @once
    def route(self) -> routes.Square:
        """The way to held-out outputs."""
        return routes.square_in_gram(self.sizes)

    @property
    def _free(self) -> Array | None:
        """The direction of a bias."""
        return np.sqrt(self.rows.s) if self.bias else None

    def _coordinates(self, shape: tuple[int, ...]) -> Array:
        # The one update of the square loss in these coordinates reads f, and a bias.
        return self._coefficients(self.lams) if self.bias else np.zeros((*shape, 0))

    def _without_folds(self, which: Sequence[int] | None) -> HeldOut:
        chosen = list(range(self.lams.size)) if which is None else list(which)
        if self.route != "krylov":
            f, norms, status = self._direct(self.lams[chosen], self.route == "factors")
        else:
            all_f, all_norms, done = self._krylov
            f, norms, status = all_f[:, chosen], all_norms[chosen], np.zeros(len(chosen), np.int64)
            if (slow := ~done[chosen]).any():
                left = self.lams[chosen][slow]
                direct = self._direct(left, routes.few_ridges(self.rows, left.size, self.thresholds))
                f[:, slow], norms[slow], status[slow] = direct
        return replace(HeldOut.of(f / self._root, status, exact=True), norms=norms)

    @once
    def _krylov(self) -> tuple[Array, Array, Mask]:
        """Weighted held-out outputs, norms, and which converged, for all lambda, by conjugate gradients."""
        rows = self.rows
        return krylov.heldout_krylov(self.representation.weighted, self._targets, self.lams, rows.folds)

    def _direct(self, lams: Array, by_factors: bool) -> tuple[Array, Array, Indices]:
        """Return weighted held-out outputs (k, l, n), norms (l,) and statuses (l,) by factors or the spectrum."""
        rows = self.rows
        if not by_factors:
            return self._by_spectrum(lams)
        f, norms, status = factored.heldout_factored(
            self.representation.weighted, self._free, self._targets, lams, rows.folds
        )
        lost = status != 0  # a factor ends where the ridge is near rounding; the spectrum goes a little farther
        if lost.any():
            f[:, lost], norms[lost], status[lost] = self._by_spectrum(lams[lost])
            norms = np.where(np.isnan(norms), self._left_by(lams).norms, norms)
        return f, norms, status

    def nystrom_influence(self, share: float) -> HeldOut:
        return nystrom_influence(self, self.representation, share)

    def _fit_on(self, kept: Mask, lams: Array) -> Array:
        rows = self.rows
        ridges, root = rows.s[kept].sum() * lams, np.sqrt(rows.s[kept])
        if routes.few_ridges(rows, lams.size, self.thresholds):
            return self._solved(ridges, np.broadcast_to(kept, (lams.size, rows.n)).copy())
        weighted = self.representation.weighted[np.ix_(kept, kept)]
        spectrum = Spectrum.of_gram(weighted, root if self.bias else None)
        return self._with_intercepts(spectrum.coefficients(rows.Y[:, kept] * root, ridges) * root, kept)

    def _outputs(self, x: Array, rows: slice) -> Array:
        n = self.rows.n
        f = x[..., :n] @ self.representation.gram[rows].T
        return np.asarray(f + x[..., n:] if self.bias else f)

    def _solutions(self, which: Sequence[int]) -> Array:
        return self._coefficients(self.lams[list(which)])

    def _solution(self, k: int) -> Array:
        return self._coefficients(self.lams[k : k + 1])[:, 0]

    def _coefficients(self, lams: Array) -> Array:
        """Return coefficients (k, l, n), and the bias last, of fits on all rows."""
        rows, every = self.rows, np.ones(self.rows.n, np.bool_)
        if routes.few_ridges(rows, lams.size, self.thresholds):
            return self._solved(rows.total * lams, np.tile(every, (lams.size, 1)))
        a = self._spectrum.coefficients(self._targets, rows.total * lams)
        return self._with_intercepts(a * self._root, every)

    def _solved(self, ridges: Array, kept: Mask) -> Array:
        """Return solutions (k, q, .) of fits on rows of their own, ``kept (q, n)``, by a factorisation each."""
        a = factored.coefficients_factored(self.representation.weighted, self._free, self._targets, ridges, kept)
        a *= self._root
        fits = [self._with_intercepts(a[:, q : q + 1, each], each) for q, each in enumerate(kept)]
        return np.concatenate(fits, axis=1)

    def _with_intercepts(self, a: Array, kept: Mask) -> Array:
        """Spread coefficients of the ``kept`` rows over all, and put the bias behind them: residuals sum to 0."""
        rows = self.rows
        x = np.zeros((*a.shape[:2], rows.n + self.bias))
        x[:, :, np.flatnonzero(kept)] = a
        if self.bias:
            residuals = rows.Y[:, None, :] - x[:, :, :-1] @ self.representation.gram
            x[:, :, -1] = residuals[:, :, kept] @ rows.s[kept] / rows.s[kept].sum()
        return x

    def _refitted(self, k: int) -> Array:
        rows = self.rows
        if not routes.few_ridges(rows, 1, self.thresholds):
            return super()._refitted(k)
        kept = np.stack([rows.kept(fold) for fold in range(rows.left.size)])
        return self._solved(rows.left * self.lams[k], kept).swapaxes(0, 1)

    def _prepare_refits(self) -> None:
        _ = self._spectrum

    def _without(self, fold: int, lam: float) -> Array:
        rows, kept = self.rows, self.rows.kept(fold)
        place = slice(rows.starts[fold], rows.starts[fold + 1])
        a = self._spectrum.coefficients_without(self._targets, rows.left[fold] * lam, place)
        return self._with_intercepts((a * self._root)[:, None, kept], kept)[:, 0]
