"""Logarithms of features beside their values: what they are, derivatives, and the ways in and out of text."""

import json

import numpy as np
import pytest
from scipy.sparse import csr_array

import twins.learning
from kernsel import kernels
from kernsel.data import from_arrays
from kernsel.errors import OptionError
from kernsel.kernels import ARD, ARDLaplacian, ARDPolynomial
from kernsel.kernels.base import names_of
from kernsel.kernels.logs import FEWEST, logs_of
from kernsel.kernels.views import by_feature

D, N = 4, 40
GROUPS = (1, 2, 1)


def table(n=N, seed=0):
    """Rows of two columns over powers of ten, the last with zeros, one with negative values, and one of few values."""
    rng = np.random.default_rng(seed)
    counts = np.where(rng.random(n) < 0.2, 0.0, np.round(np.exp(2 * rng.normal(size=n)), 2))
    return np.column_stack([np.exp(2 * rng.normal(size=n)), rng.normal(size=n), np.exp(rng.integers(0, 4, n)), counts])


def scaled(X, by=None):
    """Return rows in units of the standard deviation about the mean of rows, and the place of 0."""
    by = X if by is None else by
    return (X - by.mean(axis=0)) / by.std(axis=0), -by.mean(axis=0) / by.std(axis=0)


ROWS, ZEROS = scaled(table())
NEW = scaled(3 * table(7, 1), table())[0]

LOGGED = [
    *(ARD((0.5, 0.1, 2.0, 0.3), profile).with_logs(ROWS, ZEROS) for profile in ARD.words["profile"]),
    ARDLaplacian((0.5, 0.1, 2.0, 0.3)).with_ranks(ROWS).with_logs(ROWS, ZEROS),
    ARDLaplacian((0.5, 0.1, 2.0, 0.3)).with_logs(ROWS, ZEROS).with_ranks(ROWS),
    ARDPolynomial((0.5, 0.1, 2.0, 0.3), 2).with_logs(ROWS, ZEROS),
    ARD((0.5, 0.1, 2.0), "matern32", groups=GROUPS).with_logs(ROWS, ZEROS),
]


def by_hand(x, X):
    """Return logarithms of values in their own units, for those of the rows X, standardised."""
    positive = X[X > 0]
    c = 0.0 if positive.size == X.size else positive.min() / 2
    logs = np.log(X + c)
    return (np.log(np.maximum(x, X.min()) + c) - logs.mean()) / logs.std()


@pytest.mark.parametrize("j", [0, 3])
def test_they_are_the_logarithms_of_values_in_their_own_units(j):
    X, Z = table()[:, j], np.append(3 * table(7, 1)[:, j], [0.0, -5.0])
    (log,) = logs_of(ROWS, ZEROS, [j])
    mean, scale = X.mean(), X.std()
    for x in (X, Z):
        np.testing.assert_allclose(log((x - mean) / scale), by_hand(x, X), rtol=0, atol=5e-3)
    seen = log(ROWS[:, j])
    assert (seen.mean(), seen.std()) == (pytest.approx(0.0, abs=1e-12), pytest.approx(1.0))


def test_beyond_the_rows_no_logarithm_is_of_a_negative_number():
    kernel = ARD((1.0,) * D).with_logs(ROWS, ZEROS)
    for view in kernel.views:
        low, below = view(np.array([ROWS[:, view.feature].min(), -1e9]))
        assert np.isfinite(below)
        assert low == pytest.approx(below)
    assert np.isfinite(kernel(NEW - 1e9, ROWS)).all()


def test_which_features_have_one():
    few = np.column_stack([np.exp(np.arange(N) % (FEWEST - 1)), np.exp(np.arange(N) % FEWEST), 100.0 + np.arange(N)])
    assert [log.feature for log in logs_of(few, np.zeros(3), range(3))] == [1]  # the last one is straight
    assert [log.feature for log in logs_of(ROWS, ZEROS, range(D))] == [0, 3]
    assert [log.feature for log in logs_of(ROWS, np.where(np.arange(D) == 0, np.nan, ZEROS), range(D))] == [3]
    assert ARD((1.0,) * 2).with_logs(few[:, [0, 2]], np.zeros(2)) == ARD((1.0,) * 2)


def test_an_encoder_says_where_0_is():
    X = table()
    encoder = from_arrays(X, X[:, 0], standardize=True).encoder
    np.testing.assert_allclose(encoder.transform(np.zeros((1, D)))[0], encoder.zeros, rtol=1e-12)
    logs = logs_of(encoder.transform(X), encoder.zeros, range(D))
    for log, j in zip(logs, (0, 3), strict=True):
        np.testing.assert_allclose(log(encoder.transform(X)[:, j]), by_hand(X[:, j], X[:, j]), rtol=0, atol=5e-3)


