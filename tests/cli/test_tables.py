"""Tables on the command line: options of reading and of columns, gaps in predict, and what wrong inputs print."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import commandline
from kernsel.cli import app
from kernsel.data import Reading, read_table
from kernsel.errors import ModelError
from kernsel.model.model import load

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
        "may begin with the day or the month; write them as 2024-12-31, or give --drop 'd', or --categorical 'd'",
    ),
    "prices": (
        "p,y\n" + "".join(f"~1{i:02d}.50,{i}\n" for i in range(30)),
        ["t.csv"],
        "holds what looks like numbers or dates but can't be read as numbers (first: '~100.50')",
    ),
    "per cent in some rows": (
        "p,y\n" + "".join(f"{i / 2}{'%' * (i % 3 > 0)},{i}\n" for i in range(30)),
        ["t.csv"],
        "can't be read as numbers (first: '0.5%'); write % beside all numbers or beside none, or give --drop p",
    ),
    "two targets": (
        "a,y,z\n1,2,3\n2,3,4\n",
        ["t.csv", "--target", "y", "--target", "z"],
        "--target is given twice, and names one column: the last one; several targets are a,b",
    ),
    "two columns of weights": (
        "a,w,v,y\n1,2,3,4\n2,3,4,5\n",
        ["t.csv", "--weights", "w", "--weights=v"],
        "--weights is given twice, and names one column: the last one",
    ),
    "money below 0 in brackets": (
        "p,y\n" + "".join(f"{f'(${i}.50)' if i % 4 == 2 else f'${i}.50'},{i}\n" for i in range(30)),
        ["t.csv"],
        "(first: '($2.50)'); write $ and a number in each, and - in front of what is below 0, or give --drop p",
    ),
    "few rows": (
        "a,y\n1.5,2\n2,2.5\n7,3\n3,3\n",
        ["t.csv"],
        "10 folds can't be made of 4 rows: use 2 to 4 folds, by --folds or --nested",
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


def numbered(tmp_path, rows=30):
    """A table that can't be read without options: two lines of notes, no names, commas for decimals or for columns."""
    rng = np.random.default_rng(3)
    lines = ["1;2;3 measured", "4;5;6 by hand"]
    for i in range(rows):
        x, z = rng.normal(size=2)
        lines.append(f"{'ab'[i % 2]};{x:.3f};{np.sin(x) + z / 10:.3f}".replace(".", ","))
    path = tmp_path / "numbered.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


READ = ("--skip", "2", "--no-header", "--sep", ";", "--decimal", ",")


@pytest.fixture
def remembering(tmp_path):
    """A table that needs options, and a model of it."""
    table, model = numbered(tmp_path), tmp_path / "m.npz"
    run("select", table, *READ, *QUICK, "--model", model)
    return table, model


def test_predict_reads_a_table_as_that_of_the_selection(remembering, tmp_path):
    table, model = remembering
    assert load(model).provenance["reading"] == {"sep": ";", "decimal": ",", "header": False, "skip": 2}
    given = run("predict", model, table, *READ)
    assert given.stderr == ""
    again = run("predict", model, table)
    assert again.stdout == given.stdout
    assert len(again.stdout.splitlines()) == 31
    said = "kernsel: read as the table of the selection was, by --sep ';' --decimal , --no-header --skip 2; options"
    assert again.stderr.startswith(said)
    piped = CliRunner().invoke(app, ["predict", str(model), "-"], input=table.read_bytes())
    assert piped.stdout == given.stdout
    # What is given comes first.
    plain = tmp_path / "plain.txt"
    plain.write_text(table.read_text().partition("hand\n")[2])
    assert run("predict", model, plain, "--skip", "0").stdout == given.stdout


def test_no_row_is_skipped_in_silence(remembering, tmp_path):
    """A file without the lines above the selection's table has rows there, which its skip would lose."""
    table, model = remembering
    whole = run("predict", model, table).stdout
    rows = table.read_text().partition("hand\n")[2]
    (tmp_path / "t.txt").write_text(rows)
    said = run("predict", model, tmp_path / "t.txt", code=2).stderr
    assert "--skip 2, but the first 2 lines of this one are as its rows are; give --skip 0 if they belong" in said
    assert run("predict", model, tmp_path / "t.txt", "--skip", "0").stdout == whole
    assert len(run("predict", model, tmp_path / "t.txt", "--skip", "2").stdout.splitlines()) == 29
    (tmp_path / "t.txt").write_text("a title\n" + rows)
    said = run("predict", model, tmp_path / "t.txt", code=2).stderr
    assert "--skip 2, but the first line of this one is as its rows are" in said
    (tmp_path / "t.txt").write_text("a;b;c\nkg;m;s\n" + rows)
    assert run("predict", model, tmp_path / "t.txt").stdout == whole


@pytest.mark.parametrize("above", ["", "a title\n", "a title\nand another one\n", "1,2,3\n"])
def test_a_skip_is_remembered_where_a_header_follows(tmp_path, above):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(N, 3)), columns=["a", "b", "y"])
    text = frame.to_csv(index=False)
    (tmp_path / "t.csv").write_text("1,2,3\n" + text)
    run("select", tmp_path / "t.csv", "--skip", "1", *QUICK, "--model", tmp_path / "m.npz")
    (tmp_path / "u.csv").write_text(above + text)
    given = run("predict", tmp_path / "m.npz", tmp_path / "t.csv").stdout
    assert len(given.splitlines()) == N + 1
    assert run("predict", tmp_path / "m.npz", tmp_path / "u.csv").stdout == given


