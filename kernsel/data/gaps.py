"""What stands for a value that is missing, and how that is said."""

from __future__ import annotations

GAPS = frozenset(
    {
        *("", "?", "-", "--", ".", "..", ":", "na", "NA", "Na", "n/a", "N/A", "n.a.", "N.A.", "#N/A", "#NA", "<NA>"),
        *("nan", "NaN", "NAN", "-nan", "-NaN", "null", "NULL", "Null", "None", "missing", "Missing", "MISSING"),
    }
)
WORDS = frozenset({"None", "Na"})
"""Gaps among numbers, and levels among words: None, Some, Marked; Na, Mg, Al."""
SURE = GAPS - WORDS - {"-"} | {"1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN", "#N/A N/A"}
"""What a file is parsed with: of words, and of a -, which is a sign where there is a +, a whole column decides."""
PADDED = frozenset(text for gap in GAPS for text in (gap, f" {gap}", f"{gap} "))
"""The texts of ``GAPS``, also with a space before or after."""
PADDED_WORDS = frozenset(text for gap in WORDS for text in (gap, f" {gap}", f"{gap} "))
"""The texts of ``WORDS``, also with a space before or after."""


def is_gap(text: str) -> bool:
    """Say whether a field stands for a value that is missing."""
    return text.strip() in GAPS


def share(count: int, n: int) -> str:
    """Return a share of rows as text."""
    percent = 100 * count / n
    return f"{percent:.2g} %" if percent < 10 else f"{percent:.0f} %"
