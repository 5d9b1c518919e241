"""Intervals that contain the outputs of an exact fit, from any approximate one.

With ``J`` of ``objective``, an approximate fit ``(g, b)``, its outputs ``f = g + b`` and the exact fit ``(g*, b*)`` let
``e = f - f*``, and let G be the gradient of J at the approximate fit.

*Ball.* J is ``2 lam``-strongly convex in g. The bias b is moved first to where ``sum_i s_i V'(f_i) = 0``, so that G has
no component along it. Then ``<G, g - g*> >= 2 lam ||g - g*||^2`` whatever the bias, and

    (g - g*)_j  in  G_j / (4 lam)  +-  ||k_j|| ||G|| / (4 lam).

Where these put the bias is in ``enclosure_bias``.

*Ellipsoid.* Say that on a convex set R around the fit the slopes ``(V'(f_i) - V'(t)) / (f_i - t)`` of rows B are at
least ``N D_i / s_i``. With ``H = 2 lam I_g + sum_B D_i psi_i psi_i'``, where psi_i takes a fit to its output,

    |e_j - (H^-1 G)_j / 2|  <=  (psi_j' H^-1 psi_j  G' H^-1 G)^1/2 / 2        wherever that lies inside R.

Proof: the minimiser z of J on R has ``<grad J(z), fit - z> >= 0``, so that ``<G, fit - z> >= ||fit - z||_H^2``: z is in
the ellipsoid, inside R, and a minimum there is the minimum of the convex J. So D is guessed, and verified by the
intervals that it gives: R is the set of all fits with the outputs of B in those. Rows that leave their range lose
curvature until the guess holds. H has curvature along the bias as soon as B is not empty.

*Between two lambda.* Let ``(g, b)_t`` be interpolated linearly between fits at ``lam_0 < lam_1``, and V'_t the slopes
at its outputs. Its gradient for ``lam_t = (1 - t) lam_0 + t lam_1`` is

    G_t = (1 - t) G_0 + t G_1 + 2 t (1 - t) (lam_1 - lam_0) (g_0 - g_1) + (1/N) sum_i s_i delta_i psi_i,
    delta_i = V'_t - (1 - t) V'_0 - t V'_1,

of second order in ``lam_1 - lam_0``. As ``2 t (1 - t) <= 1/2`` and ``lam_t >= lam_0``, the ellipsoid of ``t = 1/2``
with ``lam_0`` in H, encloses ``e`` for all t, if slopes are bounded from wherever interpolated outputs are.

Mathematics of the ball: Shibagaki et al. 2015, Ndiaye et al. 2019. All rounding errors are bounded and added outward.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.core import types

from kernsel.numerics.runtime.blas import fill
from kernsel.numerics.runtime.jit import LOSS, Compiled, f8, f8_1, f8_2, i8, i8_1, inline, jit, record
from kernsel.numerics.runtime.threads import one_blas_thread, share
from kernsel.numerics.smooth.objective import OBJECTIVE, STACK, Objective
from kernsel.types import Array, Indices

EPS = 2.3e-16
"""Above twice the rounding error of one operation in double precision."""

HALF_EPS = 1.2e-16
"""Above the rounding error of one operation. A row of ``systems.add_rows`` is a sum of n / 4 sums of four, so that its
error is below ``(n / 4 + 4) HALF_EPS`` times the sum of sizes."""

FEW = 8.0
"""Operations in a row that a loss and its derivative take, about."""

SAME_SLOPE = 1e-12
"""Two slopes of one quadratic piece agree to this share of what they are made of."""

NARROW = 1e-4
"""Intervals narrower than this share of the largest output are narrow enough for any use: no ellipsoid is sought."""

ROUNDS = 8
"""Guesses of the curvature at the most."""

GUESS = 0.9
"""Where curvature varies the first guess is this share of that at the fit."""

FURTHER = 1.1
"""Where a guess doesn't hold the next one is made for an ellipsoid that reaches so many times as far."""

TRIALS = 8
"""Curvatures that are tried for a row in a guess: with less it reaches further. The last one is the least."""


OTHERS, NOTICED = 0.1, 1e-3
"""Rows without curvature whose slopes are off are looked at together if they add such a share to the rest; those of
them that add less than such a share of a mean one aren't."""

UNSURE = 0.25
"""Lengths that rounding errors may change by such a share, to first order, aren't used."""

