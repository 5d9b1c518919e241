"""Fits of one learner on one kernel along lambda, and held-out outputs from them.

The unit of work is a kernel with its whole path of lambda: a :class:`Path` holds the fits for descending lambda, and
answers every question about held-out rows; it is what a criterion scores.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kernsel.errors import IncompatibleError
from kernsel.numerics import factored, heldout, heldout_features, heldout_kernel, krylov, leverage, newton, spectral
from kernsel.numerics.jit import Compiled, compile_ahead
from kernsel.numerics.stability import Scan
from kernsel.problem import Problem, Rows

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

FACTORED_ROWS = 300
"""Rows from which a few ridges are factorised; below, an eigendecomposition takes milliseconds."""

KRYLOV_ROWS, KRYLOV_SYSTEMS = 700, 100
"""Rows from which, and folds times outputs up to which, conjugate gradients beat an eigendecomposition."""

REFIT_BYTES = 2**28
"""Refits of folds are done in groups whose outputs fit in this."""

SMOOTHING = 4.0
"""Where a fit with a narrow kink doesn't converge, the kink is made this much wider at each step of a detour."""

SINGLE_ROWS = 50
"""From so many folds of one row on, ratios are taken from the rows' leverages."""

TRUST = 0.5
"""A fold is refitted where its Newton step changes more than this share of the curvature of the rows it keeps."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Outputs at rows whose fold the fit has not seen.

    Parameters
    ----------
    f : (k, L, n) array
    failed : list of L str or None
        Why there are no usable outputs for that lambda.
    exact : (L,) array of bool
        Whether these are the outputs of refits, not an approximation to them.
    refitted : (L,) array of int, or 0
        Folds (of any output) that were refitted, as the approximation could not be trusted there.
    """

    f: Array
    failed: list[str | None]
    exact: NDArray[np.bool_]
    refitted: NDArray[np.int64] | int = 0

    @staticmethod
    def of(f: Array, status: NDArray[np.int64], exact: bool, refitted: NDArray[np.int64] | int = 0) -> HeldOut:
        """Give each lambda its reason from the worst status (outputs, L) and from values that are not finite."""
        L = f.shape[1]
        worst = status.reshape(-1, L).max(axis=0)
        finite = np.logical_and.reduce(np.isfinite(f), axis=(0, 2))
        worst = np.where(finite | (worst != newton.CONVERGED), worst, newton.NOT_FINITE)
        failed = [newton.REASONS.get(int(s)) for s in worst]
        return HeldOut(f, failed, np.full(L, exact), refitted)


@dataclass(frozen=True, eq=False)
class Fits:
    """Fits: coefficients or weights ``x (k, L, .)``, a bias last, outputs ``f (k, L, n)``, statuses (k, L)."""

    x: Array
    f: Array
    status: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LeftOver:
    """What fits of the square loss leave of the targets, in the coordinates of ``S^1/2`` (see ``numerics.spectral``).

    The residual of direction j of the spectrum is ``ridge / (ev_j + ridge)`` times the targets' coordinate there, and
    the whole of it in the other directions; nothing is left of the direction of a bias, which is in neither.

    Parameters
    ----------
    share : (L, r) array
        ``ridge / (ev + ridge)``.
    squares : (k, r) array
        Of the targets' coordinates.
    beyond : (k,) array
        The targets' squared length in the other directions.
    outside : int
        The number of other directions.
    failed : list of L str or None
        Why a fit settles nothing.
    """

    share: Array
    squares: Array
    beyond: Array
    outside: int
    failed: list[str | None]

    @staticmethod
    def of(ev: Array, squares: Array, beyond: Array, n: int, ridges: Array) -> LeftOver:
        """Make it from how the targets of n rows spread over the spectrum: see ``spectral.energies``."""
        penalised, lost = np.isfinite(ev), ridges <= spectral.least_ridge(ev, n)
        share = spectral.shrinkage(ridges[:, None], ev[penalised])
        failed = [newton.REASONS[newton.SINGULAR] if each else None for each in lost]
        return LeftOver(share, squares[:, penalised], beyond, n - ev.size, failed)

    @property
    def directions(self) -> int:
        """The number of all directions."""
        return int(self.share.shape[1]) + self.outside


