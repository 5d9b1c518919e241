"""Dates: which columns hold them, how they are written, and the numbers that they become.

A date becomes days since 1970, and what recurs: the month, the day of the week from Monday = 0, and the hour where
there are times of day. Of a time of day without a date the hour alone differs between rows. A month, quarter or week
has days and month only: see `kernsel.data.periods`.
"""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from kernsel.data.periods import SEASON, SHORT, SHORT_FIRST, WAYS, find_period, may_be_days, read_periods
from kernsel.errors import DataError
from kernsel.types import Array, Mask

if TYPE_CHECKING:
    import pandas as pd

PARTS = ("days", "month", "weekday", "hour")
ISO = "ISO8601"
CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
NAMED = [mark.join(("%d", month, "%Y")) for mark, month in product(("-", " ", "/", ".", ""), ("%b", "%B"))]
NAMED += [f"{month} %d{mark} %Y" for month, mark in product(("%b", "%B"), (",", ""))]
NAMED += ["%d. %b %Y", "%d. %B %Y", "%Y-%b-%d", "%Y %b %d"]
SHORT_NAMED = [mark.join(("%d", "%b", "%y")) for mark in ("-", " ", "/", "")]
"""The day comes first, as whoever writes a month by its name and a year by two digits has it."""
CLEAR = ("%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", *NAMED, *SHORT_NAMED)
"""Ways to write a date that can be read in one way only."""
UNCLEAR = (("%m/%d/%Y", "%d/%m/%Y"), ("%m-%d-%Y", "%d-%m-%Y"), ("%m/%d/%y", "%d/%m/%y"))
"""Ways to write a date in which day and month can't be told apart before the thirteenth."""
LIKE_DATES = r"(\d{1,4}([-/.])\d{1,2}\2\d{1,4}|\d{1,2}[- ][A-Za-z]{3,9}[- ]\d{4}|[A-Za-z]{3,9} \d{1,2},? \d{4})\b.*"
TIMES = ("%H:%M", "%H:%M:%S", "%H.%M.%S", "%I:%M %p", "%I:%M:%S %p")
"""Ways to write a time of day."""
DOTTED = ("%H.%M.%S", "%d.%m.%y")
"""A time of day, and a date that may look the same."""
LIKE_TIMES = r"\d{1,2}([:.])\d{2}(\1\d{2})?( [AaPp][Mm])?"
LIKE_NAMED = r"(?i:([a-z]{3,9},? )?(\d{1,4}\D{0,4})?(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec).{0,12}\d{2}\b.*)"
WORDS = (
    (r"^(?:mon|tue|tues|wed|wednes|thu|thur|thurs|fri|sat|satur|sun)(?:day)?,? +", ""),
    (r"(?<=\d)(?:st|nd|rd|th)(?= )", ""),
    (r"\b(sep)t\b", r"\1"),
    (r"\b(jan|feb|mar|apr|jun|jul|aug|sep|oct|nov|dec)\.(?=[ ,-])", r"\1"),
)
"""What no format of dates has, in capitals or not, and what takes its place: Monday, the st of 1st, the t of Sept."""
LIKE_ISO = r"\d{4}-\d{2}(-\d{2}.*)?"
PART_OF_ISO = rf"\d{{4}}|{LIKE_ISO}"
"""A year, month or day, as some dates of a column may be known to the year only."""


def parts_of(way: str | None) -> tuple[str, ...]:
    """Return the numbers that dates become that are written in a way: seasons have no month, periods no weekday."""
    return PARTS[:1] if way == SEASON else PARTS[:2] if way in WAYS else PARTS


