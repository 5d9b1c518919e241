"""Low-rank features against dense linear algebra."""

import numpy as np
import pytest

from kernsel.numerics import lowrank
from kernsel.numerics.landmarks import uniform_landmarks

EPS = np.finfo(float).eps


def gaussian(n, tau, d=3, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, d))
    S = ((X[:, None] - X[None]) ** 2).sum(-1)
    return np.exp(-S / (2 * tau))


def cholesky(K, rank, **options):
    return lowrank.pivoted_cholesky(lambda i: K[:, i], np.diag(K), rank, **{"seed": 0, **options})


@pytest.mark.parametrize("block", [None, 1, 7, 100])
def test_cholesky_is_the_nystrom_approximation_of_its_landmarks(block):
    K = gaussian(150, 1.0)
    Z, landmarks, T, residual = cholesky(K, 30, block=block)
    assert Z.shape == (150, 30)
    assert len(set(landmarks)) == 30
    C = K[:, landmarks]
    np.testing.assert_allclose(C @ T, Z, atol=1e-10)
    np.testing.assert_allclose(Z @ Z.T, C @ np.linalg.solve(C[landmarks], C.T), atol=1e-9)
    np.testing.assert_allclose(residual, np.trace(K - Z @ Z.T), rtol=1e-10)
    assert np.array_equal(T, np.triu(T))


def test_cholesky_is_close_to_the_best_approximation_on_average():
    K = gaussian(150, 4.0)
    best = np.linalg.eigvalsh(K)[:-20].sum()
    residuals = [cholesky(K, 40, seed=seed)[3] for seed in range(10)]
    assert np.mean(residuals) < 2 * best  # theorem 1 of the paper asks for more landmarks than these 40


@pytest.mark.parametrize("block", [None, 1])
def test_cholesky_finds_the_rank(block):
    A = np.random.default_rng(0).normal(size=(120, 9))
    K = A @ A.T
    Z, landmarks, T, residual = cholesky(K, 50, block=block)
    assert Z.shape == (120, 9)
    assert landmarks.shape == (9,)
    assert T.shape == (9, 9)
    assert residual == 0
    np.testing.assert_allclose(Z @ Z.T, K, atol=1e-10)


def test_cholesky_of_repeated_points():
    K = np.kron(gaussian(5, 1.0), np.ones((10, 10)))
    Z, landmarks, _, _ = cholesky(K, 50, block=20)
    assert Z.shape == (50, 5)
    assert len(set(landmarks // 10)) == 5
    np.testing.assert_allclose(Z @ Z.T, K, atol=1e-12)


def test_cholesky_of_full_rank_reproduces_the_matrix():
    K = gaussian(60, 0.1)
    Z, _, _, residual = cholesky(K, 1000)
    assert Z.shape == (60, 60)
    assert residual == 0
    np.testing.assert_allclose(Z @ Z.T, K, atol=1e-12)


def test_cholesky_stops_at_the_tolerance():
    K = gaussian(150, 4.0)
    Z, _, _, residual = cholesky(K, 150, tol=0.01, block=1)
    assert Z.shape[1] < 60
    assert residual <= 0.01 * 150
    assert cholesky(K, Z.shape[1] - 1, block=1)[3] > 0.01 * 150


def test_cholesky_evaluates_few_columns():
    K, asked = gaussian(200, 1.0), []

    def columns(indices):
        asked.extend(indices)
        return K[:, indices]

    lowrank.pivoted_cholesky(columns, np.diag(K), 50, 0)
    assert len(asked) == 50


def test_cholesky_is_repeatable_and_depends_on_the_seed():
    K = gaussian(100, 1.0)
    first, again, other = (cholesky(K, 20, seed=seed)[1] for seed in (3, 3, 4))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_cholesky_of_zero():
    Z, landmarks, T, residual = cholesky(np.zeros((4, 4)), 3)
    assert (Z.shape, landmarks.shape, T.shape, residual) == ((4, 0), (0,), (0, 0), 0.0)


def test_nystrom_factor_equals_the_pseudo_inverse():
    K = gaussian(100, 0.5)
    landmarks = uniform_landmarks(100, 15, 0)
    C, W = K[:, landmarks], K[np.ix_(landmarks, landmarks)]
    Z, T, r = lowrank.nystrom_factor(C, W)
    assert r == 15
    assert np.array_equal(Z, C @ T)
    np.testing.assert_allclose(Z @ Z.T, C @ np.linalg.pinv(W, hermitian=True) @ C.T, atol=1e-10)
    np.testing.assert_allclose(T.T @ W @ T, np.eye(15), atol=1e-9)


def test_nystrom_factor_drops_what_is_rounding():
    A = np.random.default_rng(0).normal(size=(100, 4))
    K = A @ A.T
    landmarks = np.r_[0:20, 0:5]
    Z, T, r = lowrank.nystrom_factor(K[:, landmarks], K[np.ix_(landmarks, landmarks)])
    assert r == 4
    assert T.shape == (25, 4)
    np.testing.assert_allclose(Z @ Z.T, K, atol=1e-10)


def test_nystrom_factor_of_zero():
    Z, T, r = lowrank.nystrom_factor(np.zeros((6, 3)), np.zeros((3, 3)))
    assert (Z.shape, T.shape, r) == ((6, 0), (3, 0), 0)


@pytest.mark.parametrize("tau", [1e-3, 1.0, 1e4])
def test_the_factor_of_given_landmarks_is_the_nystrom_approximation(tau):
    K, chosen = gaussian(80, tau), np.arange(5, 45, 2)
    C = K[:, chosen]
    Z, kept, T, residual = lowrank.landmark_factor(C, C[chosen], np.trace(K))
    np.testing.assert_allclose(residual, np.trace(K - Z @ Z.T), atol=1e-10)
    rounding = kept.size * EPS * (abs(C[:, kept]) @ abs(T)).max()  # of a sum of terms that cancel, in any order
    np.testing.assert_allclose(Z, C[:, kept] @ T, rtol=0, atol=rounding)
    # what is made of the landmarks' columns and exact in them is the Nystrom approximation
    np.testing.assert_allclose(Z @ Z[chosen].T, C, atol=1e-7)
    np.testing.assert_allclose(Z[chosen] @ Z[chosen].T, C[chosen], atol=100 * 80 * EPS)
    assert np.linalg.eigvalsh(K - Z @ Z.T).min() > -100 * 80 * EPS


def test_landmarks_that_coincide_are_used_once():
    K = gaussian(30, 1.0)[:, :30]
    chosen = np.array([3, 7, 3, 11])
    Z, kept, _, _ = lowrank.landmark_factor(K[:, chosen], K[np.ix_(chosen, chosen)], 30.0)
    assert sorted(chosen[kept].tolist()) == [3, 7, 11]
    assert Z.shape == (30, 3)
