"""Class probabilities from held-out outputs.

An output f becomes the probability of its class by a curve that is fitted on held-out outputs, which the fits have not
seen: the sigmoid ``1 / (1 + exp(-(a f + b)))`` of Platt (1999), the same without b (temperature), an isotonic step
function, or that of Venn and Abers: see ``heldout.vennabers``. For two classes that is
the probability of the second label. For more, outputs are coupled: see ``heldout.coupling``; or each class has its own
curve (one against the rest), and the probabilities of a row are divided by their sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernsel.errors import OptionError
from kernsel.heldout.counts import as_counts, platt_targets
from kernsel.heldout.coupling import softmax
from kernsel.heldout.standard_error import blocks_of
from kernsel.heldout.vennabers import VennAbers, venn_abers
from kernsel.protocols import Learner
from kernsel.types import Array, Indices

KINDS = ("sigmoid", "isotonic", "venn-abers", "temperature", "softmax", "none")
STEPS = 100
"""Newton steps for the sigmoid: far more than a smooth convex function of two variables takes."""

LEAST = 1e-290
"""A slope over so small a spread of the outputs would be no number."""


LEAST_SLOPE = 1e-12
"""Relative: a slope is known to so much; and one over it is as steep as log-odds can be told."""


def _sigmoid(z: Array) -> Array:
    """Return ``1 / (1 + exp(-z))``; scipy.special takes a tenth of a small selection's time to import."""
    return np.asarray(np.exp(-np.logaddexp(0.0, -z)))


@dataclass(frozen=True)
class Sigmoid:
    """The curve ``1 / (1 + exp(-(slope f + offset)))``."""

    slope: float
    offset: float

    def __call__(self, f: Array) -> Array:
        """Return the probabilities of outputs of any shape."""
        return _sigmoid(self.slope * f + self.offset)


@dataclass(frozen=True)
class Isotonic:
    """A curve that never falls: straight between its points, level before the first and after the last.

    Parameters
    ----------
    f, p : tuple of float
        Outputs, ascending, and their probabilities.
    """

    f: tuple[float, ...]
    p: tuple[float, ...]

    def __call__(self, f: Array) -> Array:
        """Return the probabilities of outputs of any shape."""
        return np.asarray(np.interp(f, self.f, self.p))


@dataclass(frozen=True)
class Calibration:
    """One curve for each output of a classifier.

    Parameters
    ----------
    kind : str
        How the curves were had; with "none" the learner's outputs are log-odds, with "softmax" they are coupled, with
        "temperature" all are divided by one number and then taken for log-odds.
    curves : tuple of Sigmoid, Isotonic or VennAbers
        One for two classes, else one a class; none of softmax.
    """

    kind: str
    curves: tuple[Sigmoid | Isotonic | VennAbers, ...]

    def probabilities(self, F: Array) -> Array:
        """Return the probabilities (n, classes) of outputs ``F (k, n)``; those of a row sum to 1."""
        if self.kind == "softmax":
            return softmax(F)
        if self.kind == "temperature" and len(F) > 1:
            return softmax(np.stack([curve.slope for curve in self.curves if isinstance(curve, Sigmoid)])[:, None] * F)
        P = np.stack([curve(f) for curve, f in zip(self.curves, F, strict=True)], axis=1)
        if P.shape[1] == 1:
            return np.hstack([1 - P, P])
        total = P.sum(axis=1, keepdims=True)
        uniform = np.full_like(P, 1 / P.shape[1])
        return np.asarray(np.divide(P, total, out=uniform, where=total > 0))

    def to_json(self) -> dict[str, Any]:
        """Return a description that JSON can hold."""
        return {"kind": self.kind, "curves": [vars(curve) for curve in self.curves]}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Calibration:
        """Build it again."""
        curves = document["curves"]
        if document["kind"] == "softmax":
            return cls("softmax", ())
        if document["kind"] == "isotonic":
            return cls("isotonic", tuple(Isotonic(tuple(curve["f"]), tuple(curve["p"])) for curve in curves))
        if document["kind"] == "venn-abers":
            return cls("venn-abers", tuple(VennAbers(*map(tuple, (c["f"], c["at"], c["between"]))) for c in curves))
        return cls(document["kind"], tuple(Sigmoid(curve["slope"], curve["offset"]) for curve in curves))


