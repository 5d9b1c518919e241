"""The smallest enclosing ball: by hand, against SciPy's solver, and its own bounds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import problems
import twins.margins
from kernsel.numerics.smooth.ball import GAP, squared_radius
from kernsel.numerics.smooth.convergence import CONVERGED, UNFINISHED


def radius(G, full=True, ridge=0.0, **options):
    n = len(G)
    value, status = squared_radius(G, full, np.full(n, float(ridge)), np.full(n, 1 / n), **options)
    assert status == CONVERGED
    return value


def test_by_hand():
    assert radius(np.array([[0.0], [3.0], [1.0]]), full=False) == pytest.approx(2.25, rel=GAP)
    corners = np.array([[0.0, 0.0], [4.0, 0.0], [2.0, 2 * np.sqrt(3.0)], [2.0, 1.0]])
    assert radius(corners, full=False) == pytest.approx(16 / 3, rel=GAP)  # an equilateral triangle of side 4
    assert radius(np.eye(10)) == pytest.approx(0.9, rel=GAP)
    assert radius(np.ones((5, 5))) == 0.0
    assert radius(np.array([[7.0]])) == 0.0


@settings(max_examples=20)
@given(problems.problems(largest=4), st.sampled_from([0.0, 0.3]))
def test_it_is_scipys(p, ridge):
    expected = twins.margins.squared_radius(p.K + ridge * np.eye(p.n))
    assert radius(p.K, ridge=ridge) == pytest.approx(expected, rel=2 * GAP, abs=1e-8)
    assert radius(p.Z, full=False, ridge=ridge) == pytest.approx(expected, rel=2 * GAP, abs=1e-8)


@given(problems.problems())
def test_the_centre_is_a_mixture_whose_distances_bound_the_radius(p):
    beta = np.full(p.n, 1 / p.n)
    lower, _ = squared_radius(p.K, True, np.zeros(p.n), beta)
    assert (beta >= 0).all()
    assert beta.sum() == pytest.approx(1)
    farthest = (p.K.diagonal() - 2 * p.K @ beta).max() + beta @ p.K @ beta
    assert lower <= farthest + 1e-12
    assert farthest <= lower * (1 + 2 * GAP) + 1e-12
    again, _ = squared_radius(p.K, True, np.zeros(p.n), beta)
    assert again == pytest.approx(lower, rel=GAP, abs=1e-12)


@pytest.mark.parametrize("ridge", [0.0, 0.1, 10.0])
def test_some_rows_at_a_time(ridge):
    p = problems.make(0, n=60, tau=4.0)
    whole = radius(p.K, ridge=ridge)
    assert radius(p.Z, full=False, ridge=ridge, working=6) == pytest.approx(whole, rel=2 * GAP)


def test_what_has_no_ball_is_not_finished():
    assert squared_radius(np.full((3, 3), np.nan), True, np.zeros(3), np.full(3, 1 / 3))[1] == UNFINISHED
