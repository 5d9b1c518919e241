"""Factors of Cholesky and products of triangles, by brute force; and that nothing else calls such routines."""

import re
from pathlib import Path

import numpy as np
import pytest

import kernsel
from kernsel.numerics.dense import Cholesky, add_products, mirror, solve_upper, times_upper

ELSEWHERE = {
    "model/compression.py": "corners of one factor serve all numbers of landmarks",
    "numerics/lowrank.py": "a pivoted factor",
    "numerics/square/firstlevel.py": "a Gram matrix that is factorised in its own place",
    "numerics/square/gradients.py": "factors of compiled loops, above whose diagonal anything may stand",
    "numerics/whole/triangle.py": "tiles of float32",
}
"""Modules that call routines of LAPACK for factors themselves, and why."""

ROUTINE = re.compile(r"scipy\.linalg\.(cholesky|cho_|solve|blas\.|lapack\.)|from scipy\.linalg import")


def test_factors_come_from_one_module():
    folder = Path(kernsel.__file__).parent
    calling = {str(file.relative_to(folder)) for file in folder.rglob("*.py") if ROUTINE.search(file.read_text())}
    assert calling - {"numerics/dense.py"} == set(ELSEWHERE)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_factor_solves(rng, order):
    Z, B = rng.normal(size=(20, 6)), rng.normal(size=(6, 3))
    H = np.array(Z.T @ Z, order=order)
    kept = H.copy()
    factor = Cholesky.of(H, 0.5, free=1)
    A = H + np.diag([0.5] * 5 + [0.0])
    np.testing.assert_array_equal(H, kept)
    np.testing.assert_allclose(factor.L @ factor.L.T, A, rtol=0, atol=1e-12)
    np.testing.assert_allclose(factor.solve(B), np.linalg.solve(A, B), rtol=0, atol=1e-12)
    np.testing.assert_allclose(factor.half(B), np.linalg.solve(factor.L, B), rtol=0, atol=1e-12)
    np.testing.assert_allclose(factor.lengths(B), np.diag(B.T @ np.linalg.solve(A, B)), rtol=0, atol=1e-12)
    np.testing.assert_allclose(factor.solve(B[:, 0]), np.linalg.solve(A, B[:, 0]), rtol=0, atol=1e-12)


def test_only_the_lower_triangle_is_read(rng):
    Z = rng.normal(size=(20, 6))
    H = Z.T @ Z
    np.testing.assert_array_equal(Cholesky.of(np.tril(H) + np.triu(np.full((6, 6), 7.0), 1)).L, Cholesky.of(H).L)


def test_no_factor_of_a_matrix_that_is_not_positive():
    with pytest.raises(np.linalg.LinAlgError):
        Cholesky.of(np.diag([1.0, -1.0]))


@pytest.mark.parametrize("rows", [0, 1, 9])
def test_products_and_triangles(rng, rows):
    P, T = rng.normal(size=(rows, 5)), np.triu(rng.normal(size=(5, 5)))
    sums = np.zeros((2, 5, 5))
    for _ in range(2):
        add_products(P, sums[1])
    np.testing.assert_array_equal(np.triu(sums[1], 1), 0.0)
    mirror(sums[1])
    np.testing.assert_allclose(sums[1], 2.0 * P.T @ P, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(sums[0], 0.0)
    kept = P.copy()
    product = times_upper(P, T)
    np.testing.assert_allclose(product, P @ T, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(P, kept)
    np.testing.assert_allclose(times_upper(P, T, overwrite=True), kept @ T, rtol=0, atol=1e-12)
    np.testing.assert_allclose(solve_upper(T, product.T[:, :1]), np.linalg.solve(T, product.T[:, :1]), rtol=1e-9)
