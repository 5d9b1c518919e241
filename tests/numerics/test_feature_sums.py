"""Sums over pairs of rows for each feature, against the array of n x m x d that they avoid."""

import numpy as np
import pytest
import scipy.sparse

from kernsel.numerics import feature_sums

TERMS = {
    "squares": (feature_sums.sums_of_squares, lambda x, z: (x - z) ** 2),
    "products": (feature_sums.sums_of_products, lambda x, z: x * z),
    "differences": (feature_sums.sums_of_differences, lambda x, z: np.abs(x - z)),
}
terms = pytest.mark.parametrize("term", TERMS)


def twin(term, X, V, Z):
    """``sum_ij V_ij t(x_ir, z_jr)``, written out."""
    return np.einsum("ij,ijr->r", V, TERMS[term][1](X[:, None], Z[None]))


def rows(seed, n, d=3):
    """Rows of which half of the numbers are zero."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5)


@terms
@pytest.mark.parametrize("sparse", ["neither", "first", "second", "both"])
@pytest.mark.parametrize("same", [True, False])
def test_sums_are_those_over_all_pairs(term, sparse, same):
    X = rows(0, 7)
    Z = X if same else rows(1, 5)
    V = np.random.default_rng(2).normal(size=(len(X), len(Z)))
    given = [
        scipy.sparse.csr_array(each) if sparse in (name, "both") else each
        for each, name in ((X, "first"), (Z, "second"))
    ]
    found = TERMS[term][0](given[0], V, None if same and sparse in ("neither", "both") else given[1])
    np.testing.assert_allclose(found, twin(term, X, V, Z), rtol=1e-12, atol=1e-13)


def test_differences_to_more_rows_than_a_tile():
    X, Z = rows(0, 2, d=1), rows(1, feature_sums._TILE + 3, d=1)
    V = np.random.default_rng(2).normal(size=(2, len(Z)))
    np.testing.assert_allclose(feature_sums.sums_of_differences(X, V, Z), twin("differences", X, V, Z), rtol=1e-11)


def test_squares_keep_their_digits_where_the_mean_is_large():
    X, V = rows(0, 7), np.random.default_rng(2).normal(size=(7, 7))
    shifted = X + 1e6  # its squares have 12 digits before the point, and four after it
    expected = twin("squares", shifted, V, shifted)
    np.testing.assert_allclose(feature_sums.sums_of_squares(shifted, V), expected, rtol=1e-9)
