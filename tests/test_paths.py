"""A path answers every question about held-out rows as the slow twins do, in full and in low rank, for every output."""

import numpy as np
import pytest

import losses
import reference
import tables
import tolerances
from kernsel import paths
from kernsel.kernels import Gaussian, Linear
from kernsel.learners import Krr, Loss, Svm
from kernsel.numerics import lowrank, newton
from kernsel.paths import HeldOut, fit_together, make_path
from kernsel.problem import Problem

LAMS = (0.3, 0.01)
LEARNERS = [(Krr(), reference.square, 2.0), (Svm(h=0.5), reference.huber_hinge(0.5), 1.0)]
learners = pytest.mark.parametrize(("learner", "twin", "curvature"), LEARNERS, ids=["krr", "svm"])
ranks = pytest.mark.parametrize("rank", [None, 8], ids=["full", "rank 8"])


def check(path, held, slow, curvature):
    """Compare with ``slow(Z, y, lam, w)`` for every output and lambda, w being the fit on all rows."""
    Z, Y, twin = tables.slow_features(path), path.rows.Y, held.f
    assert held.failed == [None] * path.lams.size
    for c, y in enumerate(Y):
        for k, lam in enumerate(path.lams):
            atol = tolerances.curved(Z @ Z.T, lam, curvature)
            np.testing.assert_allclose(twin[c, k], slow(Z, y, lam), rtol=0, atol=atol * (1 + np.abs(y).max()))


def fitted(twin, Z, y, lam):
    return reference.fit(twin, Z, y, np.ones(y.size), lam)


@learners
@ranks
def test_exact_is_brute_force(learner, twin, curvature, rank):
    path = tables.path_on(tables.make_rows(), learner, LAMS, rank=rank)
    held = path.exact()
    assert held.exact.all()
    check(path, held, lambda Z, y, lam: reference.refits(twin, Z, y, lam, path.rows.starts), curvature)
    one = path.exact([1])
    np.testing.assert_allclose(one.f[:, 0], held.f[:, 1], atol=tolerances.PENALTY)


@learners
@ranks
def test_the_newton_step_is_the_dense_one(learner, twin, curvature, rank):
    path = tables.path_on(tables.make_rows(), learner, LAMS, rank=rank)
    held, starts = path.newton_step(), path.rows.starts
    assert held.exact.all() == learner.loss.square
    step = reference.newton_step
    check(path, held, lambda Z, y, lam: step(twin, Z, y, lam, fitted(twin, Z, y, lam), starts), curvature)


@learners
@ranks
@pytest.mark.parametrize("order", [1, 3])
def test_the_influence_is_the_dense_series(learner, twin, curvature, rank, order):
    path = tables.path_on(tables.make_rows(), learner, LAMS, rank=rank)
    held, starts = path.influence(order), path.rows.starts
    assert not held.exact.any()
    series = reference.series
    check(path, held, lambda Z, y, lam: series(twin, Z, y, lam, fitted(twin, Z, y, lam), starts, order), curvature)


@learners
@ranks
def test_the_ratio_is_the_largest_over_folds_and_outputs(learner, twin, curvature, rank):
    path = tables.path_on(tables.make_rows(), learner, LAMS, rank=rank)
    Z = tables.slow_features(path)
    for k, lam in enumerate(LAMS):
        expected = max(
            reference.ratios(twin, Z, y, lam, fitted(twin, Z, y, lam), path.rows.starts).max() for y in path.rows.Y
        )
        # The folds are of very different sizes, which outputs follow one by one; rho is stopped early.
        assert path.ratio[k] == pytest.approx(expected, rel=tolerances.RHO)


def test_nystrom_influence_of_the_square_loss():
    path = tables.path_on(tables.make_rows(real=True), Krr(), LAMS)
    K, n = path.problem.gram, path.rows.n
    landmarks = lowrank.uniform_landmarks(n, 6, path.rows.seed)
    V, _, _ = lowrank.nystrom_factor(K[:, landmarks], K[np.ix_(landmarks, landmarks)])
    held = path.nystrom_influence(0.2)
    for y, f in zip(path.rows.Y, held.f, strict=True):
        for k, lam in enumerate(LAMS):
            whole = K @ np.linalg.solve(K + n * lam * np.eye(n), y)
            expected = reference.nystrom_influence_square(K, V, y, lam, whole, path.rows.starts)
            np.testing.assert_allclose(f[k], expected, atol=tolerances.exact(K, lam) * 10)


