"""How far each row moves the kernel matrix: kernel stability (KS14, Section 4.1), row by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from kernsel.data import encode
from kernsel.errors import DataError, OptionError
from kernsel.kernels import Kernel
from kernsel.numerics.points import Points
from kernsel.numerics.stability import NORMS, perturbations
from kernsel.parts import read_kernel, rows_for
from kernsel.text import listing
from kernsel.types import Array, Indices

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Stability:
    """The stability of a kernel on some rows, from :func:`kernsel.stability`.

    Parameters
    ----------
    kernel : Kernel
    norm : str
        Which norm of ``K - K^i`` is meant.
    perturbations : (n,) array
        That norm for every row.
    spectral : float
        The largest 2-norm, whatever ``norm`` is: the beta of :func:`kernsel.bounds`.
    kappa : float
        Largest k(x, x) of the rows.
    """

    kernel: Kernel
    norm: str
    perturbations: Array
    spectral: float
    kappa: float

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.perturbations)

    @property
    def beta(self) -> float:
        """The largest of the perturbations."""
        return float(self.perturbations.max())

    def influential(self, count: int = 10) -> Indices:
        """Return the numbers, from 0, of the rows that move the matrix most, largest first; equal ones in their order.

        Parameters
        ----------
        count : int
            How many.
        """
        return np.argsort(-self.perturbations, kind="stable")[:count]

    def __repr__(self) -> str:
        return f"<Stability of {self.kernel}: beta = {self.beta:.4g} ({self.norm} norm), n = {self.n}>"


def stability(
    X: pd.DataFrame | ArrayLike | Points,
    kernel: str | Kernel,
    *,
    norm: str = "spectral",
    standardize: bool = True,
) -> Stability:
    """Measure by how much each row moves the kernel matrix, ``|K - K^i|``, and the largest of these, beta.

    ``K^i`` is K with row and column i zeroed. With ``r_i^2 = sum_{j != i} K_ij^2`` the difference has the eigenvalues
    ``(K_ii +- sqrt(K_ii^2 + 4 r_i^2)) / 2`` and zeros (KS14, Theorem 4), of which all norms are made. For a kernel of
    distances the rows in the densest part of the data move it most, and outliers least; for one of inner products, the
    longest rows do. Takes O(n^2) time, and O(n) memory or that of a block of rows of K.

    Parameters
    ----------
    X : (n, d) array, sparse matrix or DataFrame
        Features; text columns of a DataFrame are encoded one-hot.
    kernel : str or Kernel
        Such as ``"gaussian(tau=2)"``: all parameters have values.
    norm : {"spectral", "trace", "frobenius"}
        The spectral one, the 2-norm, is that of the papers and of the bounds.
    standardize : bool
        Centre and scale the numeric features (sparse ones are scaled only), as :func:`kernsel.select` does.

    Returns
    -------
    Stability
        Of every row, in the order of X.

    Raises
    ------
    DataError, OptionError
        Each says what is wrong and what to do.
    """
    if norm not in NORMS:
        raise OptionError(f"norm {norm!r} is unknown: use {listing(NORMS, 'or')}")
    part = read_kernel(kernel)
    part.require_fixed()
    scan = part.scan(rows_for([part], encode(X, standardize)))
    moved, spectral = perturbations(scan, norm), float(perturbations(scan).max())
    if not np.isfinite(spectral):
        raise DataError(
            f"kernel '{part}' has values beyond {np.finfo(np.float64).max:.0e} on these rows; scale the columns, or "
            "choose other parameters"
        )
    return Stability(part, norm, moved, spectral, float(scan.diag.max()))
