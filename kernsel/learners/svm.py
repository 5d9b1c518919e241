"""Support vector machine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from kernsel.errors import OptionError
from kernsel.learners import losses
from kernsel.learners.base import Learner


@dataclass(frozen=True)
class Svm(Learner):
    """Huber hinge: with ``u = y f``, 0 above ``1 + h``, ``1 - u`` below ``1 - h``, ``(1 + h - u)^2 / (4 h)`` between.

    The hinge loss is its limit for h to 0; scikit-learn's ``SVC`` has ``C = 1 / (2 n lambda)`` and a bias.

    Parameters
    ----------
    h : float
        Half-width of the smoothed kink, greater than 0 (FBIF18 uses 0.05).
    """

    name: ClassVar[str] = "svm"
    tasks: ClassVar[tuple[str, ...]] = ("classification",)

    h: float = 0.05

    def __post_init__(self) -> None:
        if not (self.h > 0 and math.isfinite(self.h)):
            raise OptionError(f"learner 'svm': h must be a finite number greater than 0, not {self.h!r}")

    @property
    def loss(self) -> losses.Loss:
        """The Huber hinge."""
        return losses.Loss("huber-hinge", losses.huber_hinge, (float(self.h),))

    def conversions(self, n: int, lam: float) -> dict[str, float]:
        """Return the ``C`` of scikit-learn's ``SVC``."""
        return {"C": 1.0 / (2.0 * n * lam)}
