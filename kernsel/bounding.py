"""What kernel stability promises of a fit: bounds on its stability, its risk and the variance of its CV score.

``beta = max_i |K - K^i|_2`` bounds how much an output moves if one row is removed, and all else follows from that. The
constants are not those printed in KS14 and KSJ, of which some are wrong; each is derived here.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernsel import registry
from kernsel.errors import IncompatibleError, OptionError
from kernsel.learners import Krr, Svm


@dataclass(frozen=True)
class Bounds:
    """Bounds from kernel stability, as if beta, kappa and M were those of every sample of the distribution.

    Parameters
    ----------
    learner : str
        The learner's name.
    beta, kappa, M, lam, n, folds, delta : float
        What the bounds are functions of; see :func:`bounds`.
    largest_loss : float
        Q: no loss of such a fit is larger, for whatever sample.
    stability : float
        gamma: how much any loss may change if one row is removed.
    gap : float
        With probability 1 - delta the risk is at most the training loss and this.
    cv_variance : float
        The variance of the CV score over samples of n rows is at most this.
    """

    learner: str
    beta: float
    kappa: float
    M: float
    lam: float
    n: int
    folds: int
    delta: float
    largest_loss: float
    stability: float
    gap: float
    cv_variance: float

    @property
    def vacuous_gap(self) -> bool:
        """Whether the bound on the risk says no more than that no loss is larger than Q."""
        return self.gap >= self.largest_loss

    @property
    def vacuous_variance(self) -> bool:
        """Whether the bound on the variance says no more than that losses are from 0 to Q: then it is ``Q^2 / 4``."""
        return self.cv_variance >= self.largest_loss**2 / 4


def bounds(
    learner: str | Any = "krr",
    *,
    beta: float,
    kappa: float,
    lam: float,
    n: int,
    M: float = 1.0,
    folds: int = 10,
    delta: float = 0.05,
) -> Bounds:
    """Return the bounds on uniform stability, risk and variance of the CV score of a fit.

    Without a bias all outputs are within ``F = kappa M / lambda`` (krr), ``F = kappa / (2 lambda)`` (svm). Removing
    one of n rows changes any loss by at most ``gamma(n)``::

        krr   gamma(n) = (C_1 beta + C_2) / (n - 1) (2 M + 2 F),   C_1 = kappa M / lambda^2,  C_2 = 2 kappa M / lambda
        svm   gamma    = kappa^(3/4) / (sqrt(2) lambda) beta^(1/4) [1 + (beta / (4 kappa))^(1/4)]

    (KSJ, Theorems 1 and 2), and no loss is larger than ``Q = 2 F^2 + 2 M^2`` (krr) or ``1 + F`` (svm). With probability
    ``1 - delta`` (Bousquet & Elisseeff 2002, Theorem 12)::

        R <= R_emp + 2 gamma + (4 n gamma + Q) sqrt(ln(1 / delta) / (2 n))

    The CV score is a mean over n rows. Replacing one row changes its own term by at most Q / n, and the fits of the
    other folds, on m rows or more, by one row out and one in; the variance is at most n / 4 times the square of the
    change (Efron & Stein 1981; Popoviciu)::

        krr   var(CV) <= (n / 4) [Q / n + 2 (1 - 1/k) gamma(m)]^2
        svm   var(CV) <= F^2 <= gamma^2

    since the hinge loss is within F of 1. All are loose; for svm strong convexity alone gives ``gamma <= kappa /
    (lambda n)``, without beta. KSJ's Theorem 5 has ``gamma(m)^2`` for krr, without the term Q / n: as lambda
    grows that falls below the variance of the targets' squares themselves.

    Parameters
    ----------
    learner : str or Learner
        ``krr``, or ``svm`` without a bias.
    beta : float
        Kernel stability ``max_i |K - K^i|_2``, from :func:`kernsel.stability`; other norms are larger and make the
        bounds looser.
    kappa : float
        Largest k(x, x).
    lam : float
        Lambda of ``(1/n) sum_i V(y_i, f(x_i)) + lambda ||f||^2``.
    n : int
        Number of rows, at least 3.
    M : float
        Largest size of a target; 1 for classes, which are -1 and +1.
    folds : int
        Number k of folds, that differ by at most one row.
    delta : float
        Probability with which the bound on the risk may fail.

    Returns
    -------
    Bounds
        The three bounds and what they are functions of.

    Raises
    ------
    OptionError
        A number is out of its range.
    IncompatibleError
        There are no such bounds for the learner.
    """
    part = registry.build("learner", learner) if isinstance(learner, str) else learner
    check_bounded(part, lam=lam, n=n, M=M, folds=folds, delta=delta)
    _check_positive(beta=beta, kappa=kappa)
    m = n - -(-n // folds)
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):  # looked at below
        b, k, size, ridge = (np.float64(value) for value in (beta, kappa, M, lam))
        if isinstance(part, Krr):
            F = k * size / ridge
            largest_loss = 2.0 * F**2 + 2.0 * size**2
            moved = (k * size / ridge**2 * b + 2.0 * F) * (2.0 * size + 2.0 * F)
            stability = moved / (n - 1)
            others = 1.0 - (n // folds) / n
            cv_variance = n / 4.0 * (largest_loss / n + 2.0 * others * moved / (m - 1)) ** 2
        else:
            F = k / (2.0 * ridge)
            largest_loss = part.loss.value(np.ones((1, 1)), -F.reshape(1, 1))[0, 0]
            stability = k**0.75 / (np.sqrt(2.0) * ridge) * b**0.25 * (1.0 + (b / (4.0 * k)) ** 0.25)
            cv_variance = stability**2
        deviation = np.sqrt(np.log(1.0 / delta) / (2.0 * n))
        gap = 2.0 * stability + (4.0 * n * stability + largest_loss) * deviation
    found = [float(value) for value in (largest_loss, stability, gap, cv_variance)]
    if not np.isfinite(found).all():
        raise OptionError(f"bounds: lambda = {lam:g} is so small that they are beyond all numbers; give a larger one")
    return Bounds(part.name, float(beta), float(kappa), float(M), float(lam), int(n), int(folds), float(delta), *found)


def check_bounded(learner: Any, *, lam: float, n: int, M: float, folds: int, delta: float) -> None:
    """Raise an error, before anything is computed, unless there are bounds for the learner and these numbers."""
    if not isinstance(learner, Krr | Svm) or learner.bias:
        bias = " with a bias" * bool(learner.bias)
        raise IncompatibleError(
            f"the bounds of kernel stability are for krr and svm without a bias, not for '{learner.name}'{bias}: "
            "use one of these"
        )
    _check_positive(lam=lam, M=M)
    if not (isinstance(delta, numbers.Real) and 0 < delta < 1):
        raise OptionError(f"bounds: delta is a probability between 0 and 1, such as 0.05, not {delta!r}")
    for name, count, least in (("n", n, 3), ("folds", folds, 2)):
        if not (isinstance(count, numbers.Integral) and count >= least):
            raise OptionError(f"bounds: {name} must be a whole number from {least}, not {count!r}")
    if folds > n or n - -(-n // folds) < 2:
        raise OptionError(f"bounds: {folds} folds of {n} rows leave less than 2 rows to a fit; give other folds")


def _check_positive(**values: float) -> None:
    for name, value in values.items():
        if not (isinstance(value, numbers.Real) and 0 < value < math.inf):
            raise OptionError(f"bounds: {name} must be a finite number greater than 0, not {value!r}")
