"""What a path is: fits of one learner on one problem for descending lambda, and held-out outputs from them."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kernsel.errors import IncompatibleError
from kernsel.folds.partition import Partition
from kernsel.numerics.points import Points
from kernsel.numerics.runtime.jit import Compiled
from kernsel.numerics.runtime.once import once
from kernsel.numerics.smooth import heldout, heldout_kernel, newton
from kernsel.numerics.stability import Scan
from kernsel.representation.problem import Problem

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Outputs at rows whose fold the fit has not seen.

    Parameters
    ----------
    f : (k, L, n) array
    failed : list of L str or None
        Why there are no usable outputs for that lambda.
    exact : (L,) array of bool
        Whether these are the outputs of refits, not an approximation to them.
    refitted : (L,) array of int, or 0
        Folds (of any output) that were refitted, as the approximation could not be trusted there.
    replaced : (L,) array of bool, or False
        Whether a Newton step took the place of another approximation.
    """

    f: Array
    failed: list[str | None]
    exact: NDArray[np.bool_]
    refitted: NDArray[np.int64] | int = 0
    replaced: NDArray[np.bool_] | bool = False

    def clipped(self, rows: Partition) -> HeldOut:
        """Return the outputs within the range of the targets, if rows are clipped."""
        return replace(self, f=rows.clipped(self.f)) if rows.clip else self

    @staticmethod
    def of(f: Array, status: NDArray[np.int64], exact: bool, refitted: NDArray[np.int64] | int = 0) -> HeldOut:
        """Give each lambda its reason from the worst status (outputs, L) and from values that are not finite."""
        L = f.shape[1]
        worst = status.reshape(-1, L).max(axis=0)
        finite = np.logical_and.reduce(np.isfinite(f), axis=(0, 2))
        worst = np.where(finite | (worst != newton.CONVERGED), worst, newton.NOT_FINITE)
        failed = [newton.REASONS.get(int(s)) for s in worst]
        return HeldOut(f, failed, np.full(L, exact), refitted)


@dataclass(frozen=True, eq=False)
class Fits:
    """Fits: coefficients or weights ``x (k, L, .)``, a bias last, outputs ``f (k, L, n)``, statuses (k, L)."""

    x: Array
    f: Array
    status: NDArray[np.int64]


