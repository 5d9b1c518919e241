"""The setting of a selection: its plan read for one data set, with all checks done before any work."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from kernsel.criteria import HeldOutCriterion
from kernsel.criteria.base import Criterion, measure_rows
from kernsel.data import Dataset
from kernsel.errors import OptionError, PluginFailure
from kernsel.folds import Folds, make_deals
from kernsel.folds.partition import Partition
from kernsel.heldout.calibration import read_calibration
from kernsel.heldout.errors import Errors
from kernsel.heldout.threshold import OF_DECISIONS, Measure, read_measure
from kernsel.kernels import Kernel
from kernsel.parts import read_criterion, read_kernel, read_learner, read_rank, read_search, read_seconds, rows_for
from kernsel.paths import compile_updates
from kernsel.protocols import Learner, SupportsMeasure
from kernsel.representation.ranks import Full, LowRank, Rank, Whole
from kernsel.search.axes import Axes
from kernsel.search.board import Board
from kernsel.search.choice import ONE_SE, Rule
from kernsel.search.deadline import SEARCH, deadline_in_force
from kernsel.search.refine import Budget, read_method
from kernsel.search.sample import check_grid, make_designs
from kernsel.search.scales import Family
from kernsel.search.walk import Search, Walk
from kernsel.selection.cautions import weights_note
from kernsel.selection.certify import read_certify
from kernsel.selection.eta import choose_eta, describe_eta
from kernsel.selection.plan import Plan
from kernsel.types import Progress

if TYPE_CHECKING:
    from kernsel.heldout.metrics import Metrics

SQUARES = ("r2", "neg_mean_squared_error", "neg_root_mean_squared_error")
"""scikit-learn's scorers that are functions of the mean squared error of one target."""


@dataclass(frozen=True, eq=False)
class Terms:
    """What a plan asks for, whatever its kernels are.

    Parameters
    ----------
    dataset : Dataset
        Its rows as all kernels can take them.
    folds : list of Folds
        One for each time that the rows are dealt.
    deals : list of Partition
        The rows by fold, for each of them.
    rank : Full, Whole or LowRank
        The representation in force.
    rule : Rule
        Of choice.
    intervals : str
        What is kept of the fits without a fold.
    measure : Measure or None
        What a threshold is to be best for.
    certify : float or None
        The share within which the lowest score is to be proved.
    timeout : float or None
        Seconds that a candidate may take.
    """

    plan: Plan
    dataset: Dataset
    learner: Learner
    criterion: Criterion
    folds: list[Folds]
    deals: list[Partition]
    rank: Rank
    search: Search
    rule: Rule
    budget: Budget
    calibration: str | None
    metrics: Metrics | None
    intervals: str
    measure: Measure | None
    certify: float | None
    timeout: float | None
    notes: list[str]

    @property
    def comparable(self) -> bool:
        """Whether scores and exact scores are of one kind: means over held-out rows."""
        return isinstance(self.criterion, HeldOutCriterion)

    @property
    def ranks(self) -> Sequence[int]:
        """The lower ranks that the search begins with."""
        return self.search.ranks(self.dataset.n, self.rank) if hasattr(self.search, "ranks") else ()


@dataclass(frozen=True, eq=False)
class Setting(Terms):
    """What a selection works with.

    Parameters
    ----------
    kernels : list of Kernel
        That are searched; of a family with learnt relevances the one that was learnt.
    etas : dict of float to float
        Held-out errors by the weight of a penalty, where that was chosen.
    """

    kernels: list[Kernel]
    grids: list[Axes]
    refine: str | None
    etas: dict[float, float]

    def begin(self, progress: Progress | None) -> Walk:
        """Return the search under way, on a board of its own."""
        until = deadline_in_force().share(SEARCH)
        board = Board(self.deals, self.criterion, Errors.of(self.dataset), self.rank, self.metrics, progress, until)
        board.encloses, board.timeout = self.certify is not None, self.timeout
        walk = self.search.begin(board, list(self.grids), self.plan.extend, self.rule)
        if not isinstance(walk, Walk):
            raise PluginFailure(
                f"search '{self.search.name}' began with {type(walk).__name__} in place of a kernsel.search.walk.Walk; "
                "tell its authors, or use another one, such as grid"
            )
        return walk


