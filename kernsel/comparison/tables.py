"""The tables of a comparison, and how their rows are split into those to train on and those to test on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from kernsel.data import Dataset
from kernsel.data.tables import take
from kernsel.errors import DataError, OptionError
from kernsel.journal.encoding import fingerprint
from kernsel.selection.carry_out import encode_arrays
from kernsel.selection.plan import Plan
from kernsel.text import meant
from kernsel.types import Indices

Split = tuple[Indices, Indices]
"""Rows to train on and to test on, as numbers of the data set's rows."""

LEAST_ROWS = 4
"""Two to train on and two to test on."""


@dataclass(frozen=True, eq=False)
class Table:
    """A table to compare methods on.

    Parameters
    ----------
    X, y : table and target
        As :func:`kernsel.select` takes them.
    dataset : Dataset
        All rows that can be used. Of it only the target, the task, the groups and the numbers of the rows are used:
        each training part is encoded and scaled by itself.
    """

    name: str
    X: Any
    y: Any
    dataset: Dataset
    splits: Sequence[Split]

    @classmethod
    def of(cls, name: str, X: Any, y: Any, plan: Plan, splits: Splits, groups: Any = None) -> Table:
        """Return a table with its splits; rows of one of the ``groups`` are on one side of each."""
        dataset = encode_arrays(X, y, replace(plan, standardize=False), groups=groups)
        if dataset.n < LEAST_ROWS:
            raise DataError(f"table {name!r} has {dataset.n} rows, too few to split; it needs at least {LEAST_ROWS}")
        return cls(name, X, y, dataset, splits.of(name, dataset))

    @property
    def classes(self) -> bool:
        """Whether the target is classes."""
        return self.dataset.labels is not None

    def part(self, rows: Indices) -> tuple[Any, Any]:
        """Return features and target of some rows."""
        places = self.dataset.places[rows]
        return take(self.X, places), take(self.y, places)

    def encoded(self, rows: Indices, plan: Plan) -> Dataset:
        """Return some rows, encoded and scaled by themselves."""
        groups = self.dataset.groups
        return encode_arrays(*self.part(rows), plan, groups=None if groups is None else groups[rows])


@dataclass(frozen=True)
class Splits:
    """How rows are split.

    Parameters
    ----------
    count : int
        How often.
    train : float or int
        The share, or the number, of the rows to train on.
    test : int or None
        At most so many others are tested on; None for all of them.
    folder : Path or None
        Where files ``NAME_splits.npz`` or ``NAME.npz`` hold the splits of tables: arrays ``train`` and ``test``, one
        row a split, of numbers of rows from 0. Tables without such a file, and splits beyond those in it, are drawn at
        random, with as many rows to train on as a split of the file has.
    """

    count: int = 10
    train: float | int = 0.7
    test: int | None = None
    seed: int = 0
    folder: Path | None = None

    def __post_init__(self) -> None:
        if self.count < 1:
            raise OptionError(f"splits is how often rows are split, a whole number from 1, not {self.count!r}")
        if not (0 < self.train < 1 or (self.train >= 2 and self.train == int(self.train))):
            raise OptionError(
                f"train is the share of the rows to train on, between 0 and 1, or their number, not {self.train!r}"
            )
        if self.test is not None and self.test < 1:
            raise OptionError(f"test is a number of rows to test on, from 1, not {self.test!r}")
        if self.folder is not None and not self.folder.is_dir():
            raise OptionError(f"splits: there is no folder {self.folder}; give that of files NAME_splits.npz")

    def of(self, name: str, dataset: Dataset) -> list[Split]:
        """Return the splits of a data set."""
        found = self._given(name, dataset)[: self.count]
        train = self.train if not found else len(found[0][0])
        return found + [self._drawn(number, train, name, dataset) for number in range(len(found), self.count)]

    def _drawn(self, number: int, train: float, name: str, dataset: Dataset) -> Split:
        """Return a split at random; of groups as many rows to train on as comes nearest to what is asked for."""
        n, groups = dataset.n, dataset.groups
        kept = round(train * n) if train < 1 else int(train)
        kept = max(kept, 2) if train < 1 else kept
        if kept >= n:
            raise OptionError(
                f"table {name!r} has {n} rows: there are none left to test on beside {kept} to train on; use fewer"
            )
        random = np.random.default_rng((self.seed, number))
        order = random.permutation(n)
        if groups is not None:
            turn = random.permutation(int(groups.max()) + 1)[groups]
            order = order[np.argsort(turn[order], kind="stable")]
            ends = np.cumsum(np.bincount(turn))[:-1]
            if not ends.size:
                raise OptionError(f"all rows of table {name!r} are of one group: there is none left to test on")
            kept = int(ends[np.abs(ends - kept).argmin()])
        end = None if self.test is None else kept + self.test
        return np.sort(order[:kept]), np.sort(order[kept:end])

    def _given(self, name: str, dataset: Dataset) -> list[Split]:
        """Return the splits that a file holds; none without one."""
        if self.folder is None:
            return []
        file = next(
            (each for each in (self.folder / f"{name}_splits.npz", self.folder / f"{name}.npz") if each.is_file()), None
        )
        if file is None:
            return []
        try:
            with np.load(file, allow_pickle=False) as arrays:
                parts = [
                    np.atleast_2d(arrays[part]).astype(np.int64, casting="same_kind") for part in ("train", "test")
                ]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise OptionError(
                f"{file} holds no splits ({error}): it needs arrays train and test of whole numbers, a row a split"
            ) from error
        number = np.full(dataset.given, -1)
        number[dataset.places] = np.arange(dataset.n)
        if any(part.size == 0 or part.min() < 0 or part.max() >= dataset.given for part in parts):
            raise OptionError(f"{file} has numbers of rows that table {name!r}, of {dataset.given} rows, hasn't")
        pairs = [tuple(number[part] for part in pair) for pair in zip(*parts, strict=True)]
        found = [(train[train >= 0], test[test >= 0]) for train, test in pairs]
        if any(np.intersect1d(train, test).size for train, test in found):
            raise OptionError(f"{file}: a split tests on rows that it trains on; give others")
        groups = dataset.groups
        if groups is not None and any(np.intersect1d(groups[train], groups[test]).size for train, test in found):
            raise OptionError(
                f"{file}: a split trains and tests on rows of one group; leave out the groups, or the file"
            )
        return found


