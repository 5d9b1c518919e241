"""Turn the columns of a table into one float64 matrix, the same way for every later table.

A numeric column x becomes ``(x - mean) / scale`` with the mean and the standard deviation (divisor n) of the table
that the encoder was fitted on; of a sparse table the mean is left out, and zeros stay zeros. So do an ordinal column,
whose levels are numbered, and the parts of a date. A column of text, truth values or categories becomes one 0/1 column
a category. It isn't scaled, and no category is dropped: two rows that differ in such a column are at squared distance
2, however many categories there are.

Coded by *hamming*, they are so in new rows, too: a category that the encoder never saw has a 0/1 column of its own, and
is at distance 2 from all others. All 0/1 columns of one column are a group of features that share a relevance theta, so
that kernels of weighted distances have for it the factor ``exp(-2 theta [x is not z])``, and Gaussian and Laplacian
kernels are products of these and of a kernel of the numbers.

Where a number is missing, its mean given the other numbers of the row takes its place, by a law of all rows
(``kernsel.data.imputing``) and by the rows near to it (``kernsel.data.kriging``), or the column's mean where there is
no such law; for a category the most frequent one does. A column in which that was common has another one beside it, 1
where a value was missing and 0 elsewhere; if it is of numbers, only where the target differs with that.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernsel.data.choices import HAMMING, ONE_HOT
from kernsel.data.columns import (
    FILL_IN,
    absent,
    as_dense,
    as_text,
    check_sparse_values,
    check_values,
    missing_values,
    sign_of,
)
from kernsel.data.gaps import share
from kernsel.data.imputing import NormalLaw
from kernsel.data.kinds import DATE, NUMBER, PLAIN, Found, Kind, gaps_in, read_numbers
from kernsel.data.names import check_unique, listed, told_apart
from kernsel.data.signs import check_sign
from kernsel.data.tables import SparseTable, Table, array_names, as_pandas, as_table, is_frame
from kernsel.errors import DataError, SelectionWarning
from kernsel.numerics import points
from kernsel.numerics.points import Points, is_sparse
from kernsel.numerics.similarities import NEW_ROW
from kernsel.types import Array, Indices, Mask

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Encoder:
    """The map from the columns of a table to the features of a model.

    Parameters
    ----------
    columns : tuple of str
        All columns of the table it was fitted on, but those ignored, in their order.
    numeric : tuple of str
        The numeric features in use: columns, and parts of dates.
    mean, scale : (len(numeric),) arrays
        In the units of each column.
    categories : dict of str to tuple of str
        The one-hot encoded columns in use, each with its categories.
    ignored : tuple of str
        What may be present in a later table without being a feature: the target, weights, groups.
    kinds : dict of str to Kind
        What other columns hold than plain numbers and categories.
    fills : dict of str to float or str
        What takes the place of a missing value, by numeric feature and column with categories; none in a model of
        before there was such a thing.
    gaps : tuple of str
        Columns with a 0/1 column that says where a value was missing.
    law : NormalLaw or None
        Of the numeric features, if values were missing from them.
    missing : str
        What is done about missing values of a later table: ``"impute"`` them, ``"refuse"`` them, or impute them with a
        warning, ``"drop"``, as rows with missing values were left out of the table that it was fitted on.
    coding : str
        How categories are coded: ``"onehot"`` or ``"hamming"``.
    pooled : dict of str to tuple of str
        The rare categories of a column, which are coded as one.
    signs : dict of str to str or None
        What stood beside the numbers of a column, or of a target, of the table that it was fitted on: % or a sign of
        currency. Nothing did beside others. None in a model of before this was known.
    similarities : bool
        Whether the columns are a kernel's values with the rows that it was fitted on. The number of the row itself,
        that of a new one, then stands before them: see `kernsel.kernels.given.Precomputed`.
    """

    columns: tuple[str, ...]
    numeric: tuple[str, ...]
    mean: Array
    scale: Array
    categories: Mapping[str, tuple[str, ...]]
    ignored: tuple[str, ...]
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    fills: Mapping[str, float | str] = field(default_factory=dict)
    gaps: tuple[str, ...] = ()
    law: NormalLaw | None = None
    missing: str = "refuse"
    coding: str = ONE_HOT
    pooled: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    signs: Mapping[str, str] | None = None
    similarities: bool = False

    @property
    def features(self) -> list[str]:
        """Names of the columns of the encoded matrix; one that is made of a column's gives way to the columns'."""
        coded = (feature for name in self.categories for feature in self._coded(name))
        return told_apart([*self.numeric, *coded, *(f"{name} is missing" for name in self.gaps)])

    @property
    def groups(self) -> tuple[int, ...]:
        """How many features, one after another, share each relevance; nothing where each feature has its own."""
        if self.coding == ONE_HOT or not self.categories:
            return ()
        coded = (len(self._coded(name)) for name in self.categories)
        return (*[1] * len(self.numeric), *coded, *[1] * len(self.gaps))

    @property
    def zeros(self) -> Array:
        """Where 0 is of each encoded feature, (d,): NaN of categories and gaps, which have no units."""
        found = np.full(len(self.features), np.nan)
        found[: self.mean.size] = -self.mean / self.scale
        return found

    def _coded(self, name: str) -> list[str]:
        """Return the names of the 0/1 columns that a column of categories becomes."""
        others = [f"{name} is rare"] * (name in self.pooled) + [f"{name} is new"] * (self.coding == HAMMING)
        return [*(f"{name}={value}" for value in self.categories[name]), *others]

    def categories_of(self, X: Points) -> Indices:
        """Return the numbers of the categories of encoded rows (n, d), column by column of ``categories``: (c, n).

        They are those in ``categories``; -1 stands for a category that isn't among them, new or rare.
        """
        found = np.full((len(self.categories), X.shape[0]), -1)
        place = len(self.numeric) + self.similarities
        for each, (name, values) in zip(found, self.categories.items(), strict=True):
            part = points.dense(X[:, place : place + len(values)])
            each[:] = np.where(part.any(axis=1), part.argmax(axis=1), -1)
            place += len(self._coded(name))
        return found

    @property
    def used(self) -> tuple[str, ...]:
        """Names of the table's columns that it needs."""
        return tuple(dict.fromkeys([*self._sources, *self.categories, *self.gaps]))

    @property
    def _sources(self) -> dict[str, list[tuple[int, int]]]:
        """The columns that numeric features come from: the place of each feature, and its number among the column's."""
        parts = {
            feature: (name, part)
            for name, kind in self.kinds.items()
            if kind.type == DATE
            for part, feature in enumerate(kind.features(name))
        }
        found: dict[str, list[tuple[int, int]]] = {}
        for place, feature in enumerate(self.numeric):
            name, part = parts.get(feature, (feature, 0))
            found.setdefault(name, []).append((place, part))
        return found

    def transform(self, table: pd.DataFrame | npt.ArrayLike | Table) -> Points:
        """Encode a table.

        Parameters
        ----------
        table : DataFrame, SparseTable, or (n, len(columns)) array or sparse matrix
            Columns with names are found by them, in any order. An array or matrix has all of ``columns`` in their
            order.

        Returns
        -------
        (n, len(features)) array, C-contiguous, or csr_array
            Sparse where the table is, unless columns are centred or too many rows share features.

        Raises
        ------
        DataError
            Columns are missing or new, or hold what can't be used.
        """
        X = self._transform(table)
        return np.column_stack([np.full(len(X), NEW_ROW), X]) if self.similarities else X

    def _transform(self, table: object) -> Points:
        """Encode a table, column by column."""
        given, named = self._table(table)
        if is_frame(given):
            return self._transform_frame(given)
        X = given.X if isinstance(given, SparseTable) else given
        place = self._places(given.names if named else self.columns)
        for name in (self.signs or {}).keys() & {*self.numeric}:
            self.check_sign(name, None, points.dense(points.columns(X, [place[name]]))[:, 0])
        picked = points.columns(X, [place[name] for name in self.numeric])
        if is_sparse(picked):
            return self._transform_sparse(picked)
        out = np.empty((len(X), len(self.features)))
        out[:, : len(self.numeric)] = picked
        holes = {name: np.isnan(X[:, place[name]]) for name in self.used}
        self._check_gaps(holes)
        self._finish(out[:, : len(self.numeric)])
        return self._with_gaps(out, holes)

    def missing_rows(self, table: pd.DataFrame | npt.ArrayLike | Table) -> Mask:
        """Return which rows of a table lack a value that the encoder needs, (n,)."""
        given, named = self._table(table)
        if not is_frame(given):
            X = given.X if isinstance(given, SparseTable) else given
            place = self._places(given.names if named else self.columns)
            picked = points.columns(X, [place[name] for name in self.used])
            return np.asarray(np.isnan(points.dense(picked)).any(axis=1))
        place = self._places([str(column) for column in given.columns])
        holes, sources = np.zeros(len(given), dtype=bool), self._sources
        for name in self.used:
            column = given.iloc[:, place[name]].rename(name)
            if name in sources:
                holes |= gaps_in(column, Found(name, self.kinds.get(name, PLAIN)))
            else:
                holes |= absent(as_text(column, self._levels(name)))
        return holes

    def _table(self, table: object) -> tuple[Table, bool]:
        """Return a table in the form that its columns need, and whether they have names."""
        table = as_pandas(table)
        named = is_frame(table) or isinstance(table, SparseTable)
        given = as_table(table)
        if is_frame(given):
            return given, True
        X = given.X if isinstance(given, SparseTable) else given
        if not named and X.shape[1] != len(self.columns):
            raise DataError(f"X has {X.shape[1]} columns where the model has {len(self.columns)}")
        if not self.categories and not self.kinds:
            return given, named
        if named or is_sparse(X) or self.columns != array_names(len(self.columns)):
            special = [*self.categories, *self.kinds]
            raise DataError(f"the model has text columns ({listed(special)}): give it a DataFrame")
        import pandas as pd

        return pd.DataFrame(X, columns=list(self.columns), copy=False), True

    def _transform_sparse(self, X: Points) -> Points:
        """Encode the columns in use, sparse; dense are those that are to be centred."""
        check_sparse_values(X, self.numeric)
        if self.mean.any():
            return (as_dense(X, "a model that centres its columns") - self.mean) / self.scale
        scaled = (self.scale != 1).any()
        return points.in_better_form(points.with_values(X, X.data / self.scale[X.indices]) if scaled else X)

    def _places(self, names: Sequence[str]) -> dict[str, int]:
        """Return where the columns of a table are, by name; DataError if they aren't those of the model."""
        known, there = {*self.columns, *self.ignored}, set(names)
        missing = [name for name in self.used if name not in there]
        extra = [name for name in names if name not in known]
        faults = {"it lacks": missing, "it has besides": extra}
        if missing or extra:
            text = "; ".join(f"{fault} {listed(found)}" for fault, found in faults.items() if found)
            raise DataError(f"the table's columns aren't those of the model: {text}")
        check_unique(names, "the table")
        return {name: j for j, name in enumerate(names)}

    def numbers(self, table: Table) -> Array:
        """Return the numeric features of a DataFrame or array in their units, (n, m); NaN where one is missing."""
        if not is_frame(table):
            return np.array(table[:, [self.columns.index(name) for name in self.numeric]], dtype=np.float64)
        X = np.empty((len(table), len(self.numeric)))
        self._read_numbers(table, self._places([str(column) for column in table.columns]), X)
        return X

    def _read_numbers(self, frame: Any, place: Mapping[str, int], X: Array) -> dict[str, Mask]:
        """Write the numeric features into the first columns of X, and return where each column lacks values."""
        holes: dict[str, Mask] = {}
        nowhere = np.zeros(len(frame), np.bool_)  # of all columns without gaps
        for name, features in self._sources.items():
            column = frame.iloc[:, place[name]].rename(name)
            values = read_numbers(column, self.kinds.get(name, PLAIN))
            gaps = np.isnan(values[:, 0])
            if self.kinds.get(name, PLAIN).type == NUMBER:
                self.check_sign(name, sign_of(column), values[:, 0])
            holes[name] = gaps if gaps.any() else nowhere
            for j, part in features:
                X[:, j] = values[:, part]
        return holes

    def check_sign(self, name: str, given: str | None, values: Array, beside: str | None = None) -> None:
        """Raise a DataError if numbers can't be meant as those that the encoder was fitted on, by what stands beside.

        Parameters
        ----------
        name : str
            Of a column or target of the encoder's.
        given : str or None
            The sign that the numbers have, None for bare ones.
        values : (n,) array
            The numbers. Gaps have no sign.
        beside : str or None
            What the column is called in the table, if not so.
        """
        there = ~np.isnan(values)
        if self.signs is not None and there.any():
            check_sign(beside or name, given, self.signs.get(name), float(values[there.argmax()]))

    def _transform_frame(self, frame: Any) -> Array:
        place = self._places([str(column) for column in frame.columns])
        X = np.empty((len(frame), len(self.features)))
        holes = self._read_numbers(frame, place, X)
        texts = {name: as_text(frame.iloc[:, place[name]], self._levels(name)) for name in self.categories}
        holes |= {name: absent(text) for name, text in texts.items()}
        for name in self.gaps:  # of a column that has but one value
            if name not in holes:
                holes[name] = absent(as_text(frame.iloc[:, place[name]], self._levels(name)))
        self._check_gaps(holes)
        self._finish(X[:, : len(self.numeric)])
        if self.categories:
            self._one_hot(texts, X[:, len(self.numeric) :])
        return self._with_gaps(X, holes)

    def _levels(self, name: str) -> tuple[str, ...]:
        """Return all known levels of a column, rare ones too; none of one that is only told to be missing or not."""
        return (*self.categories.get(name, ()), *self.pooled.get(name, ()))

    def _finish(self, X: Array) -> None:
        """Check the numeric features (n, m), fill in what is missing from them, and scale them, in place."""
        holes = np.array([np.isnan(column).any() for column in X.T], np.bool_)
        for j, name in enumerate(self.numeric):
            check_values(np.nan_to_num(X[:, j], nan=0.0, posinf=np.inf, neginf=-np.inf) if holes[j] else X[:, j], name)
        if holes.any() and self.law is not None:
            self.law.fill(X)
        for j, name in enumerate(self.numeric):
            if holes[j] and self.law is None:
                X[np.isnan(X[:, j]), j] = self.fills[name]
            X[:, j] -= self.mean[j]
            X[:, j] /= self.scale[j]

    def _one_hot(self, texts: Mapping[str, npt.NDArray[np.object_]], X: Array) -> None:
        """Write the 0/1 columns of categories, column after column."""
        import pandas as pd

        start = 0
        for name, known in self.categories.items():
            text = texts[name]
            holes = absent(text)
            if holes.any():
                text = np.where(holes, self.fills[name], text)
            width = len(self._coded(name))
            codes = pd.Index(self._levels(name), dtype=object).get_indexer(text)
            unknown = codes < 0
            codes = np.minimum(codes, len(known))  # where those that are rare are one
            new = sorted(set(text[unknown]))
            if new:
                codes[unknown] = width - 1 if self.coding == HAMMING else -1
                rows = int(unknown.sum())
                warnings.warn(
                    f"column {name!r} has values that the model never saw ({listed(new, 3)}) in {rows} "
                    f"row{'s' * (rows != 1)}; they count as none of the known ones",
                    SelectionWarning,
                    stacklevel=4,
                )
            X[:, start : start + width] = codes[:, None] == np.arange(width)
            start += width

    def _with_gaps(self, X: Array, holes: Mapping[str, Mask]) -> Array:
        """Write the 0/1 columns that say where a value was missing, the last ones of X."""
        for j, name in enumerate(self.gaps, start=X.shape[1] - len(self.gaps)):
            X[:, j] = holes[name]
        return X

    def _check_gaps(self, holes: Mapping[str, Mask]) -> None:
        """Refuse, or warn of, missing values where the encoder says so."""
        having = {name: where for name, where in holes.items() if where.any()}
        if not having or self.missing == "impute":
            return
        if self.missing == "refuse" or not self.fills:
            raise DataError(refused(having))
        rows = int(np.any(list(having.values()), axis=0).sum())
        warnings.warn(
            f"{rows} row{'s' * (rows != 1)} lack{'s' * (rows == 1)} values ({listed(list(having), 3)}), and the model "
            "was selected without such rows: means and most frequent values take their place",
            SelectionWarning,
            stacklevel=4,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the encoder as a dictionary that JSON holds without loss."""
        return {
            "columns": list(self.columns),
            "numeric": list(self.numeric),
            "mean": self.mean.tolist(),
            "scale": self.scale.tolist(),
            "categories": {name: list(values) for name, values in self.categories.items()},
            "ignored": list(self.ignored),
            "kinds": {name: kind.to_json() for name, kind in self.kinds.items()},
            "fills": dict(self.fills),
            "gaps": list(self.gaps),
            "law": None if self.law is None else self.law.to_json(),
            "missing": self.missing,
            "coding": self.coding,
            "pooled": {name: list(values) for name, values in self.pooled.items()},
            "signs": None if self.signs is None else dict(self.signs),
            "similarities": self.similarities,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Encoder:
        """Build the encoder back from ``to_json()``."""
        return cls(
            columns=tuple(document["columns"]),
            numeric=tuple(document["numeric"]),
            mean=np.array(document["mean"], dtype=np.float64),
            scale=np.array(document["scale"], dtype=np.float64),
            categories={name: tuple(values) for name, values in document["categories"].items()},
            ignored=tuple(document["ignored"] if "ignored" in document else [document["target"]]),  # as 0.1.0 wrote it
            # Files of before missing values were filled in lack these.
            kinds={name: Kind.from_json(kind) for name, kind in document.get("kinds", {}).items()},
            fills=dict(document.get("fills", {})),
            gaps=tuple(document.get("gaps", ())),
            law=NormalLaw.from_json(document["law"]) if document.get("law") else None,
            missing=document.get("missing", "refuse"),
            coding=document.get("coding", ONE_HOT),  # as all files of before there was another one
            pooled={name: tuple(values) for name, values in document.get("pooled", {}).items()},
            signs=document.get("signs"),
            similarities=document.get("similarities", False),
        )


def refused(holes: Mapping[str, Mask]) -> str:
    """Return the message for columns with missing values, by name."""
    if len(holes) == 1:
        ((name, where),) = holes.items()
        return missing_values(where, name)
    n = len(next(iter(holes.values())))
    each = ", ".join(f"{name!r} {share(int(where.sum()), n)}" for name, where in holes.items())
    return f"values are missing in {len(holes)} columns ({each} of {n} rows); {FILL_IN}"
