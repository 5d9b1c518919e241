"""Gather the result of a selection from what its search, its ranking and its fit found."""

from __future__ import annotations

import dataclasses
import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernsel.data.sample import column_name
from kernsel.data.target import class_codes
from kernsel.errors import Caution
from kernsel.heldout.margins import describe_margins
from kernsel.representation.ranks import LowRank
from kernsel.search.axes import Axes
from kernsel.search.candidate import Candidate
from kernsel.search.certificate import Certificate
from kernsel.search.choice import MINIMUM, ONE_SE, SAFEST, Choice, Rule
from kernsel.search.ranking import Ranking
from kernsel.search.walk import Walk
from kernsel.selection.cautions import examine, examine_kernel
from kernsel.selection.observed import Observed, placed
from kernsel.selection.procedure import Comparison, Procedure
from kernsel.selection.refit import Fitted
from kernsel.selection.result import Selection, describe_candidate, environment
from kernsel.selection.setting import Setting
from kernsel.text import finite_or_none


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a selection found.

    Parameters
    ----------
    ranking : Ranking
        By exact scores.
    candidates : list of Candidate
        The choice first, with the figures that are reported of it.
    procedure : Procedure or str
        The error of the whole selection, or why it isn't known.
    comparison : Comparison or None
        The candidates that can't be told apart; None where that isn't known.
    fitted : Fitted
        The choice.
    times : list of float
        When the selection, its verification and its last fit began: ``time.perf_counter``, in seconds.
    certificate : Certificate or None
        What is proved of the lowest exact score, if that was asked for.
    """

    search: Walk
    ranking: Ranking
    candidates: list[Candidate]
    procedure: Procedure | str
    comparison: Comparison | None
    fitted: Fitted
    notes: list[str]
    times: list[float]
    certificate: Certificate | None = None


def make_selection(setting: Setting, outcome: Outcome) -> Selection:
    """Return the result of a selection."""
    dataset, fitted, procedure = setting.dataset, outcome.fitted, outcome.procedure
    rows, best = setting.deals[0], fitted.best
    notes, threshold = list(outcome.notes), fitted.model.threshold
    if threshold is not None and threshold.value and setting.plan.threshold_for is None:
        notes.append(f"threshold: the best for {threshold.best_for}, as that decides; threshold_for none keeps it at 0")
    if not isinstance(procedure, Procedure):
        notes.append(f"error of the whole selection: not known, for {procedure}; nested tells")
    margins = fitted.deals[0].margins
    if margins is not None:
        notes.append(describe_margins(margins))
    least_error = min(best.error or 0.0, fitted.raw_error)
    examined = examine(dataset, setting.folds[0], fitted.deals, fitted.outputs, least_error)
    indefinite = examine_kernel(best.kernel, rows.X, setting.plan.seed)
    held = fitted.outputs[0][:, : rows.held]
    outputs = held.T if len(held) > 1 else held[0]
    order = rows.order[: rows.held]
    probabilities = fitted.probabilities
    baseline = {"baseline": examined.baseline, "copies": examined.copies}
    return Selection(
        best=best,
        candidates=outcome.candidates,
        minimum=outcome.ranking.choice.lowest,
        learner=setting.learner.name,
        criterion=setting.criterion.name,
        model=fitted.model,
        heldout=placed(fitted.model.outputs_to_predictions(outputs), dataset, order),
        outputs=placed(outputs, dataset, order),
        probabilities=None if probabilities is None else placed(probabilities, dataset, order),
        warnings=[*_warnings(setting, outcome), *examined.cautions, *indefinite],
        conversions=best.conversions(rows.total),
        data=_data(setting, outcome) | baseline | {"notes": [*notes, *examined.notes]},
        options=_options(setting),
        timing=timing(outcome.times),
        environment=environment(),
        procedure=procedure if isinstance(procedure, Procedure) else None,
        comparison=outcome.comparison,
        certificate=outcome.certificate,
        observed=Observed.of(dataset),
    )


def _warnings(setting: Setting, outcome: Outcome) -> list[str]:
    """Return what should be known of the search, the ranking and the fit."""
    ranking, criterion, rank = outcome.ranking, setting.criterion, setting.rank
    found = [*outcome.search.cautions(), *_unseen_classes(setting)]
    if ranking.overturned is not None:
        first, lowest = ranking.overturned, ranking.choice.lowest
        what = "exact value" if setting.comparable else "exact held-out loss"
        text = (
            f"verification overturned the criterion: {describe_candidate(first)} came first by {criterion.name} "
            f"({first.score:.6g}), but its {what} is {_score_text(first.verified)} against "
            f"{_score_text(lowest.verified)} of {describe_candidate(lowest)}"
        )
        found.append(Caution("overturned", text))
    reasons = [str(c.failed) for c in ranking.candidates if c.failed is not None]
    if reasons:
        text = f"{len(reasons)} of {len(ranking.candidates)} candidates failed ({'; '.join(sorted(set(reasons)))})"
        found.append(Caution("failed-candidates", text))
    found += [
        Caution("metric-undefined", f"metric '{name}' is not defined for the held-out predictions of the choice")
        for name, each in outcome.fitted.best.metrics.items()
        if each.value is None
    ]
    used = outcome.fitted.path.representation
    if isinstance(rank, LowRank) and used.lost > rank.tol > 0:
        text = (
            f"{used.rank} landmarks leave {100 * used.lost:.2g} % of the trace for the choice, and "
            f"{100 * rank.tol:g} % were asked for: allow more by --rank tol:{rank.tol:g}:{2 * rank.largest}"
        )
        found.append(Caution("rank-limit", text))
    return found


def _data(setting: Setting, outcome: Outcome) -> dict[str, Any]:
    """Return what a selection was made on, and how it came to its choice."""
    dataset, rows, criterion, rule = setting.dataset, setting.deals[0], setting.criterion, setting.rule
    fitted, ranking, repeats = outcome.fitted, outcome.ranking, setting.plan.repeats
    measure = fitted.best.learner.loss.scored_by
    exact = f"mean held-out {measure} of exact refits"
    several = isinstance(dataset.target, list)
    errors = outcome.search.board.errors
    choice = describe_choice(rule, ranking.choice, criterion.name, ranking.verified)
    other = ""
    if fitted.best.key != ranking.choice.best.key:
        other = (
            f"; {ranking.choice.best.kernel.name} is passed over, as its kernel has seen the rows held out, and "
            f"{fitted.best.kernel.name} is chosen in that way among candidates for which less was learnt"
        )
    return {
        "rows": rows.n,
        "features": dataset.d,
        "task": dataset.task,
        "target": dataset.target,
        "labels": dataset.labels,
        "source": dataset.source,
        "columns": dataset.columns,
        "folds": setting.folds[0].splits or len(rows.left),
        "holdout": setting.folds[0].text + f", dealt {repeats} times" * (repeats > 1),
        "repeats": repeats,
        "weight": rows.total,
        "class_weight": dataset.sample.by_class is not None,
        "errors": errors.by_target(dataset.target, fitted.deals, fitted.outputs) if several else None,
        "margins": None if fitted.deals[0].margins is None else fitted.deals[0].margins.tolist(),
        "representation": fitted.path.describe(),
        "rank": fitted.path.representation.rank,
        "grids": [_ranges(axes) for axes in setting.grids],
        "choice": choice + other,
        "tied": ranking.choice.tied,
        "measure": criterion.measured(measure) if hasattr(criterion, "measured") else "its own measure",
        "verification": "the same by exact refits" if setting.comparable else exact,
    }


def _options(setting: Setting) -> dict[str, Any]:
    """Return what was asked for, as JSON can hold it."""
    plan, dataset, criterion, rule = setting.plan, setting.dataset, setting.criterion, setting.rule
    grid, folds = plan.grid, plan.folds
    return {
        "learner": {"name": setting.learner.name, **dataclasses.asdict(setting.learner)},
        "kernels": [str(each) for each in setting.kernels],
        "criterion": {"name": criterion.name, **_finite(dataclasses.asdict(criterion))},
        "eta": [{"eta": value, "error": finite_or_none(error)} for value, error in setting.etas.items()],
        "grid": grid if isinstance(grid, str) else {name: _listed(axis) for name, axis in grid.items()},
        "search": setting.search.name,
        "refine": setting.refine,
        "budget": plan.budget,
        "folds": folds if isinstance(folds, str | int) else setting.folds[0].text,
        "fold_column": column_name(folds),
        "weights": dataset.sample.origin.get("weights"),
        "groups": dataset.sample.origin.get("groups"),
        "near": None if dataset.sample.near is None else dict(dataset.sample.near.asked),
        "class_weight": dataset.sample.class_weight,
        "copies": dataset.copies,
        "extend": plan.extend,
        "verify": plan.verify,
        "certify": setting.certify,
        "metrics": [] if setting.metrics is None else list(setting.metrics.scorers),
        "choose": rule.name,
        "select_by": rule.metric,
        "within": rule.within,
        "one_se": rule.name == ONE_SE,
        "clip": plan.clip,
        "calibration": setting.calibration,
        "intervals": setting.intervals,
        "threshold_for": None if setting.measure is None else setting.measure.text,
        **setting.rank.asked(),
        "memory": plan.memory,
        "time": plan.time,
        "seed": plan.seed,
    }


def timing(times: list[float]) -> dict[str, float]:
    """Return the seconds of each part of a selection that began, had searched and had verified at some times."""
    started, searched, verified = times
    ended = time.perf_counter()
    return {
        "search": searched - started,
        "verification": verified - searched,
        "refit": ended - verified,
        "total": ended - started,
    }


def _unseen_classes(setting: Setting) -> list[str]:
    """Return which classes some fold's fit never sees: its outputs say little, of a logistic loss nothing."""
    labels, rows = setting.dataset.labels, setting.deals[0]
    if labels is None:
        return []
    codes = class_codes(rows.Y)
    unseen = set()
    for fold in range(rows.left.size):
        unseen |= set(range(len(labels))) - set(codes[rows.kept(fold)].tolist())
    names = ", ".join(repr(labels[code]) for code in sorted(unseen))
    text = f"some fold's fit is trained on no row of class {names}: use fewer or other folds"
    return [Caution("class-unseen", text)] if unseen else []


