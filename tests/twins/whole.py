"""Twins of the whole kernel: dense systems in float64, one fold at a time."""

import numpy as np


def bordered(K, Y, s, lam, bias):
    """Coefficients (n, k) and biases (k,) of the square loss: the bordered system of the rows with a weight."""
    used = s > 0
    n, k, ridge = int(used.sum()), Y.shape[1], s.sum() * lam
    H = np.zeros((n + bias, n + bias))
    H[:n, :n] = K[np.ix_(used, used)] + ridge * np.diag(1 / s[used])
    H[n:, :n] = H[:n, n:] = 0.0
    if bias:
        H[n, :n] = H[:n, n] = 1.0
    x = np.linalg.solve(H, np.vstack([Y[used], np.zeros((int(bias), k))]))
    a = np.zeros(Y.shape)
    a[used] = x[:n]
    return a, x[n] if bias else np.zeros(k)


def held_out(K, Y, s, lam, folds, bias):
    """Outputs (n, k) at each fold of the fit to the other rows."""
    out = np.zeros(Y.shape)
    for lo, hi in folds:
        T = np.delete(np.arange(len(K)), np.arange(lo, hi))
        a, b = bordered(K[np.ix_(T, T)], Y[T], s[T], lam, bias)
        out[lo:hi] = K[lo:hi, T] @ a + b
    return out
