"""Kernel stability of a table: which rows move the kernel matrix most, and how loose the bounds from it are.

The JSON document is a contract, version 1: keys may be added, none changes its name or meaning.
"""

from __future__ import annotations

import dataclasses
import textwrap
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernsel.criteria import CV
from kernsel.criteria.base import empirical_risk
from kernsel.data import Dataset
from kernsel.data.copies import APART
from kernsel.errors import SelectionError
from kernsel.evaluation.bounds import Bounds, bounds, check_bounded, without_bias
from kernsel.evaluation.perturbation import Stability, stability
from kernsel.folds import make_folds
from kernsel.folds.partition import Partition
from kernsel.kernels import Kernel, short
from kernsel.parts import read_learner, read_rank
from kernsel.paths import Path, make_path
from kernsel.protocols import Learner
from kernsel.representation.problem import Problem
from kernsel.selection.result import environment
from kernsel.text import aligned, to_json
from kernsel.types import Array, Indices, Progress

FORMAT, VERSION = "kernsel-stability", 1

_FORMS = {
    "beta": "kernel stability",
    "convexity": "the strong convexity of the objective, without beta",
    "range": "the range of all losses",
}

WIDTH = 110
"""Of the text, in characters."""


BOUNDED = {"classification": "svm", "regression": "krr"}
"""Learners for which there are bounds."""


