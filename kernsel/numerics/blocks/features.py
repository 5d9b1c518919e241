"""Low-rank features that are never held together: sums over blocks of rows, and outputs block by block.

From r landmarks, a triangle T and ``C = k(X, landmarks)`` come the features ``Z = C T`` (see ``lowrank``). All that the
square loss needs of them are the sums ``Z_S' Z_S`` and ``Z_S' y_S`` over segments S of rows, r x r and r numbers each;
a second pass over the rows turns weights into outputs.

The product ``C T`` would cost as much as ``Z' Z``. Transforming the sums instead, ``T' (C' C) T``, costs nothing, but
squares the condition of the landmarks' block ``W = T^-T T^-1``: where the kernel is wide all digits are lost. In
between, the first h pivots are eliminated from every block, and the others from the sums. With the residuals
``C_2 - C_1 T_11 T_11' W_12`` of the other columns,

    P = [C_1 T_11, C_2 - C_1 T_11 T_11' W_12],   Q = diag(I, T_22),   Z = P Q,   Z' Z = Q' (P' P) Q.

What Q magnifies is small by then: h = r / 16 keeps the digits of the most common kernels, at an eighth of the cost.
Targets are rows: ``Y (k, n)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numba.core import types

from kernsel.numerics.dense import times_upper
from kernsel.numerics.points import Kernel, Points
from kernsel.numerics.runtime.blas import ridged_cholesky, solve_rows
from kernsel.numerics.runtime.jit import f8_1, f8_2, f8_3, i8, i8_1, jit
from kernsel.numerics.runtime.threads import one_blas_thread, share
from kernsel.numerics.smooth.convergence import CONVERGED, SINGULAR
from kernsel.numerics.square import spectral
from kernsel.types import Array, Indices

BLOCK_BYTES = 2**23
"""A block of features is about this large: much larger ones go back to the system each time, and come as new pages."""

ELIMINATED_BYTES = 2**20
"""Pivots are eliminated from about so much of a block at a time, which stays in the cache."""

MAGNIFIED = 1e4
"""By how much rounding in the sums may be magnified, in a bound that is some ten to a thousand times too large."""


class Features:
    """Half-finished features ``P`` of any rows, and what finishes their sums and weights.

    Parameters
    ----------
    kernel : callable
        ``kernel(X (n, d), points (r, d)) -> (n, r)``.
    points : (r, d) points
        The landmarks in the order of their choice.
    T : (r, r) array
        Upper triangular, from the Cholesky factor of the landmarks' block.
    sample : (m, d) points or None
        Rows by which the number of pivots is chosen that are eliminated from every block; None for all of them, with
        which P is Z itself: less work for a few rows, whose sums take as long to finish.
    block_bytes : int
        The size of a block of features.
    magnified : float
        By how much rounding in the sums may be magnified.
    """

    def __init__(
        self,
        kernel: Kernel,
        points: Points,
        T: Array,
        sample: Points | None,
        block_bytes: int = BLOCK_BYTES,
        magnified: float = MAGNIFIED,
    ) -> None:
        self.kernel, self.points, self.T, self.block_bytes = kernel, points, T, block_bytes
        self.head, self.first, self.later, self.rest = len(T), T, T[:, :0], T[:0, :0]
        if sample is None:
            return
        C, W, r = kernel(sample, points), kernel(points, points), len(T)
        of_rows = (T**2).sum(axis=1)
        with one_blas_thread():  # the same bits in every process
            explained = float(((C @ T) ** 2).sum())
            for share_of_pivots in (0, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1):
                self._split(int(np.ceil(share_of_pivots * r)), W)
                h = self.head
                R = C[:, h:] - C[:, :h] @ self.first @ self.later
                if (R**2).sum() * of_rows[h:].sum() <= magnified * explained:  # T is triangular
                    break

    def _split(self, h: int, W: Array) -> None:
        """Have the first h pivots eliminated from every block; W (r, r) is the kernel between landmarks."""
        self.head = h
        self.first = self.T[:h, :h]
        self.later = self.first.T @ W[:h, h:]
        self.rest = np.ascontiguousarray(self.T[h:, h:])

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel as what it was made from, with the number of pivots that was chosen."""
        return _with_head, (self.kernel, self.points, self.T, self.block_bytes, self.head)

    @property
    def rank(self) -> int:
        """Number of features."""
        return len(self.T)

    def block(self, X: Points) -> Array:
        """Return ``P`` of some rows, (b, r)."""
        P, h = self.kernel(X, self.points), self.head
        P[:, :h] = times_upper(P[:, :h], self.first, overwrite=True)
        for rows in self._slices(0, len(P), ELIMINATED_BYTES):
            P[rows, h:] -= P[rows, :h] @ self.later
        return P

    def finish(self, values: Array) -> Array:
        """Return ``values Q`` for values (..., r) from rows of P."""
        if self.head == self.rank:
            return values
        rest = times_upper(values[..., self.head :].reshape(-1, len(self.rest)), self.rest)
        return np.concatenate([values[..., : self.head], rest.reshape(*values.shape[:-1], -1)], axis=-1)

    def spread(self, w: Array) -> Array:
        """Return ``w Q'``, (..., r): ``Z w = P (Q w)``."""
        return np.concatenate([w[..., : self.head], w[..., self.head :] @ self.rest.T], axis=-1)

    def blocks(self, lo: int, hi: int) -> Iterator[slice]:
        """Cut the rows from ``lo`` to below ``hi`` into blocks."""
        yield from self._slices(lo, hi, self.block_bytes)

    def _slices(self, lo: int, hi: int, size_in_bytes: int) -> Iterator[slice]:
        size = max(1, size_in_bytes // (8 * max(1, self.rank)))
        for start in range(lo, hi, size):
            yield slice(start, min(start + size, hi))


def _with_head(kernel: Kernel, points: Points, T: Array, block_bytes: int, head: int) -> Features:
    """Return features of which so many pivots are eliminated from every block."""
    features = Features(kernel, points, T, None, block_bytes)
    if head < len(T):
        W = kernel(points, points)
        with one_blas_thread():
            features._split(head, W)
    return features


@jit(types.void(f8_2, f8_2, i8, f8_1, f8_3, i8_1))
def _solve(H, right, bias, ridges, w, status):
    R, x = np.empty(H.shape), np.empty(right.shape)
    for k in range(ridges.size):
        for c in range(right.shape[0]):
            for j in range(right.shape[1]):
                x[c, j] = right[c, j]
        status[k] = CONVERGED if ridged_cholesky(H, ridges[k], bias, R) == 0 else SINGULAR
        solve_rows(R, x)
        for c in range(right.shape[0]):
            for j in range(right.shape[1]):
                w[c, k, j] = x[c, j]


def solve(H: Array, right: Array, bias: int, ridges: Array) -> tuple[Array, Indices]:
    """Solve ``(H + ridge I) w = right`` for every ridge: w (k, L, r) and statuses (L,); the last ``bias`` has no ridge.

    Parameters
    ----------
    H : (r, r) array
        Its lower triangle is read.
    right : (k, r) array
    ridges : (L,) array
    """
    w, status = np.empty((len(right), ridges.size, len(H))), np.zeros(ridges.size, np.int64)
    _solve(H, np.ascontiguousarray(right), bias, ridges, w, status)
    return w, status


def without_rows(U: Array, ev: Array, Y: Array, C: Array, ridges: Array, root: Array) -> Array:
    """Return the outputs ``(k, L, b)`` of some rows, each by the fit without it: ``y_i - (A y)_i / A_ii``.

    All is made of ``ridge A = I - U U' + U diag(ridge / (ev + ridge)) U'``, as in ``spectral``, with a ridge a row.

    Parameters
    ----------
    U : (b, r) array
        Their rows of the orthonormal columns of the spectrum.
    ev : (r,) array
    Y : (k, b) array
        Their targets; weighted, as all is here.
    C : (k, r) array
        The coordinates of all targets.
    ridges : (L, b) array
    root : (b,) array
        The outputs are divided by it.
    """
    own, rest = 1.0 - (U**2).sum(axis=1), Y - C @ U.T
    f = np.empty((len(Y), *ridges.shape))
    with np.errstate(divide="ignore", invalid="ignore"):  # a ridge below rounding: not finite, or said to be lost
        for k, ridge in enumerate(ridges):
            shrunk = U * spectral.shrinkage(ridge[:, None], ev)
            f[:, k] = (Y - (rest + C @ shrunk.T) / (own + np.einsum("ij,ij->i", U, shrunk))) / root
    return f


def outputs(features: Features, X: Points, starts: Indices, w: Array, b: Array) -> Array:
    """Return the outputs ``f (k, L, n)`` of the rows of each segment by weights of its own; of the others they are 0.

    Parameters
    ----------
    X : (n, d) points
    starts : (t + 1,) array
        Bounds of the segments.
    w : (t, k, L, r) array
        Weights for Z.
    b : (t, k, L) array
        Biases.
    """
    t, k, L, r = w.shape
    b = b.reshape(t, k * L, 1)
    f = np.zeros((k * L, X.shape[0]))
    blocks = [(j, rows) for j in range(t) for rows in features.blocks(starts[j], starts[j + 1])]

    def work(first: int, step: int) -> None:
        for j, rows in blocks[first::step]:
            f[:, rows] = A[j] @ features.block(X[rows]).T + b[j]

    with one_blas_thread():
        A = features.spread(w).reshape(t, k * L, r)
        share(work, len(blocks))
    return f.reshape(k, L, -1)
