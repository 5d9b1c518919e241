"""What a kernel is, and its algebra: sums, products and multiples of kernels are kernels, and so are restrictions.

(Aronszajn 1950, part I, sections 6 and 8.) A restriction is a kernel that sees some of the features only.

Relevances of a kernel that is made of kernels are those of its parts, one after another. Their derivatives are those of
the parts, for the derivatives W by the entries of K times what dK has of the part: 1 of a term of a sum, the other
factors of a product.
"""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernsel.errors import OptionError
from kernsel.kernels.parameters import Parametric
from kernsel.kernels.statistics import Statistics
from kernsel.numerics import gram, stability
from kernsel.numerics.points import Points, as_points
from kernsel.protocols import Value
from kernsel.protocols.kernels import (
    SupportsLogSlopes,
    SupportsRelevances,
    blocks_of,
    has_relevances,
    is_differentiable,
    lacks_theta,
)
from kernsel.types import Array

T = TypeVar("T")


@dataclass(frozen=True)
class Kernel(Parametric, ABC):
    """A positive semidefinite function k(x, z), as a frozen dataclass whose fields are its parameters.

    A parameter that is None is free: a search gives it values from ``axes``. A subclass needs ``name``, ``evaluate``
    and ``diag``; most derive from :class:`Pairwise` instead, which asks for one line of NumPy.

    Kernels are added and multiplied, with each other and with numbers greater than 0: ``k + 1`` adds a constant,
    ``2 * k`` is a multiple, ``sum([k1, k2])`` is a sum.
    """

    width: ClassVar[str | None] = None
    """The parameter that is a width (larger is smoother), if there is one: ties go to the wider kernel."""
    smoothness: ClassVar[float] = math.inf
    """How often functions of the kernel's space have derivatives, nu of a Matern kernel: 1/2 if they are rough."""
    learnt: ClassVar[tuple[str, ...]] = ()
    """Parameters that are learnt, not searched on a grid: relevances of many features."""
    sparse: ClassVar[bool] = False
    """Whether all methods take sparse rows, a csr_array, as X and Z; otherwise dense ones are made for them."""

    definite: ClassVar[bool] = True
    """Whether it is known to be positive semidefinite."""
    known_rows_only: ClassVar[bool] = False
    """Whether values are known only where one of two rows is one that was given."""

    __array_ufunc__: ClassVar[None] = None
    """A number of NumPy times a kernel is a kernel, not an array of one."""

    @property
    def scales(self) -> tuple[float, ...]:
        """What distances or inner products of the data are multiplied by, such as ``1 / (2 tau)``, if by anything."""
        return ()

    @property
    def unlearnt(self) -> tuple[str, ...]:
        """The names of the parameters that are to be learnt."""
        return tuple(name for name in self.free if name in self.learnt)

    @abstractmethod
    def evaluate(self, stats: Statistics) -> Array:
        """Gram matrix from shared statistics: a new (n, m) array, which the caller may overwrite."""

    @abstractmethod
    def diag(self, X: ArrayLike) -> Array:
        """``k(x, x)`` of each row of X (n, d): (n,)."""

    def __call__(self, X: ArrayLike | Points, Z: ArrayLike | Points | None = None) -> Array:
        """Gram matrix of the rows of X (n, d) with those of Z (m, d), or with themselves: (n, m)."""
        return self.evaluate(Statistics(X, Z))

    def compiled(self, X: Points) -> tuple[str, Points, gram.Formula] | None:
        """A statistic, rows and a formula whose Gram matrix is that of the rows X (n, d); None if there are none."""
        return None

    def scan(self, X: ArrayLike, weights: Array | None = None) -> stability.Scan:
        """Stability scan of the rows of X (n, d), with weights (n,) or without, by blocks of the Gram matrix."""
        rows = as_points(X)
        return stability.scan_rows(lambda lo, hi: self(rows[lo:hi], rows[:hi]), self.diag(rows), weights)

    def axes(self, X: ArrayLike) -> dict[str, NDArray[Any]]:
        """Default values to search for each free parameter, ascending, in the scale of the data X (n, d)."""
        return {}

    def conversions(self) -> dict[str, float]:
        """The parameters in the conventions of other libraries, such as scikit-learn's ``gamma``."""
        return {}

    def tied(self, groups: Sequence[int]) -> Self:
        """The kernel whose relevances, if it has any, are one for each of these numbers of features, in their order."""
        return self

    def __add__(self, other: object) -> Kernel:
        if isinstance(other, Kernel):
            return Sum((self, other))
        if not isinstance(other, numbers.Real):
            return NotImplemented
        return self if other == 0 else Sum((self, Constant(float(other))))

    def __radd__(self, other: object) -> Kernel:
        if not isinstance(other, numbers.Real):
            return NotImplemented
        return self if other == 0 else Sum((Constant(float(other)), self))  # sum() begins with 0

    def __mul__(self, other: object) -> Kernel:
        if isinstance(other, Kernel):
            return Product((self, other))
        return Scale(float(other), self) if isinstance(other, numbers.Real) else NotImplemented

    __rmul__ = __mul__


