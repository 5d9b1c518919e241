"""Comparisons: the same splits for all methods, what is counted, and that a stopped run ends as one that wasn't."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

import kernsel
from kernsel.comparison.methods import Method, choosable
from kernsel.comparison.tables import Splits, Table
from kernsel.comparison.trials import run_trial
from kernsel.errors import DataError, OptionError, SelectionError
from kernsel.selection.plan import Plan
from kernsel.text import split_list

pytestmark = pytest.mark.filterwarnings("ignore::kernsel.errors.SelectionWarning")  # choices on the edge of a grid

FAST = {
    "kernel": "gaussian",
    "folds": 3,
    "verify": 1,
    "extend": False,
    "grid": {"tau": [0.5, 2.0, 8.0], "lambda": [1e-3, 1e-1]},
}
"""A small selection."""


def classes(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0, "yes", "no")


def regression(n=60, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, 10 * np.sin(X[:, 0]) + rng.normal(size=n)


@pytest.fixture(scope="module")
def both():
    tables = {"classes": classes(), "numbers": regression()}
    return kernsel.compare(tables, criteria=["cv", "gcv"], rules=["safest", "minimum"], splits=4, **FAST)


def test_lists_are_combined(both):
    assert both.names == ["cv safest", "cv minimum", "gcv safest", "gcv minimum"]
    assert [result.table for result in both.results] == ["classes", "numbers"]
    assert all(result.errors.shape == (4, 4) for result in both.results)


def test_an_error_is_that_of_a_selection_by_hand(both):
    X, y = classes()
    train, test = Table.of("classes", X, y, Plan(), Splits(4)).splits[2]
    model = kernsel.select(X[train], y[train], criterion="gcv", choose="minimum", **FAST).model
    assert both.results[0].errors[2, 3] == np.mean(model.predict(X[test]) != y[test])
    X, y = regression()
    train, test = Table.of("numbers", X, y, Plan(), Splits(4)).splits[1]
    model = kernsel.select(X[train], y[train], criterion="cv", choose="safest", **FAST).model
    assert both.results[1].errors[1, 0] == pytest.approx(np.sqrt(np.mean((model.predict(X[test]) - y[test]) ** 2)))


def test_an_estimator_gets_encoded_rows_and_own_labels():
    X, y = classes()
    found = kernsel.compare((X, y), against=["sklearn.svm:SVC(C=3)", KNeighborsClassifier(3)], splits=2, **FAST)
    assert found.names == ["kernsel", "SVC(C=3)", "KNeighborsClassifier"]
    train, test = Table.of("data", X, y, Plan(), Splits(2)).splits[0]
    centre, spread = X[train].mean(axis=0), X[train].std(axis=0)
    expected = SVC(C=3).fit((X[train] - centre) / spread, y[train]).predict((X[test] - centre) / spread)
    assert found.results[0].errors[0, 1] == np.mean(expected != y[test])


def test_weights_that_no_fit_chose_leave_lambda_to_the_selection():
    X, y = classes()
    options = {"method": "uniform", "family": "separate"}
    found = kernsel.compare((X, y), methods={"mean": {"weighted": options}, "plain": {}}, splits=1, **FAST)
    train, test = Table.of("data", X, y, Plan(), Splits(1)).splits[0]
    kernel = kernsel.learn_mkl(X[train], y[train], **options).kernel
    grid = {"lambda": FAST["grid"]["lambda"]}
    expected = kernsel.select(X[train], y[train], **{**FAST, "kernel": kernel, "grid": grid})
    trial = found.results[0].trials[0][0]
    assert trial.lam == expected.best.lam
    assert trial.loss == np.mean(expected.model.predict(X[test]) != y[test])
    assert trial.kernel == "weighted sum"
    assert trial.parameters == {"kernels": 36}  # twelve widths on all features, and on each of the two


def test_a_choice_is_refitted_with_another_learner():
    X, y = classes()
    methods = {"a": {"criterion": "eloo", "learner": "krr", "fitted": "svm"}, "b": {"criterion": "eloo"}}
    found = kernsel.compare((X, y), methods=methods, splits=2, **FAST)
    trial = found.results[0].trials[0][0]
    train, test = Table.of("data", X, y, Plan(), Splits(2)).splits[0]
    chosen = kernsel.select(X[train], y[train], criterion="eloo", learner="krr", **FAST).best
    assert trial.learner == "svm"
    assert (trial.lam, trial.parameters["tau"]) == (chosen.lam, chosen.kernel.parameters["tau"])
    fitted = kernsel.select(X[train], y[train], learner="svm", kernel=chosen.kernel, grid={"lambda": [chosen.lam]})
    assert trial.loss == np.mean(fitted.model.predict(X[test]) != y[test])


def test_relevances_are_learnt_for_a_method():
    X, y = classes()
    learned = {"kernel": "ard", "criterion": "loo"}
    found = kernsel.compare((X, y), methods={"ard": {"learned": learned}, "plain": {}}, splits=2, **FAST)
    train, _ = Table.of("data", X, y, Plan(), Splits(2)).splits[1]
    expected = kernsel.learn_relevances(X[train], y[train], **learned)
    assert found.results[0].trials[1][0].lam == expected.lam


def test_all_methods_see_the_same_rows_and_no_test_row():
    """Twin of the splits: every row is in one part; a column that only test rows have doesn't matter."""
    X, y = regression()
    splits = Table.of("t", X, y, Plan(), Splits(5, train=0.6)).splits
    for train, test in splits:
        assert sorted([*train, *test]) == list(range(60))
        assert train.size == 36
    assert len({tuple(train) for train, _ in splits}) == 5
    table = Table.of("t", X, y, Plan(), Splits(1))
    method = Method("m", FAST)
    found = run_trial(table, method, table.splits[0], 0)
    changed = X.copy()
    changed[table.splits[0][1]] *= 1e6  # scaling must not see these rows
    again = run_trial(Table.of("t", changed, y, Plan(), Splits(1)), method, table.splits[0], 0)
    assert (again.parameters, again.lam, again.reported) == (found.parameters, found.lam, found.reported)


