"""The square loss through one eigendecomposition, in the cases that need a special word."""

import numpy as np
import pytest

import calling
import problems
import tolerances
import twins.heldout
import twins.losses
from kernsel.numerics.smooth import convergence
from kernsel.numerics.square import heldout as square
from kernsel.numerics.square.influence import influence_square
from kernsel.numerics.square.spectral import Spectrum


def test_the_spectrum_of_a_gram_matrix_leaves_out_what_is_rounding():
    A = np.random.default_rng(0).normal(size=(40, 6))
    U, ev = Spectrum.of_gram(A @ A.T)
    assert U.shape == (40, 6)
    np.testing.assert_allclose((U * ev) @ U.T, A @ A.T, atol=1e-12)
    np.testing.assert_allclose(U.T @ U, np.eye(6), atol=1e-13)
    assert (np.diff(ev) >= 0).all()


@pytest.mark.parametrize("condition", [1.0, 1e3, 1e6])
def test_the_spectrum_of_features_is_orthonormal(condition):
    rng = np.random.default_rng(0)
    Z = (
        np.linalg.qr(rng.normal(size=(50, 8)))[0]
        * np.geomspace(1, 1 / condition, 8)
        @ np.linalg.qr(rng.normal(size=(8, 8)))[0]
    )
    U, ev = Spectrum.of_features(np.ascontiguousarray(Z))
    # one step of Newton and Schulz squares an error near EPS condition^2
    assert np.abs(U.T @ U - np.eye(ev.size)).max() < 1e-13 + (100 * tolerances.EPS * condition**2) ** 2
    np.testing.assert_allclose((U * ev) @ U.T, Z @ Z.T, atol=1e-13)


def test_fits_are_those_of_the_linear_system():
    p = problems.make(0, tau=0.5)
    found = Spectrum.of_gram(p.K)
    lams = 2.0 ** np.arange(2, -12, -2)
    f, x = (part(p.Y, p.n * lams) for part in (found.outputs, found.coefficients))
    for k, lam in enumerate(lams):
        a = np.linalg.solve(p.K + p.n * lam * np.eye(p.n), p.Y.T).T
        np.testing.assert_allclose(f[:, k], a @ p.K, atol=tolerances.exact(p.K, lam))
        np.testing.assert_allclose(x[:, k] @ p.K, a @ p.K, atol=tolerances.exact(p.K, lam))


@pytest.mark.parametrize("exponent", [-300, -18, -9, 9, 300])
@pytest.mark.parametrize("tau", [1e-3, 1.0, 1e6])
def test_extreme_lams_give_finite_outputs_or_a_status(tau, exponent):
    p, lams = problems.make(0, tau=tau, starts=problems.even(30, 4)), calling.array(10.0**exponent)
    out, status = square.heldout_square(
        Spectrum.of_gram(p.K), p.Y, lams, calling.folds(p.starts, p.s)
    )  # fmt: skip
    assert np.isfinite(out).all() or status.any()
    if exponent == 300:
        np.testing.assert_allclose(out, 0, atol=1e-13)  # y less its own rounding


def test_a_kernel_of_zero_predicts_zero():
    found = Spectrum.of_gram(np.zeros((6, 6)))
    out, status = square.heldout_square(
        found, np.ones((1, 6)), calling.array(1.0), calling.folds(problems.even(6, 3), np.ones(6))
    )  # fmt: skip
    assert found.U.shape == (6, 0)
    assert not status.any()
    np.testing.assert_allclose(out, 0, atol=1e-15)


def test_rho_along_a_path_does_not_stay_with_the_first_eigenvector():
    p, lams = problems.make(2, n=60, tau=0.3, starts=problems.even(60, 3)), 2.0 ** np.arange(4, -15, -1)
    _, rho = influence_square(
        Spectrum.of_gram(p.K), p.Y, lams, calling.folds(p.starts, p.s), 1
    )  # fmt: skip
    for k, lam in enumerate(lams):
        w = twins.heldout.fit(twins.losses.square, p.Z, p.y, np.ones(p.n), lam)
        np.testing.assert_allclose(
            rho[:, k],
            twins.heldout.ratios(twins.losses.square, p.Z, p.y, lam, w, p.starts),
            rtol=tolerances.RHO,
            atol=tolerances.RHO_FLOOR,
        )


@pytest.mark.parametrize(("tau", "expected"), [(1e-4, "all"), (3e-3, "some"), (0.02, "some"), (1.0, "none")])
def test_columns_that_overlap_with_none_are_held_out_without_a_system(tau, expected):
    p, lams = problems.make(3, n=40, tau=tau, starts=[0, 7, 19, 30, 40]), 2.0 ** np.arange(8, -17, -3)
    Z = np.ascontiguousarray(p.K[:, ::2])  # not a factor of K; what counts is which columns overlap
    alone = square.columns_alone(Z, Z.T @ Z)
    overlaps = (np.abs(Z.T) @ np.abs(Z) > tolerances.EPS * 1e3).sum(axis=0) > 1
    assert not (alone & overlaps).any()
    assert {0: "none", alone.size: "all"}.get(alone.sum(), "some") == expected
    out, status = square.heldout_features(Z, Z.T @ Z, 0, p.Y, lams, calling.folds(p.starts, p.s))
    assert not status.any()
    for k, lam in enumerate(lams):
        for c, y in enumerate(p.Y):
            # The ridge dominates the products for the first values, and not for the last.
            refits = twins.heldout.refits_square(Z @ Z.T, y, lam, p.starts)
            np.testing.assert_allclose(out[c, k], refits, atol=tolerances.exact(Z @ Z.T, lam))


def test_columns_that_cancel_over_all_rows_are_not_taken_for_orthogonal():
    Z = np.array([[1.0, 1.0], [1.0, -1.0], [0.0, 0.0]])
    assert not square.columns_alone(Z, Z.T @ Z).any()
    assert square.columns_alone(np.eye(3), np.eye(3)).all()


def test_statuses_have_reasons():
    assert convergence.CONVERGED not in convergence.REASONS
    assert convergence.SINGULAR in convergence.REASONS
