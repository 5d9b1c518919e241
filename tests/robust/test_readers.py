"""Damaged and odd tables: whatever the bytes are, they are read or end in one line."""

from __future__ import annotations

import gzip
import json
import os
import sys
import warnings
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commandline import run
from kernsel.data import prepare, read_table, sources
from kernsel.data.csvfile import Text
from kernsel.data.layout import Reading
from kernsel.data.sheets import Workbook
from kernsel.data.sources import Source
from kernsel.errors import DataError, KernselError, OptionError
from kernsel.model.model import load
from kernsel.selection.chosen import read_choice

sys.path.insert(0, str(Path(__file__).parent))
from fuzzing import damaged, seeds, table

SEEDS = seeds()


def read(path):
    """Read a file and encode it; what goes wrong must be one line of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return prepare(read_table(path))
        except KernselError as error:
            assert "\n" not in str(error)  # noqa: PT017
            return None


@pytest.mark.parametrize("name", SEEDS)
def test_whole_files_are_read(tmp_path, name):
    (tmp_path / name).write_bytes(SEEDS[name])
    assert read(tmp_path / name).n in (8, 12)


@pytest.mark.parametrize("name", SEEDS)
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32))
def test_damaged_files_are_read_or_refused(tmp_path_factory, name, seed):
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(damaged(SEEDS[name], seed))
    read(path)


@settings(max_examples=60)
@given(content=st.binary(max_size=80), name=st.sampled_from(["x.csv", "x", "x.npy", "x.parquet", "x.svm", "x.xlsx"]))
def test_any_bytes_are_read_or_refused(tmp_path_factory, content, name):
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(content)
    read(path)


FOUND = {  # by the fuzzer: format and number of the damage
    "t.npy": (8, 32, 110, 214),
    "t.feather": (19, 40, 192, 197),
    "t.ods": (80,),
    "t.zip": (123,),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_the_fuzzer_found(tmp_path, name):
    for number in FOUND[name] if name in SEEDS else ():
        (tmp_path / name).write_bytes(damaged(SEEDS[name], number * 1000003))
        read(tmp_path / name)


def test_texts_of_arrow_beyond_their_end(tmp_path):
    """Offsets that point beyond the text are a segmentation fault, if they are read."""
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"a": pyarrow.array(["p", "q"], pyarrow.string()), "b": [1.0, 2.0]})
    with pyarrow.ipc.new_file(tmp_path / "t.feather", table.schema) as file:
        file.write_table(table)
    sound = (tmp_path / "t.feather").read_bytes()
    offsets, damaged = (np.array(each, np.int32).tobytes() for each in ([0, 1, 2], [0, 1, 10**9]))
    assert sound.count(offsets) == 1
    (tmp_path / "t.feather").write_bytes(sound.replace(offsets, damaged))
    with pytest.raises(DataError, match="isn't a Feather file, or a damaged one"):
        read_table(tmp_path / "t.feather")


def test_whole_numbers_beyond_any_range():
    frame = table().astype({"a": object})
    frame.loc[3, "a"] = "1" * 400
    said = "'a' (holds a number of more than 308 digits|has 1 infinite value|holds what looks like numbers or dates)"
    with pytest.raises(DataError, match=said):
        prepare(frame.assign(a=frame["a"].astype(str)))


def test_dates_beyond_nanoseconds():
    frame = table().assign(when=[f"{year}-02-08" for year in range(2020, 2500, 40)])
    assert prepare(frame).n == 12


def test_a_plain_file_that_is_called_compressed(tmp_path):
    for name in ("t.gz", "t.csv.gz", "t.zip", "t.bz2", "t.xlsx"):
        table().to_csv(tmp_path / name, index=False, compression=None) if name != "t.xlsx" else (
            tmp_path / name
        ).write_bytes(SEEDS["t.csv"])
        assert read(tmp_path / name).n == 12


def test_an_archive_of_arrays_under_another_name(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.ones((3, 3)))
    os.replace(tmp_path / "a.npz", tmp_path / "a.npy")
    with pytest.raises(DataError, match=r"is an archive of arrays \(\.npz\)"):
        read_table(tmp_path / "a.npy")
    np.save(tmp_path / "a.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="isn't an array of NumPy"):
        read_table(tmp_path / "a.npy")


def test_bombs(tmp_path):
    zeros = b"a,y\n" + b"0,1\n" * 2**18
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(zeros))
    (tmp_path / "line.csv.gz").write_bytes(gzip.compress(b"0" * 2**20))
    with zipfile.ZipFile(tmp_path / "b.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("t.csv", zeros)
    with zipfile.ZipFile(tmp_path / "b.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", zeros)
    assert len(zlib.compress(zeros)) * sources.RATIO + 2**16 < len(zeros)
    for name, part in (("b.csv.gz", Text()), ("line.csv.gz", Text()), ("b.zip", Text()), ("b.xlsx", Workbook())):
        with pytest.raises(DataError, match="unpacks to more than"):
            part.read(Source(name, tmp_path / name, small=2**16), Reading(), None)


def test_columns_of_parquet_that_hold_no_single_values(tmp_path):
    pytest.importorskip("pyarrow")
    n = 12
    frame = pd.DataFrame({"a": np.arange(n) * 1.0, "y": np.arange(n) ** 2.0})
    odd = frame.assign(
        s=[{"p": i % 3} for i in range(n)], l=[[i % 3] for i in range(n)], b=[b"u", b"v"] * 6, x=[b"\xff", b"v"] * 6
    )
    odd.drop(columns="x").to_parquet(tmp_path / "t.parquet")
    found = read_table(tmp_path / "t.parquet")
    assert list(found.columns) == ["a", "y", "b"]
    assert found["b"].tolist() == ["u", "v"] * 6
    assert "left out as they hold no single values: 's', 'l'" in found.attrs["notes"][0]
    odd.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError, match="isn't a Parquet file"):
        read_table(tmp_path / "t.parquet")


def test_targets_that_can_be_no_labels():
    frame = table().drop(columns="y").assign(y=[{"p": i % 3} for i in range(12)])
    with pytest.raises(DataError, match="holds values that can't be labels"):
        prepare(frame)


@pytest.mark.parametrize("name", ["x" * 300, "a\0b"])
def test_names_that_no_file_can_have(tmp_path, name):
    with pytest.raises(DataError, match="can't read"):
        read_table(tmp_path / name)
    with pytest.raises(KernselError):
        load(tmp_path / name)
    with pytest.raises(OptionError):
        read_choice(tmp_path / name)


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32))
def test_damaged_results_are_read_or_refused(tmp_path_factory, seed):
    whole = {
        "format": "kernsel-selection",
        "version": 1,
        "best": {
            "kernel": {"kernel": "gaussian", "parameters": {"tau": 2.0}},
            "lambda": 0.1,
            "learner": "krr",
            "learner_parameters": {},
        },
        "data": {"target": "y", "task": "regression"},
        "options": {"weights": None, "groups": None, "fold_column": None},
    }
    path = tmp_path_factory.getbasetemp() / "r.json"
    path.write_text(json.dumps(whole))
    assert read_choice(path).lam == 0.1
    path.write_bytes(damaged(json.dumps(whole).encode(), seed))
    try:
        read_choice(path)
    except KernselError as error:
        assert "\n" not in str(error)  # noqa: PT017


def test_a_reader_that_fails_is_one_line_of_the_command(tmp_path):
    (tmp_path / "t.npy").write_bytes(damaged(SEEDS["t.npy"], 8 * 1000003))
    assert "t.npy" in run("select", tmp_path / "t.npy", code=2).stderr
