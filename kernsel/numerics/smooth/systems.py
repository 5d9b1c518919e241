"""Newton systems of the curved rows, in the coordinates of the Gram matrix and of features.

Rows with ``d2 > 0`` are curved, c; D is their curvature. In the coordinates of K the system of a step is
``D^1/2 K_cc D^1/2 + mu I``, in those of features ``Z' D Z + mu I``.
"""

from __future__ import annotations

import numpy as np
from numba.core import types

from kernsel.numerics.runtime.blas import add_products, inner, ridged_cholesky, solve_rows
from kernsel.numerics.runtime.jit import f8, f8_1, f8_2, i8, i8_1, inline, pointer
from kernsel.numerics.smooth.convergence import GRADIENT_STEPS, GRADIENT_TOLERANCE


@inline
def curved_rows(d2, rows):
    """Fill ``rows (n,)`` with the rows whose curvature ``d2 (n,)`` is above 0, ascending; return their number."""
    count = 0
    for i in range(d2.size):
        if d2[i] > 0.0:
            rows[count] = i
            count += 1
    return count


@inline
def changed_rows(da, rows, steps):
    """Fill ``rows (n,)`` and ``steps (n,)`` with places and values of the entries of ``da (n,)`` that aren't 0; return
    their number."""
    count = 0
    for i in range(da.size):
        if da[i] != 0.0:
            rows[count] = i
            steps[count] = da[i]
            count += 1
    return count


@inline
def add_rows(K, rows, count, coefficients, out):
    """Add ``sum_i coefficients[i] K[rows[i]]`` over ``i < count`` to ``out (n,)``, which may be shorter than rows of K.

    Four rows are added at a time: the sum is bound by memory.
    """
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
def left_over(K, rows, root):
    """Return the trace of ``D^1/2 (K - Z Z') D^1/2`` on the first ``rows``; Z (n, c) are the columns behind K.

    ``root (m,)`` is ``D^1/2`` on these m rows.
    """
    n = K.shape[0]
    total = 0.0
    for i in range(root.size):
        k = K[rows[i]]
        total += root[i] * root[i] * (k[rows[i]] - inner(k[n:], k[n:]))
    return total


SYSTEM = types.FunctionType(i8(f8_2, i8_1, f8_1, f8, f8_1))
"""``(K, rows, root, mu, b) -> 0, or -1 where b is not solved for``: see ``solve_by_gradients``."""


@pointer(SYSTEM)
def solve_by_none(K, rows, root, mu, b):
    """Solve nothing: every system is left to a factorisation. (Most fits need not compile conjugate gradients.)"""
    return -1


@pointer(SYSTEM)
def solve_by_gradients(K, rows, root, mu, b):
    """Overwrite ``b`` by ``(D^1/2 K D^1/2 + mu I)^-1 b`` on the first ``rows``; return 0, or -1 if that takes too long.

    Conjugate gradients, preconditioned by ``D^1/2 Z Z' D^1/2 + mu I`` with Z the columns behind K, which Woodbury's
    formula inverts.

    Parameters
    ----------
    K : (n, n + c)
    rows : (n,)
        The first m of them.
    root : (m,)
        ``D^1/2`` on these rows.
    mu : float
    b : (m,)
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


@inline
def update_products(Z, d2, weights, H):
    """Turn ``H = Z' diag(weights) Z`` into ``Z' diag(d2) Z`` by the rows that changed, or anew where those are many.

    Parameters
    ----------
    Z : (n, r)
    d2 : (n,)
    weights : (n,)
        Overwritten by d2.
    H : (r, r)
        Its lower triangle is read and written.

    Returns
    -------
    int
        The number of curved rows.
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
    """Turn the lower triangle of ``H = Z' diag(weights) Z`` into that of ``Z' diag(d2) Z``, and weights into d2.

    Rows whose weight grew are added as ``G' G`` with ``G = diag(d2 - weights)^1/2 Z``, the others taken away so.
    """
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
