"""Kernels with a relevance for each feature: automatic relevance determination (ARD).

A relevance of 0 takes the feature out. Nothing but the points themselves is shared between two vectors of relevances:
the columns are scaled by their roots, those of relevance 0 left out, and the compiled tiles do the rest.
"""

from __future__ import annotations

import math
import numbers
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from kernsel.errors import OptionError
from kernsel.kernels.base import Array, Kernel, Statistics, Value
from kernsel.kernels.dot import Polynomial
from kernsel.kernels.radial import Gaussian
from kernsel.numerics import gram, relevance, stability
from kernsel.numerics.points import Points, as_points, columns, is_sparse, squared_norms


@dataclass(frozen=True)
class _Relevances(Kernel):
    """A compiled function of a statistic of the columns scaled by ``sqrt(theta)``."""

    statistic: ClassVar[str]
    sparse: ClassVar[bool] = True

    theta: tuple[float, ...] | None = None

    def _read(self, name: str, value: Any) -> Value:
        if name != "theta":
            return super()._read(name, value)
        listed = isinstance(value, Iterable) and not isinstance(value, str) and getattr(value, "ndim", 1) == 1
        values = tuple(value) if listed else ()
        if not values or not all(_is_relevance(each) for each in values):
            given = " ".join(repr(value).split())  # on one line
            raise OptionError(
                f"kernel '{self.name}': theta must be finite numbers of at least 0, one for each feature, such as "
                f"(0.5, 0.1, 0), not {given}"
            )
        return tuple(map(float, values))

    @abstractmethod
    def formula(self) -> gram.Formula:
        """The function of the statistic."""

    @property
    @abstractmethod
    def isotropic(self) -> Kernel:
        """The kernel that this one is where all relevances are equal, with that one, its ``gamma``, to be searched."""

    def from_isotropic(self, kernel: Any, d: int) -> Self:
        """Return the kernel of d equal relevances that equals an ``isotropic`` one with a value."""
        return self.with_theta((kernel.gamma,) * d)

    def with_theta(self, theta: Sequence[float]) -> Self:
        """Return the kernel with other relevances (d,), of at least 0."""
        return replace(self, theta=tuple(theta))

    @property
    def scales(self) -> tuple[float, ...]:
        return self.theta or ()

    def require_fixed(self) -> None:
        if self.theta is None:
            raise OptionError(
                f"kernel '{self.name}': theta has no value, and so many numbers aren't searched on a grid; learn them "
                "by kernsel.learn_relevances, which the command 'kernsel relevance' does, or give one for each feature"
            )
        super().require_fixed()

    def _scaled(self, X: ArrayLike) -> Points:
        """Return the relevant columns of X (n, d) times ``sqrt(theta)``; one column of zeros if none is."""
        self.require_fixed()
        rows, theta = as_points(X), np.array(self.theta)
        if rows.shape[1] != theta.size:
            raise OptionError(
                f"kernel '{self.name}': theta has {theta.size} relevances, and the rows have {rows.shape[1]} features "
                "(after encoding, without constant columns); give one for each of these"
            )
        used = np.flatnonzero(theta > 0)
        return columns(rows, used, np.sqrt(theta[used])) if used.size else np.zeros((rows.shape[0], 1))

    def evaluate(self, stats: Statistics) -> Array:
        Z = None if stats.Z is None else self._scaled(stats.Z)
        return Statistics(self._scaled(stats.X), Z).gram(self.statistic, self.formula())

    def scan(self, X: ArrayLike, weights: Array | None = None) -> stability.Scan:
        rows = self._scaled(X)
        if is_sparse(rows):
            return super().scan(X, weights)
        return stability.scan_points(self.statistic, rows, self.formula(), weights)


def _is_relevance(value: Any) -> bool:
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return number and 0 <= float(value) < math.inf


