"""Sparse data from the table to the model: what dense data give, given the same scaling, in much less memory."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import dataclass
from io import StringIO
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csc_array, csr_array, csr_matrix, eye_array, random_array
from sklearn.datasets import dump_svmlight_file

import commandline
import kernsel
import tables
import tolerances
from kernsel.data import from_arrays, prepare, read_table
from kernsel.data.columns import MAX_DENSE_BYTES
from kernsel.data.tables import SparseTable
from kernsel.errors import DataError
from kernsel.kernels import Kernel
from kernsel.model.model import load
from kernsel.numerics.points import is_sparse
from kernsel.selection.carry_out import select_dataset

N, D = 120, 30
GRID = {"tau": [5.0, 20.0, 80.0], "lambda": [1e-3, 1e-2, 1e-1]}


@pytest.fixture(scope="module")
def rows():
    return csr_array(random_array((N, D), density=0.15, rng=0))


@pytest.fixture(scope="module")
def target(rows):
    rng = np.random.default_rng(1)
    return np.asarray(rows @ rng.normal(size=D) + 0.2 * rng.normal(size=N))


def select(X, y, **options):
    dataset = from_arrays(X, y, standardize=options.pop("standardize", True), **options.pop("sample", {}))
    return select_dataset(dataset, **({"grid": GRID, "extend": False, "verify": 2} | options))


def check_same(ours, dense, X):
    """Check two selections, of which the second one was made on dense rows."""
    assert is_sparse(ours.model.rows)
    assert not is_sparse(dense.model.rows)
    assert ours.best.kernel == dense.best.kernel
    for one, other in zip(ours.candidates, dense.candidates, strict=True):
        assert (one.kernel, one.lam) == (other.kernel, other.lam)
        assert one.score == pytest.approx(other.score, abs=tolerances.SPARSE)
    np.testing.assert_allclose(ours.outputs, dense.outputs, atol=tolerances.SPARSE)
    A = X.toarray()
    for model in (ours.model, dense.model):
        for table in (X, csc_array(X), csr_matrix(X), A):
            np.testing.assert_allclose(model.decision(table), dense.model.decision(A), atol=10 * tolerances.SPARSE)


CASES = {
    "in full": {},
    "low rank": {"rank": 25},
    "halving": {"search": "halving", "rank": 100},
    "svr": {"learner": "svr"},
    "laplacian": {"kernel": "laplacian", "grid": {"sigma": [3.0, 12.0], "lambda": GRID["lambda"]}},
    "a part of the features": {"kernel": "gaussian[3, 1, 8, 20]"},
    "stability": {"criterion": "rks"},
    "distance of spectra": {"criterion": "ep"},
    "weights and groups": {
        "sample": {"weights": np.arange(N) % 4, "groups": np.arange(N) // 3},
        "rank": 25,
    },
}


@pytest.mark.parametrize("case", CASES)
def test_kernels_of_distances_select_what_they_do_on_standardised_dense_rows(case, rows, target):
    options = CASES[case]
    check_same(select(rows, target, **options), select(rows.toarray(), target, **options), rows)


UNSCALED = {
    "linear": {"kernel": "linear", "grid": {"lambda": GRID["lambda"]}},
    "polynomial": {"kernel": "polynomial(degree=2, gamma=0.1)", "grid": {"lambda": GRID["lambda"]}},
    "sum": {"kernel": "gaussian + 0.5*linear", "rank": 25, "grid": {"1.tau": [5.0, 20.0], "lambda": GRID["lambda"]}},
    "relevances": {"kernel": f"ard(theta=({', '.join(['0.1', '0'] * (D // 2))}))", "grid": {"lambda": GRID["lambda"]}},
}


@pytest.mark.parametrize("case", UNSCALED)
def test_unscaled_rows_give_the_same_with_every_kernel(case, rows, target):
    options = UNSCALED[case] | {"standardize": False}
    check_same(select(rows, target, **options), select(rows.toarray(), target, **options), rows)


def test_streamed_features_are_those_of_dense_rows(rows, target):
    ours, dense = (select(X, target, rank=tables.in_blocks(20), search="grid") for X in (rows, rows.toarray()))
    assert "in blocks of rows" in ours.data["representation"]
    check_same(ours, dense, rows)


def test_classes_and_their_probabilities(rows, target):
    y = np.where(target > np.median(target), "more", "less")
    ours, dense = (select(X, y, learner="svm") for X in (rows, rows.toarray()))
    check_same(ours, dense, rows)
    np.testing.assert_allclose(ours.model.predict_proba(rows), dense.model.predict_proba(rows.toarray()), atol=1e-8)


def test_intervals(rows, target):
    ours, dense = (select(X, target).model.predict_interval(X, 0.8) for X in (rows, rows.toarray()))
    np.testing.assert_allclose(ours, dense, atol=1e-8)


def test_the_nested_estimate_is_that_of_dense_rows(rows, target):
    options = {"grid": GRID, "extend": False, "outer": 3, "folds": 3, "verify": 1}
    ours, dense = (kernsel.nested(X, target, **options) for X in (rows, rows.toarray()))
    assert ours.error == pytest.approx(dense.error, rel=1e-8)


def test_nothing_is_made_dense_and_memory_follows_the_nonzeros(rows, target):
    select(rows, target, rank=25).model.predict(rows)  # what has to be compiled takes memory, too
    n, d, words = 300, 20_000, 8
    rng = np.random.default_rng(0)
    entries = rng.random(n * words), (np.repeat(np.arange(n), words), rng.integers(0, d, n * words))
    X = csr_array(entries, shape=(n, d))
    y = X @ rng.normal(size=d)
    tracemalloc.start()
    try:
        result = select(X, y, grid={"tau": [1.0, 10.0], "lambda": [0.01]}, standardize=False, rank=40)
        result.model.predict(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * n * d / 4
    assert result.model.rows.shape == (40, d)


def test_a_model_with_sparse_rows_survives_its_file(rows, target, tmp_path):
    model = select(rows, target, rank=25).model
    model.save(tmp_path / "m.npz")
    again = load(tmp_path / "m.npz")
    assert is_sparse(again.rows)
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))


def test_sparse_columns_are_scaled_and_not_centred(rows, target):
    rows = csr_array(rows * (np.arange(D) != 4))
    data = from_arrays(rows, target, standardize=True)
    A = rows.toarray()
    kept = np.flatnonzero(A.std(axis=0) > 0)
    assert is_sparse(data.X)
    np.testing.assert_allclose(data.X.toarray(), A[:, kept] / A[:, kept].std(axis=0), rtol=1e-12)
    assert "column 'x4' is constant and left out" in data.notes
    assert any("divided by their standard deviation but not centred" in note for note in data.notes)
    bare = from_arrays(rows, target)
    assert np.array_equal(bare.X.toarray(), A)
    assert bare.encoder.features == [f"x{j}" for j in range(D)]


def test_full_matrices_are_worked_on_dense_and_scaled_the_same_way():
    A = 3 + np.random.default_rng(0).normal(size=(40, 5))
    data = from_arrays(csr_array(A), np.arange(40) / 7, standardize=True)
    np.testing.assert_allclose(data.X, A / A.std(axis=0), rtol=1e-12)


def test_frames_of_sparse_columns(rows, target):
    frame = pd.DataFrame.sparse.from_spmatrix(rows, columns=[f"c{j}" for j in range(D)])
    data = prepare(frame.assign(y=target))
    assert is_sparse(data.X)
    np.testing.assert_array_equal(data.X.toarray(), from_arrays(rows, target, standardize=True).X.toarray())
    np.testing.assert_array_equal(data.encoder.transform(frame[frame.columns[::-1]]).toarray(), data.X.toarray())
    dummies = pd.get_dummies(pd.Series(list("abcdefghij") * 4), sparse=True)
    assert np.array_equal(from_arrays(dummies, np.arange(40) / 7).X.toarray(), dummies.to_numpy())
    mixed = from_arrays(frame.assign(more=target), target, standardize=True)
    assert not is_sparse(mixed.X)
    filled = frame.astype(pd.SparseDtype(float, 1.0))
    assert not is_sparse(from_arrays(filled, target).X)


BAD = {
    "missing": (np.nan, "column 'x2': 1 value is missing of 4 (first in row 3)"),
    "infinite": (-np.inf, "column 'x2' has 1 infinite value (first in row 3)"),
    "large": (1e200, "column 'x2' holds 1e+200 in row 3: its square overflows"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_values_are_named(case):
    value, message = BAD[case]
    A = np.eye(4)
    good = from_arrays(csr_array(A), np.arange(4) / 7)
    A[2, 2] = value
    for use in (lambda X: from_arrays(X, np.arange(4) / 7), good.encoder.transform):
        with pytest.raises(DataError) as caught:
            use(csr_array(A))
        assert message in str(caught.value)


def test_matrices_that_do_not_fit():
    with pytest.raises(DataError, match="X holds complex numbers"):
        from_arrays(csr_array(np.eye(3) * 1j), [1, 2, 3])
    with pytest.raises(DataError, match="X is sparse and has 2000000000 columns, which are too many to name each"):
        from_arrays(csr_array((3, 2_000_000_000)), [1, 2, 3])
    with pytest.raises(DataError, match="no column is left to learn from"):
        from_arrays(csr_array((3, 5)), [1, 2, 3], standardize=True)
    model = from_arrays(csr_array(np.eye(4)), [1, 2, 3, 4])
    with pytest.raises(DataError, match="X has 3 columns where the model has 4"):
        model.encoder.transform(csr_array(np.eye(3)))


@dataclass(frozen=True)
class Own(Kernel):
    """A plugin's kernel that works on dense rows: ``<x, z>``."""

    name: ClassVar[str] = "own"

    def evaluate(self, stats):
        return stats.X @ (stats.X if stats.Z is None else stats.Z).T

    def diag(self, X):
        return np.einsum("ij,ij->i", X, X)