Learnable: TypeAlias = SupportsRelevances[Statistics]
"""A kernel with relevances that can be learnt."""


@dataclass(frozen=True)
class Constant(Kernel):
    """``k(x, z) = value``: functions of a kernel and a constant are those of the kernel with a penalised bias.

    Parameters
    ----------
    value : float
        Greater than 0.

    Notes
    -----
    Cost: O(n^2).

    Against: Alone it can't tell rows apart: it is for sums.

    Examples
    --------
    ::

        kernsel example wine wine.csv
        kernsel select wine.csv --kernel "linear + constant(value=1)" --folds 5
    """

    name: ClassVar[str] = "constant"
    positive: ClassVar[tuple[str, ...]] = ("value",)
    sparse: ClassVar[bool] = True
    statistic: ClassVar[str] = "inner"

    value: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.value is None:
            raise OptionError("kernel 'constant': the value must be a number")

    def formula(self) -> gram.Formula:
        """Whatever the statistic, ``(0 s + value)^1``."""
        return gram.power(0.0, self.value, 1)

    def evaluate(self, stats: Statistics) -> Array:
        m = (stats.X if stats.Z is None else stats.Z).shape[0]
        return np.full((stats.X.shape[0], m), self.value)

    def diag(self, X: ArrayLike) -> Array:
        return np.full(as_points(X).shape[0], self.value)


