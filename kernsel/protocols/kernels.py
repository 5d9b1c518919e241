"""What only some kernels can do: types, and the questions whether a kernel is of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar, runtime_checkable

from kernsel.protocols import Kernel, Tables

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray
    from typing_extensions import TypeIs  # which type checkers know by themselves

    Array = NDArray[float64]

Alone = TypeVar("Alone", covariant=True)
"""A kernel, of rows that were turned."""


@runtime_checkable
class SupportsRelevances(Kernel[Tables], Protocol[Tables]):
    """A kernel whose relevances theta, one for each feature or one for all, can be learnt by gradient."""

    @property
    def theta(self) -> tuple[float, ...] | None:
        """The relevances (p,), of at least 0, or None if they have no values yet."""

    def with_theta(self, theta: Sequence[float] | Array) -> Self:
        """Return the kernel with other relevances."""

    def theta_vjp(self, X: Array, W: Array, K: Array | None = None, Z: Array | None = None) -> Array:
        """Return ``sum_ij W_ij dK_ij/dtheta``, (p,), for W (n, m) and ``K = k(X, Z)``, or k(X, X) without Z.

        K is given if it is there already.
        """

    @property
    def isotropic(self) -> Kernel[Tables]:
        """The kernel that this one is where all relevances are equal, with that one to be searched."""

    # Any: the kernel is of the class that ``isotropic`` returned, whose parameters are read.
    def from_isotropic(self, kernel: Any, d: int) -> Self:
        """Return the kernel for d features that equals an ``isotropic`` one with a value."""


@runtime_checkable
class SupportsLogSlopes(SupportsRelevances[Tables], Protocol[Tables]):
    """A kernel with parameters that its relevances are functions of, so that a gradient goes along these."""

    @property
    def differentiable(self) -> tuple[str, ...]:
        """The names of these parameters."""

    def log_slopes(self, slopes: Array) -> Mapping[str, float]:
        """Return the derivatives by the logarithms of ``differentiable``, from those by the relevances (p,)."""


@runtime_checkable
class SupportsAnisotropy(Protocol):
    """A kernel that another one equals where all of that one's relevances are equal."""

    @property
    def anisotropic(self) -> str | None:
        """The text of that kernel; None where the width has a value, so that nothing is left to learn."""


@runtime_checkable
class SupportsOperator(Protocol):
    """A kernel whose integral operator has known eigenvalues where features are independent and normal."""

    def operator_eigenvalues(self, variances: Array, count: int) -> Array:
        """Return the ``count`` largest ones, descending, for the variances (d,) of the features."""


class Formula(Protocol):
    """A function of a statistic: one of a family by its code, and three numbers."""

    @property
    def code(self) -> int:
        """The family."""

    @property
    def a(self) -> float:
        """Its first number."""

    @property
    def b(self) -> float:
        """Its second number."""

    @property
    def c(self) -> float:
        """Its third number."""


@runtime_checkable
class SupportsFormula(Protocol):
    """A kernel that is a formula of one statistic of the pair, so that it can be written down elsewhere."""

    statistic: ClassVar[str]

    def formula(self) -> Formula:
        """Return the function of the statistic, a ``kernsel.numerics.gram.Formula``."""


@runtime_checkable
class SupportsFactors(Protocol):
    """A kernel of a statistic of the columns times factors."""

    @property
    def column_factors(self) -> Array:
        """What the columns are multiplied by, (d,)."""


@runtime_checkable
class SupportsViews(Protocol):
    """A kernel that may see more of some features than their values: see ``kernsel.kernels.views``."""

    @property
    def views(self) -> Sequence[Any]:
        """Functions of a feature each; none where the kernel sees values alone."""

    @property
    def views_told(self) -> str:
        """Their kinds in words; nothing without any."""

    @property
    def plain(self) -> Self:
        """The kernel as a function of the features and, as further features, their views."""

    def with_ranks(self, X: Array) -> Self:
        """Return the kernel with ranks that say something else than the values of the rows X (n, d)."""

    def with_logs(self, X: Array, zeros: Array) -> Self:
        """Return the kernel with such logarithms; ``zeros`` (d,) is where 0 is."""

    def with_views_beside(self, X: Array) -> Array:
        """Return the rows X (n, d) with the views as further columns, (n, d + r)."""


@runtime_checkable
class SupportsTurning(Protocol[Alone]):
    """A kernel of rows that are turned first, ``x -> L'x``."""

    @property
    def array(self) -> Array:
        """L, (d, rank)."""

    @property
    def alone(self) -> Alone:
        """The kernel as a function of ``L'x``."""

    def turned(self, X: Array) -> Array:
        """Return ``L'x`` of each row of X (n, d): (n, rank)."""


@runtime_checkable
class SupportsSklearn(Protocol):
    """A kernel that scikit-learn has, too."""

    metric: ClassVar[str]
    """Its name in ``sklearn.metrics.pairwise.pairwise_kernels``."""

    def sklearn_parameters(self) -> Mapping[str, float]:
        """Return its parameters there."""


# A kernel that is made of kernels and has no relevances has the attributes nevertheless, so TypeIs says a little too
# much where the answer is no. Any: the attributes don't show what the kernel is handed.
def has_relevances(kernel: object) -> TypeIs[SupportsRelevances[Any]]:
    """Tell whether a kernel has relevances; one made of kernels says as ``learnable`` whether a part has any."""
    return isinstance(kernel, SupportsRelevances) and getattr(kernel, "learnable", True)


def lacks_theta(kernel: object) -> TypeIs[SupportsRelevances[Any]]:
    """Tell whether a kernel has relevances that have no values yet, and are to be learnt."""
    return has_relevances(kernel) and kernel.theta is None


def is_differentiable(kernel: object) -> TypeIs[SupportsLogSlopes[Any]]:
    """Tell whether a gradient goes along all free parameters of a kernel."""
    if not has_relevances(kernel) or not isinstance(kernel, SupportsLogSlopes):
        return False
    return set(kernel.free) <= set(kernel.differentiable)


@runtime_checkable
class SupportsThetaBlocks(Protocol):
    """A kernel whose relevances are of several kinds."""

    @property
    def theta_blocks(self) -> Sequence[int]:
        """How many relevances, one after another, are of one kind."""


def blocks_of(kernel: SupportsRelevances[Tables]) -> list[int]:
    """Return how many relevances, one after another, are of one kind: all of them, or those of a part of the kernel."""
    return list(kernel.theta_blocks if isinstance(kernel, SupportsThetaBlocks) else [len(kernel.theta or ())])
