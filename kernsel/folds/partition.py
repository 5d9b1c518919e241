"""The data of a selection, sorted by the fold that holds each row out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernsel.data import Dataset
from kernsel.folds.holdouts import Folds
from kernsel.kernels import Kernel, Statistics
from kernsel.numerics import left_out
from kernsel.numerics.blocks.costs import COPIED_BYTES
from kernsel.numerics.left_out import LeftOut, own_rows
from kernsel.numerics.points import Points, Rearranged, as_points, is_sparse
from kernsel.numerics.runtime.once import once
from kernsel.types import Array, Indices, Mask

MOST_AWAY = 0.5
"""Of all rows: a fit that leaves out more is made anew, for less than what the block of the rows left out costs."""

DIAGONAL_ROWS = 2**16
"""Of so many of them at a time the kernel's diagonal is computed then."""


@dataclass(frozen=True, eq=False)
class Partition:
    """The data of a selection, sorted by fold.

    Parameters
    ----------
    X : (n, d) points
        Dense or sparse, see ``kernsel.numerics.points``.
    Y : (k, n) array
        Targets; classes are -1 and +1, one row a class if there are more than two.
    starts : (t + 1,) array
        Fold j holds the rows ``starts[j]`` to below ``starts[j + 1]``; rows from ``starts[t]`` on are never held out.
    order : (n,) array
        Where the rows stood in the data as given: ``X = given[order]``.
    statistics : object
        Shared distances and inner products of X, for ``kernel.evaluate``.
    seed : int
        Of whatever is drawn: landmarks.
    weights : (n,) array or None
        Sample weights, greater than 0; None where every row counts 1.
    training : (t, n) array of bool or None
        The rows that each fold's fit is trained on, if not all but the fold: those before it, or all that are not too
        near to it.
    clip : bool
        Whether held-out outputs are kept within the range of the targets.
    margins : (2, k) array or None
        How far below and above it they may be, in widths of the range; None for not at all.
    """

    X: Points
    Y: Array
    starts: Indices
    order: Indices
    statistics: Statistics
    seed: int = 0
    weights: Array | None = None
    training: Mask | None = None
    clip: bool = False
    margins: Array | None = None

    @classmethod
    def of(
        cls, dataset: Dataset, folds: Folds, seed: int, clip: bool = False, copied_bytes: int = COPIED_BYTES
    ) -> Partition:
        """Sort the rows of a data set by fold; outputs of a regression may be clipped to the targets' range.

        Dense rows of more than ``copied_bytes`` are not copied.
        """
        order = folds.order
        gathered = is_sparse(dataset.X) or dataset.X.nbytes <= copied_bytes
        X = dataset.X[order] if gathered else Rearranged(dataset.X, order)
        Y = np.ascontiguousarray(dataset.Y[:, order])
        weights = None if dataset.weights is None else dataset.weights[order]
        training = None if folds.training is None else np.ascontiguousarray(folds.training[:, order])
        clip = clip and dataset.task == "regression" and not folds.in_time  # in time a target may leave its range
        return cls(X, Y, folds.starts, order, Statistics(X), seed, weights, training, clip)

    @property
    def identity(self) -> tuple[Any, ...]:
        """What tells these rows from others."""
        X = self.X.given if isinstance(self.X, Rearranged) else self.X
        return X, self.Y, self.starts, self.order, self.seed, self.weights, self.training, self.clip, self.margins

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.Y.shape[1])

    @property
    def held(self) -> int:
        """Number of rows that are held out by some fold: the first ones."""
        return int(self.starts[-1])

    def diagonal(self, kernel: Kernel) -> Array:
        """Return ``k(x, x)`` of each row, (n,)."""
        if not isinstance(self.X, Rearranged):
            return kernel.diag(self.X)
        starts = range(0, self.n, DIAGONAL_ROWS)
        return np.concatenate([kernel.diag(self.X[start : start + DIAGONAL_ROWS]) for start in starts])

    @once
    def s(self) -> Array:
        """Sample weights, (n,)."""
        return np.ones(self.n) if self.weights is None else self.weights

    @once
    def total(self) -> float:
        """Sum of the sample weights: what ``n`` is without them."""
        return float(self.s.sum())

    @once
    def left(self) -> Array:
        """Sum of the weights that each fold's fit keeps, (t,)."""
        if self.training is not None:
            return np.asarray(self.training @ self.s)
        return np.asarray(self.total - np.add.reduceat(self.s[: self.held], self.starts[:-1]))

    @once
    def away(self) -> LeftOut:
        """The rows that each fold's fit leaves out."""
        if self.training is None:
            return own_rows(self.starts)
        each = [np.flatnonzero(~kept) for kept in self.training]
        return LeftOut(np.concatenate(each), np.cumsum([0, *map(len, each)]))

    @once
    def folds(self) -> left_out.Folds:
        """The folds as the numerics take them."""
        return left_out.Folds(self.starts, *self.away, self.left, self.total)

    @once
    def updated(self) -> bool:
        """Whether fits without a fold are got from the fit on all rows: none leaves out more than ``MOST_AWAY``."""
        return self.training is None or bool(self.away.sizes.max() <= MOST_AWAY * self.n)

    @once
    def one_by_one(self) -> Partition:
        """These rows, where every one that is held out is a fold of its own, and fits are trained on all others."""
        if self.training is None and self.left.size == self.held:
            return self
        return replace(self, starts=np.arange(self.held + 1), training=None)

    def kept(self, fold: int) -> Mask:
        """Say which rows the fit without a fold is trained on, (n,)."""
        if self.training is not None:
            return np.asarray(self.training[fold])
        kept = np.ones(self.n, np.bool_)
        kept[self.starts[fold] : self.starts[fold + 1]] = False
        return kept

    def taken(self, chosen: Indices, starts: Indices) -> Partition:
        """Return some of the rows in the order given, in folds of their own."""
        X = as_points(self.X[chosen])
        return replace(
            self,
            X=X,
            Y=np.ascontiguousarray(self.Y[:, chosen]),
            starts=starts,
            order=self.order[chosen],
            statistics=type(self.statistics)(X),
            weights=None if self.weights is None else self.weights[chosen],
            training=None if self.training is None else np.ascontiguousarray(self.training[:, chosen]),
        )

    def restricted(self, chosen: Mask) -> Partition:
        """Return some of the rows in the folds that they were in, none of which should lose all of its rows."""
        return self.taken(np.flatnonzero(chosen), np.append(0, np.cumsum(chosen))[self.starts])

    def piece(self, fold: int, rows: slice) -> Partition:
        """Return some neighbouring rows of a fold, a view of X, with the ranges of the targets of all rows."""
        found = replace(
            self,
            X=self.X[rows],
            Y=np.ascontiguousarray(self.Y[:, rows]),
            starts=np.array([0, rows.stop - rows.start]),
            order=self.order[rows],
            weights=None if self.weights is None else self.weights[rows],
            training=None if self.training is None else self.training[fold : fold + 1, rows],
        )
        if self.clip:
            vars(found).update(limits=self.limits, limits_apart=self.limits_apart[:, :, fold : fold + 1])
        return found

    @once
    def limits(self) -> Array:
        """Least and largest target, (2, k), less and plus the margins."""
        return self._widened(np.stack([self.Y.min(axis=1), self.Y.max(axis=1)]))

    def clipped(self, F: Array) -> Array:
        """Return outputs (k, ..., n) within the range of the targets, if rows are clipped."""
        return _within(F, self.limits[:, :, None]) if self.clip else F

    @once
    def limits_apart(self) -> Array:
        """Least and largest target of the fit without each fold, (2, k, t), less and plus the margins."""
        if self.training is not None:
            each = [self.Y[:, kept] for kept in self.training]
            return self._widened(
                np.stack([[Y.min(axis=1) for Y in each], [Y.max(axis=1) for Y in each]]).swapaxes(1, 2)
            )
        t = self.left.size
        bounds = np.append(self.starts, self.n)[: t + 1 + (self.held < self.n)]  # rows in no fold are a last part
        ends = []
        for sign in (-1.0, 1.0):
            largest = np.maximum.reduceat(sign * self.Y, bounds[:-1], axis=1)
            second, first = np.sort(largest, axis=1)[:, -2:].T[:, :, None]
            ends.append(sign * np.where(largest == first, second, first))  # of two that are equal both are second
        return self._widened(np.stack(ends)[:, :, :t])

    def _widened(self, limits: Array) -> Array:
        """Return limits (2, k) or (2, k, t) of outputs with the margins."""
        return limits if self.margins is None else widened(limits, self.margins)

    def clipped_apart(self, F: Array) -> Array:
        """Return held-out outputs (k, ..., n) within the range of the targets that their own fit was trained on.

        That is what a model without the fold predicts, and so what is reported; scores, which only compare, have the
        range of all targets, so that rows beyond the others' range weigh on all candidates alike.
        """
        if not self.clip:
            return F
        limits = np.repeat(self.limits_apart, np.diff(self.starts), axis=2)
        return np.concatenate([_within(F[..., : self.held], limits), F[..., self.held :]], axis=-1)

    def mean(self, values: Array) -> Array:
        """Return the weighted mean over held-out rows of ``values (..., n)``."""
        s = self.s[: self.held]
        return np.asarray(values[..., : self.held] @ s / s.sum())


def shares_of(deals: Sequence[Partition]) -> Array:
    """Return the share of each deal in a mean over all rows that are held out, once for each time that they are."""
    sums = np.array([rows.s[: rows.held].sum() for rows in deals])
    return np.asarray(sums / sums.sum())


def widened(limits: Array, margins: Array) -> Array:
    """Return limits (2, k) or (2, k, t) with margins (2, k) below and above, in widths between them."""
    low, high = limits
    below, above = margins.reshape(margins.shape + (1,) * (low.ndim - 1))
    return np.stack([low - below * (high - low), high + above * (high - low)])


def _within(F: Array, limits: Array) -> Array:
    """Return outputs F (k, ..., n) within limits (2, k, n) or (2, k, 1); what is infinite has failed, and stays."""
    low, high = limits.reshape(2, len(F), *(1,) * (F.ndim - 2), -1)
    return np.where(np.isinf(F), F, np.clip(F, low, high))
