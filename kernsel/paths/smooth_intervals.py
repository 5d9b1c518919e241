"""Paths of smooth losses whose exact fits without each fold are enclosed, for certificates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np

from kernsel.numerics.runtime.jit import Compiled
from kernsel.numerics.runtime.once import once
from kernsel.numerics.smooth import enclosure
from kernsel.numerics.smooth.convergence import REFITTED
from kernsel.numerics.smooth.objective import Objective
from kernsel.paths.outputs import Between, Enclosed, Fits
from kernsel.paths.smooth import ByInverse, SmoothPath, anywhere
from kernsel.paths.updates import update_folds
from kernsel.types import Array, Indices

NEARLY = 1e-7
"""A fit with an interval around it ends with a step that promises less than this share of J: as narrow as a proof of a
percent can use."""


class EnclosedSmoothPath(SmoothPath):
    """Fits and steps of a smooth loss, with intervals that contain the outputs of exact fits without each fold."""

    enclose: ClassVar[Compiled]
    """Encloses the outputs of exact fits: see ``numerics.smooth.enclosure``."""
    between: ClassVar[Compiled]
    """Encloses them for all lambda between two."""

    @once
    def enclosed(self) -> Enclosed:
        (k, L, n), stepped = self.fits.f.shape, self._stepped
        low, high, refitted = stepped.low.copy(), stepped.high.copy(), stepped.refitted
        ends = stepped.ends
        assert ends is not None
        # a ball is no use where the inverse behind the step was of none
        jobs = [job for job in np.ndindex(k, L, self.rows.left.size) if refitted[job] or self._by_inverse is None]
        step = max(1, self.room // (32 * n))
        for first in range(0, len(jobs), step):
            group = jobs[first : first + step]
            x = np.stack([ends[job] for job in group])
            self._put(group, self._enclose(group, x, self.lams, 0), low, high)
        return Enclosed(low, high, refitted)

    def refitted(self, k: int, folds: Sequence[int]) -> Array:
        """Return solutions (outputs, t, .) without some folds for lambda number ``k``."""
        outputs = len(self.rows.Y)
        if not self._together:
            jobs = [(c, int(fold)) for c in range(outputs) for fold in folds]
            return self._refit(jobs, np.array([k])).x[:, 0].reshape(outputs, len(folds), -1)
        wanted = np.zeros(self.rows.left.size, np.bool_)
        wanted[list(folds)] = True
        _, status, _, ends, *_ = self._fit_together(np.array([k]), wanted, NEARLY, solutions=True)
        assert ends is not None
        left = [(c, int(fold)) for c in range(outputs) for fold in folds if status[c, 0, fold] != REFITTED]
        if left:
            numbers, again = np.transpose(left)
            ends[numbers, 0, again] = self._refit(left, np.array([k])).x[:, 0]
        return np.asarray(ends[:, 0, list(folds)])

    def enclosed_around(self, k: int, folds: Sequence[int], refits: Array, sharp: bool) -> Enclosed:
        outputs = len(self.rows.Y)
        jobs = [(c, 0, int(fold)) for c in range(outputs) for fold in folds]
        x, rounds = refits.reshape(len(jobs), -1), enclosure.ROUNDS if sharp else 0
        low, high = anywhere(outputs, 1, self.rows.n)
        self._put(jobs, self._enclose(jobs, x, self.lams[[k]], rounds), low, high)
        return Enclosed(low, high, np.ones((outputs, 1, len(folds)), np.bool_))

    @once
    def _refits(self) -> tuple[Array, Array]:
        """Held-out outputs (k, L, n) of refits without each fold, and their solutions (k, L, t, .)."""
        ends = self._room_for_folds()
        return self._exact(np.arange(self.lams.size), ends).f, ends

    def with_refits(self, paths: Sequence[Self]) -> Self:
        order = np.argsort(-np.concatenate([path.lams for path in paths]))
        parts = [(path.fits.x, path.fits.f, path.fits.status, *path._refits) for path in paths]
        x, f, status, *refits = (np.concatenate(each, axis=1)[:, order] for each in zip(*parts, strict=True))
        self.fits, self._refits = Fits(x, f, status), (refits[0], refits[1])
        return self

    def enclosed_between(self, pieces: Indices | None = None) -> Between:
        rows, (f, ends) = self.rows, self._refits
        jobs = list(np.ndindex(len(rows.Y), rows.left.size))
        low, high = anywhere(len(rows.Y), self.lams.size - 1, rows.n)
        for k in range(self.lams.size - 1) if pieces is None else pieces.tolist():
            left = jobs
            if self._by_inverse is not None:
                found = self._between_by_inverse(*self._by_inverse, k, ends)
                low[:, k], high[:, k] = found
                left = [(c, fold) for c, fold in jobs if np.isinf(found[1][c, rows.starts[fold]])]
            if left:
                higher, lower = (np.stack([ends[c, number, fold] for c, fold in left]) for number in (k, k + 1))
                intervals = enclosure.enclose_between(
                    self.between, self._matrix, self._objectives(left, self.lams[[k + 1, k]]),
                    self.learner.loss.pointer, enclosure.Bend.of(self.learner.loss), lower, higher,
                )  # fmt: skip
                self._put([(c, k, fold) for c, fold in left], intervals, low, high)
        return Between(f, low, high)

    def _between_by_inverse(self, ways: ByInverse, bend: float, k: int, ends: Array) -> tuple[Array, Array]:
        """Return intervals (outputs, n) for all lambda from number ``k`` to the next, from ends of refits."""
        V = np.array([[self.lams[k], bend]])
        both = np.concatenate([ends[:, [k + 1]], ends[:, [k]]], axis=3)
        found = update_folds(
            self, self.representation, ways.between, 0, V, which=np.array([k + 1]), given=both,
            intervals=True,
        )  # fmt: skip
        assert found.low is not None
        assert found.high is not None
        return found.low[:, 0], found.high[:, 0]

    def _enclose(self, jobs: Sequence[tuple[int, int, int]], x: Array, lams: Array, rounds: int) -> tuple[Array, Array]:
        """Return intervals (q, n) for outputs of the exact fits numbered (output, lambda, fold), from solutions.

        Each may take so many ``rounds`` of guesses of the curvature; without any there is the ball alone.
        """
        objective = self._objectives([(c, fold) for c, _, fold in jobs], lams)
        return enclosure.enclose_fits(
            self.enclose, self._matrix, objective, np.array([number for _, number, _ in jobs]),
            self.learner.loss.pointer, enclosure.Bend.of(self.learner.loss), rounds, np.ascontiguousarray(x),
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
