"""A selection of the square loss at a low rank on rows that are never in one place.

A random sample of the rows comes here, and an ordinary selection on it gives the encoding of columns, the units of the
target, and the kernels that lead. For each of these, landmarks are chosen among the sample; one pass over the parts of
all rows sums up the products of features by fold, and a second one the held-out losses of every lambda. So what is
chosen is chosen by exact held-out losses of all rows, and nothing but the sample, landmarks and sums travels. The
model, too, is made of the sums, and keeps them: see ``kernsel.model.sufficient``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from kernsel.criteria import CV
from kernsel.data import Dataset
from kernsel.errors import OptionError, SelectionError
from kernsel.heldout.margins import describe_margins
from kernsel.journal import journaling, run_header
from kernsel.kernels import Kernel
from kernsel.model.extrapolation import reach
from kernsel.numerics.blocks.costs import SAMPLE
from kernsel.numerics.runtime.threads import one_blas_thread
from kernsel.parts import read_learner
from kernsel.protocols import Learner
from kernsel.representation.ranks import LowRank
from kernsel.search.candidate import Candidate
from kernsel.search.choice import Rule, choose
from kernsel.selection.again import with_origin
from kernsel.selection.carry_out import carry_out
from kernsel.selection.document import describe_choice, timing
from kernsel.selection.drivers import Driver
from kernsel.selection.kernel_source import AUTO
from kernsel.selection.parts.allrows import AllRows, Scored
from kernsel.selection.parts.encode import find_encoding, in_robust_units
from kernsel.selection.parts.work import (
    Coding,
    Drawn,
    Facts,
    draw,
    encode_part,
    find_facts,
    merge_drawn,
    merge_facts,
    same,
)
from kernsel.selection.plan import WORDS, Plan
from kernsel.selection.result import Selection
from kernsel.types import Array, Progress

RANK = 1000
"""Landmarks, unless a number is given."""

LEAST_SAMPLE = 5000
"""Rows of the sample at least, for encoding, units and the first search."""

LEADING = 3
"""Kernels of the selection on the sample that are looked at on all rows."""

SMALLER = (0.25, 0.25**2, 0.25**3)
"""More rows want a smaller lambda than the sample's: these multiples of its least good one are looked at as well."""

UNDERSTOOD = {
    *("learner", "kernel", "relevances", "effort", "folds", "grid", "search", "verify", "rank", "seed", "extend"),
    *("choose", "within", "one_se", "clip"),
    *("task", "standardize", "drop", "keep", "categorical", "numeric", "ordinal", "missing", "categories", "rare"),
    *("memory", "journal"),
}
"""Options that rows in parts have; of others, everything but the default is refused."""


def check_plan(plan: Plan) -> None:
    """Refuse options that rows in parts don't have."""
    refused = [name for name in WORDS if name not in UNDERSTOOD and getattr(plan, name) != getattr(Plan, name)]
    if refused:
        raise OptionError(f"{', '.join(refused)}: rows in parts don't have that yet; leave it out")
    if plan.learner == AUTO:
        raise OptionError("learner 'auto': rows in parts are selected on with one learner; name it, such as klr")
    if not isinstance(plan.folds, int) or plan.folds < 2:
        raise OptionError(f"folds of rows in parts are a number of at least 2, dealt at random, not {plan.folds!r}")
    if plan.rank is not None and not isinstance(plan.rank, int):
        raise OptionError(f"the rank of rows in parts is a number of landmarks, not {plan.rank!r}")


