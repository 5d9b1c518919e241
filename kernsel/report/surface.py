"""The criterion over the width of the kernel and lambda, or over lambda alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kernsel.kernels import short
from kernsel.report.style import COLOURS, DASHES, GREY, INK, legend_below, words
from kernsel.search.candidate import Candidate
from kernsel.selection.result import Selection
from kernsel.types import Array

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


FINE = 480
"""Points of the picture along each axis; each has the colour of the nearest candidate."""

SHOWN = 0.75
"""Scores above this quantile have one colour: far from the minimum they grow without bound."""

CURVES = 5
"""Kernels whose curves have a name; more could not be told apart."""


def draw_criterion(figure: Figure, selection: Selection) -> None:
    """Draw the criterion over width and lambda, with the choice and what is known of its neighbours.

    Every point has the colour of the candidate nearest to it in logarithms, so that a grid, a grid with a refinement
    and scattered points are one picture. A kernel without a single width has a curve over lambda.
    """
    width = selection.best.kernel.width
    plane = _plane(selection, width) if width else []
    if len({c.width for c in plane}) > 1 and len({c.lam for c in plane}) > 1:
        _draw_plane(figure, selection, str(width), plane)
    else:
        _draw_curves(figure, selection)


def _plane(selection: Selection, width: str | None) -> list[Candidate]:
    """Return the candidates that differ from the choice in width and lambda alone."""

    def others(candidate: Candidate) -> tuple[object, ...]:
        kept = {name: value for name, value in candidate.kernel.parameters.items() if name != width}
        return type(candidate.kernel), candidate.kernel.name, kept, candidate.tuned

    return [c for c in selection.candidates if others(c) == others(selection.best) and c.width > 0]


def _draw_plane(figure: Figure, selection: Selection, width: str, plane: Sequence[Candidate]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from scipy.spatial import cKDTree

    best, lowest = selection.best, selection.minimum
    steps = np.array([_step([c.lam for c in plane]), _step([c.width for c in plane])])
    places = np.log([[c.lam, c.width] for c in plane]) / steps
    low, high = places.min(axis=0) - 0.5, places.max(axis=0) + 0.5
    axis_x, axis_y = (np.linspace(a, b, FINE) for a, b in zip(low, high, strict=True))
    grid = np.stack(np.meshgrid(axis_x, axis_y), axis=-1)
    nearest = cKDTree(places).query(grid)[1]
    x, y = np.exp(axis_x * steps[0]), np.exp(axis_y * steps[1])

    axes = figure.add_subplot()
    values = np.array([_value(c) for c in plane])
    finite = values[np.isfinite(values)]
    ceiling = float(np.quantile(finite, SHOWN))
    image = axes.pcolormesh(
        x,
        y,
        np.ma.masked_invalid(values)[nearest],
        cmap="cividis_r",
        vmin=finite.min(),
        vmax=ceiling if ceiling > finite.min() else None,
        rasterized=True,
    )
    bar = figure.colorbar(image, ax=axes, extend="max", pad=0.02)
    bar.set_label(f"{selection.criterion} (lower is better)")
    handles: list[Artist] = []

    def shade(flags: Array, hatch: str, label: str) -> None:
        if flags.any():
            axes.contourf(x, y, flags[nearest], levels=[0.5, 1.5], colors="none", hatches=[hatch])
            handles.append(Patch(facecolor="none", edgecolor=INK, hatch=hatch, label=label))

    shade(np.array([is_unreliable(c) for c in plane], float), "////", "approximation not to be trusted")
    shade(np.array([c.rank is not None for c in plane], float), "..", "left behind at a lower rank")
    shade(np.array([c.failed is not None for c in plane], float), "xxx", "failed")
    equal = np.array([_is_equal(selection, c) for c in plane], float)
    if equal.any():
        for line, colour in ((3.2, "white"), (1.4, "black")):
            axes.contour(x, y, equal[nearest], levels=[0.5], colors=colour, linewidths=line)
        inside = [c for c in plane if _is_equal(selection, c)]
        look: dict[str, Any] = {"marker": "o", "markersize": 4, "color": "black", "markeredgecolor": "white"}
        axes.plot([c.lam for c in inside], [c.width for c in inside], linestyle="none", **look)
        look |= {"color": INK, "linewidth": 1.4}
        handles.append(Line2D([], [], label="can't be told from the lowest", **look))
    handles += _draw_begun(axes, selection, width, plane, steps)
    marks = [(best, "*", 17, "the choice")]
    if lowest is not None and lowest.key != best.key and lowest.key in {c.key for c in plane}:
        marks.append((lowest, "D", 8, "the lowest score"))
    for candidate, marker, size_, label in marks:
        look = {"marker": marker, "color": "white", "markeredgecolor": "black", "linestyle": "none"}
        axes.plot(candidate.lam, candidate.width, markersize=size_, **look)
        handles.append(Line2D([], [], markersize=min(size_, 11), label=label, **look))
    axes.set(xscale="log", yscale="log", xlim=(x[0], x[-1]), ylim=(y[0], y[-1]))
    axes.set_xlabel("lambda (regularisation, without a unit)")
    axes.set_ylabel(f"{width} (width, on the scale of the encoded features)")
    axes.set_title(f"{selection.learner} on {best.kernel.name}{_elsewhere(selection, plane)}")
    legend_below(figure, handles)


def _draw_begun(axes: Axes, selection: Selection, width: str, plane: Sequence[Candidate], steps: Array) -> list[Any]:
    """Draw the grid as it began, where candidates lie outside; return what the legend shows of it."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle

    begun = _begun(selection, width)
    if begun is None:
        return []
    (left, right), (bottom, top) = begun
    if all(left <= c.lam <= right and bottom <= c.width <= top for c in plane):
        return []
    half = np.exp(steps / 2)
    corner = (left / half[0], bottom / half[1])
    size = (right * half[0] - corner[0], top * half[1] - corner[1])
    for line, colour, dash in ((3.0, "white", "-"), (1.4, "black", "--")):
        axes.add_patch(Rectangle(corner, *size, fill=False, edgecolor=colour, linewidth=line, linestyle=dash))
    return [Line2D([], [], color=INK, linewidth=1.4, linestyle="--", label="grid as it began")]


