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

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kernsel.heldout.counts import as_counts
from kernsel.heldout.standard_error import blocks_of
from kernsel.types import Array, Indices

STEPS = 200
"""Steps at the most; Newton takes about ten, L-BFGS some dozens."""

MOST = 20
"""Of more classes the matrix of second derivatives, of k (k + 1) unknowns, isn't made."""

ROUNDING = 1e-14


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


def couple(F: Array, Y: Array, s: Array, most: int = MOST) -> Coupling:
    """Fit a coupling to held-out outputs, by damped Newton steps; of many classes by L-BFGS.

    With ``a = tr A / k`` at its best the penalty is that of A less its mean diagonal.

    Parameters
    ----------
    F, Y : (k, n) arrays
        Held-out outputs, and classes as -1 and +1.
    s : (n,) array
        Weights of the rows: counts if all are whole numbers, else only their ratios count.
    most : int
        Classes up to which Newton steps are taken.
    """
    s = as_counts(s)
    k = len(F)
    centre = (F @ s / s.sum())[:, None]
    scale = float(np.sqrt(((F - centre) ** 2 @ s).sum() / (k * s.sum()))) or 1.0
    X = np.vstack([(F - centre) / scale, np.ones(F.shape[1])])
    counts = (Y > 0) @ s
    # Targets lie inside of 0 and 1, as Platt's do: there is a minimum where classes are separated, too.
    T = np.where(Y > 0, (counts[:, None] + 1) / (counts[:, None] + 2), 0.0)
    T += (Y <= 0) * (1 - T.sum(axis=0)) / (k - 1)

    def value(W: Array) -> tuple[float, Array, Array]:
        G = W @ X
        top = G.max(axis=0)
        log_sum = top + np.log(np.exp(G - top).sum(axis=0))
        P, pull = np.exp(G - log_sum), np.zeros_like(W)
        pull[:, :k] = W[:, :k] - np.trace(W) / k * np.eye(k)
        loss = float(s @ (log_sum - (T * G).sum(axis=0))) + 0.5 * float(np.vdot(pull, pull))
        return loss, (s * (P - T)) @ X.T + pull, P

    start = np.hstack([np.eye(k), np.log((counts + 1) / (counts.sum() + k))[:, None]])
    W = _by_newton(value, start, X, s) if k <= most else _by_gradients(value, start)
    if np.trace(W[:, :k]) < 0:  # what is turned around says nothing of new rows: the shares of the classes are left
        W = np.hstack([np.zeros((k, k)), start[:, k:]])
    A, b = W[:, :k] / scale, W[:, k] - W[:, k].mean()  # one number more for all classes says nothing
    return Coupling(A, b - A @ centre[:, 0])


Value = Callable[[Array], tuple[float, Array, Array]]
"""The objective of ``(A, b)`` side by side, (k, k + 1), its gradient, and the probabilities (k, n)."""


def _by_newton(value: Value, W: Array, X: Array, s: Array) -> Array:
    """Minimise by Newton steps with halved lengths where the objective does not fall."""
    k, m = W.shape
    identity = np.zeros((k, m))
    identity[:, :k] = np.eye(k)
    penalty = np.diag(np.tile(np.append(np.ones(k), 0.0), k)) - np.outer(identity, identity) / k
    loss, gradient, P = value(W)
    for _ in range(STEPS):
        H = penalty.copy()
        for i in range(k):
            for j in range(i + 1):
                block = (X * (s * P[i] * ((i == j) - P[j]))) @ X.T
                H[i * m : i * m + m, j * m : j * m + m] += block
                if i != j:
                    H[j * m : j * m + m, i * m : i * m + m] += block
        H[np.diag_indices(k * m)] += ROUNDING * np.trace(H)  # a shift of all outputs changes nothing
        step = np.linalg.solve(H, gradient.ravel()).reshape(k, m)
        promised, share = float(np.vdot(gradient, step)), 1.0
        if promised <= 1e-15 * abs(loss):
            break
        while (new := value(W - share * step))[0] > loss - 0.1 * share * promised and share > 1e-10:
            share /= 2
        W, (loss, gradient, P) = W - share * step, new
        if share <= 1e-10:  # the rest is rounding
            break
    return W


def _by_gradients(value: Value, W: Array) -> Array:
    from scipy.optimize import minimize  # takes a while to import

    def flat(w: Array) -> tuple[float, Array]:
        loss, gradient, _ = value(w.reshape(W.shape))
        return loss, gradient.ravel()

    found = minimize(flat, W.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": STEPS, "ftol": 1e-10})
    return np.asarray(found.x.reshape(W.shape))


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
