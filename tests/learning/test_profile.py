"""The relevances of one profile by the evidence, and the quasi-Newton descent that finds them."""

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

import tolerances
import twins.learning
from kernsel.criteria import Evidence
from kernsel.criteria.evidence import prior
from kernsel.data import from_arrays
from kernsel.errors import OptionError, SelectionError
from kernsel.folds import make_folds
from kernsel.folds.partition import Partition
from kernsel.kernels import ARD, ARDLaplacian, parse
from kernsel.learners import Krr, Lssvm
from kernsel.learning import learn_relevances, profile
from kernsel.learning.profile import Objective, learn_profile
from kernsel.learning.quasinewton import Descent, descend
from kernsel.learning.start import least_ridge
from kernsel.numerics.square import gradients
from kernsel.representation.problem import Problem

KERNELS = [*(ARD(profile=name) for name in ARD.words["profile"]), ARDLaplacian()]
kernels = pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.isotropic.name)


def waves(n=120, d=5, seed=0, noise=0.2):
    """A regression on the first two of d features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + noise * rng.normal(size=n)


def rows_on(X, y, weights=None):
    dataset = from_arrays(X, y, weights=weights)
    return Partition.of(dataset, make_folds(5, dataset), 0)


def slow_evidence(K, y, s, bias, ridge):
    """The negative log evidence by its definition: dense inverses and determinants."""
    H = K + ridge * np.diag(1 / s)
    A = np.linalg.inv(H)
    m, extra = len(y), 0.0
    if bias:
        u = A.sum(axis=1)
        extra = np.log(u.sum())
        A = A - np.outer(u, u) / u.sum()
        m -= 1
    return 0.5 * (m * np.log(y @ A @ y / m) + np.linalg.slogdet(H)[1] + extra)


@pytest.mark.parametrize("bias", [0, 1])
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
def test_the_value_alone_is_that_with_the_gradient(bias, weighted):
    rng = np.random.default_rng(0)
    X, y = waves(40)
    K, s = ARD((0.3,) * 5)(X), rng.uniform(0.5, 2, 40) if weighted else np.ones(40)
    Y = np.stack([y, X[:, 3]])
    value = gradients.evidence(K, Y, s, bias, 0.01)[0]
    assert gradients.evidence_alone(K, Y, s, bias, 0.01) == pytest.approx(value, rel=1e-12)
    slow = np.mean([slow_evidence(K, each, s, bias, 0.01 * s.sum()) for each in Y])
    assert value == pytest.approx(slow, rel=1e-10)


@given(st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=6), st.floats(0.1, 4.0))
def test_the_prior_holds_the_ratios_and_not_the_scale(theta, sigma):
    theta = np.array(theta)
    value, slopes = prior(theta, sigma, [theta.size])
    assert value == pytest.approx(0.5 * np.var(np.log(theta)) * theta.size / sigma**2, abs=1e-12)
    assert prior(7.0 * theta, sigma, [theta.size])[0] == pytest.approx(value, rel=1e-9, abs=1e-12)
    assert slopes @ theta == pytest.approx(0.0, abs=1e-9 * (1 + np.abs(slopes * theta).max()))
    expected = twins.learning.differences(lambda t: prior(t, sigma, [t.size])[0], theta)
    np.testing.assert_allclose(slopes * theta, expected * theta, rtol=1e-5, atol=1e-5 * (1 + value))


def test_the_prior_of_parts_has_a_mean_for_each_and_none_of_a_zero():
    theta = np.array([1.0, 2.0, 300.0, 0.0, 900.0])
    value, slopes = prior(theta, 0.5, [2, 3])
    assert value == pytest.approx(prior(theta[:2], 0.5, [2])[0] + prior(theta[[2, 4]], 0.5, [2])[0])
    assert slopes[3] == 0.0
    assert prior(theta, None, [2, 3])[0] == 0.0


@pytest.mark.parametrize("text", ["ard", "ard(profile=exponential)", "ard-laplacian", "ard + 0.5*ard-laplacian[0, 1]"])
def test_the_gradient_of_the_criterion_has_the_prior(text):
    rows = rows_on(*waves(40, 3))
    kernel = parse(text)
    count = 3 if "+" not in text else 5
    template = kernel.from_isotropic(kernel.isotropic.with_parameters(**dict.fromkeys(kernel.isotropic.free, 1.5)), 3)
    theta = np.random.default_rng(0).uniform(0.1, 1.0, count)
    criterion = Evidence(0.7)

    def value(theta):
        return criterion.gradient(Problem(rows, template.with_theta(theta)), Krr(), 0.01).value

    slopes = criterion.gradient(Problem(rows, template.with_theta(theta)), Krr(), 0.01)
    np.testing.assert_allclose(slopes.theta, twins.learning.differences(value, theta), rtol=1e-5)
    free = Evidence().gradient(Problem(rows, template.with_theta(theta)), Krr(), 0.01)
    assert slopes.value > free.value
    assert slopes.lam == free.lam


def test_a_prior_keeps_relevances_together_and_above_zero():
    X, y = waves(100, 6)
    spreads = []
    for criterion in (Evidence(0.3), Evidence(1.0), "evidence(sigma=3)", "evidence"):
        learnt = learn_relevances(X, y, criterion=criterion)
        if criterion != "evidence":
            assert not learnt.zero
            assert learnt.criterion == "evidence"
        spreads.append(np.log(np.maximum(learnt.relevances, 1e-12)).std())
    assert spreads == sorted(spreads)


@pytest.mark.parametrize("sigma", [0, -1.0, float("inf"), float("nan")])
def test_sigma_is_checked(sigma):
    with pytest.raises(OptionError, match="sigma must be a finite number greater than 0"):
        Evidence(sigma)


@kernels
@pytest.mark.parametrize("sigma", [1.0, None])
def test_it_ends_where_a_long_descent_of_scipy_does(kernel, sigma):
    X, y = waves(150)
    rows = rows_on(X, y)
    found = learn_profile(rows, kernel, Krr(), sigma)
    objective = Objective(rows, found.kernel, 0, sigma, [5])
    reach = [(v - 12, v + 12) for v in found.descent.x[:-1]] + [(np.log(least_ridge(kernel)), 6.9)]
    long = scipy.optimize.minimize(
        objective, found.descent.x, jac=True, method="L-BFGS-B", bounds=reach, options={"maxiter": 500, "ftol": 1e-12}
    )
    left = tolerances.PROFILE if sigma else tolerances.PLATEAU
    assert objective(found.descent.x)[0] <= long.fun + left
    assert found.objective == pytest.approx(rows.n * found.descent.value)
    score = Evidence().gradient(Problem(rows, found.kernel), Krr(), found.lam).value
    assert found.value == pytest.approx(score, rel=1e-9)
    assert found.ridge == pytest.approx(found.lam * 150)
    theta = np.array(found.kernel.theta)
    assert theta[:2].min() > 2 * theta[2:].max()


@kernels
def test_the_gradient_of_the_objective_is_the_difference(kernel):
    rows = rows_on(*waves(40, 3), weights=np.random.default_rng(1).uniform(0.5, 2.0, 40))
    template = kernel.with_theta((1.0,) * 3)
    objective = Objective(rows, template, 1, 0.8, [3])
    x = np.array([0.3, -1.0, -0.5, -2.0])
    step = 1e-5
    slopes = [(objective(x + u)[0] - objective(x - u)[0]) / (2 * step) for u in step * np.eye(4)]
    value, gradient = objective(x)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-5, atol=1e-8)
    assert objective.value(x) == pytest.approx(value, rel=1e-10)


def test_many_rows_end_where_all_of_them_from_the_beginning_do(monkeypatch):
    rows = rows_on(*waves(400))
    part = learn_profile(rows, ARD(profile="matern32"), Krr(), 1.0, part=120)
    whole = learn_profile(rows, ARD(profile="matern32"), Krr(), 1.0, part=400)
    assert part.objective / 400 == pytest.approx(whole.objective / 400, abs=tolerances.PROFILE)
    again = learn_profile(rows, ARD(profile="matern32"), Krr(), 1.0, part=120)
    assert again.kernel == part.kernel


@kernels
def test_what_another_profile_has_learnt_is_a_start(kernel):
    rows = rows_on(*waves(150))
    other = learn_profile(rows, ARD(profile="exponential"), Krr(), 1.0)
    cold, warm = (learn_profile(rows, kernel, Krr(), 1.0, starts) for starts in ((), (other,)))
    assert warm.objective / 150 == pytest.approx(cold.objective / 150, abs=10 * tolerances.PROFILE)


def test_rough_kernels_do_not_interpolate():
    X, y = waves(120, noise=0.0)
    ridges = [learn_profile(rows_on(X, y), kernel, Krr()).ridge for kernel in (ARD(profile="exponential"), ARD())]
    assert ridges[0] >= least_ridge(ARD(profile="exponential")) * (1 - 1e-12)
    assert ridges[1] < ridges[0]
    learnt = learn_relevances(X, y, kernel="ard(profile=exponential)")
    assert learnt.lam * 120 >= least_ridge(ARD(profile="exponential")) * (1 - 1e-9)


def test_classes_bias_weights_and_sums():
    X, y = waves(100, 3)
    dataset = from_arrays(X, np.where(y > 0, "a", "b"), weights=np.random.default_rng(0).uniform(0.5, 2, 100))
    rows = Partition.of(dataset, make_folds(5, dataset), 0)
    found = learn_profile(rows, parse("ard(profile=matern52) + 0.1*linear"), Lssvm(), 0.5)
    assert len(found.kernel.theta) == 3
    assert found.lam == pytest.approx(found.ridge / dataset.weights.sum())
    assert np.argmin(found.kernel.theta) == 2


def test_without_a_value_anywhere_it_says_so(monkeypatch):
    monkeypatch.setattr(profile.Objective, "value", lambda self, x: np.inf)
    with pytest.raises(SelectionError, match="the evidence has no value for any width"):
        learn_profile(rows_on(*waves(40)), ARD(), Krr())


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 6), st.integers(0, 10_000))
def test_a_convex_quadratic_in_a_box_ends_at_its_least(p, seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(p, p))
    A, b = A @ A.T + 0.1 * np.eye(p), rng.normal(size=p)
    low, high = -rng.uniform(0.1, 1.0, p), rng.uniform(0.1, 1.0, p)

    def function(x):
        return 0.5 * x @ A @ x - b @ x, A @ x - b

    found = descend(function, Descent(np.full(p, 5.0)), low, high, 500, 1e-12)
    expected = scipy.optimize.lsq_linear(
        np.linalg.cholesky(A).T, np.linalg.solve(np.linalg.cholesky(A), b), (low, high)
    )
    assert ((found.x >= low) & (found.x <= high)).all()
    assert found.value == pytest.approx(function(expected.x)[0], abs=1e-6)


def test_curvature_that_is_handed_on_saves_evaluations():
    def function(x):
        return np.logaddexp(x[0], -x[0]) + 50 * (x[1] - x[0]) ** 2, np.array(
            [np.tanh(x[0]) - 100 * (x[1] - x[0]), 100 * (x[1] - x[0])]
        )

    low, high = np.full(2, -10.0), np.full(2, 10.0)
    first = descend(function, Descent(np.array([2.0, -1.0])), low, high, 100, 1e-10)
    moved = np.array([0.5, 0.2])
    cold = descend(function, Descent(moved), low, high, 100, 1e-10)
    warm = descend(function, Descent(moved, inverse=first.inverse), low, high, 100, 1e-10)
    assert warm.evaluations < cold.evaluations
    assert warm.value == pytest.approx(np.log(2), abs=1e-7)


def test_a_descent_turns_back_where_the_function_has_no_value():
    def function(x):
        if x[0] > 1.0:
            raise np.linalg.LinAlgError("beyond")
        return float((x[0] - 0.9) ** 2), 2 * (x - 0.9)

    low, high = np.full(1, -9.0), np.full(1, 9.0)
    assert descend(function, Descent(np.zeros(1)), low, high, 50, 1e-12).x[0] == pytest.approx(0.9, abs=1e-4)
    with pytest.raises(SelectionError, match="can't be learnt from where they begin: beyond"):
        descend(function, Descent(np.full(1, 2.0)), low, high, 50, 1e-12)
