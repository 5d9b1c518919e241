"""``kernsel guide``: the manual, a page for each topic."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from kernsel.cli import console
from kernsel.errors import OptionError
from kernsel.text import aligned, listing, meant

FOLDER = Path(__file__).parents[1] / "guide"
CONTENTS = "README.md"
"""The file that lists the pages, each with a line of its own: ``* [topic](topic.md): what it is about``."""
LARGEST_WIDTH = 110  # longer lines are tiring to read


def guide(
    topic: Annotated[
        str | None,
        typer.Argument(metavar="TOPIC", help="A page, or a script of its gallery; without one, the pages are listed."),
    ] = None,
) -> None:
    """Read the manual."""
    with console.guarded():
        if topic is None:
            typer.echo("\n".join(aligned(list(topics().items()))))
            typer.echo("\nkernsel guide TOPIC shows a page.")
            return
        script = FOLDER / "gallery" / topic
        if topic in (each.name for each in script.parent.glob("*.py")):
            typer.echo(script.read_text(encoding="utf-8"), nl=False)
            return
        text = "\n".join(laid_out(page(topic), min(shutil.get_terminal_size().columns, LARGEST_WIDTH)))
        if sys.stdout.isatty():
            import pydoc  # which takes as long to load as all the rest

            pydoc.pager(text)
        else:
            typer.echo(text)


def topics() -> dict[str, str]:
    """Return the topics in the order of the contents, each with what its page is about."""
    return dict(re.findall(r"^\* \[([\w-]+)\]\(\1\.md\): (.+)$", _read(CONTENTS), re.MULTILINE))


def page(topic: str) -> str:
    """Return the page of a topic, in Markdown; OptionError if there is none."""
    there = topics()
    if topic not in there:
        raise OptionError(f"the guide has no topic {topic!r}{_hint(topic, there)}")
    return _read(f"{topic}.md")


def _hint(topic: str, there: dict[str, str]) -> str:
    """Return what may have been meant by a topic that there isn't."""
    from kernsel import registry

    if any(claim.name == topic for claim in registry.claims()):
        return f"; 'kernsel plugins {topic}' explains that part"
    return meant(topic, there) or f"; there are {listing(there)}"


def laid_out(markdown: str, width: int) -> Iterator[str]:
    """Yield the lines of a page for a terminal: wrapped, without comments and the addresses of links within the guide.

    Blocks of code and tables keep their lines.
    """
    text = re.sub(r"<!--.*?-->\n?", "", markdown, flags=re.DOTALL)
    text = re.sub(r"\[([^]]+)\]\((?!https?:)[^)]+\)", r"\1", text)
    code = False
    for line in text.splitlines():
        fence = line.startswith("```")
        code ^= fence
        if fence:
            continue
        if code:
            yield "    " + line if line else ""
        elif line.startswith("|"):
            yield line
        else:
            bullet = "  " if line.lstrip().startswith("* ") else ""
            indent = line[: len(line) - len(line.lstrip())]
            yield textwrap.fill(line, width, subsequent_indent=indent + bullet, break_on_hyphens=False)


def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")
