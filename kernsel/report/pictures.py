"""Pictures of a selection by name, and those of relevances and of kernel stability: the extra ``plot``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kernsel.data import Dataset
from kernsel.errors import OptionError
from kernsel.parts import read_kernel, read_learner, read_rank, read_search
from kernsel.report import predictions
from kernsel.report.style import COLOURS, GREY, INK, check_plot, drawn, legend_below, save_figure, words
from kernsel.report.surface import draw_criterion
from kernsel.search.choice import ONE_SE
from kernsel.search.walk import Search
from kernsel.selection.kernel_source import AUTO, kernels_given
from kernsel.selection.observed import Observed
from kernsel.selection.plan import Plan
from kernsel.selection.result import Selection
from kernsel.text import listing, meant

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from kernsel.evaluation.perturbation import Stability
    from kernsel.evaluation.relevance_study import RelevanceStudy

BOXES = 40
"""The most relevant features get a box each; more could not be read."""

LISTED_ROWS = 15
"""Rows that move the kernel most, each with its number."""


SQUARE = (5.4, 5.6)
"""Inches of a picture whose axes go from 0 to 1, with its legend below."""


class Known(NamedTuple):
    """What decides which pictures there are.

    Parameters
    ----------
    classes : bool
        Whether the task is classification.
    probabilities : bool
        Whether there are some.
    plane : bool
        Whether there are two numeric features and no others.
    learnt : bool
        Whether relevances are learnt.
    ranks : bool
        Whether candidates are scored at several ranks, or on growing numbers of rows.
    """

    classes: bool
    probabilities: bool
    plane: bool
    learnt: bool
    ranks: bool


class Picture(NamedTuple):
    """A picture of a selection.

    Parameters
    ----------
    draw : callable
        Takes a figure of matplotlib and a selection.
    needs : str
        What it is for; empty if it is for every selection.
    fits : callable
        Tells by what is known whether there is such a picture.
    says : str
        How to read it.
    size : tuple of float
        Width and height, in inches.
    """

    title: str
    draw: Callable[[Figure, Selection], None]
    needs: str
    fits: Callable[[Known], bool]
    says: str
    size: tuple[float, float] = (7.0, 4.8)


def draw_ranks(figure: Figure, selection: Selection) -> None:
    """Draw the scores of candidates over the rank that they were left at, or the climb over numbers of rows."""
    climb = selection.data.get("climb")
    axes = figure.add_subplot()
    if climb:
        rows, losses = [step["rows"] for step in climb], [step["loss"] for step in climb]
        axes.plot(rows, losses, "o-", color=COLOURS[0])
        axes.set(xscale="log", xlabel="rows that were fitted", ylabel="mean loss on rows outside (lower is better)")
        axes.set_xticks(rows, [f"{each}" for each in rows])
        axes.minorticks_off()
        return
    scored = [c for c in selection.candidates if c.failed is None]
    force = selection.data["rank"] or selection.data["rows"]
    ranks = np.array([force if c.rank is None else c.rank for c in scored])
    scores = np.array([c.score for c in scored])
    steps = np.unique(ranks)
    place = np.searchsorted(steps, ranks)
    spread = np.random.default_rng(0).uniform(-0.18, 0.18, place.size)  # so that points don't hide each other
    cloud = axes.scatter(place + spread, scores, s=14, color=COLOURS[0], alpha=0.5, linewidths=0, label="candidates")
    least = [scores[ranks == step].min() for step in steps]
    (lowest,) = axes.plot(range(len(steps)), least, "D-", color=INK, markersize=5, label="the lowest at each rank")
    (choice,) = axes.plot(
        np.searchsorted(steps, force), selection.best.score, "*", color="white", markeredgecolor=INK, markersize=15,
        label="the choice",
    )  # fmt: skip
    whole = "the whole kernel" if force == selection.data["rows"] else f"{force} (in force)"
    axes.set_xticks(range(len(steps)), [*(str(step) for step in steps[:-1]), whole])
    axes.set_xlabel("rank of the kernel at which a candidate was scored last")
    axes.set_ylabel(f"{selection.criterion} (lower is better)")
    if min(least) > 0:
        axes.set_yscale("log")
    legend_below(figure, [cloud, lowest, choice])


def draw_relevances(figure: Figure, selection: Selection) -> None:
    """Draw the relevance of each feature, the most relevant on top."""
    relevances = selection.relevances
    assert relevances is not None
    shown = relevances.sort_values(ascending=False, kind="stable").head(BOXES)
    places = range(len(shown), 0, -1)
    axes = figure.add_subplot()
    axes.hlines(list(places), 0, shown, color=GREY, linewidth=1.0)
    axes.plot(shown, list(places), "D", markersize=4.5, color=COLOURS[0], clip_on=False)
    axes.set_yticks(list(places), list(map(words, shown.index)))
    shares = selection.data["relevances"].get("shares", False)
    axes.set_xlabel(
        "share of the largest relevance, weighted mean of the kernels (0: none)"
        if shares
        else "relevance of a standardised feature (0: none)"
    )
    left = len(relevances) - len(shown)
    axes.set_title(f"the {len(shown)} largest of {len(relevances)} relevances" if left else "", fontsize="medium")
    axes.set_xlim(left=0)
    axes.margins(y=0.02)


def _of_classes(known: Known) -> bool:
    return known.classes


PICTURES: Mapping[str, Picture] = {
    "criterion": Picture(
        "The criterion over the grid",
        draw_criterion,
        "",
        lambda known: True,
        "Each point has the colour of the nearest candidate; brighter is better. Within the line scores can't be told "
        "from the lowest.",
    ),
    "heldout": Picture(
        "Held-out predictions",
        predictions.draw_heldout,
        "",
        lambda known: True,
        "Each row is predicted by a fit that has not seen its fold.",
        (6.2, 5.2),
    ),
    "residuals": Picture(
        "Residuals",
        predictions.draw_residuals,
        "a regression",
        lambda known: not known.classes,
        "What held-out predictions miss should look alike everywhere: a bend or a fan is something left to learn.",
    ),
    "roc": Picture(
        "ROC curve",
        predictions.draw_roc,
        "classes",
        _of_classes,
        "Of held-out outputs; the area under the curve is the chance that a row of the class has a greater output than "
        "another row.",
        SQUARE,
    ),
    "precision-recall": Picture(
        "Precision and recall",
        predictions.draw_precision_recall,
        "classes",
        _of_classes,
        "Of held-out outputs, for every threshold.",
        SQUARE,
    ),
    "calibration": Picture(
        "Calibration",
        predictions.draw_calibration,
        "classes with probabilities",
        lambda known: known.classes and known.probabilities,
        "On the diagonal a class is there as often as its probability says.",
        SQUARE,
    ),
    "rank": Picture(
        "Scores along the search",
        draw_ranks,
        "a search at several ranks, or on growing numbers of rows",
        lambda known: known.ranks,
        "What is worse at a low rank is left behind there.",
    ),
    "relevances": Picture(
        "Relevances",
        draw_relevances,
        "a choice with a relevance for each feature",
        lambda known: known.learnt,
        "The more relevant a feature, the more a difference in it counts; 0 is no influence.",
    ),
    "boundary": Picture(
        "Decision boundary",
        predictions.draw_boundary,
        "classes by two numeric features",
        lambda known: known.classes and known.plane,
        "Shades are predictions of the model for all rows, marks are what was observed.",
    ),
}
"""The pictures of a selection."""


def plot(selection: Selection, name: str, path: str | os.PathLike[str] | None = None) -> Figure:
    """Draw a picture of a selection.

    Parameters
    ----------
    selection : Selection
    name : {"criterion", "heldout", "residuals", "roc", "precision-recall", "calibration", "rank", "relevances", \
"boundary"}
        The criterion over width and lambda; held-out predictions, what they miss, and their curves; the search along
        ranks; relevances of features; the decision boundary of two features.
    path : str or path, optional
        Where to write it: a PNG, SVG or PDF, by the ending of the name.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    OptionError
        There is no such picture of this selection, matplotlib isn't there, or the file can't be written.
    """
    check_plot(path if path is not None else "picture.png")
    check_pictures([name], known_of(selection))
    figure = figure_of(selection, name)
    if path is not None:
        save_figure(figure, path)
    return figure


def figure_of(selection: Selection, name: str) -> Figure:
    """Return a picture that there is of a selection as a figure of matplotlib."""
    width, height = PICTURES[name].size
    if name == "relevances" and selection.relevances is not None:
        height = 1.4 + 0.24 * min(len(selection.relevances), BOXES)
    return drawn(lambda figure: PICTURES[name].draw(figure, selection), width, height)


def names_for(known: Known) -> list[str]:
    """Return the names of the pictures that there are."""
    return [name for name, picture in PICTURES.items() if picture.fits(known)]


def check_pictures(names: Iterable[str], known: Known) -> None:
    """Raise OptionError for the first picture that there isn't, with those that there are."""
    there = names_for(known)
    for name in names:
        if name not in PICTURES:
            raise OptionError(f"no picture is called {name!r}{meant(name, PICTURES)} (there are {listing(there)})")
        if name not in there:
            raise OptionError(f"picture {name!r} is for {PICTURES[name].needs}; here there are {listing(there)}")


