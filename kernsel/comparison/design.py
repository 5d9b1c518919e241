"""What is compared with what, on which splits: read from the words of a command or a call, or from a protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernsel.comparison.methods import Method, merged
from kernsel.errors import OptionError
from kernsel.text import listing

TESTS = ("t", "corrected", "wilcoxon")
"""Tests that tell the best method from others on a table: see `kernsel.evaluation.significance.Marks`."""

MEASURES = ("rmse", "mse")
"""What is told of a regression."""

TASKS = ("classification", "regression")

Options = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Design:
    """The plan of a comparison.

    Parameters
    ----------
    methods : mapping of str to list of Method
        By task; all have the same names.
    options : mapping of str to mapping
        What all methods have, by task; a method's own options count.
    cases : mapping of str to mapping
        By the name of the case, the options that all methods have in it in their place, by task. Each case is a
        comparison of its own, such as one for each lambda that is not chosen.
    test : {"t", "corrected", "wilcoxon"}
        Which methods are marked as no worse than the best one.
    level : float
        Of tests on a table.
    rank_level : float or None
        Of tests over tables, if it is another one.
    measure : {"rmse", "mse"}
        Of a regression.
    """

    methods: Mapping[str, Sequence[Method]]
    options: Mapping[str, Options]
    cases: Mapping[str, Mapping[str, Options]] = field(default_factory=lambda: {"": {}})
    test: str = "corrected"
    level: float = 0.05
    rank_level: float | None = None
    measure: str = "rmse"

    def __post_init__(self) -> None:
        if self.test not in TESTS:
            raise OptionError(f"the test that marks methods is {listing(TESTS, 'or')}, not {self.test!r}")
        if self.measure not in MEASURES:
            raise OptionError(f"the measure of a regression is {listing(MEASURES, 'or')}, not {self.measure!r}")
        for level in (self.level, self.over_tables):
            if not 0 < level < 1:
                raise OptionError(f"level is a probability, such as 0.05, not {level!r}")

    @property
    def over_tables(self) -> float:
        """The level of tests over tables."""
        return self.level if self.rank_level is None else self.rank_level

    @property
    def names(self) -> list[str]:
        """The names of the methods, in their order."""
        return [method.name for method in self.methods[TASKS[0]]]

    def of(self, case: str, task: str) -> list[Method]:
        """Return the methods of a case, with all their options."""
        options = merged(self.options[task], self.cases[case].get(task, {}))
        return [method.within(options) for method in self.methods[task]]
