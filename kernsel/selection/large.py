"""Tens of thousands of rows: choose on few of them in full, climb, and fit the whole kernel to all.

A low rank can't represent a rough or narrow kernel of so many rows, and so never chooses one. But what is right for few
rows is nearly right for more: the shape of the kernel and the ridge ``N lambda`` stay, smooth kernels become narrower.
So the choice goes

1. by the search of every other selection on some of the rows, in full; the best kernel of each kind goes on, and with
   relevances beside it what is learnt anew on all these rows,
2. up nested subsets of twice the rows, each fitted in full and scored on rows outside of them: there the better half
   goes on, the best with half its width, a quarter and four times its ridge if those are better; as long as the last
   doubling gained ``GAIN``, and the work is in the budget,
3. to all rows: by landmarks, where few of them leave so little of the kernel's trace that the fit is that of the whole
   kernel (see ``few_landmarks``); else by one fit of the whole kernel, if that is in the budget, with held-out outputs
   of it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from kernsel import parts as reading
from kernsel.data import Dataset
from kernsel.errors import SelectionError
from kernsel.folds import Folds, make_folds
from kernsel.journal import remember
from kernsel.kernels import Kernel, short
from kernsel.learning.start import subsample
from kernsel.numerics.runtime.threads import one_blas_thread
from kernsel.numerics.whole import costs as whole_costs
from kernsel.numerics.whole.preconditioners import Refused
from kernsel.numerics.whole.solver import Fit, WholeKernel, predict
from kernsel.paths.whole import ENOUGH, dtypes, kernel_matrix
from kernsel.protocols import Learner
from kernsel.search.deadline import Deadline, limited_time
from kernsel.selection.few_landmarks import NEAR, count_needed, is_finite, share_left
from kernsel.selection.kernel_source import KernelSource, kernels_of, with_notes
from kernsel.selection.learnt import kind_of
from kernsel.selection.limits import SIZES, Limits, Sizes, at_least_normal, final_fit, fits_whole
from kernsel.selection.plan import Plan
from kernsel.selection.result import Selection
from kernsel.selection.run import TIME, run
from kernsel.types import Array, Indices, Progress

OUTSIDE, SHARE = 5000, 3
"""Rows that subsets are scored on, at most, and at most one in so many of the others."""

KINDS = 3
"""Kernels that go on from the search: the best of each kind."""

AGAIN = {"normal": 1, "thorough": KINDS}
"""Of how many of those relevances are learnt again on all rows of the search."""

LEAST = 1.2
"""A subset that is less than this many times as large as the one before is none."""

GAIN = 0.01
"""The climb ends where a doubling of the rows lowers the loss by less than this share."""

MOVES = 6
"""Changes of ridge and width that are tried on a subset, at most."""

RAISE, RAISED = 16.0, 4
"""A ridge that is lost in rounding errors is raised by this factor, so often at most."""

TRIED = 3
"""Fits to a subset that a climb is expected to try."""

UNCOUNTED = (
    "errors are those of the fit to all rows; that its kernel and lambda were chosen before, with some of these rows, "
    "isn't counted"
)
"""What every result of this way says of its errors."""


@dataclass(frozen=True)
class ClimbStep:
    """A kernel and a ridge, and its loss on the rows outside of a subset.

    Parameters
    ----------
    ridge : float
        ``N lambda``.
    origin : Kernel
        As it was found by the search on few rows, of another width.
    rows : int
        Of the subset.
    loss : float
        Infinite if there is no fit.
    """

    kernel: Kernel
    ridge: float
    origin: Kernel
    rows: int = 0
    loss: float = np.inf
    losses: Array | None = field(default=None, repr=False, compare=False)
    """Of each row, times its weight as a share of the mean one."""

    def is_better(self, other: ClimbStep) -> bool:
        """Tell whether the loss is lower by more than the standard error of the difference."""
        if self.losses is None or other.losses is None:
            return self.loss < other.loss
        gained = other.losses - self.losses
        return bool(gained.mean() > gained.std(ddof=1) / np.sqrt(gained.size))


@one_blas_thread()
def select_large(
    dataset: Dataset, plan: Plan, progress: Progress | None = None, sizes: Sizes = SIZES
) -> Selection | None:
    """Select on few rows, climb, and fit the whole kernel; None where that is not the way for what was found."""
    started = time.perf_counter()
    plan, seed = replace(plan, effort=at_least_normal(plan.effort)), int(plan.seed)
    few = subsample(dataset, sizes.few, seed)
    can_be_whole = fits_whole(dataset, plan)
    with limited_time(_before_the_last_fit(dataset, plan)):
        source = kernels_of(few, plan)
        first = run(few, replace(plan, rank=None, metric=(), select_by=None), source.kernels, progress=progress)
        leading = _leading(first, few)[0]
        if plan.rank is None and is_finite(leading.kernel, few.X, sizes.finite):
            return None
        if not can_be_whole and count_needed(leading.kernel, dataset, leading.ridge, seed) is None:
            return None
        chosen = _choose(dataset, few, first, source, plan, sizes, progress)
    source, best = chosen.source, chosen.best
    moved = source.moved(dataset, best.origin, best.kernel, first.candidates)
    found = _by_landmarks(dataset, plan, best, moved, progress) if plan.rank is None else None
    if found is None and can_be_whole:
        found = _as_a_whole(dataset, plan, best, moved, progress)
    if found is None:
        return None
    result, ended = found
    climb = [
        {"rows": s.rows, "kernel": s.kernel.spec(), "ridge": s.ridge, "loss": s.loss, "gain": gain}
        for s, gain in zip(chosen.steps, _gains(chosen.steps), strict=True)
    ]
    seconds = time.perf_counter() - started - result.timing["total"] - source.seconds  # which the source itself tells
    notes = [*_cut_off(first), chosen.text, *ended, UNCOUNTED]
    return moved.describe(with_notes(result, seconds, notes, climb=climb))


def _by_landmarks(
    dataset: Dataset, plan: Plan, best: ClimbStep, source: KernelSource, progress: Progress | None
) -> tuple[Selection, list[str]] | None:
    """Fit to all rows by landmarks; None where they don't stand for the whole kernel."""
    needed = count_needed(best.kernel, dataset, best.ridge, int(plan.seed))
    if needed is None:
        return None
    if progress is not None:
        progress(0, 1, f"{dataset.n} rows by {needed} landmarks: {short(best.kernel)}")
    wanted = replace(plan, rank=needed, grid={"lambda": [best.ridge / dataset.total]})
    try:
        result = run(dataset, wanted, [best.kernel], source.unseen, progress)
    except SelectionError:  # the ridge is lost in rounding errors
        return None
    left = share_left(best.kernel, dataset, result.model.rows, best.ridge)
    if left > NEAR:  # than a sample of the rows foretold
        return None
    return result, [
        f"all rows: by {len(result.model.rows)} landmarks, which leave {100 * left:.2g} % of the ridge of the kernel's "
        "trace: outputs on these rows are those of the whole kernel to that share of the residuals"
    ]


