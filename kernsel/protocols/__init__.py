"""What the parts of a selection are to each other: types only.

A part is a frozen dataclass. ``Kernel``, ``Learner``, ``Criterion``, ``Search``, ``Format`` and ``Experiment`` are what
the registry asks of every part. What only some parts can do is a capability: a protocol of its own, which a part has by
having its attributes; those of kernels are in ``kernsel.protocols.kernels``. So a plugin's part is asked what it can
do, never what it is called, and protocols grow by capabilities, never by another attribute that every part must have.
:func:`require` refuses a part that lacks one.

What parts are handed, and what they return, is defined above this module, in the rooms that hand it over. Here these
types are variables; there they have their values, and so have the protocols: ``kernsel.kernels.Kernel`` is handed
``Statistics``, ``kernsel.criteria.Criterion`` a ``Path``, ``kernsel.search.walk.Search`` a ``Board``,
``kernsel.data.reading.Format`` a ``Source`` and ``kernsel.comparison.api.PaperExperiment`` an ``Outcome``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeAlias, TypeGuard, TypeVar, cast, runtime_checkable

from kernsel.errors import IncompatibleError

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    Array = NDArray[float64]

C = TypeVar("C")

Tables = TypeVar("Tables", contravariant=True)
"""What kernels know of pairs of rows."""
PathOf = TypeVar("PathOf", contravariant=True)
"""Fits along a path of lambda, with all that criteria ask of them."""
Scored = TypeVar("Scored", covariant=True)
"""What a criterion says of them."""
ProblemOf = TypeVar("ProblemOf", contravariant=True)
"""A kernel on rows."""
SlopesOf = TypeVar("SlopesOf", covariant=True)
"""A score of one fit with its derivatives."""
BoardOf = TypeVar("BoardOf", contravariant=True)
"""Where candidates are scored and kept."""
GridOf = TypeVar("GridOf")
"""The values of a kernel's parameters, the learner's and lambda."""
RuleOf = TypeVar("RuleOf", contravariant=True)
"""How the choice is made."""
WalkOf = TypeVar("WalkOf", covariant=True)
"""A search under way."""
SourceOf = TypeVar("SourceOf", contravariant=True)
"""A file."""
ReadingOf = TypeVar("ReadingOf", contravariant=True)
"""How a file is to be read."""
TableOf = TypeVar("TableOf", covariant=True)
"""What is read from it."""
OutcomeOf = TypeVar("OutcomeOf", contravariant=True)
"""What a comparison finds."""
PublishedOf = TypeVar("PublishedOf", covariant=True)
"""A figure that a paper prints, and what is found."""

Value: TypeAlias = float | int | str | tuple[float, ...]
"""What a parameter of a kernel may be: a number, a word, or several numbers."""


def require(part: object, capability: type[C] | Callable[[C], bool], error: str) -> C:
    """Return a part that must have a capability.

    Parameters
    ----------
    part : object
    capability : type or callable
        A protocol of this module, or a function that tells whether a part has it.
    error : str
        Who needs it, which part lacks it, and what to do instead.

    Raises
    ------
    IncompatibleError
        The part lacks it.
    """
    able = cast(C, part)
    if not (isinstance(part, capability) if isinstance(capability, type) else capability(able)):
        raise IncompatibleError(error)
    return able


class Part(Protocol):
    """What every part is: a frozen dataclass."""

    # Any: a field may have a default of any type.
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


class Kernel(Part, Protocol[Tables]):
    """A positive semi-definite function k(x, z) with parameters; a parameter that is ``None`` is free.

    A class has all of this by deriving from ``kernsel.kernels.Kernel``.
    """

    name: ClassVar[str]
    sparse: ClassVar[bool]

    @property
    def width(self) -> str | None:
        """The name of the parameter that is a width, if one is."""

    @property
    def parameters(self) -> Mapping[str, Value]:
        """The parameters that have a value."""

    @property
    def free(self) -> tuple[str, ...]:
        """The names of the parameters that are to be searched."""

    def with_parameters(self, **values: Value | None) -> Self:
        """Return the kernel with these values of its parameters; None frees one."""

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return K (n, m) with K[i, j] = k(x_i, z_j); without Z, of X with itself."""

    def evaluate(self, stats: Tables) -> Array:
        """Return K (n, m) in a new array from what is known of pairs of rows, ``kernsel.kernels.Statistics``."""

    def diag(self, X: Array) -> Array:
        """Return k(x_i, x_i) (n,)."""

    def axes(self, X: Array) -> Mapping[str, Array]:
        """Return a grid for each free parameter, ascending, scaled by the data."""

    def spec(self) -> Mapping[str, object]:
        """Return a description that JSON can hold and from which the kernel can be built again."""

    @classmethod
    def build(cls, **values: Value | None) -> Self:
        """Return a kernel from values of its parameters, by their names here or in scikit-learn."""

    @property
    def unlearnt(self) -> tuple[str, ...]:
        """The names of the parameters that are to be learnt."""

    @property
    def definite(self) -> bool:
        """Whether it is known to be positive semidefinite."""

    @property
    def known_rows_only(self) -> bool:
        """Whether values are known only where one of two rows is one that was given."""

    def conversions(self) -> dict[str, float]:
        """Return the parameters in the terms of other libraries."""


