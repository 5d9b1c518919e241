"""Laws of the stability scan: the closed form is that of the eigenvalues, whatever way the squares were summed."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tolerances
import twins.stability
from kernsel.kernels import (
    ARD,
    ARDPolynomial,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Matern32,
    Matern52,
    Polynomial,
    Scale,
    Statistics,
)
from kernsel.numerics import stability
from kernsel.numerics.stability import NORMS

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(1, 12)
norms = pytest.mark.parametrize("norm", NORMS)


def symmetric(seed, n, definite):
    """A random symmetric matrix; indefinite ones have diagonals of both signs, some of them 0."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n)) * rng.exponential(size=(n, 1))
    K = A @ A.T if definite else A + A.T
    if not definite:
        K[np.diag_indices(n)] *= rng.integers(0, 2, size=n)
    return K


@norms
@given(seeds, sizes, st.booleans())
def test_the_closed_form_is_that_of_the_eigenvalues(norm, seed, n, definite):
    K = symmetric(seed, n, definite)
    found, expected = stability.perturbations(stability.scan_gram(K), norm), twins.stability.perturbations(K, norm)
    np.testing.assert_allclose(found, expected, rtol=tolerances.SCAN, atol=tolerances.SCAN * np.abs(K).max())
    value, worst = stability.beta(stability.scan_gram(K), norm)
    assert value == found.max() == found[worst]


def test_a_negative_diagonal_is_where_the_printed_formula_fails():
    K = np.array([[-3.0, 1.0], [1.0, 2.0]])
    sizes = stability.perturbations(stability.scan_gram(K))
    assert sizes[0] == pytest.approx(twins.stability.perturbation(K, 0), rel=tolerances.SCAN)
    assert twins.stability.printed(K, 0) == pytest.approx(sizes[0] - 3.0)
    assert sizes[1] == pytest.approx(twins.stability.printed(K, 1))


@given(seeds, st.integers(2, 8), st.floats(0.01, 10.0))
def test_the_removed_matrix_is_not_that_of_a_removed_row(seed, n, ridge):
    """KS14, Appendix A, takes ``K^i`` for the fit without row i; that is off by ``K(x, x_i) y_i / ridge``."""
    rng = np.random.default_rng(seed)
    X, y, i = rng.normal(size=(n, 2)), rng.normal(size=n), int(rng.integers(n))
    K, kept = Gaussian(1.0)(X), np.arange(n) != i
    printed = K @ np.linalg.solve(twins.stability.removed(K, i) + ridge * np.eye(n), y)
    without = K[:, kept] @ np.linalg.solve(K[np.ix_(kept, kept)] + ridge * np.eye(n - 1), y[kept])
    np.testing.assert_allclose(printed - without, K[:, i] * y[i] / ridge, atol=tolerances.conditioned(n, ridge, n))
    assert np.abs(printed - without).max() > 0.9 * abs(y[i]) / ridge


@norms
@given(seeds, st.integers(2, 12), st.booleans())
def test_beta_grows_with_points(norm, seed, n, definite):
    K = symmetric(seed, n, definite)
    betas = [stability.beta(stability.scan_gram(K[:m, :m]), norm)[0] for m in range(1, n + 1)]
    assert all(more >= less * (1 - tolerances.SCAN) for less, more in pairwise(betas))


@given(seeds, sizes, st.floats(1e-6, 1e6))
def test_a_gaussian_kernel_has_its_range(seed, n, tau):
    X = np.random.default_rng(seed).normal(size=(n, 2))
    value, most = stability.beta(Gaussian(tau).scan(X))[0], (1 + np.sqrt(4 * n - 3)) / 2
    assert 1 <= value <= most * (1 + tolerances.SCAN)
    assert stability.beta(Gaussian(1e-12).scan(X))[0] == pytest.approx(1.0)
    assert stability.beta(Gaussian(1e12).scan(X))[0] == pytest.approx(most)


@given(seeds, sizes, st.integers(1, 6), st.booleans())
def test_low_rank_is_the_low_rank_gram_matrix_in_full(seed, n, r, weighted):
    rng = np.random.default_rng(seed)
    Z, s = rng.normal(size=(n, r)), rng.exponential(size=n) if weighted else None
    G = Z.T @ (Z if s is None else s[:, None] * Z)
    found = stability.scan_features(lambda rows: Z[rows], G, n, s)
    expected = stability.scan_gram(Z @ Z.T, s)
    np.testing.assert_allclose(found.diag, expected.diag, rtol=tolerances.SCAN)
    for norm in NORMS:
        sizes = [stability.perturbations(scan, norm) for scan in (found, expected)]
        np.testing.assert_allclose(*sizes, rtol=tolerances.SCAN * (1 if s is None else 1 + s.max()))


