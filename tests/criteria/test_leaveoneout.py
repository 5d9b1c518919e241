"""Leave-one-out, GCV, BR and the evidence: brute force, identities, what they refuse, and where they end."""

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

import tables
import tolerances
import twins.heldout
import twins.leaveoneout
import twins.losses
from kernsel.criteria import BR, CV, ELOO, GCV, LOO, Evidence, NewtonCV
from kernsel.errors import IncompatibleError
from kernsel.folds.partition import Partition
from kernsel.kernels import Gaussian, Laplacian, Linear, Matern52, Polynomial, Statistics
from kernsel.learners import Krr, L2Svm, Lssvm, Svm
from kernsel.paths import make_path, routes
from kernsel.representation.blocks import Blocks
from kernsel.representation.gram import Gram
from kernsel.representation.problem import Problem

LAMS = (0.3, 0.01)
SQUARE = [ELOO(), GCV(), BR(), Evidence()]

biases = pytest.mark.parametrize("learner", [Krr(), Lssvm()], ids=["krr", "lssvm"])
ranks = pytest.mark.parametrize("rank", [None, 8, "streamed"], ids=["full", "rank 8", "streamed"])
weights = pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
square = pytest.mark.parametrize("criterion", SQUARE, ids=lambda criterion: criterion.name)


def path_for(learner, rank=None, weighted=False, real=True, lams=LAMS):
    """A path on rows in four folds, and five rows that are never held out where they are weighted."""
    rows = tables.make_rows(sizes=(5, 9, 2, 14, 5) if weighted else (5, 9, 2, 14), n=35 if weighted else 30, real=real)
    if weighted:
        s = np.random.default_rng(1).exponential(size=rows.n) + 0.05
        rows = replace(rows, starts=rows.starts[:-1], weights=s)
    path = tables.path_on(rows, learner, lams, rank=tables.in_blocks(8) if rank == "streamed" else rank)
    assert isinstance(path.representation, Blocks) == (rank == "streamed")
    return path


def gram(path):
    """The Gram matrix that the representation stands for."""
    if isinstance(path.representation, Gram):
        return path.problem.gram
    T = path.representation.expand(np.eye(path.representation.rank)).T
    Z = path.problem.kernel(path.rows.X, path.representation.points) @ T
    return Z @ Z.T


def expected(path, twin):
    """The mean over outputs of ``twin(K, y, lam, s, bias)``, for every lambda."""
    args = path.rows.s, int(path.bias)
    return [np.mean([twin(gram(path), y, lam, *args) for y in path.rows.Y]) for lam in path.lams]


def close(path, scores, values):
    assert scores.failed == [None] * path.lams.size
    rtol = 10 * tolerances.weighted(path.rows.s) * tolerances.exact(gram(path), path.lams.min())
    np.testing.assert_allclose(scores.score, values, rtol=rtol)


def press(path, lam):
    """The weighted mean of squared leave-one-out residuals of each output."""
    rows = path.rows
    r = twins.leaveoneout.leave_one_out(gram(path), rows.Y, lam, rows.held, rows.s, int(path.bias))
    return np.average(r**2, axis=1, weights=rows.s[: rows.held])


# Leaving out one row


@biases
@ranks
@weights
def test_loo_of_the_square_loss_is_brute_force_whatever_the_folds(learner, rank, weighted):
    path = path_for(learner, rank, weighted)
    values = [press(path, lam).mean() for lam in path.lams]
    for criterion in (LOO(), ELOO()):
        scores = criterion.score(path)
        close(path, scores, values)
        np.testing.assert_array_equal(scores.loss, scores.score)
        assert scores.heldout is None  # these are not of the folds of the selection
        assert scores.reliability is None
        assert (scores.score_se > 0).all()


