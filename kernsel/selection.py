"""Select a kernel model: search, verify the leaders by exact held-out predictions, refit the winner."""

from __future__ import annotations

import dataclasses
import math
import numbers
import time
import warnings as python_warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import kernsel
from kernsel.calibration import Calibration, calibrate, cross_fitted, read_calibration
from kernsel.criteria import HeldOutCriterion
from kernsel.data import Dataset, from_arrays
from kernsel.data.sample import column_name
from kernsel.data.target import class_codes
from kernsel.errors import OptionError, SelectionError, SelectionWarning
from kernsel.folds import Folds, make_folds
from kernsel.intervals import Intervals
from kernsel.judging import Judge, rows_of
from kernsel.kernels import Kernel
from kernsel.model import Model
from kernsel.numerics.jit import one_blas_thread
from kernsel.options import read_criterion, read_kernel, read_learner, read_rank, read_search
from kernsel.paths import Path, compile_updates, make_path
from kernsel.problem import Problem, Rows
from kernsel.result import Selection, described, environment, finite_or_none
from kernsel.search.axes import Grid
from kernsel.search.candidate import Candidate
from kernsel.search.grid import GridSearch, Progress
from kernsel.search.onese import simplest
from kernsel.search.refine import Budget, read_method, refined
from kernsel.search.sample import make_designs
from kernsel.tradeoff import choose_eta, said_of_eta

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    from kernsel.metrics import Metrics

Array = NDArray[np.float64]

CONTINUATION = 4.0 ** np.arange(3, -1, -1)
"""The winner is refitted from larger lambda down, as it was found."""


