"""Sets of classes with a coverage, in groups and classes, and intervals of local width: definitions and coverage."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernsel
import tables
from kernsel.data import from_arrays
from kernsel.errors import ModelError, OptionError
from kernsel.heldout.intervals import Intervals, Scale
from kernsel.model.model import load
from kernsel.selection.carry_out import select_dataset

COVERAGES = st.sampled_from([0.1, 0.5, 0.8, 0.9, 0.99])
OPTIONS = {"kernel": "gaussian(tau=1.0)", "grid": {"lambda": [0.01, 0.1, 1.0]}, "folds": 5}


def drawn(seed, k, weighted=False, n=23):
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, max(2, k), n)
    s = rng.integers(1, 3, n).astype(float) if weighted else np.ones(n)
    made = Intervals(
        rng.normal(size=(3, k, 4)), rng.normal(size=(3, k)), rng.normal(size=(1, n)), np.array([0, 8, 15, n]), s,
        classes=classes, strata=rng.integers(-1, 3, (1, n)),
    )  # fmt: skip
    return made, rng.normal(size=(6, 4)), rng.integers(-1, 4, 6)


def outputs(made, K):
    return np.einsum("Nm,tkm->Ntk", K, made.coefficients) + made.biases


def score(f, c):
    """By how much another class is ahead of class c."""
    return (f[0] if c == 0 else -f[0]) if len(f) == 1 else np.delete(f, c).max() - f[c]


@given(
    st.integers(0, 2**32 - 1), st.sampled_from([1, 3]), COVERAGES, st.booleans(), st.sampled_from(["", "by", "each"])
)
def test_sets_are_those_of_the_definition(seed, k, coverage, weighted, way):
    made, K, groups = drawn(seed, k, weighted)
    fold = np.repeat(np.arange(3), [8, 7, 8])
    by = (made.strata[0], groups) if way == "by" else None
    found, F = made.sets(K, coverage, by, way == "each"), outputs(made, K)
    for row, c in np.ndindex(found.shape):
        among = np.ones(23, bool)
        if way == "by":
            among = made.strata[0] == groups[row]
        if way == "each":
            among = made.classes == c
        share = made.weights[among] / made.weights[among].mean() if among.any() else np.zeros(0)
        rivals = np.array([score(F[row, j], c) for j in fold[among]])
        below = share[made.residuals[0, among] < rivals].sum()
        assert found[row, c] == (below < coverage * (among.sum() + 1) * (1 - 1e-12))


@given(st.integers(0, 2**32 - 1), COVERAGES)
def test_intervals_of_a_group_are_those_of_its_rows_alone(seed, coverage):
    made, K, groups = drawn(seed, 2)
    made = replace(made, residuals=np.abs(np.random.default_rng(seed).normal(size=(2, 23))), classes=None)
    fold, F = np.repeat(np.arange(3), [8, 7, 8]), outputs(made, K)
    found = made.bounds(K, coverage, (made.strata[0], groups))
    for row, c in np.ndindex(6, 2):
        among = made.strata[0] == groups[row]
        place = int(np.ceil(coverage * (among.sum() + 1) * (1 - 1e-12))) - 1
        f, R = F[row, fold[among], c], made.residuals[c, among]
        ends = (-np.inf, np.inf) if place >= among.sum() else (-np.sort(R - f)[place], np.sort(R + f)[place])
        np.testing.assert_allclose(found[row, c], ends)


@given(st.integers(0, 2**32 - 1), COVERAGES)
def test_local_widths_are_residuals_in_units_of_the_scale(seed, coverage):
    made, K, _ = drawn(seed, 1)
    rng = np.random.default_rng(seed)
    scale = Scale(rng.normal(size=(3, 1, 4)), rng.normal(size=(3, 1)), np.array([0.3]))
    made = replace(made, residuals=np.abs(made.residuals), classes=None, scale=scale)
    fold, f = np.repeat(np.arange(3), [8, 7, 8]), outputs(made, K)[:, :, 0]
    sigma = np.maximum(np.einsum("Nm,tm->Nt", K, scale.coefficients[:, 0]) + scale.biases[:, 0], 0.3)
    place = int(np.ceil(coverage * 24 * (1 - 1e-12))) - 1
    for row, (low, high) in enumerate(made.bounds(K, coverage)[:, 0]):
        R = made.residuals[0] * sigma[row, fold]
        ends = (
            (-np.inf, np.inf) if place >= 23 else (-np.sort(R - f[row, fold])[place], np.sort(R + f[row, fold])[place])
        )
        np.testing.assert_allclose((low, high), ends)


@pytest.mark.parametrize("learner", ["lssvm", "svm(bias=false)"])
@pytest.mark.parametrize("classes", [2, 3])
def test_sets_survive_the_file_and_hold_the_truth(tmp_path, learner, classes):
    X, y = tables.circles(160, flips=0.15) if classes == 2 else tables.wine()
    chosen = np.random.default_rng(0).permutation(len(X))
    train, test = chosen[:100], chosen[100:]
    model = select_dataset(from_arrays(X[train], y[train]), learner=learner, intervals="sets", **OPTIONS).model
    wide, narrow = model.predict_set(X[test], 0.9), model.predict_set(X[test], 0.5)
    assert wide.shape == (len(test), classes)
    assert (narrow <= wide).all()
    truth = np.array(model.labels)[None] == np.asarray(y[test])[:, None]
    assert wide[truth].mean() > 0.8
    assert model.predict_set(X[test], 0.999).all()  # of 100 rows none are enough
    model.save(tmp_path / "model")
    read = load(tmp_path / "model")
    for by in (None, model.target):
        np.testing.assert_array_equal(read.predict_set(X[test], 0.9, by), model.predict_set(X[test], 0.9, by))


def heteroscedastic(n, seed=0):
    rng = np.random.default_rng(seed)
    x, place = rng.uniform(-2, 2, n), rng.choice(["calm", "wild"], n)
    noise = np.where(place == "wild", 1.0, 0.1) * rng.normal(size=n)
    return pd.DataFrame({"x": x, "place": place}), np.sin(2 * x) + noise


def covered(ends, y):
    return (ends[:, 0] <= y) & (y <= ends[:, 1])


@pytest.mark.parametrize("kind", ["even", "local"])
def test_groups_have_the_coverage_each(tmp_path, kind):
    frame, y = heteroscedastic(400)
    new, truth = heteroscedastic(2000, 1)
    model = select_dataset(from_arrays(frame, y, standardize=True), intervals=kind, **OPTIONS).model
    wild = (new["place"] == "wild").to_numpy()
    by = model.predict_interval(new, 0.9, by="place")
    for group in (wild, ~wild):
        assert covered(by, truth)[group].mean() == pytest.approx(0.9, abs=0.05)
    plain = model.predict_interval(new, 0.9)
    assert covered(plain, truth).mean() == pytest.approx(0.9, abs=0.04)
    widths = np.diff(plain, axis=1)[:, 0]
    if kind == "local":
        assert widths[wild].mean() > 2.5 * widths[~wild].mean()
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict_interval(new, 0.9, by="place"), by)


@pytest.mark.parametrize("rank", [None, 30])
def test_local_scales_are_of_rows_that_they_have_not_seen(rank):
    frame, y = heteroscedastic(120)
    found = select_dataset(from_arrays(frame, y, standardize=True), intervals="local", rank=rank, **OPTIONS)
    kept = found.model.intervals
    even = select_dataset(from_arrays(frame, y, standardize=True), rank=rank, **OPTIONS).model.intervals
    sigma = even.residuals / kept.residuals
    assert (sigma >= kept.scale.floors[:, None] * (1 - 1e-9)).all()
    order = np.argsort(found.model.encoder.transform(frame)[:, 0])  # any order will do for the sizes
    assert order.size == sigma.size
    assert np.corrcoef(sigma[0], even.residuals[0])[0, 1] > 0.3


@pytest.mark.parametrize(
    ("data", "intervals", "message"),
    [
        (tables.waves, "sets", "intervals 'sets': of a regression they are even or local or none"),
        (tables.circles, "local", "intervals 'local': of classes they are sets or none"),
        (tables.circles, "wide", "intervals 'wide': of classes they are sets or none"),
    ],
)
def test_what_cannot_be_kept_is_one_clear_line(data, intervals, message):
    with pytest.raises(OptionError, match=message):
        kernsel.select(*data(40), intervals=intervals)


def test_a_model_without_sets_says_how_to_have_them():
    X, y = tables.circles()
    model = select_dataset(from_arrays(X, y), **OPTIONS).model
    with pytest.raises(ModelError, match="select with intervals='sets'"):
        model.predict_set(X)
    with pytest.raises(ModelError, match="have no intervals, but sets"):
        model.predict_interval(X)
    X, y = tables.waves()
    model = select_dataset(from_arrays(X, y), **OPTIONS).model
    with pytest.raises(ModelError, match="is a regression: it has no sets of classes"):
        model.predict_set(X)
    with pytest.raises(OptionError, match="the coverage of a set must lie between 0 and 1"):
        model.predict_set(X, 1.0)
    with pytest.raises(OptionError, match="by 'x0': the model has no such column of categories; it has no columns"):
        model.predict_interval(X, by="x0")
    assert select_dataset(from_arrays(X, y), intervals="none", **OPTIONS).model.intervals is None


def broken(**changed):
    return lambda intervals: replace(intervals, **{name: make(intervals) for name, make in changed.items()})


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("sets", broken(classes=lambda i: i.classes + 5)),
        ("sets", broken(classes=lambda i: i.classes[:-1])),
        ("sets", broken(strata=lambda i: i.strata + 9)),
        ("sets", broken(strata=lambda i: i.strata[:, :-1])),
        ("local", broken(scale=lambda i: replace(i.scale, floors=-i.scale.floors))),
        ("local", broken(scale=lambda i: replace(i.scale, biases=i.scale.biases[:-1]))),
        ("local", broken(classes=lambda i: np.zeros(i.weights.size, np.int64))),
    ],
)
def test_what_does_not_fit_together_ends_at_loading(tmp_path, kind, change):
    frame, y = heteroscedastic(60)
    y = y if kind == "local" else np.where(y > 0, "a", "b")
    model = select_dataset(from_arrays(frame, y, standardize=True), intervals=kind, **OPTIONS).model
    replace(model, intervals=change(model.intervals)).save(tmp_path / "model")
    with pytest.raises(ModelError, match="isn't a model of kernsel"):
        load(tmp_path / "model")
