"""Numbers with a sign of currency or per cent beside each: ``$1,234.50``, ``-5 €``, ``4.5 %``.

They are read without it, and it stays known: of a table that was read from a file in ``attrs[SIGNS_READ]``, by the
names of columns, and of a model in its encoder.
"""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from kernsel.data.decimals import NUMERIC, SIGNS, Marks
from kernsel.errors import DataError
from kernsel.types import Array, Mask

if TYPE_CHECKING:
    import pandas as pd

PER_CENT = "%"
SIGNS_READ = "kernsel signs"
"""Where ``attrs`` of a table has the signs that its numbers were read without."""
Signs: TypeAlias = "dict[str, frozenset[str | None]]"
"""What rows have beside their numbers, by column: None stands for bare numbers."""


def find_sign(column: pd.Series) -> str | None:
    """Return the sign that all numbers of a text column without gaps' marks have beside them; None for other text."""
    values = column.dropna()
    sign = next((each for each in SIGNS if len(values) and each in str(values.iloc[0])), None)
    if sign is None:
        return None
    return sign if bool(are_signed(values, sign).all()) else None


def are_signed(texts: pd.Series, sign: str) -> Mask:
    """Say which texts (n,) are numbers with a sign beside each, once."""
    texts = texts.astype(str).str.strip()
    once = texts.str.count(re.escape(sign)).eq(1)
    outside = texts.str.fullmatch(rf"[+-]? ?{re.escape(sign)}.*|.*{re.escape(sign)}")
    return np.asarray(once & outside & without_sign(texts, sign).str.fullmatch(NUMERIC), dtype=bool)


def without_sign(column: pd.Series, sign: str) -> pd.Series:
    """Return a text column without a sign."""

    def plain(text: str) -> str:
        return re.sub(r"^([+-]) +", r"\1", text.replace(sign, "").strip())

    return column.astype(object).map(plain, na_action="ignore").astype(column.dtype)


def read_signed(column: pd.Series, sign: str, decimal: str, thousands: str | None) -> pd.Series:
    """Return a text column whose numbers have a sign beside them, or "", as numbers, or as it is if marks are wrong."""
    import pandas as pd

    texts = without_sign(column, sign)
    if thousands is not None:
        texts = texts.str.replace(thousands, "", regex=False)
    if decimal != ".":
        texts = texts.str.replace(decimal, ".", regex=False)
    try:
        return pd.to_numeric(texts)
    except ValueError:
        return column


def read_marked(column: pd.Series) -> Array | None:
    """Return a text column whose numbers have one sign beside them, and a decimal point, as numbers; None for others.

    NaN stands where a value is missing. What other columns of a table show of commas and points isn't known here: a
    column that leaves open what they are is none of those.
    """
    sign = find_sign(column)
    if sign is None:
        return None
    marks = Marks()
    marks.add(without_sign(column, sign).dropna().unique())
    decimal, thousands = marks.decide(None, None) or (None, None)
    if decimal != ".":
        return None
    read = read_signed(column, sign, decimal, thousands)
    return None if read is column else np.asarray(read.to_numpy(dtype=np.float64, na_value=np.nan))


def are_at_odds(one: str | None, other: str | None) -> bool:
    """Say whether numbers with a sign, or None, can't be compared with those that have another: money may be bare."""
    return one != other and (PER_CENT in (one, other) or None not in (one, other))


def check_sign(name: str, given: str | None, learnt: str | None, first: float) -> None:
    """Raise a DataError if the numbers of a column have another sign beside them than those a model was selected on.

    Whether a bare .05 means 5 % or .05 %, nothing in a table tells.

    Parameters
    ----------
    given, learnt : str or None
        The signs of the table and of the model's, None for bare numbers.
    first : float
        The first of the table's numbers, for the message.
    """
    if not are_at_odds(given, learnt):
        return
    if given is None:
        way = f"write {learnt} beside each, {100 * first:g}% for {first:g} if they are shares"
        what = f"bare numbers (first: {first:g}), where the model was selected on per cent"
    elif learnt is None:
        what = f"per cent (first: {first:g}%), where the model was selected on bare numbers"
        way = f"write them as those are, such as {first:g} or {first / 100:g}"
    else:
        what = f"numbers with {given} (first: {first:g}), where the model was selected on numbers with {learnt}"
        way = f"convert them, and write {learnt} beside each"
    raise DataError(f"column {name!r} holds {what}; {way}")


def join_signs(one: Signs, other: Signs) -> Signs:
    """Return the signs of columns in some rows and in others."""
    return {name: one.get(name, frozenset()) | other.get(name, frozenset()) for name in {**one, **other}}


def single_sign(name: str, signs: frozenset[str | None], where: str) -> str | None:
    """Return the sign of a column whose rows are in parts; DataError if it isn't that of all parts.

    Parameters
    ----------
    signs : frozenset of str or None
        Those that parts have, None for bare numbers.
    where : str
        What the parts are, for the message.
    """
    given = sorted(sign for sign in signs if sign is not None)
    for one, other in combinations([*given, *([None] if None in signs else [])], 2):
        if are_at_odds(one, other):
            raise DataError(
                f"column {name!r} has {one} beside its numbers in some {where} and {other or 'nothing'} in others; "
                "make them alike"
            )
    return given[0] if given else None
