"""What the parts of a selection are to each other: types only.

A part is a frozen dataclass. ``Kernel``, ``Learner`` and ``Criterion`` are what the registry asks of every part.
Anything more is a capability, such as a criterion's ``measure``: having the attribute is the declaration.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, runtime_checkable

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    Array = NDArray[float64]


class Statistics(Protocol):
    """What pairs of rows are reduced to, computed once for all kernels and all their parameters; each is (n, m)."""

    @property
    def sqdist(self) -> Array:
        """Squared Euclidean distances."""

    @property
    def inner(self) -> Array:
        """Inner products."""

    @property
    def l1(self) -> Array:
        """Sums of absolute differences."""

    def on(self, features: tuple[int, ...]) -> Statistics:
        """Return the statistics of the same points by some of their columns."""


class Kernel(Protocol):
    """A positive semi-definite function k(x, z) with parameters; a parameter that is ``None`` is free."""

    name: ClassVar[str]
    width: ClassVar[str | None]
    sparse: ClassVar[bool]

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The parameters that have a value: numbers, or a tuple of them."""

    @property
    def free(self) -> tuple[str, ...]:
        """The names of the parameters that are to be searched."""

    def with_parameters(self, **values: Any) -> Self:
        """Return the same kernel with these values."""

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return K (n, m) with K[i, j] = k(x_i, z_j); without Z, of X with itself."""

    def evaluate(self, stats: Statistics) -> Array:
        """Return K (n, m) from shared statistics, in a new array."""

    def diag(self, X: Array) -> Array:
        """Return k(x_i, x_i) (n,)."""

    def axes(self, X: Array) -> Mapping[str, Array]:
        """Return a grid for each free parameter, ascending, scaled by the data."""

    def spec(self) -> dict[str, Any]:
        """Return a description that JSON can hold and from which the kernel can be built again."""


@runtime_checkable
class Relevances(Kernel, Protocol):
    """A kernel whose relevances theta, one for each feature or one for all, can be learnt by gradient."""

    @property
    def theta(self) -> tuple[float, ...] | None:
        """The relevances (p,), of at least 0, or None if they have no values yet."""

    def with_theta(self, theta: Any) -> Self:
        """Return the same kernel with other relevances."""

    def theta_vjp(self, X: Array, W: Array, K: Array | None = None, Z: Array | None = None) -> Array:
        """Return ``sum_ij W_ij dK_ij/dtheta``, (p,), for W (n, m) and ``K = k(X, Z)``, or k(X, X) without Z.

        K is given if it is there already.
        """

    @property
    def isotropic(self) -> Kernel:
        """The kernel that this one is where all relevances are equal, with that one to be searched."""

    def from_isotropic(self, kernel: Any, d: int) -> Self:
        """Return the kernel for d features that equals an ``isotropic`` one with a value."""


def has_relevances(kernel: Any) -> bool:
    """Tell whether a kernel has relevances; one made of kernels says as ``learnable`` whether a part has any."""
    return isinstance(kernel, Relevances) and getattr(kernel, "learnable", True)


def blocks_of(kernel: Any) -> list[int]:
    """Return how many relevances, one after another, are of one kind: all of them, or those of a part of the kernel."""
    return list(kernel.theta_blocks if hasattr(kernel, "theta_blocks") else [len(kernel.theta)])


class Learner(Protocol):
    """A loss V(y, f) to be minimised with a ridge: min over f of (1/n) sum_i V(y_i, f(x_i) + b) + lambda ||f||^2."""

    name: ClassVar[str]
    tasks: ClassVar[tuple[str, ...]]
    bias: bool
    loss: Any


class Criterion(Protocol):
    """A score of a learner on a kernel, for a whole path of lambda at once; lower is better.

    One that has no minimum over the kernel's parameters, or lambda, has ``unbounded_in``, a tuple of "kernel" and
    "lambda", and says why as ``unbounded``: their axes aren't extended.
    """

    name: ClassVar[str]

    def score(self, path: Any) -> Any:
        """Return the scores along the path."""


class Search(Protocol):
    """A way through the candidates of a selection.

    One that leaves candidates behind at lower ranks than that in force has ``ranks(n, rank)``, which returns them.
    """

    name: ClassVar[str]

    def begin(self, board: Any, grids: Any, extend: bool, rule: Any) -> Any:
        """Return the search under way, a ``kernsel.search.walk.Walk``, before its first step.

        ``board`` scores candidates, ``grids`` hold the values of each kernel's parameters and lambda, ``extend`` says
        whether candidates beyond them may be scored, and ``rule`` is how the choice will be made.
        """
