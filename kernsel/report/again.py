"""How a selection is done again: the command, and the call in Python, from what was asked for."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kernsel.data import Reading
from kernsel.selection.plan import WORDS
from kernsel.selection.result import Selection

TABLE = "table.csv"
"""Stands for a table that came from no file."""

_COLUMNS = {"weights": "weights", "groups": "groups", "folds": "fold_column"}
"""Options that name a column, by the argument in Python that its values are."""


class Origin(NamedTuple):
    """Where the table of a selection on the command line came from.

    Parameters
    ----------
    command : str
        As it was given.
    paths : sequence of str
    reading : Reading
        How the files are written.
    """

    command: str
    paths: Sequence[str]
    reading: Reading


def command(selection: Selection) -> str:
    """Return a command line that selects again; what it can't say is said after ``#``."""
    options = selection.options
    words = ["kernsel", "select", TABLE, "--target", ",".join(_targets(selection))]
    missing, columns = [], {name: options[option] for name, option in _COLUMNS.items() if options[option]}
    for name, column in columns.items():
        words += [f"--{_COLUMNS[name].replace('_', '-')}", column if isinstance(column, str) else name]
    for name, value in options["asked"].items():
        if name in columns:
            continue
        told = _words_of(name, value)
        if told is None:
            missing.append(name)
        else:
            words += told
    return shlex.join(words) + (f"  # {', '.join(missing)}: as in Python" if missing else "")


def _words_of(name: str, value: Any) -> list[str] | None:
    """Return an option as it is written on the command line; None if it can't be."""
    option, kind = f"--{name.replace('_', '-')}", WORDS[name].kind
    if kind == "flag":
        return [option if value else option.replace("--", "--no-", 1)]
    if value is None or (isinstance(value, Mapping) and name not in ("grid", "ordinal")):
        return None
    if isinstance(value, Mapping):
        joint = "<" if name == "ordinal" else ","
        pairs = {key: [each] if isinstance(each, str) else each for key, each in value.items()}
        rest = [word for each in pairs.pop("rest", ()) for word in (option, each)]
        return rest + [word for key, each in pairs.items() for word in (option, f"{key}={joint.join(map(str, each))}")]
    each_one = value if isinstance(value, list) else [value]
    return [word for each in each_one for word in (option, str(each))]


def call(selection: Selection, origin: Origin | None = None) -> str:
    """Return statements of Python that select again, from the files of the table if these are known."""
    options = selection.options
    columns = {name: options[option] for name, option in _COLUMNS.items() if options[option]}
    asked = {name: value for name, value in options["asked"].items() if name not in columns}
    lines, targets = ["import kernsel"], _targets(selection)
    given = {name: name for name in columns}
    features, target = "X", "y"
    if origin is not None:
        written = {name: value for name, value in dataclasses.asdict(origin.reading).items() if value is not None}
        how = ", reading=Reading(" + ", ".join(f"{name}={value!r}" for name, value in written.items()) + ")"
        lines += [
            f"from kernsel.data import {'Reading, ' * bool(written)}read_table",
            "",
            f"table = read_table({list(origin.paths)!r}{how * bool(written)})",
        ]
        features = f"table.drop(columns={[*targets, *columns.values()]!r})"
        target = f"table[{(targets[0] if len(targets) == 1 else targets)!r}]"
        given = {name: f"table[{column!r}]" for name, column in columns.items()}
    given |= {name: "float('inf')" if value == "inf" else repr(value) for name, value in asked.items()}
    given |= {name: "..." for name, value in asked.items() if value is None}  # an array, or an object
    arguments = [features, target, *(f"{name}={value}" for name, value in given.items())]
    return "\n".join([*lines, "selection = kernsel.select(", *(f"    {each}," for each in arguments), ")"])


def _targets(selection: Selection) -> Sequence[str]:
    target = selection.data["target"]
    return [target] if isinstance(target, str) else list(target)
