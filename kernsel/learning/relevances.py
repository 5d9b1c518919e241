"""Learn the relevances of features: by the gradient of a criterion, or at the first level of inference."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernsel import registry
from kernsel.criteria import HeldOutCriterion, Slopes
from kernsel.criteria.base import Criterion, SupportsGradient
from kernsel.data import Dataset, from_arrays
from kernsel.data.choices import ONE_HOT
from kernsel.errors import IncompatibleError, OptionError, PluginError
from kernsel.folds.partition import Partition
from kernsel.kernels import Kernel
from kernsel.kernels.base import Learnable, with_groups
from kernsel.learning import descent, flkl
from kernsel.learning.descent import DescentPoint, logarithm
from kernsel.learning.learned import LearnedKernel, LearningStep, Learnt
from kernsel.learning.start import RIDGES, Start, check_learnable, choose_start, deal_rows, least_ridge, subsample
from kernsel.numerics.runtime.threads import one_blas_thread
from kernsel.parts import FULL_RANK_ROWS, read_criterion, read_kernel, read_learner
from kernsel.protocols import Learner, Unbounded, has_gradient
from kernsel.representation.problem import Problem
from kernsel.types import Array

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

FIRST_LEVEL = "flkl"

BOUNDED = 2.0**-10
"""The least relevance, as a share of the largest at the start, for criteria that fall without bound as all go to 0."""

LEARNERS = {"classification": "lssvm", "regression": "krr"}

PUBLISHED = {
    "RBF-LOO": ("gaussian", "loo"),
    "RBF-XVAL": ("gaussian", "cv"),
    "RBF-FLKL": ("gaussian", "flkl"),
    "ARD-LOO": ("ard", "loo"),
    "ARD-XVAL": ("ard", "cv"),
    "ARD-FLKL": ("ard", "flkl"),
    "ARD-BR": ("ard", "br"),
}
"""Kernel and criterion of the methods that Cawley & Talbot 2014 compare, by the names of their tables."""


def learn_relevances(
    X: pd.DataFrame | npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    criterion: str | Criterion = "evidence",
    learner: str | Learner | None = None,
    kernel: str | Kernel = "ard",
    folds: int | str = 5,
    rows: int = 500,
    polish: int = 5,
    evaluations: int = 40,
    weights: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    task: str = "auto",
    standardize: bool = True,
    categories: str = ONE_HOT,
    seed: int = 0,
) -> LearnedKernel:
    """Learn how much each feature counts: the theta_r of ``k(x, z) = exp(-sum_r theta_r (x_r - z_r)^2)``.

    Minimises a criterion C of the square loss over ``theta >= 0`` and lambda, by L-BFGS-B with its gradient
    ``dC/dtheta_r = sum_ij (dC/dK_ij) dK_ij/dtheta_r``, all d of them at O(n^3 + n^2 d). It begins at the best kernel
    with one theta for all features. If there are more rows than ``rows``, it learns on so many and polishes the result
    on all, or on 2000 of them; ``flkl`` on all up to 134,217, beyond 2000 by 500 landmarks.

    Parameters
    ----------
    X : (n, d) array, sparse matrix or DataFrame
        Features; text columns of a DataFrame are encoded as ``categories`` says.
    y : (n,) or (n, k) array
        Target: numbers, or labels of any kind, which are coded -1 and +1.
    criterion : str or Criterion
        ``evidence``, ``loo``, ``cv``, ``br``, or another one with a gradient; or ``flkl``, which learns theta with the
        coefficients under a penalty of its own. Few rows and many features: criteria over-fit, ``flkl`` least.
    learner : {"krr", "lssvm"} or Learner, optional
        ``lssvm`` for classes and ``krr`` for a regression by default.
    kernel : str or Kernel
        ``ard``, ``ard-polynomial``, or ``gaussian``, which has one relevance for all. One that has relevances already
        begins with them.
    folds : int, "loo" or "logo"
        Of the criteria ``cv`` and ``flkl``, and of the choice of the start; as in :func:`kernsel.select`.
    rows : int
        Rows to learn on first.
    polish : int
        At most so many steps on all rows.
    evaluations : int
        Of ``flkl``: how many pairs of lambda and mu are tried.
    weights, groups : (n,) array, optional
        As in :func:`kernsel.select`.
    task : {"auto", "regression", "classification"}
        What to learn.
    standardize : bool
        Centre and scale the numeric features; relevances are then in units of their standard deviations.
    categories : {"onehot", "hamming"}
        Whether each category of a column has a relevance, or the column: as in :func:`kernsel.select`.
    seed : int
        Of the folds and the part of the rows.

    Returns
    -------
    LearnedKernel
        Its ``kernel`` is what a selection on the same table takes; ``relevances`` names the features.

    Raises
    ------
    DataError, OptionError, IncompatibleError, PluginError, SelectionError
        Each says what is wrong and what to do.

    References
    ----------
    Chapelle, Vapnik, Bousquet & Mukherjee 2002 (gradients of criteria by scales of features); Rasmussen & Williams
    2006, equation 5.9 (of the evidence); Cawley & Talbot 2007 (``br``) and 2014 (``flkl``).
    """
    return learn_on_dataset(
        from_arrays(X, y, task, standardize, weights=weights, groups=groups, categories=categories),
        criterion=criterion,
        learner=learner,
        kernel=kernel,
        folds=folds,
        rows=rows,
        polish=polish,
        evaluations=evaluations,
        seed=seed,
    )


@one_blas_thread()  # the same result for any number of threads: descents magnify rounding
def learn_on_dataset(
    dataset: Dataset,
    *,
    criterion: str | Criterion = "evidence",
    learner: str | Learner | None = None,
    kernel: str | Kernel = "ard",
    folds: int | str = 5,
    rows: int = 500,
    polish: int = 5,
    evaluations: int = 40,
    seed: int = 0,
    most: int = FULL_RANK_ROWS,
) -> LearnedKernel:
    """Do what :func:`learn_relevances` does, on a data set that is already encoded.

    Parameters
    ----------
    criterion, learner, kernel, folds, rows, polish, evaluations, seed : optional
        As in :func:`learn_relevances`.
    most : int
        Rows that relevances are learnt on by a gradient, at most.
    """
    for name, value, least in (("rows", rows, 10), ("polish", polish, 0), ("evaluations", evaluations, 1)):
        if not isinstance(value, numbers.Integral) or value < least:
            raise OptionError(f"{name} must be a whole number of at least {least}, not {value!r}")
    square = read_learner(LEARNERS[dataset.task] if learner is None else learner, dataset.task)
    template = check_learnable(with_groups(read_kernel(kernel), dataset.encoder.groups), square)
    scorer = None if criterion == FIRST_LEVEL else read_gradient(criterion)
    largest = flkl.MOST_ROWS if scorer is None else most
    small, large = (subsample(dataset, count, seed).dense("a search for relevances") for count in (rows, largest))
    first = deal_rows(small, folds, seed)
    last = first if large.n == small.n else deal_rows(large, folds, seed)
    start = choose_start(small, first, template, square)
    if scorer is None:
        found = flkl.learn_first_level(first, last, start, square, evaluations)
    else:
        found = by_gradient(first, last, start, square, scorer, polish)
    share = last.total / dataset.total
    return LearnedKernel(
        kernel=start.kernel.with_theta(found.theta),
        lam=found.lam * share,
        mu=None if found.mu is None else found.mu * share,
        learner=square.name,
        criterion=FIRST_LEVEL if scorer is None else scorer.name,
        value=found.value,
        steps=found.steps,
        features=tuple(dataset.encoder.features),
        isotropic=start.best.kernel,
        notes=(*dataset.notes, *_subsample_notes(first.n, last.n, dataset.n)),
    )


def _subsample_notes(first: int, last: int, n: int) -> list[str]:
    """Return a note on how many rows were learnt on; none if it was all of them at once."""
    if first == n:
        return []
    return [f"learnt on {first} of {n} rows, then on {last}" + " (the most that are learnt on)" * (last < n)]


def read_gradient(criterion: str | Criterion) -> SupportsGradient:
    """Return the criterion; IncompatibleError if it has no gradient by relevances."""
    scorer = read_criterion(criterion, None, False, None)
    if not has_gradient(scorer):
        fitting = [name for name in registry.names("criterion") if has_gradient(_criterion(name))]
        raise IncompatibleError(
            f"criterion '{scorer.name}' has no gradient by the relevances of features; these have: "
            f"{', '.join([*fitting, FIRST_LEVEL])}"
        )
    return scorer


def _criterion(name: str) -> object:
    try:
        return registry.get("criterion", name)
    except PluginError:
        return None


@dataclass(frozen=True, eq=False)
class Objective:
    """A criterion as a function of relevances and lambda, in the units of half a logarithm of a mean square."""

    rows: Partition
    kernel: Learnable
    learner: Learner
    criterion: SupportsGradient

    def __call__(self, theta: Array, lam: float) -> Slopes:
        """Return the criterion in these units, with its derivatives."""
        slopes = self.criterion.gradient(Problem(self.rows, self.kernel.with_theta(theta)), self.learner, lam)
        if not self._is_mean:
            return Slopes(slopes.value / self.rows.n, slopes.theta / self.rows.n, slopes.lam / self.rows.n)
        return logarithm(slopes)

    def own_value(self, value: float) -> float:
        """Return the criterion's own value."""
        return math.exp(2.0 * value) if self._is_mean else value * self.rows.n

    @property
    def _is_mean(self) -> bool:
        """Whether the criterion is a mean of squares; else it grows with the rows, as a log likelihood does."""
        return isinstance(self.criterion, HeldOutCriterion)


