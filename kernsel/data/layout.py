"""How a table is written in text: what is given of that, and what the first lines show.

The lines are split by each separator that comes into question. A separator fits if it splits every line into the same
number of fields; the first one that fits is taken. The first line is a header if it has text above numbers; it is data
if it has numbers above numbers, or words that come again below.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import NamedTuple

from kernsel.data.decimals import NUMERIC
from kernsel.data.gaps import is_gap
from kernsel.data.names import check_unique
from kernsel.data.sources import Source
from kernsel.errors import DataError, OptionError

SEPARATORS = ("\t", ";", "|", ",", " ")
"""In the order in which they are tried: a decimal comma may look like a separator, a semicolon never like a number."""
WORDS = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";", "pipe": "|", "bar": "|"}
"""What separators may be called in an option."""
NAMES = {"\t": "tabs", " ": "spaces", ",": "commas"}
SAMPLE_LINES, SAMPLE_BYTES, LEAST_LINES = 200, 2**18, 3
"""So many lines are looked at, or so many bytes if lines are long, but so many lines at least."""
MOST_TITLES = 20
"""Lines above the table that are left out unasked."""
FALLBACK = ("cp1252", "latin-1")
"""Encodings of what isn't UTF-8: Windows-1252 has five bytes without a meaning, Latin-1 none."""
LEAST_COUNTED = 5
"""So many columns at least, counted from 0 or 1, have names like 0, 1, 2, 3, 4."""
YEARS = range(1800, 2201)
"""Whole numbers among these, one after the other, are names of columns."""
UTF8 = "utf-8-sig"
PAIRS = r"\s*[-+?]?[\d.,]+(\s+[-+?]?[\d.,]*)+\s*"
"""Numbers, or gaps, with spaces between."""
APOSTROPHES = r"(?:(?<=^)|(?<=[,;|\t ]))'[^']*'(?=\s*(?:[,;|\t ]|$))"
"""A text between apostrophes that fills a field."""
LEAST_TEXT, EVEN = 5, 0.6
"""Of so many lines at least, this share of a table's has as many fields as the most frequent number of them."""
NAMELESS = r"x[1-9]\d*"
"""What columns without names are called."""
END = "\0"
"""What the names of columns without a name at the end of all lines begin with."""


@dataclass(frozen=True)
class Reading:
    """How a table is written; None where that is to be found out.

    Parameters
    ----------
    sep : str, optional
        What stands between the columns: a character, or ``tab``, ``space``, ``comma``, ``semicolon``, ``pipe``.
    decimal, thousands : str, optional
        One character each.
    encoding : str, optional
        UTF-8 by default, and Windows-1252 for what isn't UTF-8.
    header : bool, optional
        Whether the first line has the names of the columns.
    comment : str, optional
        The character that starts a comment.
    skip : int, optional
        Lines above the table.
    sheet : str, optional
        Of a workbook: its name, or its number from 1.
    """

    sep: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    header: bool | None = None
    comment: str | None = None
    skip: int | None = None
    sheet: str | None = None

    def check_only(self, source: Source, what: str, *options: str) -> None:
        """Raise a DataError if another option than those is given, that says nothing of such a file."""
        given = [
            each.name for each in fields(self) if getattr(self, each.name) is not None and each.name not in options
        ]
        if given:
            option = "no-header" if given[0] == "header" and not self.header else given[0]
            raise DataError(f"{source.name} is {what}, of which --{option} says nothing; leave it out")

    def checked(self) -> Reading:
        """Return what is given with separators as characters; OptionError if something can't be."""
        sep = self.sep if self.sep is None else WORDS.get(self.sep.lower(), self.sep)
        for option, value in (("sep", sep), ("decimal", self.decimal), ("thousands", self.thousands)):
            if value is not None and len(value) != 1:
                raise OptionError(f"--{option} {value!r} must be one character" + " or tab, space" * (option == "sep"))
        if self.comment is not None and len(self.comment) != 1:
            raise OptionError(f"--comment {self.comment!r} must be one character, such as #")
        if self.decimal is not None and self.decimal == self.thousands:
            raise OptionError(f"--decimal and --thousands are both {self.decimal!r}; give two characters")
        if self.skip is not None and self.skip < 0:
            raise OptionError(f"--skip {self.skip} must be a number of lines, from 0")
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
            except LookupError as error:
                raise OptionError(f"--encoding {self.encoding} is unknown; try utf-8, latin-1 or cp1252") from error
        return replace(self, sep=sep)


