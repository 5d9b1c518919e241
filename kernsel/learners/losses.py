"""Losses ``V(y, f)`` with their first two derivatives in f, compiled so that a solver can call them by pointer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kernsel.numerics.runtime import jit
from kernsel.numerics.smooth import objective
from kernsel.types import Array

CHUNK = 2**16
"""Rows whose losses are computed at a time."""


@dataclass(frozen=True)
class Measure:
    """What outputs are scored by where that is not the loss they were fitted with.

    Parameters
    ----------
    name : str
        The field's name for it.
    value : callable
        ``(y, f) -> measure``, NumPy, element by element.
    """

    name: str
    value: Callable[[Array, Array], Array]


@dataclass(frozen=True)
class Loss:
    """A smooth convex loss.

    Parameters
    ----------
    name : str
        The field's name for it.
    pointer : compiled function
        ``(y, f, parameters) -> (V, dV/df, d2V/df2)``, made with ``jit.pointer(jit.LOSS)``.
    parameters : tuple of float
        Handed to ``pointer`` as an array.
    square : bool
        ``V = (y - f)^2``: one eigendecomposition then serves every lambda.
    piecewise_quadratic : bool
        The third derivative is zero wherever it exists, so that the influence series has all orders.
    smoothing : int or None
        Which of the parameters is the half-width of smoothed kinks: the wider, the easier the fit.
    hinge : int
        The power p if it is ``(1 - y f)_+^p``, but for a smooth kink, as criteria from margins need it; 0 if it isn't.
    measure : Measure or None
        What ``values`` and ``value`` give, if not the loss itself.
    bends_once : bool
        Whether ``dV/df`` is convex up to some f and concave from there on, or one of these throughout.
    bend : float or None
        That f, if it is known and the same for all targets: ``dV/df`` is steepest there.
    bends_by_side : bool
        Whether ``dV/df`` bends once over outputs above the target, and once over those below.
    """

    name: str
    pointer: jit.Compiled
    parameters: tuple[float, ...] = ()
    square: bool = False
    piecewise_quadratic: bool = True
    smoothing: int | None = None
    hinge: int = 0
    measure: Measure | None = None
    bends_once: bool = False
    bend: float | None = None
    bends_by_side: bool = False

    @property
    def scored_by(self) -> str:
        """The name of what ``values`` and ``value`` give."""
        return f"{self.name} loss" if self.measure is None else self.measure.name

    def expand(self, Y: Array, s: Array, f: Array) -> tuple[Array, Array, Array]:
        """Return the loss and ``s`` times its derivatives at outputs ``f (k, L, n)`` for targets ``Y (k, n)``."""
        v, d1, d2 = np.empty(f.shape), np.empty(f.shape), np.empty(f.shape)
        objective.expand(self.pointer, np.array(self.parameters), Y, s, np.ascontiguousarray(f), v, d1, d2)
        return v, d1, d2

    def values(self, Y: Array, f: Array) -> Array:
        """Return what outputs ``f (k, L, n)`` for targets ``Y (k, n)`` are scored by, element by element."""
        if self.measure is not None:
            return self.measure.value(Y[:, None, :], f)
        v = np.empty(f.shape)
        for start in range(0, Y.shape[1], CHUNK):  # the derivatives that come along are not kept
            rows = slice(start, start + CHUNK)
            own = np.ascontiguousarray(Y[:, rows])
            v[..., rows] = self.expand(own, np.ones(own.shape[1]), f[..., rows])[0]
        return v

    def value(self, Y: Array, f: Array) -> Array:
        """Return what outputs ``f (k, n)`` for targets ``Y (k, n)`` are scored by, element by element."""
        return self.values(Y, f[:, None, :])[:, 0]


@jit.pointer(jit.LOSS)
def square(y: float, f: float, parameters: Array) -> tuple[float, float, float]:
    """``(y - f)^2``."""
    return (y - f) ** 2, 2.0 * (f - y), 2.0


@jit.pointer(jit.LOSS)
def huber_hinge(y: float, f: float, parameters: Array) -> tuple[float, float, float]:
    """Hinge ``(1 - y f)_+`` with a parabola of half-width ``h = parameters[0]`` around its kink."""
    h, u = parameters[0], y * f
    if u > 1.0 + h:
        return 0.0, 0.0, 0.0
    if u < 1.0 - h:
        return 1.0 - u, -y, 0.0
    t = 1.0 + h - u
    return t * t / (4.0 * h), -y * t / (2.0 * h), 1.0 / (2.0 * h)


@jit.pointer(jit.LOSS)
def squared_hinge(y: float, f: float, parameters: Array) -> tuple[float, float, float]:
    """``(1 - y f)_+^2``."""
    slack = 1.0 - y * f
    if slack <= 0.0:
        return 0.0, 0.0, 0.0
    return slack * slack, -2.0 * y * slack, 2.0


@jit.pointer(jit.LOSS)
def logistic(y: float, f: float, parameters: Array) -> tuple[float, float, float]:
    """``log(1 + exp(-y f))``, by exponentials of what is not positive, which can't overflow."""
    u = y * f
    e = np.exp(-abs(u))
    p = (1.0 if u < 0.0 else e) / (1.0 + e)  # 1 / (1 + exp(u))
    return max(-u, 0.0) + np.log1p(e), -y * p, e / (1.0 + e) ** 2


