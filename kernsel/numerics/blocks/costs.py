"""What a selection of the square loss on features in blocks of rows costs, stage by stage, before it is begun.

With n rows of d features, k outputs, rank r, t folds in m segments, C kernels and L lambdas, for each kernel::

    stage      pairs     products                    in memory
    landmarks  10 r^2    10 r^2 (d + r), slow ones   10 r (d + r)
    products   n r       n r (d + h) + n r^2 / 2     m r^2 sums, blocks of features
               .         + 2 m r^3                   (finishing them)
    solutions  .         t L r^3 / 6                 t L k r
    held out   n r       n r (d + h + k L)           n k L outputs
    refit      n r       2 t r^3 / 6                 once, for the choice
               .         + n r (d + 2 h + k)

Here h is the number of pivots that are eliminated from every block: see ``blocks.features``. Workers share what goes
over rows; their sums are merged in a tree. A product is a multiplication and an addition; a pair is one evaluation of
the kernel's function, mostly an exponential.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2
from typing import NamedTuple

from kernsel.numerics.blocks.features import BLOCK_BYTES
from kernsel.numerics.runtime.jit import threads
from kernsel.numerics.whole.costs import Rates, Work

SAMPLE = 10
"""Rows for each landmark, drawn at random, among which the landmarks are chosen."""

SEGMENTS = 8
"""Segments at least, for threads to share: see ``representation.stream``."""

PIVOTS = 1 / 16
"""Share of the pivots that are eliminated from blocks, as a rule: none of narrow kernels, an eighth of wide ones."""

LANDMARKS = 0.25
"""Of the rate of products: what the choice of landmarks reaches, whose matrices are multiplied by few columns."""

TRAFFIC = 4
"""How often a block of features goes to or comes from memory where pivots are eliminated from it."""

NETWORK = 1e9
"""Bytes a second between two workers: ten gigabit."""

LIBRARIES = 4e8
"""Bytes that Python takes with its libraries and compiled loops."""

COPIES = 3
"""Of the rows: as they are given, encoded, and sorted by fold."""

OUTPUTS = 4
"""Arrays of a kernel's held-out outputs at a time: themselves, clipped, their losses, and those of the best so far."""


class Sizes(NamedTuple):
    """What a selection is of.

    Parameters
    ----------
    rows, features, outputs, rank, folds, kernels, lambdas : int
    """

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
    work : Work
    memory : float
        Bytes on one worker, beside the rows.
    shared : bool
        Whether workers share it.
    sent : float
        Bytes that go over the network, on the longest way.
    """

    work: Work
    memory: float
    shared: bool = True
    sent: float = 0.0

    @property
    def flops(self) -> float:
        """Floating-point operations: two a product, and one a pair."""
        return 2.0 * (self.work.products64 + self.work.products32) + self.work.pairs

    def seconds(self, rates: Rates, workers: int = 1) -> float:
        """Return the time on some workers of given rates, each."""
        return self.work.seconds(rates) / (workers if self.shared else 1) + self.sent / NETWORK


def stages(sizes: Sizes, workers: int = 1) -> list[Stage]:
    """Return the stages of a selection on some workers."""
    n, d, k, r, t, C, L = sizes
    h, block = PIVOTS * r, BLOCK_BYTES * threads() * 2.0
    sums = 8.0 * sizes.segments * r**2
    depth = ceil(log2(workers)) if workers > 1 else 0
    features = Work("features", products64=n * r * (d + h), pairs=n * r, bytes=8.0 * n * (d + TRAFFIC * r))
    return [
        Stage(_landmarks(sizes), 8.0 * SAMPLE * r * (d + r), shared=False),
        Stage(
            Work(
                "products",
                products64=C * (features.products64 + n * r**2 / 2 + 2 * sizes.segments * r**3),
                pairs=C * features.pairs,
                bytes=C * features.bytes,
            ),
            sums + block,
            sent=C * depth * sums,
        ),
        Stage(Work("solutions", products64=C * t * L * r**3 / 6), 8.0 * t * L * k * r, shared=False),
        Stage(
            Work(
                "held out",
                products64=C * (features.products64 + n * r * k * L),
                pairs=C * features.pairs,
                bytes=C * (features.bytes + 8.0 * n * k * L),
            ),
            8.0 * OUTPUTS * n * k * L / workers + block,
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
    return Work("landmarks", products64=sizes.kernels * products / LANDMARKS, pairs=sizes.kernels * rows * sizes.rank)


def rows_bytes(sizes: Sizes, workers: int = 1) -> float:
    """Return the bytes of the rows on one worker, with their copies and the libraries."""
    return COPIES * 8.0 * sizes.rows * (sizes.features + sizes.outputs) / workers + LIBRARIES
