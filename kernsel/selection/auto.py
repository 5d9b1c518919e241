"""The right kernel: profiles of a distance, with one width for all features or a relevance for each.

Relevances are learnt by the evidence of the square loss, with a log-normal prior that keeps them from over-fitting, on
up to a thousand rows; of the leading profiles also with ranks of features beside their values. The best of them are one
kernel together: their sum, whose weights the evidence learns, too. Kernels of logarithms join the sum, and relevances
of all of them are learnt again with the weights, each where that is better on rows that had no part in it. Times a few
common factors it stands beside kernels of one width in one search: the learner in use, the criterion, verification and
the rule of choice decide between them as between any others. That is fair with the prior. The error that is reported is
not of that search: relevances and weights are learnt anew without each fold, whose rows are then predicted.

A metric that turns axes is learnt, too. Leave-one-out over-rates it: it stands for choice only if it is the better one
on rows that had no part in learning, twice: on a part of the rows, and where it is learnt anew without each fold.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from kernsel.data import Dataset
from kernsel.errors import OptionError, SelectionError
from kernsel.folds.partition import Partition
from kernsel.journal import remember
from kernsel.kernels import Kernel, Statistics, parse, short
from kernsel.kernels.base import Combined, names_of
from kernsel.learners import Krr, Lssvm
from kernsel.learning.better import LOWER, Learning, learn_if_better
from kernsel.learning.metric import LearntMetric, turned
from kernsel.learning.profile import LearntProfile, Priors, learn_profile
from kernsel.learning.quasinewton import Descent
from kernsel.learning.start import deal_rows, subsample
from kernsel.learning.summed import LearntSum, learn_sum, learn_wider, linear_kernel
from kernsel.learning.together import LearntTogether, learn_together
from kernsel.numerics.points import is_sparse
from kernsel.numerics.runtime.once import once
from kernsel.numerics.runtime.threads import share_each
from kernsel.parts import has_square_loss
from kernsel.paths import make_path
from kernsel.protocols import Learner
from kernsel.protocols.kernels import SupportsViews
from kernsel.representation.problem import Problem
from kernsel.search.scales import Family
from kernsel.types import Array

Job: TypeAlias = tuple[Any, float | None, Descent | None]
"""A kernel with relevances to be learnt, their prior, and where the descent begins, if it has begun."""

EFFORTS = ("quick", "normal", "thorough")

WIDTHS = {
    "quick": ("gaussian", "laplacian", "exponential"),
    "normal": ("gaussian", "laplacian", "exponential"),
    "thorough": ("gaussian", "laplacian", "exponential", "matern32", "matern52", "rational-quadratic"),
}
"""Kernels with one width that are compared. The rough ones are the best on most tables, and the smooth ones where the
target is smooth; what lies between them is left to the relevances."""

PROFILES: Mapping[str, tuple[str, ...]] = {
    "quick": (),
    "normal": ("ard(profile=exponential)", "ard-laplacian", "ard(profile=matern32)", "ard"),
    "thorough": ("ard(profile=exponential)", "ard-laplacian", "ard(profile=matern32)", "ard(profile=matern52)", "ard"),
}
"""Kernels whose relevances are learnt: of classes with effort "thorough" only, as they lower the square loss there far
more often than the error."""

ROWS = {"quick": 0, "normal": 1000, "thorough": 2000}
"""Rows that relevances are learnt on at the most: an evaluation of the evidence is O(n^3)."""

PRIORS: Mapping[str, tuple[float | None, ...]] = {"classification": (0.5,), "regression": (1.0, 2.0)}
"""Standard deviations of log relevances under their prior. The first one is tried with every profile; where relevances
differ by powers of ten and rows are many, a tight prior costs, so that a regression tries a wider one with the best."""

METRICS = {
    "quick": (),
    "normal": ("gaussian", "matern32"),
    "thorough": ("gaussian", "matern52", "matern32", "exponential"),
}
"""Profiles of a metric that turns axes."""

TURNED = {"quick": 0, "normal": 300, "thorough": 600}
"""Rows on which it is found out, with the others, whether such a metric is of use."""

TURNED_FEATURES, TURNED_ROWS, ROWS_EACH = 100, 100, 5
"""A metric is learnt of at most so many features, of at least so many rows, and so many for each feature."""

WIDER: Mapping[str, float | None] = {"classification": 1.0, "regression": None}
"""The prior of relevances that are learnt again on more rows, besides the one that they had."""

FIRST, LEADERS, KEPT = 350, 2, 3
"""Rows that every profile is learnt on; profiles that go on to wider priors and to ranks; profiles that go on to all
rows and to their sum."""

BLOCKS = 3
"""Rows are held out in so many blocks to find out whether relevances of a sum are to be learnt together."""

FACTORS = {True: 2.0 ** np.arange(-1.0, 2.0), False: 2.0 ** np.arange(-2.0, 3.0)}
"""Factors of all relevances together, for the square loss and any other one: that may want a wider kernel."""

FEATURES, FEWEST = 300, 30
"""Relevances are learnt of at most so many features, and of at least so many rows."""


@dataclass(frozen=True, eq=False)
class Learnt:
    """A kernel with learnt relevances or a learnt metric, as a candidate.

    Parameters
    ----------
    factor : float
        Of all its relevances.
    loss : float
        Mean leave-one-out loss on the rows it was learnt on.
    rows : int or None
        How many it was learnt on, if those are others than the rest was learnt on.
    """

    profile: LearntProfile | LearntSum | LearntMetric
    factor: float
    loss: float
    rows: int | None = None

    @once
    def kernel(self) -> Kernel:
        """The kernel with its relevances times the factor."""
        found: Kernel = self.profile.kernel.times(self.factor)
        return found

    @property
    def theta(self) -> tuple[float, ...]:
        """Its relevances."""
        return tuple(self.factor * theta for theta in self.profile.theta)

    @property
    def is_sum(self) -> bool:
        """Whether it is a sum of kernels, whose relevances are said as shares."""
        return isinstance(self.profile, LearntSum)

    def relevances(self, features: Sequence[str]) -> dict[str, float]:
        """Return the relevances by their names, by the names of the features (d,).

        Of a sum of kernels, whose relevances have different units: shares of the largest one of each, averaged by
        weight.
        """
        if isinstance(self.profile, LearntSum):
            return self.profile.shares(features)
        names = features if isinstance(self.profile, LearntMetric) else names_of(self.kernel, features)
        return dict(zip(names, self.theta, strict=True))

    @property
    def freedom(self) -> int:
        """1 with relevances, 2 with a metric: what is learnt with more freedom is the more over-rated."""
        return 2 if isinstance(self.profile, LearntMetric) else 1


@dataclass(frozen=True, eq=False)
class Candidates:
    """The kernels that a selection chooses from.

    Parameters
    ----------
    widths : list of Kernel
        With one width, to be searched.
    families : list of Family
        With a relevance for each feature, at several common factors.
    learnt : list of Learnt
        The kernels of the families.
    parts : list of Learnt
        What they were made of, the lowest leave-one-out loss first.
    rows : int
        How many rows relevances were learnt on.
    notes : list of str
        Why none were learnt, or not all.
    seconds : float
        What learning took.
    """

    widths: list[Kernel]
    families: list[Family]
    learnt: list[Learnt]
    parts: list[Learnt]
    rows: int
    notes: list[str]
    seconds: float

    @property
    def kernels(self) -> list[Kernel | Family]:
        """All of them."""
        return [*self.widths, *self.families]

    def find(self, kernel: Kernel) -> Learnt | None:
        """Return what a kernel was learnt as; None for one of one width."""
        return next((each for each in self.learnt if each.kernel == kernel), None)


def read_effort(effort: str) -> str:
    """Return the effort; OptionError if it is none."""
    if effort not in EFFORTS:
        raise OptionError(f"effort {effort!r} is unknown: use {', '.join(EFFORTS)}")
    return effort


def profiles_of(effort: str, task: str) -> tuple[str, ...]:
    """Return the kernels whose relevances are learnt for a task."""
    return PROFILES[effort] if task == "regression" or effort == "thorough" else ()


def candidates(
    dataset: Dataset, learner: Learner, effort: str, priors: Sequence[float | None], seed: int
) -> Candidates:
    """Return the kernels to choose from, with relevances that are learnt here.

    Parameters
    ----------
    learner : Learner
        That the kernels are for.
    effort : {"quick", "normal", "thorough"}
    priors : sequence of float or None
        Standard deviations of log relevances under their prior.
    """
    started = time.perf_counter()
    widths, profiles = [parse(text) for text in WIDTHS[effort]], profiles_of(effort, dataset.task)
    least, groups = min(dataset.n, ROWS[effort]), dataset.encoder.groups
    reason = _why_none(dataset, least) if profiles else None
    if reason != "":
        notes = [] if reason is None else [f"kernel: no relevance for each feature, for {reason}"]
        return Candidates(widths, [], [], [], 0, notes, time.perf_counter() - started)
    some = subsample(dataset, least, seed)
    rows = _alone(some, seed)
    square = square_loss(dataset.task)
    few = rows if rows.n <= 1.5 * FIRST else _alone(subsample(some, FIRST, seed), seed)
    found, notes = _learn(few, rows, square, [(parse(text).tied(groups), priors[0], None) for text in profiles], seed)
    leading = sorted(found, key=lambda each: each.loss)[:LEADERS]
    more, failed = _learn(few, rows, square, _further(leading, rows.X, priors), seed)
    best = best_of_each_profile([*found, *more])[:KEPT]
    logged = _logged(best, few, rows, dataset.encoder.zeros, square, seed) if dataset.task == "regression" else []
    if few is not rows:
        ends = [each.profile for each in best if isinstance(each.profile, LearntProfile)]
        best, _ = _learn(rows, rows, square, [(end.kernel, end.sigma, end.descent) for end in ends], seed)
    best.sort(key=lambda each: each.loss)
    chosen, unsummed = _together(best, rows, square, seed)
    if dataset.task == "regression":
        chosen = [_relearnt(each, logged, some, rows, square, seed) for each in chosen]
    parts = _parts(best, chosen, rows, square)
    if best and METRICS[effort]:
        chosen += learn_turned(rows, best[0], square, effort, seed)
    same = has_square_loss(learner)
    families, learnt = [], []
    for each in chosen:
        scales = [replace(each, factor=float(factor)) for factor in FACTORS[same]]
        lam = each.profile.ridge / dataset.total if same else None
        families.append(Family(tuple(scale.kernel for scale in scales), lam))
        learnt += scales
    notes = [*notes, *failed, *unsummed]
    return Candidates(widths, families, learnt, parts, rows.n, notes, time.perf_counter() - started)


def _further(leading: Sequence[Learnt], X: Array, priors: Sequence[float | None]) -> list[Job]:
    """Return what else is learnt of the leading profiles: with wider priors, and, with the widest one, with ranks."""
    wider = [(lead.profile.kernel, sigma, None) for lead in leading for sigma in priors[1:]]
    able = [lead.profile.kernel for lead in leading if isinstance(lead.profile.kernel, SupportsViews)]
    ranked = [(kernel.with_ranks(X), priors[-1], None) for kernel in able]
    return [*wider, *(job for job in ranked if job[0].views)]


def _together(best: Sequence[Learnt], rows: Partition, learner: Learner, seed: int) -> tuple[list[Learnt], list[str]]:
    """Return the sum of the kernels and the linear one, weights learnt; if they can't be, the kernels, and why not."""
    profiles = [each.profile for each in best if isinstance(each.profile, LearntProfile)]
    if not profiles:
        return list(best), []
    try:
        found = learn_sum(rows, profiles, learner, linear_kernel(rows), seed=seed)
    except SelectionError as error:
        return list(best), [f"kernel: weights of a sum of kernels can't be learnt ({error})"]
    return [Learnt(_as_one(found), 1.0, math.nan)], []


