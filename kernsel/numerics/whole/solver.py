"""The square loss with the whole kernel on tens of thousands of rows: fits and exact held-out outputs.

The system of a fit, and that without a fold S (T its other rows, N_T the sum of their weights), are::

    (K_TT + N_T lam diag(1/s)) a + b = y_T,    with a bias also sum(a) = 0,    f^-S = K_{:,T} a + b

Each is one column of a block of conjugate gradients in float64, with ``x = a / sqrt(s)`` for a symmetric matrix and a
preconditioner that is computed once for all of them (see ``preconditioners``). The bias is one column more:
with ``H x_y = sqrt(s) y``, ``H x_1 = sqrt(s)``, ``b = sum(a_y) / sum(a_1)`` and ``a = a_y - b a_1``. Each step is one
pass over the tiles of K for all columns, which gives the outputs at the rows left out as well.

The errors of the outputs at the rows that are fitted to are at most the residual, for ``|K (K + ridge I)^-1| <= 1``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kernsel.numerics.runtime.threads import one_blas_thread
from kernsel.numerics.whole.conjugate_gradients import PASSES, Solution, conjugate_gradients
from kernsel.numerics.whole.preconditioners import ALL, FLOOR, Factored, LowRank, Preconditioner, Refused, factorise
from kernsel.numerics.whole.tiles import KernelMatrix, Span
from kernsel.types import Array, Indices

ENOUGH = 1e-9
"""Residual up to which a result is accepted unless another one is given, computed anew from the solution. The error at
one row, in standard deviations of the targets, may be some times that, and 1e-8 is what is promised."""

COLUMNS = 128
"""Columns of one block, at most: their vectors take 64 bytes a row and column."""

RANK = 1000
"""Columns of a preconditioner of low rank, at most: tried first, for they cost little beside a factor."""

CHECKED = 8
"""Folds held out by conjugate gradients, to say how exact blocks of the inverse are, and a ridge common to all is."""


@dataclass(frozen=True)
class Fit:
    """A fit for each output: coefficients a (n, k), biases b (k,), outputs ``f = K a + b`` (n, k)."""

    a: Array
    b: Array
    f: Array
    residual: float
    """The largest relative residual of the systems behind the fit."""
    passes: int


@dataclass(frozen=True)
class HeldOut:
    """Held-out outputs (n, k); rows in no fold that was held out have 0."""

    outputs: Array
    folds: list[Span]
    """The folds that were held out: all of them, or one."""
    error: float
    """Relative to the root mean square of the targets: the residual, or the largest error of the folds that were
    checked."""
    passes: int
    """Of the block of columns that took most."""
    a: Array | None = None
    """Coefficients (t, n, k) of the fit without each fold, 0 in its rows; None of blocks, which know none."""
    b: Array | None = None
    """Biases (t, k)."""


@dataclass(frozen=True)
class WholeKernel:
    """The square loss of targets with a whole kernel matrix; rows are sorted by fold.

    Parameters
    ----------
    Y : (n, k) array
        Targets, one column an output.
    s : (n,) array
        Sample weights, at least 0.
    bias : bool
        Whether there is a bias, which is not penalised.
    enough : float
        Relative residual up to which a result is accepted: outputs at the rows that are fitted to are as exact.
    passes : int
        Over K, at most, for each block of columns.
    """

    matrix: KernelMatrix
    Y: Array
    s: Array
    bias: bool = False
    enough: float = ENOUGH
    passes: int = PASSES

    @property
    def root(self) -> Array:
        """Roots of the weights."""
        return np.sqrt(self.s)

    def factorise(
        self, lam: float, folds: Sequence[Span] = (), dtype: type = np.float32, floor: float = FLOOR
    ) -> Factored | Refused:
        """Return a factor, the preconditioner of the fit and of all folds.

        Parameters
        ----------
        lam : float
            Greater than 0.
        folds : sequence of (lo, hi)
            Folds that will be held out: the factor then has their ``common_ridge``, and ``N lam`` without. The fit
            takes a few passes more with a ridge near its own.
        dtype : numpy.float32 or numpy.float64
        floor : float
            ``FLOOR``, or ``FLOOR_OF_FOLDS`` where folds will be held out by a column of their own.
        """
        ridge = self.common_ridge(lam, folds)
        return factorise(self.matrix, ridge, self.root, dtype, floor)

    def approximate(self, lam: float, folds: Sequence[Span] = (), rank: int = RANK) -> LowRank | None:
        """Return a preconditioner of low rank for the fit and all folds; None where it leaves more than the ridge.

        Where the trace that is left is below the ridge, systems have a condition number of at most 2: about ten passes,
        whatever the ridge, and ``n rank^2`` operations in place of the factor's ``n^3 / 3``.

        Parameters
        ----------
        folds : sequence of (lo, hi)
        rank : int
            At most, and at most a tenth of the rows.
        """
        ridge = self.common_ridge(lam, folds)
        found = LowRank(self.matrix, min(rank, max(1, self.matrix.n // 10)), self.root, folds, lost=ridge)
        return found if found.lost <= ridge else None

    def fit(self, preconditioner: Preconditioner, lam: float) -> Fit | Refused:
        """Fit to all rows, with a preconditioner for the ridge ``N lam`` or one near it."""
        return self.fits(preconditioner, [lam])[0]

    def fits(self, preconditioner: Preconditioner, lams: Sequence[float]) -> list[Fit | Refused]:
        """Fit to all rows for several lambda, as columns of one product; each may be refused by itself.

        A ridge that is c times that of the factor, c > 1, takes about ``12 sqrt(c)`` passes.
        """
        ridges = float(self.s.sum()) * np.asarray(lams, dtype=np.float64)
        return self._solve(preconditioner, ridges, np.full(len(lams), ALL), ())

    def hold_out(self, preconditioner: Preconditioner, lam: float, folds: Sequence[Span]) -> HeldOut | Refused:
        """Hold out each fold by a system of its own: exact to the residual.

        Parameters
        ----------
        preconditioner : Preconditioner
            That knows the folds: ``Factored`` after ``hold_out``, or ``LowRank`` with the folds.
        folds : sequence of (lo, hi)
        """
        found = self._without(preconditioner, lam, folds, range(len(folds)))
        return found if isinstance(found, Refused) else self._held_out(found, folds)

    def fit_and_hold_out(
        self, preconditioner: Preconditioner, lam: float, folds: Sequence[Span]
    ) -> tuple[Fit, HeldOut] | Refused:
        """Fit to all rows, and hold out each fold, in the same passes over K, by a preconditioner that knows them."""
        found = self._without(preconditioner, lam, folds, range(ALL, len(folds)))
        return found if isinstance(found, Refused) else (found[0], self._held_out(found[1:], folds))

    def _without(
        self, preconditioner: Preconditioner, lam: float, folds: Sequence[Span], which: range
    ) -> list[Fit] | Refused:
        """Return the fits without each of some folds, ``ALL`` for none, in blocks of columns."""
        fits: list[Fit] = []
        step = max(1, COLUMNS // (self.Y.shape[1] + self.bias))
        for first in range(0, len(which), step):
            some = which[first : first + step]
            left = [float(self.s.sum()) if fold == ALL else self._left(folds[fold]) for fold in some]
            ridges = np.array(left) * lam
            if not (ridges > 0).all():
                return Refused("a fold holds all the weight, so that nothing is left to fit to")
            for fit in self._solve(preconditioner, ridges, np.array(some), folds):
                if isinstance(fit, Refused):
                    return fit
                fits.append(fit)
        return fits

    def _held_out(self, fits: Sequence[Fit], folds: Sequence[Span]) -> HeldOut:
        """Return what the fits without each fold give for its rows."""
        out = np.zeros(self.Y.shape)
        for (lo, hi), fit in zip(folds, fits, strict=True):
            out[lo:hi] = fit.f[lo:hi]
        worst, most = max(fit.residual for fit in fits), max(fit.passes for fit in fits)
        return HeldOut(out, list(folds), worst, most, np.stack([f.a for f in fits]), np.stack([f.b for f in fits]))

    def hold_out_by_blocks(self, factored: Factored, lam: float, folds: Sequence[Span]) -> HeldOut | Refused:
        """Hold out many folds by the blocks of the factor's inverse: ``y_S - f_S^-S = (A_SS)^-1 alpha_S``.

        With ``A = (K + ridge I)^-1``, and with a bias ``A - u u' / sum(u)``, ``u = A 1``. alpha and u are float64's;
        the blocks, for single rows the diagonal, have the precision of the factor. A few folds are held out exactly to
        say by how much that is off.

        Parameters
        ----------
        factored : Factored
            For the common ridge, ``common_ridge(lam, folds)``, without a jitter.
        folds : sequence of (lo, hi)
            Of rows with weights above 0; a row of weight 0 may be a fold by itself.
        """
        ridge = self.common_ridge(lam, folds)
        if factored.jitter > 0 or not np.isclose(factored.ridge, ridge, rtol=1e-12, atol=0.0):
            return Refused(
                f"blocks of the inverse are wanted for a ridge of {ridge:.3g}, and the factor has "
                f"{factored.ridge:.3g}: the ridge is too small for its precision, or another one was factorised"
            )
        if any(hi - lo > 1 and not (self.s[lo:hi] > 0).all() for lo, hi in folds):
            return Refused("a fold of several rows has rows of weight 0, whose outputs its block doesn't give")
        checked = [folds[fold] for fold in self._to_check(folds)]
        prepared = factored.hold_out(checked)
        if isinstance(prepared, Refused):
            return prepared
        found = self._columns(factored, np.array([ridge]), np.array([ALL]), ())
        if found.residuals.max(initial=0.0) > self.enough:
            return _refused(found, ridge, self.enough)
        X, KX, spent = found.X, found.KX, found.passes
        k, root = self.Y.shape[1], self.root
        alpha, f, u, total = X[:, :k], KX[:, :k], np.zeros(self.matrix.n), 1.0
        if self.bias:
            u = X[:, k]
            total = float(root @ u)
            b = root @ alpha / total
            alpha, f = alpha - np.outer(u, b), f - np.outer(KX[:, k], b) + b + self._centre
        out = np.zeros(self.Y.shape)
        with one_blas_thread():
            single = np.array([lo for lo, hi in folds if hi - lo == 1], np.int64)
            if single.size:
                diagonal = factored.triangle.inverse_diagonal()[single] - u[single] ** 2 / total
                weightless = root[single] == 0
                scale = np.where(weightless, 1.0, root[single])
                out[single] = self.Y[single] - alpha[single] / (diagonal * scale)[:, None]
                out[single[weightless]] = f[single[weightless]]
            for lo, hi in folds:
                if hi - lo > 1:
                    A = factored.triangle.inverse_block(lo, hi).dense().astype(np.float64)
                    A -= np.outer(u[lo:hi], u[lo:hi]) / total
                    out[lo:hi] = self.Y[lo:hi] - np.linalg.solve(A, alpha[lo:hi]) / root[lo:hi, None]
        exact = self.hold_out(prepared, lam, checked)
        if isinstance(exact, Refused):
            return exact
        off = max(float(np.abs(exact.outputs[lo:hi] - out[lo:hi]).max(initial=0.0)) for lo, hi in exact.folds)
        size = float(np.sqrt(np.mean(np.square(self.Y - self._centre))))
        return HeldOut(out, list(folds), off / size if size > 0 else off, spent + exact.passes)

    def _to_check(self, folds: Sequence[Span]) -> list[int]:
        """Return some folds: those whose ridge is farthest from the common one, where weights differ, else any."""
        left = np.array([self._left(fold) for fold in folds])
        off = np.abs(left - left.mean())
        if off.max() > 1e-12 * left.mean():
            return sorted(np.argsort(-off, kind="stable")[:CHECKED].tolist())
        return sorted({*np.linspace(0, len(folds) - 1, CHECKED).astype(int).tolist()})

    def hold_out_one(self, lam: float, fold: Span, dtype: type = np.float32) -> HeldOut | Refused:
        """Hold out one fold by a factor of the other rows alone: where time or memory forbid the inverse."""
        lo, hi = fold
        held = np.arange(lo, hi)
        others = np.delete(np.arange(self.matrix.n), held)
        matrix, Y, s = self.matrix.subset(others), self.Y[others], self.s[others]
        there = replace(self, matrix=matrix, Y=Y, s=s)
        if not there.s.sum() > 0:
            return Refused("a fold holds all the weight, so that nothing is left to fit to")
        factored = there.factorise(lam, dtype=dtype)
        if isinstance(factored, Refused):
            return factored
        fit = there.fit(factored, lam)
        if isinstance(fit, Refused):
            return fit
        out = np.zeros(self.Y.shape)
        out[lo:hi] = predict(there.matrix, self.matrix.points(held), fit)
        a = np.zeros((1, *self.Y.shape))
        a[0, others] = fit.a
        return HeldOut(out, [fold], fit.residual, fit.passes, a, fit.b[None])

    def common_ridge(self, lam: float, folds: Sequence[Span]) -> float:
        """Return the mean ridge of the fits without a fold; ``N lam`` where there is none.

        Folds of one weight have it in common; otherwise an entry of ``(K + ridge I)^-1`` is off by no more than the
        ridge is, relatively: the spread of the folds' weights over N.
        """
        if not folds:
            return float(self.s.sum()) * lam
        return lam * float(np.mean([self._left(fold) for fold in folds]))

    @property
    def _centre(self) -> Array:
        """The weighted means of the targets, which a bias takes up: what is left has smaller errors."""
        means: Array = self.s @ self.Y / self.s.sum() if self.bias else np.zeros(self.Y.shape[1])
        return means

    def _left(self, fold: Span) -> float:
        return float(self.s[: fold[0]].sum() + self.s[fold[1] :].sum())

    def _columns(
        self, preconditioner: Preconditioner, ridges: Array, folds: Indices, spans: Sequence[Span]
    ) -> Solution:
        """Solve for the outputs, and a bias, of each system; they are columns next to each other."""
        root, each = self.root, self.Y.shape[1] + self.bias
        B = root[:, None] * (self.Y - self._centre)
        B = np.tile(np.column_stack([B, root]) if self.bias else B, (1, folds.size))
        of = np.repeat(folds, each)
        for column, fold in enumerate(of):
            if fold != ALL:
                B[slice(*spans[int(fold)]), column] = 0.0
        ridge_of = np.repeat(ridges, each)
        return conjugate_gradients(self.matrix, preconditioner, B, ridge_of, of, spans, root, self.passes)

    def _solve(
        self, preconditioner: Preconditioner, ridges: Array, folds: Indices, spans: Sequence[Span]
    ) -> list[Fit | Refused]:
        """Return the fit of each system."""
        found = self._columns(preconditioner, ridges, folds, spans)
        root, k, centre = self.root[:, None], self.Y.shape[1], self._centre
        fits: list[Fit | Refused] = []
        for system, ridge in enumerate(ridges):
            columns = slice(system * (k + self.bias), (system + 1) * (k + self.bias))
            of_system = Solution(found.X[:, columns], found.KX[:, columns], found.residuals[columns], found.passes)
            residual = float(of_system.residuals.max(initial=0.0))
            if not residual <= self.enough:
                fits.append(_refused(of_system, float(ridge), self.enough))
                continue
            a, f, b = root * of_system.X[:, :k], of_system.KX[:, :k], np.zeros(k)
            if self.bias:
                one = root[:, 0] * of_system.X[:, k]
                b = a.sum(axis=0) / one.sum()
                a, f = a - np.outer(one, b), f - np.outer(of_system.KX[:, k], b) + b
            fits.append(Fit(a, b + centre, f + centre, residual, found.passes))
        return fits


def _refused(found: Solution, ridge: float, enough: float) -> Refused:
    return Refused(
        f"conjugate gradients left a relative residual of {found.residuals.max():.1e} after {found.passes} passes over "
        f"the kernel matrix, above {enough:.0e}: a ridge of {ridge:.1e} is too small for this kernel"
    )


def predict(matrix: KernelMatrix, Z: object, fit: Fit) -> Array:
    """Return the outputs (m, k) of a fit at new points Z (m, d), in tiles on all threads: O(m k) memory.

    Parameters
    ----------
    matrix : KernelMatrix
        Of the rows of the fit.
    Z : (m, d) points
    """
    return matrix.cross(Z).times(fit.a) + fit.b
