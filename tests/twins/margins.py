"""Twins of the criteria for support vector machines, row by row on dense features; see ``heldout``.

``fit`` is the fit on all rows, and a row is left out at the same ``2 N lam``: with C kept, as the theory has it.
"""

import numpy as np
import scipy.optimize

from twins import heldout


def outputs(loss, Z, y, s, lam, bias):
    """The weights, the outputs, and the dual coefficients ``a = -s V' / (2 N lam)``."""
    w = heldout.fit(loss, Z, y, s, lam, bias)
    return w, Z @ w, -s * loss(y, Z @ w)[1] / (2 * s.sum() * lam)


def left_out(loss, Z, y, s, lam, bias=0):
    """The output of each row by an exact refit without it."""
    found = []
    for i in range(y.size):
        kept = np.arange(y.size) != i
        w = heldout.fit(loss, Z[kept], y[kept], s[kept], lam * s.sum() / s[kept].sum(), bias)
        found.append(Z[i] @ w)
    return np.array(found)


def one_step(loss, Z, y, s, lam, bias=0):
    """The output of each row after one Newton step from the fit on all rows towards that without it."""
    w, f, _ = outputs(loss, Z, y, s, lam, bias)
    _, d1, d2 = loss(y, f)
    found = []
    for i in range(y.size):
        rest = np.where(np.arange(y.size) == i, 0.0, s)
        H = 2 * s.sum() * lam * np.diag(heldout.ridged(Z, bias)) + Z.T @ ((rest * d2)[:, None] * Z)
        found.append(Z[i] @ (w + np.linalg.solve(H, s[i] * d1[i] * Z[i])))
    return np.array(found)


def gacv(loss, Z, y, s, lam, bias=0):
    """``(1/N) sum s V + (1/N) [2 sum_{y f < -1} s y a K_ii + sum_{y f >= -1} s y a K_ii]``."""
    _, f, a = outputs(loss, Z, y, s, lam, bias)
    total = 0.0
    for i in range(y.size):
        K_ii = Z[i] @ (heldout.ridged(Z, bias) * Z[i])
        total += s[i] * (loss(y, f)[0][i] + (2 if y[i] * f[i] < -1 else 1) * y[i] * a[i] * K_ii)
    return total / s.sum()


def xi_alpha(loss, Z, y, s, lam, bias=0):
    """The share of rows with ``rho y a R^2 + xi >= 1``."""
    _, f, a = outputs(loss, Z, y, s, lam, bias)
    K = Z @ (heldout.ridged(Z, bias) * Z).T
    total = 0.0
    for i in range(y.size):
        bound = 2 * y[i] * a[i] * (K.max() - K.min()) if bias else y[i] * a[i] * K[i, i]
        total += s[i] * (bound + max(1 - y[i] * f[i], 0) >= 1)
    return total / s.sum()


def squared_radius(K):
    """The largest ``sum beta_i K_ii - beta' K beta`` over mixtures beta, by SciPy's SLSQP."""
    n = len(K)
    done = scipy.optimize.minimize(
        lambda beta: beta @ K @ beta - beta @ K.diagonal(),
        np.full(n, 1 / n),
        jac=lambda beta: 2 * K @ beta - K.diagonal(),
        bounds=[(0, 1)] * n,
        constraints={"type": "eq", "fun": lambda beta: beta.sum() - 1, "jac": np.ones_like},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return -done.fun


def radius_margin(loss, Z, y, s, lam, bias=0, squared=False):
    """``R^2 ||w||^2 / n``: with K + ridge for the squared hinge, else ``(R^2 + 1 / C) (||w||^2 + 2 C sum xi) / n``."""
    w, f, a = outputs(loss, Z, y, s, lam, bias)
    n, w2 = y.size, w @ (heldout.ridged(Z, bias) * w)
    K = Z @ (heldout.ridged(Z, bias) * Z).T
    if squared:
        ridge = s.sum() * lam / s
        return squared_radius(K + np.diag(ridge)) * (w2 + ridge @ a**2) / n
    slack = 2 * (s / (2 * s.sum() * lam)) @ loss(y, f)[0]
    return (squared_radius(K) + 2 * n * lam) * (w2 + slack) / n
