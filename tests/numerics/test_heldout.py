"""The approximations against what they approximate, and the errors of the papers."""

import numpy as np
import pytest

import calling
import losses
import problems
import tolerances
import twins.heldout
import twins.losses
from kernsel.numerics.smooth import convergence, heldout_features, heldout_kernel, newton

FOLDS = problems.starts_of([8, 12, 5, 10])
WIDE = losses.WIDE_HINGE


@pytest.fixture(scope="module")
def problem():
    return problems.make(3, n=35, tau=2.0, starts=FOLDS, lam=0.05)


def fitted(loss, p):
    return twins.heldout.fit(loss.twin, p.Z, p.y, np.ones(p.n), p.lam)


def relative(actual, expected):
    return np.abs(actual - expected).max() / np.abs(expected).max()


def same_rows(loss, p, S, reach):
    """Whether the curved rows are the same ends of the stretch of eps, so that the refits are smooth there."""
    masks = [
        loss.twin(p.y, p.Z @ twins.heldout.contaminated(loss.twin, p.Z, p.y, p.lam, S, e))[2] > 0
        for e in (-reach, 0, reach)
    ]
    return (masks[0] == masks[1]).all() and (masks[1] == masks[2]).all()


@pytest.mark.parametrize("loss", losses.ALL, ids=str)
def test_influence_is_the_derivative_of_the_refit(problem, loss):
    p, checked, w = problem, 0, fitted(loss, problem)
    for S in twins.heldout.folds(p.starts):
        reach = next((r for r in (0.05, 0.02, 0.01) if same_rows(loss, p, S, r)), None)
        if reach is None:
            continue
        orders = 1 if loss is losses.LOGISTIC else 3  # the logistic loss has a third derivative
        numeric = twins.heldout.differences(loss.twin, p.Z, p.y, p.lam, S, reach)[:orders]
        for order, (B, expected) in enumerate(
            zip(twins.heldout.influence(loss.twin, p.Z, p.y, p.lam, w, S, orders), numeric, strict=True), 1
        ):
            # rounding of the refits, divided by reach^order
            assert relative(p.Z @ B, p.Z @ expected) < tolerances.DIFFERENCES + 1e-13 * (3 / reach) ** order, (
                order,
                reach,
            )
            checked += 1
    assert checked >= 2


def test_bif14_theorem_2_prints_a_factor_2_too_much(problem):
    p, w, S = problem, fitted(losses.SQUARE, problem), np.arange(8)
    numeric = p.Z @ twins.heldout.differences(twins.losses.square, p.Z, p.y, p.lam, S, 0.05)[1]
    ours, printed = (
        p.Z @ twins.heldout.influence(twins.losses.square, p.Z, p.y, p.lam, w, S, 2, factor)[1] for factor in (1, 2)
    )
    assert relative(ours, numeric) < tolerances.DIFFERENCES
    assert relative(printed, numeric) > 0.3
    fits = calling.fit(newton.in_kernel, losses.SQUARE, p.K, p.y, calling.array(p.lam))
    out, _, _ = calling.update(heldout_kernel.influence, p.K, fits, calling.array(p.lam), p.starts, 2)
    series = [twins.heldout.series(twins.losses.square, p.Z, p.y, p.lam, w, p.starts, 2, factor) for factor in (1, 2)]
    assert relative(out[0], series[0]) < 1e-10
    assert relative(out[0], series[1]) > 0.01


def hinge_first_order(p, **printed):
    """Ours, FBIF18 as given, and the fit, with all landmarks: then FBIF is the BIF."""
    fits = calling.fit(newton.in_kernel, WIDE, p.K, p.y, calling.array(p.lam))
    ours, _, _ = calling.update(heldout_kernel.nystrom_influence, p.K, fits, calling.array(p.lam), p.starts, 1, p.Z)
    theirs = twins.heldout.nystrom_influence_hinge(p.K, p.Z, p.y, p.lam, 0.5, fits.f[0], p.starts, **printed)
    return ours[0] - fits.f[0], theirs - fits.f[0]


@pytest.mark.parametrize("printed", [{"sign": 1.0}, {"mask": False}], ids=["sign", "mask"])
def test_fbif18_prints_the_hinge_with_a_wrong_sign_and_without_its_mask(problem, printed):
    p = problem
    ours, theirs = hinge_first_order(p, **printed)
    checked = 0
    for S in twins.heldout.folds(p.starts):
        reach = next((r for r in (0.05, 0.02, 0.01) if same_rows(WIDE, p, S, r)), None)
        if reach is not None:
            derivative = p.Z[S] @ twins.heldout.differences(WIDE.twin, p.Z, p.y, p.lam, S, reach)[0]
            first_order = -S.size / (p.n - S.size) * derivative
            assert relative(ours[S], first_order) < tolerances.DIFFERENCES
            assert relative(theirs[S], first_order) > 0.05
            checked += 1
    assert checked


