"""Fits of one learner on one kernel along lambda, and held-out outputs from them.

The unit of work is a kernel with its whole path of lambda: a :class:`Path` holds the fits for descending lambda, and
answers every question about held-out rows; it is what a criterion scores.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernsel.numerics import heldout, heldout_features, heldout_kernel, newton, spectral
from kernsel.numerics.jit import Compiled, compile_ahead, one_blas_thread, share
from kernsel.problem import Problem, Rows

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

REFIT_BYTES = 2**28
"""Refits of folds are done in groups whose outputs fit in this."""


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
    """

    f: Array
    failed: list[str | None]
    exact: NDArray[np.bool_]

    @staticmethod
    def of(f: Array, status: NDArray[np.int64], exact: bool) -> HeldOut:
        """Give each lambda its reason from the worst status (outputs, L) and from values that are not finite."""
        worst = status.reshape(-1, f.shape[1]).max(axis=0)
        finite = np.logical_and.reduce(np.isfinite(f), axis=(0, 2))
        worst = np.where(finite | (worst != newton.CONVERGED), worst, newton.NOT_FINITE)
        failed = [newton.REASONS.get(int(s)) for s in worst]
        return HeldOut(f, failed, np.full(f.shape[1], exact))


@dataclass(frozen=True, eq=False)
class Fits:
    """Fits on all rows: coefficients or weights ``x (k, L, .)``, outputs ``f (k, L, n)``, statuses (k, L)."""

    x: Array
    f: Array
    status: NDArray[np.int64]


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
        self.learner = learner
        self.lams = np.ascontiguousarray(lams, dtype=np.float64)

    @property
    def rows(self) -> Rows:
        """The data."""
        return self.problem.rows

    @abstractmethod
    def prepare(self) -> None:
        """Compute the representation that the fits need."""

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
    def coefficients(self, k: int) -> Array:
        """Weights (outputs, m) of the kernel functions at the rows of ``points()``, for lambda number ``k``."""

    def points(self) -> Array:
        """The rows (m, d) whose kernel functions make up the model: all, or the landmarks."""
        return self.rows.X if self.problem.full else self.rows.X[self.problem.factor[1]]

    def nystrom_influence(self, share: float) -> HeldOut:
        """First-order influence with the inverse approximated from ``share * n`` uniform landmarks (FBIF18).

        In a low-rank representation the fit lies in the range of its landmarks already, and the plain first order is
        what the approximation amounts to.
        """
        if not self.problem.full:
            return self.influence(1)
        f, status, _ = self._update(heldout_kernel.nystrom_influence, 1, self.problem.nystrom(share))
        return HeldOut.of(f, status, exact=False)

    def _update(self, update: Compiled, order: int, V: Array | None = None) -> tuple[Array, NDArray[np.int64], Array]:
        """Apply a fold update to every fit; return outputs, statuses (k, L) and ratios (k, L, t)."""
        rows, fits = self.rows, self.fits
        _, d1, d2 = self.learner.loss.expand(rows.Y, np.ones(rows.n), fits.f)
        f, rho = fits.f.copy(), np.zeros((*fits.f.shape[:2], rows.left.size))
        if V is None:
            V = np.zeros((rows.n, 0))
        status = heldout.update_folds(
            update, self.problem.matrix, V, fits.x, fits.f, d1, d2, float(rows.n), self.lams,
            rows.starts, rows.left, order, f, rho,
        )  # fmt: skip
        return f, np.maximum(status, fits.status), rho


class SquarePath(Path):
    """The square loss: from the spectrum of the representation, or from the products of low-rank features."""

    @cached_property
    def _by_products(self) -> bool:
        problem = self.problem
        return not problem.full and spectral.products_are_cheaper(self.rows.starts, problem.width, self.lams)

    def prepare(self) -> None:
        _ = self.problem.products if self._by_products else self.problem.spectrum

    @cached_property
    def fits(self) -> Fits:
        U, ev = self.problem.spectrum
        f = spectral.outputs(U, ev, self.rows.Y, self.lams)
        # For the square loss the updates read f alone.
        return Fits(np.zeros((*f.shape[:2], 0)), f, np.zeros(f.shape[:2], np.int64))

    def exact(self, which: Sequence[int] | None = None) -> HeldOut:
        rows = self.rows
        lams = self.lams if which is None else self.lams[list(which)]
        if self._by_products:
            f, status = spectral.heldout_features(self.problem.matrix, self.problem.products, rows.Y, lams, rows.starts)
        else:
            f, status = spectral.heldout_square(*self.problem.spectrum, rows.Y, lams, rows.starts)
        return HeldOut.of(f, status, exact=True)

    def newton_step(self) -> HeldOut:
        return self.exact()

    def influence(self, order: int) -> HeldOut:
        U, ev = self.problem.spectrum
        f, rho = spectral.influence_square(U, ev, self.rows.Y, self.lams, self.rows.starts, order)
        self.ratio = rho.max(axis=0)
        return HeldOut.of(f, np.zeros(f.shape[:2], np.int64), exact=False)

    def _ratio(self) -> Array:
        U, ev = self.problem.spectrum
        _, rho = spectral.influence_square(U, ev, self.rows.Y, self.lams, self.rows.starts, 0)
        largest: Array = rho.max(axis=0)
        return largest

    def coefficients(self, k: int) -> Array:
        if self.problem.full:
            return spectral.coefficients(*self.problem.spectrum, self.rows.Y, self.lams[k])
        Z, _, T, _ = self.problem.factor
        return spectral.weights(Z, self.problem.products, self.rows.Y, self.lams[k]) @ T.T


