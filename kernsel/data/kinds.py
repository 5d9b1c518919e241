"""What a column of a table holds: numbers, categories, levels in an order, or dates; and whether that is a feature."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from kernsel.data.choices import Choices
from kernsel.data.columns import absent, as_text, find_words, first_text, is_text, numbers, without_gaps
from kernsel.data.dates import TIMES, about_years, find_format, parts_of, read_dates
from kernsel.data.names import listed, some
from kernsel.data.periods import WAYS
from kernsel.data.signs import read_marked
from kernsel.errors import DataError
from kernsel.numerics.runtime.once import once
from kernsel.types import Array, Indices, Mask

if TYPE_CHECKING:
    import pandas as pd

NUMBER, CATEGORY, ORDINAL, DATE = "number", "category", "ordinal", "date"
MANY = 10
"""Text with at most so many different values is a feature, however few rows there are."""
FIRST, LEAST_NUMBERED, NUMBERED = "x1", 20, 0.9
"""The first column of a table without names, of more rows than this, may name them if so large a share is different."""
PERSON = r"(.*[ _.-])?(subject|patient|participant|person|respondent|student|pupil)([ _.-]?(no|nr|num|number))?"
PERSON += r"|.*(subj|usubj|pat|pt)(id|num|nr)"
"""How columns are called that name whom a row is of, besides identifiers."""
UNNAMED = re.compile(r"Unnamed: \d+(_level_\d+)?")
"""What pandas calls a column without a name."""


@dataclass(frozen=True)
class Kind:
    """What a column holds, and how it is written.

    Parameters
    ----------
    type : str
        ``"number"``, ``"category"``, ``"ordinal"`` or ``"date"``.
    levels : tuple of str
        Of an ordinal column, from the least to the greatest.
    format : str or None
        Of dates that are written as text.
    loose : bool
        Whether what isn't a number counts as missing.
    """

    type: str = NUMBER
    levels: tuple[str, ...] = ()
    format: str | None = None
    loose: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the kind as a dictionary that JSON holds."""
        return {"type": self.type, "levels": list(self.levels), "format": self.format, "loose": self.loose}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Kind:
        """Build the kind back from ``to_json()``."""
        return cls(document["type"], tuple(document["levels"]), document["format"], document["loose"])

    def features(self, name: str) -> tuple[str, ...]:
        """Return the names of the numbers that a column becomes."""
        return tuple(f"{name} ({part})" for part in parts_of(self.format)) if self.type == DATE else (name,)


PLAIN = Kind()


@dataclass(frozen=True)
class Found:
    """A column as it was found.

    Parameters
    ----------
    gaps : int
        Values that are missing.
    reason : str or None
        Why it is no feature: what the column ``is``, such as ``"constant"``.
    remark : str or None
        What a feature may be instead.
    words : tuple of str
        Categories such as None, which are gaps elsewhere.
    """

    name: str
    kind: Kind
    gaps: int = 0
    reason: str | None = None
    remark: str | None = None
    words: tuple[str, ...] = ()


def find_kinds(frame: pd.DataFrame, choices: Choices, places: Indices) -> list[Found]:
    """Find out what each column of a table holds; DataError if that can't be used.

    Parameters
    ----------
    places : (n,) array
        Where the rows stood in the table as given.
    """
    columns = (Values(frame.iloc[:, j].rename(str(name)), places) for j, name in enumerate(frame.columns))
    return find_in([find_kind(each, choices) for each in columns])


def find_in(found: list[Found]) -> list[Found]:
    """Return what columns hold, where all together are looked at."""
    counts = [each for each in found if each.reason is not None and each.reason.startswith("count")]
    if counts and all(each.reason is not None for each in found):
        kept = counts[0]  # a table of one feature may well be a series
        remark = f"column {kept.name!r} counts the rows, and stays as there is no other feature"
        found = [Found(each.name, each.kind, each.gaps, remark=remark) if each is kept else each for each in found]
    return found


