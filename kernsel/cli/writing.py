"""What several commands write alike: a document, and what was written where."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import typer

from kernsel.errors import OptionError


class File(NamedTuple):
    """A file that a command writes beside its document.

    Parameters
    ----------
    what : str
        What it holds, for people.
    path : Path or None
        None where it isn't asked for.
    write : callable
        Writes it, given its path.
    """

    what: str
    path: Path | None
    write: Callable[[Path], object]


def deliver(shown: str, document: str, output: Path | None, chatty: bool, *others: File) -> None:
    """Write a JSON document, if there is to be a file of it, and other files, and print what is to be shown.

    Each is tried whatever becomes of the others: hours of work are not to be lost for a disk that is full by now.
    Where ``chatty``, what was written is said last.

    Raises
    ------
    OptionError
        A file can't be written; what could be is written and printed.
    """
    from kernsel.data.files import atomic_write

    text = f"{document}\n".encode()
    result = File("result", output, lambda path: atomic_write(path, lambda stream: stream.write(text)))
    files = [(what, path, write) for what, path, write in (result, *others) if path is not None]
    failures = []
    for done, (_, path, write) in enumerate(files):
        try:
            write(path)
        except OptionError as error:
            failures.append(error)
        except KeyboardInterrupt as stop:
            stop.add_note(f"the choice is made, and {done} of {len(files)} files are written")
            raise
    typer.echo(shown)
    if failures:
        sys.stdout.flush()
        raise failures[0]
    for what, path, _ in files if chatty else ():
        say_written(what, path)


def say_written(what: str, path: Path) -> None:
    """Print what was written where."""
    typer.echo(f"{what} written to {path}")
