"""The tables of a comparison as rows of cells, for every form that they are written in."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from kernsel.comparison.result import BEST, MAYBE, SAME, Outcome, TableResult
from kernsel.evaluation.significance import groups_alike

DIGITS = 3
"""Significant digits of a regression's error."""

TESTS = {
    "t": "paired t-test",
    "corrected": "paired t-test corrected for overlapping training sets",
    "wilcoxon": "Wilcoxon's signed ranks",
}


class Cell(NamedTuple):
    """A cell of a sheet: its text, and the mark of a method on a table, if it has one."""

    text: str
    mark: str | None = None


@dataclass(frozen=True)
class Sheet:
    """A table to print.

    Parameters
    ----------
    notes : tuple of str
        Printed below.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pages:
    """What is printed of a comparison or a curve, in whatever form.

    Parameters
    ----------
    head : tuple of str
        The first lines.
    legend : mapping of str to str
        What each mark means; empty without marks.
    """

    head: tuple[str, ...]
    sheets: tuple[Sheet, ...]
    legend: Mapping[str, str] = field(default_factory=dict)


def pages_of(comparison: Outcome) -> Pages:
    """Return all that is printed of a comparison."""
    found = sheets(comparison)
    if len({each.table for each in comparison.results}) > 1:
        found += [duels_sheet(comparison, case) for case in comparison.cases]
    meant = legend(comparison) if comparison.splits > 1 else {}  # one split alone has no tests
    return Pages(tuple(head_of(comparison)), (*found, methods_sheet(comparison)), meant)


def sheets(comparison: Outcome) -> list[Sheet]:
    """Return all sheets of a comparison: errors of each case, what was chosen, times, and what a paper prints."""
    found = [
        _errors(comparison, case, task)
        for case in comparison.cases
        for task in dict.fromkeys(each.task for each in comparison.of_case(case))
    ]
    found += [_chosen(comparison, case) for case in comparison.cases]
    found += [sheet for case in comparison.cases if (sheet := _proofs(comparison, case)) is not None]
    found.append(_times(comparison))
    if comparison.published:
        found.append(_published(comparison))
    return found


def legend(comparison: Outcome) -> dict[str, str]:
    """Return what each mark of the errors means."""
    level = f"{100 * comparison.level:g} %"
    found = {
        BEST: "the least mean error",
        SAME: f"not significantly worse than that ({TESTS[comparison.test]}, one-sided, {level})",
    }
    if comparison.test != "corrected":
        found[MAYBE] = f"significantly worse by that test, but not by the {TESTS['corrected']}"
    return found


def _errors(comparison: Outcome, case: str, task: str) -> Sheet:
    results = comparison.of_case(case, task)
    classes = task == "classification"
    what = "misclassified, %" if classes else f"test {comparison.measure.upper()} in units of the target"
    spread = f" (mean and standard deviation over {comparison.splits} splits)" if comparison.splits > 1 else ""
    rows = []
    for each in results:
        words = each.words(comparison.test, comparison.level)
        cells = [
            Cell(number(each.means[j], each.deviations[j], classes), words[j]) for j in range(len(comparison.names))
        ]
        rows.append((Cell(each.table), *cells))
    notes = [f"{each.table}: {text}" for each in results for text in each.failures(comparison.names)]
    both = len({each.task for each in comparison.of_case(case)}) > 1
    last = both and task != comparison.of_case(case)[-1].task
    if not last and (found := comparison.ranks(case)) is not None:
        ranks, ranked = found
        placed = dict(zip(ranked, ranks.mean_ranks, strict=True))
        cells = [Cell(f"{placed[j]:.2f}" if j in placed else "-") for j in range(len(comparison.names))]
        rows.append((Cell("mean rank"), *cells))
        notes += _words_of_ranks(comparison, case)
    title = f"{case}: {what}" if case else what
    return Sheet(title + spread, ("", *comparison.names), tuple(rows), tuple(notes))


def _words_of_ranks(comparison: Outcome, case: str) -> list[str]:
    found = comparison.ranks(case)
    assert found is not None
    ranks, ranked = found
    tables = len(comparison.of_case(case))
    F = "infinite" if math.isinf(ranks.statistic) else f"{ranks.statistic:.3g}"
    alike = [", ".join(comparison.names[ranked[j]] for j in group) for group in groups_alike(ranks)]
    words = [
        f"ranks over {tables} tables: Friedman's F (Iman & Davenport) = {F}, p = {ranks.p:.2g}; mean ranks that differ "
        f"by less than {ranks.critical_difference:.2f} are not significantly apart (Nemenyi, {ranks.level:g})"
    ]
    return words + ([f"not apart: {'; '.join(alike)}"] if alike else ["all methods are significantly apart"])


def number(mean: float, deviation: float, classes: bool) -> str:
    """Return an error with its deviation: percent of classes, else significant digits."""
    if not math.isfinite(mean):
        return "failed"
    if classes:
        text = f"{100 * mean:.2f}"
        return text if math.isnan(deviation) else f"{text} ± {100 * deviation:.2f}"
    text = f"{mean:.{DIGITS}g}"
    return text if math.isnan(deviation) else f"{text} ± {deviation:.2g}"


def _chosen(comparison: Outcome, case: str) -> Sheet:
    results = comparison.of_case(case)
    rows = [
        (Cell(each.table), *(Cell(words_of_choices(each, j)) for j in range(len(comparison.names)))) for each in results
    ]
    what = "median of what was chosen over splits, with its range"
    return Sheet(f"{case}: {what}" if case else what, ("", *comparison.names), tuple(rows))


def words_of_choices(result: TableResult, j: int) -> str:
    """Return what a method chose on a table: the kernel where it varies, and each parameter that does."""
    kinds = [split[j].kernel.split("(")[0] for split in result.trials if split[j].kernel]
    counted = sorted({kind: kinds.count(kind) for kind in kinds}.items(), key=lambda each: -each[1])
    words = [f"{kind} {count}" for kind, count in counted] if len(counted) > 1 else []
    for name, values in result.chosen(j).items():
        middle, low, high = (f"{value:.3g}" for value in (np.median(values), min(values), max(values)))
        words.append(f"{name} {middle}" if low == high else f"{name} {middle} [{low}, {high}]")
    return ", ".join(words) or "-"


def _proofs(comparison: Outcome, case: str) -> Sheet | None:
    """Return what was proved of the choices, and at what work; None where no selection certifies."""
    rows = []
    for each in comparison.of_case(case):
        cells = []
        for j in range(len(comparison.names)):
            found = [(t.proved, t.work) for split in each.trials if (t := split[j]).proved is not None]
            proved, work = np.median(np.array(found, float), axis=0) if found else (np.nan, np.nan)
            told = f"{100 * proved:.2f} %" if proved < 1 else "nothing"
            cells.append(Cell(f"{told} at {100 * work:.0f} %" if found else "-"))
        rows.append((Cell(each.table), *cells))
    if all(cell.text == "-" for row in rows for cell in row[1:]):
        return None
    what = "the lowest exact score is proved within a share of the best, at a share of exhaustive work (medians)"
    return Sheet(f"{case}: {what}" if case else what, ("", *comparison.names), tuple(rows))


def _times(comparison: Outcome) -> Sheet:
    rows = []
    for each in comparison.results:
        name = f"{each.table} ({each.case})" if each.case else each.table
        times = [Cell(f"{value:.3g}" if math.isfinite(value) else "-") for value in each.seconds]
        rows.append((Cell(name), *times))
    note = "the machine may have done other work meanwhile: only ratios mean something"
    return Sheet("median seconds to choose and fit", ("", *comparison.names), tuple(rows), (note,))


def _published(comparison: Outcome) -> Sheet:
    rows = []
    for each in comparison.published:
        printed = each.printed
        factor = 100.0 if printed.what == "error" else 1.0
        apart = "" if math.isnan(each.apart) or printed.what == "seconds" else f"{each.apart:+.1f}"
        pair = [
            f"{factor * mean:.4g}" + ("" if math.isnan(error) else f" ± {factor * error:.2g}")
            for mean, error in ((printed.mean, printed.error), (each.mean, each.error))
        ]
        what = {"error": "%", "mse": "MSE", "seconds": "s"}[printed.what]
        texts = (printed.place, printed.case, each.table, printed.method, what, *pair, apart)
        rows.append(tuple(map(Cell, texts)))
    head = ("in the paper", "case", "table", "method", "", "printed", "here", "apart")
    note = "mean and its standard error; apart: their difference in standard errors"
    return Sheet("printed and found", head, tuple(rows), (note, *comparison.claims))


def methods_sheet(comparison: Outcome) -> Sheet:
    """Return what each method is."""
    rows = [(Cell(name), Cell(told)) for name, told in zip(comparison.names, comparison.told, strict=True)]
    notes = (f"all: {comparison.shared}",) if comparison.shared else ()
    return Sheet("methods", ("name", "what it is"), tuple(rows), notes)


def duels_sheet(comparison: Outcome, case: str) -> Sheet:
    """Return on how many tables each pair of methods differs, and how surely."""
    rows = []
    for duel in comparison.duels(case):
        names = f"{comparison.names[duel.first]} against {comparison.names[duel.second]}"
        counts = (
            (duel.wins, duel.losses),
            (duel.plain_wins, duel.plain_losses),
            (duel.sure_wins, duel.sure_losses),
        )
        rows.append((Cell(names), *(Cell(f"{better} : {worse}") for better, worse in counts)))
    title = f"tables on which the first is better : worse{f' ({case})' if case else ''}"
    return Sheet(title, ("pair", "mean error", "paired t", "corrected t"), tuple(rows))


def head_of(comparison: Outcome) -> Sequence[str]:
    """Return the first lines: what was compared, on which rows."""
    first = comparison.results[0]
    share = f"{first.train} rows to train on and {first.test} to test on" if len(comparison.results) == 1 else ""
    tables = list(dict.fromkeys(each.table for each in comparison.results))
    words = (
        f"{len(comparison.names)} methods on {len(tables)} table{'s' * (len(tables) > 1)}, {comparison.splits} splits"
    )
    return [*([comparison.title] if comparison.title else []), ", ".join([words, *([share] if share else [])])]
