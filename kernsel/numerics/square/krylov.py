"""The square loss by conjugate gradients: all folds and all ridges from products with the Gram matrix alone.

A fold S is held out by ``(K_{-S,-S} + left_S lam I) a = y_{-S}``, ``f_S = K_{S,-S} a``. Systems that differ in their
ridge alone have one Krylov space, and collinear residuals: one sequence of products serves every ``lam`` (Jegerlehner
1996, hep-lat/9612014). It is short where the ridge is large or the spectrum is small but for a few eigenvalues, as of
very narrow and of very wide kernels; what has not converged after some steps is left to a factorisation.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from kernsel.numerics.left_out import Folds

STEPS = 80
"""After so many products with all folds a factorisation for each ridge that is left costs less."""

ACCURACY = 1e-11
"""Of the outputs, relative to the norm of the targets."""


def heldout_krylov(
    K: np.ndarray, Y: np.ndarray, lams: np.ndarray, folds: Folds, steps: int = STEPS
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return held-out outputs ``(k, L, n)`` of the square loss, the squared norms ``a' K a (L,)`` of the fits on all
    rows, summed over outputs, and for which of ``lams``, descending, both converged.

    The fit on all rows, ``(K + N lam I) a = y``, is one more system beside those of the folds. The error of ``f_S``
    is at most ``|K| / ridge`` times the residual, which is known at every step.

    Parameters
    ----------
    K, Y : (n, n), (k, n)
    lams : (L,)
        The fit without fold S has the ridge ``left_S lam``; rows in no fold keep zeros.
    steps : int
        Products with all folds, at most.
    """
    starts, away, bounds, left, total = folds
    n, t, L = len(K), len(left), lams.size
    kept = np.ones((t + 1, n))  # the last one is the fit on all rows
    for fold, (lo, hi) in enumerate(pairwise(bounds)):
        kept[fold, away[lo:hi]] = 0.0
    r = Y[:, None] * kept  # residuals of the systems (outputs, folds) with the least ridge
    ridges = lams[:, None] * np.append(left, total)
    above = (ridges - ridges[-1])[:, None]  # (L, 1, t)
    norm = float(np.abs(K).sum(axis=1).max(initial=0.0))
    size = np.sqrt(np.square(r).sum(axis=-1))
    enough = ACCURACY * np.minimum(1.0, ridges[:, None] / (norm or 1.0)) * size
    x, directions = np.zeros((L, *r.shape)), np.broadcast_to(r, (L, *r.shape)).copy()
    before, now = np.ones((L, *size.shape)), np.ones((L, *size.shape))  # residuals relative to those of the least
    square, last_step, last_ratio = size**2, np.ones_like(size), np.zeros_like(size)
    first = 0  # larger ridges converge first
    for _ in range(steps):
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):  # 0 / 0 where a residual has vanished
            p = directions[-1]
            product = (p.reshape(-1, n) @ K).reshape(p.shape) * kept + ridges[-1][:, None] * p
            step = np.where(square > 0, square / np.einsum("ctn,ctn->ct", p, product), 0.0)
            r -= step[:, :, None] * product
            fresh = np.square(r).sum(axis=-1)
            ratio = np.where(square > 0, fresh / square, 0.0)
            active = slice(first, L)
            old, here = before[active], now[active]
            there = old * last_step * (1.0 + above[active] * step) + step * last_ratio * (old - here)
            after = np.where(there > 0, here * old * last_step / there, 0.0)
            share = np.where(here > 0, after / here, 0.0)
        x[active] += (step * share)[..., None] * directions[active]
        directions[active] = after[..., None] * r + (ratio * share**2)[..., None] * directions[active]
        before[active], now[active] = here, after
        square, last_step, last_ratio = fresh, step, ratio
        done = (now * np.sqrt(square) <= enough).all(axis=(1, 2))
        first = L if done.all() else int(done.argmin())
        if first == L:
            break
    out = np.zeros((len(Y), L, n))
    for fold, (lo, hi) in enumerate(pairwise(starts)):
        out[:, :first, lo:hi] = (x[:first, :, fold] @ K[:, lo:hi]).swapaxes(0, 1)
    whole = x[:, :, t]
    norms = np.einsum("lcn,lcn->l", whole, Y - ridges[:, t, None, None] * whole)  # K a = y - ridge a
    return out, norms, np.arange(L) < first
