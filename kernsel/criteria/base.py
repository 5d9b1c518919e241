"""What criteria are made of: scores along a path, and the family that looks at held-out outputs."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np

from kernsel import protocols, registry
from kernsel.errors import OptionError, PluginFailure
from kernsel.heldout.standard_error import standard_error
from kernsel.numerics.points import read_only
from kernsel.paths import HeldOut, Path
from kernsel.protocols import SupportsMeasure
from kernsel.representation.problem import Problem
from kernsel.types import Array


@dataclass(frozen=True)
class About:
    """What a user should know of a criterion before choosing it; a plugin's criterion may have one as ``about``.

    Parameters
    ----------
    reference : str
        Where it is from, with the number of the equation.
    cost : str
        For one kernel with its whole path of L lambda; n rows, rank c, t folds.
    needs : str
        What learners or tasks it is for; nothing if it is for all.
    against : str
        What is known against it; nothing if nothing is.
    weights : str
        What a weight of 2 is, where it is another thing than a row that is there twice; nothing where it isn't.
    """

    reference: str
    cost: str
    needs: str = ""
    against: str = ""
    weights: str = ""


@dataclass(frozen=True, eq=False)
class Scores:
    """What a criterion says of the L fits of a path.

    Parameters
    ----------
    score : (L,) array
        Lower is better; not looked at where ``failed`` has a reason.
    failed : list of L str or None
        Why there is no score.
    loss : (L,) array or None
        Mean held-out loss of the learner, which breaks ties; None if no held-out outputs were made.
    reliability : (L,) array or None
        Where the score rests on an approximation: the ratio rho of the influence series, from 0 (as good as exact)
        to 1 (the folds rule their own fits).
    heldout : HeldOut or None
        The held-out outputs, if the criterion made any.
    scored_by : list of L str or None
        The criterion that scored instead, where the one asked for is not to be trusted.
    score_se : (L,) array or None
        Standard error of the score over folds, if it is a mean over rows.
    terms : mapping of str to (L,) array
        What the score is the sum of, such as its ``fit`` and its ``penalty``, if it is a sum.
    values : (L, n) array or None
        What the score is the mean of over held-out rows, if it is one.
    norms : (L,) array or None
        Squared norms of the fits, if they came along with the score; NaN where they did not.
    """

    score: Array
    failed: list[str | None]
    loss: Array | None = None
    reliability: Array | None = None
    heldout: HeldOut | None = None
    scored_by: list[str | None] | None = None
    score_se: Array | None = None
    terms: Mapping[str, Array] = field(default_factory=dict)
    values: Array | None = None
    norms: Array | None = None


class Slopes(NamedTuple):
    """A criterion of one fit: its value, and its derivatives by the kernel's relevances theta (p,) and by log lambda.

    A criterion that has them has a method ``gradient(problem, learner, lam) -> Slopes``, for learners of the square
    loss and kernels with ``theta_vjp``; it raises ``numpy.linalg.LinAlgError`` where the ridge is below rounding.
    """

    value: float
    theta: Array
    lam: float

    @staticmethod
    def of(problem: Problem, lam: float, value: float, W: Array, slope: float) -> Slopes:
        """Make them from the derivatives W (n, n) by the entries of the Gram matrix, and from that by lambda."""
        return Slopes(value, problem.kernel.theta_vjp(problem.rows.X, W, problem.gram), lam * slope)


Criterion: TypeAlias = protocols.Criterion[Path, Scores]
"""What has ``score(path)``, as every criterion."""

SupportsGradient: TypeAlias = protocols.SupportsGradient[Path, Scores, Problem, Slopes]
"""A criterion that has ``gradient(problem, learner, lam)`` besides."""


@dataclass(frozen=True)
class HeldOutCriterion(ABC):
    """A mean over held-out outputs: ``(1/n) sum_j l(y_j, f^{-S(j)}(x_j))``.

    A subclass says how the outputs are got. The loss l is the learner's, averaged over its outputs, unless the
    subclass has a method ``measure(Y, F) -> (n,)`` from targets and held-out outputs, both (k, n).
    """

    name: ClassVar[str]

    @abstractmethod
    def heldout(self, path: Path) -> HeldOut:
        """Return the held-out outputs of a path."""

    def reliability(self, path: Path) -> Array | None:
        """Return rho of each fit of a path, or None if the outputs are exact."""
        return None

    def measured(self, loss: str) -> str:
        """Say what the score is, in words, for a learner with that loss."""
        return "its own measure" if hasattr(self, "measure") else f"mean held-out {loss}"

    def values(self, path: Path, F: Array) -> Array:
        """Return this criterion's measure (n,) of held-out outputs F (k, n) of a path, row by row."""
        Y = path.rows.Y
        if hasattr(self, "measure"):
            return measure_rows(self, Y, F)
        return np.asarray(path.learner.loss.value(Y, F).mean(axis=0))

    def score(self, path: Path) -> Scores:
        """Score a path; a fit whose mean is not finite has failed."""
        rows = path.rows
        held = self.heldout(path).clipped(rows)
        losses = path.learner.loss.values(rows.Y, held.f).mean(axis=0)
        loss, values = rows.mean(losses), losses
        if hasattr(self, "measure") or type(self).values is not HeldOutCriterion.values:
            values = np.full_like(losses, np.inf)
            for k in (k for k, reason in enumerate(held.failed) if reason is None):
                values[k] = self.values(path, held.f[:, k])
        score, score_se = rows.mean(values), standard_error(values, rows.starts, rows.s)
        reliability = None if held.exact.all() else self.reliability(path)
        failed = unless_finite(score, held.failed)
        return Scores(score, failed, loss, reliability, held, score_se=score_se, values=values, norms=held.norms)


