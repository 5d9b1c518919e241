"""Search the candidates of kernels without relevances to learn, verify the leaders exactly, refit the winner."""

from __future__ import annotations

import dataclasses
import math
import numbers
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kernsel.criteria import HeldOutCriterion
from kernsel.data import Dataset
from kernsel.data.sample import column_name
from kernsel.data.target import class_codes
from kernsel.errors import Caution, OptionError, SelectionError
from kernsel.folds import Folds, make_folds
from kernsel.folds.partition import Partition
from kernsel.heldout.calibration import Calibration, calibrate, cross_fitted, read_calibration
from kernsel.heldout.coupling import Coupling, couple, cross_coupled
from kernsel.heldout.intervals import Intervals
from kernsel.kernels import Kernel
from kernsel.model.extrapolation import reach
from kernsel.model.model import Model
from kernsel.numerics.points import as_points
from kernsel.numerics.runtime.jit import one_blas_thread
from kernsel.parts import read_criterion, read_kernel, read_learner, read_rank, read_search, rows_for
from kernsel.paths import Path, compile_updates, make_path
from kernsel.representation.problem import Problems
from kernsel.representation.ranks import LowRank, Rank, Whole, asked_rank
from kernsel.search.axes import Grid
from kernsel.search.board import Judge
from kernsel.search.candidate import Candidate
from kernsel.search.choice import MINIMUM, MOST, ONE_SE, SAFEST, Choice, Rule
from kernsel.search.choice import choose as choose_among
from kernsel.search.grid import GridSearch, Progress
from kernsel.search.ranking import rank as rank_candidates
from kernsel.search.refine import Budget, read_method, refined
from kernsel.search.sample import make_designs
from kernsel.search.scales import Family
from kernsel.selection.cautions import examine, weights_note
from kernsel.selection.eta import choose_eta, said_of_eta
from kernsel.selection.procedure import Procedure, whole_selection
from kernsel.selection.result import Selection, described, environment, finite_or_none
from kernsel.version import __version__

if TYPE_CHECKING:
    from kernsel.heldout.metrics import Metrics

Array = NDArray[np.float64]


class Unseen(Protocol):
    """Predicts held-out rows by kernels that haven't seen them."""

    def has_seen(self, kernel: Kernel, n: int) -> bool:
        """Tell whether a kernel was learnt on rows that are held out."""

    def freedom(self, kernel: Kernel) -> int:
        """Return how much was learnt for a kernel; 0 if nothing was."""

    def outputs(self, candidate: Candidate, rows: Partition, rank: Rank | None) -> Array:
        """Return held-out outputs (k, n) of a candidate whose kernel is learnt anew without each fold."""


