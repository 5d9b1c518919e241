"""Smooth losses with a Gram matrix."""

from __future__ import annotations

import numpy as np

from kernsel.numerics.dense import Cholesky
from kernsel.numerics.smooth import (
    convergence,
    enclosure_between,
    enclosure_kernel,
    enclosure_steps,
    heldout_kernel,
    newton,
    refits_kernel,
    steps_kernel,
)
from kernsel.numerics.square import leverage
from kernsel.paths import routes
from kernsel.paths.outputs import Fits, HeldOut
from kernsel.paths.smooth import ByInverse
from kernsel.paths.smooth_intervals import EnclosedSmoothPath
from kernsel.paths.updates import Updated, nystrom_influence
from kernsel.representation.gram import Gram
from kernsel.types import Array, Indices, Mask

RANK_OF_START, JITTER_OF_START, NEARLY = 128, 1e-8, 1e-2
"""The first fit starts at one with about so many landmarks, whose block of K has this jitter, relatively. That one ends
with a step that promises less than this share of J."""


class GramSmoothPath(EnclosedSmoothPath):
    """A smooth loss in the coordinates of the Gram matrix."""

    representation: Gram
    solver = newton.in_kernel
    step = heldout_kernel.newton_step
    by_inverse = ByInverse(
        enclosure_steps.enclosed_step, enclosure_steps.enclosed_steps, enclosure_between.enclose_between
    )
    together = refits_kernel.refit_folds, refits_kernel.refit_folds_finely
    series = heldout_kernel.influence
    enclose = enclosure_kernel.enclose
    between = enclosure_kernel.enclose_between

    @property
    def _matrix(self) -> Array:
        return self.representation.gram

    @property
    def _width(self) -> int:
        return self.rows.n + self.bias

    def _start(self, lam: float) -> tuple[Array, Array]:
        """Start at fits at a low rank where all rows are curved, and many: these take the time of a factor."""
        rows, K, n, start = self.rows, self.representation.gram, self.rows.n, super()._start(lam)
        if self.learner.loss.piecewise_quadratic or n < self.thresholds.together:
            return start
        points = np.arange(0, n, -(-n // RANK_OF_START))
        Q = K[np.ix_(points, points)]
        if not np.isfinite(K[points]).all():  # the fit itself says so
            return start
        try:
            factor = Cholesky.of(Q, JITTER_OF_START * float(np.trace(Q)) / points.size)
        except np.linalg.LinAlgError:
            return start
        Z = np.ascontiguousarray(np.column_stack([factor.half(K[points]).T, np.ones((n, int(self.bias)))]))
        w, f = np.zeros((len(rows.Y), 1, Z.shape[1])), np.zeros((len(rows.Y), 1, n))
        status = newton.solve_paths(
            newton.in_features, Z[None], int(self.bias), np.zeros(len(rows.Y), np.int64), rows.Y,
            np.tile(rows.s, (len(rows.Y), 1)), np.array([lam]), self.learner.loss.pointer,
            np.array(self.learner.loss.parameters), False, w, f, NEARLY,
        )  # fmt: skip
        for c in np.flatnonzero(status[:, 0] == convergence.CONVERGED):
            x, r = start[0][c], points.size
            x[points] = factor.solve(Z[points, :r] @ w[c, 0, :r])
            x[n:] = w[c, 0, r:]
            start[1][c] = K @ x[:n] + x[n:].sum()
        return start

    def _cheaply_refitted(self) -> Mask:
        rows, loss = self.rows, self.learner.loss
        if self._together:
            return np.full(self.lams.size, routes.inverses_are_dearer(rows))
        curved = (loss.expand(rows.Y, rows.s, self.fits.f)[2] > 0.0).sum(axis=2)
        share = rows.away.sizes / rows.n
        cheaper = [
            routes.refits_are_cheaper(each, rows.n, rows.left, share, loss.piecewise_quadratic) for each in curved
        ]
        return np.asarray(np.all(cheaper, axis=0))

    @property
    def _together(self) -> bool:
        everywhere = not self.learner.loss.piecewise_quadratic
        return everywhere and self.rows.updated and routes.refits_go_together(self.rows, self.thresholds)

    def _step_folds(self, which: Indices) -> Updated:
        ways = self._enclosing
        if not (self._together and routes.steps_go_together(self.rows)):
            return super()._step_folds(which)
        found = self._take(steps_kernel.newton_steps if ways is None else ways[0].steps, which)
        left = (found.status == convergence.UNFINISHED).any(axis=(0, 2))
        if left.any():
            found.put(left, super()._step_folds(which[left]))
        return found

    def _known_fits(self) -> Fits | None:
        if self.learner.loss.piecewise_quadratic or not all(lam in self.near for lam in self.lams.tolist()):
            return None
        x, n = np.stack([self.near[lam] for lam in self.lams.tolist()], axis=1), self.rows.n
        f = x[..., :n] @ self.representation.gram + (x[..., n:] if self.bias else 0.0)
        return Fits(x, f, np.zeros(f.shape[:2], np.int64))

    def settled(self) -> dict[float, Array]:
        if self.learner.loss.piecewise_quadratic:  # found again at once
            return {}
        done = (self.fits.status == convergence.CONVERGED).all(axis=0)
        return {float(self.lams[k]): self.fits.x[:, k] for k in np.flatnonzero(done)}

    def _leverages(self, d2: Array, ridge: float) -> Array:
        return leverage.leverages_in_kernel(self.representation.gram, int(self.bias), d2, ridge)

    def nystrom_influence(self, share: float) -> HeldOut:
        return nystrom_influence(self, self.representation, share)
