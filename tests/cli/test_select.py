"""The whole way by the command line: a real table in, a model out, predictions from it."""

from __future__ import annotations

import io
import json
import re

import numpy as np
import pandas as pd
import pytest

import kernsel
import tables
from commandline import run

CANDIDATE = {
    *("kernel", "parameters", "lambda", "learner", "criterion", "score"),
    *("verified", "error", "error_se", "reliability", "failed"),
}


@pytest.mark.parametrize(
    ("name", "learner", "task"),
    [
        ("wine", "lssvm", "classification"),
        ("breast-cancer", "lssvm", "classification"),
        ("diabetes", "krr", "regression"),
    ],
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
        (
            ["--grid", "epsilon=0.1", "--kernel", "gaussian", "--learner", "svm"],
            "has no free parameter 'epsilon'; free here: tau, lambda, h",
        ),
        (["--grid", "h=0", "--learner", "svm"], "h must be a finite number greater than 0"),
        (["--folds", "1000"], "1000"),
        (["--eta", "much"], "--eta much is neither a number nor cv"),
        (["--eta", "2"], "criterion 'newton-cv' has no option 'eta'; leave it out, or use cvks"),
        (["--criterion", "cvks", "--eta", "-1"], "eta must be a finite number of at least 0, not -1"),
        (["--criterion", "cvks(cv=alignments)"], "alignments"),
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


@pytest.fixture
def table(tmp_path):
    """A table with a column for every role."""
    rng = np.random.default_rng(0)
    n = 48
    a, b = rng.normal(size=(2, n))
    columns = {
        "a": a,
        "b": b,
        "weight": 1 + np.arange(n) % 3,
        "site": np.array(list("uvwxyz"))[np.arange(n) // 8],
        "fold": np.arange(n) % 4,
        "size": np.sin(2 * a) + b + 0.1 * rng.normal(size=n),
        "height": 100 * (a - b),
        "kind": np.where(a + b + 0.3 * rng.normal(size=n) > 0, "up", "down"),
    }
    pd.DataFrame(columns).to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


ONE = ["--kernel", "gaussian(tau=2)", "--verify", 0]


@pytest.mark.parametrize(
    ("args", "holdout", "folds"),
    [
        (["--folds", 4], "4 folds", 4),
        (["--folds", "loo"], "leave one out, 48 folds", 48),
        (["--groups", "site", "--folds", 3], "3 folds of whole groups", 3),
        (["--groups", "site", "--folds", "logo"], "leave one group out, 6 folds", 6),
        (["--fold-column", "fold"], "4 folds as given", 4),
        (["--fold-column", "site"], "6 folds as given", 6),
        (["--folds", 4, "--repeats", 3], "4 folds, dealt 3 times", 4),
        (["--folds", "time:3"], "3 folds in the order of the rows", 3),
    ],
    ids=str,
)
def test_ways_to_hold_out(table, args, holdout, folds):
    done = run("select", table, "--target", "size", *args, *ONE, "--json")
    data = json.loads(done.stdout)["data"]
    assert (data["holdout"], data["folds"]) == (holdout, folds)
    numeric = 5 - sum(name in args for name in ("weight", "fold"))  # a, b, weight, fold, height
    assert data["features"] == numeric + 6 * ("site" not in args) + 2


def test_weights_balanced_classes_and_a_model_that_knows_its_roles(table, tmp_path):
    model = tmp_path / "model.npz"
    done = run(
        *("select", table, "--weights", "weight", "--groups", "site", "--class-weight", "balanced", "--folds", 3),
        *("--model", model, *ONE),
    )
    assert "weights: 48 rows weigh 96 together; every mean over rows is weighted" in done.stdout
    assert "class weights: balanced" in done.stdout
    assert run("predict", model, table).stdout.startswith("prediction\n")
    pd.read_csv(table).drop(columns=["kind", "weight", "site"]).to_csv(tmp_path / "new.csv", index=False)
    assert run("predict", model, tmp_path / "new.csv").stdout == run("predict", model, table).stdout


def test_several_targets(table, tmp_path):
    model = tmp_path / "model.npz"
    done = run("select", table, "--target", "size,height", "--folds", 4, "--model", model, *ONE)
    assert "task: regression of 2 targets together" in done.stdout
    assert re.search(r"whole selection: \S+ RMSE in standard deviations of the targets \(90 %: ", done.stdout)
    assert "  each in its own units: size " in done.stdout
    predicted = pd.read_csv(io.StringIO(run("predict", model, table).stdout))
    assert list(predicted.columns) == ["prediction size", "prediction height"]
    truth = pd.read_csv(table)
    for name in ("size", "height"):
        assert np.corrcoef(predicted[f"prediction {name}"], truth[name])[0, 1] > 0.9


def test_folds_in_time_say_that_they_are_refitted(table):
    done = run("select", table, "--target", "size", "--folds", "time:3", *ONE)
    assert (
        "  criterion: cv, for a fold whose fit leaves out more than half of the rows can only be refitted"
        in done.stdout
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--weights", "wieght"], "has no column 'wieght'; did you mean 'weight'?"),
        (["--groups", "sites"], "has no column 'sites'; did you mean 'site'?"),
        (["--fold-column", "folds"], "has no column 'folds'; did you mean 'fold'?"),
        (["--target", "size,hight"], "has no column 'hight'; did you mean 'height'?"),
        (["--weights", "a"], "weights in column 'a': row "),
        (["--weights", "site"], "weights in column 'site' must be numbers, but it holds text"),
        (["--weights", "kind"], "weights in column 'kind' must be numbers"),
        (["--weights", "weight", "--target", "weight"], "column 'weight' can't be both target and weights"),
        (["--groups", "site", "--folds", "7"], "7 folds can't be made of 6 groups: use 2 to 6 folds"),
        (["--folds", "logo"], "leaving one group out needs groups"),
        (["--folds", "lol"], "folds 'lol' is unknown; did you mean 'loo'?"),
        (["--folds", "time:48"], "48 folds in the order of time can't be made of 48 rows"),
        (["--folds", "3", "--fold-column", "fold"], "--folds 3 and --fold-column fold: give one of them"),
        (["--fold-column", "a"], "the folds in column 'a' must be whole numbers or text, but row 1 has"),
        (["--fold-column", "fold", "--repeats", "2"], "repeats: there is one way only to make 4 folds as given"),
        (["--class-weight", "equal"], "class_weight 'equal' is unknown: use balanced"),
        (["--class-weight", "balanced", "--target", "size"], "class_weight is for classes, but this is a regression"),
        (["--target", "size,kind"], "target 'kind' holds text"),
        (["--target", "size,height", "--task", "classification"], "several targets are learnt by regression only"),
    ],
    ids=str,
)
def test_roles_that_cannot_be_met_are_one_line(table, args, message):
    result = run("select", table, "--quiet", *args, code=2)
    assert result.stdout == ""
    assert result.stderr.startswith("kernsel: error: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_the_error_of_the_whole_selection(tmp_path):
    data = tmp_path / "data.csv"
    run("example", "wine", data)
    few = ["--grid", "tau=10,100", "--grid", "lambda=1e-4,1e-2", "--no-extend", "--folds", 4, "--quiet"]
    document = json.loads(run("select", data, *few, "--nested", 3, "--json").stdout)
    table = pd.read_csv(data)
    features, target = table.iloc[:, :-1], table.iloc[:, -1]
    grid = {"tau": [10, 100], "lambda": [1e-4, 1e-2]}
    expected = kernsel.nested(features, target, outer=3, folds=4, grid=grid, extend=False)
    assert document["nested"] == json.loads(json.dumps(expected.to_dict()))
    assert "nested estimate over 3 folds" in run("select", data, *few, "--nested", 3).stdout
    assert json.loads(run("select", data, *few, "--json").stdout)["nested"] is None


def test_copies_are_said_and_may_be_apart(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
    table["y"] = table["a"] + 0.3 * rng.normal(size=40)
    path = tmp_path / "data.csv"
    pd.concat([table, table[:10]]).to_csv(path, index=False)
    quick = ("select", path, "--folds", 4, "--grid", "tau=1,2", "--grid", "lambda=0.01,0.1", "--no-extend")
    together = run(*quick)
    assert "copies: 10 of 50 rows have all features in common with an earlier one, all of these" in together.stdout
    assert "  without features, by the mean of the training rows: " in together.stdout
    apart = run(*quick, "--copies", "apart", "--json")
    document = json.loads(apart.stdout)
    assert "copies-apart" in [each["code"] for each in document["cautions"]]
    assert document["options"]["copies"] == "apart"
    assert "let copies be together" in apart.stderr
    assert "copies 'away' is unknown" in run(*quick, "--copies", "away", code=2).stderr


@pytest.mark.parametrize("option", ["kernel", "learner", "criterion", "search"])
def test_a_misspelt_part_is_named_before_the_table_is_read(tmp_path, option):
    done = run("select", tmp_path / "missing.csv", f"--{option}", "gausian", code=2)
    assert f"no {option} is called 'gausian'" in done.stderr


def test_certify_has_a_value_without_one(tmp_path):
    data = tmp_path / "data.csv"
    X, y = tables.circles(n=50)
    pd.DataFrame(X, columns=["a", "b"]).assign(target=y).to_csv(data, index=False)
    fixed = (
        "--learner",
        "svm",
        "--kernel",
        "gaussian(tau=1)",
        "--grid",
        "lambda=0.001,0.01,0.1",
        "--folds",
        3,
        "--json",
    )
    shares = [
        json.loads(run("select", *words, *fixed, "--no-extend").stdout)["certificate"]
        for words in ([data, "--certify"], ["--certify", data], [data, "--certify", 0.05], [data])
    ]
    assert [each and each["share"] for each in shares] == [0.01, 0.01, 0.05, None]
    assert shares[0]["proved"]