@pytest.mark.parametrize("loss", [losses.SQUARE, losses.LOGISTIC, losses.SQUARED_HINGE], ids=str)
def test_the_newton_step_is_nearer_to_the_refit_than_the_first_order(loss):
    p = problems.make(1, n=60, tau=1.0, starts=problems.even(60, 5), lam=2.0**-8)
    lams = calling.array(p.lam)
    fits = calling.fit(newton.in_kernel, loss, p.K, p.y, lams)
    refit = twins.heldout.refits(loss.twin, p.Z, p.y, p.lam, p.starts)
    step, _, _ = calling.update(heldout_kernel.newton_step, p.K, fits, lams, p.starts)
    first, _, _ = calling.update(heldout_kernel.influence, p.K, fits, lams, p.starts, 1)
    assert np.linalg.norm(step[0] - refit) < 0.5 * np.linalg.norm(first[0] - refit)


def test_the_first_order_tends_to_the_training_outputs_where_rho_tends_to_1():
    p = problems.make(1, n=60, tau=0.1, starts=problems.even(60, 5), lam=2.0**-20)
    lams = calling.array(p.lam)
    fits = calling.fit(newton.in_kernel, losses.SQUARE, p.K, p.y, lams)
    first, rho, _ = calling.update(heldout_kernel.influence, p.K, fits, lams, p.starts, 1)
    assert rho.max() > 0.99
    refit = twins.heldout.refits_square(p.K, p.y, p.lam, p.starts)
    assert np.linalg.norm(first[0] - fits.f[0]) < 0.1 * np.linalg.norm(first[0] - refit)


@pytest.mark.parametrize("in_kernel", [True, False], ids=["kernel", "features"])
def test_the_ratio_of_few_curved_rows_is_not_taken_from_rounding_errors(in_kernel):
    """Four rows are curved, of which the leverages go down to 2e-9: the Krylov space ends before the steps do."""
    p = problems.make(1_000_000_000, n=60, d=1, tau=16.0, starts=problems.even(60, 3), lam=2.0**-6)
    lams, loss = calling.array(p.lam), losses.HINGE
    G, solver = (p.K, newton.in_kernel) if in_kernel else (p.Z, newton.in_features)
    influence = heldout_kernel.influence if in_kernel else heldout_features.influence
    fits = calling.fit(solver, loss, G, p.y, lams)
    assert (fits.d2 > 0).sum() == 4
    _, rho, _ = calling.update(influence, G, fits, lams, p.starts)
    w = twins.heldout.fit(loss.twin, p.Z, p.y, p.s, p.lam)
    np.testing.assert_allclose(rho[0], twins.heldout.ratios(loss.twin, p.Z, p.y, p.lam, w, p.starts), rtol=1e-7)


@pytest.mark.parametrize("in_kernel", [True, False], ids=["kernel", "features"])
@pytest.mark.parametrize("loss", losses.ALL, ids=str)
def test_order_0_leaves_the_outputs_alone_and_gives_the_same_ratio(problem, loss, in_kernel):
    p, lams = problem, calling.array(problem.lam)
    G = p.K if in_kernel else p.Z
    fits = calling.fit(newton.in_kernel if in_kernel else newton.in_features, loss, G, p.y, lams)
    influence = heldout_kernel.influence if in_kernel else heldout_features.influence
    none, rho, _ = calling.update(influence, G, fits, lams, p.starts, 0)
    _, again, _ = calling.update(influence, G, fits, lams, p.starts, 1)
    assert not none.any()
    np.testing.assert_array_equal(rho, again)


@pytest.mark.parametrize("function", [heldout_kernel.newton_step, heldout_kernel.influence], ids=["step", "bif"])
def test_a_matrix_that_is_not_positive_is_a_status(function):
    p, lams = problems.make(0, starts=problems.even(30, 3)), calling.array(1e-3)
    fits = calling.fit(newton.in_kernel, losses.SQUARE, p.K, p.y, lams)
    _, _, status = calling.update(function, -p.K, fits, lams, p.starts, 1)
    assert (status[0] == convergence.SINGULAR).all()


def test_many_jobs_are_the_single_ones():
    p, lams = problems.make(0, n=40, starts=problems.even(40, 4)), 2.0 ** np.arange(0, -9, -2)
    fits = calling.fit(newton.in_kernel, losses.HINGE, p.K, p.y, lams)
    together, rho, _ = calling.update(heldout_kernel.influence, p.K, fits, lams, p.starts, 2)
    for k in range(lams.size):
        one = calling.Fits(
            fits.loss, fits.y, fits.s, fits.x[k : k + 1], fits.f[k : k + 1], fits.v, fits.d1[k : k + 1],
            fits.d2[k : k + 1], fits.status,
        )  # fmt: skip
        alone, ratio, _ = calling.update(heldout_kernel.influence, p.K, one, lams[k : k + 1], p.starts, 2)
        np.testing.assert_array_equal(together[k], alone[0])
        np.testing.assert_array_equal(rho[k], ratio[0])
