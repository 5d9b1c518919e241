"""What stands for the Gram matrix of a kernel on rows, and what every such thing can be asked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from kernsel.errors import IncompatibleError
from kernsel.folds.partition import Partition
from kernsel.kernels import Kernel
from kernsel.numerics.points import Points
from kernsel.numerics.runtime.once import once
from kernsel.numerics.smooth import convergence
from kernsel.numerics.square.spectral import Spectrum
from kernsel.numerics.stability import Scan
from kernsel.representation.embedding import Embedding
from kernsel.representation.ranks import LowRank
from kernsel.types import Array, Indices, Mask


class Representation(ABC):
    """A positive semidefinite matrix (n, n) that stands for the Gram matrix of a kernel on the rows of a partition.

    Fits have solutions in coordinates of their own: coefficients of kernel functions, or weights of features. What a
    representation can't do raises its own IncompatibleError.

    Parameters
    ----------
    kernel : Kernel
        Without free parameters.
    """

    in_force: ClassVar[bool] = True
    """Whether scores count; if not, they only say which candidates are worth a closer look."""
    decrement: ClassVar[float] = convergence.DECREMENT
    """A fit by Newton steps ends where the next one promises less than this share of J."""

    def __init__(self, rows: Partition, kernel: Kernel) -> None:
        self.rows = rows
        self.kernel = kernel

    @property
    @abstractmethod
    def rank(self) -> int:
        """Number of features, or of rows."""

    @property
    @abstractmethod
    def lost(self) -> float:
        """Share of the trace of the Gram matrix that is left out."""

    @abstractmethod
    def describe(self) -> str:
        """Return the representation in words."""

    @property
    @abstractmethod
    def points(self) -> Points:
        """The points (m, d) whose kernel functions make up models: all rows, or landmarks."""

    @abstractmethod
    def row_numbers(self, used: Mask) -> Indices | None:
        """Return which rows the points ``used`` (m,) are; None where points are no rows, or not known as such."""

    @abstractmethod
    def expand(self, x: Array) -> Array:
        """Return coefficients (..., m) of the kernel functions at the points from solutions, without a bias."""

    @abstractmethod
    def squared_norms(self, x: Array) -> Array:
        """Return ``||f||^2`` of solutions (k, q, .) without a bias, summed over outputs, (q,)."""

    def _refusal(self, who: str) -> IncompatibleError:
        """Return what to raise where ``who`` asks for what only a representation in memory can do."""
        raise NotImplementedError

    @property
    def gram(self) -> Array:
        """The Gram matrix (n, n)."""
        raise self._refusal("this")

    @property
    def stability(self) -> Scan:
        """Stability scan."""
        raise self._refusal("this")

    def eigenvalues(self) -> Array:
        """Return the weighted eigenvalues, ascending, without those that are rounding."""
        raise self._refusal("this")

    def eigenvectors(self, who: str) -> tuple[Array, Array]:
        """Return orthonormal U (n, r) and eigenvalues (r,), both weighted; ``who`` asks, for errors."""
        raise self._refusal(who)

    def embedding(self, who: str) -> Embedding:
        """Return the rows in feature space, in weighted coordinates; ``who`` asks, for errors."""
        raise self._refusal(who)

    @property
    def squared_lengths(self) -> Array:
        """Diagonal (n,)."""
        raise self._refusal("this")

    def spread(self) -> float:
        """Return the difference between the largest and the smallest entry."""
        raise self._refusal("this")

    def spans(self, bias: bool, d1: Array, d2: Array, mu: float) -> tuple[Array, int]:
        """Return the squared spans (n,) of a fit with these derivatives of its losses, and a status.

        See ``numerics.smooth.span``; mu is the ridge.
        """
        raise self._refusal("this")

    def squared_radius(self, ridge: Array, beta: Array) -> tuple[float, int]:
        """Return R^2 of the smallest ball around the rows with a ridge (n,) of their own, and a status.

        See ``numerics.smooth.ball``; the weights beta (n,) are where to start, and are overwritten.
        """
        raise self._refusal("this")

    @property
    def nbytes(self) -> int:
        """What the arrays hold that were computed so far."""
        return sum(size_of(value) for name, value in list(vars(self).items()) if name not in ("rows", "kernel"))


class OnRows(Representation):
    """The Gram matrix, nothing left out: solutions are coefficients of the kernel functions at all rows."""

    lost = 0.0

    @property
    def rank(self) -> int:
        return self.rows.n

    @property
    def points(self) -> Points:
        return self.rows.X

    def row_numbers(self, used: Mask) -> Indices | None:
        return np.flatnonzero(used)

    def expand(self, x: Array) -> Array:
        return x


class OnLandmarks(Representation):
    """Low-rank features ``K ~ Z Z'``: solutions are their weights.

    Parameters
    ----------
    asked : LowRank
        How many landmarks, and how they are chosen.
    """

    def __init__(self, rows: Partition, kernel: Kernel, asked: LowRank) -> None:
        super().__init__(rows, kernel)
        self.asked = asked

    def row_numbers(self, used: Mask) -> Indices | None:
        return None

    def squared_norms(self, x: Array) -> Array:
        return np.asarray(np.einsum("cqi,cqi->q", x, x))


class Held(Representation):
    """A representation that is one array in memory: the Gram matrix (n, n), or features Z (n, r)."""

    @abstractmethod
    def matrix(self, bias: bool) -> Array:
        """Return what solvers work on: the Gram matrix, or the features with a column of ones for a bias."""

    @property
    @abstractmethod
    def weighted(self) -> Array:
        """The Gram matrix or features in the coordinates of ``S^1/2``, where S are the sample weights."""

    @abstractmethod
    def _spectrum(self, free: Array | None) -> Spectrum:
        """Decompose ``weighted``, with the direction ``free`` (n,) first if it is given."""

    @once
    def _plain_spectrum(self) -> Spectrum:
        return self._spectrum(None)

    @once
    def _spectrum_with_bias(self) -> Spectrum:
        return self._spectrum(np.sqrt(self.rows.s))

    def spectrum(self, bias: bool) -> Spectrum:
        """Return the spectrum of ``weighted``, the direction of an unpenalised bias first."""
        return self._spectrum_with_bias if bias else self._plain_spectrum

    def eigenvalues(self) -> Array:
        return self._plain_spectrum.ev

    def eigenvectors(self, who: str) -> tuple[Array, Array]:
        return self._plain_spectrum


def size_of(value: object) -> int:
    """Return the bytes of all arrays in tuples and dictionaries, however deep."""
    if isinstance(value, tuple | dict):
        return sum(map(size_of, list(value.values()) if isinstance(value, dict) else value))
    return int(getattr(value, "nbytes", 0))