def _as_a_whole(
    dataset: Dataset, plan: Plan, best: ClimbStep, source: KernelSource, progress: Progress | None
) -> tuple[Selection, list[str]] | None:
    """Fit the whole kernel to all rows; None where the ridge is lost in rounding errors."""
    folds, final = int(plan.folds), final_fit(dataset, plan, Limits.of(plan.effort, share=1.0))
    one = final is None or final.route == "one fold"
    held = make_folds(folds, dataset, int(plan.seed))
    wanted = replace(plan, rank=reading.WHOLE, folds=_only_first(held, dataset) if one else folds)
    if progress is not None:
        progress(0, 1, f"the whole kernel of {dataset.n} rows: {short(best.kernel)}")
    for raised in range(RAISED + 1):
        wanted = replace(wanted, grid={"lambda": [best.ridge * RAISE**raised / dataset.total]})
        with suppress(SelectionError):  # the ridge is lost in rounding errors
            result = run(dataset, wanted, [best.kernel], source.unseen, progress)
            said = f"folds: one of {folds} is held out, for the others would take too long"
            return result, [said] * one
    return None


class _Choice(NamedTuple):
    """What is fitted to all rows, the steps to it, and how it came about in words."""

    source: KernelSource
    best: ClimbStep
    steps: list[ClimbStep]
    text: str


def _choose(
    dataset: Dataset,
    few: Dataset,
    first: Selection,
    source: KernelSource,
    plan: Plan,
    sizes: Sizes,
    progress: Progress | None,
) -> _Choice:
    """Choose by a climb from what the search on few rows found; where there are few others, what it chose itself."""
    if count_outside(dataset.n, few.n) < sizes.scored:
        best = ClimbStep(first.best.kernel, first.best.lam * few.total, first.best.kernel)
        text = f"rows: chosen on {few.n} rows in full, for there are few others to choose by"
        return _Choice(source, best, [], text)
    leading, again = _leading(first, few), 0
    for step in leading[:]:
        source, more = source.relearnt(step.kernel, int(plan.seed)) if again < AGAIN[plan.effort] else (source, [])
        again += bool(more)
        leading += [ClimbStep(found, ridge, found) for found, ridge in more]
    ladder = Ladder.of(dataset, few, first.best.learner, bool(plan.clip), int(plan.seed))
    steps, ended = ladder.climb(leading, Limits.of(plan.effort), progress)
    return _Choice(source, steps[-1], steps, _describe_climb(steps, ladder, ended))


