"""Smooth losses with low-rank features in memory."""

from __future__ import annotations

from kernsel.numerics.smooth import enclosure_features, heldout_features, newton
from kernsel.numerics.square import leverage
from kernsel.paths.smooth_intervals import EnclosedSmoothPath
from kernsel.representation.features import Features
from kernsel.types import Array


class FeaturesSmoothPath(EnclosedSmoothPath):
    """A smooth loss in the coordinates of low-rank features."""

    representation: Features
    solver = newton.in_features
    step = heldout_features.newton_step
    series = heldout_features.influence
    enclose = enclosure_features.enclose
    between = enclosure_features.enclose_between

    @property
    def _matrix(self) -> Array:
        return self.representation.matrix(self.bias)

    @property
    def _width(self) -> int:
        return int(self._matrix.shape[1])

    def _leverages(self, d2: Array, ridge: float) -> Array:
        return leverage.leverages_in_features(self._matrix, int(self.bias), d2, ridge)
