"""Compare methods on the same splits of tables."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from kernsel import protocols, registry
from kernsel.comparison.comparison import Comparison
from kernsel.comparison.design import TASKS, Design
from kernsel.comparison.methods import (
    VARIED,
    Method,
    check_methods,
    choosable,
    make_estimator,
    make_methods,
    merged,
    shared_options,
    words_of_options,
)
from kernsel.comparison.published import Published
from kernsel.comparison.result import Outcome, TableResult
from kernsel.comparison.tables import Split, Splits, Table, describe_data, read_tables
from kernsel.comparison.trials import Trial, run_trial
from kernsel.errors import OptionError, PluginWarning, SelectionError
from kernsel.journal import journaling, remember
from kernsel.journal.encoding import fingerprint
from kernsel.parts import check_seed
from kernsel.selection.kernel_source import check_names
from kernsel.selection.plan import WORDS, Plan
from kernsel.selection.result import environment
from kernsel.text import listing, meant
from kernsel.types import Progress
from kernsel.words import read_options

if TYPE_CHECKING:
    import os

PaperExperiment: TypeAlias = protocols.Experiment[Outcome, Published]
"""The experiment of a paper, as plugins have them."""

SHARED = ("task", "standardize", "class_weight", "copies", "when", "coordinates")
"""Options that say what a table is, beside those about its columns: they are the same for all methods."""


def compare(
    tables: Any,
    *,
    groups: Any = None,
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
    groups : (n,) array, or mapping of str to array, optional
        The group of each row, by the table's name where there are several tables. Rows of one group are never on both
        sides of a split, nor in two folds of a selection.
    protocol : str, optional
        The experiment of a paper, such as "ks14" of the package kernsel-papers: methods, learner, grids, folds, splits
        and test are its; what is given besides counts in their place. Its printed results stand beside those found.
    criteria, learners, kernels, searches, rules : sequence
        Values of ``criterion``, ``learner``, ``kernel``, ``search`` and ``choose`` of a selection; of several lists all
        combinations are methods.
    methods : mapping of str to mapping, optional
        Further methods by their names: the options of a selection. ``fitted`` names a learner that is fitted with what
        was chosen, where that is another one; ``learned`` holds options of :func:`kernsel.learn_relevances`, and
        ``weighted`` those of :func:`kernsel.learn_mkl`, by which the kernel is found instead, and lambda too where they
        look at fits; ``ridges`` holds values of n lambda to search.
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
    experiment = plan_experiment(
        tables,
        groups=groups,
        protocol=protocol,
        lists=dict(zip(VARIED, (criteria, learners, kernels, searches, rules), strict=True)),
        methods=methods,
        against=against,
        design={"test": test, "level": level, "measure": measure},
        splits={"count": splits, "train": train, "test": test_rows, "folder": split_files},
        seed=seed,
        options=options,
    )
    with journaling(journal, experiment.header):
        return experiment.run(progress)


OWN_OPTIONS = (
    *VARIED,
    *("groups", "protocol", "methods", "against"),
    *("splits", "train", "test_rows", "split_files", "test", "level", "measure"),
)
"""The options of `compare` itself, for a hint where another one is misspelt."""


@dataclass(frozen=True, eq=False)
class ReadyComparison:
    """A comparison that is ready to run."""

    tables: Sequence[Table]
    design: Design
    preset: PaperExperiment | None
    splits: Splits

    def header(self) -> dict[str, Any]:
        """Return what tells it from others."""
        methods = {
            f"{case} {task} {method.name}".strip(): f"{method.against or words_of_options(method.options)}"
            for case in self.design.cases
            for task in self.design.methods
            for method in self.design.of(case, task)
        }
        first = fingerprint([part for table in self.tables for part in table.splits[0]])  # more splits may be asked for
        return {
            "command": "compare",
            "data": describe_data({table.name: table.dataset for table in self.tables}),
            "options": methods | {"rows of the first split": first[:8]},
            "steps": {"trial": self.total},
        }

    @property
    def total(self) -> int:
        """How many trials there are: one for each table, case, split and method."""
        return len(self.tables) * len(self.design.cases) * self.splits.count * len(self.design.names)

    def run(self, progress: Progress | None = None) -> Comparison:
        """Return the comparison."""
        names, cases = self.design.names, list(self.design.cases)
        total, done = self.total, 0
        results, worked = [], set[str]()
        for table in self.tables:
            trials: dict[str, list[list[Trial]]] = {case: [] for case in cases}
            for split in table.splits:  # split by split, so that all cases are there early
                for case, found in trials.items():
                    row = []
                    for method in self.design.of(case, table.dataset.task):
                        try:
                            row.append(self._trial(table, method, split))
                        except OptionError as error:
                            if method.name not in worked and not self._works_somewhere(method.name, case):
                                raise OptionError(f"method {method.name!r}: {error}") from error
                            row.append(Trial(math.nan, failed=str(error)))
                        worked.add(method.name)
                        done += 1
                        if progress is not None:
                            progress(done, total, " ".join(filter(None, [table.name, case, method.name])))
                    found.append(row)
            results += [_result(table, case, found, self.design.measure) for case, found in trials.items()]
        if not any(result.usable.any() for result in results):
            raise SelectionError(f"no method succeeded on all splits of a table; {results[0].failures(names)[0]}")
        results.sort(key=lambda each: cases.index(each.case))
        task = self.tables[0].dataset.task
        methods = [method.within(self.design.options[task]) for method in self.design.methods[task]]
        shared = shared_options(methods)
        comparison = Comparison(
            names=names,
            told=[method.told(shared) for method in methods],
            shared=words_of_options(shared),
            results=results,
            test=self.design.test,
            level=self.design.level,
            rank_level=self.design.over_tables,
            measure=self.design.measure,
            splits=self.splits.count,
            title="" if self.preset is None else self.preset.title,
            environment=environment(),
        )
        if self.preset is None:
            return comparison
        try:
            published, claims = self.preset.beside(comparison)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # what was found is worth more than what stands beside it
            why = registry.blame(error, self.preset)
            warnings.warn(f"{why}; the paper's figures are left out, tell its authors", PluginWarning, stacklevel=2)
            return comparison
        return replace(comparison, published=published, claims=claims)

    def check_chosen(self, names: Iterable[str]) -> None:
        """Raise OptionError unless each of the names is of something that a method may choose."""
        known = sorted(set[str]().union(*map(choosable, _all_methods(self.design))))
        for name in names:
            bare = re.sub(r"^(\d+\.)+", "", name)  # 2.tau is of the second kernel of a sum
            if not {name, bare} & set(known):
                hint = meant(name, known)
                raise OptionError(f"no method can choose {name!r}{hint or ';'} there are {listing(known)}")

    def _works_somewhere(self, name: str, case: str) -> bool:
        """Tell what a table can't have from a mistake, which no split of any table can have."""
        for table in self.tables:
            (method,) = (each for each in self.design.of(case, table.dataset.task) if each.name == name)
            for split in table.splits:
                with suppress(OptionError):
                    self._trial(table, method, split)
                    return True
        return False

    def _trial(self, table: Table, method: Method, split: Split) -> Trial:
        given = table.dataset, method.identity, *split, self.splits.seed
        compute = partial(run_trial, table, method, split, self.splits.seed)
        return remember("trial", given, compute, whole=True)


