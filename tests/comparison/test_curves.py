"""Curves: against brute force, what the series promises, and the pictures."""

import numpy as np
import pytest

import kernsel
from kernsel.comparison import bif_order, eta_sweep, fbif_landmarks, flkl_surface, rank_sweep
from kernsel.errors import OptionError

GRID = {"tau": [1.0, 4.0], "lambda": [0.01, 0.1]}


def regression(n=60):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=n)


def test_the_series_comes_nearer_to_exact_refits_with_its_order():
    grid = {"tau": [4.0], "lambda": [1.0]}  # the series is geometric, and its ratio far from 1
    curve = bif_order(*regression(), orders=[1, 2, 4, 8, 32], folds=[5], splits=2, grid=grid)
    (line,) = curve.lines
    assert all(a > b for a, b in zip(line.y, line.y[1:], strict=False))
    assert line.y[-1] < 1e-3 * line.y[0]
    assert curve.frame.shape == (5, 5)


def test_all_rows_as_landmarks_are_the_first_order():
    """With c = n the Nystrom inverse is the inverse itself."""
    X, y = regression()
    first = bif_order(X, y, orders=[1], folds=[5], splits=2, share=0.7, grid=GRID).lines[0]
    nystrom = fbif_landmarks(X, y, shares=[0.2, 1.0], folds=[5], splits=2, share=0.7, grid=GRID).lines[0]
    assert nystrom.y[1] == pytest.approx(first.y[0], rel=1e-6)
    assert nystrom.y[0] != pytest.approx(first.y[0], rel=1e-2)


def test_a_sweep_of_eta_is_a_comparison():
    X, y = regression()
    options = {"kernel": "gaussian", "grid": GRID, "splits": 2, "verify": 0}
    curve, comparison = eta_sweep((X, y), etas=[0.25, 64.0], **options)
    assert [line.name for line in curve.lines] == ["5-CVKS", "10-CVKS"]
    assert curve.lines[0].y[1] == pytest.approx(comparison.results[0].means[1])
    same = kernsel.compare((X, y), criteria=["cvks(eta=0.25)", "cvks(eta=64)"], folds=5, **options)
    assert curve.lines[0].y == pytest.approx(same.results[0].means)


def test_more_rank_brings_the_error_to_that_of_the_full_kernel():
    X, y = regression()
    options = {"kernel": "gaussian", "grid": GRID, "splits": 2, "search": "grid"}
    curve, _ = rank_sweep((X, y), ranks=[2, 42], **options)
    tested, reported = curve.lines
    full = kernsel.compare((X, y), methods={"full": {}, "other": {"criterion": "cv"}}, **options).results[0]
    assert tested.y[1] == pytest.approx(full.means[0], rel=1e-6)
    assert reported.y[1] < reported.y[0]


def test_the_surface_of_first_level_learning(tmp_path):
    surface = flkl_surface(*regression(30), lambdas=[1e-3, 1e-1], mus=[1e-4, 1e2], kernel="ard")
    assert surface.z.shape == (2, 2)
    assert np.isfinite(surface.z).all()
    assert surface.z[0, 0] < surface.z[0, 1]  # relevances near 0 fit nothing
    assert surface.frame.loc[1e-3, 1e-4] == surface.z[0, 0]
    pytest.importorskip("matplotlib")
    surface.plot(tmp_path / "s.png")
    curve = bif_order(*regression(), orders=[1, 2], folds=[5], splits=1, grid=GRID)
    curve.plot(tmp_path / "c.svg")
    assert "<svg" in (tmp_path / "c.svg").read_text()


def test_a_curve_needs_splits():
    with pytest.raises(OptionError, match="splits is a number from 1"):
        bif_order(*regression(), splits=0)