class Path(ABC):
    """Fits of one learner on one problem for descending lambda, and held-out outputs from them.

    Parameters
    ----------
    problem : Problem
    learner : Learner
    lams : (L,) array, descending
    """

    def __init__(self, problem: Problem, learner: Any, lams: Array) -> None:
        self.problem = problem
        self.rows: Rows = problem.rows
        self.learner = learner
        self.lams = np.ascontiguousarray(lams, dtype=np.float64)

    @cached_property
    def one_by_one(self) -> Self:
        """The same path with every row that is held out in a fold of its own, whatever the folds.

        The problem is the same one, and so are the fits, if they have been made.
        """
        if self.rows.one_by_one is self.rows:
            return self
        other = copy.copy(self)
        other.rows = self.rows.one_by_one
        for of_folds in ("ratio", "_by_products"):
            other.__dict__.pop(of_folds, None)
        return other

    @property
    def bias(self) -> bool:
        """Whether the learner has an unpenalised bias."""
        return bool(self.learner.bias)

    @property
    @abstractmethod
    def fits(self) -> Fits:
        """The fits on all rows."""

    @abstractmethod
    def exact(self, which: Sequence[int] | None = None) -> HeldOut:
        """Held-out outputs of exact refits, for all lambda or those numbered ``which``."""

    @abstractmethod
    def newton_step(self) -> HeldOut:
        """Held-out outputs by one Newton step from the fit; exact for the square loss."""

    @abstractmethod
    def influence(self, order: int) -> HeldOut:
        """Held-out outputs by the Bouligand influence function of that order."""

    @abstractmethod
    def _ratio(self) -> Array:
        """Compute ``ratio``."""

    @cached_property
    def ratio(self) -> Array:
        """The largest ratio rho of the influence series over folds and outputs, (L,)."""
        return self._ratio()

    @abstractmethod
    def _solution(self, k: int) -> Array:
        """Solution (outputs, .) of the fit for lambda number ``k``: coefficients or weights, a bias last."""

    @abstractmethod
    def _refitted(self, k: int) -> Array:
        """Solutions (t, outputs, .) without each fold for lambda number ``k``."""

    def coefficients(self, k: int) -> Array:
        """Weights (outputs, m) of the kernel functions at the rows of ``points()``, for lambda number ``k``."""
        return self._expand(self._solution(k))[0]

    def intercepts(self, k: int) -> Array:
        """Bias of each output for lambda number ``k``, 0 for a learner without one."""
        return self._expand(self._solution(k))[1]

    def refits(self, k: int) -> tuple[Array, Array]:
        """Return coefficients (t, outputs, m) and biases (t, outputs) of the exact fits without each fold."""
        return self._expand(self._refitted(k))

    def _expand(self, x: Array) -> tuple[Array, Array]:
        x, b = (x[..., :-1], x[..., -1]) if self.bias else (x, np.zeros(x.shape[:-1]))
        return x if self.problem.full else x @ self._landmarks[1].T, b

    @property
    def _landmarks(self) -> tuple[Indices, Array]:
        """Landmarks of a low rank, and the map T from the kernel's values there to features."""
        return self.problem.factor[1:3]

    def points(self) -> Array:
        """The rows (m, d) whose kernel functions make up the model: all, or the landmarks."""
        return self.rows.X if self.problem.full else self.rows.X[self._landmarks[0]]

    @property
    def rank(self) -> int:
        """Number of features, or of rows."""
        return self.rows.n if self.problem.full else len(self._landmarks[0])

    @property
    def stability(self) -> Scan:
        """Stability scan of the representation."""
        return self.problem.stability

    def describe(self) -> str:
        """The representation in words."""
        return self.problem.describe()

    def nystrom_influence(self, share: float) -> HeldOut:
        """First-order influence with the inverse approximated from ``share * n`` uniform landmarks (FBIF18).

        In a low-rank representation the fit lies in the range of its landmarks already, and the plain first order is
        what the approximation amounts to.
        """
        if not self.problem.full:
            return self.influence(1)
        self._need_whole_folds()
        V = self.problem.nystrom(share)
        if self.bias:
            V = np.column_stack([V, np.ones(self.rows.n)])
        f, status, _ = self._update(heldout_kernel.nystrom_influence, 1, V)
        return HeldOut.of(f, status.max(axis=2), exact=False)

    def _need_whole_folds(self) -> None:
        if self.rows.training is not None:
            raise IncompatibleError(
                "the influence function leaves a fold out of a fit on all rows, and these splits train on other rows "
                "than all but the fold: use the criterion cv"
            )

    def _update(
        self, update: Compiled, order: int, V: Array | None = None, trust: float = np.inf
    ) -> tuple[Array, NDArray[np.int64], Array]:
        """Apply a fold update to every fit; return outputs (k, L, n), statuses and ratios (k, L, t)."""
        rows, fits, loss = self.rows, self.fits, self.learner.loss
        _, d1, d2 = loss.expand(rows.Y, rows.s, fits.f)
        f, rho = fits.f.copy(), np.zeros((*fits.f.shape[:2], rows.left.size))
        if V is None:
            V = np.zeros((rows.n, 0))
        status = heldout.update_folds(
            update, self.problem.matrix(self.bias), int(self.bias), V, fits.x, fits.f, d1, d2, self.lams, rows.starts,
            rows.left, order, loss.pointer, np.array(loss.parameters), rows.Y, rows.s, trust, f, rho,
        )  # fmt: skip
        return f, np.maximum(status, fits.status[:, :, None]), rho


