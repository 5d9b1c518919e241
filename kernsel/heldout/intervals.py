"""Prediction intervals and class sets from the fits without a fold: jackknife+ and CV+.

With the fit ``f^{-S}`` without fold S and the held-out residuals ``R_i = |y_i - f^{-S(i)}(x_i)|`` of n rows, the
interval of a row x for the coverage ``1 - alpha`` goes

    from the floor(alpha (n + 1))-th smallest of      f^{-S(i)}(x) - R_i
    to the ceil((1 - alpha) (n + 1))-th smallest of   f^{-S(i)}(x) + R_i;

where there is no such number, it has no end (Barber, Candes, Ramdas & Tibshirani 2021). Where outputs are kept within
the range of the targets, so are these; the ends of an interval may lie beyond. Of local width are those of
``R_i / sigma_i`` in place of ``R_i``, times ``sigma^{-S(i)}(x)``, where sigma is a fit of the residuals' size at x,
made without each fold like f itself.

The set of x holds a class c unless ``ceil((1 - alpha) (n + 1))`` of the scores ``A_i`` of held-out rows are below
``A(x, c; f^{-S(i)})`` (the CV+ of Romano, Sesia & Candes 2020): A is by how much the output of another class is above
that of its own, of two classes ``-y f``.

If the rows are exchangeable with x, both hold the truth with a probability of at least ``1 - 2 alpha`` for
leave-one-out folds, whatever the distribution and the learner (and at least ``1 - 2 alpha - sqrt(2 / n)`` for k folds);
mostly it is about ``1 - alpha``. It is not so for rows that come in an order, as in a time series, nor for a choice
among many candidates by the same rows, which makes the residuals a little too small. Counted among the rows of its own
group, or of class c, it is so in each group and class by itself (Mondrian; Vovk, Gammerman & Shafer 2005).

With weights, a row counts by its share of the weight, and x counts as much as a row does on the average. Rows of equal
weight then have the guarantee; for others, none is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from kernsel.heldout.coupling import Coupling
from kernsel.types import Array, Indices, Mask

if TYPE_CHECKING:
    from kernsel.folds.partition import Partition
    from kernsel.paths import Path


MOST = 10_000_000
"""More numbers than this are not kept: the coefficients of every fold."""

BLOCK_BYTES = 2**26
"""The kernel between held-out rows and the model's is computed in blocks of about this size."""

WHOLE = 1e-12
"""Relative: a whole number of rows that is rounded up stays what it is."""


@dataclass(frozen=True, eq=False)
class Scale:
    """Fits of the size of residuals without each fold: ``sigma(x) = max(K(x) a + b, floor)``.

    Parameters
    ----------
    coefficients : (t, k, m) array
    biases : (t, k) array
    floors : (k,) array
    """

    coefficients: Array
    biases: Array
    floors: Array

    def __call__(self, K: Array) -> Array:
        """Return sigma (N, t, k) at rows whose kernel with the model's rows is K (N, m)."""
        return np.maximum(_outputs(K, self.coefficients, self.biases), self.floors)


