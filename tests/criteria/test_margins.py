"""Criteria of margins: each its twin, the bounds by exact refits, and whom they can't judge."""

from dataclasses import replace

import numpy as np
import pytest

import tables
import tolerances
import twins.losses
import twins.margins
from kernsel.criteria import GACV, RadiusMargin, Span, XiAlpha
from kernsel.errors import IncompatibleError, OptionError
from kernsel.learners import Klr, Krr, L2Svm, Svm
from kernsel.numerics.smooth.ball import GAP
from kernsel.numerics.smooth.convergence import REASONS, SINGULAR

LAMS = (0.3, 0.03, 0.003)
LEARNERS = {
    "svm": (Svm(h=0.05, bias=False), twins.losses.huber_hinge(0.05)),
    "svm, bias": (Svm(h=0.05, bias=True), twins.losses.huber_hinge(0.05)),
    "l2svm": (L2Svm(bias=False), twins.losses.squared_hinge),
    "l2svm, bias": (L2Svm(bias=True), twins.losses.squared_hinge),
}
EVERY = pytest.mark.parametrize("name", LEARNERS)
HINGE = pytest.mark.parametrize("name", ["svm", "svm, bias"])
CONTEXTS = pytest.mark.parametrize(
    ("rank", "weighted"), [(None, False), (None, True), (8, True)], ids=["full", "weights", "rank 8"]
)


def path_of(learner, rank=None, weighted=False, seed=0, lams=LAMS, sizes=(5, 9, 2, 14)):
    rows = tables.make_rows(seed, sum(sizes), sizes)
    if weighted:
        rows = replace(rows, weights=np.random.default_rng(seed).exponential(size=rows.n) + 0.1)
    return tables.path_on(rows, learner, lams, rank=rank)


def slow_features(path):
    Z = tables.slow_features(path)
    return np.column_stack([Z, np.ones((path.rows.n, int(path.bias)))])


def by_output(path, twin, criterion, **options):
    """The twin's mean over outputs for each lambda."""
    Z, rows, bias = slow_features(path), path.rows, int(path.bias)
    return [np.mean([criterion(twin, Z, y, rows.s, lam, bias, **options) for y in rows.Y], axis=0) for lam in path.lams]


@HINGE
@CONTEXTS
def test_gacv_is_its_slow_twin(name, rank, weighted):
    learner, twin = LEARNERS[name]
    path = path_of(learner, rank, weighted)
    scores = GACV().score(path)
    assert scores.failed == [None] * 3
    np.testing.assert_allclose(scores.score, by_output(path, twin, twins.margins.gacv), rtol=tolerances.FITTED)
    np.testing.assert_allclose(scores.terms["fit"] + scores.terms["penalty"], scores.score)


@EVERY
@CONTEXTS
def test_span_is_one_newton_step_a_row(name, rank, weighted):
    learner, twin = LEARNERS[name]
    path = path_of(learner, rank, weighted)
    held, rows, Z = Span().heldout(path), path.rows, slow_features(path)
    assert held.failed == [None] * 3
    assert not held.exact.any()
    for k, lam in enumerate(path.lams):
        F = [twins.margins.one_step(twin, Z, y, rows.s, lam, int(path.bias)) for y in rows.Y]
        np.testing.assert_allclose(held.f[:, k], F, rtol=0, atol=tolerances.FITTED)
    share = (rows.Y[:, None] * held.f < 0).mean(axis=0)
    np.testing.assert_allclose(Span().score(path).score, rows.mean(share))


@pytest.mark.parametrize("seed", range(3))
def test_span_is_exact_where_no_row_changes_its_piece(seed):
    path = path_of(L2Svm(bias=False), seed=seed, lams=(3.0,))
    Z, y = slow_features(path), path.rows.Y[0]
    assert (y * path.fits.f[0, 0] < 1).all()
    exact = twins.margins.left_out(twins.losses.squared_hinge, Z, y, path.rows.s, 3.0)
    np.testing.assert_allclose(Span().heldout(path).f[0, 0], exact, rtol=0, atol=tolerances.FITTED)


@pytest.mark.parametrize("h", [0.5, 0.05, 0.02])
def test_span_takes_most_of_the_optimism_out_of_the_training_loss(h):
    off, optimism = [], []
    for seed in range(2):
        path = path_of(Svm(h=h, bias=False), seed=seed, lams=(0.03, 0.01))
        Z, y, near = slow_features(path), path.rows.Y[0], Span().heldout(path).f[0]
        for k, lam in enumerate(path.lams):
            exact = twins.margins.left_out(twins.losses.huber_hinge(h), Z, y, path.rows.s, lam)
            trained, stepped, left = (np.maximum(1 - y * f, 0).mean() for f in (path.fits.f[0, k], near[k], exact))
            off.append(stepped - left)
            optimism.append(left - trained)
    assert np.abs(off).mean() < 0.3 * np.mean(optimism)


