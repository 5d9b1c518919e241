"""The searches of kernsel as parts, reached by their entry points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kernsel.representation.ranks import LowRank, Rank
from kernsel.search.axes import Axes
from kernsel.search.board import Board
from kernsel.search.choice import Rule
from kernsel.search.grid import GridSearch

FIRST_RANK = 50
"""Landmarks of the first round of successive halving."""


@dataclass(frozen=True)
class Grid:
    """Score every candidate of the grids at the representation in force."""

    name: ClassVar[str] = "grid"

    def begin(self, board: Board, grids: list[Axes], extend: bool, rule: Rule) -> GridSearch:
        """Return the search under way, before its first step."""
        return GridSearch(board, grids, extend, rule)


@dataclass(frozen=True)
class Halving:
    """Score all candidates at a small rank, the best eighth at twice that rank, and so on, the last few in full."""

    name: ClassVar[str] = "halving"

    def ranks(self, n: int, rank: Rank | None) -> tuple[int, ...]:
        """Return the ranks below that in force at which candidates of n rows are left behind; none if rows are few."""
        largest = rank.largest // 2 if isinstance(rank, LowRank) else n // 8
        doublings = range(max(largest // FIRST_RANK, 0).bit_length())
        return tuple(FIRST_RANK * 2**k for k in doublings)

    def begin(self, board: Board, grids: list[Axes], extend: bool, rule: Rule) -> GridSearch:
        """Return the search under way, before its first step."""
        return GridSearch(board, grids, extend, rule, self.ranks(board.rows.n, board.rank))