@dataclass(frozen=True)
class ARD(_Relevances):
    """``k(x, z) = exp(-sum_r theta_r (x_r - z_r)^2)``; with all theta equal it is the Gaussian kernel.

    The scaled-feature Gaussian of Chapelle et al. 2002, and equation (2) of Cawley & Talbot 2014 (FLKL).

    Parameters
    ----------
    theta : tuple of float or None
        The relevance of each feature, of at least 0, in inverse squared units of it: ``1 / (2 length_scale^2)`` of
        scikit-learn's anisotropic ``RBF``. Text has it as ``ard(theta=(0.5, 0.1, 0))``.
    """

    name: ClassVar[str] = "ard"
    statistic: ClassVar[str] = "sqdist"

    def formula(self) -> gram.Formula:
        return gram.exponential(1.0)

    @property
    def isotropic(self) -> Kernel:
        return Gaussian()

    def diag(self, X: ArrayLike) -> Array:
        return np.ones(self._scaled(X).shape[0])

    def theta_vjp(self, X: ArrayLike, W: Array, K: Array | None = None, Z: ArrayLike | None = None) -> Array:
        """Return ``sum_ij W_ij dk(x_i, z_j)/dtheta_r = -sum_ij W_ij K_ij (x_ir - z_jr)^2`` for each r, (d,).

        Parameters
        ----------
        X : (n, d) array
        W : (n, m) array
            The derivatives of anything by the entries of the kernel matrix.
        K : (n, m) array, optional
            The kernel matrix, if it is there already.
        Z : (m, d) array, optional
            The second points; X without.
        """
        rows = np.asarray(X, dtype=np.float64)
        others = None if Z is None else np.asarray(Z, dtype=np.float64)
        return -relevance.sums_of_squares(rows, W * (self(rows, others) if K is None else K), others)


@dataclass(frozen=True)
class ARDPolynomial(_Relevances):
    """``k(x, z) = (sum_r theta_r x_r z_r + coef0)^degree``; with all theta equal it is the polynomial kernel.

    Cawley & Talbot 2014 (FLKL), Section 4.

    Parameters
    ----------
    theta : tuple of float or None
        The relevance of each feature, of at least 0, in inverse squared units of it.
    degree : int or None
        At least 1.
    coef0 : float
        At least 0: below 0 the function is not positive semidefinite.
    """

    name: ClassVar[str] = "ard-polynomial"
    statistic: ClassVar[str] = "inner"
    positive: ClassVar[tuple[str, ...]] = ("degree",)
    integer: ClassVar[tuple[str, ...]] = ("degree",)

    degree: int | None = None
    coef0: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.isotropic  # which checks what the two have in common

    def formula(self) -> gram.Formula:
        assert self.degree is not None
        return gram.power(1.0, self.coef0, self.degree)

    @property
    def isotropic(self) -> Kernel:
        return Polynomial(self.degree, None, self.coef0)

    def from_isotropic(self, kernel: Any, d: int) -> Self:
        return replace(self, theta=(kernel.gamma,) * d, degree=kernel.degree)

    def diag(self, X: ArrayLike) -> Array:
        return gram.apply(self.formula(), squared_norms(self._scaled(X)))

    def theta_vjp(self, X: ArrayLike, W: Array, K: Array | None = None, Z: ArrayLike | None = None) -> Array:
        """Return ``sum_ij W_ij dk(x_i, z_j)/dtheta_r``, (d,), with ``dk/dtheta_r = degree (...)^(degree-1) x_ir z_jr``.

        Parameters
        ----------
        X : (n, d) array
        W : (n, m) array
            The derivatives of anything by the entries of the kernel matrix.
        K : (n, m) array, optional
            Of no use here: an even power has lost the sign that the power below needs.
        Z : (m, d) array, optional
            The second points; X without.
        """
        rows = np.asarray(X, dtype=np.float64)
        others = None if Z is None else np.asarray(Z, dtype=np.float64)
        self.require_fixed()
        assert self.degree is not None
        below = 1.0 if self.degree == 1 else replace(self, degree=self.degree - 1)(rows, others)
        return self.degree * relevance.sums_of_products(rows, W * below, others)
