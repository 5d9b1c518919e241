"""Coupled outputs of more than two classes: the minimum of its objective, masked classes, and held-out rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import kernsel
import tables
from kernsel.errors import OptionError
from kernsel.heldout import coupling
from kernsel.heldout.coupling import Coupling, couple, cross_coupled, softmax


def outputs(seed, k=3, n=60):
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    Y = np.where(codes == np.arange(k)[:, None], 1.0, -1.0)
    return 0.4 * Y + rng.normal(scale=0.7, size=(k, n)), Y, rng.uniform(0.5, 2.0, n)


def spread(F, s):
    centre = (F @ s / s.sum())[:, None]
    return np.sqrt(((F - centre) ** 2 @ s).sum() / (len(F) * s.sum()))


def objective(A, b, a, F, Y, s):
    """The cross-entropy and the penalty, in plain loops."""
    k, n = F.shape
    s = s / s.mean()
    scale = spread(F, s)
    total = 0.5 * ((A * scale - a * np.eye(k)) ** 2).sum()
    for i in range(n):
        g = A @ F[:, i] + b
        y = int(np.argmax(Y[:, i]))
        size = s[Y[y] > 0].sum()
        target = np.full(k, 1 / (size + 2) / (k - 1))
        target[y] = (size + 1) / (size + 2)
        total += s[i] * (np.log(np.exp(g).sum()) - target @ g)
    return total


@given(st.integers(0, 1000), st.integers(3, 5))
def test_the_coupling_minimises_its_objective(seed, k):
    F, Y, s = outputs(seed, k)
    found = couple(F, Y, s)

    def best(A, b):  # over the free scale
        scaled = A * spread(F, s)
        return objective(A, b, np.trace(scaled) / k, F, Y, s)

    lowest = best(found.A, found.b)
    rng = np.random.default_rng(seed)
    for size in (1e-3, 1e-2, 1e-1):
        assert best(found.A + size * rng.normal(size=(k, k)), found.b + size * rng.normal(size=k)) >= lowest - 1e-9


def test_it_is_near_multinomial_regression_where_rows_are_many():
    F, Y, s = outputs(0, 3, 3000)
    P = softmax(couple(F, Y, s)(F))
    rival = LogisticRegression(C=1e4, max_iter=1000).fit(F.T, Y.argmax(axis=0), s).predict_proba(F.T)
    np.testing.assert_allclose(P, rival, atol=0.01)


def test_a_shift_and_a_scale_of_all_outputs_change_nothing():
    F, Y, s = outputs(1)
    np.testing.assert_allclose(couple(3.0 * F + 7.0, Y, s)(3.0 * F + 7.0), couple(F, Y, s)(F), atol=1e-8)


def test_probabilities_are_finite_where_classes_are_separated():
    _, Y, s = outputs(2)
    P = softmax(couple(1e3 * Y, Y, s)(1e3 * Y))
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert (P.max(axis=1) < 1).all()
    assert (P.argmax(axis=1) == Y.argmax(axis=0)).all()
    np.testing.assert_allclose(softmax(Coupling(np.eye(3), np.zeros(3))(np.array([[1e4], [0.0], [0.0]]))), [[1, 0, 0]])


def test_no_row_has_a_part_in_its_own_coupling():
    F, Y, s = outputs(3)
    starts = np.array([0, 20, 40, 60])
    coupled = cross_coupled(F, Y, s, starts)
    for fold in range(3):
        own = np.arange(60) // 20 == fold
        np.testing.assert_allclose(coupled[:, own], couple(F[:, ~own], Y[:, ~own], s[~own])(F[:, own]))
    np.testing.assert_array_equal(cross_coupled(F, Y, s, np.array([0, 60])), F)


def shells(n, seed=0):
    """Three classes by the distance from the middle: one lies between the others."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, np.digitize((X**2).sum(axis=1), [2.5, 4.5])


def test_a_class_between_others_is_not_masked():
    X, y = shells(200)
    far, truth = shells(2000, 1)
    options = {"kernel": "gaussian", "learner": "lssvm", "folds": 5}
    alone = tables.choose(X, y, "classification", calibration="sigmoid", **options)
    coupled = tables.choose(X, y, "classification", **options)
    assert coupled.options["calibration"] == "softmax"
    errors = [np.mean(each.model.predict(far) != truth) for each in (alone, coupled)]
    assert errors[1] < 0.8 * errors[0]
    assert coupled.best.error == pytest.approx(errors[1], abs=0.06)
    P = coupled.model.predict_proba(far)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert (np.asarray(coupled.model.labels)[P.argmax(axis=1)] == coupled.model.predict(far)).all()
    assert np.mean(coupled.heldout != y) == pytest.approx(coupled.best.error)
    assert (np.asarray(coupled.model.labels)[coupled.probabilities.argmax(axis=1)] == coupled.heldout).all()


def test_a_model_with_coupled_outputs_is_saved(tmp_path):
    X, y = shells(80)
    result = kernsel.select(X, y, task="classification", kernel="gaussian", folds=3)
    result.model.save(tmp_path / "model.npz")
    model = kernsel.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(model.predict_proba(X), result.model.predict_proba(X))


def test_two_classes_are_not_coupled():
    with pytest.raises(OptionError, match="couples the outputs of more than two classes"):
        tables.choose(*tables.circles(30), calibration="softmax", folds=3)


def test_newton_and_gradients_agree(monkeypatch):
    F, Y, s = outputs(5, 4)
    found = couple(F, Y, s)(F)
    monkeypatch.setattr(coupling, "MOST", 3)
    other = couple(F, Y, s)(F)
    np.testing.assert_allclose(softmax(other), softmax(found), atol=1e-3)


def test_a_weight_of_two_is_a_row_twice():
    F, Y, _ = outputs(6)
    s = 1.0 + np.arange(60) % 3
    again = np.repeat(np.arange(60), s.astype(int))
    twice = couple(F[:, again], Y[:, again], np.ones(again.size))
    np.testing.assert_allclose(softmax(couple(F, Y, s)(F)), softmax(twice(F)), atol=1e-10)


def test_outputs_that_are_turned_around_say_nothing():
    F, Y, s = outputs(7)
    found = couple(-F, Y, s)
    P = softmax(found(-F))
    assert (found.A == 0).all()
    counts = (Y > 0) @ (s / s.mean())
    np.testing.assert_allclose(P[0], (counts + 1) / (counts.sum() + 3))


def test_rows_left_out_alone_are_not_coupled():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(45, 4)), rng.permutation(np.repeat([0, 1, 2], 15))
    options = {"kernel": "gaussian(tau=2)", "grid": {"lambda": [100.0]}, "extend": False, "folds": "loo"}
    result = tables.choose(X, y, "classification", learner="lssvm", **options)
    assert result.options["calibration"] == "sigmoid"
    assert result.best.error > 0.4
    assert result.data["baseline"]["error"] == pytest.approx(2 / 3)
