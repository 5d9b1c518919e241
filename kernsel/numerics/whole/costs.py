"""What the whole kernel costs: operations, memory and seconds of each step, before it is begun.

With n rows of d features, c columns (outputs, and a bias, of the fit and of each fold) and m rows a fold::

    step      pairs      products                         in
    matrix    n^2 / 2    d a pair                         float64
    factor               n^3 / 6                          the factor's precision
    inverse              n^3 / 6                          the factor's precision
    blocks               sum m^2 (n - start) / 2 + m^3/6  the factor's precision
    pass      n^2 / 2    (d + 2 c) a pair                 float64, beside 2 triangles read, 4 for folds

A product is a multiplication and an addition; a pair is one evaluation of the kernel's function, mostly an exponential.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernsel.numerics.gram import exponential
from kernsel.numerics.runtime.threads import one_blas_thread, threads
from kernsel.numerics.whole.tiles import BLOCK, FormulaMatrix, Span, rounds, share_jobs, spans

ROUTES = ("fit", "folds", "blocks", "one fold")
"""No row is held out; every fold by a column of its own; every fold by a block of the inverse; one fold."""

PASSES = 8
"""Passes of conjugate gradients that are expected: 3 to 10 where float32 bears the ridge, up to 100 elsewhere."""


BEYOND_MEMORY = 2000
"""Columns of a preconditioner of low rank where memory doesn't hold a factor."""

MORE_PASSES = 30
"""Passes that are expected with it: 6 to 40 on rough kernels."""


@dataclass(frozen=True)
class Rates:
    """What the machine does a second, on all threads; build it by :func:`measure_rates`."""

    products32: float
    products64: float
    pairs: float
    """Evaluations of a kernel, float64."""
    bytes: float
    """Read from memory."""


@dataclass(frozen=True)
class Work:
    """The work of one step."""

    name: str
    products32: float = 0.0
    products64: float = 0.0
    pairs: float = 0.0
    bytes: float = 0.0
    """Read from memory by products of a matrix and few columns."""

    def seconds(self, rates: Rates) -> float:
        """Return the time at given rates."""
        return (
            self.products32 / rates.products32
            + self.products64 / rates.products64
            + self.pairs / rates.pairs
            + self.bytes / rates.bytes
        )


@dataclass(frozen=True)
class Costs:
    """The steps of a route, and the memory that they take at most, beside the points."""

    steps: tuple[Work, ...]
    memory: int

    def seconds(self, rates: Rates) -> float:
        """Return the time of all steps at given rates."""
        return sum(step.seconds(rates) for step in self.steps)

    def describe(self, rates: Rates) -> str:
        """Return time and memory as a person would say them, such as ``about 2 minutes, 3.1 GB``."""
        return f"{spoken(self.seconds(rates))}, {self.memory / 1e9:.1f} GB"


def spoken(seconds: float) -> str:
    """Return a time as a person would say it."""
    if seconds < 90:
        return "about 1 second" if seconds < 1.5 else f"about {seconds:.0f} seconds"
    if seconds < 5400:
        return f"about {seconds / 60:.0f} minutes"
    return f"about {seconds / 3600:.1f} hours"


def triangle_bytes(n: int, itemsize: int, size: int = BLOCK) -> int:
    """Return the memory of a packed triangle: see ``whole_triangle.Triangle``."""
    return itemsize * sum((hi - lo) * hi for lo, hi in spans(n, size))