def resolve(
    dataset: Dataset, plan: Plan, searched: Sequence[str | Kernel | Family], progress: Progress | None = None
) -> Setting:
    """Return the setting of a plan.

    Parameters
    ----------
    searched : sequence of str, Kernel or Family
        The kernels, whose relevances have values.
    progress : callable, optional
        Of the choice of eta, which is a search of its own.

    Raises
    ------
    OptionError, IncompatibleError, PluginError
        The plan can't be followed.
    """
    designed = [each if isinstance(each, Family) else read_kernel(each) for each in searched]
    kernels = [each.first if isinstance(each, Family) else each for each in designed]
    if not kernels:
        raise OptionError("no kernel is given: name at least one, such as gaussian")
    dataset = replace(dataset, X=rows_for(kernels, dataset.X))
    terms = read_terms(dataset, plan)
    learner, criterion, rows, rank = terms.learner, terms.criterion, terms.deals[0], terms.rank
    refine = read_method(plan.refine, plan.budget, criterion, learner, kernels, rank)
    compile_updates(learner, isinstance(rank, Full) and not terms.ranks, series=hasattr(criterion, "series"))
    etas: dict[float, float] = {}
    notes = list(terms.notes)
    if getattr(criterion, "eta", 1.0) is None:
        at = LowRank(terms.ranks[-1]) if terms.ranks else rank
        criterion, etas = choose_eta(criterion, rows, dataset, kernels, plan.grid, learner, at, progress, terms.timeout)
        notes.append(describe_eta(criterion.eta, etas))
    rule = replace(terms.rule, null=_null_score(criterion, learner, rows))
    known = vars(terms) | {"criterion": criterion, "rule": rule, "notes": notes}
    grids = make_designs(designed, plan.grid, rows, learner, terms.timeout)
    return Setting(**known, kernels=kernels, grids=grids, refine=refine, etas=etas)


def read_terms(dataset: Dataset, plan: Plan) -> Terms:
    """Return what a plan asks for, whatever its kernels are: before any is learnt, what can't be followed is refused.

    Raises
    ------
    OptionError, IncompatibleError, PluginError
        The plan can't be followed.
    """
    learner = read_learner(plan.learner, dataset.task)
    folds = make_deals(plan.folds, dataset, plan.seed, plan.repeats)
    notes = list(dataset.notes)
    deals = [Partition.of(dataset, deal, plan.seed, plan.clip) for deal in folds]
    criterion = _read_criterion(plan, all(deal.updated for deal in deals), notes)
    notes += weights_note(criterion, dataset)
    if not isinstance(plan.verify, numbers.Integral) or plan.verify < 0:
        raise OptionError(f"verify is the number of leading candidates to check, at least 0, not {plan.verify}")
    rank = read_rank(plan.rank, dataset.n, plan.landmarks, learner)
    read_method(plan.refine, plan.budget, criterion, learner, (), rank)
    budget = Budget.read(plan.budget)
    metric = _read_select_by(plan, learner, dataset, criterion, notes)
    rule = Rule.read(plan.rule, plan.within, dataset.task, criterion, metric)
    certify = read_certify(plan.certify, criterion, learner, rank, deals[0])
    wanted = "grid" if certify is not None and plan.search == "auto" else plan.search
    search = read_search(wanted, dataset.n, len(dataset.Y), rank, rule.name == ONE_SE, learner)
    check_grid(plan.grid)
    calibration = _read_calibration(plan, learner, dataset, folds[0])
    if rule.name == ONE_SE:
        _check_one_se(criterion, plan.verify, deals[0])
    measure = read_best_for(plan, dataset)
    terms = Terms(
        plan=plan,
        dataset=dataset,
        learner=learner,
        criterion=criterion,
        folds=folds,
        deals=deals,
        rank=rank,
        search=search,
        rule=rule,
        budget=budget,
        calibration=calibration,
        metrics=read_metrics(plan, deals[0], dataset, calibration, measure),
        intervals=_read_intervals(plan, dataset, rank),
        measure=measure,
        certify=certify,
        timeout=_read_timeout(plan.candidate_timeout),
        notes=notes,
    )
    if certify is not None and terms.ranks:
        raise OptionError(f"certify needs all candidates at one rank: use search grid with it, not {search.name}")
    return terms


def _read_criterion(plan: Plan, updated: bool, notes: list[str]) -> Criterion:
    """Return the criterion, by default the one for the folds; a note says why it is another one than usual.

    ``updated`` says whether fits without a fold are got from the fit on all rows.
    """
    criterion = plan.criterion
    if criterion is None and not updated:
        notes.append("criterion: cv, for a fold whose fit leaves out more than half of the rows can only be refitted")
    if criterion is None:
        criterion = "newton-cv" if updated else "cv"
    return read_criterion(criterion, plan.order, plan.pure, plan.eta)


def _read_calibration(plan: Plan, learner: Learner, dataset: Dataset, folds: Folds) -> str | None:
    kind = read_calibration(plan.calibration, learner, dataset.task, len(dataset.labels or ()))
    if kind == "softmax" and plan.calibration is None and 2 * folds.starts.size > dataset.n:
        return "sigmoid"  # of a row left out alone the outputs say what it is: its class is rarer without it
    return kind


