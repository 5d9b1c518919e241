"""Rows that are near to each other in time or space: a fold's fit may have to do without those near to the fold."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kernsel.data.columns import missing
from kernsel.data.dates import TIMES, find_format, read_dates
from kernsel.data.names import check_column
from kernsel.data.tables import Table, array_names, column_of, is_frame, names_of
from kernsel.errors import OptionError
from kernsel.types import Array, Indices, Mask

if TYPE_CHECKING:
    import pandas as pd


OPTIONS = ("when", "purge", "embargo", "coordinates", "buffer")
"""What may be said about rows that are near to each other."""

EARTH = 6371.0088
"""Mean radius in kilometres."""

KILOMETRES = {"km": 1.0, "m": 1e-3, "mi": 1.609344}
"""Units of a great circle."""

DAYS = {"s": 1 / 86400, "min": 1 / 1440, "h": 1 / 24, "d": 1.0, "w": 7.0}
"""Units of time."""

ROUNDING = 1e-9
"""Relative: distances that are equal but for rounding are equal."""


@dataclass(frozen=True, eq=False)
class Near:
    """Where rows are in time and space, and within what distance of a fold its fit leaves rows out.

    Parameters
    ----------
    time : (n,) array or None
        In days for dates, else in the units of the column; the number of the row where no time is named.
    named : bool
        Whether a time is named.
    purge : float or None
        In units of time, before and after each row of a fold.
    embargo : float or None
        More of it after.
    points : (n, c) array or None
        In the units of the coordinates; on the sphere in kilometres where these are latitude and longitude.
    buffer : float or None
        Largest Euclidean distance of points that are near; of points on the sphere through the earth.
    text : str
        What is left out, in words; empty for nothing.
    asked : mapping
        What was said, as JSON can hold it.
    """

    time: Array
    named: bool
    purge: float | None
    embargo: float | None
    points: Array | None
    buffer: float | None
    text: str
    asked: Mapping[str, Any]

    @property
    def in_time(self) -> bool:
        """Whether rows are left out for their time."""
        return self.named or self.purge is not None or self.embargo is not None

    def take(self, rows: Indices) -> Near:
        """Return what is known of some of the rows."""
        return replace(self, time=self.time[rows], points=None if self.points is None else self.points[rows])

    def around(self, held: Mask) -> Mask:
        """Return which rows are near to those that are held out, both (n,); these themselves may be among them."""
        found = np.zeros(held.size, np.bool_)
        if self.in_time:
            found |= self._around_in_time(held)
        if self.points is not None and self.buffer is not None:
            from scipy.spatial import cKDTree  # takes a while to import

            within = self.buffer * (1.0 + ROUNDING)
            distance, _ = cKDTree(self.points[held]).query(
                self.points, distance_upper_bound=np.nextafter(within, np.inf)
            )
            found |= distance <= within
        return found

    def _around_in_time(self, held: Mask) -> Mask:
        times = np.sort(self.time[held])
        before, after = self.purge or 0.0, (self.purge or 0.0) + (self.embargo or 0.0)
        slack = ROUNDING * max(after, float(np.ptp(self.time)))
        later = np.append(times, np.inf)[np.searchsorted(times, self.time, "left")]  # the next held-out time, or this
        earlier = np.insert(times, 0, -np.inf)[np.searchsorted(times, self.time, "right")]
        return np.asarray((later - self.time <= before + slack) | (self.time - earlier <= after + slack))


def read_near(options: Mapping[str, object] | None, table: Table, who: str) -> Near | None:
    """Return what is said about near rows of a table; None if nothing is.

    Parameters
    ----------
    options : mapping of str to object, or None
        By the names of ``OPTIONS``; what is None or empty isn't given.
    table : DataFrame, SparseTable or (n, d) array
        Whose columns may be named.
    who : str
        What the table is, for messages.

    Raises
    ------
    OptionError
        An option can't be read, or needs another one.
    DataError
        There is no such column.
    """
    asked = {name: value for name, value in (options or {}).items() if not _is_empty(value)}
    if not asked:
        return None
    n = len(table)
    time, dates = np.arange(float(n)), False
    if "when" in asked:
        time, dates = _read_time(asked["when"], table, who)
    purge, embargo = (_read_span(name, asked.get(name), "when" in asked, dates) for name in ("purge", "embargo"))
    if "buffer" in asked and "coordinates" not in asked:
        raise OptionError(f"buffer {asked['buffer']} needs coordinates: name their columns, such as lat,lon")
    points = _read_points(asked["coordinates"], table, who) if "coordinates" in asked else None
    buffer = None
    if "buffer" in asked:
        assert points is not None
        buffer, round_earth = _read_buffer(asked["buffer"])
        if round_earth:
            points, buffer = _on_the_sphere(points, buffer)
    elif points is not None:
        raise OptionError("coordinates are for a buffer: give it, such as 10km, or leave them out")
    known = {name: value if isinstance(value, str | int | float) else _names(value) for name, value in asked.items()}
    return Near(time, "when" in asked, purge, embargo, points, buffer, _text(asked), known)


def _is_empty(value: object) -> bool:
    return value is None or (isinstance(value, str | Sequence) and len(value) == 0)


def _names(value: object) -> Any:
    """Return names of columns as JSON can hold them; True for an array."""
    listed = value if isinstance(value, list | tuple) else [value]
    return [str(each) for each in listed] if all(isinstance(each, str | int) for each in listed) else True


def _text(asked: Mapping[str, object]) -> str:
    """Say what is left out."""
    unit = "" if "when" in asked else " rows"
    parts = [
        *([f"{asked['purge']}{unit} before and after"] if "purge" in asked else []),
        *([f"{asked['embargo']}{unit} more after"] if "embargo" in asked else []),
        *([f"what is within {asked['buffer']}"] if "buffer" in asked else []),
    ]
    return f"{' and '.join(parts)} left out" if parts else ""


def _column(name: str | int, table: Table, who: str) -> pd.Series:
    """Return a column of a table by its name, or of an array by its number."""
    import pandas as pd

    if is_frame(table) or not isinstance(table, np.ndarray):
        check_column(names_of(table), str(name), who)
        return column_of(table, str(name))
    known = array_names(table.shape[1])
    place = known[name] if isinstance(name, int) and 0 <= name < len(known) else str(name)
    check_column(known, place, who)
    return pd.Series(table[:, known.index(place)], name=place)


def _read_time(time: object, table: Table, who: str) -> tuple[Array, bool]:
    """Return times (n,), and whether they are dates (in days)."""
    import pandas as pd

    column = _column(time, table, who) if isinstance(time, str | int) else pd.Series(time, name="when")
    if column.shape != (len(table),):
        raise OptionError(f"when: there must be one for each of the {len(table)} rows, not {len(column)}")
    way = None
    dates = pd.api.types.is_datetime64_any_dtype(column.dtype)
    if not dates and not pd.api.types.is_numeric_dtype(column.dtype):
        texts = column.dropna().astype(str)
        way = find_format(texts, str(column.name), "name another column by when")
        if way in TIMES:
            raise OptionError(
                f"when: column {column.name!r} holds times of day, which say nothing of their order over several days; "
                "give a column of dates with these times, or of numbers"
            )
        dates = way is not None
    values = read_dates(column, way)[:, 0] if dates else _as_numbers(column, "when")
    return _without_gaps(values, f"when: column {column.name!r}"), dates


def _as_numbers(column: pd.Series, what: str) -> Array:
    try:
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError) as error:
        raise OptionError(
            f"{what}: column {column.name!r} must hold numbers{' or dates' * (what == 'when')}"
        ) from error


def _without_gaps(values: Array, what: str) -> Array:
    gaps = missing(values) | ~np.isfinite(values)
    if gaps.any():
        raise OptionError(f"{what}: row {int(np.argmax(gaps)) + 1} has none; give it one, or leave the row out")
    return values


def _read_span(name: str, value: object, named: bool, dates: bool) -> float | None:
    """Read purge or embargo: rows, units of a time column, or of dates ``7d``."""
    if value is None:
        return None
    number, unit = _read_quantity(value)
    if dates and unit in DAYS and number >= 0:
        return number * DAYS[unit]
    if not dates and not unit and number >= 0 and (named or number == int(number)):
        return number
    what = f"a time with its unit, {', '.join(DAYS)}, such as 7d" if dates else "a number of at least 0"
    where = "" if named else " of rows; for a time name its column by when"
    raise OptionError(f"{name} {value}: it must be {what}{where}")


def _read_quantity(value: object) -> tuple[float, str]:
    """Return a number, NaN if there is none that is finite, and the unit behind it."""
    match = re.fullmatch(r"([0-9.eE+-]+) *([a-z]*)", str(value).strip())
    try:
        number = float(match[1]) if match else math.nan
    except ValueError:
        number = math.nan
    return number if math.isfinite(number) else math.nan, match[2] if match else ""


def _read_points(coordinates: object, table: Table, who: str) -> Array:
    """Return coordinates (n, c)."""
    if isinstance(coordinates, str | int):
        coordinates = [coordinates]
    if isinstance(coordinates, list | tuple) and all(isinstance(each, str | int) for each in coordinates):
        names: list[str | int] = []
        for each in coordinates:
            names += [each] if isinstance(each, int) else map(str.strip, each.split(","))
        points = np.column_stack([_as_numbers(_column(name, table, who), "coordinates") for name in names])
    else:
        try:
            points = np.asarray(coordinates, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise OptionError(f"coordinates must be numbers, or names of columns that hold them ({error})") from error
    points = points[:, None] if points.ndim == 1 else points
    if points.ndim != 2 or len(points) != len(table):
        raise OptionError(f"coordinates: there must be some for each of the {len(table)} rows, not {points.shape}")
    _without_gaps(points.sum(axis=1), "coordinates")
    return points


def _read_buffer(buffer: object) -> tuple[float, bool]:
    """Return a distance, and whether it is one on the earth, in kilometres."""
    number, unit = _read_quantity(buffer)
    if not number > 0 or (unit and unit not in KILOMETRES):
        raise OptionError(
            f"buffer {buffer}: it must be a distance greater than 0, in the units of the coordinates, or in km, m or "
            "mi for latitude and longitude"
        )
    return number * KILOMETRES.get(unit, 1.0), bool(unit)


def _on_the_sphere(points: Array, buffer: float) -> tuple[Array, float]:
    """Return points (n, 3) on the earth from latitude and longitude in degrees, and the chord of a distance on it."""
    if points.shape[1] != 2:
        raise OptionError(
            f"a buffer in kilometres is along a great circle: coordinates must be latitude and longitude, not "
            f"{points.shape[1]} columns; or give it without a unit"
        )
    latitude, longitude = points.T
    if np.abs(latitude).max() > 90 or longitude.min() < -180 or longitude.max() > 360:
        raise OptionError(
            "coordinates: a latitude must be within 90 degrees and a longitude from -180 to 360; name the latitude "
            "first, or give a buffer without a unit"
        )
    if buffer >= math.pi * EARTH:
        raise OptionError(f"buffer: {buffer:g} km is around the earth; give less")
    phi, theta = np.radians(latitude), np.radians(longitude)
    unit = np.column_stack([np.cos(phi) * np.cos(theta), np.cos(phi) * np.sin(theta), np.sin(phi)])
    return EARTH * unit, 2.0 * EARTH * math.sin(buffer / (2.0 * EARTH))