def read_calibration(calibration: str | None, learner: Learner, task: str, classes: int) -> str | None:
    """Return the kind of calibration; None for a regression.

    By default that is "sigmoid" for two classes, and "softmax" for more.

    Raises
    ------
    OptionError
        There is no such kind, the task is a regression, "softmax" is asked for and there are two classes, or "none" and
        the learner's outputs aren't log-odds.
    """
    if calibration is None:
        return None if task != "classification" else "softmax" if classes > 2 else "sigmoid"
    if calibration not in KINDS:
        raise OptionError(f"calibration {calibration!r} is unknown: use {', '.join(KINDS)}")
    if task != "classification":
        raise OptionError(f"calibration {calibration!r} is for classes, and this is a {task}: leave it out")
    if calibration == "softmax" and classes == 2:
        raise OptionError("calibration 'softmax' couples the outputs of more than two classes: use sigmoid or isotonic")
    if calibration == "none" and not getattr(learner, "log_odds", False):
        raise OptionError(
            f"calibration 'none' needs a learner with probabilities of its own, and '{learner.name}' has none: "
            "use sigmoid, isotonic, venn-abers or temperature"
        )
    return calibration


def calibrate(kind: str, F: Array, Y: Array, s: Array) -> Calibration:
    """Fit the curves on held-out outputs.

    Parameters
    ----------
    kind : str
        One of ``KINDS``.
    F, Y : (k, n) arrays
        Held-out outputs (of softmax: coupled), and classes as -1 and +1.
    s : (n,) array
        Weights of the rows: counts if all are whole numbers, else only their ratios count.
    """
    if kind == "softmax":
        return Calibration(kind, ())
    if kind == "none":
        return Calibration(kind, (Sigmoid(1.0, 0.0),) * len(F))
    if kind == "temperature":
        return Calibration(kind, (Sigmoid(temperature(F, Y, s), 0.0),) * len(F))
    return Calibration(kind, tuple(FITS[kind](f, y, s) for f, y in zip(F, Y, strict=True)))


def cross_fitted(kind: str, F: Array, Y: Array, s: Array, starts: Indices) -> Array:
    """Return the probabilities (n, classes) of held-out rows by curves that were fitted without their block of folds.

    So no row has a part in its own curve. (It has one in the fits behind the outputs that the curve was fitted on, as
    in every calibration that is nested in one cross-validation.) For one fold alone there is no curve: NaN.

    Parameters
    ----------
    kind : str
        One of ``KINDS``.
    F, Y : (k, n) arrays
        As in ``calibrate``, sorted by fold.
    s : (n,) array
        Weights of the rows.
    starts : (t + 1,) array
        Bounds of the folds; the last one is n.
    """
    if kind == "softmax":
        return softmax(F)
    blocks = blocks_of(starts)
    P = np.full((F.shape[1], max(2, len(F))), np.nan)
    for block in range(blocks.max() + 1 if blocks.any() else 0):
        own = blocks == block
        P[own] = calibrate(kind, F[:, ~own], Y[:, ~own], s[~own]).probabilities(F[:, own])
    return P


