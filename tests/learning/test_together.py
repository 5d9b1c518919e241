"""Relevances of a sum of kernels, learnt with its weights."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twins.learning
from kernsel.errors import SelectionError
from kernsel.folds.partition import Partition
from kernsel.kernels import Statistics, parse
from kernsel.learners import Krr, Lssvm
from kernsel.learning import better, together
from kernsel.learning.better import learn_if_better
from kernsel.learning.profile import learn_profile
from kernsel.learning.summed import SIGMA, learn_sum, linear_kernel
from kernsel.learning.together import FREE, LearntTogether, Objective, learn_together

TEXTS = ("ard", "ard-laplacian")


def alone(X, Y, s=None):
    """Rows, each in a fold of its own."""
    n = len(X)
    return Partition(X, Y, np.arange(n + 1), np.arange(n), Statistics(X), 0, np.ones(n) if s is None else s)


def waves_and_bends(n, seed=0, others=0, weights=None):
    """Rows whose target is narrow waves along one feature, a line and a bend: no kernel alone fits all of them well."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n + others, 3))
    y = np.sin(5 * X[:, 0]) + 2 * X[:, 1] + 2 * np.abs(X[:, 2]) + 0.05 * rng.normal(size=n + others)
    y = (y - y[:n].mean()) / y[:n].std()
    return alone(X[:n], y[None, :n].copy(), weights), X[n:], y[n:]


def sum_of(rows, learner=None):
    learner = learner or Krr()
    profiles = [learn_profile(rows, parse(text), learner, 1.0) for text in TEXTS]
    return learn_sum(rows, profiles, learner, linear_kernel(rows))


def blocks_of(rows):
    return np.array_split(np.random.default_rng(0).permutation(rows.n), 3)


def outputs(learnt, rows, X):
    a = np.linalg.solve(learnt.kernel(rows.X) + np.diag(learnt.ridge / rows.s), rows.Y[0])
    return learnt.kernel(X, rows.X) @ a


def dense(X, Y, s, bias, texts, about, x, straight):
    """The restricted negative log evidence and the priors, by dense inverses and determinants."""
    n, d = X.shape
    logs, v = x[: 2 * d], np.exp(x[2 * d : -1])
    kernels = [parse(text).with_theta(tuple(np.exp(logs[i * d : i * d + d]))) for i, text in enumerate(texts)]
    grams = [*(kernel(X) for kernel in kernels), straight]
    H = sum(a * gram for a, gram in zip(v / v.sum(), grams, strict=True)) + np.diag(np.exp(x[-1]) / s)
    priors = twins.learning.log_spread(v) / SIGMA**2 + ((logs - about) ** 2).sum() / (2 * FREE**2)
    return (twins.learning.evidence(H, Y, bias) + priors) / n


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 99), st.sampled_from([0, 1]), st.floats(-5, 1))
def test_the_objective_is_the_evidence_and_the_priors_by_dense_algebra(seed, bias, log_ridge):
    rng = np.random.default_rng(seed)
    X, Y, s = rng.normal(size=(14, 2)), rng.normal(size=(2, 14)), rng.uniform(0.5, 2.0, 14)
    about, straight = rng.normal(size=4) - 1.0, X @ X.T
    kernels = [parse(text).with_theta((1.0, 1.0)) for text in TEXTS]
    objective = Objective(alone(X, Y, s), kernels, np.split(about, 2), [straight], bias)
    x = np.concatenate([about + 0.5 * rng.normal(size=4), rng.normal(size=3), [log_ridge]])

    def twin(x):
        return dense(X, Y, s, bias, TEXTS, about, x, straight)

    value, slopes = objective(x)
    assert value == pytest.approx(twin(x), rel=1e-9, abs=1e-9)
    steps = 1e-5 * np.eye(x.size)
    differences = [(twin(x + step) - twin(x - step)) / 2e-5 for step in steps]
    np.testing.assert_allclose(slopes, differences, atol=1e-7)


