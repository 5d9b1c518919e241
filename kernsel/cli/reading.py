"""What several commands read alike: tables, ranks, threads, and the files that they are to write."""

from __future__ import annotations

import glob
import math
import os
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from kernsel.errors import OptionError

if TYPE_CHECKING:
    from kernsel.cli.arguments import TableOptions
    from kernsel.data import Dataset, Roles


RESULTS = {"--output": b'{"format": "kernsel-', "--model": b"header.npy"}
"""How the files begin that may be overwritten, by option."""


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


def check_outputs(data: Sequence[Path], places: Mapping[str, Path | None]) -> None:
    """Refuse before the work what would fail after it, or destroy the table; ``places`` are files by option."""
    from kernsel.data.files import check_replaceable, check_writable

    given = {option: path for option, path in places.items() if path is not None}
    for option, path in given.items():
        if is_read(check_writable(path), data):
            raise OptionError(f"{option} {path} is the table itself; choose another file")
        if option in RESULTS:
            check_replaceable(path, RESULTS[option])
    for (one, path), (other, same) in combinations(given.items(), 2):
        if path.resolve() == same.resolve():
            raise OptionError(f"{one} and {other} are both {path}; choose two files")


def is_read(path: Path, data: Sequence[Path]) -> bool:
    """Say whether a file is one of those that are read, or that a pattern matches."""
    place = path.resolve()
    if any(place == each.resolve() for each in data):
        return True
    patterns = [os.fspath(each) for each in data if not each.exists() and glob.has_magic(os.fspath(each))]
    return any(place == Path(name).resolve() for pattern in patterns for name in glob.glob(pattern, recursive=True))


def set_threads(threads: int | None) -> None:
    """Set the number of threads where the numerical libraries look for it when they are imported."""
    if threads is not None:
        for library in ("NUMBA", "OMP", "OPENBLAS", "MKL", "VECLIB"):
            os.environ["VECLIB_MAXIMUM_THREADS" if library == "VECLIB" else f"{library}_NUM_THREADS"] = str(threads)


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


def read_dataset(
    data: Sequence[Path],
    tables: TableOptions,
    target: str | None,
    task: str,
    standardize: bool,
    chatty: bool,
    *,
    class_weight: str | None = None,
    copies: str = "together",
    **aside: str | None,
) -> tuple[Roles, Dataset]:
    """Read and encode a table, and print what was inferred if ``chatty``; ``aside`` names columns by their role."""
    from kernsel.data import assign_roles, prepare, read_table

    choices = tables.choices
    roles = assign_roles(read_table(data, reading=tables.reading), target, **aside)
    dataset = prepare(
        roles.frame,
        roles.targets,
        task,
        standardize,
        weights=roles.weights,
        groups=roles.groups,
        class_weight=class_weight,
        copies=copies,
        choices=choices,
    )
    if chatty:
        announce(dataset)
    return roles, dataset


def announce(dataset: Dataset) -> None:
    """Print what a table is, and what was inferred."""
    typer.echo(f"{dataset.source}: {dataset.n} rows, {dataset.d} features")
    for note in dataset.notes:
        typer.echo(f"  {note}")
