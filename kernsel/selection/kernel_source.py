"""Where the kernels of a selection come from: named, with relevances to be learnt, or chosen among many."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernsel import registry
from kernsel.criteria import Criterion, HeldOutCriterion
from kernsel.data import Dataset
from kernsel.data.names import listed
from kernsel.errors import Caution, IncompatibleError, OptionError
from kernsel.journal import remember
from kernsel.kernels import Kernel
from kernsel.kernels.base import with_groups
from kernsel.kernels.views import by_feature
from kernsel.learning.learned import LearnedKernel
from kernsel.numerics.runtime.threads import one_blas_thread
from kernsel.parts import has_square_loss, read_criterion, read_kernel, read_learner
from kernsel.paths import compile_learning
from kernsel.protocols import Learner, SupportsPrior
from kernsel.search.candidate import Candidate
from kernsel.search.scales import Family
from kernsel.selection import auto as automatic
from kernsel.selection.compared import compared_kernels, describe_compared, describe_profiles, learnt_profiles
from kernsel.selection.plan import Plan
from kernsel.selection.relearning import Relearning
from kernsel.selection.result import Selection
from kernsel.selection.setting import read_terms
from kernsel.selection.unseen import Unseen

AUTO, LEARNT_BY = "auto", "evidence"

SCALES = 2.0 ** np.arange(-3.0, 4.0)
"""Factors of all relevances together: they are learnt for the square loss, and another one may want a wider kernel."""

LEARNING_FOLDS = 5
"""Of criteria of held-out rows that relevances are learnt by; fewer where there are fewer rows or groups."""


@dataclass(frozen=True, eq=False)
class KernelSource:
    """The kernels that a selection searches, and what is to be told of them.

    Parameters
    ----------
    kernels : list of Kernel or Family
    notes : list of str
    seconds : float
        That it took to make them.
    unseen : callable or None
        Predicts held-out rows by kernels that haven't seen them: see ``kernsel.selection.unseen``.
    """

    kernels: Sequence[Kernel | Family]
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    unseen: Unseen | None = None

    def moved(self, dataset: Dataset, kernel: Kernel, to: object, considered: Sequence[Candidate]) -> KernelSource:
        """Return the source of a selection on more rows, that of one of the kernels, or of another width of it.

        Parameters
        ----------
        dataset : Dataset
            Of all rows.
        to : Kernel
            What is made of it.
        considered : sequence of Candidate
            What it was chosen among.
        """
        return replace(self, unseen=None)

    def relearnt(self, kernel: Kernel, seed: int) -> tuple[KernelSource, list[tuple[Kernel, float]]]:
        """Learn the relevances of a kernel again on all rows; return the source with what came out, and its ridges."""
        return self, []

    def describe(self, result: Selection) -> Selection:
        """Return a selection among the kernels with what is known of them."""
        return with_notes(result, self.seconds, self.notes)


def with_notes(
    result: Selection, seconds: float, notes: Sequence[str] = (), warnings: Sequence[str] = (), **data: Any
) -> Selection:
    """Return a selection with what else is known of it, after so many seconds more."""
    timing = result.timing
    learning = {"learning": timing.get("learning", 0.0) + seconds} if seconds else {}
    return replace(
        result,
        data={**result.data, "notes": [*result.data["notes"], *notes], **data},
        warnings=[*result.warnings, *warnings],
        timing={**timing, **learning, "total": timing["total"] + seconds},
    )


def kernels_given(plan: Plan) -> list[Any]:
    """Return the kernels that a plan names, ``"auto"`` where it names none."""
    kernel = plan.kernel
    return list(kernel) if isinstance(kernel, list | tuple) else [AUTO if kernel is None else kernel]


def check_names(plan: Plan) -> None:
    """Raise where a plan names a kernel, learner, criterion or search that there isn't, before a table is read."""
    for kernel in kernels_given(plan):
        if kernel != AUTO:
            read_kernel(kernel)
    for kind in ("learner", "criterion", "search"):
        text = getattr(plan, kind)
        if isinstance(text, str) and text != AUTO:
            registry.build(kind, text)