@dataclass(frozen=True, eq=False)
class Intervals:
    """What the fits without a fold leave behind for prediction intervals and class sets.

    Parameters
    ----------
    coefficients : (t, k, m) array
        Of the fit without each fold, at the m rows of the model.
    biases : (t, k) array
    residuals : (k, n) or (1, n) array
        Absolute held-out residuals, sorted by fold, in units of the scale if there is one; of classes the scores A.
    starts : (t + 1,) array
        Bounds of the folds.
    weights : (n,) array
        Of the rows.
    limits : (2, k, t) array or None
        Within which the outputs of the fit without each fold are kept; None for no limits.
    classes : (n,) array or None
        Numbers of the classes of held-out rows; None for a regression.
    strata : (c, n) array or None
        Numbers of the categories of held-out rows, column by column; -1 for none.
    scale : Scale or None
        What makes widths local.
    """

    coefficients: Array
    biases: Array
    residuals: Array
    starts: Indices
    weights: Array
    limits: Array | None = None
    classes: Indices | None = None
    strata: Indices | None = None
    scale: Scale | None = None

    @classmethod
    def of(
        cls, path: Path, k: int, heldout: Array | None = None, most: int | None = None, rows: Partition | None = None
    ) -> Intervals | None:
        """Refit each fold for lambda number ``k`` of a path; None if that is more than ``most`` numbers (``MOST``).

        Residuals are those of the refits, or of other held-out outputs (outputs, n). The rows may have margins.
        """
        rows, points = rows or path.rows, path.representation.points
        if rows.left.size * len(rows.Y) * points.shape[0] > (MOST if most is None else most):
            return None
        coefficients, biases = path.refits(k)
        if heldout is None:
            heldout = outputs_of_refits(path, rows, coefficients, biases)
        limits = rows.limits_apart if rows.clip else None
        residuals = np.abs(rows.Y - heldout)[:, : rows.held]
        return cls(coefficients, biases, residuals, rows.starts, rows.s[: rows.held].copy(), limits)

    def of_classes(self, signed: Array, codes: Indices, coupling: Coupling | None) -> Intervals:
        """Return them for class sets.

        Parameters
        ----------
        signed : (k, n) array
            Held-out outputs.
        codes : (n,) array
            Numbers of the classes.
        coupling : Coupling or None
            Of several outputs: sets are made of coupled ones.
        """
        kept = self
        if coupling is not None:
            signed = coupling(signed)
            biases = self.biases @ coupling.A.T + coupling.b
            kept = replace(self, coefficients=coupling.A @ self.coefficients, biases=biases)
        scores = np.take_along_axis(_scores(signed), codes[None], axis=0)
        return replace(kept, residuals=scores, classes=codes, limits=None)

    def in_units_of(self, scale: Scale, heldout: Array) -> Intervals:
        """Return them with local widths, from sigma (k, n) at the held-out rows themselves."""
        return replace(self, residuals=self.residuals / heldout, scale=scale)

    @property
    def used(self) -> Mask:
        """Which of the m rows have a coefficient in any fold."""
        used = (self.coefficients != 0).any(axis=(0, 1))
        return np.asarray(used if self.scale is None else used | (self.scale.coefficients != 0).any(axis=(0, 1)))

    def restricted(self, used: Mask) -> Intervals:
        """Keep the coefficients of some of the rows."""
        scale = self.scale
        if scale is not None:
            scale = replace(scale, coefficients=np.ascontiguousarray(scale.coefficients[..., used]))
        return replace(self, coefficients=np.ascontiguousarray(self.coefficients[..., used]), scale=scale)

    @property
    def _folds(self) -> Indices:
        """The fold of each held-out row, (n,)."""
        return np.repeat(np.arange(len(self.biases)), np.diff(self.starts))

    def bounds(self, K: Array, coverage: float, by: tuple[Indices, Indices] | None = None) -> Array:
        """Return lower and upper ends (N, k, 2) of the intervals of new rows.

        Parameters
        ----------
        K : (N, m) array
            Kernel between the new rows and the model's.
        coverage : float
            ``1 - alpha``, between 0 and 1.
        by : tuple of (n,) and (N,) arrays, or None
            Numbers of the groups of held-out and of new rows: each counts among its own.
        """
        F = _outputs(K, self.coefficients, self.biases)
        if self.limits is not None:
            F = np.clip(F, *self.limits.swapaxes(1, 2))
        sigma = None if self.scale is None else self.scale(K)
        ends = np.empty((len(K), len(self.residuals), 2))
        for new, held in _apart(by, len(K), self.weights.size):
            folds, weights = self._folds[held], self.weights[held]
            for k, residuals in enumerate(self.residuals[:, held]):
                f = F[new][:, folds, k]
                R = residuals if sigma is None else residuals * sigma[new][:, folds, k]
                ends[new, k, 0] = -_end(R - f, weights, coverage)
                ends[new, k, 1] = _end(R + f, weights, coverage)
        return ends

    def sets(self, K: Array, coverage: float, by: tuple[Indices, Indices] | None = None, each: bool = False) -> Array:
        """Return which classes are in the sets of new rows, (N, classes) of 0 and 1.

        Parameters
        ----------
        K, coverage, by : as in ``bounds``
        each : bool
            Whether a class counts among the rows of its own.
        """
        assert self.classes is not None
        F = _outputs(K, self.coefficients, self.biases)
        scores = _scores(np.moveaxis(F, 2, 0))  # (classes, N, t)
        chosen = np.zeros((len(K), len(scores)))
        for new, held in _apart(by, len(K), self.weights.size):
            for c, own in enumerate(scores):
                among = held & (self.classes == c) if each else held
                chosen[new, c] = self._is_within(own[new], among, coverage)
        return chosen

    def _is_within(self, scores: Array, among: Mask, coverage: float) -> Mask:
        """Say whether scores (N, t) by each fold's fit are below enough of those of some held-out rows."""
        weights, below = self.weights[among], np.zeros(len(scores))
        share = weights / weights.mean() if weights.size else weights
        for fold in range(len(self.biases)):
            own = self._folds[among] == fold
            order = np.argsort(self.residuals[0, among][own])
            sums = np.append(0.0, np.cumsum(share[own][order]))
            below += sums[np.searchsorted(self.residuals[0, among][own][order], scores[:, fold], "left")]
        return np.asarray(below < coverage * (weights.size + 1) * (1 - WHOLE))


