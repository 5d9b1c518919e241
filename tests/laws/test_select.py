"""Laws of a whole selection: what a table says, not how it is written, decides on scores and the choice."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

import kernsel
import tables
from kernsel import registry

pytestmark = pytest.mark.filterwarnings("ignore::kernsel.errors.SelectionWarning")

N = 30
FOLDS = np.random.default_rng(3).permutation(np.arange(N) % 5)
GRID = {"tau": [0.5, 2.0, 8.0], "lambda": [1e-3, 1e-2, 1e-1]}


@dataclass(frozen=True)
class Case:
    """A selection: the function that makes its data, its options, and whether it deals folds by the order of rows."""

    data: Any
    options: dict[str, Any]
    deals: bool = False


def case(data, learner, criterion, kernel="gaussian", grid=GRID, deals=False, **options):
    return Case(data, {"learner": learner, "criterion": criterion, "kernel": kernel, "grid": grid} | options, deals)


def wine(n):
    """Some rows of three classes."""
    X, y = tables.wine()
    return X[:: len(y) // n][:n], y[:: len(y) // n][:n]


CASES = {
    "krr": case(tables.waves, "krr", "newton-cv"),
    "krr, evidence": case(tables.waves, "krr", "evidence"),
    "krr, kernel stability": case(tables.waves, "krr", "cvks"),
    "krr, influence": case(tables.waves, "krr", "bif"),
    "krr, refined": case(tables.waves, "krr", "newton-cv", refine="compass", budget=20),
    "svr": case(tables.waves, "svr", "newton-cv"),
    "qsvr": case(tables.waves, "qsvr", "cv"),
    "lssvm": case(tables.circles, "lssvm", "loo"),
    "svm": case(tables.circles, "svm(bias=false)", "newton-cv"),
    "l2svm": case(tables.circles, "l2svm", "cv"),
    "klr": case(tables.circles, "klr", "newton-cv"),
    "krr, relevances": case(tables.waves, "krr", "newton-cv", "ard", {"lambda": GRID["lambda"]}, deals=True),
    "three classes": case(wine, "lssvm", "newton-cv"),
    "automatic regression": case(tables.waves, None, None, None, "coarse"),
    "automatic classes": case(tables.circles, None, None, None, "coarse"),
}
cases = pytest.mark.parametrize("given", CASES.values(), ids=CASES)
regressions = pytest.mark.parametrize(
    "given", [each for each in CASES.values() if each.data is tables.waves],
    ids=[name for name, each in CASES.items() if each.data is tables.waves],
)  # fmt: skip
classes = pytest.mark.parametrize(
    "given", [each for each in CASES.values() if each.data is tables.circles],
    ids=[name for name, each in CASES.items() if each.data is tables.circles],
)  # fmt: skip


def select(given, X, y, **options):
    return kernsel.select(X, y, **{"extend": False, "verify": 3, "folds": FOLDS, **given.options, **options})


def figures(result):
    """Score, exact score and error of each candidate, from the best on."""
    found = [[each[key] for key in ("score", "verified", "error")] for each in result.to_dict()["candidates"]]
    return np.array(found, dtype=float)


def same(one, other, rtol=1e-7, error=1.0):
    """Check that two selections have one ranking; errors of the second are ``error`` times those of the first."""
    assert str(one.best.learner) == str(other.best.learner)
    assert one.best.kernel.name == other.best.kernel.name
    np.testing.assert_allclose(one.best.lam, other.best.lam, rtol=rtol)
    np.testing.assert_allclose(figures(other), figures(one) * [1.0, 1.0, error], rtol=rtol, atol=1e-9)


@cases
def test_the_order_of_rows(given):
    X, y = given.data(N)
    if given.deals:
        pytest.skip("relevances are learnt from a start that is chosen on folds of its own, dealt by the order of rows")
    order = np.random.default_rng(0).permutation(N)
    same(select(given, X, y), select(given, X[order], y[order], folds=FOLDS[order]))


@cases
def test_the_order_of_columns(given):
    X, y = given.data(N)
    same(select(given, X, y), select(given, X[:, ::-1], y))


@cases
def test_a_weight_of_two_is_a_row_twice(given):
    criterion = given.options["criterion"]
    if criterion and registry.get("criterion", criterion).about.weights:
        pytest.skip("the criterion says that weights are something else to it")
    if given.deals:
        pytest.skip("relevances are learnt by the evidence, which says that weights are something else to it")
    if given.options["grid"] == "coarse":
        pytest.skip("the grid is scaled by the distances between rows, of which there are more")
    X, y = given.data(N)
    s = 1 + np.arange(N) % 2
    repeated = select(given, np.repeat(X, s, axis=0), np.repeat(y, s), folds=np.repeat(FOLDS, s))
    same(select(given, X, y, weights=s), repeated)


@cases
def test_a_weight_of_zero_is_no_row(given):
    X, y = given.data(N)
    s = (np.arange(N) % 7 > 0).astype(float)
    same(select(given, X[s > 0], y[s > 0], folds=FOLDS[s > 0]), select(given, X, y, weights=s))


@classes
@pytest.mark.parametrize("names", [(0, 1), (1, 0), ("a b", "ü"), (True, False)], ids=str)
def test_the_names_of_labels(given, names):
    X, y = given.data(N)
    renamed = pd.Series(np.where(y == "in", 0, 1)).map(dict(enumerate(names))).to_numpy()
    one, other = select(given, X, y), select(given, X, renamed)
    same(one, other)
    expected = np.where(one.model.predict(X) == "in", 0, 1)
    assert other.model.predict(X).tolist() == [names[k] for k in expected]


@cases
def test_the_units_of_a_column(given):
    X, y = given.data(N)
    changed = X.copy()
    changed[:, 0] = 1000.0 * X[:, 0] + 5.0
    same(select(given, X, y), select(given, changed, y))


@regressions
def test_the_units_of_the_target(given):
    X, y = given.data(N)
    one, other = select(given, X, y), select(given, X, 1000 * y - 5e4)
    same(one, other, error=1000.0)
    np.testing.assert_allclose(other.model.predict(X), 1000 * one.model.predict(X) - 5e4, rtol=1e-6)


@cases
def test_a_constant_column_more(given):
    X, y = given.data(N)
    same(select(given, X, y), select(given, np.insert(X, 1, 7.0, axis=1), y))


@cases
def test_the_same_again_and_with_another_number_of_threads(given, use_threads):
    X, y = given.data(N)
    found = []
    for count in (1, 2, 2):
        use_threads(count)
        found.append(select(given, X, y))
    for other in found[1:]:
        np.testing.assert_array_equal(figures(other), figures(found[0]))
        np.testing.assert_array_equal(other.model.coefficients, found[0].model.coefficients)
