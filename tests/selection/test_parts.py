"""Rows in parts: sums by fold against brute force, the same bits on workers of Dask, and one of them lost."""

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

import kernsel
import tolerances
import twins.heldout
from commandline import run
from kernsel.criteria import CV
from kernsel.errors import DataError, OptionError, SelectionError, SelectionWarning
from kernsel.folds.partition import Partition
from kernsel.heldout.errors import Errors
from kernsel.heldout.standard_error import MeanSums, standard_error
from kernsel.kernels import Statistics
from kernsel.search.choice import Rule, choose
from kernsel.selection.cluster import connected, local_client
from kernsel.selection.drivers import InProcess, OnDask, tree
from kernsel.selection.parts import allrows, work
from kernsel.selection.parts import select as spread
from kernsel.selection.parts.encode import find_encoding
from kernsel.selection.plan import Plan

N, PARTS, FOLDS = 600, 5, 4
PLAN = Plan(kernel="gaussian", folds=FOLDS, rank=20, grid={"tau": [1.0, 4.0], "lambda": [1e-3, 1e-2]}, extend=False)


def table(n=N):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"]).assign(c=rng.choice(["u", "v"], n))
    y = np.sin(2.0 * frame["a"]) + frame["b"] ** 2 + (frame["c"] == "u") + 0.1 * rng.normal(size=n)
    return frame, y.rename("y")


def cut(frame, y, weights=None):
    bounds = np.linspace(0, len(frame), PARTS + 1).astype(int)
    pieces = [slice(lo, hi) for lo, hi in pairwise(bounds)]
    s = [None] * PARTS if weights is None else [weights[piece] for piece in pieces]
    return [work.Rows(i, frame[piece], y[piece], s[i]) for i, piece in enumerate(pieces)]


@pytest.fixture
def small(monkeypatch):
    """The sample is a part of the rows."""
    monkeypatch.setattr(spread, "LEAST_SAMPLE", 150)


def refits(parts, selection, plan):
    """Held-out losses and errors of all candidates by brute force, on all rows together."""
    how = find_encoding(InProcess(), parts, plan)
    assert how.encoder.to_json() == selection.model.encoder.to_json()
    coding = how.coding(int(plan.folds), plan.seed)
    encoded = [work.encode_part(part, coding) for part in parts]
    fold = np.concatenate([np.repeat(np.arange(FOLDS), np.diff(each.starts)) for each in encoded])
    order = np.argsort(fold, kind="stable")
    X = np.concatenate([each.X for each in encoded])[order]
    Y = np.concatenate([each.Y for each in encoded], axis=1)[:, order]
    s = np.concatenate([each.s for each in encoded])[order]
    starts = np.searchsorted(fold[order], np.arange(FOLDS + 1))
    return X, Y, s, starts


