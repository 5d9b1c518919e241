"""Criteria of the square loss as functions of the Gram matrix and of lambda, with their gradients.

Every function takes the Gram matrix K (n, n), targets Y (k, n), sample weights s (n,), ones without, ``bias``, 1 where
there is an unpenalised one, and ``lam``. It returns ``(value, W, slope)``: the criterion, its derivatives by the
entries of K, a symmetric matrix such that a change of K changes the value by ``sum_ij W_ij dK_ij``, and its derivative
by ``lam``. A kernel turns W into derivatives by its parameters at ``O(n^2)`` each.

With sample weights s all is done in the coordinates of ``S^1/2``, as in ``spectral``: ``K~ = S^1/2 K S^1/2``,
``y~ = S^1/2 y``, and the ridge is ``lam`` times the sum of the weights that are kept. With ``H = K~ + ridge I`` it is
``A = H^-1``, or ``A = H^-1 - u u' / (e' u)`` with ``u = H^-1 e`` and ``e = S^1/2 1`` for an unpenalised bias; in both
cases ``dA = -A dH A``.
A ridge below rounding raises ``numpy.linalg.LinAlgError``. Logarithms have no value where nothing is left of a target:
it is 0, or a constant that a bias fits.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import scipy.linalg
from numba.core import types

from kernsel.numerics.runtime.blas import cholesky, inverse
from kernsel.numerics.runtime.jit import f8_2, i8, jit
from kernsel.numerics.square import spectral
from kernsel.numerics.square.factored import factors_are_cheaper

Columns = Callable[[slice, float], tuple[np.ndarray, np.ndarray]]


def cross_validation(
    K: np.ndarray, Y: np.ndarray, s: np.ndarray, bias: int, lam: float, starts: np.ndarray
) -> tuple[float, np.ndarray, float]:
    """Mean squared held-out residual of exact refits, over outputs and held-out rows; folds of one row leave one out.

    With ``e = A_SS^-1 (A y~)_S`` of fold S and ``p = A_SS^-1 e``, ``d(e'e)/dK~ = -2 (A_{:,S} p)(A y~ - A_{:,S} e)'``,
    made symmetric.

    Parameters
    ----------
    lam : float
        The fit without fold S has the ridge ``lam`` times the weights outside S.
    starts : (t + 1,)
        Bounds of the folds; rows beyond the last are never held out.
    """
    each = _heldout(K, Y, s, bias, lam, starts)
    values, grams, slopes = (np.array(parts) for parts in zip(*each, strict=True))
    return float(values.mean()), grams.mean(axis=0), float(slopes.mean())


def bayesian_regularisation(
    K: np.ndarray, Y: np.ndarray, s: np.ndarray, bias: int, lam: float, starts: np.ndarray
) -> tuple[float, np.ndarray, float]:
    """The part of the Bayesian regularisation criterion that depends on K, ``(n / 2) log Q``, ``Q = (n / 2) mean r^2``.

    ``r`` are leave-one-out residuals of the n rows that folds hold out; several outputs have a Q each, and the mean of
    the logarithms is taken. To be added is ``(d / 2) log Omega``, ``Omega = |eta|^2 / 2`` of the d scales eta of the
    kernel, whose gradient by them is ``(d / 2) eta / Omega`` (Cawley & Talbot 2007).

    Parameters
    ----------
    lam : float
        The fit without row i has the ridge ``lam`` times the weights of all others.
    starts : (t + 1,)
        Only where the folds end counts: rows beyond are never held out.
    """
    n = int(starts[-1])
    each = _heldout(K, Y, s, bias, lam, np.arange(n + 1))
    value, W, slope = 0.0, np.zeros(K.shape), 0.0
    for mean, gram, along in each:
        value += 0.5 * n * np.log(0.5 * n * mean) / len(Y)
        W += (0.5 * n / (mean * len(Y))) * gram
        slope += (0.5 * n / (mean * len(Y))) * along
    return value, W, slope


def evidence(K: np.ndarray, Y: np.ndarray, s: np.ndarray, bias: int, lam: float) -> tuple[float, np.ndarray, float]:
    """Negative log marginal likelihood, less a constant, of a Gaussian process with noise.

    The targets are ``y = f + noise`` of variances ``c K`` and ``c ridge / s_i``. With the scale c at its best,
    ``Q = y~' A y~``, and m the rows, less one for a bias, it is

        (m / 2) log(Q / m) + (1 / 2)(log det H - sum log s), with a bias + (1 / 2) log(e' H^-1 e),

    the restricted likelihood then. ``d/dH = (A - (m / Q) A y~ y~' A) / 2``; the mean is taken over outputs, each with a
    scale of its own (Rasmussen & Williams 2006, equations 2.30 and 5.9). The ridge is ``lam`` times the sum of
    all weights.
    """
    root, m = np.sqrt(s), len(s) - bias
    A, determinant = _inverse(_weighed(K, root), root if bias else None, s.sum() * lam)
    a = (Y * root) @ A
    Q = np.einsum("ci,ci->c", a, Y * root)
    value = 0.5 * (m * np.log(Q / m).mean() + determinant - np.log(s).sum())
    A -= (a.T * (m / (len(Y) * Q))) @ a
    A *= 0.5
    return float(value), _weighed(A, root), float(s.sum() * np.trace(A))


def evidence_alone(K: np.ndarray, Y: np.ndarray, s: np.ndarray, bias: int, lam: float) -> float:
    """Return the value of :func:`evidence` without its derivatives, from one Cholesky factor: a third of the time."""
    root, m = np.sqrt(s), len(s) - bias
    ridge = float(s.sum() * lam)
    _check(K, ridge)
    R = _factor(_weighed(K, root), ridge)
    V = scipy.linalg.solve_triangular(R, np.column_stack([(Y * root).T, root]), lower=True, check_finite=False)
    V, u = V[:, :-1], V[:, -1]
    Q = np.einsum("ic,ic->c", V, V)
    determinant = 2.0 * float(np.log(np.diag(R)).sum())
    if bias:
        Q -= (u @ V) ** 2 / (u @ u)
        determinant += float(np.log(u @ u))
    return float(0.5 * (m * np.log(Q / m).mean() + determinant - np.log(s).sum()))


def _heldout(
    K: np.ndarray, Y: np.ndarray, s: np.ndarray, bias: int, lam: float, starts: np.ndarray
) -> list[tuple[float, np.ndarray, float]]:
    """Return the mean squared held-out residual of each output, with its derivatives by K and ``lam``."""
    root, held, (k, n), t = np.sqrt(s), starts[-1], Y.shape, len(starts) - 1
    left, Y = s.sum() - np.add.reduceat(s[:held], starts[:-1]), Y * root
    columns = _columns(_weighed(K, root), root if bias else None, Y, lam * left)
    if t == held and (left == left[0]).all():  # rows alone that share A: all at once
        A, a = columns(slice(0, held), lam * left[0])
        d = np.diagonal(A)
        E = a[:, :held] / d
        squares = np.einsum("ci,ci->c", E, E)
        P = A * (E / d)[:, None]
        R = a[:, :, None] - A * E[:, None]
    else:
        P, R, squares = np.empty((k, n, t)), np.empty((k, n, t)), np.zeros(k)
        for fold, (lo, hi) in enumerate(pairwise(starts)):
            A, a = columns(slice(lo, hi), lam * left[fold])
            factor = scipy.linalg.cho_factor(A[lo:hi], lower=True)
            e = scipy.linalg.cho_solve(factor, a[:, lo:hi].T)
            squares += np.einsum("ic,ic->c", e, e)
            P[:, :, fold] = (A @ scipy.linalg.cho_solve(factor, e)).T
            R[:, :, fold] = a - (A @ e).T
    scale = -1.0 / s[:held].sum()  # half of -2, for W is the sum of two that mirror each other
    products = (scale * (p @ r.T) for p, r in zip(P, R, strict=True))
    grams = [_weighed(M + M.T, root) for M in products]
    slopes = 2.0 * scale * np.einsum("cij,cij,j->c", P, R, left)
    return list(zip(squares * -scale, grams, slopes, strict=True))


def _weighed(K: np.ndarray, root: np.ndarray) -> np.ndarray:
    """Return ``S^1/2 K S^1/2``, K itself without weights."""
    return K if (root == 1.0).all() else root[:, None] * K * root


def _columns(K: np.ndarray, free: np.ndarray | None, Y: np.ndarray, ridges: np.ndarray) -> Columns:
    """Return a function of a fold S and its ridge, ``A_{:,S} (n, m)`` and ``A y (k, n)``.

    A few different ridges have an inverse each; many, as with weights and single rows, share one eigendecomposition.
    """
    if factors_are_cheaper(np.ones(1), ridges):
        made = {ridge: _inverse(K, free, ridge)[0] for ridge in np.unique(ridges)}
        products = {ridge: Y @ A for ridge, A in made.items()}
        return lambda fold, ridge: (made[ridge][:, fold], products[ridge])
    _check(K, ridges.min())
    ev, U = np.linalg.eigh(K)

    def columns(fold: slice, ridge: float) -> tuple[np.ndarray, np.ndarray]:
        shrunk = U / (ev + ridge)
        A, a = shrunk @ U[fold].T, (Y @ U) @ shrunk.T
        if free is not None:
            u = shrunk @ (free @ U)
            A -= np.outer(u, u[fold] / (free @ u))
            a -= np.outer(Y @ u, u / (free @ u))
        return A, a

    return columns


def _inverse(K: np.ndarray, free: np.ndarray | None, ridge: float) -> tuple[np.ndarray, float]:
    """Return A, and ``log det H``, with a bias ``+ log(e' H^-1 e)``."""
    _check(K, ridge)
    A = _factor(K, ridge)
    determinant = 2.0 * float(np.log(np.diag(A)).sum())
    _invert.code(A)
    if free is None:
        return A, determinant
    u = A @ free
    A -= np.outer(u, u / (free @ u))
    return A, determinant + float(np.log(free @ u))


def _factor(K: np.ndarray, ridge: float) -> np.ndarray:
    """Return the Cholesky factor of ``K + ridge I``, in the lower triangle; what lies above is anything."""
    H = K.copy()
    H[np.diag_indices_from(H)] += ridge
    if _factorise.code(H) != 0:
        raise np.linalg.LinAlgError("the ridge is below rounding")
    return H


# LAPACK by SciPy's Python functions would keep the other threads waiting.


@jit(i8(f8_2))
def _factorise(H):
    return cholesky(H)


@jit(types.void(f8_2))
def _invert(R):
    inverse(R)


def _check(K: np.ndarray, ridge: float) -> None:
    """Raise LinAlgError if K may have lost what such a ridge is added to."""
    if not ridge > len(K) * spectral.ROUNDING * np.abs(K).sum(axis=1).max():
        raise np.linalg.LinAlgError("the ridge is below rounding")
