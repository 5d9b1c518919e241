"""A selection as one page of HTML that needs nothing else: no network, no fonts, no scripts from elsewhere.

What comes from a table (names, labels, notes) is escaped. The page can be read without its script, which sorts the
candidates and no more.
"""

from __future__ import annotations

import html
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

from kernsel.data.files import atomic_write, check_writable
from kernsel.kernels import short
from kernsel.report.again import asked, call, command
from kernsel.report.pictures import PICTURES, figure_of, known_of, names_for
from kernsel.report.style import can_draw, check_page, inline_svg
from kernsel.report.surface import is_unreliable
from kernsel.search.candidate import Candidate
from kernsel.selection.result import Selection
from kernsel.version import __version__

START = "<!doctype html>\n<!-- a report of kernsel -->\n"
"""How the file begins, by which an older report is known that may be overwritten."""

MOST = 1000
"""Candidates in the table; a browser sorts these at once."""


class Figure(NamedTuple):
    """A number of a table, and how it is written there."""

    value: float | None
    text: str


def write_report(selection: Selection, path: str | os.PathLike[str]) -> None:
    """Write a selection as one page of HTML: the answer, how sure it is, pictures, candidates, and how to do it again.

    Raises
    ------
    OptionError
        The file can't be written.
    """
    check_page(path)
    check_writable(path)
    page = make_page(selection)
    atomic_write(path, lambda stream: stream.write(page.encode()))


def make_page(selection: Selection) -> str:
    """Return a selection as one page of HTML."""
    source, target = selection.data["source"], _listed(selection.data["target"])
    title = f"{target} by {selection.learner}" + (f", {os.path.basename(source)}" if source else "")
    folder = files("kernsel.report")
    sections = [
        ("answer", "The answer", _answer(selection)),
        ("warnings", "Warnings", _warnings(selection)),
        ("why", "Why this candidate", _why(selection)),
        ("pictures", "Pictures", _pictures(selection)),
        ("candidates", "Candidates", _candidates(selection)),
        ("asked", "What was asked", _asked(selection)),
        ("table", "The table", _table(selection)),
        ("again", "How to do it again", _again(selection)),
    ]
    links = "".join(f'<li><a href="#{name}">{heading}</a></li>' for name, heading, _text in sections)
    body = "".join(
        f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{heading}</h2>{text}</section>\n'
        for name, heading, text in sections
    )
    return (
        f'{START}<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{safe(title)}</title><style>{(folder / 'page.css').read_text('utf-8')}</style></head>\n<body>"
        '<a class="skip" href="#answer">Skip to the answer</a>'
        f"<header><h1>{safe(title)}</h1><p>{safe(selection.choice())}</p></header>"
        f'<nav aria-label="Sections"><ul>{links}</ul></nav>\n<main>{body}</main>\n'
        f"<footer><p>{safe(_made(selection))}</p></footer>"
        f"<script>{(folder / 'page.js').read_text('utf-8')}</script></body></html>\n"
    )


def _answer(selection: Selection) -> str:
    """The model, what it errs, what a constant errs, and how sure that is."""
    known, baseline, best = selection.procedure, selection.data.get("baseline"), selection.best
    terms = ", ".join(f"{name} = {value:.4g}" for name, value in selection.conversions.items())
    own = selection.figure(best.error, best.error_se)
    shown: list[tuple[str, str, str]] = [
        ("Model", selection.choice(), f"in scikit-learn's terms: {terms}" * bool(terms))
    ]
    if known is not None:
        ends = f"{100 * known.level:g} %: {selection.figure(known.low)} to {selection.figure(known.high)}"
        shown.append(("Error of the whole selection", selection.figure(known.error), f"{selection.measure()}; {ends}"))
    shown.append(("Held-out error of the choice itself", own, f"{selection.measure()}; {selection.data['holdout']}"))
    if baseline is not None:
        error = selection.figure(baseline["error"], baseline["error_se"])
        shown.append(("Without features", error, f"by {baseline['predicts']} of the training rows"))
    if equal := selection.equivalents():
        count, _of, rest = equal.partition(" do")
        shown.append(("How sure", count, f"do{rest}"))
    if (proof := selection.certificate) is not None:
        shown.append(("Certificate", "proved" if proof.proved else "not proved", proof.describe()))
    shown += [
        (f"Held-out {name}", _number(m.value), f"standard error {_number(m.se)}") for name, m in best.metrics.items()
    ]
    cards = "".join(
        f"<div><dt>{safe(name)}</dt><dd><b>{safe(value)}</b> <span>{safe(more)}</span></dd></div>"
        for name, value, more in shown
    )
    nested = "" if selection.nested is None else f"<pre>{safe(selection.nested.summary())}</pre>"
    return f'<dl class="cards">{cards}</dl>{nested}'


def _warnings(selection: Selection) -> str:
    if not selection.warnings:
        return "<p>None.</p>"
    return f'<ul class="warnings">{_items(selection.warnings)}</ul>'


def _why(selection: Selection) -> str:
    """How the choice was made, beside the lowest score."""
    best, lowest = selection.best, selection.minimum
    text = f"<p>The rule: {safe(selection.data['choice'])}.</p>"
    if lowest is not None and lowest.key != best.key:
        heads = ["", "kernel", "lambda", "score", "error", "norm"]
        rows = [
            [
                name,
                short(c.kernel),
                f"{c.lam:.4g}",
                f"{c.value:.5g}",
                selection.figure(c.error, c.error_se),
                _number(c.norm),
            ]
            for name, c in (("the choice", best), ("the lowest score", lowest))
        ]
        text += _rows_and_heads("The choice beside the lowest score", heads, rows)
    notes = [note for note in selection.data["notes"] if not note.startswith(("target:", "task:"))]
    return (
        f"{text}<p>The score {safe(selection.criterion)} is {safe(selection.data['measure'])}; leading candidates were "
        f"verified: {safe(selection.data['verification'])}.</p><ul>{_items(notes)}</ul>"
    )


