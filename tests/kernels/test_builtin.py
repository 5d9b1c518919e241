"""The built-in kernels against scikit-learn, and their parameters."""

import json

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern
from sklearn.gaussian_process.kernels import RationalQuadratic as RationalQuadraticOfSklearn
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, polynomial_kernel, rbf_kernel

from kernsel import kernels
from kernsel.errors import OptionError
from kernsel.kernels import (
    Exponential,
    Gaussian,
    Laplacian,
    Linear,
    Matern32,
    Matern52,
    On,
    Polynomial,
    RationalQuadratic,
    Statistics,
)

KERNELS = {
    Gaussian(2.0): lambda X, Z: rbf_kernel(X, Z, gamma=0.25),
    Laplacian(3.0): lambda X, Z: laplacian_kernel(X, Z, gamma=1 / 3),
    Exponential(1.5): Matern(1.5, nu=0.5),
    Matern32(1.5): Matern(1.5, nu=1.5),
    Matern52(1.5): Matern(1.5, nu=2.5),
    RationalQuadratic(1.5): RationalQuadraticOfSklearn(1.5, 1.0),
    RationalQuadratic(1.5, 0.3): RationalQuadraticOfSklearn(1.5, 0.3),
    Linear(): linear_kernel,
    Polynomial(3, 0.2, 1.5): lambda X, Z: polynomial_kernel(X, Z, gamma=0.2, coef0=1.5, degree=3),
}
CLASSES = [Gaussian, Laplacian, Linear, Exponential, Matern32, Matern52, RationalQuadratic, Polynomial]


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(140, 5))


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_equals_sklearn(kernel, X):
    Z = X[:30] + 0.1
    for other in (X, Z):
        expected = KERNELS[kernel](X, other)
        given = None if other is X else Z
        np.testing.assert_allclose(kernel(X, given), expected, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(kernel.evaluate(Statistics(X, given)), expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(kernel.diag(X), np.diag(kernel(X)), rtol=1e-13)


def test_statistics_are_computed_once(X):
    stats = Statistics(X)
    assert stats.sqdist is stats.sqdist
    assert Statistics(X.tolist(), X[:3].astype(np.float32)).l1.shape == (140, 3)


def test_a_table_of_a_plugin_is_computed_once_and_read_only(X):
    stats, asked = Statistics(X, X[:3]), []

    def largest(X, Z):
        asked.append(1)
        return np.abs(X[:, None] - Z[None]).max(axis=2)

    found = stats.kept("largest", largest)
    assert found is stats.kept("largest", largest)
    assert (found.shape, len(asked), found.flags.writeable) == ((140, 3), 1, False)
    assert Statistics(X).kept("largest", largest).shape == (140, 140)
    np.testing.assert_array_equal(stats.on((0,)).kept("largest", largest), np.abs(X[:, [0]] - X[:3, 0]))


@pytest.mark.parametrize("cls", CLASSES)
def test_axes_cover_what_is_free(cls, X):
    kernel = cls()
    axes = kernel.axes(X)
    assert tuple(axes) == kernel.free
    for name, axis in axes.items():
        assert (np.diff(axis) > 0).all()
        fixed = kernel.with_parameters(**{name: axis[0]})
        assert fixed.parameters[name] == axis[0]
        assert name not in fixed.free
        assert name not in fixed.axes(X)


def test_gaussian_axis_follows_the_scale_of_the_data(X):
    S = Statistics(X).sqdist[np.tril_indices(140, -1)]
    axis = Gaussian().axes(X)["tau"]
    assert len(axis) == 12
    np.testing.assert_allclose([axis[0], axis[-1]], np.quantile(S, [0.1, 0.9]) * [1 / 8, 8])
    np.testing.assert_allclose(Gaussian().axes(10 * X)["tau"], 100 * axis)
    np.testing.assert_allclose(Matern32().axes(10 * X)["ell"], 10 * Matern32().axes(X)["ell"])
    np.testing.assert_allclose(Laplacian().axes(10 * X)["sigma"], 10 * Laplacian().axes(X)["sigma"])


def test_width_axis_of_many_rows_is_repeatable():
    X = np.random.default_rng(0).normal(size=(1500, 2))
    assert np.array_equal(Gaussian().axes(X)["tau"], Gaussian().axes(X)["tau"])


@pytest.mark.parametrize("n", [1, 5])
def test_width_axis_of_equal_points_is_one(n):
    assert Gaussian().axes(np.ones((n, 3)))["tau"].tolist() == [1.0]


def test_width_axis_leaves_out_zero_distances(X):
    repeated = np.repeat(X[:10], 5, axis=0)
    S = Statistics(X[:10]).sqdist[np.tril_indices(10, -1)]
    axis = Gaussian().axes(repeated)["tau"]
    assert S.min() / 8 <= axis[0]
    assert axis[-1] <= 8 * S.max()


def test_polynomial_axes(X):
    axes = Polynomial().axes(X)
    assert axes["degree"].tolist() == [2, 3, 4]
    np.testing.assert_allclose(axes["gamma"], np.array([0.25, 1, 4]) / 5)


def test_alpha_is_searched_where_it_is_free(X):
    free = RationalQuadratic(alpha=None)
    assert free.free == ("ell", "alpha")
    assert list(free.axes(X)) == ["ell", "alpha"]
    assert RationalQuadratic().parameters == {"alpha": 1.0}
    for kernel in (free, RationalQuadratic(), RationalQuadratic(2.0, None), RationalQuadratic(2.0, 3.0)):
        assert kernels.parse(str(kernel)) == kernel
        assert kernels.from_spec(json.loads(json.dumps(kernel.spec()))) == kernel


def test_a_large_alpha_is_a_gaussian_kernel(X):
    np.testing.assert_allclose(RationalQuadratic(1.5, 1e7)(X), Gaussian(1.5**2)(X), atol=1e-6)  # off by s^2 / alpha


def test_smoothness():
    kinds = (Exponential, Laplacian, Matern32, Matern52, RationalQuadratic, Gaussian)
    assert [cls.smoothness for cls in kinds] == [0.5, 0.5, 1.5, 2.5, np.inf, np.inf]
    assert (0.5 * (Gaussian(1.0) + On((0,), Matern32(1.0)) * Matern52(1.0))).smoothness == 1.5


def test_gamma_of_sklearn():
    assert Gaussian.from_gamma(0.25) == Gaussian(2.0)
    assert Gaussian(2.0).gamma == 0.25
    assert Gaussian().gamma is None
    assert Gaussian(2.0).conversions() == {"gamma": 0.25}
    assert Gaussian.build(gamma=0.25) == Gaussian.build(tau=2) == Gaussian(2.0)
    assert Laplacian.from_gamma(4) == Laplacian.build(gamma=4) == Laplacian(0.25)
    assert Laplacian(0.25).gamma == 4
    assert Laplacian(0.25).conversions() == {"gamma": 4}
    assert Laplacian().gamma is None
    assert Gaussian().conversions() == Laplacian().conversions() == Linear().conversions() == {}


@pytest.mark.parametrize(
    ("cls", "width"), list(zip(CLASSES, ["tau", "sigma", None, "ell", "ell", "ell", "ell", None], strict=True))
)
def test_width(cls, width):
    assert cls.width == width


def test_a_wider_kernel_is_a_larger_width(X):
    for cls in (Gaussian, Laplacian, Exponential, Matern32, Matern52, RationalQuadratic):
        narrow, wide = (cls().with_parameters(**{cls.width: value})(X) for value in (1.0, 2.0))
        assert (narrow <= wide).all()


def test_parameters_become_plain_numbers():
    kernel = Polynomial(np.int64(3), np.float64(0.5))
    assert str(kernel) == "polynomial(degree=3, gamma=0.5, coef0=1.0)"
    assert kernel == Polynomial(3.0, 0.5, 1)
    assert type(kernel.degree) is int
    assert hash(kernel) == hash(Polynomial(3, 0.5))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gaussian(0), "tau must be a finite number greater than 0, not 0.0"),
        (lambda: Gaussian(float("nan")), "tau must be a finite number"),
        (lambda: Laplacian(float("inf")), "sigma must be a finite number"),
        (lambda: Matern32(-1), "ell must be a finite number greater than 0"),
        (lambda: RationalQuadratic(1.0, 0), "alpha must be a finite number greater than 0"),
        (lambda: Gaussian("wide"), "tau must be a number or None, not 'wide'"),
        (lambda: Gaussian(True), "tau must be a number or None, not True"),
        (lambda: Polynomial(2.5), "degree must be a whole number, not 2.5"),
        (lambda: Polynomial(0), "degree must be a finite number greater than 0"),
        (lambda: Polynomial(2, 1, -1), "coef0 must be a number of at least 0, not -1.0"),
        (lambda: Polynomial(2, 1, None), "coef0 must be a number of at least 0, not None"),
        (lambda: Gaussian.from_gamma(0), "gamma must be a finite number greater than 0"),
        (lambda: Gaussian().with_parameters(ta=1), "no parameter 'ta'; did you mean 'tau'"),
        (lambda: Linear().with_parameters(tau=1), "no parameter 'tau'; its parameters: none"),
        (lambda: Gaussian.build(tau=1, gamma=1), "give gamma alone"),
        (lambda: Gaussian.build(widht=1), "no parameter 'widht'"),
        (lambda: Gaussian()(np.ones((2, 2))), "tau has no value; give one or search for it"),
        (lambda: Polynomial(2).evaluate(Statistics(np.ones((2, 2)))), "gamma has no value"),
        (lambda: Gaussian().diag(np.ones((2, 2))), "tau has no value"),
    ],
)
def test_errors_say_what_is_wrong(make, message):
    with pytest.raises(OptionError) as caught:
        make()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
