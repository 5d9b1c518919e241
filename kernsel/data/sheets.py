"""Read a sheet of an Excel or OpenDocument workbook."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from kernsel.data.gaps import SURE
from kernsel.data.layout import Reading, called, has_header
from kernsel.data.names import check_unique, listed
from kernsel.data.sources import Fit, Source, is_workbook
from kernsel.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

OLD_EXCEL = b"\xd0\xcf\x11\xe0"
ENGINES = {"openpyxl": "excel", "odf": "ods"}
"""What reads a workbook, and the extra that installs it."""
SAMPLE_ROWS = 200


@dataclass(frozen=True)
class Workbook:
    """Workbooks of Excel, by openpyxl, and OpenDocument, by odfpy."""

    name: ClassVar[str] = "workbook"

    def fits(self, source: Source, reading: Reading) -> Fit:
        """Return what the files within and the first bytes say."""
        old = source.head(len(OLD_EXCEL)).startswith(OLD_EXCEL)
        return Fit.CONTENT if old or is_workbook(source.members()) else Fit.NOT

    def read(self, source: Source, reading: Reading, expected: list[str] | None) -> pd.DataFrame:
        """Return the table of a sheet."""
        if not is_workbook(source.members()):
            raise DataError(f"{source.name} is a workbook of an old Excel; save it as .xlsx or CSV")
        reading.check_only(source, "a workbook", "header", "skip", "sheet")
        return read_sheet(source, reading, expected)


def read_sheet(source: Source, reading: Reading, expected: list[str] | None = None) -> pd.DataFrame:
    """Read the first sheet, or the one that is asked for; titles above the table are left out."""
    import pandas as pd

    engine = "odf" if "content.xml" in source.members() else "openpyxl"
    try:
        with source.path.open("rb") as stream, pd.ExcelFile(stream, engine=engine) as book:
            sheet, notes = _sheet(source, reading, [str(name) for name in book.sheet_names])
            cells = pd.read_excel(
                book, sheet_name=sheet, header=None, na_values=sorted(SURE), keep_default_na=False, dtype=object
            )
    except ImportError as error:
        package = "odfpy" if engine == "odf" else engine
        raise DataError(
            f"{source.name} needs {package}; install it (pip install 'kernsel[{ENGINES[engine]}]') or save it as CSV"
        ) from error
    except (ValueError, KeyError, OSError, SyntaxError, zipfile.BadZipFile) as error:
        if isinstance(error, DataError):
            raise
        reason = " ".join(str(error).split())[:80]
        raise DataError(f"{source.name} is a damaged workbook ({reason}); save it again, or as CSV") from error
    return _table(source, reading, cells, notes, expected)


def _sheet(source: Source, reading: Reading, sheets: list[str]) -> tuple[str, list[str]]:
    """Return the name of the sheet to read, and a note if there are others."""
    wanted = reading.sheet
    if wanted is None:
        others = listed(sheets[1:])
        return sheets[0], [f"sheet {sheets[0]!r} is read, the first one; besides there are {others}"] if others else []
    if wanted in sheets:
        return wanted, []
    if wanted.isdecimal() and 1 <= int(wanted) <= len(sheets):
        return sheets[int(wanted) - 1], []
    raise DataError(f"{source.name} has no sheet {wanted!r}; its sheets are {listed(sheets)}")


def _table(
    source: Source, reading: Reading, cells: pd.DataFrame, notes: list[str], expected: list[str] | None
) -> pd.DataFrame:
    """Make a table of cells: without empty rows and columns, and rows above it; with names, and types of columns."""
    cells = cells.iloc[reading.skip or 0 :]
    cells = cells.dropna(how="all").dropna(how="all", axis=1)
    if cells.empty:
        raise DataError(f"{source.name}: the sheet is empty; give another one by --sheet")
    if reading.skip is None:
        filled = cells.notna().sum(axis=1).to_numpy()[:SAMPLE_ROWS]
        titles = next((i for i, count in enumerate(filled) if count > 1), 0)
        if titles:
            cells = cells.iloc[titles:].dropna(how="all", axis=1)
            notes = [*notes, f"{titles} row{'s' * (titles > 1)} above the table left out"]
    rows = [["" if value != value or value is None else _text(value) for value in row] for row in _head(cells)]
    header = has_header(rows, expected) if reading.header is None else reading.header
    if header:
        names = [name.strip() for name in rows[0]]
        cells = cells.iloc[1:]
    else:
        names = [f"x{j + 1}" for j in range(cells.shape[1])]
        if reading.header is None:
            notes = [*notes, f"the first row holds data, not names: the columns are called {called(names)}"]
    check_unique(names, source.name)
    if "" in names:
        raise DataError(f"{source.name}: column {names.index('') + 1} has no name; give it one in the header")
    frame = cells.reset_index(drop=True).infer_objects()
    frame.columns = names
    frame.attrs["notes"] = [f"reading: {'; '.join(notes)}"] if notes else []
    return frame


def _head(cells: pd.DataFrame) -> list[list[Any]]:
    return [list(row) for row in cells.head(SAMPLE_ROWS).itertuples(index=False)]


def _text(value: object) -> str:
    return str(value).strip()
