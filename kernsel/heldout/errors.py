"""Errors of held-out outputs in the units that people know: shares of rows, or those of the target."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernsel.data import Dataset
from kernsel.data.target import chosen_classes, class_codes
from kernsel.folds.partition import Partition, shares_of
from kernsel.heldout.standard_error import standard_error
from kernsel.types import Array


@dataclass(frozen=True, eq=False)
class Errors:
    """The error of a data set's held-out outputs: the share of rows that are misclassified, or the RMSE.

    Parameters
    ----------
    classes : bool
        Whether outputs are of classes.
    scale : (k,) array
        Units of the targets for one of the outputs; several targets each count in their own standard deviations.
    """

    classes: bool
    scale: Array

    @classmethod
    def of(cls, dataset: Dataset) -> Errors:
        """Return the errors of a data set's outputs."""
        return cls(dataset.task == "classification", np.asarray(dataset.output_scale, np.float64))

    @property
    def unit(self) -> float:
        """What turns the root of a mean squared error into the unit that is reported."""
        return float(self.scale[0]) if self.scale.size == 1 else 1.0

    def by_row(self, rows: Partition, F: Array) -> Array:
        """Return the error (..., held) of each held-out row for outputs F (k, ..., n): 0-1, or squared.

        That of several targets is their mean, in squared standard deviations of each.
        """
        Y, F = rows.Y[:, : rows.held], rows.clipped_apart(F)[..., : rows.held]
        if self.classes:
            return np.asarray(chosen_classes(F) != class_codes(Y), np.float64)
        with np.errstate(over="ignore", invalid="ignore"):  # the outputs of a fit that failed may be infinite
            return np.asarray(((F - Y.reshape(len(Y), *(1,) * (F.ndim - 2), -1)) ** 2).mean(axis=0))

    def mean(self, rows: Partition, F: Array) -> tuple[Array, Array]:
        """Return the errors of held-out outputs F (k, ..., n), and their standard errors, NaN for one fold alone."""
        losses = self.by_row(rows, F)
        return self.of_means(rows.mean(losses), standard_error(losses, rows.starts, rows.s))

    def of_means(self, mean: Array, spread: Array) -> tuple[Array, Array]:
        """Return the errors that means of 0-1 or squared errors of rows are, and the standard errors of both."""
        if self.classes:
            return mean, spread
        with np.errstate(over="ignore", invalid="ignore"):  # the outputs of a fit that failed may be infinite
            root = np.sqrt(mean)
            spread = np.where(root > 0, self.unit * spread / (2 * np.where(root > 0, root, 1.0)), 0.0 * spread)
        return root * self.unit, spread

    def over_deals(self, deals: Sequence[Partition], outputs: Sequence[Array]) -> tuple[float, float]:
        """Return the error and its standard error, means over deals, of the outputs (k, n) on each of the first."""
        found = [self.mean(rows, F) for rows, F in zip(deals, outputs, strict=False)]
        error, error_se = (
            mean_over_deals(figures, shares_of(deals[: len(found)])) for figures in zip(*found, strict=True)
        )
        return error, error_se

    def by_target(
        self, names: Sequence[str], deals: Sequence[Partition], outputs: Sequence[Array]
    ) -> Mapping[str, float]:
        """Return the RMSE for each target, in its units: means over deals, of outputs (k, n) on each of the first."""
        roots = [
            np.sqrt(rows.mean((F[:, : rows.held] - rows.Y[:, : rows.held]) ** 2)) * self.scale
            for rows, F in zip(deals, outputs, strict=False)
        ]
        means = shares_of(deals[: len(roots)]) @ np.stack(roots)
        return dict(zip(names, means.tolist(), strict=True))


def mean_over_deals(values: Sequence[Any], shares: Array) -> float:
    """Return the mean of values by the shares of deals, of those that have one; NaN if none has.

    A deal may hold out few rows, all of one fold or of one class: it says nothing of a spread, or of some metric.
    """
    known = [i for i, value in enumerate(values) if value is not None and not np.isnan(value)]
    if not known:
        return math.nan
    return float(np.average([values[i] for i in known], weights=shares[known]))
