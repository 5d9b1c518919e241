"""One column of a table: whether it holds numbers, and whether they can be used."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kernsel.data.dates import LIKE_DATES, LIKE_ISO
from kernsel.data.decimals import NUMERIC, SIGNS
from kernsel.data.gaps import PADDED, PADDED_WORDS
from kernsel.data.signs import SIGNS_READ, are_signed, find_sign, read_marked
from kernsel.errors import DataError
from kernsel.numerics.points import Points, as_points, dense, is_sparse
from kernsel.types import Array, Indices, Mask

if TYPE_CHECKING:
    import pandas as pd

MAX_DENSE_BYTES = 8 * 2**30
"""Sparse rows that would need more than this as a dense array are refused where they have to be dense."""
MAX_FEATURES = 2**24
"""A sparse matrix may have no more columns: each has a name and a scale, whether it is used or not."""
LARGEST = 1e150
"""Beyond this a square overflows, and with it every distance."""
MOST_TOPS = 5
"""So many first rows that hold text above numbers may be further lines of names."""
FEW = 20
"""A text column with more distinct numbers than this, among little else, is taken for numbers with a flaw."""
NUMBER_LIKE = r"[^A-Za-z]*\d[^A-Za-z]*"
"""Digits with thousands separators, signs of currency, per cent, or a date."""

CODES = r"\d+([-/]\d+)+|\d+((, |; ?)\d+)+"
"""Numbers one after another, such as 01-701-1015, 195/60, or a list: several, not one with marks."""
WITH_UNIT = r"[<>~±]?\s*" + NUMERIC + r"\s*[A-Za-zµ°%\"'/]{0,5}\d?\W*"
"""A number, maybe with its unit: one with a flaw."""
MARKED = r"[+-]?[$€£¥]? ?" + NUMERIC + r" ?[%$€£¥]?"
"""A number with separators of thousands, a sign of currency or per cent."""
FILL_IN = "fill them in or leave these rows out, or let that be done: --missing impute or drop"
"""What to do about missing values."""


def as_matrix(X: Points) -> Points:
    """Convert to a float64 matrix (n, d), a sparse one to a csr_array, or say why not."""
    array = X if is_sparse(X) else np.asarray(X)
    if array.ndim != 2:
        raise DataError(f"X must have two dimensions (rows, columns), not {array.ndim}")
    if array.dtype.kind == "c":
        raise DataError("X holds complex numbers; give real ones")
    if is_sparse(array):
        check_features(array.shape[1], "X")
    try:
        return as_points(array)
    except (TypeError, ValueError) as error:
        raise DataError(f"X holds what isn't a number ({error}); give a DataFrame if it has text columns") from error


def check_features(d: int, what: str) -> None:
    """Raise a DataError if a sparse matrix has too many columns."""
    if d > MAX_FEATURES:
        raise DataError(
            f"{what} is sparse and has {d} columns, which are too many to name each, used or not; number those that "
            f"are used without gaps, at most {MAX_FEATURES}"
        )


def as_dense(X: Points, what: str) -> Array:
    """Return rows as a dense array, because ``what`` takes no sparse ones; DataError if they are too large."""
    n, d = X.shape
    if is_sparse(X) and 8 * n * d > MAX_DENSE_BYTES:
        raise DataError(
            f"{what} can't take sparse rows, and as a dense matrix of {n} x {d} values X takes "
            f"{8 * n * d / 2**30:.0f} GB; choose fewer features or rows"
        )
    return dense(X)


def is_text(column: pd.Series) -> bool:
    """Say whether a column holds text, or objects of several kinds."""
    import pandas as pd

    return bool(pd.api.types.is_object_dtype(column.dtype) or pd.api.types.is_string_dtype(column.dtype)) and not (
        isinstance(column.dtype, pd.CategoricalDtype)
    )


def without_gaps(column: pd.Series, levels: Container[str] | None = None) -> pd.Series:
    """Return a column in which what stands for a missing value, such as ?, is missing.

    A word such as None is a level where other levels are words, or where it is one of those known as ``levels``.
    """
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        texts = [level for level in column.cat.categories if isinstance(level, str)]
        kept = _levels(texts, levels)
        marks = [level for level in texts if level in PADDED and level not in kept]
        return column.cat.remove_categories(marks) if marks else column
    if not is_text(column):
        return column
    marked = column.isin(PADDED)
    if not marked.any():
        return column
    if (column == "+").any():
        marked &= column != "-"  # a sign, not a gap
    if column.isin(PADDED_WORDS).any():
        marked &= ~column.isin(_levels([text for text in column.unique() if isinstance(text, str)], levels))
    return column.mask(marked) if marked.any() else column


def _levels(texts: Sequence[str], levels: Container[str] | None) -> set[str]:
    """Return which of the different texts of a column are words such as None that are levels, not gaps.

    They are if they are known as such, or, where no levels are known, if over half of the other texts begin with a
    letter.
    """
    words = {text for text in texts if text in PADDED_WORDS}
    if levels is not None:
        return {word for word in words if word in levels or word.strip() in levels}
    others = [text for text in texts if text not in PADDED]
    return words if 2 * sum(text.lstrip()[:1].isalpha() for text in others) > len(others) else set()


def has_words(column: pd.Series) -> bool:
    """Say whether a column has words such as None, which may be levels or gaps."""
    return is_text(column) and bool(column.isin(PADDED_WORDS).any())


def find_words(column: pd.Series) -> tuple[str, ...]:
    """Return the words such as None that are levels of a column, by all of its values."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        values = column.cat.categories
    elif is_text(column):
        values = column.unique()
    else:
        return ()
    return tuple(sorted(_levels([text for text in values if isinstance(text, str)], None)))


