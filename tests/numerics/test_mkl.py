"""Weights of kernels: gradients against differences, optima against SciPy's, constraints that hold exactly."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twins.heldout
import twins.mkl
from kernsel.numerics import mkl
from kernsel.numerics.stability import perturbations, scan_gram
from problems import even
from tolerances import DIFFERENCES, EPS, OPTIMUM

laws = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 2**32 - 1)


def grams(rng, m, n, d=2):
    """Gram matrices of unit mean diagonal: Gaussian ones of several widths and a linear one."""
    X = rng.normal(size=(n, d))
    D = ((X[:, None] - X[None]) ** 2).sum(-1)
    G = np.stack([*(np.exp(-D / (2 * tau)) for tau in 4.0 ** rng.uniform(-2, 2, m - 1)), X @ X.T])
    return X, G / np.trace(G, axis1=1, axis2=2)[:, None, None] * n


def square_fit(G, Y, lam):
    """``mu -> (J, q)`` of kernel ridge regression."""
    n = Y.shape[1]

    def fit(mu):
        a = np.linalg.solve(mkl.weighted_sum(G, mu) + n * lam * np.eye(n), Y.T).T
        return lam * np.vdot(Y, a) / len(Y), mkl.energies(G, a)

    return fit


def problem(seed, m=5, n=20, outputs=1):
    rng = np.random.default_rng(seed)
    X, G = grams(rng, m, n)
    Y = np.stack([np.sin(2 * X[:, 0]), X[:, 1] ** 2][:outputs]) + 0.3 * rng.normal(size=(outputs, n))
    return G, Y, 10.0 ** rng.uniform(-3, -1)


@laws
@given(seeds, st.integers(1, 2))
def test_the_gradient_of_the_optimal_value_is_minus_lambda_q(seed, outputs):
    G, Y, lam = problem(seed, outputs=outputs)
    fit, mu, h = square_fit(G, Y, lam), np.random.default_rng(seed).dirichlet(np.ones(len(G))), 1e-5
    differences = [(fit(mu + h * e)[0] - fit(mu - h * e)[0]) / (2 * h) for e in np.eye(len(G))]
    np.testing.assert_allclose(-lam * fit(mu)[1], differences, rtol=DIFFERENCES, atol=DIFFERENCES * fit(mu)[0])


@laws
@given(seeds, st.integers(2, 8))
def test_reduced_gradients_reach_the_optimum_of_the_simplex(seed, m):
    G, Y, lam = problem(seed, m)
    fit = square_fit(G, Y, lam)
    mu, history, gap = mkl.reduced_gradient(fit, np.full(m, 1 / m), lam, 1e-7)
    J, q = fit(mu)
    assert gap <= 1e-7
    assert (mu >= 0).all()
    assert abs(mu.sum() - 1) <= m * EPS
    assert (np.diff(history) < 0).all()
    assert pytest.approx(twins.mkl.best_value(G, Y[0], lam)[0], rel=OPTIMUM) == J
    # The conditions of Karush, Kuhn and Tucker: used kernels have the largest energy.
    slack = lam * (q.max() - q) / J
    assert slack @ mu <= 1e-7


@laws
@given(seeds, st.integers(2, 6), st.sampled_from([1.0, 1.5, 2.0, 4.0]))
def test_alternation_descends_to_the_optimum_of_the_norm(seed, m, p):
    G, Y, lam = problem(seed, m)
    fit = square_fit(G, Y, lam)
    tolerance = 1e-4 if p > 1 else 1e-2  # at p = 1 the gap falls as one over the number of steps only
    mu, history, gap = mkl.alternation(fit, np.full(m, m ** (-1 / p)), lam, p, tolerance)
    assert (np.diff(history) <= 1e-14 * history[0]).all()
    assert abs(np.linalg.norm(mu, p) - 1) <= m * EPS
    assert (mu >= 0).all()
    assert gap <= tolerance
    best, _ = twins.mkl.best_value(G, Y[0], lam, p)
    assert best * (1 - OPTIMUM) <= history[-1] <= best * (1 + OPTIMUM) / (1 - gap)


@laws
@given(seeds, st.sampled_from([1.0, 2.0, 3.0]))
def test_the_duality_gap_bounds_what_is_left_at_any_weights(seed, p):
    G, Y, lam = problem(seed)
    rng = np.random.default_rng(seed)
    mu = rng.dirichlet(np.ones(len(G)))
    mu /= np.linalg.norm(mu, p)
    J, q = square_fit(G, Y, lam)(mu)
    best, _ = twins.mkl.best_value(G, Y[0], lam, p)
    assert J - best <= (mkl.relative_gap(mu, J, q, lam, p) + OPTIMUM) * J


def test_nothing_to_fit_leaves_no_gap():
    assert mkl.relative_gap(np.ones(2) / 2, 1.0, np.zeros(2), 0.1, 2.0) == 0.0


@laws
@given(seeds, st.integers(1, 2), st.integers(2, 8))
def test_no_weights_are_aligned_better(seed, outputs, m):
    G, Y, _ = problem(seed, m, outputs=outputs)
    mu, alignment = mkl.aligned(G, Y, np.ones(Y.shape[1]))
    assert abs(mu.sum() - 1) <= m * EPS
    assert alignment == pytest.approx(twins.mkl.alignment(mkl.weighted_sum(G, mu), Y), rel=1e-9)
    others = np.vstack([np.eye(m), np.random.default_rng(seed).dirichlet(np.ones(m), 50)])
    assert max(twins.mkl.alignment(mkl.weighted_sum(G, each), Y) for each in others) <= alignment * (1 + 1e-9)


def test_aligned_weights_of_multiples_and_copies():
    G, Y, _ = problem(3)
    s = np.ones(Y.shape[1])
    mu, alignment = mkl.aligned(G, Y, s)
    factors = np.array([1.0, 3.0, 0.1, 2.0, 5.0])
    other, same = mkl.aligned(G * factors[:, None, None], Y, s)
    np.testing.assert_allclose(other * factors / (other @ factors), mu, rtol=1e-6, atol=1e-9)
    assert same == pytest.approx(alignment)
    twice = mkl.aligned(np.concatenate([G, G]), Y, s)[0]  # a singular system
    np.testing.assert_allclose(twice[:5] + twice[5:], mu, rtol=1e-6, atol=1e-9)


def test_no_kernel_is_aligned_with_a_constant_target():
    G, _, _ = problem(0)
    mu, alignment = mkl.aligned(G, np.ones((1, 20)), np.ones(20))
    assert not mu.any()
    assert alignment == 0.0


def test_row_weights_are_repetitions_in_the_alignment():
    G, Y, _ = problem(1)
    s = np.random.default_rng(1).integers(1, 4, 20)
    rows = np.repeat(np.arange(20), s)
    weighted = mkl.aligned(G, Y, s.astype(float))
    repeated = mkl.aligned(G[:, rows][:, :, rows], Y[:, rows], np.ones(rows.size))
    np.testing.assert_allclose(weighted[0], repeated[0], rtol=1e-6, atol=1e-9)
    assert weighted[1] == pytest.approx(repeated[1])


@laws
@given(seeds, st.booleans())
def test_slopes_of_the_perturbations_are_their_differences(seed, weighted):
    rng = np.random.default_rng(seed)
    _, (K, dK) = grams(rng, 2, 12)
    s = rng.integers(1, 4, 12).astype(float) if weighted else np.ones(12)
    slopes, h = mkl.perturbation_slopes(K, s, scan_gram(K, s)), 1e-6
    ends = [perturbations(scan_gram(K + sign * h * dK, s)) for sign in (1, -1)]
    np.testing.assert_allclose((slopes * dK).sum(axis=1), (ends[0] - ends[1]) / (2 * h), rtol=1e-7, atol=1e-7)


def test_a_row_of_zeros_moves_nothing():
    K = np.diag([1.0, 0.0])
    slopes = mkl.perturbation_slopes(K, np.ones(2), scan_gram(K))
    assert np.isfinite(slopes).all()


def abs_and_square(centre, tilt):
    """``|mu - centre|^2 + max(0, +-tilt'mu)``, with its parts."""

    def parts(mu):
        bounds = np.array([tilt @ mu + 2, 2 - tilt @ mu])
        return ((mu - centre) ** 2).sum(), 2 * (mu - centre), bounds, np.stack([tilt, -tilt])

    return parts


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("centre", [(0.2, 0.9), (-0.5, 0.3), (0.6, 0.6)])
def test_the_least_maximum_is_found_where_it_has_a_kink(p, centre):
    parts = abs_and_square(np.array(centre), np.array([1.5, -1.0]))
    mu, history = mkl.least_maximum(parts, np.full(2, 2 ** (-1 / p)), p)
    assert abs(np.linalg.norm(mu, p) - 1) <= 4 * EPS
    assert (np.diff(history) <= 0).all()
    value, _, bounds, _ = parts(mu)
    assert history[-1] == pytest.approx(value + bounds.max())
    t = np.linspace(0, 1, 100_001)
    curve = np.stack([t, 1 - t]) / np.linalg.norm([t, 1 - t], p, axis=0)
    values = ((curve - np.array(centre)[:, None]) ** 2).sum(axis=0) + 2 + np.abs(np.array([1.5, -1.0]) @ curve)
    assert history[-1] == pytest.approx(values.min(), abs=1e-8)


def test_without_bounds_it_is_a_plain_minimum():
    def parts(mu):
        return (
            ((mu - np.array([0.9, 0.4, -1.0])) ** 2).sum(),
            2 * (mu - [0.9, 0.4, -1.0]),
            np.zeros(0),
            np.zeros((0, 3)),
        )

    mu, _ = mkl.least_maximum(parts, np.ones(3) / 3, 1.0)
    np.testing.assert_allclose(mu, [0.75, 0.25, 0.0], atol=1e-6)  # the projection onto the simplex


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
def test_a_linear_objective_on_a_curved_sphere(p):
    """The largest ``c'mu`` is at ``mu_m`` in proportion to ``c_m^(1/(p-1))``, by Hoelder's inequality."""
    c = np.array([1.0, 0.3, 0.7])
    mu, _ = mkl.least_maximum(lambda mu: (2 - c @ mu, -c, np.zeros(0), np.zeros((0, 3))), np.full(3, 3 ** (-1 / p)), p)
    best = c ** (1 / (p - 1))
    np.testing.assert_allclose(mu, best / np.linalg.norm(best, p), atol=1e-4)


def test_the_twins_agree_with_each_other():
    """The objective of k-KS on a kernel as wide as can be, by hand: every fit is the mean, and all entries are 1."""
    Y = np.array([[1.0, -1.0, 1.0, 1.0]])
    starts = even(4, 2)
    K = np.ones((4, 4))
    held = twins.heldout.refits_square(K, Y, 0.5, starts)
    np.testing.assert_allclose(held, [[2 / 3, 2 / 3, 0.0, 0.0]])
    assert twins.mkl.stability(K) == pytest.approx((1 + np.sqrt(13)) / 2)