class Plain(Kernel):
    """A kernel as a plugin may have it: nothing but ``evaluate`` and ``diag``, and indefinite."""

    name = "plain"

    def evaluate(self, stats):
        return 1.0 - 0.3 * stats.sqdist

    def diag(self, X):
        return np.ones(len(X))


KERNELS = [
    Gaussian(0.7),
    Laplacian(1.3),
    Matern32(0.8),
    Matern52(2.0),
    Linear(),
    Polynomial(3, 0.5),
    ARD((0.5, 0.0, 1.2)),
    ARDPolynomial((0.5, 0.0, 1.2), 2),
    Gaussian(1.0) + 0.5 * Linear(),
    Gaussian(2.0) * Polynomial(2, 1.0),
    Scale(1e-3, Laplacian(1.0)),
    Plain(),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [1, 7, 121, 370])  # one tile has 120 rows
def test_the_scan_from_points_is_that_of_the_gram_matrix(kernel, weighted, n):
    rng = np.random.default_rng(n)
    X, s = rng.normal(size=(n, 3)), rng.exponential(size=n) if weighted else None
    X[n // 2 :] = X[: n - n // 2]  # equal points
    found, expected = kernel.scan(X, s), stability.scan_gram(kernel.evaluate(Statistics(X)), s)
    np.testing.assert_allclose(found.diag, expected.diag, rtol=tolerances.SCAN)
    atol = tolerances.SCAN * np.abs(expected.diag).max() if isinstance(kernel, Linear) else 0  # it is a difference
    np.testing.assert_allclose(found.rest, expected.rest, rtol=tolerances.SCAN, atol=np.sqrt(atol))
    for norm in NORMS:
        sizes = [stability.perturbations(scan, norm) for scan in (found, expected)]
        np.testing.assert_allclose(*sizes, rtol=tolerances.SCAN)


@given(seeds, st.integers(1, 8), st.booleans())
def test_a_row_of_weight_two_is_there_twice(seed, n, low_rank):
    rng = np.random.default_rng(seed)
    Z, times = rng.normal(size=(n, 3)), rng.integers(1, 4, size=n)
    many = twins.stability.repeated(Z, times)
    scan = (
        stability.scan_features(lambda rows: Z[rows], Z.T @ (times[:, None] * Z), n, times.astype(float))
        if low_rank
        else stability.scan_gram(Z @ Z.T, times.astype(float))
    )
    for norm in NORMS:
        expected = twins.stability.perturbations(many @ many.T, norm)
        found = twins.stability.repeated(stability.perturbations(scan, norm), times)
        np.testing.assert_allclose(found, expected, rtol=tolerances.SCAN)


@given(seeds, st.integers(2, 9), st.integers(-1000, 1000))
def test_scale_changes_no_digit(seed, n, power):
    """A power of two passes through every way to the norms, even where squares overflow or vanish."""
    Z = np.random.default_rng(seed).normal(size=(n, 3))
    half = 2.0 ** (power // 2)
    factor = half * half
    K = Z @ Z.T
    ways = [
        (stability.scan_gram(K), stability.scan_gram(factor * K)),
        (
            stability.scan_features(lambda rows: Z[rows], Z.T @ Z, n),
            stability.scan_features(lambda rows: half * Z[rows], factor * (Z.T @ Z), n),
        ),
    ]
    for one, other in ways:
        for norm in NORMS:
            np.testing.assert_array_equal(
                stability.perturbations(other, norm) / factor, stability.perturbations(one, norm)
            )


@pytest.mark.parametrize("size", [1e-300, 1e150, 1e300])
def test_extreme_kernels_from_points(size):
    X = np.random.default_rng(0).normal(size=(150, 2))
    plain = stability.perturbations(Polynomial(1, 1.0, 1.0).scan(X))
    scaled = stability.perturbations(Polynomial(1, size, size).scan(X))
    np.testing.assert_allclose(scaled / size, plain, rtol=tolerances.SCAN)
