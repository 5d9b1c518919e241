"""First-level kernel learning: the exact inner solution, the gradient, the bound, and the search for two numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tolerances
import twins.learning
from kernsel.data import from_arrays
from kernsel.errors import SelectionError
from kernsel.folds import make_folds
from kernsel.folds.partition import Partition
from kernsel.kernels import ARD, ARDPolynomial, Gaussian, Polynomial
from kernsel.learners import Krr, Lssvm
from kernsel.learning import flkl
from kernsel.learning.descent import Box
from kernsel.learning.flkl import CrossValidation, FirstLevel, OnLandmarks
from kernsel.learning.start import choose_start
from kernsel.numerics.landmarks import uniform_landmarks
from kernsel.numerics.square import firstlevel
from kernsel.paths import make_path
from kernsel.representation.problem import Problem

LEARNERS = [Krr(), Lssvm()]
KERNELS = [ARD((0.3, 0.1, 0.2, 0.05)), ARDPolynomial((0.3, 0.1, 0.2, 0.05), 2), Gaussian(2.0)]
WIDE = Box(0.0, 1e3, (1e-12, 1e3))


def noisy(n=70, d=4, seed=0):
    """Classes that depend on the first two of d features, as codes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)


def criterion_on(kernel, learner, seed=0, weighted=True, n=70, d=4):
    X, y = noisy(n, d, seed)
    Y = np.stack([y, X[:, 0]])
    s = np.random.default_rng(seed + 1).uniform(0.5, 2, n) if weighted else np.ones(n)
    return FirstLevel(kernel, learner, X, Y, s)


def on_landmarks(criterion, count):
    """The same criterion on so many of its rows."""
    fields = (criterion.kernel, criterion.learner, criterion.X, criterion.Y, criterion.s)
    return OnLandmarks(*fields, criterion.X[:count])


def rows_on(X, y, folds=4):
    dataset = from_arrays(X, y, "classification")
    return dataset, Partition.of(dataset, make_folds(folds, dataset), 0)


@given(st.integers(0, 2**32 - 1), st.sampled_from(LEARNERS), st.floats(1e-4, 10.0), st.booleans())
def test_the_inner_solution_is_that_of_the_bordered_system(seed, learner, lam, weighted):
    criterion = criterion_on(KERNELS[0], learner, seed, weighted, n=20)
    K, found = criterion.fit(KERNELS[0].theta, lam)
    a, b, value = twins.learning.first_level(K, criterion.Y, criterion.s, learner.bias, lam)
    tolerance = tolerances.conditioned(len(K), lam, len(K)) * tolerances.weighted(criterion.s) / lam
    np.testing.assert_allclose(found.a, a, atol=tolerance)
    np.testing.assert_allclose(found.b, b, atol=tolerance)
    assert found.minimum == pytest.approx(value, rel=1e-8)


def test_a_weight_of_two_is_a_row_that_is_there_twice():
    X, y = noisy()
    twice = np.arange(len(X)) < 20
    K = KERNELS[0](X)
    repeated = np.append(np.arange(len(X)), np.flatnonzero(twice))
    one = firstlevel.fit(K, y[None], 1.0 + twice, 1, 0.01)
    other = firstlevel.fit(K[np.ix_(repeated, repeated)], y[None, repeated], np.ones(repeated.size), 1, 0.01)
    assert one.minimum == pytest.approx(other.minimum, rel=1e-10)
    np.testing.assert_allclose(one.b, other.b, rtol=1e-8)


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_the_gradient_is_the_difference(kernel, learner):
    criterion, theta = criterion_on(kernel, learner), np.array(kernel.theta)
    for lam, mu in ((1e-3, 0.1), (0.1, 0.01)):
        expected = twins.learning.differences(lambda t: criterion.slopes(t, lam, mu).value, theta)  # noqa: B023
        np.testing.assert_allclose(criterion.slopes(theta, lam, mu).theta, expected, rtol=1e-5, atol=1e-9)


def test_the_gradient_by_the_gram_matrix_is_that_of_the_envelope():
    criterion = criterion_on(KERNELS[0], Lssvm())
    theta, direction = KERNELS[0].theta, np.random.default_rng(0).normal(size=(70, 70))
    direction += direction.T
    K, found = criterion.fit(theta, 0.01)
    ends = [firstlevel.fit(K + h * direction, criterion.Y, criterion.s, 1, 0.01).minimum for h in (1e-7, -1e-7)]
    slope = np.sum(firstlevel.slopes(found, 0.01) * direction)
    assert slope == pytest.approx((ends[0] - ends[1]) / 2e-7, rel=1e-5)