@pytest.mark.parametrize(
    "learner", [Svm(h=0.5, bias=False), Svm(h=0.5, bias=True), L2Svm(bias=False)], ids=["svm", "svm and bias", "l2svm"]
)
@pytest.mark.parametrize("rank", [None, 8], ids=["full", "rank 8"])
@weights
def test_loo_of_another_loss_is_one_dense_newton_step_a_row(monkeypatch, learner, rank, weighted):
    monkeypatch.setattr(routes, "refits_are_cheaper", lambda curved, *_: np.zeros(curved.size, np.bool_))
    path = path_for(learner, rank, weighted, real=False)
    path.trust = np.inf
    twin = twins.losses.squared_hinge if isinstance(learner, L2Svm) else twins.losses.huber_hinge(0.5)
    rows, bias = path.rows, int(path.bias)
    Z = np.column_stack([tables.slow_features(path), np.ones((rows.n, bias))])

    def values(lam):
        for y in rows.Y:
            w = twins.heldout.fit(twin, Z, y, rows.s, lam, bias)
            f = twins.heldout.newton_step(twin, Z, y, lam, w, twins.leaveoneout.singles(rows.held), rows.s, bias)
            yield np.average(twin(y, f)[0][: rows.held], weights=rows.s[: rows.held])

    scores = LOO().score(path)
    np.testing.assert_allclose(scores.score, [np.mean(list(values(lam))) for lam in path.lams], rtol=1e-6)
    assert scores.reliability[0] <= scores.reliability[1] <= 1
    assert scores.reliability[1] > 0


def test_a_row_whose_newton_step_goes_too_far_is_refitted():
    path = path_for(Svm(h=0.5, bias=False), real=False)
    path.trust = -1.0
    exact = CV().score(path.one_by_one)
    np.testing.assert_allclose(LOO().score(path).score, exact.score, rtol=1e-6)


@pytest.mark.parametrize("learner", [Krr(), Svm(h=0.5, bias=False)], ids=["krr", "svm"])
@pytest.mark.parametrize("rank", [None, 8], ids=["full", "rank 8"])
def test_loo_is_newton_cv_on_folds_of_one_row(learner, rank):
    rows = tables.make_rows(sizes=(1,) * 30)
    path = tables.path_on(rows, learner, LAMS, rank=rank)
    loo, newton = LOO().score(path), NewtonCV().score(path)
    np.testing.assert_array_equal(loo.score, newton.score)
    np.testing.assert_array_equal(loo.heldout.f, newton.heldout.f)
    others = tables.path_on(tables.make_rows(), learner, LAMS, rank=rank)
    np.testing.assert_allclose(LOO().score(others).score, loo.score, rtol=1e-9)


def test_loo_trains_on_all_other_rows_where_folds_do_not():
    rows = tables.make_rows()
    time = replace(rows, training=np.tri(rows.n, dtype=bool)[rows.starts[:-1]])
    for criterion in (LOO(), BR()):
        scores = [criterion.score(tables.path_on(each, Krr(), LAMS)).score for each in (rows, time)]
        np.testing.assert_array_equal(*scores)


@pytest.mark.parametrize("rank", [None, 8], ids=["full", "rank 8"])
def test_the_same_path_one_by_one_shares_what_does_not_depend_on_folds(rank):
    path = tables.path_on(tables.make_rows(), Svm(h=0.5, bias=False), LAMS, rank=rank)
    _ = path.fits, path.ratio
    single = path.one_by_one
    assert single.one_by_one is single
    assert single.problem is path.problem
    assert single.fits is path.fits
    assert single.ratio[1] < path.ratio[1]
    assert path.rows.left.size == 4


def test_blocks_of_features_leave_single_rows_out_of_outputs_only():
    single = path_for(Krr(), "streamed").one_by_one
    for ask in (lambda: single.influence(1), lambda: single.ratio, lambda: single.refits(0)):
        with pytest.raises(IncompatibleError, match="block by block"):
            ask()


# The measures of ELOO


@biases
@weights
def test_eloo_counts_mistakes_and_weighs_classes(learner, weighted):
    path = path_for(learner, weighted=weighted, real=False)
    path.rows.Y[1] = -path.rows.Y[0]  # one row a class
    rows, K = path.rows, gram(path)
    y, s = np.argmax(rows.Y[:, : rows.held], axis=0), rows.s[: rows.held]
    balanced = s / np.array([s[y == 0].sum(), s[y == 1].sum()])[y]
    for k, lam in enumerate(path.lams):
        r = twins.leaveoneout.leave_one_out(K, rows.Y, lam, rows.held, rows.s, int(path.bias))
        wrong = np.argmax(rows.Y[:, : rows.held] - r, axis=0) != y
        for values, zero_one in (((r**2).mean(axis=0), False), (wrong, True)):
            for weighs, w in ((False, s), (True, balanced)):
                score = ELOO(weighted=weighs, zero_one=zero_one).score(path).score[k]
                assert score == pytest.approx(np.average(values, weights=w), rel=1e-9)
    assert ELOO(zero_one=True).score(path).loss == pytest.approx(LOO().score(path).score)


