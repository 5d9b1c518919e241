"""Cross-validation by exact refits and by one Newton step a fold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from kernsel.criteria.base import Array, HeldOutCriterion, Slopes
from kernsel.numerics import gradients
from kernsel.paths import HeldOut, Path
from kernsel.problem import Problem


@dataclass(frozen=True)
class CV(HeldOutCriterion):
    """Exact k-fold cross-validation: by the closed form for the square loss, by warm-started refits for others."""

    name: ClassVar[str] = "cv"

    def heldout(self, path: Path) -> HeldOut:
        """Return the outputs of exact refits."""
        return path.exact()

    def gradient(self, problem: Problem, learner: Any, lam: float) -> Slopes:
        """Return the score of the square loss with its derivatives by the kernel's relevances and log lambda."""
        rows = problem.rows
        found = gradients.cross_validation(problem.gram, rows.Y, rows.s, int(learner.bias), lam, rows.starts)
        return Slopes.of(problem, lam, *found)


@dataclass(frozen=True)
class NewtonCV(HeldOutCriterion):
    """Cross-validation over k folds by one Newton step from the fit on all rows towards each fold's own fit.

    Exact for the square loss. It is the influence series (BIF14) summed to infinity.
    """

    name: ClassVar[str] = "newton-cv"

    def heldout(self, path: Path) -> HeldOut:
        """Return the outputs after one Newton step."""
        return path.newton_step()

    def reliability(self, path: Path) -> Array | None:
        """Return rho of each fit; None at a rank that is not the one in force, where the score is provisional."""
        return path.ratio if path.problem.landmarks is None else None
