"""Kernels that are a function of one statistic of the pair: an inner product or a distance."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from kernsel.kernels.base import Kernel
from kernsel.kernels.statistics import Statistics
from kernsel.numerics import gram, stability
from kernsel.numerics.points import Points, as_points, is_sparse, squared_norms
from kernsel.types import Array


@dataclass(frozen=True)
class Pairwise(Kernel):
    """A kernel that is a function of one statistic of the pair: ``k(x, z) = profile(s(x, z))``.

    A subclass sets ``statistic`` ("inner", "sqdist" or "l1") and writes ``profile``, plain NumPy, element by element.
    """

    statistic: ClassVar[str]
    sparse: ClassVar[bool] = True

    @abstractmethod
    def profile(self, S: Array) -> Array:
        """Kernel values from statistics, element by element: a new array of the shape of S."""

    def evaluate(self, stats: Statistics) -> Array:
        self.require_fixed()
        return self.profile(getattr(stats, self.statistic))

    def diag(self, X: ArrayLike) -> Array:
        self.require_fixed()
        rows = as_points(X)
        return self.profile(squared_norms(rows) if self.statistic == "inner" else np.zeros(rows.shape[0]))


@dataclass(frozen=True)
class Compiled(Pairwise):
    """A pairwise kernel of one of the compiled families: its Gram matrix is finished tile by tile, in the cache.

    A subclass sets ``statistic`` and writes ``formula`` instead of ``profile``.
    """

    @abstractmethod
    def formula(self) -> gram.Formula:
        """The function of the statistic, by ``gram.exponential``, ``gram.power`` or ``gram.inverse``."""

    def profile(self, S: Array) -> Array:
        return gram.apply(self.formula(), S)

    def compiled(self, X: Points) -> tuple[str, Points, gram.Formula] | None:
        self.require_fixed()
        return self.statistic, X, self.formula()

    def __call__(self, X: ArrayLike, Z: ArrayLike | None = None) -> Array:
        self.require_fixed()
        return Statistics(X, Z).gram(self.statistic, self.formula())

    def scan(self, X: ArrayLike, weights: Array | None = None) -> stability.Scan:
        self.require_fixed()
        rows = as_points(X)
        if is_sparse(rows):
            return super().scan(rows, weights)
        return stability.scan_points(self.statistic, rows, self.formula(), weights)
