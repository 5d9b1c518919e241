"""Kernels for kernsel: of histograms, by the chi-squared distance and by what two of them have in common."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernsel.errors import DataError
from kernsel.kernels import Kernel, Statistics
from kernsel.numerics.runtime import jit

kernsel_protocol = 1
Array = NDArray[np.float64]
TILE = 128  # entries of a row that stay in the cache while they are summed


@jit.jit(jit.types.void(jit.given_2, jit.given_2, jit.b1, jit.i8, jit.i8, jit.i8, jit.f8_2), fastmath=jit.CONTRACT)
def fill(X: Array, columns: Array, distances: bool, half: int, first: int, step: int, out: Array) -> None:
    """Add distances or overlaps to each ``step``-th row of out (n, m), of X and columns.T; half 1: upper tiles."""
    for i in range(first, X.shape[0], step):
        for low in range(i // TILE * TILE * half, columns.shape[1], TILE):
            for k in range(X.shape[1]):
                row, column, x = out[i, low : low + TILE], columns[k, low : low + TILE], X[i, k]
                for j in range(row.size):
                    row[j] += (x - column[j]) ** 2 / max(x + column[j], 1e-300) if distances else min(x, column[j])


def table(X: Array, Z: Array, distances: bool) -> Array:
    if min(X.min(), Z.min()) < 0:
        raise DataError("histograms have no negative entries: give counts or shares, with --no-standardize")
    out, columns = np.zeros((len(X), len(Z))), np.ascontiguousarray(Z.T)
    jit.share(lambda first, step: fill(X, columns, distances, int(X is Z), first, step, out), len(X))
    for low in range(0, len(X) if X is Z else 0, TILE):
        out[low:, low : low + TILE] = out[low : low + TILE, low:].T
    return out


@dataclass(frozen=True)
class ChiSquared(Kernel):
    """``k(x, z) = exp(-D / sigma)`` with ``D = sum_k (x_k - z_k)^2 / (x_k + z_k)``, of columns not standardised.

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

    def evaluate(self, stats: Statistics) -> Array:
        return np.exp(stats.kept("chi-squared", lambda X, Z: table(X, Z, True)) / -self.fixed)

    @property
    def fixed(self) -> float:
        """The width; OptionError while it is free."""
        self.require_fixed()
        return self.sigma or 0.0

    def diag(self, X: ArrayLike) -> Array:
        self.require_fixed()
        return np.ones(len(np.asarray(X)))

    def axes(self, X: ArrayLike) -> dict[str, Array]:
        if not self.free:
            return {}
        some = np.asarray(X)[:1000]
        D = table(some, some, True)
        low, high = np.quantile(D[D > 0], [0.1, 0.9]) if (D > 0).any() else (1.0, 1.0)
        return {"sigma": np.geomspace(low / 8, 8 * high, 12)}

    def sklearn_parameters(self) -> dict[str, float]:
        return {"gamma": 1 / self.fixed}


@dataclass(frozen=True)
class Intersection(Kernel):
    """``k(x, z) = sum_k min(x_k, z_k)``: what two histograms of columns of at least 0 have in common."""

    name: ClassVar[str] = "intersection"

    def evaluate(self, stats: Statistics) -> Array:
        return stats.kept("intersection", lambda X, Z: table(X, Z, False)).copy()

    def diag(self, X: ArrayLike) -> Array:
        sums: Array = np.asarray(X, dtype=np.float64).sum(axis=1)
        return sums
