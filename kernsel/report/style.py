"""The look of all pictures, and how they become files or parts of a page; matplotlib is imported when one is drawn.

Colours differ in lightness, and lines in their dashes, so that a picture can be read in grey.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernsel.data.files import atomic_write
from kernsel.errors import OptionError

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")
PAGES = (".html", ".htm")
DPI = 150

INK = "#1f1f1f"
"""Of axes and words; on a page it gives way to the page's own colour."""

GREY = "#8c8c8c"
"""Of lines that are there to compare with; light and dark pages leave it visible."""

COLOURS = ("#2f6fb5", "#e08a1e", "#3c8f5f", "#a3397b", "#6a5fbf", "#b8562f", "#4aa5b5", "#8f8a2b")
DASHES = ("-", "--", "-.", ":")
MARKERS = "o^sDvP*X"

LONGEST = 40
"""Letters of a name."""

MANY = 2000
"""From so many points on these are drawn as an image, also in a file of lines."""

_LOOK: Any = {
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": "medium",
    "font.size": 10.0,
    "hatch.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": "small",
    "svg.fonttype": "path",
    "svg.hashsalt": "kernsel",
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


def check_plot(path: str | os.PathLike[str]) -> None:
    """Raise OptionError where no picture can be drawn: the format is unknown, or matplotlib is missing."""
    if Path(path).suffix.lower() not in FORMATS:
        raise OptionError(f"can't draw {path}: its name must end with one of {', '.join(FORMATS)}")
    if not can_draw():
        raise OptionError("pictures need matplotlib: pip install 'kernsel[plot]'")


def check_page(path: str | os.PathLike[str]) -> None:
    """Raise OptionError for a name that doesn't end as that of a page of HTML does."""
    if Path(path).suffix.lower() not in PAGES:
        raise OptionError(f"can't write a report to {path}: it is a page of HTML, whose name ends with {PAGES[0]}")


def can_draw() -> bool:
    """Tell whether matplotlib is there."""
    try:
        import matplotlib  # noqa: F401  # to know it now, not after the work
    except ImportError:
        return False
    return True


@contextmanager
def _look() -> Iterator[None]:
    import matplotlib

    with matplotlib.rc_context(_LOOK):
        yield


def drawn(draw: Callable[[Figure], None], width: float = 7.0, height: float = 4.6) -> Figure:
    """Return a figure of matplotlib that a function has drawn on, of a size in inches."""
    from matplotlib.figure import Figure

    with _look():
        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure)
    return figure


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure to a PNG, SVG or PDF file, by the ending of its name.

    Raises
    ------
    OptionError
        The file can't be written.
    """
    picture = _rendered(figure, Path(path).suffix.lower().lstrip("."))
    atomic_write(path, lambda stream: stream.write(picture))


def inline_svg(figure: Figure) -> str:
    """Return a figure as an element of HTML whose words and axes have the colour of the text around it."""
    text = _rendered(figure, "svg", transparent=True).decode()
    text = text[text.index("<svg") :].replace(INK, "currentColor")
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'<g id="[\w.]+">', "<g>", text)  # of each figure the same
    mark = hashlib.blake2b(text.encode(), digest_size=4).hexdigest()  # so are those of letters and marks
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{mark}-", text)
    view = re.search(r'viewBox="[^"]+"', text)
    assert view is not None
    return re.sub(
        r"<svg[^>]*>", f'<svg xmlns:xlink="http://www.w3.org/1999/xlink" {view[0]} aria-hidden="true">', text, count=1
    )


def _rendered(figure: Figure, form: str, transparent: bool = False) -> bytes:
    picture = io.BytesIO()
    # Without a date the same selection gives the same file.
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form)
    with _look():
        figure.savefig(picture, format=form, dpi=DPI, transparent=transparent, metadata=metadata)
    return picture.getvalue()


def lines(count: int) -> Iterator[dict[str, Any]]:
    """Give the colour and the dashes of each of some lines."""
    for number, colour in zip(range(count), itertools.cycle(COLOURS), strict=False):
        yield {"color": colour, "linestyle": DASHES[number % len(DASHES)]}


def points(count: int, size: int) -> Iterator[dict[str, Any]]:
    """Give the look of each of some clouds of points, which have ``size`` points together."""
    for number in range(count):
        yield {
            "color": COLOURS[number % len(COLOURS)],
            "marker": MARKERS[number % len(MARKERS)],
            "s": 16 if size < MANY else 5,
            "alpha": 0.75 if size < MANY else 0.35,
            "linewidths": 0,
            "rasterized": size >= MANY,
        }


def words(text: object) -> str:
    """Return a name from a table as matplotlib writes it: none of its letters is a sign, and it isn't too long."""
    plain = str(text)
    if len(plain) > LONGEST:  # names of columns that begin alike mostly end otherwise
        plain = f"{plain[: LONGEST // 2]}...{plain[3 - LONGEST // 2 :]}"
    plain = "".join(letter if letter.isprintable() else " " for letter in plain).replace("$", r"\$")
    return f" {plain}" if plain.startswith("_") else plain  # else it would be left out of a legend


def legend_below(figure: Figure, handles: Sequence[Artist], columns: int = 3) -> None:
    """Put a legend below all axes, where it hides nothing."""
    if handles:
        figure.legend(handles=handles, loc="outside lower left", ncols=columns, markerscale=1.3)