@one_blas_thread()  # the work is cut into kernels, fits and folds; BLAS threads on top would be in the way
def search_dataset(
    dataset: Dataset,
    *,
    learner: str | Any | None = None,
    kernel: str | Kernel | Sequence[str | Kernel | Family] = "gaussian",
    criterion: str | Any | None = None,
    folds: int | str | Any = 10,
    repeats: int = 1,
    grid: Grid = "auto",
    search: str = "auto",
    refine: str | None = None,
    budget: int | str | None = None,
    verify: int = 5,
    rank: int | float | str | None = None,
    landmarks: str | None = None,
    extend: bool = True,
    pure: bool = False,
    order: float | None = None,
    eta: float | str | None = None,
    metric: str | Sequence[str] = (),
    choose: str | None = None,
    within: float | None = None,
    one_se: bool = False,
    clip: bool = True,
    calibration: str | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    unseen: Unseen | None = None,
) -> Selection:
    """Choose among kernels whose relevances have values, as :func:`kernsel.select` says.

    Parameters
    ----------
    dataset : Dataset
        From ``kernsel.data``.
    learner, kernel, criterion, folds, repeats, grid, search, refine, budget, verify, rank, landmarks : optional
        As in :func:`kernsel.select`.
    extend, pure, order, eta, metric, choose, within, one_se, clip, calibration, seed, progress : optional
        As in :func:`kernsel.select`.
    unseen : callable, optional
        Predicts the rows of each fold for a choice whose kernel has seen them, by one that hasn't: what is reported of
        held-out rows is of these outputs.

    Returns
    -------
    Selection
    """
    started = time.perf_counter()
    part = read_learner(learner, dataset.task)
    searched_kernels = [
        each if isinstance(each, Family) else read_kernel(each)
        for each in (kernel if isinstance(kernel, list | tuple) else [kernel])
    ]
    kernels = [each.first if isinstance(each, Family) else each for each in searched_kernels]
    if not kernels:
        raise OptionError("no kernel is given: name at least one, such as gaussian")
    dataset = replace(dataset, X=rows_for(kernels, dataset.X))
    dealt = _deal(folds, repeats, dataset, seed)
    notes = list(dataset.notes)
    if criterion is None:
        criterion = "newton-cv" if dealt[0].training is None else "cv"
        if dealt[0].training is not None:
            notes.append("criterion: cv, for a fold whose fit isn't trained on all other rows can only be refitted")
    scorer = read_criterion(criterion, order, pure, eta)
    notes += weights_note(scorer, dataset)
    if not isinstance(verify, numbers.Integral) or verify < 0:
        raise OptionError(f"verify is the number of leading candidates to check, at least 0, not {verify}")
    columns = read_rank(rank, dataset.n, landmarks, part)
    method, allowed = read_method(refine, budget, scorer, part, kernels, columns), Budget.read(budget)
    rule = Rule.read(choose, within, one_se, dataset.task, scorer)
    ladder = read_search(search, dataset.n, len(dataset.Y), columns, rule.name == ONE_SE)
    compile_updates(part, columns is None and not ladder)
    kind = read_calibration(calibration, part, dataset.task, len(dataset.labels or ()))
    if kind == "softmax" and calibration is None and 2 * dealt[0].starts.size > dataset.n:
        kind = "sigmoid"  # of a row left out alone the outputs say what it is: its class is rarer without it
    deals = [Partition.of(dataset, deal, seed, clip) for deal in dealt]
    rows = deals[0]
    if rule.name == ONE_SE:
        _check_one_se(scorer, verify, rows)
    metrics = _metrics(metric, rows, dataset, kind)
    tried: dict[float, float] = {}
    if getattr(scorer, "eta", 1.0) is None:
        at = LowRank(ladder[-1]) if ladder else columns
        scorer, tried = choose_eta(scorer, rows, dataset, kernels, grid, part, at, progress)
        notes.append(said_of_eta(scorer.eta, tried))
    judge = Judge(deals, dataset, scorer, metrics)
    grids = make_designs(searched_kernels, grid, rows, part)
    held_out = isinstance(scorer, HeldOutCriterion)
    rule = replace(rule, null=_null(scorer, part, rows))
    searching = GridSearch(
        rows, scorer, columns, judge.candidates, grids, extend, progress, ladder, judge.problems, rule
    )
    searching.run()
    _check_any(searching)
    if method is not None:
        notes.append(refined(searching, method, allowed))
    searched = time.perf_counter()
    ranking = rank_candidates(searching, lambda some: judge.verified(some, columns), verify, held_out)
    _check_any(searching)
    candidates, decision = ranking.candidates, ranking.choice
    warnings = searching.said() + _lone_classes(rows, dataset)
    if ranking.overturned is not None:
        first, what = ranking.overturned, "exact value" if held_out else "exact held-out loss"
        text = (
            f"verification overturned the criterion: {described(first)} came first by "
            f"{scorer.name} ({first.score:.6g}), but its {what} is {_shown(first.verified)} against "
            f"{_shown(decision.lowest.verified)} of {described(decision.lowest)}"
        )
        warnings.append(Caution("overturned", text))
    failed = sum(candidate.failed is not None for candidate in candidates)
    if failed:
        reasons = sorted({str(c.failed) for c in candidates if c.failed is not None})
        text = f"{failed} of {len(candidates)} candidates failed ({'; '.join(reasons)})"
        warnings.append(Caution("failed-candidates", text))
    fresh = None
    if unseen is not None and unseen.has_seen(candidates[0].kernel, rows.n):
        candidates, fresh, note = _where_unseen(unseen, candidates, rows, columns, scorer, rule, judge)
        notes += note
    procedure = whole_selection(
        judge,
        candidates,
        rule,
        dealt[0],
        fresh,
        lambda kernel: 0 if unseen is None or not unseen.has_seen(kernel, rows.n) else unseen.freedom(kernel),
    )
    if not isinstance(procedure, Procedure):
        notes.append(f"error of the whole selection: not known, for {procedure}; give nested")
    verified = time.perf_counter()

    best = candidates[0]
    path = refit(best, rows, columns, judge.problems)
    approximate = None if verify or best.exact else scorer
    unmeasured, several = metrics is not None and not best.metrics, isinstance(dataset.target, list)
    every = judge.outputs.get(best.key) or [heldout_of(path, approximate)]  # by deal
    held = every[0]
    if len(every) < len(deals) and (best.error is None or unmeasured or several):
        every = [held, *(heldout_of(refit(best, other, columns, judge.problems), approximate) for other in deals[1:])]
    if fresh is not None:
        held, every, unmeasured = fresh, [fresh], metrics is not None
    inside = float(np.sqrt(rows.mean(((held - rows.Y) ** 2).mean(axis=0)))) * judge.unit
    every = [deal.clipped_apart(F) for F, deal in zip(every, deals, strict=False)]
    held = every[0]
    if unmeasured:
        best = candidates[0] = replace(best, metrics=judge.measured(every))
    coupling = None
    if kind == "softmax":
        coupling = couple(held[:, : rows.held], rows.Y[:, : rows.held], rows.s[: rows.held])
        every = [_coupled(F, deal) for F, deal in zip(every, deals, strict=False)]
        held = every[0]
    if best.error is None or fresh is not None or coupling is not None:  # without held-out outputs, or of others
        before, best = best.error, judge.with_error(best, every)
        candidates[0] = best
        if coupling is not None and isinstance(procedure, Procedure) and before is not None:
            procedure = procedure.moved((best.error or 0.0) - before)
    warnings += [
        Caution("metric-undefined", f"metric '{name}' is not defined for the held-out predictions of the choice")
        for name, each in best.metrics.items()
        if each.value is None
    ]
    if columns is not None and path.lost > columns.tol > 0:
        text = (
            f"{path.rank} landmarks leave {100 * path.lost:.2g} % of the trace for the choice, and "
            f"{100 * columns.tol:g} % were asked for: allow more by --rank tol:{columns.tol:g}:{2 * columns.largest}"
        )
        warnings.append(Caution("rank-limit", text))
    examined = examine(dataset, dealt[0], deals, every, min(best.error or 0.0, inside))
    warnings += examined.cautions
    notes += examined.notes
    curves, probabilities = _probabilities(kind, held, rows, dataset)
    exact = held if fresh is None and isinstance(columns, Whole) else fresh
    model = _model(path, dataset, best.learner, rows.n, curves, exact, coupling)
    outputs = held[:, : rows.held].T if len(held) > 1 else held[0, : rows.held]
    places = dataset.places[rows.order[: rows.held]]
    measure = best.learner.loss.scored_by
    verification = "the same by exact refits" if held_out else f"mean held-out {measure} of exact refits"
    ended = time.perf_counter()
    return Selection(
        best=best,
        candidates=candidates,
        minimum=decision.lowest,
        learner=part.name,
        criterion=scorer.name,
        model=model,
        heldout=_placed(model.outputs_to_predictions(outputs), places, dataset.given),
        outputs=_placed(outputs, places, dataset.given),
        probabilities=None if probabilities is None else _placed(probabilities, places, dataset.given),
        warnings=warnings,
        conversions={**best.kernel.conversions(), **best.learner.conversions(rows.total, best.lam)},
        data={
            "rows": rows.n,
            "features": dataset.d,
            "task": dataset.task,
            "target": dataset.target,
            "labels": dataset.labels,
            "source": dataset.source,
            "notes": notes,
            "columns": dataset.columns,
            "folds": len(rows.left),
            "holdout": dealt[0].text + f", dealt {repeats} times" * (repeats > 1),
            "repeats": repeats,
            "weight": rows.total,
            "class_weight": dataset.sample.by_class is not None,
            "baseline": examined.baseline,
            "copies": examined.copies,
            "errors": judge.by_target(every) if several else None,
            "representation": path.describe(),
            "rank": path.rank,
            "choice": _said_choice(rule, decision, scorer.name, ranking.verified)
            + "; of kernels that are as good on rows they haven't seen" * (best.key != decision.best.key),
            "tied": decision.tied,
            "measure": scorer.measured(measure) if hasattr(scorer, "measured") else "its own measure",
            "verification": verification,
        },
        options={
            "learner": {"name": part.name, **dataclasses.asdict(part)},
            "kernels": [str(each) for each in kernels],
            "criterion": {"name": scorer.name, **_finite(dataclasses.asdict(scorer))},
            "eta": [{"eta": value, "error": finite_or_none(error)} for value, error in tried.items()],
            "grid": grid if isinstance(grid, str) else {name: _listed(axis) for name, axis in grid.items()},
            "search": "halving" if ladder else "grid",
            "refine": method,
            "budget": budget,
            "folds": folds if isinstance(folds, str | int) else dealt[0].text,
            "fold_column": column_name(folds),
            "weights": dataset.sample.origin.get("weights"),
            "groups": dataset.sample.origin.get("groups"),
            "class_weight": dataset.sample.class_weight,
            "copies": dataset.copies,
            "extend": extend,
            "verify": verify,
            "metrics": [] if metrics is None else list(metrics.scorers),
            "choose": rule.name,
            "within": rule.within,
            "one_se": rule.name == ONE_SE,
            "clip": clip,
            "calibration": kind,
            **asked_rank(columns),
            "seed": seed,
        },
        timing={
            "search": searched - started,
            "verification": verified - searched,
            "refit": ended - verified,
            "total": ended - started,
        },
        environment=environment(),
        procedure=procedure if isinstance(procedure, Procedure) else None,
    )


