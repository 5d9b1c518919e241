"""Families of kernels against kernels that are learnt: Table 4 of Cawley & Talbot 2014 (FLKL).

    python benchmarks/families.py FOLDER [--sets heart_ida ringnorm …] [--splits 10] [--methods …] [--jobs 2]

FOLDER, splits and standardisation are as in ``flkl.py``, which is where RBF-XVAL and ARD-FLKL come from. MKL is
SimpleMKL (``simple``) over Gaussian kernels of the automatic widths, IKL infinite kernel learning (``infinite``), both
of a support vector machine with a bias: ``single`` on all features, ``separate`` on these and on each alone,
``products`` with a relevance for each feature. Lambda is chosen on each split by 5-fold cross-validation, and the fit
is that of the weights at this lambda. (Gehler & Nowozin, whose figures the table prints, chose C on five splits and
took the median.)

Beside the mean test error in percent, with its standard error, stands the printed one, and in brackets how many kernels
have a weight. The last lines are average ranks with Friedman's test and Nemenyi's critical difference.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

os.environ.setdefault("NUMBA_NUM_THREADS", "1")  # splits go side by side

import numpy as np
import pandas as pd
from common import Array, machine, table
from flkl import Indices, error_of, ranks, splits_of
from joblib import Parallel, delayed

import kernsel
from kernsel.errors import ConvergenceWarning, SelectionWarning

FAMILIES = {
    "MKL single": ("simple", "single"),
    "MKL separate": ("simple", "separate"),
    "IKL single": ("infinite", "single"),
    "IKL separate": ("infinite", "separate"),
    "IKL products": ("infinite", "products"),
}
METHODS = ("RBF-XVAL", "ARD-FLKL", *FAMILIES)
TABLE = ("RBF-XVAL", "ARD-FLKL", "MKL separate", "IKL products")
"""The columns of the paper's table."""

PRINTED = {
    "banana": ("10.6", "10.6", "10.5 (1.0)", "10.7 (3.7)"),
    "diabetes": ("23.4", "23.6", "24.5 (4.0)", "24.3 (22.3)"),
    "german_numer": ("23.6", "24.5", "25.1 (8.3)", "24.6 (46.1)"),
    "heart_ida": ("16.6", "17.6", "16.7 (9.0)", "20.1 (28.2)"),
    "ringnorm": ("1.6", "1.9", "1.7 (2.6)", "2.1 (16.3)"),
    "twonorm": ("2.8", "3.0", "2.5 (3.8)", "3.8 (36.2)"),
}
"""For the sets of this collection that are the paper's or much like them."""


def weighted(method: str, X: Array, y: Array, X_test: Array, y_test: Array) -> tuple[float, int]:
    """Learn weights and lambda, fit, and return the share misclassified in percent and the number of kernels."""
    way, family = FAMILIES[method]
    options = {"learner": "svm(bias=true)", "folds": 5, "task": "classification", "standardize": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelectionWarning)  # one lambda is an edge
        warnings.simplefilter("ignore", ConvergenceWarning)
        learned = kernsel.learn_mkl(X, y, method=way, family=family, **options)
        fitted = kernsel.select(X, y, kernel=learned.kernel, grid={"lambda": [learned.lam]}, verify=0, **options)
    wrong = fitted.model.predict(X_test) != y_test
    return 100.0 * float(np.mean(wrong)), int((learned.weights > 0).sum())


def one_split(frame: pd.DataFrame, split: tuple[Indices, Indices], methods: list[str]) -> list[tuple[float, int]]:
    """Return error and number of kernels of all methods on one split."""
    X, y = frame.iloc[:, :-1].to_numpy(float), frame.iloc[:, -1].to_numpy(float)
    train, test = split
    centre, spread = X[train].mean(axis=0), X[train].std(axis=0)
    X = (X - centre) / np.where(spread > 0, spread, 1.0)
    parts = X[train], y[train], X[test], y[test]
    return [weighted(method, *parts) if method in FAMILIES else (error_of(method, *parts), 1) for method in methods]


def main() -> None:
    """Print the table and the ranks."""
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("folder", type=Path)
    cli.add_argument("--sets", nargs="+", default=list(PRINTED), metavar="NAME")
    cli.add_argument("--splits", type=int, default=10)
    cli.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS, metavar="METHOD")
    cli.add_argument("--jobs", type=int, default=2)
    args = cli.parse_args()
    print(machine(), flush=True)
    lines, means = [], []
    for name in args.sets:
        frame = pd.read_csv(next(args.folder.rglob(f"{name}.csv")))
        splits = list(splits_of(args.folder, name, len(frame), args.splits))
        done = Parallel(n_jobs=args.jobs)(delayed(one_split)(frame, split, args.methods) for split in splits)
        errors, counts = np.moveaxis(np.array(done, dtype=np.float64), 2, 0)
        means.append(errors.mean(axis=0))
        spread = errors.std(axis=0, ddof=1) / np.sqrt(len(splits)) if len(splits) > 1 else np.zeros(len(args.methods))
        printed = dict(zip(TABLE, PRINTED.get(name, ()), strict=False))
        line = [f"{name} ({len(splits)})"]
        for method, mean, error, count in zip(args.methods, means[-1], spread, counts.mean(axis=0), strict=True):
            number = f" ({count:.1f})" if method in FAMILIES else ""
            beside = f"; paper {printed[method]}" if method in printed else ""
            line.append(f"{mean:.1f} ± {error:.1f}{number}{beside}")
        lines.append(line)
        print("# " + " | ".join(line), flush=True)
    print(f"\n{table(['set (splits)', *args.methods], lines)}\n\n{ranks(np.array(means), args.methods)}", flush=True)


if __name__ == "__main__":
    main()
