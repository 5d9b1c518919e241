"""What all tests share: the profile of hypothesis, which tests are slow, and loops that are compiled once for all."""

import os
import signal
from collections import Counter
from contextlib import suppress
from pathlib import Path

import numba
import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from kernsel.numerics.runtime import ahead, cache, jit

# No deadline: the first call of a loop compiles it. Derandomised: a failure is a change of the code, not of the dice.
# Without the JIT a loop takes hundreds of times as long: fewer examples are drawn.
PLAIN = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
settings.register_profile(
    "kernsel",
    max_examples=2 if PLAIN else 40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("kernsel")

# A shell has Ctrl-C ignored in what it starts in the background, and all that is started there inherits that.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def use_threads(monkeypatch):
    """Return a function that gives kernsel so many threads, until the test is over."""
    return lambda count: monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", count)


SLOW = Path(__file__).with_name("slow.txt")
"""The tests that are slow, as ``--find-slow`` has found them: a line for each function, whatever its parameters."""

SECONDS = 0.1
"""From so long on a test is slow; the thousands of others together take less than a minute."""

MANY = 2000
"""More tests than a folder has: so many need nearly all loops."""


def function_of(nodeid):
    """Return the file and the name of a test, without its parameters: ``cli/test_select.py::test_help``."""
    return nodeid.partition("[")[0].removeprefix("tests/")


def pytest_addoption(parser):
    """Add the option that measures which tests are slow."""
    help_text = f"write to {SLOW.name} which of the tests that run take {SECONDS} s or more; on an idle machine"
    parser.addoption("--find-slow", action="store_true", help=help_text)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """Measure the tests in one process: side by side they would slow each other down."""
    if config.getoption("find_slow"):
        config.option.numprocesses = 0


def pytest_configure(config):
    """Measure the tests where that is asked for."""
    if config.getoption("find_slow"):
        config.pluginmanager.register(Slowness())


def pytest_collection_modifyitems(items):
    """Mark as slow what was found to be, and every law that hypothesis draws dozens of examples for."""
    slow = set(SLOW.read_text().splitlines())
    for item in items:
        if function_of(item.nodeid) in slow or is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(tryfirst=True)  # before a worker says what it has found, for which all others wait
def pytest_collection_finish(session):
    """Compile the loops side by side before the first of many tests, each in one worker: two would compile each twice.

    A worker finds what the others have compiled on disk.
    """
    worker = getattr(session.config, "workerinput", None)
    if worker and len(session.items) >= MANY and not PLAIN:
        share = jit.defined[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]
        with suppress(RuntimeError):  # no folder can hold the cache: each worker compiles for itself
            ahead.compile_these(cache.missing(share))


class Slowness:
    """The seconds of each test that has run."""

    def __init__(self):
        self.seconds = Counter()
        self.skipped = set()

    def pytest_runtest_logreport(self, report):
        """Add the seconds of a part of a test: what it needs, itself, and what it leaves behind."""
        # What is skipped, for lack of an extra say, may take long elsewhere.
        if report.skipped and not hasattr(report, "wasxfail"):
            self.seconds.pop(report.nodeid, None)
            self.skipped.add(report.nodeid)
        elif "hypothesis" not in report.keywords and report.nodeid not in self.skipped:  # those are slow anyway
            self.seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self):
        """Write which tests are slow; of those that did not run the line stays as long as there is such a file."""
        ran = {function_of(nodeid) for nodeid in self.seconds}
        slow = {function_of(nodeid) for nodeid, seconds in self.seconds.items() if seconds >= SECONDS}
        others = set(SLOW.read_text().splitlines()) - ran
        kept = {each for each in others if (SLOW.parent / each.partition("::")[0]).exists()}
        SLOW.write_text("".join(f"{each}\n" for each in sorted(kept | slow)))
