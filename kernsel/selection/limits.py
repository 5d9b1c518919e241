"""What the whole kernel of tens of thousands of rows may take, and whether a selection goes that way.

Operations are counted and divided by fixed rates, so that the choice doesn't depend on the machine, nor on how busy it
is; unless a time is given: then it is that, at the rates of this machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from kernsel import parts as reading
from kernsel.data import Dataset
from kernsel.numerics.points import is_sparse
from kernsel.numerics.whole import costs as whole_costs
from kernsel.numerics.whole.solver import COLUMNS
from kernsel.protocols import refits_exactly
from kernsel.search.deadline import NEVER, Deadline, deadline_in_force
from kernsel.selection.kernel_source import AUTO, kernels_given
from kernsel.selection.plan import Plan
from kernsel.system.memory import has_memory

RATES = whole_costs.Rates(products32=1.2e11, products64=6e10, pairs=2.5e8, bytes=1e10)
"""What two cores of a server do a second."""

CLIMB = {"normal": 30.0, "thorough": 150.0}
"""Seconds, at those rates, that the climb may take."""

FINAL = {"normal": 240.0, "thorough": 900.0}
"""Seconds that the fit to all rows may take with its held-out outputs: beyond, a low rank is taken as ever."""

ALL = 0.6
"""Share of a time that is given which the fit to all rows may take: before it come the search and the climb."""

MEMORY = 0.6
"""Share of the machine's memory that the fit to all rows may take."""


@dataclass(frozen=True)
class Sizes:
    """Numbers of rows that decide how the whole kernel is chosen.

    Parameters
    ----------
    full : int
        Of more rows it is chosen on a part of them.
    few : int
        Rows that the search is done on.
    scored : int
        Fewer rows outside of subsets say nothing: then the choice is that of the search, as it is of as many rows as
        its.
    finite : int
        A kernel that so many landmarks represent to rounding is fitted faster by these.
    """

    full: int = reading.FULL_RANK_ROWS
    few: int = 2000
    scored: int = 100
    finite: int = 200


SIZES = Sizes()
"""Those of every selection."""


@dataclass(frozen=True)
class Limits:
    """What the whole kernel may take.

    Parameters
    ----------
    climb, final : float
        Seconds at the rates.
    deadline : Deadline
        Where it is set, the climb ends with it, whatever its seconds.
    """

    climb: float
    final: float
    rates: whole_costs.Rates = RATES
    deadline: Deadline = NEVER

    @classmethod
    def of(cls, effort: str, share: float = ALL) -> Limits:
        """Return the limits of an effort, or those of the deadline in force.

        Parameters
        ----------
        share : float
            Of the time that is left, for the fit to all rows.
        """
        deadline = deadline_in_force()
        if deadline.is_set:
            return cls(deadline.left, share * deadline.left, machine_rates(), deadline)
        return cls(CLIMB[at_least_normal(effort)], FINAL[at_least_normal(effort)])

    def left(self, spent: float) -> float:
        """Return what is left for the climb after so many seconds at the rates."""
        return self.deadline.left if self.deadline.is_set else self.climb - spent


def at_least_normal(effort: str) -> str:
    """Return an effort at which there is a whole kernel: where it is asked for, quick is not."""
    return "normal" if effort == "quick" else effort


@cache
def machine_rates() -> whole_costs.Rates:
    """Return what this machine does a second, measured once in a process."""
    return whole_costs.measure_rates()


class FinalFit(NamedTuple):
    """The fit to all rows: how folds are held out, all of them or one, and what that costs."""

    route: str
    costs: whole_costs.Costs


