"""Fits without each fold, side by side from one inverse, for losses that are curved everywhere.

In the coordinates of the Gram matrix.
With the curvatures D0 of the fit on all rows, raised to a little where there is next to none, and a ridge mu0, let
``H0 = mu0 I_g + sum_T D0_i psi_i psi_i'`` on the rows T that a fit without a fold S keeps, where psi_i takes a fit to
its output. With the matrix of ``heldout_kernel.scaled_inverse``, ``M = [D0^1/2 K D0^1/2 + mu0 I, r; r', 0]^-1`` with
``r = D0^1/2 1``, and without the rows S,

    H0^-1 sum_T rho_i psi_i   has the outputs   D0^-1/2 Q D0^-1/2 rho,   Q = I - mu0 M_TT,

and its bias is the last entry of ``M (D0^-1/2 rho, 0)``. So H0^-1 costs one product with M, which is the same for all
folds but for their own rows: one matrix product serves them all.

Newton steps ``H x = -G`` of a fold, with its own curvatures D and ridge mu, are solved by conjugate gradients in the
space of functions, preconditioned by H0. Gradients ``G = sum_T c_i psi_i``, ``c_i = d1_i + mu a_i``, and everything
that conjugate gradients make of them are such sums; with ``p = H0^-1 sum_T pi_i psi_i`` and its outputs h,

    H p  =  sum_T (pi_i + (D_i - D0_i) h_i + (mu - mu0) p_i) psi_i,    p_i = (pi_i - D0_i h_i) / mu0,

so that no product with K is needed. Eigenvalues of ``H0^-1 H`` lie between the least and the largest of ``D_i / D0_i``,
``mu / mu0`` and 1. In the code all is scaled: ``D0^-1/2 pi`` and ``D0^1/2 h``. Outputs are made anew from coefficients,
by one product with K, before every Newton step.

M is in float32, which takes half the time, where the ridge is large enough for that. Directions are then off by what
float32 rounds off, and nothing else is: the gradient, J and the slope are made of outputs and coefficients in float64.
The next step mends the rest: by as much as steps converge quadratically, or as float32 lets them. What it rounds off is
a share of all coefficients of the gradient, those that have next to no outputs among them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernsel.numerics.runtime.blas import (
    damped_cholesky,
    fill,
    inner,
    inverse,
    rows_times,
    rows_times_in,
    single_inverse,
    sum_of,
    times,
)
from kernsel.numerics.runtime.jit import inline, pointer
from kernsel.numerics.smooth.convergence import EXACT, REFITTED, UNFINISHED
from kernsel.numerics.smooth.heldout import UPDATE
from kernsel.numerics.smooth.heldout_kernel import scaled_inverse
from kernsel.numerics.smooth.objective import Direction, Objective, along, derivatives, inner_above, line_search
from kernsel.numerics.smooth.systems import add_rows
from kernsel.types import Array, Indices

GROUP = 16
"""Folds that are fitted side by side: enough for a matrix product, and little memory where every row is a fold."""

LEAST = 1e-3
"""D0 is raised to this share of what outweighs the ridge in a row alone, ``mu0 / max K_ii``: of no consequence."""

MOST_TOGETHER = 0.25
"""Folds that take more than ``MOST_GRADIENTS`` and so many steps for each row in all are fitted by themselves: a few
factors of their own take less time than more of them."""

ROUNDED = 5e-7
"""What float32 rounds off M, times mu0, is this share of the trace of ``D0^1/2 K D0^1/2`` over mu0: eight roundings."""

BORNE = 0.02
"""Where that is more, fits take more steps than float32 saves."""

FINER = 2.0**-29
"""What float64 rounds off is this share of what float32 does."""

MOST_STEPS = 20
"""Newton steps; folds that take more, as one in which one class is left, are fitted by themselves."""

MOST_GRADIENTS = 100
"""Steps of conjugate gradients for one Newton step, which goes downhill wherever they end."""

ROUGHLY = 0.1
"""The square of a residual falls to this share at least: far from a minimum better directions are worth no more."""


class Inverse(NamedTuple):
    """The inverse for all rows.

    Parameters
    ----------
    M : (n + bias, n + bias) array
    root : (n,) array
        ``r = D0^1/2``.
    ridge : float
        mu0.
    error : float
        By how much a Newton step may be off for what M was rounded off, relatively.
    """

    M: NDArray[np.float32] | Array
    root: Array
    ridge: float
    error: float


class Group(NamedTuple):
    """Folds that are fitted side by side: ``g`` of them.

    Parameters
    ----------
    gone, bounds : (m,), (g + 1,) arrays of int
        The fit without fold k leaves out the rows ``gone[bounds[k]:bounds[k + 1]]``.
    blocks : (m, widest) array
        Fold below fold, the inverse of the block of M of these rows.
    shorter : (g,) array
        ``mu / mu0 - 1``.
    """

    gone: Indices
    bounds: Indices
    blocks: Array
    shorter: Array


@pointer(UPDATE)
def refit_folds(K, V, objective, loss, fit, folds, order, tol, held):
    """Fit without each fold, from where a Newton step of the fit on all rows leads to; ``rho`` isn't filled.

    Folds that are fitted are ``REFITTED``. Others stay ``UNFINISHED``, as do those that take too many steps, and all
    where float32 bears no such ridge.

    Its arguments are those of ``heldout.UPDATE``, but for two.

    Parameters
    ----------
    V : (t, 1) array
        1 for a fold that is wanted, else 0.
    tol : float
        A fit ends with a full step after which another one would promise less than the square of this share of J.
    """
    wanted = wanted_folds(V, held)
    if wanted.size > 0:
        ridge = 2.0 * folds.left[wanted[0]] * objective.lam
        inverse, failed = inverse_for_all(K, objective, fit, ridge, BORNE)
        if not failed:
            refit_groups(K, inverse, objective, loss, fit, folds, wanted, tol, held)


@pointer(UPDATE)
def refit_folds_finely(K, V, objective, loss, fit, folds, order, tol, held):
    """Do what ``refit_folds`` does with an inverse in float64, for smaller ridges: its arguments are the same."""
    wanted = wanted_folds(V, held)
    if wanted.size > 0:
        inverse, failed = fine_inverse(K, objective, fit, 2.0 * folds.left[wanted[0]] * objective.lam)
        if not failed:
            refit_groups(K, inverse, objective, loss, fit, folds, wanted, tol, held)


@inline
def wanted_folds(V, held):
    """Return the numbers of the folds that are wanted; all are ``UNFINISHED`` so far."""
    wanted, count = np.empty(V.shape[0], np.int64), 0
    for fold in range(V.shape[0]):
        held.status[fold] = UNFINISHED
        if V[fold, 0] > 0.0:
            wanted[count] = fold
            count += 1
    return wanted[:count]


@inline
def refit_groups(K, inverse, objective, loss, fit, folds, wanted, tol, held):
    """Fit without each of the wanted folds, ``GROUP`` of them at a time."""
    for first in range(0, wanted.size, GROUP):
        numbers = wanted[first : min(first + GROUP, wanted.size)]
        refit_group(K, inverse, objective, loss, fit, folds, numbers, tol, held)


@inline
def off_in_single(K, fit, ridge):
    """Return the ``error`` of an ``Inverse`` in float32."""
    trace = 0.0
    for i in range(fit.f.size):
        trace += fit.d2[i] * K[i, i]
    return ROUNDED * trace / ridge


@inline
def raised_root(K, fit, ridge):
    """Return ``D0^1/2`` (n,), D0 raised to what ``LEAST`` says."""
    n, longest = fit.f.size, 0.0
    root = np.empty(n)
    for i in range(n):
        longest = max(longest, K[i, i])
    least = LEAST * ridge / (longest if longest > 0.0 else 1.0)
    for i in range(n):
        root[i] = np.sqrt(max(fit.d2[i], least))
    return root


@inline
def fine_inverse(K, objective, fit, ridge):
    """Return the ``Inverse`` in float64, and whether there is none."""
    n, bias = fit.f.size, objective.bias
    root, M = raised_root(K, fit, ridge), np.empty((n + bias, n + bias))
    failed = scaled_inverse(K, bias, np.arange(n), root, ridge, M) != 0
    return Inverse(M, root, ridge, FINER * off_in_single(K, fit, ridge)), failed


@inline
def inverse_for_all(K, objective, fit, ridge, borne):
    """Return the ``Inverse`` in float32, and whether there is none, or its error is more than what is ``borne``."""
    n, bias = fit.f.size, objective.bias
    root, M = raised_root(K, fit, ridge), np.zeros((n + bias, n + bias), np.float32)
    error = off_in_single(K, fit, ridge)
    B = np.empty((n, n), np.float32)
    for i in range(n):
        for j in range(i):
            B[i, j] = root[i] * root[j] * K[i, j]
        B[i, i] = root[i] * root[i] * K[i, i] + ridge
    failed = error > borne or single_inverse(B) != 0
    if failed or not bias:
        return Inverse(B, root, ridge, error), failed
    u = np.empty(n)
    times(B, root, u)
    t = 1.0 / inner(root, u)
    M[n, n] = -t
    for i in range(n):
        scaled = t * u[i]
        for j in range(n):
            M[i, j] = B[i, j] - scaled * u[j]
        M[i, n] = M[n, i] = scaled
    return Inverse(M, root, ridge, error), failed


@inline
def gather(M, ridge, lam, folds, numbers):
    """Return the ``Group`` of the folds with these numbers."""
    g = numbers.size
    bounds, shorter = np.zeros(g + 1, np.int64), np.empty(g)
    for k in range(g):
        fold = numbers[k]
        bounds[k + 1] = bounds[k] + folds.bounds[fold + 1] - folds.bounds[fold]
        shorter[k] = 2.0 * folds.left[fold] * lam / ridge - 1.0
    gone = np.empty(bounds[g], np.int64)
    for k in range(g):
        for i in range(bounds[k + 1] - bounds[k]):
            gone[bounds[k] + i] = folds.away[folds.bounds[numbers[k]] + i]
    return Group(gone, bounds, left_out_blocks(M, gone, bounds), shorter)


@inline
def weights_of(s, group):
    """Return the weights (g, n) of rows for the fits of a ``Group``: 0 for rows that are left out."""
    g, n = group.shorter.size, s.size
    weights = np.empty((g, n))
    for k in range(g):
        for i in range(n):
            weights[k, i] = s[i]
        for i in group.gone[group.bounds[k] : group.bounds[k + 1]]:
            weights[k, i] = 0.0
    return weights


@inline
def refit_group(K, inverse, objective, loss, fit, folds, numbers, tol, held):
    """Fit without each of the folds with these numbers: see the module."""
    y, s, lam, parameters, bias = objective
    root, group = inverse.root, gather(inverse.M, inverse.ridge, lam, folds, numbers)
    n, g = y.size, numbers.size
    left = np.empty(g)
    a, b, f, d1, weights = np.empty((g, n)), np.zeros(g), np.empty((g, n)), np.empty((g, n)), weights_of(s, group)
    d2, total, J, running = np.empty(n), np.empty(g), np.empty(g), np.ones(g, np.bool_)
    rounding = np.empty(g)
    r, bend, t, p, change = np.empty((g, n)), np.empty((g, n)), np.empty((g, n)), np.empty((g, n)), np.empty(g)
    for k in range(g):
        left[k] = folds.left[numbers[k]]
    first_step(inverse, fit, bias, group, weights, a, b)
    gradients = 0
    for number in range(MOST_STEPS):
        if gradients > MOST_GRADIENTS + MOST_TOGETHER * n or fill_outputs(K, a, b, running, f) == 0:
            break
        if number == 0:
            take_fit_instead(K, loss, objective, weights, left, fit, a, b, f)
        for k in range(g):
            if running[k]:
                total[k] = derivatives(loss, parameters, y, weights[k], f[k], d1[k], d2)
                J[k] = total[k] / left[k] + lam * inner_above(a[k], f[k], b[k])
                running[k] = np.isfinite(J[k])
                for i in range(n):
                    r[k, i] = -(d1[k, i] + 2.0 * left[k] * lam * a[k, i]) / root[i]
                    bend[k, i] = d2[i] / (root[i] * root[i]) - 1.0
                for i in group.gone[group.bounds[k] : group.bounds[k + 1]]:
                    r[k, i] = bend[k, i] = 0.0
                rounding[k] = inverse.error * inverse.error * inner(r[k], r[k]) / (left[k] * J[k])
        steps = find_directions(inverse, group, bend, left * J, tol, running, r, t, p, change)
        gradients += steps
        for k in range(g):
            if not running[k]:
                continue
            put_direction(inverse, bias, weights[k], t[k], p[k])
            q1, q2 = inner(a[k], t[k]) - change[k] * sum_of(a[k]), inner(p[k], t[k])
            slope = inner(d1[k], t[k]) / left[k] + 2.0 * lam * q1
            settled = 0.0 <= slope <= tol * J[k] and rounding[k] <= tol * tol  # rounding is all that is left
            if slope < 0.0:
                own = Objective(y, weights[k], lam, parameters, bias)
                step = line_search(loss, own, left[k], f[k], t[k], Direction(total[k], J[k], slope, q1, q2))
                promise = -slope / J[k]
                solved = steps < MOST_GRADIENTS  # else a small promise says little
                settled = solved and step == 1.0 and max(promise * promise, rounding[k]) <= tol * tol
                for i in range(n):
                    a[k, i] += step * p[k, i]
                b[k] += step * change[k]
            if settled:
                place_fit(K, a[k], b[k], bias, folds.starts, numbers[k], held)
            running[k] = slope < 0.0 and not settled


@inline
def left_out_blocks(M, gone, bounds):
    """Return the ``blocks`` of a ``Group``; NaN where there is no inverse."""
    widest = 0
    for k in range(bounds.size - 1):
        widest = max(widest, bounds[k + 1] - bounds[k])
    blocks = np.zeros((gone.size, widest))
    for k in range(bounds.size - 1):
        rows = gone[bounds[k] : bounds[k + 1]]
        block = np.empty((rows.size, rows.size))
        for i in range(rows.size):
            for j in range(i + 1):
                block[i, j] = M[rows[i], rows[j]]
        failed = damped_cholesky(block) != 0
        inverse(block)
        for i in range(rows.size):
            for j in range(rows.size):
                blocks[bounds[k] + i, j] = np.nan if failed else block[i, j]
    return blocks


@inline
def drop_rows(M, group, k, x):
    """Turn ``x = M v``, with ``v = 0`` on the rows that fold k leaves out, into what it is without these rows."""
    lo, rows = group.bounds[k], group.gone[group.bounds[k] : group.bounds[k + 1]]
    here, pulls = np.empty(rows.size), np.empty(rows.size)
    for i in range(rows.size):
        here[i] = x[rows[i]]
    for i in range(rows.size):
        pulls[i] = -inner(group.blocks[lo + i, : rows.size], here)
    add_rows(M, rows, rows.size, pulls, x)
    for i in rows:
        x[i] = 0.0


@inline
def first_step(inverse, fit, bias, group, weights, a, b):
    """Fill ``a (g, n)`` and ``b (g,)`` with the ends of Newton steps from the fit on all rows, at the ridge of M.

    With a bias the coefficients sum to 0; to what float32 leaves of that answers the column of M for their sum.
    """
    M, root = inverse.M, inverse.root
    n, g = root.size, b.size
    v = np.zeros((g, M.shape[0]), M.dtype)
    old = fit.x[n] if bias else 0.0
    for k in range(g):
        for i in range(n):
            v[k, i] = root[i] * (fit.f[i] - old) - fit.d1[i] / root[i]
        for i in group.gone[group.bounds[k] : group.bounds[k + 1]]:
            v[k, i] = 0.0
    X, column = rows_times_in(v, M), np.empty(n + bias)
    for k in range(g):
        drop_rows(M, group, k, X[k])
        if bias:
            off = inner(root, X[k])
            for i in range(n + 1):
                column[i] = M[n, i]
            drop_rows(M, group, k, column)
            for i in range(n + 1):
                X[k, i] -= off * column[i]
            b[k] = X[k, n]
        for i in range(n):
            a[k, i] = root[i] * X[k, i]
        if bias:
            balance(a[k], weights[k])


@inline
def balance(a, weights):
    """Make coefficients sum to 0, as a bias asks for, where rounding left a little."""
    total, count = 0.0, 0
    for i in range(a.size):
        total += a[i]
        count += weights[i] > 0.0
    for i in range(a.size):
        if weights[i] > 0.0:
            a[i] -= total / count


@inline
def put_direction(inverse, bias, weights, t, p):
    """Turn what ``find_directions`` found into the outputs ``t (n,)`` and coefficients ``p (n,)`` of a step."""
    for i in range(p.size):
        p[i] = inverse.root[i] * (p[i] - t[i]) / inverse.ridge
        t[i] /= inverse.root[i]
    if bias:
        balance(p, weights)


@inline
def take_fit_instead(K, loss, objective, weights, left, fit, a, b, f):
    """Replace starts ``a (g, n)``, ``b (g,)`` and their outputs ``f (g, n)`` by the fit on all rows without the
    coefficients of a fold, where J is lower there: a Newton step that isn't guarded may end anywhere."""
    y, _, lam, parameters, bias = objective
    g, n = a.shape
    start, old = np.zeros((g, n)), fit.x[n] if bias else 0.0
    for k in range(g):
        for i in range(n):
            start[k, i] = fit.x[i] if weights[k, i] > 0.0 else 0.0
        if bias:
            balance(start[k], weights[k])
    outputs, none = rows_times(start, K), np.zeros(n)
    for k in range(g):
        for i in range(n):
            outputs[k, i] += old
        by_step, _ = along(loss, parameters, y, weights[k], f[k], none, 0.0)
        by_fit, _ = along(loss, parameters, y, weights[k], outputs[k], none, 0.0)
        by_step += left[k] * lam * inner_above(a[k], f[k], b[k])
        by_fit += left[k] * lam * inner_above(start[k], outputs[k], old)
        if not by_step <= by_fit:
            b[k] = old
            for i in range(n):
                a[k, i], f[k, i] = start[k, i], outputs[k, i]


