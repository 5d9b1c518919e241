"""Bounds of the slopes of V' between outputs, and the theta and Theta of ``enclosure_steps`` that they give."""

from __future__ import annotations

import numpy as np

from kernsel.numerics.runtime.jit import REORDER, inline
from kernsel.numerics.smooth.enclosure import EPS, FEW

GUESS, SHRINK, GUESSES = 0.8, 0.7, 5
"""The first guess of theta, the share of what slopes were found to be that is guessed next, and how many there are."""

SHARP = 0.8
"""A theta that was verified, and is below this, is sought again from what it gave."""

LEAST = 1e-3
"""With less than this theta says nothing."""

TRIED, STEP = 12, 0.85
"""So many values are tried for a bound of slopes that few rows may miss, each so many times the last."""

CHORD = 1e-3
"""Over at least such a distance the slope from one output to another is told by their difference."""


@inline
def slopes_around(loss, objective, root, steepest, lengths, point, step, reach, spread, room):
    """Return theta and Theta of ``enclosure_steps``; theta is 0 where none was verified.

    Over outputs between which V'' has its maximum at one, where it is steepest, it is least at an end. From one output
    to others the slopes of V', too, are least at an end. ``room (3, n)`` is overwritten.
    """
    y, _, _, parameters, _ = objective
    bend, steep = steepest
    theta, known, known_most, (lows, highs, leverages) = GUESS, 0.0, 0.0, room
    for _ in range(GUESSES):
        half, count = 0.5 / theta, 0
        for i in range(root.size):
            if not point.weights[i] > 0.0:
                continue
            f, slope, curvature = point.f[i], point.slope[i], point.curvature[i]
            radius = half * reach * spread[i] + (point.error + half * step.error) * lengths[i]
            radius += FEW * EPS * (abs(f) + half * abs(step.w[i]))
            middle, lower, upper = f - half * step.w[i], curvature, curvature
            for side in range(2):
                end = middle + (2.0 * side - 1.0) * radius
                _, there, bent = loss(y[i], end, parameters)
                flattest = slope_between(f, slope, curvature, end, there, bent)
                lower, upper = min(lower, flattest), max(upper, bent)
            if min(f, middle - radius) < bend < max(f, middle + radius):
                upper = steep[i]
            D = root[i] * root[i] / point.weights[i]
            lows[count], highs[count], leverages[count] = lower / D, upper / D, (root[i] * spread[i]) ** 2
            count += 1
        least, most = least_of(lows[:count], leverages, 1.0), most_of(highs[:count], leverages)
        if not least > LEAST:
            return known, known_most
        if least < theta:
            if known > 0.0:
                return known, known_most
            theta = SHRINK * least
        else:
            known, known_most = least, most
            if least > min(SHARP, 1.1 * theta):
                return known, known_most
            theta = least
    return known, known_most


@inline
def slope_between(f, slope, curvature, end, there, bent):
    """Return a bound of the slope of V' from one output to another, from V' and V'' at both: V'' has one maximum."""
    flattest, apart = min(curvature, bent), abs(end - f)
    if apart > CHORD:
        flattest = max(flattest, (abs(there - slope) - FEW * EPS * (abs(there) + abs(slope))) / apart)
    return flattest


@inline(fastmath=REORDER)
def least_of(lows, leverages, ratio):
    """Return theta with ``A >= theta H``, where slopes are at least ``lows (m,) D``; A has ``ratio`` times the ridge.

    Rows with a lower slope than ``theta D`` take off at most what they lack, times their leverage ``D_i psi_i' H^-1
    psi_i``, the norm of ``D_i psi_i psi_i'`` in that of H.
    """
    best, theta = 0.0, ratio
    for _ in range(TRIED):
        missing = 0.0
        for i in range(lows.size):
            missing += max(theta - lows[i], 0.0) * leverages[i]
        best = max(best, theta - missing)
        theta *= STEP
    return best - lows.size * EPS


@inline(fastmath=REORDER)
def most_of(highs, leverages):
    """Return Theta with ``A <= Theta H``, where slopes are at most ``highs (m,) D``, and both have one ridge."""
    best, most = np.inf, 1.0
    for _ in range(TRIED):
        more = 0.0
        for i in range(highs.size):
            more += max(highs[i] - most, 0.0) * leverages[i]
        best = min(best, most + more)
        most /= STEP
    return best * (1.0 + highs.size * EPS)