def find_format(texts: pd.Series, name: str, instead: str | None = None) -> str | None:
    """Return how the texts of a column write dates, None if they don't.

    Parameters
    ----------
    texts : Series of str
        Without missing values.
    name : str
        Of the column, for messages.
    instead : str, optional
        What to do about a column that is no feature, for messages.

    Raises
    ------
    DataError
        They may begin with the day or with the month, or be times of day.
    """
    import pandas as pd

    likely = (LIKE_DATES, LIKE_NAMED, PART_OF_ISO, LIKE_TIMES, *WAYS.values())
    if not len(texts) or not any(re.fullmatch(like, texts.iloc[0].strip()) for like in likely):
        return None
    values = pd.Series(texts.unique()).str.strip()
    other = instead or f"give --drop {name!r}, or --categorical {name!r}"
    if (way := find_period(values)) is not None:
        return way
    if may_be_days(values):
        raise DataError(
            f"column {name!r} holds texts such as {values.iloc[0]!r}, which may be months of years or days of any "
            f"year; write them as 2024-12, or {other}"
        )
    if re.fullmatch(LIKE_NAMED, values.iloc[0]):
        values = _without_words(values)

    def fits(way: str) -> bool:
        if pd.isna(pd.to_datetime(values.iloc[0], format=way, errors="coerce", utc=True)):
            return False
        return bool(pd.to_datetime(values, format=way, errors="coerce", utc=True).notna().all())

    if values.str.fullmatch(PART_OF_ISO).all() and values.str.fullmatch(LIKE_ISO).any() and fits(ISO):
        return ISO
    dates = (date + clock for date, clock in product(CLEAR, CLOCKS))
    found = next((way for way in (*dates, *TIMES) if fits(way)), None)
    if found == DOTTED[0] and fits(DOTTED[1]):
        raise DataError(
            f"column {name!r} holds texts such as {values.iloc[0]!r}, which may be dates or times of day; write them "
            f"as 2024-12-31 or 23:59:00, or {other}"
        )
    if found is not None:
        return found
    for (month_first, day_first), clock in product(UNCLEAR, CLOCKS):
        both = [date for date in (month_first + clock, day_first + clock) if fits(date)]
        if len(both) == 2:
            raise DataError(
                f"column {name!r} holds dates such as {values.iloc[0]!r}, which may begin with the day or the month; "
                f"write them as 2024-12-31, or {other}"
            )
        if both:
            return both[0]
    return None


def _without_words(texts: pd.Series) -> pd.Series:
    """Return texts of dates with months by their names as formats have them: see ``WORDS``."""

    def plain(text: str) -> str:
        for pattern, rest in WORDS:
            text = re.sub(pattern, rest, text, flags=re.IGNORECASE)
        return text

    return texts.map({text: plain(text) for text in texts.dropna().unique()}).astype(object)


def about_years(name: str, way: str | None, example: str) -> str | None:
    """Say how dates with years of two digits are read, None of others.

    Parameters
    ----------
    name : str
        Of the column.
    example : str
        One of its texts.
    """
    import pandas as pd

    if way is None or not (way in (SHORT, SHORT_FIRST) or "%y" in way):
        return None
    day = np.array(read_dates(pd.Series([example]), way)[0, 0]).astype("datetime64[D]")
    read = str(day)[:7] if way in WAYS else str(day)
    return f"column {name!r}: {example!r} is read as {read}, and years of two digits are 1969 to 2068"


def _with_other_clocks(way: str | None) -> list[str]:
    """Return the other ways to write a time of day, or the same dates with one or without."""
    if way is None or way == ISO:
        return []
    if way in TIMES:
        return [each for each in TIMES if each != way]
    date = re.split(" %[HI]", way)[0]
    return [date + clock for clock in CLOCKS if date + clock != way]


def read_dates(column: pd.Series, way: str | None) -> Array:
    """Return the parts of dates, (n, m), those of `parts_of`; NaN where there is none.

    New rows may write times of day in another way than those that the format was found in.

    Parameters
    ----------
    column : Series
        Of dates, or of texts that are written in that way.
    way : str or None
        A format, None for what is a date already.

    Raises
    ------
    DataError
        A text is written in another way.
    """
    import pandas as pd

    if way is not None:
        column = column.astype(object).map(lambda value: str(value).strip(), na_action="ignore")
    if way is not None and ("%b" in way or "%B" in way):
        column = _without_words(column)
    if way in WAYS:
        periods = read_periods(column, way)
        check_written(column, way, np.isnan(periods[:, 0]) & column.notna().to_numpy())
        return periods
    dates = pd.to_datetime(column, format=way, errors="coerce", utc=True)
    other = (dates.isna() & column.notna()).to_numpy()
    for alike in _with_other_clocks(way):
        if not other.any():
            break
        dates = dates.where(~other, pd.to_datetime(column, format=alike, errors="coerce", utc=True))
        other = (dates.isna() & column.notna()).to_numpy()
    check_written(column, way, other)
    # In the unit of the dates: in nanoseconds there are none beyond the year 2262.
    days = (dates - pd.Timestamp(0, tz="UTC").as_unit(dates.dt.unit)) / pd.Timedelta(days=1)
    if way in TIMES:
        days = days // 1  # of one day that pandas takes
    clock = dates.dt.hour + dates.dt.minute / 60 + dates.dt.second / 3600
    parts = (days, dates.dt.month, dates.dt.day_of_week, clock)
    return np.column_stack([np.asarray(part.to_numpy(dtype=np.float64, na_value=np.nan)) for part in parts])


def check_written(column: pd.Series, way: str | None, other: Mask) -> None:
    """Raise a DataError that names the first date of those (n,) that are written in another way."""
    if other.any():
        row = int(np.argmax(other))
        raise DataError(
            f"column {column.name!r} holds {str(column.iloc[row])[:40]!r} in row {row + 1}, where dates are written as "
            f"{way or 'a date'}; write all of them so"
        )
