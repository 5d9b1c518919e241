"""Kernel stability as a penalty: twins, what comes from the cross-validation, and what is known against it."""

from dataclasses import replace

import numpy as np
import pytest

import tables
import twins.losses
import twins.stability
from kernsel.criteria import BIF, CV, CVKS, FBIF, RKS, NewtonCV
from kernsel.errors import OptionError
from kernsel.kernels import Gaussian, Statistics
from kernsel.learners import Krr, Lssvm, Svm
from kernsel.numerics.stability import NORMS
from kernsel.paths import make_path
from kernsel.representation.problem import Landmarks, Problem

LAMS = (1.0, 0.01)
LEARNERS = [
    (Krr(), twins.losses.square),
    (Lssvm(), twins.losses.square),
    (Svm(h=0.5, bias=False), twins.losses.huber_hinge(0.5)),
]

learners = pytest.mark.parametrize(("learner", "loss"), LEARNERS, ids=["krr", "lssvm", "svm"])
ranks = pytest.mark.parametrize("rank", [None, 8], ids=["full", "rank 8"])


def slow_gram(path):
    Z = tables.slow_features(path)
    return Z @ Z.T


def digits(learner):
    """What a fit by iteration leaves of the score."""
    return 1e-9 if learner.loss.square else 1e-6


@learners
@ranks
@pytest.mark.parametrize("norm", NORMS)
def test_rks_is_its_slow_twin(learner, loss, rank, norm):
    path = tables.path_on(tables.make_rows(), learner, LAMS, rank=rank)
    scores, rows, K = RKS(eta=0.7, norm=norm).score(path), path.rows, slow_gram(path)
    for k, lam in enumerate(LAMS):
        expected = twins.stability.rks(K, loss, rows.Y, lam, rows.s, int(learner.bias), 0.7, norm)
        assert scores.score[k] == pytest.approx(expected, rel=digits(learner))
    np.testing.assert_array_equal(scores.score, scores.terms["fit"] + scores.terms["penalty"])
    assert scores.failed == [None, None]
    assert scores.heldout is None


@learners
@ranks
def test_cvks_is_its_slow_twin(learner, loss, rank):
    path = tables.path_on(tables.make_rows(), learner, LAMS, rank=rank)
    scores, rows, K = CVKS(eta=0.7, cv="cv").score(path), path.rows, slow_gram(path)
    for k, lam in enumerate(LAMS):
        expected = twins.stability.cvks(K, loss, rows.Y, lam, rows.starts, rows.s, int(learner.bias), 0.7)
        assert scores.score[k] == pytest.approx(expected, rel=digits(learner))
    np.testing.assert_array_equal(scores.score, scores.terms["fit"] + scores.terms["penalty"])


@pytest.mark.parametrize("criterion", [RKS(), CVKS(), CVKS(norm="trace")], ids=str)
@ranks
def test_a_row_of_weight_two_is_there_twice(criterion, rank):
    rows = tables.make_rows(n=20, sizes=(6, 8, 6))
    times = np.random.default_rng(1).integers(1, 4, size=rows.n)
    each, starts = np.repeat(np.arange(rows.n), times), np.r_[0, np.cumsum(times)][rows.starts]
    X, Y = np.ascontiguousarray(rows.X[each]), np.ascontiguousarray(rows.Y[:, each])
    weighted = replace(rows, weights=times.astype(float))
    repeated = replace(rows, X=X, Y=Y, starts=starts, order=np.arange(each.size), statistics=Statistics(X))
    found = []
    for case, chosen in ((weighted, np.arange(8)), (repeated, np.r_[0, np.cumsum(times)][:8])):
        landmarks = None if rank is None else Landmarks(chosen, Statistics(case.X, case.X[chosen]))
        found.append(criterion.score(make_path(Problem(case, Gaussian(1.0), rank, landmarks), Krr(), LAMS)))
    np.testing.assert_allclose(found[0].score, found[1].score, rtol=1e-9)
    np.testing.assert_allclose(found[0].terms["penalty"], found[1].terms["penalty"], rtol=1e-9)


@pytest.mark.parametrize(
    ("cv", "part"),
    [
        ("cv", CV()),
        ("newton-cv", NewtonCV()),
        ("bif", BIF()),
        ("fbif", FBIF()),
        ("bif(order=3, pure=true)", BIF(order=3, pure=True)),
    ],
)
@pytest.mark.parametrize("learner", [Krr(), Svm(h=1.5, bias=False)], ids=["krr", "svm"])
def test_all_but_the_penalty_is_that_of_the_cross_validation(cv, part, learner):
    rows = tables.make_rows()
    found, plain = (each.score(tables.path_on(rows, learner, LAMS)) for each in (CVKS(eta=2.0, cv=cv), part))
    np.testing.assert_array_equal(found.terms["fit"], plain.score)
    np.testing.assert_array_equal(found.loss, plain.loss)
    np.testing.assert_array_equal(found.score_se, plain.score_se)
    np.testing.assert_array_equal(found.heldout.f, plain.heldout.f)
    np.testing.assert_array_equal(found.reliability, plain.reliability)
    assert found.scored_by == plain.scored_by
    path = tables.path_on(rows, learner, LAMS)
    np.testing.assert_array_equal(CVKS(cv=cv).heldout(path).f, plain.heldout.f)


