"""The whole kernel on tens of thousands of rows: rates beside BLAS's, passes by ridge, time, memory and error.

    python benchmarks/whole.py [--rows 8000] [--csv FILE] [--theta 1,0.5,...] [--scale 1] [--ridge 0.03] [--folds 5]
                               [--skip rates ridges fit]

The data are friedman1 with unit noise (10 features), or those of a CSV file (a header, numbers, the target last), in an
order drawn at random and standardised; the rows after the first ``--rows``, at most a quarter as many, are for the
test. The kernel is ``exp(-sqrt(scale sum theta_r (x_r - z_r)^2))``.

* rates: GFLOP/s of factor and inverse of a packed triangle, in float32 and float64, beside BLAS's matrix product and
  LAPACK's Cholesky factorisation, plain and packed (RFP), all threads, in one run; medians of three.
* ridges: passes, and the largest difference to a direct solve in float64 (of at most 8000 rows).
* fit: each stage in a process of its own, with its peak memory, the stages' seconds and those that the table of costs
  foretold; predictions a second; the error at the rows left out, and at the rows of the test.
"""

from __future__ import annotations

import argparse
import csv
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
from common import Array, machine, table
from scipy.linalg import lapack
from sklearn.datasets import make_friedman1

from kernsel.numerics import gram
from kernsel.numerics.runtime.threads import one_blas_thread
from kernsel.numerics.whole import costs as whole_costs
from kernsel.numerics.whole.preconditioners import Factored, Refused, fill
from kernsel.numerics.whole.solver import WholeKernel, predict
from kernsel.numerics.whole.tiles import FormulaMatrix
from kernsel.numerics.whole.triangle import Triangle

