"""The stability scan: how far each point moves the Gram matrix, in O(n^2) time and O(n) memory.

``K^i`` is K with row and column i zeroed. ``K - K^i`` has rank two; with the rest of the row, ``r_i^2 = sum_{j != i}
K_ij^2``, its eigenvalues are (KS14, Theorem 4)::

    (K_ii +- sqrt(K_ii^2 + 4 r_i^2)) / 2      and n - 2 zeros

so that, also for an indefinite K with K_ii < 0::

    |K - K^i|_2     = (|K_ii| + sqrt(K_ii^2 + 4 r_i^2)) / 2      spectral norm
    |K - K^i|_*     = sqrt(K_ii^2 + 4 r_i^2)                     trace norm: one eigenvalue is >= 0, one <= 0
    |K - K^i|_F     = sqrt(K_ii^2 + 2 r_i^2)                     Frobenius norm

Nothing is subtracted here, and squares are taken of what was divided by a power of two near the largest K_ii: no
digits are lost to cancellation, overflow or underflow. Only in low rank the rest of a row is a difference,
``z_i' (Z' Z) z_i - K_ii^2``; its error is one in the last digits of K_ii, and the norms don't feel it.

With sample weights s a row of weight 2 is one that is there twice, and one copy is removed at a time:
``r_i^2 = sum_{j != i} s_j K_ij^2 + max(s_i - 1, 0) K_ii^2``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba.core import types

from kernsel.numerics.gram import (
    FORMULA,
    PAIRS,
    STATISTICS,
    TILE,
    Formula,
    apply,
    compute_tile,
    pairs_of,
    share_elements,
)
from kernsel.numerics.runtime.jit import CONTRACT, REORDER, f8, f8_1, i8, inline, jit
from kernsel.numerics.runtime.threads import one_blas_thread, share, threads
from kernsel.types import Array

NORMS = ("spectral", "trace", "frobenius")

BLOCK = 1 << 18
"""Elements of a block of rows: 2 MB stay in the cache."""


class Scan(NamedTuple):
    """What the norms of all ``K - K^i`` are made of.

    Parameters
    ----------
    diag : (n,) array
        ``K_ii``.
    rest : (n,) array
        ``r_i``, the Euclidean norm of row i without ``K_ii``.
    """

    diag: Array
    rest: Array


def perturbations(scan: Scan, norm: str = "spectral") -> Array:
    """Return the norm of ``K - K^i`` for every point, (n,).

    Parameters
    ----------
    norm : {"spectral", "trace", "frobenius"}
    """
    if norm == "frobenius":
        return np.asarray(np.hypot(scan.diag, np.sqrt(2.0) * scan.rest))
    trace = np.asarray(np.hypot(scan.diag, 2.0 * scan.rest))
    return trace if norm == "trace" else 0.5 * np.abs(scan.diag) + 0.5 * trace


def beta(scan: Scan, norm: str = "spectral") -> tuple[float, int]:
    """Return the kernel stability ``max_i |K - K^i|``, NaN if any is, and the point that attains it."""
    sizes = perturbations(scan, norm)
    worst = int(np.argmax(sizes))
    return float(sizes[worst]), worst


def scan_points(statistic: str, X: Array, formula: Formula, weights: Array | None = None) -> Scan:
    """Scan a function of a statistic of pairs straight from the points: O(n) memory beside X, each pair once.

    The same for any number of threads but for the order of sums.

    Parameters
    ----------
    statistic : {"inner", "sqdist", "l1"}
    X : (n, d) float64, C-contiguous
    formula : Formula
        Of a positive semidefinite kernel.
    weights : (n,) array, optional
    """
    n = len(X)
    diag = apply(formula, np.einsum("ij,ij->i", X, X) if statistic == "inner" else np.zeros(n))
    shrink, s = _shrink(diag), np.ones(n) if weights is None else weights
    pairs, code = pairs_of(statistic, X), STATISTICS.index(statistic)
    sums = np.zeros((threads(), n))
    loop = _scan_tiles.code  # compiled here, not by several threads at once

    def task(first: int, step: int) -> None:
        loop(pairs, code, formula, shrink, s, first, step, sums[first])

    with one_blas_thread():
        share_elements(task, n * n)
    return _scan(diag, sums.sum(axis=0), shrink, weights)


@inline(fastmath=REORDER)
def _add_squares(T, shrink, right, left, rows, columns):
    """Add ``T^2 right`` to the sums of the rows, and ``left T^2`` to those of the columns."""
    for i in range(T.shape[0]):
        total, factor = 0.0, left[i]
        for j in range(T.shape[1]):
            v = T[i, j] * shrink
            v *= v
            total += v * right[j]
            columns[j] += v * factor
        rows[i] += total


@jit(
    types.void(PAIRS, i8, FORMULA, f8, f8_1, i8, i8, f8_1),
    fastmath=CONTRACT,
)
def _scan_tiles(pairs, statistic, formula, shrink, s, first, step, sums):
    """Add the weighted squares of every ``step``-th tile below the diagonal, and of its mirror image, to the sums."""
    n = s.size
    buffer, columns = np.empty(TILE * TILE), np.empty(TILE)
    tile = 0
    for i0 in range(0, n, TILE):
        for j0 in range(0, i0 + 1, TILE):
            tile += 1
            if (tile - 1) % step != first:
                continue
            h, w = min(TILE, n - i0), min(TILE, n - j0)
            flat = buffer[: h * w]
            T = flat.reshape((h, w))
            compute_tile(pairs, i0, j0, statistic, formula, flat, T)
            if i0 == j0:
                for i in range(h):
                    T[i, i] = 0.0
            for j in range(w):
                columns[j] = 0.0
            _add_squares(T, shrink, s[j0 : j0 + w], s[i0 : i0 + h], sums[i0 : i0 + h], columns)
            if i0 != j0:
                for j in range(w):
                    sums[j0 + j] += columns[j]


def scan_rows(
    block: Callable[[int, int], Array], diag: Array, weights: Array | None = None, elements: int = BLOCK
) -> Scan:
    """Scan any symmetric matrix by blocks of its rows, of which only what lies below the diagonal is asked for.

    Parameters
    ----------
    block : callable
        ``block(lo, hi) -> K[lo:hi, :hi]``.
    diag : (n,) array
    weights : (n,) array, optional
    elements : int
        Of a block, at most.
    """
    n = len(diag)
    shrink, s = _shrink(diag), np.ones(n) if weights is None else weights
    sums, height = np.zeros(n), max(1, elements // max(n, 1))
    for lo in range(0, n, height):
        hi = min(lo + height, n)
        squares = block(lo, hi) * shrink
        squares *= squares
        np.fill_diagonal(squares[:, lo:], 0.0)
        sums[lo:hi] += squares @ s[:hi]
        sums[:lo] += s[lo:hi] @ squares[:, :lo]
    return _scan(diag, sums, shrink, weights)


def scan_gram(K: Array, weights: Array | None = None, elements: int = BLOCK) -> Scan:
    """Scan a stored Gram matrix (n, n), definite or not.

    Parameters
    ----------
    K : (n, n) array
        Symmetric; only what lies below the diagonal is read.
    weights : (n,) array, optional
    elements : int
        Of a block of rows, at most.
    """
    return scan_rows(lambda lo, hi: K[lo:hi, :hi], np.diagonal(K).copy(), weights, elements)


def scan_features(
    features: Callable[[slice], Array], G: Array, n: int, weights: Array | None = None, elements: int = BLOCK
) -> Scan:
    """Scan ``K = Z Z'`` in O(n r^2), from features that may be computed block by block.

    Parameters
    ----------
    features : callable
        ``features(rows) -> Z[rows]``, (b, r), for a slice of the rows.
    G : (r, r) array
        ``Z' S Z``, S the weights.
    n : int
        Number of rows.
    weights : (n,) array, optional
    elements : int
        Of a block of features, at most.
    """
    r = len(G)
    shrink = _shrink(np.diagonal(G))
    diag, sums, height = np.empty(n), np.empty(n), max(1, elements // max(r, 1))
    blocks = [slice(lo, min(lo + height, n)) for lo in range(0, n, height)]

    def work(first: int, step: int) -> None:
        for rows in blocks[first::step]:
            Z = features(rows)
            diag[rows] = np.einsum("ij,ij->i", Z, Z)
            sums[rows] = np.einsum("ij,ij->i", Z @ (G * shrink), Z * shrink)

    with one_blas_thread():
        share(work, len(blocks))
    own = (diag * shrink) ** 2
    return _scan(diag, np.maximum(sums - (own if weights is None else weights * own), 0.0), shrink, weights)


def _shrink(diag: Array) -> float:
    """Return a power of two by which numbers of the size of the largest of ``diag`` become about 1."""
    finite = np.abs(diag[np.isfinite(diag) & (diag != 0)])
    return float(np.ldexp(1.0, min(-np.frexp(finite.max())[1], 1023))) if finite.size else 1.0


def _scan(diag: Array, squares: Array, shrink: float, weights: Array | None) -> Scan:
    """Return the scan from the sums of weighted squares of ``shrink K`` without its diagonal."""
    if weights is not None:
        squares = squares + np.maximum(weights - 1.0, 0.0) * (diag * shrink) ** 2
    return Scan(diag, np.sqrt(squares) / shrink)
