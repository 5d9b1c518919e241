"""Splits whose test sets overlap: every score is the mean over refits, each row once for each time it is held out."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import (
    GroupShuffleSplit,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    LeavePGroupsOut,
    LeavePOut,
    PredefinedSplit,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
    cross_val_score,
)

import kernsel
import tables
import twins.heldout
import twins.losses
from kernsel import KernelClassifier, KernelRegressor
from kernsel.data import from_arrays
from kernsel.errors import OptionError
from kernsel.folds import make_deals
from kernsel.kernels import Gaussian
from kernsel.selection import procedure
from kernsel.selection.carry_out import select_dataset
from kernsel.selection.plan import Plan
from kernsel.selection.setting import resolve

N = 16
GROUPS = np.array(list("aabbbccdddeeffgg"))
WEIGHTS = 1.0 + np.arange(N) % 3
LAM, TAU = 0.05, 1.0

PAIRS = [(np.arange(8), [8, 9, 10]), (np.arange(4, 16), [0, 1, 2]), (np.r_[2:9], [9, 10, 11, 0]), ([5, 6, 7], [0])]
SPLITTERS = [
    ShuffleSplit(5, test_size=0.25, random_state=1),
    ShuffleSplit(4, test_size=0.2, train_size=0.6, random_state=2),
    ShuffleSplit(3, test_size=0.7, random_state=3),
    StratifiedShuffleSplit(4, test_size=0.3, random_state=1),
    GroupShuffleSplit(4, test_size=0.3, random_state=1),
    RepeatedKFold(n_splits=3, n_repeats=3, random_state=1),
    RepeatedStratifiedKFold(n_splits=4, n_repeats=2, random_state=1),
    LeavePOut(2),
    LeavePGroupsOut(2),
    LeaveOneGroupOut(),
    LeaveOneOut(),
    KFold(3),
    PredefinedSplit(np.where(np.arange(N) < 5, -1, np.arange(N) % 3)),
    TimeSeriesSplit(3),
    PAIRS,
]
splitters = pytest.mark.parametrize("splitter", SPLITTERS, ids=lambda each: type(each).__name__)


def rows_of(splitter, learner, weights=None):
    """A table with groups where the splitter wants some, and the pairs of rows that it makes of it."""
    X, y = tables.waves(N) if learner == "krr" else tables.circles(N)
    groups = GROUPS if "Group" in type(splitter).__name__ else None
    data = from_arrays(X, y, standardize=False, weights=weights, groups=groups)
    if isinstance(splitter, list):
        return data, [tuple(map(np.asarray, pair)) for pair in splitter]
    return data, list(splitter.split(X, y, groups))


def select(data, splitter, learner, **options):
    grid = {"grid": {"tau": [TAU], "lambda": [LAM]}, "kernel": "gaussian", "extend": False, "clip": False}
    return select_dataset(data, folds=splitter, learner=learner, **{**grid, **options})


def refitted(data, pairs, learner):
    """Held-out outputs (rows of a pair,) of each pair, by a fit on its training rows alone."""
    K, Y = Gaussian(TAU)(data.X), data.Y[0]
    s = np.ones(data.n) if data.weights is None else data.weights
    for train, test in pairs:
        if learner == "svm":
            Z = twins.heldout.features(K)
            w = twins.heldout.fit(twins.losses.huber_hinge(0.5), Z[train], Y[train], s[train], LAM)
            yield Z[test] @ w
        else:
            a = twins.heldout.fit_square(K[np.ix_(train, train)], Y[train], s[train], LAM, int(learner == "lssvm"))
            yield K[np.ix_(test, train)] @ a[:-1] + a[-1]


LEARNERS = {"krr": "krr", "lssvm": "lssvm", "svm": "svm(h=0.5, bias=false)"}


@splitters
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("criterion", ["newton-cv", "cv"])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["", "weights"])
def test_scores_are_means_over_refits(splitter, learner, criterion, weights):
    if learner == "krr" and "Stratified" in type(splitter).__name__:
        pytest.skip("of classes only")
    data, pairs = rows_of(splitter, learner, weights)
    best = select(data, splitter, LEARNERS[learner], criterion=criterion, verify=1).best
    s = np.ones(N) if weights is None else weights
    losses = [
        best.learner.loss.value(data.Y[:, test], f[None])[0]
        for (_, test), f in zip(pairs, refitted(data, pairs, learner), strict=True)
    ]
    weight = sum(s[test].sum() for _, test in pairs)
    expected = sum(s[test] @ each for (_, test), each in zip(pairs, losses, strict=True)) / weight
    tolerance = 1e-6 if learner == "svm" else 1e-10
    assert best.verified == pytest.approx(expected, abs=tolerance)
    if learner != "svm" or criterion == "cv":
        assert best.score == pytest.approx(expected, abs=tolerance)
    if weights is None and len({len(test) for _, test in pairs}) == 1:  # as scikit-learn has it
        assert best.verified == pytest.approx(np.mean([each.mean() for each in losses]), abs=tolerance)


@pytest.mark.parametrize(
    "cv",
    [ShuffleSplit(6, test_size=0.2, random_state=0), RepeatedKFold(n_splits=4, n_repeats=2, random_state=0)],
    ids=lambda each: type(each).__name__,
)
def test_an_estimators_score_is_that_of_cross_val_score(cv):
    X, y = tables.waves(40)
    y = (y - y.mean()) / y.std()
    grid = {"tau": [TAU], "lambda": [LAM]}
    ours = KernelRegressor(kernel="gaussian", learner="krr", grid=grid, extend=False, cv=cv, clip=False,
                           standardize=False).fit(X, y)  # fmt: skip
    train = len(next(cv.split(X))[0])
    ridge = KernelRidge(kernel="rbf", gamma=1 / (2 * TAU), alpha=train * LAM)
    scores = cross_val_score(ridge, X, y, cv=cv, scoring="neg_mean_squared_error")
    assert ours.best_score_ == pytest.approx(scores.mean(), abs=1e-10)
    assert ours.selection_.data["folds"] == cv.get_n_splits(X)


@pytest.mark.parametrize(
    "cv",
    [ShuffleSplit(4, test_size=0.2), StratifiedShuffleSplit(4), RepeatedStratifiedKFold(n_splits=3, n_repeats=2)],
    ids=lambda each: type(each).__name__,
)
def test_a_splitter_without_a_seed_splits_by_that_of_the_selection(cv):
    X, y = tables.circles(40)
    fits = [KernelClassifier(kernel="gaussian", cv=cv, seed=seed).fit(X, y) for seed in (1, 1, 2)]
    assert fits[0].best_score_ == fits[1].best_score_ != fits[2].best_score_
    stream = np.random.RandomState(0)
    data = from_arrays(X, y)
    one, other = (make_deals(ShuffleSplit(4, random_state=stream), data)[0].number for _ in range(2))
    np.testing.assert_array_equal(one, other)


def test_each_row_is_held_out_for_the_nth_time_in_the_nth_deal():
    data = from_arrays(np.arange(6.0)[:, None], np.arange(6.0))
    deals = make_deals([([0, 1, 2], [3, 4, 5]), ([3, 4, 5], [0, 1]), ([0, 5], [1, 4])], data)
    assert [deal.number.tolist() for deal in deals] == [[1, 1, -1, 0, 0, 0], [-1, 0, -1, -1, 0, -1]]
    assert [np.flatnonzero(kept).tolist() for kept in deals[0].training] == [[0, 1, 2], [3, 4, 5]]
    assert np.flatnonzero(deals[1].training[0]).tolist() == [0, 5]
    assert {deal.text for deal in deals} == {"3 folds as given, rows held out up to 2 times, 1 row never held out"}
    repeated = make_deals(RepeatedKFold(n_splits=3, n_repeats=4, random_state=0), data)
    assert [deal.training for deal in repeated] == [None] * 4
    assert repeated[0].text == "12 folds of RepeatedKFold, each row held out 4 times"


def test_what_is_reported_of_rows_is_of_the_first_fit_without_them():
    """Outputs, probabilities and the model's threshold are there for every row that is held out at all."""
    X, y = tables.circles(60, flips=0.05)
    cv = ShuffleSplit(5, test_size=0.2, random_state=0)
    grid = {"tau": [0.5, 1.0], "lambda": [0.01]}
    result = tables.choose(X, y, folds=cv, kernel="gaussian", select_by="f1", grid=grid, extend=False)
    times = np.bincount(np.concatenate([test for _, test in cv.split(X)]), minlength=60)
    np.testing.assert_array_equal(np.isfinite(result.outputs), times > 0)
    np.testing.assert_array_equal(np.isfinite(result.probabilities).all(axis=1), times > 0)
    assert f"5 folds of ShuffleSplit, rows held out up to {times.max()} times" in result.summary()
    assert 0.5 < result.best.metrics["f1"].value <= 1


