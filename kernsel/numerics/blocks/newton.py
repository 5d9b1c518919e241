"""Damped Newton on low-rank features that are never held together: see ``smooth.newton`` and ``blocks.features``.

A pass over blocks of rows evaluates many fits at a point ``f + df`` each, ``df = Z p``: the loss, its gradient, and
what has changed in ``Z' diag(d2) Z`` since the last pass. Where the whole step turns out to be good, which is the rule
near the minimum, the next one follows without another pass. Fits that are done leave the passes. Products are those of
the half-finished features P of ``blocks.features``, and are finished when a system is solved.

Blocks don't depend on the number of threads, and one thread adds up the products of one fit: neither do the results.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from kernsel.numerics.blocks import features as streaming
from kernsel.numerics.points import Points
from kernsel.numerics.runtime.jit import LOSS, f8, f8_1, f8_2, jit
from kernsel.numerics.runtime.threads import one_blas_thread, share
from kernsel.numerics.smooth.convergence import (
    CONVERGED,
    DECREMENT,
    MAX_STEPS,
    NEGLIGIBLE,
    NOT_FINITE,
    PULL,
    SETTLED,
    SINGULAR,
    UNFINISHED,
)
from kernsel.numerics.smooth.objective import (
    OBJECTIVE,
    Direction,
    Objective,
    along,
    derivatives,
    line_search,
    lone_bias_step,
)
from kernsel.numerics.smooth.systems import add_changes
from kernsel.protocols import Loss
from kernsel.types import Array, Indices, Mask

PIECES = 4
"""Parts of a block whose features threads share; it is fixed, as products of other shapes round differently."""


@jit(f8(LOSS, f8_1, f8_2, f8_1, f8_1, f8_1, f8_1, f8_1, f8_2))
def _at(loss, parameters, P, y, s, f, weights, d1, G):
    d2 = np.empty(y.size)
    total = derivatives(loss, parameters, y, s, f, d1, d2)
    add_changes(P, d2, weights, G)
    return total


@jit(f8(LOSS, OBJECTIVE, f8, f8_1, f8_1, f8, f8, f8, f8))
def _search(loss, objective, N, f, df, J, slope, q1, q2):
    start, _ = along(loss, objective.parameters, objective.y, objective.s, f, df, 0.0)
    return line_search(loss, objective, N, f, df, Direction(start, J, slope, q1, q2))


@jit(f8(f8, f8, f8_1, f8_1))
def _lone_bias(pull, slope, y, f):
    return lone_bias_step(pull, slope, y, f)


@dataclass(eq=False)
class Fits:
    """Fits side by side, and the state that Newton's method leaves them in.

    Parameters
    ----------
    output : (J,) array of int
        The row of the targets that each fit is of.
    lams : (J,) array
    kept : (J, n) array of bool or None
        The rows that each is trained on, if not all.
    w : (J, R) array
        Weights of the features, a bias last.
    f : (J, n) array
        Their outputs.
    curvature : (J, n) array
        ``d2`` of the rows at which the products were taken.
    products : (J, parts, R, R) array
        Lower triangles of ``P' diag(curvature) P`` over parts of the rows.
    """

    output: Indices
    lams: Array
    kept: Mask | None
    w: Array
    f: Array
    curvature: Array
    products: Array

    @classmethod
    def empty(cls, output: Indices, lams: Array, kept: Mask | None, n: int, R: int, parts: int) -> Fits:
        """Return fits of zeros, for which nothing has been added up."""
        J = len(lams)
        return cls(output, lams, kept, np.zeros((J, R)), np.zeros((J, n)), np.zeros((J, n)), np.zeros((J, parts, R, R)))


class BiasedFeatures:
    """Half-finished features P with a column of ones last, if there is a bias, which Q leaves as it is.

    Parameters
    ----------
    bias : int
        1 with an unpenalised bias, else 0.
    """

    def __init__(self, features: streaming.Features, bias: int) -> None:
        self.features, self.bias = features, bias
        self.R = features.rank + bias

    def of(self, X: Points) -> Array:
        """Return ``P`` of some rows, (b, R)."""
        P = np.ones((X.shape[0], self.R))
        bounds = np.linspace(0, X.shape[0], PIECES + 1).astype(int)

        def work(first: int, step: int) -> None:
            for i in range(first, PIECES, step):
                piece = slice(bounds[i], bounds[i + 1])
                P[piece, : self.features.rank] = self.features.block(X[piece])

        share(work, PIECES)
        return P

    def spread(self, w: Array) -> Array:
        """Return ``w Q'`` for weights (..., R)."""
        r = self.features.rank
        return np.concatenate([self.features.spread(w[..., :r]), w[..., r:]], axis=-1)

    def finish(self, values: Array) -> Array:
        """Return ``values Q`` for values (..., R) from rows of P."""
        r = self.features.rank
        return np.concatenate([self.features.finish(values[..., :r]), values[..., r:]], axis=-1)

    def finished(self, G: Array) -> Array:
        """Return ``Q' G Q`` from the lower triangle of G."""
        lower = np.tril(G)
        return np.ascontiguousarray(self.finish(self.finish(lower + np.tril(lower, -1).T).T))


