"""Weights, classes' weights and groups of rows, several targets, and the columns that hold them."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.utils.class_weight import compute_sample_weight

from kernsel.data import Encoder, assign_roles, from_arrays, prepare
from kernsel.errors import DataError, OptionError

RNG = np.random.default_rng(0)
N = 30
X = RNG.normal(3, 2, (N, 2))
Y = RNG.normal(size=N)
CLASSES = np.where(np.arange(N) % 3, "common", "rare")

counts = arrays(np.int64, N, elements=st.integers(0, 3)).filter(lambda c: np.count_nonzero(c) > 2)


def frame(**columns):
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], **columns})


@given(counts)
def test_weight_2_is_a_repeated_row_in_every_mean_and_scale(count):
    again = np.repeat(np.arange(N), count)
    weighted = from_arrays(X, Y, standardize=True, weights=count)
    repeated = from_arrays(X[again], Y[again], standardize=True)
    np.testing.assert_allclose(weighted.encoder.mean, repeated.encoder.mean, rtol=1e-12)
    np.testing.assert_allclose(weighted.encoder.scale, repeated.encoder.scale, rtol=1e-12)
    np.testing.assert_allclose(weighted.output_shift, repeated.output_shift, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(weighted.output_scale, repeated.output_scale, rtol=1e-12)
    again_kept = np.repeat(np.arange(weighted.n), weighted.weights.astype(int))
    np.testing.assert_allclose(weighted.X[again_kept], repeated.X, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(weighted.places, np.flatnonzero(count))
    assert weighted.given == N


@given(counts)
def test_balanced_classes_are_scikit_learns_on_repeated_rows(count):
    again = np.repeat(np.arange(N), count)
    if len(set(CLASSES[again])) == 1:
        return
    data = from_arrays(X, CLASSES, weights=count, class_weight="balanced")
    expected = np.empty(N)
    expected[again] = compute_sample_weight("balanced", CLASSES[again])
    np.testing.assert_allclose(data.weights, (expected * count)[data.places], rtol=1e-12)
    totals = [data.weights[data.codes == code].sum() for code in (0, 1)]
    assert totals[0] == pytest.approx(totals[1])
    assert sum(totals) == pytest.approx(count.sum())


def test_weights_by_label():
    data = from_arrays(X, CLASSES, class_weight={"rare": 3})
    np.testing.assert_array_equal(data.weights, np.where(CLASSES == "rare", 3.0, 1.0))
    assert "class weights: {'rare': 3}" in data.notes
    codes = np.arange(N) % 3
    data = from_arrays(X, codes, class_weight={0: 2.0, 2: 0.5}, weights=np.full(N, 10.0))
    np.testing.assert_array_equal(data.weights, np.array([20.0, 10.0, 5.0])[codes])
    np.testing.assert_array_equal(data.codes, codes)


def test_without_weights_nothing_is_weighted():
    data = from_arrays(X, Y, standardize=True)
    assert data.weights is None
    assert data.groups is None
    assert not any("weigh" in note for note in data.notes)
    np.testing.assert_array_equal(data.places, np.arange(N))


@pytest.mark.parametrize("way", ["arrays", "table"])
def test_rows_of_weight_0_are_left_out_and_said(way):
    weights = np.where(np.arange(N) < 4, 0, 1.5)
    spoilt = X.copy()
    spoilt[:4] = np.nan
    text = np.where(np.arange(N) < 4, "only here", np.array(["u", "v"])[np.arange(N) % 2])
    if way == "arrays":
        data = from_arrays(spoilt, Y, weights=weights, groups=text)
        assert data.groups.tolist() == [0, 1] * 13
    else:
        table = frame(text=text, y=np.where(np.arange(N) < 4, np.nan, Y))
        table.loc[:3, "a"] = np.inf
        data = prepare(table, weights=pd.Series(weights, index=np.arange(N) + 7))
        assert data.encoder.categories == {"text": ("u", "v")}
    assert (data.n, data.given) == (26, 30)
    assert "4 rows of weight 0 left out" in data.notes
    assert any("26 rows weigh 39 together; every mean over rows is weighted" in note for note in data.notes)


def test_groups_are_labels_of_any_kind():
    labels = np.arange(N) // 5
    for groups in (
        labels,
        labels.astype(str),
        pd.Series(labels * 2.5),
        pd.Categorical(labels),
        [str(x) for x in labels],
    ):
        np.testing.assert_array_equal(from_arrays(X, Y, groups=groups).groups, labels)
    mixed = np.array([1, "b", 2.5] * 10, dtype=object)
    assert sorted(set(from_arrays(X, Y, groups=mixed).groups)) == [0, 1, 2]


def weights(**changes):
    values = np.ones(N)
    for place, value in changes.items():
        values[int(place[1:])] = value
    return values


@pytest.mark.parametrize(
    ("roles", "error", "message"),
    [
        (
            {"weights": weights(_3=-1)},
            DataError,
            "weights: row 4 has -1; a weight must be 0, or from 1e-100 to 1e\\+100",
        ),
        ({"weights": weights(_0=np.nan)}, DataError, "weights: row 1 has nan; a weight must be"),
        ({"weights": weights(_5=np.inf)}, DataError, "weights: row 6 has inf"),
        ({"weights": weights(_5=1e-200)}, DataError, "weights: row 6 has 1e-200"),
        (
            {"weights": np.zeros(N)},
            DataError,
            "weights: no row has a weight greater than 0; a selection needs at least",
        ),
        ({"weights": np.eye(N)[0]}, DataError, "weights: 1 row has a weight greater than 0"),
        (
            {"weights": np.ones(N - 1)},
            DataError,
            r"weights: there must be one for each of the 30 rows, .* shape \(29,\)",
        ),
        ({"weights": ["much"] * N}, DataError, "weights must be numbers"),
        ({"weights": pd.Series(-np.ones(N), name="w")}, DataError, "weights in column 'w': row 1 has -1"),
        ({"groups": np.ones((N, 2))}, DataError, r"groups: there must be one for each of the 30 rows"),
        ({"groups": np.where(np.arange(N), 1.0, np.nan)}, DataError, "groups: row 1 has none; give it one"),
        ({"groups": [*["a"] * 29, None]}, DataError, "groups: row 30 has none"),
        ({"class_weight": "equal"}, OptionError, "class_weight 'equal' is unknown: use balanced, or a dictionary"),
        ({"class_weight": {"seldom": 2}}, OptionError, "there is no class 'seldom'; the classes are 'common', 'rare'"),
        ({"class_weight": {"rare": 0}}, OptionError, "class 'rare' has 0; it must be a finite number greater than 0"),
        ({"class_weight": {"rare": -1}}, OptionError, "class 'rare' has -1"),
        ({"class_weight": {"rare": np.nan}}, OptionError, "class 'rare' has nan"),
    ],
)
def test_roles_that_cannot_be_are_one_clear_line(roles, error, message):
    with pytest.raises(error, match=message):
        from_arrays(X, CLASSES, **roles)


def test_class_weights_are_for_classes():
    with pytest.raises(OptionError, match="class_weight is for classes, but this is a regression; leave it out"):
        from_arrays(X, Y, class_weight="balanced")


# Several targets


def test_several_targets_are_one_regression():
    targets = np.stack([1000 * Y + 5, np.arange(N) % 3, np.round(Y)], axis=1)
    for data, names in (
        (from_arrays(X, targets), ["y0", "y1", "y2"]),
        (from_arrays(X, pd.DataFrame(targets, columns=["p", "q", "r"])), ["p", "q", "r"]),
        (from_arrays(frame(), targets), ["y0", "y1", "y2"]),
        (prepare(frame(p=targets[:, 0], q=targets[:, 1], r=targets[:, 2]), ["p", "q", "r"]), ["p", "q", "r"]),
    ):
        assert (data.task, data.labels, data.codes, data.target, data.k) == ("regression", None, None, names, 3)
        np.testing.assert_allclose(data.Y, ((targets - targets.mean(axis=0)) / targets.std(axis=0)).T, atol=1e-12)
        np.testing.assert_allclose(data.Y.T * data.output_scale + data.output_shift, targets, atol=1e-9)
        assert "task: regression of 3 targets together" in data.notes
        assert data.Y.flags.c_contiguous
        assert data.encoder.columns in {("x0", "x1"), ("a", "b")}


def test_several_targets_that_make_no_sense():
    with pytest.raises(
        OptionError, match="the targets 'y0', 'y1' can't be classes: several targets are learnt by regr"
    ):
        from_arrays(X, np.ones((N, 2)), task="classification")
    with pytest.raises(DataError, match="target 'y1' has one value only"):
        from_arrays(X, np.stack([Y, np.ones(N)], axis=1))
    with pytest.raises(DataError, match="target 'c' holds text .*regression needs numbers"):
        prepare(frame(y=Y, c=CLASSES), ["y", "c"])
    assert prepare(frame(y=Y), ["y", "y"]).target == "y"
    with pytest.raises(DataError, match="the table has no column 'z'; did you mean|its columns are"):
        prepare(frame(y=Y), ["y", "z"])
    with pytest.raises(DataError, match="y has no columns"):
        from_arrays(X, pd.DataFrame(index=range(N)))
    with pytest.raises(DataError, match="X has 30 rows and y has 29"):
        from_arrays(X, np.ones((29, 2)))


# Columns of a table


TABLE = {"y": Y, "z": Y**2, "w": np.ones(N), "g": CLASSES, "f": np.arange(N) % 4}


def test_roles_take_their_columns_out_of_the_features():
    table = frame(**TABLE)
    table.attrs["source"] = "t.csv"
    roles = assign_roles(table, "y, z", "w", "g", "f")
    assert roles.targets == ["y", "z"]
    assert list(roles.frame.columns) == ["a", "b", "y", "z"]
    assert roles.frame.attrs == {"source": "t.csv", "aside": ["w", "g", "f"]}
    assert [each.name for each in (roles.weights, roles.groups, roles.folds)] == ["w", "g", "f"]
    data = prepare(roles.frame, roles.targets, weights=roles.weights, groups=roles.groups)
    assert data.encoder.used == ("a", "b")
    assert list(table.columns) == ["a", "b", *TABLE]
    # A later table may have these columns, and need not.
    encoder = Encoder.from_json(json.loads(json.dumps(data.encoder.to_json())))
    for later in (table, table[["b", "a"]], table[["a", "b", "w"]]):
        np.testing.assert_array_equal(encoder.transform(later), data.X)
    assert "y" in assign_roles(table).frame.columns
    assert assign_roles(table).targets is None


def test_a_target_with_a_comma_in_its_name():
    table = frame(**{"y, in cm": Y})
    assert assign_roles(table, "y, in cm").targets == ["y, in cm"]


def test_the_encoder_of_an_older_model_ignores_its_target():
    document = from_arrays(X, Y).encoder.to_json()
    document["target"] = document.pop("ignored")[0]
    assert Encoder.from_json(document).ignored == ("y",)


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"target": "y,zz"}, "t.csv has no column 'zz'; did you mean 'z'"),
        ({"weights": "weight"}, "t.csv has no column 'weight'"),
        ({"groups": "G"}, "t.csv has no column 'G'; did you mean 'g'"),
        ({"folds": "fold"}, "t.csv has no column 'fold'; did you mean 'f'|its columns are"),
        ({"target": "w", "weights": "w"}, "column 'w' can't be both target and weights; name two columns"),
        ({"weights": "w", "groups": "w"}, "column 'w' can't be both weights and groups"),
        ({"weights": "g"}, "weights in column 'g' must be numbers, but it holds text; name another column"),
    ],
)
def test_columns_that_cannot_play_their_role(roles, message):
    table = frame(**TABLE)
    table.attrs["source"] = "t.csv"
    with pytest.raises(DataError, match=message):
        assign_roles(table, **roles)
