"""Kernels given by their values: a Python function, and a Gram matrix; both are the kernel that they are of."""

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

import kernsel
from kernsel import KernelClassifier, KernelRegressor
from kernsel.errors import DataError, IncompatibleError, ModelError, OptionError
from kernsel.kernels import Function, Gaussian, Linear, Precomputed, Statistics, from_spec
from kernsel.model.model import Model

pytestmark = pytest.mark.filterwarnings("ignore::kernsel.errors.SelectionWarning")

K = Gaussian(2.0)
FEW = {"folds": 5, "standardize": False}
SAME = {"rtol": 0, "atol": 1e-10}  # the same sums but for the order of some


def mine(X, Z):
    return np.exp(-0.25 * ((X[:, None] - Z[None]) ** 2).sum(axis=-1))


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    return X, np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=90), rng.normal(size=(20, 3))


# A function


def test_a_function_is_a_kernel(table):
    X, _, new = table
    kernel = Function(mine)
    assert (kernel.name, str(kernel), kernel.free, kernel.parameters) == ("mine", "mine", (), {})
    np.testing.assert_allclose(kernel(X), K(X), **SAME)
    np.testing.assert_allclose(kernel(X, new), K(X, new), **SAME)
    np.testing.assert_allclose(kernel.diag(X), np.ones(90), **SAME)
    assert np.array_equal(kernel(X), kernel(X).T)
    np.testing.assert_allclose((2 * kernel * Linear() + 1)(X, new), 2 * K(X, new) * (X @ new.T) + 1, **SAME)


@pytest.mark.parametrize("options", [{"learner": "krr"}, {"learner": "svr"}, {"learner": "krr", "rank": 30}])
def test_a_selection_with_a_function_is_that_with_the_kernel(table, options):
    X, y, new = table
    found = kernsel.select(X, y, kernel=mine, **FEW, **options)
    same = kernsel.select(X, y, kernel=K, **FEW, **options)
    assert found.best.lam == same.best.lam
    assert found.best.value == pytest.approx(same.best.value, abs=1e-10)
    np.testing.assert_allclose(found.model.predict(new), same.model.predict(new), **SAME)
    assert found.to_dict()["best"]["kernel"] == {"kernel": "function", "function": "mine"}


def test_a_class_that_is_called_works_as_a_function(table):
    from sklearn.metrics.pairwise import rbf_kernel

    X, y, _ = table
    assert kernsel.select(X, y, kernel=rbf_kernel, **FEW).best.kernel.name == "rbf_kernel"


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda X, Z: 1.0, r"must return an array of shape \(\d+, \d+\), not \(\)"),
        (lambda X, Z: np.full((len(X), len(Z)), np.nan), "values that are not finite"),
        (lambda X, Z: np.outer(X[:, 0], Z[:, 1]), "is not symmetric"),
        (lambda X: X, r"can't be called as f\(X, Z\)"),
        (lambda X, Z: X.__imul__(2.0) @ Z.T, "read-only"),
        (lambda X, Z: [["a"] * len(Z)] * len(X), "or returns no numbers"),
        (Gaussian, "a kernel must be a name such as 'gaussian', a Kernel, or a function"),
    ],
)
def test_functions_that_are_no_kernels_are_refused(table, function, message):
    X, y, _ = table
    with pytest.raises(OptionError, match=message):
        kernsel.select(X, y, kernel=function, **FEW)


def test_functions_without_a_hash_are_refused():
    class Unhashable:
        __hash__ = None

        def __call__(self, X, Z):
            return X @ Z.T

    with pytest.raises(OptionError, match="lambda X, Z"):
        Function(Unhashable())


def test_a_file_holds_no_function(table, tmp_path):
    X, y, _ = table
    kernsel.select(X, y, kernel=mine, **FEW).model.save(tmp_path / "model")
    with pytest.raises(ModelError, match="the Python function 'mine', which no file holds"):
        Model.load(tmp_path / "model")


# A Gram matrix


@pytest.mark.parametrize(
    "options",
    [
        {"learner": "krr"},
        {"learner": "svr"},
        {"learner": "krr", "rank": 30},
        {"learner": "krr", "rank": 30, "landmarks": "leverage"},
        {"learner": "krr", "rank": "whole"},
        {"learner": "krr", "folds": "time:4"},
        {"learner": "krr", "criterion": "loo", "refine": "compass"},
    ],
    ids=str,
)
def test_a_selection_with_the_gram_matrix_is_that_with_the_kernel(table, options):
    X, y, new = table
    options = {**FEW, **options}
    found = kernsel.select(K(X), y, kernel="precomputed", **options)
    same = kernsel.select(X, y, kernel=K, **options)
    assert found.best.lam == same.best.lam
    assert found.best.value == pytest.approx(same.best.value, abs=1e-10)
    np.testing.assert_allclose(found.model.predict(K(new, X)), same.model.predict(new), **SAME)
    np.testing.assert_allclose(
        found.model.predict_interval(K(new, X)), same.model.predict_interval(new), rtol=0, atol=1e-9
    )


def test_classes_weights_and_rows_that_are_left_out(table):
    X, y, new = table
    weights = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    options = {**FEW, "weights": weights, "learner": "svm"}
    found = kernsel.select(K(X), y > 0, kernel="precomputed", **options)
    same = kernsel.select(X, y > 0, kernel=K, **options)
    assert found.best.lam == same.best.lam
    np.testing.assert_allclose(found.model.predict_proba(K(new, X)), same.model.predict_proba(new), **SAME)


