"""Relevances over resamples, the errors with and without them, their table, JSON and picture."""

import json
import math
import string

import numpy as np
import pandas as pd
import pytest

import kernsel
import kernsel.selection.carry_out
from kernsel import study_relevances
from kernsel.data import from_arrays
from kernsel.errors import DataError, OptionError
from kernsel.evaluation.relevance_study import LISTED, study_on_dataset
from kernsel.folds import make_folds
from kernsel.learning import learn_on_dataset
from kernsel.numerics.runtime import threads
from kernsel.report.pictures import plot_relevances


def table(n=90, d=5, seed=0, classes=False):
    """The first two of d features matter, the second one less."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.normal(size=n)
    return pd.DataFrame(X, columns=list(string.ascii_lowercase[:d])), np.where(
        y > 0, "up", "down"
    ) if classes else 10 * y


@pytest.fixture(scope="module")
def study():
    return study_relevances(*table(), resamples=4)


def test_it_holds_what_was_learnt_on_all_rows_and_on_each_resample(study):
    assert study.samples.shape == (4, 5)
    assert (study.samples >= 0).all().all()
    assert study.samples.nunique().max() == 4
    assert list(study.table.index[:2]) == ["a", "b"]
    assert study.table["relevance"].is_monotonic_decreasing
    np.testing.assert_array_equal(study.table["relevance"].sort_index(), study.learned.relevances.sort_index())
    for name, row in study.table.iterrows():
        values = study.samples[name]
        assert (row["lower"], row["median"], row["upper"]) == tuple(np.quantile(values, [0.25, 0.5, 0.75]))
        assert row["zero"] == (values == 0).mean()


def test_a_resample_is_a_fifth_held_out(study):
    X, y = table()
    dataset = from_arrays(X, y, standardize=True)
    for number in range(4):
        kept = make_folds(5, dataset, (0, number)).number != 0
        assert kept.sum() == 72
        with threads.one_blas_thread():
            learned = learn_on_dataset(dataset.take(np.flatnonzero(kept)))
        np.testing.assert_array_equal(study.samples.iloc[number], learned.relevances)


def test_errors_are_those_of_selections_that_have_not_seen_the_rows(study):
    X, y = table()
    dataset = from_arrays(X, y, standardize=True)
    held = make_folds(5, dataset, (0, 2)).number == 0
    given = dataset.take(np.flatnonzero(~held))
    for name, kernel in (("with", kernsel.kernels.ARD(study.samples.iloc[2])), ("without", "gaussian")):
        model = kernsel.selection.carry_out.select_dataset(given, kernel=kernel, folds=5, clip=False).model
        error = math.sqrt(np.mean((model.predict(X[held]) - y[held]) ** 2))
        assert study.errors[name].iloc[2] == pytest.approx(error, rel=1e-6)


def test_knowing_them_helps_where_features_differ(study):
    error = study.error
    assert error.loc["difference", "mean"] == pytest.approx(error.loc["with", "mean"] - error.loc["without", "mean"])
    assert error.loc["difference", "mean"] < -error.loc["difference", "se"]
    difference = study.errors["with"] - study.errors["without"]
    assert error.loc["difference", "se"] == pytest.approx(math.sqrt(1 / 4 + 1 / 4) * difference.std(ddof=1))


def test_the_summary_says_what_there_is(study):
    text = study.summary()
    assert "learnt: ard by evidence (" in text
    assert "begun from: gaussian(tau=" in text
    assert "held-out error (RMSE in units of 'y'; 4 resamples, one row in 5 held out):" in text
    assert f"exactly 0: {len(study.learned.zero)} of 5 features" in text
    assert max(map(len, text.splitlines())) <= 120
    lines = text.splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("feature"))
    assert [line.split()[0] for line in lines[head + 1 : head + 6]] == list(study.table.index)


def test_no_resamples_and_more_features_than_are_listed():
    study = study_relevances(*table(60, LISTED + 5), resamples=0)
    assert list(study.table) == ["relevance"]
    assert "held-out" not in study.summary()
    assert "... and 5 more" in study.summary()


def test_the_json_document_is_complete(study):
    document = json.loads(study.to_json())
    assert (document["format"], document["version"]) == ("kernsel-relevance", 1)
    assert document["relevances"] == dict(study.learned.relevances)
    assert kernsel.kernels.from_spec(document["kernel"]) == study.learned.kernel
    assert len(document["resamples"]) == len(document["errors"]) == 4
    assert document["error"]["with"]["mean"] == study.error.loc["with", "mean"]
    assert document["history"][-1] == {"rows": 90, "value": study.learned.value, "lam": study.learned.lam, "mu": None}


def test_classes_by_flkl_and_one_resample():
    study = study_relevances(*table(80, 3, classes=True), resamples=1, criterion="flkl", evaluations=4)
    assert study.error["se"].isna().all()
    assert json.loads(study.to_json())["error"]["with"]["se"] is None
    assert "misclassified" in study.summary()
    assert study.errors.loc[0, "with"] * 16 == pytest.approx(round(study.errors.loc[0, "with"] * 16))
    assert "mu = " in study.summary()


def test_the_number_of_threads_changes_nothing(use_threads, study):
    X, y = table()
    dataset = from_arrays(X, y, standardize=True)
    use_threads(1)
    calls = []
    alone = study_on_dataset(dataset, resamples=2, progress=lambda *call: calls.append(call))
    pd.testing.assert_frame_equal(alone.samples, study.samples[:2])
    pd.testing.assert_frame_equal(alone.errors, study.errors[:2])
    assert calls == [(1, 2, "resamples"), (2, 2, "resamples")]


def test_whole_groups_are_held_out():
    X, y = table()
    groups = np.arange(90) // 10
    study = study_relevances(X, y, resamples=2, groups=groups, weights=np.ones(90))
    assert len(study.errors) == 2
    with pytest.raises(OptionError, match="5 folds can't be made of 2 groups"):
        study_relevances(X, y, resamples=1, groups=np.arange(90) // 45, folds=2)


def test_what_can_not_be_studied():
    with pytest.raises(OptionError, match="resamples must be a whole number of at least 0, not -1"):
        study_relevances(*table(), resamples=-1)
    with pytest.raises(DataError):
        study_relevances(np.ones((9, 2)), np.arange(9.0))


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_the_picture(study, tmp_path, ending):
    pytest.importorskip("matplotlib")
    path = tmp_path / f"picture.{ending}"
    plot_relevances(study, path)
    start = path.read_bytes()[:200]
    assert {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[ending] in start
    if ending == "svg":
        text = path.read_text()
        assert "relevance, and its spread over 4 resamples" in text


def test_pictures_that_can_not_be_drawn(study, tmp_path, monkeypatch):
    with pytest.raises(OptionError, match=r"can't draw .*picture.jpeg: its name must end with one of .png, .svg, .pdf"):
        plot_relevances(study, tmp_path / "picture.jpeg")
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(OptionError, match=r"pictures need matplotlib: pip install 'kernsel\[plot\]'"):
        plot_relevances(study, tmp_path / "picture.png")
