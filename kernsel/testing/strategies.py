"""Strategies of hypothesis for tests of parts: points, targets, and kernels with values within their ranges.

Importing this module needs hypothesis: ``pip install "kernsel[test]"``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernsel.errors import OptionError
from kernsel.kernels import Kernel
from kernsel.protocols.kernels import lacks_theta
from kernsel.types import Array

try:
    from hypothesis import strategies as st
    from hypothesis.extra.numpy import arrays
except ImportError as error:
    raise ImportError('kernsel.testing.strategies needs hypothesis: pip install "kernsel[test]"') from error

Strategy = st.SearchStrategy

FEATURES = 3
LARGEST = 10.0  # of standardised rows, no entry is larger unless it is an outlier


def points(features: int = FEATURES, rows: Callable[[Array], Array] | None = None, most: int = 9) -> Strategy[Array]:
    """Return a strategy for rows, (n, features) with n from 2 to ``most``.

    Parameters
    ----------
    features : int
    rows : callable, optional
        What brings rows of any real numbers to those that are wanted, such as ``np.abs``.
    most : int
    """
    entries = st.floats(-LARGEST, LARGEST, allow_subnormal=False)
    drawn = st.integers(2, most).flatmap(lambda n: arrays(np.float64, (n, features), elements=entries))
    return drawn if rows is None else drawn.map(rows)


def targets(task: str) -> Strategy[float]:
    """Return a strategy for one target: -1 or +1 of a classification, or a standardised number of a regression."""
    return st.sampled_from([-1.0, 1.0]) if task == "classification" else st.floats(-3, 3)


def outputs() -> Strategy[float]:
    """Return a strategy for one output of a fit, far beyond the targets, too."""
    return st.floats(-50, 50)


def kernels(kernel: Kernel, X: Array) -> Strategy[Kernel]:
    """Return a strategy for a kernel with a value for each free parameter, from its axes for the rows X (n, d).

    Relevances that have no values are drawn from 0 to 1.
    """

    def valued(values: dict[str, Any], theta: list[float]) -> Kernel:
        found = kernel.with_parameters(**values)
        return with_all(found.with_theta(np.array(theta)) if lacks_theta(found) else found)

    axes = {name: st.sampled_from(axis.tolist()) for name, axis in kernel.axes(X).items()}
    relevances = st.lists(st.floats(0, 1), min_size=X.shape[1], max_size=X.shape[1])
    return st.builds(valued, st.fixed_dictionaries(axes), relevances)


def with_all(kernel: Kernel) -> Kernel:
    """Return a kernel that has all values; OptionError if it lacks some."""
    if kernel.free:
        raise OptionError(
            f"kernel {kernel.name!r}: no axis gives {', '.join(kernel.free)} a value; add one, or check one with it"
        )
    return kernel