def select(
    X: pd.DataFrame | npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    learner: str | Any | None = None,
    kernel: str | Kernel | Sequence[str | Kernel] = "gaussian",
    criterion: str | Any | None = None,
    folds: int | str | Any = 10,
    repeats: int = 1,
    groups: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
    class_weight: str | Mapping[Any, float] | None = None,
    grid: Grid = "auto",
    search: str = "auto",
    refine: str | None = None,
    budget: int | str | None = None,
    verify: int = 5,
    rank: int | float | str | None = None,
    extend: bool = True,
    pure: bool = False,
    order: float | None = None,
    eta: float | str | None = None,
    metric: str | Sequence[str] = (),
    one_se: bool = False,
    calibration: str | None = None,
    task: str = "auto",
    standardize: bool = True,
    seed: int = 0,
    progress: Progress | None = None,
) -> Selection:
    """Choose kernel, parameters and lambda, and fit the winner.

    Minimises the criterion over kernels x parameters x lambda, re-scores the leading candidates by exact k-fold
    cross-validation, and fits the best of them on all rows: ``min (1/S) sum_i s_i V(y_i, f(x_i)) + lambda ||f||^2``
    with the weights s_i of the rows, 1 by default, and their sum S.

    Parameters
    ----------
    X : (n, d) array or DataFrame
        Features; text columns of a DataFrame are encoded one-hot.
    y : (n,) or (n, k) array
        Target: numbers, or labels of any kind. Several columns are targets of one regression.
    learner : str or Learner, optional
        ``svm`` for classes and ``krr`` for a regression by default. A parameter that is None, as in
        ``"svr(epsilon=None)"``, is searched; candidates are then compared by a measure without parameters.
    kernel : str, Kernel or list of them
        Parameters that have a value stay; the others are searched.
    criterion : str or Criterion
        Such as ``newton-cv``, ``cv``, ``bif``, ``fbif`` or ``"bif(order=3)"``. By default ``newton-cv``, but ``cv``
        where a fold's fit is not trained on all other rows: those folds can only be refitted.
    folds : int, str, array, splitter or iterable of pairs
        A number of folds, dealt at random: stratified for classes, of whole groups if there are ``groups``.
        ``"loo"``, ``"logo"`` (leave one group out) or ``"time:N"`` (N folds in the order of the rows, each fit trained
        on all rows before). The fold of each row, negative for rows that are never held out. A splitter of
        scikit-learn's kind, or pairs (rows to train on, rows to hold out), whose rows to hold out don't overlap.
    repeats : int
        How often a number of folds is dealt: scores, errors and metrics are means over the deals. What belongs to a
        row (outputs, probabilities, intervals) is that of the first deal.
    groups : (n,) array, optional
        Labels of any kind; rows of one group are held out together.
    weights : (n,) array, optional
        How much each row counts, in the fit and in every mean: a row of weight 2 is one that is there twice, one of
        weight 0 is left out.
    class_weight : "balanced" or mapping of label to weight, optional
        Multiplied into the weights; balanced, all classes have the same total.
    grid : {"auto", "paper", "sobol:N", "random:N"} or mapping
        Scaled by the data, that of FBIF18, N points for each kernel in the range of the automatic one, or values by
        the name of the parameter (of a kernel or the learner) and ``"lambda"``; ``"rest": "paper"`` is for what isn't
        named.
    search : {"auto", "grid", "halving"}
        Score every candidate, or all at a small rank, the best eighth at twice that rank, and so on, and the last few
        and their neighbours at the representation in force. By default the latter from 1000 rows, times
        outputs.
    refine : {"compass", "simplex", "gradient"}, optional
        Leave the grid afterwards, from its three best minima: by compass steps, the simplex of Nelder and Mead, or,
        for the square loss, Gaussian kernels and criteria that have one, the gradient.
    budget : int or str, optional
        What ``refine`` may cost: a number of candidates (200 by default), or a time such as ``"30s"`` or ``"2min"``,
        with which the outcome depends on the machine.
    verify : int
        Leading candidates that are re-scored exactly.
    rank : int, float, "full" or None
        Number of landmarks, or their share of the rows; by default the whole Gram matrix up to 2000 rows, and a tenth
        of the rows beyond, from 500 to 1000.
    extend : bool
        Extend the grid while the winner lies on its edge.
    pure : bool
        Leave ``bif`` and ``fbif`` as published, also where they can't be trusted.
    order : int or inf, optional
        Of ``bif``.
    eta : float or "cv", optional
        Weight of the penalty of ``rks`` and ``cvks``; ``"cv"`` chooses it by the held-out error of what it selects, on
        three folds beforehand.
    metric : str or list of str
        Names of scikit-learn scorers, such as ``"roc_auc"``: further figures from the exact held-out predictions of the
        verified candidates. They don't take part in the choice. The second of two labels is the positive one.
    one_se : bool
        Choose the largest lambda (then the widest kernel) within one standard error of the best candidate.
    calibration : {"sigmoid", "isotonic", "none"}, optional
        How outputs become probabilities of classes: by Platt's sigmoid, the default, or isotonic regression, fitted on
        held-out outputs; or not at all, for a learner whose outputs are log-odds.
    task : {"auto", "regression", "classification"}
        What to learn.
    standardize : bool
        Centre and scale the numeric features, once for all folds.
    seed : int
        Of folds and landmarks.
    progress : callable, optional
        Called as ``progress(done, total, text)``.

    Returns
    -------
    Selection
        The winner, all candidates, and the fitted model.

    Raises
    ------
    DataError, OptionError, IncompatibleError, PluginError, SelectionError
        Each says what is wrong and what to do.

    Warns
    -----
    SelectionWarning
        The choice stands, but something about it should be known; the texts are also in ``Selection.warnings``.
    """
    result = select_dataset(
        from_arrays(X, y, task, standardize, weights=weights, groups=groups, class_weight=class_weight),
        learner=learner,
        kernel=kernel,
        criterion=criterion,
        folds=folds,
        repeats=repeats,
        grid=grid,
        search=search,
        refine=refine,
        budget=budget,
        verify=verify,
        rank=rank,
        extend=extend,
        pure=pure,
        order=order,
        eta=eta,
        metric=metric,
        one_se=one_se,
        calibration=calibration,
        seed=seed,
        progress=progress,
    )
    for text in result.warnings:
        python_warnings.warn(text, SelectionWarning, stacklevel=2)
    return result


