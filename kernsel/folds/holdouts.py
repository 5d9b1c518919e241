"""Read how the rows are to be held out, in any of the forms that people have it in."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from kernsel.data import Dataset
from kernsel.data.columns import missing
from kernsel.data.copies import APART
from kernsel.data.near import Near
from kernsel.errors import OptionError, check_memory
from kernsel.folds.dealing import Seed, cut_regions, deal, deal_copies, deal_groups
from kernsel.folds.splits import Splits, read_pairs, split
from kernsel.text import meant
from kernsel.types import Indices, Mask

LARGEST_NUMBER = 2.0**53  # of a fold: up to here every whole number has a value of its own
FORMS = (
    "a number of folds, loo, logo (leave one group out), or in the order of time blocks:N (N blocks, fits on all other "
    "rows) or time:N (N folds, fits on the rows before)"
)


@dataclass(frozen=True, eq=False)
class Folds:
    """Which fold holds out each row.

    Parameters
    ----------
    number : (n,) array
        The fold of each row, from 0 without gaps; -1 for rows that are never held out.
    text : str
        What they are, in words.
    training : (t, n) array of bool or None
        The rows that each fold's fit is trained on; None for all but the fold.
    dealt : bool
        Whether chance made them, so that another seed makes others.
    in_time : bool
        Whether they are in the order of time, or may be, as fits are trained on rows that a splitter chose.
    splits : int
        Of how many splits whose test sets overlap they are a part; 0 where every row is held out at most once.
    """

    number: Indices
    text: str
    training: Mask | None = None
    dealt: bool = False
    in_time: bool = False
    splits: int = 0

    @cached_property
    def starts(self) -> Indices:
        """Where each fold starts among the rows sorted by fold, and where the last one ends: (t + 1,)."""
        sizes = np.bincount(self.number[self.number >= 0])
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @cached_property
    def order(self) -> Indices:
        """The rows sorted by fold, those that are never held out at the end: (n,)."""
        return np.argsort(np.where(self.number < 0, self.number.size, self.number), kind="stable")


def make_deals(folds: object, dataset: Dataset, seed: Seed = 0, repeats: int = 1) -> list[Folds]:
    """Make the folds of a data set, as often as its rows are dealt.

    A number of folds is dealt ``repeats`` times. Splits whose test sets overlap are deals as well: the m-th split that
    holds out a row does so in the m-th deal, and its fit leaves out all that the split doesn't train on, so that rows
    of later deals are among those of the deals before.

    Parameters
    ----------
    folds : int, str, array, splitter or iterable of pairs
        As of `make_folds`; test sets may overlap.
    dataset : Dataset
    seed : int or sequence of int
    repeats : int

    Raises
    ------
    OptionError
        As from `make_folds`; or there is one way only to make the folds, and more are asked for.
    """
    if not isinstance(repeats, numbers.Integral) or repeats < 1:
        raise OptionError(f"repeats is how often the folds are dealt, a whole number from 1, not {repeats!r}")
    first, *others = made = _make_all(folds, dataset, seed)
    if repeats > 1 and (others or not first.dealt):
        raise OptionError(f"repeats: there is one way only to make {first.text}; give a number of folds, or no repeats")
    further = range(1, repeats)
    return [*made, *(make_folds(folds, dataset, (*np.atleast_1d(seed).tolist(), number)) for number in further)]


def make_folds(folds: object, dataset: Dataset, seed: Seed = 0) -> Folds:
    """Make the folds of a data set.

    Parameters
    ----------
    folds : int, str, array, splitter or iterable of pairs
        A number of folds, dealt at random: stratified for classes, of whole groups if the data set has groups, and
        with copies of a row in one fold, unless its ``copies`` are ``"apart"`` or few of its rows are distinct.
        Where the data set has a buffer in space, compact regions of equal size in place of a deal. ``"loo"``,
        ``"logo"`` (leave one group out), ``"blocks:N"`` (N blocks in the order of the rows, or of their time),
        ``"time:N"`` (N folds in that order; each fit is trained on all earlier rows, the first block of rows is never
        held out). The fold of each row: whole numbers, of which negative ones are never held out, or text. A splitter
        of scikit-learn's kind, or pairs (rows to train on, rows to hold out), whose rows to hold out don't overlap.
        Arrays and pairs are of the rows as given.
    dataset : Dataset
        Rows that it says are near to a fold in time or space are left out of the fold's fit.
    seed : int or sequence of int
        Of a deal at random, and of a splitter that shuffles by no seed of its own.

    Raises
    ------
    OptionError
        It is none of these, or the rows can't be held out that way.
    """
    first, *others = _make_all(folds, dataset, seed)
    if others:
        raise OptionError(
            f"{first.text}: here each row can be held out only once; give a number of folds, or a splitter such as "
            "KFold, whose test sets don't overlap"
        )
    return first


def _make_all(folds: object, dataset: Dataset, seed: Seed) -> list[Folds]:
    """Make the folds of every deal, and check them."""
    made = _make(folds, dataset, seed)
    near = dataset.sample.near
    deals = _of_splits(made, near) if isinstance(made, Splits) else [_apart(made, near)]
    for each in deals:
        _check(each, dataset)
    return deals


def _check(made: Folds, dataset: Dataset) -> None:
    """Raise an OptionError if folds hold out no row, train a fit on none, or take a group apart."""
    n = made.number.size
    held = np.diff(made.starts)
    if not held.size:
        raise OptionError(f"{made.text}: no row is held out; hold out some in each fold")
    left = n - held if made.training is None else made.training.sum(axis=1)
    if not left.all():
        raise OptionError(
            f"{made.text}: the fit of fold {int(np.argmin(left)) + 1} has no row to be trained on; "
            "give more folds, or fewer rows to hold out or leave out"
        )
    if dataset.groups is not None:
        _check_groups(made, dataset)


def _make(folds: object, dataset: Dataset, seed: Seed) -> Folds | Splits:
    if isinstance(folds, str):
        folds = check_text(folds)
    if isinstance(folds, str):
        return _named(folds, dataset)
    if isinstance(folds, numbers.Real) and not isinstance(folds, bool):
        return _dealt(folds, dataset, seed)
    if hasattr(folds, "split"):
        return split(folds, dataset, seed)
    if not isinstance(folds, Iterable):
        raise OptionError(f"folds can't be {folds!r}: give {FORMS}, the fold of each row, a splitter or pairs of rows")
    if hasattr(folds, "dtype"):
        return _from_numbers(folds, dataset)
    listed = list(folds)
    if all(isinstance(each, tuple | list) and len(each) == 2 for each in listed):
        return read_pairs(listed, dataset)
    return _from_numbers(listed, dataset)


def check_text(folds: str) -> int | str:
    """Check the text form of folds.

    Returns
    -------
    int or str
        The number, or the text itself.

    Raises
    ------
    OptionError
        It is none of the known forms.
    """
    text = folds.strip().lower()
    number = re.fullmatch(r"(?:(?:time|blocks):)?(\d+)", text)
    if number and int(number[1]) < 2:
        raise OptionError(f"folds {folds!r}: there must be at least 2")
    if number or text in ("loo", "logo"):
        return int(text) if text.isdecimal() else text
    hint = meant(text, ["loo", "logo", "time:5", "blocks:5"]) or ";"
    raise OptionError(f"folds {folds!r} is unknown{hint} it is {FORMS}")


def _named(folds: str, dataset: Dataset) -> Folds:
    if folds == "loo":
        return Folds(np.arange(dataset.n), f"leave one out, {dataset.n} folds")
    if folds == "logo":
        return _one_group_out(dataset)
    kind, _, count = folds.partition(":")
    return (_blocks if kind == "blocks" else _in_time)(int(count), _in_order(dataset), dataset.sample.near)


def _dealt(folds: Any, dataset: Dataset, seed: Seed) -> Folds:
    """Deal rows, or whole groups."""
    most, what = (dataset.n, "rows") if dataset.groups is None else (_groups(dataset), "groups")
    if not math.isfinite(folds) or folds != int(folds) or not 2 <= folds <= most:
        can = "2" if most == 2 else f"2 to {most}"
        raise OptionError(f"{folds} folds can't be made of {most} {what}: use {can} folds, by --folds or --nested")
    folds, near = int(folds), dataset.sample.near
    if near is not None and near.in_time:
        raise OptionError(
            f"{', '.join(near.asked)}: folds that are dealt at random are in no order of time; use blocks:{folds} or "
            f"time:{folds} in place of {folds}"
        )
    if near is not None and near.points is not None and dataset.groups is None:
        return Folds(cut_regions(near.points, folds), f"{folds} compact regions")
    labels = np.zeros(dataset.n, np.int64) if dataset.codes is None else dataset.codes
    if dataset.groups is None:
        together = keeps_copies(dataset, folds)
        number = deal_copies(labels, dataset.copied.number, folds, seed) if together else deal(labels, folds, seed)
        return Folds(number, f"{folds} folds", dealt=True)
    return Folds(deal_groups(labels, dataset.groups, folds, seed), f"{folds} folds of whole groups", dealt=True)


def keeps_copies(dataset: Dataset, folds: int) -> bool:
    """Say whether copies of rows are dealt to one fold: not where asked otherwise, nor where few rows are distinct."""
    if dataset.copies == APART or not dataset.copied.rows or dataset.copied.few_distinct:
        return False
    return dataset.n - dataset.copied.rows >= folds


def copies_apart(made: Folds, dataset: Dataset) -> Indices:
    """Return the numbers of the rows that are held out while the fit is trained on a copy of theirs."""
    if not dataset.copied.rows:
        return np.zeros(0, np.int64)
    number, copy = made.number, dataset.copied.number
    seen = np.zeros(number.size, np.bool_)
    if made.training is None:
        least, most = np.full(copy.max() + 1, number.max()), np.full(copy.max() + 1, -1)
        np.minimum.at(least, copy, number)
        np.maximum.at(most, copy, number)
        seen = least[copy] < most[copy]
    else:
        for fold, trained in enumerate(made.training):
            held = number == fold
            seen[held] = np.isin(copy[held], copy[trained])
    return np.flatnonzero(seen & (number >= 0))


def _groups(dataset: Dataset) -> int:
    """Count the groups; OptionError if there are none, or only one."""
    if dataset.groups is None:
        raise OptionError("leaving one group out needs groups: name the column, or give an array, that holds them")
    count = int(dataset.groups.max()) + 1
    if count == 1:
        raise OptionError(
            "all rows are of one group, and groups are held out whole: no row would be left to learn from; "
            "leave the groups out, or give others"
        )
    return count


def _one_group_out(dataset: Dataset) -> Folds:
    count = _groups(dataset)
    assert dataset.groups is not None
    return Folds(dataset.groups, f"leave one group out, {count} folds")


def _in_order(dataset: Dataset) -> Indices:
    """Return the place of each row in the order of time, (n,)."""
    near = dataset.sample.near
    if near is None:
        return np.arange(dataset.n)
    return np.argsort(np.argsort(near.time, kind="stable"))


def _order_of(near: Near | None) -> str:
    return f"the order of {'time' if near is not None and near.named else 'the rows'}"


def _blocks(folds: int, place: Indices, near: Near | None) -> Folds:
    """Cut rows in the order of time into blocks whose sizes differ by at most one row; fits are trained on others."""
    n = place.size
    if folds > n:
        raise OptionError(f"{folds} blocks can't be made of {n} rows: use at most {n}")
    return Folds(place * folds // n, f"{folds} blocks in {_order_of(near)}", in_time=True)


def _in_time(folds: int, place: Indices, near: Near | None) -> Folds:
    """Cut rows in the order of time into blocks of one size, the first one the longest: each is held out but that."""
    n = place.size
    if near is not None and near.embargo is not None:
        raise OptionError(
            f"embargo {near.asked['embargo']} is for rows after a fold, and fits of time:{folds} are trained on those "
            f"before it: use blocks:{folds}, or leave it out"
        )
    if folds >= n:
        raise OptionError(f"{folds} folds in the order of time can't be made of {n} rows: use at most {n - 1}")
    size = n // (folds + 1)
    first = n - folds * size
    number = np.where(place < first, -1, (place - first) // size)
    training = number < np.arange(folds)[:, None]
    return Folds(number, f"{folds} folds in {_order_of(near)}", training, in_time=True)


def _apart(made: Folds, near: Near | None) -> Folds:
    """Leave rows that are near to a fold out of what its fit is trained on."""
    if near is None or not made.starts.size > 1:
        return made
    folds, n = made.starts.size - 1, made.number.size
    check_memory(folds * n, f"what {folds} folds leave out of {n} rows", "give fewer folds")
    training = made.number != np.arange(folds)[:, None] if made.training is None else made.training.copy()
    for fold, kept in enumerate(training):
        kept &= ~near.around(made.number == fold)
    text = f"{made.text}, {near.text}" if near.text else made.text
    return replace(made, text=text, training=training, in_time=made.in_time or near.in_time)


def _from_numbers(values: Any, dataset: Dataset) -> Folds:
    """Read the fold of each row as given."""
    name = getattr(values, "name", None)
    what = "the folds" if name is None else f"the folds in column {name!r}"
    array = np.asarray(values)
    if array.shape != (dataset.given,):
        raise OptionError(f"{what}: there must be one for each of the {dataset.given} rows, not shape {array.shape}")
    if array.dtype.kind not in "OUTiuf":
        raise OptionError(f"{what} must be whole numbers or text, not {array.dtype}")
    gaps = missing(values)
    if gaps.any():
        raise OptionError(f"{what}: row {int(np.argmax(gaps)) + 1} has none; give -1 to rows that are never held out")
    if array.dtype.kind in "OUT":
        array = np.unique(array.astype(str), return_inverse=True)[1]
    wrong = (array != np.round(array)) | (np.abs(array.astype(np.float64)) > LARGEST_NUMBER)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise OptionError(f"{what} must be whole numbers or text, but row {row + 1} has {array[row]}")
    number = array.astype(np.int64)[dataset.places]
    present = np.unique(number[number >= 0])
    numbered = np.where(number < 0, -1, np.searchsorted(present, number))
    text = _counted(present.size, "folds as given", int(np.count_nonzero(number < 0)), np.zeros(0, np.int64))
    return Folds(numbered, text)


def _of_splits(splits: Splits, near: Near | None) -> list[Folds]:
    """Return the deals that splits make, without the rows that are near to what each of them holds out."""
    if near is not None:
        check_memory(len(splits.test) * splits.n, f"what {len(splits.test)} folds leave out", "give fewer folds")
        splits = splits.without(near.around)
    times = splits.times
    text = _counted(len(splits.test), splits.text, int(np.count_nonzero(times == 0)), times)
    if near is not None and near.text:
        text += f", {near.text}"
    in_time = not splits.whole or (near is not None and near.in_time)
    overlapping = len(splits.test) if times.max(initial=0) > 1 else 0
    return [Folds(number, text, kept, in_time=in_time, splits=overlapping) for number, kept in splits.deals()]


def _counted(count: int, text: str, outside: int, times: Indices) -> str:
    """Return what folds are, with their number and how often they hold out rows."""
    most = int(times.max(initial=0))
    least = int(times.min(initial=most))
    often = f", each row held out {most} times" if least == most else f", rows held out up to {most} times"
    return (
        f"{count} {text if count != 1 else text.replace('folds', 'fold', 1)}"
        + often * (most > 1)
        + f", {outside} row{'s' * (outside != 1)} never held out" * bool(outside)
    )


def _check_groups(made: Folds, dataset: Dataset) -> None:
    """Raise an OptionError if two rows of one group are in different folds."""
    groups = dataset.groups
    assert groups is not None
    _, first = np.unique(groups, return_index=True)
    apart = made.number != made.number[first[groups]]
    if apart.any():
        row = int(np.argmax(apart))
        other = int(first[groups[row]])
        raise OptionError(
            f"{made.text}: rows {dataset.places[other] + 1} and {dataset.places[row] + 1} are of one group but not in "
            "one fold; give a number of folds or logo, which keep groups whole, or leave the groups out"
        )