@jit.inline
def smooth_kink(t: float, h: float) -> tuple[float, float, float]:
    """Return ``max(0, t)`` with a parabola of half-width h around its kink, and its first two derivatives."""
    if t > h:
        return t, 1.0, 0.0
    if t < -h:
        return 0.0, 0.0, 0.0
    return (t + h) ** 2 / (4.0 * h), (t + h) / (2.0 * h), 1.0 / (2.0 * h)


@jit.pointer(jit.LOSS)
def huber_insensitive(y: float, f: float, parameters: Array) -> tuple[float, float, float]:
    """``(|y - f| - epsilon)_+``, ``epsilon = parameters[0]``, with parabolas of half-width ``h = parameters[1]``."""
    epsilon, h, r = parameters[0], parameters[1], y - f
    above, below = smooth_kink(r - epsilon, h), smooth_kink(-r - epsilon, h)
    return above[0] + below[0], below[1] - above[1], above[2] + below[2]


@jit.pointer(jit.LOSS)
def squared_insensitive(y: float, f: float, parameters: Array) -> tuple[float, float, float]:
    """``(|y - f| - epsilon)_+^2`` with ``epsilon = parameters[0]``."""
    r = y - f
    slack = abs(r) - parameters[0]
    if slack <= 0.0:
        return 0.0, 0.0, 0.0
    return slack * slack, (-2.0 if r > 0.0 else 2.0) * slack, 2.0


def _hinge(y: Array, f: Array) -> Array:
    return np.maximum(1.0 - y * f, 0.0)


def _absolute_error(y: Array, f: Array) -> Array:
    return np.abs(y - f)


def _squared_error(y: Array, f: Array) -> Array:
    return (y - f) ** 2


HINGE = Measure("hinge loss", _hinge)
ABSOLUTE_ERROR = Measure("absolute error", _absolute_error)
SQUARED_ERROR = Measure("squared error", _squared_error)

SQUARE = Loss("square", square, square=True)
HUBER_HINGE = Loss("huber-hinge", huber_hinge, smoothing=0, hinge=1, bends_once=True)
SQUARED_HINGE = Loss("squared-hinge", squared_hinge, hinge=2, bends_once=True)
LOGISTIC = Loss("logistic", logistic, piecewise_quadratic=False, bends_once=True, bend=0.0)
HUBER_INSENSITIVE = Loss("huber-epsilon-insensitive", huber_insensitive, smoothing=1, bends_by_side=True)
SQUARED_INSENSITIVE = Loss("squared-epsilon-insensitive", squared_insensitive, bends_by_side=True)
