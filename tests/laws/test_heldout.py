"""Laws of the held-out outputs: what is called exact is, and the approximations are the formulas they claim to be."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import calling
import losses
import problems
import tolerances
import twins.heldout
import twins.losses
from kernsel.numerics.smooth import convergence, heldout, heldout_features, heldout_kernel, newton
from kernsel.numerics.square import heldout as square
from kernsel.numerics.square.influence import influence_square
from kernsel.numerics.square.spectral import Spectrum

RUNS = [
    (newton.in_kernel, heldout_kernel.newton_step, heldout_kernel.influence),
    (newton.in_features, heldout_features.newton_step, heldout_features.influence),
]
spaces = pytest.mark.parametrize(("problem", "step", "influence"), RUNS, ids=["kernel", "features"])


def close(actual, expected, atol):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=atol * (1 + np.abs(expected).max()))


biases = st.sampled_from([0, 1])


def low_rank(p, rank=None):
    """Features of K, or of a part of it, and the K that they stand for."""
    Z = p.Z if rank is None else np.ascontiguousarray(p.Z[:, -rank:])
    return Z, p.K if rank is None else Z @ Z.T


def spectrum(p, Z, K, bias):
    """The spectrum in the coordinates of S^1/2, from the Gram matrix if there is no low rank."""
    root = np.sqrt(p.s)
    free = root if bias else None
    if Z.shape[1] == p.n:
        return Spectrum.of_gram(K * root * root[:, None], free)
    return Spectrum.of_features(Z * root[:, None], free)


def matrix(problem, p, bias):
    return p.K if problem is newton.in_kernel else p.features(bias)


def both_classes(p, S, s):
    return np.unique(np.delete(p.y * (s > 0), S)).size - (s == 0).any() >= 2


def certain(loss, p, bias, s=None):
    """A fit whose bias is settled: some curved row says where it is, also without any one fold."""
    s = p.s if s is None else s
    if bias and loss is not losses.SQUARE:  # of one class alone there is no bias, or an infinite one
        assume(all(both_classes(p, S, s) for S in [np.zeros(0, int), *twins.heldout.folds(p.starts)]))
    w = twins.heldout.fit(loss.twin, p.features(bias), p.y, s, p.lam, bias)
    curved = (s > 0) & (loss.twin(p.y, p.features(bias) @ w)[2] > 1e-3 * loss.curvature)
    if bias:
        assume(all(np.delete(curved, S).any() for S in twins.heldout.folds(p.starts)))
    return w


@given(problems.problems(weighted=True), st.sampled_from([None, 2, 5, 12]), biases)
def test_exact_cv_of_the_square_loss_equals_brute_force(p, rank, bias):
    Z, K = low_rank(p, rank)
    lams, root = calling.array(1.0, p.lam), np.sqrt(p.s)
    found = spectrum(p, Z, K, bias)
    out, status = square.heldout_square(found, p.Y * root, lams, calling.folds(p.starts, p.s))
    assert not status.any()
    for k, lam in enumerate(lams):
        expected = twins.heldout.refits_square(K, p.Y, lam, p.starts, p.s, bias)
        atol = tolerances.weighted(p.s) * tolerances.exact(K, lam) + tolerances.orthonormal(found.U)
        close(out[:, k] / root, expected, atol)


@given(problems.problems(lams=(-8, 3)), st.sampled_from([None, 3, 10]), biases)
def test_exact_cv_is_exact_to_nine_digits(p, rank, bias):
    Z, K = low_rank(p, rank)
    lams = calling.array(p.lam)
    out, _ = square.heldout_square(spectrum(p, Z, K, bias), p.Y, lams, calling.folds(p.starts, p.s))
    expected = twins.heldout.refits_square(K, p.Y, p.lam, p.starts, bias=bias)
    np.testing.assert_allclose(out[:, 0], expected, rtol=0, atol=1e-9)


@given(problems.problems(weighted=True), st.sampled_from([None, 4, 15]), biases)
def test_both_ways_to_leave_a_fold_out_agree(p, rank, bias):
    Z, K = low_rank(p, rank)
    lams, root, folds = calling.array(p.lam), np.sqrt(p.s), calling.folds(p.starts, p.s)
    outs = [
        square.for_folds(
            square.without_block, *spectrum(p, Z, K, bias), 0, p.Y * root, np.zeros((0, 0)), lams, folds, 0
        )
    ]
    Z = np.ascontiguousarray(np.column_stack([Z, np.ones((p.n, bias))]) * root[:, None])
    outs.append(
        square.for_folds(
            square.without_products, Z, np.zeros(0), bias, p.Y * root, Z.T @ Z, lams, folds, 0
        )
    )  # fmt: skip
    outs.append((*square.heldout_features(Z, Z.T @ Z, bias, p.Y * root, lams, folds), None))
    for out, status, _ in outs:
        assert not status.any()
        close(out / root, outs[0][0] / root, tolerances.weighted(p.s) * tolerances.exact(K, p.lam))


@given(problems.problems(lams=(-10, 3), weighted=True), biases)
def test_leave_one_out(p, bias):
    starts = np.arange(p.n + 1)
    lams, root = calling.array(p.lam), np.sqrt(p.s)
    out, status = square.heldout_square(
        spectrum(p, p.Z, p.K, bias), p.Y * root, lams, calling.folds(starts, p.s)
    )  # fmt: skip
    assert not status.any()
    atol = tolerances.weighted(p.s) * tolerances.exact(p.K, p.lam)
    close(out[:, 0] / root, twins.heldout.refits_square(p.K, p.Y, p.lam, starts, p.s, bias), atol)
    if not bias and (p.s == 1).all():
        A = np.linalg.inv(p.K + (p.n - 1) * p.lam * np.eye(p.n))
        close(out[:, 0], p.Y - (p.Y @ A) / np.diag(A), atol)


@spaces
@settings(max_examples=15)
@given(p=problems.problems(lams=(-10, 3), weighted=True), loss=st.sampled_from(losses.ALL), bias=biases)
def test_exact_cv_of_any_loss_is_a_fit_with_weights_zero(problem, step, influence, p, loss, bias):
    for S in twins.heldout.folds(p.starts):
        s = p.s.copy()
        s[S] = 0
        certain(loss, p, bias, s)
    expected = twins.heldout.refits(loss.twin, p.features(bias), p.y, p.lam, p.starts, p.s, bias)
    for S in twins.heldout.folds(p.starts):
        s = p.s.copy()
        s[S] = 0
        fits = calling.fit(problem, loss, matrix(problem, p, bias), p.y, calling.array(p.lam), s, bias=bias)
        assert not fits.status.any()
        close(fits.f[0, S], expected[S], tolerances.weighted(p.s) * tolerances.curved(p.K, p.lam, loss.curvature))


@spaces
@given(p=problems.problems(lams=(-12, 3), weighted=True), loss=st.sampled_from(losses.ALL), bias=biases)
def test_newton_step_is_the_dense_one(problem, step, influence, p, loss, bias):
    G, lams, w = matrix(problem, p, bias), calling.array(p.lam), certain(loss, p, bias)
    fits = calling.fit(problem, loss, G, p.y, lams, p.s, bias=bias)
    out, _, status = calling.update(step, G, fits, lams, p.starts, bias=bias)
    assert not fits.status.any()
    assert not status.any()
    expected = twins.heldout.newton_step(loss.twin, p.features(bias), p.y, p.lam, w, p.starts, p.s, bias)
    close(out[0], expected, tolerances.weighted(p.s) * tolerances.curved(p.K, p.lam, loss.curvature))


@spaces
@given(p=problems.problems(lams=(-10, 3), weighted=True), bias=biases)
def test_newton_step_is_exact_for_the_square_loss(problem, step, influence, p, bias):
    G, lams = matrix(problem, p, bias), calling.array(p.lam)
    fits = calling.fit(problem, losses.SQUARE, G, p.Y[0], lams, p.s, bias=bias)
    out, _, _ = calling.update(step, G, fits, lams, p.starts, bias=bias)
    expected = twins.heldout.refits_square(p.K, p.Y[0], p.lam, p.starts, p.s, bias)
    close(out[0], expected, tolerances.weighted(p.s) * tolerances.curved(p.K, p.lam))


@spaces
@given(p=problems.problems(lams=(-10, 3), weighted=True), bias=biases, loss=st.sampled_from(losses.ALL))
def test_a_fold_whose_step_strays_from_what_it_promises_is_marked(problem, step, influence, p, bias, loss):
    G, lams = matrix(problem, p, bias), calling.array(p.lam)
    w = certain(loss, p, bias)
    fits = calling.fit(problem, loss, G, p.y, lams, p.s, bias=bias)
    out, _, status = calling.update(step, G, fits, lams, p.starts, bias=bias, trust=0.3)
    free, _, _ = calling.update(step, G, fits, lams, p.starts, bias=bias)
    np.testing.assert_array_equal(out, free)
    Z, wide = p.features(bias), 10 * tolerances.weighted(p.s) * tolerances.curved(p.K, p.lam, loss.curvature)
    for fold, S in enumerate(twins.heldout.folds(p.starts)):
        T = np.delete(np.arange(p.n), S)
        delta = twins.heldout.step_of(loss.twin, Z, p.y, p.lam, w, S, p.s, bias)
        value, slope = twins.heldout.objective(loss.twin, Z[T], p.y[T], p.s[T], p.lam, w, bias)[:2]
        reached = twins.heldout.objective(loss.twin, Z[T], p.y[T], p.s[T], p.lam, w + delta, bias)[0]
        (v, d1, d2), df = loss.twin(p.y, Z @ w), Z @ delta
        off = loss.twin(p.y, Z @ (w + delta))[0] - (v + d1 * df + d2 * df**2 / 2)
        stray, promise = p.s[T] @ np.abs(off[T]) / p.s[T].sum(), -slope @ delta / 2
        limit = 0.3 * promise + heldout.NEGLIGIBLE * value
        if abs(stray - limit) > wide * (1 + np.abs(df).max()):
            assert (status[0, fold] == convergence.ASTRAY) == (stray > limit)
        if status[0, fold] == convergence.CONVERGED:
            assert reached <= value - 0.7 * promise + heldout.NEGLIGIBLE * value + wide * (1 + np.abs(df).max())


@spaces
@given(p=problems.problems(lams=(-10, 3), weighted=True), bias=biases, loss=st.sampled_from(losses.ALL))
def test_the_ratio_of_a_step_is_that_of_the_series(problem, step, influence, p, bias, loss):
    G, lams = matrix(problem, p, bias), calling.array(p.lam)
    certain(loss, p, bias)
    fits = calling.fit(problem, loss, G, p.y, lams, p.s, bias=bias)
    _, rho, status = calling.update(step, G, fits, lams, p.starts, 1, bias=bias)
    _, expected, _ = calling.update(influence, G, fits, lams, p.starts, 0, bias=bias)
    assert not status.any()
    if problem is newton.in_features:
        np.testing.assert_array_equal(rho, expected)
    else:  # mu' is mu without the share of the fold
        gone = 1 - calling.kept(p.s, p.starts) / p.s.sum()
        few = (gone <= 0.25) & (expected[0] < 1)
        atol = gone * (1 - expected[0]) + tolerances.RHO * expected[0] + tolerances.RHO_FLOOR
        asked = rho[0] > 0  # the ratios of others are no larger, and not looked at
        assert (np.abs(rho[0] - expected[0])[few & asked] <= atol[few & asked]).all()
        assert (expected[0] <= rho[0].max() + atol.max())[few].all()


@spaces
@given(
    p=problems.problems(lams=(-12, 3), weighted=True), loss=st.sampled_from(losses.ALL), order=st.integers(1, 4),
    bias=biases,
)  # fmt: skip
def test_influence_is_the_dense_series(problem, step, influence, p, loss, order, bias):
    G, lams, w = matrix(problem, p, bias), calling.array(p.lam), certain(loss, p, bias)
    fits = calling.fit(problem, loss, G, p.y, lams, p.s, bias=bias)
    out, _, status = calling.update(influence, G, fits, lams, p.starts, order, bias=bias)
    assert not status.any()
    expected = twins.heldout.series(loss.twin, p.features(bias), p.y, p.lam, w, p.starts, order, 1.0, p.s, bias)
    close(out[0], expected, tolerances.weighted(p.s) * tolerances.curved(p.K, p.lam, loss.curvature))


@given(problems.problems(lams=(-12, 3), weighted=True), st.integers(1, 4), st.sampled_from([None, 3, 10]), biases)
def test_influence_of_the_square_loss_is_the_dense_series(p, order, rank, bias):
    Z, K = low_rank(p, rank)
    lams, root = calling.array(p.lam), np.sqrt(p.s)
    out, _ = influence_square(
        spectrum(p, Z, K, bias), p.Y * root, lams, calling.folds(p.starts, p.s), order
    )  # fmt: skip
    Z = np.column_stack([Z, np.ones((p.n, bias))])
    for y, found in zip(p.Y, out[:, 0] / root, strict=True):
        w = twins.heldout.fit(twins.losses.square, Z, y, p.s, p.lam, bias)
        expected = twins.heldout.series(twins.losses.square, Z, y, p.lam, w, p.starts, order, 1.0, p.s, bias)
        close(found, expected, tolerances.weighted(p.s) * tolerances.curved(K, p.lam))


@spaces
@given(p=problems.problems(lams=(-8, 3)), loss=st.sampled_from(losses.ALL), bias=biases)
def test_a_long_series_is_the_newton_step(problem, step, influence, p, loss, bias):
    w = certain(loss, p, bias)
    assume(twins.heldout.ratios(loss.twin, p.features(bias), p.y, p.lam, w, p.starts, bias=bias).max() < 0.7)
    G, lams = matrix(problem, p, bias), calling.array(p.lam)
    fits = calling.fit(problem, loss, G, p.y, lams, bias=bias)
    series, _, _ = calling.update(influence, G, fits, lams, p.starts, 100, bias=bias)  # 0.7^100 is 3e-16
    stepped, _, _ = calling.update(step, G, fits, lams, p.starts, bias=bias)
    close(series, stepped, tolerances.curved(p.K, p.lam, loss.curvature))


def check_ratios(found, expected):
    """Each within the tolerance, from below but for rounding: an iteration that climbs to a value never passes it."""
    assert (found <= expected * (1 + 1e-6) + 1e-9).all()
    assert (found >= (1 - tolerances.RHO) * expected - tolerances.RHO_FLOOR).all()


@spaces
@given(
    seed=st.integers(0, 2**32 - 1),
    t=st.integers(3, 10),
    tau=st.integers(-6, 8),
    exponent=st.integers(-14, 3),
    loss=st.sampled_from(losses.ALL),
    bias=biases,
)
def test_rho_is_the_spectral_radius(problem, step, influence, seed, t, tau, exponent, loss, bias):
    p = problems.make(seed, n=60, d=1 + seed % 4, tau=2.0**tau, starts=problems.even(60, t), lam=2.0**exponent)
    G, lams, w = matrix(problem, p, bias), calling.array(p.lam), certain(loss, p, bias)
    fits = calling.fit(problem, loss, G, p.y, lams, bias=bias)
    _, rho, _ = calling.update(influence, G, fits, lams, p.starts, bias=bias)
    expected = twins.heldout.ratios(loss.twin, p.features(bias), p.y, p.lam, w, p.starts, bias=bias)
    check_ratios(rho[0], expected)
    if loss is losses.SQUARE:
        path = 2.0 ** np.arange(3, exponent - 1, -1)  # each lam starts where the last one ended
        _, rho = influence_square(
            spectrum(p, p.Z, p.K, bias), p.Y, path, calling.folds(p.starts, p.s), 1
        )  # fmt: skip
        check_ratios(rho[:, -1], expected)


@given(problems.problems(lams=(-12, 3)), st.integers(1, 20), st.sampled_from([0.05, 0.5]))
def test_nystrom_influence_is_as_published_with_its_sign_and_mask_corrected(p, c, h):
    V, lams = np.ascontiguousarray(p.Z[:, -c:]), calling.array(p.lam)
    hinge = losses.huber_hinge(h)
    for loss, twin in (
        (hinge, lambda f: twins.heldout.nystrom_influence_hinge(p.K, V, p.y, p.lam, h, f, p.starts)),
        (losses.SQUARE, lambda f: twins.heldout.nystrom_influence_square(p.K, V, p.y, p.lam, f, p.starts)),
    ):
        fits = calling.fit(newton.in_kernel, loss, p.K, p.y, lams)
        out, _, status = calling.update(heldout_kernel.nystrom_influence, p.K, fits, lams, p.starts, 1, V)
        assert not status.any()
        close(out[0], twin(fits.f[0]), tolerances.curved(p.K, p.lam, loss.curvature))


@given(problems.problems(lams=(-12, 3), weighted=True), st.sampled_from(losses.ALL), biases)
def test_nystrom_influence_with_all_landmarks_is_the_influence(p, loss, bias):
    lams = calling.array(p.lam)
    certain(loss, p, bias)
    fits = calling.fit(newton.in_kernel, loss, p.K, p.y, lams, p.s, bias=bias)
    V = p.features(bias)
    nystrom, _, _ = calling.update(heldout_kernel.nystrom_influence, p.K, fits, lams, p.starts, 1, V, bias=bias)
    full, _, _ = calling.update(heldout_kernel.influence, p.K, fits, lams, p.starts, 1, bias=bias)
    close(nystrom, full, tolerances.weighted(p.s) * tolerances.curved(p.K, p.lam, loss.curvature))
