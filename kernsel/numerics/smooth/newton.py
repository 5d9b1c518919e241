"""Damped Newton for smooth convex losses: every fit of the library that has no closed form.

A problem is ``J = (1/N) sum_i s_i V(y_i, f_i + b) + lam ||f||^2`` with ``N = sum s`` and, if asked for, an unpenalised
bias b; a fold is left out by ``s_i = 0`` on its rows, and its held-out outputs are those there. Many problems (outputs,
folds, kernels) are solved side by side, each along its path of ``lam`` from the largest down, so that a fit starts
where its neighbour ended.

The step is guarded by a line search on the convex ``J``; undamped steps cycle. Where the loss is piecewise quadratic
(Huber hinge, square) a full step that leaves the set of curved rows as it was has reached the minimum exactly.
"""

from __future__ import annotations

import numpy as np
from numba.core import types

from kernsel.numerics.runtime.blas import add_products, damped_solve, inner, ridged_cholesky, solve_rows, sum_of
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
    inline,
    jit,
    one_blas_thread,
    pointer,
    share,
)

CONVERGED, UNFINISHED, NOT_FINITE, SINGULAR, ASTRAY = 0, 1, 2, 3, 4
REASONS = {
    UNFINISHED: "the fit did not converge",
    NOT_FINITE: "the fit met values that are not finite",
    SINGULAR: "the Newton system is singular to working precision",
    ASTRAY: "a Newton step of a fold ended where the loss is not as modelled",
}

MAX_STEPS = 200
DECREMENT = 1e-13  # relative to J: the last step of a quadratically convergent iteration squares what is left
PULL = 1e-11  # of all rows on the bias: where one class is left, the logistic loss pulls for ever, less and less
LEFT_OVER = 30.0  # times the ridge: as much of the trace may be left out of a preconditioner
GRADIENT_STEPS = 40  # of conjugate gradients: at 1000 rows as much work as a Cholesky factor
GRADIENT_TOLERANCE = 1e-24  # on the square of the residual, relative: a step is right to 1e-12
CURVED = 1e-12  # less curvature than this counts as none (the gradient stays exact), so that D^-1 is finite


@inline
def derivatives(loss, parameters, y, s, f, d1, d2):
    """Fill ``d1``, ``d2`` and return ``sum s V``."""
    total = 0.0
    for i in range(y.size):
        if s[i] > 0.0:
            v, g, h = loss(y[i], f[i], parameters)
            total += s[i] * v
            d1[i] = s[i] * g
            d2[i] = s[i] * h if h > CURVED else 0.0
        else:
            d1[i] = 0.0
            d2[i] = 0.0
    return total


@inline
def along(loss, parameters, y, s, f, df, step):
    """Return ``sum s V`` and its derivative in ``step`` at ``f + step df``."""
    total = 0.0
    slope = 0.0
    for i in range(y.size):
        if s[i] > 0.0:
            v, g, _ = loss(y[i], f[i] + step * df[i], parameters)
            total += s[i] * v
            slope += s[i] * g * df[i]
    return total, slope


@inline
def line_search(loss, parameters, y, s, f, df, N, lam, start, J, slope, q1, q2):
    """Return a step along ``df`` that lowers ``J``: 1 where that is good enough, else near the minimum along it.

    ``||f + step df||^2 = ||f||^2 + 2 step q1 + step^2 q2`` in the norm of the kernel; ``start`` is ``sum s V`` at f.
    """
    if -slope <= 1e-16 * abs(J):  # rounding errors are larger than what there is to gain
        return 1.0
    total, rise = along(loss, parameters, y, s, f, df, 1.0)
    change = (total - start) / N + lam * (2.0 * q1 + q2)
    end = rise / N + 2.0 * lam * (q1 + q2)
    if change <= 1e-4 * slope + 4e-16 * abs(J) and end <= -0.5 * slope:
        return 1.0
    # J is convex along the step and its derivative changes sign: bisect, guided by the chord of the derivative.
    low, high, at_low, at_high = 0.0, 1.0, slope, end
    if at_high <= 0.0:
        return 1.0
    step = 1.0
    for k in range(60):
        step = low + (high - low) * at_low / (at_low - at_high) if k % 3 else 0.5 * (low + high)
        _, rise = along(loss, parameters, y, s, f, df, step)
        here = rise / N + 2.0 * lam * (q1 + step * q2)
        if abs(here) <= -0.1 * slope:
            break
        if here > 0.0:
            high, at_high = step, here
        else:
            low, at_low = step, here
    return step