def known_of(selection: Selection) -> Known:
    """Return what decides which pictures there are of a selection."""
    return Known(
        selection.data["task"] == "classification",
        selection.probabilities is not None,
        predictions.observed(selection).features is not None,
        selection.relevances is not None,
        bool(selection.data.get("climb")) or any(c.rank is not None for c in selection.candidates),
    )


def known_before(dataset: Dataset, plan: Plan) -> Known:
    """Return what decides which pictures there may be of a selection, before it begins."""
    given = kernels_given(plan)
    learner = None if plan.learner == "auto" else read_learner(plan.learner, dataset.task)
    rank = read_rank(plan.rank, dataset.n, plan.landmarks, learner)
    search: Search = read_search(plan.search, dataset.n, dataset.k, rank, plan.rule == ONE_SE, learner)
    return Known(
        dataset.task == "classification",
        dataset.task == "classification",
        Observed.of(dataset).features is not None,
        any(kernel == AUTO or bool(read_kernel(kernel).unlearnt) for kernel in given),
        hasattr(search, "ranks") or dataset.n > 2000,
    )


def plot_relevances(study: RelevanceStudy, path: str | os.PathLike[str]) -> None:
    """Draw a box of each feature's relevances over resamples, and a mark for that from all rows.

    Parameters
    ----------
    path : str or path
        A PNG, SVG or PDF, by the ending of the name.

    Raises
    ------
    OptionError
        Matplotlib isn't there, the format is unknown, or the file can't be written.
    """
    check_plot(path)
    table = study.table.head(BOXES)
    places = list(range(len(table), 0, -1))  # the most relevant one on top

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        if len(study.samples):
            samples = [study.samples[name] for name in table.index]
            axes.boxplot(samples, positions=places, orientation="horizontal", widths=0.6, manage_ticks=False)
        axes.plot(table["relevance"], places, "D", markersize=4, color=COLOURS[0], label="from all rows")
        axes.set_yticks(places, list(map(words, table.index)))
        spread = f", and its spread over {len(study.samples)} resamples" * (len(study.samples) > 0)
        axes.set_xlabel(f"relevance{spread}")
        axes.set_title(f"{study.learned.kernel.name} by {study.learned.criterion}")
        axes.margins(y=0.02)
        axes.legend(loc="lower right")

    save_figure(drawn(draw, height=1.2 + 0.26 * len(table)), path)


