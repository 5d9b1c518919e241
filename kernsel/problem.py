"""The data sorted by fold, and one kernel on them: what every learner and every lambda shares."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernsel.errors import IncompatibleError, check_memory
from kernsel.numerics import lowrank, spectral
from kernsel.numerics.landmarks import uniform_landmarks
from kernsel.numerics.points import Points, as_points
from kernsel.numerics.stability import Scan, scan_features, scan_gram
from kernsel.once import once
from kernsel.representation import Factor, LowRank, Rank, Whole
from kernsel.streaming import Sampled, Stream, needed

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


KEPT_BYTES = 2**28
"""What the last low-rank problems hold is kept within this, so that the leaders of a search are not made again."""


@dataclass(frozen=True, eq=False)
class Rows:
    """The data of a selection, sorted by fold.

    Parameters
    ----------
    X : (n, d) points
        Dense or sparse, see ``kernsel.numerics.points``.
    Y : (k, n) array
        Targets; classes are -1 and +1, one row a class if there are more than two.
    starts : (t + 1,) array
        Fold j holds the rows ``starts[j]`` to below ``starts[j + 1]``; rows from ``starts[t]`` on are never held out.
    order : (n,) array
        Where the rows stood in the data as given: ``X = given[order]``.
    statistics : object
        Shared distances and inner products of X, for ``kernel.evaluate``.
    seed : int
        Of whatever is drawn: landmarks.
    weights : (n,) array or None
        Sample weights, greater than 0; None where every row counts 1.
    training : (t, n) array of bool or None
        The rows that each fold's fit is trained on, if not all but the fold (time-ordered splits).
    clip : bool
        Whether held-out outputs are kept within the range of the targets.
    """

    X: Points
    Y: Array
    starts: Indices
    order: Indices
    statistics: Any
    seed: int = 0
    weights: Array | None = None
    training: NDArray[np.bool_] | None = None
    clip: bool = False

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.Y.shape[1])

    @property
    def held(self) -> int:
        """Number of rows that are held out by some fold: the first ones."""
        return int(self.starts[-1])

    @once
    def s(self) -> Array:
        """Sample weights, (n,)."""
        return np.ones(self.n) if self.weights is None else self.weights

    @once
    def total(self) -> float:
        """Sum of the sample weights: what ``n`` is without them."""
        return float(self.s.sum())

    @once
    def left(self) -> Array:
        """Sum of the weights that each fold's fit keeps, (t,)."""
        if self.training is not None:
            return np.asarray(self.training @ self.s)
        return np.asarray(self.total - np.add.reduceat(self.s[: self.held], self.starts[:-1]))

    @once
    def one_by_one(self) -> Rows:
        """The same rows, where every one that is held out is a fold of its own, and fits are trained on all others."""
        if self.training is None and self.left.size == self.held:
            return self
        return replace(self, starts=np.arange(self.held + 1), training=None)

    def kept(self, fold: int) -> NDArray[np.bool_]:
        """Say which rows the fit without a fold is trained on, (n,)."""
        if self.training is not None:
            return np.asarray(self.training[fold])
        kept = np.ones(self.n, np.bool_)
        kept[self.starts[fold] : self.starts[fold + 1]] = False
        return kept

    def taken(self, chosen: Indices, starts: Indices) -> Rows:
        """Return some of the rows in the order given, in folds of their own."""
        X, Y = as_points(self.X[chosen]), np.ascontiguousarray(self.Y[:, chosen])
        weights = None if self.weights is None else self.weights[chosen]
        training = None if self.training is None else np.ascontiguousarray(self.training[:, chosen])
        statistics = type(self.statistics)(X)
        return Rows(X, Y, starts, self.order[chosen], statistics, self.seed, weights, training, self.clip)

    def part(self, chosen: NDArray[np.bool_]) -> Rows:
        """Return some of the rows in the folds that they were in, none of which should lose all of its rows."""
        return self.taken(np.flatnonzero(chosen), np.append(0, np.cumsum(chosen))[self.starts])

    @once
    def limits(self) -> Array:
        """Least and largest target, (2, k)."""
        return np.stack([self.Y.min(axis=1), self.Y.max(axis=1)])

    def clipped(self, F: Array) -> Array:
        """Return outputs (k, ..., n) within the range of the targets, if rows are clipped."""
        if not self.clip:
            return F
        low, high = self.limits.reshape(2, len(F), *(1,) * (F.ndim - 1))
        return np.where(np.isinf(F), F, np.clip(F, low, high))  # what is infinite has failed

    @once
    def limits_apart(self) -> Array:
        """Least and largest target that the fit without each fold is trained on, (2, k, t)."""
        if self.training is not None:
            each = [self.Y[:, kept] for kept in self.training]
            return np.stack([[Y.min(axis=1) for Y in each], [Y.max(axis=1) for Y in each]]).swapaxes(1, 2)
        t = self.left.size
        bounds = np.append(self.starts, self.n)[: t + 1 + (self.held < self.n)]  # rows in no fold are a last part
        ends = []
        for sign in (-1.0, 1.0):
            largest = np.maximum.reduceat(sign * self.Y, bounds[:-1], axis=1)
            second, first = np.sort(largest, axis=1)[:, -2:].T[:, :, None]
            ends.append(sign * np.where(largest == first, second, first))  # of two that are equal both are second
        return np.stack(ends)[:, :, :t]

    def clipped_apart(self, F: Array) -> Array:
        """Return held-out outputs (k, ..., n) within the range of the targets that their own fit was trained on.

        That is what a model without the fold predicts, and so what is reported; scores, which only compare, have the
        range of all targets, so that rows beyond the others' range weigh on all candidates alike.
        """
        if not self.clip:
            return F
        low, high = np.repeat(self.limits_apart, np.diff(self.starts), axis=2).reshape(
            2, len(F), *(1,) * (F.ndim - 2), -1
        )
        held = F[..., : self.held]
        return np.concatenate([np.where(np.isinf(held), held, np.clip(held, low, high)), F[..., self.held :]], axis=-1)

    def mean(self, values: Array) -> Array:
        """Return the weighted mean over held-out rows of ``values (..., n)``."""
        s = self.s[: self.held]
        return np.asarray(values[..., : self.held] @ s / s.sum())


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
    rows : Rows
    kernel : Kernel
        Without free parameters.
    rank : LowRank, int, Whole or None
        The low-rank representation, or just its number of landmarks; the whole kernel in tiles; or None for the whole
        Gram matrix.
    landmarks : Landmarks, optional
        Take these, which saves choosing some for this kernel.
    """

    def __init__(
        self, rows: Rows, kernel: Any, rank: Rank | int | None = None, landmarks: Landmarks | None = None
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
        return np.ascontiguousarray(self.kernel.evaluate(self.rows.statistics))

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
        """The same with the direction of an unpenalised bias first; see ``numerics.spectral``."""
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
        self.kept: dict[tuple[Rows, Any, Rank], Problem] = {}

    def on(self, rows: Rows, kernel: Any, rank: Rank | None) -> Problem:
        """Return the problem of a kernel: the one that is kept, if there is one."""
        if rank is None:  # a Gram matrix is large, and quickly made beside what follows from it
            return Problem(rows, kernel)
        problem = self.kept.pop((rows, kernel, rank), None) or Problem(rows, kernel, rank)
        self.kept[rows, kernel, rank] = problem
        others = list(self.kept)[:-1]
        while others and sum(each.nbytes for each in list(self.kept.values())) > KEPT_BYTES:
            self.kept.pop(others.pop(0), None)  # another thread may have done so
        return problem
