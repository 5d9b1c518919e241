"""What a curve or a surface holds, as a table and as a picture."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kernsel.comparison.pictures import blank_figure
from kernsel.report.style import check_plot, save_figure

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
        figure = blank_figure(0.5 + 2.6 * rows, 1.0 + 3.4 * columns)
        names = list(dict.fromkeys(line.name for line in self.lines))
        all_axes = np.ravel(figure.subplots(rows, columns, squeeze=False))
        for axes, panel in zip(all_axes, panels, strict=False):
            for line in (line for line in self.lines if line.panel == panel):
                color = f"C{names.index(line.name) % 10}"
                x, y, spread = (np.array(values) for values in (line.x, line.y, line.spread))
                axes.plot(x, y, "o-", markersize=3, color=color, label=line.name)
                if np.isfinite(spread).all() and not self.log_y:
                    axes.fill_between(x, y - spread, y + spread, color=color, alpha=0.15, linewidth=0)
            axes.set_title(panel, loc="left", fontsize=10)
            axes.set_xlabel(self.x_label)
            axes.set_ylabel(self.y_label)
            if self.log_x:
                axes.set_xscale("log", base=self.log_x)
            if self.log_y:
                axes.set_yscale("log")
        for axes in all_axes[len(panels) :]:
            axes.axis("off")
        all_axes[0].legend(frameon=False, fontsize=8)
        save_figure(figure, path)


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
        figure = blank_figure(4.2, 5.6)
        axes = figure.add_subplot()
        drawn = axes.contourf(self.x, self.y, self.z.T, levels=20, cmap="viridis")
        figure.colorbar(drawn, label=self.z_label)
        i, j = np.unravel_index(np.nanargmin(self.z), self.z.shape)
        axes.plot(self.x[i], self.y[j], "w*", markersize=12, label=f"least: {self.z[i, j]:.4g}")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(self.x_label)
        axes.set_ylabel(self.y_label)
        axes.legend(loc="upper right")
        save_figure(figure, path)
