"""Leave-one-out by formulas: what is said of the fit without each single row, whatever the folds of a selection are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from kernsel.criteria.base import About, Scores, Slopes, unless_finite
from kernsel.criteria.crossvalidation import NewtonCV
from kernsel.data.target import chosen_classes, class_codes
from kernsel.errors import IncompatibleError
from kernsel.numerics.square import gradients
from kernsel.paths import Path
from kernsel.protocols import Learner
from kernsel.representation.problem import Problem
from kernsel.types import Array


@dataclass(frozen=True)
class LOO(NewtonCV):
    """Mean held-out loss of the learner, one row left out at a time: ``(1/n) sum_i V(y_i, f^{-i}(x_i))``.

    Exact for the square loss, where ``y_i - f^{-i}(x_i) = (A y)_i / A_ii`` with ``A = (K + (n - 1) lambda I)^-1``; one
    Newton step from the fit on all rows for any other. Rows that no fold holds out aren't left out here either.

    Examples
    --------
    ::

        kernsel example diabetes diabetes.csv
        kernsel select diabetes.csv --kernel gaussian --folds 5 --criterion loo
    """

    name: ClassVar[str] = "loo"
    about: ClassVar[About] = About(
        reference="Allen 1974 (PRESS, the square loss); Rad & Maleki 2020 (one Newton step a row, other losses)",
        cost="square loss: O(n^3) once, O(n^2) a lambda; others: O(n |A|^2) a lambda beyond the fit, A the curved rows",
        against="of high variance, and blind to groups and to the order of the rows",
        weights="a row is left out with all its weight: one of weight 2 is not one of two copies",
    )

    def measured(self, loss: str) -> str:
        """Say what the score is, in words, for a learner with that loss."""
        return f"mean {loss}, one row left out at a time"

    def score(self, path: Path) -> Scores:
        """Score a path; the held-out outputs are left out, as they are not those of the selection's folds."""
        scores = super().score(path.one_by_one)
        return scores if path.one_by_one is path else replace(scores, heldout=None)

    def gradient(self, problem: Problem, learner: Learner, lam: float) -> Slopes:
        """Return the score of the square loss with its derivatives by the kernel's relevances and log lambda."""
        rows, alone = problem.rows, np.arange(problem.rows.held + 1)
        found = gradients.cross_validation(problem.gram, rows.Y, rows.s, int(learner.bias), lam, alone)
        return Slopes.of(problem, lam, *found)


@dataclass(frozen=True)
class ELOO(LOO):
    """Efficient leave-one-out for the square loss: PRESS, ``(1/n) sum_i w_i r_i^2`` with ``r_i = (A y)_i / A_ii``.

    Parameters
    ----------
    weighted : bool
        Let all classes count the same: with the c classes and the n_j rows of class j, ``w_i = n / (c n_j)``.
    zero_one : bool
        Count mistakes instead of squared residuals; with ``weighted`` that is the balanced error rate.

    Examples
    --------
    ::

        kernsel example wine wine.csv
        kernsel select wine.csv --kernel gaussian --folds 5 --criterion "eloo(weighted=true)"
    """

    name: ClassVar[str] = "eloo"
    about: ClassVar[About] = About(
        reference="Cawley 2006: PRESS, weighted PRESS, and the error rates",
        cost="O(n^3) once, O(n^2) a lambda",
        needs="the square loss; classes where it is weighted or counts mistakes",
        against="of high variance; with zero_one nearly all candidates are tied with some other",
        weights="a row is left out with all its weight: one of weight 2 is not one of two copies",
    )

    weighted: bool = False
    zero_one: bool = False

    def measured(self, loss: str) -> str:
        """Say what the score is, in words, for a learner with that loss."""
        what = super().measured("0-1 loss" if self.zero_one else loss)
        return what + ", all classes counting the same" * self.weighted

    def score(self, path: Path) -> Scores:
        """Score a path by one of the four measures."""
        path.spectral(f"criterion '{self.name}'")
        if (self.weighted or self.zero_one) and not (np.abs(path.rows.Y) == 1).all():
            raise IncompatibleError(
                f"criterion '{self.name}' with weighted or zero_one needs classes, and this is a regression: leave "
                "both out"
            )
        return super().score(path)

    def gradient(self, problem: Problem, learner: Learner, lam: float) -> Slopes:
        """Return the plain score with its derivatives by the kernel's relevances and log lambda."""
        if self.weighted or self.zero_one:
            raise IncompatibleError(
                f"criterion '{self.name}' with weighted or zero_one has no gradient: leave both out"
            )
        return super().gradient(problem, learner, lam)

    def values(self, path: Path, F: Array) -> Array:
        """Return the measure (n,) of held-out outputs F (k, n), row by row."""
        rows, codes = path.rows, class_codes(path.rows.Y)
        values = (chosen_classes(F) != codes).astype(np.float64) if self.zero_one else super().values(path, F)
        if not self.weighted:
            return values
        held = codes[: rows.held]
        totals = np.bincount(held, rows.s[: rows.held], codes.max() + 1)
        present = totals > 0
        share = np.divide(totals.sum() / np.count_nonzero(present), totals, out=np.zeros(totals.size), where=present)
        return np.asarray(values * share[codes])


