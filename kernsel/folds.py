"""Folds of a cross-validation.

scikit-learn has splitters, but importing them takes longer than a whole selection on a small table, and one rule of
three lines serves here: rows are dealt like cards.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


def deal(labels: Indices, folds: int, seed: int) -> tuple[Indices, Indices]:
    """Deal the rows to folds in turn, class after class, each class in random order.

    The sizes of any two folds differ by at most one row, and so do their numbers of rows of any class.

    Parameters
    ----------
    labels : (n,) array
        Class numbers; all the same for a regression.
    folds : int
        At most n.
    seed : int
        Of the shuffling.

    Returns
    -------
    order : (n,) array
        The rows sorted by fold.
    starts : (folds + 1,) array
        Fold j holds ``order[starts[j]:starts[j + 1]]``.
    """
    n = len(labels)
    shuffled = np.random.default_rng(seed).permutation(n)
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    order = np.concatenate([by_class[fold::folds] for fold in range(folds)])
    sizes = [len(range(fold, n, folds)) for fold in range(folds)]
    return order, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