@given(st.floats(1e-3, 5.0), st.sampled_from(LEARNERS), st.integers(0, 100))
def test_one_relevance_is_the_special_case_of_equal_ones(gamma, learner, seed):
    d, mu = 4, 0.1
    one = criterion_on(Gaussian(), learner, seed, n=25).slopes(np.array([gamma]), 0.01, mu)
    many = criterion_on(ARD(), learner, seed, n=25).slopes(np.full(d, gamma), 0.01, mu / d)
    assert one.value == pytest.approx(many.value, rel=1e-9)
    assert one.theta[0] == pytest.approx(many.theta.sum(), rel=1e-7, abs=1e-10)


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_all_rows_as_landmarks_are_the_gram_matrix(kernel, learner):
    criterion, theta = criterion_on(kernel, learner), np.array(kernel.theta)
    exact, same = criterion.slopes(theta, 1e-2, 0.1), on_landmarks(criterion, 70).slopes(theta, 1e-2, 0.1)
    assert same.value == pytest.approx(exact.value, rel=1e-8)
    np.testing.assert_allclose(same.theta, exact.theta, rtol=1e-6)


@given(st.integers(0, 2**32 - 1), st.sampled_from(LEARNERS), st.integers(1, 20), st.floats(1e-3, 1.0))
def test_landmarks_are_least_squares_on_their_kernel_functions(seed, learner, count, lam):
    criterion = on_landmarks(criterion_on(KERNELS[0], learner, seed, n=30), count)
    found = criterion.slopes(np.array(KERNELS[0].theta), lam, 0.0)
    C, W = KERNELS[0](criterion.X, criterion.landmarks), KERNELS[0](criterion.landmarks)
    expected = twins.learning.on_landmarks(C, W, criterion.Y, criterion.s, learner.bias, lam)
    assert found.value == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_the_gradient_on_landmarks_is_the_difference(kernel, learner):
    criterion, theta = on_landmarks(criterion_on(kernel, learner), 9), np.array(kernel.theta)
    expected = twins.learning.differences(lambda t: criterion.slopes(t, 1e-2, 0.1).value, theta)
    np.testing.assert_allclose(criterion.slopes(theta, 1e-2, 0.1).theta, expected, rtol=1e-5, atol=1e-9)


def test_more_rows_than_a_gram_matrix_is_made_of_are_learnt_on_landmarks():
    n = flkl.LANDMARKS + 100
    X, y = noisy(n=n, d=6)
    dataset, rows = rows_on(X, y)
    first = Partition.of(small := dataset.take(np.arange(80)), make_folds(4, small), 0)
    start = choose_start(small, first, ARD(), Lssvm())
    learnt = flkl.learn_first_level(first, rows, start, Lssvm(), 5, most=n - 1)
    landmarks = rows.X[uniform_landmarks(n, flkl.LANDMARKS, 0)]
    criterion = OnLandmarks(start.kernel, Lssvm(), rows.X, rows.Y, rows.s, landmarks)
    slopes = criterion.slopes(learnt.theta, learnt.lam, learnt.mu)
    units = np.maximum(learnt.theta, learnt.theta.max() / 100) / (2 * slopes.value)
    inside = learnt.theta > 0
    assert (np.abs(slopes.theta * units)[inside] < tolerances.STATIONARY).all()
    assert set(np.argsort(learnt.theta)[-2:]) == {0, 1}


@pytest.mark.parametrize("mu", [1e-4, 1e-1])
@pytest.mark.parametrize("kernel", [ARD(), ARDPolynomial(degree=2)], ids=str)
def test_the_optimum_keeps_the_conditions_of_karush_kuhn_and_tucker(kernel, mu):
    criterion = criterion_on(kernel, Lssvm(), d=8)
    start = np.full(8, 0.1)
    found = criterion.minimise(start, 0.02, mu, WIDE, tolerance=1e-12)
    slopes = criterion.slopes(found.theta, 0.02, mu)
    assert slopes.value < criterion.slopes(start, 0.02, mu).value
    units = np.maximum(found.theta, found.theta.max() / 100) / (2 * slopes.value)
    at_bound = found.theta == 0
    assert (slopes.theta[at_bound] * units[at_bound] > -tolerances.STATIONARY).all()
    assert (np.abs(slopes.theta * units)[~at_bound] < tolerances.STATIONARY).all()
    assert at_bound.any() or (kernel.name, mu) != ("ard", 1e-4)
    assert (found.theta[:2] > 0).all()


