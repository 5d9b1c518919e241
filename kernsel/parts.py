"""Read what a selection is asked for: names and texts become parts, and numbers are checked."""

from __future__ import annotations

import dataclasses
import math
import numbers
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from kernsel import registry
from kernsel.data.columns import as_dense
from kernsel.errors import IncompatibleError, OptionError, PluginError, check_memory
from kernsel.kernels import Function, Kernel, Precomputed, is_precomputed, parse
from kernsel.numerics.points import Points
from kernsel.protocols import BoardOf, Criterion, GridOf, Learner, PathOf, RuleOf, Scored, Search, WalkOf
from kernsel.representation.ranks import METHODS, ROOM, Full, LowRank, Rank, Whole
from kernsel.system.memory import memory_limit

FULL_RANK_ROWS = 2000
GRAM_BYTES = 8 * 6  # a pair of rows: distances, and matrix and work space for each of the kernels in work
SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0}
LEAST_MEMORY = 10**7  # bytes that may be asked for; below, nothing but tiny tables would be done
LARGEST_RANK = 1000
TOLERANCE, WHOLE = "tol:", "whole"
LEAST_TOLERANCE = 1e-10  # what is left of the trace is known to rounding
HALVING_ROWS = {"square": 1000, "other": 600}
"""Rows times outputs from which candidates are halved, by the loss.

All lambda of the square loss share a factorisation: below, its whole grid takes a second or so. Other losses are fitted
by Newton steps for each candidate. On eight tables of 600 to 768 rows (svm, l2svm, klr; three seeds) their whole grid
takes 2.7 s (CPU), halving 0.6 s; the score of the choice is 0.9995 times that of the grid's (worst table 1.0096), and
on two regressions (svr, qsvr) the choice is the same for 0.8 s rather than 5.2 s. On four tables of 500 rows the choice
of svm had 1.007 times the score (worst table 1.024) for 0.6 s less, on seven of 200 to 400 rows 1.003 times (1.017) for
0.3 s less.
"""
DEFAULT_LEARNERS = {"classification": "lssvm", "regression": "krr"}
"""The square loss: of classes as good as any other on most tables, and the fastest by far."""


def read_learner(learner: str | Learner | None, task: str) -> Learner:
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


def read_criterion(
    criterion: str | Criterion[PathOf, Scored], order: float | None, pure: bool, eta: float | str | None
) -> Criterion[PathOf, Scored]:
    """Return the criterion, with options that were given apart; OptionError if it has no such thing."""
    part = registry.build("criterion", criterion) if isinstance(criterion, str) else criterion
    if isinstance(part, type) or not hasattr(part, "score"):
        raise OptionError(f"a criterion must be a name such as 'newton-cv', or a Criterion, not {part!r}")
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


def check_seed(seed: object) -> None:
    """Raise OptionError unless it can be a seed."""
    if not isinstance(seed, numbers.Integral) or seed < 0:
        raise OptionError(f"seed must be a whole number from 0, not {seed!r}")


def read_kernel(kernel: object) -> Kernel:
    """Return the kernel; OptionError if it is neither one nor the text of one, nor a function."""
    if is_precomputed(kernel):
        return Precomputed()
    if not isinstance(kernel, str | Kernel):
        if callable(kernel) and not isinstance(kernel, type):
            return Function(kernel)
        raise OptionError(f"a kernel must be a name such as 'gaussian', a Kernel, or a function, not {kernel!r}")
    return parse(kernel) if isinstance(kernel, str) else kernel


def read_rank(
    rank: int | float | str | Rank | None, n: int, landmarks: str | None = None, learner: Learner | None = None
) -> Rank:
    """Return what stands for the Gram matrix of n rows for a learner."""
    if isinstance(rank, Rank):
        return rank.within(n)
    if landmarks is not None and landmarks not in METHODS:
        raise OptionError(f"landmarks {landmarks!r} is unknown: use {', '.join(METHODS)}")
    if rank == WHOLE:
        _check_whole(landmarks, learner)
        return Whole()
    if rank == "full" or (rank is None and n <= FULL_RANK_ROWS and (landmarks or not _is_too_large(n))):
        if landmarks is not None:
            raise OptionError(
                f"landmarks {landmarks!r}: the whole Gram matrix of {n} rows needs none; give a rank, such as 200"
            )
        _check_memory(n)
        return Full()
    largest, tol = (_automatic(n, learner), 0.0) if rank is None else _largest(rank, n)
    return LowRank(min(largest, n), tol, landmarks or "rpcholesky")