def _why_none(dataset: Dataset, rows: int) -> str:
    """Return why there is no relevance for each feature, learnt on so many rows; nothing if there is."""
    count = len(dataset.encoder.groups) or dataset.d
    return (
        "there is one feature only"
        if count == 1
        else f"there are more than {FEATURES} features"
        if count > FEATURES
        else "the rows are sparse"
        if is_sparse(dataset.X)
        else f"there are fewer than {FEWEST} rows"
        if rows < FEWEST
        else ""
    )


def _logged(
    best: Sequence[Learnt], few: Partition, rows: Partition, zeros: Array, learner: Learner, seed: int
) -> list[LearntProfile]:
    """Return the best profiles with logarithms beside values, if those of the very best lower its leave-one-out loss.

    These are learnt on a few rows, as the profiles were, from their relevances. Of 222 draws of 74 tables of up to 1000
    rows 13 are tried on unseen rows and 9 of them taken, whose test error is .87 of what it was and at the most 1.013;
    taken everywhere it would be up to 1.11.
    """
    jobs: list[Job] = []
    for profile in (each.profile for each in best):
        if isinstance(profile, LearntProfile) and isinstance(profile.kernel, SupportsViews):
            beside = profile.kernel.with_logs(rows.X, zeros)
            if len(beside.views) > len(profile.kernel.views):
                jobs.append((beside, profile.sigma, None))
    first, _ = _learn(few, rows, learner, jobs[:1], seed)
    if not first or not first[0].loss < LOWER * best[0].loss:
        return []
    others, _ = _learn(few, rows, learner, jobs[1:], seed)
    return [each.profile for each in (*first, *others) if isinstance(each.profile, LearntProfile)]


