"""Clusters of Dask: who is connected to, workers on this machine, and what is waited for no longer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from logging import CRITICAL
from multiprocessing import get_all_start_methods
from typing import Any

from kernsel.errors import OptionError, SelectionError
from kernsel.numerics.runtime.threads import threads

LOCAL = "local"
"""In place of an address: workers on this machine, for as long as the work takes."""

PATIENCE = 60.0
"""Seconds that no worker of a cluster may be at work, or there, before what was asked of it is given up."""

GLANCE = 1.0
"""Seconds between two looks at whether workers are at work."""

LOST = "10 minutes"
"""Until a local worker that was lost is given up, not to be started anew. Dask's own 15 s are fewer than it takes to
start one on a busy machine, and then there is none in the end."""

WORK = "kernsel.selection.parts.work"
"""What workers do is found in this module."""

FORKS = "forkserver"
"""Workers on this machine begin as copies of one process that has imported all: each saves a second, and three when one
is started anew on a busy machine."""

IMPORTED = ["distributed", WORK, "kernsel.selection.ondask", "pandas", "pyarrow.parquet"]
"""What workers need; a module that isn't there is passed over."""

ONE_THREAD = {"NUMBA_NUM_THREADS": "1"}
"""Workers on this machine share its threads; those of BLAS are limited by Dask itself."""


def result_of(future: Any, client: Any, patience: float = PATIENCE) -> Any:
    """Return the value of a future.

    Parameters
    ----------
    future : distributed.Future
    client : distributed.Client
        That it is of.
    patience : float
        Seconds that no worker may be at work.

    Raises
    ------
    SelectionError
        No worker is there, or does anything, for longer than the patience; one task has killed several of them; or
        the scheduler is gone.
    """
    from distributed import wait
    from distributed.scheduler import KilledWorker

    look: Callable[..., Any] = wait
    seen = time.monotonic()
    while not future.done():
        with suppress(TimeoutError):
            look(future, timeout=GLANCE)
        if client.status != "running" or future.cancelled():
            raise SelectionError("the scheduler of Dask is gone, and with it all that its workers had; begin again")
        if any(client.processing().values()):
            seen = time.monotonic()
        elif time.monotonic() - seen > patience:
            address, there = client.scheduler.address, client.scheduler_info()["workers"]
            what = "the workers of Dask have done nothing" if there else "no worker of Dask has been left"
            next_step = "restart them" if there else "start one"
            raise SelectionError(f"{what} at {address} for {patience:g} s; {next_step}, and begin again")
    try:
        return future.result()
    except KilledWorker as error:
        raise SelectionError(
            f"workers of Dask die of the same work, one after another ({error.last_worker.address} was the last): "
            "most likely it takes too much memory; give them more, cut rows into smaller parts, or lower the rank"
        ) from error


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Give a client of Dask: of an address, of workers on this machine, or for None the one that there is, if any.

    Raises
    ------
    OptionError
        Dask isn't installed, or there is nobody at the address.
    """
    try:
        from distributed import Client, get_client
    except ImportError as error:
        raise OptionError("this needs the package dask: pip install 'kernsel[dask]'") from error
    client = None
    if address is None:
        with suppress(ValueError):  # there is none
            client = get_client()
    if client is not None:
        yield client
        return
    if address in (None, LOCAL):
        with local_client(threads()) as client:
            yield client
        return
    make: Callable[..., Any] = Client
    try:
        client = make(address, timeout="10s")
    except (OSError, ValueError, TimeoutError) as error:
        raise OptionError(f"there is no scheduler of Dask at {address} ({type(error).__name__}); check it") from error
    with client:
        yield client


@contextmanager
def local_client(workers: int) -> Iterator[Any]:
    """Give a client of Dask with workers on this machine, each of one thread.

    They import kernsel before they are given work, as Dask would have them do it while they should answer.
    """
    import dask
    from distributed import Client
    from distributed.utils import get_mp_context

    options = {"n_workers": workers, "threads_per_worker": 1, "env": ONE_THREAD, "preload": [WORK]}
    make: Callable[..., Any] = Client
    environment = dict(dask.config.get("distributed.nanny.pre-spawn-environ")) | ONE_THREAD
    environment.pop("MALLOC_TRIM_THRESHOLD_", None)  # by which each block of features would come as new pages
    settings = {
        "distributed.admin.system-monitor.interval": "10s",  # all that watch themselves take 5 % of a processor
        "distributed.admin.tick.interval": "1s",
        "distributed.deploy.lost-worker-timeout": LOST,
        "distributed.nanny.pre-spawn-environ": environment,
        "distributed.scheduler.work-stealing": False,  # or parts of rows would go from one worker to another
        "distributed.worker.multiprocessing-method": FORKS if FORKS in get_all_start_methods() else "spawn",
        "distributed.worker.profile.enabled": False,
    }
    with dask.config.set(settings):
        if FORKS in get_all_start_methods():
            context: Callable[..., Any] = get_mp_context
            context().set_forkserver_preload(IMPORTED)  # most of which Dask's own list lacks
        with make(dashboard_address=":0", silence_logs=CRITICAL, **options) as client:
            yield client