@pytest.mark.parametrize("kind", ["regression", "classes", "weights"])
def test_losses_and_model_are_those_of_refits_on_all_rows(small, kind):
    frame, y = table()
    weights = np.random.default_rng(1).uniform(0.5, 2.0, N) if kind == "weights" else None
    if kind == "classes":
        y = pd.Series(np.digitize(y, [0.5, 1.5]), name="y")
    parts, learner = cut(frame, y, weights), "lssvm"
    plan = Plan(**{**{name: getattr(PLAN, name) for name in PLAN.options}, "learner": learner})
    found = spread.select_parts(parts, InProcess(), plan, weights is not None)
    X, Y, s, starts = refits(parts, found, plan)
    assert found.data["rows"] == N
    assert len(found.candidates) >= 4
    best, known = found.best, found.model.sufficient
    Z = best.kernel(X, found.model.rows) @ known.T
    K = Z @ Z.T
    atol = tolerances.weighted(s) * tolerances.exact(K, best.lam)
    held = twins.heldout.refits_square(K, Y, best.lam, starts, s, 1)
    if kind != "classes":
        held = np.clip(held, Y.min(axis=1)[:, None], Y.max(axis=1)[:, None])
        expected = np.sqrt(((held - Y) ** 2)[0] @ s / s.sum()) * found.model.output_scale[0]
    else:
        expected = np.mean(held.argmax(axis=0) != Y.argmax(axis=0))
    loss = ((held - Y) ** 2).mean(axis=0) @ s / s.sum()
    np.testing.assert_allclose(best.score, loss, rtol=0, atol=10 * atol)
    np.testing.assert_allclose(best.error, expected, rtol=0, atol=10 * atol * found.model.output_scale[0])
    rows = Partition(X, Y, starts, np.arange(N), Statistics(X), weights=None if kind != "weights" else s)
    values = ((held - Y) ** 2).mean(axis=0)
    np.testing.assert_allclose(best.score_se, standard_error(values, starts, s), rtol=1e-6)
    _, error_se = Errors(kind == "classes", found.model.output_scale).mean(rows, held)
    np.testing.assert_allclose(best.error_se, error_se, rtol=1e-6)
    null = (Y**2).mean(axis=0) @ s / s.sum()
    rule = replace(Rule.read(None, None, found.data["task"], CV()), null=null)
    expected = choose(rule, sorted(found.candidates, key=lambda c: c.order), lambda c: c, 0)
    assert best is expected.best
    assert found.minimum is expected.lowest
    assert found.data["tied"] == expected.tied
    a = twins.heldout.fit_square(K, Y, s, best.lam, 1)
    fit = a[:, :-1] @ K + a[:, -1:]
    np.testing.assert_allclose(best.norm, np.vdot(a[:, :-1], a[:, :-1] @ K), rtol=1e-6)  # kappa = 1
    np.testing.assert_allclose(np.atleast_2d(found.model.decision(frame.iloc[:0]).T).shape, (len(Y), 0))
    magnified = 100 * tolerances.EPS * np.linalg.norm(known.T, 2)
    outputs = best.kernel(X, found.model.rows) @ found.model.coefficients.T + found.model.bias
    np.testing.assert_allclose(outputs.T, fit, rtol=0, atol=atol + magnified)


def test_margins_of_the_sample_are_not_those_of_all_rows(small, monkeypatch):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N, 2)), columns=["a", "b"])
    y = (3.0 * frame["a"] - 2.0 * frame["b"] + 0.1 * rng.normal(size=N)).rename("y")
    plan = Plan(kernel="linear", folds=FOLDS, rank=2, grid={"lambda": [1e-3, 1e-2]}, extend=False)
    samples, carry_out = [], spread.carry_out
    monkeypatch.setattr(spread, "carry_out", lambda *given: samples.append(carry_out(*given)) or samples[0])
    found = spread.select_parts(cut(frame, y), InProcess(), plan)
    assert samples[0].model.margins.any()
    assert found.data["margins"] is found.model.margins is None
    assert not any("leave the range" in note for note in found.data["notes"])
    wide = pd.DataFrame({"a": [9.0, -9.0], "b": [-9.0, 9.0]})
    np.testing.assert_allclose(found.model.predict(wide), [y.max(), y.min()], rtol=1e-12)


def test_the_time_is_that_of_all_stages(small, monkeypatch):
    pace = 0.2

    def sleep_first(function):
        def slow(*given):
            time.sleep(pace)
            return function(*given)

        return slow

    monkeypatch.setattr(spread, "draw", sleep_first(spread.draw))
    monkeypatch.setattr(allrows, "sum_part", sleep_first(allrows.sum_part))
    monkeypatch.setattr(spread, "_selection", sleep_first(spread._selection))
    timing = spread.select_parts(cut(*table()), InProcess(), PLAN).timing
    assert timing["search"] > PARTS * pace  # the sample
    assert timing["verification"] > 2 * PARTS * pace  # the passes over all rows, of two kernels
    assert timing["refit"] > pace
    assert timing["total"] == pytest.approx(timing["search"] + timing["verification"] + timing["refit"])


