"""What ``kernsel compare`` and ``kernsel curve`` have alike: several tables, options for all methods, and the files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernsel.cli.arguments import RESULTS, Asked, option
from kernsel.cli.reading import announce
from kernsel.cli.writing import File, deliver
from kernsel.errors import OptionError
from kernsel.selection.plan import WORDS, Plan

if TYPE_CHECKING:
    from kernsel.comparison.formats import Written
    from kernsel.data import Dataset, Reading

WHOLE = "encoding: fitted once"
"""How a note of a table begins that is true of selections on all of its rows only."""

TablesRead = Annotated[
    list[Path],
    typer.Argument(metavar="DATA", readable=False, help="The tables, each a file of its own, in any form of select."),
]
Measure = Annotated[str | None, option("rmse|mse", "The error of a regression [default: rmse].")]
TablesWritten = Annotated[
    list[Path] | None,
    option(
        "FILE",
        "Write the tables to this .txt, .md, .csv (every number), .tex, .html or .json file; repeatable.",
        RESULTS,
        name="--tables",
    ),
]


def of_tables(tables: Sequence[Path] | None) -> dict[str, Path]:
    """Return the files of tables, by option."""
    return {f"--tables {path}": path for path in tables or ()}


def given_options(asked: Asked) -> dict[str, Any]:
    """Return the options of a selection that are given, by their values."""
    plan = asked.plan()
    found = {}
    for name, words in WORDS.items():
        given = asked.given.get(name)
        if name != "journal" and (given != getattr(Plan, name) if words.kind == "flag" else given not in (None, [])):
            found[name] = getattr(plan, name)
    return found


def read_tables(
    data: list[Path], reading: Reading, target: str | None, groups: str | None
) -> tuple[dict[str, tuple[Any, Any]], dict[str, Any]]:
    """Return features and target of each table by its name, and the groups of its rows, where a column has them."""
    from kernsel.data import assign_roles, read_table

    found: dict[str, tuple[Any, Any]] = {}
    grouped = {}
    places = [path.resolve() for path in data]
    for path in data:
        if places.count(path.resolve()) > 1:
            raise OptionError(f"{path} is given twice; give each table once")
        roles = assign_roles(read_table([path], reading=reading), target, groups=groups)
        name = path.stem if path.stem not in found else str(path)
        found[name], grouped[name] = roles.split(), roles.groups
    return found, grouped


def announce_tables(datasets: Mapping[str, Dataset]) -> None:
    """Print what each table is, and what was inferred."""
    for name, dataset in datasets.items():
        notes = [note for note in dataset.notes if not note.startswith(WHOLE)]
        announce(replace(dataset, source=name, notes=notes))


def finish(
    found: Written,
    output: Path | None,
    tables: Sequence[Path],
    pictures: Mapping[Path, Callable[[Path], None]],
    json: bool,
    quiet: bool,
) -> None:
    """Write and print what was found.

    Parameters
    ----------
    found : Comparison, Curve or Surface
    pictures : mapping of Path to callable
        Each draws one to its file.
    """
    document = found.to_json()
    files = [File("picture", path, draw) for path, draw in pictures.items()]
    files += [File("tables", path, found.save) for path in tables]
    deliver(document if json else found.summary(), document, output, not (json or quiet), *files)
