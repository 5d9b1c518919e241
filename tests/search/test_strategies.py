"""Searches as parts: those of kernsel by their names, and one of somebody else."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

import tables
from kernsel import registry
from kernsel.errors import OptionError, PluginFailure
from kernsel.search.walk import Walk

GRID = {"tau": [0.1, 1.0, 10.0], "lambda": [1e-4, 1e-2, 1.0]}
X, Y = tables.waves(60)


class EveryOther(Walk):
    """Scores every other candidate."""

    def run(self):
        self.board.score([key for axes in self.grids for key in axes.points()[::2]])

    def cautions(self):
        return ["every other candidate was left out"]


@dataclass(frozen=True)
class Half:
    """Score every other candidate."""

    name: ClassVar[str] = "half"

    def begin(self, board, grids, extend, rule):
        return EveryOther(board, grids, extend, rule)


def test_the_searches_of_kernsel_are_parts():
    assert {"grid", "halving"} <= set(registry.names("search"))
    assert registry.build("search", "halving").name == "halving"


def test_a_search_of_somebody_else_finds_what_the_grid_does_among_what_it_scores():
    half = tables.choose(X, Y, grid=GRID, folds=5, search=Half())
    whole = tables.choose(X, Y, grid=GRID, folds=5, search="grid", extend=False)
    scores = {candidate.key: candidate.score for candidate in whole.candidates}
    assert len(half.candidates) == 5
    assert all(scores[candidate.key] == pytest.approx(candidate.score, rel=1e-9) for candidate in half.candidates)
    assert half.options["search"] == "half"
    assert any("left out" in text for text in half.warnings)
    assert half.best.verified is not None


def test_a_search_that_scores_nothing_is_named():
    class Lazy(Half):
        name: ClassVar[str] = "lazy"

        def begin(self, board, grids, extend, rule):
            walk = EveryOther(board, [], extend, rule)
            return walk

    with pytest.raises(OptionError, match="search 'lazy' scored no candidate"):
        tables.choose(X, Y, grid=GRID, folds=5, search=Lazy())


def test_what_is_no_search_is_refused():
    with pytest.raises(OptionError, match="a search must be a name"):
        tables.choose(X, Y, search=Half)


def test_what_begins_with_something_else_is_named():
    class Wrong(Half):
        name: ClassVar[str] = "wrong"

        def begin(self, board, grids, extend, rule):
            return 1

    with pytest.raises(PluginFailure, match="search 'wrong' began with int in place of"):
        tables.choose(X, Y, grid=GRID, folds=5, search=Wrong())
