"""How the text of an option becomes its value, where that isn't the text itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kernsel.errors import OptionError


def read_rank(text: str | None) -> Any:
    """Read ``--rank``: None, ``"full"``, ``"whole"``, ``"tol:..."``, a number of columns or a share of the rows."""
    if text is None or text in ("full", "whole") or text.startswith("tol:"):
        return text
    try:
        value = int(text) if text.lstrip("+").isdecimal() else float(text)
    except ValueError:
        value = math.nan
    if (isinstance(value, int) and value >= 1) or (isinstance(value, float) and 0 < value <= 1):
        return value
    raise OptionError(
        f"--rank {text} is none of: a whole number from 1, a share of the rows such as 0.1, tol:SHARE[:LARGEST], full, "
        "whole"
    )


def read_plots(texts: Sequence[str], option: str = "--plot", example: str = "criterion=picture.png") -> dict[str, Path]:
    """Read ``--plot NAME=FILE``: the files by the names of their pictures."""
    plots: dict[str, Path] = {}
    for text in texts:
        name, _, place = text.partition("=")
        if not name or not place:
            raise OptionError(f"{option} {text}: write NAME=FILE, such as {example}")
        if name in plots:
            raise OptionError(f"{option} {name} is given twice; give each picture once")
        plots[name] = Path(place)
    return plots


def read_values(texts: Sequence[str]) -> dict[str, Any]:
    """Read the values of ``--grid NAME=V,V...`` by name."""
    values: dict[str, Any] = {}
    for name, _, listed in (text.partition("=") for text in texts):
        if not name.strip() or name.strip() in values:
            raise OptionError(f"--grid {name}={listed} is without a name or a second time; write NAME=V,V... once")
        try:
            values[name.strip()] = [float(value) for value in listed.split(",")]
        except ValueError as error:
            raise OptionError(f"--grid {name}={listed} must be numbers with commas between, like tau=1,2") from error
    return values


def _read_order(text: str) -> Any:
    """Read ``--order``: infinity or a whole number."""
    if text == "inf":
        return math.inf
    if text.isdecimal() and int(text) >= 1:
        return int(text)
    raise OptionError(f"--order {text} is neither a whole number from 1 nor inf")


def _read_eta(text: str) -> Any:
    """Read ``--eta``: ``"cv"`` or a number."""
    if text == "cv":
        return text
    try:
        return float(text)
    except ValueError as error:
        raise OptionError(f"--eta {text} is neither a number nor cv") from error


def _read_grid(texts: list[str]) -> Any:
    """Read ``--grid``: the grid of everything, or values by name and the grid of the rest."""
    styles = [text for text in texts if "=" not in text] or ["auto"]
    if len(styles) > 1:
        raise OptionError(f"--grid is given as {' and as '.join(styles)}; give one of them, and values as NAME=V,V...")
    values = read_values([text for text in texts if "=" in text])
    if not values:
        return styles[0]
    return values if styles == ["auto"] else {**values, "rest": styles[0]}


def _read_folds(text: str) -> Any:
    """Read ``--folds``: a number, or the name of a way to hold rows out."""
    from kernsel.folds import check_text

    return check_text(text)


def _read_ordinal(texts: list[str]) -> Any:
    """Read ``--ordinal NAME=LEAST<...<GREATEST``."""
    from kernsel.data.choices import read_ordinal

    return read_ordinal(texts)


READERS: Mapping[str, Callable[[Any], Any]] = {
    "rank": read_rank,
    "order": _read_order,
    "eta": _read_eta,
    "grid": _read_grid,
    "folds": _read_folds,
    "ordinal": _read_ordinal,
}
"""How the text of an option becomes its value, by its name in Python, where that isn't the text itself."""
