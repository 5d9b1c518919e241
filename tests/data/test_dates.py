"""Dates whose months have names, and years of two digits: read where one reading is left, told, else refused."""

import numpy as np
import pandas as pd
import pytest

from kernsel.data import prepare
from kernsel.data.dates import find_format, read_dates
from kernsel.errors import DataError

N = 60
PLACES = np.arange(N)
DAYS = pd.Series(pd.date_range("2019-11-20", periods=N, freq="7D"))


def frame(**columns):
    return pd.DataFrame({"a": np.sin(PLACES), **columns, "y": np.cos(PLACES) * 1.5})


def ordinal(day):
    return f"{day}{'th' if 4 <= day % 100 <= 20 else {1: 'st', 2: 'nd', 3: 'rd'}.get(day % 10, 'th')}"


WRITTEN = {
    "a short year": lambda d: f"{d.day}-{d:%b-%y}",
    "a short year in capitals": lambda d: f"{d:%d-%b-%y}".upper(),
    "a short year after spaces": lambda d: f"{d.day} {d:%b %y}",
    "a whole year": lambda d: f"{d:%d-%b-%Y}",
    "a long name": lambda d: f"{d.day} {d:%B %Y}",
    "a long name with hyphens": lambda d: f"{d:%d-%B-%Y}",
    "the month first": lambda d: f"{d:%B} {d.day}, {d:%Y}",
    "the month first without a comma": lambda d: f"{d:%B} {d.day} {d:%Y}",
    "the year first": lambda d: f"{d:%Y-%b-%d}",
    "nothing between": lambda d: f"{d:%d%b%Y}".upper(),
    "slashes": lambda d: f"{d:%d/%b/%Y}",
    "points": lambda d: f"{d:%d.%b.%Y}",
    "a point behind the day": lambda d: f"{d.day}. {d:%B %Y}",
    "ordinal numbers": lambda d: f"{ordinal(d.day)} {d:%B %Y}",
    "months cut short with a dot": lambda d: f"{d.day} {d:%b}. {d:%Y}".replace("May.", "May"),
    "September with a t": lambda d: f"{d:%d-%b-%Y}".replace("Sep", "Sept"),
    "weekdays": lambda d: f"{d:%a, %d %b %Y}",
    "weekdays written out": lambda d: f"{d:%A}, {d:%B} {d.day}, {d:%Y}",
}
CLOCKS = {"%H:%M": " {:%H:%M}", "%I:%M %p": " {:%I:%M %p}"}


@pytest.mark.parametrize("case", WRITTEN)
def test_months_by_their_names_are_read(case):
    texts = [WRITTEN[case](day) for day in DAYS]
    data = prepare(frame(t=texts), standardize=False)
    days, month, weekday, _ = data.X[:, 1:].T
    np.testing.assert_array_equal(days, (DAYS - pd.Timestamp(0)) / pd.Timedelta(days=1))
    np.testing.assert_array_equal(month, DAYS.dt.month)
    np.testing.assert_array_equal(weekday, DAYS.dt.day_of_week)
    told = [note for note in data.notes if "two digits" in note]
    assert len(told) == ("short year" in case)
    rows = pd.DataFrame({"a": 1.0, "t": pd.Series(texts[3:5])}).set_axis([7, 7])
    np.testing.assert_array_equal(data.encoder.transform(rows)[:, 1:], data.X[3:5, 1:])
    for clock in CLOCKS.values():
        timed = [text + clock.format(day + pd.Timedelta(hours=13)) for text, day in zip(texts, DAYS, strict=True)]
        hour = prepare(frame(t=timed), standardize=False).X[:, 4]
        np.testing.assert_array_equal(hour, 13)


def test_how_short_years_are_read_is_told():
    notes = prepare(frame(t=[WRITTEN["a short year"](day) for day in DAYS])).notes
    assert "column 't': '20-Nov-19' is read as 2019-11-20, and years of two digits are 1969 to 2068" in notes
    notes = prepare(frame(t=[f"{day:%b-%y}" for day in pd.date_range("2019-11-01", periods=N, freq="MS")])).notes
    assert "column 't': 'Nov-19' is read as 2019-11, and years of two digits are 1969 to 2068" in notes


MONTHS = {
    "a series": [f"{day:%b-%y}" for day in pd.date_range("2019-11-01", periods=24, freq="MS")],
    "a series in another order": [f"{day:%b %y}" for day in pd.date_range("2019-11-01", periods=24, freq="MS")[::-1]],
    "years beyond days": ["Jan-20", "Mar-45", "Dec-19"],
    "a year 2000": ["Jan-20", "Mar-00", "Dec-19"],
    "days that a month hasn't": ["Jan-20", "Feb-30", "Dec-19"],
    "apostrophes": ["Jan '20", "Mar '21", "Dec '19"],
    "years first": ["45-Jan", "20-Mar"],
}


@pytest.mark.parametrize("case", MONTHS)
def test_months_of_short_years_are_read_where_they_are_no_days(case):
    values = pd.Series(MONTHS[case])
    way = find_format(values, "t")
    assert way == ("24 Jan" if case == "years first" else "Jan 24")
    short = values.str.extract(r"(\d\d)")[0].astype(int)
    years = short + np.where(short < 69, 2000, 1900)
    months = values.str.extract("([A-Za-z]{3})")[0]
    days = [pd.to_datetime(f"{month} {year}", format="%b %Y") for month, year in zip(months, years, strict=True)]
    np.testing.assert_array_equal(
        read_dates(values, way)[:, 0], (pd.Series(days) - pd.Timestamp(0)) / pd.Timedelta(days=1)
    )


def test_months_with_numbers_that_may_be_days_are_refused():
    with pytest.raises(DataError, match=r"'t' holds texts such as 'Jan-20', which may be months of years or days of"):
        prepare(frame(t=np.array(["Jan-20", "Mar-21", "Dec-19"])[PLACES % 3]))
    assert "t" in prepare(frame(t=np.array(["1-Jan", "12-Mar", "24-Dec"])[PLACES % 3])).encoder.categories
    assert "t" in prepare(frame(t=np.array(["20-Jan", "12-Mar", "24-Dec"])[PLACES % 3])).encoder.categories
    assert "t" in prepare(frame(t=np.array(["May-flower", "June-berry"])[PLACES % 2])).encoder.categories
    assert "t" in prepare(frame(t=np.array(["12 abc 34", "3 dec 5x"])[PLACES % 2])).encoder.categories
