"""The spectrum of the Gaussian kernel's integral operator: against discretisations, and as what it is a list of."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tolerances
import twins.spectral
from kernsel.numerics.operator import gaussian_operator, smallest_sums

variances = st.lists(st.floats(0.01, 100), min_size=1, max_size=3)


@pytest.mark.parametrize(("scales", "tau", "points"), [([1.0], 0.5, 90), ([2.25], 3.0, 60), ([1.0, 0.4], 8.0, 18)])
def test_it_is_the_limit_of_fine_discretisations(scales, tau, points):
    scales = np.array(scales)
    found = gaussian_operator(scales, tau, 12)
    np.testing.assert_allclose(
        found, twins.spectral.discretised_operator(scales, tau, points)[:12], rtol=0, atol=tolerances.QUADRATURE
    )


def test_random_samples_approach_it():
    rng, tau, n = np.random.default_rng(0), 2.0, 400
    X = rng.normal(size=(n, 2)) * [1.0, 0.5]
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / (2 * tau))
    sampled = np.linalg.eigvalsh(K)[::-1] / n
    off = np.abs(sampled - gaussian_operator(np.array([1.0, 0.25]), tau, n)).sum()
    assert off < 3 / np.sqrt(n)


@given(variances, st.floats(0.05, 20))
def test_the_largest_products_are_found_in_order(scales, tau):
    scales = np.array(scales)
    terms = 25
    found = gaussian_operator(scales, tau, terms)  # of which none has a factor beyond B^24
    expected = twins.spectral.products_of_geometric(scales, tau, terms)[:terms]
    np.testing.assert_allclose(found, expected, rtol=tolerances.SUMS, atol=0)


@given(variances, st.floats(0.5, 1e6))
def test_all_of_them_sum_to_one(scales, tau):
    found = gaussian_operator(np.array(scales), tau, 3000)
    assert (np.diff(found) <= 0).all()
    assert found.sum() <= 1 + tolerances.SUMS
    smaller = gaussian_operator(np.array(scales), tau, 1000)
    np.testing.assert_array_equal(found[:1000], smaller)
    if found[-1] < 1e-18 * found[0]:
        assert found.sum() == pytest.approx(1.0, abs=tolerances.SUMS)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=5, unique=True))
def test_sums_of_multisets_are_counted_by_their_generating_function(rates):
    top = 40
    counts = np.zeros(top + 1, int)
    counts[0] = 1
    for rate in rates:  # multiplied by 1 / (1 - x^rate)
        for total in range(rate, top + 1):
            counts[total] += counts[total - rate]
    sums = []
    for value in smallest_sums(sorted(map(float, rates))):
        if value > top:
            break
        sums.append(value)
    assert sums == sorted(sums)
    np.testing.assert_array_equal(np.bincount(np.array(sums, int), minlength=top + 1), counts)


def test_sixty_attributes_and_constant_ones():
    found = gaussian_operator(np.ones(60), 200.0, 62)
    assert found[1] == pytest.approx(found[60], rel=tolerances.SUMS)  # the first power of each attribute
    assert found[61] < 0.5 * found[60]
    np.testing.assert_array_equal(gaussian_operator(np.append(np.ones(60), 0.0), 200.0, 62), found)
    np.testing.assert_array_equal(gaussian_operator(np.zeros(3), 1.0, 3), [1.0, 0.0, 0.0])
    np.testing.assert_allclose(gaussian_operator(np.array([1e-12]), 1.0, 2), [1.0, 1e-12], rtol=1e-9)
