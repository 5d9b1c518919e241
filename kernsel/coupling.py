"""Outputs of more than two classes, coupled: one against the rest, a class between others has no output of its own.

The square loss, and any other one that sees each class against the rest, masks a class that lies between others: its
outputs stay below theirs (Hastie, Tibshirani & Friedman 2009, Section 4.2). All outputs together still tell it. With
the outputs f (k,) of a row the coupled ones are

    g = A f + b,    p = exp(g) / sum exp(g),

and A (k, k), b (k,) minimise the cross-entropy of held-out rows, with the penalty ``(1/2) |A - a I|^2`` for outputs of
the size 1 and a free a: multinomial logistic regression on outputs, with matrix scaling that is kept near one scale for
all (Guo, Pleiss, Sun & Weinberger 2017). Being linear, it becomes part of the model's coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernsel.resampling import blocks_of

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

STEPS = 200
"""Steps of L-BFGS; a hundred unknowns of one size take some dozens."""


@dataclass(frozen=True, eq=False)
class Coupling:
    """``g = A f + b``.

    Parameters
    ----------
    A : (k, k) array
    b : (k,) array
    """

    A: Array
    b: Array

    def __call__(self, F: Array) -> Array:
        """Return the coupled outputs (k, n) of outputs F (k, n)."""
        return np.asarray(self.A @ F + self.b[:, None])


def softmax(F: Array) -> Array:
    """Return the probabilities (n, k) of coupled outputs F (k, n)."""
    P = np.exp(F - F.max(axis=0))
    return np.asarray((P / P.sum(axis=0)).T)


def couple(F: Array, Y: Array, s: Array) -> Coupling:
    """Fit a coupling to held-out outputs.

    Parameters
    ----------
    F, Y : (k, n) arrays
        Held-out outputs, and classes as -1 and +1.
    s : (n,) array
        Weights of the rows: counts if all are whole numbers, else only their ratios count.
    """
    from scipy.optimize import minimize  # takes a while to import

    k, n = F.shape
    centre, scale = F.mean(axis=1, keepdims=True), float(F.std()) or 1.0
    X, s = (F - centre) / scale, s if (s == np.round(s)).all() else s / s.mean()  # whole weights are counts
    counts = (Y > 0) @ s
    # Targets lie inside of 0 and 1, as Platt's do: there is a minimum where classes are separated, too.
    T = np.where(Y > 0, (counts[:, None] + 1) / (counts[:, None] + 2), 0.0)
    T += (Y <= 0) * (1 - T.sum(axis=0)) / (k - 1)
    share = counts / counts.sum()

    def value(x: Array) -> tuple[float, Array]:
        M, a, b = x[: k * k].reshape(k, k), x[k * k], x[k * k + 1 :]
        G = M @ X + a * X + b[:, None]
        top = G.max(axis=0)
        log_sum = top + np.log(np.exp(G - top).sum(axis=0))
        loss = float(s @ (log_sum - (T * G).sum(axis=0))) + 0.5 * float(np.vdot(M, M))
        E = s * (np.exp(G - log_sum) - T)
        return loss, np.concatenate([(E @ X.T + M).ravel(), [np.vdot(E, X)], E.sum(axis=1)])

    start = np.concatenate([np.zeros(k * k), [1.0], np.log(np.maximum(share, 1 / (n + k)))])
    x = minimize(value, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS, "ftol": 1e-10}).x
    A = (x[: k * k].reshape(k, k) + x[k * k] * np.eye(k)) / scale
    return Coupling(A, x[k * k + 1 :] - A @ centre[:, 0])


def cross_coupled(F: Array, Y: Array, s: Array, starts: Indices) -> Array:
    """Return the coupled outputs (k, n) of held-out rows, by couplings that were fitted without their block of folds.

    Parameters
    ----------
    F, Y : (k, n) arrays
        Held-out outputs, and classes as -1 and +1; sorted by fold.
    s : (n,) array
        Weights of the rows.
    starts : (t + 1,) array
        Bounds of the folds; the last one is n. Of one fold alone the outputs stay as they are.
    """
    blocks, coupled = blocks_of(starts), F.copy()
    for block in range(blocks.max() + 1 if blocks.any() else 0):
        own = blocks == block
        coupled[:, own] = couple(F[:, ~own], Y[:, ~own], s[~own])(F[:, own])
    return coupled
