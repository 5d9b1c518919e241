"""Months, quarters, weeks and seasons: how a column writes them, and the numbers that they become.

A period becomes the days from 1970 to its first one; months, quarters and weeks its month as well. Its day of the week
says nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from kernsel.types import Array

if TYPE_CHECKING:
    import pandas as pd


FIRST_HALF = ("january", "february", "march", "april", "may", "june")
LONG = (*FIRST_HALF, "july", "august", "september", "october", "november", "december")
MONTHS = {name: number for number, month in enumerate(LONG, start=1) for name in (month, month[:3])} | {"sept": 9}
YEAR, MONTH, NAME = r"(?P<year>\d{4})", r"(?P<month>0?[1-9]|1[0-2])", r"(?P<name>[A-Za-z]{3,9})\.?"
WEEK, SEASON, COUNTED = "2024 W01", "2024-25", "1-01"
"""The last one is a month of a year that is counted from 1."""
SHORT, SHORT_FIRST = "Jan 24", "24 Jan"
"""Months of years of two digits."""
FIRST_SHORT = 69
"""Years of two digits from this one on are of the last century, others of this one, as POSIX has them."""
MOST_DAYS = {name: 30 if month in (4, 6, 9, 11) else 29 if month == 2 else 31 for name, month in MONTHS.items()}
"""Days that months may have."""
PERIODS = {
    "2024-01": rf"{YEAR}[-/]{MONTH}",
    "2024M01": rf"{YEAR} ?[Mm]{MONTH}",
    "01/2024": rf"{MONTH}/{YEAR}",
    "2024 Jan": rf"{YEAR}(?:,? +|-){NAME}",
    "Jan 2024": rf"{NAME}(?:,? +|-){YEAR}",
    "2024 Q1": rf"{YEAR}[ -]?[Qq](?P<quarter>[1-4])",
    "Q1 2024": rf"[Qq](?P<quarter>[1-4])[ -]?{YEAR}",
    WEEK: rf"{YEAR}[ -]?[Ww](?P<week>\d{{1,2}})",
    SHORT: rf"{NAME}[- ]?'?(?P<short>\d{{2}})",
    SHORT_FIRST: rf"(?P<short>\d{{2}})[- ]{NAME}",
}
"""Ways to write a period, each by an example."""
WAYS = {**PERIODS, SEASON: rf"{YEAR}[-/](?P<next>\d{{2}})", COUNTED: rf"(?P<year>\d{{1,3}})-{MONTH}"}


EARLIEST, LATEST = np.array(["1500-01-01", "2200-01-01"], "datetime64[D]").astype(np.int64)
"""The days from 1970 between which periods are found: 1001-2 and 4010-3 are codes."""


def find_period(values: pd.Series) -> str | None:
    """Return how different texts, in the order of their rows, write periods; None if they don't."""
    if len(values) < 2 or not any(re.fullmatch(pattern, values.iloc[0]) for pattern in WAYS.values()):
        return None
    seasons = values.str.extract(f"^{WAYS[SEASON]}$").astype(float)
    if bool(((seasons["year"] + 1) % 100 == seasons["next"]).all()) and _are_likely(values, SEASON):
        return SEASON
    for way, pattern in PERIODS.items():
        if re.fullmatch(pattern, values.iloc[0]) and _are_likely(values, way):
            return None if way in (SHORT, SHORT_FIRST) and not _are_years(values, way) else way
    if re.fullmatch(WAYS[COUNTED], values.iloc[0]) and bool((np.diff(_months(values, COUNTED)) == 1).all()):
        return COUNTED
    return None


def _are_likely(values: pd.Series, way: str) -> bool:
    """Say whether all texts write periods in a way, of our times."""
    days = read_periods(values, way)[:, 0]
    return bool(((days >= EARLIEST) & (days < LATEST)).all())


def may_be_days(values: pd.Series) -> bool:
    """Say whether different texts such as Jan-20 may be months of years, or days of any year."""
    if len(values) < 2 or not re.fullmatch(WAYS[SHORT], values.iloc[0]):
        return False
    return _are_likely(values, SHORT) and not _are_years(values, SHORT)


def _are_years(values: pd.Series, way: str) -> bool:
    """Say whether the numbers beside months are years: no days, or such that no month of a series is left out."""
    parts = values.str.extract(f"^{WAYS[way]}$")
    numbers = parts["short"].astype(int)
    if bool((numbers == 0).any() or (numbers > parts["name"].str.lower().map(MOST_DAYS)).any()):
        return True
    if way == SHORT_FIRST:
        return False
    return "'" in values.iloc[0] or bool((np.diff(np.unique(_months(values, way))) == 1).all())


def read_periods(values: pd.Series, way: str) -> Array:
    """Return days and months (n, 2) of texts, days (n, 1) of seasons; NaN where one isn't written in that way."""
    if way == WEEK:
        days = _weeks(values)
    else:
        months = _months(values, way)
        starts = np.where(np.isnan(months), 0, months).astype(np.int64).astype("datetime64[M]").astype("datetime64[D]")
        days = np.where(np.isnan(months), np.nan, starts.astype(np.float64))
    if way == SEASON:
        return days[:, None]
    there = np.where(np.isnan(days), 0, days).astype(np.int64).astype("datetime64[D]")
    month = there.astype("datetime64[M]").astype(np.int64) % 12 + 1.0
    return np.column_stack([days, np.where(np.isnan(days), np.nan, month)])


def _months(values: pd.Series, way: str) -> Array:
    """Return the months from 1970 to periods (n,), NaN where a text isn't one."""
    parts = values.astype(str).str.extract(f"^{WAYS[way]}$")
    if "short" in parts:
        short = parts["short"].astype(float)
        years = short.where(short < FIRST_SHORT, short - 100) + 2000
    else:
        years = parts["year"].astype(float)
    months = 12 * (years - 1970)
    if "month" in parts:
        months += parts["month"].astype(float) - 1
    elif "name" in parts:
        months += parts["name"].str.lower().map(MONTHS).astype(float) - 1
    elif "quarter" in parts:
        months += 3 * (parts["quarter"].astype(float) - 1)
    return np.asarray(months.to_numpy(dtype=np.float64, na_value=np.nan))


def _weeks(values: pd.Series) -> Array:
    """Return the days from 1970 to the Mondays of weeks (n,), by ISO 8601: week 1 has the fourth of January."""
    parts = values.astype(str).str.extract(f"^{WAYS[WEEK]}$")
    week = parts["week"].astype(float)
    fourth = (parts["year"].fillna("1970") + "-01-04").to_numpy(dtype="datetime64[D]").astype(np.int64)
    monday = fourth - (fourth + 3) % 7
    return np.asarray((monday + 7 * (week.where(week.between(1, 53)) - 1)).to_numpy(dtype=np.float64, na_value=np.nan))
