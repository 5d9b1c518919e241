"""Fits of one learner on one kernel along lambda, and held-out outputs from them.

The unit of work is a kernel with its whole path of lambda: a :class:`Path` holds the fits for descending lambda, and
answers every question about held-out rows; it is what a criterion scores.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from kernsel.paths.base import Fits, HeldOut, Path
from kernsel.paths.blocks import StreamedSmoothPath
from kernsel.paths.smooth import SmoothPath, compile_updates
from kernsel.paths.square import LeftOver, SquarePath, StreamedPath
from kernsel.paths.whole import WholePath
from kernsel.representation.problem import Problem
from kernsel.representation.ranks import Whole


def make_path(problem: Problem, learner: Any, lams: Iterable[float]) -> Path:
    """Return the path of a learner on a problem; lambda is put in descending order."""
    descending = np.sort(np.array(list(lams), dtype=np.float64))[::-1]
    if isinstance(problem.rank, Whole):
        return WholePath(problem, learner, descending)
    kinds = (StreamedPath, SquarePath) if learner.loss.square else (StreamedSmoothPath, SmoothPath)
    return kinds[0 if problem.streamed(learner.loss) else 1](problem, learner, descending)


__all__ = [
    "Fits",
    "HeldOut",
    "LeftOver",
    "Path",
    "SmoothPath",
    "SquarePath",
    "StreamedPath",
    "StreamedSmoothPath",
    "WholePath",
    "compile_updates",
    "make_path",
]
