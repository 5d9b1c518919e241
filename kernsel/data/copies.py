"""Copies among rows: which rows have the features of others, found by hashes in O(n d) time.

A copy of a training row says nothing about new rows. Where a fold holds it out, its target is known already, and the
held-out error is too low.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernsel.errors import OptionError
from kernsel.numerics.points import Points, is_sparse
from kernsel.types import Array, Indices, Mask

Hashes = NDArray[np.uint64]

TOGETHER, APART = "together", "apart"

FEWEST = 0.25
"""Distinct rows, as a share of all, from which copies are kept together. A table of fewer is one of a few categories,
where new rows will repeat those known as these rows do, and folds of whole categories would ask for something else."""

CHUNK = 2**17
"""Values that are hashed, or rows that are compared, at a time."""


@dataclass(frozen=True, eq=False)
class Copies:
    """Which rows are copies of each other.

    Parameters
    ----------
    number : (n,) array
        The distinct row that each row is, from 0 without gaps.
    rows : int
        Rows that are copies of an earlier one.
    same_target : int
        Those of them whose target is that of an earlier copy, too.
    """

    number: Indices
    rows: int
    same_target: int

    @property
    def few_distinct(self) -> bool:
        """Whether the table has so few distinct rows that they are categories rather than copies."""
        return self.number.size - self.rows < FEWEST * self.number.size


def check_copies(copies: str) -> str:
    """Return what is to become of copies, or raise an OptionError."""
    if copies not in (TOGETHER, APART):
        raise OptionError(f"copies {copies!r} is unknown: use {TOGETHER} (in one fold) or {APART} (as any other rows)")
    return copies


def find_copies(X: Points, Y: Array) -> Copies:
    """Find the rows of X (n, d), dense or sparse, that are equal to others, and those equal in Y (k, n) as well."""
    number = numbered(X)
    rows = number.size - int(number.max(initial=-1)) - 1
    copied = np.flatnonzero(np.bincount(number)[number] > 1)
    whole = np.column_stack([number[copied], numbered(np.ascontiguousarray(Y[:, copied].T))])
    return Copies(number, rows, copied.size - np.unique(whole, axis=0).shape[0])


def numbered(X: Points) -> Indices:
    """Return the number (n,) of the distinct row that each row is, by 64-bit hashes; equal hashes are compared."""
    found = hashes(X)
    ordered = np.sort(found)
    again = np.isin(found, ordered[1:][ordered[1:] == ordered[:-1]])
    alone, rows = np.flatnonzero(~again), np.flatnonzero(again)
    number = np.empty(found.size, np.int64)
    number[alone] = np.arange(alone.size)
    values, first, of_value = np.unique(found[rows], return_index=True, return_inverse=True)
    number[rows] = alone.size + of_value.ravel()
    others = rows[first[of_value.ravel()]]
    apart = [unequal(X, *pairs) for pairs in zip(_cut(rows), _cut(others), strict=True)]
    # Two different rows of one hash: about n^2 / 2^65 are to be expected. Each becomes a row of its own.
    different = rows[np.concatenate([*apart, np.zeros(0, np.bool_)])]
    number[different] = alone.size + values.size + np.arange(different.size)
    return number


def _cut(rows: Indices) -> list[Indices]:
    return [rows[start : start + CHUNK] for start in range(0, rows.size, CHUNK)]


def unequal(X: Points, rows: Indices, others: Indices) -> Mask:
    """Say which of some rows differ from others, pair by pair."""
    if not is_sparse(X):
        return np.asarray((X[rows] != X[others]).any(axis=1))
    difference = X[rows] - X[others]
    difference.eliminate_zeros()
    return np.asarray(np.diff(difference.indptr) > 0)


def hashes(X: Points) -> Hashes:
    """Return a hash of each row, (n,): the sum of hashes of its values, 0 of a value of 0, each times its column's."""
    n, d = X.shape
    found, factors = np.zeros(n, np.uint64), multipliers(d)
    size = max(1, CHUNK * n // max(n, X.nnz if is_sparse(X) else n * d, 1))
    for start in range(0, n, size):
        block, part = X[start : start + size], found[start : start + size]
        if is_sparse(block):
            filled = np.flatnonzero(np.diff(block.indptr))
            if filled.size:
                part[filled] = np.add.reduceat(mixed(block.data, factors[block.indices]), block.indptr[filled])
        else:
            part[:] = mixed(block, factors).sum(axis=1, dtype=np.uint64)
    return found


def mixed(values: Array, factors: Hashes) -> Hashes:
    """Return a hash of each value times a factor, modulo 2^64; that of 0, of either sign, is 0."""
    bits = (values + 0.0).view(np.uint64)  # which makes -0 0
    bits ^= bits >> np.uint64(32)  # the last bits of few digits are all 0, and a product would leave them so
    bits *= factors
    bits ^= bits >> np.uint64(29)
    return bits


def multipliers(d: int) -> Hashes:
    """Return an odd number for each column (d,)."""
    return np.random.default_rng(0).integers(0, 2**63, d, np.uint64) * np.uint64(2) + np.uint64(1)
