"""First-level kernel learning against the selection of kernel parameters, as in Cawley & Talbot 2014 (FLKL).

    python benchmarks/flkl.py FOLDER [--sets heart_ida ringnorm …] [--splits 10] [--methods RBF-LOO ARD-FLKL …]

FOLDER holds ``NAME.csv`` (features, then ``target`` of -1 and +1), here or in folders below, and maybe
``NAME_splits.npz`` with the rows to train on and to test on; where a set has fewer splits than are wanted, the others
have as many rows to train on, drawn at random, and 70 % where it has none. Features are standardised by the training
rows. Every method fits a least-squares support vector machine at the kernel and lambda that it finds: by leave-one-out
(LOO), 5-fold cross-validation (XVAL) or at the first level (FLKL), with one relevance for all features (RBF) or one for
each (ARD), and ARD by Bayesian regularisation (BR). Beside the mean test error and its standard error stands the
printed one of the paper's Tables 2 and 3, which is a mean over 100 splits of its own. Average ranks are over sets, with
Friedman's test (its statistic has the factor 12 N / (k (k + 1)), not 12 N / (k + 1) as printed) as Iman and Davenport
correct it, and Nemenyi's critical difference, both at p = 0.1.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.stats
from common import Array, machine, table
from numpy.typing import NDArray

import kernsel
from kernsel.learning import PUBLISHED
from kernsel.numerics.runtime.jit import one_blas_thread, share_each
from kernsel.numerics.square import firstlevel

PRINTED = {
    "banana": (10.605, 10.587, 10.614, 10.670, 10.656, 10.600),
    "diabetes": (23.320, 23.390, 23.933, 23.933, 24.277, 23.560),
    "german_numer": (23.543, 23.620, 24.987, 24.787, 24.777, 24.523),
    "heart_ida": (16.550, 16.590, 17.140, 20.540, 20.230, 17.650),
    "ringnorm": (1.610, 1.650, 1.608, 2.062, 2.056, 1.942),
    "ripley": (9.642, 9.657, 9.658, 9.743, 9.741, 9.685),
    "twonorm": (2.845, 2.802, 2.578, 4.477, 4.353, 3.027),
}
"""Tables 2 and 3, in the order of ``COLUMNS``, for the sets of this collection that are theirs or much like them."""

COLUMNS = ("RBF-LOO", "RBF-XVAL", "RBF-FLKL", "ARD-LOO", "ARD-XVAL", "ARD-FLKL")

Indices = NDArray[np.int64]


def splits_of(folder: Path, name: str, n: int, count: int) -> Iterator[tuple[Indices, Indices]]:
    """Give the rows to train on and to test on: the set's own splits first, then random ones."""
    given = next(folder.rglob(f"{name}_splits.npz"), None)
    made, kept = 0, round(0.7 * n)
    if given is not None:
        arrays = np.load(given)
        kept = arrays["train"].shape[1]
        for train, test in zip(arrays["train"][:count], arrays["test"][:count], strict=True):
            made += 1
            yield np.asarray(train), np.asarray(test)
    for seed in range(made, count):
        shuffled = np.random.default_rng(seed).permutation(n)
        yield shuffled[:kept], shuffled[kept:]


def error_of(method: str, X: Array, y: Array, X_test: Array, y_test: Array) -> float:
    """Learn a kernel and lambda, fit, and return the share misclassified in percent."""
    kernel, criterion = PUBLISHED[method]
    learned = kernsel.learn_relevances(
        X, y, kernel=kernel, criterion=criterion, task="classification", standardize=False
    )
    fitted = firstlevel.fit(learned.kernel(X), y[None], np.ones(len(y)), 1, learned.lam)
    outputs = learned.kernel(X_test, X) @ fitted.a[0] + fitted.b[0]
    return 100.0 * float(np.mean(np.where(outputs >= 0, 1.0, -1.0) != y_test))


def errors(frame: pd.DataFrame, split: tuple[Indices, Indices], methods: list[str]) -> list[float]:
    """Return the errors of all methods on one split."""
    X, y = frame.iloc[:, :-1].to_numpy(float), frame.iloc[:, -1].to_numpy(float)
    train, test = split
    centre, spread = X[train].mean(axis=0), X[train].std(axis=0)
    X = (X - centre) / np.where(spread > 0, spread, 1.0)
    return [error_of(method, X[train], y[train], X[test], y[test]) for method in methods]


def ranks(means: Array, methods: list[str]) -> str:
    """Return average ranks over sets, and whether they differ."""
    N, k = means.shape
    average = scipy.stats.rankdata(means, axis=1).mean(axis=0)
    listed = ", ".join(f"{name} {rank:.2f}" for name, rank in zip(methods, average, strict=True))
    if N < 2 or k < 3:
        return f"average ranks: {listed}"
    chi2 = float(scipy.stats.friedmanchisquare(*means.T).statistic)
    F = (N - 1) * chi2 / (N * (k - 1) - chi2)
    p = float(scipy.stats.f.sf(F, k - 1, (k - 1) * (N - 1)))
    difference = scipy.stats.studentized_range.ppf(0.9, k, np.inf) / np.sqrt(2) * np.sqrt(k * (k + 1) / (6 * N))
    return f"average ranks over {N} sets: {listed}; Friedman F = {F:.2f}, p = {p:.3g}; Nemenyi's CD = {difference:.2f}"


def main() -> None:
    """Print the table and the ranks."""
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("folder", type=Path)
    cli.add_argument("--sets", nargs="+", default=list(PRINTED), metavar="NAME")
    cli.add_argument("--splits", type=int, default=10)
    cli.add_argument("--methods", nargs="+", default=list(PUBLISHED), choices=list(PUBLISHED), metavar="METHOD")
    args = cli.parse_args()
    print(machine(), flush=True)
    lines: list[list[str]] = []
    means = []
    for name in args.sets:
        start = time.perf_counter()
        frame = pd.read_csv(next(args.folder.rglob(f"{name}.csv")))
        splits = list(splits_of(args.folder, name, len(frame), args.splits))
        with one_blas_thread():
            found = np.array(list(share_each(lambda split, frame=frame: errors(frame, split, args.methods), splits)))
        seconds = (time.perf_counter() - start) / len(splits)
        means.append(found.mean(axis=0))
        printed = dict(zip(COLUMNS, PRINTED.get(name, ()), strict=False))
        cells = [
            f"{mean:.2f} ± {scipy.stats.sem(column):.2f}" + (f" ({printed[method]:.2f})" if method in printed else "")
            for method, mean, column in zip(args.methods, means[-1], found.T, strict=True)
        ]
        lines.append([f"{name} ({len(splits)})", *cells])
        print(f"# {name}: {seconds:.1f} s a split; {' | '.join(cells)}", flush=True)
    head: list[Any] = ["set (splits)", *args.methods]
    print(f"\n{table(head, lines)}\n\n{ranks(np.array(means), args.methods)}", flush=True)


if __name__ == "__main__":
    main()
