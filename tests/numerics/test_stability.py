"""The stability scan as a program: memory, threads, and values that are not finite."""

import tracemalloc

import numpy as np
import pytest

import tolerances
from kernsel.kernels import Gaussian, Laplacian, Linear
from kernsel.numerics import stability


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Linear(), Gaussian(2.0) + Linear()], ids=str)
@pytest.mark.compiled
def test_memory_is_that_of_the_points(kernel):
    X = np.random.default_rng(0).normal(size=(6000, 5))
    kernel.scan(X[:200])  # what is imported and compiled isn't counted
    tracemalloc.start()
    kernel.scan(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 6000**2 / 20


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Laplacian(3.0)], ids=str)
@pytest.mark.compiled
def test_the_number_of_threads_changes_the_order_of_sums_only(kernel, use_threads):
    X = np.random.default_rng(0).normal(size=(500, 4))
    found = {}
    for threads in (1, 2, 3):
        use_threads(threads)
        found[threads] = kernel.scan(X).rest
    np.testing.assert_allclose(found[1], found[2], rtol=tolerances.SCAN)
    np.testing.assert_allclose(found[1], found[3], rtol=tolerances.SCAN)


@pytest.mark.parametrize("block", [1, 60, 210, 1500])
@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_make_no_difference(block, weighted):
    rng = np.random.default_rng(0)
    Z, s = rng.normal(size=(30, 4)), rng.exponential(size=30) if weighted else None
    K, G = Z @ Z.T, Z.T @ (Z if s is None else s[:, None] * Z)
    whole = stability.scan_gram(K, s)
    for found in (
        stability.scan_gram(K, s, elements=block),
        stability.scan_features(lambda rows: Z[rows], G, 30, s, elements=block),
    ):
        np.testing.assert_allclose(found.diag, whole.diag, rtol=tolerances.SCAN)
        np.testing.assert_allclose(found.rest, whole.rest, rtol=tolerances.SCAN)


def test_a_value_that_is_not_finite_is_not_hidden():
    K = np.eye(4)
    K[2, 0] = K[0, 2] = np.nan
    sizes = stability.perturbations(stability.scan_gram(K))
    assert np.isnan(sizes).tolist() == [True, False, True, False]
    assert np.isnan(stability.beta(stability.scan_gram(K))[0])
    X = np.zeros((130, 2))
    X[5, 0] = np.nan
    assert np.isnan(Gaussian(1.0).scan(X).rest).all()


def test_nothing_has_a_stability_of_nothing():
    zero = stability.scan_features(lambda rows: np.zeros((3, 0))[rows], np.zeros((0, 0)), 3)
    assert stability.perturbations(zero).tolist() == [0.0, 0.0, 0.0]
    assert stability.perturbations(stability.scan_gram(np.zeros((2, 2)))).tolist() == [0.0, 0.0]
    assert stability.beta(stability.scan_gram(np.array([[-2.0]]))) == (2.0, 0)
