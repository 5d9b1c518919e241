"""The square loss without each fold, for every ridge.

All is in the coordinates of ``spectral``: ``K = U diag(ev) U'``, or features ``K = Z Z'`` with ``G = Z' Z``; weights
as ``S^1/2``, targets as rows ``Y (k, n)``. A fold S of m rows is held out by a block of m x m, or by r x r products.
A fit may leave out more rows than are scored, ``U`` with S in U (rows too near in time or space): blocks and products
are then those of U, and outputs those of S.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numba.core import types

from kernsel.numerics.left_out import FOLDS, Folds, take_rows
from kernsel.numerics.runtime.blas import (
    add_inner_products,
    add_products,
    cholesky,
    copy_lower,
    mirror,
    multiply,
    multiply_transposed,
    ridged_cholesky,
    solve_rows,
)
from kernsel.numerics.runtime.jit import Compiled, f8, f8_1, f8_2, f8_3, i8, i8_1, inline, jit, pointer, record
from kernsel.numerics.runtime.threads import one_blas_thread, share
from kernsel.numerics.smooth.convergence import CONVERGED, SINGULAR
from kernsel.numerics.square.spectral import ROUNDING, Spectrum
from kernsel.types import Array, Indices

DOMINATED = 1 / 32
"""A ridge dominates products whose trace is below this share of it: some ten rounds of a fixed point then give all
digits, for less than a factorisation."""


class System(NamedTuple):
    """The square loss on all rows.

    Parameters
    ----------
    U : (n, r) array
        Orthonormal columns of the spectrum, or features Z.
    ev : (r,) array
        Eigenvalues, infinite for a bias; of no use with features.
    Y : (k, n) array
        Targets.
    C : (k, r) array
        Their coordinates, ``Y U``.
    G : (r, r) array
        Products ``Z' Z`` of features; of no use with a spectrum.
    bias : int
        1 where the last column of features is that of a bias.
    """

    U: Array
    ev: Array
    Y: Array
    C: Array
    G: Array
    bias: int


class Fold(NamedTuple):
    """The rows ``lo`` to below ``hi``, which are scored, and those that the fit leaves out, ``away (m,)``; the weight
    that it keeps, and the weight N of all rows."""

    lo: int
    hi: int
    away: Indices
    left: float
    N: float


SYSTEM, ONE_FOLD = record(System, f8_2, f8_1, f8_2, f8_2, f8_2, i8), record(Fold, i8, i8, i8_1, f8, f8)

FOLD = types.FunctionType(types.void(SYSTEM, f8_1, ONE_FOLD, i8, f8_3, i8_1, f8_1))
"""A way to hold one fold out for every ridge: ``(system, lams, fold, order, out, status, rho)``.

system : System
    The loss on all rows.
lams : (L,) array
    Regularisation: without fold S the ridge is ``left_S lam``.
fold : Fold
order : int
    Number of terms of the series; 0 asks for ``rho`` alone.
out : (k, L, n) array
    Its rows of the fold are overwritten by held-out outputs.
status : (L,) array of int
    Overwritten by 0 or ``SINGULAR``.
rho : (L,) array
    Overwritten by the ratio of the series, in ``influence`` alone.
