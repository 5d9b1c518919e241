"""The grid of a kernel and a learner: the values of their parameters and of lambda, and how it is continued."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kernsel.errors import OptionError
from kernsel.folds.partition import Partition
from kernsel.kernels import Kernel
from kernsel.numerics.runtime.patience import NotDone, done_within
from kernsel.protocols import Learner, Tunable
from kernsel.search.candidate import Candidate, Key, parameters_of
from kernsel.search.converting import in_own_words
from kernsel.types import Array

Grid = str | Mapping[str, Sequence[float]]

PAPER_TAU = 2.0 ** np.arange(-15.0, 16.0)
PAPER_LAM = 2.0 ** np.arange(-15.0, 16.0, 2.0)
RIDGES = 2.0 ** np.arange(-14.0, 9.0, 2.0)
"""Default values of ``n lambda``: for a kernel with ``k(x, x) = 1`` from nearly interpolating to nearly constant; n is
the sum of the weights."""

LEAST, LARGEST = 1e-300, 1e300  # values that can be divided and multiplied by the number of rows
STEPS = 4  # values that an extension adds to an axis
STYLES = ("auto", "coarse", "paper")
SPARSER = 3  # one value of the coarse grid in place of so many


@dataclass(frozen=True)
class Coordinate:
    """A continuous parameter where a candidate lies, for a search that leaves the grid.

    Parameters
    ----------
    of : {"kernel", "learner", "lambda"}
    step : float
        Of the grid there, in the logarithm.
    low, high : float
        The range of the grid.
    """

    of: str
    name: str
    value: float
    step: float
    low: float
    high: float


@dataclass
class Axes:
    """The grid of one kernel and the learner: values of the free parameters of each, and of lambda, all ascending."""

    kernel: Kernel
    values: dict[str, Array]
    lams: Array
    learner: Learner
    tuning: dict[str, Array] = field(default_factory=dict)

    def kernels(self, near: Candidate | None = None, reach: int = STEPS) -> Iterator[Kernel]:
        """Walk the kernels of the grid, or those no more than ``reach`` values away from a candidate's on each axis."""
        return _walk(self.kernel, self.values, None if near is None else near.kernel.parameters, reach)

    def learners(self, near: Candidate | None = None, reach: int = STEPS) -> Iterator[Learner]:
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

    def coordinates(self, candidate: Candidate) -> list[Coordinate]:
        """Return the continuous parameters of a candidate, those that have more than one value in the grid."""
        axes = [
            *(("kernel", name, axis, candidate.kernel.parameters[name]) for name, axis in self.values.items()),
            *(("learner", name, axis, parameters_of(candidate.learner)[name]) for name, axis in self.tuning.items()),
            ("lambda", "lambda", self.lams, candidate.lam),
        ]
        found = []
        for of, name, axis, value in axes:
            if axis.size > 1 and continuous(name, axis):
                i = int(np.searchsorted(axis, value))
                near = axis[max(i - 1, 0) : i + 2]
                step = float(np.log(near[-1]) - np.log(near[0])) / (near.size - 1)
                found.append(Coordinate(of, name, float(value), step, float(axis[0]), float(axis[-1])))
        return found

    def __contains__(self, candidate: Candidate) -> bool:
        return (
            candidate.lam in self.lams
            and candidate.learner in set(self.learners())
            and candidate.kernel in set(self.kernels())
        )

    def extended(self, winner: Candidate, stay: Sequence[str] = ()) -> tuple[Axes, dict[str, str]] | None:
        """Return the grid with every axis lengthened at whose end the winner lies, and the new ranges; or None.

        The axes of the kernel's parameters, or of lambda, stay as they are if ``stay`` holds "kernel" or "lambda".
        """
        values = {} if "kernel" in stay else _longer(self.values, winner.kernel.parameters)
        tuning = _longer(self.tuning, parameters_of(winner.learner))
        lams = {} if "lambda" in stay else _longer({"lambda": self.lams}, {"lambda": winner.lam})
        done = {name: f"{axis[0]:.3g}..{axis[-1]:.3g}" for name, axis in (values | tuning | lams).items()}
        if not done:
            return None
        lam = lams.get("lambda", self.lams)
        return replace(self, values=self.values | values, lams=lam, tuning=self.tuning | tuning), done


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


def continuous(name: str, axis: Array) -> bool:
    """Tell whether a parameter may have any value in the range of its axis, on a logarithmic scale."""
    return bool(name.rpartition(".")[2] != "degree" and axis[0] > 0)


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


