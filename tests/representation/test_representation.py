"""Low-rank representations: laws of every way to choose landmarks, and the rule by which they stop."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tables
from kernsel.errors import OptionError
from kernsel.kernels import Gaussian
from kernsel.learners import Krr, Svm, Svr
from kernsel.parts import read_rank, read_search
from kernsel.paths import make_path
from kernsel.representation.problem import Problem
from kernsel.representation.ranks import METHODS, ROOM, Full, LowRank

EPS = np.finfo(float).eps


def points(n, seed=0):
    """Most of them in a cloud, one in twenty in ten small groups, far away."""
    X = np.random.default_rng(seed).normal(size=(n, 3))
    X[::20] = 20 * (1 + np.arange(len(X[::20])) % 10)[:, None] + 0.1 * X[::20]
    return X


@given(
    st.sampled_from(list(METHODS)), st.integers(0, 1000), st.integers(1, 80), st.floats(-6, 6),
    st.sampled_from([0.0, 1e-8, 1e-3, 0.1, 0.9]),
)  # fmt: skip
@settings(deadline=None, max_examples=80)
def test_features_leave_a_positive_semidefinite_residual_of_the_trace_asked_for(method, seed, largest, tau, tol):
    X, kernel, rank = points(70, seed), Gaussian(2.0**tau), LowRank(largest, tol, method)
    Z, landmarks, T, residual = rank.factor(kernel, X, seed)
    K = kernel(X, X)
    r = len(landmarks)
    assert Z.shape == (70, r)
    assert r <= largest
    assert np.array_equal(T, np.triu(T))
    np.testing.assert_allclose(Z, kernel(X, landmarks) @ T, rtol=0, atol=1e3 * EPS * (1 + np.linalg.norm(T, 2)))
    assert np.linalg.eigvalsh(K - Z @ Z.T).min() > -1e3 * 70 * EPS
    np.testing.assert_allclose(residual, 70 - np.vdot(Z, Z), rtol=0, atol=1e-10)
    if tol:
        left = 70 - np.cumsum((Z**2).sum(axis=0))  # by the first landmarks
        every = LowRank(largest, 0.0, method).factor(kernel, X, seed).residual
        assert residual <= 70 * tol + 1e-10 or (residual <= every + 1e-10 and method != "rpcholesky") or r == largest
        assert (left[:-1] > 70 * tol - 1e-10).all()


def left(method, X, kernel, landmarks):
    """Mean over seeds of the trace that is left."""
    return np.mean([LowRank(landmarks, 0.0, method).factor(kernel, X, seed).residual for seed in range(4)])


def spectral(X, kernel, rank):
    """What the spectrum leaves, which is least."""
    return np.linalg.eigvalsh(kernel(X, X))[:-rank].sum()


@pytest.mark.parametrize("method", METHODS)
def test_in_a_cloud_all_leave_less_than_the_spectrum_at_half_the_rank(method):
    X, kernel = np.random.default_rng(0).normal(size=(300, 3)), Gaussian(4.0)
    assert spectral(X, kernel, 50) < left(method, X, kernel, 50) < spectral(X, kernel, 25)


def test_small_groups_far_away_are_found_by_what_is_unexplained_and_by_leverage():
    X, kernel = points(400), Gaussian(10.0)
    uniform = left("uniform", X, kernel, 60)
    assert left("rpcholesky", X, kernel, 60) < spectral(X, kernel, 30)
    assert left("leverage", X, kernel, 60) < uniform / 2
    assert uniform > 10 * spectral(X, kernel, 30)


@pytest.mark.parametrize(
    ("n", "smooth", "square"),
    [(2001, 500, 500), (8192, 819, 819), (16_000, 1000, 1600), (20_640, 1000, 1625), (40_000, 1000, 1000)],
)
def test_the_automatic_rank(n, smooth, square):
    assert read_rank(None, n, learner=Svm(bias=False)) == LowRank(smooth)
    assert read_rank(None, n, learner=Svr(epsilon=None)) == LowRank(smooth)
    assert read_rank(None, n, learner=Krr()) == LowRank(square)
    assert 8 * n * square <= ROOM.features or square == 1000


def test_texts_of_a_rank():
    assert read_rank("tol:0.01", 5000) == LowRank(1000, 0.01)
    assert read_rank("tol:1e-3:3000", 5000, "kmeans") == LowRank(3000, 1e-3, "kmeans")
    assert read_rank("tol:0.01", 300) == LowRank(300, 0.01)
    assert read_rank(0.1, 300, "leverage") == LowRank(30, 0.0, "leverage")
    assert read_rank(None, 300) == Full()
    rank = read_rank("tol:0.01", 5000)
    assert read_search("halving", 5000, 1, rank, False).ranks(5000, rank) == (50, 100, 200, 400)


@pytest.mark.parametrize(
    "text", ["tol:", "tol:0", "tol:1", "tol:nan", "tol:x", "tol:0.1:0", "tol:0.1:x", "tol:0.1:2:3"]
)
def test_a_tolerance_that_cannot_be_read(text):
    with pytest.raises(OptionError, match="write tol:SHARE or tol:SHARE:LARGEST"):
        read_rank(text, 100)


def test_features_that_do_not_fit_are_refused(monkeypatch):
    problem = Problem(tables.make_rows(), Gaussian(1.0), 8)
    monkeypatch.setattr("os.sysconf", lambda name: 30)
    with pytest.raises(OptionError, match="features of 30 rows at rank 8 needs about .*give a lower rank"):
        _ = problem.held.factor


def test_landmarks_that_cannot_be_had():
    with pytest.raises(OptionError, match="'corners' is unknown: use rpcholesky, uniform, leverage, kmeans"):
        read_rank(50, 100, "corners")
    for rank in (None, "full"):
        with pytest.raises(OptionError, match="the whole Gram matrix of 100 rows needs none; give a rank"):
            read_rank(rank, 100, "kmeans")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("learner", [Krr(), Svm(bias=False)], ids=["krr", "svm"])
def test_the_model_has_the_outputs_of_the_fit(learner, method):
    """Whatever the landmarks are, rows or not."""
    rows = tables.make_rows(real=False)
    path = make_path(Problem(rows, Gaussian(1.0), LowRank(8, 0.0, method)), learner, [0.1, 0.01])
    outputs = (
        path.coefficients(1) @ path.problem.kernel(path.representation.points, rows.X) + path.intercepts(1)[:, None]
    )
    np.testing.assert_allclose(outputs, path.fits.f[:, 1], rtol=0, atol=1e-10)


def test_a_selection_with_a_tolerance_says_what_it_took():
    X, y = tables.waves(200)
    options = {"grid": {"tau": [1.0, 10.0], "lambda": [1e-3]}, "folds": 5, "extend": False}
    result = tables.choose(X, y, rank="tol:0.05", landmarks="leverage", **options)
    assert result.options["rank"] == 200
    assert result.options["tol"] == 0.05
    assert result.options["landmarks"] == "leverage"
    assert 2 < result.data["rank"] < 100
    assert f"rank {result.data['rank']} of n = 200 (landmarks drawn by their" in result.data["representation"]
    assert not any("landmarks" in text for text in result.warnings)
    short = tables.choose(X, y, rank="tol:0.001:5", **options)
    assert short.data["rank"] == 5
    assert any("allow more by --rank tol:0.001:10" in text for text in short.warnings)


@pytest.mark.parametrize("landmarks", ["uniform", "kmeans"])
def test_halving_ends_at_the_landmarks_asked_for(landmarks):
    X, y = tables.waves(250)
    grid = {"tau": np.geomspace(0.3, 10.0, 6), "lambda": np.geomspace(1e-4, 1e-1, 8)}
    result = tables.choose(X, y, rank=120, landmarks=landmarks, search="halving", grid=grid, folds=5, extend=False)
    assert METHODS[landmarks] in result.data["representation"]
    assert any(candidate.rank == 50 for candidate in result.candidates)
    assert result.best.rank is None