@pytest.mark.parametrize("weights", ["ones", "counts", "shares"])
def test_sums_of_parts_give_the_standard_error_of_all_rows(weights):
    rng = np.random.default_rng(4)
    starts, n = np.array([0, 30, 70, 120]), 120
    values = rng.exponential(size=(2, n))
    s = {"ones": np.ones(n), "counts": rng.integers(1, 4, n) * 1.0, "shares": rng.uniform(0.2, 2.0, n)}[weights]
    half = rng.random(n) < 0.5
    sums = []
    for chosen in (half, ~half):
        bounds = np.array([0, *(np.count_nonzero(chosen[:stop]) for stop in starts[1:])])
        sums.append(MeanSums.of(values[:, chosen], bounds, s[chosen], weights != "shares"))
    both = sums[0].merge(sums[1])
    np.testing.assert_allclose(both.mean, values @ s / s.sum(), rtol=1e-12)
    np.testing.assert_allclose(both.standard_error(weights != "shares"), standard_error(values, starts, s), rtol=1e-12)


def test_parts_without_rows_count_as_nothing(small):
    """Parts of no rows, of rows without weight or target, and of one row, leave all as it is."""
    frame, y = table()
    weights = np.random.default_rng(2).uniform(0.5, 2.0, N)
    parts = cut(frame, y, weights)
    expected = spread.select_parts(parts, InProcess(), PLAN, True)
    nothing = work.Rows(PARTS, frame[:0], y[:0], weights[:0])
    weightless = work.Rows(PARTS + 1, frame[:9].assign(a=99.0, c="new"), y[:9], np.zeros(9))
    untold = work.Rows(PARTS + 2, frame[:4], y[:4] * np.nan, weights[:4])
    typeless = work.Rows(PARTS + 3, frame[:0].astype(object), y[:0].astype(object), weights[:0])
    found = spread.select_parts([*parts, nothing, weightless, untold, typeless], InProcess(), PLAN, True)
    assert found.data["rows"] == N
    np.testing.assert_allclose(found.model.coefficients, expected.model.coefficients, rtol=1e-6)
    assert found.model.encoder.to_json() == expected.model.encoder.to_json()


@pytest.mark.parametrize(
    ("options", "words"), [({"choose": "minimum"}, "lowest cv"), ({"one_se": True}, "largest lambda")]
)
def test_another_rule_of_choice(small, options, words):
    found = spread.select_parts(cut(*table()), InProcess(), replace(PLAN, **options))
    assert found.data["choice"].startswith(words)
    assert (found.best is found.minimum) == ("choose" in options)


def test_a_journal_keeps_the_passes_over_all_rows(small, tmp_path, monkeypatch):
    plan = replace(PLAN, journal=tmp_path / "run.journal")
    first = spread.select_parts(cut(*table()), InProcess(), plan)
    passes = []
    sum_part = allrows.sum_part
    monkeypatch.setattr(allrows, "sum_part", lambda *given: passes.append(given) or sum_part(*given))
    again = spread.select_parts(cut(*table()), InProcess(), plan)
    assert not passes
    np.testing.assert_array_equal(again.model.coefficients, first.model.coefficients)
    assert [c.score for c in again.candidates] == [c.score for c in first.candidates]


def test_threads_of_blas_change_no_bit():
    """Callers of all threads: the sample's landmarks, and the fits without each fold."""
    found = []
    for count in (1, 2):
        with threadpool_limits(count, user_api="blas"):
            found.append(spread.select_parts(cut(*table()), InProcess(), PLAN))
    np.testing.assert_array_equal(found[0].model.coefficients, found[1].model.coefficients)
    assert [c.score for c in found[0].candidates] == [c.score for c in found[1].candidates]


def test_a_tree_merges_each_value_once_in_order():
    for n in range(1, 12):
        assert tree([[i] for i in range(n)], lambda one, other: one + other) == list(range(n))


