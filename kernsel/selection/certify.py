"""Whether a choice can be certified, and within which share of the best of all candidates."""

from __future__ import annotations

import numpy as np

from kernsel.criteria import CV, HeldOutCriterion
from kernsel.criteria.base import Criterion
from kernsel.errors import OptionError
from kernsel.folds.partition import Partition
from kernsel.protocols import Learner
from kernsel.representation.blocks import needed
from kernsel.representation.ranks import LowRank, Rank, Whole

SHARE = 0.01
"""Where none is given."""


def read_certify(given: object, criterion: Criterion, learner: Learner, rank: Rank, rows: Partition) -> float | None:
    """Return the share within which the lowest score is to be proved, or None.

    Parameters
    ----------
    given : bool, float or None
        True for ``SHARE``.

    Raises
    ------
    OptionError
        It is no share, or what is asked for can't be certified.
    """
    if given is None or given is False:
        return None
    share = SHARE if given is True else given
    if not isinstance(share, int | float | np.floating) or not 0 < share < 1:
        raise OptionError(f"certify is a share of the lowest score, between 0 and 1, such as 0.01, not {given!r}")
    plain = isinstance(criterion, HeldOutCriterion) and type(criterion).values is HeldOutCriterion.values
    if not plain or hasattr(criterion, "measure"):
        raise OptionError(
            f"certify encloses mean held-out losses, and criterion '{criterion.name}' is something else: use newton-cv "
            "with it"
        )
    square = not getattr(learner, "free", ()) and learner.loss.square
    if isinstance(rank, Whole) or (not square and isinstance(rank, LowRank) and needed(rows, rank, square=False)):
        raise OptionError("certify needs the kernel or its features in memory: give a lower rank with it")
    if not square:
        if isinstance(criterion, HeldOutCriterion) and type(criterion).heldout is CV.heldout:
            raise OptionError(
                "criterion cv refits every fold, so that its scores are exact: leave certify out, or use newton-cv "
                "with it"
            )
        _check_loss(learner, rows)
    return float(share)


def _check_loss(learner: Learner, rows: Partition) -> None:
    """Raise OptionError where nothing is known of a loss from which its range could be told."""
    if getattr(learner, "free", ()):  # the losses of a search over their parameters are those of the library
        return
    loss, Y = learner.loss, rows.Y[:, None, :]
    shaped = loss.piecewise_quadratic or getattr(loss, "bends_once", False)
    if "regression" in learner.tasks:
        shaped = shaped and not loss.expand(rows.Y, np.ones(rows.n), np.ascontiguousarray(Y))[1].any()
    if not shaped:
        raise OptionError(
            f"certify needs a loss that is least at the target and whose derivative is linear in pieces or bends once; "
            f"that of learner '{learner.name}' isn't known to be so: use svm, l2svm, klr, svr or qsvr"
        )
