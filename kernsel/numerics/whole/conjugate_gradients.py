"""Conjugate gradients for many systems with the whole kernel matrix, each without the rows of a fold.

All systems are columns of one block: each step is one pass over the tiles of K for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kernsel.numerics.runtime.threads import one_blas_thread
from kernsel.numerics.whole.preconditioners import ALL, Preconditioner
from kernsel.numerics.whole.tiles import KernelMatrix, Span
from kernsel.types import Array, Indices

GOAL = 1e-10
"""Residual, relative to the right-hand side, at which conjugate gradients stop."""

PASSES = 100
"""Passes over K, at most, for one block of columns."""

STALLED = 25
"""Passes without a smaller residual after which conjugate gradients give up."""

PROGRESS = 0.5
"""Columns that rounding has led astray begin again where the residual, computed anew, has fallen to this share."""


@dataclass(frozen=True)
class Solution:
    """Solutions X (n, c) of the systems, ``K root X``, the relative residual of each, and the passes over K."""

    X: Array
    KX: Array
    residuals: Array
    passes: int


def conjugate_gradients(
    matrix: KernelMatrix,
    preconditioner: Preconditioner,
    B: Array,
    ridges: Array,
    folds: Indices,
    spans: Sequence[Span],
    root: Array,
    passes: int,
) -> Solution:
    """Solve ``(root K root + ridge I)_TT x = b`` for each column, T without the rows of the column's fold.

    The flexible form: ``beta = z'(r - r_before) / z_before' r_before``, which a preconditioner in float32 asks for. The
    residuals are computed anew from the solutions in the end; columns that rounding has led astray begin again there.

    Parameters
    ----------
    B : (n, c) array
        0 in the rows of each column's fold.
    ridges, folds : (c,) arrays
        Folds are numbers of ``spans``, or ``ALL``.
    spans : sequence of (lo, hi)
    root : (n,) array
        Roots of the weights.
    passes : int
        Over K, at most.
    """

    def leave_out(V: Array, of: Indices) -> None:
        for column, fold in enumerate(of):
            if fold != ALL:
                V[slice(*spans[int(fold)]), column] = 0.0

    def product(V: Array) -> Array:
        return matrix.times(V * root[:, None])

    size = np.sqrt(_dots(B, B))
    X, KX = np.zeros(B.shape), np.zeros(B.shape)
    residuals = np.where(size > 0, 1.0, 0.0)
    R, spent = B.copy(), 0
    with one_blas_thread():
        while True:
            active = np.flatnonzero(residuals > GOAL)
            if not active.size:
                return Solution(X, KX, residuals, spent)
            before = residuals[active]
            if spent < passes - 1:
                spent += _descend(
                    product, preconditioner, X, R, active, ridges, folds, root, leave_out, size, passes - 1 - spent
                )
            fresh = product(X[:, active])
            spent += 1
            KX[:, active] = fresh
            left = root[:, None] * fresh
            leave_out(left, folds[active])
            R[:, active] = B[:, active] - left - ridges[active] * X[:, active]
            residuals[active] = np.sqrt(_dots(R[:, active], R[:, active])) / size[active]
            residuals[~np.isfinite(residuals)] = np.inf
            again = residuals[active] > GOAL
            if spent >= passes - 1 or not (again & (residuals[active] < PROGRESS * before)).any():
                return Solution(X, KX, residuals, spent)


def _descend(
    product: Callable[[Array], Array],
    preconditioner: Preconditioner,
    X: Array,
    R: Array,
    active: Indices,
    ridges: Array,
    folds: Indices,
    root: Array,
    leave_out: Callable[[Array, Indices], None],
    size: Array,
    passes: int,
) -> int:
    """Improve the columns ``active`` of X, whose residuals are R, in place; return the passes."""
    columns = active.copy()
    r, x = R[:, columns], X[:, columns]
    z = preconditioner.apply(r, folds[columns], ridges[columns])
    p, rz = z.copy(), _dots(r, z)
    best, since = np.sqrt(_dots(r, r)), np.zeros(columns.size, np.int64)
    for step in range(1, passes + 1):
        w = product(p)
        w *= root[:, None]
        leave_out(w, folds[columns])
        w += ridges[columns] * p
        curvature = _dots(p, w)
        sound = (curvature > 0) & (rz > 0) & np.isfinite(curvature) & np.isfinite(rz)
        alpha = np.where(sound, rz / np.where(sound, curvature, 1.0), 0.0)
        x += alpha * p
        r -= alpha * w
        now = np.sqrt(_dots(r, r))
        since = np.where(now < best, 0, since + 1)
        best = np.minimum(now, best)
        going = sound & (now > GOAL * size[columns]) & (since < STALLED)
        if not going.all():
            X[:, columns] = x
            if not going.any():
                return step
            columns, x, r, p, w = columns[going], x[:, going], r[:, going], p[:, going], w[:, going]
            alpha, rz, best, since = alpha[going], rz[going], best[going], since[going]
        z = preconditioner.apply(r, folds[columns], ridges[columns])
        beta = np.where(rz > 0, -alpha * _dots(z, w) / np.where(rz > 0, rz, 1.0), 0.0)
        rz = _dots(r, z)
        p = z + beta * p
    X[:, columns] = x
    return passes


def _dots(A: Array, B: Array) -> Array:
    dots: Array = np.einsum("ij,ij->j", A, B)
    return dots
