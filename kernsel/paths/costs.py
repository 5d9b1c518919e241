"""Which way to held-out outputs is the cheaper one, from sizes that are known before either is gone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

STEPS = 3
"""Newton steps that a refit without a fold takes from the fit on all rows, where it doesn't keep its curved rows."""


def refits_are_cheaper(
    curved: NDArray[np.int64], n: int, left: NDArray[np.float64], share: NDArray[np.float64], settled: bool
) -> NDArray[np.bool_]:
    """Say for which fits in the coordinates of the Gram matrix refits without each fold cost less than Newton steps.

    Multiplications are counted. Newton steps invert a matrix of A curved rows, ``A^3``, once for each weight that a
    fold leaves. A refit factorises that of the rows it keeps, ``(1 - share)^3 A^3 / 3``, at each of its steps: one
    where all rows are curved and the loss is piecewise quadratic (they are so without a fold as well, as a rule), else
    ``STEPS``. What is quadratic in the rows is left out.

    Parameters
    ----------
    curved : (L,) array of int
        Curved rows of each fit.
    n : int
        Number of rows.
    left : (t,) array
        Weight that the fit without each fold keeps.
    share : (t,) array
        Each fold's share of the rows.
    settled : bool
        Whether the loss is piecewise quadratic.
    """
    refits = float(((1.0 - share) ** 3).sum()) / 3.0
    inverses = np.unique(left).size
    steps = np.where((curved == n) & settled, 1, STEPS)
    return (curved > 0) & (steps * refits < inverses)
