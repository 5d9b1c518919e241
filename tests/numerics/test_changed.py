"""Systems by the factor of other rows against the same systems, solved."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calling
import losses
import problems
from kernsel.numerics.runtime import blas
from kernsel.numerics.smooth import changed, newton


def scaled(K, rows, root, mu):
    return root[:, None] * K[np.ix_(rows, rows)] * root + mu * np.eye(len(rows))


def padded(rows, n):
    return np.concatenate([rows, np.full(n - len(rows), -7)]).astype(np.int64)


class Path:
    """A factor of some rows, and the solutions of systems that change a little each."""

    def __init__(self, K, rows, known, mu):
        self.K, self.known, self.mu, self.n = K, known, mu, len(K)
        self.R = scaled(K, rows, known[rows], mu)
        assert calling.entry(blas.cholesky)(self.R) == 0
        self.changes = calling.entry(changed.no_changes)(self.n, padded(rows, self.n), len(rows))

    def solve(self, rows, root, B):
        gone, new = np.empty(self.n, np.int64), np.empty(self.n, np.int64)
        ordered = padded(rows, self.n)
        off, on, worthwhile = calling.entry(changed.differing_rows)(
            self.changes, ordered, root, self.known, gone, new
        )  # fmt: skip
        if worthwhile:
            found = B.copy()
            status = calling.entry(changed.solve_changed)(
                self.K, self.R, self.changes, self.known, ordered, root, self.mu, gone[:off], new[:on], found
            )
            assert status == 0
            np.testing.assert_allclose(found, np.linalg.solve(scaled(self.K, rows, root, self.mu), B.T).T, rtol=1e-6)
        return worthwhile


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), tau=st.sampled_from([0.1, 1.0, 10.0]), mu=st.sampled_from([1e-3, 0.1, 10.0]))
def test_solutions_are_those_of_the_system_however_often_rows_change(seed, tau, mu):
    rng, K = np.random.default_rng(seed), problems.make(seed, n=60, tau=tau).K
    curvature = rng.exponential(size=60) + 0.1
    curved = rng.random(60) < 0.7
    path = Path(K, np.flatnonzero(curved), np.where(curved, np.sqrt(curvature), 0.0), mu)
    worthwhile = 0
    for _ in range(4):
        curved[rng.integers(60, size=2)] ^= True
        rows = np.flatnonzero(curved)
        worthwhile += path.solve(rows, np.sqrt(curvature[rows]), rng.normal(size=(2, rows.size)))
    assert worthwhile >= 1


def test_another_curvature_wants_another_factor():
    K, rows = problems.make(1, n=30).K, np.arange(30)
    path = Path(K, rows, np.ones(30), 0.1)
    assert path.solve(rows[1:], np.ones(29), np.ones((1, 29)))
    assert not path.solve(rows, np.full(30, 1.0 + 1e-9), np.ones((1, 30)))


def test_another_curvature_of_a_new_row_wants_another_factor():
    """As of a row between two kinks of a loss, which was at one of them before."""
    K, rows = problems.make(1, n=40).K, np.arange(40)
    path = Path(K, rows[:39], np.r_[np.ones(39), 0.0], 0.1)
    assert path.solve(rows, np.ones(40), np.ones((1, 40)))
    assert not path.solve(rows, np.r_[np.ones(39), 1.5], np.ones((1, 40)))
    assert path.solve(rows, np.ones(40), np.ones((1, 40)))


def test_many_rows_want_another_factor():
    K = problems.make(1, n=30).K
    path = Path(K, np.arange(20), np.r_[np.ones(20), np.zeros(10)], 0.1)
    assert not path.solve(np.arange(5, 25), np.ones(20), np.ones((1, 20)))


@pytest.mark.parametrize("bias", [0, 1])
@pytest.mark.parametrize("loss", [losses.huber_hinge(0.01), losses.SQUARED_HINGE], ids=str)
def test_fits_by_changes_are_fits_by_factors(loss, bias):
    """The minimum doesn't depend on how steps are solved: a start far away changes many rows, one nearby few."""
    p = problems.make(5, n=120, lam=1e-4)
    lams = p.lam * 2.0 ** np.arange(6, -1, -1.0)
    path = calling.fit(newton.in_kernel, loss, p.K, p.y, lams, bias=bias)
    alone = calling.fit(newton.in_kernel, loss, p.K, p.y, lams, bias=bias, follow=False)
    assert not path.status.any()
    np.testing.assert_allclose(path.f, alone.f, atol=1e-7)


@pytest.mark.parametrize("seed", [37, 38, 43, 48])
def test_small_ridges_of_a_kernel_of_low_rank_lose_nothing_to_changes(seed):
    """The system of a linear kernel is the ridge where its rank ends: what few changed rows leave of it cancels."""
    rng, loss = np.random.default_rng(seed), losses.huber_hinge(0.5)
    X = rng.normal(size=(50, 4)) * 10.0 ** rng.integers(0, 2, 4)
    y = np.where(X @ (1.0 / abs(X).max(axis=0)) + 0.7 * rng.normal(size=50) > 0, 1.0, -1.0)
    Z, lams = np.ascontiguousarray(np.column_stack([X, np.ones(50)])), np.array([1e-2, 1e-8])
    found = calling.fit(newton.in_kernel, loss, X @ X.T, y, lams, bias=1)
    expected = calling.fit(newton.in_features, loss, Z, y, lams, bias=1)
    assert not found.status.any()
    np.testing.assert_allclose(found.f, expected.f, atol=1e-5)
