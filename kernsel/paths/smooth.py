"""Paths of the other losses: damped Newton, and updates of its fits for every fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernsel.numerics import lowrank
from kernsel.numerics.runtime.jit import Compiled, compile_ahead
from kernsel.numerics.runtime.once import once
from kernsel.numerics.smooth import heldout_features, heldout_kernel, newton
from kernsel.numerics.square import factored, heldout, leverage, spectral
from kernsel.paths.base import Fits, HeldOut, Path
from kernsel.paths.costs import refits_are_cheaper
from kernsel.representation.problem import Problem

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

REFIT_BYTES = 2**28
"""Refits of folds are done in groups whose outputs fit in this."""

SMOOTHING = 4.0
"""Where a fit with a narrow kink doesn't converge, the kink is made this much wider at each step of a detour."""

SINGLE_ROWS = 50
"""From so many folds of one row on, ratios are taken from the rows' leverages."""

MANY_ROWS, FACTOR = 400, 6
"""From so many rows on Newton systems in which all rows are curved are solved by gradients, with a factor of the Gram
matrix that has this many times fewer columns for a preconditioner."""

PROVISIONAL = 1e-4
"""The last step of a fit at a provisional rank promises less than this share of J: what the rank leaves out is more."""

TRUST = 0.25
"""A fold is refitted where its Newton step strays by more than this share of what it promises.

With three quarters of the promise a trust-region method calls its model very good (Nocedal & Wright, Algorithm 4.1). On
seven sets of classes, near-separable ones among them, a tenth of the folds are refitted, and scores are at most 7 %
off; with 1 (the objective of the fold doesn't fall) 6 % and 15 %.
"""


