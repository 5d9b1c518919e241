"""The square loss by conjugate gradients: what converges is exact."""

import numpy as np
import pytest
from hypothesis import given

import calling
import problems
import tolerances
import twins.heldout
from kernsel.numerics.left_out import Folds
from kernsel.numerics.square import krylov


@given(problems.problems(weighted=True))
def test_folds_are_held_out_exactly(p):
    root = np.sqrt(p.s)
    lams = calling.array(1e3, 1.0, p.lam, 1e-3 * p.lam)
    lams.sort()
    lams = np.ascontiguousarray(lams[::-1])
    folds = calling.folds(p.starts, p.s)
    f, norms, done = krylov.heldout_krylov(p.K * root * root[:, None], p.Y * root, lams, folds)
    assert done[0]
    assert (np.diff(done.astype(int)) <= 0).all()  # the larger, the sooner
    for k in np.flatnonzero(done):
        whole = [twins.heldout.fit_square(p.K, y, p.s, lams[k], 0)[:-1] for y in p.Y]
        exact = sum(a @ p.K @ a for a in whole)
        np.testing.assert_allclose(norms[k], exact, rtol=1e-8 + 1e3 * tolerances.exact(p.K, lams[k]))
        for c, y in enumerate(p.Y):
            expected = twins.heldout.refits_square(p.K, y, lams[k], p.starts, p.s)
            atol = max(tolerances.exact(p.K, lams[k]), krylov.ACCURACY) * np.linalg.norm(y * root)
            np.testing.assert_allclose(f[c, k] / root, expected, rtol=0, atol=10 * tolerances.weighted(p.s) * atol)


def test_rows_in_no_fold_are_trained_on_and_not_held_out():
    p = problems.make(0, starts=[0, 8, 20])
    f, _, done = krylov.heldout_krylov(p.K, p.Y, calling.array(0.1), Folds.own(p.starts, calling.array(22, 18), 30.0))
    assert done.all()
    np.testing.assert_allclose(f[0, 0], twins.heldout.refits_square(p.K, p.Y[0], 0.1, p.starts), atol=1e-10)
    assert not f[:, :, 20:].any()


@pytest.mark.parametrize("steps", [1, 3])
def test_what_has_not_converged_is_said(steps):
    p = problems.make(0, n=60, tau=0.5)
    folds = calling.folds(p.starts, p.s)
    _, _, done = krylov.heldout_krylov(p.K, p.Y, calling.array(1e12, 1e-6), folds, steps=steps)
    assert done.tolist() == [True, False]


def test_targets_of_zero_are_predicted_at_once():
    p = problems.make(0)
    folds = calling.folds(p.starts, p.s)
    f, norms, done = krylov.heldout_krylov(p.K, 0.0 * p.Y, calling.array(1.0, 1e-9), folds)
    assert done.all()
    assert not f.any()
    assert not norms.any()
