"""Compile the numerical loops: the only file that configures Numba.

A kernel of the library is written as a plain function under ``@jit(signature)``. It is compiled on its first call,
not at import, for that one signature, and kept on disk so that no later process compiles it again.

* Signatures are explicit: one machine-code version a function, and a loss passed as a function pointer (``LOSS``)
  does not make a new one.
* ``fastmath`` is never ``True``: that would delete the guards against NaN and infinity. Functions that profit from
  reordered sums ask for ``REORDER``.
* The cache belongs to the sources of all numerics: after an upgrade nothing stale is loaded.
* A parallel loop is a compiled loop over ``range(first, jobs, step)`` that releases the interpreter and runs on one
  thread for each ``first < step`` (``share``). ``parallel=True`` does the same at 2 s more of compile time a loop, with
  a pool that neither survives a fork nor may be entered from two threads.
* ``NUMBA_DISABLE_JIT=1`` runs all of it as plain Python, for coverage and debuggers: signatures are ignored, function
  pointers become plain calls, and BLAS and LAPACK are called at the same addresses (``blas``).
* A cache that can't be written is no error. The order is: ``NUMBA_CACHE_DIR``, beside the module, the user's cache
  folder, no cache; the last says so once. A damaged cache is written anew.
* Numba holds one lock while it compiles. A command that finds nothing compiled lets a second process compile the part
  that it will need last (``compile_ahead``), into the same cache; ``kernsel warmup`` has several compile all there
  is (``missing``).
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import importlib
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numba
import numpy as np
from numba.core import types as types  # for signatures elsewhere, too
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.dispatcher import Dispatcher

from kernsel.errors import CompilationWarning
from kernsel.system.interrupts import raises

REORDER = {"reassoc", "contract", "nsz", "arcp"}
"""The fast-math flags that keep NaN and infinity intact."""

CONTRACT = {"contract"}
"""Fused multiply-adds only: no sum is reordered, so tricks that rest on rounding survive."""

f8, i8, b1 = types.float64, types.int64, types.boolean
f8_1, f8_2, f8_3 = f8[::1], f8[:, ::1], f8[:, :, ::1]
i8_1 = i8[::1]
given_1, given_2 = (types.Array(f8, dimensions, "C", readonly=True) for dimensions in (1, 2))
"""Numbers and rows as they were given: they may be an array that can't be written to, such as a memory map."""

COMPILES = not numba.config.DISABLE_JIT
"""Whether loops are compiled; with ``NUMBA_DISABLE_JIT=1`` they are plain Python functions."""

LOSS = types.FunctionType(types.UniTuple(f8, 3)(f8, f8, f8_1))
"""A loss as a function pointer: ``(y, f, parameters) -> (V, dV/df, d2V/df2)``."""

announce: Callable[[str], None] | None = None
"""Called with one line before the first compilation of a process (the command line prints it)."""

ahead = False
"""Whether ``compile_ahead`` may start a process (the command line lets it)."""

_announced = _uncached = False


def record(kind: type, *members: Any) -> types.BaseTuple:
    """Return the Numba type of a NamedTuple ``kind`` whose fields have the types ``members``.

    A loop takes arguments that belong together as one NamedTuple. What Python hands over must have these very types: an
    int where the record has a float, or an array that may be written to where it has a read-only one, is refused.
    """
    return types.BaseTuple.from_types(members, kind)


def jit(signature: Any, *, fastmath: set[str] | bool = False) -> Callable[[Any], Compiled]:
    """Compile ``function`` for ``signature`` on its first call, and cache the machine code on disk.

    Parameters
    ----------
    signature : numba signature
    fastmath : set of str
        Numba fast-math flags: ``REORDER``, ``CONTRACT`` or none.
    """
    return lambda function: Compiled(function, signature, {"fastmath": fastmath, "no_cfunc_wrapper": True})


class _Clock:
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


_clock = _Clock()


def compile_seconds() -> float:
    """Return the time that compiling has taken in this process, or takes now."""
    return _clock.seconds


defined: list[Compiled] = []
"""All functions of the modules that have been imported."""