class Layout(NamedTuple):
    """How a text is written, as given or found out.

    Parameters
    ----------
    header : bool
        Whether a line of the text has the names.
    names : list of str
        Of the columns; "" in the first place for names of rows, and for columns that follow a separator at the end of
        the lines.
    start : int
        Lines above the data, the header among them.
    notes : list of str
        What isn't as in a plain CSV file.
    quote : str
        What stands around texts.
    """

    encoding: str
    sep: str
    comment: str | None
    header: bool
    names: list[str]
    start: int
    notes: list[str]
    quote: str = '"'


def find_layout(source: Source, reading: Reading, expected: Sequence[str] | None = None) -> Layout:
    """Find out how a text is written, which may hold expected columns; DataError if it is no table."""
    _check_text(source, reading)
    lines, encoding, notes = _sample(source, reading)
    skip = reading.skip or 0
    if not any(line.strip() for line in lines[skip:]):
        raise DataError(f"{source.name} is empty; give a table with a header and rows")
    comment = reading.comment or _comment(lines[skip:])
    if comment and not reading.comment:
        notes.append(f"{comment} starts comments")
    numbered = [(i, line) for i, line in enumerate(lines) if i >= skip and line.strip()]
    kept = [(i, line) for i, line in numbered if comment is None or not line.lstrip().startswith(comment)]
    hint = re.fullmatch(r"\"?sep=(.)\"?", kept[0][1].strip()) if kept else None
    if hint:
        kept = kept[1:]
    if not kept:
        raise DataError(f"{source.name} has no line that isn't a comment; give a table with a header and rows")
    quote = _quote([line for _, line in kept])
    if quote != '"':
        notes.append(f"{quote} quotes texts")
    sep = reading.sep or (hint[1] if hint else _separator(source, kept, quote))
    if sep != "," and not reading.sep:
        notes.append(f"columns are separated by {NAMES.get(sep, repr(sep))}")
    rows = _fields(source, kept, sep, quote)
    if not rows:
        raise DataError(f"{source.name} isn't a table with columns (no first row); give a CSV file")
    if reading.skip is None and (titles := _titles([row for _, row in rows])):
        rows = rows[titles:]
        notes.append(f"{titles} line{'s' * (titles > 1)} above the table left out")
    fields = [[field.strip() for field in row] for _, row in rows]
    if reading == Reading():
        _check_even(source, fields)
    header = has_header(fields, expected) if reading.header is None else reading.header
    width = _width(fields[1:] or fields)
    if header:
        names, start = _header_names(fields), rows[0][0] + 1
    else:
        names, start = [f"x{j + 1}" for j in range(width)], rows[0][0]
        above = [line for i, line in numbered if i < start and comment and line.lstrip().startswith(comment)]
        named = _fields(source, [(0, above[-1].lstrip().lstrip(comment or "").strip())], sep, quote) if above else []
        commented = [field.strip() for field in named[0][1]] if named else []
        if len(commented) == width and not any(map(is_number, commented)) and len(set(commented)) == width:
            names = commented
            notes.append("the last comment above the table names the columns")
        elif reading.header is None:
            notes.append(f"the first line holds data, not names: the columns are called {called(names)}")
    names = _without_ends(names, fields[1:] if header else fields, header)
    if len(names) == 1 and names[0] not in (expected or ()):
        raise DataError(
            f"{source.name} isn't a table with columns: no comma, semicolon, tab or space in its first line "
            f"{fields[0][0][:40]!r}; give a CSV file with a header, or the separator by --sep"
        )
    check_unique(names, source.name)
    return Layout(encoding, sep, comment, header, names, start, notes, quote)


