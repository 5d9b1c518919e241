"""Damped Newton on features in blocks of rows, against dense fits on the same features."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import losses as compiled
import tolerances
import twins.heldout
from kernsel.learners import losses
from kernsel.numerics.blocks import newton
from kernsel.numerics.blocks.features import Features, solve
from kernsel.numerics.smooth import convergence

LAMS = np.array([0.3, 0.01])
RANK = 4
LOSSES = {
    "hinge": (replace(losses.HUBER_HINGE, parameters=(0.3,)), compiled.huber_hinge(0.3)),
    "logistic": (losses.LOGISTIC, compiled.LOGISTIC),
    "squared hinge": (losses.SQUARED_HINGE, compiled.SQUARED_HINGE),
}
each_loss = pytest.mark.parametrize("name", LOSSES)
each_bias = pytest.mark.parametrize("bias", [0, 1], ids=["", "bias"])


class Case:
    """Sixteen rows with landmarks among them, two targets; five rows are a block."""

    def __init__(self, name, bias, weighted=True, n=16):
        rng = np.random.default_rng(3)
        self.loss, other = LOSSES[name]
        self.twin, self.bias = other.twin, bias
        self.X, self.s = rng.normal(size=(n, 2)), rng.exponential(size=n) + 0.2 if weighted else np.ones(n)
        flipped = rng.random((2, n)) < 0.2
        self.Y = np.where((self.X.T > 0) ^ flipped, 1.0, -1.0)
        points = self.X[:RANK]
        T = np.linalg.inv(np.linalg.cholesky(kernel(points, points))).T
        self.features = Features(kernel, points, np.ascontiguousarray(T), self.X, block_bytes=5 * 8 * RANK)
        self.Z = np.column_stack([kernel(self.X, points) @ T, np.ones((n, bias))])
        self.newton = newton.Newton(self.features, bias, self.X, self.Y, self.s, self.loss)

    def fits(self, kept=None, parts=1):
        """A fit of each target for each lambda, not begun."""
        outputs, lams = np.repeat([0, 1], LAMS.size), np.tile(LAMS, 2)
        return newton.Fits.empty(outputs, lams, kept, len(self.X), RANK + self.bias, parts)

    def dense(self, output, lam, s):
        return twins.heldout.fit(self.twin, self.Z, self.Y[output], s, lam, self.bias)


def kernel(X, Z):
    return np.exp(-((X[:, None] - Z[None]) ** 2).sum(axis=-1) / 4)


@each_loss
@each_bias
@pytest.mark.parametrize("without", [False, True], ids=["", "without rows"])
def test_the_minimum_is_that_of_dense_fits(name, bias, without):
    case = Case(name, bias)
    kept = np.random.default_rng(1).random((4, 16)) < 0.8 if without else None
    fits = case.fits(kept)
    assert not case.newton.minimise(fits).any()
    for j in range(4):
        s = case.s if kept is None else case.s * kept[j]
        w = case.dense(fits.output[j], fits.lams[j], s)
        np.testing.assert_allclose(fits.w[j], w, rtol=0, atol=tolerances.curved(case.Z @ case.Z.T, fits.lams[j]))
        np.testing.assert_allclose(fits.f[j], case.Z @ fits.w[j], rtol=0, atol=1e-12)


@each_bias
def test_the_minimum_is_the_same_where_all_pivots_are_eliminated(bias):
    """As rows that depend on each other nearly have it: nothing is left to finish then."""
    case = Case("logistic", bias)
    features = Features(kernel, case.X[:RANK], case.features.T, None)
    assert features.head == features.rank
    fits = case.fits()
    assert not newton.Newton(features, bias, case.X, case.Y, case.s, case.loss).minimise(fits).any()
    for j in range(4):
        w = case.dense(fits.output[j], fits.lams[j], case.s)
        np.testing.assert_allclose(fits.w[j], w, rtol=0, atol=tolerances.curved(case.Z @ case.Z.T, fits.lams[j]))


def test_a_fit_that_starts_far_off_is_damped_and_goes_on_from_known_outputs():
    case = Case("hinge", 0)
    case.newton.parameters[0] = 1e-3  # a kink so narrow that whole steps cycle
    case.twin = compiled.huber_hinge(1e-3).twin
    fits = case.fits()
    fits.w[:] = 100 * np.random.default_rng(0).normal(size=fits.w.shape)
    fits.f[:] = fits.w @ case.Z.T
    assert not case.newton.resume(fits).any()
    for j in range(4):
        w = case.dense(fits.output[j], fits.lams[j], case.s)
        np.testing.assert_allclose(fits.f[j], case.Z @ w, rtol=0, atol=1e-7)


@each_bias
def test_one_class_alone_is_predicted_everywhere(bias):
    """No row is on the hinge's parabola at first: a bias moves alone, to where rows stop pulling and J becomes 0."""
    case = Case("hinge", bias)
    case.Y[:] = 1.0
    fits = case.fits()
    assert (case.newton.minimise(fits) <= convergence.UNFINISHED).all()  # no step promises a small share of 0
    for j in range(4):
        value = twins.heldout.objective(case.twin, case.Z, case.Y[0], case.s, fits.lams[j], fits.w[j], bias)[0]
        w = case.dense(0, fits.lams[j], case.s)
        least = twins.heldout.objective(case.twin, case.Z, case.Y[0], case.s, fits.lams[j], w, bias)[0]
        assert value <= least + tolerances.PENALTY


