"""Kernel stability as a penalty: on the training loss (RKS), or on the loss of cross-validation (CVKS)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal

from kernsel import registry
from kernsel.criteria.base import About, HeldOutCriterion, PenalisedFit, Penalty, Scores, unless_finite
from kernsel.errors import OptionError
from kernsel.numerics.stability import NORMS, beta
from kernsel.paths import HeldOut, Path
from kernsel.text import listing
from kernsel.types import Array


@dataclass(frozen=True)
class _Stability(Penalty):
    """The penalty ``eta/n max_i |K - K^i|``, the same for every lambda and learner of a kernel.

    K^i is the Gram matrix K with row and column i zeroed; n is the sum of the weights, where rows have some.
    """

    norm: Literal["spectral", "trace", "frobenius"] = "spectral"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.norm not in NORMS:
            raise OptionError(f"criterion '{self.name}': norm must be {listing(NORMS, 'or')}, not {self.norm!r}")

    def cost(self, path: Path) -> float:
        """Return ``max_i |K - K^i| / n``."""
        return beta(path.representation.stability, self.norm)[0] / path.rows.total


@dataclass(frozen=True)
class RKS(_Stability, PenalisedFit):
    """Training loss and kernel stability: ``R_emp(f) + eta/n max_i |K - K^i|`` (KSJ, equation 5).

    Parameters
    ----------
    eta : float or None
        Weight of the penalty; KSJ finds 1/16 to 1/2 good. None: chosen by cross-validation.
    norm : {"spectral", "trace", "frobenius"}
        Norm of ``K - K^i``; the papers use the spectral one.

    Examples
    --------
    ::

        kernsel example wine wine.csv
        kernsel select wine.csv --kernel gaussian --folds 5 --criterion "rks(eta=0.25)" --grid lambda=0.01
    """

    name: ClassVar[str] = "rks"
    unbounded_in: ClassVar[tuple[str, ...]] = ("kernel", "lambda")
    unbounded: ClassVar[str] = "rks goes on falling as kernels narrow and lambda falls"
    about: ClassVar[About] = About(
        reference="Liu, Liao, Zhang, Ren & Wang, Kernel stability for model selection in kernel-based algorithms, "
        "equation 5",
        cost="the fits, and O(n^2) for the penalty, O(n c^2) in low rank",
        against="nothing in it rewards a larger lambda, and for a Gaussian kernel a smaller width lowers the training "
        "loss and the penalty alike: where lambda is searched too, it takes the most over-fitted corner of the grid",
    )


@dataclass(frozen=True)
class CVKS(_Stability, HeldOutCriterion):
    """Cross-validation and kernel stability: ``CV + eta/n max_i |K - K^i|`` (KS14, Section 5; KSJ, equation 6).

    Parameters
    ----------
    eta : float or None
        Weight of the penalty; KS14 uses 1, and KSJ finds 1/8 to 2 good. None: chosen by cross-validation.
    norm : {"spectral", "trace", "frobenius"}
        Norm of ``K - K^i``; the papers use the spectral one.
    cv : str
        The criterion of the cross-validation family that scores the first part: ``newton-cv``, ``cv``, ``bif``,
        ``fbif``, or another one's name, with parameters as in ``"bif(order=3)"``.

    Examples
    --------
    ::

        kernsel example wine wine.csv
        kernsel select wine.csv --kernel gaussian --folds 5 --criterion "cvks(cv=fbif)"
    """

    name: ClassVar[str] = "cvks"
    about: ClassVar[About] = About(
        reference="Liu & Liao, Preventing over-fitting of cross-validation with kernel stability, ECML 2014, Section 5",
        cost="that of the cross-validation, and O(n^2) for the penalty, O(n c^2) in low rank",
        against="the penalty of a Gaussian kernel falls with its width: a large eta takes the narrowest one",
    )
    cv: str = "newton-cv"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.validation, HeldOutCriterion) or isinstance(self.validation, CVKS):
            raise OptionError(
                f"criterion 'cvks': cv must be a plain cross-validation such as newton-cv, cv, bif or fbif, "
                f"not {self.cv!r}"
            )

    @cached_property
    def validation(self) -> HeldOutCriterion:
        """The cross-validation."""
        validation: HeldOutCriterion = registry.build("criterion", self.cv)
        return validation

    def heldout(self, path: Path) -> HeldOut:
        """Return the held-out outputs of the cross-validation."""
        return self.validation.heldout(path)

    def reliability(self, path: Path) -> Array | None:
        """Return rho of each fit, as the cross-validation does."""
        return self.validation.reliability(path)

    def measured(self, loss: str) -> str:
        """Say what the score is, in words, for a learner with that loss."""
        return f"{self.validation.measured(loss)}, and eta/n times the kernel stability"

    def values(self, path: Path, F: Array) -> Array:
        """Return the measure (n,) of held-out outputs F (k, n), without the penalty."""
        return self.validation.values(path, F)

    def score(self, path: Path) -> Scores:
        """Score a path as the cross-validation does, and add the penalty."""
        fit, penalty = self.validation.score(path), self.penalty(path)
        score = fit.score + penalty
        return replace(
            fit, score=score, failed=unless_finite(score, fit.failed), terms={"fit": fit.score, "penalty": penalty}
        )
