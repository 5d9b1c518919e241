"""Every learner, every way to hold out, with and without weights and a bias: exact is what brute force says."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tables
import tolerances
import twins.heldout
import twins.losses
from kernsel import registry
from kernsel.folds.partition import Partition
from kernsel.learners import Klr, Krr, L2Svm, Lssvm, Qsvr, Svm, Svr

TWINS = [
    (Krr(), twins.losses.square, 2.0),
    (Lssvm(), twins.losses.square, 2.0),
    (Svm(h=0.2, bias=False), twins.losses.huber_hinge(0.2), 2.5),
    (Svm(h=0.2, bias=True), twins.losses.huber_hinge(0.2), 2.5),
    (L2Svm(bias=False), twins.losses.squared_hinge, 2.0),
    (L2Svm(bias=True), twins.losses.squared_hinge, 2.0),
    (Klr(bias=False), twins.losses.logistic, 0.25),
    (Klr(bias=True), twins.losses.logistic, 0.25),
    (Svr(epsilon=0.2, h=0.1), twins.losses.huber_insensitive(0.2, 0.1), 5.0),
    (Svr(epsilon=0.2, h=0.1, bias=False), twins.losses.huber_insensitive(0.2, 0.1), 5.0),
    (Qsvr(epsilon=0.1), twins.losses.squared_insensitive(0.1), 2.0),
    (Qsvr(epsilon=0.1, bias=False), twins.losses.squared_insensitive(0.1), 2.0),
]
learners = pytest.mark.parametrize(("learner", "twin", "curvature"), TWINS, ids=[str(each[0]) for each in TWINS])
ranks = pytest.mark.parametrize("rank", [None, 8], ids=["full", "rank 8"])


def test_every_built_in_learner_has_a_twin():
    built_in = {claim.name for claim in registry.claims("learner") if claim.builtin}
    assert {learner.name for learner, *_ in TWINS} == built_in


@st.composite
def held_out(draw):
    """Rows of 15 to 60 points in unequal folds, one by one, with some never held out, or in the order of time."""
    way = draw(st.sampled_from(["folds", "loo", "some", "time"]))
    sizes = (
        [1] * draw(st.integers(15, 20)) if way == "loo" else draw(st.lists(st.integers(5, 15), min_size=3, max_size=4))
    )
    rows = tables.make_rows(draw(st.integers(0, 2**32 - 1)), n=sum(sizes), sizes=sizes, real=True)
    starts, training = rows.starts, None
    if way == "some":
        starts = starts[:-1]
    if way == "time":  # the last fold is the oldest: it is trained on by all others and held out by none
        starts = starts[:-1]
        held = np.repeat(np.arange(len(sizes)), sizes)
        training = np.stack([held > fold for fold in range(len(starts) - 1)])
    weights = np.random.default_rng(0).exponential(size=rows.n) + 0.1 if draw(st.booleans()) else None
    return replace(rows, starts=starts, training=training, weights=weights)


def refits(twin, curvature, path, y, lam):
    """Held-out outputs by brute force; a bias must be settled by curved rows in every training set."""
    rows, bias = path.rows, int(path.bias)
    Z = np.column_stack([tables.slow_features(path), np.ones((rows.n, bias))])
    out = np.zeros(rows.n)
    for fold, (lo, hi) in enumerate(pairwise(rows.starts)):
        kept = np.ones(rows.n, bool) if rows.training is None else rows.training[fold].copy()
        kept[lo:hi] = False
        if bias and twin is not twins.losses.square:
            assume("regression" in path.learner.tasks or np.unique(y[kept]).size == 2)
        w = twins.heldout.fit(twin, Z[kept], y[kept], rows.s[kept], lam, bias)
        if bias:
            for shift in (-1e-3, 1e-3):  # else the bias is free to move
                assume((twin(y, Z @ w + shift)[2][kept] > 1e-3 * curvature).any())
        out[lo:hi] = Z[lo:hi] @ w
    return out[: rows.held]


def as_classes(rows: Partition) -> Partition:
    return replace(rows, Y=np.where(np.median(rows.Y, axis=1, keepdims=True) < rows.Y, 1.0, -1.0))


@learners
@ranks
@settings(max_examples=12)
@given(rows=held_out(), tau=st.sampled_from([0.5, 2.0, 8.0]), lam=st.sampled_from([0.3, 0.01]))
def test_exact_held_out_outputs_are_those_of_brute_force(learner, twin, curvature, rank, rows, tau, lam):
    if "regression" not in learner.tasks:
        rows = as_classes(rows)
    path = tables.path_on(rows, learner, [1.0, lam], tau, rank)
    held = path.exact()
    assert held.failed == [None, None]
    assert held.exact.all()
    for k, each in enumerate(path.lams):
        for c, y in enumerate(rows.Y):
            expected = refits(twin, curvature, path, y, each)
            atol = tolerances.weighted(rows.s) * tolerances.curved(np.eye(rows.n), each, curvature)
            np.testing.assert_allclose(held.f[c, k, : rows.held], expected, rtol=0, atol=max(1e-8, 10 * atol))


@learners
@ranks
@settings(max_examples=6)
@given(rows=held_out(), lam=st.sampled_from([0.3, 0.01]))
def test_refits_are_the_models_behind_them(learner, twin, curvature, rank, rows, lam):
    if "regression" not in learner.tasks:
        rows = as_classes(rows)
    path = tables.path_on(rows, learner, [1.0, lam], 2.0, rank)
    held = path.exact()
    assume(held.failed[1] is None)
    coefficients, intercepts = path.refits(1)
    K = path.problem.kernel(rows.X, path.representation.points)
    for fold, (lo, hi) in enumerate(pairwise(rows.starts)):
        f = coefficients[fold] @ K[lo:hi].T + intercepts[fold][:, None]
        np.testing.assert_allclose(f, held.f[:, 1, lo:hi], atol=1e-6)
