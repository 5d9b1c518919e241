"""Copies of rows: found as brute force finds them, dense and sparse, and dealt to one fold as evenly as can be."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import tables
from kernsel.data import copies, from_arrays
from kernsel.data.copies import find_copies, hashes, numbered
from kernsel.evaluation import nested
from kernsel.folds import copies_apart, deal, deal_copies, keeps_copies, make_folds
from kernsel.numerics.points import as_points
from kernsel.selection.carry_out import select_dataset

values = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, 1e-300, 1e300, 0.1, 0.30000000000000004])
rows_of = st.integers(1, 4).flatmap(
    lambda d: st.lists(st.lists(values, min_size=d, max_size=d), min_size=1, max_size=30)
)


def partition(number):
    """Which rows are together."""
    return {tuple(np.flatnonzero(number == each)) for each in number}


@given(rows_of, st.booleans())
def test_equal_rows_have_one_number(listed, sparse):
    X = np.array(listed)
    expected = np.unique(X + 0.0, axis=0, return_inverse=True)[1].ravel()
    found = numbered(as_points(sp.csr_array(X)) if sparse else X)
    assert partition(found) == partition(expected)
    assert set(found) == set(range(expected.max() + 1))


@given(rows_of)
def test_they_are_the_same_where_all_hashes_are_one(listed):
    X = np.array(listed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copies, "hashes", lambda X: np.zeros(len(X), np.uint64))
        found = numbered(X)
    for row, other in zip(*np.triu_indices(len(X), 1), strict=True):
        if found[row] == found[other]:  # none are together that differ
            np.testing.assert_array_equal(X[row], X[other])


def test_whole_numbers_and_truth_values_have_hashes_of_their_own():
    rng = np.random.default_rng(0)
    for X in (rng.integers(0, 2, (5000, 12)), rng.integers(0, 50, (20000, 3)), np.arange(50000)[:, None]):
        X = X.astype(float)
        assert np.unique(hashes(X)).size == np.unique(X, axis=0).shape[0]


def test_rows_of_several_blocks_are_all_rows():
    X = np.random.default_rng(0).integers(0, 3, (copies.CHUNK + 10, 3)).astype(float)
    expected = (X @ [9, 3, 1]).astype(int)
    for points in (X, as_points(sp.csr_array(X))):
        found = find_copies(points, X[:, :1].T)
        assert np.unique(np.stack([found.number, expected]), axis=1).shape[1] == found.number.max() + 1 == 27
        assert found.rows == found.same_target == len(X) - 27


def test_copies_are_counted_with_and_without_their_target():
    X = np.array([[1.0], [2.0], [1.0], [1.0], [2.0], [3.0]])
    found = find_copies(X, np.array([[0.0, 1.0, 0.0, 5.0, 1.0, 1.0]]))
    assert (found.rows, found.same_target) == (3, 2)
    none = find_copies(X[[0, 1, 5]], np.zeros((1, 3)))
    assert (none.rows, none.same_target) == (0, 0)


# Deals


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 2)), min_size=4, max_size=60), st.integers(0, 99))
def test_copies_are_in_one_fold_and_folds_are_even(pairs, seed):
    drawn, labels = (np.array(each) for each in zip(*pairs, strict=True))
    number = np.unique(drawn, return_inverse=True)[1]
    folds = min(4, int(number.max()) + 1)
    if folds < 2:
        return
    found = deal_copies(labels, number, folds, seed)
    assert set(found) == set(range(folds))
    assert all(len(set(found[number == each])) == 1 for each in set(number))
    sizes, single = np.bincount(found), np.bincount(number)[number] == 1
    if not (single & (found == sizes.argmax())).any():
        return  # only copies are left in the largest fold
    assert sizes.max() - sizes.min() <= 1


def test_a_few_copies_leave_the_folds_stratified():
    rng = np.random.default_rng(0)
    labels = (rng.random(500) < 0.1).astype(int)
    number = np.arange(500)
    number[20:40] = np.arange(20)
    number = np.unique(number, return_inverse=True)[1]
    found = deal_copies(labels, number, 10, 0)
    counts = np.array([np.bincount(labels[found == fold], minlength=2) for fold in range(10)])
    assert counts.sum(axis=1).tolist() == [50] * 10
    assert np.ptp(counts[:, 1]) <= 4
    assert not np.array_equal(found, deal_copies(labels, number, 10, 1))


def test_without_copies_the_deal_is_what_it_was():
    X, y = tables.circles(50)
    dataset = from_arrays(X, y)
    assert not keeps_copies(dataset, 5)
    np.testing.assert_array_equal(make_folds(5, dataset, 3).number, deal(dataset.codes, 5, 3))


def test_more_folds_than_distinct_rows_leave_copies_apart():
    X = np.arange(10.0)[:, None] // 2
    dataset = from_arrays(X, np.arange(10.0))
    assert keeps_copies(dataset, 5)
    assert copies_apart(make_folds(5, dataset, 0), dataset).size == 0
    assert not keeps_copies(dataset, 6)
    assert copies_apart(make_folds(10, dataset, 0), dataset).tolist() == list(range(10))


def test_in_the_order_of_time_only_earlier_copies_count():
    X = np.array([5.0, 1, 2, 3, 1, 4, 5, 4])[:, None]
    dataset = from_arrays(X, np.arange(8.0))
    made = make_folds("time:3", dataset, 0)  # the first two rows are never held out
    assert made.number.tolist() == [-1, -1, 0, 0, 1, 1, 2, 2]
    assert copies_apart(made, dataset).tolist() == [4, 6, 7]


def test_a_table_that_is_there_twice_has_the_error_of_the_table():
    """A target of noise: with copies apart, the nearest row is the row itself."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    X, y = np.vstack([X, X]), np.r_[y, y]
    options = {"learner": "krr", "grid": {"tau": [1e-3], "lambda": [1e-6]}, "folds": 5, "extend": False}
    together, apart = (select_dataset(from_arrays(X, y, copies=each), **options) for each in ("together", "apart"))
    assert together.best.error > 0.95 * y.std() > 2 * apart.best.error
    honest, flattered = (nested(X, y, copies=each, outer=5, **options).error for each in ("together", "apart"))
    assert honest > 0.95 * y.std() > 1.5 * flattered