STAGES = ("fit", "folds", "blocks", "one fold")
DIRECT = 8000


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of one run, and its result."""
    start = time.perf_counter()
    found = work()
    return time.perf_counter() - start, found


def data(args: argparse.Namespace) -> tuple[Array, Array, Array, Array]:
    """Return standardised rows and targets, and those for the test."""
    if args.csv:
        with open(args.csv, newline="") as lines:
            numbers = np.array(list(csv.reader(lines))[1:], dtype=np.float64)
        X, y = numbers[:, :-1], numbers[:, -1]
    else:
        X, y = make_friedman1(args.rows + args.rows // 4, n_features=10, noise=1.0, random_state=0)
    order = np.random.default_rng(args.seed).permutation(len(X))
    X, y, n = X[order], y[order], min(args.rows, len(X))
    X = (X - X[:n].mean(axis=0)) / X[:n].std(axis=0)
    y = (y - y[:n].mean()) / y[:n].std()
    theta = np.ones(X.shape[1]) if args.theta is None else np.array(args.theta.split(","), dtype=np.float64)
    X = np.ascontiguousarray((X * np.sqrt(args.scale * theta))[:, theta > 0])
    test = slice(n, n + n // 4)
    return X[:n], y[:n, None], X[test], y[test, None]


def kernel_of(X: Array, y: Array) -> WholeKernel:
    """Return the whole exponential kernel of some rows."""
    matrix = FormulaMatrix("sqdist", X, gram.exponential(1.0, root=True))
    return WholeKernel(matrix, y, np.ones(len(y)), bias=True)


def folds_of(n: int, t: int) -> list[tuple[int, int]]:
    """Return the bounds of t folds."""
    return [(i * n // t, (i + 1) * n // t) for i in range(t)]


def show_rates(there: WholeKernel) -> None:
    """Print the rates of dense work, and of a pass."""
    n = there.matrix.n
    lines = []
    for dtype, potrf, ttf, pftrf in (
        (np.float32, lapack.spotrf, lapack.strttf, lapack.spftrf),
        (np.float64, lapack.dpotrf, lapack.dtrttf, lapack.dpftrf),
    ):
        rounds: dict[str, list[float]] = {}
        for _ in range(3):
            A = np.random.default_rng(0).normal(size=(4000, 4000)).astype(dtype)
            spent, _ = timed(lambda A=A: A @ A)
            rounds.setdefault("BLAS, product of 4000 rows", []).append(2 * 4000**3 / spent)
            triangle = Triangle(n, dtype)
            with one_blas_thread():
                fill(there.matrix, there.root, triangle)
                for i in range(len(triangle.bounds)):
                    triangle.tile(i, i)[np.diag_indices(len(triangle.rows[i]))] += 1.0
                whole = np.asfortranarray(triangle.dense())
                spent, _ = timed(triangle.factorise)
                rounds.setdefault("factor, packed by blocks of rows", []).append(n**3 / 3 / spent)
                spent, _ = timed(triangle.invert)
                rounds.setdefault("inverse of the factor", []).append(n**3 / 3 / spent)
            del triangle
            packed, _ = ttf(whole, uplo="L")
            spent, _ = timed(lambda a=whole, f=potrf: f(a, lower=1, overwrite_a=1, clean=0))
            rounds.setdefault("LAPACK potrf, square", []).append(n**3 / 3 / spent)
            del whole
            spent, _ = timed(lambda a=packed, f=pftrf: f(n, a, uplo="L", overwrite_a=1))
            rounds.setdefault("LAPACK pftrf, RFP", []).append(n**3 / 3 / spent)
        peak = statistics.median(rounds["BLAS, product of 4000 rows"])
        for name, found in rounds.items():
            rate = statistics.median(found)
            lines.append([np.dtype(dtype).name, name, f"{rate / 1e9:.0f}", f"{rate / peak:.2f}"])
    print(table(["precision", f"what (n = {n})", "GFLOP/s", "of the product's"], lines), "\n")
    lines = []
    for columns in (1, 6, 24):
        V = np.ones((n, columns))
        spent = statistics.median(timed(lambda V=V: there.matrix.times(V))[0] for _ in range(3))
        lines.append([str(columns), f"{spent:.2f} s", f"{n * n / 2 / spent / 1e6:.0f} M"])
    print(table(["columns", "a pass", "pairs a second"], lines), "\n")


def show_ridges(there: WholeKernel) -> None:
    """Print passes and errors by ridge, for a rough and a smooth kernel."""
    n = min(DIRECT, there.matrix.n)
    X, y = there.matrix.points(np.arange(n)), there.Y[:n]
    lines = []
    for name, formula in (
        ("exponential", gram.exponential(1.0, root=True)),
        ("matern32", gram.exponential(1.0, 1.0, root=True)),
        ("gaussian", gram.exponential(0.3)),
    ):
        some = WholeKernel(FormulaMatrix("sqdist", X, formula), y, np.ones(n))
        K = gram.gram("sqdist", X, None, formula)
        for ridge in 10.0 ** np.arange(-6, 2):
            A = K.copy()
            A[np.diag_indices(n)] += ridge
            direct = K @ scipy.linalg.solve(A, y, assume_a="pos", overwrite_a=True)
            line = [name, f"{ridge:.0e}"]
            for dtype in (np.float32, np.float64):
                spent, factored = timed(lambda s=some, r=ridge, t=dtype: s.factorise(r / n, dtype=t))
                if isinstance(factored, Refused):
                    line += ["refused", "", "", f"{spent:.1f}"]
                    continue
                more, fit = timed(lambda s=some, f=factored, r=ridge: s.fit(f, r / n))
                if isinstance(fit, Refused):
                    line += ["refused", f"{factored.jitter:.0e}", "", f"{spent:.1f} + {more:.1f}"]
                    continue
                off = f"{np.abs(fit.f - direct).max():.0e}"
                line += [str(fit.passes), f"{factored.jitter:.0e}", off, f"{spent:.1f} + {more:.1f}"]
            lines.append(line)
    head = ["kernel", "ridge", *2 * ["passes", "jitter", "off", "s"]]
    print(f"n = {n}; factor in float32, then in float64; refused: passes end above a residual of 1e-9\n")
    print(table(head, lines), "\n")


def run_stage(args: argparse.Namespace) -> None:
    """Run one stage and print what came of it as JSON."""
    X, y, X_test, y_test = data(args)
    n, lam = len(X), args.ridge / len(X)
    there = kernel_of(X[:300], y[:300])
    there.fit(there.factorise(lam), lam)  # loads the compiled loops
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    there = kernel_of(X, y)
    folds = folds_of(n, n) if args.stage == "blocks" else folds_of(n, args.folds)
    seconds, said = {}, {}

    def keep(name: str, work: Callable[[], Any]) -> Any:
        seconds[name], found = timed(work)
        if isinstance(found, Refused):
            sys.exit(found.reason)
        return found

    if args.stage == "one fold":
        held = keep("held out", lambda: there.hold_out_one(lam, folds[-1]))
    else:
        factored = keep("factor", lambda: there.factorise(lam, () if args.stage == "fit" else folds))
        assert isinstance(factored, Factored)
        said["jitter"] = factored.jitter
        if args.stage == "blocks":
            held = keep("held out", lambda: there.hold_out_by_blocks(factored, lam, folds))
        elif args.stage == "folds":
            prepared = keep("inverse", lambda: factored.hold_out(folds))
            held = keep("held out", lambda: there.hold_out(prepared, lam, folds))
        else:
            fit = keep("fit", lambda: there.fit(factored, lam))
            outputs = keep("predictions", lambda: predict(there.matrix, X_test, fit))
            said |= {"passes": fit.passes, "residual": fit.residual}
            said["test"] = float(np.mean((outputs - y_test) ** 2) / y_test.var())
            said["rows a second"] = len(X_test) / seconds["predictions"]
    if args.stage != "fit":
        rows = np.concatenate([np.arange(lo, hi) for lo, hi in held.folds])
        said |= {"passes": held.passes, "error": held.error}
        said["held out"] = float(np.mean((held.outputs[rows] - y[rows]) ** 2))
    taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - base
    print(json.dumps({"seconds": seconds, "taken": taken, **said}))


def show_fit(args: argparse.Namespace, n: int, d: int) -> None:
    """Print time, memory and error of each stage beside the table of costs."""
    rates = whole_costs.measure_rates(d)
    lines = []
    for stage in STAGES:
        call = [sys.executable, __file__, "--stage", stage, *sys.argv[1:]]
        done = subprocess.run(call, capture_output=True, text=True)
        if done.returncode:
            lines.append([stage, (done.stderr.strip().splitlines() or ["failed"])[-1], "", "", "", ""])
            continue
        found = json.loads(done.stdout.splitlines()[-1])
        folds = folds_of(n, n) if stage == "blocks" else folds_of(n, args.folds)
        told = whole_costs.costs(n, d, bias=True, folds=folds, route=stage, passes=found["passes"])
        rest = {name: value for name, value in found.items() if name not in ("seconds", "taken")}
        lines.append(
            [
                stage,
                ", ".join(f"{name} {value:.1f}" for name, value in found["seconds"].items()),
                f"{told.seconds(rates):.1f}",
                f"{found['taken'] / 1e9:.2f}",
                f"{told.memory / 1e9:.2f}",
                ", ".join(f"{name} {value:.3g}" for name, value in rest.items()),
            ]
        )
    print(f"n = {n}, d = {d}, ridge {args.ridge}, {args.folds} folds; rates {rates}\n")
    print(table(["stage", "seconds", "foretold", "GB", "foretold", "what came of it"], lines))


def main() -> None:
    """Print the tables."""
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("--rows", type=int, default=8000)
    cli.add_argument("--csv")
    cli.add_argument("--theta")
    cli.add_argument("--scale", type=float, default=1.0)
    cli.add_argument("--ridge", type=float, default=0.03)
    cli.add_argument("--folds", type=int, default=5)
    cli.add_argument("--seed", type=int, default=0)
    cli.add_argument("--skip", nargs="*", default=[], choices=["rates", "ridges", "fit"])
    cli.add_argument("--stage", choices=STAGES, help=argparse.SUPPRESS)
    args = cli.parse_args()
    if args.stage:
        run_stage(args)
        return
    X, y, *_ = data(args)
    there = kernel_of(X, y)
    print(machine(), "\n")
    if "rates" not in args.skip:
        show_rates(there)
    if "ridges" not in args.skip:
        show_ridges(there)
    if "fit" not in args.skip:
        show_fit(args, *X.shape)


if __name__ == "__main__":
    main()
