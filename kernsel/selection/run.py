"""One selection from its plan to its result: search, verify, choose, refit, report."""

from __future__ import annotations

import time
from collections.abc import Sequence

from kernsel.data import Dataset
from kernsel.errors import OptionError, SelectionError
from kernsel.kernels import Kernel
from kernsel.numerics.runtime.threads import one_blas_thread
from kernsel.search.board import Board
from kernsel.search.candidate import Key
from kernsel.search.certificate import Proof
from kernsel.search.deadline import NEVER, TimeIsUp, deadline_in_force
from kernsel.search.ranking import rank
from kernsel.search.refine import refined
from kernsel.search.scales import Family
from kernsel.search.walk import Walk
from kernsel.selection.document import Outcome, make_selection
from kernsel.selection.heldout_choice import hold_out
from kernsel.selection.plan import Plan
from kernsel.selection.procedure import Comparison, Procedure, compare_verified, whole_selection
from kernsel.selection.refit import fit_choice
from kernsel.selection.result import Selection
from kernsel.selection.setting import Setting, resolve
from kernsel.selection.unseen import Unseen, rerank
from kernsel.types import Progress

CERTIFY = 0.7
"""Share of the time left after the search that exact refits for a certificate may take: the last fit follows."""

TIME = "time: "
"""How notes on what there was no time for begin."""


@one_blas_thread()  # the work is cut into kernels, fits and folds; BLAS threads on top would be in the way
def run(
    dataset: Dataset,
    plan: Plan,
    kernels: Sequence[str | Kernel | Family],
    unseen: Unseen | None = None,
    progress: Progress | None = None,
) -> Selection:
    """Choose among kernels whose relevances have values: search, verify the leaders exactly, refit the winner.

    Parameters
    ----------
    dataset : Dataset
        From ``kernsel.data``.
    plan : Plan
        Its kernels and relevances are not read here.
    unseen : Unseen, optional
        Predicts the rows of each fold for a choice whose kernel has seen them, by one that hasn't: what is reported of
        held-out rows is of these outputs.

    Raises
    ------
    OptionError, IncompatibleError, PluginError, SelectionError
        As :func:`kernsel.select`.
    """
    times = [time.perf_counter()]
    setting = resolve(dataset, plan, kernels, progress)
    search = setting.begin(progress)
    board = search.board
    until, searched = board.deadline, _search(search, setting)
    times.append(time.perf_counter())
    proof = None if setting.certify is None else Proof(board, setting.certify, deadline_in_force().share(CERTIFY))
    ranking = rank(search, plan.verify, setting.comparable, until, proof)
    _check_any(board, setting.search.name)
    reranked = rerank(unseen, ranking.candidates, board, setting.rule)
    candidates = reranked.candidates
    chosen = hold_out(setting, board, candidates[0], reranked.outputs)
    procedure = whole_selection(board, setting.dataset, candidates, setting.rule, setting.folds[0], chosen, unseen)
    times.append(time.perf_counter())
    certificate = None if proof is None else proof.certificate(candidates[0].key, len(_unseen(search)))
    fitted = fit_choice(setting, board, chosen)
    before = candidates[0].error
    if setting.calibration == "softmax" and isinstance(procedure, Procedure) and before is not None:
        procedure = procedure.moved((fitted.best.error or 0.0) - before)  # outputs were coupled after the choice
    compared: Comparison | None = procedure if isinstance(procedure, Procedure) else None
    if compared is None and reranked.outputs is None:
        compared = compare_verified(board, setting.dataset, candidates, setting.folds[0])
    candidates = [fitted.best, *candidates[1:]]
    notes = [*setting.notes, *searched, *reranked.notes]
    outcome = Outcome(search, ranking, candidates, procedure, compared, fitted, notes, times, certificate)
    return make_selection(setting, outcome)


def _search(search: Walk, setting: Setting) -> list[str]:
    """Search, and leave the grid if that is asked for, until it is done or has no time left; return notes."""
    try:
        search.run()
    except TimeIsUp:
        return [_describe_unseen(search)]
    finally:
        search.board.deadline, until = NEVER, search.board.deadline  # the rest is for verification
    _check_any(search.board, setting.search.name)
    if setting.refine is None:
        return []
    return [refined(search, setting.refine, setting.budget, until)]


def _describe_unseen(search: Walk) -> str:
    """Say how many candidates of its grids a search has not come to."""
    found, unseen = search.board.found, len(_unseen(search))
    total, lower = sum(len(list(axes.points())) for axes in search.grids), sum(not e.in_force for e in found.values())
    return (
        f"{TIME}it ended with {unseen} of {total} candidates unseen"
        + f", and {lower} seen at a lower rank only" * bool(lower)
        + "; the choice depends on the machine"
    )


def _unseen(search: Walk) -> list[Key]:
    """Return the candidates of the grids of a search that it has not come to."""
    return [key for axes in search.grids for key in axes.points() if key not in search.board.found]


def _check_any(board: Board, search: str) -> None:
    """Raise where no candidate is left."""
    if not board.found:
        raise OptionError(f"search '{search}' scored no candidate: use another one, such as grid")
    first = board.candidates()[0]
    if first.failed is not None:
        raise SelectionError(f"all {len(board.found)} candidates failed; the first one: {first.failed}")
