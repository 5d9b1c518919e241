"""Grid search over kernels, their parameters and lambda, extended where the winner lies on the edge.

Either every candidate is scored at the representation in force, or by *successive halving over the rank*: all at a
small rank, the best eighth at twice that rank, and so on, where there are very many rows on some of them; the last few
of each kernel, and all that lie around the best of them, at the representation in force. The best is then no worse
there than any neighbour in the grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kernsel.errors import Caution
from kernsel.search.axes import Axes
from kernsel.search.candidate import Candidate, Key, parameters_of
from kernsel.search.walk import Walk
from kernsel.types import Array

ROUNDS = 4  # extensions of the grid
KEPT, FINALISTS, FEWEST = 8, 10, 4
"""Successive halving leaves one in so many at each rank, and so many in the end: of all kernels, and of each."""
FEW_ROWS, FINALISTS_OF_FEW = 1000, 24
"""Below so many rows it leaves so many: scores of few rows differ by chance, so that more candidates can't be told from
the best, and each costs little. On eight tables of 600 to 768 rows (svm, l2svm, klr; three seeds) the choice is then
the grid's in 67 of 72 selections rather than 58, 22 rather than 14 candidates of 40 are known to be as good, and the
error of the selection is 0.4 % rather than 0.9 % below that of all candidates."""


@dataclass
class GridSearch(Walk):
    """Score every candidate of several grids.

    Grids are replaced by longer ones as the search is extended. It goes on around what the rule of choice would take
    by now, and beyond the edge of the grid where that lies on one: so a grid isn't extended for a score that can't be
    told from a safer one's.

    Parameters
    ----------
    board : Board
    grids : list of Axes
    extend : bool
    rule : Rule
        Those of every search: see ``kernsel.search.walk``.
    ladder : sequence of int, ascending
        Ranks of successive halving, below that in force; with none every candidate is scored there.
    few : bool
        Whether halving is of few rows, where more candidates are scored at the representation in force.
    """

    ladder: Sequence[int] = ()
    few: bool = False
    extensions: list[dict[str, str]] = field(default_factory=list)
    remark: str | None = None

    def run(self) -> None:
        """Score the grids, and go on from the best candidate as long as there is anything better to hope for."""
        for axes in self.grids:  # each on its own: a low rank costs some kernels more than others
            self._halve([key for key in axes.points() if key not in self.board.found])
        while self.explore(self.leading()):
            pass

    def leading(self) -> Candidate:
        """Return the candidate that the rule of choice would take by the scores so far."""
        return self.rule.first(self.board.candidates())

    def explore(self, best: Candidate) -> bool:
        """Score what lies around ``best``, or beyond the edge of the grid where it lies on one, unless that is done.

        Returns whether there was anything to score.
        """
        self.remark = None
        g = next((g for g, axes in enumerate(self.grids) if best in axes), None)
        if g is None:  # it was found off the grid, inside its range
            return False
        if best.failed is None and (left := self._left_around(best)):
            self.board.score(left)
            return True
        where = self.edge(best)
        if best.failed is not None or not where:
            return False
        unbounded = getattr(self.board.criterion, "unbounded", None)
        longer = self.grids[g].extended(best, getattr(self.board.criterion, "unbounded_in", ()))
        if not self.extend or longer is None or len(self.extensions) == ROUNDS:
            why = (
                "and the grid was not extended"
                if not self.extend
                else f"which was not extended, for {unbounded}"
                if longer is None and unbounded
                else "which can't be extended"
                if longer is None
                else f"after {ROUNDS} extensions: give a wider grid"
            )
            self.remark = Caution("edge", f"the choice lies on the edge of the grid ({where}), {why}")
            return False
        self.grids[g], done = longer
        self.extensions.append(done)
        self._halve([key for key in self.grids[g].points(best) if key not in self.board.found])
        return True

    def _left_around(self, best: Candidate) -> list[Key]:
        """Return the neighbours in the grid of ``best`` that aren't scored at the representation in force.

        Where few rows were halved also those of the lowest score, from which the rule of choice has its limit.
        """
        middles = [best]
        if self.few:
            middles.append(self.board.candidates()[0])
        around = [key for each in middles for axes in self.grids if each in axes for key in axes.neighbours(each)]
        return [key for key in dict.fromkeys(around) if self._is_provisional(key)]

    def _is_provisional(self, key: Key) -> bool:
        found = self.board.found.get(key)
        return found is None or not found.in_force

    def edge(self, candidate: Candidate) -> str:
        """Return where a candidate lies on the edge of its grid, in words; nothing if it doesn't."""
        axes = self.axes_of(candidate)
        return "" if axes is None else ", ".join(_where(axes, candidate))

    def cautions(self) -> list[str]:
        """Return what should be known of the edges of the grid."""
        ranges = {name: text for done in self.extensions for name, text in done.items()}
        listed = ", ".join(f"{name} to {text}" for name, text in ranges.items())
        text = f"the best candidate lay on the edge of the grid: extended {listed}"
        extended: list[str] = [Caution("extended", text)] if listed else []
        return extended + ([self.remark] if self.remark is not None else [])

    def _halve(self, keys: list[Key]) -> None:
        """Score candidates by successive halving, or all of them where there is no ladder or they are few."""
        finalists = max(-(-(FINALISTS_OF_FEW if self.few else FINALISTS) // len(self.grids)), FEWEST)
        for level, rank in enumerate(self.ladder, 1):
            if len(keys) <= finalists:
                break
            self.board.score(keys, rank)
            best = sorted(keys, key=lambda key: self.board.found[key].order)
            keys = best[: max(finalists, len(keys) // KEPT) if level < len(self.ladder) else finalists]
        self.board.score(keys)


def _where(axes: Axes, candidate: Candidate) -> list[str]:
    places = [
        f"{name} = {value:.3g}"
        for part, ranges in (
            (candidate.kernel.parameters, axes.values),
            (parameters_of(candidate.learner), axes.tuning),
        )
        for name, value in part.items()
        if name in ranges and ranges[name].size > 1 and _at_edge(ranges[name], value)
    ]
    return places + [f"lambda = {candidate.lam:.3g}"] * (axes.lams.size > 1 and candidate.lam in axes.lams[[0, -1]])


def _at_edge(axis: Array, value: float) -> bool:
    """Tell whether the value is an end of its axis, beyond which there might be something: nothing is below 0."""
    return bool(value == axis[-1] or (value == axis[0] and value != 0))
