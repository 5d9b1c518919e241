"""Compile a function, or load its machine code from disk; how long that takes, and a line that says so."""

from __future__ import annotations

import functools
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numba
from numba.core.dispatcher import Dispatcher

from kernsel.errors import CompilationWarning
from kernsel.numerics.runtime.cache import cacheable, on_disk
from kernsel.system.interrupts import raises

announce: Callable[[str], None] | None = None
"""Called with one line before the first compilation of a process (the command line prints it)."""

_announced = _uncached = False


class Clock:
    """Counts the time in which any thread compiles, or waits for what is compiled."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads, self._since, self._before = 0, 0.0, 0.0

    def __enter__(self) -> None:
        with self._lock:
            if self._threads == 0:
                self._since = time.monotonic()
            self._threads += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._threads -= 1
            if self._threads == 0:
                self._before += time.monotonic() - self._since

    @property
    def seconds(self) -> float:
        """The time so far."""
        with self._lock:
            return self._before + (time.monotonic() - self._since if self._threads else 0.0)


clock = Clock()
"""That of the process."""


@contextmanager
def keep_interrupts() -> Iterator[None]:
    """Raise at the end of the block a KeyboardInterrupt that was lost in it: LLVM calls back, and drops what is raised.

    It is raised where it comes, too, as always, so that nobody waits for the end of a compilation.
    """
    usual: Any = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not raises(usual):
        yield
        return
    came: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        came.append(number)
        usual(number, frame)

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
    if came:
        raise KeyboardInterrupt


STACK = 1 << 17
"""Slots of the frame that ``in_one_piece`` begins with: 1 MB, so that CPython takes a piece of 2 MB for it."""


def in_one_piece(function: Callable[..., Any]) -> Callable[..., Any]:
    """Have all that ``function`` calls keep its frames in one large piece of memory.

    CPython takes memory for the frames of a thread in pieces of 16 kB, and gives each back when its first frame
    returns. Where calls in a loop begin a piece, each of them costs two calls of the system and new pages: Numba's
    recursion meets such places at 300,000 calls of a compilation, which then takes twice as long. A piece that is taken
    for a frame with a large stack has room for all frames after it, and memory that isn't touched costs nothing.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    call.__code__ = call.__code__.replace(co_stacksize=STACK)
    return functools.wraps(function)(call)


@in_one_piece
@keep_interrupts()
def compiled(function: Callable[..., object], signature: object, options: dict[str, Any]) -> Dispatcher:
    """Return a function as machine code of its signature: loaded from disk, or compiled and kept there if it can be."""
    global _uncached
    try:
        try:
            dispatcher = _cached(function, signature, options)
        except Exception:  # noqa: BLE001  # a damaged file can raise anything when it is unpickled
            dispatcher = _cached(function, signature, options, anew=True)
    except (RuntimeError, OSError) as error:
        # No folder can hold the cache: the loop is compiled for this process alone.
        if not _uncached:
            _uncached = True
            warnings.warn(
                f"the compiled code can't be kept on disk ({_first_line(error)}), so every run compiles it again; "
                "set NUMBA_CACHE_DIR to a folder that can be written",
                CompilationWarning,
                stacklevel=4,
            )
        _announce()
        dispatcher = numba.njit(**options)(function)
        dispatcher.compile(signature)
    dispatcher.disable_compile()
    # Where the function is an argument, Numba searches for its address at every call: 0.1 ms.
    (result,) = dispatcher.overloads.values()
    dispatcher.get_compile_result = lambda _: result
    result.library.get_pointer_to_function = functools.cache(result.library.get_pointer_to_function)
    return dispatcher


def _cached(
    function: Callable[..., object], signature: object, options: dict[str, Any], anew: bool = False
) -> Dispatcher:
    """Load the machine code from disk, or compile it and keep it there; ``anew`` throws away what was kept."""
    dispatcher = cacheable(function, options)
    if anew:
        dispatcher._cache.flush()
    if anew or not on_disk(dispatcher, signature):
        _announce()
    dispatcher.compile(signature)
    return dispatcher


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _announce() -> None:
    global _announced
    if announce is not None and not _announced:
        announce("compiling the numerical loops (once after an install or an upgrade) ...")
    _announced = True
