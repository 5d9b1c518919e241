"""Read Parquet and Feather (Arrow) files, a few columns at a time: what Arrow makes of a file takes as much room."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import TYPE_CHECKING, Any, ClassVar

from kernsel.data.layout import Reading
from kernsel.data.names import check_unique, listed
from kernsel.data.sources import Fit, Source
from kernsel.errors import DataError, check_memory
from kernsel.system.memory import give_back

if TYPE_CHECKING:
    import pandas as pd

PLAIN = 4
"""Numbers take no more room while they are read than after: so many times as much is read at once as of text."""


@dataclass(frozen=True)
class Parquet:
    """Parquet files, by pyarrow."""

    name: ClassVar[str] = "parquet"

    def fits(self, source: Source, reading: Reading) -> Fit:
        """Return what its name and its first bytes say."""
        return Fit.of(source, (".parquet", ".pq"), b"PAR1")

    def read(self, source: Source, reading: Reading, expected: list[str] | None) -> pd.DataFrame:
        """Return the table of a file."""
        reading.check_only(source, "a Parquet file")

        def read() -> tuple[list[pd.DataFrame], list[str]]:
            from pyarrow.parquet import ParquetFile

            with source.open() as stream, ParquetFile(stream) as file:
                n, schema = file.metadata.num_rows, file.schema_arrow
                check_memory(8 * n * len(schema.names), f"{source.name}, a table of {n} rows,", "give a part of it")
                return _column_blocks(schema, n, source.at_once, lambda part: file.read(part, use_pandas_metadata=True))

        return _frame(source, "Parquet", read)


@dataclass(frozen=True)
class Feather:
    """Feather files, which are Arrow files, and Arrow's streams, by pyarrow."""

    name: ClassVar[str] = "feather"

    def fits(self, source: Source, reading: Reading) -> Fit:
        """Return what its name and its first bytes say."""
        return Fit.of(source, (".feather", ".arrow", ".arrows", ".ipc"), b"ARROW1", b"FEA1")

    def read(self, source: Source, reading: Reading, expected: list[str] | None) -> pd.DataFrame:
        """Return the table of a file."""
        reading.check_only(source, "an Arrow file")

        def read() -> tuple[list[pd.DataFrame], list[str]]:
            import pyarrow

            head = source.head(6)
            with source.open() as stream:
                if head == b"ARROW1":
                    table = pyarrow.ipc.open_file(stream).read_all()
                elif head.startswith(b"FEA1"):
                    from pyarrow.feather import read_table

                    table = read_table(stream)
                else:
                    table = pyarrow.ipc.open_stream(stream).read_all()
            return _column_blocks(table.schema, table.num_rows, source.at_once, table.select)

        return _frame(source, "Feather", read)


def _frame(source: Source, what: str, read: Callable[[], tuple[list[pd.DataFrame], list[str]]]) -> pd.DataFrame:
    import pandas as pd

    try:
        blocks, odd = read()
    except ImportError as error:
        raise DataError(
            f"{source.name}: {what} needs pyarrow; install it (pip install 'kernsel[parquet]') or give a CSV"
        ) from error
    except (OSError, ValueError) as error:  # pyarrow's own errors are ValueErrors
        raise DataError(
            f"{source.name} isn't a {what} file, or a damaged one ({shorten(str(error), 80)}); write it again, or give "
            "a CSV"
        ) from error
    give_back()
    columns = [column.reset_index(drop=True) for block in blocks for _, column in block.items()]
    names = [str(column.name) for column in columns]
    check_unique(names, source.name)
    frame = pd.DataFrame(dict(zip(names, columns, strict=True)), copy=False)
    frame.attrs["notes"] = [f"left out as they hold no single values: {listed(odd)}"] if odd else []
    return frame


def _column_blocks(
    schema: Any, n: int, size: int, read: Callable[[Sequence[str]], Any]
) -> tuple[list[pd.DataFrame], list[str]]:
    """Read columns in blocks of ``PLAIN`` times so many bytes, but not those of an index.

    Named are those left out, which hold structures, lists and such.
    """
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    names = [field.name for field in schema if field.name not in index and not _is_odd(field.type)]
    some = max(1, PLAIN * size // (8 * max(n, 1)))
    parts = [names[start : start + some] for start in range(0, len(names), some)]
    odd = [field.name for field in schema if _is_odd(field.type)]
    return [_as_text(read(part)).to_pandas() for part in parts], odd


def _is_odd(kind: object) -> bool:
    from pyarrow import types

    return bool(types.is_nested(kind) or types.is_union(kind))


def _as_text(table: Any) -> Any:
    """Return a table of Arrow with bytes as the text that they encode; ValueError if it is damaged."""
    import pyarrow
    from pyarrow import types

    table.validate(full=True)  # damaged offsets are read beyond the end of a column otherwise
    for j, field in enumerate(table.schema):
        if types.is_binary(field.type) or types.is_large_binary(field.type) or types.is_fixed_size_binary(field.type):
            column = table.column(j).cast(pyarrow.binary()).cast(pyarrow.string())
            table = table.set_column(j, field.name, column)
    return table
