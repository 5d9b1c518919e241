"""Frozen values with named parameters, checked when they are made: what kernels are before they are functions."""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Self

from kernsel.errors import OptionError
from kernsel.protocols import Value
from kernsel.text import meant


@dataclass(frozen=True)
class Parametric:
    """A frozen dataclass whose fields are its parameters: numbers, words, or tuples of numbers.

    A parameter that is None is free: a search gives it values.
    """

    name: ClassVar[str]
    positive: ClassVar[tuple[str, ...]] = ()
    """Parameters that must be greater than 0."""
    integer: ClassVar[tuple[str, ...]] = ()
    """Parameters that are whole numbers."""
    words: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType({})
    """Parameters that are words, with what each may be."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is not None:
                object.__setattr__(self, field.name, self._read(field.name, value))

    def _read(self, name: str, value: object) -> Value:
        """Return the value of a parameter as it is kept, checked."""
        if name in self.words:
            if value not in self.words[name]:
                listed = ", ".join(self.words[name])
                hint = meant(str(value), self.words[name])
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

    def _read_numbers(self, name: str, value: Any, least: float, wanted: str) -> tuple[float, ...]:
        """Return a tuple of finite numbers of at least ``least``; ``wanted`` goes on about them in an error."""
        listed = isinstance(value, Iterable) and not isinstance(value, str) and getattr(value, "ndim", 1) == 1
        values = tuple(value) if listed else ()
        if not values or not all(_is_number(each) and math.isfinite(each) and each >= least for each in values):
            given = " ".join(repr(value).split())  # on one line
            raise OptionError(f"kernel '{self.name}': {name} must be finite numbers{wanted}, not {given}")
        return tuple(map(float, values))

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that have a value: numbers, words, or a tuple of numbers."""
        return {name: value for name, value in self._fields().items() if value is not None}

    @property
    def free(self) -> tuple[str, ...]:
        """The names of the parameters that have no value yet."""
        return tuple(name for name, value in self._fields().items() if value is None)

    def require_fixed(self) -> None:
        """Raise OptionError if a parameter is still free."""
        if self.free:
            raise OptionError(f"kernel '{self.name}': {', '.join(self.free)} has no value; give one or search for it")

    def _fields(self) -> dict[str, Value | None]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def _written(self) -> dict[str, Value | None]:
        """Return what it can be built from again: its ``parameters``, and None for those freed of a default."""
        freed = [field.name for field in dataclasses.fields(self) if field.default is not None]
        return self.parameters | {name: None for name in self.free if name in freed}

    def with_parameters(self, **values: Value | None) -> Self:
        """Return the kernel with some parameters replaced.

        Raises
        ------
        OptionError
            If it has no parameter of that name.
        """
        self._check_names(values, self._fields())
        return dataclasses.replace(self, **values)

    @classmethod
    def build(cls, **values: Value | None) -> Self:
        """Return the kernel with these parameters; ``gamma`` is understood where ``from_gamma`` exists."""
        names = [field.name for field in dataclasses.fields(cls)]
        from_gamma = getattr(cls, "from_gamma", None)
        if from_gamma is not None and set(values) == {"gamma"} and values["gamma"] is not None:
            built: Self = from_gamma(values["gamma"])
            return built
        cls._check_names(values, names if from_gamma is None else [*names, "gamma"])
        if from_gamma is not None and "gamma" in values:
            raise OptionError(f"kernel '{cls.name}': give gamma alone, as a number, or {' and '.join(names)}")
        return cls(**values)

    @classmethod
    def _check_names(cls, values: Iterable[str], names: Iterable[str]) -> None:
        """Raise OptionError if a value is given to a parameter that is none of ``names``."""
        names = list(names)
        for name in values:
            if name not in names:
                hint, listed = meant(name, names) or ";", ", ".join(names) or "none"
                raise OptionError(f"kernel '{cls.name}' has no parameter '{name}'{hint} its parameters: {listed}")

    def spec(self) -> dict[str, Any]:
        """Return a description that JSON can hold; :func:`kernsel.kernels.from_spec` builds the kernel back."""
        return {"kernel": self.name, "parameters": self._written()}

    def __str__(self) -> str:
        written = (f"{k}={v if k in self.words else repr(v)}" for k, v in self._written().items())
        return f"{self.name}({', '.join(written)})"


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
