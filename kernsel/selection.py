"""Select a kernel model: search, verify the leaders by exact held-out predictions, refit the winner."""

from __future__ import annotations

import dataclasses
import math
import platform
import time
import warnings as python_warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import kernsel
from kernsel.calibration import Calibration, calibrate, cross_fitted, read_calibration
from kernsel.criteria import HeldOutCriterion, Scores
from kernsel.data import Dataset, from_arrays
from kernsel.errors import OptionError, SelectionError, SelectionWarning
from kernsel.folds import deal
from kernsel.intervals import Intervals
from kernsel.kernels import Kernel, Statistics
from kernsel.model import Model
from kernsel.numerics.jit import one_blas_thread, threads
from kernsel.options import read_criterion, read_kernel, read_learner, read_rank
from kernsel.paths import Path, compile_updates, fit_together, make_path
from kernsel.problem import Problem, Rows
from kernsel.resampling import standard_error
from kernsel.result import Selection, short
from kernsel.search.grid import Candidate, Grid, GridSearch, Progress, make_grids
from kernsel.search.onese import simplest

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
    criterion: str | Any = "newton-cv",
    folds: int = 10,
    grid: Grid = "auto",
    verify: int = 5,
    rank: int | float | str | None = None,
    extend: bool = True,
    pure: bool = False,
    order: float | None = None,
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
    cross-validation, and fits the best of them on all rows: ``min (1/n) sum_i V(y_i, f(x_i)) + lambda ||f||^2``.

    Parameters
    ----------
    X : (n, d) array or DataFrame
        Features; text columns of a DataFrame are encoded one-hot.
    y : (n,) array
        Target: numbers, or labels of any kind.
    learner : str or Learner, optional
        ``svm`` for classes and ``krr`` for a regression by default.
    kernel : str, Kernel or list of them
        Parameters that have a value stay; the others are searched.
    criterion : str or Criterion
        Such as ``newton-cv``, ``cv``, ``bif``, ``fbif`` or ``"bif(order=3)"``.
    folds : int
        Folds of the cross-validation, stratified for classes.
    grid : {"auto", "paper"} or mapping
        Scaled by the data, that of FBIF18, or values by the name of the parameter and ``"lambda"``.
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
        from_arrays(X, y, task, standardize),
        learner=learner,
        kernel=kernel,
        criterion=criterion,
        folds=folds,
        grid=grid,
        verify=verify,
        rank=rank,
        extend=extend,
        pure=pure,
        order=order,
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
    criterion: str | Any = "newton-cv",
    folds: int = 10,
    grid: Grid = "auto",
    verify: int = 5,
    rank: int | float | str | None = None,
    extend: bool = True,
    pure: bool = False,
    order: float | None = None,
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
    learner, kernel, criterion, folds, grid, verify, rank, extend, pure, order : optional
        As in :func:`select`.
    metric, one_se, calibration, seed, progress : optional
        As in :func:`select`.

    Returns
    -------
    Selection
        As from :func:`select`.
    """
    started = time.perf_counter()
    part = read_learner(learner, dataset.task)
    scorer = read_criterion(criterion, order, pure)
    kernels = [read_kernel(each) for each in (kernel if isinstance(kernel, list | tuple) else [kernel])]
    if not kernels:
        raise OptionError("no kernel is given: name at least one, such as gaussian")
    if verify < 0:
        raise OptionError(f"verify is the number of leading candidates to check, at least 0, not {verify}")
    columns = read_rank(rank, dataset.n)
    kind = read_calibration(calibration, part, dataset.task)
    if one_se:
        _check_one_se(scorer, verify)
    rows = _rows(dataset, folds, seed)
    metrics = _metrics(metric, rows, dataset, kind)
    compile_updates(part, columns is None)
    judge = _Judge(rows, dataset, metrics)
    grids = make_grids(kernels, grid, rows)
    search = GridSearch(rows, part, scorer, columns, judge.candidates, grids, extend, progress)
    search.run()
    if search.candidates()[0].failed is not None:
        first = search.candidates()[0]
        raise SelectionError(f"all {len(search.found)} candidates failed; the first one: {first.failed}")
    searched = time.perf_counter()
    checked: dict[tuple[Kernel, float], Candidate] = {}
    while True:
        candidates = search.candidates()
        leading = [c for c in candidates[:verify] if c.failed is None]
        new = [c for c in leading if (c.kernel, c.lam) not in checked]
        checked.update({(c.kernel, c.lam): c for c in _verified(new, rows, part, scorer, columns, judge)})
        best = min((checked[c.kernel, c.lam] for c in leading), key=lambda c: c.rank, default=candidates[0])
        # What verification put first may lie on an edge as well.
        if (best.kernel, best.lam) == (candidates[0].kernel, candidates[0].lam) or not search.beyond(best):
            break
    warnings = search.said()
    if leading:
        first = checked[leading[0].kernel, leading[0].lam]
        if best.failed is not None:
            raise SelectionError(f"every verified candidate failed; the first one: {first.failed}")
        if best is not first:
            warnings.append(
                f"verification overturned the criterion: {short(first.kernel)}, lambda = {first.lam:.4g} came first by "
                f"{scorer.name} ({first.score:.4g}), but its exact value is {_shown(first.verified)} against "
                f"{_shown(best.verified)} of the choice"
            )
        ordered = sorted((checked[c.kernel, c.lam] for c in leading), key=lambda c: c.rank)
        candidates = sorted([*ordered, *candidates[len(leading) :]], key=lambda candidate: candidate.failed is not None)
    choice = f"lowest {scorer.name}" + ", verified by exact refits" * bool(leading)
    if one_se:
        lowest = candidates[0]
        best, limit = simplest(
            candidates,
            lowest,
            lambda c: c if c.verified is not None else _verified([c], rows, part, scorer, columns, judge)[0],
        )
        candidates = [best, *(c for c in candidates if (c.kernel, c.lam) != (best.kernel, best.lam))]
        choice = (
            f"largest lambda within one standard error ({limit - lowest.value:.3g}) of the lowest {scorer.name}, "
            f"{lowest.value:.5g} by {short(lowest.kernel)}, lambda = {lowest.lam:.4g}"
        )
    failed = sum(candidate.failed is not None for candidate in candidates)
    if failed:
        reasons = sorted({str(c.failed) for c in candidates if c.failed is not None})
        warnings.append(f"{failed} of {len(candidates)} candidates failed ({'; '.join(reasons)})")
    verified = time.perf_counter()

    best = candidates[0]
    path = make_path(Problem(rows, best.kernel, columns), part, best.lam * CONTINUATION)
    fit_together([path])
    held = path.exact([len(CONTINUATION) - 1]).f[:, 0] if verify or best.exact else _approximate(path, scorer)
    if metrics is not None and not best.metrics:
        best = candidates[0] = replace(best, metrics=metrics.evaluate(held))
    warnings += [
        f"metric '{name}' is not defined for the held-out predictions of the choice"
        for name, each in best.metrics.items()
        if each.value is None
    ]
    curves, probabilities = _probabilities(kind, held, rows)
    model = _model(path, dataset, part, rows.n, curves)
    outputs = rows.as_given(held).T if len(held) > 1 else rows.as_given(held[0])
    ended = time.perf_counter()
    return Selection(
        best=best,
        candidates=candidates,
        learner=part.name,
        criterion=scorer.name,
        model=model,
        heldout=model.outputs_to_predictions(outputs),
        outputs=outputs,
        probabilities=probabilities,
        warnings=warnings,
        conversions={**best.kernel.conversions(), **part.conversions(rows.n, best.lam)},
        data={
            "rows": rows.n,
            "features": dataset.d,
            "task": dataset.task,
            "target": dataset.target,
            "labels": dataset.labels,
            "source": dataset.source,
            "notes": dataset.notes,
            "folds": len(rows.left),
            "representation": path.problem.describe(),
            "rank": int(path.problem.matrix.shape[1]),
            "choice": choice,
            "measure": f"mean held-out {part.loss.name} loss" if not hasattr(scorer, "measure") else "its own measure",
        },
        options={
            "learner": {"name": part.name, **dataclasses.asdict(part)},
            "kernels": [str(each) for each in kernels],
            "criterion": {"name": scorer.name, **_finite(dataclasses.asdict(scorer))},
            "grid": grid if isinstance(grid, str) else {name: np.ravel(axis).tolist() for name, axis in grid.items()},
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
        environment=_environment(),
    )


def _rows(dataset: Dataset, folds: int, seed: int) -> Rows:
    """Split into folds, stratified for classes, and sort the rows by fold."""
    n = dataset.n
    if folds != int(folds) or not 2 <= folds <= n:
        raise OptionError(f"{folds} folds can't be made of {n} rows: use 2 to {n} folds")
    labels = np.zeros(n, np.int64)
    if dataset.task == "classification":
        labels = np.where(dataset.Y[0] > 0, 1, 0) if dataset.k == 1 else dataset.Y.argmax(axis=0)
    order, starts = deal(labels, folds, seed)
    X, Y = np.ascontiguousarray(dataset.X[order]), np.ascontiguousarray(dataset.Y[:, order])
    return Rows(X, Y, starts, order, Statistics(X), seed)


def _check_one_se(criterion: Any, verify: int) -> None:
    if not isinstance(criterion, HeldOutCriterion):
        raise OptionError(
            f"one_se needs a criterion that is a mean over held-out rows, and '{criterion.name}' isn't: use newton-cv"
        )
    if verify == 0:
        raise OptionError("one_se compares with a verified candidate: let verify be at least 1")


def _metrics(metric: str | Sequence[str], rows: Rows, dataset: Dataset, calibration: str | None) -> Metrics | None:
    if not metric:
        return None
    from kernsel.metrics import Metrics  # imports scikit-learn, which takes longer than a small selection

    return Metrics.of(metric, rows, dataset, calibration)


def _probabilities(kind: str | None, held: Array, rows: Rows) -> tuple[Calibration | None, Array | None]:
    """Return the calibration for new rows, and the probabilities of the rows themselves, cross-fitted."""
    if kind is None:
        return None, None
    F, Y, s = held[:, : rows.held], rows.Y[:, : rows.held], rows.s[: rows.held]
    P = np.full((max(2, len(F)), rows.n), np.nan)
    P[:, : rows.held] = cross_fitted(kind, F, Y, s, rows.starts).T
    return calibrate(kind, F, Y, s), rows.as_given(P).T


@dataclass(frozen=True, eq=False)
class _Judge:
    """Turns scores and held-out outputs into candidates, with the error that people understand."""

    rows: Rows
    dataset: Dataset
    metrics: Metrics | None

    def candidates(self, path: Path, scores: Scores) -> list[Candidate]:
        """Return one candidate for each lambda of a path."""
        held = scores.heldout
        found = []
        for k, lam in enumerate(path.lams):
            candidate = Candidate(path.problem.kernel, float(lam), failed=scores.failed[k])
            if candidate.failed is None:
                candidate = replace(
                    candidate,
                    score=float(scores.score[k]),
                    score_se=None if scores.score_se is None else float(scores.score_se[k]),
                    reliability=None if scores.reliability is None else float(scores.reliability[k]),
                    scored_by=None if scores.scored_by is None else scores.scored_by[k],
                    loss=math.inf if scores.loss is None else float(scores.loss[k]),
                    exact=held is not None and bool(held.exact[k]),
                    **({} if held is None else self.errors(held.f[:, k])),
                )
            found.append(candidate)
        return found

    def errors(self, F: Array) -> dict[str, Any]:
        """Return the error of held-out outputs (k, n) and its standard error."""
        Y, rows = self.rows.Y, self.rows
        if self.dataset.task == "classification":
            wrong = (F >= 0) != (Y > 0) if len(Y) == 1 else (F.argmax(axis=0) != Y.argmax(axis=0))[None]
            mean, spread = _over_folds(wrong[0].astype(np.float64), rows)
            return {"error": mean, "error_se": spread}
        mean, spread = _over_folds((F[0] - Y[0]) ** 2, rows)
        root, scale = math.sqrt(mean), float(self.dataset.output_scale[0])
        return {"error": root * scale, "error_se": scale * spread / (2 * root) if root > 0 else 0.0}


def _over_folds(values: Array, rows: Rows) -> tuple[float, float]:
    """Return the mean over rows, and the standard error of the mean over folds."""
    return float(rows.mean(values)), float(standard_error(values, rows.starts, rows.s))


def _verified(
    leading: list[Candidate], rows: Rows, learner: Any, criterion: Any, rank: int | None, judge: _Judge
) -> list[Candidate]:
    """Re-score candidates by exact refits, at the representation in force; their order is kept."""
    # What is exact already needs its held-out outputs again for metrics only.
    done = {id(c) for c in leading if c.exact and judge.metrics is None}
    result = {id(c): replace(c, verified=c.score) for c in leading if id(c) in done}
    by_kernel: dict[Kernel, list[Candidate]] = {}
    for candidate in leading:
        if id(candidate) not in done:
            by_kernel.setdefault(candidate.kernel, []).append(candidate)
    paths = [make_path(Problem(rows, kernel, rank), learner, [c.lam for c in cs]) for kernel, cs in by_kernel.items()]
    for path, members in zip(paths, by_kernel.values(), strict=True):
        fit_together([path])
        held = path.exact()
        for k, candidate in enumerate(sorted(members, key=lambda c: -c.lam)):
            F, reason = held.f[:, k], held.failed[k]
            if reason is None:
                losses = learner.loss.value(rows.Y, F).mean(axis=0)
                values = criterion.values(path, F) if isinstance(criterion, HeldOutCriterion) else losses
                verified, score_se = _over_folds(values, rows)
                result[id(candidate)] = replace(
                    candidate,
                    verified=verified,
                    score_se=score_se,
                    loss=float(rows.mean(losses)),
                    metrics={} if judge.metrics is None else judge.metrics.evaluate(F),
                    **judge.errors(F),
                )
            else:
                result[id(candidate)] = replace(candidate, verified=math.inf, failed=f"not verified: {reason}")
    return [result[id(candidate)] for candidate in leading]


def _approximate(path: Path, criterion: Any) -> Array:
    """Held-out outputs of the last fit of a path as the criterion sees them, exact if it makes none."""
    if isinstance(criterion, HeldOutCriterion):
        return criterion.heldout(path).f[:, -1]
    return path.exact([path.lams.size - 1]).f[:, 0]


def _model(path: Path, dataset: Dataset, learner: Any, n: int, calibration: Calibration | None) -> Model:
    """Make the predictor of the last fit of a path; rows without weight are left out."""
    last = path.lams.size - 1
    coefficients = path.coefficients(last)
    used = (coefficients != 0).any(axis=0)
    regression = dataset.task == "regression"
    intervals = Intervals.of(path, last) if regression and hasattr(path, "refits") else None
    if intervals is not None:
        used |= intervals.used
    if not used.any():
        used[:1] = True
    return Model(
        kernel=path.problem.kernel,
        learner=learner.name,
        rows=np.ascontiguousarray(path.points()[used]),
        coefficients=np.ascontiguousarray(coefficients[:, used]),
        bias=np.zeros(len(coefficients)),
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


def _environment() -> dict[str, Any]:
    import numba
    import scipy

    return {
        "kernsel": kernsel.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
        "threads": threads(),
        "platform": platform.platform(),
    }


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    """Write infinity as text: JSON has none."""
    return {name: "inf" if value == math.inf else value for name, value in values.items()}


def _shown(value: float | None) -> str:
    return "failed" if value is None or not math.isfinite(value) else f"{value:.4g}"


__all__ = ["Selection", "select", "select_dataset"]
