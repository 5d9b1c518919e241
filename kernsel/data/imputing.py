"""Numbers in the place of missing ones: their mean, given the other numbers of the row.

A row x has, beside its numbers, their hinges ``max(x_j - q, 0)`` at a few quantiles q of the column j, so that what is
linear in the features z = (x, hinges) is a sum of curves, one a column, in x. Under a normal law of z with mean m and
covariance S, the missing features z_u of a row have, given the others z_o, the mean

    m_u + S_uo (S_oo + r_u I)^-1 (z_o - m_o),

with a ridge r_u for each feature. m and S are fitted by the EM algorithm, which takes that mean for what is missing,
and adds the covariance of what it leaves, ``(I, -B') S (I, -B')'`` with ``B = (S_oo + r_u I)^-1 S_ou``, to S, until S
stays. What takes the place of a number is that mean averaged with what the nearest rows say (``kernsel.data.kriging``).

The ridge of a feature is the one of the least generalised cross-validation, from S alone: the mean squared
residual of the feature given all features of other columns over ``(1 - degrees of freedom / n)^2``. A feature that no
other tells of gets the largest, and so its mean, nearly.

Sources: Little & Rubin, *Statistical Analysis with Missing Data*, section 11.2; Golub, Heath & Wahba (1979),
*Generalized cross-validation as a method for choosing a good ridge parameter*.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernsel.data.kriging import MOST_CENTRES, Kriging, fit_kriging
from kernsel.types import Array, Indices, Mask

RIDGES = (100.0, 10.0, 1.0, 0.1, 0.01, 1e-3)
"""Variance that is added to each standardised feature before others are predicted by it: from next to the mean, to what
columns that repeat each other need."""
STEPS, TOLERANCE = 10, 1e-3
"""EM stops after so many steps, or when no entry of S (of standardised features) changes by more."""
BLOCK_ROWS = 2**15
"""Rows that are filled in at once."""
MOST_ROWS, MOST_FEATURES, MOST_KNOTS = 2000, 64, 3
"""The law is fitted on so many rows, and not to more features: columns beyond have to do with means, and hinges are so
many a column at most, as far as they are no more than that with the columns."""


@dataclass(frozen=True, eq=False)
class NormalLaw:
    """A normal law of the standardised numbers of d columns, and of their hinges: p features.

    Parameters
    ----------
    knots : tuple of d tuples of float
        Where the hinges of each column begin. The features are the columns, and then the hinges, column by column.
    shift, scale : (p,) arrays
        A feature z is standardised as ``(z - shift) / scale``.
    mean : (p,) array
    covariance : (p, p) array
    ridge : (p,) array
        What is added to the variances of others where the feature is predicted.
    kriging : Kriging or None
        What the law's means are averaged with.
    """

    knots: tuple[tuple[float, ...], ...]
    shift: Array
    scale: Array
    mean: Array
    covariance: Array
    ridge: Array
    kriging: Kriging | None = None

    def fill(self, X: Array) -> None:
        """Put numbers in the place of NaN in rows X (n, d), in place."""
        with _one_thread():
            for start in range(0, len(X), BLOCK_ROWS):
                block = X[start : start + BLOCK_ROWS]
                holes = np.isnan(block)
                self._fill(block)
                if self.kriging is not None:
                    self._improve(self.kriging, block, holes)

    def _improve(self, kriging: Kriging, X: Array, holes: Mask) -> None:
        """Average what the law put into the places ``holes`` of rows X with what rows near say."""
        rows = np.flatnonzero(holes.any(axis=1))
        where, Z = holes[rows], self.standardised(X[rows])
        kriging.fill(Z, where)
        d = X.shape[1]
        X[rows] = np.where(where, Z * self.scale[:d] + self.shift[:d], X[rows])

    def standardised(self, X: Array) -> Array:
        """Return rows X (n, d) in the units of the law."""
        d = X.shape[1]
        return np.asarray((X - self.shift[:d]) / self.scale[:d])

    def _fill(self, X: Array) -> None:
        rows = np.flatnonzero(np.isnan(X).any(axis=1))
        if not rows.size:
            return
        Z = (_with_hinges(X[rows], self.knots) - self.shift) / self.scale
        inverses = _inverses(self.covariance, self.ridge)
        for members, unknown, known in _patterns(np.isnan(Z)):
            lost = unknown[unknown < X.shape[1]]  # the columns, in their order, before their hinges
            B = _coefficients(inverses, self.ridge, known, unknown)[:, : lost.size]
            found = self.mean[lost] + (Z[np.ix_(members, known)] - self.mean[known]) @ B
            X[np.ix_(rows[members], lost)] = found * self.scale[lost] + self.shift[lost]

    def to_json(self) -> dict[str, Any]:
        """Return the law as a dictionary that JSON holds without loss."""
        arrays = {name: getattr(self, name).tolist() for name in ("shift", "scale", "mean", "covariance", "ridge")}
        kriging = None if self.kriging is None else self.kriging.to_json()
        return {"knots": [list(each) for each in self.knots], **arrays, "kriging": kriging}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> NormalLaw:
        """Build the law back from ``to_json()``."""
        shift, scale, mean, covariance = (
            np.array(document[name], dtype=np.float64) for name in ("shift", "scale", "mean", "covariance")
        )
        # Files of before there were hinges have one ridge for all, the least.
        knots = document.get("knots", [()] * shift.size)
        ridge = np.array(document.get("ridge", [min(RIDGES)] * shift.size), dtype=np.float64)
        kriging = Kriging.from_json(document["kriging"]) if document.get("kriging") else None  # of later files
        return cls(tuple(tuple(map(float, each)) for each in knots), shift, scale, mean, covariance, ridge, kriging)


def fit_normal(X: Array, weights: Array | None = None, near: bool = True) -> NormalLaw | None:
    """Fit a normal law to rows in which NaN stands for what is missing.

    Parameters
    ----------
    X : (n, d) array
    weights : (n,) array, optional
    near : bool
        Whether the nearest rows are to tell of missing numbers, too.

    Returns
    -------
    NormalLaw or None
        None for more than 64 columns, where rows are no more than columns, or a column has no number.
    """
    n, d = X.shape
    if d > MOST_FEATURES or d < 2 or n <= d:
        return None
    if n > MOST_ROWS:
        some = spread(n, MOST_ROWS)
        X, weights = X[some], None if weights is None else weights[some]
    if np.isnan(X).all(axis=0).any():
        return None
    s = np.full(len(X), 1.0 / len(X)) if weights is None else weights / weights.sum()
    knots = tuple(_knots(column, s, min(MOST_KNOTS, MOST_FEATURES // d - 1)) for column in X.T)
    Z = _with_hinges(X, knots)
    holes = np.isnan(Z)
    there = np.where(holes, 0.0, s[:, None])
    total = there.sum(axis=0)
    shift = np.where(holes, 0.0, Z * there).sum(axis=0) / total
    off = np.where(holes, 0.0, Z - shift)
    largest = np.maximum(np.abs(off).max(axis=0), np.finfo(float).tiny)  # nothing over- or underflows
    scale = largest * np.sqrt((there * (off / largest) ** 2).sum(axis=0) / total)
    scale[scale == 0] = 1.0
    distinct = len(np.unique(np.nan_to_num(off / scale), axis=0))  # neither copies nor weights tell more
    with _one_thread():
        mean, S, ridge = _expectation_maximisation(off / scale, holes, s, _columns(knots), distinct * total)
    law = NormalLaw(knots, shift, scale, mean, S, ridge)
    return replace(law, kriging=_krige(law, X, s)) if near and holes.any() else law


def _krige(law: NormalLaw, X: Array, s: Array) -> Kriging:
    """Fit what the law's means are averaged with to rows X of weights s, or to some of them."""
    some = spread(len(X), MOST_CENTRES)
    rows = X[some]
    holes = np.isnan(rows)
    law.fill(rows)
    with _one_thread():
        return fit_kriging(law.standardised(rows), holes, s[some])


