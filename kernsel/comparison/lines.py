"""What a curve or a surface holds, as tables, as a document and as a picture.

The JSON documents are contracts, version 1: keys may be added, none changes its name or meaning.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kernsel.comparison.formats import Written
from kernsel.comparison.sheets import Cell, Pages, Sheet
from kernsel.report.style import check_plot, drawn, legend_below, lines, save_figure, words
from kernsel.text import to_json
from kernsel.types import Array

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from kernsel.comparison.comparison import Comparison


VERSION = 1


@dataclass(frozen=True)
class Line:
    """One line of a curve.

    Parameters
    ----------
    panel, name : str
        Lines of one panel are drawn together.
    x, y, spread : tuple of float
        Points, and their standard deviations over splits; NaN where there are none.
    failed : tuple of str or None
        Why a point failed, with the number of splits that it did on; empty where none can.
    """

    panel: str
    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    spread: tuple[float, ...]
    failed: tuple[str | None, ...] = ()


@dataclass(frozen=True, eq=False)
class Curve(Written):
    """Lines over one parameter.

    Parameters
    ----------
    log_x : float
        The base of a logarithmic axis; 0 for a plain one.
    comparison : Comparison or None
        All that was tried, where the points are methods of one.
    """

    lines: tuple[Line, ...]
    x_label: str
    y_label: str
    log_x: float = 0
    log_y: bool = False
    comparison: Comparison | None = None

    @property
    def panels(self) -> dict[str, list[Line]]:
        """The lines of each panel."""
        return {line.panel: [each for each in self.lines if each.panel == line.panel] for line in self.lines}

    @property
    def pages(self) -> Pages:
        """What is printed: a table for each panel, a row for each point, a column for each line."""
        spread = any(math.isfinite(each) for line in self.lines for each in line.spread)
        head = f"{self.y_label} against {self.x_label}" + ", mean and standard deviation over splits" * spread
        return Pages((head,), tuple(self._sheet(panel, lines) for panel, lines in self.panels.items()))

    def _sheet(self, panel: str, lines: list[Line]) -> Sheet:
        rows = [
            (Cell(f"{x:.4g}"), *(Cell(_figure(line.y[i], line.spread[i])) for line in lines))
            for i, x in enumerate(lines[0].x)
        ]
        notes = [
            f"{line.name} at {self.x_label} = {x:.4g} {reason}"
            for line in lines
            for x, reason in zip(line.x, line.failed, strict=False)  # a line that can't fail has no reasons
            if reason is not None
        ]
        head = (self.x_label, *(line.name for line in lines))
        return Sheet(f"{panel}: {self.y_label}", head, tuple(rows), tuple(notes))

    def to_json(self) -> str:
        """Return everything as one JSON document."""
        return to_json(
            {
                "format": "kernsel-curve",
                "version": VERSION,
                "x": self.x_label,
                "y": self.y_label,
                "lines": [
                    {
                        "panel": line.panel,
                        "name": line.name,
                        "x": line.x,
                        "y": line.y,
                        "deviation": line.spread,
                        "failed": line.failed,
                    }
                    for line in self.lines
                ],
                "comparison": None if self.comparison is None else self.comparison.to_dict(),
            }
        )

    @property
    def frame(self) -> pd.DataFrame:
        """One row a point."""
        import pandas as pd

        names = ("panel", "line", self.x_label, self.y_label, "deviation")
        rows = [
            (line.panel, line.name, *point)
            for line in self.lines
            for point in zip(line.x, line.y, line.spread, strict=True)
        ]
        return pd.DataFrame(rows, columns=list(names))

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw the lines to a PNG, SVG or PDF, a panel for each group of them, with bands of a standard deviation."""
        check_plot(path)
        panels = self.panels
        columns = min(len(panels), 3)
        rows = -(-len(panels) // columns)

        def draw(figure: Figure) -> None:
            names = list(dict.fromkeys(line.name for line in self.lines))
            looks = dict(zip(names, lines(len(names)), strict=True))
            handles: dict[str, Any] = {}
            all_axes = np.ravel(figure.subplots(rows, columns, squeeze=False))
            for axes, panel in zip(all_axes, panels, strict=False):
                for line in panels[panel]:
                    handles[line.name] = self._draw_line(axes, line, looks[line.name])
                self._label(axes, panel)
            for axes in all_axes[len(panels) :]:
                axes.axis("off")
            legend_below(figure, list(handles.values()))

        save_figure(drawn(draw, 1.0 + 3.4 * columns, 0.8 + 2.6 * rows), path)

    def _draw_line(self, axes: Axes, line: Line, look: dict[str, Any]) -> Line2D:
        """Draw a line with its band, and return what stands for it in a legend."""
        x, y, spread = (np.array(values) for values in (line.x, line.y, line.spread))
        (handle,) = axes.plot(x, y, marker="o", markersize=3, label=words(line.name), **look)
        if np.isfinite(spread).all() and not self.log_y:
            axes.fill_between(x, y - spread, y + spread, color=look["color"], alpha=0.15, linewidth=0)
        return handle

    def _label(self, axes: Axes, panel: str) -> None:
        axes.set_title(words(panel))
        axes.set_xlabel(self.x_label)
        axes.set_ylabel(self.y_label)
        if self.log_x:
            x = np.concatenate([line.x for line in self.lines])
            if (x > 0).all():
                axes.set_xscale("log", base=self.log_x)
            else:  # 0 has a place left of the others
                axes.set_xscale("symlog", base=self.log_x, linthresh=x[x > 0].min(initial=np.inf))
        if self.log_y:
            axes.set_yscale("log")


def _figure(mean: float, spread: float) -> str:
    if not math.isfinite(mean):
        return "failed"
    return f"{mean:.4g} ± {spread:.2g}" if math.isfinite(spread) else f"{mean:.4g}"


@dataclass(frozen=True, eq=False)
class Surface(Written):
    """A function of two parameters.

    Parameters
    ----------
    x, y : (p,), (q,) arrays
    z : (p, q) array
    """

    x: Array
    y: Array
    z: Array
    x_label: str
    y_label: str
    z_label: str

    @property
    def frame(self) -> pd.DataFrame:
        """One row a point."""
        import pandas as pd

        x, y = np.meshgrid(self.x, self.y, indexing="ij")
        return pd.DataFrame({self.x_label: x.ravel(), self.y_label: y.ravel(), self.z_label: self.z.ravel()})

    @property
    def least(self) -> tuple[int, int]:
        """The places of x and y where it is least."""
        i, j = np.unravel_index(np.nanargmin(self.z), self.z.shape)
        return int(i), int(j)

    @property
    def pages(self) -> Pages:
        """What is printed: a row for each value of x, a column for each of y."""
        names = tuple(f"{self.y_label} = {each:.4g}" for each in self.y)
        rows = [
            (Cell(f"{x:.4g}"), *(Cell(_figure(each, math.nan)) for each in row))
            for x, row in zip(self.x.tolist(), self.z.tolist(), strict=True)
        ]
        i, j = self.least
        note = f"least: {self.z[i, j]:.4g} at {self.x_label} = {self.x[i]:.4g}, {self.y_label} = {self.y[j]:.4g}"
        title = f"{self.z_label}, for each {self.x_label} and {self.y_label}"
        return Pages((self.z_label,), (Sheet(title, (self.x_label, *names), tuple(rows), (note,)),))

    def to_json(self) -> str:
        """Return everything as one JSON document."""
        return to_json(
            {
                "format": "kernsel-surface",
                "version": VERSION,
                **{name: getattr(self, f"{name}_label") for name in "xyz"},
                "points": {"x": self.x.tolist(), "y": self.y.tolist(), "z": self.z.tolist()},
            }
        )

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw the contours to a PNG, SVG or PDF, with the least value."""
        check_plot(path)

        def draw(figure: Figure) -> None:
            axes = figure.add_subplot()
            contours = axes.contourf(self.x, self.y, self.z.T, levels=20, cmap="viridis")
            figure.colorbar(contours, label=self.z_label)
            i, j = self.least
            look: dict[str, Any] = {"markersize": 12, "markeredgecolor": "black", "clip_on": False}
            (least,) = axes.plot(self.x[i], self.y[j], "w*", label=f"least: {self.z[i, j]:.4g}", **look)
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xlabel(self.x_label)
            axes.set_ylabel(self.y_label)
            legend_below(figure, [least])

        save_figure(drawn(draw, 5.6, 4.4), path)
