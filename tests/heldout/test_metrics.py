"""Metrics: scikit-learn's own functions on the held-out predictions, with weights and errors."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn import metrics as sklearn_metrics

import tables
from kernsel.errors import OptionError
from kernsel.folds.partition import Partition
from kernsel.heldout.metrics import Metrics
from kernsel.kernels import Statistics
from kernsel.selection.carry_out import select_dataset

FEW = {"grid": {"tau": [1.0, 3.0], "lambda": [1e-2, 1e-1]}, "folds": 5, "extend": False}


def test_two_classes():
    X, y = tables.circles()
    names = ["accuracy", "f1", "roc_auc", "average_precision", "neg_log_loss", "neg_brier_score", "balanced_accuracy"]
    result = tables.choose(X, y, metric=names, **FEW)
    truth, F, P = y == "out", result.outputs, result.probabilities[:, 1]
    labels = result.heldout == "out"
    expected = {
        "accuracy": sklearn_metrics.accuracy_score(truth, labels),
        "f1": sklearn_metrics.f1_score(truth, labels),
        "roc_auc": sklearn_metrics.roc_auc_score(truth, F),
        "average_precision": sklearn_metrics.average_precision_score(truth, F),
        "neg_log_loss": -sklearn_metrics.log_loss(truth, P),
        "neg_brier_score": -sklearn_metrics.brier_score_loss(truth, P),
        "balanced_accuracy": sklearn_metrics.balanced_accuracy_score(truth, labels),
    }
    best = result.best.metrics
    assert {name: best[name].value for name in names} == pytest.approx(expected, rel=1e-6)
    assert best["accuracy"].value == pytest.approx(1 - result.best.error)
    assert best["accuracy"].se <= result.best.error_se * (1 + 1e-9)  # that between folds alone
    assert all(0 < best[name].se < 0.3 for name in names)
    assert all(set(each.metrics) == set(names) for each in result.candidates if each.verified is not None)


def test_the_other_kind_of_probabilities():
    X, y = tables.circles()
    result = tables.choose(X, y, metric="neg_log_loss", calibration="isotonic", **FEW)
    expected = -sklearn_metrics.log_loss(y == "out", result.probabilities[:, 1])
    assert result.best.metrics["neg_log_loss"].value == pytest.approx(expected, rel=1e-6)


def test_more_classes():
    X, y = tables.wine()
    names = ["accuracy", "f1_macro", "roc_auc_ovr", "neg_log_loss", "top_k_accuracy"]
    result = tables.choose(X, y, metric=names, grid={"tau": [8.0], "lambda": [1e-2]}, extend=False)
    P = result.probabilities
    expected = {
        "accuracy": sklearn_metrics.accuracy_score(y, result.heldout),
        "f1_macro": sklearn_metrics.f1_score(y, result.heldout, average="macro"),
        "roc_auc_ovr": sklearn_metrics.roc_auc_score(y, P, multi_class="ovr"),
        "neg_log_loss": -sklearn_metrics.log_loss(y, P),
        "top_k_accuracy": sklearn_metrics.top_k_accuracy_score(y, result.outputs, k=2),
    }
    assert {name: each.value for name, each in result.best.metrics.items()} == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("verify", [0, 2])
@pytest.mark.parametrize("criterion", ["cv", "fbif"])
def test_regressions_are_scored_in_the_units_of_the_target(verify, criterion):
    X, y = tables.waves(scale=50.0)
    names = ("r2", "neg_mean_absolute_error", "neg_root_mean_squared_error")
    result = tables.choose(X, y, metric=names, verify=verify, criterion=criterion, **FEW)
    expected = {
        "r2": sklearn_metrics.r2_score(y, result.heldout),
        "neg_mean_absolute_error": -sklearn_metrics.mean_absolute_error(y, result.heldout),
        "neg_root_mean_squared_error": -sklearn_metrics.root_mean_squared_error(y, result.heldout),
    }
    assert {name: each.value for name, each in result.best.metrics.items()} == pytest.approx(expected, rel=1e-6)
    assert sum(bool(each.metrics) for each in result.candidates) == max(1, verify)
    assert result.candidates[0] is result.best


def test_leave_one_out_has_a_pooled_value_and_an_error():
    X, y = tables.circles(40)
    result = tables.choose(X, y, metric="roc_auc", **{**FEW, "folds": 40})
    value, se = result.best.metrics["roc_auc"]
    assert value == pytest.approx(sklearn_metrics.roc_auc_score(y == "out", result.outputs))
    assert 0 < se < 0.2


def problem(weights=None, again=None, folds=4, n=24, seed=0):
    """Rows of two classes, the data set they belong to, and outputs; ``again`` repeats rows."""
    rng = np.random.default_rng(seed)
    X, y = tables.circles(n, seed)
    starts = np.arange(folds + 1) * n // folds
    F = np.where(y == "out", 0.5, -0.5) + rng.normal(size=n)
    again = np.arange(n) if again is None else again
    dataset = tables.from_arrays(X[again], y[again], weights=weights)
    bounds = np.searchsorted(again, starts)
    rows = Partition(dataset.X, dataset.Y, bounds, np.arange(again.size), Statistics(X), weights=dataset.weights)
    return rows, dataset, F[again][None]


@pytest.mark.parametrize("name", ["accuracy", "balanced_accuracy", "roc_auc", "average_precision", "f1"])
def test_a_weight_of_two_is_a_repeated_row(name):
    weights = np.random.default_rng(1).integers(1, 4, 24)
    rows, dataset, F = problem(weights.astype(float))
    weighted = Metrics.of(name, rows, dataset, None).evaluate(rows, F)
    rows, dataset, F = problem(again=np.repeat(np.arange(24), weights))
    repeated = Metrics.of(name, rows, dataset, None).evaluate(rows, F)
    assert weighted[name] == pytest.approx(repeated[name])
    rows, dataset, F = problem()
    assert weighted[name].value != pytest.approx(Metrics.of(name, rows, dataset, None).evaluate(rows, F)[name].value)


def test_weights_of_classes_do_not_count():
    """They say what a mistake costs: the share of mistakes and the probabilities are those of the rows as they are."""
    X, y = tables.circles(200, flips=0.2)
    y = np.where(np.random.default_rng(3).random(200) < 0.75, "in", y)
    data = tables.from_arrays(X, y, class_weight="balanced")
    result = select_dataset(data, metric=["accuracy", "neg_brier_score"], **FEW)
    assert result.best.metrics["accuracy"].value == pytest.approx(np.mean(result.heldout == y))
    share = np.mean(y == "out")
    assert share < 0.2
    assert result.probabilities[:, 1].mean() == pytest.approx(share, abs=0.02)
    assert result.model.predict_proba(X)[:, 1].mean() == pytest.approx(share, abs=0.1)
    brier = np.mean((result.probabilities[:, 1] - (y == "out")) ** 2)
    assert result.best.metrics["neg_brier_score"].value == pytest.approx(-brier)
    both = tables.from_arrays(X, y, class_weight="balanced", weights=np.arange(1.0, 201.0))
    np.testing.assert_allclose(both.sample.plain, np.arange(1.0, 201.0))


def test_repeated_folds_have_the_mean_of_their_metrics():
    X, y = tables.circles()
    results = [tables.choose(X, y, metric="roc_auc", repeats=r, **{**FEW, "verify": 4}) for r in (1, 2, 3)]
    first, second, third = ({(c.kernel, c.lam): c.metrics["roc_auc"] for c in result.candidates} for result in results)
    for key in first:
        other = 2 * np.array(second[key]) - first[key]
        last = 3 * np.array(third[key]) - first[key] - other
        assert (0.5 < other[0] < 1) & (0.5 < last[0] < 1)
        assert not np.allclose(other, first[key])


def test_several_targets():
    X, y = tables.waves()
    Y = np.stack([y, 100 * y**2], axis=1)
    result = tables.choose(X, Y, metric=["r2", "neg_mean_absolute_error"], **FEW)
    assert result.best.metrics["r2"].value == pytest.approx(sklearn_metrics.r2_score(Y, result.heldout))
    error = sklearn_metrics.mean_absolute_error(Y, result.heldout)
    assert result.best.metrics["neg_mean_absolute_error"].value == pytest.approx(-error)


def test_rows_that_are_never_held_out_are_not_scored():
    rows, dataset, F = problem()
    partial = replace(rows, starts=rows.starts[:-1])
    F[:, partial.held :] = np.nan
    value = Metrics.of(["accuracy", "neg_log_loss"], partial, dataset, "sigmoid").evaluate(partial, F)
    expected = np.mean((F[0, : partial.held] >= 0) == (rows.Y[0, : partial.held] > 0))
    assert value["accuracy"].value == pytest.approx(expected)
    assert 0 > value["neg_log_loss"].value > -1.5


def test_an_output_of_zero_is_the_second_label():
    rows, dataset, F = problem()
    value = Metrics.of("recall", rows, dataset, None).evaluate(rows, np.zeros_like(F))
    assert value["recall"].value == 1.0


def test_without_a_fold_that_has_all_of_a_class_there_is_no_error():
    rows, dataset, F = problem()
    # All of one class are in one fold: without it there is no curve.
    order = np.argsort(rows.Y[0], kind="stable")
    few = int((rows.Y[0] < 0).sum())
    sorted_rows = replace(rows, Y=rows.Y[:, order], starts=np.array([0, few, 24]))
    value, se = Metrics.of("roc_auc", sorted_rows, dataset, None).evaluate(sorted_rows, F[:, order])["roc_auc"]
    assert 0 <= value <= 1
    assert se is None


def test_the_choice_warns_of_what_is_not_defined():
    X, y = tables.waves()
    positive = np.where(y > 0, y, 0.0)
    result = tables.choose(X, positive, metric="neg_mean_poisson_deviance", **FEW)
    assert result.best.metrics["neg_mean_poisson_deviance"].value is None
    said = "metric 'neg_mean_poisson_deviance' is not defined for the held-out predictions of the choice"
    assert said in result.warnings
    assert "held-out neg_mean_poisson_deviance: not defined" in result.summary()


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (
            "acuracy",
            "metric 'acuracy' is none of scikit-learn's scorers; did you mean 'accuracy' or .*get_scorer_names",
        ),
        ("f1_mcro", "did you mean '?f1_micro'?.* or 'f1_macro'"),
        ("zzz", r"none of scikit-learn's scorers; use one such as accuracy, .*; sklearn.metrics.get_scorer_names\(\)"),
        (7, "metric 7 is none of"),
        (["accuracy", "r2"], "metric 'r2' is for a regression, and this is a classification: use one such as accuracy"),
        ("f1_samples", "metric 'f1_samples' can't be computed here"),
    ],
)
def test_metrics_that_cannot_be_had_of_classes(metric, message):
    with pytest.raises(OptionError, match=message):
        tables.choose(*tables.circles(30), metric=[metric] if metric == 7 else metric, **FEW)


def test_metrics_that_cannot_be_had_of_other_data():
    X, y = tables.waves(30)
    with pytest.raises(OptionError, match="metric 'accuracy' is for a classification, and this is a regression"):
        tables.choose(X, y, metric="accuracy", **FEW)
    with pytest.raises(OptionError, match="metric 'neg_mean_squared_log_error' can't be computed here .*[Ll]og"):
        tables.choose(X, y - 100, metric="neg_mean_squared_log_error", **FEW)
    wine = tables.wine()
    for name in ("f1", "roc_auc"):
        with pytest.raises(OptionError, match=f"metric '{name}' can't be computed here"):
            tables.choose(*wine, metric=name, **FEW)
    rows, dataset, _ = problem(np.linspace(1, 2, 24))
    with pytest.raises(OptionError, match="can't be computed here .it takes no sample weights."):
        Metrics.of("adjusted_rand_score", rows, dataset, None)


def test_every_scorer_is_for_classes_or_for_a_regression():
    """A new scorer of scikit-learn that is on the wrong side would show here."""
    fits = {"classification": 0, "regression": 0}
    values = tables.from_arrays(tables.waves(24)[0], np.exp(tables.waves(24)[1]))
    classes, dataset, F = problem()
    regression = replace(classes, Y=values.Y)
    for name in sklearn_metrics.get_scorer_names():
        for rows, data in ((classes, dataset), (regression, values)):
            try:
                Metrics.of(name, rows, data, None).evaluate(rows, F)
            except OptionError as error:
                assert "is for a" in str(error) or "can't be computed" in str(error)  # noqa: PT017
            else:
                fits[data.task] += 1
    assert fits["classification"] > 35
    assert fits["regression"] > 10


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("roc_auc", "roc_auc_ovo, roc_auc_ovo_weighted, roc_auc_ovr or roc_auc_ovr_weighted"),
        ("f1", "f1_macro, f1_micro or f1_weighted"),
    ],
)
def test_a_metric_of_two_classes_names_those_of_more(name, others):
    X, y = tables.wine()
    with pytest.raises(OptionError, match=rf"metric '{name}' can't be computed here \(.*\); use {others}$"):
        tables.choose(X, y, select_by=name, **FEW)


def test_the_summary_and_the_table_have_them():
    result = tables.choose(*tables.circles(), metric=["roc_auc", "accuracy"], verify=2, **FEW)
    value, se = result.best.metrics["roc_auc"]
    assert f"  held-out roc_auc: {value:.4g} +- {se:.2g}" in result.summary().splitlines()
    assert result.table["roc_auc"].notna().sum() == result.table["accuracy_se"].notna().sum() == 2
    assert result.table.loc[0, "roc_auc"] == value
    document = result.to_dict()
    assert document["best"]["metrics"]["roc_auc"] == {"value": value, "se": se}
    assert document["candidates"][-1]["metrics"] == {}
    assert document["options"]["metrics"] == ["roc_auc", "accuracy"]
