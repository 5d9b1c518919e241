"""Slow twins of kernel learning: one entry, one pair of rows and one fold at a time."""

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
    return np.exp(-((X[:, None, :] - X[None, :, :]) ** 2) @ theta)