"""


@jit((i8, i8, FOLD, SYSTEM, f8_1, FOLDS, i8, f8_3, i8[:, ::1], f8_2))
def _folds(first, step, task, system, lams, folds, order, out, status, rho):
    starts, away, bounds, left, N = folds
    for fold in range(first, left.size, step):
        one = Fold(starts[fold], starts[fold + 1], away[bounds[fold] : bounds[fold + 1]], left[fold], N)
        task(system, lams, one, order, out, status[fold], rho[fold])


def for_folds(
    task: Compiled, U: np.ndarray, ev: np.ndarray, bias: int, Y: np.ndarray, G: np.ndarray, lams: np.ndarray,
    folds: Folds, order: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Run ``task`` for every fold, side by side.

    Parameters
    ----------
    task : pointer
        ``without_block`` or ``influence`` on the spectrum ``U, ev``; ``without_products`` on features in place of U.
    U, ev : (n, r), (r,)
        The spectrum.
    bias : int
        1 where the last column of the features is that of a bias.
    Y : (k, n)
        Targets.
    G : (r, r)
        The products ``Z' Z`` of the features.
    lams : (L,)
        Regularisation: without fold S the ridge is ``left_S lam``.
    folds : Folds
        For ``influence`` those whose fits leave out their own rows.
    order : int
        Of the BIF; 0 asks for ``rho`` alone.

    Returns
    -------
    out : (k, L, n); status : (L,); rho : (t, L)
        Held-out outputs (those of rows in no fold are left as zeros), the worst status over folds, 0 or a key of
        ``convergence.REASONS``, and the ratio of the BIF's series.
    """
    out = np.zeros((Y.shape[0], lams.size, U.shape[0]))
    each = (folds.left.size, lams.size)
    status, rho = np.zeros(each, np.int64), np.zeros(each)
    loop = _folds.code  # compiled here, not by several threads at once
    job = (task.code, System(U, ev, Y, Y @ U, G, bias), lams, folds, order, out, status, rho)
    with one_blas_thread():
        share(lambda first, step: loop(first, step, *job), len(status))
    return out, status.max(axis=0), rho


def products_are_cheaper(bounds: np.ndarray, r: int, lams: np.ndarray, spectrum: float = 0.0) -> bool:
    """Say whether folds are left out with fewer operations by ``r x r`` products than by their own blocks.

    Fold j leaves out ``bounds[j + 1] - bounds[j]`` rows. For blocks a spectrum is needed, which takes ``spectrum``
    operations if it isn't there yet.
    """
    m = float(np.diff(bounds).max())
    blocks = lams.size * (m**2 * r + m**3 / 3) + spectrum / (len(bounds) - 1)
    return m * r**2 + lams.size * r**3 / 3 < blocks


def heldout_square(spectrum: Spectrum, Y: np.ndarray, lams: np.ndarray, folds: Folds) -> tuple[np.ndarray, np.ndarray]:
    """Return the exact held-out outputs ``(k, L, n)`` of the square loss, and a status for every ``lam``.

    Without fold S the ridge is ``left_S lam``, and with ``A = (K + ridge I)^-1``, ``y_S - f_S = A_SS^-1 (A y)_S``;
    where the fit leaves out the rows U, of which S are scored, ``y_U - f_U = A_UU^-1 (A y)_U``.

    Parameters
    ----------
    Y : (k, n) array
        Weighted targets, ``S^1/2 y``.
    lams : (L,) array
        Regularisation: without fold S the ridge is ``left_S lam``.
    """
    U, ev = spectrum
    if products_are_cheaper(folds.bounds, ev.size, lams):
        bias = int(ev.size > 0 and np.isinf(ev[0]))  # it comes first in a spectrum, and last among features
        scaled = np.roll(U * np.sqrt(np.where(np.isinf(ev), 1.0, ev)), -bias, axis=1)
        return heldout_features(np.ascontiguousarray(scaled), scaled.T @ scaled, bias, Y, lams, folds)
    out, status, _ = for_folds(without_block, U, ev, 0, Y, np.zeros((0, 0)), lams, folds, 0)
    return out, status