def by_gradient(
    first: Partition, last: Partition, start: Start, learner: Learner, criterion: SupportsGradient, polish: int
) -> Learnt:
    """Descend on a criterion on the first rows, and by a few steps on the last ones if they are others."""
    objective = Objective(first, start.kernel, learner, criterion)
    least = BOUNDED if isinstance(criterion, Unbounded) else 0.0
    ridge = least_ridge(start.kernel) if getattr(criterion, "bounds_ridge", False) else RIDGES[0]
    box = start.box(first, least, ridge)
    point = descent.on_log_scale(objective, start.point(start.best.lam), box)
    positive = getattr(criterion, "positive", False)
    improved = descent.on_log_scale if positive else descent.on_scale
    if not positive:
        point = descent.on_scale(objective, point, box)
    steps = [LearningStep(first.n, objective.own_value(value), lam) for value, lam in point.path]
    if last is not first:
        objective = Objective(last, start.kernel, learner, criterion)
        kept = DescentPoint(point.theta, point.lam * first.total / last.total)  # the ridge stays
        point = improved(objective, kept, start.box(last, least, ridge), polish)
        steps += [LearningStep(last.n, objective.own_value(value), lam) for value, lam in point.path]
    return Learnt(point.theta, point.lam, None, objective.own_value(point.value), tuple(steps))
