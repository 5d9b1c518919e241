"""Kernel means of missing numbers, against the formulas row by row, and laws of them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from kernsel.data.imputing import fit_normal
from kernsel.data.kernel_means import MOST_CENTRES, RIDGES, SWEEPS, WIDTH, KernelMeans, fit_kernel_means


def towns(n=160, seed=0, share=0.1):
    """Rows of twelve towns, whose four levels go together in no order, beside two columns of their own."""
    rng = np.random.default_rng(seed)
    whole = np.column_stack([rng.normal(size=(12, 4))[rng.integers(0, 12, n)], rng.normal(size=(n, 2))])
    holes = rng.random(whole.shape) < share
    return whole, holes


def slow_sweep(Z, holes, before, centres, there, s):
    """One prediction of all missing numbers, from the dual system with explicit inverses: (n, d), and the ridges.

    The centres (m, d) have numbers of their own where ``there`` (m, d), and weights s.
    """
    out, ridges = Z.copy(), {}
    for j in range(Z.shape[1]):
        if there[:, j].all():
            continue
        lost = ~there[:, j]
        others = [k for k in range(Z.shape[1]) if np.mean(~there[lost, k]) <= 0.5]
        i = np.flatnonzero(there[:, j])
        W = s[i] / s[i].sum()
        t = centres[i, j] - W @ centres[i, j]
        D = np.array([[sum(abs(centres[a, k] - centres[b, k]) for k in others) for b in i] for a in i])
        w = WIDTH * sum(W[a] * W[b] * D[a, b] for a in range(len(i)) for b in range(len(i)))
        K = np.exp(-D / w)
        scores = []
        for r in RIDGES:
            hat = K @ np.linalg.inv(K + r * np.diag(1 / W))
            left = 1 - (1 + np.trace(hat)) / len(i)
            scores.append(W @ (t - hat @ t) ** 2 / left**2 if left > 0 else np.inf)
        ridges[j] = RIDGES[int(np.argmin(scores))]
        a = np.linalg.inv(K + ridges[j] * np.diag(1 / W)) @ t
        for row in np.flatnonzero(holes[:, j]):
            k = [np.exp(-sum(abs(Z[row, c] - centres[b, c]) for c in others) / w) for b in i]
            out[row, j] = (before[row, j] + W @ centres[i, j] + np.dot(k, a)) / 2
    return out, ridges


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_means_are_those_of_the_formulas(seed):
    whole, holes = towns(n=60, seed=seed)
    s = np.random.default_rng(seed).uniform(0.5, 2.0, len(whole))
    start = np.where(holes, 0.1, whole)
    fitted = fit_kernel_means(start, holes, s)
    filled, centres = start, start
    for _ in range(SWEEPS):
        centres = filled
        filled, _ = slow_sweep(filled, holes, start, centres, ~holes, s)
    np.testing.assert_allclose(fitted.centres, centres, rtol=0, atol=1e-9)
    new = towns(n=9, seed=seed + 9, share=0.3)
    Z = np.where(new[1], 0.0, new[0])
    expected = Z.copy()
    for _ in range(SWEEPS):
        expected, _ = slow_sweep(expected, new[1], Z, centres, ~holes, s)
    found = Z.copy()
    fitted.improve(found, new[1])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(found[~new[1]], Z[~new[1]])


def test_levels_that_go_together_are_found():
    whole, holes = towns(n=300)
    X = np.where(holes, np.nan, whole)
    law = fit_normal(X)
    both, alone = X.copy(), X.copy()
    law.fill(both)
    fit_without(X).fill(alone)
    levels = holes & (np.arange(6) < 4)
    off, by_law = (np.square(filled - whole)[levels].mean() for filled in (both, alone))
    assert off < 0.6 * by_law
    rest = holes & (np.arange(6) >= 4)  # of which nothing tells
    assert np.square(both - whole)[rest].mean() < 1.1 * np.square(whole[rest]).mean()


def fit_without(X):
    """Fit the normal law alone."""
    from dataclasses import replace

    return replace(fit_normal(X), means=None)


def test_weight_two_is_a_row_twice_and_order_and_units_do_not_matter():
    whole, holes = towns(n=70)
    X = np.where(holes, np.nan, whole)
    count = np.random.default_rng(1).integers(1, 3, len(X))
    order = np.random.default_rng(2).permutation(len(X))
    expected = X.copy()
    fit_normal(X, count.astype(float)).fill(expected)
    repeated = X.copy()
    fit_normal(np.repeat(X, count, axis=0)).fill(repeated)
    np.testing.assert_allclose(repeated, expected, rtol=0, atol=1e-8)
    shuffled = X.copy()
    fit_normal(X[order], count[order].astype(float)).fill(shuffled)
    np.testing.assert_allclose(shuffled, expected, rtol=0, atol=1e-8)
    scaled = 7 * X - 3
    fit_normal(scaled, count.astype(float)).fill(scaled)
    np.testing.assert_allclose(scaled, 7 * expected - 3, rtol=1e-7)


def test_what_is_missing_with_a_column_tells_nothing_of_it():
    whole, holes = towns(n=100)
    holes[:, 1] = holes[:, 0]
    fitted = fit_kernel_means(np.where(holes, 0.0, whole), holes, np.full(100, 0.01))
    by_column = {each.column: each for each in fitted.regressions}
    assert 1 not in by_column[0].others
    assert 0 not in by_column[1].others
    assert by_column[2].others.tolist() == [0, 1, 3, 4, 5]


def test_without_gaps_with_constants_and_for_many_rows():
    whole, holes = towns(n=3 * MOST_CENTRES)
    assert fit_normal(whole).means is None
    X = np.where(holes, np.nan, whole)
    assert fit_normal(X).means.centres.shape == (MOST_CENTRES, 6)
    X = np.column_stack([X[:40, :1], np.ones(40)])
    X[7] = np.nan
    filled = X.copy()
    fit_normal(X).fill(filled)
    assert np.isfinite(filled).all()
    np.testing.assert_allclose(filled[:, 1], 1.0)


def test_files_hold_them_whole_and_those_of_before_have_none():
    whole, holes = towns()
    X = np.where(holes, np.nan, whole)
    law = fit_normal(X)
    again = type(law).from_json(json.loads(json.dumps(law.to_json())))
    assert isinstance(again.means, KernelMeans)
    one, other = X.copy(), X.copy()
    law.fill(one)
    again.fill(other)
    np.testing.assert_array_equal(one, other)
    before = {name: each for name, each in law.to_json().items() if name != "means"}
    assert type(law).from_json(before).means is None
