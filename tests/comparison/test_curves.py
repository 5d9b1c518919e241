"""Curves: against brute force, what the series promises, and the forms they are written in."""

import json

import numpy as np
import pytest

import kernsel
from kernsel.comparison import Curve, Line, bif_order, eta_sweep, fbif_landmarks, flkl_surface, rank_sweep
from kernsel.errors import OptionError

GRID = {"tau": [1.0, 4.0], "lambda": [0.01, 0.1]}


def regression(n=60):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=n)


def test_the_series_comes_nearer_to_exact_refits_with_its_order():
    grid = {"tau": [4.0], "lambda": [1.0]}  # the series is geometric, and its ratio far from 1
    told = []
    curve = bif_order(
        regression(), orders=[1, 2, 4, 8, 32], folds=5, splits=2, grid=grid, progress=lambda *each: told.append(each)
    )
    (line,) = curve.lines
    assert all(a > b for a, b in zip(line.y, line.y[1:], strict=False))
    assert line.y[-1] < 1e-3 * line.y[0]
    assert curve.frame.shape == (5, 5)
    assert told == [(1, 2, "data 5 folds"), (2, 2, "data 5 folds")]


def test_all_rows_as_landmarks_are_the_first_order():
    """With c = n the Nystrom inverse is the inverse itself."""
    options = {"folds": [5], "splits": 2, "train": 0.7, "grid": GRID}
    first = bif_order(regression(), orders=[1], **options).lines[0]
    nystrom = fbif_landmarks(regression(), shares=[0.2, 1.0], **options).lines[0]
    assert nystrom.y[1] == pytest.approx(first.y[0], rel=1e-6)
    assert nystrom.y[0] != pytest.approx(first.y[0], rel=1e-2)


def test_a_sweep_of_eta_is_a_comparison():
    X, y = regression()
    options = {"kernel": "gaussian", "grid": GRID, "splits": 2, "verify": 0}
    curve = eta_sweep((X, y), etas=[0.25, 64.0], **options)
    assert [line.name for line in curve.lines] == ["5-CVKS", "10-CVKS"]
    assert curve.lines[0].y[1] == pytest.approx(curve.comparison.results[0].means[1])
    same = kernsel.compare((X, y), criteria=["cvks(eta=0.25)", "cvks(eta=64)"], folds=5, **options)
    assert curve.lines[0].y == pytest.approx(same.results[0].means)
    one = eta_sweep((X, y), etas=[0.25, 64.0], folds=5, criterion="cvks", **options)
    assert one.lines[0].name == "cvks"
    assert one.lines[0].y == curve.lines[0].y


def test_more_rank_brings_the_error_to_that_of_the_full_kernel():
    X, y = regression()
    options = {"kernel": "gaussian", "grid": GRID, "splits": 2, "search": "grid"}
    curve = rank_sweep((X, y), ranks=[2, 42], **options)
    tested, reported = curve.lines
    full = kernsel.compare((X, y), methods={"full": {}, "other": {"criterion": "cv"}}, **options).results[0]
    assert tested.y[1] == pytest.approx(full.means[0], rel=1e-6)
    assert reported.y[1] < reported.y[0]


def test_approximations_are_looked_at_at_the_rank_of_the_choice():
    """Landmarks as many as rows change nothing; with few of them the fits are others, and so is the series."""
    options = {"orders": [1, 2], "folds": 5, "splits": 1, "grid": {"tau": [1.0], "lambda": [1e-4]}}
    full, all_rows, few = (bif_order(regression(), rank=rank, **options).lines[0].y for rank in ("full", 30, 5))
    assert all_rows == pytest.approx(full, rel=1e-6)
    assert abs(few[0] / full[0] - 1) > 0.1


def test_a_sweep_takes_the_kernel_of_the_papers():
    options = {"folds": 3, "splits": 1, "grid": {"lambda": [0.1]}, "verify": 0}
    trials = eta_sweep(regression(), etas=[0.25, 1.0], **options).comparison.results[0].trials
    assert {trial.kernel.split("(")[0] for trial in trials[0]} == {"gaussian"}


def test_a_point_that_failed_says_why():
    """The shorter table has too few rows for the folds."""
    tables = {"long": regression(60), "short": regression(30)}
    options = {"kernel": "gaussian", "grid": GRID, "splits": 2, "search": "grid"}
    curve = rank_sweep(tables, ranks=[5, 10], learner="krr", folds=30, **options)
    assert curve.panels["long"][0].failed == (None, None)
    reason = curve.panels["short"][0].failed[1]
    assert reason.startswith("failed on 2 of 2 splits: 30 folds can't be made of 21 rows")
    assert f"test error at rank = 10 {reason}" in curve.summary()
    assert json.loads(curve.to_json())["lines"][1]["failed"][1] == reason


def test_a_series_that_failed_says_why():
    """With so large a ridge no row is near the hinge: there is no curvature, and none of a bias in the series."""
    X, y = regression()
    options = {"folds": 5, "splits": 2, "learner": "svm(bias=true)", "grid": {"tau": [1.0], "lambda": [1e6]}}
    curve = bif_order((X, np.where(y > 0, "a", "b")), orders=[1, 2], **options)
    (line,) = curve.lines
    assert np.isnan(line.y).all()
    assert all(
        reason.endswith("of 2 splits: the Newton system is singular to working precision") for reason in line.failed
    )
    assert f"5 folds at order r = 2 {line.failed[1]}" in curve.summary()


