"""Criteria for support vector machines from one fit on all rows: its margins, slacks and dual coefficients.

With the outputs f of the fit and ``N = sum s``, the dual coefficients are ``a_i = -s_i V'(y_i, f_i) / (2 N lambda)``,
so that ``f = K a + b``; ``y_i a_i`` is what the literature calls alpha_i, and ``1 / (2 N lambda)`` its C. A row is left
out with all its weight. Several outputs (one class against the others) are averaged. No folds are looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kernsel.criteria.base import About, HeldOutCriterion, PenalisedFit, Scores, empirical_risk, unless_finite
from kernsel.errors import OptionError
from kernsel.numerics.smooth import convergence
from kernsel.paths import HeldOut, Path
from kernsel.protocols import require
from kernsel.types import Array

HINGE, SQUARED_HINGE = 1, 2
"""Powers of the hinge, as losses say them."""

HINGES = {HINGE: ("huber-hinge", "svm"), SQUARED_HINGE: ("squared-hinge", "l2svm")}
"""The built-in losses and learners of these powers, for messages."""

BALL = "the smallest ball around the rows was not found"


def need_hinge(criterion: str, path: Path, *powers: int) -> None:
    """Raise IncompatibleError if the loss of a path's learner is no hinge of one of these powers."""
    losses, learners = (" or ".join(each) for each in zip(*(HINGES[power] for power in powers), strict=True))
    require(
        path.learner,
        lambda learner: learner.loss.hinge in powers,
        f"criterion '{criterion}' needs the {losses} loss; learner '{path.learner.name}' has another: use {learners}, "
        "or the criterion newton-cv",
    )


def dual_coefficients(path: Path) -> Array:
    """Return ``a_i = -s_i V'(y_i, f_i) / (2 N lambda)`` of each fit, (k, L, n)."""
    rows = path.rows
    _, d1, _ = path.learner.loss.expand(rows.Y, rows.s, path.fits.f)
    return np.asarray(-d1 / (2.0 * rows.total * path.lams[:, None]))


@dataclass(frozen=True)
class GACV(PenalisedFit):
    """Generalised approximate cross-validation: ``R_emp + (1/N) sum_i s_i w_i y_i a_i K_ii``.

    The weight w_i is 2 where ``y_i f_i < -1``, else 1 (Wahba, Lin & Zhang 2000). It estimates the leave-one-out hinge
    loss from above: leaving row i out lowers ``y_i f_i`` by ``y_i a_i K_ii`` at most, if there is no bias.

    Examples
    --------
    ::

        kernsel example wine wine.csv
        kernsel select wine.csv --kernel gaussian --learner svm --folds 5 --criterion gacv
    """

    name: ClassVar[str] = "gacv"
    about: ClassVar[About] = About(
        reference="Wahba, Lin & Zhang, GACV for support vector machines, Advances in Large Margin Classifiers, 2000",
        cost="O(n) beyond the fits",
        needs="svm",
        against="It bounds the leave-one-out loss from above, loosely for small lambda.",
        weights="a row is left out with all its weight: one of weight 2 is not one of two copies",
    )

    def score(self, path: Path) -> Scores:
        """Score a path of an svm."""
        need_hinge(self.name, path, HINGE)
        return super().score(path)

    def penalty(self, path: Path) -> Array:
        """Return the mean of ``w_i y_i a_i K_ii`` for each fit."""
        rows, Y = path.rows, path.rows.Y[:, None, :]
        doubled = 1.0 + (Y * path.fits.f < -1.0)
        falls = (doubled * Y * dual_coefficients(path)).mean(axis=0) * path.representation.squared_lengths
        return np.asarray(falls @ rows.s / rows.total)


@dataclass(frozen=True)
class Span(HeldOutCriterion):
    """Leave-one-out error by spans: the share of rows with ``y_i f_i - y_i a_i S_i^2 < 0``.

    ``S_i`` is the distance of row i in feature space from the span of the other support vectors (see
    ``numerics.smooth.span``). With a smooth loss that is one Newton step at the same ridge, approximate leave-one-out
    (ALO), and the outputs ``f_i - a_i S_i^2`` are held-out outputs. An output of 0 counts half.

    Examples
    --------
    ::

        kernsel example wine wine.csv
        kernsel select wine.csv --kernel gaussian --learner svm --folds 5 --criterion span
    """

    name: ClassVar[str] = "span"
    about: ClassVar[About] = About(
        reference="Vapnik & Chapelle, Bounds on error expectation for SVM, Neural Computation 12, 2000; here smoothed",
        cost="O(L n^3) with a Gram matrix, O(L n c^2) at rank c, beyond the fits",
        needs="svm or l2svm",
        against="A share of rows has many ties, which the hinge loss of the same outputs breaks.",
        weights="a row is left out with all its weight: one of weight 2 is not one of two copies",
    )

    def heldout(self, path: Path) -> HeldOut:
        """Return ``f_i - a_i S_i^2``: each row predicted without itself."""
        need_hinge(self.name, path, *HINGES)
        rows, fits = path.rows, path.fits
        _, d1, d2 = path.learner.loss.expand(rows.Y, rows.s, fits.f)
        f, status = fits.f.copy(), fits.status.copy()
        for c, k in np.argwhere(status == convergence.CONVERGED):
            mu = 2.0 * rows.total * float(path.lams[k])
            S2, status[c, k] = path.representation.spans(path.bias, d1[c, k], d2[c, k], mu)
            f[c, k] += d1[c, k] / mu * S2
        return HeldOut.of(f, status, exact=False)

    def measure(self, Y: Array, F: Array) -> Array:
        """Return the share of outputs with the wrong sign, row by row."""
        return np.asarray((0.5 - 0.5 * np.sign(Y * F)).mean(axis=0))