class SquarePath(Path):
    """The square loss: from the spectrum of the representation, or from the products of low-rank features."""

    @cached_property
    def _by_products(self) -> bool:
        problem, r = self.problem, self.problem.width
        if problem.full:
            return False
        spectrum = 0.0 if problem.has_spectrum else 4.0 * self.rows.n * r**2 + 10.0 * r**3
        return spectral.products_are_cheaper(self.rows.starts, r, self.lams, spectrum)

    @property
    def _spectrum(self) -> tuple[Array, Array]:
        return self.problem.spectrum_with_bias if self.bias else self.problem.spectrum

    @cached_property
    def _products(self) -> tuple[Array, Array]:
        """Weighted low-rank features, with the column of a bias, and their products."""
        if not self.bias:
            return self.problem.weighted, self.problem.products
        Z = np.column_stack([self.problem.weighted, np.sqrt(self.rows.s)])
        return Z, Z.T @ Z

    @property
    def _free(self) -> Array | None:
        """The direction of a bias."""
        return np.sqrt(self.rows.s) if self.bias else None

    @property
    def _root(self) -> Array | float:
        return 1.0 if self.rows.weights is None else np.sqrt(self.rows.s)

    def _by_krylov(self, lams: Array) -> bool:
        """Whether a large Gram matrix is only multiplied: with few folds, and no bias, for more than a few ridges."""
        problem, rows = self.problem, self.rows
        return (
            problem.full
            and not self.bias
            and rows.n >= KRYLOV_ROWS
            and rows.left.size * len(rows.Y) <= KRYLOV_SYSTEMS
            and not problem.has_spectrum
            and not factored.factors_are_cheaper(lams, rows.left)
        )

    def _by_factors(self, lams: Array) -> bool:
        """Whether so few ridges are wanted of so large a Gram matrix that each has a factorisation of its own."""
        problem, rows = self.problem, self.rows
        return (
            problem.full
            and rows.n >= FACTORED_ROWS
            and not problem.has_spectrum
            and factored.factors_are_cheaper(lams, rows.left)
        )

    @cached_property
    def fits(self) -> Fits:
        f = spectral.outputs(*self._spectrum, self.rows.Y * self._root, self.rows.total * self.lams) / self._root
        # The one update of the square loss, in the coordinates of the Gram matrix, reads f, and a bias.
        x = self._coefficients(self.lams) if self.bias and self.problem.full else np.zeros((*f.shape[:2], 0))
        return Fits(x, f, np.zeros(f.shape[:2], np.int64))

    def exact(self, which: Sequence[int] | None = None) -> HeldOut:
        rows = self.rows
        lams = self.lams if which is None else self.lams[list(which)]
        if rows.training is not None:
            return self._trained(lams)
        Y = rows.Y * self._root
        if self._by_products:
            Z, G = self._products
            f, status = spectral.heldout_features(Z, G, int(self.bias), Y, lams, rows.starts, rows.total, rows.left)
        elif self._by_krylov(lams):
            f, done = krylov.heldout_krylov(self.problem.weighted, Y, lams, rows.starts, rows.left)
            status = np.zeros(lams.size, np.int64)
            if not done.all():
                f[:, ~done], status[~done] = self._without_folds(Y, lams[~done])
        else:
            f, status = self._without_folds(Y, lams)
        return HeldOut.of(f / self._root, status, exact=True)

    def left_over(self) -> LeftOver:
        """Return what the fits leave of the targets."""
        spread = spectral.energies(*self._spectrum, self.rows.Y * self._root)
        return LeftOver.of(*spread, self.rows.n, self.rows.total * self.lams)

    def _without_folds(self, Y: Array, lams: Array) -> tuple[Array, NDArray[np.int64]]:
        """Return held-out outputs and statuses by direct methods on the Gram matrix or the spectrum."""
        rows = self.rows
        if self._by_factors(lams):
            return factored.heldout_factored(self.problem.weighted, self._free, Y, lams, rows.starts, rows.left)
        return spectral.heldout_square(*self._spectrum, Y, lams, rows.starts, rows.total, rows.left)

    def _trained(self, lams: Array) -> HeldOut:
        """Held-out outputs of fits on rows of their own."""
        rows = self.rows
        f = np.zeros((len(rows.Y), lams.size, rows.n))
        matrix = self.problem.matrix(self.bias)
        for fold, (lo, hi) in enumerate(pairwise(rows.starts)):
            x = self._fit_on(rows.kept(fold), lams)
            f[:, :, lo:hi] = x[..., : matrix.shape[1]] @ matrix[lo:hi].T
            if self.bias and self.problem.full:
                f[:, :, lo:hi] += x[..., -1:]
        return HeldOut.of(f, np.zeros(f.shape[:2], np.int64), exact=True)

    def _fit_on(self, kept: NDArray[np.bool_], lams: Array) -> Array:
        """Return solutions (k, L, .) of fits on some rows."""
        rows = self.rows
        ridges = rows.s[kept].sum() * lams
        root = np.sqrt(rows.s[kept])
        Y = rows.Y[:, kept] * root
        if not self.problem.full:
            return spectral.weights(self.problem.matrix(self.bias)[kept] * root[:, None], int(self.bias), Y, ridges)
        if self._by_factors(lams):
            return self._solved(ridges, np.broadcast_to(kept, (lams.size, rows.n)).copy())
        spectrum = spectral.spectrum_of_gram(self.problem.weighted[np.ix_(kept, kept)], root if self.bias else None)
        return self._with_intercepts(spectral.coefficients(*spectrum, Y, ridges) * root, kept)

    def _coefficients(self, lams: Array) -> Array:
        """Return coefficients (k, L, n), and the bias last, of fits on all rows."""
        rows = self.rows
        if self._by_factors(lams):
            return self._solved(rows.total * lams, np.ones((lams.size, rows.n), np.bool_))
        a = spectral.coefficients(*self._spectrum, rows.Y * self._root, rows.total * lams)
        return self._with_intercepts(a * self._root, np.ones(rows.n, np.bool_))

    def _solved(self, ridges: Array, kept: NDArray[np.bool_]) -> Array:
        """Return solutions (k, q, .) of fits on rows of their own, ``kept (q, n)``, by a factorisation each."""
        Y = self.rows.Y * self._root
        a = factored.coefficients_factored(self.problem.weighted, self._free, Y, ridges, kept) * self._root
        fits = [self._with_intercepts(a[:, q : q + 1, each], each) for q, each in enumerate(kept)]
        return np.concatenate(fits, axis=1)

    def _with_intercepts(self, a: Array, kept: NDArray[np.bool_]) -> Array:
        """Spread coefficients of the ``kept`` rows over all, and put the bias behind them: residuals sum to 0."""
        rows = self.rows
        x = np.zeros((*a.shape[:2], rows.n + self.bias))
        x[:, :, np.flatnonzero(kept)] = a
        if self.bias:
            residuals = rows.Y[:, None, :] - x[:, :, :-1] @ self.problem.gram
            x[:, :, -1] = residuals[:, :, kept] @ rows.s[kept] / rows.s[kept].sum()
        return x

    def newton_step(self) -> HeldOut:
        return self.exact()

    def influence(self, order: int) -> HeldOut:
        f, rho = self._series(order)
        self.ratio = rho.max(axis=0)
        return HeldOut.of(f / self._root, np.zeros(f.shape[:2], np.int64), exact=False)

    def _ratio(self) -> Array:
        largest: Array = self._series(0)[1].max(axis=0)
        return largest

    def _series(self, order: int) -> tuple[Array, Array]:
        self._need_whole_folds()
        rows = self.rows
        return spectral.influence_square(
            *self._spectrum, rows.Y * self._root, self.lams, rows.starts, rows.total, rows.left, order
        )

    def _solution(self, k: int) -> Array:
        lams = self.lams[k : k + 1]
        x = self._coefficients(lams) if self.problem.full else self._fit_on(np.ones(self.rows.n, np.bool_), lams)
        return x[:, 0]

    def _refitted(self, k: int) -> Array:
        folds = range(self.rows.left.size)
        if self._by_factors(self.lams[k : k + 1]):
            kept = np.stack([self.rows.kept(fold) for fold in folds])
            return self._solved(self.rows.left * self.lams[k], kept).swapaxes(0, 1)
        return np.stack([self._without(fold, self.lams[k]) for fold in folds])

    def _without(self, fold: int, lam: float) -> Array:
        """Return the solution (k, .) without a fold."""
        rows = self.rows
        kept = rows.kept(fold)
        if rows.training is not None:
            return self._fit_on(kept, np.array([lam]))[:, 0]
        place = slice(rows.starts[fold], rows.starts[fold + 1])
        if not self.problem.full:
            Z, G = self._products
            Y, gone = rows.Y * self._root, Z[place]
            right = Z.T @ Y.T - gone.T @ Y[:, place].T
            ridges = np.array([rows.left[fold] * lam])
            return spectral.solve_weights(G - gone.T @ gone, right, int(self.bias), ridges)[:, 0]
        a = spectral.coefficients_without(*self._spectrum, rows.Y * self._root, rows.left[fold] * lam, place)
        return self._with_intercepts((a * self._root)[:, None, kept], kept)[:, 0]


