"""What one kernel on the rows computes is computed once, by any thread, and kept for the leaders of a search."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tables
import tolerances
from kernsel import problem
from kernsel.kernels import Gaussian
from kernsel.learners import Krr, Svm
from kernsel.once import once
from kernsel.paths import make_path
from kernsel.problem import Problem, problem_on
from kernsel.representation import LowRank
from kernsel.search.candidate import Candidate
from kernsel.searching import refit


class Slow:
    """Computes something that waits for another thread to compute something of the same kind."""

    together = threading.Barrier(2, timeout=20)

    @once
    def value(self):
        """A number."""
        self.together.wait()
        return 1.0


def test_two_threads_compute_properties_of_two_objects_at_once():
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda each: each.value, [Slow(), Slow()])) == [1.0, 1.0]


@pytest.mark.parametrize("learner", [Krr(), Svm()], ids=["krr", "svm"])
@pytest.mark.parametrize("rank", [None, 8], ids=["full", "rank 8"])
def test_what_a_path_computes_holds_up_no_other_thread(learner, rank):
    path = make_path(Problem(tables.make_rows(), Gaussian(tau=1.0), rank), learner, [0.1])
    for name in ("fits", "ratio", "one_by_one"):
        assert isinstance(vars(next(c for c in type(path).__mro__ if name in vars(c)))[name], once)


def test_low_rank_problems_are_kept_within_bounds(monkeypatch):
    rows = tables.make_rows()
    kernels = [Gaussian(tau=2.0**power) for power in range(6)]
    made = {kernel: problem_on(rows, kernel, LowRank(8)) for kernel in kernels}
    assert all(problem_on(rows, kernel, LowRank(8)) is made[kernel] for kernel in kernels)
    size = made[kernels[0]].factor.Z.nbytes + made[kernels[0]].factor.T.nbytes
    assert made[kernels[0]].nbytes >= size
    for each in made.values():
        assert each.factor.Z.shape[1] == 8
    monkeypatch.setattr(problem, "KEPT_BYTES", int(3.5 * made[kernels[0]].nbytes))
    problem_on(rows, kernels[0], LowRank(8))  # the last that was asked for is the last to go
    assert [kernel for kernel, _ in rows.problems] == [*kernels[-2:], kernels[0]]
    assert problem_on(rows, kernels[1], LowRank(8)) is not made[kernels[1]]


def test_gram_matrices_and_other_ranks_are_others():
    rows, kernel = tables.make_rows(), Gaussian(tau=1.0)
    assert problem_on(rows, kernel, None) is not problem_on(rows, kernel, None)
    assert problem_on(rows, kernel, LowRank(8)) is not problem_on(rows, kernel, LowRank(9))


@pytest.mark.parametrize("learner", [Svm(), Svm(h=0.5)], ids=str)
def test_a_fit_that_was_found_is_the_fit_that_would_be(learner):
    rows, rank = tables.make_rows(), LowRank(8)
    winner = Candidate(Gaussian(tau=1.0), 0.01, learner=learner)
    alone = refit(winner, rows, rank)
    assert alone.lams.size > 1
    rows = tables.make_rows()
    searched = make_path(problem_on(rows, winner.kernel, rank), learner, [0.1, 0.01, 0.001])
    x, f = searched.fits.x[:, 1], searched.fits.f[:, 1]
    again = refit(winner, rows, rank)
    np.testing.assert_array_equal(again.lams, [0.01])
    np.testing.assert_array_equal(again.fits.x[:, 0], x)
    np.testing.assert_array_equal(again.fits.f[:, 0], f)
    Z = again.problem.factor.Z
    atol = tolerances.curved(Z @ Z.T, 0.01, 1 / (2 * learner.h))
    np.testing.assert_allclose(again.fits.f[:, 0], alone.fits.f[:, -1], rtol=0, atol=atol)
    np.testing.assert_allclose(again.exact().f[:, 0], alone.exact([3]).f[:, 0], rtol=0, atol=atol)