def _pictures(selection: Selection) -> str:
    if not can_draw():
        return "<p>Pictures need matplotlib: <code>pip install 'kernsel[plot]'</code>.</p>"
    shown = []
    for name in names_for(known_of(selection)):
        picture = PICTURES[name]
        svg = inline_svg(figure_of(selection, name))
        shown.append(
            f'<figure><div role="img" tabindex="0" aria-label="{safe(picture.title)}: {safe(picture.says)}">{svg}</div>'
            f"<figcaption><b>{safe(picture.title)}.</b> {safe(picture.says)}</figcaption></figure>"
        )
    return f'<div class="pictures">{"".join(shown)}</div>'


def _candidates(selection: Selection) -> str:
    """All candidates, best first."""
    heads = [
        "rank",
        "kernel",
        *selection.best.tuned,
        "lambda",
        selection.criterion,
        "verified",
        "error",
        "norm",
        "rho",
        "what is known",
    ]
    rows = [_candidate(selection, number, each) for number, each in enumerate(selection.candidates[:MOST], start=1)]
    left = len(selection.candidates) - MOST
    more = f"<p>{left} more are in the JSON document alone.</p>" if left > 0 else ""
    return _rows_and_heads("All candidates, best first", heads, rows, sortable=True) + more


def _candidate(selection: Selection, number: int, candidate: Candidate) -> list[Any]:
    equal = selection.comparison is not None and selection.comparison.pair(candidate).equivalent
    told = {
        "the choice": candidate is selection.best,
        "lowest score": selection.minimum is not None and candidate.key == selection.minimum.key,
        "can't be told from the lowest": bool(equal),
        "approximation not trusted": is_unreliable(candidate),
        f"left at rank {candidate.rank}": candidate.rank is not None,
        f"failed: {candidate.failed}": candidate.failed is not None,
    }
    known = candidate.failed is None
    return [
        number,
        short(candidate.kernel),
        *candidate.tuned.values(),
        candidate.lam,
        candidate.score if known else None,
        candidate.verified if known else None,
        Figure(candidate.error, selection.figure(candidate.error, candidate.error_se)),
        candidate.norm,
        Figure(0.0, "exact") if candidate.exact else candidate.reliability,
        ", ".join(name for name, holds in told.items() if holds),
    ]


def _asked(selection: Selection) -> str:
    given = asked(selection)
    if not given:
        return "<p>Everything by default.</p>"
    rows = [
        [name, "an object of Python" if value is None else ", ".join(value) if _is_texts(value) else str(value)]
        for name, value in given.items()
    ]
    return "<p>Everything else by default.</p>" + _rows_and_heads("Options that were given", ["option", "value"], rows)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _table(selection: Selection) -> str:
    """What the table is, and what became of its columns."""
    data, target = selection.data, safe(_listed(selection.data["target"]))
    first = f"<p>{data['rows']} rows, {data['features']} features. The target is {target} ({data['task']})."
    notes = [note for note in data["notes"] if note.startswith(("target:", "task:"))]
    notes.append(f"representation: {data['representation']}")
    text = f"{first}</p><ul>{_items(notes)}</ul>"
    if not data["columns"]:
        return text
    rows = [
        [each["name"], each["type"] or "", f"{100 * each['missing']:.3g} %", each["left_out"] or ""]
        for each in data["columns"]
    ]
    return text + _rows_and_heads("Columns", ["column", "type", "missing", "left out because"], rows[:MOST])


def _again(selection: Selection) -> str:
    return (
        f"<h3>On the command line</h3>{_code(command(selection))}<h3>In Python</h3>{_code(call(selection))}"
        "<p>The choice is the same for any number of threads.</p>"
    )


def _code(text: str) -> str:
    return f'<pre tabindex="0"><code>{safe(text)}</code></pre>'


def _rows_and_heads(
    caption: str, heads: Sequence[str], rows: Iterable[Sequence[object]], sortable: bool = False
) -> str:
    """Return a table of HTML that scrolls by itself where it is too wide; numbers keep their values for the sorting."""
    head = "".join(f'<th scope="col">{safe(each)}</th>' for each in heads)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    kind = ' class="sortable"' if sortable else ""
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{safe(caption)}">'
        f"<table{kind}><caption>{safe(caption)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(value: object) -> str:
    if value is None or isinstance(value, int | float):
        value = Figure(value, _number(value))
    if isinstance(value, Figure):
        exact = "" if value.value is None else f' data-value="{float(value.value)!r}"'
        return f'<td class="number"{exact}>{safe(value.text)}</td>'
    return f"<td>{safe(value)}</td>"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.5g}"


def _items(texts: Iterable[str]) -> str:
    return "".join(f"<li>{safe(text)}</li>" for text in texts)


def _made(selection: Selection) -> str:
    """Say what made the page."""
    software: Mapping[str, Any] = selection.environment
    versions = ", ".join(f"{name} {software[name]}" for name in ("python", "numpy", "scipy", "numba"))
    return (
        f"kernsel {__version__} ({versions}; {software['threads']} threads, {software['platform']}): "
        f"{len(selection.candidates)} candidates in {selection.timing['total']:.2f} s"
    )


def _listed(target: str | Sequence[str]) -> str:
    return target if isinstance(target, str) else ", ".join(target)


def safe(text: object) -> str:
    """Return text as HTML shows it."""
    return html.escape(str(text), quote=True)
