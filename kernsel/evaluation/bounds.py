"""What is certain of a fit: bounds on its stability, its risk and the variance of its CV score.

``beta = max_i |K - K^i|_2`` bounds how much an output moves if one row is removed; so does the strong convexity of the
objective, mostly by less, and the least of all that holds is taken. The constants are not those printed in KS14 and
KSJ, of which some are wrong; each is derived here.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import NamedTuple

import numpy as np

from kernsel import registry
from kernsel.errors import OptionError
from kernsel.learners import Krr
from kernsel.protocols import Learner, require

ROUNDING = 1e-9
"""Relative, of a beta that a program has computed: it is kappa for rows that are far from all others."""


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
    forms : mapping of str to str
        Which of the bounds that hold is the least, of ``output``, ``stability`` and ``cv_variance``: see
        :func:`bounds`.
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
    forms: Mapping[str, str] = field(default_factory=dict)

    @property
    def vacuous_gap(self) -> bool:
        """Whether the bound on the risk says no more than that no loss is larger than Q."""
        return self.gap >= self.largest_loss

    @property
    def vacuous_variance(self) -> bool:
        """Whether the bound on the variance says no more than that losses are from 0 to Q: then it is ``Q^2 / 4``."""
        return self.cv_variance >= self.largest_loss**2 / 4


def bounds(
    learner: str | Learner = "krr",
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

    Of several bounds that hold the least is taken, and named in ``forms``. Without a bias all outputs are within F::

        krr   F = min(kappa M / lambda,    M sqrt(kappa / lambda))        "coefficients", "objective"
        svm   F = min(kappa / (2 lambda),  sqrt(V(0) kappa / lambda))

    by the largest coefficients, and by ``lambda |f|^2 <= J(0)``. No loss is larger than ``Q = (M + F)^2`` (krr), V of
    the margin -F (svm, at most ``1 + F``), and within outputs up to F a loss changes at most sigma times as much as the
    output, ``sigma = 2 M + 2 F`` (krr) or 1 (svm). Removing one of n rows changes any loss by at most gamma(n), the
    least of::

        krr   (C_1 beta + C_2) / (n - 1) sigma,   C_1 = kappa M / lambda^2,  C_2 = 2 kappa M / lambda
        svm   kappa^(3/4) / (sqrt(2) lambda) beta^(1/4) [1 + (beta / (4 kappa))^(1/4)]
        both  sigma^2 kappa / (lambda (n - 1/2))
        both  D, the largest difference of two losses

    by kernel stability ("beta": KSJ, Theorems 1 and 2), by strong convexity ("convexity"; without beta) and by the
    range of outputs ("range"). With probability ``1 - delta`` (Bousquet & Elisseeff 2002, Theorem 12)::

        R <= R_emp + 2 gamma + (4 n gamma + Q) sqrt(ln(1 / delta) / (2 n))

    The CV score is a mean over n rows. Replacing one row changes its own term by at most the range D of losses over n,
    and the fits of the other folds, on m rows or more, by one row out and one in; the variance is at most n / 4 times
    the square of the change (Efron & Stein 1981; Popoviciu), and at most ``D^2 / 4`` as that of anything within D::

        var(CV) <= (n / 4) [D / n + 2 (1 - 1/k) gamma(m)]^2               "Efron-Stein"
        var(CV) <= D^2 / 4                                                "range"

    with ``D = Q`` (krr) or ``V(-F) - V(F) <= 2 F`` (svm). KSJ's Theorem 5 has ``gamma(m)^2`` for krr, without the term
    of the row itself: as lambda grows that falls below the variance of the targets' squares themselves.

    Parameters
    ----------
    learner : str or Learner
        ``krr``, or ``svm`` without a bias.
    beta : float
        Kernel stability ``max_i |K - K^i|_2``, from :func:`kernsel.stability`; other norms are larger and make the
        bounds looser. At least kappa, as no such norm is below ``K_ii``.
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
    part = without_bias(registry.build("learner", learner)) if isinstance(learner, str) else learner
    check_bounded(part, lam=lam, n=n, M=M, folds=folds, delta=delta)
    _check_positive(beta=beta, kappa=kappa)
    if beta < kappa * (1 - ROUNDING):
        raise OptionError(
            f"bounds: beta = {beta:g} can't be below kappa = {kappa:g}, as |K - K^i| is at least K_ii for every row i; "
            "give both of one kernel, as kernsel.stability(X, kernel) has them: spectral and kappa"
        )
    m = n - -(-n // folds)
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):  # looked at below
        shape = (_of_krr if part.loss.square else _of_svm)(part, *map(np.float64, (beta, kappa, M, lam)))
        stability, by = shape.stability(n)
        others = 1.0 - (n // folds) / n
        change = shape.span / n + 2.0 * others * shape.stability(m)[0]
        cv_variance, cv_by = _least({"Efron-Stein": n / 4.0 * change**2, "range": shape.span**2 / 4.0})
        deviation = np.sqrt(np.log(1.0 / delta) / (2.0 * n))
        gap = 2.0 * stability + (4.0 * n * stability + shape.largest_loss) * deviation
    found = [float(value) for value in (shape.largest_loss, stability, gap, cv_variance)]
    if not np.isfinite(found).all():
        raise OptionError(f"bounds: lambda = {lam:g} is so small that they are beyond all numbers; give a larger one")
    forms = {"output": shape.output_by, "stability": by, "cv_variance": cv_by}
    given = (float(beta), float(kappa), float(M), float(lam), int(n), int(folds), float(delta))
    largest_loss, stability, gap, cv_variance = found
    return Bounds(part.name, *given, largest_loss, stability, gap, cv_variance, forms)


class _Shape(NamedTuple):
    """What the bounds are made of: Q and D, which form of F is the least, sigma, and the forms of gamma.

    ``by_beta`` is gamma(n) by kernel stability times ``n - 1`` to the power of ``rate``.
    """

    largest_loss: float
    span: float
    output_by: str
    slope: float
    by_beta: float
    rate: int
    by_convexity: float

    def stability(self, n: int) -> tuple[float, str]:
        """Return gamma(n), and which form it is."""
        return _least(
            {
                "beta": self.by_beta / (n - 1) ** self.rate,
                "convexity": self.by_convexity / (n - 0.5),
                "range": self.span,
            }
        )


def _of_krr(part: Learner, beta: float, kappa: float, M: float, lam: float) -> _Shape:
    F, by = _least({"coefficients": kappa * M / lam, "objective": M * np.sqrt(kappa / lam)})
    slope, largest = 2.0 * M + 2.0 * F, (M + F) ** 2
    outputs = kappa * M / lam**2 * beta + 2.0 * kappa * M / lam
    return _Shape(largest, largest, by, slope, outputs * slope, 1, slope**2 * kappa / lam)


def _of_svm(part: Learner, beta: float, kappa: float, M: float, lam: float) -> _Shape:
    def value(margin: float) -> float:
        return float(part.loss.value(np.ones((1, 1)), np.full((1, 1), margin))[0, 0])

    F, by = _least({"coefficients": kappa / (2.0 * lam), "objective": np.sqrt(value(0.0) * kappa / lam)})
    by_beta = kappa**0.75 / (np.sqrt(2.0) * lam) * beta**0.25 * (1.0 + (beta / (4.0 * kappa)) ** 0.25)
    return _Shape(value(-F), value(-F) - value(F), by, 1.0, by_beta, 0, kappa / lam)


def _least(forms: dict[str, float]) -> tuple[float, str]:
    """Return the least of some numbers, and its name; the first of equals."""
    name = min(forms, key=lambda name: float(forms[name]))
    return np.float64(forms[name]), name


def without_bias(learner: Learner) -> Learner:
    """Return a learner with the same loss for which there are bounds: they are of fits without a bias."""
    if _is_hinge(learner) and "bias" in {field.name for field in fields(learner)}:
        return replace(learner, bias=False)
    return Krr() if learner.bias and learner.loss.square else learner


def _is_hinge(learner: Learner) -> bool:
    """Tell whether a loss is the hinge but for a smooth kink: of slope 1 at the most."""
    return bool(learner.loss.hinge == 1)


def check_bounded(learner: Learner, *, lam: float, n: int, M: float, folds: int, delta: float) -> None:
    """Raise an error, before anything is computed, unless there are bounds for the learner and these numbers."""
    require(
        learner,
        lambda learner: (learner.loss.square or _is_hinge(learner)) and not learner.bias,
        f"the bounds of kernel stability are for krr and svm without a bias, not for '{learner.name}'"
        f"{' with a bias' * bool(learner.bias)}: use one of these",
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
