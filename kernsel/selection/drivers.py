"""Where work on parts of the rows is done: in this process, or on the workers of Dask.

A sum over rows is three functions: ``work(part) -> S`` gives the statistics of a part, ``merge(S, S) -> S`` those of
two parts together, and the caller finishes what is left. Parts are merged in a tree that depends on their number alone,
so that the last digit is the same wherever it is done, and where a part had to be done again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from logging import CRITICAL
from typing import Any, Protocol

from kernsel.errors import OptionError
from kernsel.numerics.runtime.jit import threads

LOCAL = "local"
"""In place of an address: workers on this machine, for as long as the work takes."""

ONE_THREAD = {"NUMBA_NUM_THREADS": "1"}
"""Workers on this machine share its threads; those of BLAS are limited by Dask itself."""


class Driver(Protocol):
    """Who does the work on parts; what it hands out for a part need not be the part itself."""

    def share(self, make: Callable[..., Any], *given: Any) -> Any:
        """Return a handle of ``make(*given)``, which all parts need."""

    def each(self, work: Callable[..., Any], parts: Sequence[Any], *shared: Any) -> list[Any]:
        """Return handles of ``work(part, *shared)``."""

    def reduce(
        self, work: Callable[..., Any], parts: Sequence[Any], merge: Callable[[Any, Any], Any], *shared: Any
    ) -> Any:
        """Return the values ``work(part, *shared)``, merged."""


def tree(values: Sequence[Any], merge: Callable[[Any, Any], Any]) -> Any:
    """Merge values two by two, neighbours first."""
    while len(values) > 1:
        pairs = [merge(one, other) for one, other in zip(values[::2], values[1::2], strict=False)]
        values = [*pairs, *values[len(values) - len(values) % 2 :]]
    return values[0]


@dataclass(frozen=True)
class InProcess:
    """Parts one after another in this process."""

    def share(self, make: Callable[..., Any], *given: Any) -> Any:
        """Return ``make(*given)``."""
        return make(*given)

    def each(self, work: Callable[..., Any], parts: Sequence[Any], *shared: Any) -> list[Any]:
        """Return the values themselves."""
        return [work(part, *shared) for part in parts]

    def reduce(
        self, work: Callable[..., Any], parts: Sequence[Any], merge: Callable[[Any, Any], Any], *shared: Any
    ) -> Any:
        """Return the values, merged."""
        return tree(self.each(work, parts, *shared), merge)


@dataclass(frozen=True)
class OnDask:
    """Parts on the workers of a client of Dask, which does those of a lost worker again; handles are futures.

    Parameters
    ----------
    client : distributed.Client
    """

    client: Any

    def share(self, make: Callable[..., Any], *given: Any) -> Any:
        """Return a future: unlike data that are scattered, it can be made again where it is lost."""
        return self.client.submit(make, *given, pure=False)

    def each(self, work: Callable[..., Any], parts: Sequence[Any], *shared: Any) -> list[Any]:
        """Return futures."""
        return [self.client.submit(work, part, *shared, pure=False) for part in parts]

    def reduce(
        self, work: Callable[..., Any], parts: Sequence[Any], merge: Callable[[Any, Any], Any], *shared: Any
    ) -> Any:
        """Return the values, merged on the workers."""
        found = self.each(work, parts, *shared)
        return tree(found, lambda one, other: self.client.submit(merge, one, other, pure=False)).result()


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
    make: Callable[..., Any] = Client
    local = {"n_workers": threads(), "threads_per_worker": 1, "env": ONE_THREAD, "silence_logs": CRITICAL}
    try:
        client = make(dashboard_address=None, **local) if address in (None, LOCAL) else make(address, timeout="10s")
    except (OSError, ValueError, TimeoutError) as error:
        raise OptionError(f"there is no scheduler of Dask at {address} ({type(error).__name__}); check it") from error
    with client:
        yield client