def test_given_splits_come_first(tmp_path):
    X, y = regression()
    train, test = np.array([np.arange(20), np.arange(20, 40)]), np.array([np.arange(40, 60), np.arange(20)])
    np.savez(tmp_path / "t_splits.npz", train=train, test=test)
    splits = Table.of("t", X, y, Plan(), Splits(3, folder=tmp_path)).splits
    assert (splits[1][0] == train[1]).all()
    assert (splits[1][1] == test[1]).all()
    assert splits[2][0].size == 20
    assert len(splits[2][1]) == 40


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"train": [[0, 1]]}, "holds no splits"),
        ({"train": [[0.5, 1]], "test": [[2, 3]]}, "holds no splits"),
        ({"train": [[0, 60]], "test": [[2, 3]]}, "numbers of rows that table 't', of 60 rows, hasn't"),
        ({"train": [[0, 2]], "test": [[2, 3]]}, "tests on rows that it trains on"),
    ],
)
def test_files_of_splits_are_checked(tmp_path, arrays, message):
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(OptionError, match=message):
        Table.of("t", *regression(), Plan(), Splits(1, folder=tmp_path))


def test_what_one_table_cannot_have_is_told_of_it_alone():
    tables = {"classes": classes(), "numbers": regression()}
    found = kernsel.compare(tables, methods={"all": {}, "svm": {"learner": "svm"}, "cv": {"criterion": "cv"}}, splits=2,
                            **FAST)  # fmt: skip
    assert found.results[0].usable.all()
    assert found.results[1].usable.tolist() == [True, False, True]
    assert math.isnan(found.results[1].means[1])
    assert "svm failed on 2 of 2 splits: learner 'svm' is for classification" in found.summary()
    ranks, ranked = found.ranks("")
    assert ranked == [0, 2]
    assert ranks.mean_ranks.size == 2


@pytest.mark.parametrize("names", [("many", "two"), ("two", "many")])
def test_what_a_table_cannot_have_is_told_of_it_wherever_it_stands(names):
    """All rows that are trained on are of one group on one table."""
    tables = {name: classes(40) for name in names}
    groups = {"many": np.arange(40) % 8, "two": np.repeat([0, 1], [25, 15])}
    found = kernsel.compare(tables, groups=groups, criteria=["cv", "gcv"], splits=2, **FAST)
    usable = {each.table: each.usable.all() for each in found.results}
    assert usable == {"many": True, "two": False}
    assert "two: cv failed on 2 of 2 splits: all rows are of one group" in found.summary()
    with pytest.raises(OptionError, match="method 'cv': all rows are of one group"):
        kernsel.compare({"two": tables["two"]}, groups={"two": groups["two"]}, criteria=["cv", "gcv"], **FAST)


