"""Several threads of Python at once, and Ctrl-C at bad moments."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import kernsel
from kernsel.numerics.runtime import compiling, threads


def blas_threads():
    return [library.num_threads for libraries in threads.blas_libraries() for library in libraries]


@pytest.fixture
def _two_threads():
    """Let BLAS have two threads, whatever the machine has."""
    whole, own = threads.blas_libraries()
    before = threads.limit_threads([*whole, *own], [2] * len([*whole, *own]))
    yield
    threads.limit_threads([*whole, *own], before)


@pytest.mark.usefixtures("_two_threads")
def test_blocks_that_overlap_in_two_threads_restore_the_threads_of_blas():
    first_began, second_began, first_ended = threading.Event(), threading.Event(), threading.Event()
    seen = []

    def first():
        with threads.one_blas_thread():
            first_began.set()
            assert second_began.wait(10)
        first_ended.set()

    def second():
        assert first_began.wait(10)
        with threads.one_blas_thread():
            second_began.set()
            assert first_ended.wait(10)
            seen.extend(blas_threads())

    before = blas_threads()
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(first), pool.submit(second)]:
            done.result()
    assert set(seen) == {1}  # the first to end leaves the other its limit
    assert blas_threads() == before
    assert set(before) == {2}


@pytest.mark.usefixtures("_two_threads")
def test_selections_in_two_threads_are_those_of_one():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    tasks = [(X, X[:, 0] + 0.1 * rng.normal(size=60)), (X, X[:, 1] + 0.1 * rng.normal(size=60))]

    def score(task):
        return kernsel.select(*task, kernel="gaussian", learner="krr", extend=False).best.score

    alone, before = list(map(score, tasks)), blas_threads()
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(score, tasks)) == alone
    assert blas_threads() == before


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_that_is_lost_in_a_callback_is_raised_afterwards():
    after = []

    @ctypes.CFUNCTYPE(None)
    def callback():
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):  # where Python looks for signals
            pass

    def interrupted():
        with compiling.keep_interrupts():
            callback()
            after.append("went on")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert after == ["went on"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
