"""Estimators of scikit-learn: its own checks, and what people put estimators into."""

import inspect
import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification, make_regression
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeaveOneOut,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import check_classifiers_train, parametrize_with_checks

import kernsel
from kernsel import KernelClassifier, KernelRegressor
from kernsel.errors import OptionError, SelectionWarning, UnknownPlugin

pytestmark = pytest.mark.filterwarnings("ignore::kernsel.errors.SelectionWarning")

QUICK = {"kernel": "gaussian", "cv": 3, "verify": 2, "grid": "coarse", "search": "grid", "extend": False}
OF_DATA = {"X", "y", "groups", "weights"}


class Decides(KernelClassifier):
    """The classifier without probabilities, for the check that asks for those that agree with its labels."""

    __init__ = KernelClassifier.__init__
    __doc__ = KernelClassifier.__doc__

    @property
    def predict_proba(self):
        raise AttributeError("no probabilities")


ESTIMATORS = [
    KernelClassifier(**QUICK),
    KernelClassifier(learner="svm", **QUICK),
    KernelClassifier(learner="klr", **QUICK),
    KernelRegressor(**QUICK),
    KernelRegressor(learner="svr", **QUICK),
    KernelRegressor(learner="qsvr", **QUICK),
]
EXPECTED = {
    # A row near the boundary may have a probability just over 1/2 for the other label. Decides passes the rest of this.
    "check_classifiers_train": "labels are those of the outputs, and probabilities are calibrated apart from them",
}


def expected(estimator):
    return EXPECTED if type(estimator) is KernelClassifier and estimator.learner in ("svm", "klr") else {}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected)
def test_scikit_learns_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # checks warn of what they do themselves
        check(estimator)


@pytest.mark.parametrize("learner", ["lssvm", "svm", "klr"])
@pytest.mark.parametrize("readonly", [False, True])
def test_the_check_of_training_but_for_probabilities(learner, readonly):
    check_classifiers_train("Decides", Decides(learner=learner, **QUICK), readonly_memmap=readonly)


@pytest.fixture(scope="module")
def classes():
    return make_classification(120, 4, n_informative=3, n_redundant=0, class_sep=1.0, random_state=0)


@pytest.fixture(scope="module")
def numbers():
    return make_regression(90, 3, noise=5.0, random_state=0)


@pytest.mark.parametrize(
    ("estimator", "lacks"),
    [(KernelClassifier, {"task", "clip"}), (KernelRegressor, {"task", "class_weight", "calibration", "threshold_for"})],
)
def test_its_parameters_are_the_options_of_select(estimator, lacks):
    options = {
        name: p.default
        for name, p in inspect.signature(kernsel.select).parameters.items()
        if name not in OF_DATA | lacks
    }
    own = estimator().get_params()
    assert {own.pop("cv"), own.pop("random_state"), own.pop("scoring")} == {None}
    assert own == options


def test_it_is_the_selection(classes):
    X, y = classes
    fitted = KernelClassifier(**QUICK).fit(X, y)
    selection = kernsel.select(X, y, task="classification", **QUICK)
    assert fitted.selection_.best.key == selection.best.key
    np.testing.assert_array_equal(fitted.decision_function(X), selection.model.decision(X))
    np.testing.assert_array_equal(fitted.predict_proba(X), selection.model.predict_proba(X))
    np.testing.assert_array_equal(fitted.classes_, [0, 1])