@dataclass(frozen=True, eq=False)
class Assessment:
    """The stability of a kernel on a table, the bounds from it, and the figures that they are bounds of.

    Parameters
    ----------
    stability : Stability
        Of every row.
    places : (n,) array
        Which rows of the table those are, from 0.
    bounds : Bounds
        From the 2-norm, whichever norm the stability is in.
    learner : Learner
        The learner.
    fit : float
        Mean loss at the rows that were fitted.
    scores : (repeats,) array
        CV scores: the mean held-out loss of exact refits, for every deal of the folds.
    score_se : float
        Standard error of the first of them, over its folds.
    top : int
        Rows to list.
    data, options, timing, environment : dict
        What was assessed, how, in how many seconds, and with which software.
    """

    stability: Stability
    places: Indices
    bounds: Bounds
    learner: Learner
    fit: float
    scores: Array
    score_se: float
    top: int
    data: Mapping[str, Any]
    options: Mapping[str, Any]
    timing: Mapping[str, float]
    environment: Mapping[str, Any]

    @property
    def score(self) -> float:
        """The mean of the CV scores."""
        return float(self.scores.mean())

    @property
    def variance(self) -> float | None:
        """The variance of the CV score over deals of the folds; None of one deal."""
        return float(self.scores.var(ddof=1)) if self.scores.size > 1 else None

    def to_dict(self) -> dict[str, Any]:
        """Return everything, as JSON can hold it; rows are numbered from 1, the header not counted."""
        found, b = self.stability, self.bounds
        return {
            "format": FORMAT,
            "version": VERSION,
            "kernel": found.kernel.spec(),
            "lambda": b.lam,
            "learner": self.learner.name,
            "learner_parameters": dataclasses.asdict(self.learner),
            "norm": found.norm,
            "beta": found.beta,
            "influential": [
                {"row": int(self.places[i]) + 1, "perturbation": found.perturbations[i]}
                for i in found.influential(self.top)
            ],
            "perturbations": found.perturbations.tolist(),
            "bounds": {
                "beta": b.beta,
                "kappa": b.kappa,
                "M": b.M,
                "delta": b.delta,
                "largest_loss": b.largest_loss,
                "stability": b.stability,
                "gap": b.gap,
                "risk": self.fit + b.gap,
                "cv_variance": b.cv_variance,
                "forms": dict(b.forms),
            },
            "measured": {
                "fit": self.fit,
                "cv": self.score,
                "cv_scores": self.scores.tolist(),
                "cv_variance": self.variance,
                "cv_se": self.score_se,
            },
            "data": dict(self.data),
            "options": dict(self.options),
            "timing": dict(self.timing),
            "environment": dict(self.environment),
        }

    def to_json(self) -> str:
        """Return ``to_dict`` as one JSON document."""
        return to_json(self.to_dict())

    def summary(self) -> str:
        """Return the result for people: the rows, the bounds, and how far these are from what is measured."""
        return "\n".join([*self._influence(), "", *self._compared(), "", *map(_wrapped, self._words())])

    def _influence(self) -> list[str]:
        found, moved = self.stability, self.stability.perturbations
        lines = [
            f"kernel stability of {short(found.kernel)}: beta = {found.beta:.5g}, the largest {found.norm} norm of "
            "K - K^i",
            f"  over the {found.n} rows i: from {moved.min():.4g} to {moved.max():.4g}, median {np.median(moved):.4g}",
        ]
        if self.top:
            rows = [(str(self.places[i] + 1), f"{moved[i]:.5g}") for i in found.influential(self.top)]
            lines += ["", "rows that move K most (numbered in the file from 1, the header not counted):"]
            lines += [f"  {line}" for line in aligned([("row", "|K - K^i|"), *rows])]
        return lines

    def _compared(self) -> list[str]:
        b = self.bounds
        rows = [
            ("", "bound", "measured"),
            ("change of a loss if a row is removed", f"{b.stability:.3g}", "-"),
            ("risk", f"{self.fit + b.gap:.3g}", f"{self.score:.3g}"),
            ("variance of the CV score", f"{b.cv_variance:.3g}", ""),
            ("  by its standard error over folds", "", f"{self.score_se**2:.2g}"),
        ]
        if self.variance is not None:
            rows.append((f"  over {self.scores.size} deals of the folds", "", f"{self.variance:.2g}"))
        scale = " of the standardised target" * (self.data["task"] == "regression")
        return [
            f"{self.learner.name}, lambda = {b.lam:.4g} (n lambda = {b.n * b.lam:.4g}), {self.data['representation']}",
            f"  {self.learner.loss.scored_by}{scale}:",
            *(f"  {line}" for line in aligned(rows)),
        ]

    def _words(self) -> list[str]:
        """Say what each bound means, and how loose it is."""
        b, sampled = self.bounds, self.score_se**2
        variance = (
            f"The variance of the score of {b.folds}-fold cross-validation, over samples of {b.n} rows, is at most "
            f"{b.cv_variance:.3g}. By its standard error over folds, {self.score_se:.2g}, it is about {sampled:.2g}: "
            f"the bound is {_times(b.cv_variance, sampled)}."
        )
        if self.variance is not None:
            variance += (
                f" Over {self.scores.size} deals of the folds of these same rows it is {self.variance:.2g}: the bound "
                f"is {_times(b.cv_variance, self.variance)}."
            )
        empty = [text for text, vacuous in (("risk", b.vacuous_gap), ("variance", b.vacuous_variance)) if vacuous]
        return [
            f"Removing one row, whichever it is, changes no loss by more than {b.stability:.3g}: by "
            f"{_FORMS[b.forms['stability']]}, the least of the bounds that hold.",
            f"With probability {1 - b.delta:g} the risk is at most {self.fit + b.gap:.3g}: the training loss, "
            f"{self.fit:.3g}, and {b.gap:.3g}. Cross-validation estimates it as {self.score:.3g}.",
            variance,
            *(
                [
                    f"No loss of such a fit can be above {b.largest_loss:.3g}, nor the variance of a mean above "
                    f"{b.largest_loss**2 / 4:.3g}: of the {' and the '.join(empty)} the bound says no more than that."
                ]
                if empty
                else []
            ),
            f"The bounds take beta = {b.beta:.4g} (spectral norm), kappa = max k(x, x) = {b.kappa:.4g} and "
            f"M = max |y| = {b.M:.4g} of these rows for those of every sample.",
        ]


def _times(bound: float, measured: float) -> str:
    return f"{bound / measured:.2g} times that" if measured > 0 else "above it"


def _wrapped(text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent="  ", subsequent_indent="    ")


