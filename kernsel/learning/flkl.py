"""First-level kernel learning: relevances are learnt with the coefficients, under a penalty of their own (FLKL).

``min over f, b, theta >= 0 of (1/N) sum_i s_i (y_i - f(x_i) - b)^2 + lam |f|^2 + penalty |theta|^2``

with f in the space of the kernel of theta: equation (5) of Cawley & Talbot 2014, times 2/N, so that their lambda is
``N lam`` and their mu, as the penalty is called in results, ``N penalty``. The coefficients are solved for exactly,
theta descends by L-BFGS-B; only two numbers, ``lam`` and ``penalty``, are left to be selected, by Nelder and Mead's
simplex on their logarithms over the k-fold cross-validation of all that is learnt. A fold's fit has the same objective
on its own rows. Where the last descent has too many rows for their Gram matrix, f is a combination of the kernel
functions of some of them, the landmarks.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kernsel.criteria import Slopes
from kernsel.errors import SelectionError
from kernsel.folds.partition import Partition
from kernsel.kernels.base import Learnable
from kernsel.learning import descent
from kernsel.learning.descent import TOLERANCE, Box, DescentPoint, logarithm
from kernsel.learning.learned import LearningStep, Learnt
from kernsel.learning.start import Start
from kernsel.numerics.landmarks import uniform_landmarks
from kernsel.numerics.runtime.threads import share_each
from kernsel.numerics.square import firstlevel
from kernsel.parts import FULL_RANK_ROWS
from kernsel.protocols import Learner
from kernsel.types import Array

SPREAD = math.log(4.0)
"""Sides of the first simplex."""

LANDMARKS = 500
"""How many rows stand for all, where their Gram matrix would be too large."""

MOST_ROWS = 2**26 // LANDMARKS
"""The kernel values with the landmarks, and what is made of them, have half a gigabyte each."""

FINE = 1e-9
"""Tolerance of the last descent, on all rows."""

CLOSE = 0.05
"""A simplex whose sides are this short has found lambda and penalty, to 5 %."""


@dataclass(frozen=True, eq=False)
class TrainingCriterion(ABC):
    """The training criterion on some rows, as a function of the relevances.

    Parameters
    ----------
    kernel : Relevances
        Its own relevances don't count.
    learner : Learner
        Of the square loss.
    X, Y, s : (n, d), (k, n), (n,) arrays
        Rows, targets and weights.
    """

    kernel: Learnable
    learner: Learner
    X: Array
    Y: Array
    s: Array

    @abstractmethod
    def slopes(self, theta: Array, lam: float, penalty: float) -> Slopes:
        """Return the criterion with its derivatives by theta; lambda is not to be moved."""

    def minimise(
        self, start: Array, lam: float, penalty: float, box: Box, tolerance: float = TOLERANCE
    ) -> DescentPoint:
        """Return the relevances of the least criterion near ``start``."""
        return descent.on_scale(
            lambda theta, lam: logarithm(self.slopes(theta, lam, penalty)),
            DescentPoint(start, lam),
            box,
            tolerance=tolerance,
        )


class FirstLevel(TrainingCriterion):
    """The training criterion of first-level learning, from the whole Gram matrix of the rows."""

    def fit(self, theta: Array, lam: float) -> tuple[Array, firstlevel.Fit]:
        """Return the Gram matrix, and the exact solution for these relevances."""
        K = self.kernel.with_theta(theta)(self.X)
        return K, firstlevel.fit(K, self.Y, self.s, int(self.learner.bias), lam)

    def slopes(self, theta: Array, lam: float, penalty: float) -> Slopes:
        K, found = self.fit(theta, lam)
        by_theta = self.kernel.with_theta(theta).theta_vjp(self.X, firstlevel.slopes(found, lam), K)
        return Slopes(found.minimum + penalty * float(theta @ theta), by_theta + 2.0 * penalty * theta, 0.0)

    def predict(self, theta: Array, lam: float, X: Array) -> Array:
        """Return outputs (k, m) at new rows."""
        found = self.fit(theta, lam)[1]
        K = self.kernel.with_theta(theta)(X, self.X)
        return np.asarray(found.a @ K.T + found.b[:, None])


@dataclass(frozen=True, eq=False)
class OnLandmarks(TrainingCriterion):
    """The training criterion of first-level learning on the kernel functions of the landmarks (m, d) alone."""

    landmarks: Array

    def slopes(self, theta: Array, lam: float, penalty: float) -> Slopes:
        kernel, X, Z = self.kernel.with_theta(theta), self.X, self.landmarks
        C, W = kernel(X, Z), kernel(Z)
        value, by_C, by_W = firstlevel.fit_landmarks(C, W, self.Y, self.s, int(self.learner.bias), lam)
        by_theta = kernel.theta_vjp(X, by_C, C, Z) + kernel.theta_vjp(Z, by_W, W)
        return Slopes(value + penalty * float(theta @ theta), by_theta + 2.0 * penalty * theta, 0.0)


class CrossValidation:
    """The k-fold cross-validation of first-level kernel learning, as a function of lambda and penalty.

    Each fold begins where it ended for the values before: the simplex moves little at a time.

    Parameters
    ----------
    kernel : Relevances
        All folds begin with its relevances.
    """

    def __init__(self, rows: Partition, kernel: Learnable, learner: Learner, box: Box) -> None:
        self.rows, self.learner, self.box = rows, learner, box
        kept = [rows.kept(fold) for fold in range(rows.left.size)]
        self.folds = [FirstLevel(kernel, learner, rows.X[k], rows.Y[:, k], rows.s[k]) for k in kept]
        self.thetas = [np.array(kernel.theta)] * len(kept)

    def __call__(self, lam: float, penalty: float) -> float:
        """Return the mean held-out loss."""

        def learnt(fold: int) -> tuple[Array, Array]:
            theta = self.folds[fold].minimise(self.thetas[fold], lam, penalty, self.box).theta
            held = slice(self.rows.starts[fold], self.rows.starts[fold + 1])
            return theta, self.folds[fold].predict(theta, lam, self.rows.X[held])

        done = list(share_each(learnt, range(len(self.folds))))
        self.thetas = [theta for theta, _ in done]
        F = np.concatenate([outputs for _, outputs in done], axis=1)
        Y = self.rows.Y[:, : self.rows.held]
        return float(self.rows.mean(self.learner.loss.value(Y, F).mean(axis=0)))


class Trial(NamedTuple):
    """The score of a pair of lambda and penalty by cross-validation, and the mean over folds of the relevances (p,)."""

    value: float
    lam: float
    penalty: float
    theta: Array


def search(score: CrossValidation, lam: float, penalty: float, evaluations: int) -> list[Trial]:
    """Look for lambda and penalty by Nelder and Mead's simplex on their logarithms; return all pairs tried."""
    from scipy.optimize import minimize  # takes a while to import

    trials: list[Trial] = []
    failed: list[str] = []

    def at(logs: Array) -> float:
        lam, penalty = map(float, np.exp(logs))
        try:
            if not score.box.lams[0] <= lam <= score.box.lams[1]:
                raise SelectionError(f"lambda = {lam:.3g} is out of bounds")
            value = score(lam, penalty)
        except (np.linalg.LinAlgError, SelectionError) as error:
            failed.append(str(error))
            return math.inf
        trials.append(Trial(value, lam, penalty, np.mean(score.thetas, axis=0)))
        return value

    begin = np.log([lam, penalty])
    simplex = begin + SPREAD * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    minimize(
        at,
        begin,
        method="Nelder-Mead",
        options={"initial_simplex": simplex, "maxfev": evaluations, "xatol": CLOSE, "fatol": math.inf},
    )
    if not trials:
        raise SelectionError(f"first-level kernel learning failed for every lambda and mu; the first time: {failed[0]}")
    return trials


