"""Twins of kernel stability: matrices with a row and column zeroed, and their eigenvalues."""

import numpy as np

from twins import heldout


def removed(K, i):
    """``K^i``: K with row and column i zeroed (KS14, Section 4.1)."""
    Ki = K.copy()
    Ki[i] = Ki[:, i] = 0.0
    return Ki


def perturbation(K, i, norm="spectral"):
    """The norm of ``K - K^i``, from its eigenvalues."""
    size = np.abs(np.linalg.eigvalsh(K - removed(K, i)))
    return {"spectral": size.max(), "trace": size.sum(), "frobenius": np.sqrt((size**2).sum())}[norm]


def perturbations(K, norm="spectral"):
    """That of every point, (n,)."""
    return np.array([perturbation(K, i, norm) for i in range(len(K))])


def printed(K, i):
    """KS14, Theorem 4, as printed: the largest eigenvalue, which is not the 2-norm where ``K_ii < 0``."""
    rest = np.delete(K[i], i)
    return 0.5 * (K[i, i] + np.sqrt(K[i, i] ** 2 + 4 * rest @ rest))


def repeated(array, times, axis=0):
    """Rows as often as their whole weights say."""
    return np.repeat(array, np.asarray(times, dtype=int), axis=axis)


def rks(K, loss, Y, lam, s, bias, eta, norm="spectral"):
    """``R_emp + eta/N max_i |K - K^i|``, for a loss with features of K; the mean over the rows of Y."""
    Z = np.column_stack([heldout.features(K), np.ones((len(K), bias))])
    fits = [heldout.fit(loss, Z, y, s, lam, bias) for y in Y]
    risk = np.mean([s @ loss(y, Z @ w)[0] / s.sum() for y, w in zip(Y, fits, strict=True)])
    return risk + eta / s.sum() * perturbations(K, norm).max()


def cvks(K, loss, Y, lam, starts, s, bias, eta, norm="spectral"):
    """The mean loss of brute-force refits, and the same penalty."""
    Z = np.column_stack([heldout.features(K), np.ones((len(K), bias))])
    held = [heldout.refits(loss, Z, y, lam, starts, s, bias) for y in Y]
    losses = np.mean([loss(y, f)[0] for y, f in zip(Y, held, strict=True)], axis=0)
    return s @ losses / s.sum() + eta / s.sum() * perturbations(K, norm).max()
