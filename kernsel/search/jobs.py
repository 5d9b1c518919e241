"""Kernels of a search as jobs of joblib, where one of its backends is in force that has processes.

Within ``joblib.parallel_config("loky", n_jobs=4)``, or another backend of processes, the kernels of a grid are scored
by these. A job has all rows with it: that is for small data and slow learners. Every job computes what a thread of this
process would, to the last bit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from kernsel.numerics.runtime.threads import one_blas_thread
from kernsel.system.memory import limited_memory, memory_limit

Shared = TypeVar("Shared")
Item = TypeVar("Item")
Result = TypeVar("Result")


def in_force() -> bool:
    """Say whether a backend of joblib with several processes was chosen; without joblib's import none was."""
    if "joblib" not in sys.modules:
        return False
    import joblib
    from joblib.parallel import get_active_backend

    backend, _ = get_active_backend()
    return not getattr(backend, "uses_threads", False) and joblib.effective_n_jobs(None) > 1


def spread(work: Callable[[Shared, Item], Result], shared: Shared, items: Sequence[Item]) -> Iterator[Result]:
    """Yield ``work(shared, item)`` for each item, in their order."""
    import joblib

    limit = memory_limit()
    yield from joblib.Parallel(return_as="generator")(
        joblib.delayed(_alone)(work, shared, item, limit) for item in items
    )


def _alone(work: Callable[[Shared, Item], Result], shared: Shared, item: Item, limit: int | None) -> Result:
    """Do a job with what is in force where it came from."""
    with limited_memory(limit), one_blas_thread():
        return work(shared, item)
