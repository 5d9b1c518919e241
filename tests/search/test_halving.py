"""Successive halving over the rank: what it scores where, and that its choice is the exhaustive one."""

import math

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_friedman1

import kernsel
import tables
from kernsel import registry
from kernsel.errors import OptionError, UnknownPlugin
from kernsel.parts import read_search
from kernsel.representation.ranks import Full, LowRank
from kernsel.search.board import Board
from kernsel.search.grid import FINALISTS_OF_FEW
from kernsel.search.strategies import Halving

GRID = {"tau": 2.0 ** np.arange(-4, 12), "lambda": 2.0 ** np.arange(-17, 4, 2)}


def data(learner, n=600):
    if learner == "krr":
        return make_friedman1(n, n_features=8, noise=1.0, random_state=0)
    return make_classification(n, 8, n_informative=5, n_clusters_per_class=3, flip_y=0.05, random_state=0)


def choose(learner, **options):
    X, y = data(learner)
    options = {"choose": "minimum", **options}
    return tables.choose(X, y, learner=learner, folds=5, grid=GRID, extend=False, **options)


@pytest.mark.parametrize("rank", [None, 200], ids=["full", "rank 200"])
@pytest.mark.parametrize("learner", ["krr", "svm"])
def test_the_choice_is_that_of_the_whole_grid(learner, rank):
    whole, halved = (choose(learner, rank=rank, search=search) for search in ("grid", "halving"))
    assert halved.best.key == whole.best.key
    assert halved.best.value == pytest.approx(whole.best.value, rel=1e-9)
    assert halved.options["search"] == "halving"
    assert len(halved.candidates) == len(whole.candidates)
    np.testing.assert_array_equal(halved.heldout, whole.heldout)


def test_those_left_behind_come_later_and_say_at_which_rank():
    result = choose("krr", search="halving")
    candidates = result.candidates
    ranks = [c.rank for c in candidates]
    in_force = ranks.count(None)
    assert FINALISTS_OF_FEW <= in_force < 2 * FINALISTS_OF_FEW
    assert ranks == [None] * in_force + [50] * (len(ranks) - in_force)
    assert result.table["rank"].notna().sum() == len(ranks) - in_force


def test_all_neighbours_of_the_winner_are_scored_at_the_representation_in_force():
    result = choose("svm", search="halving")
    tau, lam = GRID["tau"], GRID["lambda"]
    i, j = (int(np.flatnonzero(axis == v)[0]) for axis, v in ((tau, result.best.kernel.tau), (lam, result.best.lam)))
    around = {
        (tau[a], lam[b])
        for a in (i - 1, i, i + 1)
        for b in (j - 1, j, j + 1)
        if 0 <= a < tau.size and 0 <= b < lam.size
    }
    in_force = {(c.kernel.tau, c.lam) for c in result.candidates if c.rank is None}
    assert around <= in_force
    assert all(c.value >= result.best.value for c in result.candidates if c.verified is not None)
    safest = choose("svm", search="halving", choose="safest").best
    assert safest.verified >= result.best.verified


