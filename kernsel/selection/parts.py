"""A selection of the square loss at a low rank on rows that are never in one place.

A random sample of the rows comes here, and an ordinary selection on it gives the encoding of columns, the units of the
target, and the kernels that lead. For each of these, landmarks are chosen among the sample; one pass over the parts of
all rows sums up the products of features by fold, and a second one the held-out losses of every lambda. So what is
chosen is chosen by exact held-out losses of all rows, and nothing but the sample, landmarks and sums travels. The
model, too, is made of the sums, and keeps them: see ``kernsel.model.sufficient``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernsel.data import Dataset
from kernsel.data.encoding import Encoder
from kernsel.data.more import encode_more
from kernsel.data.target import chosen_classes, class_codes
from kernsel.errors import OptionError, SelectionWarning
from kernsel.kernels import Kernel
from kernsel.model.extrapolation import reach
from kernsel.model.sufficient import SufficientStatistics
from kernsel.numerics.blocks import features as streaming
from kernsel.numerics.blocks.costs import SAMPLE
from kernsel.numerics.blocks.features import Features
from kernsel.numerics.blocks.sums import Sums, finish, segment_sums
from kernsel.numerics.points import Points
from kernsel.numerics.runtime.jit import one_blas_thread
from kernsel.parts import read_learner
from kernsel.representation.ranks import LowRank
from kernsel.search.candidate import Candidate
from kernsel.selection.carry_out import carry_out, encode_arrays
from kernsel.selection.drivers import Driver
from kernsel.selection.plan import WORDS, Plan
from kernsel.selection.result import Selection

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]

RANK = 1000
"""Landmarks, unless a number is given."""

LEAST_SAMPLE = 5000
"""Rows of the sample at least, for encoding, units and the first search."""

LEADING = 3
"""Kernels of the selection on the sample that are looked at on all rows."""

SMALLER = (0.25, 0.25**2, 0.25**3)
"""More rows want a smaller lambda than the sample's: these multiples of its least good one are looked at as well."""

UNDERSTOOD = {
    *("learner", "kernel", "relevances", "effort", "folds", "grid", "search", "verify", "rank", "seed", "extend"),
    *("task", "standardize", "drop", "keep", "categorical", "numeric", "ordinal", "missing", "memory", "journal"),
}
"""Options that rows in parts have; of others, everything but the default is refused."""


class Rows(NamedTuple):
    """A part of the rows as it is given."""

    number: int
    table: pd.DataFrame
    y: Any
    weights: Any


class Drawn(NamedTuple):
    """The rows with the least of random keys, in the order of these, and how many there are in all."""

    keys: Array
    table: pd.DataFrame
    y: pd.DataFrame
    weights: Array | None
    rows: int


class Encoded(NamedTuple):
    """A part of the rows, encoded and sorted by fold."""

    X: Points
    Y: Array
    s: Array
    starts: NDArray[np.int64]


class Facts(NamedTuple):
    """Number of rows, their weight, and least and largest target, (2, k)."""

    rows: int
    weight: float
    limits: Array


class FoldLosses(NamedTuple):
    """Sums over rows by fold: weights (t,), and losses, their squares and errors, each (t, L)."""

    weight: Array
    loss: Array
    square: Array
    error: Array

    def spread(self, k: int) -> tuple[float, float]:
        """Return the mean loss over all rows with the k-th value of lambda, and the standard deviation."""
        total = self.weight.sum()
        mean = float(self.loss[:, k].sum() / total)
        return mean, float(np.sqrt(max(self.square[:, k].sum() / total - mean**2, 0.0)))


def draw(rows: Rows, size: int, seed: int) -> Drawn:
    """Return a random sample of a part that can be merged with those of others."""
    import pandas as pd

    keys = np.random.default_rng([seed, rows.number, 0]).random(len(rows.table))
    order = np.argsort(keys)[:size]
    y = pd.DataFrame(rows.y).iloc[order]
    weights = None if rows.weights is None else np.asarray(rows.weights, dtype=np.float64)[order]
    return Drawn(keys[order], rows.table.iloc[order], y, weights, len(rows.table))


