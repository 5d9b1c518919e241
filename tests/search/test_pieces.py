"""Held-out losses that are summed up in pieces are those of outputs that are held; rows needn't be copied for it."""

import tracemalloc

import numpy as np
import pytest

import tables
import tolerances
from kernsel.criteria import CV
from kernsel.data import from_arrays
from kernsel.errors import SelectionWarning
from kernsel.folds import make_folds
from kernsel.folds.partition import Partition
from kernsel.heldout.errors import Errors
from kernsel.kernels import Gaussian
from kernsel.learners import Krr, Lssvm
from kernsel.numerics.points import Rearranged
from kernsel.paths.square_blocks import BlocksSquarePath
from kernsel.search.pieces import score_in_pieces
from kernsel.selection.api import select

LAMS = (0.3, 0.01, 0.001)
ROWS_OF_PIECE = 7
"""Fewer than there are in a fold, and no divisor of their number."""


def rows_and_errors(kind, weights, copied_bytes=None):
    X, y = tables.circles(90) if kind == "classes" else tables.waves(90, scale=3.0)
    if kind == "targets":
        y = np.column_stack([y, X[:, 0]])
    data = from_arrays(X, y, weights=weights)
    room = {} if copied_bytes is None else {"copied_bytes": copied_bytes}
    rows = Partition.of(data, make_folds(4, data, 0), 0, clip=kind != "classes", **room)
    return rows, Errors.of(data)


def path_on(rows, learner):
    path = tables.path_on(rows, learner, LAMS, 1.0, tables.in_blocks(12))
    assert isinstance(path, BlocksSquarePath)
    return path


def in_pieces(path, errors):
    path.held_bytes, path.piece_bytes = 0, ROWS_OF_PIECE * 8 * len(LAMS) * len(path.rows.Y)
    return score_in_pieces(path, errors)


@pytest.mark.parametrize("kind", ["regression", "targets", "classes"])
@pytest.mark.parametrize("weighted", ["", "counts", "weights"])
def test_scores_and_errors_in_pieces_are_those_of_all_rows_together(kind, weighted):
    rng = np.random.default_rng(3)
    weights = {"": None, "counts": rng.integers(1, 4, 90).astype(float), "weights": rng.exponential(size=90)}[weighted]
    rows, errors = rows_and_errors(kind, weights)
    learner = Lssvm() if kind == "classes" else Krr()
    found = in_pieces(path_on(rows, learner), errors)
    scores = CV().score(path_on(rows, learner))
    pairs = [(found.scores.score, scores.score), (found.scores.loss, scores.loss)]
    pairs += [(found.scores.score_se, scores.score_se)]
    pairs += list(zip(found.error, errors.mean(rows, scores.heldout.f), strict=True))
    for of_pieces, of_all in pairs:
        np.testing.assert_allclose(of_pieces, of_all, rtol=tolerances.SUMS)
    assert found.scores.failed == scores.failed == [None] * len(LAMS)


def test_pieces_are_taken_only_where_outputs_take_more_than_their_room():
    rows, errors = rows_and_errors("regression", None)
    assert score_in_pieces(path_on(rows, Krr()), errors) is None


def test_a_fit_that_fails_without_one_fold_has_failed():
    rows, errors = rows_and_errors("regression", None)
    lams = 0.1, -10.0  # no matrix is positive definite at the second
    path = tables.path_on(rows, Krr(), lams, 1.0, tables.in_blocks(12))
    path.held_bytes = 0
    expected = CV().score(path).failed
    assert expected[0] is None
    assert expected[1] is not None
    assert score_in_pieces(path, errors).scores.failed == expected


@pytest.mark.parametrize("learner", [Krr(), Lssvm()], ids=["krr", "bias"])
def test_rows_that_are_not_copied_give_the_same_bits(learner):
    (copied, errors), (left, _) = (rows_and_errors("regression", None, room) for room in (None, 0))
    assert isinstance(left.X, Rearranged)
    np.testing.assert_array_equal(np.asarray(left.X), copied.X)
    np.testing.assert_array_equal(left.diagonal(Gaussian(1.0)), copied.diagonal(Gaussian(1.0)))
    one, other = path_on(copied, learner), path_on(left, learner)
    np.testing.assert_array_equal(one.exact().f, other.exact().f)
    np.testing.assert_array_equal(one.fits.f, other.fits.f)
    a, b = in_pieces(one, errors), in_pieces(other, errors)
    np.testing.assert_array_equal(a.scores.score, b.scores.score)


def test_outputs_of_all_rows_are_never_held_together():
    lams = np.geomspace(1.0, 1e-4, 40)
    X, y = tables.waves(10_000)
    data = from_arrays(X, y)
    path = tables.path_on(Partition.of(data, make_folds(4, data, 0), 0), Krr(), lams, 1.0, tables.in_blocks(12))
    path.held_bytes, path.piece_bytes = 0, 2**16
    path.representation.stream  # noqa: B018  # the pass before
    tracemalloc.start()
    try:
        score_in_pieces(path, Errors.of(data))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.5 * 8 * path.rows.n * lams.size


def test_a_certificate_holds_the_outputs_that_its_intervals_are_of(monkeypatch):
    monkeypatch.setattr(BlocksSquarePath, "held_bytes", 0)
    X, y = tables.waves(90)
    options = {"kernel": "gaussian", "grid": {"tau": [1.0], "lambda": list(LAMS)}, "folds": 4, "extend": False}
    with pytest.warns(SelectionWarning, match="edge of the grid"):
        found = select(X, y, **options, criterion="cv", rank=tables.in_blocks(12), certify=0.01)
    assert found.certificate.proved