NODES = 8
"""Between two outputs the slopes of a loss are compared with interpolated ones at so many places less one."""


class Bend(NamedTuple):
    """What is known of the derivative V' of a loss.

    Parameters
    ----------
    once : int
        1 if V' is convex up to a point and concave from there on. Its slopes from one point to all others then rise to
        a maximum and fall: over an interval they are least at its ends.
    by_side : int
        1 if that is so of outputs above the target, and of those below.
    in_pieces : int
        1 if V' is linear in pieces, and between two points of one piece has no other.
    """

    once: int
    by_side: int
    in_pieces: int

    @classmethod
    def of(cls, loss: Any) -> Bend:
        """Return what a loss, of the library or of a plugin, says of itself."""
        once, by_side = (int(getattr(loss, name, False)) for name in ("bends_once", "bends_by_side"))
        return cls(once, by_side, int(loss.piecewise_quadratic))


BEND = record(Bend, i8, i8, i8)

ENCLOSE = types.FunctionType(types.void(f8_2, OBJECTIVE, LOSS, BEND, i8, f8_1, f8_1, f8_1))
"""``(K or Z, objective, loss, bend, rounds, a or w, low, high)``: ``enclose`` in ``enclosure_kernel`` and
``enclosure_features``."""


BETWEEN = types.FunctionType(types.void(f8_2, OBJECTIVE, f8, LOSS, BEND, i8, f8_1, f8_1, f8_1, f8_1))
"""``(K or Z, objective, width, loss, bend, rounds, x, other, low, high)``: ``enclose_between`` in both modules."""


@inline
def size_of(f):
    """Return the largest size of outputs, at least 1."""
    size = 1.0
    for i in range(f.size):
        size = max(size, abs(f[i]))
    return size


@inline
def give_up(low, high):
    """Make intervals contain everything."""
    fill(low, -np.inf)
    fill(high, np.inf)


@inline
def rounding_of(m, trace, least):
    """Return a bound of the rounding error of ``||L^-1 k||^2``, relatively, if it is below ``UNSURE``.

    L is the Cholesky factor of a matrix (m, m) with that trace and least eigenvalue. The backward error of the factor
    is below ``(m + 1) EPS trace / 2``, and that of half a solution with it below ``m EPS trace^1/2 / 2`` in L.
    """
    return (2.0 * m + FEW) * EPS * trace / least


@inline
def guess_curvature(bend, N, d2, D):
    """Guess least slopes ``D (n,)`` around a fit from the curvatures ``d2 (n,)`` there."""
    for i in range(D.size):
        D[i] = (1.0 if bend.in_pieces else GUESS) * d2[i] / N


@inline
def radius_of(reach, spread, rounded, D):
    """Return how far an output of the ellipsoid may be from its middle: its ``spread`` is at most ``1 / D``."""
    return reach * np.sqrt(min(spread, 1.0 / D) if D > 0.0 else spread) + rounded


@inline
def least_slope(loss, bend, parameters, y, outputs, i, middle, radius):
    """Return a bound of the slopes of V' from all between a row's outputs to all around any of them.

    ``outputs`` are one or two of ``(n,)``; around them is all from ``radius`` below the least one less ``middle`` to so
    much above the largest one. From outputs to an end slopes rise to a maximum and fall, so that they are least at an
    end of both ranges. V' on one side of the target and its value there beyond bend once if V' does so on that side;
    between outputs on either side there may be none.
    """
    lowest, highest, least = np.inf, -np.inf, np.inf
    for f in outputs:
        lowest, highest = min(lowest, f[i]), max(highest, f[i])
    sided = bend.by_side and (lowest >= y or highest <= y)
    for end in (lowest - middle - radius, highest - middle + radius):
        _, there, bent = loss(y, end, parameters)
        for f in outputs:
            _, here, curvature = loss(y, f[i], parameters)
            step, slope = end - f[i], 0.0
            change, size = abs(there - here), abs(there) + abs(here)
            straight = abs(change - curvature * abs(step)) <= SAME_SLOPE * size + EPS * curvature * abs(f[i])
            if step == 0.0 or (bend.in_pieces and bent == curvature and straight):
                slope = curvature
            elif np.isfinite(step) and (bend.once or (sided and (end - y) * (f[i] - y) > 0.0)):
                slope = max((change - FEW * EPS * size) / abs(step), min(curvature, bent))
            elif np.isfinite(step) and sided:  # beyond the target V' is at least as far off as there
                slope = (abs(here - loss(y, y, parameters)[1]) - FEW * EPS * size) / abs(step)
            least = min(least, slope)
    return least