def _knots(column: Array, s: Array, most: int) -> tuple[float, ...]:
    """Return quantiles of a column with gaps, of weights s, that lie within its range: at most so many."""
    order = np.argsort(column)[: int((~np.isnan(column)).sum())]  # NaN comes last
    values, up_to = column[order], np.cumsum(s[order])
    at = np.arange(1, most + 1) / (most + 1) * up_to[-1] * (1 - 1e-12)  # whatever the rounding of the sums
    found = np.unique(values[np.searchsorted(up_to, at)])
    return tuple(found[(found > values[0]) & (found < values[-1])].tolist())


def _with_hinges(X: Array, knots: tuple[tuple[float, ...], ...]) -> Array:
    """Return rows X (n, d) with their hinges, (n, p); NaN where the column lacks its number."""
    return np.column_stack([X, *(np.maximum(X[:, j] - q, 0.0) for j, each in enumerate(knots) for q in each)])


def _columns(knots: tuple[tuple[float, ...], ...]) -> Indices:
    """Return which column each feature is of, (p,)."""
    d = len(knots)
    return np.concatenate([np.arange(d), np.repeat(np.arange(d), [len(each) for each in knots])])


def _expectation_maximisation(
    Z: Array, holes: Mask, s: Array, own: Indices, counts: Array
) -> tuple[Array, Array, Array]:
    """Return mean, covariance and ridges of standardised rows Z (n, p), 0 where one is missing.

    The rows have weights s with the sum 1, the features are of the columns ``own``, and as many rows as ``counts`` (p,)
    have each.
    """
    p = Z.shape[1]
    patterns = list(_patterns(holes))
    # What is missing with a column in all its rows, as the other parts of a date are, tells nothing of it.
    joint = np.array([holes[:, j].any() * (holes == holes[:, [j]]).all(axis=0) for j in range(p)], dtype=bool)
    apart = ~(joint | (own[:, None] == own))
    mean, S = np.zeros(p), (s[:, None] * Z).T @ Z
    for _ in range(STEPS):
        ridge = _choose_ridges(S, apart, counts)
        inverses = _inverses(S, ridge)
        C = np.zeros((p, p))
        filled = Z.copy()
        for members, unknown, known in patterns:
            B = _coefficients(inverses, ridge, known, unknown)
            filled[np.ix_(members, unknown)] = mean[unknown] + (Z[np.ix_(members, known)] - mean[known]) @ B
            across = B.T @ S[np.ix_(known, unknown)]
            left = S[np.ix_(unknown, unknown)] - across - across.T + B.T @ S[np.ix_(known, known)] @ B
            C[np.ix_(unknown, unknown)] += s[members].sum() * left
        mean = s @ filled
        centred = filled - mean
        new = (s[:, None] * centred).T @ centred + C
        before, S = S, (new + new.T) / 2
        if np.abs(S - before).max() <= TOLERANCE:
            break
    return mean, S, _choose_ridges(S, apart, counts)


