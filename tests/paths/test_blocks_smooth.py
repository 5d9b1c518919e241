"""Smooth losses on features that are never held together have the outputs of those that are."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tables
from kernsel.errors import IncompatibleError
from kernsel.learners import Klr, L2Svm, Svm, Svr
from kernsel.numerics.blocks import newton as descent
from kernsel.numerics.smooth import convergence
from kernsel.paths.smooth_blocks import BlocksSmoothPath
from kernsel.representation.ranks import Factor

LAMS = (0.3, 0.01, 1e-3)
RANK = 8
SAME = 1e-8
LEARNERS = {
    "svm": Svm(h=0.3, bias=False), "svm with bias": Svm(h=0.3, bias=True), "klr": Klr(bias=True),
    "l2svm": L2Svm(bias=False),
    "svr": Svr(epsilon=0.1, h=0.1),
}  # fmt: skip


def two(rows, learner, tau=1.0, rank=RANK, lams=LAMS, **room):
    """The path on features in blocks of seventeen rows, from landmarks among four rows each; and on the same, held."""
    if not isinstance(learner, Svr):
        rows = rows.taken(np.arange(rows.n), rows.starts)
        rows.Y[:] = np.where(rows.Y > 0, 1.0, -1.0)
    room = {"block": 17 * 8 * RANK, "sample": 4} | room
    blocked = tables.path_on(rows, learner, lams, tau, tables.in_blocks(rank, **room))
    held = tables.path_on(rows, learner, lams, tau, rank)
    features = blocked.representation.sampled.features  # from landmarks among some of the rows
    Z = features.kernel(rows.X, features.points) @ features.T
    held.representation.factor = Factor(Z, features.points, features.T, 0.0)
    assert isinstance(blocked, BlocksSmoothPath)
    assert not isinstance(held, BlocksSmoothPath)
    return blocked, held


@pytest.fixture(autouse=True)
def one_thread(use_threads):
    """Several would only wait for each other."""
    use_threads(1)


def same_outputs(one, other):
    assert one.failed == other.failed
    usable = [reason is None for reason in other.failed]
    np.testing.assert_allclose(one.f[:, usable], other.f[:, usable], rtol=0, atol=SAME)
    assert np.array_equal(one.exact, other.exact)


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
@pytest.mark.parametrize(("weighted", "never"), [(False, 0), (True, 7)], ids=["", "weights"])
def test_everything_is_that_of_features_in_memory(learner, weighted, never):
    blocked, held = two(tables.make_partition(0, (19, 17, 22, 14), never, weighted), learner)
    np.testing.assert_allclose(blocked.fits.f, held.fits.f, rtol=0, atol=SAME)
    assert np.array_equal(blocked.fits.status, held.fits.status)
    one, other = blocked.newton_step(), held.newton_step()
    same_outputs(one, other)
    assert np.array_equal(one.refitted, other.refitted)
    same_outputs(blocked.exact(), held.exact())
    same_outputs(blocked.exact([1]), held.exact([1]))
    same_outputs(blocked.influence(1), held.influence(1))
    np.testing.assert_allclose(blocked.ratio, held.ratio, rtol=0.2, atol=0.02)
    new = np.random.default_rng(1).normal(size=(5, 2))
    for k in range(len(LAMS)):
        for one, other in ((blocked.coefficients(k), held.coefficients(k)), (blocked.refits(k)[0], held.refits(k)[0])):
            outputs = [
                x @ path.problem.kernel(path.representation.points, new) for x, path in ((one, blocked), (other, held))
            ]
            np.testing.assert_allclose(*outputs, rtol=0, atol=1e-7)
        np.testing.assert_allclose(blocked.intercepts(k), held.intercepts(k), rtol=0, atol=SAME)


@pytest.mark.parametrize("learner", [Svm(h=0.3, bias=False), Klr(bias=False)], ids=["svm", "klr"])
def test_splits_with_training_sets_are_refitted(learner):
    blocked, held = two(tables.make_partition(0, (19, 17, 22, 14), training=True), learner)
    same_outputs(blocked.newton_step(), held.newton_step())
    with pytest.raises(IncompatibleError, match="use the criterion cv"):
        blocked.influence(1)


@given(
    st.sampled_from(list(LEARNERS)), st.integers(0, 2**32 - 1),
    st.lists(st.integers(3, 12), min_size=2, max_size=5), st.booleans(), st.integers(-4, 5), st.integers(1, 12),
)  # fmt: skip
@settings(deadline=None, max_examples=15)
def test_they_are_for_any_folds_weights_widths_and_ranks(name, seed, sizes, weighted, tau, rank):
    rows = tables.make_partition(seed, sizes, 4, weighted, outputs=1)
    blocked, held = two(rows, LEARNERS[name], 2.0**tau, rank, (0.3, 0.01))
    if LEARNERS[name].bias and isinstance(LEARNERS[name], Svm):  # without a row in its bend, a bias is free to move
        assume((np.abs(1 - held.rows.Y[:, None] * held.fits.f) < LEARNERS[name].h).any(axis=2).all())
    np.testing.assert_allclose(blocked.fits.f, held.fits.f, rtol=0, atol=10 * SAME)
    one, other = blocked.exact(), held.exact()
    for k, reason in enumerate(other.failed):
        if reason is None and one.failed[k] is None:
            np.testing.assert_allclose(one.f[:, k], other.f[:, k], rtol=0, atol=10 * SAME)


def test_groups_of_fits_and_threads_change_nothing(use_threads):
    rows = tables.make_partition(0, (19, 17, 22, 14), 7, weighted=True)
    found = []
    for count in (1, 2):
        use_threads(count)
        blocked, _ = two(rows, Svm(h=0.3, bias=True))
        found.append((blocked.newton_step().f, blocked.exact().f))
    alone, _ = two(rows, Svm(h=0.3, bias=True), fits=1)
    for one, two_threads, single in zip(*found, (alone.newton_step().f, alone.exact().f), strict=True):
        assert np.array_equal(one, two_threads)
        np.testing.assert_allclose(one, single, rtol=0, atol=1e-12)


def test_a_step_that_is_too_long_is_damped(monkeypatch):
    """From weights that are far off, with a kink so narrow that whole steps cycle."""
    blocked, held = two(tables.make_partition(0, (19, 17, 22, 14), outputs=1), Svm(h=1e-3, bias=False))
    far = 100 * np.random.default_rng(0).normal(size=(1, 3, blocked.representation.rank))
    monkeypatch.setattr(BlocksSmoothPath, "_starts", far)
    np.testing.assert_allclose(blocked.fits.f, held.fits.f, rtol=0, atol=1e-7)
    assert (blocked.fits.status == convergence.CONVERGED).all()


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_fits_start_from_what_is_near(monkeypatch, learner):
    """One pass tells that they are there already; one lambda that is not near starts from the sampled rows."""
    first, _ = two(tables.make_partition(0, (19, 17, 22, 14)), learner)
    near = first.settled()
    assert list(near) == list(LAMS)
    passes = []
    evaluate = descent.Newton.evaluate
    monkeypatch.setattr(descent.Newton, "evaluate", lambda *args: passes.append(args) or evaluate(*args))
    for known in (near, {lam: near[lam] for lam in LAMS[1:]}):
        passes.clear()
        path = BlocksSmoothPath(first.problem, first.representation, learner, first.lams, near=known)
        np.testing.assert_allclose(path.fits.f, first.fits.f, rtol=0, atol=SAME)
        if known is near:
            assert len(passes) <= 2


def test_single_rows_are_not_left_out():
    blocked, _ = two(tables.make_partition(0, (19, 17, 22, 14)), Svm(bias=False))
    with pytest.raises(IncompatibleError, match="use newton-cv, or a lower rank"):
        blocked.one_by_one.newton_step()


def test_the_stability_scan_is_that_of_the_features():
    blocked, held = two(tables.make_partition(0, (19, 17, 22, 14)), Svm(bias=False))
    np.testing.assert_allclose(
        blocked.representation.stability.diag, held.representation.stability.diag, rtol=0, atol=1e-10
    )
    assert "in blocks of rows" in blocked.describe()


@pytest.mark.parametrize("options", [{"weights": True}, {"learner": "klr", "repeats": 2}], ids=str)
def test_a_selection_is_that_of_features_in_memory(options):
    X, y = tables.circles(200)
    weights = np.random.default_rng(0).exponential(size=200) + 0.1 if options.pop("weights", False) else None
    dataset = tables.from_arrays(X, y, weights=weights)
    options = {"rank": 25, "grid": tables.SMALL, "extend": False, "folds": 5} | options
    plain = tables.select_dataset(dataset, **options)
    rank = tables.in_blocks(25, block=64 * 8 * 25)  # and from landmarks among all rows
    blocked = tables.select_dataset(dataset, **options | {"rank": rank})
    assert "in blocks of rows" in blocked.data["representation"]
    assert [c.key for c in blocked.candidates] == [c.key for c in plain.candidates]
    for name in ("score", "score_se", "error"):
        np.testing.assert_allclose(*([getattr(c, name) for c in each.candidates] for each in (blocked, plain)), 1e-7)
    np.testing.assert_allclose(blocked.outputs, plain.outputs, rtol=0, atol=1e-7)
    np.testing.assert_allclose(blocked.probabilities, plain.probabilities, rtol=0, atol=1e-5)
