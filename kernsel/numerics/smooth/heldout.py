"""Held-out outputs of every fold from one fit: the Newton step and the Bouligand influence function (BIF).

Every update takes one fit (``f``, ``d1``, ``d2`` at ``lam``) and fills ``out (n,)`` with the output of each row
predicted without its fold, ``f^{-S}_S``, approximately for a curved loss. Rows with ``d2 > 0`` are curved.

*Newton step*: one Newton step from the fit towards the fit without the fold; exact for the square loss.
A step is believed where the quadratic model of the loss that it is made with holds at its end. On the rows T that
the fit without the fold is trained on, with ``delta`` the change of their outputs,

``stray = sum_T |V(f + delta) - V - d1 delta - d2 delta^2 / 2|``, against what the model promises, ``-slope / 2``.

With ``stray <= theta promise`` the fold's own objective falls by at least ``(1 - theta)`` of the promise. Rows that
enter the band (the model has no curvature there, and the step goes too far) and rows that leave it (too short) both
add to ``stray``, where their effects on the objective cancel.

*BIF of order r*: the Taylor series of the same step in the weight of the fold. It is geometric with the ratio ``rho``,
the spectral radius of ``L^-1 (N Z_S' D_S Z_S - N_S Z' D Z) / (N - N_S)`` with ``L = Z' D Z + mu I``; order
infinity is the Newton step (mathematics of BIF14, its Theorem 2 with the factor corrected).

An unpenalised bias is one more column, of ones, without a ridge; N are sums of weights, which are in ``d1`` and ``d2``.
The updates are in ``heldout_kernel`` and ``heldout_features``, by the coordinates of the fit; the series and its ratio
are those of ``lanczos``.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from numba.core import types

from kernsel.numerics.left_out import FOLDS, Folds
from kernsel.numerics.runtime.jit import LOSS, Compiled, f8, f8_1, f8_2, f8_3, i8, i8_1, inline, jit, record
from kernsel.numerics.runtime.threads import one_blas_thread, share
from kernsel.numerics.smooth.convergence import NEGLIGIBLE
from kernsel.numerics.smooth.objective import OBJECTIVE, STACK, Objective
from kernsel.types import Array, Indices


class Fit(NamedTuple):
    """A fit to all rows; in a stack, fits of q outputs and L values of ``lam``.

    Parameters
    ----------
    x : (n + bias,) or (r,) array
        Coefficients, a bias last, or weights of features; (q, L, .) in a stack.
    f, d1, d2 : (n,) array
        Outputs, and the weighted derivatives of the loss there; (q, L, n) in a stack.
    """

    x: Array
    f: Array
    d1: Array
    d2: Array


class HeldOut(NamedTuple):
    """What an update of one fit fills; (q, L, .) in a stack.

    Parameters
    ----------
    out : (n,) array
        Held-out outputs; rows of no fold are left as they are.
    rho : (t,) array
        The ratio of the influence series of each fold.
    status : (t,) array of int
        0, or a key of ``convergence.REASONS``.
    x : (t, n + bias), (t, r) or (0, 0) array
        The solutions that Newton steps end at, as those of the fit; left as they are where a step failed.
    low, high : (n,) or (0,) arrays
        Intervals that contain the held-out outputs of exact fits, infinite where nothing is known: those of
        ``enclosure_steps``.
    """

    out: Array
    rho: Array
    status: Indices
    x: Array
    low: Array
    high: Array

    @classmethod
    def room(cls, out: Array, t: int, width: int = 0, intervals: bool = False) -> Self:
        """Return what updates of q L fits without each of t folds fill: ``out (q, L, n)``, and solutions of a width."""
        each = (*out.shape[:2], t)
        solutions = np.zeros((*each, width)) if width else np.empty((*each[:2], 0, 0))
        ends = np.full((2, *out.shape[:2], out.shape[2] if intervals else 0), np.inf)
        return cls(out, np.zeros(each), np.zeros(each, np.int64), solutions, -ends[0], ends[1])


FIT, FITS = record(Fit, *4 * [f8_1]), record(Fit, *4 * [f8_3])
HELD = record(HeldOut, f8_1, f8_1, i8_1, f8_2, f8_1, f8_1)
HELDS = record(HeldOut, f8_3, f8_3, i8[:, :, ::1], f8[:, :, :, ::1], f8_3, f8_3)

UPDATE = types.FunctionType(types.void(f8_2, f8_2, OBJECTIVE, LOSS, FIT, FOLDS, i8, f8, HELD))
"""What is done for every fold of a fit: ``(G, V, objective, loss, fit, folds, order, trust, held)``.

