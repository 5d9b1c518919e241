"""How much memory the process may have: the least of what the machine has and of what anything else allows it.

Limits are those of the shell (``ulimit -v``), of the container (control groups of Linux, versions 1 and 2), and one
that was asked for.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PROC, CGROUPS = Path("/proc/self"), Path("/sys/fs/cgroup")

_asked: list[int] = []


@contextmanager
def limited_memory(limit: int | None) -> Iterator[None]:
    """Let the process have no more than so many bytes of memory inside the block; None for no such limit.

    That holds for what is refused, or done with less, before it is allocated: see ``kernsel.errors.check_memory``. It
    is the process that is limited: of several blocks at a time, in one thread or in several, the least limit counts.
    """
    if limit is None:
        yield
        return
    _asked.append(limit)
    try:
        yield
    finally:
        _asked.remove(limit)


def memory_limit() -> int | None:
    """Return the bytes of memory that the process may have; None where the system doesn't tell.

    Of a limit on addresses, which programs that were loaded count for as well, that is what is left of it.
    """
    found = [*_machine(), *_containers(), addresses_left(), *_asked]
    return min((limit for limit in found if limit is not None), default=None)


def has_memory(needed: float, share: float = 1.0) -> bool:
    """Tell whether so many bytes are no more than a share of the memory that the process may have."""
    limit = memory_limit()
    return limit is None or needed <= share * limit


def give_back() -> None:
    """Give memory back to the system that tables of Arrow had, and that its pool keeps for the next ones."""
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()


def addresses_left() -> int | None:
    """Return what is left of a limit on the addresses of the process (``ulimit -v``); None without one."""
    with suppress(ImportError, ValueError, OSError):
        from resource import RLIM_INFINITY, RLIMIT_AS, getrlimit

        limit = getrlimit(RLIMIT_AS)[0]
        if limit != RLIM_INFINITY:
            used = int((PROC / "statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
            return max(limit - used, 0)
    return None


def _machine() -> Iterator[int]:
    with suppress(ValueError, OSError, AttributeError):
        yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _containers() -> Iterator[int]:
    """Give the limits of the process's control groups: each counts for the groups below it as well."""
    with suppress(OSError, ValueError):
        for line in (PROC / "cgroup").read_text().splitlines():
            _, controllers, place = line.split(":", 2)
            if not controllers:
                root, name = CGROUPS, "memory.max"
            elif "memory" in controllers.split(","):
                root, name = CGROUPS / "memory", "memory.limit_in_bytes"
            else:
                continue
            group = Path(place.lstrip("/"))
            # Inside a container the root that is mounted may be the group itself, whatever its path is outside.
            for each in (group, *group.parents):
                with suppress(OSError, ValueError):
                    yield int((root / each / name).read_text())
