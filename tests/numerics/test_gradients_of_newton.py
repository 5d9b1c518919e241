"""Newton systems solved by conjugate gradients, with a factor of most of the Gram matrix for a preconditioner."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calling
import losses
import problems
import tolerances
from kernsel.numerics.lowrank import pivoted_factor
from kernsel.numerics.smooth import newton


def fitted(p, loss, c, bias, lams):
    """Outputs (L, n) and statuses (L,) of fits with a factor of c columns behind K."""
    n = p.n
    G = np.concatenate([p.K, pivoted_factor(p.K, c)], axis=1)
    x, f = np.zeros((1, lams.size, n + bias)), np.zeros((1, lams.size, n))
    status = newton.solve_paths(
        newton.in_kernel, G[None], bias, np.zeros(1, np.int64), p.y[None], p.s[None], lams, loss.compiled,
        loss.parameters, True, x, f,
    )  # fmt: skip
    return f[0], status[0]


@given(
    p=problems.problems(lams=(-12, 3), weighted=True), loss=st.sampled_from(losses.ALL), bias=st.sampled_from([0, 1]),
    share=st.sampled_from([0.2, 0.5, 1.0]),
)  # fmt: skip
def test_the_way_systems_are_solved_does_not_change_a_fit(p, loss, bias, share):
    if np.unique(p.y).size < 2:
        return
    lams = p.lam * 2.0 ** np.arange(6, -1, -2)
    f, status = fitted(p, loss, max(1, int(share * p.n)), bias, lams)
    dense = calling.fit(newton.in_kernel, loss, p.K, p.y, lams, p.s, bias=bias)
    np.testing.assert_array_equal(status, dense.status)
    np.testing.assert_allclose(
        f, dense.f, rtol=0, atol=tolerances.weighted(p.s) * tolerances.curved(p.K, p.lam, loss.curvature)
    )


@pytest.mark.parametrize("c", [1, 20, 200])
def test_a_factor_has_the_largest_pivots_first(c):
    K = problems.make(0, n=60, tau=4.0).K
    Z = pivoted_factor(K, c)
    left = K - Z @ Z.T
    assert Z.shape == (60, c)
    assert np.linalg.eigvalsh(left).min() > -tolerances.SPECTRA
    best = np.sort(np.linalg.eigvalsh(K))[: max(0, 60 - c)].sum()
    assert best - tolerances.SPECTRA <= np.trace(left) <= 60 * best + tolerances.SPECTRA * 60


def test_a_factor_ends_where_rounding_errors_begin():
    Z = pivoted_factor(np.ones((5, 5)), 3)
    np.testing.assert_allclose(Z, np.array([[1.0, 0.0, 0.0]] * 5))
