"""Leverages are the diagonal of the hat matrix, and they are the ratios of folds of one row."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import problems
import tables
import tolerances
import twins.heldout
import twins.leaveoneout
import twins.losses
from kernsel.learners import Klr, L2Svm, Svm
from kernsel.numerics.square.leverage import leverages_in_features, leverages_in_kernel
from kernsel.paths.routes import Thresholds


@settings(max_examples=20)
@given(p=problems.problems(weighted=True, lams=(-12, 3)), bias=st.integers(0, 1), straight=st.booleans())
def test_leverages_are_the_diagonal_of_the_hat_matrix(p, bias, straight):
    d2 = 2 * p.s * (np.random.default_rng(p.n).random(p.n) < 0.5 if straight else 1.0)
    d2[0] = 2 * p.s[0]
    Z, mu = p.features(bias), 2 * p.s.sum() * p.lam
    C = np.sqrt(d2)[:, None] * Z
    H = C @ np.linalg.solve(C.T @ C + mu * np.diag(twins.heldout.ridged(Z, bias)), C.T)
    atol = tolerances.weighted(p.s) * tolerances.curved(p.K, p.lam)
    np.testing.assert_allclose(leverages_in_kernel(p.K, bias, d2, mu), np.diag(H), atol=atol)
    np.testing.assert_allclose(leverages_in_features(Z, bias, d2, mu), np.diag(H), atol=atol)


@settings(max_examples=20)
@given(p=problems.problems(weighted=True, lams=(-12, 3)), bias=st.integers(0, 1))
def test_the_ratio_of_a_single_row_is_its_leverage_but_for_its_share_of_the_weight(p, bias):
    Z, starts = p.features(bias), twins.leaveoneout.singles(p.n)
    H = leverages_in_kernel(p.K, bias, 2 * p.s, 2 * p.s.sum() * p.lam)
    w = np.zeros(Z.shape[1])
    rho = twins.heldout.ratios(twins.losses.square, Z, p.y, p.lam, w, starts, p.s, bias)
    share = p.s / (p.s.sum() - p.s)
    assert (np.abs(rho - H) <= share + tolerances.weighted(p.s) * tolerances.curved(p.K, p.lam)).all()


@pytest.mark.parametrize(
    "learner",
    [Svm(h=0.5, bias=False), Svm(h=0.5, bias=True), Klr(bias=False), L2Svm(bias=False)],
    ids=lambda each: each.name,
)
@pytest.mark.parametrize("rank", [None, 8], ids=["full", "rank 8"])
def test_a_path_of_many_single_rows_takes_ratios_from_leverages(learner, rank):
    rows = tables.make_rows(sizes=(1,) * 28)
    slow, fast = (tables.path_on(rows, learner, (1.0, 0.01), rank=rank) for _ in range(2))
    fast.thresholds = Thresholds(single=28)
    np.testing.assert_allclose(fast.ratio, slow.ratio, rtol=tolerances.RHO, atol=1 / 29)
    assert slow.ratio[1] > 0.1


def test_a_ridge_below_rounding_is_the_least_sure():
    path = tables.path_on(tables.make_rows(sizes=(1,) * 30), L2Svm(bias=False), (1e-30,), tau=1e9)
    path.thresholds = Thresholds(single=30)
    assert path.ratio.tolist() == [np.inf]