def test_samples_dont_depend_on_how_they_are_merged():
    frame, y = table()
    coding = find_encoding(InProcess(), cut(frame, y), PLAN).coding(FOLDS, 3)
    drawn = [work.draw(part, coding, 50) for part in cut(frame, y)]
    one = tree(drawn, lambda a, b: work.merge_drawn(a, b, 50))
    other = drawn[0]
    for more in drawn[1:]:
        other = work.merge_drawn(other, more, 50)
    assert one.rows == other.rows == N
    assert one.X.shape[0] == one.Y.shape[1] == 50
    np.testing.assert_array_equal(one.X, other.X)
    np.testing.assert_array_equal(one.Y, other.Y)
    np.testing.assert_array_equal(one.keys, np.sort(np.concatenate([each.keys for each in drawn]))[:50])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learner": "auto"}, "learner 'auto': rows in parts are selected on with one learner"),
        ({"rank": "full"}, "the rank of rows in parts is a number of landmarks, not 'full'"),
        ({"folds": "loo"}, "folds of rows in parts are a number of at least 2"),
        ({"metric": "r2", "repeats": 2}, "repeats, metric: rows in parts don't have that yet"),
    ],
)
def test_what_rows_in_parts_dont_have(small, options, message):
    plan = Plan(**{**{name: getattr(PLAN, name) for name in PLAN.options}, **options})
    with pytest.raises(OptionError, match=message):
        spread.select_parts(cut(*table()), InProcess(), plan)


@pytest.fixture(scope="module")
def client():
    pytest.importorskip("distributed")
    with local_client(2) as made:
        yield made


def test_workers_of_dask_give_the_same_bits(client):
    da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    frame, y = table()
    options = {name: getattr(PLAN, name) for name in ("kernel", "folds", "rank", "grid", "extend")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelectionWarning)
        found = kernsel.select(
            dd.from_pandas(frame, npartitions=PARTS), dd.from_pandas(y, npartitions=PARTS), **options
        )
        same = spread.select_parts(cut(frame, y), InProcess(), PLAN)
        X = frame[["a", "b"]].to_numpy()
        arrays = kernsel.select(da.from_array(X, chunks=(120, -1)), da.from_array(y.to_numpy(), chunks=120), **options)
    np.testing.assert_array_equal(found.model.coefficients, same.model.coefficients)
    assert [c.score for c in found.candidates] == [c.score for c in same.candidates]
    assert arrays.model.predict(X).shape == (N,)
    with pytest.raises(DataError, match="y isn't; give both as such"):
        kernsel.select(da.from_array(X), y)
    with pytest.raises(DataError, match=r"different numbers of parts \(X 5, y 1\)"):
        kernsel.select(da.from_array(X, chunks=(120, -1)), da.from_array(y.to_numpy()))
    with pytest.raises(DataError, match="X is cut into parts of columns"):
        kernsel.select(da.from_array(X, chunks=(-1, 1)), da.from_array(y.to_numpy()))


def test_passes_of_workers_and_empty_partitions(client):
    """A learner of another loss, on workers, with parts that have no rows."""
    dd = pytest.importorskip("dask.dataframe")
    frame, y = table(300)
    y = (y > y.median()).rename("y")
    options = {"kernel": "gaussian", "folds": FOLDS, "rank": 12, "grid": {"tau": [2.0], "lambda": [1e-3]}}
    plan = Plan(**options, learner="klr", extend=False)
    frame["a"] += np.where(np.arange(300) < 150, 10.0, 0.0)
    columns = dd.from_pandas(frame.assign(y=y), npartitions=4)
    columns = columns[columns["a"] < 5.0]  # the first two parts lose all rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelectionWarning)
        found = kernsel.select(columns[["a", "b", "c"]], columns["y"], **options, learner="klr", extend=False)
    left = slice(150, 300)
    parts = [work.Rows(i, frame[:0], y[:0], None) for i in range(2)]
    parts += [work.Rows(2, frame[150:225], y[150:225], None), work.Rows(3, frame[225:], y[225:], None)]
    same = spread.select_parts(parts, InProcess(), plan)
    assert found.data["rows"] == len(frame[left])
    np.testing.assert_array_equal(found.model.coefficients, same.model.coefficients)
    assert [c.score for c in found.candidates] == [c.score for c in same.candidates]


PATIENCE = 120  # seconds until a selection that lost a worker is given up


@pytest.fixture
def slow_rows():
    """A part that takes a while, so that a worker can be lost in the middle; workers have the tests on no path."""

    def slow(rows):
        time.sleep(0.3)
        return rows

    return slow