def _relearnt(
    each: Learnt, logged: Sequence[LearntProfile], dataset: Dataset, rows: Partition, learner: Learner, seed: int
) -> Learnt:
    """Return a sum with kernels of logarithms, and with relevances learnt with its weights, each where it is better.

    That is on unseen rows. These are dealt as for cross-validation, groups and copies of a row in one block.
    """
    learnt = each.profile
    if isinstance(learnt, LearntMetric) or (isinstance(learnt, LearntProfile) and not logged):
        return each
    try:
        dealt = deal_rows(dataset, BLOCKS, seed)
    except OptionError:  # there are too few groups to find out
        return each
    blocks = [dealt.order[lo:hi] for lo, hi in pairwise(dealt.starts)]

    def better(begun: LearntSum, stage: str, learn: Learning, *more: object) -> LearntSum:
        given = rows, begun, learner, blocks, seed, *more
        return remember(stage, given, lambda: learn_if_better(rows, begun, learner, blocks, learn, seed))

    found = begun = learnt if isinstance(learnt, LearntSum) else LearntSum((learnt,), (1.0,), learnt.ridge)
    if logged:
        found = better(found, "logs", partial(learn_wider, logged), logged)
    if isinstance(_as_one(found), LearntSum):
        found = better(found, "together", learn_together)
    return each if found is begun else Learnt(_as_one(found), 1.0, math.nan)