def kernels_of(dataset: Dataset, plan: Plan) -> KernelSource:
    """Return the kernels of a selection; relevances without values are learnt here.

    Parameters
    ----------
    plan : Plan
        With a learner of its own: not ``"auto"``.
    """
    automatic.read_effort(plan.effort)
    given = kernels_given(plan)
    if plan.kernel is None and (reason := _why_gaussian(plan)) is not None:
        return KernelSource([read_kernel("gaussian")], (f"kernel: gaussian, for {reason}",))
    if AUTO in given:
        if len(given) > 1:
            raise OptionError("kernel 'auto' chooses among many: leave the others out")
        priors = _priors(plan, dataset.task)
        read_terms(dataset, plan)  # what can't be followed is refused before relevances are learnt
        compile_learning()
        return _chosen(dataset, plan, priors)
    kernels = [with_groups(read_kernel(each), dataset.encoder.groups) for each in given]
    if any(kernel.unlearnt for kernel in kernels):
        by = _checked(plan)
        read_terms(dataset, plan)
        compile_learning()
        return _learnt(dataset, plan, kernels, by)
    if plan.relevances is not None:
        raise OptionError(
            f"relevances: no kernel has any without values, to be learnt by {plan.relevances}; use kernel ard or auto, "
            "or leave that out"
        )
    _check_given(kernels, dataset, plan.landmarks)
    return KernelSource(kernels)


def _check_given(kernels: Sequence[Kernel], dataset: Dataset, landmarks: str | None) -> None:
    """Raise where kernels that are given by their values don't fit X or the other options."""
    known = [kernel for kernel in kernels if kernel.known_rows_only]
    if known and (len(kernels) > 1 or not dataset.encoder.similarities):
        raise OptionError(f"kernel '{known[0].name}' stands alone, and X is a square Gram matrix")
    if known and landmarks == "kmeans":
        raise IncompatibleError(
            f"landmarks kmeans are centres, not rows, and kernel '{known[0].name}' has values of rows only: "
            "use another method"
        )


def _why_gaussian(plan: Plan) -> str | None:
    """Return why the kernel is the Gaussian where none is given; None where it is chosen."""
    grid, criterion = plan.grid, plan.criterion
    named = set(grid) - {"lambda", "rest", "h", "epsilon"} if isinstance(grid, Mapping) else set()
    if named:
        return "the grid names its width"
    if "paper" in (grid, grid.get("rest") if isinstance(grid, Mapping) else None):
        return "the grid is that of its papers"
    if plan.refine == "gradient":
        return "a refinement by gradient needs it"
    if criterion is not None and not isinstance(read_criterion(criterion, None, False, None), HeldOutCriterion):
        return "kernels of different kinds are compared by held-out rows, and the criterion has none"
    return None


def _priors(plan: Plan, task: str) -> Sequence[float | None]:
    """Return the priors that relevances are learnt with where the kernel is chosen."""
    if plan.relevances is None:
        return automatic.PRIORS[task]
    by = _checked(plan)
    criterion: Any = read_criterion(by, None, False, None) if by != "flkl" else None
    if not isinstance(criterion, SupportsPrior):
        raise OptionError(f"kernel auto learns relevances by the evidence; with {plan.relevances} use kernel ard")
    return (criterion.sigma,)


def _checked(plan: Plan) -> str | Criterion:
    """Return what relevances are learnt by; raise before the work where that, or the refinement, can't be."""
    from kernsel.learning.relevances import FIRST_LEVEL, read_gradient

    if plan.refine == "gradient":
        raise IncompatibleError(
            "refine gradient: relevances are learnt by their gradient already; for what is left, lambda, use compass "
            "or simplex"
        )
    by = plan.relevances or LEARNT_BY
    if by != FIRST_LEVEL:
        read_gradient(by)
    return by


@dataclass(frozen=True, eq=False, kw_only=True)
class _Chosen(KernelSource):
    """Profiles of one width, and of relevances that were learnt by the evidence."""

    candidates: automatic.Candidates
    dataset: Dataset
    effort: str
    considered: Sequence[Candidate] | None = None

    def relearnt(self, kernel: Kernel, seed: int) -> tuple[KernelSource, list[tuple[Kernel, float]]]:
        known = self.candidates.find(kernel)
        if known is None:
            return self, []
        started = time.perf_counter()
        found = automatic.relearnt(self.dataset, known, seed)
        candidates = replace(self.candidates, learnt=[*self.candidates.learnt, *found])
        seconds = self.seconds + time.perf_counter() - started
        return replace(self, candidates=candidates, seconds=seconds), [(e.kernel, e.profile.ridge) for e in found]

    def moved(self, dataset: Dataset, kernel: Kernel, to: Any, considered: Sequence[Candidate]) -> KernelSource:
        found = self.candidates
        known = found.find(kernel)
        if known is not None and to != kernel:
            largest = int(np.argmax(known.theta))
            factor = known.factor * to.theta[largest] / known.theta[largest]
            found = replace(found, learnt=[*found.learnt, replace(known, factor=factor)])
        unseen = Relearning.of(found, dataset.task, self.effort)
        return replace(self, unseen=unseen, candidates=found, dataset=dataset, considered=considered)

    def describe(self, result: Selection) -> Selection:
        among = self.considered or result.candidates
        compared, profiles = compared_kernels(self.candidates, among), learnt_profiles(self.candidates)
        notes = [*self.notes, describe_compared(compared, result.best.kernel)]
        data: dict[str, Any] = {"compared": compared, "profiles": profiles}
        if profiles:
            notes.append(describe_profiles(profiles, self.candidates.rows))
        best = self.candidates.find(result.best.kernel)
        if best is not None:
            theta = best.relevances(self.dataset.encoder.features)
            criterion, n = best.profile.learnt_by, self.dataset.n
            notes.append(f"relevances: learnt by {criterion} on {best.rows or self.candidates.rows} of {n} rows")
            unseen = self.unseen is not None and self.unseen.has_seen(result.best.kernel, n)
            shares = {"shares": True} if best.is_sum else {}
            data["relevances"] = {"criterion": criterion, "theta": theta, "zero": [], "unseen": unseen, **shares}
        return with_notes(result, self.seconds, notes, **data)


