"""Ways to choose landmarks at equal rank: the trace they leave, how good the choice is, and time.

    python benchmarks/landmarks.py DATA.csv [DATA.csv ...] [--rank 100 300] [--target NAME]

First three widths, a quarter, once and four times the median of squared distances: the share of the trace that is left
(mean of three seeds) and the CPU time of one factorisation. Then a whole selection each (``krr``, or ``svm`` for
labels; 10 folds): what its choice is worth, by exact cross-validation at rank ``--judge`` by pivoted Cholesky, relative
to the best of the four choices. Times are in units of that of ``rpcholesky`` in the same run.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from common import machine, table

from kernsel.criteria import CV
from kernsel.data import Dataset, prepare, read_table
from kernsel.folds import make_folds
from kernsel.folds.partition import Partition
from kernsel.kernels import Gaussian
from kernsel.numerics.runtime.jit import one_blas_thread
from kernsel.paths import make_path
from kernsel.representation.problem import Problem
from kernsel.representation.ranks import METHODS, LowRank
from kernsel.selection.carry_out import select_dataset

SEEDS = range(3)
WIDTHS = (0.25, 1.0, 4.0)


def median_square(X: np.ndarray) -> float:
    """Return the median of the squared distances of some pairs."""
    some = X[np.random.default_rng(0).permutation(len(X))[:600]]
    return float(np.median(((some[::2] - some[1::2]) ** 2).sum(axis=1)))


def traces(dataset: Dataset, ranks: list[int]) -> list[list[str]]:
    """Return a line for each width and rank: the share of the trace left by each way, and its CPU time."""
    X, lines = dataset.X, []
    usual = median_square(X)
    for factor in WIDTHS:
        kernel = Gaussian(factor * usual)
        for rank in ranks:
            left, spent = [], []
            for method in METHODS:
                start = time.process_time()
                residuals = [LowRank(rank, 0.0, method).factor(kernel, X, seed).residual for seed in SEEDS]
                spent.append(time.process_time() - start)
                left.append(np.mean(residuals) / len(X))
            cells = [f"{100 * share:.3g} % ({t / spent[0]:.1f})" for share, t in zip(left, spent, strict=True)]
            lines.append([f"{factor:g}", str(rank), *cells])
    return lines


def choices(dataset: Dataset, rank: int, judge: int) -> list[str]:
    """Return for each way the exact loss of what it chooses, relative to the best, its own share left, and its time."""
    found, spent = [], []
    for method in METHODS:
        start = time.process_time()
        found.append(select_dataset(dataset, rank=rank, landmarks=method))
        spent.append(time.process_time() - start)
    rows = Partition.of(dataset, make_folds(10, dataset, 0), 0)
    losses = []
    for result in found:
        problem = Problem(rows, result.best.kernel, LowRank(min(judge, rows.n)))
        losses.append(float(CV().score(make_path(problem, result.best.learner, [result.best.lam])).score[0]))
    return [
        f"{loss / min(losses):.4f}, {result.best.value / min(losses):.4f} ({t / spent[0]:.2f})"
        for loss, result, t in zip(losses, found, spent, strict=True)
    ]


def warm_up(dataset: Dataset) -> None:
    """Load what a selection needs, so that nobody's time has it."""
    traces(dataset, [20])
    select_dataset(dataset, rank=60, search="halving", verify=1)


@one_blas_thread()
def main() -> None:
    """Print the tables."""
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("data", nargs="+", type=Path)
    cli.add_argument("--target", help="by default the last column")
    cli.add_argument("--rank", nargs="+", type=int, default=[100, 300])
    cli.add_argument("--judge", type=int, default=1500)
    args = cli.parse_args()
    warnings.simplefilter("ignore")
    head, judged = ["data", "width", "rank", *METHODS], []
    lines = []
    for path in args.data:
        dataset = prepare(read_table(path), args.target)
        warm_up(dataset)
        lines += [[path.stem, *line] for line in traces(dataset, args.rank)]
        judged += [[path.stem, str(rank), *choices(dataset, rank, args.judge)] for rank in args.rank]
    print("Share of the trace left (CPU time of three factorisations / that of rpcholesky):\n")
    print(table(head, lines))
    print(
        "\nExact loss of the choice / the best of the four, loss at its own rank / the same (CPU time / rpcholesky):\n"
    )
    print(table([head[0], *head[2:]], judged))
    print(f"\n{machine()}")


if __name__ == "__main__":
    main()
