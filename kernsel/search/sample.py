"""Points instead of a grid, where kernel and learner have many parameters: at random, or by Sobol's sequence."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernsel.errors import OptionError
from kernsel.folds.partition import Partition
from kernsel.kernels import Kernel
from kernsel.protocols import Learner, Tunable
from kernsel.search.axes import Axes, Coordinate, Grid, continuous, make_grids, read_grid
from kernsel.search.candidate import Candidate, Key, parameters_of
from kernsel.search.scales import Family, Scales
from kernsel.types import Array

MOST = 100_000  # points of a sample; so many have a million candidates or more
DESIGN = re.compile(r"(random|sobol):(.*)")


@dataclass
class ScatteredPoints(Axes):
    """A sample of the points of a grid's range, each with every lambda.

    ``values`` and ``tuning`` are empty: there is no axis but that of lambda to be on the edge of, or to extend.

    Parameters
    ----------
    ranges : mapping of (str, str) to array
        The axes that were sampled, by part ("kernel" or "learner") and name.
    """

    ranges: Mapping[tuple[str, str], Array] = field(kw_only=True)
    sample: Sequence[tuple[Kernel, Learner]] = field(kw_only=True)

    def points(self, near: Candidate | None = None) -> list[Key]:
        """Return what is to be scored: all, or kernel and learner of a candidate with every lambda."""
        pairs = self.sample if near is None else [(near.kernel, near.learner)]
        return [(kernel, learner, lam) for kernel, learner in pairs for lam in self.lams.tolist()]

    def neighbours(self, candidate: Candidate) -> list[Key]:
        """Return kernel and learner of a candidate with the next lambda on both sides."""
        place = int(np.searchsorted(self.lams, candidate.lam))
        lams = self.lams[max(place - 1, 0) : place + 2].tolist()
        return [(candidate.kernel, candidate.learner, lam) for lam in lams]

    def coordinates(self, candidate: Candidate) -> list[Coordinate]:
        """Return the continuous parameters of a candidate; the step is the mean distance of points on an axis."""
        found = super().coordinates(candidate)  # lambda
        for (of, name), axis in self.ranges.items():
            if continuous(name, axis):
                value = (candidate.kernel.parameters if of == "kernel" else parameters_of(candidate.learner))[name]
                low, high = float(axis[0]), float(axis[-1])
                step = float(np.log(high / low)) / len(self.sample) ** (1 / len(self.ranges))
                found.append(Coordinate(of, name, float(value), step, low, high))
        return found

    def __contains__(self, candidate: Candidate) -> bool:
        return candidate.lam in self.lams and (candidate.kernel, candidate.learner) in self.sample


def make_designs(
    kernels: Sequence[Kernel | Family], grid: Grid, rows: Partition, learner: Learner, within: float | None = None
) -> list[Axes]:
    """Return the grid of each kernel as ``make_grids`` does, or a sample of it.

    Parameters
    ----------
    grid : str or mapping
        As for ``make_grids``, or ``"sobol:N"`` or ``"random:N"`` for N points of each kernel in the range of the
        automatic grid; in a mapping that is ``"rest"``, and what has values is sampled in their range.
    within : float, optional
        As for ``make_grids``.

    Raises
    ------
    OptionError
        The grid can't be read.
    """
    given, match = _read(grid)
    first = [each.first if isinstance(each, Family) else each for each in kernels]

    def scaled(grids: Sequence[Axes]) -> list[Axes]:
        pairs = zip(kernels, grids, strict=True)
        return [Scales.of(each, axes) if isinstance(each, Family) else axes for each, axes in pairs]

    grids = make_grids(first, given, rows, learner, within)
    return scaled(grids if match is None else [_scattered(axes, match[1], int(match[2]), rows.seed) for axes in grids])


def check_grid(grid: Grid) -> None:
    """Raise an OptionError where a grid can't be read, whatever the kernels are."""
    read_grid(_read(grid)[0])


def _read(grid: Grid) -> tuple[Grid, re.Match[str] | None]:
    """Return a grid without its sample, and the name of that and its number of points, if it has one."""
    given: dict[str, Any] = dict(grid) if isinstance(grid, Mapping) else {"rest": grid}
    design = given.get("rest", "auto")
    match = DESIGN.fullmatch(design) if isinstance(design, str) else None
    if match is None:
        return grid, None
    if not match[2].isdecimal() or not 1 <= int(match[2]) <= MOST:
        raise OptionError(
            f"grid {design!r}: the number of points is a whole number from 1 to {MOST}, as in {match[1]}:64"
        )
    return {**given, "rest": "auto"}, match


def _scattered(axes: Axes, design: str, count: int, seed: int) -> Axes:
    """Sample the range of a grid: log-uniform, or among an axis' values where it isn't continuous."""
    every = {
        **{("kernel", name): axis for name, axis in axes.values.items()},
        **{("learner", name): axis for name, axis in axes.tuning.items()},
    }
    ranges = {key: axis for key, axis in every.items() if axis.size > 1}
    if not ranges:
        return axes
    sample = []
    for point in _uniform(design, count, len(ranges), seed):
        parts: dict[str, dict[str, float]] = {"kernel": {}, "learner": {}}
        for (of, name), axis in every.items():
            parts[of][name] = float(axis[0])
        for ((of, name), axis), u in zip(ranges.items(), point, strict=True):
            value = axis[0] * (axis[-1] / axis[0]) ** u if continuous(name, axis) else axis[int(u * axis.size)]
            parts[of][name] = float(f"{value:.4g}")
        learner = axes.learner
        if isinstance(learner, Tunable):
            learner = learner.with_parameters(**parts["learner"])
        sample.append((axes.kernel.with_parameters(**parts["kernel"]), learner))
    return ScatteredPoints(axes.kernel, {}, axes.lams, axes.learner, {}, ranges=ranges, sample=sample)


def _uniform(design: str, count: int, dimensions: int, seed: int) -> Array:
    """Return points (count, dimensions) in the unit cube."""
    if design == "random":
        return np.random.default_rng(seed).random((count, dimensions))
    from scipy.stats import qmc  # takes a while to import

    powers = max(count - 1, 1).bit_length()  # Sobol's sequence is balanced over a power of 2; the first ones are taken
    points = qmc.Sobol(dimensions, rng=np.random.default_rng(seed)).random_base2(powers)[:count]
    return np.asarray(points, dtype=np.float64)