def _automatic(n: int, learner: Learner | None) -> int:
    """Return a number of landmarks: more for the square loss, which is fitted at once, as long as features are held."""
    square = learner is not None and has_square_loss(learner)
    return min(max(n // 10, 500), max(LARGEST_RANK, ROOM.features // (8 * n) if square else 0))


def has_square_loss(learner: Learner) -> bool:
    """Tell whether a learner has the square loss, and no parameter that is searched."""
    return not getattr(learner, "free", ()) and bool(learner.loss.square)


def _check_whole(landmarks: str | None, learner: Learner | None) -> None:
    """Refuse what the whole kernel in tiles isn't for."""
    if landmarks is not None:
        raise OptionError(f"landmarks {landmarks!r}: the whole kernel needs none; give a rank, such as 200")
    if learner is not None and not has_square_loss(learner):
        raise IncompatibleError(
            f"rank whole is for the square loss, and learner '{learner.name}' has another: use krr or lssvm, or give a "
            "number of landmarks such as 1000"
        )


def _largest(rank: int | float | str, n: int) -> tuple[int, float]:
    """Return the largest number of landmarks, and the share of the trace that may be left."""
    if isinstance(rank, str) and rank.startswith(TOLERANCE):
        return _tolerance(rank)
    if isinstance(rank, bool) or not isinstance(rank, numbers.Real) or not math.isfinite(rank):
        raise OptionError(
            "rank must be a number of landmarks, a share of the rows, 'tol:' and the share of the trace that may be "
            f"left, 'full' or 'whole', not {rank!r}"
        )
    if isinstance(rank, float) and 0 < rank <= 1:
        return max(1, round(rank * n)), 0.0
    if rank != int(rank) or rank < 1:
        raise OptionError(f"rank must be a whole number from 1, or a share of the rows up to 1.0, not {rank!r}")
    return int(rank), 0.0


def _tolerance(text: str) -> tuple[int, float]:
    """Read ``tol:SHARE`` or ``tol:SHARE:LARGEST``."""
    share, _, largest = text.removeprefix(TOLERANCE).partition(":")
    try:
        found = int(largest or LARGEST_RANK), float(share)
    except ValueError:
        found = 0, 0.0
    if found[0] < 1 or not LEAST_TOLERANCE <= found[1] < 1:
        raise OptionError(
            f"rank {text!r}: write tol:SHARE or tol:SHARE:LARGEST, such as tol:0.001:2000: the share of the trace that "
            f"may be left, from {LEAST_TOLERANCE:g} to below 1, and the largest number of landmarks (default "
            f"{LARGEST_RANK})"
        )
    return found


def read_seconds(text: object) -> float | None:
    """Return the seconds of a number, or of a text such as ``90s``, ``5min`` or ``1h``; None where it is no time."""
    if isinstance(text, numbers.Real) and not isinstance(text, bool):
        try:
            seconds = float(text)
        except OverflowError:  # a whole number without end
            return None
    else:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|min|h)", str(text).strip())
        seconds = float(match[1]) * SECONDS[match[2]] if match else math.nan
    return seconds if 0 < seconds < math.inf else None


def read_memory(memory: str | int | None) -> int | None:
    """Return a number of bytes, of a text such as ``2GiB``, ``500MB`` or ``1.5G``; None for none."""
    if memory is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(?:([kmgt])(i?)b?|b)?", str(memory).strip(), re.IGNORECASE)
    if match is None or isinstance(memory, bool):
        raise OptionError(f"memory {memory!r} is no size: give one such as 2GiB or 500MB")
    power = " kmgt".index((match[2] or " ").lower())
    found = int(float(match[1]) * (1024 if match[3] else 1000) ** power)
    if found < LEAST_MEMORY:
        raise OptionError(f"memory {memory!r} is too little for anything: give at least {LEAST_MEMORY // 10**6} MB")
    return found


def read_search(
    search: str | Search[BoardOf, GridOf, RuleOf, WalkOf],
    n: int,
    outputs: int,
    rank: Rank,
    one_se: bool,
    learner: Learner | None = None,
) -> Search[BoardOf, GridOf, RuleOf, WalkOf]:
    """Return the search: by default halving of many rows, where a low rank says something of their candidates.

    They are many from ``HALVING_ROWS`` on; a learner that isn't known yet counts as one of the square loss.
    """
    if search == "auto":
        square = learner is None or has_square_loss(learner)
        plain = one_se or isinstance(rank, Whole) or n * outputs < HALVING_ROWS["square" if square else "other"]
        search = "grid" if plain else "halving"
    part: Search[BoardOf, GridOf, RuleOf, WalkOf] = (
        registry.build("search", search) if isinstance(search, str) else search
    )
    if isinstance(part, type) or not hasattr(part, "begin"):
        raise OptionError(f"a search must be a name such as 'halving', or a Search, not {part!r}")
    if hasattr(part, "ranks"):
        if one_se:
            raise OptionError("one_se compares all candidates at the representation in force: use search grid with it")
        if not part.ranks(n, rank):
            part = registry.build("search", "grid")  # there is no rank at which to leave a candidate behind
    return part


def _is_too_large(n: int) -> bool:
    """Tell whether the memory doesn't suffice for the whole Gram matrix of n rows."""
    there = memory_limit()
    return there is not None and GRAM_BYTES * n**2 > there


def _check_memory(n: int) -> None:
    """Refuse a Gram matrix that won't fit."""
    check_memory(
        GRAM_BYTES * n**2,
        f"the whole Gram matrix of {n} rows",
        "leave out --rank full, or give a number of landmarks such as --rank 1000",
    )
