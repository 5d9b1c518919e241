"""Selection on data as people have it: what is held out, what counts how much, several targets."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import KFold, RepeatedKFold, TimeSeriesSplit

import kernsel
import tables
import tolerances
import twins.heldout
import twins.losses
from kernsel.data import from_arrays
from kernsel.errors import OptionError, SelectionWarning
from kernsel.kernels import Gaussian
from kernsel.learners import Krr
from kernsel.selection.carry_out import select_dataset

GRID = {"tau": [1.0, 3.0], "lambda": [1e-2, 1e-1]}
PLAIN = {"grid": GRID, "extend": False}


def choose(X, y, *, weights=None, groups=None, class_weight=None, standardize=False, task="auto", **options):
    data = from_arrays(X, y, task, standardize, weights=weights, groups=groups, class_weight=class_weight)
    return select_dataset(data, **{**PLAIN, **options})


def figures(result):
    """All that was measured of every candidate, in the order of kernel and lambda."""
    rows = sorted(result.candidates, key=lambda c: (c.kernel.tau, c.lam))
    return np.array([[c.kernel.tau, c.lam, c.score, c.loss, c.error, c.error_se] for c in rows], dtype=float)


def data_of(learner, n):
    return tables.waves(n) if learner == "krr" else tables.circles(n)


learners = pytest.mark.parametrize("learner", ["krr", "svm"])


# Weights


@learners
@pytest.mark.parametrize("criterion", ["cv", "newton-cv"])
@pytest.mark.parametrize("rank", [None, 24])
def test_weight_2_is_a_repeated_row_through_the_whole_selection(learner, criterion, rank):
    """Weights of 0, 1 and 2 against rows left out and repeated, with the copies in one fold, scaling included."""
    X, y = data_of(learner, 24)
    count, folds = np.arange(24) % 3, np.arange(24) // 6
    again = np.repeat(np.arange(24), count)
    options = {"learner": learner, "criterion": criterion, "standardize": True, "rank": rank}
    weighted = choose(X, y, weights=count, folds=folds, **options)
    repeated = choose(X[again], y[again], folds=folds[again], **options)
    np.testing.assert_allclose(figures(weighted), figures(repeated), rtol=1e-6, atol=1e-8)
    assert (weighted.best.kernel, weighted.best.lam) == (repeated.best.kernel, repeated.best.lam)
    assert weighted.conversions == pytest.approx(repeated.conversions)
    np.testing.assert_allclose(weighted.outputs[again], repeated.outputs, atol=1e-5)
    np.testing.assert_allclose(weighted.model.decision(X), repeated.model.decision(X), atol=1e-5)
    assert np.isnan(weighted.outputs[count == 0]).all()
    assert weighted.data["weight"] == repeated.data["weight"] == repeated.data["rows"] == count.sum()


@learners
def test_weights_all_1_are_none(learner):
    X, y = data_of(learner, 30)
    plain, ones = choose(X, y, learner=learner, folds=5), choose(X, y, learner=learner, folds=5, weights=np.ones(30))
    np.testing.assert_allclose(figures(plain), figures(ones), rtol=1e-9)
    np.testing.assert_allclose(plain.outputs, ones.outputs, atol=1e-8)


def test_the_automatic_lambdas_are_those_of_the_repeated_rows():
    X, y = tables.waves(24)
    count = np.arange(24) % 3 + 1
    again = np.repeat(np.arange(24), count)
    for kernel in ("gaussian(tau=1)", "linear"):
        lams = [
            sorted(each.lam for each in choose(*data, kernel=kernel, folds=2, grid="auto", **roles).candidates)
            for data, roles in (((X, y), {"weights": count}), ((X[again], y[again]), {}))
        ]
        np.testing.assert_allclose(*lams, rtol=1e-9)


def test_the_error_of_balanced_classes_is_balanced():
    X, y = tables.circles(60)
    y = np.where(np.arange(60) < 12, "few", y)
    result = choose(X, y, class_weight="balanced", folds=5)
    assert result.best.error == pytest.approx(1 - balanced_accuracy_score(y, result.heldout))
    assert result.data["weight"] == pytest.approx(60)


# Standard errors


@given(st.lists(st.integers(1, 4), min_size=2, max_size=8), st.integers(0, 9))
@settings(max_examples=10)
def test_the_standard_error_is_the_jackknife_s_over_unequal_folds_or_that_of_rows(sizes, seed):
    """The jackknife that leaves out one fold at a time: with h_j = W / W_j, (1/t) sum (pseudo_j - v)^2 / (h_j - 1)."""
    n = sum(sizes)
    if n < 6:
        return
    X, y = tables.circles(n, seed=seed)
    if len(set(y)) == 1:
        return
    folds = np.repeat(np.arange(len(sizes)), sizes)
    result = choose(X, y, folds=folds, learner="krr", grid={"tau": [1.0], "lambda": [0.1]})
    wrong = (result.heldout != y).astype(float)
    t, h = len(sizes), n / np.array(sizes)
    without = np.array([wrong[folds != j].mean() for j in range(t)])
    pseudo = h * wrong.mean() - (h - 1) * without
    expected = math.sqrt(np.mean((pseudo - wrong.mean()) ** 2 / (h - 1)))
    assert result.best.error == pytest.approx(wrong.mean())
    binomial = math.sqrt(wrong.mean() * (1 - wrong.mean()) / (n - 1))
    assert result.best.error_se == pytest.approx(max(expected, binomial), abs=1e-12)
    if len(set(sizes)) == 1:
        means = np.array([wrong[folds == j].mean() for j in range(t)])
        assert expected == pytest.approx(means.std(ddof=1) / math.sqrt(t), abs=1e-12)


# Hold-outs


@learners
def test_leave_one_out_is_n_folds(learner):
    X, y = data_of(learner, 20)
    one, other = choose(X, y, learner=learner, folds="loo"), choose(X, y, learner=learner, folds=20)
    np.testing.assert_allclose(figures(one), figures(other), rtol=1e-8)
    assert one.data["folds"] == 20
    assert "(leave one out, 20 folds)" in one.summary()


@learners
@pytest.mark.parametrize("folds", [3, "logo"])
def test_groups_are_held_out_whole(learner, folds):
    """Each group has one point, many times: only a fit that has seen none of its rows can be wrong about it."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(6), 5)
    X, y = rng.normal(size=(6, 2))[groups], np.where(groups % 2, "a", "b")
    whole = choose(X, y, learner=learner, groups=groups, folds=folds, grid={"tau": [0.01], "lambda": [1e-3]})
    split = choose(X, y, learner=learner, folds=3, grid={"tau": [0.01], "lambda": [1e-3]})
    assert split.best.error == 0
    assert whole.best.error > 0.3
    assert whole.data["folds"] == (3 if folds == 3 else 6)