class Loss(Protocol):
    """A smooth convex loss V(y, f): see ``kernsel.learners.Loss``, which most are."""

    @property
    def name(self) -> str:
        """The field's name for it."""

    @property
    def parameters(self) -> tuple[float, ...]:
        """What ``pointer`` is handed as an array."""

    # Any: ``jit.pointer`` makes a class of numerics; a variable for it would stand at every mention of a learner.
    @property
    def pointer(self) -> Any:
        """``(y, f, parameters) -> (V, dV/df, d2V/df2)``, compiled, for loops to call."""

    @property
    def square(self) -> bool:
        """Whether it is ``(y - f)^2``."""

    @property
    def piecewise_quadratic(self) -> bool:
        """Whether its third derivative is 0 wherever it exists."""

    @property
    def hinge(self) -> int:
        """The power p of the hinge ``(1 - y f)_+^p`` that it is, or is but for a smooth kink; 0 if it is none."""

    @property
    def scored_by(self) -> str:
        """The name of what ``values`` and ``value`` give."""

    def expand(self, Y: Array, s: Array, f: Array) -> tuple[Array, Array, Array]:
        """Return the loss and ``s`` times its derivatives at outputs ``f (k, L, n)`` for targets ``Y (k, n)``."""

    def values(self, Y: Array, f: Array) -> Array:
        """Return what outputs ``f (k, L, n)`` for targets ``Y (k, n)`` are scored by, element by element."""

    def value(self, Y: Array, f: Array) -> Array:
        """Return what outputs ``f (k, n)`` for targets ``Y (k, n)`` are scored by, element by element."""


class Learner(Part, Protocol):
    """A loss V(y, f) to be minimised with a ridge: min over f of (1/n) sum_i V(y_i, f(x_i) + b) + lambda ||f||^2."""

    name: ClassVar[str]
    tasks: ClassVar[tuple[str, ...]]

    @property
    def bias(self) -> bool:
        """Whether there is a bias b, which is not penalised."""

    @property
    def loss(self) -> Loss:
        """The loss V."""


@runtime_checkable
class SupportsConversions(Protocol):
    """A learner that says its parameters in the terms of other libraries."""

    def conversions(self, n: float, lam: float) -> Mapping[str, float]:
        """Return them for ``n`` rows (or their summed weights)."""


@runtime_checkable
class Tunable(Protocol):
    """A learner whose loss has parameters that a search may vary: those that are None are free."""

    searchable: ClassVar[tuple[str, ...]]
    comparable: bool

    @property
    def parameters(self) -> Mapping[str, float]:
        """The searchable parameters that have a value."""

    @property
    def free(self) -> tuple[str, ...]:
        """The names of the parameters that have no value yet."""

    def axes(self, Y: Array) -> Mapping[str, Array]:
        """Return values to search for each free parameter, ascending, in the scale of the targets Y (k, n)."""

    def with_parameters(self, **values: float | None) -> Self:
        """Return a learner with some of the searchable parameters replaced."""

    def freed(self, names: Mapping[str, object]) -> Self:
        """Return the learner with those of ``names`` free that are parameters of it."""


class Criterion(Part, Protocol[PathOf, Scored]):
    """A score of a learner on a kernel, for a whole path of lambda at once; lower is better."""

    name: ClassVar[str]

    def score(self, path: PathOf) -> Scored:
        """Return the scores along the path."""


