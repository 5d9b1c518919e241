"""Criteria from the spectrum of the Gram matrix: the training loss and a penalty that knows no target.

With sample weights s the matrix is ``S^1/2 K S^1/2`` and n their sum, as if a row of weight 2 were there twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kernsel.criteria.base import About, PenalisedFit, Penalty, Scores
from kernsel.errors import OptionError
from kernsel.numerics.points import deviations
from kernsel.paths import Path
from kernsel.protocols import require
from kernsel.protocols.kernels import SupportsOperator
from kernsel.types import Array

BLOCK_ROWS = 1000
"""Rows whose part of a sum over all eigenvectors is made at once."""


@dataclass(frozen=True)
class SPS(Penalty, PenalisedFit):
    """Spectral perturbation stability: ``R_emp + (eta / n^2) sum_ij |sigma_j(K) - sigma_j(K^i)|`` (KSJ, Section VII).

    ``K^i`` is K without its row and column i. Its eigenvalues interlace with those of K, so that the absolute values
    can be left out, and the sum is that of all ``tr(K) - tr(K^i) = K_ii``: the score is ``R_emp + eta tr(K) / n^2``.

    Parameters
    ----------
    eta : float or None
        Weight of the penalty. None: chosen by cross-validation.

    Examples
    --------
    ::

        kernsel example wine wine.csv
        kernsel select wine.csv --kernel gaussian --folds 5 --criterion sps
    """

    name: ClassVar[str] = "sps"
    about: ClassVar[About] = About(
        reference="Liu and Liao 2014, as in KSJ Section VII; all perturbed spectra add up to tr(K)",
        cost="one path of fits, and O(n)",
        against="its penalty is constant for all kernels with K(x, x) = 1: there it is the training loss",
    )

    def cost(self, path: Path) -> float:
        """Return ``tr(K) / n^2``; the trace is that of K, also where the fits are of lower rank."""
        return float(trace(path) / path.rows.total**2)


@dataclass(frozen=True)
class SPSSurrogate(SPS):
    """Stability of first-order eigenvalues: ``R_emp + (eta / n^2) sum_ij |(2 sigma_j - K_ii) u_ij^2|``.

    ``u_j' (K - K^i) u_j = (2 sigma_j - K_ii) u_ij^2`` for the eigenvectors u_j. Unlike the exact changes these have
    either sign, and their absolute values know the eigenvectors.

    Examples
    --------
    ::

        kernsel example wine wine.csv
        kernsel select wine.csv --kernel gaussian --folds 5 --criterion sps-surrogate
    """

    name: ClassVar[str] = "sps-surrogate"
    about: ClassVar[About] = About(
        reference="this library's own: sps by first-order changes of the eigenvalues",
        cost="one path of fits, one eigendecomposition, and O(n^2)",
        against="first order is for small changes, and K - K^i is none: it is another number than what it stands for",
    )

    def score(self, path: Path) -> Scores:
        """Score a path; IncompatibleError where there are no eigenvectors, before anything is computed."""
        _ = self._eigenvectors(path)
        return super().score(path)

    def _eigenvectors(self, path: Path) -> tuple[Array, Array]:
        return path.representation.eigenvectors(f"criterion '{self.name}'")

    def cost(self, path: Path) -> float:
        """Return ``(1 / n^2) sum_ij |(2 sigma_j - K_ii) u_ij^2|``, with sigma = 0 in the null space of K."""
        rows, (U, sigma) = path.rows, self._eigenvectors(path)
        diag, total = path.problem.kernel.diag(rows.X), 0.0
        for start in range(0, rows.n, BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            squares, k = U[block] ** 2, diag[block]
            total += float((np.abs(2.0 * sigma - k[:, None]) * squares).sum())
            total += float(np.abs(k) @ np.maximum(rows.s[block] - squares.sum(axis=1), 0.0))
        return float(total / rows.total**2)


@dataclass(frozen=True)
class ER(Penalty, PenalisedFit):
    """Eigenvalues ratio, a stand-in: ``R_emp + eta / (1 + ER_q)``, ``ER_q = sum_{j<=q} sigma_j / sum_{j>q} sigma_j``.

    So the penalty is eta times the share of the trace of K that its q largest eigenvalues leave. The tail is at least
    ``n eps sigma_1``, below which it is rounding.

    Parameters
    ----------
    eta : float or None
        Weight of the penalty. None: chosen by cross-validation.
    q : int
        How many eigenvalues are the main ones.

    Examples
    --------
    ::

        kernsel example wine wine.csv
        kernsel select wine.csv --kernel gaussian --folds 5 --criterion "er(q=5)"
    """

    name: ClassVar[str] = "er"
    about: ClassVar[About] = About(
        reference="a stand-in for the eigenvalues ratio of Liu and Liao (AAAI 2015), whose own criterion it is not",
        cost="one path of fits, and one eigendecomposition",
        against="the widest kernel has the least penalty, whatever the target; eta and q have no natural values",
    )
    q: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.q < 1:
            raise OptionError(f"criterion '{self.name}': q must be a whole number from 1, not {self.q!r}")

    def cost(self, path: Path) -> float:
        """Return ``tail / (main + tail)``; with the trace of K itself, also where the fits are of lower rank."""
        sigma = path.representation.eigenvalues()
        main = sigma[-self.q :].sum()
        tail = max(trace(path) - main, path.rows.n * np.finfo(np.float64).eps * sigma[-1:].max(initial=0.0))
        return float(tail / (main + tail)) if tail > 0 else 0.0


@dataclass(frozen=True)
class EP(Penalty, PenalisedFit):
    """Eigenvalues perturbation, a stand-in: ``R_emp + eta sum_{j<=n} |lambda_j(K / n) - lambda_j(L_K)|``.

    ``L_K`` is the integral operator of the Gaussian kernel where the attributes are independent and normal, of the
    variances that they have in the data; see ``kernsel.numerics.operator``.

    Parameters
    ----------
    eta : float or None
        Weight of the penalty. None: chosen by cross-validation.

    Examples
    --------
    ::

        kernsel example wine wine.csv
        kernsel select wine.csv --kernel gaussian --folds 5 --criterion ep
    """

    name: ClassVar[str] = "ep"
    about: ClassVar[About] = About(
        reference="a stand-in for the eigenvalues perturbation of Liu, Jiang and Liao (CIKM 2013), as if data were "
        "normal; their own estimate of the operator it is not",
        cost="one path of fits, one eigendecomposition, and O(n log n)",
        needs="a gaussian kernel",
        against="it measures how normal the data are, too: dependent or discrete attributes are penalised",
        weights="as many eigenvalues of the operator are compared as there are rows",
    )

    def score(self, path: Path) -> Scores:
        """Score a path; IncompatibleError where the kernel's operator isn't known, before anything is computed."""
        kernel = path.problem.kernel
        require(
            kernel,
            SupportsOperator,
            f"criterion '{self.name}' knows the integral operator of the gaussian kernel alone, not that of "
            f"'{kernel.name}': use a gaussian kernel, or the criterion newton-cv",
        )
        return super().score(path)

    def cost(self, path: Path) -> float:
        """Return ``sum_j |lambda_j(K / n) - lambda_j(L_K)|``."""
        rows = path.rows
        operator = path.problem.kernel.operator_eigenvalues(deviations(rows.X, rows.s) ** 2, rows.n)
        sigma = path.representation.eigenvalues()[::-1]
        operator[: sigma.size] -= sigma / rows.total
        return float(np.abs(operator).sum())


def trace(path: Path) -> float:
    """Return the trace of the Gram matrix, weighted; it is known exactly, whatever the rank."""
    return float(path.rows.s @ path.problem.kernel.diag(path.rows.X))
