"""Twins of multiple kernel learning: each objective by its definition, minimised by SciPy alone."""

import numpy as np
import scipy.optimize

from twins import heldout


def best_value(G, y, lam, p=1.0):
    """The least ``lam y'(K + n lam I)^-1 y`` over ``mu >= 0`` of p-norm at most 1, and its weights."""
    n, m = len(y), len(G)

    def value(mu):
        a = np.linalg.solve(np.tensordot(mu, G, 1) + n * lam * np.eye(n), y)
        return lam * y @ a, -lam * np.einsum("i,mij,j->m", a, G, a)

    inside = {
        "type": "ineq",
        "fun": lambda mu: 1 - (mu**p).sum(),
        "jac": lambda mu: -p * np.maximum(mu, 1e-12) ** (p - 1),
    }
    found = scipy.optimize.minimize(
        value, np.full(m, m ** (-1 / p)), jac=True, method="SLSQP", bounds=[(0, None)] * m, constraints=[inside],
        options={"ftol": 1e-13, "maxiter": 1000},
    )  # fmt: skip
    return found.fun, found.x


def stability(K):
    """``max_i |K - K^i|_2`` by eigenvalues."""
    sizes = []
    for i in range(len(K)):
        zeroed = K.copy()
        zeroed[i] = zeroed[:, i] = 0.0
        sizes.append(np.abs(np.linalg.eigvalsh(K - zeroed)).max())
    return max(sizes)


def k_ks(K, Y, lam, starts, eta, bias=0):
    """The mean squared residual of refits without each fold, and ``eta / n`` times the stability."""
    held = starts[-1]
    residuals = (Y - heldout.refits_square(K, Y, lam, starts, bias=bias))[..., :held]
    return (residuals**2).mean() + eta / len(K) * stability(K)


def alignment(K, Y):
    """``<K_c, T_c> / (|K_c| |T_c|)`` with ``T = Y'Y``."""
    H = np.eye(len(K)) - 1 / len(K)
    C, T = H @ K @ H, H @ Y.T @ Y @ H
    return np.vdot(C, T) / (np.linalg.norm(C) * np.linalg.norm(T))


def nearest_points(K, y, share):
    """The minimum of ``(1 - share) g'YKYg + share |g|^2`` over ``g >= 0`` of sum 1 in each class."""
    H = (1 - share) * np.outer(y, y) * K + share * np.eye(len(y))
    start = np.where(y > 0, 1 / (y > 0).sum(), 1 / (y < 0).sum())
    sums = [
        {"type": "eq", "fun": lambda g, c=c: g[c].sum() - 1, "jac": lambda g, c=c: c.astype(float)}
        for c in (y > 0, y < 0)
    ]
    found = scipy.optimize.minimize(
        lambda g: (g @ H @ g, 2 * H @ g), start, jac=True, method="SLSQP", bounds=[(0, None)] * len(y),
        constraints=sums, options={"ftol": 1e-14, "maxiter": 1000},
    )  # fmt: skip
    return found.x
