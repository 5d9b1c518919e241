"""A comparison as text, Markdown, CSV, LaTeX, HTML or JSON."""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from kernsel.comparison.result import BEST, MAYBE, SAME, Outcome
from kernsel.comparison.sheets import Cell, Sheet, duels_sheet, head_of, legend, methods_sheet, sheets
from kernsel.data.files import atomic_write, check_writable
from kernsel.errors import OptionError
from kernsel.text import aligned, listing

SIGNS = {BEST: "*", SAME: "=", MAYBE: "~"}
"""Signs of marks in plain text."""


def _all_sheets(comparison: Outcome) -> list[Sheet]:
    found = sheets(comparison)
    if len({each.table for each in comparison.results}) > 1:
        found += [duels_sheet(comparison, case) for case in comparison.cases]
    return [*found, methods_sheet(comparison)]


def as_text(comparison: Outcome) -> str:
    """Return the tables as aligned text; a sign after an error is its mark."""
    lines = list(head_of(comparison))
    if comparison.splits > 1:
        lines += [f"{SIGNS[mark]} {words}" for mark, words in legend(comparison).items()]
    for sheet in _all_sheets(comparison):
        rows = [tuple(sheet.head), *(tuple(map(_signed, row)) for row in sheet.rows)]
        lines += ["", sheet.title, *(f"  {line}" for line in aligned(rows)), *(f"  {note}" for note in sheet.notes)]
    return "\n".join(lines)


def _signed(cell: Cell) -> str:
    return f"{cell.text} {SIGNS[cell.mark]}" if cell.mark in SIGNS else cell.text


def as_markdown(comparison: Outcome) -> str:
    """Return the tables in Markdown: the best in bold, what isn't significantly worse underlined."""
    styles = {BEST: "**{}**", SAME: "<u>{}</u>", MAYBE: "*{}*"}
    lines = [*head_of(comparison), "", _words(comparison, "bold", "underlined", "in italics")]
    for sheet in _all_sheets(comparison):
        rows = [
            [styles.get(cell.mark or "", "{}").format(cell.text.replace("|", "\\|")) for cell in r] for r in sheet.rows
        ]
        body = [list(sheet.head), ["---"] * len(sheet.head), *rows]
        lines += ["", f"### {sheet.title}", "", *(f"| {' | '.join(row)} |" for row in body), ""]
        lines += [f"{note}\n" for note in sheet.notes]
    return "\n".join(lines)


def _words(comparison: Outcome, *styles: str) -> str:
    """Return the legend with words for the styles of marks."""
    meant = legend(comparison)
    named = dict(zip((BEST, SAME, MAYBE), styles, strict=True))
    return "; ".join(f"{named[mark]}: {words}" for mark, words in meant.items())


def as_csv(comparison: Outcome) -> str:
    """Return every trial: one line for each case, table, split and method."""
    return str(comparison.frame.to_csv(index=False))


LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "<": r"$<$", ">": r"$>$",
}  # fmt: skip


def as_latex(comparison: Outcome) -> str:
    """Return the tables as LaTeX: best in bold, not significantly worse underlined; needs no package."""
    styles = {BEST: r"\textbf{{{}}}", SAME: r"\underline{{{}}}", MAYBE: r"\textit{{{}}}"}
    lines = [f"% {line}" for line in head_of(comparison)]
    for sheet in _all_sheets(comparison):
        rows = [" & ".join(styles.get(c.mark or "", "{}").format(_latex(c.text)) for c in row) for row in sheet.rows]
        marked = any(cell.mark for row in sheet.rows for cell in row)
        words = _words(comparison, "Bold", "underlined", "italic") if marked else ""
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


def as_html(comparison: Outcome) -> str:
    """Return the tables as one page that needs nothing else."""
    title = html.escape(head_of(comparison)[0])
    lines = [f"<!doctype html><meta charset='utf-8'><title>{title}</title><style>{STYLE}</style>", f"<h1>{title}</h1>"]
    lines += [f"<p>{html.escape(line)}</p>" for line in head_of(comparison)[1:]]
    lines.append(f"<p>{html.escape(_words(comparison, 'Bold', 'underlined', 'italic'))}</p>")
    for sheet in _all_sheets(comparison):
        head = "".join(f"<th>{html.escape(each)}</th>" for each in sheet.head)
        rows = ("".join(_html(cell) for cell in row) for row in sheet.rows)
        lines += [f"<h2>{html.escape(sheet.title)}</h2>", f"<table><tr>{head}</tr>"]
        lines += [*(f"<tr>{row}</tr>" for row in rows), "</table>"]
        lines += [f"<p>{html.escape(note)}</p>" for note in sheet.notes]
    return "\n".join(lines) + "\n"


def _html(cell: Cell) -> str:
    return f"<td{f' class={cell.mark}' if cell.mark else ''}>{html.escape(cell.text)}</td>"


WRITERS: Mapping[str, Callable[[Outcome], str]] = {
    ".txt": as_text,
    ".md": as_markdown,
    ".csv": as_csv,
    ".tex": as_latex,
    ".html": as_html,
    ".json": Outcome.to_json,
}
"""What writes a comparison, by the ending of the file's name."""


def check_table(path: str | os.PathLike[str]) -> None:
    """Raise OptionError where no tables can be written: the ending of the name is unknown, or the place can't be."""
    if Path(path).suffix.lower() not in WRITERS:
        raise OptionError(f"can't write tables to {path}: its name must end with {listing(WRITERS, 'or')}")
    check_writable(path)


def save(comparison: Outcome, path: str | os.PathLike[str]) -> None:
    """Write the tables to a file, in the form that the ending of its name says.

    Parameters
    ----------
    comparison : Outcome
    path : str or path

    Raises
    ------
    OptionError
        The ending is unknown, or the file can't be written.
    """
    check_table(path)
    text = WRITERS[Path(path).suffix.lower()](comparison)
    atomic_write(path, lambda stream: stream.write(text.encode()))
