"""A table whose rows are in parts, encoded as it would be in one place: by sums over the parts.

    look -> View: what columns and targets hold, by types and counts;
    look_closer -> Closer: different values, of columns that aren't plain numbers;
    measure -> Measures: moments of numbers, levels of categories, and what is to be known of gaps, by ``moments``;
    pick -> the numbers of 2000 rows, to which the law of missing ones is fitted.

Each is a function of a part, whose values are merged in the order of the parts; `find_columns`, `find_target` and
`find_encoder` finish them. Nothing is changed by how rows are cut into parts, or by parts without rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from kernsel.data.columns import FILL_IN, as_text, check_values, find_words, has_words, sign_of
from kernsel.data.encoding import Encoder
from kernsel.data.fitting import Fit, check_features, law_rows, too_many_levels
from kernsel.data.kinds import CATEGORY, NUMBER, PLAIN, find_in, find_kind, read_numbers
from kernsel.data.moments import LevelSums, Moments, NumberSums, Totals
from kernsel.data.more import encode_columns
from kernsel.data.names import listed
from kernsel.data.part_rows import Columns, Part, Rows, check_names, naming
from kernsel.data.remarks import check_any_feature, check_left, check_rows, describe_weights, some_rows, what_is_shared
from kernsel.data.seen import Different, Glimpse, Seen
from kernsel.data.signs import Signs, join_signs, single_sign
from kernsel.data.tables import as_pandas, take
from kernsel.data.target import Rest, Target, encode_targets, read_target
from kernsel.errors import DataError
from kernsel.types import Array

if TYPE_CHECKING:
    import pandas as pd


class TargetView(NamedTuple):
    """What is seen of a target: its different values, and the moments of numbers."""

    values: Different
    moments: Moments | None

    @classmethod
    def of(cls, column: pd.Series, name: str, weights: Array | None, words: tuple[str, ...] | None) -> Self:
        """Return what is seen of a part; of one with words such as None, before all parts tell what these are, less."""
        if words is None and has_words(column):
            return cls(Different.of(column), None)
        _, values, floats = read_target(column, name, words)
        if floats is None and values.dtype.kind in "biuf":
            floats = values.astype(np.float64)
        if floats is None:
            return cls(Different.of(column), None)
        check_values(floats, name)
        return cls(Different.of(column), Moments.of(floats, weights))

    def merge(self, other: Self) -> Self:
        """Return what is seen of these rows and others."""
        moments = None
        if self.moments is not None and other.moments is not None:
            moments = self.moments.merge(other.moments)
        return type(self)(self.values.merge(other.values), moments)


class View(NamedTuple):
    """What is seen of a table at first sight.

    Parameters
    ----------
    given, weighty, targeted, rows : int
        Rows of the table; those of them with a weight; of these, with a target; and those that count.
    weight : float or None
        Sum of the weights, if there are any.
    signs : dict of str to frozenset
        What stands beside the numbers of columns and targets that have values.
    wordy : bool
        Whether a target has words such as None, and it isn't known whether these are values.
    """

    names: tuple[str, ...]
    columns: tuple[Glimpse, ...]
    targets: dict[str, TargetView]
    given: int
    weighty: int
    targeted: int
    rows: int
    weight: float | None
    signs: Signs
    wordy: bool

    def merge(self, other: Self) -> Self:
        """Return what is seen of these rows and those behind them."""
        if not self.given or not other.given:
            return self if self.given else other
        check_names(self.names, other.names)
        if list(self.targets) != list(other.targets):
            raise DataError(f"parts have other targets ({listed([*self.targets])}; {listed([*other.targets])})")
        there = {name: j for j, name in enumerate(other.names)}
        columns = zip(self.names, self.columns, strict=True)
        return type(self)(
            self.names,
            tuple(each.merge(other.columns[there[name]]) for name, each in columns),
            {name: each.merge(other.targets[name]) if self.rows and other.rows else (each if self.rows else
             other.targets[name]) for name, each in self.targets.items()},
            self.given + other.given,
            self.weighty + other.weighty,
            self.targeted + other.targeted,
            self.rows + other.rows,
            None if self.weight is None or other.weight is None else self.weight + other.weight,
            join_signs(self.signs, other.signs),
            self.wordy or other.wordy,
        )  # fmt: skip


class Closer(NamedTuple):
    """The different values of some columns."""

    columns: dict[str, Different]

    def merge(self, other: Self) -> Self:
        """Return those of these rows and others."""
        if not self.columns or not other.columns:
            return self if self.columns else other
        return type(self)({name: each.merge(other.columns[name]) for name, each in self.columns.items()})


class Measures(NamedTuple):
    """What an encoder is made of.

    Parameters
    ----------
    columns : dict of str to NumberSums or LevelSums
        Of the columns in use.
    rows : tuple of int
        Rows that count of each part.
    """

    totals: Totals
    columns: dict[str, Any]
    rows: tuple[int, ...]

    def merge(self, other: Self) -> Self:
        """Return what there is of these parts and those behind them."""
        if not self.columns or not other.columns:
            some = self if self.columns else other
            return some._replace(rows=self.rows + other.rows)
        columns = {name: each.merge(other.columns[name]) for name, each in self.columns.items()}
        return type(self)(self.totals.merge(other.totals), columns, self.rows + other.rows)


class Picked(NamedTuple):
    """Numbers (m, d) of some rows, and their weights."""

    numbers: Array
    weights: Array | None

    def merge(self, other: Self) -> Self:
        """Return those of these rows and those behind them."""
        weights = None
        if self.weights is not None and other.weights is not None:
            weights = np.append(self.weights, other.weights)
        return type(self)(np.concatenate([self.numbers, other.numbers]), weights)


@naming
def look(rows: Rows, columns: Columns) -> View:
    """Return what is seen of a part at first sight."""
    part = Part.of(rows, columns)
    frame, kept = part.frame, part.kept
    names = tuple(map(str, frame.columns))
    each = tuple(Glimpse.of(frame.iloc[:, j].rename(name), kept.rows, kept.given) for j, name in enumerate(names))
    words: Mapping[str, tuple[str, ...]] = columns.words or {}
    targets = {
        name: TargetView.of(column, name, kept.weights, words.get(name)) for name, column in part.targets.items()
    }
    weight = None if kept.weights is None else float(kept.weights.sum())
    given = {name: frame.iloc[:, j].rename(name) for j, name in enumerate(names)} | part.targets
    signs = {name: frozenset({sign_of(column.rename(name))}) for name, column in given.items() if column.notna().any()}
    wordy = columns.words is None and any(map(has_words, part.targets.values()))
    return View(names, each, targets, kept.given, kept.weighty, part.targeted, kept.rows.size, weight, signs, wordy)


def find_target_words(view: View) -> dict[str, tuple[str, ...]]:
    """Return the words such as None that are values of each target, as all of its rows tell."""
    return {name: find_words(each.values.values) for name, each in view.targets.items()}


@naming
def look_closer(rows: Rows, columns: Columns, wanted: Sequence[str]) -> Closer:
    """Return the different values of some columns of a part."""
    if not len(as_pandas(rows.table)):
        return Closer({})
    frame = Part.of(rows, columns).frame
    return Closer({name: Different.of(frame[name]) for name in wanted})


def unclear(view: View) -> tuple[str, ...]:
    """Return the columns that are to be looked at closer."""
    return tuple(name for name, each in zip(view.names, view.columns, strict=True) if each.needs_values(name))


def find_columns(view: View, closer: Closer, before: Columns) -> Columns:
    """Return what the columns hold; DataError if that can't be used."""
    choices = before.choices
    check_rows(view.given)
    check_left(view.weighty, "weight 0")
    if view.targeted < view.weighty:
        check_left(view.targeted, f"no value of {_whose(view)}; choose another one")
    check_rows(view.rows)
    seen = [Seen(*each, closer.columns.get(each[0])) for each in zip(view.names, view.columns, strict=True)]
    found = find_in([find_kind(each, choices) for each in seen])
    for each, column in zip(found, seen, strict=True):
        if each.kind.type == CATEGORY and each.reason is None and column.found and not column.found.complete:
            size = 8.0 * view.rows * column.levels
            raise DataError(too_many_levels(each.name, column.levels, view.rows, size))
    numbers = [*(each.name for each in found if each.kind.type == NUMBER and each.reason is None), *view.targets]
    each_sign = {name: single_sign(name, view.signs.get(name, frozenset()), "parts of the table") for name in numbers}
    signs = {name: sign for name, sign in each_sign.items() if sign is not None}
    return before._replace(names=view.names, found=found, signs=signs)