def test_nystrom_influence_of_the_hinge():
    path = tables.path_on(tables.make_rows(), Svm(), LAMS)
    K, n = path.problem.gram, path.rows.n
    landmarks = lowrank.uniform_landmarks(n, 6, path.rows.seed)
    V, _, _ = lowrank.nystrom_factor(K[:, landmarks], K[np.ix_(landmarks, landmarks)])
    held, Z = path.nystrom_influence(0.2), reference.features(K)
    for y, f in zip(path.rows.Y, held.f, strict=True):
        for k, lam in enumerate(LAMS):
            whole = Z @ fitted(reference.huber_hinge(0.05), Z, y, lam)
            expected = reference.nystrom_influence_hinge(K, V, y, lam, 0.05, whole, path.rows.starts)
            np.testing.assert_allclose(f[k], expected, atol=1e3 * tolerances.PENALTY)


@learners
def test_nystrom_influence_in_low_rank_is_the_first_order(learner, twin, curvature):
    path = tables.path_on(tables.make_rows(), learner, LAMS, rank=8)
    np.testing.assert_array_equal(path.nystrom_influence(0.2).f, path.influence(1).f)


@learners
@ranks
def test_the_coefficients_are_those_of_the_fit(learner, twin, curvature, rank):
    path = tables.path_on(tables.make_rows(), learner, LAMS, rank=rank)
    K = path.problem.kernel(path.rows.X, path.points())
    for k, lam in enumerate(LAMS):
        f = path.coefficients(k) @ K.T
        np.testing.assert_allclose(f, path.fits.f[:, k], atol=1e-7)
        Z = tables.slow_features(path)
        slow = [Z @ fitted(twin, Z, y, lam) for y in path.rows.Y]
        np.testing.assert_allclose(f, slow, atol=tolerances.curved(K @ K.T, lam, curvature) * 10)


@ranks
def test_groups_of_refits_do_not_change_them(monkeypatch, rank):
    rows = tables.make_rows()
    whole = tables.path_on(rows, Svm(), LAMS, rank=rank).exact()
    monkeypatch.setattr(paths, "REFIT_BYTES", 1)
    one_by_one = tables.path_on(rows, Svm(), LAMS, rank=rank).exact()
    np.testing.assert_array_equal(one_by_one.f, whole.f)


@ranks
@pytest.mark.parametrize("learner", [Krr(), Svm()], ids=["krr", "svm"])
def test_a_fit_does_not_depend_on_its_company(learner, rank):
    rows, widths = tables.make_rows(), (0.5, 1.0, 2.0)
    together = [tables.path_on(rows, learner, LAMS, tau, rank) for tau in widths]
    fit_together(together)
    for path, tau in zip(together, widths, strict=True):
        alone = tables.path_on(rows, learner, LAMS, tau, rank)
        fit_together([alone])
        np.testing.assert_array_equal(path.fits.f, alone.fits.f)
        np.testing.assert_array_equal(path.newton_step().f, alone.newton_step().f)


@pytest.mark.parametrize("lam", [1e-12, 1e-16, 1e-20, 1e-300])
@pytest.mark.parametrize("sizes", [(5, 9, 2, 14), (15, 15), (1,) * 30])
def test_an_interpolating_fit_does_not_predict_what_it_has_not_seen(lam, sizes):
    """A kernel that is the identity on the rows knows nothing of a held-out row, however small the ridge."""
    path = tables.path_on(tables.make_rows(sizes=sizes, real=True), Krr(), [lam], tau=1e-9)
    np.testing.assert_allclose(path.exact().f, 0.0, atol=1e-12)


