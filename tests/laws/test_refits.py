"""Laws of fits without each fold that are found side by side: they are the fits, whatever the folds leave out."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calling
import losses
import problems
import tolerances
import twins.heldout
from kernsel.numerics.left_out import Folds, LeftOut, own_rows
from kernsel.numerics.runtime.threads import one_blas_thread
from kernsel.numerics.smooth import heldout, newton, refits_kernel
from kernsel.numerics.smooth.convergence import REFITTED, UNFINISHED

TOL = 1e-14


def refit(p, bias, lams, away=None, wanted=None, loss=losses.LOGISTIC, tol=TOL, how=refits_kernel.refit_folds):
    """Outputs (L, n), statuses and solutions (L, t, .) of fits without each fold, and the fits on all rows."""
    fits = calling.fit(newton.in_kernel, loss, p.K, p.y, lams, p.s, bias=bias)
    t, L = p.starts.size - 1, lams.size
    left = calling.kept(p.s, p.starts)
    if away is not None:
        left = np.array([p.s.sum() - p.s[lo].sum() for lo in np.split(away.rows, away.bounds[1:-1])])
    folds = Folds(p.starts, *(own_rows(p.starts) if away is None else away), left, float(p.s.sum()))
    ends = np.full((1, L, t, p.n + bias), np.nan)
    held = heldout.HeldOut.room(np.zeros((1, L, p.n)), t)._replace(x=ends)
    stack = heldout.Objective(p.y[None], p.s[None], lams, loss.parameters, bias)
    fitted = heldout.Fit(*(each[None] for each in (fits.x, fits.f, fits.d1, fits.d2)))
    wanted = np.ones(t) if wanted is None else wanted
    with one_blas_thread():
        heldout.update_folds(how, p.K, wanted[:, None], stack, loss.compiled, fitted, folds, 0, tol, held)
    return held.out[0], held.status[0], ends[0], fits


def both_classes(p, rows):
    """The problem where two rows of each class are in no fold of ``rows``, so that every fit has a minimum."""
    y = p.y.copy()
    y[:4] = [1.0, -1.0, 1.0, -1.0]
    assert not np.isin(rows, np.arange(4)).any()
    return problems.Problem(p.K, p.Z, y, p.Y, p.starts, p.lam, p.s)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    bias=st.sampled_from([0, 1]),
    weighted=st.booleans(),
    lam=st.sampled_from([1e-4, 1e-2, 1.0]),
    tau=st.sampled_from([0.1, 1.0, 10.0]),
    more=st.booleans(),
)
def test_fits_side_by_side_are_the_slow_twins(seed, bias, weighted, lam, tau, more):
    """Folds of unequal sizes, from one row; with ``more`` fits leave out other rows as well."""
    p = problems.make(seed, n=40, tau=tau, lam=lam, starts=(4, 5, 13, 16, 30, 40), weighted=weighted)
    starts = p.starts - p.starts[0]
    # held-out rows come first: rows that no fold holds are turned to the end
    turn = np.r_[4:40, 0:4]
    p = both_classes(p, np.arange(4, 40))
    p = problems.Problem(p.K[np.ix_(turn, turn)].copy(), p.Z[turn], p.y[turn], p.Y, starts, lam, p.s[turn])
    rng, gone = np.random.default_rng(seed), []
    for lo, hi in pairwise(starts):
        others = rng.permutation(36)[: 5 if more else 0]
        gone.append(np.unique(np.r_[np.arange(lo, hi), others]))
    away = LeftOut(np.concatenate(gone), np.cumsum([0, *map(len, gone)]))
    out, status, ends, _ = refit(p, bias, np.array([lam]), away)
    assert (status[0] == REFITTED).all() or lam < 1e-2
    assert set(status[0]) <= {REFITTED, UNFINISHED}
    Z = p.features(bias)
    for fold in np.flatnonzero(status[0] == REFITTED):
        rows, s = gone[fold], p.s.copy()
        s[rows] = 0.0
        w = twins.heldout.fit(losses.LOGISTIC.twin, Z, p.y, s, lam, bias)
        held = slice(starts[fold], starts[fold + 1])
        close = tolerances.curved(p.K, lam, losses.LOGISTIC.curvature)
        np.testing.assert_allclose(out[0, held], (Z @ w)[held], atol=10 * close)
        x = ends[0, fold]
        assert not x[rows].any()
        np.testing.assert_allclose(p.K @ x[: p.n] + (x[p.n] if bias else 0.0), Z @ w, atol=10 * close)
        if bias:
            assert abs(x[: p.n].sum()) <= 1e-9 * np.abs(x).sum()


def test_folds_that_are_not_wanted_are_left():
    p = problems.make(1, n=60)
    wanted = np.array([0.0, 1.0, 0.0, 0.0, 1.0])
    out, status, ends, _ = refit(p, 1, calling.array(1e-2), wanted=wanted)
    assert status[0].tolist() == [UNFINISHED, REFITTED, UNFINISHED, UNFINISHED, REFITTED]
    assert np.isnan(ends[0]).all(axis=1).tolist() == [True, False, True, True, False]
    everything, _, _, _ = refit(p, 1, calling.array(1e-2))
    held = np.r_[p.starts[1] : p.starts[2], p.starts[4] : p.starts[5]]
    np.testing.assert_allclose(out[0, held], everything[0, held], atol=1e-10)


@pytest.mark.parametrize("folds", [2, 17, 40])
def test_more_folds_than_are_fitted_at_a_time_are_fits(folds):
    p = problems.make(3, n=80, starts=problems.even(80, folds), lam=1e-3)
    out, status, _, _ = refit(p, 1, calling.array(1e-3))
    assert (status == REFITTED).all()
    expected = twins.heldout.refits(losses.LOGISTIC.twin, p.features(1), p.y, 1e-3, p.starts, p.s, 1)
    np.testing.assert_allclose(out[0], expected, atol=1e-8)


def test_a_fold_that_leaves_one_class_stays_unfinished():
    p = problems.make(5, n=40, starts=(0, 20, 40))
    p = problems.Problem(p.K, p.Z, np.repeat([1.0, -1.0], 20), p.Y, p.starts, p.lam, p.s)
    _, status, _, _ = refit(p, 1, calling.array(1e-2))
    assert (status == UNFINISHED).all()


def test_where_float32_bears_no_such_ridge_folds_are_left():
    p = problems.make(7, n=40, tau=100.0, lam=1e-9)
    _, status, _, _ = refit(p, 1, calling.array(1e-9))
    assert (status == UNFINISHED).all()


@pytest.mark.parametrize("lam", [2e-6, 1e-5, 1e-3])
@pytest.mark.parametrize("bias", [0, 1])
def test_smaller_ridges_are_borne_by_float64(lam, bias):
    p = problems.make(7, n=60, tau=3.0, lam=lam)
    out, status, _, _ = refit(p, bias, np.array([lam]), how=refits_kernel.refit_folds_finely)
    assert (status == REFITTED).any()
    expected = twins.heldout.refits(losses.LOGISTIC.twin, p.features(bias), p.y, lam, p.starts, p.s, bias)
    rows = np.repeat(status[0] == REFITTED, np.diff(p.starts))
    np.testing.assert_allclose(out[0, rows], expected[rows], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("lam", [3e-5, 1e-4, 1e-3])
@pytest.mark.parametrize("bias", [0, 1])
def test_folds_whose_first_step_overshoots_are_fits(lam, bias):
    """Classes that are apart: rows without curvature in one fit have some in another."""
    p = problems.make(7, n=60, flips=0.0, lam=lam)
    out, status, _, _ = refit(p, bias, np.array([lam]))
    assert (status == REFITTED).all()
    expected = twins.heldout.refits(losses.LOGISTIC.twin, p.features(bias), p.y, lam, p.starts, p.s, bias)
    np.testing.assert_allclose(out[0], expected, atol=1e-7)