def merge_drawn(one: Drawn, other: Drawn, size: int) -> Drawn:
    """Return the sample of two parts together."""
    import pandas as pd

    keys = np.append(one.keys, other.keys)
    order = np.argsort(keys)[:size]
    table, y = (pd.concat(each, ignore_index=True).iloc[order] for each in ([one.table, other.table], [one.y, other.y]))
    weights = None
    if one.weights is not None and other.weights is not None:
        weights = np.append(one.weights, other.weights)[order]
    return Drawn(keys[order], table, y, weights, one.rows + other.rows)


class Coding(NamedTuple):
    """How rows are encoded, and dealt to folds."""

    encoder: Encoder
    labels: list[Any] | None
    shift: Array
    scale: Array
    folds: int
    seed: int


def encode_part(rows: Rows, coding: Coding) -> Encoded:
    """Encode a part, and deal its rows to folds at random."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelectionWarning)  # of categories that no row of the sample has
        more = encode_more(rows.table, rows.y, coding.encoder, coding.labels, coding.shift, coding.scale, rows.weights)
    m = more.Y.shape[1]
    fold = np.random.default_rng([coding.seed, rows.number, 1]).integers(coding.folds, size=m)
    order = np.argsort(fold, kind="stable")
    starts = np.append(0, np.cumsum(np.bincount(fold, minlength=coding.folds)))
    s = np.ones(m) if more.weights is None else more.weights
    return Encoded(more.X[order], np.ascontiguousarray(more.Y[:, order]), s[order], starts)


def find_facts(part: Encoded) -> Facts:
    """Return what a part has to say of its rows."""
    return Facts(part.Y.shape[1], float(part.s.sum()), np.stack([part.Y.min(axis=1), part.Y.max(axis=1)]))


def merge_facts(one: Facts, other: Facts) -> Facts:
    """Return what two parts have to say."""
    (low, high), (lower, higher) = one.limits, other.limits
    limits = np.stack([np.minimum(low, lower), np.maximum(high, higher)])
    return Facts(one.rows + other.rows, one.weight + other.weight, limits)


def sum_part(part: Encoded, features: Features) -> Sums:
    """Return the sums of a part by fold, before they are finished."""
    return segment_sums(features, part.X, part.Y, part.s, part.starts, finished=False)


def hold_out_part(
    part: Encoded, features: Features, w: Array, b: Array, limits: Array | None, classes: bool
) -> FoldLosses:
    """Return the losses of a part by fits without each fold: weights w (t, k, L, r) and biases b (t, k, L)."""
    t, L = w.shape[0], w.shape[2]
    f = streaming.outputs(features, part.X, part.starts, w, b)
    if limits is not None:
        f = np.clip(f, *limits[:, :, None, None])
    loss = ((f - part.Y[:, None]) ** 2).mean(axis=0)
    error = loss
    if classes:
        chosen = np.stack([chosen_classes(np.ascontiguousarray(f[:, k])) for k in range(L)])
        error = (chosen != class_codes(part.Y)).astype(np.float64)
    found = np.zeros((3, t, L))
    for j in range(t):
        fold = slice(part.starts[j], part.starts[j + 1])
        for into, each in zip(found, (loss, loss**2, error), strict=True):
            into[j] = each[:, fold] @ part.s[fold]
    weight = np.array([part.s[part.starts[j] : part.starts[j + 1]].sum() for j in range(t)])
    return FoldLosses(weight, *found)


def merge_losses(one: FoldLosses, other: FoldLosses) -> FoldLosses:
    """Return the losses of two parts."""
    return FoldLosses(*(each + another for each, another in zip(one, other, strict=True)))


def check_plan(plan: Plan) -> None:
    """Refuse options that rows in parts don't have."""
    refused = [name for name in WORDS if name not in UNDERSTOOD and getattr(plan, name) != getattr(Plan, name)]
    if refused:
        raise OptionError(f"{', '.join(refused)}: rows in parts don't have that yet; leave it out")
    if not isinstance(plan.folds, int) or plan.folds < 2:
        raise OptionError(f"folds of rows in parts are a number of at least 2, dealt at random, not {plan.folds!r}")
    if plan.rank is not None and not isinstance(plan.rank, int):
        raise OptionError(f"the rank of rows in parts is a number of landmarks, not {plan.rank!r}")


