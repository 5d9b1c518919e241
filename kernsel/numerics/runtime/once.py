"""A property that is computed once, by any thread at any time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property as once
else:

    class once:  # noqa: N801  # used as a decorator
        """``functools.cached_property``, of which Python 3.11 computes one at a time, over all objects and threads."""

        def __init__(self, compute: Callable[[Any], Any]) -> None:
            self.compute = compute
            self.__doc__ = compute.__doc__

        def __get__(self, owner: Any, kind: Any = None) -> Any:
            if owner is None:
                return self
            value = owner.__dict__[self.compute.__name__] = self.compute(owner)
            return value


__all__ = ["once"]
