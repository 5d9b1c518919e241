"""The experiment of a paper that compares two numbers of folds, and one that can't read what its paper prints."""

from dataclasses import dataclass
from typing import ClassVar

from kernsel.comparison.published import Printed, Published


@dataclass(frozen=True)
class Acme26:
    name: ClassVar[str] = "acme26"
    title: ClassVar[str] = "Acme 2026"
    options: ClassVar = {"classification": {"learner": "lssvm", "kernel": "gaussian(tau=1)", "search": "grid"}}
    methods: ClassVar = {"classification": {"2-CV": {"folds": 2}, "3-CV": {"folds": 3}}}
    cases: ClassVar = {f"lambda {lam}": {"classification": {"grid": {"lambda": [lam]}}} for lam in (0.1, 0.2)}
    splits: ClassVar = {"count": 2, "train": 24}
    design: ClassVar = {"test": "t", "level": 0.1}

    def beside(self, found):
        result = found.results[0]
        printed = Printed(self.name, "Table 7", result.case, result.table, "3-CV", "error", 0.25, 0.02)
        return [Published(printed, result.table, float(result.means[1]), 0.01)], ["paper: three folds are better"]


@dataclass(frozen=True)
class Torn(Acme26):
    name: ClassVar[str] = "torn"

    def beside(self, found):
        raise ValueError("page 7 is missing")
