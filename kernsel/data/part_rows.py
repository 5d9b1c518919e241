"""Which rows of a part of a table count, and their features and targets in the form that all parts have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import numpy as np

from kernsel.data.choices import Choices
from kernsel.data.encoding import Encoder
from kernsel.data.fitting import incomplete
from kernsel.data.gaps import WORDS
from kernsel.data.kinds import Found
from kernsel.data.more import Kept, encode_columns, rows_that_count
from kernsel.data.names import listed
from kernsel.data.tables import SparseTable, array_names, as_pandas, as_table, is_frame, take
from kernsel.data.target import Target, split_targets
from kernsel.errors import DataError
from kernsel.numerics.points import Points
from kernsel.types import Array, Indices

if TYPE_CHECKING:
    import pandas as pd

S = TypeVar("S")


class Rows(NamedTuple):
    """A part of the rows as it is given."""

    number: int
    table: pd.DataFrame
    y: Any
    weights: Any


def naming(work: Callable[..., S]) -> Callable[..., S]:
    """Have work say in which part the rows are that it can't be done with."""

    @wraps(work)
    def named(rows: Rows, *given: Any) -> S:
        try:
            return work(rows, *given)
        except DataError as error:
            raise DataError(f"part {rows.number + 1}: {error}") from error

    return named


class Columns(NamedTuple):
    """What the columns of a table were found to be, and what the options say of them.

    Parameters
    ----------
    names : tuple of str
        Empty before any part was looked at.
    complete : sequence of Found or None
        What the columns were found to be before rows that lack values were left out; None if they aren't.
    signs : dict of str to str
        What stands beside the numbers of columns and targets.
    words : dict of str to tuple of str, or None
        The words such as None that are values of each target; None before all parts were looked at: they are then.
    """

    choices: Choices
    names: tuple[str, ...] = ()
    found: Sequence[Found] = ()
    complete: Sequence[Found] | None = None
    signs: Mapping[str, str] = MappingProxyType({})
    words: Mapping[str, tuple[str, ...]] | None = None


class Part(NamedTuple):
    """The rows of a part that count.

    Parameters
    ----------
    frame : DataFrame
        Their features.
    targets : dict
        Series by name.
    kept : Kept
        Which they are.
    targeted : int
        Rows with a weight and a target, of which those that lack values are left out.
    """

    frame: pd.DataFrame
    targets: dict[str, Any]
    kept: Kept
    targeted: int

    @classmethod
    def of(cls, rows: Rows, columns: Columns) -> Self:
        """Return the rows that count; where ``columns`` must not lack values, those that lack none."""
        import pandas as pd

        choices, frame = columns.choices, _frame(rows.table, columns.names)
        targets = {name: pd.Series(column) for name, column in split_targets(as_pandas(rows.y)).items()}
        for name, column in targets.items():
            if len(column) != len(frame):
                raise DataError(
                    f"the table has {len(frame)} rows and {name!r} has {len(column)}; they must have as many"
                )
        words = dict.fromkeys(targets, WORDS) if columns.words is None else columns.words
        kept = rows_that_count(len(frame), targets, rows.weights, choices.missing, words)
        targeted = kept.rows.size
        if columns.complete is not None and targeted:
            kept = kept.without(incomplete(frame, columns.complete))
        if kept.rows.size < len(frame):
            frame = take(frame, kept.rows)
            targets = {name: take(column, kept.rows) for name, column in targets.items()}
        return cls(frame, targets, kept, targeted)

    def take(self, which: Indices) -> Self:
        """Return some of these rows; what is kept is of all."""
        targets = {name: take(column, which) for name, column in self.targets.items()}
        return self._replace(frame=take(self.frame, which), targets=targets)

    def encode(self, target: Target, encoder: Encoder) -> tuple[Points, Array]:
        """Return X (m, d) and Y (k, m); there may be no rows."""
        if not len(self.frame):
            return np.zeros((0, len(encoder.features))), np.zeros((len(target.shift), 0))
        Y = encode_columns(self.targets, target.labels, target.shift, target.scale)
        return encoder.transform(self.frame), np.ascontiguousarray(Y)


def check_names(names: Sequence[str], others: Sequence[str]) -> None:
    """Raise a DataError if two parts have other columns."""
    if {*names} != {*others}:
        one, other = [n for n in names if n not in others], [n for n in others if n not in names]
        where = " and ".join(
            f"{listed(each)} {'is' if len(each) == 1 else 'are'} in some only" for each in (one, other) if each
        )
        raise DataError(f"parts of the table have other columns: {where}; give all of them the same ones")


def _frame(table: Any, names: tuple[str, ...]) -> pd.DataFrame:
    """Return the features of a part as a DataFrame, with its columns in the order of ``names``."""
    import pandas as pd

    table = as_table(table) if not is_frame(as_pandas(table)) else as_pandas(table)
    if isinstance(table, SparseTable):
        raise DataError("rows in parts are dense: give features that aren't sparse")
    if not is_frame(table):
        table = pd.DataFrame(table, columns=list(array_names(table.shape[1])), copy=False)
    there = [str(name) for name in table.columns]
    if not names or tuple(there) == names:
        return table if all(isinstance(name, str) for name in table.columns) else table.set_axis(there, axis=1)
    if not len(table):
        return pd.DataFrame({name: np.zeros(0) for name in names})
    check_names(names, there)
    return table.set_axis(there, axis=1)[list(names)]
