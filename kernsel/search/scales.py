"""A kernel whose relevances were learnt, at several common factors: they are right but for the scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kernsel.kernels import Kernel
from kernsel.search.axes import Axes
from kernsel.search.candidate import Candidate, Key

NEAR = 16.0
"""Lambda within this factor of the learnt one are scored first."""


@dataclass(frozen=True)
class Family:
    """A kernel at several scales.

    Parameters
    ----------
    kernels : tuple of Kernel
        By their common factor, the learnt one in the middle.
    lam : float or None
        Lambda that was learnt with it, for a selection of the same loss; None if nothing is known.
    """

    kernels: tuple[Kernel, ...]
    lam: float | None

    @property
    def first(self) -> Kernel:
        """The kernel as it was learnt."""
        return self.kernels[len(self.kernels) // 2]


@dataclass
class Scales(Axes):
    """The grid of a family: the learnt kernel, with lambda near the learnt one, then what lies around the best."""

    family: Family = field(kw_only=True)

    @classmethod
    def of(cls, family: Family, axes: Axes) -> Scales:
        """Make it from the grid of the learnt kernel."""
        return cls(axes.kernel, {}, axes.lams, axes.learner, axes.tuning, family=family)

    def points(self, near: Candidate | None = None) -> list[Key]:
        """Return what is to be scored first, or the surroundings of a candidate with every lambda."""
        if near is not None:
            return [
                (k, learner, lam) for k in self._beside(near) for learner in self.learners(near) for lam in self._all
            ]
        lam = self.family.lam
        lams = [each for each in self._all if lam is None or abs(math.log(each / lam)) <= math.log(NEAR)]
        return [(self.family.first, learner, each) for learner in self.learners() for each in lams or self._all]

    def neighbours(self, candidate: Candidate) -> list[Key]:
        """Return the next scales and the next lambda on both sides."""
        place = self._all.index(candidate.lam)
        lams = self._all[max(place - 1, 0) : place + 2]
        return [(k, m, lam) for k in self._beside(candidate) for m in self.learners(candidate, 1) for lam in lams]

    @property
    def _all(self) -> list[float]:
        lams: list[float] = self.lams.tolist()
        return lams

    def _beside(self, candidate: Candidate) -> Sequence[Kernel]:
        place = self.family.kernels.index(candidate.kernel)
        return self.family.kernels[max(place - 1, 0) : place + 2]

    def __contains__(self, candidate: Any) -> bool:
        return (
            candidate.kernel in self.family.kernels
            and candidate.lam in self.lams
            and candidate.learner in set(self.learners())
        )
