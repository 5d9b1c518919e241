"""Small data sets, and the ways to a selection and to a path on them."""

from itertools import pairwise

import numpy as np
from sklearn.datasets import load_wine

import twins.heldout
from kernsel.data import from_arrays
from kernsel.folds.partition import Partition
from kernsel.kernels import Statistics
from kernsel.representation.gram import Gram
from kernsel.representation.ranks import LowRank, Room
from kernsel.selection.carry_out import select_dataset
from kernsel.testing.tables import make_rows as make_rows
from kernsel.testing.tables import path_on as path_on

SMALL = {"tau": [0.3, 1.0, 3.0], "lambda": [1e-3, 1e-2, 1e-1]}


def circles(n=60, seed=0, flips=0.1):
    """Two classes, inside and outside of a circle; some labels are wrong."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    inside = ((X**2).sum(axis=1) < 1.4) ^ (rng.random(n) < flips)
    return X, np.where(inside, "in", "out")


def waves(n=60, seed=0, noise=0.2, scale=1.0):
    """A regression with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, scale * (np.sin(2 * X[:, 0]) + X[:, 1] + noise * rng.normal(size=n))


def wine():
    """Three classes, standardised."""
    X, y = load_wine(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def choose(X, y, task="auto", standardize=False, **options):
    """Select without issuing warnings: they are in the result."""
    data = from_arrays(X, y, task, standardize)
    options.setdefault("kernel", "gaussian")
    options.setdefault("learner", "svm(bias=false)" if data.task == "classification" else "krr")
    return select_dataset(data, **options)


def robust_spread(Y):
    """The median over targets (k, n) of 1.4826 times the median absolute deviation."""
    return np.median(1.4826 * np.median(np.abs(Y - np.median(Y, axis=1, keepdims=True)), axis=1))


def make_partition(seed, sizes, never=0, weighted=False, training=False, outputs=2, grid=False):
    """Rows in folds of these sizes and some that are in none; each fold's fit may have rows of its own."""
    rng = np.random.default_rng(seed)
    n, starts = sum(sizes) + never, np.r_[0, np.cumsum(sizes)]
    X = rng.normal(size=(n, 2))
    X = np.round(2 * X) / 2 if grid else X
    Y = np.stack([np.sin(2 * X[:, 0]) + X[:, 1], X[:, 0] * X[:, 1]])[:outputs] + 0.3 * rng.normal(size=(outputs, n))
    own = rng.random((len(sizes), n)) < 0.7
    for fold, (lo, hi) in enumerate(pairwise(starts)):
        own[fold, lo:hi] = False
    own[~own.any(axis=1), starts[-1] :] = True
    s = rng.exponential(size=n) + 0.05 if weighted else None
    return Partition(X, Y, starts, rng.permutation(n), Statistics(X), seed, s, own if training else None)


def in_blocks(rank, **room):
    """Low-rank features that are computed block by block, however few they are."""
    return LowRank(rank, room=Room(**{"features": 0} | room))


def slow_features(path):
    """Features of the representation that a path works on, for the twins."""
    if isinstance(path.representation, Gram):
        return twins.heldout.features(path.problem.gram)
    return path.representation.factor.Z
