"""Features that share a relevance: values, derivatives, names, and the ways in and out of text."""

import json

import numpy as np
import pytest

import twins.learning
from kernsel import kernels
from kernsel.errors import OptionError
from kernsel.kernels import ARD, ARDLaplacian, ARDPolynomial, Gaussian, On
from kernsel.kernels.base import names_of, with_groups
from kernsel.learning.start import check_learnable
from kernsel.parts import read_learner

THETA, GROUPS = (0.5, 0.125, 2.0), (1, 3, 2)
TIED = [
    *(ARD(THETA, profile, groups=GROUPS) for profile in ARD.words["profile"]),
    ARDLaplacian(THETA, groups=GROUPS),
    ARDPolynomial(THETA, 2, groups=GROUPS),
]


def table(n=11, seed=0):
    return np.random.default_rng(seed).normal(size=(n, sum(GROUPS)))


def untied(kernel):
    """The kernel with a relevance for each feature, equal within groups."""
    return type(kernel)(**{**kernel.parameters, "theta": np.repeat(kernel.theta, GROUPS), "groups": ()})


@pytest.mark.parametrize("kernel", TIED, ids=str)
def test_it_is_the_kernel_of_equal_relevances(kernel):
    X, Z, W = table(), table(5, 1), table(11, 2)[:, :5]
    plain = untied(kernel)
    np.testing.assert_array_equal(kernel(X, Z), plain(X, Z))
    np.testing.assert_array_equal(kernel.diag(X), plain.diag(X))
    slopes = plain.theta_vjp(X, W, None, Z)
    sums = [slopes[0], slopes[1:4].sum(), slopes[4:].sum()]
    np.testing.assert_allclose(kernel.theta_vjp(X, W, None, Z), sums, rtol=1e-13)


@pytest.mark.parametrize("kernel", TIED, ids=str)
def test_derivatives_are_the_differences(kernel):
    X, W = table(), table(11, 1)[:, [0]] + np.zeros((11, 11))
    expected = twins.learning.differences(lambda theta: np.sum(W * kernel.with_theta(theta)(X)), np.array(THETA), 1e-5)
    np.testing.assert_allclose(kernel.theta_vjp(X, W), expected, rtol=1e-6)


@pytest.mark.parametrize("kernel", TIED, ids=str)
def test_text_and_description_lead_back(kernel):
    assert kernels.parse(str(kernel)) == kernel
    assert kernels.from_spec(json.loads(json.dumps(kernel.spec()))) == kernel
    assert "groups" not in str(untied(kernel))


def test_parts_are_tied_each_to_the_features_that_it_sees():
    kernel = (ARD() + 0.5 * (ARDLaplacian() * On((5, 1, 2, 0), ARD()))).tied(GROUPS)
    one, product = kernel.parts
    assert one.groups == product.part.parts[0].groups == GROUPS
    assert product.part.parts[1].part.groups == (1, 2, 1)
    equal = kernel.isotropic
    kernel = kernel.from_isotropic(equal.with_parameters(**dict.fromkeys(equal.free, 2.0)), 6)
    assert [len(part.theta) for part in (one.with_theta(THETA), product.part.parts[1].with_theta(THETA))] == [3, 3]
    assert len(kernel.theta) == 9
    features = ["age", "city=a", "city=ab", "city is new", "abc=abcd", "abc is new"]
    names = ["age", "city", "abc"]
    assert names_of(kernel, features) == [
        *(f"1.{name}" for name in names),
        *(f"2.1.{name}" for name in names),
        *("2.2.abc is new", "2.2.city=a", "2.2.age"),
    ]


def test_a_kernel_that_has_groups_or_no_relevances_stays():
    assert ARD(groups=(2, 4)).tied(GROUPS).groups == (2, 4)
    assert Gaussian().tied(GROUPS) == Gaussian()
    whole = ARD() + On((0, 2), ARD())
    assert with_groups(whole, ()) is whole
    foreign = object()  # of a plugin that has what a kernel needs without being derived from one
    assert with_groups(foreign, GROUPS) is foreign
    assert check_learnable(ARD().tied(GROUPS), read_learner("krr", "regression")).theta is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ARD(groups=(1, 0)), "groups must be whole numbers of at least 1"),
        (lambda: ARD(groups=(1.5,)), "groups must be whole numbers of at least 1"),
        (lambda: ARD(groups=3.5), "groups must be whole numbers of at least 1"),
        (lambda: ARD((1.0, 2.0), groups=GROUPS)(table()), "theta has 2 relevances, and there are 3 groups of features"),
        (lambda: ARD(THETA, groups=(1, 1, 1))(table()), "theta has 3 relevances, and the rows have 6 features"),
    ],
)
def test_errors_say_what_is_wrong(make, message):
    with pytest.raises(OptionError, match=message):
        make()
