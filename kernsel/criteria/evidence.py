"""The evidence of the square loss: how likely a Gaussian process makes the targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kernsel.criteria.base import About, Scores, Slopes, need_square_loss, unless_finite
from kernsel.numerics import gradients
from kernsel.paths import Path
from kernsel.problem import Problem


@dataclass(frozen=True)
class Evidence:
    """Negative log marginal likelihood of a Gaussian process, its noise at its best, less what is constant.

    The targets are ``y = f + noise`` with f of covariance ``c K`` and noise of variance ``c N lambda / s_i``, N the sum
    of the weights s_i. With ``H = K + N lambda S^-1`` and ``Q = y' H^-1 y`` the best c is ``Q / n``, and the score is

        (n/2) log(Q / n) + (1/2) log det H
            = (n/2) log sigma^2 - (1/2) sum_i log s_i + (1/2) log det(I + S^1/2 K S^1/2 / (N lambda)),

    a fit, with the noise ``sigma^2 = N lambda Q / n``, and a penalty. A bias has a flat prior, which takes one of the n
    directions away and adds ``(1/2) log(1' H^-1 1)``: the restricted likelihood. A low rank is taken for the kernel.
    """

    name: ClassVar[str] = "evidence"
    about: ClassVar[About] = About(
        reference="Rasmussen & Williams 2006, equations 2.30 and 5.8; Patterson & Thompson 1971 (with a bias)",
        cost="O(n^3) once, O(n) a lambda",
        needs="the square loss",
        against="it believes in Gaussian noise: on classes and heavy tails it judges a model that isn't meant",
        weights="a weight divides the variance of a row's noise: one of weight 2 is a single, more precise measurement",
    )

    def measured(self, loss: str) -> str:
        """Say what the score is, in words."""
        return "negative log marginal likelihood, less a constant"

    def score(self, path: Path) -> Scores:
        """Score a path: the mean over outputs, each with a noise of its own."""
        left, rows, bias = need_square_loss(self.name, path).left_over(), path.rows, int(path.bias)
        n = left.directions
        squares = left.squares @ left.share.T + left.beyond[:, None]
        with np.errstate(divide="ignore"):  # nothing is left, or a share of 0: not finite, and failed
            fit = 0.5 * (n * np.log(squares / n).mean(axis=0) - np.log(rows.s).sum() + bias * np.log(rows.total))
            penalty = -0.5 * np.log(left.share).sum(axis=1)
        score = fit + penalty
        return Scores(score, unless_finite(score, left.failed), terms={"fit": fit, "penalty": penalty})

    def gradient(self, problem: Problem, learner: Any, lam: float) -> Slopes:
        """Return the score with its derivatives by the kernel's relevances and log lambda."""
        rows = problem.rows
        return Slopes.of(problem, lam, *gradients.evidence(problem.gram, rows.Y, rows.s, int(learner.bias), lam))
