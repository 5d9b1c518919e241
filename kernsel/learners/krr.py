"""Kernel ridge regression, and the same with a bias: the least-squares support vector machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from kernsel.learners import losses
from kernsel.learners.base import Learner


@dataclass(frozen=True)
class Krr(Learner):
    """Square loss ``V(y, f) = (y - f)^2`` without a bias; on classes it fits their codes -1 and +1.

    scikit-learn's ``KernelRidge`` has ``alpha = n lambda``.

    Notes
    -----
    Cost: One eigendecomposition, O(n^3), serves every lambda, and held-out outputs of all folds have a closed form; O(n
    c^2) at rank c.

    Against: A single outlier in the target moves the fit, for residuals are squared. Of classes it counts outputs
    beyond the margin as errors. There is no bias: targets are centred in its place.

    Examples
    --------
    ::

        kernsel example diabetes diabetes.csv
        kernsel select diabetes.csv --learner krr --kernel gaussian --folds 5
    """

    name: ClassVar[str] = "krr"
    tasks: ClassVar[tuple[str, ...]] = ("regression", "classification")
    elsewhere: ClassVar[Mapping[str, str]] = {
        **Learner.elsewhere,
        "bias": "lssvm is krr with a bias",
        "epsilon": "the square loss has no tube; svr and qsvr have one",
    }
    _in_sklearn: ClassVar[str] = "KernelRidge"
    _unlike: ClassVar[tuple[str, str]] = ("", " has no bias")

    @property
    def loss(self) -> losses.Loss:
        """The square loss."""
        return losses.SQUARE

    def conversions(self, n: float, lam: float) -> dict[str, float]:
        """Return the ``alpha`` of scikit-learn's ``KernelRidge``."""
        return {"alpha": n * lam}


@dataclass(frozen=True)
class Lssvm(Krr):
    """Least-squares support vector machine: square loss ``V(y, f) = (y - f)^2`` with a bias (BIF14).

    Its coefficients solve the bordered system ``[[K + n lambda I, 1], [1', 0]]``; ``n lambda`` is the inverse of the
    ``gamma`` of Suykens & Vandewalle 1999.

    Notes
    -----
    Cost: One eigendecomposition, O(n^3), serves every lambda, and held-out outputs of all folds have a closed form; O(n
    c^2) at rank c.

    Against: A single outlier in the target moves the fit, for residuals are squared. Of classes it counts outputs
    beyond the margin as errors, and every row has a coefficient.

    Examples
    --------
    ::

        kernsel example wine wine.csv
        kernsel select wine.csv --learner lssvm --kernel gaussian --folds 5
    """

    name: ClassVar[str] = "lssvm"
    elsewhere: ClassVar[Mapping[str, str]] = {**Krr.elsewhere, "bias": "it always has one; krr is the same without"}

    @property
    def bias(self) -> bool:
        """There is a bias."""
        return True