@inline
def holds(loss, objective, bend, N, outputs, reach, v, spread, rounded, D, radius):
    """Say whether all slopes in an ellipsoid are at least what was guessed, ``D (n,)``; where not, guess less.

    Its middle is at ``v (n,)`` below the outputs; see ``least_slope``. What is guessed would hold in one that reaches
    ``FURTHER``, as with less curvature it will. What is ``rounded`` are the errors of outputs, that of the middle of a
    row of length 1, and the lengths; ``radius (n,)`` is overwritten.
    """
    y, s, _, parameters, _ = objective
    error, of_middle, lengths = rounded
    held = True
    for i in range(y.size):
        radius[i] = radius_of(reach, spread[i], error[i] + of_middle * lengths[i], D[i])
        if held and D[i] > 0.0:
            least = least_slope(loss, bend, parameters, y[i], outputs, i, v[i], radius[i])
            held = D[i] <= least * s[i] / N * (1.0 + SAME_SLOPE)
    if held:
        return True
    for i in range(y.size):
        for trial in range(TRIALS):
            if D[i] == 0.0:
                break
            known = D[i] if trial < TRIALS - 1 else 0.0
            further = radius_of(FURTHER * reach, spread[i], error[i] + of_middle * lengths[i], known)
            least = least_slope(loss, bend, parameters, y[i], outputs, i, v[i], further) * s[i] / N
            if D[i] <= least:
                break
            D[i] = max(least, 0.0)
    return False


@inline
def bow(loss, bend, parameters, y, a, b, slopes, curvatures):
    """Return a bound of how far slopes between the outputs a and b are from those that are interpolated linearly.

    At ``NODES`` they are compared. In between they ascend; where V' bends once they do so at least as fast as at one
    of the two nodes: what is left of the change may come all at once.
    """
    for k in range(NODES + 1):
        _, slopes[k], curvatures[k] = loss(y, a + (b - a) * k / NODES, parameters)
    first, last, step = slopes[0], slopes[NODES], abs(b - a) / NODES
    most = 0.0
    for k in range(NODES):
        one_side = bend.by_side and (a + (b - a) * k / NODES - y) * (a + (b - a) * (k + 1) / NODES - y) >= 0.0
        change, least = abs(slopes[k + 1] - slopes[k]), min(curvatures[k], curvatures[k + 1])
        inside = change
        straight = abs(change - least * step)
        rounding = SAME_SLOPE * (abs(slopes[k]) + abs(slopes[k + 1])) + EPS * least * max(abs(a), abs(b))
        one_piece = bend.in_pieces and curvatures[k] == curvatures[k + 1] and straight <= rounding
        if bend.once or one_side or one_piece:
            inside = straight
        for node in (k, k + 1):
            off = abs(slopes[node] - first - (last - first) * node / NODES)
            most = max(most, off + inside)
    return most + FEW * EPS * (abs(first) + abs(last))


@inline
def join_ends(loss, objective, bend, N, f, g, error, error_g, off, off_g, d2, d2_g):
    """Add to ``error (n,)`` and ``off (n,)`` of outputs f what holds of all between f and g, and least curvatures.

    Where outputs may be off by an error, an interpolated slope may be off by so much of the change between the ends.
    """
    y, s, _, parameters, _ = objective
    slopes, curvatures = np.empty(NODES + 1), np.empty(NODES + 1)
    for i in range(y.size):
        error[i] = max(error[i], error_g[i])
        off[i] += off_g[i]
        d2[i] = min(d2[i], d2_g[i])
        if s[i] > 0.0 and f[i] != g[i]:
            away = bow(loss, bend, parameters, y[i], f[i], g[i], slopes, curvatures)
            change = abs(slopes[NODES] - slopes[0])
            off[i] += s[i] / N * (away + change * min(1.0, error[i] / abs(g[i] - f[i])))


