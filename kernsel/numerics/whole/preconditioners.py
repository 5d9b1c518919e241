"""Preconditioners for systems ``(K + ridge I) x = b`` with the whole kernel matrix, also without the rows of a fold.

Both approximate ``A = K + ridge I`` by a matrix P whose inverse is cheap to apply, and do so without a fold S too:
with T the other rows, ``P_TT^-1 r`` is what conjugate gradients need for the system of T.

:class:`Factored`
    The Cholesky factor of A in float32, ``n^2 / 2`` numbers. Without S, the inverse of a part of a matrix is
    ``(P^-1)_TT - (P^-1)_TS ((P^-1)_SS)^-1 (P^-1)_ST``: two solves and one block of the inverse. One factor thus serves
    the fit, all folds, and ridges near its own.
:class:`LowRank`
    ``P = F F' + ridge I`` with F (n, r), where that leaves little of K, or where memory doesn't hold a factor:
    ``P_TT^-1 r = (r - F_T (F_T' F_T + ridge I)^-1 F_T' r) / ridge`` (Woodbury), with the exact ridge of each column. F
    comes from a randomly pivoted Cholesky factorisation (Diaz, Epperly, Frangella, Tropp and Webber 2023).

Weights enter as ``root K root`` with ``root = sqrt(s)``: a row of weight 0 is then a row of the ridge alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from kernsel.numerics.dense import Cholesky
from kernsel.numerics.lowrank import pivoted_cholesky
from kernsel.numerics.runtime.threads import one_blas_thread
from kernsel.numerics.whole.tiles import KernelMatrix, Span, share_jobs, spans
from kernsel.numerics.whole.triangle import Triangle
from kernsel.types import Array, Indices

ALL = -1
"""In place of the number of a fold: no row is left out."""

FLOOR = 4.0
"""A ridge below ``FLOOR sqrt(n) u`` times the mean diagonal, u the unit roundoff, may be lost among the rounding errors
of n sums, which are a random matrix of that norm: the preconditioner gets that much. Conjugate gradients still solve
with the ridge itself."""

FLOOR_OF_FOLDS = 64.0
"""The same of a factor that folds are left out of by columns. ``P_TT^-1`` is a difference: on 20,000 rows of a smooth
kernel of ten features rounding left it indefinite at 6 times ``FLOOR``, and conjugate gradients ended nowhere. Where
the eigenvalues fall so fast that rounding wouldn't matter, the raised ridge costs up to four times the passes."""

GROWTH = 2.0
"""Where the factorisation fails nevertheless, the ridge of the preconditioner grows by this factor. It fails early, for
then few rows make the others superfluous: an attempt costs little more than the matrix."""

ATTEMPTS = 8

RATIO = 64.0
"""With eigenvalues of 0, a ridge of the preconditioner that is c times too large asks for about ``log(2 / 1e-10)
sqrt(c) / 2`` passes over the matrix, here 95, and for more where rounding errors are of its size: the system is refused
before they are spent."""


@dataclass(frozen=True)
class Refused:
    """What could not be computed, as its reason."""

    reason: str


class Preconditioner(Protocol):
    """An approximate inverse of ``root K root + ridge I``, also without the rows of a fold."""

    def apply(self, R: Array, folds: Indices, ridges: Array) -> Array:
        """Return ``P_TT^-1 r`` for each column of R (n, c), which is 0 in the rows of its fold, as is the result.

        Parameters
        ----------
        R : (n, c) array
        folds : (c,) array
            Number of the fold that is left out, or ``ALL``.
        ridges : (c,) array
            The ridges of the systems.
        """