def plan_experiment(
    tables: Any,
    *,
    groups: Any = None,
    protocol: str | None = None,
    lists: Mapping[str, Sequence[Any]],
    methods: Mapping[str, Mapping[str, Any]] | None = None,
    against: Sequence[Any] = (),
    design: Mapping[str, Any],
    splits: Mapping[str, Any],
    seed: int = 0,
    options: Mapping[str, Any],
) -> ReadyComparison:
    """Read what :func:`compare` is asked for, and check all that can be checked before the work.

    Parameters
    ----------
    tables, groups, protocol : optional
        As in :func:`compare`.
    lists : mapping of str to sequence
        Values by a name of ``VARIED``.
    methods, against : optional
        As in :func:`compare`.
    design, splits : mapping
        Fields of Design and of Splits; those that are None are as usual, or the protocol's.
    options : mapping
        Options of a selection that all methods have.
    """
    check_seed(seed)
    asked = read_options("kernsel.compare", options, [*WORDS, *OWN_OPTIONS])
    preset: PaperExperiment | None = None if protocol is None else registry.build("experiment", protocol)
    made = _design(preset, lists, methods, against, {**asked, "seed": seed}, _given(design))
    how = {**({} if preset is None else preset.splits), **_given(splits), "seed": seed}
    if "folder" in how:
        how["folder"] = Path(how["folder"])
    for method in _all_methods(made):
        if method.against is not None:
            make_estimator(method.against, seed)
        else:
            check_names(Plan(**{name: value for name, value in method.options.items() if name in WORDS}))
    of_table = {name: value for name, value in asked.items() if name in SHARED or WORDS[name].of == "columns"}
    parts = Splits(**how)
    read = read_tables(tables, Plan(**of_table), parts, groups)
    for table in read:
        if table.dataset.task not in made.methods:
            raise OptionError(
                f"protocol {protocol} is for {' and '.join(made.methods)}, and table {table.name!r} is a "
                f"{table.dataset.task}: leave it out"
            )
    return ReadyComparison(read, made, preset, parts)


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _design(
    preset: PaperExperiment | None,
    lists: Mapping[str, Sequence[Any]],
    named: Mapping[str, Mapping[str, Any]] | None,
    against: Sequence[Any],
    asked: Mapping[str, Any],
    given: Mapping[str, Any],
) -> Design:
    """Return what is compared."""
    if preset is None:
        made = make_methods(lists, named, against)
        check_methods(made)
        return Design(methods=dict.fromkeys(TASKS, made), options=dict.fromkeys(TASKS, asked), **given)
    if any(map(len, lists.values())):
        raise OptionError(
            f"protocol {preset.name} has its own methods: leave out {min(n for n, v in lists.items() if len(v))}; what "
            "can be added are methods by their names, and estimators by against"
        )
    more = make_methods({}, named, against)
    if not named:  # estimators are compared with the paper's methods
        more = [method for method in more if method.against is not None]
    methods = {
        task: [*(Method(name, options) for name, options in preset.methods[task].items()), *more]
        for task in preset.options
    }
    check_methods(next(iter(methods.values())))
    options = {task: merged(each, asked) for task, each in preset.options.items()}
    return Design(methods=methods, options=options, cases=preset.cases, **{**preset.design, **given})


def _all_methods(design: Design) -> list[Method]:
    return [method for case in design.cases for task in design.methods for method in design.of(case, task)]


def _result(table: Table, case: str, trials: list[list[Trial]], measure: str) -> TableResult:
    losses = np.array([[trial.loss for trial in row] for row in trials])
    squared = not table.classes and measure == "rmse"
    train, test = (round(np.mean([part.size for part in parts])) for parts in zip(*table.splits, strict=True))
    return TableResult(
        case=case,
        table=table.name,
        task=table.dataset.task,
        target=str(table.dataset.target),
        rows=table.dataset.n,
        train=train,
        test=test,
        trials=trials,
        errors=np.sqrt(losses) if squared else losses,
    )
