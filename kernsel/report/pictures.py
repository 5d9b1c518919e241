"""Pictures, by matplotlib: the extra ``plot``."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernsel.data.files import atomic_write
from kernsel.errors import OptionError

if TYPE_CHECKING:
    from kernsel.evaluation.relevance_study import RelevanceStudy

FORMATS = (".png", ".svg", ".pdf")
BOXES = 40
"""The most relevant features get a box each; more could not be read."""


def check_plot(path: str | os.PathLike[str]) -> None:
    """Raise OptionError where no picture can be drawn: the format is unknown, or matplotlib is missing."""
    if Path(path).suffix.lower() not in FORMATS:
        raise OptionError(f"can't draw {path}: its name must end with one of {', '.join(FORMATS)}")
    try:
        import matplotlib  # noqa: F401  # to know it now, not after the work
    except ImportError as error:
        raise OptionError("pictures need matplotlib: pip install 'kernsel[plot]'") from error


def plot_relevances(study: RelevanceStudy, path: str | os.PathLike[str]) -> None:
    """Draw a box of each feature's relevances over resamples, and a mark for that from all rows.

    Parameters
    ----------
    study : RelevanceStudy
    path : str or path
        A PNG, SVG or PDF, by the ending of the name.

    Raises
    ------
    OptionError
        Matplotlib isn't there, the format is unknown, or the file can't be written.
    """
    check_plot(path)
    from matplotlib.figure import Figure

    table = study.table.head(BOXES)
    names = [str(name) for name in table.index]
    places = range(len(names), 0, -1)  # the most relevant one on top
    figure = Figure(figsize=(7.0, 1.2 + 0.26 * len(names)), layout="constrained")
    axes: Any = figure.add_subplot()
    if len(study.samples):
        samples = [study.samples[name] for name in table.index]
        axes.boxplot(samples, positions=list(places), orientation="horizontal", widths=0.6, manage_ticks=False)
    axes.plot(table["relevance"], list(places), "D", markersize=4, color="tab:blue", label="from all rows")
    axes.set_yticks(list(places), names)
    axes.set_xlabel("relevance" + f", and its spread over {len(study.samples)} resamples" * (len(study.samples) > 0))
    axes.set_title(f"{study.learned.kernel.name} by {study.learned.criterion}", loc="left")
    axes.margins(y=0.02)
    axes.legend(loc="lower right", frameon=False)
    picture = io.BytesIO()
    figure.savefig(picture, format=Path(path).suffix.lower().lstrip("."), dpi=150)
    atomic_write(path, lambda stream: stream.write(picture.getvalue()))
