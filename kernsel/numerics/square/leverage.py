"""Leverages: by how much each row pulls its own output, ``H_ii`` of ``H = D^1/2 Z (Z' D Z + mu I)^-1 Z' D^1/2``.

For a fold of one row the ratio of the influence series is H_ii, give or take ``g = s_i / (N - s_i)``, about 1/n. With
``L = Z' D Z + mu I`` the ratio is the spectral radius of ``(1 + g) d_i L^-1 z_i z_i' - g L^-1 Z' D Z``. The first term
has the one eigenvalue ``(1 + g) H_ii``, and the second one takes between 0 and g away from every eigenvalue.
"""

from __future__ import annotations

import numpy as np

from kernsel.numerics.dense import Cholesky


def leverages_in_kernel(K: np.ndarray, bias: int, d2: np.ndarray, mu: float) -> np.ndarray:
    """Return the leverages (n,) from the Gram matrix: ``I - mu M``, with ``M = (D^1/2 K D^1/2 + mu I)^-1``.

    Parameters
    ----------
    K : (n, n)
        Gram matrix.
    bias : int
        1 with an unpenalised bias, which takes ``u u' / (r' u)`` away from M, where ``r = D^1/2 1`` and ``u = M r``.
    d2 : (n,)
        The curvature D; rows without any have no leverage.
    mu : float
        The ridge.
    """
    rows = np.flatnonzero(d2 > 0.0)
    root, out = np.sqrt(d2[rows]), np.zeros(d2.size)
    B = root[:, None] * K[np.ix_(rows, rows)] * root
    inverse = Cholesky.of(B, mu).half(np.eye(rows.size))
    M = np.einsum("ij,ij->j", inverse, inverse)
    if bias and rows.size:
        u = inverse.T @ (inverse @ root)
        M -= u**2 / (root @ u)
    out[rows] = 1.0 - mu * M
    return out


def leverages_in_features(Z: np.ndarray, bias: int, d2: np.ndarray, mu: float) -> np.ndarray:
    """Return the leverages (n,) from features: ``d2_i z_i' (Z' D Z + mu I)^-1 z_i``.

    Parameters
    ----------
    Z : (n, r)
        Features, the column of ones of a bias last.
    bias : int
        1 with that column, which has no ridge.
    d2 : (n,)
        The curvature D.
    mu : float
        The ridge.
    """
    C = np.sqrt(d2)[:, None] * Z
    return Cholesky.of(C.T @ C, mu, bias).lengths(C.T)