class Column(Protocol):
    """What there is to see of a column: its values, or different ones that stand for all."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def rows(self) -> int:
        """Number of rows."""

    @property
    def gaps(self) -> int:
        """Number of missing values."""

    @property
    def column(self) -> pd.Series:
        """The values, or different ones."""

    @property
    def numbers(self) -> Array | None:
        """These as numbers, None if there are others."""

    @property
    def whole(self) -> bool:
        """Whether all are whole numbers, and none is missing."""

    @property
    def start(self) -> float:
        """What whole numbers are more than the places of their rows, NaN if that isn't the same for all."""

    @property
    def levels(self) -> int:
        """Number of different values, as text."""

    @property
    def words(self) -> tuple[str, ...]:
        """Words such as None that are levels."""

    @property
    def different(self) -> int:
        """Number of different numbers."""

    def count_gaps(self, kind: Kind) -> int:
        """Return how many values of a kind are missing."""


class Values:
    """A column that is here.

    Parameters
    ----------
    places : (n,) array
        Where the rows stood in the table as given.
    """

    def __init__(self, column: pd.Series, places: Indices) -> None:
        self.column, self.places = column, places
        self.name, self.rows = str(column.name), len(column)

    @once
    def gaps(self) -> int:
        """Number of missing values."""
        return int(without_gaps(self.column).isna().sum())

    @property
    def levels(self) -> int:
        """Number of different values, as text."""
        return len(set(as_text(self.column, self.words)) - {None})

    @once
    def words(self) -> tuple[str, ...]:
        """Words such as None that are levels."""
        return find_words(self.column)

    def count_gaps(self, kind: Kind) -> int:
        """Return how many values of a kind are missing."""
        return int(np.isnan(read_numbers(self.column, kind)[:, 0]).sum())

    @once
    def numbers(self) -> Array | None:
        """The column as numbers, None if it holds others."""
        return numbers(self.column)

    @property
    def whole(self) -> bool:
        """Whether all are whole numbers, and none is missing."""
        return self.numbers is not None and np.array_equal(self.numbers, np.round(self.numbers))

    @property
    def start(self) -> float:
        """What whole numbers are more than the places of their rows, NaN if that isn't the same for all."""
        return offset(self.numbers, self.places) if self.numbers is not None else np.nan

    @property
    def different(self) -> int:
        """Number of different numbers."""
        return len(np.unique(self.numbers)) if self.numbers is not None else 0


def offset(values: Array, places: Indices) -> float:
    """Return what numbers (n,) are more than ``places``, NaN if that isn't the same for all."""
    first = float(values[0] - places[0]) if len(values) else np.nan
    return first if np.array_equal(values - places, np.full(len(values), first)) else np.nan


def read_numbers(column: pd.Series, kind: Kind) -> Array:
    """Return a column that isn't of categories as numbers (n, m), those of its features; NaN where one is missing."""
    name = str(column.name)
    if kind.type == DATE:
        return read_dates(column if kind.format is None else without_gaps(column, ()), kind.format)
    if kind.type == ORDINAL:
        places = {level: float(place) for place, level in enumerate(kind.levels)}
        texts = as_text(column, kind.levels)
        new = sorted({str(text) for text in texts if text is not None and text not in places})
        if new:
            raise DataError(
                f"column {name!r} has values that are none of its levels {'<'.join(kind.levels)}: {listed(new, 4)}; "
                "name every level in its place"
            )
        return np.array([np.nan if text is None else places[text] for text in texts])[:, None]
    if kind.loose and is_text(column):
        import pandas as pd

        known = without_gaps(column)
        if (signed := read_marked(known)) is not None:
            return signed[:, None]
        parsed = pd.to_numeric(known, errors="coerce")
        return np.asarray(parsed.to_numpy(dtype=np.float64, na_value=np.nan))[:, None]
    values = numbers(column, instead="write them as they are in the table of the model")
    if values is None:
        raise DataError(
            f"column {name!r} must hold numbers, as in the table of the model; it holds {first_text(column)}"
        )
    return values[:, None]


