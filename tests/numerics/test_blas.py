"""The wrappers of BLAS and LAPACK against NumPy."""

import numpy as np
import pytest

from calling import entry
from kernsel.numerics.runtime import blas

SIZES = [0, 1, 2, 7, 40]
sizes = pytest.mark.parametrize("n", SIZES)


def positive(n, seed=0):
    A = np.random.default_rng(seed).normal(size=(n, n + 3))
    return A @ A.T


def garbled(A):
    """The lower triangle of A, with nonsense above it."""
    return np.where(np.tri(len(A), dtype=bool), A, 1e30)


@sizes
def test_cholesky_reads_and_writes_the_lower_triangle(n):
    A = positive(n)
    R = garbled(A)
    assert entry(blas.cholesky)(R) == 0
    np.testing.assert_allclose(np.tril(R), np.linalg.cholesky(A), rtol=1e-10, atol=1e-12)
    assert (R[np.triu_indices(n, 1)] == 1e30).all()


def test_cholesky_says_where_it_fails():
    assert entry(blas.cholesky)(np.diag([1.0, 2.0, -1.0, 3.0])) == 3
    assert entry(blas.cholesky)(np.full((2, 2), np.nan)) != 0


@sizes
@pytest.mark.parametrize("k", [0, 1, 5])
def test_solve_rows(n, k):
    A = positive(n)
    R, B = garbled(A), np.random.default_rng(1).normal(size=(k, n))
    expected = np.linalg.solve(A, B.T).T
    entry(blas.cholesky)(R)
    entry(blas.solve_rows)(R, B)
    np.testing.assert_allclose(B, expected, rtol=1e-8, atol=1e-10)


@sizes
def test_inverse_is_whole(n):
    A = positive(n)
    R = garbled(A)
    entry(blas.cholesky)(R)
    entry(blas.inverse)(R)
    np.testing.assert_allclose(R, np.linalg.inv(A), rtol=1e-8, atol=1e-10)
    assert np.array_equal(R, R.T)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (4, 9), (9, 4)])
@pytest.mark.parametrize("alpha", [1.0, -0.5])
def test_products_are_added_to_the_lower_triangle(shape, alpha):
    A = np.random.default_rng(0).normal(size=shape)
    for add, product in ((blas.add_products, A.T @ A), (blas.add_inner_products, A @ A.T)):
        C = garbled(np.ones(product.shape))
        entry(add)(A, alpha, C)
        np.testing.assert_allclose(np.tril(C), np.tril(1 + alpha * product), rtol=1e-12, atol=1e-13)
        assert (C[np.triu_indices(len(C), 1)] == 1e30).all()


@sizes
def test_copies(n):
    A, C = positive(n), np.full((n, n), 7.0)
    entry(blas.copy_lower)(A, C)
    assert np.array_equal(C, np.where(np.tri(n, dtype=bool), A, 7.0))
    entry(blas.mirror)(C)
    assert np.array_equal(C, A)


def test_damped_cholesky_leaves_a_sound_matrix_alone():
    A = positive(8)
    R = A.copy()
    assert entry(blas.damped_cholesky)(R) == 0
    np.testing.assert_allclose(np.tril(R), np.linalg.cholesky(A), rtol=1e-12)


def test_damped_cholesky_adds_little_to_a_singular_one():
    A = np.ones((8, 8))
    R = A.copy()
    assert entry(blas.damped_cholesky)(R) == 0
    L = np.tril(R)
    np.testing.assert_allclose(L @ L.T, A, atol=2e-6)


@pytest.mark.parametrize("A", [-np.eye(4), np.diag([1.0, 1.0, -1.0]), np.full((3, 3), np.nan), np.diag([np.inf, 1.0])])
def test_damped_cholesky_gives_up(A):
    assert entry(blas.damped_cholesky)(A.copy()) == -1
    assert entry(blas.damped_solve)(A.copy(), np.ones(len(A))) == -1


def test_damped_solve():
    A, b = positive(6), np.arange(6.0)
    expected = np.linalg.solve(A, b)
    assert entry(blas.damped_solve)(garbled(A), b) == 0
    np.testing.assert_allclose(b, expected, rtol=1e-9)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (4, 9), (9, 4)])
def test_products_of_matrices_and_vectors(shape):
    """Also of nothing: then they are 0, whatever stood there."""
    rng = np.random.default_rng(0)
    A, B, (n, m) = rng.normal(size=shape), rng.normal(size=(5, shape[1])), shape
    x, y = rng.normal(size=m), rng.normal(size=n)
    Ax, Ay = np.full(n, 1e30), np.full(m, 1e30)
    for product in (blas.times, blas.multiply):
        entry(product)(A, x, Ax)
        np.testing.assert_allclose(Ax, A @ x, rtol=1e-12, atol=1e-13)
    entry(blas.multiply_transposed)(A, y, Ay)
    np.testing.assert_allclose(Ay, A.T @ y, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(entry(blas.inner_products)(A, B), A @ B.T, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("n", [1, 2, 7, 40, 100])
def test_the_inverse_in_single_precision_is_whole(n):
    A = positive(n) + n * np.eye(n)
    R = garbled(A).astype(np.float32)
    assert entry(blas.single_inverse)(R) == 0
    np.testing.assert_allclose(R, np.linalg.inv(A), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("A", [np.diag([1.0, -1.0]), np.full((2, 2), np.nan)])
def test_the_inverse_in_single_precision_says_that_there_is_none(A):
    assert entry(blas.single_inverse)(A.astype(np.float32)) == -1


@pytest.mark.parametrize("shape", [(0, 3, 4), (1, 5, 5), (3, 0, 2), (4, 7, 6)])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_products_of_matrices_in_their_precision(shape, kind):
    k, m, n = shape
    rng = np.random.default_rng(1)
    B, A = rng.normal(size=(k, m)).astype(kind), rng.normal(size=(m, n)).astype(kind)
    out = entry(blas.rows_times_in)(B, A)
    assert out.dtype == kind
    close = 50.0 * np.finfo(kind).eps
    np.testing.assert_allclose(out, B @ A, rtol=close, atol=close)


@pytest.mark.parametrize("n", [1, 2, 40])
def test_half_solutions_are_those_with_a_triangle(n):
    A = positive(n)
    L, b = np.linalg.cholesky(A), np.arange(1.0, n + 1.0)
    R = A.copy()
    assert entry(blas.cholesky)(R) == 0
    for back in (False, True):
        x = b.copy()
        entry(blas.solve_half)(R, x, back)
        np.testing.assert_allclose(x, np.linalg.solve(L.T if back else L, b), rtol=1e-8)


@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 70])
def test_mirror_copies_every_tile(n):
    A = positive(n, seed=2)
    R = garbled(A)
    entry(blas.mirror)(R)
    assert (np.tril(A) + np.tril(A, -1).T == R).all()