def sign_of(column: pd.Series) -> str | None:
    """Return what stands beside the numbers of a column, or stood there in its file; None for bare ones."""
    if is_text(column):
        return find_sign(without_gaps(column))
    read: dict[str, str] = column.attrs.get(SIGNS_READ, {})
    return read.get(str(column.name))


def numbers(column: pd.Series, counts: Indices | None = None, instead: str | None = None) -> Array | None:
    """Return the column as float64 if it holds numbers alone (missing ones as NaN), else None.

    Parameters
    ----------
    counts : (n,) array, optional
        Where values stand for several rows each, of how many.
    instead : str, optional
        What to do about a column that is no feature, for messages.

    Raises
    ------
    DataError
        It holds what may be meant as numbers.
    """
    import pandas as pd

    name = column.name
    if pd.api.types.is_bool_dtype(column.dtype) or isinstance(column.dtype, pd.CategoricalDtype):
        return None
    if pd.api.types.is_complex_dtype(column.dtype):
        raise DataError(f"column {name!r} holds complex numbers; give real ones")
    if pd.api.types.is_timedelta64_dtype(column.dtype):
        return np.asarray((column / pd.Timedelta(days=1)).to_numpy(dtype=np.float64, na_value=np.nan))
    if pd.api.types.is_numeric_dtype(column.dtype):
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        raise DataError(f"column {name!r} holds dates or times; turn them into numbers first")
    column = without_gaps(column)
    if column.isna().all():
        return np.full(len(column), np.nan)
    if column.map(lambda value: isinstance(value, bool)).any():
        return None
    try:
        parsed = np.asarray(pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan))
    except OverflowError as error:  # of whole numbers; others are infinite then, and refused as such
        raise DataError(
            f"column {name!r} holds a number of more than 308 digits; is it a text? {instead or f'--drop {name}'}"
        ) from error
    bad = np.isnan(parsed) & ~column.isna().to_numpy()
    if bad.any():  # spaces around that pandas takes for letters, as those at which no line ends
        parsed = parsed.copy()
        parsed[bad] = pd.to_numeric(column[bad].astype(str).str.strip(), errors="coerce")
        bad &= np.isnan(parsed)
    if not bad.any():
        return parsed
    if (signed := read_marked(column)) is not None:
        return signed
    _check_flaws(column, parsed, bad, counts, instead)
    return None


def _check_flaws(
    column: pd.Series,
    parsed: Array,
    bad: Mask,
    counts: Indices | None,
    instead: str | None,
) -> None:
    """Raise a DataError if a text column, of which some values are ``bad`` numbers, seems to be meant as numbers."""
    name = column.name
    first = int(np.argmax(bad))
    where = f" in row {first + 1}" if counts is None else ""
    counts = np.ones(len(column), np.int64) if counts is None else counts
    there = int(counts[column.notna().to_numpy()].sum())
    texts = column[bad].astype(str)
    if _are_codes(texts):
        return
    if 2 * counts[bad].sum() < there and len(np.unique(parsed[~np.isnan(parsed)])) > FEW:
        top = int(bad.sum())
        what = "put numbers there" if instead is None else "put numbers there or leave these fields empty"
        way = instead or f"give --numeric {name} to take them for missing, or --drop {name}"
        if where and top <= MOST_TOPS and bad[:top].all():
            what = "leave lines of names or units above the numbers out by --skip, with --no-header"
        raise DataError(
            f"column {name!r} holds numbers but for {counts[bad].sum()} of {counts.sum()} rows (first: "
            f"{column.iloc[first]!r}{where}); {what}, or {way}"
        )
    alike = texts.str.fullmatch(NUMBER_LIKE if texts.nunique() > FEW else MARKED).to_numpy(dtype=bool)
    if 2 * counts[bad][alike].sum() > counts[bad].sum():
        odd, way = _odd_and_way(texts, texts[alike].iloc[0], bool(bad[column.notna().to_numpy()].all()))
        other = instead or f"give --drop {name}, or --categorical {name}"
        raise DataError(
            f"column {name!r} holds what looks like numbers or dates but can't be read as numbers (first: {odd!r}); "
            f"{way}, or {other}"
        )


