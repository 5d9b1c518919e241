"""Updates of the folds' held-out outputs in the coordinates of the Gram matrix: see ``heldout``.

Nothing but K is needed, no features and no decomposition of it, and all folds of one fit cost ``O(n^2 + |A|^3)``. With
scaled curved rows, ``D^1/2 K D^1/2``, each update reads off one inverse. A bias is treated as one more curved row, the
last one, that borders the matrix with ``D^1/2 1``.
"""

from __future__ import annotations

import numpy as np

from kernsel.numerics.lanczos import OTHERS, dominant_vector, radius_of, series_of, uneven
from kernsel.numerics.runtime.blas import (
    add_products,
    damped_solve,
    fill,
    inner,
    inverse,
    ridged_cholesky,
    solve_rows,
    sum_of,
    times,
)
from kernsel.numerics.runtime.jit import inline, pointer
from kernsel.numerics.smooth.convergence import ASTRAY, CONVERGED, SINGULAR
from kernsel.numerics.smooth.heldout import UPDATE, strays
from kernsel.numerics.smooth.objective import inner_above
from kernsel.numerics.smooth.systems import add_rows, curved_rows, factorise

UNSURE = 1e-3
"""An eigenvalue of a block is known to this share, by ``lanczos.POWER_TOLERANCE``."""


@inline
def places_within(rows, count, lo, hi):
    """Return where ``rows[:count]``, ascending, holds the rows from ``lo`` to below ``hi``."""
    first = 0
    while first < count and rows[first] < lo:
        first += 1
    last = first
    while last < count and rows[last] < hi:
        last += 1
    return first, last


@inline
def places_among(rows, count, some, places):
    """Fill ``places`` with where ``rows[:count]`` holds rows of ``some``, both ascending; return their number."""
    found, j = 0, 0
    for i in range(count):
        while j < some.size and some[j] < rows[i]:
            j += 1
        if j < some.size and some[j] == rows[i]:
            places[found] = i
            found += 1
    return found


@inline
def add_to_fold(K, rows, count, coefficients, lo, hi, out):
    """Add ``sum_i coefficients[i] K[rows[i], lo:hi]`` over ``i < count`` to ``out[lo:hi]``."""
    for i in range(count):
        k, c = rows[i], coefficients[i]
        if c != 0.0:
            for j in range(lo, hi):
                out[j] += c * K[k, j]


@inline
def scaled_inverse(K, bias, rows, root, ridge, M):
    """Fill ``M`` with ``(D^1/2 K D^1/2 + ridge I)^-1`` on the curved rows, bordered for a bias; return a status.

    ``[B r; r' 0]^-1 = [B^-1 - u u' / t, u / t; u' / t, -1 / t]`` with ``u = B^-1 r`` and ``t = r' u``.
    """
    m = root.size
    B = np.empty((m, m))
    if factorise(K, rows, root, ridge, B) != 0 or (bias and m == 0):
        return SINGULAR
    inverse(B)
    u, t = np.zeros(m), 0.0
    if bias:
        times(B, root, u)
        t = 1.0 / inner(root, u)
        M[m, m] = -t
    for i in range(m):
        for j in range(m):
            M[i, j] = B[i, j] - t * u[i] * u[j]
        if bias:
            M[i, m] = t * u[i]
            M[m, i] = t * u[i]
    return CONVERGED


@pointer(UPDATE)
def newton_step(K, V, objective, loss, fit, folds, order, trust, held):
    """One Newton step from the fit towards each fold's own fit, with ``mu' = 2 (N - N_S) lam``.

    Without the fold, straight rows get the coefficient ``-d1_i / mu'`` and the curved rows k that are kept
    ``(K_kk + mu' D^-1) a_k + b = f_k - d1_k / d2_k - (K a)_k`` of the straight ones, where with a bias all coefficients
    sum to 0. With the fold's curved rows g, that system is read off the inverse M for all curved rows:
    ``a_k = u_k - M_kg M_gg^-1 u_g`` with ``u = M [right-hand side of k; 0]``. Where the fit leaves out more rows than
    are scored, ``N_S``, g and the straight rows without coefficients are those of all these rows.

    If ``order`` is not 0, ``rho`` is read off M: see ``fill_ratios``.

    Its arguments are those of ``heldout.UPDATE``.
    """
    take_steps(K, objective, loss, fit, folds, order, trust, held)


