"""From the command line: folds that leave near rows out of fits, and sets and intervals of predictions."""

import json

import numpy as np
import pandas as pd
import pytest

import kernsel
from commandline import run

pytestmark = pytest.mark.filterwarnings("ignore::kernsel.errors.SelectionWarning")

GRID = {"kernel": "gaussian", "grid": {"tau": [1.0, 4.0], "lambda": [0.001, 0.1]}, "extend": False}
FAST = ("--kernel", "gaussian", "--grid", "tau=1,4", "--grid", "lambda=0.001,0.1", "--no-extend", "--quiet")
NEAR = {
    "in time": ({"when": "day", "folds": "blocks:4", "purge": "2d", "embargo": "1d"}, "left out"),
    "in order": ({"when": "day", "folds": "time:4", "purge": "3d"}, "left out"),
    "in space": ({"coordinates": ["lat", "lon"], "folds": 4, "buffer": "5km"}, "what is within 5km left out"),
}


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Sixty rows of a day each, at places of their own."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    frame = pd.DataFrame(
        {
            "day": pd.date_range("2024-01-01", periods=60).strftime("%Y-%m-%d"),
            "lat": 48.0 + rng.random(60),
            "lon": 11.0 + rng.random(60),
            "site": np.where(np.arange(60) % 2, "north", "south"),
            "x": x,
            "y": np.sin(2 * x) + 0.1 * rng.normal(size=60),
        }
    )
    frame.to_csv("t.csv", index=False)
    frame.assign(y=np.where(frame.y > 0, "high", "low")).to_csv("c.csv", index=False)
    return frame


@pytest.mark.parametrize("way", NEAR)
def test_near_rows_are_left_out_as_in_python(table, way):
    asked, said = NEAR[way]
    words = [
        word
        for name, value in asked.items()
        for word in (f"--{name}", ",".join(value) if isinstance(value, list) else str(value))
    ]
    found = json.loads(run("select", "t.csv", "--target", "y", *FAST, *words, "--json").stdout)
    same = kernsel.select(table.drop(columns="y"), table.y, **GRID, **asked)
    assert found["best"]["score"] == pytest.approx(same.best.score, rel=1e-12)
    plain = {name: value for name, value in asked.items() if name in ("when", "folds")}
    assert kernsel.select(table.drop(columns="y"), table.y, **GRID, **plain).best.score != same.best.score
    assert said in run("select", "t.csv", "--target", "y", *FAST, *words).stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--purge", "2", "--folds", "5"], "purge"),
        (["--embargo", "1"], "embargo"),
        (["--buffer", "5km"], "buffer"),
        (["--coordinates", "lat,nowhere", "--buffer", "5km"], "nowhere"),
        (["--when", "day", "--folds", "blocks:4", "--purge", "soon"], "soon"),
    ],
)
def test_what_cannot_be_left_out_is_refused_by_name(table, words, said):
    assert said in run("select", "t.csv", "--target", "y", *FAST, *words, code=2).stderr


def test_sets_of_classes_are_written_by_label(table):
    words = ("--drop", "day", "--intervals", "sets", "--model", "m.npz")
    run("select", "c.csv", "--target", "y", "--learner", "lssvm", *FAST, *words)
    run("predict", "m.npz", "c.csv", "--set", "0.8", "--output", "p.csv")
    found = pd.read_csv("p.csv")
    model = kernsel.load("m.npz")
    sets = model.predict_set(table.drop(columns="y"), 0.8)
    np.testing.assert_array_equal(found[["in set high", "in set low"]].to_numpy(), sets)
    run("predict", "m.npz", "c.csv", "--set", "0.8", "--by", "site", "--output", "q.csv")
    by_site = pd.read_csv("q.csv")[["in set high", "in set low"]].to_numpy()
    np.testing.assert_array_equal(by_site, model.predict_set(table.drop(columns="y"), 0.8, by="site"))


def test_intervals_hold_within_each_category(table):
    run("select", "t.csv", "--target", "y", "--drop", "day", *FAST, "--model", "m.npz")
    run("predict", "m.npz", "t.csv", "--interval", "0.8", "--by", "site", "--output", "p.csv")
    found = pd.read_csv("p.csv")
    ends = kernsel.load("m.npz").predict_interval(table.drop(columns="y"), 0.8, by="site")
    np.testing.assert_allclose(found[["lower", "upper"]], ends, rtol=1e-12)


def test_a_set_of_a_regression_is_refused(table):
    run("select", "t.csv", "--target", "y", "--drop", "day", *FAST, "--model", "m.npz")
    assert "classes" in run("predict", "m.npz", "t.csv", "--set", "0.8", "--output", "p.csv", code=2).stderr
