"""Types of columns, what is left out of the features, and what takes the place of missing values."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_matrix
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernsel.data import Encoder, assign_roles, from_arrays, make_choices, prepare
from kernsel.data.fitting import COMMON, TELLING
from kernsel.data.kinds import Kind, find_kind
from kernsel.data.seen import Different, Glimpse, Seen
from kernsel.errors import DataError, OptionError, SelectionWarning

N = 60
RNG = np.random.default_rng(0)
PLACES = np.arange(N)
Y = RNG.normal(size=N)


def frame(**columns) -> pd.DataFrame:
    return pd.DataFrame({"a": RNG.normal(3, 2, N), **columns, "y": Y})


def chosen(table, **said):
    return prepare(table, choices=make_choices(**said))


LEFT_OUT = {
    "a count from 0": (PLACES, "counting the rows"),
    "a count from 1": (PLACES + 1, "counting the rows"),
    "a count of Python's": (pd.Series([str(i) for i in PLACES]), "counting the rows"),
    "names": ([f"n{i}" for i in PLACES], "text with another value in every row"),
    "tickets": ([f"t{i % 40}" for i in PLACES], "text with other values in over half of the rows"),
    "nothing": ([None] * N, "without values"),
    "marks of gaps": (["?"] * N, "without values"),
    "one value": ([7] * N, "constant"),
    "one word": (["w"] * N, "constant"),
}


@pytest.mark.parametrize("case", LEFT_OUT)
def test_what_names_a_row_or_says_nothing_is_left_out(case):
    values, reason = LEFT_OUT[case]
    data = prepare(frame(c=values))
    assert data.encoder.used == ("a",)
    assert any(note.startswith(f"column 'c' is {reason} and left out") for note in data.notes)
    assert data.columns[1]["left_out"] == reason
    if "value" not in reason and reason != "constant":
        kept = chosen(frame(c=values), **{"numeric" if "count" in case else "categorical": "c"})
        assert kept.encoder.used == ("a", "c")
        assert chosen(frame(c=values), keep=["a", "c"]).encoder.used == ("a", "c")


@pytest.mark.parametrize("name", ["id", "ID", "customer_id", "PassengerId", "Unnamed: 0", "row number", "uuid"])
def test_identifiers_are_told_by_name_and_values(name):
    assert prepare(frame(**{name: PLACES * 7 + 1000})).encoder.used == ("a",)
    assert prepare(frame(**{name: PLACES % 20 * 7})).encoder.used == ("a", name)


def test_what_could_be_a_feature_stays():
    assert prepare(frame(year=PLACES + 1900)).encoder.used == ("a", "year")
    assert prepare(frame(down=PLACES[::-1])).encoder.used == ("a", "down")
    assert prepare(frame(humid=PLACES * 2.0)).encoder.used == ("a", "humid")
    assert prepare(frame(c=PLACES + 0.0).drop(columns="a")).encoder.used == ("c",)  # a series has no other
    assert prepare(pd.DataFrame({"c": ["u", "v", "u", "w"], "y": [1.0, 2, 3, 4.5]})).encoder.used == ("c",)
    assert from_arrays(PLACES[:, None], Y).encoder.used == ("x0",)  # arrays are meant as they are


def test_a_count_is_told_where_rows_were_left_out():
    table = frame(no=PLACES + 1)
    table.loc[[0, 5], "y"] = np.nan
    assert prepare(table).encoder.used == ("a",)


def test_types_are_said_in_one_line_and_in_the_document():
    words = {f"w{j}": np.array(list("uvw"))[(PLACES + j) % 3] for j in range(57)}
    data = prepare(frame(**words))
    lines = [note for note in data.notes if "w0" in note]
    assert len(lines) == 1
    assert lines[0].startswith("columns: 1 number; 57 with categories, a 0/1 column for each (w0 3, w1 3,")
    assert lines[0].endswith("and 45 more)")
    assert data.columns[5] == {
        "name": "w4", "type": "category", "missing": 0.0, "was_missing": False, "left_out": None, "levels": 3,
    }  # fmt: skip
    json.dumps(data.columns, allow_nan=False)
    assert not any(note.startswith("columns:") for note in prepare(frame(b=PLACES % 7)).notes)


def test_columns_are_chosen_by_name_and_pattern():
    table = frame(b=PLACES % 7, id1=PLACES % 5, id2=PLACES % 11, **{"c,d": PLACES % 3})
    assert chosen(table, drop="id*").encoder.used == ("a", "b", "c,d")
    assert chosen(table, drop=["a, b", "c,d"]).encoder.used == ("id1", "id2")
    data = chosen(table, keep="b")
    assert data.encoder.used == ("b",)
    assert "columns 'a', 'id1', 'id2', 'c,d' left out, as asked for" in data.notes
    np.testing.assert_array_equal(data.encoder.transform(table), data.X)
    np.testing.assert_array_equal(data.encoder.transform(table[["b"]]), data.X)
    array = table.drop(columns="y").to_numpy()
    assert from_arrays(array, Y, drop=[0, 1]).encoder.used == ("x2", "x3", "x4")
    coded = from_arrays(array, Y, categorical=4)
    assert coded.encoder.categories == {"x4": ("0", "1", "2")}
    np.testing.assert_array_equal(coded.encoder.transform(array), coded.X)
    sparse = from_arrays(csr_matrix(array), Y, drop="x0")
    assert sparse.encoder.used == ("x1", "x2", "x3", "x4")


def test_whole_numbers_are_the_same_categories_whatever_their_type():
    data = chosen(frame(c=PLACES % 3), categorical="c")
    assert data.encoder.categories["c"] == ("0", "1", "2")
    table = frame(c=(PLACES % 3) + 0.0)
    table.loc[0, "c"] = np.nan
    X = data.encoder.transform(table)
    np.testing.assert_array_equal(X[1:, 1:], data.X[1:, 1:])
    np.testing.assert_array_equal(X[0, 1:], [1, 0, 0])  # the most frequent one, the first of equals


def test_ordinal_levels_are_numbered_in_their_order():
    sizes = np.array(["M", "S", "L"])[PLACES % 3]
    data = prepare(frame(size=sizes), standardize=False, choices=make_choices(ordinal={"size": ["S", "M", "L"]}))
    np.testing.assert_array_equal(data.X[:3, 1], [1, 0, 2])
    assert "1 ordinal (size S<M<L)" in data.notes[1]
    encoder = Encoder.from_json(json.loads(json.dumps(data.encoder.to_json())))
    with pytest.raises(DataError, match="column 'size' has values that are none of its levels S<M<L: 'XL'"):
        encoder.transform(pd.DataFrame({"a": [1.0], "size": ["XL"]}))
    scaled = chosen(frame(size=sizes), ordinal={"size": ["S", "M", "L"]}).X[:, 1]
    assert scaled.std() == pytest.approx(1)


DATES = {
    "ISO": "%Y-%m-%d",
    "ISO with times": "%Y-%m-%dT%H:%M:%S",
    "German": "%d.%m.%Y",
    "slashes": "%Y/%m/%d",
    "American": "%m/%d/%Y",
    "British with times": "%d/%m/%Y %H:%M",
    "names of months": "%d-%b-%Y",
}


@pytest.mark.parametrize("case", DATES)
def test_dates_become_numbers_and_parts(case):
    dates = pd.Series(pd.date_range("2023-11-20", periods=N, freq="37h"))
    texts = dates.dt.strftime(DATES[case])
    data = prepare(frame(t=texts), standardize=False)
    read = pd.to_datetime(texts, format=DATES[case])
    days, month, weekday, hour = data.X[:, 1:].T
    np.testing.assert_allclose(days, (read - pd.Timestamp(0)) / pd.Timedelta(days=1), rtol=1e-12)
    np.testing.assert_array_equal(month, read.dt.month)
    np.testing.assert_array_equal(weekday, read.dt.day_of_week)
    np.testing.assert_allclose(hour, read.dt.hour + read.dt.minute / 60 + read.dt.second / 3600, rtol=1e-12)
    assert data.encoder.features[1:] == ["t (days)", "t (month)", "t (weekday)", "t (hour)"]
    assert any("--folds time:10" in note for note in data.notes)
    scaled = prepare(frame(t=texts))
    encoder = Encoder.from_json(json.loads(json.dumps(scaled.encoder.to_json())))
    np.testing.assert_array_equal(encoder.transform(pd.DataFrame({"t": texts, "a": 1.0}))[:, 1:], scaled.X[:, 1:])
    assert ("t (hour)" in scaled.encoder.features) == ("times" in case)  # constant ones are left out


@pytest.mark.parametrize("way", ["%H:%M", "%H:%M:%S", "%H.%M.%S", "%I:%M %p"])
def test_times_of_day_become_hours(way):
    clock = pd.Series(pd.date_range("2024-01-01", periods=N, freq="37min"))
    texts = clock.dt.strftime(way).mask(PLACES < 2, "?")
    data = prepare(frame(t=texts), standardize=False)
    hour = data.X[2:, data.encoder.features.index("t (hour)")]
    np.testing.assert_allclose(hour, (clock.dt.hour + clock.dt.minute / 60)[2:], rtol=1e-12)
    assert any("1 with times of day, as hours (t)" in note for note in data.notes)
    assert prepare(frame(t=texts)).encoder.features[1:] == ["t (hour)"]
    assert prepare(frame(t=clock.dt.time)).encoder.features[1:] == ["t (hour)"]  # as workbooks have them


def test_new_rows_may_write_times_of_day_otherwise():
    clock = pd.Series(pd.date_range("2024-01-01", periods=N, freq="37min"))
    encoder = prepare(frame(t=clock.dt.strftime("%H:%M")), standardize=False).encoder
    place = encoder.features.index("t (hour)")

    def hours(*texts):
        return encoder.transform(pd.DataFrame({"t": texts, "a": 1.0}))[:, place]

    np.testing.assert_allclose(
        hours("10:30", "10:30:00", "10:30:36", "10:30 PM", "10.30.36"), [10.5, 10.5, 10.51, 22.5, 10.51]
    )
    with pytest.raises(
        DataError, match="column 't' holds 'noon' in row 2, where dates are written as %H:%M; write all"
    ):
        hours("10:30", "noon")
    dates = prepare(frame(t=pd.date_range("2024-01-01", periods=N).strftime("%d.%m.%Y")), standardize=False).encoder
    new = pd.DataFrame({"t": ["02.01.2024", "02.01.2024 12:00", "02.01.2024 12:00:00"], "a": 1.0})
    np.testing.assert_allclose(np.diff(dates.transform(new)[:, dates.features.index("t (days)")]), [0.5, 0.0])


def test_numbers_with_dots_are_not_guessed_to_be_times_where_they_may_be_dates():
    texts = pd.Series(pd.date_range("2020-01-01", periods=N)).dt.strftime("%d.%m.%y").where(PLACES < 23, "05.01.20")
    with pytest.raises(DataError, match=r"such as '01.01.20', which may be dates or times of day; write them as 2024"):
        prepare(frame(t=texts))


def test_dates_may_have_spaces_around_and_are_refused_if_written_otherwise():
    texts = pd.Series(pd.date_range("2020-01-01", periods=N).strftime("%d.%m.%Y"))
    plain = prepare(frame(t=texts))
    np.testing.assert_array_equal(prepare(frame(t=texts + " ")).X[:, 1:], plain.X[:, 1:])
    new = pd.DataFrame({"t": ["3.1.2020", "2020-01-03"], "a": 1.0})
    with pytest.raises(DataError, match=r"column 't' holds '2020-01-03' in row 2, where dates are written as %d.%m.%Y"):
        plain.encoder.transform(new)


def test_dates_of_pandas_and_dates_that_can_be_read_in_two_ways():
    dates = pd.date_range("2020-01-01", periods=N)
    np.testing.assert_array_equal(
        prepare(frame(t=dates)).X[:, 1:], prepare(frame(t=dates.strftime("%Y-%m-%d"))).X[:, 1:]
    )
    np.testing.assert_array_equal(prepare(frame(t=dates.date)).X[:, 1:], prepare(frame(t=dates)).X[:, 1:])
    np.testing.assert_array_equal(prepare(frame(t=dates.tz_localize("UTC"))).X[:, 1:], prepare(frame(t=dates)).X[:, 1:])
    holes = pd.Series(dates.strftime("%Y-%m-%d")).mask(PLACES < 6, "?")
    table = frame(t=holes)
    assert prepare(table).encoder.gaps == ()
    assert prepare(table.assign(y=table["y"] + 5.0 * (PLACES < 6))).encoder.gaps == ("t",)
    with pytest.raises(
        DataError, match=r"column 't' holds dates such as '01/02/2020', which may begin with the day or"
    ):
        prepare(frame(t=[f"{1 + i % 12:02d}/02/2020" for i in PLACES]))
    with pytest.raises(DataError, match="column 'y' holds dates or times"):
        prepare(frame(a2=PLACES % 3).assign(y=dates))


NUMBER_LIKE = {
    "currency": ["$1,200", "$900"],
    "per cent": ["12,5%", "3%"],
    "commas": ["1,5", "2,5", "3,25"],
}


@pytest.mark.parametrize("case", NUMBER_LIKE)
def test_text_that_looks_like_numbers_is_not_coded(case):
    values = np.array(NUMBER_LIKE[case])[PLACES % len(NUMBER_LIKE[case])]
    with pytest.raises(DataError, match="'c' holds what looks like numbers .* --drop c, or --categorical c"):
        prepare(frame(c=values))
    assert "c" in chosen(frame(c=values), categorical="c").encoder.categories
    assert "c" in prepare(frame(c=np.array(["20-29", "30-39"])[PLACES % 2])).encoder.categories  # a range is a name


def test_numbers_with_flaws_are_refused_or_missing():
    values = np.where(PLACES % 10 == 3, "<5", (PLACES / 7).round(3).astype(str))
    with pytest.raises(DataError, match=r"numbers but for 6 of 60 rows \(first: '<5' in row 4\); .* --numeric c"):
        prepare(frame(c=values))
    table = frame(c=values)
    data = chosen(table, numeric="c")
    assert data.columns[1]["missing"] == 0.1
    assert data.encoder.kinds == {"c": Kind(loose=True)}
    np.testing.assert_array_equal(data.encoder.transform(table), data.X)
    with pytest.raises(DataError, match="column 'c' holds no number"):
        chosen(frame(c=["u", "v"] * 30), numeric="c")


WRONG = {
    "missing": ({"missing": "ignore"}, OptionError, "missing 'ignore' is unknown; it is one of impute, drop, refuse"),
    "a name": ({"drop": "aa"}, DataError, "has no column 'aa'; did you mean 'a'?"),
    "a pattern": ({"drop": "z*"}, DataError, "has no column 'z*'"),
    "the target": ({"drop": "y"}, OptionError, "drop names 'y', which isn't a feature but has another role"),
    "two types": ({"numeric": "a", "categorical": "a"}, OptionError, "categorical and numeric both name 'a'"),
    "dropped and kept": ({"drop": "a", "keep": "a"}, OptionError, "drop and keep both name 'a'"),
    "one level": ({"ordinal": {"c": ["S"]}}, OptionError, "ordinal 'c' needs at least two levels"),
    "a level twice": ({"ordinal": {"c": ["S", "S"]}}, OptionError, "each once"),
    "text for levels": ({"ordinal": {"c": "SML"}}, OptionError, "ordinal 'c' needs at least two levels"),
    "too few levels": ({"ordinal": {"c": ["S", "M"]}}, DataError, "none of its levels S<M: 'L'; name every level"),
    "all dropped": ({"drop": ["a", "c"]}, DataError, "no column is left to learn from"),
}


@pytest.mark.parametrize("case", WRONG)
def test_choices_that_do_not_fit_the_table(case):
    said, error, message = WRONG[case]
    with pytest.raises(error) as caught:
        chosen(frame(c=np.array(list("SML"))[PLACES % 3]), **said)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_target_that_gaps_have_nothing_to_do_with_tells_rarely(weighted):
    rng, told = np.random.default_rng(0), 0
    for _ in range(200):
        X, y = rng.normal(size=(100, 2)), rng.normal(size=100)
        X[rng.random(100) < 0.2, 0] = np.nan
        weights = rng.lognormal(sigma=1.5, size=100) if weighted else None
        told += len(from_arrays(X, y, weights=weights).encoder.gaps)
    assert told <= 6  # beyond three standard errors: 0.5 are expected, of unequal weights a few more


@given(arrays(np.float64, (12, 3), elements=st.floats(-1e6, 1e6) | st.just(np.nan)))
@settings(deadline=None)
def test_means_take_the_place_of_what_is_missing(X):
    # Each column has two values at least.
    X[:2] = [[0.0, 1.0, 2.0], [1.0, 3.0, -2.0]]
    holes = np.isnan(X)
    data = from_arrays(X, np.arange(12) / 7)
    width = 3
    expected = X.copy()
    if holes.any():
        data.encoder.law.fill(expected)
    np.testing.assert_array_equal(data.X[:, :width], expected)
    np.testing.assert_array_equal(data.X[:, :width][~holes], X[~holes])
    alone = from_arrays(X[:, :1], np.arange(12) / 7)  # there is nothing else to tell by
    np.testing.assert_allclose(alone.X[:, :1], SimpleImputer().fit_transform(X[:, :1]), rtol=1e-12, atol=1e-9)
    y = np.arange(12) / 7
    gaps = [
        f"x{j}"
        for j in range(3)
        if holes[:, j].mean() >= COMMON and abs(np.corrcoef(holes[:, j], y)[0, 1]) * np.sqrt(12) > TELLING
    ]
    assert data.encoder.gaps == tuple(gaps)
    np.testing.assert_array_equal(data.X[:, width:], holes[:, [int(name[1]) for name in gaps]])
    scaled = from_arrays(X, np.arange(12) / 7, standardize=True)
    # The scale is that of the values that are there.
    there = [(column[~np.isnan(column)].mean(), column[~np.isnan(column)].std()) for column in X.T]
    for j, (mean, std) in enumerate(there):
        np.testing.assert_allclose(scaled.X[~holes[:, j], j], (X[~holes[:, j], j] - mean) / std, rtol=1e-9, atol=1e-9)
    table = from_arrays(pd.DataFrame(X, columns=["x0", "x1", "x2"]), np.arange(12) / 7, standardize=True)
    np.testing.assert_allclose(table.X, scaled.X, rtol=1e-9, atol=1e-9)


def test_without_gaps_nothing_changes():
    X = RNG.normal(size=(N, 3))
    for missing in ("impute", "drop", "refuse"):
        data = from_arrays(X, Y, standardize=True, missing=missing)
        np.testing.assert_allclose(data.X, make_pipeline(StandardScaler()).fit_transform(X), rtol=1e-12, atol=1e-12)
        assert not any("missing" in note for note in data.notes)


def gappy():
    """A table whose target is another one where a and c are missing."""
    table = frame(c=np.array(["u", "v", None], dtype=object)[np.minimum(PLACES % 4, 2)], few=RNG.normal(size=N))
    table.loc[[3, 4, 5, 6], "a"] = np.nan
    table.loc[7, "few"] = np.nan
    table["y"] += 3.0 * table["c"].isna() + 5.0 * table["a"].isna()
    table.loc[[8, 9], "y"] = np.nan
    return table


def test_every_column_with_gaps_is_named_with_its_share():
    table = gappy()
    data = prepare(table)
    assert data.n == 58
    assert data.given == N
    np.testing.assert_array_equal(data.places, np.delete(PLACES, [8, 9]))
    assert "2 of 60 rows without the target 'y' left out" in data.notes
    said = next(note for note in data.notes if note.startswith("missing values"))
    assert "'a' 6.9 %, 'c' 52 %, 'few' 1.7 % of 58 rows" in said
    assert data.encoder.gaps == ("a", "c")
    assert data.encoder.fills["c"] == "u"
    with pytest.raises(DataError, match="column 'y': 2 values are missing of 60"):
        chosen(table, missing="refuse")
    with pytest.raises(
        DataError, match=r"missing in 3 columns \('a' 6.9 %, 'c' 52 %, 'few' 1.7 % of 58 rows\); .*--mis"
    ):
        chosen(table.drop(index=[8, 9]), missing="refuse")


def test_rows_with_gaps_are_left_out_on_demand():
    table = gappy()
    data = chosen(table, missing="drop")
    whole = prepare(table.dropna())
    np.testing.assert_array_equal(data.X, whole.X)
    np.testing.assert_array_equal(data.Y, whole.Y)
    np.testing.assert_array_equal(data.places, np.flatnonzero(table.notna().all(axis=1)))
    assert any(note.startswith("32 of 58 rows with missing values left out ('a' 6.9 %") for note in data.notes)
    fewer = chosen(table, missing="drop", drop="c")  # what is no feature may lack values
    assert fewer.n == 53
    with pytest.raises(DataError, match="only 0 rows are left, as the others have missing values; give --missing imp"):
        from_arrays(np.where(np.eye(4) > 0, np.nan, 1.0), np.arange(4.0), missing="drop")
    with pytest.raises(DataError, match="only 0 rows are left, as the others have no value of the target 'y'"):
        prepare(table.assign(y=np.nan))


def test_weights_groups_and_classes_go_with_the_rows():
    table = gappy()
    weights = np.where(PLACES < 3, 0.0, PLACES)
    data = prepare(table, weights=weights, groups=PLACES // 10)
    np.testing.assert_array_equal(data.weights, weights[data.places])
    assert 8 not in data.places
    a = table["a"].to_numpy()[data.places]
    there = ~np.isnan(a)
    assert data.encoder.fills["a"] == pytest.approx(np.average(a[there], weights=data.weights[there]))
    labels = pd.Series(PLACES % 2).astype(float).mask(PLACES == 5)
    assert prepare(frame().assign(y=labels)).labels == [0, 1]
    signs = pd.Series(np.array(["+", "-"])[PLACES % 2])
    assert prepare(frame().assign(y=signs)).labels == ["+", "-"]
    with pytest.raises(DataError, match="target 'y' has one value only"):
        prepare(frame().assign(y=signs.replace("+", "p")))  # - is a gap here


def test_a_model_takes_gaps_as_its_table_had_them():
    table = gappy()
    encoder = Encoder.from_json(json.loads(json.dumps(prepare(table).encoder.to_json())))
    new = pd.DataFrame({"a": [np.nan, 1.0], "c": ["?", "v"], "few": [1.0, np.nan]})
    X = encoder.transform(new)
    assert encoder.features == ["a", "few", "c=u", "c=v", "a is missing", "c is missing"]
    np.testing.assert_array_equal(X[:, 2:], [[1, 0, 1, 1], [0, 1, 0, 0]])
    raw = np.array([[np.nan, 1.0], [1.0, np.nan]])
    encoder.law.fill(raw)
    np.testing.assert_allclose(X[:, :2], (raw - encoder.mean) / encoder.scale, rtol=1e-12)
    np.testing.assert_array_equal(encoder.missing_rows(new), [True, True])
    refusing = replace(encoder, missing="refuse")
    with pytest.raises(DataError, match="values are missing in 3 columns"):
        refusing.transform(new)
    dropping = chosen(table, missing="drop").encoder
    with pytest.warns(
        SelectionWarning, match=r"2 rows lack values \('a', 'few', 'c'\), and the model was selected with"
    ):
        dropping.transform(new)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dropping.transform(table.dropna())


def test_a_model_of_before_there_were_fills_refuses_gaps():
    document = prepare(frame(c=np.array(["u", "v"])[PLACES % 2])).encoder.to_json()
    old = {name: document[name] for name in ("columns", "numeric", "mean", "scale", "categories", "ignored")}
    encoder = Encoder.from_json(old)
    assert encoder.features == ["a", "c=u", "c=v"]
    with pytest.raises(DataError, match="column 'a': 1 value is missing of 2"):
        encoder.transform(pd.DataFrame({"a": [1.0, np.nan], "c": ["u", "v"]}))


def test_a_column_of_one_value_and_gaps_says_where_they_are():
    data = prepare(frame(alley=np.where(PLACES % 3 == 0, "yes", None), ones=np.where(PLACES % 2, 1.0, np.nan)))
    assert data.encoder.features == ["a", "alley is missing", "ones is missing"]
    np.testing.assert_array_equal(data.X[:4, 1], [0, 1, 1, 0])
    again = data.encoder.transform(pd.DataFrame({"a": [1.0], "alley": ["yes"], "ones": [np.nan]}))
    np.testing.assert_array_equal(again[0, 1:], [0, 1])


def frames_of_other_libraries(table):
    polars = pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    lists = {name: [None if pd.isna(x) else x for x in column] for name, column in table.items()}
    return {
        "polars": polars.DataFrame(lists),
        "lazy": polars.DataFrame(lists).lazy(),
        "pyarrow": pyarrow.Table.from_pandas(table),
        "pandas by pyarrow": table.convert_dtypes(dtype_backend="pyarrow"),
    }


@pytest.mark.parametrize("library", ["polars", "lazy", "pyarrow", "pandas by pyarrow"])
def test_frames_of_other_libraries(library):
    table = pd.DataFrame({
        "a": [1.5, None, 3.0, 4.0, 7.0, 9.5],
        "c": ["u", "v", None, "u", "v", "v"],
        "t": pd.date_range("2020-01-01", periods=6),
        "b": [True, False, True, False, True, True],
    })  # fmt: skip
    y = [0.5, 1.5, 2.0, 3.5, 1.0, 2.5]
    expected = from_arrays(table, y, standardize=True)
    given = frames_of_other_libraries(table)[library]
    data = from_arrays(given, y, standardize=True)
    assert data.encoder.features == expected.encoder.features
    np.testing.assert_allclose(data.X, expected.X, rtol=1e-12)
    np.testing.assert_allclose(expected.encoder.transform(given), expected.X, rtol=1e-12)
    if library == "polars":
        import polars

        np.testing.assert_array_equal(from_arrays(given, polars.Series("y", y), standardize=True).Y, expected.Y)


PERIODS = {
    "months": (lambda d: f"{d:%Y-%m}", "M"),
    "months with names": (lambda d: f"{d:%Y %b}", "M"),
    "months with names first": (lambda d: f"{d:%B %Y}", "M"),
    "months of Eurostat": (lambda d: f"{d:%Y}M{d:%m}", "M"),
    "months with slashes": (lambda d: f"{d:%m/%Y}", "M"),
    "quarters": (lambda d: f"{d.year} Q{d.quarter}", "Q"),
    "quarters first": (lambda d: f"Q{d.quarter}-{d.year}", "Q"),
    "weeks": (lambda d: f"{d:%G W%V}", "W"),
}


@pytest.mark.parametrize("case", PERIODS)
def test_months_quarters_and_weeks_become_days_and_months(case):
    write, unit = PERIODS[case]
    starts = pd.period_range("2019-11-18", periods=N, freq=unit).start_time
    texts = [write(start) for start in starts]
    data = prepare(frame(t=texts), standardize=False)
    assert data.encoder.features[1:] == ["t (days)", "t (month)"]
    np.testing.assert_array_equal(data.X[:, 1], (starts - pd.Timestamp(0)) / pd.Timedelta(days=1))
    np.testing.assert_array_equal(data.X[:, 2], starts.month)
    assert any("1 with months, quarters or weeks, as days and month (t; to predict what" in note for note in data.notes)
    encoder = Encoder.from_json(json.loads(json.dumps(data.encoder.to_json())))
    np.testing.assert_array_equal(encoder.transform(pd.DataFrame({"t": texts[3:5], "a": 1.0}))[:, 1:], data.X[3:5, 1:])
    with pytest.raises(DataError, match="column 't' holds 'soon' in row 2, where dates are written as"):
        encoder.transform(pd.DataFrame({"t": [texts[0], "soon"], "a": 1.0}))


def test_seasons_are_years_and_counted_years_have_months_in_their_order():
    seasons = prepare(frame(t=[f"{1960 + i}-{(61 + i) % 100:02d}" for i in PLACES]), standardize=False)
    assert seasons.encoder.features[1:] == ["t (days)"]
    np.testing.assert_array_equal(np.diff(seasons.X[:, 1]) // 365, 1)
    counted = [f"{1 + i // 12}-{1 + i % 12:02d}" for i in PLACES]
    data = prepare(frame(t=counted), standardize=False)
    np.testing.assert_array_equal(data.X[:, 2], 1 + PLACES % 12)
    assert (np.diff(data.X[:, 1]) >= 28).all()
    other = prepare(frame(t=[counted[i] for i in (PLACES * 7) % 12]), standardize=False)
    assert len(other.encoder.categories["t"]) == 12  # ranges or scores, such as 1-02, that come in any order


@pytest.mark.parametrize("text", ["{}-{}", "{} Q{}", "{}M{:02d}"])
def test_codes_are_no_periods_of_years_long_ago_or_far_away(text):
    codes = [text.format(4010 + i % 5, i % 3 + 1) for i in PLACES]
    assert len(prepare(frame(t=codes)).encoder.categories["t"]) == 15
    months = [text.format(2010 + i % 5, i % 3 + 1) for i in PLACES]
    assert "t" not in prepare(frame(t=months)).encoder.categories


def test_numbers_that_may_name_the_rows_of_a_table_without_names_are_said():
    numbers = 1000 + (PLACES * 17) % N
    said = [note for note in prepare(frame().rename(columns={"a": "x1"}).assign(x1=numbers)).notes if "x1" in note]
    assert said == [f"column 'x1' has {N} whole numbers in {N} rows: if these name the rows, --drop x1"]
    for values in (numbers % 37, numbers + 0.5):
        assert not any("x1" in note for note in prepare(frame(x1=values)).notes)
    assert not any("x1" in note for note in prepare(frame(x1=numbers), choices=make_choices(numeric=["x1"])).notes)


def test_september_has_an_abbreviation_of_four_letters():
    months = ["Sept 2020", "Oct 2020", "Sep. 2021"]
    data = prepare(frame(t=np.array(months)[PLACES % 3]), standardize=False)
    np.testing.assert_array_equal(data.X[:3, 2], [9, 10, 9])


def test_a_word_for_nothing_is_a_gap_among_months_that_begin_with_letters():
    months = np.array(["Jan 2020", "None", "Mar 2021"])
    data = prepare(frame(t=months[PLACES % 3]), standardize=False)
    assert data.columns[1]["type"] == "date"
    assert data.columns[1]["missing"] == 1 / 3
    rows = pd.DataFrame({"t": ["None", "Mar 2021"], "a": [1.0, 1.0]})
    np.testing.assert_array_equal(data.encoder.missing_rows(rows), [True, False])


@pytest.mark.parametrize("words", [["None", "Some", "Marked"], ["Na", "Mg", "Al"], ["S1", "None", "S20"]])
def test_a_word_for_nothing_is_a_level_among_words(words):
    levels = np.array(words)[PLACES % 3]
    data = prepare(frame(c=levels))
    assert set(data.encoder.categories["c"]) == set(words)
    for word in words:  # also alone, where no other words tell
        row = data.encoder.transform(pd.DataFrame({"c": [word], "a": [1.0]}))
        np.testing.assert_array_equal(row[0, 1:], data.X[words.index(word), 1:])
    assert prepare(frame().assign(y=levels)).labels == sorted(words)
    assert from_arrays(PLACES[:, None] * 1.5, levels).n == N


def test_a_word_for_nothing_is_a_level_where_it_is_told_to_be():
    # Spaces beside it belong to it, and a level of an order is one where no other level is.
    levels = np.array([" Na", "Mg", "Al "])[PLACES % 3]
    data = prepare(frame(c=levels))
    row = data.encoder.transform(pd.DataFrame({"c": [" Na"], "a": [1.0]}))
    np.testing.assert_array_equal(row[0, 1:], data.X[0, 1:])
    for others in (["Mild", "Severe"], ["1", "2"]):
        order = ("None", *others)
        data = prepare(frame(c=np.array(order)[PLACES % 3]), choices=make_choices(ordinal={"c": order}))
        assert not data.encoder.gaps
        for j, level in enumerate(order):
            row = data.encoder.transform(pd.DataFrame({"c": [level], "a": [1.0]}))
            assert row[0, 1] == data.X[j, 1]


def test_a_column_of_one_text_and_gaps_is_missing_or_not():
    # As in models of before Na was a level: the gaps of their only other level are none by now.
    data = prepare(frame(c=np.where(PLACES % 3, "Mg", "?")))
    encoder = data.encoder
    assert not encoder.categories
    assert encoder.gaps == ("c",)
    rows = pd.DataFrame({"c": ["Mg", "Na", None], "a": [1.0, 1.0, 1.0]})
    np.testing.assert_array_equal(encoder.transform(rows)[:, -1], [0, 1, 1])
    np.testing.assert_array_equal(encoder.missing_rows(rows), [False, True, True])


def test_a_word_for_nothing_is_a_gap_among_numbers():
    texts = pd.Series(PLACES / 7).astype(str).where(PLACES % 6 > 0, "None")
    data = prepare(frame(c=texts))
    assert data.encoder.numeric == ("a", "c")
    assert data.columns[1]["missing"] == pytest.approx(1 / 6)
    np.testing.assert_allclose(data.encoder.transform(pd.DataFrame({"c": ["None"], "a": [1.0]}))[0, 1], 0, atol=3)


@pytest.mark.parametrize("name", ["rownames", "row.names", "Row Name"])
@pytest.mark.parametrize("values", [PLACES * 7 % 61 + 1.5, PLACES + 1, PLACES * 3])
def test_names_of_rows_are_no_feature_even_alone(name, values):
    data = prepare(frame(**{name: values}))
    assert data.encoder.used == ("a",)
    assert any(note.startswith(f"column '{name}' is naming the rows and left out") for note in data.notes)
    alone = frame(**{name: values}).drop(columns="a")
    with pytest.raises(DataError, match=f"no column is left to learn from \\('{name}' is naming the rows\\); add feat"):
        prepare(alone)
    assert chosen(alone, numeric=name).encoder.used == (name,)


def test_a_count_that_stays_is_said():
    assert (
        "column 'c' counts the rows, and stays as there is no other feature"
        in prepare(frame(c=PLACES).drop(columns="a")).notes
    )


@pytest.mark.parametrize("name", ["id", "patient", "Subject", "USUBJID", "pat_id"])
def test_what_several_rows_belong_to_is_said(name):
    remark = f"column '{name}' seems to name what rows belong to (20 values): to predict for new ones, hold the rows of"
    for values in (PLACES // 3, [f"s{i // 3}" for i in PLACES]):
        assert any(note.startswith(remark) for note in prepare(frame(**{name: values})).notes)
        assert not any("belong" in note for note in chosen(frame(**{name: values}), drop=name).notes)
    assert not any("belong" in note for note in prepare(frame(**{name: PLACES % 3})).notes)


CODES = {
    "identifiers of dashes": [f"01-70{i % 7}-1{i % 25:03d}" for i in PLACES],
    "sizes": [f"1{i % 25}5/60" for i in PLACES],
    "lists": [f"{i % 5}, {i % 7}" for i in PLACES],
    "tickets, many of them numbers": [f"A/5 {i}" if i % 5 < 2 else str(3000 + i) for i in PLACES],
}


@pytest.mark.parametrize("case", CODES)
def test_codes_of_digits_are_categories_or_left_out(case):
    data = prepare(frame(c=CODES[case]))
    assert "c" in data.encoder.categories or data.columns[1]["left_out"].startswith("text with")


FLAWED = {
    "units": [f"{i} kg" if i % 3 == 0 else str(i / 7) for i in PLACES],
    "feet and inches": [f"{i}' {i % 12}\"" if i % 3 == 0 else str(i / 7) for i in PLACES],
    "malformed dates": [f"{i}/13/2024" for i in PLACES],
    "lap times": [f"{i}:23.45" for i in PLACES],
}


@pytest.mark.parametrize("case", FLAWED)
def test_numbers_and_dates_with_flaws_are_refused(case):
    with pytest.raises(DataError, match="column 'c' holds (numbers but for|what looks like numbers or dates but)"):
        prepare(frame(c=FLAWED[case]))


def test_lines_of_names_below_the_first_are_told():
    texts = ["node", "left", *map(str, PLACES[2:] / 7)]
    with pytest.raises(
        DataError, match="for 2 of 60 rows .*; leave lines of names or units above the numbers out by --sk"
    ):
        prepare(frame(c=texts))


def test_numbers_may_have_spaces_at_which_no_line_ends():
    texts = pd.Series(PLACES / 7).astype(str).where(PLACES != 3, "\xa07.5")
    assert prepare(frame(c=texts), standardize=False).X[3, 1] == 7.5


NO_TARGETS = {
    "names": (
        [f"n{i}" for i in PLACES],
        "target 'y' is text with 60 distinct values in 60 rows, too many for classes; n",
    ),
    "dates": (
        pd.date_range("2020-01-01", periods=N).astype(str),
        "target 'y' holds 60 different dates (first: '2020-01",
    ),
    "one value": (["a"] * N, "so there is nothing to learn; name the column to predict (--target NAME)"),
}


FLAWED_TARGETS = {
    "a flaw": np.where(PLACES % 10 == 3, "<5", (PLACES / 7).round(3).astype(str)),
    "a sign beside some": np.where(PLACES % 2 == 0, "$5.5", (PLACES / 7).round(3).astype(str)),
    "commas": np.array(["1,5", "2,5", "3,25"])[PLACES % 3],
    "digits": pd.Series([10**400, *PLACES[1:].tolist()], dtype=object),
    "dates in two ways": [f"{1 + i % 12:02d}/{1 + i // 12:02d}/2020" for i in PLACES],
    "months or days": [f"{'JFMASOND'[i % 8]}{['an', 'eb', 'ar', 'pr', 'ep', 'ct', 'ov', 'ec'][i % 8]}-{10 + i // 8}"
                       for i in PLACES],
}  # fmt: skip


@pytest.mark.parametrize("case", FLAWED_TARGETS)
def test_a_target_is_not_to_be_dropped(case):
    with pytest.raises(DataError, match=r"'y'.* name the column to predict \(--target NAME\)") as caught:
        prepare(frame().assign(y=FLAWED_TARGETS[case]))
    assert "--drop" not in str(caught.value)
    assert "--categorical" not in str(caught.value)
    with pytest.raises(DataError, match="--drop"):
        prepare(frame(c=FLAWED_TARGETS[case]))


def test_dates_that_can_be_read_in_two_ways_are_labels_where_they_are_few():
    labels = np.array(["01/02/2020", "02/02/2020"])[PLACES % 2]
    assert prepare(frame().assign(y=labels)).labels == ["01/02/2020", "02/02/2020"]


@pytest.mark.parametrize("case", ["a flaw", "a sign beside some", "commas"])
def test_columns_of_new_rows_are_not_to_be_dropped(case):
    encoder = prepare(frame(c=PLACES / 7)).encoder
    with pytest.raises(DataError, match=r"'c' .*, or write them as they are in the table of the model"):
        encoder.transform(frame(c=FLAWED_TARGETS[case]).drop(columns="y"))


def test_the_gaps_of_eurostat_are_gaps():
    texts = pd.Series((PLACES / 7).round(3).astype(str)).where(PLACES % 20 != 3, ":") + " "
    data = prepare(frame(c=texts), standardize=False)
    assert data.columns[1]["missing"] == 3 / N
    assert data.X[7, 1] == 1.0


def test_weights_and_times_are_not_to_be_dropped():
    table = frame(w=np.where(PLACES % 10 == 3, "<5", (PLACES / 7).round(3).astype(str)))
    with pytest.raises(DataError, match=r"'w' holds numbers but for 6 of 60 rows .* name another column \(--weights"):
        assign_roles(table, weights="w")
    with pytest.raises(DataError, match="'t' holds dates such as '01/01/2020', .* or name another column by when"):
        prepare(frame(t=FLAWED_TARGETS["dates in two ways"]), near={"when": "t"})


@pytest.mark.parametrize("case", NO_TARGETS)
def test_what_is_no_target_is_refused_with_what_to_do(case):
    values, message = NO_TARGETS[case]
    with pytest.raises(DataError) as caught:
        prepare(frame().assign(y=values))
    assert message in str(caught.value)
    assert "name the column to predict (--target NAME)" in str(caught.value)


def test_the_last_column_is_no_target_if_it_names_the_rows():
    table = frame().assign(id=PLACES * 7 + 1000)
    with pytest.raises(
        DataError, match="the last column, 'id', is an identifier by name and values; name the column to"
    ):
        prepare(table)
    assert prepare(table, "id").task == "regression"
    few = prepare(frame().assign(y=np.array(["2024-01-01", "2024-02-01"])[PLACES % 2]))
    assert few.labels == ["2024-01-01", "2024-02-01"]


def test_dates_may_be_known_to_the_month_or_year_only():
    texts = [f"{1990 + i % 30}" if i % 3 == 0 else f"2014-{1 + i % 12:02d}" + "-27" * (i % 2) for i in PLACES]
    data = prepare(frame(t=texts), standardize=False)
    assert data.columns[1]["type"] == "date"
    days = np.array(["1990-01-01", "2014-02-27", "2014-03-01"], "datetime64[D]").astype(int)
    np.testing.assert_array_equal(data.X[:3, 1], days)


@pytest.mark.parametrize("words", [["None", "Some", "Marked"], ["Na", "Mg", "Al"]])
def test_a_word_for_nothing_is_a_level_of_a_categorical_column_and_in_parts(words):
    levels = pd.Categorical(np.array(words)[PLACES % 3])
    assert set(prepare(frame(c=levels)).encoder.categories["c"]) == set(words)
    seen = Different.of(pd.Series(np.array(words)[PLACES % 3]))
    assert set(seen.texts) == set(words)
    assert seen.unread == N


def test_periods_are_those_of_all_rows_where_these_are_in_parts():
    texts = pd.Series([f"{1990 + i // 4} Q{1 + i % 4}" for i in PLACES], name="t")
    seen = [Different.of(part) for part in (texts[:20], texts[20:])]
    column = Seen("t", Glimpse.of(texts, PLACES, N), seen[0].merge(seen[1]))
    assert find_kind(column, make_choices()).kind == Kind("date", format="2024 Q1")