@one_blas_thread()
def _chosen(dataset: Dataset, plan: Plan, priors: Sequence[float | None]) -> KernelSource:
    """Return the kernels to choose among."""
    learner, effort = read_learner(plan.learner, dataset.task), plan.effort
    found = automatic.candidates(dataset, learner, effort, priors, plan.seed)
    unseen = Relearning.of(found, dataset.task, effort)
    return _Chosen(
        found.kernels, tuple(found.notes), found.seconds, unseen, candidates=found, dataset=dataset, effort=effort
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class _Learnt(KernelSource):
    """Kernels whose relevances were learnt on all rows, at several scales, beside others."""

    learned: Mapping[Kernel, LearnedKernel]

    def describe(self, result: Selection) -> Selection:
        chosen = self.learned.get(result.best.kernel)
        if chosen is None:
            return with_notes(result, self.seconds, self.notes)
        theta = dict(replace(chosen, kernel=result.best.kernel).relevances)
        zero = replace(chosen, kernel=result.best.kernel).zero
        left = f"relevances: {len(zero)} of {len(by_feature(theta, chosen.features))} features are exactly 0"
        text = (
            f"relevances were learnt by {chosen.criterion} on all rows, those that folds hold out too: held-out "
            "errors, probabilities and intervals of this choice are too good; kernel auto and nested estimates hold "
            "rows out of the learning as well"
        )
        return with_notes(
            result,
            self.seconds,
            notes=[*chosen.notes, left + (f" ({listed(zero)})" if zero else "")],
            warnings=[Caution("relevances-seen", text)],
            relevances={"criterion": chosen.criterion, "theta": theta, "zero": zero, "unseen": False},
        )


@one_blas_thread()
def _learnt(dataset: Dataset, plan: Plan, kernels: Sequence[Kernel], relevances: str | Criterion) -> KernelSource:
    """Learn the relevances of kernels on all rows."""
    started = time.perf_counter()
    part = read_learner(plan.learner, dataset.task)
    ready: list[Kernel] = []
    learned: dict[Kernel, LearnedKernel] = {}
    for kernel in kernels:
        if not kernel.unlearnt:
            ready.append(kernel)
            continue
        found = _learn(dataset, kernel, part, relevances, plan.seed)
        found = replace(found, notes=found.notes[len(dataset.notes) :])
        scales = _scaled(found.kernel)
        learned.update(dict.fromkeys(scales, found))
        ready += scales
    return _Learnt(ready, seconds=time.perf_counter() - started, learned=learned)


def _learn(dataset: Dataset, kernel: Kernel, learner: Learner, relevances: str | Criterion, seed: int) -> LearnedKernel:
    """Learn relevances by a criterion, with the learner itself if it has the square loss."""
    from kernsel.learning import learn_on_dataset  # with scipy.optimize it takes as long to import as all the rest

    square = learner if has_square_loss(learner) else None
    most = dataset.n if dataset.groups is None else int(dataset.groups.max()) + 1
    folds = min(LEARNING_FOLDS, most)
    options: dict[str, Any] = {
        "kernel": kernel,
        "learner": square,
        "criterion": relevances,
        "folds": folds,
        "seed": seed,
    }
    return remember("relevances", (dataset, options), lambda: learn_on_dataset(dataset, **options))


def _scaled(kernel: Any) -> list[Kernel]:
    """Return a kernel with its relevances times each of the common factors."""
    return [kernel.with_theta(tuple(float(factor) * theta for theta in kernel.theta)) for factor in SCALES]