@one_blas_thread()  # the work is cut into kernels, fits and folds; BLAS threads on top would be in the way
def select_dataset(
    dataset: Dataset,
    *,
    learner: str | Any | None = None,
    kernel: str | Kernel | Sequence[str | Kernel] = "gaussian",
    criterion: str | Any | None = None,
    folds: int | str | Any = 10,
    repeats: int = 1,
    grid: Grid = "auto",
    search: str = "auto",
    refine: str | None = None,
    budget: int | str | None = None,
    verify: int = 5,
    rank: int | float | str | None = None,
    extend: bool = True,
    pure: bool = False,
    order: float | None = None,
    eta: float | str | None = None,
    metric: str | Sequence[str] = (),
    one_se: bool = False,
    calibration: str | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Selection:
    """Do what :func:`select` does, on a data set that is already encoded, and without issuing its warnings.

    Parameters
    ----------
    dataset : Dataset
        From ``kernsel.data``.
    learner, kernel, criterion, folds, repeats, grid, search, refine, budget, verify, rank, extend, pure : optional
        As in :func:`select`.
    order, eta, metric, one_se, calibration, seed, progress : optional
        As in :func:`select`.

    Returns
    -------
    Selection
        As from :func:`select`.
    """
    started = time.perf_counter()
    part = read_learner(learner, dataset.task)
    dealt = _deal(folds, repeats, dataset, seed)
    notes = list(dataset.notes)
    if criterion is None:
        criterion = "newton-cv" if dealt[0].training is None else "cv"
        if dealt[0].training is not None:
            notes.append("criterion: cv, for a fold whose fit isn't trained on all other rows can only be refitted")
    scorer = read_criterion(criterion, order, pure, eta)
    kernels = [read_kernel(each) for each in (kernel if isinstance(kernel, list | tuple) else [kernel])]
    if not kernels:
        raise OptionError("no kernel is given: name at least one, such as gaussian")
    if not isinstance(verify, numbers.Integral) or verify < 0:
        raise OptionError(f"verify is the number of leading candidates to check, at least 0, not {verify}")
    columns = read_rank(rank, dataset.n)
    method, allowed = read_method(refine, scorer, part, kernels, columns), Budget.read(budget)
    ladder = read_search(search, dataset.n, len(dataset.Y), columns, one_se)
    compile_updates(part, columns is None and not ladder)
    kind = read_calibration(calibration, part, dataset.task)
    deals = [rows_of(dataset, deal, seed) for deal in dealt]
    rows = deals[0]
    if one_se:
        _check_one_se(scorer, verify, rows)
    metrics = _metrics(metric, rows, dataset, kind)
    tried: dict[float, float] = {}
    if getattr(scorer, "eta", 1.0) is None:
        at = ladder[-1] if ladder else columns
        scorer, tried = choose_eta(scorer, rows, dataset, kernels, grid, part, at, progress)
        notes.append(said_of_eta(scorer.eta, tried))
    judge = Judge(deals, dataset, scorer, metrics)
    grids = make_designs(kernels, grid, rows, part)
    searching = GridSearch(rows, scorer, columns, judge.candidates, grids, extend, progress, ladder)
    searching.run()
    _check_any(searching)
    if method is not None:
        notes.append(refined(searching, method, allowed))
    searched = time.perf_counter()
    checked: dict[tuple[Kernel, Any, float], Candidate] = {}
    best = searching.candidates()[0]
    while True:
        candidates = searching.candidates()
        leading = [c for c in candidates[:verify] if c.failed is None]
        if searching.settle(leading):  # the order is another one now
            continue
        new = [c for c in leading if c.key not in checked]
        verdicts = judge.verified(new, columns)
        checked.update({c.key: c for c in verdicts})
        failed_now = {c.key: c for c in verdicts if c.failed is not None}
        searching.found.update(failed_now)
        if failed_now:  # the next ones move up
            continue
        best = min((checked[c.key] for c in leading), key=lambda c: c.order, default=candidates[0])
        # What verification put first may have better neighbours, or lie on an edge, as well.
        if best.key == candidates[0].key or not searching.explore(best):
            break
    _check_any(searching)
    warnings = searching.said() + _lone_classes(rows, dataset)
    held_out = isinstance(scorer, HeldOutCriterion)
    if leading:
        first = checked[leading[0].key]
        if best is not first:
            what = "exact value" if held_out else "exact held-out loss"
            warnings.append(
                f"verification overturned the criterion: {described(first)} came first by "
                f"{scorer.name} ({first.score:.4g}), but its {what} is {_shown(first.verified)} against "
                f"{_shown(best.verified)} of the choice"
            )
        ordered = sorted((checked[c.key] for c in leading), key=lambda c: c.order)
        candidates = sorted([*ordered, *candidates[len(leading) :]], key=lambda candidate: candidate.failed is not None)
    choice = f"lowest {scorer.name}" + ", verified by exact refits" * bool(leading)
    if one_se:
        lowest = candidates[0]
        best, limit = simplest(
            candidates,
            lowest,
            lambda c: c if c.verified is not None else judge.verified([c], columns)[0],
        )
        candidates = [best, *(c for c in candidates if c.key != best.key)]
        choice = (
            f"largest lambda within one standard error ({limit - lowest.value:.3g}) of the lowest {scorer.name}, "
            f"{lowest.value:.5g} by {described(lowest)}"
        )
        if where := searching.edge(best):
            warnings.append(
                f"the choice within one standard error lies on the edge of the grid ({where}): a wider grid may hold a "
                "simpler one"
            )
    failed = sum(candidate.failed is not None for candidate in candidates)
    if failed:
        reasons = sorted({str(c.failed) for c in candidates if c.failed is not None})
        warnings.append(f"{failed} of {len(candidates)} candidates failed ({'; '.join(reasons)})")
    verified = time.perf_counter()

    best = candidates[0]
    path = _refit(best, rows, columns)
    approximate = None if verify or best.exact else scorer
    unmeasured, several = metrics is not None and not best.metrics, isinstance(dataset.target, list)
    every = judge.outputs.get(best.key) or [_heldout(path, approximate)]  # by deal
    held = every[0]
    if len(every) < len(deals) and (best.error is None or unmeasured or several):
        every = [held, *(_heldout(_refit(best, other, columns), approximate) for other in deals[1:])]
    if best.error is None:  # of a criterion without held-out outputs
        best = candidates[0] = judge.with_error(best, every)
    if unmeasured:
        best = candidates[0] = replace(best, metrics=judge.measured(every))
    warnings += [
        f"metric '{name}' is not defined for the held-out predictions of the choice"
        for name, each in best.metrics.items()
        if each.value is None
    ]
    curves, probabilities = _probabilities(kind, held, rows, dataset)
    model = _model(path, dataset, best.learner, rows.n, curves)
    outputs = held[:, : rows.held].T if len(held) > 1 else held[0, : rows.held]
    places = dataset.places[rows.order[: rows.held]]
    measure = best.learner.loss.scored_by
    verification = "the same by exact refits" if held_out else f"mean held-out {measure} of exact refits"
    ended = time.perf_counter()
    return Selection(
        best=best,
        candidates=candidates,
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
            "folds": len(rows.left),
            "holdout": dealt[0].text + f", dealt {repeats} times" * (repeats > 1),
            "repeats": repeats,
            "weight": rows.total,
            "class_weight": dataset.sample.by_class is not None,
            "errors": judge.by_target(every) if several else None,
            "representation": path.describe(),
            "rank": path.rank,
            "choice": choice,
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
            "extend": extend,
            "verify": verify,
            "metrics": [] if metrics is None else list(metrics.scorers),
            "one_se": one_se,
            "calibration": kind,
            "rank": columns,
            "seed": seed,
        },
        timing={
            "search": searched - started,
            "verification": verified - searched,
            "refit": ended - verified,
            "total": ended - started,
        },
        environment=environment(),
    )


