"""Laws of sums, products and multiples of kernels, and of radial ones, on data that hypothesis makes up."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from kernsel.kernels import (
    ARD,
    ARDLaplacian,
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

EPS = np.finfo(float).eps
RADIAL = [Gaussian, Laplacian, Exponential, Matern32, Matern52, RationalQuadratic]
PROFILES = ARD.words["profile"]

coordinates = st.floats(-1e3, 1e3, allow_subnormal=False)
tables = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=12), elements=coordinates)
widths = st.floats(1e-3, 1e6)
atoms = st.one_of(
    st.builds(lambda cls, width: cls(width), st.sampled_from(RADIAL), widths),
    st.just(Linear()),
    st.builds(Polynomial, st.integers(1, 3), st.floats(1e-3, 1.0), st.floats(0, 2)),
)
kernels = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a * b, inner, inner),
        st.builds(lambda c, a: c * a, st.floats(1e-3, 1e3), inner),
        st.builds(lambda a: On((0,), a), inner),
    ),
    max_leaves=3,
)
laws = settings(max_examples=60, deadline=None)


def tolerance(K):
    return 1e4 * EPS * len(K) * max(np.abs(K).max(), np.finfo(float).tiny)


@laws
@given(kernels, tables)
def test_symmetric_and_positive_semidefinite(kernel, X):
    K = kernel(X)
    assert np.array_equal(K, K.T)
    assert np.linalg.eigvalsh(K)[0] >= -tolerance(K)


@laws
@given(kernels, tables)
def test_fused_stored_cross_and_diag_agree(kernel, X):
    K = kernel(X)
    np.testing.assert_allclose(kernel.evaluate(Statistics(X)), K, rtol=1e-11, atol=tolerance(K))
    np.testing.assert_allclose(kernel(X, X.copy()), K, rtol=1e-11, atol=tolerance(K))
    np.testing.assert_allclose(kernel.diag(X), np.diag(K), rtol=1e-11, atol=tolerance(K))


@laws
@given(st.data(), tables, st.sampled_from([*PROFILES, "absolute"]))
def test_kernels_with_relevances_are_positive_semidefinite(data, X, profile):
    theta = data.draw(st.lists(st.floats(0, 1e3), min_size=X.shape[1], max_size=X.shape[1]))
    K = (ARDLaplacian(theta) if profile == "absolute" else ARD(theta, profile))(X)
    assert np.array_equal(K, K.T)
    assert (np.diag(K) == 1).all()
    assert np.linalg.eigvalsh(K)[0] >= -tolerance(K)


@laws
@given(kernels, kernels, tables, st.floats(1e-3, 1e3))
def test_algebra_is_that_of_the_matrices(a, b, X, c):
    A, B = a(X), b(X)
    for kernel, expected in ((a + b, A + B), (a * b, A * B), (c * a, c * A)):
        np.testing.assert_allclose(kernel(X), expected, rtol=1e-11, atol=tolerance(expected))


@laws
@given(st.sampled_from(RADIAL), widths, tables)
def test_radial_kernels_are_one_on_the_diagonal_and_between_zero_and_one(cls, width, X):
    K = cls(width)(X)
    assert (np.diag(K) == 1).all()
    assert ((K >= 0) & (K <= 1 + 4 * EPS)).all()


@laws
@given(st.sampled_from(RADIAL), widths, tables, st.integers(-20, 20))
def test_radial_kernels_scale_with_the_data(cls, width, X, exponent):
    factor = 2.0**exponent  # exact in binary, so that only the order of rounding can differ
    scaled = cls(width * (factor**2 if cls is Gaussian else factor))
    np.testing.assert_allclose(scaled(X * factor), cls(width)(X), rtol=1e-9, atol=1e-12)


@laws
@given(kernels, tables, st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(kernel, X, random):
    order = list(range(len(X)))
    random.shuffle(order)
    K = kernel(X)
    np.testing.assert_allclose(kernel(X[order]), K[np.ix_(order, order)], rtol=1e-9, atol=tolerance(K))