def _as_one(found: LearntSum) -> LearntSum | LearntProfile:
    """Return a sum, or the kernel that has all of the weight in it."""
    return found.profiles[0] if len(found.profiles) == 1 and found.linear is None else found


def _parts(best: Sequence[Learnt], chosen: Sequence[Learnt], rows: Partition, learner: Learner) -> list[Learnt]:
    """Return the profiles, and those that were put into the sum of them since, the lowest leave-one-out loss first."""
    known = {each.profile.kernel for each in best}
    used: list[LearntProfile | LearntMetric] = []
    for each in chosen:
        learnt = each.profile.apart if isinstance(each.profile, LearntTogether) else each.profile
        used += learnt.profiles if isinstance(learnt, LearntSum) else (learnt,)

    def loss(profile: LearntProfile) -> float:
        try:
            return _loss(rows, profile, learner)
        except SelectionError:
            return math.inf  # it has a fit in the sum, and none by itself

    new = [each for each in used if isinstance(each, LearntProfile) and each.kernel not in known]
    return sorted([*best, *(Learnt(each, 1.0, loss(each)) for each in new)], key=lambda each: each.loss)


def best_of_each_profile(learnt: Sequence[Learnt]) -> list[Learnt]:
    """Return the best of each profile by its loss, whatever its prior and with ranks or without, the best one first."""
    best: dict[str, Learnt] = {}
    for each in sorted(learnt, key=lambda each: each.loss):
        best.setdefault(kind_of(each.kernel, views=False), each)
    return list(best.values())