@inline
def add_rows(K, rows, count, coefficients, out):
    """Add ``sum_i coefficients[i] K[rows[i]]`` to ``out``, four rows at a time (the sum is bound by memory)."""
    n = out.size
    i = 0
    while i + 4 <= count:
        a0, a1, a2, a3 = coefficients[i], coefficients[i + 1], coefficients[i + 2], coefficients[i + 3]
        k0, k1, k2, k3 = K[rows[i]], K[rows[i + 1]], K[rows[i + 2]], K[rows[i + 3]]
        for j in range(n):
            out[j] += a0 * k0[j] + a1 * k1[j] + a2 * k2[j] + a3 * k3[j]
        i += 4
    while i < count:
        a0, k0 = coefficients[i], K[rows[i]]
        for j in range(n):
            out[j] += a0 * k0[j]
        i += 1


@inline
def scaled_block(K, rows, root, ridge):
    """Return the lower triangle of ``D^1/2 K D^1/2 + ridge I`` on the first ``rows``, with ``root = D^1/2``."""
    m = root.size
    B = np.empty((m, m))
    for i in range(m):
        k = K[rows[i]]
        for j in range(i):
            B[i, j] = root[i] * root[j] * k[rows[j]]
        B[i, i] = root[i] * root[i] * k[rows[i]] + ridge
    return B


@inline
def same_pieces(y, s, f, d1, d2, old_d2, intercepts):
    """Say whether every row is on the quadratic piece ``d1 = intercept + d2 f`` it was on, and note the pieces."""
    same = True
    for i in range(y.size):
        if s[i] > 0.0:
            intercept = d1[i] - d2[i] * f[i]
            same &= d2[i] == old_d2[i]
            same &= abs(intercept - intercepts[i]) <= 1e-12 * (abs(d1[i]) + d2[i] * abs(f[i]))
            intercepts[i] = intercept
        old_d2[i] = d2[i]
    return same


@inline
def curved_rows(d2, rows):
    """Fill ``rows`` with the rows that have curvature; return their number."""
    count = 0
    for i in range(d2.size):
        if d2[i] > 0.0:
            rows[count] = i
            count += 1
    return count


@inline
def changed_rows(da, rows, steps):
    """Fill ``rows`` and ``steps`` with the entries of ``da`` that aren't 0; return their number."""
    count = 0
    for i in range(da.size):
        if da[i] != 0.0:
            rows[count] = i
            steps[count] = da[i]
            count += 1
    return count


@inline
def left_over(K, rows, root):
    """Return the trace of ``D^1/2 (K - Z Z') D^1/2`` on the first ``rows``, with Z the columns behind K."""
    n = K.shape[0]
    total = 0.0
    for i in range(root.size):
        k = K[rows[i]]
        total += root[i] * root[i] * (k[rows[i]] - inner(k[n:], k[n:]))
    return total


