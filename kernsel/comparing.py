"""One relevance for each feature, or one for all: which predicts rows better that had no part in learning them.

Relevances see every row that they are learnt on, so that cross-validation with fixed ones flatters them. Here each
outer fold's rows are predicted by a kernel whose relevances, scale and lambda come from the other rows alone.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernsel.data import Dataset
from kernsel.errors import OptionError, SelectionError
from kernsel.folds import Folds, make_folds
from kernsel.judging import Judge, rows_of
from kernsel.kernels import Kernel
from kernsel.numerics.jit import share_each
from kernsel.options import read_rank
from kernsel.resampling import standard_error
from kernsel.result import Selection, finite_or_none
from kernsel.searching import heldout_of, refit, search_dataset

Array = NDArray[np.float64]
Progress = Callable[[int, int, str], None]

OUTER = 5
"""Outer folds, where no others are asked for that must not be broken up."""

SCALES = 2.0 ** np.arange(-3.0, 4.0)
"""Factors of all relevances together: they are learnt for the square loss, and another one may want a wider kernel."""


@dataclass(frozen=True)
class Figure:
    """An error and its standard error over folds, NaN if there is one fold only."""

    value: float
    se: float


@dataclass(frozen=True)
class Comparison:
    """How a kernel with a relevance for each feature does against one with one for all.

    Parameters
    ----------
    isotropic, ard : Figure or None
        Errors of the rows held out: the share misclassified, or the RMSE in units of the target (of several, in
        standard deviations). None if a fold's relevances can't be learnt.
    difference : Figure or None
        Of the mean held-out losses row by row, ``ard`` minus ``isotropic``.
    loss : str
        Which loss that is.
    holdout : str
        The outer folds, in words.
    failed : str or None
        Why relevances can't be learnt.
    """

    isotropic: Figure
    ard: Figure | None
    difference: Figure | None
    loss: str
    holdout: str
    failed: str | None = None

    @property
    def better(self) -> bool:
        """Whether the held-out loss is lower by more than its standard error with a relevance for each feature."""
        return self.difference is not None and self.difference.value < -self.difference.se

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON can hold it."""
        figures = {name: getattr(self, name) for name in ("isotropic", "ard", "difference")}
        return {
            name: None if each is None else {"value": each.value, "se": finite_or_none(each.se)}
            for name, each in figures.items()
        } | {"loss": self.loss, "holdout": self.holdout, "failed": self.failed, "better": self.better}


def outer_folds(folds: Any, dataset: Dataset, seed: int) -> Folds:
    """Deal five folds (of whole groups), or make those that were asked for if chance doesn't make them."""
    if isinstance(folds, numbers.Integral):
        return make_folds(min(OUTER, int(folds)), dataset, (seed, OUTER))
    if isinstance(folds, str) and folds in ("loo", "logo"):
        return make_folds(_few(dataset), dataset, (seed, OUTER))
    return make_folds(folds, dataset, seed)


def _few(dataset: Dataset) -> int:
    """Return five, or the number of rows or groups if they are fewer."""
    return min(OUTER, dataset.n if dataset.groups is None else int(dataset.groups.max()) + 1)


def inner_folds(folds: Any, dataset: Dataset, seed: int) -> Any:
    """Return the folds that were asked for, or five where too little of them is left to train on."""
    try:
        make_folds(folds, dataset, seed)
    except OptionError:
        return _few(dataset)
    return folds


def scaled(kernel: Any) -> list[Kernel]:
    """Return a kernel with its relevances times each of the common factors."""
    return [kernel.with_theta(tuple(float(factor) * theta for theta in kernel.theta)) for factor in SCALES]


def learn(dataset: Dataset, kernel: Kernel, learner: Any, relevances: Any, seed: int) -> Any:
    """Learn relevances by a criterion, with the learner itself if it has the square loss."""
    from kernsel.learning import learn_on_dataset  # with scipy.optimize it takes as long to import as all the rest

    square = None if getattr(learner, "free", ()) or not learner.loss.square else learner
    return learn_on_dataset(
        dataset, kernel=kernel, learner=square, criterion=relevances, folds=_few(dataset), seed=seed
    )


def compare(
    dataset: Dataset,
    isotropic: Selection,
    kernel: Kernel,
    relevances: Any,
    folds: Any,
    seed: int,
    progress: Progress | None,
    options: Mapping[str, Any],
) -> Comparison:
    """Compare relevances that are learnt without each outer fold with the choice of a selection.

    That choice keeps its kernel and lambda, which have seen all rows: the two or three numbers of them flatter it a
    little, and a difference that remains is one.

    Parameters
    ----------
    dataset : Dataset
    isotropic : Selection
        With one relevance for all features.
    kernel : Relevances
        To be learnt.
    relevances : str or Criterion
        By what.
    folds : object
        As for :func:`kernsel.select`; also of the selections of scale and lambda.
    seed : int
    progress : callable or None
    options : mapping
        Of these selections.
    """
    best = isotropic.best
    rank = read_rank(options.get("rank"), dataset.n, options.get("landmarks"), best.learner)
    outer = outer_folds(folds, dataset, seed)
    rows = rows_of(dataset, outer, seed)
    judge = Judge([rows], dataset, None, None)

    def without(fold: int) -> Array:
        kept, held = outer.order[rows.kept(fold)], outer.order[rows.starts[fold] : rows.starts[fold + 1]]
        train = dataset.take(np.sort(kept))
        learned = learn(train, kernel, best.learner, relevances, seed)
        inner = inner_folds(folds, train, seed)
        chosen = search_dataset(train, kernel=scaled(learned.kernel), folds=inner, seed=seed, **options)
        return np.atleast_2d(replace(chosen.model, encoder=None).decision(dataset.X[held]).T)

    def figure(outputs: Array) -> Figure:
        return Figure(*map(float, judge.errors(rows, outputs)))

    loss = best.learner.loss
    together, apart = heldout_of(refit(best, rows, rank, judge.problems), None), np.zeros((len(rows.Y), rows.n))
    try:
        for fold, outputs in enumerate(share_each(without, range(rows.left.size))):
            apart[:, rows.starts[fold] : rows.starts[fold + 1]] = outputs
            if progress is not None:
                progress(fold + 1, rows.left.size, "outer folds with relevances")
    except SelectionError as error:
        return Comparison(figure(together), None, None, loss.scored_by, outer.text, str(error))
    gain = (loss.value(rows.Y, apart) - loss.value(rows.Y, together)).mean(axis=0)
    difference = Figure(float(rows.mean(gain)), float(standard_error(gain, rows.starts, rows.s)))
    return Comparison(figure(together), figure(apart), difference, loss.scored_by, outer.text)


def said(comparison: Comparison, task: str, features: int) -> str:
    """Say what came out, for people."""
    if comparison.ard is None or comparison.difference is None:
        return f"kernel: one relevance for all features, as one for each can't be learnt ({comparison.failed})"
    factor, unit = (100.0, " %") if task == "classification" else (1.0, "")

    def figure(of: Figure) -> str:
        return f"{factor * of.value:.4g}{unit}" + (f" +- {factor * of.se:.2g}" if math.isfinite(of.se) else "")

    chosen = f"one relevance for each of {features} features" if comparison.better else "one relevance for all features"
    gain = comparison.difference
    return (
        f"kernel: {chosen}; held-out error with one for each {figure(comparison.ard)}, with one for all "
        f"{figure(comparison.isotropic)}, mean {comparison.loss} {gain.value:+.3g} +- {gain.se:.2g} "
        f"({comparison.holdout} whose rows had no part in learning relevances)"
    )
