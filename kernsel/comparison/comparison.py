"""What a comparison hands back, with its tables and pictures."""

from __future__ import annotations

import os
from dataclasses import dataclass

from kernsel.comparison.formats import as_text, save
from kernsel.comparison.pictures import plot_choices, plot_differences
from kernsel.comparison.result import Outcome


@dataclass(frozen=True, eq=False)
class Comparison(Outcome):
    """The outcome of :func:`kernsel.compare`: see ``Outcome`` for what it holds."""

    def summary(self) -> str:
        """Return the tables for people."""
        return as_text(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tables to a file: text, Markdown, CSV, LaTeX, HTML or JSON, by the ending of its name."""
        save(self, path)

    def plot_choices(self, parameter: str, path: str | os.PathLike[str]) -> None:
        """Draw boxes of the values of a parameter, such as ``tau``, that methods chose over the splits."""
        plot_choices(self, parameter, path)

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw the critical-difference diagram of each case to a PNG, SVG or PDF."""
        plot_differences(self, path)