def gaps_in(column: pd.Series, found: Found) -> Mask:
    """Return where a column that was found to be so lacks a value, (n,)."""
    if found.kind.type == CATEGORY:
        return absent(as_text(column, found.words))
    return np.asarray(np.isnan(read_numbers(column, found.kind)[:, 0]))


def find_kind(seen: Column, choices: Choices) -> Found:
    """Find out what a column holds; DataError if that can't be used."""
    import pandas as pd

    name, n, column = seen.name, seen.rows, seen.column
    if name in choices.drop or (choices.keep and name not in choices.keep):
        return Found(name, PLAIN, reason="dropped")
    if name in choices.ordinal:
        kind = Kind(ORDINAL, choices.ordinal[name])
        return Found(name, kind, seen.count_gaps(kind))
    wanted = name in (*choices.keep, *choices.categorical, *choices.numeric)
    count = seen.gaps
    if count == n:
        return Found(name, PLAIN, count, "without values")
    if name in choices.categorical:
        return Found(name, Kind(CATEGORY), count, words=seen.words)
    if name in choices.numeric:
        kind = Kind(NUMBER, loose=True)
        if not is_text(column):
            return Found(name, PLAIN, count)
        count = seen.count_gaps(kind)
        if count == n:
            first = next(text for text in as_text(column) if text is not None)[:40]
            raise DataError(f"column {name!r} holds no number (first: {first!r}); it can't be numeric")
        return Found(name, kind, count)
    if pd.api.types.is_datetime64_any_dtype(column.dtype) or _are_dates(column):
        return Found(name, Kind(DATE), count)
    if is_text(column):
        texts = without_gaps(column, ()).dropna().astype(str)
        way = find_format(texts, name)
        if way is not None:
            kind = Kind(DATE, format=way)
            return Found(name, kind, seen.count_gaps(kind), remark=about_years(name, way, texts.iloc[0]))
    if seen.numbers is not None:
        reason = None if wanted else _identifies(seen)
        return Found(name, PLAIN, count, reason, None if wanted or reason is not None else _remark(seen))
    distinct = seen.levels
    reason = None
    if not wanted and distinct == n - count and n > 2 and distinct > 1:
        reason = "text with another value in every row"
    elif not wanted and 2 * distinct > n and distinct > MANY:
        reason = "text with other values in over half of the rows"
    shared = not wanted and reason is None and _is_shared(name, distinct, n)
    return Found(name, Kind(CATEGORY), count, reason, _about_groups(name, distinct) if shared else None, seen.words)


def _are_dates(column: pd.Series) -> bool:
    """Say whether a column of objects holds dates of Python."""
    import datetime

    if column.dtype.kind != "O":
        return False
    values = column.dropna()
    return len(values) > 0 and all(isinstance(value, datetime.date) for value in values)


def _identifies(seen: Column) -> str | None:
    """Return why numbers name rows rather than describe them, None if they don't."""
    if seen.rows < 3:
        return None
    if is_row_names(seen.name) and 2 * seen.different > seen.rows:
        return "naming the rows"
    if not seen.whole:
        return None
    if seen.start in (0, 1):
        return "counting the rows"
    if names_rows(seen.name) and 2 * seen.different > seen.rows > MANY:
        return "an identifier by name and values"
    return None


def _remark(seen: Column) -> str | None:
    """Return what numbers that nothing is said of may be instead of a feature."""
    if not seen.whole:
        return None
    name, distinct, n = seen.name, seen.different, seen.rows
    if name == FIRST and n > LEAST_NUMBERED and distinct > NUMBERED * n:
        return f"column {name!r} has {distinct} whole numbers in {n} rows: if these name the rows, --drop {name}"
    return _about_groups(name, distinct) if _is_shared(name, distinct, n) else None


