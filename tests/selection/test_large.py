"""Many rows: chosen on few of them in full, and the whole kernel fitted to all; numbers of rows are lowered here."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import tolerances
from kernsel import parts as reading
from kernsel.data import from_arrays
from kernsel.kernels import Gaussian, Laplacian, parse
from kernsel.numerics.whole.costs import Costs, Work
from kernsel.search.deadline import Deadline, limited_time
from kernsel.selection import large, limits
from kernsel.selection.carry_out import select_dataset
from kernsel.selection.large import ClimbStep, narrower
from kernsel.selection.learnt import kind_of
from kernsel.selection.plan import Plan
from kernsel.system.memory import limited_memory

N, FEW = 420, 60
LOW = limits.Sizes(full=200, few=FEW, scored=10, finite=5)
NAMED = {"kernel": ["gaussian", "exponential"], "folds": 4}


def rough(n=N, seed=0, classes=False):
    """A regression of which a rough kernel is right."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.abs(np.sin(4 * X[:, 0])) + np.sign(X[:, 1]) + 0.1 * rng.normal(size=n)
    return X, np.where(y > y.mean(), "up", "down") if classes else 3 * y + 5


def choose(data, sizes=LOW, **options):
    return large.select_large(data, Plan(**options), sizes=sizes)


def direct(result, data):
    """The outputs of a fit in float64 on all rows of an encoded table, at these."""
    best, Y = result.best, data.Y
    n = Y.shape[1]
    H = best.kernel(data.X) + n * best.lam * np.eye(n)
    if result.learner == "krr":
        return np.linalg.solve(H, Y.T).T @ best.kernel(data.X)
    H = np.block([[H, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    x = np.linalg.solve(H, np.column_stack([Y, np.zeros(len(Y))]).T).T
    return x[:, :-1] @ best.kernel(data.X) + x[:, -1:]


@pytest.mark.parametrize("classes", [False, True], ids=["krr", "lssvm"])
@pytest.mark.parametrize("options", [{}, NAMED], ids=["auto", "named"])
def test_many_rows_are_fitted_with_the_whole_kernel_that_few_of_them_chose(classes, options):
    X, y = rough(classes=classes)
    data = from_arrays(X, y, standardize=True)
    result = choose(data, **options)
    assert result.options["rank"] == "whole"
    assert result.data["representation"] == f"whole kernel in tiles, n = {N}"
    assert result.data["rank"] == N
    F = direct(result, data)
    outputs = result.model.decision(X)
    if not classes:
        F = np.clip(F, data.Y.min(), data.Y.max())
        outputs = np.clip(outputs, data.Y.min(), data.Y.max())
    np.testing.assert_allclose(outputs, F[0], rtol=0, atol=tolerances.FITTED)
    ordinary = select_dataset(data, rank=50, **options)
    assert set(result.to_dict()) == set(ordinary.to_dict())
    assert set(result.data) - set(ordinary.data) <= {"climb", "relevances"}
    assert set(ordinary.data) - set(result.data) <= {"relevances", "fingerprint"}  # which is put on at the end
    assert (result.probabilities is not None) == classes
    assert result.best.score < 1.1 * ordinary.best.score
    climb = result.data["climb"]
    assert [step["rows"] for step in climb][:2] == [FEW, 2 * FEW]
    assert climb[0]["gain"] is None
    assert any(note.startswith(f"rows: chosen on {FEW} rows in full") for note in result.data["notes"])
    assert climb[-1]["ridge"] == pytest.approx(result.best.lam * N)
    assert f"whole kernel in tiles, n = {N}" in result.summary()
    json.loads(result.to_json())


def test_reported_outputs_of_learnt_relevances_are_by_others_learnt_without_the_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 5))
    y = np.sin(2 * X[:, 0]) * np.cos(X[:, 1]) + 0.1 * rng.normal(size=N)
    few = N // 3  # relevances that so many have chosen know much of the others, too
    result = choose(from_arrays(X, y, standardize=True), replace(LOW, few=few), folds=4)
    assert kind_of(result.best.kernel).startswith("ard")
    assert result.data["relevances"]["unseen"]
    assert set(result.relevances.nlargest(2).index) == {"x0", "x1"}
    assert f"relevances: learnt by evidence on {few} of {N} rows" in result.data["notes"]  # again, without a prior


@pytest.mark.parametrize(
    "options",
    [
        *({"rank": 50}, {"search": "grid"}, {"refine": "compass"}, {"effort": "quick"}, {"learner": "svr"}),
        *({"folds": "loo"}, {"repeats": 2}, {"criterion": "bif"}, {"grid": {"lambda": [1e-3]}}, {"one_se": True}),
        *({"certify": 0.01}, {"folds": FEW + 1}),
    ],
    ids=lambda options: next(iter(options)),
)
def test_what_is_asked_for_otherwise_goes_the_other_way(options):
    data = from_arrays(*rough(), standardize=True)
    assert not limits.is_large(data, Plan(**{"learner": "krr", **options}), LOW)
    assert limits.is_large(data, Plan(learner="krr"), LOW)


def test_few_rows_groups_and_sparse_rows_go_the_other_way():
    X, y = rough()
    assert not limits.is_large(from_arrays(X[:200], y[:200]), Plan(), LOW)
    assert not limits.is_large(from_arrays(X, y, groups=np.arange(N) // 2), Plan(), LOW)
    assert not limits.is_large(from_arrays(X, y), Plan(kernel="ard"), LOW)
    assert limits.is_large(from_arrays(X, y), Plan(kernel="gaussian", effort="quick", rank="whole"), LOW)
    assert not limits.is_large(from_arrays(X, y), Plan(kernel="gaussian(tau=1)", rank="whole"), LOW)


def test_a_kernel_of_few_dimensions_is_left_to_landmarks():
    data = from_arrays(*rough(), standardize=True)
    assert limits.is_large(data, Plan(kernel="linear"), LOW)
    assert choose(data, kernel="linear") is None


def test_what_takes_too_long_or_too_much_memory_is_left_to_landmarks_and_one_fold_comes_before(monkeypatch):
    data = from_arrays(*rough(), standardize=True)
    costs = {"folds": 1.0, "one fold": 1.0, "low rank, 4": 1.0, "low rank, 1": 1.0}

    def made(n, d, outputs, bias, folds=(), route="fit", rank=None):
        seconds = costs[route if rank is None else f"low rank, {len(folds)}"]
        return Costs((Work("all", products32=seconds * limits.RATES.products32),), 10 if rank is None else 4)

    monkeypatch.setattr(limits.whole_costs, "costs", made)
    monkeypatch.setattr(limits, "machine_rates", lambda: limits.RATES)

    def route(effort="normal", rank=None, within=math.inf):
        with limited_time(Deadline.within(within)):
            plan = Plan(effort=effort, rank=rank, folds=4)
            return limits.final_fit(data, plan, limits.Limits.of(effort)).route

    def fits(effort):
        return limits.fits_whole(data, Plan(effort=effort, folds=4))

    assert route() == route(within=500.0) == "folds"
    costs["folds"] = 1e3
    assert route() == route("thorough") == "one fold"
    assert route(rank="whole") == "folds"
    assert route(rank="whole", within=500.0) == "one fold"
    costs |= {"one fold": 500.0, "low rank, 4": 1e3}
    assert not fits("normal")
    assert fits("thorough")
    with limited_memory(9):  # of a factor no more, but of a low rank
        assert fits("normal")
        costs["low rank, 1"] = 500.0
        assert fits("thorough")
        assert route(rank="whole") == "folds"
        costs["low rank, 1"] = 1e3
        assert not fits("thorough")
    with limited_memory(3):
        assert not limits.is_large(data, Plan(rank="whole", folds=4), LOW)
        assert limits.is_large(data, Plan(folds=4), LOW)  # few landmarks may be enough


@pytest.mark.parametrize("classes", [False, True], ids=["krr", "lssvm"])
def test_one_fold_is_held_out_where_the_others_would_cost_too_much(monkeypatch, classes):
    free = large.final_fit
    monkeypatch.setattr(large, "final_fit", lambda *args: free(*args)._replace(route="one fold"))
    data = from_arrays(*rough(classes=classes), standardize=True)
    result = choose(data, **NAMED)
    assert result.data["folds"] == 1
    assert np.isfinite(result.outputs).sum() == N // 4
    assert any("one of 4 is held out" in note for note in result.data["notes"])
    held = np.isfinite(result.outputs)
    some = data.take(np.flatnonzero(~held))
    other = select_dataset(
        some,
        kernel=result.best.kernel,
        grid={"lambda": [result.best.lam]},
        rank="full",
        folds=4,
        learner="lssvm" if classes else "krr",
    )
    kernel, rows = result.best.kernel, data.X[held]
    outputs = kernel(rows, other.model.rows) @ other.model.coefficients[0] + other.model.bias
    outputs = outputs if classes else np.clip(outputs, data.Y.min(), data.Y.max())
    np.testing.assert_allclose(result.outputs[held], outputs, rtol=0, atol=tolerances.FITTED)
    assert "1 fold" in result.summary()


@pytest.mark.parametrize("more", [1, 2, 3, 200])
def test_with_few_rows_more_than_the_search_takes_its_choice_is_taken(more):
    data = from_arrays(*rough(201 + more), standardize=True)
    few = large.subsample(data, 201, 0)
    result = choose(data, limits.Sizes(full=200, few=201), **NAMED)
    chosen = select_dataset(few, **NAMED, rank="full").best
    assert result.options["rank"] == "whole"
    assert result.data["climb"] == []
    assert result.best.kernel == chosen.kernel
    assert result.best.lam * data.n == pytest.approx(chosen.lam * few.n)
    assert any("chosen on 201 rows in full, for there are few others" in note for note in result.data["notes"])
    assert result.to_json()


def test_the_climb_ends_with_the_budget():
    data = from_arrays(*rough(200), standardize=False)
    ladder = large.Ladder.of(data, data.take(np.arange(50)), parse_learner(), True, 0)
    steps, ended = ladder.climb([ClimbStep(Gaussian(0.5), 0.02, Gaussian(0.5))], limits.Limits(0.0, 0.0), None)
    assert [step.rows for step in steps] == [50]
    assert ended.startswith("100 rows would take")
    assert ended.endswith("more, which is not in the budget")


def test_rows_outside_are_in_no_subset_nor_are_copies_of_them():
    X, y = rough(200)
    X[100:150] = X[50:100]
    data = from_arrays(X, y, standardize=False)
    few = data.take(np.arange(30, 60))
    ladder = large.Ladder.of(data, few, parse_learner(), True, 0)
    assert set(ladder.order[:30]) == set(range(30, 60))
    assert np.array_equal(np.sort(np.append(ladder.order, ladder.outside)), np.arange(200))
    inside = set(map(tuple, data.X[ladder.order]))
    assert not inside & set(map(tuple, data.X[ladder.outside]))
    assert ladder.outside.size >= 40


def parse_learner():
    return reading.read_learner("krr", "regression")


def test_a_step_is_scored_by_the_fit_on_a_subset_with_the_same_ridge():
    X, y = rough(200)
    w = np.random.default_rng(0).exponential(size=200) + 0.1
    data = from_arrays(X, y, standardize=False, weights=w)
    ladder = large.Ladder.of(data, data.take(np.arange(50)), parse_learner(), True, 0)
    scored = ladder.scored(ClimbStep(Gaussian(0.5), 0.02, Gaussian(0.5)), 80)
    rows, outside, k, s = ladder.order[:80], ladder.outside, Gaussian(0.5), data.weights
    a = np.linalg.solve(k(X[rows]) + 0.02 * np.diag(1 / s[rows]), data.Y[0, rows])
    F = np.clip(k(X[outside], X[rows]) @ a, data.Y[0, rows].min(), data.Y[0, rows].max())
    expected = s[outside] @ (F - data.Y[0, outside]) ** 2 / s[outside].sum()
    assert scored.loss == pytest.approx(expected, rel=tolerances.FITTED)
    worse = ladder.scored(ClimbStep(Gaussian(1e-3), 0.02, Gaussian(1e-3)), 80)
    assert scored.is_better(worse)
    assert not worse.is_better(scored)
    assert not scored.is_better(scored)


def test_a_ridge_that_is_lost_in_rounding_is_raised_and_what_is_lost_still_is_out():
    data = from_arrays(*rough(200), standardize=False)
    ladder = large.Ladder.of(data, data.take(np.arange(50)), parse_learner(), True, 0)
    near, far = (ladder.scored(ClimbStep(Gaussian(1e4), ridge, Gaussian(1e4)), 80) for ridge in (1e-10, 1e-40))
    assert near.ridge in 1e-10 * large.RAISE ** np.arange(1, large.RAISED + 1)
    assert np.isfinite(near.loss)
    assert (far.ridge, far.loss, far.losses) == (1e-40, np.inf, None)
    assert near.is_better(far)


def test_half_the_width_is_that_of_a_stretched_table_and_rough_kernels_keep_theirs():
    X = np.random.default_rng(0).normal(size=(20, 2))
    for text in ("gaussian(tau=2)", "ard(theta=(1,0.5))", "matern52(ell=2)", "rational-quadratic(ell=1)",
                 "ard(theta=(2,1), profile=matern32)"):  # fmt: skip
        kernel = parse(text)
        np.testing.assert_allclose(narrower(kernel)(X), kernel(2 * X), rtol=0, atol=1e-13)
    for text in ("laplacian(sigma=1)", "exponential(ell=1)", "linear", "ard-laplacian(theta=(1,2))"):
        assert narrower(parse(text)) is None
    assert narrower(Laplacian(1.0) + Gaussian(1.0)) is None
