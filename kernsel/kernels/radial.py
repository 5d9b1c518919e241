"""Kernels of a distance: Gaussian, Laplacian, exponential, Matern and rational quadratic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernsel.errors import OptionError
from kernsel.kernels.pairwise import Compiled
from kernsel.kernels.statistics import Statistics, width_axis
from kernsel.numerics import gram
from kernsel.numerics.operator import gaussian_operator
from kernsel.types import Array

_LEAST = 1e-300  # relevances whose reciprocals are finite


@dataclass(frozen=True)
class _OfGamma(Compiled):
    """A kernel ``exp(-gamma s)`` of the statistic s, whose width is ``1 / (factor gamma)``."""

    _factor: ClassVar[float]

    @classmethod
    def from_gamma(cls, gamma: float) -> Self:
        """Return ``exp(-gamma s)``."""
        if not (gamma > 0 and math.isfinite(gamma)):
            raise OptionError(f"kernel '{cls.name}': gamma must be a finite number greater than 0, not {gamma!r}")
        return cls(**{cls.positive[0]: 1 / (cls._factor * gamma)})

    @property
    def gamma(self) -> float | None:
        """``1 / (factor width)``, or None if the width is free."""
        return None if self.free else 1 / (self._factor * getattr(self, self.positive[0]))

    def formula(self) -> gram.Formula:
        assert self.gamma is not None
        return gram.exponential(self.gamma)

    @property
    def scales(self) -> tuple[float, ...]:
        return () if self.gamma is None else (self.gamma,)

    def axes(self, X: ArrayLike) -> dict[str, NDArray[Any]]:
        return {name: width_axis(X, self.statistic) for name in self.free}

    def conversions(self) -> dict[str, float]:
        return {} if self.gamma is None else {"gamma": self.gamma}

    def sklearn_parameters(self) -> dict[str, float]:
        """The gamma of scikit-learn's kernel."""
        return self.conversions()


@dataclass(frozen=True)
class Gaussian(_OfGamma):
    """``k(x, z) = exp(-|x - z|^2 / (2 tau))``.

    Parameters
    ----------
    tau : float or None
        Squared width, in squared units of the data. scikit-learn's gamma is ``1 / (2 tau)``.

    Notes
    -----
    Cost: O(d n^2) for distances, which all widths share, and one exponential for each pair of rows.

    Against: Its functions are smooth, and one width serves all features: for rough targets ``exponential``, and where
    few features matter ``ard``, often predict better.

    Examples
    --------
    ::

        kernsel example diabetes diabetes.csv
        kernsel select diabetes.csv --kernel gaussian --folds 5
    """

    name: ClassVar[str] = "gaussian"
    statistic: ClassVar[str] = "sqdist"
    width: ClassVar[str | None] = "tau"
    positive: ClassVar[tuple[str, ...]] = ("tau",)
    metric: ClassVar[str] = "rbf"
    _factor: ClassVar[float] = 2.0
    differentiable: ClassVar[tuple[str, ...]] = ("tau",)

    tau: float | None = None

    @property
    def theta(self) -> tuple[float, ...] | None:
        """The relevance that all features share, ``1 / (2 tau)``, or None if tau is free: ``ard`` has one for each."""
        return self.scales or None

    @property
    def isotropic(self) -> Self:
        """The kernel with its one relevance to be searched."""
        return replace(self, tau=None)

    def from_isotropic(self, kernel: Self, d: int) -> Self:
        """Return the kernel that an ``isotropic`` one is for d features: itself."""
        return kernel

    def with_theta(self, theta: Sequence[float] | Array) -> Self:
        """Return the kernel with another relevance (1,); of 0 it is as wide as can be."""
        return replace(self, tau=1 / (2 * max(float(theta[0]), _LEAST)))

    def theta_vjp(self, X: ArrayLike, W: Array, K: Array | None = None, Z: ArrayLike | None = None) -> Array:
        """Return ``sum_ij W_ij dk(x_i, z_j)/dtheta = -sum_ij W_ij K_ij |x_i - z_j|^2``, (1,).

        W (n, m) and, if it is there already, K (n, m) are of the rows of X (n, d) and Z (m, d), or X again.
        """
        points = Statistics(X, Z)
        weights = W * (self.evaluate(points) if K is None else K)
        return np.array([-np.vdot(weights, points.sqdist)])

    def log_slopes(self, slopes: Array) -> dict[str, float]:
        """Return the derivative by ``log tau``: theta is in inverse proportion to tau."""
        return {"tau": -float(np.dot(slopes, self.theta or ()))}

    @property
    def anisotropic(self) -> str | None:
        """The Gaussian kernel with a relevance for each feature, as text."""
        return "ard(profile=gaussian)" if self.free else None

    def operator_eigenvalues(self, variances: Array, count: int) -> Array:
        """Return the ``count`` largest eigenvalues of the integral operator, descending.

        Parameters
        ----------
        variances : (d,) array
            Of the features, which are taken as independent and normal.
        """
        self.require_fixed()
        assert self.tau is not None
        return gaussian_operator(variances, self.tau, count)