def relearnt(dataset: Dataset, learnt: Learnt, seed: int) -> list[Learnt]:
    """Learn relevances again on all rows of a data set, with the prior that they had, and with a wider one.

    On more rows the prior counts less, and relevances that differ by powers of ten are found. What came out before is
    where this begins. The kernels of a sum are learnt with the wider one alone: it takes as long for each of them.
    """
    begun = learnt.profile
    if isinstance(begun, LearntMetric):
        return [learnt]
    rows, square = _alone(dataset, seed), square_loss(dataset.task)

    def one(priors: Priors) -> Learnt | None:
        try:
            profile = begun.again(rows, square, priors, seed)
        except SelectionError:
            return None
        return Learnt(profile, 1.0, math.nan, rows.n)

    def kept(priors: Priors) -> Learnt | None:
        return remember("relearnt", (rows, begun, square, priors, seed), lambda: one(priors))

    wider = (WIDER[dataset.task],) * len(begun.priors)
    tried = [wider] if learnt.is_sum else list(dict.fromkeys((begun.priors, wider)))
    return [each for each in share_each(kept, tried) if each is not None]


def _alone(dataset: Dataset, seed: int) -> Partition:
    """Return the rows of a data set, each in a fold of its own."""
    X, n = dataset.X, dataset.n
    return Partition(X, dataset.Y, np.arange(n + 1), np.arange(n), Statistics(X), seed, dataset.weights)


def _learn(
    few: Partition,
    rows: Partition,
    learner: Learner,
    what: Sequence[Job],
    seed: int,
) -> tuple[list[Learnt], list[str]]:
    """Learn relevances of kernels, each with a prior, on a few rows, and score them by leave-one-out on all.

    A descent may have begun on fewer rows yet. Returns kernels and what could not be learnt.
    """

    def one(job: Job) -> Learnt | str:
        kernel, sigma, begun = job
        try:
            profile = learn_profile(few, kernel, learner, sigma, seed=seed, begun=begun)
            return Learnt(profile, 1.0, _loss(rows, profile, learner))
        except SelectionError as error:
            return f"kernel: relevances of {short(kernel)} can't be learnt ({error})"

    def kept(job: Job) -> Learnt | str:
        return remember("learnt", (few, rows, learner, seed, *job), lambda: one(job))

    found, failed = [], []
    for each in share_each(kept, what):
        if isinstance(each, Learnt):
            found.append(each)
        else:
            failed.append(each)
    return found, failed


def _loss(rows: Partition, profile: LearntProfile, learner: Learner) -> float:
    """Return the mean leave-one-out loss with a profile; SelectionError without a fit."""
    path = make_path(Problem(rows, profile.kernel, None), learner, [profile.ridge / rows.total])
    held = path.exact()
    if held.failed[0] is not None:
        raise SelectionError(held.failed[0])
    return float(rows.mean(learner.loss.value(rows.Y, held.f[:, 0]).mean(axis=0)))


def learn_turned(rows: Partition, best: Learnt, learner: Learner, effort: str, seed: int) -> list[Learnt]:
    """Return a metric that turns axes if it is better than the best relevances on rows it wasn't learnt on."""
    d, classes = rows.X.shape[1], isinstance(learner, Lssvm)
    if d > TURNED_FEATURES or rows.n < max(TURNED_ROWS, ROWS_EACH * d):
        return []
    given = rows, best.profile.kernel, learner, METRICS[effort], TURNED[effort], seed, classes
    try:
        found = remember("turned", given, lambda: turned(*given))
    except SelectionError:
        return []  # without a fit, as where the target is constant, there is nothing to turn
    return [] if found is None else [Learnt(found, 1.0, found.loss)]


def square_loss(task: str) -> Lssvm | Krr:
    """Return the learner of the square loss that relevances are learnt with."""
    return Lssvm() if task == "classification" else Krr()


def kind_of(kernel: Kernel, views: bool = True) -> str:
    """Return the name of a kernel with its profile, if it has one, and with ``views`` what it sees beside values.

    Those of a sum have "+" between.
    """
    if isinstance(kernel, Combined):
        return " + ".join(dict.fromkeys(kind_of(part, views) for part in kernel.parts))
    profile = kernel.parameters.get("profile")
    name = kernel.name if profile is None else f"{kernel.name}(profile={profile})"
    told = kernel.views_told if views and isinstance(kernel, SupportsViews) else ""
    return f"{name} with {told}" if told else name