@pytest.mark.parametrize("learner", [Krr(), Lssvm()])
def test_the_end_is_better_than_the_beginning_and_the_kernels_keep_their_order(learner):
    rows, _, _ = waves_and_bends(90, weights=np.linspace(0.5, 1.5, 90))
    apart = sum_of(rows, learner)
    found = learn_together(rows, apart, learner)
    assert found.apart is apart
    assert [each.kernel.name for each in found.profiles] == [each.kernel.name for each in apart.profiles]
    assert sum(found.weights) + found.straight == pytest.approx(1.0)
    straight = apart.linear(rows.X)

    def value(learnt):
        about = [np.log(each.theta) for each in apart.profiles]
        objective = Objective(rows, [each.kernel for each in apart.profiles], about, [straight], int(learner.bias))
        logs = np.log([*learnt.theta, *learnt.weights, learnt.straight, learnt.ridge])
        return objective(logs)[0]

    assert value(found) < value(apart) - 0.01
    expected = found.straight * straight
    expected += sum(w * each.kernel(rows.X) for w, each in zip(found.weights, found.profiles, strict=True))
    np.testing.assert_allclose(found.kernel(rows.X), expected, rtol=1e-12, atol=1e-12)
    assert found.learnt_by == f"{apart.learnt_by}, then together"


def test_a_sum_without_a_linear_part_has_none_afterwards():
    rows, _, _ = waves_and_bends(60)
    apart = learn_sum(rows, [learn_profile(rows, parse(text), Krr(), 1.0) for text in TEXTS], Krr())
    found = learn_together(rows, apart, Krr())
    assert (found.linear, found.straight) == (None, 0.0)
    assert sum(found.weights) == pytest.approx(1.0)


def test_kernels_that_share_the_features_are_better_on_rows_elsewhere_and_taken():
    rows, X, y = waves_and_bends(90, others=500)
    apart = sum_of(rows)
    found = learn_if_better(rows, apart, Krr(), blocks_of(rows), learn_together)
    assert isinstance(found, LearntTogether)
    errors = [np.mean((outputs(learnt, rows, X) - y) ** 2) for learnt in (found, apart)]
    assert errors[0] < 0.9 * errors[1]


def test_what_noise_alone_gains_is_not_taken():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 4))
    y = X[:, 0] + 2.0 * rng.normal(size=60)
    rows = alone(X, ((y - y.mean()) / y.std())[None])
    apart = sum_of(rows)
    assert learn_if_better(rows, apart, Krr(), blocks_of(rows), learn_together) is apart


def test_unseen_rows_decide_by_losses_of_both_learnt_without_them(monkeypatch):
    rows, _, _ = waves_and_bends(90)
    apart, seen = sum_of(rows), []

    def kept(own, theirs, s, errors=1.0):
        seen.append((own, theirs, s))
        return False

    monkeypatch.setattr(better, "is_less", kept)
    assert learn_if_better(rows, apart, Krr(), blocks_of(rows), learn_together) is apart
    ((own, theirs, s),) = seen
    held = np.sort(blocks_of(rows)[0])
    others = np.setdiff1d(np.arange(90), held)
    some = rows.taken(others, np.arange(others.size + 1))
    anew = apart.again(some, Krr(), apart.priors)
    for losses, learnt in ((own, learn_together(some, anew, Krr())), (theirs, anew)):
        F = np.clip(outputs(learnt, some, rows.X[held]), some.Y.min(), some.Y.max())
        np.testing.assert_allclose(losses[: held.size], Krr().loss.value(rows.Y[:, held], F[None])[0], rtol=1e-6)
    np.testing.assert_array_equal(s, np.ones(90))


def test_without_a_fit_the_sum_stays(monkeypatch):
    rows, _, _ = waves_and_bends(60)
    apart = sum_of(rows)

    def fail(*_, **__):
        raise SelectionError("no value")

    monkeypatch.setattr(together, "descend", fail)
    assert learn_if_better(rows, apart, Krr(), blocks_of(rows), learn_together) is apart


def test_anew_learns_kernel_by_kernel_and_then_together_on_other_rows():
    rows, _, _ = waves_and_bends(90)
    found = learn_together(rows, sum_of(rows), Krr())
    some = rows.taken(np.arange(50), np.arange(51))
    apart = found.apart.again(some, Krr(), found.priors)
    expected = learn_together(some, apart, Krr()).kernel
    np.testing.assert_array_equal(found.anew(some, Krr())(rows.X), expected(rows.X))