class Combined(Kernel):
    """A kernel that is made of kernels.

    The parameter ``tau`` of the second of several parts is called ``2.tau``; those of a single part keep their names. A
    subclass says by ``evaluate``, ``diag`` and ``theta_vjp`` what it makes of the values of its parts.
    """

    own: ClassVar[tuple[str, ...]] = ()
    """Parameters that are not those of the parts."""
    numbered: ClassVar[bool] = False
    """Whether the names of parameters begin with the number of their part."""

    if TYPE_CHECKING:  # a dataclass would take an attribute of this class for the default of a field

        @property
        def parts(self) -> tuple[Kernel, ...]:
            """The kernels that it is made of, at least one."""

    @abstractmethod
    def with_parts(self, parts: Sequence[Kernel]) -> Self:
        """Return the kernel that is made of other parts in the same way."""

    @property
    def _prefixed(self) -> list[tuple[str, Kernel]]:
        """The parts, each with what stands before the names of its parameters."""
        return [(f"{i}." if self.numbered else "", part) for i, part in enumerate(self.parts, 1)]

    def _merged(self, values: Callable[[Kernel], Mapping[str, T]]) -> dict[str, T]:
        """Return what each part has by the names of its parameters, by their names here."""
        return {prefix + name: value for prefix, part in self._prefixed for name, value in values(part).items()}

    def _fields(self) -> dict[str, Value | None]:
        return {name: getattr(self, name) for name in self.own} | self._merged(lambda part: part._fields())

    def with_parameters(self, **values: Value | None) -> Self:
        self._check_names(values, self._fields())
        given: dict[str, Any] = {name: values.pop(name) for name in self.own if name in values}
        parts = [
            part.with_parameters(**{k.removeprefix(prefix): v for k, v in values.items() if k.startswith(prefix)})
            for prefix, part in self._prefixed
        ]
        changed = self.with_parts(parts)
        return replace(changed, **given) if given else changed

    def tied(self, groups: Sequence[int]) -> Self:
        return self.with_parts([part.tied(groups) for part in self.parts])

    def axes(self, X: ArrayLike) -> dict[str, NDArray[Any]]:
        return self._merged(lambda part: part.axes(X))

    def conversions(self) -> dict[str, float]:
        return self._merged(lambda part: part.conversions())

    @property
    def width(self) -> str | None:  # type: ignore[override]  # a class attribute elsewhere, here it is the part's
        """The width of the part, if it is a single one and has a width."""
        return None if self.numbered else self.parts[0].width

    @property
    def learnt(self) -> tuple[str, ...]:  # type: ignore[override]  # as above
        """The parameters of all parts that are learnt, not searched."""
        return tuple(self._merged(lambda part: dict.fromkeys(part.learnt)))

    @property
    def sparse(self) -> bool:  # type: ignore[override]  # as above
        """Whether all parts take sparse rows."""
        return all(part.sparse for part in self.parts)

    @property
    def definite(self) -> bool:  # type: ignore[override]  # as above
        """Whether all parts are known to be positive semidefinite."""
        return all(part.definite for part in self.parts)

    @property
    def smoothness(self) -> float:  # type: ignore[override]  # as above
        """That of the roughest part."""
        return min(part.smoothness for part in self.parts)

    @property
    def scales(self) -> tuple[float, ...]:
        return tuple(scale for part in self.parts for scale in part.scales)

    def spec(self) -> dict[str, Any]:
        return {"kernel": self.name, "parts": [part.spec() for part in self.parts]}

    @property
    def learnable(self) -> bool:
        """Whether some part has relevances."""
        return any(map(has_relevances, self.parts))

    @property
    def _relevant(self) -> list[Learnable]:
        return [part for part in self.parts if has_relevances(part)]

    @property
    def theta(self) -> tuple[float, ...] | None:
        """The relevances of the parts, one after another, or None if those of some part have no values yet."""
        each = [part.theta for part in self._relevant]
        return None if None in each else tuple(value for theta in each for value in theta or ())

    def with_theta(self, theta: Sequence[float] | Array) -> Self:
        """Return the kernel with other relevances, as many as it has."""
        having = self._relevant
        counts = [len(theta)] if len(having) == 1 else list(map(_count, having))
        shares = _shares(theta, counts)
        return self.with_parts([part.with_theta(next(shares)) if has_relevances(part) else part for part in self.parts])

    def times(self, factor: float) -> Self:
        """Return the kernel with all relevances of its parts times a factor."""
        return self.with_theta([factor * theta for theta in self.theta or ()])

    @property
    def isotropic(self) -> Kernel:
        """The kernel with one relevance, to be searched, in every part whose relevances have no values."""
        return self.with_parts([cast(Kernel, part.isotropic) if lacks_theta(part) else part for part in self.parts])

    def from_isotropic(self, kernel: Any, d: int) -> Self:
        """Return the kernel for d features that equals an ``isotropic`` one with values."""
        pairs = zip(self.parts, kernel.parts, strict=True)
        return self.with_parts([part.from_isotropic(equal, d) if lacks_theta(part) else equal for part, equal in pairs])

    def theta_names(self, features: Sequence[str]) -> list[str]:
        """Return a name for each relevance: ``2.income`` is that of a feature in the second part."""
        return [
            prefix + name
            for prefix, part in self._prefixed
            if has_relevances(part)
            for name in names_of(part, features)
        ]

    @property
    def theta_blocks(self) -> list[int]:
        """How many relevances each part has that has any: those of one part are of one kind."""
        return [count for part in self._relevant for count in blocks_of(part)]

    @property
    def differentiable(self) -> tuple[str, ...]:
        """The parameters that relevances of the parts are functions of."""
        return tuple(self._merged(lambda part: dict.fromkeys(part.differentiable) if is_differentiable(part) else {}))

    def log_slopes(self, slopes: Array) -> dict[str, float]:
        """Return derivatives by the logarithms of ``differentiable``, from those by the relevances (p,)."""
        shares = _shares(slopes, map(_count, self._relevant))

        def slopes_of(part: Kernel) -> Mapping[str, float]:
            share = next(shares) if has_relevances(part) else None
            return {} if share is None or not isinstance(part, SupportsLogSlopes) else part.log_slopes(share)

        return self._merged(slopes_of)

    @abstractmethod
    def theta_vjp(self, X: Array, W: Array, K: Array | None = None, Z: Array | None = None) -> Array:
        """Return ``sum_ij W_ij dk(x_i, z_j)/dtheta``, (p,), for W (n, m) and, if it is there already, K (n, m)."""

    def _slopes(self, X: Array, weights: Sequence[Array], Z: Array | None, K: Sequence[Array | None]) -> Array:
        """Return the derivatives by all relevances from the weights of each part and, where known, its Gram matrix."""
        each = zip(self.parts, weights, K, strict=True)
        return np.concatenate([part.theta_vjp(X, W, known, Z) for part, W, known in each if has_relevances(part)])


