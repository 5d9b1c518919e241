"""``kernsel plugins``: the parts that are there, and where each comes from."""

from __future__ import annotations

import json as json_format
from dataclasses import asdict
from typing import Annotated, Any

import typer

from kernsel.cli import console


def plugins(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Load every part, and end with exit code 1 if one is broken.")
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
        typer.echo(json_format.dumps({"plugins": rows}, indent=2) if json else _table(rows))
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
