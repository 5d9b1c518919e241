"""Support vector regression: with the epsilon-insensitive loss, and with its square."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kernsel.data.target import median_and_spread
from kernsel.learners import losses
from kernsel.learners.base import Tunable, geometric
from kernsel.types import Array


@dataclass(frozen=True)
class _Tube(Tunable):
    """Regression that doesn't count residuals within epsilon."""

    tasks: ClassVar[tuple[str, ...]] = ("regression",)
    in_robust_units: ClassVar[str] = "epsilon is"

    epsilon: float | None = 0.1
    bias: bool = True

    def axes(self, Y: Array) -> dict[str, Array]:
        """Return for epsilon 0, and from 1/32 of the targets' robust spread to all of it."""
        return {"epsilon": np.append(0.0, geometric(_spread(Y) / 32.0, 2.0, 6))} if "epsilon" in self.free else {}

    def conversions(self, n: float, lam: float) -> dict[str, float]:
        """Return ``C`` and ``epsilon`` in scikit-learn's terms, for targets as they are fitted."""
        return super().conversions(n, lam) | ({} if self.epsilon is None else {"epsilon": self.epsilon})


@dataclass(frozen=True)
class Svr(_Tube):
    """Huberised epsilon-insensitive loss: with ``r = y - f``, ``V = g(r - epsilon) + g(-r - epsilon)``.

    g is the kink ``max(0, t)`` with a parabola in its place: 0 below -h, ``(t + h)^2 / (4 h)`` up to h, t beyond. For
    ``epsilon >= h`` that is 0 in the tube, ``(|r| - epsilon + h)^2 / (4 h)`` within h of its wall and ``|r| - epsilon``
    outside; for ``epsilon = 0`` it is Huber's loss (and h / 2). The epsilon-insensitive loss is its limit for h to 0;
    scikit-learn's ``SVR`` has ``C = 1 / (2 n lambda)``.

    Parameters
    ----------
    epsilon : float or None
        Half-width of the tube, at least 0, in the units of the targets; ``select`` divides these by their robust
        spread, 1.4826 times the median absolute deviation. None leaves it free to be searched.
    bias : bool
        Whether there is a bias.
    h : float or None
        Half-width of the smoothed kinks, greater than 0. None leaves it free to be searched.

    Notes
    -----
    Cost: A path of Newton fits, each step O(n^2 + |A|^3) with A the rows near the walls of the tube; O(n c^2) a step at
    rank c.

    Needs: a regression.

    Against: It has a width of the tube to choose, and is slower than ``krr``. The fit differs from that of the
    epsilon-insensitive loss by the smoothing.

    Examples
    --------
    ::

        kernsel example diabetes diabetes.csv
        kernsel select diabetes.csv --learner svr --kernel gaussian --grid coarse --folds 5
    """

    name: ClassVar[str] = "svr"
    searchable: ClassVar[tuple[str, ...]] = ("epsilon", "h")
    in_robust_units: ClassVar[str] = "epsilon and h are"
    positive: ClassVar[tuple[str, ...]] = ("h",)
    measure: ClassVar[losses.Measure] = losses.ABSOLUTE_ERROR
    _in_sklearn: ClassVar[str] = "SVR"
    _unlike: ClassVar[tuple[str, str]] = (" adds a bias", "")

    h: float | None = 0.05

    def axes(self, Y: Array) -> dict[str, Array]:
        """Return values of epsilon as for all such tubes, and half-widths around 0.05 robust spreads."""
        widths = {"h": geometric(_spread(Y) / 80.0, 4.0, 3)} if "h" in self.free else {}
        return super().axes(Y) | widths

    @property
    def loss(self) -> losses.Loss:
        """The Huberised epsilon-insensitive loss."""
        return self._loss(losses.HUBER_INSENSITIVE, "epsilon", "h")


@dataclass(frozen=True)
class Qsvr(_Tube):
    """Quadratic epsilon-insensitive loss ``V(y, f) = (|y - f| - epsilon)_+^2`` (BIF14).

    For ``epsilon = 0`` it is the square loss. scikit-learn's ``LinearSVR`` has it for the linear kernel, with
    ``C = 1 / (2 n lambda)``.

    Parameters
    ----------
    epsilon : float or None
        Half-width of the tube, at least 0, in the units of the targets; ``select`` divides these by their robust
        spread, 1.4826 times the median absolute deviation. None leaves it free to be searched.
    bias : bool
        Whether there is a bias.

    Notes
    -----
    Cost: A path of Newton fits, each step O(n^2 + |A|^3) with A the rows outside the tube; with ``epsilon=0`` the
    closed forms of the square loss.

    Needs: a regression.

    Against: A single outlier in the target moves the fit, for residuals beyond the tube are squared.

    Examples
    --------
    ::

        kernsel example diabetes diabetes.csv
        kernsel select diabetes.csv --learner qsvr --kernel gaussian --grid coarse --folds 5
    """

    name: ClassVar[str] = "qsvr"
    searchable: ClassVar[tuple[str, ...]] = ("epsilon",)
    measure: ClassVar[losses.Measure] = losses.SQUARED_ERROR
    _in_sklearn: ClassVar[str] = "LinearSVR"
    _unlike: ClassVar[tuple[str, str]] = ("", " penalises the bias")

    @property
    def loss(self) -> losses.Loss:
        """The quadratic epsilon-insensitive loss; the square loss, which has closed forms, if epsilon is 0."""
        return self._loss(losses.SQUARE if self.epsilon == 0 else losses.SQUARED_INSENSITIVE, "epsilon")


def _spread(Y: Array) -> float:
    """Return the median over targets (k, n) of their robust spreads, or 1 if all are constant."""
    spreads = [median_and_spread(y)[1] for y in Y if np.ptp(y) > 0]
    return float(np.median(spreads)) if spreads else 1.0
