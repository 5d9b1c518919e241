"""A plan is carried out on a data set: the whole way from rows to a selection."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kernsel.data import Dataset, from_arrays
from kernsel.errors import OptionError
from kernsel.journal import journaling, run_header, seconds_before
from kernsel.journal.encoding import fingerprint
from kernsel.kernels import is_precomputed
from kernsel.numerics.points import Points
from kernsel.parts import check_seed, read_learner, read_memory
from kernsel.search.deadline import Deadline, limited_time
from kernsel.search.faults import naming_plugins
from kernsel.selection.again import with_origin
from kernsel.selection.kernel_source import AUTO, kernels_of, with_notes
from kernsel.selection.large import select_large
from kernsel.selection.limits import is_large
from kernsel.selection.plan import Plan
from kernsel.selection.result import Selection
from kernsel.selection.run import run
from kernsel.selection.work import affordable, whole_left_out
from kernsel.system.memory import give_back, limited_memory, memory_limit
from kernsel.types import Progress

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

LEARNERS, LEADING = ("lssvm", "l2svm", "klr", "svm"), 5
"""What learner ``auto`` tries for classes, and on how many leading kernels of the first one."""


def encode_arrays(
    X: pd.DataFrame | npt.ArrayLike | Points,
    y: npt.ArrayLike,
    plan: Plan,
    weights: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
) -> Dataset:
    """Return the data set of features and target by what a plan says of the table.

    Parameters
    ----------
    X : (n, d) array, sparse matrix, or DataFrame
    y : (n,) or (n, k) array
    weights, groups : (n,) array, optional
        As in :func:`select`.
    """
    return from_arrays(X, y, weights=weights, groups=groups, gram=is_precomputed(plan.kernel), **plan.table)


def select_dataset(dataset: Dataset, *, progress: Progress | None = None, **options: Any) -> Selection:
    """Select on a data set that is already encoded, as :func:`select` does, without issuing warnings.

    Parameters
    ----------
    dataset : Dataset
        From ``kernsel.data``.
    **options
        Those of :func:`select` that don't belong to the data.
    """
    return carry_out(dataset, Plan.read("select_dataset", options), progress)


@naming_plugins()
def carry_out(dataset: Dataset, plan: Plan, progress: Progress | None = None) -> Selection:
    """Follow a plan the way that suits its learner and the number of rows."""
    check_seed(plan.seed)  # here, as relevances may be learnt before the search
    if progress is not None and not callable(progress):
        raise OptionError(f"progress is called as progress(done, total, text), and {progress!r} can't be")
    if not isinstance(plan.journal, str | os.PathLike | None):
        raise OptionError(f"journal is the name of a file, not {plan.journal!r}")
    if isinstance(plan.folds, Iterator):  # read more than once below
        plan = replace(plan, folds=list(plan.folds))
    give_back()
    header = functools.partial(run_header, "select", dataset, plan.options)
    with (
        limited_memory(read_memory(plan.memory)),
        journaling(plan.journal, header),
        limited_time(Deadline.read(plan.time, seconds_before())),
    ):
        return with_origin(_with_time_before(_within_memory(dataset, plan, progress)), fingerprint(dataset), plan)


def _with_time_before(result: Selection) -> Selection:
    """Return a result whose time is that of all runs, where one goes on from what the journal of others has kept."""
    before = seconds_before()
    if not before:
        return result
    return replace(result, timing={**result.timing, "before": before, "total": result.timing["total"] + before})


def _within_memory(dataset: Dataset, plan: Plan, progress: Progress | None) -> Selection:
    """Follow a plan; where memory runs out all the same, once more with half of it, which is said."""
    try:
        return _carry_out(dataset, plan, progress)
    except MemoryError:
        limit = memory_limit()
        if limit is None:
            raise
    half = limit // 2
    with limited_memory(half):
        found = _carry_out(dataset, plan, progress)
    return with_notes(found, 0.0, [f"memory: it ran out, and the search was begun anew within {half / 2**20:.0f} MiB"])


def _carry_out(dataset: Dataset, plan: Plan, progress: Progress | None) -> Selection:
    if plan.learner == AUTO:
        return _select_learner(dataset, plan, progress)
    if units := getattr(read_learner(plan.learner, dataset.task), "in_robust_units", ""):
        dataset = dataset.in_robust_units(units)
    plan, notes = affordable(dataset, plan)
    left_out = whole_left_out(dataset, plan)  # before the time runs down
    if is_large(dataset, plan) and (large := select_large(dataset, plan, progress)):
        return with_notes(large, 0.0, notes)
    notes += left_out
    source = kernels_of(dataset, plan)
    result = source.describe(run(dataset, plan, source.kernels, source.unseen, progress))
    return with_notes(result, 0.0, notes)


def _select_learner(dataset: Dataset, plan: Plan, progress: Progress | None) -> Selection:
    """Select with each learner for classes, and take the one with the least held-out error.

    The first one, of the square loss, chooses the kernel; the others see its leading kernels only.
    """
    if dataset.task != "classification":
        raise OptionError("learner 'auto' chooses among those for classes; for a regression name one, such as krr")
    first, *others = (replace(plan, learner=name) for name in LEARNERS)
    source = kernels_of(dataset, first)
    results = [run(dataset, first, source.kernels, source.unseen, progress)]
    leading = [c.kernel for c in results[0].candidates if c.compares]
    kernels = list(dict.fromkeys(leading))[:LEADING]
    grid: Any = plan.grid
    if isinstance(grid, Mapping):  # what is left to be searched
        grid = {name: grid[name] for name in ("lambda", "rest") if name in grid} or "auto"
    for other in others:
        narrowed = replace(other, refine=None, budget=None, grid=grid)
        results.append(run(dataset, narrowed, kernels, source.unseen, progress))
    best = min(results, key=lambda each: 0.0 if each.best.error is None else each.best.error)
    compared = [
        {"learner": name, "error": each.best.error, "error_se": each.best.error_se}
        for name, each in zip(LEARNERS, results, strict=True)
    ]
    errors = ", ".join(f"{each.learner} {100 * (each.best.error or 0.0):.3g} %" for each in results)
    seconds = sum(each.timing["total"] for each in results) - best.timing["total"]
    note = f"learner: {best.learner}, of the least held-out error ({errors})"
    return with_notes(source.describe(best), seconds, [note], learners=compared)
