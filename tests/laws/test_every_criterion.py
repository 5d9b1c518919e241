"""Laws of every registered criterion, with every registered learner that it accepts."""

import re
from dataclasses import fields, replace
from functools import cache

import numpy as np
import pytest

import tables
from kernsel import registry
from kernsel.data import from_arrays
from kernsel.errors import IncompatibleError
from kernsel.folds.partition import Partition
from kernsel.kernels import Statistics
from kernsel.selection.api import select_dataset
from tolerances import FITTED

CRITERIA = registry.names("criterion")
DRAWN = {"fbif": {"landmarks": 1.0}}
"""Values of parameters without which a criterion draws some rows, which have other numbers in another order."""
SMALL = {"er": {"q": 3}}
"""Values of parameters that must be below the number of rows."""
LAMS = (0.1, 0.01)
criteria = pytest.mark.parametrize("name", CRITERIA)


def learners():
    """Every registered learner, without a bias where that can be chosen: a bias may be free to move."""
    parts = [registry.get("learner", name) for name in registry.names("learner")]
    return [part(**{each.name: False for each in fields(part) if each.name == "bias"}) for part in parts]


def build(name):
    return replace(registry.build("criterion", name), **DRAWN.get(name, {}), **SMALL.get(name, {}))


def labels(seed=0):
    """Rows in unequal folds and one row of labels, which regressions take as well."""
    rows = tables.make_rows(seed)
    return replace(rows, Y=rows.Y[:1])


@cache
def accepted(name):
    """The criterion, and the learners that it accepts."""
    criterion, rows, found = build(name), labels(), []
    for learner in learners():
        try:
            criterion.score(tables.path_on(rows, learner, LAMS))
        except IncompatibleError:
            continue
        found.append(learner)
    assert found, f"{name} accepts no registered learner"
    return criterion, found


def same_scores(name, change, rtol=FITTED, **options):
    """Check that a change of the rows changes no score, with any learner."""
    criterion, found = accepted(name)
    rows = labels()
    for learner in found:
        one, other = (criterion.score(tables.path_on(each, learner, LAMS, **options)) for each in (rows, change(rows)))
        assert one.failed == other.failed == [None, None]
        np.testing.assert_allclose(other.score, one.score, rtol=rtol, atol=rtol, err_msg=str(learner))


@criteria
def test_the_order_of_rows_and_of_folds_changes_nothing(name):
    def change(rows):
        folds = [np.arange(lo, hi)[::-1] for lo, hi in zip(rows.starts[:-1], rows.starts[1:], strict=True)][::-1]
        return rows.taken(np.concatenate(folds), np.r_[0, np.cumsum([fold.size for fold in folds])])

    same_scores(name, change)


@criteria
def test_the_sign_of_the_labels_changes_nothing(name):
    same_scores(name, lambda rows: replace(rows, Y=-rows.Y))


@criteria
def test_a_target_twice_changes_nothing(name):
    try:
        same_scores(name, lambda rows: replace(rows, Y=np.repeat(rows.Y, 2, axis=0)))
    except IncompatibleError:
        pytest.skip("the criterion takes classes, of which two are one target and more have a target each")


@criteria
def test_a_path_of_one_lambda_has_the_scores_of_a_path_of_many(name):
    criterion, found = accepted(name)
    for learner in found:
        together = criterion.score(tables.path_on(labels(), learner, (1.0, *LAMS)))
        for k, lam in enumerate((1.0, *LAMS)):
            alone = criterion.score(tables.path_on(labels(), learner, (lam,)))
            assert alone.failed == together.failed[k : k + 1] == [None]
            np.testing.assert_allclose(alone.score[0], together.score[k], rtol=FITTED, atol=FITTED)


@criteria
def test_scores_do_not_depend_on_what_was_asked_before(name):
    criterion, found = accepted(name)
    for learner in found:
        fresh, used = (tables.path_on(labels(), learner, LAMS) for _ in range(2))
        _ = used.fits, used.exact(), used.newton_step(), used.ratio, used.norms([0, 1]), used.representation.stability
        np.testing.assert_array_equal(criterion.score(used).score, criterion.score(fresh).score, err_msg=str(learner))


@criteria
def test_a_weight_of_two_is_a_row_twice_or_the_criterion_says_that_it_is_not(name):
    rows, s = labels(), 1.0 + np.arange(30) % 3
    again = np.repeat(np.arange(30), s.astype(int))
    X, starts = rows.X[again], np.r_[0, np.cumsum(s)[rows.starts[1:] - 1]].astype(int)
    repeated = Partition(X, np.ascontiguousarray(rows.Y[:, again]), starts, np.arange(60), Statistics(X))
    criterion, found = accepted(name)
    differs = []
    for learner in found:
        paths = (tables.path_on(each, learner, LAMS) for each in (replace(rows, weights=s), repeated))
        one, other = (criterion.score(path) for path in paths)
        assert one.failed == other.failed == [None, None]
        differs.append(not np.allclose(one.score, other.score, rtol=1e-5))
    said = getattr(getattr(criterion, "about", None), "weights", "")
    assert any(differs) == bool(said), differs


@pytest.mark.parametrize("name", [name for name in CRITERIA if registry.get("criterion", name).about.weights])
def test_a_weighted_selection_says_so(name):
    X, y = tables.circles(40)
    learner = next(each for each in accepted(name)[1] if "classification" in each.tasks)
    options = {"criterion": name, "learner": learner, "grid": tables.SMALL, "folds": 4, "extend": False}
    weights = 1.0 + np.arange(40) % 2
    plain, weighted = (
        select_dataset(from_arrays(X, y, weights=each), **options).data["notes"] for each in (None, weights)
    )
    meaning = registry.get("criterion", name).about.weights
    assert f"weights: to {name} {meaning}" in weighted
    assert not any(re.match("weights: to", note) for note in plain)
