"""What a learner is: a loss, whether there is a bias, and the tasks it is for."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from kernsel.errors import OptionError
from kernsel.learners.losses import Loss, Measure
from kernsel.text import listing, meant
from kernsel.types import Array


@dataclass(frozen=True)
class Learner:
    """Minimise ``(1/n) sum_i V(y_i, f(x_i) + b) + lambda ||f||^2`` over the functions f of a kernel and the bias b.

    A subclass sets ``name`` and ``tasks`` and gives the loss V; fitting belongs to the library. Without a bias b is 0;
    a learner that leaves the choice has a field ``bias``.
    """

    name: ClassVar[str]
    tasks: ClassVar[tuple[str, ...]]
    elsewhere: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("C", "alpha", "lam"), "the regularisation is lambda, whose values belong to the grid, as lambda=0.01,0.1"
    )
    """What to use instead of parameters that people may expect here."""

    in_robust_units: ClassVar[str] = ""
    """What of the learner is measured in units of the target, in words: a selection then takes units that outliers
    don't move. Empty: standard deviations."""

    _in_sklearn: ClassVar[str] = ""
    """The class of scikit-learn that has the loss, with ``C = 1 / (2 n lambda)``, if one has it."""

    _unlike: ClassVar[tuple[str, str]] = ("", "")
    """What that class does otherwise: where the learner has no bias, and where it has one."""

    @property
    def bias(self) -> bool:
        """Whether there is a bias b, which is not penalised."""
        return False

    @property
    def loss(self) -> Loss:
        """The loss V."""
        raise NotImplementedError

    @property
    def counterpart(self) -> str:
        """The class of scikit-learn that ``conversions`` is for, and what it does otherwise; empty if there is none."""
        return self._in_sklearn + self._unlike[self.bias]

    def conversions(self, n: float, lam: float) -> dict[str, float]:
        """Return the parameters in the conventions of other libraries, for ``n`` rows (or their summed weights)."""
        return {"C": half_penalty(n, lam)} if self._in_sklearn else {}


@dataclass(frozen=True)
class Tunable(Learner):
    """A learner whose loss has parameters that a search may vary: those that are None are free.

    Losses with different parameters can't be compared by themselves: the wider tube always has the lower loss. So a
    search has its learners ``comparable``: their held-out outputs are scored by ``measure``, the same for all.

    Parameters
    ----------
    comparable : bool
        Whether held-out outputs are scored by ``measure`` instead of the loss; a search over parameters sets it.
    """

    searchable: ClassVar[tuple[str, ...]]
    """The parameters that a search may vary: finite numbers of at least 0."""
    positive: ClassVar[tuple[str, ...]] = ()
    """Those of them that must be greater than 0."""
    measure: ClassVar[Measure]
    """What learners of this family are compared by."""

    comparable: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        for name in self.searchable:
            value = getattr(self, name)
            if value is None:
                continue
            number = float(value) if isinstance(value, numbers.Real) else math.nan
            if not (0 <= number < math.inf) or (number == 0 and name in self.positive):
                least = "greater than 0" if name in self.positive else "of at least 0"
                raise OptionError(f"learner '{self.name}': {name} must be a finite number {least}, not {value!r}")
            object.__setattr__(self, name, number)

    def axes(self, Y: Array) -> dict[str, Array]:
        """Default values to search for each free parameter, ascending, in the scale of the targets Y (k, n)."""
        raise NotImplementedError

    @property
    def parameters(self) -> dict[str, float]:
        """The searchable parameters that have a value."""
        return {name: getattr(self, name) for name in self.searchable if name not in self.free}

    @property
    def free(self) -> tuple[str, ...]:
        """The names of the parameters that have no value yet."""
        return tuple(name for name in self.searchable if getattr(self, name) is None)

    def with_parameters(self, **values: float | None) -> Self:
        """Return a learner with some of the searchable parameters replaced.

        Raises
        ------
        OptionError
            If the learner has no parameter of that name, or can't have the value.
        """
        for name in values:
            if name not in self.searchable:
                hint = f"{meant(name, self.searchable)}; those that can be searched: {listing(self.searchable)}"
                raise OptionError(f"learner '{self.name}' has no parameter '{name}'{hint}")
        changes: dict[str, Any] = dict(values)
        return replace(self, **changes)

    def freed(self, names: Mapping[str, object]) -> Self:
        """Return the learner with those of ``names`` free that are parameters of it, comparable if any are free."""
        freed = self.with_parameters(**{name: None for name in self.searchable if name in names})
        return replace(freed, comparable=self.comparable or bool(freed.free))

    def _loss(self, loss: Loss, *names: str) -> Loss:
        """Return a loss with the values of these parameters, and with the measure it is to be scored by."""
        if self.free:
            raise OptionError(f"learner '{self.name}': {listing(self.free)} has no value; give one or search for it")
        parameters = tuple(float(getattr(self, name)) for name in names)
        return replace(loss, parameters=parameters, measure=self.measure if self.comparable else None)


def geometric(least: float, factor: float, count: int) -> Array:
    """Return ``least * factor^k`` for k below ``count``."""
    return np.asarray(least * factor ** np.arange(count), dtype=np.float64)


def half_penalty(n: float, lam: float) -> float:
    """Return ``C = 1 / (2 n lambda)`` of the objective ``C sum_i V(y_i, f_i) + ||f||^2 / 2``, ours over 2 lambda."""
    return 1.0 / (2.0 * n * lam)
