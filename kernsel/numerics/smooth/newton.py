"""Damped Newton for smooth convex losses: every fit of the library that has no closed form.

The objective is J of ``objective``; a fold is left out by ``s_i = 0`` on its rows, and its held-out outputs are those
there. Many problems (outputs, folds, kernels) are solved side by side, each along its path of ``lam`` from the largest
down, so that a fit starts where its neighbour ended.

The step is guarded by a line search on the convex ``J``; undamped steps cycle. Where the loss is piecewise quadratic
(Huber hinge, square) a full step that leaves the set of curved rows as it was has reached the minimum exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.core import types

from kernsel.numerics.runtime.blas import inner, multiply, ridged_cholesky, solve_rows, sum_of
from kernsel.numerics.runtime.jit import (
    LOSS,
    Compiled,
    b1,
    f8,
    f8_1,
    f8_2,
    f8_3,
    i8,
    i8_1,
    jit,
    pointer,
    record,
)
from kernsel.numerics.runtime.threads import one_blas_thread, share
from kernsel.numerics.smooth.changed import add_bias, no_changes, solve_by_changes, unsolved
from kernsel.numerics.smooth.convergence import (
    CONVERGED,
    DECREMENT,
    EXACT,
    GRADIENT_COST,
    MAX_STEPS,
    NOT_FINITE,
    PULL,
    ROUGH,
    SINGULAR,
    UNFINISHED,
)
from kernsel.numerics.smooth.objective import (
    OBJECTIVE,
    STACK,
    Direction,
    Objective,
    derivatives,
    inner_above,
    line_search,
    lone_bias_step,
    same_pieces,
)
from kernsel.numerics.smooth.systems import (
    add_rows,
    changed_rows,
    compare,
    curved_rows,
    factorise,
    gradient_steps,
    keep_roots,
    solve_by_gradients,
    update_products,
)


class Factor(NamedTuple):
    """The last Cholesky factor on a path, which the next system starts from, and room for the next one.

    Parameters
    ----------
    R : (m, m) array
        The factor, of a system of all rows; or of features.
    root : (n,) array
        ``D^1/2`` of that system.
    ridge : (1,) array
        Its ridge; 0 for no factor yet.
    """

    R: np.ndarray
    root: np.ndarray
    ridge: np.ndarray


PROBLEM = types.FunctionType(i8(f8_2, OBJECTIVE, LOSS, f8, record(Factor, f8_2, f8_1, f8_1), f8_1, f8_1))
"""One fit: ``(K or Z, objective, loss, tol, factor, a or w, f) -> status``: see ``in_kernel`` and ``in_features``."""


@pointer(PROBLEM)
def in_kernel(K, objective, loss, tol, factor, a, f):
    """Minimise ``J`` in the coordinates of the Gram matrix by damped Newton steps; return a status.

    With the curved rows c (``d2 > 0``), all others o, and ``mu = 2 N lam``, the step to ``a + da`` solves
    ``a_o + da_o = -d1_o / mu`` and ``(K_cc + mu D^-1) da_c = -(d1_c + mu a_c) / d2_c - K_co da_o``, here scaled by
    ``D^1/2`` on both sides so that it stays well conditioned where the curvature varies.

    With a bias, ``f = K a_1..n + a_n+1``: its step ``db`` is added to the left side for c, and makes ``sum a = 0``.

    A system is factorised where it is far from the last one that was. Otherwise it is solved by conjugate gradients
    with that factor, to the square of what the step before promised: steps converge quadratically all the same. Where
    all rows are curved the factor is handed on to the next fit on the path, whose ridge is another one. Where few rows
    have changed, and no curvature, it is solved by that factor and the rows that changed: see ``changed``. That loses
    more to rounding than a factor of its own does, the more the smaller the ridge: where what it leaves at the end of a
    fit may be too much, the fit goes on without.

    Parameters
    ----------
    K : (n, n)
    objective : Objective
    loss : pointer of type ``LOSS``
    tol : float
        The fit ends with a full step that promises less than this share of J.
    factor : Factor
        Of the fit before, if it has a ridge; that of this fit afterwards.
    a : (n,) or (n + 1,)
        Coefficients, and a bias last: where to start, overwritten by the solution.
    f : (n,)
        The outputs of a, overwritten by those of the solution.
    """
    y, s, lam, parameters, bias = objective
    n = y.size
    N = sum_of(s)
    mu = 2.0 * N * lam
    d1, d2, da, df = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    rows, steps = np.empty(n, np.int64), np.empty(n)
    old_d2, intercepts = np.empty(n), np.empty(n)
    full, b, db, promise = False, 0.0, 0.0, 1.0
    R, known, ridge = factor.R, factor.root, factor.ridge[0]
    changes, few, changed = no_changes(n, rows, 0), True, False
    for _ in range(MAX_STEPS):
        if bias:
            b = a[n]
        total = derivatives(loss, parameters, y, s, f, d1, d2)
        J = total / N + lam * inner_above(a, f, b)
        if not np.isfinite(J):
            return NOT_FINITE
        if same_pieces(y, s, f, d1, d2, old_d2, intercepts) and full:
            if not changed or unsolved(d1, d2, a, mu) <= tol * J * N:
                return CONVERGED
            few = False
        pull, missing = 0.0, 0.0
        for i in range(n):
            df[i] = 0.0
            da[i] = 0.0 if d2[i] > 0.0 else -d1[i] / mu - a[i]
            pull += d1[i]
            missing -= a[i] + da[i]
        count = changed_rows(da, rows, steps)
        add_rows(K, rows, count, steps, df)
        count, indirect, changed = curved_rows(d2, rows), False, False
        if count:
            root, t = np.empty(count), np.empty(count)
            for i in range(count):
                k = rows[i]
                root[i] = np.sqrt(d2[k])
                t[i] = -(d1[k] + mu * a[k]) / root[i] - root[i] * df[k]
            accuracy, solved = min(max(promise * promise, EXACT * EXACT), ROUGH), -1
            if ridge > 0.0:
                scale, kept = np.empty(count), t.copy()
                limit = int(count * count / (GRADIENT_COST * (n + count)))
                if gradient_steps(compare(rows, root, known, mu / ridge, scale), accuracy) + bias <= limit:
                    db, solved = solve_by_gradients(
                        K, rows, root, mu, R, scale, missing, bias, accuracy, limit, kept
                    )  # fmt: skip
                if solved == 0:
                    t, indirect = kept, True
            if solved != 0 and few and ridge == mu and count < n:
                db, solved = solve_by_changes(K, R, changes, known, rows, root, mu, missing, bias, t)
                indirect = changed = solved == 0
            if solved != 0:
                if count == n:
                    R, known = factor.R, factor.root
                    factor.ridge[0] = 0.0
                elif R.shape[0] != count:
                    R, known = np.empty((count, count)), np.empty(n)
                if factorise(K, rows, root, mu, R) != 0:
                    return SINGULAR
                keep_roots(rows, root, known)
                changes = no_changes(n, rows, count)
                ridge = mu
                if count == n:
                    factor.ridge[0] = mu
                solve_rows(R, t)
                if bias:
                    u = root.copy()
                    solve_rows(R, u)
                    db = add_bias(root, missing, u, t)
            for i in range(count):
                steps[i] = root[i] * t[i]
                da[rows[i]] = steps[i]
            add_rows(K, rows, count, steps, df)
        q1, q2 = inner_above(da, f, b), inner(da, df)
        slope = inner(d1, df) / N + 2.0 * lam * q1
        if bias and count == 0:
            db = lone_bias_step(pull / N, slope, y, f)
            if db != 0.0:
                if abs(pull) <= PULL * N:
                    return CONVERGED
                slope, q1, q2 = 0.0, 0.0, 0.0
                for i in range(n):
                    da[i] = df[i] = 0.0
        for i in range(n):
            df[i] += db
        slope += db * pull / N
        if not np.isfinite(slope):
            return NOT_FINITE
        if slope >= 0.0 and indirect:  # the system wasn't solved well enough
            ridge, full = 0.0, False
            continue
        if slope >= 0.0:  # rounding is all that is left
            return CONVERGED
        step = line_search(loss, objective, N, f, df, Direction(total, J, slope, q1, q2))
        for i in range(n):
            a[i] += step * da[i]
            f[i] += step * df[i]
        if bias:
            a[n] += step * db
        promise = -slope / J if J > 0.0 else 0.0
        full = step == 1.0 and (count > 0 or bias == 0 or abs(pull) <= PULL * N)
        if full and -slope <= tol * J:
            if not changed:
                return CONVERGED
            few = False
    return UNFINISHED


@pointer(PROBLEM)
def in_features(Z, objective, loss, tol, factor, w, f):
    """Minimise ``J`` in the coordinates of features by damped Newton steps ``-(Z' D Z + mu I)^-1 (Z' d1 + mu w)``.

    With a bias the last column of Z are ones, and its weight isn't penalised. Of ``H = Z' diag(weights) Z`` only the
    rows whose curvature changed since the last step are added or taken away, and of ``pull = Z' d1`` those whose d1
    did. (From one ``lam`` to the next both are made anew: rounding errors would grow along the path.)

    Parameters
    ----------
    Z : (n, r)
    objective, loss, tol : as in ``in_kernel``
    factor : Factor
        Of no use here.
    w : (r,)
        Weights: where to start, overwritten by the solution.
    f : (n,)
        The outputs ``Z w``, overwritten by those of the solution.

    Returns
    -------
    int
        0, or a key of ``convergence.REASONS``.
    """
    y, s, lam, parameters, bias = objective
    n, r = Z.shape
    N = sum_of(s)
    mu = 2.0 * N * lam
    d1, d2, p = np.empty(n), np.empty(n), np.empty(r)
    old_d2, intercepts = np.empty(n), np.empty(n)
    H, weights = np.zeros((r, r)), np.zeros(n)
    pull, change, rows, old_d1 = np.zeros(r), np.empty(n), np.empty(n, np.int64), np.zeros(n)
    df, gradient, R = np.empty(n), np.empty(r), np.empty((r, r))
    ridged = r - bias
    full = False
    for _ in range(MAX_STEPS):
        total = derivatives(loss, parameters, y, s, f, d1, d2)
        J = total / N + lam * inner(w[:ridged], w)
        if not np.isfinite(J):
            return NOT_FINITE
        if same_pieces(y, s, f, d1, d2, old_d2, intercepts) and full:
            return CONVERGED
        curved = update_products(Z, d2, weights, H)
        for i in range(n):
            old_d1[i] = d1[i] - old_d1[i]
        add_rows(Z, rows, changed_rows(old_d1, rows, change), change, pull)
        for i in range(n):
            old_d1[i] = d1[i]
        for i in range(r):
            gradient[i] = pull[i] + (mu * w[i] if i < ridged else 0.0)
            p[i] = -gradient[i]
        flat = curved == 0
        if flat:
            for i in range(r):
                p[i] /= mu
        elif ridged_cholesky(H, mu, bias, R) != 0:
            return SINGULAR
        else:
            solve_rows(R, p)
        if flat and bias:
            slope = inner(gradient[:ridged], p) / N
            p[ridged] = lone_bias_step(gradient[ridged] / N, slope, y, f)
            if p[ridged] != 0.0:
                if abs(gradient[ridged]) <= PULL * N:
                    return CONVERGED
                for i in range(ridged):
                    p[i] = 0.0
        slope = inner(gradient, p) / N
        if not np.isfinite(slope):
            return NOT_FINITE
        if slope >= 0.0:
            return CONVERGED
        multiply(Z, p, df)
        q1, q2 = inner(w[:ridged], p), inner(p[:ridged], p)
        step = line_search(loss, objective, N, f, df, Direction(total, J, slope, q1, q2))
        for i in range(r):
            w[i] += step * p[i]
        for i in range(n):
            f[i] += step * df[i]
        full = step == 1.0 and (not flat or bias == 0 or abs(gradient[ridged]) <= PULL * N)
        if full and -slope <= tol * J:
            return CONVERGED
    return UNFINISHED


@jit((i8, i8, PROBLEM, f8_3, i8_1, STACK, LOSS, f8, b1, f8_3, f8_3, i8[:, ::1]))
def _paths(first, step, problem, G, which, stack, loss, tol, follow, x, f, status):
    factor = Factor(np.empty((G.shape[2], G.shape[2])), np.empty(f.shape[2]), np.zeros(1))
    for j in range(first, which.size, step):
        factor.ridge[0] = 0.0
        for k in range(stack.lam.size):
            if follow and k > 0:
                usable = status[j, k - 1] <= UNFINISHED
                for i in range(x.shape[2]):
                    x[j, k, i] = x[j, k - 1, i] if usable else 0.0
                for i in range(f.shape[2]):
                    f[j, k, i] = f[j, k - 1, i] if usable else 0.0
            objective = Objective(stack.y[j], stack.s[j], stack.lam[k], stack.parameters, stack.bias)
            status[j, k] = problem(G[which[j]], objective, loss, tol, factor, x[j, k], f[j, k])


def solve_paths(
    problem: Compiled,
    G: np.ndarray,
    bias: int,
    which: np.ndarray,
    Y: np.ndarray,
    S: np.ndarray,
    lams: np.ndarray,
    loss: Compiled,
    parameters: np.ndarray,
    follow: bool,
    x: np.ndarray,
    f: np.ndarray,
    tol: float = DECREMENT,
) -> np.ndarray:
    """Solve ``q`` problems side by side, each for all of ``lams``.

    Parameters
    ----------
    problem : pointer
        ``in_kernel``: ``G`` holds Gram matrices (p, n, n), ``x`` the coefficients, and the bias behind them;
        ``in_features``: ``G`` holds features (p, n, r), a bias' column of ones last, ``x`` the weights.
    G : (p, n, n) or (p, n, r); which : (q,)
        The matrices, and which one a problem uses.
    bias : int
        1 with an unpenalised bias, else 0.
    Y, S : (q, n)
        Targets and weights of each problem.
    lams : (L,)
        In descending order.
    loss, parameters : pointer, (p,)
        The loss and its parameters.
    follow : bool
        Start each fit where that of the next larger ``lam`` ended; otherwise at what ``x`` and ``f`` hold.
    x : (q, L, n + bias or r); f : (q, L, n)
        Overwritten by the solutions; on entry f are the outputs of x.
    tol : float
        A fit ends with a step that promises less than this share of J.

    Returns
    -------
    (q, L) int
        0, or a key of ``convergence.REASONS``.
    """
    status = np.zeros(x.shape[:2], np.int64)
    loop = _paths.code  # compiled here, not by several threads at once
    stack = Objective(Y, S, lams, parameters, int(bias))
    job = (problem.code, G, which, stack, loss.code, tol, follow, x, f, status)
    with one_blas_thread():
        share(lambda first, step: loop(first, step, *job), which.size)
    return status
