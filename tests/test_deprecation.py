"""Old words are understood for two versions, warn, and are gone in time."""

import warnings

import numpy as np
import pytest

import kernsel
from kernsel import deprecation, registry
from kernsel.deprecation import RENAMED, Renamed, current
from kernsel.errors import OptionError, RenamedWarning

pytestmark = pytest.mark.filterwarnings("ignore::kernsel.errors.SelectionWarning")  # of a grid of one


@pytest.fixture
def renamed(monkeypatch):
    rows = [
        Renamed("name", "choose", "select", "0.1"),
        Renamed("option", "partition", "folds", "0.1.3"),
        Renamed("kernel", "bell", "gaussian", "0.1"),
    ]
    monkeypatch.setattr(deprecation, "RENAMED", tuple(rows))


def test_no_old_word_has_had_its_time():
    assert not [row for row in RENAMED if row.over], "take these rows out of kernsel.deprecation.RENAMED"


@pytest.mark.parametrize(("version", "over"), [("0.3.0", False), ("0.4.2", False), ("0.5.0", True), ("1.0.0", True)])
def test_a_word_is_kept_for_two_versions(version, over, monkeypatch):
    monkeypatch.setattr(deprecation, "__version__", version)
    row = Renamed("option", "a", "b", "0.3.1")
    assert row.end == (0, 5)
    assert row.over is over


def test_an_old_word_is_understood_and_says_its_new_one(renamed):
    X, y = np.arange(40.0)[:, None], np.arange(40.0) % 7
    with pytest.warns(RenamedWarning, match="name 'choose' is called 'select' since kernsel 0.1, and gone in 0.3"):
        assert kernsel.choose is kernsel.select
    with pytest.warns(RenamedWarning, match="kernel 'bell' is called 'gaussian'"):
        assert registry.get("kernel", "bell") is registry.get("kernel", "gaussian")
    fixed = {"kernel": "gaussian(tau=1)", "grid": {"lambda": [0.1]}, "extend": False}
    with pytest.warns(RenamedWarning, match="option 'partition' is called 'folds' since kernsel 0.1.3"):
        old = kernsel.select(X, y, partition=4, **fixed)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RenamedWarning)
        assert old.best.score == kernsel.select(X, y, folds=4, **fixed).best.score
    with pytest.warns(RenamedWarning), pytest.raises(OptionError, match="are one option"):
        kernsel.select(X, y, partition=4, folds=4, **fixed)


def test_other_words_are_what_they_are(renamed):
    assert current("option", "folds") == "folds"
    assert current("learner", "bell") == "bell"
    with pytest.raises(AttributeError, match="no attribute 'bell'"):
        kernsel.bell  # noqa: B018
