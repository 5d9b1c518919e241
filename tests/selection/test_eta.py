"""The weight of a penalty by cross-validation: a twin, whom it asks, and when it can't."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

import tables
import twins.heldout
from kernsel.criteria import CVKS, RKS, NewtonCV
from kernsel.data import from_arrays
from kernsel.errors import IncompatibleError, OptionError
from kernsel.folds import make_folds
from kernsel.folds.partition import Partition
from kernsel.kernels import Gaussian, Statistics
from kernsel.learners import Krr
from kernsel.paths import make_path
from kernsel.representation.problem import Problem
from kernsel.representation.ranks import Full, LowRank
from kernsel.selection import eta as tradeoff
from kernsel.selection.eta import ETAS

GRID = {"tau": [0.1, 1.0, 10.0], "lambda": [1e-3, 1e-2, 1e-1]}


def rows_of(dataset, folds, seed=0):
    dealt = make_folds(folds, dataset, seed)
    X, Y = np.ascontiguousarray(dataset.X[dealt.order]), np.ascontiguousarray(dataset.Y[:, dealt.order])
    weights = None if dataset.weights is None else dataset.weights[dealt.order]
    return Partition(X, Y, dealt.starts, dealt.order, Statistics(X), seed, weights)


def choose(criterion, dataset, folds=5, grid=GRID, learner=None, rank=None):
    rows = rows_of(dataset, folds)
    return tradeoff.choose_eta(criterion, rows, dataset, [Gaussian()], grid, learner or Krr(), rank or Full())


def slow(criterion, dataset, folds):
    """For every third and eta: score each candidate on the other rows, refit the best, and predict the third."""
    rows, found = rows_of(dataset, folds), {eta: [] for eta in ETAS}
    fold = np.searchsorted(rows.starts, np.arange(rows.n), side="right") - 1
    for held in tradeoff.deal_parts(rows, dataset):
        X, Y, kept = rows.X, rows.Y, ~held
        starts = np.r_[0, np.cumsum(np.bincount(fold[kept]))]
        inner = Partition(X[kept], Y[:, kept], starts, np.arange(kept.sum()), Statistics(X[kept]))
        paths = [make_path(Problem(inner, Gaussian(tau)), Krr(), GRID["lambda"]) for tau in GRID["tau"]]
        for eta in ETAS:
            scores = {
                (path.problem.kernel.tau, lam): score
                for path in paths
                for lam, score in zip(path.lams, replace(criterion, eta=eta).score(path).score, strict=True)
            }
            tau, lam = min(scores, key=scores.get)
            K = Gaussian(tau)(X)
            a = twins.heldout.fit_square(K[np.ix_(kept, kept)], Y[:, kept], np.ones(kept.sum()), lam, 0)
            f = a[:, :-1] @ K[np.ix_(kept, held)]
            wrong = np.mean(np.sign(f) != Y[:, held])
            rmse = np.sqrt(np.mean((f - Y[:, held]) ** 2)) * dataset.output_scale[0]
            found[eta].append(wrong if dataset.labels else rmse)
    return {eta: np.mean(errors) for eta, errors in found.items()}


@pytest.mark.parametrize("criterion", [RKS(eta=None), CVKS(eta=None)], ids=["rks", "cvks"])
@pytest.mark.parametrize("data", [tables.circles, tables.waves])
def test_the_errors_are_those_of_brute_force(criterion, data):
    dataset = from_arrays(*data(n=45), "auto", False)
    chosen, errors = choose(criterion, dataset)
    expected = slow(criterion, dataset, 5)
    assert list(errors) == list(ETAS)
    np.testing.assert_allclose(list(errors.values()), list(expected.values()), rtol=1e-9)
    assert errors[chosen.eta] == min(errors.values())
    assert replace(chosen, eta=None) == criterion


def test_ties_go_to_the_value_nearest_to_one():
    dataset = from_arrays(*tables.waves(n=30), "auto", False)
    chosen, errors = choose(CVKS(eta=None), dataset, grid={"tau": [1.0], "lambda": [0.01]})
    assert len(set(errors.values())) == 1
    assert chosen.eta == 1.0


@dataclass(frozen=True)
class Counted(CVKS):
    """Counts its paths."""

    name: ClassVar[str] = "counted"
    paths: ClassVar[list] = []

    def score(self, path):
        self.paths.append(path)
        return super().score(path)


def test_sampled_points_will_do_for_a_grid():
    dataset = from_arrays(*tables.circles(n=30), "auto", False)
    Counted.paths.clear()
    assert choose(Counted(eta=None), dataset, grid="sobol:4")[0].eta in ETAS
    assert len({path.problem.kernel for path in Counted.paths}) == 3 * 4


def test_one_search_a_third_serves_every_eta():
    Counted.paths.clear()
    dataset = from_arrays(*tables.waves(n=30), "auto", False)
    choose(Counted(eta=None), dataset)
    assert len(Counted.paths) == 3 * len(GRID["tau"])
    assert {path.rows.n for path in Counted.paths} == {20}
    assert {path.rows.left.size for path in Counted.paths} == {5}


def test_groups_stay_whole_and_weights_go_along():
    X, y = tables.waves(n=36)
    groups, weights = np.arange(36) // 3, np.random.default_rng(0).exponential(size=36)
    dataset = from_arrays(X, y, "auto", False, groups=groups, weights=weights)
    rows = rows_of(dataset, 4)
    for held in tradeoff.deal_parts(rows, dataset):
        apart = set(dataset.groups[rows.order[held]]) & set(dataset.groups[rows.order[~held]])
        assert not apart
        inner, whole = tradeoff.leave_out(rows, held), tradeoff.hold_out(rows, held)
        np.testing.assert_array_equal(inner.weights, dataset.weights[inner.order])
        np.testing.assert_array_equal(whole.weights, dataset.weights[whole.order])
        np.testing.assert_array_equal(inner.X, dataset.X[inner.order])
        assert whole.held == held.sum()
        assert set(whole.order[: whole.held]) == set(rows.order[held])
        for fold in range(inner.left.size):
            out = inner.order[inner.starts[fold] : inner.starts[fold + 1]]
            assert not set(dataset.groups[out]) & set(dataset.groups[np.setdiff1d(inner.order, out)])
    assert choose(CVKS(eta=None), dataset, 4)[0].eta in ETAS


@pytest.mark.parametrize("rank", [None, 12, 1000])
def test_a_low_rank_of_more_rows_than_there_are_is_cut(rank):
    dataset = from_arrays(*tables.circles(n=30), "auto", False)
    rank = None if rank is None else LowRank(rank)
    assert choose(RKS(eta=None), dataset, rank=rank)[0].eta in ETAS


@dataclass(frozen=True)
class Untold(NewtonCV):
    """Has an eta and doesn't say what for."""

    name: ClassVar[str] = "untold"
    eta: float | None = None


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"folds": "time:4"}, OptionError, "eta can't be chosen by cross-validation where a fold's fit"),
        ({"eta": -1.0}, OptionError, "eta must be a finite number of at least 0"),
        ({"eta": "most"}, OptionError, "eta must be a finite number of at least 0, not 'most'"),
        ({"criterion": Untold(), "eta": None}, IncompatibleError, "'untold' leaves eta free, but its scores have no"),
        ({"criterion": "cv"}, OptionError, "criterion 'cv' has no option 'eta'; leave it out, or use cvks"),
    ],
)
def test_when_it_cannot_be_chosen(options, error, message):
    X, y = tables.waves(n=40)
    with pytest.raises(error, match=message):
        tables.choose(X, y, **{"criterion": "cvks", "eta": "cv", "grid": GRID, **options})