def test_cv_results_are_those_of_the_candidates(classes):
    X, y = classes
    grid = {"C": [0.1, 1, 10], "gamma": [0.01, 0.1]}
    fitted = KernelClassifier(**{**QUICK, "grid": grid, "learner": "svc", "kernel": "rbf", "metric": "roc_auc"}).fit(
        X, y
    )
    table, best = fitted.cv_results_, fitted.selection_.best
    assert table["rank_test_score"][fitted.best_index_] == 1
    assert sorted(table["rank_test_score"]) == list(range(1, 7))
    assert fitted.best_score_ == -best.value == table["mean_test_score"][fitted.best_index_]
    assert fitted.best_params_ == {"kernel": "gaussian", "tau": best.kernel.tau, "lambda": best.lam}
    np.testing.assert_allclose(table["std_test_score"][fitted.best_index_], np.sqrt(3) * best.score_se, rtol=1e-12)
    assert table["mean_test_error"][fitted.best_index_] == best.error
    assert table["mean_test_roc_auc"][fitted.best_index_] == best.metrics["roc_auc"].value
    # As people plot it: by a pivot, and by the shape of the grid.
    frame = pd.DataFrame(table)
    pivot = frame.pivot(index="param_gamma", columns="param_C", values="mean_test_score")
    np.testing.assert_allclose(sorted(pivot.index), [0.01, 0.1], rtol=1e-12)
    np.testing.assert_allclose(sorted(pivot.columns), [0.1, 1, 10], rtol=1e-12)
    square = table["mean_test_score"].reshape(2, 3)  # tau and lambda ascending: gamma and C descending
    np.testing.assert_array_equal(square[::-1, ::-1], pivot.to_numpy())


def test_cv_results_of_kernels_with_different_parameters(numbers):
    fitted = KernelRegressor(**{**QUICK, "kernel": ["gaussian", "linear"]}).fit(*numbers)
    table = fitted.cv_results_
    linear = np.array([each["kernel"] == "linear" for each in table["params"]])
    np.testing.assert_array_equal(table["param_tau"].mask, linear)
    assert not table["param_alpha"].mask.any()
    assert set(fitted.best_params_) >= {"kernel", "lambda"}


WRONG = [
    ({"cv": "x"}, "folds 'x' is unknown"),
    ({"repeats": 0}, "repeats is how often the folds are dealt, a whole number from 1, not 0"),
    ({"learner": "tree"}, "no learner is called 'tree'; there are klr, krr"),
    ({"criterion": "x"}, "no criterion is called 'x'"),
    ({"search": "x"}, "no search is called 'x'; there are grid, halving"),
    ({"grid": "x"}, "grid 'x' is unknown"),
    ({"grid": {"tau": "wide"}}, "grid"),
    ({"refine": "x"}, "refine 'x' is unknown"),
    ({"budget": 3}, "budget 3 is what a refinement may cost"),
    ({"rank": "x"}, "rank must be a number of landmarks"),
    ({"landmarks": "x"}, "landmarks 'x' is unknown"),
    ({"choose": "x"}, "choose 'x' is unknown"),
    ({"within": -1}, "within is a number of standard errors, at least 0, not -1"),
    ({"verify": -1}, "verify is the number of leading candidates to check"),
    ({"certify": 2}, "certify is a share"),
    ({"calibration": "x"}, "calibration 'x' is unknown"),
    ({"intervals": "x"}, "intervals 'x'"),
    ({"metric": "x"}, "metric 'x' is none of scikit-learn's scorers"),
    ({"scoring": "x"}, "metric 'x' is none of scikit-learn's scorers"),
    ({"threshold_for": "x"}, "threshold for 'x': there is no such measure"),
    ({"extend": "no"}, "extend is True or False, not 'no'"),
    ({"standardize": None}, "standardize is True or False, not None"),
    ({"progress": 3}, "progress is called as progress.done, total, text., and 3 can't be"),
    ({"ordinal": "x"}, "ordinal has the levels of each column"),
    ({"criterion": 3}, "a criterion must be a name such as 'newton-cv', or a Criterion, not 3"),
    ({"metric": 3}, "metric is the name of one of scikit-learn's scorers, or several, not 3"),
    ({"criterion": "bif", "order": "x"}, "criterion 'bif': order must be a whole number from 1, or inf, not 'x'"),
    ({"class_weight": 3}, "class_weight 3 is unknown: use balanced, or a dictionary of weights"),
    ({"drop": 3.5}, "columns are named, or numbered from 0, by one or a list of them, not by 3.5"),
    ({"journal": 3}, "journal is the name of a file, not 3"),
    ({"cv": KFold}, r"folds are a splitter such as KFold\(\), and KFold is its class"),
    (
        {"cv": GroupShuffleSplit(9)},
        "the splitter GroupShuffleSplit.* can't split .*: The 'groups' param",
    ),
]


