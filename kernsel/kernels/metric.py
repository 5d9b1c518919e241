"""A kernel with a metric that turns axes: distances along directions of its own, each with a weight.

With ``L (d, rank)`` distances are ``|L'(x - z)|``, those of the metric ``M = L L'``. On the rows ``L'x`` the kernel is
``ard`` with all relevances 1, whose compiled tiles do the work.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from kernsel.errors import OptionError
from kernsel.kernels.ard import ARD
from kernsel.kernels.base import Kernel
from kernsel.kernels.statistics import Statistics
from kernsel.numerics import stability
from kernsel.numerics.points import as_points
from kernsel.protocols import Value
from kernsel.types import Array


@dataclass(frozen=True)
class Metric(Kernel):
    """``k(x, z) = phi(r)`` with ``r^2 = (x - z)' L L' (x - z)``, and the profiles phi of ``ard``.

    With L diagonal it is ``ard``, of relevances ``L_rr^2``. A metric that is learnt, by average gradients:
    Radhakrishnan, Beaglehole, Pandit & Belkin 2024.

    Parameters
    ----------
    L : tuple of float or None
        The d x rank entries of L, one row for each feature after another, in inverse units of the features.
    rank : int or None
        Columns of L: directions that count.
    profile : str
        gaussian: ``exp(-r^2)``; exponential: ``exp(-r)``; matern32: ``(1 + u) exp(-u)``, u = sqrt(3) r; matern52:
        ``(1 + u + u^2/3) exp(-u)``, u = sqrt(5) r; rational-quadratic: ``1 / (1 + r^2 / 2)``.

    Notes
    -----
    Cost: O(d n rank) to turn the rows, then that of ``ard`` on ``rank`` features.

    Needs: L and rank, which aren't searched on a grid: kernel ``auto`` learns them where that helps, for 2 to 100
    features with at least 5 rows for each.

    Against: It has d x rank numbers, which over-fit on few rows; a relevance for each feature is easier to read.

    Examples
    --------
    ::

        kernsel example diabetes diabetes.csv
        kernsel select diabetes.csv --kernel "metric(L=(0, 0, 0.5, 0.4, 0, 0, 0, 0, 0.5, 0), rank=1)" --folds 5
    """

    name: ClassVar[str] = "metric"
    positive: ClassVar[tuple[str, ...]] = ("rank",)
    integer: ClassVar[tuple[str, ...]] = ("rank",)
    words: ClassVar[Mapping[str, tuple[str, ...]]] = ARD.words

    L: tuple[float, ...] | None = None
    rank: int | None = None
    profile: str = "gaussian"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.L is not None and self.rank is not None and len(self.L) % self.rank:
            raise OptionError(
                f"kernel 'metric': L has {len(self.L)} entries, which are no rows of rank {self.rank}: give one row of "
                "so many entries for each feature"
            )

    def _read(self, name: str, value: object) -> Value:
        if name != "L":
            return super()._read(name, value)
        wanted = ", the rows of a d x rank array one after another, such as (0.5, 0.1, -0.2, 0)"
        return self._read_numbers(name, value, -math.inf, wanted)

    @classmethod
    def of(cls, L: ArrayLike, profile: str = "gaussian") -> Self:
        """Return the kernel of an array L (d, rank)."""
        array = np.asarray(L, np.float64)
        if array.ndim != 2 or not array.size:
            raise OptionError(f"kernel 'metric': L must be an array of d x rank numbers, not of shape {array.shape}")
        return cls(tuple(array.ravel().tolist()), array.shape[1], profile)

    @property
    def parameters(self) -> dict[str, Any]:
        """L and its rank, if they have values, and the profile, if it isn't gaussian."""
        return {name: value for name, value in super().parameters.items() if (name, value) != ("profile", "gaussian")}

    @property
    def array(self) -> Array:
        """L, (d, rank)."""
        self.require_fixed()
        return np.array(self.L).reshape(-1, self.rank or 1)

    @property
    def relevances(self) -> tuple[float, ...]:
        """What a change of each feature alone counts: the diagonal of ``L L'``, (d,)."""
        return tuple((self.array**2).sum(axis=1).tolist())

    def times(self, factor: float) -> Self:
        """Return the kernel with the metric ``L L'`` times a factor."""
        return replace(self, L=tuple((math.sqrt(factor) * self.array).ravel().tolist()))

    @property
    def smoothness(self) -> float:  # type: ignore[override]  # a class attribute elsewhere, here it is the profile's
        """That of the kernel with one width."""
        return ARD(profile=self.profile).smoothness

    @property
    def scales(self) -> tuple[float, ...]:
        if self.L is None or self.rank is None:
            return ()
        values = np.linalg.eigvalsh(self.array.T @ self.array)
        return tuple(values[values > 0].tolist())

    def require_fixed(self) -> None:
        if self.free:
            raise OptionError(
                f"kernel 'metric': {', '.join(self.free)} has no value, and isn't searched on a grid; kernel auto "
                "learns a metric where it helps, or give L and rank"
            )

    @property
    def alone(self) -> ARD:
        """The kernel as a function of ``L'x``."""
        return ARD((1.0,) * (self.rank or 1), self.profile)

    def turned(self, X: ArrayLike) -> Array:
        """Return ``L'x`` of each row of X (n, d): (n, rank)."""
        L, rows = self.array, as_points(X)
        if rows.shape[1] != len(L):
            raise OptionError(
                f"kernel 'metric': L has rows for {len(L)} features, and the rows have {rows.shape[1]} features (after "
                "encoding, without constant columns); give one row for each of these"
            )
        return np.ascontiguousarray(rows @ L)

    def evaluate(self, stats: Statistics) -> Array:
        return self.alone(self.turned(stats.X), None if stats.Z is None else self.turned(stats.Z))

    def diag(self, X: ArrayLike) -> Array:
        return np.ones(self.turned(X).shape[0])

    def scan(self, X: ArrayLike, weights: Array | None = None) -> stability.Scan:
        return self.alone.scan(self.turned(X), weights)

    def function_gradients(self, X: ArrayLike, a: Array, Z: ArrayLike | None = None, K: Array | None = None) -> Array:
        """Return the gradients of ``f = sum_j a_j k(., z_j)`` at each row of X (n, d): (n, d).

        With ``V_ij = a_j phi'_ij``, phi' the derivative by ``r^2``, and ``u = L'x``, they are ``2 L sum_j V_ij (u_i -
        u_j)``: one product of matrices. At a point of its own a rough kernel counts as flat.

        Parameters
        ----------
        X : (n, d) array
        a : (m,) array
        Z : (m, d) array, optional
            X without.
        K : (n, m) array, optional
            The kernel matrix, if it is there already.
        """
        _, _, U, others = self._centred(X, Z)
        V = self.alone.slopes(U, None if Z is None else others, K)
        V *= a
        return np.asarray(2.0 * (V.sum(axis=1)[:, None] * U - V @ others) @ self.array.T)

    def metric_vjp(self, X: ArrayLike, W: Array, K: Array | None = None, Z: ArrayLike | None = None) -> Array:
        """Return ``sum_ij W_ij dk(x_i, z_j)/dL``, (d, rank).

        With ``V_ij = W_ij phi'_ij`` it is ``2 sum_ij V_ij (x_i - z_j)(u_i - u_j)'``, u = L'x: two products of matrices.
        W (n, m) and, if it is there already, K (n, m) are of the rows of X (n, d) and Z (m, d), or X again.
        """
        rows, points, U, others = self._centred(X, Z)
        V = self.alone.slopes(U, None if Z is None else others, K)
        V *= W
        of_rows = rows.T @ (V.sum(axis=1)[:, None] * U - V @ others)
        of_points = points.T @ (V.sum(axis=0)[:, None] * others - V.T @ U)
        return np.asarray(2.0 * (of_rows + of_points))

    def _centred(self, X: ArrayLike, Z: ArrayLike | None) -> tuple[Array, Array, Array, Array]:
        """Return x, z, L'x and L'z, with digits kept where the mean of X is large: differences stay."""
        rows = np.asarray(as_points(X))
        centre = rows.mean(axis=0)
        rows, points = rows - centre, None if Z is None else np.asarray(as_points(Z)) - centre
        U = self.turned(rows)
        return (rows, rows, U, U) if points is None else (rows, points, U, self.turned(points))
