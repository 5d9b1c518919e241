"""What a part says of itself, for a reader who has to choose: read from its docstring and its attributes alone.

A plugin is explained as a built-in part is. Its class needs a docstring in numpydoc's form: a first sentence with the
formula, ``Parameters``, ``Notes`` with paragraphs that begin with ``Cost:``, ``Needs:``, ``Against:``, ``Weights:`` or
``Reference:``, and ``Examples``. A criterion may have an ``about`` (``kernsel.criteria.About``) in place of the notes.
"""

from __future__ import annotations

import dataclasses
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kernsel.text import listing

LABELS = {"cost": "cost", "needs": "needs", "against": "known against it", "weights": "weights", "reference": "source"}
"""The notes that a part may have, in the order of their display, with the words for them."""

WIDTH = 110


@dataclass(frozen=True)
class Parameter:
    """A parameter of a part.

    Parameters
    ----------
    kind : str
        What it may be: its type, and its range as far as the attributes of the part tell.
    default : str
        Its default in words; empty if it has none.
    text : str
        What it means.
    """

    name: str
    kind: str
    default: str
    text: str


@dataclass(frozen=True)
class Explanation:
    """What there is to know of a part.

    Parameters
    ----------
    what : str
        The first sentence of the docstring.
    more : tuple of str
        The paragraphs after it.
    properties : dict
        What the attributes say, by a word for each: the tasks of a learner, whether a kernel keeps rows sparse.
    notes : dict
        By the keys of ``LABELS``.
    example : str
        Commands or code that can be run; empty if there are none.
    """

    what: str
    more: tuple[str, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    example: str = ""

    def lines(self) -> Iterator[str]:
        """Yield the lines of the whole explanation, of ``WIDTH`` characters at most."""
        for paragraph in (self.what, *self.more):
            yield from _filled(paragraph, "  ", "  ")
            yield ""
        if self.parameters:
            yield "parameters"
            for each in self.parameters:
                default = f", by default {each.default}" if each.default else ""
                yield from _filled(f"{each.name}: {each.kind}{default}", "  ", "      ")
                yield from _filled(each.text, "      ", "      ")
            yield ""
        for label, text in (self.properties | {LABELS[key]: text for key, text in self.notes.items()}).items():
            yield from _filled(f"{label}: {text}", "", "  ")
        if self.example:
            yield ""
            yield "example"
            yield from ("  " + line for line in self.example.splitlines())

    def summary(self) -> Iterator[str]:
        """Yield the lines of a short form: the first sentence and the notes."""
        for text in (self.what, *(f"{LABELS[key]}: {text}" for key, text in self.notes.items())):
            yield from _filled(text, "  ", "    ")


def explain(kind: str, part: type[object]) -> Explanation:
    """Return what a part says of itself.

    Parameters
    ----------
    kind : {"kernel", "learner", "criterion"}
    part : type
        A frozen dataclass, as ``kernsel.registry.get`` gives it.
    """
    summary, sections = _sections(_docstring(part))
    what, *more = _paragraphs(summary) or ["Its authors say nothing of it."]
    notes, others = {}, []
    for paragraph in _paragraphs(sections.get("Notes", "")):
        label, _, text = paragraph.partition(": ")
        if label.lower() in LABELS:
            notes[label.lower()] = text
        else:
            others.append(paragraph)
    about = getattr(part, "about", None)
    if about is not None and ("about" in vars(part) or not notes):  # its own notes count more than a base's
        notes |= {key: text for key, text in dataclasses.asdict(about).items() if text}
    notes = {key: notes[key] for key in LABELS if key in notes}
    example = textwrap.dedent(sections.get("Examples", "").removeprefix("::\n")).strip("\n")
    return Explanation(what, (*more, *others), tuple(_parameters(kind, part)), _properties(kind, part), notes, example)


def _docstring(part: type[object]) -> str:
    """Return the class's own docstring; the signature that ``dataclass`` writes in its place is none."""
    text = vars(part).get("__doc__") or ""
    return "" if text.startswith(f"{part.__name__}(") else _plain(text)


def _plain(docstring: str) -> str:
    first, _, rest = docstring.partition("\n")
    return f"{first.strip()}\n{textwrap.dedent(rest)}".replace("``", "").strip()


def _sections(text: str) -> tuple[str, dict[str, str]]:
    """Return what stands above the first section of a docstring, and each section by its title."""
    summary, *pieces = re.split(r"^(\w[\w ]*)\n-{3,}\n", text, flags=re.MULTILINE)
    return summary, dict(zip(pieces[::2], pieces[1::2], strict=True))


def _paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a text, each in one line; Sphinx alone needs a second colon before a block."""
    found = [" ".join(each.split()) for each in re.split(r"\n\s*\n", text) if each.strip()]
    return [each.removesuffix(":") if each.endswith("::") else each for each in found]


def _parameters(what: str, part: type[Any]) -> Iterator[Parameter]:
    documented: dict[str, tuple[str, str]] = {}
    for owner in reversed(part.__mro__):  # a subclass has the last word
        documented |= _documented(_sections(_docstring(owner))[1].get("Parameters", ""))
    for each in sorted(dataclasses.fields(part), key=lambda field: bool(field.kw_only)):
        if each.init:
            kind, text = documented.get(each.name, (getattr(each.type, "__name__", str(each.type)), ""))
            bounds = _range(part, each.name)
            yield Parameter(each.name, f"{kind}, {bounds}" if bounds else kind, _default(each, what), text)


def _documented(section: str) -> dict[str, tuple[str, str]]:
    """Return type and meaning of each parameter of a section ``Parameters``."""
    found: dict[str, tuple[str, str]] = {}
    for entry in re.split(r"\n(?=\S)", section.strip()):
        head, _, text = entry.partition("\n")
        names, _, kind = head.partition(" : ")
        found |= {name.strip(): (kind, " ".join(text.split())) for name in names.split(",")}
    return found


def _range(part: type[object], name: str) -> str:
    """Return the range of a parameter in words, as far as the attributes of the part tell it."""
    if words := getattr(part, "words", {}).get(name):
        return f"one of {listing(words, 'or')}"
    bounds = ["whole"] * (name in getattr(part, "integer", ()))
    positive = getattr(part, "positive", ())  # a criterion may have a property of this name
    if isinstance(positive, tuple) and name in positive:
        bounds.append("greater than 0")
    elif name in getattr(part, "searchable", ()):
        bounds.append("at least 0")
    return " and ".join(bounds)


def _default(parameter: dataclasses.Field[object], what: str) -> str:
    """Return the default of a parameter in words."""
    if parameter.default is None and what == "kernel":
        return "free"
    return "" if parameter.default is dataclasses.MISSING else f"{parameter.default}"


def _properties(kind: str, part: type[Any]) -> dict[str, str]:
    """Return what the attributes of a part say, in words."""
    if kind == "kernel":
        found: dict[str, str] = {"sparse rows": "stay sparse" if getattr(part, "sparse", False) else "are made dense"}
        width = getattr(part, "width", None)
        return {**found, **({"width": f"{width}; ties go to the wider kernel"} if width else {})}
    if kind == "learner":
        searchable = getattr(part, "searchable", ())
        return {"for": listing(part.tasks), **({"can be searched": listing(searchable)} if searchable else {})}
    found = {"refined by gradient": "yes"} if hasattr(part, "gradient") and not hasattr(part, "measure") else {}
    return {**found, **({"without a minimum": part.unbounded} if hasattr(part, "unbounded") else {})}


def _filled(text: str, first: str, others: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=others, break_on_hyphens=False)
