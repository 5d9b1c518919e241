"""The stability scan from points as a share of its floor, against NumPy in blocks, and its memory.

    python benchmarks/stability.py [--rows 20000] [--columns 20] [--repeat 5] [--large 100000]

The floor is that of ``benchmarks/gram.py``: n(n+1)/2 pairs, each with ``d`` multiply-adds at the rate of a large matrix
product and one exponential at the rate of the faster of NumPy's and kernsel's loop on data that stay in the cache, on
all cores. The squares and their sums are no part of it. The rival is plain NumPy on all pairs, a block of rows at a
time: ``exp(-(|x|^2 + |z|^2 - 2 X Z') / (2 tau))`` and the row sums of its squares, all in place. Medians of several
rounds, in turn; each with the largest memory that Python and NumPy took beside the points (tracemalloc, in a run that
is not timed).
"""

from __future__ import annotations

import argparse
import statistics
import tracemalloc
from collections.abc import Callable

import numpy as np
from common import Array, machine, table
from gram import floor_of, peak_rates, timed

from kernsel.kernels import Gaussian, Kernel
from kernsel.numerics.stability import beta

BLOCK = 500  # rows of the rival's blocks: 80 MB for 20000 rows; 100 to 2000 differ little


def in_blocks(X: Array, tau: float) -> float:
    """Return the kernel stability of a Gaussian kernel by plain NumPy."""
    norms = np.einsum("ij,ij->i", X, X)
    sums = np.empty(len(X))
    for lo in range(0, len(X), BLOCK):
        rows = slice(lo, min(lo + BLOCK, len(X)))
        K = X[rows] @ X.T
        K *= 2.0
        K -= norms
        K -= norms[rows, None]
        K /= 2.0 * tau
        np.exp(K, out=K)
        K[np.arange(len(K)), np.arange(rows.start, rows.stop)] = 0.0
        sums[rows] = np.einsum("ij,ij->i", K, K)
    return float((0.5 * (1.0 + np.sqrt(1.0 + 4.0 * sums))).max())


def peak(work: Callable[[], object]) -> float:
    """Return the largest memory in MB that one run takes."""
    tracemalloc.start()
    work()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / 2**20


def main() -> None:
    """Print one table."""
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("--rows", type=int, default=20_000)
    cli.add_argument("--columns", type=int, default=20)
    cli.add_argument("--repeat", type=int, default=5)
    cli.add_argument("--large", type=int, default=100_000, help="rows that are scanned once; 0 for none")
    args = cli.parse_args()
    n, d = args.rows, args.columns
    X = np.random.default_rng(0).normal(size=(n, d))
    gaussian = Gaussian(float(d))

    def scanned(kernel: Kernel, points: Array = X) -> float:
        return beta(kernel.scan(points))[0]

    found, expected = scanned(gaussian), in_blocks(X, float(d))
    peak_rates()  # compiles
    rounds: dict[str, list[float]] = {}
    for _ in range(args.repeat):
        for name, value in {
            **peak_rates(),
            "scan": timed(lambda: scanned(gaussian)),
            "blocks": timed(lambda: scanned(1.0 * gaussian)),
            "rival": timed(lambda: in_blocks(X, float(d))),
        }.items():
            rounds.setdefault(name, []).append(value)
    at = {name: statistics.median(values) for name, values in rounds.items()}
    floor = sum(floor_of(n * (n + 1) / 2, d, at))
    print(machine())
    print(
        f"n = {n}, d = {d}; matrix product {at['product'] / 1e9:.1f} GFLOP/s; exponentials {at['numpy'] / 1e9:.2f} G/s "
        f"(NumPy), {at['kernsel'] / 1e9:.2f} G/s (kernsel); beta {found:.6f}, NumPy's differs by "
        f"{abs(found - expected) / expected:.1e}\n"
    )
    lines = [["floor: products and exponentials of half of the pairs", f"{floor:.2f} s", "1", ""]]
    for name, seconds, work in (
        ("kernsel, from points", at["scan"], lambda: scanned(gaussian)),
        ("kernsel, in blocks as for any other kernel", at["blocks"], lambda: scanned(1.0 * gaussian)),
        ("NumPy in blocks of rows", at["rival"], lambda: in_blocks(X, float(d))),
    ):
        lines.append([name, f"{seconds:.2f} s", f"{seconds / floor:.2f}", f"{peak(work):.1f} MB"])
    if args.large:
        points = np.random.default_rng(2).normal(size=(args.large, d))
        seconds = timed(lambda: scanned(gaussian, points))
        most = peak(lambda: scanned(gaussian, points[: args.large // 4]))
        name = f"kernsel, from {args.large} points (memory: of a quarter of them)"
        lines.append(
            [name, f"{seconds:.2f} s", f"{seconds / floor * (n / args.large) ** 2:.2f} a pair", f"{most:.1f} MB"]
        )
    print(table(["what", "time", "time / floor", "memory"], lines))


if __name__ == "__main__":
    main()
