"""Kernels with a relevance for each feature in a selection, and the choice between them and one for all."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import kernsel
import tables
from commandline import run
from kernsel import comparing, selection
from kernsel.comparing import Comparison, Figure, compare, outer_folds, scaled
from kernsel.data import from_arrays
from kernsel.errors import SelectionError, SelectionWarning
from kernsel.kernels import parse
from kernsel.learning import learn_on_dataset
from kernsel.numerics import jit
from kernsel.searching import search_dataset
from kernsel.selection import select_dataset

FEW = {"grid": {"lambda": [1e-4, 1e-3, 1e-2]}, "folds": 3, "extend": False}


def hidden(n=80, d=6, seed=0, classes=False):
    """Two of d features matter."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n)
    return X, np.where(y > 0, "up", "down") if classes else 10 * y


def noisy(n=40, d=10, seed=1):
    """One of d features matters, as much as the noise: few rows for so many relevances."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] + rng.normal(size=n)


@pytest.fixture(scope="module")
def automatic():
    return select_dataset(from_arrays(*hidden(), standardize=True), kernel="auto", **FEW)


def test_auto_takes_relevances_where_features_differ(automatic):
    assert automatic.best.kernel.name == "ard"
    compared = automatic.data["comparison"]
    assert compared["better"]
    assert compared["difference"]["value"] < -compared["difference"]["se"]
    assert compared["ard"]["value"] < compared["isotropic"]["value"]
    assert automatic.relevances.nlargest(2).index.tolist() in (["x0", "x1"], ["x1", "x0"])
    assert any(note.startswith("kernel: one relevance for each of 6 features") for note in automatic.data["notes"])
    assert any("too good" in text for text in automatic.warnings)
    assert "of rows that relevances were not learnt on: " in automatic.summary()
    json.loads(automatic.to_json())


def test_auto_is_the_isotropic_selection_where_relevances_over_fit():
    data = from_arrays(*noisy(), standardize=True)
    auto, plain = (select_dataset(data, kernel=kernel, **FEW) for kernel in ("auto", "gaussian"))
    pd.testing.assert_frame_equal(auto.table, plain.table)
    assert auto.relevances is None
    assert not auto.data["comparison"]["better"]
    assert not any("too good" in text for text in auto.warnings)


def test_relevances_look_good_on_their_own_rows_and_not_on_others():
    data = from_arrays(*noisy(), standardize=True)
    ard, auto = (select_dataset(data, kernel=kernel, relevances="loo", folds=4) for kernel in ("ard", "auto"))
    unseen = auto.data["comparison"]["ard"]["value"]
    assert ard.best.error < 0.8 * unseen
    assert auto.best.kernel.name == "gaussian"


@pytest.mark.parametrize("classes", [False, True])
def test_outer_folds_are_predicted_by_what_was_learnt_without_them(classes):
    data = from_arrays(*hidden(50, 3, classes=classes), standardize=True)
    options = {**FEW, "learner": None, "seed": 0}
    isotropic = search_dataset(data, kernel=parse("gaussian"), **options)
    shared = {"grid": FEW["grid"], "extend": False}
    with jit.one_blas_thread():
        found = compare(data, isotropic, parse("ard"), "evidence", 4, 0, None, shared)
    number = outer_folds(4, data, 0).number
    F = np.zeros((2, data.n))
    for fold in range(number.max() + 1):
        held = number == fold
        train = data.take(np.flatnonzero(~held))
        with jit.one_blas_thread():
            learned = learn_on_dataset(train, folds=5, learner=None)
        best = search_dataset(train, kernel=scaled(learned.kernel), folds=4, **shared)
        F[1, held] = replace(best.model, encoder=None).decision(data.X[held])
        chosen = {"kernel": isotropic.best.kernel, "grid": {"lambda": [isotropic.best.lam]}}
        F[0, held] = replace(search_dataset(train, **chosen).model, encoder=None).decision(data.X[held])
    y = data.Y[0]
    loss = isotropic.best.learner.loss
    gain = loss.value(data.Y, F[1:])[0] - loss.value(data.Y, F[:1])[0]
    errors = (F * y <= 0).mean(axis=1) if classes else np.sqrt(((F - y) ** 2).mean(axis=1)) * data.output_scale[0]
    assert found.difference.value == pytest.approx(gain.mean(), rel=1e-5)
    assert [found.isotropic.value, found.ard.value] == pytest.approx(errors, rel=1e-5)


def test_a_change_of_rows_held_out_changes_no_relevance_that_predicts_them():
    X, y = hidden(40, 3)
    data = from_arrays(X, y, standardize=True)
    held = outer_folds(3, data, 0).number == 1
    seen = []

    def spy(dataset, **options):
        seen.append(dataset.Y.copy())
        return learn_on_dataset(dataset, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernsel.learning, "learn_on_dataset", spy)
        select_dataset(data, kernel="auto", **FEW)
    outer = seen[:3]
    assert sum(rows.shape[1] for rows in outer) == 2 * data.n
    without = [rows for rows in outer if not np.isin(data.Y[0, held], rows).any()]
    assert len(without) == 1


def test_better_is_by_more_than_a_standard_error():
    def of(difference, se):
        return Comparison(Figure(1.0, 0.1), Figure(0.9, 0.1), Figure(difference, se), "square loss", "5 folds")

    assert of(-0.2, 0.1).better
    assert not of(-0.1, 0.1).better
    assert not of(0.2, 0.1).better
    assert not of(-0.2, math.nan).better
    assert not Comparison(Figure(1.0, 0.1), None, None, "square loss", "5 folds", "why").better


def test_a_fold_where_relevances_cannot_be_learnt_leaves_the_isotropic_kernel(monkeypatch):
    def fail(*_, **__):
        raise SelectionError("no kernel could be scored")

    monkeypatch.setattr(kernsel.learning, "learn_on_dataset", fail)
    result = select_dataset(from_arrays(*hidden(40, 3), standardize=True), kernel="auto", **FEW)
    assert result.best.kernel.name == "gaussian"
    assert result.data["comparison"]["failed"] == "no kernel could be scored"
    assert any("can't be learnt (no kernel could be scored)" in note for note in result.data["notes"])


@pytest.mark.parametrize("kernel", ["ard", ["gaussian", "ard"], "ard-polynomial(degree=2)"])
def test_relevances_without_values_are_learnt_on_all_rows(kernel):
    X, y = hidden(60, 4)
    with pytest.warns(SelectionWarning, match="too good"):
        result = kernsel.select(X, y, kernel=kernel, folds=4)
    name = "ard-polynomial(degree=2)" if "polynomial" in kernel else "ard"
    learned = kernsel.learn_relevances(X, y, kernel=name)
    ratio = result.relevances[learned.relevances > 0] / learned.relevances[learned.relevances > 0]
    assert ratio.std() <= 1e-12
    assert ratio.iloc[0] in comparing.SCALES
    assert list(result.relevances.index[result.relevances == 0]) == learned.zero == result.data["relevances"]["zero"]
    assert result.best.kernel.name == name.partition("(")[0]
    assert result.model.predict(X).shape == y.shape


def test_relevances_that_have_values_stay():
    X, y = hidden(40, 3)
    result = tables.choose(X, y, kernel="ard(theta=(0.5, 0.1, 0))", **FEW)
    assert result.best.kernel == parse("ard(theta=(0.5, 0.1, 0))")
    assert result.relevances is None


def test_a_kernel_without_relevances_may_win_beside_one_with(monkeypatch):
    X, y = hidden(40, 3)
    monkeypatch.setattr(selection, "scaled", lambda kernel: [kernel.with_theta((1e9, 1e9, 1e9))])
    result = tables.choose(X, y, kernel=["gaussian", "ard"], **FEW)
    assert result.best.kernel.name == "gaussian"
    assert result.relevances is None
    assert result.timing["learning"] > 0
    assert not any("too good" in text for text in result.warnings)


HALVES = [(np.arange(24), np.arange(24, 48)), (np.arange(24, 48), np.arange(24))]


@pytest.mark.parametrize(
    ("folds", "count"),
    [(10, 5), (2, 2), ("loo", 5), ("time:3", 3), (np.arange(48) % 6, 6), (HALVES, 2)],
    ids=["ten", "two", "loo", "time", "column", "pairs"],
)
def test_outer_folds_are_five_or_those_that_must_not_be_broken_up(folds, count):
    data = from_arrays(*hidden(48, 3), standardize=True)
    made = outer_folds(folds, data, 0)
    assert made.starts.size - 1 == count
    result = select_dataset(data, kernel="auto", **FEW | {"folds": folds})
    assert result.data["comparison"]["holdout"] == made.text


def test_groups_are_held_out_whole():
    X, y = hidden(48, 3)
    groups = np.arange(48) // 16
    data = from_arrays(X, y, standardize=True, groups=groups)
    made = outer_folds("logo", data, 0)
    assert made.starts.size - 1 == 3
    assert all(len(set(made.number[groups == group])) == 1 for group in range(3))
    assert select_dataset(data, kernel="auto", **FEW | {"folds": "logo"}).data["comparison"]["ard"] is not None


@pytest.mark.parametrize(
    "options",
    [
        {"learner": "svr(epsilon=None)", "grid": {"lambda": [1e-3, 1e-2], "epsilon": [0.01, 0.1]}},
        {"criterion": "evidence", "relevances": "br"},
        {"grid": {"tau": [1.0, 2.0], "lambda": [1e-3, 1e-2]}},
        {"relevances": "cv", "rank": 10},
    ],
    ids=["searched learner", "criterion", "widths", "low rank"],
)
def test_auto_goes_with_other_options(options):
    result = tables.choose(*hidden(50, 4), standardize=True, kernel="auto", **FEW | options)
    assert result.data["comparison"]["ard"] is not None


def test_auto_knows_several_classes_targets_and_weights():
    X, y = tables.wine()
    wine = select_dataset(from_arrays(X[::3], y[::3]), kernel="auto", **FEW)
    assert wine.data["comparison"]["ard"]["value"] <= 1
    X, y = hidden(50, 4)
    weights = np.linspace(0.0, 2.0, 50)
    two = select_dataset(from_arrays(X, np.column_stack([y, X[:, 1]]), weights=weights), kernel="auto", **FEW)
    assert two.data["comparison"]["difference"]["se"] > 0


def test_one_feature_has_one_relevance():
    X, y = hidden(40, 1 + 1)
    result = tables.choose(X[:, :1], y, kernel="auto", **FEW)
    assert "kernel: one relevance for all features, for there is one only" in result.data["notes"]
    assert "comparison" not in result.data


def test_nested_estimates_learn_relevances_anew():
    X, y = noisy()
    result = kernsel.nested(X, y, outer=4, kernel="ard", relevances="loo", **FEW)
    assert result.optimism > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": ["auto", "linear"]}, "kernel 'auto' chooses between gaussian and ard: leave the others out"),
        ({"relevances": "evidence"}, "no kernel has any without values"),
        ({"kernel": "ard(theta=(1, 1))", "relevances": "br"}, "no kernel has any without values"),
        ({"kernel": "auto", "relevances": "bif"}, "criterion 'bif' has no gradient"),
        ({"kernel": "ard", "relevances": "nothing"}, "nothing"),
        ({"kernel": "auto", "refine": "gradient"}, "refine gradient: relevances are learnt by their gradient already"),
        ({"kernel": "ard + linear"}, "kernel 'ard': theta has no value"),
    ],
)
def test_what_cannot_be_learnt_is_said(options, message):
    with pytest.raises(kernsel.errors.KernselError, match=message.replace("(", "[(]")):
        kernsel.select(*hidden(30, 2), **options)


def test_the_command_learns_relevances(tmp_path):
    X, y = hidden(50, 4)
    path = tmp_path / "data.csv"
    pd.DataFrame(X, columns=list("abcd")).assign(y=y).to_csv(path, index=False)
    few = ("--folds", 4, "--grid", "lambda=0.0001,0.001", "--quiet")
    result = run("select", path, "--kernel", "auto", "--relevances", "br", *few, "--json")
    document = json.loads(result.stdout)
    assert document["best"]["kernel"]["kernel"] == "ard"
    assert set(document["data"]["relevances"]["theta"]) == set("abcd")
    assert document["data"]["relevances"]["criterion"] == "br"
    result = run("select", path, "--relevances", "br", *few, code=2)
    assert result.stderr.count("\n") == 1