@dataclass(frozen=True)
class _Several(Combined):
    """Kernels of which a sum in a sum, and a product in a product, is merged.

    Parameters
    ----------
    parts : sequence of Kernel
        At least one.
    """

    numbered: ClassVar[bool] = True

    parts: tuple[Kernel, ...]

    def __post_init__(self) -> None:
        merged: list[Kernel] = []
        for part in self.parts:
            _check_part(self.name, part)
            merged.extend(part.parts if isinstance(part, type(self)) else [part])
        if not merged:
            raise OptionError(f"kernel '{self.name}' needs at least one part")
        object.__setattr__(self, "parts", tuple(merged))

    def with_parts(self, parts: Sequence[Kernel]) -> Self:
        return replace(self, parts=tuple(parts))


@dataclass(frozen=True)
class Sum(_Several):
    """``k(x, z) = k_1(x, z) + ... + k_p(x, z)``; a sum in a sum is merged.

    Parameters
    ----------
    parts : sequence of Kernel
        At least one.
    """

    name: ClassVar[str] = "sum"

    def evaluate(self, stats: Statistics) -> Array:
        K = self.parts[0].evaluate(stats)
        for part in self.parts[1:]:
            K += part.evaluate(stats)
        return K

    def diag(self, X: ArrayLike) -> Array:
        return sum((part.diag(X) for part in self.parts[1:]), start=self.parts[0].diag(X))

    def theta_vjp(self, X: Array, W: Array, K: Array | None = None, Z: Array | None = None) -> Array:
        """Return ``sum_ij W_ij dk(x_i, z_j)/dtheta``, (p,), for W (n, m); K (n, m) is of no use here."""
        count = len(self.parts)
        return self._slopes(X, [W] * count, Z, [None] * count)

    def __str__(self) -> str:
        return " + ".join(map(str, self.parts))


@dataclass(frozen=True)
class Product(_Several):
    """``k(x, z) = k_1(x, z) ... k_p(x, z)``; a product in a product is merged.

    Parameters
    ----------
    parts : sequence of Kernel
        At least one.
    """

    name: ClassVar[str] = "product"

    def evaluate(self, stats: Statistics) -> Array:
        K = self.parts[0].evaluate(stats)
        for part in self.parts[1:]:
            K *= part.evaluate(stats)
        return K

    def diag(self, X: ArrayLike) -> Array:
        return prod((part.diag(X) for part in self.parts[1:]), start=self.parts[0].diag(X))

    def theta_vjp(self, X: Array, W: Array, K: Array | None = None, Z: Array | None = None) -> Array:
        """Return ``sum_ij W_ij dk(x_i, z_j)/dtheta``, (p,), for W (n, m); K (n, m) is of no use here."""
        factors = [part(X, Z) for part in self.parts]
        others = [factors[:i] + factors[i + 1 :] for i in range(len(factors))]
        return self._slopes(X, [prod(rest, start=W) for rest in others], Z, factors)

    def __str__(self) -> str:
        return "*".join(f"({part})" if isinstance(part, Sum | Scale) else str(part) for part in self.parts)


