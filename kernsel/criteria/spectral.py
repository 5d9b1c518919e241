"""Criteria from the spectrum of the Gram matrix: the training loss and a penalty that knows no target.

With sample weights s the matrix is ``S^1/2 K S^1/2`` and n their sum, as if a row of weight 2 were there twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kernsel.criteria.base import About, Array, PenalisedFit, Scores
from kernsel.errors import IncompatibleError, OptionError
from kernsel.numerics.operator import gaussian_operator
from kernsel.numerics.spectral import above_rounding
from kernsel.paths import Path, StreamedPath

BLOCK_ROWS = 1000
"""Rows whose part of a sum over all eigenvectors is made at once."""


@dataclass(frozen=True)
class SPS(PenalisedFit):
    """Spectral perturbation stability: ``R_emp + (delta / n^2) sum_ij |sigma_j(K) - sigma_j(K^i)|`` (KSJ, Section VII).

    ``K^i`` is K without its row and column i. Its eigenvalues interlace with those of K, so that the absolute values
    can be left out, and the sum is that of all ``tr(K) - tr(K^i) = K_ii``: the score is ``R_emp + delta tr(K) / n^2``.

    Parameters
    ----------
    delta : float
        Weight of the penalty.
    """

    name: ClassVar[str] = "sps"
    about: ClassVar[About] = About(
        reference="Liu and Liao 2014, as in KSJ Section VII; all perturbed spectra add up to tr(K)",
        cost="one path of fits, and O(n)",
        against="its penalty is constant for all kernels with K(x, x) = 1: there it is the training loss",
    )
    delta: float = 1.0

    def __post_init__(self) -> None:
        check_weight(self.name, "delta", self.delta)

    def penalty(self, path: Path) -> Array:
        """Return ``delta tr(K) / n^2``; the trace is that of K, also where the fits are of lower rank."""
        return np.asarray(self.delta * trace(path) / path.rows.total**2)


@dataclass(frozen=True)
class SPSSurrogate(SPS):
    """The same by eigenvalues' first-order changes: ``R_emp + (delta / n^2) sum_ij |(2 sigma_j - K_ii) u_ij^2|``.

    ``u_j' (K - K^i) u_j = (2 sigma_j - K_ii) u_ij^2`` for the eigenvectors u_j. Unlike the exact changes these have
    either sign, and their absolute values know the eigenvectors.
    """

    name: ClassVar[str] = "sps-surrogate"
    about: ClassVar[About] = About(
        reference="sps with first-order changes of the eigenvalues; published by nobody",
        cost="one path of fits, one eigendecomposition, and O(n^2)",
        against="where K is far from singular changes it is far from the stability that it stands for, which is sps",
    )

    def penalty(self, path: Path) -> Array:
        """Return ``(delta / n^2) sum_ij |(2 sigma_j - K_ii) u_ij^2|``, where the kernel of K counts with sigma = 0."""
        if isinstance(path, StreamedPath):
            raise IncompatibleError(
                f"criterion '{self.name}' needs the eigenvectors of all rows, and at this rank the features of so many "
                "are never held together: use a smaller rank, or the criterion sps"
            )
        rows, (U, sigma) = path.rows, path.problem.spectrum
        diag, total = path.problem.kernel.diag(rows.X), 0.0
        for start in range(0, rows.n, BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            squares, k = U[block] ** 2, diag[block]
            total += float((np.abs(2.0 * sigma - k[:, None]) * squares).sum())
            total += float(np.abs(k) @ np.maximum(rows.s[block] - squares.sum(axis=1), 0.0))
        return np.asarray(self.delta * total / rows.total**2)


@dataclass(frozen=True)
class ER(PenalisedFit):
    """Eigenvalues ratio, a stand-in: ``R_emp + eta / (1 + ER_q)``, ``ER_q = sum_{j<=q} sigma_j / sum_{j>q} sigma_j``.

    So the penalty is eta times the share of the trace of K that its q largest eigenvalues leave. The tail is at least
    ``n eps sigma_1``, below which it is rounding.

    Parameters
    ----------
    eta : float
        Weight of the penalty.
    q : int
        How many eigenvalues are the main ones.
    """

    name: ClassVar[str] = "er"
    about: ClassVar[About] = About(
        reference="a stand-in for the eigenvalues ratio of Liu and Liao (AAAI 2015), whose own criterion it is not",
        cost="one path of fits, and one eigendecomposition",
        against="the widest kernel has the least penalty, whatever the target; eta and q have no natural values",
    )
    eta: float = 1.0
    q: int = 10

    def __post_init__(self) -> None:
        check_weight(self.name, "eta", self.eta)
        if self.q < 1:
            raise OptionError(f"criterion '{self.name}': q must be a whole number from 1, not {self.q!r}")

    def penalty(self, path: Path) -> Array:
        """Return ``eta tail / (main + tail)``; with the trace of K itself, also where the fits are of lower rank."""
        sigma = eigenvalues(path)
        main = sigma[-self.q :].sum()
        tail = max(trace(path) - main, path.rows.n * np.finfo(np.float64).eps * sigma[-1:].max(initial=0.0))
        return np.asarray(self.eta * tail / (main + tail) if tail > 0 else 0.0)


@dataclass(frozen=True)
class EP(PenalisedFit):
    """Eigenvalues perturbation, a stand-in: ``R_emp + delta sum_{j<=n} |lambda_j(K / n) - lambda_j(L_K)|``.

    ``L_K`` is the integral operator of the Gaussian kernel where the attributes are independent and normal, of the
    variances that they have in the data; see ``kernsel.numerics.operator``.

    Parameters
    ----------
    delta : float
        Weight of the penalty.
    """

    name: ClassVar[str] = "ep"
    about: ClassVar[About] = About(
        reference="a stand-in for the eigenvalues perturbation of Liu, Jiang and Liao (CIKM 2013), as if data were "
        "normal; their own estimate of the operator it is not",
        cost="one path of fits, one eigendecomposition, and O(n log n)",
        needs="a gaussian kernel",
        against="it measures how normal the data are, too: dependent or discrete attributes are penalised",
    )
    delta: float = 1.0

    def __post_init__(self) -> None:
        check_weight(self.name, "delta", self.delta)

    def score(self, path: Path) -> Scores:
        """Score a path; IncompatibleError without a Gaussian kernel, before anything is computed."""
        kernel = path.problem.kernel
        if kernel.name != "gaussian":
            raise IncompatibleError(
                f"criterion '{self.name}' knows the integral operator of the gaussian kernel alone, not that of "
                f"'{kernel.name}': use a gaussian kernel, or the criterion newton-cv"
            )
        return super().score(path)

    def penalty(self, path: Path) -> Array:
        """Return ``delta sum_j |lambda_j(K / n) - lambda_j(L_K)|``."""
        rows = path.rows
        centred = rows.X - rows.s @ rows.X / rows.total
        operator = gaussian_operator(rows.s @ centred**2 / rows.total, path.problem.kernel.parameters["tau"], rows.n)
        sigma = eigenvalues(path)[::-1]
        operator[: sigma.size] -= sigma / rows.total
        return np.asarray(self.delta * np.abs(operator).sum())


def trace(path: Path) -> float:
    """Return the trace of the Gram matrix, weighted; it is known exactly, whatever the rank."""
    return float(path.rows.s @ path.problem.kernel.diag(path.rows.X))


def eigenvalues(path: Path) -> Array:
    """Return the eigenvalues of the representation, weighted, ascending, without those that are rounding."""
    if not isinstance(path, StreamedPath):
        return np.asarray(path.problem.spectrum[1])
    sigma = np.linalg.eigvalsh(path.problem.stream.products.sum(axis=0))
    return np.asarray(sigma[above_rounding(sigma, path.rows.n)])


def check_weight(criterion: str, parameter: str, value: float) -> None:
    """Raise an OptionError unless the weight of a penalty is finite and not negative."""
    if not (np.isfinite(value) and value >= 0):
        raise OptionError(f"criterion '{criterion}': {parameter} must be a finite number from 0, not {value!r}")
