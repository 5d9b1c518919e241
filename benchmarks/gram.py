"""The Gram matrix of a Gaussian kernel as a share of its floor, in one run.

    python benchmarks/gram.py [--rows 5000] [--columns 20] [--repeat 9]

The floor of a symmetric matrix: n(n+1)/2 pairs, each with ``d`` multiply-adds at the rate of a large matrix product,
and one exponential at the rate of the faster of NumPy's and kernsel's loop on data that stay in the cache, all on every
core. On top of that the n² numbers must be written, to memory that the system hands out page by page: that is timed by
itself, on all cores as well, and the share is given with and without it. Beside it scikit-learn's rbf_kernel. Medians
of several rounds, in turn.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
from common import Array, machine, table
from sklearn.metrics.pairwise import rbf_kernel

from kernsel.numerics import gram
from kernsel.numerics.runtime.threads import threads

PRODUCT = 2000  # rows of the matrix product whose rate is the peak
CACHED = 16_384  # numbers of which the exponentials are timed: 128 kB
ROUNDS = 500


def timed(work: Callable[[], object]) -> float:
    """Return the seconds of one run."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


@numba.njit(nogil=True)
def loop(s: Array, out: Array, formula: gram.Formula) -> None:
    """Take the exponentials of s many times, in one call: threads that come back to Python wait for each other."""
    for _ in range(ROUNDS):
        for i in range(s.size):
            out[i] = s[i]
        gram.finish(out, formula)


def kernsels(s: Array, out: Array) -> None:
    """Take the exponentials of -s many times by kernsel's loop."""
    loop(s, out, gram.exponential(1.0))


def numpys(s: Array, out: Array) -> None:
    """Take them by NumPy."""
    for _ in range(ROUNDS):
        np.exp(-s, out=out)


def on_all_cores(work: Callable[[int], object]) -> float:
    """Return the seconds in which every core does its share of some work."""
    with ThreadPoolExecutor(threads()) as pool:
        list(pool.map(abs, range(threads())))  # starts the threads
        return timed(lambda: list(pool.map(work, range(threads()))))


def rate(work: Callable[[Array, Array], None]) -> float:
    """Return exponentials per second of a loop over data that stay in the cache, on every core at once."""
    arrays = [(np.linspace(0.01, 20.0, CACHED), np.empty(CACHED)) for _ in range(threads())]
    return len(arrays) * ROUNDS * CACHED / on_all_cores(lambda core: work(*arrays[core]))


def peak_rates() -> dict[str, float]:
    """Return what the machine reaches a second: operations of a matrix product, and exponentials by either loop."""
    A = np.random.default_rng(1).normal(size=(PRODUCT, PRODUCT))
    return {"product": 2 * PRODUCT**3 / timed(lambda: A @ A), "numpy": rate(numpys), "kernsel": rate(kernsels)}


def floor_of(pairs: float, d: int, rates: dict[str, float]) -> tuple[float, float]:
    """Return the seconds that products and exponentials of so many pairs take at these rates."""
    return 2 * pairs * d / rates["product"], pairs / max(rates["numpy"], rates["kernsel"])


def write(K: Array) -> float:
    """Return the seconds in which all cores write a matrix."""
    parts = np.array_split(K, threads())
    return on_all_cores(lambda core: parts[core].fill(1.0))


def main() -> None:
    """Print one table."""
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("--rows", type=int, default=5000)
    cli.add_argument("--columns", type=int, default=20)
    cli.add_argument("--repeat", type=int, default=9)
    args = cli.parse_args()
    n, d = args.rows, args.columns
    X = np.random.default_rng(0).normal(size=(n, d))
    formula = gram.exponential(1 / (2 * d))
    there = np.ones((n, n))
    gram.gram("sqdist", X[:300], None, formula)
    peak_rates()  # compiles
    rounds: dict[str, list[float]] = {}
    for _ in range(args.repeat):
        for name, value in {
            **peak_rates(),
            "written": write(there),
            "handed out": write(np.empty((n, n))),
            "gram": timed(lambda: gram.gram("sqdist", X, None, formula)),
            "rectangle": timed(lambda: gram.gram("sqdist", X, X.copy(), formula)),
            "rival": timed(lambda: rbf_kernel(X, gamma=1 / (2 * d))),
        }.items():
            rounds.setdefault(name, []).append(value)
    at = {name: statistics.median(values) for name, values in rounds.items()}
    pairs = n * (n + 1) / 2
    products, exponentials = floor_of(pairs, d, at)
    floor, full = products + exponentials, sum(floor_of(n * n, d, at))
    print(machine())
    print(
        f"n = {n}, d = {d}; matrix product {at['product'] / 1e9:.1f} GFLOP/s; exponentials {at['numpy'] / 1e9:.2f} G/s "
        f"(NumPy), {at['kernsel'] / 1e9:.2f} G/s (kernsel)\n"
    )
    lines = [
        [name, f"{1000 * seconds:.1f} ms", f"{of / seconds:.2f}", f"{(of + at['handed out']) / seconds:.2f}"]
        for name, seconds, of in (
            ("floor: products", products, floor),
            ("floor: exponentials", exponentials, floor),
            ("n² numbers written to memory that is there", at["written"], floor),
            ("n² numbers written to new memory", at["handed out"], floor),
            ("kernsel, symmetric", at["gram"], floor),
            ("kernsel, all n² pairs", at["rectangle"], full),
            ("scikit-learn rbf_kernel", at["rival"], floor),
        )
    ]
    print(table(["what", "time", "floor / time", "(floor + writing new memory) / time"], lines))


if __name__ == "__main__":
    main()
