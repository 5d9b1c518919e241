"""``kernsel stability``: rows by their number in the file, bounds beside what they bound, and errors in one line."""

from __future__ import annotations

import json
import tracemalloc

import numpy as np
import pandas as pd
import pytest

import kernsel
import twins.heldout
from commandline import run
from kernsel.data import from_arrays
from kernsel.evaluation.assessment import assess_dataset
from kernsel.folds import deal

FIXED = ("--kernel", "gaussian(tau=0.5)", "--lambda", "0.1")
FEW = ("--folds", 3, "--repeats", 2)


@pytest.fixture
def data(tmp_path):
    """Rows 8 to 10 of the file are one crowd, and the last one is far from all."""
    X = 3 * np.random.default_rng(0).normal(size=(40, 2))
    X[7:10], X[-1] = X[7], 40.0
    table = pd.DataFrame(X, columns=["a", "b"])
    table["size"] = np.sin(X[:, 0])
    table["kind"] = np.where(X[:, 0] > 0, "up", "down")
    path = tmp_path / "data.csv"
    table.to_csv(path, index=False)
    return path


def options(data, *args):
    target = () if "--target" in args else ("--target", "kind")
    return ("stability", data, *FIXED, *FEW, *target, *args)


def test_the_text_names_rows_bounds_and_what_is_measured(data):
    done = run(*options(data, "--top", 3))
    text = " ".join(done.stdout.split())
    assert f"{data}: 40 rows, 3 features" in done.stdout
    assert "kernel stability of gaussian(tau=0.5): beta = " in text
    assert "numbered in the file from 1, the header not counted" in text
    for part in (
        "svm, lambda = 0.1 (n lambda = 4), full Gram matrix, n = 40",
        "huber-hinge loss:",
        "variance of the CV score",
        "by its standard error over folds",
        "over 2 deals of the folds",
        "Removing one row, whichever it is, changes no loss by more than",
        "With probability 0.95 the risk is at most",
        "times that",
        "by the strong convexity of the objective, without beta, the least of the bounds that hold",
        "No loss of such a fit can be above 4.16, nor the variance of a mean above 4.33: of the risk the bound says no",
        "kappa = max k(x, x) = 1 and M = max |y| = 1",
    ):
        assert part in text
    assert "warning" not in done.stderr  # what may stand there is that loops are being compiled


def test_the_document_is_the_library_call_and_the_file(data, tmp_path):
    done = run(*options(data, "--json", "--output", tmp_path / "result.json", "--top", 2))
    document = json.loads(done.stdout)
    assert json.loads((tmp_path / "result.json").read_text()) == document
    assert (document["format"], document["version"]) == ("kernsel-stability", 1)
    frame = pd.read_csv(data)
    found = kernsel.stability(frame.drop(columns="kind"), "gaussian(tau=0.5)")
    np.testing.assert_array_equal(document["perturbations"], found.perturbations)
    rows = [each["row"] for each in document["influential"]]
    assert rows == (found.influential(2) + 1).tolist()
    assert document["beta"] == found.beta == document["influential"][0]["perturbation"]
    limit = kernsel.bounds("svm", beta=found.beta, kappa=1.0, lam=0.1, n=40, folds=3)
    assert document["bounds"] == {
        "beta": limit.beta,
        "kappa": 1.0,
        "M": 1.0,
        "delta": 0.05,
        "largest_loss": pytest.approx(1 + 10**0.5),  # |f|^2 <= J(0) / lambda
        "stability": limit.stability,
        "gap": limit.gap,
        "risk": document["measured"]["fit"] + limit.gap,
        "cv_variance": limit.cv_variance,
        "forms": {"output": "objective", "stability": "convexity", "cv_variance": "Efron-Stein"},
    }
    assert document["learner_parameters"]["h"] == 0.05
    assert document["kernel"] == {"kernel": "gaussian", "parameters": {"tau": 0.5}}
    assert document["data"]["labels"] == ["down", "up"]
    assert document["options"]["folds"] == 3
    assert {"scan", "fits", "total"} == set(document["timing"])


def test_the_scores_are_those_of_brute_force_refits(data):
    args = (*options(data, "--json", "--learner", "krr", "--target", "size", "--seed", 5),)
    measured = json.loads(run(*args).stdout)["measured"]
    frame = pd.read_csv(data)
    dataset = from_arrays(frame[["a", "b", "kind"]], frame["size"], standardize=True)
    K = np.exp(-((dataset.X[:, None] - dataset.X) ** 2).sum(axis=2))
    y = dataset.Y[0]
    scores = []
    for seed in (5, (5, 1)):
        number = deal(np.zeros(40, int), 3, seed)
        order = np.argsort(number, kind="stable")
        starts = np.r_[0, np.cumsum(np.bincount(number))]
        held = twins.heldout.refits_square(K[np.ix_(order, order)], y[order], 0.1, starts)
        scores.append(((held - y[order]) ** 2).mean())
    fit = K @ twins.heldout.fit_square(K, y, np.ones(40), 0.1, 0)[:-1]
    assert measured["cv_scores"] == pytest.approx(scores)
    assert measured["cv"] == pytest.approx(np.mean(scores))
    assert measured["cv_variance"] == pytest.approx(np.var(scores, ddof=1))
    assert measured["fit"] == pytest.approx(((fit - y) ** 2).mean())
    assert measured["cv_se"] > 0