def _null(criterion: Any, learner: Any, rows: Partition) -> float:
    """Return the mean loss, or a criterion's own measure, of held-out outputs that are all 0."""
    zeros = np.zeros_like(rows.Y)
    measure = getattr(criterion, "measure", None)
    if measure is not None:
        return float(rows.mean(np.asarray(measure(rows.Y, zeros))))
    if getattr(learner, "free", ()):  # compared by a measure without parameters
        return math.inf
    return float(rows.mean(learner.loss.value(rows.Y, zeros).mean(axis=0)))


def _where_unseen(
    unseen: Unseen,
    candidates: list[Candidate],
    rows: Partition,
    rank: Rank | None,
    criterion: HeldOutCriterion,
    rule: Rule,
    judge: Judge,
) -> tuple[list[Candidate], Array | None, list[str]]:
    """Keep a choice whose kernel has seen the held-out rows only if it is the best where it hasn't, too.

    It is compared with the best candidate of each kind for which less was learnt, where these haven't seen them either.

    Returns the candidates, the outputs (k, n) of the choice where it has seen no row if it was learnt, and what is to
    be said.
    """
    kinds: dict[int, list[Candidate]] = {}
    for each in candidates:
        if each.failed is None:
            kinds.setdefault(unseen.freedom(each.kernel), []).append(each)
    most = unseen.freedom(candidates[0].kernel)

    def judged(candidate: Candidate) -> tuple[float, Array | None]:
        if not unseen.freedom(candidate.kernel):
            return candidate.value, None
        path = refit(candidate, rows, rank, judge.problems)
        try:
            fresh = unseen.outputs(candidate, rows, rank)
            return float(rows.mean(criterion.values(path, fresh))), fresh
        except SelectionError:
            return math.inf, None

    best = candidates[0]
    first, fresh = judged(best)
    value = first
    for kind in sorted((kind for kind in kinds if kind < most), reverse=True):
        other = choose_among(rule, kinds[kind], lambda c: judge.verified([c], rank)[0], MOST).best
        if other.value < value:  # what has seen the rows has no less where it hasn't
            found, outputs = judged(other)
            if found < value:
                best, value, fresh = other, found, outputs
    if best.key == candidates[0].key:
        return candidates, fresh, []
    note = (
        f"kernel: {candidates[0].kernel.name} passed over, as its score by what is learnt without the rows held out is "
        f"{first:.4g}; that of {best.kernel.name} is {value:.4g}"
    )
    return [best, *(c for c in candidates if c.key != best.key)], fresh, [note]


