"""Sparse rows: their forms, their Gram matrices against SciPy's and the dense ones, and their deviations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy import sparse as scipy_sparse
from scipy.spatial.distance import cdist
from sklearn.preprocessing import StandardScaler

from kernsel.kernels import ARD, ARDPolynomial, Gaussian, Laplacian, Linear, Matern32, Matern52, On, Polynomial
from kernsel.numerics import gram, points, sparse

EPS = np.finfo(float).eps
METRICS = {"sqdist": "sqeuclidean", "l1": "cityblock"}


def rows(n, d, density, seed=0):
    """Return random sparse rows, and the same dense."""
    X = points.as_points(scipy_sparse.random_array((n, d), density=density, rng=seed, data_sampler=normal(seed)))
    return X, X.toarray()


def normal(seed):
    rng = np.random.default_rng(seed)
    return lambda size: rng.normal(size=size)


@pytest.mark.parametrize("statistic", gram.STATISTICS)
@pytest.mark.parametrize("density", [0.0, 0.02, 0.3, 1.0])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (3, 250), (130, 40)])
def test_statistics_equal_scipy(statistic, density, n, m):
    (X, A), (Z, B) = rows(n, 60, density), rows(m, 60, density, 1)
    expected = A @ B.T if statistic == "inner" else cdist(A, B, METRICS[statistic])
    for x, z in ((X, Z), (X, B), (A, Z)):  # mixed ones, too
        np.testing.assert_allclose(sparse.gram(statistic, x, z), expected, rtol=1e-12, atol=6000 * EPS)
    K = sparse.gram(statistic, X)
    np.testing.assert_allclose(K, gram.gram(statistic, A), rtol=1e-12, atol=6000 * EPS)
    assert np.array_equal(K, K.T)


@pytest.mark.parametrize("statistic", gram.STATISTICS)
def test_no_rows_and_no_columns(statistic):
    X, _ = rows(4, 3, 0.5)
    assert sparse.gram(statistic, X[:0]).shape == (0, 0)
    assert sparse.gram(statistic, X, X[:0]).shape == (4, 0)
    assert np.array_equal(sparse.gram(statistic, points.as_points(scipy_sparse.csr_array((4, 0)))), np.zeros((4, 4)))


@pytest.mark.parametrize("statistic", ["sqdist", "l1"])
def test_distances_keep_their_digits_far_from_the_origin(statistic):
    X, A = rows(90, 30, 0.2)
    X.data += 1e6
    A = X.toarray()
    A[60:] = A[:30]
    A[:30][A[:30] != 0] += 1e-3
    X = points.as_points(scipy_sparse.csr_array(A))
    S = sparse.gram(statistic, X, X)
    np.testing.assert_allclose(S, cdist(A, A, METRICS[statistic]), rtol=1e-12)
    assert (S.diagonal() == 0).all()
    A[:30] = A[60:]
    assert (sparse.gram(statistic, points.as_points(scipy_sparse.csr_array(A)))[60:, :30].diagonal() == 0).all()


def test_the_number_of_threads_does_not_change_a_bit(use_threads):
    X, _ = rows(300, 200, 0.05)
    many = sparse.gram("sqdist", X, None, gram.exponential(0.1))
    use_threads(1)
    assert np.array_equal(many, sparse.gram("sqdist", X, None, gram.exponential(0.1)))


coordinates = st.one_of(st.just(0.0), st.floats(-1e3, 1e3, allow_subnormal=False))
tables = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=10), elements=coordinates)
KERNELS = [
    Gaussian(3.0),
    Laplacian(20.0),
    Matern32(5.0),
    Matern52(50.0),
    Linear(),
    Polynomial(3, 0.1, 1.0),
    Gaussian(1e4) + 0.5 * Linear() * Laplacian(100.0),
    On((0,), Gaussian(10.0)),
]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(KERNELS), tables, st.booleans())
def test_every_kernel_is_what_it_is_on_dense_rows(kernel, A, weighted):
    check_kernel(kernel, A, np.linspace(0.5, 3, len(A)) if weighted else None)


@pytest.mark.parametrize("weights", [None, np.linspace(0.5, 3, 40)])
def test_relevances_and_wide_tables(weights):
    _, A = rows(40, 30, 0.2)
    theta = (0.1, 0.0, 2.0) * 10
    for kernel in (ARD(theta), ARDPolynomial(theta, 2), ARD((0.0,) * 30), Linear()):
        check_kernel(kernel, A, weights)  # of 30 columns: the scan of a linear kernel goes by rows


def check_kernel(kernel, A, weights):
    assert kernel.sparse
    X = scipy_sparse.csr_array(A)
    K = kernel(A)
    close = {"rtol": 1e-11, "atol": 1e4 * EPS * max(np.abs(K).max(), 1.0)}
    np.testing.assert_allclose(kernel(X), K, **close)
    np.testing.assert_allclose(kernel(X, A[::-1]), K[:, ::-1], **close)
    np.testing.assert_allclose(kernel.diag(X), kernel.diag(A), **close)
    for ours, dense in zip(kernel.scan(X, weights), kernel.scan(A, weights), strict=True):
        np.testing.assert_allclose(ours, dense, rtol=1e-7, atol=1e-7 * np.abs(K).max())  # roots of differences


@pytest.mark.compiled
def test_automatic_widths_are_those_of_dense_rows():
    X, A = rows(1200, 40, 0.1)
    for kernel in (Gaussian(), Laplacian(), Matern32(), Polynomial()):
        for name, axis in kernel.axes(A).items():
            np.testing.assert_allclose(kernel.axes(X)[name], axis, rtol=1e-12)


def test_the_derivative_by_the_width_is_that_of_dense_rows():
    X, A = rows(30, 20, 0.2)
    W = np.random.default_rng(0).normal(size=(30, 30))
    np.testing.assert_allclose(Gaussian(5.0).theta_vjp(X, W), Gaussian(5.0).theta_vjp(A, W), rtol=1e-10)


FORMS = ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"]


@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_becomes_canonical_rows(form, kind):
    _, A = rows(12, 9, 0.3)
    given = getattr(scipy_sparse, f"csr_{kind}")(A).asformat(form)
    X = points.as_points(given)
    assert isinstance(X, scipy_sparse.csr_array)
    assert X.has_canonical_format
    assert np.array_equal(X.toarray(), A)


def test_duplicates_are_summed_and_stored_zeros_left_out_and_nothing_given_is_changed():
    data, columns, starts = np.array([100, 100, 0, 5], np.int8), np.array([2, 2, 1, 0]), np.array([0, 2, 2, 4])
    given = scipy_sparse.csr_array((data, columns.astype(np.int64), starts.astype(np.int64)), shape=(3, 3))
    for part in (given.data, given.indices, given.indptr):
        part.flags.writeable = False
    X = points.as_points(given)
    assert np.array_equal(X.toarray(), [[0, 0, 200], [0, 0, 0], [5, 0, 0]])  # 200 is more than an int8 holds
    assert X.nnz == 2
    assert given.nnz == 4
    np.testing.assert_array_equal(Linear()(given), Linear()(X.toarray()))
    coo = scipy_sparse.coo_array((data, (np.array([0, 0, 2, 2]), columns)), shape=(3, 3))
    assert np.array_equal(points.as_points(coo).toarray(), X.toarray())


def test_canonical_rows_are_shared_even_if_they_may_not_be_written_to():
    X, A = rows(20, 10, 0.3)
    for part in (X.data, X.indices, X.indptr):
        part.flags.writeable = False
    assert np.shares_memory(points.as_points(X).data, X.data)
    np.testing.assert_allclose(sparse.gram("sqdist", X), gram.gram("sqdist", A), atol=1e-12)


def test_rows_that_share_too_many_features_become_dense():
    assert points.is_sparse(points.in_better_form(rows(200, 50, 0.2)[0]))
    X, A = rows(200, 50, 0.4)
    assert np.array_equal(points.in_better_form(X), A)
    common = np.column_stack([np.ones(50), np.eye(50)])  # a feature that all have, and many that are rare
    assert points.is_sparse(points.in_better_form(scipy_sparse.csr_array(common)))


@pytest.mark.parametrize("weights", [np.ones(70), np.linspace(0.1, 4, 70)])
@pytest.mark.parametrize("density", [0.02, 0.3, 1.0])
def test_deviations_are_scikit_learns(weights, density):
    X, A = rows(70, 15, density)
    scaler = StandardScaler(with_mean=False).fit(X, sample_weight=weights)
    for given_rows in (X, A):
        np.testing.assert_allclose(points.deviations(given_rows, weights), np.sqrt(scaler.var_), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("size", [1e-200, 1e-9, 1e140])
def test_deviations_of_any_size(size):
    X, A = rows(70, 15, 0.3)
    expected = size * A.std(axis=0)
    for given_rows in (X * size, A * size):
        np.testing.assert_allclose(points.deviations(given_rows, np.ones(70)), expected, rtol=1e-12)


def test_deviations_of_full_columns_far_from_0():
    A = 1e8 + np.random.default_rng(0).normal(size=(50, 2))
    A[3, 1] = 0.0
    found = points.deviations(points.as_points(scipy_sparse.csr_array(A)), np.ones(50))
    np.testing.assert_allclose(found, A.std(axis=0), rtol=1e-7)  # the values have 8 digits behind the point
