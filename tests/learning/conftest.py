"""What the tests of learning share."""

import pytest

from kernsel.numerics.runtime import jit


@pytest.fixture(autouse=True)
def one_blas_thread():
    """Give BLAS one thread, as whatever learns does."""
    with jit.one_blas_thread():
        yield
