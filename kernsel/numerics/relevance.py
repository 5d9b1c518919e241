"""Derivatives by the relevances of features, all of them from one matrix product.

A kernel that depends on ``sum_r theta_r (x_r - z_r)^2``, or on ``sum_r theta_r x_r z_r``, has derivatives by each
theta_r that are a weight V_ij of the pair times the r-th term. Their sums over all pairs expand::

    sum_ij V_ij (x_ir - x_jr)^2 = sum_i (V 1)_i x_ir^2 + sum_j (V' 1)_j x_jr^2 - 2 sum_i x_ir (V X)_ir
    sum_ij V_ij x_ir x_jr       = sum_i x_ir (V X)_ir

so that d of them cost O(n^2 d), and no array of n x n x d is ever made. The second points may be others.
"""

from __future__ import annotations

import numpy as np


def sums_of_squares(X: np.ndarray, V: np.ndarray, Z: np.ndarray | None = None) -> np.ndarray:
    """Return ``sum_ij V_ij (x_ir - z_jr)^2`` of each column r of X (n, d) and Z (m, d), for V (n, m): (d,).

    Without Z it is X.
    """
    centre = X.mean(axis=0)  # differences stay, and digits are kept where the mean is large
    X, Z = X - centre, (X if Z is None else Z) - centre
    return np.asarray(V.sum(axis=1) @ X**2 + V.sum(axis=0) @ Z**2 - 2.0 * sums_of_products(X, V, Z))


def sums_of_products(X: np.ndarray, V: np.ndarray, Z: np.ndarray | None = None) -> np.ndarray:
    """Return ``sum_ij V_ij x_ir z_jr`` of each column r of X (n, d) and Z (m, d), for V (n, m): (d,)."""
    return np.asarray(np.einsum("ir,ir->r", X, V @ (X if Z is None else Z)))
