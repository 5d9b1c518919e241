"""The series ``sum_k (L^-1 E)^k e`` of an influence function, and its ratio, the spectral radius of ``L^-1 E``.

L is positive definite and E symmetric, so that ``L^-1 E`` is self-adjoint in the product ``<x, z>_L = x' L z``, and its
spectral radius is that of the tridiagonal matrix of Lanczos' recurrence in this product (Golub & Van Loan, Matrix
Computations, Algorithm 10.1.1, for a pencil).

Both are made of one function, the operator, which each representation has one of:

``apply(data, x, Ex, image)``
    fills ``Ex (r,)`` with ``E x`` and ``image (r,)``, which may be x itself, with ``L^-1 E x``; ``data`` is a tuple
    that describes E and L.

====================================  =================================  ====================================
operator                              E                                  L
====================================  =================================  ====================================
``smooth.heldout_kernel.apply``       ``diag(c)``                        ``(I - mu M)^-1``, curved rows
``smooth.heldout_features.apply``     ``kept C' C - gone Z' D Z``        ``Z' D Z + mu I``, features
``square.influence.apply``            ``kept U_S' U_S - gone I``         ``I + N lam diag(1 / ev)``, spectrum
====================================  =================================  ====================================
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernsel.numerics.runtime.blas import fill, inner, times
from kernsel.numerics.runtime.jit import inline

POWER_STEPS, POWER_TOLERANCE = 100, 1e-4
"""Of power iterations, which only give a start: their value may be off by the tolerance, relatively."""

LANCZOS_STEPS = 8
"""From the start that a power iteration with the fold's block gives, the radius has its digits after fewer."""

OTHERS = 0.3
"""How much of the start lies on the rows outside the fold (a length; the fold's part has length 1): enough for a
radius that they decide, and too little to spoil one that the fold decides, which is the rule."""

SPREAD = 0.1
"""How much is added to all coordinates of the start where they are those of features, relative to their root mean
square."""

BISECTIONS = 30
"""Of the interval of the radius: it is right to ``2^-30`` of Gershgorin's bound."""

INVARIANT = 1e-7
"""A Krylov space ends where the next vector is this small beside the largest row of the tridiagonal matrix. Leaving it
out changes the radius by the square of that, relatively; rounding errors, at most the root of L's condition times the
unit roundoff, are smaller, and must not be taken for a vector: not even where the last row is as small as they are."""

VANISHED = 1e-150
"""A vector is 0 where its length, whose square must not underflow, is below this."""


@inline
def uneven(i):
    """Return entry i of the start of a power iteration: never near 0, but without a pattern.

    So it is orthogonal neither to an eigenvector that lives on a few rows nor to one whose entries sum to 0.
    """
    return 1.5 + np.sin(1.0 + i * i)


@inline
def tridiagonal_radius(alpha, beta):
    """Return the spectral radius of the symmetric matrix with diagonal ``alpha (k,)`` and ``beta (k - 1,)`` beside it.

    Bisection: all eigenvalues are above -x and below x when both LDL' factorisations have positive pivots.
    """
    low, high = 0.0, 0.0
    if alpha.size == 0:
        return 0.0
    for i in range(alpha.size):
        row = abs(alpha[i])
        row += abs(beta[i - 1]) if i else 0.0
        row += abs(beta[i]) if i < beta.size else 0.0
        high = max(high, row)
    for _ in range(BISECTIONS):
        x = 0.5 * (low + high)
        inside = True
        above, below = x - alpha[0], x + alpha[0]
        for i in range(alpha.size):
            if i:
                square = beta[i - 1] * beta[i - 1]
                above, below = x - alpha[i] - square / above, x + alpha[i] - square / below
            if not (above > 0.0 and below > 0.0):
                inside = False
                break
        if inside:
            high = x
        else:
            low = x
    return high


@inline
def dominant_vector(B):
    """Return the leading eigenvector of a symmetric positive semidefinite ``B (m, m)`` by power iteration."""
    v, u = np.empty(B.shape[0]), np.empty(B.shape[0])
    for i in range(v.size):
        v[i] = uneven(i)
    value = 0.0
    for step in range(POWER_STEPS):
        times(B, v, u)
        before = value
        value = np.sqrt(inner(u, u))
        if not value > VANISHED:
            break
        for i in range(v.size):
            v[i] = u[i] / value
        if step > 0 and abs(value - before) <= POWER_TOLERANCE * value:
            break
    return v


@inline
def add_unevenness(x):
    """Add to each coordinate of a start ``x (r,)`` some of the root mean square of all, unevenly; 1 to one of 0."""
    size = np.sqrt(inner(x, x) / max(x.size, 1))
    share = SPREAD * size if size > 0.0 else 1.0
    for i in range(x.size):
        x[i] += share * uneven(i)


def radius_of(apply: Any) -> Any:
    """Return the function ``(data, x, Lx) -> spectral radius`` of the operator ``apply``.

    (A compiled function that is an argument of another one could not be kept on disk.)
    """

    @inline
    def lanczos_radius(data, x, Lx):
        """Return the spectral radius of ``L^-1 E`` on the Krylov space of ``x (r,)``; ``Lx = L x``, both overwritten.

        With ``v_k`` orthonormal in the product of L, ``beta_k v_k = L^-1 E v_{k-1} - alpha_{k-1} v_{k-1} - beta_{k-1}
        v_{k-2}`` and ``alpha_k = v_k' E v_k``. The recurrence is also run for ``L v_k``, so that L is never applied.

        Parameters
        ----------
        data : tuple
            Describes E and L to the operator.
        x, Lx : (r,)
            A start, not orthogonal to the eigenvector that is looked for; 0 for an operator of no rows.
        """
        r = x.size
        alpha, beta = np.zeros(LANCZOS_STEPS), np.zeros(LANCZOS_STEPS + 1)
        now, now_L, before, before_L = np.zeros(r), np.zeros(r), np.zeros(r), np.zeros(r)
        k, least = 0, VANISHED
        while k < LANCZOS_STEPS:
            beta[k] = np.sqrt(max(inner(x, Lx), 0.0))
            if not beta[k] > least:
                break
            for i in range(r):
                before[i], before_L[i] = now[i], now_L[i]
                now[i], now_L[i] = x[i] / beta[k], Lx[i] / beta[k]
            apply(data, now, Lx, x)
            alpha[k] = inner(now, Lx)
            back = beta[k] if k > 0 else 0.0
            for i in range(r):
                x[i] -= alpha[k] * now[i] + back * before[i]
                Lx[i] -= alpha[k] * now_L[i] + back * before_L[i]
            least = max(least, INVARIANT * (abs(alpha[k]) + back))
            k += 1
        return tridiagonal_radius(alpha[:k], beta[1:k])

    return lanczos_radius


def series_of(apply: Any) -> Any:
    """Return the function ``(data, e, terms, total)`` that sums the series of the operator ``apply``."""

    @inline
    def sum_series(data, e, terms, total):
        """Fill ``total (r,)`` with ``e + L^-1 E e + ...``, so many terms; ``e (r,)`` is overwritten by the last one."""
        Ee = np.empty(e.size)
        fill(total, 0.0)
        for k in range(terms):
            if k > 0:
                apply(data, e, Ee, e)
            for i in range(e.size):
                total[i] += e[i]

    return sum_series
