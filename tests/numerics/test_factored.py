"""The square loss by one factorisation a ridge: what the eigendecomposition and brute-force refits say."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given

import calling
import problems
import tolerances
import twins.heldout
from kernsel.numerics.smooth import convergence
from kernsel.numerics.square import factored
from kernsel.numerics.square.spectral import Spectrum


@given(problems.problems(weighted=True))
@pytest.mark.parametrize("bias", [0, 1])
def test_folds_are_held_out_exactly(bias, p):
    root = np.sqrt(p.s)
    K, Y = p.K * root * root[:, None], p.Y * root
    lams = calling.array(p.lam, p.lam / 3)
    folds = calling.folds(p.starts, p.s)
    f, _, status = factored.heldout_factored(K, root if bias else None, Y, lams, folds)
    for k in np.flatnonzero(status == convergence.CONVERGED):
        for c, y in enumerate(p.Y):
            expected = twins.heldout.refits_square(p.K, y, lams[k], p.starts, p.s, bias)
            atol = tolerances.weighted(p.s) * tolerances.exact(p.K, lams[k]) * (1 + np.abs(y).max())
            np.testing.assert_allclose(f[c, k] / root, expected, rtol=0, atol=10 * atol)


@given(problems.problems(weighted=True))
@pytest.mark.parametrize("bias", [0, 1])
def test_norms_of_fits_on_all_rows_come_from_the_same_factors(bias, p):
    root = np.sqrt(p.s)
    K, Y, free = p.K * root * root[:, None], p.Y * root, root if bias else None
    lams = calling.array(p.lam, p.lam / 3)
    folds = calling.folds(p.starts, p.s)
    # However few rows.
    _, norms, status = factored.heldout_factored(K, free, Y, lams, folds, step_rows=0.0)
    a = factored.coefficients_factored(K, free, Y, p.s.sum() * lams, np.ones((2, p.n), bool))
    exact, settled = np.einsum("cqi,ij,cqj->q", a, K, a), status == convergence.CONVERGED
    atol = tolerances.weighted(p.s) * tolerances.exact(p.K, p.lam / 3) * (1 + np.abs(Y).max()) ** 2
    np.testing.assert_allclose(norms[settled], exact[settled], rtol=1e-9, atol=100 * atol)
    _, none, _ = factored.heldout_factored(K, free, Y, lams, folds)
    assert np.isnan(none).all()


@given(problems.problems(weighted=True))
@pytest.mark.parametrize("bias", [0, 1])
def test_coefficients_are_those_of_the_eigendecomposition(bias, p):
    root = np.sqrt(p.s)
    K, free = p.K * root * root[:, None], root if bias else None
    ridges = p.s.sum() * calling.array(p.lam, 1.0)
    slow = Spectrum.of_gram(K, free).coefficients(p.Y * root, ridges)
    fast = factored.coefficients_factored(K, free, p.Y * root, ridges, np.ones((2, p.n), bool))
    atol = tolerances.weighted(p.s) * tolerances.exact(p.K, p.lam) * (1 + np.abs(p.Y).max())
    np.testing.assert_allclose(fast @ K, slow @ K, rtol=0, atol=100 * atol)


@pytest.mark.parametrize("lam", [1e-300, 1e-18])
def test_a_ridge_below_rounding_is_said(lam):
    K = np.ones((12, 12))
    Y = np.random.default_rng(0).normal(size=(1, 12))
    folds = calling.folds(problems.even(12, 3), np.ones(12))
    _, _, status = factored.heldout_factored(K, None, Y, calling.array(lam), folds)
    assert status.tolist() == [convergence.SINGULAR]
    assert np.isfinite(
        factored.coefficients_factored(K, None, Y, calling.array(12 * lam), np.ones((1, 12), bool))
    ).all()


def test_few_ridges_are_factorised_and_many_are_not():
    left = np.array([90.0, 90.0, 91.0])
    assert factored.factors_are_cheaper(np.ones(5), left)
    assert not factored.factors_are_cheaper(np.ones(6), left)


@pytest.mark.parametrize("lam", [1e100, 1e160, 1e250])
def test_under_a_huge_ridge_a_bias_predicts_the_mean_of_the_other_rows(lam):
    p = problems.make(0)
    folds = calling.folds(p.starts, p.s)
    f, _, status = factored.heldout_factored(p.K, np.ones(p.n), p.Y, calling.array(lam), folds)
    assert not status.any()
    for lo, hi in pairwise(folds.starts):
        others = np.delete(p.Y[0], np.arange(lo, hi)).mean()
        np.testing.assert_allclose(f[0, 0, lo:hi], others, atol=1e-12)