@inline
def take_steps(K, objective, loss, fit, folds, order, trust, held):
    """Do what ``newton_step`` does; return the last inverse M, ``D^1/2`` of the curved rows, and the ridge of M.

    The ridge is 0 if there is no inverse.
    """
    (a, f, d1, d2), (starts, gone, bounds, left, _), (out, rho, status, ends, _, _) = fit, folds, held
    lam, bias, n = objective.lam, objective.bias, f.size
    rows, straight, coefficients = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
    places = np.empty(n, np.int64)
    count = curved_rows(d2, rows)
    root = roots(d2, rows, count)
    m = straight_rows(d1, d2, straight)
    pull = 0.0
    for i in range(m):
        coefficients[i] = -d1[straight[i]]
        pull -= coefficients[i]
    base, h, u, x = np.zeros(n), np.empty(n), np.empty(count + bias), np.empty(count + bias)
    old_b = a[n] if bias else 0.0
    norm = inner_above(a, f, old_b)
    add_rows(K, straight, m, coefficients, base)
    M, factorised_for, singular = np.empty((count + bias, count + bias)), -1.0, False
    since, largest = 0, 0.0
    for fold in range(left.size):
        lo, hi, away = starts[fold], starts[fold + 1], gone[bounds[fold] : bounds[fold + 1]]
        mu = 2.0 * left[fold] * lam
        if left[fold] != factorised_for:
            if order > 0 and fold > 0 and not singular:
                largest = fill_ratios(M, rows[:count], lam, folds, since, fold, largest, rho)
            singular = scaled_inverse(K, bias, rows, root, mu, M) != 0
            factorised_for, since = left[fold], fold
        status[fold] = SINGULAR
        if singular:
            continue
        for i in range(n):
            h[i] = base[i]
        kept_pull = pull
        for p in range(places_among(straight, m, away, places)):
            k, c = K[straight[places[p]]], coefficients[places[p]]
            kept_pull += c
            for j in range(n):
                h[j] -= c * k[j]
        for i in range(count):
            k = rows[i]
            u[i] = root[i] * (f[k] - d1[k] / d2[k] - h[k] / mu)
        lost = places_among(rows, count, away, places)
        for p in range(lost):
            u[places[p]] = 0.0
        b = 0.0
        if bias:
            u[count] = kept_pull / mu
            if lost == count:  # no curved row is left to say where the bias should be
                continue
        times(M, u, x)
        if lost > 0 and without_rows(M, places[:lost], x) != 0:
            continue
        if bias:
            b = x[count]
        for j in range(n):
            h[j] = h[j] / mu + b
        for i in range(count):
            x[i] *= root[i]
        for p in range(lost):
            x[places[p]] = 0.0
        add_rows(K, rows, count, x, h)
        if ends.size > 0:
            place_step(straight[:m], coefficients, mu, away, rows[:count], x, ends[fold])
        climb = mu * (inner_above(a, h, b) - norm)
        status[fold] = CONVERGED
        if strays(loss, objective, fit, h, away, climb, 0.5 * mu * norm, trust):
            status[fold] = ASTRAY
        for j in range(lo, hi):
            out[j] = h[j]
    if order > 0 and not singular:
        fill_ratios(M, rows[:count], lam, folds, since, left.size, largest, rho)
    return M, root, 0.0 if singular else 2.0 * factorised_for * lam


@inline
def place_step(straight, coefficients, mu, away, rows, x, end):
    """Fill ``end (n + bias,)`` with a step's coefficients: those of straight rows over mu, of curved ones ``x``, whose
    last entry is a bias if there is one."""
    fill(end, 0.0)
    for i in range(straight.size):
        end[straight[i]] = coefficients[i] / mu
    for i in away:
        end[i] = 0.0
    for i in range(rows.size):
        end[rows[i]] = x[i]
    if x.size > rows.size:
        end[end.size - 1] = x[rows.size]


@inline
def straight_rows(d1, d2, rows):
    """Fill ``rows`` with the rows that pull without curvature; return their number."""
    count = 0
    for i in range(d1.size):
        if not d2[i] > 0.0 and d1[i] != 0.0:
            rows[count] = i
            count += 1
    return count


@inline
def roots(d2, rows, count):
    """Return the square roots of the curvature on the first ``rows``."""
    root = np.empty(count)
    for i in range(count):
        root[i] = np.sqrt(d2[rows[i]])
    return root


@inline
def without_rows(M, places, x):
    """Turn ``x = M b``, with ``b = 0`` at some places, into the solution without these rows of M^-1."""
    m = places.size
    MC, c = np.empty((m, m)), np.empty(m)
    for i in range(m):
        c[i] = x[places[i]]
        for j in range(i + 1):
            MC[i, j] = M[places[i], places[j]]
    if damped_solve(MC, c) != 0:
        return SINGULAR
    for i in range(x.size):
        for j in range(m):
            x[i] -= M[i, places[j]] * c[j]
    return CONVERGED


@inline
def gradient_of_fold(K, f, b, d1, lam, weight, lo, hi, rows, out):
    """Fill ``out = 2 N_S lam (f - b) + K_{:,S} d1_S``: by how much the fold's loss pulls at every row."""
    for i in range(f.size):
        out[i] = 2.0 * weight * lam * (f[i] - b)
    for i in range(hi - lo):
        rows[i] = lo + i
    add_rows(K, rows, hi - lo, d1[lo:hi], out)