def test_a_splitter_and_a_column_are_the_same():
    X, y = tables.waves(30)
    number = np.empty(30, dtype=int)
    for fold, (_, test) in enumerate(KFold(4).split(X)):
        number[test] = fold
    one, other = choose(X, y, folds=KFold(4)), choose(X, y, folds=number)
    np.testing.assert_array_equal(figures(one), figures(other))
    assert one.options["folds"] == one.data["holdout"] == "4 folds of KFold"
    json.loads(one.to_json())


def test_fold_by_fold_the_outputs_are_those_of_refits():
    X, y = tables.waves(20)
    folds = np.arange(20) % 3
    result = choose(X, y, folds=folds, grid={"tau": [1.0], "lambda": [0.1]})
    order = np.argsort(folds, kind="stable")
    K, Y = Gaussian(1.0)(X), (y - y.mean()) / y.std()
    starts = np.r_[0, np.cumsum(np.bincount(folds))]
    expected = twins.heldout.refits_square(K[np.ix_(order, order)], Y[order], 0.1, starts)
    np.testing.assert_allclose(result.outputs[order], expected, atol=tolerances.exact(K, 0.1))


@learners
@pytest.mark.parametrize("criterion", ["cv", "newton-cv", "bif", "fbif"])
def test_rows_that_are_never_held_out_are_trained_on_and_have_no_outputs(learner, criterion):
    X, y = data_of(learner, 30)
    folds = np.arange(30) % 5 - 1
    result = choose(X, y, learner=learner, folds=folds, criterion=criterion)
    never = folds < 0
    assert np.isnan(result.outputs[never]).all()
    assert np.isfinite(result.outputs[~never]).all()
    if learner == "krr":
        assert np.isnan(result.heldout[never]).all()
        rmse = np.sqrt(np.mean((result.heldout - y)[~never] ** 2))
        assert result.best.error == pytest.approx(rmse)
    else:
        assert set(result.heldout[never]) == {None}
        assert result.best.error == pytest.approx(np.mean(result.heldout[~never] != y[~never]))
    assert "4 folds as given, 6 rows never held out" in result.summary()


def refits_in_time(K, Y, lam, splits):
    out = np.full(len(Y), np.nan)
    for train, test in splits:
        a = np.linalg.solve(K[np.ix_(train, train)] + train.size * lam * np.eye(train.size), Y[train])
        out[test] = K[np.ix_(test, train)] @ a
    return out