def test_two_tables_of_one_name_are_refused():
    with pytest.raises(OptionError, match="two tables are called '1': give each one a name of its own"):
        kernsel.compare({1: classes(), "1": regression()}, criteria=["cv", "gcv"], **FAST)


@pytest.mark.parametrize(
    ("methods", "names"),
    [
        ({"a": {"kernel": "gaussian", "learner": "svm"}}, {"tau", "h", "lambda"}),
        ({"a": {"kernel": ["ard", "polynomial(gamma=1)"]}}, {"degree", "gamma", "coef0", "lambda"}),
        ({"a": {"learned": {}}, "b": {"kernel": "gaussian*linear", "fitted": "svr"}}, {"1.tau", "epsilon"}),
        ({"a": {"learned": {"kernel": "gaussian"}}, "b": {"weighted": {"method": "lp"}}}, {"tau", "kernels"}),
        ({"a": {}, "b": {"learner": "auto"}}, {"tau", "degree", "h"}),
    ],
)
def test_what_may_be_chosen_is_known_before_the_work(methods, names):
    search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 3]})
    known = set().union(*(choosable(Method(name, options)) for name, options in methods.items()))
    assert names <= known
    assert "theta" not in known
    assert "n_neighbors" in choosable(Method("search", against=search))


def test_mistakes_are_told_before_or_with_the_first_trial():
    X, y = regression()
    with pytest.raises(OptionError, match="nothing to compare"):
        kernsel.compare((X, y))
    with pytest.raises(OptionError, match="two methods have the name 'cv'"):
        kernsel.compare((X, y), criteria=["cv", "cv"])
    with pytest.raises(OptionError, match="no option 'lerner'; did you mean 'learner'"):
        kernsel.compare((X, y), criteria=["cv", "gcv"], lerner="krr")
    with pytest.raises(OptionError, match=r"method 'least': .*choose"):
        kernsel.compare((X, y), rules=["least", "safest"], **FAST)
    with pytest.raises(SelectionError, match="no method succeeded"):
        kernsel.compare((X, y), criteria=["cv", "gcv"], learner="svm", splits=2, **FAST)
    with pytest.raises(DataError, match="too few to split"):
        kernsel.compare((X[:3], y[:3]), criteria=["cv", "gcv"])
    with pytest.raises(OptionError, match="60 to train on"):
        kernsel.compare((X, y), criteria=["cv", "gcv"], train=60)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        ("sklearn.svm:SVX", "has no SVX"),
        ("sklearn.svm", "write module:Name"),
        ("no_such_module:SVC", "No module named"),
        ("sklearn.svm:SVC(D=1)", "refuses its parameters"),
        ("os:getcwd", "no fit and predict"),
        (3, "has no fit"),
    ],
)
def test_estimators_that_cannot_be_had(estimator, message):
    with pytest.raises(OptionError, match=message):
        kernsel.compare(regression(), against=[estimator])


def test_lists_are_split_outside_of_parentheses():
    assert split_list("cv, cvks(eta=1, cv=bif),gcv,") == ["cv", "cvks(eta=1, cv=bif)", "gcv"]


class Stop(Exception):
    """What ends a run in the middle."""


def test_a_stopped_run_goes_on_and_ends_with_the_same_table(tmp_path):
    tables = {"classes": classes(), "numbers": regression()}
    asked = {"criteria": ["cv", "gcv"], "against": ["sklearn.dummy:DummyClassifier"], "splits": 3, **FAST}
    whole = kernsel.compare(tables, **asked)
    seen = []

    def stop_at(count):
        def progress(done, total, text):
            seen.append(done)
            if done == count:
                raise Stop

        return progress

    for count in (4, 11):
        with pytest.raises(Stop):
            kernsel.compare(tables, **asked, journal=tmp_path / "j", progress=stop_at(count))
    found = kernsel.compare(tables, **asked, journal=tmp_path / "j")
    for each, other in zip(whole.results, found.results, strict=True):
        np.testing.assert_array_equal(each.errors, other.errors)
    frames = [each.frame.drop(columns="seconds") for each in (whole, found)]
    pd.testing.assert_frame_equal(*frames)
    kept = (tmp_path / "j").read_text().count('"stage":"trial"')
    assert kept == 2 * 3 * 3  # none was made twice, and nothing within a trial is kept
    with pytest.raises(OptionError, match="rows of the first split"):
        kernsel.compare(tables, **asked, train=0.5, journal=tmp_path / "j")
    more = kernsel.compare(tables, **{**asked, "splits": 4}, journal=tmp_path / "j")  # goes on from three
    np.testing.assert_array_equal(more.results[0].errors[:3], found.results[0].errors)
    assert (tmp_path / "j").read_text().count('"stage":"trial"') == 2 * 4 * 3


