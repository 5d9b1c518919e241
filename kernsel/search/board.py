"""The board of a search: its candidates, what is known of each, and the held-out losses behind that.

A board scores candidates by the criterion and verifies them by exact refits. It knows no grid: which candidates are
looked at is the matter of a search.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernsel.criteria import HeldOutCriterion, Scores
from kernsel.criteria.base import Criterion, unless_finite
from kernsel.folds.partition import Partition, shares_of
from kernsel.heldout.errors import Errors
from kernsel.heldout.ranges import FoldRanges, add_by_fold, range_folds
from kernsel.heldout.standard_error import standard_error
from kernsel.journal import is_kept, remember
from kernsel.kernels import Kernel, Statistics, short
from kernsel.numerics.runtime.threads import share_each, threads
from kernsel.paths import Fits, Path, make_path
from kernsel.protocols import Learner, refits_exactly
from kernsel.representation.features import Landmarks
from kernsel.representation.problem import Problem, Problems
from kernsel.representation.ranks import Full, LowRank, Rank, Whole
from kernsel.search import jobs
from kernsel.search.candidate import Candidate, Key, averaged, number_or_none
from kernsel.search.deadline import NEVER, Deadline, TimeIsUp
from kernsel.search.faults import check_diagonal, checked_scores, contained
from kernsel.search.pieces import score_in_pieces
from kernsel.system import interrupts
from kernsel.types import Array, Progress

if TYPE_CHECKING:
    from kernsel.heldout.metrics import Metrics

Losses = NDArray[np.float32]

KEPT_ROWS = 20_000
"""Held-out losses of all candidates are kept of so many rows at the most: 600 candidates are then 100 MB."""

FEW_ROWS = 2**15
"""So many rows are enough to leave a candidate behind at a lower rank."""


@dataclass(eq=False)
class ScoredPath:
    """What scoring the candidates of one kernel and one learner leaves.

    Parameters
    ----------
    figures : list of dict
        The fields of each candidate, kernel and learner apart.
    losses : dict
        As those of a board, by lambda and the number of the deal.
    near : dict
        By the number of the deal, as those of a board.
    enclosed : dict
        By lambda and the number of the deal, as those of a board.
    """

    figures: list[dict[str, Any]] = field(default_factory=list)
    losses: dict[float, dict[int, tuple[Losses, Losses]]] = field(default_factory=dict)
    near: dict[int, dict[float, Array]] = field(default_factory=dict)
    enclosed: dict[float, dict[int, FoldRanges]] = field(default_factory=dict)


PathsOfKernel = tuple[Kernel, Mapping[Learner, list[float]]]


@dataclass(eq=False)
class Board:
    """Candidates of a selection by their keys, each with its figures.

    Parameters
    ----------
    deals : list of Partition
        The rows, once for each time that they were dealt to folds; figures are means over the deals, by their shares.
    rank : Full, Whole or LowRank
        The representation in force.
    metrics : Metrics or None
        Further figures of candidates that are verified.
    progress : callable or None
        Called as ``progress(done, total, text)``.
    deadline : Deadline
        Until which candidates are scored.
    timeout : float or None
        Seconds after which candidates of one kernel and learner that are not scored, or verified, have failed.
    outputs : dict of key to list of (k, n) arrays
        Held-out outputs of what was verified, on each deal.
    losses : dict
        By key, then by the number of the deal: what the score is the mean of, and the errors, both (held,).
    near : dict
        By deal, kernel and learner, then by lambda: solutions (k, .) that later fits start from: ``Path.settled``.
    encloses : bool
        Whether intervals are made that contain exact scores.
    enclosed : dict
        By key, then by the number of the deal: these intervals.
    fits : dict
        By the number of the deal, kernel and learner: lambda, and the fits along it that intervals were made of.
    kept_rows : int
        Held-out losses of all candidates are kept of so many rows, at most.
    few_rows : int
        At a lower rank candidates are scored on so many rows, at most.
    """

    deals: list[Partition]
    criterion: Criterion
    errors: Errors
    rank: Rank = field(default_factory=Full)
    metrics: Metrics | None = None
    progress: Progress | None = None
    deadline: Deadline = NEVER
    timeout: float | None = None
    found: dict[Key, Candidate] = field(default_factory=dict)
    outputs: dict[Key, list[Array]] = field(default_factory=dict)
    losses: dict[Key, dict[int, tuple[Losses, Losses]]] = field(default_factory=dict)
    near: dict[tuple[Partition, Kernel, Any], dict[float, Array]] = field(default_factory=dict)
    problems: Problems = field(default_factory=Problems)
    encloses: bool = False
    enclosed: dict[Key, dict[int, FoldRanges]] = field(default_factory=dict)
    fits: dict[tuple[int, Kernel, Any], tuple[Array, Fits]] = field(default_factory=dict)
    kept_rows: int = KEPT_ROWS
    few_rows: int = FEW_ROWS

    @property
    def rows(self) -> Partition:
        """The rows as they were dealt first."""
        return self.deals[0]

    @cached_property
    def shares(self) -> Array:
        """The share of each deal in a mean over all that is held out, (deals,)."""
        return shares_of(self.deals)

    def candidates(self) -> list[Candidate]:
        """Return all candidates so far, best first."""
        return sorted(self.found.values(), key=lambda candidate: candidate.order)

    def score_in_force(self, candidates: Iterable[Candidate]) -> bool:
        """Score those that were left at a lower rank at the representation in force; say whether there were any."""
        left = [candidate.key for candidate in candidates if not candidate.in_force]
        self.score(left)
        return bool(left)

    def score(self, keys: Iterable[Key], lower: int | None = None) -> None:
        """Score candidates at the representation in force, or at a lower rank; one kernel's share its matrices.

        With a deadline the kernels that share all threads are scored at a time, and TimeIsUp is raised when it is past;
        but the first ones are scored in any case, for there is no choice without a candidate.
        """
        if not self.deadline.is_set:
            self._score(keys, lower)
            return
        of_kernel: dict[Kernel, list[Key]] = {}
        for key in keys:
            of_kernel.setdefault(key[0], []).append(key)
        kernels, step = list(of_kernel.values()), threads()
        for first in range(0, len(kernels), step):
            if self.found and not self.deadline.left:
                raise TimeIsUp
            self._score([key for each in kernels[first : first + step] for key in each], lower)

    def _score(self, keys: Iterable[Key], lower: int | None) -> None:
        rows, rank, landmarks = self.rows, self.rank, None
        if lower is not None:
            rows, rank = self._few, LowRank(lower)
            landmarks = _uniform_landmarks(rows, lower)
        lams: dict[Kernel, dict[Learner, list[float]]] = {}
        for kernel, learner, lam in keys:
            lams.setdefault(kernel, {}).setdefault(learner, []).append(lam)
        # Many lambda of a kernel take longest: first, so that no thread is left with them alone.
        work = sorted(lams.items(), key=lambda item: -sum(map(len, item[1].values())))
        total, done = sum(len(each) for paths in lams.values() for each in paths.values()), 0

        def on_kernel(item: PathsOfKernel) -> tuple[Kernel, list[Candidate]]:
            kernel, by_learner = item
            problem = (
                self.problems.on(rows, kernel, rank) if landmarks is None else Problem(rows, kernel, rank, landmarks)
            )
            scored = [self._score_path(problem, learner, each) for learner, each in by_learner.items()]
            return kernel, [c for candidates in scored for c in candidates]

        def on_jobs(_: object, work: Sequence[PathsOfKernel]) -> Iterator[tuple[Kernel, list[Candidate]]]:
            bare = replace(self, metrics=None, progress=None, deadline=NEVER, found={}, outputs={}, losses={}, near={},
                           problems=Problems())  # fmt: skip
            for (kernel, by_learner), paths in zip(work, jobs.spread(score_kernel, bare, work), strict=True):
                problem, candidates = self.problems.on(rows, kernel, rank), []
                for (learner, each), path in zip(by_learner.items(), paths, strict=True):
                    candidates += self._score_path(problem, learner, each, path)
                yield kernel, candidates

        # The whole kernel keeps all threads, and the memory, busy by itself.
        each_kernel: Callable[..., Iterator[tuple[Kernel, list[Candidate]]]]
        each_kernel = map if isinstance(rank, Whole) else share_each
        alone = is_kept() or self.encloses  # a journal, and fits that a proof goes on from, are of this process
        if landmarks is None and not isinstance(rank, Whole) and jobs.in_force() and not alone:
            each_kernel = on_jobs
        interrupts.check()
        for kernel, candidates in each_kernel(on_kernel, work):
            interrupts.check()
            self.found.update({candidate.key: candidate for candidate in candidates})
            done += len(candidates)
            if self.progress is not None:
                self.progress(done, total, short(kernel))

    def _compute_path(self, problem: Problem, learner: Learner, lams: Sequence[float]) -> ScoredPath:
        """Score one candidate for each lambda; where anything fails, candidates that have."""
        kernel, done = problem.kernel, list[ScoredPath]()

        def work() -> list[Candidate]:
            found = ScoredPath()  # of its own: work may be left behind in the middle of it
            check_diagonal(kernel, problem.rows)
            candidates = self._scored(make_path(problem, learner, lams), found)
            done.append(found)
            return candidates

        def failed(reason: str) -> list[Candidate]:
            return [Candidate(kernel, lam, learner=learner, failed=reason) for lam in lams]

        candidates = contained(work, failed, self.criterion, kernel, learner, within=self.timeout)
        return replace(next(iter(done), ScoredPath()), figures=[_figures(each) for each in candidates])

    def _score_path(
        self, problem: Problem, learner: Learner, lams: Sequence[float], known: ScoredPath | None = None
    ) -> list[Candidate]:
        """Return one candidate for each lambda, and keep what scoring them leaves, which may be known already."""
        kernel = problem.kernel

        def compute() -> ScoredPath:
            return self._compute_path(problem, learner, lams) if known is None else known

        def about(found: ScoredPath) -> dict[str, Any]:
            scores = [(each["lam"], each["score"], each["failed"]) for each in found.figures]
            board = f"{problem.rows.n} rows" + ("" if problem.lower_rank is None else f" at rank {problem.lower_rank}")
            parameters = {name: v for name, v in kernel.parameters.items() if isinstance(v, int | float | str)}
            return {"scores": scores, "kernel": short(kernel), "kind": kernel.name, "parameters": parameters,
                    "learner": learner.name, "criterion": self.criterion.name, "board": board}  # fmt: skip

        given = (self.deals, problem.rows, problem.rank, problem.landmarks is None, self.criterion, self.errors)
        found = remember("scored", (*given, *["enclosed"] * self.encloses, kernel, learner, list(lams)), compute, about)
        for lam, deals in found.losses.items():
            self.losses.setdefault((kernel, learner, lam), {}).update(deals)
        for lam, ranges in found.enclosed.items():
            self.enclosed.setdefault((kernel, learner, lam), {}).update(ranges)
        for number, near in found.near.items():
            self.near.setdefault((self.deals[number], kernel, learner), {}).update(near)
        return [Candidate(kernel=kernel, learner=learner, **figures) for figures in found.figures]

    def _scored(self, path: Path, found: ScoredPath) -> list[Candidate]:
        """Return one candidate for each lambda of a path on the first deal; what else is kept of them goes to found."""
        others = [make_path(self._on_deal(path.problem, rows), path.learner, path.lams) for rows in self.deals[1:]]
        for each in (path, *others):
            each.keeps_folds = self.encloses
        deals = [self._scored_on_deal(number, each, found) for number, each in enumerate((path, *others))]
        return [averaged(candidate, self.shares) for candidate in zip(*deals, strict=True)]

    @cached_property
    def _few(self) -> Partition:
        """The rows that candidates are scored on at a lower rank than that in force: one share of every fold."""
        rows = self.rows
        if rows.n <= self.few_rows:
            return rows
        bounds = np.append(rows.starts, rows.n)  # the last part is of rows that no fold holds out
        fold = np.searchsorted(rows.starts, np.arange(rows.n), side="right") - 1
        shuffled = np.lexsort((np.random.default_rng(rows.seed).random(rows.n), fold))
        quota = -(-np.diff(bounds) * self.few_rows // rows.n)
        chosen = np.zeros(rows.n, np.bool_)
        chosen[shuffled[np.arange(rows.n) - bounds[fold] < quota[fold]]] = True
        return rows.restricted(chosen)

    def _on_deal(self, problem: Problem, rows: Partition) -> Problem:
        """Return a problem's kernel at its representation, with its landmarks, on another deal of the rows."""
        landmarks, here = problem.landmarks, problem.rows.order
        if landmarks is None:
            return self.problems.on(rows, problem.kernel, problem.rank)
        if here.size < rows.n:  # the search leaves candidates behind on some of the rows
            few = np.isin(rows.order, here)
            if np.add.reduceat(few[: rows.held], rows.starts[:-1]).all():  # else some fold would have no row left
                rows = rows.restricted(few)
        places = np.argsort(rows.order)
        indices = places[np.searchsorted(rows.order, here[landmarks.indices], sorter=places)]
        return Problem(rows, problem.kernel, problem.rank, Landmarks(indices, Statistics(rows.X, rows.X[indices])))

    def _scored_on_deal(self, number: int, path: Path, kept: ScoredPath) -> list[Candidate]:
        # What certifies looks at the losses of each row, and at intervals of all of them.
        summable = refits_exactly(self.criterion) and not self.encloses
        summed = score_in_pieces(path, self.errors) if summable else None
        scores = checked_scores(self.criterion, path) if summed is None else summed.scores
        held, problem = scores.heldout, path.problem
        score = np.asarray(scores.score, np.float64)
        failed = unless_finite(score, scores.failed)  # a plugin's criterion may not look at that
        loss = np.full(score.shape, np.inf) if scores.loss is None else np.asarray(scores.loss, np.float64)
        columns: dict[str, Any] = {"score": score, "loss": np.where(np.isnan(loss), np.inf, loss)}
        columns |= {"score_se": scores.score_se, "reliability": scores.reliability, "scored_by": scores.scored_by}
        if held is not None:
            error = self.errors.mean(path.rows, held.f) if summed is None else summed.error
            columns |= {"error": error[0], "error_se": error[1]}
            columns |= {"exact": held.exact, "refitted": np.broadcast_to(held.refitted, path.lams.shape)}
        rank = problem.lower_rank
        if scores.values is not None and held is not None and rank is None and path.rows.held <= self.kept_rows:
            errors = self.errors.by_row(path.rows, held.f)
            for k, lam in enumerate(path.lams.tolist()):
                if failed[k] is None:
                    losses = round_losses(path.rows, scores.values[k], errors[k])
                    kept.losses.setdefault(lam, {})[number] = losses
        if rank is None:
            usable = [k for k, reason in enumerate(failed) if reason is None]
            norms = np.full(score.shape, np.nan)
            norms[usable] = float(path.rows.diagonal(problem.kernel).max()) * path.norms(usable, scores.norms)
            columns["norm"] = norms
            kept.near[number] = path.settled()
            if self.encloses:
                self._enclose(number, path, scores, kept)
        lists = {name: np.asarray(column).tolist() for name, column in columns.items() if column is not None}
        found = []
        for k, lam in enumerate(path.lams.tolist()):
            figures: dict[str, Any] = {"failed": failed[k]}
            if failed[k] is None:
                figures = {name: number_or_none(values[k]) for name, values in lists.items()}
                figures["terms"] = {name: float(term[k]) for name, term in scores.terms.items()}
            found.append(Candidate(problem.kernel, lam, learner=path.learner, rank=rank, **figures))
        return found

    def _enclose(self, number: int, path: Path, scores: Scores, kept: ScoredPath) -> None:
        """Keep intervals of what each fold adds to the exact scores of a path, and its fits."""
        assert scores.values is not None
        if not path.learner.loss.square:
            self.fits[number, path.problem.kernel, path.learner] = path.lams, path.fits
        found, loss = path.enclosed, path.learner.loss
        low, high = range_folds(path.rows, loss, found.low, found.high)
        expected, refits = add_by_fold(path.rows, scores.values), found.refitted.sum(axis=0)
        for k, lam in enumerate(path.lams.tolist()):
            if scores.failed[k] is None:
                estimate, sharp = np.clip(expected[k], low[k], high[k]), np.zeros(refits[k].size, np.bool_)
                ranges = FoldRanges(low[k], high[k], estimate, refits[k], sharp)
                kept.enclosed.setdefault(lam, {})[number] = ranges

    def verified(self, leading: Sequence[Candidate]) -> list[Candidate]:
        """Return candidates, in their order, scored again by exact refits at the representation in force."""
        for candidate in leading:  # what an attempt that failed has left
            self.outputs.pop(candidate.key, None)
        deals = [self._verified_on_deal(rows, leading) for rows in self.deals]
        return [averaged(candidate, self.shares) for candidate in zip(*deals, strict=True)]

    def path(
        self, rows: Partition, kernel: Kernel, learner: Learner, lams: Sequence[float], lead_in: bool = False
    ) -> Path:
        """Return a path at the representation in force, from where the fits of the search are."""
        near = self.near.get((rows, kernel, learner))
        return make_path(self.problems.on(rows, kernel, self.rank), learner, lams, lead_in, near)

    def scored_path(self, number: int, kernel: Kernel, learner: Learner, lam: float) -> tuple[Path, int]:
        """Return the path that a candidate was scored on, at one of the deals, and the number of its lambda there."""
        lams, fits = self.fits.get((number, kernel, learner), (np.array([lam]), None))
        if lam not in lams:
            lams, fits = np.array([lam]), None
        path = self.path(self.deals[number], kernel, learner, lams.tolist(), lead_in=fits is None)
        if fits is not None:
            path = path.with_fits(fits)
        return path, int(np.flatnonzero(path.lams == lam)[0])

    def _verified_on_deal(self, rows: Partition, leading: Sequence[Candidate]) -> list[Candidate]:
        # A mean over exact held-out outputs is what verification would find; the outputs are wanted for metrics only.
        of_rows = isinstance(self.criterion, HeldOutCriterion)
        done = {c.key for c in leading if c.exact and of_rows and self.metrics is None}
        result = {c.key: replace(c, verified=c.score) for c in leading if c.key in done}
        together: dict[tuple[Kernel, Learner], list[Candidate]] = {}
        for candidate in leading:
            if candidate.key not in done:
                together.setdefault((candidate.kernel, candidate.learner), []).append(candidate)
        for (kernel, learner), members in together.items():
            path = self.path(rows, kernel, learner, [c.lam for c in members])
            given = rows, kernel, learner, path.lams, self.rank
            held = remember("verified", given, path.exact)
            for k, candidate in enumerate(sorted(members, key=lambda c: -c.lam)):
                reason = held.failed[k]
                result[candidate.key] = (
                    self._verified_by(path, held.f[:, k], candidate)
                    if reason is None
                    else replace(candidate, verified=math.inf, failed=f"not verified: {reason}")
                )
        return [result[candidate.key] for candidate in leading]

    def _verified_by(self, path: Path, outputs: Array, candidate: Candidate) -> Candidate:
        """Return a candidate with the figures of its exact held-out outputs (k, n), which are kept."""
        rows, key = path.rows, candidate.key
        self.outputs.setdefault(key, []).append(outputs)
        F = rows.clipped(outputs)
        losses = path.learner.loss.value(rows.Y, F).mean(axis=0)
        values, penalty = losses, 0.0
        if isinstance(self.criterion, HeldOutCriterion):
            # A penalty doesn't depend on how held-out outputs were made.
            values, penalty = self.criterion.values(path, F), candidate.terms.get("penalty", 0.0)
            if key in self.losses:  # else the criterion kept none of the others, or rows are too many
                self.losses[key][self.deals.index(rows)] = round_losses(rows, values, self.errors.by_row(rows, F))
        error, error_se = self.errors.mean(rows, F)
        return replace(
            candidate,
            verified=float(rows.mean(values)) + penalty,
            score_se=number_or_none(float(standard_error(values, rows.starts, rows.s))),
            loss=float(rows.mean(losses)),
            error=float(error),
            error_se=number_or_none(float(error_se)),
            metrics={} if self.metrics is None else self.metrics.evaluate(rows, rows.clipped_apart(F)),
        )


