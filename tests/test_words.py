"""The words of other libraries: understood where they mean one thing, answered where they don't."""

import warnings

import numpy as np
import pytest

import kernsel
from commandline import run
from kernsel import registry
from kernsel.errors import OptionError, UnknownPlugin
from kernsel.kernels import Gaussian, parse
from kernsel.learners import Krr, Svm
from kernsel.search.converting import in_own_words
from kernsel.words import ELSEWHERE, NO_PARTS, OPTIONS, PARTS, read_options

QUICK = {"kernel": "gaussian", "grid": {"tau": [1.0, 2.0], "lambda": [1e-2, 1e-1]}, "extend": False}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    return X, (X[:, 0] + rng.normal(size=40) > 0).astype(int)


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kernsel.errors.SelectionWarning)
        yield


@pytest.mark.parametrize(("kind", "word", "own"), [(kind, *each) for kind in PARTS for each in PARTS[kind].items()])
def test_names_of_parts_are_understood(kind, word, own):
    assert registry.get(kind, word) is registry.get(kind, own)
    assert word not in registry.names(kind)


def test_texts_of_kernels_are_understood():
    assert parse("rbf(gamma=0.25) + 2*poly(degree=2, gamma=1)") == parse(
        "gaussian(tau=2) + 2*polynomial(degree=2, gamma=1)"
    )


def test_options_are_understood(table):
    X, y = table
    weights = 1.0 + np.arange(40) % 2
    words = kernsel.select(X, y, cv=4, random_state=3, sample_weight=weights, learner="svc", **QUICK)
    own = kernsel.select(X, y, folds=4, seed=3, weights=weights, learner="svm", **QUICK)
    np.testing.assert_array_equal(words.outputs, own.outputs)
    nested = kernsel.nested(X, y, cv=4, outer=2, random_state=3, **QUICK)
    assert nested.error == kernsel.nested(X, y, folds=4, outer=2, seed=3, **QUICK).error


def test_none_is_no_value(table):
    X, y = table
    words = kernsel.select(X=X, y=y, cv=None, random_state=None, sample_weight=None, **QUICK)
    np.testing.assert_array_equal(words.outputs, kernsel.select(X, y, **QUICK).outputs)


@pytest.mark.parametrize("call", [kernsel.select, kernsel.nested])
def test_unknown_options_are_answered_before_any_work(call):
    for name, match in [("lerner", "did you mean 'learner'"), ("xyz", "its options are"), *ELSEWHERE.items()]:
        with pytest.raises(OptionError) as caught:
            call(None, None, **{name: 1})
        assert match in str(caught.value)
        assert str(caught.value).startswith(f"kernsel.{call.__name__} has no option '{name}'")


def test_one_option_by_two_names():
    with pytest.raises(OptionError, match="'cv' and 'folds' are one option"):
        kernsel.select(None, None, cv=3, folds=4)
    assert read_options("f", {"cv": 3}, ["cv"]) == {"cv": 3}  # its own name for it


def test_what_the_table_has_is_no_option_of_ours():
    import inspect

    own = inspect.signature(kernsel.select).parameters
    assert set(OPTIONS.values()) <= set(own)
    assert not (set(OPTIONS) | set(ELSEWHERE)) & set(own)


def test_grids_in_scikit_learns_terms():
    n, values = 50.0, np.array([0.1, 1.0, 10.0])
    read = in_own_words({"C": values, "gamma": values}, [Gaussian()], n, Svm())
    for lam, tau, C, gamma in zip(read["lambda"], read["tau"], values[::-1], values[::-1], strict=True):
        assert Svm().conversions(n, lam)["C"] == pytest.approx(C, rel=1e-14)
        assert Gaussian(tau).conversions()["gamma"] == pytest.approx(gamma, rel=1e-14)
    read = in_own_words({"alpha": values}, [parse("laplacian")], n, Krr())
    assert Krr().conversions(n, read["lambda"][0])["alpha"] == pytest.approx(0.1, rel=1e-14)
    kept = {"gamma": values, "alpha": values}
    assert in_own_words(kept, [parse("polynomial"), parse("rational-quadratic(alpha=None)")], n, Svm()) == kept


