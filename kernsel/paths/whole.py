"""Paths of the square loss with the whole kernel in tiles, for more rows than a Gram matrix is held of.

Every lambda costs a factor, or landmarks where few of them leave little of the kernel; those of the fit serve its folds
as well (see ``numerics.whole``). What is known of a lambda is kept with the problem, for it takes seconds to minutes,
and no more than a few numbers a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from kernsel.errors import IncompatibleError, SelectionError, check_memory
from kernsel.kernels import Kernel
from kernsel.numerics.points import Points, as_points, is_sparse
from kernsel.numerics.runtime.once import once
from kernsel.numerics.whole import costs as whole_costs
from kernsel.numerics.whole.preconditioners import FLOOR, FLOOR_OF_FOLDS, LowRank, Refused
from kernsel.numerics.whole.solver import Fit, WholeKernel
from kernsel.numerics.whole.solver import HeldOut as WithoutFolds
from kernsel.numerics.whole.tiles import CallableMatrix, CrossMatrix, FormulaMatrix, KernelMatrix, Span
from kernsel.paths import routes
from kernsel.paths.base import Path
from kernsel.paths.outputs import Fits, HeldOut, Spectral
from kernsel.representation.tiles import Tiles
from kernsel.system.memory import has_memory
from kernsel.types import Array, Indices

DOUBLE = 10_000
"""Up to so many rows a factor in float64 takes the place of one in float32 that is refused, and of one whose inverse
holds rows out: that is only as exact as the factor."""

ENOUGH = 1e-6
"""Relative residual up to which a fit is accepted: far below any standard error. Of smooth kernels with a ridge of
1e-8 of their norm, rounding leaves no less."""

EXACT = 1e-7
"""Relative error of outputs from which a result says so."""


class Solved(NamedTuple):
    """What is known of one lambda.

    Parameters
    ----------
    a : (n, k) array
        Coefficients of the fit.
    b : (k,) array
    f : (n, k) array
        Its outputs.
    heldout : (n, k) array
    error : float
        Of outputs, relative to the root mean square of the targets.
    without : (t, n, k) array or None
        Coefficients of the fit without each fold, if the outputs are from these.
    biases : (t, k) array or None
    """

    a: Array
    b: Array
    f: Array
    heldout: Array
    error: float
    without: Array | None
    biases: Array | None


def dtypes(n: int, exact: bool = False) -> list[type]:
    """Return the precisions of a factor of n rows that are tried in turn; ``exact`` where results are of that."""
    return [np.float32] * (n > DOUBLE or not exact) + [np.float64] * (n <= DOUBLE)


def kernel_matrix(kernel: Kernel, X: Points) -> KernelMatrix:
    """Return the matrix of a kernel on rows X (n, d) in tiles: compiled ones if the kernel has any, and X is dense."""
    found = None if is_sparse(X) else getattr(kernel, "compiled", lambda X: None)(X)
    return CallableMatrix(kernel, X) if found is None else FormulaMatrix(*found)


def cross_matrix(kernel: Kernel, X: Points, Z: Points) -> CrossMatrix | None:
    """Return the matrix of new points Z (m, d) with rows X (n, d) in compiled tiles; None if the kernel has none."""
    if is_sparse(X) or is_sparse(Z):
        return None
    matrix = kernel_matrix(kernel, X)
    new = kernel.compiled(as_points(Z)) if isinstance(matrix, FormulaMatrix) else None
    return matrix.cross(new[1]) if isinstance(matrix, FormulaMatrix) and new is not None else None


class WholePath(Path):
    """The square loss with the whole kernel in tiles.

    Parameters
    ----------
    problem : Problem
    learner : Learner
        Of the square loss.
    lams : (L,) array, descending
    """

    representation: Tiles

    def _check(self) -> None:
        if not self.learner.loss.square:
            raise IncompatibleError(
                f"rank whole is for the square loss, and learner '{self.learner.name}' has another: use krr or lssvm"
            )
        if self.rows.training is not None:
            raise IncompatibleError(
                "rank whole leaves folds out of fits on all rows, and these fits leave out other rows as well: give a "
                "number of landmarks such as 1000"
            )

    @property
    def _folds(self) -> list[Span]:
        return list(pairwise(self.rows.starts.tolist()))

    @once
    def _whole(self) -> WholeKernel:
        rows = self.rows
        Y = np.ascontiguousarray(rows.Y.T)
        return WholeKernel(kernel_matrix(self.problem.kernel, rows.X), Y, rows.s, self.bias, ENOUGH)

    @once
    def route(self) -> routes.Whole:
        """How folds are held out: see ``numerics.whole.costs.ROUTES``."""
        return routes.whole_in_tiles(self.sizes)

    def _solved(self, k: int) -> Solved | Refused:
        """Return what is known of lambda number ``k``."""
        known, key = self.representation.solved, (self.learner, float(self.lams[k]), self.rows.left.size)
        if key not in known:
            known[key] = self._solve(float(self.lams[k]))
        found: Solved | Refused = known[key]
        return found

    def _solve(self, lam: float) -> Solved | Refused:
        """Fit, and hold out the folds: by a low rank where it is near enough, else by a factor if memory holds it."""
        whole, folds, route = self._whole, self._folds, self.route
        low = None if route == "blocks" else whole.approximate(lam, folds)
        if low is not None:
            return _together(whole.fit_and_hold_out(low, lam, folds))
        found: Solved | Refused = Refused("")
        for dtype in dtypes(self.rows.n, route == "blocks"):
            size = np.dtype(dtype).itemsize
            costs = whole_costs.costs(*self._sizes, folds, route, itemsize=size)
            if route != "blocks" and not has_memory(costs.memory):
                return self._beyond_memory(lam)
            check_memory(
                costs.memory,
                f"the whole kernel of {self.rows.n} rows",
                "give fewer folds, or a number of landmarks such as 1000 in place of whole",
            )
            found = self._try(lam, dtype)
            if not isinstance(found, Refused):
                break
        return found

    @property
    def _sizes(self) -> tuple[int, int, int, bool]:
        """Rows, features, outputs, and whether there is a bias."""
        return *self.rows.X.shape, len(self.rows.Y), self.bias

    def _beyond_memory(self, lam: float) -> Solved | Refused:
        """Fit with a preconditioner of low rank, whatever that leaves: there may be many passes."""
        whole, folds = self._whole, self._folds
        check_memory(
            whole_costs.costs(*self._sizes, folds, "folds", rank=whole_costs.BEYOND_MEMORY).memory,
            f"the whole kernel of {self.rows.n} rows",
            "give a number of landmarks such as 1000 in place of whole",
        )
        low = LowRank(whole.matrix, whole_costs.BEYOND_MEMORY, whole.root, folds)
        return _together(whole.fit_and_hold_out(low, lam, folds))

    def _try(self, lam: float, dtype: type) -> Solved | Refused:
        """Fit, and hold out the folds, with a factor of some precision."""
        whole, folds, route = self._whole, self._folds, self.route
        floor = FLOOR_OF_FOLDS if route == "folds" else FLOOR
        factored = whole.factorise(lam, () if route == "one fold" else folds, dtype, floor)
        if isinstance(factored, Refused):
            return factored
        if route == "folds":
            prepared = factored.hold_out(folds)
            return (
                prepared if isinstance(prepared, Refused) else _together(whole.fit_and_hold_out(prepared, lam, folds))
            )
        fit = whole.fit(factored, lam)
        if isinstance(fit, Refused):
            return fit
        if route == "one fold":
            del factored  # the memory is for the next one
            held = whole.hold_out_one(lam, folds[0], dtype)
        else:
            held = whole.hold_out_by_blocks(factored, lam, folds)
        return held if isinstance(held, Refused) else _together((fit, held))

    @once
    def fits(self) -> Fits:
        rows = self.rows
        f, status = np.zeros((len(rows.Y), self.lams.size, rows.n)), np.zeros((len(rows.Y), self.lams.size), np.int64)
        for k in range(self.lams.size):
            found = self._solved(k)
            f[:, k] = np.nan if isinstance(found, Refused) else found.f.T
        return Fits(np.zeros((*f.shape[:2], 0)), f, status)

    def exact(self, which: Sequence[int] | None = None) -> HeldOut:
        chosen = list(range(self.lams.size)) if which is None else list(which)
        f = np.zeros((len(self.rows.Y), len(chosen), self.rows.n))
        failed: list[str | None] = []
        for place, k in enumerate(chosen):
            found = self._solved(k)
            if isinstance(found, Refused):
                f[:, place] = np.nan
                failed.append(found.reason)
                continue
            f[:, place] = found.heldout.T
            finite = bool(np.isfinite(found.heldout).all())
            failed.append(None if finite else "held-out outputs are not finite")
        return HeldOut(f, failed, np.full(len(chosen), True))

    def newton_step(self) -> HeldOut:
        return self.exact()

    def _series(self, order: int) -> tuple[Array, Array, Indices]:
        raise IncompatibleError(
            "rank whole has exact held-out outputs, and no influence function: use newton-cv or cv, or give a number "
            "of landmarks such as 1000"
        )

    def spectral(self, who: str) -> Spectral:
        raise IncompatibleError(
            f"{who} isn't made for rank whole, which holds neither the Gram matrix nor its spectrum: use newton-cv, cv "
            "or loo, or give a number of landmarks such as 1000"
        )

    def norms(self, which: Sequence[int], found: Array | None = None) -> Array:
        fits = [self._solved(k) for k in which]
        norms = [np.nan if isinstance(s, Refused) else float(np.vdot(s.a, s.f - s.b)) for s in fits]
        return np.array(norms, dtype=np.float64)

    def _fit(self, k: int) -> Solved:
        """Return what is known of lambda number ``k``; SelectionError if there is no fit."""
        found = self._solved(k)
        if isinstance(found, Refused):
            raise SelectionError(f"there is no fit for lambda = {self.lams[k]:.4g}: {found.reason}")
        return found

    def _solution(self, k: int) -> Array:
        found = self._fit(k)
        return np.vstack([found.a, found.b]).T if self.bias else found.a.T

    def _refitted(self, k: int) -> Array:
        found = self._fit(k)
        a, b = found.without, found.biases
        if a is None or b is None:  # by blocks of the inverse
            a, b = self._by_columns(float(self.lams[k]))
        x = np.concatenate([a, b[:, None]], axis=1) if self.bias else a
        return np.asarray(x.swapaxes(1, 2))

    def _by_columns(self, lam: float) -> tuple[Array, Array]:
        """Return coefficients and biases of the fits without each of many folds, by a system for each."""
        whole, folds = self._whole, self._folds
        dtype = np.float64 if self.rows.n <= DOUBLE else np.float32
        factored = whole.factorise(lam, folds, dtype, FLOOR_OF_FOLDS)
        prepared = factored if isinstance(factored, Refused) else factored.hold_out(folds)
        found = prepared if isinstance(prepared, Refused) else whole.hold_out(prepared, lam, folds)
        if isinstance(found, Refused):
            raise SelectionError(f"there are no fits without each fold for lambda = {lam:.4g}: {found.reason}")
        assert found.a is not None
        assert found.b is not None
        return found.a, found.b

    def describe(self) -> str:
        """Return the representation in words, with the error of the outputs if it is worth a word."""
        found = [self._solved(k) for k in range(self.lams.size)]
        worst = max((s.error for s in found if isinstance(s, Solved)), default=0.0)
        return self.representation.describe() + (f", outputs to {worst:.0e}" if worst > EXACT else "")


def _together(found: tuple[Fit, WithoutFolds] | Refused) -> Solved | Refused:
    if isinstance(found, Refused):
        return found
    fit, held = found
    return Solved(fit.a, fit.b, fit.f, held.outputs, max(held.error, fit.residual), held.a, held.b)