def test_a_table_of_another_form_is_read_by_its_own(remembering, tmp_path):
    table, model = remembering
    given = run("predict", model, table).stdout
    frame = read_table(table, reading=Reading(sep=";", decimal=",", header=False, skip=2))
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert run("predict", model, tmp_path / "t.csv").stdout == given
    piped = CliRunner().invoke(app, ["predict", str(model), "-"], input=(tmp_path / "t.csv").read_bytes())
    assert piped.stdout == given


def test_a_parquet_table_is_read_by_its_own(remembering, tmp_path):
    pytest.importorskip("pyarrow")
    table, model = remembering
    frame = read_table(table, reading=Reading(sep=";", decimal=",", header=False, skip=2))
    frame.to_parquet(tmp_path / "t.parquet")
    assert run("predict", model, tmp_path / "t.parquet").stdout == run("predict", model, table).stdout
    frame.drop(columns="x2").to_parquet(tmp_path / "t.parquet")
    assert "it lacks 'x2'" in run("predict", model, tmp_path / "t.parquet", code=2).stderr


def test_what_is_found_out_is_not_remembered(tmp_path):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.normal(size=N), "y": rng.normal(size=N)})
    frame.to_csv(tmp_path / "t.csv", sep=";", decimal=",", index=False)
    run("select", tmp_path / "t.csv", *QUICK, "--model", tmp_path / "m.npz")
    assert "reading" not in load(tmp_path / "m.npz").provenance
    frame.to_csv(tmp_path / "u.csv", index=False)
    one = run("predict", tmp_path / "m.npz", tmp_path / "t.csv")
    assert one.stderr == ""
    assert run("predict", tmp_path / "m.npz", tmp_path / "u.csv").stdout == one.stdout


def test_few_rows_without_names_are_rows_where_the_model_has_no_names(tmp_path):
    rng = np.random.default_rng(2)
    lines = [f"{'MFI'[i % 3]},{'rst'[i % 2]},{rng.normal():.3f},{rng.normal():.3f}" for i in range(N)]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    run("select", tmp_path / "t.csv", *QUICK, "--model", tmp_path / "m.npz")

    def predict(name):
        written = run("predict", tmp_path / "m.npz", tmp_path / name).stdout
        return pd.read_csv(io.StringIO(written))["prediction"].to_numpy()

    whole = predict("t.csv")
    for rows in (1, 2, 3):
        (tmp_path / "u.csv").write_text("\n".join(lines[:rows]) + "\n")
        np.testing.assert_allclose(predict("u.csv"), whole[:rows], rtol=1e-12)
    (tmp_path / "u.csv").write_text("x1,x2,x3,x4\n" + lines[0] + "\n")
    np.testing.assert_allclose(predict("u.csv"), whole[:1], rtol=1e-12)
    (tmp_path / "u.csv").write_text("sex,form,length,weight\n" + "\n".join(lines[:3]) + "\n")
    assert "it lacks 'x3', 'x1', 'x2'" in run("predict", tmp_path / "m.npz", tmp_path / "u.csv", code=2).stderr


def test_a_model_of_one_column_predicts_a_file_of_one_column(tmp_path):
    x = np.linspace(0, 1, N)
    pd.DataFrame({"x": x, "y": np.sin(3 * x)}).to_csv(tmp_path / "t.csv", index=False)
    run("select", tmp_path / "t.csv", *QUICK, "--numeric", "x", "--model", tmp_path / "m.npz")
    whole = run("predict", tmp_path / "m.npz", tmp_path / "t.csv").stdout
    pd.DataFrame({"x": x}).to_csv(tmp_path / "u.csv", index=False)
    assert run("predict", tmp_path / "m.npz", tmp_path / "u.csv").stdout == whole
    pd.DataFrame({"z": x}).to_csv(tmp_path / "u.csv", index=False)
    assert "or the separator by --sep" in run("predict", tmp_path / "m.npz", tmp_path / "u.csv", code=2).stderr


def test_a_model_with_another_way_of_reading_is_refused(remembering, tmp_path):
    _, model = remembering
    fitted = load(model)
    for reading in ([], {"seperator": ";"}, {"skip": "2"}, {"sep": 1}):
        replace(fitted, provenance={**fitted.provenance, "reading": reading}).save(tmp_path / "n.npz")
        with pytest.raises(ModelError, match="isn't a model of kernsel, or one that somebody changed"):
            load(tmp_path / "n.npz")


def test_update_reads_a_table_as_that_of_the_selection(tmp_path):
    table, model = numbered(tmp_path, 60), tmp_path / "m.npz"
    run("select", table, *READ, *QUICK, "--rank", "10", "--model", model)
    again = run("update", model, table, "--output", tmp_path / "n.npz")
    assert "60 new rows, 120 in all" in again.stdout
    assert "read as the table of the selection was" in again.stderr
    assert load(tmp_path / "n.npz").provenance["reading"]["skip"] == 2
    quiet = run("update", model, table, "--output", tmp_path / "n.npz", "--quiet")
    assert "read as" not in quiet.stderr