@inline
def solve_by_gradients(K, rows, root, mu, b):
    """Overwrite ``b`` by ``(D^1/2 K D^1/2 + mu I)^-1 b`` on the first ``rows``; return 0, or -1 if that takes too long.

    Conjugate gradients, preconditioned by ``D^1/2 Z Z' D^1/2 + mu I`` with Z the columns behind K.
    """
    n, m = K.shape[0], root.size
    c = K.shape[1] - n
    Z, S, R, small = np.empty((m, c)), np.zeros((c, c)), np.empty((c, c)), np.empty(c)
    for i in range(m):
        for j in range(c):
            Z[i, j] = root[i] * K[rows[i], n + j]
    add_products(Z, 1.0, S)
    if ridged_cholesky(S, mu, np.int64(0), R) != 0:
        return -1
    x, z, p, scaled, product = np.zeros(m), np.empty(m), np.zeros(m), np.empty(m), np.empty(n)
    before, first = 1.0, 0.0
    for step in range(GRADIENT_STEPS):
        for j in range(c):
            small[j] = 0.0
        for i in range(m):
            for j in range(c):
                small[j] += b[i] * Z[i, j]
        solve_rows(R, small)
        for i in range(m):
            z[i] = (b[i] - inner(Z[i], small)) / mu
        now = inner(b, z)
        if step == 0:
            first = now
        if not now > GRADIENT_TOLERANCE * first:
            for i in range(m):
                b[i] = x[i]
            return 0 if np.isfinite(now) else -1
        for i in range(m):
            p[i] = z[i] + (now / before * p[i] if step > 0 else 0.0)
            scaled[i] = root[i] * p[i]
        for i in range(n):
            product[i] = 0.0
        add_rows(K, rows, m, scaled, product)
        for i in range(m):
            z[i] = mu * p[i] + root[i] * product[rows[i]]
        length = now / inner(p, z)
        for i in range(m):
            x[i] += length * p[i]
            b[i] -= length * z[i]
        before = now
    return -1


PROBLEM = types.FunctionType(i8(f8_2, i8, f8_1, f8_1, f8, f8, LOSS, f8_1, f8_1, f8_1))
"""One fit: ``(K or Z, bias, y, s, lam, tol, loss, parameters, a or w, f) -> status``; ``bias`` is 0 or 1, and the last
step promises less than ``tol`` of J."""


@pointer(PROBLEM)
def in_kernel(K, bias, y, s, lam, tol, loss, parameters, a, f):
    """Minimise ``J`` from the coefficients ``a`` with ``f = K a``, both overwritten. Returns a status.

    With the curved rows A (``d2 > 0``) and ``mu = 2 N lam`` the step to ``a + da`` solves, for all other rows,
    ``a_i + da_i = -d1_i / mu``, and for A ``(K_AA + mu D^-1) da_A = -(d1_A + mu a_A) / d2_A - K_AB da_B``, here scaled
    by ``D^1/2`` on both sides so that it stays well conditioned where the curvature varies.

    With a bias, ``f = K a_1..n + a_n+1``: its step ``db`` is added to the left side for A, and makes ``sum a = 0``.

    Columns behind K (n, n + c) are a factor Z of most of it, ``K ~ Z Z'``. Where what that leaves out is small beside
    the ridge, and most rows are curved, systems are solved by conjugate gradients.
    """
    n = y.size
    N = sum_of(s)
    mu = 2.0 * N * lam
    d1, d2, da, df = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    rows, steps = np.empty(n, np.int64), np.empty(n)
    old_d2, intercepts = np.empty(n), np.empty(n)
    full, b, db = False, 0.0, 0.0
    for _ in range(MAX_STEPS):
        if bias:
            b = a[n]
        total = derivatives(loss, parameters, y, s, f, d1, d2)
        J = total / N + lam * inner_above(a, f, b)
        if not np.isfinite(J):
            return NOT_FINITE
        if same_pieces(y, s, f, d1, d2, old_d2, intercepts) and full:
            return CONVERGED
        pull, missing = 0.0, 0.0
        for i in range(n):
            df[i] = 0.0
            da[i] = 0.0 if d2[i] > 0.0 else -d1[i] / mu - a[i]
            pull += d1[i]
            missing -= a[i] + da[i]
        count = changed_rows(da, rows, steps)
        add_rows(K, rows, count, steps, df)
        count = curved_rows(d2, rows)
        if count:
            root, t, u = np.empty(count), np.empty(count), np.zeros(count)
            for i in range(count):
                k = rows[i]
                root[i] = np.sqrt(d2[k])
                t[i] = -(d1[k] + mu * a[k]) / root[i] - root[i] * df[k]
            for i in range(count):
                u[i] = root[i]
            solved = False
            if K.shape[1] > n and 2 * count > n and left_over(K, rows, root) <= LEFT_OVER * mu:
                kept = t.copy()
                solved = solve_by_gradients(K, rows, root, mu, kept) == 0
                if solved and bias:
                    solved = solve_by_gradients(K, rows, root, mu, u) == 0
                if solved:
                    t = kept
            if not solved:
                B = scaled_block(K, rows, root, mu)
                if damped_solve(B, t) != 0:
                    return SINGULAR
                if bias:
                    for i in range(count):
                        u[i] = root[i]
                    solve_rows(B, u)
            if bias:
                db = (inner(root, t) - missing) / inner(root, u)
            for i in range(count):
                steps[i] = root[i] * (t[i] - db * u[i])
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
        if slope >= 0.0:  # rounding is all that is left
            return CONVERGED
        step = line_search(loss, parameters, y, s, f, df, N, lam, total, J, slope, q1, q2)
        for i in range(n):
            a[i] += step * da[i]
            f[i] += step * df[i]
        if bias:
            a[n] += step * db
        full = step == 1.0 and (count > 0 or bias == 0 or abs(pull) <= PULL * N)
        if full and -slope <= tol * J:
            return CONVERGED
    return UNFINISHED


