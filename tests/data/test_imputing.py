"""Missing numbers given the others of their row, against the formula row by row and known laws."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.impute import SimpleImputer

from kernsel.data import imputing
from kernsel.data.imputing import MOST_FEATURES, MOST_ROWS, RIDGES, STEPS, TOLERANCE, NormalLaw

RNG = np.random.default_rng(0)


def fit_normal(X, weights=None):
    """Fit the normal law alone, without the nearest rows (`test_kriging`)."""
    law = imputing.fit_normal(X, weights)
    return None if law is None else replace(law, kriging=None)


def rows_with_gaps(n=200, d=4, share=0.2, seed=0, noise=0.3):
    """Rows of one hidden factor, with different units, and the same with gaps."""
    rng = np.random.default_rng(seed)
    whole = rng.normal(size=(n, 1)) @ rng.normal(size=(1, d)) + noise * rng.normal(size=(n, d))
    whole = whole * 10.0 ** np.arange(d) + 5 * np.arange(d)
    return whole, np.where(rng.random((n, d)) < share, np.nan, whole)


def slow_hinges(X, law):
    """Columns and hinges of rows (n, d), a row at a time."""
    return np.array([[*x, *(max(x[j] - q, 0) for j, each in enumerate(law.knots) for q in each)] for x in X.tolist()])


def predicted_by(S, ridge, u, o):
    """(S_oo + r I)^-1 S_ou by an explicit inverse for each feature, (o, u)."""
    S_oo = S[np.ix_(o, o)]
    each = [np.linalg.inv(S_oo + ridge[j] * np.eye(len(o))) @ S[o, j] for j in u]
    return np.array(each).T.reshape(len(o), len(u))


def slow_conditional_means(X, law):
    """E[x_u | x_o] for each row."""
    out = X.copy()
    for x, z in zip(out, (slow_hinges(X, law) - law.shift) / law.scale, strict=True):
        u, o = np.flatnonzero(np.isnan(z)), np.flatnonzero(~np.isnan(z))
        z[u] = law.mean[u] + (z[o] - law.mean[o]) @ predicted_by(law.covariance, law.ridge, u, o)
        x[:] = np.where(np.isnan(x), (z * law.scale + law.shift)[: len(x)], x)
    return out


def slow_ridge(S, j, others, n):
    """The ridge of the least generalised cross-validation, each score by explicit matrices."""
    scores = []
    for r in RIDGES:
        inverse = np.linalg.inv(S[np.ix_(others, others)] + r * np.eye(len(others)))
        b = inverse @ S[others, j]
        residual = S[j, j] - 2 * b @ S[others, j] + b @ S[np.ix_(others, others)] @ b
        left = 1 - (1 + np.trace(inverse @ S[np.ix_(others, others)])) / n
        scores.append(residual / left**2 if left > 0 else np.inf)
    return RIDGES[int(np.argmin(scores))]


def slow_em(X, law):
    """Mean, covariance and ridges by EM, a row at a time, on standardised features."""
    Z = (slow_hinges(X, law) - law.shift) / law.scale
    np.testing.assert_allclose(np.nanmean(Z, axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(np.nanstd(Z, axis=0), 1)
    n, p = Z.shape
    own = [*range(X.shape[1]), *(j for j, each in enumerate(law.knots) for _ in each)]
    mean, filled = np.zeros(p), np.nan_to_num(Z)
    S = filled.T @ filled / n

    def ridges(S):
        others = [np.array([k for k in range(p) if own[k] != own[j]]) for j in range(p)]
        return np.array([slow_ridge(S, j, others[j], (~np.isnan(Z[:, j])).sum()) for j in range(p)])

    for _ in range(STEPS):
        C, filled, ridge = np.zeros((p, p)), Z.copy(), ridges(S)
        for z in filled:
            u, o = np.flatnonzero(np.isnan(z)), np.flatnonzero(~np.isnan(z))
            B = predicted_by(S, ridge, u, o)
            z[u] = mean[u] + (z[o] - mean[o]) @ B
            left = np.vstack([np.eye(len(u)), -B])
            both = np.ix_([*u, *o], [*u, *o])
            C[np.ix_(u, u)] += left.T @ S[both] @ left / n
        mean = filled.mean(axis=0)
        new = (filled - mean).T @ (filled - mean) / n + C
        done = np.abs(new - S).max() <= TOLERANCE
        S = new
        if done:
            break
    return mean, S, ridges(S)


@pytest.mark.parametrize("seed", range(3))
def test_the_law_and_its_means_are_those_of_the_formulas(seed):
    _, X = rows_with_gaps(seed=seed)
    law = fit_normal(X)
    mean, S, ridge = slow_em(X, law)
    np.testing.assert_array_equal(law.ridge, ridge)
    for column, knots in zip(X.T, law.knots, strict=True):
        np.testing.assert_array_equal(knots, np.nanquantile(column, [0.25, 0.5, 0.75], method="inverted_cdf"))
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
    few, lacking = X[:60].copy(), holes[:60]  # of these, there would be much to find that isn't there
    law = fit_normal(few)
    law.fill(few)
    assert law.ridge.min() >= 1
    assert np.square(few[lacking] - few[~lacking].mean()).mean() < 0.05


def test_one_column_that_lacks_is_predicted_by_least_squares_on_all_others_and_their_hinges():
    whole, X = rows_with_gaps(n=300)
    X[:, :3] = whole[:, :3]
    law = fit_normal(X)
    filled = X.copy()
    law.fill(filled)
    rows, there = np.isnan(X[:, 3]), ~np.isnan(X[:, 3])
    features = np.column_stack(
        [np.ones(len(X)), ((slow_hinges(X, law) - law.shift) / law.scale)[:, law_others(law, 3)]]
    )
    coefficients, *_ = np.linalg.lstsq(features[there], X[there, 3], rcond=None)
    # The ridge moves it by less than a fifth of the noise that no one can predict.
    noise = np.std(X[there, 3] - features[there] @ coefficients)
    assert np.sqrt(np.mean((filled[rows, 3] - features[rows] @ coefficients) ** 2)) < 0.2 * noise


def law_others(law, column):
    """Which features are not of a column."""
    own = [*range(len(law.knots)), *(j for j, each in enumerate(law.knots) for _ in each)]
    return [k for k, j in enumerate(own) if j != column]


def test_curves_are_followed():
    x = RNG.uniform(-1, 1, 400)
    X = np.column_stack([x, np.abs(x) + 0.02 * RNG.normal(size=400)])
    holes = np.arange(400) % 10 == 0
    whole = X[:, 1].copy()
    X[holes, 1] = np.nan
    filled = X.copy()
    fit_normal(X).fill(filled)
    assert np.std(filled[holes, 1] - whole[holes]) < 0.2 * np.std(whole)  # without hinges, 1


def test_what_is_missing_with_a_column_always_tells_nothing_of_it():
    """Parts of one date: the year tells all of the day's number, but is never there without it."""
    X = RNG.normal(size=(200, 3))
    X[:, 1] = X[:, 0]
    X[::7, :2] = np.nan
    law = fit_normal(X)
    assert min(law.ridge[:2]) > min(RIDGES)


