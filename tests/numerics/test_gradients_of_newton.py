"""Newton systems solved by conjugate gradients, with the factor of an earlier system for a preconditioner."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calling
import losses
import problems
import tolerances
from kernsel.numerics.runtime.blas import damped_cholesky
from kernsel.numerics.smooth import convergence, newton, systems


def solution(K, rows, root, mu, b, total, bias):
    """``(D^1/2 K D^1/2 + mu I) t + db r = b`` and ``r' t = total`` by a dense solve: t and db."""
    m = root.size
    A = np.zeros((m + bias, m + bias))
    A[:m, :m] = root[:, None] * K[np.ix_(rows, rows)] * root + mu * np.eye(m)
    if bias:
        A[:m, m] = A[m, :m] = root
    x = np.linalg.solve(A, np.append(b, total)[: m + bias])
    return x[:m], x[m] if bias else 0.0


@settings(max_examples=30)
@given(
    p=problems.problems(lams=(-8, 3)), bias=st.integers(0, 1), change=st.sampled_from([0.0, 0.1, 1.0]),
    total=st.sampled_from([0.0, -0.7]), straight=st.booleans(), shorter=st.sampled_from([1.0, 0.5]),
)  # fmt: skip
def test_a_system_is_solved_with_the_factor_of_another_one(p, bias, change, total, straight, shorter):
    rng = np.random.default_rng(p.n)
    curved = rng.random(p.n) < 0.7 if straight else np.ones(p.n, bool)
    curved[0] = True
    rows, mu = np.flatnonzero(curved), 2.0 * p.n * p.lam
    root, b = np.sqrt(rng.uniform(0.05, 0.25, rows.size)), rng.normal(size=rows.size)
    before = root * np.exp(rng.uniform(-0.5, 0.5, rows.size) * change)
    known, scale = np.zeros(p.n), np.empty(rows.size)
    known[rows] = before
    R = before[:, None] * p.K[np.ix_(rows, rows)] * before + mu / shorter * np.eye(rows.size)
    assert calling.entry(damped_cholesky)(R) == 0
    padded = np.append(rows, np.zeros(p.n - rows.size, np.int64))
    condition = calling.entry(systems.compare)(padded, root, known, shorter, scale)
    ratios = np.append(shorter * before**2 / root**2, 1.0)
    np.testing.assert_allclose(condition, ratios.max() / ratios.min())
    steps = calling.entry(systems.gradient_steps)(condition, 1e-24)
    assert steps == pytest.approx(1.0) if change == 0.0 and shorter == 1.0 else 1.0 <= steps < 60.0
    x = b.copy()
    solve = calling.entry(systems.solve_by_gradients)
    db, status = solve(p.K, padded, root, mu, R, scale, total, bias, 1e-24, int(steps) + 10, x)
    assert status == 0
    t, pull = solution(p.K, rows, root, mu, b, total, bias)
    size = max(1.0, np.abs(t).max(), abs(pull))
    atol = 10 * size * tolerances.conditioned(np.trace(p.K), mu, p.n)
    np.testing.assert_allclose(x, t, rtol=0, atol=atol)
    assert db == pytest.approx(pull, abs=10 * atol)


def test_a_factor_of_other_rows_is_of_no_use():
    rows, root, scale = np.array([0, 2, 0]), np.array([0.5, 0.5]), np.empty(2)
    for known in ([0.5, 0.0, 0.0], [0.5, 0.5, 0.5], [0.5, 0.5, 0.0], [0.0, 0.0, 0.0]):
        assert calling.entry(systems.compare)(rows, root, np.array(known), 1.0, scale) == np.inf
    with np.errstate(invalid="ignore"):  # inf / inf, of which NumPy warns where the loop is plain Python
        assert calling.entry(systems.gradient_steps)(np.inf, 1e-6) == np.inf


def test_more_steps_than_the_limit_are_a_status():
    p = problems.make(0, n=40, tau=0.5)
    rows, root, mu = np.arange(40), np.full(40, 0.5), 0.01
    R = np.eye(40)
    solve = calling.entry(systems.solve_by_gradients)
    _, status = solve(p.K, rows, root, mu, R, np.ones(40), 0.0, 0, 1e-24, 3, p.y.copy())
    assert status == -1


@pytest.mark.parametrize("bias", [0, 1])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_fit_with_many_rows_is_at_its_minimum(bias, weighted):
    p = problems.make(1, n=500, d=4, tau=4.0, weighted=weighted)  # so many that factors are used again
    lams = np.array([1e-3, 1e-4])
    fits = calling.fit(newton.in_kernel, losses.LOGISTIC, p.K, p.y, lams, p.s, bias=bias, tol=1e-10)
    assert (fits.status == convergence.CONVERGED).all()
    a, b = fits.x[:, : p.n], fits.x[:, p.n :].sum(axis=1)
    np.testing.assert_allclose(fits.f, a @ p.K + b[:, None], rtol=0, atol=1e-10 * np.abs(a).max())
    mu = 2.0 * p.s.sum() * lams[:, None]
    atol = tolerances.weighted(p.s) * tolerances.curved(p.K, lams[1], losses.LOGISTIC.curvature)
    np.testing.assert_allclose(mu * a, -fits.d1, rtol=0, atol=atol)
    if bias:
        np.testing.assert_allclose(fits.d1.sum(axis=1), 0.0, atol=1e-7)