@inline
def lone_bias_step(pull, slope, y, f):
    """Return the step of a bias where no row has curvature, which would say how far to go.

    The other coefficients are settled first, by a step with this ``slope``. Then the bias goes beyond every row, from
    where the line search finds its way back to a minimum.
    """
    if -slope > 0.01 * abs(pull):
        return 0.0
    reach = 1.0
    for i in range(f.size):
        reach = max(reach, abs(y[i]) + abs(f[i]))
    return -2.0 * reach if pull > 0.0 else 2.0 * reach if pull < 0.0 else 0.0


@inline
def inner_above(a, f, b):
    """Return ``sum_i a_i (f_i - b)`` over the rows of f."""
    total = 0.0
    for i in range(f.size):
        total += a[i] * (f[i] - b)
    return total


@pointer(PROBLEM)
def in_features(Z, bias, y, s, lam, tol, loss, parameters, w, f):
    """Minimise ``J`` from ``w`` with ``f = Z w``, both overwritten. Returns a status.

    With a bias the last column of Z are ones, and its weight isn't penalised. Of ``H = Z' diag(weights) Z`` only the
    rows whose curvature changed since the last step are added or taken away, and of ``pull = Z' d1`` those whose d1
    did. (From one ``lam`` to the next both are made anew: rounding errors would grow along the path.)
    """
    n, r = Z.shape
    N = sum_of(s)
    mu = 2.0 * N * lam
    d1, d2, p = np.empty(n), np.empty(n), np.empty(r)
    old_d2, intercepts = np.empty(n), np.empty(n)
    H, weights = np.zeros((r, r)), np.zeros(n)
    pull, change, rows, old_d1 = np.zeros(r), np.empty(n), np.empty(n, np.int64), np.zeros(n)
    gradient, R = np.empty(r), np.empty((r, r))
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
        df = np.dot(Z, p)
        q1, q2 = inner(w[:ridged], p), inner(p[:ridged], p)
        step = line_search(loss, parameters, y, s, f, df, N, lam, total, J, slope, q1, q2)
        for i in range(r):
            w[i] += step * p[i]
        for i in range(n):
            f[i] += step * df[i]
        full = step == 1.0 and (not flat or bias == 0 or abs(gradient[ridged]) <= PULL * N)
        if full and -slope <= tol * J:
            return CONVERGED
    return UNFINISHED


