"""Criteria of the kernel alone: twins, numbers by hand, invariances, other libraries, and the choice of lambda."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import KernelCenterer

import problems
import tables
import twins.alignment
from kernsel.criteria import FSM, Alignment, CenteredAlignment, NewtonCV, Separability
from kernsel.errors import IncompatibleError
from kernsel.folds.partition import Partition
from kernsel.kernels import Gaussian, Statistics
from kernsel.learners import Krr, Svm
from kernsel.paths import make_path
from kernsel.representation.problem import Problem

LAMS = (1.0, 0.1)
KINDS = [Alignment(), CenteredAlignment(), FSM(), Separability()]
EVERY = pytest.mark.parametrize("criterion", KINDS, ids=lambda c: c.name)
CONTEXTS = pytest.mark.parametrize(
    ("rank", "weighted"), [(None, False), (None, True), (8, False), (8, True)],
    ids=["full", "weights", "rank 8", "rank 8, weights"],
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Given:
    """A kernel whose Gram matrix is given."""

    K: np.ndarray
    name: ClassVar[str] = "given"

    def evaluate(self, statistics):
        return self.K.copy()

    def diag(self, X):
        return self.K.diagonal()


def rows_of(labels, seed=0, weights=None, X=None):
    """Rows of classes numbered from 0, in three folds."""
    labels = np.asarray(labels)
    X = np.random.default_rng(seed).normal(size=(labels.size, 2)) + labels[:, None] if X is None else X
    Y = np.where(labels == np.arange(labels.max() + 1)[:, None], 1.0, -1.0)
    starts = problems.even(labels.size, 3)
    Y = Y[1:] if len(Y) == 2 else Y
    return Partition(X, np.ascontiguousarray(Y), starts, np.arange(labels.size), Statistics(X), 0, weights)


def of_gram(K, y):
    """A path on a Gram matrix, for classes -1 and +1."""
    rows = rows_of((np.asarray(y) > 0).astype(int))
    return make_path(Problem(rows, Given(np.asarray(K, dtype=float))), Krr(), LAMS)


def value(criterion, path):
    scores = criterion.score(path)
    assert scores.failed == [None] * path.lams.size
    assert (scores.score == scores.score[0]).all()
    return scores.score[0]


def random_labels(classes, n=24):
    return np.random.default_rng(classes).integers(0, classes, n)


# Twins


@pytest.mark.parametrize("classes", [2, 3])
@CONTEXTS
def test_slow_twins(classes, rank, weighted):
    labels = random_labels(classes)
    s = np.random.default_rng(9).exponential(size=labels.size) + 0.1 if weighted else np.ones(labels.size)
    rows = rows_of(labels, weights=s if weighted else None)
    path = tables.path_on(rows, Svm(bias=False), LAMS, rank=rank)
    Z = tables.slow_features(path)
    K = Z @ Z.T
    for criterion, twin in ((Alignment(), "alignment"), (CenteredAlignment(), "centred_alignment")):
        expected = np.mean([getattr(twins.alignment, twin)(K, y, s) for y in rows.Y])
        assert value(criterion, path) == pytest.approx(-expected, rel=1e-10)
    assert value(FSM(), path) == pytest.approx(np.mean([twins.alignment.fsm(Z, y, s) for y in rows.Y]), rel=1e-9)
    assert value(Separability(), path) == pytest.approx(-twins.alignment.separability(Z, labels, s), rel=1e-9)


def test_regressions_have_alignments():
    rows = tables.make_rows(real=True)
    path = tables.path_on(rows, Krr(), LAMS)
    K, s = path.problem.gram, np.ones(rows.n)
    for criterion, twin in ((Alignment(), "alignment"), (CenteredAlignment(), "centred_alignment")):
        expected = np.mean([getattr(twins.alignment, twin)(K, y, s) for y in rows.Y])
        assert value(criterion, path) == pytest.approx(-expected, rel=1e-10)


# Numbers by hand, and other libraries


def test_alignment_by_hand():
    y = np.array([1.0, 1.0, -1.0, -1.0, -1.0, 1.0, 1.0, -1.0, -1.0])
    assert value(Alignment(), of_gram(np.outer(y, y), y)) == pytest.approx(-1)
    assert value(CenteredAlignment(), of_gram(np.outer(y, y), y)) == pytest.approx(-1)
    assert value(Alignment(), of_gram(np.eye(9), y)) == pytest.approx(-1 / 3)  # n / (sqrt(n) n)
    assert value(Alignment(), of_gram(np.ones((9, 9)), y)) == pytest.approx(-1 / 81)  # (sum y)^2 / n^2


def test_fsm_and_separability_by_hand():
    x, labels = np.array([1.0, 7.0, 2.0, 9.0, 3.0]), np.array([0, 1, 0, 1, 0])  # means 2 and 8, together 4.4
    path = of_gram(np.outer(x, x), 2 * labels - 1)
    assert value(FSM(), path) == pytest.approx((1 + np.sqrt(2)) / 6)
    assert value(Separability(), path) == pytest.approx(-(3 * 2.4**2 + 2 * 3.6**2) / (2 + 2))


def test_centred_alignment_is_that_of_scikit_learns_centred_matrices():
    path = tables.path_on(rows_of(random_labels(2)), Krr(), LAMS)
    y = path.rows.Y[0]
    K, T = (KernelCenterer().fit_transform(M.copy()) for M in (path.problem.gram, np.outer(y, y)))
    expected = np.vdot(K, T) / np.sqrt(np.vdot(K, K) * np.vdot(T, T))
    assert value(CenteredAlignment(), path) == pytest.approx(-expected)


def test_separability_in_one_dimension_is_the_f_statistic():
    labels = random_labels(4, n=40)
    x = np.random.default_rng(0).normal(size=40) + labels
    rows = rows_of(labels, X=x[:, None])
    path = make_path(Problem(rows, Given(np.outer(x, x))), Krr(), LAMS)
    F = scipy.stats.f_oneway(*(x[labels == c] for c in range(4))).statistic
    assert value(Separability(), path) == pytest.approx(-F * 3 / 36)


# Invariances


@given(problems.problems(), st.floats(0.01, 100), st.floats(-10, 10))
def test_invariances(p, scale, constant):
    y = p.y.copy()
    y[:4] = [1, 1, -1, -1][: y.size]  # two rows of each class, as long as there are four
    if (y > 0).sum() < 2 or (y < 0).sum() < 2:
        return
    path, scaled, moved = (of_gram(K, y) for K in (p.K, scale * p.K, scale * p.K + constant))
    plain = Alignment().value(path)
    assert -1 - 1e-12 <= plain <= 1e-12
    assert Alignment().value(scaled) == pytest.approx(plain)
    if np.abs(twins.alignment.centred(p.K, np.ones(p.n))).max() < 1e-3:
        return  # what is nearly constant loses its digits to the constant
    for criterion in KINDS[1:]:
        with np.errstate(divide="ignore", invalid="ignore"):  # where all rows of a class coincide
            plain, *others = (criterion.value(each) for each in (path, scaled, moved))
        if abs(plain) < 1e6:
            assert others == pytest.approx([plain, plain], rel=1e-6, abs=1e-6)


@given(st.integers(0, 10**6))
def test_alignment_of_an_indefinite_matrix_stays_within_its_range(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(9, 9))
    y = rng.permutation([1, 1, 1, 1, -1, -1, -1, -1, -1])
    path = of_gram(A + A.T + 20 * np.eye(9), y)  # a fit needs a definite matrix
    path.problem.gram[...] -= 20 * np.eye(9)
    for criterion in (Alignment(), CenteredAlignment()):
        assert abs(criterion.value(path)) <= 1 + 1e-12


@pytest.mark.parametrize("criterion", [Alignment(), CenteredAlignment(), Separability()], ids=lambda c: c.name)
@pytest.mark.parametrize("rank", [None, 8])
def test_a_row_of_weight_two_counts_as_two(criterion, rank):
    labels = random_labels(3)
    rows = rows_of(labels)
    twice = np.random.default_rng(1).integers(1, 3, labels.size)
    again = rows_of(np.repeat(labels, twice), X=np.repeat(rows.X, twice, axis=0))
    rows = replace(rows, weights=twice.astype(float))
    weighted, repeated = (tables.path_on(each, Krr(), LAMS) for each in (rows, again))
    assert value(criterion, weighted) == pytest.approx(value(criterion, repeated))


def test_fsm_falls_to_0_as_a_kernel_narrows_to_the_identity():
    y = np.where(np.arange(12) % 3, 1.0, -1.0)
    assert value(FSM(), of_gram(np.eye(12), y)) < 1e-6


# What a search makes of them


@EVERY
@pytest.mark.parametrize("verify", [0, 3])
def test_the_best_kernel_then_the_lambda_with_the_lowest_loss(criterion, verify):
    X, y = tables.circles()
    result = tables.choose(X, y, learner="svm", criterion=criterion, grid=tables.SMALL, verify=verify, extend=False)
    by_kernel = {}
    for candidate in result.candidates:
        by_kernel.setdefault(candidate.kernel, []).append(candidate)
    assert all(len({c.score for c in members}) == 1 for members in by_kernel.values())
    winner = min(by_kernel, key=lambda kernel: by_kernel[kernel][0].score)
    assert result.best.kernel == winner
    lowest = min(by_kernel[winner], key=lambda c: c.loss if c.verified is None else c.verified)
    assert result.best == lowest


def test_ties_are_broken_by_the_loss_of_newton_cv():
    path = tables.path_on(tables.make_rows(), Svm(bias=False), LAMS)
    np.testing.assert_array_equal(Alignment().score(path).loss, NewtonCV().score(path).loss)


@EVERY
def test_several_classes_at_provisional_ranks(criterion):
    X, y = tables.wine()
    options = {"learner": "krr", "rank": 40, "search": "halving", "grid": {"tau": [1.0, 8.0, 64.0]}}
    result = tables.choose(X, y, criterion=criterion, **options)
    assert result.best.rank is None
    assert result.best.error < 0.1


def test_fsm_and_separability_need_classes():
    path = tables.path_on(tables.make_rows(real=True), Krr(), LAMS)
    for criterion in (FSM(), Separability()):
        with pytest.raises(IncompatibleError, match=f"criterion '{criterion.name}' needs classes, and these targets"):
            criterion.score(path)


@EVERY
def test_features_that_are_not_held(criterion):
    path = make_path(Problem(rows_of(random_labels(2)), Gaussian(1.0), tables.in_blocks(8)), Krr(), LAMS)
    with pytest.raises(IncompatibleError, match=f"criterion '{criterion.name}' looks at the features of all rows"):
        criterion.score(path)


def test_what_is_not_defined_fails_with_a_reason():
    constant = of_gram(np.ones((6, 6)), [1, -1, 1, -1, 1, -1])
    for criterion in (CenteredAlignment(), FSM(), Separability()):
        assert criterion.score(constant).failed == ["the score is not finite"] * 2
    alone = of_gram(np.eye(6), [1, -1, -1, -1, -1, -1])
    assert FSM().score(alone).failed == ["the score is not finite"] * 2
