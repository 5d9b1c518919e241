"""Sparse rows against the same rows dense: kernel columns by density, whole selections, and reading files.

    python benchmarks/sparse.py [--skip-columns] [--select a9a.svmlight ...] [--text] [--read table.csv ...]

Kernel columns are those of all rows with 1000 landmarks, on one thread, in CPU time. A selection (krr and svm, three
widths and three lambda) and a reading run in processes of their own, which report their CPU time and peak memory; dense
rows are scaled the same, and centred, which no kernel of distances sees. ``--text`` selects on 20000 rows of 50000
features, of which Zipf's law gives each row about 100, with a linear signal: as a dense table they would take 8 GB.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
from common import machine, table
from scipy.sparse import csr_array, random_array

from kernsel.data import from_arrays, prepare, read_table
from kernsel.data.tables import SparseTable, column_of, without
from kernsel.numerics import gram, sparse
from kernsel.numerics.points import as_points
from kernsel.selection.carry_out import select_dataset

LANDMARKS = 1000
DENSITIES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4)
GRID = {"tau": [30.0, 120.0, 480.0], "lambda": [1e-6, 1e-5, 1e-4]}
TEXT_GRID = {"tau": [1.0, 10.0, 100.0], "lambda": [1e-6, 1e-5, 1e-4]}


def cpu(work: Callable[[], object], repeat: int = 3) -> float:
    """Return the CPU seconds of some work, at best."""
    spent = []
    for _ in range(repeat):
        start = time.process_time()
        work()
        spent.append(time.process_time() - start)
    return min(spent)


def columns(n: int, d: int, density: float) -> list[str]:
    """Return the times of kernel columns, sparse and dense, a pair, and their ratio."""
    X = as_points(random_array((n, d), density=density, rng=0))
    A = X.toarray()
    cells = [f"{d}", f"{density:g}"]
    for statistic, formula in (("sqdist", gram.exponential(0.01)), ("l1", gram.exponential(0.01))):
        times = [
            cpu(lambda of=of, S=S, statistic=statistic, formula=formula: of(statistic, S, S[:LANDMARKS], formula))
            for of, S in ((sparse.gram, X), (gram.gram, A))
        ]
        cells += [f"{1e9 * spent / (n * LANDMARKS):.2g}" for spent in times] + [f"{times[1] / times[0]:.2g}"]
    return cells


def text() -> tuple[csr_array, np.ndarray]:
    """Return rows like those of texts, of length 1, and a target that is linear in them."""
    n, d, words = 20_000, 50_000, 100
    rng = np.random.default_rng(0)
    frequency = 1 / (np.arange(d) + 10.0)
    terms = rng.choice(d, size=n * words, p=frequency / frequency.sum())
    X = as_points(csr_array((rng.random(n * words), (np.repeat(np.arange(n), words), terms)), shape=(n, d)))
    X = X / np.sqrt((X * X).sum(axis=1))[:, None]
    signal = X @ rng.normal(size=d)
    return csr_array(X), signal + 0.3 * signal.std() * rng.normal(size=n)


def select(source: str, form: str, learner: str) -> dict[str, Any]:
    """Return what a selection on a file, or on the text, came to."""
    if source == "text":
        X, y = text()
        dataset = from_arrays(X, y if learner == "krr" else np.sign(y))
    else:
        rows = read_table(source)
        assert isinstance(rows, SparseTable)
        X, y = without(rows, ["target"]).X, column_of(rows, "target")
        dataset = from_arrays(X.toarray(), y, standardize=True) if form == "dense" else prepare(rows)
    start = time.process_time()
    result = select_dataset(dataset, learner=learner, grid=TEXT_GRID if source == "text" else GRID)
    return {
        "CPU, s": f"{time.process_time() - start:.0f}",
        "held-out error": f"{result.best.error:.10f}",
        "choice": f"{result.best.kernel}, λ = {result.best.lam:.2g}, rank {result.data['rank']}",
    }


def read(source: str) -> dict[str, Any]:
    """Return what reading a file took."""
    before, start = peak(), time.process_time()
    frame = read_table(source)
    spent, after = time.process_time() - start, peak()
    dataset = prepare(frame)
    size = (12 * frame.X.nnz if isinstance(frame, SparseTable) else 8 * dataset.n * (dataset.d + 1)) / 2**20
    return {
        "rows × features": f"{dataset.n} × {dataset.d}",
        "numbers, MiB": f"{size:.0f}",
        "reading, MiB": f"{after - before:.0f}",
        "and encoding, MiB": f"{peak() - before:.0f}",
        "reading, CPU s": f"{spent:.1f}",
    }


def peak() -> float:
    """Return the peak memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def child(*arguments: str) -> dict[str, str]:
    """Run this script for one line of a table, in a process of its own."""
    call = [sys.executable, __file__, "--child", *arguments]
    found: dict[str, str] = json.loads(subprocess.run(call, check=True, capture_output=True, text=True).stdout)
    return found


def main() -> None:
    """Print the tables."""
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("--skip-columns", action="store_true")
    cli.add_argument("--select", nargs="+", default=[], metavar="FILE", help="svmlight files to select on")
    cli.add_argument("--text", action="store_true", help="select on rows like those of texts")
    cli.add_argument("--learners", nargs="+", default=["krr", "svm"])
    cli.add_argument("--read", nargs="+", default=[], metavar="FILE", help="tables to read")
    cli.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    args = cli.parse_args()
    if args.child:
        warnings.simplefilter("ignore")
        what, *rest = args.child
        found = read(*rest) if what == "read" else select(*rest)
        print(json.dumps(found | {"peak, MiB": f"{peak():.0f}"}))
        return
    print(machine(), flush=True)
    if not args.skip_columns:
        numba.config.NUMBA_NUM_THREADS = 1
        head = ["features", "density"]
        head += [
            f"{name}, {form}" for name in ("gaussian", "laplacian") for form in ("sparse, ns", "dense, ns", "ratio")
        ]
        print(table(head, [columns(2000, d, density) for d in (123, 1000) for density in DENSITIES]), flush=True)
    jobs = [(source, form) for source in args.select for form in ("sparse", "dense")] + [("text", "sparse")] * args.text
    for learner in args.learners:
        for source, form in jobs:
            found = child("select", source, form, learner)
            print(f"# {Path(source).name}, {form}, {learner}: {found}", flush=True)
    for source in args.read:
        print(f"# {Path(source).name}: {child('read', source)}", flush=True)


if __name__ == "__main__":
    main()
