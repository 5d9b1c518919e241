"""Paths of the other losses: damped Newton, and updates of its fits for every fold."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from kernsel.errors import check_memory
from kernsel.folds.partition import Partition
from kernsel.numerics.runtime.jit import Compiled
from kernsel.numerics.runtime.once import once
from kernsel.numerics.smooth import enclosure, newton
from kernsel.numerics.smooth.convergence import REFITTED
from kernsel.numerics.smooth.objective import Objective
from kernsel.numerics.square import spectral
from kernsel.paths import routes
from kernsel.paths.base import Path
from kernsel.paths.outputs import Between, Enclosed, Fits, HeldOut
from kernsel.paths.updates import Updated, update_folds
from kernsel.representation.base import Held, Representation

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

REFIT_BYTES = 2**28
"""Room for the outputs of a group of refits."""

SMOOTHING = 4.0
"""Where a fit with a narrow kink doesn't converge, the kink is made this much wider at each step of a detour."""

LEAD_IN = 4.0 ** np.arange(3, 0, -1)
"""A fit of one lambda that is led in is fitted at so many times that lambda before."""

CURVED_EVERYWHERE = 1e-10
"""The same share for a loss with curvature everywhere: the step squares what is left, so that outputs are right to as
much. Where a loss is piecewise quadratic a last step may meet a new piece, and has to promise far less."""

NEARLY = 1e-7
"""The same share where an interval is put around the fit: as narrow as a proof of a percent can use."""

TRUST = 0.25
"""A fold is refitted where its Newton step strays by more than this share of what it promises.

With three quarters of the promise a trust-region method calls its model very good (Nocedal & Wright, Algorithm 4.1). On
seven sets of classes, near-separable ones among them, a tenth of the folds are refitted, and scores are at most 7 %
off; with 1 (the objective of the fold doesn't fall) 6 % and 15 %.
"""


FEW_CURVED = 0.3
"""With fewer curved rows than this share an interval from a Newton step may take a guess of their curvature. Where more
have some, a guess costs as much as a refit, which makes the interval narrow."""


class ByInverse(NamedTuple):
    """What encloses outputs by one inverse for all folds, for a loss that is steepest at a known output.

    Parameters
    ----------
    step : compiled function
        A Newton step, with intervals: ``enclosure_steps.enclosed_step``.
    between : compiled function
        For all lambda between two: ``enclosure_between.enclose_between``.
    """

    step: Compiled
    between: Compiled


class Stepped(NamedTuple):
    """What Newton steps find.

    Parameters
    ----------
    held_out : HeldOut
    ratio : (L,) array
        The ratios of the influence series if they compute any, else NaN.
    ends : (k, L, t, .) array or None
        Solutions without each fold, if these are kept.
    refitted : (k, L, t) array of bool
        Which of these are refits.
    low, high : (k, L, n) array
        Intervals that contain the held-out outputs of exact fits, where they come along.
    """

    held_out: HeldOut
    ratio: Array
    ends: Array | None
    refitted: NDArray[np.bool_]
    low: Array
    high: Array