@inline
def others_of(D, off, spread, others, rows):
    """Write to ``rows`` those without curvature that are noticed among all that add up to ``others``; return how many.

    Also how much the rest adds.
    """
    count, rest = 0, 0.0
    for i in range(D.size):
        adds = off[i] * np.sqrt(spread[i])
        if D[i] == 0.0 and adds > NOTICED * others / D.size:
            rows[count] = i
            count += 1
        elif D[i] == 0.0:
            rest += adds
    return count, rest


@inline
def narrow(f, low, high):
    """Say whether intervals are as good as the outputs."""
    widest = 0.0
    for i in range(f.size):
        widest = max(widest, high[i] - low[i])
    return widest <= NARROW * size_of(f)


@inline
def intersect(f, middle, radius, low, high):
    """Cut intervals to ``f - middle -+ radius``."""
    for i in range(f.size):
        low[i] = max(low[i], f[i] - middle[i] - radius[i])
        high[i] = min(high[i], f[i] - middle[i] + radius[i])


@jit((i8, i8, ENCLOSE, f8_2, STACK, i8_1, LOSS, BEND, i8, f8_2, f8_2, f8_2))
def _enclose(first, step, enclose, G, stack, which, loss, bend, rounds, x, low, high):
    for j in range(first, x.shape[0], step):
        objective = Objective(stack.y[j], stack.s[j], stack.lam[which[j]], stack.parameters, stack.bias)
        enclose(G, objective, loss, bend, rounds, x[j], low[j], high[j])


@jit((i8, i8, BETWEEN, f8_2, STACK, f8, LOSS, BEND, i8, f8_2, f8_2, f8_2, f8_2))
def _enclose_between(first, step, enclose, G, stack, width, loss, bend, rounds, x, other, low, high):
    for j in range(first, x.shape[0], step):
        objective = Objective(stack.y[j], stack.s[j], stack.lam[0], stack.parameters, stack.bias)
        enclose(G, objective, width, loss, bend, rounds, x[j], other[j], low[j], high[j])


def enclose_fits(
    enclose: Compiled,
    G: Array,
    objective: Objective,
    which: Indices,
    loss: Compiled,
    bend: Bend,
    rounds: int,
    x: Array,
) -> tuple[Array, Array]:
    """Return intervals ``low, high (q, n)`` that contain the outputs of q exact fits.

    Parameters
    ----------
    enclose : pointer
        ``enclose`` of ``enclosure_kernel`` or ``enclosure_features``.
    G : (n, n) or (n, r) array
        The Gram matrix; or features, a bias' column of ones last.
    objective : Objective
        Targets (q, n), weights (q, n) that are 0 for rows that are left out, and lambda (L,).
    which : (q,) array of int
        The number of the lambda of each fit.
    loss : pointer of type ``LOSS``
    bend : Bend
        Of the loss.
    rounds : int
        Guesses of the curvature that each may take at the most; without any there is the ball alone.
    x : (q, n + bias) or (q, r) array
        Approximate fits: coefficients and a bias last, or weights.
    """
    low, high = np.empty(objective.y.shape), np.empty(objective.y.shape)
    loop = _enclose.code  # compiled here, not by several threads at once
    job = (enclose.code, G, objective, which, loss.code, bend, rounds, x, low, high)
    with one_blas_thread():
        share(lambda first, step: loop(first, step, *job), x.shape[0])
    return low, high


def enclose_between(
    enclose: Compiled, G: Array, objective: Objective, loss: Compiled, bend: Bend, x: Array, other: Array
) -> tuple[Array, Array]:
    """Return intervals ``low, high (q, n)`` of exact outputs less interpolated ones, for all lambda between two.

    Parameters
    ----------
    enclose : pointer
        ``enclose_between`` of ``enclosure_kernel`` or ``enclosure_features``.
    G : (n, n) or (n, r) array
        As in ``enclose_fits``.
    objective : Objective
        Targets (q, n), weights (q, n), and two lambda, the lower one first.
    loss : pointer of type ``LOSS``
    x, other : (q, n + bias) or (q, r) arrays
        Approximate fits at the lower and at the higher lambda.
    """
    low, high = np.empty(objective.y.shape), np.empty(objective.y.shape)
    loop = _enclose_between.code
    lower, higher = np.asarray(objective.lam).tolist()
    job = (enclose.code, G, objective, higher - lower, loss.code, bend, ROUNDS, x, other, low, high)
    with one_blas_thread():
        share(lambda first, step: loop(first, step, *job), x.shape[0])
    return low, high
