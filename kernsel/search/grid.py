"""Grid search over kernels, their parameters and lambda, extended where the winner lies on the edge.

Either every candidate is scored at the representation in force, or by *successive halving over the rank*: all at a
small rank, the best quarter at twice that rank, and so on; the last few of each kernel, and all that lie around the
best of them, at the representation in force. The best is then no worse there than any neighbour in the grid.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernsel.criteria import Scores
from kernsel.errors import OptionError
from kernsel.kernels import Kernel, Statistics, short
from kernsel.numerics.jit import share_each
from kernsel.paths import Path, make_path
from kernsel.problem import Landmarks, Problem, Rows

Array = NDArray[np.float64]
Grid = str | Mapping[str, Sequence[float]]
Progress = Callable[[int, int, str], None]
Key = tuple[Kernel, Any, float]

PAPER_TAU = 2.0 ** np.arange(-15.0, 16.0)
PAPER_LAM = 2.0 ** np.arange(-15.0, 16.0, 2.0)
RIDGES = 2.0 ** np.arange(-14.0, 9.0, 2.0)
"""Default values of ``n lambda``: for a kernel with ``k(x, x) = 1`` from nearly interpolating to nearly constant; n is
the sum of the weights."""

LEAST, LARGEST = 1e-300, 1e300  # values that can be divided and multiplied by the number of rows
ROUNDS, STEPS = 4, 4  # extensions of the grid, and values that each adds to an axis
KEPT, FINALISTS = 4, 10  # successive halving leaves one in so many at each rank, and so many in the end
TIE_DIGITS = 6  # scores that agree to so many digits are tied: what differs beyond is far below any standard error


@dataclass(frozen=True, eq=False)
class Candidate:
    """One kernel and one learner with their parameters, one lambda, and what was found out about them.

    Parameters
    ----------
    kernel : Kernel
    lam : float
    score : float
        By the criterion; infinite if it failed.
    loss : float
        Mean held-out loss of the learner, which breaks ties.
    error, error_se : float or None
        Held-out misclassification or RMSE, and its standard error over folds.
    reliability : float or None
        Ratio rho of the influence series, where the score is an approximation.
    scored_by : str or None
        The criterion that scored instead of an untrusted one.
    exact : bool
        Whether the score already is that of exact refits.
    failed : str or None
        The reason, if there is no score.
    verified : float or None
        The criterion's value from exact refits.
    score_se : float or None
        Standard error over folds of the score (of ``verified`` where there is one), if it is a mean over rows.
    metrics : mapping of str to Value
        Further figures from exact held-out outputs, for verified candidates.
    refitted : int
        Folds that were refitted, as the criterion's approximation could not be trusted there.
    rank : int or None
        Of the representation that the score is from, if successive halving left the candidate at a lower one than that
        in force.
    terms : mapping of str to float
        What the score is the sum of, such as its ``fit`` and its ``penalty``, if it is a sum.
    learner : Learner or None
        None if there is only one.
    """

    kernel: Kernel
    lam: float
    learner: Any = field(default=None, kw_only=True)
    score: float = math.inf
    loss: float = math.inf
    error: float | None = None
    error_se: float | None = None
    reliability: float | None = None
    scored_by: str | None = None
    exact: bool = False
    failed: str | None = None
    verified: float | None = None
    score_se: float | None = None
    metrics: Mapping[str, Any] = field(default_factory=dict)
    refitted: int = 0
    rank: int | None = None
    terms: Mapping[str, float] = field(default_factory=dict)

    @property
    def value(self) -> float:
        """The score: the verified one, if there is one."""
        return self.score if self.verified is None else self.verified

    @property
    def width(self) -> float:
        """The kernel's width; 0 if it has none."""
        return float(self.kernel.parameters.get(self.kernel.width or "", 0.0))

    @property
    def key(self) -> Key:
        """What it is a candidate of."""
        return self.kernel, self.learner, self.lam

    @cached_property
    def order(self) -> tuple[float, ...]:
        """Sort key: failures last; then the rank, score, loss, larger lambda, wider kernel and tube."""
        tube = (-value for value in parameters_of(self.learner).values())
        score, rank = _rounded(self.value), math.inf if self.rank is None else self.rank
        return score == math.inf, -rank, score, _rounded(self.loss), -self.lam, -self.width, *tube


def _rounded(value: float) -> float:
    return float(f"{value:.{TIE_DIGITS}g}") if math.isfinite(value) else math.inf


def free_of(learner: Any) -> tuple[str, ...]:
    """Return the names of the learner's free parameters; none of one that can't be searched."""
    return tuple(getattr(learner, "free", ()))


