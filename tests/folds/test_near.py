"""Folds whose fits leave out rows that are near in time or space: which rows those are, and what can't be asked for."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import haversine_distances
from sklearn.model_selection import TimeSeriesSplit

import kernsel
from kernsel.data import from_arrays, prepare
from kernsel.data.near import EARTH
from kernsel.errors import DataError, OptionError
from kernsel.folds import make_folds
from kernsel.folds.dealing import cut_regions
from kernsel.folds.partition import Partition
from kernsel.selection.carry_out import select_dataset

DAYS = pd.date_range("2024-01-01", periods=40)

ROUNDING = 1e-7
"""Relative, on distances on the earth: arcs of some kilometres come from cosines by scikit-learn."""


def dataset(n=40, groups=None, frame=None, **near):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2)) if frame is None else frame
    return from_arrays(X, np.arange(n) + 0.5, groups=groups, near=near)


def away(made):
    """The rows that each fit leaves out."""
    training = made.number != np.arange(made.starts.size - 1)[:, None] if made.training is None else made.training
    return [set(np.flatnonzero(~each).tolist()) for each in training]


def test_blocks_leave_out_the_rows_around_them():
    made = make_folds("blocks:4", dataset(purge=2, embargo=3))
    assert made.number.tolist() == np.repeat(np.arange(4), 10).tolist()
    assert away(made) == [set(range(15)), set(range(8, 25)), set(range(18, 35)), set(range(28, 40))]
    assert made.text == "4 blocks in the order of the rows, 2 rows before and after and 3 rows more after left out"
    assert make_folds("blocks:4", dataset()).training is None


def test_folds_in_time_leave_a_gap_as_that_of_scikit_learn():
    data = dataset(42)
    made = make_folds("time:5", dataset(42, purge=3))
    gapped = TimeSeriesSplit(5, gap=3).split(data.X)
    for (train, test), fold, training in zip(gapped, range(5), made.training, strict=True):
        assert np.flatnonzero(training).tolist() == train.tolist()
        assert np.flatnonzero(made.number == fold).tolist() == test.tolist()
    same = make_folds(TimeSeriesSplit(5, gap=3), data)
    np.testing.assert_array_equal(same.training, made.training)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["loo", "blocks:3", "time:3", "column"]), st.booleans())
def test_what_is_near_in_time_is_what_brute_force_finds(seed, folds, named):
    rng = np.random.default_rng(seed)
    n, purge, embargo = 20, int(rng.integers(0, 4)), None if folds == "time:3" else int(rng.integers(0, 4))
    time = np.round(rng.normal(size=n) * 8) if named else np.arange(20)
    options = {"purge": purge, "embargo": embargo} | ({"when": time} if named else {})
    bare = {"when": time} if named else {}
    given_folds = rng.integers(0, 3, n) if folds == "column" else folds
    base = make_folds(given_folds, dataset(n))
    if folds in ("blocks:3", "time:3"):
        base = make_folds(given_folds, dataset(n, **bare))
        order = np.argsort(time, kind="stable")
        assert (np.diff(base.number[order]) >= 0).all()
    try:
        made = make_folds(given_folds, dataset(n, **options))
    except OptionError:  # no row is left to learn from
        return
    np.testing.assert_array_equal(made.number, base.number)
    for fold, kept in enumerate(made.training):
        for row in range(n):
            gaps = time[row] - time[made.number == fold]
            near = ((gaps <= purge + (embargo or 0)) & (gaps >= -purge)).any()
            before = made.number[row] < fold if folds == "time:3" else made.number[row] != fold
            assert kept[row] == (before and not near)


def test_dates_have_spans_and_needn_t_be_in_order():
    days = pd.date_range("2024-01-01", periods=30).to_series().sample(frac=1.0, random_state=0).reset_index(drop=True)
    frame = pd.DataFrame({"day": days.dt.strftime("%Y-%m-%d"), "x": np.arange(30.0)})
    data = dataset(30, frame=frame, when="day", purge="48h", embargo="1d")
    made = make_folds("blocks:3", data)
    place = np.argsort(np.argsort(days))
    assert made.number.tolist() == (place // 10).tolist()
    middle = place[sorted(away(made)[1])]
    assert sorted(middle) == list(range(8, 23))
    assert made.text == "3 blocks in the order of time, 48h before and after and 1d more after left out"
    typed = dataset(30, frame=frame.assign(day=days), when="day", purge="2d", embargo="24h")
    np.testing.assert_array_equal(make_folds("blocks:3", typed).training, made.training)


def test_rows_of_one_time_are_not_apart():
    made = make_folds("blocks:2", dataset(6, when=np.array([0, 0, 1, 1, 1, 2])))
    assert away(made) == [{0, 1, 2, 3, 4}, {2, 3, 4, 5}]


@given(st.integers(0, 2**32 - 1), st.sampled_from([None, "groups", "loo"]))
def test_what_is_within_a_buffer_is_what_brute_force_finds(seed, kind):
    rng = np.random.default_rng(seed)
    points = np.round(rng.normal(size=(30, 2)), 1)
    groups = rng.integers(0, 5, 30) if kind == "groups" else None
    made = make_folds("loo" if kind == "loo" else 3, dataset(30, groups, coordinates=points, buffer=0.2))
    distances = np.sqrt(((points[:, None] - points) ** 2).sum(axis=2))
    for fold, found in enumerate(away(made)):
        held = made.number == fold
        assert found == set(np.flatnonzero((distances[:, held] <= 0.2 + 1e-12).any(axis=1)).tolist())


def test_kilometres_are_along_a_great_circle():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"lat": rng.uniform(-89, 89, 60), "lon": rng.uniform(-180, 180, 60), "x": np.arange(60.0)})
    frame.loc[1, ["lat", "lon"]] = frame.loc[0, "lat"] + 0.01, frame.loc[0, "lon"]
    frame.loc[[2, 3], ["lat", "lon"]] = [[0.0, 179.99], [0.0, -179.99]]  # across the date line
    data = dataset(60, frame=frame, coordinates=["lat,lon"], buffer="1500 km")
    distances = EARTH * haversine_distances(np.radians(frame[["lat", "lon"]]))
    made = make_folds("loo", data)
    for row, found in enumerate(away(made)):
        assert found == set(np.flatnonzero(distances[row] <= 1500 * (1 + ROUNDING)).tolist())
    miles = dataset(60, frame=frame, coordinates=["lat", "lon"], buffer="932.0567883560mi")
    np.testing.assert_array_equal(make_folds("loo", miles).training, made.training)
    assert 3 in away(make_folds("loo", dataset(60, frame=frame, coordinates=("lat", "lon"), buffer="3000m")))[2]


@given(st.integers(1, 9), st.integers(9, 60), st.integers(1, 3))
def test_regions_are_of_one_size_and_compact(folds, n, c):
    points = np.random.default_rng(n).normal(size=(n, c))
    number = cut_regions(points, folds)
    sizes = np.bincount(number, minlength=folds)
    assert sizes.size == folds
    assert np.ptp(sizes) <= 1
    if c == 1:
        assert (np.diff(number[np.argsort(points[:, 0])]) >= 0).all()


def test_rows_left_out_of_the_table_are_no_neighbours():
    """Purge counts rows as they were given; weights and targets that lack leave rows out."""
    y = np.arange(12.0)
    y[4] = np.nan
    data = from_arrays(np.arange(12.0)[:, None], y, near={"purge": 2})
    made = make_folds("blocks:2", data)
    assert data.places.tolist() == [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11]
    assert [set(data.places[list(each)].tolist()) for each in away(made)] == [set(range(9)) - {4}, set(range(5, 12))]
    assert data.take(np.array([0, 10])).sample.near.time.tolist() == [0.0, 11.0]


def test_only_time_lets_a_target_leave_its_range():
    points = np.random.default_rng(0).normal(size=(40, 2))
    spatial, timely = dataset(coordinates=points, buffer=0.1), dataset(purge=1)
    assert Partition.of(spatial, make_folds(4, spatial), 0, clip=True).clip
    assert not Partition.of(timely, make_folds("blocks:4", timely), 0, clip=True).clip


def test_columns_of_a_file_and_of_an_array_are_named():
    frame = pd.DataFrame({"lat": np.linspace(0, 1, 20), "lon": 0.0, "x": np.arange(20.0), "y": np.arange(20.0)})
    read = prepare(frame, "y", near={"coordinates": "lat,lon", "buffer": "10km"})
    near = {"coordinates": [0, 1], "buffer": "10km"}
    array = from_arrays(frame[["lat", "lon", "x"]].to_numpy(), frame["y"], near=near)
    np.testing.assert_array_equal(make_folds(4, read).training, make_folds(4, array).training)
    assert read.sample.near.asked == {"coordinates": "lat,lon", "buffer": "10km"}
    assert array.sample.near.asked["coordinates"] == ["0", "1"]


@pytest.mark.parametrize(
    ("folds", "near", "message"),
    [
        (5, {"purge": 2}, "purge: folds that are dealt at random are in no order of time; use blocks:5 or time:5"),
        (5, {"when": np.arange(40)}, "when: folds that are dealt at random"),
        ("time:5", {"embargo": 1}, "embargo 1 is for rows after a fold, and fits of time:5 .*: use blocks:5"),
        ("blocks:5", {"purge": -1}, "purge -1: it must be a number of at least 0 of rows; for a time name its column"),
        ("blocks:5", {"purge": 1.5}, "purge 1.5: it must be a number"),
        ("blocks:5", {"purge": "7d"}, "purge 7d: it must be a number"),
        ("blocks:5", {"purge": "nan"}, "purge nan: it must be a number"),
        (
            "blocks:5",
            {"embargo": "1x", "when": DAYS},
            "embargo 1x: it must be a time with",
        ),
        (
            "blocks:5",
            {"purge": 7, "when": DAYS},
            "purge 7: it must be a time with its unit",
        ),
        ("blocks:5", {"when": ["a"] * 40}, "when: column 'when' must hold numbers or dates"),
        ("blocks:5", {"when": ["10:30", "9:15"] * 20}, "when: column 'when' holds times of day, which say nothing"),
        ("blocks:5", {"when": np.arange(39)}, "when: there must be one for each of the 40 rows, not 39"),
        ("blocks:5", {"when": np.r_[np.nan, np.arange(39)]}, "when: column 'when': row 1 has none"),
        ("blocks:41", {}, "41 blocks can't be made of 40 rows: use at most 40"),
        ("blocks:1", {}, "there must be at least 2"),
        ("block:5", {}, "did you mean 'blocks:5'"),
        ("blocks:2", {"purge": 40}, "the fit of fold 1 has no row to be trained on"),
        (5, {"buffer": "10km"}, "buffer 10km needs coordinates"),
        (5, {"coordinates": [0, 1]}, "coordinates are for a buffer"),
        (5, {"coordinates": [0, 1], "buffer": "10 furlongs"}, "buffer 10 furlongs: it must be a distance"),
        (5, {"coordinates": [0, 1], "buffer": 0}, "buffer 0: it must be a distance greater than 0"),
        (5, {"coordinates": [0], "buffer": "1km"}, "coordinates must be latitude and longitude, not 1 columns"),
        (5, {"coordinates": np.full((40, 2), 95.0), "buffer": "1km"}, "a latitude must be within 90 degrees"),
        (5, {"coordinates": [0, 1], "buffer": "20100km"}, "is around the earth"),
        (5, {"coordinates": np.zeros((39, 2)), "buffer": 1}, "there must be some for each of the 40 rows"),
        (5, {"coordinates": [["a", "b"]] * 40, "buffer": 1}, "coordinates must be numbers"),
        (5, {"coordinates": np.r_[np.nan, np.ones(39)], "buffer": 1}, "coordinates: row 1 has none"),
        (5, {"coordinates": [0, 1], "buffer": 1e9}, "the fit of fold 1 has no row to be trained on"),
    ],
)
def test_what_cannot_be_left_out_is_one_clear_line(folds, near, message):
    with pytest.raises(OptionError, match=message) as caught:
        make_folds(folds, dataset(**near))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("near", [{"when": "dya"}, {"coordinates": ["lat", 7], "buffer": 1}])
def test_a_column_that_isn_t_there_is_named(near):
    frame = pd.DataFrame({"day": np.arange(40.0), "lat": np.arange(40.0)})
    with pytest.raises(DataError, match="X has no column '(dya|7)'"):
        dataset(frame=frame, **near)


OPTIONS = {"grid": {"lambda": [1e-3, 1e-2, 1e-1, 1.0]}, "extend": False, "choose": "minimum"}


def noisy(n=40):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(n, 2))
    return points, 2.0 * points[:, 0] + rng.normal(size=n)


def test_a_gram_matrix_has_coordinates_as_an_array():
    points, y = noisy()
    K = np.exp(-((points[:, None] - points) ** 2).sum(axis=2))
    options = OPTIONS | {"folds": 4, "buffer": 0.1}
    given_gram = kernsel.select(K, y, kernel="precomputed", coordinates=points, **options)
    named = kernsel.select(points, y, kernel="gaussian(tau=0.5)", coordinates=[0, 1], standardize=False, **options)
    np.testing.assert_allclose(given_gram.best.score, named.best.score, rtol=1e-10)
    assert given_gram.data["holdout"] == "4 compact regions, what is within 0.1 left out"
    assert named.to_dict()["options"]["near"] == {"coordinates": ["0", "1"], "buffer": 0.1}


def test_a_nested_estimate_leaves_out_the_same_inside_and_outside():
    points, y = noisy()
    time = np.random.default_rng(1).permutation(40)
    options = OPTIONS | {"kernel": "gaussian(tau=1.0)", "folds": "blocks:4", "purge": 3, "standardize": False}
    found = kernsel.nested(points, y, outer="blocks:3", when=time, **options)
    assert found.holdout == "3 blocks in the order of time, 3 before and after left out"
    outer = make_folds("blocks:3", dataset(when=time, purge=3))
    for fold, kept in enumerate(outer.training):
        inner = kernsel.select(points[kept], y[kept], when=time[kept], **options)
        np.testing.assert_allclose(found.folds[fold].best.score, inner.best.score, rtol=1e-12)
        held = outer.number == fold
        np.testing.assert_allclose(found.predictions[held], inner.model.predict(points[held]), rtol=1e-12)


def test_groups_are_repeated_and_stratified():
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 30, 200)
    y = np.where(rng.random(200) < np.where(groups % 3 == 0, 0.6, 0.1), "rare", "common")
    data = from_arrays(rng.normal(size=(200, 2)), y, groups=groups)
    deals = [make_folds(5, data, (0, repeat)).number for repeat in range(3)]
    assert len({tuple(each) for each in deals}) == 3
    for number in deals:
        shares = [np.mean(y[number == fold] == "rare") for fold in range(5)]
        assert np.ptp(shares) < 0.1
        assert all(np.unique(number[groups == group]).size == 1 for group in np.unique(groups))
    found = select_dataset(data, folds=5, repeats=3, kernel="gaussian(tau=1.0)", learner="lssvm", **OPTIONS)
    assert found.data["holdout"] == "5 folds of whole groups, dealt 3 times"
