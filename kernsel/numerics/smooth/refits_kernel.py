"""Fits without each fold, all from one inverse, for losses that are curved everywhere: in the coordinates of K.

With the curvatures D0 of the fit on all rows and its ridge mu0, let ``H0 = mu0 I_g + sum_T D0_i psi_i psi_i'`` on the
rows T that a fit without a fold S keeps, where psi_i takes a fit to its output. With
``M = [D0^1/2 K D0^1/2 + mu0 I, D0^1/2 1; 1' D0^1/2, 0]^-1`` of ``heldout_kernel`` without the rows S,

    H0^-1 sum_T rho_i psi_i   has the outputs   D0^-1/2 Q D0^-1/2 rho,   Q = I - mu0 M,

and minus the last entry of ``mu0 M (D0^-1/2 rho, 0)``, over mu0, is its bias. So H0^-1 costs one product with M, which
is the same for all folds but for their own rows, and one matrix product serves them all.

Newton steps ``H x = -G`` of a fold, with its own curvatures D and ridge mu, are solved by conjugate gradients in the
space of functions, preconditioned by H0. Gradients ``G = sum_T c_i psi_i``, ``c_i = d1_i + mu a_i``, and everything
that conjugate gradients make of them are such sums; with ``p = H0^-1 sum_T pi_i psi_i`` and its outputs h,

    H p  =  sum_T (pi_i + (D_i - D0_i) h_i + (mu - mu0) p_i) psi_i,    p_i = (pi_i - D0_i h_i) / mu0,

so that no product with K is needed. Eigenvalues of ``H0^-1 H`` lie between the least and the largest of ``D_i / D0_i``,
``mu / mu0`` and 1. All is scaled by ``D0^1/2``: ``r = D0^-1/2 rho``, ``t = D0^1/2 h``. Outputs are made anew from
coefficients, by one product with K, before every Newton step.
"""

from __future__ import annotations

import numpy as np

from kernsel.numerics.runtime.blas import damped_cholesky, fill, inner, inner_products, inverse
from kernsel.numerics.runtime.jit import inline, pointer
from kernsel.numerics.smooth.convergence import CONVERGED, EXACT, ROUGH, SINGULAR, UNFINISHED
from kernsel.numerics.smooth.heldout import UPDATE
from kernsel.numerics.smooth.heldout_kernel import roots, scaled_inverse
from kernsel.numerics.smooth.objective import Direction, Objective, derivatives, inner_above, line_search
from kernsel.numerics.smooth.systems import add_rows, curved_rows

GROUP = 16
"""Folds that are fitted side by side: enough for a matrix product, and little memory where every row is a fold."""

MOST_STEPS = 20
"""Newton steps; folds that take more, as one in which one class is left, are fitted by themselves."""

MOST_GRADIENTS = 100
"""Steps of conjugate gradients for one Newton step, which goes downhill wherever they end."""


@pointer(UPDATE)
def refit_folds(K, V, objective, loss, fit, folds, order, tol, held):
    """Fit without each fold, from one Newton step of the fit on all rows; ``rho`` isn't filled.

    Folds are left ``UNFINISHED`` where the fit has rows without curvature, or they take too many steps.

    Parameters
    ----------
    K : (n, n) array
        Gram matrix.
    V : (n, c) array
        Of no use here.
    objective : Objective
    loss : pointer of type ``LOSS``
    fit : Fit
        To all rows.
    folds : Folds
    order : int
        Of no use here.
    tol : float
        A fit ends with a full step that promises less than this share of J.
    held : HeldOut
        Overwritten.
    """
    n, bias = fit.f.size, objective.bias
    rows = np.empty(n, np.int64)
    for fold in range(folds.left.size):
        held.status[fold] = UNFINISHED
    if curved_rows(fit.d2, rows) < n:
        return
    root, M = roots(fit.d2, rows, n), np.empty((n + bias, n + bias))
    ridge = 2.0 * folds.left[0] * objective.lam
    if scaled_inverse(K, bias, rows, root, ridge, M) != 0:
        for fold in range(folds.left.size):
            held.status[fold] = SINGULAR
        return
    for first in range(0, folds.left.size, GROUP):
        refit_group(K, M, ridge, root, objective, loss, fit, folds, first, min(first + GROUP, folds.left.size), tol, held)