@pytest.mark.parametrize("lam", [1e-15, 1e-18, 1e-300])
def test_a_ridge_below_rounding_fails_or_is_pessimistic(lam):
    """Rows that coincide, with unrelated targets: their mean square error is at least that of their mean."""
    rows = tables.make_rows(sizes=(15, 15), real=True)
    rows.X[15:] = rows.X[:15]
    path = tables.path_on(tables.Rows(rows.X, rows.Y, rows.starts, rows.order, tables.Statistics(rows.X)), Krr(), [lam])
    held = path.exact()
    assert held.failed[0] is not None or ((held.f[:, 0] - rows.Y) ** 2).mean() > 0.1


def test_lambda_descends():
    path = make_path(Problem(tables.make_rows(), Gaussian(1.0)), Krr(), [0.1, 3.0, 1.0])
    assert path.lams.tolist() == [3.0, 1.0, 0.1]


def test_rows_return_to_their_places():
    rows = tables.make_rows()
    given = np.empty_like(rows.X)
    given[rows.order] = rows.X
    np.testing.assert_array_equal(rows.as_given(rows.X.T), given.T)
    np.testing.assert_array_equal(rows.left, rows.n - np.array([5, 9, 2, 14]))


def test_a_low_rank_at_full_rank_is_the_gram_matrix():
    rows = tables.make_rows()
    full, low = (Problem(rows, Gaussian(1.0), rank) for rank in (None, rows.n))
    Z, landmarks, T, _ = low.factor
    np.testing.assert_allclose(Z @ Z.T, full.gram, atol=1e-7)  # columns stop where the residual is rounding
    np.testing.assert_allclose(full.gram[:, landmarks] @ T, Z, atol=1e-7)


def test_the_representation_in_words():
    rows = tables.make_rows()
    assert Problem(rows, Gaussian(1.0)).describe() == "full Gram matrix, n = 30"
    assert Problem(rows, Gaussian(1.0), 5).describe().startswith("rank 5 of n = 30 (randomly pivoted Cholesky), ")
    assert Problem(rows, Linear(), 20).describe().startswith("rank 2 of n = 30 ")  # the rank that there is


def test_reasons_for_failure():
    f = np.zeros((2, 4, 3))
    f[1, 3, 2] = np.nan
    status = np.array([[0, newton.SINGULAR, 0, 0], [0, newton.UNFINISHED, newton.UNFINISHED, 0]])
    held = HeldOut.of(f, status, exact=True)
    singular, unfinished, infinite = (
        newton.REASONS[key] for key in (newton.SINGULAR, newton.UNFINISHED, newton.NOT_FINITE)
    )
    assert held.failed == [None, singular, unfinished, infinite]


class Breaking(Krr):
    """A loss that has no value where an output is above 1.5."""

    @property
    def loss(self):
        return Loss("breaking", _breaking)


@losses.pointer(losses.LOSS)
def _breaking(y, f, parameters):
    return (np.nan if f > 1.5 else (y - f) ** 2), 2.0 * (f - y), 2.0


def test_a_fit_that_fails_says_so_and_the_others_stand():
    rows = tables.make_rows(real=True)
    path = tables.path_on(rows, Breaking(), (1e3, 1e-9), tau=0.1)
    assert np.abs(rows.Y).max() > 1.5
    for held in (path.newton_step(), path.exact(), path.influence(1), path.nystrom_influence(0.5)):
        assert held.failed[0] is None
        assert held.failed[1] in newton.REASONS.values()


def test_a_singular_newton_system_is_refitted(monkeypatch):
    path = tables.path_on(tables.make_rows(), Svm(h=0.5), LAMS)
    update = path._update

    def singular(*args):
        f, status, rho = update(*args)
        status[0, 0] = newton.SINGULAR
        return f, status, rho

    monkeypatch.setattr(path, "_update", singular)
    held, exact = path.newton_step(), path.exact()
    assert held.failed == [None, None]
    np.testing.assert_allclose(held.f[:, 0], exact.f[:, 0], atol=tolerances.PENALTY)
    assert np.abs(held.f[:, 1] - exact.f[:, 1]).max() > 1e-6