class Path(ABC):
    """Fits of one learner on one problem for descending lambda, and held-out outputs from them.

    Parameters
    ----------
    problem : Problem
    learner : Learner
    lams : (L,) array, descending
    """

    def __init__(self, problem: Problem, learner: Any, lams: Array) -> None:
        self.problem = problem
        self.rows: Partition = problem.rows
        self.learner = learner
        self.lams = np.ascontiguousarray(lams, dtype=np.float64)

    @once
    def one_by_one(self) -> Self:
        """The same path with every row that is held out in a fold of its own, whatever the folds.

        The problem is the same one, and so are the fits, if they have been made.
        """
        if self.rows.one_by_one is self.rows:
            return self
        other = copy.copy(self)
        other.rows = self.rows.one_by_one
        for of_folds in ("ratio", "step_ratio", "_by_products", "_krylov"):
            other.__dict__.pop(of_folds, None)
        return other

    @property
    def bias(self) -> bool:
        """Whether the learner has an unpenalised bias."""
        return bool(self.learner.bias)

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

    @abstractmethod
    def influence(self, order: int) -> HeldOut:
        """Held-out outputs by the Bouligand influence function of that order."""

    @abstractmethod
    def _ratio(self) -> Array:
        """Compute ``ratio``."""

    @once
    def ratio(self) -> Array:
        """The largest ratio rho of the influence series over folds and outputs, (L,)."""
        return self._ratio()

    @once
    def step_ratio(self) -> Array:
        """The same ratio, from what Newton steps compute where they do; NaN for fits whose folds were all refitted."""
        return self.ratio

    @abstractmethod
    def _solution(self, k: int) -> Array:
        """Solution (outputs, .) of the fit for lambda number ``k``: coefficients or weights, a bias last."""

    @abstractmethod
    def _refitted(self, k: int) -> Array:
        """Solutions (t, outputs, .) without each fold for lambda number ``k``."""

    def _solutions(self, which: Sequence[int]) -> Array:
        """Solutions (outputs, q, .) of the fits for some lambda."""
        return np.stack([self._solution(k) for k in which], axis=1)

    def norms(self, which: Sequence[int]) -> Array:
        """Squared norms ``||f||^2`` of the fits for lambda number ``which``, without bias, summed over outputs, (q,).

        In full ``a' K a``, of low-rank features ``|w|^2``. With ``kappa = max_x k(x, x)`` every output of a fit is at
        most ``sqrt(kappa) ||f||`` away from the bias.
        """
        if not len(which):
            return np.zeros(0)
        x = self._solutions(which)
        x = x[..., :-1] if self.bias else x
        return np.asarray(np.einsum("cqi,cqi->q", x, x @ self.problem.gram if self.problem.full else x))

    def coefficients(self, k: int) -> Array:
        """Weights (outputs, m) of the kernel functions at the rows of ``points()``, for lambda number ``k``."""
        return self._expand(self._solution(k))[0]

    def intercepts(self, k: int) -> Array:
        """Bias of each output for lambda number ``k``, 0 for a learner without one."""
        return self._expand(self._solution(k))[1]

    def refits(self, k: int) -> tuple[Array, Array]:
        """Return coefficients (t, outputs, m) and biases (t, outputs) of the exact fits without each fold."""
        return self._expand(self._refitted(k))

    def _expand(self, x: Array) -> tuple[Array, Array]:
        x, b = (x[..., :-1], x[..., -1]) if self.bias else (x, np.zeros(x.shape[:-1]))
        return x if self.problem.full else x @ self._landmarks[1].T, b

    @property
    def _landmarks(self) -> tuple[Array, Array]:
        """Landmarks (r, d) of a low rank, and the map T from the kernel's values there to features."""
        return self.problem.factor[1:3]

    def points(self) -> Points:
        """The points (m, d) whose kernel functions make up the model: all rows, or the landmarks."""
        return self.rows.X if self.problem.full else self._landmarks[0]

    @property
    def rank(self) -> int:
        """Number of features, or of rows."""
        return self.rows.n if self.problem.full else self._landmarks[0].shape[0]

    @property
    def lost(self) -> float:
        """Share of the trace of the Gram matrix that low-rank features leave out."""
        return 0.0 if self.problem.full else self.problem.lost

    @property
    def stability(self) -> Scan:
        """Stability scan of the representation."""
        return self.problem.stability

    def describe(self) -> str:
        """The representation in words."""
        return self.problem.describe()

    def nystrom_influence(self, share: float) -> HeldOut:
        """First-order influence with the inverse approximated from ``share * n`` uniform landmarks (FBIF18).

        In a low-rank representation the fit lies in the range of its landmarks already, and the plain first order is
        what the approximation amounts to.
        """
        if not self.problem.full:
            return self.influence(1)
        self._need_whole_folds()
        V = self.problem.nystrom(share)
        if self.bias:
            V = np.column_stack([V, np.ones(self.rows.n)])
        f, status, _ = self._update(heldout_kernel.nystrom_influence, 1, V)
        return HeldOut.of(f, status.max(axis=2), exact=False)

    def _need_whole_folds(self) -> None:
        if self.rows.training is not None:
            raise IncompatibleError(
                "the influence function leaves a fold out of a fit on all rows, and these splits train on other rows "
                "than all but the fold: use the criterion cv"
            )

    def _update(
        self,
        update: Compiled,
        order: int,
        V: Array | None = None,
        trust: float = np.inf,
        which: NDArray[np.bool_] | slice = slice(None),
    ) -> tuple[Array, NDArray[np.int64], Array]:
        """Apply a fold update to the fits ``which``; return outputs (k, L, n), statuses and ratios (k, L, t)."""
        rows, loss = self.rows, self.learner.loss
        x, at, fitted = (np.ascontiguousarray(each[:, which]) for each in (self.fits.x, self.fits.f, self.fits.status))
        _, d1, d2 = loss.expand(rows.Y, rows.s, at)
        f, rho = at.copy(), np.zeros((*at.shape[:2], rows.left.size))
        if V is None:
            V = np.zeros((rows.n, 0))
        status = heldout.update_folds(
            update, self.problem.matrix(self.bias), int(self.bias), V, x, at, d1, d2, self.lams[which], rows.starts,
            rows.left, order, loss.pointer, np.array(loss.parameters), rows.Y, rows.s, trust, f, rho,
        )  # fmt: skip
        return np.asarray(f), np.maximum(status, fitted[:, :, None]), np.asarray(rho)
