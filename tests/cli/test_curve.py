"""``kernsel curve`` from tables to lines, pictures and files."""

import json

import numpy as np
import pandas as pd
import pytest

from commandline import run
from kernsel.comparison import tables
from kernsel.selection.carry_out import encode_arrays

FAST = ("--kernel", "gaussian", "--grid", "tau=0.5,2", "--grid", "lambda=0.01,0.1")


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("first", "second"):
        X = rng.normal(size=(50, 2))
        y = np.where(X[:, 0] + 0.3 * rng.normal(size=50) > 0, "yes", "no")
        pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "site": np.arange(50) % 10, "y": y}).to_csv(
            tmp_path / f"{name}.csv", index=False
        )
    return [tmp_path / "first.csv", tmp_path / "second.csv"]


def test_from_tables_to_a_curve(data, tmp_path):
    pytest.importorskip("matplotlib")
    files = ("--output", tmp_path / "c.json", "--tables", tmp_path / "c.csv", "--plot", tmp_path / "c.png")
    asked = ("eta", *data, *FAST, "--folds", 3, "--groups", "site", "--splits", 2)
    done = run("curve", *asked, "--values", "0.25,64", "--criteria", "cvks,rks", *files)
    assert "first: 50 rows, 2 features" in done.stdout
    assert "test error against eta" in done.stdout
    assert f"picture written to {tmp_path / 'c.png'}" in done.stdout
    document = json.loads((tmp_path / "c.json").read_text())
    assert [(line["panel"], line["name"]) for line in document["lines"]] == [
        ("first", "cvks"), ("first", "rks"), ("second", "cvks"), ("second", "rks"),
    ]  # fmt: skip
    assert document["comparison"]["results"][1]["methods"][3]["error"] == document["lines"][3]["y"][1]
    frame = pd.read_csv(tmp_path / "c.csv")
    assert frame["test error"].tolist() == [y for line in document["lines"] for y in line["y"]]
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("asked", "label"),
    [
        (("rank", "--values", "3,20", "--splits", 2), "held-out error, as reported"),
        (("order", "--values", "1,3", "--splits", 2, "--folds", 5), "order r"),
        (("landmarks", "--values", "0.2,1", "--splits", 2, "--folds", 5, "--train", 0.8), "landmarks, as a share"),
    ],
)
def test_each_curve_has_its_axis(data, asked, label):
    name, *options = asked
    done = run("curve", name, data[0], *FAST, "--drop", "site", *options, "-q")
    assert label in done.stdout
    assert done.stdout.count("±") >= 2


def test_a_surface(data):
    asked = ("curve", "surface", data[0], "--drop", "site", "--kernel", "gaussian", "--folds", 3)
    document = json.loads(run(*asked, "--values", "0.01,0.1", "--mus", "0.001,1", "--json").stdout)
    assert np.shape(document["points"]["z"]) == (2, 2)
    assert document["format"] == "kernsel-surface"


@pytest.mark.parametrize("name", ["eta", "order"])
def test_each_table_is_encoded_once_before_the_work(data, name, monkeypatch):
    """What is announced and written to a journal's header is what is worked on."""
    encoded = []

    def count(X, y, plan, **options):
        encoded.append(len(y))
        return encode_arrays(X, y, plan, **options)

    monkeypatch.setattr(tables, "encode_arrays", count)
    values = {"eta": "0.25,64", "order": "1,2"}[name]
    run("curve", name, *data, *FAST, "--values", values, "--splits", 1, "--folds", 3, "--train", 0.8)
    assert encoded.count(50) == 2  # and parts of them to train on


def test_it_goes_on_from_a_journal(data, tmp_path):
    asked = ("order", data[0], *FAST, "--values", "1,2", "--splits", 2, "--folds", 5, "--journal", tmp_path / "j")
    first, again = run("curve", *asked), run("curve", *asked)
    assert again.stdout == first.stdout
    assert "going on from" in again.stderr
    assert "curve order of first: 50 rows" in run("journal", tmp_path / "j").stdout
    assert (tmp_path / "j").read_text().count('"stage"') == 2  # what a draw chose, not each step of its search
    more = run("curve", *asked, "--splits", 3)
    assert "going on from" in more.stderr
    assert "with other options" in run("curve", *asked, "--train", 0.7, code=2).stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["et"], "no curve is called 'et'; did you mean 'eta'? there are eta, rank, order, landmarks and surface"),
        (["eta", "--values", "a,b"], "--values a,b must be numbers with commas between"),
        (["order", "--mus", "1"], "--mus is not of the curve order"),
        (["surface", "--splits", "3"], "--splits is not of the curve surface"),
        (["eta", "--criteria", "cv"], "criterion 'cv' has no option 'eta'"),
        (["eta", "--eta", "2"], "eta 2.0: the curve is over eta; leave it out, and give values of it"),
        (["rank", "--values", "20"], "values of rank, 20: give two or more"),
        (["order", "--folds", "30"], "train 0.5 of 50 rows are 25, and 30 folds need 60"),
        (["order", "--tables", "x.doc"], "its name must end with"),
        (["order", "--plot", "x.doc"], "its name must end with"),
    ],
)
def test_mistakes_are_one_line(data, args, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name, *options = args
    assert message in run("curve", name, data[0], *FAST[:2], *options, code=2).stderr
