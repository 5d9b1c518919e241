"""What kernels know of two sets of points: inner products and distances, computed once and shared."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kernsel.numerics import gram, sparse
from kernsel.numerics.points import Points, Rearranged, as_points, is_sparse, read_only
from kernsel.types import Array

_SAMPLE = 1000  # rows whose distances set the default widths


class Statistics:
    """What kernels know of two sets of points; each table is computed when first asked for, and kept, read-only.

    A grid over widths, and all parts of a sum, share one object, so that distances are computed once.

    Parameters
    ----------
    X : (n, d) array, or sparse matrix of SciPy
    Z : (m, d) array, or sparse matrix, or None
        None stands for X itself; the tables are then exactly symmetric.
    """

    def __init__(self, X: ArrayLike | Points, Z: ArrayLike | Points | None = None) -> None:
        self._given = X if isinstance(X, Rearranged) else as_points(X)
        self.Z: Points | None = None if Z is None else as_points(Z)
        self._some: tuple[tuple[int, ...], Statistics] | None = None
        self._kept: dict[str, Array] = {}

    @cached_property
    def X(self) -> Points:
        """The rows, (n, d), as they are worked on."""
        return as_points(self._given)

    @cached_property
    def inner(self) -> Array:
        """Inner products, (n, m)."""
        return read_only(self.gram("inner"))

    @cached_property
    def sqdist(self) -> Array:
        """Squared Euclidean distances, (n, m)."""
        return read_only(self.gram("sqdist"))

    @cached_property
    def l1(self) -> Array:
        """Sums of absolute differences, (n, m)."""
        return read_only(self.gram("l1"))

    def gram(self, statistic: str, formula: gram.Formula = gram.AS_IT_IS) -> Array:
        """Return a statistic or a formula of it, (n, m), and keep nothing."""
        compute = sparse.gram if is_sparse(self.X) or is_sparse(self.Z) else gram.gram
        return compute(statistic, self.X, self.Z, formula)

    def kept(self, name: str, compute: Callable[[Any, Any], Array]) -> Array:
        """Return a table (n, m) of a kernel's own, read-only: computed when it is first asked for, and kept.

        Parameters
        ----------
        name : str
            Of the table, among those of all kernels.
        compute : callable
            ``(X, Z) -> table``; Z is X itself where the rows are paired with themselves.
        """
        if name not in self._kept:
            self._kept[name] = read_only(compute(self.X, self.X if self.Z is None else self.Z))
        return self._kept[name]

    def on(self, features: tuple[int, ...]) -> Statistics:
        """Return what is known of the same points by some of their columns.

        The last answer is kept, for kernels on the same columns mostly follow each other: one for every set of columns
        would hold as many tables as there are features.
        """
        some = self._some
        if some is None or some[0] != features:
            columns = list(features)
            Z = None if self.Z is None else self.Z[:, columns]
            some = self._some = (features, Statistics(self.X[:, columns], Z))
        return some[1]


def width_axis(X: ArrayLike, statistic: str, *, root: bool = False, count: int = 12) -> Array:
    """Geometric grid of widths from ``q10 / 8`` to ``8 q90``, quantiles of the distances between different points.

    Parameters
    ----------
    X : (n, d) array
        Above 1000 rows a fixed random 1000 of them is used.
    statistic : {"sqdist", "l1"}
    root : bool
        Take the square root of the statistic first: widths that are lengths, not squared lengths.

    Returns
    -------
    axis : (count,) array, ascending, or [1.0] if all points are equal
    """
    rows = as_points(X)
    n = rows.shape[0]
    if n > _SAMPLE:
        rows = rows[np.sort(np.random.default_rng(0).choice(n, _SAMPLE, replace=False))]
    distances = getattr(Statistics(rows), statistic)[np.tri(min(n, _SAMPLE), k=-1, dtype=np.bool_)]
    distances = distances[distances > 0]
    if not distances.size:
        return np.ones(1)
    low, high = np.quantile(np.sqrt(distances) if root else distances, [0.1, 0.9])
    return np.geomspace(low / 8, 8 * high, count)
