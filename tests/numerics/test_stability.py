"""The stability scan as a program: memory, threads, and values that are not finite."""

import tracemalloc

import numba
import numpy as np
import pytest

import tolerances
from kernsel.kernels import Gaussian, Laplacian, Linear
from kernsel.numerics import stability


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Linear(), Gaussian(2.0) + Linear()], ids=str)
def test_memory_is_that_of_the_points(kernel, monkeypatch):
    monkeypatch.setattr(stability, "_BLOCK", 1 << 14)
    X = np.random.default_rng(0).normal(size=(2000, 5))
    kernel.scan(X[:200])  # what is imported and compiled isn't counted
    tracemalloc.start()
    kernel.scan(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 2000**2 / 20


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Laplacian(3.0)], ids=str)
def test_the_number_of_threads_changes_the_order_of_sums_only(kernel, monkeypatch):
    X = np.random.default_rng(0).normal(size=(500, 4))
    found = {}
    for threads in (1, 2, 3):
        monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", threads)
        found[threads] = kernel.scan(X).rest
    np.testing.assert_allclose(found[1], found[2], rtol=tolerances.SCAN)
    np.testing.assert_allclose(found[1], found[3], rtol=tolerances.SCAN)


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