def test_a_kernel_that_takes_no_sparse_rows_gets_dense_ones(rows, target):
    options = {"kernel": Own(), "grid": {"lambda": GRID["lambda"]}}
    ours = select(rows, target, **options)
    assert not is_sparse(ours.model.rows)
    A = rows / rows.toarray().std(axis=0)
    np.testing.assert_allclose(ours.outputs, select(A.toarray(), target, standardize=False, **options).outputs)
    np.testing.assert_allclose(ours.model.predict(rows), ours.model.predict(rows.toarray()))


def test_sparse_rows_that_are_too_many_for_dense_ones_are_refused():
    n = int(np.sqrt(MAX_DENSE_BYTES / 8)) + 1
    data = from_arrays(csr_array(eye_array(n)), np.arange(n) % 7)
    for kernel in (Own(), Own() + kernsel.kernels.Gaussian(1.0)):
        with pytest.raises(
            DataError, match=f"can't take sparse rows, and as a dense matrix of {n} x {n} values X takes"
        ):
            select_dataset(data, kernel=kernel, grid={"lambda": [0.1]})


def test_what_learns_kernels_makes_its_rows_dense(rows, target):
    scaled = rows / rows.toarray().std(axis=0)
    ours = kernsel.learn_relevances(rows, target, polish=1)
    dense = kernsel.learn_relevances(rows.toarray(), target, polish=1)
    np.testing.assert_allclose(ours.relevances, dense.relevances, rtol=1e-3, atol=1e-6)  # ends of descents
    learned, same = (
        kernsel.learn_mkl(X, target, ["gaussian(tau=20)", "laplacian(sigma=9)"], lam=0.1, standardize=False)
        for X in (scaled, scaled.toarray())
    )
    np.testing.assert_allclose(learned.weights, same.weights, rtol=1e-6)


