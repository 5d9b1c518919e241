"""Fits that leave out more rows than are scored: the closed forms are brute-force refits, and cost none."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import tables
import tolerances
import twins.heldout
import twins.losses
from kernsel.criteria import BIF, CVKS, FBIF, NewtonCV
from kernsel.errors import IncompatibleError
from kernsel.learners.klr import Klr
from kernsel.learners.krr import Krr, Lssvm
from kernsel.learners.svm import L2Svm, Svm
from kernsel.learners.svr import Qsvr
from kernsel.paths.smooth import SmoothPath
from kernsel.paths.square import HeldSquarePath

LAMS = (0.1, 0.01)
SIZES = (9, 14, 11, 8, 12)
SQUARE = pytest.mark.parametrize("learner", [Krr(), Lssvm()], ids=["krr", "lssvm"])
SMOOTH = pytest.mark.parametrize(
    ("learner", "twin"),
    [
        (Svm(h=0.5, bias=True), twins.losses.huber_hinge(0.5)),
        (Svm(h=0.5, bias=False), twins.losses.huber_hinge(0.5)),
        (L2Svm(), twins.losses.squared_hinge),
        (Klr(), twins.losses.logistic),
        (Qsvr(epsilon=0.1), twins.losses.squared_insensitive(0.1)),
    ],
    ids=lambda each: str(each) if hasattr(each, "loss") else "",
)
RANKS = pytest.mark.parametrize("rank", [None, 10], ids=["full", "rank 10"])


def near_rows(seed=0, sizes=SIZES, share=0.15, **options):
    """Rows whose fits leave out some, anywhere, beside their fold."""
    rows = tables.make_partition(seed, sizes, **options)
    training = np.random.default_rng(seed + 1).random((len(sizes), rows.n)) > share
    for fold, (lo, hi) in enumerate(pairwise(rows.starts)):
        training[fold, lo:hi] = False
    return replace(rows, training=training)


def as_classes(rows):
    return replace(rows, Y=np.where(rows.Y > 0, 1.0, -1.0))


def no_refits(monkeypatch):
    def refuse(*_):
        raise AssertionError("a fold was refitted")

    monkeypatch.setattr(HeldSquarePath, "_trained", refuse)
    monkeypatch.setattr(SmoothPath, "_exact", refuse)


def kernel_of(path):
    Z = tables.slow_features(path)
    return Z @ Z.T


@SQUARE
@RANKS
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@pytest.mark.parametrize("never", [0, 7])
def test_the_square_loss_is_brute_force_without_a_refit(monkeypatch, learner, rank, weighted, never):
    no_refits(monkeypatch)
    path = tables.path_on(near_rows(never=never, weighted=weighted), learner, LAMS, rank=rank)
    rows, K = path.rows, kernel_of(path)
    for held in (path.exact(), path.newton_step()):
        assert held.failed == [None, None]
        assert held.exact.all()
        for k, lam in enumerate(path.lams):
            expected = twins.heldout.refits_square(K, rows.Y, lam, rows.starts, rows.s, int(path.bias), rows.training)
            np.testing.assert_allclose(held.f[:, k], expected, rtol=0, atol=1e-10)


@SQUARE
@pytest.mark.parametrize("route", ["spectrum", "factors", "krylov", "products"])
def test_every_route_of_the_square_loss_is_brute_force(monkeypatch, learner, route):
    if route == "krylov" and learner.bias:
        return  # that way knows no bias
    no_refits(monkeypatch)
    rank = 10 if route == "products" else None
    path = tables.path_on(near_rows(never=5, weighted=True), learner, LAMS, rank=rank)
    path.route = route
    rows, K, held = path.rows, kernel_of(path), path.exact()
    for k, lam in enumerate(path.lams):
        expected = twins.heldout.refits_square(K, rows.Y, lam, rows.starts, rows.s, int(path.bias), rows.training)
        np.testing.assert_allclose(held.f[:, k], expected, rtol=0, atol=1e-10)


def test_columns_that_overlap_with_no_other_are_brute_force():
    """A kernel so narrow that it sees single points."""
    path = tables.path_on(near_rows(), Krr(), LAMS, tau=1e-6, rank=10)
    rows, K, held = path.rows, kernel_of(path), path.exact()
    for k, lam in enumerate(path.lams):
        expected = twins.heldout.refits_square(K, rows.Y, lam, rows.starts, rows.s, 0, rows.training)
        np.testing.assert_allclose(held.f[:, k], expected, rtol=0, atol=1e-10)


@SQUARE
@pytest.mark.parametrize("scattered", [False, True], ids=["runs", "here and there"])
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
def test_in_blocks_the_square_loss_is_what_features_in_memory_give(learner, scattered, weighted):
    rows = near_rows(weighted=weighted, never=4)
    held = tables.path_on(rows, learner, LAMS, rank=10)
    rank = tables.in_blocks(10, runs=0 if scattered else 10**6, sample=10**6)  # all rows: the same landmarks
    blocked = tables.path_on(rows, learner, LAMS, rank=rank)
    assert (blocked.representation.stream.beside is not None) == scattered
    np.testing.assert_allclose(blocked.exact().f, held.exact().f, rtol=0, atol=1e-9)
    np.testing.assert_allclose(blocked.fits.f, held.fits.f, rtol=0, atol=1e-9)


@SMOOTH
@RANKS
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
def test_newton_steps_are_brute_force(monkeypatch, learner, twin, rank, weighted):
    """Each step is the formula itself; those that can't be trusted are refitted, to the tolerance of the solver."""
    rows = near_rows(weighted=weighted, never=4)
    rows = rows if "regression" in learner.tasks else as_classes(rows)
    path = tables.path_on(rows, learner, LAMS, rank=rank)
    path.trust = np.inf
    Z, bias = np.column_stack([tables.slow_features(path), np.ones((rows.n, int(path.bias)))]), int(path.bias)
    monkeypatch.setattr(type(path), "_cheaply_refitted", lambda path: np.zeros(path.lams.size, bool))
    held = path.newton_step()
    assert not np.any(held.refitted)
    for c, y in enumerate(rows.Y):
        for k, lam in enumerate(path.lams):
            w = twins.heldout.fit(twin, Z, y, rows.s, lam, bias)
            for fold, (lo, hi) in enumerate(pairwise(rows.starts)):
                away = np.flatnonzero(~rows.training[fold])
                f = Z[lo:hi] @ (w + twins.heldout.step_of(twin, Z, y, lam, w, away, rows.s, bias))
                np.testing.assert_allclose(held.f[c, k, lo:hi], f, rtol=0, atol=tolerances.FITTED)