def check_last(column: pd.Series) -> None:
    """Raise a DataError if the last column, which nobody has named as the target, names the rows."""
    seen = Values(column, np.arange(len(column)))
    if is_text(column) or not names_rows(seen.name) or seen.numbers is None:
        return
    if (reason := _identifies(seen)) is not None:
        raise DataError(f"the last column, {seen.name!r}, is {reason}; name the column to predict (--target NAME)")


def needs_count(name: str) -> bool:
    """Say whether of a column of this name it matters how many different whole numbers it has."""
    return name == FIRST or names_rows(name) or names_groups(name)


def names_rows(name: str) -> bool:
    """Say whether a column is called as those are that name rows."""
    return bool(_is_identifier(name) or is_row_names(name) or UNNAMED.fullmatch(name))


def is_row_names(name: str) -> bool:
    """Say whether a column is called as R's names of rows are."""
    return bool(re.fullmatch(r"row[ _.]?names?", name, re.IGNORECASE))


def _is_shared(name: str, distinct: int, n: int) -> bool:
    """Say whether a column is called as those are that name whom a row is of, and several rows are of each."""
    return MANY < distinct <= n / 2 and names_groups(name)


def names_groups(name: str) -> bool:
    """Say whether a column is called as those are that name whom a row is of."""
    return bool((_is_identifier(name) and "year" not in name.lower()) or re.fullmatch(PERSON, name, re.IGNORECASE))


def _about_groups(name: str, distinct: int) -> str:
    return (
        f"column {name!r} seems to name what rows belong to ({distinct} values): to predict for new ones, hold the "
        f"rows of each out together (--groups {name!r}), or leave it out (--drop {name!r})"
    )


def _is_identifier(name: str) -> bool:
    return bool(
        re.fullmatch(r"(.*[ _.-])?(id|ids|idx|index|rowid|uuid|rownum|row number)", name, re.IGNORECASE)
    ) or bool(re.fullmatch(r".*[a-z](Id|ID)", name))


def describe_columns(found: Sequence[Found], levels: Mapping[str, int], hamming: bool) -> str | None:
    """Say in one line what the features are, and whether categories are coded by hamming; None for numbers alone."""
    used = [each for each in found if each.reason is None]
    of = {kind: [each for each in used if each.kind.type == kind] for kind in (NUMBER, CATEGORY, ORDINAL, DATE)}
    clocks = [each.name for each in of[DATE] if each.kind.format in TIMES]
    periods = [each.name for each in of[DATE] if each.kind.format in WAYS]
    dates = [each.name for each in of[DATE] if each.name not in (*clocks, *periods)]
    if len(of[NUMBER]) == len(used):
        return None
    parts = [f"{len(of[NUMBER])} number{'s' * (len(of[NUMBER]) != 1)}"] if of[NUMBER] else []
    if of[CATEGORY]:
        counts = some([f"{each.name} {levels[each.name]}" for each in of[CATEGORY] if each.name in levels])
        how = "with one relevance for each column" if hamming else "a 0/1 column for each"
        parts.append(f"{len(of[CATEGORY])} with categories, {how} ({counts})")
    if of[ORDINAL]:
        parts.append(
            f"{len(of[ORDINAL])} ordinal ({some([f'{e.name} ' + '<'.join(e.kind.levels) for e in of[ORDINAL]])})"
        )
    if clocks:
        parts.append(f"{len(clocks)} with times of day, as hours ({some(clocks)})")
    if periods:
        parts.append(f"{len(periods)} with months, quarters or weeks, as days and month ({some(periods)})")
    if dates:
        parts.append(f"{len(dates)} with dates, as days, month, weekday and hour ({some(dates)})")
    if periods or dates:
        parts[-1] = f"{parts[-1][:-1]}; to predict what comes later, hold out in the order of time: --folds time:10)"
    return f"columns: {'; '.join(parts)}"
