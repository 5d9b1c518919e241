"""Costs of a selection in blocks of rows: what is counted is what is held, and how stages grow."""

import json

import numpy as np
import pytest

import tables
from commandline import run
from kernsel.folds.partition import Partition
from kernsel.kernels import Gaussian
from kernsel.learners import Krr
from kernsel.numerics.blocks import costs
from kernsel.numerics.whole.costs import Rates
from kernsel.representation.ranks import ROOM
from kernsel.representation.stream import segments_of

RATES = Rates(1e11, 5e10, 2e8, 1e10)
SIZES = costs.Sizes(rows=10**6, features=20, outputs=1, rank=500, folds=10, kernels=3, lambdas=16)


def seconds(sizes, workers=1):
    return {stage.work.name: stage.seconds(RATES, workers) for stage in costs.stages(sizes, workers)}


def test_the_sums_that_are_counted_are_those_that_are_held():
    rows: Partition = tables.make_partition(0, (30, 30, 30), outputs=1)
    path = tables.path_on(rows, Krr(), [0.1], 1.0, tables.in_blocks(8))
    held = path.representation.stream.sums.products.nbytes
    sizes = costs.Sizes(rows.n, 2, 1, path.representation.rank, 3, 1, 1)
    assert len(segments_of(rows, ROOM.runs)) - 1 <= sizes.segments
    products = next(stage for stage in costs.stages(sizes) if stage.work.name == "products")
    assert held <= products.memory
    assert isinstance(path.problem.kernel, Gaussian)


@pytest.mark.parametrize(("name", "least"), [("products", 9.0), ("held out", 9.9), ("refit", 9.0)])
def test_stages_over_rows_grow_with_rows_and_shrink_with_workers(name, least):
    one, ten = seconds(SIZES)[name], seconds(SIZES._replace(rows=10**7))[name]
    assert least <= ten / one <= 10
    shared = seconds(SIZES._replace(rows=10**7), workers=10)
    sent = 3 * 4 * 8 * SIZES.segments * 500**2 / costs.NETWORK if name == "products" else 0.0
    assert shared[name] == pytest.approx(ten / 10 + sent)


def test_what_one_worker_does_takes_as_long_on_many():
    for name in ("landmarks", "solutions"):
        assert seconds(SIZES)[name] == seconds(SIZES, workers=8)[name]
        assert seconds(SIZES._replace(rows=10**8))[name] == seconds(SIZES)[name]


def test_operations_are_those_of_dense_algebra():
    """The products of features are most of it: a row and a pair of features take one, as G is symmetric, in 2 flops."""
    sizes = SIZES._replace(rank=2000, rows=10**7, kernels=1)
    products = costs.stages(sizes)[1]
    symmetric = sizes.rows * sizes.rank**2
    assert symmetric < products.flops < 1.25 * symmetric


@pytest.mark.compiled
def test_the_command(tmp_path):
    np.save(tmp_path / "t.npy", np.random.default_rng(0).normal(size=(50, 4)))
    shown = run("estimate", tmp_path / "t.npy", "--rank", 500, "--rows", "1e6").stdout
    assert "1000000 rows, 3 features, rank 500, 10 folds, 3 kernels x 16 lambda" in shown
    document = json.loads(run("estimate", tmp_path / "t.npy", "--rank", 500, "--rows", "1e6", "--json").stdout)
    names = [stage["name"] for stage in document["stages"]]
    assert names == ["start", "read", "landmarks", "products", "solutions", "held out", "refit"]
    expected = costs.stages(costs.Sizes(10**6, 3, 1, 500, 10, 3, 16))
    assert [stage["flops"] for stage in document["stages"][2:]] == [stage.flops for stage in expected]
    assert document["seconds"] == pytest.approx(sum(stage["seconds"] for stage in document["stages"]))
    assert "more than the 50 rows" in run("estimate", tmp_path / "t.npy", "--rank", 500, code=2).stderr
