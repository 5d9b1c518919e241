"""The score of exact refits, where the held-out outputs of all rows take too much room: sums over pieces of the rows.

For the held-out outputs ``f_i`` of n rows, their losses ``l_i`` and errors ``e_i``, all that is kept are the sums that
the weighted means of both, and their standard errors, are made of: see ``kernsel.heldout.standard_error``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernsel.criteria import Scores
from kernsel.heldout.errors import Errors
from kernsel.heldout.losses import LossSums
from kernsel.heldout.standard_error import are_counts
from kernsel.paths import HeldOut, Path
from kernsel.types import Array


class InPieces(NamedTuple):
    """Scores of L fits, whose held-out outputs ``f (k, L, 0)`` are of no rows, with errors and standard errors (L,)."""

    scores: Scores
    error: tuple[Array, Array]


def score_in_pieces(path: Path, errors: Errors) -> InPieces | None:
    """Return the mean held-out losses of a path, and its errors; None where outputs of all rows are held together."""
    rows, fold_numbers = path.rows, np.arange(path.rows.left.size + 1)
    counts = are_counts(rows.s)
    total: LossSums | None = None
    failed: list[str | None] = [None] * path.lams.size
    for fold, piece in path.pieces():
        part = piece.rows
        held = piece.exact().clipped(part)
        starts = np.where(fold_numbers > fold, part.n, 0)
        with np.errstate(over="ignore", invalid="ignore"):  # the outputs of a fit that failed may be infinite
            losses = path.learner.loss.values(part.Y, held.f).mean(axis=0)
            found = LossSums.of(losses, errors.by_row(part, held.f), starts, part.s, counts)
        total = found if total is None else total.merge(found)
        failed = [before or now for before, now in zip(failed, held.failed, strict=True)]
    if total is None:
        return None
    loss, loss_se, error, error_se = total.figures(errors, counts)
    none_held = HeldOut(np.empty((len(rows.Y), path.lams.size, 0)), failed, np.ones(path.lams.size, np.bool_))
    return InPieces(Scores(loss, failed, loss, heldout=none_held, score_se=loss_se), (error, error_se))
