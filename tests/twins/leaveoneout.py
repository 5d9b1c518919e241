"""Twins of criteria that see the fit of the square loss as a whole: dense matrices, one output at a time."""

import numpy as np
import scipy.stats

from twins import heldout


def singles(n):
    """The bounds of folds of one row."""
    return np.arange(n + 1)


def leave_one_out(K, Y, lam, held, s, bias):
    """The residuals (k, held) of fits without each of the first rows."""
    return (Y - heldout.refits_square(K, Y, lam, singles(held), s, bias))[:, :held]


def hat_matrix(K, lam, s, bias):
    """``H`` with ``f = H y``: the fits to the unit vectors."""
    solution = heldout.fit_square(K, np.eye(len(K)), s, lam, bias)
    return (solution[:, :-1] @ K + solution[:, -1:]).T


def gcv(K, y, lam, s, bias):
    """Generalised cross-validation, as it is printed: ``n |(I - H) y|^2 / tr(I - H)^2``, with a weighted mean."""
    n = len(y)
    I_H = np.eye(n) - hat_matrix(K, lam, s, bias)
    return np.average((I_H @ y) ** 2, weights=s) * n**2 / np.trace(I_H) ** 2


def evidence(K, y, lam, s, bias):
    """``-log p(y)`` at the best scale, less ``(m / 2)(1 + log 2 pi)``; with a bias of what is orthogonal to a constant.

    The density of m orthonormal contrasts C y is that of the restricted likelihood, but for ``log n`` (Harville 1974).
    """
    n = len(y)
    C = np.linalg.qr(np.column_stack([np.ones(n), np.eye(n)[:, 1:]]))[0][:, 1:].T if bias else np.eye(n)
    m = len(C)
    H = C @ (K + s.sum() * lam * np.diag(1 / s)) @ C.T
    c = C @ y @ np.linalg.solve(H, C @ y) / m
    density = scipy.stats.multivariate_normal(np.zeros(m), c * H).logpdf(C @ y)
    return -density - m / 2 * (1 + np.log(2 * np.pi)) + bias * np.log(n) / 2
