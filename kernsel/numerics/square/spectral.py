"""Spectra of Gram matrices and of features, and fits of the square loss by them, for every ridge at once.

``K = U diag(ev) U'`` with orthonormal ``U (n, r)``, from a Gram matrix or from low-rank features; eigenvalues that are
rounding are dropped, not clamped. Targets are rows: ``Y (k, n)``.

With sample weights s everything is in the coordinates of ``S^1/2``: ``S^1/2 K S^1/2`` and ``S^1/2 y``, and the ridge is
``lam`` times the sum of the weights that are kept; outputs are ``S^1/2 f``. An unpenalised bias is the direction
``S^1/2 1`` with an infinite eigenvalue, beside the spectrum of the matrix projected off it; among features it is a last
column without a ridge.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg

from kernsel.numerics.dense import Cholesky

ROUNDING = 2.0**-52
"""The spacing of float64 numbers near 1."""


class Spectrum(NamedTuple):
    """The part of ``K = U diag(ev) U'`` that is above rounding, in the coordinates of ``S^1/2``.

    A direction ``free (n,)`` that isn't penalised, ``S^1/2 1`` for a bias, comes first, with an infinite eigenvalue.

    Parameters
    ----------
    U : (n, r) array
        Orthonormal columns.
    ev : (r,) array
        Eigenvalues, ascending.
    """

    U: np.ndarray
    ev: np.ndarray

    @classmethod
    def of_gram(cls, K: np.ndarray, free: np.ndarray | None = None) -> Spectrum:
        """Return the spectrum of a weighted Gram matrix (n, n), with a direction that isn't penalised."""
        if free is None:
            return cls(*without_rounding(*np.linalg.eigh(K)[::-1], K.shape[0]))
        e = free / np.linalg.norm(free)
        Ke = K @ e
        centred = K - np.outer(e, Ke) - np.outer(Ke - e * (e @ Ke), e)
        # The direction gets the largest eigenvalue of all: beside its own one, 0, small ones would have tilted vectors.
        ev, U = np.linalg.eigh(centred + 2.0 * (np.trace(K) or 1.0) * np.outer(e, e))
        return cls(*without_rounding(U[:, :-1], ev[:-1], K.shape[0]))._after(e)

    @classmethod
    def of_features(cls, Z: np.ndarray, free: np.ndarray | None = None) -> Spectrum:
        """Return the spectrum of ``Z Z'`` for weighted features (n, r), with a direction that isn't penalised.

        The left singular vectors come from ``Z' Z``, at a small part of the cost of a singular value decomposition.
        That squares the condition; one step of Newton and Schulz makes the columns orthonormal again.
        """
        e = None if free is None else free / np.linalg.norm(free)
        if e is not None:
            Z = Z - np.outer(e, e @ Z)
        ev, Q = np.linalg.eigh(Z.T @ Z)
        Q, ev = without_rounding(Q, ev, Z.shape[0])
        U = (Z @ Q) / np.sqrt(ev)
        found = cls(U @ (1.5 * np.eye(ev.size) - 0.5 * (U.T @ U)), ev)
        return found if e is None else found._after(e)

    def _after(self, e: np.ndarray) -> Spectrum:
        """Put ``e`` before the others, which are made orthogonal to it once more, to rounding."""
        U = self.U - np.outer(e, e @ self.U)
        return Spectrum(np.ascontiguousarray(np.column_stack([e, U])), np.append(np.inf, self.ev))

    def outputs(self, Y: np.ndarray, ridges: np.ndarray) -> np.ndarray:
        """Return ``f = U diag(ev / (ev + ridge)) U' y``, (k, L, n), of the fits to weighted targets Y (k, n)."""
        f: np.ndarray = ((Y @ self.U)[:, None, :] * shrinkage(self.ev, ridges[:, None])) @ self.U.T
        return f

    def energies(self, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return how weighted targets Y (k, n) spread: ``ev (r,)``, the squares of their coordinates in the spectrum,
        (k, r), and those beyond it, (k,).

        That is all that fits of every ridge know of the targets, as far as squared residuals go.
        """
        C = Y @ self.U
        return self.ev, C**2, ((Y - C @ self.U.T) ** 2).sum(axis=1)

    def coefficients(self, Y: np.ndarray, ridges: np.ndarray) -> np.ndarray:
        """Return ``a (k, L, n)`` with ``f = K a``, and the bias: ``a = U diag(1 / (ev + ridge)) U' y``.

        What of the weighted targets Y (k, n) lies outside the spectrum is left out: K maps it to nothing.
        """
        a: np.ndarray = ((Y @ self.U)[:, None, :] / (self.ev + ridges[:, None])) @ self.U.T
        return a

    def coefficients_without(self, Y: np.ndarray, ridge: float, fold: slice) -> np.ndarray:
        """Return the coefficients ``(k, n)`` of the fit without a fold, for its own ridge, with zeros in it.

        With ``A = (K + ridge I)^-1`` they are ``A y - A_{:,S} A_SS^-1 (A y)_S`` for weighted targets Y (k, n). All is
        made of ``ridge A = U diag(ridge / (ev + ridge)) U' + (I - U U')``, which keeps its digits where the ridge is
        small.
        """
        U, (n, r) = self.U, self.U.shape
        shrunk, YU = U * (ridge / (self.ev + ridge)), Y @ U
        A, Ay = shrunk @ U[fold].T, YU @ shrunk.T
        if r < n:
            A -= U @ U[fold].T
            A[fold] += np.eye(A.shape[1])
            Ay += Y - YU @ U.T
        e = scipy.linalg.lstsq(A[fold], Ay[:, fold].T, lapack_driver="gelsy")[0]
        a: np.ndarray = (Ay - (A @ e).T) / ridge
        a[:, fold] = 0.0
        return a


def above_rounding(ev: np.ndarray, n: int) -> np.ndarray:
    """Say which of the ascending eigenvalues ``ev (r,)`` of a matrix of n rows are more than rounding, (r,) bool."""
    kept: np.ndarray = ev > n * np.finfo(float).eps * max(ev[-1:].max(initial=0.0), 0.0)
    return kept


def without_rounding(U: np.ndarray, ev: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns of U and the ascending eigenvalues ``ev`` of a matrix of n rows that are above rounding."""
    kept = above_rounding(ev, n)
    return np.ascontiguousarray(U[:, kept]), ev[kept]


def least_ridge(ev: np.ndarray, n: int) -> float:
    """Return the ridge below which directions that a spectrum of n rows doesn't span are lost in its rounding."""
    return n * ROUNDING * float(ev[np.isfinite(ev)].max(initial=0.0)) if ev.size < n else 0.0


def shrinkage(ev: np.ndarray, ridge: np.ndarray | float) -> np.ndarray:
    """Return ``ev / (ev + ridge)``, which is 1 for an infinite ev."""
    with np.errstate(over="ignore"):  # then it is 0
        return 1.0 / (1.0 + ridge / ev)


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
