"""Prediction intervals from the fits without a fold: jackknife+ and CV+ (Barber, Candes, Ramdas, Tibshirani 2021).

With the fit ``f^{-S}`` without fold S and the held-out residuals ``R_i = |y_i - f^{-S(i)}(x_i)|`` of n rows, the
interval of a row x for the coverage ``1 - alpha`` goes

    from the floor(alpha (n + 1))-th smallest of      f^{-S(i)}(x) - R_i
    to the ceil((1 - alpha) (n + 1))-th smallest of   f^{-S(i)}(x) + R_i;

where there is no such number, it has no end. Where outputs are kept within the range of the targets, so are these; the
ends of an interval may lie beyond. If the rows are exchangeable with x, it holds the truth with a probability of at
least ``1 - 2 alpha`` for leave-one-out folds, whatever the distribution and the learner (and at least
``1 - 2 alpha - sqrt(2 / n)`` for k folds); mostly it is about ``1 - alpha``. It is not so for rows that come in an
order, as in a time series, nor for a choice among many candidates by the same rows, which makes the residuals a little
too small.

With weights, a row counts by its share of the weight, and x counts as much as a row does on the average. Rows of equal
weight then have the guarantee; for others, none is known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

MOST = 10_000_000
"""More numbers than this are not kept: the coefficients of every fold."""


BLOCK_BYTES = 2**26
"""The kernel between held-out rows and the model's is computed in blocks of about this size."""


@dataclass(frozen=True, eq=False)
class Intervals:
    """What the fits without a fold leave behind for prediction intervals.

    Parameters
    ----------
    coefficients : (t, k, m) array
        Of the fit without each fold, at the m rows of the model.
    biases : (t, k) array
    residuals : (k, n) array
        Absolute held-out residuals, sorted by fold.
    starts : (t + 1,) array
        Bounds of the folds.
    weights : (n,) array
        Of the rows.
    limits : (2, k, t) array or None
        Within which the outputs of the fit without each fold are kept; None for no limits.
    """

    coefficients: Array
    biases: Array
    residuals: Array
    starts: Indices
    weights: Array
    limits: Array | None = None

    @classmethod
    def of(cls, path: Any, k: int, heldout: Array | None = None, most: int | None = None) -> Intervals | None:
        """Refit each fold for lambda number ``k`` of a path; None if that is more than ``most`` numbers (``MOST``).

        Residuals are those of the refits, or of other held-out outputs (outputs, n).
        """
        rows, points = path.rows, path.representation.points
        if rows.left.size * len(rows.Y) * points.shape[0] > (MOST if most is None else most):
            return None
        coefficients, biases = path.refits(k)
        if heldout is None:
            residuals = cls._residuals(path, coefficients, biases)
        else:
            residuals = np.abs(rows.Y - heldout)[:, : rows.held]
        limits = rows.limits_apart if rows.clip else None
        return cls(coefficients, biases, residuals, rows.starts, rows.s[: rows.held].copy(), limits)

    @staticmethod
    def _residuals(path: Any, coefficients: Array, biases: Array) -> Array:
        """Return the absolute residuals (k, n) of held-out rows by the fits without their folds."""
        rows, points = path.rows, path.representation.points
        residuals = np.empty((len(rows.Y), rows.held))
        block = max(1, BLOCK_BYTES // (8 * points.shape[0]))
        for fold, (a, b) in enumerate(zip(coefficients, biases, strict=True)):
            lo, hi = rows.starts[fold : fold + 2]
            for start in range(lo, hi, block):
                held = slice(start, min(start + block, hi))
                outputs = a @ path.problem.kernel(rows.X[held], points).T + b[:, None]
                if rows.clip:
                    outputs = np.clip(outputs, *rows.limits_apart[:, :, fold, None])
                residuals[:, held] = np.abs(rows.Y[:, held] - outputs)
        return residuals

    @property
    def used(self) -> NDArray[np.bool_]:
        """Which of the m rows have a coefficient in any fold."""
        return np.asarray((self.coefficients != 0).any(axis=(0, 1)))

    def restricted(self, used: NDArray[np.bool_]) -> Intervals:
        """Keep the coefficients of some of the rows."""
        kept = np.ascontiguousarray(self.coefficients[..., used])
        return replace(self, coefficients=kept)

    def bounds(self, K: Array, coverage: float) -> Array:
        """Return lower and upper ends (N, k, 2) of the intervals of new rows.

        Parameters
        ----------
        K : (N, m) array
            Kernel between the new rows and the model's.
        coverage : float
            ``1 - alpha``, between 0 and 1.
        """
        t, outputs, m = self.coefficients.shape
        F = (K @ self.coefficients.reshape(t * outputs, m).T).reshape(-1, t, outputs) + self.biases
        if self.limits is not None:
            F = np.clip(F, *self.limits.swapaxes(1, 2))
        folds = np.repeat(np.arange(t), np.diff(self.starts))
        ends = np.empty((len(K), outputs, 2))
        for k, residuals in enumerate(self.residuals):
            f = F[:, folds, k]
            ends[:, k, 0] = -_end(residuals - f, self.weights, coverage)
            ends[:, k, 1] = _end(residuals + f, self.weights, coverage)
        return ends


def _end(values: Array, weights: Array, coverage: float) -> Array:
    """The smallest of each row of ``values (N, n)`` up to which a share of the weight lies, the new row's included."""
    n = values.shape[1]
    share = weights / weights.mean()
    wanted = coverage * (n + 1) * (1 - 1e-12)  # a whole number that is rounded up stays what it is
    if wanted > n:
        return np.full(len(values), np.inf)
    if (weights == weights[0]).all():
        place = int(np.ceil(wanted)) - 1
        return np.asarray(np.partition(values, place, axis=1)[:, place])
    order = values.argsort(axis=1)
    place = (share[order].cumsum(axis=1) < wanted).sum(axis=1)
    place = np.minimum(place, n - 1)[:, None]  # the shares may add up to a little less than n
    return np.asarray(np.take_along_axis(values, np.take_along_axis(order, place, axis=1), axis=1)[:, 0])
