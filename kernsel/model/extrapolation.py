"""How far the training data reach, in the distance ``d(x, z)^2 = k(x, x) + k(z, z) - 2 k(x, z)`` of the kernel."""

from __future__ import annotations

import numpy as np

from kernsel.kernels import Kernel
from kernsel.numerics.points import Points
from kernsel.types import Array, Indices

SHARE = 0.999
"""Training rows that lie within reach."""

ROWS = 10_000
"""From more rows the reach is estimated by so many of them, evenly spaced."""

BLOCK = 1024


def nearest(K: Array, diag: Array, others: Array) -> Array:
    """Return the distance (n,) of rows to the nearest of m others, from their kernel K (n, m) and k(x, x) of both."""
    squared = (diag[:, None] + others - 2.0 * K).min(axis=1)
    return np.asarray(np.sqrt(np.maximum(squared, 0.0)))  # rounding may leave it below 0


def reach(kernel: Kernel, X: Points, rows: Points, numbers: Indices | None) -> float | None:
    """Return the distance to the nearest other row of a model that a share ``SHARE`` of the training rows X is within.

    Parameters
    ----------
    X : (n, d) points
        The training rows.
    rows : (m, d) points
        The rows of the model.
    numbers : (m,) array or None
        Which training rows those are; None if they are landmarks, of which there are too few to matter.

    Returns
    -------
    float or None
        None where distances of new rows can't be known.
    """
    if kernel.known_rows_only:  # k(x, x) of new rows, and so their distance, isn't
        return None
    n = X.shape[0]
    sample = np.unique(np.linspace(0, n - 1, min(n, ROWS)).astype(np.int64))
    places = np.full(n, -1)
    if numbers is not None and len(numbers) > 1:
        places[numbers] = np.arange(len(numbers))
    diag, found = kernel.diag(rows), []
    for first in range(0, sample.size, BLOCK):
        chosen = sample[first : first + BLOCK]
        block = X[chosen]
        K = kernel(block, rows)
        own = places[chosen]
        K[np.flatnonzero(own >= 0), own[own >= 0]] = -np.inf
        found.append(nearest(K, kernel.diag(block), diag))
    distances = np.sort(np.concatenate(found))
    return float(distances[int(np.ceil(SHARE * distances.size)) - 1])
