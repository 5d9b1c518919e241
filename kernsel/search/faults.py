"""What becomes of a candidate whose kernel, learner or criterion fails: it has failed, with the reason, no other has.

A part of kernsel's own may overflow or meet a singular matrix. A plugin's may do anything: raise, end the process,
return what can't be used, write to what it was given, or never return: with a time that candidates may take it is left
behind. Errors that kernsel raises on purpose, such as those of parts that don't fit together, are no faults of a
candidate and end the search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from kernsel import registry
from kernsel.criteria import Scores
from kernsel.criteria.base import Criterion
from kernsel.errors import KernselError, PluginFailure, SelectionError
from kernsel.folds.partition import Partition
from kernsel.kernels import Kernel
from kernsel.numerics.runtime.patience import NotDone, done_within
from kernsel.paths import Path
from kernsel.search.candidate import Candidate
from kernsel.text import first_line

Work = Callable[[], list[Candidate]]


def contained(
    work: Work, failed: Callable[[str], list[Candidate]], *parts: object, within: float | None = None
) -> list[Candidate]:
    """Return what ``work`` returns, or where it fails what ``failed`` makes of the reason.

    Parameters
    ----------
    failed : callable
        ``reason -> candidates``.
    *parts : Kernel, Learner or Criterion
        What work is done with.
    within : float, optional
        Seconds after which work that has not returned has failed; none by default.

    Raises
    ------
    KernselError
        It was raised on purpose.
    Exception
        No plugin has a part in it, and it isn't one of arithmetic.
    """
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # what comes of it is looked at
            candidates = work() if within is None else done_within(within, work)
        return [_named(candidate, parts) for candidate in candidates]
    except NotDone as error:
        return failed(f"{registry.maker_at(error.frames, *parts) or 'the work'} {error}")
    except SelectionError as error:
        return [_named(candidate, parts) for candidate in failed(str(error))]
    except (KernselError, MemoryError):
        raise
    except (ArithmeticError, np.linalg.LinAlgError) as error:
        return failed(registry.blame(error, *parts) or f"the numbers went out of range ({first_line(error)})")
    except (Exception, SystemExit) as error:
        reason = registry.blame(error, *parts)
        if reason is None:
            raise
        return failed(reason)


@contextmanager
def naming_plugins() -> Iterator[None]:
    """Turn what a plugin raises, or an end of the process that it asks for, into one error that names it.

    Raises
    ------
    PluginFailure
        A plugin failed outside of any candidate.
    """
    try:
        yield
    except KernselError:
        raise
    except (Exception, SystemExit) as error:
        reason = registry.blame(error)
        if reason is None:
            raise
        raise PluginFailure(f"{reason}; tell its authors, or do without it") from error


def _named(candidate: Candidate, parts: Sequence[object]) -> Candidate:
    """Return a candidate; of one that failed the reason says which plugins' parts it was made of."""
    if candidate.failed is None:
        return candidate
    makers = [maker for part in parts if (maker := registry.maker_of(part))]
    return replace(candidate, failed=f"{candidate.failed} ({', '.join(makers)})") if makers else candidate


def check_diagonal(kernel: Kernel, rows: Partition) -> None:
    """Raise SelectionError unless k(x, x) is finite at every row: no other value of the kernel is larger."""
    with np.errstate(over="ignore", invalid="ignore"):
        diagonal = np.asarray(rows.diagonal(kernel))
    if diagonal.shape != (rows.n,) or diagonal.dtype.kind not in "biuf":
        raise TypeError(f"diag has type {diagonal.dtype} and shape {diagonal.shape} in place of ({rows.n},)")
    if not np.isfinite(diagonal).all():
        raise SelectionError("the kernel is not finite at every row")


def checked_scores(criterion: Criterion, path: Path) -> Scores:
    """Return the scores of a path; a plugin's criterion is checked for what it returns, and what it writes to.

    Raises
    ------
    TypeError
        What it returns can't be used.
    PluginFailure
        It changed the targets.
    """
    maker = registry.maker_of(criterion)
    if maker is None:
        scores: Scores = criterion.score(path)
        return scores
    Y = path.rows.Y.copy()
    try:
        scores = criterion.score(path)
    finally:
        if not np.array_equal(Y, path.rows.Y):
            raise PluginFailure(
                f"{maker} changed the targets that it was given, so that no score can be trusted; tell its authors, or "
                "use another criterion"
            )
    if not isinstance(scores, Scores):
        raise TypeError(f"score returned {type(scores).__name__} in place of Scores")
    score = np.asarray(scores.score)
    if score.shape != path.lams.shape or score.dtype.kind not in "biuf" or len(scores.failed) != score.size:
        raise TypeError(f"score returned {score.dtype} of shape {score.shape} for {path.lams.size} values of lambda")
    return scores
