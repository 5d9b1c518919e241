"""Folds of sorted rows, and what the fit without each leaves out: the rows of the fold, or more than are scored."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from kernsel.numerics.runtime.jit import f8, f8_1, i8_1, inline, record
from kernsel.types import Array, Indices


class LeftOut(NamedTuple):
    """The rows ``U_S`` that the fits without each fold S leave out.

    Parameters
    ----------
    rows : (m,) array of int
        Row numbers, fold after fold, ascending within each.
    bounds : (t + 1,) array of int
        Those of fold j are ``rows[bounds[j]:bounds[j + 1]]``.
    """

    rows: Indices
    bounds: Indices

    @property
    def sizes(self) -> Indices:
        """How many rows each fold's fit leaves out, (t,)."""
        return np.diff(self.bounds)


def own_rows(starts: Indices) -> LeftOut:
    """Return what is left out where fold j leaves out the rows ``starts[j]`` to below ``starts[j + 1]`` and no other.

    Parameters
    ----------
    starts : (t + 1,) array of int
    """
    return LeftOut(np.arange(starts[-1]), starts)


class Folds(NamedTuple):
    """Folds of sorted rows.

    Parameters
    ----------
    starts : (t + 1,) array of int
        Fold j holds the rows ``starts[j]`` to below ``starts[j + 1]``, which are scored; rows beyond the last are never
        held out.
    away, bounds : (m,), (t + 1,) arrays of int
        The fit without it leaves out ``away[bounds[j]:bounds[j + 1]]``, ascending: the same rows, or more.
    left : (t,) array
        The weight that the fit without each fold keeps.
    N : float
        The weight of all rows.
    """

    starts: Indices
    away: Indices
    bounds: Indices
    left: Array
    N: float

    @classmethod
    def own(cls, starts: Indices, left: Array, N: float) -> Self:
        """Return folds whose fits leave out their own rows."""
        return cls(starts, *own_rows(starts), left, N)


FOLDS = record(Folds, i8_1, i8_1, i8_1, f8_1, f8)


@inline
def take_rows(A, rows):
    """Return the rows of A (n, r) that are listed, (m, r)."""
    m, r = rows.size, A.shape[1]
    out = np.empty((m, r))
    for i in range(m):
        for j in range(r):
            out[i, j] = A[rows[i], j]
    return out
