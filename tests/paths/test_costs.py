"""The choice between Newton steps and refits, by the sizes of both."""

import numpy as np
import pytest

import tables
from kernsel.kernels import Gaussian
from kernsel.learners import Svm
from kernsel.paths import make_path
from kernsel.paths.routes import refits_are_cheaper
from kernsel.representation.problem import Problem


def cheaper(curved, n=100, sizes=(20,) * 5, settled=True):
    sizes = np.array(sizes, float)
    return refits_are_cheaper(np.array([curved]), n, n - sizes, sizes / n, settled)[0]


def test_all_rows_curved_makes_refits_of_few_folds_cheaper():
    assert cheaper(100)
    assert not cheaper(100, settled=False)
    assert not cheaper(50)
    assert not cheaper(0)
    assert not cheaper(100, sizes=(10,) * 10)  # 2.4 inverses
    assert not cheaper(100, sizes=(1,) * 100)
    assert cheaper(50, sizes=(33, 33, 34))  # two sizes, two inverses


@pytest.mark.parametrize("bias", [False, True])
def test_a_fit_that_is_refitted_for_its_cost_is_exact(bias):
    """A narrow kernel and a small lambda leave every row on its margin."""
    rows = tables.make_rows(sizes=(7, 7, 7))
    path = make_path(Problem(rows, Gaussian(1e-3)), Svm(h=0.05, bias=bias), [10.0, 1e-4])
    held, exact = path.newton_step(), path.exact()
    assert held.exact.tolist() == [False, True]
    np.testing.assert_array_equal(held.f[:, 1], exact.f[:, 1])
    assert held.refitted[1] == 0
    assert np.isnan(path.step_ratio).tolist() == [False, True]
    assert held.failed == [None, None]
