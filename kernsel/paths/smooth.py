"""Paths of the other losses: damped Newton, and updates of its fits for every fold."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, NamedTuple, Self

import numpy as np

from kernsel.errors import check_memory
from kernsel.folds.partition import Partition
from kernsel.numerics.runtime.jit import Compiled
from kernsel.numerics.runtime.once import once
from kernsel.numerics.smooth import convergence, newton
from kernsel.numerics.smooth.convergence import REFITTED
from kernsel.numerics.square import spectral
from kernsel.paths import routes
from kernsel.paths.base import Path
from kernsel.paths.outputs import Fits, HeldOut
from kernsel.paths.updates import Updated, update_folds
from kernsel.representation.base import Held, Representation
from kernsel.types import Array, Indices, Mask

REFIT_BYTES = 2**28
"""Room for the outputs of a group of refits."""

SMOOTHING = 4.0
"""Where a fit with a narrow kink doesn't converge, the kink is made this much wider at each step of a detour."""

LEAD_IN = 4.0 ** np.arange(3, 0, -1)
"""A fit of one lambda that is led in is fitted at so many times that lambda before."""

CURVED_EVERYWHERE = 1e-10
"""The same share for a loss with curvature everywhere: the step squares what is left, so that outputs are right to as
much. Where a loss is piecewise quadratic a last step may meet a new piece, and has to promise far less."""

TRUST = 0.25
"""A fold is refitted where its Newton step strays by more than this share of what it promises.

With three quarters of the promise a trust-region method calls its model very good (Nocedal & Wright, Algorithm 4.1). On
seven sets of classes, near-separable ones among them, a tenth of the folds are refitted, and scores are at most 7 %
off; with 1 (the objective of the fold doesn't fall) 6 % and 15 %.
"""


class ByInverse(NamedTuple):
    """What encloses outputs by one inverse for all folds, for a loss that is steepest at a known output.

    Parameters
    ----------
    step, steps : compiled functions
        Newton steps, with intervals: ``enclosure_steps.enclosed_step``; of all folds side by side, ``enclosed_steps``.
    between : compiled function
        For all lambda between two: ``enclosure_between.enclose_between``.
    """

    step: Compiled
    steps: Compiled
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
    refitted: Mask
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
    together: ClassVar[tuple[Compiled, Compiled]]
    """Fits without some folds side by side, where these go ``_together``: in float32, and in float64 for those of which
    float32 finds none."""
    series: ClassVar[Compiled]
    """The influence series for folds."""
    by_inverse: ClassVar[ByInverse | None] = None
    """How outputs are enclosed without a factor for each fold."""

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
        x[:, 0], f[:, 0] = self._start(float(lams[0]))
        weights = np.tile(rows.s, (k, 1))
        status = self._solve(self._matrix[None], np.zeros(k, np.int64), rows.Y, weights, lams, True, x, f)
        return Fits(x[:, -L:], f[:, -L:], with_lost(status[:, -L:], self.representation, self.lams))

    def _start(self, lam: float) -> tuple[Array, Array]:
        """Return where the fits for the largest lambda start: solutions (k, .) and their outputs (k, n)."""
        k = len(self.rows.Y)
        return np.zeros((k, self._width)), np.zeros((k, self.rows.n))

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
        worst = np.maximum(status.max(axis=2), convergence.CONVERGED)
        return Fits(self.fits.x[:, chosen], f, np.maximum(worst, self.fits.status[:, chosen]))

    def _fit_together(self, which: Indices, wanted: Mask, tol: float, solutions: bool) -> Updated:
        """Return fits without folds that are wanted (t,), for lambda numbered ``which``; those are ``REFITTED``."""
        V = wanted[:, None].astype(np.float64)
        single, double = (
            functools.partial(update_folds, self, self.representation, each, 0, V, tol, solutions=solutions)
            for each in self.together
        )
        found = single(which)
        left = (found.status[:, :, wanted] != REFITTED).all(axis=(0, 2))
        if left.any():
            found.put(left, double(which[left]))
        return found

    def _refit_those(self, again: Mask, numbers: Indices, f: Array, status: Indices, ends: Array | None) -> None:
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
    ) -> Indices:
        """Solve many problems side by side; those that end unfinished once more, along a path of smoother losses."""
        loss = self.learner.loss
        smoothing: int | None = getattr(loss, "smoothing", None)  # of a loss with a kink that was made smooth
        parameters = np.array(loss.parameters)
        status = self._solve_with(parameters, G, which, Y, S, lams, follow, x, f)
        jobs = np.flatnonzero((status == convergence.UNFINISHED).any(axis=1))
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
        better = (status[jobs] == convergence.UNFINISHED) & (again == convergence.CONVERGED)
        for new, old in ((again_x, x), (again_f, f)):
            old[jobs] = np.where(better[:, :, None], new, old[jobs])
        status[jobs] = np.where(better, again, status[jobs])
        return status

    def _solve_with(
        self, parameters: Array, G: Array, which: Indices, Y: Array, S: Array, lams: Array, follow: bool, x: Array,
        f: Array,
    ) -> Indices:  # fmt: skip
        result: Indices = newton.solve_paths(
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

    def _cheaply_refitted(self) -> Mask:
        """Say for which lambda all folds are refitted, (L,)."""
        return np.zeros(self.lams.size, np.bool_)

    def _steps(self, which: Mask) -> tuple[Updated, Mask]:
        """Return updates for some lambda (L,), where distrusted ones are refits, and which these are, (k, l, t)."""
        updated = self._step_folds(np.flatnonzero(which))
        status, fitted = updated.status, self.fits.status[:, which, None]
        in_force = self.representation.in_force
        distrusted = (convergence.SINGULAR, convergence.ASTRAY) if in_force else (convergence.SINGULAR,)
        again = np.isin(status, distrusted) & (fitted == convergence.CONVERGED)
        status = np.where(status == convergence.ASTRAY, fitted, status)
        self._refit_those(again, np.flatnonzero(which), updated.f, status, updated.x)
        return updated._replace(status=status), again

    def _step_folds(self, which: Indices) -> Updated:
        """Return Newton steps for lambda with these numbers, as they are."""
        ways = self._enclosing
        return self._take(self.step if ways is None else ways[0].step, which)

    def _take(self, steps: Compiled, which: Indices) -> Updated:
        """Return steps of one kind; those that enclose outputs are told where V' is steepest."""
        ways = self._enclosing
        V = None if ways is None else np.full((1, 1), ways[1])
        return update_folds(
            self, self.representation, steps, int(self._ratio_by_steps), V, self.trust, which,
            solutions=self.keeps_folds, intervals=V is not None,
        )  # fmt: skip

    @property
    def _enclosing(self) -> tuple[ByInverse, float] | None:
        """What steps enclose outputs by, where they do."""
        return self._by_inverse if self.keeps_folds else None

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


def with_lost(status: Indices, representation: Representation, lams: Array) -> Indices:
    """Return statuses (k, L) where a fit whose ridge is below rounding, and settles nothing, counts as singular."""
    rows = representation.rows
    rounding = spectral.ROUNDING * rows.n * rows.s.max() * rows.diagonal(representation.kernel).max()
    return np.where(2.0 * rows.total * lams < rounding, np.maximum(status, convergence.SINGULAR), status)