def heldout_features(
    Z: np.ndarray, G: np.ndarray, bias: int, Y: np.ndarray, lams: np.ndarray, folds: Folds
) -> tuple[np.ndarray, np.ndarray]:
    """Return the exact held-out outputs ``(k, L, n)`` for ``K = Z Z'`` and ``G = Z' Z``, and a status (L,).

    The fold is left out of the normal equations: ``(G - Z_S' Z_S + ridge I) w = Z' y - Z_S' y_S``, ``f_S = Z_S w``.

    Columns that overlap with no other one, as where the kernel is so narrow that it sees single points, need no system.
    (With a bias they all overlap with its column.)

    Parameters
    ----------
    Z : (n, r) array
        Weighted features, ``S^1/2 Z``, the column of a bias last.
    G : (r, r) array
        Their products ``Z' Z``.
    bias : int
        1 where the last column is that of a bias, which has no ridge.
    Y, lams, folds : as in ``heldout_square``
    """
    alone = columns_alone(Z, G)
    out, status = np.zeros((len(Y), lams.size, len(Z))), np.zeros(lams.size, np.int64)
    if not alone.all():
        features, products = (np.ascontiguousarray(Z[:, ~alone]), G[np.ix_(~alone, ~alone)]) if alone.any() else (Z, G)
        out, status, _ = for_folds(without_products, features, np.zeros(0), bias, Y, products, lams, folds, 0)
    if alone.any():
        out += without_columns(Z[:, alone], Y, lams, folds)
    return out, status


def columns_alone(Z: np.ndarray, G: np.ndarray) -> np.ndarray:
    """Say which columns overlap with no other one by more than rounding, in whatever rows: (r,) bool.

    Z and G are as in ``heldout_features``.
    """
    length = np.sqrt(np.diag(G))
    bound = ROUNDING * np.outer(length, length)
    alone: np.ndarray = (np.abs(G) > bound).sum(axis=0) <= 1
    if alone.any():  # what cancels over all rows need not without a fold
        size = np.abs(Z)
        with_all = size.T @ size.sum(axis=1) - np.einsum("ij,ij->j", size, size)
        alone &= with_all <= ROUNDING * length * length.min(initial=np.inf)
    return alone


def without_columns(Z: np.ndarray, Y: np.ndarray, lams: np.ndarray, folds: Folds) -> np.ndarray:
    """Return the held-out outputs ``(k, L, n)`` of orthogonal columns: ``w = Z' y / (diag(Z' Z) + ridge)``.

    The arguments are as in ``heldout_features``.
    """
    starts, away, bounds, left, _ = folds
    places = [slice(lo, hi) for lo, hi in pairwise([*starts, len(Z)])]  # what is never held out comes last
    if away.size == starts[-1]:
        squares = np.stack([np.einsum("ij,ij->j", Z[place], Z[place]) for place in places])
        products = np.stack([Y[:, place] @ Z[place] for place in places])
        kept = 1.0 - np.eye(len(places))  # sums over the other folds: the fold's own part would not cancel exactly
        squares, products = kept @ squares, np.einsum("st,tkj->skj", kept, products)
    else:
        kept = np.ones((left.size, len(Z)))
        for j, (lo, hi) in enumerate(pairwise(bounds)):
            kept[j, away[lo:hi]] = 0.0
        squares, products = kept @ Z**2, np.stack([(Y * each) @ Z for each in kept])
    out = np.zeros((Y.shape[0], lams.size, Z.shape[0]))
    for j, place in enumerate(places[:-1]):
        w = products[j][:, None, :] / (squares[j] + left[j] * lams[:, None])
        out[:, :, place] = w @ Z[place].T
    return out


@inline
def scale_columns(A, factors, out):
    """Fill ``out = A diag(factors)``."""
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            out[i, j] = A[i, j] * factors[j]