@pytest.mark.parametrize(
    ("grid", "kernel", "learner", "match"),
    [
        ({"C": [1.0]}, "gaussian", "lssvm", "learner 'lssvm' has no C; its regularisation is alpha or lambda"),
        ({"alpha": [1.0]}, "gaussian", "svm", "learner 'svm' has no alpha; its regularisation is C or lambda"),
        ({"C": [0.0]}, "gaussian", "svm", "C must be greater than 0"),
        ({"C": [1.0], "lambda": [1.0]}, "gaussian", "svm", "C and lambda are one parameter"),
        ({"gamma": [1.0], "tau": [1.0]}, "gaussian", "svm", "gamma and tau are one parameter"),
        ({"gamma": [1.0]}, ["gaussian", "laplacian"], "svm", "gamma means another width for each"),
        ({"gamma": [1.0]}, "linear", "svm", "has no free parameter 'gamma'"),
    ],
)
def test_grids_that_cannot_be(table, grid, kernel, learner, match):
    with pytest.raises(OptionError, match=match):
        kernsel.select(*table, grid=grid, kernel=kernel, learner=learner, folds=3)


@pytest.mark.parametrize(
    ("kind", "word"),
    [(kind, word) for kind, words in NO_PARTS.items() for word in words if word not in registry.names(kind)],
)
def test_parts_that_are_none_here_are_answered(kind, word):
    with pytest.raises(UnknownPlugin, match=f"no {kind} is called '{word}': ") as caught:
        registry.get(kind, word)
    assert NO_PARTS[kind][word] in str(caught.value)


def test_names_of_classes_are_understood():
    for kind, word in (
        ("learner", "SVR"),
        ("learner", "KernelRidge"),
        ("kernel", "RBF"),
        ("kernel", "RationalQuadratic"),
    ):
        assert registry.get(kind, word) is registry.get(kind, registry.get(kind, word).name)


def test_grids_of_pipelines_are_understood(table):
    options = {"kernel": "rbf", "learner": "svc", "folds": 3, "extend": False}
    words = kernsel.select(*table, param_grid={"svc__C": [1.0, 10.0], "svc__gamma": [0.1]}, **options)
    own = kernsel.select(*table, grid={"C": [1.0, 10.0], "gamma": [0.1]}, **options)
    np.testing.assert_array_equal(words.outputs, own.outputs)
    with pytest.raises(OptionError, match="grid: svc__C, C name one parameter twice"):
        kernsel.select(*table, grid={"svc__C": [1.0], "C": [10.0]}, **options)
    with pytest.raises(OptionError, match="grid: kernels are given by kernel"):
        kernsel.select(*table, grid={"kernel": ["rbf", "poly"]}, **options)


def test_estimators_answer_words_that_they_lack():
    for name, message in (
        ("param_grid", "it is called 'grid' here"),
        ("n_jobs", "NUMBA_NUM_THREADS"),
        ("C", "the regularisation is lambda"),
    ):
        with pytest.raises(OptionError, match=f"KernelClassifier has no option '{name}': .*{message}"):
            kernsel.KernelClassifier(**{name: 1})


def test_the_command_answers_words_of_python(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("a,y\n1,2\n")
    for words, message in (
        (["--cv", "5"], "No such option: --cv"),
        (["--scoring", "f1"], "it is --select-by here"),
        (["--random-state", "1"], "it is --seed here"),
        (["-C", "1"], "the regularisation is lambda"),
        (["--n-jobs", "2"], "set the environment variable NUMBA_NUM_THREADS"),
        (["--zzz", "2"], "select --help says what there is"),
    ):
        assert message in run("select", file, *words, code=2).stderr