class SmoothPath(Path):
    """Any other smooth loss: damped Newton, in the coordinates of the Gram matrix or of the low-rank features."""

    @property
    def _solver(self) -> Compiled:
        return newton.in_kernel if self.problem.full else newton.in_features

    @once
    def _matrix(self) -> Array:
        """What the solver works on: features, or the Gram matrix, behind which stands a factor of most of it."""
        G, n = self.problem.matrix(self.bias), self.rows.n
        if not self.problem.full or n < MANY_ROWS or self.learner.loss.piecewise_quadratic:
            return G
        return np.concatenate([G, lowrank.pivoted_factor(G, n // FACTOR)], axis=1)

    @once
    def fits(self) -> Fits:
        rows, problem = self.rows, self.problem
        keys = [(self.learner, lam) for lam in self.lams.tolist()]
        if all(key in problem.solutions for key in keys):
            x, f = (np.stack(each, axis=1) for each in zip(*(problem.solutions[key] for key in keys), strict=True))
            return Fits(x, f, np.full(x.shape[:2], newton.CONVERGED))
        G = self._matrix
        k, n = rows.Y.shape
        width = n + self.bias if problem.full else G.shape[1]
        x, f = np.zeros((k, self.lams.size, width)), np.zeros((k, self.lams.size, n))
        weights = np.tile(rows.s, (k, 1))
        status = self._solve(G[None], np.zeros(k, np.int64), rows.Y, weights, self.lams, True, x, f)
        status = with_lost(status, problem, self.lams)
        for number in np.flatnonzero((status == newton.CONVERGED).all(axis=0)):
            problem.solutions[keys[number]] = x[:, number].copy(), f[:, number].copy()
        return Fits(x, f, status)

    def exact(self, which: Sequence[int] | None = None) -> HeldOut:
        held = self._exact(np.arange(self.lams.size) if which is None else np.asarray(list(which)))
        return HeldOut.of(held.f, held.status, exact=True)

    def _exact(self, chosen: Indices) -> Fits:
        """Return held-out outputs (k, l, n) of refits for the lambda numbered ``chosen``, and the worst statuses."""
        rows, fits = self.rows, self.fits
        k, folds = len(rows.Y), rows.left.size
        out, status = fits.f[:, chosen].copy(), fits.status[:, chosen].copy()
        group = max(1, REFIT_BYTES // (16 * k * chosen.size * rows.n))
        for first in range(0, folds, group):
            jobs = [(c, fold) for c in range(k) for fold in range(first, min(first + group, folds))]
            refitted = self._refit(jobs, chosen)
            for job, (c, fold) in enumerate(jobs):
                held = slice(rows.starts[fold], rows.starts[fold + 1])
                out[c, :, held] = refitted.f[job, :, held]
                status[c] = np.maximum(status[c], refitted.status[job])
        return Fits(fits.x[:, chosen], out, status)

    def _refit(self, jobs: Sequence[tuple[int, int]], which: Indices) -> Fits:
        """Fit each (output, fold) without its fold, for the lambda numbered ``which``, from the fit on all rows."""
        rows, fits = self.rows, self.fits
        outputs, folds = (np.array(numbers) for numbers in zip(*jobs, strict=True))
        weights = np.tile(rows.s, (len(jobs), 1))
        for job, fold in enumerate(folds):
            weights[job, ~rows.kept(fold)] = 0.0
        x, f = (np.ascontiguousarray(values[np.ix_(outputs, which)]) for values in (fits.x, fits.f))
        G = self._matrix[None]
        status = self._solve(G, np.zeros(len(jobs), np.int64), rows.Y[outputs], weights, self.lams[which], False, x, f)
        return Fits(x, f, status)

    def _solve(
        self, G: Array, which: Indices, Y: Array, S: Array, lams: Array, follow: bool, x: Array, f: Array
    ) -> NDArray[np.int64]:
        """Solve many problems side by side; those that end unfinished once more, along a path of smoother losses."""
        loss = self.learner.loss
        parameters = np.array(loss.parameters)
        status = self._solve_with(parameters, G, which, Y, S, lams, follow, x, f)
        jobs = np.flatnonzero((status == newton.UNFINISHED).any(axis=1))
        if loss.smoothing is None or not jobs.size:
            return status
        again_x, again_f = np.zeros((jobs.size, *x.shape[1:])), np.zeros((jobs.size, *f.shape[1:]))
        h = parameters[loss.smoothing]
        wider = max(0.0, np.ceil(np.log(1.0 / h) / np.log(SMOOTHING)))
        for step, width in enumerate(h * SMOOTHING ** np.arange(wider, -1.0, -1.0)):
            smoother = parameters.copy()
            smoother[loss.smoothing] = width
            again = self._solve_with(
                smoother, G, which[jobs], Y[jobs], S[jobs], lams, follow and step == 0, again_x, again_f
            )
        better = (status[jobs] == newton.UNFINISHED) & (again == newton.CONVERGED)
        for new, old in ((again_x, x), (again_f, f)):
            old[jobs] = np.where(better[:, :, None], new, old[jobs])
        status[jobs] = np.where(better, again, status[jobs])
        return status

    def _solve_with(
        self, parameters: Array, G: Array, which: Indices, Y: Array, S: Array, lams: Array, follow: bool, x: Array,
        f: Array,
    ) -> NDArray[np.int64]:  # fmt: skip
        tol = PROVISIONAL if self.problem.provisional else newton.DECREMENT
        result: NDArray[np.int64] = newton.solve_paths(
            self._solver, G, int(self.bias), which, Y, S, lams, self.learner.loss.pointer, parameters, follow, x, f, tol
        )
        return result

    def newton_step(self) -> HeldOut:
        """Folds whose system is singular, or whose step strays by more than ``TRUST`` allows, are refitted.

        So are all folds of a fit, which is then exact, where that costs less than the steps.
        """
        if self.rows.training is not None:
            return self.exact()
        by_steps = not (self.problem.provisional or self._single_rows)
        refits = self._cheaply_refitted()
        steps = ~refits
        k, L, n = self.fits.f.shape
        f, status = np.empty((k, L, n)), np.zeros((k, L), np.int64)
        refitted, rho = np.zeros(L, np.int64), np.full(L, np.nan)
        if refits.any():
            held = self._exact(np.flatnonzero(refits))
            f[:, refits], status[:, refits] = held.f, held.status
        if steps.any():
            f[:, steps], status[:, steps], refitted[steps], rho[steps] = self._steps(steps, by_steps)
        if by_steps:
            self.step_ratio = rho
        return replace(HeldOut.of(f, status, exact=False, refitted=refitted), exact=refits)

    def _cheaply_refitted(self) -> NDArray[np.bool_]:
        """Say for which lambda all folds are refitted, (L,)."""
        rows, loss = self.rows, self.learner.loss
        if not self.problem.full:
            return np.zeros(self.lams.size, np.bool_)
        curved = (loss.expand(rows.Y, rows.s, self.fits.f)[2] > 0.0).sum(axis=2)
        share = np.diff(rows.starts) / rows.n
        cheaper = [refits_are_cheaper(each, rows.n, rows.left, share, loss.piecewise_quadratic) for each in curved]
        return np.asarray(np.all(cheaper, axis=0))

    def _steps(
        self, which: NDArray[np.bool_], ratio_too: bool
    ) -> tuple[Array, NDArray[np.int64], NDArray[np.int64], Array]:
        """Return outputs (k, l, n), statuses (k, l), numbers of refitted folds and ratios (l,) for some lambda."""
        update = heldout_kernel.newton_step if self.problem.full else heldout_features.newton_step
        f, status, rho = self._update(update, int(ratio_too), trust=TRUST, which=which)
        fitted = self.fits.status[:, which, None]
        again = np.isin(status, (newton.SINGULAR, newton.ASTRAY)) & (fitted == newton.CONVERGED)
        status = np.where(status == newton.ASTRAY, fitted, status)
        numbers = np.flatnonzero(which)
        for k in np.flatnonzero(again.any(axis=(0, 2))):
            jobs = [(int(c), int(fold)) for c, fold in np.argwhere(again[:, k])]
            refitted = self._refit(jobs, numbers[[k]])
            for job, (c, fold) in enumerate(jobs):
                held = slice(self.rows.starts[fold], self.rows.starts[fold + 1])
                f[c, k, held] = refitted.f[job, 0, held]
                status[c, k, fold] = refitted.status[job, 0]
        return f, status.max(axis=2), again.sum(axis=(0, 2)), rho.max(axis=(0, 2))

    def influence(self, order: int) -> HeldOut:
        f, status, rho = self._influence(order)
        self.ratio = rho.max(axis=(0, 2))
        return HeldOut.of(f, status.max(axis=2), exact=False)

    @property
    def _single_rows(self) -> bool:
        """Whether every fold is one row, and there are many."""
        return self.rows.one_by_one is self.rows and self.rows.held >= SINGLE_ROWS

    def _ratio(self) -> Array:
        if self._single_rows:
            return self._ratio_of_single_rows()
        rho: Array = self._influence(0)[2].max(axis=(0, 2))
        return rho

    def _ratio_of_single_rows(self) -> Array:
        """Return the largest leverages, which are the ratios of folds of one row to 1/n: ``square.leverage``."""
        rows, fits, G = self.rows, self.fits, self.problem.matrix(self.bias)
        of = leverage.leverages_in_kernel if self.problem.full else leverage.leverages_in_features
        _, _, d2 = self.learner.loss.expand(rows.Y, rows.s, fits.f)
        rho = np.zeros(self.lams.size)
        for c, k in np.ndindex(fits.status.shape):
            try:
                H = of(G, int(self.bias), d2[c, k], 2.0 * rows.total * float(self.lams[k]))
                rho[k] = max(rho[k], H[: rows.held].max())
            except np.linalg.LinAlgError:  # the ridge is below rounding
                rho[k] = np.inf
        return rho

    def _influence(self, order: int) -> tuple[Array, NDArray[np.int64], Array]:
        self._need_whole_folds()
        update = heldout_kernel.influence if self.problem.full else heldout_features.influence
        return self._update(update, order)

    def _solution(self, k: int) -> Array:
        return self.fits.x[:, k]

    def _refitted(self, k: int) -> Array:
        outputs, folds = len(self.rows.Y), self.rows.left.size
        jobs = [(c, fold) for fold in range(folds) for c in range(outputs)]
        return self._refit(jobs, np.array([k])).x[:, 0].reshape(folds, outputs, -1)


def with_lost(status: NDArray[np.int64], problem: Problem, lams: Array) -> NDArray[np.int64]:
    """Return statuses (k, L) where a fit whose ridge is below rounding, and settles nothing, counts as singular."""
    rows = problem.rows
    lost = 2.0 * rows.total * lams < spectral.ROUNDING * rows.n * rows.s.max() * problem.kernel.diag(rows.X).max()
    return np.where(lost, np.maximum(status, newton.SINGULAR), status)


def compile_updates(learner: Any, full: bool) -> None:
    """Have the fold updates of a learner compiled while the search begins; ``full`` if it does with Gram matrices."""
    if not getattr(learner, "free", ()) and learner.loss.square:
        compile_ahead(*(factored.LOOPS if full else heldout.LOOPS))
    elif full:
        compile_ahead(heldout_kernel.influence, heldout_kernel.newton_step)
    else:
        compile_ahead(heldout_features.newton_step, heldout_features.influence)
