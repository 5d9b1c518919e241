"""Twins of kernel learning: one entry, one pair of rows and one fold at a time."""

import numpy as np


def tensor_vjp(kernel, X, W):
    """Sums of W times the derivatives of the Gram matrix, from an array of n x n x p: by complex steps of NumPy."""
    theta = np.array(kernel.theta, dtype=complex)
    slopes = np.empty((len(X), len(X), theta.size))
    for r in range(theta.size):
        moved = theta.copy()
        moved[r] += 1e-30j
        slopes[:, :, r] = slow_kernel(kernel, X, moved).imag / 1e-30
    return np.einsum("ij,ijr->r", W, slopes)


def slow_kernel(kernel, X, theta):
    """The Gram matrix for relevances of any kind of number."""
    theta = np.broadcast_to(theta, X.shape[1])
    if kernel.name == "ard-polynomial":
        return ((X[:, None, :] * X[None, :, :]) @ theta + kernel.coef0) ** kernel.degree
    differences = X[:, None, :] - X[None, :, :]
    if kernel.name == "ard-laplacian":
        return np.exp(-np.abs(differences) @ theta)
    return PROFILES[getattr(kernel, "profile", "gaussian")](differences**2 @ theta)


PROFILES = {
    "gaussian": lambda s: np.exp(-s),
    "exponential": lambda s: np.exp(-np.sqrt(s)),
    "matern32": lambda s: (1 + np.sqrt(3 * s)) * np.exp(-np.sqrt(3 * s)),
    "matern52": lambda s: (1 + np.sqrt(5 * s) + 5 * s / 3) * np.exp(-np.sqrt(5 * s)),
    "rational-quadratic": lambda s: 1 / (1 + s / 2),
}
"""Profiles by their squared distance, as they are printed."""


def first_level(K, Y, s, bias, lam):
    """The square loss on K by the bordered system as it is printed (FLKL, equation 3), and the objective as defined."""
    n = len(K)
    a, b = np.zeros((len(Y), n)), np.zeros(len(Y))
    values = []
    for c, y in enumerate(Y):
        system = np.zeros((n + 1, n + 1))
        system[:n, :n] = K + s.sum() * lam * np.diag(1 / s)
        system[:n, n] = system[n, :n] = 1
        solved = np.linalg.solve(system, np.append(y, 0)) if bias else np.linalg.solve(system[:n, :n], y)
        a[c], b[c] = solved[:n], solved[n] if bias else 0
        f = K @ a[c]
        values.append(s @ (y - f - b[c]) ** 2 / s.sum() + lam * a[c] @ K @ a[c])
    return a, b, np.mean(values)


def on_landmarks(C, W, Y, s, bias, lam):
    """The least of ``(1/N) sum_i s_i (y_i - C_i a - b)^2 + lam a' W a`` by stacked least squares, mean over targets."""
    N, m = s.sum(), len(W)
    values, U = np.linalg.eigh(W)
    root = np.sqrt(N * lam * np.maximum(values, 0))[:, None] * U.T
    left = np.block([[np.sqrt(s)[:, None] * C, np.sqrt(s)[:, None]], [root, np.zeros((m, 1))]])[:, : m + bias]
    found = []
    for y in Y:
        right = np.append(np.sqrt(s) * y, np.zeros(m))
        x = np.linalg.lstsq(left, right, rcond=None)[0]
        found.append(np.sum((left @ x - right) ** 2) / N)
    return np.mean(found)


def differences(function, theta, step=1e-6):
    """Derivatives of a function of relevances (p,) to both sides, relative to each."""
    slopes = np.empty(len(theta))
    for r in range(len(theta)):
        ends = [
            function(np.where(np.arange(len(theta)) == r, t, theta)) for t in theta[r] * np.array([1 - step, 1 + step])
        ]
        slopes[r] = (ends[1] - ends[0]) / (2 * step * theta[r])
    return slopes


def evidence(H, Y, bias):
    """The restricted negative log evidence of targets Y (k, n) with the covariance H (n, n), the mean over targets."""
    n = len(H)
    inverse, e, m = np.linalg.inv(H), np.ones(n), n - bias
    A = inverse - np.outer(inverse @ e, inverse @ e) / (e @ inverse @ e) if bias else inverse
    value = 0.5 * (m * np.mean([np.log(y @ A @ y / m) for y in Y]) + np.linalg.slogdet(H)[1])
    return value + (0.5 * np.log(e @ inverse @ e) if bias else 0.0)


def log_spread(v):
    """Half the sum of squared deviations of the logarithms of v."""
    return ((np.log(v) - np.log(v).mean()) ** 2).sum() / 2
