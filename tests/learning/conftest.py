"""What the tests of learning share."""

import pytest

from kernsel.numerics.runtime import threads


@pytest.fixture(autouse=True)
def one_blas_thread():
    """Give BLAS one thread, as whatever learns does."""
    with threads.one_blas_thread():
        yield