@pytest.mark.parametrize(
    "splitter", [TimeSeriesSplit(4), TimeSeriesSplit(3, gap=2), TimeSeriesSplit(2, max_train_size=5)]
)
def test_in_time_every_fit_knows_its_past_alone(splitter):
    X, y = tables.waves(25)
    folds = "time:4" if splitter.n_splits == 4 else splitter
    result = choose(X, y, folds=folds, grid={"tau": [1.0], "lambda": [0.1]})
    K, Y = Gaussian(1.0)(X), (y - y.mean()) / y.std()
    expected = refits_in_time(K, Y, 0.1, splitter.split(X))
    np.testing.assert_allclose(result.outputs, expected, atol=tolerances.exact(K, 0.1))
    assert result.criterion == "cv"
    assert any(note.startswith("criterion: cv, for a fold") for note in result.data["notes"])


def test_in_time_an_svm_is_refitted():
    X, y = tables.circles(30)
    result = choose(X, y, learner="svm(h=0.5, bias=false)", folds="time:3", grid={"tau": [1.0], "lambda": [0.1]})
    Z, Y = twins.heldout.features(Gaussian(1.0)(X)), np.where(y == "out", 1.0, -1.0)
    for train, test in TimeSeriesSplit(3).split(X):
        w = twins.heldout.fit(twins.losses.huber_hinge(0.5), Z[train], Y[train], np.ones(train.size), 0.1)
        np.testing.assert_allclose(result.outputs[test], Z[test] @ w, atol=1e-6)


def test_an_approximation_of_folds_in_time_is_refused():
    X, y = tables.circles(30)
    with pytest.raises(kernsel.errors.KernselError, match="cv"):
        choose(X, y, folds="time:3", criterion="bif")


def test_one_fold_has_no_standard_error():
    X, y = tables.waves(30)
    result = choose(X, y, folds=np.where(np.arange(30) < 10, 0, -1), criterion="cv")
    assert result.best.error_se is None
    assert json.loads(result.to_json())["best"]["error_se"] is None
    assert "+- " not in result.summary().splitlines()[2]


# Repeats


@learners
def test_repeats_are_means_over_deals(learner):
    X, y = data_of(learner, 30)
    data = from_arrays(X, y)
    options = {"learner": learner, "folds": 5, "seed": 3, "verify": 4, **PLAIN}
    three = select_dataset(data, repeats=3, **options)
    singles = [select_dataset(data, **options | {"folds": kernsel_folds(data, repeat)}) for repeat in range(3)]
    np.testing.assert_allclose(figures(three), np.mean([figures(each) for each in singles], axis=0), rtol=1e-7)
    assert all(c.verified is not None for c in three.candidates)
    by_pair = [{(c.kernel, c.lam): c.verified for c in each.candidates} for each in singles]
    for c in three.candidates:
        assert c.verified == pytest.approx(np.mean([found[c.kernel, c.lam] for found in by_pair]), rel=1e-7)
    first = select_dataset(data, **options)
    if (first.best.kernel, first.best.lam) == (three.best.kernel, three.best.lam):
        np.testing.assert_allclose(three.outputs, first.outputs, atol=1e-8)
    assert "5 folds, dealt 3 times" in three.summary()
    assert (three.data["repeats"], first.data["repeats"]) == (3, 1)


@pytest.mark.parametrize("verify", [0, 1])
def test_metrics_and_errors_by_target_are_means_over_deals(verify):
    X, y = tables.circles(40, flips=0.2)
    classes = from_arrays(X, y)
    targets = from_arrays(X, np.column_stack((*tables.waves(40)[1:], X[:, 0] ** 2)))
    options = {"grid": {"tau": [1.0], "lambda": [1e-3]}, "extend": False, "seed": 3, "verify": verify}

    def three_and_singles(data, **more):
        yield select_dataset(data, folds=5, repeats=3, **options, **more)
        for repeat in range(3):
            yield select_dataset(data, folds=kernsel_folds(data, repeat), **options, **more)

    three, *singles = three_and_singles(classes, learner="svm", metric=["roc_auc", "neg_log_loss"])
    for name, value in three.best.metrics.items():
        np.testing.assert_allclose(value, np.mean([each.best.metrics[name] for each in singles], axis=0), rtol=1e-7)
        assert value.value != pytest.approx(singles[0].best.metrics[name].value, rel=1e-7)
    three, *singles = three_and_singles(targets, learner="krr", clip=False)  # margins are those of all deals together
    for name, value in three.data["errors"].items():
        assert value == pytest.approx(np.mean([each.data["errors"][name] for each in singles]), rel=1e-7)
        assert value != pytest.approx(singles[0].data["errors"][name], rel=1e-7)