def parameters_of(learner: Any) -> dict[str, float]:
    """Return the searchable parameters of a learner that have a value; none of one that can't be searched."""
    return dict(getattr(learner, "parameters", {}))


@dataclass
class Axes:
    """The grid of one kernel and the learner: values of the free parameters of each, and of lambda, all ascending."""

    kernel: Kernel
    values: dict[str, Array]
    lams: Array
    learner: Any
    tuning: dict[str, Array] = field(default_factory=dict)

    def kernels(self, near: Candidate | None = None, reach: int = STEPS) -> Iterator[Kernel]:
        """Walk the kernels of the grid, or those no more than ``reach`` values away from a candidate's on each axis."""
        return _walk(self.kernel, self.values, None if near is None else near.kernel.parameters, reach)

    def learners(self, near: Candidate | None = None, reach: int = STEPS) -> Iterator[Any]:
        """Walk the learners of the grid in the same way."""
        return _walk(self.learner, self.tuning, None if near is None else parameters_of(near.learner), reach)

    def points(self, near: Candidate | None = None) -> list[Key]:
        """Return what is to be scored: the whole grid, or the surroundings of a candidate with every lambda."""
        learners = list(self.learners(near))
        return [(k, learner, lam) for k in self.kernels(near) for learner in learners for lam in self.lams.tolist()]

    def neighbours(self, candidate: Candidate) -> list[Key]:
        """Return what is no more than one value away from a candidate on each axis."""
        place = int(np.searchsorted(self.lams, candidate.lam))
        lams = self.lams[max(place - 1, 0) : place + 2].tolist()
        learners = list(self.learners(candidate, 1))
        return [(k, learner, lam) for k in self.kernels(candidate, 1) for learner in learners for lam in lams]

    def __contains__(self, candidate: Candidate) -> bool:
        return (
            candidate.lam in self.lams
            and candidate.learner in set(self.learners())
            and candidate.kernel in set(self.kernels())
        )

    def extended(self, winner: Candidate, kernels: bool = True) -> tuple[Axes, dict[str, str]] | None:
        """Return the grid with every axis lengthened at whose end the winner lies, and the new ranges; or None.

        The axes of the kernel's parameters stay as they are if ``kernels`` is false.
        """
        values = _longer(self.values, winner.kernel.parameters) if kernels else {}
        tuning = _longer(self.tuning, parameters_of(winner.learner))
        lams = _longer({"lambda": self.lams}, {"lambda": winner.lam})
        done = {name: f"{axis[0]:.3g}..{axis[-1]:.3g}" for name, axis in (values | tuning | lams).items()}
        if not done:
            return None
        lam = lams.get("lambda", self.lams)
        return Axes(self.kernel, self.values | values, lam, self.learner, self.tuning | tuning), done


def _walk(part: Any, axes: Mapping[str, Array], near: Mapping[str, float] | None, reach: int) -> Iterator[Any]:
    """Give the free parameters of a kernel or learner the values of a grid, or of its surroundings of a point."""
    if not axes:
        yield part
        return
    ranges = list(axes.values())
    if near is not None:
        places = [int(np.searchsorted(axis, near[name])) for name, axis in axes.items()]
        ranges = [axis[max(i - reach, 0) : i + reach + 1] for axis, i in zip(ranges, places, strict=True)]
    for point in itertools.product(*ranges):
        yield part.with_parameters(**dict(zip(axes, map(float, point), strict=True)))


def _longer(axes: Mapping[str, Array], at: Mapping[str, float]) -> dict[str, Array]:
    """Return those axes that can be continued at the end where the point lies, continued there."""
    continued = {
        name: _lengthened(axis, float(at[name])) for name, axis in axes.items() if name.rpartition(".")[2] != "degree"
    }
    return {name: axis for name, axis in continued.items() if axis is not None}


def _lengthened(axis: Array, value: float) -> Array | None:
    """Continue a geometric axis beyond the end that ``value`` is at; an axis that begins with 0 ends there."""
    if axis.size < 2 or value not in (axis[0], axis[-1]):
        return None
    last, before = (axis[0], axis[1]) if value == axis[0] else (axis[-1], axis[-2])
    if not (last > 0 and before > 0):
        return None
    with np.errstate(over="ignore", under="ignore"):  # what is out of range is left out below
        beyond = last * (last / before) ** np.arange(1, STEPS + 1)
    usable = beyond[(beyond >= LEAST) & (beyond <= LARGEST)]
    return np.sort(np.append(axis, usable)) if usable.size else None


