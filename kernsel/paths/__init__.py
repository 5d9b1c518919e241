"""Fits of one learner on one kernel along lambda, and held-out outputs from them.

The unit of work is a kernel with its whole path of lambda: a :class:`Path` holds the fits for descending lambda, and
answers every question about held-out rows; it is what a criterion scores. There is one for each representation and
kind of loss.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from kernsel.numerics.runtime.ahead import compile_ahead
from kernsel.numerics.square import factored, heldout
from kernsel.paths.base import Path
from kernsel.paths.outputs import Fits, HeldOut, LeftOver
from kernsel.paths.smooth import SmoothPath
from kernsel.paths.smooth_blocks import BlocksSmoothPath
from kernsel.paths.smooth_features import FeaturesSmoothPath
from kernsel.paths.smooth_gram import GramSmoothPath
from kernsel.paths.square import SquarePath
from kernsel.paths.square_blocks import BlocksSquarePath
from kernsel.paths.square_features import FeaturesSquarePath
from kernsel.paths.square_gram import GramSquarePath
from kernsel.paths.whole import WholePath
from kernsel.protocols import Learner
from kernsel.representation.base import Representation
from kernsel.representation.blocks import Blocks
from kernsel.representation.features import Features, SharedFeatures
from kernsel.representation.gram import Gram
from kernsel.representation.problem import Problem
from kernsel.representation.tiles import Tiles
from kernsel.types import Array

PATHS: dict[type[Representation], tuple[type[Path], type[Path]]] = {
    Gram: (GramSquarePath, GramSmoothPath),
    Features: (FeaturesSquarePath, FeaturesSmoothPath),
    SharedFeatures: (FeaturesSquarePath, FeaturesSmoothPath),
    Blocks: (BlocksSquarePath, BlocksSmoothPath),
    Tiles: (WholePath, WholePath),
}
"""Paths of the square loss, and of others, for each representation."""


def make_path(
    problem: Problem,
    learner: Learner,
    lams: Iterable[float],
    lead_in: bool = False,
    near: Mapping[float, Array] | None = None,
) -> Path:
    """Return the path of a learner on a problem; lambda is put in descending order.

    With ``lead_in`` the first lambda is led to from larger ones, where fits are found by steps; where steps are dear
    they start from the solutions by lambda that are ``near``, of ``Path.settled``.
    """
    descending = np.sort(np.array(list(lams), dtype=np.float64))[::-1]
    representation = problem.representation(learner.loss)
    square, smooth = PATHS[type(representation)]
    kind = square if learner.loss.square else smooth
    return kind(problem, representation, learner, descending, lead_in=lead_in, near=near)


def compile_learning() -> None:
    """Have what relevances are learnt with, beside their gradients, compiled while the learning begins."""
    compile_ahead(*factored.LOOPS)


def compile_updates(learner: Learner, full: bool, series: bool) -> None:
    """Have the fold updates of a learner compiled while the search begins.

    Parameters
    ----------
    full : bool
        Whether it begins with Gram matrices.
    series : bool
        Whether influence series are wanted.
    """
    if not getattr(learner, "free", ()) and learner.loss.square:
        compile_ahead(*(factored.LOOPS if full else heldout.LOOPS))
    else:
        kind = GramSmoothPath if full else FeaturesSmoothPath
        compile_ahead(*([kind.series] if series else []), kind.step)


__all__ = [
    "Fits",
    "HeldOut",
    "LeftOver",
    "Path",
    "SmoothPath",
    "SquarePath",
    "compile_learning",
    "compile_updates",
    "make_path",
]
