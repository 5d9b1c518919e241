"""Text of people and for them: parts written as ``name(parameter=value, ...)``, and tables."""

from __future__ import annotations

import ast
import difflib
import json
import math
import re
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from typing import Any, Literal, TypeVar

from kernsel.errors import OptionError

Part = TypeVar("Part")

_WORDS = {"inf": math.inf, "true": True, "false": False, "none": None}
"""What may be written besides Python's literals."""


def parse(who: str, text: str) -> tuple[str, dict[str, Any]]:
    """Read ``name`` or ``name(parameter=value, ...)``; nothing is evaluated.

    Parameters
    ----------
    who : str
        What is being read, for messages.
    text : str
        The name may hold ``-``, ``.`` and ``:``; the values are Python literals, ``inf``, ``true``, ``false``,
        ``none``, or a word such as ``newton-cv``, which needs no quotes.

    Returns
    -------
    name : str
        The name before the parenthesis.
    values : dict
        The value of each parameter.

    Raises
    ------
    OptionError
        The text has another form, or a value is no literal.
    """
    match = re.fullmatch(r"\s*(?P<name>[\w.:-]+)\s*(?P<call>\(.*\))?\s*", text, re.DOTALL)
    if match is None:
        raise OptionError(f"{who} can't be read: write name or name(parameter=value, ...)")
    # The name is no Python name, so a plain one stands in for it.
    source = f"part{match['call'] or '()'}"
    try:
        call = ast.parse(source, mode="eval").body
    except SyntaxError as error:
        raise OptionError(f"{who} can't be read ({error.msg}): write name(parameter=value, ...)") from error
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
        raise OptionError(f"{who} can't be read: every value needs its parameter's name, as in name(parameter=value)")
    values: dict[str, Any] = {}
    for keyword in call.keywords:
        if keyword.arg is None or keyword.arg in values:
            raise OptionError(f"{who} can't be read: {ast.unparse(keyword)} is without a name or given twice")
        values[keyword.arg] = _literal(who, keyword, source)
    return match["name"], values


def make(who: str, part: type[Part], values: Mapping[str, object]) -> Part:
    """Make a dataclass from named values, with an error that helps where they don't suit its fields.

    Parameters
    ----------
    who : str
        What is being made, for messages.
    part : type
        A dataclass. It may say in ``elsewhere`` what to use instead of a parameter that it lacks.
    values : mapping
        The value of each field that is given.

    Returns
    -------
    object
        An instance of ``part``.

    Raises
    ------
    OptionError
        There is no such field, one is missing, or a value is of a wrong type or refused.
    """
    known = {field.name: field for field in fields(part) if field.init}  # type: ignore[arg-type]  # any dataclass
    for key in values:
        if key not in known:
            if elsewhere := getattr(part, "elsewhere", {}).get(key):
                raise OptionError(f"{who} has no parameter {key!r}: {elsewhere}")
            has = f"its parameters are {', '.join(known)}" if known else "it has none"
            raise OptionError(f"{who} has no parameter {key!r}{meant(key, known)} ({has})")
    if missing := [name for name, field in known.items() if name not in values and _required(field)]:
        raise OptionError(f"{who} needs a value for {listing(missing)}")
    hints = _hints(part)
    for key, value in values.items():
        if key in hints and not _fits(value, hints[key]):
            raise OptionError(f"{who} can't have {key}={value!r}: it must be {_readable(hints[key])}")
    try:
        return part(**values)
    except OptionError:
        raise
    except (TypeError, ValueError) as error:
        raise OptionError(f"{who} refuses its parameters: {first_line(error)}") from error


def split_list(text: str) -> list[str]:
    """Return the parts of a text at its commas, but those in parentheses."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def meant(name: str, available: Iterable[str], most: int = 1) -> str:
    """Return "; did you mean ...?" for the nearest of the available names, or so many of them, or nothing."""
    lower = {each.lower(): each for each in available}
    close = difflib.get_close_matches(name.lower(), lower, n=most)
    return f"; did you mean {listing([repr(lower[each]) for each in close], 'or')}?" if close else ""


def listing(words: Iterable[str], last: str = "and") -> str:
    """Return "a, b and c"."""
    *rest, final = words
    return f"{', '.join(rest)} {last} {final}" if rest else final


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message."""
    return (str(error).splitlines() or ["no message"])[0]


def to_json(document: object) -> str:
    """Return a document as JSON, with null for what is NaN or infinite: JSON has no such numbers."""
    try:
        return json.dumps(document, allow_nan=False, default=_plain)
    except ValueError:
        return json.dumps(json.loads(json.dumps(document, default=_plain), parse_constant=lambda _: None))


def finite_or_none(value: float | None) -> float | None:
    """Return a finite number as JSON can hold it, and None for any other."""
    return None if value is None or not math.isfinite(value) else float(value)


def _plain(value: object) -> Any:
    """Turn NumPy scalars into Python's."""
    return value.item() if hasattr(value, "item") else str(value)


def _literal(who: str, keyword: ast.keyword, source: str) -> Any:
    text = ast.get_source_segment(source, keyword.value) or ""
    if text in _WORDS:
        return _WORDS[text]
    if not isinstance(keyword.value, ast.Constant) and re.fullmatch(r"[^\W\d][\w.-]*", text):
        return text  # to Python newton-cv is a difference
    try:
        return ast.literal_eval(keyword.value)
    except ValueError as error:
        raise OptionError(
            f"{who} can't be read: {ast.unparse(keyword)} is no plain value; "
            "it can be a number, inf, a word, 'text', True, False or None"
        ) from error


def _required(field: Field[object]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _hints(part: type[object]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(part)
    except NameError:  # annotated with names that only type checkers import
        return {}


def _fits(value: object, hint: object) -> bool:
    """Tell whether a literal suits a field's annotation; what can't be decided here is left to the part."""
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, each) for each in typing.get_args(hint))
    if origin is Literal:
        return value in typing.get_args(hint)
    if hint in (int, float):
        return isinstance(value, int | hint) and not isinstance(value, bool)
    return origin is not None or not isinstance(hint, type) or isinstance(value, hint)


def _readable(hint: Any) -> str:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return listing([_readable(each) for each in typing.get_args(hint)], "or")
    if origin is Literal:
        return listing([repr(each) for each in typing.get_args(hint)], "or")
    plain = {float: "a number", int: "a whole number", str: "text", bool: "True or False", types.NoneType: "None"}
    return plain.get(hint, str(hint))


def aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the lines of a table of texts."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
