"""A search under way: it scores candidates on a board, and may go on around the choice after verification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from kernsel import protocols
from kernsel.search.axes import Axes
from kernsel.search.board import Board
from kernsel.search.candidate import Candidate
from kernsel.search.choice import MINIMUM, Rule


@dataclass
class Walk:
    """What every search has; one of a plugin overrides ``run``, and what else it can do.

    Parameters
    ----------
    board : Board
        Where candidates are scored and kept: ``board.score(keys)``, then ``board.found[key]``.
    grids : list of Axes
        The values of each kernel's parameters, the learner's and lambda; ``axes.points()`` are their keys.
    extend : bool
        Whether candidates beyond the grids may be scored.
    rule : Rule
        How the choice will be made.
    """

    board: Board
    grids: list[Axes]
    extend: bool = True
    rule: Rule = field(default=Rule(MINIMUM, 0.0))

    def run(self) -> None:
        """Score candidates; at least one at the representation in force."""
        raise NotImplementedError

    def explore(self, best: Candidate) -> bool:
        """Score what is worth it around the choice; say whether there was anything.

        Parameters
        ----------
        best : Candidate
            The choice so far.
        """
        return False

    def cautions(self) -> Sequence[str]:
        """Return what should be known of the search; each is a ``Caution``."""
        return ()

    def axes_of(self, candidate: Candidate) -> Axes | None:
        """Return the grid that a candidate is on; None if it was found off every grid."""
        return next((axes for axes in self.grids if candidate in axes), None)


Search: TypeAlias = protocols.Search[Board, Axes, Rule, Walk]
"""What has ``begin(board, grids, extend, rule)``, as every search."""
