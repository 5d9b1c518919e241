"""What one kernel on the rows computes is computed once, by any thread, and kept for the leaders of a search."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import tables
from kernsel.kernels import Gaussian
from kernsel.learners import Krr, Svm
from kernsel.numerics.runtime.once import once
from kernsel.paths import make_path
from kernsel.representation.problem import Problem, Problems
from kernsel.representation.ranks import Full, LowRank


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


@pytest.mark.parametrize("learner", [Krr(), Svm(bias=False)], ids=["krr", "svm"])
@pytest.mark.parametrize("rank", [None, 8], ids=["full", "rank 8"])
def test_what_a_path_computes_holds_up_no_other_thread(learner, rank):
    path = make_path(Problem(tables.make_rows(), Gaussian(tau=1.0), rank), learner, [0.1])
    for name in ("fits", "ratio", "one_by_one"):
        assert isinstance(vars(next(c for c in type(path).__mro__ if name in vars(c)))[name], once)


def test_low_rank_problems_are_kept_within_bounds():
    rows, problems, rank = tables.make_rows(), Problems(), LowRank(8)
    kernels = [Gaussian(tau=2.0**power) for power in range(6)]
    made = {kernel: problems.on(rows, kernel, rank) for kernel in kernels}
    assert all(problems.on(rows, kernel, rank) is made[kernel] for kernel in kernels)
    for each in made.values():
        features = each.held
        held = [features.factor.Z, features.factor.T, features.factor.points, features.products, features.weighted]
        assert each.nbytes == sum(array.nbytes for array in held)
    problems.room = int(3.5 * made[kernels[0]].nbytes)
    problems.on(rows, kernels[0], rank)  # the last that was asked for is the last to go
    assert [kernel for _, kernel, _ in problems.kept] == [*kernels[-2:], kernels[0]]
    assert problems.on(rows, kernels[1], rank) is not made[kernels[1]]


def test_gram_matrices_other_ranks_and_other_rows_are_others():
    rows, problems, kernel = tables.make_rows(), Problems(), Gaussian(tau=1.0)
    assert problems.on(rows, kernel, Full()) is not problems.on(rows, kernel, Full())
    assert problems.on(rows, kernel, LowRank(8)) is not problems.on(rows, kernel, LowRank(9))
    assert problems.on(rows, kernel, LowRank(8)) is not problems.on(tables.make_rows(), kernel, LowRank(8))