def _before_the_last_fit(dataset: Dataset, plan: Plan) -> Deadline:
    """Return when the choice is to be made, for the fit to all rows to be done in time."""
    limits = Limits.of(plan.effort)
    final = final_fit(dataset, plan, limits)
    return limits.deadline.earlier(0.0 if final is None else final.costs.seconds(limits.rates))


def _leading(first: Selection, few: Dataset) -> list[ClimbStep]:
    """Return the best of each kind of kernel that the search on few rows compared, the lowest first."""
    best: dict[str, Any] = {}
    for candidate in sorted(first.candidates, key=lambda each: each.order):
        if candidate.compares:
            best.setdefault(kind_of(candidate.kernel), candidate)
    return [ClimbStep(c.kernel, c.lam * few.total, c.kernel) for c in list(best.values())[:KINDS]]


def _only_first(held: Folds, dataset: Dataset) -> Indices:
    """Return the fold of each row as given: the first one, and no other."""
    number = np.full(dataset.given, -1)
    number[dataset.places[held.number == 0]] = 0
    return number


def narrower(kernel: Any) -> Kernel | None:
    """Return a kernel of half the width; None of a rough one, whose width hardly matters, or of one that has none."""
    power = {"sqdist": 2, "l1": 1}.get(getattr(kernel, "statistic", ""))
    if power is None or not kernel.smoothness > 0.5:
        return None
    if hasattr(kernel, "with_theta"):
        found: Kernel = kernel.with_theta(tuple(2.0**power * theta for theta in kernel.theta))
        return found
    if kernel.width is None:
        return None
    narrow: Kernel = kernel.with_parameters(**{kernel.width: kernel.parameters[kernel.width] / 2.0})
    return narrow


