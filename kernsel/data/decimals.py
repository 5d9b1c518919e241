"""Whether a comma or a point is the decimal one, by all numbers of a table together.

``10,96`` has a decimal comma: no three digits follow. ``1.096`` may be either; beside ``10,96`` its point separates
thousands, beside ``2.5`` it is a decimal one. Where nothing decides, nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

NUMERIC = r"[+-]?(?=[.,]?\d)(?:\d{1,3}(?:[.,' \xa0\u202f]\d{3})+|\d*)(?:[.,]\d*)?(?:[eE][+-]?\d+)?"
"""A number with any marks."""
SIGNS = "%$€£¥"
"""What stands beside numbers that are per cent or money."""
SPACES = " '\xa0\u202f"
"""What separates thousands and nothing else: the last two are spaces at which no line ends."""


@dataclass
class Marks:
    """What the numbers of a table show of their marks.

    Parameters
    ----------
    shown : dict of str to str
        An example by what it shows: ``comma`` and ``point`` are decimal; ``group,`` and ``group.`` separate thousands;
        ``either,`` and ``either.`` are one or the other.
    space : str or None
        A space or an apostrophe that separates thousands.
    """

    shown: dict[str, str] = field(default_factory=dict)
    space: str | None = None

    def add(self, texts: Iterable[str]) -> None:
        """Look at more numbers."""
        for text in texts:
            body = text.strip().lstrip("+-").lower().partition("e")[0]
            for space in SPACES:
                if space in body:
                    self.space = self.space or space
                    body = body.replace(space, "")
            for mark in _evidence(body):
                self.shown.setdefault(mark, text.strip())

    def decide(self, decimal: str | None, thousands: str | None) -> tuple[str, str | None] | None:
        """Return decimal and thousands separators, given one of them or none; None if the numbers don't decide."""
        comma = any(mark in self.shown for mark in ("comma", "group."))
        point = any(mark in self.shown for mark in ("point", "group,"))
        if decimal is None and thousands in (",", "."):
            decimal = "." if thousands == "," else ","
        if decimal is None:
            if comma and point:
                return ".", self.space  # columns with the other marks stay text, and are refused by name
            if not (comma or point):
                return None if "either," in self.shown else (".", self.space)
            decimal = "," if comma else "."
        if thousands is not None:
            return decimal, thousands
        other, against = (".", point) if decimal == "," else (",", comma)
        grouped = any(mark + other in self.shown for mark in ("group", "either"))
        return decimal, other if grouped and not against else self.space

    @property
    def undecided(self) -> str:
        """An example of a number that can be read in two ways."""
        return self.shown["either,"]


def _evidence(body: str) -> tuple[str, ...]:
    """Return what commas and points of a number show: which one is decimal, and which separates thousands."""
    marks = [mark for mark in ",." if mark in body]
    if len(marks) == 2:
        decimal = max(marks, key=body.rfind)
        other = "." if decimal == "," else ","
        whole = body[: body.rfind(decimal)]
        if decimal in whole or not _grouped(whole.split(other)):
            return ()
        return ("comma" if decimal == "," else "point", f"group{other}")
    if not marks:
        return ()
    parts = body.split(marks[0])
    if len(parts) > 2:
        return (f"group{marks[0]}",) if _grouped(parts) else ()
    if _grouped(parts):
        return (f"either{marks[0]}",)
    return ("comma" if marks[0] == "," else "point",)


def _grouped(parts: list[str]) -> bool:
    """Say whether digits stand in groups of three, the first one shorter or not and without a zero in front."""
    return bool(re.fullmatch(r"[1-9]\d{0,2}", parts[0])) and all(re.fullmatch(r"\d{3}", part) for part in parts[1:])
