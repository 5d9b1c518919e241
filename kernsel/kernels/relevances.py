"""What kernels with a relevance for each feature have in common: automatic relevance determination (ARD).

A relevance of 0 takes the feature out. The features of a group share one: on 0/1 columns that are the categories of a
column, ``r^2`` and the sum of absolute differences are ``2 theta [x is not z]``, the Hamming distance.

Some features may have a rank or a logarithm beside their value, with a relevance of its own: the kernel then is one of
``(x, u(x))``, for the views u of :mod:`kernsel.kernels.ranks` and :mod:`kernsel.kernels.logs`. Their relevances come
last: those of ranks, then those of logarithms.

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
from kernsel.kernels.logs import NUMBERS, Log, logs_of
from kernsel.kernels.ranks import Rank, curve_of, quantiles_of
from kernsel.kernels.statistics import Statistics
from kernsel.kernels.views import View, ending_of
from kernsel.numerics import gram, stability
from kernsel.numerics.points import Points, as_points, columns, dense, is_sparse, squared_norms
from kernsel.protocols import Value
from kernsel.types import Array

VIEWS = {"ranked": "a rank", "logged": "a logarithm"}
"""Options that name features with a view beside their value, and what that is."""


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
    logged: tuple[int, ...] = field(default=(), kw_only=True)
    logs: tuple[float, ...] = field(default=(), kw_only=True)

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
        if len(self.logs) != NUMBERS * len(self.logged) or any(min(each[1], each[3]) <= 0 for each in self._logs):
            raise OptionError(
                f"kernel '{self.name}': logs must be {NUMBERS} numbers for each logged feature: shift, least argument, "
                "mean and standard deviation of the logarithms, the second and the last one greater than 0"
            )

    def _read(self, name: str, value: object) -> Value:
        if name in VIEWS:
            features = tuple(value) if isinstance(value, Iterable) else (value,)
            whole = all(isinstance(e, int | np.integer) and not isinstance(e, bool) and e >= 0 for e in features)
            if not whole or len(set(features)) < len(features):
                raise OptionError(
                    f"kernel '{self.name}': {name} must be different whole numbers from 0, the features with "
                    f"{VIEWS[name]}, such as (0, 3), not {value!r}"
                )
            return tuple(map(int, features))
        if name == "quantiles":
            wanted = ", ascending, as many for each ranked feature"
            return self._read_numbers(name, value, -math.inf, wanted) if np.asarray(value).size else ()
        if name == "logs":
            wanted = f", {NUMBERS} for each logged feature"
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
        return self.with_theta(kernel.scales * ((len(self.groups) or d) + len(self.views)))

    def tied(self, groups: Sequence[int]) -> Self:
        return self if self.groups else replace(self, groups=tuple(groups))

    def theta_names(self, features: Sequence[str]) -> list[str]:
        """Return a name for each relevance: that of the feature, or what the names of a group's features begin with.

        Those of views follow, as ``income (rank)`` and ``income (log)``.
        """
        beside = [features[view.feature] + ending_of(view.ending, features) for view in self.views]
        if not self.groups:
            return [*features, *beside]
        names = (features[lo:hi] for lo, hi in pairwise(accumulate(self.groups, initial=0)))
        return [*(commonprefix(each) for each in names), *beside]  # noqa: RUF071  # the names are no paths

    @property
    def views(self) -> list[View]:
        """What is seen of features beside their values, in the order of relevances: ranks, then logarithms."""
        ranks = (Rank(j, *curve_of(q)) for j, q in zip(self.ranked, self._quantiles, strict=True))
        return [*ranks, *(Log(j, *numbers) for j, numbers in zip(self.logged, self._logs, strict=True))]

    @property
    def views_told(self) -> str:
        """The kinds of the views, in words; nothing without any."""
        kinds = [kind for kind, some in (("ranks", self.ranked), ("logs", self.logged)) if some]
        return " and ".join(kinds)

    @property
    def _quantiles(self) -> Array:
        """Those of each ranked feature, (r, m)."""
        count = len(self.ranked)
        return np.array(self.quantiles).reshape(count, len(self.quantiles) // max(count, 1))

    @property
    def _logs(self) -> list[tuple[float, ...]]:
        """The numbers of each logarithm."""
        return list(zip(*(self.logs[k::NUMBERS] for k in range(NUMBERS)), strict=True))

    @property
    def _sizes(self) -> tuple[int, ...]:
        """How many features and views share each relevance; nothing where each has its own."""
        return (*self.groups, *(1,) * len(self.views)) if self.groups else ()

    @property
    def _and_views(self) -> str:
        """How many views there are beside the features, in words."""
        counts = (len(self.ranked), "ranks"), (len(self.logged), "logs")
        return "".join(f" and {count} {kind}" for count, kind in counts if count)

    @property
    def plain(self) -> Self:
        """The kernel as a function of the features and, as further features, their views."""
        return replace(self, groups=self._sizes, ranked=(), quantiles=(), logged=(), logs=())

    def with_ranks(self, X: ArrayLike) -> Self:
        """Return the kernel with the ranks, on the rows X (n, d), of those features whose ranks say something else.

        A relevance is shared between value and rank, half to each. The features of a group of several have no ranks;
        a kernel that has ranks keeps them.
        """
        if self.ranked:
            return self
        ranked, quantiles = quantiles_of(X, self._single(np.shape(X)[1]))
        changed = replace(self, ranked=tuple(ranked), quantiles=tuple(quantiles.ravel().tolist()))
        return self._sharing(changed, ranked, len(self.theta or ()) - len(self.logged))

    def with_logs(self, X: ArrayLike, zeros: ArrayLike) -> Self:
        """Return the kernel with the logarithms of features that are nowhere negative, as with ranks.

        ``zeros`` (d,) is where 0 is in the units of the rows X (n, d), NaN where a feature has no logarithm.
        """
        if self.logged:
            return self
        found = logs_of(X, zeros, self._single(np.shape(X)[1]))
        logged = [log.feature for log in found]
        numbers = [number for log in found for number in (log.shift, log.least, log.centre, log.spread)]
        changed = replace(self, logged=tuple(logged), logs=tuple(numbers))
        return self._sharing(changed, logged, len(self.theta or ()))

    def _single(self, d: int) -> list[int]:
        """Return the features, of d, that have a relevance of their own."""
        sizes = self.groups or (1,) * d
        starts = accumulate(sizes[:-1], initial=0)
        return [start for start, size in zip(starts, sizes, strict=True) if size == 1]

    def _sharing(self, changed: Self, features: Sequence[int], at: int) -> Self:
        """Return a kernel with views of some features, whose relevances begin at a place: half of those of values."""
        if self.theta is None or not features:
            return changed
        theta, starts = np.array(self.theta), np.cumsum((0, *self.groups[:-1]))
        shared = np.searchsorted(starts, features) if self.groups else np.array(features)
        theta[shared] *= 0.5
        return replace(changed, theta=tuple(np.insert(theta, at, theta[shared]).tolist()))

    def with_views_beside(self, X: ArrayLike) -> Points:
        """Return the rows X (n, d) with the views of some of their features as further columns, (n, d + r)."""
        rows, views = as_points(X), self.views
        if not views:
            return rows
        for name in VIEWS:
            last = max(getattr(self, name), default=0)
            if last >= rows.shape[1]:
                raise OptionError(
                    f"kernel '{self.name}': {name} names feature {last}, and the rows have {rows.shape[1]} features "
                    "(after encoding, without constant columns), from 0; leave that one out"
                )
        rows = dense(rows)
        return np.column_stack([rows, *(view(rows[:, view.feature]) for view in views)])

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
        """The relevance of each feature and of each view, (d + r,)."""
        theta, sizes = np.array(self.theta), self._sizes
        if not sizes:
            return theta
        if theta.size != len(sizes):
            raise OptionError(
                f"kernel '{self.name}': theta has {theta.size} relevances, and there are {len(self.groups)} groups of "
                f"features{self._and_views}: columns, and those of categories count once; give one for each of these"
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
        rows, theta = self.with_views_beside(X), self._of_features
        if rows.shape[1] != theta.size:
            d = rows.shape[1] - len(self.views)
            raise OptionError(
                f"kernel '{self.name}': theta has {theta.size} relevances, and the rows have {d} "
                f"features{self._and_views} (after encoding, without constant columns); give one for each of these"
            )
        used = np.flatnonzero(theta > 0)
        return columns(rows, used, self.factors(theta[used])) if used.size else np.zeros((rows.shape[0], 1))

    def theta_vjp(self, X: ArrayLike, W: Array, K: Array | None = None, Z: ArrayLike | None = None) -> Array:
        """Return ``sum_ij W_ij dk(x_i, z_j)/dtheta_r`` for each r, (p,): the sum of those of a group's features.

        W (n, m) and, if it is there already, K (n, m) are of the rows of X (n, d) and Z (m, d), or X again. The
        derivatives by the relevances of views are the last ones.
        """
        if self.ranked or self.logged:
            others = None if Z is None else self.with_views_beside(Z)
            return self.plain.theta_vjp(self.with_views_beside(X), W, K, others)
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
