"""Tests between methods: against SciPy, published numbers, and what they promise under the null hypothesis."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from kernsel.errors import OptionError
from kernsel.evaluation import friedman, paired


@given(st.integers(2, 12), st.integers(0, 2**32 - 1))
def test_without_correction_it_is_the_ordinary_paired_test(J, seed):
    a, b = np.random.default_rng(seed).normal(size=(2, J))
    expected = scipy.stats.ttest_rel(a, b)
    found = paired(a, b)
    assert found.t == pytest.approx(expected.statistic, rel=1e-9)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-9)


def test_the_correction_is_that_of_nadeau_and_bengio():
    a, b = np.random.default_rng(0).normal(size=(2, 20))
    plain, corrected = paired(a, b), paired(a, b, test_share=0.3)
    assert plain.t / corrected.t == pytest.approx(math.sqrt((1 / 20 + 3 / 7) / (1 / 20)))


def test_overlapping_training_sets_make_the_ordinary_test_find_too_much():
    """Differences of two equal methods on random splits, modelled by a shared part: the level is wrong without c."""
    rng = np.random.default_rng(1)
    rows, J, share = 300, 20, 0.3
    false = np.zeros(2)
    for _ in range(300):
        x = rng.normal(size=rows)  # by how much the methods differ on each row
        means = [x[rng.permutation(rows)[: int(share * rows)]].mean() for _ in range(J)]
        for k, correction in enumerate((None, share)):
            false[k] += paired(means, np.zeros(J), correction).p < 0.05
    assert false[0] > 0.3 * 300
    assert false[1] < 0.1 * 300


def test_equal_errors_and_constant_differences():
    assert paired([1.0, 2.0], [1.0, 2.0]) == (found := paired([1.0, 2.0], [1.0, 2.0]))
    assert (found.difference, found.t, found.p) == (0.0, 0.0, 1.0)
    found = paired([1.0, 2.0], [2.0, 3.0])
    assert (found.difference, found.t, found.p) == (-1.0, -math.inf, 0.0)


def test_ranks_share_ties_and_differ_significantly_by_published_critical_values():
    """Demsar 2006, Table 5(a): q = 2.569 at 0.05 and 2.291 at 0.10 for four methods."""
    errors = np.vstack([[[1, 2, 3, 4]] * 7, [[1, 1, 3, 4]] * 7])
    np.testing.assert_allclose(friedman(errors).mean_ranks, [1.25, 1.75, 3, 4])
    for level, q in ((0.05, 2.569), (0.1, 2.291)):
        assert friedman(errors, level).critical_difference == pytest.approx(q * math.sqrt(20 / (6 * 14)), rel=1e-3)


def test_without_ties_the_statistic_is_that_of_scipy():
    errors = np.random.default_rng(3).normal(size=(9, 5))
    chi2 = scipy.stats.friedmanchisquare(*errors.T).statistic
    assert friedman(errors).statistic == pytest.approx(8 * chi2 / (9 * 4 - chi2))


def test_agreement_and_its_opposite():
    assert friedman([[1, 2, 3]] * 4).statistic == math.inf
    assert friedman([[1, 2, 3]] * 4).p == 0.0
    assert friedman([[1, 1], [2, 2]]).p == 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: paired([1.0], [2.0]), "at least 2"),
        (lambda: paired([1.0, math.nan], [2.0, 1.0]), "finite"),
        (lambda: paired([1.0, 2.0], [2.0, 1.0], 1.0), "between 0 and 1"),
        (lambda: friedman([[1.0, 2.0]]), "at least 2 data sets"),
        (lambda: friedman([[1.0, 2.0]] * 3, 5), "a probability"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(OptionError, match=message):
        call()