def _lone_classes(rows: Rows, dataset: Dataset) -> list[str]:
    """Say which classes some fold's fit never sees: its outputs say little, and those of a logistic loss nothing."""
    if dataset.labels is None:
        return []
    codes = class_codes(rows.Y)
    unseen = set()
    for fold in range(rows.left.size):
        unseen |= set(range(len(dataset.labels))) - set(codes[rows.kept(fold)].tolist())
    names = ", ".join(repr(dataset.labels[code]) for code in sorted(unseen))
    return [f"some fold's fit is trained on no row of class {names}: use fewer or other folds"] if unseen else []


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
        placed = np.full((n, *values.shape[1:]), np.nan)
    else:
        placed = np.full(n, None) if len(places) < n else np.empty(n, values.dtype)
    placed[places] = values
    return placed


def _check_one_se(criterion: Any, verify: int, rows: Rows) -> None:
    if not isinstance(criterion, HeldOutCriterion):
        raise OptionError(
            f"one_se needs a criterion that is a mean over held-out rows, and '{criterion.name}' isn't: use newton-cv"
        )
    if verify == 0:
        raise OptionError("one_se compares with a verified candidate: let verify be at least 1")
    if rows.left.size == 1:
        raise OptionError("one_se needs a standard error over folds, and there is one fold only: hold out more")


