"""The solver in the cases that need a special word."""

import numpy as np
import pytest

import calling
import losses
import problems
import tolerances
import twins.heldout
from kernsel.numerics import lanczos
from kernsel.numerics.smooth import convergence, newton, objective

SOLVERS = [newton.in_kernel, newton.in_features]
solvers = pytest.mark.parametrize("problem", SOLVERS, ids=["kernel", "features"])


def matrix(problem, p):
    return p.K if problem is newton.in_kernel else p.Z


@pytest.mark.parametrize("loss", losses.ALL, ids=str)
def test_the_compiled_losses_are_their_twins(loss):
    y, f = np.repeat([-1.0, 1.0], 50), np.tile(np.linspace(-3, 3, 50), 2)
    out = [np.empty((1, 1, 100)) for _ in range(3)]
    objective.expand(loss.compiled, loss.parameters, y[None], np.full(100, 2.0), f[None, None], *out)
    v, d1, d2 = loss.twin(y, f)
    for found, expected in zip(out, (v, 2 * d1, 2 * d2), strict=True):
        np.testing.assert_allclose(found[0, 0], expected, rtol=1e-12, atol=1e-14)


@solvers
@pytest.mark.parametrize("seed", range(4))
def test_a_narrow_band_does_not_make_the_steps_cycle(problem, seed):
    loss = losses.huber_hinge(0.01)
    p = problems.make(seed, n=60, lam=1e-4)
    fits = calling.fit(problem, loss, matrix(problem, p), p.y, calling.array(p.lam))
    assert not fits.status.any()
    w = twins.heldout.fit(loss.twin, p.Z, p.y, np.ones(p.n), p.lam)
    np.testing.assert_allclose(fits.f[0], p.Z @ w, atol=tolerances.curved(p.K, p.lam, loss.curvature))


@solvers
def test_values_that_are_not_finite_are_a_status(problem):
    p = problems.make(0)
    G = matrix(problem, p).copy()
    G[3, 4] = np.nan
    fits = calling.fit(problem, losses.HINGE, G, p.y, calling.array(1.0, 0.1))
    assert (fits.status != convergence.CONVERGED).all()


@solvers
def test_a_failed_fit_does_not_spoil_the_next_one(problem):
    p = problems.make(0)
    lams = calling.array(np.inf, 0.1)
    fits = calling.fit(problem, losses.HINGE, matrix(problem, p), p.y, lams)
    alone = calling.fit(problem, losses.HINGE, matrix(problem, p), p.y, lams[1:])
    assert fits.status[1] == convergence.CONVERGED
    np.testing.assert_allclose(fits.f[1], alone.f[0], atol=1e-10)


@solvers
@pytest.mark.parametrize("loss", losses.ALL, ids=str)
def test_a_kernel_of_rank_one_and_one_class(problem, loss):
    n = 12
    G = np.ones((n, n)) if problem is newton.in_kernel else np.ones((n, 1))
    fits = calling.fit(problem, loss, G, np.ones(n), calling.array(1.0, 1e-3))
    w = [twins.heldout.fit(loss.twin, np.ones((n, 1)), np.ones(n), np.ones(n), lam)[0] for lam in (1.0, 1e-3)]
    assert not fits.status.any()
    np.testing.assert_allclose(fits.f, np.outer(w, np.ones(n)), atol=1e-8)


@solvers
def test_a_kernel_of_zero(problem):
    G = np.zeros((6, 6)) if problem is newton.in_kernel else np.zeros((6, 0))
    fits = calling.fit(problem, losses.HINGE, G, np.ones(6), calling.array(0.1))
    assert fits.status[0] == convergence.CONVERGED
    assert not fits.f.any()


def test_many_problems_side_by_side_are_the_single_ones():
    p, q = problems.make(0), problems.make(1, tau=0.3)
    lams, loss = 2.0 ** np.arange(2, -9, -2), losses.HINGE
    x, f = np.zeros((3, lams.size, 30)), np.zeros((3, lams.size, 30))
    S = np.ones((3, 30))
    S[1, :10] = 0
    status = newton.solve_paths(
        newton.in_kernel, np.stack([p.K, q.K]), 0, np.array([0, 1, 0]), np.stack([p.y, q.y, -p.y]), S, lams,
        loss.compiled, loss.parameters, True, x, f,
    )  # fmt: skip
    assert not status.any()
    for j, (K, y) in enumerate([(p.K, p.y), (q.K, q.y), (p.K, -p.y)]):
        alone = calling.fit(newton.in_kernel, loss, K, y, lams, S[j])
        np.testing.assert_array_equal(f[j], alone.f)
        np.testing.assert_array_equal(x[j], alone.x)


def test_the_radius_of_a_tridiagonal_matrix():
    rng = np.random.default_rng(0)
    for k in range(1, 9):
        alpha, beta = rng.normal(size=k), rng.normal(size=k - 1) * (rng.random(k - 1) > 0.2)
        dense = np.diag(alpha) + np.diag(beta, 1) + np.diag(beta, -1)
        assert calling.entry(lanczos.tridiagonal_radius)(alpha, beta) == pytest.approx(
            np.abs(np.linalg.eigvalsh(dense)).max(), rel=1e-6
        )
    assert calling.entry(lanczos.tridiagonal_radius)(np.empty(0), np.empty(0)) == 0
    assert calling.entry(lanczos.tridiagonal_radius)(np.zeros(3), np.zeros(2)) == 0


@solvers
@pytest.mark.parametrize("loss", losses.ALL, ids=str)
def test_two_classes_that_balance_leave_the_bias_where_it_is(problem, loss):
    """With a strong ridge no row has curvature and the pulls cancel: there is nothing to do for a bias."""
    p = problems.make(5, n=12)
    y = np.repeat([-1.0, 1.0], 6)
    G = p.K if problem is newton.in_kernel else p.features(bias=1)
    fits = calling.fit(problem, loss, G, y, calling.array(8.0, 1.0), bias=1)
    assert not fits.status.any()
    assert np.abs(fits.x[:, -1]).max() < 1.0


@solvers
def test_a_looser_fit_is_short_of_the_minimum_by_no_more_than_its_tolerance(problem):
    p, lams = problems.make(4, n=60), calling.array(1e-3)

    def objective(tol):
        fits = calling.fit(problem, losses.LOGISTIC, matrix(problem, p), p.y, lams, tol=tol)
        x = fits.x[0]
        return fits.v[0].mean() + lams[0] * x @ (fits.f[0] if problem is newton.in_kernel else x)

    least = objective(convergence.DECREMENT)
    assert 0 < objective(0.1) - least < 0.1 * least
