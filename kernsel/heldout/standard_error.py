"""Standard errors over folds, and folds in blocks where one fold at a time would be too slow."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np

from kernsel.types import Array, Indices

BLOCKS = 20
"""More folds than this (leave one out has n) are put together in so many blocks of like composition."""

CHUNK = 2**16
"""Rows whose deviations from the mean are held at a time."""


def corrected_error(values: Array, held: float) -> float:
    """Return the standard error of a mean over random splits, whose training rows overlap.

    With R splits, their standard deviation s, and ``held`` rows to test on for each one to train on,
    ``se^2 = (1/R + held) s^2`` (Nadeau & Bengio 2003, Section 3.3): more splits of the same rows don't make it vanish.

    Parameters
    ----------
    values : (R,) array

    Returns
    -------
    float
        NaN for fewer than two splits.
    """
    return math.sqrt(1 / values.size + held) * float(values.std(ddof=1)) if values.size > 1 else math.nan


def standard_error(values: Array, starts: Indices, s: Array) -> Array:
    """Return the standard error of weighted means: the larger one of that between folds and that of single rows.

    Means of folds differ by less than chance where folds are stratified: a classifier of one class has the same error
    in each. Rows differ by less than chance where those of a fold belong together. See `between_folds`, `of_rows`.

    Parameters
    ----------
    values : (..., n) array
        Sorted by fold.
    starts : (t + 1,) array
        Bounds of the folds; rows beyond the last are left out.
    s : (n,) array
        Weights of the rows.

    Returns
    -------
    (...) array
        NaN if there is one fold only.
    """
    folds = between_folds(values, starts, s)
    return np.maximum(folds, of_rows(values[..., : starts[-1]], s[: starts[-1]]))


def of_rows(values: Array, s: Array) -> Array:
    """Return the standard error of weighted means of independent rows.

    With the weights s, their sum W and the weighted mean mu,

        se^2 = n / (n - 1) sum_i s_i^2 (v_i - mu)^2 / W^2:

    for a share p of mistakes and equal weights the binomial ``p (1 - p) / (n - 1)``. Whole weights are counts, a row of
    weight 2 one that is there twice: ``se^2 = sum_i s_i (v_i - mu)^2 / (W (W - 1))``.

    Parameters
    ----------
    values : (..., n) array
    s : (n,) array

    Returns
    -------
    (...) array
        NaN for one row alone.
    """
    counts, total = are_counts(s), float(s.sum())
    n = total if counts else float(s.size)
    if n <= 1:
        return np.full(values.shape[:-1], np.nan)
    shares = s / total
    squared = shares / total if counts else shares**2
    with np.errstate(over="ignore", invalid="ignore"):  # the outputs of a fit that failed may be infinite
        mean, variance = values @ shares, np.zeros(values.shape[:-1])
        for start in range(0, s.size, CHUNK):
            chunk = slice(start, start + CHUNK)
            variance += (values[..., chunk] - mean[..., None]) ** 2 @ squared[chunk]
        return np.asarray(np.sqrt(n / (n - 1) * variance))


class CentredError:
    """What ``standard_error`` is for values whose weighted means are 0 and that are all held out: its square.

    With the sums ``S_j`` of the weighted values of t folds it is the larger one of two sums: see `between_folds`,
    `of_rows`,

        sum_j S_j^2 / (t W_j^2 (W / W_j - 1)),    n / (n - 1) sum_i s_i^2 v_i^2 / W^2.

    Parameters
    ----------
    starts : (t + 1,) array
        Bounds of the folds; the last is n.
    s : (n,) array
        Weights of the rows.
    """

    def __init__(self, starts: Indices, s: Array) -> None:
        total, weights = float(s.sum()), np.add.reduceat(s, starts[:-1])
        self.starts, self.counts = starts[:-1], are_counts(s)
        n = total if self.counts else float(s.size)
        self.known = len(weights) > 1 and n > 1
        if self.known:
            self.between = 1.0 / (weights.size * weights**2 * (total / weights - 1.0))
            self.single = n / (n - 1.0) / total**2

    def squares(self, values: Array, weighted: Array) -> tuple[Array, Array]:
        """Return the squared standard errors (c,), NaN for one fold or row alone; the sums of squared weighted values.

        Parameters
        ----------
        values : (c, n) array
            Sorted by fold.
        weighted : (c, n) array
            These times the weights of the rows.
        """
        by_row = np.einsum("cn,cn->c", weighted, values if self.counts else weighted)
        if not self.known:
            return np.full(len(values), np.nan), by_row
        sums = np.add.reduceat(weighted, self.starts, axis=1)
        sums *= sums
        return np.maximum(sums @ self.between, by_row * self.single), by_row


def are_counts(s: Array) -> bool:
    """Say whether weights are whole numbers, and so count how often a row is there."""
    return bool((s == np.round(s)).all())


def between_folds(values: Array, starts: Indices, s: Array) -> Array:
    """Return the standard error of weighted means, from how they differ between folds.

    With the means ``mu_j`` and weights ``W_j`` of t folds, ``W = sum_j W_j`` and the mean ``mu`` of all rows,

        se^2 = (1/t) sum_j (mu_j - mu)^2 / (W / W_j - 1),

    the jackknife that leaves out one fold at a time, for folds of unequal weight (Busing, Meijer & van der Leeden
    1999). For equal folds it is the standard deviation of the fold means over the root of t.

    Parameters
    ----------
    values, starts, s : (..., n), (t + 1,) and (n,) arrays
        Values sorted by fold, the bounds of the folds, and the weights of the rows.

    Returns
    -------
    (...) array
        NaN if there is one fold only.
    """
    held = int(starts[-1])
    weights = np.add.reduceat(s[:held], starts[:-1])
    if weights.size == 1:
        return np.full(values.shape[:-1], np.nan)
    with np.errstate(over="ignore", invalid="ignore"):  # the outputs of a fit that failed may be infinite
        return _between(np.add.reduceat(values[..., :held] * s[:held], starts[:-1], axis=-1), weights)


def _between(sums: Array, weights: Array) -> Array:
    """Return what ``between_folds`` does, from weighted sums (..., t) and weights (t,) of the folds."""
    mean = sums.sum(axis=-1, keepdims=True) / weights.sum()
    variance = ((sums / weights - mean) ** 2 / (weights.sum() / weights - 1)).mean(axis=-1)
    return np.asarray(np.sqrt(variance))


class MeanSums(NamedTuple):
    """Sums over rows that weighted means, and their standard errors, are made of; those of parts of the rows add up.

    With values ``v_i`` and weights ``s_i``, and ``q_i = s_i`` where weights are counts, else ``s_i^2``.

    Parameters
    ----------
    weights : (t,) array
        Sums of ``s`` over the rows of each fold.
    first : (..., t) array
        Sums of ``s v`` over the rows of each fold.
    spread : (3,) + (...) array
        Sums of ``q``, ``q v`` and ``q v^2`` over all rows.
    """

    rows: int
    weights: Array
    first: Array
    spread: Array

    @classmethod
    def of(cls, values: Array, starts: Indices, s: Array, counts: bool) -> Self:
        """Sum up values (..., n) that are sorted by fold.

        Parameters
        ----------
        values : (..., n) array
        starts : (t + 1,) array
            Bounds of the folds, some of which may be without rows here.
        s : (n,) array
        counts : bool
            Whether all weights are whole numbers, these and those of other parts.
        """
        t = len(starts) - 1
        weights, first = np.zeros(t), np.zeros((*values.shape[:-1], t))
        for j in range(t):
            fold = slice(starts[j], starts[j + 1])
            weights[j], first[..., j] = s[fold].sum(), values[..., fold] @ s[fold]
        q = s if counts else s**2
        weighted = values * q
        spread = [np.full(values.shape[:-1], q.sum()), weighted.sum(axis=-1), (weighted * values).sum(axis=-1)]
        return cls(len(s), weights, first, np.stack(spread))

    def merge(self, other: Self) -> Self:
        """Return the sums of these rows and others."""
        return type(self)(
            self.rows + other.rows, self.weights + other.weights, self.first + other.first, self.spread + other.spread
        )

    @property
    def mean(self) -> Array:
        """The weighted means, (...)."""
        return np.asarray(self.first.sum(axis=-1) / self.weights.sum())

    def deviation(self) -> Array:
        """Return the weighted standard deviations of single rows, (...)."""
        mean, (q, first, second) = self.mean, self.spread
        variance = np.maximum(second - mean * (2.0 * first - mean * q), 0.0)
        return np.asarray(np.sqrt(variance / q))

    def standard_error(self, counts: bool) -> Array:
        """Return the standard errors of the means, as ``standard_error`` has them: (...)."""
        total = float(self.weights.sum())
        n = total if counts else float(self.rows)
        with np.errstate(over="ignore", invalid="ignore"):  # the outputs of a fit that failed may be infinite
            of_single = self.deviation() * np.sqrt(n / (n - 1) * self.spread[0]) / total
            return np.asarray(np.maximum(_between(self.first, self.weights), of_single))


def blocks_of(starts: Indices) -> Indices:
    """Return the block of each row that is held out, (starts[-1],): its fold, or every 20th fold together.

    Folds are often dealt class by class; neighbours in one block would be of one class.
    """
    folds = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return folds % BLOCKS


def jackknife(statistic: Callable[[Indices], float], starts: Indices, s: Array) -> float | None:
    """Return the standard error of a statistic of the held-out rows by leaving out one block of folds at a time.

    With ``h_j = W / W_j`` and ``theta_(j)`` from all blocks but j, the pseudo-values are
    ``h_j theta - (h_j - 1) theta_(j)``, and of these `between_folds` has the variance. For a mean it is the same.

    Parameters
    ----------
    statistic : callable
        From the numbers of the rows to use.
    starts : (t + 1,) array
        Bounds of the folds.
    s : (n,) array
        Weights of the rows.

    Returns
    -------
    float or None
        None if the statistic isn't finite without some block, or if there is one fold only.
    """
    blocks, s = blocks_of(starts), s[: starts[-1]]
    if not blocks.any():
        return None
    h = s.sum() / np.bincount(blocks, s)
    without = np.array([statistic(np.flatnonzero(blocks != block)) for block in range(len(h))])
    pseudo = h * statistic(np.arange(len(blocks))) - (h - 1) * without
    if not np.isfinite(pseudo).all():
        return None
    centre = (pseudo / h).sum()
    return math.sqrt(((pseudo - centre) ** 2 / (h - 1)).mean())