def _metrics(metric: str | Sequence[str], rows: Rows, dataset: Dataset, calibration: str | None) -> Metrics | None:
    if not metric:
        return None
    from kernsel.metrics import Metrics  # imports scikit-learn, which takes longer than a small selection

    return Metrics.of(metric, rows, dataset, calibration)


def _probabilities(
    kind: str | None, held: Array, rows: Rows, dataset: Dataset
) -> tuple[Calibration | None, Array | None]:
    """Return the calibration for new rows, and the probabilities of the held-out rows themselves, cross-fitted."""
    if kind is None:
        return None, None
    plain = dataset.sample.plain
    s = np.ones(rows.held) if plain is None else plain[rows.order[: rows.held]]
    F, Y = held[:, : rows.held], rows.Y[:, : rows.held]
    return calibrate(kind, F, Y, s), cross_fitted(kind, F, Y, s, rows.starts)


def _refit(winner: Candidate, rows: Rows, rank: int | None) -> Path:
    """Fit a candidate on the rows of a deal, from larger lambda down; the last fit is its own."""
    return make_path(Problem(rows, winner.kernel, rank), winner.learner, winner.lam * CONTINUATION)


def _heldout(path: Path, criterion: Any) -> Array:
    """Held-out outputs of the last fit of a path: as a criterion sees them, exact without one or if it makes none."""
    if isinstance(criterion, HeldOutCriterion):
        return criterion.heldout(path).f[:, -1]
    return path.exact([path.lams.size - 1]).f[:, 0]


def _model(path: Path, dataset: Dataset, learner: Any, n: int, calibration: Calibration | None) -> Model:
    """Make the predictor of the last fit of a path; rows without weight are left out."""
    last = path.lams.size - 1
    coefficients = path.coefficients(last)
    used = (coefficients != 0).any(axis=0)
    regression = dataset.task == "regression"
    intervals = Intervals.of(path, last) if regression else None
    if intervals is not None:
        used |= intervals.used
    if not used.any():
        used[:1] = True
    return Model(
        kernel=path.problem.kernel,
        learner=learner.name,
        rows=np.ascontiguousarray(path.points()[used]),
        coefficients=np.ascontiguousarray(coefficients[:, used]),
        bias=path.intercepts(path.lams.size - 1),
        task=dataset.task,
        labels=dataset.labels,
        target=dataset.target,
        encoder=dataset.encoder,
        output_shift=dataset.output_shift,
        output_scale=dataset.output_scale,
        provenance={
            "kernsel": kernsel.__version__,
            "lambda": float(path.lams[-1]),
            "rows": n,
            "source": dataset.source,
        },
        calibration=calibration,
        intervals=None if intervals is None else intervals.restricted(used),
    )


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    """Write infinity as text: JSON has none."""
    return {name: "inf" if value == math.inf else value for name, value in values.items()}


def _listed(axis: Any) -> Any:
    return axis if isinstance(axis, str) else np.ravel(axis).tolist()


def _shown(value: float | None) -> str:
    return "failed" if value is None or not math.isfinite(value) else f"{value:.4g}"


__all__ = ["Selection", "select", "select_dataset"]