def test_beta_is_computed_once_a_kernel():
    problem = Problem(tables.make_rows(), Gaussian(1.0))
    paths = [make_path(problem, learner, LAMS) for learner in (Krr(), Svm(bias=False))]
    assert paths[0].representation.stability is paths[1].representation.stability
    penalties = [RKS().score(path).terms["penalty"] for path in paths]
    assert len({*np.concatenate(penalties).tolist()}) == 1


@pytest.mark.parametrize("criterion", [RKS(eta=0.0), CVKS(eta=0.0)], ids=str)
def test_without_a_weight_there_is_no_penalty(criterion):
    scores = criterion.score(tables.path_on(tables.make_rows(), Krr(), LAMS))
    np.testing.assert_array_equal(scores.score, scores.terms["fit"])


def test_what_is_known_against_rks_is_so():
    """The narrower the Gaussian kernel, the lower are both of its terms, if lambda is small."""
    rows = tables.make_rows()
    grid = [(tau, RKS().score(tables.path_on(rows, Krr(), (*LAMS, 1e-6), tau))) for tau in (0.001, 0.1, 10.0)]
    for k in range(3):
        penalties = [scores.terms["penalty"][k] for _, scores in grid]
        assert penalties == sorted(penalties)
    last = [scores.score[2] for _, scores in grid]
    assert min(last) == last[0] == min(scores.score.min() for _, scores in grid)


def test_the_search_does_not_run_after_rks():
    X, y = tables.circles()
    result = tables.choose(X, y, learner="krr", criterion="rks", folds=5, grid=tables.SMALL)
    assert result.best.kernel.tau == 0.3
    assert len(result.candidates) == 9
    assert any("was not extended, for rks goes on falling" in text for text in result.warnings)


@pytest.mark.parametrize("learner", ["krr", "svm"])
def test_verification_keeps_the_penalty(learner):
    X, y = tables.circles()
    chosen = tables.choose(X, y, learner=learner, criterion="cvks(eta=3)", folds=5, grid=tables.SMALL, extend=False)
    exact = tables.choose(
        X, y, learner=learner, criterion="cvks(eta=3, cv=cv)", folds=5, grid=tables.SMALL, extend=False, verify=0
    )
    scores = {(c.kernel, c.lam): c.score for c in exact.candidates}
    verified = [c for c in chosen.candidates if c.verified is not None]
    assert len(verified) == 5
    for candidate in verified:
        assert candidate.verified == pytest.approx(scores[candidate.kernel, candidate.lam], rel=1e-6)
    assert chosen.best.kernel == exact.best.kernel
    assert chosen.data["verification"] == "the same by exact refits"


def test_rks_is_verified_by_the_held_out_loss():
    X, y = tables.waves()
    chosen = tables.choose(X, y, criterion="rks(eta=0.1)", folds=5, grid=tables.SMALL, extend=False, verify=9)
    exact = tables.choose(X, y, criterion="cv", folds=5, grid=tables.SMALL, extend=False)
    assert chosen.best.verified == pytest.approx(exact.best.score)
    assert chosen.best.error == pytest.approx(exact.best.error)
    assert chosen.data["measure"] == "mean square loss at the rows that were fitted, and a penalty"
    assert chosen.data["verification"] == "mean held-out square loss of exact refits"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RKS(eta=-1.0), "criterion 'rks': eta must be a finite number of at least 0, not -1.0"),
        (lambda: CVKS(eta=np.inf), "criterion 'cvks': eta must be a finite number"),
        (lambda: CVKS(eta=np.nan), "eta must be a finite number"),
        (lambda: CVKS(eta="much"), "eta must be a finite number of at least 0, not 'much'"),
        (lambda: RKS(norm="nuclear"), "criterion 'rks': norm must be spectral, trace or frobenius, not 'nuclear'"),
        (lambda: CVKS(cv="rks"), "criterion 'cvks': cv must be a plain cross-validation such as newton-cv"),
        (lambda: CVKS(cv="cvks"), "cv must be a plain cross-validation"),
        (lambda: RKS(eta=None).score(tables.path_on(tables.make_rows(), Krr(), LAMS)), "eta has no value"),
    ],
)
def test_options_that_make_no_sense(make, message):
    with pytest.raises(OptionError, match=message):
        make()
