"""The square loss on low-rank features that are never held together.

One pass over the rows gives the products of the features for every segment of rows that folds keep or leave whole.
Where fits leave out rows here and there beside their fold, products of those are subtracted, fold by fold.
From them come the fits without each fold, for every lambda and learner; a second pass gives their held-out outputs,
which costs little beside the first: ``n r L`` operations against ``n r^2``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy.linalg

from kernsel.folds.partition import Partition
from kernsel.numerics.blocks import features as streaming
from kernsel.numerics.blocks.sums import Sums, segment_sums, statistics
from kernsel.numerics.dense import Cholesky
from kernsel.numerics.points import Points
from kernsel.numerics.runtime.once import once
from kernsel.numerics.runtime.threads import one_blas_thread, share
from kernsel.numerics.smooth import convergence
from kernsel.numerics.square import spectral
from kernsel.numerics.stability import Scan, scan_features
from kernsel.types import Array, Indices, Mask

LONGEST = 8
"""No segment is longer than this part of the rows, so that threads can share them."""


def runs_of(rows: Partition, most: int) -> Indices:
    """Return where runs of rows begin that every fit takes or leaves as a whole; nothing if a fold has too many."""
    if rows.training is None:
        return np.zeros(0, np.int64)
    runs = np.flatnonzero((rows.training[:, 1:] != rows.training[:, :-1]).any(axis=0)) + 1
    return runs if runs.size <= most * rows.left.size else runs[:0]


def segments_of(rows: Partition, most: int) -> Indices:
    """Return the bounds of runs of rows that every fit takes or leaves as a whole, but for rows here and there.

    Runs are segments unless they are more than ``most`` times the folds.
    """
    bounds = {*rows.starts.tolist(), rows.n, *runs_of(rows, most).tolist()}
    ends = sorted(bounds | {0})
    pieces = [
        np.linspace(lo, hi, -(-(hi - lo) * LONGEST // rows.n), endpoint=False).astype(np.int64)
        for lo, hi in pairwise(ends)
    ]
    return np.concatenate([*pieces, [rows.n]])


@dataclass(frozen=True, eq=False)
class Stream:
    """Products of low-rank features over segments of rows, and fits from them.

    Parameters
    ----------
    bounds : (m + 1,) array
        Of the segments.
    sums : Sums
        Those of each segment.
    beside : Sums or None
        Those of the rows that each fit leaves out of segments that it keeps; None where it keeps all of them.
    """

    rows: Partition
    features: streaming.Features
    bounds: Indices
    sums: Sums
    beside: Sums | None = None

    @classmethod
    def of(cls, rows: Partition, features: streaming.Features, runs: int) -> Stream:
        """Pass once over all rows; runs are segments unless they are more than ``runs`` times the folds."""
        bounds = segments_of(rows, runs)
        sums = segment_sums(features, rows.X, rows.Y, rows.weights, bounds)
        scattered = rows.training is not None and not runs_of(rows, runs).size
        return cls(rows, features, bounds, sums, _beside(rows, features) if scattered else None)

    @property
    def nbytes(self) -> int:
        """What its arrays hold."""
        return self.sums.nbytes

    @once
    def whole(self) -> Sums:
        """The sums over all rows."""
        return self.sums.of(np.ones(len(self.bounds) - 1, np.bool_))

    def scan(self) -> Scan:
        """Scan the low-rank Gram matrix for its stability, in another pass over the rows."""
        features, rows = self.features, self.rows
        G = self.whole.products
        return scan_features(lambda some: features.finish(features.block(rows.X[some])), G, rows.n, rows.weights)

    def heldout(self, lams: Array, bias: bool) -> tuple[Array, Indices]:
        """Return the outputs (k, L, n) of the fits without each fold at its rows, and the worst status over folds."""
        w, status = self.without_folds(lams, bias)
        return self.outputs(w, self.rows.X, self.rows.starts), status

    def without_folds(self, lams: Array, bias: bool) -> tuple[Array, Indices]:
        """Return weights (t, k, L, .) of the fits without each fold, a bias last, and the worst status over folds."""
        t = self.rows.left.size
        w = np.empty((t, len(self.rows.Y), lams.size, self.features.rank + bias))
        status = np.zeros((t, lams.size), np.int64)

        def work(first: int, step: int) -> None:
            for fold in range(first, t, step):
                w[fold], status[fold] = self.weights(fold, lams, bias)

        with one_blas_thread():
            share(work, t)
        return w, status.max(axis=0)

    def fits(self, lams: Array, bias: bool) -> tuple[Array, Indices]:
        """Return the outputs (k, L, n) of the fits on all rows, and their statuses (L,)."""
        w, status = self.weights(None, lams, bias)
        return self.outputs(w[None], self.rows.X, np.array([0, self.rows.n])), status

    def energies(self, bias: bool) -> tuple[Array, Array, Array]:
        """Return how the targets spread over the spectrum: see ``Spectrum.energies``."""
        ev, _, _, C = self._spectrum(bias)
        lengths = self.whole.targets.diagonal()[:-1]
        return ev, C**2, np.maximum(lengths - (C**2).sum(axis=1), 0.0)

    def one_by_one(self, lams: Array, bias: bool) -> tuple[Array, Indices]:
        """Return the outputs (k, L, n) of the fits without each single row at that row, and statuses (L,)."""
        rows, (ev, W, centre, C) = self.rows, self._spectrum(bias)
        root, left, A = np.sqrt(rows.s), rows.one_by_one.left, self.features.spread(W.T).T
        f = np.zeros((len(rows.Y), lams.size, rows.n))
        blocks = list(self.features.blocks(0, rows.held))

        def work(first: int, step: int) -> None:
            for block in blocks[first::step]:
                U, weight = self.features.block(rows.X[block]) @ A - centre, root[block]
                if bias:
                    U = np.column_stack([np.full(len(U), rows.total**-0.5), U])
                ridges = lams[:, None] * left[block]
                f[:, :, block] = streaming.without_rows(
                    weight[:, None] * U, ev, weight * rows.Y[:, block], C, ridges, weight
                )

        with one_blas_thread():
            share(work, len(blocks))
        lost = lams * left.min() <= spectral.least_ridge(ev, rows.n)
        return f, np.where(lost, convergence.SINGULAR, convergence.CONVERGED)

    def _spectrum(self, bias: bool) -> tuple[Array, Array, Array, Array]:
        """Return eigenvalues (r,), W and a centre with ``U = Z W - centre``, and the coordinates (k, r) of the targets.

        A bias has one more direction, the first one, with an infinite eigenvalue; U leaves it out.
        """
        H, right = self._system(None, bias)
        mean, total = np.zeros(self.features.rank), right[:, :0]
        if bias:
            mean, total = H[-1, :-1] / H[-1, -1], right[:, -1:]
            H, right = H[:-1, :-1] - np.outer(mean, H[-1, :-1]), right[:, :-1] - total * mean
        ev, Q = np.linalg.eigh(H)
        Q, ev = spectral.without_rounding(Q, ev, self.rows.n)
        W = Q / np.sqrt(ev)
        C = np.column_stack([total * self.rows.total**-0.5, right @ W])
        return np.append([np.inf] * bias, ev), W, mean @ W, C

    def weights(self, fold: int | None, lams: Array, bias: bool) -> tuple[Array, Indices]:
        """Return weights (k, L, .) of the fits without a fold, or on all rows, a bias last, and their statuses (L,)."""
        return streaming.solve(*self._system(fold, bias), int(bias), self._weight(fold) * lams)

    def outputs(self, w: Array, X: Points, starts: Indices) -> Array:
        """Return outputs (k, L, m) at rows X (m, d) in segments, by weights (t, k, L, .) of each one, a bias last."""
        r = self.features.rank
        b = w[..., r] if w.shape[-1] > r else np.zeros(w.shape[:-1])
        return streaming.outputs(self.features, X, starts, w[..., :r], b)

    def solution(self, fold: int | None, lam: float, bias: bool) -> Array:
        """Return the weights (k, r) of the fit without a fold, or on all rows, a bias last."""
        return self._kept(fold).solve(bias, np.array([self._weight(fold) * lam]))[:, 0]

    def _weight(self, fold: int | None) -> float:
        return float(self.rows.total if fold is None else self.rows.left[fold])

    def _system(self, fold: int | None, bias: bool) -> tuple[Array, Array]:
        """Return the products of the rows that a fit keeps and their right-hand sides (k, .), with those of a bias."""
        return self._kept(fold).finish(bias)

    def _kept(self, fold: int | None) -> Sums:
        """Return the sums over the rows that the fit without a fold keeps, or over all."""
        if fold is None:
            return self.whole
        if self.beside is None:
            return self.sums.of(self.rows.kept(fold)[self.bounds[:-1]])
        return self.sums.of(~self._own(fold)).without(self.beside.part(fold))

    def _own(self, fold: int) -> Mask:
        """Say which segments are those of a fold, (m,)."""
        starts, first = self.rows.starts, self.bounds[:-1]
        return np.asarray((first >= starts[fold]) & (first < starts[fold + 1]))

    def influence(self, lams: Array, order: int, bias: bool) -> tuple[Array, Array]:
        """Return the BIF of the given order, (k, L, n), and its ratio, (t, L), for folds that leave out their own rows.

        With ``L = Z' Z + N lam I`` (no ridge for a bias) and ``E = (N Z_S' Z_S - N_S Z' Z) / (N - N_S)`` the terms are
        ``e_1 = N / (N - N_S) L^-1 (N_S lam w + Z_S' (f_S - y_S))`` and ``e_{k+1} = L^-1 E e_k``; the ratio is the
        spectral radius of ``L^-1 E``.
        """
        rows, t = self.rows, self.rows.left.size
        w, rho = np.empty((t, len(rows.Y), lams.size, self.features.rank + bias)), np.empty((t, lams.size))
        for k, lam in enumerate(lams):
            try:
                w[:, :, k], rho[:, k] = self._series(lam, order, bias)
            except np.linalg.LinAlgError:  # the ridge is below rounding
                w[:, :, k], rho[:, k] = np.nan, np.inf
        return self.outputs(w, rows.X, rows.starts), rho

    def _series(self, lam: float, order: int, bias: bool) -> tuple[Array, Array]:
        """Return the weights (t, k, .) and ratios (t,) of ``influence`` for one lambda."""
        total, ratios, weights = self.rows.total, [], []
        H, right = self._system(None, bias)
        penalised = np.arange(len(H)) < self.features.rank
        L = H + np.diag(total * lam * penalised)
        factor = Cholesky.of(L)
        fit = factor.solve(right.T)
        for fold, left in enumerate(self.rows.left):
            G, q = self.sums.of(self._own(fold)).finish(bias)
            kept, gone = total / left, (total - left) / left
            E = kept * G - gone * H
            ratios.append(np.abs(scipy.linalg.eigh(E, L, eigvals_only=True)).max())
            pull = (total - left) * lam * penalised[:, None] * fit + G @ fit - q.T
            e = kept * factor.solve(pull)
            x = fit + e
            for _ in range(order - 1):
                e = factor.solve(E @ e)
                x += e
            weights.append(x.T)
        return np.stack(weights), np.array(ratios)


def _beside(rows: Partition, features: streaming.Features) -> Sums:
    """Return sums over the rows that each fit leaves out beside its fold: see ``Stream``."""
    sums = Sums.zeros(rows.left.size, len(rows.Y), features.rank)
    for fold, (lo, hi) in enumerate(pairwise(rows.starts)):
        away = np.flatnonzero(~rows.kept(fold))
        away = away[(away < lo) | (away >= hi)]
        weights = None if rows.weights is None else rows.s[away]
        found = statistics(features, rows.X[away], rows.Y[:, away], weights)
        for into, each in zip(sums.part(fold), found, strict=True):
            into[:] = each
    return sums
