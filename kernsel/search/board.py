"""Judge candidates: turn scores and held-out outputs into figures that people understand, and verify the leaders."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernsel.criteria import HeldOutCriterion, Scores
from kernsel.criteria.base import unless_finite
from kernsel.data import Dataset
from kernsel.data.target import chosen_classes, class_codes
from kernsel.folds.partition import Partition
from kernsel.heldout.standard_error import standard_error
from kernsel.kernels import Kernel, Statistics
from kernsel.paths import Path, make_path
from kernsel.representation.features import Landmarks
from kernsel.representation.problem import Problem, Problems
from kernsel.representation.ranks import Rank
from kernsel.search.candidate import Candidate, Key

if TYPE_CHECKING:
    from kernsel.heldout.metrics import Metrics, Value

Array = NDArray[np.float64]
Losses = NDArray[np.float32]

KEPT_ROWS = 20_000
"""Held-out losses of all candidates are kept of so many rows at the most: 600 candidates are then 100 MB."""


@dataclass(frozen=True, eq=False)
class Judge:
    """Turns scores and held-out outputs into candidates, with the error that people understand.

    ``outputs`` are the held-out outputs (k, n) of what was verified, on each deal; ``losses``, of each candidate and
    each deal, what its score is the mean of and its errors, both (held,); ``problems`` are those that were judged last.
    """

    deals: list[Partition]
    dataset: Dataset
    criterion: Any
    metrics: Metrics | None
    outputs: dict[Key, list[Array]] = field(default_factory=dict)
    losses: dict[Key, dict[int, tuple[Losses, Losses]]] = field(default_factory=dict)
    problems: Problems = field(default_factory=Problems)

    def candidates(self, path: Path, scores: Scores) -> list[Candidate]:
        """Return one candidate for each lambda of a path: means over the deals, of which the path is on the first."""
        others = [make_path(self._on_deal(path.problem, rows), path.learner, path.lams) for rows in self.deals[1:]]
        deals = [(path, scores), *((other, self.criterion.score(other)) for other in others)]
        return [averaged(same) for same in zip(*(self._candidates(*deal) for deal in deals), strict=True)]

    def _on_deal(self, problem: Problem, rows: Partition) -> Problem:
        """Return the same kernel at the same representation, with the same landmarks, on another deal of the rows."""
        landmarks, here = problem.landmarks, problem.rows.order
        if landmarks is None:
            return self.problems.on(rows, problem.kernel, problem.rank)
        if here.size < rows.n:  # the search leaves candidates behind on some of the rows
            rows = rows.part(np.isin(rows.order, here))
        places = np.argsort(rows.order)
        indices = places[np.searchsorted(rows.order, here[landmarks.indices], sorter=places)]
        return Problem(rows, problem.kernel, problem.rank, Landmarks(indices, Statistics(rows.X, rows.X[indices])))

    def _candidates(self, path: Path, scores: Scores) -> list[Candidate]:
        held, problem = scores.heldout, path.problem
        score = np.asarray(scores.score, np.float64)
        failed = unless_finite(score, scores.failed)  # a plugin's criterion may not look at that
        loss = np.full(score.shape, np.inf) if scores.loss is None else np.asarray(scores.loss, np.float64)
        columns: dict[str, Any] = {"score": score, "loss": np.where(np.isnan(loss), np.inf, loss)}
        columns |= {"score_se": scores.score_se, "reliability": scores.reliability, "scored_by": scores.scored_by}
        if held is not None:
            columns["error"], columns["error_se"] = self.errors(path.rows, held.f)
            columns |= {"exact": held.exact, "refitted": np.broadcast_to(held.refitted, path.lams.shape)}
        rank = problem.lower_rank
        if scores.values is not None and held is not None and rank is None:
            errors = self.row_errors(path.rows, held.f)
            for k, lam in enumerate(path.lams.tolist()):
                if failed[k] is None:
                    self._keep((problem.kernel, path.learner, lam), path.rows, scores.values[k], errors[k])
        if rank is None:
            usable = [k for k, reason in enumerate(failed) if reason is None]
            norms = np.full(score.shape, np.nan)
            norms[usable] = float(problem.kernel.diag(path.rows.X).max()) * path.norms(usable, held)
            columns["norm"] = norms
        lists = {name: np.asarray(column).tolist() for name, column in columns.items() if column is not None}
        found = []
        for k, lam in enumerate(path.lams.tolist()):
            figures: dict[str, Any] = {"failed": failed[k]}
            if failed[k] is None:
                figures = {name: _known(values[k]) for name, values in lists.items()}
                figures["terms"] = {name: float(term[k]) for name, term in scores.terms.items()}
            found.append(Candidate(problem.kernel, lam, learner=path.learner, rank=rank, **figures))
        return found

    def verified(self, leading: list[Candidate], rank: Rank | None) -> list[Candidate]:
        """Re-score candidates by exact refits, at the representation in force; their order is kept."""
        deals = [self._verified_on(rows, leading, rank) for rows in self.deals]
        return [averaged(same) for same in zip(*deals, strict=True)]

    def _verified_on(self, rows: Partition, leading: list[Candidate], rank: Rank | None) -> list[Candidate]:
        """Re-score candidates on one deal of the rows."""
        # What is exact already needs its held-out outputs again for metrics only.
        done = {id(c) for c in leading if c.exact and self.metrics is None}
        result = {id(c): replace(c, verified=c.score) for c in leading if id(c) in done}
        together: dict[tuple[Kernel, Any], list[Candidate]] = {}
        for candidate in leading:
            if id(candidate) not in done:
                together.setdefault((candidate.kernel, candidate.learner), []).append(candidate)
        for (kernel, learner), members in together.items():
            path = make_path(self.problems.on(rows, kernel, rank), learner, [c.lam for c in members])
            held = path.exact().clipped(rows)
            for k, candidate in enumerate(sorted(members, key=lambda c: -c.lam)):
                F, reason = held.f[:, k], held.failed[k]
                if reason is None:
                    self.outputs.setdefault(candidate.key, []).append(F)
                    losses = learner.loss.value(rows.Y, F).mean(axis=0)
                    values, penalty = losses, 0.0
                    if isinstance(self.criterion, HeldOutCriterion):
                        # A penalty is the same however the held-out outputs were made.
                        values, penalty = self.criterion.values(path, F), candidate.terms.get("penalty", 0.0)
                        if candidate.key in self.losses:  # else the criterion kept none of the others
                            self._keep(candidate.key, rows, values, self.row_errors(rows, F))
                    error, error_se = self.errors(rows, F)
                    result[id(candidate)] = replace(
                        candidate,
                        verified=float(rows.mean(values)) + penalty,
                        score_se=_known(float(standard_error(values, rows.starts, rows.s))),
                        loss=float(rows.mean(losses)),
                        error=float(error),
                        error_se=_known(float(error_se)),
                        metrics={} if self.metrics is None else self.metrics.evaluate(rows, rows.clipped_apart(F)),
                    )
                else:
                    result[id(candidate)] = replace(candidate, verified=math.inf, failed=f"not verified: {reason}")
        return [result[id(candidate)] for candidate in leading]

    def _keep(self, key: Key, rows: Partition, values: Array, errors: Array) -> None:
        """Keep what the score of a candidate on one of the deals is the mean of (n,), and its errors (held,)."""
        number = next((i for i, deal in enumerate(self.deals) if deal is rows), None)
        if number is None or rows.held > KEPT_ROWS:
            return
        with np.errstate(over="ignore"):  # a candidate whose losses are beyond single precision is left out later
            kept, wrong = values[: rows.held].astype(np.float32), errors.astype(np.float32)
        same = np.array_equal(kept, wrong)  # of the square loss they are one thing
        self.losses.setdefault(key, {})[number] = (kept, kept if same else wrong)

    @property
    def unit(self) -> float:
        """What turns the root of a mean squared error into the unit that is reported."""
        return float(self.dataset.output_scale[0]) if self.dataset.k == 1 else 1.0

    def row_errors(self, rows: Partition, F: Array) -> Array:
        """Return the error (..., held) of each held-out row for outputs (k, ..., n): 0-1, or squared.

        Of several targets it is the mean, in squared standard deviations of each.
        """
        Y, F = rows.Y[:, : rows.held], rows.clipped_apart(F)[..., : rows.held]
        if self.dataset.task == "classification":
            return np.asarray(chosen_classes(F) != class_codes(Y), np.float64)
        with np.errstate(over="ignore", invalid="ignore"):  # the outputs of a fit that failed may be infinite
            return np.asarray(((F - Y.reshape(len(Y), *(1,) * (F.ndim - 2), -1)) ** 2).mean(axis=0))

    def errors(self, rows: Partition, F: Array) -> tuple[Array, Array]:
        """Return the error of held-out outputs (k, ..., n) and its standard error, NaN for one fold alone.

        Of several targets each counts in units of its own standard deviation.
        """
        losses = self.row_errors(rows, F)
        if self.dataset.task == "classification":
            return rows.mean(losses), standard_error(losses, rows.starts, rows.s)
        with np.errstate(over="ignore", invalid="ignore"):  # the outputs of a fit that failed may be infinite
            root, scale = np.sqrt(rows.mean(losses)), self.unit
            spread = standard_error(losses, rows.starts, rows.s)
            spread = np.where(root > 0, scale * spread / (2 * np.where(root > 0, root, 1.0)), 0.0 * spread)
        return root * scale, spread

    def with_error(self, candidate: Candidate, deals: Sequence[Array]) -> Candidate:
        """Return a candidate with the error of its held-out outputs (k, n): means over the deals given."""
        found = [self.errors(rows, F) for rows, F in zip(self.deals, deals, strict=False)]
        error, error_se = (float(np.mean(figures)) for figures in zip(*found, strict=True))
        return replace(candidate, error=_known(error), error_se=_known(error_se))

    def by_target(self, deals: Sequence[Array]) -> dict[str, float]:
        """Return the RMSE for each target, in its units: its mean over the held-out outputs (k, n) of all deals."""
        roots = [
            np.sqrt(rows.mean((F[:, : rows.held] - rows.Y[:, : rows.held]) ** 2)) * self.dataset.output_scale
            for rows, F in zip(self.deals, deals, strict=False)
        ]
        return dict(zip(self.dataset.target, map(float, np.mean(roots, axis=0)), strict=True))

    def measured(self, deals: Sequence[Array]) -> dict[str, Value]:
        """Return the metrics of held-out outputs (k, n): their means over all deals."""
        assert self.metrics is not None
        found = [self.metrics.evaluate(rows, F) for rows, F in zip(self.deals, deals, strict=False)]
        return {name: _mean_metric([each[name] for each in found]) for name in found[0]}


def _known(value: Any) -> Any:
    return None if value != value else value  # NaN


def averaged(deals: Sequence[Candidate]) -> Candidate:
    """Return the mean of one candidate's figures over deals; it has failed if it did in any.

    The standard error is averaged as well: more deals of the same rows don't make it smaller.
    """
    first = deals[0]
    if len(deals) == 1:
        return first
    failed = next((each.failed for each in deals if each.failed is not None), None)
    if failed is not None:
        return replace(first, failed=failed, score=math.inf, verified=None if first.verified is None else math.inf)
    means: dict[str, Any] = {
        name: float(np.mean([getattr(each, name) for each in deals]))
        for name in ("score", "score_se", "loss", "error", "error_se", "verified")
        if getattr(first, name) is not None
    }
    metrics = {name: _mean_metric([each.metrics[name] for each in deals]) for name in first.metrics}
    terms = {name: float(np.mean([each.terms[name] for each in deals])) for name in first.terms}
    ratios = [each.reliability for each in deals if each.reliability is not None]
    return replace(
        first,
        **means,
        reliability=max(ratios, default=None),
        refitted=sum(each.refitted for each in deals),
        scored_by=next((each.scored_by for each in deals if each.scored_by is not None), None),
        exact=all(each.exact for each in deals),
        metrics=metrics,
        terms=terms,
    )


def _mean_metric(deals: Sequence[Value]) -> Value:
    """Return the mean over deals of a metric and of its standard error; None where one of them has none."""
    value, se = (
        None if any(part is None for part in parts) else float(np.mean(parts)) for parts in zip(*deals, strict=True)
    )
    return type(deals[0])(value, se)