def text_rows(stream: Iterator[str], layout: Layout) -> Iterator[tuple[int, list[str]]]:
    """Yield the number (from 1) and the fields of each row of a text that has the layout, those above left out."""
    numbers: list[int] = []

    def lines() -> Iterator[str]:
        for number, line in enumerate(islice(stream, layout.start, None), start=layout.start + 1):
            told = line if layout.comment is None else line.split(layout.comment)[0]
            if told.strip():
                numbers[:] = [number]
                yield _normal(told, layout.sep)

    for row in csv.reader(lines(), delimiter=layout.sep, quotechar=layout.quote, skipinitialspace=True):
        yield numbers[0], row


def called(names: Sequence[str]) -> str:
    """Return the first and last of the names that columns without a header have."""
    return ", ".join(names) if len(names) < 4 else f"{names[0]}, {names[1]}, ..., {names[-1]}"


def is_number(text: str) -> bool:
    """Say whether a field holds a number, maybe with a decimal comma or separators of thousands."""
    return bool(re.fullmatch(NUMERIC, text.strip()) or re.fullmatch(r"[+-]?inf(inity)?", text.strip(), re.IGNORECASE))


def has_header(rows: Sequence[Sequence[str]], expected: Sequence[str] | None = None) -> bool:
    """Say whether the first of the rows names the columns.

    Expected names decide for a header, and text above numbers alone; otherwise numbers above numbers, a gap, words that
    come again below, a word that is there twice, or that columns are expected to have no names decide for data. Years,
    one after the other, and a count of columns are names.
    """
    top, below = rows[0], rows[1:]
    if expected and set(expected) <= set(top):
        return True
    nameless = bool(expected) and all(re.fullmatch(NAMELESS, name) for name in expected or ())
    if (
        not nameless
        and len(top) >= LEAST_COUNTED
        and any([*top] == [str(j + start) for j in range(len(top))] for start in (0, 1))
    ):
        return True
    if all(is_number(field) or is_gap(field) for field in top) and any(is_number(field) for field in top):
        return False
    shift = 1 if below and _width(below) == len(top) + 1 else 0
    data = 0
    for j, field in enumerate(top):
        column = [row[j + shift] for row in below if j + shift < len(row) and not is_gap(row[j + shift])]
        numbers = sum(map(is_number, column))
        if is_number(field):
            data += 2 * numbers > len(column)
        elif field and is_gap(field):
            data += 1
        elif field and column and numbers == len(column):
            return True
        elif field:
            data += field in column
    if nameless:
        return False
    years = [int(field) for field in top if field.isdecimal()]
    if len(years) > 1 and all(year in YEARS and year == years[0] + i for i, year in enumerate(years)):
        return True
    named = [field for field in top if field]
    return not data and (len(set(named)) == len(named) or not below)


def _sample(source: Source, reading: Reading) -> tuple[list[str], str, list[str]]:
    """Return the first lines, the encoding, and a note on it."""
    head = source.head(4)
    if reading.encoding is not None:
        tried: tuple[str, ...] = (reading.encoding,)
    elif head.startswith((b"\xff\xfe", b"\xfe\xff")):
        tried = ("utf-16",)
    else:
        tried = (UTF8, *FALLBACK)
    for encoding in tried:
        try:
            lines = _first_lines(source, encoding)
        except UnicodeDecodeError as error:
            if encoding == tried[-1]:
                raise DataError(encoding_error(source, encoding, error)) from error
            continue
        plain = encoding == UTF8 or reading.encoding is not None
        return lines, encoding, [] if plain else [f"encoded in {encoding}, as it isn't UTF-8"]
    raise AssertionError("Latin-1 decodes any bytes")


