"""Standard errors over folds: the textbook case, and what weights and unequal folds must not change."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tolerances
from kernsel.heldout.standard_error import (
    BLOCKS,
    CHUNK,
    CentredError,
    between_folds,
    blocks_of,
    corrected_error,
    jackknife,
    of_rows,
    standard_error,
)


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
    found = between_folds(values, np.arange(0, t * size + 1, size), np.full(t * size, 0.3))
    np.testing.assert_allclose(found, expected, rtol=tolerances.SUMS, atol=tolerances.SUMS)


@given(weighted_folds())
def test_a_mean_is_a_statistic_like_any_other(problem):
    values, starts, s = problem
    expected = between_folds(values, starts, s)
    found = jackknife(weighted_mean(values, s), starts, s)
    assert found == pytest.approx(expected, rel=tolerances.SUMS, abs=tolerances.SUMS)


@given(weighted_folds())
def test_a_weight_of_two_is_a_repeated_row(problem):
    values, starts, s = problem
    again = np.repeat(np.arange(len(values)), s.astype(int))
    longer = np.searchsorted(again, starts)
    ones = np.ones(len(again))
    for error in (between_folds, standard_error, lambda values, starts, s: of_rows(values, s)):
        expected = error(values[again], longer, ones)
        assert error(values, starts, s) == pytest.approx(expected, rel=tolerances.SUMS, abs=tolerances.SUMS)
    # ... and rows beyond the last fold have no say.
    beyond = standard_error(np.r_[values, 1e6], starts, np.r_[s, 5.0])
    assert beyond == standard_error(values, starts, s)


@given(weighted_folds(), st.sampled_from(["counts", "shares", "ones"]))
def test_of_centred_values_it_is_the_same(problem, weights):
    values, starts, s = problem
    s = {"counts": s, "shares": s / 7, "ones": np.ones(s.size)}[weights]
    rows = np.array([values, values[::-1], np.zeros(values.size)])
    centred = rows - (rows @ s / s.sum())[:, None]
    square, by_row = CentredError(starts, s).squares(centred, centred * s)
    expected = standard_error(rows, starts, s)
    np.testing.assert_allclose(np.sqrt(square), expected, rtol=tolerances.SUMS, atol=tolerances.SUMS)
    weighted = centred * (s if weights == "shares" else np.sqrt(s))
    np.testing.assert_allclose(by_row, (weighted**2).sum(axis=1), rtol=tolerances.SUMS, atol=tolerances.SUMS)


def test_of_centred_values_of_one_fold_or_one_row_there_is_none():
    nothing = np.zeros((1, 2))
    for starts, s in (([0, 2], [1.0, 1.0]), ([0, 1, 2], [1.0, 0.0])):
        found = CentredError(np.array(starts), np.array(s))
        assert not found.known
        assert np.isnan(found.squares(nothing, nothing)[0])


def test_the_standard_error_is_that_of_repeated_samples():
    """Groups of rows with a common shift, as folds by group have: rows are not independent, folds are."""
    rng = np.random.default_rng(0)
    samples = np.repeat(rng.normal(size=(4000, 10)), 6, axis=1) + rng.normal(size=(4000, 60))
    estimates = standard_error(samples, np.arange(0, 61, 6), np.ones(60))
    assert np.sqrt(np.mean(estimates**2)) == pytest.approx(samples.mean(axis=1).std(), rel=0.05)


@given(st.integers(2, 200), st.integers(0, 200), st.integers(0, 2**32 - 1))
def test_single_rows_have_the_binomial_standard_error(n, wrong, seed):
    values = np.zeros(n)
    values[: min(wrong, n)] = 1.0
    np.random.default_rng(seed).shuffle(values)
    p = values.mean()
    assert of_rows(values, np.full(n, 0.3)) == pytest.approx(math.sqrt(p * (1 - p) / (n - 1)), abs=tolerances.SUMS)


@given(weighted_folds(), st.floats(0.01, 100))
def test_weights_that_are_no_counts_count_by_their_ratios(problem, unit):
    values, _, s = problem
    s = s + 0.3  # no counts
    found = of_rows(values, s)
    assert of_rows(values, s * (unit + 1e-3)) == pytest.approx(float(found), rel=tolerances.SUMS)


def test_weighted_rows_have_the_standard_error_of_repeated_samples():
    rng = np.random.default_rng(0)
    s = rng.choice([0.5, 1.5, 4.0], 200)
    samples = rng.normal(size=(4000, 200))
    found = np.sqrt(np.mean(of_rows(samples, s) ** 2))
    assert found == pytest.approx((samples @ s / s.sum()).std(), rel=0.05)


def test_rows_in_chunks_are_all_rows():
    values = np.random.default_rng(0).normal(size=CHUNK + 100)
    assert of_rows(values, np.ones(values.size)) == pytest.approx(values.std(ddof=1) / math.sqrt(values.size))


def test_stratified_folds_hide_the_error_of_one_class():
    """Five of 100 in each of ten folds, and a classifier that never says so: its error is the same in every fold."""
    wrong, starts, s = np.tile(np.arange(100) < 5, 10).astype(float), np.arange(0, 1001, 100), np.ones(1000)
    binomial = math.sqrt(0.05 * 0.95 / 999)
    assert between_folds(wrong, starts, s) == pytest.approx(0, abs=1e-15)
    assert standard_error(wrong, starts, s) == pytest.approx(binomial)


def test_folds_of_rows_that_belong_together_have_the_larger_standard_error():
    values, starts, s = np.repeat(np.arange(10.0), 50), np.arange(0, 501, 50), np.ones(500)
    assert standard_error(values, starts, s) == between_folds(values, starts, s) > 5 * of_rows(values, s)


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