@inline
def refit_group(K, M, ridge, root, objective, loss, fit, folds, first, last, tol, held):
    """Fit without each of the folds from ``first`` to below ``last``: see ``refit_folds``.

    M is the inverse for all rows, with the curvatures ``root ** 2`` and the given ridge.
    """
    (y, s, lam, parameters, bias), (starts, gone, bounds, left, _) = objective, folds
    n, g = y.size, last - first
    a, b, f, weights, d1 = np.empty((g, n)), np.zeros(g), np.empty((g, n)), np.empty((g, n)), np.empty((g, n))
    d2, promise, accuracy, loss_of, J = np.empty(n), np.ones(g), np.zeros(g), np.zeros(g), np.zeros(g)
    r, bend, shorter, running = np.empty((g, n)), np.empty((g, n)), np.empty(g), np.empty(g, np.bool_)
    t, p, change = np.empty((g, n)), np.empty((g, n)), np.empty(g)
    blocks = left_out_blocks(M, gone, bounds, first, last)
    for k in range(g):
        for i in range(n):
            weights[k, i] = s[i]
        for i in gone[bounds[first + k] : bounds[first + k + 1]]:
            weights[k, i] = 0.0
        running[k] = True
        shorter[k] = 2.0 * left[first + k] * lam / ridge - 1.0
    first_step(M, root, fit, bias, gone, bounds, first, blocks, a, b)
    for _ in range(MOST_STEPS):
        if fill_outputs(K, a, b, running, f) == 0:
            break
        for k in range(g):
            if not running[k]:
                continue
            N = left[first + k]
            loss_of[k] = derivatives(loss, parameters, y, weights[k], f[k], d1[k], d2)
            J[k] = loss_of[k] / N + lam * inner_above(a[k], f[k], b[k])
            running[k] = np.isfinite(J[k])
            accuracy[k] = max(min(promise[k] * promise[k], ROUGH), EXACT * EXACT)
            for i in range(n):
                kept = weights[k, i] > 0.0
                r[k, i] = -(d1[k, i] + 2.0 * N * lam * a[k, i]) / root[i] if kept else 0.0
                bend[k, i] = d2[i] / (root[i] * root[i]) - 1.0 if kept else 0.0
        directions(M, ridge, bias, gone, bounds, first, blocks, bend, shorter, accuracy, running, r, t, p, change)
        for k in range(g):
            if not running[k]:
                continue
            N = left[first + k]
            for i in range(n):
                p[k, i] = root[i] * (p[k, i] - t[k, i]) / ridge
                t[k, i] /= root[i]
            q1, q2 = inner_above(p[k], f[k], b[k]), inner(p[k], t[k])
            slope = inner(d1[k], t[k]) / N + 2.0 * lam * q1
            step, settled = 1.0, not slope < 0.0
            if slope < 0.0:
                own = Objective(y, weights[k], lam, parameters, bias)
                start = Direction(loss_of[k], J[k], slope, q1, q2)
                step = line_search(loss, own, N, f[k], t[k], start)
                promise[k] = -slope / J[k]
                settled = step == 1.0 and promise[k] <= tol
                for i in range(n):
                    a[k, i] += step * p[k, i]
                b[k] += step * change[k]
            if settled and np.isfinite(slope):
                place_fit(K, a[k], b[k], bias, starts[first + k], starts[first + k + 1], first + k, held)
                running[k] = False
            running[k] &= np.isfinite(slope)


@inline
def left_out_blocks(M, gone, bounds, first, last):
    """Return the inverses of the blocks of M of the rows that each fold leaves out, (m, widest), fold below fold."""
    widest, begin = 0, bounds[first]
    for fold in range(first, last):
        widest = max(widest, bounds[fold + 1] - bounds[fold])
    blocks = np.zeros((bounds[last] - begin, widest))
    for fold in range(first, last):
        lo, m = bounds[fold], bounds[fold + 1] - bounds[fold]
        block = np.empty((m, m))
        for i in range(m):
            for j in range(i + 1):
                block[i, j] = M[gone[lo + i], gone[lo + j]]
        if damped_cholesky(block) != 0:
            fill(block[0], np.nan)
        inverse(block)
        for i in range(m):
            for j in range(m):
                blocks[lo - begin + i, j] = block[i, j]
    return blocks


@inline
def drop_rows(M, places, block, u):
    """Turn ``u = M v``, with ``v = 0`` at some places, into the solution without these rows of M^-1.

    Block is the inverse of that of M at the places, (m, .).
    """
    m = places.size
    here, pulls = np.empty(m), np.empty(m)
    for i in range(m):
        here[i] = u[places[i]]
    for i in range(m):
        pulls[i] = -inner(block[i, :m], here)
    add_rows(M, places, m, pulls, u)
    for i in places:
        u[i] = 0.0


