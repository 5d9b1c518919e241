"""Probabilities from outputs: the minimum that Platt asks for, scikit-learn's answers, and honest cross-fitting."""

import json
import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

import tables
import tolerances
from kernsel.errors import OptionError
from kernsel.heldout.calibration import (
    Calibration,
    Isotonic,
    Sigmoid,
    calibrate,
    cross_fitted,
    isotonic,
    platt,
    read_calibration,
)
from kernsel.learners import Krr, Svm

fitted = pytest.mark.parametrize("kind", ["sigmoid", "isotonic"])


class Outputs(ClassifierMixin, BaseEstimator):
    """Its decision values are the features: what is calibrated is the data."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return X[:, 0] if X.shape[1] == 1 else X

    def predict(self, X):
        return self.classes_[(X[:, 0] > 0).astype(int) if X.shape[1] == 1 else X.argmax(axis=1)]


def outputs(n=80, k=1, seed=0, scale=1.0):
    """Outputs that say something of the classes, and classes as -1 and +1."""
    rng = np.random.default_rng(seed)
    if k == 1:
        y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
        return scale * (0.7 * y + rng.normal(size=n))[None], y[None]
    Y = np.where(np.arange(n) % k == np.arange(k)[:, None], 1.0, -1.0)
    return scale * (0.7 * Y + rng.normal(size=(k, n))), Y


def loss(theta, f, y, s):
    plus, minus = s[y > 0].sum(), s[y < 0].sum()
    t = np.where(y > 0, (plus + 1) / (plus + 2), 1 / (minus + 2))
    z = theta[0] * f + theta[1]
    return s @ (np.logaddexp(0, z) - t * z)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 40),
    st.sampled_from([-3.0, -0.1, 0.0, 0.5, 20.0]),
    st.sampled_from([1e-200, 1e-6, 1.0, 1e6, 1e200]),
    st.booleans(),
)
def test_platt_finds_the_minimum(seed, n, signal, scale, weighted):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)  # now and then of one class only
    f = signal * y + rng.normal(size=n)
    s = rng.exponential(size=n) + 0.1 if weighted else np.ones(n)
    curve = platt(f * scale, y, 7 * s if weighted else s)  # of weights that aren't counts only the ratios matter
    found = loss((curve.slope * scale, curve.offset), f, y, s / s.mean())
    lowest = minimize(loss, (0.1, 0.0), (f, y, s / s.mean()), method="BFGS")
    best = lowest.fun
    if lowest.x[0] < 0:  # a slope that turns outputs around is none
        best = minimize(lambda b: loss((0.0, b[0]), f, y, s / s.mean()), (0.0,), method="BFGS").fun
    assert found <= best + tolerances.PENALTY * max(1.0, best)


def test_a_row_of_weight_two_is_there_twice():
    F, Y = outputs()
    s = 1.0 + np.arange(F.size) % 3
    twice = np.repeat(np.arange(F.size), s.astype(int))
    weighted, repeated = platt(F[0], Y[0], s), platt(F[0, twice], Y[0, twice], np.ones(twice.size))
    np.testing.assert_allclose([weighted.slope, weighted.offset], [repeated.slope, repeated.offset], rtol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scale", [1.0, 100.0])
@fitted
def test_two_classes_agree_with_scikit_learn(kind, scale, weighted):
    F, Y = outputs(scale=scale)
    s = np.random.default_rng(1).exponential(size=F.shape[1])
    s = s / s.mean() if weighted else np.ones(F.shape[1])
    new = np.linspace(2 * F.min(), 2 * F.max(), 50)
    rival = CalibratedClassifierCV(FrozenEstimator(Outputs().fit(F.T, Y[0])), method=kind, cv=2, ensemble=False)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Since FrozenEstimator does not appear to accept sample_weight")
        rival.fit(F.T, Y[0], sample_weight=s)
    P = calibrate(kind, F, Y, s).probabilities(new[None])
    np.testing.assert_allclose(P, rival.predict_proba(new[:, None]), atol=tolerances.LBFGS, rtol=0)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)


@fitted
def test_more_classes_agree_with_scikit_learn(kind):
    F, Y = outputs(k=4)
    labels = Y.argmax(axis=0)
    rival = CalibratedClassifierCV(FrozenEstimator(Outputs().fit(F.T, labels)), method=kind, cv=2, ensemble=False)
    rival.fit(F.T, labels)
    P = calibrate(kind, F, Y, np.ones(80)).probabilities(F)
    np.testing.assert_allclose(P, rival.predict_proba(F.T), atol=tolerances.LBFGS, rtol=0)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)


def test_classes_without_any_probability_share_it():
    curves = Isotonic((0.0, 1.0), (0.0, 1.0))
    P = Calibration("isotonic", (curves,) * 4).probabilities(np.array([[-1.0, 2.0], [-2, 1], [0, 0], [-1, -1]]))
    np.testing.assert_array_equal(P, [[0.25, 0.25, 0.25, 0.25], [0.5, 0.5, 0, 0]])


@pytest.mark.parametrize("f", [np.zeros(6), np.full(6, 1e-310), np.full(6, 7.0)])
def test_outputs_that_say_nothing_give_the_smoothed_share(f):
    curve = platt(f, np.array([1.0, 1, 1, 1, -1, -1]), np.ones(6))
    assert curve.slope == pytest.approx(0, abs=1e-9)
    expected = (4 * 5 / 6 + 2 * 1 / 4) / 6
    np.testing.assert_allclose(curve(f), expected)


def test_separated_classes_and_one_class_have_a_sigmoid():
    y = np.array([-1.0, -1, 1, 1])
    curve = platt(np.array([-2.0, -1, 1, 2]), y, np.ones(4))
    assert np.isfinite([curve.slope, curve.offset]).all()
    assert 0.0 < curve(np.array(-1.5)) < 0.3 < 0.7 < curve(np.array(1.5)) < 1.0
    alone = platt(np.array([-2.0, -1, 1, 2]), np.ones(4), np.ones(4))
    np.testing.assert_allclose(alone(np.array([-5.0, 5.0])), 5 / 6)


def test_a_sigmoid_does_not_overflow():
    np.testing.assert_array_equal(Sigmoid(1.0, 0.0)(np.array([-1e308, 0.0, 1e308])), [0.0, 0.5, 1.0])


@fitted
def test_cross_fitted_rows_have_no_part_in_their_own_curve(kind):
    F, Y = outputs(40)
    starts = np.array([0, 7, 20, 28, 40])
    P = cross_fitted(kind, F, Y, np.ones(40), starts)
    changed = Y.copy()
    changed[:, 7:20] *= -1
    other = cross_fitted(kind, F, changed, np.ones(40), starts)
    np.testing.assert_array_equal(P[7:20], other[7:20])
    assert np.abs(P[:7] - other[:7]).max() > 0.01
    assert np.isnan(cross_fitted(kind, F, Y, np.ones(40), np.array([0, 40]))).all()
    own = calibrate(kind, F[:, 7:], Y[:, 7:], np.ones(33)).probabilities(F[:, :7])
    np.testing.assert_array_equal(P[:7], own)


@pytest.mark.parametrize(("kind", "k"), [("sigmoid", 1), ("isotonic", 1), ("isotonic", 3), ("none", 1)])
def test_a_calibration_survives_json(kind, k):
    F, Y = outputs(k=k)
    curves = calibrate(kind, F, Y, np.ones(80))
    again = Calibration.from_json(json.loads(json.dumps(curves.to_json())))
    assert again == curves
    np.testing.assert_array_equal(again.probabilities(F), curves.probabilities(F))


def test_isotonic_never_falls():
    F, Y = outputs()
    curve = isotonic(F[0], Y[0], np.ones(80))
    p = curve(np.linspace(-9, 9, 200))
    assert (np.diff(p) >= 0).all()
    assert 0.0 <= p[0] < 0.2 < 0.8 < p[-1] <= 1.0


@dataclass(frozen=True)
class Logistic(Krr):
    """A learner that says that its outputs are log-odds."""

    log_odds: ClassVar[bool] = True


def test_log_odds_need_no_calibration():
    assert read_calibration("none", Logistic(), "classification", 2) == "none"
    F, Y = outputs()
    P = calibrate("none", F, Y, np.ones(80)).probabilities(F)
    np.testing.assert_allclose(P[:, 1], 1 / (1 + np.exp(-F[0])))


def test_calibrations_that_cannot_be():
    assert read_calibration(None, Svm(bias=False), "classification", 2) == "sigmoid"
    assert read_calibration(None, Krr(), "regression", 0) is None
    with pytest.raises(
        OptionError,
        match="calibration 'platt' is unknown: use sigmoid, isotonic, venn-abers, temperature, softmax, none",
    ):
        read_calibration("platt", Svm(bias=False), "classification", 2)
    with pytest.raises(OptionError, match="is for classes, and this is a regression"):
        read_calibration("sigmoid", Krr(), "regression", 0)
    with pytest.raises(OptionError, match="'none' needs a learner with probabilities of its own, and 'svm' has none"):
        read_calibration("none", Svm(bias=False), "classification", 2)


# Through a selection


@fitted
def test_a_selection_has_probabilities_of_its_rows(kind):
    X, y = tables.circles(200, flips=0.2)
    options = {"folds": 5, "grid": {"tau": [1.0], "lambda": [0.01, 0.1]}, "extend": False}
    result = tables.choose(X, y, calibration=kind, **options)
    P = result.probabilities
    assert P.shape == (200, 2)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    truth = y == result.data["labels"][1]
    brier = np.mean((P[:, 1] - truth) ** 2)
    assert brier < 0.85 * truth.mean() * (1 - truth.mean())
    # The order of the data: the probability goes with the output of the same row, but for its fold's curve.
    assert np.corrcoef(P[:, 1], result.outputs)[0, 1] > 0.85
    assert result.options["calibration"] == kind


@fitted
def test_the_brier_score_of_held_out_probabilities_is_that_of_new_rows(kind):
    differences = []
    for seed in range(8):
        options = {"folds": 5, "grid": {"tau": [1.0], "lambda": [0.01]}, "extend": False, "calibration": kind}
        X, y = tables.circles(200, seed=seed, flips=0.2)
        result = tables.choose(X, y, **options)
        fresh, labels = tables.circles(2000, seed=100 + seed, flips=0.2)
        heldout = np.mean((result.probabilities[:, 1] - (y == "out")) ** 2)
        new = np.mean((result.model.predict_proba(fresh)[:, 1] - (labels == "out")) ** 2)
        differences.append(heldout - new)
    # One difference has a standard deviation of about 0.016, and the optimism of a fit's own rows would be -0.05.
    assert abs(np.mean(differences)) < 0.018


def test_probabilities_of_wine():
    X, y = tables.wine()
    result = tables.choose(X, y, grid={"tau": [8.0, 32.0], "lambda": [1e-4, 1e-2]}, extend=False)
    assert result.probabilities.shape == (178, 3)
    assert np.mean(result.probabilities.argmax(axis=1) == y) > 0.95
    assert -np.log(result.probabilities[np.arange(178), y]).mean() < 0.2


def test_a_regression_has_no_probabilities():
    result = tables.choose(*tables.waves(), grid={"tau": [1.0], "lambda": [0.1]})
    assert result.probabilities is None
    assert result.model.calibration is None
