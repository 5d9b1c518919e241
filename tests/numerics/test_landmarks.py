"""Landmarks drawn uniformly, by ridge leverage scores, and by k-means."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from kernsel.kernels import Gaussian
from kernsel.numerics import landmarks


def points(n=120, seed=0, d=3):
    return np.random.default_rng(seed).normal(size=(n, d))


def test_uniform_landmarks():
    found = landmarks.uniform_landmarks(100, 20, 0)
    assert np.array_equal(found, np.unique(found))
    assert len(found) == 20
    assert found.min() >= 0
    assert found.max() < 100
    assert np.array_equal(found, landmarks.uniform_landmarks(100, 20, 0))
    assert np.array_equal(landmarks.uniform_landmarks(5, 20, 0), np.arange(5))


@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.floats(-3, 3), st.floats(-6, 2))
@settings(deadline=None, max_examples=40)
def test_leverages_from_a_sample_are_upper_bounds_and_from_all_points_exact(seed, count, tau, ridge):
    K, ridge = Gaussian(2.0**tau)(*[points(60, seed % 1000)] * 2), 10.0**ridge
    exact = np.diag(np.linalg.solve(K + ridge * np.eye(60), K))
    S = np.random.default_rng(seed).choice(60, count, replace=False)
    found = landmarks.ridge_leverages(K[:, S], K[np.ix_(S, S)], np.diag(K), ridge)
    rounding = 1e-12 / ridge  # of differences of numbers of the size 1, divided by the ridge
    assert (found >= exact - rounding).all()
    every = landmarks.ridge_leverages(K, K, np.diag(K), ridge)
    np.testing.assert_allclose(every, exact, rtol=0, atol=rounding)


def test_leverage_finds_what_is_rare():
    """One point in a hundred lies far from all others, in a place of its own: those matter more than the rest."""
    X = np.random.default_rng(0).normal(size=(1000, 2))
    X[::100] = 50 * np.arange(1, 11)[:, None]
    kernel = Gaussian(10.0)
    drawn = [landmarks.leverage_landmarks(kernel, X, np.ones(1000), 80, seed) for seed in range(5)]
    assert all(len(each) == 80 == len(set(each)) for each in drawn)
    assert np.mean([(each % 100 == 0).sum() for each in drawn]) > 8  # uniformly 0.8
    assert np.array_equal(drawn[3], landmarks.leverage_landmarks(kernel, X, np.ones(1000), 80, 3))


@pytest.mark.parametrize("count", [1, 2, 50, 60, 100])
def test_any_number_of_landmarks_by_leverage(count):
    X = points(60)
    found = landmarks.leverage_landmarks(Gaussian(1.0), X, np.ones(60), count, 0)
    assert np.array_equal(found, np.unique(found))
    assert len(found) == min(count, 60)


def test_leverages_of_nothing_are_drawn_uniformly():
    found = landmarks.leverage_landmarks(lambda A, B: np.zeros((len(A), len(B))), points(60), np.zeros(60), 10, 0)
    assert len(set(found)) == 10


@pytest.mark.parametrize("n", [300, landmarks.BLOCK + 7], ids=["one block", "two blocks"])
def test_centres_are_those_of_scikit_learn(n):
    """From the same points, with as many steps; blocks change nothing."""
    X = points(n)
    start = X[landmarks.uniform_landmarks(n, 12, 5)]
    expected = KMeans(12, init=start, n_init=1, max_iter=landmarks.LLOYD_STEPS, tol=0).fit(X).cluster_centers_
    np.testing.assert_allclose(landmarks.kmeans_centres(X, 12, 5), expected, rtol=0, atol=1e-12)


def test_a_centre_without_points_stays():
    X = np.repeat(points(3), 10, axis=0)
    centres = landmarks.kmeans_centres(X, 20, 0)
    assert centres.shape == (20, 3)
    assert np.isin(centres.round(9), X.round(9)).all()
    np.testing.assert_allclose(landmarks.kmeans_centres(X, 50, 0), X, rtol=0, atol=1e-15)
