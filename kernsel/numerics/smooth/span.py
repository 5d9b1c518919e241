"""Spans of support vectors: by how much an output falls if its row is left out and all others keep their pieces.

For a smooth loss leaving row i out and taking one Newton step, at the same ridge ``mu = 2 N lam``, gives

    f_i^{-i} = f_i - a_i S_i^2  with  a_i = -d1_i / mu,  S_i^2 = mu l_i / (1 - d2_i l_i),
    l_i = z_i' (Z' D Z + mu I)^-1 z_i.

That is approximate leave-one-out (ALO). In the coordinates of K, with the curved rows c and ``H = K_cc + mu D^-1``, it
is the squared distance of row i in feature space from the span of the (softened) others of them:

    S_i^2 = 1 / [H^-1]_ii - mu / d2_i  in c,     S_i^2 = K_ii - K_ic H^-1 K_ci  elsewhere.

An unpenalised bias borders H with ones, as in Vapnik & Chapelle 2000 (their K_SV tilde).
"""

from __future__ import annotations

import numpy as np

from kernsel.numerics.dense import Cholesky
from kernsel.numerics.smooth.convergence import CONVERGED, SINGULAR
from kernsel.types import Array


def spans_in_kernel(K: Array, bias: bool, d1: Array, d2: Array, mu: float) -> tuple[Array, int]:
    """Return ``S^2 (n,)`` of the rows that pull (``d1 != 0``; 0 for others), and 0 or a key of ``REASONS``.

    Parameters
    ----------
    K : (n, n) array
        Gram matrix.
    bias : bool
        Whether there is an unpenalised bias.
    d1, d2 : (n,) array
        Weighted derivatives of the loss at the outputs.
    mu : float
        The ridge.
    """
    S2 = np.zeros(d1.size)
    curved, B = np.flatnonzero(d2 > 0), np.flatnonzero((d2 <= 0) & (d1 != 0))
    if bias and not curved.size:  # no row says where the bias would go
        return S2, SINGULAR
    soft, KB = mu / d2[curved], K[np.ix_(curved, B)]
    try:
        factor = Cholesky.of(K[np.ix_(curved, curved)] + np.diag(soft))
    except np.linalg.LinAlgError:
        return S2, SINGULAR
    R = factor.half(np.eye(curved.size))
    inverse = np.einsum("ij,ij->j", R, R)
    X = R @ KB
    S2[B] = K[B, B] - np.einsum("ij,ij->j", X, X)
    if bias:
        u = R.T @ R.sum(axis=1)
        inverse -= u**2 / u.sum()
        S2[B] += (u @ KB - 1.0) ** 2 / u.sum()
    with np.errstate(divide="ignore"):  # a bias that rests on one row alone
        S2[curved] = 1.0 / inverse - soft
    return S2, CONVERGED


def spans_in_features(Z: Array, bias: bool, d1: Array, d2: Array, mu: float) -> tuple[Array, int]:
    """Return ``S^2 (n,)`` of the rows that pull (``d1 != 0``; 0 for others), and 0 or a key of ``REASONS``.

    Parameters
    ----------
    Z : (n, r) array
        Features, the column of ones of a bias last.
    bias : bool
        Whether that column is there, which has no ridge.
    d1, d2 : (n,) array
        Weighted derivatives of the loss at the outputs.
    mu : float
        The ridge.
    """
    try:
        factor = Cholesky.of((Z.T * d2) @ Z, mu, bias)
    except np.linalg.LinAlgError:
        return np.zeros(d1.size), SINGULAR
    pulls = d1 != 0
    leverage = factor.lengths(Z[pulls].T)
    S2 = np.zeros(d1.size)
    with np.errstate(divide="ignore"):
        S2[pulls] = mu * leverage / (1.0 - d2[pulls] * leverage)
    return S2, CONVERGED
