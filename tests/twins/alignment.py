"""Twins of the criteria of the kernel alone: dense matrices and features, line by line, with sample weights s."""

import numpy as np


def inner(A, B, s):
    """``sum_ij s_i s_j A_ij B_ij``."""
    return s @ (A * B) @ s


def centred(K, s):
    """K after the weighted mean has been taken from all features."""
    H = np.eye(len(K)) - np.outer(np.ones(len(K)), s) / s.sum()
    return H @ K @ H.T


def alignment(K, y, s):
    """``<K, y y'> / (||K|| ||y y'||)``."""
    T = np.outer(y, y)
    return inner(K, T, s) / np.sqrt(inner(K, K, s) * inner(T, T, s))


def centred_alignment(K, y, s):
    """The same of both after centring."""
    K, T = centred(K, s), centred(np.outer(y, y), s)
    return inner(K, T, s) / np.sqrt(inner(K, K, s) * inner(T, T, s))


def mean(Z, s):
    return s @ Z / s.sum()


def fsm(Z, y, s):
    """The two standard deviations along the line through the means, divided by the distance of these."""
    means = {side: mean(Z[y == side], s[y == side]) for side in (1, -1)}
    between = means[1] - means[-1]
    deviations = 0.0
    for side in (1, -1):
        n, w = (y == side).sum(), s[y == side]
        along = (Z[y == side] - means[side]) @ between / np.linalg.norm(between)
        deviations += np.sqrt(w @ along**2 / (w.sum() * (n - 1) / n))
    return deviations / np.linalg.norm(between)


def separability(Z, labels, s):
    """Scatter between the classes' means over scatter within the classes."""
    between = within = 0.0
    for label in np.unique(labels):
        C, w = Z[labels == label], s[labels == label]
        between += w.sum() * ((mean(C, w) - mean(Z, s)) ** 2).sum()
        within += w @ ((C - mean(C, w)) ** 2).sum(axis=1)
    return between / within