@dataclass(frozen=True)
class XiAlpha:
    """Bound on the leave-one-out error: the share of rows with ``rho y_i a_i R_i^2 + xi_i >= 1``, ``xi = (1 - y f)_+``.

    With a bias ``R^2`` is the difference between the largest and the smallest entry of K and rho is 2 (Joachims
    2000). Without one, leaving row i out lowers ``y_i f_i`` by ``y_i a_i K_ii`` at most (Jaakkola & Haussler
    1999): ``R_i^2 = K_ii`` and rho is 1.

    Parameters
    ----------
    rho : float or None
        The factor, greater than 0; None for that of the theory. Joachims' own program takes 1.

    Examples
    --------
    ::

        kernsel example wine wine.csv
        kernsel select wine.csv --kernel gaussian --learner svm --folds 5 --criterion xi-alpha
    """

    name: ClassVar[str] = "xi-alpha"
    about: ClassVar[About] = About(
        reference="Joachims, Estimating the generalization performance of an SVM efficiently, ICML 2000",
        cost="O(n) beyond the fits; O(n^2) with a bias, O(n^2 c) at rank c",
        needs="svm, or l2svm without a bias",
        against="For small lambda it counts nearly every support vector.",
        weights="a row is left out with all its weight: one of weight 2 is not one of two copies",
    )

    rho: float | None = None

    def __post_init__(self) -> None:
        if self.rho is not None and not 0 < self.rho < np.inf:
            raise OptionError(f"criterion 'xi-alpha': rho must be greater than 0, such as 1 or 2, not {self.rho!r}")

    def score(self, path: Path) -> Scores:
        """Score a path; ties are broken by the hinge loss of the same lowered margins."""
        need_hinge(self.name, path, *((HINGE,) if path.bias else HINGES))
        rows, Y = path.rows, path.rows.Y[:, None, :]
        rho = (2.0 if path.bias else 1.0) if self.rho is None else self.rho
        reach = path.representation.spread() if path.bias else path.representation.squared_lengths
        lowered = np.minimum(Y * path.fits.f, 1.0) - rho * Y * dual_coefficients(path) * reach
        share, loss = (np.asarray(v.mean(axis=0) @ rows.s / rows.total) for v in (lowered <= 0.0, 1.0 - lowered))
        return Scores(share, empirical_risk(path)[1], loss)


@dataclass(frozen=True)
class RadiusMargin:
    """Radius-margin bound on the leave-one-out error, ``R^2 ||w||^2 / n``, for soft margins.

    For the squared hinge every row has a coordinate of its own for its slack: R is the radius of the smallest ball
    around the rows in the feature space of ``K + N lambda S^-1``, and ``||w||^2 = J / lambda`` with the minimum J of
    the objective (Chapelle et al. 2002). For the hinge loss with ``C = 1 / (2 n lambda)`` the bound is
    ``(R^2 + 1 / C) (||w||^2 + 2 C sum xi) / n``, R that of K (Chung et al. 2003, with Delta = 1); its second factor is
    ``J / lambda`` again.

    Examples
    --------
    ::

        kernsel example wine wine.csv
        kernsel select wine.csv --kernel gaussian --learner l2svm --folds 5 --criterion radius-margin
    """

    name: ClassVar[str] = "radius-margin"
    about: ClassVar[About] = About(
        reference="Chapelle et al., Machine Learning 46, 2002; for the hinge Chung et al., Neural Computation 15, 2003",
        cost="O(n^2) to O(n^3) for the ball, O(n^2 c) at rank c; for l2svm one for each lambda",
        needs="svm or l2svm",
        against="It is far above the error; for svm, and without a bias, it is no strict bound.",
        weights="a row is left out with all its weight, and n counts rows",
    )

    def score(self, path: Path) -> Scores:
        """Score a path."""
        need_hinge(self.name, path, *HINGES)
        rows, loss = path.rows, path.learner.loss
        failed = empirical_risk(path)[1]
        v, _, _ = loss.expand(rows.Y, rows.s, path.fits.f)
        squared_norm = np.einsum("kln,kln->kl", dual_coefficients(path), path.fits.f)  # a bias is no part: sum a = 0
        margin = (v @ rows.s / rows.total / path.lams + squared_norm).mean(axis=0)
        radius, unfinished = self._radius(path)
        score = radius * margin / rows.n
        reasons = [r or (BALL if late else None) for r, late in zip(failed, unfinished, strict=True)]
        return Scores(score, unless_finite(score, reasons))

    def _radius(self, path: Path) -> tuple[Array, list[bool]]:
        """Return R^2 for each lambda, softened, and where it was not found."""
        rows, found = path.rows, path.representation.squared_radius
        beta = np.full(rows.n, 1.0 / rows.n)
        if path.learner.loss.hinge == HINGE:
            radius, status = found(np.zeros(rows.n), beta)
            return radius + 2.0 * rows.n * path.lams, [status != convergence.CONVERGED] * path.lams.size
        balls = [found(rows.total * lam / rows.s, beta) for lam in path.lams]
        return np.array([radius for radius, _ in balls]), [status != convergence.CONVERGED for _, status in balls]
