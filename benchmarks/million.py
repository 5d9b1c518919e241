"""A selection on a million rows: time by stage, peak memory and error, and how they grow with the rows.

    python benchmarks/million.py [--rows 1000000] [--rank 1000] [--learner svm] [--parquet] [--skip-select]
                                 [--skip-stages]

The data are those of friedman1 (20 features of which 5 matter, unit noise), for ``svm`` whether the target is above
its mean; the grid has 3 widths and 16 lambda, with
10 folds. Selections run in processes of their own, which read the rows from a memory map (``--parquet``: and from a
Parquet file, by pyarrow) and report their peak memory. A stage is timed on one width, beside what it would take at
the rate of large matrix products and of exponentials that this machine reaches in the same run.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import kernsel
from kernsel.data import prepare, read_table
from kernsel.folds.partition import Partition
from kernsel.kernels import Gaussian, Statistics
from kernsel.numerics import gram
from kernsel.numerics.blocks import features as streaming
from kernsel.numerics.blocks.sums import segment_sums
from kernsel.numerics.runtime.threads import one_blas_thread, share, threads
from kernsel.representation.blocks import SampledFeatures
from kernsel.representation.ranks import LowRank
from kernsel.representation.stream import Stream
from kernsel.selection.carry_out import select_dataset

FOLDS = 10
WIDTHS = (60.0, 240.0, 960.0)
RIDGES = 2.0 ** np.arange(-16, 16, 2)
STAGES = ("landmarks", "features", "cross-products", "solves", "second pass")


def data(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return friedman1's rows and targets."""
    rng = np.random.default_rng(0)
    X = rng.random((n, 20))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return X, y + rng.normal(size=n)


def write(folder: Path, n: int, learner: str, parquet: bool) -> None:
    """Write the data where the selections find them."""
    X, y = data(n)
    y = np.where(y > y.mean(), "above", "below") if learner == "svm" else y
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", y)
    if parquet:
        import pandas as pd

        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
        frame["y"] = y
        frame.to_parquet(folder / "table.parquet")


def select(folder: Path, source: str, learner: str, rank: int) -> None:
    """Select on the data of a folder, and print what came of it as JSON."""
    start = time.perf_counter()
    if source == "parquet":
        dataset = prepare(read_table(folder / "table.parquet"), "y")
        read = time.perf_counter() - start
        grid = {"tau": WIDTHS, "lambda": RIDGES / dataset.n}
        result = select_dataset(dataset, learner=learner, grid=grid, folds=FOLDS, rank=rank, extend=False)
    else:
        X, y = np.load(folder / "X.npy", mmap_mode="r"), np.load(folder / "y.npy", mmap_mode="r")
        read = time.perf_counter() - start
        grid = {"tau": WIDTHS, "lambda": RIDGES / len(y)}
        result = kernsel.select(X, y, learner=learner, grid=grid, folds=FOLDS, rank=rank, extend=False)
    print(
        json.dumps(
            {
                "seconds": time.perf_counter() - start,
                "cpu": time.process_time(),
                "read": read,
                "search": result.timing["search"],
                "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
                "error": result.best.error,
                "chosen": f"{result.best.kernel}, n lambda = {result.best.lam * result.data['rows']:.3g}",
                "representation": result.data["representation"],
            }
        )
    )


def seconds(work: Callable[[], object], repeat: int = 1) -> float:
    """Return how long it takes, at best."""
    spent = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        spent.append(time.perf_counter() - start)
    return min(spent)


def rates(rank: int) -> tuple[float, float]:
    """Return floating-point operations and exponentials a second that all threads reach together, best of five."""
    A, B, S = np.ones((4096, rank)), np.ones((rank, rank)), np.ones((1000, 1000))

    def products(first: int, step: int) -> None:
        for _ in range(first, 2 * threads(), step):
            A @ B

    with one_blas_thread():
        product = seconds(lambda: share(products, 2 * threads()), 5) / (2 * threads())
    exponentials = seconds(lambda: gram.apply(gram.exponential(1.0), S), 5)
    return 2 * A.size * rank / product, S.size / exponentials


def sorted_rows(n: int) -> Partition:
    """Return the data, standardised, in ten folds."""
    X, y = data(n)
    X -= X.mean(axis=0)
    X /= X.std(axis=0)
    return Partition(
        X, ((y - y.mean()) / y.std())[None], np.arange(FOLDS + 1) * n // FOLDS, np.arange(n), Statistics(X)
    )


def stages(n: int, rank: int, tau: float) -> dict[str, float]:
    """Return the seconds of each stage of one width: the best of three where they are short."""
    rows, kernel, repeat = sorted_rows(n), Gaussian(tau), 3 if n <= 50_000 else 1
    asked = LowRank(rank)
    features = SampledFeatures.of(rows, kernel, asked).features
    blocks, folds = list(features.blocks(0, n)), range(FOLDS)
    w, b = np.ones((FOLDS, 1, RIDGES.size, features.rank)), np.zeros((FOLDS, 1, RIDGES.size))
    stream: Stream

    def first_pass() -> None:
        nonlocal stream
        stream = Stream.of(rows, SampledFeatures.of(rows, kernel, asked).features, asked.room.runs)

    def form(first: int, step: int) -> None:
        for block in blocks[first::step]:
            features.block(rows.X[block])

    def solve(first: int, step: int) -> None:
        for fold in folds[first::step]:
            stream.weights(fold, RIDGES / n, bias=False)

    with one_blas_thread():
        spent = {
            "landmarks": seconds(lambda: SampledFeatures.of(rows, kernel, asked), repeat),
            "features": seconds(lambda: share(form, len(blocks)), repeat),
            "second pass": seconds(lambda: streaming.outputs(features, rows.X, rows.starts, w, b), repeat),
        }
        pass_over_rows = seconds(first_pass, repeat)
        spent["solves"] = seconds(lambda: share(solve, FOLDS), repeat)
    return spent | {"cross-products": pass_over_rows - spent["landmarks"] - spent["features"]}