def round_losses(rows: Partition, values: Array, errors: Array) -> tuple[Losses, Losses]:
    """Return what a candidate's score is the mean of, (n,), and its errors, (held,), in single precision, (held,)."""
    with np.errstate(over="ignore"):  # a candidate whose losses are beyond single precision is left out later
        kept, wrong = values[: rows.held].astype(np.float32), errors.astype(np.float32)
    same = np.array_equal(kept, wrong)  # of the square loss they are one thing
    return kept, kept if same else wrong


def _figures(candidate: Candidate) -> dict[str, Any]:
    """Return what was found out about a candidate, and its lambda."""
    names = (each.name for each in fields(candidate))
    return {name: getattr(candidate, name) for name in names if name not in ("kernel", "learner")}


def _uniform_landmarks(rows: Partition, rank: int) -> Landmarks:
    """Return landmarks for all kernels at a lower rank than that in force: drawn uniformly, ever more of them."""
    drawn = np.random.default_rng(rows.seed).permutation(rows.n)[:rank]
    return Landmarks(drawn, Statistics(rows.X, rows.X[drawn]))


def score_kernel(board: Board, item: PathsOfKernel) -> list[ScoredPath]:
    """Score the paths of a kernel, as a job in another process."""
    kernel, by_learner = item
    problem = board.problems.on(board.rows, kernel, board.rank)
    return [board._compute_path(problem, learner, lams) for learner, lams in by_learner.items()]
