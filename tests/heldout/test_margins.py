"""How far predictions may leave the range of the targets: against loops over rows, and on targets that go on or not."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernsel
import problems
import tables
from kernsel.folds.partition import Partition
from kernsel.heldout.margins import FURTHER, MARGINS, WORTH, describe_margins, margins_of
from kernsel.kernels import Statistics
from kernsel.learners import losses
from kernsel.model import Model

LOSSES = {
    "square": losses.SQUARE,
    "tube": losses.Loss("tube", losses.huber_insensitive, (0.1, 0.05), measure=losses.ABSOLUTE_ERROR),
}


def partition(seed, weighted=False, clip=True, training=None):
    p = problems.make(seed, n=14, weighted=weighted)
    X = np.ascontiguousarray(p.Z)
    weights = p.s if weighted else None
    starts = np.array([0, 3, 7, 12])  # two rows are in no fold
    return Partition(X, p.Y, starts, np.arange(14), Statistics(X), 0, weights, training, clip=clip)


def by_hand(rows, loss, F, k, end):
    """The margin of one end of one output, row by row."""
    best, least, totals = None, np.inf, []
    for margin in MARGINS:
        total = 0.0
        for fold in range(3):
            seen = rows.Y[k, rows.kept(fold)]
            low, high = seen.min(), seen.max()
            width = high - low
            low, high = (low - margin * width, high) if end == 0 else (low, high + margin * width)
            for i in range(rows.starts[fold], rows.starts[fold + 1]):
                f = min(max(F[k, i], low), high)
                total += rows.s[i] * float(loss.value(rows.Y[[k], i : i + 1], np.array([[f]]))[0, 0])
        totals.append(total)
        if total < least * (1 - 1e-12):  # rounding of a sum tells no two margins apart
            best, least = margin, total
    return FURTHER * best if least <= (1 - WORTH) * totals[0] else 0.0


@given(
    seed=st.integers(0, 10**6),
    name=st.sampled_from(list(LOSSES)),
    weighted=st.booleans(),
    size=st.sampled_from([0.0, 0.3, 1.0, 3.0]),
    apart=st.booleans(),
)
def test_the_margin_is_the_least_of_those_with_the_least_loss(seed, name, weighted, size, apart):
    rng = np.random.default_rng(seed)
    rows, loss = partition(seed, weighted), LOSSES[name]
    if apart:  # fits that leave out more than their fold
        kept = np.stack([rows.kept(fold) for fold in range(3)])
        kept[:, rng.integers(14)] = False
        rows = replace(rows, training=kept)
    F = rows.Y * (1 + size * rng.random(rows.Y.shape)) + 0.1 * size * rng.normal(size=rows.Y.shape)
    found = margins_of([rows], loss, [F])
    wanted = np.array([[by_hand(rows, loss, F, k, end) for k in range(2)] for end in range(2)])
    if found is None:
        found = np.zeros((2, 2))
    np.testing.assert_array_equal(found, wanted)


def test_deals_count_alike():
    rows, other = partition(0), partition(1)
    F, G = 1.5 * rows.Y, 1.2 * other.Y
    both = margins_of([rows, other], losses.SQUARE, [F, G])
    assert not np.array_equal(both, margins_of([rows], losses.SQUARE, [F]))
    np.testing.assert_array_equal(both, margins_of([other, rows], losses.SQUARE, [G, F]))
    np.testing.assert_array_equal(margins_of([rows, other], losses.SQUARE, [F]), margins_of([rows], losses.SQUARE, [F]))


def test_outputs_within_the_range_have_no_margin():
    rows = partition(0)
    assert margins_of([rows], losses.SQUARE, [np.clip(rows.Y, -0.1, 0.1)]) is None


def test_outputs_that_are_not_clipped_have_no_margin():
    rows = partition(0, clip=False)
    assert margins_of([rows], losses.SQUARE, [5 * rows.Y]) is None


def test_margins_widen_the_range_of_all_rows_and_of_each_fold():
    rows = partition(3)
    margins = np.array([[0.5, 0.0], [0.25, 2.0]])
    wide = replace(rows, margins=margins)
    for narrow, widened in ((rows.limits, wide.limits), (rows.limits_apart, wide.limits_apart)):
        width = narrow[1] - narrow[0]
        shape = (2, *(1,) * (width.ndim - 1))
        np.testing.assert_array_equal(widened[0], narrow[0] - margins[0].reshape(shape) * width)
        np.testing.assert_array_equal(widened[1], narrow[1] + margins[1].reshape(shape) * width)


def test_margins_in_words():
    assert "by 12.5 % of it below and 50 % of it above," in describe_margins(np.array([[0.125], [0.5]]))
    assert "by up to 25 % of it above," in describe_margins(np.array([[0.0, 0.0], [0.0, 0.25]]))


def plane(n, noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X @ [3.0, -2.0, 1.0] + noise * rng.normal(size=n)


@pytest.fixture(scope="module")
def chosen():
    return kernsel.select(*plane(60), kernel="linear", intervals="even")


def test_a_plane_goes_on_beyond_the_targets(chosen):
    y, (X, goal) = plane(60)[1], plane(2000, seed=1)
    beyond = goal > y.max()
    model = chosen.model
    low, high = model.limits[:, 0] * model.output_scale[0] + model.output_shift[0]
    assert low < y.min()
    assert y.max() < high < y.max() + FURTHER * np.ptp(y) * 1.001
    near = beyond & (goal < high - 1.0)
    assert near.sum() > 5
    np.testing.assert_allclose(model.predict(X[near]), goal[near], atol=0.6)  # six standard deviations of the noise
    clipped = np.clip(model.predict(X), y.min(), y.max())
    assert np.mean((model.predict(X) - goal) ** 2) < 0.7 * np.mean((clipped - goal) ** 2)


def test_what_is_reported_is_of_those_predictions(chosen):
    y = plane(60)[1]
    np.testing.assert_allclose(chosen.best.error, np.sqrt(np.mean((chosen.heldout - y) ** 2)), rtol=1e-10)
    assert chosen.heldout.max() > np.sort(y)[-2] or chosen.heldout.min() < np.sort(y)[1]
    assert chosen.procedure.low < chosen.best.error < chosen.procedure.high
    assert any("leave the range of the training target" in note for note in chosen.data["notes"])
    assert "is of outputs that may leave the range, those below it of outputs within" in chosen.summary()
    assert "made anew" not in chosen.summary()


def test_intervals_and_a_saved_model_go_as_far(chosen, tmp_path):
    X, goal = plane(2000, seed=1)
    chosen.model.save(tmp_path / "plane.npz")
    model = Model.load(tmp_path / "plane.npz")
    np.testing.assert_array_equal(model.predict(X), chosen.model.predict(X))
    low, high = model.predict_interval(X, 0.9).T
    far = model.predict(X) > plane(60)[1].max() + 0.5
    assert far.any()
    assert np.mean((low[far] <= goal[far]) & (goal[far] <= high[far])) > 0.8


def test_noise_does_not_go_on():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 3)), rng.normal(size=80)
    selection = tables.choose(X, y, kernel="gaussian")
    assert selection.data["margins"] is None
    assert selection.model.limits[1, 0] * selection.model.output_scale[0] + selection.model.output_shift[
        0
    ] == pytest.approx(y.max())


def test_what_one_row_far_away_gives_back_is_too_little():
    X, y = plane(30)
    y[3] = 1e6
    rows = tables.choose(X, y, kernel="linear")
    assert rows.data["margins"] is None
    assert rows.model.limits is not None


def test_no_range_is_no_range():
    model = kernsel.select(*plane(60), kernel="linear", clip=False).model
    assert model.limits is None
