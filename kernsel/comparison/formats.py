"""A comparison or a curve as text, Markdown, CSV, LaTeX, HTML or JSON."""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kernsel.comparison.result import BEST, MAYBE, SAME
from kernsel.comparison.sheets import Cell, Pages
from kernsel.data.files import atomic_write, check_writable
from kernsel.errors import OptionError
from kernsel.text import aligned, listing

if TYPE_CHECKING:
    import pandas as pd

SIGNS = {BEST: "*", SAME: "=", MAYBE: "~"}
"""Signs of marks in plain text."""


def as_text(pages: Pages) -> str:
    """Return the tables as aligned text; a sign after an error is its mark."""
    lines = [*pages.head, *(f"{SIGNS[mark]} {words}" for mark, words in pages.legend.items())]
    for sheet in pages.sheets:
        rows = [tuple(sheet.head), *(tuple(map(_signed, row)) for row in sheet.rows)]
        lines += ["", sheet.title, *(f"  {line}" for line in aligned(rows)), *(f"  {note}" for note in sheet.notes)]
    return "\n".join(lines)


def _signed(cell: Cell) -> str:
    return f"{cell.text} {SIGNS[cell.mark]}" if cell.mark in SIGNS else cell.text


def as_markdown(pages: Pages) -> str:
    """Return the tables in Markdown: the best in bold, what isn't significantly worse underlined."""
    styles = {BEST: "**{}**", SAME: "<u>{}</u>", MAYBE: "*{}*"}
    lines = list(pages.head)
    if words := _words(pages, "bold", "underlined", "in italics"):
        lines += ["", words]
    for sheet in pages.sheets:
        rows = [
            [styles.get(cell.mark or "", "{}").format(cell.text.replace("|", "\\|")) for cell in r] for r in sheet.rows
        ]
        body = [list(sheet.head), ["---"] * len(sheet.head), *rows]
        lines += ["", f"### {sheet.title}", "", *(f"| {' | '.join(row)} |" for row in body), ""]
        lines += [f"{note}\n" for note in sheet.notes]
    return "\n".join(lines)


def _words(pages: Pages, *styles: str) -> str:
    """Return the legend with words for the styles of marks."""
    named = dict(zip((BEST, SAME, MAYBE), styles, strict=True))
    return "; ".join(f"{named[mark]}: {words}" for mark, words in pages.legend.items())


LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "<": r"$<$", ">": r"$>$",
}  # fmt: skip


def as_latex(pages: Pages) -> str:
    """Return the tables as LaTeX: best in bold, not significantly worse underlined; needs no package."""
    styles = {BEST: r"\textbf{{{}}}", SAME: r"\underline{{{}}}", MAYBE: r"\textit{{{}}}"}
    lines = [f"% {line}" for line in pages.head]
    for sheet in pages.sheets:
        rows = [" & ".join(styles.get(c.mark or "", "{}").format(_latex(c.text)) for c in row) for row in sheet.rows]
        marked = any(cell.mark for row in sheet.rows for cell in row)
        words = _words(pages, "Bold", "underlined", "italic") if marked else ""
        caption = ". ".join(_latex(each) for each in (sheet.title, words, *sheet.notes) if each)
        lines += [
            "",
            r"\begin{table}",
            f"\\caption{{{caption}}}",
            r"\centering",
            f"\\begin{{tabular}}{{l{'r' * (len(sheet.head) - 1)}}}",
            r"\hline",
            " & ".join(map(_latex, sheet.head)) + r" \\",
            r"\hline",
            *(f"{row} \\\\" for row in rows),
            r"\hline",
            r"\end{tabular}",
            r"\end{table}",
        ]
    return "\n".join(lines) + "\n"


def _latex(text: str) -> str:
    return "".join(LATEX.get(letter, letter) for letter in text)


STYLE = (
    "body{font:15px sans-serif;margin:2em}table{border-collapse:collapse;margin:.5em 0 1em}"
    "td,th{padding:.2em .7em;text-align:right;border-bottom:1px solid #ddd}"
    "td:first-child,th:first-child{text-align:left}"
    ".best{font-weight:bold}.same{text-decoration:underline}.maybe{font-style:italic}p{margin:.2em 0}"
)


def as_html(pages: Pages) -> str:
    """Return the tables as one page that needs nothing else."""
    title = html.escape(pages.head[0])
    lines = [f"<!doctype html><meta charset='utf-8'><title>{title}</title><style>{STYLE}</style>", f"<h1>{title}</h1>"]
    told = [*pages.head[1:], _words(pages, "Bold", "underlined", "italic")]
    lines += [f"<p>{html.escape(line)}</p>" for line in told if line]
    for sheet in pages.sheets:
        head = "".join(f"<th>{html.escape(each)}</th>" for each in sheet.head)
        rows = ("".join(_html(cell) for cell in row) for row in sheet.rows)
        lines += [f"<h2>{html.escape(sheet.title)}</h2>", f"<table><tr>{head}</tr>"]
        lines += [*(f"<tr>{row}</tr>" for row in rows), "</table>"]
        lines += [f"<p>{html.escape(note)}</p>" for note in sheet.notes]
    return "\n".join(lines) + "\n"


def _html(cell: Cell) -> str:
    return f"<td{f' class={cell.mark}' if cell.mark else ''}>{html.escape(cell.text)}</td>"


WRITERS: Mapping[str, Callable[[Written], str]] = {
    ".txt": lambda written: as_text(written.pages),
    ".md": lambda written: as_markdown(written.pages),
    ".csv": lambda written: str(written.frame.to_csv(index=False)),
    ".tex": lambda written: as_latex(written.pages),
    ".html": lambda written: as_html(written.pages),
    ".json": lambda written: written.to_json(),
}
"""What writes a comparison or a curve, by the ending of the file's name."""


def check_table(path: str | os.PathLike[str]) -> None:
    """Raise OptionError where no tables can be written: the ending of the name is unknown, or the place can't be."""
    if Path(path).suffix.lower() not in WRITERS:
        raise OptionError(f"can't write tables to {path}: its name must end with {listing(WRITERS, 'or')}")
    check_writable(path)


class Written(Protocol):
    """What is told as tables: a comparison, a curve or a surface."""

    @property
    def pages(self) -> Pages:
        """What is printed, as tables of texts."""

    @property
    def frame(self) -> pd.DataFrame:
        """All of it as one table of numbers."""

    def to_json(self) -> str:
        """Return everything as one JSON document."""

    def summary(self) -> str:
        """Return the tables for people."""
        return as_text(self.pages)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tables to a file: text, Markdown, CSV, LaTeX, HTML or JSON, by the ending of its name.

        Raises
        ------
        OptionError
            The ending is unknown, or the file can't be written.
        """
        check_table(path)
        text = WRITERS[Path(path).suffix.lower()](self)
        atomic_write(path, lambda stream: stream.write(text.encode()))