class Compiled:
    """A function that is compiled when it is first called or passed to another one."""

    def __init__(self, function: Any, signature: Any, options: Mapping[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self._options = (function, signature, {"nogil": True, "error_model": "numpy", **options})
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
                with _clock:
                    if _second is not None:
                        _second.wait_for(self.address)
                    self._code = _compile(*self._options)
            return self._code

    def _plain(self) -> Any:
        """Return the function itself, which divides by 0 without a word as the compiled one does."""
        return np.errstate(all="ignore")(self._options[0])

    @property
    def address(self) -> str:
        """Where the function is, ``module:name``."""
        function = self._options[0]
        return f"{function.__module__}:{function.__name__}"

    def __call__(self, *args: Any) -> Any:
        return self.code(*(a.code if isinstance(a, Compiled) else a for a in args))


class Pointer(Compiled):
    """A function that compiled loops call by its address; it has no entry for Python, which saves compile time."""

    def __call__(self, *args: Any) -> Any:
        raise TypeError(f"{self.address} is called by compiled loops only")

    def _plain(self) -> Any:
        return self._options[0]  # the loop that calls it has silenced divisions


class _Draft(JITCodeLibrary):  # type: ignore[misc]  # Numba has no types
    """LLVM's code of a function as it was written: neither optimised nor turned into machine code.

    It is linked into its callers, and optimised with the outermost of them; Numba would do both for every function by
    itself as well, which takes a quarter of all compile time.
    """

    @property
    def codegen(self) -> _NoEngine:
        return _NoEngine()

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0  # as where there is none of that name

    def _optimize_functions(self, module: Any) -> None:
        pass

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True


class _NoEngine:
    """What holds machine code, for a function without any."""

    def set_env(self, name: str, environment: object) -> None:
        """Leave out the globals of a function, which Numba hands to machine code for exceptions with arguments."""


class _DraftCompiler(Compiler):  # type: ignore[misc]
    """The usual compiler, up to the code of LLVM."""

    def define_pipelines(self) -> Any:
        state = self.state
        state.library = _Draft(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()


def inline(function: Any = None, *, fastmath: set[str] | bool = False) -> Any:
    """Compile a small function that only other compiled functions call; it becomes part of their machine code.

    It keeps its own fast-math flags there: ``@inline`` or ``@inline(fastmath=CONTRACT)``. It has no entry for Python, a
    call from where ends the process: entries for all of them would take a seventh of the compile time of a large loop.
    """
    decorate = numba.njit(
        fastmath=fastmath, error_model="numpy", no_cfunc_wrapper=True, no_cpython_wrapper=True,
        pipeline_class=_DraftCompiler,
    )  # fmt: skip
    return decorate if function is None else decorate(function)


def pointer(kind: types.FunctionType) -> Callable[[Any], Pointer]:
    """Compile a function of the type ``kind`` so that it can be passed to a compiled loop as a function pointer.

    The loop is then compiled once, whatever it is given, and without the body of the function in it.
    """
    return lambda function: Pointer(function, kind.signature, {"no_cpython_wrapper": True})


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
def _compile(function: Any, signature: Any, options: dict[str, Any]) -> Dispatcher:
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


def compile_ahead(*functions: Compiled) -> None:
    """Start a process that compiles what of ``functions`` is not on disk, while this one does other things.

    The first takes longest: where nothing but others is missing, a process would take as long to start. They are
    compiled in the order that they are given in; whoever calls one of them waits for it. Commands ask for it
    (``ahead``); a library should not start processes.
    """
    global _second
    busy = _second is not None and _second.process.poll() is None
    if not ahead or busy or not sys.executable:
        return
    try:
        addresses = missing(f for f in functions if f._code is None)
    except RuntimeError:  # no folder can hold the cache: another process could not hand anything over
        return
    if addresses and addresses[0] == functions[0].address:
        # The same modules as here, whatever lies in the current folder.
        call = (
            f"import sys; sys.path[:] = {sys.path!r}; "
            f"from kernsel.numerics.runtime import jit; jit.end_with_parent(); jit.compile_these({addresses!r}, print)"
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


def missing(functions: Iterable[Compiled]) -> tuple[str, ...]:
    """Return the addresses of what is not on disk; RuntimeError where no folder can hold it."""
    if not COMPILES:
        return ()
    return tuple(f.address for f in functions if not _on_disk(_cacheable(f._options[0], f._options[2]), f._options[1]))


def cache_folder(functions: Iterable[Compiled]) -> str:
    """Return the folder that holds the cache of these functions."""
    return str(os.path.commonpath([_cacheable(f._options[0], f._options[2])._cache.cache_path for f in functions]))


def compile_these(addresses: Iterable[str], report: Callable[[str], object] | None = None) -> None:
    """Compile the functions at these addresses, into the cache; report the address of each that is done."""
    for address in addresses:
        module, _, name = address.partition(":")
        _ = getattr(importlib.import_module(module), name).code
        if report is not None:
            report(address)


def _cached(function: Any, signature: Any, options: dict[str, Any], anew: bool = False) -> Dispatcher:
    """Load the machine code from disk, or compile it and keep it there; ``anew`` throws away what was kept."""
    dispatcher = _cacheable(function, options)
    if anew:
        dispatcher._cache.flush()
    if anew or not _on_disk(dispatcher, signature):
        _announce()
    dispatcher.compile(signature)
    return dispatcher


def _cacheable(function: Any, options: dict[str, Any]) -> Dispatcher:
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


def _on_disk(dispatcher: Dispatcher, signature: Any) -> bool:
    """Say whether the index names machine code of these sources for this processor."""
    cache = dispatcher._cache
    try:
        return cache._index_key(signature, dispatcher.targetctx.codegen()) in cache._cache_file._load_index()
    except Exception:  # noqa: BLE001  # a damaged file can raise anything when it is unpickled
        return False


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _announce() -> None:
    global _announced
    if announce is not None and not _announced:
        announce("compiling the numerical loops (once after an install or an upgrade) ...")
    _announced = True


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


def share_each(work: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
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


def _alone(work: Callable[[Any], Any], item: Any) -> Any:
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
