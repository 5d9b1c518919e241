"""Losses ``V(y, f)`` with their first two derivatives in f, compiled so that a solver can call them by pointer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernsel.numerics import jit, newton

Array = NDArray[np.float64]


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
    """

    name: str
    pointer: jit.Compiled
    parameters: tuple[float, ...] = ()
    square: bool = False
    piecewise_quadratic: bool = True

    def expand(self, Y: Array, s: Array, f: Array) -> tuple[Array, Array, Array]:
        """Return the loss and ``s`` times its derivatives at outputs ``f (k, L, n)`` for targets ``Y (k, n)``."""
        v, d1, d2 = np.empty(f.shape), np.empty(f.shape), np.empty(f.shape)
        newton.expand(self.pointer, np.array(self.parameters), Y, s, np.ascontiguousarray(f), v, d1, d2)
        return v, d1, d2

    def values(self, Y: Array, f: Array) -> Array:
        """Return the loss of outputs ``f (k, L, n)`` for targets ``Y (k, n)``, element by element."""
        return self.expand(Y, np.ones(Y.shape[1]), f)[0]

    def value(self, Y: Array, f: Array) -> Array:
        """Return the loss of outputs ``f (k, n)`` for targets ``Y (k, n)``, element by element."""
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
