"""Deal rows, or whole groups or copies of rows, to folds at random.

scikit-learn has splitters, but importing them takes longer than a whole selection on a small table, and one rule of
three lines serves here: rows are dealt like cards.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernsel.types import Array, Indices

Seed = int | Sequence[int]


def deal(labels: Indices, folds: int, seed: Seed) -> Indices:
    """Deal the rows to folds in turn, class after class, each class in random order.

    The sizes of any two folds differ by at most one row, and so do their numbers of rows of any class.

    Parameters
    ----------
    labels : (n,) array
        Class numbers; all the same for a regression.
    folds : int
        At most n.
    seed : int or sequence of int
        Of the shuffling.

    Returns
    -------
    (n,) array
        The fold of each row, from 0.
    """
    n = len(labels)
    shuffled = np.random.default_rng(seed).permutation(n)
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    number = np.empty(n, np.int64)
    number[by_class] = np.arange(n) % folds
    return number


def deal_copies(labels: Indices, copies: Indices, folds: int, seed: Seed) -> Indices:
    """Deal rows to folds, copies of a row to one fold; the rows without copies even out what copies leave uneven.

    First each set of copies is dealt like one card: the largest sets first, of one size class after class. Then rows
    without copies move from the largest fold to the smallest, of the class that the one has most too many of, until
    sizes differ by at most one row; they may differ by more where few rows have no copy. Numbers of rows of any class
    differ as little as that leaves.

    Parameters
    ----------
    labels : as in ``deal``
    copies : (n,) array
        Number of the distinct row that each row is, from 0 without gaps.
    folds : int
        At most the number of distinct rows.
    seed : as in ``deal``

    Returns
    -------
    (n,) array
        The fold of each row, from 0; every fold has a row.
    """
    first, sizes = np.unique(copies, return_index=True, return_counts=True)[1:]
    random = np.random.default_rng(seed)
    shuffled = random.permutation(first.size)
    cards = shuffled[np.lexsort((labels[first[shuffled]], -sizes[shuffled]))]
    fold_of = np.empty(first.size, np.int64)
    fold_of[cards] = np.arange(first.size) % folds
    number = fold_of[copies]
    counts = np.zeros((folds, int(labels.max()) + 1), np.int64)
    np.add.at(counts, (number, labels), 1)
    single = random.permutation(np.flatnonzero(sizes[copies] == 1))
    while True:
        of_fold = counts.sum(axis=1)
        large, small = int(of_fold.argmax()), int(of_fold.argmin())
        movable = single[number[single] == large]
        if of_fold[large] - of_fold[small] <= 1 or not movable.size:
            return number
        many = counts[large] - counts[small]
        row = movable[np.argmax(many[labels[movable]])]
        number[row] = small
        counts[[large, small], labels[row]] += [-1, 1]


def deal_groups(labels: Indices, groups: Indices, folds: int, seed: Seed) -> Indices:
    """Deal whole groups to folds, large ones first, each to the fold that has least of what the group holds.

    With the share ``u_fc`` of class c that fold f has so far and the share ``p_c`` that the group has, the group goes
    to the fold of the least ``sum_c u_fc p_c``: that raises the sum of all ``u_fc^2``, which is least where every fold
    has the same share of every class, as little as can be. All rows together count as one more class. With that one
    alone (a regression) no two folds differ by more rows than the largest group has.

    Groups are sorted by the power of two in their size, and are in random order within it, so that seeds differ even
    where no two groups are of one size.

    Parameters
    ----------
    labels : (n,) array
        Class numbers; all the same for a regression.
    groups : (n,) array
        Group numbers, from 0 without gaps.
    folds : int
        At most the number of groups.
    seed : int or sequence of int
        Of the order of the groups.

    Returns
    -------
    (n,) array
        The fold of each row, from 0; every fold has a group.
    """
    sizes = np.bincount(groups)
    counts = np.zeros((sizes.size, int(labels.max()) + 1))
    np.add.at(counts, (groups, labels), 1.0)
    shares = np.column_stack([counts[:, counts.any(axis=0)], sizes])
    shares /= shares.sum(axis=0)
    shuffled = np.random.default_rng(seed).permutation(sizes.size)
    order = shuffled[np.argsort(-np.frexp(sizes[shuffled])[1], kind="stable")]
    held = np.zeros((folds, shares.shape[1]))
    fold_of = np.empty(sizes.size, np.int64)
    for group in order:
        fold_of[group] = f = np.argmin(held @ shares[group])
        held[f] += shares[group]
    return fold_of[groups]


def cut_regions(points: Array, folds: int) -> Indices:
    """Cut rows into compact regions whose sizes differ by at most one row.

    A part for t folds is cut across its longest side into parts for ``t // 2`` and the other folds, of as many rows as
    these are to have.

    Parameters
    ----------
    points : (n, c) array
        Where the rows are.
    folds : int
        At most n.

    Returns
    -------
    (n,) array
        The fold of each row, from 0.
    """
    number = np.empty(len(points), np.int64)

    def cut(rows: Indices, first: int, count: int) -> None:
        if count == 1:
            number[rows] = first
            return
        longest = int(np.ptp(points[rows], axis=0).argmax())
        rows = rows[np.argsort(points[rows, longest], kind="stable")]
        some = count // 2
        at = rows.size * some // count
        cut(rows[:at], first, some)
        cut(rows[at:], first + some, count - some)

    cut(np.arange(len(points)), 0, folds)
    return number
