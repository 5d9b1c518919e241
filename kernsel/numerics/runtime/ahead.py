"""A second process that compiles what a command will need last, into the same cache: Numba has one lock in each."""

from __future__ import annotations

import atexit
import importlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from kernsel.numerics.runtime.cache import Loop, missing

allowed = False
"""Whether ``compile_ahead`` may start a process (the command line lets it)."""


@dataclass
class _Second:
    """A process that compiles functions for this one, in their order, and writes the address of each that is done."""

    process: subprocess.Popen[bytes]
    awaited: set[str]
    lock: threading.Lock = field(default_factory=threading.Lock)

    def wait_for(self, address: str) -> None:
        """Wait until a function that is compiled there is done, or that process has ended."""
        with self.lock:
            while address in self.awaited:
                assert self.process.stdout is not None
                done = self.process.stdout.readline().decode().strip()
                self.awaited -= {done} if done else self.awaited


_second: _Second | None = None


def wait_for(address: str) -> None:
    """Wait until a function that the second process compiles is done there."""
    if _second is not None:
        _second.wait_for(address)


def compile_ahead(*functions: Loop) -> None:
    """Start a process that compiles what of ``functions`` is not on disk, while this one does other things.

    The first takes longest: where nothing but others is missing, a process would take as long to start. They are
    compiled in the order that they are given in; whoever calls one of them waits for it. Commands ask for it
    (``allowed``); a library should not start processes.
    """
    global _second
    busy = _second is not None and _second.process.poll() is None
    if not allowed or busy or not sys.executable:
        return
    try:
        addresses = missing(f for f in functions if not f.is_ready)
    except RuntimeError:  # no folder can hold the cache: another process could not hand anything over
        return
    if addresses and addresses[0] == functions[0].address:
        # The same modules as here, whatever lies in the current folder.
        call = (
            f"import sys; sys.path[:] = {sys.path!r}; from kernsel.numerics.runtime import ahead; "
            f"ahead.end_with_parent(); ahead.compile_these({addresses!r}, print)"
        )
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
        process = subprocess.Popen([sys.executable, "-u", "-P", "-c", call], stderr=subprocess.DEVNULL, **pipes)
        _second = _Second(process, set(addresses))
        atexit.register(_end, process)


def _end(process: subprocess.Popen[bytes]) -> None:
    with process:  # closes its standard input, and waits for its end
        process.kill()


def end_with_parent() -> None:
    """End this process when its parent ends, which holds the other end of the standard input: by SIGKILL, too."""

    def wait() -> None:
        while os.read(0, 1):
            pass
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def compile_these(addresses: Iterable[str], report: Callable[[str], object] | None = None) -> None:
    """Compile the functions at these addresses, into the cache; report the address of each that is done."""
    for address in addresses:
        module, _, name = address.partition(":")
        _ = getattr(importlib.import_module(module), name).code
        if report is not None:
            report(address)
