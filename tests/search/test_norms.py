"""What the rule of choice rests on: norms of fits, outputs within the range of the targets, and its order."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tables
import twins.heldout
from kernsel.errors import OptionError
from kernsel.kernels import Gaussian, parse
from kernsel.learners import Klr, Krr, Lssvm, Svm, Svr
from kernsel.paths import make_path
from kernsel.representation.problem import Problem
from kernsel.search.candidate import Candidate
from kernsel.search.choice import MOST, Rule, choose

LAMS = [1.0, 0.03, 1e-3]


def weighted(rows):
    return replace(rows, weights=np.random.default_rng(1).uniform(0.5, 2.0, rows.n))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weigh", [lambda rows: rows, weighted], ids=["plain", "weighted"])
def test_the_norm_of_the_square_loss_is_that_of_the_solved_system(bias, weigh):
    rows = weigh(tables.make_rows(real=True))
    kernel = Gaussian(1.3)
    K = kernel(rows.X)
    path = make_path(Problem(rows, kernel, None), Lssvm() if bias else Krr(), LAMS)
    for k, lam in enumerate(path.lams):
        exact = sum(a @ K @ a for a in (twins.heldout.fit_square(K, y, rows.s, lam, int(bias))[:-1] for y in rows.Y))
        assert path.norms([k]) == pytest.approx([exact], rel=1e-9)
        assert path.norms([k], path.exact().norms) == pytest.approx([exact], rel=1e-9)
    assert path.norms([]).shape == (0,)


@pytest.mark.parametrize("learner", [Krr(), Lssvm(), Svm(bias=False), Svm(bias=True), Klr(bias=False), Svr()], ids=str)
@pytest.mark.parametrize("rank", [None, 12])
def test_the_norm_bounds_every_output(learner, rank):
    rows = tables.make_rows(real=learner.name in ("krr", "lssvm", "svr"))
    kernel = parse("2.5*gaussian(tau=0.7)")
    path = make_path(Problem(rows, kernel, rank), learner, LAMS)
    far = np.random.default_rng(0).normal(scale=3.0, size=(200, 2))
    for k in range(len(LAMS)):
        f = path.coefficients(k) @ kernel(path.representation.points, far)
        norm = path.norms([k])[0]
        assert (f**2).sum(axis=0).max() <= 2.5 * norm * (1 + 1e-9)
        a, at = path.coefficients(k), kernel(path.representation.points)
        assert norm == pytest.approx(np.einsum("ci,ij,cj->", a, at, a), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("n", [350, 720])  # factorisations, conjugate gradients
def test_every_route_has_the_same_norms(n):
    X, y = tables.waves(n)
    rows = replace(tables.make_rows(), X=X, Y=y[None], starts=np.arange(0, n + 1, n // 10), order=np.arange(n))
    rows = replace(rows, statistics=type(rows.statistics)(X))
    kernel, lams = Gaussian(0.4), [10.0, 1.0, 0.1, 1e-2, 1e-5, 1e-7]
    whole, alone = Problem(rows, kernel, None), [Problem(rows, kernel, None) for _ in lams]
    path = make_path(whole, Krr(), lams)
    held = path.exact()
    one_by_one = [make_path(p, Krr(), [lam]).norms([0])[0] for p, lam in zip(alone, lams, strict=True)]
    np.testing.assert_allclose(path.norms(range(len(lams))), one_by_one, rtol=1e-5)
    assert np.isfinite(held.norms).all()
    np.testing.assert_allclose(path.norms(range(len(lams)), held.norms), one_by_one, rtol=1e-5)


def test_outputs_are_clipped_to_the_range_of_the_targets():
    rows = replace(tables.make_rows(real=True), clip=True)
    F = np.random.default_rng(0).normal(scale=10.0, size=(2, 3, rows.n))
    F[1, 1, 1] = -np.inf
    expected = np.stack([np.clip(f, y.min(), y.max()) for f, y in zip(F, rows.Y, strict=True)])
    expected[1, 1, 1] = -np.inf  # what failed stays so
    np.testing.assert_array_equal(rows.clipped(F), expected)
    assert replace(rows, clip=False).clipped(F) is F


def test_what_is_reported_is_clipped_to_the_targets_that_the_fit_has_seen():
    rows = replace(tables.make_rows(real=True), clip=True)
    F = np.random.default_rng(0).normal(scale=10.0, size=(2, 3, rows.n))
    clipped = rows.clipped_apart(F)
    for fold in range(rows.left.size):
        held, kept = slice(rows.starts[fold], rows.starts[fold + 1]), rows.kept(fold)
        for c, y in enumerate(rows.Y):
            np.testing.assert_array_equal(clipped[c, :, held], np.clip(F[c, :, held], y[kept].min(), y[kept].max()))
    training = np.stack([rows.kept(fold) for fold in range(rows.left.size)])
    np.testing.assert_array_equal(replace(rows, training=training).limits_apart, rows.limits_apart)
    assert replace(rows, clip=False).clipped_apart(F) is F


def test_no_extreme_row_has_its_own_target_back():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 1))
    y = np.exp(2 * X[:, 0])
    result = tables.choose(X, y, folds=5, verify=9)
    top, second = int(y.argmax()), np.sort(y)[-2]
    beyond = result.data["margins"][1][0] * (second - y.min())
    assert second < result.heldout[top] <= (second + beyond) * (1 + 1e-12)
    assert result.heldout[top] != pytest.approx(y[top], rel=1e-3)
    assert result.best.error == pytest.approx(np.sqrt(((result.heldout - y) ** 2).mean()))


def test_in_time_nothing_is_clipped():
    t = np.arange(80.0)[:, None]
    result = tables.choose(t, 10 * t[:, 0], kernel="linear", folds="time:4", standardize=True)
    assert result.model.limits is None
    assert result.model.predict(t + 20.0).max() > 10 * t.max() + 100


def test_predictions_stay_in_the_range_unless_they_are_let_out():
    X, y = tables.waves(60)
    far = X + 3.0
    result = tables.choose(X, y, kernel="linear", folds=5)
    assert y.min() <= result.model.predict(far).min()
    assert result.model.predict(far).max() <= y.max()
    free = tables.choose(X, y, kernel="linear", folds=5, clip=False)
    assert free.model.predict(far).max() > y.max() or free.model.predict(far).min() < y.min()
    assert free.model.limits is None
    assert not free.options["clip"]


def test_rows_beyond_the_data_are_told():
    X, y = tables.waves(60)
    model = tables.choose(X, y, folds=5).model
    assert not model.beyond(X).any()
    assert model.beyond(X + 100.0).all()
    distance = np.sqrt(np.maximum(2.0 - 2.0 * model.kernel(X), 0.0))
    np.fill_diagonal(distance, np.inf)
    assert model.reach == pytest.approx(distance.min(axis=1).max())


drawn = st.lists(
    st.tuples(st.floats(0, 1), st.floats(0, 1), st.sampled_from([0.1, 0.2, 0.3]), st.floats(0.1, 100), st.floats(0, 1)),
    min_size=1,
    max_size=12,
)


@given(drawn, st.sampled_from([0.0, 0.2, 1.0]), st.booleans())
def test_the_safest_is_of_least_error_and_norm_among_exact_scores(figures, within, errors):
    rule = Rule("safest", within, errors)
    candidates = [
        Candidate(Gaussian(1.0 + i), 0.1, learner=Krr(), score=score, score_se=0.3, error=error, norm=norm)
        for i, (score, _, error, norm, _) in enumerate(figures)
    ]
    exact = {c.key: replace(c, verified=value) for c, (_, value, *_) in zip(candidates, figures, strict=True)}
    candidates.sort(key=lambda c: c.order)
    first = [exact[candidates[0].key], *candidates[1:]]
    found = choose(rule, first, lambda c: exact[c.key], MOST)
    assert found.best.verified is not None
    assert found.best.verified <= found.limit
    assert found.limit == found.lowest.verified + within * 0.3
    for each in candidates:
        other = exact[each.key]
        if each.score <= found.limit and other.verified <= found.limit:  # what looks worse is left alone
            assert (found.best.error * errors, found.best.norm) <= (other.error * errors, other.norm)


def test_no_more_are_verified_than_are_allowed():
    candidates = [
        Candidate(Gaussian(1.0 + i), 0.1, learner=Krr(), score=0.5, score_se=0.1, norm=50.0 - i) for i in range(40)
    ]
    calls = []

    def verify(candidate):
        calls.append(candidate)
        return replace(candidate, verified=9.0)

    first = replace(candidates[0], verified=0.5)
    found = choose(Rule("safest", 0.1), [first, *candidates[1:]], verify, 7)
    assert len(calls) == 7
    assert found.best.key == first.key


def test_a_rule_that_can_not_be():
    for options, said in (
        ({"choose": "best"}, "choose 'best' is unknown: use safest, minimum, one-se"),
        ({"within": -1.0}, "within is a number of standard errors, at least 0, not -1.0"),
        ({"choose": "minimum", "within": 0.5}, "the minimum is the minimum"),
        ({"choose": "safest", "one_se": True}, "choose 'safest' and one_se: give one of them"),
    ):
        with pytest.raises(OptionError, match=said):
            tables.choose(*tables.waves(30), folds=3, **options)


def test_the_safest_is_the_default_and_the_minimum_is_told():
    X, y = tables.waves(60, noise=1.0)
    lowest = tables.choose(X, y, folds=5, choose="minimum", extend=False)
    result = tables.choose(X, y, folds=5, within=0.5, extend=False)
    assert result.minimum.verified == lowest.best.verified
    assert result.best.norm < lowest.best.norm
    limit = lowest.best.verified + 0.5 * lowest.best.score_se
    assert result.best.verified <= limit
    safer = [c for c in result.candidates if c.value <= limit and c.norm < result.best.norm]
    assert safer == []
    assert "least norm among" in result.summary()