def test_an_output_of_zero_counts_half():
    assert Span().measure(np.ones((2, 3)), np.array([[1.0, 0.0, -1.0], [1.0, 1.0, 2.0]])).tolist() == [0.0, 0.25, 0.5]


@pytest.mark.parametrize("rank", [None, 8])
def test_span_of_a_bias_that_no_row_settles(rank):
    path = path_of(Svm(h=1e-5, bias=True), rank, lams=(0.1,))
    path.fits.f[:] = 3.0
    assert Span().score(path).failed == [REASONS[SINGULAR]]


@pytest.mark.parametrize("name", ["svm", "svm, bias", "l2svm"])
@CONTEXTS
def test_xi_alpha_is_its_slow_twin(name, rank, weighted):
    learner, twin = LEARNERS[name]
    path = path_of(learner, rank, weighted)
    np.testing.assert_allclose(
        XiAlpha().score(path).score, by_output(path, twin, twins.margins.xi_alpha), rtol=tolerances.SUMS
    )


@pytest.mark.parametrize("name", ["svm", "l2svm"])
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
def test_xi_alpha_and_gacv_bound_leave_one_out(name, weighted):
    learner, twin = LEARNERS[name]
    path = path_of(learner, weighted=weighted, lams=LAMS[:2])
    Z, Y, s = slow_features(path), path.rows.Y, path.rows.s
    scores = XiAlpha().score(path)
    for k, lam in enumerate(path.lams):
        u = Y * [twins.margins.left_out(twin, Z, y, s, lam) for y in Y]
        assert (u < 0).mean(axis=0) @ s / s.sum() <= scores.score[k]
        hinge = np.maximum(1 - u, 0).mean(axis=0) @ s / s.sum()
        assert hinge <= scores.loss[k] + tolerances.FITTED
        if name == "svm":
            assert hinge <= GACV().score(path).score[k] + tolerances.FITTED


def test_a_smaller_rho_counts_fewer_rows():
    path = path_of(Svm(bias=True))
    one, two = (XiAlpha(rho=rho).score(path).score for rho in (1, 2))
    assert (one <= two).all()
    assert (one < two).any()
    np.testing.assert_array_equal(two, XiAlpha().score(path).score)
    with pytest.raises(OptionError, match="rho must be greater than 0, such as 1 or 2, not 0"):
        XiAlpha(rho=0)


@EVERY
@CONTEXTS
def test_radius_margin_is_its_slow_twin(name, rank, weighted):
    learner, twin = LEARNERS[name]
    path = path_of(learner, rank, weighted, sizes=(3, 4, 5))
    expected = by_output(path, twin, twins.margins.radius_margin, squared=isinstance(learner, L2Svm))
    np.testing.assert_allclose(RadiusMargin().score(path).score, expected, rtol=2 * GAP)


def test_radius_margin_bounds_leave_one_out_of_the_squared_hinge_with_a_bias():
    path = path_of(L2Svm(bias=True))
    Z, Y, s = slow_features(path), path.rows.Y, path.rows.s
    for k, lam in enumerate(path.lams):
        outputs = [twins.margins.left_out(twins.losses.squared_hinge, Z, y, s, lam, 1) for y in Y]
        assert (Y * outputs < 0).mean() <= RadiusMargin().score(path).score[k]


@pytest.mark.parametrize(
    ("criterion", "learner", "message"),
    [
        (
            GACV(),
            L2Svm(bias=False),
            "criterion 'gacv' needs the huber-hinge loss; learner 'l2svm' has another: use svm, or the",
        ),
        (
            Span(),
            Klr(bias=False),
            "criterion 'span' needs the huber-hinge or squared-hinge loss; learner 'klr' has another",
        ),
        (RadiusMargin(), Krr(), "use svm or l2svm, or the criterion newton-cv"),
        (XiAlpha(), Krr(), "criterion 'xi-alpha' needs"),
        (XiAlpha(), L2Svm(bias=True), "criterion 'xi-alpha' needs the huber-hinge loss"),
    ],
)
def test_who_cannot_be_judged(criterion, learner, message):
    with pytest.raises(IncompatibleError, match=message):
        criterion.score(path_of(learner))


@pytest.mark.parametrize("criterion", ["gacv", "span", "xi-alpha", "radius-margin"])
@pytest.mark.parametrize("options", [{}, {"rank": 20, "search": "halving"}], ids=["full", "low rank"])
def test_selections(criterion, options):
    X, y = tables.circles(n=80)
    options = {"learner": "svm(bias=false)", "choose": "minimum", **options}
    result = tables.choose(X, y, criterion=criterion, grid=tables.SMALL, **options)
    assert result.best.verified is not None
    assert result.best.error < 0.35
