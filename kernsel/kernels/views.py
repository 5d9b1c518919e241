"""Views of a column beside its values, each with a relevance of its own: ranks and logarithms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol

import numpy as np

from kernsel.types import Array

STRAIGHT = 0.97
"""Correlation of values and their view from which the view says little that the values don't. The ranks of a normal
feature have about .975, and .96 to .985 where rows are some hundred."""

RANK, LOG = ENDINGS = " (rank)", " (log)"
"""What the name of a view's relevance adds to that of the feature: more than once where names of features end so."""


class View(Protocol):
    """A function of one feature."""

    ending: ClassVar[str]

    @property
    def feature(self) -> int:
        """The number of the feature, from 0."""

    def __call__(self, x: Array) -> Array:
        """Return what is seen of values (n,) of the feature."""


def says_more(x: Array, u: Array) -> bool:
    """Tell whether a view u (n,) of values x (n,) says something that these don't."""
    return bool(np.corrcoef(x, u)[0, 1] <= STRAIGHT)


def ending_of(ending: str, features: Sequence[str]) -> str:
    """Return what the names of a kind of view end with, and no name of a feature does."""
    found = ending
    while any(name.endswith(found) for name in features):
        found += ending
    return found


def by_feature(relevances: Mapping[str, float], features: Sequence[str]) -> dict[str, float]:
    """Return the relevance of each of the features with those of its views added: 0 where none counts."""
    found = dict(relevances)
    for ending in (ending_of(each, features) for each in ENDINGS):
        for name in relevances:
            feature = name.removesuffix(ending)
            if feature != name and feature in found:
                found[feature] += found.pop(name)
    return found