def floors(n: int, rank: int, d: int, flops: float, exponentials: float) -> dict[str, float]:
    """Return what the stages would take at full rate: of the cross-products half a matrix is needed."""
    features = 2 * n * rank * d / flops + n * rank / exponentials
    return {
        "features": features,
        "cross-products": n * rank**2 / flops,
        "solves": FOLDS * RIDGES.size * rank**3 / 3 / flops,
        "second pass": features + 2 * n * rank * RIDGES.size / flops,
    }


def conditioning(n: int, rank: int) -> None:
    """Print time and error of the products with none, some and all pivots eliminated from the blocks."""
    rows = sorted_rows(n)
    print("\nLargest error of a held-out output for two values of n lambda:")
    print("\n| tau | eliminated from blocks | pass, s | 2^-10 | 1 |")
    print("|---" * 5 + "|")
    asked, usual = LowRank(rank), streaming.MAGNIFIED
    for tau in (3.0, *WIDTHS, 2400.0):
        found = {}
        made = SampledFeatures.of(rows, Gaussian(tau), asked)
        for limit in (0.0, math.inf, usual):
            kernel, points, T, sample = made.features.kernel, made.features.points, made.features.T, rows.X[made.chosen]
            features = streaming.Features(kernel, points, T, sample, asked.room.block, limit)
            stream = Stream.of(rows, features, asked.room.runs)
            f, _ = stream.heldout(np.array([2.0**-10, 1.0]) / n, bias=False)
            spent = seconds(lambda s=stream: segment_sums(s.features, rows.X, rows.Y, None, s.bounds))
            found[limit] = stream.features.head, spent, f[0]
        for head, spent, f in found.values():
            errors = np.abs(f - found[0.0][2]).max(axis=1)
            shown = " | ".join("reference" if head == rank else f"{error:.1e}" for error in errors)
            print(f"| {tau:g} | {head} | {spent:.2f} | {shown} |", flush=True)


def main() -> None:
    """Print the tables."""
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("--rows", type=int, default=1_000_000)
    cli.add_argument("--rank", type=int, default=1000)
    cli.add_argument("--learner", choices=["krr", "svm"], default="krr", help="of the selections; stages are of krr")
    cli.add_argument("--parquet", action="store_true", help="read the rows from a Parquet file as well")
    cli.add_argument("--skip-select", action="store_true")
    cli.add_argument("--skip-stages", action="store_true")
    cli.add_argument("--conditioning", action="store_true", help="compare ways to the products, on a tenth of the rows")
    cli.add_argument("--child", nargs=2, metavar=("FOLDER", "SOURCE"), help=argparse.SUPPRESS)
    args = cli.parse_args()
    if args.child:
        select(Path(args.child[0]), args.child[1], args.learner, args.rank)
        return
    if not args.skip_select:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), args.rows, args.learner, args.parquet)
            print("| rows from | n | reading, s | search, s | all, s | CPU, s | peak, GiB | held-out error | choice |")
            print("|---" * 9 + "|")
            for source in ["memory map"] + ["parquet"] * args.parquet:
                call = [sys.executable, __file__, "--rank", str(args.rank), "--learner", args.learner]
                call += ["--child", folder, source]
                found = json.loads(subprocess.run(call, check=True, capture_output=True, text=True).stdout)
                figures = [args.rows, *(f"{found[name]:.0f}" for name in ("read", "search", "seconds", "cpu"))]
                figures += [f"{found['peak']:.2f}", f"{found['error']:.4f}", found["chosen"]]
                print(f"| {source} | " + " | ".join(map(str, figures)) + f"; {found['representation']} |", flush=True)
    if not args.skip_stages:
        flops, exponentials = rates(args.rank)
        print(f"\n{flops / 1e9:.0f} GFLOP/s, {exponentials / 1e9:.2f} G exponentials a second, {threads()} threads")
        stages(2000, min(args.rank, 200), WIDTHS[1])  # whatever has to be compiled is
        times = {}
        for n in np.unique(np.geomspace(args.rows / 100, args.rows, 5).astype(int)).tolist():
            times[n] = stages(n, args.rank, WIDTHS[1])
            print(f"n = {n}: " + ", ".join(f"{stage} {t:.2f} s" for stage, t in times[n].items()), flush=True)
        floor = floors(args.rows, args.rank, 20, flops, exponentials)
        print("\n| stage | " + " | ".join(f"n = {n}" for n in times) + " | exponent of n | floor at the last n, s |")
        print("|---" * (len(times) + 3) + "|")
        for stage in STAGES:
            row = [spent[stage] for spent in times.values()]
            exponent = np.polyfit(np.log(list(times)), np.log(np.maximum(row, 1e-9)), 1)[0]
            shown = f"{floor[stage]:.1f}" if stage in floor else ""
            print(f"| {stage} | " + " | ".join(f"{t:.2f}" for t in row) + f" | {exponent:.2f} | {shown} |")
    if args.conditioning:
        conditioning(args.rows // 10, args.rank)


if __name__ == "__main__":
    main()
