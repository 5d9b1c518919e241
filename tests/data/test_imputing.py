"""Missing numbers given the others of their row, against the formula row by row and known laws."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.impute import SimpleImputer

from kernsel.data.imputing import MOST_FEATURES, MOST_ROWS, RIDGE, STEPS, TOLERANCE, NormalLaw, fit_normal

RNG = np.random.default_rng(0)


def rows_with_gaps(n=200, d=4, share=0.2, seed=0, noise=0.3):
    """Rows of one hidden factor, with different units, and the same with gaps."""
    rng = np.random.default_rng(seed)
    whole = rng.normal(size=(n, 1)) @ rng.normal(size=(1, d)) + noise * rng.normal(size=(n, d))
    whole = whole * 10.0 ** np.arange(d) + 5 * np.arange(d)
    return whole, np.where(rng.random((n, d)) < share, np.nan, whole)


def slow_conditional_means(X, law):
    """E[x_u | x_o] for each row by an explicit inverse."""
    out = X.copy()
    for x in out:
        u = np.isnan(x)
        o = ~u
        z = (x - law.shift) / law.scale
        inverse = np.linalg.inv(law.covariance[np.ix_(o, o)] + RIDGE * np.eye(o.sum()))
        z[u] = law.mean[u] + law.covariance[np.ix_(u, o)] @ inverse @ (z[o] - law.mean[o])
        x[u] = (z * law.scale + law.shift)[u]
    return out


def slow_em(X):
    """Mean and covariance by EM, a row at a time, on standardised numbers."""
    Z = (X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)
    n, d = Z.shape
    mean, S = np.zeros(d), None
    filled = np.nan_to_num(Z)
    S = filled.T @ filled / n
    for _ in range(STEPS):
        C, filled = np.zeros((d, d)), Z.copy()
        for z in filled:
            u = np.isnan(z)
            B = S[np.ix_(u, ~u)] @ np.linalg.inv(S[np.ix_(~u, ~u)] + RIDGE * np.eye((~u).sum()))
            z[u] = mean[u] + B @ (z[~u] - mean[~u])
            C[np.ix_(u, u)] += (S[np.ix_(u, u)] - B @ S[np.ix_(~u, u)]) / n
        mean = filled.mean(axis=0)
        new = (filled - mean).T @ (filled - mean) / n + C
        done = np.abs(new - S).max() <= TOLERANCE
        S = new
        if done:
            break
    return mean, S


@pytest.mark.parametrize("seed", range(3))
def test_the_law_and_its_means_are_those_of_the_formulas(seed):
    _, X = rows_with_gaps(seed=seed)
    law = fit_normal(X)
    mean, S = slow_em(X)
    # The same steps in another order of sums.
    np.testing.assert_allclose(law.mean, mean, rtol=0, atol=1e-10)
    np.testing.assert_allclose(law.covariance, S, rtol=0, atol=1e-10)
    filled = X.copy()
    law.fill(filled)
    np.testing.assert_allclose(filled, slow_conditional_means(X, law), rtol=1e-9)
    np.testing.assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])


def test_what_other_columns_tell_beats_the_mean():
    whole, X = rows_with_gaps(n=400)
    filled = X.copy()
    fit_normal(X).fill(filled)
    holes = np.isnan(X)
    off = np.abs(filled - whole)[holes]
    means = np.abs(SimpleImputer().fit_transform(X) - whole)[holes]
    assert np.median(off / np.broadcast_to(whole.std(axis=0), X.shape)[holes]) < 0.4
    assert np.median(off / means) < 0.6


def test_without_a_relation_it_is_the_mean():
    X = RNG.normal(size=(2000, 3))
    holes = RNG.random(X.shape) < 0.1
    X = np.where(holes, np.nan, X)
    filled = X.copy()
    fit_normal(X).fill(filled)
    # A regression on 2000 unrelated rows has coefficients of about 1/sqrt(2000).
    assert np.abs(filled[holes]).max() < 0.25


@given(st.integers(0, 10_000), st.floats(0.01, 0.6), st.integers(2, 6))
@settings(max_examples=40, deadline=None)
def test_weight_two_is_a_row_twice_and_order_does_not_matter(seed, share, d):
    _, X = rows_with_gaps(n=30, d=d, share=share, seed=seed)
    X[0] = np.nan_to_num(X[0])  # no column is without numbers
    count = np.random.default_rng(seed).integers(1, 3, len(X))
    weighted, repeated = fit_normal(X, count.astype(float)), fit_normal(np.repeat(X, count, axis=0))
    np.testing.assert_allclose(weighted.covariance, repeated.covariance, rtol=0, atol=1e-8)
    order = np.random.default_rng(seed).permutation(len(X))
    np.testing.assert_allclose(fit_normal(X[order]).covariance, fit_normal(X).covariance, rtol=0, atol=1e-8)
    filled = np.repeat(X, 2, axis=0)
    weighted.fill(filled)
    assert np.isfinite(filled).all()
    assert np.linalg.eigvalsh(weighted.covariance).min() > -1e-10


def test_units_do_not_matter():
    _, X = rows_with_gaps()
    plain, scaled = X.copy(), 7 * X - 3
    fit_normal(X).fill(plain)
    fit_normal(scaled).fill(scaled)
    np.testing.assert_allclose(scaled, 7 * plain - 3, rtol=1e-7)


def test_columns_that_repeat_each_other_rows_without_numbers_and_constant_columns():
    _, X = rows_with_gaps(d=2)
    X = np.column_stack([X, X, np.ones(len(X)), 1e150 * X[:, 0] / np.nanmax(np.abs(X[:, 0]))])
    X[7] = np.nan
    law = fit_normal(X)
    filled = X.copy()
    law.fill(filled)
    assert np.isfinite(filled).all()
    np.testing.assert_allclose(filled[7], law.mean * law.scale + law.shift, rtol=1e-12)


def test_it_survives_json_and_knows_its_limits():
    _, X = rows_with_gaps()
    law = fit_normal(X)
    again = NormalLaw.from_json(json.loads(json.dumps(law.to_json())))
    one, other = X.copy(), X.copy()
    law.fill(one)
    again.fill(other)
    np.testing.assert_array_equal(one, other)
    assert fit_normal(X[:, :1]) is None
    assert fit_normal(X[:4]) is None
    assert fit_normal(np.column_stack([X, np.full(len(X), np.nan)])) is None
    assert fit_normal(np.ones((200, MOST_FEATURES + 1))) is None
    _, many = rows_with_gaps(n=3 * MOST_ROWS)
    assert np.isfinite(fit_normal(many).covariance).all()
    complete = np.ones((3, 4))
    law.fill(complete)
    np.testing.assert_array_equal(complete, 1.0)
