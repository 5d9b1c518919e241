"""Prediction intervals: the published formula, its guarantee as a law, and the coverage on real data."""

import math
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes

import tables
import tolerances
from kernsel.errors import ModelError, OptionError
from kernsel.folds.partition import Partition
from kernsel.heldout.intervals import Intervals
from kernsel.kernels import Gaussian, Statistics
from kernsel.model.model import load

COVERAGES = st.sampled_from([0.1, 0.5, 0.8, 0.9, 0.99])


@dataclass(frozen=True)
class Ridge:
    """A path as `Intervals.of` sees it: kernel ridge regression by brute force."""

    rows: Partition
    lam: float = 0.05

    @property
    def problem(self):
        return SimpleNamespace(kernel=Gaussian(1.0))

    @property
    def representation(self):
        return SimpleNamespace(points=self.rows.X)

    def refits(self, k):
        assert k == 0
        rows = self.rows
        K = self.problem.kernel(rows.X)
        coefficients = np.zeros((rows.left.size, len(rows.Y), rows.n))
        for fold in range(rows.left.size):
            kept = np.ones(rows.n, bool)
            kept[rows.starts[fold] : rows.starts[fold + 1]] = False
            ridge = K[np.ix_(kept, kept)] + rows.left[fold] * self.lam * np.diag(1 / rows.s[kept])
            coefficients[fold][:, kept] = np.linalg.solve(ridge, rows.Y[:, kept].T).T
        return coefficients, np.zeros(coefficients.shape[:2])


def rows_of(X, Y, sizes, weights=None):
    return Partition(X, np.atleast_2d(Y), np.r_[0, np.cumsum(sizes)], np.arange(len(X)), Statistics(X), weights=weights)


def random_rows(seed, sizes, outputs=1, weights=None):
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    X = rng.normal(size=(n, 1))
    return rows_of(X, np.sin(2 * X[:, 0]) + rng.standard_t(2, size=(outputs, n)), sizes, weights)


def slow_ends(values, share, coverage):
    """Go up the values until the share is reached, in a world of n + 1 rows."""
    reached = 0.0
    for place in np.argsort(values):
        reached += share[place]
        if reached >= coverage * (len(values) + 1) * (1 - 1e-12):
            return values[place]
    return math.inf


@given(
    st.lists(st.integers(1, 4), min_size=2, max_size=6),
    st.integers(0, 2**32 - 1),
    st.integers(1, 2),
    COVERAGES,
    st.sampled_from(["none", "equal", "unequal"]),
)
def test_the_ends_are_those_of_the_definition(sizes, seed, outputs, coverage, kind):
    n = sum(sizes)
    rng = np.random.default_rng(seed)
    weights = {"none": None, "equal": np.full(n, 0.2), "unequal": rng.exponential(size=n) + 0.01}[kind]
    path = Ridge(random_rows(seed, sizes, outputs, weights))
    new = rng.normal(size=(4, 1))
    ends = Intervals.of(path, 0).bounds(path.problem.kernel(new, path.representation.points), coverage)
    coefficients, _ = path.refits(0)
    share = np.ones(n) if kind != "unequal" else weights / weights.mean()
    fold = np.repeat(np.arange(len(sizes)), sizes)
    K, crossed = path.problem.kernel(path.rows.X), path.problem.kernel(new, path.rows.X)
    for k in range(outputs):
        residuals = [abs(path.rows.Y[k, i] - K[i] @ coefficients[fold[i], k]) for i in range(n)]
        for x in range(4):
            f = np.array([crossed[x] @ coefficients[fold[i], k] for i in range(n)])
            upper, lower = slow_ends(f + residuals, share, coverage), -slow_ends(residuals - f, share, coverage)
            np.testing.assert_allclose(ends[x, k], [lower, upper], rtol=tolerances.SUMS, atol=tolerances.SUMS)


def test_the_ends_are_the_order_statistics_of_the_paper():
    """With 9 rows and coverage 0.8: the floor(0.2 * 10) = 2nd smallest and the ceil(0.8 * 10) = 8th smallest."""
    f, residuals = np.arange(9.0), np.linspace(0.1, 0.9, 9) ** 2
    one = Intervals(f[:, None, None], np.zeros((9, 1)), residuals[None], np.arange(10), np.ones(9))
    ends = one.bounds(np.ones((1, 1)), 0.8)
    np.testing.assert_array_equal(ends[0, 0], [np.sort(f - residuals)[1], np.sort(f + residuals)[7]])
    np.testing.assert_array_equal(one.bounds(np.ones((2, 1)), 0.95), np.tile([-math.inf, math.inf], (2, 1, 1)))
    assert np.isfinite(one.bounds(np.ones((1, 1)), 0.9)).all()  # 0.9 * 10 is the 9th smallest, there is one