@pytest.mark.parametrize("cv", [ShuffleSplit(5, test_size=0.2, random_state=0), RepeatedKFold(n_splits=4, n_repeats=2)],
                         ids=lambda each: type(each).__name__)  # fmt: skip
def test_the_error_of_the_whole_selection_counts_rows_as_the_scores_do(cv):
    X, y = tables.waves(50)
    data = from_arrays(X, y)
    plan = Plan(folds=cv, kernel="gaussian")
    setting = resolve(data, plan, ["gaussian"])
    search = setting.begin(None)
    search.run()
    board = search.board
    best = next(c for c in board.candidates() if c.failed is None)
    values, _ = procedure.average_deals(board, board.losses[best.key])
    s = procedure.often(board)
    assert best.score == pytest.approx(values @ s / s.sum(), rel=1e-5)  # single precision
    result = kernsel.select(X, y, folds=cv, kernel="gaussian")
    assert result.procedure is not None
    assert result.procedure.low < result.best.error < result.procedure.high


def test_rows_near_what_any_split_holds_out_are_left_out_of_its_fit():
    data = from_arrays(np.arange(12.0)[:, None], np.arange(12.0), near={"purge": 1})
    pairs = [(np.setdiff1d(np.arange(12), test), test) for test in ([3, 4], [4, 5], [9])]
    deals = make_deals(pairs, data)
    kept = [np.flatnonzero(~row).tolist() for row in deals[0].training]
    assert kept == [[2, 3, 4, 5], [3, 4, 5, 6], [8, 9, 10]]
    assert np.flatnonzero(~deals[1].training[0]).tolist() == [3, 4, 5, 6]


def test_groups_stay_whole():
    data, _ = rows_of(GroupShuffleSplit(2, random_state=0), "krr")
    pairs = list(SPLITTERS[0].split(data.X))
    with pytest.raises(OptionError, match="5 folds as given, .* are of one group but not in one fold"):
        make_deals(pairs, data)


def test_more_deals_than_anyone_waits_for():
    X, y = tables.waves(150)
    most = "101 of them, and maybe not all, hold out row 1 more than 100 times, which is the most; use RepeatedKFold"
    with pytest.raises(OptionError, match=f"folds of LeavePOut: {most}"):
        KernelRegressor(cv=LeavePOut(2)).fit(X, y)


def test_a_nested_estimate_takes_them_inside_alone():
    X, y = tables.waves(40)
    cv = ShuffleSplit(4, test_size=0.2, random_state=0)
    grid = {"tau": [1.0, 4.0], "lambda": [0.01]}
    found = kernsel.nested(X, y, outer=3, folds=cv, kernel="gaussian", grid=grid)
    assert len(found.folds) == 3
    with pytest.raises(OptionError, match="4 folds of ShuffleSplit, .*: here each row can be held out only once"):
        kernsel.nested(X, y, outer=cv, kernel="gaussian")
