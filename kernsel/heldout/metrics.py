"""scikit-learn's scorers on held-out outputs.

A scorer asks an estimator for labels, decision values or probabilities, and compares them with the truth. Here the
"estimator" looks up what the fits without a row's fold have said of it. Classes are handed over as numbers in the order
of the labels, so that for two classes the second label is the positive one.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer, get_scorer_names

from kernsel.data import Dataset
from kernsel.data.target import chosen_classes
from kernsel.errors import OptionError
from kernsel.folds.partition import Partition
from kernsel.heldout.calibration import cross_fitted
from kernsel.heldout.coupling import cross_coupled
from kernsel.heldout.standard_error import jackknife
from kernsel.heldout.threshold import Measure, cross_fitted_thresholds
from kernsel.text import listing, meant
from kernsel.types import Array, Indices

OF_REGRESSIONS = re.compile(r"r2|explained_variance|d2_absolute_error_score|neg_.*_(error|deviance)")
"""scikit-learn's names of scorers don't say what they are for; those of a regression are these."""

Scorer: TypeAlias = Callable[..., float]
"""A scorer of scikit-learn: of an estimator, features, truth and, by name, weights."""

NEAR = 3
"""Names that are offered for one that is unknown: scikit-learn's differ in their endings."""


class MetricValue(NamedTuple):
    """A metric over all held-out rows, and its standard error over folds; None where it isn't defined."""

    value: float | None
    se: float | None


@dataclass(frozen=True, eq=False)
class Metrics:
    """Scorers, and the data set they are for.

    Weights of rows count, those of classes don't: they say what a mistake costs, not how often rows are there.

    Parameters
    ----------
    scorers : mapping of str to scorer
        By scikit-learn's names; higher is better.
    calibration : str or None
        The kind of calibration behind probabilities.
    best_for : Measure or None
        What the threshold of two classes is best for; held-out rows are called by thresholds found without them.
    """

    scorers: Mapping[str, Scorer]
    dataset: Dataset
    calibration: str | None
    best_for: Measure | None = None

    @classmethod
    def of(
        cls,
        names: str | Sequence[str],
        rows: Partition,
        dataset: Dataset,
        calibration: str | None,
        best_for: Measure | None = None,
    ) -> Metrics:
        """Look up scorers, and try them on the rows of a data set.

        Raises
        ------
        OptionError
            There is no such scorer, or it is for another kind of task, target or rows.
        """
        names = [names] if isinstance(names, str) else list(names)
        metrics = cls({name: _scorer(name, dataset.task) for name in names}, dataset, calibration, best_for)
        # Any outputs will do to learn whether a scorer suits; the mean of a target is among its possible values.
        F = rows.Y if dataset.task == "classification" else np.zeros_like(rows.Y) + rows.Y.mean(axis=1, keepdims=True)
        heldout = metrics._heldout(rows, F)
        for name, scorer in metrics.scorers.items():
            try:
                heldout.score(scorer, np.arange(rows.held))
            except (TypeError, ValueError) as error:
                reason = " ".join(str(error).split())
                if heldout.weights is not None and "sample_weight" in reason:
                    reason = "it takes no sample weights"
                others = heldout.defined(other for other in get_scorer_names() if other.startswith(f"{name}_"))
                instead = f"use {listing(others, 'or')}" if others else "leave it out or use another one"
                raise OptionError(f"metric {name!r} can't be computed here ({reason}); {instead}") from error
        return metrics

    def evaluate(self, rows: Partition, F: Array) -> dict[str, MetricValue]:
        """Return each metric of held-out outputs ``F (k, n)`` of rows that are sorted by fold."""
        heldout = self._heldout(rows, F)
        return {name: heldout.value(scorer) for name, scorer in self.scorers.items()}

    def judge(self, model: Any, X: Any, rows: Indices) -> dict[str, float]:
        """Return each metric of a model on rows (m,) of the data set that it hasn't seen; NaN where it isn't defined.

        Parameters
        ----------
        model : Model
            Of the data set's classes it may know some only.
        X : table of m rows
        rows : (m,) array
        """
        dataset, Y = self.dataset, self.dataset.Y[:, rows]
        plain = dataset.sample.plain
        weights = None if plain is None else plain[rows]
        starts = np.array([0, len(rows)])
        if dataset.labels is None:
            heldout = _HeldOut(_Values(np.asarray(model.predict(X))), self._in_units(Y), weights, starts)
        else:
            heldout = _HeldOut(_judged(model, X, dataset.labels), chosen_classes(Y), weights, starts)
        return {name: heldout.score_or_nan(scorer, np.arange(len(rows))) for name, scorer in self.scorers.items()}

    def _heldout(self, rows: Partition, F: Array) -> _HeldOut:
        F, Y = F[:, : rows.held], rows.Y[:, : rows.held]
        plain = self.dataset.sample.plain
        weights = None if plain is None else plain[rows.order[: rows.held]]
        s = np.ones(rows.held) if weights is None else weights
        if self.dataset.task == "regression":
            return _HeldOut(_Values(self._in_units(F)), self._in_units(Y), weights, rows.starts)
        kind = self.calibration or "sigmoid"
        if kind == "softmax":
            F = cross_coupled(F, Y, s, rows.starts)
        best_for = self.best_for
        cuts = 0.0 if best_for is None else cross_fitted_thresholds(best_for, F[0], Y[0], s, rows.starts)
        estimator = _looked_up(F, cuts, lambda: cross_fitted(kind, F, Y, s, rows.starts))
        return _HeldOut(estimator, chosen_classes(Y), weights, rows.starts)

    def _in_units(self, F: Array) -> Array:
        values = F.T * self.dataset.output_scale + self.dataset.output_shift
        return values[:, 0] if len(F) == 1 else values


