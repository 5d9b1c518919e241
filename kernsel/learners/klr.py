"""Kernel logistic regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kernsel.learners import losses
from kernsel.learners.base import Learner


@dataclass(frozen=True)
class Klr(Learner):
    """Logistic loss ``V(y, f) = log(1 + exp(-y f))``: f is the log-odds of the class +1.

    scikit-learn's ``LogisticRegression`` has it for the linear kernel, with ``C = 1 / (2 n lambda)``. The loss has a
    third derivative, so the influence series of ``bif`` ends with its first order.

    Parameters
    ----------
    bias : bool
        Whether there is a bias.

    Notes
    -----
    Cost: A path of Newton fits, each step O(n^3), for every row has curvature; O(n c^2) a step at rank c.

    Needs: classes.

    Against: Every row has curvature, so that fits usually take longer than those of ``svm`` and ``l2svm``. Its
    influence series has order 1 only.

    Examples
    --------
    ::

        kernsel example wine wine.csv
        kernsel select wine.csv --learner klr --kernel gaussian --folds 5
    """

    name: ClassVar[str] = "klr"
    tasks: ClassVar[tuple[str, ...]] = ("classification",)
    log_odds: ClassVar[bool] = True
    _in_sklearn: ClassVar[str] = "LogisticRegression"
    _unlike: ClassVar[tuple[str, str]] = (" adds a bias", "")

    bias: bool = True

    @property
    def loss(self) -> losses.Loss:
        """The logistic loss."""
        return losses.LOGISTIC