def _draw_curves(figure: Figure, selection: Selection) -> None:
    best = selection.best
    scored = [c for c in selection.candidates if c.compares]
    curves: dict[Any, list[Candidate]] = {}
    for candidate in [best, *scored]:
        curves.setdefault((candidate.kernel, candidate.learner), []).append(candidate)
    first = sorted(curves, key=lambda key: (key != (best.kernel, best.learner), min(c.order for c in curves[key])))
    axes = figure.add_subplot()
    handles: list[Artist] = []
    for number, key in reversed(list(enumerate(first))):
        members = sorted({c.key: c for c in curves[key]}.values(), key=lambda c: c.lam)
        lams, values = [c.lam for c in members], [c.value for c in members]
        named = number < CURVES
        look: dict[str, Any] = {"color": GREY, "linewidth": 0.6}
        if named:
            look = {"color": COLOURS[number], "linestyle": DASHES[number % len(DASHES)]}
            look |= {"linewidth": 2.2 if number == 0 else 1.3}
        (line,) = axes.plot(lams, values, marker="o" if named else "", markersize=3.5, **look)
        if named:
            line.set_label(words(short(key[0])))
            handles.insert(0, line)
    if len(first) > CURVES:
        (others,) = axes.plot([], [], color=GREY, linewidth=0.6, label=f"{len(first) - CURVES} other kernels")
        handles.append(others)
    equal = [c for c in scored if _is_equal(selection, c)]
    if equal:
        look = {"marker": "o", "markersize": 8, "markerfacecolor": "none", "color": INK, "linestyle": "none"}
        (told,) = axes.plot([c.lam for c in equal], [c.value for c in equal], markeredgewidth=0.8, **look)
        told.set_label("can't be told from the lowest")
        handles.append(told)
    look = {"marker": "*", "markersize": 15, "color": "white", "markeredgecolor": INK, "linestyle": "none", "zorder": 5}
    handles += axes.plot(best.lam, best.value, label="the choice", **look)
    lowest = selection.minimum
    if lowest is not None and lowest.key != best.key:
        look |= {"marker": "D", "markersize": 7}
        handles += axes.plot(lowest.lam, lowest.value, label="the lowest score", **look)
    scores = np.array([c.value for c in scored])
    floor, ceiling = float(scores.min()), max(float(np.quantile(scores, SHOWN)), best.value)
    if ceiling > floor:
        axes.set_ylim(floor - 0.08 * (ceiling - floor), ceiling + 0.05 * (ceiling - floor))
    axes.set(xscale="log", xlabel="lambda (regularisation, without a unit)")
    axes.set_ylabel(f"{selection.criterion} (lower is better)")
    axes.set_title(f"{selection.learner} on each kernel")
    legend_below(figure, handles, columns=1)


def is_unreliable(candidate: Candidate) -> bool:
    """Tell whether an approximation could not be trusted: another one scored, or folds were refitted."""
    return candidate.scored_by is not None or candidate.refitted > 0


def _is_equal(selection: Selection, candidate: Candidate) -> bool:
    return bool(selection.comparison is not None and selection.comparison.pair(candidate).equivalent)


def _value(candidate: Candidate) -> float:
    return candidate.value if candidate.failed is None else np.nan


def _step(values: Sequence[float]) -> float:
    """Return the median step of the logarithms of distinct values."""
    return float(np.median(np.diff(np.log(np.unique(values)))))


def _begun(selection: Selection, width: str) -> tuple[Any, Any] | None:
    """Return the ranges of lambda and width when the search began, if they are known."""
    name = selection.best.kernel.name
    for ranges in selection.data.get("grids", ()):
        if ranges["kernel"].split("(")[0] == name and width in ranges:
            return ranges["lambda"], ranges[width]
    return None


def _elsewhere(selection: Selection, plane: Sequence[Candidate]) -> str:
    """Say which candidates are not in the plane."""
    left = len(selection.candidates) - len(plane)
    return f" ({left} candidates lie elsewhere)" if left else ""