def test_a_class_that_is_never_held_out_has_no_weight():
    rows = tables.make_rows()
    rows.Y[:] = np.where(np.arange(30) < 20, -1.0, 1.0)
    rows = replace(rows, Y=rows.Y[:1].copy(), starts=np.array([0, 10, 20]))
    score = ELOO(weighted=True).score(tables.path_on(rows, Krr(), LAMS)).score
    np.testing.assert_allclose(score, ELOO().score(tables.path_on(rows, Krr(), LAMS)).score)


@pytest.mark.parametrize("options", [{"weighted": True}, {"zero_one": True}])
def test_eloo_weighs_classes_only(options):
    with pytest.raises(IncompatibleError, match="criterion 'eloo' with weighted or zero_one needs classes"):
        ELOO(**options).score(path_for(Krr()))


# The fit as a whole


@biases
@ranks
@weights
def test_gcv_is_what_is_printed(learner, rank, weighted):
    path = path_for(learner, rank, weighted)
    close(path, GCV().score(path), expected(path, twins.leaveoneout.gcv))


@biases
@ranks
@weights
def test_evidence_is_a_gaussian_density(learner, rank, weighted):
    path = path_for(learner, rank, weighted)
    scores = Evidence().score(path)
    close(path, scores, expected(path, twins.leaveoneout.evidence))
    np.testing.assert_allclose(scores.terms["fit"] + scores.terms["penalty"], scores.score)
    assert (scores.terms["penalty"] > 0).all()


@biases
@ranks
@weights
def test_br_is_the_logarithms_of_press_and_of_the_scales(learner, rank, weighted):
    path = path_for(learner, rank, weighted)
    scores, n = BR().score(path), path.rows.held
    fit = [n / 2 * np.log(n / 2 * press(path, lam)).mean() for lam in path.lams]
    close(path, scores, np.array(fit) + 0.5 * np.log(0.5 * Gaussian(1.0).gamma ** 2))
    np.testing.assert_allclose(scores.terms["fit"], fit, rtol=1e-6)


@pytest.mark.parametrize("tau", [0.3, 3.0])
def test_evidence_is_the_likelihood_of_scikit_learn(tau):
    rows = tables.make_rows(real=True)
    y, n = rows.Y[0], rows.n
    rows = replace(rows, Y=rows.Y[:1].copy())
    path = tables.path_on(rows, Krr(), LAMS, tau=tau)
    for lam, score in zip(path.lams, Evidence().score(path).score, strict=True):
        ridge = n * lam
        c = y @ np.linalg.solve(path.problem.gram + ridge * np.eye(n), y) / n
        kernel = ConstantKernel(c) * RBF(math.sqrt(tau)) + WhiteKernel(c * ridge)
        gp = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None).fit(rows.X, y)
        likelihood = gp.log_marginal_likelihood(gp.kernel_.theta)
        assert score == pytest.approx(-likelihood - n / 2 * (1 + math.log(2 * math.pi)), rel=1e-9)
        assert np.abs(gp.log_marginal_likelihood(gp.kernel_.theta, eval_gradient=True)[1][[0, 2]].sum()) < 1e-8


@biases
def test_gcv_is_loo_where_all_rows_have_the_same_leverage(learner):
    """Points at equal distances on a circle have a circulant Gram matrix; the ridge of GCV is ``n lambda``."""
    n = 24
    angles = 2 * np.pi * np.arange(n) / n
    X = np.ascontiguousarray(np.column_stack([np.cos(angles), np.sin(angles)]))
    y = np.sin(3 * angles) + np.random.default_rng(0).normal(size=n)
    rows = Partition(X, y[None], np.array([0, 10, n]), np.arange(n), Statistics(X))
    lams = 2.0 ** np.arange(4, -16, -2)
    gcv = GCV().score(make_path(Problem(rows, Gaussian(0.5)), learner, lams))
    loo = LOO().score(make_path(Problem(rows, Gaussian(0.5)), learner, lams * n / (n - 1)))
    np.testing.assert_allclose(gcv.score, loo.score, rtol=1e-9)