@dataclass(frozen=True, eq=False)
class Ladder:
    """Nested subsets of the rows, and rows outside of them all.

    Parameters
    ----------
    order : array
        The rows of the subsets: the first ones make up each.
    outside : array
    few : int
        Rows of the first subset.
    """

    dataset: Dataset
    order: Indices
    outside: Indices
    few: int
    bias: bool
    clip: bool

    @classmethod
    def of(cls, dataset: Dataset, few: Dataset, learner: Learner, clip: bool, seed: int) -> Ladder:
        """Make it; copies of a row are in the subsets or outside of them, and the few first rows in every subset."""
        number = dataset.copied.number
        rank = np.random.default_rng((seed, 1)).permutation(int(number.max()) + 1).astype(np.int64)
        first = np.searchsorted(dataset.places, few.places)
        rank[number[first]] = -1
        of_row = rank[number]
        of_row[first] = -2  # before their copies
        order = np.argsort(of_row, kind="stable")
        m = count_outside(dataset.n, few.n)
        ranks = of_row[order]
        cut = int(np.searchsorted(ranks, ranks[dataset.n - m]))
        return cls(dataset, order[:cut], order[cut:], few.n, learner.bias, clip and dataset.task == "regression")

    def climb(
        self, leading: Sequence[ClimbStep], limits: Limits, progress: Progress | None
    ) -> tuple[list[ClimbStep], str]:
        """Return the best step on each subset, and what the climb ended with."""
        steps = [self.scored(step, self.few) for step in leading]
        found = [min(steps, key=lambda step: step.loss)]
        spent = 0.0
        for n in subset_sizes(self.few, self.order.size):
            steps = sorted(dict.fromkeys(steps), key=lambda step: step.loss)
            steps = steps[: -(-len(steps) // 2)] if len(found) > 1 else steps
            cost = self.cost(n, limits.rates)
            if cost * (len(steps) + MOVES) > limits.left(spent):
                there = "time that is left" if limits.deadline.is_set else "budget"
                took = whole_costs.spoken(cost * TRIED)
                return found, f"{n} rows would take {took} more, which is not in the {there}"
            if progress is not None:
                so_far = found[-1]
                progress(n, self.order.size, f"{n} rows in full; {so_far.loss:.4g} so far by {short(so_far.kernel)}")
            steps = [self.scored(step, n) for step in steps]
            best, tried = self._moved(min(steps, key=lambda step: step.loss))
            steps.append(best)
            spent += cost * (len(steps) + tried)
            found.append(best)
            if _gains(found)[-1] < GAIN:  # type: ignore[operator]  # of the second one on
                return found, f"another one would take {whole_costs.spoken(self.cost(2 * n, limits.rates) * TRIED)}"
        return found, "there are no rows for another one"

    def _moved(self, best: ClimbStep) -> tuple[ClimbStep, int]:
        """Return a step that is better by its ridge and its width, if there is one, and how many were tried."""
        tried, ridge = 0, best.ridge
        for change in (_with_half_width, _with_less_ridge, _with_more_ridge):
            if change is _with_more_ridge and best.ridge < ridge:
                break
            while tried < MOVES and (other := change(best)) is not None:
                scored = self.scored(other, best.rows)
                tried += 1
                if not scored.is_better(best):
                    break
                best = scored
        return best, tried

    def scored(self, step: ClimbStep, n: int) -> ClimbStep:
        """Fit on the first n rows in full, and score on those outside."""
        given = self.dataset, self.order[:n], self.outside, self.bias, self.clip, step
        return remember("climbed", given, lambda: self._scored(step, n))

    def _scored(self, step: ClimbStep, n: int) -> ClimbStep:
        data, rows, outside = self.dataset, self.order[:n], self.outside
        both = kernel_matrix(step.kernel, data.X[np.append(rows, outside)])
        s = np.ones(data.n) if data.weights is None else data.weights
        Y = np.ascontiguousarray(data.Y[:, rows].T)
        matrix = both.subset(np.arange(n))
        whole = WholeKernel(matrix, Y, s[rows], self.bias, ENOUGH)
        ridge, fit = step.ridge, _fit(whole, step.ridge)
        for _ in range(RAISED):
            if isinstance(fit, Fit):
                break
            ridge *= RAISE
            fit = _fit(whole, ridge)
        if isinstance(fit, Refused):
            return replace(step, rows=n, loss=np.inf, losses=None)
        F = predict(matrix, both.points(np.arange(n, n + outside.size)), fit)
        if self.clip:
            F = np.clip(F, Y.min(axis=0), Y.max(axis=0))
        squares = np.mean((F - data.Y[:, outside].T) ** 2, axis=1)
        losses = squares * s[outside] / s[outside].mean()
        return replace(step, ridge=ridge, rows=n, loss=float(losses.mean()), losses=losses)

    def cost(self, n: int, rates: whole_costs.Rates) -> float:
        """Return the seconds of one fit to n rows at some rates, with what it predicts."""
        d = self.dataset.X.shape[1]
        costs = whole_costs.costs(n, d, self.dataset.k, self.bias)
        return costs.seconds(rates) + n * self.outside.size / rates.pairs


def count_outside(n: int, few: int) -> int:
    """Return how many of n rows subsets are scored on, of which the smallest has few."""
    return min(OUTSIDE, (n - few) // SHARE)


def subset_sizes(few: int, inside: int) -> list[int]:
    """Return how many rows the larger subsets have: twice as many each, or for few rows all that there are."""
    doublings = int(np.log2(inside / few))
    every = [few * 2**k for k in range(1, doublings + 1)]
    return every or [inside] * (inside >= LEAST * few)


def _fit(whole: WholeKernel, ridge: float) -> Fit | Refused:
    """Fit with a low rank where it is near enough, else a factor in float32, or in float64 if rows are few."""
    lam = ridge / float(whole.s.sum())
    low = whole.approximate(lam)
    if low is not None:
        return whole.fit(low, lam)
    fit: Fit | Refused = Refused("")
    for dtype in dtypes(whole.matrix.n):
        factored = whole.factorise(lam, dtype=dtype)
        fit = factored if isinstance(factored, Refused) else whole.fit(factored, lam)
        if isinstance(fit, Fit):
            break
    return fit


def _with_half_width(step: ClimbStep) -> ClimbStep | None:
    kernel = narrower(step.kernel)
    return None if kernel is None else replace(step, kernel=kernel)


def _with_less_ridge(step: ClimbStep) -> ClimbStep | None:
    return replace(step, ridge=step.ridge / 4.0)


def _with_more_ridge(step: ClimbStep) -> ClimbStep | None:
    return replace(step, ridge=step.ridge * 4.0)


def _gains(steps: Sequence[ClimbStep]) -> list[float | None]:
    """Return by what share each doubling lowered the loss; None of the first subset."""
    return [None, *(1.0 - new.loss / old.loss for old, new in pairwise(steps))][: len(steps)]


def _cut_off(first: Selection) -> list[str]:
    """Return what the search on few rows has left out, as its time ended."""
    return [note for note in first.data["notes"] if note.startswith(TIME)]


def _describe_climb(steps: Sequence[ClimbStep], ladder: Ladder, ended: str) -> str:
    """Say what the climb found, what its last doubling gained, and what another one would cost."""
    losses = ", ".join(f"{step.rows}: {step.loss:.4g} ({kind_of(step.kernel)})" for step in steps)
    gain = _gains(steps)[-1]
    last = "" if gain is None else f"; the last doubling gained {100 * gain:.2g} %"
    return (
        f"rows: chosen on {ladder.few} rows in full; loss on {ladder.outside.size} other rows by the number of "
        f"rows that were fitted: {losses}{last}; {ended}"
    )
