"""A selection of the square loss at a low rank on rows that are never in one place.

A random sample of the rows comes here, and an ordinary selection on it gives the encoding of columns, the units of the
target, and the kernels that lead. For each of these, landmarks are chosen among the sample; one pass over the parts of
all rows sums up the products of features by fold, and a second one the held-out losses of every lambda. So what is
chosen is chosen by exact held-out losses of all rows, and nothing but the sample, landmarks and sums travels. The
model, too, is made of the sums, and keeps them: see ``kernsel.model.sufficient``.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernsel.criteria import CV
from kernsel.data import Dataset
from kernsel.data.encoding import Encoder
from kernsel.data.more import encode_more
from kernsel.data.target import chosen_classes, class_codes
from kernsel.errors import OptionError, SelectionError, SelectionWarning
from kernsel.heldout.errors import Errors
from kernsel.heldout.standard_error import MeanSums, are_counts
from kernsel.journal import journaling, remember, run_header
from kernsel.journal.encoding import fingerprint
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
from kernsel.search.choice import Rule, choose
from kernsel.selection.again import with_origin
from kernsel.selection.carry_out import carry_out, encode_arrays
from kernsel.selection.document import describe_choice, timing
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
    *("choose", "within", "one_se", "clip"),
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
    """What is to be known of encoded rows before anything is fitted to them.

    Parameters
    ----------
    rows : int
    weight : float
    limits : (2, k) array
        Least and largest target.
    counts : bool
        Whether all weights are whole numbers.
    digest : str
        Of all values: other rows have another one.
    """

    rows: int
    weight: float
    limits: Array
    counts: bool
    digest: str


class HeldOutSums(NamedTuple):
    """Sums over rows of their losses and errors by the fits without their fold, and the largest ``k(x, x)``.

    Parameters
    ----------
    loss, error : MeanSums
        Of L values of lambda.
    kappa : float
    """

    loss: MeanSums
    error: MeanSums
    kappa: float

    def merge(self, other: HeldOutSums) -> HeldOutSums:
        """Return the sums of these rows and others."""
        return HeldOutSums(self.loss.merge(other.loss), self.error.merge(other.error), max(self.kappa, other.kappa))


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
    limits = np.stack([part.Y.min(axis=1), part.Y.max(axis=1)])
    return Facts(part.Y.shape[1], float(part.s.sum()), limits, are_counts(part.s), fingerprint(part))


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
    )


def sum_part(part: Encoded, features: Features) -> Sums:
    """Return the sums of a part by fold, before they are finished."""
    return segment_sums(features, part.X, part.Y, part.s, part.starts, finished=False)


def hold_out_part(
    part: Encoded,
    features: Features,
    kernel: Kernel,
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
    loss = ((f - part.Y[:, None]) ** 2).mean(axis=0)
    error = loss
    if errors.classes:
        chosen = np.stack([chosen_classes(np.ascontiguousarray(f[:, k])) for k in range(f.shape[1])])
        error = (chosen != class_codes(part.Y)).astype(np.float64)
    losses, wrong = (MeanSums.of(each, part.starts, part.s, counts) for each in (loss, error))
    return HeldOutSums(losses, wrong, float(kernel.diag(part.X).max()))


def check_plan(plan: Plan) -> None:
    """Refuse options that rows in parts don't have."""
    refused = [name for name in WORDS if name not in UNDERSTOOD and getattr(plan, name) != getattr(Plan, name)]
    if refused:
        raise OptionError(f"{', '.join(refused)}: rows in parts don't have that yet; leave it out")
    if not isinstance(plan.folds, int) or plan.folds < 2:
        raise OptionError(f"folds of rows in parts are a number of at least 2, dealt at random, not {plan.folds!r}")
    if plan.rank is not None and not isinstance(plan.rank, int):
        raise OptionError(f"the rank of rows in parts is a number of landmarks, not {plan.rank!r}")


