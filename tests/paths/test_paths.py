"""A path answers every question about held-out rows as the twins do, in full and in low rank, for every output."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import losses
import tables
import tolerances
import twins.heldout
import twins.losses
from kernsel.errors import IncompatibleError
from kernsel.kernels import Gaussian, Linear
from kernsel.learners import Krr, Loss, Svm
from kernsel.numerics import lowrank
from kernsel.numerics.landmarks import uniform_landmarks
from kernsel.numerics.smooth import convergence
from kernsel.numerics.square import krylov
from kernsel.paths import HeldOut, make_path, routes, smooth
from kernsel.representation.problem import Problem

LAMS = (0.3, 0.01)


class BiasedKrr(Krr):
    """The square loss with a bias."""

    bias = True


class BiasedSvm(Svm):
    """The Huber hinge with a bias."""

    bias = True


LEARNERS = [
    (Krr(), twins.losses.square, 2.0),
    (BiasedKrr(), twins.losses.square, 2.0),
    (Svm(h=0.5, bias=False), twins.losses.huber_hinge(0.5), 1.0),
    (BiasedSvm(h=0.5), twins.losses.huber_hinge(0.5), 1.0),
]
learners = pytest.mark.parametrize(
    ("learner", "twin", "curvature"), LEARNERS, ids=["krr", "krr and bias", "svm", "svm and bias"]
)
ranks = pytest.mark.parametrize("rank", [None, 8], ids=["full", "rank 8"])
weights = pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])


def check(path, held, slow, curvature):
    """Compare with ``slow(Z, y, lam)`` for every output and lambda, on the rows that are held out."""
    Z, Y, n = slow_features(path), path.rows.Y, path.rows.held
    assert held.failed == [None] * path.lams.size
    for c, y in enumerate(Y):
        for k, lam in enumerate(path.lams):
            atol = tolerances.weighted(path.rows.s) * tolerances.curved(Z @ Z.T, lam, curvature)
            expected = slow(Z, y, lam)[:n]
            np.testing.assert_allclose(held.f[c, k, :n], expected, rtol=0, atol=atol * (1 + np.abs(y).max()))


def slow_features(path):
    return np.column_stack([tables.slow_features(path), np.ones((path.rows.n, int(path.bias)))])


def fitted(path, twin, Z, y, lam):
    return twins.heldout.fit(twin, Z, y, path.rows.s, lam, int(path.bias))


def make_path_for(learner, rank, weighted=False):
    """Rows in four folds, and five that are never held out where they are weighted."""
    rows = tables.make_rows(sizes=(5, 9, 2, 14, 5) if weighted else (5, 9, 2, 14))
    if weighted:
        rows = replace(rows, starts=rows.starts[:-1], weights=np.random.default_rng(1).exponential(size=rows.n) + 0.05)
    return tables.path_on(rows, learner, LAMS, rank=rank)


@learners
@ranks
@weights
def test_exact_is_brute_force(learner, twin, curvature, rank, weighted):
    path = make_path_for(learner, rank, weighted)
    held, rows = path.exact(), path.rows
    assert held.exact.all()
    assert not np.any(held.refitted)
    refits = twins.heldout.refits
    check(
        path, held, lambda Z, y, lam: refits(twin, Z, y, lam, rows.starts, rows.s, int(path.bias)), curvature
    )  # fmt: skip
    one = path.exact([1])
    np.testing.assert_allclose(one.f[:, 0, : rows.held], held.f[:, 1, : rows.held], atol=tolerances.PENALTY)


@learners
@ranks
@weights
def test_refits_are_the_models_without_each_fold(learner, twin, curvature, rank, weighted):
    path = make_path_for(learner, rank, weighted)
    rows = path.rows
    K = path.problem.kernel(rows.X, path.representation.points)
    for k in range(len(LAMS)):
        coefficients, intercepts = path.refits(k)
        assert path.bias or not intercepts.any()
        held = path.exact([k]).f[:, 0]
        for fold, (lo, hi) in enumerate(pairwise(rows.starts)):
            f = coefficients[fold] @ K[lo:hi].T + intercepts[fold][:, None]
            np.testing.assert_allclose(f, held[:, lo:hi], atol=1e-6)


@learners
@ranks
def test_a_fold_can_have_a_training_set_of_its_own(learner, twin, curvature, rank):
    path = make_path_for(learner, rank, weighted=True)
    rows = path.rows
    training = np.random.default_rng(2).random((4, rows.n)) < 0.6
    for fold, (lo, hi) in enumerate(pairwise(rows.starts)):
        training[fold, lo:hi] = False
    rows = replace(rows, training=training)
    np.testing.assert_allclose(rows.left, training @ rows.s)
    path = tables.path_on(rows, learner, LAMS, rank=rank)

    def refits(Z, y, lam):
        out = np.zeros(rows.n)
        for T, S in zip(training, twins.heldout.folds(rows.starts), strict=True):
            out[S] = Z[S] @ twins.heldout.fit(twin, Z[T], y[T], rows.s[T], lam, int(path.bias))
        return out

    for held in (path.exact(), path.newton_step()):
        assert held.exact.all()
        check(path, held, refits, curvature)
    for approximation in (lambda: path.influence(1), lambda: path.nystrom_influence(0.5), lambda: path.ratio):
        with pytest.raises(IncompatibleError, match="use the criterion cv"):
            approximation()


@pytest.fixture
def steps_only(monkeypatch):
    """Newton steps also where refits cost less."""
    monkeypatch.setattr(routes, "refits_are_cheaper", lambda curved, *_: np.zeros(curved.size, np.bool_))


@learners
@ranks
@weights
def test_the_newton_step_is_the_dense_one(steps_only, learner, twin, curvature, rank, weighted):
    path = make_path_for(learner, rank, weighted)
    path.trust = np.inf
    held, rows, bias = path.newton_step(), path.rows, int(path.bias)
    assert held.exact.all() == learner.loss.square
    step = twins.heldout.newton_step
    check(
        path,
        held,
        lambda Z, y, lam: step(twin, Z, y, lam, fitted(path, twin, Z, y, lam), rows.starts, rows.s, bias),
        curvature,
    )


@ranks
def test_folds_whose_step_strays_too_much_are_refitted(steps_only, rank):
    exact = make_path_for(Svm(h=0.2, bias=False), rank).exact()
    refitted, errors = [], []
    for trust in (0.0, 0.3, 0.6, np.inf):
        path = make_path_for(Svm(h=0.2, bias=False), rank)
        path.trust = trust
        held = path.newton_step()
        np.testing.assert_array_equal(held.exact, held.refitted == len(path.rows.Y) * path.rows.left.size)
        refitted.append(int(held.refitted[1]))
        errors.append(np.abs(held.f[:, 1] - exact.f[:, 1]).max())
    assert refitted == sorted(refitted, reverse=True)
    assert len(set(refitted)) > 2
    assert refitted[-1] == 0
    assert errors == sorted(errors)


@learners
@ranks
@weights
@pytest.mark.parametrize("order", [1, 3])
def test_the_influence_is_the_dense_series(learner, twin, curvature, rank, weighted, order):
    path = make_path_for(learner, rank, weighted)
    held, rows, bias = path.influence(order), path.rows, int(path.bias)
    assert not held.exact.any()
    series = twins.heldout.series
    check(
        path,
        held,
        lambda Z, y, lam: series(
            twin, Z, y, lam, fitted(path, twin, Z, y, lam), rows.starts, order, 1.0, rows.s, bias
        ),
        curvature,
    )  # fmt: skip


@learners
@ranks
@weights
def test_the_ratio_is_the_largest_over_folds_and_outputs(learner, twin, curvature, rank, weighted):
    path = make_path_for(learner, rank, weighted)
    Z, rows, bias = slow_features(path), path.rows, int(path.bias)
    for k, lam in enumerate(LAMS):
        expected = max(
            twins.heldout.ratios(
                twin, Z, y, lam, fitted(path, twin, Z, y, lam), rows.starts, rows.s, bias
            ).max()
            for y in rows.Y
        )  # fmt: skip
        # The folds are of very different sizes, which outputs follow one by one; rho is stopped early.
        assert path.ratio[k] == pytest.approx(expected, rel=tolerances.RHO)


def test_nystrom_influence_of_the_square_loss():
    path = tables.path_on(tables.make_rows(real=True), Krr(), LAMS)
    K, n = path.problem.gram, path.rows.n
    landmarks = uniform_landmarks(n, 6, path.rows.seed)
    V, _, _ = lowrank.nystrom_factor(K[:, landmarks], K[np.ix_(landmarks, landmarks)])
    held = path.nystrom_influence(0.2)
    for y, f in zip(path.rows.Y, held.f, strict=True):
        for k, lam in enumerate(LAMS):
            whole = K @ np.linalg.solve(K + n * lam * np.eye(n), y)
            expected = twins.heldout.nystrom_influence_square(K, V, y, lam, whole, path.rows.starts)
            np.testing.assert_allclose(f[k], expected, atol=tolerances.exact(K, lam) * 10)


def test_nystrom_influence_of_the_hinge():
    path = tables.path_on(tables.make_rows(), Svm(bias=False), LAMS)
    K, n = path.problem.gram, path.rows.n
    landmarks = uniform_landmarks(n, 6, path.rows.seed)
    V, _, _ = lowrank.nystrom_factor(K[:, landmarks], K[np.ix_(landmarks, landmarks)])
    held, Z = path.nystrom_influence(0.2), twins.heldout.features(K)
    for y, f in zip(path.rows.Y, held.f, strict=True):
        for k, lam in enumerate(LAMS):
            whole = Z @ fitted(path, twins.losses.huber_hinge(0.05), Z, y, lam)
            expected = twins.heldout.nystrom_influence_hinge(K, V, y, lam, 0.05, whole, path.rows.starts)
            np.testing.assert_allclose(f[k], expected, atol=1e3 * tolerances.PENALTY)


@learners
def test_nystrom_influence_in_low_rank_is_the_first_order(learner, twin, curvature):
    path = tables.path_on(tables.make_rows(), learner, LAMS, rank=8)
    np.testing.assert_array_equal(path.nystrom_influence(0.2).f, path.influence(1).f)


@learners
@ranks
@weights
def test_the_coefficients_are_those_of_the_fit(learner, twin, curvature, rank, weighted):
    path = make_path_for(learner, rank, weighted)
    K = path.problem.kernel(path.rows.X, path.representation.points)
    for k, lam in enumerate(LAMS):
        f = path.coefficients(k) @ K.T + path.intercepts(k)[:, None]
        assert path.intercepts(k).any() == path.bias
        np.testing.assert_allclose(f, path.fits.f[:, k], atol=1e-7)
        Z = slow_features(path)
        slow = [Z @ fitted(path, twin, Z, y, lam) for y in path.rows.Y]
        np.testing.assert_allclose(f, slow, atol=tolerances.curved(K @ K.T, lam, curvature) * 10)


@pytest.mark.parametrize("learner", [Krr(), BiasedKrr()], ids=["krr", "krr and bias"])
@weights
def test_a_factorisation_a_ridge_gives_what_dense_systems_give(learner, weighted):
    rows = tables.make_partition(0, (11, 9), never=10, weighted=weighted)
    path = tables.path_on(rows, learner, LAMS)
    path.thresholds = routes.Thresholds(factored=30)
    K, lam, bias = path.problem.gram, path.lams[1], int(path.bias)
    assert path.route == "factors"
    expected = twins.heldout.refits_square(K, rows.Y, lam, rows.starts, rows.s, bias)
    np.testing.assert_allclose(path.exact([1]).f[:, 0], expected, atol=1e-10)
    a, b = path.refits(1)
    for c, y in enumerate(rows.Y):
        fit = twins.heldout.fit_square(K, y, rows.s, lam, bias)
        np.testing.assert_allclose(path.coefficients(1)[c], fit[:-1], atol=1e-9)
        np.testing.assert_allclose(path.intercepts(1)[c], fit[-1], atol=1e-10)
        for fold, (lo, hi) in enumerate(pairwise(rows.starts)):
            np.testing.assert_allclose(K[lo:hi] @ a[fold, c] + b[fold, c], expected[c, lo:hi], atol=1e-9)
            assert not a[fold, c, lo:hi].any()
    assert not {"_plain_spectrum", "_spectrum_with_bias"} & vars(path.representation).keys()


@weights
def test_conjugate_gradients_give_what_one_spectrum_gives(weighted):
    lams = 2.0 ** np.arange(4, -24, -2)
    rows = tables.make_partition(0, (40, 25, 35), never=20, weighted=weighted)
    paths = [tables.path_on(rows, Krr(), lams, tau=0.05) for _ in range(2)]
    for path, route in zip(paths, ("spectrum", "krylov"), strict=True):
        path.route = route
    slow, fast = (path.exact() for path in paths)
    left = (paths[1].representation.weighted, rows.Y * np.sqrt(rows.s), lams, rows.folds)
    assert 0 < np.count_nonzero(krylov.heldout_krylov(*left)[2]) < lams.size  # the last ones don't converge
    assert fast.failed == slow.failed
    np.testing.assert_allclose(fast.f, slow.f, rtol=0, atol=1e-8)


@ranks
def test_groups_of_refits_do_not_change_them(rank):
    rows = tables.make_rows()
    whole, one_by_one = (tables.path_on(rows, Svm(bias=False), LAMS, rank=rank) for _ in range(2))
    one_by_one.room = 1
    np.testing.assert_array_equal(one_by_one.exact().f, whole.exact().f)


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
    path = tables.path_on(
        tables.Partition(rows.X, rows.Y, rows.starts, rows.order, tables.Statistics(rows.X)), Krr(), [lam]
    )
    held = path.exact()
    assert held.failed[0] is not None or ((held.f[:, 0] - rows.Y) ** 2).mean() > 0.1


def test_lambda_descends():
    path = make_path(Problem(tables.make_rows(), Gaussian(1.0)), Krr(), [0.1, 3.0, 1.0])
    assert path.lams.tolist() == [3.0, 1.0, 0.1]


def test_a_fold_leaves_the_other_rows():
    rows = tables.make_rows()
    np.testing.assert_array_equal(rows.left, rows.n - np.array([5, 9, 2, 14]))


def test_a_low_rank_at_full_rank_is_the_gram_matrix():
    rows = tables.make_rows()
    full, low = (Problem(rows, Gaussian(1.0), rank) for rank in (None, rows.n))
    Z, points, T, _ = low.held.factor
    np.testing.assert_allclose(Z @ Z.T, full.gram, atol=1e-7)  # columns stop where the residual is rounding
    np.testing.assert_allclose(low.kernel(rows.X, points) @ T, Z, atol=1e-7)


def test_the_representation_in_words():
    rows = tables.make_rows()
    assert Problem(rows, Gaussian(1.0)).held.describe() == "full Gram matrix, n = 30"
    assert Problem(rows, Gaussian(1.0), 5).held.describe().startswith("rank 5 of n = 30 (randomly pivoted Cholesky), ")
    assert Problem(rows, Linear(), 20).held.describe().startswith("rank 2 of n = 30 ")  # the rank that there is


def test_reasons_for_failure():
    f = np.zeros((2, 4, 3))
    f[1, 3, 2] = np.nan
    status = np.array([[0, convergence.SINGULAR, 0, 0], [0, convergence.UNFINISHED, convergence.UNFINISHED, 0]])
    held = HeldOut.of(f, status, exact=True)
    singular, unfinished, infinite = (
        convergence.REASONS[key] for key in (convergence.SINGULAR, convergence.UNFINISHED, convergence.NOT_FINITE)
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
        assert held.failed[1] in convergence.REASONS.values()


def test_a_singular_newton_system_is_refitted(monkeypatch, steps_only):
    path = tables.path_on(tables.make_rows(), Svm(h=0.5, bias=False), LAMS)
    update = smooth.update_folds

    def singular(*args, **kwargs):
        updated = update(*args, **kwargs)
        updated.status[0, 0] = convergence.SINGULAR
        return updated

    monkeypatch.setattr(smooth, "update_folds", singular)
    held, exact = path.newton_step(), path.exact()
    assert held.failed == [None, None]
    np.testing.assert_allclose(held.f[:, 0], exact.f[:, 0], atol=tolerances.PENALTY)
    assert np.abs(held.f[:, 1] - exact.f[:, 1]).max() > 1e-6


@ranks
def test_a_very_narrow_kink_is_reached_from_wider_ones(rank):
    X = np.random.default_rng(0).normal(size=(150, 5))
    y = np.where(X[:, 0] + 0.5 * np.random.default_rng(1).normal(size=150) > 0, 1.0, -1.0)
    rows = tables.Partition(X, y[None], np.array([0, 50, 100, 150]), np.arange(150), tables.Statistics(X))
    path = tables.path_on(rows, Svm(h=1e-5, bias=True), [1e-4, 1e-5], tau=5.0, rank=rank)
    assert not path.fits.status.any()
    Z, h = slow_features(path), 1e-5
    for k, lam in enumerate(path.lams):
        # d1 lies in the subdifferential of the hinge, and with it the fit is stationary
        u, d1 = y * path.fits.f[0, k], path.learner.loss.expand(rows.Y, rows.s, path.fits.f[:, k : k + 1])[1][0, 0]
        assert ((u > 1 + h) <= (d1 == 0)).all()
        assert np.abs(d1.sum()) < 1e-6 * rows.n
        f = Z[:, :-1] @ (Z[:, :-1].T @ d1) / (-2 * rows.n * lam) + path.intercepts(k)
        np.testing.assert_allclose(f, path.fits.f[0, k], atol=1e-3)
