"""What the nearest rows say in the place of missing numbers, against the formulas row by row, and laws of them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from kernsel.data.imputing import fit_normal
from kernsel.data.kriging import LAW, MOST_CENTRES, NEAREST, RIDGES, ROUNDS, WIDTH, Kriging, fit_kriging


def towns(n=160, seed=0, share=0.1):
    """Rows of twelve towns, whose four levels go together in no order, beside two columns of their own; and gaps."""
    rng = np.random.default_rng(seed)
    whole = np.column_stack([rng.normal(size=(12, 4))[rng.integers(0, 12, n)], rng.normal(size=(n, 2))])
    holes = rng.random(whole.shape) < share
    holes[holes.mean(axis=1) > 0.5] = False
    return whole, holes


def distance(z, other, columns):
    """The sum of absolute differences in some columns."""
    return sum(abs(z[k] - other[k]) for k in columns)


def slow_variogram(centres, own, weights, j):
    """Columns that tell, mean, width and ridge of a column: the ridge by fits without each centre in turn."""
    others = [k for k in range(centres.shape[1]) if np.mean(own[~own[:, j], k]) >= 0.5]
    of = np.flatnonzero(own[:, j])
    s = weights[of] / weights[of].sum()
    D = np.array([[distance(centres[a], centres[b], others) for b in of] for a in of])
    w = WIDTH * s @ D @ s
    t = centres[of, j]
    scores = []
    for r in RIDGES:
        residuals = []
        for i in range(len(of)):
            # The mean is a coefficient without a penalty here: that of all rows moves by as much as the row's share.
            keep = np.arange(len(of)) != i
            K = np.exp(-D[np.ix_(keep, keep)] / w) + np.diag(r / s[keep])
            k = np.exp(-D[i, keep] / w)
            b = s @ t
            alone = t[i] - b - k @ np.linalg.solve(K, t[keep] - b)
            h = 1 / (1 + r / s[i] - k @ np.linalg.solve(K, k)) * (r / s[i])  # 1 - H_ii, by Schur's complement
            residuals.append(alone * h / (h - s[i]) if h > s[i] else np.inf)
        scores.append(s @ np.square(residuals))
    return others, s @ t, w, RIDGES[int(np.argmin(scores))]


def slow_fill(Z, holes, centres, own, weights, variograms):
    """Rows filled in, each number by a system of its own."""
    out = Z.copy()
    for j, (others, b, w, r) in variograms.items():
        of = np.flatnonzero(own[:, j])
        s = weights[of] / weights[of].sum()
        for row in np.flatnonzero(holes[:, j]):
            known = [k for k in others if not holes[row, k]]
            D = np.array([distance(Z[row], centres[i], known) for i in of])
            near = np.argsort(D, kind="stable")[:NEAREST]
            K = np.array([[np.exp(-distance(centres[of[a]], centres[of[c]], known) / w) for c in near] for a in near])
            a = np.linalg.inv(K + np.diag(r / s[near])) @ (centres[of[near], j] - b)
            out[row, j] = LAW * Z[row, j] + (1 - LAW) * (b + np.exp(-D[near] / w) @ a)
    return out


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_numbers_are_those_of_the_formulas(seed):
    rng = np.random.default_rng(seed)
    whole = rng.normal(size=(60, 1)) + rng.normal(size=(60, 4)) / 2
    holes = rng.random(whole.shape) < 0.1
    holes[holes.mean(axis=1) > 0.5] = False
    s, start = rng.uniform(0.5, 2.0, 60), np.where(holes, 0.1, whole)
    fitted = fit_kriging(start, holes, s)
    centres = start
    for _ in range(ROUNDS):
        variograms = {j: slow_variogram(centres, ~holes, s, j) for j in range(4)}
        centres = slow_fill(start, holes, centres, ~holes, s, variograms)
    for each in fitted.variograms:
        others, b, w, r = variograms[each.column]
        assert each.others.tolist() == others
        np.testing.assert_allclose((each.mean, each.width, each.ridge), (b, w, r), rtol=1e-9)
    order = np.lexsort(centres.T)
    back = np.lexsort(fitted.centres.T)
    np.testing.assert_allclose(fitted.centres[back], centres[order], rtol=0, atol=1e-9)
    new = rng.normal(size=(9, 1)) + rng.normal(size=(9, 4)) / 2
    lacking = rng.random(new.shape) < 0.3
    lacking[lacking.mean(axis=1) > 0.5] = False
    Z = np.where(lacking, 0.0, new)
    expected = slow_fill(Z, lacking, centres, ~holes, s, variograms)
    found = Z.copy()
    fitted.fill(found, lacking)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(found[~lacking], Z[~lacking])


def test_levels_that_go_together_are_found():
    whole, holes = towns(n=300)
    X = np.where(holes, np.nan, whole)
    law = fit_normal(X)
    both, alone = X.copy(), X.copy()
    law.fill(both)
    replace(law, kriging=None).fill(alone)
    levels = holes & (np.arange(6) < 4)
    off, by_law = (np.square(filled - whole)[levels].mean() for filled in (both, alone))
    assert off < 0.4 * by_law
    rest = holes & (np.arange(6) >= 4)  # of which nothing tells
    assert np.square(both - whole)[rest].mean() < 1.1 * np.square(whole[rest]).mean()


@pytest.mark.parametrize("seed", range(3))
def test_of_rounded_numbers_neither_order_nor_copies_matter(seed):
    """Many centres are at one distance, which the rounding of means and deviations moves by the last digit."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(300, 4)) @ rng.normal(size=(4, 4)))
    X[rng.random(X.shape) < 0.2] = np.nan
    expected, shuffled, twice = X.copy(), X.copy(), X.copy()
    fit_normal(X).fill(expected)
    fit_normal(X[rng.permutation(300)]).fill(shuffled)
    fit_normal(np.vstack([X, X])).fill(twice)
    np.testing.assert_allclose(shuffled, expected, rtol=0, atol=1e-8)
    np.testing.assert_allclose(twice, expected, rtol=0, atol=1e-8)


