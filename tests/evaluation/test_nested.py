"""Nested cross-validation: each outer fold is a selection that has never seen it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import get_scorer

import kernsel
import tables
from kernsel.criteria import NewtonCV
from kernsel.errors import OptionError, SelectionWarning
from kernsel.evaluation import nested

FEW = {"grid": tables.SMALL, "extend": False, "folds": 4}


@dataclass(frozen=True)
class Wrong(NewtonCV):
    """The share of wrong rows."""

    name: ClassVar[str] = "wrong"

    def measure(self, Y, F):
        return (Y * F <= 0).mean(axis=0)


@pytest.mark.parametrize("data", [tables.circles, tables.waves, lambda: tables.wine()], ids=["two", "values", "three"])
def test_each_fold_is_a_selection_without_its_rows(data):
    X, y = data()
    number = np.arange(len(X)) % 3
    result = nested(X, y, outer=number, **FEW)
    errors, constants = [], []
    for fold in range(3):
        out = number == fold
        values, counts = np.unique(y[~out], return_counts=True)
        largest = values[counts.argmax()] if y.dtype.kind != "f" else y[~out].mean()
        constants.extend((y[out] != largest) if y.dtype.kind != "f" else (y[out] - largest) ** 2)
        choice = kernsel.select(X[~out], y[~out], **FEW)
        predictions = choice.model.predict(X[out])
        np.testing.assert_array_equal(result.predictions[out], predictions)
        assert result.folds[fold].best.key == choice.best.key
        wrong = predictions != y[out]
        errors.append(wrong.mean() if y.dtype.kind != "f" else np.sqrt(((predictions - y[out]) ** 2).mean()))
        assert result.folds[fold].error == pytest.approx(errors[-1])
    sizes = np.bincount(number)
    power = 2 if y.dtype.kind == "f" else 1
    assert result.error**power == pytest.approx((np.array(errors) ** power) @ sizes / sizes.sum())
    constant = np.mean(constants)
    if y.dtype.kind != "f":  # or the largest class of all rows, if that is wrong less often
        constant = min(constant, 1 - np.unique(y, return_counts=True)[1].max() / len(y))
    assert result.baseline**power == pytest.approx(constant)
    assert result.to_dict()["baseline"] == {"error": result.baseline, "error_se": result.baseline_se}
    assert 0 < result.baseline_se < result.baseline
    assert result.reported == pytest.approx(np.mean([f.best.error for f in result.folds]))


def test_the_error_of_a_choice_among_many_on_noise_is_optimistic_and_the_nested_one_is_not():
    """Labels without any relation to the features: half of new rows are wrong, whatever is chosen."""
    rng = np.random.default_rng(0)
    found = []
    options = {"criterion": Wrong(), "grid": {"tau": 2.0 ** np.arange(-4, 8)}, "learner": "krr", "extend": False}
    for _ in range(6):
        X, y = rng.normal(size=(60, 4)), rng.permutation(np.repeat(["a", "b"], 30))
        found.append(nested(X, y, outer=5, folds=5, **options))
    assert np.mean([each.reported for each in found]) < 0.42
    assert 0.45 < np.mean([each.error for each in found]) < 0.56
    assert np.mean([each.optimism for each in found]) > 0.05


def test_a_data_frame_with_weights_and_groups():
    X, y = tables.circles(48)
    frame = pd.DataFrame(X, columns=["u", "v"]).assign(colour=np.where(X[:, 0] > 0, "red", "blue"))
    weights = np.ones(48)
    weights[:4] = 0.0
    result = nested(frame, pd.Series(y, name="where"), outer=3, weights=weights, groups=np.arange(48) // 2, **FEW)
    assert [p is None for p in result.predictions[:5]] == [True] * 4 + [False]
    assert sum(fold.rows for fold in result.folds) == 44
    assert result.to_dict()["error"] == result.error
    assert max(map(len, result.summary().splitlines()[:2])) <= 120


def test_rows_in_time_order_are_predicted_from_earlier_ones():
    X, y = tables.waves(40)
    result = nested(X, y, outer="time:3", **FEW)
    assert np.isnan(result.predictions[:10]).all()
    choice = kernsel.select(X[:10], y[:10], **FEW)
    np.testing.assert_allclose(result.predictions[10:20], choice.model.predict(X[10:20]))


def test_several_targets_count_in_their_own_units():
    X, y = tables.waves(40)
    Y = np.column_stack([y, 1000 * y])
    one, two = nested(X, y, outer=4, **FEW), nested(X, Y, outer=4, **FEW)
    assert two.error == pytest.approx(one.error / y.std(), rel=1e-6)


@pytest.mark.parametrize(
    ("data", "names"),
    [
        (tables.circles, ["roc_auc", "f1", "neg_log_loss"]),
        (tables.waves, ["neg_mean_absolute_error", "r2"]),
        (lambda: tables.wine(), ["roc_auc_ovr", "top_k_accuracy", "f1_macro"]),
    ],
    ids=["two", "values", "three"],
)
def test_metrics_are_those_of_the_rows_of_each_outer_fold_by_the_model_without_them(data, names):
    X, y = data()
    number = np.arange(len(X)) % 3
    result = nested(X, y, outer=number, metric=names[1:], select_by=names[0], **FEW)
    estimator = kernsel.KernelRegressor if y.dtype.kind == "f" else kernsel.KernelClassifier
    expected = {name: [] for name in names}
    for fold in range(3):
        out = number == fold
        numbers = y if y.dtype.kind == "f" else np.unique(y, return_inverse=True)[1]
        fitted = estimator(metric=names[1:], select_by=names[0], **FEW).fit(X[~out], numbers[~out])
        for name in names:
            expected[name].append(get_scorer(name)(fitted, X[out], numbers[out]))
            assert result.folds[fold].metrics[name] == pytest.approx(expected[name][-1], rel=1e-9)
    assert list(result.metrics) == [*names[1:], names[0]]
    for name, values in expected.items():
        reported = np.mean([fold.best.metrics[name].value for fold in result.folds])
        assert result.metrics[name] == pytest.approx(
            {"value": np.mean(values), "se": np.std(values, ddof=1) / 3**0.5, "reported": reported}, rel=1e-9
        )
        assert f"  {name}: {np.mean(values):.4g} +- " in result.summary()
    assert result.to_dict()["metrics"] == result.metrics


def test_an_error_by_thresholds_is_not_compared_with_one_by_zero():
    X, y = tables.circles(60)
    found = nested(X, y, outer=3, select_by="f1", **FEW)
    assert found.best_for == "f1"
    assert ", by a threshold of 0; rows are called by the best for f1 here\n" in found.summary()
    plain = nested(X, y, outer=3, select_by="f1", threshold_for="none", **FEW)
    assert plain.best_for is None
    assert f": an optimism of {plain.optimism:.2g}\n" in plain.summary()


def test_a_metric_of_rows_that_have_no_value_of_it_is_unknown():
    X, y = tables.circles(40)
    of_one_class = 2 * (y == y[0]) + np.arange(40) % 2
    result = nested(X, y, outer=of_one_class, metric="roc_auc", **FEW)
    assert result.metrics["roc_auc"]["value"] is result.metrics["roc_auc"]["se"] is None
    assert result.metrics["roc_auc"]["reported"] > 0
    assert "  roc_auc: has no value on the rows of any outer fold alone, too few or of one class:" in result.summary()
    assert result.to_dict()["folds"][0]["metrics"] == {"roc_auc": None}
    mixed = np.where(np.arange(40) % 3 == 0, 4, of_one_class)
    result = nested(X, y, outer=mixed, metric="roc_auc", **FEW)
    told = f" (1 of {len(set(mixed))}; without a value on the others, too few rows or of one class); "
    assert told in result.summary()
    with pytest.raises(OptionError, match="metric 'r2' is for a regression"):
        nested(X, y, outer=3, metric="r2", **FEW)


def test_a_class_that_an_outer_fold_leaves_out_whole_is_none_of_the_model():
    X, y = tables.wine()
    number = np.where(y == np.unique(y)[2], 0, np.arange(len(y)) % 3)
    result = nested(X, y, outer=number, metric=["top_k_accuracy", "neg_log_loss"], **FEW)
    known = (y != np.unique(y)[2])[number == 0]
    assert result.folds[0].metrics["top_k_accuracy"] == pytest.approx(
        known.mean()
    )  # the two others are all that it says
    assert result.folds[0].metrics["neg_log_loss"] < -1  # certain of what isn't so


def test_pairs_of_rows_cannot_be_inner_folds():
    X, y = tables.waves(20)
    with pytest.raises(OptionError, match="inner folds as pairs of rows are of all rows"):
        nested(X, y, outer=2, **{**FEW, "folds": [(np.arange(10), np.arange(10, 20))]})


pytestmark = pytest.mark.filterwarnings(f"ignore::{SelectionWarning.__module__}.{SelectionWarning.__name__}")
