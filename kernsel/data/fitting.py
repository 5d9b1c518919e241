"""Fit an encoder to the features of a table, and say what became of its columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernsel.data.choices import HAMMING, Choices
from kernsel.data.columns import absent, as_text, check_sparse_values, sign_of
from kernsel.data.encoding import Encoder, refused
from kernsel.data.gaps import share
from kernsel.data.imputing import MOST_FEATURES, MOST_ROWS, NormalLaw, fit_normal, spread
from kernsel.data.kinds import CATEGORY, NUMBER, PLAIN, Found, Kind, describe_columns, find_kinds, gaps_in, read_numbers
from kernsel.data.moments import LevelSums, Moments, NumberSums, Totals
from kernsel.data.names import check_unique, listed, some
from kernsel.data.remarks import PLAIN_REASONS
from kernsel.data.tables import SparseTable, Table, array_names, is_frame, take
from kernsel.errors import DataError, OptionError
from kernsel.numerics.points import Points, deviations
from kernsel.numerics.runtime.once import once
from kernsel.types import Array, Indices, Mask

if TYPE_CHECKING:
    import pandas as pd

MAX_ENCODED_BYTES = 8 * 2**30
"""One-hot columns that would need more than this are refused."""
COMMON = 0.05
"""A column in which at least this share of the values is missing has a 0/1 column beside it that says where, if it has
categories or but one value, or if the target tells."""
TELLING = 3.0
"""The target tells if it differs by more than so many standard errors where numbers are missing. Elsewhere such a
column is noise, and all of them together cost up to a tenth of the error."""
MOST_KRIGED = 100_000
"""Above so many rows the law alone fills in. With 20 columns, a tenth of their values missing, the nearest rows would
take some seconds for each further 100,000."""
MOST_NAMED = 60
"""Columns with gaps that a note names."""


class Fit:
    """The encoder that is fitted to a table, column by column.

    Parameters
    ----------
    names : tuple of str
        All columns of the table.
    n : int
        Number of rows.
    weights : (n,) array or None
    Y : (k, n) array or None
        The encoded target, if there is one.
    totals : Totals or None
        Of rows in parts, whose weights and targets are nowhere together.
    """

    def __init__(
        self,
        names: tuple[str, ...],
        choices: Choices,
        n: int,
        standardize: bool,
        weights: Array | None,
        Y: Array | None,
        totals: Totals | None = None,
    ) -> None:
        check_unique(names, "the table")
        self.names, self.choices, self.n = names, choices, n
        self.standardize, self.weights, self.Y, self.totals = standardize, weights, Y, totals
        self.numeric: dict[str, tuple[float, float]] = {}
        self.categories: dict[str, tuple[str, ...]] = {}
        self.pooled: dict[str, tuple[str, ...]] = {}
        self.all_rare: list[str] = []
        self.kinds: dict[str, Kind] = {}
        self.signs: dict[str, str] = {}
        self.fills: dict[str, float | str] = {}
        self.gaps: dict[str, int] = {}
        self.reasons: dict[str, str] = {}
        self.found: list[Found] = []
        self.common: list[str] = []  # those with a 0/1 column that says where a value was missing
        self.joint: NormalLaw | None = None

    def add_numbers(self, name: str, features: Sequence[str], values: Array) -> None:
        """Add a column of numbers (n, m) with the names of its m features."""
        self._refuse(name, np.isnan(values[:, 0]))
        self.put_numbers(name, features, NumberSums.of(features, values, self.weights, self.Y))

    def put_numbers(self, name: str, features: Sequence[str], sums: NumberSums) -> None:
        """Add a column of numbers by what is known of it, with the names of its features."""
        kept = 0
        for feature, moments in zip(features, sums.features, strict=True):
            kept += self._put_feature(feature, moments)
        self._put_gaps(name, sums.holes, always=not kept)
        if not kept:
            self.reasons[name] = "without values" if sums.holes.rows == self.n else "constant"

    def _put_feature(self, feature: str, moments: Moments) -> bool:
        if not moments.rows or (self.standardize and moments.least == moments.greatest):
            return False
        self.numeric[feature] = (moments.mean, moments.deviation) if self.standardize else (0.0, 1.0)
        self.fills[feature] = moments.mean
        return True

    def add_categories(self, name: str, texts: npt.NDArray[np.object_]) -> None:
        """Add a column of categories (n,), None where one is missing."""
        self._refuse(name, absent(texts))
        self.put_categories(name, LevelSums.of(texts, self.weights, self.Y))

    def put_categories(self, name: str, sums: LevelSums) -> None:
        """Add a column of categories by what is known of it."""
        levels, weights = sums.levels, sums.weights
        self._put_gaps(name, sums.holes, always=True)
        if len(levels) < 2:
            self.reasons[name] = "constant" if len(levels) else "without values"
            return
        rare = sums.counts < self.choices.rare
        if rare.all() and self.choices.rare > 1:
            self.all_rare.append(name)
        elif rare.sum() > 1:
            self.pooled[name] = tuple(levels[rare].tolist())
            levels, weights = levels[~rare], weights[~rare]
        self.categories[name] = tuple(levels.tolist())
        self.fills[name] = str(levels[int(weights.argmax())])

    def _refuse(self, name: str, holes: Mask) -> None:
        if self.choices.missing == "refuse" and holes.any():
            raise DataError(refused({name: holes}))

    def _put_gaps(self, name: str, holes: Totals, always: bool) -> None:
        count = holes.rows
        if count and count < self.n:
            self.gaps[name] = count
            if self.choices.missing != "impute" or count < COMMON * self.n:
                return
            if always or self._totals.tell(holes, TELLING):
                self.common.append(name)

    @once
    def _totals(self) -> Totals:
        return Totals.of(self.n, self.weights, self.Y) if self.totals is None else self.totals

    def encoder(self, aside: tuple[str, ...]) -> Encoder:
        """Return the encoder."""
        pairs = np.array(list(self.numeric.values()), dtype=np.float64).reshape(-1, 2)
        mean, scale = pairs.T.copy()
        return Encoder(
            columns=self.names,
            numeric=tuple(self.numeric),
            mean=mean,
            scale=scale,
            categories=self.categories,
            ignored=aside,
            kinds=self.kinds,
            fills=self.fills,
            gaps=tuple(self.common),
            missing=self.choices.missing,
            coding=self.choices.categories,
            pooled=self.pooled,
            signs=self.signs,
        )

    @property
    def lawful(self) -> bool:
        """Whether numbers are missing, and a law can say what takes their place."""
        return len(self.numeric) <= MOST_FEATURES and any(
            feature in self.numeric for name in self.gaps for feature in self.kinds.get(name, PLAIN).features(name)
        )

    def with_law(self, encoder: Encoder, numbers: Array, weights: Array | None) -> Encoder:
        """Return the encoder with the law of its numeric features, fitted to those (m, d) of ``law_rows``."""
        self.joint = fit_normal(numbers, weights, near=self.n <= MOST_KRIGED)
        return replace(encoder, law=self.joint)

    def check_size(self, encoder: Encoder) -> None:
        """Raise a DataError if there are too many 0/1 columns."""
        size = self.n * len(encoder.features) * 8
        if size > MAX_ENCODED_BYTES:
            categories = encoder.categories
            most = max(categories, key=lambda name: len(categories[name]))
            raise DataError(too_many_levels(most, len(encoder.features), self.n, size))

    def notes(self) -> list[str]:
        """Say what became of the columns."""
        levels = {name: self._count(name) for name in self.categories}
        features = [each for each in self.found if self.reasons.get(each.name) is None and each.reason is None]
        described = describe_columns(features, levels, self.choices.categories == HAMMING)
        out = [described] if described else []
        if self.pooled:
            each = [f"{name!r} {len(rare)}" for name, rare in self.pooled.items()]
            out.append(f"rare categories: those of fewer than {self.choices.rare} rows are one ({some(each)})")
        if self.all_rare:
            out.append(
                f"rare categories: all of {listed(self.all_rare)} are of fewer than {self.choices.rare} rows, and stay"
            )
        reasons: dict[str, list[str]] = {}
        for name, reason in [*((e.name, e.reason) for e in self.found if e.reason), *self.reasons.items()]:
            if reason is not None and name not in self.common:
                reasons.setdefault(reason, []).append(name)
        out += [_left_out(reason, names) for reason, names in reasons.items()]
        return [*out, *(each.remark for each in self.found if each.remark is not None), *self._notes_on_gaps()]

    def _count(self, name: str) -> int:
        """Return how many categories a column has, rare ones too."""
        return len(self.categories[name]) + len(self.pooled.get(name, ()))

    def _notes_on_gaps(self) -> list[str]:
        if not self.gaps:
            return []
        each = [f"{name!r} {share(count, self.n)}" for name, count in self.gaps.items()]
        more = f" and {len(each) - MOST_NAMED} more columns" * (len(each) > MOST_NAMED)
        named = f"missing values: {', '.join(each[:MOST_NAMED])}{more} of {self.n} rows"
        beside = f"; 0/1 columns say where of {listed(self.common)}" if self.common else ""
        mean = "the mean" if self.joint is None else "the mean given the row's other numbers"
        return [f"{named}; {mean}, or the most frequent category, takes their place, as all rows tell it{beside}"]

    def left_out(self) -> dict[str, str]:
        """Return why columns are no features."""
        return {each.name: each.reason for each in self.found if each.reason is not None} | self.reasons

    def document(self) -> list[dict[str, Any]]:
        """Return what became of each column, as JSON has it."""
        out = []
        for each in self.found:
            reason = each.reason or (None if each.name in self.common else self.reasons.get(each.name))
            entry: dict[str, Any] = {
                "name": each.name,
                "type": each.kind.type,
                "missing": self.gaps.get(each.name, each.gaps) / self.n,
                "was_missing": each.name in self.common,
                "left_out": reason,
            }
            if each.name in self.categories:
                entry["levels"] = self._count(each.name)
                if each.name in self.pooled:
                    entry["pooled"] = len(self.pooled[each.name])
            elif each.kind.levels:
                entry["levels"] = list(each.kind.levels)
            out.append(entry)
        return out


def fit_matrix(fit: Fit, matrix: Array, aside: tuple[str, ...]) -> tuple[Encoder, Array]:
    """Encode an array; not standardised and without gaps, it is used as it is."""
    holes = {}
    for name, column in zip(fit.names, matrix.T, strict=True):
        where = np.isnan(column)
        if where.any():
            holes[name] = where
    if holes and fit.choices.missing == "refuse":
        raise DataError(refused(holes))
    for name, column in zip(fit.names, matrix.T, strict=True):
        fit.add_numbers(name, (name,), column[:, None])
    encoder = fit.encoder(aside)
    if holes:
        encoder = _with_law(fit, encoder, matrix)
        return encoder, encoder.transform(matrix)
    if not fit.standardize:
        return encoder, matrix
    X = np.ascontiguousarray(matrix[:, [name in fit.numeric for name in fit.names]])  # a copy, for what follows
    X -= encoder.mean
    X /= encoder.scale
    return encoder, X


def fit_frame(fit: Fit, frame: pd.DataFrame, found: list[Found], aside: tuple[str, ...]) -> tuple[Encoder, Array]:
    """Encode a DataFrame whose columns were found to be so."""
    fit.found = found
    used = [(j, each) for j, each in enumerate(found) if each.reason is None]
    if fit.choices.missing == "refuse":
        check_refused(frame, used)
    for j, each in used:
        column = frame.iloc[:, j].rename(each.name)
        if each.kind.type == CATEGORY:
            fit.add_categories(each.name, as_text(column, each.words))
            continue
        if each.kind != PLAIN:
            fit.kinds[each.name] = each.kind
        if each.kind.type == NUMBER and (sign := sign_of(column)) is not None:
            fit.signs[each.name] = sign
        fit.add_numbers(each.name, each.kind.features(each.name), read_numbers(column, each.kind))
    check_features(found)
    encoder = fit.encoder(aside)
    fit.check_size(encoder)
    encoder = _with_law(fit, encoder, frame)
    return encoder, encoder.transform(frame)


def _with_law(fit: Fit, encoder: Encoder, table: Table) -> Encoder:
    """Return the encoder with the law of the numeric features, if values are missing from them."""
    if not fit.lawful:
        return encoder
    rows = law_rows(fit.n)
    return fit.with_law(encoder, encoder.numbers(take(table, rows)), None if fit.weights is None else fit.weights[rows])


def law_rows(n: int) -> Indices:
    """Return the rows of n that the law of numeric features is fitted to: not all, or their numbers are there twice."""
    return spread(n, MOST_ROWS)


def check_features(found: Iterable[Found]) -> None:
    """Raise a DataError if two columns become numbers of one name."""
    numbers = [each for each in found if each.reason is None and each.kind.type != CATEGORY]
    check_unique([feature for each in numbers for feature in each.kind.features(each.name)], "the parts of dates")


def too_many_levels(name: str, features: int, n: int, size: float) -> str:
    """Return the message for 0/1 columns of so many bytes, of which the column ``name`` has the most."""
    return (
        f"the text columns have too many values: {features} 0/1 columns for {n} rows take {size / 2**30:.0f} GB; "
        f"leave out the column with the most values, by --drop {name!r}"
    )


def check_refused(frame: pd.DataFrame, used: Iterable[tuple[int, Found]]) -> None:
    """Raise a DataError that names every column in use with missing values."""
    holes = {each.name: gaps_in(frame.iloc[:, j].rename(each.name), each) for j, each in used if each.gaps}
    if holes:
        raise DataError(refused(holes))


def incomplete(table: Table, found: Sequence[Found] | None) -> Mask:
    """Return which rows of a DataFrame or array lack a value that is used, (n,)."""
    if not is_frame(table):
        return np.asarray(np.isnan(table).any(axis=1))
    out = np.zeros(len(table), dtype=bool)
    for j, each in enumerate(found or ()):
        if each.reason is None and each.gaps:
            out |= gaps_in(table.iloc[:, j].rename(each.name), each)
    return out


def fit_sparse(
    table: SparseTable, aside: tuple[str, ...], standardize: bool, weights: Array | None, choices: Choices,
    notes: list[str],
) -> tuple[Encoder, Points]:  # fmt: skip
    """Encode sparse rows; they have numbers only, and none is missing."""
    check_unique(table.names, "the table")
    typed = [*choices.categorical, *choices.ordinal]
    if typed:
        raise OptionError(f"the table is sparse and has numbers only: {listed(typed)} can't have another type")
    check_sparse_values(table.X, table.names)
    kept = np.array([n not in choices.drop and (not choices.keep or n in choices.keep) for n in table.names])
    scale = np.ones(len(table.names))
    if standardize:
        constant = table.X.max(axis=0).toarray() == table.X.min(axis=0).toarray()
        if constant.any():
            notes.append(_left_out("constant", [table.names[j] for j in np.flatnonzero(constant & kept)]))
        kept &= ~constant
        scale = deviations(table.X, np.ones(len(table)) if weights is None else weights)
        notes.append(
            "sparse columns are divided by their standard deviation but not centred, so that zeros stay zeros; "
            "distances are the same either way"
        )
    places = np.flatnonzero(kept)
    names = tuple(table.names[j] for j in places)
    encoder = Encoder(table.names, names, np.zeros(places.size), scale[places], {}, aside, signs={})
    return encoder, encoder.transform(table)


def find(table: Table, choices: Choices, places: Indices) -> list[Found] | None:
    """Find out what the columns of a DataFrame hold; None for other tables."""
    return find_kinds(table, choices, places) if is_frame(table) else None


def names_in(table: Table) -> tuple[str, ...]:
    """Return the names of the columns, those that an array has."""
    if is_frame(table):
        return tuple(str(column) for column in table.columns)
    return table.names if isinstance(table, SparseTable) else array_names(table.shape[1])


def _left_out(reason: str, names: Sequence[str]) -> str:
    one = len(names) == 1
    if reason == "dropped":
        return f"column{'s' * (not one)} {listed(names)} left out, as asked for"
    what = f"column{'s' * (not one)} {listed(names)} {'is' if one else 'are'} {reason} and left out"
    return what if reason in PLAIN_REASONS else f"{what} (a column named by --numeric or --categorical stays)"