class StreamedPath(Path):
    """The square loss from low-rank features that are never held together."""

    @property
    def _landmarks(self) -> tuple[Indices, Array]:
        return self.problem.stream.landmarks, self.problem.stream.features.T

    @property
    def stability(self) -> Scan:
        return self.problem.stream.scan()

    def describe(self) -> str:
        return self.problem.stream.describe()

    @cached_property
    def fits(self) -> Fits:
        f, status = self.problem.stream.fits(self.lams, self.bias)
        return Fits(np.zeros((*f.shape[:2], 0)), f, np.tile(status, (len(f), 1)))

    def exact(self, which: Sequence[int] | None = None) -> HeldOut:
        lams = self.lams if which is None else self.lams[list(which)]
        stream = self.problem.stream
        held = stream.heldout if self.rows is self.problem.rows else stream.one_by_one
        return HeldOut.of(*held(lams, self.bias), exact=True)

    def left_over(self) -> LeftOver:
        """Return what the fits leave of the targets."""
        spread = self.problem.stream.energies(self.bias)
        return LeftOver.of(*spread, self.rows.n, self.rows.total * self.lams)

    def newton_step(self) -> HeldOut:
        return self.exact()

    def influence(self, order: int) -> HeldOut:
        self._need_whole_folds()
        self._need_segments()
        f, rho = self.problem.stream.influence(self.lams, order, self.bias)
        self.ratio = rho.max(axis=0)
        return HeldOut.of(f, np.zeros(f.shape[:2], np.int64), exact=False)

    def _ratio(self) -> Array:
        _ = self.influence(1)
        return self.ratio

    def _need_segments(self) -> None:
        if self.rows is not self.problem.rows:
            raise IncompatibleError(
                "features that are computed block by block leave single rows out of the fits' outputs only: use the "
                "outputs of newton_step"
            )

    def _solution(self, k: int) -> Array:
        return self.problem.stream.solution(None, self.lams[k], self.bias)

    def _refitted(self, k: int) -> Array:
        self._need_segments()
        stream, folds = self.problem.stream, range(self.rows.left.size)
        return np.stack([stream.solution(fold, self.lams[k], self.bias) for fold in folds])