def test_a_column_known_outside_of_the_centres_alone_is_the_law_s():
    X = np.random.default_rng(0).normal(size=(2 * MOST_CENTRES, 3))
    first = X[1, 0]
    X[:, 0] = np.nan
    X[1::2, 0] = np.random.default_rng(1).normal(size=MOST_CENTRES) + first
    filled = X.copy()
    fit_normal(X).fill(filled)
    assert np.isfinite(filled).all()


def test_weight_two_is_a_row_twice_and_order_and_units_do_not_matter():
    whole, holes = towns(n=70)
    X = np.where(holes, np.nan, whole + 1e-3 * np.random.default_rng(0).normal(size=whole.shape))  # no ties
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


def test_a_row_has_the_same_numbers_among_any_others():
    whole, holes = towns(n=200)
    X = np.where(holes, np.nan, whole)
    law = fit_normal(X)
    together = X.copy()
    law.fill(together)
    for row in range(40):
        alone = X[[row]].copy()
        law.fill(alone)
        np.testing.assert_allclose(alone[0], together[row], rtol=1e-12, atol=1e-12)


def test_what_is_missing_with_a_column_tells_nothing_of_it():
    whole, holes = towns(n=100)
    holes[:, 1] = holes[:, 0]
    fitted = fit_kriging(np.where(holes, 0.0, whole), holes, np.full(100, 0.01))
    by_column = {each.column: each for each in fitted.variograms}
    assert 1 not in by_column[0].others
    assert 0 not in by_column[1].others
    assert by_column[2].others.tolist() == [0, 1, 3, 4, 5]


def test_rows_that_lack_most_keep_the_means_of_the_law():
    whole, holes = towns()
    X = np.where(holes, np.nan, whole)
    law = fit_normal(X)
    rows = np.full((3, 6), np.nan)
    rows[1, 0], rows[2, :3] = 0.5, whole[0, :3]
    both, alone = rows.copy(), rows.copy()
    law.fill(both)
    replace(law, kriging=None).fill(alone)
    np.testing.assert_array_equal(both[:2], alone[:2])
    assert (both[2, 3:] != alone[2, 3:]).all()


def test_without_gaps_with_constants_and_for_many_rows():
    whole, holes = towns(n=3 * MOST_CENTRES)
    assert fit_normal(whole).kriging is None
    many = np.where(holes, np.nan, whole)
    assert len(fit_normal(many).kriging.centres) <= MOST_CENTRES
    X = np.column_stack([many[:40, 4], np.ones(40)])
    X[7] = np.nan
    filled = X.copy()
    fit_normal(X).fill(filled)
    assert np.isfinite(filled).all()
    np.testing.assert_allclose(filled[:, 1], 1.0)
    copies = np.repeat([[1.0, 2.0], [1.0, np.nan], [2.0, 1.0]], 9, axis=0)  # three distinct rows
    fit_normal(copies).fill(copies)
    assert np.isfinite(copies).all()


def test_files_hold_it_whole_and_those_of_before_have_none():
    whole, holes = towns()
    X = np.where(holes, np.nan, whole)
    law = fit_normal(X)
    again = type(law).from_json(json.loads(json.dumps(law.to_json())))
    assert isinstance(again.kriging, Kriging)
    one, other = X.copy(), X.copy()
    law.fill(one)
    again.fill(other)
    np.testing.assert_array_equal(one, other)
    before = {name: each for name, each in law.to_json().items() if name != "kriging"}
    assert type(law).from_json(before).kriging is None