def _odd_and_way(texts: pd.Series, first: str, alone: bool) -> tuple[str, str]:
    """Return a text that isn't read as a number, and what to do about it.

    Parameters
    ----------
    texts : Series of str
        Those of a column that aren't read as numbers.
    first : str
        The first of them that looks like a number.
    alone : bool
        Whether there are no others.
    """
    sign = next((sign for sign in SIGNS if sign in first), None)
    if sign is not None and not alone:
        return first, f"write {sign} beside all numbers or beside none"
    signed = np.ones(len(texts), np.bool_) if sign is None else are_signed(texts, sign)
    if signed.any() and not signed.all():
        return texts[~signed].iloc[0], f"write {sign} and a number in each, and - in front of what is below 0"
    return first, "say how numbers are written by --decimal and --thousands"


def _are_codes(texts: pd.Series) -> bool:
    """Say whether what isn't a number in a column is of many kinds: codes, such as of tickets, some of them numbers.

    Texts that look like dates, or like a number with a unit or a mark, are none: most are flaws of numbers then.
    """
    different = texts.drop_duplicates().str.strip()
    dates = different.str.fullmatch(LIKE_DATES) | different.str.fullmatch(LIKE_ISO)
    if bool((different.str.fullmatch(CODES) & ~dates).mean() > 0.5):
        return True
    lettered = different.str.contains("[A-Za-z]") & ~different.str.fullmatch(WITH_UNIT) & ~dates
    return len(different) > FEW and bool(lettered.mean() > 0.5)


def as_text(column: pd.Series, levels: Container[str] | None = None) -> npt.NDArray[np.object_]:
    """Return the categories of a column as text, None where one is missing; whole numbers have no decimals.

    ``levels`` are those known, if they are: see `without_gaps`.
    """
    import pandas as pd

    column = without_gaps(column, levels)
    if pd.api.types.is_float_dtype(column.dtype):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        texts = np.array([str(int(x)) if x.is_integer() else repr(x) for x in values.tolist()], dtype=object)
    else:
        texts = np.array(column.astype(object).map(str), dtype=object)  # a copy: pandas lends its own, read only
    texts[column.isna().to_numpy()] = None
    return texts


def absent(texts: npt.NDArray[np.object_]) -> Mask:
    """Return where there is no category, (n,)."""
    return np.array([text is None for text in texts], dtype=bool)


def first_text(column: pd.Series) -> str:
    """Return the first value of a column that isn't a number, with its row."""
    for row, value in enumerate(column.astype(object), start=1):
        try:
            float(value)
        except (TypeError, ValueError):
            return f"{str(value)[:40]!r} in row {row}"
    return f"{column.dtype} values"


def missing(values: npt.ArrayLike) -> Mask:
    """Return which values of an array, list or column are missing: None or NaN."""
    if hasattr(values, "isna"):
        return np.asarray(values.isna())
    array = np.asarray(values)
    if array.dtype.kind != "O":
        return np.asarray(array != array)
    return np.array([value is None or value != value for value in array], dtype=bool)


def check_missing(column: pd.Series, name: str) -> None:
    """Raise a DataError if values are missing from a column."""
    gaps = column.isna().to_numpy()
    if gaps.any():
        raise DataError(missing_values(gaps, name))


def check_values(values: Array, name: str) -> None:
    """Raise a DataError if a column has missing, infinite or too large values."""
    if np.isfinite(values).all() and np.abs(values).max(initial=0.0) <= LARGEST:
        return
    gaps, infinite = np.isnan(values), np.isinf(values)
    if gaps.any():
        raise DataError(missing_values(gaps, name))
    if infinite.any():
        count = int(infinite.sum())
        raise DataError(
            f"column {name!r} has {count} infinite value{'s' * (count != 1)} "
            f"(first in row {int(np.argmax(infinite)) + 1}); put numbers there or leave these rows out"
        )
    row = int(np.argmax(np.abs(values)))
    raise DataError(
        f"column {name!r} holds {values[row]:g} in row {row + 1}: its square overflows; give the column in other units"
    )


def check_sparse_values(X: Points, names: Sequence[str]) -> None:
    """Raise a DataError if a column of sparse rows has missing, infinite or too large values."""
    bad = ~(np.abs(X.data) <= LARGEST)
    if bad.any():
        j = int(X.indices[bad].min())
        check_values(X[:, [j]].toarray().ravel(), names[j])


def missing_values(gaps: Mask, name: str) -> str:
    """Return the message for a column with missing values."""
    count = int(gaps.sum())
    verb = "value is" if count == 1 else "values are"
    return (
        f"column {name!r}: {count} {verb} missing of {len(gaps)} (first in row {int(np.argmax(gaps)) + 1}); {FILL_IN}"
    )
