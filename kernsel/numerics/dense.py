"""Dense algebra of float64 blocks in memory: factors of Cholesky, what is solved by them, and products with triangles.

Products of whole blocks are written ``A @ B`` where they are needed, which arrays of any library understand. What takes
a routine of LAPACK for ``A = L L'`` goes through this module, so that another library is put in here alone; the few
that don't are listed in its test. Routines that run inside compiled loops are those of ``numerics.runtime.blas``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg

from kernsel.types import Array


class Cholesky(NamedTuple):
    """The lower factor L of a positive definite ``A = L L'``.

    Parameters
    ----------
    L : (r, r) array
    """

    L: Array

    @classmethod
    def of(cls, H: Array, ridge: float = 0.0, free: int = 0) -> Cholesky:
        """Factorise ``A = H + ridge I``, the last ``free`` rows without the ridge; H stays as it is.

        Parameters
        ----------
        H : (r, r) array
            Its lower triangle is read.

        Raises
        ------
        numpy.linalg.LinAlgError
            A is not positive definite in floating point.
        """
        A = np.array(H, order="F")  # as LAPACK has it, and overwrites it
        penalised = np.arange(len(A) - free)
        A[penalised, penalised] += ridge
        return cls(np.asarray(scipy.linalg.cholesky(A, lower=True, overwrite_a=True)))

    def solve(self, B: Array) -> Array:
        """Return ``A^-1 B`` for B (r,) or (r, k)."""
        return np.asarray(scipy.linalg.cho_solve((self.L, True), B))

    def half(self, B: Array) -> Array:
        """Return ``L^-1 B`` for B (r,) or (r, k)."""
        return np.asarray(scipy.linalg.solve_triangular(self.L, B, lower=True))

    def lengths(self, B: Array) -> Array:
        """Return ``b' A^-1 b`` for each column b of B (r, k), (k,)."""
        X = self.half(B)
        return np.asarray(np.einsum("ij,ij->j", X, X))


def add_products(P: Array, into: Array) -> None:
    """Add ``P' P`` for P (n, r) to the lower triangle of ``into`` (r, r), in place."""
    if P.size:
        scipy.linalg.blas.dsyrk(1.0, P.T, beta=1.0, c=into.T, overwrite_c=True)  # whose upper triangle LAPACK sees


def mirror(lower: Array) -> None:
    """Copy the lower triangle of a matrix (r, r), above which there are zeros, to the upper one, in place."""
    lower += np.tril(lower, -1).T


def solve_upper(T: Array, B: Array) -> Array:
    """Return ``T^-1 B`` for an upper triangular T (r, r) and B (r,) or (r, k)."""
    return np.asarray(scipy.linalg.solve_triangular(T, B))


def times_upper(A: Array, T: Array, overwrite: bool = False) -> Array:
    """Return ``A T`` for an upper triangular T (r, r) in half the time of a product; A (n, r) may be overwritten."""
    if not A.size:
        return A
    return np.asarray(scipy.linalg.blas.dtrmm(1.0, T.T, A.T, lower=True, overwrite_b=overwrite).T)