def make_grids(
    kernels: Sequence[Kernel], grid: Grid, rows: Partition, learner: Learner, within: float | None = None
) -> list[Axes]:
    """Return the grid of each kernel.

    Parameters
    ----------
    grid : {"auto", "coarse", "paper"} or mapping
        Scaled by the data; the same range with a third of the values, to be left by a refinement; that of FBIF18; or
        values by parameter name and ``"lambda"``, with scikit-learn's ``C``, ``alpha`` and ``gamma`` converted. A name
        is for every kernel that has such a free parameter, and for the learner if it has such a parameter, free or not.
        What has no values is automatic, or as ``"rest"`` says: one of these names.
    within : float, optional
        Seconds after which a kernel that has not returned its values says nothing of the scale of lambda; none by
        default.

    Raises
    ------
    OptionError
        The grid is none of these, or names what neither a kernel nor the learner has.
    """
    style, named = read_grid(grid)
    values = in_own_words(named, kernels, rows.total, learner)
    free = list(dict.fromkeys(name for kernel in kernels for name in kernel.free))
    known = [*free, "lambda", *getattr(learner, "searchable", ())]
    for name in values:
        if name not in known:
            which = ", ".join(f"'{kernel}'" for kernel in kernels)
            raise OptionError(f"grid: kernel {which} has no free parameter '{name}'; free here: {', '.join(known)}")
    learner = learner.freed(values) if isinstance(learner, Tunable) else learner
    return [_axes(kernel, style, values, rows, learner, within) for kernel in kernels]


def read_grid(grid: Grid) -> tuple[str, dict[str, Array]]:
    """Return what a grid is where it has no values, and its values by the names given.

    Raises
    ------
    OptionError
        It can't be read.
    """
    given = dict(grid) if isinstance(grid, Mapping) else {"rest": grid}
    style = given.pop("rest", "auto")
    if style not in STYLES:
        raise OptionError(
            f"grid {style!r} is unknown: use {', '.join(STYLES)}, sobol:N, random:N, or a dictionary of values"
        )
    if "kernel" in given:
        raise OptionError(
            "grid: kernels are given by kernel, such as kernel=['gaussian', 'polynomial']; leave it out here"
        )
    named = [(name.rpartition("__")[2], each) for name, each in given.items()]  # C for svc__C, of a step of a pipeline
    if len(dict(named)) < len(named):
        raise OptionError(f"grid: {', '.join(given)} name one parameter twice; give it once")
    return style, {name: read_axis(name, each) for name, each in named}


def _axes(
    kernel: Kernel, style: str, given: Mapping[str, Array], rows: Partition, learner: Learner, within: float | None
) -> Axes:
    known = {n: PAPER_TAU for n in kernel.free if n.rpartition(".")[2] == "tau"} if style == "paper" else {}
    known |= {n: given[n] for n in kernel.free if n in given}
    lams = given.get("lambda", PAPER_LAM if style == "paper" else None)
    if lams is None or len(known) < len(kernel.free):  # what has no values is scaled by the data
        scaled = {name: np.asarray(axis, dtype=np.float64) for name, axis in kernel.axes(rows.X).items()}
        if lams is None:
            middle = kernel.with_parameters(**{name: float(axis[axis.size // 2]) for name, axis in scaled.items()})
            ridge = _scale(middle, rows, within)
            counts = (rows.s == np.round(rows.s)).all()  # of rows that are there several times; else ratios count
            lams = _thinned(style, "lambda", RIDGES * ridge / (rows.total if counts else rows.n))
        known = {n: _thinned(style, n, axis) for n, axis in scaled.items()} | known
    tuning = dict(learner.axes(rows.Y)) if isinstance(learner, Tunable) and learner.free else {}
    tuning = {n: given[n] if n in given else _thinned(style, n, axis) for n, axis in tuning.items()}
    return Axes(kernel, {n: known[n] for n in kernel.free if n in known}, lams, learner, tuning)


def _scale(kernel: Kernel, rows: Partition, within: float | None) -> float:
    """Return the mean of k(x, x) over the rows; 1 where there is none, so that no candidate will have a score."""
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            diagonal = rows.diagonal(kernel) if within is None else done_within(within, lambda: rows.diagonal(kernel))
        except NotDone:
            return 1.0
        scale = float(rows.s @ diagonal / rows.total)
        if not math.isfinite(scale):  # the sum may be out of range where the mean isn't
            scale = float(rows.s / rows.total @ diagonal)
    return scale if RIDGES[0] * scale > 0 and math.isfinite(RIDGES[-1] * scale) else 1.0


def _thinned(style: str, name: str, axis: Array) -> Array:
    """Return fewer values, at least three, of a continuous axis for a coarse grid; any other axis as it is."""
    count = max(math.ceil(axis.size / SPARSER), 3)
    coarser = style == "coarse" and axis.size > count and continuous(name, axis)
    return np.geomspace(axis[0], axis[-1], count) if coarser else axis


def read_axis(name: str, given: object) -> Array:
    """Return the values of one parameter in a grid that was given, ascending; OptionError if they can't be some."""
    try:
        axis = np.unique(np.asarray(given, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise OptionError(f"grid: the values of '{name}' must be numbers, not {given!r}") from error
    if not axis.size or not np.isfinite(axis).all():
        raise OptionError(f"grid: the values of '{name}' must be finite numbers, at least one")
    if name == "lambda" and not (axis[0] >= LEAST and axis[-1] <= LARGEST):
        raise OptionError(f"grid: lambda must be greater than 0, from {LEAST:g} to {LARGEST:g}")
    return axis
