"""The choice of a selection, and what it predicts of the rows held out."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernsel.criteria import HeldOutCriterion
from kernsel.criteria.base import Criterion
from kernsel.folds.partition import Partition
from kernsel.heldout.margins import margins_of
from kernsel.paths import Path
from kernsel.search.board import Board
from kernsel.search.candidate import Candidate
from kernsel.selection.setting import Setting
from kernsel.types import Array


@dataclass(frozen=True, eq=False)
class HeldOutChoice:
    """A choice, and what it predicts of the rows held out.

    Parameters
    ----------
    path : Path
        Whose last fit is the choice on all rows.
    outputs : list of (k, n) arrays
        Held-out outputs on each deal, or on the first ones, none of them clipped.
    deals : list of Partition
        With the margins of outputs.
    unseen : bool
        Whether the outputs are by a kernel that was learnt without the rows held out, and the candidate's scores not.
    """

    candidate: Candidate
    path: Path
    outputs: list[Array]
    deals: list[Partition]
    unseen: bool

    @property
    def anew(self) -> bool:
        """Whether the outputs, or how they are clipped, are not what the candidate was scored by."""
        return self.unseen or self.deals[0].margins is not None


def hold_out(setting: Setting, board: Board, choice: Candidate, unseen_outputs: Array | None) -> HeldOutChoice:
    """Return what a choice predicts of the rows held out: on all deals where its error, metrics or targets need them.

    Parameters
    ----------
    unseen_outputs : (k, n) array or None
        Held-out outputs by kernels that were learnt without the rows, where the choice's own has seen them.
    """
    path = refit(choice, board.rows, board)
    criterion = None if setting.plan.verify or choice.exact else setting.criterion
    unseen = unseen_outputs is not None
    known = board.outputs.get(choice.key) if unseen_outputs is None else [unseen_outputs]
    outputs = known or [_last_outputs(path, criterion)]
    margins = margins_of(board.deals, path.learner.loss, outputs)
    measured = choice.error is not None and (board.metrics is None or bool(choice.metrics)) and margins is None
    several = isinstance(setting.dataset.target, list)
    if not unseen and len(outputs) < len(board.deals) and (several or not measured):
        outputs = [outputs[0], *(_last_outputs(refit(choice, rows, board), criterion) for rows in board.deals[1:])]
    return HeldOutChoice(choice, path, outputs, [replace(deal, margins=margins) for deal in board.deals], unseen)


def refit(choice: Candidate, rows: Partition, board: Board) -> Path:
    """Fit a candidate on the rows of a deal."""
    return board.path(rows, choice.kernel, choice.learner, [choice.lam], lead_in=True)


def _last_outputs(path: Path, criterion: Criterion | None) -> Array:
    """Return held-out outputs (k, n) of a path's last fit: a criterion's own if it makes some, else exact ones."""
    if isinstance(criterion, HeldOutCriterion):
        return criterion.heldout(path).f[:, -1]
    return path.exact([path.lams.size - 1]).f[:, 0]