def costs(
    n: int,
    d: int,
    outputs: int = 1,
    bias: bool = False,
    folds: Sequence[Span] = (),
    route: str = "fit",
    passes: int | None = None,
    rank: int | None = None,
    itemsize: int = 4,
    columns: int = 128,
) -> Costs:
    """Return what a fit and its held-out outputs cost.

    Parameters
    ----------
    folds : sequence of (lo, hi)
    route : {"fit", "folds", "blocks", "one fold"}
        The fit alone, or with held-out outputs by one of the methods of ``whole.WholeKernel``: ``hold_out``,
        ``hold_out_by_blocks``, ``hold_out_one`` (of the largest fold).
    passes : int, optional
        Expected for each block of columns: ``PASSES``, or ``MORE_PASSES`` with a low rank, unless given.
    rank : int, optional
        Of a low-rank preconditioner, in place of the factor: the route is "fit" or "folds".
    itemsize : {4, 8}
        Bytes of a number of the factor.
    columns : int
        Of one block of conjugate gradients, at most.
    """
    each, t = outputs + bias, len(folds)
    passes = passes or (MORE_PASSES if rank else PASSES)
    of_folds = {"fit": 0, "folds": t * each, "blocks": 0, "one fold": 0}[route]
    triangle = triangle_bytes(n, itemsize)
    memory, steps = 0, []

    def factor(rows: int, suffix: str = "") -> None:
        steps.append(Work(f"matrix{suffix}", products64=rows**2 * d / 2, pairs=rows**2 / 2))
        steps.append(_dense(f"factor{suffix}", rows**3 / 6, itemsize))

    def iterate(name: str, rows: int, width: int, triangles: int) -> None:
        if width:
            blocks = -(-width // columns)
            read = rows * rank * 8 * 2 if rank else triangles * triangle_bytes(rows, itemsize)
            applied = 2 * rows * (rank or rows) * width
            steps.append(
                Work(
                    name,
                    products64=passes * (rows**2 * (d * blocks / 2 + width) + (applied if rank else 0)),
                    products32=0 if rank else passes * applied * triangles / 4,
                    pairs=passes * blocks * rows**2 / 2,
                    bytes=passes * blocks * read,
                )
            )

    if rank:
        memory += 8 * n * rank + 8 * rank**2 * (2 + t)
        steps.append(Work("low rank", products64=n * rank * (d + 1.0 * rank), pairs=n * rank))
        if of_folds:
            steps.append(Work("blocks", products64=n * rank**2 / 2 + t * rank**3 / 6))
    else:
        memory += triangle + n * BLOCK * itemsize
        factor(n)
        if route in ("folds", "blocks") and folds:
            steps.append(_dense("inverse", n**3 / 6, itemsize))
            kept = max if route == "blocks" else sum
            memory += kept(triangle_bytes(hi - lo, itemsize) for lo, hi in folds) + itemsize * n * BLOCK
            work = sum((hi - lo) ** 2 * (n - lo) / 2 + (hi - lo) ** 3 / 6 for lo, hi in folds)
            steps.append(_dense("blocks", work, itemsize))
    if of_folds:
        iterate("fit and held out", n, each + of_folds, 4)
    else:
        iterate("fit", n, each, 2)
    if route == "blocks" and folds:
        iterate("folds checked", n, min(8, t) * each, 4)
        memory += 16 * max(hi - lo for lo, hi in folds) ** 2
    if route == "one fold" and folds:
        rows = n - max(hi - lo for lo, hi in folds)
        factor(rows, " without a fold")
        iterate("fit without a fold", rows, each, 2)
        memory += triangle_bytes(rows, itemsize)
    width = min(each + of_folds, max(each, columns))
    memory += 16 * n * of_folds
    memory += 8 * n * (8 * width + 2 * d) + threads() * 8 * 2 * BLOCK**2
    return Costs(tuple(steps), int(memory))


def _dense(name: str, products: float, itemsize: int) -> Work:
    return Work(name, products32=products) if itemsize == 4 else Work(name, products64=products)


def measure_rates(d: int = 10) -> Rates:
    """Measure the rates that costs are divided by, in some 0.2 s: products and a kernel in blocks as here.

    Parameters
    ----------
    d : int
        Features, of which the time of a pair is taken free.
    """
    rng = np.random.default_rng(0)
    workers = threads()
    with one_blas_thread():
        rates = []
        for dtype in (np.float32, np.float64):
            A = [rng.normal(size=(BLOCK, BLOCK)).astype(dtype) for _ in range(workers)]

            def multiply(i: int, A: list[NDArray[Any]] = A) -> None:
                for _ in range(8):
                    A[i] @ A[i]

            rates.append(workers * 8 * BLOCK**3 / _fastest(multiply, _each(workers)))
        matrix = FormulaMatrix("sqdist", rng.normal(size=(4 * BLOCK, d)), exponential(0.1, root=True))

        def evaluate(i: int, j: int) -> None:
            rows = spans(matrix.n)
            matrix.block(rows[i], rows[j])

        games = [pair for games in rounds(4) for pair in games]
        seconds = _fastest(evaluate, games)
        pairs = len(games) * BLOCK**2
        seconds = max(seconds - pairs * d / rates[1], 0.1 * seconds)
        large = [np.ones((BLOCK, 50 * BLOCK), np.float32) for _ in range(workers)]
        x = np.ones(50 * BLOCK, np.float32)

        def read(i: int) -> None:
            large[i] @ x

        reading = _fastest(read, _each(workers))
    return Rates(rates[0], rates[1], pairs / seconds, sum(part.nbytes for part in large) / reading)


def _each(workers: int) -> list[tuple[int]]:
    return [(i,) for i in range(workers)]


def _fastest(work: Callable[..., None], jobs: Sequence[tuple[object, ...]], repeats: int = 3) -> float:
    """Return the shortest time of some runs of all jobs."""
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        share_jobs(work, jobs)
        found.append(time.perf_counter() - start)
    return min(found)
