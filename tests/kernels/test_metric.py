"""The kernel with a metric that turns axes: values, gradients, and the ways in and out of text and files."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import kernsel
import tables
from kernsel import kernels
from kernsel.errors import OptionError
from kernsel.kernels import ARD, Metric, Statistics
from kernsel.protocols.kernels import SupportsRelevances
from twins.learning import PROFILES

seeds = st.integers(0, 2**32 - 1)
profiles = st.sampled_from(sorted(PROFILES))


def table(d, seed=0, n=23):
    return np.random.default_rng(seed).normal(size=(n, d))


def slow(L, profile, X, Z):
    """One pair after another."""
    return np.array([[PROFILES[profile]((x - z) @ L @ L.T @ (x - z)) for z in Z] for x in X])


@given(st.integers(1, 5), st.integers(1, 5), profiles, seeds)
def test_equals_the_metric_of_each_pair(d, rank, profile, seed):
    L, X, Z = table(rank, seed, d), table(d, seed + 1), table(d, seed + 2, 7)
    kernel = Metric.of(L, profile)
    np.testing.assert_allclose(kernel(X, Z), slow(L, profile, X, Z), rtol=1e-9, atol=1e-13)
    K = kernel(X)
    assert np.array_equal(K, K.T)
    np.testing.assert_allclose(kernel.evaluate(Statistics(X)), K, rtol=1e-14)
    np.testing.assert_array_equal(kernel.diag(X), np.diag(K))
    np.testing.assert_allclose(kernel(csr_array(X)), K, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel.relevances, np.diag(L @ L.T), rtol=1e-12)


@given(st.lists(st.floats(1e-4, 10.0), min_size=1, max_size=5), profiles, seeds)
def test_a_diagonal_metric_is_ard(theta, profile, seed):
    X, ard = table(len(theta), seed), ARD(tuple(theta), profile)
    kernel = Metric.of(np.diag(np.sqrt(theta)), profile)
    np.testing.assert_allclose(kernel(X), ard(X), rtol=1e-11)
    assert kernel.smoothness == ard.smoothness
    np.testing.assert_allclose(sorted(kernel.scales), sorted(theta), rtol=1e-12)
    np.testing.assert_allclose(kernel.times(3.0)(X), ard.times(3.0)(X), rtol=1e-11)
    W = table(23, seed + 1)
    along = 2 * np.sqrt(theta) * ard.theta_vjp(X, W)  # theta = L^2
    scale = 23 * np.abs(along).max() + 1.0  # sums of hundreds of terms of both signs
    np.testing.assert_allclose(np.diag(kernel.metric_vjp(X, W)), along, rtol=1e-8, atol=1e-11 * scale)


@given(st.integers(2, 5), profiles, seeds)
def test_nothing_changes_where_rows_and_metric_turn_together(d, profile, seed):
    L, X, a = table(3, seed, d), table(d, seed + 1), table(1, seed + 2)[:, 0]
    Q = np.linalg.qr(table(d, seed + 3, d))[0]
    plain, turned = Metric.of(L, profile), Metric.of(Q.T @ L, profile)
    np.testing.assert_allclose(turned(X @ Q), plain(X), rtol=1e-10, atol=1e-14)
    expected = plain.function_gradients(X, a)
    scale = 1e-10 * np.abs(expected).max()
    np.testing.assert_allclose(turned.function_gradients(X @ Q, a) @ Q.T, expected, rtol=1e-8, atol=scale)


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_gradients_are_the_differences(profile):
    L, X, Z = table(2, 1, 4), table(4, 2, 9), table(4, 3, 14)
    kernel, a, W, step = Metric.of(L, profile), table(1, 4, 14)[:, 0], table(14, 5, 9), 1e-6
    along = [(kernel(X + move, Z) @ a - kernel(X - move, Z) @ a) / (2 * step) for move in step * np.eye(4)]
    for K in (None, kernel(X, Z)):
        np.testing.assert_allclose(kernel.function_gradients(X, a, Z, K), np.transpose(along), rtol=1e-5, atol=1e-8)
    for move in step * np.eye(8).reshape(8, 4, 2):
        slope = np.sum(W * (Metric.of(L + move, profile)(X, Z) - Metric.of(L - move, profile)(X, Z))) / (2 * step)
        assert kernel.metric_vjp(X, W, None, Z)[move > 0] == pytest.approx(slope, rel=1e-5, abs=1e-8)
    together, among = np.vstack([X, Z]), np.zeros((23, 23))
    among[:9, 9:] = W
    np.testing.assert_allclose(
        kernel.metric_vjp(together, among), kernel.metric_vjp(X, W, None, Z), rtol=1e-9, atol=1e-12
    )


def test_gradients_keep_their_digits_far_from_the_origin():
    kernel, X, a, W = Metric.of(table(2, 1, 3)), table(3), table(1, 2)[:, 0], table(23, 3)
    for near, far in (
        (kernel.function_gradients(X, a), kernel.function_gradients(X + 2.0**20, a)),
        (kernel.metric_vjp(X, W), kernel.metric_vjp(X + 2.0**20, W)),
    ):
        np.testing.assert_allclose(near, far, rtol=1e-6, atol=1e-7)  # the shift has cost X 20 binary digits already


def test_at_its_own_points_a_rough_function_is_flat():
    X = np.repeat(table(3, n=1), 4, axis=0)
    kernel = Metric.of(np.eye(3), "exponential")
    np.testing.assert_array_equal(kernel.function_gradients(X, np.ones(4)), np.zeros((4, 3)))


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_text_and_description_lead_back(profile):
    kernel = Metric.of(1e-7 * table(2, 1, 3), profile)
    assert kernels.parse(str(kernel)) == kernel
    assert kernels.from_spec(json.loads(json.dumps(kernel.spec()))) == kernel
    assert hash(kernels.parse(str(kernel))) == hash(kernel)
    assert ("profile" in str(kernel)) == (profile != "gaussian")
    assert len(kernels.short(kernel)) < 120


def test_models_hold_it(tmp_path):
    X, y = tables.waves()
    kernel = Metric.of([[0.5, -0.2], [0.1, 0.7]], "matern32")
    result = tables.choose(X, y, kernel=kernel, grid={"lambda": [1e-3, 1e-2]})
    assert result.best.kernel == kernel
    result.model.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(kernsel.load(tmp_path / "model.npz").predict(X), result.model.predict(X))
    json.loads(result.to_json())


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({"L": (1.0, np.nan), "rank": 1}, "L must be finite numbers"),
        ({"L": "wide", "rank": 1}, "L must be finite numbers"),
        ({"L": (), "rank": 1}, "L must be finite numbers"),
        ({"L": (1.0, 2.0, 3.0), "rank": 2}, "3 entries, which are no rows of rank 2"),
        ({"L": (1.0,), "rank": 0}, "rank must be a finite number greater than 0"),
        ({"L": (1.0,), "rank": 1, "profile": "matern"}, "profile must be one of"),
    ],
)
def test_bad_values_are_refused(values, match):
    with pytest.raises(OptionError, match=match):
        Metric(**values)


def test_what_is_missing_is_said():
    with pytest.raises(OptionError, match="kernel auto learns a metric"):
        Metric()(table(2))
    with pytest.raises(OptionError, match="kernel auto learns a metric"):
        tables.choose(*tables.waves(), kernel="metric")
    with pytest.raises(OptionError, match="rows for 2 features, and the rows have 3"):
        Metric.of(np.eye(2))(table(3))
    with pytest.raises(OptionError, match="d x rank"):
        Metric.of([1.0, 2.0])


def test_it_has_no_relevances_to_learn():
    assert not isinstance(Metric.of(np.eye(2)), SupportsRelevances)
    assert Metric().free == ("L", "rank")