@pytest.fixture
def add():
    """A sum, or for 13 the end of the process."""

    def slow_merge(one, other):
        return one + other if other != 13 else os._exit(1)

    return slow_merge


def test_what_a_lost_worker_had_is_done_again(client, slow_rows):
    expected = spread.select_parts(cut(*table()), InProcess(), PLAN)
    parts = [client.submit(slow_rows, part, pure=False) for part in cut(*table())]
    (victim, *_) = client.run(os.getpid).values()
    end = threading.Timer(0.5, lambda: os.kill(victim, signal.SIGKILL))
    end.start()
    made: list = []
    choosing = threading.Thread(
        target=lambda: made.append(spread.select_parts(parts, OnDask(client), PLAN)), daemon=True
    )
    choosing.start()
    choosing.join(PATIENCE)
    end.join()
    assert made, "nothing was found after a worker was lost"
    (found,) = made
    assert victim not in client.run(os.getpid).values()
    np.testing.assert_array_equal(found.model.coefficients, expected.model.coefficients)
    assert [c.score for c in found.candidates] == [c.score for c in expected.candidates]


def test_a_cluster_that_has_no_worker_is_given_up(slow_rows, add):
    pytest.importorskip("distributed")
    with local_client(0) as nobody:
        driver = OnDask(nobody, patience=0.1)
        with pytest.raises(SelectionError, match=r"no worker of Dask has been left at tcp://.* for 0.1 s; start one"):
            driver.reduce(add, [driver.share(slow_rows, 1)], max, 1)


def test_workers_that_do_nothing_are_given_up(client, slow_rows, add):
    impossible = client.submit(slow_rows, 1, resources={"of which there is none": 1}, pure=False)
    with pytest.raises(SelectionError, match=r"the workers of Dask have done nothing at tcp://.* for 0.1 s; restart"):
        OnDask(client, patience=0.1).reduce(add, [impossible], max, 1)


def test_work_that_kills_workers_is_an_error(slow_rows, add):
    dask = pytest.importorskip("dask")
    pytest.importorskip("distributed")
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}), local_client(1) as one:
        driver = OnDask(one)
        with pytest.raises(SelectionError, match=r"workers of Dask die of the same work.*cut rows into smaller parts"):
            driver.reduce(add, [driver.share(slow_rows, 1)], max, 13)
        assert driver.reduce(add, [driver.share(slow_rows, 1)], max, 1) == 2


def test_the_command_has_workers_read_the_files(tmp_path):
    pytest.importorskip("distributed")
    frame, y = table()
    for part in cut(frame, y):
        part.table.assign(y=part.y).to_csv(tmp_path / f"part-{part.number}.csv", index=False)
    frame[:0].assign(y=y[:0]).to_csv(tmp_path / "part-2a.csv", index=False)  # no rows
    told = ["--kernel", "gaussian", "--folds", str(FOLDS), "--rank", "20"]
    data = ["select", str(tmp_path / "part-*.csv"), "--dask"]
    model = tmp_path / "m.npz"
    command = [sys.executable, "-m", "kernsel", *data, "local", *told, "--model", str(model)]
    command += ["--journal", str(tmp_path / "run.journal"), "--output", str(tmp_path / "r.json")]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert f"rank 20 of n = {N} in parts" in shown.stdout
    assert kernsel.load(model).provenance["rows"] == N
    again = run("rerun", tmp_path / "r.json")  # on workers of its own
    assert again.stdout == "the same: all figures are equal to the last bit\n"
    command[command.index(str(model))] = str(tmp_path / "again.npz")
    again = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert "steps are done" in again.stderr
    coefficients = [kernsel.load(each).coefficients for each in (model, tmp_path / "again.npz")]
    np.testing.assert_array_equal(*coefficients)
    refused = run(*data, "local", "--nested", 3, code=2)
    assert "--nested 3: rows in parts don't have that yet" in refused.stderr


def test_nobody_at_the_address():
    pytest.importorskip("distributed")
    with pytest.raises(OptionError, match=r"no scheduler of Dask at nowhere://127.0.0.1:1 \(ValueError\)"):
        connected("nowhere://127.0.0.1:1").__enter__()
