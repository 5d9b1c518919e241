"""The data sorted by fold, and one kernel on them: what every learner and every lambda shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernsel.numerics import lowrank, spectral

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Rows:
    """The data of a selection, sorted by fold.

    Parameters
    ----------
    X : (n, d) array
    Y : (k, n) array
        Targets; classes are -1 and +1, one row a class if there are more than two.
    starts : (t + 1,) array
        Fold j holds the rows ``starts[j]`` to below ``starts[j + 1]``.
    order : (n,) array
        Where the rows stood in the data as given: ``X = given[order]``.
    statistics : object
        Shared distances and inner products of X, for ``kernel.evaluate``.
    seed : int
        Of whatever is drawn: landmarks.
    """

    X: Array
    Y: Array
    starts: Indices
    order: Indices
    statistics: Any
    seed: int = 0

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.X)

    @property
    def left(self) -> Array:
        """Rows that each fold's fit keeps, (t,)."""
        return self.n - np.diff(self.starts).astype(np.float64)

    def as_given(self, values: Array) -> Array:
        """Bring ``values (..., n)`` into the order of the data as given."""
        restored = np.empty_like(values)
        restored[..., self.order] = values
        return restored


if TYPE_CHECKING:
    from functools import cached_property as _once
else:

    class _once:  # noqa: N801  # used as a decorator
        """``functools.cached_property``, of which Python 3.11 computes one at a time, over all objects and threads."""

        def __init__(self, compute: Callable[[Any], Any]) -> None:
            self.compute = compute
            self.__doc__ = compute.__doc__

        def __get__(self, owner: Any, kind: Any = None) -> Any:
            if owner is None:
                return self
            value = owner.__dict__[self.compute.__name__] = self.compute(owner)
            return value


class Problem:
    """A kernel on rows, in full or by low-rank features.

    Parameters
    ----------
    rows : Rows
    kernel : Kernel
        Without free parameters.
    rank : int or None
        Landmarks of the low-rank representation (randomly pivoted Cholesky); None for the whole Gram matrix.
    """

    def __init__(self, rows: Rows, kernel: Any, rank: int | None = None) -> None:
        self.rows = rows
        self.kernel = kernel
        self.rank = rank

    @property
    def full(self) -> bool:
        """Whether the whole Gram matrix is used."""
        return self.rank is None

    @_once
    def gram(self) -> Array:
        """Gram matrix, (n, n)."""
        return np.ascontiguousarray(self.kernel.evaluate(self.rows.statistics))

    @_once
    def factor(self) -> tuple[Array, Indices, Array, float]:
        """Low-rank features Z (n, r), landmarks, the map T with ``Z = k(X, landmarks) T``, and the residual's trace."""
        X, kernel = self.rows.X, self.kernel
        assert self.rank is not None
        return lowrank.pivoted_cholesky(lambda i: kernel(X, X[i]), kernel.diag(X), self.rank, self.rows.seed)

    @property
    def matrix(self) -> Array:
        """Gram matrix or features: what the solvers work on."""
        return self.gram if self.full else self.factor[0]

    @property
    def width(self) -> int:
        """Columns of ``matrix``."""
        return self.rows.n if self.rank is None else self.rank

    @_once
    def products(self) -> Array:
        """Products ``Z' Z`` of the low-rank features, (r, r)."""
        products: Array = self.factor[0].T @ self.factor[0]
        return products

    @_once
    def spectrum(self) -> tuple[Array, Array]:
        """Orthonormal U (n, r) and eigenvalues (r,) of the representation."""
        return spectral.spectrum_of_gram(self.gram) if self.full else spectral.spectrum_of_features(self.factor[0])

    def nystrom(self, share: float) -> Array:
        """Nystrom factor (n, c) of the Gram matrix from ``share * n`` landmarks drawn uniformly (FBIF18, Section 4)."""
        n = self.rows.n
        landmarks = lowrank.uniform_landmarks(n, max(1, round(share * n)), self.rows.seed)
        C = self.gram[:, landmarks]
        return np.ascontiguousarray(lowrank.nystrom_factor(C, C[landmarks])[0])

    def describe(self) -> str:
        """The representation in words."""
        if self.full:
            return f"full Gram matrix, n = {self.rows.n}"
        Z, _, _, residual = self.factor
        lost = residual / float(self.kernel.diag(self.rows.X).sum())
        rank = f"rank {Z.shape[1]} of n = {self.rows.n} (randomly pivoted Cholesky)"
        return f"{rank}, {100 * lost:.2g} % of the trace left"
