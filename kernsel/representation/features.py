"""Low-rank features of all rows, in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kernsel.errors import IncompatibleError, check_memory
from kernsel.folds.partition import Partition
from kernsel.kernels import Kernel, Statistics
from kernsel.numerics import lowrank
from kernsel.numerics.points import Points
from kernsel.numerics.runtime.once import once
from kernsel.numerics.smooth.ball import squared_radius
from kernsel.numerics.smooth.span import spans_in_features
from kernsel.numerics.square.spectral import Spectrum
from kernsel.numerics.stability import Scan, scan_features
from kernsel.representation.base import Held, OnLandmarks
from kernsel.representation.embedding import FeatureEmbedding
from kernsel.representation.ranks import Factor, LowRank
from kernsel.types import Array, Indices

BLOCK = 1024
"""Rows of the Gram matrix of features that are held at a time."""


class Features(OnLandmarks, Held):
    """Features Z (n, r) with ``K ~ Z Z'``, in memory."""

    @once
    def factor(self) -> Factor:
        """The features, their landmarks, and what they leave."""
        n, largest = self.rows.n, self.asked.largest
        check_memory(
            8 * n * largest * 2,
            f"holding features of {n} rows at rank {largest}",
            "give a lower rank; or ten folds and newton-cv, for which they are computed block by block",
        )
        return self.asked.factor(self.kernel, self.rows.X, self.rows.seed)

    def _refusal(self, who: str) -> IncompatibleError:
        return IncompatibleError(
            "features of a low rank stand for the Gram matrix, which is needed here: use rank full"
        )

    @property
    def rank(self) -> int:
        return int(self.factor.Z.shape[1])

    @once
    def lost(self) -> float:
        """Share of the trace of the Gram matrix that is left out."""
        trace = float(self.kernel.diag(self.rows.X).sum())
        return self.factor.residual / trace if trace > 0 else 0.0

    def describe(self) -> str:
        rank = f"rank {self.rank} of n = {self.rows.n} ({self.asked.describe()})"
        return f"{rank}, {100 * self.lost:.2g} % of the trace left"

    @property
    def points(self) -> Points:
        return self.factor.points

    def expand(self, x: Array) -> Array:
        return np.asarray(x @ self.factor.T.T)

    @once
    def _with_bias(self) -> Array:
        return np.column_stack([self.factor.Z, np.ones(self.rows.n)])

    def matrix(self, bias: bool) -> Array:
        return self._with_bias if bias else self.factor.Z

    @once
    def weighted(self) -> Array:
        """``S^1/2 Z``, (n, r)."""
        if self.rows.weights is None:
            return self.factor.Z
        return np.ascontiguousarray(np.sqrt(self.rows.s)[:, None] * self.factor.Z)

    @once
    def products(self) -> Array:
        """Products ``Z' S Z`` of the weighted features, (r, r)."""
        return np.asarray(self.weighted.T @ self.weighted)

    def _spectrum(self, free: Array | None) -> Spectrum:
        return Spectrum.of_features(self.weighted, free)

    @once
    def stability(self) -> Scan:
        """Stability scan of ``Z Z'``."""
        Z = self.factor.Z
        return scan_features(lambda rows: Z[rows], self.products, self.rows.n, self.rows.weights)

    def embedding(self, who: str) -> FeatureEmbedding:
        return FeatureEmbedding(self.weighted)

    @property
    def squared_lengths(self) -> Array:
        Z = self.factor.Z
        return np.asarray(np.einsum("ij,ij->i", Z, Z))

    def spread(self) -> float:
        Z = self.factor.Z
        least = min((Z[i : i + BLOCK] @ Z.T).min() for i in range(0, len(Z), BLOCK))
        return float(self.squared_lengths.max() - least)

    def spans(self, bias: bool, d1: Array, d2: Array, mu: float) -> tuple[Array, int]:
        return spans_in_features(self.matrix(bias), bias, d1, d2, mu)

    def squared_radius(self, ridge: Array, beta: Array) -> tuple[float, int]:
        return squared_radius(self.factor.Z, False, ridge, beta)


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Points whose columns of the Gram matrix stand for all others, the same for every kernel.

    Parameters
    ----------
    indices : (c,) array
        Which rows they are.
    statistics : object
        What kernels know of all rows and these, shared by every kernel.
    """

    indices: Indices
    statistics: Statistics


class SharedFeatures(Features):
    """Features from landmarks that all kernels share: quickly made, and so of a lower rank than that in force."""

    in_force: ClassVar[bool] = False
    decrement: ClassVar[float] = 1e-4
    """What the rank leaves out is more than this share of J."""

    def __init__(self, rows: Partition, kernel: Kernel, asked: LowRank, landmarks: Landmarks) -> None:
        super().__init__(rows, kernel, asked)
        self.landmarks = landmarks

    @once
    def factor(self) -> Factor:
        """The features, their landmarks, and what they leave."""
        X, chosen = self.rows.X, self.landmarks.indices
        C = self.kernel.evaluate(self.landmarks.statistics)
        Z, kept, T, residual = lowrank.landmark_factor(C, C[chosen], float(self.kernel.diag(X).sum()))
        return Factor(Z, X[chosen[kept]], T, residual)
