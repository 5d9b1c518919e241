"""The square loss on one Gram matrix, solved exactly, with what its minimum changes by where the Gram matrix changes.

For sample weights s with the sum N, the ridge is ``N lam``; in the coordinates of ``S^1/2`` (see ``spectral``),
``H = K~ + ridge I`` and an unpenalised bias b, the coefficients solve ``[[H, e], [e', 0]] [a; b] = [y~; 0]``, and

    ``J = min over f, b of (1/N) sum_i s_i (y_i - f_i - b)^2 + lam |f|^2 = lam y~' a``,    ``dJ/dK~ = -lam a a'``,

by the envelope theorem: the coefficients are at their best, so that only what stands in K itself counts.

On m landmarks ``f = C a`` with ``|f|^2 = a' W a`` for their columns ``C (n, m)`` and their block ``W (m, m)``; with the
residuals ``r = y - C a - b``, ``dJ/dC = -(2/N) S r a'`` and ``dJ/dW = lam a a'``, at O(n m^2) for the solution.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg

from kernsel.numerics import lowrank


class Fit(NamedTuple):
    """Coefficients ``a (k, n)`` of the kernel functions, biases ``b (k,)``, and the minimum, its mean over outputs."""

    a: np.ndarray
    b: np.ndarray
    minimum: float


def fit(K: np.ndarray, Y: np.ndarray, s: np.ndarray, bias: int, lam: float) -> Fit:
    """Solve for targets Y (k, n) and weights s (n,) on K (n, n); ``numpy.linalg.LinAlgError`` where the ridge is lost.

    Parameters
    ----------
    K : (n, n) array
        Gram matrix.
    Y : (k, n) array
        Targets.
    s : (n,) array
        Sample weights, ones without.
    bias : int
        1 with an unpenalised bias.
    lam : float
        The ridge is ``lam`` times the sum of the weights.
    """
    root = np.sqrt(s)
    H = root[:, None] * K * root
    H[np.diag_indices_from(H)] += s.sum() * lam
    factor = scipy.linalg.cho_factor(H.T, lower=True, overwrite_a=True, check_finite=False)  # H.T is a view of H
    right = np.vstack([Y * root, root])
    solved = scipy.linalg.cho_solve(factor, right.T, check_finite=False).T
    a, u = solved[:-1], solved[-1]
    b = a @ root / (u @ root) if bias else np.zeros(len(Y))
    a = a - b[:, None] * u
    minimum = lam * np.einsum("ci,ci->c", right[:-1], a).mean()
    return Fit(a * root, b, float(minimum))


def slopes(found: Fit, lam: float) -> np.ndarray:
    """Return the derivatives (n, n) of the minimum by the entries of the Gram matrix."""
    return np.asarray((found.a.T * (-lam / len(found.a))) @ found.a)


def fit_landmarks(
    C: np.ndarray, W: np.ndarray, Y: np.ndarray, s: np.ndarray, bias: int, lam: float
) -> tuple[float, np.ndarray, np.ndarray]:
    """Solve on landmarks; return the minimum, and its derivatives by C (n, m) and W (m, m).

    Parameters
    ----------
    C : (n, m) array
        Kernel values of the rows with the landmarks.
    W : (m, m) array
        Kernel values of the landmarks. Those that the others make superfluous get no coefficient.
    Y, s, bias, lam : as in ``fit``
    """
    N = s.sum()
    Z, kept, T, _ = lowrank.landmark_factor(C, W, 0.0)
    if bias:
        centre = s @ Z / N
        Z = Z - centre
        Y = Y - (Y @ s / N)[:, None]  # a bias takes the weighted means out of both
    H = (Z.T * s) @ Z
    H[np.diag_indices_from(H)] += N * lam
    g = scipy.linalg.solve(H, Z.T @ (Y * s).T, assume_a="pos", overwrite_a=True, check_finite=False).T
    residual = Y - g @ Z.T
    a = np.zeros((len(Y), len(W)))
    a[:, kept] = g @ T.T
    minimum = float((residual**2 @ s).mean() / N + lam * (g**2).sum(axis=1).mean())
    by_columns = (-2.0 / (N * len(Y))) * (residual * s).T @ a
    return minimum, by_columns, (lam / len(Y)) * a.T @ a
