"""``kernsel rerun``: a selection again, from its document, and whether it gives the same."""

from __future__ import annotations

import json as json_format
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernsel.cli import console
from kernsel.cli.arguments import Json, Quiet, Threads, option
from kernsel.cli.reading import read_dataset, set_threads
from kernsel.cli.select import nested_estimate
from kernsel.errors import OptionError
from kernsel.selection.plan import HEADINGS
from kernsel.text import to_json

if TYPE_CHECKING:
    from kernsel.selection.again import Origin
    from kernsel.selection.result import Selection


def rerun(
    result: Annotated[
        Path, typer.Argument(metavar="RESULT", readable=False, help="A result that kernsel select --output wrote.")
    ],
    data: Annotated[
        list[Path] | None,
        typer.Argument(metavar="DATA", readable=False, help="Its table, where that isn't at its place any more."),
    ] = None,
    dask: Annotated[
        str | None,
        option("local|ADDRESS", "Workers of Dask, where those of the result aren't there any more.", HEADINGS["size"]),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
) -> None:
    """Repeat a selection from its result, and compare: exit code 0 if all figures are the same, 1 if any differs."""
    with console.guarded():
        set_threads(threads)
        from kernsel.selection.again import Comparison, read_origin

        origin = read_origin(result)
        read = origin.read
        files = data or [Path(each) for each in read.get("files", ())]
        if not files or files == [Path("-")]:
            raise OptionError(f"{result} doesn't say where its table is: give it, as kernsel rerun {result} DATA")
        if "files" not in read:
            raise OptionError(f"{result} was made from arrays in Python, and doesn't say which column is which")
        if dask is not None and "dask" not in read:
            raise OptionError(f"--dask {dask}: {result} was made without workers of Dask; leave it out")

        def compare_data(found: str) -> None:
            if found == origin.fingerprint:
                return
            difference = {"where": "data.fingerprint", "before": origin.fingerprint, "now": found}
            other = {**Comparison([], []).to_dict(), "same": False, "differences": [difference]}
            typer.echo(to_json(other) if json else f"the data are others than those of {result}: nothing to compare")
            raise typer.Exit(1)

        if "dask" in read:
            again = _repeat_on_workers(origin, files, dask or read["dask"], quiet)
            compare_data(again.data["fingerprint"])
        else:
            again = _repeat(origin, files, not (json or quiet), quiet, compare_data)
        now: dict[str, Any] = json_format.loads(again.to_json())
        now["options"]["read"] = origin.document["options"]["read"]
        now["data"]["source"] = origin.document["data"]["source"]  # the table may be elsewhere by now
        compared = Comparison.of(origin.document, now)
        typer.echo(to_json(compared.to_dict()) if json else compared.summary())
        if compared.found:
            raise typer.Exit(1)


def _repeat(
    origin: Origin, files: list[Path], chatty: bool, quiet: bool, compare_data: Callable[[str], None]
) -> Selection:
    """Select once more, on a table that is read here, if its fingerprint may be compared."""
    from kernsel.data import Reading
    from kernsel.journal.encoding import fingerprint
    from kernsel.selection.carry_out import carry_out

    plan, read = origin.plan, origin.read
    aside = {role: read.get(role) for role in ("weights", "groups", "folds")}
    roles, dataset = read_dataset(files, Reading(**read["table"]), plan, read["target"], aside, chatty)
    compare_data(fingerprint(dataset))
    if roles.folds is not None:
        plan = replace(plan, folds=roles.folds)
    with console.progress(quiet) as report:
        again = carry_out(dataset, plan, report)
    if read.get("nested") is None:
        return again
    return replace(again, nested=nested_estimate(roles, dataset, plan, read["nested"], quiet))


def _repeat_on_workers(origin: Origin, files: list[Path], address: str, quiet: bool) -> Selection:
    """Select once more, on files that the workers of Dask read."""
    from kernsel.data import Reading
    from kernsel.selection.ondask import select_files

    read = origin.read
    with console.progress(quiet) as report:
        return select_files(
            files, address, origin.plan, read["target"], read["weights"], Reading(**read["table"]), report
        )