@pytest.mark.parametrize("kernel", [None, "ard", "gaussian"])
@pytest.mark.parametrize(("options", "match"), WRONG, ids=lambda each: str(each) if isinstance(each, dict) else "")
def test_wrong_parameters_are_refused_before_any_work(classes, options, match, kernel, monkeypatch):
    def work(*_, **__):
        raise AssertionError("it began to work")

    monkeypatch.setattr("kernsel.selection.kernel_source._chosen", work)
    monkeypatch.setattr("kernsel.selection.kernel_source._learnt", work)
    monkeypatch.setattr("kernsel.search.board.Board.score", work)
    with pytest.raises((OptionError, UnknownPlugin), match=match) as caught:
        KernelClassifier(kernel=kernel, **options).fit(*classes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("cv", [KFold(3, shuffle=True, random_state=0), StratifiedKFold(3), LeaveOneOut(), "loo"])
def test_cv_is_what_scikit_learn_takes(classes, cv):
    X, y = classes
    fitted = KernelClassifier(**{**QUICK, "cv": cv}).fit(X[:30], y[:30])
    assert fitted.selection_.data["folds"] == (3 if hasattr(cv, "n_splits") else 30)
    listed = KernelClassifier(**{**QUICK, "cv": list(StratifiedKFold(3).split(X, y))}).fit(X, y)
    assert listed.selection_.data["folds"] == 3


def test_an_option_has_one_name(classes):
    with pytest.raises(OptionError, match="'cv' and 'folds' are one option"):
        KernelClassifier(cv=3, folds=4).fit(*classes)
    with pytest.raises(OptionError, match="'random_state' and 'seed' are one option"):
        KernelClassifier(random_state=3, seed=4).fit(*classes)


def test_random_state_is_the_seed(numbers):
    def seed(**options):
        return KernelRegressor(**QUICK, **options).fit(*numbers).selection_.options["seed"]

    assert seed() == 0
    assert seed(random_state=7) == seed(seed=7) == 7
    assert seed(random_state=np.random.RandomState(1)) == seed(random_state=np.random.RandomState(1)) > 7


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"n_jobs": 2}, "NUMBA_NUM_THREADS"),
        ({"C": 1.0}, "lambda = 1 / "),
        ({"lerner": "svm"}, "did you mean 'learner'"),
        ({"clip": False}, "no option 'clip'"),
    ],
)
def test_other_words_are_answered(options, match):
    with pytest.raises(OptionError, match=match):
        KernelClassifier(**options)


def test_within_a_pipeline_of_columns(classes):
    X, y = classes
    frame = pd.DataFrame(X, columns=list("abcd")).assign(kind=np.where(y + (X[:, 0] > 1) > 0, "u", "v"))
    columns = make_column_transformer((StandardScaler(), list("abcd")), (OneHotEncoder(), ["kind"]))
    piped = make_pipeline(columns, KernelClassifier(**QUICK)).fit(frame, y)
    assert piped.score(frame, y) > 0.8
    itself = KernelClassifier(**QUICK).fit(frame, y)  # text needs no columns of its own
    np.testing.assert_array_equal(itself.feature_names_in_, frame.columns)
    assert itself.score(frame, y) > 0.8
    with pytest.raises(ValueError, match="feature names"):
        itself.predict(frame.rename(columns={"a": "z"}))


def test_cross_validation_in_two_processes(classes):
    X, y = classes
    estimator = KernelClassifier(**QUICK)
    scores = cross_val_score(estimator, X, y, cv=2, n_jobs=2)
    np.testing.assert_array_equal(scores, cross_val_score(estimator, X, y, cv=2))


def test_within_a_search_over_its_options(classes):
    search = GridSearchCV(KernelClassifier(**QUICK), {"learner": ["lssvm", "klr"]}, cv=2).fit(*classes)
    assert search.best_params_["learner"] in ("lssvm", "klr")


