"""Types that many modules name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

Indices = NDArray[np.int64]
"""Places of rows, columns or folds, or other whole numbers."""

Mask = NDArray[np.bool_]
"""Whether each of them is meant, or something is so of it."""

Progress = Callable[[int, int, str], None]
"""Called as ``progress(done, total, text)``."""
