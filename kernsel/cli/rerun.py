"""``kernsel rerun``: a selection again, from its document, and whether it gives the same."""

from __future__ import annotations

import json as json_format
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from kernsel.cli import console
from kernsel.cli.arguments import Json, Quiet, Threads
from kernsel.cli.reading import read_dataset, set_threads
from kernsel.cli.select import nested_estimate
from kernsel.errors import OptionError
from kernsel.text import to_json


def rerun(
    result: Annotated[
        Path, typer.Argument(metavar="RESULT", readable=False, help="A result that kernsel select --output wrote.")
    ],
    data: Annotated[
        list[Path] | None,
        typer.Argument(metavar="DATA", readable=False, help="Its table, where that isn't at its place any more."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
) -> None:
    """Repeat a selection from its result, and compare: exit code 0 if all figures are the same, 1 if any differs."""
    with console.guarded():
        set_threads(threads)
        from kernsel.data import Reading
        from kernsel.journal.encoding import fingerprint
        from kernsel.selection.again import Comparison, read_origin
        from kernsel.selection.carry_out import carry_out

        origin = read_origin(result)
        plan, read = origin.plan, origin.read
        files = data or [Path(each) for each in read.get("files", ())]
        if not files or files == [Path("-")]:
            raise OptionError(f"{result} doesn't say where its table is: give it, as kernsel rerun {result} DATA")
        if "files" not in read:
            raise OptionError(f"{result} was made from arrays in Python, and doesn't say which column is which")
        aside = {role: read.get(role) for role in ("weights", "groups", "folds")}
        chatty = not (json or quiet)
        roles, dataset = read_dataset(files, Reading(**read["table"]), plan, read["target"], aside, chatty)
        if (found := fingerprint(dataset)) != origin.fingerprint:
            difference = {"where": "data.fingerprint", "before": origin.fingerprint, "now": found}
            text = f"the data are others than those of {result}: nothing to compare"
            typer.echo(
                to_json({**Comparison([], []).to_dict(), "same": False, "differences": [difference]}) if json else text
            )
            raise typer.Exit(1)
        if roles.folds is not None:
            plan = replace(plan, folds=roles.folds)
        with console.progress(quiet) as report:
            again = carry_out(dataset, plan, report)
        if read.get("nested") is not None:
            again = replace(again, nested=nested_estimate(roles, dataset, plan, read["nested"], quiet))
        now: dict[str, Any] = json_format.loads(again.to_json())
        now["options"]["read"] = origin.document["options"]["read"]
        now["data"]["source"] = origin.document["data"]["source"]  # the table may be elsewhere by now
        compared = Comparison.of(origin.document, now)
        typer.echo(to_json(compared.to_dict()) if json else compared.summary())
        if compared.found:
            raise typer.Exit(1)