@dataclass(frozen=True)
class Laplacian(_OfGamma):
    """``k(x, z) = exp(-sum_k |x_k - z_k| / sigma)``.

    Parameters
    ----------
    sigma : float or None
        Width, in units of the data. scikit-learn's gamma is ``1 / sigma``.

    Notes
    -----
    Cost: O(d n^2) for sums of absolute differences, which are no product of matrices and take longer than squared
    distances; all widths share them.

    Against: It follows the axes: with features turned it is another kernel. Its functions are rough, and a smooth
    target needs more rows with it.

    Examples
    --------
    ::

        kernsel example diabetes diabetes.csv
        kernsel select diabetes.csv --kernel laplacian --folds 5
    """

    name: ClassVar[str] = "laplacian"
    smoothness: ClassVar[float] = 0.5
    statistic: ClassVar[str] = "l1"
    width: ClassVar[str | None] = "sigma"
    positive: ClassVar[tuple[str, ...]] = ("sigma",)
    metric: ClassVar[str] = "laplacian"
    _factor: ClassVar[float] = 1.0

    sigma: float | None = None

    @property
    def anisotropic(self) -> str | None:
        """The Laplacian kernel with a relevance for each feature, as text."""
        return "ard-laplacian" if self.free else None


@dataclass(frozen=True)
class _OfLength(Compiled):
    """A kernel of ``r / ell``, with the Euclidean distance r.

    The Matern kernels of half-integer smoothness among them have u = sqrt(2 nu) r / ell (Rasmussen & Williams 2006, eq.
    4.17).
    """

    statistic: ClassVar[str] = "sqdist"
    width: ClassVar[str | None] = "ell"
    positive: ClassVar[tuple[str, ...]] = ("ell",)
    in_ard: ClassVar[str]
    """Its profile in ``ard``."""

    ell: float | None = None

    @property
    def anisotropic(self) -> str | None:
        """The kernel of the profile with a relevance for each feature, as text."""
        return None if self.ell is not None else f"ard(profile={self.in_ard})"

    @property
    def scales(self) -> tuple[float, ...]:
        return () if self.ell is None else (1 / self.ell**2,)

    def axes(self, X: ArrayLike) -> dict[str, NDArray[Any]]:
        return {"ell": width_axis(X, "sqdist", root=True)} if "ell" in self.free else {}


@dataclass(frozen=True)
class Exponential(_OfLength):
    """``k(x, z) = exp(-|x - z| / ell)``, the Matern kernel of smoothness 1/2.

    Parameters
    ----------
    ell : float or None
        Length, in units of the data; scikit-learn's ``length_scale`` with ``nu=0.5``.

    Notes
    -----
    Cost: O(d n^2) for distances, which all widths share, and a root and an exponential for each pair of rows.

    Against: Its functions are rough: a smooth target needs more rows with it than with ``gaussian``, and a low rank
    represents it badly.

    Examples
    --------
    ::

        kernsel example diabetes diabetes.csv
        kernsel select diabetes.csv --kernel exponential --folds 5
    """

    name: ClassVar[str] = "exponential"
    in_ard: ClassVar[str] = "exponential"
    smoothness: ClassVar[float] = 0.5

    def formula(self) -> gram.Formula:
        assert self.ell is not None
        return gram.exponential(1 / self.ell, root=True)


