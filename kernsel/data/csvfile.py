"""Read a table that is written in text, and say in one line what is wrong with it, and where.

pandas does the parsing. What is done here is to look at what pandas would pass over in silence: duplicated or missing
column names, short rows, decimal commas.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from kernsel.data.blocks import join_blocks
from kernsel.data.columns import without_gaps
from kernsel.data.decimals import NUMERIC, Marks
from kernsel.data.gaps import SURE
from kernsel.data.layout import END, FALLBACK, UTF8, Layout, Reading, encoding_error, find_layout, text_rows
from kernsel.data.names import some
from kernsel.data.signs import SIGNS_READ, find_sign, read_signed, without_sign
from kernsel.data.sources import Fit, Source
from kernsel.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

FIELD_BYTES = 32
"""What a field takes while it is parsed: its text, its place and its number."""
MANY_ROWS = 2**31 - 1
"""More than any file has that is read as a whole."""


@dataclass(frozen=True)
class Text:
    """Text with a row in each line, such as CSV: separators, marks and header are found out."""

    name: ClassVar[str] = "text"

    def fits(self, source: Source, reading: Reading) -> Fit:
        """Take whatever no other format does."""
        return Fit.ANYTHING

    def read(self, source: Source, reading: Reading, expected: list[str] | None) -> pd.DataFrame:
        """Return the table of a file."""
        if reading.sheet is not None:
            raise DataError(f"{source.name} is no workbook, so it has no sheet {reading.sheet!r}; leave out --sheet")
        return read_csv(source, reading, expected)


def read_csv(source: Source, reading: Reading, expected: Sequence[str] | None = None) -> pd.DataFrame:
    """Read a table in text; ``attrs["reading"]`` says how other files of its kind are written."""
    try:
        return _read(source, find_layout(source, reading, expected), reading, [])
    except UnicodeDecodeError as error:
        if reading.encoding is not None:
            raise DataError(encoding_error(source, reading.encoding, error)) from error
    for encoding in FALLBACK:  # the first lines were UTF-8, later ones aren't
        given = replace(reading, encoding=encoding)
        note = f"encoded in {encoding}, as it isn't UTF-8"
        try:
            return _read(source, find_layout(source, given, expected), given, [note])
        except (UnicodeDecodeError, DataError):
            if encoding == FALLBACK[-1]:
                raise
    raise AssertionError("Latin-1 decodes any bytes")


def _read(source: Source, layout: Layout, reading: Reading, notes: list[str]) -> pd.DataFrame:
    first = reading.decimal or ("," if reading.thousands == "." else ".")
    decimal, thousands = first, reading.thousands
    frame = _parse(source, layout, first, None)
    texts = [name for name in frame if frame[name].dtype.kind not in "biuf"]
    known = {name: without_gaps(frame[name]) for name in texts}
    signed = {name: sign for name, column in known.items() if (sign := find_sign(column)) is not None}
    suspects = frame.assign(**{name: without_sign(known[name], sign) for name, sign in signed.items()})
    marked = [name for name in texts if name not in signed and _is_marked(frame[name])]
    if (marked or signed) and (reading.decimal is None or reading.thousands is None):
        decimal, thousands = _decide(source, layout, suspects, [*marked, *signed], reading)
    if (decimal, thousands) != (first, None):
        # pandas leaves separators of thousands out wherever they are: a date 31.12.2024 would be a number, too.
        # Nor does it take a separator of thousands beyond ASCII.
        by_hand = marked if thousands is not None and not thousands.isascii() else []
        plain = [name for name in texts if name not in marked or name in by_hand]
        frame = _parse(source, layout, decimal, None if by_hand else thousands, plain)
        for name in by_hand:
            frame[name] = read_signed(known[name], "", decimal, thousands)
    for name, sign in signed.items():
        frame[name] = read_signed(known[name], sign, decimal, thousands)
    found = [*notes, *layout.notes]
    if reading.decimal is None and decimal == ",":
        found.append("numbers have a decimal comma")
    if reading.thousands is None and thousands is not None:
        found.append(f"{thousands!r} separates thousands")
    if signed:
        found.append(f"numbers are read without their sign: {some([f'{n!r} {sign}' for n, sign in signed.items()])}")
    said = [f"reading: {'; '.join(found)}"] if found else []
    if len(frame) and frame.iloc[:, -1].isna().any():
        # pandas fills short rows up with missing values; a count that is wrong is told apart from a value that is.
        row = _first_ragged(source, layout)
        if row is not None:
            raise DataError(_ragged(source, layout, *row))
    frame = _drop_row_names(source, _drop_ends(source, frame), said)
    frame.attrs[SIGNS_READ] = signed
    frame.attrs["reading"] = asdict(reading) | {
        "sep": layout.sep,
        "decimal": decimal,
        "thousands": thousands,
        "encoding": None if layout.encoding == UTF8 else layout.encoding,
        "header": layout.header,
        "comment": layout.comment,
    }
    return frame


def _parse(
    source: Source, layout: Layout, decimal: str, thousands: str | None, texts: Sequence[str] = ()
) -> pd.DataFrame:
    """Parse in blocks of rows; if columns are numbers in some of them only, all is read again, with these as text."""
    import pandas as pd

    dtype = dict.fromkeys(texts, str)
    columns = _blocks(source, layout, join_blocks, decimal=decimal, thousands=thousands, dtype=dtype)
    mixed = [name for name, column in columns.items() if column is None]
    if mixed:
        return _parse(source, layout, decimal, thousands, [*texts, *mixed])
    return pd.DataFrame(columns, copy=False, columns=layout.names if not columns else None)


def _blocks(source: Source, layout: Layout, work: Callable[[Iterator[pd.DataFrame]], Any], **options: Any) -> Any:
    """Let ``work`` have the rows in blocks."""
    import pandas as pd

    try:
        with warnings.catch_warnings(), io.TextIOWrapper(source.open(), encoding=layout.encoding, newline="") as text:
            # pandas cuts rows that are all too long, with this warning alone.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            for _ in islice(text, layout.start):
                pass
            with pd.read_csv(
                text,
                sep=r"\s+" if layout.sep == " " else layout.sep,
                header=None,
                names=layout.names,
                comment=layout.comment,
                quotechar=layout.quote,
                index_col=False,
                skipinitialspace=True,
                na_values=sorted(SURE),
                keep_default_na=False,
                low_memory=False,
                **_faithful(pd.__version__, len(layout.names), source.at_once),
                **options,
            ) as blocks:
                return work(blocks)
    except UnicodeDecodeError:
        raise
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        row = _first_ragged(source, layout)
        reason = " ".join(str(error).split())
        raise DataError(_ragged(source, layout, *row) if row else f"{source.name} isn't a table: {reason}") from error
    except pd.errors.EmptyDataError:
        return work(iter(()))


def _faithful(version: str, width: int, size: int) -> dict[str, Any]:
    """Return how a version of pandas reads what is written, in blocks of rows of a width that take so many bytes.

    The text of a file, and where its fields are, take several times the room of its numbers. Before 3.1 pandas cuts a
    row that is too long, in silence, where a block begins with it, so that all is one block there; and it takes a
    number near to what is written unless it is asked for the nearest one.
    """
    if tuple(map(int, version.split(".")[:2])) < (3, 1):
        return {"chunksize": MANY_ROWS, "float_precision": "round_trip"}
    return {"chunksize": max(1, size // (FIELD_BYTES * width))}


def _first_ragged(source: Source, layout: Layout) -> tuple[int, int] | None:
    """Return line number and length of the first row with another number of fields than the header, if there is one."""
    with io.TextIOWrapper(source.open(), encoding=layout.encoding, newline="", errors="replace") as text:
        for line, row in text_rows(text, layout):
            if row and len(row) != len(layout.names):
                return line, len(row)
    return None


def _ragged(source: Source, layout: Layout, line: int, length: int) -> str:
    width = len(layout.names)
    above = f"the header has {width}" if layout.header else f"the first row has {width}"
    return (
        f"{source.name}, line {line}: {length} field{'s' * (length != 1)} where {above}; every row needs as many "
        "fields as there are column names (other separators: --sep; lines above the table: --skip)"
    )


def _is_marked(column: pd.Series) -> bool:
    """Whether a text column is all numbers, if commas, points and spaces may stand in them."""
    values = without_gaps(column).dropna().astype(str).str.strip()
    return len(values) > 0 and bool(values.str.fullmatch(NUMERIC).all())


def _decide(
    source: Source, layout: Layout, frame: pd.DataFrame, suspects: Sequence[str], reading: Reading
) -> tuple[str, str | None]:
    """Return decimal and thousands separators; columns that were read as numbers are looked at as text."""
    marks = Marks()
    for name in suspects:
        marks.add(frame[name].dropna().astype(str).unique())
    numeric = [name for name in frame if frame[name].dtype.kind == "f"]

    def look(blocks: Iterator[pd.DataFrame]) -> None:
        for block in blocks:
            for name in numeric:
                marks.add(block[name].dropna().unique())

    if numeric:
        _blocks(source, layout, look, dtype=str)
    found = marks.decide(reading.decimal, reading.thousands)
    if found is None:
        text = marks.undecided
        raise DataError(
            f"{source.name}: {text!r} in column {suspects[0]!r} can be {text.replace(',', '.')} or "
            f"{text.replace(',', '')}; give --decimal , or --thousands ,"
        )
    return found


def _drop_ends(source: Source, frame: pd.DataFrame) -> pd.DataFrame:
    """Leave out columns without a name at the end of all lines, where a separator follows the last field."""
    ends = [name for name in frame if str(name).startswith(END)]
    for name in ends:
        if len(frame) and frame[name].notna().any():
            place = list(frame.columns).index(name)
            raise DataError(f"{source.name}: column {place + 1} has no name; give it one in the header")
    return frame.iloc[:, : frame.shape[1] - len(ends)] if ends else frame


def _drop_row_names(source: Source, frame: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Leave out a first column without a name that numbers or names the rows, as ``to_csv`` and R write it."""
    if "" in frame.columns:
        place = list(frame.columns).index("")
        column = frame.iloc[:, place]
        values = column.to_numpy()
        start = values[0] if len(values) else 0
        counts = values.dtype.kind == "i" and np.array_equal(values, np.arange(len(values)) + start)
        if place or values.dtype.kind == "f" or not (counts or column.is_unique):
            raise DataError(f"{source.name}: column {place + 1} has no name; give it one in the header")
        what = "numbers the rows" if counts else "has another value in every row"
        notes.append(f"the first column has no name and {what}; it is left out")
        frame = frame.iloc[:, 1:]
    frame.attrs["notes"] = notes
    return frame