@one_blas_thread()  # the last digit would depend on their number
def select_parts(
    parts: Sequence[object],
    driver: Driver,
    plan: Plan,
    weighted: bool = False,
    progress: Progress | None = None,
    begin: Callable[[Dataset], object] | None = None,
) -> Selection:
    """Select on rows in parts.

    Parameters
    ----------
    parts : sequence
        Handles of ``Rows``.
    weighted : bool
        Whether rows have weights.
    begin : callable, optional
        Called with the sample before anything is searched.

    Returns
    -------
    Selection
        That of the sample, with candidates, errors and model of all rows; there are no held-out outputs of each row.
    """
    check_plan(plan)
    started = time.perf_counter()
    rank = plan.rank if isinstance(plan.rank, int) else RANK
    size = max(LEAST_SAMPLE, SAMPLE * rank)
    merge = partial(merge_drawn, size=size)
    encoding = find_encoding(driver, parts, plan)
    t = int(plan.folds) if isinstance(plan.folds, int) else 0
    coding = driver.share(Coding, *encoding.coding(t, plan.seed))
    sample: Drawn = driver.reduce(draw, parts, merge, coding, size)
    dataset = encoding.dataset(sample)
    first = replace(plan, rank=min(rank, dataset.n), intervals="none")
    learner = read_learner(plan.learner, dataset.task)
    rule = Rule.read(plan.rule, plan.within, dataset.task, CV())
    if begin is not None:
        begin(dataset)
    encoded, dataset = _encode(driver, parts, coding, dataset, learner, encoding.deviation)
    header = partial(run_header, "select", dataset, plan.options)
    with journaling(plan.journal, header):
        found = carry_out(dataset, first, progress)
        searched = time.perf_counter()
        facts: Facts = driver.reduce(find_facts, encoded, merge_facts)
        limits = facts.limits if dataset.task == "regression" and plan.clip else None
        everything = AllRows(driver, encoded, facts, dataset, found.best.learner, LowRank(rank), plan.seed, t, limits)
        leading = list(dict.fromkeys(c.kernel for c in found.candidates if c.compares))[:LEADING]
        scored: list[Scored] = []
        for place, kernel in enumerate(leading):
            if progress is not None:
                progress(place, len(leading), f"all {facts.rows} rows")
            scored += everything.score(kernel, _lambdas(found.candidates, kernel), weighted)
        verified = time.perf_counter()
        result = with_origin(_selection(found, scored, rule, everything), facts.digest, plan)
        times = timing([started, searched, verified])
        total = times["total"] + found.timing.get("before", 0.0)
        return replace(result, timing={**found.timing, **times, "total": total})


def _encode(
    driver: Driver, parts: Sequence[object], coding: object, sample: Dataset, learner: Learner, deviation: float
) -> tuple[list[Any], Dataset]:
    """Return handles of encoded parts, and the sample, both with the target in the learner's units."""
    encoded = driver.each(encode_part, parts, coding)
    units = getattr(learner, "in_robust_units", "")
    if not units or sample.task != "regression" or sample.k > 1:
        return encoded, sample
    return in_robust_units(driver, encoded, sample, units, deviation)


def _lambdas(candidates: Sequence[Candidate], kernel: Kernel) -> Array:
    """Return the lambda to look at for a kernel, descending: those of the sample, and smaller ones."""
    own = [c for c in candidates if c.kernel == kernel and c.compares]
    best = min(own, key=lambda c: c.value)
    return np.array(sorted({*(c.lam for c in own), *(best.lam * factor for factor in SMALLER)}, reverse=True))


def _selection(found: Selection, scored: list[Scored], rule: Rule, rows: AllRows) -> Selection:
    """Return the selection on the sample with what was found on all rows in its place, chosen by the rule."""
    facts, sample = rows.facts, rows.sample
    candidates = sorted((each.candidate for each in scored), key=lambda each: each.order)
    if candidates[0].failed is not None:
        raise SelectionError(f"all {len(candidates)} candidates failed on all rows: {candidates[0].failed}")
    rule = replace(rule, null=scored[0].null)
    choice = choose(rule, candidates, verify=same, most=0)
    best, kept, features, fit, _ = next(each for each in scored if each.candidate is choice.best)
    model = replace(
        found.model,
        kernel=best.kernel,
        rows=features.points,
        coefficients=np.ascontiguousarray(fit.coefficients),
        bias=fit.bias,
        limits=rows.limits,
        margins=None,  # those of the sample are not what predictions and errors of all rows have
        calibration=None,
        sufficient=kept,
        reach=reach(best.kernel, sample.X, features.points, None),
        provenance={
            **found.model.provenance,
            "lambda": best.lam,
            "rows": facts.rows,
            "error": best.error,
            "error_se": best.error_se,
        },
    )
    note = f"rows in parts: kernels are of a random sample of {found.data['rows']} of {facts.rows} rows"
    unknown = "error of the whole selection: not known, for losses of rows in parts are summed up where these are"
    margins = found.data["margins"]
    of_sample = (unknown.split(":")[0], *([] if margins is None else [describe_margins(np.array(margins))]))
    notes = [each for each in found.data["notes"] if not each.startswith(of_sample)]
    data = {
        **found.data,
        "rows": facts.rows,
        "weight": facts.weight,
        "folds": rows.folds,
        "holdout": f"{rows.folds} folds, dealt at random",
        "representation": f"rank {features.rank} of n = {facts.rows} in parts",
        "rank": features.rank,
        "choice": describe_choice(rule, choice, CV.name, len(candidates)),
        "tied": choice.tied,
        "baseline": None,
        "margins": None,
        "notes": [*notes, note, unknown],
    }
    return replace(
        found,
        best=best,
        candidates=[best, *(each for each in candidates if each is not best)],
        minimum=choice.lowest,
        criterion=CV.name,
        model=model,
        heldout=np.zeros(0),
        outputs=np.zeros(0),
        probabilities=None,
        data=data,
        conversions=best.conversions(facts.weight),
        procedure=None,
        comparison=None,
    )