@dataclass(frozen=True)
class Matern32(_OfLength):
    """``k(x, z) = (1 + u) exp(-u)`` with ``u = sqrt(3) |x - z| / ell``.

    Parameters
    ----------
    ell : float or None
        Length, in units of the data; scikit-learn's ``length_scale`` with ``nu=1.5``.

    Notes
    -----
    Cost: O(d n^2) for distances, which all widths share, and a root and an exponential for each pair of rows.

    Against: One length serves all features: where few of them matter, ``ard(profile=matern32)`` often predicts better.

    Examples
    --------
    ::

        kernsel example diabetes diabetes.csv
        kernsel select diabetes.csv --kernel matern32 --folds 5
    """

    name: ClassVar[str] = "matern32"
    in_ard: ClassVar[str] = "matern32"
    smoothness: ClassVar[float] = 1.5

    def formula(self) -> gram.Formula:
        assert self.ell is not None
        return gram.exponential(math.sqrt(3) / self.ell, 1.0, root=True)


@dataclass(frozen=True)
class Matern52(_OfLength):
    """``k(x, z) = (1 + u + u^2/3) exp(-u)`` with ``u = sqrt(5) |x - z| / ell``.

    Parameters
    ----------
    ell : float or None
        Length, in units of the data; scikit-learn's ``length_scale`` with ``nu=2.5``.

    Notes
    -----
    Cost: O(d n^2) for distances, which all widths share, and a root and an exponential for each pair of rows.

    Against: One length serves all features: where few of them matter, ``ard(profile=matern52)`` often predicts better.

    Examples
    --------
    ::

        kernsel example diabetes diabetes.csv
        kernsel select diabetes.csv --kernel matern52 --folds 5
    """

    name: ClassVar[str] = "matern52"
    in_ard: ClassVar[str] = "matern52"
    smoothness: ClassVar[float] = 2.5

    def formula(self) -> gram.Formula:
        assert self.ell is not None
        return gram.exponential(math.sqrt(5) / self.ell, 1.0, 1.0 / 3.0, root=True)


@dataclass(frozen=True)
class RationalQuadratic(_OfLength):
    """``k(x, z) = (1 + |x - z|^2 / (2 alpha ell^2))^-alpha``: a mixture of Gaussian kernels of different widths.

    Rasmussen & Williams 2006, eq. 4.19.

    Parameters
    ----------
    ell : float or None
        Length, in units of the data; scikit-learn's ``length_scale``.
    alpha : float or None
        Greater than 0; the greater, the more Gaussian. ``alpha=None`` searches it.

    Notes
    -----
    Cost: O(d n^2) for distances, which all widths share, and a power for each pair of rows.

    Against: With alpha searched there is one more axis of the grid, and alpha and ell make up for each other.

    Examples
    --------
    ::

        kernsel example diabetes diabetes.csv
        kernsel select diabetes.csv --kernel rational-quadratic --folds 5
    """

    name: ClassVar[str] = "rational-quadratic"
    in_ard: ClassVar[str] = "rational-quadratic"
    positive: ClassVar[tuple[str, ...]] = ("ell", "alpha")

    alpha: float | None = 1.0

    @property
    def anisotropic(self) -> str | None:
        """The kernel with a relevance for each feature, as text; there is one for alpha = 1."""
        return super().anisotropic if self.alpha == 1 else None

    def formula(self) -> gram.Formula:
        assert self.ell is not None
        assert self.alpha is not None
        return gram.inverse(1 / (2 * self.alpha * self.ell**2), self.alpha)

    def axes(self, X: ArrayLike) -> dict[str, NDArray[Any]]:
        return super().axes(X) | ({"alpha": np.array([0.25, 0.5, 1.0, 2.0])} if "alpha" in self.free else {})