@biases
@square
def test_a_multiple_of_the_weights_changes_no_score(learner, criterion):
    path = path_for(learner, weighted=True)
    rows = replace(path.rows, weights=1000 * path.rows.s)
    other = make_path(Problem(rows, path.problem.kernel), learner, path.lams)
    np.testing.assert_allclose(criterion.score(other).score, criterion.score(path).score, rtol=1e-9)


@biases
@square
def test_low_rank_at_full_rank_is_the_gram_matrix(learner, criterion):
    rows = tables.make_rows(real=True)
    full, low = (criterion.score(tables.path_on(rows, learner, LAMS, rank=rank)).score for rank in (None, rows.n))
    np.testing.assert_allclose(low, full, rtol=1e-6)  # columns stop where the residual is rounding


# What they refuse


@square
def test_another_loss_is_refused(criterion):
    with pytest.raises(
        IncompatibleError, match=f"criterion '{criterion.name}' needs the square loss; learner 'svm' has"
    ):
        criterion.score(path_for(Svm(bias=False), real=False))


def test_br_needs_a_width():
    problem = Problem(tables.make_rows(real=True), Linear())
    with pytest.raises(
        IncompatibleError, match=r"criterion 'br' needs a kernel with a width, and 'linear\(\)' has none"
    ):
        BR().score(make_path(problem, Krr(), LAMS))


@pytest.mark.parametrize(
    ("kernel", "scales"),
    [
        (Gaussian(2.0), (0.25,)),
        (Laplacian(4.0), (0.25,)),
        (Matern52(2.0), (0.25,)),
        (Polynomial(2, 0.25), (0.25,)),
        (Gaussian(1.0) + 2.0 * Laplacian(4.0) * Linear(), (0.5, 0.25)),
        (Linear(), ()),
        (Gaussian(), ()),
    ],
    ids=str,
)
def test_the_scales_of_a_kernel(kernel, scales):
    assert kernel.scales == scales


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Laplacian(2.0), Matern52(2.0), Polynomial(2, 2.0)], ids=str)
def test_scales_multiply_what_the_kernel_sees(kernel):
    (name,) = set(kernel.parameters) - {"degree", "coef0"}
    X = np.random.default_rng(0).normal(size=(5, 3))
    other = kernel.with_parameters(**{name: 6.0})
    times = other.scales[0] / kernel.scales[0]
    stretched = X * (times if kernel.statistic == "l1" else math.sqrt(times))
    np.testing.assert_allclose(other(X), kernel(stretched), rtol=1e-12)


# Awkward data


DATA = ["plain", "duplicates", "two rows", "three rows", "constant", "zero", "narrow", "wide"]


