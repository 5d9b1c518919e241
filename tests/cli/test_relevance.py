"""``kernsel relevance`` from a table to a table, a document and a picture."""

import json

import numpy as np
import pandas as pd
import pytest

from commandline import run


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=["signal", "noise", "weight"])
    frame["weight"] = 1.0
    frame["site"] = np.arange(60) // 5
    frame["y"] = np.sin(2 * frame["signal"]) + 0.2 * rng.normal(size=60)
    frame.to_csv(tmp_path / "data.csv", index=False)
    return tmp_path / "data.csv"


ROLES = ("--weights", "weight", "--groups", "site")


def test_from_a_table_to_relevances(data, tmp_path):
    pytest.importorskip("matplotlib")
    output, plot = tmp_path / "out.json", tmp_path / "picture.svg"
    done = run("relevance", data, *ROLES, "--resamples", 2, "--output", output, "--plot", plot)
    assert "60 rows, 2 features" in done.stdout
    lines = done.stdout.splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("feature"))
    assert [line.split()[0] for line in lines[head + 1 : head + 3]] == ["signal", "noise"]
    assert lines[-2:] == [f"result written to {output}", f"picture written to {plot}"]
    document = json.loads(output.read_text())
    assert document["relevances"]["signal"] > 10 * document["relevances"]["noise"]
    assert "<svg" in plot.read_text()


def test_json_is_the_only_output(data):
    done = run("relevance", data, *ROLES, "--json", "--resamples", 0, "--criterion", "flkl", "--evaluations", 3)
    document = json.loads(done.stdout)
    assert document["criterion"] == "flkl"
    assert document["resamples"] == document["errors"] == []


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--criterion", "bif"], "criterion 'bif' has no gradient by the relevances of features"),
        (["--kernel", "linear"], "has no relevances to learn"),
        (["--learner", "svr"], "relevances are learnt for the square loss"),
        (["--folds", "many"], "many"),
        (["--plot", "picture.gif"], "its name must end with one of .png, .svg, .pdf"),
        (["--plot", "a.png", "--output", "a.png"], "--output and --plot are both a.png; choose two files"),
        (["--rows", "3"], "Invalid value for '--rows'"),
    ],
)
def test_options_that_cannot_be_met_are_one_line(data, args, message, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    result = run("relevance", data, "--quiet", *args, code=2)
    assert result.stdout == ""
    assert result.stderr.startswith("kernsel: error: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_the_table_itself_is_not_written_to(data):
    result = run("relevance", data, "--plot", data, code=2)
    assert "--plot" in result.stderr
    assert "is the table itself" in result.stderr
