"""Standard errors over folds: the textbook case, and what weights and unequal folds must not change."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tolerances
from kernsel.resampling import BLOCKS, blocks_of, corrected_error, jackknife, standard_error


@st.composite
def weighted_folds(draw):
    """Values, bounds of unequal folds, and weights that are whole numbers."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=2, max_size=6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = sum(sizes)
    return rng.normal(size=n), np.r_[0, np.cumsum(sizes)], rng.integers(1, 4, n).astype(float)


def weighted_mean(values, s):
    return lambda which: float(values[which] @ s[which] / s[which].sum())


@given(st.integers(2, 8), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_equal_folds_have_the_textbook_standard_error(t, size, seed):
    values = np.random.default_rng(seed).normal(size=(3, t * size))
    expected = values.reshape(3, t, size).mean(axis=2).std(axis=1, ddof=1) / math.sqrt(t)
    found = standard_error(values, np.arange(0, t * size + 1, size), np.full(t * size, 0.3))
    np.testing.assert_allclose(found, expected, rtol=tolerances.SUMS, atol=tolerances.SUMS)


@given(weighted_folds())
def test_a_mean_is_a_statistic_like_any_other(problem):
    values, starts, s = problem
    expected = standard_error(values, starts, s)
    found = jackknife(weighted_mean(values, s), starts, s)
    assert found == pytest.approx(expected, rel=tolerances.SUMS, abs=tolerances.SUMS)


@given(weighted_folds())
def test_a_weight_of_two_is_a_repeated_row(problem):
    values, starts, s = problem
    again = np.repeat(np.arange(len(values)), s.astype(int))
    longer = np.searchsorted(again, starts)
    ones = np.ones(len(again))
    expected = standard_error(values[again], longer, ones)
    assert standard_error(values, starts, s) == pytest.approx(expected, rel=tolerances.SUMS, abs=tolerances.SUMS)
    # ... and rows beyond the last fold have no say.
    beyond = standard_error(np.r_[values, 1e6], starts, np.r_[s, 5.0])
    assert beyond == standard_error(values, starts, s)


def test_the_standard_error_is_that_of_repeated_samples():
    """Groups of rows with a common shift, as folds by group have: rows are not independent, folds are."""
    rng = np.random.default_rng(0)
    samples = np.repeat(rng.normal(size=(4000, 10)), 6, axis=1) + rng.normal(size=(4000, 60))
    estimates = standard_error(samples, np.arange(0, 61, 6), np.ones(60))
    assert np.sqrt(np.mean(estimates**2)) == pytest.approx(samples.mean(axis=1).std(), rel=0.05)


@given(st.integers(2, 90))
def test_blocks_are_whole_folds(t):
    sizes = np.arange(t) % 3 + 1
    blocks = blocks_of(np.r_[0, np.cumsum(sizes)])
    folds = np.repeat(np.arange(t), sizes)
    assert np.array_equal(np.unique(blocks), np.arange(min(t, BLOCKS)))
    assert len(np.unique(np.stack([folds, blocks]), axis=1).T) == t


def test_one_fold_alone_tells_nothing_of_the_error():
    starts, s = np.array([0, 3]), np.ones(3)
    assert np.isnan(standard_error(np.arange(3.0), starts, s))
    assert jackknife(lambda which: 1.0, starts, s) is None


def test_a_statistic_that_is_lost_without_a_block_has_no_standard_error():
    labels = np.array([0, 0, 1, 1])

    def gap(which):
        return float("nan") if len(set(labels[which])) == 1 else 1.0

    assert jackknife(gap, np.array([0, 2, 4]), np.ones(4)) is None
    assert jackknife(gap, np.array([0, 1, 2, 3, 4]), np.ones(4)) == 0.0


def test_the_error_over_splits_counts_that_they_overlap():
    values = np.random.default_rng(0).normal(size=10)
    assert corrected_error(values, 0.25) == pytest.approx(np.sqrt(0.1 + 0.25) * np.std(values, ddof=1))
    assert corrected_error(values, 0.0) == pytest.approx(np.std(values, ddof=1) / np.sqrt(10))
    assert np.isnan(corrected_error(values[:1], 0.25))
