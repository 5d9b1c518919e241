"""How a selection is done again: the command, and the call in Python, from what was asked for."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from kernsel.selection.again import read_asked
from kernsel.selection.plan import WORDS
from kernsel.selection.result import Selection

TABLE = "table.csv"
"""Stands for a table that came from no file."""

FEW = 100
"""Values of an array that may be written out."""

_COLUMNS = {"weights": "weights", "groups": "groups", "folds": "fold_column"}
"""Options that name a column, by the argument in Python that its values are."""


def asked(selection: Selection) -> dict[str, Any]:
    """Return the options that aren't left to their defaults, in JSON's types; None where these can't hold a value."""
    columns = _columns(selection)
    given = read_asked(selection.options)
    return {name: as_plain(value) for name, value in given.items() if name not in columns}


def as_plain(value: Any) -> Any:
    """Return the value of an option in JSON's types, a part as it may be written; None if it can't be."""
    if isinstance(value, float) and math.isinf(value):
        return "inf"
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if hasattr(value, "spec"):
        return str(value)
    name = getattr(value, "name", None)
    if name is not None and is_dataclass(value):
        given = {each.name: getattr(value, each.name) for each in fields(value)}
        told = [
            f"{each.name}={as_plain(given[each.name])}" for each in fields(value) if given[each.name] != each.default
        ]
        return f"{name}({', '.join(told)})"
    if hasattr(value, "tolist") and getattr(value, "size", FEW + 1) <= FEW:
        return as_plain(value.tolist())
    items = list(value.values()) if isinstance(value, Mapping) else value
    if type(items) not in (list, tuple):
        return None
    plain = [as_plain(each) for each in items]
    if any(each is None for each in plain):
        return None
    return dict(zip(map(str, value), plain, strict=True)) if isinstance(value, Mapping) else plain


def command(selection: Selection) -> str:
    """Return a command line that selects again; what it can't say is said after ``#``."""
    read, columns, missing = _read(selection), _columns(selection), []
    words = ["kernsel", "select", *read["files"], "--target", ",".join(_targets(selection))]
    for name, column in columns.items():
        words += [f"--{_COLUMNS[name].replace('_', '-')}", column if isinstance(column, str) else name]
    if read["nested"] is not None:
        words += ["--nested", str(read["nested"])]
    for name, value in read["table"].items():
        words += _flag(name, value) if isinstance(value, bool) else [f"--{name}", str(value)]
    for name, value in asked(selection).items():
        told = _words_of(name, value)
        if told is None:
            missing.append(name)
        else:
            words += told
    return shlex.join(words) + (f"  # {', '.join(missing)}: as in Python" if missing else "")


def _flag(name: str, value: bool) -> list[str]:
    return [f"--{'' if value else 'no-'}{name.replace('_', '-')}"]


def _words_of(name: str, value: Any) -> list[str] | None:
    """Return an option as it is written on the command line; None if it can't be."""
    option = f"--{name.replace('_', '-')}"
    if WORDS[name].kind == "flag":
        return _flag(name, value)
    if value is True:  # what an option has that stands alone
        return [option]
    if value is None or (isinstance(value, Mapping) and name not in ("grid", "ordinal")):
        return None
    if isinstance(value, Mapping):
        joint = "<" if name == "ordinal" else ","
        pairs = {key: [each] if isinstance(each, str) else each for key, each in value.items()}
        rest = [word for each in pairs.pop("rest", ()) for word in (option, each)]
        return rest + [word for key, each in pairs.items() for word in (option, f"{key}={joint.join(map(str, each))}")]
    each_one = value if isinstance(value, list) else [value]
    return [word for each in each_one for word in (option, str(each))]


def call(selection: Selection) -> str:
    """Return statements of Python that select again, from the files of the table if these are known."""
    read, columns, targets = _read(selection), _columns(selection), _targets(selection)
    lines, given = ["import kernsel"], {name: name for name in columns}
    features, target = "X", "y"
    if "files" in selection.options.get("read", {}):
        how = ", reading=Reading(" + ", ".join(f"{name}={value!r}" for name, value in read["table"].items()) + ")"
        written = bool(read["table"])
        lines += [
            f"from kernsel.data import {'Reading, ' * written}read_table",
            "",
            f"table = read_table({read['files']!r}{how * written})",
        ]
        features = f"table.drop(columns={[*targets, *columns.values()]!r})"
        target = f"table[{(targets[0] if len(targets) == 1 else targets)!r}]"
        given = {name: f"table[{column!r}]" for name, column in columns.items()}
    for name, value in asked(selection).items():  # None stands for an array, or an object
        given[name] = "..." if value is None else "float('inf')" if value == "inf" else repr(value)
    arguments = [features, target, *(f"{name}={value}" for name, value in given.items())]
    return "\n".join([*lines, "selection = kernsel.select(", *(f"    {each}," for each in arguments), ")"])


def _read(selection: Selection) -> dict[str, Any]:
    return {"files": [TABLE], "nested": None, "table": {}, **selection.options.get("read", {})}


def _columns(selection: Selection) -> dict[str, Any]:
    return {name: selection.options[of] for name, of in _COLUMNS.items() if selection.options[of]}


def _targets(selection: Selection) -> Sequence[str]:
    target = selection.data["target"]
    return [target] if isinstance(target, str) else list(target)
