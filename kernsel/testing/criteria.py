"""The laws of a criterion, with every learner that it accepts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any
from unittest import SkipTest

import numpy as np

import kernsel
from kernsel import registry
from kernsel.criteria import Scores
from kernsel.criteria.base import Criterion
from kernsel.errors import IncompatibleError
from kernsel.folds.partition import Partition
from kernsel.protocols import Learner, SupportsMeasure
from kernsel.testing import tables
from kernsel.testing.base import FITTED, NOTHING, Check, Laws, Subject, left_as_they_are, run_checks

LAMS = (0.1, 0.01)
ROWS = 30
LAWS = Laws()


@dataclass(frozen=True)
class CriterionSubject(Subject):
    """A criterion that is checked, on one row of labels, which regressions take as well, or else of numbers."""

    @cached_property
    def accepted(self) -> tuple[Partition, list[Learner]]:
        """The rows, and the learners that the criterion accepts on them."""
        for real in (False, True):
            rows = tables.make_rows(n=ROWS, real=real)
            rows, found = replace(rows, Y=rows.Y[:1]), []
            for learner in _learners():
                try:
                    self.part.score(tables.path_on(rows, learner, LAMS))
                except IncompatibleError:
                    continue
                except Exception:  # noqa: BLE001  # it isn't refused; the laws show what is the matter
                    pass
                found.append(learner)
            if found:
                return rows, found
        self.fail("it accepts no learner that is registered, neither on classes nor on numbers")

    def check_same(self, change: Callable[[Partition], Partition], complaint: str, rtol: float = FITTED) -> None:
        """Fail if a change of the rows changes a score, with any learner."""
        rows, learners = self.accepted
        for learner in learners:
            one, other = (self.scored(each, learner) for each in (rows, change(rows)))
            self.check_close(other.score, one.score, f"with {learner} {complaint}", rtol=rtol, atol=rtol)

    def scored(self, rows: Partition, learner: Learner, lams: tuple[float, ...] = LAMS) -> Scores:
        """Return the scores of a path, none of which has failed."""
        found: Scores = self.part.score(tables.path_on(rows, learner, lams))
        self.check(isinstance(found, Scores), f"score returns {type(found).__name__}; return kernsel.criteria.Scores")
        reasons = [reason for reason in found.failed if reason is not None]
        self.check(not reasons, f"with {learner} on {rows.n} rows it fails: {reasons}")
        return found


def _learners() -> list[Any]:
    """Return every registered learner, without a bias where that can be chosen: a bias may be free to move."""
    parts = [registry.get("learner", name) for name in registry.names("learner")]
    return [part(**{each.name: False for each in fields(part) if each.name == "bias"}) for part in parts]


def criterion_checks(criterion: Criterion, *, without: Mapping[str, str] = NOTHING) -> list[Check]:
    """Return the checks of a criterion.

    Parameters
    ----------
    criterion : Criterion
        One that draws nothing at random, which would be other rows in another order.
    without : mapping of str to str, optional
        Checks to skip, by name, each with the reason.
    """
    return LAWS.of(CriterionSubject("criterion", criterion), without)


def check_criterion(criterion: Criterion, **options: Any) -> dict[str, str]:
    """Run ``criterion_checks``; AssertionError if some fail, else those that don't apply, with the reasons."""
    return run_checks(criterion_checks(criterion, **options))


@LAWS.add
def there_is_a_score_for_each_lambda(subject: CriterionSubject) -> None:
    """Of any number of them, in their order; the path is left as it is."""
    rows, learners = subject.accepted
    for learner in learners:
        with left_as_they_are(subject, X=rows.X, Y=rows.Y):
            found = subject.scored(rows, learner)
        right = found.score.shape == (len(LAMS),) and len(found.failed) == len(LAMS)
        subject.check(right, f"with {learner} there are {found.score.shape} scores for {len(LAMS)} values of lambda")


@LAWS.add
def a_measure_is_one_number_for_each_row(subject: CriterionSubject) -> None:
    """Of targets and outputs (k, n), which are left as they are; NaN stays NaN, and other rows don't matter."""
    criterion = subject.part
    if not isinstance(criterion, SupportsMeasure):
        raise SkipTest("the criterion has no measure of its own")
    rows, _ = subject.accepted
    F = rows.Y + 0.3 * np.random.default_rng(0).normal(size=rows.Y.shape)
    F[:, 3] = np.nan
    with left_as_they_are(subject, Y=rows.Y, F=F):
        found = np.asarray(criterion.measure(rows.Y, F))
    right = found.shape == (rows.n,) and found.dtype.kind in "biuf"
    subject.check(right, f"measure returns {found.dtype} of shape {found.shape} for {rows.n} rows")
    subject.check(np.isnan(found[3]), "the measure of an output of NaN is a number; a fit that failed has such ones")
    alone = np.concatenate([np.asarray(criterion.measure(rows.Y[:, [i]], F[:, [i]])) for i in range(rows.n)])
    ask = "the measure of a row depends on other rows; write one that doesn't, or derive score instead"
    subject.check_close(found, alone, ask, rtol=1e-12, atol=1e-12)


