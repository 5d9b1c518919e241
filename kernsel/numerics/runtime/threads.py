"""Threads: what work is shared out to, and what keeps BLAS to one thread meanwhile.

A parallel loop is a compiled loop over ``range(first, jobs, step)`` that releases the interpreter and runs on one
thread for each ``first < step`` (``share``). Numba's ``parallel=True`` does the same at 2 s more of compile time a
loop, with a pool that neither survives a fork nor may be entered from two threads.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numba

Item = TypeVar("Item")
Result = TypeVar("Result")

_worker = threading.local()


def threads() -> int:
    """Return the number of threads that work is shared out to: NUMBA_NUM_THREADS; 1 for who is one of them already."""
    return 1 if getattr(_worker, "busy", False) else int(numba.config.NUMBA_NUM_THREADS)


def share(work: Callable[[int, int], object], jobs: int) -> None:
    """Run ``work(first, step)`` on each thread: together the ``range(first, jobs, step)`` hold every job once.

    The threads are daemons: one that never returns doesn't keep the process from ending.
    """
    workers = min(threads(), jobs)
    if workers <= 1:
        work(0, 1)
        return
    errors: list[BaseException] = []

    def job(first: int) -> None:
        try:
            _busy(work, first, workers)
        except BaseException as error:  # noqa: BLE001  # for whoever waits
            errors.append(error)

    others = [threading.Thread(target=job, args=(first,), daemon=True) for first in range(1, workers)]
    for each in others:
        each.start()
    try:
        _busy(work, 0, workers)
    finally:
        for each in others:
            each.join()
    if errors:
        raise errors[0]


def share_each(work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """Yield ``work(item)`` for each item, in their order; each is done by one thread from beginning to end.

    For whole tasks, Python and all; where there are fewer of them than threads, each gets all threads in its turn.
    """
    workers = threads()
    if workers == 1 or len(items) < workers:
        yield from map(work, items)
        return
    pool = ThreadPoolExecutor(workers)
    wait = True  # a task that ran on after the failure of another would change the threads of BLAS under later work
    try:
        context = copy_context()  # of the caller: what is in force there is in force in its tasks
        yield from pool.map(lambda item: context.copy().run(_alone, work, item), items)
    except (KeyboardInterrupt, GeneratorExit):
        wait = False
        raise
    finally:
        pool.shutdown(wait, cancel_futures=True)


def working_alike() -> Callable[[], AbstractContextManager[None]]:
    """Return what lets another thread share work out as this one does, under the limit of BLAS that this one sets."""
    busy = getattr(_worker, "busy", False)

    @contextmanager
    def alike() -> Iterator[None]:
        _worker.busy, _worker.limited = busy, True
        own = blas_libraries()[1]
        limit_threads(own, [1] * len(own))  # which is of the thread, and ends with it
        yield

    return alike


def _alone(work: Callable[[Item], Result], item: Item) -> Result:
    _worker.busy = True
    return work(item)


def _busy(work: Callable[[int, int], object], first: int, step: int) -> None:
    _worker.busy = True
    try:
        work(first, step)
    finally:
        _worker.busy = False


@dataclass
class _BlasLimit:
    """The limit on the threads of BLAS: in how many threads of Python a block has set it, and what was before."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    blocks: int = 0
    before: list[int] = field(default_factory=list)


_blas = _BlasLimit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Give BLAS one thread inside the block.

    Parallel loops call BLAS from every thread; BLAS threads on top of them would only get in each other's way
    (small decompositions run ten times slower), and sums would depend on their number. Most libraries have one limit
    for the whole process: of all blocks that overlap, in whatever threads of Python, the first to begin sets it, and
    the last to end restores what was before. On OpenMP the limit is each thread's own.
    """
    if getattr(_worker, "limited", False):  # of blocks within blocks the outermost counts
        yield
        return
    whole, own = blas_libraries()
    with _blas.lock:
        if _blas.blocks == 0:
            _blas.before = limit_threads(whole, [1] * len(whole))
        _blas.blocks += 1
    before = limit_threads(own, [1] * len(own))
    _worker.limited = True
    try:
        yield
    finally:
        _worker.limited = False
        limit_threads(own, before)
        with _blas.lock:
            _blas.blocks -= 1
            if _blas.blocks == 0:
                limit_threads(whole, _blas.before)


def limit_threads(libraries: Sequence[Any], numbers: Sequence[int]) -> list[int]:
    """Set the numbers of threads of libraries, and return what they were."""
    before = [library.num_threads for library in libraries]
    for library, number in zip(libraries, numbers, strict=True):
        # threadpoolctl 3.8 lets only the thread that set a limit of OpenBLAS first set another one, until it gives up.
        give_up = getattr(library, "clear_controlling_thread", lambda force: None)
        give_up(force=True)
        library.set_num_threads(number)
        give_up(force=True)
    return before


def _forget_lock() -> None:
    """Replace the lock in a child process: whoever held it may not be there."""
    _blas.lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)


@functools.cache
def blas_libraries() -> tuple[list[Any], list[Any]]:
    """Return the BLAS libraries of the process: those with one limit for all threads, and those with one for each.

    Searching for them takes 2 ms, so it is done once.
    """
    import scipy.linalg.cython_blas  # noqa: F401  # loads the one that compiled loops call
    from threadpoolctl import ThreadpoolController

    found = ThreadpoolController().select(user_api="blas").lib_controllers
    own = [library for library in found if getattr(library, "threading_layer", None) == "openmp"]
    return [library for library in found if library not in own], own
