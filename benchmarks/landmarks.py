"""Ways to choose landmarks at equal rank: the trace they leave, and time.

    python benchmarks/landmarks.py DATA.csv [DATA.csv ...] [--rank 100 300] [--target NAME]

Three widths, a quarter, once and four times the median of squared distances: the share of the trace that is left (mean
of three seeds) and the CPU time of one factorisation, in units of that of ``rpcholesky`` in the same run. What is
chosen with them is compared by ``kernsel compare --rank 100 --method 'uniform(landmarks=uniform)' ...``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from common import machine, table

from kernsel.data import Dataset, prepare, read_table
from kernsel.kernels import Gaussian
from kernsel.numerics.runtime.threads import one_blas_thread
from kernsel.representation.ranks import METHODS, LowRank

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


@one_blas_thread()
def main() -> None:
    """Print the tables."""
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("data", nargs="+", type=Path)
    cli.add_argument("--target", help="by default the last column")
    cli.add_argument("--rank", nargs="+", type=int, default=[100, 300])
    args = cli.parse_args()
    warnings.simplefilter("ignore")
    lines = []
    for path in args.data:
        dataset = prepare(read_table(path), args.target)
        traces(dataset, [20])  # loads what is needed, so that nobody's time has it
        lines += [[path.stem, *line] for line in traces(dataset, args.rank)]
    print("Share of the trace left (CPU time of three factorisations / that of rpcholesky):\n")
    print(table(["data", "width", "rank", *METHODS], lines))
    print(f"\n{machine()}")


if __name__ == "__main__":
    main()
