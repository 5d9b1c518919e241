"""Leave the grid: from its best minima, by compass steps, the simplex of Nelder and Mead, or the criterion's gradient.

Parameters move on a logarithmic scale, in units of the grid's own step at the place, within the range of the grid. What
is not continuous (the degree of a polynomial, an axis that begins with 0) stays as it is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from kernsel.criteria import Slopes
from kernsel.criteria.base import Criterion, SupportsGradient
from kernsel.errors import IncompatibleError, OptionError
from kernsel.journal import remember, seconds_since
from kernsel.kernels import Kernel
from kernsel.parts import read_seconds
from kernsel.protocols import Learner, Tunable, has_gradient
from kernsel.protocols.kernels import is_differentiable
from kernsel.representation.problem import Problem
from kernsel.representation.ranks import Full, Rank
from kernsel.search.axes import Coordinate
from kernsel.search.candidate import Candidate, Key
from kernsel.search.deadline import NEVER, Deadline
from kernsel.search.walk import Walk
from kernsel.text import meant
from kernsel.types import Array

STARTS = 3  # minima of the grid from which to go on
FINEST = 0.2  # compass steps are halved until none is longer, in the logarithm
PRECISION = 0.02  # of the grid's step, at which the simplex has converged
DIGITS = 4  # of a parameter off the grid: what differs beyond is far below any standard error
EVALUATIONS = 200  # candidates that a refinement may score unless told otherwise


@dataclass
class Budget:
    """What a refinement may cost: so many candidates, or so many seconds."""

    evaluations: int | None = EVALUATIONS
    seconds: float | None = None
    used: int = field(default=0, init=False)
    deadline: Deadline = field(default=NEVER, init=False)

    @classmethod
    def read(cls, budget: int | str | None) -> Budget:
        """Return the budget: a number of candidates, or a time such as ``30s`` or ``2min``."""
        if budget is None:
            return cls()
        text = str(budget)
        if re.fullmatch(r"\d+", text) and int(text):
            return cls(int(text))
        seconds = read_seconds(text)
        if seconds is None:
            raise OptionError(f"budget {text} is neither a number of candidates nor a time such as 30s or 2min")
        return cls(None, seconds)

    def begin(self, deadline: Deadline, before: float = 0.0) -> None:
        """Begin what may take the seconds, of which earlier runs took some ``before``, until a deadline at most."""
        own = NEVER if self.seconds is None else Deadline.within_left(self.seconds, before)
        self.deadline = min(deadline, own)

    @property
    def left(self) -> float:
        """Candidates that may still be scored; infinity or 0 where time is what counts."""
        if not self.deadline.left:
            return 0
        return math.inf if self.evaluations is None else self.evaluations - self.used


@dataclass(frozen=True, eq=False)
class GridMinimum:
    """A candidate, and what surrounds it: a point u is in steps of the grid from it, on a logarithmic scale."""

    candidate: Candidate
    coordinates: list[Coordinate]

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """The range of the grid, in steps from the candidate."""
        return [
            ((math.log(c.low) - math.log(c.value)) / c.step, (math.log(c.high) - math.log(c.value)) / c.step)
            for c in self.coordinates
        ]

    def key(self, u: Array, digits: int = DIGITS) -> Key:
        """Return the candidate at a point, with its parameters rounded."""
        low, high = np.transpose(self.bounds)
        values: dict[str, dict[str, float]] = {"kernel": {}, "learner": {}, "lambda": {}}
        for c, at in zip(self.coordinates, np.clip(u, low, high), strict=True):
            values[c.of][c.name] = float(f"{math.exp(math.log(c.value) + at * c.step):.{digits}g}") if at else c.value
        kernel, learner, lam = self.candidate.key
        if values["kernel"]:
            kernel = kernel.with_parameters(**values["kernel"])
        if isinstance(learner, Tunable):
            learner = learner.with_parameters(**values["learner"])
        return kernel, learner, values["lambda"].get("lambda", lam)


@dataclass(frozen=True, eq=False)
class OffGrid:
    """Scores candidates off the grid, at the cost of a budget."""

    search: Walk
    budget: Budget

    @property
    def left(self) -> float:
        """Candidates that may still be scored."""
        return self.budget.left

    def __call__(self, keys: Iterable[Key]) -> list[Candidate]:
        """Return the candidates, scored."""
        wanted, found = list(keys), self.search.board.found
        new = [key for key in dict.fromkeys(wanted) if key not in found]
        self.budget.used += len(new)
        self.search.board.score(new)
        return [found[key] for key in wanted]

    def slopes(self, key: Key) -> Slopes:
        """Return the criterion of a candidate with its gradient."""
        kernel, learner, lam = key
        self.budget.used += 1
        board = self.search.board
        criterion = cast(SupportsGradient, board.criterion)

        def compute() -> Slopes:
            slopes: Slopes = criterion.gradient(Problem(board.rows, kernel), learner, lam)
            return slopes

        return remember("slopes", (board.rows, criterion, *key), compute)


def compass(score: OffGrid, place: GridMinimum) -> None:
    """Compass search from a place: try both directions of every parameter, go to the best, or halve the steps."""
    best, u = place.candidate, np.zeros(len(place.coordinates))
    halvings = max(math.ceil(math.log2(max(c.step for c in place.coordinates) / FINEST)), 1)
    for size in 0.5 ** np.arange(1, halvings + 1):
        while (left := score.left) > 0:
            points = [u + sign * size * e for e in np.eye(u.size) for sign in (1.0, -1.0)]
            points = points[: int(min(left, len(points)))]
            leader, at = min(zip(score(map(place.key, points)), points, strict=True), key=lambda each: each[0].order)
            if not leader.order < best.order:
                break
            best, u = leader, at


def simplex(score: OffGrid, place: GridMinimum) -> None:
    """Nelder & Mead 1965, by SciPy, from a simplex of half the grid's step."""
    p = len(place.coordinates)
    start = np.vstack([np.zeros(p), 0.5 * np.eye(p)])
    for i, (_, high) in enumerate(place.bounds):  # away from an edge
        start[i + 1] *= 1.0 if high >= 0.5 else -1.0

    def value(u: Array) -> float:
        if score.left <= 0:
            raise _Spent
        (candidate,) = score([place.key(u)])
        return min(candidate.value, 1e300)  # differences of infinities would be NaN

    from scipy.optimize import minimize  # takes a while to import

    options = {"initial_simplex": start, "xatol": PRECISION, "fatol": 1e-6 * abs(place.candidate.value)}
    with suppress(_Spent):
        minimize(value, start[0], method="Nelder-Mead", bounds=place.bounds, options=options)


