"""What a kernel is: a frozen value with named parameters that turns shared statistics into a Gram matrix."""

from __future__ import annotations

import dataclasses
import difflib
import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernsel.errors import OptionError
from kernsel.numerics import gram, sparse, stability
from kernsel.numerics.points import Points, as_points, is_sparse, squared_norms

Array = NDArray[np.float64]
Value = float | int | str | tuple[float, ...]

_SAMPLE = 1000  # rows whose distances set the default widths


class Statistics:
    """What kernels know of two sets of points; each table is computed when first asked for, and kept.

    A grid over widths, and all parts of a sum, share one object, so that distances are computed once.

    Parameters
    ----------
    X : (n, d) array, or sparse matrix of SciPy
    Z : (m, d) array, or sparse matrix, or None
        None stands for X itself; the tables are then exactly symmetric.
    """

    def __init__(self, X: ArrayLike | Points, Z: ArrayLike | Points | None = None) -> None:
        self.X: Points = as_points(X)
        self.Z: Points | None = None if Z is None else as_points(Z)
        self._some: tuple[tuple[int, ...], Statistics] | None = None

    @cached_property
    def inner(self) -> Array:
        """Inner products, (n, m)."""
        return self.gram("inner")

    @cached_property
    def sqdist(self) -> Array:
        """Squared Euclidean distances, (n, m)."""
        return self.gram("sqdist")

    @cached_property
    def l1(self) -> Array:
        """Sums of absolute differences, (n, m)."""
        return self.gram("l1")

    def gram(self, statistic: str, formula: gram.Formula = gram.AS_IT_IS) -> Array:
        """Return a statistic or a formula of it, (n, m), and keep nothing."""
        compute = sparse.gram if is_sparse(self.X) or is_sparse(self.Z) else gram.gram
        return compute(statistic, self.X, self.Z, formula)

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


@dataclass(frozen=True)
class Kernel(ABC):
    """A positive semidefinite function k(x, z), as a frozen dataclass whose fields are its parameters.

    A parameter that is None is free: a search gives it values from ``axes``. A subclass needs ``name``, ``evaluate``
    and ``diag``; most derive from :class:`Pairwise` instead, which asks for one line of NumPy.
    """

    name: ClassVar[str]
    width: ClassVar[str | None] = None
    """The parameter that is a width (larger is smoother), if there is one: ties go to the wider kernel."""
    positive: ClassVar[tuple[str, ...]] = ()
    """Parameters that must be greater than 0."""
    integer: ClassVar[tuple[str, ...]] = ()
    """Parameters that are whole numbers."""
    smoothness: ClassVar[float] = math.inf
    """How often functions of the kernel's space have derivatives, nu of a Matern kernel: 1/2 if they are rough."""
    words: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType({})
    """Parameters that are words, with what each may be."""
    sparse: ClassVar[bool] = False
    """Whether all methods take sparse rows, a csr_array, as X and Z; otherwise dense ones are made for them."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is not None:
                object.__setattr__(self, field.name, self._read(field.name, value))

    def _read(self, name: str, value: Any) -> Value:
        """Return the value of a parameter as it is kept, checked."""
        if name in self.words:
            if value not in self.words[name]:
                close = difflib.get_close_matches(str(value), self.words[name], 1)
                hint = f"; did you mean '{close[0]}'?" if close else ""
                listed = ", ".join(self.words[name])
                raise OptionError(f"kernel '{self.name}': {name} must be one of {listed}, not {value!r}{hint}")
            return str(value)
        if not isinstance(value, numbers.Real) or isinstance(value, bool):
            raise OptionError(f"kernel '{self.name}': {name} must be a number or None, not {value!r}")
        return self._checked(name, float(value))

    def _checked(self, name: str, value: float) -> float | int:
        if not math.isfinite(value) or (name in self.positive and value <= 0):
            wanted = "a finite number greater than 0" if name in self.positive else "a finite number"
            raise OptionError(f"kernel '{self.name}': {name} must be {wanted}, not {value!r}")
        if name not in self.integer:
            return value
        if value != int(value):
            raise OptionError(f"kernel '{self.name}': {name} must be a whole number, not {value!r}")
        return int(value)

    @property
    def scales(self) -> tuple[float, ...]:
        """What distances or inner products of the data are multiplied by, such as ``1 / (2 tau)``, if by anything."""
        return ()

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

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that have a value: numbers, words, or a tuple of numbers."""
        return {name: value for name, value in self._fields().items() if value is not None}

    @property
    def free(self) -> tuple[str, ...]:
        """The names of the parameters that have no value yet."""
        return tuple(name for name, value in self._fields().items() if value is None)

    def _fields(self) -> dict[str, Value | None]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def _written(self) -> dict[str, Value | None]:
        """Return what the kernel can be built from again: its ``parameters``, and None for those freed of a default."""
        freed = [field.name for field in dataclasses.fields(self) if field.default is not None]
        return self.parameters | {name: None for name in self.free if name in freed}

    def with_parameters(self, **values: Value | None) -> Self:
        """Return a kernel with some parameters replaced.

        Raises
        ------
        OptionError
            If the kernel has no parameter of that name.
        """
        self._known(values, self._fields())
        return dataclasses.replace(self, **values)

    @classmethod
    def build(cls, **values: Value | None) -> Self:
        """Return the kernel with these parameters; ``gamma`` is understood where ``from_gamma`` exists."""
        names = [field.name for field in dataclasses.fields(cls)]
        from_gamma = getattr(cls, "from_gamma", None)
        if from_gamma is not None and set(values) == {"gamma"} and values["gamma"] is not None:
            built: Self = from_gamma(values["gamma"])
            return built
        cls._known(values, names if from_gamma is None else [*names, "gamma"])
        if from_gamma is not None and "gamma" in values:
            raise OptionError(f"kernel '{cls.name}': give gamma alone, as a number, or {' and '.join(names)}")
        return cls(**values)

    @classmethod
    def _known(cls, values: Mapping[str, object], names: Mapping[str, object] | list[str]) -> None:
        for name in values:
            if name not in names:
                close = difflib.get_close_matches(name, list(names), 1)
                hint = f"did you mean '{close[0]}'? " if close else ""
                listed = ", ".join(names) or "none"
                raise OptionError(f"kernel '{cls.name}' has no parameter '{name}'; {hint}its parameters: {listed}")

    def conversions(self) -> dict[str, float]:
        """The parameters of the kernel in the conventions of other libraries."""
        return {}

    def spec(self) -> dict[str, Any]:
        """A description that JSON can hold; :func:`kernsel.kernels.from_spec` builds the kernel back."""
        return {"kernel": self.name, "parameters": self._written()}

    def require_fixed(self) -> None:
        """Raise OptionError if a parameter is still free."""
        if self.free:
            raise OptionError(f"kernel '{self.name}': {', '.join(self.free)} has no value; give one or search for it")

    def __str__(self) -> str:
        written = (f"{k}={v if k in self.words else repr(v)}" for k, v in self._written().items())
        return f"{self.name}({', '.join(written)})"

    def __add__(self, other: object) -> Kernel:
        from kernsel.kernels.algebra import Sum

        return Sum((self, other)) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: object) -> Kernel:
        from kernsel.kernels.algebra import Product, Scale

        if isinstance(other, Kernel):
            return Product((self, other))
        return Scale(float(other), self) if isinstance(other, numbers.Real) else NotImplemented

    __rmul__ = __mul__


