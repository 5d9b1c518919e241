"""Work that may never return: a thread does it, and is left behind when its time is up.

Python can't end a thread. One that is left behind gets an exception, which ends it as soon as it runs Python again: a
loop of Python ends at once. A thread that waits for the system, or is in the middle of compiled code, stays until that
returns, and ends then. No thread of this kind keeps a process from ending.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Generic, TypeVar

from kernsel.numerics.runtime.compiling import clock
from kernsel.numerics.runtime.threads import one_blas_thread, working_alike

T = TypeVar("T")

LEAST_WAIT = 0.01
"""Seconds between two looks at the clock while loops are compiled, whose time doesn't count."""


class NotDone(Exception):
    """Work has not returned in its time.

    Parameters
    ----------
    seconds : float
        The time it had.
    frames : list of frame
        Where it was, the innermost last.
    """

    def __init__(self, seconds: float, frames: list[FrameType]) -> None:
        super().__init__(f"did not return within {seconds:g} s")
        self.frames = frames


class _LeftBehind(SystemExit):
    """Ends a thread whose work nobody waits for any more; threads end by a SystemExit without a word."""


@dataclass(eq=False)
class _Work(Generic[T]):
    """Work in a thread of its own, and what came of it."""

    work: Callable[[], T]
    results: list[T] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)
    returned: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    ended: bool = False

    def run(self) -> None:
        """Do the work."""
        try:
            self.results.append(self.work())
        except BaseException as error:  # noqa: BLE001  # of whatever kind, it is for whoever waits
            self.errors.append(error)
        with self.lock:
            self.ended = True
        self.returned.set()

    def leave(self, thread: threading.Thread) -> list[FrameType]:
        """Have the thread end as soon as it can; return the frames where it is, the innermost last."""
        with self.lock:  # its identity may be another thread's after its end, which waits for the lock
            if self.ended or thread.ident is None:
                return []
            frame, frames = sys._current_frames().get(thread.ident), []
            while frame is not None:
                frames.append(frame)
                frame = frame.f_back
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(_LeftBehind))
        return frames[::-1]


_left: list[threading.Thread] = []
"""Threads that were left behind."""


def any_left_behind() -> bool:
    """Tell whether a thread that was left behind is still there."""
    _left[:] = [thread for thread in _left if thread.is_alive()]
    return bool(_left)


def done_within(seconds: float, work: Callable[[], T]) -> T:
    """Return what ``work`` returns, or raise what it raises, if it does so in time.

    The time in which loops are compiled doesn't count. Work sees the context variables of its caller, and shares itself
    out to threads as its caller would.

    Parameters
    ----------
    work : callable
        It must not hold a lock that anything else waits for.

    Raises
    ------
    NotDone
        The time is up.
    """
    job: _Work[T] = _Work(work)
    alike = working_alike()

    def run(*context: Any) -> None:
        with alike():
            copy.run(job.run)

    copy = copy_context()
    thread = threading.Thread(target=run, daemon=True, name="kernsel-candidate")
    with one_blas_thread():  # here, where it ends whatever becomes of the thread
        began, compiled = time.monotonic(), clock.seconds
        thread.start()
        try:
            left = seconds
            while not job.returned.wait(min(max(left, LEAST_WAIT), threading.TIMEOUT_MAX)) and left > 0.0:
                left = seconds - (time.monotonic() - began) + (clock.seconds - compiled)
        except BaseException:  # Ctrl-C above all
            job.leave(thread)
            raise
        if not job.returned.is_set():
            frames = job.leave(thread)
            if not job.ended:
                _left.append(thread)
                raise NotDone(seconds, frames)
            job.returned.wait()
    if job.errors:
        raise job.errors[0]
    return job.results[0]