def select_parts(
    parts: Sequence[Any], driver: Driver, plan: Plan, weighted: bool = False, progress: Callable[..., Any] | None = None
) -> Selection:
    """Select on rows in parts.

    Parameters
    ----------
    parts : sequence
        Handles of ``Rows``.
    driver : Driver
    plan : Plan
    weighted : bool
        Whether rows have weights.
    progress : callable, optional

    Returns
    -------
    Selection
        That of the sample, with candidates, errors and model of all rows; there are no held-out outputs of each row.
    """
    check_plan(plan)
    rank = plan.rank if isinstance(plan.rank, int) else RANK
    size = max(LEAST_SAMPLE, SAMPLE * rank)
    merge = partial(merge_drawn, size=size)
    sample: Drawn = driver.reduce(draw, parts, merge, size, plan.seed)
    y = sample.y if sample.y.shape[1] > 1 else sample.y.iloc[:, 0]
    table = sample.table.reset_index(drop=True)
    first = replace(plan, rank=min(rank, len(table)), intervals="none")
    dataset = encode_arrays(table, y.reset_index(drop=True), first, sample.weights)
    if plan.learner == "auto" or not read_learner(plan.learner, dataset.task).loss.square:
        raise OptionError(f"learner {plan.learner!r}: rows in parts are for krr and lssvm, whose fits are made of sums")
    found = carry_out(dataset, first, progress)
    t = int(plan.folds) if isinstance(plan.folds, int) else 0
    coding = Coding(dataset.encoder, dataset.labels, dataset.output_shift, dataset.output_scale, t, plan.seed)
    encoded = driver.each(encode_part, parts, driver.share(Coding, *coding))
    facts: Facts = driver.reduce(find_facts, encoded, merge_facts)
    limits = facts.limits if dataset.task == "regression" and plan.clip else None
    everything = AllRows(driver, encoded, facts, dataset, found.best.learner, LowRank(rank), plan.seed, t, limits)
    leading = list(dict.fromkeys(c.kernel for c in found.candidates if c.compares))[:LEADING]
    scored: list[Scored] = []
    for place, kernel in enumerate(leading):
        if progress is not None:
            progress(place, len(leading), f"all {facts.rows} rows")
        scored += everything.score(kernel, _lambdas(found.candidates, kernel), weighted)
    candidates = [each.candidate for each in scored]
    best = min(scored, key=lambda each: each.candidate.score)
    return _selection(found, candidates, best, facts, limits, dataset.X, t)


class Scored(NamedTuple):
    """A candidate that is scored on all rows, with the sums and features of its fit.

    Parameters
    ----------
    candidate : Candidate
    kept : SufficientStatistics
    features : Features
    """

    candidate: Candidate
    kept: SufficientStatistics
    features: Features


