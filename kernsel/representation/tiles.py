"""The whole kernel in tiles that are computed whenever they are needed."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from kernsel.errors import IncompatibleError
from kernsel.folds.partition import Partition
from kernsel.kernels import Kernel
from kernsel.representation.base import OnRows
from kernsel.types import Array


class Tiles(OnRows):
    """The Gram matrix, of which no more than tiles are ever held: see ``numerics.whole``."""

    def __init__(self, rows: Partition, kernel: Kernel) -> None:
        super().__init__(rows, kernel)
        self.solved: dict[Hashable, Any] = {}
        """What is known of fits, each found on its own: it takes seconds to minutes. See ``paths.whole``."""

    def describe(self) -> str:
        return f"whole kernel in tiles, n = {self.rows.n}"

    def squared_norms(self, x: Array) -> Array:
        raise self._refusal("this")

    def _refusal(self, who: str) -> IncompatibleError:
        return IncompatibleError(
            "rank whole never holds the Gram matrix, which this criterion needs: use newton-cv or cv, or give a "
            "number of landmarks such as 1000"
        )