@one_blas_thread()  # the last digit would depend on their number
def select_parts(
    parts: Sequence[Any],
    driver: Driver,
    plan: Plan,
    weighted: bool = False,
    progress: Callable[..., Any] | None = None,
    begin: Callable[[Dataset], object] | None = None,
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
    begin : callable, optional
        Called with the sample before anything is searched.

    Returns
    -------
    Selection
        That of the sample, with candidates, errors and model of all rows; there are no held-out outputs of each row.
    """
    check_plan(plan)
    started = time.perf_counter()
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
    rule = Rule.read(plan.choose, plan.within, plan.one_se, dataset.task, CV())
    if begin is not None:
        begin(dataset)
    header = partial(run_header, "select", dataset, plan.options)
    with journaling(plan.journal, header):
        found = carry_out(dataset, first, progress)
        searched = time.perf_counter()
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
        verified = time.perf_counter()
        result = with_origin(_selection(found, scored, rule, everything), facts.digest, plan)
        times = timing([started, searched, verified])
        total = times["total"] + found.timing.get("before", 0.0)
        return replace(result, timing={**found.timing, **times, "total": total})


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


class Passed(NamedTuple):
    """What passes over all rows leave of a kernel with L values of lambda.

    Parameters
    ----------
    whole : Sums
        Over all rows.
    held : HeldOutSums
    failed : (L,) array
        Which fits without a fold there are none of.
    """

    whole: Sums
    held: HeldOutSums
    failed: NDArray[np.bool_]


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
        bias = bool(self.learner.bias)
        rows = self.sample.X[: SAMPLE * self.rank.largest]
        _, points, T, _ = self.rank.factor(kernel, rows, self.seed)
        features = Features(kernel, points, T, rows)
        given = kernel, points, T, lams, self.seed, self.folds, self.limits, self.facts, bias
        known = remember("scored on all rows", given, lambda: self._pass_twice(kernel, features, lams))
        w, status = streaming.solve(*known.whole.finish(bias), int(bias), known.whole.total * lams)
        norms = known.held.kappa * (w[..., : features.rank] ** 2).sum(axis=(0, 2))
        failed = known.failed | (status != 0)
        means, deviations = known.held.loss.mean, known.held.loss.deviation()
        scored = []
        for k, candidate in enumerate(self._candidates(kernel, lams, known.held, failed, norms)):
            kept = SufficientStatistics(
                T=T,
                sums=known.whole,
                bias=bias,
                lam=candidate.lam,
                loss=float(means[k]),
                deviation=float(deviations[k]),
                held=self.facts.rows,
                weighted=weighted,
            )
            scored.append(Scored(candidate, kept, features))
        return scored

    def _pass_twice(self, kernel: Kernel, features: Features, lams: Array) -> Passed:
        """Sum up the products of features, and from these the losses of the fits without each fold."""
        driver, bias, r = self.driver, bool(self.learner.bias), features.rank
        shared = driver.share(_same, features)
        sums: Sums = driver.reduce(sum_part, self.encoded, Sums.merge, shared)
        finish(features, sums)
        whole = sums.of(np.ones(self.folds, np.bool_))
        w, failed = _without_folds(sums, whole, lams, bias)
        b = w[..., r] if w.shape[-1] > r else np.zeros(w.shape[:-1])
        given = driver.share(_same, w[..., :r]), b, self.limits, Errors.of(self.sample), self.facts.counts
        held: HeldOutSums = driver.reduce(hold_out_part, self.encoded, HeldOutSums.merge, shared, kernel, *given)
        return Passed(whole, held, failed)

    def _candidates(
        self, kernel: Kernel, lams: Array, held: HeldOutSums, failed: NDArray[np.bool_], norms: Array
    ) -> list[Candidate]:
        """Return the values of lambda as candidates with exact scores."""
        mean, counts = held.loss.mean, self.facts.counts
        errors, error_ses = Errors.of(self.sample).of_means(held.error.mean, held.error.standard_error(counts))
        score_ses = held.loss.standard_error(counts)
        found = []
        for k, lam in enumerate(lams.tolist()):
            candidate = Candidate(kernel, lam, learner=self.learner, exact=True, failed="the ridge is below rounding")
            if not failed[k] and np.isfinite(mean[k]):
                candidate = replace(
                    candidate,
                    failed=None,
                    score=float(mean[k]),
                    loss=float(mean[k]),
                    verified=float(mean[k]),
                    score_se=float(score_ses[k]),
                    error=float(errors[k]),
                    error_se=float(error_ses[k]),
                    norm=float(norms[k]),
                )
            found.append(candidate)
        return found


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
    for fold in range(len(sums.products)):
        kept = whole.without(sums.part(fold))
        w, status = streaming.solve(*kept.finish(bias), int(bias), kept.total * lams)
        found.append(w)
        failed |= status != 0
    return np.stack(found), failed


def _selection(found: Selection, scored: list[Scored], rule: Rule, rows: AllRows) -> Selection:
    """Return the selection on the sample with what was found on all rows in its place, chosen by the rule."""
    facts, sample = rows.facts, rows.sample
    candidates = sorted((each.candidate for each in scored), key=lambda each: each.order)
    if candidates[0].failed is not None:
        raise SelectionError(f"all {len(candidates)} candidates failed on all rows: {candidates[0].failed}")
    targets = scored[0].kept.sums.targets
    rule = replace(rule, null=float(targets.diagonal()[:-1].mean() / targets[-1, -1]))  # the loss of outputs of 0
    choice = choose(rule, candidates, verify=_same, most=0)
    best, kept, features = next(each for each in scored if each.candidate is choice.best)
    fit = kept.expansion()
    model = replace(
        found.model,
        kernel=best.kernel,
        rows=features.points,
        coefficients=np.ascontiguousarray(fit.coefficients),
        bias=fit.bias,
        limits=rows.limits,
        calibration=None,
        sufficient=kept,
        reach=reach(best.kernel, sample.X, features.points, None),
        provenance={
            **found.model.provenance,
            "lambda": best.lam,
            "rows": facts.rows,
            "error": best.error,
            "error_se": best.error_se,
        },
    )
    note = f"rows in parts: encoding and kernels are of a random sample of {found.data['rows']} of {facts.rows} rows"
    unknown = "error of the whole selection: not known, for losses of rows in parts are summed up where these are"
    notes = [each for each in found.data["notes"] if not each.startswith(unknown.split(":")[0])]
    data = {
        **found.data,
        "rows": facts.rows,
        "weight": facts.weight,
        "folds": rows.folds,
        "holdout": f"{rows.folds} folds, dealt at random",
        "representation": f"rank {features.rank} of n = {facts.rows} in parts",
        "rank": features.rank,
        "choice": describe_choice(rule, choice, CV.name, len(candidates)),
        "tied": choice.tied,
        "baseline": None,
        "notes": [*notes, note, unknown],
    }
    empty = np.zeros(0)
    return replace(
        found,
        best=best,
        candidates=[best, *(each for each in candidates if each is not best)],
        minimum=choice.lowest,
        criterion=CV.name,
        model=model,
        heldout=empty,
        outputs=empty,
        probabilities=None,
        data=data,
        conversions=best.conversions(facts.weight),
        procedure=None,
        comparison=None,
    )