@given(st.integers(0, 10_000), st.floats(0.01, 0.6), st.integers(2, 6))
@settings(max_examples=20, deadline=None)
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
    np.testing.assert_allclose(filled[7], (law.mean * law.scale + law.shift)[: X.shape[1]], rtol=1e-12)


def test_it_survives_json_and_knows_its_limits():
    _, X = rows_with_gaps()
    law = fit_normal(X)
    again = NormalLaw.from_json(json.loads(json.dumps(law.to_json())))
    one, other = X.copy(), X.copy()
    law.fill(one)
    again.fill(other)
    np.testing.assert_array_equal(one, other)
    before = {name: each for name, each in law.to_json().items() if name not in ("knots", "ridge", "kriging")}
    before = {name: np.array(each)[:4].tolist() for name, each in before.items()}
    before["covariance"] = np.array(before["covariance"])[:, :4].tolist()
    old = NormalLaw.from_json(before)  # as files had it before there were hinges
    assert old.knots == ((), (), (), ())
    third = X.copy()
    old.fill(third)
    np.testing.assert_allclose(third, slow_conditional_means(X, old), rtol=1e-9)
    assert fit_normal(X[:, :1]) is None
    assert fit_normal(X[:4]) is None
    assert fit_normal(np.column_stack([X, np.full(len(X), np.nan)])) is None
    assert fit_normal(np.ones((200, MOST_FEATURES + 1))) is None
    _, many = rows_with_gaps(n=3 * MOST_ROWS)
    assert np.isfinite(fit_normal(many).covariance).all()
    complete = np.ones((3, 4))
    law.fill(complete)
    np.testing.assert_array_equal(complete, 1.0)
