"""``kernsel plugins``: the parts that are there, and where each comes from."""

from __future__ import annotations

import json as json_format
import textwrap
from dataclasses import asdict
from typing import Annotated, Any

import typer

from kernsel.cli import console


def plugins(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Load every part, and end with exit code 1 if one is broken.")
    ] = False,
    describe: Annotated[
        bool,
        typer.Option("--describe", help="Say what every part is; of a criterion also what it costs and its faults."),
    ] = False,
) -> None:
    """List the kernels, learners and criteria and where each comes from."""
    with console.guarded():
        from kernsel import registry

        claims = registry.claims()
        rows: list[dict[str, Any]] = [asdict(claim) for claim in claims]
        broken = {}
        if check:
            for row, claim in zip(rows, claims, strict=True):
                row["broken"] = reason = registry.check(claim)
                if reason is not None:
                    row["state"] = "broken"
                    broken[claim] = reason
        if describe:
            for row, claim in zip(rows, claims, strict=True):
                if claim not in broken and registry.check(claim) is None:
                    row["about"] = _about(registry.get(claim.kind, claim.address))
        if json:
            typer.echo(json_format.dumps({"plugins": rows}, indent=2))
        else:
            typer.echo("\n\n".join(map(_paragraph, rows)) if describe else _table(rows))
        for reason in broken.values():
            console.warn(reason)
        if broken:
            raise typer.Exit(1)


def _table(rows: list[dict[str, Any]]) -> str:
    columns = {"kind": "kind", "name": "name", "state": "state", "from": "distribution", "version": "version"}
    cells = [tuple(columns), *(tuple(str(row[key]) for key in columns.values()) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ("  ".join(map(str.ljust, line, widths)) for line in cells)
    return "\n".join(line.rstrip() for line in lines)


def _about(part: Any) -> dict[str, str]:
    """Return what a part says of itself: the first sentence of its documentation, and the ``about`` of a criterion."""
    first = " ".join((part.__doc__ or "").partition("\n\n")[0].split()).replace("``", "")
    about = getattr(part, "about", None)
    return {"what": first, **({} if about is None else {name: text for name, text in asdict(about).items() if text})}


def _paragraph(row: dict[str, Any]) -> str:
    about = row.get("about", {"what": f"{row['state']}, from {row['distribution']}"})
    lines = [f"{row['kind']} {row['name']}"]
    for name, text in about.items():
        label = "" if name == "what" else f"{name}: "
        lines += textwrap.wrap(label + text, 110, initial_indent="  ", subsequent_indent="    ")
    return "\n".join(lines)
