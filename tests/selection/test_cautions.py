"""Each caution on the smallest table that calls for it, none on clean tables; the baseline by brute force."""

import json
import math
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import datasets

import tables
import tolerances
from kernsel.data import from_arrays
from kernsel.errors import Caution, OptionError, codes_of
from kernsel.heldout.baseline import baseline_of, constants
from kernsel.heldout.errors import Errors
from kernsel.selection.carry_out import select_dataset

NEW = {"one-class", "no-better-than-baseline", "error-too-small", "copies-apart"}
QUICK = {"learner": "krr", "grid": tables.SMALL, "folds": 5, "extend": False}


def choose(X, y, copies="together", **options):
    return select_dataset(from_arrays(X, y, standardize=True, copies=copies), **QUICK | options)


def codes(result):
    return [each["code"] for each in result.to_dict()["cautions"]]


def new(result):
    return [code for code in codes(result) if code in NEW]


def text(result, code):
    (found,) = (each for each in result.warnings if getattr(each, "code", None) == code)
    return found


def fraud(n=200):
    """Two classes that features know nothing of, one of them of 5 %."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 3)), np.where(np.arange(n) < n // 20, "fraud", "ok")


# Cautions


def test_one_class_is_said_and_has_an_error_that_is_not_certain():
    result = choose(*fraud(), grid={"tau": [1.0], "lambda": [1.0]}, folds=10)
    assert new(result) == ["one-class"]
    assert text(result, "one-class").startswith("the choice predicts 'ok' for every held-out row")
    assert result.best.error == pytest.approx(0.05)
    assert result.best.error_se == pytest.approx(math.sqrt(0.05 * 0.95 / 199))
    assert result.data["baseline"] == {
        "predicts": "the largest class",
        "error": pytest.approx(0.05),
        "error_se": pytest.approx(result.best.error_se),
        "gain": {"value": 0.0, "se": 0.0},
        "beaten": False,
    }


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_choice_no_better_than_a_constant_is_said(task):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    y = np.where(y > 0, "up", "down") if task == "classification" else y
    result = choose(X, y, grid={"tau": [0.1], "lambda": [1e-4]})
    assert new(result) == ["no-better-than-baseline"]
    what = "error" if task == "classification" else "mean squared error"
    assert f"its held-out {what} is lower by" in text(result, "no-better-than-baseline")
    gain = result.data["baseline"]["gain"]
    assert gain["value"] <= gain["se"]


def test_an_error_that_no_measurement_allows_is_said():
    X = np.random.default_rng(0).normal(size=(80, 3))
    options = {"kernel": "linear", "grid": {"lambda": [1e-8]}}
    assert new(choose(X, X.sum(axis=1), **options)) == ["error-too-small"]
    noise = 0.03 * np.random.default_rng(1).normal(size=80)
    assert new(choose(X, X.sum(axis=1) + noise, **options)) == []
    both = np.column_stack([X.sum(axis=1), X[:, 0] - X[:, 1]])
    assert new(choose(X, both, **options)) == ["error-too-small"]


@pytest.mark.parametrize("kind", ["category", "number", "gap"])
def test_a_column_that_alone_tells_the_class_is_said(kind):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 80)
    alike = np.array(["x", "y", "z"])[codes] if kind == "category" else codes * 7.0
    if kind == "gap":  # such as an age at death
        alike = np.where(codes == 1, rng.normal(size=80), np.nan)
    table = pd.DataFrame({"a": rng.normal(size=80), "c": alike})
    y = np.where(codes == 1, "yes", "no")
    options = {"kernel": "gaussian", "grid": {"tau": [1.0], "lambda": [1e-4]}}
    result = choose(table, y, **options)
    assert new(result) == ["error-too-small"]
    assert text(result, "error-too-small").startswith("column 'c' alone tells the class of every row: leave out what")
    unsure = np.where(np.arange(80) == np.argmin(codes), "yes", y)  # one row of another class
    assert "error-too-small" not in new(choose(table, unsure, **options))
    assert new(choose(table[["a"]].assign(a=table["a"] + 9.0 * codes), y, **options)) == []  # a number of many values


def copied(n=40, copies=10):
    """A table whose first rows are there twice, with the same targets but for one."""
    X, y = tables.waves(n)
    X, y = np.vstack([X, X[:copies]]), np.r_[y, y[:copies]]
    y[-1] += 1.0
    return X, y


def test_copies_are_counted_and_kept_in_one_fold():
    result = choose(*copied())
    assert new(result) == []
    assert result.data["copies"] == {"rows": 10, "same_target": 9, "apart": 0}
    note = "copies: 10 of 50 rows have all features in common with an earlier one, 9 of these the target too; copies "
    assert note + "are in one fold" in result.data["notes"]


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"copies": "apart"}, "let copies be together"),
        ({"folds": "loo"}, "give a number of folds, which keep copies together"),
        ({"folds": np.arange(50) % 7}, "give a number of folds"),
        ({"folds": "time:4", "criterion": "cv"}, "give a number of folds"),
    ],
)
def test_copies_that_are_apart_are_said(options, advice):
    result = choose(*copied(), **options)
    assert new(result) == ["copies-apart"]
    found = text(result, "copies-apart")
    assert "have all features in common with a row that their fit is trained on" in found
    assert advice in found
    if isinstance(options.get("folds"), str) and options["folds"] == "loo":
        assert result.data["copies"]["apart"] == 20


def test_copies_of_other_groups_are_said():
    X, y = copied()
    dataset = from_arrays(X, y, standardize=True, groups=np.arange(50) % 25)
    result = select_dataset(dataset, **QUICK)
    assert "let copies be of one group" in text(result, "copies-apart")
    same = from_arrays(X, y, standardize=True, groups=np.r_[np.arange(40), np.arange(10)])
    assert new(select_dataset(same, **QUICK)) == []


def test_a_table_of_few_categories_has_no_copies_to_keep_together():
    X = np.arange(80)[:, None] % np.array([2, 3])
    y = X[:, 0] + X[:, 1] + tables.waves(80)[1]
    result = choose(X.astype(float), y)
    assert "copies-apart" not in codes(result)
    assert any("so few are distinct that new rows will repeat them" in note for note in result.data["notes"])


def test_what_becomes_of_copies_is_one_of_two():
    with pytest.raises(OptionError, match="copies 'away' is unknown: use together"):
        choose(*copied(), copies="away")


@pytest.mark.parametrize(
    "load", [datasets.load_breast_cancer, datasets.load_wine, datasets.load_iris, datasets.load_diabetes, None]
)
def test_clean_tables_have_none(load):
    X, y = tables.waves(80) if load is None else load(return_X_y=True)
    assert not NEW & set(codes(choose(X, y)))


def test_every_warning_has_a_code_in_the_document():
    result = choose(*fraud(), learner="svm", grid={"tau": [1.0], "lambda": [0.5, 1.0]}, kernel=["gaussian", "linear"])
    document = json.loads(result.to_json())
    assert [each["text"] for each in document["cautions"]] == document["warnings"]
    assert "other" not in codes(result)
    assert "edge" in codes(result)


def test_a_caution_is_its_text():
    caution = Caution("edge", "the choice lies on the edge")
    assert caution == "the choice lies on the edge"
    again = pickle.loads(pickle.dumps(caution))
    assert (again, again.code) == (caution, "edge")
    assert codes_of([caution, "of a plugin"]) == [
        {"code": "edge", "text": "the choice lies on the edge"},
        {"code": "other", "text": "of a plugin"},
    ]


# The baseline


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["two", "three", "values", "targets"]), st.booleans(), st.booleans())
def test_the_baseline_is_the_best_constant_of_the_training_rows(seed, kind, weighted, ordered):
    rng = np.random.default_rng(seed)
    rows = tables.make_rows(seed % 100, real=kind in ("values", "targets"))
    k = {"two": 1, "values": 1, "three": 3, "targets": 2}[kind]
    Y = rows.Y[:k]
    if kind == "three":
        Y = np.where(rng.integers(0, 3, rows.n) == np.arange(3)[:, None], 1.0, -1.0)
    rows = replace(rows, Y=np.ascontiguousarray(Y), weights=rng.exponential(size=rows.n) if weighted else None)
    if ordered:  # the first fold is trained on the last rows, the others on all rows before
        before = np.arange(rows.n) < rows.starts[:-1, None]
        before[0] = np.arange(rows.n) >= rows.starts[-2]
        rows = replace(rows, training=before)
    classes = kind in ("two", "three")
    expected = np.zeros((k, rows.held))
    for fold in range(rows.left.size):
        kept, held = rows.kept(fold), slice(rows.starts[fold], rows.starts[fold + 1])
        if classes:
            candidates = [np.where(np.arange(k) == c, 1.0, -1.0) for c in range(k)] if k > 1 else [[-1.0], [1.0]]
            totals = [rows.s[kept] @ (Y[:, kept] == np.reshape(c, (-1, 1))).all(axis=0) for c in candidates]
            expected[:, held] = np.reshape(candidates[int(np.argmax(totals))], (-1, 1))
        else:
            expected[:, held] = np.average(Y[:, kept], axis=1, weights=rows.s[kept])[:, None]
    np.testing.assert_allclose(constants(rows, classes), expected, atol=tolerances.SUMS)
    errors = Errors(classes, np.array([2.0]))
    perfect = baseline_of([rows], [rows.Y], errors)
    assert perfect.beaten == (perfect.error > 0)
    nothing = baseline_of([rows], [np.hstack([expected, np.zeros((k, rows.n - rows.held))])], errors)
    assert nothing.gain <= tolerances.SUMS  # below 0 where the largest class of all rows has fewer mistakes
    assert not nothing.beaten or nothing.gain < tolerances.SUMS
    if not classes:  # the centre of all rows, which learners start from, is no better than a constant
        centre = np.zeros((k, rows.n)) + np.average(Y, axis=1, weights=rows.s)[:, None]
        assert baseline_of([rows], [centre], errors).gain <= tolerances.SUMS
    losses = (expected != Y[:, : rows.held]).any(axis=0) if classes else ((expected - Y[:, : rows.held]) ** 2).mean(0)
    mean = float(rows.mean(losses.astype(float)))
    if classes:
        shares = [rows.s @ (np.reshape(c, (-1, 1)) == Y).all(axis=0) for c in candidates]
        best = np.reshape(candidates[int(np.argmax(shares))], (-1, 1))
        mean = min(mean, float(rows.mean((best != Y[:, : rows.held]).any(axis=0).astype(float))))
    assert nothing.error == pytest.approx(mean if classes else 2.0 * math.sqrt(mean))


# Robust units


def outlier(X, y):
    y = y.copy()
    y[7] = 1e6
    return X, y


def test_one_outlier_leaves_svr_as_it_is():
    X, y = tables.waves(120)
    clean, spoilt = (tables.choose(*each, learner="svr", folds=5) for each in ((X, y), outlier(X, y)))
    new, truth = tables.waves(200, seed=5, noise=0.0)
    for result in (clean, spoilt):
        assert np.mean((result.model.predict(new) - truth) ** 2) < 0.1 * truth.var()
    assert spoilt.model.output_scale == pytest.approx(clean.model.output_scale, rel=0.1)
    assert any(
        note.startswith("epsilon and h are in units of the target's robust spread") for note in spoilt.data["notes"]
    )


def test_robust_units_don_t_depend_on_those_of_the_target():
    X, y = tables.waves(60)
    one, other = (tables.choose(X, each, learner="svr", **{"grid": tables.SMALL}) for each in (y, 1e3 * y - 7))
    assert one.best.score == pytest.approx(other.best.score, rel=1e-6)
    np.testing.assert_allclose(1e3 * one.heldout - 7, other.heldout, rtol=1e-5)
    assert other.best.error == pytest.approx(1e3 * one.best.error, rel=1e-5)
    plain = tables.choose(X, y, learner="krr", grid=tables.SMALL)
    assert plain.model.output_scale[0] == pytest.approx(y.std())  # others are in standard deviations


def test_errors_of_several_targets_stay_in_standard_deviations():
    X, y = tables.waves(60)
    dataset = from_arrays(X, np.column_stack([y, y**3]))
    assert dataset.in_robust_units("epsilon is") is dataset


@pytest.mark.parametrize(
    ("values", "expected", "measure"),
    [
        ([1.0, 2.0, 3.0, 4.0, 100.0], 1.4826, "median absolute deviation"),
        ([0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 3.0, 4.0, 5.0], 3.0 / 1.349, "interquartile range"),
        ([0.0] * 9 + [1.0], 0.3, "standard deviation"),
    ],
)
def test_the_robust_spread_and_what_stands_in_for_it(values, expected, measure):
    from kernsel.data.target import median_and_spread

    median, spread, said = median_and_spread(np.array(values))
    assert median == np.median(values)
    assert spread == pytest.approx(expected)
    assert measure in said


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(1, 4)), min_size=2, max_size=12))
def test_a_weight_of_two_is_a_value_twice_to_the_robust_spread(pairs):
    from kernsel.data.target import median_and_spread

    values, counts = (np.array(each, float) for each in zip(*pairs, strict=True))
    if len(set(values)) == 1:
        return
    repeated = np.repeat(values, counts.astype(int))
    weighted, plain = median_and_spread(values, counts), median_and_spread(repeated)
    assert weighted[:2] == pytest.approx(plain[:2])
    assert weighted[0] == np.median(repeated)
