"""Experiments are those that the papers describe, and what papers print is read as it stands."""

import math
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from kernsel_papers.printed import read_printed, same_table

import kernsel
from kernsel import parts, registry
from kernsel.comparison.api import plan_experiment
from kernsel.words import NO_PARTS

PAPERS = ["bif14", "fbif18", "flkl", "flkl-mkl", "ks14", "ksj"]

pytestmark = pytest.mark.filterwarnings("ignore::kernsel.errors.SelectionWarning")  # the tables are small

SMALL = {"splits": 2, "train": 24}
"""Few rows: what is tested is that every method of a paper runs."""


def read(name):
    return registry.build("experiment", name)


def classes(n=40):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1, -1)


def regression(n=40):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 3))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("name", PAPERS)
def test_every_method_of_a_paper_runs(name):
    tables = {"heart": classes()}
    if "regression" in read(name).options:
        tables["mpg"] = regression()
    found = kernsel.compare(tables, protocol=name, **SMALL)
    assert [text for result in found.results for text in result.failures(found.names)] == []
    assert found.title.startswith(name.split("-")[0].upper())
    printed = {each.method for each in read_printed(name)}
    assert printed <= set(found.names)
    assert bool(found.published) == (name != "ksj")  # whose tables can't be read in our copy
    assert sum(line.startswith("paper:") for line in found.claims) == len(read(name).claims)


def test_the_command_says_what_a_paper_prints(tmp_path):
    X, y = classes()
    pd.DataFrame(X).assign(y=y).to_csv(tmp_path / "heart.csv", index=False)
    command = [sys.executable, "-m", "kernsel", "compare", tmp_path / "heart.csv", "--protocol", "bif14"]
    done = subprocess.run([*command, "--splits", "2", "-q"], capture_output=True, text=True, check=True)
    assert "BIF14, Section 6" in done.stdout
    assert "16.56 ± 1.1" in done.stdout
    assert "of 8 printed mean errors" in done.stdout
    assert "paper: BIF-kCV has the lower error than EP on 16 of 20 tables" in done.stdout


def test_the_words_of_kernsel_name_all_that_are_here():
    assert set(NO_PARTS["experiment"]) == set(registry.names("experiment")) == set(PAPERS)


def test_ks14_is_as_described():
    """KS14, Section 6: lssvm, tau 2^-10..2^10, lambda 10^-4..10^-1, eta 1, ten times 70 %."""
    protocol = read("ks14")
    options = protocol.options["classification"]
    assert options["grid"]["tau"] == [2.0**k for k in range(-10, 11)]
    assert list(protocol.cases) == ["lambda = 0.0001", "lambda = 0.001", "lambda = 0.01", "lambda = 0.1"]
    assert protocol.splits == {"count": 10, "train": 0.7}
    assert protocol.methods["classification"]["5-KS"]["criterion"].startswith("cvks(eta=1")


BIASES = {"ks14": True, "ksj": False, "fbif18": False, "bif14": True, "flkl": True, "flkl-mkl": True}
"""Whether the objective of a paper has a bias for classes: KS14, BIF14 and FLKL write f + b, KSJ and FBIF18 f alone."""


@pytest.mark.parametrize("name", PAPERS)
def test_what_is_fitted_to_classes_has_a_bias_where_the_paper_has_one(name):
    design = plan_experiment(
        classes(), protocol=name, lists={}, design={}, splits={"count": 1}, options={}
    ).design  # fmt: skip
    fitted = {
        method.options.get("fitted", method.options["learner"])
        for case in design.cases
        for method in design.of(case, "classification")
    }
    assert {parts.read_learner(each, "classification").bias for each in fitted} == {BIASES[name]}


def test_n_lambda_of_ksj_is_that_of_the_rows_to_train_on():
    methods = {"a": {"ridges": [2.4]}, "b": {"ridges": [2.4], "learner": "svm"}}
    found = kernsel.compare(classes(), methods=methods, kernel="gaussian(tau=2)", grid={"lambda": [9.0]}, **SMALL)
    assert [trial.lam for trial in found.results[0].trials[1]] == [2.4 / 24] * 2
    assert len(read("ksj").cases) == 2 * 4


def test_printed_figures():
    """FBIF18, Table 1: heart 13.58 +- 3.85 by 5-FBIF over 50 splits; Table 2: 0.32 s."""
    found = {(e.place[:7], e.table, e.method): e for e in read_printed("fbif18")}
    heart = found["Table 1", "heart", "5-FBIF"]
    assert (heart.what, heart.mean) == ("error", pytest.approx(0.1358))
    assert heart.error == pytest.approx(0.0385 / math.sqrt(50))
    seconds = found["Table 2", "heart", "5-FBIF"]
    assert (seconds.what, seconds.mean, math.isnan(seconds.error)) == ("seconds", 0.32, True)
    assert found["Table 1", "bodyfat", "ER"].mean == pytest.approx(1.53e-5)
    flkl = {(e.table, e.method): e for e in read_printed("flkl")}
    assert flkl["twonorm", "ARD-FLKL"].error == pytest.approx(0.024e-2)
    ks = [e for e in read_printed("ks14") if e.case == "lambda = 0.001" and e.table == "breast"]
    assert "5-KS" not in {e.method for e in ks}  # a cell that can't be read


def test_tables_are_known_by_their_names():
    assert same_table("german_numer", "german")
    assert same_table("ripley", "synthetic")
    assert same_table("heart_ida", "heart")
    assert same_table("breast", "breast cancer")
    assert not same_table("mpg", "mg")
