"""What is done on a part of the rows, and how two parts are merged: this is what workers import.

Each sum over rows is a function of a part, ``work(part) -> S``, and ``merge(S, S)``; ``kernsel.selection.drivers`` says
where both are done, and who wants the sum finishes it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np

from kernsel.data.encoding import Encoder
from kernsel.data.part_rows import Columns, Part, Rows, naming
from kernsel.data.quantiles import count_next
from kernsel.data.target import Target, chosen_classes, class_codes
from kernsel.heldout.errors import Errors
from kernsel.heldout.losses import LossSums
from kernsel.heldout.standard_error import are_counts
from kernsel.journal.encoding import fingerprint
from kernsel.kernels import Kernel
from kernsel.numerics.blocks import features as streaming
from kernsel.numerics.blocks.features import Features
from kernsel.numerics.blocks.passes import PassSums, Request, add_up
from kernsel.numerics.blocks.sums import Sums, segment_sums
from kernsel.numerics.points import Points
from kernsel.protocols import Learner
from kernsel.types import Array, Indices

S = TypeVar("S")
T = TypeVar("T")


class Drawn(NamedTuple):
    """The rows with the least of random keys, encoded, in the order of these, and how many there are in all."""

    keys: Array
    X: Points
    Y: Array
    weights: Array | None
    rows: int


class Encoded(NamedTuple):
    """A part of the rows, encoded and sorted by fold."""

    X: Points
    Y: Array
    s: Array
    starts: Indices


class Facts(NamedTuple):
    """What is to be known of encoded rows before anything is fitted to them.

    Parameters
    ----------
    limits : (2, k) array
        Least and largest target.
    counts : bool
        Whether all weights are whole numbers.
    digest : str
        Of all values: other rows have another one.
    weights : (t,) array
        Of each fold.
    """

    rows: int
    weight: float
    limits: Array
    counts: bool
    digest: str
    weights: Array


class HeldOutSums(NamedTuple):
    """Sums over rows of their losses and errors by the fits without their fold, and the largest ``k(x, x)``.

    Parameters
    ----------
    sums : LossSums
        Of L values of lambda.
    null : float
        Sum of the losses of outputs that are 0.
    """

    sums: LossSums
    kappa: float
    null: float

    def merge(self, other: HeldOutSums) -> HeldOutSums:
        """Return the sums of these rows and others."""
        return HeldOutSums(self.sums.merge(other.sums), max(self.kappa, other.kappa), self.null + other.null)


@naming
def draw(rows: Rows, coding: Coding, size: int) -> Drawn:
    """Return a random sample of the rows of a part that count, which can be merged with those of others.

    The rows are encoded where they are: tables of parts whose columns are of other types are none together.
    """
    part = Part.of(rows, coding.columns)
    keys = np.random.default_rng([coding.seed, rows.number, 0]).random(len(rows.table))[part.kept.rows]
    order = np.argsort(keys)[:size]
    X, Y = part.take(order).encode(coding.target, coding.encoder)
    return Drawn(keys[order], X, Y, None if part.kept.weights is None else part.kept.weights[order], keys.size)


def merge_drawn(one: Drawn, other: Drawn, size: int) -> Drawn:
    """Return the sample of two parts together."""
    if not one.rows or not other.rows:
        return one if one.rows else other
    keys = np.append(one.keys, other.keys)
    order = np.argsort(keys)[:size]
    X = np.concatenate([one.X, other.X])[order]
    Y = np.ascontiguousarray(np.concatenate([one.Y, other.Y], axis=1)[:, order])
    weights = None
    if one.weights is not None and other.weights is not None:
        weights = np.append(one.weights, other.weights)[order]
    return Drawn(keys[order], X, Y, weights, one.rows + other.rows)


class Coding(NamedTuple):
    """How rows are encoded, and dealt to folds."""

    columns: Columns
    target: Target
    encoder: Encoder
    folds: int
    seed: int


@naming
def encode_part(rows: Rows, coding: Coding) -> Encoded:
    """Encode a part, and deal its rows to folds at random."""
    part = Part.of(rows, coding.columns)
    X, Y = part.encode(coding.target, coding.encoder)
    m = Y.shape[1]
    fold = np.random.default_rng([coding.seed, rows.number, 1]).integers(coding.folds, size=m)
    order = np.argsort(fold, kind="stable")
    starts = np.append(0, np.cumsum(np.bincount(fold, minlength=coding.folds)))
    s = np.ones(m) if part.kept.weights is None else part.kept.weights
    return Encoded(X[order], np.ascontiguousarray(Y[:, order]), s[order], starts)


def rescale(part: Encoded, median: float, spread: float) -> Encoded:
    """Return a part with its target in other units."""
    return part._replace(Y=(part.Y - median) / spread)


def count_digits(part: Encoded, centre: float | None, digits: int, beginning: int) -> Array:
    """Return the weights of targets, or of their distances from a centre, by a digit: see ``data.quantiles``."""
    values = part.Y[0] if centre is None else np.abs(part.Y[0] - centre)
    return count_next(values, part.s, digits, beginning)


def find_facts(part: Encoded) -> Facts:
    """Return what a part has to say of its rows."""
    limits = np.stack([part.Y.min(axis=1, initial=np.inf), part.Y.max(axis=1, initial=-np.inf)])
    weights = np.array([part.s[lo:hi].sum() for lo, hi in pairwise(part.starts.tolist())])
    return Facts(part.Y.shape[1], float(part.s.sum()), limits, are_counts(part.s), fingerprint(part), weights)


def merge_facts(one: Facts, other: Facts) -> Facts:
    """Return what two parts have to say."""
    (low, high), (lower, higher) = one.limits, other.limits
    limits = np.stack([np.minimum(low, lower), np.maximum(high, higher)])
    return Facts(
        one.rows + other.rows,
        one.weight + other.weight,
        limits,
        one.counts and other.counts,
        fingerprint((one.digest, other.digest)),
        one.weights + other.weights,
    )


def sum_part(part: Encoded, features: Features) -> Sums:
    """Return the sums of a part by fold, before they are finished."""
    return segment_sums(features, part.X, part.Y, part.s, part.starts, finished=False)


def hold_out_part(
    part: Encoded,
    features: Features,
    kernel: Kernel,
    learner: Learner,
    w: Array,
    b: Array,
    limits: Array | None,
    errors: Errors,
    counts: bool,
) -> HeldOutSums:
    """Return the sums of a part's losses by fits without each fold: weights w (t, k, L, r) and biases b (t, k, L)."""
    f = streaming.outputs(features, part.X, part.starts, w, b)
    if limits is not None:
        f = np.clip(f, *limits[:, :, None, None])
    measure = learner.loss
    loss = error = ((f - part.Y[:, None]) ** 2).mean(axis=0)
    null = (part.Y**2).mean(axis=0)
    if not measure.square:
        loss = measure.values(part.Y, f).mean(axis=0)
        null = measure.value(part.Y, np.zeros(part.Y.shape)).mean(axis=0)
    if errors.classes:
        chosen = np.stack([chosen_classes(np.ascontiguousarray(f[:, k])) for k in range(f.shape[1])])
        error = (chosen != class_codes(part.Y)).astype(np.float64)
    sums = LossSums.of(loss, error, part.starts, part.s, counts)
    return HeldOutSums(sums, float(kernel.diag(part.X).max(initial=0.0)), float(null @ part.s))


def pass_part(part: Encoded, features: Features, learner: Learner, request: Request) -> PassSums:
    """Return the sums of a pass of Newton's method over a part."""
    return add_up(features, int(learner.bias), learner.loss, request, part.X, part.Y, part.s, part.starts)


def same(value: T) -> T:
    """Return a value: what all parts need is handed out by it."""
    return value
