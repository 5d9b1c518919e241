"""Spectra of Gram matrices and of features, and fits of the square loss by them, for every ridge at once.

``K = U diag(ev) U'`` with orthonormal ``U (n, r)``, from a Gram matrix or from low-rank features; eigenvalues that are
rounding are dropped, not clamped. Targets are rows: ``Y (k, n)``.

With sample weights s everything is in the coordinates of ``S^1/2``: ``S^1/2 K S^1/2`` and ``S^1/2 y``, and the ridge is
``lam`` times the sum of the weights that are kept; outputs are ``S^1/2 f``. An unpenalised bias is the direction
``S^1/2 1`` with an infinite eigenvalue, beside the spectrum of the matrix projected off it; among features it is a last
column without a ridge.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from kernsel.numerics.dense import Cholesky

ROUNDING = 2.0**-52
"""The spacing of float64 numbers near 1."""


def spectrum_of_gram(K: np.ndarray, free: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return ``U (n, r)`` and the eigenvalues ``ev (r,)`` of a Gram matrix that are above rounding, largest last.

    With a direction ``free (n,)`` that isn't penalised, it comes first, with an infinite eigenvalue.

    Parameters
    ----------
    K : (n, n) array
        Gram matrix, in the coordinates of ``S^1/2``.
    free : (n,) array or None
        A direction without a ridge, ``S^1/2 1`` for a bias.
    """
    if free is None:
        return without_rounding(*np.linalg.eigh(K)[::-1], K.shape[0])
    e = free / np.linalg.norm(free)
    Ke = K @ e
    centred = K - np.outer(e, Ke) - np.outer(Ke - e * (e @ Ke), e)
    # The direction gets the largest eigenvalue of all: beside its own one, 0, small ones would have tilted vectors.
    ev, U = np.linalg.eigh(centred + 2.0 * (np.trace(K) or 1.0) * np.outer(e, e))
    return _with_free(*without_rounding(U[:, :-1], ev[:-1], K.shape[0]), e)


