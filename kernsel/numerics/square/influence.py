"""The influence series (BIF) of the square loss without each fold, for every ridge and of any order.

All is in the coordinates of ``spectral``: ``K = U diag(ev) U'``; weights as ``S^1/2``, targets as rows ``Y (k, n)``.
"""

from __future__ import annotations

import numpy as np

from kernsel.numerics.lanczos import add_unevenness, dominant_vector, radius_of, series_of
from kernsel.numerics.left_out import Folds
from kernsel.numerics.runtime.blas import add_inner_products, mirror, multiply, multiply_transposed
from kernsel.numerics.runtime.jit import inline, pointer
from kernsel.numerics.square.heldout import FOLD, for_folds, scale_columns
from kernsel.numerics.square.spectral import Spectrum


def influence_square(
    spectrum: Spectrum, Y: np.ndarray, lams: np.ndarray, folds: Folds, order: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the BIF of the given order for the square loss, ``(k, L, n)``, and its ratio, ``(t, L)``.

    Parameters
    ----------
    spectrum, Y, lams, folds : as in ``heldout_square``
    order : int
        Number of terms of the series; 0 asks for ``rho`` alone.
    """
    out, _, rho = for_folds(influence, *spectrum, 0, Y, np.zeros((0, 0)), lams, folds, order)
    return out, rho


@pointer(FOLD)
def influence(system, lams, fold, order, out, status, rho):
    """BIF of the given order for the square loss, and its ratio.

    In the coordinates of U, with ``h = ev / (ev + N lam)`` and ``q = U' f / (ev + N lam)``, 1 and 0 for a bias, the
    terms are ``e_1 = (N / (2 left)) (2 N_S lam q + h U_S' d1_S)`` and
    ``e_{k+1} = h ((N U_S' U_S - N_S I) / left) e_k``.

    Its arguments are those of ``FOLD``.
    """
    (U, ev, Y, YU, _, _), (lo, hi, _, left, N) = system, fold
    r, m = U.shape[1], hi - lo
    kept, gone = N / left, (N - left) / left
    US = U[lo:hi]
    f, d1, change = np.empty(m), np.empty(m), np.empty(m)
    h, g, e, total = np.empty(r), np.empty(r), np.empty(r), np.empty(r)
    for k in range(lams.size):
        for j in range(r):
            h[j] = 1.0 / (1.0 + N * lams[k] / ev[j])
        rho[k] = ratio(US, h, kept, gone)
        if order == 0:
            continue
        for c in range(Y.shape[0]):
            for j in range(r):
                g[j] = YU[c, j] * h[j]
            multiply(US, g, f)
            for i in range(m):
                d1[i] = 2.0 * (f[i] - Y[c, lo + i])
            multiply_transposed(US, d1, e)
            for j in range(r):
                shrunk = 2.0 * (N - left) * lams[k] * g[j] / (ev[j] + N * lams[k])
                e[j] = 0.5 * kept * (shrunk + h[j] * e[j])
            sum_series((US, h, kept, gone), e, order, total)
            multiply(US, total, change)
            for i in range(m):
                out[c, k, lo + i] = f[i] + change[i]


@inline
def apply(data, x, Ex, image):
    """Apply the operator of ``lanczos`` in the coordinates of U: ``E = kept U_S' U_S - gone I``, ``L^-1 = diag(h)``."""
    US, h, kept, gone = data
    inside = np.empty(US.shape[0])
    multiply(US, x, inside)
    multiply_transposed(US, inside, Ex)
    for j in range(h.size):
        Ex[j] = kept * Ex[j] - gone * x[j]
        image[j] = h[j] * Ex[j]


spectral_radius, sum_series = radius_of(apply), series_of(apply)


@inline
def ratio(US, h, kept, gone):
    """Return the spectral radius of ``diag(h)(kept U_S' U_S - gone I)``: see ``lanczos`` for the method.

    It starts from the leading eigenvector v of the fold's block ``U_S diag(h) U_S'``, as ``diag(h) U_S' v``.
    """
    m, r = US.shape
    W, B, root = np.empty((m, r)), np.zeros((m, m)), np.empty(r)
    for j in range(r):
        root[j] = np.sqrt(h[j])
    scale_columns(US, root, W)
    add_inner_products(W, 1.0, B)
    mirror(B)
    x, Lx = np.empty(r), np.empty(r)
    multiply_transposed(W, dominant_vector(B), Lx)
    add_unevenness(Lx)
    for j in range(r):
        x[j] = root[j] * Lx[j]
        Lx[j] = Lx[j] / root[j] if root[j] > 0.0 else 0.0
    return spectral_radius((US, h, kept, gone), x, Lx)
