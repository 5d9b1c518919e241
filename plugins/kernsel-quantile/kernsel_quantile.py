"""A learner for kernsel: kernel quantile regression, and sets of quantiles that don't cross."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

import kernsel
from kernsel.errors import OptionError
from kernsel.learners import Learner, Loss
from kernsel.learners.losses import smooth_kink
from kernsel.numerics.runtime import jit

kernsel_protocol = 1
Array = NDArray[np.float64]


@jit.pointer(jit.LOSS)
def pinball(y: float, f: float, parameters: Array) -> tuple[float, float, float]:
    """Return ``q r + g(-r)``, r = y - f, and its derivatives in f; g is ``max(0, t)`` with a parabola at its kink."""
    q, r = parameters[0], y - f
    value, slope, curvature = smooth_kink(-r, parameters[1])
    return q * r + value, slope - q, curvature


@dataclass(frozen=True)
class Quantile(Learner):
    """The quantile q of the target, by the pinball loss ``V = max(q r, (q - 1) r)``, r = y - f, with a smooth kink.

    Parameters
    ----------
    q : float
        Between 0 and 1: the share of targets below the outputs.
    h : float
        Half-width of the parabola in place of the kink, in robust spreads of the target, greater than 0.
    bias : bool
        Whether there is a bias; without one the share isn't kept.
    """

    name: ClassVar[str] = "quantile"
    tasks: ClassVar[tuple[str, ...]] = ("regression",)
    in_robust_units: ClassVar[str] = "h is"

    q: float = 0.5
    h: float = 0.05
    bias: bool = True

    def __post_init__(self) -> None:
        if not (0 < self.q < 1 and 0 < self.h < np.inf):
            raise OptionError(f"learner 'quantile': q={self.q} must be between 0 and 1, and h={self.h} above 0")

    @property
    def loss(self) -> Loss:
        return Loss("pinball", pinball, (float(self.q), float(self.h)), smoothing=1)


def fit_quantiles(
    X: ArrayLike, y: ArrayLike, quantiles: Sequence[float], **options: Any
) -> Callable[[ArrayLike], Array]:
    """Select one model a quantile by ``kernsel.select``; return a function of rows, (n, quantiles), sorted."""
    found = [kernsel.select(X, y, learner=Quantile(q), **options) for q in sorted(quantiles)]
    return lambda X: sorted_quantiles(np.column_stack([each.model.predict(X) for each in found]))


def sorted_quantiles(outputs: Array) -> Array:
    """Return outputs (n, quantiles), each row ascending: quantiles can't cross, and their loss is never larger."""
    return np.sort(outputs, axis=1)
