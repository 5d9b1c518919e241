"""Cross-validation by the Bouligand influence function, and its Nystrom approximation."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from kernsel.criteria.base import About, HeldOutCriterion, Scores
from kernsel.criteria.crossvalidation import NewtonCV
from kernsel.errors import IncompatibleError, OptionError
from kernsel.paths import HeldOut, Path
from kernsel.types import Array


@dataclass(frozen=True)
class _Influence(HeldOutCriterion):
    """A truncated influence series; where its ratio rho is above ``trust`` the Newton step scores instead.

    Order r leaves an error of about ``rho^r``; for small lambda or narrow kernels rho tends to 1, the outputs tend to
    the training outputs and the most over-fitted fit looks best.
    """

    trust: float = 0.2
    pure: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.trust <= 1:
            raise OptionError(f"criterion '{self.name}': trust must be from 0 to 1, not {self.trust!r}")

    @abstractmethod
    def series(self, path: Path) -> HeldOut:
        """Return the held-out outputs of the truncated series."""

    @property
    def bare(self) -> bool:
        """Whether every fit is scored by the series, whatever its rho."""
        return self.pure

    def heldout(self, path: Path) -> HeldOut:
        """Return the outputs of the series, or of the Newton step for fits beyond its reach."""
        held = self.series(path)
        if self.bare:
            return held
        beyond = ~(path.ratio <= self.trust) | np.array([reason is not None for reason in held.failed])
        if not beyond.any():
            return held
        step = path.newton_step()
        held.f[:, beyond] = step.f[:, beyond]
        failed = [step.failed[k] if beyond[k] else held.failed[k] for k in range(beyond.size)]
        refitted = np.where(beyond, step.refitted, held.refitted)
        return HeldOut(held.f, failed, np.where(beyond, step.exact, held.exact), refitted, beyond)

    def reliability(self, path: Path) -> Array | None:
        """Return rho of each fit."""
        return path.ratio

    def score(self, path: Path) -> Scores:
        """Score a path, and say which fits the Newton step scored."""
        scores = super().score(path)
        if self.bare:
            return scores
        assert scores.heldout is not None
        replaced = np.broadcast_to(scores.heldout.replaced, path.lams.shape)
        return replace(scores, scored_by=[NewtonCV.name if each else None for each in replaced])


@dataclass(frozen=True)
class BIF(_Influence):
    """Bouligand influence function of order r (BIF14, Theorem 2 with the factor 2 removed).

    Parameters
    ----------
    trust : float
        Largest rho at which the series is believed.
    pure : bool
        Believe it always, as published.
    order : int or inf
        Terms of the series; infinity is the Newton step. Above 1 for piecewise quadratic losses only.

    Examples
    --------
    ::

        kernsel example wine wine.csv
        kernsel select wine.csv --kernel gaussian --learner svm --folds 5 --criterion "bif(order=2)"
    """

    name: ClassVar[str] = "bif"
    about: ClassVar[About] = About(
        reference="BIF14, Theorem 2, with its factor 2 removed",
        cost="one fit and O(n^2 + |A|^3) for each lambda, A the rows with curvature",
        needs="folds whose fits are trained on all other rows; above order 1 a piecewise quadratic loss",
        against="where rho is near 1 it returns the training error, of which the most over-fitted candidate has least: "
        "newton-cv scores there",
    )
    order: float = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        number = isinstance(self.order, int | float | np.number)
        if not number or not (self.order == math.inf or (self.order >= 1 and self.order == int(self.order))):
            raise OptionError(f"criterion 'bif': order must be a whole number from 1, or inf, not {self.order!r}")

    @property
    def bare(self) -> bool:
        """Whether every fit is scored by the series; order infinity is the Newton step itself."""
        return self.pure or self.order == math.inf

    def series(self, path: Path) -> HeldOut:
        """Return the outputs of the series up to its order."""
        if self.order == math.inf:
            return path.newton_step()
        if self.order > 1 and not path.learner.loss.piecewise_quadratic:
            raise IncompatibleError(
                f"criterion 'bif' of order {self.order:g} needs a piecewise quadratic loss; that of learner "
                f"'{path.learner.name}' has a third derivative: use order 1, or newton-cv"
            )
        return path.influence(int(self.order))


@dataclass(frozen=True)
class FBIF(_Influence):
    """First-order influence with a Nystrom inverse (FBIF18, with the sign and the mask of its hinge formula corrected).

    Parameters
    ----------
    trust : float
        Largest rho at which the series is believed.
    pure : bool
        Believe it always, as published.
    landmarks : float
        Share of the rows that are landmarks, drawn uniformly (FBIF18 uses 0.1).

    Examples
    --------
    ::

        kernsel example wine wine.csv
        kernsel select wine.csv --kernel gaussian --learner svm --folds 5 --criterion fbif
    """

    name: ClassVar[str] = "fbif"
    about: ClassVar[About] = About(
        reference="FBIF18, Section 4, with sign and mask of its hinge formula corrected",
        cost="one fit and O(n c^2 + c^3 + t n c) for each lambda, c landmarks",
        needs="folds whose fits are trained on all other rows",
        against="where rho is near 1 it returns the training error; off the range of its landmarks the inverse is "
        "1 / (2 lambda), which explodes",
    )
    landmarks: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.landmarks <= 1:
            raise OptionError(f"criterion 'fbif': landmarks must be a share of the rows, not {self.landmarks!r}")

    def series(self, path: Path) -> HeldOut:
        """Return the outputs of the first-order step with the Nystrom inverse."""
        return path.nystrom_influence(self.landmarks)

    def reliability(self, path: Path) -> Array | None:
        """Return rho of each fit; None if that doesn't matter, for it costs far more than the series."""
        return None if self.pure else path.ratio