def grouped(n=66, groups=11, seed=0):
    """Return rows whose target is that of their group: of a known group it is told from its place."""
    rng = np.random.default_rng(seed)
    group = rng.permutation(np.arange(n) % groups)
    places, values = 20 * rng.normal(size=(groups, 2)), rng.normal(size=groups)
    return places[group] + rng.normal(size=(n, 2)), values[group], np.array([f"g{each}" for each in group])


def test_a_group_is_on_one_side_of_each_split():
    X, y, groups = grouped()
    table = Table.of("t", X, y, Plan(), Splits(20), groups)
    sizes = np.bincount(table.dataset.groups)
    for train, test in table.splits:
        assert not set(groups[train]) & set(groups[test])
        assert len(train) + len(test) == len(y)
        assert abs(len(train) - 0.7 * len(y)) <= sizes.max() / 2 + 0.5
    assert len({tuple(train) for train, _ in table.splits}) > 10
    options = {"methods": {"a": {}, "b": {"choose": "minimum"}}, "splits": 4, **FAST}
    known = kernsel.compare((X, y), **options).results[0]
    new = kernsel.compare({"t": (X, y)}, groups={"t": groups}, **options).results[0]
    assert (known.means < 0.5 * new.means).all()
    assert new.train + new.test == len(y)


def test_folds_of_a_selection_hold_groups_out_too():
    X, y, groups = grouped()
    trial = kernsel.compare((X, y), groups=groups, criteria=["cv", "gcv"], splits=1, **FAST).results[0].trials[0][0]
    (train, _), = Table.of("t", X, y, Plan(), Splits(1), groups).splits  # fmt: skip
    same = kernsel.select(X[train], y[train], groups=groups[train], criterion="cv", **FAST)
    assert trial.reported == same.best.error
    assert trial.reported != kernsel.select(X[train], y[train], criterion="cv", **FAST).best.error


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"tabel": [1]}, "groups: there is no table 'tabel'; did you mean 'table'"),
        ([1] * 66, "there are 2 tables; give those of each by its name"),
        ({"table": [1] * 66}, "all rows of table 'table' are of one group"),
        ({"table": [1] * 3}, "groups"),
    ],
)
def test_groups_that_cannot_be_used(groups, message):
    X, y, _ = grouped()
    with pytest.raises((OptionError, DataError), match=message):
        kernsel.compare({"table": (X, y), "other": (X, y)}, groups=groups, criteria=["cv", "gcv"], **FAST)


def test_splits_of_a_file_may_not_part_a_group(tmp_path):
    X, y, groups = grouped()
    np.savez(tmp_path / "t_splits.npz", train=np.arange(40)[None], test=np.arange(40, 66)[None])
    with pytest.raises(OptionError, match="trains and tests on rows of one group"):
        Table.of("t", X, y, Plan(), Splits(1, folder=tmp_path), groups)


def test_what_is_proved_of_the_choices_is_told():
    asked = {"learners": ["svm", "lssvm"], "against": ["sklearn.dummy:DummyClassifier"], "splits": 2, **FAST}
    found = kernsel.compare(classes(), certify=0.05, **asked)
    svm, lssvm, other = found.results[0].trials[0]
    assert svm.proved <= 0.05
    assert 0 < svm.work <= 1
    assert lssvm.work == 0  # exact scores of the square loss have a closed form
    assert other.proved is None
    (line,) = [line for line in found.summary().splitlines() if line.strip().startswith("data") and " at " in line]
    work = np.median([split[0].work for split in found.results[0].trials])
    assert f"at {100 * work:.0f} %" in line
    assert line.endswith("-")
    assert "proved" not in kernsel.compare(classes(), **asked).summary()


def test_the_document_holds_all_of_it(both):
    document = json.loads(both.to_json())
    assert document["format"] == "kernsel-comparison"
    method = document["results"][0]["methods"][1]
    assert method["error"] == pytest.approx(np.mean([trial["error"] for trial in method["trials"]]))
    assert {each["mark"] for each in document["results"][0]["methods"]} >= {"best"}
    assert document["cases"][0]["ranks"]["methods"] == both.names
    assert len(document["cases"][0]["pairs"]) == 6
    assert len(both.frame) == 2 * 4 * 4
