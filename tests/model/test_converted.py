"""A model as a pipeline of scikit-learn, and what it says of itself."""

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

import kernsel
import tolerances
from kernsel.errors import ModelError

pytestmark = pytest.mark.filterwarnings("ignore::kernsel.errors.SelectionWarning")

LAM = 0.01
FIXED = {"grid": {"lambda": [LAM]}, "extend": False, "folds": 3, "clip": False}
KERNELS = ["gaussian(tau=2)", "laplacian(sigma=3)", "polynomial(degree=3, gamma=0.2, coef0=0.5)", "linear"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = np.column_stack([3 * rng.normal(size=(40, 2)) + 1, np.ones(40), rng.random(40)])
    return X, X[:, 0] - X[:, 3] + 0.1 * rng.normal(size=40) + 5


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_pipeline_is_the_model(table, kernel, standardize):
    X, y = table
    model = kernsel.select(X, y, learner="krr", kernel=kernel, standardize=standardize, **FIXED).model
    pipeline = model.to_sklearn()
    new = np.random.default_rng(1).normal(size=(20, 4))
    largest = np.linalg.eigvalsh(model.kernel(model.rows))[-1]
    atol = tolerances.conditioned(largest, 40 * LAM, 40) * np.abs(model.predict(X)).max()
    np.testing.assert_allclose(pipeline.predict(new), model.predict(new), rtol=0, atol=atol)
    ridge = pipeline[-1].regressor_
    assert type(ridge) is KernelRidge
    assert ridge.alpha == pytest.approx(40 * LAM, rel=1e-14)
    np.testing.assert_allclose(ridge.dual_coef_.ravel(), model.coefficients.ravel(), rtol=0, atol=atol)


def test_several_targets(table):
    X, y = table
    model = kernsel.select(X, np.column_stack([y, y**2]), learner="krr", kernel="gaussian(tau=2)", **FIXED).model
    np.testing.assert_allclose(model.to_sklearn().predict(X), model.predict(X), rtol=1e-9)


def test_outputs_that_are_clipped_are_within_the_range(table):
    X, y = table
    model = kernsel.select(X, y, learner="krr", kernel="linear", **{**FIXED, "clip": True}).model
    new = 10 * np.random.default_rng(1).normal(size=(20, 4))
    low, high = model.limits[:, 0] * model.output_scale[0] + model.output_shift[0]  # near those of y
    found = model.predict(new)
    np.testing.assert_allclose(found, np.clip(model.to_sklearn().predict(new), low, high), rtol=1e-9)
    assert {found.min(), found.max()} == {low, high}


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"learner": "svr"}, r"its learner is svr; its parameters .*gamma=0.25, C=1.25, for SVR"),
        ({"learner": "lssvm"}, r"its learner is lssvm; .*alpha=0.4, for KernelRidge has no bias"),
        ({"kernel": "matern32(ell=2)"}, r"its kernel is matern32\(ell=2\); .*alpha=0.4"),
        ({"kernel": "gaussian(tau=2) + linear"}, "its kernel is gaussian"),
        ({"rank": 10}, "it keeps 10 rows or landmarks of 40"),
        ({"weights": 1.0 + np.arange(40)}, r"its rows have weights, .*: gamma=0.25, for KernelRidge"),
    ],
)
def test_models_that_scikit_learn_does_not_have(table, options, match):
    model = kernsel.select(*table, **{"learner": "krr", "kernel": "gaussian(tau=2)", **FIXED, **options}).model
    with pytest.raises(ModelError, match=match):
        model.to_sklearn()


def test_classes_text_and_sparse_rows_have_none(table):
    import pandas as pd
    from scipy import sparse

    X, y = table
    fixed = {"learner": "krr", "kernel": "gaussian(tau=2)", "grid": {"lambda": [LAM]}, "extend": False, "folds": 3}
    with pytest.raises(ModelError, match="KernelRidge has no classes"):
        kernsel.select(X, y > 5, **fixed).model.to_sklearn()
    frame = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 1, "u", "v")})
    with pytest.raises(ModelError, match="columns of text"):
        kernsel.select(frame, y, **fixed).model.to_sklearn()
    with pytest.raises(ModelError, match="its rows are sparse"):
        kernsel.select(sparse.eye_array(40).tocsr(), y, **fixed).model.to_sklearn()


def test_a_model_says_what_it_is_in_three_lines(table):
    X, y = table
    model = kernsel.select(X, y, learner="krr", kernel="gaussian(tau=2)", **FIXED).model
    assert repr(model).splitlines() == [
        "<Model: krr on gaussian(tau=2), lambda = 0.01",
        "  for regression of 'y' by 3 features, fitted on 40 rows",
        "  keeps 40 rows, and what prediction intervals take>",
    ]
    classes = kernsel.select(X, np.round(y) % 3, task="classification", kernel="linear", folds=3).model
    assert "for 3 classes of 'y'" in repr(classes)
    assert len(repr(classes).splitlines()) == 3
