"""What was observed at the rows of a table, beside which held-out predictions are read and drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernsel.data import Dataset
from kernsel.numerics.points import dense
from kernsel.types import Array, Indices

PLANE = 2
"""Features that span a plane, which a boundary can be drawn in."""


@dataclass(frozen=True, eq=False)
class Observed:
    """Targets of the rows of a table, in its order, and what else pictures of held-out predictions need.

    Parameters
    ----------
    targets : (n,) or (n, k) array
        In the target's units, or labels; NaN or None for rows that took no part.
    weights : (n,) array or None
        How often each row counts; None where every row counts once.
    features : (n, 2) array or None
        Of a table with two numeric features alone, these in their own units.
    names : tuple of str
        Of these features; empty where there are none.
    """

    targets: NDArray[Any]
    weights: Array | None
    features: Array | None
    names: tuple[str, ...]

    @classmethod
    def of(cls, dataset: Dataset) -> Observed:
        """Return what was observed at the rows of a data set."""
        weights = dataset.sample.plain
        features, encoder = None, dataset.encoder
        plain = len(encoder.numeric) == len(encoder.features) == PLANE and not encoder.similarities
        if plain:
            features = placed(dense(dataset.X) * encoder.scale + encoder.mean, dataset)
        return cls(
            placed(_targets(dataset), dataset),
            None if weights is None else placed(weights, dataset),
            features,
            tuple(encoder.features) if plain else (),
        )


def placed(values: NDArray[Any], dataset: Dataset, rows: Indices | None = None) -> NDArray[Any]:
    """Put values of some rows of a data set, by default of all, at their places in the table as given.

    Rows without one get NaN, or None where values aren't numbers.
    """
    places, n = dataset.places if rows is None else dataset.places[rows], dataset.given
    found: NDArray[Any]
    if values.dtype.kind == "f":
        found = np.full((n, *values.shape[1:]), np.nan, values.dtype)
    else:
        found = np.full(n, None) if len(places) < n else np.empty(n, values.dtype)
    found[places] = values
    return found


def _targets(dataset: Dataset) -> NDArray[Any]:
    """Return the targets (n,) or (n, k) of a data set as they were given."""
    if dataset.labels is None:
        values = (dataset.Y.T * dataset.output_scale) + dataset.output_shift
        return values if dataset.k > 1 else values[:, 0]
    mixed = "O" if len({type(label) for label in dataset.labels}) > 1 else None
    return np.array(dataset.labels, dtype=dataset.label_dtype or mixed)[dataset.codes]
