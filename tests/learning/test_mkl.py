"""Multiple kernel learning as a user has it: what the weights find, what they keep, and what is refused."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernsel
import twins.mkl
from kernsel.criteria import CVKS
from kernsel.data import from_arrays
from kernsel.errors import ConvergenceWarning, DataError, KernselError, OptionError, SelectionError
from kernsel.folds import make_folds
from kernsel.folds.partition import Partition
from kernsel.kernels import (
    ARD,
    ARDLaplacian,
    ARDPolynomial,
    Gaussian,
    Laplacian,
    Linear,
    Matern32,
    On,
    Polynomial,
    Product,
    Scale,
    Statistics,
    Sum,
)
from kernsel.learners import Klr, Krr, L2Svm, Lssvm, Svm
from kernsel.learning import METHODS, Infinite, learn_mkl_on_dataset
from kernsel.learning.families import family_of, on_grid
from kernsel.learning.infinite import Template, energy, most_violating
from kernsel.learning.methods import stability_objective
from kernsel.learning.pool import Pool
from kernsel.paths import make_path
from kernsel.representation.problem import Problem
from tables import circles, make_rows, waves
from tolerances import DIFFERENCES, EPS

KERNELS = [Gaussian(0.3), Gaussian(3.0), Linear(), Polynomial(2, 0.5)]
FINITE = [name for name in METHODS if name != "infinite"]

laws = settings(max_examples=12, deadline=None)
seeds = st.integers(0, 2**32 - 1)


def learn(X, y, kernel=KERNELS, standardize=False, task="auto", **options):
    """Learn without issuing warnings: they are in the result."""
    return learn_mkl_on_dataset(from_arrays(X, y, task, standardize), kernel=kernel, **options)


def hidden(n=60, seed=0, d=4):
    """Classes that feature 2 alone decides, by being near 0."""
    X = np.random.default_rng(seed).normal(size=(n, d))
    return X, np.where(np.abs(X[:, 2]) < 0.7, "near", "far")


def dealt(X, y):
    """The rows in the five folds that they are dealt to by default."""
    dataset = from_arrays(X, y)
    return Partition.of(dataset, make_folds(5, dataset, 0), 0)


@laws
@given(seeds, st.sampled_from([Krr(), Lssvm(), Svm(bias=False), Svm(bias=True), L2Svm(bias=False), Klr(bias=False)]))
def test_the_gradient_of_every_learners_objective_is_minus_lambda_q(seed, learner):
    pool = Pool(make_rows(seed), tuple(KERNELS))
    fit, mu, h = pool.fitter(learner, 0.02), np.random.default_rng(seed).dirichlet(np.ones(4)), 1e-5
    differences = [(fit(mu + h * e)[0] - fit(mu - h * e)[0]) / (2 * h) for e in np.eye(4)]
    np.testing.assert_allclose(-0.02 * fit(mu)[1], differences, rtol=1e3 * DIFFERENCES, atol=DIFFERENCES)


def total(parts, mu):
    value, _, bounds, _ = parts(mu)
    return value + bounds.max(initial=0.0)


@laws
@given(seeds, st.booleans(), st.booleans())
def test_the_gradient_of_k_ks(seed, bias, weighted):
    rows = make_rows(seed)
    if weighted:
        s = np.random.default_rng(seed).integers(1, 4, rows.n).astype(float)
        rows = Partition(rows.X, rows.Y, rows.starts, rows.order, rows.statistics, weights=s)
    parts = stability_objective(Pool(rows, tuple(KERNELS)), Lssvm() if bias else Krr(), 0.05, 2.0)
    mu, h = np.random.default_rng(seed).dirichlet(np.ones(4)), 1e-5
    _, gradient, bounds, slopes = parts(mu)
    differences = [(total(parts, mu + h * e) - total(parts, mu - h * e)) / (2 * h) for e in np.eye(4)]
    np.testing.assert_allclose(gradient + slopes[bounds.argmax()], differences, rtol=DIFFERENCES, atol=DIFFERENCES)


@laws
@given(seeds, st.booleans(), st.sampled_from([0.0, 1.0, 10.0]))
def test_the_objective_of_k_ks_is_its_definition(seed, bias, eta):
    rows = make_rows(seed, real=True)
    pool, mu = Pool(rows, tuple(KERNELS)), np.random.default_rng(seed).dirichlet(np.ones(4))
    parts = stability_objective(pool, Lssvm() if bias else Krr(), 0.05, eta)
    K = np.tensordot(mu, pool.grams, 1)
    assert total(parts, mu) == pytest.approx(twins.mkl.k_ks(K, rows.Y, 0.05, rows.starts, eta, int(bias)), rel=1e-9)
    assert len(parts(mu)[2]) == (rows.n if eta else 0)


def test_k_ks_ends_where_the_criterion_cvks_agrees_and_below_where_it_began():
    X, y = waves()
    found = learn(X, y, method="k-ks(eta=2)", lam=0.01, folds=5)
    rows = dealt(X, y)

    def score(kernel):
        return CVKS(eta=2.0, cv="cv").score(make_path(Problem(rows, kernel), Krr(), [0.01])).score[0]

    assert found.history[-1] == pytest.approx(score(found.kernel))
    singles = [(1 / scale) * kernel for kernel, scale in zip(found.kernels, found.scales, strict=True)]
    for other in (*singles, Sum(tuple(0.25 * each for each in singles))):
        assert found.history[-1] <= score(other) * (1 + 1e-9)


@pytest.mark.parametrize(
    "method", ["k-ks(p=2)", "k-ks", "lp(p=3)", "lp(p=1)", "simple", "easy", "alignment", "uniform"]
)
def test_constraints_hold_exactly_and_gaps_close(method):
    found = learn(*circles(), method=method, lam=None if method in ("alignment", "uniform") else 0.01)
    assert (found.weights >= 0).all()
    assert abs(np.linalg.norm(found.weights, getattr(found.method, "p", 1.0)) - 1) <= 8 * EPS
    if found.gap is not None:
        assert 0 <= found.gap <= 0.01
    assert found.warnings == []


def test_uniform_is_the_mean():
    assert learn(*circles(), method="uniform").weights.tolist() == [0.25] * 4


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_easy_is_its_quadratic_programme(share):
    X, y = circles(40)
    lam = share / (1 - share) / 40
    found = learn(X, y, method="easy", lam=lam)
    G = np.stack([kernel(X) / scale for kernel, scale in zip(found.kernels, found.scales, strict=True)])
    sign = np.where(y == "out", 1.0, -1.0)
    g = twins.mkl.nearest_points(G.mean(axis=0), sign, share) * sign
    q = np.einsum("i,mij,j->m", g, G, g)
    np.testing.assert_allclose(found.weights, q / q.sum(), rtol=1e-5)


@pytest.mark.parametrize("method", [name for name in METHODS if name != "uniform"])
def test_the_kernel_that_sees_what_counts_is_found(method):
    kernels = [Gaussian()] if method == "infinite" else [Gaussian(1.0)]
    found = learn(*hidden(), kernels, family="separate", method=method, lam=None if method == "alignment" else 0.02)
    by_feature = dict.fromkeys([*range(4), None], 0.0)
    for kernel, weight in zip(found.kernels, found.weights, strict=True):
        by_feature[kernel.features[0] if isinstance(kernel, On) else None] += weight
    assert max(by_feature, key=by_feature.get) == 2


@pytest.mark.parametrize("method", FINITE)
def test_the_order_of_kernels_does_not_count(method):
    order = [2, 0, 3, 1]
    lam = None if method in ("alignment", "uniform") else 0.02
    method = f"{method}(tolerance=1e-6)" if method in ("simple", "lp") else method
    one = learn(*circles(), method=method, lam=lam)
    other = learn(*circles(), [KERNELS[i] for i in order], method=method, lam=lam)
    np.testing.assert_allclose(one.weights[order], other.weights, atol=2e-3)
    if one.history:
        assert one.history[-1] == pytest.approx(other.history[-1], rel=1e-5)


@pytest.mark.parametrize("method", FINITE)
def test_a_row_of_weight_two_is_one_that_is_there_twice(method):
    X, y = circles(36)
    s = 1 + np.arange(36) % 3 % 2
    rows = np.repeat(np.arange(36), s)
    lam = None if method in ("alignment", "uniform") else 0.02
    method = f"{method}(tolerance=1e-6)" if method in ("simple", "lp") else method
    fold = np.arange(36) % 4
    weighted = learn_mkl_on_dataset(from_arrays(X, y, weights=s), kernel=KERNELS, method=method, lam=lam, folds=fold)
    repeated = learn(X[rows], y[rows], method=method, lam=lam, folds=fold[rows])
    np.testing.assert_allclose(weighted.weights, repeated.weights, atol=2e-3)
    np.testing.assert_allclose(weighted.scales, repeated.scales)
    if weighted.history:
        assert weighted.history[-1] == pytest.approx(repeated.history[-1], rel=1e-5)


@pytest.mark.parametrize("method", FINITE)
def test_several_classes_share_the_weights(method):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.digitize(X[:, 1], [-0.5, 0.5]).astype(str)
    found = learn(X, y, [Gaussian(1.0)], family="separate", method=method, folds=5)
    assert found.weights.shape == (4,)
    assert method == "uniform" or np.argmax(found.weights[1:]) == 1


def test_several_targets_share_the_weights():
    X, y = waves()
    found = learn(X, np.column_stack([y, X[:, 0] * X[:, 1]]), method="simple", folds=5)
    assert (found.weights > 0).any()


def test_the_kernel_is_the_weighted_sum_and_a_selection_takes_it():
    X, y = circles()
    found = kernsel.learn_mkl(X, y, KERNELS, method="lp", lam=0.01, standardize=False)
    expected = sum(w / c * k(X) for w, c, k in zip(found.weights, found.scales, found.kernels, strict=True))
    np.testing.assert_allclose(found.kernel(X), expected, rtol=1e-12)
    assert np.trace(Scale(1.0, found.kernel)(X)) / 60 == pytest.approx(found.weights.sum())
    chosen = kernsel.select(X, y, kernel=found.kernel, folds=5, standardize=False)
    assert (chosen.model.predict(X) == y).mean() > 0.85
    assert kernsel.kernels.from_spec(found.to_dict()["kernel"]) == found.kernel
    assert kernsel.kernels.parse(found.to_dict()["text"]) == found.kernel


def test_what_is_handed_back():
    X, y = hidden()
    found = learn(X, y, ["gaussian(tau=1)", "linear"], family="separate", method="simple", lam=0.02)
    document = json.loads(found.to_json())
    assert (document["format"], document["version"]) == ("kernsel-mkl", 1)
    assert [entry["weight"] for entry in document["kernels"]] == sorted(found.weights, reverse=True)
    assert document["method"] == {"name": "simple", "tolerance": 0.01}
    assert (document["learner"], document["lambda"]) == ("lssvm", 0.02)
    table = found.table
    assert list(table.columns) == ["weight", "kernel", "features", "scale"]
    assert table.features[0] == "x2"
    assert "x2" in found.summary()
    assert "svm" in found.summary()
    assert "simple(tolerance=0.01)" in repr(found)
    assert found.kernels[0] == Gaussian(1.0)
    assert len(found.kernels) == 2 + 2 * 4


def test_lambda_is_that_of_the_lowest_held_out_loss_around():
    found = learn(*waves(), method="simple", folds=5)
    X, y = waves()
    rows = dealt(X, y)

    def loss(lam):
        kernel = learn(X, y, method="simple", lam=lam, folds=5).kernel
        return CVKS(eta=0.0, cv="cv").score(make_path(Problem(rows, kernel), Krr(), [lam])).score[0]

    assert loss(found.lam) <= min(loss(found.lam * 4), loss(found.lam / 4)) * (1 + 1e-9)


def test_learning_on_a_sample_keeps_the_shares_of_the_classes():
    X, y = circles(200)
    found = learn(X, y, rows=50, method="alignment")
    assert (found.data["rows"], found.data["learnt_on"]) == (200, 50)
    assert found.weights.tolist() == learn(X, y, rows=50, method="alignment").weights.tolist()


@pytest.mark.parametrize("make", [circles, waves])
def test_infinite_is_no_worse_than_a_grid_of_its_widths(make):
    X, y = make()
    inner = learn(X, y, "gaussian", method="simple", lam=0.01)
    infinite = learn(X, y, "gaussian", method="infinite", lam=0.01)
    assert infinite.gap <= 0.01
    assert infinite.history[-1] <= inner.history[-1] * (1 + 0.01)
    # No kernel of the whole range violates the optimality conditions by more than the gap.
    rows = dealt(X, y)
    J, a = Pool(rows, infinite.kernels).fit(infinite.weights, Lssvm() if make is circles else Krr(), 0.01)
    level, axis = np.vdot(a @ infinite.kernel(rows.X), a), Gaussian().axes(X)["tau"]
    for tau in np.geomspace(axis[0], axis[-1], 50):
        assert 0.01 * (np.vdot(a @ Gaussian(tau)(rows.X), a) - level) <= 0.011 * J


def test_relevances_are_learnt_by_gradient_in_the_family_of_products():
    X, y = hidden()
    found = learn(X, y, "gaussian", family="products", method="infinite", lam=0.02)
    theta = sum(w * np.array(k.theta) for w, k in zip(found.weights, found.kernels, strict=True))
    assert all(isinstance(kernel, ARD) for kernel in found.kernels)
    assert np.argmax(theta) == 2
    assert theta[2] > 4 * np.delete(theta, 2).max()
    equal = learn(X, y, "gaussian", method="infinite", lam=0.02)
    assert found.history[-1] < equal.history[-1]


@pytest.mark.parametrize("kernel", [Gaussian(), On((0,), Laplacian()), Polynomial(2)])
def test_the_kernel_that_is_added_is_the_worst_of_its_range(kernel):
    rows, a = make_rows(3), np.random.default_rng(0).normal(size=(2, 30))
    (name,) = kernel.free
    axis = kernel.axes(rows.X)[name]
    _, largest = most_violating([Template.of(kernel, rows)], rows, a)
    range_of = np.geomspace(axis[0], axis[-1], 300)
    assert largest >= max(energy(kernel.with_parameters(**{name: v}), rows, a) for v in range_of) * (1 - 1e-5)


@pytest.mark.parametrize("kernel", [ARD(), ARDPolynomial(degree=2)])
def test_relevances_that_are_added_cannot_be_moved_to_a_larger_energy(kernel):
    rows, a = make_rows(3), np.random.default_rng(0).normal(size=(2, 30))
    worst, largest = most_violating([Template.of(kernel, rows)], rows, a)
    theta = np.array(worst.theta)
    for step in (0.03, -0.03):
        for moved in theta + step * (theta + 0.01 * theta.max()) * np.eye(2):
            assert energy(worst.with_theta(np.maximum(moved, 0.0)), rows, a) <= largest * (1 + 1e-4)
    assert largest > max(energy(each, rows, a) for each in Template.of(kernel, rows).points)


def test_infinite_leaves_out_what_it_does_not_use_and_counts_its_rounds():
    found = learn(
        *circles(), ["gaussian", Linear()], family="separate", method=Infinite(tolerance=1e-9, most=3), lam=0.01
    )
    assert len(found.history) == 3
    assert "duality gap" in found.warnings[0]


def test_a_method_that_stops_before_its_tolerance_says_so():
    with pytest.warns(ConvergenceWarning, match="method 'infinite' stopped at a duality gap"):
        kernsel.learn_mkl(*circles(), "gaussian", method="infinite(tolerance=1e-12, most=1)", lam=0.01)


def test_families_and_grids():
    assert family_of([Gaussian(1.0)], "single", 3) == [Gaussian(1.0)]
    assert family_of([Gaussian()], "separate", 2) == [Gaussian(), On((0,), Gaussian()), On((1,), Gaussian())]
    assert family_of([Linear()], "separate", 1) == [Linear()]
    assert family_of([Gaussian()], "products", 2) == [ARD()]
    assert family_of([Matern32(), Laplacian()], "products", 2) == [ARD(profile="matern32"), ARDLaplacian()]
    X = np.random.default_rng(0).normal(size=(20, 2))
    grid = on_grid([Gaussian(), Linear(), Gaussian(2.0)], {"tau": [1, 2]}, X)
    assert grid == [Gaussian(1.0), Gaussian(2.0), Linear()]
    assert len(on_grid([Gaussian(), Laplacian()], {}, X)) == 24


def test_a_product_of_single_features_is_a_gaussian_on_all():
    X = np.random.default_rng(0).normal(size=(10, 3))
    product = Product(tuple(On((j,), Gaussian(2.0)) for j in range(3)))
    np.testing.assert_allclose(product.evaluate(Statistics(X)), Gaussian(2.0)(X), rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "simpel"}, "did you mean 'simple'"),
        ({"method": "lp(q=2)"}, "method 'lp' has no parameter 'q'"),
        ({"method": "lp(p=0.5)"}, "p must be a finite number of at least 1"),
        ({"method": "simple(tolerance=0)"}, "tolerance must be a finite number greater than 0"),
        ({"method": "k-ks(eta=-1)"}, "eta must be a finite number of at least 0"),
        ({"method": 3}, "a method must be a name"),
        ({"method": "alignment", "learner": "svm"}, "looks at no fits, so it has no learner"),
        ({"method": "uniform", "lam": 0.1}, "looks at no fits, so it has no lambda"),
        ({"method": "easy", "learner": "svm"}, "looks at the fits of l2svm"),
        ({"method": "easy", "task": "regression", "y": np.arange(60.0)}, "method 'easy' is for classification"),
        ({"method": "k-ks", "learner": "svm"}, "method 'k-ks' needs the square loss; learner 'svm' has another"),
        ({"method": "k-ks", "folds": "time:3"}, "needs folds whose fits are trained on all other rows"),
        (
            {"kernel": ["linear", "polynomial(degree=2, gamma=1)"], "lam": 1e-300},
            "lambda = 1e-300: the ridge is below rounding; give a larger lambda",
        ),
        ({"method": "simple", "learner": "krrr"}, "krr"),
        ({"lam": 0.0}, "lambda must be a finite number greater than 0"),
        ({"lam": "small"}, "lambda must be a finite number greater than 0"),
        ({"rows": 1}, "rows is the number of rows to learn on"),
        ({"rows": 0.5}, "rows is the number of rows to learn on"),
        ({"family": "seperate"}, "did you mean 'separate'"),
        ({"family": "products"}, "family products has kernels without a grid, which method 'k-ks' needs: use infinite"),
        ({"family": "products", "method": "infinite", "kernel": "linear"}, "kernels of distances and polynomial"),
        ({"kernel": "gaussian", "grid": {"sigma": [1]}}, "no kernel has a free parameter 'sigma'; free here: tau"),
        ({"kernel": "gaussian", "grid": {"tau": [-1]}}, "tau must be a finite number greater than 0"),
        ({"kernel": "gaussian", "grid": {"tau": ["wide"]}}, "grid: the values of 'tau' must be numbers"),
        ({"kernel": "gaussian", "grid": {"tau": [1]}, "method": "infinite"}, "has no grid"),
        ({"kernel": "polynomial", "method": "infinite"}, "leaves degree and gamma: give all but one a number"),
        ({"kernel": "ard"}, "theta"),
        ({"kernel": []}, "no kernel is given"),
        ({"kernel": " + ".join(["gaussian"] * 5)}, "more than 10000 with their grids"),
        ({"kernel": "gaussian(tau=1)[7]"}, "there is no feature 7"),
    ],
    ids=str,
)
def test_what_cannot_be_had_is_one_clear_error(options, message):
    X, y = circles()
    given = {"y": y, "kernel": KERNELS, **options}
    with pytest.raises(KernselError) as caught:
        learn(X, **given)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_kernels_that_are_nothing_on_these_rows_are_refused():
    X, y = circles()
    X = np.column_stack([X, np.zeros(60)])
    with pytest.raises(OptionError, match=r"kernel 'linear\(\)\[2\]' is 0 on all rows"):
        learn(X, y, "linear", family="separate", method="uniform")
    with pytest.raises(OptionError, match="is not finite on these rows"), np.errstate(over="ignore"):
        learn(X * 1e100, y, Polynomial(4, 1.0), method="uniform")


def test_memory_that_is_not_there_is_said_before_it_is_asked_for(monkeypatch):
    monkeypatch.setattr("os.sysconf", lambda name: 10)
    with pytest.raises(OptionError, match="learning the weights of 4 kernels on 60 rows needs about .* --rows 15"):
        learn(*circles(), method="alignment")


def test_no_kernel_is_aligned():
    X, y = np.tile([[0.0], [1.0]], (20, 1)), np.repeat([0.0, 1.0, 1.0, 0.0], 10)
    with pytest.raises(SelectionError, match="no kernel is aligned with the target"):
        learn(X, y, "linear", method="alignment", task="regression")


def test_data_errors_come_first():
    with pytest.raises(DataError):
        kernsel.learn_mkl(np.ones((3, 2)), [1, 2])


def test_a_search_for_relevances_goes_on_from_where_there_is_no_energy():
    """Coefficients of a fit with a bias add up to 0: at theta = 0 their energy is what rounding leaves of 0."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, a = rng.normal(size=(30, 1)), rng.normal(size=(1, 30))
        rows, begin = dealt(X, X[:, 0]), ARD((20.0,))
        a -= a.mean()
        found = Template(ARD(), (begin,), np.ones(1)).refined(0, rows, a)
        assert energy(found, rows, a) >= energy(begin, rows, a)