def make_grids(kernels: Sequence[Kernel], grid: Grid, rows: Rows, learner: Any) -> list[Axes]:
    """Return the grid of each kernel.

    Parameters
    ----------
    kernels : sequence of Kernel
    grid : {"auto", "paper"} or mapping
        Scaled by the data; that of FBIF18; or values by parameter name and ``"lambda"``. A name is for every kernel
        that has such a free parameter, and for the learner if it has such a parameter, free or not. What has no values
        is automatic, or as ``"rest"`` says: ``"auto"`` or ``"paper"``.
    rows : Rows
    learner : Learner

    Raises
    ------
    OptionError
        The grid is none of these, or names what neither a kernel nor the learner has.
    """
    given = dict(grid) if isinstance(grid, Mapping) else {"rest": grid}
    style = given.pop("rest", "auto")
    if style not in ("auto", "paper"):
        raise OptionError(f"grid {style!r} is unknown: use auto, paper, or a dictionary of values")
    values = {name: _axis(name, each) for name, each in given.items()}
    free = list(dict.fromkeys(name for kernel in kernels for name in kernel.free))
    known = [*free, "lambda", *getattr(learner, "searchable", ())]
    for name in values:
        if name not in known:
            which = ", ".join(f"'{kernel}'" for kernel in kernels)
            raise OptionError(f"grid: kernel {which} has no free parameter '{name}'; free here: {', '.join(known)}")
    learner = learner.freed(values) if hasattr(learner, "freed") else learner
    return [_axes(kernel, style, values, rows, learner) for kernel in kernels]


