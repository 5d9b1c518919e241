"""Kernels of an inner product: linear and polynomial."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernsel.errors import OptionError
from kernsel.kernels.pairwise import Compiled, Pairwise
from kernsel.numerics import gram, stability
from kernsel.numerics.points import as_points, dense, is_sparse
from kernsel.types import Array


@dataclass(frozen=True)
class Linear(Pairwise):
    """``k(x, z) = <x, z>``.

    Notes
    -----
    Cost: O(d n^2) for inner products.

    Against: Its functions are linear. With far more rows than features a solver for linear models is cheaper.

    Examples
    --------
    ::

        kernsel example wine wine.csv
        kernsel select wine.csv --kernel linear --folds 5
    """

    name: ClassVar[str] = "linear"
    statistic: ClassVar[str] = "inner"
    metric: ClassVar[str] = "linear"

    def profile(self, S: Array) -> Array:
        return S.copy()

    def formula(self) -> gram.Formula:
        """The inner product as it is."""
        return gram.AS_IT_IS

    def sklearn_parameters(self) -> dict[str, float]:
        """There are none."""
        return {}

    def scan(self, X: ArrayLike, weights: Array | None = None) -> stability.Scan:
        rows = as_points(X)
        n, d = rows.shape
        if is_sparse(rows) and d * d > rows.nnz:  # the products of its columns would take more room than X
            return super().scan(rows, weights)
        products = dense(rows.T @ (rows if weights is None else rows * weights[:, None]))
        return stability.scan_features(lambda some: dense(rows[some]), products, n, weights)


@dataclass(frozen=True)
class Polynomial(Compiled):
    """``k(x, z) = (gamma <x, z> + coef0)^degree``.

    Parameters
    ----------
    degree : int or None
        At least 1.
    gamma : float or None
        Factor of the inner product, in inverse squared units of the data.
    coef0 : float
        At least 0: below 0 the function is not positive semidefinite.

    Notes
    -----
    Cost: O(d n^2) for inner products, which all parameters share, and a power for each pair of rows.

    Against: Its functions grow without bound away from the data, the faster the higher the degree: they extrapolate
    wildly.

    Examples
    --------
    ::

        kernsel example wine wine.csv
        kernsel select wine.csv --kernel "polynomial(degree=2)" --folds 5
    """

    name: ClassVar[str] = "polynomial"
    statistic: ClassVar[str] = "inner"
    positive: ClassVar[tuple[str, ...]] = ("degree", "gamma")
    integer: ClassVar[tuple[str, ...]] = ("degree",)
    metric: ClassVar[str] = "polynomial"

    degree: int | None = None
    gamma: float | None = None
    coef0: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.coef0 is None or self.coef0 < 0:
            raise OptionError(f"kernel '{self.name}': coef0 must be a number of at least 0, not {self.coef0!r}")

    def formula(self) -> gram.Formula:
        assert self.degree is not None
        assert self.gamma is not None
        return gram.power(self.gamma, self.coef0, self.degree)

    def sklearn_parameters(self) -> dict[str, float]:
        """Degree, gamma and coef0 of scikit-learn's polynomial kernel."""
        return self.parameters

    @property
    def anisotropic(self) -> str | None:
        """The polynomial kernel with a relevance for each feature in the place of gamma, as text."""
        return None if self.gamma is not None else f"ard-polynomial(degree={self.degree}, coef0={self.coef0!r})"

    @property
    def scales(self) -> tuple[float, ...]:
        return () if self.gamma is None else (self.gamma,)

    def axes(self, X: ArrayLike) -> dict[str, NDArray[Any]]:
        d = max(np.shape(X)[1], 1)
        values: dict[str, NDArray[Any]] = {
            "degree": np.array([2, 3, 4]),
            "gamma": np.array([0.25, 1.0, 4.0]) / d,
        }
        return {name: values[name] for name in self.free}
