"""Compile the numerical loops: how each is declared.

A kernel of the library is written as a plain function under ``@jit(signature)``. It is compiled on its first call,
not at import, for that one signature, and kept on disk so that no later process compiles it again.

* Signatures are explicit: one machine-code version a function, and a loss passed as a function pointer (``LOSS``)
  does not make a new one.
* ``fastmath`` is never ``True``: that would delete the guards against NaN and infinity. Functions that profit from
  reordered sums ask for ``REORDER``.
* The cache belongs to the sources of all numerics (``cache``).
* A parallel loop is a compiled loop that releases the interpreter, on several threads (``threads``).
* ``NUMBA_DISABLE_JIT=1`` runs all of it as plain Python, for coverage and debuggers: signatures are ignored, function
  pointers become plain calls, and BLAS and LAPACK are called at the same addresses (``blas``).
* Numba holds one lock while it compiles. A command that finds nothing compiled lets a second process compile the part
  that it will need last (``ahead``), into the same cache; ``kernsel warmup`` has several compile all there is.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numba
import numpy as np
from numba.core import types as types  # for signatures elsewhere, too
from numba.core.dispatcher import Dispatcher

from kernsel.numerics.runtime import ahead, compiling
from kernsel.numerics.runtime.cache import COMPILES
from kernsel.numerics.runtime.drafts import DraftCompiler
from kernsel.numerics.runtime.threads import share as share  # for loops of plugins

REORDER = {"reassoc", "contract", "nsz", "arcp"}
"""The fast-math flags that keep NaN and infinity intact."""

CONTRACT = {"contract"}
"""Fused multiply-adds only: no sum is reordered, so tricks that rest on rounding survive."""

f8, i8, b1 = types.float64, types.int64, types.boolean
f8_1, f8_2, f8_3 = f8[::1], f8[:, ::1], f8[:, :, ::1]
i8_1 = i8[::1]
given_1, given_2 = (types.Array(f8, dimensions, "C", readonly=True) for dimensions in (1, 2))
"""Numbers and rows as they were given: they may be an array that can't be written to, such as a memory map."""

LOSS = types.FunctionType(types.UniTuple(f8, 3)(f8, f8, f8_1))
"""A loss as a function pointer: ``(y, f, parameters) -> (V, dV/df, d2V/df2)``."""


def record(kind: type, *members: Any) -> types.BaseTuple:
    """Return the Numba type of a NamedTuple ``kind`` whose fields have the types ``members``.

    A loop takes arguments that belong together as one NamedTuple. What Python hands over must have these very types: an
    int where the record has a float, or an array that may be written to where it has a read-only one, is refused.
    """
    return types.BaseTuple.from_types(members, kind)


def jit(signature: object, *, fastmath: set[str] | bool = False) -> Callable[[Callable[..., object]], Compiled]:
    """Compile ``function`` for ``signature`` on its first call, and cache the machine code on disk.

    Parameters
    ----------
    signature : numba signature
    fastmath : set of str
        Numba fast-math flags: ``REORDER``, ``CONTRACT`` or none.
    """
    return lambda function: Compiled(function, signature, {"fastmath": fastmath, "no_cfunc_wrapper": True})


defined: list[Compiled] = []
"""All functions of the modules that have been imported."""


class Compiled:
    """A function that is compiled when it is first called or passed to another one."""

    def __init__(self, function: Any, signature: Any, options: Mapping[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.options = (function, signature, {"nogil": True, "error_model": "numpy", **options})
        self._lock = threading.Lock()
        self._code: Dispatcher | None = None
        defined.append(self)

    @property
    def code(self) -> Dispatcher:
        """The compiled function, or what stands for it where nothing is compiled."""
        if not COMPILES:
            return self._plain()
        with self._lock:
            if self._code is None:
                with compiling.clock:
                    ahead.wait_for(self.address)
                    self._code = compiling.compiled(*self.options)
            return self._code

    def _plain(self) -> Any:
        """Return the function itself, which divides by 0 without a word as the compiled one does."""
        return np.errstate(all="ignore")(self.options[0])

    @property
    def is_ready(self) -> bool:
        """Whether it is compiled, or loaded."""
        return self._code is not None

    @property
    def address(self) -> str:
        """Where the function is, ``module:name``."""
        function = self.options[0]
        return f"{function.__module__}:{function.__name__}"

    def __call__(self, *args: Any) -> Any:
        return self.code(*(a.code if isinstance(a, Compiled) else a for a in args))


class Pointer(Compiled):
    """A function that compiled loops call by its address; it has no entry for Python, which saves compile time."""

    def __call__(self, *args: Any) -> Any:
        raise TypeError(f"{self.address} is called by compiled loops only")

    def _plain(self) -> Any:
        return self.options[0]  # the loop that calls it has silenced divisions


def inline(function: Callable[..., object] | None = None, *, fastmath: set[str] | bool = False) -> Any:
    """Compile a small function that only other compiled functions call; it becomes part of their machine code.

    It keeps its own fast-math flags there: ``@inline`` or ``@inline(fastmath=CONTRACT)``. It has no entry for Python, a
    call from where ends the process: entries for all of them would take a seventh of the compile time of a large loop.
    """
    decorate = numba.njit(
        fastmath=fastmath, error_model="numpy", no_cfunc_wrapper=True, no_cpython_wrapper=True,
        pipeline_class=DraftCompiler,
    )  # fmt: skip
    return decorate if function is None else decorate(function)


def pointer(kind: types.FunctionType) -> Callable[[Callable[..., object]], Pointer]:
    """Compile a function of the type ``kind`` so that it can be passed to a compiled loop as a function pointer.

    The loop is then compiled once, whatever it is given, and without the body of the function in it.
    """
    return lambda function: Pointer(function, kind.signature, {"no_cpython_wrapper": True})
