"""The rows that the fit without each fold leaves out: those of the fold, or more than are scored."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernsel.numerics.runtime.jit import inline

Indices = NDArray[np.int64]


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


@inline
def take_rows(A, rows):
    """Return the rows of A (n, r) that are listed, (m, r)."""
    m, r = rows.size, A.shape[1]
    out = np.empty((m, r))
    for i in range(m):
        for j in range(r):
            out[i, j] = A[rows[i], j]
    return out
