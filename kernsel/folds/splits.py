"""Splits of rows into those to train on and those to hold out, as a splitter or a person gives them.

Test sets may overlap. Held-out outputs are an array with one place a row, so that a row that several splits hold out
needs several arrays: deals. The m-th split that holds out row i does so in deal m, with the fit that the split asks
for, which leaves out more rows than deal m scores of it. Rows are counted once for each time that they are held out:

    score = sum_S sum_{i in T_S} s_i l(y_i, f^{-S}(x_i)) / sum_S sum_{i in T_S} s_i

over the splits S with test sets T_S. Where these are of one size, and rows of one weight, that is the mean over splits
of the mean over the rows of each, as scikit-learn has it.
"""

from __future__ import annotations

import copy
import textwrap
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernsel.data import Dataset
from kernsel.errors import OptionError
from kernsel.folds.dealing import Seed
from kernsel.types import Indices, Mask

MOST_TIMES = 100
"""How often a row may be held out: so many times as long as with folds that hold out each row once takes a search."""

LONGEST = 200
"""Characters of what a splitter says, or gives, are shown: it may list every label, or row."""


class Splits(NamedTuple):
    """Which rows each of some splits trains on, and which it holds out.

    Parameters
    ----------
    train, test : list of arrays
        Row numbers of each split, ascending; each holds out at least one.
    n : int
        Number of rows.
    text : str
        What they are, in words, without their number.
    whole : bool
        Whether each trains on all that it doesn't hold out.
    """

    train: list[Indices]
    test: list[Indices]
    n: int
    text: str
    whole: bool

    @property
    def times(self) -> Indices:
        """How often each row is held out, (n,)."""
        return np.bincount(np.concatenate([np.zeros(0, np.int64), *self.test]), minlength=self.n)

    def without(self, around: Callable[[Mask], Mask]) -> Splits:
        """Return splits that don't train on what is around the rows (n,) that they hold out."""
        train = []
        for rows, held_out in zip(self.train, self.test, strict=True):
            held = np.zeros(self.n, np.bool_)
            held[held_out] = True
            train.append(rows[~around(held)[rows]])
        return self._replace(train=train)

    def deals(self) -> list[tuple[Indices, Mask | None]]:
        """Return the fold of each row (n,), -1 for none, and what each fold is trained on (t, n), of each deal.

        None in the place of the latter says that each fold is trained on all other rows.
        """
        deal_of, seen = list[Indices](), np.zeros(self.n, np.int64)
        for rows in self.test:
            deal_of.append(seen[rows])
            seen[rows] += 1
        deals = []
        for deal in range(max(int(seen.max(initial=0)), 1)):
            number, splits, complete = np.full(self.n, -1), list[int](), True
            for split, (rows, at) in enumerate(zip(self.test, deal_of, strict=True)):
                scored = rows[at == deal]
                if scored.size:
                    number[scored] = len(splits)
                    splits.append(split)
                    complete &= scored.size + self.train[split].size == self.n
            deals.append((number, None if complete else self._training(splits)))
        return deals

    def _training(self, splits: list[int]) -> Mask:
        training = np.zeros((len(splits), self.n), np.bool_)
        for kept, each in zip(training, splits, strict=True):
            kept[self.train[each]] = True
        return training


def split(splitter: Any, dataset: Dataset, seed: Seed) -> Splits:
    """Let a splitter of scikit-learn's kind split the rows that count.

    One that shuffles by no seed, or by a stream of random numbers, splits the same rows in the same way every time: by
    the seed given, or from where the stream is.

    Raises
    ------
    OptionError
        It can't, or what it gives is no split.
    """
    if isinstance(splitter, type):
        raise OptionError(f"folds are a splitter such as {splitter.__name__}(), and {splitter.__name__} is its class")
    repeatable = copy.copy(splitter)
    if "random_state" in getattr(splitter, "__dict__", ()):
        state = splitter.random_state
        number = int(np.random.SeedSequence(seed).generate_state(1)[0])
        repeatable.random_state = number if state is None else copy.deepcopy(state)
    text, everything = f"folds of {type(splitter).__name__}", np.arange(dataset.n)
    return _read(_pairs_of(repeatable, splitter, dataset), text, everything, dataset.n)


