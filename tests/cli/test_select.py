"""The whole way by the command line: a real table in, a model out, predictions from it."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from typer.testing import CliRunner

from kernsel.cli import app

CANDIDATE = {
    *("kernel", "parameters", "lambda", "learner", "criterion", "score"),
    *("verified", "error", "error_se", "reliability", "failed"),
}


def run(*args, code=0):
    result = CliRunner().invoke(app, [str(arg) for arg in args])
    assert result.exit_code == code, result.output
    return result


@pytest.mark.parametrize(
    ("name", "learner", "task"),
    [("wine", "svm", "classification"), ("breast-cancer", "svm", "classification"), ("diabetes", "krr", "regression")],
)
def test_from_a_table_to_predictions(tmp_path, name, learner, task):
    data, result, model = (tmp_path / file for file in ("data.csv", "result.json", "model.npz"))
    run("example", name, data)
    done = run("select", data, "--folds", 5, "--json", "--output", result, "--model", model)
    document = json.loads(done.stdout)
    assert json.loads(result.read_text()) == document
    assert {"best", "candidates", "data", "options", "conversions", "timing", "environment"} <= set(document)
    assert set(document["best"]) >= CANDIDATE
    assert all(set(candidate) >= CANDIDATE for candidate in document["candidates"])
    assert document["best"]["learner"] == learner
    assert document["best"]["verified"] is not None
    predicted = tmp_path / "predicted.csv"
    run("predict", model, data, "--output", predicted)
    truth, guess = pd.read_csv(data)["target"], pd.read_csv(predicted)["prediction"]
    if task == "classification":
        assert (truth == guess).mean() > 0.95
    else:
        assert ((truth - guess) ** 2).mean() < 0.6 * truth.var()


def test_the_table_for_people(tmp_path):
    run("example", "wine", tmp_path / "data.csv")
    text = run("select", tmp_path / "data.csv", "--folds", 5).stdout
    assert "task: classification" in text
    assert "gaussian" in text


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--kernel", "gausian"], "gaussian"),
        (["--learner", "svmm"], "svm"),
        (["--criterion", "newtoncv"], "newton-cv"),
        (["--grid", "huge"], "huge"),
        (["--grid", "auto", "--grid", "paper"], "--grid is given as auto and as paper"),
        (["--grid", "h=0.1,wide"], "--grid h=0.1,wide must be numbers with commas between"),
        (["--grid", "h=0.1", "--grid", "h=0.2"], "--grid h=0.2 is without a name or a second time"),
        (["--grid", "=0.1"], "--grid =0.1 is without a name"),
        (["--grid", "epsilon=0.1"], "has no free parameter 'epsilon'; free here: tau, lambda, h"),
        (["--grid", "h=0"], "h must be a finite number greater than 0"),
        (["--folds", "1000"], "1000"),
        (["--task", "regression", "--learner", "svm"], "svm"),
    ],
)
def test_options_that_cannot_be_met_are_one_line(tmp_path, args, message):
    data = tmp_path / "data.csv"
    pd.DataFrame({"a": range(30), "b": [i % 7 for i in range(30)], "y": [i % 2 for i in range(30)]}).to_csv(
        data, index=False
    )
    result = run("select", data, "--quiet", *args, code=2)
    assert result.stdout == ""
    assert result.stderr.startswith("kernsel: error: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
