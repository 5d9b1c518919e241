"""Held-out outputs of every fold from one fit: the Newton step and the Bouligand influence function (BIF).

Every update takes one fit (``f``, ``d1``, ``d2`` at ``lam``) and fills ``out (n,)`` with the output of each row
predicted without its fold, ``f^{-S}_S``, approximately for a curved loss. Curved rows are A, those of the fold C.

*Newton step*: one Newton step from the fit towards the fit without the fold; exact for the square loss.
A step is believed where the quadratic model of the loss that it is made with holds at its end. On the rows T that
the fit without the fold is trained on, with ``delta`` the change of their outputs,

``stray = sum_T |V(f + delta) - V - d1 delta - d2 delta^2 / 2|``, against what the model promises, ``-slope / 2``.

With ``stray <= theta promise`` the fold's own objective falls by at least ``(1 - theta)`` of the promise. Rows that
enter the band (the model has no curvature there, and the step goes too far) and rows that leave it (too short) both
add to ``stray``, where their effects on the objective cancel.

*BIF of order r*: the Taylor series of the same step in the weight of the fold. It is geometric with the ratio ``rho``,
the spectral radius of ``L^-1 (Z_S' D_S Z_S - (N_S / N) Z' D Z) / (N - N_S)`` with ``N L = Z' D Z + mu I``; order
infinity is the Newton step (mathematics of BIF14, its Theorem 2 with the factor corrected).

An unpenalised bias is one more column, of ones, without a ridge; N are sums of weights, which are in ``d1`` and ``d2``.
The updates are in ``heldout_kernel`` and ``heldout_features``, by the coordinates of the fit.
"""

from __future__ import annotations

import numpy as np
from numba.core import types

from kernsel.numerics.runtime.jit import (
    LOSS,
    Compiled,
    f8,
    f8_1,
    f8_2,
    f8_3,
    i8,
    i8_1,
    inline,
    jit,
    one_blas_thread,
    share,
)

UPDATE = types.FunctionType(
    types.void(
        f8_2, i8, f8_2, f8_1, f8_1, f8_1, f8_1, f8, f8, i8_1, f8_1, i8, LOSS, f8_1, f8_1, f8_1, f8, f8_1, f8_1, i8_1
    )
)  # fmt: skip
"""``(K or Z, bias, V, a or w, f, d1, d2, N, lam, starts, left, order, loss, parameters, y, s, trust,
out, rho, status)``; ``status`` is that of each fold: 0, or a key of ``newton.REASONS``.
"""


NEGLIGIBLE = 1e-6
"""A step that strays by less than this share of J is believed, whatever it promises: scores don't show the rest."""


@inline
def astray(loss, parameters, y, s, f, d1, d2, end, lo, hi, climb, norm, trust):
    """Say whether the model of the loss fails at the outputs ``end`` of a step, on the rows but ``lo`` to below ``hi``.

    The ridge's part of the slope is ``climb = 2 N_T lam <f, delta>``, that of J ``norm = N_T lam ||f||^2``.
    """
    stray, slope, total = 0.0, climb, norm
    for i in range(f.size):
        if lo <= i < hi:
            continue
        step = end[i] - f[i]
        before, _, _ = loss(y[i], f[i], parameters)
        after, _, _ = loss(y[i], end[i], parameters)
        stray += abs(s[i] * (after - before) - step * (d1[i] + 0.5 * d2[i] * step))
        slope += d1[i] * step
        total += s[i] * before
    return stray > trust * max(-0.5 * slope, 0.0) + NEGLIGIBLE * total


@jit(
    (
        i8, i8, UPDATE, f8_2, i8, f8_2, f8_3, f8_3, f8_3, f8_3, f8, f8_1, i8_1, f8_1, i8, LOSS, f8_1, f8_2, f8_1, f8,
        f8_3, f8_3, i8[:, :, ::1],
    )
)  # fmt: skip
def _updates(
    first, step, update, G, bias, V, x, f, d1, d2, N, lams, starts, left, order, loss, parameters, Y, s, trust,
    out, rho, status,
):  # fmt: skip
    q, L = f.shape[:2]
    for job in range(first, q * L, step):
        j, k = job // L, job % L
        update(
            G, bias, V, x[j, k], f[j, k], d1[j, k], d2[j, k], N, lams[k], starts, left, order, loss, parameters, Y[j],
            s, trust, out[j, k], rho[j, k], status[j, k],
        )  # fmt: skip


def update_folds(
    update: Compiled,
    G: np.ndarray,
    bias: int,
    V: np.ndarray,
    x: np.ndarray,
    f: np.ndarray,
    d1: np.ndarray,
    d2: np.ndarray,
    lams: np.ndarray,
    starts: np.ndarray,
    left: np.ndarray,
    order: int,
    loss: Compiled,
    parameters: np.ndarray,
    Y: np.ndarray,
    s: np.ndarray,
    trust: float,
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
    bias : int
        1 with an unpenalised bias: the last of x, and the last column of features and of V, of ones.
    x, f, d1, d2 : (q, L, .), (q, L, n)
        The fits: coefficients or weights, outputs, and the weighted derivatives there.
    starts, left : (t + 1,), (t,)
        The folds, and the weight that the fit without each keeps.
    order : int
        Of the BIF, where 0 asks for ``rho`` alone; a Newton step fills ``rho`` too if it is not 0.
    loss, parameters, Y, s : pointer, (p,), (q, n), (n,)
        Loss, targets and weights.
    trust : float
        A Newton step that strays by more than this share of what it promises has the status ``ASTRAY``.
    out : (q, L, n); rho : (q, L, t)
        Overwritten: held-out outputs, and the ratio of the series a fold.

    Returns
    -------
    (q, L, t) int
        0, or a key of ``newton.REASONS``.
    """
    status = np.zeros(rho.shape, np.int64)
    loop = _updates.code  # compiled here, not by several threads at once
    job = (
        update.code, G, bias, V, x, f, d1, d2, float(s.sum()), lams, starts, left, order, loss.code, parameters, Y, s,
        trust, out, rho, status,
    )  # fmt: skip
    with one_blas_thread():
        share(lambda first, step: loop(first, step, *job), f.shape[0] * f.shape[1])
    return status