def _axes(kernel: Kernel, style: str, given: Mapping[str, Array], rows: Rows, learner: Any) -> Axes:
    values = {name: np.asarray(axis, dtype=np.float64) for name, axis in kernel.axes(rows.X).items()}
    middle = kernel.with_parameters(**{name: float(axis[axis.size // 2]) for name, axis in values.items()})
    ridge = float(rows.s @ middle.diag(rows.X) / rows.total) or 1.0
    lams = RIDGES * ridge / rows.total
    if style == "paper":
        lams = PAPER_LAM
        values = {n: PAPER_TAU if n.rpartition(".")[2] == "tau" else axis for n, axis in values.items()}
    values = {name: given.get(name, axis) for name, axis in values.items()}
    tuning = {name: given.get(name, axis) for name, axis in learner.axes(rows.Y).items()} if free_of(learner) else {}
    return Axes(kernel, values, given.get("lambda", lams), learner, tuning)


def _axis(name: str, given: Any) -> Array:
    """Read the values of one parameter in a grid that was given."""
    try:
        axis = np.unique(np.asarray(given, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise OptionError(f"grid: the values of '{name}' must be numbers, not {given!r}") from error
    if not axis.size or not np.isfinite(axis).all():
        raise OptionError(f"grid: the values of '{name}' must be finite numbers, at least one")
    if name == "lambda" and not (axis[0] >= LEAST and axis[-1] <= LARGEST):
        raise OptionError(f"grid: lambda must be greater than 0, from {LEAST:g} to {LARGEST:g}")
    return axis


@dataclass
class GridSearch:
    """Score every candidate of several grids.

    Parameters
    ----------
    rows : Rows
    criterion : Criterion
    rank : int or None
        Of the low-rank representation; None for the whole Gram matrix.
    assess : callable
        ``(Path, Scores) -> list of Candidate``, one for each lambda of the path.
    grids : list of Axes
        Replaced by longer ones as the search is extended.
    extend : bool
        Whether it may be.
    progress : callable or None
    ladder : sequence of int, ascending
        Ranks of successive halving, below that in force; with none every candidate is scored there.
    """

    rows: Rows
    criterion: Any
    rank: int | None
    assess: Callable[[Path, Scores], list[Candidate]]
    grids: list[Axes]
    extend: bool = True
    progress: Progress | None = None
    ladder: Sequence[int] = ()
    found: dict[Key, Candidate] = field(default_factory=dict)
    extensions: list[dict[str, str]] = field(default_factory=list)
    remark: str | None = None

    def run(self) -> None:
        """Score the grids, and go on from the best candidate as long as there is anything better to hope for."""
        for axes in self.grids:  # each on its own: a low rank costs some kernels more than others
            self._halve([key for key in axes.points() if key not in self.found])
        while self.explore(self.candidates()[0]):
            pass

    def candidates(self) -> list[Candidate]:
        """Return all candidates so far, best first."""
        return sorted(self.found.values(), key=lambda candidate: candidate.order)

    def explore(self, best: Candidate) -> bool:
        """Score what lies around ``best``, or beyond the edge of the grid where it lies on one, unless that is done.

        Returns whether there was anything to score.
        """
        self.remark = None
        g = next(g for g, axes in enumerate(self.grids) if best in axes)
        if best.failed is None and (left := [k for k in self.grids[g].neighbours(best) if self._unsettled(k)]):
            self._score(left, self.rank)
            return True
        where = self.edge(best)
        if best.failed is not None or not where:
            return False
        unbounded = getattr(self.criterion, "unbounded", None)
        longer = self.grids[g].extended(best, kernels=unbounded is None)
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
            self.remark = f"the choice lies on the edge of the grid ({where}), {why}"
            return False
        self.grids[g], done = longer
        self.extensions.append(done)
        self._halve([key for key in self.grids[g].points(best) if key not in self.found])
        return True

    def settle(self, candidates: Iterable[Candidate]) -> bool:
        """Score those that were left at a lower rank at the representation in force; say whether there were any."""
        left = [candidate.key for candidate in candidates if candidate.rank is not None]
        self._score(left, self.rank)
        return bool(left)

    def _unsettled(self, key: Key) -> bool:
        return key not in self.found or self.found[key].rank is not None

    def edge(self, candidate: Candidate) -> str:
        """Return where a candidate lies on the edge of its grid, in words; nothing if it doesn't."""
        axes = next(axes for axes in self.grids if candidate in axes)
        return ", ".join(_where(axes, candidate))

    def said(self) -> list[str]:
        """Return what is to be said about the edges of the grid."""
        ranges = {name: text for done in self.extensions for name, text in done.items()}
        listed = ", ".join(f"{name} to {text}" for name, text in ranges.items())
        extended = [f"the best candidate lay on the edge of the grid: extended {listed}"] if listed else []
        return extended + ([self.remark] if self.remark is not None else [])

    def _halve(self, keys: list[Key]) -> None:
        """Score candidates by successive halving, or all of them where there is no ladder or they are few."""
        for level, rank in enumerate(self.ladder, 1):
            if len(keys) <= FINALISTS:
                break
            self._score(keys, rank)
            best = sorted(keys, key=lambda key: self.found[key].order)
            keys = best[: max(FINALISTS, len(keys) // KEPT) if level < len(self.ladder) else FINALISTS]
        self._score(keys, self.rank)

    def _landmarks(self, rank: int | None) -> Landmarks | None:
        """Return landmarks for all kernels at a lower rank than that in force: drawn uniformly, ever more of them."""
        if rank is None or rank == self.rank:
            return None
        drawn = np.random.default_rng(self.rows.seed).permutation(self.rows.n)[:rank]
        return Landmarks(drawn, Statistics(self.rows.X, self.rows.X[drawn]))

    def _score(self, keys: Iterable[Key], rank: int | None) -> None:
        """Score candidates at one representation; those of one kernel share all that they can."""
        landmarks = self._landmarks(rank)
        lams: dict[Kernel, dict[Any, list[float]]] = {}
        for kernel, learner, lam in keys:
            lams.setdefault(kernel, {}).setdefault(learner, []).append(lam)
        # Many lambda of a kernel take longest: first, so that no thread is left with them alone.
        work = sorted(lams.items(), key=lambda item: -sum(map(len, item[1].values())))
        total, done = sum(len(each) for paths in lams.values() for each in paths.values()), 0

        def on_kernel(item: tuple[Kernel, dict[Any, list[float]]]) -> tuple[Kernel, list[Candidate]]:
            return item[0], self._on_kernel(item[0], item[1], rank, landmarks)

        for kernel, candidates in share_each(on_kernel, work):
            for candidate in candidates:
                left = None if rank == self.rank else rank
                self.found[candidate.key] = replace(candidate, rank=left)
            done += len(candidates)
            if self.progress is not None:
                self.progress(done, total, short(kernel))

    def _on_kernel(
        self, kernel: Kernel, lams: Mapping[Any, list[float]], rank: int | None, landmarks: Landmarks | None
    ) -> list[Candidate]:
        problem = Problem(self.rows, kernel, rank, landmarks)
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
    return places + [f"lambda = {candidate.lam:.3g}"] * (candidate.lam in axes.lams[[0, -1]])


def _at_edge(axis: Array, value: float) -> bool:
    """Tell whether the value is an end of its axis, beyond which there might be something: nothing is below 0."""
    return bool(value == axis[-1] or (value == axis[0] and value != 0))