@given(st.integers(4, 12), st.integers(0, 2**32 - 1), COVERAGES, st.sampled_from([1e-6, 0.05, 10.0]))
def test_of_any_points_few_are_outside_of_the_intervals_from_the_others(n, seed, coverage, lam):
    """The theorem of the paper without its probability: of n points, 2 alpha n at most are outside, always."""
    rows = random_rows(seed, [1] * n)
    outside = 0
    for i in range(n):
        others = np.arange(n) != i
        path = Ridge(rows_of(rows.X[others], rows.Y[:, others], [1] * (n - 1)), lam)
        low, high = Intervals.of(path, 0).bounds(
            path.problem.kernel(rows.X[[i]], path.representation.points), coverage
        )[0, 0]
        outside += not low <= rows.Y[0, i] <= high
    assert outside <= 2 * (1 - coverage) * n + 1e-9


def test_more_than_the_most_is_not_computed():
    path = Ridge(random_rows(0, [3, 3, 4]))
    assert Intervals.of(path, 0, most=3 * 1 * 10) is not None
    assert Intervals.of(path, 0, most=3 * 1 * 10 - 1) is None


def test_rows_that_are_never_held_out_have_no_residual():
    rows = random_rows(0, [3, 3, 4])
    path = Ridge(replace(rows, starts=rows.starts[:3]))
    assert Intervals.of(path, 0).residuals.shape == (1, 6)


# Through a selection


@pytest.fixture
def options():
    return {"grid": {"tau": [1.0, 4.0], "lambda": [1e-3, 1e-2]}, "extend": False}


@pytest.mark.parametrize("folds", [5, 40])
def test_a_model_has_the_intervals_of_its_selection(tmp_path, options, folds):
    X, y = tables.waves(40, scale=100.0)
    result = tables.choose(X, y + 1e3, folds=folds, **options)
    model, new = result.model, tables.waves(30, seed=3)[0]
    ends = model.predict_interval(new, 0.8)
    assert ends.shape == (30, 2)
    f = model.predict(new)
    assert ((ends[:, 0] < f) & (f < ends[:, 1])).mean() > 0.9
    # The residuals are those of the held-out predictions.
    scale = y.std()
    expected = np.sort(np.abs(result.heldout - y - 1e3))
    np.testing.assert_allclose(np.sort(model.intervals.residuals[0]) * scale, expected, rtol=1e-8, atol=1e-8)
    # A wider coverage holds a narrower one.
    wider = model.predict_interval(new, 0.9)
    assert (wider[:, 0] <= ends[:, 0]).all()
    assert (wider[:, 1] >= ends[:, 1]).all()
    assert np.isinf(model.predict_interval(new, 0.99)).all()  # needs 99 rows
    model.save(tmp_path / "m.npz")
    np.testing.assert_array_equal(load(tmp_path / "m.npz").predict_interval(new, 0.8), ends)


def test_rows_have_the_intervals_that_they_have_alone(options):
    model = tables.choose(*tables.waves(40), folds=5, **options).model
    new = tables.waves(30, seed=3)[0]
    whole = model.predict_interval(new, 0.8)
    alone = np.concatenate([model.predict_interval(some, 0.8) for some in np.array_split(new, 5)])
    np.testing.assert_allclose(alone, whole, rtol=1e-12, atol=1e-12)
    assert model.predict_interval(new[:0], 0.8).shape == (0, 2)


def test_what_has_no_intervals_says_so(options, monkeypatch):
    X, y = tables.waves(30)
    model = tables.choose(X, y, folds=5, **options).model
    for wrong in (0.0, 1.0, 90, math.nan):
        with pytest.raises(OptionError, match="must lie between 0 and 1, not"):
            model.predict_interval(X, wrong)
    monkeypatch.setattr(Intervals, "of", lambda *_, **__: None)  # of many rows and folds
    with pytest.raises(ModelError, match="were not kept .* select with fewer folds, or with a lower rank"):
        tables.choose(X, y, folds=5, **options).model.predict_interval(X)
    with pytest.raises(ModelError, match="'y' has classes"):
        tables.choose(*tables.circles(30), folds=5, **options).model.predict_interval(X)
    with pytest.raises(ModelError, match="'y' is a regression"):
        model.predict_proba(X)
    with pytest.raises(ModelError, match="without a calibration"):
        replace(tables.choose(*tables.circles(30), folds=5, **options).model, calibration=None).predict_proba(X)


@pytest.mark.parametrize("rank", [None, 60])
def test_nine_tenths_of_new_patients_are_within(rank):
    X, y = load_diabetes(return_X_y=True)
    covered, widths = [], []
    for seed in range(5):
        shuffled = np.random.default_rng(seed).permutation(len(y))
        train, test = shuffled[:300], shuffled[300:]
        result = tables.choose(X[train], y[train], standardize=True, seed=seed, rank=rank)
        ends = result.model.predict_interval(X[test], 0.9)
        covered.append(((ends[:, 0] <= y[test]) & (y[test] <= ends[:, 1])).mean())
        widths.append((ends[:, 1] - ends[:, 0]).mean() / (y.max() - y.min()))
    assert 0.87 < np.mean(covered) < 0.95
    assert np.mean(widths) < 0.62
