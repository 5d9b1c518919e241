r"""Kernels that few landmarks stand for: the trace that they leave says how far their fit is from the whole kernel's.

With the Gram matrix K of n rows, what landmarks represent of it, ``0 <= L <= K``, the ridge ``rho = N lambda`` and the
trace ``t = tr(K - L)`` that is left, the fits ``f = K (K + rho)^-1 y`` and ``g = L (L + rho)^-1 y`` have::

    f - g = (K + rho)^-1 (K - L) (y - g),        so that        ||f - g|| <= (t / rho) ||y - g||

for no eigenvalue of ``(K + rho)^-1`` is above ``1 / rho``, nor one of ``K - L`` above its trace. Where t is a hundredth
of the ridge, the outputs of landmarks are those of the whole kernel to a hundredth of the residuals; they take
``n r^2`` operations in place of ``n^3 / 6``, and their model is small. With weights, K and L have the roots of these on
either side, which is at most the largest weight times the trace without them.
"""

from __future__ import annotations

import numpy as np

from kernsel.data import Dataset
from kernsel.kernels import Kernel
from kernsel.learning.start import subsample
from kernsel.numerics.dense import Cholesky
from kernsel.numerics.lowrank import independent
from kernsel.numerics.points import Points
from kernsel.representation.ranks import LowRank

NEAR = 0.01
"""Share of the ridge that landmarks may leave of the trace to stand for the whole kernel: outputs then differ by less
than a tenth of the standard error of a mean of a hundred residuals."""

LANDMARKS = 1000
"""At most: with more, a fit costs about what the whole kernel of the rows that memory holds a factor of does."""

ROWS_EACH = 10
"""Rows for each landmark, at least: with fewer the whole kernel is as fast."""

SAMPLE = 20_000
"""Rows that the trace is foretold by, at most."""

MARGIN = 1.25
"""Landmarks for each that the sample needs: rows outside of the sample, and another draw, leave somewhat more."""

BLOCK = 2000
"""Rows of which features are computed at once."""

ROUNDING = 10.0
"""Of rounding errors of a factor, so many are borne before a kernel counts as indefinite."""

FINITE = 1e-9
"""Share of the trace below which what is left is rounding."""


def count_needed(kernel: Kernel, dataset: Dataset, ridge: float, seed: int) -> int | None:
    """Return how many landmarks stand for a kernel, as a sample of the rows foretells; None where too many would.

    Parameters
    ----------
    ridge : float
        ``N lambda``.
    seed : int
        Of the landmarks and of the rows that are looked at.
    """
    some = subsample(dataset, SAMPLE, seed)
    most = min(LANDMARKS, dataset.n // ROWS_EACH, some.n)
    allowed = NEAR * ridge / _largest_weight(dataset) * some.n / dataset.n  # of the trace of the sample
    share = allowed / float(kernel.diag(some.X).sum())
    found = LowRank(most, min(share, 0.5)).factor(kernel, some.X, seed)
    if not found.residual <= allowed:
        return None
    return min(int(np.ceil(MARGIN * len(found.points))), most)


def share_left(kernel: Kernel, dataset: Dataset, landmarks: Points, ridge: float) -> float:
    """Return the trace that landmarks leave of the Gram matrix of all rows, as a share of the ridge.

    Infinite where the landmarks' own matrix is not positive semidefinite to rounding. Landmarks that others make
    superfluous are left out: a jitter would be of the size of what is measured where the ridge is small.

    Parameters
    ----------
    landmarks : (m, d) points
    """
    W, left = np.asarray(kernel(landmarks, landmarks)), 0.0
    rounding = len(W) * float(np.finfo(np.float64).eps) * float(np.diag(W).max(initial=0.0))
    kept, L = independent(W, rounding)
    factor = Cholesky(L)
    H = factor.half(W[kept])
    if not np.abs(W - H.T @ H).max(initial=0.0) <= ROUNDING * rounding:
        return np.inf
    for lo in range(0, dataset.n, BLOCK):
        X = dataset.X[lo : lo + BLOCK]
        H = factor.half(np.asarray(kernel(landmarks[kept], X)))
        left += float(np.maximum(kernel.diag(X) - np.einsum("ij,ij->j", H, H), 0.0).sum())
    return _largest_weight(dataset) * left / ridge


def is_finite(kernel: Kernel, X: Points, landmarks: int) -> bool:
    """Tell whether so few landmarks represent a kernel to rounding on rows X, such as that of a polynomial."""
    found = LowRank(min(landmarks, X.shape[0])).factor(kernel, X, 0)
    return bool(found.residual <= FINITE * float(kernel.diag(X).sum()))


def _largest_weight(dataset: Dataset) -> float:
    return 1.0 if dataset.weights is None else float(dataset.weights.max())