def learn_first_level(
    first: Partition, last: Partition, start: Start, learner: Learner, evaluations: int, most: int = FULL_RANK_ROWS
) -> Learnt:
    """Select lambda and penalty on the first rows, and learn the relevances with them on the last ones.

    Parameters
    ----------
    first, last : Rows
        Between them the ridge ``N lam`` and ``N penalty`` are kept.
    evaluations : int
        At most so many pairs of lambda and penalty are tried.
    most : int
        Of more rows landmarks stand for all.
    """
    score = CrossValidation(first, start.kernel, learner, start.box(first, 0.0))
    criterion = FirstLevel(start.kernel, learner, first.X, first.Y, first.s)
    penalty = balanced(criterion, np.array(start.kernel.theta), start.best.lam)
    trials = search(score, start.best.lam, penalty, evaluations)
    best = min(trials, key=lambda trial: trial.value)
    kept = first.total / last.total
    found = _on(last, start.kernel, learner, most).minimise(
        best.theta, best.lam * kept, best.penalty * kept, start.box(last, 0.0), FINE
    )
    steps = tuple(LearningStep(first.n, trial.value, trial.lam, trial.penalty) for trial in trials)
    return Learnt(found.theta, found.lam, best.penalty * kept, best.value, steps)


def _on(rows: Partition, kernel: Learnable, learner: Learner, most: int) -> TrainingCriterion:
    """Return the criterion on rows: on landmarks among them where they are too many."""
    if rows.n <= most:
        return FirstLevel(kernel, learner, rows.X, rows.Y, rows.s)
    landmarks = rows.X[uniform_landmarks(rows.n, LANDMARKS, rows.seed)]
    return OnLandmarks(kernel, learner, rows.X, rows.Y, rows.s, landmarks)


def balanced(criterion: FirstLevel, theta: Array, lam: float) -> float:
    """Return the penalty for which the criterion is stationary at ``theta`` along ``theta`` itself.

    Where a smaller theta would fit better anyway, a thousandth of the fit goes to the penalty.
    """
    fit = criterion.slopes(theta, lam, 0.0)
    size = float(theta @ theta)
    return max(-float(theta @ fit.theta) / (2.0 * size), 1e-3 * fit.value / size)
