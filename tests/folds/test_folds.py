"""Dealing rows and groups to folds, and reading how rows are to be held out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
)

from kernsel.data import from_arrays
from kernsel.errors import OptionError
from kernsel.folds import deal, deal_groups, make_folds

N = 24
ROWS = np.arange(N)
GROUPS = np.array(list("aaabbbbccdddddeefffffggg"))
CLASSES = np.where(ROWS % 3, "common", "rare")


def dataset(y=ROWS / 7, **roles):
    return from_arrays(ROWS[: len(y), None], y, **roles)


def pairs(made):
    """The rows that each fold trains on and holds out."""
    t = made.starts.size - 1
    training = made.number != np.arange(t)[:, None] if made.training is None else made.training
    return [(np.flatnonzero(training[j]), np.flatnonzero(made.number == j)) for j in range(t)]


def same_pairs(made, expected):
    for (train, test), (train_too, test_too) in zip(pairs(made), expected, strict=True):
        np.testing.assert_array_equal(train, np.sort(train_too))
        np.testing.assert_array_equal(test, np.sort(test_too))


# Deals


@given(st.lists(st.integers(0, 3), min_size=2, max_size=60), st.data())
def test_every_row_once_and_as_even_as_can_be(labels, data):
    labels = np.array(labels)
    folds = data.draw(st.integers(2, len(labels)))
    number = deal(labels, folds, seed=0)
    assert set(number.tolist()) == set(range(folds))
    parts = [labels[number == fold] for fold in range(folds)]
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    for label in set(labels.tolist()):
        counts = [int((part == label).sum()) for part in parts]
        assert max(counts) - min(counts) <= 1


sizes_of_groups = st.lists(st.integers(1, 12), min_size=2, max_size=15)


@given(sizes_of_groups, st.data())
def test_groups_are_whole_and_folds_differ_by_no_more_than_the_largest_group(sizes, data):
    groups = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    folds = data.draw(st.integers(2, len(sizes)))
    number = deal_groups(np.zeros(groups.size, np.int64), groups, folds, data.draw(st.integers(0, 5)))
    for group in range(len(sizes)):
        assert len(set(number[groups == group].tolist())) == 1
    rows = np.bincount(number, minlength=folds)
    assert rows.min() > 0
    assert rows.max() - rows.min() <= max(sizes)


@given(sizes_of_groups, st.data())
def test_groups_of_several_classes_are_whole_and_in_every_fold(sizes, data):
    groups = np.repeat(np.arange(len(sizes)), sizes)
    labels = np.random.default_rng(data.draw(st.integers(0, 5))).choice([0, 2, 3], groups.size)
    folds = data.draw(st.integers(2, len(sizes)))
    number = deal_groups(labels, groups, folds, 0)
    assert set(number.tolist()) == set(range(folds))
    assert len(set(zip(groups.tolist(), number.tolist(), strict=True))) == len(sizes)


def test_groups_are_stratified_as_well_as_by_scikit_learn():
    """The spread of the classes over folds: mean over draws, against StratifiedGroupKFold."""

    def spread(number, labels):
        shares = np.array([np.bincount(labels[number == fold], minlength=2) for fold in range(5)]) / np.bincount(labels)
        return shares.std(axis=0).mean()

    ours, theirs = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        groups = np.sort(rng.integers(0, 40, 300))
        groups = np.unique(groups, return_inverse=True)[1]
        labels = (rng.random(300) < rng.beta(1, 4, 40)[groups % 40]).astype(np.int64)
        ours.append(spread(deal_groups(labels, groups, 5, seed), labels))
        number = np.empty(300, np.int64)
        for fold, (_, test) in enumerate(StratifiedGroupKFold(5).split(groups[:, None], labels, groups)):
            number[test] = fold
        theirs.append(spread(number, labels))
    assert np.mean(ours) < 1.2 * np.mean(theirs)


def test_the_seed_decides():
    labels, groups = ROWS % 2, np.unique(GROUPS, return_inverse=True)[1]
    for dealt in (lambda seed: deal(labels, 5, seed), lambda seed: deal_groups(labels, groups, 3, seed)):
        same = [dealt(seed).tolist() for seed in (1, 1, 2)]
        assert same[0] == same[1]
        assert same[0] != same[2]


# Every form


def test_a_number_is_stratified_for_classes():
    made = make_folds(3, dataset(CLASSES))
    for _, test in pairs(made):
        assert (CLASSES[test] == "rare").mean() == pytest.approx(1 / 3, abs=0.1)
    assert (made.text, made.dealt, made.training) == ("3 folds", True, None)
    assert make_folds("3", dataset(CLASSES)).number.tolist() == made.number.tolist()
    assert make_folds(np.int64(3), dataset(CLASSES)).number.tolist() == made.number.tolist()


def test_a_number_with_groups_keeps_them_whole():
    made = make_folds(3, dataset(groups=GROUPS))
    assert all(len(set(made.number[group == GROUPS])) == 1 for group in "abcdefg")
    assert made.text == "3 folds of whole groups"


@pytest.mark.parametrize(
    ("text", "splitter", "groups"),
    [
        ("loo", LeaveOneOut(), None),
        ("logo", LeaveOneGroupOut(), GROUPS),
        ("time:2", TimeSeriesSplit(2), None),
        ("time:5", TimeSeriesSplit(5), None),
        ("time:23", TimeSeriesSplit(23), None),
        (" LOO", LeaveOneOut(), None),
    ],
)
def test_texts_are_scikit_learns_splitters(text, splitter, groups):
    data = dataset(groups=groups)
    expected = list(splitter.split(data.X, data.Y[0], groups))
    made = make_folds(text, data)
    same_pairs(made, expected)
    same_pairs(make_folds(splitter, data), expected)
    same_pairs(make_folds(iter(expected), data), expected)
    assert not made.dealt


@pytest.mark.parametrize(
    "splitter",
    [
        KFold(5),
        KFold(4, shuffle=True, random_state=0),
        StratifiedKFold(3),
        GroupKFold(3),
        StratifiedGroupKFold(3),
        TimeSeriesSplit(4, gap=2),
        TimeSeriesSplit(3, max_train_size=4),
        PredefinedSplit(np.where(ROWS < 6, -1, ROWS % 3)),
        ShuffleSplit(1, random_state=0),
    ],
    ids=lambda splitter: type(splitter).__name__,
)
def test_splitters_are_asked(splitter):
    groups = GROUPS if "Group" in type(splitter).__name__ else None
    data = dataset(CLASSES, groups=groups)
    made = make_folds(splitter, data)
    same_pairs(made, splitter.split(data.X, CLASSES, groups))
    assert (made.training is None) == ("Time" not in type(splitter).__name__)


def test_a_splitter_of_several_targets_and_of_numbers():
    seen = []

    class Spy:
        def split(self, X, y, groups):
            seen.append((X.shape, y.shape, groups))
            return KFold(3).split(X)

    make_folds(Spy(), dataset())
    make_folds(Spy(), from_arrays(ROWS[:, None], np.stack([ROWS / 7, ROWS**2], axis=1)))
    make_folds(Spy(), dataset(CLASSES))
    assert seen == [((N, 1), (N,), None), ((N, 1), (N, 2), None), ((N, 1), (N,), None)]


@pytest.mark.parametrize(
    "form",
    [
        np.asarray,
        list,
        pd.Series,
        lambda folds: folds.astype(float),
        lambda folds: 10 * folds + 7 * (folds >= 0),  # gaps between the numbers
        lambda folds: np.array(list("bcdefgh"))[folds + 1] if (folds >= 0).all() else folds,
    ],
)
@pytest.mark.parametrize("least", [0, -1], ids=["all", "some never"])
def test_the_fold_of_each_row(form, least):
    folds = ROWS % (4 - least) + least
    made = make_folds(form(folds), dataset())
    np.testing.assert_array_equal(made.number, folds)
    assert made.training is None
    assert made.text == "4 folds as given" + (", 5 rows never held out" if least else "")
    assert (made.order[made.starts[-1] :] == np.flatnonzero(folds < 0)).all()
    for j in range(4):
        np.testing.assert_array_equal(made.order[made.starts[j] : made.starts[j + 1]], np.flatnonzero(folds == j))


def test_rows_of_weight_0_are_as_if_they_were_not_there():
    weights = np.where(ROWS % 5, 1.0, 0.0)
    kept = np.flatnonzero(weights)
    data, bare = dataset(weights=weights, groups=GROUPS), from_arrays(kept[:, None], kept / 7, groups=GROUPS[kept])
    for folds in (3, "logo", GroupKFold(3)):
        np.testing.assert_array_equal(make_folds(folds, data).number, make_folds(folds, bare).number)
    given_folds = np.unique(GROUPS, return_inverse=True)[1]
    np.testing.assert_array_equal(make_folds(given_folds, data).number, make_folds(given_folds[kept], bare).number)
    data = dataset(weights=weights)
    bare = from_arrays(kept[:, None], kept / 7)
    np.testing.assert_array_equal(make_folds("time:3", data).training, make_folds("time:3", bare).training)
    # A fold all of whose rows are left out is no fold; its fit isn't made.
    made = make_folds([([1, 2, 6], [0, 5]), ([1, 2, 5], [3]), ([2, 5], [4, 6])], data)
    assert made.number[:6].tolist() == [-1, -1, 0, 1, 1, -1]
    same_pairs(made, [([0, 1], [2]), ([1], [3, 4])])


@given(st.lists(st.integers(-1, 4), min_size=3, max_size=30).filter(lambda f: len(set(f)) > 1))
def test_every_row_is_in_the_order_once_and_folds_are_the_given_ones(folds):
    folds = np.array(folds)
    made = make_folds(folds, from_arrays(np.arange(folds.size)[:, None], np.arange(folds.size) / 7))
    assert sorted(made.order.tolist()) == list(range(folds.size))
    assert made.starts[-1] == np.count_nonzero(folds >= 0)
    assert made.starts.size - 1 == len(set(folds[folds >= 0].tolist()))
    assert (np.diff(made.starts) > 0).all()


# What can't be


class Splitting:
    """A splitter that gives what it is made of."""

    def __init__(self, *given):
        self.given = given

    def split(self, X, y=None, groups=None):
        return self.given


@pytest.mark.parametrize(
    ("folds", "roles", "message"),
    [
        (1, {}, "1 folds can't be made of 24 rows: use 2 to 24 folds"),
        (2.5, {}, "2.5 folds can't be made of 24 rows"),
        (25, {}, "25 folds can't be made of 24 rows"),
        (8, {"groups": GROUPS}, "8 folds can't be made of 7 groups: use 2 to 7 folds"),
        (2, {"groups": ["a"] * N}, "all rows are of one group, and groups are held out whole: no row would be left"),
        ("logo", {"groups": ["a"] * N}, "all rows are of one group"),
        ("logo", {}, "leaving one group out needs groups: name the column, or give an array"),
        ("loo", {"groups": GROUPS}, "leave one out, 24 folds: rows 1 and 2 are of one group but not in one fold"),
        (
            "time:3",
            {"groups": GROUPS},
            "3 folds in the order of the rows: rows 4 and 7 are of one group but not in one",
        ),
        ("time:1", {}, "folds 'time:1': there must be at least 2"),
        ("time:24", {}, "24 folds in the order of time can't be made of 24 rows: use at most 23"),
        ("kfold", {}, "folds 'kfold' is unknown; it is a number of folds, loo, logo .* or time:N"),
        ("log", {}, "folds 'log' is unknown; did you mean 'logo'"),
        (True, {}, "folds can't be True"),
        (None, {}, "folds can't be None: give a number of folds, loo"),
        (ROWS[:5], {}, r"the folds: there must be one for each of the 24 rows, not shape \(5,\)"),
        (np.full(N, 3), {}, "1 fold as given: the fit of fold 1 has no row to be trained on"),
        (np.full(N, -1), {}, "0 folds as given, 24 rows never held out: no row is held out"),
        (ROWS / 2, {}, "the folds must be whole numbers or text, but row 2 has 0.5"),
        (ROWS > 2, {}, "the folds must be whole numbers or text, not bool"),
        (np.where(ROWS == 3, np.nan, 1.0), {}, "the folds: row 4 has none; give -1 to rows that are never held out"),
        (pd.Series([None, *"abc" * 8][:N], name="cv"), {}, "the folds in column 'cv': row 1 has none"),
        (ROWS % 2, {"groups": GROUPS}, "2 folds as given: rows 1 and 2 are of one group but not in one fold"),
        (
            RepeatedKFold(n_splits=3, n_repeats=2),
            {},
            "6 folds of RepeatedKFold, each row held out 2 times: here each row can be held out only once; give",
        ),
        (
            ShuffleSplit(5, random_state=0),
            {},
            "5 folds of ShuffleSplit, rows held out up to . times, .* such as KFold",
        ),
        (
            GroupKFold(3),
            {},
            "the splitter GroupKFold.* can't split these 24 rows: The 'groups' parameter should not be",
        ),
        (KFold(30), {}, "the splitter KFold.* can't split these 24 rows: Cannot have number of splits"),
        ([([0, 1], [1, 2])], {}, "folds as given: fold 1 trains on row 2, which it holds out"),
        ([([0, 0], [1, 2])], {}, "folds as given, fold 1: a row is listed twice; list it once, and give it weight 2"),
        ([([0], [1]), ([0], [24])], {}, "folds as given, fold 2: row numbers must be from 0 to 23, not 24 to 24"),
        ([([0], [-1])], {}, "row numbers must be from 0 to 23"),
        ([([], [1])], {}, "folds as given, fold 1 has no rows to train on; leave it out, or give it some"),
        ([([1], [2]), ([0], [])], {}, "folds as given, fold 2 has no rows to hold out; leave it out"),
        ([([0.5], [1])], {}, "rows to train on must be an array of row numbers, not array"),
        ([([0], [[1, 2, 3]] * 40)], {}, r"rows to hold out must be an array of row numbers, not array.* \.\.\.$"),
        ([(np.arange(24) < 9, np.arange(24) >= 9)], {}, r"not array.*; np.flatnonzero of a mask gives them$"),
        ([([0], [[1], [2, 3]])], {}, "fold 1 must be a pair: rows to train on, and rows to hold out, not .*2, 3"),
        (Splitting((np.arange(20), [20], [21])), {}, "folds of Splitting, fold 1 must be a pair: .*21"),
        (Splitting(), {}, "folds of Splitting: there are none; an iterator can be read only once: give a list"),
        ([], {}, "folds as given: there are none; an iterator"),
    ],
    ids=lambda value: str(value)[:40].replace("\n", " ") if not isinstance(value, dict) else ",".join(value),
)
def test_folds_that_cannot_be_are_one_clear_line(folds, roles, message):
    with pytest.raises(OptionError, match=message) as caught:
        make_folds(folds, dataset(**roles))
    assert "\n" not in str(caught.value)