def test_values_that_are_not_finite_are_a_status_of_their_fit_alone():
    case = Case("logistic", 1)
    fits = case.fits()
    fits.w[1, 0] = np.nan
    found = case.newton.minimise(fits)
    assert found[1] == convergence.NOT_FINITE
    assert not np.delete(found, 1).any()


@each_loss
@each_bias
def test_products_and_gradients_of_parts_are_dense_sums(name, bias):
    case = Case(name, bias)
    fits, bounds = case.fits(parts=3), [0, 7, 9, 16]
    fits.w[:] = np.random.default_rng(0).normal(size=fits.w.shape)
    fits.f[:] = fits.w @ case.Z.T
    parts = [slice(lo, hi) for lo, hi in pairwise(bounds)]
    totals, gradients = case.newton.evaluate(fits, np.array([0, 3]), list(enumerate(parts)))
    for i, j in enumerate((0, 3)):
        v, d1, d2 = case.twin(case.Y[fits.output[j]], fits.f[j])
        np.testing.assert_allclose(totals[i], case.s @ v, rtol=1e-12)
        for part, rows in enumerate(parts):
            Z, s = case.Z[rows], case.s[rows]
            np.testing.assert_allclose(gradients[i, part], Z.T @ (s * d1[rows]), rtol=0, atol=1e-12)
            products = case.newton.finished(fits.products[j, part])
            np.testing.assert_allclose(products, (Z.T * (s * d2[rows])) @ Z, rtol=0, atol=1e-12)


@each_loss
@each_bias
def test_steps_end_where_they_lead_and_stray_by_what_the_quadratic_model_is_off(name, bias):
    case = Case(name, bias)
    fits, starts = case.fits(), np.array([0, 5, 11])  # the last rows are in no fold
    case.newton.minimise(fits)
    kept = np.ones((2, 16), np.bool_)
    kept[0, :5] = kept[1, 5:11] = False
    w = fits.w[:, None] + 0.3 * np.random.default_rng(0).normal(size=(4, 2, RANK + bias))
    f, stray = case.newton.ends(fits, w, starts, kept)
    for j in range(4):
        y, penalised = case.Y[fits.output[j]], twins.heldout.ridged(case.Z, bias)
        np.testing.assert_allclose(f[j, 11:], fits.f[j, 11:])
        for fold, S in enumerate(twins.heldout.folds(starts)):
            end, left = case.Z @ w[j, fold], kept[fold] * case.s
            np.testing.assert_allclose(f[j, S], end[S], rtol=0, atol=1e-12)
            (v, d1, d2), after = case.twin(y, fits.f[j]), case.twin(y, end)[0]
            step = end - fits.f[j]
            off = left @ np.abs(after - v - step * (d1 + d2 * step / 2))
            ridge = left.sum() * fits.lams[j] * penalised
            slope = left @ (d1 * step) + 2 * ridge * fits.w[j] @ (w[j, fold] - fits.w[j])
            off = max(off - convergence.NEGLIGIBLE * (left @ v + ridge * fits.w[j] @ fits.w[j]), 0)
            expected = (off / (-slope / 2) if slope < 0 else np.inf) if off else 0.0
            np.testing.assert_allclose(stray[j, fold], expected, rtol=1e-6)


def test_systems_are_solved_for_every_ridge_and_a_singular_one_is_a_status():
    Z = np.random.default_rng(0).normal(size=(6, 3))
    H, right = Z.T @ Z, np.random.default_rng(1).normal(size=(2, 3))
    w, status = solve(H, right, 1, np.array([0.5, 2.0]))
    assert not status.any()
    for k, ridge in enumerate((0.5, 2.0)):
        np.testing.assert_allclose(w[:, k], np.linalg.solve(H + np.diag([ridge, ridge, 0.0]), right.T).T, rtol=1e-12)
    assert solve(-H, right, 0, np.array([0.5]))[1] == convergence.SINGULAR
