"""Sums, products, multiples and restrictions; parsing; descriptions."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from kernsel import kernels
from kernsel.errors import OptionError
from kernsel.kernels import (
    Constant,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    On,
    Pairwise,
    Polynomial,
    Product,
    Scale,
    Statistics,
    Sum,
)

A, B, C = Gaussian(2.0), Linear(), Laplacian(3.0)
COMBINATIONS = [
    A + B,
    A * B,
    0.5 * A,
    A * 2,
    A + 0.5 * B,
    A + B + C,
    A * B * C,
    (A + B) * C,
    0.5 * (A + B),
    0.5 * (A * B),
    A * (0.5 * B),
    (A + B) * (B + C) + 3 * A,
    On((2,), A),
    On((2, 0), B) + 0.5 * On((1,), C) * A,
    On((0, 1), A + 2 * B),
    On((1, 2), 0.5 * A),
    Gaussian() + On((1,), Polynomial()),
    Scale(1e-7, Gaussian()),
]
CONSTANTS = [A + 1, 0.5 + B * C, (A + 2) * B]


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(40, 3))


def test_values(X):
    a, b, c = A(X), B(X), C(X)
    np.testing.assert_allclose((A + B + 0.5 * C)(X), a + b + 0.5 * c)
    np.testing.assert_allclose(((A + B) * C)(X, X[:7]), ((a + b) * c)[:, :7])
    np.testing.assert_allclose((A * B * C).evaluate(Statistics(X)), a * b * c)


@pytest.mark.parametrize("kernel", [*COMBINATIONS[:-2], *CONSTANTS], ids=str)
def test_diag(kernel, X):
    np.testing.assert_allclose(kernel.diag(X), np.diag(kernel(X)))


def test_kernels_and_numbers_add_and_multiply_as_their_matrices_do(X):
    a, b = A(X), B(X)
    for kernel, expected in (
        (sum([A, B]), a + b),
        (sum([A]), a),
        (A + 0, a),
        (0.5 + A, 0.5 + a),
        (A + np.float64(2), a + 2),
        (np.float64(2) + A, a + 2),
        (np.int64(3) * A, 3 * a),
        (2 * (1 + A) * B, 2 * (1 + a) * b),
    ):
        assert isinstance(kernel, Kernel)
        np.testing.assert_allclose(kernel(X, X[:7]), expected[:, :7], rtol=1e-14)
    assert sum([A, B, C]) == Sum((A, B, C))
    assert A + Constant(1.0) == A + 1
    assert sum([A]) is A


def test_one_statistic_serves_all_parts(X):
    stats = Statistics(X)
    (A + 2 * Gaussian(5.0)).evaluate(stats)
    assert vars(stats).keys() & {"sqdist", "inner", "l1"} == {"sqdist"}


def test_a_restriction_sees_its_features_only(X):
    Z = X[:7] + 1.0
    for part in (A, A + 2 * B, C):
        kernel = On((2, 0), part)
        expected = part(X[:, [2, 0]], Z[:, [2, 0]])
        np.testing.assert_array_equal(kernel(X, Z), expected)
        np.testing.assert_array_equal(kernel.evaluate(Statistics(X, Z)), part.evaluate(Statistics(X, Z).on((2, 0))))
        Z[:, 1] = 9.0
        np.testing.assert_array_equal(kernel(X, Z), expected)
    assert list(On((1,), Gaussian()).axes(X)) == ["tau"]
    assert On((1,), Gaussian()).axes(X)["tau"][0] == Gaussian().axes(X[:, [1]])["tau"][0]
    assert On((1,), A).width == "tau"
    assert On((1,), A).conversions() == A.conversions()
    assert On((1,), Gaussian()).with_parameters(tau=2.0) == On((1,), A)


def test_kernels_on_the_same_features_share_their_statistics(X):
    stats = Statistics(X)
    assert stats.on((0, 2)) is stats.on((0, 2))
    np.testing.assert_array_equal(stats.on((0, 2)).sqdist, Statistics(X[:, [0, 2]]).sqdist)
    np.testing.assert_array_equal(stats.on((1,)).inner, np.outer(X[:, 1], X[:, 1]))


def test_nested_sums_products_and_multiples_are_merged():
    assert On((4, 2, 7), On((2, 0), A)) == On((7, 4), A)
    assert (A + B) + C == A + (B + C) == Sum((A, B, C))
    assert (A * B) * C == A * (B * C) == Product((A, B, C))
    assert Scale(2.0, A) == 0.5 * (4 * A)
    assert 0.5 * On((1,), 4 * A) == Scale(2.0, On((1,), A))


@pytest.mark.parametrize("kernel", [*COMBINATIONS, *CONSTANTS], ids=str)
def test_text_and_description_lead_back(kernel):
    assert kernels.parse(str(kernel)) == kernel
    assert kernels.from_spec(kernel.spec()) == kernel


def test_parameters_have_the_part_as_prefix(X):
    kernel = Gaussian() + 0.5 * (Linear() * Polynomial(degree=2))
    assert kernel.free == ("1.tau", "2.2.gamma")
    assert kernel.parameters == {"2.factor": 0.5, "2.2.degree": 2, "2.2.coef0": 1.0}
    assert list(kernel.axes(X)) == ["1.tau", "2.2.gamma"]
    assert np.array_equal(kernel.axes(X)["1.tau"], Gaussian().axes(X)["tau"])
    fixed = kernel.with_parameters(**{"1.tau": 2, "2.2.gamma": 0.5, "2.factor": 3})
    assert fixed == Gaussian(2) + 3 * (Linear() * Polynomial(2, 0.5))
    assert fixed.conversions() == {"1.gamma": 0.25}
    assert fixed.free == ()
    assert (2 * Gaussian()).free == ("tau",)
    assert (2 * A).conversions() == {"gamma": 0.25}


def test_width_of_a_multiple_is_that_of_its_part():
    assert (2 * A).width == "tau"
    assert (A + B).width is None
    assert (A * B).width is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gaussian", Gaussian()),
        ("  gaussian ( tau = 2 ) ", Gaussian(2)),
        ("gaussian(tau=None)", Gaussian()),
        ("gaussian(gamma=0.25)", Gaussian(2)),
        ("2*3*linear", Scale(6, Linear())),
        ("linear + 1", Linear() + Constant(1)),
        ("2*0.5 + linear + 0", Constant(1) + Linear()),
        ("linear*0.5", Scale(0.5, Linear())),
        ("laplacian(sigma=+1e-3)", Laplacian(1e-3)),
        ("polynomial(degree=3, gamma=2*0.5)", Polynomial(3, 1.0)),
        ("(linear + gaussian) * linear", (Linear() + Gaussian()) * Linear()),
        ("gaussian(tau=2)[3]", On((3,), A)),
        ("2*(linear + gaussian)[1][5, 3]", 2 * On((3,), Linear() + Gaussian())),
    ],
)
def test_parse(text, expected):
    assert kernels.parse(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gausian", "did you mean 'gaussian'"),
        ("gaussian(ta=1)", "did you mean 'tau'"),
        ("gaussian(tau=-1)", "greater than 0"),
        ("2", "is a number"),
        ("", "can't be read"),
        ("gaussian(", "can't be read"),
        ("gaussian(1)", "can't be read"),
        ("gaussian(**x)", "can't be read"),
        ("gaussian(tau=linear)", "can't be read"),
        ("gaussian(tau='wide')", "can't be read"),
        ("linear - gaussian", "can't be read"),
        ("linear + -1", "greater than 0"),
        ("1 + 2", "can't be read"),
        ("True*linear", "True"),
        ("linear**2", "can't be read"),
        ("-2*linear", "greater than 0"),
        ("linear[a]", "can't be read"),
        ("linear[0:2]", "can't be read"),
        ("2[0]", "can't be read"),
        ("linear[-1]", "can't be read"),
        ("linear[0, 0]", "different whole numbers from 0"),
        ("linear[0.5]", "different whole numbers from 0"),
        ("linear[2][0, 1]", "there is no feature 2; the data have 2"),
        ("__import__('os').getcwd()", "can't be read"),
        ("other-package:kernel", "other-package:kernel"),
        ("(" * 5000 + "linear" + ")" * 5000, "can't be read"),
    ],
)
def test_parse_errors(text, message):
    with pytest.raises(OptionError) as caught:
        kernels.parse(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"kernel": 3},
        [],
        {"kernel": "sum", "parts": []},
        {"kernel": "scale", "parts": [{"kernel": "linear"}]},
        {"kernel": "on", "features": [0]},
        {"kernel": "on", "parts": [{"kernel": "linear"}]},
        {"kernel": "on", "features": "0", "parts": [{"kernel": "linear"}]},
        {"kernel": "nothing"},
        {"kernel": "gaussian", "parameters": {"width": 1}},
    ],
)
def test_from_spec_errors(spec):
    with pytest.raises(OptionError):
        kernels.from_spec(spec)


@dataclass(frozen=True)
class Cauchy(Pairwise):
    """A plugin's kernel: one line of NumPy."""

    name: ClassVar[str] = "cauchy"
    statistic: ClassVar[str] = "sqdist"
    positive: ClassVar[tuple[str, ...]] = ("scale",)

    scale: float | None = None

    def profile(self, S):
        return 1 / (1 + S / self.scale)