def test_two_groups_are_no_three_parts():
    X, y = tables.waves(n=40)
    dataset = from_arrays(X, y, "auto", False, groups=np.arange(40) // 20)
    with pytest.raises(OptionError, match="eta is chosen on 3 folds, but 3 folds can't be made of 2 groups"):
        choose(CVKS(eta=None), dataset, 2)


def test_a_selection_says_what_was_chosen():
    X, y = tables.circles(n=45)
    options = {"folds": 5, "grid": GRID, "learner": "krr", "extend": False}
    result = tables.choose(X, y, criterion="cvks(cv=fbif)", eta="cv", **options)
    dataset = from_arrays(X, y, "auto", False)
    chosen, errors = choose(CVKS(eta=None, cv="fbif"), dataset)
    said = result.to_dict()["options"]
    assert said["criterion"] == {"name": "cvks", "eta": chosen.eta, "norm": "spectral", "cv": "fbif"}
    assert said["eta"] == [{"eta": eta, "error": error} for eta, error in errors.items()]
    assert any(note.startswith(f"eta: {chosen.eta:g}, by the held-out error") for note in result.data["notes"])
    given = tables.choose(X, y, criterion="cvks(cv=fbif)", eta=chosen.eta, **options)
    assert given.to_dict()["options"]["eta"] == []
    assert result.best.verified == given.best.verified
    by_text = tables.choose(X, y, criterion="cvks(cv=fbif, eta=none)", **options)
    assert by_text.best.verified == result.best.verified