def _lone_classes(rows: Partition, dataset: Dataset) -> list[str]:
    """Say which classes some fold's fit never sees: its outputs say little, and those of a logistic loss nothing."""
    if dataset.labels is None:
        return []
    codes = class_codes(rows.Y)
    unseen = set()
    for fold in range(rows.left.size):
        unseen |= set(range(len(dataset.labels))) - set(codes[rows.kept(fold)].tolist())
    names = ", ".join(repr(dataset.labels[code]) for code in sorted(unseen))
    text = f"some fold's fit is trained on no row of class {names}: use fewer or other folds"
    return [Caution("class-unseen", text)] if unseen else []


def _check_any(search: GridSearch) -> None:
    """Raise where no candidate is left."""
    first = search.candidates()[0]
    if first.failed is not None:
        raise SelectionError(f"all {len(search.found)} candidates failed; the first one: {first.failed}")


def _deal(folds: Any, repeats: int, dataset: Dataset, seed: int) -> list[Folds]:
    """Make the folds, as often as asked for."""
    if not isinstance(repeats, numbers.Integral) or repeats < 1:
        raise OptionError(f"repeats is how often the folds are dealt, a whole number from 1, not {repeats!r}")
    first = make_folds(folds, dataset, seed)
    if repeats > 1 and not first.dealt:
        raise OptionError(f"repeats: there is one way only to make {first.text}; give a number of folds, or no repeats")
    return [first, *(make_folds(folds, dataset, (seed, repeat)) for repeat in range(1, repeats))]


