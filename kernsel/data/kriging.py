"""A missing number from the rows that are nearest in what is known: simple kriging with a Laplacian kernel.

Let z be a standardised row that lacks the column j, and O the columns that it has. Of the rows of a table that have j
(those centres of weights s, of the sum 1), the nearest m by ``D(z, z') = sum_{k in O} |z_k - z'_k|`` predict

    f(z) = b + k' (K + diag(r_j / s))^-1 (t - b),    K_il = exp(-D(z_i, z_l) / w_j),    k_i = exp(-D(z, z_i) / w_j),

with their numbers t of j and the mean b of j. It follows what a sum of curves can't: levels that go together, as those
of one town or one make do. Each row has a system of its own, so that no other missing number of it has a part.
The width w_j is twice the mean distance of two centres, and the ridge r_j is the one of the least weighted mean of
squared leave-one-out residuals, in all other columns: with ``H = K (K + diag(r_j / s))^-1``, of the residuals
``((I - H) (t - b))_i / (1 - H_ii - s_i)``.

A column that is missing from more than half of the centres that lack j tells nothing of j where that is wanted, and
stays out of O. Gaps of the centres themselves are filled in by the normal law first, and then so, twice.

Source: Cressie, *Statistics for Spatial Data*, section 3.2 (simple kriging, in a neighbourhood).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from kernsel.types import Array, Indices, Mask

RIDGES = 10.0 ** (np.arange(-10, 3) / 2)
"""From next to interpolation of some hundred rows, to next to the mean."""
WIDTH = 2.0
"""Of the kernel, in mean distances of two centres; half of that and twice that fill in as well."""
NEAREST = 50
"""Centres of one system. 30 and 100 fill in as well, and so do systems of all centres. A distance of
ranks, relevances in the distance, and the average with trees were tried: a learner on filled rows erred as much."""
MOST_CENTRES, MOST_JUDGED = 1000, 300
"""Rows that are centres, and those whose leave-one-out residuals judge the ridges."""
ROUNDS = 2
"""How often gaps of the centres are filled in."""
LAW = 1 / 4
"""The share of the normal law's mean in what takes a number's place: where a column is noise to the others, or a line,
it is the better one of the two."""


@dataclass(frozen=True, eq=False)
class Variogram:
    """How the numbers of a column go together with those of others.

    Parameters
    ----------
    others : (q,) array of int
        The columns that tell of it.
    mean : float
        b, in standard deviations.
    """

    column: int
    others: Indices
    mean: float
    width: float
    ridge: float


@dataclass(frozen=True, eq=False)
class Kriging:
    """Rows of a table, and what they tell of missing numbers of others.

    Parameters
    ----------
    centres : (c, d) array
        Standardised rows without gaps, all distinct.
    own : (c, d) array of bool
        Which of their numbers are their own.
    weights : (c,) array
    variograms : tuple of Variogram
        One for each column that lacked numbers.
    """

    centres: Array
    own: Mask
    weights: Array
    variograms: tuple[Variogram, ...]

    def fill(self, Z: Array, holes: Mask) -> None:
        """Put numbers in the place of those that are missing, in place.

        A row that lacks more than half of the columns keeps what it has.

        Parameters
        ----------
        Z : (n, d) array
            Standardised rows, with the normal law's means in the place of missing numbers.
        holes : (n, d) array of bool
            Where these are.
        """
        enough = holes.mean(axis=1) <= 0.5
        for each in self.variograms:
            rows = np.flatnonzero(holes[:, each.column] & enough)
            lacking = holes[np.ix_(rows, each.others)]
            rows, lacking = rows[~lacking.all(axis=1)], lacking[~lacking.all(axis=1)]
            # A number that another variogram put into Z counts for nothing here, as it is missing.
            found = self._predict(each, Z[np.ix_(rows, each.others)], ~lacking)
            Z[rows, each.column] = LAW * Z[rows, each.column] + (1 - LAW) * found

    def _predict(self, variogram: Variogram, T: Array, known: Mask) -> Array:
        """Predict the column for rows T (n, q) of its others, of which those are known (n, q): (n,)."""
        from kernsel.numerics.kriging import krige  # only where numbers are missing are loops needed here

        of = np.flatnonzero(self.own[:, variogram.column])
        s = self.weights[of] / self.weights[of].sum()
        C, t = self.centres[np.ix_(of, variogram.others)], self.centres[of, variogram.column] - variogram.mean
        m = min(NEAREST, of.size)
        return variogram.mean + krige(T, known, C, t, variogram.ridge / s, variogram.width, m)

    def to_json(self) -> dict[str, Any]:
        """Return it as a dictionary that JSON holds without loss."""
        variograms = [{**vars(each), "others": each.others.tolist()} for each in self.variograms]
        return {
            "centres": self.centres.tolist(),
            "own": self.own.astype(int).tolist(),
            "weights": self.weights.tolist(),
            "variograms": variograms,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Build it back from ``to_json()``."""
        centres, weights = (np.array(document[name], dtype=np.float64) for name in ("centres", "weights"))
        own = np.array(document["own"], dtype=np.bool_)
        variograms = [
            Variogram(
                int(each["column"]),
                np.array(each["others"], dtype=np.int64),
                float(each["mean"]),
                float(each["width"]),
                float(each["ridge"]),
            )
            for each in document["variograms"]
        ]
        return cls(centres, own, weights, tuple(variograms))


