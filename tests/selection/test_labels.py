"""Labels come back as they were given: in values, in type, from a file, and with the second of two as the positive."""

import numpy as np
import pandas as pd
import pytest

import kernsel

ONE_CANDIDATE = {"learner": "krr", "grid": {"tau": 1.0, "lambda": 0.01}, "folds": 4, "extend": False}
KINDS = {
    "series of text numbers": lambda y: pd.Series(y.astype(str)),
    "objects of text numbers": lambda y: y.astype(str).astype(object),
    "text numbers": lambda y: y.astype(str),
    "pandas string": lambda y: pd.Series(y.astype(str), dtype="string"),
    "categories of text": lambda y: pd.Series(y.astype(str), dtype="category"),
    "categories of numbers": lambda y: pd.Series(y, dtype="category"),
    "objects of numbers": lambda y: y.astype(object),
    "small integers": lambda y: y.astype(np.int8),
    "series of small integers": lambda y: pd.Series(y.astype(np.int16)),
    "pandas integers": lambda y: pd.Series(y, dtype="Int64"),
    "floats": lambda y: y.astype(np.float32),
    "truth values": lambda y: y > 0,
    "objects of truth values": lambda y: (y > 0).astype(object),
    "pandas truth values": lambda y: pd.Series(y > 0, dtype="boolean"),
    "words": lambda y: np.where(y > 0, "yes", "no"),
    "a list of words": lambda y: np.where(y > 0, "yes", "no").tolist(),
}
EXPECTED = {
    "pandas string": object,
    "series of text numbers": object,
    "categories of text": object,
    "categories of numbers": np.int64,
    "pandas integers": np.int64,
    "pandas truth values": np.bool_,
}


def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    return X, np.where(X[:, 0] > 0, 1, -1)


@pytest.mark.parametrize("kind", KINDS)
def test_predicted_labels_have_the_type_that_the_target_has(kind, tmp_path):
    X, y = table()
    given = KINDS[kind](y)
    result = kernsel.select(X, given, **ONE_CANDIDATE)
    values = np.asarray(given)
    expected = np.dtype(EXPECTED.get(kind, values.dtype))
    result.model.save(tmp_path / "model.npz")
    for found in (result.heldout, result.model.predict(X), kernsel.load(tmp_path / "model.npz").predict(X)):
        assert found.dtype == expected or (found.dtype.kind == expected.kind == "U")  # text of any length
        assert {type(value) for value in found.tolist()} == {type(value) for value in values.tolist()}
        assert np.mean(found == values.astype(expected)) > 0.9
    second = values.astype(expected)[y > 0][0]
    assert result.model.labels[1] == second  # the order is that of the numbers, also where they are text
    assert type(result.model.labels[1]) is type(result.model.predict(X).tolist()[0])


def test_text_of_one_number_is_one_class():
    X, y = table()
    given = np.where(y > 0, "1", "0").astype(object)
    given[np.flatnonzero(y > 0)[:5]] = "1.0"
    result = kernsel.select(X, pd.Series(given), **ONE_CANDIDATE)
    assert result.model.labels == [0.0, 1.0]
    assert result.model.predict(X).dtype == np.float64


def test_the_classes_of_ten_text_numbers_are_in_the_order_of_the_numbers():
    X = np.repeat(np.arange(3.0), 12)[:, None] + 0.01 * np.arange(36)[:, None] % 3
    y = np.repeat(["9", "10", "11"], 12)
    result = kernsel.select(X, pd.Series(y), **ONE_CANDIDATE)
    assert result.model.labels == ["9", "10", "11"]
