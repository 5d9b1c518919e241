"""Ranks of features beside their values: what they are, derivatives, and the ways in and out of text."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.stats import rankdata

import twins.learning
from kernsel import kernels
from kernsel.errors import OptionError
from kernsel.kernels import ARD, ARDLaplacian, ARDPolynomial
from kernsel.kernels.base import names_of
from kernsel.kernels.ranks import QUANTILES, curve_of
from kernsel.kernels.views import by_feature

D, N = 4, 40
GROUPS = (1, 2, 1)


def table(n=N, seed=0):
    """Rows of heavy tails, a feature of ties, and one that is its ranks."""
    rng = np.random.default_rng(seed)
    return np.column_stack(
        [np.exp(2 * rng.normal(size=n)), rng.integers(0, 4, n) ** 3.0, rng.random(n), np.exp(rng.normal(size=n))]
    )


RANKED = [
    *(ARD((0.5, 0.1, 2.0, 0.3), profile).with_ranks(table()) for profile in ARD.words["profile"]),
    ARDLaplacian((0.5, 0.1, 2.0, 0.3)).with_ranks(table()),
    ARDPolynomial((0.5, 0.1, 2.0, 0.3), 2).with_ranks(table()),
    ARD((0.5, 0.1, 2.0), "matern32", groups=GROUPS).with_ranks(table()),
]


@given(
    st.lists(st.sampled_from([-3.0, 0.0, 0.25, 7.0, 1e6]), min_size=2, max_size=30).filter(lambda x: len(set(x)) > 1)
)
def test_with_a_quantile_for_each_row_they_are_the_mid_ranks(x):
    n = len(x)
    expected = 2 * np.sqrt(3) * ((rankdata(x) - 1) / (n - 1) - 0.5)
    np.testing.assert_allclose(np.interp(x, *curve_of(np.sort(x))), expected, rtol=1e-12, atol=1e-12)


def test_they_have_about_mean_0_and_variance_1_where_values_differ():
    x = table(2000)[:, 0]
    u = np.interp(x, *curve_of(np.quantile(x, np.linspace(0, 1, QUANTILES))))
    assert abs(u.mean()) < 0.03
    assert abs(u.var() - 1) < 0.05


@pytest.mark.parametrize("kernel", RANKED, ids=str)
def test_it_is_the_kernel_of_values_and_ranks(kernel):
    X, Z, W = table(), table(7, 1), np.random.default_rng(2).normal(size=(N, 7))
    assert kernel.ranked == ((0, 3) if kernel.groups else (0, 1, 3))
    pairs = list(zip(kernel.ranked, kernel.views, strict=True))
    both, others = (np.column_stack([A, *(curve(A[:, j]) for j, curve in pairs)]) for A in (X, Z))
    plain = kernel.plain
    assert plain.theta == kernel.theta
    assert not plain.ranked
    np.testing.assert_array_equal(kernel(X, Z), plain(both, others))
    np.testing.assert_array_equal(kernel.diag(X), plain.diag(both))
    np.testing.assert_array_equal(kernel(csr_array(X), csr_array(Z)), kernel(X, Z))
    np.testing.assert_array_equal(kernel.theta_vjp(X, W, None, Z), plain.theta_vjp(both, W, None, others))


@pytest.mark.parametrize("kernel", RANKED, ids=str)
def test_derivatives_are_the_differences(kernel):
    X, W = table(), np.random.default_rng(1).normal(size=(N, N))
    expected = twins.learning.differences(lambda theta: np.sum(W * kernel.with_theta(theta)(X)), np.array(kernel.theta))
    np.testing.assert_allclose(kernel.theta_vjp(X, W), expected, rtol=1e-5, atol=1e-8 * np.abs(W * kernel(X)).sum())


@pytest.mark.parametrize("kernel", RANKED, ids=str)
def test_text_and_description_lead_back(kernel):
    assert kernels.parse(str(kernel)) == kernel
    assert kernels.from_spec(json.loads(json.dumps(kernel.spec()))) == kernel
    assert not {"logged", "logs"} & kernel.spec()["parameters"].keys()  # so that files without them are read as well


def test_a_relevance_is_shared_between_value_and_rank():
    kernel = ARDLaplacian((4.0, 1.0, 2.0, 6.0)).with_ranks(table())
    assert kernel.theta == (2.0, 0.5, 2.0, 3.0, 2.0, 0.5, 3.0)
    assert names_of(kernel, list("abcd")) == ["a", "b", "c", "d", "a (rank)", "b (rank)", "d (rank)"]
    tied = ARDLaplacian((4.0, 1.0, 6.0), groups=GROUPS).with_ranks(table())
    assert tied.theta == (2.0, 1.0, 3.0, 2.0, 3.0)
    assert names_of(tied, ["a", "b=x", "b=y", "d"]) == ["a", "b=", "d", "a (rank)", "d (rank)"]
    assert ARD().with_ranks(table()).theta is None


def test_features_whose_ranks_say_nothing_else_have_none():
    X = np.column_stack([np.arange(20.0), np.arange(20) % 2, np.zeros(20)])
    kernel = ARD((1.0, 1.0, 1.0))
    assert kernel.with_ranks(X) == kernel


@pytest.mark.parametrize("far", [0.0, 1e9], ids=["", "far from 0"])
def test_quantiles_stay_apart_beside_an_outlier(far):
    x = np.append(np.exp(np.random.default_rng(0).normal(size=300)), 1e9)
    x = (x - x.mean()) / x.std() if far == 0 else x[:-1] + far
    kernel = ARD().with_ranks(x[:, None])
    (rank,) = kernel.views
    assert rank.values.size == QUANTILES
    expected = 2 * np.sqrt(3) * ((rankdata(x) - 1) / (len(x) - 1) - 0.5)
    assert np.corrcoef(rank(x), expected)[0, 1] > 0.99
    assert kernel.with_ranks(x[::2, None]) == kernel
    assert ARD(ranked=(0,), quantiles=np.array(kernel.quantiles)) == kernel


def test_a_feature_takes_no_part_if_neither_value_nor_rank_does():
    assert by_feature({"a": 0.0, "b": 0.0, "a (rank)": 2.0, "b (rank)": 0.0}, "ab") == {"a": 2.0, "b": 0.0}


@pytest.mark.parametrize(
    "columns", [["a", "a (rank)"], ["a (rank)", "a"], ["a", "a (rank) (rank)"], ["a", "a (rank)", "a (rank) (rank)"]]
)
def test_a_column_that_is_called_like_a_rank_has_a_name_of_its_own(columns):
    d = len(columns)
    plain = ARD(tuple(range(d)))
    assert by_feature(dict(zip(names_of(plain, columns), plain.theta, strict=True)), columns) == dict(
        zip(columns, plain.theta, strict=True)
    )
    for ranked in ((0,), (1,), tuple(range(d))):
        kernel = ARD((0.0,) * d + (1.0,) * len(ranked), ranked=ranked, quantiles=(0.0, 1.0) * len(ranked))
        names = names_of(kernel, columns)
        assert names[:d] == columns
        assert len(set(names)) == len(kernel.theta)
        found = by_feature(dict(zip(names, kernel.theta, strict=True)), columns)
        assert found == {name: float(j in ranked) for j, name in enumerate(columns)}


@pytest.mark.parametrize("make", [np.exp, np.cbrt, lambda x: x**3 + x])
def test_ranks_alone_do_not_see_how_a_feature_is_measured(make):
    X, Z = table(), table(7, 1)[:, [0]].clip(table()[:, 0].min(), table()[:, 0].max())
    X = X[:, [0]] / 100
    Z = np.concatenate([X[::3], X[1::3]])  # values between quantiles are on a line that the scale bends
    kernels_of = [ARD((0.0, 1.0), ranked=(0,), quantiles=tuple(np.sort(rows[:, 0]))) for rows in (X, make(X))]
    np.testing.assert_allclose(kernels_of[0](X, Z), kernels_of[1](make(X), make(Z)), rtol=1e-9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ARD(ranked=(0, 0), quantiles=(1, 2, 3, 4)), "ranked must be different whole numbers from 0"),
        (lambda: ARD(ranked=(0.5,), quantiles=(1, 2)), "ranked must be different whole numbers from 0"),
        (lambda: ARD(ranked=(-1,), quantiles=(1, 2)), "ranked must be different whole numbers from 0"),
        (lambda: ARD(ranked=(0, 1), quantiles=(1, 2, 3)), "3 quantiles don't belong to 2 ranked features"),
        (lambda: ARD(quantiles=(1, 2, 3)), "3 quantiles don't belong to 0 ranked features"),
        (lambda: ARD(ranked=None), "ranked isn't learnt or searched: give values, or leave it out"),
        (lambda: ARD(groups=None), "groups isn't learnt or searched"),
        (lambda: ARD(ranked=(True,), quantiles=(1, 2)), "ranked must be different whole numbers from 0"),
        (lambda: ARD(ranked=(0,)), "each ranked feature needs two quantiles or more, ascending"),
        (lambda: ARD(ranked=(0,), quantiles=(1,)), "each ranked feature needs two quantiles or more, ascending"),
        (lambda: ARD(ranked=(0,), quantiles=(2, 1)), "each ranked feature needs two quantiles or more, ascending"),
        (lambda: ARD(ranked=(0,), quantiles=(1, float("nan"))), "quantiles must be finite numbers, ascending"),
        (lambda: ARD((1, 1), ranked=(0,), quantiles=(1, 2))(table()), "the rows have 4 features and 1 ranks"),
        (lambda: ARD((1, 1), ranked=(4,), quantiles=(1, 2))(table()), "ranked names feature 4, and the rows have 4"),
        (
            lambda: ARD((1, 1), groups=(4,), ranked=(0, 1), quantiles=(1, 2, 3, 4))(table()),
            "there are 1 groups of features and 2 ranks",
        ),
    ],
)
def test_errors_say_what_is_wrong(make, message):
    with pytest.raises(OptionError) as caught:
        make()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