def describe_choice(rule: Rule, choice: Choice, criterion: str, verified: int) -> str:
    """Return how the choice was made, in words."""
    exact = ", verified by exact refits" * bool(verified)
    if rule.name == MINIMUM or choice.tied == 1:
        return f"lowest {criterion}{exact}"
    lowest = choice.lowest
    if rule.metric is not None:
        value = choice.best.metrics[rule.metric].value
        order = f"highest {rule.metric} ({'undefined' if value is None else f'{value:.5g}'})"
    else:
        order = "least error, then least norm" if rule.errors else "least norm"
    what = order if rule.name == SAFEST else "largest lambda"
    return (
        f"{what} among {choice.tied} candidates within {rule.within:g} standard error{'s' * (rule.within != 1)} "
        f"({choice.limit - lowest.value:.2g}) of the lowest {criterion}{exact}: {lowest.value:.5g} by "
        f"{describe_candidate(lowest)}"
    )


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    """Write infinity as text: JSON has none."""
    return {name: "inf" if value == math.inf else value for name, value in values.items()}


def _ranges(axes: Axes) -> dict[str, Any]:
    """Return the ranges of a kernel's grid as the search began with it."""
    every = {**axes.values, **axes.tuning, "lambda": axes.lams}
    return {"kernel": str(axes.kernel), **{name: [float(axis[0]), float(axis[-1])] for name, axis in every.items()}}


def _listed(axis: Any) -> Any:
    return axis if isinstance(axis, str) else np.ravel(axis).tolist()


def _score_text(value: float | None) -> str:
    return "failed" if value is None or not math.isfinite(value) else f"{value:.6g}"
