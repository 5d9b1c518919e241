"""``kernsel mkl`` from a table to weights, a document and a model."""

import json

import numpy as np
import pandas as pd
import pytest

from commandline import run


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=["noise", "signal", "weight"])
    frame["weight"] = 1.0
    frame["site"] = np.arange(60) // 5
    frame["kind"] = np.where(np.abs(frame["signal"]) < 0.7, "near", "far")
    frame.to_csv(tmp_path / "data.csv", index=False)
    return tmp_path / "data.csv"


ROLES = ("--weights", "weight", "--groups", "site", "--family", "separate", "--grid", "tau=1", "--lambda", 0.02)


def test_from_a_table_to_weights_and_a_model(data, tmp_path):
    output, model = tmp_path / "out.json", tmp_path / "model.npz"
    done = run("mkl", data, *ROLES, "--method", "simple", "--select", "svm", "--output", output, "--model", model)
    lines = done.stdout.splitlines()
    assert lines[0] == f"{data}: 60 rows, 2 features"
    head = next(i for i, line in enumerate(lines) if line.split() == ["weight", "kernel", "features"])
    assert lines[head + 1].split()[1:] == ["gaussian(tau=1)[1]", "signal"]
    assert any(line.startswith("selected: svm on ") for line in lines)
    assert lines[-2:] == [f"result written to {output}", f"model written to {model}"]
    document = json.loads(output.read_text())
    assert document["kernels"][0]["features"] == ["signal"]
    assert document["selection"]["best"]["kernel"] == document["kernel"]
    assert run("predict", model, data).stdout.startswith("prediction\n")


def test_json_is_the_only_output(data):
    document = json.loads(run("mkl", data, *ROLES, "--method", "lp(p=3)", "--json").stdout)
    assert document["method"] == {"name": "lp", "p": 3.0, "tolerance": 0.01}
    assert "selection" not in document


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--method", "lpp"], "no method is called 'lpp'; did you mean 'lp'?"),
        (["--family", "product"], "did you mean 'products'?"),
        (["--grid", "auto"], "--grid auto= must be numbers"),
        (["--grid", "tau=1", "--grid", "tau=2"], "a second time"),
        (["--model", "m.npz"], "--model needs a fitted model: give --select with a learner"),
        (["--folds", "lol"], "folds 'lol' is unknown"),
        (["--kernel", "gausian"], "did you mean 'gaussian'"),
        (["--select", "krrr", "--lambda", "-1"], "did you mean 'krr'"),  # before anything is learnt
        (["--lambda", "-1"], "lambda must be a finite number greater than 0"),
        (["--method", "alignment", "--learner", "svm"], "give it to the selection"),
    ],
    ids=str,
)
def test_what_cannot_be_had_is_one_line(data, args, message):
    result = run("mkl", data, "--quiet", *args, code=2)
    assert result.stdout == ""
    assert result.stderr.startswith("kernsel: error: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_it_says_what_it_was_learnt_on_and_how_good_it_is(data):
    options = "--method", "alignment", "--grid", "tau=1", "--rows", 30, "--groups", "site"
    lines = run("mkl", data, *options).stdout.splitlines()
    assert any(line.startswith("alignment: 1 of 1 kernels has a weight") for line in lines)
    assert "  learnt on 30 of 60 rows, drawn at random" in lines
    assert lines[-1].startswith("  objective: -")
    assert "at first" not in lines[-1]
