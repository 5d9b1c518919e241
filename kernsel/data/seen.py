"""What there is to see of the columns of a table whose rows are in parts: ``of(part)``, ``merge``, and then a column.

Of a column of numbers that is how many are missing, and whether they count the rows. Others are looked at once more:
their different values come, each with the number of its rows. Of more than ``MOST`` values those come whose hashes are
the least, in every part alike, so that their rows are counted completely; and as hashes are uniform, the largest of
them tells how many values there are (Bar-Yossef et al. 2002, *Counting distinct elements in a data stream*, section 2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from kernsel.data.columns import as_text, find_words, is_text, numbers, without_gaps
from kernsel.data.gaps import PADDED_WORDS, WORDS
from kernsel.data.kinds import DATE, ORDINAL, Kind, is_row_names, needs_count, offset
from kernsel.numerics.runtime.once import once
from kernsel.types import Array, Indices

if TYPE_CHECKING:
    import pandas as pd

MOST = 2**15
"""Different values of a column that travel. Categories of more are too many for any table: in over half of the rows, or
0/1 columns of more than 16 GB."""


class Glimpse(NamedTuple):
    """What is seen of a column at first sight.

    Parameters
    ----------
    rows, gaps, words : int
        Rows that count, those of them without a value, and those of these with a word such as None, which may be one.
    given : int
        Rows of the table as given.
    plain : bool
        Whether the column's type is that of numbers wherever it has values.
    whole : bool
        Whether all of it are whole numbers.
    start : float
        What these are more than the places of the rows, NaN if that isn't the same for all.
    """

    rows: int
    gaps: int
    words: int
    given: int
    plain: bool
    whole: bool
    start: float

    @classmethod
    def of(cls, column: pd.Series, places: Indices, given: int) -> Self:
        """Return what is seen of the rows of a part."""
        import pandas as pd

        rows, known = len(column), without_gaps(column, ())
        gaps = int(known.isna().sum())
        words = gaps - int(without_gaps(column, WORDS).isna().sum())
        plain = gaps == rows or _is_number(column)
        if gaps or not rows:
            return cls(rows, gaps, words, given, plain, not rows, np.nan)
        if _is_number(column):
            values = numbers(column)
        elif is_text(column):
            values = np.asarray(pd.to_numeric(known, errors="coerce").to_numpy(np.float64, na_value=np.nan))
        else:
            values = None
        whole = values is not None and np.array_equal(values, np.round(values))
        start = offset(values, places) if whole and values is not None else np.nan
        return cls(rows, gaps, words, given, plain, whole, start)

    def merge(self, other: Self) -> Self:
        """Return what is seen of these rows and those behind them."""
        start, behind = self.start, other.start - self.given
        if not self.rows:
            start = behind
        elif other.rows and start != behind:
            start = np.nan
        return type(self)(
            self.rows + other.rows,
            self.gaps + other.gaps,
            self.words + other.words,
            self.given + other.given,
            self.plain and other.plain,
            self.whole and other.whole,
            start,
        )

    def needs_values(self, name: str) -> bool:
        """Say whether what the column holds can be told from its values only."""
        return not self.plain or (self.whole and needs_count(name)) or is_row_names(name)


class Different(NamedTuple):
    """The different values of a column.

    Parameters
    ----------
    values : Series
        At most ``MOST``, in the order of their hashes.
    texts : (m,) array of str
        The values as text.
    hashes : (m,) array of uint64
    counts : (m,) array
        Number of the rows of each.
    unread : int
        Rows whose values are no numbers, or missing.
    """

    values: pd.Series
    texts: npt.NDArray[np.object_]
    hashes: npt.NDArray[np.uint64]
    counts: Indices
    unread: int

    @classmethod
    def of(cls, column: pd.Series) -> Self:
        """Return them of the rows of a part."""
        import pandas as pd

        column = without_gaps(column, WORDS)
        gaps = int(column.isna().sum())
        if pd.api.types.is_datetime64_any_dtype(column.dtype):
            column = column.dropna().iloc[:1]  # their type says what they are
        codes, uniques = pd.factorize(column)
        values = pd.Series(uniques, name=column.name)
        counts = np.bincount(codes[codes >= 0], minlength=len(values)).astype(np.int64)
        unread = gaps
        if is_text(values):
            unread += int(counts[pd.to_numeric(values, errors="coerce").isna().to_numpy()].sum())
        if _is_number(values):  # as numbers: most of them needn't be written out
            hashes = pd.util.hash_array(values.to_numpy(np.float64), categorize=False)
            least = np.argsort(hashes, kind="stable")[:MOST]
            values, hashes, counts = values.iloc[least], hashes[least], counts[least]
            return cls(values.reset_index(drop=True), as_text(values), hashes, counts, unread)
        texts = as_text(values, WORDS)
        hashes = pd.util.hash_array(texts, categorize=False) if len(texts) else np.zeros(0, np.uint64)
        return cls(values, texts, hashes, counts, unread)._least()

    def merge(self, other: Self) -> Self:
        """Return those of these rows and others."""
        import pandas as pd

        each = [part for part in (self, other) if len(part.texts)]
        unread = self.unread + other.unread
        if len(each) < 2:
            return (each or [self])[0]._replace(unread=unread)
        values = pd.concat([part.values for part in each], ignore_index=True)
        texts, hashes, counts = (np.concatenate([part[j] for part in each]) for j in (1, 2, 3))
        codes, _ = pd.factorize(texts)
        first = np.unique(codes, return_index=True)[1]
        sums = np.zeros(len(first), np.int64)
        np.add.at(sums, codes, counts)
        merged = type(self)(values.iloc[first].reset_index(drop=True), texts[first], hashes[first], sums, unread)
        return merged._least()

    def _least(self) -> Self:
        order = np.lexsort([self.texts.astype(str), self.hashes])[:MOST]
        values = self.values.iloc[order].reset_index(drop=True)
        return type(self)(values, self.texts[order], self.hashes[order], self.counts[order], self.unread)

    def of_one_type(self) -> pd.Series:
        """Return the values, as text where they are numbers in some parts and others elsewhere, as files have it."""
        import pandas as pd

        types = {*self.values.map(type)}
        return self.values if len(types) < 2 or types <= {int, float} else pd.Series(self.texts)

    @property
    def complete(self) -> bool:
        """Whether all of them are here."""
        return len(self.texts) < MOST

    @property
    def number(self) -> int:
        """How many there are: nearly, if not all of them are here."""
        return len(self.texts) if self.complete else int((MOST - 1) * (2.0**64 / (float(self.hashes[-1]) + 1.0)))


@dataclass(frozen=True)
class Seen:
    """A column in parts, as ``kinds.find_kind`` looks at it: see ``kinds.Column``.

    Parameters
    ----------
    found : Different or None
        None for a column of numbers.
    """

    name: str
    glimpse: Glimpse
    found: Different | None

    @property
    def rows(self) -> int:
        """Number of rows that count."""
        return self.glimpse.rows

    @property
    def gaps(self) -> int:
        """Number of missing values."""
        return self.glimpse.gaps - (self.glimpse.words if self.words else 0)

    @once
    def words(self) -> tuple[str, ...]:
        """Words such as None that are levels."""
        return () if self.found is None else find_words(self.found.values)

    @property
    def column(self) -> pd.Series:
        """Its different values, or an empty column of numbers."""
        import pandas as pd

        return pd.Series([], dtype=np.float64, name=self.name) if self.found is None else self.found.values

    @property
    def numbers(self) -> Array | None:
        """The different values as numbers, None if there are others."""
        return numbers(self.column, None if self.found is None else self.found.counts)

    @property
    def whole(self) -> bool:
        """Whether all are whole numbers, and none is missing."""
        return self.glimpse.whole

    @property
    def start(self) -> float:
        """What whole numbers are more than the places of their rows, NaN if that isn't the same for all."""
        return self.glimpse.start

    @property
    def levels(self) -> int:
        """Number of different values."""
        if self.found is None:
            return 0
        gaps = 0 if self.words else sum(text in PADDED_WORDS for text in self.found.texts)
        return self.found.number - gaps

    different = levels

    def count_gaps(self, kind: Kind) -> int:
        """Return how many values of a kind are missing."""
        if kind.type in (DATE, ORDINAL):
            return self.glimpse.gaps - (0 if WORDS.isdisjoint(kind.levels) else self.glimpse.words)
        return self.found.unread if self.found is not None and kind.loose else self.gaps


def _is_number(column: pd.Series) -> bool:
    """Say whether the type of a column is that of numbers."""
    import pandas as pd

    return bool(pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype)) or bool(
        pd.api.types.is_timedelta64_dtype(column.dtype)
    )
