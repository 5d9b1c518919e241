"""Newton's method for smooth losses on low-rank features where rows are in parts: each pass is a sum over these.

A pass takes the weights w of many fits and their directions p to the parts. Of each fit come back, added up,

    sum s V(y, f + a Z p) and its derivative in a, for the steps a of ``STEPS``,
    the gradient ``Z' d1`` at a = 1, and, where that is asked for, the products ``Z' diag(d2) Z`` there:

all that the next step is made of. Where the whole step is good, which is the rule near the minimum, another one follows
at once; else the best of the steps is taken, and the next pass is at its end. A fit without a fold begins at the fit to
all rows, with gradient and products less those of the fold, and keeps these products as long as each step leaves less
than ``SHRINKS`` of what there was to gain: then they needn't be added up again.

What ``blocks.newton`` knows of each row, its output and curvature, is nowhere kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

import numpy as np

from kernsel.numerics.blocks import features as streaming
from kernsel.numerics.blocks.newton import BiasedFeatures
from kernsel.numerics.points import Points
from kernsel.numerics.runtime.jit import LOSS, f8, f8_1, f8_2, jit
from kernsel.numerics.runtime.threads import one_blas_thread, share
from kernsel.numerics.smooth.convergence import (
    BIAS_ALONE,
    CONVERGED,
    DECREMENT,
    MAX_STEPS,
    NOT_FINITE,
    NOTHING_TO_GAIN,
    OVERSHOT,
    PULL,
    ROUNDING_OF_J,
    SETTLED,
    SINGULAR,
    SUFFICIENT_DECREASE,
    UNFINISHED,
)
from kernsel.numerics.smooth.objective import along, derivatives
from kernsel.numerics.smooth.systems import add_changes
from kernsel.protocols import Loss
from kernsel.types import Array, Indices, Mask

STEPS = np.array([0.0, 1.0, 0.8, 0.6, 0.4, 0.25, 0.125, 2.0**-4, 2.0**-6, 2.0**-9, 2.0**-13])
"""Steps that are tried in one pass, beside that of 0: shorter ones are never needed but at narrow kinks, which many
steps come to."""

PRODUCTS_BYTES = 2**27
"""Products that are asked for in one pass, and those that fits without a fold keep: more fits go one after another."""

SHRINKS = 0.1
"""A step with products of another place has to leave at most this share of what there was to gain."""


@jit(f8(LOSS, f8_1, f8_2, f8_1, f8_1, f8_1, f8_1, f8_2))
def _products_at(loss, parameters, P, y, s, f, d1, G):
    d2 = np.empty(y.size)
    total = derivatives(loss, parameters, y, s, f, d1, d2)
    add_changes(P, d2, np.zeros(y.size), G)
    return total


@jit(f8(LOSS, f8_1, f8_1, f8_1, f8_1, f8_1))
def _slopes_at(loss, parameters, y, s, f, d1):
    return derivatives(loss, parameters, y, s, f, d1, np.empty(y.size))


@jit(f8(LOSS, f8_1, f8_1, f8_1, f8_1, f8_1, f8_1, f8_1, f8_1))
def _along(loss, parameters, y, s, f, df, steps, totals, slopes):
    reach = 0.0
    for k in range(steps.size):
        total, slope = along(loss, parameters, y, s, f, df, steps[k])
        totals[k] += total
        slopes[k] += slope
    for i in range(y.size):
        reach = max(reach, abs(y[i]) + abs(f[i] + df[i]))
    return reach


class Request(NamedTuple):
    """What a pass is to add up, of J fits.

    Parameters
    ----------
    output, fold : (J,) arrays of int
        The row of the targets that each is of, and the fold that it is without, -1 if none.
    w, p : (J, R) arrays
        Weights of P, and directions.
    curved : (J,) array of bool
        Whose products are to come.
    by_fold : bool
        Whether gradients, losses and products come by fold, of the rows of each.
    """

    output: Indices
    fold: Indices
    w: Array
    p: Array
    curved: Mask
    by_fold: bool


class PassSums(NamedTuple):
    """What a pass adds up, over m = 1 set of rows, or over m folds.

    Parameters
    ----------
    losses, slopes : (J, m, steps) arrays
    gradients : (J, m, R) array
    products : (curved, m, R, R) array
        Lower triangles.
    reach : (J,) array
        The largest ``|y| + |f|``.
    """

    losses: Array
    slopes: Array
    gradients: Array
    products: Array
    reach: Array

    def merge(self, other: Self) -> Self:
        """Return the sums of these rows and others."""
        return type(self)(
            self.losses + other.losses,
            self.slopes + other.slopes,
            self.gradients + other.gradients,
            self.products + other.products,
            np.maximum(self.reach, other.reach),
        )


def add_up(
    features: streaming.Features,
    bias: int,
    loss: Loss,
    request: Request,
    X: Points,
    Y: Array,
    s: Array,
    starts: Indices,
) -> PassSums:
    """Return the sums of a pass over the rows of a part, sorted by fold.

    Parameters
    ----------
    X, Y, s : points (n, d), arrays (k, n) and (n,)
        Rows, targets and weights.
    starts : (t + 1,) array
        Bounds of the folds.
    """
    P_of = BiasedFeatures(features, bias)
    parameters, J = np.array(loss.parameters), len(request.w)
    m, places = (len(starts) - 1 if request.by_fold else 1), np.cumsum(request.curved) - 1
    steps = STEPS if request.p.any() else STEPS[:1]
    sums = PassSums(
        np.zeros((J, m, STEPS.size)),
        np.zeros((J, m, STEPS.size)),
        np.zeros((J, m, P_of.R)),
        np.zeros((int(request.curved.sum()), m, P_of.R, P_of.R)),
        np.zeros(J),
    )
    with one_blas_thread():
        for fold in range(len(starts) - 1):
            part, own = fold if request.by_fold else 0, np.flatnonzero(request.fold != fold)
            for rows in features.blocks(starts[fold], starts[fold + 1]) if own.size else ():
                P, y, weights = P_of.of(X[rows]), np.ascontiguousarray(Y[:, rows]), s[rows]
                f, df, d1 = request.w[own] @ P.T, request.p[own] @ P.T, np.empty((own.size, len(P)))

                def work(first: int, step: int) -> None:
                    for i in range(first, own.size, step):  # noqa: B023  # done before the next block
                        j, there = own[i], f[i] + df[i]  # noqa: B023
                        totals, slopes = sums.losses[j, part], sums.slopes[j, part]  # noqa: B023
                        target = y[request.output[j]]  # noqa: B023
                        given = loss.pointer, parameters, target, weights  # noqa: B023
                        reach = _along(*given, f[i], df[i], steps, totals[: steps.size], slopes[: steps.size])  # noqa: B023
                        sums.reach[j] = max(sums.reach[j], reach)
                        if request.curved[j]:
                            G = sums.products[places[j], part]  # noqa: B023
                            _products_at(loss.pointer, parameters, P, target, weights, there, d1[i], G)  # noqa: B023
                        else:
                            _slopes_at(*given, there, d1[i])  # noqa: B023

                share(work, own.size)
                sums.gradients[own, part] += d1 @ P
    return sums


class Passes(Protocol):
    """Who adds up the sums of a pass over all rows."""

    def __call__(self, request: Request) -> PassSums:
        """Return the sums that are asked for."""


@dataclass(eq=False)
class Fit:
    """A fit on its way: J and slope belong to the step that is tried next, a Newton step unless it is a jump.

    Parameters
    ----------
    output, fold : int
        The fold is -1 where it is to all rows.
    lam, N : float
        The regularisation, and the weight of its rows.
    w, p : (R,) arrays
        Weights of the features, a bias last, and their direction.
    H : (R, R) array or None
        Products, of these weights or earlier ones.
    keeps : bool
        Whether the next step, too, is made of these products.
    newton, steady, done : bool
        Whether the direction is a Newton step, the bias rests, and the fit has ended.
    J, slope : float
        The objective, and its slope along the direction.
    """

    output: int
    fold: int
    lam: float
    N: float
    w: Array
    p: Array
    H: Array | None = None
    keeps: bool = False
    newton: bool = False
    steady: bool = False
    done: bool = False
    status: int = UNFINISHED
    J: float = np.inf
    slope: float = 0.0


class Descent(BiasedFeatures):
    """Brings fits to their minimum by passes over rows that are elsewhere."""

    def __init__(self, features: streaming.Features, bias: int, passes: Passes) -> None:
        super().__init__(features, bias)
        self.passes = passes

    def minimise(self, fits: list[Fit]) -> None:
        """Bring fits to the minimum, from their weights, or from where ``begin`` has put them; statuses are theirs."""
        for _ in range(MAX_STEPS):
            active = [fit for fit in fits if not fit.done]
            if not active:
                return
            curved = np.array([not fit.keeps for fit in active])
            sums = self.passes(self._request(active, curved, by_fold=False))
            gradients, products = self.finish(sums.gradients[:, 0]), iter(sums.products[:, 0])
            for j, fit in enumerate(active):
                G = next(products) if curved[j] else None
                self._advance(fit, sums.losses[j, 0], sums.slopes[j, 0], gradients[j], G, float(sums.reach[j]))

    def by_fold(self, fits: list[Fit]) -> tuple[Array, Array, Array]:
        """Return losses (J, t), gradients (J, t, R) and products (J, t, R, R), finished, of fits at their weights."""
        for fit in fits:
            fit.p[:] = 0.0
        sums = self.passes(self._request(fits, np.ones(len(fits), np.bool_), by_fold=True))
        products = np.array([[self.finished(G) for G in each] for each in sums.products])
        return sums.losses[:, :, 0], self.finish(sums.gradients), products

    def with_folds(self, lams: Array, outputs: int, weights: Array) -> tuple[Array, Array, Indices]:
        """Fit for all values of lambda, to all rows and without each fold.

        Parameters
        ----------
        lams : (L,) array
            Descending: each group of fits begins where the last one has ended.
        outputs : int
            The number k of rows of the targets.
        weights : (t,) array
            Of the folds.

        Returns
        -------
        w : (k, L, R) array
        without : (t, k, L, R) array
        status : (L,) array
            The worst of each lambda.
        """
        t, N = weights.size, float(weights.sum())
        w, without = np.zeros((outputs, lams.size, self.R)), np.zeros((t, outputs, lams.size, self.R))
        status, start = np.zeros(lams.size, np.int64), np.zeros((outputs, self.R))
        pairs = [(c, number) for number in range(lams.size) for c in range(outputs)]
        step = max(1, PRODUCTS_BYTES // (8 * t * self.R**2))
        for first in range(0, len(pairs), step):
            group = pairs[first : first + step]
            fits = [Fit(c, -1, float(lams[number]), N, start[c].copy(), np.zeros(self.R)) for c, number in group]
            self.minimise(fits)
            for (c, number), fit, alone in zip(group, fits, self._without_folds(fits, weights), strict=True):
                w[c, number], start[c] = fit.w, fit.w if fit.status == CONVERGED else start[c]
                without[:, c, number] = [each.w for each in alone]
                status[number] = max([status[number], fit.status, *(each.status for each in alone)])
        return w, without, status

    def _without_folds(self, fits: list[Fit], weights: Array) -> list[list[Fit]]:
        """Return the fits without each fold, from those to all rows."""
        losses, gradients, products = self.by_fold(fits)
        found = []
        for fit, *each in zip(fits, losses, gradients, products, strict=True):
            alone = []
            for fold in range(weights.size):
                N = float(np.delete(weights, fold).sum())
                one = Fit(fit.output, fold, fit.lam, N, fit.w.copy(), np.zeros(self.R))
                loss, gradient, H = (np.delete(sums, fold, axis=0).sum(axis=0) for sums in each)
                self.begin(one, float(loss), gradient, H)
                alone.append(one)
            found.append(alone)
        self.minimise([one for alone in found for one in alone])
        return found

    def begin(self, fit: Fit, loss: float, gradient: Array, H: Array) -> None:
        """Have a fit begin with the loss, gradient and products that its rows have at its weights."""
        fit.H = H
        self._turn(fit, loss, gradient, 0.0, fresh=True)

    def _request(self, fits: list[Fit], curved: Mask, by_fold: bool) -> Request:
        output, fold = (np.array([getattr(fit, name) for fit in fits]) for name in ("output", "fold"))
        w, p = (self.spread(np.stack([getattr(fit, name) for fit in fits])) for name in ("w", "p"))
        return Request(output, fold, w, p, curved, by_fold)

    def _advance(self, fit: Fit, losses: Array, slopes: Array, gradient: Array, G: Array | None, reach: float) -> None:
        """Take the step that was tried, or a part of it, and find the next one."""
        step = self._step(fit, losses, slopes) if fit.newton else 1.0
        fit.w += step * fit.p
        if fit.newton and step == 1.0 and fit.steady and -fit.slope <= DECREMENT * fit.J:
            fit.done, fit.status = True, CONVERGED
            return
        if step != 1.0:  # the gradient there takes another pass
            fit.newton = fit.keeps = False
            fit.p[:] = 0.0
            return
        if G is not None:
            fit.H = self.finished(G)
        self._turn(fit, float(losses[1] if fit.p.any() else losses[0]), gradient, reach, G is not None)

    def _step(self, fit: Fit, losses: Array, slopes: Array) -> float:
        """Return the step to take: 1 where that is good enough by the rules of ``objective.line_search``."""
        if -fit.slope <= NOTHING_TO_GAIN * abs(fit.J):
            return 1.0
        r = self.features.rank
        q1, q2 = float(fit.w[:r] @ fit.p[:r]), float(fit.p[:r] @ fit.p[:r])
        change = (losses - losses[0]) / fit.N + fit.lam * (2.0 * STEPS * q1 + STEPS**2 * q2)
        end = slopes[1] / fit.N + 2.0 * fit.lam * (q1 + q2)
        enough = SUFFICIENT_DECREASE * fit.slope + ROUNDING_OF_J * abs(fit.J)
        if change[1] <= enough and end <= -OVERSHOT * fit.slope:
            return 1.0
        return float(STEPS[1:][np.argmin(np.where(np.isfinite(change[1:]), change[1:], np.inf))])

    def _turn(self, fit: Fit, loss: float, gradient: Array, reach: float, fresh: bool) -> None:
        """Find the next step from the loss, the gradient and the products at the weights of a fit."""
        r, N, lam, w = self.features.rank, fit.N, fit.lam, fit.w
        before, fit.newton, fit.done = fit.slope, True, True
        fit.J = loss / N + lam * float(w[:r] @ w[:r])
        if not np.isfinite(fit.J):
            fit.status = NOT_FINITE
            return
        gradient = gradient.copy()
        gradient[:r] += 2.0 * N * lam * w[:r]
        H = fit.H if fit.H is not None else np.zeros((self.R, self.R))
        flat = self.bias == 1 and H[r, r] == 0.0
        if flat:
            H = H.copy()
            H[r, r] = N
        found, status = streaming.solve(H, -gradient[None], self.bias, np.array([2.0 * N * lam]))
        if status[0] != CONVERGED:
            fit.status = SINGULAR
            return
        fit.p = found[0, 0].copy()
        fit.steady = not flat or abs(gradient[r]) <= PULL * N
        if flat:
            slope, pull = float(gradient[:r] @ fit.p[:r]) / N, float(gradient[r]) / N
            alone = -slope <= BIAS_ALONE * abs(pull) and pull != 0.0
            fit.p[r] = -np.sign(pull) * 2.0 * max(reach, 1.0) if alone else 0.0
            if alone:
                if fit.steady:
                    fit.status = CONVERGED
                    return
                fit.p[:r] = 0.0
        fit.slope = float(gradient @ fit.p) / N
        if not np.isfinite(fit.slope):
            fit.status = NOT_FINITE
            return
        if fit.slope >= -SETTLED * fit.J:
            fit.status = CONVERGED
            return
        fit.keeps = fit.fold >= 0 and not flat and (fresh or -fit.slope <= SHRINKS * -before)
        fit.done = False