def final_fit(dataset: Dataset, plan: Plan, limits: Limits) -> FinalFit | None:
    """Return how the whole kernel is fitted to all rows within limits; None where it takes too long.

    Where it is asked for, it takes what it takes, all the memory at most; with a deadline fewer folds are held out.
    """
    asked, by_columns = plan.rank is not None, int(plan.folds) * (dataset.k + has_bias(dataset)) <= COLUMNS
    ways: list[tuple[str, int | None]] = [("folds" if by_columns else "blocks", None), ("one fold", None)]
    ways += [(route, whole_costs.BEYOND_MEMORY) for route in ["folds"] * by_columns + ["one fold"]]
    for route, rank in ways:
        if rank is not None and has_memory(route_costs(dataset, plan, route).memory):
            continue  # a factor is taken wherever memory holds it
        costs = route_costs(dataset, plan, route, rank)
        last = route == "one fold" or not limits.deadline.is_set
        in_time = costs.seconds(limits.rates) <= limits.final or (asked and last)
        if in_time and has_memory(costs.memory, 1.0 if asked else MEMORY):
            return FinalFit(route, costs)
    return None


def least_costs(dataset: Dataset, plan: Plan) -> whole_costs.Costs:
    """Return what one fit to all rows takes with one fold held out, by a factor if memory holds it."""
    factor = route_costs(dataset, plan, "one fold")
    return factor if has_memory(factor.memory) else route_costs(dataset, plan, "one fold", whole_costs.BEYOND_MEMORY)


def route_costs(dataset: Dataset, plan: Plan, route: str, rank: int | None = None) -> whole_costs.Costs:
    """Return what one fit to all rows takes with the held-out outputs of a route, by a factor or by a low rank."""
    n, folds = dataset.n, int(plan.folds)
    bounds = [(n * i // folds, n * (i + 1) // folds) for i in range(folds)]
    if rank is not None:  # which knows folds as columns only
        bounds, route = bounds[: 1 if route == "one fold" else folds], "folds"
    return whole_costs.costs(n, dataset.d, dataset.k, has_bias(dataset), bounds, route, rank=rank)


def has_bias(dataset: Dataset) -> bool:
    """Tell whether the learner that is the default of the square loss has a bias."""
    return dataset.task == "classification"


def fits_whole(dataset: Dataset, plan: Plan) -> bool:
    """Tell whether the whole kernel of all rows is within the limits of a selection."""
    return final_fit(dataset, plan, Limits.of(plan.effort)) is not None


def is_large(dataset: Dataset, plan: Plan, sizes: Sizes = SIZES) -> bool:
    """Tell whether a selection begins on few rows: it can, and a whole kernel that is asked for is within limits."""
    return can_be_large(dataset, plan, sizes) and (plan.rank is None or fits_whole(dataset, plan))


def can_be_large(dataset: Dataset, plan: Plan, sizes: Sizes = SIZES) -> bool:
    """Tell whether a selection could go this way: by default, and nothing is asked for that it hasn't."""
    learner = reading.read_learner(plan.learner, dataset.task)
    rank, folds, criterion, effort = plan.rank, plan.folds, plan.criterion, plan.effort
    given = kernels_given(plan)
    # Relevances that are named are learnt on all rows.
    named = [reading.read_kernel(each) for each in given if each != AUTO]
    return bool(
        dataset.n > sizes.full
        and (rank == reading.WHOLE or (rank is None and effort != "quick"))
        and effort in (*CLIMB, "quick")
        and reading.has_square_loss(learner)
        and not is_sparse(dataset.X)
        and dataset.groups is None
        and dataset.sample.near is None  # a fold of the whole kernel leaves out its own rows alone
        and not any(each.unlearnt for each in named)
        and (rank is None or any(each == AUTO for each in given) or any(each.free for each in named))
        and isinstance(folds, int | np.integer)
        and not isinstance(folds, bool)
        and 2 <= folds <= sizes.few  # the search on few rows has as many
        and plan.repeats == 1
        and plan.grid in ("auto", "coarse")
        and plan.search == "auto"
        and not any((plan.landmarks, plan.refine, plan.eta, plan.order))
        and not plan.certify  # of candidates on all rows, whose kernels or features are in memory
        and plan.rule != "one-se"
        and (criterion is None or refits_exactly(reading.read_criterion(criterion, None, False, None)))
    )