def _placed(values: NDArray[Any], places: NDArray[np.int64], n: int) -> NDArray[Any]:
    """Put values at their places among n rows; rows without one get NaN, or None where values aren't numbers."""
    placed: NDArray[Any]
    if values.dtype.kind == "f":
        placed = np.full((n, *values.shape[1:]), np.nan, values.dtype)
    else:
        placed = np.full(n, None) if len(places) < n else np.empty(n, values.dtype)
    placed[places] = values
    return placed


def _said_choice(rule: Rule, choice: Choice, criterion: str, verified: int) -> str:
    """Say how the choice was made."""
    exact = ", verified by exact refits" * bool(verified)
    if rule.name == MINIMUM or choice.tied == 1:
        return f"lowest {criterion}{exact}"
    lowest = choice.lowest
    order = "least error, then least norm" if rule.errors else "least norm"
    what = order if rule.name == SAFEST else "largest lambda"
    return (
        f"{what} among {choice.tied} candidates within {rule.within:g} standard errors "
        f"({choice.limit - lowest.value:.2g}) of the lowest {criterion}{exact}: {lowest.value:.5g} by "
        f"{described(lowest)}"
    )


def _check_one_se(criterion: Any, verify: int, rows: Partition) -> None:
    if not isinstance(criterion, HeldOutCriterion):
        raise OptionError(
            f"one_se needs a criterion that is a mean over held-out rows, and '{criterion.name}' isn't: use newton-cv"
        )
    if verify == 0:
        raise OptionError("one_se compares with a verified candidate: let verify be at least 1")
    if rows.left.size == 1:
        raise OptionError("one_se needs a standard error over folds, and there is one fold only: hold out more")


