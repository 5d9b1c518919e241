"""Every learner without a bias: fits and held-out outputs against brute force, in both representations."""

import numpy as np
import pytest

import tables
import tolerances
import twins.heldout
import twins.losses
from kernsel.criteria import BIF, CV, FBIF, NewtonCV
from kernsel.errors import IncompatibleError
from kernsel.learners import Klr, L2Svm, Qsvr, Svm, Svr

LAMS = (1.0, 0.1, 1e-3)
TWINS = {
    Svm(h=0.2, bias=False): (twins.losses.huber_hinge(0.2), 2.5),
    L2Svm(bias=False): (twins.losses.squared_hinge, 2.0),
    Klr(bias=False): (twins.losses.logistic, 0.25),
    Qsvr(epsilon=0.2, bias=False): (twins.losses.squared_insensitive(0.2), 2.0),
    Svr(epsilon=0.3, h=0.1, bias=False): (twins.losses.huber_insensitive(0.3, 0.1), 5.0),
}
learners = pytest.mark.parametrize("learner", TWINS, ids=str)
ranks = pytest.mark.parametrize("rank", [None, 8], ids=["full", "rank 8"])


def path_of(learner, rank=None, seed=0):
    return tables.path_on(tables.make_rows(seed, real="regression" in learner.tasks), learner, LAMS, rank=rank)


@learners
@ranks
@pytest.mark.parametrize("seed", range(3))
def test_fits_and_refits_are_those_of_brute_force(learner, rank, seed):
    path, (twin, curvature) = path_of(learner, rank, seed), TWINS[learner]
    Z, held = tables.slow_features(path), path.exact()
    assert held.failed == [None] * len(LAMS)
    for k, lam in enumerate(LAMS):
        atol = tolerances.curved(Z @ Z.T, lam, curvature)
        for i, y in enumerate(path.rows.Y):
            w = twins.heldout.fit(twin, Z, y, np.ones(y.size), lam)
            np.testing.assert_allclose(path.fits.f[i, k], Z @ w, rtol=0, atol=atol)
            np.testing.assert_allclose(
                held.f[i, k], twins.heldout.refits(twin, Z, y, lam, path.rows.starts), rtol=0, atol=atol
            )


@learners
@ranks
def test_folds_make_the_newton_step_or_are_refitted(learner, rank):
    path, (twin, curvature) = path_of(learner, rank), TWINS[learner]
    Z, held = tables.slow_features(path), path.newton_step()
    for k, lam in enumerate(LAMS):
        for i, y in enumerate(path.rows.Y):
            w = twins.heldout.fit(twin, Z, y, np.ones(y.size), lam)
            step = twins.heldout.newton_step(twin, Z, y, lam, w, path.rows.starts)
            refit = twins.heldout.refits(twin, Z, y, lam, path.rows.starts)
            atol = 10 * tolerances.curved(Z @ Z.T, lam, curvature)
            far, wrong = (np.abs(held.f[i, k] - each) > atol for each in (step, refit))
            away = [fold for fold in twins.heldout.folds(path.rows.starts) if far[fold].any()]
            assert held.exact[k] or len(away) <= held.refitted[k]
            assert not any(wrong[fold].any() for fold in away)


@learners
@ranks
@pytest.mark.parametrize("criterion", [CV(), NewtonCV(), BIF(), FBIF(), BIF(order=3)], ids=lambda c: c.name)
def test_every_criterion_scores_every_learner(learner, rank, criterion):
    path = path_of(learner, rank)
    if criterion == BIF(order=3) and not learner.loss.piecewise_quadratic:
        with pytest.raises(IncompatibleError, match="learner 'klr' has a third derivative: use order 1, or newton-cv"):
            criterion.score(path)
        return
    scores = criterion.score(path)
    assert scores.failed == [None] * len(LAMS)
    assert np.isfinite(scores.score).all()


@pytest.mark.parametrize("learner", ["klr", "l2svm", "svm(bias=true)", "lssvm"])
def test_a_selection_of_classes(learner):
    result = tables.choose(*tables.circles(), learner=learner, grid=tables.SMALL, folds=5, extend=False)
    assert result.best.error < 0.25
    assert result.learner == learner.partition("(")[0]


@pytest.mark.parametrize("learner", ["svr", "qsvr", "lssvm"])
def test_a_selection_of_values(learner):
    X, y = tables.waves()
    result = tables.choose(X, y, learner=learner, grid=tables.SMALL, folds=5, extend=False)
    assert result.best.error < 0.5 * y.std()


@pytest.mark.parametrize("learner", ["klr", "l2svm", "lssvm"])
def test_three_classes(learner):
    result = tables.choose(*tables.wine(), learner=learner, grid={"tau": [4.0, 16.0], "lambda": [1e-3]}, folds=5)
    assert result.best.error < 0.05
