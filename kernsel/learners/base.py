"""What a learner is: a loss, and the tasks it is for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kernsel.learners.losses import Loss


@dataclass(frozen=True)
class Learner:
    """Minimise ``(1/n) sum_i V(y_i, f(x_i)) + lambda ||f||^2`` over the functions f of a kernel.

    A subclass sets ``name`` and ``tasks`` and gives the loss; fitting belongs to the library.
    """

    name: ClassVar[str]
    tasks: ClassVar[tuple[str, ...]]
    bias: ClassVar[bool] = False

    @property
    def loss(self) -> Loss:
        """The loss V."""
        raise NotImplementedError

    def conversions(self, n: int, lam: float) -> dict[str, float]:
        """Return the regularisation in the conventions of other libraries, for ``n`` rows."""
        return {}