@dataclass(frozen=True)
class Factored:
    """The Cholesky factor of ``root K root + ridge I``; build one by :func:`factorise`."""

    triangle: Triangle
    ridge: float
    """Of the factor, jitter included."""
    jitter: float
    """By how much the ridge of the factor is larger than the one that was asked for."""
    folds: tuple[Span, ...] = ()
    blocks: tuple[Triangle, ...] = ()
    """The factors of the folds' blocks of the inverse."""

    def apply(self, R: Array, folds: Indices, ridges: Array) -> Array:
        """Return ``P_TT^-1 r`` for each column of R (n, c), computed in the precision of the factor.

        The factor has one ridge, so ridges is not used; for the arguments see ``Preconditioner``.
        """
        size = np.sqrt(np.einsum("ij,ij->j", R, R))  # float32 has a range of its own
        size = np.where(size > 0, size, 1.0)
        out = self.triangle.solve(R / size)
        held = np.flatnonzero(folds != ALL)
        if held.size:
            W = np.zeros((len(R), held.size))
            for fold in np.unique(folds[held]):
                rows, of_fold = slice(*self.folds[fold]), folds[held] == fold
                W[rows, of_fold] = self.blocks[fold].solve(out[rows, held[of_fold]])
            out[:, held] -= self.triangle.solve(W)
            for column in held:
                out[slice(*self.folds[folds[column]]), column] = 0.0
        return out * size

    def hold_out(self, folds: Sequence[Span]) -> Factored | Refused:
        """Return the preconditioner that also serves systems without the rows of each fold.

        The triangle, which the two share, becomes the inverse of the factor (once), and the folds' blocks of the
        inverse of the matrix are computed and factorised: as many operations as the factor took, and ``sum m^2 (n -
        start) + m^3 / 3``.
        """
        blocks = []
        with one_blas_thread():
            if not self.triangle.inverted:
                self.triangle.invert()
            for fold, (lo, hi) in enumerate(folds):
                block = self._block(lo, hi)
                if block is None:
                    return Refused(
                        f"the block of the inverse for fold {fold + 1} is not positive definite in the precision of "
                        "the factor"
                    )
                blocks.append(block)
        return replace(self, folds=tuple(folds), blocks=tuple(blocks))

    def _block(self, lo: int, hi: int) -> Triangle | None:
        jitter = 0.0
        for _ in range(ATTEMPTS):
            block = self.triangle.inverse_block(lo, hi)
            mean = _add_to_diagonal(block, 0.0)
            _add_to_diagonal(block, jitter * mean)
            if block.factorise() == 0:
                return block
            jitter = max(GROWTH**2 * jitter, _floor(block.n, block.dtype))
        return None


def _floor(n: int, dtype: type, floor: float = FLOOR) -> float:
    return floor * float(np.sqrt(n)) * float(np.finfo(dtype).eps) / 2.0


def _add_to_diagonal(triangle: Triangle, ridge: float) -> float:
    """Add a ridge to the diagonal; return the mean of the diagonal then."""
    total = 0.0
    for i, (lo, hi) in enumerate(triangle.bounds):
        diagonal = np.arange(hi - lo)
        tile = triangle.tile(i, i)
        tile[diagonal, diagonal] += triangle.dtype(ridge)
        total += float(tile[diagonal, diagonal].astype(np.float64).sum())
    return total / max(triangle.n, 1)


def fill(matrix: KernelMatrix, root: Array, triangle: Triangle) -> None:
    """Fill a triangle with ``root K root``, each entry rounded once from float64."""

    def work(i: int, j: int) -> None:
        rows, columns = triangle.bounds[i], triangle.bounds[j]
        T = matrix.block(rows, columns)
        T *= root[slice(*rows), None]
        T *= root[slice(*columns)]
        with np.errstate(over="ignore"):  # an infinite entry is noticed by the factorisation
            triangle.tile(i, j)[:] = T

    count = len(triangle.bounds)
    share_jobs(work, [(i, j) for i in range(count) for j in range(i + 1)])


def factorise(
    matrix: KernelMatrix,
    ridge: float,
    root: Array | None = None,
    dtype: type = np.float32,
    floor: float = FLOOR,
) -> Factored | Refused:
    """Factorise ``root K root + ridge I``, with a larger ridge where the precision asks for it.

    Parameters
    ----------
    ridge : float
        Greater than 0.
    root : (n,) array, optional
        Roots of the weights, 1 unless given.
    dtype : numpy.float32 or numpy.float64
        Of the factor: 2 n^2 or 4 n^2 bytes.
    floor : float
        In units of rounding errors, the least ridge of the factor: ``FLOOR`` or ``FLOOR_OF_FOLDS``.
    """
    n = matrix.n
    root = np.ones(n) if root is None else root
    with one_blas_thread():
        diag = root**2 * matrix.diag()
        if not np.isfinite(diag).all():
            return Refused("the kernel is not finite at every row")
        mean = float(diag.sum()) / max(n, 1)
        least = max(ridge, _floor(n, dtype, floor) * mean)
        triangle = Triangle(n, dtype, matrix.size)
        for _ in range(ATTEMPTS):
            fill(matrix, root, triangle)
            _add_to_diagonal(triangle, least)
            failed = triangle.factorise()
            if failed == 0:
                return Factored(triangle, least, least - ridge)
            if GROWTH * least > RATIO * ridge:
                break
            least *= GROWTH
    name = np.dtype(dtype).name
    return Refused(
        f"the ridge {ridge:.1e} is too small for a Cholesky factor in {name}: beside a mean diagonal of {mean:.1e}, "
        f"even {least:.1e} is lost among its rounding errors (row {failed})"
    )


