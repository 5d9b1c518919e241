"""The square loss with low-rank features in memory: see ``paths.routes`` for the ways to held-out outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kernsel.numerics.blocks.sums import Sums
from kernsel.numerics.runtime.once import once
from kernsel.numerics.square import heldout, spectral
from kernsel.paths import routes
from kernsel.paths.outputs import HeldOut
from kernsel.paths.square import HeldSquarePath
from kernsel.representation.features import Features
from kernsel.types import Array, Mask


class FeaturesSquarePath(HeldSquarePath):
    """The square loss in the coordinates of low-rank features."""

    representation: Features

    @once
    def route(self) -> routes.Square:
        """The way to held-out outputs."""
        return routes.square_in_features(self.sizes)

    @once
    def _products(self) -> tuple[Array, Array]:
        """Weighted features, with the column of a bias, and their products."""
        Z = self.representation.weighted
        if not self.bias:
            return Z, self.representation.products
        Z = np.column_stack([Z, np.sqrt(self.rows.s)])
        return Z, Z.T @ Z

    def _coordinates(self, shape: tuple[int, ...]) -> Array:
        return np.zeros((*shape, 0))  # no update reads any

    def _without_folds(self, which: Sequence[int] | None) -> HeldOut:
        rows, lams = self.rows, self.lams if which is None else self.lams[list(which)]
        if self.route == "products":
            f, status = heldout.heldout_features(*self._products, int(self.bias), self._targets, lams, rows.folds)
            return HeldOut.of(f / self._root, status, exact=True)
        f, norms, status = self._by_spectrum(lams)
        return replace(HeldOut.of(f / self._root, status, exact=True), norms=norms)

    def _fit_on(self, kept: Mask, lams: Array) -> Array:
        rows, root = self.rows, np.sqrt(self.rows.s[kept])
        Z = self.representation.matrix(self.bias)[kept] * root[:, None]
        return spectral.weights(Z, int(self.bias), rows.Y[:, kept] * root, rows.s[kept].sum() * lams)

    def _outputs(self, x: Array, rows: slice) -> Array:
        return np.asarray(x @ self.representation.matrix(self.bias)[rows].T)

    @once
    def sums(self) -> Sums:
        """The sums over all rows that fits are made of."""
        Y = np.vstack([self._targets, np.ones(self.rows.n) * self._root])
        return Sums(self.representation.products, Y @ self.representation.weighted, Y @ Y.T)

    def _solution(self, k: int) -> Array:
        return self.sums.solve(self.bias, self.rows.total * self.lams[k : k + 1])[:, 0]

    def _prepare_refits(self) -> None:
        _ = self._products

    def _without(self, fold: int, lam: float) -> Array:
        rows, (Z, G), Y = self.rows, self._products, self._targets
        place = slice(rows.starts[fold], rows.starts[fold + 1])
        gone = Z[place]
        right = Z.T @ Y.T - gone.T @ Y[:, place].T
        ridges = np.array([rows.left[fold] * lam])
        return spectral.solve_weights(G - gone.T @ gone, right, int(self.bias), ridges)[:, 0]
