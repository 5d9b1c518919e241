"""Cross-validation by exact refits and by one Newton step a fold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kernsel.criteria.base import About, HeldOutCriterion, Slopes
from kernsel.errors import IncompatibleError
from kernsel.numerics.square import gradients
from kernsel.paths import HeldOut, Path
from kernsel.protocols import Learner
from kernsel.representation.problem import Problem
from kernsel.types import Array


@dataclass(frozen=True)
class CV(HeldOutCriterion):
    """Exact k-fold cross-validation: by the closed form for the square loss, by warm-started refits for others.

    Examples
    --------
    ::

        kernsel example wine wine.csv
        kernsel select wine.csv --kernel gaussian --folds 5 --criterion cv
    """

    name: ClassVar[str] = "cv"
    about: ClassVar[About] = About(
        reference="Stone 1974; for the square loss the closed form of An, Liu & Venkatesh 2007",
        cost="square loss: O(n^3 + L n^3 / t), O(n c^2 + t c^3 + L n c) at rank c; others: t refits for each lambda",
        against="the best of many candidates has an optimistic error: see --nested",
    )
    exact_refits: ClassVar[bool] = True

    def heldout(self, path: Path) -> HeldOut:
        """Return the outputs of exact refits."""
        return path.exact()

    def gradient(self, problem: Problem, learner: Learner, lam: float) -> Slopes:
        """Return the score of the square loss with its derivatives by the kernel's relevances and log lambda."""
        rows = problem.rows
        if rows.training is not None:
            raise IncompatibleError(
                f"criterion '{self.name}' has a gradient where fits are trained on all rows but the fold, and these "
                "leave out more: give refine compass or simplex"
            )
        found = gradients.cross_validation(problem.gram, rows.Y, rows.s, int(learner.bias), lam, rows.starts)
        return Slopes.of(problem, lam, *found)


@dataclass(frozen=True)
class NewtonCV(CV):
    """Cross-validation over k folds by one Newton step from the fit on all rows towards each fold's own fit.

    Exact for the square loss, with the same gradient. It is the influence series (BIF14) summed to infinity.

    Examples
    --------
    ::

        kernsel example wine wine.csv
        kernsel select wine.csv --kernel gaussian --folds 5 --criterion newton-cv
    """

    name: ClassVar[str] = "newton-cv"
    about: ClassVar[About] = About(
        reference="BIF14 at infinite order; for t = n the approximate leave-one-out of Rad & Maleki 2020",
        cost="one fit and O(n^2 + |A|^3) for each lambda, A the rows with curvature; O(n c^2 + t c^3) at rank c",
        against="a step may leave the curvature it was made with: such folds are refitted, and counted",
    )
    exact_refits: ClassVar[bool] = True

    def heldout(self, path: Path) -> HeldOut:
        """Return the outputs after one Newton step."""
        return path.newton_step()

    def reliability(self, path: Path) -> Array | None:
        """Return rho of each fit, NaN where all folds were refitted.

        None at a rank that is not the one in force, where the score is provisional.
        """
        return path.step_ratio
