"""Pictures of comparisons: critical-difference diagrams, curves, and boxes of what was chosen, by matplotlib."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kernsel.errors import OptionError
from kernsel.evaluation.significance import groups_alike
from kernsel.report.style import COLOURS, INK, check_plot, drawn, save_figure, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from kernsel.comparison.result import Outcome
    from kernsel.evaluation.significance import Ranks

ROW = 0.28
"""The height of a line of a diagram in inches."""


def plot_differences(comparison: Outcome, path: str | os.PathLike[str]) -> None:
    """Draw the critical-difference diagram of each case (Demsar 2006, Figure 1).

    Methods stand at their mean ranks; bars join groups that are not significantly apart.

    Parameters
    ----------
    path : str or path
        A PNG, SVG or PDF, by the ending of the name.

    Raises
    ------
    OptionError
        There are no ranks, for there is one table only; matplotlib isn't there, or the file can't be written.
    """
    check_plot(path)
    found = [(case, ranked) for case in comparison.cases if (ranked := comparison.ranks(case)) is not None]
    if not found:
        raise OptionError("a critical-difference diagram needs two tables or more, and two methods that succeed on all")
    most = max(len(ranked) for _, (_, ranked) in found)
    bars = max(len(groups_alike(each)) for _, (each, _) in found)

    def draw(figure: Figure) -> None:
        all_axes = np.ravel(figure.subplots(len(found), 1, squeeze=False))
        for axes, (case, (ranks, methods)) in zip(all_axes, found, strict=True):
            _draw_differences(axes, ranks, [words(comparison.names[j]) for j in methods])
            axes.set_title(case)

    save_figure(drawn(draw, height=len(found) * ROW * (3.5 + bars + (most + 1) // 2)), path)


def _draw_differences(axes: Axes, ranks: Ranks, names: Sequence[str]) -> None:
    k = len(names)
    groups = groups_alike(ranks)
    order = np.argsort(ranks.mean_ranks, kind="stable")
    half = (k + 1) // 2
    ink: dict[str, Any] = {"color": INK, "linewidth": 1.0, "clip_on": False}
    axes.plot([1, k], [0, 0], **ink)
    for tick in range(1, k + 1):
        axes.plot([tick, tick], [0, 0.25], **ink)
        axes.text(tick, 0.4, str(tick), ha="center", va="bottom", fontsize=8)
    top = 1.7
    axes.plot([1, 1 + ranks.critical_difference], [top, top], **{**ink, "linewidth": 2.0})
    label = f"critical difference {ranks.critical_difference:.2f} ({ranks.level:g})"
    axes.text(1, top + 0.15, label, ha="left", va="bottom", fontsize=8)
    for place, group in enumerate(groups):
        ends = ranks.mean_ranks[[group[0], group[-1]]] + np.array([-0.03, 0.03])
        axes.plot(ends, [-0.45 - 0.5 * place] * 2, color=COLOURS[0], linewidth=3.5, solid_capstyle="butt")
    below = -0.6 - 0.5 * len(groups)
    for place, j in enumerate(order.tolist()):
        left = place < half
        depth = below - 0.8 * (place if left else k - 1 - place)
        end, side = (1 - 0.04 * k, "right") if left else (k + 0.04 * k, "left")
        rank = ranks.mean_ranks[j]
        axes.plot([rank, rank, end], [0, depth, depth], **ink)
        text = f"{names[j]} {rank:.2f}" if left else f"{rank:.2f} {names[j]}"
        axes.text(end + (-0.02 if left else 0.02) * k, depth, text, ha=side, va="center", fontsize=9)
    axes.set_xlim(1 - 0.35 * k, k + 0.35 * k)
    axes.set_ylim(below - 0.8 * half, top + 1.1)
    axes.axis("off")


def plot_choices(comparison: Outcome, parameter: str, path: str | os.PathLike[str]) -> None:
    """Draw boxes of the values of a parameter that each method chose over the splits, table by table.

    Parameters
    ----------
    parameter : str
        Such as ``"tau"`` or ``"lambda"``.
    path : str or path
        A PNG, SVG or PDF, by the ending of the name.

    Raises
    ------
    OptionError
        No method has such a parameter; matplotlib isn't there, or the file can't be written.
    """
    check_plot(path)
    boxes = [
        [
            (name, values[parameter])
            for j, name in enumerate(comparison.names)
            if parameter in (values := each.chosen(j))
        ]
        for each in comparison.results
    ]
    if not any(boxes):
        known = sorted(
            {name for each in comparison.results for j in range(len(comparison.names)) for name in each.chosen(j)}
        )
        raise OptionError(f"no method chose {parameter!r}; there are {', '.join(known) or 'no parameters'}")
    shown = [(result, each) for result, each in zip(comparison.results, boxes, strict=True) if each]
    heights = [0.4 + ROW * len(each) for _, each in shown]

    def draw(figure: Figure) -> None:
        all_axes = np.ravel(figure.subplots(len(shown), 1, squeeze=False, sharex=True, height_ratios=heights))
        for axes, (result, each) in zip(all_axes, shown, strict=True):
            places = list(range(len(each), 0, -1))
            values = [values for _, values in each]
            median = {"color": COLOURS[0], "linewidth": 2.0}
            axes.boxplot(values, positions=places, orientation="horizontal", widths=0.6, medianprops=median)
            axes.set_yticks(places, [words(name) for name, _ in each])
            axes.set_title(words(" ".join(filter(None, [result.table, result.case]))))
            if min(map(min, values)) > 0:
                axes.set_xscale("log")
        all_axes[-1].set_xlabel(f"{parameter}, over {comparison.splits} splits")

    save_figure(drawn(draw, height=1.0 + sum(heights)), path)