def test_of_few_rows_neighbours_of_the_lowest_score_are_scored_as_well():
    """The rule of choice has its limit from that score: it must not be that of a candidate beside the lowest."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(400) < 0.5, 1, -1)
    X = rng.standard_normal((400, 20))
    X = np.where(y[:, None] > 0, 2 * X, X + 2 / math.sqrt(20))  # ringnorm: many candidates tie
    result = tables.choose(X, y, learner="svm", folds=5, grid=GRID, extend=False, search="halving")
    lowest = min((c for c in result.candidates if c.rank is None), key=lambda c: c.score)
    assert lowest.key != result.best.key
    tau, lam = GRID["tau"], GRID["lambda"]
    i, j = (int(np.flatnonzero(axis == v)[0]) for axis, v in ((tau, lowest.kernel.tau), (lam, lowest.lam)))
    in_force = {(c.kernel.tau, c.lam) for c in result.candidates if c.rank is None}
    around = {(t, v) for t in tau[max(i - 1, 0) : i + 2] for v in lam[max(j - 1, 0) : j + 2]}
    assert around <= in_force


def test_the_grid_is_extended_from_the_choice():
    X, y = data("krr")
    result = tables.choose(X, y, learner="krr", folds=5, search="halving", grid={**GRID, "tau": GRID["tau"][:5]})
    assert result.best.kernel.tau > GRID["tau"][4]
    assert any("extended" in text for text in result.warnings)


@pytest.mark.parametrize(
    ("search", "n", "outputs", "rank", "expected"),
    [
        ("auto", 999, 1, None, ()),
        ("auto", 999, 2, None, (50, 100)),
        ("auto", 300, 4, None, ()),
        ("auto", 1000, 1, None, (50, 100)),
        ("auto", 2000, 1, None, (50, 100, 200)),
        ("auto", 2000, 1, 200, (50, 100)),
        ("auto", 5000, 1, 500, (50, 100, 200)),
        ("grid", 5000, 1, 500, ()),
        ("halving", 300, 1, None, ()),
        ("halving", 400, 1, None, (50,)),
        ("halving", 5000, 1, 60, ()),
    ],
)
def test_the_ranks(search, n, outputs, rank, expected):
    rank = Full() if rank is None else LowRank(rank)
    part = read_search(search, n, outputs, rank, one_se=False)
    assert (part.ranks(n, rank) if part.name == "halving" else ()) == expected


@pytest.mark.parametrize(
    ("learner", "n", "outputs", "expected"),
    [
        ("svm", 599, 1, "grid"),
        ("svm", 600, 1, "halving"),
        ("klr", 400, 2, "halving"),
        ("klr", 399, 2, "grid"),
        ("qsvr(epsilon=0.1)", 600, 1, "halving"),
        ("lssvm", 999, 1, "grid"),
        ("krr", 1000, 1, "halving"),
    ],
)
def test_losses_that_are_not_square_are_halved_from_fewer_rows(learner, n, outputs, expected):
    part = registry.build("learner", learner)
    assert read_search("auto", n, outputs, Full(), False, part).name == expected
    assert read_search("auto", n, outputs, Full(), True, part).name == "grid"


def test_what_needs_all_candidates_on_few_rows():
    X, y = data("svm")
    options = {"learner": "svm", "kernel": "gaussian", "folds": 5}
    halved = kernsel.select(X, y, **options)
    whole = kernsel.select(X, y, search="grid", **options)
    in_force = [c for c in halved.candidates if c.rank is None]
    assert FINALISTS_OF_FEW <= len(in_force) < len(halved.candidates)
    assert 1 <= halved.procedure.equivalent <= halved.procedure.compared == len(in_force)
    assert halved.procedure.error == pytest.approx(whole.procedure.error, rel=0.05)
    for certain in ({"certify": 0.05}, {"one_se": True}):
        assert all(c.rank is None for c in kernsel.select(X, y, **options, **certain).candidates)


def test_one_standard_error_looks_at_all_candidates():
    assert read_search("auto", 5000, 1, Full(), one_se=True).name == "grid"
    with pytest.raises(OptionError, match="use search grid"):
        read_search("halving", 5000, 1, Full(), one_se=True)


def test_an_unknown_search_is_refused():
    with pytest.raises(UnknownPlugin, match="no search is called 'random'"):
        choose("krr", search="random")


def test_what_fails_at_a_low_rank_is_said():
    X, y = data("krr")
    grid = {"tau": GRID["tau"], "lambda": [1e-300, *GRID["lambda"]]}
    result = tables.choose(X, y, learner="krr", folds=5, search="halving", grid=grid, extend=False)
    assert math.isfinite(result.best.value)
    assert result.best.lam != 1e-300


@pytest.mark.parametrize("learner", ["krr", "svm"])
def test_what_is_verified_is_settled_first(learner):
    result, whole = (choose(learner, search=search, verify=30) for search in ("halving", "grid"))
    exact = {c.key: c.verified for c in whole.candidates}
    verified = [c for c in result.candidates if c.verified is not None]
    assert len(verified) == 30
    assert all(c.rank is None for c in verified)
    common = [c for c in verified if exact[c.key] is not None]
    assert len(common) > 10
    for c in common:
        assert c.verified == pytest.approx(exact[c.key], rel=1e-6)


def test_every_kernel_has_finalists():
    X, y = data("krr")
    result = tables.choose(
        X, y, learner="krr", kernel=["gaussian", "laplacian"], folds=5, search="halving", extend=False
    )
    in_force = {c.kernel.name for c in result.candidates if c.rank is None}
    assert in_force == {"gaussian", "laplacian"}


def test_all_deals_of_repeats_have_the_same_landmarks():
    once, twice = (choose("krr", search="halving", repeats=repeats) for repeats in (1, 2))
    scores = {c.key: c.score for c in once.candidates if c.rank == 50}
    both = [(scores[c.key], c.score) for c in twice.candidates if c.rank == 50 and c.key in scores]
    # another deal changes a score by little; other landmarks at so low a rank change it by much more
    assert np.median([abs(b - a) / a for a, b in both]) < 0.05


def test_of_very_many_rows_lower_ranks_see_the_same_share_of_every_fold():
    rows = tables.make_rows(n=130, sizes=(50, 25, 40))
    few = Board([rows], None, None, LowRank(100), few_rows=60)._few
    assert np.diff(few.starts).tolist() == [24, 12, 19]  # 60 of 130, rounded up
    assert few.n == 62
    places = [rows.order.tolist().index(row) for row in few.order]
    assert places == sorted(places)
    np.testing.assert_array_equal(few.X, rows.X[places])
    np.testing.assert_array_equal(few.Y, rows.Y[:, places])
    fold = np.searchsorted(rows.starts, places[: few.held], "right") - 1
    assert np.bincount(fold).tolist() == [24, 12, 19]


class OnFewRows(Halving):
    """Lower ranks see 300 of 500 rows."""

    def begin(self, board, grids, extend, rule):
        board.few_rows = 300
        return super().begin(board, grids, extend, rule)


def test_the_choice_is_scored_on_all_rows():
    X, y = data("krr", 500)
    options = {"learner": "krr", "rank": 120, "folds": 5, "extend": False, "repeats": 2}
    whole, halved = (tables.choose(X, y, search=search, **options) for search in ("grid", OnFewRows()))
    scores = {candidate.key: candidate.score for candidate in whole.candidates}
    in_force = [candidate for candidate in halved.candidates if candidate.rank is None]
    np.testing.assert_allclose([c.score for c in in_force], [scores[c.key] for c in in_force], rtol=1e-12)
    assert halved.best.rank is None
    assert len(in_force) < len(halved.candidates)
