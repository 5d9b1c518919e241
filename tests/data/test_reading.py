"""Reading tables: what is accepted, and the one line that says why not."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix, random_array
from sklearn.datasets import dump_svmlight_file

from kernsel.data import prepare, read_table
from kernsel.data.arrowfile import Parquet
from kernsel.data.csvfile import FIELD_BYTES, Text
from kernsel.data.layout import Reading
from kernsel.data.sources import Source
from kernsel.data.svmlight import Svmlight
from kernsel.data.tables import column_of
from kernsel.errors import DataError

ROWS = [[f"{i / 7:.4f}", f"{(i * 37) % 11}.5", str(i % 2)] for i in range(40)]
HEADER = ["a", "b", "y"]


def table(path: Path, rows=ROWS, header=HEADER, sep=",", end="\n", encoding="utf-8") -> Path:
    path.write_bytes((end.join(sep.join(row) for row in [header, *rows]) + end).encode(encoding))
    return path


@pytest.mark.parametrize("sep", [",", ";", "\t", ", "])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_every_dialect_gives_the_same_table(tmp_path, sep, end, encoding):
    frame = read_table(table(tmp_path / "t.csv", sep=sep, end=end, encoding=encoding))
    assert list(frame.columns) == HEADER
    np.testing.assert_array_equal(frame.to_numpy(), np.array(ROWS, dtype=float))
    named = {";": "';'", "\t": "tabs"}
    assert frame.attrs["notes"] == ([f"reading: columns are separated by {named[sep]}"] if sep in named else [])


def test_decimal_commas_are_read_and_noted(tmp_path):
    rows = [[value.replace(".", ",") for value in row] for row in ROWS]
    frame = read_table(table(tmp_path / "t.csv", rows, sep=";"))
    np.testing.assert_array_equal(frame.to_numpy(), np.array(ROWS, dtype=float))
    assert frame.attrs["notes"] == ["reading: columns are separated by ';'; numbers have a decimal comma"]


def test_quoted_text_may_hold_delimiters_and_line_ends(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('"a,1",b\n"x, ""y""\nz",1\nu,2\n')
    frame = read_table(path)
    assert frame.values.tolist() == [['x, "y"\nz', 1], ["u", 2]]
    assert list(frame.columns) == ["a,1", "b"]


def test_row_numbers_without_a_name_are_left_out(tmp_path):
    frame = read_table(table(tmp_path / "t.csv", [[str(i + 1), *row] for i, row in enumerate(ROWS)], ["", *HEADER]))
    assert list(frame.columns) == HEADER
    assert "numbers the rows" in frame.attrs["notes"][0]


def test_a_delimiter_at_the_end_of_every_line_is_no_column(tmp_path):
    frame = read_table(table(tmp_path / "t.csv", [[*row, ""] for row in ROWS], [*HEADER, ""]))
    assert list(frame.columns) == HEADER


BAD_TABLES = {
    "repeated names": (ROWS, ["a", "a", "y"], "the header repeats 'a'; every column needs its own name"),
    "several without": (ROWS, ["", "", "y"], "several columns have no name"),
    "one without": (ROWS, ["a", "", "y"], "column 2 has no name; give it one in the header"),
    "no rows": ([], HEADER, "has a header but no rows"),
    "a long row": ([*ROWS[:30], ["1", "2", "1", "7"]], HEADER, "line 32: 4 fields where the header has 3"),
    "a short row": ([*ROWS[:30], ["1", "2"]], HEADER, "line 32: 2 fields where the header has 3"),
    "a row of one": ([*ROWS[:30], ["1"]], HEADER, "line 32: 1 field where the header has 3"),
    "all rows long": ([[*row, "1"] for row in ROWS], HEADER, "line 2: 4 fields where the header has 3"),
    "one column": ([["1"], ["2"]], ["y"], "no comma, semicolon, tab or space in its first line 'y'"),
    "infinities": (
        [*ROWS, ["inf", "1", "0"], ["-inf", "1", "0"]],
        HEADER,
        "'a' has 2 infinite values (first in row 41)",
    ),
    "overflow at reading": ([*ROWS, ["1e400", "1", "0"]], HEADER, "in row 41"),  # infinite or no number, as pandas says
    "too large": ([*ROWS, ["1", "1e300", "0"]], HEADER, "column 'b' holds 1e+300 in row 41: its square overflows"),
    "no numbers": (
        [[f"<{i}" if i % 3 == 0 else row[0], *row[1:]] for i, row in enumerate(ROWS)],
        HEADER,
        "--numeric a",
    ),
    "no targets": ([[*row[:2], ""] for row in ROWS], HEADER, "as the others have no value of the target 'y'"),
    "thousands": (
        [[f"{i}.000.{i:03d}", *row[1:]] for i, row in enumerate(ROWS)],
        HEADER,
        "column 'a' holds what looks like numbers or dates but can't be read as numbers (first: '0.000.000')",
    ),
    "one class": ([[*row[:2], "1"] for row in ROWS], HEADER, "target 'y' has one value only (1)"),
    "one row": (ROWS[:1], HEADER, "the table has 1 row; a selection needs at least 2"),
    "all constant": ([["1", "2", row[2]] for row in ROWS], HEADER, "no column is left to learn from"),
}


def check_refused(tmp_path, case, read):
    rows, header, message = BAD_TABLES[case]
    with pytest.raises(DataError) as caught:
        prepare(read(table(tmp_path / "t.csv", rows, header)))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("case", BAD_TABLES)
def test_bad_tables_are_refused_in_one_line(tmp_path, case):
    check_refused(tmp_path, case, read_table)


BAD_FILES = {
    "empty": (b"", "is empty"),
    "blank": (b"\n\n  \n", "is empty"),
    "binary": (bytes(range(256)), "is a binary file"),
    "zip": (b"PK\x03\x04rest", "is a binary file"),
    "a letter": (b"Dear Sir,\nI write, as I said, to you.\n", "line 2: 3 fields where the header has 2"),
    "an open quote": (b'a,b,y\n1,"2,1\n3,4,0\n', "fields where the header has 3"),
    "only quotes": (b'"\n"\n', "isn't a table with columns"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_files_are_refused_in_one_line(tmp_path, case):
    content, message = BAD_FILES[case]
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_table(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_and_a_missing_file(tmp_path):
    table(tmp_path / "good.csv")
    with pytest.raises(DataError, match="is a folder"):
        read_table(tmp_path)
    with pytest.raises(DataError, match=r"there is no file .*god.csv; did you mean 'good.csv'\?"):
        read_table(tmp_path / "god.csv")
    with pytest.raises(DataError, match="there is no file .*; check the name"):
        read_table(tmp_path / "nowhere" / "god.csv")


def test_an_unreadable_file(tmp_path):
    path = table(tmp_path / "t.csv")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("permissions don't bind this user")
    with pytest.raises(DataError, match="Permission denied; check its permissions"):
        read_table(path)


def test_an_unknown_column_is_met_with_a_suggestion(tmp_path):
    path = table(tmp_path / "t.csv", header=["Height", "weight", "Outcome"])
    with pytest.raises(DataError, match="has no column 'outcom'; did you mean 'Outcome'?"):
        prepare(read_table(path), "outcom")
    with pytest.raises(DataError, match="its columns are 'Height', 'weight', 'Outcome'"):
        prepare(read_table(path), "zzz")


def test_svmlight_is_sparse_with_the_files_own_numbers(tmp_path):
    path = tmp_path / "t.svmlight"
    path.write_text("+1 1:0.5 3:2\n-1 2:1\n")
    table = read_table(path)
    assert table.names == ("f1", "f2", "f3", "target")
    assert table.X.toarray().tolist() == [[0.5, 0, 2, 1], [0, 1, 0, -1]]
    assert column_of(table, "target").dtype.kind == "i"
    assert column_of(table, "f1").tolist() == [0.5, 0.0]
    wider = read_table(path, expected=["f1", "f2", "f3", "f4", "f5"])
    assert wider.names == ("f1", "f2", "f3", "f4", "f5", "target")
    path.write_text("1 0:1 2:0.5\n2 1:1\n")
    assert read_table(path).names == ("f0", "f1", "f2", "target")


@pytest.mark.parametrize(("content", "message"), [("hello there\n", "isn't an svmlight file"), ("", "is empty")])
def test_bad_svmlight(tmp_path, content, message):
    path = tmp_path / "t.svmlight"
    path.write_text(content)
    with pytest.raises(DataError, match=message):
        read_table(path)


def test_a_sparse_file_of_too_many_features_is_refused(tmp_path):
    path = tmp_path / "t.svmlight"
    path.write_text("1 2000000000:1\n")
    with pytest.raises(DataError, match="t.svmlight is sparse and has 2000000001 columns, which are too many to name"):
        read_table(path)


def read_in_blocks(path, rows=3):
    """Read so many rows of text at a time, as much of svmlight, or three columns."""
    part = {".csv": Text, ".svmlight": Svmlight, ".parquet": Parquet}[path.suffix]()
    return part.read(Source(path.name, path, at_once=rows * FIELD_BYTES * len(HEADER)), Reading(), None)


def test_blocks_of_rows_are_the_whole_file(tmp_path):
    path = tmp_path / "t.csv"
    rows = [[str(i), f"{i / 7!r}" if i > 20 else str(i), f"k{i % 3}"] for i in range(41)]
    frame, whole = read_in_blocks(table(path, rows)), pd.read_csv(path)
    pd.testing.assert_frame_equal(frame, whole)
    assert [dtype.kind for dtype in frame.dtypes[:2]] == ["i", "f"]


def test_categories_are_the_same_in_all_blocks(tmp_path):
    path = table(tmp_path / "t.csv", [[code, str(i), "1"] for i, code in enumerate(["01", "02", "1", "b", "", "01"])])
    frame = read_in_blocks(path)  # the first block holds numbers alone
    assert frame["a"].tolist()[:4] == ["01", "02", "1", "b"]
    assert frame["a"].isna().tolist() == [False] * 4 + [True, False]
    assert frame["b"].dtype.kind == "i"


@pytest.mark.parametrize("case", ["a short row", "a long row", "no numbers", "no targets", "infinities"])
def test_bad_tables_are_refused_in_one_line_whatever_the_block(tmp_path, case):
    check_refused(tmp_path, case, read_in_blocks)


def test_lines_of_svmlight_are_read_once_whatever_the_block(tmp_path):
    X = random_array((60, 40), density=0.2, rng=0, format="csr")
    y, path = np.arange(60) / 7, tmp_path / "t.svmlight"
    dump_svmlight_file(csr_matrix(X), y, str(path), comment="a comment")
    table = read_in_blocks(path)
    np.testing.assert_allclose(table.X.toarray(), np.column_stack([X.toarray(), y]), rtol=1e-15)
    path.write_text(path.read_text() + "1 2:three\n")
    with pytest.raises(DataError, match="isn't an svmlight file"):
        read_in_blocks(path)


def test_arrays_of_numpy(tmp_path):
    path, A = tmp_path / "t.npy", np.array(ROWS, dtype=float)
    np.save(path, A)
    frame = read_table(path)
    assert list(frame.columns) == ["x0", "x1", "x2"]
    np.testing.assert_array_equal(frame.to_numpy(), A)
    data = prepare(frame)
    assert data.labels == [0.0, 1.0]
    for bad, message in ((A[0], "numbers in rows and columns, not float64 of shape"), (A.astype(str), "not <U")):
        np.save(path, bad)
        with pytest.raises(DataError, match=message):
            read_table(path)
    path.write_bytes(b"no array")
    with pytest.raises(DataError, match="isn't an array of NumPy"):
        read_table(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a pipe with a name")
def test_a_pipe_is_not_read(tmp_path):
    path = tmp_path / "t.csv"
    os.mkfifo(path)
    with pytest.raises(DataError, match=r"t\.csv is a pipe or a device, .* save it to a file first"):
        read_table(path)


def test_parquet(tmp_path):
    path = tmp_path / "t.parquet"
    try:
        import pyarrow  # noqa: F401  # only whether it is there
    except ImportError:
        path.write_bytes(b"PAR1")
        with pytest.raises(DataError, match="Parquet needs pyarrow"):
            read_table(path)
        return
    frame = read_table(table(tmp_path / "t.csv"))
    frame["kind"] = pd.Categorical(np.array(["u", "v"])[frame.index % 2])
    frame["whole"] = pd.array(frame.index, dtype="Int64")
    frame.index = frame.index + 7
    frame.to_parquet(path)
    for found in (read_table(path), read_in_blocks(path)):
        pd.testing.assert_frame_equal(found, frame.reset_index(drop=True))
    path.write_bytes(b"PAR1")
    with pytest.raises(DataError, match="isn't a Parquet file"):
        read_table(path)
