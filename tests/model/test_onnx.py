"""A model as a graph of ONNX: the runtime gives what the model does."""

import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import kernsel
from kernsel.errors import ModelError, OptionError
from kernsel.heldout.calibration import Calibration, Isotonic
from kernsel.kernels import Pairwise

pytestmark = pytest.mark.filterwarnings("ignore::kernsel.errors.SelectionWarning")

ATOL = 1e-7
"""On outputs of the size 1: squared distances are off by EPS times norms in the runtime, and lengths by its root."""

FEW = {"folds": 3, "extend": False, "search": "grid", "grid": "coarse"}
KERNELS = [
    *("gaussian", "laplacian", "exponential", "matern32", "matern52", "rational-quadratic", "linear", "polynomial"),
    *("ard(theta=(1, 0.1, 0))", "ard(theta=(1, 0.1, 0), profile=matern52)", "ard-laplacian(theta=(1, 0.2, 0.1))"),
    *("ard(theta=(1, 0.1, 1), profile=rational-quadratic)", "ard-polynomial(theta=(1, 0.2, 0.1), degree=2)"),
    *("gaussian + 0.5*linear*laplacian", "gaussian[0, 2] + matern32[1]", "constant(value=2)*linear + 1"),
    "metric(L=(0.5, 0.1, 0.2, 0.4, 0.3, -0.2), rank=2, profile=matern32)",
    "ard(theta=(1, 0.1, 0, 2, 1), logged=(0, 2), logs=(2, 0.05, 0.3, 0.8, 1.5, 0.2, 0.1, 1.1), profile=matern32)",
    "ard(theta=(1, 0.1, 0, 2, 1), ranked=(0,), quantiles=(-9, -1, 0, 9), logged=(2,), logs=(1.5, 0.2, 0.1, 1.1))",
    "ard(theta=(1, 0.1, 0, 2), ranked=(2,), quantiles=(-9, -1, -1, 0, 4, 9)) + 0.5*ard-laplacian(theta=(1, 0.2, 1))",
]


def run(model, **inputs):
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(model.to_onnx().SerializeToString())
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, inputs), strict=True))


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(60, 2)), np.ones(60), 5 * rng.normal(size=60)])
    return X, X[:, 0] - X[:, 3] / 5 + 0.1 * rng.normal(size=60)


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel(table, kernel):
    X, y = table
    model = kernsel.select(X, y, kernel=kernel, **FEW).model
    new = np.vstack([X, 3 * np.random.default_rng(1).normal(size=(20, 4))])  # the rows themselves: distances of 0
    np.testing.assert_allclose(run(model, X=new)["predictions"][:, 0], model.predict(new), rtol=0, atol=ATOL)


def test_every_built_in_kernel_is_tested():
    tested = {name for text in KERNELS for name in kernsel.registry.names("kernel") if name in text}
    assert tested == {claim.name for claim in kernsel.registry.claims("kernel") if claim.builtin}


@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
@pytest.mark.parametrize(
    "labels", [["b", "a"], [1, 5], [0.5, 1.5], [True, False], ["x", "y", "z"], [3, 1, 2]], ids=lambda each: str(each)
)
def test_classes(table, labels, calibration):
    X, y = table
    codes = np.digitize(y, [-0.5, 0.5] if len(labels) == 3 else [0.0])
    model = kernsel.select(
        X, np.array(labels)[codes], task="classification", kernel="gaussian", calibration=calibration, **FEW
    ).model
    new = np.vstack([X, 3 * np.random.default_rng(1).normal(size=(20, 4))])
    found = run(model, X=new)
    np.testing.assert_array_equal(found["labels"], model.predict(new))
    np.testing.assert_allclose(np.squeeze(found["decisions"]), model.decision(new), rtol=0, atol=ATOL)
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(new), rtol=0, atol=10 * ATOL)


def test_curves_that_say_nothing(table):
    X, y = table
    model = kernsel.select(X, np.digitize(y, [-0.5, 0.5]), kernel="gaussian", **FEW).model
    flat = replace(model, calibration=Calibration("isotonic", (Isotonic((0.0,), (0.0,)),) * 3))
    np.testing.assert_allclose(run(flat, X=X)["probabilities"], flat.predict_proba(X))


def test_several_targets_text_and_sparse_rows(table):
    X, y = table
    both = kernsel.select(X, np.column_stack([y, 100 * y**2]), kernel="gaussian", **FEW).model
    np.testing.assert_allclose(run(both, X=X)["predictions"], both.predict(X), rtol=0, atol=100 * ATOL)
    frame = pd.DataFrame({"a": X[:, 0], "c": np.where(X[:, 1] > 0, "u", "v"), "b": X[:, 3]})
    text = kernsel.select(frame, y, kernel="gaussian", **FEW).model
    frame.loc[0, "c"] = "never seen"
    inputs = {"X": frame[["a", "b"]].to_numpy(), "c": frame[["c"]].to_numpy(dtype=object)}
    np.testing.assert_allclose(run(text, **inputs)["predictions"][:, 0], text.predict(frame), rtol=0, atol=ATOL)
    rows = np.where(np.abs(X) > 1.5, X, 0.0)
    thin = kernsel.select(sparse.csr_array(rows), y, kernel="gaussian", **FEW).model
    np.testing.assert_allclose(run(thin, X=rows)["predictions"][:, 0], thin.predict(rows), rtol=0, atol=ATOL)


def test_gaps_are_filled_in_by_means_where_the_table_had_none(table):
    X, y = table
    model = kernsel.select(X, y, kernel="gaussian", **FEW).model
    gaps = np.where(np.arange(X.size).reshape(X.shape) % 5 == 0, np.nan, X)
    np.testing.assert_allclose(run(model, X=gaps)["predictions"][:, 0], model.predict(gaps), rtol=0, atol=ATOL)
    with pytest.raises(ModelError, match="given the others of a row, has no graph in ONNX: select with missing='drop'"):
        kernsel.select(gaps, y, kernel="gaussian", **FEW).model.to_onnx()


def test_models_without_a_graph(table, monkeypatch):
    pytest.importorskip("onnx")
    X, y = table

    class Own(Pairwise):
        name, statistic = "own", "sqdist"

        def profile(self, S):
            return np.exp(-S)

    model = kernsel.select(X, y, kernel="gaussian", **FEW).model
    with pytest.raises(ModelError, match="kernel 'own' has no graph"):
        replace(model, kernel=Own()).to_onnx()
    with pytest.raises(ModelError, match=r"the labels \['a', 1\] have no type"):
        replace(model, labels=["a", 1]).to_onnx()
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(OptionError, match=r"pip install 'kernsel\[onnx\]'"):
        model.to_onnx()