@pointer(UPDATE)
def influence(K, V, objective, loss, fit, folds, order, trust, held):
    """BIF of the given order, and ``rho`` of each fold.

    With ``M = (D^1/2 K D^1/2 + mu I)^-1`` on the curved rows and ``c = (N 1_S - N_S) / (N - N_S)`` the scaled terms of
    the series, ``e_k = D^1/2 E_k``, follow ``e_1 = (mu / mu') M D^1/2 kappa`` and ``e_{k+1} = (I - mu M)(c e_k)``; the
    coefficients change by ``D^1/2 (M (c (e_1 + ... + e_{r-1})) - e_1 / mu)``. The row of a bias has ``sum d1_S`` in
    place of kappa, and ``c = 0``; its part of that is what the bias changes by.

    Its arguments are those of ``heldout.UPDATE``.
    """
    (a, f, d1, d2), (starts, _, _, left, N), (out, rho, status, _, _, _) = fit, folds, held
    lam, bias, n = objective.lam, objective.bias, f.size
    mu = 2.0 * N * lam
    rows, fold_rows, kappa = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
    count = curved_rows(d2, rows)
    size = count + bias
    root = roots(d2, rows, count)
    M = np.empty((size, size))
    if scaled_inverse(K, bias, rows, root, mu, M) != 0:
        for fold in range(left.size):
            status[fold] = SINGULAR
        return
    c, e, x, z = np.zeros(size), np.empty(size), np.empty(size), np.empty(size)
    b = a[n] if bias else 0.0
    for fold in range(left.size):
        lo, hi = starts[fold], starts[fold + 1]
        gone, shorter = N - left[fold], 2.0 * left[fold] * lam
        first, last = places_within(rows, count, lo, hi)
        for i in range(count):
            c[i] = 1.0 if first <= i < last else -gone / left[fold]
        rho[fold] = ratio(M, mu, c, first, last)
        if order == 0:
            continue
        gradient_of_fold(K, f, b, d1, lam, gone, lo, hi, fold_rows, kappa)
        for i in range(count):
            e[i] = root[i] * kappa[rows[i]]
        if bias:
            e[count] = sum_of(d1[lo:hi])
        times(M, e, z)
        for i in range(size):
            e[i] = z[i] * (mu / shorter)
        sum_series((M, mu, c), e, order - 1, x)
        for i in range(size):
            e[i] = c[i] * x[i]
        times(M, e, x)
        for i in range(size):
            x[i] -= z[i] / shorter
        for i in range(count):
            x[i] *= root[i]
        for j in range(lo, hi):
            out[j] = f[j] + kappa[j] / shorter + (x[count] if bias else 0.0)
        add_to_fold(K, rows, count, x, lo, hi, out)


@inline
def ratio(M, mu, c, first, last):
    """Return the spectral radius of ``diag(c) H`` with ``H = I - mu M``, self-adjoint in the product of H.

    The largest eigenvalue of the fold's own block of H is above it by no more than ``N_S / (N - N_S)``. Power
    iteration on that small block gives the vector from which a few steps of Lanczos' with the whole of H are enough.
    """
    v = dominant_vector(block_of_fold(M, mu, first, last))
    x, Lx = np.empty(c.size), np.empty(c.size)
    for i in range(c.size):  # for where the other rows decide; a bias has no curvature of its own
        Lx[i] = OTHERS * uneven(i) / np.sqrt(c.size) if c[i] != 0.0 else 0.0
    for i in range(v.size):
        Lx[first + i] += v[i]
    times(M, Lx, x)
    for i in range(c.size):
        x[i] = Lx[i] - mu * x[i]
    return spectral_radius((M, mu, c), x, Lx)


@inline
def block_of_fold(M, mu, first, last):
    """Return the block of ``H = I - mu M`` of the rows from ``first`` to below ``last``."""
    m = last - first
    B = np.empty((m, m))
    for i in range(m):
        for j in range(m):
            B[i, j] = -mu * M[first + i, first + j]
        B[i, i] += 1.0
    return B


@inline
def lengthened(other, mu, shorter):
    """Return the ratio for the ridge mu, about, from that ``other`` one for a shorter ridge.

    An eigenvalue g of ``D^1/2 K D^1/2`` has the leverage ``h = g / (g + mu)``; with the shorter ridge it is
    ``h' = g / (g + mu')``, and ``h = mu' h' / (mu' h' + mu (1 - h'))``. For the ratio, which mixes eigenvalues, that is
    right to the second order in ``1 - mu' / mu``, the share of the fold.
    """
    return shorter * other / (shorter * other + mu * (1.0 - other)) if other < 1.0 else other