def outputs_of_refits(path: Path, rows: Partition, coefficients: Array, biases: Array) -> Array:
    """Return the outputs (k, n) of fits without each fold at its rows, within their limits; 0 for rows in no fold."""
    points = path.representation.points
    found = np.zeros(rows.Y.shape)
    block = max(1, BLOCK_BYTES // (8 * points.shape[0]))
    for fold, (a, b) in enumerate(zip(coefficients, biases, strict=True)):
        lo, hi = rows.starts[fold : fold + 2]
        for start in range(lo, hi, block):
            held = slice(start, min(start + block, hi))
            outputs = a @ path.problem.kernel(rows.X[held], points).T + b[:, None]
            found[:, held] = np.clip(outputs, *rows.limits_apart[:, :, fold, None]) if rows.clip else outputs
    return found


def _outputs(K: Array, coefficients: Array, biases: Array) -> Array:
    """Return the outputs (N, t, k) of the fits without each fold."""
    t, outputs, m = coefficients.shape
    return np.asarray((K @ coefficients.reshape(t * outputs, m).T).reshape(-1, t, outputs) + biases)


def _scores(F: Array) -> Array:
    """Return by how much another class is ahead of each one, (classes, ...), for outputs F (k, ...)."""
    if len(F) == 1:
        return np.concatenate([F, -F])
    second, first = np.sort(F, axis=0)[-2:]
    return np.asarray(np.where(first == F, second, first) - F)


def _apart(by: tuple[Indices, Indices] | None, N: int, n: int) -> Iterator[tuple[Mask, Mask]]:
    """Yield which of N new rows, and of n held-out rows, are of one group; all together without groups."""
    if by is None:
        yield np.ones(N, np.bool_), np.ones(n, np.bool_)
        return
    held, new = by
    for group in np.unique(new):
        yield new == group, held == group


def _end(values: Array, weights: Array, coverage: float) -> Array:
    """The smallest of each row of ``values (N, n)`` up to which a share of the weight lies, the new row's included."""
    n = values.shape[1]
    wanted = coverage * (n + 1) * (1 - WHOLE)
    if wanted > n:
        return np.full(len(values), np.inf)
    share = weights / weights.mean()
    if (weights == weights[0]).all():
        place = int(np.ceil(wanted)) - 1
        return np.asarray(np.partition(values, place, axis=1)[:, place])
    order = values.argsort(axis=1)
    place = (share[order].cumsum(axis=1) < wanted).sum(axis=1)
    place = np.minimum(place, n - 1)[:, None]  # the shares may add up to a little less than n
    return np.asarray(np.take_along_axis(values, np.take_along_axis(order, place, axis=1), axis=1)[:, 0])