@inline
def update_products(Z, d2, weights, H):
    """Turn ``H = Z' diag(weights) Z`` into ``Z' diag(d2) Z`` by the rows that changed, or anew where those are many.

    Returns the number of curved rows.
    """
    n, r = Z.shape
    changed, curved = 0, 0
    for i in range(n):
        changed += d2[i] != weights[i]
        curved += d2[i] > 0.0
    if changed >= curved:
        for i in range(r):
            for j in range(i + 1):
                H[i, j] = 0.0
        for i in range(n):
            weights[i] = 0.0
    add_changes(Z, d2, weights, H)
    return curved


@inline
def add_changes(Z, d2, weights, H):
    """Turn ``H = Z' diag(weights) Z`` into ``Z' diag(d2) Z`` by the rows that changed, and weights into d2."""
    n, r = Z.shape
    for k in range(2):
        sign = 1.0 - 2.0 * k
        m = 0
        for i in range(n):
            m += sign * (d2[i] - weights[i]) > 0.0
        G = np.empty((m, r))
        m = 0
        for i in range(n):
            difference = sign * (d2[i] - weights[i])
            if difference > 0.0:
                root = np.sqrt(difference)
                for j in range(r):
                    G[m, j] = root * Z[i, j]
                m += 1
        add_products(G, sign, H)
    for i in range(n):
        weights[i] = d2[i]


@inline
def solve_path(problem, G, bias, y, s, lams, tol, loss, parameters, follow, x, f, status):
    """Solve one problem for all ``lams``."""
    for k in range(lams.size):
        if follow and k > 0:
            usable = status[k - 1] <= UNFINISHED
            for i in range(x.shape[1]):
                x[k, i] = x[k - 1, i] if usable else 0.0
            for i in range(f.shape[1]):
                f[k, i] = f[k - 1, i] if usable else 0.0
        status[k] = problem(G, bias, y, s, lams[k], tol, loss, parameters, x[k], f[k])


@jit((i8, i8, PROBLEM, f8_3, i8, i8_1, f8_2, f8_2, f8_1, f8, LOSS, f8_1, b1, f8_3, f8_3, i8[:, ::1]))
def _paths(first, step, problem, G, bias, which, Y, S, lams, tol, loss, parameters, follow, x, f, status):
    for j in range(first, which.size, step):
        solve_path(problem, G[which[j]], bias, Y[j], S[j], lams, tol, loss, parameters, follow, x[j], f[j], status[j])


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
        ``in_kernel``: ``G`` holds Gram matrices (p, n, n), or (p, n, n + c) with factors behind them, ``x`` the
        coefficients, and the bias behind them;
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
        0, or a key of ``REASONS``.
    """
    status = np.zeros(x.shape[:2], np.int64)
    loop = _paths.code  # compiled here, not by several threads at once
    job = (problem.code, G, bias, which, Y, S, lams, tol, loss.code, parameters, follow, x, f, status)
    with one_blas_thread():
        share(lambda first, step: loop(first, step, *job), which.size)
    return status


@jit((LOSS, f8_1, f8_2, f8_1, f8_3, f8_3, f8_3, f8_3))
def expand(loss, parameters, Y, s, f, v, d1, d2):
    """Fill the loss ``v (q, L, n)``, not weighted, and ``s`` times its derivatives ``d1, d2`` at ``f (q, L, n)``."""
    for c in range(f.shape[0]):
        for k in range(f.shape[1]):
            for i in range(f.shape[2]):
                value, g, h = loss(Y[c, i], f[c, k, i], parameters)
                v[c, k, i] = value
                d1[c, k, i] = s[i] * g
                d2[c, k, i] = s[i] * h if h > CURVED else 0.0
