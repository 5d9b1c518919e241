"""A kernel expansion with all that turns a table into predictions.

With the m rows r_j and the coefficients a of the model, the output number i of a row x is

    f_i(x) = b_i + sum_j a_ij k(x, r_j),

and the prediction is ``f * scale + shift`` for a regression, with f in or near the range of the training targets, the
second label where f >= 0, or a threshold (else the first), for two classes, and the label of the largest output (the
first of equals) for more.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernsel.data.columns import as_matrix
from kernsel.data.encoding import Encoder
from kernsel.data.names import listed
from kernsel.data.target import chosen_classes
from kernsel.errors import DataError, ModelError, OptionError
from kernsel.heldout.calibration import Calibration
from kernsel.heldout.intervals import MOST, Intervals
from kernsel.heldout.threshold import Threshold
from kernsel.kernels import Kernel
from kernsel.model.extrapolation import nearest
from kernsel.model.sufficient import SufficientStatistics
from kernsel.numerics.points import Points, as_points, dense
from kernsel.paths.whole import cross_matrix
from kernsel.types import Array, Indices, Mask

if TYPE_CHECKING:
    import pandas as pd

BLOCK_BYTES = 64 * 2**20
"""The kernel between new rows and the model's is computed in blocks of about this size."""

TILED = 2000
"""Rows of a model from which the kernel is multiplied tile by tile, which is twice as fast."""


