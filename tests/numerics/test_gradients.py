"""Gradients against differences, and the values against the criteria."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import problems
import tables
import tolerances
import twins.leaveoneout
from kernsel.criteria import BR, CV, ELOO, Evidence
from kernsel.learners import Krr, Lssvm
from kernsel.numerics.runtime.threads import one_blas_thread
from kernsel.numerics.square import gradients, spectral
from kernsel.numerics.square.spectral import Spectrum

FUNCTIONS = {
    "k-fold": lambda K, p, bias, lam: gradients.cross_validation(K, p.Y, p.s, bias, lam, p.starts),
    "loo": lambda K, p, bias, lam: gradients.cross_validation(K, p.Y, p.s, bias, lam, twins.leaveoneout.singles(p.n)),
    "loo, equal": lambda K, p, bias, lam: gradients.cross_validation(
        K, p.Y, np.ones(len(p.s)), bias, lam, twins.leaveoneout.singles(p.n)
    ),
    "br": lambda K, p, bias, lam: gradients.bayesian_regularisation(K, p.Y, p.s, bias, lam, p.starts),
    "evidence": lambda K, p, bias, lam: gradients.evidence(K, p.Y, p.s, bias, lam),
}


@pytest.fixture(autouse=True, scope="module")
def small_matrices():
    """BLAS threads on so small ones would only get in each other's way."""
    with one_blas_thread():
        yield


functions = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
biases = pytest.mark.parametrize("bias", [0, 1], ids=["", "bias"])


def slope_of(f):
    """The derivative at 0 of a smooth function, from a polynomial through 9 points."""
    nodes = np.cos(np.pi * (np.arange(9) + 0.5) / 9)
    return np.linalg.solve(np.vander(nodes, increasing=True), [f(x) for x in nodes])[1]


@functions
@biases
@settings(max_examples=10)
@given(p=problems.problems(largest=5, lams=(-8, 3), widths=(-3, 3), weighted=True), seed=st.integers(0, 99))
def test_gradients_are_differences(function, bias, p, seed):
    """Along a random direction of symmetric matrices, and along the logarithm of lambda."""
    assume(p.n > 3 and np.ptp(p.y) > 0)  # a bias leaves nothing of a constant target
    E = np.random.default_rng(seed).normal(size=p.K.shape)
    E = (E + E.T) * (0.02 * len(p.s) * p.lam / np.abs(np.linalg.eigvalsh(E + E.T)).max())  # the ridge is far larger
    value, W, slope = function(p.K, p, bias, p.lam)
    np.testing.assert_allclose(W, W.T, rtol=0, atol=1e-12 * np.abs(W).max())
    along = slope_of(lambda x: function(p.K + x * E, p, bias, p.lam)[0])
    scale = abs(value) + np.linalg.norm(W) * np.linalg.norm(E)
    assert (W * E).sum() == pytest.approx(along, abs=tolerances.DIFFERENCES * scale)
    along = slope_of(lambda x: function(p.K, p, bias, p.lam * np.exp(0.1 * x))[0]) / 0.1
    assert slope * p.lam == pytest.approx(along, abs=tolerances.DIFFERENCES * (abs(value) + abs(slope * p.lam)))


@functions
@biases
def test_some_rows_are_never_held_out(function, bias):
    p = problems.make(0, starts=[0, 4, 5, 21], weighted=True)
    value, W, _ = function(p.K, p, bias, p.lam)
    E = np.random.default_rng(0).normal(size=p.K.shape)
    E = 1e-3 * (E + E.T)
    along = slope_of(lambda x: function(p.K + x * E, p, bias, p.lam)[0])
    assert (W * E).sum() == pytest.approx(along, rel=tolerances.DIFFERENCES)
    assert np.isfinite(value)


@pytest.mark.parametrize("learner", [Krr(), Lssvm()], ids=["krr", "lssvm"])
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
def test_the_values_are_those_of_the_criteria(learner, weighted):
    rows = tables.make_rows(real=True)
    s = np.random.default_rng(0).exponential(size=rows.n) + 0.05 if weighted else None
    rows = tables.Partition(rows.X, rows.Y, rows.starts, rows.order, rows.statistics, 0, s)
    path = tables.path_on(rows, learner, [0.02])
    args = path.problem.gram, rows.Y, rows.s, int(path.bias), 0.02
    values = {
        CV(): gradients.cross_validation(*args, rows.starts)[0],
        ELOO(): gradients.cross_validation(*args, twins.leaveoneout.singles(rows.n))[0],
        Evidence(): gradients.evidence(*args)[0],
        BR(): gradients.bayesian_regularisation(*args, rows.starts)[0] + BR().score(path).terms["penalty"][0],
    }
    for criterion, value in values.items():
        assert value == pytest.approx(criterion.score(path).score[0], rel=1e-10)


@functions
@biases
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
def test_inverses_and_one_spectrum_give_the_same(monkeypatch, function, bias, weighted):
    p = problems.make(3, n=20, weighted=weighted)
    found = []
    for few in (True, False):
        monkeypatch.setattr(gradients, "factors_are_cheaper", lambda lams, left, few=few: few)
        found.append(function(p.K, p, bias, p.lam))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * np.abs(one).max())


@biases
def test_the_products_of_section_3_are_those_of_press(bias):
    """Of single rows: ``dQ/dK = -A (r / s) a' + A diag(r^2 / s) A``; ``a = A y``, ``s = diag A``, ``r = a / s``."""
    p = problems.make(1, n=15)
    n, H = p.n, p.K + (p.n - 1) * p.lam * np.eye(p.n)
    A = np.linalg.inv(H)
    if bias:
        u = A.sum(axis=1)
        A -= np.outer(u, u) / u.sum()
    a = A @ p.Y[0]
    r = a / np.diag(A)
    G = -np.outer(A @ (r / np.diag(A)), a) + A @ np.diag(r**2 / np.diag(A)) @ A
    value, W, slope = gradients.cross_validation(p.K, p.Y[:1], p.s, bias, p.lam, twins.leaveoneout.singles(n))
    assert value == pytest.approx((r**2).mean())
    np.testing.assert_allclose(W, (G + G.T) / n, rtol=1e-8, atol=1e-10)
    assert slope == pytest.approx(2 * np.trace(G) * (n - 1) / n)


@functions
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
def test_a_ridge_below_rounding_is_an_error(function, weighted):
    p = problems.make(0, n=20, tau=50.0, weighted=weighted)
    with pytest.raises(np.linalg.LinAlgError):
        function(p.K, p, 0, 1e-30)


def test_the_least_ridge_is_below_rounding_of_an_incomplete_spectrum_only():
    p = problems.make(0, n=20, tau=50.0)
    ev = Spectrum.of_gram(p.K)[1]
    assert ev.size < 20
    assert 0 < spectral.least_ridge(ev, 20) < 1e-12
    assert spectral.least_ridge(ev, ev.size) == 0.0