def _cross_validate(path: Path) -> tuple[float, float]:
    """Return the exact score of a path of one lambda, and its standard error; SelectionError if its fits failed."""
    found = CV().score(path)
    if found.failed[0] is not None:
        raise SelectionError(f"fits failed at lambda = {path.lams[0]:g} ({found.failed[0]}); give a larger lambda")
    assert found.score_se is not None
    return float(found.score[0]), float(found.score_se[0])


def assess_dataset(
    dataset: Dataset,
    *,
    kernel: str | Kernel,
    lam: float,
    learner: str | Learner | None = None,
    norm: str = "spectral",
    folds: int = 10,
    repeats: int = 10,
    delta: float = 0.05,
    rank: int | float | str | None = None,
    top: int = 10,
    seed: int = 0,
    progress: Progress | None = None,
) -> Assessment:
    """Scan a kernel on a data set, fit it, and compare the bounds with cross-validation over repeated folds.

    The scan needs no Gram matrix; the fits are at full rank or of a low rank, as in a selection.

    Parameters
    ----------
    dataset : Dataset
        From ``kernsel.data``, without weights.
    kernel : str or Kernel
        All its parameters have values.
    lam : float
        Lambda of the fits.
    learner : str or Learner, optional
        ``krr``, or ``svm`` without a bias; by default that of the task.
    norm : {"spectral", "trace", "frobenius"}
        Of the perturbations; the bounds take the spectral one.
    folds, repeats : int
        Number of folds, and how often they are dealt.
    delta : float
        Probability with which the bound on the risk may fail.
    rank : int, float, "full" or None
        As in :func:`kernsel.select`.
    top : int
        Rows to list.
    seed : int
        Of folds and landmarks.
    progress : callable, optional
        Called as ``progress(done, total, text)``.

    Returns
    -------
    Assessment
        The scan, the bounds and the scores.

    Raises
    ------
    DataError, OptionError, IncompatibleError, SelectionError
        Each says what is wrong and what to do.
    """
    started = time.perf_counter()
    dataset = dataclasses.replace(dataset, copies=APART)  # the bounds are of rows dealt at random, in folds of one size
    part = read_learner(BOUNDED[dataset.task] if learner is None else learner, dataset.task)
    asked, part, size = part, without_bias(part), float(np.abs(dataset.Y).max())
    check_bounded(part, lam=lam, n=dataset.n, M=size, folds=folds, delta=delta)
    columns = read_rank(rank, dataset.n, learner=part)
    found = stability(dataset.X, kernel, norm=norm, standardize=False)
    scanned = time.perf_counter()
    limits = bounds(
        part, beta=found.spectral, kappa=found.kappa, lam=lam, n=dataset.n, M=size, folds=folds, delta=delta
    )
    scores = []
    for repeat in range(repeats):
        if progress is not None:
            progress(repeat, repeats, f"deal {repeat + 1} of the folds")
        deal = make_folds(folds, dataset, (seed, repeat) if repeat else seed)
        path = make_path(Problem(Partition.of(dataset, deal, seed), found.kernel, columns), part, [lam])
        scores.append(_cross_validate(path))
        if not repeat:
            fit, representation = float(empirical_risk(path)[0][0]), path.describe()
    ended = time.perf_counter()
    return Assessment(
        stability=found,
        places=dataset.places,
        bounds=limits,
        learner=part,
        fit=fit,
        scores=np.array([score for score, _ in scores]),
        score_se=scores[0][1],
        top=top,
        data={
            "rows": dataset.n,
            "features": dataset.d,
            "task": dataset.task,
            "target": dataset.target,
            "labels": dataset.labels,
            "source": dataset.source,
            "notes": [
                *dataset.notes,
                *([f"learner: {part.name} without a bias, for which there are bounds"] * (part != asked)),
            ],
            "representation": representation,
        },
        options={
            "kernel": str(found.kernel),
            "lambda": lam,
            "learner": {"name": part.name, **dataclasses.asdict(part)},
            "norm": norm,
            "folds": folds,
            "repeats": repeats,
            "delta": delta,
            **columns.asked(),
            "top": top,
            "seed": seed,
        },
        timing={"scan": scanned - started, "fits": ended - scanned, "total": ended - started},
        environment=environment(),
    )
