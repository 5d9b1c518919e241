"""What a selection of many rows will take, said before it: time and memory by effort, at the rates of this machine.

Operations are counted, and divided by rates that are measured in some 0.2 s. Without a time that is given nothing is
decided by them: what is done doesn't depend on the machine.
"""

from __future__ import annotations

from dataclasses import replace

from kernsel.data import Dataset
from kernsel.numerics.whole.costs import costs, spoken
from kernsel.parts import GRAM_BYTES
from kernsel.search.deadline import SEARCH, Deadline, deadline_in_force, limited_time
from kernsel.selection import large
from kernsel.selection.kernel_source import AUTO, kernels_given
from kernsel.selection.limits import (
    CLIMB,
    RATES,
    SIZES,
    Limits,
    Sizes,
    can_be_large,
    final_fit,
    fits_whole,
    has_bias,
    least_costs,
    machine_rates,
)
from kernsel.selection.plan import Plan
from kernsel.selection.run import TIME

SEARCHED = {"quick": 1e11, "normal": 5e11, "thorough": 1.5e12}
"""What the search on ``Sizes.few`` rows takes with the learning of relevances, in products of float64: measured on
tables of 8 to 12 features, and mostly factors of a thousand rows or two."""

LIBRARIES = 4e8
"""Bytes that Python takes with its libraries, and with compiled loops."""


def foretell(dataset: Dataset, plan: Plan, sizes: Sizes = SIZES) -> str | None:
    """Return what a selection will take, as a person would say it; None where no whole kernel is in question."""
    if not any(can_be_large(dataset, replace(plan, effort=effort), sizes) for effort in CLIMB):
        return None
    efforts = [plan.effort, *(effort for effort in CLIMB if effort != plan.effort)]
    with limited_time(Deadline.read(plan.time)):
        said = [_expected(dataset, replace(plan, effort=effort), sizes) for effort in efforts]
    others = [f"--effort {effort}: {text}" for effort, text in zip(efforts[1:], said[1:], strict=True) if text]
    rows = f"the whole kernel of {dataset.n} rows"
    first = f"{said[0]} for {rows}" if said[0] else f"a low rank is taken; {rows} takes {_one_fit(dataset, plan)}"
    given = "" if plan.time is None else f" ({plan.time} given)"
    return f"work{given}: {'; '.join([first, *others])}"


def _expected(dataset: Dataset, plan: Plan, sizes: Sizes) -> str | None:
    """Return time and memory of a selection by the whole kernel; None where that is not taken."""
    if not can_be_large(dataset, plan, sizes):
        return None
    limits, rates = Limits.of(plan.effort), machine_rates()
    final = final_fit(dataset, plan, limits)
    if final is None:
        return None
    spent = 0.0
    for rows in large.subset_sizes(sizes.few, dataset.n - large.count_outside(dataset.n, sizes.few)):
        one = costs(rows, dataset.d, dataset.k, has_bias(dataset)).seconds(limits.rates)
        if 2 * large.TRIED * one > limits.climb - spent:
            break
        spent += 2 * large.TRIED * one
    climb = spent * limits.rates.products64 / rates.products64
    seconds = SEARCHED[plan.effort] / rates.products64 + climb + final.costs.seconds(rates)
    memory = max(final.costs.memory, GRAM_BYTES * sizes.few**2) + LIBRARIES
    return f"{spoken(min(seconds, limits.deadline.left))}, {memory / 1e9:.1f} GB"


def affordable(dataset: Dataset, plan: Plan, sizes: Sizes = SIZES) -> tuple[Plan, list[str]]:
    """Return a plan whose effort has the time that is given, with a note if that is less than was asked for.

    The learning of relevances is not cut off: it is done or not.
    """
    deadline = deadline_in_force()
    if not deadline.is_set or AUTO not in kernels_given(plan) or plan.effort not in SEARCHED:
        return plan, []
    share = min(1.0, dataset.n / sizes.few) ** 3 / machine_rates().products64
    efforts = list(SEARCHED)[: list(SEARCHED).index(plan.effort) + 1]
    effort = next((e for e in reversed(efforts) if SEARCHED[e] * share <= SEARCH * deadline.left), efforts[0])
    if effort == plan.effort:
        return plan, []
    takes = spoken(SEARCHED[plan.effort] * share)
    return replace(plan, effort=effort), [f"{TIME}effort {effort}, for the search of {plan.effort} takes {takes}"]


def whole_left_out(dataset: Dataset, plan: Plan, sizes: Sizes = SIZES) -> list[str]:
    """Return a note on what the whole kernel would have taken where it was left to a low rank."""
    if not can_be_large(dataset, plan, sizes) or fits_whole(dataset, plan):
        return []
    why = "the time that is given" if deadline_in_force().is_set else f"effort {plan.effort}"
    return [
        f"rank: a low one, for the whole kernel of {dataset.n} rows is not within {why}; it would take "
        f"{_one_fit(dataset, plan)} (rank whole)"
    ]


def _one_fit(dataset: Dataset, plan: Plan) -> str:
    """Return what one fit to all rows takes, with one fold held out, at the fixed rates."""
    return least_costs(dataset, plan).describe(RATES)