def _pairs_of(repeatable: Any, splitter: Any, dataset: Dataset) -> Iterator[Any]:
    y = np.squeeze(dataset.Y.T) if dataset.codes is None else dataset.codes
    try:
        yield from repeatable.split(dataset.X, y, dataset.groups)
    except (TypeError, ValueError) as error:
        reason = _short(error, str)
        raise OptionError(f"the splitter {_short(splitter)} can't split these {dataset.n} rows: {reason}") from error


def _short(value: object, written: Callable[[object], str] = repr) -> str:
    """Return what a value looks like, in one line that isn't long."""
    return textwrap.shorten(written(value), LONGEST, placeholder=" ...")


def read_pairs(pairs: Iterable[object], dataset: Dataset) -> Splits:
    """Read pairs of row numbers, to train on and to hold out, of the rows as given.

    Raises
    ------
    OptionError
        Some are no row numbers, or a pair trains on a row that it holds out.
    """
    return _read(pairs, "folds as given", dataset.places, dataset.given)


def _read(pairs: Iterable[object], text: str, places: Indices, n: int) -> Splits:
    """Read pairs of row numbers below n, of which those of ``places`` count: splits that hold out none are left out."""
    place, times, trained = np.full(n, -1), np.zeros(n, np.int64), np.zeros(n, np.bool_)
    place[places] = np.arange(places.size)
    made, whole, number = Splits([], [], places.size, text, whole=True), True, 0
    for number, pair in enumerate(pairs, start=1):
        train, test = _row_numbers_of(pair, f"{text}, fold {number}", n)
        trained[:] = False
        trained[train] = True
        if trained[test].any():
            row = int(test[trained[test]][0]) + 1
            raise OptionError(f"{text}: fold {number} trains on row {row}, which it holds out; do one of both")
        times[test] += 1
        if times[test].max() > MOST_TIMES:
            raise OptionError(
                f"{text}: {number} of them, and maybe not all, hold out row {int(times.argmax()) + 1} more than "
                f"{MOST_TIMES} times, which is the most; use RepeatedKFold(n_splits=10, n_repeats=10) or "
                "ShuffleSplit(n_splits=100) in their place, or a number of folds and repeats"
            )
        whole &= train.size + test.size == n
        train, test = (counted[counted >= 0] for counted in (place[train], place[test]))
        if test.size:
            made.train.append(train)
            made.test.append(test)
    if not number:
        raise OptionError(f"{text}: there are none; an iterator can be read only once: give a list of its pairs")
    return made._replace(whole=whole)


def _row_numbers_of(pair: Any, where: str, n: int) -> list[Indices]:
    try:
        train, test = map(np.asarray, pair)
    except (TypeError, ValueError):
        raise OptionError(
            f"{where} must be a pair: rows to train on, and rows to hold out, not {_short(pair)}"
        ) from None
    return [_row_numbers(train, where, "train on", n), _row_numbers(test, where, "hold out", n)]


def _row_numbers(array: NDArray[Any], where: str, what_for: str, n: int) -> Indices:
    if array.ndim == 1 and not array.size:
        raise OptionError(f"{where} has no rows to {what_for}; leave it out, or give it some")
    if array.ndim != 1 or array.dtype.kind not in "iu":
        mask = "; np.flatnonzero of a mask gives them" if array.dtype.kind == "b" else ""
        raise OptionError(f"{where}: rows to {what_for} must be an array of row numbers, not {_short(array)}{mask}")
    if array.min() < 0 or array.max() >= n:
        raise OptionError(f"{where}: row numbers must be from 0 to {n - 1}, not {array.min()} to {array.max()}")
    unique = np.unique(array)
    if unique.size < array.size:
        raise OptionError(f"{where}: a row is listed twice; list it once, and give it weight 2")
    return np.asarray(unique, dtype=np.int64)
