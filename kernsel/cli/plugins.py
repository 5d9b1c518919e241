"""``kernsel plugins``: the parts that are there, and where each comes from."""

from __future__ import annotations

import json as json_format
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernsel.cli import console
from kernsel.cli.arguments import flag
from kernsel.text import aligned

if TYPE_CHECKING:
    from kernsel.registry import Claim
    from kernsel.report.explanation import Explanation


def plugins(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Parts to explain; without one, all are listed.")
    ] = None,
    json: Annotated[bool, flag("--json", "Print one JSON document.")] = False,
    check: Annotated[bool, flag("--check", "Load every part, and end with exit code 1 if one is broken.")] = False,
    describe: Annotated[
        bool, flag("--describe", "Say of every part what it is, what it costs and what is known against it.")
    ] = False,
) -> None:
    """List kernels, learners, criteria, searches, formats and experiments with where each is from, or explain some."""
    with console.guarded():
        from kernsel import registry

        claims = _claims(names) if names else registry.claims()
        rows: list[dict[str, Any]] = [asdict(claim) for claim in claims]
        broken = {}
        if check or names:
            for row, claim in zip(rows, claims, strict=True):
                row["broken"] = reason = registry.find_fault(claim)
                if reason is not None:
                    row["state"] = "broken"
                    broken[claim] = reason
        about = {}
        if describe or names:
            from kernsel.report.explanation import explain

            for row, claim in zip(rows, claims, strict=True):
                if claim not in broken and registry.find_fault(claim) is None:
                    about[claim] = explain(claim.kind, registry.get(claim.kind, claim.address))
                    row["about"] = _as_json(about[claim])
        if json:
            typer.echo(json_format.dumps({"plugins": rows}, indent=2))
        elif describe or names:
            typer.echo("\n\n".join(_paragraph(claim, about.get(claim), bool(names)) for claim in claims))
        else:
            typer.echo(_table(rows))
        for reason in broken.values():
            console.warn(reason)
        if broken:
            raise typer.Exit(1)


def _claims(wanted: list[str]) -> list[Claim]:
    """Return the claims of parts by their names, of any kind; UnknownPlugin if one is of none."""
    from kernsel import registry
    from kernsel.errors import UnknownPlugin
    from kernsel.text import meant
    from kernsel.words import own_name

    found, there = [], registry.claims()
    for name in wanted:
        matching = [c for c in there if name in (c.address, f"{c.distribution}:{c.name}", c.name)]
        matching = matching or [c for c in there if c.name == own_name(c.kind, name) != name]
        if not matching:
            hint = meant(name, {c.name for c in there}) or "; 'kernsel plugins' lists all"
            raise UnknownPlugin(f"no part is called {name!r}{hint}")
        found += matching
    return found


def _table(rows: list[dict[str, Any]]) -> str:
    columns = {"kind": "kind", "name": "name", "state": "state", "from": "distribution", "version": "version"}
    return "\n".join(aligned([tuple(columns), *(tuple(str(row[key]) for key in columns.values()) for row in rows)]))


def _as_json(about: Explanation) -> dict[str, Any]:
    """Return an explanation as JSON can hold it, its notes beside the rest; nothing that is empty."""
    document = asdict(about)
    return {key: value for key, value in {**document, **document.pop("notes")}.items() if value}


def _paragraph(claim: Claim, about: Explanation | None, whole: bool) -> str:
    """Return a part in a few lines, or all that is known of it."""
    if about is None:
        return f"{claim.kind} {claim.name}\n  {claim.state}, from {claim.origin}"
    head = f"{claim.kind} {claim.name}" + (f", from {claim.origin}\n" if whole else "")
    return "\n".join([head, *(about.lines() if whole else about.summary())])
