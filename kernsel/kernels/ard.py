"""Kernels with a relevance for each feature: automatic relevance determination (ARD).

What they have in common is in :mod:`kernsel.kernels.relevances`.

The relevances theta of a kernel, with ``sigma_r`` or ``ell_r`` the width of the isotropic kernel on feature r alone::

    ard, profile gaussian        r^2 = sum theta_r (x_r - z_r)^2    theta_r = 1 / (2 tau_r)
    ard, any other profile       r^2 = sum theta_r (x_r - z_r)^2    theta_r = 1 / ell_r^2
    ard-laplacian                r   = sum theta_r |x_r - z_r|      theta_r = 1 / sigma_r
    ard-polynomial               sum theta_r x_r z_r                theta_r = gamma_r
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from kernsel.kernels.base import Kernel
from kernsel.kernels.dot import Polynomial
from kernsel.kernels.radial import Exponential, Gaussian, Laplacian, Matern32, Matern52, RationalQuadratic
from kernsel.kernels.relevances import Relevances
from kernsel.numerics import feature_sums as relevance
from kernsel.numerics import gram
from kernsel.numerics.points import Points
from kernsel.types import Array


class _Profile(NamedTuple):
    """A profile phi of ``r^2``.

    Parameters
    ----------
    isotropic : Kernel
        With one width, without a value.
    slope : callable
        ``slope(kernel, X, Z, K) -> dphi/d(r^2)``, (n, m), a new array.
    """

    isotropic: Kernel
    formula: gram.Formula
    slope: Callable[[ARD, Points, Points | None, Array], Array]


def _slope_of_exponential(kernel: ARD, X: Points, Z: Points | None, K: Array) -> Array:
    """Return ``-exp(-r) / (2 r)``, and 0 where r is next to 0: the derivative by theta_r has a limit of 0 there."""
    with np.errstate(divide="ignore"):  # where K is 0, r is infinite
        minus = 2.0 * np.log(K)
    minus[minus > -2.0 * COINCIDENT] = -np.inf
    return np.divide(K, minus, out=minus)


_PROFILES = {
    "gaussian": _Profile(Gaussian(), gram.exponential(1.0), lambda kernel, X, Z, K: -K),
    "exponential": _Profile(Exponential(), gram.exponential(1.0, root=True), _slope_of_exponential),
    "matern32": _Profile(
        Matern32(),
        gram.exponential(math.sqrt(3.0), 1.0, root=True),
        lambda kernel, X, Z, K: -1.5 * kernel._gram(X, Z, gram.exponential(math.sqrt(3.0), root=True)),
    ),
    "matern52": _Profile(
        Matern52(),
        gram.exponential(math.sqrt(5.0), 1.0, 1.0 / 3.0, root=True),
        lambda kernel, X, Z, K: -(5.0 / 6.0) * kernel._gram(X, Z, gram.exponential(math.sqrt(5.0), 1.0, root=True)),
    ),
    "rational-quadratic": _Profile(RationalQuadratic(), gram.inverse(0.5, 1.0), lambda kernel, X, Z, K: -0.5 * K * K),
}
"""Profiles by the name of the isotropic kernel: what ``ard`` is with them where all relevances are equal."""

COINCIDENT = 1e-7
"""Exponential profile: r from which two points are apart. The pair's share in the derivative by log theta is less than
W r / 2; with 1 / r beside it rounding of the sums, of the size EPS / r, would be as much."""


@dataclass(frozen=True)
class ARD(Relevances):
    """``k(x, z) = phi(r)`` with ``r^2 = sum_r theta_r (x_r - z_r)^2``; with all theta equal it is an isotropic kernel.

    The scaled-feature Gaussian of Chapelle et al. 2002, and equation (2) of Cawley & Talbot 2014 (FLKL); with other
    profiles Rasmussen & Williams 2006, Section 5.1.

    Parameters
    ----------
    theta : tuple of float or None
        The relevance of each feature, of at least 0, in inverse squared units of it: ``1 / (2 length_scale^2)`` of
        scikit-learn's anisotropic ``RBF``, and ``1 / length_scale^2`` of its ``Matern`` for the other profiles. Text
        has it as ``ard(theta=(0.5, 0.1, 0))``.
    profile : str
        gaussian: ``exp(-r^2)``; exponential: ``exp(-r)``; matern32: ``(1 + u) exp(-u)``, u = sqrt(3) r; matern52:
        ``(1 + u + u^2/3) exp(-u)``, u = sqrt(5) r; rational-quadratic: ``1 / (1 + r^2 / 2)``.
    groups : tuple of int
        How many features, one after another, share each relevance; nothing where each has its own.
    ranked : tuple of int
        Features, from 0, that have a rank beside their value, with a relevance of its own: after those of the features.
    quantiles : tuple of float
        That ranks are read off, as many for each ranked feature: at equal steps of probability, ascending, in units of
        the features as the kernel sees them, which a selection standardises.
    logged : tuple of int
        Features that have a logarithm beside their value: their relevances come last.
    logs : tuple of float
        Four numbers for each logged feature x, as the kernel sees it: shift, least argument, centre and spread of
        ``(log max(x + shift, least) - centre) / spread``.

    Notes
    -----
    Cost: O(d n^2) for each vector of relevances, of which nothing is shared; to learn them, O(n^3 + d n^2) a step.

    Needs: relevances, one for each feature after encoding, given or learnt: they aren't searched on a grid.

    Against: Many relevances over-fit on few rows, of classes above all. Learnt on all rows, they make held-out errors
    too low.

    Examples
    --------
    ::

        kernsel example diabetes diabetes.csv
        kernsel select diabetes.csv --kernel ard --folds 5
    """

    name: ClassVar[str] = "ard"
    statistic: ClassVar[str] = "sqdist"
    words: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType({"profile": tuple(_PROFILES)})

    profile: str = "gaussian"

    def formula(self) -> gram.Formula:
        return _PROFILES[self.profile].formula

    @property
    def isotropic(self) -> Kernel:
        return _PROFILES[self.profile].isotropic

    @property
    def smoothness(self) -> float:  # type: ignore[override]  # a class attribute elsewhere, here it is the profile's
        """That of the isotropic kernel."""
        return self.isotropic.smoothness

    def _theta_vjp(self, X: Points, W: Array, K: Array | None, Z: Points | None) -> Array:
        """Return ``sum_ij W_ij phi'_ij (x_ir - z_jr)^2`` for each r, phi' the derivative of the profile by ``r^2``."""
        weights = self.slopes(X, Z, K)
        weights *= W
        return relevance.sums_of_squares(X, weights, Z)

    def slopes(self, X: Points, Z: Points | None = None, K: Array | None = None) -> Array:
        """Return ``phi'``, the derivative of the profile by ``r^2``, of each pair: a new array (n, m)."""
        return _PROFILES[self.profile].slope(self, X, Z, self(X, Z) if K is None else K)