@dataclass(frozen=True, eq=False)
class Expansion:
    """A kernel expansion with what is needed to use it on new tables.

    Parameters
    ----------
    kernel : Kernel
        Without free parameters.
    learner : str
        Name of the learner that fitted it.
    rows : (m, d) array or csr_array
        Support or landmark rows, encoded.
    coefficients : (k, m) array
    bias : (k,) array
    task : str
        ``"regression"`` or ``"classification"``.
    labels : list or None
        The classes.
    target : str or list of str
        Name of the target, or of several.
    encoder : Encoder or None
        Encodes new tables. Without one, new rows are taken as they are.
    output_shift, output_scale : (k,) arrays
        Turn outputs into the units of a regression's target.
    provenance : dict
        Where it comes from: anything that JSON holds.
    calibration : Calibration or None
        Turns outputs into probabilities of the classes.
    intervals : Intervals or None
        The fits without a fold and their residuals, for prediction intervals of a regression.
    limits : (2, k) array or None
        Least and largest output of a regression that is predicted; None for no limits.
    reach : float or None
        The distance to the nearest of the model's rows that hardly any training row exceeds: see `beyond`.
    label_dtype : str or None
        NumPy's name of the type that predicted labels have; None for that of the list.
    threshold : Threshold or None
        From which output on the second of two labels is predicted; None for 0.
    sufficient : SufficientStatistics or None
        What new rows are added to; None where the fit is no solution of sums over its rows.
    margins : (2, k) array or None
        How far the limits are below and above the range of the targets, in its widths; None for not at all.
    """

    kernel: Kernel
    learner: str
    rows: Points
    coefficients: Array
    bias: Array
    task: str
    labels: list[Any] | None
    target: str | list[str]
    encoder: Encoder | None
    output_shift: Array
    output_scale: Array
    provenance: Mapping[str, Any] = field(default_factory=dict)
    calibration: Calibration | None = None
    intervals: Intervals | None = None
    limits: Array | None = None
    reach: float | None = None
    label_dtype: str | None = None
    threshold: Threshold | None = None
    sufficient: SufficientStatistics | None = None
    margins: Array | None = None

    def decision(self, table: pd.DataFrame | npt.ArrayLike | Points) -> Array:
        """Return the outputs f of new rows; for two classes, the margin of the second label, which is chosen from 0 on.

        A ``threshold`` takes the place of that 0.

        Parameters
        ----------
        table : DataFrame, or (n, d) array or sparse matrix
            In the columns of the table that the model was fitted on; encoding is done here.

        Returns
        -------
        (n,) array if k = 1, else (n, k)
        """
        F = self.raw_outputs(self.encoded(table), self.coefficients) + self.bias
        return F[:, 0] if F.shape[1] == 1 else F

    def raw_outputs(self, X: Points, coefficients: Array) -> Array:
        """Return ``sum_j a_ij k(x, r_j)`` (n, c) of encoded rows X (n, d), for coefficients a (c, m) of any kind."""
        cross = cross_matrix(self.kernel, self.rows, X) if self.rows.shape[0] >= TILED else None
        if cross is not None:
            return cross.times(np.ascontiguousarray(coefficients.T))
        return self._by_blocks(X, lambda K, _: K @ coefficients.T, self.rows.shape[0])

    def predict(self, table: pd.DataFrame | npt.ArrayLike | Points) -> npt.NDArray[Any]:
        """Return the predictions for new rows: values of a regression in the target's units, or labels.

        Parameters
        ----------
        table : DataFrame, or (n, d) array or sparse matrix
            As in `decision`.

        Returns
        -------
        (n,) array, or (n, k) for k targets
        """
        return self.outputs_to_predictions(self.decision(table))

    def predict_proba(self, table: pd.DataFrame | npt.ArrayLike | Points) -> Array:
        """Return the probabilities of the classes for new rows.

        They are calibrated apart from the outputs' signs: a row near the boundary may be predicted as one label and
        have a probability of just over 1/2 for the other.

        Parameters
        ----------
        table : DataFrame, or (n, d) array or sparse matrix
            As in `decision`.

        Returns
        -------
        (n, classes) array
            In the order of ``labels``; rows sum to 1.

        Raises
        ------
        ModelError
            The model is of a regression, or has no calibration.
        """
        return self.outputs_to_probabilities(self.decision(table))

    def predict_interval(
        self, table: pd.DataFrame | npt.ArrayLike | Points, coverage: float = 0.9, by: str | None = None
    ) -> Array:
        """Return prediction intervals for new rows of a regression: see ``heldout.intervals``.

        Parameters
        ----------
        table : DataFrame, or (n, d) array or sparse matrix
            As in `decision`.
        coverage : float
            The share of rows whose truth should lie within, between 0 and 1; guaranteed is
            ``2 * coverage - 1`` (for k folds less ``sqrt(2 / n)``).
        by : str, optional
            A column of categories: that share within each of them.

        Returns
        -------
        (n, 2) array if k = 1, else (n, k, 2)
            Lower and upper ends in the target's units, infinite if there are too few rows for the coverage.

        Raises
        ------
        OptionError
            The coverage isn't between 0 and 1, or there is no such column of categories.
        ModelError
            The model is of classes, or its fits without a fold were not kept.
        """
        _check_coverage(coverage, "an interval")
        if self.labels is not None:
            raise ModelError(f"{self.target!r} has classes: they have no intervals, but sets and probabilities")
        if self.intervals is None:
            raise ModelError(
                "this model has no prediction intervals, as the coefficients of its folds were not kept (they are up "
                f"to {MOST:.0e} numbers); select with fewer folds, or with a lower rank"
            )
        intervals = self.intervals
        ends = self._from_folds(
            table, lambda K, X: intervals.bounds(K, coverage, None if by is None else self._groups(by, X))
        )
        ends = ends * self.output_scale[:, None] + self.output_shift[:, None]
        return ends[:, 0] if ends.shape[1] == 1 else ends

    def predict_set(
        self, table: pd.DataFrame | npt.ArrayLike | Points, coverage: float = 0.9, by: str | None = None
    ) -> Mask:
        """Return for new rows the set of classes that holds the true one: see ``heldout.intervals``.

        Parameters
        ----------
        table : DataFrame, or (n, d) array or sparse matrix
            As in `decision`.
        coverage : float
            The share of rows whose class should be in the set, between 0 and 1; guaranteed is ``2 * coverage - 1``
            (for k folds less ``sqrt(2 / n)``).
        by : str, optional
            A column of categories: that share within each of them. Or the target: within each class.

        Returns
        -------
        (n, classes) array of bool
            In the order of ``labels``. A set may be empty: no class is likely at this coverage.

        Raises
        ------
        OptionError
            The coverage isn't between 0 and 1, or there is no such column of categories.
        ModelError
            The model is of a regression, or its fits without a fold were not kept.
        """
        _check_coverage(coverage, "a set")
        if self.labels is None:
            raise ModelError(f"{self.target!r} is a regression: it has no sets of classes, but prediction intervals")
        if self.intervals is None:
            raise ModelError(
                "this model has no sets of classes, as the fits without a fold were not kept: select with "
                "intervals='sets' (--intervals sets)"
            )
        intervals, each = self.intervals, by is not None and by == self.target
        found = self._from_folds(
            table,
            lambda K, X: intervals.sets(K, coverage, None if by is None or each else self._groups(by, X), each),
        )
        return found > 0

    def _from_folds(self, table: object, work: Callable[[Array, Points], Array]) -> Array:
        """Apply ``work`` to blocks of new rows, each of which is compared with all that were held out."""
        assert self.intervals is not None
        widest = max(self.rows.shape[0], self.intervals.weights.size, self.intervals.biases.size)
        return self._by_blocks(self.encoded(table), work, widest)

    def _groups(self, by: str, X: Points) -> tuple[Indices, Indices]:
        """Return the categories of a column, of held-out rows and of new ones."""
        names = [] if self.encoder is None else list(self.encoder.categories)
        if by not in names or self.intervals is None or self.intervals.strata is None or self.encoder is None:
            known = f"its columns of categories are {listed(names)}" if names else "it has no columns of categories"
            raise OptionError(f"by {by!r}: the model has no such column of categories; {known}")
        place = names.index(by)
        return self.intervals.strata[place], self.encoder.categories_of(X)[place]

    def beyond(self, table: pd.DataFrame | npt.ArrayLike | Points) -> Mask:
        """Tell which new rows lie beyond the training data: nothing is known there, and predictions are guesses.

        Those are farther from the nearest of the model's rows than 99.9 % of the training rows are from the nearest
        other one, in the kernel's distance ``d(x, r)^2 = k(x, x) + k(r, r) - 2 k(x, r)``.

        Parameters
        ----------
        table : DataFrame, or (n, d) array or sparse matrix
            As in `decision`.

        Returns
        -------
        (n,) array of bool

        Raises
        ------
        ModelError
            An older kernsel made the model, and the distance is not in it; or the kernel is a given Gram matrix.
        """
        if self.kernel.known_rows_only:
            raise ModelError(f"kernel '{self.kernel.name}' doesn't know how far new rows are from the training data")
        if self.reach is None:
            raise ModelError("this model doesn't say how far its training data reach; select it anew")
        distances = self._by_blocks(
            self.encoded(table),
            lambda K, X: nearest(K, self.kernel.diag(X), self.kernel.diag(self.rows)),
            self.rows.shape[0],
        )
        return np.asarray(distances > self.reach)

    def encoded(self, table: object) -> Points:
        """Return the rows of a table as those of the model are."""
        X: Points = self.encoder.transform(table) if self.encoder is not None else as_matrix(table)
        if X.shape[1] != self.rows.shape[1]:
            raise DataError(f"X has {X.shape[1]} columns where the model has {self.rows.shape[1]}")
        return X

    def _by_blocks(self, X: Points, work: Callable[[Array, Points], Array], width: int) -> Array:
        """Apply ``work`` to the kernel between new rows and the model's, and to the rows, in blocks ``width`` wide."""
        block = max(1, BLOCK_BYTES // (8 * max(1, width)))
        # One block at least, so that no rows give a result of the right shape.
        starts = range(0, max(1, X.shape[0]), block)
        form = as_points if self.kernel.sparse else dense
        blocks = (form(X[start : start + block]) for start in starts)
        return np.concatenate([work(self.kernel(rows, self.rows), rows) for rows in blocks])

    def outputs_to_predictions(self, F: Array) -> npt.NDArray[Any]:
        """Turn outputs of `decision` into predictions."""
        if self.labels is None:
            within = F if self.limits is None else np.clip(F, *(self.limits if F.ndim > 1 else self.limits[:, 0]))
            return np.asarray(within * self.output_scale + self.output_shift)
        mixed = "O" if len({type(label) for label in self.labels}) > 1 else None
        labels = np.array(self.labels, dtype=self.label_dtype or mixed)
        chosen = chosen_classes(np.atleast_2d(F.T) - (0.0 if self.threshold is None else self.threshold.value))
        return np.asarray(labels[chosen])

    def outputs_to_probabilities(self, F: Array) -> Array:
        """Turn outputs of `decision` into probabilities of the classes."""
        if self.labels is None:
            raise ModelError(f"{self.target!r} is a regression: it has no probabilities, but prediction intervals")
        if self.calibration is None:
            raise ModelError("this model was made without a calibration and has no probabilities; select it anew")
        return self.calibration.probabilities(np.atleast_2d(F.T))


def _check_coverage(coverage: object, what: str) -> None:
    if not isinstance(coverage, numbers.Real) or not 0.0 < float(coverage) < 1.0:
        raise OptionError(f"the coverage of {what} must lie between 0 and 1, not {coverage!r}; 0.9 is usual")
