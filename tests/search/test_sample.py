"""Sampled points instead of a grid."""

import numpy as np
import pytest

import tables
from kernsel.errors import OptionError

X, Y = tables.waves(60)


def choose(**options):
    return tables.choose(X, Y, folds=4, extend=False, **options)


@pytest.mark.parametrize("design", ["random", "sobol"])
def test_points_lie_in_the_range_of_the_grid_and_have_every_lambda(design):
    grid = {"tau": [0.1, 10.0], "lambda": [1e-3, 1e-2], "rest": f"{design}:13"}
    result = choose(grid=grid)
    taus = {c.kernel.tau for c in result.candidates}
    assert len(taus) == 13
    assert 0.1 <= min(taus) < 0.5
    assert 2.0 < max(taus) <= 10.0
    assert len(result.candidates) == 26


def test_sobol_points_are_spread_more_evenly_than_random_ones():
    def gap(design):
        taus = [c.kernel.tau for c in choose(grid={"tau": [0.01, 100.0], "lambda": [0.1], "rest": design}).candidates]
        return np.diff(np.sort(np.log(taus))).max()

    assert gap("sobol:32") < 0.7 * gap("random:32")


def test_parameters_that_are_not_continuous_have_values_of_their_axis():
    result = tables.choose(
        X, Y, folds=4, kernel="polynomial", learner="svr(epsilon=None)",
        grid={"degree": [1, 2, 4], "lambda": [0.1], "epsilon": [0.0, 0.1, 0.4], "rest": "sobol:16"},
    )  # fmt: skip
    assert {c.kernel.degree for c in result.candidates} == {1, 2, 4}
    assert {c.learner.epsilon for c in result.candidates} == {0.0, 0.1, 0.4}
    assert len({c.kernel.gamma for c in result.candidates}) == 16


def test_lambda_is_extended_and_a_refinement_begins_at_the_sample():
    options = {"refine": "compass", "budget": 20, "choose": "minimum"}
    result = tables.choose(X, Y, folds=4, grid={"lambda": [10.0, 20.0], "rest": "sobol:8"}, **options)
    assert result.best.lam < 5
    assert len({c.kernel.tau for c in result.candidates}) > 8


def test_a_kernel_without_parameters_has_its_grid():
    assert len(choose(kernel="linear", grid="sobol:8").candidates) == len(choose(kernel="linear").candidates)


def test_the_same_seed_gives_the_same_points():
    first, second, other = (choose(grid="random:5", seed=seed) for seed in (1, 1, 2))
    assert first.best.key == second.best.key
    assert first.best.key != other.best.key


@pytest.mark.parametrize("grid", ["sobol:0", "sobol:", "random:x", "sobol:1.5", "sobol:99999999"])
def test_bad_designs(grid):
    with pytest.raises(OptionError, match="the number of points is a whole number from 1 to 100000"):
        choose(grid=grid)
