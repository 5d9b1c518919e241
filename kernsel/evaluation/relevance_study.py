"""Relevances with their spread over resamples, and the held-out error with and without them.

In each resample a fifth of the rows is held out (whole groups, and classes by their shares). On the others relevances
are learnt, and two selections are made: of lambda for the kernel with these relevances, and of width and lambda for the
kernel with one relevance for all features. Both predict the fifth, which neither has seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernsel.data import Dataset, from_arrays
from kernsel.data.choices import ONE_HOT
from kernsel.data.names import listed
from kernsel.errors import OptionError
from kernsel.folds import Folds, make_folds
from kernsel.folds.partition import Partition
from kernsel.heldout.errors import Errors
from kernsel.heldout.standard_error import corrected_error
from kernsel.journal import remember
from kernsel.kernels import Kernel, short
from kernsel.kernels.views import by_feature
from kernsel.learning import LearnedKernel, learn_on_dataset
from kernsel.numerics.runtime.threads import one_blas_thread, share_each
from kernsel.selection.plan import Plan
from kernsel.selection.run import run
from kernsel.text import aligned, finite_or_none, to_json
from kernsel.types import Array, Progress

if TYPE_CHECKING:
    import pandas as pd


FORMAT, VERSION = "kernsel-relevance", 1

HELD_OUT = 5
"""One row in so many is held out in each resample."""

LISTED = 20
"""Features that the summary lists: the most relevant ones."""


@dataclass(frozen=True, eq=False)
class RelevanceStudy:
    """The outcome of :func:`study_relevances`.

    Parameters
    ----------
    learned : LearnedKernel
        From all rows.
    samples : (resamples, features) DataFrame
        The relevances from each resample.
    errors : (resamples, 2) DataFrame
        Held-out errors, ``with`` the relevances and ``without``: the share misclassified, or the RMSE in units of the
        target (of several targets, in standard deviations).
    task : str
    target : str or list of str
    """

    learned: LearnedKernel
    samples: pd.DataFrame
    errors: pd.DataFrame
    task: str
    target: str | list[str]

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row a feature, the most relevant first: its relevance, its quartiles and share of zeros in resamples."""
        import pandas as pd

        columns = {"relevance": self.learned.relevances}
        if len(self.samples):
            quartiles = self.samples.quantile([0.25, 0.5, 0.75])
            columns |= {"lower": quartiles.loc[0.25], "median": quartiles.loc[0.5], "upper": quartiles.loc[0.75]}
            columns["zero"] = (self.samples == 0).mean()
        return pd.DataFrame(columns).sort_values("relevance", ascending=False, kind="stable")

    @property
    def error(self) -> pd.DataFrame:
        """Mean and standard error over resamples of the errors and of their difference (Nadeau & Bengio 2003)."""
        import pandas as pd

        each = self.errors.assign(difference=self.errors["with"] - self.errors["without"])
        se = {name: corrected_error(each[name].to_numpy(), 1 / (HELD_OUT - 1)) for name in each}
        return pd.DataFrame({"mean": each.mean(), "se": pd.Series(se)})

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON can hold it."""
        learned = self.learned
        return {
            "format": FORMAT,
            "version": VERSION,
            "kernel": learned.kernel.spec(),
            "lambda": learned.lam,
            "mu": learned.mu,
            "learner": learned.learner,
            "criterion": learned.criterion,
            "value": learned.value,
            "isotropic": learned.isotropic.spec(),
            "task": self.task,
            "target": self.target,
            "relevances": dict(learned.relevances),
            "zero": learned.zero,
            "resamples": [dict(row) for _, row in self.samples.iterrows()],
            "errors": [dict(row) for _, row in self.errors.iterrows()],
            "error": {
                name: {key: finite_or_none(value) for key, value in row.items()} for name, row in self.error.iterrows()
            },
            "history": [vars(step) for step in learned.steps],
            "notes": list(learned.notes),
        }

    def to_json(self) -> str:
        """Return ``to_dict`` as one JSON document."""
        return to_json(self.to_dict())

    def summary(self) -> str:
        """Return the result for people."""
        learned, table = self.learned, self.table
        rows = [("feature", *(_HEADS[name] for name in table))]
        rows += [(str(name), *map(_four_digits, values)) for name, *values in table.head(LISTED).itertuples()]
        left = len(table) - LISTED
        zero = learned.zero
        mu = "" if learned.mu is None else f", mu = {learned.mu:.4g}"
        return "\n".join(
            [
                f"learnt: {_template(learned.kernel)} by {learned.criterion} ({learned.value:.5g}), {learned.learner}, "
                f"lambda = {learned.lam:.4g}{mu}",
                f"  begun from: {short(learned.isotropic)}",
                "",
                *aligned(rows),
                *([f"... and {left} more"] * (left > 0)),
                "",
                f"exactly 0: {len(zero)} of {len(by_feature(dict(learned.relevances), learned.features))} features"
                + (f" ({listed(zero, LISTED)})" if zero else ""),
                *self._errors(),
            ]
        )

    def _errors(self) -> list[str]:
        if not len(self.errors):
            return []
        error, classes = self.error, self.task == "classification"
        factor, unit = (100.0, " %") if classes else (1.0, "")
        what = "misclassified" if classes else f"RMSE in units of {self.target!r}"
        if isinstance(self.target, list):
            what = "RMSE in standard deviations of the targets"

        def figure(name: str) -> str:
            mean, se = factor * error.loc[name, "mean"], factor * error.loc[name, "se"]
            return f"{mean:.4g}{unit}" + (f" +- {se:.2g}" if math.isfinite(se) else "")

        return [
            f"held-out error ({what}; {len(self.errors)} resamples, one row in {HELD_OUT} held out):",
            f"  with these relevances: {figure('with')}",
            f"  with one for all features: {figure('without')}",
            f"  difference: {figure('difference')}",
        ]


def study_relevances(
    X: pd.DataFrame | npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    resamples: int = 10,
    folds: int | str = 5,
    weights: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    task: str = "auto",
    standardize: bool = True,
    categories: str = ONE_HOT,
    **options: Any,
) -> RelevanceStudy:
    """Learn relevances on all rows and on resamples, and compare the held-out error with and without them.

    Parameters
    ----------
    X : (n, d) array, sparse matrix or DataFrame
        Features.
    y : (n,) or (n, k) array
        Target.
    resamples : int
        How often a fifth of the rows is held out.
    folds : int, "loo" or "logo"
        As in :func:`kernsel.learn_relevances`, and of the two selections.
    weights, groups : (n,) array, optional
        As in :func:`kernsel.select`.
    task : {"auto", "regression", "classification"}
        What to learn.
    standardize : bool
        Centre and scale the numeric features.
    categories : {"onehot", "hamming"}
        Whether each category of a column has a relevance, or the column.
    **options : optional
        The others of :func:`kernsel.learn_relevances`.

    Raises
    ------
    DataError, OptionError, IncompatibleError, PluginError, SelectionError
        Each says what is wrong and what to do.

    References
    ----------
    The box plots of relevances over realisations are those of Cawley & Talbot 2014, Section 3.4.
    """
    dataset = from_arrays(X, y, task, standardize, weights=weights, groups=groups, categories=categories)
    return study_on_dataset(dataset, resamples=resamples, folds=folds, **options)


@one_blas_thread()
def study_on_dataset(
    dataset: Dataset,
    *,
    resamples: int = 10,
    folds: int | str = 5,
    seed: int = 0,
    progress: Progress | None = None,
    **options: Any,
) -> RelevanceStudy:
    """Do what :func:`study_relevances` does, on a data set that is already encoded.

    Parameters
    ----------
    progress : callable, optional
        Called as ``progress(done, total, text)``.
    **options : optional
        As in :func:`study_relevances`.
    """
    import pandas as pd

    if resamples < 0:
        raise OptionError(f"resamples must be a whole number of at least 0, not {resamples}")
    given = dataset, folds, seed, options
    learned = remember("relevances", given, lambda: learn_on_dataset(dataset, folds=folds, seed=seed, **options))

    def resample(number: int) -> tuple[Array, float, float]:
        return remember("resampled", (*given, number), lambda: _resampled(dataset, number, folds, seed, options))

    done = []
    for number, result in enumerate(share_each(resample, range(resamples)), start=1):
        done.append(result)
        if progress is not None:
            progress(number, resamples, "resamples")
    names = learned.relevances.index
    return RelevanceStudy(
        learned=learned,
        samples=pd.DataFrame([relevances for relevances, *_ in done], columns=names),
        errors=pd.DataFrame([errors for _, *errors in done], columns=["with", "without"]),
        task=dataset.task,
        target=dataset.target,
    )


def _resampled(
    dataset: Dataset, number: int, folds: int | str, seed: int, options: dict[str, Any]
) -> tuple[Array, float, float]:
    """Return the relevances from four fifths of the rows, and the errors at the others with and without them."""
    held = make_folds(HELD_OUT, dataset, (seed, number)).number == 0
    train, test = (dataset.take(np.flatnonzero(rows)) for rows in (~held, held))
    learned = learn_on_dataset(train, folds=folds, seed=seed, **options)
    kernels = (learned.kernel, learned.kernel.isotropic)
    errors = [_error(train, test, kernel, learned.learner, folds, seed) for kernel in kernels]
    return learned.relevances.to_numpy(), errors[0], errors[1]


def _error(train: Dataset, test: Dataset, kernel: Kernel, learner: str, folds: int | str, seed: int) -> float:
    """Return the error at rows that a selection on others has not seen."""
    selection = run(train, Plan(learner=learner, folds=folds, seed=seed), [kernel])
    F = np.atleast_2d(replace(selection.model, encoder=None).decision(test.X).T)
    together = Folds(np.zeros(test.n, np.int64), "the rows held out")
    return float(Errors.of(test).mean(Partition.of(test, together, seed), F)[0])


_HEADS = {
    "relevance": "relevance",
    "lower": "25 %",
    "median": "median",
    "upper": "75 %",
    "zero": "exactly 0",
}


def _template(kernel: Kernel) -> str:
    """Return the text of a kernel without its relevances."""
    without = {name: None for name in kernel.parameters if name.split(".")[-1] == "theta"}
    return short(kernel.with_parameters(**without)).replace("()", "")


def _four_digits(value: float) -> str:
    return f"{value:.4g}"