@pytest.mark.parametrize(("norm", "largest"), [("2", 1.0), ("spectral", 1.0), ("trace", 2.0), ("frobenius", 2**0.5)])
def test_norms_are_of_the_rows_and_bounds_of_the_spectral_one(data, norm, largest):
    document = json.loads(run(*options(data, "--json", "--norm", norm)).stdout)
    spectral = json.loads(run(*options(data, "--json")).stdout)
    assert document["bounds"] == spectral["bounds"]
    assert document["norm"] == ("spectral" if norm == "2" else norm)
    assert spectral["beta"] <= document["beta"] <= largest * spectral["beta"]


def test_one_deal_has_no_variance_and_top_none_lists_no_rows(data):
    args = options(data, "--repeats", 1, "--top", 0)
    text = run(*args).stdout
    assert "deals of the folds" not in text
    assert "rows that move K most" not in text
    document = json.loads(run(*args, "--json").stdout)
    assert document["measured"]["cv_variance"] is None
    assert document["influential"] == []


def test_bounds_that_say_something_are_not_called_empty(data):
    args = ("stability", data, "--kernel", "gaussian(tau=0.5)", "--lambda", 1e5, "--learner", "krr", *FEW)
    assert "No loss of such a fit" not in run(*args, "--target", "kind").stdout


def test_what_a_selection_chose_is_taken_from_its_result(data, tmp_path):
    result = tmp_path / "result.json"
    grid = ("--grid", "tau=0.5,2", "--grid", "lambda=0.1,0.01", "--no-extend", "--quiet")
    run("select", data, "--target", "kind", "--learner", "svm(h=0.2)", "--folds", 3, *grid, "--output", result)
    chosen = json.loads(result.read_text())["best"]
    document = json.loads(run("stability", data, "--from", result, *FEW, "--json").stdout)
    for key in ("kernel", "lambda", "learner"):
        assert document[key] == chosen[key]
    assert document["learner_parameters"] == chosen["learner_parameters"] | {"bias": False}
    assert "learner: svm without a bias, for which there are bounds" in document["data"]["notes"]
    assert document["data"]["target"] == "kind"
    other = json.loads(run("stability", data, "--from", result, *FEW, "--lambda", 3, "--json").stdout)
    assert other["lambda"] == 3
    assert other["kernel"] == chosen["kernel"]


def test_columns_that_were_no_features_of_the_selection_are_none_here(data, tmp_path):
    frame = pd.read_csv(data)
    frame["batch"] = np.arange(40) % 4
    frame.to_csv(data, index=False)
    result = tmp_path / "result.json"
    grid = ("--grid", "tau=1", "--grid", "lambda=0.1", "--no-extend", "--quiet")
    run("select", data, "--target", "kind", "--groups", "batch", "--folds", 4, *grid, "--output", result)
    document = json.loads(run("stability", data, "--from", result, *FEW, "--json").stdout)
    assert document["data"]["features"] == 3


def test_no_gram_matrix_is_made_for_many_rows():
    n = 4000
    X = np.random.default_rng(0).normal(size=(n, 3))
    dataset = from_arrays(X, X[:, 0])
    tracemalloc.start()
    try:
        found = assess_dataset(dataset, kernel="gaussian(tau=1)", lam=0.1, rank=20, folds=2, repeats=1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.stability.n == n
    assert peak < 8 * n**2 / 4


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "give --kernel with its parameters, such as 'gaussian(tau=2)', and --lambda, such as 0.01; or --from"),
        (["--kernel", "gaussian(tau=2)"], "give --kernel with its parameters"),
        (["--lambda", "0.1"], "give --kernel with its parameters"),
        (["--kernel", "gaussian", "--lambda", "0.1"], "kernel 'gaussian': tau has no value; give one"),
        (["--kernel", "gausian(tau=1)", "--lambda", "0.1"], "did you mean 'gaussian'?"),
        ([*FIXED, "--lambda", "0"], "lam must be a finite number greater than 0, not 0.0"),
        ([*FIXED, "--lambda", "tiny"], "Invalid value for '--lambda'"),
        ([*FIXED, "--lambda", "1e-200"], "fits failed at lambda = 1e-200"),
        ([*FIXED, "--delta", "1.5"], "delta is a probability between 0 and 1"),
        ([*FIXED, "--norm", "nuclear"], "norm 'nuclear' is unknown: use spectral, trace or frobenius"),
        ([*FIXED, "--folds", "50"], "50 folds of 40 rows leave less than 2 rows to a fit"),
        ([*FIXED, "--rank", "most"], "--rank most is none of"),
        ([*FIXED, "--learner", "l2svm"], "the bounds of kernel stability are for krr and svm without a bias, not for"),
        ([*FIXED, "--learner", "svr"], "learner 'svr' is for regression, not for a classification"),
        ([*FIXED, "--target", "nothing"], "has no column 'nothing'"),
        ([*FIXED, "--output", "{data}"], "is the table itself; choose another file"),
        (["--from", "{data}"], "isn't a result that kernsel select --output wrote"),
        (["--from", "{data}.json"], "No such file"),
    ],
    ids=str,
)
def test_what_cannot_be_done_is_one_line(data, args, message):
    filled = [str(arg).format(data=data) for arg in args]
    result = run("stability", data, "--quiet", *filled, code=2)
    assert result.stdout == ""
    assert result.stderr.startswith("kernsel: error: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("[]", "isn't a result that kernsel select --output wrote"),
        (
            '{"format": "kernsel-stability", "version": 1}',
            "is a kernsel-stability of version 1, not a kernsel-selection",
        ),
        ('{"format": "kernsel-selection", "version": 2}', "is a kernsel-selection of version 2"),
        ('{"format": "kernsel-selection", "version": 1}', "isn't a result that"),
    ],
)
def test_results_of_another_kind(data, tmp_path, document, message):
    path = tmp_path / "other.json"
    path.write_text(document)
    result = run("stability", data, "--from", path, code=2)
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