@dataclass(frozen=True)
class Scale(Combined):
    """``k(x, z) = factor k_1(x, z)``; the parameters of the part keep their names.

    Parameters
    ----------
    factor : float
        Greater than 0.
    part : Kernel
        A multiple of a multiple is merged, also of one on some of the features.
    """

    name: ClassVar[str] = "scale"
    positive: ClassVar[tuple[str, ...]] = ("factor",)
    own: ClassVar[tuple[str, ...]] = ("factor",)

    factor: float
    part: Kernel

    def __post_init__(self) -> None:
        _check_part(self.name, self.part)
        if not isinstance(self.factor, numbers.Real):
            raise OptionError(f"kernel 'scale': the factor must be a number, not {self.factor!r}")
        object.__setattr__(self, "factor", self._checked("factor", float(self.factor)))
        if isinstance(self.part, Scale):
            object.__setattr__(self, "factor", self.factor * self.part.factor)
            object.__setattr__(self, "part", self.part.part)
        elif isinstance(self.part, On) and isinstance(self.part.part, Scale):
            multiple = self.part.part
            object.__setattr__(self, "factor", self.factor * multiple.factor)
            object.__setattr__(self, "part", On(self.part.features, multiple.part))
        if "factor" in self.part._fields():
            raise OptionError(f"kernel 'scale': '{self.part.name}' has a parameter 'factor' of its own; set that one")

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The part alone."""
        return (self.part,)

    def with_parts(self, parts: Sequence[Kernel]) -> Self:
        return replace(self, part=parts[0])

    def evaluate(self, stats: Statistics) -> Array:
        K = self.part.evaluate(stats)
        K *= self.factor
        return K

    def diag(self, X: ArrayLike) -> Array:
        return self.factor * self.part.diag(X)

    def theta_vjp(self, X: Array, W: Array, K: Array | None = None, Z: Array | None = None) -> Array:
        """Return ``sum_ij W_ij dk(x_i, z_j)/dtheta``, (p,), for W (n, m) and, if it is there already, K (n, m)."""
        return self.factor * self._slopes(X, [W], Z, [None if K is None else K / self.factor])

    def spec(self) -> dict[str, Any]:
        return {**super().spec(), "factor": self.factor}

    def __str__(self) -> str:
        inner = f"({self.part})" if isinstance(self.part, Sum | Product) else str(self.part)
        return f"{self.factor!r}*{inner}"


@dataclass(frozen=True)
class On(Combined):
    """``k(x, z) = k_1(x_F, z_F)``, where F are some of the features; the parameters of the part keep their names.

    In text it is written with the features behind the kernel, ``gaussian(tau=2)[0, 3]``.

    Parameters
    ----------
    features : sequence of int
        Columns of the encoded data, from 0, each once.
    part : Kernel
        A kernel on some features of some features is merged.
    """

    name: ClassVar[str] = "on"

    features: tuple[int, ...]
    part: Kernel

    def __post_init__(self) -> None:
        _check_part(self.name, self.part)
        given = self.features if isinstance(self.features, Iterable) else (self.features,)
        features = tuple(given)
        whole = all(isinstance(each, numbers.Integral) and not isinstance(each, bool) for each in features)
        if not features or not whole or min(features) < 0 or len(set(features)) < len(features):
            raise OptionError(
                f"kernel 'on': the features must be different whole numbers from 0, not {self.features!r}"
            )
        inner = self.part
        if isinstance(inner, On):
            _check_features(inner.features, len(features))
            features = tuple(features[j] for j in inner.features)
            object.__setattr__(self, "part", inner.part)
        object.__setattr__(self, "features", tuple(map(int, features)))

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The part alone."""
        return (self.part,)

    def with_parts(self, parts: Sequence[Kernel]) -> Self:
        return replace(self, part=parts[0])

    def _columns(self, X: ArrayLike) -> Points:
        rows = as_points(X)
        _check_features(self.features, rows.shape[1])
        return rows[:, list(self.features)]

    def __call__(self, X: ArrayLike, Z: ArrayLike | None = None) -> Array:
        return self.part(self._columns(X), None if Z is None else self._columns(Z))

    def evaluate(self, stats: Statistics) -> Array:
        _check_features(self.features, stats.X.shape[1])
        return self.part.evaluate(stats.on(self.features))

    def diag(self, X: ArrayLike) -> Array:
        return self.part.diag(self._columns(X))

    def tied(self, groups: Sequence[int]) -> Self:
        """The kernel whose relevances are one for each group of the features seen: those of one that are neighbours."""
        numbers_of = np.repeat(np.arange(len(groups)), groups)
        _check_features(self.features, numbers_of.size)
        ends = np.flatnonzero(np.diff(numbers_of[list(self.features)], append=-1))
        return super().tied(np.diff(ends, prepend=-1).tolist())

    def axes(self, X: ArrayLike) -> dict[str, NDArray[Any]]:
        return super().axes(self._columns(X))

    def from_isotropic(self, kernel: object, d: int) -> Self:
        """Return the kernel that equals an ``isotropic`` one with values; d counts the features not seen, too."""
        return super().from_isotropic(kernel, len(self.features))

    def theta_names(self, features: Sequence[str]) -> list[str]:
        """Return a name for each relevance: those of the features that the part sees."""
        return super().theta_names([features[j] for j in self.features])

    def theta_vjp(self, X: Array, W: Array, K: Array | None = None, Z: Array | None = None) -> Array:
        """Return ``sum_ij W_ij dk(x_i, z_j)/dtheta``, (p,), for W (n, m) and, if it is there already, K (n, m)."""
        return self._slopes(self._columns(X), [W], None if Z is None else self._columns(Z), [K])

    def spec(self) -> dict[str, Any]:
        return {**super().spec(), "features": list(self.features)}

    def __str__(self) -> str:
        inner = f"({self.part})" if isinstance(self.part, Sum | Product | Scale) else str(self.part)
        return f"{inner}[{', '.join(map(str, self.features))}]"


