"""Names of columns in messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from kernsel.errors import DataError
from kernsel.text import meant


def check_unique(columns: Sequence[str], where: str) -> None:
    """Raise a DataError if a name occurs twice among ``columns``."""
    twice = [name for name, count in Counter(columns).items() if count > 1]
    if twice == [""]:
        raise DataError(f"{where}: several columns have no name; every column needs its own name")
    if twice:
        raise DataError(f"{where}: the header repeats {listed(twice)}; every column needs its own name")


def told_apart(names: Iterable[str]) -> list[str]:
    """Return names of which each that was there before has a number behind it, the least that makes it another one."""
    found: dict[str, None] = {}
    for name in names:
        other, number = name, 2
        while other in found:
            other, number = f"{name} ({number})", number + 1
        found[other] = None
    return list(found)


def check_column(columns: Iterable[object], name: str, where: str) -> None:
    """Raise a DataError with a suggestion if ``name`` isn't one of ``columns``."""
    names = [str(column) for column in columns]
    if name not in names:
        # reversed, so that of two names that differ in case the first one is meant
        hint = meant(name, reversed(names)) or f"; its columns are {listed(names)}"
        raise DataError(f"{where} has no column {name!r}{hint}")


def listed(names: Sequence[str], most: int = 8) -> str:
    """Return the names quoted, with commas, cut after ``most`` of them."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def some(texts: Sequence[str], most: int = 12) -> str:
    """Return the first of some texts, and how many more there are."""
    return ", ".join(texts) if len(texts) <= most else f"{', '.join(texts[:most])} and {len(texts) - most} more"
