"""Grid search over kernels, their parameters and lambda, extended where the winner lies on the edge.

Either every candidate is scored at the representation in force, or by *successive halving over the rank*: all at a
small rank, the best eighth at twice that rank, and so on, where there are very many rows on some of them; the last few
of each kernel, and all that lie around the best of them, at the representation in force. The best is then no worse
there than any neighbour in the grid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from kernsel.criteria import Scores
from kernsel.errors import Caution
from kernsel.folds.partition import Partition
from kernsel.kernels import Kernel, Statistics, short
from kernsel.numerics.runtime.jit import share_each
from kernsel.paths import Path, make_path
from kernsel.protocols import Criterion
from kernsel.representation.problem import Landmarks, Problem, Problems
from kernsel.representation.ranks import LowRank, Rank, Whole
from kernsel.search.axes import Array, Axes
from kernsel.search.candidate import Candidate, Key, parameters_of
from kernsel.search.choice import MINIMUM, Rule

Progress = Callable[[int, int, str], None]

ROUNDS = 4  # extensions of the grid
FEW_ROWS = 2**15  # are enough to leave a candidate behind at a lower rank
KEPT, FINALISTS, FEWEST = 8, 10, 4
"""Successive halving leaves one in so many at each rank, and so many in the end: of all kernels, and of each."""


@dataclass
class GridSearch:
    """Score every candidate of several grids.

    Parameters
    ----------
    rows : Partition
    criterion : Criterion
    rank : LowRank, Whole or None
        The representation in force; None for the whole Gram matrix.
    assess : callable
        ``(Path, Scores) -> list of Candidate``, one for each lambda of the path.
    grids : list of Axes
        Replaced by longer ones as the search is extended.
    extend : bool
        Whether it may be.
    progress : callable or None
    ladder : sequence of int, ascending
        Ranks of successive halving, below that in force; with none every candidate is scored there.
    problems : Problems
        Where those at the representation in force are kept.
    rule : Rule
        How the choice will be made: the search goes on around what that would take by now, and beyond the edge of the
        grid where that lies on one. So a grid isn't extended for a score that can't be told from a safer one's.
    """

    rows: Partition
    criterion: Criterion
    rank: Rank | None
    assess: Callable[[Path, Scores], list[Candidate]]
    grids: list[Axes]
    extend: bool = True
    progress: Progress | None = None
    ladder: Sequence[int] = ()
    problems: Problems = field(default_factory=Problems)
    rule: Rule = field(default=Rule(MINIMUM, 0.0))
    found: dict[Key, Candidate] = field(default_factory=dict)
    extensions: list[dict[str, str]] = field(default_factory=list)
    remark: str | None = None

    def run(self) -> None:
        """Score the grids, and go on from the best candidate as long as there is anything better to hope for."""
        for axes in self.grids:  # each on its own: a low rank costs some kernels more than others
            self._halve([key for key in axes.points() if key not in self.found])
        while self.explore(self.leading()):
            pass

    def leading(self) -> Candidate:
        """Return the candidate that the rule of choice would take by the scores so far."""
        return self.rule.first(self.candidates())

    def candidates(self) -> list[Candidate]:
        """Return all candidates so far, best first."""
        return sorted(self.found.values(), key=lambda candidate: candidate.order)

    def explore(self, best: Candidate) -> bool:
        """Score what lies around ``best``, or beyond the edge of the grid where it lies on one, unless that is done.

        Returns whether there was anything to score.
        """
        self.remark = None
        g = next((g for g, axes in enumerate(self.grids) if best in axes), None)
        if g is None:  # it was found off the grid, inside its range
            return False
        if best.failed is None and (left := [k for k in self.grids[g].neighbours(best) if self._unsettled(k)]):
            self.score(left)
            return True
        where = self.edge(best)
        if best.failed is not None or not where:
            return False
        unbounded = getattr(self.criterion, "unbounded", None)
        longer = self.grids[g].extended(best, getattr(self.criterion, "unbounded_in", ()))
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
        self._halve([key for key in self.grids[g].points(best) if key not in self.found])
        return True

    def settle(self, candidates: Iterable[Candidate]) -> bool:
        """Score those that were left at a lower rank at the representation in force; say whether there were any."""
        left = [candidate.key for candidate in candidates if candidate.rank is not None]
        self.score(left)
        return bool(left)

    def _unsettled(self, key: Key) -> bool:
        return key not in self.found or self.found[key].rank is not None

    def edge(self, candidate: Candidate) -> str:
        """Return where a candidate lies on the edge of its grid, in words; nothing if it doesn't."""
        axes = self.axes_of(candidate)
        return "" if axes is None else ", ".join(_where(axes, candidate))

    def axes_of(self, candidate: Candidate) -> Axes | None:
        """Return the grid that a candidate is on; None if it was found off every grid."""
        return next((axes for axes in self.grids if candidate in axes), None)

    def said(self) -> list[str]:
        """Return what is to be said about the edges of the grid."""
        ranges = {name: text for done in self.extensions for name, text in done.items()}
        listed = ", ".join(f"{name} to {text}" for name, text in ranges.items())
        text = f"the best candidate lay on the edge of the grid: extended {listed}"
        extended: list[str] = [Caution("extended", text)] if listed else []
        return extended + ([self.remark] if self.remark is not None else [])

    def _halve(self, keys: list[Key]) -> None:
        """Score candidates by successive halving, or all of them where there is no ladder or they are few."""
        finalists = max(-(-FINALISTS // len(self.grids)), FEWEST)
        for level, rank in enumerate(self.ladder, 1):
            if len(keys) <= finalists:
                break
            self._score(keys, rank)
            best = sorted(keys, key=lambda key: self.found[key].order)
            keys = best[: max(finalists, len(keys) // KEPT) if level < len(self.ladder) else finalists]
        self.score(keys)

    def score(self, keys: Iterable[Key]) -> None:
        """Score candidates at the representation in force."""
        self._score(keys, None)

    @cached_property
    def _few(self) -> Partition:
        """The rows that candidates are scored on at a lower rank than that in force: the same share of every fold."""
        rows = self.rows
        if rows.n <= FEW_ROWS:
            return rows
        bounds = np.append(rows.starts, rows.n)  # the last part is of rows that no fold holds out
        fold = np.searchsorted(rows.starts, np.arange(rows.n), side="right") - 1
        shuffled = np.lexsort((np.random.default_rng(rows.seed).random(rows.n), fold))
        quota = -(-np.diff(bounds) * FEW_ROWS // rows.n)
        chosen = np.zeros(rows.n, np.bool_)
        chosen[shuffled[np.arange(rows.n) - bounds[fold] < quota[fold]]] = True
        return rows.part(chosen)

    def _landmarks(self, rows: Partition, rank: int) -> Landmarks:
        """Return landmarks for all kernels at a lower rank than that in force: drawn uniformly, ever more of them."""
        drawn = np.random.default_rng(rows.seed).permutation(rows.n)[:rank]
        return Landmarks(drawn, Statistics(rows.X, rows.X[drawn]))

    def _score(self, keys: Iterable[Key], lower: int | None) -> None:
        """Score candidates at a lower rank or at the one in force; those of one kernel share all that they can."""
        rows, rank, landmarks = self.rows, self.rank, None
        if lower is not None:
            rows, rank = self._few, LowRank(lower)
            landmarks = self._landmarks(rows, lower)
        lams: dict[Kernel, dict[Any, list[float]]] = {}
        for kernel, learner, lam in keys:
            lams.setdefault(kernel, {}).setdefault(learner, []).append(lam)
        # Many lambda of a kernel take longest: first, so that no thread is left with them alone.
        work = sorted(lams.items(), key=lambda item: -sum(map(len, item[1].values())))
        total, done = sum(len(each) for paths in lams.values() for each in paths.values()), 0

        def on_kernel(item: tuple[Kernel, dict[Any, list[float]]]) -> tuple[Kernel, list[Candidate]]:
            return item[0], self._on_kernel(item[0], item[1], rows, rank, landmarks)

        # The whole kernel keeps all threads, and the memory, busy by itself.
        each = map if isinstance(rank, Whole) else share_each
        for kernel, candidates in each(on_kernel, work):
            for candidate in candidates:
                self.found[candidate.key] = candidate
            done += len(candidates)
            if self.progress is not None:
                self.progress(done, total, short(kernel))

    def _on_kernel(
        self,
        kernel: Kernel,
        lams: Mapping[Any, list[float]],
        rows: Partition,
        rank: Rank | None,
        landmarks: Landmarks | None,
    ) -> list[Candidate]:
        problem = self.problems.on(rows, kernel, rank) if landmarks is None else Problem(rows, kernel, rank, landmarks)
        paths = [make_path(problem, learner, each) for learner, each in lams.items()]
        return [candidate for path in paths for candidate in self.assess(path, self.criterion.score(path))]


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
