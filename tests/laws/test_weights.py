"""A weight of 2 is a row that is there twice to every criterion, or the criterion says what it is instead."""

import re
from dataclasses import replace

import numpy as np
import pytest

import tables
from kernsel import registry
from kernsel.data import from_arrays
from kernsel.folds.partition import Partition
from kernsel.kernels import Statistics
from kernsel.selection.api import select_dataset

CRITERIA = registry.names("criterion")
OPTIONS = {"fbif": {"landmarks": 1.0}, "er": {"q": 3}}
SQUARE = ("loo", "eloo", "gcv", "br", "evidence")


def learners(name):
    """Those that a criterion can have, of which the first is taken where one will do."""
    if name in ("gacv", "span", "xi-alpha", "radius-margin"):
        return ["svm(bias=false)"] if name == "gacv" else ["svm(bias=false)", "l2svm(bias=false)"]
    return ["krr"] if name in SQUARE else ["krr", "svm(bias=false)"]


def scores(name, learner):
    """Scores of weighted rows, and of the rows repeated as often as they weigh."""
    rows = tables.make_rows()
    rows = replace(rows, Y=rows.Y[:1])
    s = 1.0 + np.arange(30) % 3
    again = np.repeat(np.arange(30), s.astype(int))
    X = rows.X[again]
    starts = np.r_[0, np.cumsum(s)[rows.starts[1:] - 1]].astype(int)
    repeated = Partition(X, np.ascontiguousarray(rows.Y[:, again]), starts, np.arange(60), Statistics(X))
    part = registry.build("learner", learner)
    criterion = replace(registry.build("criterion", name), **OPTIONS.get(name, {}))
    paths = (tables.path_on(each, part) for each in (replace(rows, weights=s), repeated))
    return criterion, [criterion.score(path) for path in paths]


@pytest.mark.parametrize("name", CRITERIA)
def test_a_weight_of_two_is_a_row_twice_or_the_criterion_says_that_it_is_not(name):
    differs = []
    for learner in learners(name):
        criterion, (weighted, repeated) = scores(name, learner)
        assert weighted.failed == repeated.failed == [None, None]
        differs.append(not np.allclose(weighted.score, repeated.score, rtol=1e-5))
    said = getattr(getattr(criterion, "about", None), "weights", "")
    assert any(differs) == bool(said), differs


@pytest.mark.parametrize("name", [name for name in CRITERIA if registry.get("criterion", name).about.weights])
def test_a_weighted_selection_says_so(name):
    X, y = tables.circles(40)
    options = {"criterion": name, "learner": learners(name)[0], "grid": tables.SMALL, "folds": 4, "extend": False}
    weights = 1.0 + np.arange(40) % 2
    plain, weighted = (
        select_dataset(from_arrays(X, y, weights=each), **options).data["notes"] for each in (None, weights)
    )
    meaning = registry.get("criterion", name).about.weights
    assert f"weights: to {name} {meaning}" in weighted
    assert not any(re.match("weights: to", note) for note in plain)
