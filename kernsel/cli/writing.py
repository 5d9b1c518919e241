"""What several commands write alike: a document, and what was written where."""

from __future__ import annotations

from pathlib import Path

import typer


def write_document(document: str, output: Path | None) -> None:
    """Write a JSON document to a file, if there is to be one."""
    if output is not None:
        from kernsel.data.files import atomic_write

        atomic_write(output, lambda stream: stream.write(f"{document}\n".encode()))


def say_written(**places: Path | None) -> None:
    """Print which files were written, by what they hold."""
    for what, path in places.items():
        if path is not None:
            typer.echo(f"{what} written to {path}")