@dataclass(frozen=True)
class Pairwise(Kernel):
    """A kernel that is a function of one statistic of the pair: ``k(x, z) = profile(s(x, z))``.

    A subclass sets ``statistic`` ("inner", "sqdist" or "l1") and writes ``profile``, plain NumPy, element by element.
    """

    statistic: ClassVar[str]
    sparse: ClassVar[bool] = True

    @abstractmethod
    def profile(self, S: Array) -> Array:
        """Kernel values from statistics, element by element: a new array of the shape of S."""

    def evaluate(self, stats: Statistics) -> Array:
        self.require_fixed()
        return self.profile(getattr(stats, self.statistic))

    def diag(self, X: ArrayLike) -> Array:
        self.require_fixed()
        rows = as_points(X)
        return self.profile(squared_norms(rows) if self.statistic == "inner" else np.zeros(rows.shape[0]))


@dataclass(frozen=True)
class Compiled(Pairwise):
    """A pairwise kernel of one of the compiled families: its Gram matrix is finished tile by tile, in the cache.

    A subclass sets ``statistic`` and writes ``formula`` instead of ``profile``.
    """

    @abstractmethod
    def formula(self) -> gram.Formula:
        """The function of the statistic, by ``gram.exponential``, ``gram.power`` or ``gram.inverse``."""

    def profile(self, S: Array) -> Array:
        return gram.apply(self.formula(), S)

    def compiled(self, X: Points) -> tuple[str, Points, gram.Formula] | None:
        self.require_fixed()
        return self.statistic, X, self.formula()

    def __call__(self, X: ArrayLike, Z: ArrayLike | None = None) -> Array:
        self.require_fixed()
        return Statistics(X, Z).gram(self.statistic, self.formula())

    def scan(self, X: ArrayLike, weights: Array | None = None) -> stability.Scan:
        self.require_fixed()
        rows = as_points(X)
        if is_sparse(rows):
            return super().scan(rows, weights)
        return stability.scan_points(self.statistic, rows, self.formula(), weights)


def width_axis(X: ArrayLike, statistic: str, *, root: bool = False, count: int = 12) -> Array:
    """Geometric grid of widths from ``q10 / 8`` to ``8 q90``, quantiles of the distances between different points.

    Parameters
    ----------
    X : (n, d) array
        Above 1000 rows a fixed random 1000 of them is used.
    statistic : {"sqdist", "l1"}
    root : bool
        Take the square root of the statistic first: widths that are lengths, not squared lengths.
    count : int

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