def test_a_model_is_kept_in_a_file(table, tmp_path):
    X, y, new = table
    model = kernsel.select(K(X), y, kernel=Precomputed(), **FEW).model
    model.save(tmp_path / "model")
    loaded = Model.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(K(new, X)), model.predict(K(new, X)))
    assert "by 90 features" in repr(loaded)
    with pytest.raises(DataError, match="X has 3 columns where the model has 90"):
        loaded.predict(new)
    with pytest.raises(ModelError, match="doesn't know how far new rows are"):
        loaded.beyond(K(new, X))
    pytest.importorskip("onnx")
    with pytest.raises(ModelError, match="no graph in ONNX"):
        loaded.to_onnx()


def test_nested_estimates_take_rows_and_columns(table):
    X, y, _ = table
    options = {"outer": 3, "learner": "krr", **FEW}
    found = kernsel.nested(K(X), y, kernel="precomputed", **options)
    assert found.error == pytest.approx(kernsel.nested(X, y, kernel=K, **options).error, abs=1e-10)


def test_scikit_learn_slices_rows_and_columns(table):
    X, y, new = table
    estimator = KernelRegressor(kernel="precomputed", learner="krr")
    assert estimator.__sklearn_tags__().input_tags.pairwise
    assert not KernelClassifier(kernel="gaussian").__sklearn_tags__().input_tags.pairwise
    plain = KernelRegressor(kernel=K, learner="krr", standardize=False)
    np.testing.assert_allclose(cross_val_score(estimator, K(X), y, cv=3), cross_val_score(plain, X, y, cv=3), **SAME)
    np.testing.assert_allclose(estimator.fit(K(X), y).predict(K(new, X)), plain.fit(X, y).predict(new), **SAME)


def test_an_indefinite_matrix_is_said(table):
    X, y, _ = table
    S = np.tanh(X @ X.T - 1.0)
    for given, kernel in ((S, "precomputed"), (X, lambda X, Z: np.tanh(X @ Z.T - 1.0))):
        found = kernsel.select(given, y, kernel=kernel, learner="krr", **FEW)
        (text,) = (each for each in found.warnings if getattr(each, "code", "") == "indefinite-kernel")
        assert "isn't positive semidefinite" in text
    sound = kernsel.select(Linear()(X), y, kernel="precomputed", learner="krr", **FEW)  # of rank 3: rounding is below 0
    assert not [each for each in sound.warnings if getattr(each, "code", "") == "indefinite-kernel"]


def test_the_fit_of_an_indefinite_matrix_is_that_of_its_positive_part(table):
    X, y, _ = table
    S = np.tanh(X @ X.T - 1.0)
    values, U = np.linalg.eigh(S)
    positive = (U * np.maximum(values, 0.0)) @ U.T
    one = {"learner": "krr", "grid": {"lambda": [0.1]}, "extend": False, **FEW}
    a, b = (kernsel.select(each, y, kernel="precomputed", **one).model for each in (S, positive))
    np.testing.assert_allclose(a.predict(S), b.predict(positive), rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    ("change", "options", "error", "message"),
    [
        (lambda G: G[:, :10], {}, DataError, r"square Gram matrix, .*, not \(90, 10\)"),
        (lambda G: G + np.triu(np.ones_like(G)), {}, OptionError, "X is not symmetric: .* by up to 1"),
        (lambda G: G * np.nan, {}, DataError, "not finite"),
        (lambda G: [["a"]], {}, DataError, "must be numbers"),
        (lambda G: G, {"drop": [0]}, OptionError, "no columns to choose"),
        (lambda G: G, {"rank": 20, "landmarks": "kmeans"}, IncompatibleError, "landmarks kmeans are centres"),
        (lambda G: G, {"kernel": ["precomputed", "gaussian"]}, OptionError, "stands alone"),
        (lambda G: G, {"kernel": "precomputed + linear"}, OptionError, "stands alone"),
    ],
)
def test_what_is_no_gram_matrix_is_refused(table, change, options, error, message):
    X, y, _ = table
    with pytest.raises(error, match=message):
        kernsel.select(change(K(X)), y, **{"kernel": "precomputed", **options})


def test_values_that_nobody_knows_are_refused(table):
    X, _, new = table
    rows = np.column_stack([np.arange(90), K(X)])
    unknown = np.column_stack([np.full(20, -1), K(new, X)])
    kernel = Precomputed()
    np.testing.assert_array_equal(kernel(unknown, rows), K(new, X))
    np.testing.assert_array_equal(kernel(rows, unknown), K(new, X).T)
    np.testing.assert_array_equal(kernel(rows[5:9], rows[7:]), K(X)[5:9, 7:])
    np.testing.assert_array_equal(kernel.diag(rows), np.ones(90))
    for call in (lambda: kernel(unknown), lambda: kernel.diag(unknown), lambda: kernel(X), lambda: kernel(rows + 0.5)):
        with pytest.raises(OptionError, match="not with each other or with themselves"):
            call()
    assert from_spec(kernel.spec()) == kernel
    assert kernel.evaluate(Statistics(rows)).flags.c_contiguous
