"""One kernel on a partition of the data: what every learner and every lambda shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernsel.errors import IncompatibleError, SelectionError, check_memory
from kernsel.folds.partition import Partition
from kernsel.numerics import lowrank
from kernsel.numerics.landmarks import uniform_landmarks
from kernsel.numerics.runtime.once import once
from kernsel.numerics.square import spectral
from kernsel.numerics.stability import Scan, scan_features, scan_gram
from kernsel.representation.blocks import Sampled, Stream, needed
from kernsel.representation.ranks import Factor, LowRank, Rank, Whole

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


KEPT_BYTES = 2**28
"""What the last low-rank problems hold is kept within this, so that the leaders of a search are not made again."""


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
    statistics: Any


class Problem:
    """A kernel on rows, in full or by low-rank features.

    Parameters
    ----------
    rows : Partition
    kernel : Kernel
        Without free parameters.
    rank : LowRank, int, Whole or None
        The low-rank representation, or just its number of landmarks; the whole kernel in tiles; or None for the whole
        Gram matrix.
    landmarks : Landmarks, optional
        Take these, which saves choosing some for this kernel.
    """

    def __init__(
        self, rows: Partition, kernel: Any, rank: Rank | int | None = None, landmarks: Landmarks | None = None
    ) -> None:
        self.rows = rows
        self.kernel = kernel
        self.rank = LowRank(rank) if isinstance(rank, int) else rank
        self.landmarks = landmarks
        self.solutions: dict[tuple[Any, float], tuple[Array, Array]] = {}
        """Solutions (k, .) and outputs (k, n) of fits that converged, by learner and lambda."""
        self.wholes: dict[tuple[Any, ...], Any] = {}
        """What is known of fits with the whole kernel in tiles: see ``paths.whole``."""

    @property
    def full(self) -> bool:
        """Whether the whole kernel is used, not features of it."""
        return not isinstance(self.rank, LowRank)

    @property
    def provisional(self) -> bool:
        """Whether the landmarks are those of every kernel: scores only say which candidates are worth a closer look."""
        return self.landmarks is not None

    @once
    def gram(self) -> Array:
        """Gram matrix, (n, n)."""
        if isinstance(self.rank, Whole):
            raise IncompatibleError(
                "rank whole never holds the Gram matrix, which this criterion needs: use newton-cv or cv, or give a "
                "number of landmarks such as 1000"
            )
        K = np.asarray(self.kernel.evaluate(self.rows.statistics))
        if K.shape != (self.rows.n, self.rows.n) or K.dtype.kind not in "biuf":
            raise TypeError(f"evaluate returned {K.dtype} of shape {K.shape} for {self.rows.n} rows")
        if not np.isfinite(K.sum()):
            raise SelectionError("the kernel is not finite at every pair of rows")
        return np.ascontiguousarray(K, dtype=np.float64)

    @once
    def factor(self) -> Factor:
        """Low-rank features of the rows."""
        X, kernel = self.rows.X, self.kernel
        assert isinstance(self.rank, LowRank)
        if self.landmarks is None:
            check_memory(
                8 * X.shape[0] * self.rank.largest * 2,
                f"holding features of {X.shape[0]} rows at rank {self.rank.largest}",
                "give a lower rank; or ten folds and newton-cv, for which they are computed block by block",
            )
            return self.rank.factor(kernel, X, self.rows.seed)
        C, chosen = kernel.evaluate(self.landmarks.statistics), self.landmarks.indices
        Z, kept, T, residual = lowrank.landmark_factor(C, C[chosen], float(kernel.diag(X).sum()))
        return Factor(Z, X[chosen[kept]], T, residual)

    def streamed(self, loss: Any) -> bool:
        """Whether low-rank features are computed block by block for a loss."""
        return isinstance(self.rank, LowRank) and needed(self.rows, self.rank, bool(loss.square))

    @once
    def sampled(self) -> Sampled:
        """Low-rank features that are never held together."""
        assert isinstance(self.rank, LowRank)
        return Sampled.of(self.rows, self.kernel, self.rank)

    @once
    def stream(self) -> Stream:
        """Products of low-rank features that are never held together."""
        return Stream.of(self.rows, self.sampled)

    @property
    def width(self) -> int:
        """Columns of the Gram matrix, or at most of the features."""
        return self.rank.largest if isinstance(self.rank, LowRank) else self.rows.n

    @once
    def with_bias(self) -> Array:
        """Low-rank features and a column of ones, (n, r + 1)."""
        return np.column_stack([self.factor[0], np.ones(self.rows.n)])

    def matrix(self, bias: bool) -> Array:
        """Return what the solvers work on: the Gram matrix, or the features, with a column of ones for a bias."""
        if self.full:
            return self.gram
        return self.with_bias if bias else self.factor[0]

    @once
    def weighted(self) -> Array:
        """Gram matrix or features in the coordinates of ``S^1/2``, where S are the sample weights."""
        matrix = self.matrix(bias=False)
        if self.rows.weights is None:
            return matrix
        root = np.sqrt(self.rows.s)[:, None]
        return np.ascontiguousarray(root * matrix * root.T if self.full else root * matrix)

    @once
    def products(self) -> Array:
        """Products ``Z' Z`` of the weighted low-rank features, (r, r)."""
        return np.asarray(self.weighted.T @ self.weighted)

    @once
    def stability(self) -> Scan:
        """Stability scan of the Gram matrix, or of that of the low-rank features."""
        s = self.rows.weights
        if self.full:
            return scan_gram(self.gram, s)
        Z = self.factor[0]
        return scan_features(lambda rows: Z[rows], self.products, self.rows.n, s)

    @once
    def spectrum(self) -> tuple[Array, Array]:
        """Orthonormal U (n, r) and eigenvalues (r,) of the weighted representation."""
        return self._spectrum(None)

    @once
    def spectrum_with_bias(self) -> tuple[Array, Array]:
        """The same with the direction of an unpenalised bias first; see ``numerics.square.spectral``."""
        return self._spectrum(np.sqrt(self.rows.s))

    @property
    def has_spectrum(self) -> bool:
        """Whether an eigendecomposition is there already."""
        return not self.__dict__.keys().isdisjoint(("spectrum", "spectrum_with_bias"))

    def _spectrum(self, free: Array | None) -> tuple[Array, Array]:
        of = spectral.spectrum_of_gram if self.full else spectral.spectrum_of_features
        return of(self.weighted, free)

    def nystrom(self, share: float) -> Array:
        """Nystrom factor (n, c) of the Gram matrix from ``share * n`` landmarks drawn uniformly (FBIF18, Section 4)."""
        n = self.rows.n
        landmarks = uniform_landmarks(n, max(1, round(share * n)), self.rows.seed)
        C = self.gram[:, landmarks]
        return np.ascontiguousarray(lowrank.nystrom_factor(C, C[landmarks])[0])

    def solved(self, learner: Any, lam: float) -> bool:
        """Whether a fit is known."""
        sampled: Sampled | None = self.__dict__.get("sampled")
        return (learner, lam) in (self.solutions if sampled is None else sampled.solutions)

    @once
    def lost(self) -> float:
        """Share of the trace of the Gram matrix that low-rank features leave out."""
        trace = float(self.kernel.diag(self.rows.X).sum())
        return self.factor.residual / trace if trace > 0 else 0.0

    def describe(self) -> str:
        """The representation in words."""
        if not isinstance(self.rank, LowRank):
            return f"full Gram matrix, n = {self.rows.n}"
        rank = f"rank {self.factor.Z.shape[1]} of n = {self.rows.n} ({self.rank.describe()})"
        return f"{rank}, {100 * self.lost:.2g} % of the trace left"

    @property
    def nbytes(self) -> int:
        """What the arrays hold that were computed so far."""
        return sum(map(_size, list(self.__dict__.values())))


def _size(value: Any) -> int:
    if isinstance(value, tuple | dict):
        return sum(map(_size, list(value.values()) if isinstance(value, dict) else value))
    return int(getattr(value, "nbytes", 0))


class Problems:
    """The last low-rank problems of a search with all that they know, within ``KEPT_BYTES``.

    They belong to the search, not to the rows that they refer to: when it is done, they are gone.
    """

    def __init__(self) -> None:
        self.kept: dict[tuple[Partition, Any, Rank], Problem] = {}

    def on(self, rows: Partition, kernel: Any, rank: Rank | None) -> Problem:
        """Return the problem of a kernel: the one that is kept, if there is one."""
        if rank is None:  # a Gram matrix is large, and quickly made beside what follows from it
            return Problem(rows, kernel)
        problem = self.kept.pop((rows, kernel, rank), None) or Problem(rows, kernel, rank)
        self.kept[rows, kernel, rank] = problem
        others = list(self.kept)[:-1]
        while others and sum(each.nbytes for each in list(self.kept.values())) > KEPT_BYTES:
            self.kept.pop(others.pop(0), None)  # another thread may have done so
        return problem
