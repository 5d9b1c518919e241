"""Rows of a table beyond features and target: how much each counts, and which belong together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kernsel.data.columns import missing
from kernsel.data.names import listed
from kernsel.data.near import Near
from kernsel.data.tables import take
from kernsel.data.target import Target
from kernsel.errors import DataError, OptionError
from kernsel.types import Array, Indices

LEAST_WEIGHT, LARGEST_WEIGHT = 1e-100, 1e100
"""Weights, and their quotients, within these can be multiplied and summed."""


@dataclass(frozen=True, eq=False)
class Sample:
    """The rows of a table that count.

    Parameters
    ----------
    given : int
        Rows of the table.
    places : (n,) array
        Where in the table the rows are that count: those without a weight of 0.
    weights : (n,) array or None
        Greater than 0; None where every row counts 1.
    groups : (n,) array or None
        The group of each row that counts, from 0 without gaps.
    by_class : (n,) array or None
        The factor of each row's class in its weight.
    class_weight : str, dict or None
        What these factors were asked for as: ``"balanced"``, or weights by label.
    origin : mapping
        Where ``weights`` and ``groups`` come from, as far as they are given: the name of a column, or True.
    near : Near or None
        Which rows are near to each other in time and space.
    """

    given: int
    places: Indices
    weights: Array | None
    groups: Indices | None
    by_class: Array | None = None
    class_weight: str | dict[str, float] | None = None
    origin: Mapping[str, str | bool] = field(default_factory=dict)
    near: Near | None = None

    @property
    def plain(self) -> Array | None:
        """The weights without those of the classes: how often each row is there, whatever a mistake costs."""
        if self.by_class is None or self.weights is None:
            return self.weights
        return np.asarray(self.weights / self.by_class)

    @property
    def notes(self) -> list[str]:
        """What was left out."""
        out = self.given - self.places.size
        return [f"{out} row{'s' * (out != 1)} of weight 0 left out"] if out else []

    def take(self, rows: Indices) -> Sample:
        """Return what is known of some of the rows that count; their groups are numbered anew, without gaps."""
        weights, by_class = (None if each is None else each[rows] for each in (self.weights, self.by_class))
        groups = None if self.groups is None else np.unique(self.groups[rows], return_inverse=True)[1].astype(np.int64)
        near = None if self.near is None else self.near.take(rows)
        return replace(self, places=self.places[rows], weights=weights, groups=groups, by_class=by_class, near=near)

    def rows(self, table: object) -> Any:
        """Return the rows that count of a table, a column or an array."""
        return table if self.places.size == self.given else take(table, self.places)


def read_sample(
    n: int, weights: npt.ArrayLike | None, groups: npt.ArrayLike | None, near: Near | None = None, least: int = 2
) -> Sample:
    """Check the weights and groups of n rows.

    Parameters
    ----------
    weights, groups : (n,) array or Series, or None
        A Series has a name for messages.
    near : Near or None
        Of all rows.
    least : int
        Rows that must have a weight greater than 0.
    """
    places, positive = np.arange(n), None
    if weights is not None:
        values = _weights(weights, n, least)
        places = np.flatnonzero(values)
        positive = values[places]
    near = None if near is None else near.take(places)
    given = {"weights": weights, "groups": groups}
    origin = {role: column_name(values) or True for role, values in given.items() if values is not None}
    if groups is None:
        return Sample(n, places, positive, None, origin=origin, near=near)
    what = _name(groups, "groups")
    _check_length(groups, n, what)
    gaps = missing(groups)
    if gaps.any():
        raise DataError(f"{what}: row {int(np.argmax(gaps)) + 1} has none; give it one, or leave the row out")
    array = np.asarray(groups)
    array = array.astype(str) if array.dtype.kind == "O" else array
    numbers = np.unique(array[places], return_inverse=True)[1].astype(np.int64)
    return Sample(n, places, positive, numbers, origin=origin, near=near)


def _weights(weights: npt.ArrayLike, n: int, least: int) -> Array:
    what = _name(weights, "weights")
    _check_length(weights, n, what)
    try:
        values = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{what} must be numbers ({error})") from error
    bad = ~((values == 0) | ((values >= LEAST_WEIGHT) & (values <= LARGEST_WEIGHT)))
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(
            f"{what}: row {row + 1} has {values[row]:g}; a weight must be 0, or from {LEAST_WEIGHT:g} to "
            f"{LARGEST_WEIGHT:g}"
        )
    positive = np.count_nonzero(values)
    if positive < least:
        needed = "a selection needs at least 2" if least > 1 else "give rows that count"
        raise DataError(f"{what}: {positive or 'no'} row has a weight greater than 0; {needed}")
    return values


def _name(values: object, what: str) -> str:
    name = column_name(values)
    return what if name is None else f"{what} in column {name!r}"


def column_name(values: object) -> str | None:
    """Return the name of a Series, None for what has none."""
    name = getattr(values, "name", None) if hasattr(values, "iloc") else None
    return None if name is None else str(name)


def _check_length(values: Any, n: int, what: str) -> None:
    shape = np.shape(values)
    if shape != (n,):
        raise DataError(f"{what}: there must be one for each of the {n} rows, not an array of shape {shape}")


def class_weights(class_weight: str | Mapping[Any, float], target: Target, weights: Array | None) -> Array:
    """Return the weight of each row's class; "balanced" gives all c classes the same total.

    Balanced, class j has the weight ``W / (c W_j)``, with the total weight W of all rows and that W_j of its own: all
    rows together weigh as much as before. Without weights that is scikit-learn's rule.

    Parameters
    ----------
    class_weight : "balanced" or mapping
        Or weights by label, 1 for labels that it lacks.
    weights : (n,) array or None
        Of the rows.

    Returns
    -------
    (n,) array
    """
    labels, codes = target.labels, target.codes
    if labels is None or codes is None:
        raise OptionError(f"class_weight is for classes, but this is a {target.task}; leave it out, or set the task")
    if not isinstance(class_weight, Mapping):
        if class_weight != "balanced":
            raise OptionError(f"class_weight {class_weight!r} is unknown: use balanced, or a dictionary of weights")
        totals = np.bincount(codes, weights)
        return np.asarray((totals.sum() / (totals.size * totals))[codes])
    unknown = [str(label) for label in class_weight if label not in labels]
    if unknown:
        known = listed([str(label) for label in labels])
        raise OptionError(f"class_weight: there is no class {listed(unknown)}; the classes are {known}")
    try:
        values = [float(class_weight.get(label, 1.0)) for label in labels]
    except (TypeError, ValueError) as error:
        raise OptionError(f"class_weight: the weights must be numbers, not {dict(class_weight)!r}") from error
    for label, value in zip(labels, values, strict=True):
        if not LEAST_WEIGHT <= value <= LARGEST_WEIGHT:
            raise OptionError(f"class_weight: class {label!r} has {value:g}; it must be a finite number greater than 0")
    return np.array(values)[codes]
