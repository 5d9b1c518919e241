"""Nested cross-validation: the error of rows that took no part in choosing either."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernsel.data import Dataset
from kernsel.data.tables import take
from kernsel.data.target import class_codes
from kernsel.errors import OptionError
from kernsel.folds import Folds, make_folds
from kernsel.folds.partition import Partition
from kernsel.heldout.baseline import constant_error
from kernsel.heldout.errors import Errors
from kernsel.heldout.metrics import class_numbers
from kernsel.heldout.standard_error import standard_error
from kernsel.journal import journaling, remember, run_header
from kernsel.kernels import is_precomputed
from kernsel.selection.api import select
from kernsel.selection.carry_out import carry_out, encode_arrays
from kernsel.selection.plan import Plan
from kernsel.selection.result import describe_candidate
from kernsel.selection.setting import read_best_for, read_metrics
from kernsel.text import finite_or_none
from kernsel.types import Array, Indices, Progress
from kernsel.words import understands

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    from kernsel.search.candidate import Candidate
    from kernsel.selection.result import Selection


@dataclass(frozen=True, eq=False)
class OuterFold:
    """One outer fold: a selection without its rows, and the error of what it chose on them.

    Parameters
    ----------
    rows : int
        Number of rows that were held out.
    best : Candidate
        What was chosen without them; its ``error`` is the one that the selection itself reports.
    error : float
        Of the held-out rows.
    metrics : dict of str to float
        Of the held-out rows; NaN where one isn't defined.
    """

    rows: int
    best: Candidate
    error: float
    metrics: dict[str, float]


@dataclass(frozen=True, eq=False)
class Nested:
    """The outcome of :func:`nested`.

    Parameters
    ----------
    error, error_se : float
        Of all held-out rows: misclassification, or RMSE in units of the target (of several targets, in standard
        deviations of each); its standard error over folds is NaN for one fold alone.
    reported : float
        Mean over folds of the error that the selections themselves report for their choice.
    predictions : (n,) or (n, k) array
        For each row, by the model that was chosen without it; NaN or None for rows that are never held out.
    holdout : str
        The outer folds in words.
    baseline, baseline_se : float
        The error of the largest class, or of the mean, of the rows that each outer fold leaves; its standard error.
    best_for : str or None
        What thresholds are the best for that the rows are called by; what the selections reported is by one of 0.
    """

    error: float
    error_se: float
    reported: float
    folds: tuple[OuterFold, ...]
    predictions: NDArray[Any]
    holdout: str
    baseline: float
    baseline_se: float
    best_for: str | None = None

    @property
    def optimism(self) -> float:
        """By how much the selections' own figures are too good."""
        return self.error - self.reported

    @property
    def metrics(self) -> dict[str, dict[str, float | None]]:
        """Of each metric the mean over outer folds of ``value`` on their rows, its standard error ``se``, and of what
        the selections ``reported``; None where there is none."""
        names = self.folds[0].metrics
        own = {name: [f.best.metrics[name].value for f in self.folds if name in f.best.metrics] for name in names}
        return {
            name: {
                "value": _mean([f.metrics[name] for f in self.folds]),
                "se": _standard_error([f.metrics[name] for f in self.folds]),
                "reported": _mean([math.nan if value is None else value for value in own[name]]),
            }
            for name in names
        }

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the predictions, as JSON can hold it."""
        return {
            "holdout": self.holdout,
            "error": self.error,
            "error_se": finite_or_none(self.error_se),
            "reported": self.reported,
            "optimism": self.optimism,
            "baseline": {"error": self.baseline, "error_se": self.baseline_se},
            "metrics": self.metrics,
            "folds": [
                {"rows": f.rows, "error": f.error, "kernel": f.best.kernel.spec(), "lambda": f.best.lam,
                 "reported": f.best.error,
                 "metrics": {name: finite_or_none(value) for name, value in f.metrics.items()}}
                for f in self.folds
            ],
        }  # fmt: skip

    def _of_metric(self, name: str) -> str:
        """Say what a metric is on the rows of outer folds, and on how many of them it is defined."""
        known, count = self.metrics[name], len(self.folds)
        defined = sum(math.isfinite(fold.metrics[name]) for fold in self.folds)
        value = f"{_figure(known['value'])} +- {_figure(known['se'], 2)}, the mean over outer folds"
        if not defined:
            value = "has no value on the rows of any outer fold alone, too few or of one class: use fewer outer folds"
        elif defined < count:
            value += f" ({defined} of {count}; without a value on the others, too few rows or of one class)"
        return f"  {name}: {value}; the selections themselves reported {_figure(known['reported'])}"

    def summary(self) -> str:
        """Return the estimate for people."""
        se = "" if np.isnan(self.error_se) else f" +- {self.error_se:.2g}"
        choices = sorted({describe_candidate(f.best) for f in self.folds})
        return "\n".join(
            [
                f"nested estimate over {self.holdout}: error {self.error:.4g}{se} of rows that had no part in a choice",
                f"  without features, by the largest class or the mean: {self.baseline:.4g} +- {self.baseline_se:.2g}",
                f"  the selections themselves reported {self.reported:.4g}"
                + (
                    f": an optimism of {self.optimism:.2g}"
                    if self.best_for is None
                    else f", by a threshold of 0; rows are called by the best for {self.best_for} here"
                ),
                *map(self._of_metric, self.metrics),
                f"  {len(choices)} different choices in {len(self.folds)} folds: {'; '.join(choices)}",
            ]
        )


@understands(select)
def nested(
    X: pd.DataFrame | npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    outer: int | str | Any = 5,
    weights: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Nested:
    """Hold out rows from the whole selection: encoding, scaling, search and verification.

    The error that a selection reports is that of the best of many candidates on the rows that they were compared on,
    and so too good (Cawley & Talbot 2010). Here each outer fold's rows are predicted by a model that was selected,
    with inner folds of their own, on the others.

    Parameters
    ----------
    X : (n, d) array, sparse matrix or DataFrame
    y : (n,) or (n, k) array
    outer : int, str, splitter or iterable of pairs
        The outer folds, in any form that ``folds`` of :func:`kernsel.select` has; each row is held out at most once.
    weights, groups : optional
        As in :func:`kernsel.select`.
    progress : callable, optional
        Called as ``progress(done, total, text)`` after each outer fold.
    **options
        What else :func:`kernsel.select` is told; ``folds`` are the inner folds, of which an array has that of each of
        the n rows. The scorers of ``metric`` and ``select_by`` are computed on the rows of each outer fold.

    Raises
    ------
    DataError, OptionError, IncompatibleError, PluginError, SelectionError
        As from :func:`kernsel.select`.
    """
    return estimate_nested(X, y, Plan(**options), outer, weights=weights, groups=groups, progress=progress)


def estimate_nested(
    X: pd.DataFrame | npt.ArrayLike,
    y: npt.ArrayLike,
    plan: Plan,
    outer: int | str | Any,
    *,
    weights: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    progress: Progress | None = None,
) -> Nested:
    """Return the nested estimate of a plan: see :func:`nested`.

    Parameters
    ----------
    X : (n, d) array, sparse matrix or DataFrame
    y : (n,) or (n, k) array
    plan : Plan
        Its folds are the inner ones.
    outer : int, str, splitter or iterable of pairs
    weights, groups : optional
    """
    whole = encode_arrays(X, y, plan, weights, groups)
    header = partial(run_header, "nested", whole, {**plan.options, "outer": outer})
    with journaling(plan.journal, header):
        return _estimate(_Given(X, y, weights, groups), whole, replace(plan, task=whole.task), outer, progress)


class _Given(NamedTuple):
    """A table as it is given."""

    X: Any
    y: Any
    weights: Any
    groups: Any

    def select(self, plan: Plan, train: Indices) -> Selection:
        """Select on some of the rows; times, coordinates and folds of the plan that are arrays are of all rows."""
        arrays = {name: value for name, value in plan.near.items() if hasattr(value, "dtype") or hasattr(value, "iloc")}
        if np.ndim(plan.folds) == 1 and not isinstance(plan.folds, str):
            arrays["folds"] = plan.folds
        plan = replace(plan, **{name: take(value, train) for name, value in arrays.items()})
        rest = (None if each is None else take(each, train) for each in (self.weights, self.groups))
        return carry_out(encode_arrays(self.rows(plan, train, train), take(self.y, train), plan, *rest), plan)

    def rows(self, plan: Plan, rows: Indices, training: Indices) -> Any:
        """Return some rows of X; of a Gram matrix, their values with the rows that a model is selected on."""
        return np.asarray(self.X)[np.ix_(rows, training)] if is_precomputed(plan.kernel) else take(self.X, rows)


def _estimate(given: _Given, whole: Dataset, plan: Plan, outer: object, progress: Progress | None) -> Nested:
    """Return the nested estimate of a plan on a table, which is encoded as the data set ``whole``."""
    folds, seed = plan.folds, plan.seed
    dealt = make_folds(outer, whole, seed)
    if isinstance(folds, list | tuple) and len(folds) != whole.given:
        raise OptionError("nested: inner folds as pairs of rows are of all rows; give a number of folds or a splitter")
    places, order, starts = whole.places, dealt.order, dealt.starts
    metrics = read_metrics(plan, Partition.of(whole, dealt, seed), whole, None)
    found, predicted, judged = [], [], []

    def select_without(train: Indices, test: Indices, of: Indices) -> tuple[NDArray[Any], Candidate, dict[str, float]]:
        result, rows = given.select(plan, train), given.rows(plan, test, train)
        values = {} if metrics is None else metrics.judge(result.model, rows, of)
        return np.asarray(result.model.predict(rows)), result.best, values

    for fold, (low, high) in enumerate(pairwise(starts)):
        kept = dealt.number != fold if dealt.training is None else dealt.training[fold]
        parts = places[kept], places[order[low:high]], order[low:high]
        outputs, best, values = remember("outer fold", (whole, plan.options, *parts), partial(select_without, *parts))
        predicted.append(outputs)
        found.append(best)
        judged.append(values)
        if progress is not None:
            progress(fold + 1, starts.size - 1, "outer folds")
    predictions, held = np.concatenate(predicted), order[: starts[-1]]
    plain = whole.sample.plain
    weight = np.ones(held.size) if plain is None else plain[held]
    losses = row_losses(whole, whole.Y[:, held], predictions)
    errors = [_error(whole, losses[a:b], weight[a:b]) for a, b in pairwise(starts)]
    error, spread = _error(whole, losses, weight), float(standard_error(losses, starts, weight))
    placed = np.full((whole.given, *predictions.shape[1:]), np.nan if predictions.dtype.kind == "f" else None)
    placed[places[held]] = predictions
    baseline, baseline_se = _constant(whole, dealt, seed)
    best_for = read_best_for(plan, whole)
    return Nested(
        error=error,
        error_se=spread if whole.task == "classification" else spread / (2 * error) if error else 0.0,
        reported=float(np.mean([best.error for best in found])),
        folds=tuple(
            OuterFold(int(n), best, e, values)
            for n, best, e, values in zip(np.diff(starts), found, errors, judged, strict=True)
        ),
        predictions=placed,
        holdout=dealt.text,
        baseline=baseline,
        baseline_se=baseline_se,
        best_for=None if best_for is None else best_for.text,
    )


def _constant(dataset: Dataset, outer: Folds, seed: int) -> tuple[float, float]:
    """Return the error of what knows no features, weighted as the errors of the selections are; its standard error."""
    plain = dataset.sample.plain
    rows = replace(Partition.of(dataset, outer, seed), weights=None if plain is None else plain[outer.order])
    return constant_error(rows, Errors.of(dataset))


def row_losses(dataset: Dataset, Y: Array, predictions: NDArray[Any]) -> Array:
    """Return the loss (n,) of each row: 0-1, or the squared error in the target's units, of several in their own."""
    if dataset.labels is not None:
        return np.asarray(class_codes(Y) != class_numbers(dataset.labels, predictions), np.float64)
    F = (predictions.reshape(len(predictions), -1) - dataset.output_shift) / dataset.output_scale
    return np.asarray(Errors.of(dataset).unit ** 2 * ((F.T - Y) ** 2).mean(axis=0))


def _error(dataset: Dataset, losses: Array, weight: Array) -> float:
    mean = float(losses @ weight / weight.sum())
    return mean if dataset.task == "classification" else float(np.sqrt(mean))


def _mean(values: Sequence[float]) -> float | None:
    """Return the mean of the values that are defined, if there are any."""
    defined = [value for value in values if math.isfinite(value)]
    return float(np.mean(defined)) if defined else None


def _standard_error(values: Sequence[float]) -> float | None:
    """Return the standard error of the mean of the values that are defined, if there are two."""
    defined = [value for value in values if math.isfinite(value)]
    return float(np.std(defined, ddof=1) / math.sqrt(len(defined))) if len(defined) > 1 else None


def _figure(value: float | None, digits: int = 4) -> str:
    return "unknown" if value is None else f"{value:.{digits}g}"
