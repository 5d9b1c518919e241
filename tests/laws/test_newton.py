"""Laws of the solver, for every smooth convex loss."""

import numpy as np
import pytest
import scipy.optimize
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import calling
import losses
import problems
import tolerances
import twins.heldout
from kernsel.numerics.smooth import convergence, newton

SOLVERS = [newton.in_kernel, newton.in_features]
solvers = pytest.mark.parametrize("problem", SOLVERS, ids=["kernel", "features"])
any_loss = st.sampled_from(losses.ALL)


def matrix(problem, p):
    return p.K if problem is newton.in_kernel else p.Z


def value(problem, fits, s, lam, bias=0):
    """``J`` at a fit, from what the solver returned."""
    x, b = (fits.x[0, :-1], fits.x[0, -1]) if bias else (fits.x[0], 0.0)
    penalty = x @ (fits.f[0] - b if problem is newton.in_kernel else x)
    return s @ fits.v[0] / s.sum() + lam * penalty


@solvers
@given(p=problems.problems(), loss=any_loss, weighted=st.booleans())
def test_the_fit_is_stationary(problem, p, loss, weighted):
    s = np.random.default_rng(0).exponential(size=p.n) if weighted else np.ones(p.n)
    fits = calling.fit(problem, loss, matrix(problem, p), p.y, calling.array(p.lam), s)
    assert not fits.status.any()
    f, (_, d1, _) = fits.f[0], loss.twin(p.y, fits.f[0])
    close = tolerances.curved(p.K, p.lam, loss.curvature)
    # f = -K (s d1) / (2 N lam) at the minimum, and f belongs to the coefficients returned
    np.testing.assert_allclose(f, -p.K @ (s * d1) / (2 * s.sum() * p.lam), atol=close * (1 + p.n / p.lam / 100))
    np.testing.assert_allclose(f, matrix(problem, p) @ fits.x[0], atol=close)


@solvers
@given(p=problems.problems(), loss=any_loss)
def test_the_fit_is_the_slow_twins(problem, p, loss):
    fits = calling.fit(problem, loss, matrix(problem, p), p.y, calling.array(p.lam))
    w = twins.heldout.fit(loss.twin, p.Z, p.y, np.ones(p.n), p.lam)
    np.testing.assert_allclose(fits.f[0], p.Z @ w, atol=tolerances.curved(p.K, p.lam, loss.curvature))


@solvers
@settings(max_examples=20)
@given(p=problems.problems(weighted=True), loss=any_loss, bias=st.sampled_from([0, 1]))
def test_no_other_solver_finds_a_lower_objective(problem, p, loss, bias):
    Z = p.features(bias)
    G = p.K if problem is newton.in_kernel else Z
    fits = calling.fit(problem, loss, G, p.y, calling.array(p.lam), p.s, bias=bias)
    assert not fits.status.any()
    found = scipy.optimize.minimize(
        lambda w: twins.heldout.objective(loss.twin, Z, p.y, p.s, p.lam, w, bias)[:2],
        np.zeros(Z.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 300, "gtol": 1e-10},
    )  # fmt: skip
    assert value(problem, fits, p.s, p.lam, bias) <= found.fun * (1 + tolerances.PENALTY) + 1e-12


@solvers
@given(p=problems.problems(weighted=True), loss=any_loss)
def test_with_a_bias_the_pulls_of_all_rows_sum_to_nothing(problem, p, loss):
    assume(np.unique(p.y).size == 2)  # of one class alone the logistic loss has no minimum
    G = p.K if problem is newton.in_kernel else p.features(bias=1)
    fits = calling.fit(problem, loss, G, p.y, calling.array(p.lam), p.s, bias=1)
    assert not fits.status.any()
    assert abs(fits.d1[0].sum()) <= 1e-6 * np.abs(fits.d1[0]).sum() + 1e-9
    w = twins.heldout.fit(loss.twin, p.features(bias=1), p.y, p.s, p.lam, bias=1)
    expected = twins.heldout.objective(loss.twin, p.features(bias=1), p.y, p.s, p.lam, w, bias=1)[0]
    assert value(problem, fits, p.s, p.lam, bias=1) <= expected * (1 + tolerances.PENALTY) + 1e-12


@solvers
@given(p=problems.problems(lams=(-10, 3)), shift=st.floats(-5, 5))
def test_a_bias_takes_up_a_shift_of_the_targets(problem, p, shift):
    G = p.K if problem is newton.in_kernel else p.features(bias=1)
    lams = calling.array(p.lam)
    one, other = (calling.fit(problem, losses.SQUARE, G, y, lams, bias=1) for y in (p.Y[0], p.Y[0] + shift))
    np.testing.assert_allclose(other.f, one.f + shift, atol=100 * tolerances.curved(p.K, p.lam))


