"""Turn the columns of a table into one float64 matrix, the same way for every later table.

A numeric column x becomes ``(x - mean) / scale`` with the mean and the standard deviation (divisor n) of the table
that the encoder was fitted on; of a sparse table the mean is left out, and zeros stay zeros. A column of text, truth
values or categories becomes one 0/1 column a category. It isn't scaled, and no category is dropped: two rows that
differ in such a column are at squared distance 2, however many categories there are.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernsel.data.columns import (
    Floats,
    as_dense,
    as_text,
    check_missing,
    check_sparse_values,
    check_values,
    first_text,
    numbers,
)
from kernsel.data.names import check_unique, listed
from kernsel.data.tables import SparseTable, Table, as_table, is_frame
from kernsel.errors import DataError, SelectionWarning
from kernsel.numerics import points
from kernsel.numerics.points import Points, is_sparse

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
        The numeric ones in use.
    mean, scale : (len(numeric),) arrays
        In the units of each column.
    categories : dict of str to tuple of str
        The one-hot encoded columns in use, each with its categories.
    ignored : tuple of str
        What may be present in a later table without being a feature: the target, weights, groups.
    """

    columns: tuple[str, ...]
    numeric: tuple[str, ...]
    mean: Floats
    scale: Floats
    categories: Mapping[str, tuple[str, ...]]
    ignored: tuple[str, ...]

    @property
    def features(self) -> list[str]:
        """Names of the columns of the encoded matrix."""
        return [*self.numeric, *(f"{name}={value}" for name, values in self.categories.items() for value in values)]

    @property
    def used(self) -> tuple[str, ...]:
        """Names of the table's columns that it needs."""
        return (*self.numeric, *self.categories)

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
        named = is_frame(table) or isinstance(table, SparseTable)
        given = as_table(table)
        if is_frame(given):
            return self._transform_frame(given)
        X = given.X if isinstance(given, SparseTable) else given
        if not named and X.shape[1] != len(self.columns):
            raise DataError(f"X has {X.shape[1]} columns where the model has {len(self.columns)}")
        if self.categories:
            raise DataError(f"the model has text columns ({listed(list(self.categories))}): give it a DataFrame")
        place = self._places(given.names if named else self.columns)
        picked = points.columns(X, [place[name] for name in self.numeric])
        if is_sparse(picked):
            return self._transform_sparse(picked)
        for j, name in enumerate(self.numeric):
            check_values(picked[:, j], name)
        return np.ascontiguousarray((picked - self.mean) / self.scale)

    def _transform_sparse(self, X: Points) -> Points:
        """Encode the columns in use, sparse; dense are those that are to be centred."""
        check_sparse_values(X, self.numeric)
        if self.mean.any():
            return (as_dense(X, "a model that centres its columns") - self.mean) / self.scale
        scaled = (self.scale != 1).any()
        return points.settled(points.with_values(X, X.data / self.scale[X.indices]) if scaled else X)

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

    def _transform_frame(self, frame: Any) -> Floats:
        place = self._places([str(column) for column in frame.columns])
        X = np.empty((len(frame), len(self.features)))
        for j, name in enumerate(self.numeric):
            values = numbers(frame.iloc[:, place[name]])
            if values is None:
                example = first_text(frame.iloc[:, place[name]])
                raise DataError(f"column {name!r} must hold numbers, as in the table of the model; it holds {example}")
            check_values(values, name)
            X[:, j] = (values - self.mean[j]) / self.scale[j]
        if self.categories:
            X[:, len(self.numeric) :] = self._one_hot([frame.iloc[:, place[name]] for name in self.categories])
        return X

    def _one_hot(self, columns: Sequence[Any]) -> Floats:
        from sklearn.preprocessing import OneHotEncoder

        texts = []
        for (name, known), column in zip(self.categories.items(), columns, strict=True):
            check_missing(column, name)
            text = as_text(column)
            new = sorted(set(text) - set(known))
            if new:
                rows = int(np.isin(text, new).sum())
                warnings.warn(
                    f"column {name!r} has values that the model never saw ({listed(new, 3)}) in {rows} "
                    f"row{'s' * (rows != 1)}; they count as none of the known ones",
                    SelectionWarning,
                    stacklevel=4,
                )
            texts.append(text)
        known_values = [np.array(known, dtype=object) for known in self.categories.values()]
        encoder = OneHotEncoder(categories=known_values, handle_unknown="ignore", sparse_output=False)
        encoder.fit(np.array([[known[0] for known in known_values]], dtype=object))
        with warnings.catch_warnings():
            # scikit-learn warns of unknown categories too, by the number of the column.
            warnings.filterwarnings("ignore", "Found unknown categories", UserWarning)
            return np.asarray(encoder.transform(np.column_stack(texts)), dtype=np.float64)

    def to_json(self) -> dict[str, Any]:
        """Return it as a dictionary that JSON holds without loss."""
        return {
            "columns": list(self.columns),
            "numeric": list(self.numeric),
            "mean": self.mean.tolist(),
            "scale": self.scale.tolist(),
            "categories": {name: list(values) for name, values in self.categories.items()},
            "ignored": list(self.ignored),
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
        )
