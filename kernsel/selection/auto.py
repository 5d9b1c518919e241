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

import numpy as np

from kernsel.data import Dataset
from kernsel.errors import OptionError, SelectionError
from kernsel.folds.partition import Partition
from kernsel.journal import remember
from kernsel.kernels import Kernel, parse
from kernsel.learners import Lssvm
from kernsel.learning.metric import LearntMetric, turned
from kernsel.learning.profile import LearntProfile, Priors
from kernsel.learning.start import subsample
from kernsel.numerics.points import is_sparse
from kernsel.numerics.runtime.threads import share_each
from kernsel.parts import has_square_loss
from kernsel.protocols import Learner
from kernsel.protocols.kernels import SupportsViews
from kernsel.search.scales import Family
from kernsel.selection.learnt import Job, Learnt, alone, best_of_each_profile, learn_each, square_loss
from kernsel.selection.sums import improved, parts_of, sum_of, with_logs
from kernsel.types import Array

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

FACTORS = {True: 2.0 ** np.arange(-1.0, 2.0), False: 2.0 ** np.arange(-2.0, 3.0)}
"""Factors of all relevances together, for the square loss and any other one: that may want a wider kernel."""

FEATURES, FEWEST = 300, 30
"""Relevances are learnt of at most so many features, and of at least so many rows."""


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
    rows = alone(some, seed)
    square = square_loss(dataset.task)
    few = rows if rows.n <= 1.5 * FIRST else alone(subsample(some, FIRST, seed), seed)
    found, notes = learn_each(
        few, rows, square, [(parse(text).tied(groups), priors[0], None) for text in profiles], seed
    )
    leading = sorted(found, key=lambda each: each.loss)[:LEADERS]
    more, failed = learn_each(few, rows, square, _further(leading, rows.X, priors), seed)
    best = best_of_each_profile([*found, *more])[:KEPT]
    logged = with_logs(best, few, rows, dataset.encoder.zeros, square, seed) if dataset.task == "regression" else []
    if few is not rows:
        ends = [each.profile for each in best if isinstance(each.profile, LearntProfile)]
        best, _ = learn_each(rows, rows, square, [(end.kernel, end.sigma, end.descent) for end in ends], seed)
    best.sort(key=lambda each: each.loss)
    chosen, unsummed = sum_of(best, rows, square, seed)
    if dataset.task == "regression":
        chosen = [improved(each, logged, some, rows, square, seed) for each in chosen]
    parts = parts_of(best, chosen, rows, square)
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


def relearnt(dataset: Dataset, learnt: Learnt, seed: int) -> list[Learnt]:
    """Learn relevances again on all rows of a data set, with the prior that they had, and with a wider one.

    On more rows the prior counts less, and relevances that differ by powers of ten are found. What came out before is
    where this begins. The kernels of a sum are learnt with the wider one alone: it takes as long for each of them.
    """
    begun = learnt.profile
    if isinstance(begun, LearntMetric):
        return [learnt]
    rows, square = alone(dataset, seed), square_loss(dataset.task)

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
