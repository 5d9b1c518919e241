"""Leading eigenvalues of small symmetric matrices, for the ratio of the influence series."""

from __future__ import annotations

import numpy as np

from kernsel.numerics.runtime.blas import inner, times
from kernsel.numerics.runtime.jit import inline

POWER_STEPS, POWER_TOLERANCE = 100, 1e-4  # of power iterations
LANCZOS_STEPS = 8  # with the whole system, once the power iteration with the fold's block has converged


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
    for _ in range(30):
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
        if not value > 1e-150:
            break
        for i in range(v.size):
            v[i] = u[i] / value
        if step > 0 and abs(value - before) <= POWER_TOLERANCE * value:
            break
    return v