@dataclass(frozen=True)
class ARDLaplacian(Relevances):
    """``k(x, z) = exp(-sum_r theta_r |x_r - z_r|)``; with all theta equal it is the Laplacian kernel.

    A product over features, which follows the axes as trees do.

    Parameters
    ----------
    theta : tuple of float or None
        The relevance of each feature, of at least 0, in inverse units of it.
    groups : tuple of int
        How many features, one after another, share each relevance; nothing where each has its own.
    ranked : tuple of int
        Features, from 0, that have a rank beside their value, with a relevance of its own: after those of the features.
    quantiles : tuple of float
        That ranks are read off, as many for each ranked feature: at equal steps of probability, ascending, in units of
        the features as the kernel sees them, which a selection standardises.
    logged : tuple of int
        Features that have a logarithm beside their value: their relevances come last.
    logs : tuple of float
        Four numbers for each logged feature x, as the kernel sees it: shift, least argument, centre and spread of
        ``(log max(x + shift, least) - centre) / spread``.

    Notes
    -----
    Cost: O(d n^2) for each vector of relevances, of which nothing is shared; to learn them, O(n^3 + d n^2) a step.

    Needs: relevances, one for each feature after encoding, given or learnt: they aren't searched on a grid.

    Against: Many relevances over-fit on few rows. Its functions are rough, and follow the axes.

    Examples
    --------
    ::

        kernsel example diabetes diabetes.csv
        kernsel select diabetes.csv --kernel ard-laplacian --folds 5
    """

    name: ClassVar[str] = "ard-laplacian"
    smoothness: ClassVar[float] = Laplacian.smoothness
    statistic: ClassVar[str] = "l1"

    @staticmethod
    def factors(theta: Array) -> Array:
        """Return the relevances: differences aren't squared."""
        return theta

    def formula(self) -> gram.Formula:
        return gram.exponential(1.0)

    @property
    def isotropic(self) -> Kernel:
        return Laplacian()

    def _theta_vjp(self, X: Points, W: Array, K: Array | None, Z: Points | None) -> Array:
        """Return ``-sum_ij W_ij K_ij |x_ir - z_jr|`` for each r."""
        return -relevance.sums_of_differences(X, W * (self(X, Z) if K is None else K), Z)


@dataclass(frozen=True)
class ARDPolynomial(Relevances):
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
    groups : tuple of int
        How many features, one after another, share each relevance; nothing where each has its own.
    ranked : tuple of int
        Features, from 0, that have a rank beside their value, with a relevance of its own: after those of the features.
    quantiles : tuple of float
        That ranks are read off, as many for each ranked feature: at equal steps of probability, ascending, in units of
        the features as the kernel sees them, which a selection standardises.
    logged : tuple of int
        Features that have a logarithm beside their value: their relevances come last.
    logs : tuple of float
        Four numbers for each logged feature x, as the kernel sees it: shift, least argument, centre and spread of
        ``(log max(x + shift, least) - centre) / spread``.

    Notes
    -----
    Cost: O(d n^2) for each vector of relevances, of which nothing is shared; to learn them, O(n^3 + d n^2) a step.

    Needs: relevances, one for each feature after encoding, given or learnt, and a degree: neither is searched on a
    grid.

    Against: Its functions grow without bound away from the data, the faster the higher the degree.

    Examples
    --------
    ::

        kernsel example diabetes diabetes.csv
        kernsel select diabetes.csv --kernel "ard-polynomial(degree=2)" --folds 5
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
        return replace(super().from_isotropic(kernel, d), degree=kernel.degree)

    def _theta_vjp(self, X: Points, W: Array, K: Array | None, Z: Points | None) -> Array:
        """Return ``sum_ij W_ij degree (...)^(degree - 1) x_ir z_jr`` for each r.

        An even power has lost the sign that the power below needs, so that K is of no use.
        """
        self.require_fixed()
        assert self.degree is not None
        below = 1.0 if self.degree == 1 else replace(self, degree=self.degree - 1)(X, Z)
        return self.degree * relevance.sums_of_products(X, W * below, Z)
