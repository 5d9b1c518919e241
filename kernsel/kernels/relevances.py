"""What kernels with a relevance for each feature have in common: automatic relevance determination (ARD).

A relevance of 0 takes the feature out. The features of a group share one: on 0/1 columns that are the categories of a
column, ``r^2`` and the sum of absolute differences are ``2 theta [x is not z]``, the Hamming distance.

Some features may have a rank beside their value, with a relevance of its own: the kernel then is one of ``(x, u(x))``,
for the ranks u of :mod:`kernsel.kernels.ranks`. Their relevances come last.

Nothing but the points themselves is shared between two vectors of relevances: the columns are scaled (by the roots of
relevances, or by these themselves where differences are absolute), those of relevance 0 left out, and the compiled
tiles do the rest.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import accumulate, pairwise
from os.path import commonprefix
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from kernsel.errors import OptionError
from kernsel.kernels.base import Kernel
from kernsel.kernels.ranks import curve_of, quantiles_of, rank_ending
from kernsel.kernels.statistics import Statistics
from kernsel.numerics import gram, stability
from kernsel.numerics.points import Points, as_points, columns, dense, is_sparse, squared_norms
from kernsel.protocols import Value
from kernsel.types import Array


@dataclass(frozen=True)
class Relevances(Kernel):
    """A compiled function of a statistic of the columns scaled by ``factors(theta)``."""

    statistic: ClassVar[str]
    sparse: ClassVar[bool] = True
    learnt: ClassVar[tuple[str, ...]] = ("theta",)

    theta: tuple[float, ...] | None = None
    groups: tuple[int, ...] = field(default=(), kw_only=True)
    ranked: tuple[int, ...] = field(default=(), kw_only=True)
    quantiles: tuple[float, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if missing := [each.name for each in fields(self) if each.kw_only and getattr(self, each.name) is None]:
            raise OptionError(
                f"kernel '{self.name}': {missing[0]} isn't learnt or searched: give values, or leave it out"
            )
        count, given = len(self.ranked), len(self.quantiles)
        if given % count if count else given:
            raise OptionError(
                f"kernel '{self.name}': {given} quantiles don't belong to {count} ranked features: give as many for "
                "each, those of one feature after another"
            )
        if count and (given < 2 * count or (np.diff(self._quantiles, axis=1) < 0).any()):
            raise OptionError(f"kernel '{self.name}': each ranked feature needs two quantiles or more, ascending")

    def _read(self, name: str, value: object) -> Value:
        if name == "ranked":
            features = tuple(value) if isinstance(value, Iterable) else (value,)
            whole = all(isinstance(e, int | np.integer) and not isinstance(e, bool) and e >= 0 for e in features)
            if not whole or len(set(features)) < len(features):
                raise OptionError(
                    f"kernel '{self.name}': ranked must be different whole numbers from 0, the features with a rank, "
                    f"such as (0, 3), not {value!r}"
                )
            return tuple(map(int, features))
        if name == "quantiles":
            wanted = ", ascending, as many for each ranked feature"
            return self._read_numbers(name, value, -math.inf, wanted) if np.asarray(value).size else ()
        if name == "groups":
            sizes = tuple(value) if isinstance(value, Iterable) else (value,)
            if not all(isinstance(size, int | np.integer) and size >= 1 for size in sizes):
                raise OptionError(
                    f"kernel '{self.name}': groups must be whole numbers of at least 1, how many features share each "
                    f"relevance, such as (1, 1, 3), not {value!r}"
                )
            return tuple(map(int, sizes))
        if name != "theta":
            return super()._read(name, value)
        return self._read_numbers(name, value, 0.0, " of at least 0, one for each feature, such as (0.5, 0.1, 0)")

    @property
    def parameters(self) -> dict[str, Any]:
        """The relevances, if they have values, and what isn't as it is by default."""
        plain = {each.name: each.default for each in fields(self) if each.kw_only or each.name == "profile"}
        return {name: value for name, value in super().parameters.items() if plain.get(name) != value}

    @abstractmethod
    def formula(self) -> gram.Formula:
        """The function of the statistic."""

    @property
    @abstractmethod
    def isotropic(self) -> Kernel:
        """The kernel that this one is where all relevances are equal, with its width or ``gamma`` to be searched."""

    def from_isotropic(self, kernel: Any, d: int) -> Self:
        """Return the kernel of d equal relevances that equals an ``isotropic`` one with a value."""
        return self.with_theta(kernel.scales * ((len(self.groups) or d) + len(self.ranked)))

    def tied(self, groups: Sequence[int]) -> Self:
        return self if self.groups else replace(self, groups=tuple(groups))

    def theta_names(self, features: Sequence[str]) -> list[str]:
        """Return a name for each relevance: that of the feature, or what the names of a group's features begin with.

        Those of ranks follow, as ``income (rank)``.
        """
        ending = rank_ending(features)
        ranks = [features[j] + ending for j in self.ranked]
        if not self.groups:
            return [*features, *ranks]
        names = (features[lo:hi] for lo, hi in pairwise(accumulate(self.groups, initial=0)))
        return [*(commonprefix(each) for each in names), *ranks]  # noqa: RUF071  # the names are no paths

    @property
    def _quantiles(self) -> Array:
        """Those of each ranked feature, (r, m)."""
        count = len(self.ranked)
        return np.array(self.quantiles).reshape(count, len(self.quantiles) // max(count, 1))

    @property
    def _sizes(self) -> tuple[int, ...]:
        """How many features and ranks share each relevance; nothing where each has its own."""
        return (*self.groups, *(1,) * len(self.ranked)) if self.groups else ()

    @property
    def _and_ranks(self) -> str:
        """How many ranks there are beside the features, in words."""
        return f" and {len(self.ranked)} ranks" if self.ranked else ""

    @property
    def unranked(self) -> Self:
        """The kernel as a function of the features and, as further features, their ranks."""
        return replace(self, groups=self._sizes, ranked=(), quantiles=())

    def with_ranks(self, X: ArrayLike) -> Self:
        """Return the kernel with the ranks, on the rows X (n, d), of those features whose ranks say something else.

        A relevance is shared between value and rank, half to each. The features of a group of several have no ranks;
        a kernel that has ranks keeps them.
        """
        if self.ranked:
            return self
        sizes = self.groups or (1,) * np.shape(X)[1]
        starts = np.cumsum((0, *sizes[:-1]))
        ranked, quantiles = quantiles_of(X, [int(j) for j, size in zip(starts, sizes, strict=True) if size == 1])
        changed = replace(self, ranked=tuple(ranked), quantiles=tuple(quantiles.ravel().tolist()))
        if self.theta is None or not ranked:
            return changed
        theta, shared = np.array(self.theta), np.searchsorted(starts, ranked)
        theta[shared] *= 0.5
        return replace(changed, theta=(*theta.tolist(), *theta[shared].tolist()))

    def with_ranks_beside(self, X: ArrayLike) -> Points:
        """Return the rows X (n, d) with the ranks of some of their features as further columns, (n, d + r)."""
        rows = as_points(X)
        if not self.ranked:
            return rows
        if max(self.ranked) >= rows.shape[1]:
            raise OptionError(
                f"kernel '{self.name}': ranked names feature {max(self.ranked)}, and the rows have {rows.shape[1]} "
                "features (after encoding, without constant columns), from 0; leave that one out"
            )
        rows = dense(rows)
        pairs = zip(self.ranked, self.rank_curves, strict=True)
        return np.column_stack([rows, *(np.interp(rows[:, j], *curve) for j, curve in pairs)])

    @property
    def rank_curves(self) -> list[tuple[Array, Array]]:
        """Values and ranks of each ranked feature: the rank is linear between, and stays beyond."""
        return [curve_of(each) for each in self._quantiles]

    @staticmethod
    def factors(theta: Array) -> Array:
        """Return what the columns are multiplied by before the statistic."""
        return np.sqrt(theta)

    def with_theta(self, theta: Sequence[float] | Array) -> Self:
        """Return the kernel with other relevances (d,), of at least 0."""
        return replace(self, theta=tuple(theta))

    def times(self, factor: float) -> Self:
        """Return the kernel with all its relevances times a factor."""
        return self.with_theta(tuple(factor * theta for theta in self.scales))

    @property
    def scales(self) -> tuple[float, ...]:
        return self.theta or ()

    @property
    def column_factors(self) -> Array:
        """What the columns are multiplied by before the statistic, (d,)."""
        self.require_fixed()
        return self.factors(self._of_features)

    @property
    def _of_features(self) -> Array:
        """The relevance of each feature and of each rank, (d + r,)."""
        theta, sizes = np.array(self.theta), self._sizes
        if not sizes:
            return theta
        if theta.size != len(sizes):
            raise OptionError(
                f"kernel '{self.name}': theta has {theta.size} relevances, and there are {len(self.groups)} groups of "
                f"features{self._and_ranks}: columns, and those of categories count once; give one for each of these"
            )
        return np.repeat(theta, sizes)

    def require_fixed(self) -> None:
        if self.theta is None:
            raise OptionError(
                f"kernel '{self.name}': theta has no value, and so many numbers aren't searched on a grid; learn them "
                "by kernsel.learn_relevances, which the command 'kernsel relevance' does, or give one for each feature"
            )
        super().require_fixed()

    def diag(self, X: ArrayLike) -> Array:
        rows = self._scaled(X)
        return gram.apply(self.formula(), squared_norms(rows) if self.statistic == "inner" else np.zeros(rows.shape[0]))

    def _scaled(self, X: ArrayLike) -> Points:
        """Return the relevant columns of X (n, d) times their factors; one column of zeros if none is."""
        self.require_fixed()
        rows, theta = self.with_ranks_beside(X), self._of_features
        if rows.shape[1] != theta.size:
            d = rows.shape[1] - len(self.ranked)
            raise OptionError(
                f"kernel '{self.name}': theta has {theta.size} relevances, and the rows have {d} "
                f"features{self._and_ranks} (after encoding, without constant columns); give one for each of these"
            )
        used = np.flatnonzero(theta > 0)
        return columns(rows, used, self.factors(theta[used])) if used.size else np.zeros((rows.shape[0], 1))

    def theta_vjp(self, X: ArrayLike, W: Array, K: Array | None = None, Z: ArrayLike | None = None) -> Array:
        """Return ``sum_ij W_ij dk(x_i, z_j)/dtheta_r`` for each r, (p,): the sum of those of a group's features.

        W (n, m) and, if it is there already, K (n, m) are of the rows of X (n, d) and Z (m, d), or X again. The
        derivatives by the relevances of ranks are the last ones.
        """
        if self.ranked:
            others = None if Z is None else self.with_ranks_beside(Z)
            return self.unranked.theta_vjp(self.with_ranks_beside(X), W, K, others)
        slopes = self._theta_vjp(as_points(X), W, K, None if Z is None else as_points(Z))
        return np.add.reduceat(slopes, np.cumsum((0, *self.groups[:-1]))) if self.groups else slopes

    @abstractmethod
    def _theta_vjp(self, X: Points, W: Array, K: Array | None, Z: Points | None) -> Array:
        """Return the derivatives by the relevance of each feature, (d,), for points as they are worked on."""

    def evaluate(self, stats: Statistics) -> Array:
        self.require_fixed()
        return self._gram(stats.X, stats.Z, self.formula())

    def compiled(self, X: Points) -> tuple[str, Points, gram.Formula] | None:
        return self.statistic, self._scaled(X), self.formula()

    def _gram(self, X: ArrayLike, Z: ArrayLike | None, formula: gram.Formula) -> Array:
        """Return a formula of the statistic, (n, m)."""
        return Statistics(self._scaled(X), None if Z is None else self._scaled(Z)).gram(self.statistic, formula)

    def scan(self, X: ArrayLike, weights: Array | None = None) -> stability.Scan:
        rows = self._scaled(X)
        if is_sparse(rows):
            return super().scan(X, weights)
        return stability.scan_points(self.statistic, rows, self.formula(), weights)