def _read_intervals(plan: Plan, dataset: Dataset, rank: Rank) -> str:
    """Return what is kept of the fits without a fold: ``even``, ``local``, ``sets`` or ``none``."""
    kind, classes = plan.intervals, dataset.labels is not None
    if kind is None:
        return "none" if classes else "even"
    forms = ("sets", "none") if classes else ("even", "local", "none")
    if kind not in forms:
        what = "classes" if classes else "a regression"
        raise OptionError(f"intervals {kind!r}: of {what} they are {' or '.join(forms)}")
    if kind == "local" and isinstance(rank, Whole):
        raise OptionError("intervals 'local' need the kernel in memory: give a number of landmarks, not whole")
    return kind


def read_best_for(plan: Plan, dataset: Dataset) -> Measure | None:
    """Return what the threshold of two classes is to be best for: what is asked for, or the metric that decides."""
    if plan.threshold_for == "none":
        return None
    if plan.threshold_for is None:
        of_two = len(dataset.labels or ()) == 2
        return Measure(plan.select_by) if of_two and plan.select_by in OF_DECISIONS else None
    measure = read_measure(plan.threshold_for)
    if len(dataset.labels or ()) != 2:
        what = f"{len(dataset.labels)}" if dataset.labels else "a regression, with none"
        decides = f", or let select_by {measure.text} decide" * (dataset.labels is not None and measure.costs is None)
        raise OptionError(
            f"threshold for {measure.text}: it is for two classes, and this is {what}; leave it out{decides}"
        )
    return measure


def _read_select_by(
    plan: Plan, learner: Learner, dataset: Dataset, criterion: Criterion, notes: list[str]
) -> str | None:
    """Return the metric that decides, None where none does; a note says where that is what decides anyway."""
    metric = plan.select_by
    if metric is None:
        return None
    if not isinstance(metric, str):
        raise OptionError(
            f"select_by (or scoring) is the name of one of scikit-learn's scorers, such as 'roc_auc', not {metric!r}; "
            "metric reports several"
        )
    if plan.verify == 0:
        raise OptionError(f"select_by {metric!r} compares verified candidates: let verify be at least 1")
    squares = learner.loss.square and len(dataset.Y) == 1 and dataset.task == "regression"
    held_out = isinstance(criterion, HeldOutCriterion) and not isinstance(criterion, SupportsMeasure)
    if metric in SQUARES and squares and held_out:
        notes.append(
            f"select by {metric}: it puts candidates in the order of the square loss; the rule of choice stays"
        )
        return None
    return metric


def read_metrics(
    plan: Plan, rows: Partition, dataset: Dataset, calibration: str | None, measure: Measure | None = None
) -> Metrics | None:
    """Return the metrics that are reported, and the one that decides; None where there are none."""
    if not isinstance(plan.metric, Iterable):
        raise OptionError(f"metric is the name of one of scikit-learn's scorers, or several, not {plan.metric!r}")
    names = [plan.metric] if isinstance(plan.metric, str) else [*plan.metric]
    if plan.select_by is not None:
        names.append(plan.select_by)
    if not names:
        return None
    from kernsel.heldout.metrics import Metrics  # imports scikit-learn, which takes longer than a small selection

    return Metrics.of(list(dict.fromkeys(names)), rows, dataset, calibration, measure)


def _check_one_se(criterion: Criterion, verify: int, rows: Partition) -> None:
    if not isinstance(criterion, HeldOutCriterion):
        raise OptionError(
            f"one_se needs a criterion that is a mean over held-out rows, and '{criterion.name}' isn't: use newton-cv"
        )
    if verify == 0:
        raise OptionError("one_se compares with a verified candidate: let verify be at least 1")
    if rows.left.size == 1:
        raise OptionError("one_se needs a standard error over folds, and there is one fold only: hold out more")


def _read_timeout(given: str | float | None) -> float | None:
    """Return the seconds that candidates of one kernel may take; None for no limit."""
    seconds = None if given is None else read_seconds(given)
    if given is not None and seconds is None:
        raise OptionError(
            f"candidate_timeout {given!r} is no time: give seconds, minutes or hours, such as 30s or 5min"
        )
    return seconds


def _null_score(criterion: Criterion, learner: Learner, rows: Partition) -> float:
    """Return the mean loss, or a criterion's own measure, of held-out outputs that are all 0."""
    zeros = np.zeros_like(rows.Y)
    if isinstance(criterion, SupportsMeasure):
        return float(rows.mean(measure_rows(criterion, rows.Y, zeros)))
    if getattr(learner, "free", ()):  # compared by a measure without parameters
        return math.inf
    return float(rows.mean(learner.loss.value(rows.Y, zeros).mean(axis=0)))
