"""The sum of kernels with relevances, its weights learnt by the evidence."""

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

import twins.learning
from kernsel.data import from_arrays
from kernsel.folds.partition import Partition
from kernsel.kernels import Statistics, parse
from kernsel.learners import Krr, Lssvm
from kernsel.learning import profile, summed
from kernsel.learning.profile import learn_profile
from kernsel.learning.summed import LEAST, SIGMA, LearntSum, Objective, learn_sum, learn_wider, linear_kernel

TEXTS = ("ard", "ard(profile=exponential)", "ard-laplacian")


def alone(X, Y, s=None):
    """Rows, each in a fold of its own."""
    n = len(X)
    return Partition(X, Y, np.arange(n + 1), np.arange(n), Statistics(X), 0, np.ones(n) if s is None else s)


def rows_of(n=60, d=3, seed=0, rough=False, weights=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.abs(X[:, 0]) + np.sign(X[:, 1]) if rough else np.sin(X[:, 0]) + X[:, 1] ** 2 / 3
    y = y + 0.1 * rng.normal(size=n)
    return alone(X, (y - y.mean())[None] / y.std(), weights)


def profiles_of(rows, texts=TEXTS):
    return [learn_profile(rows, parse(text), Krr(), 1.0) for text in texts]


def dense(grams, Y, s, bias, v, ridge):
    """The restricted negative log evidence and the prior of the weights, by dense inverses and determinants."""
    H = sum(a * gram for a, gram in zip(v / v.sum(), grams, strict=True)) + np.diag(ridge / s)
    return twins.learning.evidence(H, Y, bias) + twins.learning.log_spread(v) / SIGMA**2


@settings(max_examples=15, deadline=None)
@given(
    st.integers(0, 99),
    st.sampled_from([0, 1]),
    st.lists(st.floats(-2, 2), min_size=3, max_size=3),
    st.floats(-5, 1),
)
def test_the_objective_is_the_evidence_and_the_prior_by_dense_algebra(seed, bias, logs, log_ridge):
    rng = np.random.default_rng(seed)
    X, Y, s = rng.normal(size=(14, 2)), rng.normal(size=(2, 14)), rng.uniform(0.5, 2.0, 14)
    kernels = [parse("gaussian(tau=1)"), parse("laplacian(sigma=2)"), parse("exponential(ell=1)")]
    objective = Objective(alone(X, Y, s), [kernel(X) for kernel in kernels], bias)
    x = np.append(logs, log_ridge)

    def twin(x):
        return dense(objective.grams, Y, s, bias, np.exp(x[:-1]), np.exp(x[-1])) / 14

    value, slopes = objective(x)
    assert value == pytest.approx(twin(x), rel=1e-9, abs=1e-9)
    steps = 1e-5 * np.eye(4)
    differences = [(twin(x + step) - twin(x - step)) / 2e-5 for step in steps]
    np.testing.assert_allclose(slopes, differences, atol=1e-7)


@pytest.mark.parametrize("learner", [Krr(), Lssvm()])
def test_weights_are_those_of_another_minimiser(learner):
    rows = rows_of(weights=np.linspace(0.5, 1.5, 60))
    profiles = profiles_of(rows)
    found = learn_sum(rows, profiles, learner)
    grams = [each.kernel(rows.X) for each in profiles]

    def twin(x):
        return dense(grams, rows.Y, rows.s, int(learner.bias), np.exp(x[:-1]), np.exp(x[-1]))

    start = np.append(np.zeros(3), np.log(np.mean([each.ridge for each in profiles])))
    least = min(np.log(each.ridge) for each in profiles)
    other = scipy.optimize.minimize(twin, start, bounds=[(-12, 12)] * 3 + [(least, 7)], options={"ftol": 1e-12})
    shares = np.exp(other.x[:-1]) / np.exp(other.x[:-1]).sum()
    kept = shares >= LEAST
    assert list(found.weights) == sorted(found.weights, reverse=True)
    by_profile = {id(each): weight for each, weight in zip(found.profiles, found.weights, strict=True)}
    weights = np.array([by_profile.get(id(each), 0.0) for each in profiles])
    # The descent ends where three steps have gained less than 1e-4 a row: so far the twin may be lower.
    if kept.all():
        assert twin(np.append(np.log(weights), np.log(found.ridge))) <= other.fun + 1e-3 * rows.n
    np.testing.assert_allclose(weights, np.where(kept, shares, 0.0) / shares[kept].sum(), atol=0.05)


def test_the_kernel_is_the_weighted_sum_and_its_relevances_are_shares():
    rows = rows_of(rough=True)
    found = learn_sum(rows, profiles_of(rows), Krr())
    assert len(found.profiles) > 1
    assert sum(found.weights) == pytest.approx(1.0)
    pairs = list(zip(found.weights, found.profiles, strict=True))
    np.testing.assert_allclose(found.kernel(rows.X), sum(w * each.kernel(rows.X) for w, each in pairs), rtol=1e-13)
    assert found.theta == tuple(theta for each in found.profiles for theta in each.theta)
    expected = sum(w * np.array(each.theta) / max(each.theta) for w, each in pairs)
    np.testing.assert_allclose(list(found.shares("abc").values()), expected)
    assert found.priors == (1.0,) * len(pairs)


def test_kernels_that_are_the_same_share_evenly():
    rows = rows_of()
    one = profiles_of(rows, ("ard",))[0]
    found = learn_sum(rows, [one, one, one], Krr())
    np.testing.assert_allclose(found.weights, 1 / 3, atol=1e-6)
    assert found.ridge == pytest.approx(one.ridge, rel=0.05)


def test_a_kernel_that_is_right_gets_nearly_all_and_what_weighs_nothing_is_left_out(monkeypatch):
    rows = rows_of(300, 2, seed=3)
    smooth, rough = profiles_of(rows, ("ard", "ard-laplacian"))
    found = learn_sum(rows, [smooth, rough], Krr())
    assert found.weights[0] > 0.9
    monkeypatch.setattr(summed, "LEAST", 0.2)
    alone_now = learn_sum(rows, [smooth, rough], Krr())
    assert alone_now.profiles == (smooth,)
    assert alone_now.weights == (1.0,)


def test_most_of_the_descent_is_on_a_part_and_its_end_is_that_of_all_rows(monkeypatch):
    rows = rows_of(500, 3, rough=True)
    profiles = profiles_of(rows)
    quick = learn_sum(rows, profiles, Krr())
    monkeypatch.setattr(profile, "PART", 500)
    whole = learn_sum(rows, profiles, Krr())
    assert [each.kernel.name for each in quick.profiles] == [each.kernel.name for each in whole.profiles]
    np.testing.assert_allclose(quick.weights, whole.weights, atol=0.05)


def test_anew_learns_relevances_and_weights_on_other_rows():
    rows = rows_of(80, rough=True)
    found = learn_sum(rows, profiles_of(rows), Krr())
    some = rows.taken(np.arange(50), np.arange(51))
    profiles = [each.again(some, Krr(), (each.sigma,)) for each in found.profiles]
    expected = learn_sum(some, profiles, Krr(), begun=found.weights).kernel
    np.testing.assert_array_equal(found.anew(some, Krr())(rows.X), expected(rows.X))


def test_a_data_set_of_two_targets_has_one_sum():
    X = rows_of().X
    data = from_arrays(X, np.column_stack([X[:, 0] ** 2, X[:, 1]]), standardize=True)
    rows = alone(data.X, data.Y)
    assert isinstance(learn_sum(rows, profiles_of(rows), Krr()), LearntSum)


def test_a_kernel_that_is_right_without_noise_is_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    y = X.sum(axis=1)
    rows = alone(X, ((y - y.mean()) / y.std())[None])
    smooth, rough = profiles_of(rows, ("ard", "ard(profile=matern32)"))
    found = learn_sum(rows, [rough, smooth], Krr())
    assert found.profiles[0] is smooth
    assert found.weights[0] > 0.9
    assert found.ridge < 100 * smooth.ridge


def plane(n=80, d=4, curved=0.0, seed=0):
    """Rows whose target is a plane with a little noise, and a sine of the first feature."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = X @ np.arange(1.0, d + 1) + curved * np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=n)
    return alone(X, (y - y.mean())[None] / y.std(), np.linspace(0.5, 1.5, n))


def test_the_linear_kernel_is_as_large_as_the_others():
    rows = plane()
    kernel = linear_kernel(rows)
    assert rows.s @ kernel.diag(rows.X) / rows.total == pytest.approx(1.0)
    np.testing.assert_allclose(kernel(rows.X), rows.X @ rows.X.T * kernel.factor, rtol=1e-13)
    assert linear_kernel(alone(np.zeros((5, 2)), np.zeros((1, 5)))) is None


def test_a_plane_is_learnt_by_the_linear_kernel_and_a_wiggle_by_the_others():
    rows = plane()
    found = learn_sum(rows, profiles_of(rows, ("ard", "ard-laplacian")), Krr(), linear_kernel(rows))
    assert found.straight > 0.5
    assert found.straight + sum(found.weights) == pytest.approx(1.0)
    expected = found.straight * found.linear(rows.X)
    expected += sum(w * each.kernel(rows.X) for w, each in zip(found.weights, found.profiles, strict=True))
    np.testing.assert_allclose(found.kernel(rows.X), expected, rtol=1e-12, atol=1e-12)
    doubled = found.kernel.times(2.0)  # a scale of features: the weight of the linear kernel stays
    np.testing.assert_allclose((doubled.parts[-1])(rows.X), found.straight * found.linear(rows.X), rtol=1e-12)
    assert len(found.shares("abcd")) == 4
    bent = rows_of(rough=True)
    rough = learn_sum(bent, profiles_of(bent), Krr(), linear_kernel(bent))
    assert rough.straight < 0.2


def test_the_weight_of_the_linear_kernel_is_learnt_again_with_the_others():
    rows = plane(curved=1.0)
    found = learn_sum(rows, profiles_of(rows, ("ard", "ard-laplacian")), Krr(), linear_kernel(rows))
    again = found.again(rows, Krr(), found.priors)
    assert again.linear == found.linear
    begun = (*found.weights, found.straight)
    expected = learn_sum(rows, again.profiles, Krr(), found.linear, begun)
    assert (again.straight, again.weights) == (expected.straight, expected.weights)


def test_a_wider_sum_has_the_kernels_as_they_are_and_others_learnt_on_the_rows():
    rows, others = rows_of(60), rows_of(60, seed=1)
    first, second, third = profiles_of(rows)
    apart = learn_sum(rows, [first, second], Krr(), linear_kernel(rows))
    more = learn_profile(others, third.kernel, Krr(), 1.0)
    found = learn_wider([more], rows, apart, Krr(), 0)
    again = learn_profile(rows, more.kernel, Krr(), 1.0)
    expected = learn_sum(rows, [*apart.profiles, again], Krr(), linear_kernel(rows))
    np.testing.assert_allclose(found.kernel(rows.X), expected.kernel(rows.X), rtol=1e-12)
    assert found.ridge == pytest.approx(expected.ridge)
    assert {each.kernel for each in found.profiles} <= {*(each.kernel for each in apart.profiles), again.kernel}
