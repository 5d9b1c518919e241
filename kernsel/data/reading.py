"""Read a table from files, each by the format that it has: see the entry points ``kernsel.formats``."""

from __future__ import annotations

import lzma
import os
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from textwrap import shorten
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse import vstack as stack_rows

from kernsel import protocols, registry
from kernsel.data.blocks import join_blocks
from kernsel.data.columns import sign_of
from kernsel.data.layout import Reading
from kernsel.data.names import listed
from kernsel.data.signs import SIGNS_READ, Signs, join_signs, single_sign
from kernsel.data.sources import Source, find_sources
from kernsel.data.tables import SparseTable, names_of
from kernsel.errors import BrokenPlugin, DataError, KernselError, PluginWarning
from kernsel.numerics.points import as_points
from kernsel.text import first_line

if TYPE_CHECKING:
    import pandas as pd

Format: TypeAlias = protocols.Format[Source, Reading, "pd.DataFrame | SparseTable"]
"""What has ``fits(source, reading)`` and ``read(source, reading, expected)``, as every format."""

DAMAGED = (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, NotImplementedError)
"""What reading a damaged compressed file raises, besides an OSError."""

MOST_LENGTHS = 8
"""Files whose numbers of rows are told one by one."""


def read_table(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    expected: Iterable[str] | None = None,
    reading: Reading | None = None,
    may_be_empty: bool = False,
) -> pd.DataFrame | SparseTable:
    """Read a table with one named column a feature.

    Parameters
    ----------
    paths : path or list of paths
        One file, several of the same columns, a pattern such as ``part*.csv``, or ``-`` for the standard input.
        ``.parquet`` and ``.pq`` are read as Parquet, ``.feather`` and ``.arrow`` as Arrow (both need pyarrow),
        workbooks of Excel (needs openpyxl) and OpenDocument (needs odfpy) by what they hold; ``.svmlight``,
        ``.libsvm``, ``.svm`` and what looks like it as svmlight with the features ``f1, f2, ...`` and a last column
        ``target``; ``.npy`` as a memory map with the columns ``x0, x1, ...``; anything else as text. All but ``.npy``
        and workbooks may be compressed by gzip, bzip2, xz or zip.
    expected : iterable of str, optional
        The features that the table shall have: svmlight doesn't say how many there are, and a text of few rows not
        whether the first one has names.
    reading : Reading, optional
        How a text is written, as far as it isn't to be found out.
    may_be_empty : bool
        Whether there need be no rows.

    Returns
    -------
    pandas.DataFrame, or SparseTable from svmlight
        ``attrs["notes"]`` says what was found out and changed on the way in, ``attrs["source"]`` names the file.

    Raises
    ------
    DataError
        The file can't be read as a table.
    """
    reading = (reading or Reading()).checked()
    sources = find_sources(paths)
    expected = None if expected is None else list(expected)
    frame = _read(sources[0], expected, reading) if len(sources) == 1 else _read_all(sources, expected, reading)
    frame.attrs["source"] = sources[0].name if len(sources) == 1 else f"{sources[0].name} and {len(sources) - 1} more"
    if not (len(frame) or may_be_empty):
        raise DataError(f"{frame.attrs['source']} has a header but no rows; give a table with at least one row")
    return frame


def _read(
    source: Source, expected: list[str] | None, reading: Reading, alike: str | None = None
) -> pd.DataFrame | SparseTable:
    """Read one file by its name and its first bytes; DataError if another format than ``alike`` is the surest."""
    try:
        return _read_format(source, expected, reading, alike)
    except DAMAGED as error:
        raise DataError(f"{source.name} is damaged, or can't be unpacked ({error}); get another copy of it") from error
    except MemoryError as error:
        raise DataError(
            f"{source.name} needs more memory than there is, or is damaged; give it in smaller files"
        ) from error
    except (KernselError, ImportError):
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataError(f"can't read {source.name}: {reason}; get another copy of it") from error
    except Exception as error:  # what readers of other libraries raise on garbage is in no list
        reason = registry.blame(error) or shorten(f"{type(error).__name__}: {error}", 80)
        raise DataError(
            f"{source.name} can't be read, and may be damaged ({reason}); get another copy of it"
        ) from error