@SMOOTH
@RANKS
def test_exact_outputs_of_other_losses_are_brute_force(learner, twin, rank):
    rows = near_rows()
    rows = rows if "regression" in learner.tasks else as_classes(rows)
    path = tables.path_on(rows, learner, LAMS, rank=rank)
    Z, bias = np.column_stack([tables.slow_features(path), np.ones((rows.n, int(path.bias)))]), int(path.bias)
    held, step = path.exact(), path.newton_step()
    for c, y in enumerate(rows.Y):
        for k, lam in enumerate(path.lams):
            for T, S in zip(rows.training, twins.heldout.folds(rows.starts), strict=True):
                f = Z[S] @ twins.heldout.fit(twin, Z[T], y[T], rows.s[T], lam, bias)
                np.testing.assert_allclose(held.f[c, k, S], f, rtol=0, atol=tolerances.FITTED)
    assert np.abs(step.f - held.f)[..., : rows.held].mean() < 0.02


def test_fits_that_leave_out_most_rows_are_made_anew():
    rows = near_rows(share=0.6)
    assert not rows.updated
    assert near_rows().updated
    for learner in (Krr(), Svm(h=0.5)):
        path = tables.path_on(as_classes(rows), learner, LAMS)
        np.testing.assert_array_equal(path.newton_step().f, path.exact().f)
        assert path.newton_step().exact.all()


def test_rows_that_are_left_out_are_listed_by_fold():
    rows = near_rows(never=3)
    for fold, (lo, hi) in enumerate(pairwise(rows.away.bounds)):
        np.testing.assert_array_equal(rows.away.rows[lo:hi], np.flatnonzero(~rows.kept(fold)))
    whole = replace(rows, training=None)
    np.testing.assert_array_equal(whole.away.rows, np.arange(whole.held))
    np.testing.assert_array_equal(whole.away.bounds, whole.starts)


@pytest.mark.parametrize("criterion", [BIF(), FBIF()])
def test_influence_refuses_with_a_reason(criterion):
    with pytest.raises(IncompatibleError, match="use the criterion cv"):
        criterion.score(tables.path_on(near_rows(), Krr(), LAMS))


@pytest.mark.parametrize("criterion", [NewtonCV(), CVKS()])
@pytest.mark.parametrize("learner", [Krr(), Svm(h=0.5)], ids=["krr", "svm"])
def test_criteria_of_cross_validation_use_them(criterion, learner):
    scores = criterion.score(tables.path_on(as_classes(near_rows()), learner, LAMS))
    plain = criterion.score(tables.path_on(replace(as_classes(near_rows()), training=None), learner, LAMS))
    assert scores.failed == [None, None]
    assert (scores.score != plain.score).all()


def test_a_gradient_of_other_folds_is_refused():
    path = tables.path_on(near_rows(), Krr(), LAMS)
    with pytest.raises(IncompatibleError, match="give refine compass or simplex"):
        NewtonCV().gradient(path.problem, Krr(), 0.1)