def complete(columns: Columns) -> Columns | None:
    """Return the columns with rows left out that lack values, None if there are none, or they may."""
    used = [each for each in columns.found if each.reason is None and each.gaps]
    if used and columns.choices.missing == "refuse":
        raise DataError(f"values are missing in {listed([each.name for each in used])}; {FILL_IN}")
    return columns._replace(complete=columns.found) if used and columns.choices.missing == "drop" else None


def find_target(view: View, task: str) -> Target:
    """Return the target by its different values: task, labels and units are those of all rows."""
    columns, rest = {}, {}
    for name, each in view.targets.items():
        columns[name] = each.values.of_one_type().rename(name)
        mean, deviation = (0.0, 1.0) if each.moments is None else (each.moments.mean, each.moments.deviation)
        rest[name] = Rest(view.rows, each.values.number, mean, deviation)
    return encode_targets(columns, task, None, rest)


@naming
def measure(rows: Rows, columns: Columns, target: Target) -> Measures:
    """Return what an encoder is made of, of a part."""
    if not len(as_pandas(rows.table)):
        return Measures(Totals.of(0, None, None), {}, (0,))
    part = Part.of(rows, columns)
    s = part.kept.weights
    if not part.kept.rows.size:
        return Measures(Totals.of(0, None, None), {}, (0,))
    Y = encode_columns(part.targets, target.labels, target.shift, target.scale)
    sums: dict[str, Any] = {}
    for j, each in enumerate(columns.found):
        if each.reason is not None:
            continue
        column = part.frame.iloc[:, j].rename(each.name)
        if each.kind.type == CATEGORY:
            sums[each.name] = LevelSums.of(as_text(column, each.words), s, Y)
        else:
            sums[each.name] = NumberSums.of(each.kind.features(each.name), read_numbers(column, each.kind), s, Y)
    return Measures(Totals.of(len(part.frame), s, Y), sums, (len(part.frame),))


