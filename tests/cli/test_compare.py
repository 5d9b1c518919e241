"""``kernsel compare`` from tables to tables."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from commandline import run

FAST = ("--kernel", "gaussian", "--folds", 3, "--grid", "tau=0.5,2", "--grid", "lambda=0.01,0.1", "--splits", 2)


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("first", "second"):
        X = rng.normal(size=(50, 2))
        frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": np.where(X[:, 0] > 0, "yes", "no")})
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    return [tmp_path / "first.csv", tmp_path / "second.csv"]


def test_from_tables_to_tables(data, tmp_path):
    output, tables = tmp_path / "out.json", tmp_path / "tables.tex"
    done = run("compare", *data, *FAST, "--criteria", "cv,cvks(eta=1, cv=cv)", "--against",
               "sklearn.svm:SVC", "--output", output, "--tables", tables)  # fmt: skip
    assert "first: 50 rows, 2 features" in done.stdout
    assert "cvks(eta=1, cv=cv)  criterion=cvks(eta=1, cv=cv)" in done.stdout
    assert "mean rank" in done.stdout
    assert f"tables written to {tables}" in done.stdout
    assert r"\begin{tabular}" in tables.read_text()
    document = json.loads(output.read_text())
    assert [each["table"] for each in document["results"]] == ["first", "second"]
    assert json.loads(run("compare", *data, *FAST, "--rules", "safest,minimum", "--json").stdout)["splits"] == 2


def test_methods_with_names_and_a_picture(data, tmp_path):
    pytest.importorskip("matplotlib")
    methods = ("--method", "five(folds=5)", "--method", "ten(folds=10, choose=minimum)")
    done = run("compare", *data, *FAST[:2], *FAST[4:], *methods, "-q", "--plot", tmp_path / "d.png")
    assert "five  folds=5" in done.stdout
    assert (tmp_path / "d.png").read_bytes().startswith(b"\x89PNG")


def test_groups_and_boxes_of_what_was_chosen(data, tmp_path):
    pytest.importorskip("matplotlib")
    for path in data:
        frame = pd.read_csv(path)
        frame.insert(0, "site", np.arange(len(frame)) % 10)
        frame.to_csv(path, index=False)
    asked = ("compare", *data, *FAST, "--rules", "safest,minimum", "--groups", "site", "--json")
    done = run(*asked, "--chosen", f"tau={tmp_path / 'b.png'}", "--chosen", f"lambda={tmp_path / 'c.svg'}")
    rows = json.loads(done.stdout)["results"][0]["rows"]
    assert rows == {"all": 50, "train": 35, "test": 15}  # groups are of five rows
    assert (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "c.svg").read_text()
    failed = run("compare", data[0], *FAST, "--rules", "safest,minimum", "--chosen", f"ta={tmp_path / 'd.png'}", code=2)
    assert "no method can choose 'ta'; did you mean 'tau'? there are lambda and tau" in failed.stderr
    assert failed.stdout == ""  # before the work
    box = f"x.tau={tmp_path / 'd.png'}"
    failed = run("compare", data[0], *FAST, "--rules", "safest,minimum", "--chosen", box, code=2)
    assert "no method can choose 'x.tau'" in failed.stderr


def test_it_goes_on_from_a_journal(data, tmp_path):
    asked = ("compare", *data, *FAST, "--rules", "safest,minimum", "--journal", tmp_path / "j", "--json")
    first, again = run(*asked), run(*asked)
    assert again.stdout == first.stdout  # times too, as they are kept
    assert "going on from" in again.stderr
    assert "8 trials are done" in again.stderr
    shown = run("journal", tmp_path / "j").stdout
    assert "compare of first, second: 100 rows" in shown
    trials = re.search(r"steps: (\d+) of (\d+) trial", shown)
    assert trials is not None
    assert trials[1] == trials[2]
    run(*asked, "--splits", 3)
    assert "steps: 12 of 12 trial" in run("journal", tmp_path / "j").stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "there is nothing to compare"),
        (["--criteria", "cv,gvc"], "no criterion is called 'gvc'"),
        (["--rules", "safest,minimm"], "method 'minimm'"),
        (["--protocol", "ks15"], "no experiment is called 'ks15'"),
        (["--method", "a(criterio=cv)"], "no option 'criterio'"),
        (["--method", "a(folds=5)", "--method", "a(folds=3)"], "--method a is given twice"),
        (["--rules", "safest,minimum", "--train", "2.5"], "train is the share of the rows"),
        (["--rules", "safest,minimum", "--tables", "x.doc"], "its name must end with"),
        (["--rules", "safest,minimum", "--plot", "x.png"], "ranks are over tables"),
        (["--rules", "safest,minimum", "--test", "x"], "is t, corrected or wilcoxon"),
        (["--against", "sklearn.svm:SVX"], "has no SVX"),
        (["--rules", "safest,minimum", "--chosen", "b.png"], "--chosen b.png: write NAME=FILE, such as tau=boxes.png"),
        (["--rules", "safest,minimum", "--groups", "c"], "has no column 'c'"),
    ],
)
def test_mistakes_are_one_line(data, args, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in run("compare", data[0], *FAST, *args, code=2).stderr


def test_a_table_is_given_once(data):
    assert "is given twice" in run("compare", data[0], data[0], "--rules", "safest,minimum", code=2).stderr
