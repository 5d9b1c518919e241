"""Compiling ahead of all selections: everything, once, into a cache that can be written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

LIGHT = """
import sys
from kernsel.cli.warmup import define_loops
from kernsel.numerics.runtime import jit
define_loops()
jit.defined[:] = [f for f in jit.defined if f.__name__ in ("_map", "_folds")]
from kernsel import registry
registry.find_fault = lambda claim: None
from kernsel.cli import app
if __name__ == "__main__":
    app(["warmup", *sys.argv[1:]])
"""
"""The command with two of the loops, as compiling all of them takes long."""


def start(tmp_path, *arguments, **environment):
    script = tmp_path / "light.py"
    script.write_text(LIGHT)
    return subprocess.Popen(
        [sys.executable, str(script), *arguments],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), **environment},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def run(tmp_path, *arguments, **environment):
    process = start(tmp_path, *arguments, **environment)
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def kept(tmp_path):
    return sorted(path.name.split("-")[0] for path in tmp_path.rglob("*.nbi"))


@pytest.mark.parametrize("processes", [1, 2])
def test_the_first_call_compiles_and_the_second_has_nothing_to_do(tmp_path, processes):
    code, out, err = run(tmp_path, NUMBA_NUM_THREADS=str(processes))
    assert (code, err) == (0, "")
    assert out.startswith("compiled 2 of 2 loops in ")
    assert f"by {processes} process" in out
    assert str(tmp_path / "cache") in out
    assert kept(tmp_path) == ["gram._map", "heldout._folds"]
    code, out, err = run(tmp_path)
    assert (code, err) == (0, "")
    assert out.startswith("nothing was missing: all 2 loops are in ")
    assert run(tmp_path, "--quiet") == (0, "", "")


def test_an_index_of_other_sources_is_missing(tmp_path):
    """The files of an older version may lie in the same place."""
    run(tmp_path)
    (index,) = tmp_path.rglob("gram._map*.nbi")
    index.write_bytes(next(tmp_path.rglob("heldout._folds*.nbi")).read_bytes())
    assert run(tmp_path)[1].startswith("compiled 1 of 2 loops in ")


def test_a_cache_that_cannot_be_written_is_one_error(tmp_path):
    (tmp_path / "file").touch()  # no folder can be made below a file, not even by root
    nowhere = str(tmp_path / "file/below")
    environment = {
        "XDG_CACHE_HOME": nowhere,
        "HOME": nowhere,
        "NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator",
    }
    code, out, err = run(tmp_path, NUMBA_CACHE_DIR=nowhere, **environment)
    assert (code, out) == (2, "")
    assert err == "kernsel: error: no folder can hold the compiled loops; set NUMBA_CACHE_DIR to one\n"


@pytest.mark.skipif(os.name != "posix", reason="signals of a terminal")
def test_ctrl_c_ends_it_and_its_processes(tmp_path):
    process = start(tmp_path)
    while process.poll() is None and not (tmp_path / "cache").exists():  # made when the first loop is looked for
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)  # returns when no process holds the pipes
    assert (process.returncode, err) == (130, "kernsel: interrupted\n")


def test_every_loop_is_known_after_the_imports_of_the_command():
    """A module with loops that only a selection imports would be left out."""
    code = """
import importlib, pkgutil, kernsel
from kernsel.cli.warmup import define_loops
from kernsel.numerics.runtime import jit
define_loops()
known = len(jit.defined)
for module in pkgutil.walk_packages(kernsel.__path__, "kernsel."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
assert known == len(jit.defined), [f.address for f in jit.defined[known:]]
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
