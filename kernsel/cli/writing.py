"""What several commands write alike: a document, and what was written where."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import typer

from kernsel.errors import OptionError


def deliver(shown: str, document: str, output: Path | None, *others: Callable[[], object]) -> None:
    """Write a JSON document, if there is to be a file of it, and other files, and print what is to be shown.

    Each is tried whatever becomes of the others: hours of work are not to be lost for a disk that is full by now.

    Raises
    ------
    OptionError
        A file can't be written; what could be is written and printed.
    """
    from kernsel.data.files import atomic_write

    writes = list(others)
    if output is not None:
        writes.insert(0, lambda: atomic_write(output, lambda stream: stream.write(f"{document}\n".encode())))
    failures = []
    for done, write in enumerate(writes):
        try:
            write()
        except OptionError as error:
            failures.append(error)
        except KeyboardInterrupt as stop:
            stop.add_note(f"the choice is made, and {done} of {len(writes)} files are written")
            raise
    typer.echo(shown)
    if failures:
        sys.stdout.flush()
        raise failures[0]


def say_written(**places: Path | None) -> None:
    """Print which files were written, by what they hold."""
    for what, path in places.items():
        if path is not None:
            typer.echo(f"{what} written to {path}")
