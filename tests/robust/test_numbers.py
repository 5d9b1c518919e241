"""Numbers out of range: what overflows has failed with its reason, and never wins; documents stay JSON."""

from __future__ import annotations

import json
import math
import warnings

import numpy as np
import pandas as pd
import pytest

import kernsel
from kernsel.errors import DataError, SelectionError
from kernsel.text import to_json

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
y = X[:, 0] + 0.1 * RNG.normal(size=40)
NOT_FINITE = "the kernel is not finite at every row"


def select(X, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kernsel.errors.SelectionWarning)
        return kernsel.select(X, y, folds=5, **options)


@pytest.mark.parametrize("learner", ["krr", "svr"])
@pytest.mark.parametrize("scale", [1e52, 1e110])
def test_a_kernel_that_overflows_never_wins(scale, learner):
    with pytest.raises(SelectionError, match=NOT_FINITE):
        select(X * scale, y, kernel="polynomial(degree=3)", learner=learner, standardize=False)
    both = select(X * scale, y, kernel=["polynomial(degree=3)", "linear"], learner=learner, standardize=False)
    assert both.best.kernel.name == "linear"
    assert np.isfinite(both.model.predict(X * scale)).all()
    assert {c.failed for c in both.candidates if c.kernel.name == "polynomial"} == {NOT_FINITE}
    assert all(math.isfinite(c.lam) for c in both.candidates)
    json.loads(both.to_json())


@pytest.mark.parametrize("rank", ["full", 20, "whole"])
def test_a_kernel_that_overflows_at_any_rank(rank):
    with pytest.raises(SelectionError, match=NOT_FINITE):
        select(X, y, kernel="polynomial(degree=3, gamma=1e200)", rank=rank)


def test_a_sum_that_overflows_where_its_mean_does_not():
    large, plain = (select(X, y, kernel=f"{factor}*gaussian(tau=2)", extend=False) for factor in ("1e300", "1.0"))
    assert large.best.lam == pytest.approx(1e300 * plain.best.lam)
    np.testing.assert_allclose(large.model.predict(X), plain.model.predict(X))


@pytest.mark.parametrize("method", ["compass", "simplex", "gradient"])
@pytest.mark.parametrize("learner", ["krr", "svr"])
def test_a_refinement_over_all_numbers_there_are(method, learner):
    learner = "krr" if method == "gradient" else learner
    grid = {"lambda": [1e-300, 1.0, 1e300], "tau": [1e-300, 1.0, 1e300]}
    found = select(X, y, kernel="gaussian", learner=learner, refine=method, budget=20, grid=grid)
    assert 1e-300 <= found.best.lam <= 1e300
    json.loads(found.to_json())


def test_labels_beyond_the_largest_signed_number():
    labels = np.array([2**63 + 5, 2**63 + 6, 7], dtype=np.uint64)
    given = labels[np.arange(40) % 3]
    for target in (given, pd.Series(given), pd.Series(given).astype("UInt64")):
        found = select(X, target, kernel="gaussian(tau=2)")
        assert found.model.labels == [7, 2**63 + 5, 2**63 + 6]
        assert set(found.model.predict(X).tolist()) <= set(labels.tolist())


def test_a_target_whose_differences_are_lost_in_rounding():
    target = np.array([2**60 + i % 4 for i in range(40)])
    for each in (target, pd.Series(target)):
        with pytest.raises(DataError, match="differ by less than is left of numbers as large as 1.15292e"):
            select(X, each, kernel="gaussian", task="regression")
    assert len(select(X, target, kernel="gaussian(tau=2)").model.labels) == 4


def test_documents_without_infinities():
    document = {"a": [math.inf, 1.5], "b": math.nan, "c": np.float64(2), "d": np.int64(3), "e": np.float32(math.inf)}
    assert json.loads(to_json(document)) == {"a": [None, 1.5], "b": None, "c": 2.0, "d": 3, "e": None}
    assert json.loads(to_json({"a": 1.0})) == {"a": 1.0}
    found = select(X, y, kernel="gaussian(tau=1e-320)", grid={"lambda": [1e-300]})
    assert json.loads(found.to_json())["best"]["lambda"] == 1e-300
