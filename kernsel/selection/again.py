"""A selection again: what its document must hold to be repeated, and how two documents are compared.

Kernsel is deterministic: on the same data, with the same options and software, all figures are the same to the last
bit.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from kernsel.errors import OptionError
from kernsel.journal.encoding import Unwritable, decode, encode
from kernsel.selection.plan import WORDS, Plan
from kernsel.selection.result import FORMAT, VERSION, Selection

UNKNOWN = "unknown"
"""What stands, with its type, for an option that has no exact form, such as a function."""

APART = ("timing", "environment")
"""Parts of a document that are of the run, not of its result."""

LISTED = 10
"""Differences that are listed for people."""


def with_origin(result: Selection, digest: str, plan: Plan) -> Selection:
    """Return a result with what it takes to repeat it: the fingerprint of its data, and the options as they were given.

    Parameters
    ----------
    digest : str
        The fingerprint.
    """
    data = {**result.data, "fingerprint": digest}
    return replace(result, data=data, options={**result.options, "asked": _asked(plan)})


def _asked(plan: Plan) -> dict[str, Any]:
    """Return the options that aren't left to their defaults, as JSON can hold them."""
    asked: dict[str, Any] = {}
    for name, value in plan.options.items():
        default = getattr(Plan, name)
        if value is default or (isinstance(value, str | int | float | tuple) and value == default):
            continue
        try:
            asked[name] = encode(value)
        except Unwritable:
            asked[name] = {UNKNOWN: type(value).__name__}
    return asked


class Unknown(NamedTuple):
    """Stands for a value that has no exact form.

    Parameters
    ----------
    type : str
        Its class.
    """

    type: str


def read_asked(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a document that weren't left to their defaults, as they were given.

    Parameters
    ----------
    options : mapping
        ``options`` of a document.

    Raises
    ------
    ValueError, KeyError, TypeError, AttributeError
        They aren't what ``with_origin`` keeps.
    """
    return {
        name: Unknown(form[UNKNOWN]) if isinstance(form, Mapping) and UNKNOWN in form else decode(form)
        for name, form in options["asked"].items()
        if name in WORDS
    }


@dataclass(frozen=True, eq=False)
class Origin:
    """What a document says of where it is from.

    Parameters
    ----------
    document : dict
    plan : Plan
        As it was asked for.
    read : dict
        How a command read its table: ``files``, ``target``, ``weights``, ``groups``, ``folds``, ``nested``, and how
        they are written.
    """

    document: dict[str, Any]
    plan: Plan
    read: dict[str, Any]

    @property
    def fingerprint(self) -> str:
        """That of the data."""
        found: str = self.document["data"]["fingerprint"]
        return found


def read_origin(path: str | os.PathLike[str]) -> Origin:
    """Read the document of a selection that is to be repeated.

    Raises
    ------
    OptionError
        It is no such document, is from before such things were kept, or was asked for by what has no exact form.
    """
    instead = "give a result that kernsel select --output wrote"
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
        if document["format"] != FORMAT or document["version"] != VERSION:
            raise OptionError(f"{path} is a {document['format']} of version {document['version']}; {instead}")
        options = document["options"]
        if "asked" not in options or "fingerprint" not in document["data"]:
            raise OptionError(f"{path} was written by a kernsel that didn't keep the options; select anew")
        read, asked = dict(options.get("read", {})), read_asked(options)
        if read.get("folds"):
            del asked["folds"]  # those of a column of the table
        for name, value in asked.items():
            if isinstance(value, Unknown):
                raise OptionError(f"{path} can't be repeated: option {name} was a {value.type} of Python")
        return Origin(document, Plan(**asked), read)
    except OSError as error:
        raise OptionError(f"can't read {path}: {error.strerror}; {instead}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, OptionError):
            raise
        raise OptionError(f"{path} isn't a result of a selection; {instead}") from error


@dataclass(frozen=True)
class Difference:
    """Where two documents differ.

    Parameters
    ----------
    where : str
        The keys on the way, with dots between.
    before, now : object
    """

    where: str
    before: Any
    now: Any

    @property
    def relative(self) -> float:
        """By how much of the larger of two numbers they differ; infinity of what aren't two numbers."""
        values = (self.before, self.now)
        if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
            return math.inf
        return float(abs(self.before - self.now) / max(map(abs, values)))


def differences(before: object, now: object, where: str = "") -> Iterator[Difference]:
    """Give where two documents differ, but for what is of their runs.

    Parameters
    ----------
    before, now : object
        As JSON holds them.
    where : str
        Where in the documents these are.
    """
    if isinstance(before, dict) and isinstance(now, dict):
        for key in {**before, **now}:
            if where or key not in APART:
                yield from differences(before.get(key), now.get(key), f"{where}.{key}" if where else key)
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for number, (one, other) in enumerate(zip(before, now, strict=True)):
            yield from differences(one, other, f"{where}.{number}")
    elif before != now or isinstance(before, bool) != isinstance(now, bool):
        yield Difference(where, before, now)


@dataclass(frozen=True)
class Comparison:
    """A document beside that of the same selection, made again.

    Parameters
    ----------
    software : list of Difference
        Of versions, threads and the machine.
    """

    found: list[Difference]
    software: list[Difference]

    @classmethod
    def of(cls, before: Mapping[str, object], now: Mapping[str, object]) -> Comparison:
        """Compare two documents."""
        environments = before.get("environment", {}), now.get("environment", {})
        return cls(list(differences(before, now)), list(differences(*environments, "environment")))

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as JSON can hold it."""
        found, software = ([dataclasses.asdict(each) for each in group] for group in (self.found, self.software))
        return {"format": "kernsel-rerun", "version": 1, "same": not self.found, "differences": found,
                "software": software}  # fmt: skip

    def summary(self) -> str:
        """Return it for people."""
        if not self.found:
            return "the same: all figures are equal to the last bit"
        chosen = [
            each for each in self.found if each.where.startswith(("best.kernel", "best.parameters", "best.lambda"))
        ]
        largest = max(each.relative for each in self.found)
        count, choice = len(self.found), "another one" if chosen else "the same"
        lines = [
            f"{count} value{'s differ' if count > 1 else ' differs'}; the choice is {choice}"
            + (f", and numbers differ by {largest:.1g} of their size at most" if math.isfinite(largest) else ""),
            *(f"  {each.where}: {each.before}, now {each.now}" for each in self.found[:LISTED]),
            *["  ..."] * (len(self.found) > LISTED),
        ]
        other = [f"{each.where.rpartition('.')[2]} {each.before}, now {each.now}" for each in self.software]
        return "\n".join([*lines, *([f"  made with other software: {'; '.join(other)}"] if other else [])])
