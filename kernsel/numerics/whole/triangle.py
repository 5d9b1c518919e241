"""A symmetric matrix of tens of thousands of rows by its lower triangle: Cholesky factor and inverse in place.

The triangle is kept as blocks of rows, each up to its diagonal: ``n (n + BLOCK) / 2`` numbers, half of a square, of
float32 or float64. All work is matrix products of blocks, one thread each, which reach the rate of BLAS's own Cholesky
factorisation on all threads; a block gets its terms in one order, so that the factor is the same, bit by bit, for any
number of threads.

Call all of this under ``one_blas_thread``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from kernsel.numerics.whole.tiles import BLOCK, share_jobs, spans
from kernsel.types import Array

Block = NDArray[Any]
"""An array of the triangle's own precision."""


class Triangle:
    """The lower triangle of a symmetric ``A (n, n)``; after ``factorise`` of L, ``A = L L'``; then maybe of ``L^-1``.

    Parameters
    ----------
    dtype : numpy.float32 or numpy.float64
    size : int
        Rows of a block.
    """

    def __init__(self, n: int, dtype: type = np.float32, size: int = BLOCK) -> None:
        self.n = n
        self.dtype = dtype
        self.bounds = spans(n, size)
        self.rows: list[Block] = [np.empty((hi - lo, hi), dtype) for lo, hi in self.bounds]
        self.inverses: list[Block] = []
        """The inverses of the diagonal blocks of L."""
        self.inverted = False

    @property
    def bytes(self) -> int:
        """Memory of the triangle."""
        return sum(block.nbytes for block in self.rows)

    def tile(self, i: int, j: int) -> Block:
        """Return block (i, j) with i >= j, a view."""
        return self.rows[i][:, slice(*self.bounds[j])]

    def factorise(self) -> int:
        """Replace A by its Cholesky factor; return 0, or the number of the first rows that are not positive definite.

        Right-looking: the diagonal block is factorised, the blocks below it are divided by the factor (multiplied by
        its inverse), and their products are taken off all blocks to the right: n^3 / 3 operations.
        """
        potrf, trtri = (lapack.spotrf, lapack.strtri) if self.dtype is np.float32 else (lapack.dpotrf, lapack.dtrtri)
        self.inverses, count = [], len(self.bounds)

        def divide(i: int, k: int) -> None:
            self.tile(i, k)[:] = self.tile(i, k) @ self.inverses[k].T

        def subtract(i: int, j: int, k: int) -> None:
            C = self.tile(i, j)
            C -= self.tile(i, k) @ self.tile(j, k).T

        for k in range(count):
            L, failed = potrf(self.tile(k, k), lower=1)
            if failed or not np.isfinite(L.diagonal()).all():
                return self.bounds[k][0] + max(int(failed), 1)
            L = np.tril(L)
            self.tile(k, k)[:] = L
            self.inverses.append(np.ascontiguousarray(np.tril(trtri(L, lower=1)[0])))
            share_jobs(divide, [(i, k) for i in range(k + 1, count)])
            share_jobs(subtract, [(i, j, k) for i in range(k + 1, count) for j in range(k + 1, i + 1)])
        return 0

    def invert(self) -> None:
        """Replace L by ``W = L^-1``, row by row: ``W_ij = -L_ii^-1 sum_(j <= k < i) L_ik W_kj``; n^3 / 3 operations."""
        for i, (lo, _) in enumerate(self.bounds):
            L = self.rows[i][:, :lo].copy()

            def work(j: int, i: int = i, L: Block = L) -> None:
                total: Block = np.zeros(self.tile(i, j).shape, self.dtype)
                for k in range(j, i):
                    total += L[:, slice(*self.bounds[k])] @ self.tile(k, j)
                self.tile(i, j)[:] = -(self.inverses[i] @ total)

            share_jobs(work, [(j,) for j in range(i)])  # the longest sums first
            self.tile(i, i)[:] = self.inverses[i]
        self.inverted = True

    def solve(self, B: Array) -> Array:
        """Return ``A^-1 B`` (n, k), computed in the triangle's precision from its factor or the inverse of that."""
        X: Block = B.astype(self.dtype)
        X = self._apply(X) if self.inverted else self._substitute(X)
        return X.astype(np.float64)

    def _apply(self, X: Block) -> Block:
        """Return ``W' (W X)``."""
        half, out, count = np.empty_like(X), np.empty_like(X), len(self.bounds)

        def forward(i: int) -> None:
            lo, hi = self.bounds[i]
            half[lo:hi] = self.rows[i] @ X[:hi]

        def backward(j: int) -> None:
            total: Block = np.zeros(out[slice(*self.bounds[j])].shape, self.dtype)
            for i in range(j, count):
                total += self.tile(i, j).T @ half[slice(*self.bounds[i])]
            out[slice(*self.bounds[j])] = total

        share_jobs(forward, [(i,) for i in reversed(range(count))])
        share_jobs(backward, [(j,) for j in range(count)])
        return out

    def _substitute(self, X: Block) -> Block:
        """Solve ``L L' x = X`` in place, block by block."""
        count = len(self.bounds)

        def below(i: int, j: int) -> None:
            X[slice(*self.bounds[i])] -= self.tile(i, j) @ X[slice(*self.bounds[j])]

        def above(i: int, j: int) -> None:
            X[slice(*self.bounds[i])] -= self.tile(j, i).T @ X[slice(*self.bounds[j])]

        for j in range(count):
            here = slice(*self.bounds[j])
            X[here] = self.inverses[j] @ X[here]
            share_jobs(below, [(i, j) for i in range(j + 1, count)])
        for j in reversed(range(count)):
            here = slice(*self.bounds[j])
            X[here] = self.inverses[j].T @ X[here]
            share_jobs(above, [(i, j) for i in range(j)])
        return X

    def inverse_block(self, lo: int, hi: int) -> Triangle:
        """Return the rows and columns ``lo:hi`` of ``A^-1 = W' W``, after ``invert``.

        Rows above ``lo`` of those columns of W are 0, so that m columns take m^2 (n - lo) operations.
        """
        found = Triangle(hi - lo, self.dtype, self.bounds[0][1])

        def work(p: int, q: int) -> None:
            (p0, p1), (q0, q1) = ((lo + a, lo + b) for a, b in (found.bounds[p], found.bounds[q]))
            total: Block = np.zeros((p1 - p0, q1 - q0), self.dtype)
            for (_, end), W in zip(self.bounds, self.rows, strict=True):
                if end > p0:  # what a row block doesn't reach is 0
                    a, b = W[:, p0 : min(p1, end)], W[:, q0 : min(q1, end)]
                    total[: a.shape[1], : b.shape[1]] += a.T @ b
            found.tile(p, q)[:] = total

        count = len(found.bounds)
        share_jobs(work, [(p, q) for p in range(count) for q in range(p + 1)])
        return found

    def inverse_diagonal(self) -> Array:
        """Return the diagonal of ``A^-1``, (n,), after ``invert``: the sums of squares of the columns of W."""
        found = np.zeros(self.n)

        def work(j: int) -> None:
            for i in range(j, len(self.bounds)):
                T = self.tile(i, j).astype(np.float64)
                found[slice(*self.bounds[j])] += np.einsum("ij,ij->j", T, T)

        share_jobs(work, [(j,) for j in range(len(self.bounds))])
        return found

    def dense(self) -> Block:
        """Return the whole symmetric matrix, of a small one that has not been factorised."""
        A: Block = np.zeros((self.n, self.n), self.dtype)
        for (lo, hi), block in zip(self.bounds, self.rows, strict=True):
            A[lo:hi, :hi] = block
        return np.tril(A) + np.tril(A, -1).T