def with_groups(kernel: T, groups: Sequence[int]) -> T:
    """Return a kernel with one relevance for each of these numbers of features; without groups, as it is."""
    return kernel.tied(groups) if groups and isinstance(kernel, Kernel) else kernel


ALL = "all features"
"""The name of a relevance that all features share."""


def names_of(kernel: Any, features: Sequence[str]) -> list[str]:
    """Return a name for each relevance of a kernel that has values for them, by the names of the features (d,)."""
    if hasattr(kernel, "theta_names"):
        names: list[str] = kernel.theta_names(features)
        return names
    return list(features) if len(kernel.theta) == len(features) else [ALL]


def _count(kernel: SupportsRelevances[Statistics]) -> int:
    """Return the number of relevances; OptionError if they have no values yet."""
    if kernel.theta is None:
        raise OptionError(
            f"kernel '{kernel}': theta has no value, so that nobody knows how many of the relevances are its own; "
            "give it a value, one for each feature"
        )
    return len(kernel.theta)


def _shares(values: Any, counts: Iterable[int]) -> Iterator[Any]:
    """Give each part its share of what belongs to the relevances, one part after another."""
    return (values[lo:hi] for lo, hi in pairwise([0, *accumulate(counts)]))


def _check_part(name: str, part: object) -> None:
    if not isinstance(part, Kernel):
        raise OptionError(f"kernel '{name}': the parts must be kernels, not {part!r}")


def _check_features(features: Sequence[int], d: int) -> None:
    if max(features) >= d:
        raise OptionError(
            f"kernel 'on': there is no feature {max(features)}; the data have {d} (after encoding, without constant "
            f"columns), from 0 to {d - 1}"
        )
