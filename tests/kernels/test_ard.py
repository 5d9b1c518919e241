"""Kernels with a relevance for each feature: values, derivatives, and the ways in and out of text and files."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.gaussian_process.kernels import RBF, Matern
from sklearn.metrics.pairwise import polynomial_kernel

import kernsel
import twins.learning
from kernsel import kernels
from kernsel.errors import OptionError
from kernsel.kernels import ARD, ARDLaplacian, ARDPolynomial, Gaussian, Linear, On, Polynomial, Statistics
from kernsel.kernels.base import names_of
from kernsel.protocols.kernels import SupportsRelevances, blocks_of, has_relevances
from tolerances import EPS

THETA = (0.5, 0.0, 0.125, 2.0)
PROFILES = ARD.words["profile"]
PROFILED = [*(ARD(THETA, profile) for profile in PROFILES), ARDLaplacian(THETA)]
LEARNABLE = [*PROFILED, ARDPolynomial(THETA, 1), ARDPolynomial(THETA, 2), ARDPolynomial(THETA, 3, 0.5), Gaussian(1.5)]

relevances = st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 10.0)), min_size=1, max_size=6)
seeds = st.integers(0, 2**32 - 1)


def table(d, seed=0, n=23):
    return np.random.default_rng(seed).normal(size=(n, d))


def test_equals_sklearn():
    X, Z = table(4), table(4, seed=1, n=9)
    theta = (0.5, 0.3, 0.125, 2.0)
    lengths = 1 / np.sqrt(2 * np.array(theta))
    np.testing.assert_allclose(ARD(theta)(X, Z), RBF(lengths)(X, Z), rtol=1e-12)
    for profile, nu in (("exponential", 0.5), ("matern32", 1.5), ("matern52", 2.5)):
        expected = Matern(1 / np.sqrt(theta), nu=nu)(X, Z)
        np.testing.assert_allclose(ARD(theta, profile)(X, Z), expected, rtol=1e-12, atol=1e-15)
    scaled = [rows * np.sqrt(theta) for rows in (X, Z)]
    expected = polynomial_kernel(*scaled, degree=3, gamma=1.0, coef0=0.5)
    np.testing.assert_allclose(ARDPolynomial(theta, 3, 0.5)(X, Z), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("kernel", LEARNABLE, ids=str)
def test_fused_stored_cross_and_diag_agree(kernel):
    X = table(4)
    K = kernel(X)
    assert np.array_equal(K, K.T)
    np.testing.assert_allclose(kernel.evaluate(Statistics(X)), K, rtol=1e-14)
    np.testing.assert_allclose(kernel(X, X.copy()), K, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(kernel.diag(X), np.diag(K), rtol=1e-13)


@pytest.mark.parametrize("kernel", LEARNABLE[:-1], ids=str)
def test_a_feature_of_relevance_zero_is_out(kernel):
    X = table(4)
    without = kernel.with_theta(tuple(t for t in THETA if t))
    assert np.array_equal(kernel(X), without(np.delete(X, 1, axis=1)))
    none = kernel.with_theta((0.0,) * 4)
    np.testing.assert_array_equal(none(X, X[:3]), np.full((23, 3), none(np.zeros((1, 4)))))


@given(st.floats(1e-4, 10.0), st.integers(1, 5), seeds)
def test_equal_relevances_are_the_isotropic_kernel(gamma, d, seed):
    X, W = table(d, seed), table(23, seed + 1)
    width = {"tau": 1 / (2 * gamma), "ell": 1 / np.sqrt(gamma), "sigma": 1 / gamma, "gamma": gamma}
    for kernel in (
        *(ARD(profile=profile) for profile in PROFILES),
        ARDLaplacian(),
        ARDPolynomial(degree=2),
        Gaussian(),
    ):
        (name,) = kernel.isotropic.free
        isotropic = kernel.isotropic.with_parameters(**{name: width[name]})
        same = kernel.from_isotropic(isotropic, d)
        np.testing.assert_allclose(same.theta, gamma, rtol=1e-12)
        np.testing.assert_allclose(same(X), isotropic(X), rtol=1e-11)
    slopes, slope = ARD((gamma,) * d).theta_vjp(X, W), Gaussian.from_gamma(gamma).theta_vjp(X, W)
    np.testing.assert_allclose(slopes.sum(), slope[0], rtol=1e-10, atol=1e4 * EPS * d * gamma)


ROOTS = ("exponential", "matern32", "matern52")
"""Profiles of the distance itself; the derivative of the first has no limit where all relevances are 0."""


def of_kind(kind, theta):
    if kind == "absolute":
        return ARDLaplacian(theta)
    return ARD(theta, kind) if kind in PROFILES else ARDPolynomial(theta, kind, 0.5)


@given(relevances, st.sampled_from([*PROFILES, "absolute", 1, 2, 3]), seeds)
def test_derivatives_are_those_of_the_dense_tensor(theta, kind, seed):
    kernel = of_kind(kind, tuple(theta))
    if kind in ROOTS:  # the twin's complex step is lost under the root of 0
        theta = np.maximum(theta, 1e-6)
        kernel = of_kind(kind, tuple(theta))
    X, W = table(len(theta), seed, 12), table(12, seed + 1, 12)  # not symmetric
    expected = twins.learning.tensor_vjp(kernel, X, W)
    scale = np.abs(twins.learning.tensor_vjp(kernel, np.abs(X), np.abs(W))).max()
    tolerance = 1e3 * EPS * max(scale, np.abs(W).sum() * np.abs(X).max() ** 2)
    np.testing.assert_allclose(kernel.theta_vjp(X, W), expected, rtol=1e-9, atol=tolerance)
    np.testing.assert_allclose(kernel.theta_vjp(X, W, kernel(X)), expected, rtol=1e-9, atol=tolerance)


@pytest.mark.parametrize(("profile", "slope"), [("matern32", -3 / 2), ("matern52", -5 / 6)])
def test_derivatives_at_relevances_of_zero_are_limits(profile, slope):
    X, W = table(2, 0, 12), table(12, 1, 12)
    expected = slope * np.einsum("ij,ijr->r", W, (X[:, None] - X[None]) ** 2)
    np.testing.assert_allclose(ARD((0.0, 0.0), profile).theta_vjp(X, W), expected, rtol=1e-10)


@given(relevances, st.sampled_from([*PROFILES, "absolute", 2]), seeds)
def test_derivatives_of_sparse_rows_are_those_of_dense_ones(theta, kind, seed):
    kernel, rng = of_kind(kind, tuple(theta)), np.random.default_rng(seed)
    X, Z = (rng.normal(size=(n, len(theta))) * (rng.random((n, len(theta))) < 0.4) for n in (12, 7))
    W, V = rng.normal(size=(12, 12)), rng.normal(size=(12, 7))
    # No centring keeps digits here; 1/r of the exponential profile magnifies what is lost.
    tolerance = {"rtol": 1e-8, "atol": 1e-10 * max(1.0, 1 / max(theta) if any(theta) else 1.0)}
    S, T = csr_array(X), csr_array(Z)
    np.testing.assert_allclose(kernel.theta_vjp(S, W), kernel.theta_vjp(X, W), **tolerance)
    np.testing.assert_allclose(kernel.theta_vjp(S, V, None, T), kernel.theta_vjp(X, V, None, Z), **tolerance)
    np.testing.assert_allclose(kernel.theta_vjp(X, V, None, T), kernel.theta_vjp(X, V, None, Z), **tolerance)


@pytest.mark.parametrize("kernel", PROFILED, ids=str)
def test_coincident_points_have_no_derivative(kernel):
    X = np.repeat(table(4, n=6), 2, axis=0)
    among = np.kron(np.eye(6), np.ones((2, 2)))
    np.testing.assert_allclose(kernel.theta_vjp(X, among), np.zeros(4), atol=1e-13)  # the sums' rounding
    X[1::2] += 1e-12  # next to each other
    assert np.abs(kernel.theta_vjp(X, among)).max() < 1e-7


COMPOSITE = [
    "ard(theta=(0.5, 0.3, 0.1, 2.0)) + 0.5*linear",
    "ard(theta=(0.5, 0.3, 0.1, 2.0), profile=matern32)*ard-laplacian(theta=(0.5, 0.3, 0.1, 2.0)) + gaussian(tau=2.0)",
    "2.0*ard(theta=(0.5, 0.1), profile=exponential)[0, 2] + linear*gaussian(tau=3.0)",
]


@pytest.mark.parametrize("text", COMPOSITE)
def test_derivatives_of_sums_and_products_are_the_differences(text):
    kernel, X, W, step = kernels.parse(text), table(4, 3), table(23, 4), 1e-5
    assert has_relevances(kernel)
    theta = np.array(kernel.theta)
    for r, unit in enumerate(step * np.eye(theta.size)):
        slope = np.sum(W * (kernel.with_theta(theta + unit)(X) - kernel.with_theta(theta - unit)(X))) / (2 * step)
        for K in (None, kernel(X)):
            assert kernel.theta_vjp(X, W, K)[r] == pytest.approx(slope, rel=1e-6, abs=1e-9)
    among = np.zeros((23, 23))
    among[:14, 14:] = W[:14, 14:]
    np.testing.assert_allclose(
        kernel.theta_vjp(X[:14], W[:14, 14:], None, X[14:]), kernel.theta_vjp(X, among), rtol=1e-9
    )


def test_relevances_of_sums_and_products_have_the_names_of_their_parts():
    kernel = kernels.parse(COMPOSITE[2])
    assert names_of(kernel, list("abcd")) == ["1.a", "1.c", "2.2.all features"]
    assert blocks_of(kernel) == [2, 1]
    assert blocks_of(kernels.parse(COMPOSITE[1])) == [4, 4, 1]
    assert not has_relevances(Linear() + 0.5 * On((0,), Linear()))
    assert not has_relevances(Linear() * Linear())


def test_sums_and_products_begin_with_one_relevance_for_all():
    kernel = kernels.parse("ard + 0.5*ard(profile=exponential)[0, 1]*linear + ard-laplacian(theta=(1, 2, 3))")
    assert kernel.theta is None
    equal = kernel.isotropic
    assert equal.free == ("1.tau", "2.part.1.ell") or equal.free == ("1.tau", "2.1.ell")
    fixed = equal.with_parameters(**dict.fromkeys(equal.free, 2.0))
    same = kernel.from_isotropic(fixed, 3)
    assert same.theta == (0.25,) * 3 + (0.25,) * 2 + (1.0, 2.0, 3.0)
    np.testing.assert_allclose(same(table(3)), fixed(table(3)), rtol=1e-12)
    with pytest.raises(OptionError, match="theta has no value, so that nobody knows how many"):
        kernel.with_theta((1.0,) * 8)


@pytest.mark.parametrize("kernel", LEARNABLE, ids=str)
def test_derivatives_with_other_points_are_a_block_of_those_with_all(kernel):
    X, W = table(4, 3), table(9, 4, 14)
    among = np.zeros((23, 23))
    among[:14, 14:] = W
    np.testing.assert_allclose(kernel.theta_vjp(X[:14], W, None, X[14:]), kernel.theta_vjp(X, among), rtol=1e-9)


@pytest.mark.parametrize("kernel", LEARNABLE, ids=str)
def test_derivatives_are_the_differences(kernel):
    X, W = table(4, 3), table(23, 4)
    theta = np.maximum(kernel.theta, 0.1)  # differences to both sides need room
    step = 1e-5
    for r in range(theta.size):
        moved = [kernel.with_theta(theta + step * side * (np.arange(theta.size) == r))(X) for side in (1, -1)]
        slope = np.sum(W * (moved[0] - moved[1])) / (2 * step)
        assert kernel.with_theta(theta).theta_vjp(X, W)[r] == pytest.approx(slope, rel=1e-6)


def test_derivatives_keep_their_digits_far_from_the_origin():
    X, W = table(3), table(23, 1)
    near, far = ARD((0.5,) * 3).theta_vjp(X, W), ARD((0.5,) * 3).theta_vjp(X + 2.0**20, W)
    np.testing.assert_allclose(near, far, rtol=1e-7)  # the shift has cost X 20 binary digits already


def test_they_are_what_can_be_learnt():
    assert all(isinstance(kernel, SupportsRelevances) for kernel in LEARNABLE)
    assert not isinstance(Polynomial(2, 1.0), SupportsRelevances)
    assert Gaussian().theta is ARD().theta is None
    wide = Gaussian(1.0).with_theta((0.0,))(table(2))
    assert (wide == 1).all()


@pytest.mark.parametrize(
    "kernel",
    [
        *LEARNABLE,
        ARD(),
        ARD(profile="matern52"),
        ARDLaplacian(),
        ARD((0.5,)),
        ARDPolynomial(),
        ARD(THETA) + 0.5 * Gaussian(),
    ],
    ids=str,
)
def test_text_and_description_lead_back(kernel):
    assert kernels.parse(str(kernel)) == kernel
    assert kernels.from_spec(json.loads(json.dumps(kernel.spec()))) == kernel
    assert hash(kernels.parse(str(kernel))) == hash(kernel)


def test_lists_and_arrays_become_tuples_of_numbers():
    assert ARD(np.array([1, 0])) == ARD([1, 0]) == kernels.parse("ard(theta=[1, 0])") == ARD((1.0, 0.0))
    assert ARD().free == ("theta",)
    assert ARD().with_parameters(theta=(1, 2)).parameters == {"theta": (1.0, 2.0)}
    assert (ARD((1,)) + Gaussian()).free == ("2.tau",)


def test_the_profile_is_written_unless_it_is_gaussian():
    assert str(ARD((0.5,), "matern32")) == "ard(theta=(0.5,), profile=matern32)"
    assert ARD((0.5,)).spec() == {"kernel": "ard", "parameters": {"theta": (0.5,)}}
    for text in ("ard(profile=rational-quadratic)", "ard(profile='rational-quadratic')"):
        assert kernels.parse(text) == ARD(profile="rational-quadratic")
    assert ARD().with_parameters(profile="matern52") == ARD(None, "matern52")


def test_many_relevances_are_shortened_for_people():
    assert kernels.short(ARD((1 / 3,) * 12)) == "ard(theta=(0.3333, 0.3333, 0.3333, 0.3333, ... 12 in all))"
    assert kernels.short(ARD((1 / 3, 0))) == "ard(theta=(0.3333, 0))"
    assert kernels.short(ARD((0.25,)) + Gaussian(1 / 3)) == "ard(theta=(0.25,)) + gaussian(tau=0.3333)"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ARD((0.5, -1)), "theta must be finite numbers of at least 0, one for each feature"),
        (lambda: ARD((0.5, float("nan"))), "theta must be finite numbers"),
        (lambda: ARD(()), "theta must be finite numbers"),
        (lambda: ARD(0.5), "theta must be finite numbers"),
        (lambda: ARD(np.array(0.5)), "theta must be finite numbers"),
        (lambda: ARD(np.ones((2, 2))), "theta must be finite numbers"),
        (lambda: ARD("0.5"), "theta must be finite numbers"),
        (lambda: ARD((True,)), "theta must be finite numbers"),
        (
            lambda: ARD(profile="matern"),
            "profile must be one of gaussian, exponential, matern32, matern52, rational-quad",
        ),
        (lambda: ARD(profile=3), "profile must be one of"),
        (lambda: kernels.parse("ard(profile=matern23)"), "not 'matern23'; did you mean 'matern"),
        (lambda: kernels.parse("ard(profile=2)"), "profile must be one of"),
        (lambda: kernels.from_spec({"kernel": "gaussian", "parameters": {"tau": "wide"}}), "tau must be a number"),
        (lambda: ARDLaplacian((0.5, -1)), "theta must be finite numbers of at least 0"),
        (lambda: ARDPolynomial((1,), 0), "degree must be a finite number greater than 0"),
        (lambda: ARDPolynomial((1,), 2, -1), "coef0 must be a number of at least 0"),
        (lambda: kernels.parse("ard(theta=(0.5, linear))"), "several numbers are in parentheses"),
        (lambda: kernels.parse("gaussian(tau=(1, 2))"), "tau must be a number or None"),
        (lambda: ARD((1, 2))(table(3)), "theta has 2 relevances, and the rows have 3 features"),
        (lambda: ARD((1, 2)).diag(table(3)), "theta has 2 relevances, and the rows have 3 features"),
        (lambda: ARD()(table(3)), "learn them by kernsel.learn_relevances"),
        (lambda: ARDPolynomial((1, 2, 3))(table(3)), "degree has no value"),
    ],
)
def test_errors_say_what_is_wrong(make, message):
    with pytest.raises(OptionError) as caught:
        make()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.fixture(scope="module")
def waves():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    return X, np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=80)


@pytest.mark.parametrize(
    "model_kernel", [ARD((0.5, 0.0, 0.0)), ARD((0.5, 0.0, 0.0), "matern32"), ARDLaplacian((1, 0, 0))]
)
def test_a_selection_takes_it_as_it_is_and_the_model_keeps_it(waves, tmp_path, model_kernel):
    X, y = waves
    kernel = model_kernel
    result = kernsel.select(
        X, y, kernel=[kernel, "gaussian"], folds=4, grid={"lambda": [1e-4, 1e-3, 1e-2, 1e-1]}, extend=False
    )
    assert result.best.kernel == kernel
    assert result.table["theta"].dropna().unique().tolist() == [kernel.theta]
    assert kernels.short(kernel) in result.summary()
    result.model.save(tmp_path / "model.npz")
    loaded = kernsel.load(tmp_path / "model.npz")
    assert loaded.kernel == kernel
    assert np.array_equal(loaded.predict(X), result.model.predict(X))


def test_a_grid_can_not_search_it(waves):
    with pytest.raises(OptionError, match="so many numbers aren't searched on a grid; learn them by"):
        kernsel.stability(waves[0], "ard")
