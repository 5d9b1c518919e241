"""``kernsel update``: new rows added to the fit of a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernsel.cli import console
from kernsel.cli.arguments import Asked, Data, Json, Quiet, Threads, Weights, option
from kernsel.cli.beside import read_for
from kernsel.cli.reading import RESULTS, is_read, set_threads
from kernsel.cli.writing import say_written
from kernsel.errors import OptionError


def update(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", readable=False, help="A model that kernsel select --model wrote.")
    ],
    data: Data,
    asked: Asked,
    output: Annotated[Path, option("FILE", "Write the model with the new rows to this file.")],
    weights: Weights = None,
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
) -> None:
    """Add new rows to a model of the square loss on landmarks: the fit on all rows, without a search.

    The table has the model's columns and its target. A warning says when the new rows call for another selection.
    """
    with console.guarded():
        from kernsel.data.files import check_replaceable, check_writable

        if is_read(check_writable(output), data):
            raise OptionError(f"--output {output} is the table itself; choose another file")
        check_replaceable(output, RESULTS["--model"])
        set_threads(threads)
        from kernsel.data import assign_roles
        from kernsel.model.model import load
        from kernsel.model.update import check_updatable
        from kernsel.text import to_json

        fitted = load(model)
        check_updatable(fitted)
        names = fitted.target if isinstance(fitted.target, list) else [fitted.target]
        roles = assign_roles(read_for(fitted, data, asked.reading, quiet), ",".join(names), weights)
        with console.prints_aside():
            updated = fitted.update(*roles.split(), roles.weights)
        updated.save(output)
        document = {"format": "kernsel-update", "version": 1, **updated.provenance}
        last = document["updates"][-1]
        figures = f"{last['loss']:.4g}, and {last['loss_expected']:.4g} in the selection"
        summary = [
            f"{last['rows']} new rows, {document['rows']} in all",
            f"  mean squared error of the new ones by the model without them, in its units: {figures}",
        ]
        if json or not quiet:
            typer.echo(to_json(document) if json else "\n".join(summary))
        if not (json or quiet):
            say_written("model", output)