G : (n, n) or (n, r) array
    Gram matrix K; or features Z, the column of a bias last.
V : (n, c) array
    The Nystrom factor of ``nystrom_influence``, a column of ones for a bias last; of no use elsewhere.
objective : Objective
loss : pointer of type ``LOSS``
fit : Fit
    To all rows.
folds : Folds
order : int
    Terms of the series; 0 asks for ``rho`` alone, and a Newton step for none of it.
trust : float
    A Newton step that strays by more than this share of what it promises has the status ``ASTRAY``.
held : HeldOut
    Overwritten.
"""


@inline
def strays(loss, objective, fit, end, away, climb, norm, trust):
    """Say whether the model of the loss fails at the outputs ``end`` of a step, on the rows that aren't left out.

    Parameters
    ----------
    loss : pointer of type ``LOSS``
    objective : Objective
    fit : Fit
    end : (n,)
    away : (m,)
        The rows that are left out, ascending.
    climb : float
        The ridge's part of the slope, ``2 N_T lam <f, delta>``.
    norm : float
        The ridge's part of the objective, ``N_T lam ||f||^2``.
    trust : float
        The step may stray by this share of what it promises, and by ``NEGLIGIBLE`` of the objective.
    """
    y, s, _, parameters, _ = objective
    stray, slope, total, passed = 0.0, climb, norm, 0
    for i in range(end.size):
        if passed < away.size and away[passed] == i:
            passed += 1
            continue
        step = end[i] - fit.f[i]
        before, _, _ = loss(y[i], fit.f[i], parameters)
        after, _, _ = loss(y[i], end[i], parameters)
        stray += abs(s[i] * (after - before) - step * (fit.d1[i] + 0.5 * fit.d2[i] * step))
        slope += fit.d1[i] * step
        total += s[i] * before
    return stray > trust * max(-0.5 * slope, 0.0) + NEGLIGIBLE * total


@jit((i8, i8, UPDATE, f8_2, f8_2, STACK, LOSS, FITS, FOLDS, i8, f8, HELDS))
def _updates(first, step, update, G, V, stack, loss, fits, folds, order, trust, held):
    q, L = fits.f.shape[:2]
    for job in range(first, q * L, step):
        j, k = job // L, job % L
        objective = Objective(stack.y[j], stack.s[0], stack.lam[k], stack.parameters, stack.bias)
        fit = Fit(fits.x[j, k], fits.f[j, k], fits.d1[j, k], fits.d2[j, k])
        of_fit = HeldOut(
            held.out[j, k], held.rho[j, k], held.status[j, k], held.x[j, k], held.low[j, k], held.high[j, k]
        )
        update(G, V, objective, loss, fit, folds, order, trust, of_fit)


def update_folds(
    update: Compiled, G: Array, V: Array, stack: Objective, loss: Compiled, fits: Fit, folds: Folds, order: int,
    trust: float, held: HeldOut,
) -> None:  # fmt: skip
    """Apply ``update`` to the fits of ``q`` outputs and ``L`` values of ``lam``, side by side.

    Parameters
    ----------
    update : pointer
        ``heldout_kernel.newton_step`` or another function of the type ``UPDATE``.
    G, V : (n, n) or (n, r); (n, c)
        The Gram matrix or the features; the Nystrom factor where ``nystrom_influence`` wants it. A bias has the last
        column of features and of V, of ones.
    stack : Objective
        Of all fits.
    loss : pointer
    fits : Fit
        Of q outputs and L values of ``lam``.
    folds : Folds
        Fits that leave out more than a fold's own rows are for Newton steps alone.
    order : int
        Of the BIF, where 0 asks for ``rho`` alone; a Newton step fills ``rho`` too if it is not 0, which is for fits
        that leave out the fold's own rows and no other.
    trust : float
        A Newton step that strays by more than this share of what it promises has the status ``ASTRAY``.
    held : HeldOut
        Overwritten.
    """
    loop = _updates.code  # compiled here, not by several threads at once
    job = (update.code, G, V, stack, loss.code, fits, folds, order, trust, held)
    with one_blas_thread():
        share(lambda first, step: loop(first, step, *job), fits.f.shape[0] * fits.f.shape[1])
