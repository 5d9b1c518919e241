"""Kriging by the nearest centres, against dense algebra row by row."""

from __future__ import annotations

import numpy as np
import pytest

from kernsel.numerics.kriging import krige


def slow_krige(X, known, C, t, v, width, nearest):
    """One system a point, by a stable sort and a general solver."""
    out = []
    for x, there in zip(X, known, strict=True):
        D = np.abs(x[there] - C[:, there]).sum(axis=1)
        near = np.argsort(D, kind="stable")[:nearest]
        points = C[near][:, there]
        K = np.exp(-np.abs(points[:, None] - points[None]).sum(axis=2) / width)
        out.append(np.exp(-D[near] / width) @ np.linalg.solve(K + np.diag(v[near]), t[near]))
    return np.array(out)


def drawn(seed, n=8, N=30, q=3):
    """Points, what is known of them, centres, their numbers and variances; there are ties of distances."""
    rng = np.random.default_rng(seed)
    X, C = rng.integers(0, 4, (n, q)).astype(float), rng.integers(0, 4, (N, q)).astype(float)
    return X, rng.random((n, q)) < 0.7, C, rng.normal(size=N), rng.uniform(0.01, 1.0, N)


@pytest.mark.parametrize("nearest", [1, 7, 30])
def test_predictions_are_those_of_dense_algebra(nearest):
    X, known, C, t, v = drawn(nearest)
    found = krige(X, known, C, t, v, 2.0, nearest)
    np.testing.assert_allclose(found, slow_krige(X, known, C, t, v, 2.0, nearest), rtol=0, atol=1e-11)


def test_a_point_at_a_centre_without_noise_has_its_number_and_what_is_unknown_has_no_part():
    X, known, C, t, v = drawn(0)
    C = C + np.arange(30)[:, None] / 100  # all distinct
    np.testing.assert_allclose(krige(C, np.ones(C.shape, bool), C, t, 1e-12 * v, 2.0, 5), t, atol=1e-9)
    other = np.where(known, X, 99.0)
    np.testing.assert_array_equal(krige(X, known, C, t, v, 2.0, 5), krige(other, known, C, t, v, 2.0, 5))


def test_threads_and_other_points_make_no_difference(use_threads):
    X, known, C, t, v = drawn(1, n=200)
    use_threads(2)
    together = krige(X, known, C, t, v, 2.0, 9)
    use_threads(1)
    np.testing.assert_array_equal(krige(X, known, C, t, v, 2.0, 9), together)
    alone = [krige(X[[i]], known[[i]], C, t, v, 2.0, 9)[0] for i in range(200)]
    np.testing.assert_array_equal(alone, together)
