"""What a selection of the square loss on features in blocks of rows costs, stage by stage, before it is begun.

With n rows of d features, k outputs, rank r, t folds in m segments, C kernels and L lambdas, for each kernel::

    stage      pairs     products                    in memory
    read       .         .                           2 n (d + k): the table, and what it is encoded to
    landmarks  10 r^2    10 r^2 (d + r), slow ones   10 r (d + 3 r)
    products   n r       n r (d + h) + n r^2 / 2     m r^2 sums, blocks of features
               .         + 2 m r^3                   (finishing them)
    solutions  .         t L r^3 / 6, slow ones      t L k r
    held out   n r       n r (d + h + k L)           n k L outputs, or a piece of them
    refit      n r       2 t r^3 / 6                 once, for the choice
               .         + n r (d + 2 h + k)

Each thread is on a kernel of its own. Beside a stage there are the rows, once where they are large and twice where they
are small, and some vectors of n numbers: targets, folds, places, outputs.

Here h is the number of pivots that are eliminated from every block: see ``blocks.features``. Workers share what goes
over rows; their sums are merged in a tree. A product is a multiplication and an addition; a pair is one evaluation of
the kernel's function, mostly an exponential.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2
from typing import NamedTuple

from kernsel.numerics.blocks.features import BLOCK_BYTES
from kernsel.numerics.runtime.threads import threads
from kernsel.numerics.whole.costs import Rates, Work

SAMPLE = 10
"""Rows for each landmark, drawn at random, among which the landmarks are chosen."""

SEGMENTS = 8
"""Segments at least, for threads to share: see ``representation.stream``."""

PIVOTS = 1 / 16
"""Share of the pivots that are eliminated from blocks, as a rule: none of narrow kernels, an eighth of wide ones."""

LANDMARKS = 0.16
"""Of the rate of products: what the choice of landmarks reaches, whose matrices are multiplied by few columns."""

SOLUTIONS = 0.3
"""Of the rate of products: what factors of Cholesky in a compiled loop reach (0.2 at rank 500, 0.4 at 1000)."""

TRAFFIC = 4
"""How often a block of features goes to or comes from memory where pivots are eliminated from it."""

HELD_BYTES = 2**26
"""Held-out outputs of a path that are larger than this are computed, and summed up, in pieces: see ``paths``."""

PIECE_BYTES = 2**22
"""The outputs of a piece take about so much."""

COPIED_BYTES = 2**30
"""Rows that take more than this are left in the order of the data set, and put in that of the folds block by block."""

NETWORK = 1e9
"""Bytes a second between two workers: ten gigabit."""

LIBRARIES = 4e8
"""Bytes that Python takes with its libraries and compiled loops."""

VECTORS = 13
"""Numbers a row beside its features: targets and places as given and sorted, folds, copies, outputs of the choice."""

TEMPORARY = 3
"""Columns of numbers that are there while one of a table is encoded."""

OUTPUTS = 4
"""Arrays of a kernel's held-out outputs at a time: themselves, clipped, their losses, and those of the best so far."""


class Sizes(NamedTuple):
    """What a selection is of."""

    rows: int
    features: int
    outputs: int
    rank: int
    folds: int
    kernels: int
    lambdas: int

    @property
    def segments(self) -> int:
        """Segments of rows, whose products are held: as many for every fold."""
        return self.folds * ceil(SEGMENTS / self.folds)


@dataclass(frozen=True)
class Stage:
    """One stage for all kernels.

    Parameters
    ----------
    memory : float
        Bytes on one worker, beside the rows.
    shared : bool
        Whether workers share it.
    sent : float
        Bytes that go over the network, on the longest way.
    reached : float
        Share of the rates that it reaches.
    """

    work: Work
    memory: float
    shared: bool = True
    sent: float = 0.0
    reached: float = 1.0

    @property
    def flops(self) -> float:
        """Floating-point operations: two a product, and one a pair."""
        return 2.0 * (self.work.products64 + self.work.products32) + self.work.pairs

    def seconds(self, rates: Rates, workers: int = 1) -> float:
        """Return the time on some workers of given rates, each."""
        return self.work.seconds(rates) / self.reached / (workers if self.shared else 1) + self.sent / NETWORK


def stages(sizes: Sizes, workers: int = 1) -> list[Stage]:
    """Return the stages of a selection on some workers."""
    n, d, k, r, t, C, L = sizes
    h, block, at_once = PIVOTS * r, BLOCK_BYTES * threads() * 2.0, min(threads(), C)
    sums, outputs = 8.0 * sizes.segments * r**2, 8.0 * n * k * L / workers
    held = at_once * (sums + OUTPUTS * (outputs if outputs <= HELD_BYTES else PIECE_BYTES)) + block
    depth = ceil(log2(workers)) if workers > 1 else 0
    features = Work("features", products64=n * r * (d + h), pairs=n * r, bytes=8.0 * n * (d + TRAFFIC * r))
    return [
        Stage(_landmarks(sizes), at_once * 8.0 * SAMPLE * r * (d + 3 * r), shared=False, reached=LANDMARKS),
        Stage(
            Work(
                "products",
                products64=C * (features.products64 + n * r**2 / 2 + 2 * sizes.segments * r**3),
                pairs=C * features.pairs,
                bytes=C * features.bytes,
            ),
            at_once * sums + block,
            sent=C * depth * sums,
        ),
        Stage(
            Work("solutions", products64=C * t * L * r**3 / 6),
            at_once * (sums + 8.0 * t * L * k * r),
            shared=False,
            reached=SOLUTIONS,
        ),
        Stage(
            Work(
                "held out",
                products64=C * (features.products64 + n * r * k * L),
                pairs=C * features.pairs,
                bytes=C * (features.bytes + 8.0 * n * k * L),
            ),
            held,
        ),
        Stage(
            Work(
                "refit",
                products64=features.products64
                + n * r * (h + k)
                + 2 * t * r**3 / 6,  # wide kernels are chosen more often
                pairs=features.pairs,
                bytes=features.bytes,
            ),
            8.0 * t * r * (k + r) + block,
        ),
    ]


def _landmarks(sizes: Sizes) -> Work:
    rows = SAMPLE * sizes.rank
    products = rows * sizes.rank * (sizes.features + sizes.rank)
    return Work("landmarks", products64=sizes.kernels * products, pairs=sizes.kernels * rows * sizes.rank)


def rows_bytes(sizes: Sizes, workers: int = 1) -> float:
    """Return the bytes of the rows on one worker in a search, with vectors beside them and the libraries."""
    rows = 8.0 * sizes.rows / workers
    encoded = rows * sizes.features
    return encoded * (1 if encoded > COPIED_BYTES else 2) + rows * VECTORS * sizes.outputs + LIBRARIES


def reading_bytes(sizes: Sizes, workers: int = 1) -> float:
    """Return the bytes that one worker takes while a table is encoded, with the libraries."""
    table = 8.0 * sizes.rows * (sizes.features + sizes.outputs) / workers
    return 2 * table + TEMPORARY * 8.0 * sizes.rows / workers + LIBRARIES
