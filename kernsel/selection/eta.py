"""Choose the weight eta of a penalty by cross-validation, as KSJ (Section VII-A) does.

A penalised criterion scores ``fit + eta penalty``: one search gives the winners for all eta. Three times a third of the
rows is held out, the others are searched, and each winner's error on the third counts against its eta.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from kernsel.criteria.base import Criterion
from kernsel.data import Dataset
from kernsel.errors import IncompatibleError, OptionError, SelectionError
from kernsel.folds import make_folds
from kernsel.folds.partition import Partition
from kernsel.heldout.errors import Errors
from kernsel.journal import remember
from kernsel.kernels import Kernel
from kernsel.paths import make_path
from kernsel.protocols import Learner
from kernsel.representation.problem import Problem
from kernsel.representation.ranks import Rank
from kernsel.search.axes import Grid
from kernsel.search.board import Board
from kernsel.search.candidate import Candidate, Key
from kernsel.search.grid import GridSearch
from kernsel.search.sample import make_designs
from kernsel.text import listing
from kernsel.types import Mask, Progress

ETAS = (2.0**-5, 1.0, 2.0**5, 2.0**10)
"""The values that KSJ tries."""

PARTS = 3


def choose_eta(
    criterion: Criterion,
    rows: Partition,
    dataset: Dataset,
    kernels: Sequence[Kernel],
    grid: Grid,
    learner: Learner,
    rank: Rank,
    progress: Progress | None = None,
    timeout: float | None = None,
) -> tuple[Any, dict[float, float]]:
    """Give a criterion whose ``eta`` is None the value whose winners have the lowest held-out error.

    Ties go to the lower held-out loss, then to the value nearest to 1.

    Parameters
    ----------
    criterion : Criterion
        A dataclass with a field ``eta``, whose scores have the terms ``fit`` and ``penalty``, the latter in proportion
        to eta.
    rows : Partition
        All rows. Their folds, without a third of the rows, are those of the inner searches.
    dataset : Dataset
        Of the same rows, in its own order.
    grid : str or mapping
        As for :func:`kernsel.search.sample.make_designs`; it is neither extended nor searched by halving.
    rank : LowRank, Whole or None
        Of the representation that the inner searches score at.
    timeout : float, optional
        Of the board of the inner searches.

    Returns
    -------
    criterion : Criterion
        The same with its eta.
    errors : dict of float to float
        Mean held-out error by eta.

    Raises
    ------
    OptionError
        The rows can't be held out in three parts.
    IncompatibleError
        The criterion's scores have no such terms.
    SelectionError
        All candidates failed.
    """
    if rows.training is not None:
        raise OptionError(
            f"criterion '{criterion.name}': eta can't be chosen by cross-validation where a fold's fit is not trained "
            "on all other rows; give a number"
        )
    errors_of, found = Errors.of(dataset), []
    for held in deal_parts(rows, dataset):
        inner, whole = leave_out(rows, held), hold_out(rows, held)
        board = Board([inner], replace(criterion, eta=1.0), errors_of, rank.within(inner.n), progress=progress)
        board.timeout = timeout
        winners = _winners(board, kernels, grid, learner)
        judged = {}
        for winner in winners:
            given = errors_of, whole, winner.key, rank
            judged[winner.key] = remember("eta", given, partial(_error, *given))
        found.append([judged[winner.key] for winner in winners])
    errors, losses = np.mean(found, axis=0).T
    best = min(range(len(ETAS)), key=lambda i: (errors[i], losses[i], abs(np.log2(ETAS[i]))))
    return replace(criterion, eta=ETAS[best]), dict(zip(ETAS, errors.tolist(), strict=True))


def describe_eta(eta: float, errors: Mapping[float, float]) -> str:
    """Say in one line which eta was chosen and why."""
    listed = listing(f"{error:.4g} with {each:g}" for each, error in errors.items())
    return f"eta: {eta:g}, by the held-out error of what it selects, on {PARTS} folds ({listed})"


def deal_parts(rows: Partition, dataset: Dataset) -> list[Mask]:
    """Deal the rows, or whole groups of them, to three parts that are independent of the folds."""
    try:
        number = make_folds(PARTS, dataset, (rows.seed, 0, 1)).number[rows.order]
    except OptionError as error:
        raise OptionError(f"eta is chosen on {PARTS} folds, but {error}; or give eta a number") from error
    return [number == part for part in range(PARTS)]


def leave_out(rows: Partition, held: Mask) -> Partition:
    """Return the rows but those that are held out, in the folds they were in."""
    kept = np.flatnonzero(~held)
    starts = np.unique(np.searchsorted(kept, rows.starts))
    if starts.size == 1 or np.diff(starts).max() == kept.size:
        raise OptionError("eta can't be chosen by cross-validation on so few rows or folds; give a number")
    return rows.taken(kept, starts)


def hold_out(rows: Partition, held: Mask) -> Partition:
    """Return all rows, of which those that are held out are the only fold."""
    return rows.taken(np.argsort(~held, kind="stable"), np.array([0, np.count_nonzero(held)]))


def _winners(board: Board, kernels: Sequence[Kernel], grid: Grid, learner: Learner) -> list[Candidate]:
    """Return the best candidate by each eta, from one search with eta = 1."""
    GridSearch(board, make_designs(kernels, grid, board.rows, learner, board.timeout), extend=False).run()
    standing = [candidate for candidate in board.candidates() if candidate.failed is None]
    if not standing:
        reason = board.candidates()[0].failed
        raise SelectionError(f"eta can't be chosen: all candidates failed on two thirds of the rows: {reason}")
    if not standing[0].terms.keys() >= {"fit", "penalty"}:
        raise IncompatibleError(
            f"criterion '{board.criterion.name}' leaves eta free, but its scores have no terms fit and penalty that it "
            "could be chosen by: give eta a number"
        )

    def scored(candidate: Candidate, eta: float) -> Candidate:
        return replace(candidate, score=candidate.terms["fit"] + eta * candidate.terms["penalty"])

    return [min((scored(candidate, eta) for candidate in standing), key=lambda c: c.order) for eta in ETAS]


def _error(errors: Errors, whole: Partition, key: Key, rank: Rank) -> tuple[float, float]:
    """Return error and loss of a candidate on the fold that is held out, by an exact refit on the other rows."""
    kernel, learner, lam = key
    held = make_path(Problem(whole, kernel, rank), learner, [lam]).exact()
    if held.failed[0] is not None:
        return np.inf, np.inf
    F = held.f[:, 0]
    losses = learner.loss.value(whole.Y, F).mean(axis=0)
    return float(errors.mean(whole, F)[0]), float(whole.mean(losses))
