"""Features that are never held together lead where features that are held lead: brute force, and whole selections."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tables
import tolerances
import twins.heldout
import twins.losses
from kernsel.errors import IncompatibleError
from kernsel.folds.partition import Partition
from kernsel.kernels import Gaussian, Statistics
from kernsel.learners import Krr, Lssvm
from kernsel.numerics import stability
from kernsel.numerics.blocks import features as numerics
from kernsel.numerics.blocks.sums import segment_sums
from kernsel.paths.square_blocks import BlocksSquarePath
from kernsel.representation import stream
from kernsel.representation.blocks import needed
from kernsel.representation.gram import Gram
from kernsel.representation.problem import Problem, Problems
from kernsel.representation.ranks import ROOM, LowRank, Room
from kernsel.representation.stream import segments_of

LAMS = (0.3, 0.01)
RANK = 8


def path_on(rows, learner, tau=1.0, rank=RANK, block=3 * 8 * RANK):
    """A path on features in blocks, of three rows at a time."""
    path = tables.path_on(rows, learner, LAMS, tau, tables.in_blocks(rank, block=block))
    assert isinstance(path, BlocksSquarePath)
    return path


def landmarks(path):
    """The landmarks, and the map from the kernel's values there to features."""
    features = path.representation.sampled.features
    return features.points, features.T


def gram(path):
    """The Gram matrix that the features stand for."""
    points, T = landmarks(path)
    Z = path.problem.kernel(path.rows.X, points) @ T
    return Z @ Z.T


def check(path):
    """Compare held-out outputs, fits and refits with brute force."""
    rows, bias, K = path.rows, int(path.bias), gram(path)
    held, all_rows = path.exact(), slice(rows.n)
    assert held.failed == [None, None]
    assert held.exact.all()
    points = path.representation.points
    for k, lam in enumerate(path.lams):
        atol = tolerances.weighted(rows.s) * tolerances.exact(K, lam)
        expected = twins.heldout.refits_square(K, rows.Y, lam, rows.starts, rows.s, bias, rows.training)
        np.testing.assert_allclose(held.f[:, k], expected, rtol=0, atol=atol)

        def outputs(x, lo_hi, k=k):
            return x[0] @ path.problem.kernel(rows.X[lo_hi], points).T + x[1][:, None]

        solution = twins.heldout.fit_square(K, rows.Y, rows.s, lam, bias)
        expected = solution[:, :-1] @ K + solution[:, -1:]
        np.testing.assert_allclose(path.fits.f[:, k], expected, rtol=0, atol=atol)
        of_model = outputs((path.coefficients(k), path.intercepts(k)), all_rows)
        np.testing.assert_allclose(of_model, expected, rtol=0, atol=atol + magnified(path))
        coefficients, intercepts = path.refits(k)
        for fold, (lo, hi) in enumerate(pairwise(rows.starts)):
            without = outputs((coefficients[fold], intercepts[fold]), slice(lo, hi))
            np.testing.assert_allclose(without, held.f[:, k, lo:hi], rtol=0, atol=atol + magnified(path))


def magnified(path):
    """Error of outputs from coefficients ``T w``: rounding in the kernel's values, times the size of T."""
    return 100 * tolerances.EPS * np.linalg.norm(landmarks(path)[1], 2)


@pytest.mark.parametrize("learner", [Krr(), Lssvm()], ids=["krr", "lssvm"])
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@pytest.mark.parametrize("training", [False, True], ids=["", "training sets"])
@pytest.mark.parametrize("never", [0, 7])
def test_streamed_fits_are_brute_force(learner, weighted, training, never):
    check(path_on(tables.make_partition(0, (5, 9, 2, 14), never, weighted, training), learner))


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(1, 12), min_size=2, max_size=5),
    st.integers(0, 6),
    st.booleans(),
    st.booleans(),
    st.integers(1, 2),
    st.booleans(),
    st.integers(-6, 8),
    st.integers(1, 12),
)
@settings(deadline=None, max_examples=60)
def test_they_are_for_any_folds_weights_widths_and_ranks(seed, sizes, never, weighted, bias, outputs, grid, tau, rank):
    rows = tables.make_partition(seed, sizes, never, weighted, outputs=outputs, grid=grid)
    check(path_on(rows, Lssvm() if bias else Krr(), 2.0**tau, rank))


def test_the_newton_step_is_exact_and_one_lambda_is_one_of_all():
    path = path_on(tables.make_partition(0, (5, 9, 2, 14)), Krr())
    held = path.exact().f
    assert np.array_equal(path.newton_step().f, held)
    np.testing.assert_allclose(path.exact([1]).f[:, 0], held[:, 1], rtol=0, atol=1e-13)


def test_the_number_of_threads_changes_no_bit(use_threads):
    found = []
    for count in (1, 2, 5):
        use_threads(count)
        found.append(path_on(tables.make_partition(0, (5, 9, 2, 14), 7, weighted=True), Lssvm()).exact().f)
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