@dataclass(frozen=True, eq=False)
class _HeldOut:
    """Held-out rows as a scorer wants them: an estimator that has looked them up, the truth, weights and folds."""

    estimator: Any
    truth: NDArray[Any]
    weights: Array | None
    starts: Indices

    def value(self, scorer: Scorer) -> MetricValue:
        value = self.score_or_nan(scorer, np.arange(len(self.truth)))
        if not math.isfinite(value):
            return MetricValue(None, None)
        s = np.ones(len(self.truth)) if self.weights is None else self.weights
        return MetricValue(value, jackknife(partial(self.score_or_nan, scorer), self.starts, s))

    def score_or_nan(self, scorer: Scorer, which: Indices) -> float:
        try:
            return self.score(scorer, which)
        except ValueError:  # such as one class only, without some block of folds
            return math.nan

    def defined(self, names: Iterable[str]) -> list[str]:
        """Return the names of the scorers that can be computed."""
        which = np.arange(len(self.truth))
        found = []
        for name in names:
            with suppress(TypeError, ValueError):
                self.score(get_scorer(name), which)
                found.append(name)
        return found

    def score(self, scorer: Scorer, which: Indices) -> float:
        options = {} if self.weights is None else {"sample_weight": self.weights[which]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scikit-learn's, of metrics that are undefined: they have no value
            return float(scorer(self.estimator, which, self.truth[which], **options))


def _scorer(name: object, task: str) -> Scorer:
    known = get_scorer_names()
    usual = {"regression": "r2, neg_mean_absolute_error", "classification": "accuracy, roc_auc, neg_log_loss"}
    if not isinstance(name, str) or name not in known:
        hint = meant(str(name), known, NEAR) or f"; use one such as {usual[task]};"
        raise OptionError(
            f"metric {name!r} is none of scikit-learn's scorers{hint} sklearn.metrics.get_scorer_names() lists them"
        )
    kind = "regression" if OF_REGRESSIONS.fullmatch(name) else "classification"
    if kind != task:
        raise OptionError(f"metric {name!r} is for a {kind}, and this is a {task}: use one such as {usual[task]}")
    found: Scorer = get_scorer(name)
    return found


class _Values(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Predicts row numbers by looking them up."""

    def __init__(self, values: Array) -> None:
        self.values = values

    def predict(self, which: Indices) -> Array:
        return np.asarray(self.values[which])


class Numbered(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier of the classes 0 to c - 1, so that a scorer takes the second of two as the positive one.

    Parameters
    ----------
    size : int
        Number of classes c.
    predicted, outputs, probabilities : callables
        Of what a scorer is given as X, as ``predict``, ``decision_function`` and ``predict_proba`` return them.
    """

    def __init__(
        self,
        size: int,
        predicted: Callable[[Indices], Array | Indices],
        outputs: Callable[[Indices], Array],
        probabilities: Callable[[Indices], Array],
    ) -> None:
        self.size, self.predicted, self.outputs, self.probabilities = size, predicted, outputs, probabilities
        self.classes_ = np.arange(size)

    def predict(self, X: Indices) -> Array | Indices:
        """Return the numbers of classes, (m,)."""
        return self.predicted(X)

    def decision_function(self, X: Indices) -> Array:
        """Return the outputs, (m,) of two classes, else (m, c)."""
        return self.outputs(X)

    def predict_proba(self, X: Indices) -> Array:
        """Return the probabilities of the classes, (m, c)."""
        return self.probabilities(X)


def class_numbers(classes: Any, labels: Any) -> Indices:
    """Return the places of labels among the classes (c,); c for one that isn't there."""
    import pandas as pd

    places = pd.Index(classes).get_indexer(np.ravel(labels))
    return np.where(places < 0, len(classes), places)


def _judged(model: Any, X: Any, labels: Sequence[Any]) -> Numbered:
    """Return a model on rows X (m,), by their numbers, with all classes of a data set; it may know some only."""
    places = [labels.index(label) for label in model.labels]
    F = np.asarray(model.decision(X))

    def of_all(known: Array, unknown: float) -> Array:
        out = np.full((len(known), len(labels)), unknown)
        out[:, places] = known
        return out

    def outputs(which: Indices) -> Array:
        if len(labels) == 2:
            return F[which]
        known = F[which]
        return of_all(np.column_stack([-known, known]) if F.ndim == 1 else known, np.finfo(float).min)

    return Numbered(
        len(labels),
        lambda which: class_numbers(list(labels), model.outputs_to_predictions(F[which])),
        outputs,
        lambda which: of_all(model.outputs_to_probabilities(F[which]), 0.0),
    )


def _looked_up(F: Array, thresholds: Array | float, probabilities: Callable[[], Array]) -> Numbered:
    """Return held-out outputs F (k, n) by numbers of rows; probabilities are computed once a scorer asks for them."""
    called, known = chosen_classes(F - thresholds), cache(probabilities)
    return Numbered(
        max(2, len(F)),
        lambda which: called[which],
        lambda which: F[0, which] if len(F) == 1 else F[:, which].T,
        lambda which: known()[which],
    )
