"""Tables on the command line: options of reading and of columns, gaps in predict, and what wrong inputs print."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import commandline
from kernsel.cli import app

QUICK = (
    *("--learner", "krr", "--criterion", "cv", "--grid", "tau=4", "--grid", "lambda=0.01", "--folds", "3"),
    *("--verify", "0", "--no-extend"),
)
N = 40


def run(*args, code=0):
    return commandline.run(*args, code=code)


@pytest.fixture
def messy(tmp_path):
    """A table as it comes from a spreadsheet in German."""
    rng = np.random.default_rng(0)
    lines = ["Umsatz 2020", "Nr;Größe;Preis;Klasse;Datum;Ziel;"]
    for i in range(N):
        amount = 1000 + 37 * i
        price = "" if i % 8 == 3 else f"{amount // 1000}.{amount % 1000:03d},{i % 9}5"
        size = "?" if i % 10 == 4 else "SML"[i % 3]
        goal = "" if i == 5 else f"{rng.normal() + i / 10:.2f}".replace(".", ",")
        lines.append(f"{i + 1};{size};{price};{'ab'[i % 2]};{1 + i % 28:02d}.03.2020;{goal};")
    path = tmp_path / "messy.csv"
    path.write_bytes(("\r\n".join(lines) + "\r\n").encode("cp1252"))
    return path


def test_a_messy_table_from_end_to_end(messy, tmp_path):
    model, document = tmp_path / "m.npz", tmp_path / "r.json"
    result = run(
        *("select", messy, "--target", "Ziel", "--ordinal", "Größe=S<M<L", *QUICK),
        *("--model", model, "--output", document),
    )
    notes = result.stdout[result.stdout.index(f"{messy}: 39 rows, 6 features\n") :]
    lines = notes.replace("\n    ", " ").replace("\n  ", "\n").splitlines()  # long ones are wrapped
    assert lines[1] == (
        "reading: encoded in cp1252, as it isn't UTF-8; columns are separated by ';'; 1 line above the table left out; "
        "numbers have a decimal comma; '.' separates thousands"
    )
    assert "1 of 40 rows without the target 'Ziel' left out" in lines
    assert any(line.startswith("columns: 1 number; 1 with categories") and "Größe S<M<L" in line for line in lines)
    assert any(line.startswith("column 'Nr' is counting the rows and left out") for line in lines)
    assert any(line.startswith("missing values: 'Größe' 10 %, 'Preis' 13 % of 39 rows") for line in lines)
    columns = {column["name"]: column for column in json.loads(document.read_text())["data"]["columns"]}
    assert [columns[name]["type"] for name in ("Größe", "Preis", "Klasse", "Datum")] == [
        *("ordinal", "number", "category", "date"),
    ]
    assert columns["Nr"]["left_out"] == "counting the rows"
    assert not columns["Preis"]["was_missing"]  # at random
    written = run("predict", model, messy).stdout
    predicted = pd.read_csv(io.StringIO(written))
    assert len(predicted) == N
    assert predicted["prediction"].notna().all()
    piped = CliRunner().invoke(app, ["predict", str(model), "-"], input=messy.read_bytes())
    assert piped.stdout == written
    error = run("predict", model, messy, "--missing", "refuse", code=2).stderr
    assert "values are missing in 2 columns ('Größe' 10 %, 'Preis' 12 % of 40 rows)" in error
    dropped = run("predict", model, messy, "--missing", "drop")
    assert "9 of 40 rows lack values and have no prediction" in dropped.stderr
    table = pd.read_csv(io.StringIO(dropped.stdout), skip_blank_lines=False)
    assert table["prediction"].isna().sum() == 9
    kept = table["prediction"].notna()
    np.testing.assert_array_equal(table["prediction"][kept], predicted["prediction"][kept])


def test_nested_estimates_take_the_choices_along(messy, tmp_path):
    document = tmp_path / "r.json"
    run(
        *("select", messy, "--target", "Ziel", "--drop", "Datum", "--missing", "drop", *QUICK),
        *("--nested", "3", "--output", document),
    )
    read = json.loads(document.read_text())
    assert read["data"]["rows"] == 30
    assert sum(fold["rows"] for fold in read["nested"]["folds"]) == 30


def test_commands_take_several_files_and_options(tmp_path):
    table = pd.DataFrame({"a": np.arange(20) % 7, "b": np.arange(20) / 3, "y": np.arange(20) % 5 + 0.5})
    for i in range(2):
        part = table[i * 10 : i * 10 + 10]
        part.to_csv(tmp_path / f"p{i}.txt", index=False, header=False, sep=" ")
    pattern = tmp_path / "p*.txt"
    said = ("--kernel", "gaussian(tau=2)", "--lambda", "0.1", "--learner", "krr", "--repeats", "2", "--folds", "3")
    found = json.loads(run("stability", pattern, *said, "--json").stdout)
    assert found["data"]["rows"] == 20
    assert "called x1, x2, x3" in found["data"]["notes"][0]
    both = json.loads(run("stability", tmp_path / "p0.txt", tmp_path / "p1.txt", *said, "--json").stdout)
    assert both["perturbations"] == found["perturbations"]
    error = run("select", pattern, "--output", tmp_path / "p1.txt", code=2).stderr
    assert "p1.txt is the table itself" in error
    chosen = json.loads(run("stability", pattern, *said, "--categorical", "x1", "--json").stdout)
    assert chosen["data"]["features"] == 8


WRONG = {
    "no such file": (None, ["nowhere.csv"], "there is no file nowhere.csv; check the name"),
    "no match": (None, ["part*.csv"], "no file matches part*.csv; check the pattern and the folder"),
    "twice": ("a,b\n1,2\n", ["t.csv", "t.csv"], "t.csv is given twice; give every file once"),
    "a folder": (None, ["."], ". is a folder; give the name of a file in it"),
    "empty": ("", ["t.csv"], "t.csv is empty; give a table with a header and rows"),
    "a picture": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", ["t.csv"], "t.csv is a binary file, not a table in text"),
    "one column": ("y\n1\n2\n", ["t.csv"], "or the separator by --sep"),
    "a short row": ("a,b,y\n1,2,3\n1,2\n", ["t.csv"], "line 3: 2 fields where the header has 3"),
    "names twice": ("a,a,y\n1,2,3\n", ["t.csv"], "the header repeats 'a'; every column needs its own name"),
    "ambiguous": ("a;y\n1,234;1\n2,345;2\n", ["t.csv"], "can be 1.234 or 1234; give --decimal , or --thousands ,"),
    "arff": ("@relation r\n", ["t.csv"], "is an ARFF file; convert it to CSV"),
    "encoding": ("a,y\n1,2\n", ["t.csv", "--encoding", "utf9"], "--encoding utf9 is unknown; try utf-8, latin-1"),
    "separator": ("a,y\n1,2\n", ["t.csv", "--sep", "ab"], "--sep 'ab' must be one character or tab, space"),
    "sheet": ("a,y\n1,2\n", ["t.csv", "--sheet", "2"], "no workbook, so it has no sheet '2'; leave out --sheet"),
    "dropped": ("a,y\n1,2\n2,3\n", ["t.csv", "--drop", "A"], "has no column 'A'; did you mean 'a'?"),
    "target dropped": ("a,y\n1,2\n2,3\n", ["t.csv", "--drop", "y"], "drop names 'y', which isn't a feature"),
    "ordinal": (
        "a,y\n1,2\n2,3\n",
        ["t.csv", "--ordinal", "a"],
        "--ordinal a isn't of the form NAME=LEAST<...<GREATEST",
    ),
    "missing": ("a,y\n1,2\n2,3\n", ["t.csv", "--missing", "skip"], "missing 'skip' is unknown; it is one of impute"),
    "refused": (
        "a,b,y\n1,,2\n,1,3\n3,1,4\n",
        ["t.csv", "--missing", "refuse"],
        "values are missing in 2 columns ('a' 33 %, 'b' 33 % of 3 rows); fill them in",
    ),
    "no target": ("a,y\n1,\n2,?\n", ["t.csv"], "only 0 rows are left, as the others have no value of the target 'y'"),
    "dates": (
        "d,y\n" + "".join(f"0{1 + i % 9}/02/2020,{i}\n" for i in range(30)),
        ["t.csv"],
        "may begin with the day or the month; write them as 2024-12-31, or leave the column out (--drop 'd')",
    ),
    "prices": (
        "p,y\n" + "".join(f"~1{i:02d}.50,{i}\n" for i in range(30)),
        ["t.csv"],
        "holds what looks like numbers or dates but can't be read as numbers (first: '~100.50')",
    ),
    "flaws": (
        "p,y\n" + "".join(f"{'<5' if i == 7 else i / 7},{i}\n" for i in range(30)),
        ["t.csv"],
        "holds numbers but for 1 of 30 rows (first: '<5' in row 8); put numbers there, or give --numeric p",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_inputs_are_one_line_with_what_helps(tmp_path, monkeypatch, case):
    content, args, message = WRONG[case]
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / "t.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    result = run("select", *args, "--quiet", code=2)
    assert result.stdout == ""
    assert result.stderr.startswith("kernsel: error: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