def fit_kriging(Z: Array, holes: Mask, s: Array) -> Kriging:
    """Fit variograms to the columns that lack numbers.

    Parameters
    ----------
    Z, holes : as in ``Kriging.fill``
    s : (n,) array
        Weights of the rows; those without weight count for nothing.
    """
    # A row twice is a row of twice the weight, and the order of rows makes no difference.
    raw = np.column_stack([np.where(holes, 0.0, Z), holes])[s > 0]
    _, first, inverse = np.unique(raw, axis=0, return_index=True, return_inverse=True)
    weights = np.asarray(np.bincount(inverse.ravel(), s[s > 0]), dtype=np.float64)
    law, lacking = Z[s > 0][first], holes[s > 0][first]
    columns = np.flatnonzero(lacking.any(axis=0))
    centres = law
    for _ in range(ROUNDS):
        found = [_variogram(centres, ~lacking, weights, int(j)) for j in columns]
        kriging = Kriging(centres, ~lacking, weights, tuple(each for each in found if each is not None))
        centres = law.copy()
        kriging.fill(centres, lacking)
    return Kriging(centres, ~lacking, weights, kriging.variograms)


def _variogram(centres: Array, own: Mask, weights: Array, j: int) -> Variogram | None:
    """Return the variogram of a column that lacks numbers; None if the others tell nothing of it."""
    others = np.flatnonzero(own[~own[:, j]].mean(axis=0) >= 0.5)  # not the column itself, which lacks all of these
    of = np.flatnonzero(own[:, j])
    if not of.size:
        return None
    s = weights[of] / weights[of].sum()
    b = float(s @ centres[of, j])
    judged = np.unique(np.linspace(0, of.size - 1, min(of.size, MOST_JUDGED)).astype(np.int64))
    of, s = of[judged], s[judged]
    A = centres[np.ix_(of, others)]
    D = np.zeros((of.size, of.size))
    for column in A.T:
        D += np.abs(column[:, None] - column)
    width = WIDTH * float(s @ D @ s) / s.sum() ** 2
    if not width > 0:
        return None
    root = np.sqrt(s)
    t = root * (centres[of, j] - b)
    w, U = np.linalg.eigh(root[:, None] * np.exp(-D / width) * root)
    kept = np.maximum(w, 0.0) / (np.maximum(w, 0.0) + RIDGES[:, None])
    residual = t - (kept * (U.T @ t)) @ U.T
    left = 1.0 - s - kept @ np.square(U.T)
    score = np.full(residual.shape, np.inf)
    np.divide(np.square(residual), np.square(left), out=score, where=left > 0)
    total = score.sum(axis=1)
    if not np.isfinite(total).any():
        return None
    return Variogram(j, others, b, width, float(RIDGES[int(total.argmin())]))
