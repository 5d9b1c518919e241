"""Categories that are coded by hamming: distances, new and rare ones, and the relevance of a column."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pandas as pd
import pytest

import kernsel
from commandline import run
from kernsel import learn_relevances, study_relevances
from kernsel.data import Encoder, from_arrays, make_choices, prepare
from kernsel.errors import DataError, OptionError, SelectionWarning
from kernsel.kernels import ARD, ARDLaplacian, Metric, parse
from kernsel.kernels.views import by_feature
from kernsel.learners import Krr
from kernsel.learning.metric import LearntMetric
from kernsel.selection.auto import candidates
from kernsel.selection.learnt import Learnt

pytestmark = pytest.mark.filterwarnings("ignore::kernsel.errors.SelectionWarning")

N = 60
THETA = {"a": 0.3, "city": 0.7, "size": 0.2, "b": 0.0}
QUICK = {"folds": 3, "extend": False, "grid": "coarse"}


def table(n=N, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(2, 3, n)})
    frame["city"] = rng.choice(list("abcde"), n)
    frame["size"] = rng.choice(["S", "L"], n)
    effect = {"a": 0.0, "b": 2.0, "c": -1.0, "d": 0.5, "e": 1.0}
    return frame.assign(y=np.sin(2 * frame.a) + frame.city.map(effect) + 0.1 * rng.normal(size=n))


def coded(frame, **said):
    return prepare(frame, choices=make_choices(categories="hamming", **said))


def slow_kernel(one, other, scale, power):
    """The product over columns: exp(-theta |x - z|^power) of numbers, exp(-2 theta [x is not z]) of categories."""
    K = np.ones((len(one), len(other)))
    for (i, x), (j, z) in itertools.product(enumerate(one.itertuples()), enumerate(other.itertuples())):
        for name, theta in THETA.items():
            left, right = getattr(x, name), getattr(z, name)
            far = 2.0 * (left != right) if isinstance(left, str) else (abs(left - right) / scale[name]) ** power
            K[i, j] *= np.exp(-theta * far)
    return K


@pytest.mark.parametrize(("kernel", "power"), [(ARD, 2), (ARDLaplacian, 1)])
def test_kernels_are_products_over_columns_and_a_new_category_differs_from_all(kernel, power):
    frame = table(40)
    data = coded(frame)
    new = table(9, seed=1)
    new.loc[0, "city"] = "never seen"
    with pytest.warns(SelectionWarning, match="values that the model never saw"):
        Z = data.encoder.transform(new.drop(columns="y"))
    tied = kernel(tuple(THETA[name] for name in ("a", "b", "city", "size"))).tied(data.encoder.groups)
    scale = frame[["a", "b"]].std(ddof=0)
    np.testing.assert_allclose(tied(data.X), slow_kernel(frame, frame, scale, power), rtol=1e-12)
    np.testing.assert_allclose(tied(Z, data.X), slow_kernel(new, frame, scale, power), rtol=1e-12)


def test_rare_categories_are_one_and_said():
    frame = table()
    frame.loc[:4, "city"] = ["x", "x", "y", "z", "z"]
    data = coded(frame, rare=3)
    encoder = data.encoder
    assert encoder.pooled == {"city": ("x", "y", "z")}
    assert "rare categories: those of fewer than 3 rows are one ('city' 3)" in data.notes
    assert [entry.get("pooled") for entry in data.columns] == [None, None, 3, None]
    assert "columns: 2 numbers; 2 with categories, with one relevance for each column (city 8, size 2)" in data.notes
    rare = encoder.features.index("city is rare")
    np.testing.assert_array_equal(data.X[:, rare], frame.city.isin(["x", "y", "z"]))
    assert not data.X[:, encoder.features.index("city is new")].any()
    assert sum(encoder.groups) == data.d
    places = encoder.categories_of(data.X)
    known = encoder.categories["city"]
    assert [known[j] if j >= 0 else None for j in places[0]] == [c if c in known else None for c in frame.city]
    assert [encoder.categories["size"][j] for j in places[1]] == frame["size"].tolist()
    again = Encoder.from_json(encoder.to_json())
    np.testing.assert_array_equal(again.transform(frame), data.X)
    assert again.groups == encoder.groups
    assert prepare(frame).encoder.groups == ()
    assert not coded(frame).encoder.pooled
    plain = prepare(frame, choices=make_choices(rare=3)).encoder
    assert plain.pooled == encoder.pooled
    assert plain.features == [name for name in encoder.features if not name.endswith("is new")]
    np.testing.assert_array_equal(Encoder.from_json(plain.to_json()).transform(frame), plain.transform(frame))
    rows = frame.drop(columns="y")[:1].assign(city="never seen")
    assert not plain.transform(rows)[:, 2 : 2 + len(encoder.categories["city"]) + 1].any()


def test_one_rare_category_or_none_but_rare_ones_stay():
    frame = table()
    frame.loc[0, "city"] = "x"
    pairs = pd.DataFrame({"pairs": [f"p{i // 2}" for i in range(N)]})
    encoder = coded(pairs.join(frame), categorical="pairs", rare=3).encoder
    assert not encoder.pooled
    assert "x" in encoder.categories["city"]


def test_missing_categories_are_filled_in_as_ever():
    frame = table()
    frame.loc[:9, "city"] = None
    data = coded(frame)
    assert data.encoder.groups == (1, 1, 6, 3, 1)
    assert data.encoder.features[-1] == "city is missing"


@pytest.mark.parametrize("kernel", ["ard", "ard-laplacian"])
def test_a_selection_has_a_relevance_for_each_column(kernel, tmp_path):
    frame = table(80)
    X, y = frame.drop(columns="y"), frame.y
    found = kernsel.select(X, y, kernel=kernel, categories="hamming", **QUICK)
    assert list(found.relevances.index) == ["a", "b", "city", "size"]
    assert found.relevances["city"] > found.relevances["size"]
    file = tmp_path / "m.npz"
    found.model.save(file)
    loaded = kernsel.load(file)
    new = X[:5].copy()
    new.loc[0, "city"] = "never seen"
    np.testing.assert_array_equal(loaded.predict(new), found.model.predict(new))
    repeated = kernsel.select(X, y, kernel=parse(str(found.best.kernel)), categories="hamming", **QUICK)
    assert repeated.best.kernel == found.best.kernel


def test_what_auto_compares_has_a_relevance_for_each_column():
    data = coded(table())
    found = candidates(data, Krr(), "normal", (1.0,), 0)
    assert found.learnt
    profiles = [each for each in found.learnt if not isinstance(each.profile, LearntMetric)]
    assert profiles
    features = data.encoder.features
    for each in profiles:
        assert list(by_feature(each.relevances(features), features)) == ["a", "b", "city", "size"]
    turned = Learnt(LearntMetric(Metric.of(np.eye(data.d)), (), 0.0), 1.0, 0.0)
    assert list(turned.relevances(data.encoder.features)) == data.encoder.features


def test_commands_name_columns(tmp_path):
    frame = table(80)
    frame.to_csv(tmp_path / "t.csv", index=False)
    run("relevance", tmp_path / "t.csv", "--categories", "hamming", "--resamples", 2, "--output", tmp_path / "r.json")
    assert list(json.loads((tmp_path / "r.json").read_text())["relevances"]) == ["a", "b", "city", "size"]
    told = ["mkl", tmp_path / "t.csv", "--family", "products", "--method", "infinite", "--categories", "hamming"]
    assert "groups=(1, 1, 6, 3)" in run(*told).stdout


def test_names_of_categories_do_not_count():
    frame = table()
    names = {"a": "Z", "b": "q", "c": "A", "d": "=", "e": "is new"}
    kernel = ARD((0.3, 0.1, 0.2, 0.1))
    first, second = (
        kernsel.select(each, frame.y, kernel=kernel, categories="hamming", **QUICK)
        for each in (frame.drop(columns="y"), frame.drop(columns="y").assign(city=frame.city.map(names)))
    )
    np.testing.assert_allclose(first.outputs, second.outputs, rtol=1e-9)


def test_the_graph_of_onnx_knows_new_and_rare_categories():
    onnxruntime = pytest.importorskip("onnxruntime")
    frame = table()
    frame.loc[:2, "city"] = ["x", "x", "y"]
    X = frame.drop(columns="y")
    model = kernsel.select(X, frame.y, kernel="ard-laplacian", categories="hamming", rare=3, **QUICK).model
    assert model.encoder.pooled
    X.loc[3, "city"] = "never seen"
    session = onnxruntime.InferenceSession(model.to_onnx().SerializeToString())
    inputs = {name: X[[name]].to_numpy(dtype=object) for name in ("city", "size")}
    (found,) = session.run(["predictions"], {"X": X[["a", "b"]].to_numpy(), **inputs})
    np.testing.assert_allclose(found[:, 0], model.predict(X), rtol=0, atol=1e-9)


def test_where_it_changes_nothing_that_is_said_and_other_words_are_refused():
    note = "categories: no column has any, so that hamming changes nothing"
    assert note in coded(table()[["a", "b", "y"]]).notes
    assert note not in coded(table()).notes
    with pytest.raises(OptionError, match="categories 'gower' is unknown; it is one of onehot, hamming"):
        make_choices(categories="gower")
    for rare in (0, 1.5, True):
        with pytest.raises(OptionError, match="rare is a number of rows"):
            make_choices(rare=rare)
    with pytest.raises(OptionError, match="theta has 9 relevances, and there are 4 groups"):
        kernsel.select(table(), table().y, drop="y", kernel=ARD((0.1,) * 9), categories="hamming", **QUICK)


def test_one_column_of_categories_alone_has_one_relevance():
    frame = table()
    found = kernsel.select(frame[["city"]], frame.y, kernel="ard", categories="hamming", folds=3)
    assert found.relevances.index.tolist() == ["city"]


@pytest.mark.parametrize("form", ["{}", "0.5 * {}", "{} + gaussian(tau=1.0)"])
def test_a_combined_kernel_names_its_relevances_itself(form):
    frame = table()
    X = frame[["city"]]
    learnt = learn_relevances(X, frame.y, kernel=form.format("ard"), folds=3, categories="hamming")
    names = learnt.kernel.theta_names(learnt.features)
    assert names[0].removeprefix("1.") == "city"
    assert learnt.relevances.index.tolist() == names
    assert learnt.relevances.tolist() == list(learnt.kernel.theta)


def test_relevances_of_one_feature_of_several_are_not_those_of_all():
    frame = table()
    learnt = learn_relevances(frame[["a", "b"]], frame.y, kernel="ard[1]", folds=3)
    assert learnt.relevances.index.tolist() == ["b"]
    assert learnt.relevances.tolist() == list(learnt.kernel.theta)


def test_a_column_of_rare_categories_alone_stays_and_is_said():
    data = prepare(table(), choices=make_choices(rare=1000))
    assert not data.encoder.pooled
    assert any("all of 'city', 'size' are of fewer than 1000 rows, and stay" in note for note in data.notes)


@pytest.mark.parametrize("categories", ["onehot", "hamming"])
def test_columns_named_as_features_of_others_are_told_apart(categories):
    frame = (
        table(80).drop(columns="y").assign(**{"city is new": np.cos(np.arange(80.0)), "city=a": np.arange(80.0) ** 2})
    )
    data = from_arrays(frame, np.arange(80) % 7 / 7.0, standardize=True, categories=categories)
    features = data.encoder.features
    assert len(set(features)) == len(features) == data.X.shape[1]
    np.testing.assert_allclose(data.X[:, features.index("city is new")], scale_of(frame["city is new"]))
    assert ("city is new (2)" in features) == (categories == "hamming")
    learnt = learn_relevances(frame, np.sin(frame["city=a"]), rows=80, folds=3, categories=categories)
    assert learnt.relevances.index.is_unique
    assert ("city" in learnt.relevances) == (categories == "hamming")
    again = Encoder.from_json(json.loads(json.dumps(data.encoder.to_json())))
    np.testing.assert_array_equal(again.transform(frame), data.X)


def scale_of(column):
    return (column - column.mean()) / column.std(ddof=0)


def test_a_study_has_a_relevance_for_each_column():
    frame = table(80).drop(columns="y")
    study = study_relevances(frame, np.sin(np.arange(80.0)), resamples=1, rows=80, folds=3, categories="hamming")
    assert len(study.table) == frame.shape[1] == study.samples.shape[1]
    with pytest.raises(OptionError, match="categories 'odd' is unknown"):
        study_relevances(frame, np.arange(80.0), categories="odd")


def test_parts_of_dates_that_are_columns_too_are_refused():
    dates = pd.date_range("2020-01-01", periods=80).strftime("%Y-%m-%d")
    part = prepare(pd.DataFrame({"t": dates, "y": np.arange(80.0)})).encoder.numeric[0]
    with pytest.raises(DataError, match="the parts of dates: the header repeats"):
        prepare(pd.DataFrame({"t": dates, part: np.arange(80.0) ** 2, "y": np.arange(80.0)}))
