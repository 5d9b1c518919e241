"""Losses: their derivatives are derivatives, they are convex, and they say what the solver builds on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from kernsel.errors import OptionError
from kernsel.learners import Krr, Svm

LEARNERS = [Krr(), Svm(), Svm(h=0.5), Svm(h=1e-3)]
TWINS = [reference.square, *(reference.huber_hinge(h) for h in (0.05, 0.5, 1e-3))]
learners = pytest.mark.parametrize("learner", LEARNERS, ids=str)
outputs = st.floats(-50, 50)
signs = st.sampled_from([-1.0, 1.0])


def expand(learner, y, f):
    """The loss and its derivatives at one target and one or more outputs."""
    f = np.atleast_1d(np.asarray(f, dtype=float))
    return [part[0, 0] for part in learner.loss.expand(np.full((1, f.size), y), np.ones(f.size), f[None, None])]


@pytest.mark.parametrize(("learner", "twin"), list(zip(LEARNERS, TWINS, strict=True)), ids=map(str, LEARNERS))
@given(y=signs, f=outputs)
def test_the_compiled_loss_is_its_slow_twin(learner, twin, y, f):
    expected = twin(np.array([y]), np.array([f]))
    np.testing.assert_allclose(np.ravel(expand(learner, y, f)), np.ravel(expected), rtol=1e-12, atol=1e-12)


@learners
@given(y=signs, f=outputs)
def test_derivatives_are_finite_differences(learner, y, f):
    step = 1e-5
    v, d1, d2 = expand(learner, y, [f - step, f, f + step])
    np.testing.assert_allclose((v[2] - v[0]) / (2 * step), d1[1], rtol=1e-6, atol=2e-2 if len(set(d2)) > 1 else 1e-6)
    if len(set(d2)) == 1:  # within one piece
        np.testing.assert_allclose((d1[2] - d1[0]) / (2 * step), d2[1], rtol=1e-4, atol=1e-4)
    else:  # the second derivative jumps, the first doesn't
        assert abs(d1[2] - d1[0]) <= 2 * step * d2.max() * (1 + 1e-6)


@learners
@given(y=signs, a=outputs, b=outputs, share=st.floats(0, 1))
def test_losses_are_convex_and_not_negative(learner, y, a, b, share):
    v, d1, d2 = expand(learner, y, [a, b, share * a + (1 - share) * b])
    assert v[2] <= share * v[0] + (1 - share) * v[1] + 1e-9 * (1 + v.max())
    assert (v >= 0).all()
    assert (d2 >= 0).all()
    assert v[1] >= v[0] + d1[0] * (b - a) - 1e-9 * (1 + np.abs(v).max() + abs(d1[0] * (b - a)))


@given(y=signs, f=outputs)
def test_the_huber_hinge_is_within_a_quarter_of_h_of_the_hinge(y, f):
    for h in (0.5, 0.05, 1e-3):
        excess = expand(Svm(h=h), y, f)[0][0] - max(0.0, 1 - y * f)
        assert -1e-12 <= excess <= h / 4 + 1e-12


@pytest.mark.parametrize("h", [0.05, 0.5, 1e-3])
def test_the_pieces_of_the_huber_hinge_join(h):
    for u, value, slope in [(1 - h, h, -1.0), (1 + h, 0.0, 0.0), (1.0, h / 4, -0.5)]:
        for y in (-1.0, 1.0):
            v, d1, _ = expand(Svm(h=h), y, y * np.array([u - 1e-12, u + 1e-12]))
            np.testing.assert_allclose(v, value, atol=1e-11)
            np.testing.assert_allclose(y * d1, slope, atol=1e-11 / h)


@learners
def test_weights_multiply_the_derivatives_and_not_the_loss(learner):
    Y, f = np.array([[1.0, -1.0, 1.0]]), np.array([[[0.3, -0.98, 7.0]]])
    once, twice = (learner.loss.expand(Y, np.full(3, s), f) for s in (1.0, 2.0))
    np.testing.assert_array_equal(twice[0], once[0])
    np.testing.assert_array_equal(twice[1], 2 * once[1])
    np.testing.assert_array_equal(twice[2], 2 * once[2])
    np.testing.assert_array_equal(learner.loss.values(Y, f), once[0])
    np.testing.assert_array_equal(learner.loss.value(Y, f[:, 0]), once[0][:, 0])


@learners
def test_what_is_not_a_number_stays_so(learner):
    assert all(np.isnan(part).any() for part in expand(learner, 1.0, np.nan)[:2])


def test_only_the_square_loss_says_so():
    assert [each.loss.square for each in LEARNERS] == [True, False, False, False]
    assert all(each.loss.piecewise_quadratic for each in LEARNERS)


@pytest.mark.parametrize("h", [0.0, -1.0, np.inf, np.nan])
def test_a_kink_without_width_is_refused(h):
    with pytest.raises(OptionError, match="learner 'svm': h must be a finite number greater than 0"):
        Svm(h=h)


def test_conversions():
    assert Krr().conversions(50, 0.01) == {"alpha": 0.5}
    assert Svm().conversions(50, 0.01) == {"C": 1.0}
