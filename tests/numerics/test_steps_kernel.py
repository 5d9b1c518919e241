"""Newton steps side by side against those one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calling
import losses
import problems
from kernsel.numerics.smooth import heldout_kernel, newton, steps_kernel
from kernsel.numerics.smooth.convergence import ASTRAY, CONVERGED, UNFINISHED

TRUST = 0.25


def both(p, bias, lam, order=0):
    """Outputs, ratios and statuses of steps side by side and one by one."""
    lams = np.array([lam])
    fits = calling.fit(newton.in_kernel, losses.LOGISTIC, p.K, p.y, lams, p.s, bias=bias)
    return [
        calling.update(step, p.K, fits, lams, p.starts, order, bias=bias, trust=TRUST)
        for step in (steps_kernel.newton_steps, heldout_kernel.newton_step)
    ]


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    bias=st.sampled_from([0, 1]),
    weighted=st.booleans(),
    lam=st.sampled_from([1e-4, 1e-3, 1e-2, 1.0]),
    tau=st.sampled_from([0.1, 1.0, 10.0]),
)
def test_steps_side_by_side_are_those_one_by_one(seed, bias, weighted, lam, tau):
    p = problems.make(seed, n=40, tau=tau, lam=lam, starts=(0, 1, 10, 14, 27, 40), weighted=weighted)
    (out, _, status), (expected, _, others) = both(p, bias, lam)
    done = (status != UNFINISHED) & np.isin(others, (CONVERGED, ASTRAY))
    assert done.all() or lam < 1e-2
    assert (status == others)[done].mean() > 0.7  # a step may be at the limit of what is trusted
    rows = np.repeat(done[0], np.diff(p.starts))
    np.testing.assert_allclose(out[0, rows], expected[0, rows], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("bias", [0, 1])
@pytest.mark.parametrize("lam", [1e-3, 1e-2, 1.0])
def test_the_largest_ratio_is_that_of_all_folds(bias, lam):
    p = problems.make(11, n=60, lam=lam)
    (_, rho, _), (_, expected, _) = both(p, bias, lam, order=1)
    np.testing.assert_allclose(rho.max(), expected.max(), rtol=1e-3)
    found = rho > 0.0
    np.testing.assert_allclose(rho[found], expected[found], rtol=1e-3)
    assert (expected[~found] <= expected.max() * (1.0 + 1e-3)).all()


@pytest.mark.parametrize("folds", [17, 40])
def test_more_folds_than_step_at_a_time(folds):
    p = problems.make(3, n=80, starts=problems.even(80, folds), lam=1e-3)
    (out, _, status), (expected, _, others) = both(p, 1, 1e-3)
    np.testing.assert_array_equal(status, others)
    np.testing.assert_allclose(out, expected, atol=1e-9)


def test_where_float32_bears_no_such_ridge_steps_are_left():
    p = problems.make(7, n=40, tau=100.0, lam=1e-9)
    (_, _, status), _ = both(p, 1, 1e-9)
    assert (status == UNFINISHED).all()
