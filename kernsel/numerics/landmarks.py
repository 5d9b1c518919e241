"""Landmarks for low-rank features, other than those of pivoted Cholesky: see ``lowrank``."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from kernsel.numerics.dense import Cholesky
from kernsel.numerics.points import Kernel, Points, dense
from kernsel.types import Array, Indices

_EPS = float(np.finfo(float).eps)
_TINY = float(np.finfo(float).tiny)

LLOYD_STEPS = 5
"""Most of what k-means gains is gained in a few steps, and centres need not be better than that."""

BLOCK = 4096
"""Rows whose distances to all centres are held at a time."""


def uniform_landmarks(n: int, rank: int, seed: int) -> Indices:
    """Draw ``min(rank, n)`` of n points without replacement, each set with the same probability.

    Returns
    -------
    landmarks : (min(rank, n),) array, ascending
    """
    chosen = np.random.default_rng(seed).choice(n, min(rank, n), replace=False)
    return np.sort(chosen).astype(np.int64)


def ridge_leverages(C: Array, W: Array, diag: Array, ridge: float) -> Array:
    """Return ``(diag(K) - diag(C (W + ridge I)^-1 C')) / ridge``, an upper bound on ``diag(K (K + ridge I)^-1)``.

    The two are equal where C and W are K itself.

    Parameters
    ----------
    C : (n, c) array
        ``K S`` for a matrix S with ``S S' <= I``, such as one that picks columns.
    W : (c, c) array
        ``S' K S``.
    diag : (n,) array
        Diagonal of K.
    ridge : float
        Greater than 0.

    References
    ----------
    C. Musco and C. Musco (2017), Recursive sampling for the Nystrom method, Lemma 6.
    """
    leverages: Array = np.maximum(diag - Cholesky.of(W, ridge).lengths(C.T), 0.0) / ridge
    return leverages


def leverage_landmarks(kernel: Kernel, X: Points, diag: Array, count: int, seed: int) -> Indices:
    """Draw landmarks without replacement, in proportion to approximate ridge leverage scores.

    The scores of all points follow from a weighted sample of half of them, that one is drawn by its own scores, and so
    on down to twice as many points as landmarks. The ridge is ``sum_(i > k) sigma_i / k`` over the eigenvalues of the
    sample's matrix, with ``k = count / (4 log count)``.

    Parameters
    ----------
    kernel : callable
        ``kernel(X (n, d), points (c, d)) -> (n, c)``.
    X : (n, d) array
    diag : (n,) array
        ``k(x, x)`` of each point.
    count : int
        At least 1.

    Returns
    -------
    landmarks : (min(count, n),) array, ascending

    References
    ----------
    C. Musco and C. Musco (2017), Recursive sampling for the Nystrom method, Algorithm 3, for a given number.
    """
    n, rng = X.shape[0], np.random.default_rng(seed)
    count = min(count, n)
    order, sizes = rng.permutation(n), [n]
    while sizes[-1] > 2 * count:
        sizes.append((sizes[-1] + 1) // 2)
    oversampling = max(1.0, np.log(count))
    k = max(1, int(count / (4.0 * oversampling)))
    sample, weights = order[:count], np.ones(count)
    scores = np.zeros(0)
    for size in reversed(sizes):
        if scores.size:
            chance = np.clip(oversampling * scores, _EPS, 1.0)
            drawn = rng.random(chance.size) < chance
            drawn[np.argmax(chance)] = True
            sample, weights = order[: chance.size][drawn], chance[drawn] ** -0.5
        W = weights[:, None] * kernel(X[sample], X[sample]) * weights
        sigma = np.linalg.eigvalsh(W)[::-1]
        ridge = max(float(sigma[k:].sum()) / k, len(W) * _EPS * float(sigma.sum()), _TINY)
        rows = order[:size]
        scores = ridge_leverages(kernel(X[rows], X[sample]) * weights, W, diag[rows], ridge)
    chance = np.clip(scores, _EPS, 1.0)
    return np.sort(order[rng.choice(n, count, replace=False, p=chance / chance.sum())])


def kmeans_centres(X: Points, count: int, seed: int) -> Array:
    """Return ``min(count, n)`` centres (., d) after a few steps of k-means from points drawn at random.

    A centre that is nearest to no point stays where it was.

    Parameters
    ----------
    X : (n, d) array, or sparse rows

    References
    ----------
    K. Zhang, I. Tsang and J. Kwok (2008), Improved Nystrom low-rank approximation and error analysis.
    """
    n = X.shape[0]
    centres = dense(X[uniform_landmarks(n, count, seed)])
    nearest = np.zeros(n, np.int64)
    for _ in range(LLOYD_STEPS):
        half_squares = 0.5 * np.einsum("ij,ij->i", centres, centres)
        for start in range(0, n, BLOCK):
            rows = slice(start, start + BLOCK)
            nearest[rows] = np.argmin(half_squares - X[rows] @ centres.T, axis=1)
        sizes = np.bincount(nearest, minlength=len(centres))
        sums = dense(csr_array((np.ones(n), (nearest, np.arange(n))), shape=(len(centres), n)) @ X)
        own = sizes > 0
        centres[own] = sums[own] / sizes[own, None]
    return centres