def test_thresholds_and_calibration_around_it(classes):
    X, y = classes
    tuned = TunedThresholdClassifierCV(KernelClassifier(**QUICK), scoring="f1", cv=2).fit(X, y)
    assert tuned.score(X, y) > 0.7
    calibrated = CalibratedClassifierCV(KernelClassifier(**QUICK), cv=2).fit(X, y)
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize("scoring", ["f1", "precision", "roc_auc", "neg_log_loss"])
def test_a_scorer_takes_the_second_class_whatever_it_is_called(classes, scoring):
    X, y = classes
    numbers = KernelClassifier(**QUICK, scoring=scoring).fit(X, y)
    names = KernelClassifier(**QUICK, scoring=scoring).fit(X, np.array(["no", "yes"])[y])
    assert names.score(X, np.array(["no", "yes"])[y]) == numbers.score(X, y)
    assert names.best_score_ == numbers.best_score_


def test_metadata_are_routed(classes):
    X, y = classes
    groups, weight = np.arange(120) % 12, 1.0 + np.arange(120) % 3
    seen = []

    class Seen(KernelClassifier):
        __init__ = KernelClassifier.__init__

        def fit(self, X, y, sample_weight=None, groups=None):
            seen.append((sample_weight, groups))
            return super().fit(X, y, sample_weight, groups)

    with sklearn.config_context(enable_metadata_routing=True):
        routed = Seen(**QUICK).set_fit_request(sample_weight=True, groups=True)
        cross_val_score(
            make_pipeline(StandardScaler().set_fit_request(sample_weight=False), routed),
            X, y, cv=GroupKFold(2), params={"sample_weight": weight, "groups": groups},
            scoring=make_scorer(accuracy_score).set_score_request(sample_weight=True),
        )  # fmt: skip
    assert len(seen) == 2
    for weights, group in seen:
        assert weights.shape == group.shape == (60,)
        assert np.unique(group).size == 6


def test_groups_are_held_out_whole(classes):
    X, y = classes
    fitted = KernelClassifier(**QUICK).fit(X, y, groups=np.arange(120) % 12)
    assert "whole groups" in fitted.selection_.data["holdout"]
    split = KernelClassifier(**{**QUICK, "cv": GroupKFold(3)}).fit(X, y, groups=np.arange(120) % 12)
    assert split.selection_.data["folds"] == 3


def test_groups_are_held_out_whole_where_the_kernel_is_chosen_too(numbers):
    X, y = numbers
    fitted = KernelRegressor(effort="normal", cv=3, verify=2).fit(X, y, groups=np.arange(90) % 12)
    assert "whole groups" in fitted.selection_.data["holdout"]
    assert "compared" in fitted.selection_.data


@pytest.mark.parametrize("dump", ["pickle", "joblib"])
def test_it_survives_a_file(numbers, tmp_path, dump):
    X, y = numbers
    fitted = KernelRegressor(**QUICK).fit(X, y)
    if dump == "joblib":
        joblib.dump(fitted, tmp_path / "fitted")
        again = joblib.load(tmp_path / "fitted", mmap_mode="r")
    else:
        again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    np.testing.assert_array_equal(again.predict_interval(X), fitted.predict_interval(X))
    assert again.best_params_ == fitted.best_params_


def test_it_is_cloned_and_shown():
    estimator = KernelRegressor(kernel=kernsel.kernels.Gaussian(2.0), cv=KFold(4))
    copy = clone(estimator)
    assert copy.kernel == estimator.kernel
    assert " ".join(repr(copy).split()) == (
        "KernelRegressor(cv=KFold(n_splits=4, random_state=None, shuffle=False), kernel=Gaussian(tau=2.0))"
    )
    assert "KernelRegressor" in copy._repr_html_()
    with pytest.raises(NotFittedError):
        copy.predict([[1.0]])