def encoding_error(source: Source, encoding: str, error: UnicodeDecodeError) -> str:
    """Return the message for a text that isn't in its encoding."""
    byte = error.object[error.start] if isinstance(error.object, bytes) and error.start < len(error.object) else 0
    name = "UTF-8" if encoding == UTF8 else encoding
    return f"{source.name} isn't text in {name} (byte 0x{byte:02x}); give its encoding, such as --encoding latin-1"


def _first_lines(source: Source, encoding: str) -> list[str]:
    lines, size = [], 0
    with io.TextIOWrapper(source.open(), encoding=encoding, newline="") as text:
        for line in text:
            lines.append(line)
            size += len(line)
            if len(lines) >= SAMPLE_LINES or (size >= SAMPLE_BYTES and len(lines) >= LEAST_LINES):
                break
    return lines


OTHERS = {
    "an ARFF file": (rb"(^|\n)\s*@relation\b", "convert it to CSV, for instance by scipy.io.arff.loadarff and to_csv"),
    "JSON": (
        rb"^\s*(\[\s*)*(\{\s*\"|\[\s*[\[\"\d-])",
        "convert it to CSV, for instance by pandas.read_json and to_csv",
    ),
    "HTML or XML": (rb"^\s*<(!doctype|html|\?xml)", "get the table itself, as CSV"),
}
"""What is text and no table, how it is told, and what to do."""


def _check_text(source: Source, reading: Reading) -> None:
    sample = source.head(1 << 16)
    wide = sample.startswith((b"\xff\xfe", b"\xfe\xff")) or (reading.encoding or "").lower().startswith("utf-16")
    if (b"\0" in sample and not wide) or sample.startswith((b"PK\x03\x04", b"\x1f\x8b", b"%PDF")):
        raise DataError(
            f"{source.name} is a binary file, not a table in text; give a CSV, Parquet, Excel or svmlight file"
        )
    if not sample.strip(b"\xef\xbb\xbf \t\r\n"):
        raise DataError(f"{source.name} is empty; give a table with a header and rows")
    for what, (pattern, way) in OTHERS.items():
        if re.search(pattern, sample.lstrip(b"\xef\xbb\xbf"), re.IGNORECASE):
            raise DataError(f"{source.name} is {what}; {way}")


def _comment(lines: Sequence[str]) -> str | None:
    """Return the character that starts comments: # or % where a line begins with it, and isn't a column's name."""
    first = next(line for line in lines if line.strip()).lstrip()
    if first.startswith("%"):
        return "%"
    begins = any(line.startswith("#") for line in lines)
    return "#" if begins and not re.match(r"#\"?[,;\t|]", first) else None


def _normal(line: str, sep: str) -> str:
    """Return a line as the CSV reader wants it: spaces between columns are as one."""
    if sep != " ":
        return line
    return (line.strip().replace("\t", " ") if '"' in line else " ".join(line.split())) + "\n"


def _quote(lines: Sequence[str]) -> str:
    """Return what stands around texts: an apostrophe if each line has texts between two, and no other apostrophe."""
    below = lines[1:]
    if not below or any('"' in line for line in lines) or not all("'" in line for line in below):
        return '"'
    return '"' if any("'" in re.sub(APOSTROPHES, "", line.strip()) for line in lines) else "'"


def _check_even(source: Source, rows: Sequence[Sequence[str]]) -> None:
    """Raise a DataError if rows have so many numbers of fields that they are running text."""
    widths = Counter(map(len, rows))
    if len(rows) >= LEAST_TEXT and widths.most_common(1)[0][1] < EVEN * len(rows):
        raise DataError(
            f"{source.name} isn't a table: its lines have {min(widths)} to {max(widths)} fields, whatever separates "
            "them; give a CSV file, or say how to read it by --sep and --skip"
        )


