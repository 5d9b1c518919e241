"""Searches that leave the grid: they only improve, stay in its range and within their budget, and find known minima."""

import math
import time

import numpy as np
import pytest

import tables
from kernsel.criteria import CV
from kernsel.errors import IncompatibleError, OptionError
from kernsel.kernels import Gaussian
from kernsel.learners import Krr
from kernsel.search.axes import Axes
from kernsel.search.board import Board
from kernsel.search.candidate import Candidate
from kernsel.search.grid import GridSearch
from kernsel.search.refine import FINEST, Budget, refined

COARSE = {"tau": [0.1, 2.0, 40.0], "lambda": [1e-6, 1e-3, 1.0]}
X, Y = tables.waves(80)


def choose(**options):
    return tables.choose(X, Y, folds=5, **{"grid": COARSE, "extend": False, **options})


class Valley(Board):
    """A board whose scores are a known function of log tau and log lambda."""

    def __init__(self, minimum, twist=0.0):
        super().__init__([], None, None)
        self.minimum, self.twist, self.calls = minimum, twist, []

    def score(self, keys, lower=None):
        for kernel, learner, lam in keys:
            a, b = math.log(kernel.tau / self.minimum[0]), math.log(lam / self.minimum[1])
            self.calls.append((kernel.tau, lam))
            value = 1 + a**2 + b**2 + self.twist * a * b
            self.found[kernel, learner, lam] = Candidate(kernel, lam, score=value, loss=value, learner=learner)


def valley(minimum=(3.0, 0.02), twist=0.0, every=1):
    taus, lams = 4.0 ** np.arange(-3, 4, every), 4.0 ** np.arange(-6, 1, every)
    axes = Axes(Gaussian(), {"tau": taus}, lams, Krr())
    search = GridSearch(Valley(minimum, twist), [axes], extend=False)
    search.run()
    return search


@pytest.mark.parametrize("every", [1, 3], ids=["auto", "coarse"])
@pytest.mark.parametrize("twist", [0.0, 1.5], ids=["round", "slanted"])
@pytest.mark.parametrize(("method", "within"), [("compass", FINEST), ("simplex", 0.07)])
def test_a_minimum_between_the_points_of_the_grid_is_found(method, within, twist, every):
    search = valley(twist=twist, every=every)
    refined(search, method, Budget())
    best = search.board.candidates()[0]
    assert abs(math.log(best.kernel.tau / 3.0)) <= within
    assert abs(math.log(best.lam / 0.02)) <= within


@pytest.mark.parametrize("method", ["compass", "simplex"])
def test_it_stays_in_the_range_of_the_grid(method):
    search = valley((1e6, 1e-9))
    refined(search, method, Budget())
    taus, lams = np.transpose(search.board.calls)
    assert 4.0**-3 <= taus.min() <= taus.max() <= 4.0**3
    assert 4.0**-6 <= lams.min() <= lams.max() <= 1.0


@pytest.mark.parametrize("method", ["compass", "simplex"])
@pytest.mark.parametrize("evaluations", [1, 7])
def test_it_stays_within_its_budget(method, evaluations):
    search = valley()
    before = len(search.board.found)
    refined(search, method, Budget(evaluations))
    assert len(search.board.found) == before + evaluations


def test_no_time_is_no_candidate():
    search = valley()
    before = len(search.board.found)
    budget = Budget(None, 1e-9)
    time.sleep(1e-3)
    refined(search, "compass", budget)
    assert len(search.board.found) <= before + 4  # the clock may stand still for one round


@pytest.mark.parametrize("method", ["compass", "simplex"])
def test_the_choice_is_no_worse_than_that_of_the_grid_and_of_the_model_too(method):
    plain, fine = choose(), choose(refine=method)
    assert fine.best.value < plain.best.value  # the grid is so coarse that there must be something better
    assert len(fine.candidates) > len(plain.candidates)
    assert fine.options["refine"] == method
    assert any(note.startswith(f"refined by {method}") for note in fine.data["notes"])
    # the score off the grid is the score of a grid with these values
    again = choose(grid={"tau": [fine.best.kernel.tau], "lambda": [fine.best.lam]})
    assert again.best.value == pytest.approx(fine.best.value, rel=1e-9)


def test_parameters_of_the_learner_move_too_and_others_stay():
    result = tables.choose(
        X, Y, folds=5, learner="svr(epsilon=None)", kernel="polynomial(coef0=1)", refine="compass", extend=False,
        grid={"epsilon": [0.05, 0.4], "gamma": [0.1, 1.0], "degree": [2, 3], "lambda": [1e-3, 1e-1]}, budget=40,
    )  # fmt: skip
    assert {c.kernel.degree for c in result.candidates} == {2, 3}
    assert len({c.learner.epsilon for c in result.candidates}) > 2
    assert len({c.kernel.gamma for c in result.candidates}) > 2


def test_the_same_seed_gives_the_same_choice():
    first, second = choose(refine="simplex"), choose(refine="simplex")
    assert first.best.key == second.best.key


@pytest.mark.parametrize(
    ("given", "expected"),
    [(None, (200, None)), (30, (30, None)), ("30", (30, None)), ("1.5s", (None, 1.5)), ("2 min", (None, 120.0))],
)
def test_budgets(given, expected):
    budget = Budget.read(given)
    assert (budget.evaluations, budget.seconds) == expected


@pytest.mark.parametrize("given", [0, -1, "0s", "many", "5d", True])
def test_budgets_that_are_none(given):
    with pytest.raises(OptionError, match="neither a number of candidates nor a time"):
        Budget.read(given)


@pytest.mark.parametrize("criterion", ["loo", "evidence", "cv", "newton-cv"])
@pytest.mark.parametrize("learner", ["krr", "lssvm"])
def test_the_gradient_finds_what_the_simplex_finds(criterion, learner):
    grid = {"tau": [0.1, 1.0, 10.0], "lambda": [1e-5, 1e-3, 1e-1]}
    by = {
        method: choose(refine=method, criterion=criterion, learner=learner, grid=grid, verify=0, budget=300)
        for method in ("simplex", "gradient")
    }
    assert by["gradient"].best.score <= by["simplex"].best.score + 1e-4 * abs(by["simplex"].best.score)
    assert by["gradient"].best.score < min(c.score for c in by["gradient"].candidates if c.kernel.tau in grid["tau"])


class Costly(CV):
    def measure(self, Y, F):
        return np.abs(Y - F).mean(axis=0)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"criterion": "bif"}, "criterion 'bif' has none"),
        ({"criterion": Costly()}, "criterion 'cv' has none"),
        ({"criterion": "cv", "learner": "svr"}, "learner 'svr' has not the square loss"),
        ({"criterion": "cv", "kernel": "laplacian", "grid": "auto"}, r"kernel 'laplacian\(\)' has none"),
        ({"criterion": "cv", "rank": 20}, "the rank is not full"),
    ],
)
def test_there_is_no_gradient(options, reason):
    with pytest.raises(IncompatibleError, match=f"{reason}.*use compass or simplex"):
        choose(refine="gradient", **options)


def test_an_unknown_method():
    with pytest.raises(OptionError, match="use compass, simplex, gradient or none"):
        choose(refine="walk")
    with pytest.raises(OptionError, match="did you mean 'gradient'"):
        choose(refine="gradint")


def test_a_budget_for_nothing():
    with pytest.raises(OptionError, match="give refine too"):
        choose(budget=30)
