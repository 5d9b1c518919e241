"""The same answer to the last bit, whatever works it out and however the rows lie in memory."""

import asyncio
import multiprocessing
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib import Parallel, delayed

from answers import TASKS, answer, send

pytestmark = pytest.mark.filterwarnings("ignore::kernsel.errors.SelectionWarning")
PATIENCE = 240  # seconds: a process that hangs fails its test


def read_only(X):
    X = X.copy()
    X.setflags(write=False)
    return X


LAYOUTS = {
    "by columns": np.asfortranarray,
    "every second column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "backwards": lambda X: X[::-1].copy()[::-1],
    "read-only": read_only,
    "big-endian": lambda X: X.astype(">f8"),
}


@pytest.fixture(scope="module")
def alone():
    return {name: answer(name) for name in TASKS}


def test_in_threads(alone):
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(answer, [*TASKS, *TASKS]))
    assert found == [*alone.values(), *alone.values()]


def test_in_the_threads_of_an_event_loop(alone):
    async def together():
        return await asyncio.gather(*(asyncio.to_thread(answer, name) for name in TASKS))

    assert asyncio.run(together()) == list(alone.values())


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_on_workers_of_joblib(backend, alone):
    assert Parallel(2, backend=backend)(delayed(answer)(name) for name in TASKS) == list(alone.values())


@pytest.mark.parametrize("start", multiprocessing.get_all_start_methods())
def test_in_another_process(start, alone):
    context = multiprocessing.get_context(start)
    queue = context.Queue()
    process = context.Process(target=send, args=(queue,))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks with threads
        process.start()
    try:
        assert queue.get(timeout=PATIENCE) == alone
    finally:
        process.kill()
        process.join()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_of_rows_that_lie_otherwise_in_memory(layout, alone):
    assert {name: answer(name, LAYOUTS[layout]) for name in TASKS} == alone
