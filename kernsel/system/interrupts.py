"""Ctrl-C and SIGTERM: outside of a command's work they end the process at once, in it they raise KeyboardInterrupt.

What is raised may come late, in the middle of a compiled loop, or be lost, where a library calls back and drops it: a
process that is still there after ``PATIENCE`` ends at once, too. The standard library alone, as a command that is
stopped while it imports the rest ends by this.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)

PATIENCE = 5.0
"""Seconds that work may take to end."""

_last: int = signal.SIGINT

_came = _inside = False


def end(number: int, frame: FrameType | None = None) -> None:
    """End the process with one line, whatever its threads do."""
    os.write(2, b"kernsel: interrupted\n")
    os._exit(128 + number)


def end_at_once() -> None:
    """Let both signals end the process by :func:`end`, unless whoever started it has them ignored."""
    for number in SIGNALS:
        if signal.getsignal(number) in (signal.default_int_handler, signal.SIG_DFL):
            signal.signal(number, end)


@contextmanager
def raised() -> Iterator[None]:
    """Raise KeyboardInterrupt for both signals inside the block, where :func:`end_at_once` had its way before."""
    global _came, _inside
    _came = False
    ours = [] if threading.current_thread() is not threading.main_thread() else SIGNALS
    ours = [number for number in ours if signal.getsignal(number) is end]
    try:
        for number in ours:
            signal.signal(number, _interrupt if number == signal.SIGINT else _terminate)
        _inside = True
        yield
    finally:
        _inside = False
        for number in ours:
            signal.signal(number, end)


def raises(handler: object) -> bool:
    """Tell whether a handler of Ctrl-C is one that raises KeyboardInterrupt."""
    return handler in (signal.default_int_handler, _interrupt)


def came() -> bool:
    """Tell whether KeyboardInterrupt was raised: a library may have made another error of it, such as at its import."""
    return _came


def check() -> None:
    """Raise KeyboardInterrupt again where a library has dropped it, in the block of :func:`raised`."""
    if _inside and _came:
        raise KeyboardInterrupt


def _interrupt(number: int, frame: FrameType | None) -> None:
    global _came
    _came = True
    watch = threading.Timer(PATIENCE, end, [_last])
    watch.daemon = True
    watch.start()
    signal.default_int_handler(number, frame)


def _terminate(number: int, frame: FrameType | None) -> None:
    """Do what Ctrl-C does by now."""
    global _last
    _last = number
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):  # it is ignored, as in the background of a script
        raise KeyboardInterrupt
    handler(signal.SIGINT, frame)


def exit_code() -> int:
    """Return the exit code of a command that was stopped: 130 after Ctrl-C, 143 after SIGTERM."""
    return 128 + _last
