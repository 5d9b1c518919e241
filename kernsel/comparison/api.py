"""Compare methods on the same splits of tables."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kernsel.comparison.design import TASKS, Design
from kernsel.comparison.methods import VARIED, Method, check_methods, make_estimator, make_methods, merged
from kernsel.comparison.protocols import Protocol, read_protocol
from kernsel.comparison.result import Comparison, TableResult
from kernsel.comparison.tables import Splits, Table, read_tables
from kernsel.comparison.trials import Trial, run_trial
from kernsel.errors import OptionError, SelectionError
from kernsel.journal import journaling, remember
from kernsel.journal.encoding import fingerprint
from kernsel.parts import check_seed
from kernsel.selection.kernel_source import check_names
from kernsel.selection.plan import WORDS, Plan
from kernsel.selection.result import environment
from kernsel.types import Progress
from kernsel.words import read_options

if TYPE_CHECKING:
    import os

SHARED = ("task", "standardize", "class_weight", "copies", "time", "coordinates")
"""Options that say what a table is, beside those about its columns: they are the same for all methods."""


def compare(
    tables: Any,
    *,
    protocol: str | None = None,
    criteria: Sequence[Any] = (),
    learners: Sequence[Any] = (),
    kernels: Sequence[Any] = (),
    searches: Sequence[Any] = (),
    rules: Sequence[str] = (),
    methods: Mapping[str, Mapping[str, Any]] | None = None,
    against: Sequence[Any] = (),
    splits: int | None = None,
    train: float | int | None = None,
    test_rows: int | None = None,
    split_files: str | os.PathLike[str] | None = None,
    test: str | None = None,
    level: float | None = None,
    measure: str | None = None,
    seed: int = 0,
    journal: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Comparison:
    """Compare methods by the errors of what they choose, on the same random splits of one or more tables.

    On each split every method chooses and fits a model on the training rows, whose encoding and scaling see no other
    row, and the model predicts the others. Methods are compared on each table by paired tests over the splits, and over
    all tables by their ranks.

    Parameters
    ----------
    tables : mapping of str to pair, or pair
        ``(X, y)`` of each table by its name, as :func:`kernsel.select` takes them; or of one table.
    protocol : {"ks14", "ksj", "fbif18", "bif14", "flkl"}, optional
        The experiment of a paper: methods, learner, grids, folds, splits and test are its; what is given besides
        counts in their place. Its printed results stand beside those found.
    criteria, learners, kernels, searches, rules : sequence
        Values of ``criterion``, ``learner``, ``kernel``, ``search`` and ``choose`` of a selection; of several lists all
        combinations are methods.
    methods : mapping of str to mapping, optional
        Further methods by their names: the options of a selection. ``fitted`` names a learner that is fitted with what
        was chosen, where that is another one; ``learned`` holds options of :func:`kernsel.learn_relevances`, by which
        kernel and lambda are found instead.
    against : sequence of str or estimator
        Estimators of scikit-learn's kind, or their import paths, such as ``"sklearn.svm:SVC(C=10)"``. They get the rows
        encoded and scaled as a selection does.
    splits : int, optional
        How often the rows are split at random, by default 10.
    train : float or int, optional
        Share, or number, of the rows to train on, by default 0.7.
    test_rows : int, optional
        Test on at most so many rows.
    split_files : path, optional
        A folder of files ``NAME_splits.npz`` with the splits of tables: arrays ``train`` and ``test`` of numbers of
        rows, one row a split.
    test : {"corrected", "t", "wilcoxon"}, optional
        The test that marks which methods are not significantly worse than the best one on a table: the paired t-test,
        that corrected for overlapping training sets (Nadeau & Bengio 2003), which is the default, or Wilcoxon's signed
        ranks; one-sided.
    level : float, optional
        Of all tests, by default 0.05.
    measure : {"rmse", "mse"}, optional
        The error of a regression.
    seed : int
        Of splits, folds and landmarks.
    journal : path, optional
        Results of single splits are kept in this file: the same call goes on from there after whatever stopped it.
    progress : callable, optional
        Called as ``progress(done, total, text)``.
    **options : optional
        Options of :func:`kernsel.select` that all methods have.

    Returns
    -------
    Comparison

    Raises
    ------
    DataError, OptionError, IncompatibleError, PluginError, SelectionError
        Each says what is wrong and what to do. A method that can't be used on a table is left out there, and
        ``failures`` say why; only where none can be used is that an error.

    References
    ----------
    Demsar 2006 (ranks over tables); Nadeau & Bengio 2003 (corrected t-test).

    Examples
    --------
    ::

        kernsel.compare({"wine": (X, y)}, rules=["safest", "minimum"], against=["sklearn.svm:SVC"], splits=5)
    """
    check_seed(seed)
    asked = read_options("kernsel.compare", options, [*WORDS, *OWN_OPTIONS])
    preset = None if protocol is None else read_protocol(protocol)
    lists = dict(zip(VARIED, (criteria, learners, kernels, searches, rules), strict=True))
    chosen = {"test": test, "level": level, "measure": measure}
    design = _design(preset, lists, methods, against, asked | {"seed": seed}, chosen)
    how = {"count": splits, "train": train, "test": test_rows}
    told = {name: value for name, value in how.items() if value is not None}
    folder = None if split_files is None else Path(split_files)
    parts = Splits(**{**({} if preset is None else preset.splits), **told, "seed": seed, "folder": folder})
    for method in _all_methods(design):
        if method.against is not None:
            make_estimator(method.against, seed)
        else:
            check_names(Plan(**{name: value for name, value in method.options.items() if name in WORDS}))
    of_table = Plan(**{name: value for name, value in asked.items() if name in SHARED or WORDS[name].of == "columns"})
    read = read_tables(tables, of_table, parts)
    for table in read:
        if table.dataset.task not in design.methods:
            raise OptionError(
                f"protocol {protocol} is for {' and '.join(design.methods)}, and table {table.name!r} is a "
                f"{table.dataset.task}: leave it out"
            )
    header = partial(_header, read, design, parts)
    with journaling(journal, header):
        return _compared(read, design, preset, parts, seed, progress)


OWN_OPTIONS = (
    *VARIED,
    *("protocol", "methods", "against", "splits", "train", "test_rows", "split_files", "test", "level", "measure"),
)
"""The options of `compare` itself, for a hint where another one is misspelt."""


def _design(
    preset: Protocol | None,
    lists: Mapping[str, Sequence[Any]],
    named: Mapping[str, Mapping[str, Any]] | None,
    against: Sequence[Any],
    asked: Mapping[str, Any],
    chosen: Mapping[str, Any],
) -> Design:
    """Return what is compared."""
    given = {name: value for name, value in chosen.items() if value is not None}
    if preset is None:
        made = [method.within(asked) for method in make_methods(lists, named, against)]
        check_methods(made)
        return Design(methods=dict.fromkeys(TASKS, made), **given)
    if any(map(len, lists.values())):
        raise OptionError(
            f"protocol {preset.name} has its own methods: leave out {min(n for n, v in lists.items() if len(v))}, or add "
            "methods by their names, or estimators by against"
        )
    more = make_methods({}, named, against)
    if not named:  # estimators are compared with the paper's methods
        more = [method for method in more if method.against is not None]
    methods = {
        task: [method.within(merged(options, asked)) for method in [*preset.methods[task], *more]]
        for task, options in preset.options.items()
    }
    check_methods(next(iter(methods.values())))
    return Design(methods=methods, cases=preset.cases, **{**preset.design, **given})


def _all_methods(design: Design) -> list[Method]:
    return [method for case in design.cases for task in design.methods for method in design.of(case, task)]


def _compared(
    tables: Sequence[Table],
    design: Design,
    preset: Protocol | None,
    splits: Splits,
    seed: int,
    progress: Progress | None,
) -> Comparison:
    """Run all trials."""
    names, results = design.names, []
    total = len(tables) * len(design.cases) * splits.count * len(names)
    done = 0
    for table in tables:
        trials: dict[str, list[list[Trial]]] = {case: [] for case in design.cases}
        for split in table.splits:  # split by split, so that all cases are there early
            for case, found in trials.items():
                row = []
                for method in design.of(case, table.dataset.task):
                    compute = partial(run_trial, table, method, split, seed)
                    row.append(remember("trial", (table.dataset, method.identity, *split, seed), compute, whole=True))
                    done += 1
                    if progress is not None:
                        progress(done, total, f"{table.name} {case} {method.name}".replace("  ", " "))
                found.append(row)
        results += [_result(table, case, found, design.measure) for case, found in trials.items()]
    if not any(result.usable.any() for result in results):
        raise SelectionError(f"no method succeeded on all splits of a table; {results[0].failures(names)[0]}")
    results.sort(key=lambda each: list(design.cases).index(each.case))
    first = design.of(next(iter(design.cases)), tables[0].dataset.task)
    comparison = Comparison(
        names=names,
        told=[method.told for method in first],
        results=results,
        test=design.test,
        level=design.level,
        rank_level=design.over_tables,
        measure=design.measure,
        splits=splits.count,
        title="" if preset is None else preset.title,
        environment=environment(),
    )
    return comparison if preset is None else preset.beside(comparison)


def _result(table: Table, case: str, trials: list[list[Trial]], measure: str) -> TableResult:
    losses = np.array([[trial.loss for trial in row] for row in trials])
    squared = not table.classes and measure == "rmse"
    train, test = table.splits[0]
    return TableResult(
        case=case,
        table=table.name,
        task=table.dataset.task,
        target=str(table.dataset.target),
        rows=table.dataset.n,
        train=train.size,
        test=test.size,
        trials=trials,
        errors=np.sqrt(losses) if squared else losses,
    )


def _header(tables: Sequence[Table], design: Design, splits: Splits) -> dict[str, Any]:
    """Return what tells a comparison from others."""
    data = {
        "fingerprint": fingerprint([[table.dataset, table.name] for table in tables]),
        "rows": sum(table.dataset.n for table in tables),
        "features": max(table.dataset.d for table in tables),
        "source": ", ".join(table.name for table in tables),
        "target": str(tables[0].dataset.target),
        "task": ", ".join(dict.fromkeys(table.dataset.task for table in tables)),
    }
    options: dict[str, Any] = {
        f"{case} {task} {method.name}".strip(): method.told
        for case in design.cases
        for task in design.methods
        for method in design.of(case, task)
    }
    drawn = hashlib.blake2b(digest_size=8)
    for table in tables:
        for part in (part for split in table.splits for part in split):
            drawn.update(part.tobytes())
    return {"command": "compare", "data": data, "options": options | {"splits": f"{splits.count} {drawn.hexdigest()}"}}
