"""What stands for a Gram matrix: itself, or features from landmarks, or the whole of it in tiles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

from kernsel.kernels import Kernel
from kernsel.numerics import landmarks, lowrank
from kernsel.numerics.blocks.costs import SAMPLE
from kernsel.numerics.blocks.features import BLOCK_BYTES
from kernsel.numerics.points import Points
from kernsel.types import Array

METHODS = {
    "rpcholesky": "randomly pivoted Cholesky",
    "uniform": "landmarks drawn uniformly",
    "leverage": "landmarks drawn by their ridge leverage scores",
    "kmeans": "centres of k-means as landmarks",
}
"""Ways to choose landmarks, in words."""


class Factor(NamedTuple):
    """Low-rank features ``K ~ Z Z'`` of some rows: ``z(x) = k(x, points) T``.

    Parameters
    ----------
    Z : (n, r) array
    points : (r, d) array
        The landmarks, in the order of their choice.
    T : (r, r) array
        Upper triangular.
    residual : float
        Trace of ``K - Z Z'``, which is positive semidefinite.
    """

    Z: Array
    points: Points
    T: Array
    residual: float


class Room(NamedTuple):
    """How much of low-rank features is held at a time.

    Parameters
    ----------
    features : int
        Bytes. Features that would be larger are computed block by block, where the products of the segments fit.
    products : int
        Bytes for the products of all segments of rows.
    block : int
        Bytes of a block of features.
    fits : int
        Bytes. Fits of other losses are made side by side in groups whose outputs, curvatures and products fit in this.
    sample : int
        Rows for each landmark, drawn at random, among which the landmarks of blocks are chosen.
    runs : int
        Up to so many times the number of folds, runs of rows that fits take or leave are segments of their own.
    """

    features: int = 2**28
    products: int = 2**30
    block: int = BLOCK_BYTES
    fits: int = 2**29
    sample: int = SAMPLE
    runs: int = 16


ROOM = Room()
"""That of every selection."""


class _Exact:
    """A Gram matrix of which nothing is left out."""

    tol: ClassVar[float] = 0.0
    """Nothing of the trace is left."""

    def within(self, n: int) -> Self:
        """Return the representation of no more than n rows."""
        return self

    def width(self, n: int) -> int:
        """Return the columns that stand for the Gram matrix of n rows."""
        return n


@dataclass(frozen=True)
class Full(_Exact):
    """The Gram matrix itself, in memory."""

    def asked(self) -> dict[str, Any]:
        """Return what was asked for, for a result."""
        return {"rank": None, "tol": None, "landmarks": None}


@dataclass(frozen=True)
class LowRank:
    """How many landmarks low-rank features have, and how they are chosen.

    Parameters
    ----------
    largest : int
        Landmarks at most.
    tol : float
        The first landmarks that leave no more than this share of the trace are enough; 0 takes all.
    method : str
        One of ``METHODS``.
    """

    largest: int
    tol: float = 0.0
    method: str = "rpcholesky"
    room: Room = ROOM

    def factor(self, kernel: Kernel, X: Points, seed: int) -> Factor:
        """Choose landmarks for a kernel among some rows X (n, d), or near them, and return their features of X."""
        diag = kernel.diag(X)
        if self.method == "rpcholesky":
            Z, chosen, T, residual = lowrank.pivoted_cholesky(
                lambda i: kernel(X, X[i]), diag, self.largest, seed, self.tol
            )
            return Factor(Z, X[chosen], T, residual)
        points = self._points(kernel, X, diag, seed)
        trace = float(diag.sum())
        Z, kept, T, residual = lowrank.landmark_factor(kernel(X, points), kernel(points, points), trace, self.tol)
        return Factor(Z, points[kept], T, residual)

    def _points(self, kernel: Kernel, X: Points, diag: Array, seed: int) -> Points:
        if self.method == "kmeans":
            return landmarks.kmeans_centres(X, self.largest, seed)
        if self.method == "leverage":
            return X[landmarks.leverage_landmarks(kernel, X, diag, self.largest, seed)]
        return X[landmarks.uniform_landmarks(X.shape[0], self.largest, seed)]

    def describe(self) -> str:
        """How landmarks are chosen, in words."""
        return METHODS[self.method]

    def within(self, n: int) -> LowRank:
        """Return the representation of no more than n rows."""
        return replace(self, largest=min(self.largest, n))

    def width(self, n: int) -> int:
        """Return how many columns, at most, stand for the Gram matrix of n rows."""
        return self.largest

    def asked(self) -> dict[str, Any]:
        """Return what was asked for, for a result."""
        return {"rank": self.largest, "tol": self.tol or None, "landmarks": self.method}


@dataclass(frozen=True)
class Whole(_Exact):
    """The whole kernel in tiles that are computed whenever they are needed: see ``numerics.whole``."""

    def asked(self) -> dict[str, Any]:
        """Return what was asked for, for a result."""
        return {"rank": "whole", "tol": None, "landmarks": None}


Rank = Full | Whole | LowRank
"""What stands for the Gram matrix of a problem."""