def test_features_of_noise_are_exactly_zero():
    X, y = noisy(n=120, d=12)
    criterion = FirstLevel(ARD(), Lssvm(), X, y[None], np.ones(120))
    found = criterion.minimise(np.full(12, 0.05), 0.03, 1e-3, WIDE)
    assert (found.theta[:2] > 0.01).all()
    assert (found.theta[2:] == 0).sum() >= 6


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_it_comes_back_from_where_all_features_are_out(learner):
    criterion = criterion_on(ARD(), learner)
    found = criterion.minimise(np.zeros(4), 0.01, 0.01, WIDE, 1e-9)
    assert found.value == pytest.approx(criterion.minimise(np.full(4, 0.1), 0.01, 0.01, WIDE, 1e-9).value, rel=1e-3)


def test_less_penalty_fits_better_and_has_larger_relevances():
    criterion = criterion_on(ARD(), Lssvm())
    found = [criterion.minimise(np.full(4, 0.1), 0.01, mu, WIDE).theta for mu in (10.0, 0.1, 0.001)]
    fits = [criterion.slopes(theta, 0.01, 0.0).value for theta in found]
    assert fits[0] > fits[1] > fits[2]
    assert found[0] @ found[0] < found[1] @ found[1] < found[2] @ found[2]


def test_with_relevances_that_can_not_move_it_is_exact_cross_validation():
    X, y = noisy()
    _, rows = rows_on(X, y)
    kernel = ARD((0.2,) * 4)
    score = CrossValidation(rows, kernel, Lssvm(), Box(0.2, 0.2, (1e-12, 1e3)))
    for lam in (1e-3, 0.1):
        held = make_path(Problem(rows, kernel), Lssvm(), [lam]).exact()
        expected = np.mean((held.f[0, 0] - rows.Y[0]) ** 2)
        assert score(lam, 1.0) == pytest.approx(expected, rel=1e-9)


def test_the_search_keeps_its_budget_and_its_best():
    X, y = noisy()
    dataset, rows = rows_on(X, y)
    start = choose_start(dataset, rows, ARD(), Lssvm())
    learnt = flkl.learn_first_level(rows, rows, start, Lssvm(), 9)
    assert len(learnt.steps) == 9
    assert learnt.value == min(step.value for step in learnt.steps)
    chosen = min(learnt.steps, key=lambda step: step.value)
    assert (learnt.lam, learnt.mu) == (chosen.lam, chosen.mu)
    assert learnt.value <= learnt.steps[0].value


def test_the_number_of_threads_changes_nothing(use_threads):
    X, y = noisy()
    dataset, rows = rows_on(X, y)
    start = choose_start(dataset, rows, ARD(), Lssvm())
    results = []
    for count in (1, 2, 3):
        use_threads(count)
        results.append(flkl.learn_first_level(rows, rows, start, Lssvm(), 5))
    assert all(np.array_equal(each.theta, results[0].theta) for each in results)
    assert len({each.steps for each in results}) == 1


def test_the_penalty_begins_where_the_isotropic_kernel_is_at_rest():
    criterion, theta = criterion_on(ARD(), Lssvm()), np.full(4, 0.02)
    mu = flkl.balanced(criterion, theta, 0.01)
    slopes = criterion.slopes(theta, 0.01, mu)
    assert theta @ slopes.theta == pytest.approx(0, abs=1e-12)
    assert flkl.balanced(criterion, np.full(4, 50.0), 0.01) > 0


def test_the_isotropic_start_of_the_polynomial_takes_its_degree_from_there():
    X, y = noisy()
    dataset, rows = rows_on(X, y)
    start = choose_start(dataset, rows, ARDPolynomial(), Lssvm())
    assert isinstance(start.best.kernel, Polynomial)
    assert (start.kernel.degree, start.kernel.theta) == (start.best.kernel.degree, (start.best.kernel.gamma,) * 4)
    np.testing.assert_allclose(start.kernel(X), start.best.kernel(X), rtol=1e-10)


@pytest.mark.parametrize("broken", [np.linalg.LinAlgError("singular"), SelectionError("from where they begin")])
def test_a_pair_that_can_not_be_scored_is_passed_over(broken, monkeypatch):
    X, y = noisy()
    dataset, rows = rows_on(X, y)
    start, original = choose_start(dataset, rows, ARD(), Lssvm()), CrossValidation.__call__
    score = CrossValidation(rows, start.kernel, Lssvm(), start.box(rows, 0.0))

    def sometimes(self, lam, mu):
        if mu > 0.01:
            raise broken
        return original(self, lam, mu)

    monkeypatch.setattr(CrossValidation, "__call__", sometimes)
    assert all(trial.penalty <= 0.01 for trial in flkl.search(score, 1e-2, 5e-3, 6))
    with pytest.raises(SelectionError, match=f"failed for every lambda and mu; the first time: {broken}"):
        flkl.search(score, 1e-2, 1e3, 2)
