"""What a comparison hands back: every trial, and what they say of the methods on each table and on all of them.

The JSON document is a contract, version 1: keys may be added, none changes its name or meaning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from kernsel.comparison.published import Published
from kernsel.comparison.trials import Trial
from kernsel.evaluation.significance import Marks, Ranks, friedman, groups_alike, mark, paired
from kernsel.text import finite_or_none, to_json
from kernsel.types import Array, Mask

if TYPE_CHECKING:
    import pandas as pd


FORMAT, VERSION = "kernsel-comparison", 1

BEST, SAME, MAYBE, WORSE = "best", "same", "maybe", "worse"
"""Marks of a method on a table: the best; not significantly worse by the test that is asked for; worse by that test but
not by the one that is corrected for overlapping training sets; worse by both."""


@dataclass(frozen=True, eq=False)
class TableResult:
    """The trials on one table in one case.

    Parameters
    ----------
    rows, train, test : int
        Numbers of rows: in all, to train on, and to test on; means over splits where groups make them differ.
    trials : list of J lists of k Trial
        By split, in the order of the methods.
    errors : (J, k) array
        Shares misclassified, or what the measure of a regression is; NaN where a method failed.
    """

    case: str
    table: str
    task: str
    target: str
    rows: int
    train: int
    test: int
    trials: Sequence[Sequence[Trial]]
    errors: Array

    @property
    def usable(self) -> Mask:
        """Which methods (k,) succeeded on all splits: only they are compared."""
        return np.asarray(np.isfinite(self.errors).all(axis=0))

    @property
    def means(self) -> Array:
        """Mean errors (k,), NaN of a method that failed on a split."""
        return np.asarray(self.errors.mean(axis=0))

    @property
    def deviations(self) -> Array:
        """Standard deviations (k,) over splits; NaN of one split alone."""
        if len(self.errors) < 2:
            return np.full(self.errors.shape[1], np.nan)
        return np.asarray(self.errors.std(axis=0, ddof=1))

    @property
    def seconds(self) -> Array:
        """Median times (k,): the first run of a method may have had to load its code."""
        times = np.array([[trial.seconds for trial in split] for split in self.trials])
        return np.where(self.usable, np.median(times, axis=0), np.nan)

    @property
    def test_share(self) -> float:
        """Share of the rows of a split that are tested on."""
        return self.test / (self.train + self.test)

    @cached_property
    def marks(self) -> Marks | None:
        """The best method and how sure others are worse, of the usable ones; None of one split, or none usable."""
        if len(self.errors) < 2 or not self.usable.any():
            return None
        return mark(self.errors[:, self.usable], self.test_share)

    def words(self, test: str, level: float) -> list[str | None]:
        """Return the mark of each method; None of one that failed, or where there is one split only."""
        found: list[str | None] = [None] * len(self.usable)
        if self.marks is None:
            return found
        for place, j in enumerate(np.flatnonzero(self.usable).tolist()):
            if place == self.marks.best:
                found[j] = BEST
            elif getattr(self.marks, test)[place] >= level:
                found[j] = SAME
            else:
                found[j] = MAYBE if self.marks.corrected[place] >= level else WORSE
        return found

    def failures(self, names: Sequence[str]) -> list[str]:
        """Say which methods failed, how often, and the first reason of each."""
        found = []
        for j, name in enumerate(names):
            reasons = [split[j].failed for split in self.trials if split[j].failed is not None]
            if reasons:
                found.append(f"{name} failed on {len(reasons)} of {len(self.trials)} splits: {reasons[0]}")
        return found

    def chosen(self, j: int) -> dict[str, list[float]]:
        """Return the values of each parameter, and of lambda, that a method chose, split by split."""
        found: dict[str, list[float]] = {}
        for split in self.trials:
            for name, value in {**split[j].parameters, "lambda": split[j].lam}.items():
                if value is not None:
                    found.setdefault(name, []).append(float(value))
        return found


@dataclass(frozen=True, eq=False)
class Duel:
    """Two methods against each other over the tables of a case.

    Parameters
    ----------
    first, second : int
        Numbers of the methods.
    tables : int
        On which both succeeded.
    wins, losses : int
        Tables on which the first one has the lower, or the higher, mean error.
    sure_wins, sure_losses : int
        The same, significantly by the paired t-test corrected for overlapping training sets.
    plain_wins, plain_losses : int
        The same, significantly by the ordinary paired t-test.
    """

    first: int
    second: int
    tables: int
    wins: int
    losses: int
    sure_wins: int
    sure_losses: int
    plain_wins: int
    plain_losses: int


@dataclass(frozen=True, eq=False)
class Outcome:
    """What :func:`kernsel.compare` finds, without its pictures and tables.

    Parameters
    ----------
    names : list of str
        Of the methods.
    told : list of str
        What each method is, beside what all have.
    results : list of TableResult
        One for each case and table.
    test : str
        As in `kernsel.comparison.design.Design`.
    level, rank_level : float
        Of tests on a table, and of those over tables.
    measure : str
        Of a regression.
    shared : str
        Options of a selection that all methods have.
    published : list of Published
        What a paper has printed for the same tables, if this follows its protocol.
    title : str
        What is compared, in one line.
    claims : list of str
        What the paper says, and what is found here.
    environment : mapping
        Versions of the software.
    """

    names: Sequence[str]
    told: Sequence[str]
    results: Sequence[TableResult]
    test: str
    level: float
    rank_level: float
    measure: str
    splits: int
    shared: str = ""
    published: Sequence[Published] = ()
    title: str = ""
    claims: Sequence[str] = ()
    environment: Mapping[str, Any] = field(default_factory=dict)

    @property
    def cases(self) -> list[str]:
        """The names of the cases."""
        return list(dict.fromkeys(result.case for result in self.results))

    def of_case(self, case: str, task: str | None = None) -> list[TableResult]:
        """Return the results of a case, of one task or both."""
        return [each for each in self.results if each.case == case and task in (None, each.task)]

    def ranks(self, case: str) -> tuple[Ranks, list[int]] | None:
        """Return the ranks of the methods over the tables of a case, and the numbers of the methods that are ranked.

        Methods that failed somewhere are left out. None where there are fewer than two tables or methods.
        """
        results = self.of_case(case)
        usable = np.logical_and.reduce([each.usable for each in results])
        ranked = np.flatnonzero(usable)
        if len(results) < 2 or ranked.size < 2:
            return None
        return friedman([each.means[ranked] for each in results], self.rank_level), ranked.tolist()

    def duels(self, case: str) -> list[Duel]:
        """Return the comparison of each pair of methods over the tables of a case."""
        return [self._duel(self.of_case(case), i, j) for i, j in combinations(range(len(self.names)), 2)]

    def _duel(self, results: Sequence[TableResult], i: int, j: int) -> Duel:
        counts = np.zeros(7, dtype=int)
        for each in results:
            if not (each.usable[i] and each.usable[j]):
                continue
            a, b = each.errors[:, i], each.errors[:, j]
            counts += np.array([1, a.mean() < b.mean(), a.mean() > b.mean(), 0, 0, 0, 0])
            if len(a) > 1:
                sure, plain = (paired(a, b, share) for share in (each.test_share, None))
                for place, found in ((3, sure), (5, plain)):
                    counts[place] += found.p < self.level and found.difference < 0
                    counts[place + 1] += found.p < self.level and found.difference > 0
        return Duel(i, j, *counts.tolist())

    @property
    def frame(self) -> pd.DataFrame:
        """One row for each case, table, split and method."""
        import pandas as pd

        rows = [
            {
                "case": each.case,
                "table": each.table,
                "split": number,
                "method": name,
                "error": each.errors[number, j],
                **{key: value for key, value in asdict(split[j]).items() if key not in ("loss", "parameters")},
                **split[j].parameters,
            }
            for each in self.results
            for number, split in enumerate(each.trials)
            for j, name in enumerate(self.names)
        ]
        return pd.DataFrame(rows).rename(columns={"lam": "lambda"})

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON can hold it."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "title": self.title,
            "splits": self.splits,
            "test": self.test,
            "level": self.level,
            "rank_level": self.rank_level,
            "measure": self.measure,
            "shared": self.shared,
            "methods": [{"name": name, "options": told} for name, told in zip(self.names, self.told, strict=True)],
            "results": [self._result(each) for each in self.results],
            "cases": [self._case(case) for case in self.cases],
            "published": [asdict(each) for each in self.published],
            "claims": list(self.claims),
            "environment": dict(self.environment),
        }

    def _result(self, each: TableResult) -> dict[str, Any]:
        found = each.words(self.test, self.level)
        ps: list[dict[str, float] | None] = [None] * len(self.names)
        if each.marks is not None:
            for place, j in enumerate(np.flatnonzero(each.usable).tolist()):
                ps[j] = {test: float(getattr(each.marks, test)[place]) for test in ("t", "corrected", "wilcoxon")}
        return {
            "case": each.case,
            "table": each.table,
            "task": each.task,
            "target": each.target,
            "rows": {"all": each.rows, "train": each.train, "test": each.test},
            "methods": [
                {
                    "name": name,
                    "error": finite_or_none(float(each.means[j])),
                    "deviation": finite_or_none(float(each.deviations[j])),
                    "seconds": finite_or_none(float(each.seconds[j])),
                    "mark": found[j],
                    "p": ps[j],
                    "trials": [asdict(split[j]) | {"error": each.errors[s, j]} for s, split in enumerate(each.trials)],
                }
                for j, name in enumerate(self.names)
            ],
            "failures": each.failures(self.names),
        }

    def _case(self, case: str) -> dict[str, Any]:
        duels = [
            asdict(duel) | {"first": self.names[duel.first], "second": self.names[duel.second]}
            for duel in self.duels(case)
        ]
        found = self.ranks(case)
        if found is None:
            return {"case": case, "ranks": None, "pairs": duels}
        ranks, ranked = found
        return {
            "case": case,
            "ranks": {
                "methods": [self.names[j] for j in ranked],
                "mean_ranks": ranks.mean_ranks.tolist(),
                "F": finite_or_none(ranks.statistic),
                "p": ranks.p,
                "critical_difference": ranks.critical_difference,
                "alike": [[self.names[ranked[j]] for j in group] for group in groups_alike(ranks)],
            },
            "pairs": duels,
        }

    def to_json(self) -> str:
        """Return ``to_dict`` as one JSON document."""
        return to_json(self.to_dict())
