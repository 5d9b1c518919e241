"""What predicts as well without looking at features: the largest class of a fold's training rows, or their mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernsel.data.target import chosen_classes, class_codes
from kernsel.folds.partition import Partition, shares_of
from kernsel.heldout.errors import Errors, mean_over_deals
from kernsel.heldout.standard_error import of_rows, standard_error
from kernsel.text import finite_or_none
from kernsel.types import Array

ROUNDING = 1e-9
"""Relative differences of mean losses below this are none."""


@dataclass(frozen=True)
class Baseline:
    """The error of what knows no features, and by how much the mean loss of a choice is below its own.

    The loss is 0-1, or the squared error (of several targets their mean, in squared standard deviations of each).

    Parameters
    ----------
    predicts : str
        What it predicts, in words.
    error, error_se : float
        Its held-out misclassification, or RMSE.
    gain, gain_se : float
        Mean loss of the baseline less that of the choice, and the standard error of this difference, row by row. The
        baseline of a regression is then the mean of all rows, if that is lower.
    loss : float
        Mean loss of the baseline.
    one_class : int or None
        The number of the only class that the choice predicts, if there is but one.
    """

    predicts: str
    error: float
    error_se: float
    gain: float
    gain_se: float
    loss: float
    one_class: int | None

    @property
    def beaten(self) -> bool:
        """Whether the choice is better by more than the standard error of the difference, and by more than rounding."""
        return self.gain > max(self.gain_se, ROUNDING * self.loss)

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON holds of it."""
        return {
            "predicts": self.predicts,
            "error": self.error,
            "error_se": finite_or_none(self.error_se),
            "gain": {"value": self.gain, "se": finite_or_none(self.gain_se)},
            "beaten": self.beaten,
        }


def baseline_of(deals: list[Partition], every: list[Array], errors: Errors) -> Baseline:
    """Compare held-out outputs with the largest class, or the mean, of each fold's training rows.

    Parameters
    ----------
    every : list of (k, n) arrays
        Held-out outputs on each of the deals, or on the first ones.
    errors : Errors
        Of the outputs.

    Returns
    -------
    Baseline
        Means over the deals.
    """
    figures, classes = [], errors.classes
    for rows, F in zip(deals, every, strict=False):
        Y, F = rows.Y[:, : rows.held], F[:, : rows.held]
        losses = _constant_losses(rows, classes)
        gain = _hardest(rows, losses, classes) - _losses(Y, F, classes)
        scale = 1.0 if classes else errors.unit**2
        further = (float(rows.mean(gain)), _error(gain, rows), float(rows.mean(losses)))
        figures.append((*constant_error(rows, errors), *(scale * each for each in further)))
    shares = shares_of(deals[: len(figures)])
    error, error_se, gained, gain_se, loss = (mean_over_deals(each, shares) for each in zip(*figures, strict=True))
    said = np.unique(chosen_classes(every[0][:, : deals[0].held])) if classes else np.zeros(0, np.int64)
    what = "the largest class" if classes else "the mean" if len(deals[0].Y) == 1 else "the means"
    return Baseline(what, error, error_se, gained, gain_se, loss, int(said[0]) if said.size == 1 else None)


def constant_error(rows: Partition, errors: Errors) -> tuple[float, float]:
    """Return the error of the largest class, or of the mean, of each fold's training rows, and its standard error."""
    losses = _constant_losses(rows, errors.classes)
    error, error_se = errors.of_means(rows.mean(losses), np.asarray(_error(losses, rows)))
    return float(error), float(error_se)


def _constant_losses(rows: Partition, classes: bool) -> Array:
    """Return the losses (held,) of constants; of classes by the largest one of all rows if that has less.

    Where classes are of one size, the largest one of a fold's training rows is the one that the fold has least of.
    """
    Y = rows.Y[:, : rows.held]
    losses = _losses(Y, constants(rows, classes), classes)
    if not classes:
        return losses
    totals = np.array([rows.s @ (rows.Y > 0).T, rows.s @ (rows.Y <= 0).T])  # (2, k)
    k = len(Y)
    best = np.where(np.arange(k) == totals[0].argmax(), 1.0, -1.0) if k > 1 else np.sign(totals[0] - totals[1] - 0.5)
    whole = _losses(Y, np.broadcast_to(best[:, None], Y.shape), classes)
    return min(losses, whole, key=lambda each: float(rows.mean(each)))


def constants(rows: Partition, classes: bool) -> Array:
    """Return the output (k, held) for each held-out row that is best for the training rows of its fold, as constant.

    The weighted mean of the targets, or coded the class of the largest weight, the first of equals.
    """
    held, k = rows.held, len(rows.Y)
    parts = np.stack([rows.Y > 0, rows.Y <= 0]) if classes and k == 1 else rows.Y[None] > 0 if classes else rows.Y[None]
    totals = _kept(rows, np.asarray(parts, np.float64).reshape(-1, rows.n))  # (t, classes or targets)
    if not classes:
        by_fold = totals / rows.left[:, None]
    elif k == 1:
        by_fold = np.where(totals[:, :1] > totals[:, 1:], 1.0, -1.0)
    else:
        by_fold = np.where(np.arange(k) == totals.argmax(axis=1)[:, None], 1.0, -1.0)
    fold = np.repeat(np.arange(rows.left.size), np.diff(rows.starts))
    return np.asarray(by_fold[fold].T).reshape(k, held)


def _hardest(rows: Partition, losses: Array, classes: bool) -> Array:
    """Return the losses (held,) that a choice is to beat.

    The target of a regression is centred once on all rows, and so on those that a fold holds out: outputs of 0 are
    slightly better than means of the training rows. They are no choice to be proud of, either.
    """
    if classes:
        return losses
    centre = (rows.Y @ rows.s / rows.total)[:, None]
    others = _losses(rows.Y[:, : rows.held], centre, classes)
    return others if rows.mean(others) < rows.mean(losses) else losses


def _kept(rows: Partition, values: Array) -> Array:
    """Return the weighted sums of values (m, n) over each fold's training rows, (t, m)."""
    weighted = values * rows.s
    if rows.training is not None:
        return np.asarray(rows.training @ weighted.T)
    held = np.add.reduceat(weighted[:, : rows.held], rows.starts[:-1], axis=1)
    return np.asarray((weighted.sum(axis=1)[:, None] - held).T)


def _losses(Y: Array, F: Array, classes: bool) -> Array:
    if classes:
        return np.asarray(chosen_classes(F) != class_codes(Y), np.float64)
    return np.asarray(((F - Y) ** 2).mean(axis=0))


def _error(losses: Array, rows: Partition) -> float:
    """Return the standard error of a mean over held-out rows; of single rows where there is one fold only."""
    found = float(standard_error(losses, rows.starts, rows.s))
    return found if math.isfinite(found) else float(of_rows(losses, rows.s[: rows.held]))
