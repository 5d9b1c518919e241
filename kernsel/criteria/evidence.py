"""The evidence of the square loss: how likely a Gaussian process makes the targets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import ClassVar

import numpy as np

from kernsel.criteria.base import About, Scores, Slopes, unless_finite
from kernsel.errors import OptionError
from kernsel.numerics.square import gradients
from kernsel.paths import Path
from kernsel.protocols import Learner
from kernsel.protocols.kernels import blocks_of
from kernsel.representation.problem import Problem
from kernsel.types import Array


@dataclass(frozen=True)
class Evidence:
    """Negative log marginal likelihood of a Gaussian process, its noise at its best, less what is constant.

    The targets are ``y = f + noise`` with f of covariance ``c K`` and noise of variance ``c N lambda / s_i``, N the sum
    of the weights s_i. With ``H = K + N lambda S^-1`` and ``Q = y' H^-1 y`` the best c is ``Q / n``, and the score is

        (n/2) log(Q / n) + (1/2) log det H
            = (n/2) log sigma^2 - (1/2) sum_i log s_i + (1/2) log det(I + S^1/2 K S^1/2 / (N lambda)),

    a fit, with the noise ``sigma^2 = N lambda Q / n``, and a penalty. A bias has a flat prior, which takes one of the n
    directions away and adds ``(1/2) log(1' H^-1 1)``: the restricted likelihood. A low rank is taken for the kernel.

    Where relevances are learnt they may have a log-normal prior, whose negative logarithm is added::

        (1 / (2 sigma^2)) sum_r (log theta_r - mean of log theta)^2

    over those that aren't 0, and each part of a sum or product of kernels has a mean of its own. The prior leaves the
    common scale free and keeps relevances from over-fitting. Scores of a grid have none of it.

    Parameters
    ----------
    sigma : float or None
        Standard deviation of the logarithms of relevances under their prior; None: no prior.

    Examples
    --------
    ::

        kernsel example diabetes diabetes.csv
        kernsel select diabetes.csv --kernel gaussian --folds 5 --criterion evidence
    """

    name: ClassVar[str] = "evidence"
    about: ClassVar[About] = About(
        reference="Rasmussen & Williams 2006, equations 2.30 and 5.8; Patterson & Thompson 1971 (with a bias)",
        cost="O(n^3) once, O(n) a lambda",
        needs="the square loss",
        against="it believes in Gaussian noise: on classes and heavy tails it judges a model that isn't meant",
        weights="a weight divides the variance of a row's noise: one of weight 2 is a single, more precise measurement",
    )

    bounds_ridge: ClassVar[bool] = True
    """Whether learning needs a lower bound of the ridge with rough kernels: they interpolate what is believed to be no
    noise."""

    sigma: float | None = None

    def __post_init__(self) -> None:
        if self.sigma is not None and not 0 < self.sigma < math.inf:
            raise OptionError(
                f"criterion 'evidence': sigma must be a finite number greater than 0, such as 0.5 or 1, "
                f"not {self.sigma!r}"
            )

    @property
    def positive(self) -> bool:
        """Whether relevances learnt by the criterion stay above 0: there are no logarithms of others."""
        return self.sigma is not None

    def measured(self, loss: str) -> str:
        """Say what the score is, in words."""
        return "negative log marginal likelihood, less a constant"

    def score(self, path: Path) -> Scores:
        """Score a path: the mean over outputs, each with a noise of its own."""
        left, rows, bias = path.spectral(f"criterion '{self.name}'").left_over(), path.rows, int(path.bias)
        n = left.directions
        squares = left.squares @ left.share.T + left.beyond[:, None]
        with np.errstate(divide="ignore"):  # nothing is left, or a share of 0: not finite, and failed
            fit = 0.5 * (n * np.log(squares / n).mean(axis=0) - np.log(rows.s).sum() + bias * np.log(rows.total))
            penalty = -0.5 * np.log(left.share).sum(axis=1)
        score = fit + penalty
        terms = {"fit": fit, "penalty": penalty}
        return Scores(score, unless_finite(score, left.failed), terms=terms, norms=left.norms)

    def gradient(self, problem: Problem, learner: Learner, lam: float) -> Slopes:
        """Return the score with its derivatives by the kernel's relevances and log lambda."""
        rows, kernel = problem.rows, problem.kernel
        found = Slopes.of(problem, lam, *gradients.evidence(problem.gram, rows.Y, rows.s, int(learner.bias), lam))
        value, slopes = prior(np.array(kernel.theta), self.sigma, blocks_of(kernel))
        return Slopes(found.value + value, found.theta + slopes, found.lam)


def prior(theta: Array, sigma: float | None, blocks: Sequence[int]) -> tuple[float, Array]:
    """Return the negative log-normal prior of relevances, less a constant, and its derivatives by them.

    Parameters
    ----------
    theta : (p,) array
    sigma : float or None
        None: no prior, 0.
    blocks : sequence of int
        How many relevances, one after another, share a mean of their logarithms.

    Returns
    -------
    value : float
    slopes : (p,) array
        0 for a relevance of 0.
    """
    slopes = np.zeros(theta.size)
    if sigma is None:
        return 0.0, slopes
    value = 0.0
    for lo, hi in pairwise([0, *accumulate(blocks)]):
        used = lo + np.flatnonzero(theta[lo:hi] > 0)
        if used.size:
            logs = np.log(theta[used])
            off = (logs - logs.mean()) / sigma**2
            value += 0.5 * float(off @ (logs - logs.mean()))
            slopes[used] = off / theta[used]
    return value, slopes