class LowRank:
    """``F F' + ridge I`` with a randomly pivoted Cholesky factor F (n, r) of ``root K root``.

    What F leaves of the matrix has a trace of ``lost``, so that the condition number of the preconditioned system is at
    most ``1 + lost / ridge``.

    Parameters
    ----------
    rank : int
        At most; F takes 8 n r bytes and about n r^2 operations.
    root : (n,) array, optional
    folds : sequence of (lo, hi)
    lost : float
        Trace that may be left: the rank ends there.
    """

    def __init__(
        self,
        matrix: KernelMatrix,
        rank: int,
        root: Array | None = None,
        folds: Sequence[Span] = (),
        seed: int = 0,
        lost: float = 0.0,
    ) -> None:
        n = matrix.n
        root = np.ones(n) if root is None else root
        self.folds = list(folds)

        def columns(which: Indices) -> Array:
            C = np.empty((n, which.size))
            landmarks = matrix.cross(matrix.points(which))

            def work(lo: int, hi: int) -> None:
                for a, b in spans(which.size, matrix.size):
                    C[lo:hi, a:b] = landmarks.block((a, b), (lo, hi)).T

            share_jobs(work, spans(n, matrix.size))
            C *= root[:, None]
            C *= root[which]
            return C

        with one_blas_thread():
            diag = root**2 * matrix.diag()
            tol = lost / float(diag.sum())
            self.F, *_, self.lost = pivoted_cholesky(columns, diag, rank, seed, tol)
            self.G = self._products(self.F)
        self._factors: dict[tuple[int, float], Cholesky] = {}

    @staticmethod
    def _products(F: Array) -> Array:
        r = F.shape[1]
        G = np.empty((r, r))

        def work(a: Span, b: Span) -> None:
            G[slice(*a), slice(*b)] = F[:, slice(*a)].T @ F[:, slice(*b)]
            G[slice(*b), slice(*a)] = G[slice(*a), slice(*b)].T

        bounds = spans(r)
        share_jobs(work, [(a, b) for i, a in enumerate(bounds) for b in bounds[: i + 1]])
        return G

    def _factor(self, fold: int, ridge: float) -> Cholesky:
        key = (fold, ridge)
        if key not in self._factors:
            H = self.G.copy()
            if fold != ALL:
                rows = self.F[slice(*self.folds[fold])]
                H -= self._products(rows)
            jitter = len(H) * float(np.finfo(float).eps) * float(np.trace(self.G))
            self._factors[key] = Cholesky.of(H, ridge + jitter)
        return self._factors[key]

    def apply(self, R: Array, folds: Indices, ridges: Array) -> Array:
        """Return ``P_TT^-1 r`` for each column of R (n, c), by Woodbury's identity: see ``Preconditioner``."""
        r = self.F.shape[1]
        inner, out = np.empty((r, R.shape[1])), np.empty_like(R)

        def project(lo: int, hi: int) -> None:
            inner[lo:hi] = self.F[:, lo:hi].T @ R

        def expand(lo: int, hi: int) -> None:
            out[lo:hi] = (R[lo:hi] - self.F[lo:hi] @ inner) / ridges

        share_jobs(project, spans(r, 120))
        for column, (fold, ridge) in enumerate(zip(folds.tolist(), ridges.tolist(), strict=True)):
            inner[:, column] = self._factor(fold, ridge).solve(inner[:, column])
        share_jobs(expand, spans(len(R)))
        for column, fold in enumerate(folds):
            if fold != ALL:
                out[slice(*self.folds[fold]), column] = 0.0
        return out
