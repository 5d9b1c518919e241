"""Laws of the held-out outputs: what is called exact is, and the approximations are the formulas they claim to be."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import calling
import losses
import problems
import reference
import tolerances
from kernsel.numerics import heldout_features, heldout_kernel, newton, spectral

RUNS = [
    (newton.in_kernel, heldout_kernel.newton_step, heldout_kernel.influence),
    (newton.in_features, heldout_features.newton_step, heldout_features.influence),
]
spaces = pytest.mark.parametrize(("problem", "step", "influence"), RUNS, ids=["kernel", "features"])


def close(actual, expected, atol):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=atol * (1 + np.abs(expected).max()))


def spectrum(p, rank=None):
    """The spectrum of K, or of a low-rank K with the K that it stands for."""
    if rank is None or rank >= p.n:
        return *spectral.spectrum_of_gram(p.K), p.K
    Z = np.ascontiguousarray(p.Z[:, -rank:])
    return *spectral.spectrum_of_features(Z), Z @ Z.T


@given(problems.problems(), st.sampled_from([None, 2, 5, 12]))
def test_exact_cv_of_the_square_loss_equals_brute_force(p, rank):
    U, ev, K = spectrum(p, rank)
    lams = calling.array(1.0, p.lam)
    out, status = spectral.heldout_square(U, ev, p.Y, lams, p.starts)
    assert not status.any()
    for k, lam in enumerate(lams):
        close(out[:, k], reference.refits_square(K, p.Y, lam, p.starts), tolerances.exact(K, lam))


@given(problems.problems(lams=(-8, 3)), st.sampled_from([None, 3, 10]))
def test_exact_cv_is_exact_to_nine_digits(p, rank):
    U, ev, K = spectrum(p, rank)
    out, _ = spectral.heldout_square(U, ev, p.Y, calling.array(p.lam), p.starts)
    np.testing.assert_allclose(out[:, 0], reference.refits_square(K, p.Y, p.lam, p.starts), rtol=0, atol=1e-9)


@given(problems.problems(), st.sampled_from([None, 4, 15]))
def test_both_ways_to_leave_a_fold_out_agree(p, rank):
    U, ev, K = spectrum(p, rank)
    G, empty = np.diag(ev), np.zeros((0, 0))
    outs = []
    for task, V, products in (
        (spectral.without_block, U, empty),
        (spectral.without_products, np.ascontiguousarray(U * np.sqrt(ev)), G),
    ):
        out, t = np.empty((2, 1, p.n)), p.starts.size - 1
        status, rho = np.zeros((t, 1), np.int64), np.zeros((t, 1))
        lams = calling.array(p.lam)
        spectral.for_folds(task, V, ev, p.Y, p.Y @ V, products, lams, p.starts, 0, out, status, rho)
        assert not status.any()
        outs.append(out)
    close(outs[0], outs[1], tolerances.exact(K, p.lam))


@given(problems.problems(lams=(-10, 3)))
def test_leave_one_out(p):
    starts = np.arange(p.n + 1)
    U, ev, K = spectrum(p)
    out, status = spectral.heldout_square(U, ev, p.Y, calling.array(p.lam), starts)
    assert not status.any()
    close(out[:, 0], reference.refits_square(K, p.Y, p.lam, starts), tolerances.exact(K, p.lam))
    A = np.linalg.inv(p.K + (p.n - 1) * p.lam * np.eye(p.n))
    close(out[:, 0], p.Y - (p.Y @ A) / np.diag(A), tolerances.exact(K, p.lam))


@spaces
@settings(max_examples=15)
@given(p=problems.problems(lams=(-10, 3)), loss=st.sampled_from(losses.ALL))
def test_exact_cv_of_any_loss_is_a_fit_with_weights_zero(problem, step, influence, p, loss):
    expected = reference.refits(loss.twin, p.Z, p.y, p.lam, p.starts)
    G = p.K if problem is newton.in_kernel else p.Z
    for S in reference.folds(p.starts):
        s = np.ones(p.n)
        s[S] = 0
        fits = calling.fit(problem, loss, G, p.y, calling.array(p.lam), s)
        assert not fits.status.any()
        close(fits.f[0, S], expected[S], tolerances.curved(p.K, p.lam, loss.curvature))


@spaces
@given(p=problems.problems(lams=(-12, 3)), loss=st.sampled_from(losses.ALL))
def test_newton_step_is_the_dense_one(problem, step, influence, p, loss):
    G, lams = p.K if problem is newton.in_kernel else p.Z, calling.array(p.lam)
    fits = calling.fit(problem, loss, G, p.y, lams)
    out, _, status = calling.update(step, G, fits, lams, p.starts)
    assert not fits.status.any()
    assert not status.any()
    w = reference.fit(loss.twin, p.Z, p.y, np.ones(p.n), p.lam)
    expected = reference.newton_step(loss.twin, p.Z, p.y, p.lam, w, p.starts)
    close(out[0], expected, tolerances.curved(p.K, p.lam, loss.curvature))


@spaces
@given(p=problems.problems(lams=(-10, 3)))
def test_newton_step_is_exact_for_the_square_loss(problem, step, influence, p):
    G, lams = p.K if problem is newton.in_kernel else p.Z, calling.array(p.lam)
    fits = calling.fit(problem, losses.SQUARE, G, p.Y[0], lams)
    out, _, _ = calling.update(step, G, fits, lams, p.starts)
    close(out[0], reference.refits_square(p.K, p.Y[0], p.lam, p.starts), tolerances.curved(p.K, p.lam))


@spaces
@given(p=problems.problems(lams=(-12, 3)), loss=st.sampled_from(losses.ALL), order=st.integers(1, 4))
def test_influence_is_the_dense_series(problem, step, influence, p, loss, order):
    G, lams = p.K if problem is newton.in_kernel else p.Z, calling.array(p.lam)
    fits = calling.fit(problem, loss, G, p.y, lams)
    out, _, status = calling.update(influence, G, fits, lams, p.starts, order)
    assert not status.any()
    w = reference.fit(loss.twin, p.Z, p.y, np.ones(p.n), p.lam)
    expected = reference.series(loss.twin, p.Z, p.y, p.lam, w, p.starts, order)
    close(out[0], expected, tolerances.curved(p.K, p.lam, loss.curvature))


@given(problems.problems(lams=(-12, 3)), st.integers(1, 4), st.sampled_from([None, 3, 10]))
def test_influence_of_the_square_loss_is_the_dense_series(p, order, rank):
    U, ev, K = spectrum(p, rank)
    Z = U * np.sqrt(ev)
    out, _ = spectral.influence_square(U, ev, p.Y, calling.array(p.lam), p.starts, order)
    for y, found in zip(p.Y, out[:, 0], strict=True):
        w = reference.fit(reference.square, Z, y, np.ones(p.n), p.lam)
        expected = reference.series(reference.square, Z, y, p.lam, w, p.starts, order)
        close(found, expected, tolerances.curved(K, p.lam))


@spaces
@given(p=problems.problems(lams=(-8, 3)), loss=st.sampled_from(losses.ALL))
def test_a_long_series_is_the_newton_step(problem, step, influence, p, loss):
    w = reference.fit(loss.twin, p.Z, p.y, np.ones(p.n), p.lam)
    assume(reference.ratios(loss.twin, p.Z, p.y, p.lam, w, p.starts).max() < 0.7)
    G, lams = p.K if problem is newton.in_kernel else p.Z, calling.array(p.lam)
    fits = calling.fit(problem, loss, G, p.y, lams)
    series, _, _ = calling.update(influence, G, fits, lams, p.starts, 100)  # 0.7^100 is 3e-16
    close(series, calling.update(step, G, fits, lams, p.starts)[0], tolerances.curved(p.K, p.lam, loss.curvature))


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
)
def test_rho_is_the_spectral_radius(problem, step, influence, seed, t, tau, exponent, loss):
    p = problems.make(seed, n=60, d=1 + seed % 4, tau=2.0**tau, starts=problems.even(60, t), lam=2.0**exponent)
    G, lams = p.K if problem is newton.in_kernel else p.Z, calling.array(p.lam)
    fits = calling.fit(problem, loss, G, p.y, lams)
    _, rho, _ = calling.update(influence, G, fits, lams, p.starts)
    w = reference.fit(loss.twin, p.Z, p.y, np.ones(p.n), p.lam)
    expected = reference.ratios(loss.twin, p.Z, p.y, p.lam, w, p.starts)
    check_ratios(rho[0], expected)
    if loss is losses.SQUARE:
        path = 2.0 ** np.arange(3, exponent - 1, -1)  # each lam starts where the last one ended
        _, rho = spectral.influence_square(*spectral.spectrum_of_gram(p.K), p.Y, path, p.starts, 1)
        check_ratios(rho[:, -1], expected)


@given(problems.problems(lams=(-12, 3)), st.integers(1, 20), st.sampled_from([0.05, 0.5]))
def test_nystrom_influence_is_as_published_with_its_sign_and_mask_corrected(p, c, h):
    V, lams = np.ascontiguousarray(p.Z[:, -c:]), calling.array(p.lam)
    hinge = losses.huber_hinge(h)
    for loss, twin in (
        (hinge, lambda f: reference.nystrom_influence_hinge(p.K, V, p.y, p.lam, h, f, p.starts)),
        (losses.SQUARE, lambda f: reference.nystrom_influence_square(p.K, V, p.y, p.lam, f, p.starts)),
    ):
        fits = calling.fit(newton.in_kernel, loss, p.K, p.y, lams)
        out, _, status = calling.update(heldout_kernel.nystrom_influence, p.K, fits, lams, p.starts, 1, V)
        assert not status.any()
        close(out[0], twin(fits.f[0]), tolerances.curved(p.K, p.lam, loss.curvature))


@given(problems.problems(lams=(-12, 3)), st.sampled_from(losses.ALL))
def test_nystrom_influence_with_all_landmarks_is_the_influence(p, loss):
    lams = calling.array(p.lam)
    fits = calling.fit(newton.in_kernel, loss, p.K, p.y, lams)
    nystrom, _, _ = calling.update(heldout_kernel.nystrom_influence, p.K, fits, lams, p.starts, 1, p.Z)
    full, _, _ = calling.update(heldout_kernel.influence, p.K, fits, lams, p.starts, 1)
    close(nystrom, full, tolerances.curved(p.K, p.lam, loss.curvature))
