"""Laws of intervals that contain the outputs of exact fits."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import calling
import problems
import tolerances
import twins.enclosure
import twins.losses
from kernsel.learners import losses
from kernsel.numerics.smooth import enclosure, enclosure_features, enclosure_kernel, newton
from kernsel.numerics.smooth.objective import Objective

WAYS = {
    "kernel": (newton.in_kernel, enclosure_kernel.enclose),
    "features": (newton.in_features, enclosure_features.enclose),
}
ways = pytest.mark.parametrize("way", WAYS)
LOSSES = {
    "hinge": (losses.HUBER_HINGE, (0.05,)),
    "wide hinge": (losses.HUBER_HINGE, (0.5,)),
    "squared hinge": (losses.SQUARED_HINGE, ()),
    "logistic": (losses.LOGISTIC, ()),
    "tube": (losses.HUBER_INSENSITIVE, (0.1, 0.05)),
    "squared tube": (losses.SQUARED_INSENSITIVE, (0.1,)),
}
OF_CLASSES = ("hinge", "wide hinge", "squared hinge", "logistic")


class Case:
    """A problem with a loss, in one kind of coordinates, whose first fold is left out."""

    def __init__(self, way, p, name, bias):
        loss, parameters = LOSSES[name]
        self.loss, self.parameters = replace(loss, parameters=parameters), np.array(parameters)
        self.solver, self.encloser = WAYS[way]
        self.y = p.y if name in OF_CLASSES else p.Y[0]
        self.s = np.where(np.arange(p.n) < p.starts[1], 0.0, p.s)
        self.G = np.ascontiguousarray(p.K if way == "kernel" else p.features(bias))
        self.bias, self.lam = bias, p.lam
        self.width = p.n + bias if way == "kernel" else self.G.shape[1]
        # of one class alone there is no fit with a bias, or no single one
        self.determined = not bias or name not in OF_CLASSES or len(set(p.y[self.s > 0])) == 2

    def fit(self, lam=None):
        """The exact fit: coefficients and outputs, solved to rounding."""
        x, f = np.zeros((1, 1, self.width)), np.zeros((1, 1, self.y.size))
        status = newton.solve_paths(
            self.solver, self.G[None], self.bias, np.zeros(1, np.int64), self.y[None], self.s[None],
            np.array([lam or self.lam]), self.loss.pointer, self.parameters, False, x, f, 1e-22,
        )  # fmt: skip
        assume(not status.any())
        return x[0, 0], f[0, 0]

    def enclose(self, x, rounds=8, lam=None):
        bend = enclosure.Bend.of(self.loss)
        objective = Objective(self.y[None], self.s[None], np.array([lam or self.lam]), self.parameters, self.bias)
        low, high = enclosure.enclose_fits(
            self.encloser, self.G, objective, np.zeros(1, np.int64), self.loss.pointer, bend,
            rounds, np.ascontiguousarray(x[None]),
        )  # fmt: skip
        return low[0], high[0]

    def enclose_between(self, x, other, higher):
        """Intervals for all lambda from the own to a higher one."""
        way = {newton.in_kernel: enclosure_kernel, newton.in_features: enclosure_features}[self.solver]
        bend = enclosure.Bend.of(self.loss)
        objective = Objective(self.y[None], self.s[None], np.array([self.lam, higher]), self.parameters, self.bias)
        low, high = enclosure.enclose_between(
            way.enclose_between, self.G, objective, self.loss.pointer, bend, x[None].copy(), other[None].copy()
        )
        return low[0], high[0]


def contains(low, high, exact):
    """Whether intervals contain outputs that are themselves known to rounding."""
    slack = tolerances.ENCLOSED * (1 + np.abs(exact).max())
    return (low <= exact + slack).all() and (high >= exact - slack).all()


@settings(max_examples=300)
@given(
    name=st.sampled_from(list(LOSSES)),
    y=st.sampled_from([-1.0, 1.0]),
    size=st.sampled_from([0.2, 1.0, 3.0]),
    outputs=st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=2),
    middle=st.floats(-0.5, 0.5),
    radius=st.floats(0.0, 1.0),
)
def test_no_slope_is_below_the_least_one(name, y, size, outputs, middle, radius):
    """By slopes from and to many outputs; where V' bends once it is that of them, or the curvature at an output."""
    off_kinks = np.pi * 1e-5  # at these the twins' pieces leave a gap of one rounding error
    outputs, middle, radius = [y + size * each + off_kinks for each in outputs], size * middle, size * radius
    loss, twin = LOSSES[name][0], twin_of(name)
    found = enclosure.least_slope.py_func(
        lambda y, f, _: twin(y, np.float64(f)), enclosure.Bend.of(loss), None, y, [[f] for f in outputs], 0, middle,
        radius,
    )  # fmt: skip
    ends = min(outputs) - middle - radius, max(outputs) - middle + radius
    t, f = np.linspace(*ends, 400), np.linspace(min(outputs), max(outputs), 9)[:, None]
    apart = np.abs(t - f) > 1e-3
    slopes = (twin(y, t)[1] - twin(y, f)[1])[apart] / (t - f)[apart]
    assert found <= slopes.min(initial=np.inf) + 1e-9
    if loss.bends_once and apart[:, [0, -1]].all():
        assert found >= min(slopes.min(), *(twin(y, f)[2] for f in np.array(outputs))) - 1e-9


