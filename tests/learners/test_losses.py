"""Losses against their twins, published values and limits, and what they say that the solver builds on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import twins.losses
from kernsel.learners import Klr, Krr, L2Svm, Lssvm, Qsvr, Svm, Svr

TWINS = {
    Krr(): twins.losses.square,
    Lssvm(): twins.losses.square,
    **{Svm(h=h, bias=False): twins.losses.huber_hinge(h) for h in (0.05, 0.5, 1e-3)},
    L2Svm(bias=False): twins.losses.squared_hinge,
    Klr(bias=False): twins.losses.logistic,
    **{Qsvr(epsilon=e): twins.losses.squared_insensitive(e) for e in (0.1, 2.0)},
    **{Svr(epsilon=e, h=h): twins.losses.huber_insensitive(e, h) for e, h in [(0.1, 0.05), (2.0, 1e-3), (0.5, 0.5)]},
}
twins = pytest.mark.parametrize(("learner", "twin"), TWINS.items(), ids=map(str, TWINS))
outputs = st.floats(-50, 50)
signs = st.sampled_from([-1.0, 1.0])


def expand(learner, y, f):
    """The loss and its derivatives at one target and one or more outputs."""
    f = np.atleast_1d(np.asarray(f, dtype=float))
    return [part[0, 0] for part in learner.loss.expand(np.full((1, f.size), y), np.ones(f.size), f[None, None])]


@twins
@given(y=signs, f=outputs)
def test_the_compiled_loss_is_its_slow_twin(learner, twin, y, f):
    expected = twin(np.array([y]), np.array([f]))
    np.testing.assert_allclose(np.ravel(expand(learner, y, f)), np.ravel(expected), rtol=1e-12, atol=1e-12)


@given(y=signs, f=outputs)
def test_the_huber_hinge_is_within_a_quarter_of_h_of_the_hinge(y, f):
    for h in (0.5, 0.05, 1e-3):
        excess = expand(Svm(h=h, bias=False), y, f)[0][0] - max(0.0, 1 - y * f)
        assert -1e-12 <= excess <= h / 4 + 1e-12


@given(r=st.floats(-3, 3), epsilon=st.floats(0, 1), h=st.floats(0.01, 2))
def test_the_huberised_tube_is_the_moving_average_of_the_tube(r, epsilon, h):
    """Over the window h, also where the two kinks are so near each other that their parabolas overlap."""
    u, step = np.linspace(-h, h, 4001, retstep=True)
    tube = np.maximum(np.abs(r + u) - epsilon, 0)
    average = (tube[1:] + tube[:-1]).sum() * step / 2 / (2 * h)
    assert expand(Svr(epsilon=epsilon, h=h), 0.0, -r)[0][0] == pytest.approx(average, abs=step)


@pytest.mark.parametrize("h", [0.05, 0.5, 1e-3])
def test_the_pieces_of_the_huber_hinge_join(h):
    for u, value, slope in [(1 - h, h, -1.0), (1 + h, 0.0, 0.0), (1.0, h / 4, -0.5)]:
        for y in (-1.0, 1.0):
            v, d1, _ = expand(Svm(h=h, bias=False), y, y * np.array([u - 1e-12, u + 1e-12]))
            np.testing.assert_allclose(v, value, atol=1e-11)
            np.testing.assert_allclose(y * d1, slope, atol=1e-11 / h)


@pytest.mark.parametrize(
    ("learner", "y", "f", "expected"),
    [
        (Svm(h=0.25, bias=False), 1.0, 0.75, (0.25, -1.0, 2.0)),
        (Svm(h=0.25, bias=False), -1.0, -1.25, (0.0, 0.0, 2.0)),
        (L2Svm(bias=False), 1.0, 1.0, (0.0, 0.0, 0.0)),
        (Qsvr(epsilon=0.5), 1.0, 0.5, (0.0, 0.0, 0.0)),
        (Svr(epsilon=0.5, h=0.25), 1.0, 0.75, (0.0, 0.0, 2.0)),
        (Svr(epsilon=0.5, h=0.25), 1.0, 1.75, (0.25, 1.0, 2.0)),
        (Krr(), 1.0, 1.0, (0.0, 0.0, 2.0)),
        (Klr(bias=False), 1.0, 0.0, (np.log(2), -0.5, 0.25)),
    ],
    ids=str,
)
def test_derivatives_at_kinks_are_those_of_the_table(learner, y, f, expected):
    assert np.ravel(expand(learner, y, f)).tolist() == list(expected)


@pytest.mark.parametrize("u", [710.0, -710.0, 1e5, -1e5, 1e300, -1e300])
def test_the_logistic_loss_does_not_overflow(u):
    for y in (-1.0, 1.0):
        v, d1, d2 = expand(Klr(bias=False), y, y * u)
        assert v[0] == max(-u, 0.0) or 0 < v[0] < 1e-300
        assert y * d1[0] == pytest.approx(0.0 if u > 0 else -1.0, abs=1e-300)
        assert 0 <= d2[0] < 1e-300


def test_quadratic_tubes_without_width_are_the_square_loss():
    f = np.linspace(-3, 3, 50)  # even: not at the target itself
    assert Qsvr(epsilon=0.0).loss.square
    np.testing.assert_allclose(expand(Qsvr(epsilon=1e-300), 0.0, f), expand(Krr(), 0.0, f), rtol=1e-14)


def test_a_tube_without_width_is_the_loss_of_huber():
    r, h = np.linspace(-3, 3, 61), 0.5
    huber = np.where(np.abs(r) <= h, r**2 / (2 * h), np.abs(r) - h / 2)
    np.testing.assert_allclose(expand(Svr(epsilon=0.0, h=h), 0.0, r)[0], huber + h / 2, rtol=1e-14)


def test_what_losses_say_of_themselves():
    assert {each.name for each in TWINS if each.loss.square} == {"krr", "lssvm"}
    assert {each.name for each in TWINS if not each.loss.piecewise_quadratic} == {"klr"}
    assert {each.name: each.loss.scored_by for each in TWINS} == {
        "krr": "square loss",
        "lssvm": "square loss",
        "svm": "huber-hinge loss",
        "l2svm": "squared-hinge loss",
        "klr": "logistic loss",
        "qsvr": "squared-epsilon-insensitive loss",
        "svr": "huber-epsilon-insensitive loss",
    }


@pytest.mark.parametrize(
    ("family", "values", "name", "measure"),
    [
        (Svm, [{"h": 0.01}, {"h": 1.0}], "hinge loss", lambda y, f: np.maximum(0, 1 - y * f)),
        (Svr, [{"epsilon": 0.0}, {"epsilon": 1.0, "h": 0.5}], "absolute error", lambda y, f: np.abs(y - f)),
        (Qsvr, [{"epsilon": 0.0}, {"epsilon": 1.0}], "squared error", lambda y, f: (y - f) ** 2),
    ],
)
def test_comparable_learners_of_a_family_have_one_measure(family, values, name, measure):
    rng = np.random.default_rng(0)
    Y, F = np.sign(rng.normal(size=(2, 9))), rng.normal(size=(2, 4, 9))
    for each in values:
        loss = family(**each, comparable=True).loss
        assert loss.scored_by == name
        np.testing.assert_allclose(loss.values(Y, F), measure(Y[:, None], F))
        np.testing.assert_allclose(loss.value(Y, F[:, 1]), measure(Y, F[:, 1]))
        fitted = family(**each).loss  # what is fitted stays the same
        np.testing.assert_array_equal(loss.expand(Y, np.ones(9), F), fitted.expand(Y, np.ones(9), F))
