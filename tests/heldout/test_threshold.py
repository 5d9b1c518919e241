"""The threshold that is best for costs or a measure: brute force over all cuts, and honest figures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

import kernsel
import tables
from kernsel.data import from_arrays
from kernsel.errors import ModelError, OptionError
from kernsel.heldout.calibration import platt
from kernsel.heldout.threshold import MEASURES, Threshold, best_threshold, choose_threshold, counts_at, read_measure
from kernsel.model.model import load
from kernsel.selection.carry_out import select_dataset

NAMES = (*MEASURES, "cost(fp=1,fn=5)", "cost( fp=2, fn=0.5 )")
OPTIONS = {"kernel": "gaussian(tau=1.0)", "learner": "lssvm", "grid": {"lambda": [0.01, 0.1, 1.0]}, "folds": 5}


def drawn(seed, n=30):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.3, 1.0, -1.0)
    return np.round(0.8 * y + rng.normal(size=n), 1), y, rng.integers(1, 4, n).astype(float)


def measured(name, y, called, s):
    """What scikit-learn says, or minus the mean cost."""
    if name.startswith("cost"):
        fp, fn = read_measure(name).costs
        return -(fp * s @ (called & (y < 0)) + fn * s @ (~called & (y > 0))) / s.sum()
    name, _, average = name.partition("_") if name.startswith("f1") else (name, "", "")
    options = {"zero_division": 0.0, "average": average or "binary"} if name in ("f1", "jaccard") else {}
    return getattr(metrics, name if name == "matthews_corrcoef" else f"{name}_score")(
        y > 0, called, sample_weight=s, **options
    )


@given(st.integers(0, 2**32 - 1), st.sampled_from(NAMES))
def test_counts_are_those_of_the_labels(seed, name):
    f, y, s = drawn(seed)
    if len(set(y)) < 2:
        return
    measure, cuts = read_measure(name), np.r_[f.min() - 1, np.unique(f) + 1e-6]
    gains = np.array([measured(name, y, f >= cut, s) for cut in cuts])
    np.testing.assert_allclose(measure.gain(counts_at(f, y > 0, s, cuts)), gains, atol=1e-12)


@given(st.integers(0, 2**32 - 1), st.sampled_from(NAMES))
def test_it_is_the_best_of_all_cuts_by_the_counts_to_expect(seed, name):
    """Each row is there twice, with either label, weighted by how probable that is."""
    f, y, s = drawn(seed)
    if len(set(y)) < 2:
        return
    p = platt(f, y, s)(f)
    twice, labels, weights = np.r_[f, f], np.r_[np.ones_like(f), -np.ones_like(f)], np.r_[s * p, s * (1 - p)]
    cuts = np.r_[f.min() - 1, np.unique(f) + 1e-6]
    gains = [measured(name, labels, twice >= cut, weights) for cut in cuts]
    found = best_threshold(read_measure(name), f, y, s)
    assert measured(name, labels, twice >= found, weights) == pytest.approx(max(gains), abs=1e-11)
    assert not np.isin(found, f) or found == 0.0


def test_expected_counts_leave_chance_out():
    """Over samples of one law the thresholds that are best for labels are scattered more widely."""
    rng, measure, s = np.random.default_rng(0), read_measure("f1"), np.ones(100)
    expected, labels = [], []
    for _ in range(60):
        y = np.where(rng.random(100) < 0.2, 1.0, -1.0)
        f = 0.5 * y + 0.5 * rng.normal(size=100)
        expected.append(best_threshold(measure, f, y, s))
        labels.append(f[np.argmax(measure.gain(counts_at(f, y > 0, s, f)))])
    assert np.std(expected) < 0.75 * np.std(labels)


def test_of_equal_cuts_it_is_the_one_nearest_to_zero():
    f, y = np.array([-3.0, -2.0, 1.0, 4.0]), np.array([-1.0, -1.0, 1.0, 1.0])
    assert best_threshold(read_measure("accuracy"), f, y, np.ones(4)) == 0.0
    assert best_threshold(read_measure("accuracy"), f + 2.5, y, np.ones(4)) == 2.0


@given(st.integers(0, 2**32 - 1), st.sampled_from(NAMES))
def test_what_it_gains_is_of_rows_that_had_no_part_in_it(seed, name):
    f, y, s = drawn(seed, 40)
    starts = np.array([0, 10, 20, 30, 40])
    if any(len(set(y[np.r_[0:lo, lo + 10 : 40]])) < 2 for lo in starts[:-1]):
        return
    measure, called = read_measure(name), np.zeros(40, bool)
    for lo in starts[:-1]:
        own = np.r_[lo : lo + 10]
        rest = np.setdiff1d(np.arange(40), own)
        called[own] = f[own] >= best_threshold(measure, f[rest], y[rest], s[rest])
    before, after = (measured(name, y, each, s) for each in (f >= 0, called))
    found, sign = choose_threshold(measure, f, y, s, starts), -1 if name.startswith("cost") else 1
    assert sign * found.before == pytest.approx(before, abs=1e-12)
    assert sign * found.after == pytest.approx(max(before, after), abs=1e-12)
    assert found.value == (best_threshold(measure, f, y, s) if after > before else 0.0) or after == pytest.approx(
        before
    )


def test_a_model_predicts_from_it_on(tmp_path):
    X, y = tables.circles(120, flips=0.2)
    data = from_arrays(X, y)
    plain = select_dataset(data, **OPTIONS)
    found = select_dataset(data, threshold_for="cost(fp=1,fn=8)", **OPTIONS)
    threshold = found.model.threshold
    assert threshold.value < 0
    assert threshold.after < threshold.before
    assert found.to_dict()["threshold"] == threshold.to_json()
    assert found.to_dict()["options"]["threshold_for"] == "cost(fp=1,fn=8)"
    assert f"  {threshold.describe()}" in found.summary().splitlines()
    assert plain.to_dict()["threshold"] is None
    assert (found.best.score, found.best.error) == (plain.best.score, plain.best.error)
    np.testing.assert_array_equal(found.model.decision(X), plain.model.decision(X))
    second = found.model.decision(X) >= threshold.value
    np.testing.assert_array_equal(found.model.predict(X), np.array(found.model.labels)[second.astype(int)])
    found.model.save(tmp_path / "model")
    read = load(tmp_path / "model")
    assert read.threshold == threshold
    np.testing.assert_array_equal(read.predict(X), found.model.predict(X))


def test_zero_stays_where_nothing_is_better():
    f, y = np.r_[-np.ones(20), np.ones(20)], np.r_[-np.ones(20), np.ones(20)]
    order = np.random.default_rng(0).permutation(40)
    found = choose_threshold(read_measure("f1"), f[order], y[order], np.ones(40), np.arange(0, 41, 10))
    assert found == Threshold(0.0, "f1", 1.0, 1.0)
    assert found.describe() == "threshold: 0, as no other one is better for f1 (held-out f1 1)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("acuracy", "threshold for 'acuracy': there is no such measure; did you mean 'accuracy'?"),
        ("profit", "there is no such measure; use accuracy, .* costs such as"),
        ("cost(fp=1)", "give both costs as numbers"),
        ("cost(fp=1,fn=x)", "give both costs as numbers"),
        ("cost(fp=-1,fn=1)", "costs are fp and fn, at least 0 and not both 0"),
        ("cost(fp=0,fn=0)", "costs are fp and fn, at least 0 and not both 0"),
        ("cost(fp=1,fn=nan)", "costs are fp and fn"),
        ("cost(fp=1,fn=2,tp=1)", "costs are fp and fn"),
    ],
)
def test_what_is_no_measure_is_one_clear_line(text, message):
    with pytest.raises(OptionError, match=message):
        read_measure(text)


def test_it_is_for_two_classes():
    X, y = tables.waves(40)
    with pytest.raises(OptionError, match=r"threshold for f1: it is for two classes, and this is a regression"):
        kernsel.select(X, y, threshold_for="f1")
    X, y = tables.wine()
    with pytest.raises(OptionError, match=r"threshold for f1: it is for two classes, and this is 3"):
        kernsel.select(X, y, threshold_for="f1")


@pytest.mark.parametrize("changed", [{"value": np.nan}, {"for": 3}, {"after": "x"}])
def test_a_threshold_that_isn_t_one_ends_at_loading(tmp_path, monkeypatch, changed):
    X, y = tables.circles(60)
    model = select_dataset(from_arrays(X, y), threshold_for="f1", **OPTIONS).model
    document = model.threshold.to_json() | changed
    monkeypatch.setattr(Threshold, "to_json", lambda self: document)
    model.save(tmp_path / "model")
    with pytest.raises(ModelError, match="isn't a model of kernsel"):
        load(tmp_path / "model")