def test_intervals_and_several_targets(numbers):
    X, y = numbers
    fitted = KernelRegressor(**QUICK).fit(X, y)
    low, high = fitted.predict_interval(X, coverage=0.8).T
    assert 0.7 < np.mean((low <= y) & (y <= high)) <= 1
    both = KernelRegressor(**QUICK).fit(X, np.column_stack([y, -y]))
    assert both.predict(X).shape == (90, 2)
    assert both.predict_interval(X).shape == (90, 2, 2)


@pytest.mark.parametrize("labels", [np.array(["b", "a"]), np.array(["b", "a"], dtype=object), np.array([True, False])])
def test_labels_stay_what_they_are(classes, labels):
    X, y = classes
    fitted = KernelClassifier(**QUICK).fit(X, labels[y])
    assert fitted.classes_.dtype == labels.dtype
    assert fitted.predict(X).dtype == labels.dtype
    np.testing.assert_array_equal(fitted.classes_, np.sort(labels))
    assert fitted.score(X, labels[y]) > 0.8


def test_sparse_rows_give_what_dense_ones_do(numbers):
    X, y = numbers
    X = np.where(np.abs(X) > 1, X, 0.0)
    of_sparse = KernelRegressor(**QUICK, standardize=False).fit(sparse.csc_matrix(X), y)
    of_dense = KernelRegressor(**QUICK, standardize=False).fit(X, y)
    np.testing.assert_allclose(of_sparse.predict(sparse.coo_matrix(X)), of_dense.predict(X), rtol=1e-9)


def test_warnings_point_at_the_caller(classes):
    X, y = classes
    with pytest.warns(SelectionWarning) as caught:
        KernelClassifier(**{**QUICK, "grid": {"tau": [1e-3], "lambda": [1e3, 1e4]}}).fit(X, y)
    assert {warning.filename for warning in caught} == {__file__}
    with pytest.warns(SelectionWarning) as caught:
        kernsel.select(X, y, **{**QUICK, "grid": {"tau": [1e-3], "lambda": [1e3, 1e4]}})
    assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda X, y: (X[:1], y[:1]), "minimum of 2"),
        (lambda X, y: (X, np.zeros(len(y))), "one class only"),
        (lambda X, y: (X, y + X[:, 0]), "Unknown label type"),
        (lambda X, y: (X[:-1], y), "inconsistent numbers of samples"),
        (lambda X, y: (X * np.nan, y), "no column is left"),
        (lambda X, y: (sparse.csr_array(X * np.nan), y), "NaN"),
        (lambda X, y: (X + np.inf, y), "infinity"),
        (lambda X, y: (X, None), "requires y"),
        (lambda X, y: (pd.DataFrame(X).add_prefix("x"), y[:-1]), "inconsistent numbers of samples"),
        (lambda X, y: (pd.DataFrame(X * np.nan).add_prefix("x"), y), "no column is left|no value"),
        (lambda X, y: (X[:, :1] * 0, y), "is constant"),
        (lambda X, y: (X[:2], np.array([0, 1])), "3 folds can't be made of 2 rows"),
    ],
)
def test_data_that_cannot_be(classes, change, match):
    with pytest.raises(ValueError, match=match):
        KernelClassifier(**QUICK).fit(*change(*classes))


@pytest.mark.parametrize("missing", ["impute", "drop", "refuse"])
def test_gaps_of_an_array_are_those_of_a_table(numbers, missing):
    X, y = numbers
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    estimator = KernelRegressor(missing=missing, **QUICK)
    assert estimator.__sklearn_tags__().input_tags.allow_nan == (missing != "refuse")
    if missing == "refuse":
        with pytest.raises(ValueError, match="NaN"):
            estimator.fit(X, y)
        return
    fitted = estimator.fit(X, y)
    table = pd.DataFrame(X).add_prefix("x")
    expected = clone(estimator).fit(table, y).predict(table)
    np.testing.assert_allclose(fitted.predict(X), expected, rtol=1e-9)  # sums over columns in another order
    assert any("missing values" in note for note in fitted.selection_.data["notes"])


def test_weights_that_cannot_be(numbers):
    X, y = numbers
    for weights, match in [(np.zeros(90), "zero"), (-np.ones(90), "must be 0, or from"), (np.ones(89), "89")]:
        with pytest.raises(ValueError, match=match):
            KernelRegressor(**QUICK).fit(X, y, sample_weight=weights)