@ways
@given(
    p=problems.problems(weighted=True),
    name=st.sampled_from(list(LOSSES)),
    bias=st.sampled_from([0, 1]),
    rounds=st.sampled_from([0, 1, 8]),
    off=st.integers(-8, 0),
    seed=st.integers(0, 2**32 - 1),
)
def test_no_exact_output_is_outside_from_whatever_fit(way, p, name, bias, rounds, off, seed):
    case = Case(way, p, name, bias)
    assume(case.determined)
    x, exact = case.fit()
    noise = np.random.default_rng(seed).normal(size=x.size) * max(np.abs(x).max(), 1e-3)
    other, _ = case.fit(lam=1.5 * p.lam)
    for start in (x, x + 10.0**off * noise, other, np.zeros_like(x)):
        assert contains(*case.enclose(start, rounds), exact)


@ways
@settings(max_examples=30)
@given(p=problems.problems(lams=(-10, 1)), name=st.sampled_from(list(LOSSES)), bias=st.sampled_from([0, 1]))
def test_the_interval_of_an_exact_fit_is_narrow(way, p, name, bias):
    case = Case(way, p, name, bias)
    assume(case.determined)
    assume(not bias or name == "logistic")  # a bias that rests on an edge of a parabola isn't determined
    x, exact = case.fit()
    low, high = case.enclose(x)
    assert (high - low).max() <= enclosure.NARROW * max(1.0, np.abs(exact).max()) * tolerances.SLACK


@ways
@settings(max_examples=30)
@given(p=problems.problems(weighted=True), name=st.sampled_from(list(LOSSES)), bias=st.sampled_from([0, 1]))
def test_the_ball_is_the_slow_twins(way, p, name, bias):
    case = Case(way, p, name, bias)
    assume(case.determined)
    x, _ = case.fit(lam=2 * p.lam)
    low, high = case.enclose(x, rounds=0)
    Z = p.features(bias)
    w = x if way == "features" else np.append(p.Z.T @ x[: p.n], x[p.n :])
    twin = twins.enclosure.ball(twin_of(name), Z, case.y, case.s, p.lam, w, bias)
    wide = tolerances.OUTWARD * (1 + np.abs(high).max() + np.abs(low).max())
    for found, expected, side in ((low, twin[2], 1), (high, twin[3], -1)):
        assert (side * (expected - found) >= -wide).all()  # never narrower
        np.testing.assert_allclose(found, expected, atol=wide)


@ways
@settings(max_examples=30)
@given(p=problems.problems(lams=(-8, 1)), bias=st.sampled_from([0, 1]))
def test_with_the_curvature_of_all_rows_the_ellipsoid_is_the_slow_twins(way, p, bias):
    """A hinge so wide that every row stays in its parabola: the first guess holds."""
    case = Case(way, p, "wide hinge", bias)
    assume(case.determined)
    case.parameters = np.array([50.0])
    x, _ = case.fit(lam=1.2 * p.lam)
    low, high = case.enclose(x)
    Z = p.features(bias)
    w = x if way == "features" else np.append(p.Z.T @ x[: p.n], x[p.n :])
    f, G, *ball = twins.enclosure.ball(twins.losses.huber_hinge(50.0), Z, case.y, case.s, p.lam, w, bias)
    assume(np.ptp(ball, axis=0).max() > 2 * enclosure.NARROW * max(1.0, np.abs(f).max()))
    D = case.s / (100.0 * case.s.sum())
    expected = twins.enclosure.ellipsoid(Z, p.lam, D, f, G, bias)
    out = case.s == 0  # of these alone the length in the norm of H is taken as it is
    scale = tolerances.OUTWARD * (1 + np.abs(f).max())
    np.testing.assert_allclose(low[out], np.maximum(expected[0], ball[0])[out], atol=scale)
    np.testing.assert_allclose(high[out], np.minimum(expected[1], ball[1])[out], atol=scale)