@dataclass(frozen=True)
class Clash(Cauchy):
    """A plugin's kernel whose parameter has the name of the multiple's."""

    factor: float = 1.0


def test_a_plugin_kernel_takes_part_in_everything(X):
    kernel = Cauchy(2.0)
    S = Statistics(X).sqdist
    np.testing.assert_allclose(kernel(X), 1 / (1 + S / 2))
    np.testing.assert_allclose((kernel + 2 * A).diag(X), np.full(40, 3.0))
    assert str(kernel * A) == "cauchy(scale=2.0)*gaussian(tau=2.0)"
    assert Cauchy().free == ("scale",)
    assert Cauchy().axes(X) == {}


@pytest.mark.parametrize(
    "make",
    [
        lambda: Sum(()),
        lambda: Sum((A, 3)),
        lambda: Scale(None, A),
        lambda: Scale(0, A),
        lambda: -1 * A,
        lambda: A + -1,
        lambda: A + np.inf,
        lambda: Constant(None),
        lambda: Scale(2, "linear"),
        lambda: 2 * Clash(),
        lambda: (2 * A).with_parameters(factor=None),
        lambda: On((), A),
        lambda: On((True,), A),
        lambda: On((-1,), A),
        lambda: On((0,), "linear"),
        lambda: On((0,), A).with_parameters(sigma=1),
        lambda: On((2,), A)(np.ones((2, 2))),
        lambda: On((2,), A).evaluate(Statistics(np.ones((2, 2)))),
        lambda: On((0,), Gaussian())(np.ones((2, 2))),
        lambda: (A + B).with_parameters(tau=1),
        lambda: (A + B).with_parameters(**{"3.tau": 1}),
        lambda: (Gaussian() + B)(np.ones((2, 2))),
        lambda: (2 * Gaussian())(np.ones((2, 2))),
    ],
)
def test_errors(make):
    with pytest.raises(OptionError):
        make()


@pytest.mark.parametrize("make", [lambda: A + "x", lambda: "x" + A, lambda: A * "x", lambda: "x" * A])
def test_other_operands_are_type_errors(make):
    with pytest.raises(TypeError):
        make()
