"""Where work on parts of the rows is done: in this process, or on the workers of Dask.

A sum over rows is three functions: ``work(part) -> S`` gives the statistics of a part, ``merge(S, S) -> S`` those of
two parts together, and the caller finishes what is left. Parts are merged in a tree that depends on their number alone,
so that the last digit is the same wherever it is done, and where a part had to be done again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from kernsel.selection.cluster import PATIENCE, result_of

S = TypeVar("S")


class Driver(Protocol):
    """Who does the work on parts; what it hands out for a part need not be the part itself."""

    def share(self, make: Callable[..., object], *given: object) -> Any:
        """Return a handle of ``make(*given)``, which all parts need."""

    def each(self, work: Callable[..., object], parts: Sequence[object], *shared: object) -> list[Any]:
        """Return handles of ``work(part, *shared)``."""

    def reduce(self, work: Callable[..., S], parts: Sequence[object], merge: Callable[[S, S], S], *shared: object) -> S:
        """Return the values ``work(part, *shared)``, merged."""


def tree(values: Sequence[S], merge: Callable[[S, S], S]) -> S:
    """Merge values two by two, neighbours first."""
    while len(values) > 1:
        pairs = [merge(one, other) for one, other in zip(values[::2], values[1::2], strict=False)]
        values = [*pairs, *values[len(values) - len(values) % 2 :]]
    return values[0]


@dataclass(frozen=True)
class InProcess:
    """Parts one after another in this process."""

    def share(self, make: Callable[..., object], *given: object) -> Any:
        """Return ``make(*given)``."""
        return make(*given)

    def each(self, work: Callable[..., object], parts: Sequence[object], *shared: object) -> list[Any]:
        """Return the values themselves."""
        return [work(part, *shared) for part in parts]

    def reduce(self, work: Callable[..., S], parts: Sequence[object], merge: Callable[[S, S], S], *shared: object) -> S:
        """Return the values, merged."""
        merged: list[tuple[int, S]] = []  # of 2^k parts each, as in a tree, of which few are there at a time
        for part in parts:
            size, value = 1, work(part, *shared)
            while merged and merged[-1][0] == size:
                size, value = 2 * size, merge(merged.pop()[1], value)
            merged.append((size, value))
        value = merged.pop()[1]
        while merged:
            value = merge(merged.pop()[1], value)
        return value


@dataclass(frozen=True)
class OnDask:
    """Parts on the workers of a client of Dask, which does those of a lost worker again; handles are futures.

    Parameters
    ----------
    client : distributed.Client
    patience : float
        Seconds that no worker may be at work.
    """

    client: Any
    patience: float = PATIENCE

    def share(self, make: Callable[..., object], *given: object) -> Any:
        """Return a future: unlike data that are scattered, it can be made again where it is lost."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")  # the advice is to scatter it
            return self.client.submit(make, *given, pure=False)

    def each(self, work: Callable[..., object], parts: Sequence[object], *shared: object) -> list[Any]:
        """Return futures."""
        return [self.client.submit(work, part, *shared, pure=False) for part in parts]

    def reduce(self, work: Callable[..., S], parts: Sequence[object], merge: Callable[[S, S], S], *shared: object) -> S:
        """Return the values, merged on the workers."""
        found = self.each(work, parts, *shared)
        value: S = result_of(
            tree(found, lambda one, other: self.client.submit(merge, one, other, pure=False)),
            self.client,
            self.patience,
        )
        return value