class SmoothPath(Path):
    """Any other smooth loss: damped Newton, in the coordinates of the Gram matrix or of the low-rank features."""

    @property
    def _solver(self) -> Compiled:
        return newton.in_kernel if self.problem.full else newton.in_features

    @cached_property
    def fits(self) -> Fits:
        rows, problem = self.rows, self.problem
        G = problem.matrix(self.bias)
        k, n = rows.Y.shape
        width = G.shape[1] + (self.bias and problem.full)
        x, f = np.zeros((k, self.lams.size, width)), np.zeros((k, self.lams.size, n))
        weights = np.tile(rows.s, (k, 1))
        status = self._solve(G[None], np.zeros(k, np.int64), rows.Y, weights, self.lams, True, x, f)
        lost = 2.0 * rows.total * self.lams < spectral.ROUNDING * n * rows.s.max() * problem.kernel.diag(rows.X).max()
        status[:, lost] = np.maximum(status[:, lost], newton.SINGULAR)  # a ridge below rounding settles nothing
        return Fits(x, f, status)

    def exact(self, which: Sequence[int] | None = None) -> HeldOut:
        chosen = np.arange(self.lams.size) if which is None else np.asarray(list(which))
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
        return HeldOut.of(out, status, exact=True)

    def _refit(self, jobs: Sequence[tuple[int, int]], which: Indices) -> Fits:
        """Fit each (output, fold) without its fold, for the lambda numbered ``which``, from the fit on all rows."""
        rows, fits = self.rows, self.fits
        outputs, folds = (np.array(numbers) for numbers in zip(*jobs, strict=True))
        weights = np.tile(rows.s, (len(jobs), 1))
        for job, fold in enumerate(folds):
            weights[job, ~rows.kept(fold)] = 0.0
        x, f = (np.ascontiguousarray(values[np.ix_(outputs, which)]) for values in (fits.x, fits.f))
        G = self.problem.matrix(self.bias)[None]
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
        result: NDArray[np.int64] = newton.solve_paths(
            self._solver, G, int(self.bias), which, Y, S, lams, self.learner.loss.pointer, parameters, follow, x, f
        )
        return result

    def newton_step(self) -> HeldOut:
        """Folds whose system is singular, or whose curvature the step changes by more than ``TRUST``, are refitted."""
        if self.rows.training is not None:
            return self.exact()
        update = heldout_kernel.newton_step if self.problem.full else heldout_features.newton_step
        f, status, _ = self._update(update, 0, trust=TRUST)
        again = np.isin(status, (newton.SINGULAR, newton.MOVED)) & (self.fits.status == newton.CONVERGED)[:, :, None]
        status = np.where(status == newton.MOVED, self.fits.status[:, :, None], status)
        for k in np.flatnonzero(again.any(axis=(0, 2))):
            jobs = [(int(c), int(fold)) for c, fold in np.argwhere(again[:, k])]
            refitted = self._refit(jobs, np.array([k]))
            for job, (c, fold) in enumerate(jobs):
                held = slice(self.rows.starts[fold], self.rows.starts[fold + 1])
                f[c, k, held] = refitted.f[job, 0, held]
                status[c, k, fold] = refitted.status[job, 0]
        return HeldOut.of(f, status.max(axis=2), exact=False, refitted=again.sum(axis=(0, 2)))

    def influence(self, order: int) -> HeldOut:
        f, status, rho = self._influence(order)
        self.ratio = rho.max(axis=(0, 2))
        return HeldOut.of(f, status.max(axis=2), exact=False)

    def _ratio(self) -> Array:
        if self.rows.one_by_one is self.rows and self.rows.held >= SINGLE_ROWS:
            return self._ratio_of_single_rows()
        rho: Array = self._influence(0)[2].max(axis=(0, 2))
        return rho

    def _ratio_of_single_rows(self) -> Array:
        """Return the largest leverages, which are the ratios of folds of one row to 1/n: see ``numerics.leverage``."""
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


def compile_updates(learner: Any, full: bool) -> None:
    """Have the fold updates of a learner compiled while the search begins; ``full`` if it does with Gram matrices."""
    if not getattr(learner, "free", ()) and learner.loss.square:
        return
    if full:
        compile_ahead(heldout_kernel.influence, heldout_kernel.newton_step)
    else:
        compile_ahead(heldout_features.newton_step, heldout_features.influence)


def make_path(problem: Problem, learner: Any, lams: Iterable[float]) -> Path:
    """Return the path of a learner on a problem; lambda is put in descending order."""
    descending = np.sort(np.array(list(lams), dtype=np.float64))[::-1]
    if not learner.loss.square:
        return SmoothPath(problem, learner, descending)
    return (StreamedPath if problem.streamed else SquarePath)(problem, learner, descending)
