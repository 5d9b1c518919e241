import numpy as np
import pytest
from kernsel_histograms import ChiSquared, Intersection

from kernsel.errors import DataError
from kernsel.testing import kernel_checks

CHECKS = [(kernel, check) for kernel in (ChiSquared(), Intersection()) for check in kernel_checks(kernel, rows=np.abs)]


@pytest.mark.parametrize("check", [check for _, check in CHECKS], ids=[f"{k.name}-{c.name}" for k, c in CHECKS])
def test_kit(check):
    check()


@pytest.mark.parametrize("kernel", [ChiSquared(2.0), Intersection()])
def test_values_are_those_of_a_slow_loop(kernel):
    X, Z = np.random.default_rng(0).poisson(2.0, (9, 5)).astype(float), np.eye(5)

    def slow(x, z):
        if kernel.name == "intersection":
            return sum(min(a, b) for a, b in zip(x, z, strict=True))
        return np.exp(-sum((a - b) ** 2 / (a + b) for a, b in zip(x, z, strict=True) if a + b > 0) / 2.0)

    np.testing.assert_allclose(kernel(X, Z), [[slow(x, z) for z in Z] for x in X], rtol=1e-13)


def test_negative_columns_are_refused_with_the_option_that_helps():
    for ask in (ChiSquared().axes, ChiSquared(1.0), Intersection()):
        with pytest.raises(DataError, match="--no-standardize"):
            ask(np.array([[1.0, -1.0], [0.0, 1.0]]))


def test_equal_rows_have_an_axis():
    assert np.isfinite(ChiSquared().axes(np.ones((3, 2)))["sigma"]).all()