class Format(Part, Protocol[SourceOf, ReadingOf, TableOf]):
    """A format of files that hold tables; which one a file has is said by ``fits``."""

    name: ClassVar[str]

    def fits(self, source: SourceOf, reading: ReadingOf) -> int:
        """Return how sure it is that a file has this format, a ``kernsel.data.sources.Fit``; the surest one reads it.

        ``source`` has its name, its suffix and its first bytes, ``reading`` what is asked for.
        """

    def read(self, source: SourceOf, reading: ReadingOf, expected: list[str] | None) -> TableOf:
        """Return the table: a DataFrame, or a SparseTable, with a list of texts as ``attrs["notes"]``.

        ``expected`` are the features that a format shall have that doesn't say how many there are.
        """


class Experiment(Part, Protocol[OutcomeOf, PublishedOf]):
    """The experiment of a paper, for ``kernsel compare --protocol``: what it compares and how, and what it prints."""

    name: ClassVar[str]
    title: ClassVar[str]
    """The first line of the tables."""
    options: ClassVar[Mapping[str, Mapping[str, Any]]]
    """Options of a selection that all methods have, by task; a task that is not there is not the paper's."""
    methods: ClassVar[Mapping[str, Mapping[str, Mapping[str, Any]]]]
    """By task and the name of the method its options, as ``methods`` of ``kernsel.compare``."""
    cases: ClassVar[Mapping[str, Mapping[str, Mapping[str, Any]]]]
    """By the name of a case and by task what all methods have in it, as in ``kernsel.comparison.design.Design``."""
    splits: ClassVar[Mapping[str, Any]]
    """Fields of ``kernsel.comparison.tables.Splits``."""
    design: ClassVar[Mapping[str, Any]]
    """Fields of ``kernsel.comparison.design.Design``: of tests, and the measure."""

    def beside(self, found: OutcomeOf) -> tuple[Sequence[PublishedOf], Sequence[str]]:
        """Return printed figures, each a ``kernsel.comparison.published.Published``, and lines of what the paper says.

        ``found`` is the ``kernsel.comparison.result.Outcome`` that they shall stand beside.
        """


@runtime_checkable
class SupportsGradient(Criterion[PathOf, Scored], Protocol[PathOf, Scored, ProblemOf, SlopesOf]):
    """A criterion that has derivatives by the relevances of a kernel and by log lambda, for the square loss.

    Unless it has a ``measure`` of its own, which then takes the place of the loss: see :func:`has_gradient`.
    """

    def gradient(self, problem: ProblemOf, learner: Learner, lam: float) -> SlopesOf:
        """Return the score of one fit with its derivatives, a ``kernsel.criteria.Slopes``."""


@runtime_checkable
class SupportsMeasure(Protocol):
    """A criterion that scores held-out outputs by a measure of its own instead of the loss."""

    def measure(self, Y: Array, F: Array) -> Array:
        """Return the measure (n,) of outputs F for targets Y, both (k, n)."""


@runtime_checkable
class SupportsPrior(Protocol):
    """A criterion with a log-normal prior of the relevances that are learnt by it."""

    sigma: float | None
    """Standard deviation of their logarithms; None: no prior."""


@runtime_checkable
class Unbounded(Protocol):
    """A criterion that has no minimum over the kernel's parameters, or lambda: their axes aren't extended."""

    unbounded_in: ClassVar[tuple[str, ...]]
    """Of "kernel" and "lambda"."""
    unbounded: ClassVar[str]
    """Why, in words."""


# Any: the attributes don't show what the criterion is handed.
def has_gradient(criterion: object) -> TypeGuard[SupportsGradient[Any, Any, Any, Any]]:
    """Tell whether a criterion has a gradient of its score: not where a measure of its own replaces the loss."""
    return isinstance(criterion, SupportsGradient) and not isinstance(criterion, SupportsMeasure)


def refits_exactly(criterion: object) -> bool:
    """Tell whether a criterion is the mean square loss of exact refits: not where a measure of its own replaces it.

    A class says so for itself alone, by ``exact_refits``: what derives from it may score otherwise.
    """
    return bool(vars(type(criterion)).get("exact_refits")) and not isinstance(criterion, SupportsMeasure)


class Search(Part, Protocol[BoardOf, GridOf, RuleOf, WalkOf]):
    """A way through the candidates of a selection.

    One that leaves candidates behind at lower ranks than that in force has ``ranks(n, rank)``, which returns them.
    """

    name: ClassVar[str]

    def begin(self, board: BoardOf, grids: list[GridOf], extend: bool, rule: RuleOf) -> WalkOf:
        """Return the search under way, a ``kernsel.search.walk.Walk``, before its first step.

        ``board`` scores candidates, ``grids`` hold the values of each kernel's parameters and lambda, ``extend`` says
        whether candidates beyond them may be scored, and ``rule`` is how the choice will be made.
        """