@dataclass(frozen=True)
class AllRows:
    """All rows in their parts, and what candidates are scored by there.

    Parameters
    ----------
    driver : Driver
    encoded : sequence
        Handles of the encoded parts.
    facts : Facts
    sample : Dataset
        Among whose rows the landmarks are.
    learner : Learner
        Of the square loss.
    rank : LowRank
    seed, folds : int
    limits : (2, k) array or None
        Within which outputs are kept.
    """

    driver: Driver
    encoded: Sequence[Any]
    facts: Facts
    sample: Dataset
    learner: Any
    rank: LowRank
    seed: int
    folds: int
    limits: Array | None

    def score(self, kernel: Kernel, lams: Array, weighted: bool) -> list[Scored]:
        """Score a kernel with values of lambda by exact refits without each fold, in two passes over the rows."""
        driver, bias = self.driver, bool(self.learner.bias)
        rows = self.sample.X[: SAMPLE * self.rank.largest]
        _, points, T, _ = self.rank.factor(kernel, rows, self.seed)
        shared = driver.share(Features, kernel, points, T, rows)
        sums: Sums = driver.reduce(sum_part, self.encoded, Sums.merge, shared)
        features = Features(kernel, points, T, rows)
        finish(features, sums)
        whole = sums.of(np.ones(self.folds, np.bool_))
        w, failed = _without_folds(sums, whole, lams, bias)
        r = features.rank
        b = w[..., r] if w.shape[-1] > r else np.zeros(w.shape[:-1])
        given = driver.share(_same, w[..., :r]), b, self.limits, self.sample.labels is not None
        losses: FoldLosses = driver.reduce(hold_out_part, self.encoded, merge_losses, shared, *given)
        scored = []
        for k, lam in enumerate(lams.tolist()):
            mean, deviation = losses.spread(k)
            candidate = self._candidate(kernel, lam, losses, k, bool(failed[k]))
            held = self.facts.rows
            kept = SufficientStatistics(
                T=T, sums=whole, bias=bias, lam=lam, loss=mean, deviation=deviation, held=held, weighted=weighted
            )
            scored.append(Scored(candidate, kept, features))
        return scored

    def _candidate(self, kernel: Kernel, lam: float, losses: FoldLosses, k: int, failed: bool) -> Candidate:
        """Return the k-th value of lambda as a candidate."""
        mean, deviation = losses.spread(k)
        if failed or not np.isfinite(mean):
            why = "the ridge is below rounding"
            return Candidate(kernel, lam, learner=self.learner, score=np.inf, loss=np.inf, exact=True, failed=why)
        by_fold, error = losses.error[:, k] / losses.weight, float(losses.error[:, k].sum() / losses.weight.sum())
        if self.sample.labels is None:
            unit = float(self.sample.output_scale[0]) if self.sample.k == 1 else 1.0
            by_fold, error = unit * np.sqrt(by_fold), unit * float(np.sqrt(error))
        return Candidate(
            kernel,
            lam,
            learner=self.learner,
            score=mean,
            loss=mean,
            error=error,
            error_se=float(by_fold.std(ddof=1) / np.sqrt(self.folds)),
            exact=True,
            verified=mean,
            score_se=deviation / np.sqrt(self.facts.rows),
        )


def _same(value: Any) -> Any:
    return value


def _lambdas(candidates: Sequence[Candidate], kernel: Any) -> Array:
    """Return the lambda to look at for a kernel, descending: those of the sample, and smaller ones."""
    own = [c for c in candidates if c.kernel == kernel and c.compares]
    best = min(own, key=lambda c: c.value)
    return np.array(sorted({*(c.lam for c in own), *(best.lam * factor for factor in SMALLER)}, reverse=True))


def _without_folds(sums: Sums, whole: Sums, lams: Array, bias: bool) -> tuple[Array, NDArray[np.bool_]]:
    """Return the weights (t, k, L, R) of the fits without each fold, and which lambda failed, (L,)."""
    found, failed = [], np.zeros(lams.size, np.bool_)
    with one_blas_thread():
        for fold in range(len(sums.products)):
            kept = whole.without(sums.part(fold))
            w, status = streaming.solve(*kept.finish(bias), int(bias), kept.total * lams)
            found.append(w)
            failed |= status != 0
    return np.stack(found), failed


def _selection(
    found: Selection,
    candidates: list[Candidate],
    chosen: Scored,
    facts: Facts,
    limits: Array | None,
    X: Points,
    t: int,
) -> Selection:
    """Return the selection on the sample with what was found on all rows in its place."""
    best, kept, features = chosen
    fit = kept.expansion()
    model = replace(
        found.model,
        kernel=best.kernel,
        rows=features.points,
        coefficients=np.ascontiguousarray(fit.coefficients),
        bias=fit.bias,
        limits=limits,
        calibration=None,
        sufficient=kept,
        reach=reach(best.kernel, X, features.points, None),
        provenance={**found.model.provenance, "lambda": best.lam, "rows": facts.rows},
    )
    note = f"rows in parts: encoding and kernels are of a random sample of {found.data['rows']} of {facts.rows} rows"
    data = {
        **found.data,
        "rows": facts.rows,
        "weight": facts.weight,
        "folds": t,
        "holdout": f"{t} folds, dealt at random",
        "representation": f"rank {features.rank} of n = {facts.rows} in parts",
        "rank": features.rank,
        "choice": "lowest mean held-out loss of exact refits on all rows",
        "baseline": None,
        "notes": [*found.data["notes"], note],
    }
    candidates = sorted(candidates, key=lambda each: each.score)
    empty = np.zeros(0)
    return replace(
        found, best=best, candidates=candidates, minimum=best, model=model, heldout=empty, outputs=empty,
        probabilities=None, data=data, conversions=best.conversions(facts.weight), procedure=None,
    )  # fmt: skip
