"""Criteria: what each claims to equal, whom it trusts, and what it does with fits that failed."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import losses
import tables
import tolerances
import twins.heldout
import twins.losses
from kernsel.criteria import BIF, CV, FBIF, HeldOutCriterion, NewtonCV
from kernsel.errors import IncompatibleError, OptionError
from kernsel.learners import Krr, Loss, Svm
from kernsel.paths import HeldOut

LAMS = (100.0, 0.1, 1e-4)
WIDE = Svm(h=1.5, bias=False)
"""So wide a kink that rows are curved at any output near 0: else rho is 0 for large lambda."""

learners = pytest.mark.parametrize("learner", [Krr(), WIDE], ids=["krr", "svm"])
ranks = pytest.mark.parametrize("rank", [None, 8], ids=["full", "rank 8"])


def path_of(learner, rank=None, seed=0, lams=LAMS):
    return tables.path_on(tables.make_rows(seed), learner, lams, rank=rank)


@ranks
@pytest.mark.parametrize(
    ("learner", "twin"),
    [(Krr(), twins.losses.square), (Svm(h=0.5, bias=False), twins.losses.huber_hinge(0.5))],
    ids=["krr", "svm"],
)
def test_cv_is_the_mean_loss_of_brute_force_refits(learner, twin, rank):
    path = path_of(learner, rank)
    scores, Z = CV().score(path), tables.slow_features(path)
    assert scores.failed == [None] * 3
    for k, lam in enumerate(LAMS):
        F = np.array([twins.heldout.refits(twin, Z, y, lam, path.rows.starts) for y in path.rows.Y])
        expected = twin(path.rows.Y, F)[0].mean()
        assert scores.score[k] == pytest.approx(expected, rel=1e-9 if learner.loss.square else 1e-6)
    np.testing.assert_array_equal(scores.loss, scores.score)
    assert scores.reliability is None
    assert scores.scored_by is None
    assert scores.heldout.exact.all()


@ranks
def test_newton_cv_is_cv_for_the_square_loss(rank):
    path = path_of(Krr(), rank)
    step, exact = NewtonCV().score(path), CV().score(path)
    np.testing.assert_allclose(step.score, exact.score, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(step.heldout.f, exact.heldout.f, rtol=0, atol=1e-10)
    assert step.reliability is None


@learners
@ranks
@pytest.mark.parametrize("options", [{}, {"pure": True}, {"trust": 0.0}])
def test_bif_of_infinite_order_is_newton_cv(learner, rank, options):
    path = path_of(learner, rank)
    series, step = BIF(order=np.inf, **options).score(path), NewtonCV().score(path)
    np.testing.assert_array_equal(series.score, step.score)
    assert series.scored_by is None


@learners
def test_orders_approach_the_newton_step(learner):
    path = path_of(learner, lams=(3.0,))
    assert path.ratio[0] < 0.3
    limit = path.newton_step().f
    off = [np.abs(BIF(order=r, pure=True).heldout(path).f - limit).max() for r in (1, 2, 4, 30)]
    assert off[0] > off[1] > off[2] > off[3]
    assert off[3] < 1e-9


@learners
def test_fbif_with_every_row_a_landmark_is_bif(learner):
    path = path_of(learner, lams=(3.0, 0.1))
    whole, first = FBIF(landmarks=1.0, pure=True).heldout(path), BIF(pure=True).heldout(path)
    if learner.loss.square:
        np.testing.assert_allclose(whole.f, first.f, atol=1e-8)
    else:  # FBIF18 gives the curved rows the weight of all
        assert np.isfinite(whole.f).all()


@learners
@ranks
@pytest.mark.parametrize("kind", [BIF, FBIF])
def test_who_is_not_trusted_is_scored_by_the_newton_step(learner, rank, kind):
    path = path_of(learner, rank)
    pure, step, mixed = kind(pure=True).score(path), NewtonCV().score(path), kind().score(path)
    beyond = path.ratio > kind().trust
    assert beyond.any()
    assert not beyond.all()
    np.testing.assert_array_equal(mixed.score, np.where(beyond, step.score, pure.score))
    assert mixed.scored_by == ["newton-cv" if each else None for each in beyond]
    np.testing.assert_array_equal(mixed.reliability, path.ratio)
    np.testing.assert_array_equal(mixed.heldout.exact, beyond & step.heldout.exact)
    assert pure.scored_by is None
    assert (pure.score != step.score).all()
    if kind is FBIF:  # rho would cost far more than the series
        assert pure.reliability is None
    else:
        np.testing.assert_array_equal(pure.reliability, path.ratio)


@pytest.mark.parametrize("kind", [BIF, FBIF])
def test_trust_is_a_threshold_on_rho(kind):
    path = path_of(WIDE)
    assert kind(trust=0.0).score(path).scored_by == ["newton-cv"] * 3
    assert kind(trust=1.0).score(path).scored_by == [None] * 3
    between = float(path.ratio[:2].mean())
    assert kind(trust=between).score(path).scored_by == [None, "newton-cv", "newton-cv"]


def test_the_pure_series_follows_the_training_fit_where_rho_is_one():
    path = path_of(Svm(bias=False), lams=(1.0, 1e-7))
    assert path.ratio[1] > 0.9
    pure, exact = BIF(pure=True).score(path), CV().score(path)
    assert pure.score[1] < 0.5 * exact.score[1]
    assert BIF().score(path).score[1] > pure.score[1]


@dataclass(frozen=True)
class Misses(NewtonCV):
    """A criterion with a measure of its own, as a plugin has it: the share of rows that some output has wrong."""

    name: ClassVar[str] = "misses"

    def measure(self, Y, F):
        return (Y * F < 0).any(axis=0).astype(float)


@learners
def test_a_measure_replaces_the_loss(learner):
    path = path_of(learner)
    scores, step = Misses().score(path), path.newton_step()
    expected = [(path.rows.Y * step.f[:, k] < 0).any(axis=0).mean() for k in range(3)]
    np.testing.assert_allclose(scores.score, expected)
    np.testing.assert_array_equal(scores.loss, NewtonCV().score(path).score)
    assert (Misses().values(path, path.rows.Y) == 0.0).all()
    assert (Misses().values(path, -path.rows.Y) == 1.0).all()
    assert NewtonCV().values(path, path.rows.Y) == pytest.approx(0.0 if learner.loss.square else 1.5 / 4)


@dataclass(frozen=True)
class Damaged(HeldOutCriterion):
    """Exact, but what is held out for the second lambda is not finite, and the third is said to have failed."""

    name: ClassVar[str] = "damaged"

    def heldout(self, path):
        held = path.exact()
        held.f[0, 1, 3] = np.inf
        return HeldOut(held.f, [None, None, "it broke"], held.exact)


@dataclass(frozen=True)
class DamagedMeasure(Damaged):
    """The same with a measure."""

    def measure(self, Y, F):
        return np.abs(Y - F).sum(axis=0)


@pytest.mark.parametrize("criterion", [Damaged(), DamagedMeasure()], ids=["loss", "measure"])
def test_failures_have_a_reason(criterion):
    scores = criterion.score(path_of(Krr()))
    assert scores.failed == [None, "the score is not finite", "it broke"]
    assert np.isfinite(scores.score[0])


class Logistic(Svm):
    """A loss with a third derivative."""

    @property
    def loss(self):
        return Loss("logistic", losses.LOGISTIC.compiled, piecewise_quadratic=False)


def test_a_third_derivative_leaves_the_first_order_only():
    path = path_of(Logistic(), lams=(1.0, 0.1))
    assert np.isfinite(BIF().score(path).score).all()
    assert np.isfinite(BIF(order=np.inf).score(path).score).all()
    with pytest.raises(IncompatibleError, match="criterion 'bif' of order 2 needs a piecewise quadratic loss"):
        BIF(order=2).score(path)


def test_the_newton_step_of_a_smooth_loss_is_near_exact():
    path = path_of(Logistic(), lams=(1.0, 0.1))
    np.testing.assert_allclose(NewtonCV().score(path).score, CV().score(path).score, rtol=tolerances.RHO)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BIF(order=0), "order must be a whole number from 1, or inf, not 0"),
        (lambda: BIF(order=1.5), "order must be a whole number from 1, or inf, not 1.5"),
        (lambda: BIF(order=np.nan), "order must be a whole number"),
        (lambda: BIF(order=-np.inf), "order must be a whole number"),
        (lambda: BIF(trust=1.5), "criterion 'bif': trust must be from 0 to 1, not 1.5"),
        (lambda: FBIF(trust=np.nan), "criterion 'fbif': trust must be from 0 to 1"),
        (lambda: FBIF(landmarks=0.0), "criterion 'fbif': landmarks must be a share of the rows, not 0.0"),
        (lambda: FBIF(landmarks=1.1), "landmarks must be a share of the rows"),
    ],
)
def test_options_that_make_no_sense(make, message):
    with pytest.raises(OptionError, match=message):
        make()