def test_a_weight_of_zero_has_a_place_on_a_logarithmic_axis(tmp_path):
    pytest.importorskip("matplotlib")
    line = Line("a table", "5-CVKS", (0.0, 0.5, 1.0), (0.3, 0.2, 0.25), (0.01, 0.01, 0.01))
    Curve((line,), "eta", "test error", log_x=2).plot(tmp_path / "zero.svg")
    assert (tmp_path / "zero.svg").read_text().count("<use") > 3  # a marker for each point


def test_the_surface_of_first_level_learning(tmp_path):
    surface = flkl_surface(regression(30), lambdas=[1e-1, 1e-3], mus=[1e2, 1e-4], kernel="ard")  # in any order
    assert surface.z.shape == (2, 2)
    assert np.isfinite(surface.z).all()
    assert surface.z[0, 0] < surface.z[0, 1]  # relevances near 0 fit nothing
    assert surface.frame.to_numpy().tolist() == [
        [lam, mu, surface.z[i, j]] for i, lam in enumerate([1e-3, 1e-1]) for j, mu in enumerate([1e-4, 1e2])
    ]
    i, j = surface.least
    assert f"least: {surface.z[i, j]:.4g} at lambda = {surface.x[i]:.4g}, mu = {surface.y[j]:.4g}" in surface.summary()
    assert json.loads(surface.to_json())["points"]["z"] == surface.z.tolist()
    pytest.importorskip("matplotlib")
    surface.plot(tmp_path / "s.png")
    assert (tmp_path / "s.png").read_bytes().startswith(b"\x89PNG")


def test_a_curve_is_printed_written_and_drawn_with_a_panel_a_table(tmp_path):
    tables = {"long": regression(), "short": regression(40)}
    curve = bif_order(tables, orders=[1, 2], folds=[4, 5], splits=2, grid=GRID)
    alone = bif_order({"short": tables["short"]}, orders=[1, 2], folds=5, splits=2, grid=GRID)
    assert curve.panels["short"][1] == alone.lines[0]
    document = json.loads(curve.to_json())
    assert document["comparison"] is None
    assert [each["name"] for each in document["lines"]] == ["4 folds", "5 folds"] * 2
    for ending in (".md", ".tex", ".html", ".txt"):
        curve.save(tmp_path / f"c{ending}")
        text = (tmp_path / f"c{ending}").read_text()
        assert all(f"{y:.4g}" in text for line in curve.lines for y in line.y)
    pytest.importorskip("matplotlib")
    curve.plot(tmp_path / "c.svg")
    assert "<svg" in (tmp_path / "c.svg").read_text()


def test_folds_of_a_curve_hold_groups_out():
    """Each row twice, the copies one group: a fold is as far from the rows it is trained on as without copies."""
    X, y = regression(40)
    rng = np.random.default_rng(0)
    near = X + 1e-3 * rng.normal(size=X.shape)
    both, target, groups = np.vstack([X, near]), np.hstack([y, y]), np.tile(np.arange(40), 2)
    options = {"orders": [1, 2], "folds": 5, "splits": 1, "train": 1.0, "grid": {"tau": [0.1], "lambda": [1e-3]}}
    apart, together = (bif_order((both, target), groups=g, **options).lines[0].y[0] for g in (None, groups))
    assert together > 3 * apart


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bif_order(regression(), splits=0), "splits is a number from 1"),
        (lambda: bif_order(regression(), orders=[1.5]), "orders are whole numbers from 1, not 1.5"),
        (lambda: bif_order(regression(), orders=[np.inf]), "values of the order, inf: give some, all of them finite"),
        (lambda: bif_order(regression(), orders=[1, 2, 2]), "none twice"),
        (lambda: bif_order(regression(), folds="loo"), "folds of this curve are whole numbers"),
        (lambda: fbif_landmarks(regression(), shares=[0.1, 2]), "above 0 to 1, not 0.1 and 2"),
        (lambda: bif_order(regression(), folds=[5, 20]), "train 0.5 of 60 rows are 30, and 20 folds need 40; give a"),
        (lambda: fbif_landmarks(regression(), rank=20), "rank 20: landmarks are of the inverse alone"),
        (lambda: eta_sweep(regression(), eta=1), "eta 1: the curve is over eta; leave it out, and give values of it"),
        (lambda: eta_sweep(regression(), against=["sklearn.svm:SVR"]), "has no option 'against'"),
        (lambda: rank_sweep(regression(), ranks=[3]), "values of rank, 3: give two or more"),
        (lambda: rank_sweep(regression(), ranks=[3, 3]), "none twice"),
        (lambda: flkl_surface({"a": regression(), "b": regression()}), "a surface is of one table"),
        (lambda: flkl_surface(regression(), mus=[0.0, 1]), "positive values of lambda and mu"),
        (lambda: flkl_surface(regression(), lambdas=[0.1]), "values of lambda, 0.1: give two or more"),
        (lambda: flkl_surface(regression(), mus=[1, 1]), "none twice"),
        (lambda: flkl_surface(regression(), learner="krr"), "has no option 'learner'"),
        (lambda: flkl_surface(regression(), kernel=["ard", "gaussian"]), "a surface is of one kernel, not 2"),
    ],
)
def test_mistakes_are_said(call, message):
    with pytest.raises(OptionError, match=message):
        call()
