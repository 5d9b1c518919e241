"""A metric that decides among verified candidates whose scores can't be told from the best."""

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_regression
from sklearn.metrics import get_scorer

import kernsel
from kernsel import KernelClassifier, KernelRegressor
from kernsel.errors import OptionError
from kernsel.heldout.threshold import OF_DECISIONS, best_threshold, read_measure
from kernsel.search.choice import BY_METRIC, MOST

pytestmark = pytest.mark.filterwarnings("ignore::kernsel.errors.SelectionWarning")

QUICK = {"kernel": "gaussian", "grid": "coarse", "extend": False, "folds": 5}


@pytest.fixture(scope="module")
def classes():
    return make_classification(150, 6, weights=[0.8], class_sep=0.7, random_state=3)


@pytest.fixture(scope="module")
def numbers():
    X, y = make_regression(120, 5, noise=30.0, random_state=0)
    return X, y + 40 * np.abs(X[:, 0])


@pytest.mark.parametrize("metric", ["roc_auc", "f1", "balanced_accuracy", "neg_log_loss", "average_precision"])
def test_the_choice_has_the_highest_metric_of_those_within_the_limit(classes, metric):
    found = kernsel.select(*classes, select_by=metric, **QUICK)
    lowest = found.minimum
    tied = [
        c for c in found.candidates if metric in c.metrics and c.value <= lowest.value + BY_METRIC * lowest.score_se
    ]
    assert 2 < len(tied) <= MOST
    values = [c.metrics[metric].value for c in tied]
    assert found.best.metrics[metric].value == max(values) > min(values)
    assert (
        f"highest {metric} ({max(values):.5g}) among {len(tied)} candidates within 1 standard error " in found.summary()
    )
    assert found.to_dict()["options"]["select_by"] == metric
    known = sum(metric in c.metrics for c in found.candidates)
    assert f", the highest of {known}, so a little too high; nested tells an honest one\n" in found.summary()
    assert found.procedure is None
    assert any(f"{metric} decides, which is known of verified candidates only" in n for n in found.data["notes"])


def test_metrics_are_those_of_the_held_out_outputs(classes):
    X, y = classes
    found = kernsel.select(X, y, select_by="roc_auc", metric="accuracy", **QUICK)
    assert list(found.best.metrics) == ["accuracy", "roc_auc"]
    from sklearn.metrics import roc_auc_score

    assert found.best.metrics["roc_auc"].value == pytest.approx(roc_auc_score(y, found.outputs), abs=1e-12)


def cross_called(f, y, numbers, metric, score):
    """Call each fold by the threshold that is best for the others; all by 0 if that is no better."""
    called = f >= 0
    for fold in set(numbers):
        own = numbers == fold
        called[own] = f[own] >= best_threshold(read_measure(metric), f[~own], 2.0 * y[~own] - 1, np.ones((~own).sum()))
    return called if score(y, called) > score(y, f >= 0) else f >= 0


@pytest.mark.parametrize("metric", sorted(OF_DECISIONS))
def test_a_metric_of_decisions_brings_its_threshold_along(classes, metric):
    """GridSearchCV would compare decisions by 0; asking for the metric is asking for decisions that are good for it."""
    X, y = classes
    folds = np.arange(150) % 5
    options = QUICK | {"folds": folds, "select_by": metric, "metric": ["accuracy", "roc_auc"]}
    found = kernsel.select(X, y, **options)
    scorer = get_scorer(metric)

    def score(truth, called):
        return scorer._score_func(truth, called.astype(int), **scorer._kwargs)

    called = cross_called(found.outputs, y, folds, metric, score)
    assert found.best.metrics[metric].value == pytest.approx(score(y, called), abs=1e-12)
    assert found.best.metrics["accuracy"].value == pytest.approx(np.mean(y == called), abs=1e-12)
    threshold = found.model.threshold
    assert (threshold.best_for, threshold.after) == (metric, pytest.approx(score(y, called), abs=1e-12))
    assert threshold.after > threshold.before
    np.testing.assert_array_equal(found.model.predict(X), found.model.decision(X) >= threshold.value)
    assert found.options["threshold_for"] == metric
    assert f"threshold: the best for {metric}, as that decides; threshold_for none keeps it at 0" in found.data["notes"]
    assert ", by a threshold of 0)\n" in found.summary()
    plain = kernsel.select(X, y, **options, threshold_for="none")
    assert (plain.model.threshold, plain.options["threshold_for"]) == (None, None)
    at_zero = score(y, plain.outputs >= 0)
    assert plain.best.metrics[metric].value == pytest.approx(at_zero, abs=1e-12)
    assert plain.best.metrics["roc_auc"].value > 0.5
    other = kernsel.select(X, y, **options, threshold_for="cost(fp=1,fn=9)")
    assert other.model.threshold.best_for == "cost(fp=1,fn=9)"


