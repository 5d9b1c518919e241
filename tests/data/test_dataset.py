"""Encoding, scaling, inference of the task, and the way back."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.preprocessing import StandardScaler

from kernsel.data import Encoder, from_arrays, prepare
from kernsel.errors import DataError, OptionError, SelectionWarning

RNG = np.random.default_rng(0)
N = 60


def frame(y, **columns) -> pd.DataFrame:
    return pd.DataFrame({"a": RNG.normal(3, 2, N), "b": RNG.normal(size=N), **columns, "y": y})


TARGETS = {
    "two numbers": (np.arange(N) % 2, "classification", [0, 1]),
    "plus and minus one": (np.where(np.arange(N) % 3, -1, 1), "classification", [-1, 1]),
    "two floats": (np.where(np.arange(N) % 3, 0.5, 1.5), "classification", [0.5, 1.5]),
    "text": (np.array(["yes", "no"], dtype=object)[np.arange(N) % 2], "classification", ["no", "yes"]),
    "truth values": (np.arange(N) % 2 == 0, "classification", [False, True]),
    "three numbers": (np.arange(N) % 3, "classification", [0, 1, 2]),
    "three texts": (np.array(["r", "g", "b"], dtype=object)[np.arange(N) % 3], "classification", ["b", "g", "r"]),
    "ten numbers": (np.arange(N) % 10, "classification", list(range(10))),
    "eleven numbers": (np.arange(N) % 11, "regression", None),
    "three floats": (np.arange(N) % 3 / 2, "regression", None),
    "numbers": (np.arange(N) / 7, "regression", None),
}


@pytest.mark.parametrize("case", TARGETS)
@pytest.mark.parametrize("way", ["table", "arrays", "frame and list"])
def test_the_task_is_inferred_and_labels_are_mapped(case, way):
    y, task, labels = TARGETS[case]
    table = frame(y)
    if way == "table":
        data = prepare(table)
    elif way == "arrays":
        data = from_arrays(table[["a", "b"]].to_numpy(), y)
    else:
        data = from_arrays(table[["a", "b"]], y.tolist())
    assert (data.task, data.labels) == (task, labels)
    assert labels is None or [type(label) for label in data.labels] == [type(label) for label in labels]
    assert any(note.startswith(f"task: {task}, because the target") for note in data.notes)
    assert data.Y.flags.c_contiguous
    assert data.Y.dtype == data.X.dtype == np.float64
    if labels is None:
        np.testing.assert_allclose(data.Y[0] * data.output_scale[0] + data.output_shift[0], y, rtol=1e-12, atol=1e-12)
        assert abs(data.Y.mean()) < 1e-12
        assert data.Y.std() == pytest.approx(1)
    elif len(labels) == 2:
        np.testing.assert_array_equal(data.Y, np.where(y == labels[1], 1.0, -1.0)[None])
    else:
        np.testing.assert_array_equal(data.Y, np.where(np.array(labels)[:, None] == y, 1.0, -1.0))


def test_few_rows_of_whole_numbers_are_a_regression():
    data = from_arrays(np.eye(4), [1, 2, 3, 4])
    assert data.task == "regression"
    assert "4 distinct whole numbers in only 4 rows" in data.notes[-1]


def test_the_task_can_be_set():
    y, _, _ = TARGETS["three numbers"]
    data = prepare(frame(y), task="regression")
    assert (data.task, data.labels) == ("regression", None)
    assert "task: regression, as asked for" in data.notes
    assert prepare(frame(TARGETS["eleven numbers"][0]), task="classification").k == 11
    assert prepare(frame(TARGETS["truth values"][0]), task="regression").output_shift[0] == 0.5
    np.testing.assert_allclose(data.Y[0] * data.output_scale + data.output_shift, y, rtol=1e-14, atol=1e-14)


def test_targets_that_make_no_sense():
    with pytest.raises(DataError, match="holds text .*but regression needs numbers"):
        prepare(frame(TARGETS["text"][0]), task="regression")
    with pytest.raises(DataError, match="60 distinct values in 60 rows, too many for classes"):
        prepare(frame(TARGETS["numbers"][0]), task="classification")
    with pytest.raises(OptionError, match="unknown task 'regress'; it is one of auto, regression, classification"):
        prepare(frame(TARGETS["numbers"][0]), task="regress")
    with pytest.raises(DataError, match="mixes values of different kinds"):
        from_arrays(np.eye(4), np.array([1, "a", 2, "b"], dtype=object))
    with pytest.raises(DataError, match="column 'y': 1 value is missing of 4"):
        from_arrays(np.eye(4), [1.0, None, 2.0, 3.0], missing="refuse")
    with pytest.raises(DataError, match="column 'y': 1 value is missing of 4"):
        from_arrays(np.eye(4), [1.0, np.nan, 2.0, 3.0], missing="refuse")


def test_categorical_and_nullable_columns():
    cat = pd.Categorical(np.arange(N) % 3 + 5)
    data = prepare(frame(cat))
    assert data.labels == [5, 6, 7]
    y = pd.array(np.arange(N) % 2, dtype="Int64")
    data = prepare(frame(y, c=pd.Categorical(np.arange(N) % 3), d=pd.array(np.arange(N)[::-1], dtype="Int64")))
    assert data.labels == [0, 1]
    assert data.encoder.features == ["a", "b", "d", "c=0", "c=1", "c=2"]


def test_scaling_is_scikit_learns():
    table = frame(np.arange(N) % 2)
    data = prepare(table)
    np.testing.assert_allclose(data.X, StandardScaler().fit_transform(table[["a", "b"]]), rtol=1e-12, atol=1e-12)
    assert "scaling: fitted once on the whole table, because all folds share one Gram matrix" in data.notes
    bare = prepare(table, standardize=False)
    np.testing.assert_array_equal(bare.X, table[["a", "b"]])
    assert not any("fitted once" in note for note in bare.notes)


@given(arrays(np.float64, (7, 2), elements=st.floats(-1e150, 1e150)))
def test_scaled_columns_have_mean_0_and_deviation_1_whatever_their_size(X):
    y = np.arange(7) / 3
    if all((column == column[0]).all() for column in X.T):
        with pytest.raises(DataError, match="no column is left"):
            from_arrays(X, y, standardize=True)
        return
    data = from_arrays(X, y, standardize=True)
    # A column that varies in its last digits only can't be centred better than to those digits.
    tolerance = 1e-10 + 32 * np.finfo(float).eps * np.abs(data.encoder.mean) / data.encoder.scale
    assert np.isfinite(data.X).all()
    assert (np.abs(data.X.mean(axis=0)) <= tolerance).all()
    assert (np.abs(data.X.std(axis=0) - 1) <= tolerance).all()


def test_constant_columns_are_left_out_where_scaling_makes_them_zero():
    table = frame(np.arange(N) % 2, c=1.0, d="same", e=[f"id{i}" for i in range(N)])
    data = prepare(table)
    assert data.encoder.used == ("a", "b")
    assert {
        "columns 'c', 'd' are constant and left out",
        "column 'e' is text with another value in every row and left out (a column named by --numeric or --categorical "
        "stays)",
    } <= set(data.notes)
    assert prepare(table, standardize=False).encoder.used == ("a", "b", "c")
    assert "columns 'c', 'd' are constant and left out" in prepare(frame(np.arange(N) % 2, c=1, d=2)).notes


def test_text_columns_are_one_hot_encoded_and_survive_json():
    colour = np.array(["red", "green", "blue"], dtype=object)[np.arange(N) % 3]
    table = frame(np.arange(N) % 2, colour=colour, flag=np.arange(N) % 2 == 0)
    data = prepare(table)
    assert data.encoder.features == ["a", "b", "colour=blue", "colour=green", "colour=red", "flag=False", "flag=True"]
    np.testing.assert_array_equal(data.X[:3, 2:5], np.eye(3)[[2, 1, 0]])
    encoder = Encoder.from_json(json.loads(json.dumps(data.encoder.to_json())))
    shuffled = table[["flag", "colour", "y", "b", "a"]]
    np.testing.assert_array_equal(encoder.transform(shuffled), data.X)
    np.testing.assert_array_equal(encoder.transform(table.drop(columns="y")), data.X)


def test_unknown_categories_count_as_none_of_the_known_ones():
    colour = np.array(["red", "green"], dtype=object)[np.arange(N) % 2]
    encoder = prepare(frame(np.arange(N) / 7, colour=colour)).encoder
    new = pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, 2.0], "colour": ["mauve", "red"]})
    with pytest.warns(SelectionWarning, match=r"column 'colour' has values .*\('mauve'\) in 1 row; they count as none"):
        X = encoder.transform(new)
    np.testing.assert_array_equal(X[:, 2:], [[0, 0], [0, 1]])


def test_tables_of_other_columns_are_refused_by_name():
    encoder = prepare(frame(np.arange(N) / 7)).encoder
    with pytest.raises(DataError, match="it lacks 'b'; it has besides 'B', 'c'"):
        encoder.transform(pd.DataFrame({"a": [1.0], "B": [1.0], "c": [1.0]}))
    with pytest.raises(DataError, match="column 'b' must hold numbers.*holds 'x' in row 2"):
        encoder.transform(pd.DataFrame({"a": [1.0, 2.0], "b": ["1", "x"]}))
    with pytest.raises(DataError, match="column 'b': 1 value is missing of 2"):
        replace(encoder, missing="refuse").transform(pd.DataFrame({"a": [1.0, 2.0], "b": [1, None]}))
    with pytest.raises(DataError, match="X has 3 columns where the model has 2"):
        encoder.transform(np.ones((1, 3)))
    with pytest.raises(DataError, match="column 'a' has 1 infinite value"):
        encoder.transform(np.array([[np.inf, 1.0]]))


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.ones(3), [1, 2, 3], "X must have two dimensions"),
        (np.eye(3), [1, 2], "X has 3 rows and y has 2"),
        (pd.DataFrame(np.eye(3)), [1, 2], "X has 3 rows and y has 2"),
        (np.eye(3) * 1j, [1, 2, 3], "complex"),
        ([["a", 1], ["b", 2]], [1, 2], "give a DataFrame if it has text columns"),
        (np.eye(3), np.ones((3, 2, 2)), r"y must be one column, but its shape is \(3, 2, 2\)"),
        (np.ones((1, 2)), [1], "the table has 1 row"),
    ],
)
def test_arrays_that_do_not_fit(X, y, message):
    with pytest.raises(DataError, match=message):
        from_arrays(X, y)


def test_a_memory_map_is_used_as_it_is_unless_it_is_scaled(tmp_path):
    A = np.random.default_rng(0).normal(size=(N, 3))
    np.save(tmp_path / "X.npy", A)
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert np.shares_memory(from_arrays(X, np.arange(N) / 7).X, X)
    scaled = from_arrays(X, np.arange(N) / 7, standardize=True)
    np.testing.assert_array_equal(scaled.X, from_arrays(A, np.arange(N) / 7, standardize=True).X)
    np.testing.assert_array_equal(X, A)


def test_a_target_in_one_column_of_two_dimensions():
    assert from_arrays(np.eye(4), np.arange(4.0)[:, None] / 3).n == 4


def test_some_of_the_rows_are_a_data_set_too():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 3)), np.arange(12) % 2
    whole = from_arrays(X, y, weights=np.arange(12.0), groups=np.arange(12) // 3, class_weight="balanced")
    rows = np.array([10, 4, 3])  # of the 11 that count: the one of weight 0 is out
    some = whole.take(rows)
    np.testing.assert_array_equal(some.X, whole.X[rows])
    np.testing.assert_array_equal(some.Y, whole.Y[:, rows])
    np.testing.assert_array_equal(some.weights, whole.weights[rows])
    np.testing.assert_array_equal(some.sample.plain, whole.sample.plain[rows])
    np.testing.assert_array_equal(some.places, [11, 5, 4])
    np.testing.assert_array_equal(some.groups, [1, 0, 0])
    assert (some.n, some.given, some.encoder) == (3, 12, whole.encoder)
    assert from_arrays(X, y).take(rows).weights is None
