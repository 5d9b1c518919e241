"""The rows in feature space: what measures of a kernel alone are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from kernsel.types import Array


class Embedding(Protocol):
    """A positive semidefinite matrix K (n, n) of inner products of rows."""

    def times(self, v: Array) -> Array:
        """Return ``K v`` for v (n,) or (n, m)."""

    @property
    def norm(self) -> float:
        """Frobenius norm of K."""

    @property
    def trace(self) -> float:
        """Trace of K."""

    def centred(self, q: Array) -> Self:
        """Return ``(I - q q') K (I - q q')``, without the direction of the unit vector q (n,)."""


@dataclass(frozen=True, eq=False)
class GramEmbedding:
    """Rows by their inner products K (n, n)."""

    K: Array

    def times(self, v: Array) -> Array:
        """Return ``K v`` for v (n,) or (n, m)."""
        return np.asarray(self.K @ v)

    @property
    def norm(self) -> float:
        """Frobenius norm of K."""
        return float(np.linalg.norm(self.K))

    @property
    def trace(self) -> float:
        """Trace of K."""
        return float(np.trace(self.K))

    def centred(self, q: Array) -> GramEmbedding:
        """Return ``(I - q q') K (I - q q')`` for a unit vector q (n,)."""
        Kq = self.K @ q
        side = np.outer(q, Kq - 0.5 * (q @ Kq) * q)
        return GramEmbedding(self.K - side - side.T)


@dataclass(frozen=True, eq=False)
class FeatureEmbedding:
    """Rows by features Z (n, r): ``K = Z Z'``."""

    Z: Array

    def times(self, v: Array) -> Array:
        """Return ``Z Z' v`` for v (n,) or (n, m)."""
        return np.asarray(self.Z @ (self.Z.T @ v))

    @property
    def norm(self) -> float:
        """Frobenius norm of ``Z Z'``, which is that of ``Z' Z``."""
        return float(np.linalg.norm(self.Z.T @ self.Z))

    @property
    def trace(self) -> float:
        """Trace of ``Z Z'``."""
        return float(np.vdot(self.Z, self.Z))

    def centred(self, q: Array) -> FeatureEmbedding:
        """Return the features without the direction of the unit vector q (n,)."""
        return FeatureEmbedding(self.Z - np.outer(q, q @ self.Z))
