"""Read a table from a file: CSV, Parquet, svmlight or an array of NumPy."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, hstack

from kernsel.data.blocks import grown
from kernsel.data.columns import check_features
from kernsel.data.csvfile import read_csv
from kernsel.data.names import check_unique
from kernsel.data.tables import SparseTable, array_names
from kernsel.errors import DataError
from kernsel.numerics.points import Points, as_points

if TYPE_CHECKING:
    import pandas as pd

SVMLIGHT = (".svmlight", ".libsvm", ".svm")
PARQUET = (".parquet", ".pq")
BLOCK_BYTES = 2**24
"""Columns of a Parquet file are read together up to this."""
SVMLIGHT_BLOCK = 2**22
"""Bytes of an svmlight file that are read at once."""
TARGET = 2**31 - 2
"""The column of the target until it is known how many features an svmlight file has."""


def read_table(path: str | os.PathLike[str], expected: Iterable[str] | None = None) -> pd.DataFrame | SparseTable:
    """Read a table with one named column a feature.

    Parameters
    ----------
    path : path
        ``.parquet`` and ``.pq`` are read as Parquet (needs pyarrow), ``.svmlight``, ``.libsvm``, ``.svm`` as svmlight
        with the features ``f1, f2, ...`` and a last column ``target``, ``.npy`` as a memory map with the columns
        ``x0, x1, ...``; anything else as CSV with a header, separated by comma, semicolon or tab, in UTF-8.
    expected : iterable of str, optional
        For svmlight, which doesn't say how many features there are: the features that the table shall have.

    Returns
    -------
    pandas.DataFrame, or SparseTable from svmlight
        ``attrs["notes"]`` says what was changed on the way in, ``attrs["source"]`` names the file.

    Raises
    ------
    DataError
        The file can't be read as a table.
    """
    path = Path(path)
    _check_file(path)
    if path.suffix.lower() in SVMLIGHT:
        frame: pd.DataFrame | SparseTable = _read_svmlight(path, expected)
    elif path.suffix.lower() in PARQUET:
        frame = _read_parquet(path)
    elif path.suffix.lower() == ".npy":
        frame = _read_npy(path)
    else:
        frame = read_csv(path)
    frame.attrs["source"] = str(path)
    if not len(frame):
        raise DataError(f"{path} has a header but no rows; give a table with at least one row")
    return frame


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise DataError(f"{path} is a folder; give the name of a file in it")
    if not path.exists():
        near = difflib.get_close_matches(path.name, _names_in(path.parent), n=1)
        hint = f"; did you mean {path.with_name(near[0])}?" if near else "; check the name"
        raise DataError(f"there is no file {path}{hint}")
    if not path.is_file():
        raise DataError(f"{path} is a pipe or a device, and a table is read more than once; save it to a file first")
    try:
        with path.open("rb") as stream:
            stream.read(1)
    except OSError as error:
        raise DataError(f"can't read {path}: {error.strerror}; check its permissions") from error


def _names_in(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []  # only a suggestion is lost


def _read_parquet(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        from pyarrow.parquet import ParquetFile

        with ParquetFile(path) as file:
            blocks = _column_blocks(file)
    except ImportError as error:
        raise DataError(
            f"{path}: Parquet needs pyarrow; install it (pip install 'kernsel[parquet]') or give a CSV"
        ) from error
    except (OSError, ValueError) as error:  # pyarrow's own errors are ValueErrors
        raise DataError(
            f"{path} isn't a Parquet file, or a damaged one ({shorten(str(error), 80)}); write it again, or give a CSV"
        ) from error
    columns = [column.reset_index(drop=True) for block in blocks for _, column in block.items()]
    names = [str(column.name) for column in columns]
    check_unique(names, str(path))
    frame = pd.DataFrame(dict(zip(names, columns, strict=True)), copy=False)
    frame.attrs["notes"] = []
    return frame


def _column_blocks(file: Any) -> list[pd.DataFrame]:
    """Read a Parquet file a few columns at a time: what Arrow makes of a file takes as much room again."""
    names, n = file.schema_arrow.names, file.metadata.num_rows
    index = (file.schema_arrow.pandas_metadata or {}).get("index_columns", [])
    names = [name for name in names if name not in index]
    some = max(1, BLOCK_BYTES // (8 * max(n, 1)))
    parts = [names[start : start + some] for start in range(0, len(names), some)]
    return [file.read(part, use_pandas_metadata=True).to_pandas() for part in parts]


def _read_npy(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        array = np.load(path, mmap_mode="r")
    except (ValueError, EOFError) as error:  # what NumPy says of other files is about pickles
        raise DataError(f"{path} isn't an array of NumPy; write it by numpy.save, or give a CSV") from error
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise DataError(f"{path} must hold numbers in rows and columns, not {array.dtype} of shape {array.shape}")
    frame = pd.DataFrame(array, columns=array_names(array.shape[1]), copy=False)
    frame.attrs["notes"] = []
    return frame


def _read_svmlight(path: Path, expected: Iterable[str] | None) -> SparseTable:
    if not path.stat().st_size:
        raise DataError(f"{path} is empty; give a table with rows")
    values, columns, lengths = np.empty(0), np.empty(0, np.int32), np.empty(0, np.int64)
    try:
        with path.open("rb") as stream:
            while lines := stream.read(SVMLIGHT_BLOCK):
                block = _svmlight_rows(lines + stream.readline())
                values, columns = grown(values, block.data), grown(columns, block.indices)
                lengths = grown(lengths, np.diff(block.indptr))
    except (ValueError, OverflowError) as error:
        raise DataError(f"{path} isn't an svmlight file ({' '.join(str(error).split())[:80]})") from error
    is_target = columns == TARGET
    wanted = [int(name[1:]) for name in expected or () if name[:1] == "f" and name[1:].isdecimal()]
    width = max([1, *(index + 1 for index in wanted), int(columns.max(where=~is_target, initial=0)) + 1])
    check_features(width, str(path))
    first = 0 if 0 in wanted or (columns == 0).any() else 1
    columns[is_target] = width
    columns -= first
    names = (*(f"f{index}" for index in range(first, width)), "target")
    starts = np.concatenate([[0], np.cumsum(lengths)])
    X = csr_array((values, columns, starts), shape=(len(lengths), len(names)))
    return SparseTable(as_points(X), names, {"notes": []})


def _svmlight_rows(lines: bytes) -> Points:
    """Return the rows of some lines, the target in the column ``TARGET``."""
    from sklearn.datasets import load_svmlight_file

    # Features keep the number that the file gives them; svmlight counts from 1, some writers from 0.
    X, y = load_svmlight_file(BytesIO(lines), n_features=TARGET, zero_based=True)
    return as_points(hstack([X, csr_array(y[:, None])]))