def measure_rows(criterion: SupportsMeasure, Y: Array, F: Array) -> Array:
    """Return a criterion's own measure (n,) of outputs F for targets Y, both (k, n); PluginFailure if it is none."""
    values = np.asarray(criterion.measure(read_only(Y), read_only(F)))
    if values.shape != Y.shape[-1:] or values.dtype.kind not in "biuf":
        raise PluginFailure(
            f"{registry.maker_of(criterion) or criterion} failed: measure returned {values.dtype} of shape "
            f"{values.shape} for {Y.shape[-1]} rows; tell its authors, or do without it"
        )
    return values


@dataclass(frozen=True)
class PenalisedFit(ABC):
    """The training loss and a penalty: ``R_emp(f) + penalty``, with ``R_emp = (1/S) sum_i s_i V(y_i, f(x_i))``."""

    name: ClassVar[str]

    @abstractmethod
    def penalty(self, path: Path) -> Array:
        """Return the penalty of each fit of a path, (L,)."""

    def measured(self, loss: str) -> str:
        """Say what the score is, in words, for a learner with that loss."""
        return f"mean {loss} at the rows that were fitted, and a penalty"

    def score(self, path: Path) -> Scores:
        """Score a path; a fit that failed, or whose score is not finite, has failed."""
        fit, failed = empirical_risk(path)
        penalty = np.broadcast_to(np.asarray(self.penalty(path), np.float64), fit.shape)
        return Scores(fit + penalty, unless_finite(fit + penalty, failed), terms={"fit": fit, "penalty": penalty})


@dataclass(frozen=True)
class Penalty(ABC):
    """A penalty ``eta cost(K)`` that knows neither learner nor lambda.

    Parameters
    ----------
    eta : float or None
        Weight of the penalty. None: chosen by cross-validation, see ``kernsel.selection.eta``.
    """

    name: ClassVar[str]
    eta: float | None = 1.0

    def __post_init__(self) -> None:
        if self.eta is not None and not (isinstance(self.eta, Real) and 0 <= self.eta < math.inf):
            raise OptionError(f"criterion '{self.name}': eta must be a finite number of at least 0, not {self.eta!r}")

    @abstractmethod
    def cost(self, path: Path) -> float:
        """Return what the kernel of a path costs."""

    def penalty(self, path: Path) -> Array:
        """Return the penalty of each fit of a path, (L,)."""
        if self.eta is None:
            raise OptionError(f"criterion '{self.name}': eta has no value; give a number, or let select() choose one")
        return np.full(path.lams.size, self.eta * self.cost(path))


def empirical_risk(path: Path) -> tuple[Array, list[str | None]]:
    """Return the mean loss at the training rows of each fit, (L,), and why there is none."""
    rows, fits = path.rows, path.fits
    losses = path.learner.loss.values(rows.Y, fits.f).mean(axis=0)
    return np.asarray(losses @ rows.s / rows.total), HeldOut.of(fits.f, fits.status, exact=True).failed


def unless_finite(score: Array, failed: list[str | None]) -> list[str | None]:
    """Return the reasons why there is no score, with one for those that are not finite."""
    finite = np.isfinite(score)
    return [r or (None if ok else "the score is not finite") for r, ok in zip(failed, finite, strict=True)]