def test_a_subclass_keeps_the_constructor_that_it_has():
    class Ridge(KernelRegressor):
        """Kernel ridge regression with one parameter."""

        def __init__(self, *, folds=3):
            super().__init__(folds=folds, learner="krr", **QUICK)

    assert Ridge(folds=4).folds == 4
    assert Ridge().learner == "krr"
    assert Ridge._get_param_names() == ["folds"]
    assert "kernel" in type("Same", (KernelRegressor,), {})._get_param_names()


def test_frames_of_polars_with_text_are_those_of_pandas():
    polars = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    columns = {"a": rng.normal(size=60), "c": rng.choice(list("uvw"), 60)}
    y = columns["a"] + (columns["c"] == "u")
    first = KernelRegressor(**QUICK).fit(pd.DataFrame(columns), y)
    frame = polars.DataFrame(columns)
    second = KernelRegressor(**QUICK).fit(frame, polars.Series("y", y))
    np.testing.assert_array_equal(first.predict(pd.DataFrame(columns)), second.predict(frame))
    np.testing.assert_array_equal(second.feature_names_in_, ["a", "c"])


def test_skops_loads_a_pipeline_with_nothing_to_trust(numbers):
    skops = pytest.importorskip("skops.io")
    X, y = numbers
    model = KernelRegressor(clip=False, **QUICK).fit(X, y).selection_.model
    written = skops.dumps(model.to_sklearn())
    assert skops.get_untrusted_types(data=written) == []
    np.testing.assert_allclose(skops.loads(written).predict(X), model.predict(X), rtol=1e-9)


class Steps:
    """A callback that keeps what it is told."""

    def __init__(self):
        self.told, self.scores = [], []

    def setup(self, estimator, context):
        self.told.append("setup")

    def teardown(self, estimator, context):
        self.told.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X, y, metadata):
        self.told.append(("begin", context.task_name))
        self.rows, self.weights = len(X), metadata["sample_weight"]

    def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator):
        self.told.append(("end", context.task_name))
        if fitted_estimator is not None:
            self.scores.append(fitted_estimator.score(X, y))


class HandedOn(Steps):
    """One that a pipeline hands on to its steps."""

    max_propagation_depth = None

    def on_fit_task_begin(self, estimator, context):
        self.told.append(("begin", type(estimator).__name__))

    def on_fit_task_end(self, estimator, context):
        self.told.append(("end", type(estimator).__name__))


@pytest.mark.parametrize("made", [KernelClassifier, KernelRegressor])
def test_callbacks_of_scikit_learn_see_the_steps_of_the_search(made, classes):
    pytest.importorskip("sklearn.callback")
    X, y = classes
    seen, steps = [], Steps()
    model = clone(made(progress=lambda *step: seen.append(step[2]), **QUICK).set_callbacks(steps))
    model.fit(X, y, sample_weight=np.ones(len(y)))
    inner = [(what, text) for text in seen for what in ("begin", "end")]
    assert steps.told == ["setup", ("begin", "fit"), *inner, ("end", "fit"), "teardown"]
    assert len(inner) > 4
    assert steps.rows == len(X)
    np.testing.assert_array_equal(steps.weights, 1)
    assert steps.scores == [model.score(X, y)]
    plain = made(**QUICK).fit(X, y, sample_weight=np.ones(len(y)))
    np.testing.assert_array_equal(plain.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="y is None"):
        model.fit(X, None)


def test_pipelines_hand_callbacks_on(classes):
    pytest.importorskip("sklearn.callback")
    steps = HandedOn()
    pipeline = make_pipeline(StandardScaler(), KernelClassifier(**QUICK)).set_callbacks(steps)
    pipeline.fit(*classes)
    assert steps.told.count(("end", "KernelClassifier")) == steps.told.count(("begin", "KernelClassifier")) > 4
    assert steps.told.count("setup") == steps.told.count("teardown") == 1
