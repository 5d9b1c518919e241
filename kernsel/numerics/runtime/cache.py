"""Where machine code is kept on disk: it belongs to the sources of all numerics, so that nothing stale is loaded.

A cache that can't be written is no error. The order is: ``NUMBA_CACHE_DIR``, beside the module, the user's cache
folder, no cache; the last is said once (``compiling``). A damaged cache is written anew.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

import numba
from numba.core.dispatcher import Dispatcher

COMPILES = not numba.config.DISABLE_JIT
"""Whether loops are compiled; with ``NUMBA_DISABLE_JIT=1`` they are plain Python functions."""


class Loop(Protocol):
    """A function that is compiled when it is needed: see ``jit.Compiled``."""

    @property
    def options(self) -> tuple[Any, Any, dict[str, Any]]:
        """The function, its signature, and what Numba is told."""

    @property
    def address(self) -> str:
        """Where the function is, ``module:name``."""

    @property
    def is_ready(self) -> bool:
        """Whether it is compiled, or loaded."""


def missing(functions: Iterable[Loop]) -> tuple[str, ...]:
    """Return the addresses of what is not on disk; RuntimeError where no folder can hold it."""
    if not COMPILES:
        return ()
    return tuple(f.address for f in functions if not on_disk(cacheable(f.options[0], f.options[2]), f.options[1]))


def cache_folder(functions: Iterable[Loop]) -> str:
    """Return the folder that holds the cache of these functions."""
    return str(os.path.commonpath([cacheable(f.options[0], f.options[2])._cache.cache_path for f in functions]))


def cacheable(function: Callable[..., object], options: dict[str, Any]) -> Dispatcher:
    """Return the function with a place on disk, before it is compiled or loaded."""
    dispatcher = numba.njit(cache=True, **options)(function)
    file = dispatcher._cache._cache_file
    file._source_stamp = (file._source_stamp, _sources())  # Numba's own stamp is that of the function's file alone
    return dispatcher


@functools.cache
def _sources() -> str:
    """Hash all files of the numerics: its functions become part of each other's machine code across files."""
    return hash_of(Path(__file__).parents[1])


def hash_of(folder: Path) -> str:
    """Return a hash of the Python files below a folder, at any depth."""
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(folder.rglob("*.py")))).hexdigest()


def on_disk(dispatcher: Dispatcher, signature: object) -> bool:
    """Say whether the index names machine code of these sources for this processor."""
    cache = dispatcher._cache
    try:
        return cache._index_key(signature, dispatcher.targetctx.codegen()) in cache._cache_file._load_index()
    except Exception:  # noqa: BLE001  # a damaged file can raise anything when it is unpickled
        return False