@pointer(FOLD)
def without_block(system, lams, fold, order, out, status, rho):
    """Hold a fold out through ``ridge A_SS = U_S diag(ridge / (ev + ridge)) U_S' + (I - U_S U_S')``.

    ``ridge A y`` is made of these two parts as well: ``y - f`` would be 0 to rounding, and the outputs the targets
    themselves, where the ridge is small.

    Its arguments are those of ``FOLD``.
    """
    (U, ev, Y, YU, _, _), (lo, hi, away, left, _) = system, fold
    n, r = U.shape
    m = away.size
    US = take_rows(U, away)
    # What the spectrum doesn't span is nothing where it is complete; else a ridge below rounding is lost in it.
    beyond, rest, f, least = np.zeros((m, m)), np.zeros((Y.shape[0], m)), np.empty(m), 0.0
    if r < n:
        least = n * ROUNDING * ev[-1] if r and np.isfinite(ev[-1]) else 0.0
        add_inner_products(US, -1.0, beyond)
        for i in range(m):
            beyond[i, i] += 1.0
        for c in range(Y.shape[0]):
            multiply(US, YU[c], f)
            for i in range(m):
                rest[c, i] = Y[c, away[i]] - f[i]
    Q, W, e = np.empty((m, m)), np.empty((m, r)), np.empty((Y.shape[0], m))
    root, shrunk = np.empty(r), np.empty(r)
    for k in range(lams.size):
        ridge = left * lams[k]
        for j in range(r):
            root[j] = np.sqrt(ridge / (ev[j] + ridge))
        scale_columns(US, root, W)
        copy_lower(beyond, Q)
        add_inner_products(W, 1.0, Q)
        for c in range(Y.shape[0]):
            for j in range(r):
                shrunk[j] = YU[c, j] * (ridge / (ev[j] + ridge))
            multiply(US, shrunk, f)
            for i in range(m):
                e[c, i] = rest[c, i] + f[i]
        status[k] = CONVERGED if cholesky(Q) == 0 and ridge > least else SINGULAR
        solve_rows(Q, e)
        for c in range(Y.shape[0]):
            for i in range(m):
                if lo <= away[i] < hi:
                    out[c, k, away[i]] = Y[c, away[i]] - e[c, i]


@pointer(FOLD)
def without_products(system, lams, fold, order, out, status, rho):
    """Hold a fold out by ``(G - Z_S' Z_S + ridge I) w = Z' y - Z_S' y_S``.

    Where the ridge is far above the trace of the products, ``w <- (right - products w) / ridge`` is at its fixed point
    after a few rounds, which are cheaper than a factorisation.

    Its arguments are those of ``FOLD``.
    """
    (Z, _, Y, YZ, G, bias), (lo, hi, away, left, _) = system, fold
    r, m = Z.shape[1], away.size
    ZS = take_rows(Z, away)
    products, right = np.empty((r, r)), np.empty((Y.shape[0], r))
    inside, pulled, f, targets = np.empty(r), np.empty(r), np.empty(hi - lo), np.empty(m)
    copy_lower(G, products)
    add_products(ZS, -1.0, products)
    mirror(products)
    trace = 0.0
    for j in range(r):
        trace += products[j, j]
    for c in range(Y.shape[0]):
        for i in range(m):
            targets[i] = Y[c, away[i]]
        multiply_transposed(ZS, targets, inside)
        for j in range(r):
            right[c, j] = YZ[c, j] - inside[j]
    R, w = np.empty((r, r)), np.empty((Y.shape[0], r))
    for k in range(lams.size):
        ridge = left * lams[k]
        dominated = trace < DOMINATED * ridge and bias == 0
        for c in range(Y.shape[0]):
            for j in range(r):
                w[c, j] = right[c, j] / ridge if dominated else right[c, j]
        if dominated:
            share = trace / ridge
            while share > 0.1 * ROUNDING:
                share *= trace / ridge
                for c in range(Y.shape[0]):
                    multiply(products, w[c], pulled)
                    for j in range(r):
                        w[c, j] = (right[c, j] - pulled[j]) / ridge
        else:
            status[k] = CONVERGED if ridged_cholesky(products, ridge, bias, R) == 0 else SINGULAR
            solve_rows(R, w)
        for c in range(Y.shape[0]):
            multiply(Z[lo:hi], w[c], f)
            for i in range(hi - lo):
                out[c, k, lo + i] = f[i]


LOOPS = (without_products, without_block)
"""What takes longest to compile of what low-rank features need."""
