"""Plugins that misbehave: what they do is contained and named, and the search goes on where it can."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import kernsel
from commandline import run
from kernsel import registry
from kernsel.errors import OptionError, PluginFailure, SelectionError, SelectionWarning
from kernsel.numerics.runtime import patience
from kernsel.numerics.runtime.threads import blas_libraries

DISTS = Path(__file__).parents[1] / "dists"
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
y = X[:, 0] + 0.1 * RNG.normal(size=40)
GRID = {"tau": [1.0, 4.0], "lambda": [0.01, 0.1]}


@pytest.fixture(autouse=True)
def _naughty(monkeypatch):
    """Install the fake distribution until the test ends."""
    monkeypatch.syspath_prepend(DISTS / "naughty")
    yield
    sys.modules.pop("acme_naughty", None)
    importlib.invalidate_caches()


def select(**options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelectionWarning)
        return kernsel.select(X, y, folds=5, **{"grid": GRID, "kernel": "gaussian", "extend": False, **options})


CRITERIA = {
    "raises": "RuntimeError: the disk is on fire",
    "exits": "SystemExit: 7",
    "not-a-number": "the score is not finite",
    "wrong-shape": "measure returned float64 of shape (3,) for 40 rows",
    "wrong-type": "measure returned <U9 of shape ()",
    "mutates": "ValueError: output array is read-only",
    "no-scores": "score returned list in place of Scores",
}


@pytest.mark.parametrize("name", CRITERIA)
def test_a_criterion_that_misbehaves_is_named_with_what_it_did(name):
    targets = y.copy()
    with pytest.raises((SelectionError, PluginFailure)) as caught:
        select(criterion=name)
    assert CRITERIA[name] in str(caught.value)
    assert f"criterion {name!r} of acme-naughty 0.7" in str(caught.value)
    assert "\n" not in str(caught.value)
    np.testing.assert_array_equal(y, targets)


KERNELS = {
    "kernel-raises": "ValueError: no such matrix",
    "kernel-exits": "SystemExit: 7",
    "kernel-nan": "the kernel is not finite at every pair of rows",
    "kernel-shape": "evaluate returned float64 of shape (39, 40) for 40 rows",
    "kernel-type": "evaluate returned complex128 of shape (40, 40)",
    "kernel-diagonal": "diag has type float64 and shape (40, 2)",
    "kernel-mutates": "ValueError: output array is read-only",
}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("learner", ["krr", "svr"])
def test_a_kernel_that_misbehaves_fails_alone(name, learner):
    plain = select(learner=learner)
    free = name != "kernel-mutates"
    grid = GRID | ({"1.tau": [1.0]} if free else {})
    found = select(learner=learner, kernel=[name, f"{name} + linear", "gaussian"], grid=grid)
    failed = [c for c in found.candidates if c.failed is not None]
    assert failed
    assert {c.kernel.name for c in failed} == {name, "sum"}
    for each in failed:
        assert KERNELS[name] in each.failed or each.kernel.name == "sum"
        assert f"kernel {name!r} of acme-naughty 0.7" in each.failed
        assert "\n" not in each.failed
    assert found.best.key == plain.best.key
    assert found.best.score == plain.best.score
    np.testing.assert_array_equal(found.model.predict(X), plain.model.predict(X))


STUCK = ["kernel-sleeps", "kernel-loops", "kernel-blocks"]


@pytest.mark.parametrize("name", STUCK)
@pytest.mark.parametrize("learner", ["krr", "svr"])
@pytest.mark.parametrize("kernels", [["gaussian", "linear"], []])
def test_a_kernel_that_never_returns_is_left_behind(name, learner, kernels, use_threads):
    use_threads(2)
    libraries = [library for each in blas_libraries() for library in each]
    before, others = [each.num_threads for each in libraries], ["gaussian", *kernels]
    plain = select(learner=learner, kernel=others)
    found = select(learner=learner, kernel=[name, *others], candidate_timeout=0.5)
    failed = [c for c in found.candidates if c.failed is not None]
    assert {c.kernel.name for c in failed} == {name}
    assert {c.failed for c in failed} == {f"kernel {name!r} of acme-naughty 0.7 did not return within 0.5 s"}
    kept = {c.key: (c.score, c.verified) for c in found.candidates if c.failed is None}
    assert kept == {c.key: (c.score, c.verified) for c in plain.candidates}
    assert found.best.key == plain.best.key
    np.testing.assert_array_equal(found.model.predict(X), plain.model.predict(X))
    assert [each.num_threads for each in libraries] == before
    if name != "kernel-blocks":  # what runs Python ends
        for _ in range(200):
            if not any(thread.name == "kernsel-candidate" for thread in patience._left if thread.is_alive()):
                break
            time.sleep(0.05)
        assert not patience.any_left_behind()
    patience._left.clear()


def test_candidates_that_return_in_time_are_the_same_with_a_limit():
    plain, limited = (select(learner="svr", candidate_timeout=given) for given in (None, "10min"))
    assert list(map(vars, plain.candidates)) == list(map(vars, limited.candidates))
    with pytest.raises(OptionError, match="candidate_timeout 'soon' is no time: give seconds"):
        select(candidate_timeout="soon")


@pytest.mark.parametrize("learner", ["krr", "svr"])
@pytest.mark.parametrize("options", [{}, {"criterion": "rks", "eta": "cv"}], ids=["criterion", "eta"])
def test_a_function_that_never_returns_is_left_behind(learner, options):
    """Its values are asked for before any candidate is scored, too: they give the scale of lambda."""

    def stuck(X, Z):
        while True:
            pass

    options = {**options, "learner": learner, "grid": "coarse"}
    plain, found = select(**options), select(kernel=["gaussian", stuck], candidate_timeout=0.2, **options)
    assert {c.kernel.name for c in found.candidates if c.failed is not None} == {"stuck"}
    assert found.best.key == plain.best.key
    assert found.best.verified == plain.best.verified


@pytest.mark.parametrize("seconds", [1e10, 1e300])
def test_a_limit_beyond_what_threads_can_wait_is_none(seconds):
    assert patience.done_within(seconds, lambda: time.sleep(0.1) or 5) == 5


@pytest.mark.parametrize("name", STUCK)
def test_a_command_ends_soon_though_a_candidate_never_does(name, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(DISTS / "naughty"))
    pd.DataFrame(X).assign(y=y).to_csv(tmp_path / "table.csv", index=False)
    began = time.monotonic()
    call = [
        sys.executable, "-m", "kernsel", "select", str(tmp_path / "table.csv"), "--folds", "5", "--grid", "coarse",
        "--kernel", name, "--kernel", "gaussian", "--candidate-timeout", "1s", "--json",
    ]  # fmt: skip
    done = subprocess.run(call, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert "gaussian" in str(found["best"]["kernel"])
    assert f"kernel {name!r} of acme-naughty 0.7 did not return within 1 s" in done.stdout
    assert "Traceback" not in done.stderr
    assert time.monotonic() - began < 60


def test_targets_that_were_changed_end_the_search():
    with pytest.raises(PluginFailure, match="criterion 'mutates-the-path' of acme-naughty 0.7 changed the targets"):
        select(criterion="mutates-the-path")


def test_an_end_of_the_process_outside_of_any_candidate_is_an_error():
    with pytest.raises(
        PluginFailure, match=r"kernel 'grid-exits' of acme-naughty 0\.7 failed \(SystemExit: 7\); tell its authors"
    ):
        select(kernel="grid-exits", grid="auto")


def test_an_indefinite_kernel_is_said():
    found = select(kernel="indefinite", grid={"lambda": [1.0, 10.0]}, verify=0)
    (text,) = (w for w in found.warnings if getattr(w, "code", "") == "indefinite-kernel")
    assert "kernel 'indefinite' of acme-naughty 0.7 isn't positive semidefinite" in text
    assert not [w for w in select().warnings if getattr(w, "code", "") == "indefinite-kernel"]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y).to_csv(path, index=False)
    return path


def test_what_a_plugin_prints_is_no_part_of_the_document(table):
    done = run("select", table, "--criterion", "prints", "--kernel", "gaussian(tau=2)", "--json")
    assert json.loads(done.stdout)["criterion" if "criterion" in json.loads(done.stdout) else "options"]
    assert "hello from acme" in done.stderr


@pytest.mark.parametrize("option", [("--criterion", "exits"), ("--kernel", "grid-exits"), ("--criterion", "raises")])
def test_on_the_command_line_it_is_one_line(table, option):
    done = run("select", table, "--kernel", "gaussian(tau=2)", *option, "--json", code=2)
    assert done.stdout == ""
    assert "acme-naughty 0.7" in done.stderr


def test_blame_goes_to_the_plugin_whose_code_ran_last():
    assert registry.blame(ValueError("x")) is None
    assert registry.maker_of(kernsel.kernels.Gaussian()) is None
    part = registry.get("kernel", "kernel-raises")()
    assert registry.maker_of(2.0 * part + part) == "kernel 'kernel-raises' of acme-naughty 0.7"