def spectrum_of_features(Z: np.ndarray, free: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return ``U (n, r')`` and the eigenvalues ``ev (r',)`` of ``Z Z'`` that are above rounding, largest last.

    The left singular vectors come from ``Z' Z``, at a small part of the cost of a singular value decomposition. That
    squares the condition; one step of Newton and Schulz makes the columns orthonormal again. With a direction
    ``free (n,)`` that isn't penalised, it comes first, with an infinite eigenvalue.

    Parameters
    ----------
    Z : (n, r) array
        Weighted features, ``S^1/2 Z``, the column of a bias last.
    free : (n,) array or None
        A direction without a ridge, ``S^1/2 1`` for a bias.
    """
    e = None if free is None else free / np.linalg.norm(free)
    if e is not None:
        Z = Z - np.outer(e, e @ Z)
    ev, Q = np.linalg.eigh(Z.T @ Z)
    Q, ev = without_rounding(Q, ev, Z.shape[0])
    U = (Z @ Q) / np.sqrt(ev)
    U = U @ (1.5 * np.eye(ev.size) - 0.5 * (U.T @ U))
    return (U, ev) if e is None else _with_free(U, ev, e)


def above_rounding(ev: np.ndarray, n: int) -> np.ndarray:
    """Say which of ascending eigenvalues of a matrix of n rows are more than rounding, (r,) bool.

    Parameters
    ----------
    ev : (r,) array
        Eigenvalues, ascending.
    n : int
        Rows of the matrix.
    """
    kept: np.ndarray = ev > n * np.finfo(float).eps * max(ev[-1:].max(initial=0.0), 0.0)
    return kept


def without_rounding(U: np.ndarray, ev: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns of U and the ascending eigenvalues ``ev`` of a matrix of n rows that are above rounding."""
    kept = above_rounding(ev, n)
    return np.ascontiguousarray(U[:, kept]), ev[kept]


def least_ridge(ev: np.ndarray, n: int) -> float:
    """Return the ridge below which the directions that a spectrum of n rows doesn't span are lost in its rounding.

    Parameters
    ----------
    ev : (r,) array
        Eigenvalues, ascending.
    n : int
        Rows of the matrix.
    """
    return n * ROUNDING * float(ev[np.isfinite(ev)].max(initial=0.0)) if ev.size < n else 0.0


def _with_free(U: np.ndarray, ev: np.ndarray, e: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Put ``e`` before the others, which are made orthogonal to it once more, to rounding."""
    U = U - np.outer(e, e @ U)
    return np.ascontiguousarray(np.column_stack([e, U])), np.append(np.inf, ev)


def shrinkage(ev: np.ndarray, ridge: np.ndarray | float) -> np.ndarray:
    """Return ``ev / (ev + ridge)``, which is 1 for an infinite ev."""
    with np.errstate(over="ignore"):  # then it is 0
        return 1.0 / (1.0 + ridge / ev)


def outputs(U: np.ndarray, ev: np.ndarray, Y: np.ndarray, ridges: np.ndarray) -> np.ndarray:
    """Return the outputs of the fits, ``f = U diag(ev / (ev + ridge)) U' y``, as ``(k, L, n)``.

    Parameters
    ----------
    U : (n, r) array
        Orthonormal columns of the spectrum, in the coordinates of ``S^1/2``.
    ev : (r,) array
        Eigenvalues, ascending.
    Y : (k, n) array
        Weighted targets, ``S^1/2 y``.
    ridges : (L,) array
        ``N lam``.
    """
    f: np.ndarray = ((Y @ U)[:, None, :] * shrinkage(ev, ridges[:, None])) @ U.T
    return f


def energies(U: np.ndarray, ev: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return how targets spread: ``ev (r,)`` itself, the squares of their coordinates in it (k, r), and beyond it (k,).

    That is all that fits of every ridge know of the targets, as far as squared residuals go.

    Parameters
    ----------
    U : (n, r) array
        Orthonormal columns of the spectrum, in the coordinates of ``S^1/2``.
    ev : (r,) array
        Eigenvalues, ascending.
    Y : (k, n) array
        Weighted targets, ``S^1/2 y``.
    """
    C = Y @ U
    return ev, C**2, ((Y - C @ U.T) ** 2).sum(axis=1)


def coefficients(U: np.ndarray, ev: np.ndarray, Y: np.ndarray, ridges: np.ndarray) -> np.ndarray:
    """Return ``a (k, L, n)`` with ``f = K a``, and the bias: ``a = U diag(1 / (ev + ridge)) U' y``.

    What of y lies outside the spectrum is left out: K maps it to nothing.

    Parameters
    ----------
    U : (n, r) array
        Orthonormal columns of the spectrum, in the coordinates of ``S^1/2``.
    ev : (r,) array
        Eigenvalues, ascending.
    Y : (k, n) array
        Weighted targets, ``S^1/2 y``.
    ridges : (L,) array
        ``N lam``.
    """
    a: np.ndarray = ((Y @ U)[:, None, :] / (ev + ridges[:, None])) @ U.T
    return a


def coefficients_without(U: np.ndarray, ev: np.ndarray, Y: np.ndarray, ridge: float, fold: slice) -> np.ndarray:
    """Return the coefficients ``(k, n)`` of the fit without a fold, for its own ridge, with zeros in the fold.

    With ``A = (K + ridge I)^-1`` they are ``A y - A_{:,S} A_SS^-1 (A y)_S``. All is made of ``ridge A = U diag(ridge /
    (ev + ridge)) U' + (I - U U')``, which keeps its digits where the ridge is small.

    Parameters
    ----------
    U : (n, r) array
        Orthonormal columns of the spectrum, in the coordinates of ``S^1/2``.
    ev : (r,) array
        Eigenvalues, ascending.
    Y : (k, n) array
        Weighted targets, ``S^1/2 y``.
    ridge : float
    fold : slice
        Rows that are left out.
    """
    n, r = U.shape
    shrunk, YU = U * (ridge / (ev + ridge)), Y @ U
    A, Ay = shrunk @ U[fold].T, YU @ shrunk.T
    if r < n:
        A -= U @ U[fold].T
        A[fold] += np.eye(A.shape[1])
        Ay += Y - YU @ U.T
    e = scipy.linalg.lstsq(A[fold], Ay[:, fold].T, lapack_driver="gelsy")[0]
    a: np.ndarray = (Ay - (A @ e).T) / ridge
    a[:, fold] = 0.0
    return a


def weights(Z: np.ndarray, bias: int, Y: np.ndarray, ridges: np.ndarray) -> np.ndarray:
    """Return ``w (k, L, r)`` with ``f = Z w``: ``(Z' Z + ridge I) w = Z' y``, without a ridge for a bias' column.

    Parameters
    ----------
    Z : (n, r) array
        Weighted features, ``S^1/2 Z``, the column of a bias last.
    bias : int
        1 where the last column is that of a bias, which has no ridge.
    Y : (k, n) array
        Weighted targets, ``S^1/2 y``.
    ridges : (L,) array
        ``N lam``.
    """
    return solve_weights(Z.T @ Z, Z.T @ Y.T, bias, ridges)


def solve_weights(G: np.ndarray, right: np.ndarray, bias: int, ridges: np.ndarray) -> np.ndarray:
    """Return ``w (k, L, r)`` with ``(G + ridge I) w = right``, of minimum norm where a ridge is below rounding.

    Parameters
    ----------
    G : (r, r)
        Products ``Z' Z`` of features.
    right : (r, k)
        ``Z' y``.
    bias : int
        1 where the last feature is that of a bias, which has no ridge.
    ridges : (L,)
    """
    w = np.empty((right.shape[1], ridges.size, len(G)))
    for k, ridge in enumerate(ridges):
        try:
            w[:, k] = Cholesky.of(G, ridge, bias).solve(right).T
        except np.linalg.LinAlgError:  # the ridge is below rounding: the minimum-norm solution
            penalty = np.where(np.arange(len(G)) < len(G) - bias, ridge, 0.0)
            w[:, k] = np.linalg.lstsq(G + np.diag(penalty), right, rcond=None)[0].T
    return w
