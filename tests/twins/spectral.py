"""Twins of the spectral criteria and of kernel stability: by the matrices themselves."""

from functools import reduce
from itertools import product

import numpy as np


def without(K, i):
    """``K^i``: row and column i zeroed."""
    K = K.copy()
    K[i] = K[:, i] = 0.0
    return K


def perturbed_spectra(K):
    """``sum_ij |sigma_j(K) - sigma_j(K^i)|`` over sorted eigenvalues, each ``K^i`` decomposed (KSJ, Section VII)."""
    ev = np.linalg.eigvalsh(K)
    return sum(np.abs(ev - np.linalg.eigvalsh(without(K, i))).sum() for i in range(len(K)))


def first_order_changes(K):
    """``sum_ij |u_j' (K - K^i) u_j|``, from every eigenvector and every difference."""
    _, U = np.linalg.eigh(K)
    return sum(np.abs(np.einsum("ij,ij->j", U, (K - without(K, i)) @ U)).sum() for i in range(len(K)))


def products_of_geometric(variances, tau, terms):
    """Products of ``sqrt(2a/A) B^k`` over attributes, k below ``terms``, descending (GPML, eq. 4.40)."""
    a, b = 1 / (4 * variances), 1 / (2 * tau)
    A = a + b + np.sqrt(a**2 + 2 * a * b)
    each = np.sqrt(2 * a / A) * (b / A) ** np.arange(terms)[:, None]
    return np.sort(reduce(np.multiply.outer, each.T).ravel())[::-1]


def discretised_operator(variances, tau, points):
    """Eigenvalues, descending, of the operator on Gauss-Hermite nodes: ``w_i^1/2 k(x_i, x_j) w_j^1/2``."""
    x, w = np.polynomial.hermite_e.hermegauss(points)
    grid = np.array(list(product(*(x * np.sqrt(v) for v in variances))))
    weight = np.array([np.prod(each) for each in product(*([w / w.sum()] * len(variances)))])
    K = np.exp(-((grid[:, None] - grid) ** 2).sum(axis=2) / (2 * tau))
    return np.linalg.eigvalsh(np.sqrt(weight[:, None] * weight) * K)[::-1]
