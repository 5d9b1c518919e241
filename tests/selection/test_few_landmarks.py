"""Landmarks that stand for the whole kernel: how far their fit may be from it, and when a selection ends with them."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tolerances
from kernsel.data import from_arrays
from kernsel.kernels import parse
from kernsel.selection import few_landmarks, large, limits
from kernsel.selection.few_landmarks import NEAR, count_needed, share_left
from kernsel.selection.plan import Plan
from kernsel.system.memory import limited_memory

N = 900
LOW = limits.Sizes(full=200, few=60, scored=10, finite=2)


def smooth(n=N, seed=0, classes=False):
    """A table that a wide, smooth kernel fits."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = X[:, 0] + 0.3 * X[:, 1] ** 2 + 0.5 * rng.normal(size=n)
    return X, np.where(y > y.mean(), "up", "down") if classes else 3 * y + 5


def nystrom(kernel, X, landmarks):
    """The part of the Gram matrix that landmarks represent, by a pseudoinverse."""
    C = kernel(X, landmarks)
    return C @ np.linalg.pinv(kernel(landmarks), rcond=1e-12, hermitian=True) @ C.T


@given(
    seed=st.integers(0, 1000),
    m=st.integers(1, 20),
    ridge=st.floats(1e-3, 10.0),
    text=st.sampled_from(["gaussian(tau=3)", "exponential(ell=2)", "polynomial(degree=2, gamma=0.5)"]),
    weighted=st.booleans(),
)
def test_fits_differ_by_no_more_than_the_share_of_the_ridge_times_the_residuals(seed, m, ridge, text, weighted):
    rng = np.random.default_rng(seed)
    X, y, kernel = rng.normal(size=(20, 3)), rng.normal(size=20), parse(text)
    root = np.sqrt(rng.uniform(0.1, 3.0, size=20)) if weighted else np.ones(20)
    K, L = (root[:, None] * A * root for A in (kernel(X), nystrom(kernel, X, X[:m])))
    f, g = (A @ np.linalg.solve(A + ridge * np.eye(20), root * y) for A in (K, L))
    data = from_arrays(X, y, standardize=False, weights=root**2 if weighted else None)
    share = share_left(kernel, data, X[:m], ridge)
    rounding = 1e-9 * (1 + np.trace(K) / ridge)  # of a pseudoinverse that drops a share of 1e-12
    assert np.linalg.norm(f - g) <= (share + rounding) * np.linalg.norm(root * y - g)


def test_the_share_is_that_of_the_dense_matrices():
    X, y = smooth(50)
    kernel = parse("exponential(ell=1)")
    expected = np.trace(kernel(X) - nystrom(kernel, X, X[:20])) / 0.3
    data = from_arrays(X, y, standardize=False)
    assert share_left(kernel, data, X[:20], 0.3) == pytest.approx(expected, rel=tolerances.FITTED)
    assert share_left(kernel, data, X, 0.3) < tolerances.FITTED  # every row is a landmark


def test_the_share_of_a_small_ridge_is_not_that_of_rounding_errors():
    data, kernel = from_arrays(*smooth(), standardize=False), parse("gaussian(tau=20)")
    found = few_landmarks.LowRank(44).factor(kernel, data.X, 0)
    assert 0.0 < found.residual < 1e-9 * N  # a jitter of the landmarks' matrix leaves some 1e-12 a row
    assert share_left(kernel, data, found.points, 1e-6) == pytest.approx(found.residual / 1e-6, rel=0.02)


def test_landmarks_of_an_indefinite_kernel_stand_for_nothing():
    X, y = smooth(50)

    def sigmoid(A, B):
        return np.tanh(A @ B.T - 1.0)

    assert np.linalg.eigvalsh(sigmoid(X[:20], X[:20])).min() < -1e-3
    assert share_left(sigmoid, from_arrays(X, y, standardize=False), X[:20], 0.3) == np.inf


def test_as_many_landmarks_as_are_needed_leave_a_small_share_and_a_rough_kernel_needs_too_many():
    data = from_arrays(*smooth(), standardize=False)
    kernel = parse("gaussian(tau=20)")
    needed = count_needed(kernel, data, 0.05, 0)
    assert 1 < needed <= N // few_landmarks.ROWS_EACH
    found = few_landmarks.LowRank(needed).factor(kernel, data.X, 0)
    assert share_left(kernel, data, found.points, 0.05) <= NEAR
    assert count_needed(parse("exponential(ell=1)"), data, 0.05, 0) is None


@pytest.mark.parametrize("classes", [False, True], ids=["krr", "lssvm"])
def test_all_rows_are_fitted_by_landmarks_that_stand_for_the_whole_kernel(classes):
    data = from_arrays(*smooth(classes=classes), standardize=True)
    plan = Plan(kernel="gaussian", folds=4)
    result = large.select_large(data, plan, sizes=LOW)
    m = len(result.model.rows)
    assert 1 < m <= N // few_landmarks.ROWS_EACH
    assert result.options["rank"] == m
    assert [c.lam * N for c in result.candidates] == [pytest.approx(result.data["climb"][-1]["ridge"])]
    assert any(f"all rows: by {m} landmarks" in note for note in result.data["notes"])
    best, n = result.best, data.n
    H = best.kernel(data.X) + n * best.lam * np.eye(n)
    if classes:
        H = np.block([[H, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    x = np.linalg.solve(H, np.append(data.Y[0], np.zeros(len(H) - n)))
    f = best.kernel(data.X) @ x[:n] + x[n:].sum()
    g = best.kernel(data.X, result.model.rows) @ result.model.coefficients[0] + result.model.bias[0]
    assert np.linalg.norm(f - g) <= NEAR * np.linalg.norm(data.Y[0] - g)
    json.loads(result.to_json())


def test_where_memory_holds_no_whole_kernel_a_smooth_one_is_fitted_by_landmarks_and_a_rough_one_goes_the_other_way():
    rng = np.random.default_rng(0)
    X, y = smooth()
    noisy = np.sign(X[:, 0]) * np.sign(X[:, 1]) + 0.01 * rng.normal(size=N)
    with limited_memory(1_500_000):
        for target, kernel, ends in ((y, "gaussian", True), (noisy, "exponential", False)):
            data, plan = from_arrays(X, target, standardize=True), Plan(kernel=kernel, folds=4)
            assert limits.is_large(data, plan, LOW)
            assert not limits.fits_whole(data, plan)
            assert (large.select_large(data, plan, sizes=LOW) is not None) == ends


def test_landmarks_that_leave_more_than_was_foretold_are_not_taken(monkeypatch):
    data = from_arrays(*smooth(), standardize=True)
    monkeypatch.setattr(large, "count_needed", lambda *given: 2)
    result = large.select_large(data, Plan(kernel="gaussian", folds=4), sizes=LOW)
    assert result.options["rank"] == "whole"
