"""Kernels that are given by their values: a Python function of two sets of rows, or a Gram matrix.

Nothing says that they are positive semidefinite: :func:`negative_part` looks.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from kernsel.errors import OptionError
from kernsel.kernels.base import Kernel
from kernsel.kernels.statistics import Statistics
from kernsel.numerics.points import Points, as_points
from kernsel.numerics.similarities import NEW_ROW, symmetric
from kernsel.protocols import Value
from kernsel.types import Array, Indices

NEGATIVE = 1e-8
"""Of the largest eigenvalue: a negative one beyond this is none that rounding makes of 0."""

LOOKED_AT = 1000
"""Rows whose Gram matrix is looked at for negative eigenvalues: those of a part of the rows bound those of all."""

BLOCK = 64
"""Rows whose Gram matrix is computed for its diagonal: a call of a Python function costs more than so many values."""


@dataclass(frozen=True)
class Function(Kernel):
    """``k(x, z)`` as a Python function of two sets of rows, called by the name of the function.

    Parameters
    ----------
    function : callable
        ``f(X, Z) -> K``, K (n, m) for the rows of X (n, d) and Z (m, d), which it must not change.
    """

    function: Callable[[Array, Array], Any]

    def __post_init__(self) -> None:
        if not callable(self.function) or not isinstance(self.function, Hashable):
            raise OptionError(
                f"a kernel must be a function f(X, Z), not {self.function!r}; write a callable that can't be hashed as "
                "lambda X, Z: k(X, Z)"
            )

    @property
    def name(self) -> str:  # type: ignore[override]  # a class attribute elsewhere, here it is the function's
        """The name of the function."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    @property
    def definite(self) -> bool:  # type: ignore[override]  # as above
        """Nobody knows."""
        return False

    def _fields(self) -> dict[str, Value | None]:
        return {}

    def evaluate(self, stats: Statistics) -> Array:
        if stats.Z is not None:
            return self._values(stats.X, stats.Z)
        K = self._values(stats.X, stats.X)
        return symmetric(K, f"kernel '{self.name}': the matrix of rows with themselves")

    def diag(self, X: ArrayLike) -> Array:
        rows = as_points(X)
        blocks = [rows[start : start + BLOCK] for start in range(0, rows.shape[0], BLOCK)]
        return np.concatenate([np.diagonal(self._values(block, block)) for block in blocks] or [np.zeros(0)])

    def _values(self, X: Points, Z: Points) -> Array:
        """Return the values of the function, checked: a new array (n, m)."""
        rows = [each.view() for each in (X, Z)]
        for each in rows:
            each.flags.writeable = False
        shape = X.shape[0], Z.shape[0]
        try:
            K = np.array(self.function(*rows), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise OptionError(
                f"kernel '{self.name}' can't be called as f(X, Z) with arrays of shape {X.shape} and {Z.shape}, or "
                f"returns no numbers: {error}"
            ) from error
        if K.shape != shape:
            raise OptionError(f"kernel '{self.name}' must return an array of shape {shape}, not {K.shape}")
        if not np.isfinite(K).all():
            raise OptionError(f"kernel '{self.name}' returns values that are not finite")
        return K

    def spec(self) -> dict[str, Any]:
        return {"kernel": "function", "function": self.name}

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Precomputed(Kernel):
    """A Gram matrix, of which each row x is ``(i, K_i1, ..., K_iN)``: its own number, and its values with all N rows.

    ``k(x_i, x_j) = K_ij``. A new row has ``NEW_ROW`` for its number: its values with the N rows are known, those with
    other new rows and with itself are not.
    """

    name: ClassVar[str] = "precomputed"
    definite: ClassVar[bool] = False
    known_rows_only: ClassVar[bool] = True

    def evaluate(self, stats: Statistics) -> Array:
        X, Z = stats.X, stats.X if stats.Z is None else stats.Z
        if (Z[:, 0] != NEW_ROW).all():
            return np.ascontiguousarray(X[:, 1 + self._numbers(Z)])
        return np.ascontiguousarray(Z[:, 1 + self._numbers(X)].T)

    def diag(self, X: ArrayLike) -> Array:
        rows = as_points(X)
        return np.asarray(rows[np.arange(rows.shape[0]), 1 + self._numbers(rows)])

    def _numbers(self, rows: Points) -> Indices:
        """Return which of the given rows these are, (n,)."""
        numbers: Indices = rows[:, 0].astype(np.int64)
        if (numbers != rows[:, 0]).any() or ((numbers < 0) | (numbers >= rows.shape[1] - 1)).any():
            raise OptionError(
                "kernel 'precomputed' has the values of new rows with the given ones only, not with each other or with "
                "themselves; give a square Gram matrix as X, and this kernel alone"
            )
        return numbers


def is_precomputed(kernel: object) -> bool:
    """Tell whether X is to be read as a Gram matrix, for a kernel as it is given to a selection."""
    return isinstance(kernel, Precomputed) or (isinstance(kernel, str) and kernel.strip() == Precomputed.name)


def negative_part(kernel: Kernel, X: Points, seed: int = 0) -> float:
    """Return the smallest eigenvalue of the Gram matrix of the rows X (n, d), or of some, over its largest one.

    0 where none is negative beyond rounding.
    """
    n = X.shape[0]
    rows = X if n <= LOOKED_AT else X[np.sort(np.random.default_rng(seed).choice(n, LOOKED_AT, replace=False))]
    values = np.linalg.eigvalsh(kernel(rows))
    share = float(values[0] / max(values[-1], -values[0])) if values[0] < 0 else 0.0
    return share if share < -NEGATIVE else 0.0