def _read_format(
    source: Source, expected: list[str] | None, reading: Reading, alike: str | None
) -> pd.DataFrame | SparseTable:
    """Read one file by the format that is the surest that the file is one of its own."""
    surest = _surest(source, reading)
    if alike not in (None, surest.name):
        raise DataError(f"{source.name} isn't of the format of the first file, {alike}; give files of one kind")
    table: pd.DataFrame | SparseTable = surest.read(source, reading, expected)
    if not hasattr(table, "attrs"):
        raise TypeError(f"format {surest.name!r} returned {type(table).__name__} in place of a table")
    table.attrs.setdefault("notes", [])
    table.attrs["format"] = surest.name
    return table


def _surest(source: Source, reading: Reading) -> Format:
    """Return the surest format, the first of equals, built-in ones first; a warning says which plugin's can't be asked.

    What a built-in one raises is the matter of the file.
    """
    answers: list[tuple[int, Format]] = []
    for claim in sorted(registry.claims("format"), key=lambda claim: not claim.builtin):
        if claim.state != "ok":
            continue
        try:
            part: Format = registry.get("format", claim.name)()
            answers.append((int(part.fits(source, reading)), part))
        except BrokenPlugin as error:
            warnings.warn(str(error), PluginWarning, stacklevel=2)
        except (Exception, SystemExit) as error:
            if claim.builtin or isinstance(error, KernselError):
                raise
            text = f"format {claim.name!r} of {claim.origin} failed ({type(error).__name__}: {first_line(error)})"
            warnings.warn(f"{text} and is left out; tell its authors", PluginWarning, stacklevel=2)
    return max(answers, key=lambda answer: answer[0])[1]


def _read_all(sources: Sequence[Source], expected: list[str] | None, reading: Reading) -> pd.DataFrame | SparseTable:
    """Read several files of the same columns, and put their rows together in the order of the files."""
    import pandas as pd

    first = _read(sources[0], expected, reading)
    lengths, signs = [len(first)], _signs_in(first)
    names = names_of(first)
    alike = Reading(**first.attrs["reading"]) if "reading" in first.attrs else reading

    def rest() -> Iterator[Any]:
        for source in sources[1:]:
            # What svmlight lacks is 0 there, so that files may have other widths.
            wanted = [*(expected or ()), *names] if isinstance(first, SparseTable) else expected
            table = _read(source, wanted, alike, first.attrs["format"])
            if isinstance(first, pd.DataFrame) and names_of(table) != names:
                there = names_of(table)
                odd = [name for name in [*there, *names] if (name in there) != (name in names)] or there
                raise DataError(
                    f"{source.name} hasn't the columns of {sources[0].name} in their order (first other: "
                    f"{listed(odd[:1])}); give files of one layout"
                )
            lengths.append(len(table))
            signs.update(join_signs(signs, _signs_in(table)))
            yield table

    notes = list(first.attrs["notes"])
    if isinstance(first, SparseTable):
        joined: Any = _stacked([first, *rest()])
    else:
        columns = join_blocks(chain([first], rest()))
        mixed = [name for name, column in columns.items() if column is None]
        if mixed:
            raise DataError(
                f"column {mixed[0]!r} holds numbers in some of the files and text in others; make them alike, or leave "
                f"out the files that differ (first: {sources[0].name})"
            )
        joined = pd.DataFrame(columns, copy=False)
        found = {name: single_sign(name, signs[name], "files") for name in signs}
        joined.attrs[SIGNS_READ] = {name: sign for name, sign in found.items() if sign is not None}
    rows = ", ".join(map(str, lengths)) if len(lengths) <= MOST_LENGTHS else str(sum(lengths))
    joined.attrs["notes"] = [*notes, f"{len(sources)} files of {rows} rows together"]
    return joined


def _signs_in(table: pd.DataFrame | SparseTable) -> Signs:
    """Return what stands beside the numbers of columns that have values; nothing for sparse tables."""
    if isinstance(table, SparseTable):
        return {}
    numeric = table.select_dtypes("number")
    return {str(name): frozenset({sign_of(table[name])}) for name in numeric if table[name].notna().any()}


def _stacked(tables: Sequence[SparseTable]) -> SparseTable:
    """Put rows of sparse tables below each other; the last column of each is the target, which stays the last."""
    widest = max(tables, key=lambda table: len(table.names))
    if any(table.names[0] != widest.names[0] for table in tables):
        raise DataError("some of the files count their features from 0, others from 1; number them alike")
    parts = []
    for table in tables:
        d = len(table.names) - 1
        columns = np.where(table.X.indices == d, len(widest.names) - 1, table.X.indices)
        parts.append(csr_array((table.X.data, columns, table.X.indptr), shape=(len(table), len(widest.names))))
    return replace(widest, X=as_points(csr_array(stack_rows(parts))), attrs=dict(tables[0].attrs))
