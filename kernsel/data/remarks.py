"""What is refused and said of the rows and features of any table, in one place or in parts."""

from __future__ import annotations

from collections.abc import Mapping

from kernsel.data.encoding import Encoder
from kernsel.errors import DataError

PLAIN_REASONS = ("constant", "without values")
"""Why a column is left out whatever is said about its type."""
MOST_REASONS = 4
"""Columns of which a message says why they were left out."""


def some_rows(count: int, n: int) -> str:
    """Say how many of n rows."""
    return f"{count} of {n} row{'s' * (n != 1)}"


def check_left(n: int, what: str) -> None:
    """Raise a DataError if fewer than two rows are left."""
    if n < 2:
        raise DataError(f"only {n} row{'s are' if n != 1 else ' is'} left, as the others have {what}")


def check_any_feature(encoder: Encoder, left_out: Mapping[str, str]) -> None:
    """Raise a DataError that says why columns were left out if an encoder has no feature."""
    if not encoder.features:
        reasons = [f"{name!r} is {reason}" for name, reason in left_out.items()]
        more = f" and {len(reasons) - MOST_REASONS} more" if len(reasons) > MOST_REASONS else ""
        why = f" ({', '.join(reasons[:MOST_REASONS])}{more})" if reasons else ""
        raise DataError(f"no column is left to learn from{why}; add features{_kept(left_out)}")


def _kept(left_out: Mapping[str, str]) -> str:
    """Say how to keep a column that isn't left out because it says nothing."""
    for name, reason in left_out.items():
        if reason not in PLAIN_REASONS and reason != "dropped":
            return f", or keep one: --{'categorical' if reason.startswith('text') else 'numeric'} {name!r}"
    return ""


def describe_weights(n: int, total: float) -> str:
    """Say what rows weigh."""
    return f"weights: {n} rows weigh {total:.6g} together; every mean over rows is weighted, that of the errors too"


def what_is_shared(encoder: Encoder) -> list[str]:
    """Say what the folds share."""
    scaled = bool((encoder.scale != 1.0).any() or (encoder.mean != 0.0).any())
    what = " and ".join(["scaling"] * scaled + ["encoding"] * bool(encoder.categories))
    once = f"{what}: fitted once on the whole table, because all folds share one Gram matrix"
    return [once] if what else []


def check_rows(n: int) -> None:
    """Raise a DataError if a table has too few rows."""
    if n < 2:
        raise DataError(f"the table has {n} row{'s' * (n != 1)}; a selection needs at least 2")
