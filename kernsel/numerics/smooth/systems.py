"""Newton systems of the curved rows, in the coordinates of the Gram matrix and of features.

Rows with ``d2 > 0`` are curved, c; D is their curvature. In the coordinates of K the system of a step is
``D^1/2 K_cc D^1/2 + mu I``, in those of features ``Z' D Z + mu I``.
"""

from __future__ import annotations

import numpy as np

from kernsel.numerics.runtime.blas import TRIALS, add_products, cholesky, fill, inner, more_jitter, multiply, solve_rows
from kernsel.numerics.runtime.jit import inline
from kernsel.numerics.smooth.convergence import EXACT


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
def factorise(K, rows, root, ridge, R):
    """Fill ``R (m, m)`` with the Cholesky factor of ``D^1/2 K D^1/2 + ridge I`` on the first rows, ``root = D^1/2``.

    Where that fails a jitter is added, and more, as in ``blas.ridged_cholesky``. The system is made anew then: copying
    it takes longer. Returns 0, or -1 without a factor.
    """
    m, jitter = root.size, 0.0
    for _ in range(TRIALS):
        for i in range(m):
            k = K[rows[i]]
            for j in range(i):
                R[i, j] = root[i] * root[j] * k[rows[j]]
            R[i, i] = root[i] * root[i] * k[rows[i]] + ridge + jitter
        if cholesky(R) == 0:
            return 0
        mean = 0.0
        for i in range(m):
            mean += (root[i] * root[i] * K[rows[i], rows[i]] + ridge) / m
        jitter = more_jitter(jitter, mean)
    return -1


@inline
def keep_roots(rows, root, known):
    """Fill ``known (n,)`` with ``D^1/2`` on the first rows and 0 on others: by them ``compare`` knows a factor."""
    fill(known, 0.0)
    for i in range(root.size):
        known[rows[i]] = root[i]


@inline
def compare(rows, root, known, shorter, scale):
    """Bound the condition of a system with the factor of an earlier one for a preconditioner; infinity without any.

    With curvatures D today and D0 then, both on the same rows, and ridges mu and mu0, eigenvalues lie between the least
    and the largest ratio ``(mu / D) / (mu0 / D0)``, and 1.

    Parameters
    ----------
    rows, root : (n,), (m,)
        Curved rows, of which the first m count, and ``D^1/2`` on them.
    known : (n,)
        ``D^1/2`` of the earlier system, 0 on rows that had no curvature.
    shorter : float
        ``mu / mu0``.
    scale : (m,)
        Filled with the earlier ``D^1/2`` over today's.
    """
    i, least, most = 0, 1.0, 1.0
    for k in range(known.size):
        curved = i < root.size and rows[i] == k
        if curved != (known[k] > 0.0):
            return np.inf
        if curved:
            scale[i] = known[k] / root[i]
            least = min(least, shorter * scale[i] * scale[i])
            most = max(most, shorter * scale[i] * scale[i])
            i += 1
    return most / least


@inline
def gradient_steps(condition, accuracy):
    """Return how many steps of conjugate gradients bring the square of a residual to a share ``accuracy`` of itself.

    The residual falls by ``(sqrt(condition) - 1) / (sqrt(condition) + 1)`` a step.
    """
    root = np.sqrt(condition)
    fall = max((root - 1.0) / (root + 1.0), EXACT)
    return max(1.0, np.log(accuracy) / (2.0 * np.log(fall))) if fall < 1.0 else np.inf


@inline
def precondition(R, scale, r, z):
    """Fill ``z (m,)`` with what an earlier factor R makes of ``r (m,)``; scale is that of ``compare``."""
    for i in range(r.size):
        z[i] = scale[i] * r[i]
    solve_rows(R, z)
    for i in range(r.size):
        z[i] *= scale[i]


@inline
def solve_by_gradients(K, rows, root, mu, R, scale, total, bias, accuracy, limit, b):
    """Overwrite ``b (m,)`` by the solution t of ``(D^1/2 K D^1/2 + mu I) t + db r = b`` with ``r = D^1/2``.

    With a bias ``r' t = total``, else ``db = 0``. Conjugate gradients, preconditioned by the factor of an earlier
    system; with a bias they are projected to ``r' t = 0`` from a start that has the right total (Gould, Hribar &
    Nocedal 2001, Algorithm 6.2).

    Parameters
    ----------
    K : (n, n)
    rows, root : (n,), (m,)
        Curved rows, of which the first m count, and ``D^1/2`` on them.
    mu : float
    R, scale : (m, m), (m,)
        The earlier factor, and what ``compare`` says of it.
    total : float
    bias : int
    accuracy : float
        The square of the residual ends at this share of itself, in the norm of the preconditioner.
    limit : int
        Steps.
    b : (m,)

    Returns
    -------
    db : float
    status : int
        0, or -1 where that takes more steps than the limit.
    """
    n, m = K.shape[0], root.size
    x, z, p, u, product = np.zeros(m), np.empty(m), np.zeros(m), np.zeros(m), np.empty(m)
    scaled, outputs = np.empty(m), np.empty(n)
    db, along_u = 0.0, 1.0
    if bias:
        precondition(R, scale, root, u)
        along_u = inner(root, u)
        length = total / along_u
        multiply_system(K, rows, root, mu, u, scaled, outputs, product)
        for i in range(m):
            x[i] = length * u[i]
            b[i] -= length * product[i]
    before, first = 1.0, 0.0
    for step in range(limit + 1):
        precondition(R, scale, b, z)
        if bias:
            pull = inner(root, z) / along_u
            db += pull
            for i in range(m):
                b[i] -= pull * root[i]
                z[i] -= pull * u[i]
        now = inner(b, z)
        if step == 0:
            first = now
        if not now > accuracy * first:
            for i in range(m):
                b[i] = x[i]
            return db, 0 if np.isfinite(now) else -1
        for i in range(m):
            p[i] = z[i] + (now / before * p[i] if step > 0 else 0.0)
        multiply_system(K, rows, root, mu, p, scaled, outputs, product)
        length = now / inner(p, product)
        for i in range(m):
            x[i] += length * p[i]
            b[i] -= length * product[i]
        before = now
    return db, -1


@inline
def multiply_system(K, rows, root, mu, v, scaled, outputs, product):
    """Fill ``product (m,)`` with ``(D^1/2 K D^1/2 + mu I) v``; ``scaled (m,)`` and ``outputs (n,)`` are overwritten."""
    m = root.size
    for i in range(m):
        scaled[i] = root[i] * v[i]
    if m == outputs.size:
        multiply(K, scaled, outputs)
    else:
        fill(outputs, 0.0)
        add_rows(K, rows, m, scaled, outputs)
    for i in range(m):
        product[i] = mu * v[i] + root[i] * outputs[rows[i]]


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
