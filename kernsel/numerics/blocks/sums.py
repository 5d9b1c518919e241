"""Sums over rows that are all that fits of the square loss know of them.

With features ``Z (n, r)``, weights s and targets ``Y (k, n)``, to which a row of ones is added for the bias,

    statistics(rows) = (Z' S Z, Y S Z, Y S Y'),    merge(A, B) = A + B,

and ``finish`` makes them the system of a fit. The sums of parts of the rows add up to those of all, whoever computed
them, and in whatever parts; of rows that are left out they are subtracted, of new rows they are added.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np

from kernsel.numerics.blocks.features import Features
from kernsel.numerics.dense import add_products, mirror
from kernsel.numerics.points import Points
from kernsel.numerics.runtime.threads import one_blas_thread, share
from kernsel.numerics.square import spectral
from kernsel.types import Array, Indices, Mask

See = Callable[[slice, Array], object]


PIECES, LEAST_ROWS, LEAST_SHARE = 8, 256, 2
"""Rows are cut into so many pieces, of so many rows at least, for threads to share: fixed, as sums round by them. A
piece has so many rows for each feature at least, or adding up r x r sums would be as much work as making them."""


class Sums(NamedTuple):
    """Sums over some rows, or with a first axis those over m parts of them.

    Parameters
    ----------
    products : (r, r) or (m, r, r) array
        ``Z' S Z``.
    right : (k + 1, r) or (m, k + 1, r) array
        ``Y S Z`` for the targets, and for a target of ones.
    targets : (k + 1, k + 1) or (m, k + 1, k + 1) array
        ``Y S Y'``; the last number is the sum of the weights.
    """

    products: Array
    right: Array
    targets: Array

    @classmethod
    def zeros(cls, parts: int, outputs: int, rank: int) -> Self:
        """Return the sums of parts without rows."""
        shapes = (rank, rank), (outputs + 1, rank), (outputs + 1, outputs + 1)
        return cls(*(np.zeros((parts, *shape)) for shape in shapes))

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.targets[-1, -1])

    @property
    def nbytes(self) -> int:
        """What its arrays hold."""
        return sum(each.nbytes for each in self)

    def part(self, number: int) -> Self:
        """Return the sums of one part, views of these."""
        return type(self)(*(each[number] for each in self))

    def of(self, parts: Mask) -> Self:
        """Return the sums over some parts (m,) together."""
        taken = parts.astype(np.float64)
        return type(self)(*(np.tensordot(taken, each, 1) for each in self))

    def merge(self, other: Self) -> Self:
        """Return the sums of these rows and others."""
        return type(self)(*(one + another for one, another in zip(self, other, strict=True)))

    def without(self, other: Self) -> Self:
        """Return the sums of these rows less some of them."""
        return type(self)(*(one - another for one, another in zip(self, other, strict=True)))

    def finish(self, bias: bool) -> tuple[Array, Array]:
        """Return the products (R, R) and right-hand sides (k, R) of fits, those of a bias last if there is one."""
        G, q, y = self
        if not bias:
            return G, q[:-1]
        return np.block([[G, q[-1:].T], [q[-1:], y[-1:, -1:]]]), np.column_stack([q[:-1], y[:-1, -1]])

    def solve(self, bias: bool, ridges: Array) -> Array:
        """Return the weights (k, L, R) of the fits with ridges ``N lambda`` (L,), a bias last."""
        H, right = self.finish(bias)
        with one_blas_thread():  # more of them gain little here, and round otherwise
            return spectral.solve_weights(H, right.T, int(bias), ridges)


def statistics(features: Features, X: Points, Y: Array, s: Array | None, see: See | None = None) -> Sums:
    """Return the sums over rows X (n, d) with targets Y (k, n), and weights s (n,) unless all are 1.

    What is to be seen of the rows, ``see`` is called with on the way: see ``segment_sums``.
    """
    n = X.shape[0]
    pieces = min(PIECES, -(-n // max(LEAST_ROWS, LEAST_SHARE * features.rank)))
    bounds = np.linspace(0, n, pieces + 1).astype(np.int64)
    sums = segment_sums(features, X, Y, s, bounds, finished=False, see=see)
    whole = sums.of(np.ones(pieces, np.bool_)) if pieces > 1 else sums.part(0)
    finish(features, whole)
    return whole


def segment_sums(
    features: Features,
    X: Points,
    Y: Array,
    s: Array | None,
    bounds: Indices,
    finished: bool = True,
    see: See | None = None,
) -> Sums:
    """Return the sums over m segments of rows.

    Each segment is summed up by one thread, in order: the sums don't depend on the number of threads.

    Parameters
    ----------
    X : (n, d) points
    Y : (k, n) array
    s : (n,) array or None
        Sample weights, if not all are 1.
    bounds : (m + 1,) array
        Segment j holds the rows ``bounds[j]`` to below ``bounds[j + 1]``.
    finished : bool
        Whether the sums are of Z; else of the half-finished P, which ``finish`` takes when all are merged.
    see : callable, optional
        ``see(rows, P)`` is called with each block of rows, in some thread.
    """
    root = None if s is None else np.sqrt(s)
    m = len(bounds) - 1
    sums = Sums.zeros(m, len(Y), features.rank)

    def work(first: int, step: int) -> None:
        for j in range(first, m, step):
            part, first_row = sums.part(j), bounds[j]
            own = Y[:, first_row : bounds[j + 1]]
            own = np.vstack([own, np.ones(own.shape[1])])
            if root is not None:
                own *= root[first_row : bounds[j + 1]]
            for rows in features.blocks(bounds[j], bounds[j + 1]):
                P = features.block(X[rows])
                if see is not None:
                    see(rows, P)
                if root is not None:
                    P *= root[rows, None]
                add_products(P, part.products)
                part.right[:] += own[:, rows.start - first_row : rows.stop - first_row] @ P
            part.targets[:] = own @ own.T
            mirror(part.products)
            if finished:
                finish(features, part)

    with one_blas_thread():
        share(work, m)
    return sums


def finish(features: Features, sums: Sums) -> None:
    """Turn sums of half-finished P into those of Z, in place; sums may be of several parts."""
    sums.products[:] = features.finish(features.finish(sums.products).swapaxes(-1, -2))
    sums.right[:] = features.finish(sums.right)
