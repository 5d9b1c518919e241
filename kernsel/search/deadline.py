"""The time that a selection may take, and when what is done in it is to end.

A search that is cut off leaves a choice that depends on how fast the machine is, and how busy; without a deadline no
choice does.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from kernsel.errors import OptionError
from kernsel.parts import read_seconds

SEARCH = 0.6
"""Share of the time that is left which a search may take: exact refits of the leaders follow, and the fit."""

AT_LEAST = 0.1
"""Share of its time that a run has which goes on from others, however long they took."""


class TimeIsUp(Exception):
    """A search has no time left; what it has scored stays on the board."""


@dataclass(frozen=True, order=True)
class Deadline:
    """When something is to be done; by default never.

    Parameters
    ----------
    end : float
        As ``time.monotonic`` counts.
    """

    end: float = math.inf

    @classmethod
    def within(cls, seconds: float) -> Deadline:
        """Return the deadline of what begins now and may take so many seconds."""
        return cls(time.monotonic() + seconds)

    @classmethod
    def within_left(cls, seconds: float, before: float) -> Deadline:
        """Return the deadline of what may take so many seconds, of which earlier runs took ``before``.

        It is ``AT_LEAST`` of them from now, as what they found out has to be read.
        """
        return cls.within(max(seconds - before, AT_LEAST * seconds))

    @classmethod
    def read(cls, given: str | float | None, before: float = 0.0) -> Deadline:
        """Return the deadline of what may take a number of seconds, or a text such as ``90s``, ``5min`` or ``1h``.

        Parameters
        ----------
        given : str, float or None
        before : float
            Seconds of it that earlier runs took, which this one goes on from.

        Raises
        ------
        OptionError
            That is no time.
        """
        if given is None:
            return cls()
        seconds = read_seconds(given)
        if seconds is None:
            raise OptionError(
                f"time {given!r} is no time: give seconds, minutes or hours, such as 90s, 5min or 1h (when "
                "names a column of times)"
            )
        return cls.within_left(seconds, before)

    @property
    def is_set(self) -> bool:
        """Whether there is one."""
        return self.end < math.inf

    @property
    def left(self) -> float:
        """Seconds that are left, 0 at the least."""
        return max(self.end - time.monotonic(), 0.0)

    def earlier(self, seconds: float) -> Deadline:
        """Return a deadline that leaves some seconds for what comes after."""
        return Deadline(self.end - seconds)

    def share(self, share: float) -> Deadline:
        """Return the deadline of what begins now and may take a share of the time that is left."""
        return Deadline.within(share * self.left)


NEVER = Deadline()
"""None."""

_in_force: ContextVar[Deadline] = ContextVar("deadline", default=NEVER)


@contextmanager
def limited_time(deadline: Deadline) -> Iterator[None]:
    """Put a deadline in force inside the block; of blocks in blocks the earliest one counts."""
    token = _in_force.set(min(deadline, _in_force.get()))
    try:
        yield
    finally:
        _in_force.reset(token)


def deadline_in_force() -> Deadline:
    """Return the deadline of the block that this runs in."""
    return _in_force.get()
