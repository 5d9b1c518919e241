"""Relevances of features: kernsel against scikit-learn's Gaussian process with a length scale for each feature.

    python benchmarks/relevance.py [--rows 2000] [--methods evidence "evidence, no polish" gaussian sklearn flkl]
    python benchmarks/relevance.py --zeros [--seeds 20]
    python benchmarks/relevance.py --flkl

The first is friedman1: 20 features of which 5 matter, unit noise, as many rows to test on as to learn from (2000 at
least). Each method has a process of its own; time is the wall clock of learning and fitting, without imports and
compilation, CPU time that of all its threads, memory the growth of the peak resident set. The test MSE is in units of
the target's variance: that of the noise alone is 0.042. scikit-learn's process maximises the same evidence with the
same kernel (``ConstantKernel * RBF(20 lengths) + WhiteKernel``).

``--zeros``: 60 features of which 10 matter, 300 rows; how many of the 50 of noise get a relevance of exactly 0, and of
the 10.

``--flkl``: one fit of first-level kernel learning at n = 1000, d = 60 against one fit of scikit-learn's process.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from common import Array, machine, table
from numpy.typing import NDArray
from rivals import peaks
from sklearn.datasets import make_friedman1
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_ridge import KernelRidge

import kernsel

Fitted = Callable[[Array], Array]


def friedman(n: int, m: int, seed: int = 0) -> tuple[Array, Array, Array, Array]:
    """Return n rows to learn from and m to test on, standardised by the former."""
    X, y = make_friedman1(n + m, n_features=20, noise=1.0, random_state=seed)
    return scaled(X, y, n)


def scaled(X: Array, y: Array, n: int) -> tuple[Array, Array, Array, Array]:
    """Split after n rows and standardise by these."""
    X, y = (X - X[:n].mean(axis=0)) / X[:n].std(axis=0), (y - y[:n].mean()) / y[:n].std()
    return X[:n], y[:n], X[n:], y[n:]


def sixty(n: int, m: int, seed: int = 0) -> tuple[Array, Array, Array, Array]:
    """Return rows of 60 features, of which the first 10 matter: five by a wave, five linearly."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + m, 60))
    signal = np.sin(1.5 * X[:, :5]).sum(axis=1) + 0.7 * X[:, 5:10].sum(axis=1)
    return scaled(X, signal + 0.5 * rng.normal(size=n + m), n)


def learnt(X: Array, y: Array, **options: Any) -> tuple[Fitted, Array]:
    """Learn relevances, and fit at their lambda."""
    learned = kernsel.learn_relevances(X, y, task="regression", standardize=False, **options)
    ridge = KernelRidge(kernel="precomputed", alpha=len(X) * learned.lam).fit(learned.kernel(X), y)
    return lambda Z: np.asarray(ridge.predict(learned.kernel(Z, X))), learned.relevances.to_numpy()


