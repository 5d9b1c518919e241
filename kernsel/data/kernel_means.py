"""Means of a number given the other numbers of its row, by kernel ridge regression.

For a column j of standardised rows z, filled in before, the mean of z_j is a function of the other columns O,

    f(z) = b + sum_i a_i exp(-sum_{k in O} |z_k - z_ik| / w),   (W^1/2 K W^1/2 + r I) c = W^1/2 (t - b),  a = W^1/2 c,

the ridge regression by a Laplacian kernel on the rows i that have the number, t, with weights W of the sum 1. It follows
what a sum of curves can't: levels that go together, as those of one town or one make do. w is twice the mean distance
of two rows. The ridge r is the one of the least generalised cross-validation,

    sum_i W_i (t_i - f(z_i))^2 / (1 - (1 + degrees of freedom) / distinct rows)^2.

A column that is missing from more than half of the rows that lack j tells nothing of j where it is wanted, and is not
among O. Missing numbers of one row depend on each other: all are predicted from what was there before, twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Holes = npt.NDArray[np.bool_]

RIDGES = 10.0 ** np.arange(-4, 2)
"""For eigenvalues with the sum 1: from next to interpolation, to next to the mean."""
MOST_CENTRES = 500
"""Rows that a regression is on. Each column with gaps costs two eigenvalue decompositions of that size."""
WIDTH = 2.0
"""Of the kernel, in mean distances of two rows. Half of that and twice that fill in as well on average, but the
narrower ones interpolate noise where few rows tell of a column."""
SWEEPS = 2
"""How often all numbers are predicted. Twice, as the first time others of the row may not be what they should; three
times gain nothing."""
HALF = 0.5
"""The share of the law's mean in what takes a number's place: what the two miss differs. Also how often a column may be
missing where another is, to tell of it."""
BLOCK_ROWS = 2**12
"""Rows whose distances are in memory at once."""


@dataclass(frozen=True, eq=False)
class Regression:
    """The function of one column.

    Parameters
    ----------
    column : int
    others : (q,) array of int
        The columns that it is a function of.
    width : float
    offset : float
    coefficients : (m,) array
        Of all centres; 0 for those that lack the column.
    """

    column: int
    others: Indices
    width: float
    offset: float
    coefficients: Floats


@dataclass(frozen=True, eq=False)
class KernelMeans:
    """What kernel ridge regressions say in the place of missing numbers.

    Parameters
    ----------
    centres : (m, d) array
        Standardised rows without gaps.
    regressions : tuple of Regression
    """

    centres: Floats
    regressions: tuple[Regression, ...]

    def improve(self, Z: Floats, holes: Holes) -> None:
        """Put the mean of what is there and of what the regressions say in the place of missing numbers, in place.

        Parameters
        ----------
        Z : (n, d) array
            Standardised rows, with numbers in the place of the missing ones.
        holes : (n, d) array of bool
            Where these are.
        """
        before = Z.copy()
        for _ in range(SWEEPS):
            Z[:] = self._once(Z, holes, before)

    def _once(self, Z: Floats, holes: Holes, before: Floats) -> Floats:
        """Predict each missing number from rows Z once."""
        out = Z.copy()
        for each in self.regressions:
            rows = np.flatnonzero(holes[:, each.column])
            for start in range(0, rows.size, BLOCK_ROWS):
                some = rows[start : start + BLOCK_ROWS]
                D = _distances(Z[np.ix_(some, each.others)], self.centres[:, each.others])
                found = each.offset + np.exp(-D / each.width) @ each.coefficients
                out[some, each.column] = HALF * (before[some, each.column] + found)
        return out

    def to_json(self) -> dict[str, Any]:
        """Return them as a dictionary that JSON holds without loss."""
        return {
            "centres": self.centres.tolist(),
            "regressions": [
                {
                    "column": each.column,
                    "others": each.others.tolist(),
                    "width": each.width,
                    "offset": each.offset,
                    "coefficients": each.coefficients.tolist(),
                }
                for each in self.regressions
            ],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Build them back from ``to_json()``."""
        regressions = [
            Regression(
                int(each["column"]),
                np.array(each["others"], dtype=np.int64),
                float(each["width"]),
                float(each["offset"]),
                np.array(each["coefficients"], dtype=np.float64),
            )
            for each in document["regressions"]
        ]
        return cls(np.array(document["centres"], dtype=np.float64), tuple(regressions))


def fit_kernel_means(Z: Floats, holes: Holes, s: Floats) -> KernelMeans:
    """Fit the regressions of all columns that lack numbers.

    Parameters
    ----------
    Z : (n, d) array
        Standardised rows, with numbers in the place of the missing ones.
    holes : (n, d) array of bool
        Where these are.
    s : (n,) array
        Weights of the rows.
    """
    columns = np.flatnonzero(holes.any(axis=0))
    fitted = KernelMeans(Z, ())
    filled = Z
    for _ in range(SWEEPS):
        regressions = [_regression(filled, holes, s, int(j)) for j in columns]
        fitted = KernelMeans(filled, tuple(each for each in regressions if each is not None))
        filled = fitted._once(filled, holes, Z)
    return fitted


def _regression(Z: Floats, holes: Holes, s: Floats, j: int) -> Regression | None:
    """Return the regression of column j on those that are there where j is missing; None if nothing tells of it."""
    told = holes[holes[:, j]].mean(axis=0) <= HALF  # not j itself
    others, known = np.flatnonzero(told), np.flatnonzero(~holes[:, j] & (s > 0))
    A = Z[np.ix_(known, others)]
    W = s[known] / s[known].sum()
    offset = float(W @ Z[known, j])
    D = _distances(A, A)
    width = WIDTH * float(W @ D @ W)
    there = np.where(holes[known], 0.0, Z[known])
    distinct = len(np.unique(there, axis=0))  # neither copies nor weights tell more
    if not width > 0:
        return None
    root = np.sqrt(W)
    t = root * (Z[known, j] - offset)
    w, U = np.linalg.eigh(root[:, None] * np.exp(-D / width) * root)
    w = np.maximum(w, 0.0)
    c = U.T @ t
    shrunk = RIDGES[:, None] / (w + RIDGES[:, None])
    freedom = 1.0 + (1.0 - shrunk).sum(axis=1)
    left = 1.0 - freedom / distinct
    score = np.full(len(RIDGES), np.inf)
    np.divide(np.square(shrunk * c).sum(axis=1), left**2, out=score, where=left > 0)
    if not np.isfinite(score).any():
        return None
    r = RIDGES[int(score.argmin())]
    coefficients = np.zeros(len(Z))
    coefficients[known] = root * (U @ (c / (w + r)))
    return Regression(j, others, width, offset, coefficients)


def _distances(A: Floats, B: Floats) -> Floats:
    """Return the sums of absolute differences of rows A (n, q) and B (m, q), (n, m)."""
    from scipy.spatial.distance import cdist  # takes a while to import

    return np.asarray(cdist(A, B, "cityblock")) if A.shape[1] else np.zeros((len(A), len(B)))
