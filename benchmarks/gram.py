"""The Gram matrix of a Gaussian kernel as a share of its floor, in one run.

    python benchmarks/gram.py [--rows 5000] [--columns 20] [--repeat 9]

The floor of a symmetric matrix: n(n+1)/2 pairs, each with ``d`` multiply-adds at the rate of a large matrix product,
and one exponential at the rate of the faster of NumPy's and kernsel's loop on data that stay in the cache, both on all
cores. A new matrix of n² numbers must also be written to memory that the system hands out page by page: that is timed
by itself and is no part of the floor. Beside it scikit-learn's rbf_kernel. Medians of several rounds, in turn.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from common import Array, machine, table
from sklearn.metrics.pairwise import rbf_kernel

from kernsel.numerics import gram
from kernsel.numerics.jit import threads

PRODUCT = 2000  # rows of the matrix product whose rate is the peak
CACHED = 16_384  # numbers of which the exponentials are timed: 128 kB
ROUNDS = 100


def timed(work: Callable[[], object]) -> float:
    """Return the seconds of one run."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def on_all_cores(work: Callable[[Array, Array], object], sign: float) -> float:
    """Return exponentials per second of a loop over data of a sign that stay in the cache, on every core at once."""
    arrays = [(sign * np.linspace(0.01, 20.0, CACHED), np.empty(CACHED)) for _ in range(threads())]

    def repeated(pair: tuple[Array, Array]) -> None:
        for _ in range(ROUNDS):
            work(*pair)

    with ThreadPoolExecutor(threads()) as pool:
        seconds = timed(lambda: list(pool.map(repeated, arrays)))
    return len(arrays) * ROUNDS * CACHED / seconds


def main() -> None:
    """Print one table."""
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("--rows", type=int, default=5000)
    cli.add_argument("--columns", type=int, default=20)
    cli.add_argument("--repeat", type=int, default=9)
    args = cli.parse_args()
    n, d = args.rows, args.columns
    X = np.random.default_rng(0).normal(size=(n, d))
    A = np.random.default_rng(1).normal(size=(PRODUCT, PRODUCT))
    formula = gram.exponential(1 / (2 * d))
    loop = gram._map.code

    def ours(s: Array, out: Array) -> None:
        loop(s, *gram.exponential(1.0), 0, 1, out)

    def handed_out() -> None:
        np.empty((n, n)).fill(1.0)

    gram.gram("sqdist", X[:300], None, formula)
    on_all_cores(ours, 1.0)
    rounds: dict[str, list[float]] = {}
    for _ in range(args.repeat):
        for name, value in {
            "product": 2 * PRODUCT**3 / timed(lambda: A @ A),
            "numpy": on_all_cores(lambda s, out: np.exp(s, out=out), -1.0),
            "kernsel": on_all_cores(ours, 1.0),
            "memory": timed(handed_out),
            "gram": timed(lambda: gram.gram("sqdist", X, None, formula)),
            "rectangle": timed(lambda: gram.gram("sqdist", X, X.copy(), formula)),
            "rival": timed(lambda: rbf_kernel(X, gamma=1 / (2 * d))),
        }.items():
            rounds.setdefault(name, []).append(value)
    at = {name: statistics.median(values) for name, values in rounds.items()}
    exponentials = max(at["numpy"], at["kernsel"])
    pairs = n * (n + 1) / 2
    floor = 2 * pairs * d / at["product"] + pairs / exponentials
    full = 2 * n * n * d / at["product"] + n * n / exponentials
    print(machine())
    print(
        f"n = {n}, d = {d}; matrix product {at['product'] / 1e9:.1f} GFLOP/s; exponentials {at['numpy'] / 1e9:.2f} G/s "
        f"(NumPy), {at['kernsel'] / 1e9:.2f} G/s (kernsel)\n"
    )
    lines = [
        [name, f"{1000 * seconds:.1f} ms", f"{of / seconds:.2f}"]
        for name, seconds, of in (
            ("floor: products", 2 * pairs * d / at["product"], floor),
            ("floor: exponentials", pairs / exponentials, floor),
            ("new memory for n² numbers, written once", at["memory"], floor),
            ("floor and memory", floor + at["memory"], floor),
            ("kernsel, symmetric", at["gram"], floor),
            ("kernsel, all n² pairs", at["rectangle"], full),
            ("scikit-learn rbf_kernel", at["rival"], floor),
        )
    ]
    print(table(["what", "time", "floor / time"], lines))
    print(f"\nkernsel, with the memory in the floor: {(floor + at['memory']) / at['gram']:.2f}")


if __name__ == "__main__":
    main()