class _Spent(Exception):
    """The budget is used up."""


def gradient(score: OffGrid, place: GridMinimum) -> None:
    """Descend by the criterion's gradient in logarithms of the kernel's parameters and lambda (SciPy's L-BFGS-B)."""
    steps = np.array([c.step for c in place.coordinates])

    def value(u: Array) -> tuple[float, Array]:
        if score.left <= 1:  # the last one is for the point where it ends
            raise _Spent
        kernel: Any
        kernel, learner, lam = place.key(u, 17)
        slopes = score.slopes((kernel, learner, lam))
        along = {"lambda": slopes.lam, **kernel.log_slopes(slopes.theta)}
        if slopes.value < best[0]:
            best[:] = [slopes.value, u]
        return slopes.value, steps * [along[c.name] for c in place.coordinates]

    from scipy.optimize import minimize  # takes a while to import

    best: list[Any] = [math.inf, np.zeros(steps.size)]
    with suppress(_Spent, np.linalg.LinAlgError):  # a ridge below rounding is no way to go on
        minimize(value, best[1], jac=True, method="L-BFGS-B", bounds=place.bounds, options={"ftol": 1e-7})
    score([place.key(best[1])])


METHODS = {"compass": compass, "simplex": simplex, "gradient": gradient}


def read_method(
    method: str | None,
    budget: int | str | None,
    criterion: Criterion,
    learner: Learner,
    kernels: Iterable[Kernel],
    rank: Rank,
) -> str | None:
    """Return the name of a refinement, None for none.

    Raises
    ------
    OptionError
        There is no such thing, or a budget for none.
    IncompatibleError
        A gradient is asked for where there is none.
    """
    if method in (None, "none"):
        if budget is not None:
            raise OptionError(f"budget {budget} is what a refinement may cost: give refine too, or leave budget out")
        return None
    if method not in METHODS:
        hint = meant(str(method), METHODS) or f": use {', '.join(METHODS)} or none"
        raise OptionError(f"refine {method!r} is unknown{hint}")
    if method == "gradient":
        lacking = [
            *([] if has_gradient(criterion) else [f"criterion '{criterion.name}' has none (cv, loo, evidence do)"]),
            *([] if getattr(learner.loss, "square", False) else [f"learner '{learner.name}' has not the square loss"]),
            *(f"kernel '{each}' has none (gaussian has)" for each in kernels if not is_differentiable(each)),
            *([] if isinstance(rank, Full) else ["the rank is not full"]),
        ]
        if lacking:
            raise IncompatibleError(f"refine: no gradient, as {'; '.join(lacking)}: use compass or simplex")
    return method


def refined(search: Walk, method: str, budget: Budget, until: Deadline = NEVER) -> str:
    """Score candidates off the grid, and say what came of it.

    Parameters
    ----------
    search : Walk
        Run already.
    method : {"compass", "simplex", "gradient"}
    until : Deadline
        Ends it as well.
    """
    board = search.board
    before = board.candidates()[0]
    budget.begin(until, 0.0 if budget.seconds is None else seconds_since("refining", [method]))
    for place in list(starts(search)):
        METHODS[method](OffGrid(search, budget), place)
    after = board.candidates()[0]
    return (
        f"refined by {method}: {budget.used} evaluation{'s' * (budget.used != 1)} off the grid took the score "
        f"from {before.score:.5g} to {after.score:.5g}" + "; the time was up" * (not budget.deadline.left)
    )


def starts(search: Walk) -> Iterator[GridMinimum]:
    """Give the best minima of the grid: candidates at the representation in force with no better one next to them."""
    count, found = 0, search.board.found
    for candidate in search.board.candidates():
        if not candidate.compares or count == STARTS:
            return
        axes = search.axes_of(candidate)
        if axes is None:
            continue
        near = (found[key] for key in axes.neighbours(candidate) if key in found)
        coordinates = axes.coordinates(candidate)
        if coordinates and not any(other.order < candidate.order for other in near):
            count += 1
            yield GridMinimum(candidate, coordinates)