def _metrics(metric: str | Sequence[str], rows: Partition, dataset: Dataset, calibration: str | None) -> Metrics | None:
    if not metric:
        return None
    from kernsel.heldout.metrics import Metrics  # imports scikit-learn, which takes longer than a small selection

    return Metrics.of(metric, rows, dataset, calibration)


def _probabilities(
    kind: str | None, held: Array, rows: Partition, dataset: Dataset
) -> tuple[Calibration | None, Array | None]:
    """Return the calibration for new rows, and the probabilities of the held-out rows themselves, cross-fitted."""
    if kind is None:
        return None, None
    plain = dataset.sample.plain
    s = np.ones(rows.held) if plain is None else plain[rows.order[: rows.held]]
    F, Y = held[:, : rows.held], rows.Y[:, : rows.held]
    return calibrate(kind, F, Y, s), cross_fitted(kind, F, Y, s, rows.starts)


def refit(winner: Candidate, rows: Partition, rank: Rank | None, problems: Problems) -> Path:
    """Fit a candidate on the rows of a deal."""
    return make_path(problems.on(rows, winner.kernel, rank), winner.learner, [winner.lam], lead_in=True)


def heldout_of(path: Path, criterion: Any) -> Array:
    """Held-out outputs of the last fit of a path: as a criterion sees them, exact without one or if it makes none."""
    if isinstance(criterion, HeldOutCriterion):
        return criterion.heldout(path).clipped(path.rows).f[:, -1]
    return path.exact([path.lams.size - 1]).clipped(path.rows).f[:, 0]


def _coupled(F: Array, rows: Partition) -> Array:
    """Return held-out outputs (k, n) of classes, coupled without the rows themselves."""
    held = slice(rows.held)
    return np.hstack([cross_coupled(F[:, held], rows.Y[:, held], rows.s[held], rows.starts), F[:, rows.held :]])


def _model(
    path: Path,
    dataset: Dataset,
    learner: Any,
    n: int,
    calibration: Calibration | None,
    fresh: Array | None,
    coupling: Coupling | None,
) -> Model:
    """Make the predictor of the last fit of a path; rows without weight are left out.

    Residuals of intervals are those of ``fresh`` held-out outputs (k, n), if there are any. Outputs of classes may be
    coupled.
    """
    last = path.lams.size - 1
    coefficients, bias = path.coefficients(last), path.intercepts(last)
    if coupling is not None:
        coefficients, bias = coupling.A @ coefficients, coupling.A @ bias + coupling.b
    used = (coefficients != 0).any(axis=0)
    regression = dataset.task == "regression"
    intervals = Intervals.of(path, last, fresh) if regression else None
    if intervals is not None:
        used |= intervals.used
    if not used.any():
        used[:1] = True
    kernel, rows, kept = path.problem.kernel, path.rows, as_points(path.points()[used])
    return Model(
        kernel=kernel,
        learner=learner.name,
        rows=kept,
        coefficients=np.ascontiguousarray(coefficients[:, used]),
        bias=bias,
        task=dataset.task,
        labels=dataset.labels,
        label_dtype=dataset.label_dtype,
        target=dataset.target,
        encoder=dataset.encoder,
        output_shift=dataset.output_shift,
        output_scale=dataset.output_scale,
        provenance={
            "kernsel": __version__,
            "lambda": float(path.lams[-1]),
            "rows": n,
            "weighted": dataset.weights is not None,
            "source": dataset.source,
        },
        calibration=calibration,
        intervals=None if intervals is None else intervals.restricted(used),
        limits=rows.limits if rows.clip else None,
        reach=reach(kernel, rows.X, kept, path.representation.row_numbers(used)),
    )


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    """Write infinity as text: JSON has none."""
    return {name: "inf" if value == math.inf else value for name, value in values.items()}


def _listed(axis: Any) -> Any:
    return axis if isinstance(axis, str) else np.ravel(axis).tolist()


def _shown(value: float | None) -> str:
    return "failed" if value is None or not math.isfinite(value) else f"{value:.6g}"