def _fields(
    source: Source, lines: Sequence[tuple[int, str]], sep: str, quote: str = '"'
) -> list[tuple[int, list[str]]]:
    """Return the rows that lines make, each with the number of its last line."""
    csv.field_size_limit(1 << 30)
    normal = (_normal(line, sep) for _, line in lines)
    reader = csv.reader(normal, delimiter=sep, quotechar=quote, skipinitialspace=True)
    try:
        rows = [(lines[reader.line_num - 1][0], row) for row in reader if any(field.strip() for field in row)]
    except csv.Error as error:
        raise DataError(f"{source.name} isn't a table with columns ({error}); give a CSV file") from error
    return rows


def _width(rows: Sequence[Sequence[str]]) -> int:
    """Return the most frequent number of fields."""
    return Counter(map(len, rows)).most_common(1)[0][0]


def _titles(rows: Sequence[Sequence[str]]) -> int:
    """Return how many rows are above a table of more columns: with a first field alone, or short ones above a header.

    A short row has no numbers, and two fields less than the table at least: a header may lack the name of one column.
    """
    width = _width(rows)
    if width == 1:
        return 0
    first = [[field.strip() for field in row] for row in rows[: MOST_TITLES + 1]]
    alone = [bool(row[0]) and not any(row[1:]) for row in first]
    short = [len(row) < width - 1 and not any(map(is_number, row)) for row in first]
    titles, cut = (next((i for i, title in enumerate(each) if not title), 0) for each in (alone, short))
    if cut > titles and len(first[cut]) == width:
        below = [[field.strip() for field in row] for row in rows[cut:]]
        titles = cut if has_header(below) else titles
    return titles if len(rows) - titles >= LEAST_LINES else 0


def _separator(source: Source, lines: Sequence[tuple[int, str]], quote: str) -> str:
    """Return the first separator that splits all rows alike, else the one that splits the first row most."""
    split: dict[str, list[list[str]]] = {}
    for sep in SEPARATORS:
        rows = split[sep] = [row for _, row in _fields(source, lines, sep, quote)]
        rows = rows[_titles(rows) :] if rows and sep != " " else rows
        if rows and _is_even(rows) and not _has_pairs(rows[1:] or rows):
            return sep
    first = {sep: len(rows[0]) if rows else 0 for sep, rows in split.items() if sep != " "}
    most = max(first, key=lambda sep: (first[sep], sep == ","))
    return most if first[most] > 1 or not split[" "] or len(split[" "][0]) == 1 else " "


def _is_even(rows: Sequence[Sequence[str]]) -> bool:
    width = _width(rows[1:] or rows)
    top = len(rows[0])
    return width > 1 and all(len(row) == width for row in rows[1:]) and (top == width or 1 < top == width - 1)


def _has_pairs(rows: Sequence[Sequence[str]]) -> bool:
    """Say whether every row has several numbers with spaces between in a field: those separate the columns."""

    def is_pair(text: str) -> bool:
        return bool(re.fullmatch(PAIRS, text) and not re.fullmatch(NUMERIC, text))

    return all(any(is_pair(field.strip()) for field in row) for row in rows)


def _header_names(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the names of a header, with "" for a column that it lacks: of names of rows, or after the last separator.

    R writes names of rows without a name above them.
    """
    names, below = list(rows[0]), rows[1:]
    if len(below) < 2 or _width(below) != len(names) + 1:
        return names
    longer = [row for row in below if len(row) == len(names) + 1]
    if all(not row[-1] for row in longer):
        return [*names, ""]
    first = [row[0] for row in longer]
    if len(set(first)) == len(first) and all(field.isdecimal() or not is_number(field) for field in first):
        return ["", *names]
    return names


def _without_ends(names: list[str], rows: Sequence[Sequence[str]], header: bool) -> list[str]:
    """Mark the names of columns after a separator at the end of all lines, which have nothing in them."""
    ends = 0
    while ends < len(names) - 1 and rows:
        place = len(names) - 1 - ends
        if (names[place] and header) or any(len(row) <= place or row[place] for row in rows):
            break
        ends += 1
    return [*names[: len(names) - ends], *(f"{END}{j}" for j in range(ends))]
