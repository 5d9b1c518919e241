"""Turn the columns of a table into one float64 matrix, the same way for every later table.

A numeric column x becomes ``(x - mean) / scale`` with the mean and the standard deviation (divisor n) of the table
that the encoder was fitted on. A column of text, truth values or categories becomes one 0/1 column a category. It
isn't scaled, and no category is dropped: two rows that differ in such a column are at squared distance 2, however many
categories there are.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernsel.data.columns import Floats, as_matrix, as_text, check_missing, check_values, first_text, numbers
from kernsel.data.names import check_unique, listed
from kernsel.errors import DataError, SelectionWarning

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

    def transform(self, table: pd.DataFrame | npt.ArrayLike) -> Floats:
        """Encode a table.

        Parameters
        ----------
        table : DataFrame or (n, len(columns)) array
            A DataFrame's columns are found by name, in any order. An array has all of ``columns`` in their order.

        Returns
        -------
        (n, len(features)) array, C-contiguous

        Raises
        ------
        DataError
            Columns are missing or new, or hold what can't be used.
        """
        if hasattr(table, "columns"):
            return self._transform_frame(table)
        X = as_matrix(table)
        if X.shape[1] != len(self.columns):
            raise DataError(f"X has {X.shape[1]} columns where the model has {len(self.columns)}")
        if self.categories:
            raise DataError(f"the model has text columns ({listed(list(self.categories))}): give it a DataFrame")
        place = {name: j for j, name in enumerate(self.columns)}
        picked = X[:, [place[name] for name in self.numeric]]
        for j, name in enumerate(self.numeric):
            check_values(picked[:, j], name)
        return np.ascontiguousarray((picked - self.mean) / self.scale)

    def _transform_frame(self, frame: Any) -> Floats:
        names = [str(column) for column in frame.columns]
        missing = [name for name in self.used if name not in names]
        extra = [name for name in names if name not in (*self.columns, *self.ignored)]
        faults = {"it lacks": missing, "it has besides": extra}
        if missing or extra:
            text = "; ".join(f"{fault} {listed(found)}" for fault, found in faults.items() if found)
            raise DataError(f"the table's columns aren't those of the model: {text}")
        check_unique(names, "the table")
        place = {name: j for j, name in enumerate(names)}
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
