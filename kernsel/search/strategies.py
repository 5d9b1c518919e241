"""The searches of kernsel as parts, reached by their entry points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kernsel.representation.ranks import LowRank, Rank
from kernsel.search.axes import Axes
from kernsel.search.board import Board
from kernsel.search.choice import Rule
from kernsel.search.grid import FEW_ROWS, GridSearch

FIRST_RANK = 50
"""Landmarks of the first round of successive halving."""


@dataclass(frozen=True)
class Grid:
    """Score every candidate of the grids at the representation in force.

    Notes
    -----
    Cost: That of the criterion for every candidate.

    Against: From 1000 rows on (600 if the loss isn't square) most of the time goes to candidates that a small rank
    would have sorted out.

    Examples
    --------
    ::

        kernsel example wine wine.csv
        kernsel select wine.csv --kernel gaussian --folds 5 --search grid
    """

    name: ClassVar[str] = "grid"

    def begin(self, board: Board, grids: list[Axes], extend: bool, rule: Rule) -> GridSearch:
        """Return the search under way, before its first step."""
        return GridSearch(board, grids, extend, rule)


@dataclass(frozen=True)
class Halving:
    """Score all candidates at a small rank, the best eighth at twice that rank, and so on, the last few in full.

    Notes
    -----
    Cost: That of the criterion at small ranks, and in full for ten finalists (24 below 1000 rows) and neighbours of the
    best.

    Against: A candidate that a small rank represents badly may be left behind, and those left behind are not compared
    with the choice: fewer count as equivalent to it.

    Examples
    --------
    ::

        kernsel example breast-cancer breast-cancer.csv
        kernsel select breast-cancer.csv --kernel gaussian --folds 5 --search halving
    """

    name: ClassVar[str] = "halving"

    def ranks(self, n: int, rank: Rank) -> tuple[int, ...]:
        """Return the ranks below that in force at which candidates of n rows are left behind; none if rows are few."""
        largest = rank.largest // 2 if isinstance(rank, LowRank) else n // 8
        doublings = range(max(largest // FIRST_RANK, 0).bit_length())
        return tuple(FIRST_RANK * 2**k for k in doublings)

    def begin(self, board: Board, grids: list[Axes], extend: bool, rule: Rule) -> GridSearch:
        """Return the search under way, before its first step."""
        n = board.rows.n
        return GridSearch(board, grids, extend, rule, self.ranks(n, board.rank), few=n < FEW_ROWS)