@pytest.mark.parametrize("kernel", LOGGED, ids=str)
def test_it_is_the_kernel_of_values_and_logarithms(kernel):
    W = np.random.default_rng(2).normal(size=(N, 7))
    assert kernel.logged == (0, 3)
    both, others = (np.column_stack([A, *(view(A[:, view.feature]) for view in kernel.views)]) for A in (ROWS, NEW))
    plain = kernel.plain
    assert plain.theta == kernel.theta
    assert not plain.views
    np.testing.assert_array_equal(kernel(ROWS, NEW), plain(both, others))
    np.testing.assert_array_equal(kernel.diag(ROWS), plain.diag(both))
    np.testing.assert_array_equal(kernel(csr_array(ROWS), csr_array(NEW)), kernel(ROWS, NEW))
    np.testing.assert_array_equal(kernel.theta_vjp(ROWS, W, None, NEW), plain.theta_vjp(both, W, None, others))


@pytest.mark.parametrize("kernel", LOGGED, ids=str)
def test_derivatives_are_the_differences(kernel):
    W = np.random.default_rng(1).normal(size=(N, N))
    expected = twins.learning.differences(
        lambda theta: np.sum(W * kernel.with_theta(theta)(ROWS)), np.array(kernel.theta)
    )
    np.testing.assert_allclose(
        kernel.theta_vjp(ROWS, W), expected, rtol=1e-5, atol=1e-8 * np.abs(W * kernel(ROWS)).sum()
    )


@pytest.mark.parametrize("kernel", LOGGED, ids=str)
def test_text_and_description_lead_back(kernel):
    assert kernels.parse(str(kernel)) == kernel
    assert kernels.from_spec(json.loads(json.dumps(kernel.spec()))) == kernel
    assert "logs=" not in kernels.short(kernel)
    assert "logged=(0, 3)" in kernels.short(kernel)


def test_a_relevance_is_shared_between_value_and_logarithm():
    kernel = ARDLaplacian((4.0, 1.0, 2.0, 6.0)).with_logs(ROWS, ZEROS)
    assert kernel.theta == (2.0, 1.0, 2.0, 3.0, 2.0, 3.0)
    names = ["a", "b", "c", "d", "a (log)", "d (log)"]
    assert names_of(kernel, list("abcd")) == names
    assert by_feature(dict(zip(names, kernel.theta, strict=True)), "abcd") == {"a": 4.0, "b": 1.0, "c": 2.0, "d": 6.0}
    tied = ARDLaplacian((4.0, 1.0, 6.0), groups=GROUPS).with_logs(ROWS, ZEROS)
    assert tied.theta == (2.0, 1.0, 3.0, 2.0, 3.0)
    assert names_of(tied, ["a", "b=x", "b=y", "d"]) == ["a", "b=", "d", "a (log)", "d (log)"]
    assert ARD().with_logs(ROWS, ZEROS).theta is None
    assert kernel.with_logs(ROWS, ZEROS) is kernel


def test_relevances_of_ranks_stand_before_those_of_logarithms():
    first, last = LOGGED[5:7]
    assert first.ranked == last.ranked != ()
    assert [view.ending for view in first.views] == [" (rank)"] * len(first.ranked) + [" (log)"] * 2
    ranked = ARDLaplacian((0.5, 0.1, 2.0, 0.3)).with_ranks(ROWS).theta
    halved = [0.5 if j in (0, 3) else 1.0 for j in range(D)]
    np.testing.assert_allclose(first.theta[:D], np.multiply(ranked[:D], halved))
    assert first.theta[D : D + len(first.ranked)] == ranked[D:]
    plain = ARDLaplacian((0.5, 0.1, 2.0, 0.3)).with_logs(ROWS, ZEROS)
    assert last.theta[-2:] == plain.theta[-2:]
    assert (first.views_told, plain.views_told, ARD().views_told) == ("ranks and logs", "logs", "")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ARD(logged=(0, 0), logs=(1, 1, 0, 1) * 2), "logged must be different whole numbers from 0"),
        (lambda: ARD(logged=(-1,), logs=(1, 1, 0, 1)), "the features with a logarithm"),
        (lambda: ARD(logged=(0,), logs=(1, 1, 0)), "logs must be 4 numbers for each logged feature"),
        (lambda: ARD(logs=(1, 1, 0, 1)), "logs must be 4 numbers for each logged feature"),
        (lambda: ARD(logged=(0,)), "logs must be 4 numbers for each logged feature"),
        (lambda: ARD(logged=(0,), logs=(1, 0, 0, 1)), "the second and the last one greater than 0"),
        (lambda: ARD(logged=(0,), logs=(1, 1, 0, -1)), "the second and the last one greater than 0"),
        (lambda: ARD(logged=(0,), logs=(1, 1, 0, float("nan"))), "logs must be finite numbers, 4 for each"),
        (lambda: ARD(logged=None), "logged isn't learnt or searched"),
        (lambda: ARD((1, 1), logged=(0,), logs=(1, 1, 0, 1))(ROWS), "the rows have 4 features and 1 logs"),
        (lambda: ARD((1, 1), logged=(4,), logs=(1, 1, 0, 1))(ROWS), "logged names feature 4, and the rows have 4"),
        (
            lambda: ARD((1, 1), groups=(4,), ranked=(0,), quantiles=(1, 2), logged=(1,), logs=(1, 1, 0, 1))(ROWS),
            "there are 1 groups of features and 1 ranks and 1 logs",
        ),
    ],
)
def test_errors_say_what_is_wrong(make, message):
    with pytest.raises(OptionError) as caught:
        make()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
