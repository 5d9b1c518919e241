"""What a path is: fits of one learner on one problem for descending lambda, and held-out outputs from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Self

import numpy as np

from kernsel.errors import IncompatibleError
from kernsel.folds.partition import Partition
from kernsel.numerics.blocks.sums import Sums
from kernsel.numerics.runtime.once import once
from kernsel.paths.outputs import Between, Enclosed, Fits, HeldOut, Spectral
from kernsel.paths.routes import Sizes, Thresholds
from kernsel.protocols import Learner
from kernsel.representation.base import Representation
from kernsel.representation.problem import Problem
from kernsel.types import Array, Indices


class Path(ABC):
    """Fits of one learner on one problem for descending lambda, and held-out outputs from them.

    Whatever it is asked, and in whatever order, it gives the same numbers to the last bit.

    Parameters
    ----------
    representation : Representation
        What stands for the Gram matrix of the problem.
    lams : (L,) array, descending
    rows : Partition, optional
        The rows of the problem in other folds.
    lead_in : bool
        Whether the first lambda is led to from larger ones, where fits are found by steps.
    near : mapping of float to (k, .) array, optional
        Solutions by lambda, from ``settled`` of another path on the same problem, to start from where steps are dear.
    """

    representation: Representation
    thresholds = Thresholds()
    """Rows from which routes are taken: set before any is."""
    keeps_folds = False
    """Whether fits without each fold are kept along with Newton steps, to be ``enclosed``: set before any is asked."""

    def __init__(
        self,
        problem: Problem,
        representation: Representation,
        learner: Learner,
        lams: Array,
        rows: Partition | None = None,
        lead_in: bool = False,
        near: Mapping[float, Array] | None = None,
    ) -> None:
        self.problem = problem
        self.representation = representation
        self.rows = problem.rows if rows is None else rows
        self.learner = learner
        self.lams = np.ascontiguousarray(lams, dtype=np.float64)
        self.lead_in = lead_in
        self.near = {} if near is None else near
        self._check()

    def _check(self) -> None:  # noqa: B027  # most are for all learners and folds
        """Raise IncompatibleError where the representation is not for the learner or the folds."""

    @once
    def one_by_one(self) -> Self:
        """The path of the same fits with every row that is held out in a fold of its own, whatever the folds."""
        alone = self.rows.one_by_one
        return self if alone is self.rows else self._in_folds(alone)

    def _in_folds(self, rows: Partition) -> Self:
        """Return the path of the same fits in other folds."""
        other = type(self)(self.problem, self.representation, self.learner, self.lams, rows, self.lead_in, self.near)
        other.thresholds = self.thresholds
        return other

    @property
    def bias(self) -> bool:
        """Whether the learner has an unpenalised bias."""
        return bool(self.learner.bias)

    @property
    def sizes(self) -> Sizes:
        """What routes are decided by."""
        return Sizes(self.rows, self.lams.size, self.problem.width, self.bias, self.thresholds)

    def pieces(self) -> Iterator[tuple[int, Path]]:
        """Give folds, and paths that hold out some of their rows each, where outputs of all rows take too much room.

        All held-out rows are in one of them, in order. Of such a path nothing but its exact outputs is asked; there are
        none of them where outputs are held together.
        """
        yield from ()

    @property
    @abstractmethod
    def fits(self) -> Fits:
        """The fits on all rows."""

    @abstractmethod
    def exact(self, which: Sequence[int] | None = None) -> HeldOut:
        """Held-out outputs of exact refits, for all lambda or those numbered ``which``."""

    @abstractmethod
    def newton_step(self) -> HeldOut:
        """Held-out outputs by one Newton step from the fit; exact for the square loss."""

    def with_fits(self, fits: Fits) -> Self:
        """Return the path with the fits that it was found to have before, where these take steps."""
        return self

    @property
    def enclosed(self) -> Enclosed:
        """Intervals around the outputs of exact fits without each fold, from Newton steps; None of them is refitted."""
        raise self._not_enclosed()

    def refitted(self, k: int, folds: Sequence[int]) -> Array:
        """Solutions (outputs, t, .) of refits without some folds for lambda number ``k``: see ``enclosed_around``."""
        raise self._not_enclosed()

    def enclosed_around(self, k: int, folds: Sequence[int], refits: Array, sharp: bool) -> Enclosed:
        """Intervals around outputs of exact fits without some folds, from ``refitted`` solutions (outputs, t, .).

        Sharp ones use the curvature of losses, which may take longer than the refits. Outputs of other folds are not
        set.
        """
        raise self._not_enclosed()

    def enclosed_between(self, pieces: Indices | None = None) -> Between:
        """Outputs of refits without each fold, and intervals around those of exact fits for all lambda between.

        They are infinite but between the lambda with the numbers ``pieces`` and the next ones each, if those are given.
        """
        raise self._not_enclosed()

    def with_refits(self, paths: Sequence[Self]) -> Self:
        """Return the path with the fits and refits of others, which have its values of lambda between them."""
        raise self._not_enclosed()

    def _not_enclosed(self) -> IncompatibleError:
        return IncompatibleError(
            "a certificate needs the Gram matrix or features in memory: give a lower rank, or leave out certify"
        )

    def influence(self, order: int) -> HeldOut:
        """Held-out outputs by the Bouligand influence function of that order."""
        f, self.ratio, status = self._series(order)  # no term of the series changes the ratio
        return HeldOut.of(f, status, exact=False)

    def nystrom_influence(self, share: float) -> HeldOut:
        """First-order influence with the inverse approximated from ``share * n`` uniform landmarks (FBIF18).

        In a low-rank representation the fit lies in the range of its landmarks already, and the plain first order is
        what the approximation amounts to.
        """
        return self.influence(1)

    @once
    def ratio(self) -> Array:
        """The largest ratio rho of the influence series over folds and outputs, (L,)."""
        return self._series(0)[1]

    def _series(self, order: int) -> tuple[Array, Array, Indices]:
        """Outputs (k, L, n) of the influence series of that order, its ratios (L,), and statuses (k, L)."""
        raise NotImplementedError

    @property
    def step_ratio(self) -> Array | None:
        """The ratio (L,) from what Newton steps compute where they do; NaN for fits whose folds were all refitted.

        None at a representation that is not in force, where scores only compare, and where fits leave out more than
        the fold, which no influence series does.
        """
        return self.ratio if self.representation.in_force and self.rows.training is None else None

    def spectral(self, who: str) -> Spectral:
        """Return the path as one that can say what its fits leave of the targets; ``who`` asks, for errors."""
        raise IncompatibleError(
            f"{who} needs the square loss; learner '{self.learner.name}' has another: use krr or lssvm, or the "
            "criterion newton-cv"
        )

    @property
    def sums(self) -> Sums | None:
        """The sums over all rows that are all that the fits know of them; None where they know more."""
        return None

    def settled(self) -> dict[float, Array]:
        """Return solutions (k, .) by lambda that are worth keeping for another path on the problem: its ``near``."""
        return {}

    @abstractmethod
    def _solution(self, k: int) -> Array:
        """Solution (outputs, .) of the fit for lambda number ``k``: coefficients or weights, a bias last."""

    @abstractmethod
    def _refitted(self, k: int) -> Array:
        """Solutions (t, outputs, .) without each fold for lambda number ``k``."""

    def _solutions(self, which: Sequence[int]) -> Array:
        """Solutions (outputs, q, .) of the fits for some lambda."""
        return np.stack([self._solution(k) for k in which], axis=1)

    def norms(self, which: Sequence[int], found: Array | None = None) -> Array:
        """Squared norms ``||f||^2`` of the fits for lambda number ``which``, without bias, summed over outputs, (q,).

        With ``kappa = max_x k(x, x)`` every output of a fit is at most ``sqrt(kappa) ||f||`` away from the bias. Those
        that were ``found (L,)`` along with scores or held-out outputs are taken from there, where they aren't NaN.
        """
        known = np.full(self.lams.size, np.nan) if found is None else found.copy()
        if left := [k for k in which if np.isnan(known[k])]:
            x = self._solutions(left)
            known[left] = self.representation.squared_norms(x[..., :-1] if self.bias else x)
        return np.asarray(known[list(which)])

    def coefficients(self, k: int) -> Array:
        """Weights (outputs, m) of the kernel functions at the points of the representation, for lambda number ``k``."""
        return self._expand(self._solution(k))[0]

    def intercepts(self, k: int) -> Array:
        """Bias of each output for lambda number ``k``, 0 for a learner without one."""
        return self._expand(self._solution(k))[1]

    def refits(self, k: int) -> tuple[Array, Array]:
        """Return coefficients (t, outputs, m) and biases (t, outputs) of the exact fits without each fold."""
        return self._expand(self._refitted(k))

    def _expand(self, x: Array) -> tuple[Array, Array]:
        x, b = (x[..., :-1], x[..., -1]) if self.bias else (x, np.zeros(x.shape[:-1]))
        return self.representation.expand(x), b

    def describe(self) -> str:
        """The representation in words."""
        return self.representation.describe()

    def need_whole_folds(self) -> None:
        """Raise IncompatibleError unless the fit without each fold is trained on all other rows."""
        if self.rows.training is not None:
            raise IncompatibleError(
                "the influence function leaves a fold out of a fit on all rows, and these splits train on other rows "
                "than all but the fold: use the criterion cv"
            )