def find_encoder(
    measures: Measures, columns: Columns, standardize: bool, aside: tuple[str, ...]
) -> tuple[Fit, Encoder]:
    """Return the encoder, without the law of missing numbers, and the fit that it is of."""
    check_features(columns.found)
    fit = Fit(columns.names, columns.choices, measures.totals.rows, standardize, None, None, measures.totals)
    fit.found, fit.signs = list(columns.found), dict(columns.signs)
    for each in columns.found:
        sums = measures.columns.get(each.name)
        if isinstance(sums, LevelSums):
            fit.put_categories(each.name, sums)
        elif sums is not None:
            if each.kind != PLAIN:
                fit.kinds[each.name] = each.kind
            fit.put_numbers(each.name, each.kind.features(each.name), sums)
    encoder = fit.encoder(aside)
    fit.check_size(encoder)
    check_any_feature(encoder, fit.left_out())
    return fit, encoder


@naming
def pick(rows: Rows, columns: Columns, encoder: Encoder, counts: Sequence[int]) -> Picked:
    """Return the numbers of a part's rows that the law of missing ones is fitted to.

    Parameters
    ----------
    counts : sequence of int
        Of the rows of each part that count.
    """
    before, own = int(sum(counts[: rows.number])), counts[rows.number]
    wanted = law_rows(int(sum(counts))) - before
    wanted = wanted[(wanted >= 0) & (wanted < own)]
    if not own:
        return Picked(np.zeros((0, len(encoder.numeric))), None if rows.weights is None else np.zeros(0))
    part = Part.of(rows, columns)
    s = part.kept.weights
    return Picked(encoder.numbers(take(part.frame, wanted)), None if s is None else s[wanted])


def notes(view: View, fit: Fit, encoder: Encoder, target: Target) -> list[str]:
    """Say what was inferred, changed or left out."""
    out = []
    if view.weighty < view.given:
        out.append(f"{some_rows(view.given - view.weighty, view.given)} of weight 0 left out")
    if view.targeted < view.weighty:
        out.append(f"{some_rows(view.weighty - view.targeted, view.weighty)} without {_whose(view)} left out")
    if view.rows < view.targeted:
        out.append(f"{some_rows(view.targeted - view.rows, view.targeted)} with missing values left out")
    if view.weight is not None:
        out.append(describe_weights(view.rows, view.weight))
    return [*out, *fit.notes(), target.note, *what_is_shared(encoder)]


def _whose(view: View) -> str:
    return f"the target {next(iter(view.targets))!r}" if len(view.targets) == 1 else "one of the targets"