def read_tables(tables: object, plan: Plan, splits: Splits, groups: object = None) -> list[Table]:
    """Return tables with their splits.

    Parameters
    ----------
    tables : mapping of str to pair, or pair
        X and y of each table by its name; or those of one table.
    plan : Plan
        What is said of columns and targets.
    groups : array or mapping of str to array, optional
        The group of each row, of the only table, or by the table's name.
    """
    return [
        Table.of(name, X, y, plan, splits, grouped) for name, (X, y, grouped) in named_tables(tables, groups).items()
    ]


def encode_tables(tables: object, plan: Plan, groups: object = None) -> dict[str, Dataset]:
    """Return the data set of each table by its name.

    Parameters
    ----------
    tables : mapping of str to pair, or pair
    plan : Plan
        What is said of columns and targets.
    groups : array or mapping of str to array, optional
        The group of each row, of the only table, or by the table's name.
    """
    named = named_tables(tables, groups)
    return {name: encode_arrays(X, y, plan, groups=grouped) for name, (X, y, grouped) in named.items()}


def describe_data(datasets: Mapping[str, Dataset]) -> dict[str, Any]:
    """Return what a journal says of some tables by their names."""
    return {
        "fingerprint": fingerprint([[dataset, name] for name, dataset in datasets.items()]),
        "rows": sum(dataset.n for dataset in datasets.values()),
        "features": max(dataset.d for dataset in datasets.values()),
        "source": ", ".join(datasets),
        "target": str(next(iter(datasets.values())).target),
        "task": ", ".join(dict.fromkeys(dataset.task for dataset in datasets.values())),
    }


def named_tables(tables: Any, groups: Any = None) -> dict[str, tuple[Any, Any, Any]]:
    """Return X, y and the groups of each table by its name.

    Parameters
    ----------
    tables : mapping of str to pair, or pair
    groups : array or mapping of str to array, optional
        The group of each row, of the only table, or by the table's name.

    Raises
    ------
    OptionError
        There is no table, two have one name, one is no pair, or groups are of another one.
    """
    given = tables if isinstance(tables, Mapping) else {"data": tables}
    if not given:
        raise OptionError("there is no table to compare on: give at least one")
    called = list(map(str, given))
    if twice := {name for name in called if called.count(name) > 1}:
        raise OptionError(f"two tables are called {min(twice)!r}: give each one a name of its own")
    for name, pair in given.items():
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise OptionError(f"table {name!r} must be a pair of features and target, (X, y)")
    if isinstance(groups, Mapping):
        for name in groups:
            if name not in given:
                raise OptionError(f"groups: there is no table {name!r}{meant(str(name), map(str, given))}")
    elif groups is not None and len(given) > 1:
        raise OptionError(f"groups: there are {len(given)} tables; give those of each by its name, as a mapping")
    else:
        groups = dict.fromkeys(given, groups)
    return {str(name): (*pair, groups.get(name)) for name, pair in given.items()}