def plot_perturbations(stability: Stability, path: str | os.PathLike[str], rows: Iterable[int] | None = None) -> None:
    """Draw how far each row moves the kernel matrix, and which rows move it most.

    Parameters
    ----------
    stability : Stability
        From :func:`kernsel.stability`.
    path : str or path
        A PNG, SVG or PDF, by the ending of the name.
    rows : iterable of int, optional
        The numbers of the rows; by default from 1.

    Raises
    ------
    OptionError
        Matplotlib isn't there, the format is unknown, or the file can't be written.
    """
    check_plot(path)
    moved, first = stability.perturbations, stability.influential(LISTED_ROWS)
    numbers = np.arange(1, stability.n + 1) if rows is None else np.array(list(rows))
    norm = f"{stability.norm} norm of what it changes in K"

    def draw(figure: Figure) -> None:
        every, most = figure.subplots(1, 2, width_ratios=[3, 2])
        every.plot(np.arange(1, stability.n + 1), np.sort(moved)[::-1], color=COLOURS[0], linewidth=1.8)
        every.set(xlabel="rows, those that move it most first", ylabel=norm)
        every.set_ylim(bottom=0)
        places = list(range(len(first), 0, -1))
        most.hlines(places, 0, moved[first], color=GREY, linewidth=1.0)
        most.plot(moved[first], places, "D", markersize=4.5, color=COLOURS[0])
        most.set_yticks(places, [f"row {number}" for number in numbers[first]])
        most.set_xlim(left=0)
        most.set_xlabel("that norm")

    save_figure(drawn(draw, width=8.0), path)