@biases
@ranks
@pytest.mark.parametrize("data", DATA)
def test_awkward_data_have_a_score_or_a_reason(learner, rank, data):
    """From nearly no ridge to nearly nothing else: never NaN, no warning, and the limits that are known."""
    n = {"two rows": 2, "three rows": 3}.get(data, 12)
    X, y = tables.waves(n)
    X[n // 2 :] = X[: -(n // 2)] if data == "duplicates" else X[n // 2 :]
    y = {"constant": np.full(n, 0.7), "zero": np.zeros(n)}.get(data, y)
    tau = {"narrow": 1e-8, "wide": 1e8}.get(data, 1.0)
    lams = [1e300, 1e6, 1.0, 1e-6, 1e-13, 1e-18, 1e-300]
    rows = Partition(X, y[None], np.array([0, 1, n]), np.arange(n), Statistics(X))
    path = tables.path_on(rows, learner, lams, tau, {None: None, 8: 2, "streamed": tables.in_blocks(2)}[rank])
    limit = (y**2).mean()  # of the error where nothing is learnt
    limits = {"loo": limit, "eloo": limit, "gcv": limit, "evidence": n / 2 * np.log(limit) if limit else None}
    for criterion in (LOO(), *SQUARE):
        scores = criterion.score(path)
        assert np.isfinite(
            [score for score, reason in zip(scores.score, scores.failed, strict=True) if not reason]
        ).all()
        if data == "plain":
            assert scores.failed[:4] == [None] * 4
        if learner.name == "krr" and limits.get(criterion.name) is not None:
            assert scores.score[0] == pytest.approx(limits[criterion.name])


# Selections


@pytest.mark.parametrize("criterion", ["loo", "eloo", "gcv", "br", "evidence"])
@pytest.mark.parametrize(("learner", "verify"), [("krr", 0), ("lssvm", 3)])
def test_a_selection_by_any_of_them(criterion, verify, learner):
    X, y = tables.waves(120)
    result = tables.choose(X, y, criterion=criterion, learner=learner, folds=5, verify=verify)
    best = tables.choose(X, y, criterion="cv", learner=learner, folds=5).best
    assert result.best.error < (1.1 if verify else 1.25) * best.error
    assert result.best.error_se > 0
    assert (result.best.verified is None) == (verify == 0)
    held = ((result.heldout - y) ** 2).mean() ** 0.5
    assert result.best.error == pytest.approx(held, rel=1e-9)


def test_a_selection_without_verification_has_the_error_of_all_deals():
    X, y = tables.circles()
    options = {"learner": "krr", "folds": 4, "repeats": 2, "grid": {"tau": [1.0], "lambda": [0.1]}, "extend": False}
    one, other = (tables.choose(X, y, criterion=c, verify=v, **options) for c, v in (("gcv", 0), ("cv", 1)))
    assert one.best.error == pytest.approx(other.best.error)
    assert one.best.error_se == pytest.approx(other.best.error_se)


def test_scores_at_a_lower_rank_sort_candidates_out():
    X, y = tables.waves(400)
    grid = {"tau": np.geomspace(0.3, 10.0, 6), "lambda": np.geomspace(1e-5, 1e-2, 8)}
    options = {"folds": 5, "grid": grid, "extend": False}
    best = tables.choose(X, y, criterion="cv", **options).best
    for criterion in ("loo", "gcv", "br", "evidence"):
        result = tables.choose(X, y, criterion=criterion, search="halving", **options)
        assert result.best.rank is None
        assert {50} == {c.rank for c in result.candidates} - {None}
        assert result.best.error < 1.1 * best.error


@pytest.mark.parametrize("verify", [0, 2])
def test_br_is_minimised_within_the_grid(verify):
    """On a straight line every wider kernel is as good as the last one, and its scale is smaller."""
    X = np.random.default_rng(0).normal(size=(60, 1))
    y = X[:, 0] + 0.1 * np.random.default_rng(1).normal(size=60)
    grid = {"tau": [1.0, 10.0, 100.0], "lambda": [1e-2, 1e-1]}
    result = tables.choose(X, y, criterion="br", learner="krr", grid=grid, folds=5, verify=verify)
    assert {c.kernel.tau for c in result.candidates} == {1.0, 10.0, 100.0}
    assert min(c.lam for c in result.candidates) < 1e-2  # PRESS has a minimum along lambda
    said = "the choice lies on the edge of the grid (tau = 100), which was not extended, for br falls without bound as "
    assert said + "kernels widen" in result.warnings
    cv = tables.choose(X, y, criterion="cv", learner="krr", grid=grid, folds=5, choose="minimum")
    assert max(c.kernel.tau for c in cv.candidates) > 100.0


def test_br_falls_without_bound():
    """What is nearly a straight line is fitted as well by every wider kernel."""
    rows = tables.make_rows()
    rows = replace(rows, Y=rows.X[:, :1].T + 0.1 * np.random.default_rng(1).normal(size=(1, rows.n)))
    scores = [
        min(BR().score(tables.path_on(rows, Lssvm(), 2.0 ** np.arange(0, -40, -2.0), tau=tau)).score)
        for tau in 10.0 ** np.arange(1, 5)
    ]
    assert (np.diff(scores) < -1).all()


def test_what_the_scores_are_in_words():
    words = [each.measured("square loss") for each in (LOO(), ELOO(weighted=True, zero_one=True), *SQUARE[1:])]
    assert len(set(words)) == 5
    assert words[0] == "mean square loss, one row left out at a time"
    assert words[1] == "mean 0-1 loss, one row left out at a time, all classes counting the same"