def test_stability_of_sparse_rows(rows):
    for kernel in ("gaussian(tau=20)", "laplacian(sigma=9)"):
        ours, dense = (kernsel.stability(X, kernel).perturbations for X in (rows, rows.toarray()))
        np.testing.assert_allclose(ours, dense, rtol=1e-10)


def test_svmlight_files_stay_sparse(tmp_path, rows, target):
    y = (target > np.median(target)).astype(int)
    path, model = tmp_path / "t.svmlight", tmp_path / "m.npz"
    dump_svmlight_file(rows, y, str(path), zero_based=False)
    table = read_table(path)
    assert isinstance(table, SparseTable)
    options = ("--grid", "tau=5,20", "--grid", "lambda=0.01", "--no-extend", "--folds", "5", "--json")
    found = json.loads(commandline.run("select", path, *options, "--model", model, "--nested", "2").stdout)
    dense = select(rows.toarray(), y, grid={"tau": [5.0, 20.0], "lambda": [0.01]}, folds=5)
    assert found["best"]["error"] == pytest.approx(dense.best.error, abs=tolerances.SPARSE)
    assert found["data"]["labels"] == [0, 1]
    assert is_sparse(load(model).rows)
    predicted = pd.read_csv(StringIO(commandline.run("predict", model, path).stdout))
    np.testing.assert_array_equal(predicted["prediction"], dense.model.predict(rows.toarray()))
    by_column = json.loads(commandline.run("select", path, *options, "--target", "f3", "--weights", "target").stdout)
    assert by_column["data"]["rows"] == y.sum()
    assert commandline.run("select", path, "--target", "f99", code=2).stderr.startswith("kernsel: ")
