"""The kernel matrix of many rows in tiles: products with all of it, and predictions from it, without storing it.

``K V`` is computed over pairs of blocks of rows. A block of K is computed in float64, multiplied from both sides
(``K`` is symmetric), and thrown away: O(BLOCK^2) memory a thread beside V and the product.

Two pairs of blocks that share no block add to different rows. They are therefore dealt out in rounds, as the games of
a tournament are: in each round every block plays once. The pairs of a round run on all threads, and each row collects
its terms in the order of the rounds, so that the sum is the same for any number of threads.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np
from numba.core import types

from kernsel.numerics.gram import FORMULA, PAIRS, STATISTICS, TILE, Formula, compute_tile, pairs_of
from kernsel.numerics.points import Kernel, Points
from kernsel.numerics.runtime.jit import CONTRACT, f8_2, i8, jit
from kernsel.numerics.runtime.threads import one_blas_thread, share
from kernsel.types import Array, Indices

Span = tuple[int, int]

BLOCK = 4 * TILE
"""Rows of a block: its 1.8 MB lie in the second-level cache of one core, and matrix products of that size reach the
rate of large ones."""


def spans(n: int, size: int = BLOCK) -> list[Span]:
    """Return the bounds of blocks of ``size`` rows, of which the last may be shorter."""
    return [(lo, min(lo + size, n)) for lo in range(0, n, size)]


def share_jobs(work: Callable[..., None], jobs: Sequence[tuple[object, ...]]) -> None:
    """Run ``work(*job)`` for each job, on all threads; a thread that is done takes the next job.

    Which thread runs a job is chance, so a job must depend on nothing that another one of the list writes. After an
    error, or an interrupt, no further job begins.
    """
    turn = itertools.count()
    stopped: list[bool] = []

    def worker(first: int, step: int) -> None:
        try:
            while not stopped and (job := next(turn)) < len(jobs):
                work(*jobs[job])
        except BaseException:
            stopped.append(True)
            raise

    share(worker, len(jobs))


def rounds(count: int) -> list[list[tuple[int, int]]]:
    """Deal all pairs ``i >= j`` of ``count`` blocks, also ``(i, i)``, into rounds in which no block is in two pairs.

    The circle method of tournaments: one block stays where it is, and the others move on by one place a round. With an
    odd number the block whose opponent is missing rests. The pairs ``(i, i)`` are a round of their own.
    """
    seats = count + count % 2
    dealt = [[(i, i) for i in range(count)]]
    circle = list(range(1, seats))
    for _ in range(seats - 1):
        order = [0, *circle]
        games = ((order[i], order[seats - 1 - i]) for i in range(seats // 2))
        dealt.append([(max(pair), min(pair)) for pair in games if max(pair) < count])
        circle = [circle[-1], *circle[:-1]]
    return dealt


class KernelMatrix(ABC):
    """A symmetric matrix ``K (n, n)`` whose blocks are computed whenever they are needed."""

    def __init__(self, n: int, block: int = BLOCK) -> None:
        self.n = n
        self.size = block

    @abstractmethod
    def block(self, rows: Span, columns: Span) -> Array:
        """Return a block of K, a new array in float64."""

    @abstractmethod
    def subset(self, rows: Indices) -> KernelMatrix:
        """Return the matrix of some of the rows."""

    @abstractmethod
    def points(self, rows: Indices) -> Points:
        """Return some of the rows."""

    @abstractmethod
    def cross(self, Z: Points) -> CrossMatrix:
        """Return the matrix ``K(Z, X)`` of other points Z (m, d) with the rows."""

    def diag(self) -> Array:
        """Return the diagonal of K, (n,)."""
        found = np.empty(self.n)

        def work(lo: int, hi: int) -> None:
            found[lo:hi] = self.block((lo, hi), (lo, hi)).diagonal()

        with one_blas_thread():
            share_jobs(work, spans(self.n, TILE))
        return found

    def times(self, V: Array) -> Array:
        """Return ``K V`` (n, k), for V (n, k)."""
        out = np.zeros(V.shape)
        bounds = spans(self.n, self.size)

        def work(i: int, j: int) -> None:
            rows, columns = slice(*bounds[i]), slice(*bounds[j])
            T = self.block(bounds[i], bounds[j])
            out[rows] += T @ V[columns]
            if i != j:
                out[columns] += T.T @ V[rows]

        with one_blas_thread():
            for games in rounds(len(bounds)):
                share_jobs(work, games)
        return out


class CrossMatrix(ABC):
    """The matrix ``K (m, n)`` of new points with the rows, whose blocks are computed whenever they are needed."""

    def __init__(self, m: int, n: int, block: int = BLOCK) -> None:
        self.shape = (m, n)
        self.size = block

    @abstractmethod
    def block(self, rows: Span, columns: Span) -> Array:
        """Return a block of K, a new array in float64."""

    def times(self, V: Array) -> Array:
        """Return ``K V`` (m, k), for V (n, k): each block of new points from beginning to end by one thread."""
        m, n = self.shape
        out = np.zeros((m, V.shape[1]))
        columns = spans(n, self.size)

        def work(lo: int, hi: int) -> None:
            for span in columns:
                out[lo:hi] += self.block((lo, hi), span) @ V[slice(*span)]

        with one_blas_thread():
            share_jobs(work, spans(m, TILE))  # few points, too, are shared out
        return out


@jit(types.void(PAIRS, i8, i8, i8, FORMULA, f8_2), fastmath=CONTRACT)
def _block(pairs, r0, c0, statistic, formula, out):
    """Fill ``out`` with the kernel of the points from ``r0`` on with those from ``c0`` on."""
    buffer = np.empty(TILE * TILE)
    for top in range(0, out.shape[0], TILE):
        h = min(TILE, out.shape[0] - top)
        for left in range(0, out.shape[1], TILE):
            w = min(TILE, out.shape[1] - left)
            flat = buffer[: h * w]
            T = flat.reshape((h, w))
            compute_tile(pairs, r0 + top, c0 + left, statistic, formula, flat, T)
            for i in range(h):
                for j in range(w):
                    out[top + i, left + j] = T[i, j]


class _CompiledBlocks:
    """Blocks of a formula of a statistic, finished tile by tile in the cache."""

    def __init__(self, statistic: str, X: Array, Z: Array | None, formula: Formula) -> None:
        self.pairs = pairs_of(statistic, X, Z)
        self.tail = (STATISTICS.index(statistic), formula)
        self.loop = _block.code  # compiled here, not by several threads at once

    def __call__(self, rows: Span, columns: Span) -> Array:
        out = np.empty((rows[1] - rows[0], columns[1] - columns[0]))
        self.loop(self.pairs, rows[0], columns[0], *self.tail, out)
        return out


class FormulaMatrix(KernelMatrix):
    """The kernel matrix of dense rows for a compiled formula of a statistic: see ``gram``.

    Parameters
    ----------
    statistic : {"inner", "sqdist", "l1"}
    X : (n, d) float64, C-contiguous
    block : int
        Rows of a block.
    """

    def __init__(self, statistic: str, X: Array, formula: Formula, block: int = BLOCK) -> None:
        super().__init__(len(X), block)
        self.statistic, self.X, self.formula = statistic, X, formula
        self._blocks = _CompiledBlocks(statistic, X, None, formula)

    def block(self, rows: Span, columns: Span) -> Array:
        return self._blocks(rows, columns)

    def subset(self, rows: Indices) -> FormulaMatrix:
        return FormulaMatrix(self.statistic, self.points(rows), self.formula, self.size)

    def points(self, rows: Indices) -> Array:
        return np.ascontiguousarray(self.X[rows])

    def cross(self, Z: Points) -> CrossMatrix:
        return _FormulaCross(self.statistic, Z, self.X, self.formula, self.size)


class _FormulaCross(CrossMatrix):
    def __init__(self, statistic: str, Z: Array, X: Array, formula: Formula, block: int) -> None:
        super().__init__(len(Z), len(X), block)
        self._blocks = _CompiledBlocks(statistic, Z, X, formula)

    def block(self, rows: Span, columns: Span) -> Array:
        return self._blocks(rows, columns)


class CallableMatrix(KernelMatrix):
    """The kernel matrix of rows, dense or sparse, for any function that computes blocks of one.

    Parameters
    ----------
    kernel : callable
        ``kernel(X (a, d), Z (b, d)) -> (a, b)``, called by several threads.
    X : (n, d) points
    block : int
        Rows of a block.
    """

    def __init__(self, kernel: Kernel, X: Points, block: int = BLOCK) -> None:
        super().__init__(X.shape[0], block)
        self.kernel, self.X = kernel, X

    def block(self, rows: Span, columns: Span) -> Array:
        return self.kernel(self.X[slice(*rows)], self.X[slice(*columns)])

    def subset(self, rows: Indices) -> CallableMatrix:
        return CallableMatrix(self.kernel, self.X[rows], self.size)

    def points(self, rows: Indices) -> Points:
        return self.X[rows]

    def cross(self, Z: Points) -> CrossMatrix:
        return _CallableCross(self.kernel, Z, self.X, self.size)


class _CallableCross(CrossMatrix):
    def __init__(self, kernel: Kernel, Z: Points, X: Points, block: int) -> None:
        super().__init__(Z.shape[0], X.shape[0], block)
        self.kernel, self.Z, self.X = kernel, Z, X

    def block(self, rows: Span, columns: Span) -> Array:
        return self.kernel(self.Z[slice(*rows)], self.X[slice(*columns)])
