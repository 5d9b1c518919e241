"""``kernsel warmup``: compile all numerical loops now, so that no selection has to wait for them."""

from __future__ import annotations

import signal
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer

from kernsel.cli import console
from kernsel.cli.arguments import flag
from kernsel.errors import CompilationError, CompilationWarning


def warmup(
    quiet: Annotated[bool, flag("--quiet", "Print nothing but errors.", short="-q")] = False,
) -> None:
    """Compile all numerical loops ahead of selections.

    A selection compiles what it needs and is not on disk yet. After a warm-up that is nothing, for plugins too, until
    kernsel is upgraded or the processor is another one.
    """
    with console.guarded():
        started = time.perf_counter()
        from kernsel.numerics.runtime import cache, jit
        from kernsel.numerics.runtime.threads import threads

        define_loops()
        try:
            missing = cache.missing(jit.defined)
            folder = cache.cache_folder(jit.defined)
        except RuntimeError as error:
            raise CompilationError("no folder can hold the compiled loops; set NUMBA_CACHE_DIR to one") from error
        processes = min(threads(), len(missing))
        with console.progress(quiet) as report:
            for done, address in enumerate(_compiled(missing, processes), start=1):
                if report is not None:
                    report(done, len(missing), address.replace("kernsel.", ""))
        if left := cache.missing(jit.defined):
            raise CompilationError(
                f"{len(left)} compiled loops can't be kept in {folder}: make room there and let it be writable, or set "
                "NUMBA_CACHE_DIR to another folder"
            )
        seconds = time.perf_counter() - started
        if not quiet and missing:
            how = f"in {seconds:.0f} s by {processes} process{'es' * (processes > 1)}"
            typer.echo(f"compiled {len(missing)} of {len(jit.defined)} loops {how}; they are in {folder}")
        elif not quiet:
            typer.echo(f"nothing was missing: all {len(jit.defined)} loops are in {folder}")


def define_loops() -> None:
    """Import all modules that have loops."""
    import kernsel.numerics.kriging
    import kernsel.selection.api
    import kernsel.selection.parts.work  # noqa: F401  # defines loops, as those above
    from kernsel import registry

    for claim in registry.claims():
        registry.find_fault(claim)  # a plugin has loops of its own; one that is broken has none


def _compiled(addresses: Sequence[str], processes: int) -> Iterator[str]:
    """Compile functions in several processes, since Numba compiles one at a time in each; give each when it is done."""
    if not addresses:
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool

    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), _leave_interrupts_to_parent) as pool:
        try:
            with _uninterrupted():  # the processes are started here; one that is half started can't be ended quietly
                jobs = [pool.submit(_compile, address) for address in addresses]
            for each in as_completed(jobs):
                yield each.result()
        except BrokenProcessPool as error:
            raise CompilationError(
                "a compiling process was ended, for want of memory perhaps; NUMBA_NUM_THREADS=1 uses one process"
            ) from error
        except BaseException:  # Ctrl-C above all: the pool would wait until they have compiled what they began
            for child in multiprocessing.active_children():
                child.kill()
            raise


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let Ctrl-C wait until the block has ended, and leave processes that are started in it alone.

    The mask is for those processes, which inherit it. It binds this thread only, and any other may take the signal, so
    that it is caught here as well.
    """
    masks = hasattr(signal, "pthread_sigmask")
    came = []
    before = signal.signal(signal.SIGINT, lambda *_: came.append(True))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if masks else ()
    try:
        yield
    finally:
        if masks:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)  # takes a signal that waited
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt


def _leave_interrupts_to_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _compile(address: str) -> str:
    from kernsel.numerics.runtime.ahead import compile_these

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CompilationWarning)  # the parent sees what is not on disk afterwards
        compile_these([address])
    return address
