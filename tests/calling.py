"""Short calls of the compiled loops, for one target and plain arrays."""

import functools
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from kernsel.numerics.left_out import Folds
from kernsel.numerics.runtime.threads import one_blas_thread
from kernsel.numerics.smooth import convergence, heldout, newton, objective

NOTHING = np.zeros((0, 0))


@dataclass(frozen=True)
class Fits:
    """Fits of one target for all ``lams (L,)``: ``x (L, .)``, and ``f, v, d1, d2 (L, n)``; ``status (L,)``."""

    loss: Any
    y: np.ndarray
    s: np.ndarray
    x: np.ndarray
    f: np.ndarray
    v: np.ndarray
    d1: np.ndarray
    d2: np.ndarray
    status: np.ndarray


@functools.cache
def entry(function):
    """An inlined function with an entry for Python, which it has not in the library."""
    return numba.njit(getattr(function, "py_func", function), error_model="numpy")


def array(*values):
    return np.array(values, dtype=float)


def fit(problem, loss, G, y, lams, s=None, follow=True, bias=0, tol=convergence.DECREMENT):
    """Fit by ``newton.in_kernel`` (G is K) or ``newton.in_features`` (G is Z), from zero."""
    s = np.ones(y.size) if s is None else s
    width = G.shape[1] + (bias if problem is newton.in_kernel else 0)
    x, f = np.zeros((1, lams.size, width)), np.zeros((1, lams.size, y.size))
    v, d1, d2 = (np.empty(f.shape) for _ in range(3))
    with one_blas_thread():
        status = newton.solve_paths(
            problem, G[None], bias, np.zeros(1, np.int64), y[None], s[None], lams, loss.compiled, loss.parameters,
            follow, x, f, tol,
        )  # fmt: skip
        objective.expand(loss.compiled, loss.parameters, y[None], s, f, v, d1, d2)
    return Fits(loss, y, s, x[0], f[0], v[0], d1[0], d2[0], status[0])


def update(function, G, fits, lams, starts, order=0, V=NOTHING, bias=0, trust=np.inf):
    """Update all folds; returns the held-out outputs ``(L, n)``, the ratios ``(L, t)`` and the statuses ``(L, t)``."""
    n, L = fits.f.shape[1], lams.size
    held = heldout.HeldOut.room(np.zeros((1, L, n)), starts.size - 1)
    stack = heldout.Objective(fits.y[None], fits.s[None], lams, fits.loss.parameters, bias)
    fitted = heldout.Fit(*(each[None] for each in (fits.x, fits.f, fits.d1, fits.d2)))
    loss = fits.loss.compiled
    heldout.update_folds(function, G, V, stack, loss, fitted, folds(starts, fits.s), order, trust, held)
    return held.out[0], held.rho[0], held.status[0]


def kept(s, starts):
    """The weight that the fit without each fold keeps."""
    return s.sum() - np.add.reduceat(s, starts[:-1])


def folds(starts, s):
    """Folds whose fits leave out their own rows."""
    return Folds.own(starts, kept(s, starts), float(s.sum()))
