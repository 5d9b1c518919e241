"""Twins of intervals that contain the outputs of an exact fit: dense matrices, no rounding errors."""

import numpy as np
import scipy.optimize

from twins.heldout import ridged


def root(loss, y, s, f, side):
    """The least (side -1) or largest (side 1) shift at which ``sum_i s_i V'(y_i, f_i + shift)`` is 0."""
    pull = lambda b: (s * loss(y, f + b)[1]).sum()  # noqa: E731
    far = 10 * (np.abs(f).max() + np.abs(y).max() + 100)
    tiny = side * 1e-13 * s.sum()
    return scipy.optimize.brentq(lambda b: pull(b) - tiny, -far, far, xtol=1e-14)


def ball(loss, Z, y, s, lam, w, bias):
    """``f - z' G / (4 lam) -+ ||z|| ||G|| / (4 lam)``, and by how much the bias moves; the outputs with that bias."""
    f = Z @ w
    if bias:
        low, high = root(loss, y, s, f, -1), root(loss, y, s, f, 1)
        f = f + np.clip(0.0, low, high)
    P = ridged(Z, bias)
    G = (Z.T @ (s * loss(y, f)[1]) / s.sum() + 2 * lam * w) * P
    lengths = np.linalg.norm(Z * P, axis=1)
    middle, radius = Z @ G / (4 * lam), lengths * np.linalg.norm(G) / (4 * lam)
    low, high = f - middle - radius, f - middle + radius
    if bias:
        low, high = low + root(loss, y, s, high, -1), high + root(loss, y, s, low, 1)
    return f, G, low, high


def ellipsoid(Z, lam, D, f, G, bias):
    """``f - z' H^-1 G / 2 -+ (z' H^-1 z G' H^-1 G)^1/2 / 2`` with ``H = 2 lam P + Z' D Z``."""
    H = (Z.T * D) @ Z + 2 * lam * np.diag(ridged(Z, bias))
    inverse = np.linalg.inv(H)
    middle = Z @ inverse @ G / 2
    radius = np.sqrt(np.einsum("ij,jk,ik->i", Z, inverse, Z) * (G @ inverse @ G)) / 2
    return f - middle - radius, f - middle + radius
