"""Intervals of a path contain the outputs of exact fits: from Newton steps, and between two lambda."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import tolerances
from kernsel.folds.partition import Partition
from kernsel.kernels import Gaussian, Statistics
from kernsel.numerics.smooth import newton
from kernsel.parts import read_learner
from kernsel.paths import make_path
from kernsel.representation.problem import Problem

LAMS = [1e-1, 5e-2, 1e-2, 3e-3, 1e-4, 1e-6]
REGRESSIONS = ("svr", "qsvr")


def path_of(learner, tau=1.0, folds=5, weighted=False, seed=0, n=40, training=None, unit=1.0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 2))
    y = np.sin(2 * X[:, 0]) + 0.5 * random.normal(size=n)
    y = y if learner.partition("(")[0] in REGRESSIONS else np.where(y > 0, 1.0, -1.0)
    y[:4] = y[-4:] = [1.0, -1.0, 1.0, -1.0]  # no fit is left with one class
    s = unit * (random.exponential(size=n) + 0.1) if weighted else None
    starts = np.linspace(0, n, folds + 1).astype(int)
    rows = Partition(X, y[None].copy(), starts, np.arange(n), Statistics(X), 0, s, training)
    task = "regression" if learner.partition("(")[0] in REGRESSIONS else "classification"
    path = make_path(Problem(rows, Gaussian(tau), None), read_learner(learner, task), LAMS)
    path.keeps_folds = True
    return path


def exact(path, lams):
    """Held-out outputs (L, n) of fits without each fold that are solved to rounding."""
    rows, t = path.rows, path.rows.left.size
    weights = np.array([np.where(rows.kept(fold), rows.s, 0.0) for fold in range(t)])
    x, f = np.zeros((t, len(lams), path._width)), np.zeros((t, len(lams), rows.n))
    loss = path.learner.loss
    status = newton.solve_paths(
        path.solver, path._matrix[None], int(path.bias), np.zeros(t, np.int64), np.tile(rows.Y, (t, 1)), weights,
        np.array(lams), loss.pointer, np.array(loss.parameters), True, x, f, 1e-22,
    )  # fmt: skip
    assert not status.any()
    return np.concatenate([f[k, :, rows.starts[k] : rows.starts[k + 1]] for k in range(t)], axis=1)


def contains(low, high, found):
    slack = tolerances.ENCLOSED * (1 + np.abs(found))
    return ((low <= found + slack) & (high >= found - slack)).all()


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    bias=st.sampled_from(["", "(bias=false)"]),
    tau=st.sampled_from([0.1, 1.0, 10.0, 100.0]),
    folds=st.sampled_from([2, 5, 7, 40]),
    weighted=st.booleans(),
)
def test_intervals_by_the_inverse_behind_newton_steps_hold_exact_refits(seed, bias, tau, folds, weighted):
    path = path_of(f"klr{bias}", tau, folds, weighted, seed)
    assert contains(path.enclosed.low[0], path.enclosed.high[0], exact(path, LAMS))


@settings(max_examples=15)
@given(
    seed=st.integers(0, 2**32 - 1),
    bias=st.sampled_from(["", "(bias=false)"]),
    tau=st.sampled_from([0.3, 3.0, 30.0, 300.0]),
    weighted=st.booleans(),
)
def test_intervals_by_steps_and_fits_side_by_side_hold_exact_refits(seed, bias, tau, weighted):
    path = side_by_side(path_of(f"klr{bias}", tau, 5, weighted, seed, n=200))
    low, high = path.enclosed.low[0], path.enclosed.high[0]
    assert contains(low, high, exact(path, LAMS))
    assert np.isfinite(high - low).all()


def test_they_do_not_depend_on_the_unit_of_the_weights():
    paths = [side_by_side(path_of("klr", 3.0, weighted=True, n=200, unit=unit)) for unit in (1.0, 1e6, 1e-6)]
    ends = [np.array([path.enclosed.low[0], path.enclosed.high[0]]) for path in paths]
    assert np.isfinite(ends).all()
    for other in ends[1:]:
        np.testing.assert_allclose(other, ends[0], atol=0.1 * np.ptp(ends[0], axis=0).max())


def side_by_side(path):
    """The path, whose folds are stepped and fitted together whatever its size."""
    path.thresholds = path.thresholds._replace(together=0)
    assert path._together
    return path


def test_they_are_narrow_by_fits_where_a_step_says_nothing():
    one_by_one, together = path_of("klr", n=200), side_by_side(path_of("klr", n=200))
    by_steps, by_fits = (
        np.ptp([each.enclosed.low[0], each.enclosed.high[0]], axis=0) for each in (one_by_one, together)
    )
    assert np.isinf(by_steps[-1]).any()
    assert by_fits.max() < 0.2
    np.testing.assert_array_equal(together.enclosed.refitted, one_by_one.enclosed.refitted)  # of steps astray


def test_they_are_narrow_where_lambda_is_not_tiny():
    path = path_of("klr", folds=5)
    width = (path.enclosed.high - path.enclosed.low)[0]
    assert width[:3].max() < 0.02
    assert not path.enclosed.refitted[0, :2].any()


def test_fits_that_leave_out_more_than_their_fold_are_held():
    training = np.ones((5, 40), np.bool_)
    for fold in range(5):
        training[fold, max(8 * fold - 2, 4) : min(8 * fold + 10, 36)] = False
        training[fold, 8 * fold : 8 * fold + 8] = False
    path = path_of("klr", training=training)
    assert contains(path.enclosed.low[0], path.enclosed.high[0], exact(path, LAMS))
    assert np.isfinite(path.enclosed.high[0, :3]).all()


def test_the_law_notices_intervals_that_are_too_narrow():
    path = path_of("klr")
    found, outputs = path.enclosed, exact(path, LAMS)[:3]
    low, high = found.low[0, :3], found.high[0, :3]
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    assert contains(middle - half, middle + half, outputs)
    assert not contains(middle - 0.02 * half, middle + 0.02 * half, outputs)


@settings(max_examples=15)
@given(
    seed=st.integers(0, 2**32 - 1),
    bias=st.sampled_from(["", "(bias=false)"]),
    tau=st.sampled_from([0.3, 3.0, 30.0]),
    weighted=st.booleans(),
    part=st.floats(0.0, 1.0),
)
def test_intervals_between_two_lambda_by_one_inverse_hold_all_between(seed, bias, tau, weighted, part):
    path = path_of(f"klr{bias}", tau, 5, weighted, seed)
    found = path.enclosed_between()
    between = [(1 - part) * LAMS[k] + part * LAMS[k + 1] for k in range(len(LAMS) - 1)]
    interpolated = (1 - part) * found.f[0, :-1] + part * found.f[0, 1:]
    assert contains(interpolated + found.low[0], interpolated + found.high[0], exact(path, between))
    assert np.isfinite(found.high[0, 0]).all()


@settings(max_examples=15)
@given(
    learner=st.sampled_from(["klr", "svm", "l2svm", "svr", "qsvr"]),
    bias=st.sampled_from(["", "(bias=false)"]),
    seed=st.integers(0, 2**32 - 1),
    part=st.floats(0.0, 1.0),
)
def test_fits_of_two_paths_hold_all_between_those_of_both(learner, bias, seed, part):
    given, halves = path_of(f"{learner}{bias}", seed=seed), np.sqrt(np.multiply(LAMS[1:3], LAMS[2:4]))
    every = np.sort([*LAMS, *halves])[::-1]
    others, path = (make_path(given.problem, given.learner, lams) for lams in (halves, every))
    whole = make_path(given.problem, given.learner, every).enclosed_between()
    pieces = np.arange(1, 5)
    found = path.with_refits([given, others]).enclosed_between(pieces)
    np.testing.assert_allclose(found.f, whole.f, atol=1e-4)
    between = (1 - part) * every[pieces] + part * every[pieces + 1]
    interpolated = (1 - part) * found.f[0, pieces] + part * found.f[0, pieces + 1]
    assert contains(interpolated + found.low[0, pieces], interpolated + found.high[0, pieces], exact(path, between))
    assert np.isinf(found.high[0, [0, 5, 6]]).all()
