"""Venn-Abers probabilities against their definition by scikit-learn, and the temperature of the least cross-entropy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from sklearn.isotonic import IsotonicRegression

import tables
from kernsel.data import from_arrays
from kernsel.heldout.calibration import Calibration, calibrate
from kernsel.heldout.coupling import softmax
from kernsel.heldout.vennabers import venn_abers
from kernsel.model.model import load
from kernsel.selection.carry_out import select_dataset


def drawn(seed, n=25, k=1):
    rng = np.random.default_rng(seed)
    if k > 1:
        Y = np.where(rng.integers(0, k, n) == np.arange(k)[:, None], 1.0, -1.0)
    else:
        Y = np.where(rng.random((1, n)) < 0.4, 1.0, -1.0)
    return np.round(0.7 * Y + rng.normal(size=Y.shape), 1), Y, rng.integers(1, 4, n).astype(float)


@given(st.integers(0, 2**32 - 1))
def test_they_are_those_of_two_isotonic_fits(seed):
    F, Y, s = drawn(seed)
    f, y = F[0], Y[0]
    curve = venn_abers(f, y, s)
    for new in np.r_[f[:5], f[:5] + 0.05, f.min() - 1, f.max() + 1]:
        p = [
            IsotonicRegression().fit(np.r_[f, new], np.r_[y > 0, label], sample_weight=np.r_[s, 1.0]).predict([new])[0]
            for label in (0.0, 1.0)
        ]
        np.testing.assert_allclose(curve(np.array([new])), p[1] / (1 - p[0] + p[1]), atol=1e-12)
    grid = np.linspace(f.min() - 1, f.max() + 1, 200)
    assert (np.diff(curve(grid)) >= -1e-12).all()


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 3]))
def test_a_temperature_has_the_least_cross_entropy(seed, k):
    F, Y, s = drawn(seed, 40, k)
    found = calibrate("temperature", F, Y, s).curves[0].slope
    G, both = (np.vstack([0 * F, F]), np.vstack([-Y, Y])) if k == 1 else (F, Y)
    counts = (both > 0) @ s
    T = np.where(both > 0, ((counts + 1) / (counts + 2))[:, None], (1 / (s.sum() - counts + 2))[:, None])
    T = T / T.sum(axis=0)

    def loss(a):
        return -(s * (T * np.log(softmax(a * G).T)).sum(axis=0)).sum()

    best = minimize_scalar(loss, bounds=(0.0, 20.0), method="bounded", options={"xatol": 1e-9})
    assert loss(found) <= best.fun * (1 + 1e-9)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("kind", ["venn-abers", "temperature"])
def test_they_survive_json_and_sum_to_one(kind, k):
    F, Y, s = drawn(0, 40, k)
    made = calibrate(kind, F, Y, s)
    P = made.probabilities(F)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    np.testing.assert_array_equal(Calibration.from_json(made.to_json()).probabilities(F), P)
    if kind == "temperature" and k > 1:
        np.testing.assert_array_equal(P.argmax(axis=1), F.argmax(axis=0))


@pytest.mark.parametrize("data", [tables.circles, tables.wine])
@pytest.mark.parametrize("kind", ["venn-abers", "temperature"])
def test_a_model_keeps_them(tmp_path, data, kind):
    X, y = data()
    found = select_dataset(
        from_arrays(X, y), kernel="gaussian(tau=1.0)", grid={"lambda": [0.01, 0.1]}, folds=5, calibration=kind
    )
    assert np.isfinite(found.probabilities).all()
    found.model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict_proba(X), found.model.predict_proba(X))


def test_outputs_turned_around_have_no_slope():
    F, Y, s = drawn(0)
    assert calibrate("temperature", -np.abs(F) * Y, Y, s).curves[0].slope == 0.0