def platt(f: Array, y: Array, s: Array) -> Sigmoid:
    """Fit a sigmoid by damped Newton steps on ``sum_i s_i (log(1 + exp(z_i)) - t_i z_i)``, ``z = a f + b``.

    The targets are ``t = (N_+ + 1) / (N_+ + 2)`` for the rows of the class and ``1 / (N_- + 2)`` for the others, with
    the numbers of rows ``N`` (Platt 1999): see ``heldout.counts``. Whole weights are counts, a row of weight 2 one that
    is there twice.
    """
    s = as_counts(s)
    plus = float(s[y > 0].sum())
    minus = float(s.sum()) - plus
    t = platt_targets(y[None], s)[0]
    # In outputs around 0, up to 1, the two unknowns are of one size; outputs that hardly differ are as good as equal.
    centre = float(f.mean())
    spread = float(np.abs(f - centre).max())
    spread = spread if spread > LEAST else 1.0
    design = np.stack([(f - centre) / spread, np.ones_like(f)])
    theta = np.array([0.0, np.log((plus + 1) / (minus + 1))])
    z = theta @ design
    value = _cross_entropy(z, t, s)
    for _ in range(STEPS):
        p = _sigmoid(z)
        gradient = design @ (s * (p - t))
        hessian = (design * (s * p * (1 - p))) @ design.T
        # A slope that nothing depends on, as all outputs are equal, stays 0.
        hessian[np.diag_indices(2)] += 1e-12 * np.trace(hessian)
        step = np.linalg.solve(hessian, gradient)
        promised, share = float(gradient @ step), 1.0
        if promised <= 1e-14 * value:
            break
        while (new := _cross_entropy((theta - share * step) @ design, t, s)) > value - 0.1 * share * promised:
            share /= 2
            if share < 1e-10:  # the rest is rounding
                break
        theta = theta - share * step
        z, value = theta @ design, new
    if theta[0] < 0:  # what is turned around says nothing of new rows: the share of the class is left
        share = float(s @ t / s.sum())
        return Sigmoid(0.0, float(np.log(share / (1 - share))))
    slope = float(theta[0]) / spread
    return Sigmoid(slope, float(theta[1]) - slope * centre)


def isotonic(f: Array, y: Array, s: Array) -> Isotonic:
    """Fit a step function that never falls, by scikit-learn's ``IsotonicRegression``."""
    from sklearn.isotonic import IsotonicRegression

    fitted = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(f, (y > 0) * 1.0, sample_weight=s)
    return Isotonic(tuple(fitted.X_thresholds_.tolist()), tuple(fitted.y_thresholds_.tolist()))


def temperature(F: Array, Y: Array, s: Array) -> float:
    """Return the slope a >= 0, one over the temperature, of the least cross-entropy of ``softmax(a F)``.

    Guo, Pleiss, Sun & Weinberger 2017; of two classes that of ``1 / (1 + exp(-a f))``. Targets lie inside of 0 and 1
    as Platt's do, so that there is a minimum where classes are separated, too.

    Parameters
    ----------
    F, Y : (k, n) arrays
        Held-out outputs, and classes as -1 and +1.
    s : (n,) array
        Weights of the rows: counts if all are whole numbers, else only their ratios count.
    """
    s = as_counts(s)
    if len(F) == 1:
        F, Y = np.concatenate([np.zeros_like(F), F]), np.concatenate([-Y, Y])
    T = platt_targets(Y, s)
    T /= T.sum(axis=0)
    spread = float(np.abs(F - F.mean(axis=0)).max())
    F = F / (spread if spread > LEAST else 1.0)

    def slope_of(a: float) -> tuple[float, float]:
        P = softmax(a * F).T
        mean = (P * F).sum(axis=0)
        return float(s @ (mean - (T * F).sum(axis=0))), float(s @ ((P * F**2).sum(axis=0) - mean**2))

    a = 0.0
    if slope_of(0.0)[0] >= 0:  # what is turned around says nothing of new rows
        return a
    low, high = 0.0, 1.0
    while slope_of(high)[0] < 0 and high < 1 / LEAST_SLOPE:
        low, high = high, 2 * high
    for _ in range(STEPS):
        gradient, curvature = slope_of(a)
        low, high = (a, high) if gradient < 0 else (low, a)
        step = a - gradient / curvature if curvature > 0 else math.inf
        new = step if low < step < high else 0.5 * (low + high)
        if abs(new - a) <= LEAST_SLOPE * new:
            break
        a = new
    return new / (spread if spread > LEAST else 1.0)


FITS: Mapping[str, Callable[[Array, Array, Array], Sigmoid | Isotonic | VennAbers]] = {
    "sigmoid": platt,
    "isotonic": isotonic,
    "venn-abers": venn_abers,
}
"""What fits a curve to outputs, classes and weights."""


def _cross_entropy(z: Array, t: Array, s: Array) -> float:
    return float(s @ (np.logaddexp(0.0, z) - t * z))
