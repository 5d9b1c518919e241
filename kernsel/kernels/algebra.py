"""Sums, products and multiples of kernels are kernels (Aronszajn 1950, part I, sections 6 and 8).

So are restrictions: a kernel that sees some of the features only.

Relevances of a kernel that is made of kernels are those of its parts, one after another. Their derivatives are those of
the parts, for the derivatives W by the entries of K times what dK has of the part: 1 of a term of a sum, the other
factors of a product.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernsel.errors import OptionError
from kernsel.kernels.base import Array, Kernel, Statistics, Value
from kernsel.numerics.points import Points, as_points
from kernsel.protocols import blocks_of, has_relevances


@dataclass(frozen=True)
class Combination(Kernel):
    """Several kernels on the same points; the parameter ``tau`` of the second part is called ``2.tau``.

    Parameters
    ----------
    parts : sequence of Kernel
        At least one. A sum in a sum, or a product in a product, is merged.
    """

    parts: tuple[Kernel, ...]

    def __post_init__(self) -> None:
        merged: list[Kernel] = []
        for part in self.parts:
            if not isinstance(part, Kernel):
                raise OptionError(f"kernel '{self.name}': the parts must be kernels, not {part!r}")
            merged.extend(part.parts if isinstance(part, type(self)) else [part])
        if not merged:
            raise OptionError(f"kernel '{self.name}' needs at least one part")
        object.__setattr__(self, "parts", tuple(merged))

    def _fields(self) -> dict[str, Value | None]:
        return {f"{i}.{name}": value for i, part in enumerate(self.parts, 1) for name, value in part._fields().items()}

    def with_parameters(self, **values: Value | None) -> Self:
        self._known(values, self._fields())
        changed = list(self.parts)
        for name, value in values.items():
            i, _, inner = name.partition(".")
            changed[int(i) - 1] = changed[int(i) - 1].with_parameters(**{inner: value})
        return replace(self, parts=tuple(changed))

    def axes(self, X: ArrayLike) -> dict[str, NDArray[Any]]:
        return {f"{i}.{name}": axis for i, part in enumerate(self.parts, 1) for name, axis in part.axes(X).items()}

    @property
    def sparse(self) -> bool:  # type: ignore[override]  # a class attribute elsewhere, here it is the parts'
        """Whether all parts take sparse rows."""
        return all(part.sparse for part in self.parts)

    @property
    def smoothness(self) -> float:  # type: ignore[override]  # as above
        """That of the roughest part."""
        return min(part.smoothness for part in self.parts)

    @property
    def scales(self) -> tuple[float, ...]:
        return tuple(scale for part in self.parts for scale in part.scales)

    def conversions(self) -> dict[str, float]:
        return {f"{i}.{name}": v for i, part in enumerate(self.parts, 1) for name, v in part.conversions().items()}

    def spec(self) -> dict[str, Any]:
        return {"kernel": self.name, "parts": [part.spec() for part in self.parts]}

    @property
    def learnable(self) -> bool:
        """Whether some part has relevances."""
        return any(map(has_relevances, self.parts))

    @property
    def theta(self) -> tuple[float, ...] | None:
        """The relevances of the parts, one after another, or None if those of some part have no values yet."""
        each = [part.theta for part in self._relevant]
        return None if None in each else tuple(value for theta in each for value in theta)

    @property
    def _relevant(self) -> list[Any]:
        return [part for part in self.parts if has_relevances(part)]

    def with_theta(self, theta: Sequence[float]) -> Self:
        """Return the kernel with other relevances, as many as it has."""
        values, parts = list(theta), list[Kernel]()
        for part in self.parts:
            if has_relevances(part):
                count = _count(part)
                parts.append(part.with_theta(tuple(values[:count])))  # type: ignore[attr-defined]
                del values[:count]
            else:
                parts.append(part)
        return replace(self, parts=tuple(parts))

    @property
    def isotropic(self) -> Kernel:
        """The kernel with one relevance, to be searched, in every part whose relevances have no values."""
        return replace(self, parts=tuple(map(_isotropic, self.parts)))

    def from_isotropic(self, kernel: Any, d: int) -> Self:
        """Return the kernel for d features that equals an ``isotropic`` one with values."""
        pairs = zip(self.parts, kernel.parts, strict=True)
        return replace(self, parts=tuple(_from_isotropic(part, equal, d) for part, equal in pairs))

    def theta_names(self, features: Sequence[str]) -> list[str]:
        """Return a name for each relevance: ``2.income`` is that of a feature in the second part."""
        return [
            f"{i}.{name}"
            for i, part in enumerate(self.parts, 1)
            if has_relevances(part)
            for name in names_of(part, features)
        ]

    @property
    def theta_blocks(self) -> list[int]:
        """How many relevances each part has that has any: those of one part are of one kind."""
        return [count for part in self._relevant for count in blocks_of(part)]

    def _slopes(self, X: ArrayLike, weights: Sequence[Array], Z: ArrayLike | None, K: Sequence[Array | None]) -> Array:
        """Return the derivatives by all relevances from the weights of each part and, where known, its Gram matrix."""
        each: Any = zip(self.parts, weights, K, strict=True)
        return np.concatenate([part.theta_vjp(X, W, known, Z) for part, W, known in each if has_relevances(part)])


@dataclass(frozen=True)
class Sum(Combination):
    """``k(x, z) = k_1(x, z) + ... + k_p(x, z)``."""

    name: ClassVar[str] = "sum"

    def evaluate(self, stats: Statistics) -> Array:
        K = self.parts[0].evaluate(stats)
        for part in self.parts[1:]:
            K += part.evaluate(stats)
        return K

    def diag(self, X: ArrayLike) -> Array:
        k = self.parts[0].diag(X)
        for part in self.parts[1:]:
            k = k + part.diag(X)
        return k

    def theta_vjp(self, X: ArrayLike, W: Array, K: Array | None = None, Z: ArrayLike | None = None) -> Array:
        """Return ``sum_ij W_ij dk(x_i, z_j)/dtheta``, (p,), for W (n, m); K (n, m) is of no use here."""
        count = len(self.parts)
        return self._slopes(X, [W] * count, Z, [None] * count)

    def __str__(self) -> str:
        return " + ".join(map(str, self.parts))


@dataclass(frozen=True)
class Product(Combination):
    """``k(x, z) = k_1(x, z) ... k_p(x, z)``."""

    name: ClassVar[str] = "product"

    def evaluate(self, stats: Statistics) -> Array:
        K = self.parts[0].evaluate(stats)
        for part in self.parts[1:]:
            K *= part.evaluate(stats)
        return K

    def diag(self, X: ArrayLike) -> Array:
        k = self.parts[0].diag(X)
        for part in self.parts[1:]:
            k = k * part.diag(X)
        return k

    def theta_vjp(self, X: ArrayLike, W: Array, K: Array | None = None, Z: ArrayLike | None = None) -> Array:
        """Return ``sum_ij W_ij dk(x_i, z_j)/dtheta``, (p,), for W (n, m); K (n, m) is of no use here."""
        factors = [part(X, Z) for part in self.parts]
        others = [factors[:i] + factors[i + 1 :] for i in range(len(factors))]
        return self._slopes(X, [prod(rest, start=W) for rest in others], Z, factors)

    def __str__(self) -> str:
        return "*".join(f"({part})" if isinstance(part, Sum | Scale) else str(part) for part in self.parts)


@dataclass(frozen=True)
class Scale(Kernel):
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

    factor: float
    part: Kernel

    def __post_init__(self) -> None:
        if not isinstance(self.part, Kernel):
            raise OptionError(f"kernel 'scale': the part must be a kernel, not {self.part!r}")
        if not isinstance(self.factor, int | float):
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
    def width(self) -> str | None:  # type: ignore[override]  # a class attribute elsewhere, here it is the part's
        """The width of the part, if it has one."""
        return self.part.width

    @property
    def sparse(self) -> bool:  # type: ignore[override]  # as above
        """Whether the part takes sparse rows."""
        return self.part.sparse

    @property
    def smoothness(self) -> float:  # type: ignore[override]  # as above
        """That of the part."""
        return self.part.smoothness

    def _fields(self) -> dict[str, Value | None]:
        return {"factor": self.factor, **self.part._fields()}

    def with_parameters(self, **values: Value | None) -> Self:
        self._known(values, self._fields())
        inner = {name: value for name, value in values.items() if name != "factor"}
        factor = values.get("factor", self.factor)
        if not isinstance(factor, int | float):
            raise OptionError("kernel 'scale': the factor must be a number")
        return replace(self, factor=factor, part=self.part.with_parameters(**inner))

    def evaluate(self, stats: Statistics) -> Array:
        K = self.part.evaluate(stats)
        K *= self.factor
        return K

    def diag(self, X: ArrayLike) -> Array:
        return self.factor * self.part.diag(X)

    def axes(self, X: ArrayLike) -> dict[str, NDArray[Any]]:
        return self.part.axes(X)

    @property
    def scales(self) -> tuple[float, ...]:
        return self.part.scales

    def conversions(self) -> dict[str, float]:
        return self.part.conversions()

    @property
    def learnable(self) -> bool:
        """Whether the part has relevances."""
        return has_relevances(self.part)

    @property
    def theta(self) -> tuple[float, ...] | None:
        """The relevances of the part, or None if they have no values yet."""
        part: Any = self.part
        theta: tuple[float, ...] | None = part.theta
        return theta

    def with_theta(self, theta: Sequence[float]) -> Self:
        """Return the kernel with other relevances, as many as it has."""
        part: Any = self.part
        return replace(self, part=part.with_theta(theta))

    @property
    def isotropic(self) -> Kernel:
        """The kernel with one relevance, to be searched, if its relevances have no values."""
        return replace(self, part=_isotropic(self.part))

    def from_isotropic(self, kernel: Any, d: int) -> Self:
        """Return the kernel for d features that equals an ``isotropic`` one with values."""
        return replace(self, part=_from_isotropic(self.part, kernel.part, d))

    def theta_names(self, features: Sequence[str]) -> list[str]:
        """Return a name for each relevance."""
        return names_of(self.part, features)

    @property
    def theta_blocks(self) -> list[int]:
        """How many relevances each part has that has any."""
        return blocks_of(self.part)

    def theta_vjp(self, X: ArrayLike, W: Array, K: Array | None = None, Z: ArrayLike | None = None) -> Array:
        """Return ``sum_ij W_ij dk(x_i, z_j)/dtheta``, (p,), for W (n, m) and, if it is there already, K (n, m)."""
        part: Any = self.part
        return np.asarray(self.factor * part.theta_vjp(X, W, None if K is None else K / self.factor, Z))

    def spec(self) -> dict[str, Any]:
        return {"kernel": "scale", "factor": self.factor, "parts": [self.part.spec()]}

    def __str__(self) -> str:
        inner = f"({self.part})" if isinstance(self.part, Combination) else str(self.part)
        return f"{self.factor!r}*{inner}"


@dataclass(frozen=True)
class On(Kernel):
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
        if not isinstance(self.part, Kernel):
            raise OptionError(f"kernel 'on': the part must be a kernel, not {self.part!r}")
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
    def width(self) -> str | None:  # type: ignore[override]  # a class attribute elsewhere, here it is the part's
        """The width of the part, if it has one."""
        return self.part.width

    @property
    def sparse(self) -> bool:  # type: ignore[override]  # as above
        """Whether the part takes sparse rows."""
        return self.part.sparse

    @property
    def smoothness(self) -> float:  # type: ignore[override]  # as above
        """That of the part."""
        return self.part.smoothness

    def _fields(self) -> dict[str, Value | None]:
        return self.part._fields()

    def with_parameters(self, **values: Value | None) -> Self:
        return replace(self, part=self.part.with_parameters(**values))

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

    def axes(self, X: ArrayLike) -> dict[str, NDArray[Any]]:
        return self.part.axes(self._columns(X))

    def conversions(self) -> dict[str, float]:
        return self.part.conversions()

    @property
    def learnable(self) -> bool:
        """Whether the part has relevances."""
        return has_relevances(self.part)

    @property
    def theta(self) -> tuple[float, ...] | None:
        """The relevances of the part, or None if they have no values yet."""
        part: Any = self.part
        theta: tuple[float, ...] | None = part.theta
        return theta

    def with_theta(self, theta: Sequence[float]) -> Self:
        """Return the kernel with other relevances, as many as it has."""
        part: Any = self.part
        return replace(self, part=part.with_theta(theta))

    @property
    def isotropic(self) -> Kernel:
        """The kernel with one relevance, to be searched, if its relevances have no values."""
        return replace(self, part=_isotropic(self.part))

    def from_isotropic(self, kernel: Any, d: int) -> Self:
        """Return the kernel that equals an ``isotropic`` one with values; d counts the features not seen, too."""
        return replace(self, part=_from_isotropic(self.part, kernel.part, len(self.features)))

    def theta_names(self, features: Sequence[str]) -> list[str]:
        """Return a name for each relevance."""
        return names_of(self.part, [features[j] for j in self.features])

    @property
    def theta_blocks(self) -> list[int]:
        """How many relevances each part has that has any."""
        return blocks_of(self.part)

    def theta_vjp(self, X: ArrayLike, W: Array, K: Array | None = None, Z: ArrayLike | None = None) -> Array:
        """Return ``sum_ij W_ij dk(x_i, z_j)/dtheta``, (p,), for W (n, m) and, if it is there already, K (n, m)."""
        part: Any = self.part
        return np.asarray(part.theta_vjp(self._columns(X), W, K, None if Z is None else self._columns(Z)))

    def spec(self) -> dict[str, Any]:
        return {"kernel": "on", "features": list(self.features), "parts": [self.part.spec()]}

    def __str__(self) -> str:
        inner = f"({self.part})" if isinstance(self.part, Combination | Scale) else str(self.part)
        return f"{inner}[{', '.join(map(str, self.features))}]"


def names_of(kernel: Any, features: Sequence[str]) -> list[str]:
    """Return a name for each relevance of a kernel that has values for them, by the names of the features (d,)."""
    if hasattr(kernel, "theta_names"):
        names: list[str] = kernel.theta_names(features)
        return names
    return list(features) if len(kernel.theta) == len(features) else ["all features"]


def _count(kernel: Any) -> int:
    """Return the number of relevances; OptionError if they have no values yet."""
    if kernel.theta is None:
        raise OptionError(
            f"kernel '{kernel}': theta has no value, so that nobody knows how many of the relevances are its own; "
            "give it a value, one for each feature"
        )
    return len(kernel.theta)


def _isotropic(part: Any) -> Kernel:
    without = has_relevances(part) and part.theta is None
    return part.isotropic if without else part  # type: ignore[no-any-return]


def _from_isotropic(part: Any, equal: Kernel, d: int) -> Kernel:
    without = has_relevances(part) and part.theta is None
    return part.from_isotropic(equal, d) if without else equal


def _check_features(features: Sequence[int], d: int) -> None:
    if max(features) >= d:
        raise OptionError(
            f"kernel 'on': there is no feature {max(features)}; the data have {d} (after encoding, without constant "
            f"columns), from 0 to {d - 1}"
        )


ALGEBRA = ("sum", "product", "scale", "on")
"""The names of the kernels that are made of kernels."""


def combine(name: str, parts: Sequence[Kernel], *, factor: Any = None, features: Any = None) -> Kernel:
    """Build a kernel that is made of kernels from its name, the inverse of their ``spec``."""
    if name in ("scale", "on"):
        what, value = ("a factor", factor) if name == "scale" else ("features", features)
        if value is None or len(parts) != 1:
            raise OptionError(f"kernel '{name}' needs {what} and one part")
        return Scale(value, parts[0]) if name == "scale" else On(value, parts[0])
    return {"sum": Sum, "product": Product}[name](tuple(parts))
