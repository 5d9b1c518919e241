"""What a curve or a surface holds, as a table and as a picture."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernsel.report.style import check_plot, drawn, legend_below, lines, save_figure, words

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Line:
    """One line of a curve.

    Parameters
    ----------
    panel, name : str
        Lines of one panel are drawn together.
    x, y, spread : tuple of float
        Points, and their standard deviations over splits; NaN where there are none.
    """

    panel: str
    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    spread: tuple[float, ...]


@dataclass(frozen=True)
class Curve:
    """Lines over one parameter.

    Parameters
    ----------
    lines : tuple of Line
    x_label, y_label : str
    log_x : float
        The base of a logarithmic axis; 0 for a plain one.
    log_y : bool
    """

    lines: tuple[Line, ...]
    x_label: str
    y_label: str
    log_x: float = 0
    log_y: bool = False

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
        panels = list(dict.fromkeys(line.panel for line in self.lines))
        columns = min(len(panels), 3)
        rows = -(-len(panels) // columns)

        def draw(figure: Any) -> None:
            names = list(dict.fromkeys(line.name for line in self.lines))
            looks = dict(zip(names, lines(len(names)), strict=True))
            handles: dict[str, Any] = {}
            all_axes = np.ravel(figure.subplots(rows, columns, squeeze=False))
            for axes, panel in zip(all_axes, panels, strict=False):
                for line in (line for line in self.lines if line.panel == panel):
                    handles[line.name] = self._draw_line(axes, line, looks[line.name])
                self._label(axes, panel)
            for axes in all_axes[len(panels) :]:
                axes.axis("off")
            legend_below(figure, list(handles.values()))

        save_figure(drawn(draw, 1.0 + 3.4 * columns, 0.8 + 2.6 * rows), path)

    def _draw_line(self, axes: Any, line: Line, look: dict[str, Any]) -> Any:
        """Draw a line with its band, and return what stands for it in a legend."""
        x, y, spread = (np.array(values) for values in (line.x, line.y, line.spread))
        (handle,) = axes.plot(x, y, marker="o", markersize=3, label=words(line.name), **look)
        if np.isfinite(spread).all() and not self.log_y:
            axes.fill_between(x, y - spread, y + spread, color=look["color"], alpha=0.15, linewidth=0)
        return handle

    def _label(self, axes: Any, panel: str) -> None:
        axes.set_title(words(panel))
        axes.set_xlabel(self.x_label)
        axes.set_ylabel(self.y_label)
        if self.log_x:
            axes.set_xscale("log", base=self.log_x)
        if self.log_y:
            axes.set_yscale("log")


@dataclass(frozen=True, eq=False)
class Surface:
    """A function of two parameters.

    Parameters
    ----------
    x, y : (p,), (q,) arrays
    z : (p, q) array
    x_label, y_label, z_label : str
    """

    x: Array
    y: Array
    z: Array
    x_label: str
    y_label: str
    z_label: str

    @property
    def frame(self) -> pd.DataFrame:
        """One row for each value of x, one column for each value of y."""
        import pandas as pd

        return pd.DataFrame(
            self.z, index=pd.Index(self.x, name=self.x_label), columns=pd.Index(self.y, name=self.y_label)
        )

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw the contours to a PNG, SVG or PDF, with the least value."""
        check_plot(path)

        def draw(figure: Any) -> None:
            axes = figure.add_subplot()
            contours = axes.contourf(self.x, self.y, self.z.T, levels=20, cmap="viridis")
            figure.colorbar(contours, label=self.z_label)
            i, j = np.unravel_index(np.nanargmin(self.z), self.z.shape)
            look: dict[str, Any] = {"markersize": 12, "markeredgecolor": "black", "clip_on": False}
            (least,) = axes.plot(self.x[i], self.y[j], "w*", label=f"least: {self.z[i, j]:.4g}", **look)
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xlabel(self.x_label)
            axes.set_ylabel(self.y_label)
            legend_below(figure, [least])

        save_figure(drawn(draw, 5.6, 4.4), path)
