"""Twins of the bounds: the formulas line by line, and what they bound by brute force."""

import math

import numpy as np

from twins import heldout, losses


def krr_stability(beta, kappa, M, lam, n):
    """``(C_1 beta + C_2) / (n - 1) (2 M + 2 kappa M / lambda)`` (KSJ, Theorem 1)."""
    C1, C2 = kappa * M / lam**2, 2 * kappa * M / lam
    return (C1 * beta + C2) / (n - 1) * (2 * M + 2 * kappa * M / lam)


def svm_stability(beta, kappa, lam):
    """``kappa^(3/4) / (sqrt(2) lambda) beta^(1/4) [1 + (beta / (4 kappa))^(1/4)]`` (KSJ, Theorem 2)."""
    return kappa**0.75 / (math.sqrt(2) * lam) * beta**0.25 * (1 + (beta / (4 * kappa)) ** 0.25)


def krr_forms(beta, kappa, M, lam, n):
    """Every bound of krr that holds: of outputs, and from the least of these of losses and of their stability."""
    outputs = {"coefficients": kappa * M / lam, "objective": M * math.sqrt(kappa / lam)}
    F = min(outputs.values())
    C1, C2, sigma, Q = kappa * M / lam**2, 2 * kappa * M / lam, 2 * M + 2 * F, (M + F) ** 2
    stability = {
        "beta": (C1 * beta + C2) / (n - 1) * sigma,
        "convexity": sigma**2 * kappa / (lam * (n - 0.5)),
        "range": Q,
    }
    return outputs, stability, Q, Q


def svm_forms(beta, kappa, lam, n, h=0.05):
    """Those of svm."""
    value = losses.huber_hinge(h)
    outputs = {"coefficients": kappa / (2 * lam), "objective": math.sqrt(value(1.0, np.zeros(1))[0][0] * kappa / lam)}
    F = min(outputs.values())
    Q, least = (float(value(1.0, np.full(1, margin))[0][0]) for margin in (-F, F))
    stability = {
        "beta": svm_stability(beta, kappa, lam),
        "convexity": kappa / (lam * (n - 0.5)),
        "range": Q - least,
    }
    return outputs, stability, Q, Q - least


def variances(span, stability, n, folds):
    """The bounds on the variance of a CV score of losses within a span, from the stability of the smallest fit."""
    change = span / n + (1 - (n // folds) / n) * 2 * stability
    return {"Efron-Stein": n / 4 * change**2, "range": span**2 / 4}


def gap(stability, largest_loss, n, delta):
    """``2 gamma + (4 n gamma + Q) sqrt(ln(1 / delta) / (2 n))``."""
    return 2 * stability + (4 * n * stability + largest_loss) * math.sqrt(math.log(1 / delta) / (2 * n))


def gaussian(X, Z, tau=1.0):
    return np.exp(-((X[:, None] - Z) ** 2).sum(axis=2) / (2 * tau))


def largest_beta(n):
    """No Gaussian kernel matrix of n rows has a larger one."""
    return (1 + math.sqrt(4 * n - 3)) / 2


def beta(K):
    """``max_i |K - K^i|_2``, each norm by a singular value decomposition."""
    changes = [K.copy() for _ in K]
    for i, D in enumerate(changes):
        keep = np.arange(len(K)) != i
        D[np.ix_(keep, keep)] = 0.0
    return max(np.linalg.norm(D, 2) for D in changes)


def krr_outputs(K, K_new, y, lam):
    """Outputs at new points of the fit on all rows, and (n, .) of those without each row."""
    whole = K_new @ heldout.fit_square(K, y, np.ones(len(K)), lam, 0)[:-1]
    without = []
    for i in range(len(K)):
        T = np.delete(np.arange(len(K)), i)
        a = heldout.fit_square(K[np.ix_(T, T)], y[T], np.ones(T.size), lam, 0)
        without.append(K_new[:, T] @ a[:-1])
    return whole, np.array(without)


def svm_outputs(K, y, lam, h=0.05):
    """The same of the Huber hinge, at the rows themselves."""
    loss, Z, ones = losses.huber_hinge(h), heldout.features(K), np.ones(len(K))
    whole = Z @ heldout.fit(loss, Z, y, ones, lam)
    without = []
    for i in range(len(K)):
        T = np.delete(np.arange(len(K)), i)
        without.append(Z @ heldout.fit(loss, Z[T], y[T], ones[T], lam))
    return whole, np.array(without)
