"""The columns of a table that are not features: by name, as a command has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernsel.data.columns import numbers
from kernsel.data.names import check_column
from kernsel.data.tables import SparseTable, column_of, names_of, without
from kernsel.errors import DataError

if TYPE_CHECKING:
    import pandas as pd


ANOTHER = "name another column (--weights NAME)"
"""What to do about a column that can't be weights."""


@dataclass(frozen=True, eq=False)
class Roles:
    """A table without the columns that say how its rows are used, and these columns.

    Parameters
    ----------
    frame : DataFrame or SparseTable
        Features and targets; ``attrs["aside"]`` names what was taken out.
    targets : list of str or None
        None where none is named.
    """

    frame: pd.DataFrame | SparseTable
    targets: list[str] | None
    weights: pd.Series | None
    groups: pd.Series | None
    folds: pd.Series | None

    def split(self) -> tuple[pd.DataFrame | SparseTable, pd.Series | pd.DataFrame]:
        """Return the features and the target, several targets as a table: the last column, where none is named."""
        targets = self.targets or names_of(self.frame)[-1:]
        columns = [column_of(self.frame, name) for name in targets]
        features = without(self.frame, targets)
        if len(columns) == 1:
            return features, columns[0]
        import pandas as pd

        return features, pd.concat(columns, axis=1)


def assign_roles(
    frame: pd.DataFrame | SparseTable,
    target: str | None = None,
    weights: str | None = None,
    groups: str | None = None,
    folds: str | None = None,
) -> Roles:
    """Take the columns of weights, groups and folds out of a table.

    Parameters
    ----------
    target : str, optional
        The name of a column, or several names with commas between.
    weights, groups, folds : str, optional
        Names of columns.

    Raises
    ------
    DataError
        A column isn't there, has two roles, or can't play its own.
    """
    where = frame.attrs.get("source", "the table")
    names = names_of(frame)
    targets = None
    if target is not None:
        targets = [target] if target in names else list(dict.fromkeys(map(str.strip, target.split(","))))
    named = {"weights": weights, "groups": groups, "folds": folds}
    aside = {role: name for role, name in named.items() if name is not None}
    taken: dict[str, str] = {}
    for role, name in [*(("target", name) for name in targets or []), *aside.items()]:
        check_column(names, name, where)
        if name in taken:
            raise DataError(f"column {name!r} can't be both {taken[name]} and {role}; name two columns")
        taken[name] = role
    columns = {role: column_of(frame, name) for role, name in aside.items()}
    if "weights" in columns and numbers(columns["weights"], instead=ANOTHER) is None:
        raise DataError(f"weights in column {weights!r} must be numbers, but it holds text; name another column")
    rest = without(frame, aside.values())
    rest.attrs.update(frame.attrs, aside=list(aside.values()))
    return Roles(rest, targets, columns.get("weights"), columns.get("groups"), columns.get("folds"))
