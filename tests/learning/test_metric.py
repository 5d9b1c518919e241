"""A metric that turns axes: how it is learnt, and that it is chosen where unseen rows say so, and only there."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernsel
from kernsel.data import from_arrays
from kernsel.errors import SelectionError
from kernsel.folds import make_folds
from kernsel.folds.partition import Partition
from kernsel.kernels import ARD, Metric
from kernsel.learners import Krr, Lssvm
from kernsel.learning import metric, polish
from kernsel.learning.fits import fit_ridges, score_ridges
from kernsel.learning.metric import LearntMetric, Round, learn_metric, turned
from kernsel.learning.profile import learn_profile
from kernsel.numerics.runtime import threads
from kernsel.selection import auto as automatic
from kernsel.selection.carry_out import select_dataset
from kernsel.selection.learnt import Learnt, kind_of
from twins.learning import PROFILES

FEW = {"grid": {"lambda": [1e-5, 1e-4, 1e-3]}, "folds": 5, "extend": False}


def turn(d, seed=77):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]


def friedman(n, d=10, seed=0, rotated=True):
    """friedman1 with noise of deviation 1, along its axes or not."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, d))
    f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return (X - 0.5) @ turn(d) if rotated else X, f + rng.normal(size=n), f


def ridge(n, d=6, seed=0, classes=False):
    """The target depends on one direction."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.sin(2 * X @ turn(d)[0]) + 0.1 * rng.normal(size=n)
    return X, np.where(y > 0, "up", "down") if classes else y


def alone(X, y, seed=0, weights=None):
    """Rows, each in a fold of its own."""
    data = from_arrays(X, y, standardize=True)
    rows = Partition.of(data, make_folds("loo", data, seed), seed)
    return rows if weights is None else replace(rows, weights=weights)


def slow_next(kernel, rows, a, power):
    """The average outer product of gradients, each by complex steps of one coordinate, to that power."""
    L, n, d = kernel.array, rows.n, rows.X.shape[1]
    M = np.zeros((d, d))
    for i in range(n):
        g = np.zeros(d)
        for r in range(d):
            for j in range(n):
                u = (rows.X[i] - rows.X[j] + 1e-30j * (np.arange(d) == r)) @ L
                if i != j:
                    g[r] += a[j] * PROFILES[kernel.profile](u @ u).imag / 1e-30
        M += rows.s[i] * np.outer(g, g) / rows.total
    values, vectors = np.linalg.eigh(M)
    return (vectors * np.maximum(values, 0) ** power) @ vectors.T


@pytest.mark.parametrize(("profile", "power"), [("gaussian", 1.0), ("matern32", 0.5), ("exponential", 0.5)])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_round_is_the_average_outer_product_of_gradients(profile, power, weighted):
    rows = alone(*ridge(25, 3), weights=np.random.default_rng(1).uniform(0.5, 2.0, 25) if weighted else None)
    kernel = metric.scale_to_spread(rows, turn(3, 5)[:, :2], 1.5, profile)
    differences = (rows.X[:, None] - rows.X[None]) @ kernel.array
    assert (differences**2).sum(axis=2).mean() == pytest.approx(1.5)
    a = np.linalg.solve(kernel(rows.X) + 0.3 * np.diag(1 / rows.s), rows.Y[0])
    L = metric.average_gradients(fit_ridges(rows, kernel, Krr(), [0.3]), 0, share=0.0)
    expected = slow_next(kernel, rows, a, power)
    M = L @ L.T
    np.testing.assert_allclose(M / np.trace(M), expected / np.trace(expected), atol=1e-8)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["gaussian", "matern32"]))
def test_turned_rows_have_the_metric_turned(seed, profile):
    X, y = ridge(40, 4, seed=seed)
    rows, Q = alone(X, y), turn(4, seed)
    other = replace(rows, X=rows.X @ Q, statistics=type(rows.statistics)(rows.X @ Q))
    learnt = LearntMetric(Metric.of(np.eye(4), profile), (Round(1.0, 0.1), Round(1.0, 0.1), Round(2.0, 0.1)), 1.0)
    M, N = (k.array @ k.array.T for k in (learnt.anew(rows, Krr()), learnt.anew(other, Krr())))
    scale = np.abs(M).max()
    np.testing.assert_allclose(Q @ N @ Q.T, M, atol=1e-3 * scale)  # a direction may be left out by one of the two only


def test_directions_are_found():
    rows = alone(*ridge(150))
    found = learn_metric(rows, Krr())
    M = found.kernel.array @ found.kernel.array.T
    values, vectors = np.linalg.eigh(M)
    scaled = turn(6)[0] * ridge(150)[0].std(axis=0)  # columns are standardised
    assert abs(vectors[:, -1] @ scaled) / np.linalg.norm(scaled) > 0.99
    assert values[-1] > 0.95 * values.sum()
    assert found.kernel.rank < 6
    assert (
        found.loss
        < 0.5 * score_ridges(rows, metric.scale_to_spread(rows, np.eye(6), 1.0, "gaussian"), Krr(), [0.1])[1][0]
    )


def test_the_rounds_lead_to_the_same_metric_on_the_same_rows():
    rows = alone(*ridge(80))
    for profile in ("gaussian", "matern32"):
        found = learn_metric(rows, Krr(), profile)
        np.testing.assert_allclose(found.anew(rows, Krr()).array, found.kernel.array, rtol=1e-6, atol=1e-9)


def test_a_polish_goes_down_the_evidence():
    rows = alone(*ridge(60, 4))
    kernel = metric.scale_to_spread(rows, np.array([[1.0, 0.2], [0.3, 0.1], [0.5, -1.0], [0.2, 0.4]]), 1.5, "matern32")
    objective = polish.Objective(rows, kernel, 0, 0.3)
    x = np.append(kernel.array.ravel() / 0.3, np.log(0.2))
    value, gradient = objective(x)
    assert objective.at(x).array == pytest.approx(kernel.array)
    logarithm = np.linalg.slogdet(kernel(rows.X) + 0.2 * np.eye(60))[1]
    quadratic = rows.Y[0] @ np.linalg.solve(kernel(rows.X) + 0.2 * np.eye(60), rows.Y[0])
    assert value == pytest.approx((30 * np.log(quadratic / 60) + logarithm / 2) / 60)
    for r, move in enumerate(1e-5 * np.eye(9)):
        slope = (objective(x + move)[0] - objective(x - move)[0]) / 2e-5
        assert gradient[r] == pytest.approx(slope, rel=1e-5, abs=1e-8)
    better = polish.polish(rows, kernel, Krr(), 0.2)
    values = [objective(np.append(better.array.ravel() / 0.3, np.log(at)))[0] for at in np.geomspace(1e-3, 1, 30)]
    assert min(values) < value - 0.1


def test_metrics_of_many_entries_are_not_polished():
    rows = alone(*ridge(150))
    found = replace(learn_metric(rows, Krr()), loss=np.inf)
    assert metric.polish_if_better(rows, found, Krr()).polished
    assert not metric.polish_if_better(rows, replace(found, loss=0.0), Krr()).polished  # leave-one-out is against it
    assert metric.polish_if_better(rows, found, Krr(), entries=(found.kernel.array.size - 1) / rows.n) is found


def test_rounds_end_early_where_they_lead_nowhere(monkeypatch):
    rng = np.random.default_rng(0)
    rows = alone(rng.normal(size=(80, 4)), rng.normal(size=80))
    lengths = []
    monkeypatch.setattr(metric, "average_gradients", lambda path, k: lengths.append(k) or np.eye(4))
    learn_metric(rows, Krr(), rounds=4)
    assert len(lengths) == 4
    lengths.clear()
    learn_metric(rows, Krr(), gain=0.9)  # other scales gain some of it by chance
    assert len(lengths) == 3
    lengths.clear()
    learn_metric(rows, Krr(), bound=1e-3)
    assert len(lengths) == 2


def test_a_target_without_directions_is_an_error():
    X, _ = ridge(40)
    rows = alone(X, np.append(np.zeros(39), 1.0))
    with pytest.raises(SelectionError, match="doesn't depend on any feature"):
        learn_metric(replace(rows, Y=np.zeros((1, 40))), Krr())


@pytest.mark.parametrize("rotated", [True, False])
def test_a_metric_must_be_better_on_rows_it_was_not_learnt_on(rotated):
    X, y, _ = friedman(400, rotated=rotated)
    rows = alone(X, y)
    with threads.one_blas_thread():
        ard = learn_profile(rows, ARD(), Krr(), 1.0)
        found = turned(rows, ard.kernel, Krr(), ["gaussian"], 250)
    assert (found is not None) == rotated


def test_noise_is_not_turned():
    rng = np.random.default_rng(3)
    found = []
    for _ in range(10):
        rows = alone(rng.normal(size=(120, 5)), rng.normal(size=120))
        found.append(turned(rows, metric.scale_to_spread(rows, np.eye(5), 1.0, "gaussian"), Krr(), ["gaussian"], 60))
    assert sum(each is not None for each in found) <= 2  # two standard errors are passed by chance in 2 %


@pytest.fixture(scope="module")
def oblique():
    X, y, _ = friedman(400)
    return select_dataset(from_arrays(X, y, standardize=True), **FEW)


def test_auto_turns_the_axes_of_rotated_tables(oblique):
    assert oblique.best.kernel.name == "metric"
    far, _, f = friedman(1000, seed=9)
    ard = select_dataset(from_arrays(*friedman(400)[:2], standardize=True), kernel="ard", relevances="evidence", **FEW)
    mean = [((result.model.predict(far) - f) ** 2).mean() for result in (oblique, ard)]
    assert mean[0] < 0.5 * mean[1]
    truth = np.sqrt(mean[0] + 1.0)
    assert 0.9 * truth < oblique.best.error < 1.2 * truth  # of 400 rows
    assert any(each["relevances"] == "average gradients" for each in oblique.data["compared"])
    assert "relevances: learnt by average gradients on 400 of 400 rows" in oblique.data["notes"]
    np.testing.assert_allclose(list(oblique.relevances), oblique.best.kernel.relevances, rtol=1e-12)
    json.loads(oblique.to_json())


def test_files_hold_the_choice(oblique, tmp_path):
    X, _, _ = friedman(20, seed=4)
    oblique.model.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(kernsel.load(tmp_path / "model.npz").predict(X), oblique.model.predict(X))


def test_auto_keeps_axes_that_are_right():
    X, y, _ = friedman(200, rotated=False)
    result = select_dataset(from_arrays(X, y, standardize=True), **FEW)
    assert kind_of(result.best.kernel).startswith("ard")


@pytest.mark.parametrize("classes", [False, True])
def test_held_out_rows_are_predicted_by_a_metric_learnt_without_them(classes):
    data = from_arrays(*ridge(150, classes=classes), standardize=True)
    options = {"learner": "lssvm", "effort": "thorough"} if classes else {"learner": "krr"}
    result = select_dataset(data, **options, **FEW)
    kernel, lam, square = result.best.kernel, result.best.lam, Lssvm() if classes else Krr()
    assert kernel.name == "metric"
    with threads.one_blas_thread():
        learnt = automatic.candidates(
            data, result.best.learner, options.get("effort", "normal"), automatic.PRIORS[data.task], 0
        ).find(kernel)
        rows, F = Partition.of(data, make_folds(5, data, 0), 0, clip=True), np.zeros(150)
        for fold in range(5):
            kept, held = rows.kept(fold), slice(rows.starts[fold], rows.starts[fold + 1])
            some = rows.taken(np.flatnonzero(kept), np.arange(kept.sum() + 1))
            k = learnt.profile.anew(some, square).times(learnt.factor)
            X, y, m = rows.X[kept], rows.Y[0, kept], int(kept.sum())
            A = np.zeros((m + 1, m + 1))
            A[:m, :m] = k(X) + m * lam * np.eye(m)
            A[m, :m] = A[:m, m] = classes
            A[m, m] = 1 - classes
            a = np.linalg.solve(A, np.append(y, 0.0))
            F[rows.order[held]] = k(rows.X[held], X) @ a[:m] + a[m]
            if not classes:
                F[rows.order[held]] = np.clip(F[rows.order[held]], y.min(), y.max())
    np.testing.assert_allclose(result.outputs, F, atol=1e-6)


def test_a_metric_that_has_only_seen_its_rows_gives_way_to_relevances(monkeypatch):
    """The metric wins by leave-one-out, and loses where it is learnt without each fold: here it then knows nothing."""
    monkeypatch.setattr(LearntMetric, "anew", lambda self, rows, learner: Metric.of(1e-3 * np.eye(rows.X.shape[1])))
    X, y, _ = friedman(400)
    rows = alone(X, y)
    with threads.one_blas_thread():
        known = learn_metric(rows, Krr())
    monkeypatch.setattr(automatic, "turned", lambda *others: known)
    result = select_dataset(from_arrays(X, y, standardize=True), **FEW)
    assert result.best.kernel.name != "metric"
    assert any(note.startswith("kernel: metric") and "passed over" in note for note in result.data["notes"])
    assert "; metric is passed over, as its kernel has seen the rows" in result.data["choice"]
    assert result.data["compared"][0]["relevances"] == "average gradients"
    assert "by relevances that were learnt without the rows held out" in result.summary()


@pytest.mark.parametrize(
    ("n", "d", "effort"), [(90, 3, "normal"), (110, 30, "normal"), (510, 101, "normal"), (120, 3, "quick")]
)
def test_a_metric_is_offered_to_few_features_of_many_rows(n, d, effort, monkeypatch):
    monkeypatch.setattr(automatic, "turned", lambda *others: pytest.fail("a metric is learnt"))
    rows = alone(*ridge(n, max(d, 6)))
    kernel = ARD((1.0,) * rows.X.shape[1])
    best = Learnt(LearntMetric(kernel, (), 1.0), 1.0, 1.0)
    if effort == "quick":
        assert not automatic.METRICS[effort]
    else:
        assert automatic.learn_turned(rows, best, Krr(), effort, 0) == []
