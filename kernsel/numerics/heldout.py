"""Held-out outputs of every fold from one fit: the Newton step and the Bouligand influence function (BIF).

Every update takes one fit (``f``, ``d1``, ``d2`` at ``lam``) and fills ``out (n,)`` with the output of each row
predicted without its fold, ``f^{-S}_S``, approximately for a curved loss. Curved rows are A, those of the fold C.

*Newton step*: one Newton step from the fit towards the fit without the fold; exact for the square loss.
*BIF of order r*: the Taylor series of the same step in the weight of the fold. It is geometric with the ratio ``rho``,
the spectral radius of ``L^-1 (Z_S' D_S Z_S - (N_S / N) Z' D Z) / (N - N_S)`` with ``N L = Z' D Z + mu I``; order
infinity is the Newton step (mathematics of BIF14, its Theorem 2 with the factor corrected).

The updates are in ``heldout_kernel`` and ``heldout_features``, by the coordinates of the fit.
"""

from __future__ import annotations

import numpy as np
from numba.core import types

from kernsel.numerics.jit import Compiled, f8, f8_1, f8_2, f8_3, i8, i8_1, jit, one_blas_thread, share

UPDATE = types.FunctionType(i8(f8_2, f8_2, f8_1, f8_1, f8_1, f8_1, f8, f8, i8_1, f8_1, i8, f8_1, f8_1))
"""``(K or Z, V, a or w, f, d1, d2, N, lam, starts, left, order, out, rho) -> status``."""


@jit((i8, i8, UPDATE, f8_2, f8_2, f8_3, f8_3, f8_3, f8_3, f8, f8_1, i8_1, f8_1, i8, f8_3, f8_3, i8[:, ::1]))
def _updates(first, step, update, G, V, x, f, d1, d2, N, lams, starts, left, order, out, rho, status):
    q, L = status.shape
    for job in range(first, q * L, step):
        j, k = job // L, job % L
        status[j, k] = update(
            G, V, x[j, k], f[j, k], d1[j, k], d2[j, k], N, lams[k], starts, left, order, out[j, k], rho[j, k]
        )


def update_folds(
    update: Compiled,
    G: np.ndarray,
    V: np.ndarray,
    x: np.ndarray,
    f: np.ndarray,
    d1: np.ndarray,
    d2: np.ndarray,
    N: float,
    lams: np.ndarray,
    starts: np.ndarray,
    left: np.ndarray,
    order: int,
    out: np.ndarray,
    rho: np.ndarray,
) -> np.ndarray:
    """Apply ``update`` to the fits of ``q`` outputs and ``L`` values of ``lam``, side by side.

    Parameters
    ----------
    update : pointer
        ``heldout_kernel.newton_step`` or another function of the type ``UPDATE``.
    G, V : (n, n) or (n, r); (n, c)
        The Gram matrix or the features; the Nystrom factor where ``nystrom_influence`` wants it.
    x, f, d1, d2 : (q, L, .), (q, L, n)
        The fits: coefficients or weights, outputs, and the derivatives there.
    order : int
        Of the BIF; 0 asks for ``rho`` alone.
    out : (q, L, n); rho : (q, L, t)
        Overwritten: held-out outputs, and the ratio of the series a fold.

    Returns
    -------
    (q, L) int
        0, or a key of ``newton.REASONS``.
    """
    status = np.zeros(f.shape[:2], np.int64)
    loop = _updates.code  # compiled here, not by several threads at once
    job = (update.code, G, V, x, f, d1, d2, N, lams, starts, left, order, out, rho, status)
    with one_blas_thread():
        share(lambda first, step: loop(first, step, *job), status.size)
    return status
