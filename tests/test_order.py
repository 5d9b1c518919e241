"""Results are the same to the last bit whatever was computed before, and whatever a search keeps."""

import functools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import tables
from kernsel.criteria import BIF, CV, CVKS, EP, FBIF, GCV, LOO, RKS, CenteredAlignment, Evidence, NewtonCV, Span
from kernsel.errors import IncompatibleError
from kernsel.heldout.intervals import Intervals
from kernsel.kernels import Gaussian
from kernsel.learners import Klr, Krr, L2Svm, Lssvm, Svm
from kernsel.paths import make_path
from kernsel.paths.routes import Thresholds
from kernsel.representation import problem
from kernsel.representation.problem import Problem
from kernsel.representation.ranks import Whole

LAMS = tuple(np.geomspace(1.0, 1e-4, 12))
"""Too many for a factorisation each."""

LEARNERS = {"krr": Krr(), "lssvm": Lssvm(), "svm": Svm(h=0.3), "l2svm": L2Svm(bias=False), "klr": Klr()}
SQUARE = ("krr", "lssvm")

ASKED = 10
"""So many questions are asked of features in blocks, which take longest."""

REPRESENTATIONS = {"full": None, "rank 8": 8, "blocks": tables.in_blocks(8, block=17 * 8 * 8), "whole": Whole()}
"""Blocks are of seventeen rows."""

CRITERIA = [
    CV(), NewtonCV(), LOO(), BIF(), BIF(order=3, trust=0.05), FBIF(), CVKS(), RKS(), GCV(), Evidence(),
    CenteredAlignment(), EP(), Span(),
]  # fmt: skip


def heldout(held):
    """Everything about held-out outputs."""
    L = held.f.shape[1]
    return [held.f, held.exact, np.broadcast_to(held.refitted, L), [r or "" for r in held.failed]]


def scores(criterion, path):
    """Everything that a search takes from a criterion: with the norms of the fits."""
    found = criterion.score(path)
    arrays = [found.score, found.loss, found.reliability, found.score_se, found.values, *found.terms.values()]
    norms = path.norms(range(path.lams.size), found.norms)
    return [norms, *(a for a in arrays if a is not None)]


def intervals(path):
    """What intervals of the last fit are made of."""
    found = Intervals.of(path, path.lams.size - 1)
    return [found.coefficients, found.biases, found.residuals]


QUESTIONS = {
    "fits": lambda path: [path.fits.f, path.fits.x, path.fits.status],
    "exact": lambda path: heldout(path.exact()),
    "exact of one": lambda path: heldout(path.exact([1])),
    "newton step": lambda path: heldout(path.newton_step()),
    "influence": lambda path: heldout(path.influence(1)),
    "third order": lambda path: heldout(path.influence(3)),
    "nystrom": lambda path: heldout(path.nystrom_influence(0.5)),
    "ratio": lambda path: [path.ratio],
    "ratio of steps": lambda path: [path.step_ratio],
    "norms": lambda path: [path.norms(range(path.lams.size))],
    "a norm": lambda path: [path.norms([1])],
    "coefficients": lambda path: [path.coefficients(1), path.intercepts(1)],
    "refits": lambda path: list(path.refits(0)),
    "intervals": intervals,
    "one by one": lambda path: heldout(path.one_by_one.newton_step()),
    "ratio one by one": lambda path: [path.one_by_one.step_ratio],
    "representation": lambda path: [path.describe(), path.representation.rank, path.representation.lost],
    "stability": lambda path: list(path.representation.stability),
} | {f"criterion {number}": lambda path, each=each: scores(each, path) for number, each in enumerate(CRITERIA)}


def answer(path, question):
    """The answer of a path to a question, or why there is none."""
    try:
        return [np.asarray(each) for each in QUESTIONS[question](path)]
    except IncompatibleError as error:
        return [np.array(str(error))]


@pytest.fixture(autouse=True)
def one_thread(use_threads):
    """Several would only wait for each other."""
    use_threads(1)


def make_problem(learner, representation, weighted):
    """The problem of a learner."""
    rows = tables.make_rows(real=learner == "krr")
    if weighted:
        rows = replace(rows, weights=np.random.default_rng(1).integers(1, 4, rows.n).astype(float))
    return Problem(rows, Gaussian(1.0), REPRESENTATIONS[representation])


def path_of(problem, learner, lams):
    """The path of a learner, on which few rows take the routes of many."""
    path = make_path(problem, LEARNERS[learner], lams)
    path.thresholds = Thresholds(factored=20, krylov=30, single=20)
    return path


KINDS = [
    (learner, representation)
    for learner in LEARNERS
    for representation in REPRESENTATIONS
    if representation != "whole" or learner in SQUARE
]
kinds = pytest.mark.parametrize(("learner", "representation"), KINDS, ids=lambda each: each)


@functools.cache
def alone(learner, representation, weighted, lams, question):
    """The answer to a question that is the first one of its problem."""
    return answer(path_of(make_problem(learner, representation, weighted), learner, lams), question)


@kinds
@given(order=st.permutations(list(QUESTIONS)), weighted=st.booleans(), few=st.booleans())
@settings(deadline=None, max_examples=2, phases=[Phase.generate])
def test_the_order_of_questions_changes_no_bit(learner, representation, order, weighted, few):
    """A problem whose paths share what it computes answers each question as one that is asked nothing else."""
    lams = LAMS[2:4] if few or (representation == "blocks" and learner not in SQUARE) else LAMS
    shared = make_problem(learner, representation, weighted)
    other, path = (path_of(shared, learner, each) for each in (LAMS[1:3], lams))
    for number, question in enumerate(order[:ASKED] if representation == "blocks" else order):
        if number % 5 == 0:
            _ = answer(other, question)
        found, expected = answer(path, question), alone(learner, representation, weighted, lams, question)
        assert len(found) == len(expected)
        for one, first in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, first, err_msg=question)


class Forgetful(problem.Problems):
    """Keeps no problem."""

    def on(self, rows, kernel, rank):
        return Problem(rows, kernel, rank)


@pytest.mark.parametrize("learner", ["krr", "lssvm", "svm"])
@pytest.mark.parametrize("in_blocks", [False, True], ids=["rank", "blocks"])
@pytest.mark.parametrize("criterion", ["newton-cv", "bif"])
def test_what_a_search_keeps_changes_no_bit(monkeypatch, learner, in_blocks, criterion):
    X, y = tables.waves(60) if learner == "krr" else tables.circles(60)
    options = {
        "learner": learner,
        "criterion": criterion,
        "rank": tables.in_blocks(20) if in_blocks else 20,
        "grid": {"tau": [0.3, 3.0], "lambda": [1e-2, 0.1]},
    }
    options |= {"folds": 3, "extend": False}
    kept = tables.choose(X, y, **options)
    for module in ("kernsel.search.board", "kernsel.search.grid", "kernsel.selection.run"):
        monkeypatch.setattr(f"{module}.Problems", Forgetful, raising=False)
    forgotten = tables.choose(X, y, **options)
    assert [vars(each) for each in kept.candidates] == [vars(each) for each in forgotten.candidates]
    np.testing.assert_array_equal(kept.outputs, forgotten.outputs)
    np.testing.assert_array_equal(kept.model.decision(X), forgotten.model.decision(X))