@inline
def first_step(M, root, fit, bias, gone, bounds, first, blocks, a, b):
    """Fill ``a (g, n)`` and ``b (g,)`` with where a Newton step from the fit on all rows leads to, at the ridge of M."""
    n, g = root.size, b.size
    B = np.zeros((g, M.shape[0]))
    old = fit.x[n] if bias else 0.0
    for k in range(g):
        for i in range(n):
            B[k, i] = root[i] * (fit.f[i] - old) - fit.d1[i] / root[i]
        for i in gone[bounds[first + k] : bounds[first + k + 1]]:
            B[k, i] = 0.0
    U = inner_products(B, M)
    for k in range(g):
        lo, hi = bounds[first + k], bounds[first + k + 1]
        drop_rows(M, gone[lo:hi], blocks[lo - bounds[first] : hi - bounds[first]], U[k])
        for i in range(n):
            a[k, i] = root[i] * U[k, i]
        if bias:
            b[k] = U[k, n]


@inline
def fill_outputs(K, a, b, running, f):
    """Fill rows of ``f (g, n)`` with ``K a + b`` for fits that are running; return how many are."""
    count, n = 0, K.shape[0]
    A = np.empty((b.size, n))
    for k in range(b.size):
        if running[k]:
            for i in range(n):
                A[count, i] = a[k, i]
            count += 1
    F = inner_products(A[:count], K)
    count = 0
    for k in range(b.size):
        if running[k]:
            for i in range(n):
                f[k, i] = F[count, i] + b[k]
            count += 1
    return count


@inline
def directions(M, ridge, bias, gone, bounds, first, blocks, bend, shorter, accuracy, running, r, t, p, change):
    """Solve the Newton systems of fits that are running by conjugate gradients: see the module.

    Parameters
    ----------
    M, ridge, blocks : (n + bias, n + bias), float, (m, .)
        The inverse for all rows, its ridge, and what ``left_out_blocks`` returns.
    bias, gone, bounds, first : int, (m,), (t + 1,), int
    bend : (g, n)
        ``D / D0 - 1``, 0 on rows that are left out.
    shorter : (g,)
        ``mu / mu0 - 1``.
    accuracy : (g,)
        The square of a residual ends at this share of itself, in the norm of the preconditioner.
    running : (g,) bool
    r : (g, n)
        Minus the gradients, scaled, 0 on rows that are left out; overwritten.
    t, p, change : (g, n), (g, n), (g,)
        Overwritten by the scaled outputs of the steps on the rows that are kept, without ridges ``H0`` of the steps,
        and their biases.
    """
    g, n = r.shape
    direction, image, shift = np.zeros((g, n)), np.zeros((g, n)), np.zeros(g)
    before, start, busy = np.ones(g), np.zeros(g), running.copy()
    B = np.zeros((g, M.shape[0]))
    for k in range(g):
        fill(t[k], 0.0)
        fill(p[k], 0.0)
        change[k] = 0.0
    for step in range(MOST_GRADIENTS):
        count = 0
        for k in range(g):
            if busy[k]:
                for i in range(n):
                    B[count, i] = r[k, i]
                count += 1
        if count == 0:
            return
        U = inner_products(B[:count], M)
        count = 0
        for k in range(g):
            if not busy[k]:
                continue
            u = U[count]
            count += 1
            lo, hi = bounds[first + k], bounds[first + k + 1]
            drop_rows(M, gone[lo:hi], blocks[lo - bounds[first] : hi - bounds[first]], u)
            now = 0.0
            for i in range(n):
                u[i] = r[k, i] - ridge * u[i]
                now += r[k, i] * u[i]
            if step == 0:
                start[k] = now
            if not now > accuracy[k] * start[k]:
                busy[k] = False
                continue
            again = now / before[k] if step > 0 else 0.0
            curvature = 0.0
            for i in range(n):
                direction[k, i] = r[k, i] + again * direction[k, i]
                image[k, i] = u[i] + again * image[k, i]
                u[i] = direction[k, i] + bend[k, i] * image[k, i] + shorter[k] * (direction[k, i] - image[k, i])
                curvature += image[k, i] * u[i]
            if bias:
                shift[k] = u[n] + again * shift[k]
            if not curvature > 0.0:
                busy[k] = False
                continue
            length = now / curvature
            for i in range(n):
                r[k, i] -= length * u[i]
                t[k, i] += length * image[k, i]
                p[k, i] += length * direction[k, i]
            change[k] += length * shift[k]
            before[k] = now


@inline
def place_fit(K, a, b, bias, lo, hi, fold, held):
    """Write a fit without a fold to where it is wanted."""
    for j in range(lo, hi):
        held.out[j] = inner(K[j], a) + b
    if held.x.size > 0:
        for i in range(a.size):
            held.x[fold, i] = a[i]
        if bias:
            held.x[fold, a.size] = b
    held.status[fold] = CONVERGED