@inline
def fill_ratios(M, rows, lam, folds, since, until, largest, rho):
    """Fill ``rho[since:until]`` for folds whose ratio may be the largest, and 0 for others; return the largest.

    The ratio of a fold is the spectral radius of ``diag(c) H`` with c = 1 on its rows and less than 0 on others, which
    is at most the largest eigenvalue of its own block of H, or the weight of the fold beside what is left. Folds are
    looked at from the largest eigenvalue down as long as theirs may be larger.

    Parameters
    ----------
    M : (c + bias, c + bias) array
        The inverse for all curved rows, with the ridge of the first of these folds, from which theirs differ little.
    rows : (c,) array
        These rows, ascending.
    lam : float
    folds : Folds
    since, until : int
        The first of the folds, and the one after the last.
    largest : float
        The ratio of another fold.
    rho : (t,) array
    """
    count, N, ridge = rows.size, folds.N, 2.0 * folds.left[since] * lam
    bounds, signs = np.empty(until - since), np.zeros(M.shape[0])
    for k in range(bounds.size):
        fold = since + k
        first, last = places_within(rows, count, folds.starts[fold], folds.starts[fold + 1])
        bounds[k], rho[fold] = (N - folds.left[fold]) / folds.left[fold], 0.0
        if last > first:
            B = block_of_fold(M, ridge, first, last)
            v = dominant_vector(B)
            image = np.empty(v.size)
            times(B, v, image)
            bounds[k] = max(inner(v, image) * (1.0 + UNSURE), bounds[k])
    for _ in range(bounds.size):
        k = int(np.argmax(bounds))
        if not bounds[k] > largest:
            break
        bounds[k], fold = 0.0, since + k
        first, last = places_within(rows, count, folds.starts[fold], folds.starts[fold + 1])
        for i in range(count):
            signs[i] = 1.0 if first <= i < last else (folds.left[fold] - N) / folds.left[fold]
        other = ratio(M, ridge, signs, first, last)
        rho[fold] = lengthened(other, 2.0 * N * lam, ridge)
        largest = max(largest, other)
    return largest


@inline
def apply(data, x, Ex, image):
    """Apply the operator of ``lanczos`` in the coordinates of the curved rows: ``E = diag(c)``, ``L^-1 = I - mu M``."""
    M, mu, c = data
    for i in range(c.size):
        Ex[i] = c[i] * x[i]
    times(M, Ex, image)
    for i in range(c.size):
        image[i] = Ex[i] - mu * image[i]


spectral_radius, sum_series = radius_of(apply), series_of(apply)


@pointer(UPDATE)
def nystrom_influence(K, V, objective, loss, fit, folds, order, trust, held):
    """Nystrom BIF of first order (FBIF18): the fit on K, and ``K ~ V V'`` in the inverse only.

    ``f^{-S} = f + (kappa - V (mu I + V' D V)^-1 V' D kappa) / mu'`` with the curved rows in D: for the hinge this is
    FBIF18's formula with its sign and its mask corrected, for the square loss its Section 4.2. With a bias V has a last
    column of ones, without a ridge, and ``mu sum d1_S`` is taken off its entry of ``V' D kappa``.

    Its arguments are those of ``heldout.UPDATE``.
    """
    (a, f, d1, d2), (starts, _, _, left, N), (out, _, status, _, _, _) = fit, folds, held
    lam, bias = objective.lam, objective.bias
    n, c = V.shape
    mu = 2.0 * N * lam
    rows, kappa, q = np.empty(n, np.int64), np.empty(n), np.empty(c)
    count = curved_rows(d2, rows)
    scaled = np.empty((count, c))
    for i in range(count):
        for j in range(c):
            scaled[i, j] = np.sqrt(d2[rows[i]]) * V[rows[i], j]
    B, R = np.zeros((c, c)), np.empty((c, c))
    add_products(scaled, 1.0, B)
    singular = (bias == 1 and count == 0) or ridged_cholesky(B, mu, bias, R) != 0
    b = a[n] if bias else 0.0
    for fold in range(left.size):
        status[fold] = SINGULAR if singular else CONVERGED
        if singular:
            continue
        lo, hi = starts[fold], starts[fold + 1]
        gradient_of_fold(K, f, b, d1, lam, N - left[fold], lo, hi, rows, kappa)
        for k in range(c):
            q[k] = 0.0
        for i in range(n):
            if d2[i] > 0.0:
                for k in range(c):
                    q[k] += d2[i] * kappa[i] * V[i, k]
        if bias:
            q[c - 1] -= mu * sum_of(d1[lo:hi])
        solve_rows(R, q)
        shorter = 2.0 * left[fold] * lam
        for j in range(lo, hi):
            out[j] = f[j] + (kappa[j] - inner(V[j], q)) / shorter