@inline
def fill_outputs(K, a, b, running, f):
    """Fill rows of ``f (g, n)`` with ``K a + b`` for fits that are running; return how many are."""
    n = K.shape[0]
    A = np.empty((b.size, n))
    count = take_running(a, running, A)
    F = rows_times(A[:count], K)
    row = 0
    for k in range(b.size):
        if running[k]:
            for i in range(n):
                f[k, i] = F[row, i] + b[k]
            row += 1
    return count


@inline
def take_running(v, running, out):
    """Copy the rows of ``v (g, n)`` that are running to the first rows of out; return their number."""
    count = 0
    for k in range(running.size):
        if running[k]:
            for i in range(v.shape[1]):
                out[count, i] = v[k, i]
            count += 1
    return count


@inline
def find_directions(inverse, group, bend, scale, tol, running, r, t, p, change):
    """Solve the Newton systems of fits that are running by conjugate gradients; return the number of their steps.

    The square of a residual, in the norm of the preconditioner, falls to the share that it is of the objective: steps
    converge quadratically. It need not fall below the square of ``tol``, as a share of the objective.

    Parameters
    ----------
    inverse : Inverse
    group : Group
    bend : (g, n)
        ``D / D0 - 1``, 0 on rows that are left out.
    scale : (g,)
        The objectives, times the weights that they are means over.
    tol : float
    running : (g,) bool
    r : (g, n)
        Minus the gradients, scaled, 0 on rows that are left out; overwritten.
    t, p, change : (g, n), (g, n), (g,)
        Overwritten by the scaled outputs h of the steps on the rows that are kept, their scaled pi, and their biases.
    """
    (g, n), (M, _, ridge, _) = r.shape, inverse
    v, path, image, shift = np.zeros((g, M.shape[0]), M.dtype), np.zeros((g, n)), np.zeros((g, n)), np.zeros(g)
    before, enough, busy = np.ones(g), np.zeros(g), running.copy()
    for k in range(g):
        fill(t[k], 0.0)
        fill(p[k], 0.0)
        change[k] = 0.0
    for number in range(MOST_GRADIENTS):
        count = take_running(r, busy, v)
        if count == 0:
            return number
        X = rows_times_in(v[:count], M)
        row = 0
        for k in range(g):
            if not busy[k]:
                continue
            x = X[row]
            row += 1
            drop_rows(M, group, k, x)
            now = 0.0
            for i in range(n):
                x[i] = r[k, i] - ridge * x[i]
                now += r[k, i] * x[i]
            if number == 0:
                promise = now / scale[k]
                enough[k] = now * min(max(promise, tol * tol / promise, EXACT * EXACT), ROUGHLY)
            again = now / before[k] if number > 0 else 0.0
            curvature = 0.0
            for i in range(n):
                path[k, i] = r[k, i] + again * path[k, i]
                image[k, i] = x[i] + again * image[k, i]
                x[i] = path[k, i] + bend[k, i] * image[k, i] + group.shorter[k] * (path[k, i] - image[k, i])
                curvature += image[k, i] * x[i]
            if M.shape[0] > n:
                shift[k] = x[n] + again * shift[k]
            if not (now > enough[k] and curvature > 0.0):
                busy[k] = False
                continue
            length = now / curvature
            for i in range(n):
                r[k, i] -= length * x[i]
                t[k, i] += length * image[k, i]
                p[k, i] += length * path[k, i]
            change[k] += length * shift[k]
            before[k] = now
            busy[k] = inner(r[k], r[k]) > enough[k]  # which the square of the residual is at most
    return MOST_GRADIENTS


@inline
def place_fit(K, a, b, bias, starts, fold, held):
    """Write a fit without a fold to where it is wanted."""
    for j in range(starts[fold], starts[fold + 1]):
        held.out[j] = inner(K[j], a) + b
    if held.x.size > 0:
        for i in range(a.size):
            held.x[fold, i] = a[i]
        if bias:
            held.x[fold, a.size] = b
    held.status[fold] = REFITTED
