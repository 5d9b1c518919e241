"""The Gram matrix itself."""

from __future__ import annotations

import numpy as np

from kernsel.errors import SelectionError
from kernsel.folds.partition import Partition
from kernsel.kernels import Kernel
from kernsel.numerics import lowrank
from kernsel.numerics.landmarks import uniform_landmarks
from kernsel.numerics.runtime.once import once
from kernsel.numerics.smooth.ball import squared_radius
from kernsel.numerics.smooth.span import spans_in_kernel
from kernsel.numerics.square.spectral import Spectrum
from kernsel.numerics.stability import Scan, scan_gram
from kernsel.representation.base import Held, OnRows
from kernsel.representation.embedding import GramEmbedding
from kernsel.types import Array


class Gram(OnRows, Held):
    """The Gram matrix K (n, n), in memory; solutions are coefficients of the kernel functions at all rows.

    Parameters
    ----------
    K : (n, n) array, optional
        The matrix, if it is there already.
    """

    def __init__(self, rows: Partition, kernel: Kernel, K: Array | None = None) -> None:
        super().__init__(rows, kernel)
        if K is not None:
            self.gram = K

    @once
    def gram(self) -> Array:
        """The Gram matrix (n, n)."""
        n, K = self.rows.n, np.asarray(self.kernel.evaluate(self.rows.statistics))
        if K.shape != (n, n) or K.dtype.kind not in "biuf":
            raise TypeError(f"evaluate returned {K.dtype} of shape {K.shape} for {n} rows")
        if not np.isfinite(K.sum()):
            raise SelectionError("the kernel is not finite at every pair of rows")
        return np.ascontiguousarray(K, dtype=np.float64)

    def describe(self) -> str:
        return f"full Gram matrix, n = {self.rows.n}"

    def squared_norms(self, x: Array) -> Array:
        return np.asarray(np.einsum("cqi,cqi->q", x, x @ self.gram))

    def matrix(self, bias: bool) -> Array:
        return self.gram

    @once
    def weighted(self) -> Array:
        """``S^1/2 K S^1/2``, (n, n)."""
        if self.rows.weights is None:
            return self.gram
        root = np.sqrt(self.rows.s)[:, None]
        return np.ascontiguousarray(root * self.gram * root.T)

    def _spectrum(self, free: Array | None) -> Spectrum:
        return Spectrum.of_gram(self.weighted, free)

    @once
    def stability(self) -> Scan:
        """Stability scan."""
        return scan_gram(self.gram, self.rows.weights)

    def embedding(self, who: str) -> GramEmbedding:
        return GramEmbedding(self.weighted)

    @property
    def squared_lengths(self) -> Array:
        return self.gram.diagonal()

    def spread(self) -> float:
        return float(np.ptp(self.gram))

    def spans(self, bias: bool, d1: Array, d2: Array, mu: float) -> tuple[Array, int]:
        return spans_in_kernel(self.gram, bias, d1, d2, mu)

    def squared_radius(self, ridge: Array, beta: Array) -> tuple[float, int]:
        return squared_radius(self.gram, True, ridge, beta)

    def nystrom(self, share: float) -> Array:
        """Return a Nystrom factor (n, c) of K from ``share * n`` landmarks drawn uniformly (FBIF18, Section 4)."""
        landmarks = uniform_landmarks(self.rows.n, max(1, round(share * self.rows.n)), self.rows.seed)
        C = self.gram[:, landmarks]
        return np.ascontiguousarray(lowrank.nystrom_factor(C, C[landmarks])[0])
