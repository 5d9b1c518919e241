"""Kernel ``auto`` against one relevance for all features, and against one for each without asking.

    python benchmarks/auto.py DATA.csv [DATA.csv ...] [--splits 10] [--rows 1000]

Each split trains on 70 % of at most ``--rows`` rows and tests on the others: the share misclassified, or the RMSE in
standard deviations of the target. "chosen" counts the splits where ``auto`` took a relevance for each feature. Its
difference from ``gaussian`` has the p-values of the paired t-test and of that which is corrected for overlapping
training sets (Nadeau & Bengio 2003). Times are CPU seconds of a selection, all threads together.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from common import Array, machine, table
from numpy.typing import NDArray

import kernsel
from kernsel.evaluation import paired

KERNELS = ("gaussian", "ard", "auto")
SHARE = 0.7


def error_of(selection: kernsel.Selection, X: pd.DataFrame, y: pd.Series) -> float:
    """Return the error of other rows."""
    predicted = np.asarray(selection.model.predict(X))
    if selection.data["task"] == "classification":
        return float(np.mean(predicted != y.to_numpy()))
    return float(np.sqrt(np.mean((predicted - y.to_numpy()) ** 2)))


def split(frame: pd.DataFrame, seed: int, rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw the rows to train on and those to test on."""
    shuffled = np.random.default_rng(seed).permutation(len(frame))[:rows]
    train = round(SHARE * shuffled.size)
    return shuffled[:train], shuffled[train:]


def compare(frame: pd.DataFrame, splits: int, rows: int) -> tuple[Array, Array, int]:
    """Return errors and CPU seconds (splits, kernels), and how often ``auto`` took a relevance for each feature."""
    X, y = frame.iloc[:, :-1], frame.iloc[:, -1]
    unit = 1.0 if y.nunique() <= 10 else float(y.std(ddof=0))
    errors, seconds = np.zeros((splits, len(KERNELS))), np.zeros((splits, len(KERNELS)))
    chosen = 0
    for seed in range(splits):
        train, test = split(frame, seed, rows)
        for column, name in enumerate(KERNELS):
            start = time.process_time()
            selection = kernsel.select(X.iloc[train], y.iloc[train], kernel=name)
            seconds[seed, column] = time.process_time() - start
            errors[seed, column] = error_of(selection, X.iloc[test], y.iloc[test]) / unit
        chosen += selection.best.kernel.name == "ard"
    return errors, seconds, chosen


def main() -> None:
    """Print the table."""
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("data", nargs="+", type=Path)
    cli.add_argument("--splits", type=int, default=10)
    cli.add_argument("--rows", type=int, default=1000)
    args = cli.parse_args()
    warnings.simplefilter("ignore", kernsel.errors.SelectionWarning)
    print(machine(), flush=True)
    lines = []
    for path in args.data:
        errors, seconds, chosen = compare(pd.read_csv(path), args.splits, args.rows)
        plain, test = (paired(errors[:, 2], errors[:, 0], share) for share in (None, 1 - SHARE))
        lines.append(
            [
                path.stem,
                *(f"{mean:.4f}" for mean in errors.mean(axis=0)),
                f"{chosen} of {args.splits}",
                f"{test.difference:+.4f}",
                f"{plain.p:.2g}",
                f"{test.p:.2g}",
                f"{seconds[:, 2].mean() / seconds[:, 0].mean():.2g}",
            ]
        )
        print("# " + " | ".join(lines[-1]), flush=True)
    head = ["data", *KERNELS, "chosen", "auto - gaussian", "p", "p, corrected", "CPU time, auto / gaussian"]
    print("\n" + table(head, lines), flush=True)


if __name__ == "__main__":
    main()
