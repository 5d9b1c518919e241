"""Low-rank features of more rows than they would fit in memory for: see ``numerics.blocks.features``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernsel.errors import IncompatibleError, check_memory
from kernsel.folds.partition import Partition
from kernsel.kernels import Kernel
from kernsel.numerics.blocks import features as streaming
from kernsel.numerics.landmarks import uniform_landmarks
from kernsel.numerics.points import Points
from kernsel.numerics.runtime.once import once
from kernsel.numerics.square.spectral import above_rounding
from kernsel.numerics.stability import Scan
from kernsel.representation.base import OnLandmarks
from kernsel.representation.features import Features
from kernsel.representation.ranks import Factor, LowRank
from kernsel.representation.stream import Stream, segments_of
from kernsel.types import Array, Indices

PASSES = 2
"""Losses that take many passes over the rows may hold features of so many times the size."""


def needed(rows: Partition, rank: LowRank, square: bool) -> bool:
    """Say whether features of this rank are too large to be held for a loss, and products of the segments aren't."""
    r, room = rank.largest, rank.room
    if 8 * rows.n * r <= room.features * (1 if square else PASSES):
        return False
    return 8 * (len(segments_of(rows, room.runs)) - 1) * r**2 <= room.products


@dataclass(frozen=True, eq=False)
class SampledFeatures:
    """Features from landmarks that were chosen among some of the rows.

    Parameters
    ----------
    lost : float
        Share of the trace of the sampled rows' Gram matrix that the features leave out.
    chosen : (m,) array
        The rows, drawn at random.
    """

    features: streaming.Features
    lost: float
    chosen: Indices
    rank: LowRank

    @classmethod
    def of(cls, rows: Partition, kernel: Kernel, rank: LowRank) -> SampledFeatures:
        """Choose landmarks."""
        chosen = uniform_landmarks(rows.n, rank.room.sample * rank.largest, rows.seed)
        sample = rows.X[chosen]
        _, points, T, residual = rank.factor(kernel, sample, rows.seed)
        lost = residual / float(kernel.diag(sample).sum())
        return cls(streaming.Features(kernel, points, T, sample, rank.room.block), lost, chosen, rank)

    @property
    def nbytes(self) -> int:
        """What its arrays hold."""
        return self.features.T.nbytes

    def describe(self, n: int) -> str:
        """Return the representation of n rows in words."""
        return (
            f"rank {self.features.rank} of n = {n} in blocks of rows ({self.rank.describe()} of {self.chosen.size} "
            f"random rows), {100 * self.lost:.2g} % of their trace left"
        )


class Blocks(OnLandmarks):
    """Low-rank features ``K ~ Z Z'`` that are computed block by block in every pass over the rows."""

    @once
    def sampled(self) -> SampledFeatures:
        """The features."""
        return SampledFeatures.of(self.rows, self.kernel, self.asked)

    @once
    def stream(self) -> Stream:
        """The features' products over segments of rows, from one pass."""
        return Stream.of(self.rows, self.sampled.features, self.asked.room.runs)

    def sample(self) -> Features:
        """Return features, in memory, of the rows among which the landmarks were chosen: those have the same ones."""
        chosen = np.zeros(self.rows.n, np.bool_)
        chosen[self.sampled.chosen] = True
        return Features(self.rows.restricted(chosen), self.kernel, self.asked)

    @property
    def rank(self) -> int:
        return self.sampled.features.rank

    @property
    def lost(self) -> float:
        return self.sampled.lost

    def describe(self) -> str:
        return self.sampled.describe(self.rows.n)

    @property
    def points(self) -> Points:
        return self.sampled.features.points

    def expand(self, x: Array) -> Array:
        return np.asarray(x @ self.sampled.features.T.T)

    @once
    def stability(self) -> Scan:
        """Stability scan of ``Z Z'``, in another pass over the rows."""
        return self.stream.scan()

    def eigenvalues(self) -> Array:
        sigma = np.linalg.eigvalsh(self.stream.whole.products)
        return np.asarray(sigma[above_rounding(sigma, self.rows.n)])

    def eigenvectors(self, who: str) -> tuple[Array, Array]:
        raise IncompatibleError(
            f"{who} needs the eigenvectors of all rows, and at this rank the features of so many are never held "
            "together: use a smaller rank, or the criterion sps"
        )

    @property
    def _together(self) -> Features:
        """The features of all rows in memory, for as long as they are asked something."""
        check_memory(
            8 * self.rows.n * self.rank * 2,
            f"holding features of {self.rows.n} rows at rank {self.rank}",
            "give a lower rank; or ten folds and newton-cv, for which they are computed block by block",
        )
        features = self.sampled.features
        together = Features(self.rows, self.kernel, self.asked)
        Z = np.concatenate([features.finish(features.block(self.rows.X[b])) for b in features.blocks(0, self.rows.n)])
        together.factor = Factor(Z, features.points, features.T, 0.0)
        return together

    @property
    def squared_lengths(self) -> Array:
        return self._together.squared_lengths

    def spread(self) -> float:
        return self._together.spread()

    def spans(self, bias: bool, d1: Array, d2: Array, mu: float) -> tuple[Array, int]:
        return self._together.spans(bias, d1, d2, mu)

    def squared_radius(self, ridge: Array, beta: Array) -> tuple[float, int]:
        return self._together.squared_radius(ridge, beta)

    def _refusal(self, who: str) -> IncompatibleError:
        return IncompatibleError(
            f"{who} looks at the features of all rows at once, and so many are not held together: use a "
            "lower rank, or the criterion newton-cv"
        )