def kernsel_folds(data, repeat):
    """The fold of each row in deal number ``repeat`` of seed 3."""
    from kernsel.folds import deal

    labels = np.zeros(data.n, np.int64) if data.codes is None else data.codes
    return deal(labels, 5, 3 if repeat == 0 else (3, repeat))


def test_one_repeat_is_none_and_more_steady_the_choice():
    X, y = tables.circles(40, flips=0.3)
    one, plain = choose(X, y, repeats=1, folds=5), choose(X, y, folds=5)
    np.testing.assert_array_equal(figures(one), figures(plain))

    def spread(repeats):
        scores = [choose(X, y, learner="krr", folds=5, repeats=repeats, seed=seed).best.score for seed in range(10)]
        return np.std(scores)

    assert spread(8) < 0.6 * spread(1)


def test_a_candidate_that_fails_in_one_deal_has_failed():
    from kernsel.search.candidate import Candidate, averaged

    deals = [
        Candidate(Gaussian(1.0), 0.1, learner=Krr(), score=score, loss=1.0, error=0.5, error_se=0.1)
        for score in (1.0, 2.0)
    ]
    even = np.array([0.5, 0.5])
    assert averaged(deals, even).score == 1.5
    failed = averaged([deals[0], dataclasses.replace(deals[1], failed="it broke", score=math.inf)], even)
    assert (failed.failed, failed.score, failed.verified) == ("it broke", math.inf, None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"repeats": 0}, "repeats is how often the folds are dealt, a whole number from 1, not 0"),
        ({"repeats": 1.5}, "a whole number from 1, not 1.5"),
        (
            {"repeats": 2, "folds": "loo"},
            "repeats: there is one way only to make leave one out, 20 folds; give a number",
        ),
        ({"repeats": 2, "folds": np.arange(20) % 2}, "repeats: there is one way only to make 2 folds as given"),
        (
            {"repeats": 2, "folds": RepeatedKFold(n_splits=2, n_repeats=2)},
            "repeats: there is one way only to make 4 folds of RepeatedKFold, each row held out 2 times; give a number",
        ),
    ],
)
def test_repeats_that_make_no_sense(options, message):
    with pytest.raises(OptionError, match=message):
        choose(*tables.waves(20), **options)


# Several targets


def two_targets(n=40):
    X, y = tables.waves(n)
    return X, np.stack([100 * y + 7, y**2 + X[:, 0]], axis=1)


def test_each_of_several_targets_is_as_if_alone():
    X, Y = two_targets()
    both = choose(X, Y, folds=4, grid={"tau": [1.0], "lambda": [0.01]})
    alone = [choose(X, Y[:, j], folds=4, grid={"tau": [1.0], "lambda": [0.01]}) for j in (0, 1)]
    assert both.outputs.shape == both.heldout.shape == (40, 2)
    for j in (0, 1):
        np.testing.assert_allclose(both.outputs[:, j], alone[j].outputs, atol=1e-10)
        np.testing.assert_allclose(both.heldout[:, j], alone[j].heldout, atol=1e-8)
        np.testing.assert_allclose(both.model.predict(X)[:, j], alone[j].model.predict(X), atol=1e-7)
        assert both.data["errors"][f"y{j}"] == pytest.approx(alone[j].best.error)
    assert both.best.score == pytest.approx(np.mean([each.best.score for each in alone]))
    relative = [each.best.error / Y[:, j].std() for j, each in enumerate(alone)]
    assert both.best.error == pytest.approx(np.sqrt(np.mean(np.square(relative))))
    text = both.summary()
    assert max(map(len, text.splitlines())) <= 120
    assert "RMSE in standard deviations of the targets" in text
    assert f"each in its own units: y0 {alone[0].best.error:.4g}, y1 {alone[1].best.error:.4g}" in text
    assert json.loads(both.to_json())["data"]["target"] == ["y0", "y1"]


def test_a_saved_model_of_several_targets(tmp_path):
    X, Y = two_targets()
    result = choose(X, pd.DataFrame(Y, columns=["p", "q"]), folds=4)
    result.model.save(tmp_path / "model.npz")
    loaded = kernsel.load(tmp_path / "model.npz")
    assert loaded.target == ["p", "q"]
    np.testing.assert_array_equal(loaded.predict(X), result.model.predict(X))


def test_select_takes_it_all():
    X, y = tables.circles(40)
    roles = {"groups": np.arange(40) // 2, "weights": np.ones(40), "class_weight": {"in": 2.0}}
    with pytest.warns(SelectionWarning, match="edge of the grid|overturned"):
        result = kernsel.select(X, y, folds=4, repeats=2, **roles, **PLAIN)
    assert result.data["holdout"] == "4 folds of whole groups, dealt 2 times"
    assert result.data["weight"] == pytest.approx(40 + np.sum(y == "in"))
