"""Paths of smooth losses from low-rank features that are never held together: see ``numerics.blocks.newton``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernsel.errors import IncompatibleError
from kernsel.numerics.blocks import features as streaming
from kernsel.numerics.blocks import newton as descent
from kernsel.numerics.dense import Cholesky
from kernsel.numerics.runtime.once import once
from kernsel.numerics.smooth import convergence
from kernsel.paths.base import Path
from kernsel.paths.outputs import Fits, HeldOut
from kernsel.paths.smooth import TRUST, with_lost
from kernsel.paths.smooth_features import FeaturesSmoothPath
from kernsel.representation.blocks import Blocks
from kernsel.representation.problem import Problem
from kernsel.types import Array, Indices, Mask

Pair = tuple[int, int]
"""A fit: the numbers of the output and of lambda."""

Job = tuple[Pair, Indices]
"""A fit, and the folds that it is to be made without."""

DENSE = 64
"""Up to so many features all eigenvalues cost less than a few."""


class BlocksSmoothPath(Path):
    """A smooth loss on features that are computed block by block in every pass over the rows.

    Fits start from what is ``near``, or from those on the rows that the landmarks were chosen among, so that a few
    passes are enough. Fits without a fold start from the fit on all rows, and from its products without those of the
    fold.
    """

    representation: Blocks

    @once
    def _newton(self) -> descent.Newton:
        rows, features = self.rows, self.representation.sampled.features
        return descent.Newton(features, int(self.bias), rows.X, rows.Y, rows.s, self.learner.loss)

    @property
    def _folds(self) -> Indices:
        return np.arange(self.rows.left.size)

    def _groups(self, lams: Indices, parts: int) -> list[list[Pair]]:
        """Cut the fits into groups, each fit with products of that many parts of the rows."""
        pairs = [(c, int(k)) for k in lams for c in range(len(self.rows.Y))]
        step = max(1, self.representation.asked.room.fits // (8 * (3 * self.rows.n + parts * self._newton.R**2)))
        return [pairs[first : first + step] for first in range(0, len(pairs), step)]

    def _jobs(self, pairs: Sequence[Pair], folds: Indices) -> list[list[Job]]:
        """Cut the refits without each fold into groups: of the same fit as far as possible."""
        room = self.representation.asked.room.fits
        at_once = max(1, room // (8 * (3 * self.rows.n + self._newton.R**2)))
        if folds.size > at_once:
            cut = [folds[first : first + at_once] for first in range(0, folds.size, at_once)]
            return [[(pair, some)] for pair in pairs for some in cut]
        step = at_once // folds.size
        return [[(pair, folds) for pair in pairs[first : first + step]] for first in range(0, len(pairs), step)]

    def _empty(self, pairs: Sequence[Pair], parts: int, kept: Mask | None = None) -> descent.Fits:
        outputs, numbers = (np.array(each) for each in zip(*pairs, strict=True))
        return descent.Fits.empty(outputs, self.lams[numbers], kept, self.rows.n, self._newton.R, parts)

    @once
    def fits(self) -> Fits:
        k, L, n = len(self.rows.Y), self.lams.size, self.rows.n
        x, f, status = np.zeros((k, L, self._newton.R)), np.zeros((k, L, n)), np.zeros((k, L), np.int64)
        start = self._starts
        for pairs in self._groups(np.arange(L), 1):
            state = self._empty(pairs, 1)
            state.w[:] = [start[:, number][c] for c, number in pairs]
            found = self._newton.minimise(state)
            for j, (c, number) in enumerate(pairs):
                x[c, number], f[c, number], status[c, number] = state.w[j], state.f[j], found[j]
        return Fits(x, f, with_lost(status, self.representation, self.lams))

    @property
    def _starts(self) -> Array:
        """Weights (k, L, R) to start from: those that are near, or those of fits on the sampled rows."""
        lams = self.lams.tolist()
        if all(lam in self.near for lam in lams):
            return np.stack([self.near[lam] for lam in lams], axis=1)
        sample = self.representation.sample()
        problem = Problem(sample.rows, sample.kernel, sample.asked)
        found = FeaturesSmoothPath(problem, sample, self.learner, self.lams, lead_in=self.lead_in).fits
        usable = (found.status <= convergence.UNFINISHED)[:, :, None] & np.isfinite(found.x)
        start = np.where(usable, found.x, 0.0)
        for number, lam in enumerate(lams):
            start[:, number] = self.near.get(lam, start[:, number])
        return start

    def settled(self) -> dict[float, Array]:
        fits = self.fits
        done = np.flatnonzero((fits.status == convergence.CONVERGED).all(axis=0))
        return {float(self.lams[number]): fits.x[:, number] for number in done}

    def _by_fold(self, pairs: Sequence[Pair]) -> tuple[descent.Fits, Array]:
        """Return fits with their products by fold (the last part is of rows in no fold), and their gradients there."""
        rows, fits = self.rows, self.fits
        starts = rows.starts
        folds = [slice(lo, hi) for lo, hi in zip(starts, np.append(starts[1:], rows.n), strict=True)]
        state = self._empty(pairs, len(folds))
        state.w[:] = [fits.x[pair] for pair in pairs]
        state.f[:] = [fits.f[pair] for pair in pairs]
        return state, self._newton.evaluate(state, np.arange(len(pairs)), list(enumerate(folds)))[1]

    def exact(self, which: Sequence[int] | None = None) -> HeldOut:
        chosen = np.arange(self.lams.size) if which is None else np.asarray(list(which))
        self._need_whole_rows()
        out, status = self.fits.f.copy(), self.fits.status.copy()
        pairs = [(c, int(k)) for k in chosen for c in range(len(self.rows.Y))]
        for jobs in self._jobs(pairs, self._folds):
            self._refit(jobs, out, status)
        return HeldOut.of(out[:, chosen], status[:, chosen], exact=True)

    def _refit(self, jobs: Sequence[Job], out: Array, status: Indices) -> Array:
        """Fit without folds, each from the fit (output, lambda) on all rows; return weights (refits, R) in turn.

        The held-out outputs, and statuses that are worse than before, are written to ``out`` and ``status``.
        """
        rows = self.rows
        each = [(pair, fold) for pair, folds in jobs for fold in folds]
        kept = np.stack([rows.kept(fold) for _, fold in each])
        state = self._empty([pair for pair, _ in each], 1, kept)
        state.w[:] = [self.fits.x[pair] for pair, _ in each]
        state.f[:] = [self.fits.f[pair] for pair, _ in each]
        if rows.training is None:
            whole, _ = self._by_fold([pair for pair, _ in jobs])
            place = {pair: j for j, (pair, _) in enumerate(jobs)}
            for i, (pair, fold) in enumerate(each):
                j = place[pair]
                state.products[i, 0] = np.delete(whole.products[j], fold, axis=0).sum(axis=0)
                state.curvature[i] = whole.curvature[j] * kept[i]
        found = self._newton.resume(state)
        for i, (pair, fold) in enumerate(each):
            held = slice(rows.starts[fold], rows.starts[fold + 1])
            out[pair][held] = state.f[i, held]
            status[pair] = max(status[pair], found[i])
        return state.w

    def newton_step(self) -> HeldOut:
        """As of features that are held: folds that the step can't be trusted for are refitted."""
        rows = self.rows
        if rows.training is not None:
            return self.exact()
        self._need_whole_rows()
        t, fits = rows.left.size, self.fits
        out, status, refitted = fits.f.copy(), fits.status.copy(), np.zeros(self.lams.size, np.int64)
        rho = np.zeros((*status.shape, t))
        kept = np.stack([rows.kept(fold) for fold in range(t)])
        for pairs in self._groups(np.arange(self.lams.size), t + 1):
            state, gradients = self._by_fold(pairs)
            w, singular = self._steps(state, gradients)
            for j, pair in enumerate(pairs):
                rho[pair] = self._terms(state, gradients[j], j, 0)[1]
            f, stray = self._newton.ends(state, w, rows.starts, kept)
            again = (stray > TRUST) | singular
            for j, pair in enumerate(pairs):
                out[pair] = f[j]
                if fits.status[pair] == convergence.CONVERGED and again[j].any():
                    refitted[pair[1]] += again[j].sum()
                    for jobs in self._jobs([pair], np.flatnonzero(again[j])):
                        self._refit(jobs, out, status)
        self.ratio = rho.max(axis=(0, 2))  # which would take another pass
        return HeldOut.of(out, status, exact=False, refitted=refitted)

    def _steps(self, state: descent.Fits, gradients: Array) -> tuple[Array, Mask]:
        """Return the weights (jobs, t, R) one Newton step towards fits without each fold, and which are singular."""
        rows, r, R = self.rows, self.representation.sampled.features.rank, self._newton.R
        t = rows.left.size
        w, singular = np.repeat(state.w[:, None], t, axis=1), np.zeros((len(state.w), t), np.bool_)
        for j, lam in enumerate(state.lams):
            for fold in range(t):
                others = np.delete(state.products[j], fold, axis=0)
                pull = gradients[j, fold].copy()
                pull[:r] += 2.0 * (rows.total - rows.left[fold]) * lam * state.w[j, :r]
                if self.bias and others[:, -1, -1].sum() == 0.0:
                    singular[j, fold] = True  # no curved row is left to say where the bias should be
                    continue
                H, ridge = self._newton.finished(others.sum(axis=0)), np.array([2.0 * rows.left[fold] * lam])
                delta, failed = streaming.solve(H, pull[None], R - r, ridge)
                singular[j, fold] = failed[0] != convergence.CONVERGED
                if not singular[j, fold]:
                    w[j, fold] += delta[0, 0]
        return w, singular

    def _series(self, order: int) -> tuple[Array, Array, Indices]:
        """As ``numerics.smooth.heldout_features.influence``, from the products by fold."""
        self.need_whole_folds()
        self._need_whole_rows()
        rows, fits, t = self.rows, self.fits, self.rows.left.size
        f, rho, status = fits.f.copy(), np.zeros((*fits.status.shape, t)), fits.status.copy()
        kept = np.stack([rows.kept(fold) for fold in range(t)])
        for pairs in self._groups(np.arange(self.lams.size), t + 1):
            state, gradients = self._by_fold(pairs)
            w = np.repeat(state.w[:, None], t, axis=1)
            for j, pair in enumerate(pairs):
                w[j], rho[pair] = self._terms(state, gradients[j], j, order)
                if np.isinf(rho[pair]).any():
                    status[pair] = convergence.SINGULAR
            if order:
                changed = self._newton.ends(state, w, rows.starts, kept)[0]
                for j, pair in enumerate(pairs):
                    f[pair] = changed[j]
        return f, rho.max(axis=(0, 2)), status

    def _terms(self, state: descent.Fits, gradients: Array, j: int, order: int) -> tuple[Array, Array]:
        """Return the weights (t, R) of the series for one fit, and its ratios (t,): infinite if it is singular."""
        rows, ridged, lam = self.rows, slice(0, self.representation.sampled.features.rank), float(state.lams[j])
        w, rho = np.repeat(state.w[j : j + 1], rows.left.size, axis=0), np.zeros(rows.left.size)
        H = self._newton.finished(state.products[j].sum(axis=0))
        try:
            factor = Cholesky.of(H, 2.0 * rows.total * lam, len(H) - ridged.stop)
        except np.linalg.LinAlgError:  # no curvature for the bias, or a ridge below rounding
            return w, np.full(rho.shape, np.inf)
        for fold, left in enumerate(rows.left):
            kept, gone = rows.total / left, (rows.total - left) / left
            E = kept * self._newton.finished(state.products[j, fold]) - gone * H
            rho[fold] = _radius(factor, E)
            e = gradients[fold].copy()
            e[ridged] += 2.0 * (rows.total - left) * lam * state.w[j, ridged]
            e = kept * factor.solve(e)
            for _ in range(order):
                w[fold] += e
                e = factor.solve(E @ e)
        return w, rho

    def _solution(self, k: int) -> Array:
        return self.fits.x[:, k]

    def _refitted(self, k: int) -> Array:
        self._need_whole_rows()
        outputs, t = len(self.rows.Y), self.rows.left.size
        out, status = self.fits.f.copy(), self.fits.status.copy()
        groups = self._jobs([(c, k) for c in range(outputs)], self._folds)
        w = np.concatenate([self._refit(jobs, out, status) for jobs in groups])
        return w.reshape(outputs, t, -1).swapaxes(0, 1)

    def _need_whole_rows(self) -> None:
        if self.rows is not self.problem.rows:
            raise IncompatibleError(
                "features that are computed block by block leave single rows out of fits of the square loss only: use "
                "newton-cv, or a lower rank, at which features are held"
            )


def _radius(factor: Cholesky, E: Array) -> float:
    """Return the spectral radius of ``A^-1 E`` with the factor of A, E symmetric, by Lanczos unless they are small."""
    S = factor.half(factor.half(E).T)
    if len(S) <= DENSE:
        return float(np.abs(np.linalg.eigvalsh(S)[[0, -1]]).max())
    from scipy.sparse.linalg import eigsh  # takes a while to import

    start = np.cos(np.arange(len(S)))
    return float(np.abs(eigsh(S, 1, which="LM", v0=start, tol=1e-3, return_eigenvectors=False)[0]))
