"""The choice between Newton steps and refits, by the sizes of both."""

import numpy as np
import pytest

import tables
from kernsel.kernels import Gaussian
from kernsel.learners import Klr, Svm
from kernsel.paths import make_path
from kernsel.paths.routes import Thresholds, inverses_are_dearer, refits_are_cheaper, refits_go_together
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


ANY = Thresholds(together=0)


def dealt(sizes):
    """Rows in folds of these sizes."""
    return tables.make_rows(n=sum(sizes), sizes=sizes)


def test_refits_go_together_where_folds_are_few_of_many_rows():
    assert refits_go_together(dealt((30,) * 10), ANY)
    assert not refits_go_together(dealt((60, 60)), ANY)  # two small factors cost less than one inverse
    assert refits_go_together(dealt((1,) * 100), ANY)  # each alone takes a factor of all rows


def test_an_inverse_for_each_of_many_fold_sizes_is_dearer_than_refits_together():
    assert inverses_are_dearer(dealt((60, 61, 62, 63, 64, 65, 66)))
    assert not inverses_are_dearer(dealt((60,) * 7))
    assert not inverses_are_dearer(dealt((1,) * 100))


@pytest.mark.parametrize("bias", [False, True])
def test_refits_together_are_those_one_by_one(monkeypatch, bias):
    rows = dealt((20,) * 8)
    lams = [1.0, 1e-2, 1e-4]
    make = lambda: make_path(Problem(rows, Gaussian(2.0)), Klr(bias=bias), lams)  # noqa: E731
    path, alone = make(), make()
    assert not path._together
    path.thresholds = ANY
    assert path._together
    together, refits = path.exact(), path.refits(1)
    monkeypatch.setattr(type(alone), "_together", False)
    np.testing.assert_allclose(together.f, alone.exact().f, atol=1e-8)
    assert together.exact.all()
    assert together.failed == [None] * 3
    for found, expected in zip(refits, alone.refits(1), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("bias", [False, True])
def test_fits_that_are_near_are_not_made_again(bias):
    rows = dealt((20,) * 8)
    problem = Problem(rows, Gaussian(2.0))
    path = make_path(problem, Klr(bias=bias), [1.0, 1e-2, 1e-4])
    again = make_path(problem, Klr(bias=bias), [1e-2, 1.0], near=path.settled())
    np.testing.assert_array_equal(again.fits.x, path.fits.x[:, :2])
    np.testing.assert_allclose(again.fits.f, path.fits.f[:, :2], atol=1e-12)
    assert not make_path(problem, Svm(bias=bias), [1.0]).settled()
