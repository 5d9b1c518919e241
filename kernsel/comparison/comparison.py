"""What a comparison hands back, with its tables and pictures."""

from __future__ import annotations

import os
from dataclasses import dataclass

from kernsel.comparison.formats import Written
from kernsel.comparison.pictures import plot_choices, plot_differences
from kernsel.comparison.result import Outcome
from kernsel.comparison.sheets import Pages, pages_of


@dataclass(frozen=True, eq=False)
class Comparison(Outcome, Written):
    """The outcome of :func:`kernsel.compare`: see ``Outcome`` for what it holds."""

    @property
    def pages(self) -> Pages:
        """What is printed, as tables of texts."""
        return pages_of(self)

    def plot_choices(self, parameter: str, path: str | os.PathLike[str]) -> None:
        """Draw boxes of the values of a parameter, such as ``tau``, that methods chose over the splits."""
        plot_choices(self, parameter, path)

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw the critical-difference diagram of each case to a PNG, SVG or PDF."""
        plot_differences(self, path)