@dataclass(frozen=True)
class GCV:
    """Generalised cross-validation, ``(1/n) |(I - H) y|^2 / (tr(I - H) / n)^2`` with ``H = K (K + n lambda I)^-1``.

    It is PRESS of the same H with the mean of its diagonal in place of each element. A bias is part of H. Weights s
    count in the fit and in the mean of the squared residuals; the mean of the diagonal is over rows.

    Examples
    --------
    ::

        kernsel example diabetes diabetes.csv
        kernsel select diabetes.csv --kernel gaussian --folds 5 --criterion gcv
    """

    name: ClassVar[str] = "gcv"
    about: ClassVar[About] = About(
        reference="Golub, Heath & Wahba 1979",
        cost="O(n^3) once, O(n) a lambda",
        needs="the square loss",
        against="near interpolation rows differ in their leverage, and it may choose the narrowest kernel of all",
        weights="degrees of freedom are shares of the rows, not of their weight",
    )

    def measured(self, loss: str) -> str:
        """Say what the score is, in words, for a learner with that loss."""
        return f"mean {loss} of the fit, divided by the squared share of the degrees of freedom that it leaves"

    def score(self, path: Path) -> Scores:
        """Score a path: the mean over outputs."""
        left = path.spectral(f"criterion '{self.name}'").left_over()
        squares = (left.squares @ (left.share**2).T + left.beyond[:, None]).mean(axis=0) / path.rows.total
        degrees = (left.share.sum(axis=1) + left.outside) / path.rows.n
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # what is not finite has failed
            score = squares / degrees**2
        return Scores(score, unless_finite(score, left.failed), norms=left.norms)


@dataclass(frozen=True)
class BR:
    """Bayesian regularisation of PRESS: ``(n/2) log Q + (d/2) log Omega``.

    ``Q = (1/2) sum_i r_i^2`` of the leave-one-out residuals, and ``Omega = (1/2) |eta|^2`` of the d scales eta of the
    kernel, as in ``exp(-eta |x - z|^2)``. The noise of the residuals and a Gaussian prior of eta have variances of
    their own, which are integrated out. Several outputs have a noise each.

    Examples
    --------
    ::

        kernsel example diabetes diabetes.csv
        kernsel select diabetes.csv --kernel gaussian --folds 5 --criterion br
    """

    name: ClassVar[str] = "br"
    about: ClassVar[About] = About(
        reference="Cawley & Talbot 2007",
        cost="O(n^3) once, O(n^2) a lambda",
        needs="the square loss; a kernel with a width",
        against="it falls without bound as the scales go to 0: the end of the grid is part of what is chosen",
        weights="a row is left out with all its weight, and n counts rows",
    )
    unbounded_in: ClassVar[tuple[str, ...]] = ("kernel",)
    unbounded: ClassVar[str] = "br falls without bound as kernels widen"

    def measured(self, loss: str) -> str:
        """Say what the score is, in words."""
        return "log of the leave-one-out error and of the kernel's scales"

    def score(self, path: Path) -> Scores:
        """Score a path: the mean over outputs."""
        path.spectral(f"criterion '{self.name}'")
        eta = np.array(getattr(path.problem.kernel, "scales", ()))
        if not eta.any():
            raise IncompatibleError(
                f"criterion '{self.name}' needs a kernel with a width, and '{path.problem.kernel}' has none: use "
                "another kernel, such as gaussian, or the criterion loo"
            )
        held, rows = path.one_by_one.exact(), path.rows
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # what is not finite has failed
            press = rows.mean((held.f - rows.Y[:, None, :]) ** 2)
            fit = 0.5 * rows.held * np.log(0.5 * rows.held * press).mean(axis=0)
        penalty = np.full(fit.shape, 0.5 * eta.size * np.log(0.5 * eta @ eta))
        score, terms = fit + penalty, {"fit": fit, "penalty": penalty}
        return Scores(score, unless_finite(score, held.failed), terms=terms, norms=held.norms)

    def gradient(self, problem: Problem, learner: Learner, lam: float) -> Slopes:
        """Return the score with its derivatives by the kernel's relevances, which are its scales, and log lambda."""
        rows, eta = problem.rows, np.array(problem.kernel.theta)
        found = gradients.bayesian_regularisation(problem.gram, rows.Y, rows.s, int(learner.bias), lam, rows.starts)
        fit, omega = Slopes.of(problem, lam, *found), 0.5 * float(eta @ eta)
        penalty = 0.5 * eta.size * float(np.log(omega))
        return Slopes(fit.value + penalty, fit.theta + 0.5 * eta.size * eta / omega, fit.lam)
