"""Ranges of held-out losses, against losses of outputs that are within the intervals."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import problems
from kernsel.folds.partition import Partition
from kernsel.heldout.ranges import least_between
from kernsel.kernels import Statistics
from kernsel.learners import losses

LOSSES = {
    "logistic": losses.LOGISTIC,
    "squared hinge": losses.SQUARED_HINGE,
    "tube": losses.Loss("tube", losses.huber_insensitive, (0.1, 0.05)),
    "tube, by absolute errors": losses.Loss(
        "tube", losses.huber_insensitive, (0.1, 0.05), measure=losses.ABSOLUTE_ERROR
    ),
}


def partition(seed, name, clip):
    p = problems.make(seed, n=12)
    Y = p.y[None] if name in ("logistic", "squared hinge") else p.Y
    Y = np.ascontiguousarray(Y, float)
    X = np.ascontiguousarray(p.Z)
    return Partition(X, Y, np.array([0, 4, 8, 12]), np.arange(12), Statistics(X), 0, p.s, clip=clip)


@given(
    seed=st.integers(0, 10**6),
    name=st.sampled_from(list(LOSSES)),
    clip=st.booleans(),
    width=st.sampled_from([0.0, 0.01, 0.3, 5.0]),
    shift=st.sampled_from([0.0, 0.1, 3.0]),
)
def test_no_mean_loss_between_is_lower(seed, name, clip, width, shift):
    rows, loss, rng = partition(seed, name, clip), LOSSES[name], np.random.default_rng(seed)
    k, n = rows.Y.shape
    f = rng.normal(size=(k, 3, n)) * shift + rng.normal(size=(k, 1, n))
    low, high = -width * rng.random((k, 2, n)), width * rng.random((k, 2, n))
    bound = least_between(rows, loss, f, low, high)
    for _ in range(50):
        t, part = rng.random(), rng.choice([0.0, 1.0, rng.random()], size=low.shape)
        outputs = (1 - t) * f[:, :-1] + t * f[:, 1:] + (1 - part) * low + part * high
        found = rows.mean(loss.values(rows.Y, rows.clipped(outputs)).mean(axis=0))
        assert (bound <= found + 1e-12 * np.abs(found)).all()


def test_what_is_unbounded_counts_with_its_least_loss():
    rows = partition(0, "logistic", clip=False)
    f = np.zeros((1, 2, 12))
    low, high = np.full((2, 1, 1, 12), [[[[-np.inf]]], [[[np.inf]]]])
    np.testing.assert_allclose(least_between(rows, losses.LOGISTIC, f, low, high), 0.0, atol=1e-12)
    low[..., :4], high[..., :4] = 0.0, 0.0
    share = rows.s[:4].sum() / rows.s.sum()
    np.testing.assert_allclose(least_between(rows, losses.LOGISTIC, f, low, high), share * np.log(2.0))


def test_without_intervals_the_bound_is_of_second_order():
    rows, rng = partition(1, "logistic", clip=False), np.random.default_rng(0)
    start, way = rng.normal(size=(2, 1, 1, 12))
    gaps = []
    for step in (0.2, 0.1):
        f = np.concatenate([start, start + step * way], axis=1)
        nothing = np.zeros((1, 1, 12))
        ends = rows.mean(losses.LOGISTIC.values(rows.Y, f).mean(axis=0))
        gaps.append(ends.min() - least_between(rows, losses.LOGISTIC, f, nothing, nothing)[0])
    assert gaps[1] <= gaps[0] / 3 + 1e-12