@solvers
@given(p=problems.problems(lams=(-10, 3)))
def test_a_constant_kernel_adds_nothing_to_a_bias(problem, p):
    G = np.ones((p.n, p.n)) if problem is newton.in_kernel else np.ones((p.n, 2))
    fits = calling.fit(problem, losses.LOGISTIC, G, p.y, calling.array(p.lam), bias=1)
    assert not fits.status.any()
    share = (p.y > 0).mean()
    if 0 < share < 1:
        np.testing.assert_allclose(fits.f[0], np.log(share / (1 - share)), atol=1e-6)
    else:  # the bias would be infinite; it goes as far as it matters
        assert (p.y * fits.f[0] > 20).all()


@given(problems.problems(), any_loss)
def test_both_coordinates_agree_along_a_path(p, loss):
    lams = p.lam * 2.0 ** np.arange(6, -1, -2)
    kernel, features = (calling.fit(problem, loss, matrix(problem, p), p.y, lams) for problem in SOLVERS)
    assert not kernel.status.any()
    assert not features.status.any()
    np.testing.assert_allclose(kernel.f, features.f, atol=tolerances.curved(p.K, p.lam, loss.curvature))


@solvers
@given(p=problems.problems(), loss=any_loss)
def test_where_a_fit_starts_does_not_matter(problem, p, loss):
    lams = p.lam * 2.0 ** np.arange(6, -1, -2)
    warm, cold = (calling.fit(problem, loss, matrix(problem, p), p.y, lams, follow=follow) for follow in (True, False))
    np.testing.assert_allclose(warm.f, cold.f, atol=tolerances.curved(p.K, p.lam, loss.curvature))


@solvers
@given(p=problems.problems(), h=st.sampled_from([0.01, 0.05, 0.5]))
def test_coefficients_of_the_hinge_stay_in_their_box(problem, p, h):
    loss = losses.huber_hinge(h)
    fits = calling.fit(problem, loss, matrix(problem, p), p.y, calling.array(p.lam))
    largest = 1 / (2 * p.n * p.lam)
    a = fits.x[0] if problem is newton.in_kernel else -fits.d1[0] * largest
    assert (p.y * a >= -1e-9 * largest).all()
    assert (p.y * a <= (1 + 1e-9) * largest).all()


@solvers
@given(p=problems.problems(), loss=any_loss, seed=st.integers(0, 2**32 - 1))
def test_weights_are_numbers_of_copies(problem, p, loss, seed):
    counts = np.random.default_rng(seed).integers(0, 3, size=p.n)
    counts[0] = 1
    rows = np.repeat(np.arange(p.n), counts)
    weighted = calling.fit(problem, loss, matrix(problem, p), p.y, calling.array(p.lam), counts.astype(float))
    G = p.K[np.ix_(rows, rows)] if problem is newton.in_kernel else p.Z[rows]
    copied = calling.fit(problem, loss, np.ascontiguousarray(G), p.y[rows], calling.array(p.lam))
    assert not weighted.status.any()
    assert not copied.status.any()
    np.testing.assert_allclose(weighted.f[0, rows], copied.f[0], atol=tolerances.curved(p.K, p.lam, 2 * loss.curvature))


@solvers
@given(p=problems.problems(), loss=any_loss, factor=st.sampled_from([2.0**-20, 2.0**20]))
def test_the_scale_of_the_weights_does_not_matter(problem, p, loss, factor):
    one, other = (
        calling.fit(problem, loss, matrix(problem, p), p.y, calling.array(p.lam), np.full(p.n, s))
        for s in (1.0, factor)
    )
    np.testing.assert_allclose(one.f, other.f, atol=tolerances.curved(p.K, p.lam, loss.curvature))


@solvers
@settings(max_examples=20)
@given(p=problems.problems(), loss=any_loss, follow=st.booleans())
def test_extreme_lams_give_finite_outputs_or_a_status(problem, p, loss, follow):
    lams = calling.array(1e300, 1e100, 1e9, 1e-9, 1e-18, 1e-100, 1e-300)
    fits = calling.fit(problem, loss, matrix(problem, p), p.y, lams, follow=follow)
    good = fits.status == convergence.CONVERGED
    assert good[:3].all()  # nothing is hard about a strong ridge
    assert np.isfinite(fits.f[good]).all()
    assert np.isfinite(fits.x[good]).all()
    assert set(fits.status[~good]) <= set(convergence.REASONS)
    np.testing.assert_allclose(fits.f[0], 0, atol=1e-290)