def test_blocks_change_rounding_alone():
    small = path_on(tables.make_partition(0, (5, 9, 2, 14), 7, weighted=True), Krr()).exact().f
    large = path_on(tables.make_partition(0, (5, 9, 2, 14), 7, weighted=True), Krr(), block=2**20).exact().f
    np.testing.assert_allclose(small, large, rtol=0, atol=1e-11)


def wide(n=400, rank=60, **magnified):
    """Features of a wide kernel, the same in full, and targets; the landmarks' block has a condition near 1e9."""
    X = np.random.default_rng(0).normal(size=(n, 4))
    problem = Problem(
        Partition(X, X[:, :1].T.copy(), np.array([0, n]), np.arange(n), Statistics(X)), Gaussian(30.0), rank
    )
    Z, points, T, _ = problem.held.factor
    return X, Z, numerics.Features(problem.kernel, points, T, X, **magnified), np.array([0, n // 3, n])


def error_of_sums(X, Z, features, bounds):
    """Largest error of the products, relative to the largest of them, in units of rounding."""
    G, q, _ = segment_sums(features, X, np.ones((1, len(X))), None, bounds)
    expected = np.stack([Z[lo:hi].T @ Z[lo:hi] for lo, hi in pairwise(bounds)])
    np.testing.assert_allclose(q[:, 0], [Z[lo:hi].sum(axis=0) for lo, hi in pairwise(bounds)], rtol=0, atol=1e-7)
    return np.abs(G - expected).max() / expected.max() / tolerances.EPS


def test_few_pivots_are_eliminated_from_blocks_and_keep_the_digits():
    X, Z, features, bounds = wide()
    assert 0 < features.head <= 15
    kept = error_of_sums(X, Z, features, bounds)
    squared = error_of_sums(X, Z, wide(magnified=np.inf)[2], bounds)
    whole = wide(magnified=0.0)[2]
    assert whole.head == whole.rank
    transformed = error_of_sums(X, Z, whole, bounds)
    # Both other ways round T itself; the squared condition shows only where nothing is eliminated.
    assert kept < 10 * max(transformed, len(X)) < squared / 100


def test_a_narrow_kernel_needs_no_elimination():
    X = np.random.default_rng(0).normal(size=(100, 4))
    assert numerics.Features(Gaussian(1e-3), X[:20], np.eye(20), X).head == 0


@pytest.mark.parametrize("learner", ["krr", "lssvm"])
@pytest.mark.parametrize("options", [{}, {"weights": True}, {"folds": "time:4"}], ids=["", "weights", "time"])
def test_a_selection_is_that_of_features_in_memory(learner, options):
    X, y = tables.waves(200)
    y = np.where(y > 0, "up", "down") if learner == "lssvm" else 10.0 + y
    weights = np.random.default_rng(0).exponential(size=200) + 0.1 if options.pop("weights", False) else None
    dataset = tables.from_arrays(X, y, weights=weights)
    metric = "accuracy" if learner == "lssvm" else "r2"
    # Extended, the grid would hold kernels so wide that rounding in T shows.
    options = {
        "learner": learner, "grid": tables.SMALL, "extend": False, "metric": metric, "folds": 5,
    } | options  # fmt: skip
    streamed = tables.select_dataset(
        dataset, **options, rank=tables.in_blocks(25)
    )  # the landmarks' sample holds all rows
    plain = tables.select_dataset(dataset, **options, rank=25)
    assert "in blocks of rows" in streamed.data["representation"]
    assert "in blocks of rows" not in plain.data["representation"]
    assert streamed.data["rank"] == plain.data["rank"]
    assert [c.key for c in streamed.candidates] == [c.key for c in plain.candidates]
    for name in ("score", "score_se", "error"):
        np.testing.assert_allclose(*([getattr(c, name) for c in each.candidates] for each in (streamed, plain)), 1e-9)
    new = np.random.default_rng(1).normal(size=(20, 2))
    np.testing.assert_allclose(streamed.model.decision(new), plain.model.decision(new), rtol=0, atol=1e-7)
    np.testing.assert_allclose(streamed.outputs, plain.outputs, rtol=0, atol=1e-8)
    if learner == "krr":
        np.testing.assert_allclose(
            streamed.model.predict_interval(new), plain.model.predict_interval(new), rtol=0, atol=1e-6
        )


def test_segments_are_what_all_fits_take_or_leave_as_a_whole():
    for training in (False, True):
        rows = tables.make_partition(3, (5, 9, 2, 14), 7, training=training)
        bounds = segments_of(rows, ROOM.runs)
        assert bounds[0] == 0
        assert bounds[-1] == rows.n
        assert (np.diff(bounds) > 0).all()
        assert set(rows.starts) <= set(bounds)
        assert np.diff(bounds).max() <= -(-rows.n // stream.LONGEST)
        for fold in range(4):
            kept = rows.kept(fold)
            assert all(kept[lo:hi].all() or not kept[lo:hi].any() for lo, hi in pairwise(bounds))


def test_what_fits_is_held_and_what_has_too_many_folds_is_not_streamed():
    rows = tables.make_partition(0, (5, 9, 2, 14))
    room = Room(features=8 * rows.n * RANK)
    assert not needed(rows, LowRank(RANK, room=room), square=True)
    assert needed(rows, LowRank(RANK + 1, room=room), square=True)
    room = room._replace(products=8 * 4 * RANK**2)
    assert not needed(rows, LowRank(RANK + 1, room=room), square=True)
    assert isinstance(Problem(rows, Gaussian(1.0)).representation(Krr().loss), Gram)


@pytest.mark.parametrize("learner", [Krr(), Lssvm()], ids=["krr", "lssvm"])
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@pytest.mark.parametrize("order", [1, 3])
def test_the_influence_is_the_dense_series(learner, weighted, order):
    path = path_on(tables.make_partition(0, (5, 9, 2, 14), 7 * weighted, weighted), learner)
    rows, bias = path.rows, int(path.bias)
    points, T = landmarks(path)
    Z = np.column_stack([path.problem.kernel(rows.X, points) @ T, np.ones((rows.n, bias))])
    held, ratio = path.influence(order), path.ratio
    assert not held.exact.any()
    for k, lam in enumerate(path.lams):
        atol = tolerances.weighted(rows.s) * tolerances.exact(Z @ Z.T, lam)
        largest = 0.0
        for y, f in zip(rows.Y, held.f[:, k], strict=True):
            w = twins.heldout.fit(twins.losses.square, Z, y, rows.s, lam, bias)
            expected = twins.heldout.series(twins.losses.square, Z, y, lam, w, rows.starts, order, s=rows.s, bias=bias)
            np.testing.assert_allclose(f[: rows.held], expected[: rows.held], rtol=0, atol=atol)
            largest = max(largest, *twins.heldout.ratios(twins.losses.square, Z, y, lam, w, rows.starts, rows.s, bias))
        np.testing.assert_allclose(ratio[k], largest, rtol=1e-9)


def test_a_ridge_below_rounding_has_no_influence_function():
    rows = tables.make_partition(0, (5, 9, 2, 14))
    path = tables.path_on(rows, Lssvm(), [0.1, 1e-300], tau=1e14, rank=tables.in_blocks(RANK))  # two constant features
    held = path.influence(1)
    assert held.failed[0] is None
    assert held.failed[1] is not None
    assert path.ratio[1] == np.inf


def test_the_influence_needs_folds_that_leave_out_their_own_rows():
    path = path_on(tables.make_partition(0, (5, 9, 2, 14), training=True), Krr())
    for ask in (lambda: path.influence(1), lambda: path.ratio, lambda: path.nystrom_influence(0.5)):
        with pytest.raises(IncompatibleError, match="use the criterion cv"):
            ask()


def test_the_representation_in_words():
    path = path_on(tables.make_partition(0, (5, 9, 2, 14)), Krr(), rank=2)
    assert path.describe().startswith(
        "rank 2 of n = 30 in blocks of rows (randomly pivoted Cholesky of 20 random rows)"
    )
    assert path.representation.rank == 2


def test_a_pass_is_kept_for_the_refit_while_there_is_room():
    rows, problems, rank = tables.make_partition(0, (5, 9, 2, 14)), Problems(), LowRank(RANK)
    kernels = [Gaussian(tau) for tau in (0.5, 1.0, 2.0)]
    first = [problems.on(rows, kernel, rank).blocks.stream for kernel in kernels]
    again = [problems.on(rows, kernel, rank).blocks.stream for kernel in kernels]
    assert all(one is other for one, other in zip(first, again, strict=True))
    problems.room = int(2.5 * problems.on(rows, kernels[0], rank).nbytes)
    last = problems.on(rows, Gaussian(4.0), rank).blocks.stream
    assert problems.on(rows, kernels[0], rank).blocks.stream is first[0]
    assert problems.on(rows, Gaussian(4.0), rank).blocks.stream is last
    assert sum(each.blocks.stream.sums.nbytes for each in problems.kept.values()) < 3 * first[0].sums.nbytes
    assert problems.on(rows, kernels[1], rank).blocks.stream is not first[1]


@pytest.mark.parametrize("weighted", [False, True])
def test_the_stability_scan_is_that_of_the_features(weighted):
    path = path_on(tables.make_partition(0, (5, 9, 4), weighted=weighted), Krr())
    K, s = gram(path), path.rows.weights
    for norm in stability.NORMS:
        found, expected = (
            stability.perturbations(scan, norm) for scan in (path.representation.stability, stability.scan_gram(K, s))
        )
        np.testing.assert_allclose(found, expected, rtol=magnified(path))