class SmoothPath(Path):
    """A smooth loss by damped Newton on a Gram matrix or features in memory."""

    representation: Held
    trust = TRUST
    """Share of its promise that the Newton step of a fold may stray by: set before any is asked."""
    room = REFIT_BYTES
    """Refits of folds are done in groups whose outputs fit in this."""
    solver: ClassVar[Compiled]
    """Minimises J: see ``numerics.smooth.newton``."""
    step: ClassVar[Compiled]
    """Newton steps for folds."""
    together: ClassVar[Compiled]
    """Fits without some folds side by side, where these go ``_together``."""
    series: ClassVar[Compiled]
    """The influence series for folds."""
    by_inverse: ClassVar[ByInverse | None] = None
    """How outputs are enclosed without a factor for each fold."""
    enclose: ClassVar[Compiled]
    """Encloses the outputs of exact fits: see ``numerics.smooth.enclosure``."""
    between: ClassVar[Compiled]
    """Encloses them for all lambda between two: see the same."""

    @property
    @abstractmethod
    def _matrix(self) -> Array:
        """What the solver works on."""

    @property
    @abstractmethod
    def _width(self) -> int:
        """Numbers of a solution."""

    @once
    def fits(self) -> Fits:
        known = self._known_fits()
        if known is not None:
            return known
        rows, k, L = self.rows, len(self.rows.Y), self.lams.size
        lams = np.append(LEAD_IN * self.lams[0], self.lams) if self.lead_in else self.lams
        x, f = np.zeros((k, lams.size, self._width)), np.zeros((k, lams.size, rows.n))
        weights = np.tile(rows.s, (k, 1))
        status = self._solve(self._matrix[None], np.zeros(k, np.int64), rows.Y, weights, lams, True, x, f)
        return Fits(x[:, -L:], f[:, -L:], with_lost(status[:, -L:], self.representation, self.lams))

    def _in_folds(self, rows: Partition) -> Self:
        other = super()._in_folds(rows)
        other.fits, other.trust, other.room = self.fits, self.trust, self.room
        return other

    def with_fits(self, fits: Fits) -> Self:
        self.fits = fits
        return self

    def exact(self, which: Sequence[int] | None = None) -> HeldOut:
        held = self._exact(np.arange(self.lams.size) if which is None else np.asarray(list(which)))
        return HeldOut.of(held.f, held.status, exact=True)

    def _exact(self, chosen: Indices, ends: Array | None = None) -> Fits:
        """Return held-out outputs (k, l, n) of refits for the lambda numbered ``chosen``, and the worst statuses.

        Solutions go to ``ends (k, l, t, .)``, if they are wanted.
        """
        if self._together:
            return self._exact_together(chosen, ends)
        rows, fits = self.rows, self.fits
        k, folds = len(rows.Y), rows.left.size
        out, status = fits.f[:, chosen].copy(), fits.status[:, chosen].copy()
        group = max(1, self.room // (16 * k * chosen.size * rows.n))
        for first in range(0, folds, group):
            jobs = [(c, fold) for c in range(k) for fold in range(first, min(first + group, folds))]
            refitted = self._refit(jobs, chosen)
            for job, (c, fold) in enumerate(jobs):
                held = slice(rows.starts[fold], rows.starts[fold + 1])
                out[c, :, held] = refitted.f[job, :, held]
                status[c] = np.maximum(status[c], refitted.status[job])
                if ends is not None:
                    ends[c, :, fold] = refitted.x[job]
        return Fits(fits.x[:, chosen], out, status)

    @property
    def _together(self) -> bool:
        """Whether fits without each fold are found side by side."""
        return False

    def _known_fits(self) -> Fits | None:
        """Return the fits if they are ``near``."""
        return None

    def _exact_together(self, chosen: Indices, ends: Array | None) -> Fits:
        """Return what ``_exact`` does, from fits of all folds side by side; those that don't end well by themselves."""
        wanted = np.ones(self.rows.left.size, np.bool_)
        f, status, _, found, *_ = self._fit_together(chosen, wanted, self._settled, ends is not None)
        if ends is not None and found is not None:
            ends[:] = found
        self._refit_those(status != REFITTED, chosen, f, status, ends)
        worst = np.maximum(status.max(axis=2), newton.CONVERGED)
        return Fits(self.fits.x[:, chosen], f, np.maximum(worst, self.fits.status[:, chosen]))

    def _fit_together(self, which: Indices, wanted: NDArray[np.bool_], tol: float, solutions: bool) -> Updated:
        """Return fits without folds that are wanted (t,), for lambda numbered ``which``; those are ``REFITTED``."""
        return update_folds(
            self, self.representation, self.together, 0, wanted[:, None].astype(np.float64), tol, which, solutions
        )

    def _refit_those(
        self, again: NDArray[np.bool_], numbers: Indices, f: Array, status: NDArray[np.int64], ends: Array | None
    ) -> None:
        """Overwrite outputs f (k, l, n), statuses (k, l, t) and solutions of some folds ``again (k, l, t)`` by refits.

        They are of the lambda with these numbers.
        """
        for k in np.flatnonzero(again.any(axis=(0, 2))):
            jobs = [(int(c), int(fold)) for c, fold in np.argwhere(again[:, k])]
            refitted = self._refit(jobs, numbers[[k]])
            for job, (c, fold) in enumerate(jobs):
                held = slice(self.rows.starts[fold], self.rows.starts[fold + 1])
                f[c, k, held] = refitted.f[job, 0, held]
                status[c, k, fold] = refitted.status[job, 0]
                if ends is not None:
                    ends[c, k, fold] = refitted.x[job, 0]

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
        smoothing: int | None = getattr(loss, "smoothing", None)  # of a loss with a kink that was made smooth
        parameters = np.array(loss.parameters)
        status = self._solve_with(parameters, G, which, Y, S, lams, follow, x, f)
        jobs = np.flatnonzero((status == newton.UNFINISHED).any(axis=1))
        if smoothing is None or not jobs.size:
            return status
        again_x, again_f = np.zeros((jobs.size, *x.shape[1:])), np.zeros((jobs.size, *f.shape[1:]))
        h = parameters[smoothing]
        wider = max(0.0, np.ceil(np.log(1.0 / h) / np.log(SMOOTHING)))
        for step, width in enumerate(h * SMOOTHING ** np.arange(wider, -1.0, -1.0)):
            smoother = parameters.copy()
            smoother[smoothing] = width
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
        result: NDArray[np.int64] = newton.solve_paths(
            self.solver, G, int(self.bias), which, Y, S, lams, self.learner.loss.pointer, parameters, follow, x, f,
            self._settled,
        )  # fmt: skip
        return result

    @property
    def _settled(self) -> float:
        """A fit ends with a step that promises less than this share of J."""
        everywhere = 0.0 if self.learner.loss.piecewise_quadratic else CURVED_EVERYWHERE
        return max(self.representation.decrement, everywhere)

    def newton_step(self) -> HeldOut:
        """Folds whose system is singular, or whose step strays by more than ``trust`` allows, are refitted.

        At a provisional rank steps are believed: what the rank leaves out is more, and most folds would be refitted.
        All folds of a fit are refitted where that costs less than the steps. A fit all of whose folds are is exact.
        """
        return self._stepped.held_out

    @property
    def step_ratio(self) -> Array | None:
        return self._stepped.ratio if self._ratio_by_steps else super().step_ratio

    @property
    def _ratio_by_steps(self) -> bool:
        """Whether Newton steps compute ratios as well."""
        whole = self.rows.training is None
        return whole and self.representation.in_force and not routes.by_leverages(self.rows, self.thresholds)

    @once
    def _stepped(self) -> Stepped:
        """Held-out outputs by Newton steps, and what comes along with them."""
        (k, L, n), t = self.fits.f.shape, self.rows.left.size
        ends = self._room_for_folds() if self.keeps_folds else None
        refits = self._cheaply_refitted() if self.rows.updated else np.ones(L, np.bool_)
        again = np.broadcast_to(refits[:, None], (k, L, t)).copy()
        steps = ~refits
        f, status = np.empty((k, L, n)), np.zeros((k, L), np.int64)
        refitted, rho = np.zeros(L, np.int64), np.full(L, np.nan)
        low, high = anywhere(k, L, n)
        if refits.any():
            room = None if ends is None else ends[:, refits]
            held = self._exact(np.flatnonzero(refits), room)
            f[:, refits], status[:, refits] = held.f, held.status
            if ends is not None:
                ends[:, refits] = room
        if steps.any():
            updated, again[:, steps] = self._steps(steps)
            f[:, steps], status[:, steps], rho[steps] = (
                updated.f,
                updated.status.max(axis=2),
                updated.rho.max(axis=(0, 2)),
            )
            refitted[steps] = again[:, steps].sum(axis=(0, 2))
            if ends is not None:
                ends[:, steps] = updated.x
            if updated.low is not None:
                low[:, steps], high[:, steps] = updated.low, updated.high
        everywhere = refitted == k * t
        held_out = replace(HeldOut.of(f, status, exact=False, refitted=refitted), exact=refits | everywhere)
        return Stepped(held_out, rho, ends, again, low, high)

    def _cheaply_refitted(self) -> NDArray[np.bool_]:
        """Say for which lambda all folds are refitted, (L,)."""
        return np.zeros(self.lams.size, np.bool_)

    def _steps(self, which: NDArray[np.bool_]) -> tuple[Updated, NDArray[np.bool_]]:
        """Return updates for some lambda (L,), where distrusted ones are refits, and which these are, (k, l, t)."""
        order, keep, update, V = int(self._ratio_by_steps), self.keeps_folds, self.step, None
        if encloses := keep and self._by_inverse is not None:
            update, V = self._by_inverse[0].step, np.full((1, 1), self._by_inverse[1])
        updated = update_folds(
            self, self.representation, update, order, V, self.trust, which, solutions=keep, intervals=encloses
        )
        status, fitted = updated.status, self.fits.status[:, which, None]
        in_force = self.representation.in_force
        distrusted = (newton.SINGULAR, newton.ASTRAY) if in_force else (newton.SINGULAR,)
        again = np.isin(status, distrusted) & (fitted == newton.CONVERGED)
        status = np.where(status == newton.ASTRAY, fitted, status)
        self._refit_those(again, np.flatnonzero(which), updated.f, status, updated.x)
        return updated._replace(status=status), again

    @property
    def _by_inverse(self) -> tuple[ByInverse, float] | None:
        """How outputs are enclosed by one inverse for all folds, and where V' is steepest, if that is known."""
        loss = self.learner.loss
        bend: float | None = getattr(loss, "bend", None)
        known = getattr(loss, "bends_once", False) and not loss.piecewise_quadratic and self.rows.updated
        return None if self.by_inverse is None or bend is None or not known else (self.by_inverse, bend)

    def _room_for_folds(self) -> Array:
        shape = (*self.fits.f.shape[:2], self.rows.left.size, self._width)
        check_memory(
            8 * int(np.prod(shape)),
            f"holding the fits without each of {shape[2]} folds for a certificate",
            "give fewer folds, or leave out certify",
        )
        return np.empty(shape)

    @once
    def enclosed(self) -> Enclosed:
        (k, L, n), stepped = self.fits.f.shape, self._stepped
        low, high, refitted = stepped.low.copy(), stepped.high.copy(), stepped.refitted
        ends = stepped.ends
        assert ends is not None
        few = (self.learner.loss.expand(self.rows.Y, self.rows.s, self.fits.f)[2] > 0.0).mean(axis=2) < FEW_CURVED
        # a ball is no use where the inverse behind the step was of none
        jobs = [job for job in np.ndindex(k, L, self.rows.left.size) if refitted[job] or self._by_inverse is None]
        step = max(1, self.room // (32 * n))
        for first in range(0, len(jobs), step):
            group = jobs[first : first + step]
            x = np.stack([ends[job] for job in group])
            rounds = np.where([refitted[job] for job in group], enclosure.ROUNDS, [few[job[:2]] for job in group])
            self._put(group, self._enclose(group, x, self.lams, rounds), low, high)
        return Enclosed(low, high, refitted)

    def refit_enclosed(self, k: int, folds: Sequence[int]) -> Enclosed:
        outputs = len(self.rows.Y)
        jobs = [(c, 0, int(fold)) for c in range(outputs) for fold in folds]
        x = self._refit_some(k, [(c, fold) for c, _, fold in jobs])
        low, high = anywhere(outputs, 1, self.rows.n)
        self._put(jobs, self._enclose(jobs, x, self.lams[[k]], np.full(len(jobs), enclosure.ROUNDS)), low, high)
        return Enclosed(low, high, np.ones((outputs, 1, len(folds)), np.bool_))

    def _refit_some(self, k: int, jobs: Sequence[tuple[int, int]]) -> Array:
        """Return solutions (q, .) without folds for lambda number ``k``, by output and fold."""
        if not self._together:
            return self._refit(jobs, np.array([k])).x[:, 0]
        wanted = np.zeros(self.rows.left.size, np.bool_)
        wanted[[fold for _, fold in jobs]] = True
        _, status, _, ends, *_ = self._fit_together(np.array([k]), wanted, NEARLY, solutions=True)
        assert ends is not None
        left = [job for job in jobs if status[job[0], 0, job[1]] != REFITTED]
        if left:
            outputs, folds = np.transpose(left)
            ends[outputs, 0, folds] = self._refit(left, np.array([k])).x[:, 0]
        return np.stack([ends[c, 0, fold] for c, fold in jobs])

    @once
    def _refits(self) -> tuple[Array, Array]:
        """Held-out outputs (k, L, n) of refits without each fold, and their solutions (k, L, t, .)."""
        ends = self._room_for_folds()
        return self._exact(np.arange(self.lams.size), ends).f, ends

    def enclosed_between(self) -> Between:
        rows, (f, ends) = self.rows, self._refits
        jobs = list(np.ndindex(len(rows.Y), rows.left.size))
        low, high = anywhere(len(rows.Y), self.lams.size - 1, rows.n)
        for k in range(self.lams.size - 1):
            left = jobs
            if self._by_inverse is not None:
                found = self._between_by_inverse(*self._by_inverse, k, ends)
                low[:, k], high[:, k] = found
                left = [(c, fold) for c, fold in jobs if np.isinf(found[1][c, rows.starts[fold]])]
            if left:
                higher, lower = (np.stack([ends[c, number, fold] for c, fold in left]) for number in (k, k + 1))
                intervals = enclosure.enclose_between(
                    self.between, self._matrix, self._objectives(left, self.lams[[k + 1, k]]),
                    self.learner.loss.pointer, self._bend, lower, higher,
                )  # fmt: skip
                self._put([(c, k, fold) for c, fold in left], intervals, low, high)
        return Between(f, low, high)

    def _between_by_inverse(self, ways: ByInverse, bend: float, k: int, ends: Array) -> tuple[Array, Array]:
        """Return intervals (outputs, n) for all lambda from number ``k`` to the next, from ends of refits."""
        V = np.array([[self.lams[k], bend]])
        both = np.concatenate([ends[:, [k + 1]], ends[:, [k]]], axis=3)
        found = update_folds(
            self, self.representation, ways.between, 0, V, which=np.array([k + 1]), intervals=True,
            given=both,
        )  # fmt: skip
        assert found.low is not None
        assert found.high is not None
        return found.low[:, 0], found.high[:, 0]

    def enclosed_near(self, number: int, at: Sequence[float]) -> Enclosed:
        rows, (_, ends), there = self.rows, self._refits, np.array(at)
        low, high = anywhere(len(rows.Y), there.size, rows.n)
        jobs = list(np.ndindex(len(rows.Y), there.size, rows.left.size))
        x = np.stack([ends[c, number, fold] for c, _, fold in jobs])
        here = self._enclose([(c, 0, fold) for c, _, fold in jobs], x, self.lams[[number]], np.zeros(len(jobs), int))
        far = self._enclose(jobs, x, there, np.full(len(jobs), 0 if self.bias else enclosure.ROUNDS))
        kept = np.stack([rows.kept(fold) for _, _, fold in jobs])
        outside = ((here[0] < far[0]) | (here[1] > far[1])) & kept
        if (alone := np.flatnonzero(outside.any(axis=1))).size and not self.bias:
            balls = self._enclose([jobs[job] for job in alone], x[alone], there, np.zeros(alone.size, int))
            for end, ball in zip(far, balls, strict=True):
                end[alone] = ball
        self._put(jobs, (np.minimum(here[0], far[0]), np.maximum(here[1], far[1])), low, high)
        return Enclosed(low, high, np.ones((len(rows.Y), there.size, rows.left.size), np.bool_))

    def _enclose(
        self, jobs: Sequence[tuple[int, int, int]], x: Array, lams: Array, rounds: Indices
    ) -> tuple[Array, Array]:
        """Return intervals (q, n) for outputs of the exact fits numbered (output, lambda, fold), from solutions.

        Each may take so many ``rounds`` of guesses.
        """
        objective = self._objectives([(c, fold) for c, _, fold in jobs], lams)
        return enclosure.enclose_fits(
            self.enclose, self._matrix, objective, np.array([number for _, number, _ in jobs]),
            self.learner.loss.pointer, self._bend, rounds, np.ascontiguousarray(x),
        )  # fmt: skip

    def _put(self, jobs: Sequence[tuple[int, int, int]], found: tuple[Array, Array], low: Array, high: Array) -> None:
        """Cut ``low, high (k, L, n)`` to intervals (q, n) of fits (output, lambda, fold), at the rows of the fold."""
        for (c, k, fold), below, above in zip(jobs, *found, strict=True):
            held = slice(self.rows.starts[fold], self.rows.starts[fold + 1])
            low[c, k, held] = np.maximum(low[c, k, held], below[held])
            high[c, k, held] = np.minimum(high[c, k, held], above[held])

    def _objectives(self, jobs: Sequence[tuple[int, int]], lams: Array) -> Objective:
        """Return the objectives of fits without a fold, by the numbers of output and fold."""
        rows = self.rows
        weights = np.tile(rows.s, (len(jobs), 1))
        for job, (_, fold) in enumerate(jobs):
            weights[job, ~rows.kept(fold)] = 0.0
        return Objective(
            rows.Y[[c for c, _ in jobs]], weights, lams, np.array(self.learner.loss.parameters), int(self.bias)
        )

    @property
    def _bend(self) -> enclosure.Bend:
        loss = self.learner.loss
        return enclosure.Bend(int(getattr(loss, "bends_once", False)), int(loss.piecewise_quadratic))

    def influence(self, order: int) -> HeldOut:
        f, status, rho, *_ = self._influence(order)
        if not routes.by_leverages(self.rows, self.thresholds):
            self.ratio = rho.max(axis=(0, 2))  # no term of the series changes it
        return HeldOut.of(f, status.max(axis=2), exact=False)

    @once
    def ratio(self) -> Array:
        """The largest ratio rho of the influence series over folds and outputs, (L,)."""
        if routes.by_leverages(self.rows, self.thresholds):
            return self._ratio_of_single_rows()
        return np.asarray(self._influence(0).rho.max(axis=(0, 2)))

    def _ratio_of_single_rows(self) -> Array:
        """Return the largest leverages, which are the ratios of folds of one row to 1/n: ``square.leverage``."""
        rows, fits = self.rows, self.fits
        _, _, d2 = self.learner.loss.expand(rows.Y, rows.s, fits.f)
        rho = np.zeros(self.lams.size)
        for c, k in np.ndindex(fits.status.shape):
            try:
                ridge = 2.0 * rows.total * float(self.lams[k])
                rho[k] = max(rho[k], self._leverages(d2[c, k], ridge)[: rows.held].max())
            except np.linalg.LinAlgError:  # the ridge is below rounding
                rho[k] = np.inf
        return rho

    @abstractmethod
    def _leverages(self, d2: Array, ridge: float) -> Array:
        """Return the leverages (n,) of rows with curvatures d2 (n,): see ``numerics.square.leverage``."""

    def _influence(self, order: int) -> Updated:
        self.need_whole_folds()
        return update_folds(self, self.representation, self.series, order)

    def _solution(self, k: int) -> Array:
        return self.fits.x[:, k]

    def _refitted(self, k: int) -> Array:
        ends = np.empty((len(self.rows.Y), 1, self.rows.left.size, self._width))
        self._exact(np.array([k]), ends)
        return ends[:, 0].swapaxes(0, 1)


def anywhere(*shape: int) -> tuple[Array, Array]:
    """Return the ends of intervals that contain everything."""
    return np.full(shape, -np.inf), np.full(shape, np.inf)


def with_lost(status: NDArray[np.int64], representation: Representation, lams: Array) -> NDArray[np.int64]:
    """Return statuses (k, L) where a fit whose ridge is below rounding, and settles nothing, counts as singular."""
    rows = representation.rows
    rounding = spectral.ROUNDING * rows.n * rows.s.max() * rows.diagonal(representation.kernel).max()
    return np.where(2.0 * rows.total * lams < rounding, np.maximum(status, newton.SINGULAR), status)