def isotropic(X: Array, y: Array) -> tuple[Fitted, Array]:
    """Select the width of one Gaussian kernel for all features."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kernsel.errors.SelectionWarning)
        result = kernsel.select(X, y, kernel="gaussian", task="regression", standardize=False)
    return lambda Z: np.asarray(result.model.predict(Z)), np.full(X.shape[1], result.conversions["gamma"])


def process(X: Array, y: Array) -> tuple[Fitted, Array]:
    """Fit scikit-learn's Gaussian process."""
    d = X.shape[1]
    kernel = ConstantKernel(1.0, (1e-3, 1e5)) * RBF(np.full(d, d**0.5), (1e-2, 1e5)) + WhiteKernel(0.1, (1e-6, 10.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of lengths on their bound, as those of noise are
        fitted = GaussianProcessRegressor(kernel, normalize_y=False).fit(X, y)
    return lambda Z: np.asarray(fitted.predict(Z)), 0.5 / fitted.kernel_.k1.k2.length_scale**2


METHODS: dict[str, Callable[[Array, Array], tuple[Fitted, Array]]] = {
    "evidence": learnt,
    "evidence, no polish": lambda X, y: learnt(X, y, polish=0),
    "flkl": lambda X, y: learnt(X, y, criterion="flkl"),
    "gaussian": isotropic,
    "sklearn": process,
}


def child(method: str, data: str, n: int) -> dict[str, Any]:
    """Run one method in this process."""
    make = friedman if data == "friedman" else sixty
    small = make(120, 10)[:2]
    if method != "sklearn":
        METHODS[method](*small)  # compiles, or loads what was compiled
    X, y, Z, target = make(n, max(n, 2000))
    base = peaks()[0]
    start, cpu = time.perf_counter(), time.process_time()
    predict, relevances = METHODS[method](X, y)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    memory = max(0.0, peaks()[0] - base)
    mse = float(np.mean((predict(Z) - target) ** 2))
    return {"seconds": seconds, "cpu": cpu, "memory": memory, "mse": mse, "relevances": relevances.tolist()}


def compare(methods: list[str], data: str, n: int) -> None:
    """Print the table of several methods on the same rows."""
    found = {}
    for method in methods:
        command = [sys.executable, __file__, "--child", method, "--data", data, "--rows", str(n)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found[method] = json.loads(done.stdout.splitlines()[-1])
        print(f"# {method}: {found[method]}", file=sys.stderr, flush=True)
    first = found[methods[0]]
    matter = 5 if data == "friedman" else 10
    lines = []
    for method, each in found.items():
        relevances = np.array(each["relevances"])
        noise = relevances[matter:]
        zero = "" if relevances.min() == relevances.max() else f"{(noise == 0).sum()} of {noise.size}"
        lines.append(
            [
                method,
                f"{each['seconds']:.3g} s",
                f"{each['seconds'] / first['seconds']:.3g}",
                f"{each['cpu']:.3g} s",
                f"{each['memory']:.0f} MiB",
                f"{each['memory'] / first['memory']:.2g}",
                f"{each['mse']:.4f}",
                zero,
            ]
        )
    head = [
        "method",
        "time",
        f"time / {methods[0]}",
        "CPU time",
        "peak memory",
        "memory ratio",
        "test MSE",
        "noise at exactly 0",
    ]
    print(f"\n{data}, n = {n}, d = {len(first['relevances'])}\n\n{table(head, lines)}", flush=True)


def zeros(seeds: int) -> None:
    """Print how many features of noise, and how many that matter, are exactly 0."""
    lines = []
    for method in ("evidence", "flkl"):
        counts: list[NDArray[np.bool_]] = []
        for seed in range(seeds):
            X, y, *_ = sixty(300, 10, seed)
            counts.append(METHODS[method](X, y)[1] == 0)
        at = np.array(counts)
        noise, signal = at[:, 10:].sum(axis=1), at[:, :10].sum(axis=1)
        spread = f"{np.median(noise):.0f} ({noise.min()}–{noise.max()})"
        lines.append([method, spread, f"{np.median(signal):.0f} ({signal.min()}–{signal.max()})"])
    print(f"\n60 features, 300 rows, {seeds} seeds: median (range) of features at exactly 0\n")
    print(table(["criterion", "of 50 of noise", "of 10 that matter"], lines), flush=True)


def main() -> None:
    """Print what is asked for."""
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("--rows", type=int, default=2000)
    usual = ["evidence", "evidence, no polish", "gaussian", "sklearn"]
    cli.add_argument("--methods", nargs="+", default=usual, choices=list(METHODS), metavar="METHOD")
    cli.add_argument("--zeros", action="store_true", help="count features of noise whose relevance is exactly 0")
    cli.add_argument("--seeds", type=int, default=20)
    cli.add_argument("--flkl", action="store_true", help="one fit of flkl against one of scikit-learn")
    cli.add_argument("--child", help=argparse.SUPPRESS)
    cli.add_argument("--data", default="friedman", help=argparse.SUPPRESS)
    args = cli.parse_args()
    if args.child:
        print(json.dumps(child(args.child, args.data, args.rows)))
        return
    print(machine(), flush=True)
    if args.zeros:
        zeros(args.seeds)
    elif args.flkl:
        compare(["flkl", "evidence", "sklearn"], "sixty", 1000)
    else:
        compare(args.methods, "friedman", args.rows)


if __name__ == "__main__":
    main()
