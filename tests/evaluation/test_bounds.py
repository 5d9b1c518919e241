"""Bounds of kernel stability: they hold by brute force, can't be much smaller, and are not what the papers print."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import kernsel
import problems
import tables
import tolerances
import twins.bounds
import twins.heldout
import twins.losses
from kernsel.criteria import CV
from kernsel.criteria.margins import dual_coefficients
from kernsel.errors import IncompatibleError, OptionError
from kernsel.evaluation.bounds import Bounds, bounds
from kernsel.folds import deal
from kernsel.folds.partition import Partition
from kernsel.kernels import Gaussian, Statistics
from kernsel.learners import L2Svm, Lssvm, Svm
from kernsel.paths import make_path
from kernsel.representation.problem import Problem

numbers = st.floats(0.05, 20)


def krr_case(rng, n, d=2):
    """Rows with targets up to 1, and new points near them."""
    X = rng.uniform(-2, 2, (n, d))
    return X, rng.uniform(-1, 1, n), rng.uniform(-2, 2, (40, d))


@given(st.integers(0, 2**32 - 1), st.integers(4, 9), st.integers(-12, 8))
def test_krr_removing_any_row_moves_no_loss_more_than_the_bound(seed, n, power):
    rng, lam = np.random.default_rng(seed), 2.0**power
    X, y, new = krr_case(rng, n)
    K = twins.bounds.gaussian(X, X)
    whole, without = twins.bounds.krr_outputs(K, np.vstack([K, twins.bounds.gaussian(new, X)]), y, lam)
    limit = bounds("krr", beta=twins.bounds.beta(K), kappa=1.0, lam=lam, n=n, folds=2)
    forms = twins.bounds.krr_forms(twins.bounds.beta(K), 1.0, 1.0, lam, n)
    largest = min(forms[0].values())
    assert np.abs(np.r_[whole[None], without]).max() <= largest * tolerances.SLACK
    for form in ("beta", "convexity"):  # the first factor of these bounds is that of the outputs
        assert np.abs(whole - without).max() <= forms[1][form] / (2 + 2 * largest) * tolerances.SLACK
    for label in (-1.0, 1.0):
        assert np.abs((whole - label) ** 2 - (without - label) ** 2).max() <= limit.stability * tolerances.SLACK
        assert ((without - label) ** 2).max() <= limit.largest_loss * tolerances.SLACK


@pytest.mark.parametrize("n", [10, 40])
def test_krr_the_bound_is_attained_where_lambda_is_large(n):
    K, lam = np.ones((n, n)), 1e4
    y = np.where(np.arange(n) == 0, -1.0, 1.0)
    whole, without = twins.bounds.krr_outputs(K, K[:1], y, lam)
    changes = np.abs((whole + 1) ** 2 - (without + 1) ** 2)
    limit = bounds("krr", beta=twins.bounds.beta(K), kappa=1.0, lam=lam, n=n).stability
    assert changes.max() <= limit < changes.max() * n / (n - 1) * 1.01


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1), st.integers(5, 8), st.sampled_from([1e-4, 0.01, 0.3, 10.0]))
def test_svm_removing_any_row_moves_no_loss_more_than_the_bound(seed, n, lam):
    p = problems.make(seed, n=n, starts=[0, 2, n], grid=True)
    whole, without = twins.bounds.svm_outputs(p.K, p.y, lam)
    limit = bounds("svm", beta=twins.bounds.beta(p.K), kappa=1.0, lam=lam, n=n, folds=2)
    value = twins.losses.huber_hinge(0.05)
    for label in (-1.0, 1.0):
        changes = value(label, whole)[0] - value(label, without)[0]
        assert np.abs(changes).max() <= limit.stability * tolerances.SLACK
        assert value(label, without)[0].max() <= limit.largest_loss * tolerances.SLACK
    for form in ("beta", "convexity"):
        assert (
            np.abs(whole - without).max()
            <= twins.bounds.svm_forms(twins.bounds.beta(p.K), 1.0, lam, n)[1][form] * tolerances.SLACK
        )


@pytest.mark.parametrize("lam", [0.3, 3.0, 100.0])
def test_krr_the_risk_is_within_the_gap(lam):
    rng, n = np.random.default_rng(1), 20
    limit = bounds("krr", beta=twins.bounds.largest_beta(n), kappa=1.0, lam=lam, n=n, delta=0.05)
    assert limit.vacuous_gap == (lam < 100)
    for _ in range(20):
        X, new = (rng.normal(size=(m, 1)) for m in (n, 2000))
        y, truth = (np.sign(np.sin(3 * x[:, 0]) + 0.5 * rng.normal(size=len(x))) for x in (X, new))
        a = twins.heldout.fit_square(twins.bounds.gaussian(X, X), y, np.ones(n), lam, 0)[:-1]
        fit, risk = (((twins.bounds.gaussian(x, X) @ a - t) ** 2).mean() for x, t in ((X, y), (new, truth)))
        assert risk <= fit + limit.gap


@pytest.mark.parametrize("lam", [0.1, 1.0, 1e3])
def test_krr_the_variance_of_the_cv_score_is_within_its_bound(lam):
    variance, n = cv_variance(lam)
    limit = bounds("krr", beta=twins.bounds.largest_beta(n), kappa=1.0, lam=lam, n=n, folds=5)
    assert variance <= limit.cv_variance
    assert lam < 1e3 or not limit.vacuous_variance


def test_ksj_theorem_5_is_below_the_variance_where_lambda_is_large():
    variance, n = cv_variance(lam=1e3)
    printed = twins.bounds.krr_stability(twins.bounds.largest_beta(n), 1.0, 1.0, 1e3, n * 4 // 5) ** 2
    assert printed < variance / 1e3  # its proof leaves out that the rows held out are a sample, too


def cv_variance(lam, n=20, folds=5, samples=300):
    """Variance of the 5-fold CV score of krr over samples, with beta, kappa and M at most those that are given."""
    rng, scores = np.random.default_rng(0), []
    for _ in range(samples):
        X, y, _ = krr_case(rng, n)
        held = twins.heldout.refits_square(twins.bounds.gaussian(X, X), y, lam, problems.even(n, folds))
        scores.append(((y - held) ** 2).mean())
    return np.var(scores, ddof=1), n


def test_svm_the_variance_of_the_cv_score_is_within_its_bound():
    rng, n, scores = np.random.default_rng(0), 20, []
    lams = np.array([10.0, 1.0, 0.01])
    for _ in range(60):
        X = rng.normal(size=(n, 1))
        y = np.sign(X[:, 0] + 0.5 * rng.normal(size=n))
        rows = Partition(X, y[None], problems.even(n, 5), np.arange(n), Statistics(X))
        scores.append(CV().score(make_path(Problem(rows, Gaussian(1.0)), Svm(bias=False), lams)).score)
    for lam, variance in zip(lams, np.var(scores, axis=0, ddof=1), strict=True):
        limit = bounds("svm", beta=twins.bounds.largest_beta(n), kappa=1.0, lam=lam, n=n, folds=5)
        assert variance <= limit.cv_variance <= (1 / (2 * lam)) ** 2  # within F of 1


@given(numbers, numbers, numbers, numbers, st.integers(6, 500), st.integers(2, 6), st.floats(0.001, 0.9))
def test_the_formulas(excess, kappa, M, lam, n, folds, delta):
    beta, m = kappa + excess, n - math.ceil(n / folds)
    options = {"beta": beta, "kappa": kappa, "lam": lam, "n": n, "folds": folds, "delta": delta}
    for found, forms in (
        (bounds("krr", M=M, **options), lambda n: twins.bounds.krr_forms(beta, kappa, M, lam, n)),
        (bounds(Svm(bias=False), **options), lambda n: twins.bounds.svm_forms(beta, kappa, lam, n)),
    ):
        outputs, all_stability, largest, span = forms(n)
        stability = min(all_stability.values())
        variances = twins.bounds.variances(span, min(forms(m)[1].values()), n, folds)
        expected = (largest, stability, twins.bounds.gap(stability, largest, n, delta), min(variances.values()))
        assert (found.largest_loss, found.stability, found.gap, found.cv_variance) == pytest.approx(expected)
        for name, each in (("output", outputs), ("stability", all_stability), ("cv_variance", variances)):
            assert each[found.forms[name]] == pytest.approx(min(each.values()))
        assert found.vacuous_gap == (found.gap >= found.largest_loss)
        assert found.vacuous_variance == (found.cv_variance >= found.largest_loss**2 / 4)


def test_each_form_is_the_least_somewhere():
    seen = set()
    for learner in ("krr", "svm"):
        for lam in (1e-4, 0.1, 0.5, 10.0, 1e3):
            for n in (10, 1000, 10**6):
                found = bounds(learner, beta=1.0, kappa=1.0, lam=lam, n=n)
                seen |= {(learner, what, form) for what, form in found.forms.items()}
    of_both = {("output", "coefficients"), ("output", "objective"), ("stability", "convexity"), ("stability", "range")}
    of_both |= {("cv_variance", "Efron-Stein"), ("cv_variance", "range")}
    assert {(learner, *each) for learner in ("krr", "svm") for each in of_both} <= seen
    assert ("krr", "stability", "beta") in seen


def test_svm_is_no_longer_bounded_by_nothing():
    """Lambda 1/2 and 1000 rows: the bound on the risk by kernel stability alone is above every loss."""
    found = bounds("svm", beta=1.0, kappa=1.0, lam=0.5, n=1000)
    by_beta = twins.bounds.gap(twins.bounds.svm_stability(1.0, 1.0, 0.5), 2.0, 1000, 0.05)
    assert found.gap < 0.45 < 2 < by_beta
    assert found.forms["stability"] == "convexity"


@given(st.integers(4, 60), st.integers(2, 12))
def test_no_fold_leaves_less_rows_than_the_bound_takes(n, folds):
    assume(folds <= n and n - math.ceil(n / folds) >= 2)
    held = np.bincount(deal(np.zeros(n, int), folds, 0))
    m = n - held.max()
    limit = bounds("krr", beta=1.0, kappa=1.0, lam=1.0, n=n, folds=folds)
    stability = min(twins.bounds.krr_forms(1.0, 1.0, 1.0, 1.0, m)[1].values())
    change = 4.0 / n + (1 - held.min() / n) * 2 * stability
    assert limit.cv_variance == pytest.approx(min(n / 4 * change**2, 4.0))


def test_ks14_counts_the_rows_of_a_fold_upside_down():
    n, k = 100, 10
    assert (k - 1) * k / n < 1  # "the size of the training set", as printed in Sections 3 and 5.1
    assert n - np.bincount(deal(np.zeros(n, int), k, 0)).max() == (k - 1) * n / k == 90


@given(numbers, numbers, numbers, numbers, st.integers(2, 100))
def test_ks14_theorems_1_and_3_lose_factors_of_their_own_proofs(beta, kappa, M, lam, m):
    replaced = 2 * beta * kappa * M / (lam**2 * m) * (2 * kappa * M / lam + 2 * M)  # twice eq. (3): one out, one in
    inner = kappa**2 * M**2 / (lam**3 * m) + kappa * M**2 / (lam**2 * m)
    assert replaced**2 == pytest.approx(16 * inner**2 * beta**2)  # C_1 is printed with 8
    replaced = 2 * twins.bounds.svm_stability(beta, kappa, lam)
    C4 = (1 / (4 * kappa)) ** 0.25
    right = 2 * kappa**1.5 / lam**2  # C_3 is printed as 8 lambda^2 kappa^(3/2)
    assert replaced**2 == pytest.approx(right * beta**0.5 * (1 + C4 * beta**0.25) ** 2)


def test_ks14_lemma_3_has_lambda_upside_down():
    p, lam = problems.make(2, n=8, starts=[0, 4, 8]), 1e-3
    whole, without = twins.bounds.svm_outputs(p.K, p.y, lam)
    b = twins.bounds.beta(p.K)
    printed = math.sqrt(2) * lam * b**0.25 * (1 + (b / 4) ** 0.25)
    moved = np.abs(whole - without).max()
    assert 10 * printed < moved < twins.bounds.svm_stability(b, 1.0, lam)


@pytest.mark.parametrize("i", [0, 7])
def test_ks14_appendix_a_forgets_what_the_zeroed_row_leaves(i):
    rng, n, lam = np.random.default_rng(0), 12, 0.02
    X, y, new = krr_case(rng, n)
    K, K_new, T = twins.bounds.gaussian(X, X), twins.bounds.gaussian(new, X), np.delete(np.arange(n), i)
    zeroed = K.copy()
    zeroed[i] = zeroed[:, i] = 0.0
    printed = K_new @ np.linalg.solve(zeroed + n * lam * np.eye(n), y)
    removed = K_new[:, T] @ np.linalg.solve(K[np.ix_(T, T)] + n * lam * np.eye(n - 1), y[T])
    np.testing.assert_allclose(printed - removed, K_new[:, i] * y[i] / (n * lam), atol=tolerances.exact(K, lam))
    assert np.abs(printed - removed).max() > 0.1


def test_ksj_theorem_2_is_no_bound_of_the_order_of_beta():
    small, large = ([twins.bounds.svm_stability(b, 1.0, 1.0) for b in (scale, 16 * scale)] for scale in (1e-12, 1e12))
    assert small[1] / small[0] == pytest.approx(16**0.25, rel=0.01)
    assert large[1] / large[0] == pytest.approx(16**0.5, rel=0.01)


def test_ksj_appendix_d_bounds_outputs_by_the_wrong_side_of_lambda():
    n, lam, kappa = 6, 0.05, 1.0
    K, y = np.ones((n, n)), np.where(np.arange(n) < 5, 1.0, -1.0)
    rows = Partition(np.zeros((n, 1)), y[None], problems.even(n, 2), np.arange(n), Statistics(np.zeros((n, 1))))
    path = make_path(Problem(rows, Gaussian(1.0)), Svm(bias=False), [lam])
    np.testing.assert_array_equal(path.problem.gram, K)
    loss = twins.losses.huber_hinge(0.05)(y, path.fits.f[0, 0])[0].max()  # that of the one label -1
    assert 1 + lam * kappa < 1.9 < loss <= 1 + kappa / (2 * lam)
    a = np.abs(dual_coefficients(path))  # other coefficients make the same outputs, as K has rank 1
    assert a.max() == pytest.approx(1 / (2 * n * lam))  # printed as 1 / (n lambda)


def test_more_of_anything_that_harms_makes_the_bounds_larger():
    base = {"beta": 2.0, "kappa": 1.0, "lam": 0.1, "n": 50, "folds": 5, "delta": 0.05}
    for learner in ("krr", "svm"):
        first = bounds(learner, **base)
        for change in ({"beta": 3.0}, {"kappa": 2.0}, {"lam": 0.05}):
            other = bounds(learner, **{**base, **change})
            assert other.stability >= first.stability
            assert other.gap >= first.gap
            assert other.cv_variance >= first.cv_variance
            assert other.largest_loss > first.largest_loss or "beta" in change
        assert bounds(learner, **{**base, "delta": 0.01}).gap > first.gap
    assert bounds("krr", **{**base, "n": 500}).gap < bounds("krr", **base).gap
    assert bounds("svm", **{**base, "n": 500}).gap < bounds("svm", **base).gap


def test_they_are_public():
    assert kernsel.bounds is bounds
    assert kernsel.Bounds is Bounds
    X, _ = tables.waves()
    found = kernsel.stability(X, "gaussian(tau=1)")
    limit = kernsel.bounds("krr", beta=found.spectral, kappa=found.kappa, lam=0.1, n=found.n, M=2.0)
    assert (limit.learner, limit.M, limit.n) == ("krr", 2.0, 60)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"beta": 0.0}, "bounds: beta must be a finite number greater than 0, not 0.0"),
        ({"kappa": np.inf}, "bounds: kappa must be a finite number"),
        ({"lam": -1.0}, "bounds: lam must be"),
        ({"lam": "0.1"}, "bounds: lam must be"),
        ({"M": np.nan}, "bounds: M must be"),
        ({"delta": 1.0}, "bounds: delta is a probability between 0 and 1, such as 0.05, not 1.0"),
        ({"delta": 0.0}, "bounds: delta is a probability"),
        ({"n": 2}, "bounds: n must be a whole number from 3, not 2"),
        ({"n": 10.5}, "bounds: n must be a whole number"),
        ({"folds": 1}, "bounds: folds must be a whole number from 2, not 1"),
        ({"n": 3, "folds": 2}, "bounds: 2 folds of 3 rows leave less than 2 rows to a fit"),
        ({"n": 5, "folds": 6}, "bounds: 6 folds of 5 rows"),
        ({"beta": 0.9}, r"bounds: beta = 0.9 can't be below kappa = 1, as \|K - K\^i\| is at least K_ii"),
        ({"lam": 1e-200}, "bounds: lambda = 1e-200 is so small"),
    ],
)
def test_numbers_out_of_range(change, message):
    with pytest.raises(OptionError, match=message):
        bounds("krr", **{"beta": 1.0, "kappa": 1.0, "lam": 0.1, "n": 50, **change})


@pytest.mark.parametrize("learner", [Lssvm(), L2Svm(bias=False), Svm(bias=True), "klr"])
def test_learners_without_bounds(learner):
    with pytest.raises(IncompatibleError, match="the bounds of kernel stability are for krr and svm without a bias"):
        bounds(learner, beta=1.0, kappa=1.0, lam=0.1, n=50)