class Newton(BiasedFeatures):
    """A smooth loss on features of some rows.

    Parameters
    ----------
    bias : int
        1 with an unpenalised bias, else 0.
    X : (n, d) array
    Y : (k, n) array
    s : (n,) array
        Weights of the rows.
    loss : Loss
        With ``pointer`` and ``parameters``.
    """

    def __init__(self, features: streaming.Features, bias: int, X: Array, Y: Array, s: Array, loss: Loss) -> None:
        super().__init__(features, bias)
        self.X, self.Y, self.s = X, Y, s
        self.loss, self.parameters = loss, np.array(loss.parameters)

    def minimise(self, fits: Fits) -> Indices:
        """Bring fits from their weights, of which outputs are not known yet, to the minimum; return statuses (J,)."""
        start, fits.w = fits.w, np.zeros_like(fits.w)
        return self._descend(fits, start)

    def resume(self, fits: Fits) -> Indices:
        """Bring fits from weights whose outputs ``f`` are given to the minimum; return statuses (J,)."""
        return self._descend(fits, np.zeros_like(fits.w))

    @one_blas_thread()
    def _descend(self, fits: Fits, p: Array) -> Indices:
        """Jump by ``p``, and go on from there by damped Newton steps."""
        J = len(fits.lams)
        status = np.full(J, UNFINISHED)
        state = [_Step() for _ in range(J)]
        df = np.zeros_like(fits.f)
        for _ in range(MAX_STEPS):
            active = np.flatnonzero([not step.done for step in state])
            if not active.size:
                break
            found = self.evaluate(fits, active, [(0, slice(0, self.X.shape[0]))], p, df)
            self._advance_all(fits, active, state, found, p, df, status)
        return status

    def _advance_all(
        self,
        fits: Fits,
        active: Indices,
        state: list[_Step],
        found: tuple[Array, Array],
        p: Array,
        df: Array,
        status: Indices,
    ) -> None:
        def work(first: int, step: int) -> None:
            for i in range(first, active.size, step):
                j = active[i]
                status[j] = self._advance(fits, j, state[j], float(found[0][i]), found[1][i, 0], p[j], df[j])

        share(work, active.size)

    def _advance(self, fits: Fits, j: int, state: _Step, total: float, gradient: Array, p: Array, df: Array) -> int:
        """Take the step that was tried, or a part of it, and find the next one, in place; return the fit's status."""
        lam, w, ridged = float(fits.lams[j]), fits.w[j], self.features.rank
        y, s = self.Y[fits.output[j]], self._weights(fits, j)
        N, step = float(s.sum()), 1.0
        if state.newton:
            q1, q2 = float(w[:ridged] @ p[:ridged]), float(p[:ridged] @ p[:ridged])
            objective = Objective(y, s, lam, self.parameters, self.bias)
            step = _search(self.loss.pointer, objective, N, fits.f[j], df, state.J, state.slope, q1, q2)
        w += step * p
        fits.f[j] += step * df
        if state.newton and step == 1.0 and state.steady and -state.slope <= DECREMENT * state.J:
            state.done = True
            return CONVERGED
        state.newton = step == 1.0
        if not state.newton:  # the gradient there takes another pass
            p[:] = 0.0
            return UNFINISHED
        state.done = True
        state.J = total / N + lam * float(w[:ridged] @ w[:ridged])
        if not np.isfinite(state.J):
            return NOT_FINITE
        gradient = gradient.copy()
        gradient[:ridged] += 2.0 * N * lam * w[:ridged]
        H, flat = self.finished(fits.products[j, 0]), self.bias == 1 and not fits.curvature[j].any()
        if flat:
            H[ridged, ridged] = N
        found, status = streaming.solve(H, -gradient[None], self.bias, np.array([2.0 * N * lam]))
        if status[0] != CONVERGED:
            return SINGULAR
        p[:] = found[0, 0]
        state.steady = not flat or abs(gradient[ridged]) <= PULL * N
        if flat:
            slope = float(gradient[:ridged] @ p[:ridged]) / N
            p[ridged] = _lone_bias(gradient[ridged] / N, slope, y, fits.f[j])
            if p[ridged] != 0.0:
                if state.steady:
                    return CONVERGED
                p[:ridged] = 0.0
        state.slope = float(gradient @ p) / N
        if not np.isfinite(state.slope):
            return NOT_FINITE
        if state.slope >= -SETTLED * state.J:
            return CONVERGED
        state.done = False
        return UNFINISHED

    @one_blas_thread()
    def evaluate(
        self,
        fits: Fits,
        active: Indices,
        parts: Sequence[tuple[int, slice]],
        p: Array | None = None,
        df: Array | None = None,
    ) -> tuple[Array, Array]:
        """Pass over the rows: return the losses (a,) and gradients (a, parts, R) of the active fits at ``f + df``.

        Parameters
        ----------
        fits : Fits
            Curvature and products are brought there.
        active : (a,) array
        parts : sequence of (int, slice)
            Rows, and the part of products and gradients that they belong to.
        p : (J, R) array, optional
            Directions.
        df : (J, n) array, optional
            Overwritten by ``Z p``.
        """
        totals, d = np.zeros(active.size), np.zeros((active.size, fits.products.shape[1], self.R))
        A = None if p is None else self.spread(p[active])
        for part, rows in self.blocks(parts):
            P = self.block(rows)
            at = fits.f[active, rows]
            if A is not None and df is not None:
                df[active, rows] = change = A @ P.T
                at += change
            d[:, part] += self._add(fits, active, part, rows, P, at, totals) @ P
        return totals, self.finish(d)

    def _add(self, fits: Fits, active: Indices, part: int, rows: slice, P: Array, at: Array, totals: Array) -> Array:
        """Add a block's losses and products at outputs (a, b) to those of the active fits; return the gradients d1."""
        d1 = np.empty(at.shape)

        def work(first: int, step: int) -> None:
            for i in range(first, active.size, step):
                j = active[i]
                totals[i] += _at(
                    self.loss.pointer, self.parameters, P, self.Y[fits.output[j], rows], self._weights(fits, j, rows),
                    at[i], fits.curvature[j, rows], d1[i], fits.products[j, part],
                )  # fmt: skip

        share(work, active.size)
        return d1

    @one_blas_thread()
    def ends(self, fits: Fits, w: Array, starts: Indices, kept: Mask) -> tuple[Array, Array]:
        """Return outputs of other weights at the rows of their folds, and how far a step to them strays elsewhere.

        Parameters
        ----------
        w : (J, t, R) array
            Weights without each fold.
        starts : (t + 1,) array
            The folds.
        kept : (t, n) array
            The rows that each fit without a fold is trained on.

        Returns
        -------
        f : (J, n) array
            Rows of no fold keep the outputs of the fits.
        share : (J, t) array
            What the quadratic model of the loss is off there, relative to what the model promises: see ``heldout``.
        """
        J, t = w.shape[:2]
        f, stray, total, slope = fits.f.copy(), np.zeros((J, t)), np.zeros((J, t)), np.zeros((J, t))
        r, left = self.features.rank, kept @ self.s
        for j, lam in enumerate(fits.lams):
            total[j] = left * lam * (fits.w[j, :r] @ fits.w[j, :r])
            slope[j] = 2.0 * left * lam * ((w[j, :, :r] - fits.w[j, :r]) @ fits.w[j, :r])
        A = self.spread(w).reshape(J * t, self.R)
        folds = [(fold, slice(starts[fold], starts[fold + 1])) for fold in range(t)]
        for fold, rows in self.blocks([*folds, (t, slice(starts[-1], self.X.shape[0]))]):
            F = (A @ self.block(rows).T).reshape(J, t, -1)
            if fold < t:
                f[:, rows] = F[:, fold]
            for j in range(J):
                y, s, counted = self.Y[fits.output[j], None, rows], self.s[rows], kept[:, rows]
                v, d1, d2 = (each[0] for each in self.loss.expand(y, s, fits.f[j, None, None, rows]))
                after, step = self.loss.expand(y, s, F[j, None])[0][0], F[j] - fits.f[j, rows]
                stray[j] += (np.abs(s * (after - v) - step * (d1 + 0.5 * d2 * step)) * counted).sum(axis=1)
                slope[j] += (step * counted) @ d1[0]
                total[j] += counted @ (s * v[0])
        stray = np.maximum(stray - NEGLIGIBLE * total, 0.0)
        return f, np.divide(stray, -0.5 * slope, out=np.where(stray > 0, np.inf, 0.0), where=slope < 0)

    def blocks(self, parts: Iterable[tuple[int, slice]]) -> Iterable[tuple[int, slice]]:
        """Cut parts of the rows into blocks."""
        for part, rows in parts:
            for block in self.features.blocks(rows.start, rows.stop):
                yield part, block

    def block(self, rows: slice) -> Array:
        """Return ``P`` of some rows, (b, R), with a bias' column of ones last."""
        return self.of(self.X[rows])

    def _weights(self, fits: Fits, j: int, rows: slice = slice(None)) -> Array:
        return self.s[rows] if fits.kept is None else self.s[rows] * fits.kept[j, rows]


@dataclass
class _Step:
    """Where a fit is: J and slope belong to the step that is tried next, a Newton step unless it is a jump."""

    newton: bool = False
    steady: bool = False
    done: bool = False
    J: float = np.inf
    slope: float = 0.0
