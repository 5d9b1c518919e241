"""What a user says about the columns of a table, and about values that are missing."""

from __future__ import annotations

import fnmatch
import glob
import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kernsel.data.names import check_column, listed
from kernsel.errors import OptionError

MISSING = ("impute", "drop", "refuse")
ONE_HOT, HAMMING = CODINGS = ("onehot", "hamming")
Names = str | int | Sequence[str | int]


@dataclass(frozen=True)
class Choices:
    """The options of a user about columns of a table; what they leave open is found out from the values.

    Parameters
    ----------
    drop : tuple of str
        Columns that are no features.
    keep : tuple of str
        If there are any, the only features.
    categorical, numeric : tuple of str
        Columns whose type is set: what isn't a number in a numeric one is taken for missing.
    ordinal : mapping of str to tuple of str
        Levels from the least to the greatest.
    missing : str
        ``"impute"``: the mean given the others of the row, or the most frequent level, takes the place of what is
        missing; ``"drop"``: rows in which something is missing are left out; ``"refuse"``: they are an error. Rows
        without a target are left out unless they are refused.
    categories : str
        ``"onehot"``: each category is a feature; ``"hamming"``: all categories of a column share one relevance, and one
        that is new differs from all others.
    rare : int
        Categories of fewer rows than this are one.
    """

    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    ordinal: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    missing: str = "impute"
    categories: str = ONE_HOT
    rare: int = 1

    @property
    def named(self) -> bool:
        """Whether any column is named."""
        return bool(self.drop or self.keep or self.categorical or self.numeric or self.ordinal)

    def resolved(self, columns: Sequence[str], others: Iterable[str], where: str) -> Choices:
        """Return the choices with each pattern replaced by the columns that it matches.

        Parameters
        ----------
        columns : list of str
            Those that may be features.
        others : iterable of str
            Columns that are no features in any case: targets, weights and the like.
        where : str
            The table, for messages.

        Raises
        ------
        OptionError
            A name or pattern matches no column, or two options name one column.
        """
        found: dict[str, Any] = {
            role: _expanded(getattr(self, role), columns, others, where, role)
            for role in ("drop", "keep", "categorical", "numeric")
        }
        _expanded(tuple(self.ordinal), columns, others, where, "ordinal")
        roles = {**{role: set(names) for role, names in found.items()}, "ordinal": set(self.ordinal)}
        for one, other in (
            *(("drop", role) for role in ("keep", "categorical", "numeric", "ordinal")),
            *(("categorical", "numeric"), ("categorical", "ordinal"), ("numeric", "ordinal")),
        ):
            both = sorted(roles[one] & roles[other])
            if both:
                raise OptionError(f"{one} and {other} both name {listed(both)}; a column can be one of them")
        return replace(self, **found)


def make_choices(
    drop: Names = (),
    keep: Names = (),
    categorical: Names = (),
    numeric: Names = (),
    ordinal: Mapping[str, Sequence[str]] | None = None,
    missing: str = "impute",
    categories: str = ONE_HOT,
    rare: int = 1,
) -> Choices:
    """Check what is said about columns as far as that doesn't need a table.

    Parameters
    ----------
    drop, keep, categorical, numeric : str, int or list of them
        Names of columns, or patterns such as ``id*``; numbers are those of an array's columns, from 0.
    rare : int
        As in `Choices`.

    Raises
    ------
    OptionError
        Something can't be as it is said.
    """
    for option, word, known in (("missing", missing, MISSING), ("categories", categories, CODINGS)):
        if word not in known:
            raise OptionError(f"{option} {word!r} is unknown; it is one of {', '.join(known)}")
    if isinstance(rare, bool) or not isinstance(rare, numbers.Integral) or rare < 1:
        raise OptionError(f"rare is a number of rows, of which fewer make a category rare: at least 1, not {rare!r}")
    if not isinstance(ordinal, Mapping | None):
        raise OptionError(
            f"ordinal has the levels of each column from the least to the greatest, such as "
            f"{{'size': ['S', 'M', 'L']}}, not {ordinal!r}"
        )
    levels: dict[str, tuple[str, ...]] = {}
    for name, given in (ordinal or {}).items():
        texts = tuple(str(level) for level in given) if not isinstance(given, str) else ()
        if len(texts) < 2 or len(set(texts)) < len(texts):
            raise OptionError(
                f"ordinal {name!r} needs at least two levels, each once, from the least to the greatest, such as S<M<L"
            )
        levels[str(name)] = texts
    return Choices(
        _names(drop), _names(keep), _names(categorical), _names(numeric), levels, missing, categories, int(rare)
    )


def read_ordinal(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Read levels that are written as ``size=S<M<L``, by the name of their column."""
    found: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, equals, levels = text.rpartition("=") if text.count("=") == 1 else text.partition("=")
        if not equals or "<" not in levels or name in found:
            raise OptionError(f"--ordinal {text} isn't of the form NAME=LEAST<...<GREATEST, each column once")
        found[name] = tuple(level.strip() for level in levels.split("<"))
    return found


def _names(given: Names) -> tuple[str, ...]:
    if not isinstance(given, str | int | Iterable):
        raise OptionError(f"columns are named, or numbered from 0, by one or a list of them, not by {given!r}")
    each = [given] if isinstance(given, str | int) else list(given)
    return tuple(f"x{name}" if isinstance(name, int) else str(name) for name in each)


def _expanded(
    wanted: Sequence[str], columns: Sequence[str], others: Iterable[str], where: str, role: str
) -> tuple[str, ...]:
    """Return the columns that are named, or match a pattern, in the order given."""
    found: dict[str, None] = {}
    for name in wanted:
        if name in columns:
            found[name] = None
            continue
        parts = [part.strip() for part in name.split(",")] if "," in name else [name]
        if len(parts) > 1:
            found.update(dict.fromkeys(_expanded(parts, columns, others, where, role)))
        elif name in others:
            raise OptionError(f"{role} names {name!r}, which isn't a feature but has another role; leave it out there")
        elif glob.has_magic(name) and (matching := fnmatch.filter(columns, name)):
            found.update(dict.fromkeys(matching))
        else:
            check_column(columns, name, where)
    return tuple(found)