def _choose_ridges(S: Array, apart: Mask, counts: Array) -> Array:
    """Return the ridge (p,) of the least generalised cross-validation for each feature.

    It is predicted by the features ``apart`` (p, p) from it, as ``counts`` (p,) rows of covariance S (p, p) tell.
    """
    chosen = np.full(len(S), max(RIDGES))
    r = np.array(RIDGES)[:, None]
    for others in np.unique(apart, axis=0):
        if not others.any():
            continue
        targets = np.flatnonzero((apart == others).all(axis=1))
        w, U = np.linalg.eigh(S[np.ix_(others, others)])
        w = np.maximum(w, 0.0)
        products = U.T @ S[np.ix_(others, targets)]
        freedom = 1.0 + (w / (w + r)).sum(axis=1)
        for j, c in zip(targets, products.T, strict=True):
            b = c / (w + r)
            residual = S[j, j] - 2 * b @ c + (b * b) @ w
            left = 1.0 - freedom / counts[j]
            score = np.full(len(RIDGES), np.inf)
            np.divide(residual, left**2, out=score, where=left > 0)
            chosen[j] = RIDGES[int(score.argmin())]
    return chosen


def spread(n: int, most: int) -> Indices:
    """Return at most so many of n rows, evenly spread."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64))


def _inverses(S: Array, ridge: Array) -> dict[float, Array]:
    """Return ``(S + r I)^-1`` by ridge r."""
    return {float(r): np.linalg.inv(S + r * np.eye(len(S))) for r in np.unique(ridge)}


def _coefficients(inverses: Mapping[float, Array], ridge: Array, known: Indices, unknown: Indices) -> Array:
    """Return how the unknown features are predicted by the known ones, which are all others: (known, unknown).

    With ``P = (S + r I)^-1``, they are ``(S_oo + r I)^-1 S_ou = -P_ou P_uu^-1``: where few are unknown, a small system.
    """
    B = np.zeros((known.size, unknown.size))
    for r, P in inverses.items():
        these = ridge[unknown] == r
        if these.any():
            B[:, these] = -np.linalg.solve(P[np.ix_(unknown, unknown)], P[np.ix_(unknown, known)])[these].T
    return B


def _one_thread() -> AbstractContextManager[None]:
    """Keep BLAS to one thread: the matrices are small, and sums are to be the same on any machine."""
    from kernsel.numerics.runtime.threads import one_blas_thread

    return one_blas_thread()


def _patterns(holes: Mask) -> Iterator[tuple[Indices, Indices, Indices]]:
    """Yield the rows that lack the same columns, these columns, and the others; rows that lack none are left out."""
    rows = np.flatnonzero(holes.any(axis=1))
    if not rows.size:
        return
    packed = np.packbits(holes[rows], axis=1)
    _, first, inverse = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    inverse = inverse.ravel()
    order = np.argsort(inverse, kind="stable")
    ends = np.cumsum(np.bincount(inverse))
    for number, end in enumerate(ends):
        start = ends[number - 1] if number else 0
        lacking = holes[rows[first[number]]]
        yield rows[order[start:end]], np.flatnonzero(lacking), np.flatnonzero(~lacking)