def test_where_no_threshold_is_better_none_is_said_to_be_the_best():
    """Two classes of one size that are told apart: 0 is as good for f1 as any threshold."""
    X, y = make_classification(150, 6, class_sep=3, flip_y=0, random_state=3)
    found = kernsel.select(X, y, select_by="f1", **QUICK)
    assert found.model.threshold.value == 0
    assert "threshold: 0, as no other one is better for f1" in found.summary()
    assert not any(note.startswith("threshold:") for note in found.data["notes"])


@pytest.mark.parametrize("metric", ["accuracy", "roc_auc", "recall", "neg_log_loss"])
def test_other_metrics_bring_none(classes, metric):
    assert kernsel.select(*classes, select_by=metric, **QUICK).model.threshold is None


def test_no_threshold_for_three_classes():
    found = kernsel.select(*make_classification(90, 6, n_informative=4, n_classes=3), select_by="f1_macro", **QUICK)
    assert found.model.threshold is None


def test_no_other_candidate_is_chosen_where_the_metric_says_nothing(classes):
    """Within 0 standard errors one candidate is left: that of the lowest score."""
    X, y = classes
    by_metric = kernsel.select(X, y, select_by="roc_auc", within=0, **QUICK)
    assert by_metric.best.key == kernsel.select(X, y, choose="minimum", **QUICK).best.key


@pytest.mark.parametrize("metric", ["r2", "neg_mean_squared_error", "neg_root_mean_squared_error"])
def test_functions_of_the_square_loss_leave_the_rule_of_choice(numbers, metric):
    found, plain = kernsel.select(*numbers, scoring=metric, **QUICK), kernsel.select(*numbers, **QUICK)
    assert found.best.key == plain.best.key
    assert metric in found.best.metrics
    assert any(note.startswith(f"select by {metric}: it puts candidates in the order") for note in found.data["notes"])
    assert found.options["select_by"] is None
    other = kernsel.select(*numbers, scoring=metric, learner="svr", **QUICK)
    assert other.options["select_by"] == metric  # another loss


def test_the_absolute_error_decides(numbers):
    found = kernsel.select(*numbers, select_by="neg_mean_absolute_error", **QUICK)
    known = [c.metrics["neg_mean_absolute_error"].value for c in found.candidates if c.metrics]
    assert found.best.metrics["neg_mean_absolute_error"].value == max(known)


def test_learnt_relevances_are_compared_by_the_metric_without_the_rows(classes):
    X, y = classes
    found = kernsel.select(X, y, kernel="auto", effort="thorough", scoring="roc_auc", folds=3, grid="coarse")
    relevant = found.data.get("relevances")
    expected = get_scorer("roc_auc")._score_func(y, found.outputs)
    assert found.best.metrics["roc_auc"].value == pytest.approx(expected, abs=1e-12)
    assert relevant is None or relevant["unseen"]


def test_estimators_understand_scoring(classes, numbers):
    X, y = classes
    model = KernelClassifier(scoring="roc_auc", **QUICK).fit(X[:100], y[:100])
    assert model.selection_.options["select_by"] == "roc_auc"
    assert model.best_score_ == model.selection_.best.metrics["roc_auc"].value
    assert model.score(X[100:], y[100:]) == get_scorer("roc_auc")(model, X[100:], y[100:])
    weights = 1.0 + np.arange(50) % 2
    expected = get_scorer("roc_auc")(model, X[100:], y[100:], sample_weight=weights)
    assert model.score(X[100:], y[100:], weights) == expected
    plain = KernelClassifier(**QUICK).fit(X[:100], y[:100])
    assert plain.score(X[100:], y[100:]) == np.mean(plain.predict(X[100:]) == y[100:])
    X, y = numbers
    absolute = KernelRegressor(select_by="neg_mean_absolute_error", **QUICK).fit(X[:80], y[:80])
    assert absolute.score(X[80:], y[80:]) == pytest.approx(-np.abs(absolute.predict(X[80:]) - y[80:]).mean())
    with pytest.raises(OptionError, match="'scoring' and 'select_by' are one option"):
        KernelRegressor(scoring="r2", select_by="neg_mean_absolute_error", **QUICK).fit(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"select_by": ["roc_auc", "f1"]}, "the name of one of scikit-learn's scorers"),
        ({"scoring": len}, "the name of one of scikit-learn's scorers"),
        ({"select_by": "roc"}, "metric 'roc' is none of scikit-learn's scorers"),
        ({"select_by": "r2"}, "metric 'r2' is for a regression, and this is a classification"),
        ({"select_by": "f1", "choose": "one-se"}, "choose 'one-se' and select_by 'f1': each says what decides"),
        ({"select_by": "f1", "choose": "minimum"}, "choose 'minimum' and select_by 'f1'"),
        ({"select_by": "f1", "verify": 0}, "select_by 'f1' compares verified candidates"),
        ({"select_by": "neg_log_loss", "calibration": "none"}, "calibration"),
    ],
)
def test_what_cannot_decide_is_said_in_one_line(classes, options, message):
    with pytest.raises(OptionError, match=message) as caught:
        kernsel.select(*classes, **QUICK, **options)
    assert "\n" not in str(caught.value)
