"""Gram matrices against twins, SciPy, and exact properties."""

import threading

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from kernsel.numerics import gram

EPS = np.finfo(float).eps
SIZES = [(1, 1), (2, 3), (119, 120), (120, 121), (250, 361)]
METRICS = {"sqdist": "sqeuclidean", "l1": "cityblock"}


def points(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def expected(statistic, X, Z):
    return X @ Z.T if statistic == "inner" else cdist(X, Z, METRICS[statistic])


@pytest.mark.parametrize("statistic", gram.STATISTICS)
@pytest.mark.parametrize(("n", "m"), SIZES)
@pytest.mark.parametrize("d", [1, 7])
def test_statistics_equal_scipy(statistic, n, m, d):
    X, Z = points(n, d), points(m, d, 1)
    tolerance = 100 * d * EPS * max(1.0, np.abs(X).max() * np.abs(Z).max())
    np.testing.assert_allclose(gram.gram(statistic, X, Z), expected(statistic, X, Z), rtol=1e-12, atol=tolerance)
    np.testing.assert_allclose(gram.gram(statistic, X), expected(statistic, X, X), rtol=1e-12, atol=tolerance)


@pytest.mark.parametrize("statistic", gram.STATISTICS)
@pytest.mark.parametrize("n", [1, 120, 121, 300])
def test_symmetric_matrices_are_exactly_symmetric(statistic, n):
    K = gram.gram(statistic, points(n, 5))
    assert np.array_equal(K, K.T)


@pytest.mark.parametrize("statistic", gram.STATISTICS)
def test_no_rows_and_no_columns(statistic):
    assert gram.gram(statistic, np.empty((0, 3))).shape == (0, 0)
    assert gram.gram(statistic, points(4, 3), np.empty((0, 3))).shape == (4, 0)
    assert np.array_equal(gram.gram(statistic, np.empty((4, 0))), np.zeros((4, 4)))


def test_distances_between_equal_points_are_exactly_zero():
    X = 1e6 + points(200, 4)
    X[150:] = X[:50]
    S = gram.gram("sqdist", X)
    assert (np.diag(S) == 0).all()
    assert (S[150:, :50].diagonal() == 0).all()
    assert (gram.gram("sqdist", X, X.copy()).diagonal() == 0).all()
    assert (S >= 0).all()


@pytest.mark.parametrize("gap", [1e-9, 1e-5, 1e-3])
def test_distances_of_near_points_keep_their_digits(gap):
    X = points(130, 3)
    Z = X + gap * points(130, 3, 1)
    np.testing.assert_allclose(gram.gram("sqdist", X, Z), cdist(X, Z, "sqeuclidean"), rtol=1e-12)


def test_distances_survive_one_far_outlier():
    X = points(130, 3)
    X[7] = 1e9
    np.testing.assert_allclose(gram.gram("sqdist", X), cdist(X, X, "sqeuclidean"), rtol=1e-12)


@pytest.mark.parametrize("statistic", gram.STATISTICS)
def test_nan_stays_in_its_row_and_column(statistic):
    X = points(140, 3)
    X[5, 1] = np.nan
    bad = np.isnan(gram.gram(statistic, X, None, gram.exponential(0.1)))
    assert bad[5].all()
    assert bad[:, 5].all()
    assert bad.sum() == 2 * 140 - 1


def arguments():
    rng = np.random.default_rng(0)
    edges = [0.0, 5e-324, 689.99, 690.01, 708.3, 708.4, 720.0, 744.4, 745.13, 745.14, 746.0, 746.1, 1e308]
    return np.concatenate([edges, np.linspace(0, 750, 300_001), 10.0 ** rng.uniform(-320, 3, 100_000)])


def test_exponential_is_right_to_two_units_in_the_last_place():
    if np.finfo(np.longdouble).eps == EPS:
        pytest.skip("no wider floating-point type to compare with")
    u = arguments()
    exact = np.exp(-u.astype(np.longdouble))
    error = np.abs(gram.apply(gram.exponential(1.0), u) - exact) / np.spacing(exact.astype(float))
    assert error.max() <= 2


def test_exponential_at_its_ends():
    u = np.array([0.0, -0.0, 745.13, 745.14, 1e300, np.inf, np.nan])
    np.testing.assert_array_equal(gram.apply(gram.exponential(1.0), u), [1, 1, 5e-324, 0, 0, 0, np.nan])
    np.testing.assert_array_equal(
        gram.apply(gram.exponential(1.0, 1.0, 1 / 3, root=True), np.array([0, 640_000.0, 1e308, np.inf, np.nan])),
        [1, 0, 0, 0, np.nan],
    )


def test_exponential_of_an_infinite_factor_keeps_zero_distances():
    np.testing.assert_array_equal(gram.apply(gram.exponential(np.inf), np.array([0.0, 1.0])), [1, 0])


FORMULAS = {
    "exponential": (gram.exponential(0.3), lambda s: np.exp(-0.3 * s)),
    "exponential with polynomial": (
        gram.exponential(0.3, 1.0, 0.25),
        lambda s: (1 + 0.3 * s + 0.25 * (0.3 * s) ** 2) * np.exp(-0.3 * s),
    ),
    "exponential of the root": (
        gram.exponential(0.3, 1.0, root=True),
        lambda s: (1 + 0.3 * np.sqrt(s)) * np.exp(-0.3 * np.sqrt(s)),
    ),
    "inverse": (gram.inverse(0.3, 1.0), lambda s: 1 / (1 + 0.3 * s)),
    "inverse 0.7": (gram.inverse(0.3, 0.7), lambda s: (1 + 0.3 * s) ** -0.7),
    "power": (gram.power(0.5, 1.0, 3), lambda s: (0.5 * s + 1) ** 3),
    "power 1": (gram.power(0.5, 1.0, 1), lambda s: 0.5 * s + 1),
}


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("shape", [(0,), (1023,), (1025,), (300, 301)])
def test_formulas_equal_numpy(name, shape):
    formula, twin = FORMULAS[name]
    S = np.random.default_rng(0).uniform(0, 50, shape)
    before = S.copy()
    np.testing.assert_allclose(gram.apply(formula, S), twin(S), rtol=20 * EPS)
    assert np.array_equal(S, before)


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("statistic", ["sqdist", "l1"])
def test_fused_equals_mapped(name, statistic):
    X, Z = points(130, 4), points(250, 4, 1)
    formula = FORMULAS[name][0]
    for other in (None, Z):
        stored = gram.apply(formula, gram.gram(statistic, X, other))
        np.testing.assert_allclose(gram.gram(statistic, X, other, formula), stored, rtol=4 * EPS)


@pytest.mark.parametrize("statistic", gram.STATISTICS)
@pytest.mark.compiled
def test_the_number_of_threads_does_not_change_a_bit(statistic, use_threads):
    X = points(500, 30)
    formula = gram.exponential(0.01)
    many, mapped = gram.gram(statistic, X, None, formula), gram.apply(formula, X[:, :1] @ X[:, :1].T)
    use_threads(1)
    assert np.array_equal(many, gram.gram(statistic, X, None, formula))
    assert np.array_equal(mapped, gram.apply(formula, X[:, :1] @ X[:, :1].T))


def test_several_threads_may_call_at_once():
    X = points(400, 5)
    alone = gram.gram("sqdist", X)
    found = [None] * 4

    def work(i):
        found[i] = gram.gram("sqdist", X)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(alone, K) for K in found)


def test_nan_does_not_hide_equal_points_of_other_columns():
    X = 1e3 + points(140, 3)
    X[0] = X[60] = np.nan
    X[30] = X[10] = X[139]
    S = gram.gram("sqdist", X, X[np.r_[0, 10, 60, 139, 30]])
    assert (S[np.ix_([10, 30, 139], [1, 3, 4])] == 0).all()
    assert (S[~np.isnan(S)] >= 0).all()


@pytest.mark.parametrize("statistic", gram.STATISTICS)
def test_points_may_be_read_only(statistic):
    X, Z = points(130, 4), points(20, 4, 1)
    expected = gram.gram(statistic, X), gram.gram(statistic, X, Z)
    for given in (X, Z):
        given.flags.writeable = False
    assert np.array_equal(gram.gram(statistic, X), expected[0])
    assert np.array_equal(gram.gram(statistic, X, Z), expected[1])
