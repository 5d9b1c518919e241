"""Read a CSV file, and say in one line what is wrong with it, and where.

pandas does the parsing. What is done here is to look at what pandas would pass over in silence: duplicated or missing
column names, short rows, decimal commas.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kernsel.data.blocks import join_blocks
from kernsel.data.names import check_unique
from kernsel.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

DELIMITERS = ",;\t"
BLOCK_FIELDS = 2**17
"""Fields that are parsed at once."""
DECIMAL_COMMA = r"\s*[+-]?\d*,\d+(?:[eE][+-]?\d+)?\s*"


class _Layout(NamedTuple):
    delimiter: str
    names: list[str]


def read_csv(path: Path) -> pd.DataFrame:
    """Read a CSV file with a header, separated by comma, semicolon or tab, in UTF-8."""
    layout = _layout(path)
    frame = _parse_csv(path, layout, decimal=".")
    notes: list[str] = []
    if layout.delimiter != "," and _decimal_commas(frame):
        frame = _parse_csv(path, layout, decimal=",")
        notes.append("the numbers are read with a decimal comma")
    if len(frame.columns) != len(layout.names):
        raise DataError(f"{path} isn't a table: its first line has another number of columns than its rows")
    frame.columns = layout.names
    if len(frame) and (missing := frame.iloc[:, -1].isna()).any():
        # pandas fills short rows up with missing values; a count that is wrong is told apart from a value that is.
        row = _first_ragged(path, layout)
        if row is not None:
            raise DataError(_ragged(path, layout, *row))
        if missing.all() and not layout.names[-1]:
            # Every line ends with a delimiter: that is no column.
            frame = frame.iloc[:, :-1]
    return _drop_row_numbers(path, frame, notes)


def _layout(path: Path) -> _Layout:
    """Find the delimiter and the column names: the delimiter is the one that splits the first row most."""
    _check_text(path)
    csv.field_size_limit(1 << 30)
    rows = {delimiter: _first_row(path, delimiter) for delimiter in DELIMITERS}
    delimiter = max(rows, key=lambda key: len(rows[key]))
    names = [name.strip() for name in rows[delimiter]]
    if len(names) == 1:
        raise DataError(
            f"{path} isn't a table with columns: no comma, semicolon or tab in its first line {names[0][:40]!r}; "
            "give a CSV file with a header"
        )
    if all(_is_number(name) for name in names):
        raise DataError(f"{path} has no header: its first line holds numbers only; put the column names on top")
    check_unique(names, str(path))
    return _Layout(delimiter, names)


def _check_text(path: Path) -> None:
    with path.open("rb") as stream:
        sample = stream.read(1 << 16)
    if sample.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{path} is text in UTF-16; save it as CSV in UTF-8")
    if b"\0" in sample or sample.startswith((b"PK\x03\x04", b"\x1f\x8b", b"%PDF")):
        raise DataError(f"{path} is a binary file, not a table in text; give a CSV, Parquet or svmlight file")
    if not sample.strip(b"\xef\xbb\xbf \t\r\n"):
        raise DataError(f"{path} is empty; give a table with a header and rows")


def _first_row(path: Path, delimiter: str) -> list[str]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as text:
            rows = csv.reader(text, delimiter=delimiter, skipinitialspace=True)
            return next(row for row in rows if any(field.strip() for field in row))
    except UnicodeDecodeError as error:
        raise DataError(_encoding(path, error)) from error
    except (csv.Error, StopIteration) as error:
        raise DataError(f"{path} isn't a table with columns ({error or 'no first row'}); give a CSV file") from error


def _encoding(path: Path, error: UnicodeDecodeError) -> str:
    byte = error.object[error.start]
    return f"{path} isn't text in UTF-8 (byte 0x{byte:02x}); save it as CSV in UTF-8"


def _parse_csv(path: Path, layout: _Layout, decimal: str, texts: Sequence[str] = ()) -> pd.DataFrame:
    """Parse in blocks of rows; if columns are numbers in some of them only, all is read again, with these as text."""
    import pandas as pd

    try:
        with warnings.catch_warnings():
            # pandas cuts rows that are all too long, with this warning alone.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            with pd.read_csv(
                path,
                sep=layout.delimiter,
                decimal=decimal,
                encoding="utf-8-sig",
                index_col=False,
                skipinitialspace=True,
                dtype=dict.fromkeys(texts, str),
                # The text of a file, and where its fields are, take several times the room of its numbers.
                chunksize=max(1, BLOCK_FIELDS // len(layout.names)),
                low_memory=False,
            ) as blocks:
                columns = join_blocks(blocks)
    except UnicodeDecodeError as error:
        raise DataError(_encoding(path, error)) from error
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        row = _first_ragged(path, layout)
        reason = " ".join(str(error).split())
        raise DataError(_ragged(path, layout, *row) if row else f"{path} isn't a table: {reason}") from error
    mixed = [name for name, column in columns.items() if column is None]
    return _parse_csv(path, layout, decimal, [*texts, *mixed]) if mixed else pd.DataFrame(columns, copy=False)


def _first_ragged(path: Path, layout: _Layout) -> tuple[int, int] | None:
    """Return line number and length of the first row with another number of fields than the header, if there is one."""
    with path.open(encoding="utf-8-sig", newline="", errors="replace") as text:
        reader = csv.reader(text, delimiter=layout.delimiter, skipinitialspace=True)
        for row in reader:
            if row and len(row) != len(layout.names):
                return reader.line_num, len(row)
    return None


def _ragged(path: Path, layout: _Layout, line: int, length: int) -> str:
    return (
        f"{path}, line {line}: {length} field{'s' * (length != 1)} where the header has {len(layout.names)}; "
        "every row needs as many fields as there are column names"
    )


def _decimal_commas(frame: pd.DataFrame) -> bool:
    """Whether some text column is all numbers once a comma may stand for the point."""
    texts = frame.select_dtypes(exclude=["number", "bool"])
    for name in texts:
        values = texts[name].dropna().astype(str)
        plain = values.str.fullmatch(r"\s*[+-]?\d+\s*")
        comma = values.str.fullmatch(DECIMAL_COMMA)
        if comma.any() and (plain | comma).all():
            return True
    return False


def _drop_row_numbers(path: Path, frame: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Leave out a first column without a name that numbers the rows, as ``DataFrame.to_csv`` and R write it."""
    if "" in frame.columns:
        place = list(frame.columns).index("")
        values = frame.iloc[:, place].to_numpy()
        start = values[0] if len(values) else 0
        if place or values.dtype.kind != "i" or not np.array_equal(values, np.arange(len(values)) + start):
            raise DataError(f"{path}: column {place + 1} has no name; give it one in the header")
        notes.append("the first column has no name and numbers the rows; it is left out")
        frame = frame.iloc[:, 1:]
    frame.attrs["notes"] = notes
    return frame


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
