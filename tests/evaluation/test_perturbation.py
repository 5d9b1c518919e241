"""Kernel stability row by row: against the norms of the differences themselves."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernsel
import tables
import tolerances
import twins.spectral
from kernsel.data import from_arrays
from kernsel.errors import DataError, OptionError
from kernsel.kernels import Gaussian, Linear

ORDERS = {"spectral": 2, "trace": "nuc", "frobenius": "fro"}


@given(
    st.sampled_from(sorted(ORDERS)), st.sampled_from(["gaussian(tau=0.5)", "linear", "0.5*linear + gaussian(tau=2)"])
)
def test_perturbations_are_the_norms_of_the_differences(norm, kernel):
    X, _ = tables.waves(n=12)
    found = kernsel.stability(X, kernel, norm=norm, standardize=False)
    K = found.kernel(X)
    norms = [np.linalg.norm(K - twins.spectral.without(K, i), ORDERS[norm]) for i in range(12)]
    np.testing.assert_allclose(found.perturbations, norms, rtol=tolerances.SCAN)
    assert found.beta == pytest.approx(max(norms))
    assert found.spectral == pytest.approx(max(np.linalg.norm(K - twins.spectral.without(K, i), 2) for i in range(12)))
    assert found.kappa == pytest.approx(K.diagonal().max())
    assert found.n == 12
    assert found.influential(1)[0] == np.argmax(norms)


def test_the_rows_in_a_crowd_move_it_most_and_an_outlier_least():
    crowd, rest = np.zeros((5, 2)), 3 * np.random.default_rng(0).normal(size=(20, 2))
    X = np.vstack([rest[:10], crowd, rest[10:], [[50.0, 50.0]]])
    found = kernsel.stability(X, Gaussian(0.5), standardize=False)
    np.testing.assert_array_equal(found.influential(5), np.arange(10, 15))  # equal ones, in their order
    assert found.influential(26)[-1] == 25
    assert found.perturbations[25] == pytest.approx(1.0)
    assert found.influential(0).size == 0
    assert repr(found) == f"<Stability of gaussian(tau=0.5): beta = {found.beta:.4g} (spectral norm), n = 26>"


def test_columns_are_standardised_and_encoded_as_for_a_selection():
    X, y = tables.waves()
    frame = pd.DataFrame({"a": 100 * X[:, 0], "b": X[:, 1], "site": np.where(X[:, 1] > 0, "north", "south")})
    found = kernsel.stability(frame, "gaussian(tau=1)")
    rows = from_arrays(frame, y, standardize=True).X
    np.testing.assert_array_equal(
        found.perturbations, kernsel.stability(rows, "gaussian(tau=1)", standardize=False).perturbations
    )
    raw = kernsel.stability(X, "gaussian(tau=1)", standardize=False)
    assert raw.beta != kernsel.stability(X, "gaussian(tau=1)").beta


@pytest.mark.parametrize(
    ("X", "kernel", "options", "kind", "message"),
    [
        (np.eye(3), "gaussian", {}, OptionError, "kernel 'gaussian': tau has no value"),
        (np.eye(3), "gausian(tau=1)", {}, OptionError, "did you mean 'gaussian'"),
        (np.eye(3), Linear(), {"norm": "nuclear"}, OptionError, "norm 'nuclear' is unknown: use spectral, trace or"),
        (np.ones((3, 1)), Linear(), {}, DataError, "no column is left"),
        (np.ones((1, 1)), Linear(), {}, DataError, "the table has 1 row"),
        (
            1e60 * np.eye(3),
            "polynomial(degree=9, gamma=1)",
            {"standardize": False},
            DataError,
            "kernel 'polynomial.* has values",
        ),
    ],
)
def test_bad_input(X, kernel, options, kind, message):
    with pytest.raises(kind, match=message):
        kernsel.stability(X, kernel, **options)