@ways
@settings(max_examples=40)
@given(p=problems.problems(lams=(-8, 1)), bias=st.sampled_from([0, 1]), seed=st.integers(0, 2**32 - 1))
def test_errors_of_slopes_have_no_part_along_the_bias(way, p, bias, seed):
    """The gradient is that of an exact bias: errors pull along the rows' functions, not along these and the bias."""
    random, double = np.random.default_rng(seed), 2 * p.lam
    off = random.exponential(size=p.n)
    errors = off * random.uniform(-1, 1, p.n) if seed % 2 else off
    D, pull, nothing = random.exponential(size=p.n) * (random.random(p.n) < 0.7), abs(errors.sum()), np.zeros(p.n)
    D[0] = 1.0
    Z = p.features(bias)
    H = (Z.T * D) @ Z + double * np.diag(np.arange(Z.shape[1]) < Z.shape[1] - bias)
    G = Z.T @ errors
    G[Z.shape[1] - bias :] = 0.0
    if way == "kernel":
        reach, *_ = calling.entry(enclosure_kernel.ellipsoid)(
            p.K, np.ones(p.n), double, bias, np.sqrt(p.K.diagonal()), D, nothing, nothing, off, pull,
            np.empty(p.n, np.int64), np.empty(p.n), np.empty(p.n),
        )  # fmt: skip
    else:
        reach, _ = calling.entry(enclosure_features.ellipsoid)(
            Z, double, bias, D, np.zeros(Z.shape[1]), 0.0, off, pull, np.empty(p.n), np.empty(p.n)
        )
    assert reach >= np.sqrt(G @ np.linalg.solve(H, G)) * (1 - 1e-6)


@ways
@given(
    p=problems.problems(weighted=True),
    name=st.sampled_from(list(LOSSES)),
    bias=st.sampled_from([0, 1]),
    ratio=st.floats(1.01, 8.0),
    part=st.floats(0.0, 1.0),
)
def test_no_exact_output_between_two_lambda_is_outside(way, p, name, bias, ratio, part):
    case = Case(way, p, name, bias)
    assume(case.determined)
    (x, f), (other, g) = case.fit(), case.fit(lam=ratio * p.lam)
    _, exact = case.fit(lam=(1 - part) * p.lam + part * ratio * p.lam)
    low, high = case.enclose_between(x, other, ratio * p.lam)
    away = exact - (1 - part) * f - part * g
    slack = tolerances.ENCLOSED * (1 + np.abs(exact).max())
    assert (low <= away + slack).all()
    assert (high >= away - slack).all()


@ways
@given(
    p=problems.problems(lams=(-8, 1)), ratio=st.floats(1.01, 2.0), part=st.floats(0.0, 1.0), off=st.floats(-0.5, 0.5)
)
def test_fits_whose_bias_is_off_are_interpolated_as_they_are(way, p, ratio, part, off):
    case = Case(way, p, "logistic", 1)
    assume(case.determined)
    (x, f), (other, g) = case.fit(), case.fit(lam=ratio * p.lam)
    _, exact = case.fit(lam=(1 - part) * p.lam + part * ratio * p.lam)
    x[-1], f = x[-1] + off, f + off
    low, high = case.enclose_between(x, other, ratio * p.lam)
    away = exact - (1 - part) * f - part * g
    slack = tolerances.ENCLOSED * (1 + np.abs(exact).max())
    assert (low <= away + slack).all()
    assert (high >= away - slack).all()


@ways
@settings(max_examples=5)
@given(seed=st.integers(0, 9))
def test_between_two_lambda_widths_are_of_second_order(way, seed):
    case = Case(way, problems.make(seed, n=40), "logistic", 1)
    assume(case.determined)
    x, _ = case.fit()
    widths = []
    for ratio in (1.4, 1.2, 1.1):
        other, _ = case.fit(lam=ratio * case.lam)
        low, high = case.enclose_between(x, other, ratio * case.lam)
        widths.append((high - low)[case.s == 0].max())
    assert np.isfinite(widths[0])
    assert widths[1] < 0.35 * widths[0]
    assert widths[2] < 0.35 * widths[1]


@ways
def test_where_one_class_is_left_the_bias_may_be_anything(way):
    p = problems.make(0, n=12, starts=[0, 6, 12])
    p.y[:6], p.y[6:] = -1.0, 1.0
    low, high = (Case(way, p, "logistic", 1)).enclose(np.zeros(13 if way == "kernel" else p.Z.shape[1] + 1))
    assert np.isneginf(low).all()
    assert np.isposinf(high).all()


@ways
def test_a_fit_that_is_not_finite_says_nothing(way):
    p = problems.make(0, n=12)
    case = Case(way, p, "hinge", 0)
    low, high = case.enclose(np.full(case.width, np.nan))
    assert np.isneginf(low).all()
    assert np.isposinf(high).all()


def twin_of(name):
    return {
        "hinge": twins.losses.huber_hinge(0.05),
        "wide hinge": twins.losses.huber_hinge(0.5),
        "squared hinge": twins.losses.squared_hinge,
        "logistic": twins.losses.logistic,
        "tube": twins.losses.huber_insensitive(0.1, 0.05),
        "squared tube": twins.losses.squared_insensitive(0.1),
    }[name]
