"""Kernel ridge regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kernsel.learners import losses
from kernsel.learners.base import Learner


@dataclass(frozen=True)
class Krr(Learner):
    """Square loss ``V(y, f) = (y - f)^2``; on classes it fits their codes -1 and +1.

    scikit-learn's ``KernelRidge`` has ``alpha = n lambda``.
    """

    name: ClassVar[str] = "krr"
    tasks: ClassVar[tuple[str, ...]] = ("regression", "classification")

    @property
    def loss(self) -> losses.Loss:
        """The square loss."""
        return losses.Loss("square", losses.square, square=True)

    def conversions(self, n: int, lam: float) -> dict[str, float]:
        """Return the ``alpha`` of scikit-learn's ``KernelRidge``."""
        return {"alpha": n * lam}
