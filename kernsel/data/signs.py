"""Numbers with a sign of currency or per cent beside each: ``$1,234.50``, ``-5 €``, ``4.5 %``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kernsel.data.columns import without_gaps
from kernsel.data.decimals import NUMERIC, SIGNS

if TYPE_CHECKING:
    import pandas as pd


def find_sign(column: pd.Series) -> str | None:
    """Return the sign that all numbers of a text column have beside them; None if there is none, or other text."""
    values = without_gaps(column).dropna().astype(str).str.strip()
    sign = next((each for each in SIGNS if len(values) and each in values.iloc[0]), None)
    if sign is None or not bool(values.str.count(re.escape(sign)).eq(1).all()):
        return None
    outside = values.str.fullmatch(rf"[+-]? ?{re.escape(sign)}.*|.*{re.escape(sign)}")
    return sign if bool((outside & without_sign(values, sign).str.fullmatch(NUMERIC)).all()) else None


def without_sign(column: pd.Series, sign: str) -> pd.Series:
    """Return a text column without a sign, what stands for a missing value missing."""
    texts = without_gaps(column).astype(object)

    def plain(text: str) -> str:
        return re.sub(r"^([+-]) +", r"\1", text.replace(sign, "").strip())

    return texts.map(plain, na_action="ignore").astype(column.dtype)


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
