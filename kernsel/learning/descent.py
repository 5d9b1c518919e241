"""Descend on a smooth criterion by the relevances of features, and by lambda.

L-BFGS-B (Byrd, Lu, Nocedal & Zhu 1995) twice. First on the logarithms: relevances differ by powers of ten, and there
each has a scale of its own; but none becomes 0. Then on the relevances themselves, in units of what they are by then:
those that are small and only in the way come to lie exactly on their bound, 0, and leave it again if that helps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernsel.criteria import Slopes
from kernsel.errors import SelectionError
from kernsel.types import Array

LEAST = 1e-6
"""Logarithms of relevances are searched from this share of the largest one at the beginning."""

NEGLIGIBLE = 1e-4
"""Relevances below this share of the largest one begin on their bound, and leave it again if the gradient says so.
They are moved in units of this share, others in units of themselves."""

TOLERANCE = 1e-6
"""Of a step's gain, and of the gradient in the units of the search. Criteria are in the units of half a logarithm of a
mean square, so that this is a millionth of a standard deviation."""

STEPS = 200
"""A descent that takes more is stopped: what is left to gain is little then."""

Criterion = Callable[[Array, float], Slopes]
"""``(theta, lam) -> Slopes``; numpy.linalg.LinAlgError where there is none."""


@dataclass(frozen=True, eq=False)
class DescentPoint:
    """Where a descent begins or ends.

    Parameters
    ----------
    theta : (p,) array
    value : float
        The criterion there; NaN where it wasn't computed.
    path : tuple of (float, float)
        Value and lambda after each step that led here.
    """

    theta: Array
    lam: float
    value: float = np.nan
    path: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, eq=False)
class Box:
    """Bounds of a search.

    Parameters
    ----------
    low, high : float
        Of every relevance; the lowest may be 0.
    """

    low: float
    high: float
    lams: tuple[float, float]


def logarithm(slopes: Slopes) -> Slopes:
    """Return half the logarithm of a mean of squares, with its derivatives."""
    value = max(slopes.value, np.finfo(float).tiny)
    return Slopes(0.5 * float(np.log(value)), slopes.theta / (2.0 * value), slopes.lam / (2.0 * value))


def on_log_scale(criterion: Criterion, start: DescentPoint, box: Box, steps: int = STEPS) -> DescentPoint:
    """Descend by the logarithms of relevances and lambda.

    Parameters
    ----------
    box : Box
        No relevance falls below ``LEAST`` times the largest one of the start here.
    steps : int
        At most so many.

    Returns
    -------
    DescentPoint
        With the steps of the start before its own.
    """
    low = max(box.low, LEAST * float(start.theta.max()))
    first = np.log(np.clip(start.theta, low, box.high))
    bounds = [(np.log(low), np.log(box.high))] * first.size
    return _minimise(criterion, first, np.exp, lambda theta: theta, start, bounds, box, steps, TOLERANCE)


def on_scale(
    criterion: Criterion, start: DescentPoint, box: Box, steps: int = STEPS, tolerance: float = TOLERANCE
) -> DescentPoint:
    """Descend by the relevances themselves, which may become 0, and the logarithm of lambda.

    Parameters
    ----------
    criterion, start, box, steps : as in ``on_log_scale``
    tolerance : float
        Of the gain of a step, and of the gradient.
    """
    largest = float(start.theta.max()) or NEGLIGIBLE * box.high  # any unit will do where all are 0
    least = NEGLIGIBLE * largest
    units = np.maximum(start.theta, least)
    bounds = [(box.low / unit, box.high / unit) for unit in units]

    def descend(theta: Array) -> DescentPoint:
        return _minimise(
            criterion, theta / units, lambda v: v * units, lambda _: units, start, bounds, box, steps, tolerance
        )

    found = descend(np.where(start.theta < least, box.low, start.theta))
    return descend(start.theta) if found.value > start.value + tolerance else found  # they weren't negligible


def _minimise(
    criterion: Criterion,
    first: Array,
    theta_of: Callable[[Array], Array],
    unit_of: Callable[[Array], Array],
    start: DescentPoint,
    bounds: list[tuple[float, float]],
    box: Box,
    steps: int,
    tolerance: float,
) -> DescentPoint:
    """Minimise over ``(v, log lambda)`` where ``theta = theta_of(v)`` has the derivatives ``unit_of(theta)``."""
    from scipy.optimize import minimize  # takes a while to import

    worst: list[float] = []
    path: list[tuple[float, float]] = []

    def at(v: Array) -> tuple[float, Array]:
        theta = theta_of(v[:-1])
        try:
            slopes = criterion(theta, float(np.exp(v[-1])))
        except np.linalg.LinAlgError as error:
            if not worst:
                raise SelectionError(f"the relevances can't be learnt from where they begin: {error}") from error
            return worst[0] + 10.0, np.zeros(v.size)  # the line search turns back
        worst[:] = [max([slopes.value, *worst])]
        return slopes.value, np.append(slopes.theta * unit_of(theta), slopes.lam)

    def keep(intermediate_result: Any) -> None:
        path.append((float(intermediate_result.fun), float(np.exp(intermediate_result.x[-1]))))

    lams = (np.log(box.lams[0]), np.log(box.lams[1]))
    found = minimize(
        at,
        np.append(first, np.clip(np.log(start.lam), *lams)),
        jac=True,
        method="L-BFGS-B",
        bounds=[*bounds, lams],
        callback=keep,
        options={"maxiter": steps, "ftol": tolerance, "gtol": tolerance},
    )
    theta = np.asarray(theta_of(found.x[:-1]))
    return DescentPoint(theta, float(np.exp(found.x[-1])), float(found.fun), (*start.path, *path))
