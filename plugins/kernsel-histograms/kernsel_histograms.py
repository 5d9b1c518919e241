"""Kernels for kernsel: of histograms, by the chi-squared distance and by what two of them have in common."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kernsel.errors import DataError
from kernsel.kernels import Kernel
from kernsel.numerics.runtime import jit

kernsel_protocol = 1


@jit.jit(jit.types.void(jit.given_2, jit.given_2, jit.b1, jit.i8, jit.i8, jit.f8_2), fastmath=jit.CONTRACT)
def fill(X, columns, distances, first, step, out):
    """Add chi-squared distances, or overlaps, to every ``step``-th row of out (n, m); columns (d, m) are those of Z."""
    for i in range(first, X.shape[0], step):
        for k in range(X.shape[1]):
            for j in range(columns.shape[1]):
                x, z = X[i, k], columns[k, j]
                far = (x - z) * (x - z) / (x + z) if x + z > 0.0 else 0.0
                out[i, j] += far if distances else min(x, z)


def table(X, Z, distances):
    if min(X.min(), Z.min()) < 0:
        raise DataError("histograms have no negative entries: give counts or shares, with --no-standardize")
    out, columns = np.zeros((len(X), len(Z))), np.ascontiguousarray(Z.T)
    jit.share(lambda first, step: fill(X, columns, distances, first, step, out), len(X))
    return out


@dataclass(frozen=True)
class ChiSquared(Kernel):
    """``k(x, z) = exp(-D / sigma)`` with the chi-squared distance ``D = sum_k (x_k - z_k)^2 / (x_k + z_k)``.

    It is for columns of at least 0, not standardised.

    Parameters
    ----------
    sigma : float or None
        Width, in units of the distance. scikit-learn's gamma of ``chi2`` is ``1 / sigma``.
    """

    name: ClassVar[str] = "chi-squared"
    width: ClassVar[str] = "sigma"
    positive: ClassVar[tuple[str, ...]] = ("sigma",)
    metric: ClassVar[str] = "chi2"

    sigma: float | None = None

    def evaluate(self, stats):
        self.require_fixed()
        return np.exp(stats.kept("chi-squared", lambda X, Z: table(X, Z, True)) / -self.sigma)

    def diag(self, X):
        self.require_fixed()
        return np.ones(len(X))

    def axes(self, X):
        if not self.free:
            return {}
        D = table(X[:1000], X[:1000], True)
        low, high = np.quantile(D[D > 0], [0.1, 0.9]) if (D > 0).any() else (1.0, 1.0)
        return {"sigma": np.geomspace(low / 8, 8 * high, 12)}

    def sklearn_parameters(self):
        return {"gamma": 1 / self.sigma}


@dataclass(frozen=True)
class Intersection(Kernel):
    """``k(x, z) = sum_k min(x_k, z_k)``: what two histograms of columns of at least 0 have in common."""

    name: ClassVar[str] = "intersection"

    def evaluate(self, stats):
        return stats.kept("intersection", lambda X, Z: table(X, Z, False)).copy()

    def diag(self, X):
        return np.asarray(X).sum(axis=1)
