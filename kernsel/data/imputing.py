"""Numbers in the place of missing ones: their mean, given the other numbers of the row.

Under a normal law with mean m and covariance S, the missing numbers x_u of a row have, given the others x_o, the mean

    m_u + S_uo (S_oo + r I)^-1 (x_o - m_o),

with a small ridge r for columns that repeat each other. m and S are fitted by the EM algorithm, which takes that mean
for what is missing, and adds its covariance ``S_uu - S_uo (S_oo + r I)^-1 S_ou`` to S, until S stays.

Source: Little & Rubin, *Statistical Analysis with Missing Data*, section 11.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve

Floats = npt.NDArray[np.float64]

RIDGE = 1e-3
"""Variance that is added to each standardised number before the others are predicted by it."""
STEPS, TOLERANCE = 10, 1e-3
"""EM stops after so many steps, or when no entry of S (of standardised numbers) changes by more."""
BLOCK_ROWS = 2**15
"""Rows that are filled in at once."""
MOST_ROWS, MOST_FEATURES = 2000, 64
"""The law is fitted on so many rows, and not to more features: for those, means have to do."""


@dataclass(frozen=True, eq=False)
class NormalLaw:
    """A normal law of standardised numbers.

    Parameters
    ----------
    shift, scale : (d,) arrays
        A number x is standardised as ``(x - shift) / scale``.
    mean : (d,) array
    covariance : (d, d) array
    """

    shift: Floats
    scale: Floats
    mean: Floats
    covariance: Floats

    def fill(self, X: Floats) -> None:
        """Put numbers in the place of NaN in rows X (n, d), in place."""
        with _one_thread():
            for start in range(0, len(X), BLOCK_ROWS):
                self._fill(X[start : start + BLOCK_ROWS])

    def _fill(self, X: Floats) -> None:
        holes = np.isnan(X)
        for members, unknown, known in _patterns(holes):
            places = np.ix_(members, unknown)
            Z = np.broadcast_to(self.mean[unknown], (members.size, unknown.size))
            if known.size:
                B = solve(*_system(self.covariance, known, unknown), assume_a="pos", check_finite=False)
                given = (X[np.ix_(members, known)] - self.shift[known]) / self.scale[known]
                Z = self.mean[unknown] + (given - self.mean[known]) @ B
            X[places] = Z * self.scale[unknown] + self.shift[unknown]

    def to_json(self) -> dict[str, Any]:
        """Return the law as a dictionary that JSON holds without loss."""
        return {name: getattr(self, name).tolist() for name in ("shift", "scale", "mean", "covariance")}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> NormalLaw:
        """Build the law back from ``to_json()``."""
        return cls(*(np.array(document[name], dtype=np.float64) for name in ("shift", "scale", "mean", "covariance")))


def fit_normal(X: Floats, weights: Floats | None = None) -> NormalLaw | None:
    """Fit a normal law to rows in which NaN stands for what is missing.

    Parameters
    ----------
    X : (n, d) array
    weights : (n,) array, optional

    Returns
    -------
    NormalLaw or None
        None for more than 64 features, where rows are no more than features, or a column has no number.
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
    holes = np.isnan(X)
    there = np.where(holes, 0.0, s[:, None])
    total = there.sum(axis=0)
    shift = np.where(holes, 0.0, X * there).sum(axis=0) / total
    off = np.where(holes, 0.0, X - shift)
    largest = np.maximum(np.abs(off).max(axis=0), np.finfo(float).tiny)  # nothing over- or underflows
    scale = largest * np.sqrt((there * (off / largest) ** 2).sum(axis=0) / total)
    scale[scale == 0] = 1.0
    with _one_thread():
        mean, S = _expectation_maximisation(off / scale, holes, s)
    return NormalLaw(shift, scale, mean, S)


def _expectation_maximisation(Z: Floats, holes: npt.NDArray[np.bool_], s: Floats) -> tuple[Floats, Floats]:
    """Return mean and covariance of standardised rows Z (n, d), 0 where one is missing, of weights s with the sum 1."""
    d = Z.shape[1]
    patterns = list(_patterns(holes))
    mean, S = np.zeros(d), (s[:, None] * Z).T @ Z
    for _ in range(STEPS):
        C = np.zeros((d, d))
        filled = Z.copy()
        for members, unknown, known in patterns:
            share = s[members].sum()
            block = np.ix_(unknown, unknown)
            if not known.size:
                filled[np.ix_(members, unknown)] = mean[unknown]
                C[block] += share * S[block]
                continue
            B = solve(*_system(S, known, unknown), assume_a="pos", check_finite=False)
            filled[np.ix_(members, unknown)] = mean[unknown] + (Z[np.ix_(members, known)] - mean[known]) @ B
            C[block] += share * (S[block] - S[np.ix_(unknown, known)] @ B)
        mean = s @ filled
        centred = filled - mean
        before, S = S, (s[:, None] * centred).T @ centred + (C + C.T) / 2
        if np.abs(S - before).max() <= TOLERANCE:
            break
    return mean, S


def spread(n: int, most: int) -> npt.NDArray[np.int64]:
    """Return at most so many of n rows, evenly spread."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64))


def _system(S: Floats, known: npt.NDArray[np.int64], unknown: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return the matrix and the right-hand sides that predict the unknown numbers by the known ones."""
    return S[np.ix_(known, known)] + RIDGE * np.eye(known.size), S[np.ix_(known, unknown)]


def _one_thread() -> Any:
    """Keep BLAS to one thread: the matrices are small, and sums are to be the same on any machine."""
    from kernsel.numerics.runtime.jit import one_blas_thread

    return one_blas_thread()


def _patterns(
    holes: npt.NDArray[np.bool_],
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
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