@LAWS.add
def the_order_of_rows_and_of_folds_changes_nothing(subject: CriterionSubject) -> None:
    """Rows backwards within each fold, and the folds backwards."""

    def change(rows: Partition) -> Partition:
        folds = [np.arange(lo, hi)[::-1] for lo, hi in zip(rows.starts[:-1], rows.starts[1:], strict=True)][::-1]
        return rows.taken(np.concatenate(folds), np.r_[0, np.cumsum([fold.size for fold in folds])])

    subject.check_same(change, "rows in another order have another score; let it be a mean or a sum over rows")


@LAWS.add
def the_sign_of_the_labels_changes_nothing(subject: CriterionSubject) -> None:
    """Which of two classes is +1 is chance."""
    ask = "the other sign of the targets has another score; if it should, leave this check out by 'without'"
    subject.check_same(lambda rows: replace(rows, Y=-rows.Y), ask)


@LAWS.add
def a_target_twice_changes_nothing(subject: CriterionSubject) -> None:
    """A score is a mean over targets."""
    ask = "two equal targets have another score than one; take the mean over targets"
    try:
        subject.check_same(lambda rows: replace(rows, Y=np.repeat(rows.Y, 2, axis=0)), ask)
    except IncompatibleError as refused:
        raise SkipTest("the criterion takes classes, of which two are one target") from refused


@LAWS.add
def a_path_of_one_lambda_has_the_scores_of_a_path_of_many(subject: CriterionSubject) -> None:
    """The score of a lambda doesn't depend on the others."""
    lams = (1.0, *LAMS)
    rows, learners = subject.accepted
    for learner in learners:
        together = subject.scored(rows, learner, lams)
        for k, lam in enumerate(lams):
            alone = subject.scored(rows, learner, (lam,)).score[0]
            ask = f"with {learner} the score at lambda = {lam} depends on the other lambda of the path"
            subject.check_close(alone, together.score[k], ask, rtol=FITTED, atol=FITTED)


@LAWS.add
def scores_do_not_depend_on_what_was_asked_before(subject: CriterionSubject) -> None:
    """To the bit: whatever of the path was computed by others."""
    rows, learners = subject.accepted
    for learner in learners:
        fresh, used = (tables.path_on(rows, learner, LAMS) for _ in range(2))
        _ = used.fits, used.exact(), used.newton_step(), used.ratio, used.norms([0, 1]), used.representation.stability
        one, other = subject.part.score(used).score, subject.part.score(fresh).score
        subject.check_close(one, other, f"with {learner} the score depends on what was asked of the path before")


@LAWS.add
def a_weight_of_two_is_a_row_twice_or_it_says_that_it_is_not(subject: CriterionSubject) -> None:
    """``about.weights`` says what a weight is instead."""
    rows, learners = subject.accepted
    s = 1 + np.arange(ROWS) % 3
    weighted, repeated = replace(rows, weights=s.astype(np.float64)), tables.repeated(rows, s)
    differs = []
    for learner in learners:
        one, other = (subject.scored(each, learner) for each in (weighted, repeated))
        differs.append(not np.allclose(one.score, other.score, rtol=1e-5))
    if _weights(subject):
        subject.check(any(differs), "it says what a weight is, and yet a weight of 2 is a row twice; leave that out")
    else:
        ask = "a weight of 2 has another score than the row twice; use path.rows.s, or set about = About(weights=...)"
        subject.check(not any(differs), ask)


@LAWS.add
def a_weighted_selection_says_what_a_weight_is(subject: CriterionSubject) -> None:
    """In its notes, where a weight of 2 isn't a row twice."""
    if not _weights(subject):
        raise SkipTest("a weight of 2 is a row twice")
    notes = [_selection(subject, weights).data["notes"] for weights in (None, 1.0 + np.arange(ROWS) % 2)]
    wanted = f"weights: to {subject.part.name} {_weights(subject)}"
    subject.check(wanted in notes[1], f"a weighted selection doesn't note {wanted!r}")
    subject.check(not any(note.startswith("weights: to") for note in notes[0]), "one without weights notes them")


def _weights(subject: CriterionSubject) -> str:
    return str(getattr(getattr(subject.part, "about", None), "weights", ""))


def _selection(subject: CriterionSubject, weights: Any = None) -> kernsel.Selection:
    rows, learners = subject.accepted
    y: Any = rows.Y[0]
    task = "classification" if set(y) == {-1.0, 1.0} else "regression"
    learner = next(each for each in learners if task in each.tasks)
    y = np.where(y > 0, "up", "down") if task == "classification" else y
    options: dict[str, Any] = {"kernel": "gaussian", "learner": learner, "folds": 3, "grid": "coarse", "verify": 1}
    return kernsel.select(rows.X, y, criterion=subject.part, weights=weights, extend=False, **options)


@LAWS.add
def a_selection_takes_it(subject: CriterionSubject) -> None:
    """The best of its candidates is the one of the lowest score, as far as nothing else was asked for."""
    found = _selection(subject)
    scored = [each.score for each in found.candidates if each.failed is None]
    subject.check(bool(scored), "no candidate could be scored")
    subject.check(np.isfinite(scored).all(), "some scores aren't finite; such candidates have failed")
