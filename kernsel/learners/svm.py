"""Support vector machines for classes: with the hinge loss, and with its square."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kernsel.learners import losses
from kernsel.learners.base import Learner, Tunable, geometric
from kernsel.types import Array


@dataclass(frozen=True)
class Svm(Tunable):
    """Huber hinge: with ``u = y f``, 0 above ``1 + h``, ``1 - u`` below ``1 - h``, ``(1 + h - u)^2 / (4 h)`` between.

    The hinge loss is its limit for h to 0; scikit-learn's ``SVC`` has ``C = 1 / (2 n lambda)`` and a bias. The
    papers on kernel stability, and FBIF18, have none: ``svm(bias=false)``.

    Parameters
    ----------
    h : float or None
        Half-width of the smoothed kink, greater than 0 (FBIF18 uses 0.05). None leaves it free to be searched.
    bias : bool
        Whether there is a bias.

    Notes
    -----
    Cost: A path of Newton fits, each step O(n^2 + |A|^3) with A the rows near the kink; more steps for small lambda.
    O(n c^2) a step at rank c.

    Needs: classes.

    Against: Outputs are no log-odds. A narrow kink takes many steps where lambda is small, and the fit differs from
    that of the hinge loss by the smoothing.

    Examples
    --------
    ::

        kernsel example wine wine.csv
        kernsel select wine.csv --learner svm --kernel gaussian --folds 5
    """

    name: ClassVar[str] = "svm"
    tasks: ClassVar[tuple[str, ...]] = ("classification",)
    searchable: ClassVar[tuple[str, ...]] = ("h",)
    positive: ClassVar[tuple[str, ...]] = ("h",)
    measure: ClassVar[losses.Measure] = losses.HINGE
    _in_sklearn: ClassVar[str] = "SVC"
    _unlike: ClassVar[tuple[str, str]] = (" adds a bias", "")

    h: float | None = 0.05
    bias: bool = True

    def axes(self, Y: Array) -> dict[str, Array]:
        """Return half-widths from a quarter of FBIF18's 0.05 up to the whole margin, nearly."""
        return dict.fromkeys(self.free, geometric(0.0125, 4.0, 4))

    @property
    def loss(self) -> losses.Loss:
        """The Huber hinge."""
        return self._loss(losses.HUBER_HINGE, "h")


@dataclass(frozen=True)
class L2Svm(Learner):
    """Squared hinge ``V(y, f) = (1 - y f)_+^2``.

    scikit-learn's ``LinearSVC`` has it for the linear kernel, with ``C = 1 / (2 n lambda)``.

    Parameters
    ----------
    bias : bool
        Whether there is a bias.

    Notes
    -----
    Cost: A path of Newton fits, each step O(n^2 + |A|^3) with A the rows within the margin; O(n c^2) a step at rank c.

    Needs: classes.

    Against: A row far on the wrong side counts by the square of its distance: mislabelled rows weigh more than with
    ``svm``.

    Examples
    --------
    ::

        kernsel example wine wine.csv
        kernsel select wine.csv --learner l2svm --kernel gaussian --folds 5
    """

    name: ClassVar[str] = "l2svm"
    tasks: ClassVar[tuple[str, ...]] = ("classification",)
    _in_sklearn: ClassVar[str] = "LinearSVC"
    _unlike: ClassVar[tuple[str, str]] = ("", " penalises the bias")

    bias: bool = True

    @property
    def loss(self) -> losses.Loss:
        """The squared hinge."""
        return losses.SQUARED_HINGE
