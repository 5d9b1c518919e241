"""What several commands do alike before and after their work: tables are read, files and threads looked after."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from kernsel.cli import console
from kernsel.errors import OptionError

if TYPE_CHECKING:
    from kernsel.cli.arguments import Asked
    from kernsel.data import Dataset, Reading, Roles
    from kernsel.selection.plan import Plan


RESULTS = {
    "--output": b'{"format": "kernsel-',
    "--model": b"header.npy",
    "--report": b"<!-- a report of kernsel -->",
    "--journal": b'{"format":"kernsel-journal"',
}
"""How the files begin that may be overwritten, by option."""

PICTURES = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
"""How pictures begin, by the endings of their names."""

PLOTS = ("--plot", "--chosen")
"""How options begin whose files are pictures."""


def check_outputs(data: Sequence[Path], places: Mapping[str, Path | None]) -> None:
    """Refuse before the work what would fail after it, or destroy the table; ``places`` are files by option."""
    from kernsel.data.files import check_replaceable, check_writable

    given = {option: path for option, path in places.items() if path is not None}
    for option, path in given.items():
        if is_read(check_writable(path), data):
            raise OptionError(f"{option} {path} is the table itself; choose another file")
        if option in RESULTS:
            check_replaceable(path, RESULTS[option])
        elif path.suffix.lower() in PICTURES:
            check_replaceable(path, PICTURES[path.suffix.lower()])
    for (one, path), (other, same) in combinations(given.items(), 2):
        if path.resolve() == same.resolve():
            raise OptionError(f"{one} and {other} are both {path}; choose two files")


class JournalPlace(NamedTuple):
    """Where a command keeps its journal.

    Parameters
    ----------
    delay : float
        Seconds of the run before it is made.
    keep : bool
        Whether it stays when all is written.
    """

    path: Path | None
    delay: float = 0.0
    keep: bool = True


def place_journal(
    journal: str | None, data: Sequence[Path], output: Path | None, others: Mapping[str, Path | None]
) -> JournalPlace:
    """Return where a command keeps its journal: the file that is named, or one beside the output of a long run.

    Parameters
    ----------
    journal : str or None
        As it is given.
    others : mapping of str to Path
        What else is written, by option.
    """
    from kernsel.journal import LONG, NONE

    if journal == NONE or (journal is None and output is None):
        return JournalPlace(None)
    if journal is not None:
        check_outputs(data, {"--output": output, **others, "--journal": Path(journal)})
        return JournalPlace(Path(journal))
    beside = output.with_name(f"{output.stem}.journal") if output is not None else Path()
    taken = {each.resolve() for each in (output, *others.values()) if each is not None}
    if output is None or not output.parent.is_dir() or beside.resolve() in taken or is_read(beside, data):
        return JournalPlace(None)
    return JournalPlace(beside, LONG, keep=False)


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


def begin(
    data: Sequence[Path], asked: Asked, output: Path | None, others: Mapping[str, Path | None], threads: int | None
) -> JournalPlace:
    """Refuse before the work what would fail after it, set threads, and return where a journal is kept.

    Parameters
    ----------
    others : mapping of str to Path
        What else is written, by option: pictures by ``--plot`` and what begins with ``PLOTS``.
    """
    check_outputs(data, {"--output": output, **others})
    set_threads(threads)
    from kernsel.journal import NONE
    from kernsel.report.style import check_page, check_plot

    place = place_journal(asked.given.get("journal", NONE), data, output, others)

    for option, path in others.items():
        if path is not None and option.startswith(PLOTS):
            check_plot(path)
        elif path is not None and option == "--report":
            check_page(path)
        elif path is not None and option.startswith("--tables"):
            from kernsel.comparison.formats import check_table

            check_table(path)
    return place


def announce_compiling(quiet: bool, by_another: bool = False) -> None:
    """Say when loops are to be compiled; ``by_another`` lets a second process compile what is needed last."""
    from kernsel.numerics.runtime import ahead, compiling

    compiling.announce = None if quiet else console.say
    ahead.allowed = by_another


def read_dataset(
    data: Sequence[Path],
    reading: Reading,
    plan: Plan,
    target: str | None,
    aside: Mapping[str, str | None],
    chatty: bool,
    alike: bool = False,
) -> tuple[Roles, Dataset]:
    """Read and encode a table, and print what was inferred if ``chatty``.

    ``aside`` names columns by their role. All rows count 1 and belong to no group where they are to be ``alike``.
    """
    from kernsel.data import assign_roles, make_choices, prepare, read_table

    columns = plan.columns
    told = {name: value for name, value in plan.table.items() if name not in columns}
    roles = assign_roles(read_table(data, reading=reading), target, **aside)
    if not alike:
        told |= {"weights": roles.weights, "groups": roles.groups}
    dataset = prepare(roles.frame, roles.targets, choices=make_choices(**columns), **told)
    if chatty:
        announce(dataset)
    return roles, dataset


def journaled(
    place: JournalPlace, command: str, dataset: Dataset, options: Mapping[str, object], quiet: bool
) -> AbstractContextManager[None]:
    """Keep a journal of a command in the block, and say where it goes on from one.

    Parameters
    ----------
    options : mapping
        All that its result depends on.
    """
    from kernsel.journal import run_header

    return going_on(place, lambda: run_header(command, dataset, options), quiet)


@contextmanager
def going_on(
    place: JournalPlace, header: Callable[[], dict[str, Any]], quiet: bool, steps: str = "steps"
) -> Iterator[None]:
    """Keep a journal of the work in the block, and say where it goes on from one.

    Parameters
    ----------
    header : callable
        Returns what tells the run from others.
    steps : str
        What the work is made of, for people.
    """
    from kernsel.journal import journaling

    with journaling(place.path, header, place.delay, place.keep) as journal:
        if journal.known and not quiet:
            console.say(f"going on from {place.path}: {journal.known} {steps} are done")
        yield


def announce(dataset: Dataset, aside: bool = False) -> None:
    """Print what a table is, and what was inferred; ``aside`` on stderr."""
    typer.echo(f"{dataset.source}: {dataset.n} rows, {dataset.d} features", err=aside)
    for note in dataset.notes:
        typer.echo(f"  {note}", err=aside)