class SmoothPath(Path):
    """Any other smooth loss: damped Newton, in the coordinates of the Gram matrix or of the low-rank features."""

    def prepare(self) -> None:
        _ = self.problem.matrix

    @property
    def _solver(self) -> Compiled:
        return newton.in_kernel if self.problem.full else newton.in_features

    @cached_property
    def fits(self) -> Fits:
        return _fit([self])[0]

    def exact(self, which: Sequence[int] | None = None) -> HeldOut:
        chosen = np.arange(self.lams.size) if which is None else np.asarray(list(which))
        rows, fits = self.rows, self.fits
        k, folds, n = len(rows.Y), rows.left.size, rows.n
        out, status = np.empty((k, chosen.size, n)), fits.status[:, chosen].copy()
        group = max(1, REFIT_BYTES // (16 * k * chosen.size * n))
        for first in range(0, folds, group):
            members = range(first, min(first + group, folds))
            jobs = [(c, fold) for c in range(k) for fold in members]
            weights = np.ones((len(jobs), n))
            for job, (_, fold) in enumerate(jobs):
                weights[job, rows.starts[fold] : rows.starts[fold + 1]] = 0.0
            outputs = np.array([c for c, _ in jobs])
            x, f = (np.ascontiguousarray(values[np.ix_(outputs, chosen)]) for values in (fits.x, fits.f))
            solved = self._solve(
                self.problem.matrix[None], np.zeros(len(jobs), np.int64), rows.Y[outputs], weights,
                self.lams[chosen], self.learner.loss, False, x, f,
            )  # fmt: skip
            for job, (c, fold) in enumerate(jobs):
                held = slice(rows.starts[fold], rows.starts[fold + 1])
                out[c, :, held] = f[job, :, held]
                status[c] = np.maximum(status[c], solved[job])
        return HeldOut.of(out, status, exact=True)

    def _solve(
        self, G: Array, which: Indices, Y: Array, S: Array, lams: Array, loss: Any, follow: bool, x: Array, f: Array
    ) -> NDArray[np.int64]:
        result: NDArray[np.int64] = newton.solve_paths(
            self._solver, G, which, Y, S, lams, loss.pointer, np.array(loss.parameters), follow, x, f
        )
        return result

    def newton_step(self) -> HeldOut:
        update = heldout_kernel.newton_step if self.problem.full else heldout_features.newton_step
        f, status, _ = self._update(update, 0)
        singular = np.flatnonzero((status == newton.SINGULAR).any(axis=0) & ~self.fits.status.any(axis=0))
        if singular.size:  # a fold's system could not be factorised: refit there
            refitted = self.exact(singular.tolist())
            f[:, singular] = refitted.f
            status[:, singular] = [[0 if reason is None else newton.UNFINISHED for reason in refitted.failed]]
        return HeldOut.of(f, status, exact=False)

    def influence(self, order: int) -> HeldOut:
        f, status, rho = self._influence(order)
        self.ratio = rho.max(axis=(0, 2))
        return HeldOut.of(f, status, exact=False)

    def _ratio(self) -> Array:
        rho: Array = self._influence(0)[2].max(axis=(0, 2))
        return rho

    def _influence(self, order: int) -> tuple[Array, NDArray[np.int64], Array]:
        update = heldout_kernel.influence if self.problem.full else heldout_features.influence
        return self._update(update, order)

    def coefficients(self, k: int) -> Array:
        x = self.fits.x[:, k]
        return x if self.problem.full else x @ self.problem.factor[2].T


def compile_updates(learner: Any, full: bool) -> None:
    """Have the fold updates of a learner compiled while its first fits are computed."""
    if learner.loss.square:
        return
    updates = heldout_kernel if full else heldout_features
    compile_ahead(updates.newton_step, updates.influence)


def make_path(problem: Problem, learner: Any, lams: Iterable[float]) -> Path:
    """Return the path of a learner on a problem; lambda is put in descending order."""
    descending = np.sort(np.array(list(lams), dtype=np.float64))[::-1]
    return (SquarePath if learner.loss.square else SmoothPath)(problem, learner, descending)


def fit_together(paths: Sequence[Path]) -> None:
    """Prepare the representations of the paths in parallel, then fit those that need a solver, side by side."""
    with one_blas_thread():
        share(lambda first, step: [path.prepare() for path in paths[first::step]], len(paths))
    smooth = [path for path in paths if isinstance(path, SmoothPath)]
    groups: dict[Any, list[SmoothPath]] = {}
    for path in smooth:
        groups.setdefault((path.problem.matrix.shape, path.problem.full), []).append(path)
    for group in groups.values():
        for path, fits in zip(group, _fit(group), strict=True):
            path.__dict__["fits"] = fits


def _fit(paths: list[SmoothPath]) -> list[Fits]:
    """Fit paths of one shape of representation, side by side; they share learner and lambda."""
    first = paths[0]
    G = np.stack([path.problem.matrix for path in paths]) if len(paths) > 1 else first.problem.matrix[None]
    Y = first.rows.Y
    k, n = Y.shape
    which = np.repeat(np.arange(len(paths)), k)
    x, f = np.zeros((which.size, first.lams.size, G.shape[2])), np.zeros((which.size, first.lams.size, n))
    targets = np.tile(Y, (len(paths), 1))
    status = first._solve(G, which, targets, np.ones(targets.shape), first.lams, first.learner.loss, True, x, f)
    return [Fits(x[i : i + k], f[i : i + k], status[i : i + k]) for i in range(0, which.size, k)]
