import numpy as np
import pytest
from kernsel_optuna import Optuna

import kernsel
from kernsel.errors import OptionError
from kernsel.testing import search_checks

pytestmark = pytest.mark.filterwarnings("ignore::kernsel.errors.SelectionWarning")  # the tables are small


@pytest.mark.parametrize("check", search_checks(Optuna(trials=8)))
def test_kit(check):
    check()


def select(search, **options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=60)
    return kernsel.select(X, y, learner="krr", folds=4, search=search, **options)


def test_a_kernel_of_many_parameters_is_found_with_a_share_of_its_grid():
    options = {"kernel": "gaussian + laplacian", "grid": "auto", "verify": 1}
    whole, found = select("grid", **options), select(Optuna(trials=30), **options)
    assert len(found.candidates) < len(whole.candidates) / 4
    assert found.best.score < 1.2 * whole.best.score


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_the_samplers_that_need_nothing_else(sampler):
    found = select(Optuna(sampler, trials=3), kernel=["gaussian", "linear"])
    assert len({each.kernel for each in found.candidates}) == 4  # the linear kernel has one point


def test_what_makes_no_sense_is_refused():
    for options in ({"sampler": "best"}, {"trials": 0}):
        with pytest.raises(OptionError, match="sampler can be tpe, gp, cmaes, random, and trials"):
            Optuna(**options)
