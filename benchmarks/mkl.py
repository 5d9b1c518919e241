"""Test errors of multiple kernel learning beside the best single kernel, on tables of your own.

    python benchmarks/mkl.py DATA.csv [DATA.csv ...] [--splits 10] [--methods …] [--jobs 2] [--output …]

CSV with a header, target last; labels of two kinds are classes for ``svm``, other numbers a regression for ``krr``.
70 % of the rows at random are to learn from; features are standardised on these. The kernels are Gaussian ones of ten
widths on all features, and a Gaussian and a quadratic one on every feature alone. Each method learns the weights with
lambda as it comes by default. Then lambda of the weighted sum is chosen for all methods in the same way, by
``kernsel.select`` with 10 folds; ``single`` is what that chooses among the kernels themselves.

Printed are mean test errors with their standard errors (misclassified, or the mean squared error in units of the
target's variance), how many kernels have a weight, CPU time against that of ``single``, mean ranks over the tables with
Friedman's test and Nemenyi's critical difference, and t-tests of each method against ``single`` and ``uniform``:
ordinary and corrected for overlapping training sets (Nadeau & Bengio 2003).
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("NUMBA_NUM_THREADS", "1")  # splits go side by side

import numpy as np
from common import Array, machine, table
from joblib import Parallel, delayed

import kernsel
from kernsel import evaluation
from kernsel.errors import ConvergenceWarning, SelectionWarning
from kernsel.kernels import Gaussian, Kernel, On, Polynomial

METHODS = ("single", "uniform", "k-ks", "simple", "lp", "easy", "alignment")
ONLY_CLASSES = ("easy",)
WIDTHS = 2.0 ** np.arange(-6, 4)
"""Of the Gaussian kernels, by the number of features: half the mean squared distance of standardised rows is 1."""

SHARE = 0.3  # to test on

Found = dict[str, dict[str, float]]


def kernels_on(d: int) -> list[Kernel]:
    """Return the kernels for d features."""
    alone = [Gaussian(1.0), Polynomial(degree=2, gamma=1.0, coef0=1.0)]
    return [*(Gaussian(float(d * width)) for width in WIDTHS), *(On((j,), k) for j in range(d) for k in alone)]


def one_split(X: Array, y: Array, classes: bool, seed: int, methods: list[str]) -> Found:
    """Return error, number of kernels with a weight and CPU time of each method on one split."""
    order = np.random.default_rng(seed).permutation(len(X))
    test, train = np.split(order, [round(SHARE * len(X))])
    centre, spread = X[train].mean(axis=0), X[train].std(axis=0)
    X = (X - centre)[:, spread > 0] / spread[spread > 0]
    task = "classification" if classes else "regression"
    options: dict[str, Any] = {"task": task, "standardize": False, "seed": seed}
    kernels = kernels_on(X.shape[1])
    found: Found = {}
    for method in methods:
        if method in ONLY_CLASSES and not classes:
            continue
        begun, used, gap, kernel = time.process_time(), 1, 0.0, kernels
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SelectionWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            if method != "single":
                learned = kernsel.learn_mkl(X[train], y[train], kernels, method=method, **options)
                used, gap, kernel = int((learned.weights > 0).sum()), learned.gap or 0.0, [learned.kernel]
            chosen = kernsel.select(X[train], y[train], kernel=kernel, **options)
        outputs = chosen.model.predict(X[test])
        wrong = outputs != y[test] if classes else (outputs - y[test]) ** 2 / y[train].var()
        cpu = time.process_time() - begun
        found[method] = {"error": float(np.mean(wrong)), "used": used, "cpu": cpu, "gap": gap}
    return found


def main() -> None:
    """Print the tables."""
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("data", type=Path, nargs="+")
    cli.add_argument("--splits", type=int, default=10)
    cli.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS, help="single comes first")
    cli.add_argument("--jobs", type=int, default=2)
    cli.add_argument("--output", type=Path, help="all figures as JSON")
    args = cli.parse_args()
    methods = ["single", *(method for method in args.methods if method != "single")]
    print(machine(), flush=True)
    everything: dict[str, list[Found]] = {}
    for path in args.data:
        rows = np.loadtxt(path, delimiter=",", skiprows=1)
        X, y = rows[:, :-1], rows[:, -1]
        classes = np.unique(y).size == 2
        everything[path.stem] = Parallel(n_jobs=args.jobs)(
            delayed(one_split)(X, y, classes, seed, methods) for seed in range(args.splits)
        )
        print(f"# {path.stem}: {len(X)} rows, {len(kernels_on(X.shape[1]))} kernels, {args.splits} splits", flush=True)
        if args.output is not None:
            args.output.write_text(json.dumps(everything))
    report(everything, methods)


def column(splits: list[Found], method: str, what: str = "error") -> Array:
    """Return a figure of a method, split by split."""
    return np.array([split[method][what] for split in splits])


def report(everything: dict[str, list[Found]], methods: list[str]) -> None:
    """Print the tables of errors, kernels and times, and the comparisons."""
    figures = {"test error": _error, "kernels with a weight": _used, "CPU time / that of single": _cpu}
    for title, figure in figures.items():
        lines = [
            [data, *(figure(splits, method) if method in splits[0] else "" for method in methods)]
            for data, splits in everything.items()
        ]
        print(f"\n{title}\n\n" + table(["data", *methods], lines))
    stopped = sum(split[m]["gap"] > 0.01 for splits in everything.values() for split in splits for m in split)
    print(f"\n{stopped} times a method stopped above its tolerance of the duality gap")
    common = [m for m in methods if all(m in splits[0] for splits in everything.values())]
    if len(everything) > 1:
        ranks = evaluation.friedman([[column(splits, m).mean() for m in common] for splits in everything.values()])
        listed = ", ".join(f"{m} {rank:.2f}" for m, rank in zip(common, ranks.mean_ranks, strict=True))
        print(
            f"\nmean ranks: {listed}; F = {ranks.statistic:.2f}, p = {ranks.p:.2g}; "
            f"critical difference {ranks.critical_difference:.2f}"
        )
    lines = []
    for base in ("single", "uniform"):
        for method in methods:
            if base in methods and method != base:
                lines.append([f"{method} against {base}", *_against(everything, method, base)])
    print("\n" + table(["methods", "t-test", "corrected t-test"], lines))


def _error(splits: list[Found], method: str) -> str:
    errors = column(splits, method)
    return f"{errors.mean():.4f} ± {errors.std(ddof=1) / np.sqrt(errors.size):.4f}"


def _used(splits: list[Found], method: str) -> str:
    return f"{column(splits, method, 'used').mean():.1f}"


def _cpu(splits: list[Found], method: str) -> str:
    return f"{np.median(column(splits, method, 'cpu') / column(splits, 'single', 'cpu')):.2g}"


def _against(everything: dict[str, list[Found]], method: str, base: str) -> list[str]:
    """Say on which tables a method is better or worse than another one, at 5 %."""
    cells = []
    for share in (None, SHARE):
        better, worse = [], []
        for data, splits in everything.items():
            if method not in splits[0]:
                continue
            found = evaluation.paired(column(splits, method), column(splits, base), share)
            if found.p < 0.05:
                (better if found.difference < 0 else worse).append(data)
        cells.append(f"better: {', '.join(better) or 'none'}; worse: {', '.join(worse) or 'none'}")
    return cells


if __name__ == "__main__":
    main()
