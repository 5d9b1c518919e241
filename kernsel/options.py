"""Read what a selection is asked for: names and texts become parts, and numbers are checked."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from kernsel import registry
from kernsel.data.columns import as_dense
from kernsel.errors import IncompatibleError, OptionError, PluginError
from kernsel.kernels import Kernel, parse
from kernsel.numerics.points import Points

FULL_RANK_ROWS = 2000
HALVING_ROWS = 1000  # times outputs; below, the whole grid takes a second or so
FIRST_RANK = 50
DEFAULT_LEARNERS = {"classification": "svm", "regression": "krr"}


def read_learner(learner: Any, task: str) -> Any:
    """Return the learner, by default that of the task; IncompatibleError if it is not for the task."""
    part = learner if learner is not None else DEFAULT_LEARNERS[task]
    part = registry.build("learner", part) if isinstance(part, str) else part
    if isinstance(part, type) or not hasattr(part, "tasks"):
        raise OptionError(f"a learner must be a name such as 'svm', or a Learner such as Svm(), not {part!r}")
    if task not in part.tasks:
        fitting = ", ".join(name for name in registry.names("learner") if _is_for(name, task))
        raise IncompatibleError(
            f"learner '{part.name}' is for {' and '.join(part.tasks)}, not for a {task}; choose another one ({fitting})"
        )
    return part


def _is_for(name: str, task: str) -> bool:
    try:
        return task in registry.get("learner", name).tasks
    except PluginError:
        return False


def read_criterion(criterion: Any, order: float | None, pure: bool, eta: float | str | None) -> Any:
    """Return the criterion, with options that were given apart; OptionError if it has no such thing."""
    part = registry.build("criterion", criterion) if isinstance(criterion, str) else criterion
    changes: dict[str, Any] = {"order": order} if order is not None else {}
    if pure:
        changes["pure"] = True
    if eta is not None:
        changes["eta"] = None if eta == "cv" else eta
    if not changes:
        return part
    fields = {field.name for field in dataclasses.fields(part)}
    for name in changes:
        if name not in fields:
            instead = "cvks" if name == "eta" else "bif"
            raise OptionError(f"criterion '{part.name}' has no option '{name}'; leave it out, or use {instead}")
    return replace(part, **changes)


def rows_for(kernels: Iterable[Kernel], X: Points) -> Points:
    """Return encoded rows as all of the kernels can take them: dense for one that takes no sparse ones."""
    unable = [kernel.name for kernel in kernels if not kernel.sparse]
    return as_dense(X, f"kernel '{unable[0]}'") if unable else X


def read_kernel(kernel: Any) -> Kernel:
    """Return the kernel; OptionError if it is neither one nor the text of one."""
    if not isinstance(kernel, str | Kernel):
        raise OptionError(f"a kernel must be a name such as 'gaussian', or a Kernel, not {kernel!r}")
    return parse(kernel) if isinstance(kernel, str) else kernel


def read_rank(rank: int | float | str | None, n: int) -> int | None:
    """Return the number of landmarks, or None for the whole Gram matrix."""
    if rank == "full" or (rank is None and n <= FULL_RANK_ROWS):
        _check_memory(n)
        return None
    if rank is None:
        return min(max(n // 10, 500), 1000)
    if isinstance(rank, str | bool) or not math.isfinite(rank):
        raise OptionError(f"rank must be a number of landmarks, a share of the rows, or 'full', not {rank!r}")
    if isinstance(rank, float) and 0 < rank <= 1:
        return max(1, round(rank * n))
    if rank != int(rank) or rank < 1:
        raise OptionError(f"rank must be a whole number from 1, or a share of the rows up to 1.0, not {rank!r}")
    return min(int(rank), n)


def read_search(search: str, n: int, outputs: int, rank: int | None, one_se: bool) -> tuple[int, ...]:
    """Return the ranks of successive halving, none where every candidate is scored at the representation in force."""
    if search not in ("auto", "grid", "halving"):
        raise OptionError(f"search {search!r} is unknown: use auto, grid or halving")
    if search == "halving" and one_se:
        raise OptionError("one_se compares all candidates at the representation in force: use search grid with it")
    if search == "grid" or one_se or (search == "auto" and n * outputs < HALVING_ROWS):
        return ()
    largest = n // 8 if rank is None else rank // 2
    doublings = range(max(largest // FIRST_RANK, 0).bit_length())
    return tuple(FIRST_RANK * 2**k for k in doublings)


def _check_memory(n: int) -> None:
    """Refuse a Gram matrix that won't fit: distances, and matrix and work space for each of the kernels in work."""
    check_memory(
        8 * n**2 * 6,
        f"the whole Gram matrix of {n} rows",
        "leave out --rank full, or give a number of landmarks such as --rank 1000",
    )


def check_memory(needed: float, what: str, instead: str) -> None:
    """Raise OptionError where something needs more bytes than this machine has."""
    try:
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):  # not every system tells
        return
    if needed > there:
        raise OptionError(
            f"{what} needs about {needed / 2**30:.0f} GB of memory, and this machine has {there / 2**30:.0f}: {instead}"
        )
