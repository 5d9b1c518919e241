"""What the papers print, and how it stands beside what is found."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from importlib.resources import files

import numpy as np

from kernsel.comparison.published import Printed, Published
from kernsel.comparison.result import Outcome, TableResult

FILE = "printed.txt"

ALIASES = {"ripley": "synthetic", "diabetis": "diabetes"}
"""Other names of tables."""

NEAR = 2.0
"""Standard errors of their difference within which two means agree."""


def read_printed(protocol: str) -> list[Printed]:
    """Return the figures of a protocol's paper."""
    return [
        each for each in _figures(files(__package__).joinpath(FILE).read_text("utf-8")) if each.protocol == protocol
    ]


def _figures(text: str) -> Iterator[Printed]:
    for section in re.split(r"^\[", text, flags=re.MULTILINE)[1:]:
        head, methods, *lines = section.strip().splitlines()
        protocol, place, case, what, unit, spread, runs = (part.strip() for part in head.rstrip("]").split("|"))
        names = [name.strip() for name in methods.split(",")[1:]]
        for line in lines:
            table, *cells = (cell.strip() for cell in line.split(","))
            for name, cell in zip(names, cells, strict=True):
                if cell == "-":
                    continue
                mean, *deviation = (float(unit) * float(number) for number in cell.split())
                error = deviation[0] if deviation else math.nan
                if spread == "deviation":
                    error /= math.sqrt(float(runs))
                yield Printed(protocol, place, case, table, name, what, mean, error)


def same_table(name: str, printed: str) -> bool:
    """Tell whether a table's name here is one of a paper: ``german_numer`` is ``german``."""
    one, other = (_plain(each) for each in (name, printed))
    return one.startswith(other) or other.startswith(one)


def _plain(name: str) -> str:
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    return next((new + plain[len(old) :] for old, new in ALIASES.items() if plain.startswith(old)), plain)


def beside(comparison: Outcome, protocol: str) -> list[Published]:
    """Return the printed figures of the tables, cases and methods that are compared."""
    found = []
    for each in read_printed(protocol):
        for result in comparison.results:
            fits = each.case in ("", result.case) and each.method in comparison.names and _is_of(result, each.what)
            if fits and same_table(result.table, each.table):
                j = list(comparison.names).index(each.method)
                values = result.errors[:, j]
                if each.what == "seconds":
                    values = np.array([split[j].seconds for split in result.trials])
                if np.isfinite(values).all():
                    error = float(values.std(ddof=1) / math.sqrt(values.size)) if values.size > 1 else math.nan
                    found.append(Published(each, result.table, float(values.mean()), error))
    return found


def _is_of(result: TableResult, what: str) -> bool:
    return what == "seconds" or (what == "error") == (result.task == "classification")


def words_of_agreement(published: Sequence[Published]) -> list[str]:
    """Say how far printed errors and those found here agree."""
    errors = [each for each in published if each.printed.what != "seconds" and math.isfinite(each.apart)]
    if not errors:
        return []
    near = sum(abs(each.apart) <= NEAR for each in errors)
    higher = sum(each.apart > NEAR for each in errors)
    return [
        f"of {len(errors)} printed mean errors {near} are within {NEAR:g} standard errors of those found here; "
        f"{higher} are lower in the paper, {len(errors) - near - higher} are higher"
    ]
